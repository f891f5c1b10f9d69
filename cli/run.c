/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program with the verbs library of hcasim in place of rdma-core's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/cuda.h"
#include "cli/leftovers.h"
#include "cli/loader.h"
#include "cli/places.h"
#include "cli/require.h"
#include "guest-lib/verbs/kernel/variables.h"

/* -- settings ---------------------------------------------------------------------------------- */

static const char *run_environment(const char *setting)
{
    g_autofree char *variable = hv_variable_of(setting);
    const char *value = g_getenv(variable);

    return value && *value ? value : NULL;
}

const char *cli_run_said(const struct cli_line *line, const char *setting)
{
    const char *value = cli_line_get(line, setting);

    return value ? value : run_environment(setting);
}

char *cli_run_setting(const struct cli_line *line, const char *name)
{
    const char *path = cli_run_said(line, "config");
    g_autoptr(GKeyFile) file = NULL;

    if (cli_run_said(line, name)) {
        return g_strdup(cli_run_said(line, name));
    }
    file = path ? hv_settings_load(path, NULL) : NULL;
    return file ? g_key_file_get_string(file, HV_SETTINGS_GROUP, name, NULL) : NULL;
}

int cli_run_check(const struct cli_line *line)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GKeyFile) file = NULL;
    const struct hv_setting *setting;
    unsigned devices;
    int status = cli_variables_check();

    if (status) {
        return status;
    }
    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        const char *value = run_environment(setting->name);

        if (value && !cli_line_get(line, setting->name) &&
            !hv_setting_check(setting, value, &err)) {
            g_autofree char *variable = hv_variable_of(setting->name);

            return cli_refuse("%s: %s", variable, err->message);
        }
    }
    if (cli_run_said(line, "config") &&
        !(file = hv_settings_load(cli_run_said(line, "config"), &err))) {
        return cli_refuse("%s", err->message);
    }
    return cli_run_count_devices(line, &devices);
}

int cli_run_count_devices(const struct cli_line *line, unsigned *devices)
{
    g_autofree char *wire = cli_run_setting(line, "wire");
    g_autofree char *number = cli_run_setting(line, "devices");
    g_autofree char *ip = cli_run_setting(line, "ip"), *mac = cli_run_setting(line, "mac");
    g_autoptr(GError) err = NULL;

    *devices = hv_settings_count_devices(wire, number, &err);
    return *devices && hv_settings_check_addresses(ip, mac, *devices, &err)
               ? 0
               : cli_refuse("%s", err->message);
}

void cli_run_export(const struct cli_line *line)
{
    const struct hv_setting *setting;

    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        const char *value = cli_line_get(line, setting->name);

        if (value) {
            g_autofree char *variable = hv_variable_of(setting->name);

            g_setenv(variable, value, TRUE);
        }
    }
}

/* The processes that PROGRAM starts append to the capture of this run (wire/capture.h). A run
 * inside of another one belongs to it. */
static void run_name(void)
{
    g_autofree char *name =
        g_strdup_printf("%d.%" G_GINT64_FORMAT, (int)getpid(), g_get_real_time());

    g_setenv("HCASIM_RUN", name, FALSE);
}

/* -- the loader -------------------------------------------------------------------------------- */

/* Adds to a list in the environment; what is there already stays in front, or behind. */
static void run_prepend(const char *variable, const char *value)
{
    const char *had = g_getenv(variable);
    g_autofree char *list = had && *had ? g_strconcat(value, ":", had, NULL) : g_strdup(value);

    g_setenv(variable, list, TRUE);
}

static void run_append(const char *variable, const char *value)
{
    const char *had = g_getenv(variable);
    g_autofree char *list = had && *had ? g_strconcat(had, ":", value, NULL) : g_strdup(value);

    g_setenv(variable, list, TRUE);
}

/* libhcasim.so shows the HCA beside the libraries: /sys, /dev. The two others stand for the
 * libraries until a program needs them, in whatever folder the program looks for them. */
static const char *const preloaded[] = {"libhcasim.so", "libhcasim-ibverbs.so",
                                        "libhcasim-mlx5.so"};

/* cuda: the folder of libcuda.so.1, or NULL. */
static void run_preload(const char *libraries, const char *cuda)
{
    if (cuda) {
        run_prepend("LD_LIBRARY_PATH", cuda);
    }
    run_prepend("LD_LIBRARY_PATH", libraries);
    for (unsigned i = 0; i < G_N_ELEMENTS(preloaded); i++) {
        g_autofree char *path = g_build_filename(libraries, preloaded[i], NULL);

        /* A blank ends the loader's list of files. Then the loader looks for them as it looks for
         * other libraries. They come behind what is preloaded already: a sanitizer wants to be
         * first. */
        run_append("LD_PRELOAD", strpbrk(path, " \t\n") ? preloaded[i] : path);
    }
    /* A child of fork() that opens a device of its own needs memory. The allocator of glib before
     * 2.76 has locks, which another thread of the parent may hold; malloc() is usable in a child.
     */
    g_setenv("G_SLICE", "always-malloc", FALSE);
    /* ASan wants to be the first library unless it is told not to check; ours replace nothing that
     * ASan replaces. */
    run_prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}

