/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a switch (wire/switch) until an interrupt, and then prints what it has counted. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "cli/command.h"
#include "wire/control/server.h"
#include "wire/switch/commands.h"
#include "wire/switch/config.h"
#include "wire/switch/loop.h"

#define SWITCH_BUFFER_MIN (1u << 20)
#define SWITCH_BUFFER_MAX (1ull << 34)

/* -- options ----------------------------------------------------------------------------------- */

/* "/PATH,KEY=VALUE,..." and the same for a URI. */
static bool switch_check_port(const struct cli_option *option, const char *text, GError **err)
{
    g_autofree char *what = NULL;
    g_auto(GStrv) settings = NULL;

    if (!switch_loop_split(text, &what, &settings, err)) {
        return false;
    }
    if (*what) {
        return true;
    }
    g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s must be %s, but it begins with a setting, or is empty", option->row.name,
                option->row.metavar);
    return false;
}

static bool switch_check_setting(const struct cli_option *option, const char *text, GError **err)
{
    struct switch_port_config config;

    switch_config_init(&config);
    return switch_config_set(&config, option->row.name, text, err);
}

static bool switch_check_row(const struct cli_option *option, const char *text, GError **err)
{
    return hv_setting_check(&option->row, text, err);
}

static const struct cli_option switch_options[] = {
    {.row = {.name = "listen",
             .kind = HV_SETTING_TEXT,
             .metavar = "AT[,KEY=VALUE]...",
             .help = "Each end that connects to AT, which is /PATH or HOST:PORT, becomes a port: "
                     "hcasim run --wire connect:AT, or QEMU's -netdev stream. May be given several "
                     "times."},
     .repeats = true,
     .check = switch_check_port},
    {.row = {.name = "port",
             .kind = HV_SETTING_TEXT,
             .metavar = "URI[,KEY=VALUE]...",
             .help = "Adds a port: shm:NAME joins that wire; udp:, vxlan:, tap:, if:, connect: and "
                     "the others lead elsewhere, for example to another switch. May be given "
                     "several times."},
     .repeats = true,
     .check = switch_check_port},
    {.row = {.name = "rate",
             .kind = HV_SETTING_TEXT,
             .metavar = "BITS",
             .usual = "none",
             .help = "Bits per second that a port sends, with K, M or G."},
     .check = switch_check_setting},
    {.row = {.name = "latency",
             .kind = HV_SETTING_TEXT,
             .metavar = "TIME",
             .usual = "0",
             .help = "How long a frame takes from the port to its peer, such as 10us."},
     .check = switch_check_setting},
    {.row = {.name = "queue",
             .kind = HV_SETTING_TEXT,
             .metavar = "BYTES",
             .usual = "1M",
             .help =
                 "Bytes that may wait at a port for each priority. A frame that does not fit is "
                 "dropped."},
     .check = switch_check_setting},
    {.row = {.name = "ecn",
             .kind = HV_SETTING_TEXT,
             .metavar = "MIN:MAX:PERCENT",
             .usual = "off",
             .help = "Marks packets that support ECN: none while fewer than MIN bytes wait, all of "
                     "them from MAX bytes on, and between them up to PERCENT."},
     .check = switch_check_setting},
    {.row = {.name = "pfc",
             .kind = HV_SETTING_TEXT,
             .metavar = "XOFF:XON[:PRIORITIES]",
             .usual = "off",
             .help = "Pauses a sender, by priority, while more than XOFF of its bytes wait, until "
                     "no more than XON wait; nothing of these priorities is dropped for lack of "
                     "room. PRIORITIES such as 3 or 0,3-4; without them all."},
     .check = switch_check_setting},
    {.row = {.name = "pause",
             .kind = HV_SETTING_TEXT,
             .metavar = "XOFF:XON",
             .usual = "off",
             .help = "The same for all priorities together, with the pause frames of IEEE 802.3x."},
     .check = switch_check_setting},
    {.row = {.name = "vlan",
             .kind = HV_SETTING_TEXT,
             .metavar = "VLAN",
             .usual = "all",
             .help = "N: untagged frames are of VLAN N. trunk:LIST[:N]: tagged frames of the VLANs "
                     "of LIST pass, and untagged frames are of VLAN N. all: untagged frames are a "
                     "network of their own, and all tagged frames pass."},
     .check = switch_check_setting},
    {.row = {.name = "ports",
             .kind = HV_SETTING_NUMBER,
             .least = 2,
             .most = WIRE_SWITCH_PORTS_MAX,
             .metavar = "N",
             .usual = "512",
             .help = "The most ports. Further ends that connect are closed."}},
    {.row = {.name = "buffer",
             .kind = HV_SETTING_SIZE,
             .least = SWITCH_BUFFER_MIN,
             .most = SWITCH_BUFFER_MAX,
             .metavar = "BYTES",
             .usual = "64M",
             .help = "Memory for the frames that wait at all ports together."}},
    {.row = {.name = "querier",
             .kind = HV_SETTING_FLAG,
             .help = "Asks for the members of multicast groups (IGMP, MLD), and sends their frames "
                     "to members only. Without a querier, multicast goes to all ports."}},
    {.row = {.name = "seed",
             .kind = HV_SETTING_NUMBER,
             .most = UINT64_MAX,
             .metavar = "N",
             .usual = "1",
             .help = "Decides by chance which packets are marked."}},
    {.row = {.name = "capture",
             .kind = HV_SETTING_NEW_FILE,
             .metavar = "FILE",
             .help =
                 "Writes the frames of all ports to FILE (pcapng). Each port is an interface of "
                 "it: inbound is what comes to the switch."},
     .check = switch_check_row},
    {.row = {.name = "capture_size",
             .kind = HV_SETTING_SIZE,
             .least = CAPTURE_SIZE_MIN,
             .most = UINT64_MAX,
             .metavar = "SIZE",
             .usual = "no limit",
             .help = "The capture is a ring of files of at most this size."}},
    {.row = {.name = "capture_files",
             .kind = HV_SETTING_NUMBER,
             .least = 1,
             .most = CAPTURE_RING_FILES_MAX,
             .metavar = "N",
             .usual = "10",
             .help = "How many files a ring of captures has. Needs --capture-size."}},
    {.row = {.name = "control",
             .kind = HV_SETTING_TEXT,
             .metavar = "PATH",
             .help = "Takes commands at this socket: hcasim ctl PATH lists them."}},
};

