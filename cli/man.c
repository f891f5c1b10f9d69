/* SPDX-License-Identifier: BSD-2-Clause */
/* Man pages: the source that groff and mandoc read. Section 7 has what is no command. */
#include <string.h>
#include "cli/text.h"
#include "qemu-dev/properties.h"

/* Appends text in which nothing is a command of roff: a dash stays a dash, a full stop or a quote
 * at the beginning of a line is text. */
static void man_text(GString *to, const char *text)
{
    bool begins = true;

    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) {
            g_string_append(to, "\\&");
        }
        begins = *text == '\n';
        if (*text == '\\') {
            g_string_append(to, "\\e");
        } else if (*text == '-') {
            g_string_append(to, "\\-");
        } else if (*text == '\'') {
            g_string_append(to, "\\(aq");
        } else {
            g_string_append_c(to, *text);
        }
    }
}

static void man_line(GString *to, const char *text)
{
    man_text(to, text);
    g_string_append_c(to, '\n');
}

static void man_paragraphs(GString *to, const char *text)
{
    g_auto(GStrv) paragraphs = g_strsplit(text, "\n", -1);

    for (unsigned i = 0; paragraphs[i]; i++) {
        g_string_append(to, i ? ".PP\n" : "");
        man_line(to, paragraphs[i]);
    }
}

static void man_bold(GString *to, const char *text)
{
    g_string_append(to, "\\fB");
    man_text(to, text);
    g_string_append(to, "\\fR");
}

static void man_italic(GString *to, const char *text)
{
    g_string_append(to, "\\fI");
    man_text(to, text);
    g_string_append(to, "\\fR");
}

static void man_item(GString *to, const char *term, const char *text)
{
    g_string_append(to, ".TP\n");
    man_bold(to, term);
    g_string_append_c(to, '\n');
    man_line(to, text);
}

static void man_option(GString *to, const struct cli_option *option)
{
    g_autofree char *name = cli_option_name(option), *note = cli_option_note(option);
    g_autofree char *dashed = g_strconcat("--", name, NULL);
    g_autofree char *text = g_strconcat(option->row.help, note, NULL);

    g_string_append(to, ".TP\n");
    if (option->letter) {
        g_string_append_printf(to, "\\fB\\-%c\\fR, ", option->letter);
    }
    man_bold(to, dashed);
    if (option->row.metavar) {
        g_string_append_c(to, ' ');
        man_italic(to, option->row.metavar);
    }
    g_string_append_c(to, '\n');
    man_line(to, text);
}

/* Refers to all pages but that of `name`, which is "" for the page about hcasim itself. */
static void man_see_also(GString *to, const char *name)
{
    const struct cli_command *command;
    const struct cli_topic *topic;
    const char *comma = "";

    g_string_append(to, ".SH SEE ALSO\n");
    if (*name) {
        g_string_append(to, "\\fBhcasim\\fR(1)");
        comma = ",\n";
    }
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        if (strcmp(command->name, name) != 0) {
            g_string_append_printf(to, "%s\\fBhcasim\\-%s\\fR(1)", comma, command->name);
            comma = ",\n";
        }
    }
    for (unsigned i = 0; (topic = cli_topic_at(i)); i++) {
        if (strcmp(topic->name, name) != 0) {
            g_string_append_printf(to, "%s\\fBhcasim\\-%s\\fR(7)", comma, topic->name);
        }
    }
    g_string_append(to, ",\n\\fBhcasim\\-device\\fR(7)\n");
}

/* Begins a page of this section: its title, its name and its summary. */
static void man_begin(GString *to, const char *name, unsigned section, const char *summary)
{
    g_autofree char *upper = g_ascii_strup(name, -1);

    g_string_append_printf(to,
                           ".TH HCASIM\\-%s %u \"\" \"hcasim " HCASIM_VERSION "\" \"hcasim\"\n"
                           ".SH NAME\nhcasim\\-%s \\- ",
                           upper, section, name);
    man_line(to, summary);
}

