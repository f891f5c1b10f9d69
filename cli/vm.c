/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs guests with the device in QEMU. The Python part (scripts/lib/vm.py) prepares the guests'
 * system and runs QEMU; it gets its options checked, as one JSON argument.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/json.h"
#include "cli/places.h"

#define VM_NUMBERS 254   /* 10.0.0.N */
#define VM_MEMORY  65536 /* MiB */
#define VM_CPUS    64
#define VM_TIMEOUT 1000000000u

/* -- options ----------------------------------------------------------------------------------- */

/* The guest learns its folders from the kernel's command line, which has no quotes for them. */
#define VM_NOT_IN_PATHS " \t\n,:\"'"

static bool vm_check_share(const struct cli_option *option, const char *text, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    g_autofree char *name = NULL;

    if (!*text || !g_file_test(parts[0], G_FILE_TEST_IS_DIR) ||
        (parts[1] && !g_path_is_absolute(parts[1]))) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "share must be DIR or DIR:/PATH with a folder DIR, but it is %s",
                    *text ? text : "empty");
        return false;
    }
    name = parts[1] ? g_strdup(parts[1]) : realpath(parts[0], NULL);
    if (!name || strpbrk(parts[1] ? name : strrchr(name, '/'), VM_NOT_IN_PATHS)) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "share must have a path in the guest without blanks, commas, colons and "
                    "quotes, but it is %s: say DIR:/PATH",
                    text);
        return false;
    }
    return true;
}

static bool vm_check_words(const struct cli_option *option, const char *text, GError **err)
{
    g_auto(GStrv) words = NULL;

    if (*text && g_shell_parse_argv(text, NULL, &words, NULL)) {
        return true;
    }
    g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s must be words as a shell reads them, but it is %s", option->row.name,
                *text ? text : "empty");
    return false;
}

static bool vm_check_properties(const struct cli_option *option, const char *text, GError **err)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);

    for (char **word = words; *word; word++) {
        if (**word == '=' || !strchr(*word, '=')) {
            g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "%s must be NAME=VALUE,..., but it is %s", option->row.name,
                        *text ? text : "empty");
            return false;
        }
    }
    return true;
}

static const struct cli_option vm_options[] = {
    {.row = {.name = "two",
             .kind = HV_SETTING_FLAG,
             .help = "Runs two guests on one wire: with a terminal, side by side in tmux; with "
                     "commands, as the guests a and b."}},
    {.row = {.name = "run",
             .kind = HV_SETTING_TEXT,
             .metavar = "[GUEST:]COMMAND",
             .help = "A shell command for guest a or, with --two, guest b; no GUEST means a. The "
                     "option may be given several times."},
     .repeats = true},
    {.row = {.name = "timeout",
             .kind = HV_SETTING_SECONDS,
             .least = 1,
             .most = VM_TIMEOUT,
             .metavar = "SECONDS",
             .usual = "600",
             .help = "The time limit for all commands together."}},
    {.row = {.name = "join",
             .kind = HV_SETTING_WIRE,
             .metavar = "NAME",
             .usual = "a wire of its own",
             .help = "Puts the guest on the wire NAME, as hcasim run --wire NAME does with a "
                     "program. A guest prints the name of its wire."}},
    {.row = {.name = "index",
             .kind = HV_SETTING_NUMBER,
             .least = 1,
             .most = VM_NUMBERS,
             .metavar = "N",
             .usual = "1, and 2 with --join",
             .help = "The guest's number: its address is 10.0.0.N."}},
    {.row = {.name = "share",
             .kind = HV_SETTING_TEXT,
             .metavar = "DIR[:PATH]",
             .help = "Makes the host's folder DIR available at PATH in the guest, for reading and "
                     "writing. PATH is /mnt/ and DIR's name if it is not given. The option may be "
                     "given several times."},
     .check = vm_check_share,
     .repeats = true},
    {.row = {.name = "packages",
             .kind = HV_SETTING_TEXT,
             .metavar = "NAME,...",
             .help = "Further Debian packages in the guest."}},
    {.row = {.name = "release",
             .kind = HV_SETTING_TEXT,
             .metavar = "NAME",
             .usual = "trixie",
             .help = "The Debian release in the guest, such as bookworm."}},
    {.row = {.name = "kernel_release",
             .kind = HV_SETTING_TEXT,
             .metavar = "NAME",
             .usual = "the guest's release",
             .help = "The Debian release of the kernel alone."}},
    {.row = {.name = "kernel",
             .kind = HV_SETTING_FILE,
             .metavar = "FILE",
             .usual = "Debian's kernel",
             .help = "Another kernel: a linux-image-*.deb, a bzImage or a vmlinux."}},
    {.row = {.name = "modules",
             .kind = HV_SETTING_FOLDER,
             .metavar = "DIR",
             .help = "With a bzImage or a vmlinux: the folder into which its modules were "
                     "installed (INSTALL_MOD_PATH)."}},
    {.row = {.name = "append",
             .kind = HV_SETTING_TEXT,
             .metavar = "WORDS",
             .help = "Words to add to the kernel's command line."}},
    {.row = {.name = "device_args",
             .kind = HV_SETTING_TEXT,
             .metavar = "NAME=VALUE,...",
             .help = "Properties of the device, see hcasim-device(7). Its id is hca1."},
     .check = vm_check_properties},
    {.row = {.name = "qemu_args",
             .kind = HV_SETTING_TEXT,
             .metavar = "WORDS",
             .help = "Further arguments of QEMU."},
     .check = vm_check_words},
    {.row = {.name = "memory",
             .kind = HV_SETTING_NUMBER,
             .least = 256,
             .most = VM_MEMORY,
             .metavar = "MIB",
             .usual = "1024",
             .help = "The guest's memory, in MiB."}},
    {.row = {.name = "cpus",
             .kind = HV_SETTING_NUMBER,
             .least = 1,
             .most = VM_CPUS,
             .metavar = "N",
             .usual = "1",
             .help = "The number of the guest's CPUs."}},
    {.row = {.name = "bare",
             .kind = HV_SETTING_FLAG,
             .help = "Loads no driver and sets no address."}},
};