void cli_switch_add_options(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(switch_options); i++) {
        cli_option_add(options, &switch_options[i]);
    }
}

/* -- statistics -------------------------------------------------------------------------------- */

static uint64_t switch_dropped(const struct switch_stats *s)
{
    return s->full + s->no_buffer + s->parted + s->down + s->stuck + s->too_long;
}

static void switch_print_row(const char *port, const struct switch_stats *s, const char *about)
{
    printf("%5s  %12" G_GUINT64_FORMAT "  %12" G_GUINT64_FORMAT "  %10" G_GUINT64_FORMAT
           "  %10" G_GUINT64_FORMAT "  %s\n",
           port, s->rx_frames, s->sent, switch_dropped(s), s->marked, about);
}

/* Each reason for which frames did not go on, and how many. */
static void switch_print_reasons(const struct switch_stats *total)
{
    const struct switch_stats_row *row;

    for (unsigned i = 0; (row = switch_stats_row(i)); i++) {
        uint64_t value = switch_stats_value(total, i);

        if (row->group != SWITCH_STATS_MORE && value && strcmp(row->name, "sent") &&
            strcmp(row->name, "forwarded")) {
            printf("%12" G_GUINT64_FORMAT " %s\n", value, row->meaning);
        }
    }
}

static void switch_print_stats(const struct wire_switch *sw)
{
    struct switch_stats total = wire_switch_total(sw);
    struct wire_switch_port_view view;

    printf("%5s  %12s  %12s  %10s  %10s  %s\n", "PORT", "FRAMES IN", "FRAMES OUT", "DROPPED",
           "MARKED", "PEER");
    for (unsigned i = 0; (i = wire_switch_next(sw, i));) {
        g_autofree char *number = g_strdup_printf("%u", i);

        wire_switch_view(sw, i, &view);
        switch_print_row(number, &view.stats, view.about);
    }
    switch_print_row("all", &total, "also those that have gone");
    switch_print_reasons(&total);
}

/* -- running ----------------------------------------------------------------------------------- */

static void switch_say(void *opaque, const char *line)
{
    cli_say("switch: %s", line);
}

static void switch_on_signal(void *opaque)
{
    switch_loop_end(opaque);
}

static void switch_on_control(void *opaque)
{
    control_run(opaque);
}

/* Each port needs three descriptors, and one for a capture. */
static void switch_allow_descriptors(void)
{
    struct rlimit limit;

    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A descriptor that is readable when a signal has come that ends the switch. -1 with *err. */
static int switch_signals(GError **err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        g_set_error(err, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "no descriptor for signals");
    }
    return fd;
}

static struct wire_switch_config switch_config_of(const struct cli_line *line)
{
    struct wire_switch_config config = {.querier = cli_line_get(line, "querier") != NULL};
    struct hv_value value;

    for (unsigned i = 0; i < G_N_ELEMENTS(switch_options); i++) {
        const struct hv_setting *row = &switch_options[i].row;
        const char *text = cli_line_get(line, row->name);

        if (!text || !hv_setting_parse(row, text, &value, NULL)) {
            continue;
        }
        if (!strcmp(row->name, "ports")) {
            config.ports = (unsigned)value.number;
        } else if (!strcmp(row->name, "buffer")) {
            config.buffer = value.number;
        } else if (!strcmp(row->name, "seed")) {
            config.seed = value.number;
        }
    }
    config.seed = cli_line_get(line, "seed") ? config.seed : 1;
    return config;
}

/* Sets what holds for all ports. The values have been checked. */
static bool switch_set_defaults(struct switch_loop *loop, const struct cli_line *line, GError **err)
{
    const char *const *keys = wire_switch_keys();

    for (unsigned i = 0; keys[i]; i++) {
        const char *value = cli_line_get(line, keys[i]);

        if (value && !wire_switch_set(switch_loop_switch(loop), 0, keys[i], value, err)) {
            return false;
        }
    }
    return true;
}