bool cli_run_find_library(const char *path)
{
    const struct cli_places *places = cli_places();

    if (access(path, F_OK)) {
        cli_say(places->in_tree ? "%s is not built: run scripts/setup verbs, then ninja -C build"
                                : "%s is missing: install hcasim again",
                path);
    } else if (access(path, R_OK)) {
        cli_say("%s: %s", path, g_strerror(errno));
    } else if (!loader_is_whole(path)) {
        cli_say(places->in_tree
                    ? "%s is not complete: wait until the build has ended, or run ninja -C build"
                    : "%s is damaged: install hcasim again",
                path);
    } else {
        return true;
    }
    return false;
}

/* Whether the libraries are there and the loader can be told of their folder. */
static bool run_find_libraries(const struct cli_places *places)
{
    static const char *const names[] = {"libibverbs.so.1", "libmlx5.so.1"};

    for (unsigned i = 0; i < G_N_ELEMENTS(names) + G_N_ELEMENTS(preloaded); i++) {
        const char *name = i < G_N_ELEMENTS(names) ? names[i] : preloaded[i - G_N_ELEMENTS(names)];
        g_autofree char *path = g_build_filename(places->libraries, name, NULL);

        if (!cli_run_find_library(path)) {
            return false;
        }
    }
    if (strpbrk(places->libraries, ":;")) {
        cli_say("%s: the loader accepts no folder whose name has a colon or a semicolon",
                places->libraries);
        return false;
    }
    return true;
}

/* -- the program ------------------------------------------------------------------------------- */

/* The file that execvp() would run, or NULL with errno. */
static char *run_find_program(const char *name)
{
    g_auto(GStrv) folders = NULL;
    struct stat st;
    int why = ENOENT;

    if (strchr(name, '/')) {
        if (stat(name, &st)) {
            return NULL;
        }
        errno = EACCES;
        return access(name, X_OK) || !S_ISREG(st.st_mode) ? NULL : g_strdup(name);
    }
    folders = g_strsplit(g_getenv("PATH") ? g_getenv("PATH") : "/bin:/usr/bin", ":", -1);
    for (char **folder = folders; *folder && *name; folder++) {
        char *path = g_build_filename(**folder ? *folder : ".", name, NULL);

        if (!stat(path, &st) && S_ISREG(st.st_mode)) {
            if (!access(path, X_OK)) {
                return path;
            }
            why = EACCES;
        }
        g_free(path);
    }
    errno = why;
    return NULL;
}

/* The loader gives some programs no library of ours. They run all the same, because what they start
 * may be an ordinary program. */
static void run_warn(const char *path)
{
    struct stat st;

    if (!stat(path, &st) && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
                             ((st.st_mode & S_ISGID) && st.st_gid != getegid()))) {
        cli_say("%s runs with rights that its caller does not have: the loader gives it no library "
                "of ours",
                path);
    } else if (loader_is_foreign(path)) {
        cli_say("%s is linked statically, or for another loader: it gets no library of ours, and "
                "finds no HCA",
                path);
    }
}

int cli_exec(char **argv)
{
    int why;

    execvp(argv[0], argv);
    why = errno;
    cli_say("%s: %s", argv[0], g_strerror(why));
    return why == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

int cli_run(const struct cli_line *line)
{
    const struct cli_places *places = cli_places();
    g_autofree char *program = NULL, *cuda = NULL;
    int status;

    if (!line->rest[0]) {
        return cli_refuse("there is no PROGRAM to run");
    }
    status = cli_run_check(line);
    if (status) {
        return status;
    }
    if (!run_find_libraries(places) || !cuda_choose(line, &cuda)) {
        return CLI_FAILED;
    }
    program = run_find_program(line->rest[0]);
    if (!program) {
        int why = errno;

        cli_say("%s: %s", line->rest[0], g_strerror(why));
        return why == ENOENT || why == ENOTDIR ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
    }
    run_warn(program);
    leftovers_remove(NULL);
    cli_run_export(line);
    run_name();
    run_preload(places->libraries, cuda);
    return cli_line_get(line, "require") ? require_run(line->rest) : cli_exec(line->rest);
}