void cli_vm_add_options(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(vm_options); i++) {
        cli_option_add(options, &vm_options[i]);
    }
}

/* -- checks ------------------------------------------------------------------------------------ */

/* Options of which only one of a pair can be given. */
static const char *const vm_excluding[][2] = {
    {"two", "join"}, {"two", "index"}, {"kernel", "kernel_release"}};

/* 0, or the exit status. */
static int vm_check_options(const struct cli_line *line)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(vm_excluding); i++) {
        const char *const *pair = vm_excluding[i];
        g_autofree char *second = g_strdelimit(g_strdup(pair[1]), "_", '-');

        if (cli_line_get(line, pair[0]) && cli_line_get(line, pair[1])) {
            return cli_refuse("--%s and --%s exclude each other", pair[0], second);
        }
    }
    if (cli_line_get(line, "modules") && !cli_line_get(line, "kernel")) {
        return cli_refuse("--modules belongs to a kernel: say --kernel FILE, too");
    }
    return 0;
}

/* Appends "GUEST:COMMAND". 0, or the exit status. */
static int vm_add_command(GPtrArray *commands, const char *text, bool two)
{
    bool names = g_ascii_islower(text[0]) && text[1] == ':';

    if (names && text[0] != 'a' && (text[0] != 'b' || !two)) {
        return cli_refuse("--run %s: there is no guest %c%s", text, text[0],
                          two ? ", but a and b" : "; with --two there are a and b");
    }
    g_ptr_array_add(commands, g_strconcat(names ? "" : "a:", text, NULL));
    return 0;
}

/* The commands of --run, or the words behind the options. 0, or the exit status. */
static int vm_find_commands(const struct cli_line *line, GPtrArray *commands)
{
    const GPtrArray *said = cli_line_all(line, "run");
    bool two = cli_line_get(line, "two");

    if (said && line->rest[0]) {
        return cli_refuse("'%s' follows --run, which takes one command: say --run again for each "
                          "further command",
                          line->rest[0]);
    }
    for (unsigned i = 0; said && i < said->len; i++) {
        int status = vm_add_command(commands, g_ptr_array_index(said, i), two);

        if (status) {
            return status;
        }
    }
    if (line->rest[0]) {
        g_autofree char *words = g_strjoinv(" ", line->rest);

        g_ptr_array_add(commands, g_strconcat("a:", words, NULL));
    }
    if (!commands->len && !isatty(STDIN_FILENO)) {
        return cli_refuse("there is no terminal for a shell: hcasim vm -- COMMAND runs a command "
                          "in the guest");
    }
    return 0;
}