static void man_of_all(GString *to)
{
    const struct cli_command *command;

    g_string_append(to, ".TH HCASIM 1 \"\" \"hcasim " HCASIM_VERSION "\" \"hcasim\"\n.SH NAME\n"
                        "hcasim \\- ");
    man_line(to, CLI_SUMMARY);
    g_string_append(to, ".SH SYNOPSIS\n\\fBhcasim\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] "
                        "[\\fIARGUMENT\\fR...]\n.br\n\\fBhcasim help\\fR [\\fICOMMAND\\fR]\n.br\n"
                        "\\fBhcasim \\-\\-version\\fR\n.SH DESCRIPTION\n");
    man_paragraphs(to, CLI_ABOUT);
    g_string_append(to, ".SH COMMANDS\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        man_item(to, command->name, command->summary);
    }
    man_see_also(to, "");
}

static void man_of_command(GString *to, const struct cli_command *command)
{
    g_autoptr(GPtrArray) options = cli_command_options(command, false);
    g_autofree char *more = command->more ? command->more() : NULL;

    man_begin(to, command->name, 1, command->summary);
    g_string_append_printf(to, ".SH SYNOPSIS\n\\fBhcasim %s\\fR [\\fIOPTION\\fR...] ",
                           command->name);
    man_line(to, command->arguments);
    g_string_append(to, ".SH DESCRIPTION\n");
    man_paragraphs(to, command->about);
    g_string_append(to, ".SH OPTIONS\n");
    for (unsigned i = 0; i < options->len; i++) {
        man_option(to, g_ptr_array_index(options, i));
    }
    man_item(to, "-h, --help", "Prints the help.");
    if (more) {
        g_string_append(to, ".SH NOTES\n.nf\n");
        man_text(to, more);
        g_string_append(to, ".fi\n");
    }
    g_string_append(to, ".SH EXIT STATUS\n");
    for (const struct cli_status *s = command->statuses; s->status; s++) {
        man_item(to, s->status, s->means);
    }
    g_string_append(to, ".SH EXAMPLES\n");
    for (const char *const *pair = command->examples; *pair; pair += 2) {
        man_item(to, pair[0], pair[1]);
    }
    man_see_also(to, command->name);
}

static void man_of_topic(GString *to, const struct cli_topic *topic)
{
    g_autoptr(GPtrArray) sections = topic->sections();

    man_begin(to, topic->name, 7, topic->summary);
    for (unsigned i = 0; i < sections->len; i++) {
        const struct cli_section *section = g_ptr_array_index(sections, i);

        g_string_append_printf(to, ".SH %s\n", section->title);
        if (section->text) {
            man_paragraphs(to, section->text);
        }
        for (unsigned k = 0; k < section->items->len; k += 2) {
            man_item(to, section->items->pdata[k], section->items->pdata[k + 1]);
        }
    }
    man_see_also(to, topic->name);
}

static GString *man_new(void)
{
    return g_string_new(".\\\" SPDX-License-Identifier: BSD-2-Clause\n"
                        ".\\\" Made by hcasim itself from the tables of its options.\n");
}

/* -- section 7 --------------------------------------------------------------------------------- */

#define MAN_DEVICE_EXAMPLE                                                                         \
    "qemu-system-x86_64 -machine q35 -nic none ... -plugin " HCASIM_PLUGIN                         \
    " -device hcasim,id=hca1,wire=shm:lab,mac=52:54:00:00:00:01"

static void man_property(GString *to, const struct device_property *property)
{
    g_autofree char *range = device_property_range(property);
    g_autofree char *text = g_strdup_printf("%s (%s)", property->help, range);

    g_string_append(to, ".TP\n");
    man_bold(to, property->name);
    g_string_append_c(to, '=');
    man_italic(to, property->value);
    g_string_append_c(to, '\n');
    man_line(to, text);
}