/* The number that an option gives, or the usual one. The value has been checked. */
static uint64_t switch_number(const struct cli_line *line, const char *name, uint64_t usual)
{
    const char *text = cli_line_get(line, name);
    struct hv_value value = {.number = usual};

    for (unsigned i = 0; text && i < G_N_ELEMENTS(switch_options); i++) {
        if (!strcmp(switch_options[i].row.name, name)) {
            hv_setting_parse(&switch_options[i].row, text, &value, NULL);
        }
    }
    return value.number;
}

static void switch_set_capture(struct switch_loop *loop, const struct cli_line *line)
{
    struct capture_ring ring = {
        .size = switch_number(line, "capture_size", 0),
        .files = (unsigned)switch_number(line, "capture_files", CAPTURE_RING_FILES),
    };

    if (cli_line_get(line, "capture")) {
        switch_loop_capture(loop, cli_line_get(line, "capture"), &ring);
    }
}

/* Opens a socket or a port. */
static bool switch_open_one(struct switch_loop *loop, const char *text, bool listens, GError **err)
{
    g_autofree char *what = NULL;
    g_auto(GStrv) settings = NULL;
    const char *const *pairs;
    bool good;

    if (!switch_loop_split(text, &what, &settings, err)) {
        return false;
    }
    pairs = (const char *const *)settings;
    good = listens ? switch_loop_listen(loop, what, pairs, err)
                   : switch_loop_add(loop, what, pairs, err) != 0;
    if (!good) {
        g_prefix_error(err, "%s: ", what);
    }
    return good;
}

static bool switch_open_all(struct switch_loop *loop, const struct cli_line *line,
                            const char *option, GError **err)
{
    const GPtrArray *all = cli_line_all(line, option);

    for (unsigned i = 0; all && i < all->len; i++) {
        if (!switch_open_one(loop, all->pdata[i], !strcmp(option, "listen"), err)) {
            return false;
        }
    }
    return true;
}

/* The line that a script waits for. */
static void switch_print_ready(const struct switch_loop *loop, const struct cli_line *line)
{
    const GPtrArray *all = cli_line_all(line, "listen");

    fputs("switch:", stdout);
    for (unsigned i = 0; all && i < all->len; i++) {
        g_autofree char *what = NULL;
        g_auto(GStrv) settings = NULL;

        switch_loop_split(all->pdata[i], &what, &settings, NULL);
        printf("%s %s", i ? "," : " listening at", what);
    }
    all = cli_line_all(line, "port");
    printf("%s %u fixed port%s\n", cli_line_all(line, "listen") ? ";" : "", all ? all->len : 0,
           all && all->len == 1 ? "" : "s");
    fflush(stdout);
}

static struct control *switch_open_control(struct switch_loop *loop, const char *path, GError **err)
{
    struct control *control = control_open(path, err);

    if (!control) {
        return NULL;
    }
    control_add(control, switch_commands, loop);
    if (!switch_loop_watch(loop, control_fd(control), switch_on_control, control, err)) {
        control_close(control);
        return NULL;
    }
    return control;
}

/* Runs until a signal. The exit status. */
static int switch_run(struct switch_loop *loop, const struct cli_line *line, GError **err)
{
    const char *path = cli_line_get(line, "control");
    struct control *control = NULL;
    int signals = switch_signals(err);
    int status = 0;

    if (signals < 0 || !switch_loop_watch(loop, signals, switch_on_signal, loop, err) ||
        !switch_set_defaults(loop, line, err) || !switch_open_all(loop, line, "port", err) ||
        !switch_open_all(loop, line, "listen", err) ||
        (path && !(control = switch_open_control(loop, path, err)))) {
        status = CLI_FAILED;
    } else {
        switch_print_ready(loop, line);
        switch_loop_run(loop);
        switch_print_stats(switch_loop_switch(loop));
        if (!wire_switch_adds_up(switch_loop_switch(loop))) {
            cli_say("switch: the statistics do not add up");
            status = CLI_FAILED;
        }
    }
    if (control) {
        control_close(control);
    }
    if (signals >= 0) {
        close(signals);
    }
    return status;
}

int cli_switch(const struct cli_line *line)
{
    struct wire_switch_config config = switch_config_of(line);
    g_autoptr(GError) err = NULL;
    struct switch_loop *loop;
    int status;

    if (*line->rest) {
        return cli_refuse("switch takes options only, but there is '%s'", *line->rest);
    }
    if (!cli_line_all(line, "listen") && !cli_line_all(line, "port")) {
        return cli_refuse("a switch needs ports: say --listen /PATH, or --port URI");
    }
    switch_allow_descriptors();
    loop = switch_loop_new(&config, switch_say, NULL, &err);
    if (loop) {
        switch_set_capture(loop, line);
    }
    status = loop ? switch_run(loop, line, &err) : CLI_FAILED;
    if (err) {
        cli_say("switch: %s", err->message);
    }
    if (loop) {
        switch_loop_free(loop);
    }
    return cli_flush(status);
}