/* Whether the plugin and QEMU are there. vm.py and its scripts ask for other programs when they
 * need them. */
static bool vm_find_parts(void)
{
    const struct cli_places *places = cli_places();
    const char *plugin = g_getenv("HCASIM_PLUGIN"), *qemu = g_getenv("QEMU");
    g_autofree char *found = NULL;

    plugin = plugin && *plugin ? plugin : places->plugin;
    if (access(plugin, R_OK)) {
        cli_say(places->in_tree
                    ? "%s is not built: run scripts/setup, then ninja -C build qemu-dev/hcasim.so"
                    : "%s, the plugin for QEMU, is missing: install the Debian package hcasim-qemu "
                      "or, in the source tree, run scripts/setup, ninja -C build and meson install "
                      "-C build",
                plugin);
        return false;
    }
    qemu = qemu && *qemu ? qemu : "qemu-system-x86_64";
    found = g_find_program_in_path(qemu);
    if (!found) {
        cli_say("%s is missing: install QEMU (on Debian, the package qemu-system-x86)", qemu);
        return false;
    }
    g_setenv("HCASIM_PLUGIN", plugin, TRUE);
    return true;
}

/* -- the Python part --------------------------------------------------------------------------- */

static void vm_add_word(GPtrArray *words, const struct cli_option *option, const char *value)
{
    g_autofree char *name = cli_option_name(option);

    g_ptr_array_add(words, option->row.kind == HV_SETTING_FLAG
                               ? g_strdup_printf("--%s", name)
                               : g_strdup_printf("--%s=%s", name, value));
}

/* The options for another guest of the same kind: all options except its number, its wire and its
 * commands. */
static GPtrArray *vm_words(const struct cli_line *line)
{
    static const char *const own[] = {"two", "join", "index", "run", "build", NULL};
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    for (unsigned i = 0; i < line->options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(line->options, i);
        const char *name = option->row.name, *value = cli_line_get(line, name);
        const GPtrArray *all = cli_line_all(line, name);

        for (unsigned j = 0; value && j < (all ? all->len : 1); j++) {
            if (!g_strv_contains(own, name)) {
                vm_add_word(words, option, all ? g_ptr_array_index(all, j) : value);
            }
        }
    }
    return words;
}

/* The value that was given, or the number that help names as the default, or an empty text. */
static const char *vm_value(const struct cli_line *line, const struct hv_setting *row)
{
    const char *value = cli_line_get(line, row->name);
    bool is_number = row->kind == HV_SETTING_NUMBER || row->kind == HV_SETTING_SECONDS;

    if (!value && !strcmp(row->name, "index")) {
        return cli_line_get(line, "join") ? "2" : "1";
    }
    return value ? value : is_number ? row->usual : "";
}

static char *vm_json(const struct cli_line *line, const GPtrArray *commands)
{
    GString *json = cli_json_new();
    g_autoptr(GPtrArray) words = vm_words(line);

    for (unsigned i = 0; i < G_N_ELEMENTS(vm_options); i++) {
        const struct hv_setting *row = &vm_options[i].row;

        if (!vm_options[i].repeats) {
            cli_json_text(json, row->name, vm_value(line, row));
        }
    }
    cli_json_text(json, "hcasim", cli_places()->program);
    cli_json_texts(json, "share", cli_line_all(line, "share"));
    cli_json_texts(json, "run", commands);
    cli_json_texts(json, "words", words);
    return cli_json_end(json);
}

int cli_vm(const struct cli_line *line)
{
    g_autoptr(GPtrArray) commands = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *script = g_build_filename(cli_places()->vm, "vm.py", NULL), *json = NULL;
    int status = vm_check_options(line);

    status = status ? status : vm_find_commands(line, commands);
    if (status) {
        return status;
    }
    if (!vm_find_parts()) {
        return CLI_FAILED;
    }
    json = vm_json(line, commands);
    return cli_exec((char *[]){(char *)"python3", (char *)"-B", script, json, NULL});
}