static void man_of_device(GString *to)
{
    const struct device_property *property;

    g_string_append(to, ".TH HCASIM\\-DEVICE 7 \"\" \"hcasim " HCASIM_VERSION "\" \"hcasim\"\n"
                        ".SH NAME\nhcasim\\-device \\- the QEMU device hcasim, a ConnectX HCA\n"
                        ".SH SYNOPSIS\n");
    man_bold(to, "qemu-system-x86_64 -machine q35 ... -plugin ");
    man_italic(to, HCASIM_PLUGIN);
    g_string_append(to, " \\fB\\-device hcasim\\fR[,\\fINAME\\fR=\\fIVALUE\\fR...]\n"
                        ".SH DESCRIPTION\n");
    man_paragraphs(
        to, "The device is a ConnectX (mlx5) HCA on PCI Express. A stock x86-64 guest drives it "
            "with its own mlx5 driver. QEMU loads the device from the plugin.\n"
            "The plugin works only with the QEMU that it was built for. Another QEMU ends with "
            "a line that names both versions.\n"
            "QEMU answers -device hcasim,help before it loads plugins. Therefore the plugin "
            "prints the properties itself: -plugin " HCASIM_PLUGIN ",help=on.\n"
            "hcasim vm boots a guest with the device. Its option --device-args sets the "
            "properties.");
    g_string_append(to, ".SH PROPERTIES\n");
    man_line(to, "The device has these properties beside those of every PCI device, such as id, "
                 "bus and addr.");
    for (unsigned i = 0; (property = device_property_at(i)); i++) {
        if (property->kind != DEVICE_PROPERTY_AT_RUN_TIME) {
            man_property(to, property);
        }
    }
    g_string_append(to, ".SH PROPERTIES AT RUN TIME\n");
    man_line(to, "These properties belong to a running device with an id. In QEMU's monitor, "
                 "qom-set sets them and qom-get reads them. -device does not take them.");
    for (unsigned i = 0; (property = device_property_at(i)); i++) {
        if (property->kind == DEVICE_PROPERTY_AT_RUN_TIME) {
            man_property(to, property);
        }
    }
    g_string_append(to, ".SH LIMITS\n");
    man_line(to, "A VM with the device can be stopped and continued, and the device can be plugged "
                 "and unplugged. Migration and snapshots are unsupported, because the state of the "
                 "device cannot be saved. QEMU refuses them.");
    g_string_append(to, ".SH EXAMPLES\n");
    man_item(to, MAN_DEVICE_EXAMPLE,
             "Connects a VM to the wire lab. A program under hcasim run --wire lab --mtu 1500 "
             "reaches it: the guest's network device has the MTU 1500.");
    man_item(to, "hcasim vm --device-args profile=cx7,capture=/tmp/vm.pcapng",
             "Opens a shell in a VM with a ConnectX-7, and writes its frames.");
    man_item(to, "qom-set /machine/peripheral/hca1 health fatal:1",
             "In QEMU's monitor: lets the firmware of the device hca1 fail.");
    g_string_append(to, ".SH SEE ALSO\n\\fBhcasim\\-vm\\fR(1),\n\\fBhcasim\\-run\\fR(1),\n"
                        "\\fBqemu\\fR(1)\n");
}

static const struct {
    const char *name;
    void (*write)(GString *to);
} man_topics[] = {{"device", man_of_device}};

char *cli_man_topic(const char *name)
{
    const struct cli_topic *topic = cli_topic_find(name);

    for (unsigned i = 0; i < G_N_ELEMENTS(man_topics); i++) {
        if (!strcmp(man_topics[i].name, name)) {
            GString *to = man_new();

            man_topics[i].write(to);
            return g_string_free(to, FALSE);
        }
    }
    if (topic) {
        GString *to = man_new();

        man_of_topic(to, topic);
        return g_string_free(to, FALSE);
    }
    return NULL;
}

char *cli_man(const struct cli_command *command)
{
    GString *to = man_new();

    if (command) {
        man_of_command(to, command);
    } else {
        man_of_all(to);
    }
    return g_string_free(to, FALSE);
}
