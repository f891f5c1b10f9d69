/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shows the numbers of running hosts again and again: on the terminal, once, or to Prometheus.
 *
 * On a terminal it uses the alternate screen and ANSI escapes. It gives the terminal back when it
 * ends, by q or by a signal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/ctl_text.h"
#include "cli/top_data.h"
#include "cli/top_listen.h"
#include "cli/top_metrics.h"
#include "cli/top_screen.h"
#include "wire/control/http.h"

#define TOP_FAILED    1
#define USUAL_ROWS    24
#define USUAL_COLUMNS 80
#define ANY_WIDTH     10000
#define BEGIN_SCREEN  "\033[?1049h\033[?25l"
#define END_SCREEN    "\033[?25h\033[?1049l"
#define FROM_THE_TOP  "\033[H"
#define CLEAR_LINE    "\033[K"
#define CLEAR_BELOW   "\033[J"
#define REVERSE       "\033[7m"
#define NORMAL        "\033[0m"

static volatile sig_atomic_t ended; /* by a signal */

static void top_on_signal(int number)
{
    ended = number;
}

/* Signals end the waits of this program, which then ends in order. */
static void top_catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = top_on_signal};

    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        sigaction(ends[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
}

static int top_say(const GError *err)
{
    g_autofree char *plain = ctl_plain(err->message);

    cli_say("%s", plain);
    return TOP_FAILED;
}

/* -- once -------------------------------------------------------------------------------------- */

static int top_once(struct top *top, unsigned seconds)
{
    g_autoptr(GError) err = NULL;
    g_auto(GStrv) lines = NULL;

    if (!top_look(top, &err)) {
        return top_say(err);
    }
    poll(NULL, 0, (int)seconds * 1000);
    if (!top_look(top, &err)) {
        return top_say(err);
    }
    if (!top_rows(top)->len) {
        cli_say("no process has a control socket there: start it with --control");
        return TOP_FAILED;
    }
    lines = top_screen_lines(top_rows(top), ANY_WIDTH);
    for (char **line = lines; *line; line++) {
        puts(g_strchomp(*line));
    }
    return cli_flush(EXIT_SUCCESS);
}

/* -- on a terminal ----------------------------------------------------------------------------- */

static void top_draw(const struct top *top)
{
    struct winsize size = {0};
    g_auto(GStrv) lines = NULL;
    unsigned rows, columns, n;

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    rows = size.ws_row ? size.ws_row : USUAL_ROWS;
    columns = size.ws_col ? size.ws_col : USUAL_COLUMNS;
    lines = top_screen_lines(top_rows(top), columns);
    n = g_strv_length(lines);
    fputs(FROM_THE_TOP, stdout);
    for (unsigned i = 0; i < n && i + 1 < rows; i++) {
        printf("%s%s" CLEAR_LINE "%s\r\n", i ? "" : REVERSE, lines[i], i ? "" : NORMAL);
    }
    printf(CLEAR_BELOW "%.*s", (int)columns, top_screen_keys());
    fflush(stdout);
}

/* Waits for keys until it is time for the next look. False: q, or the end of the input. */
static bool top_wait(const struct top *top, gint64 until)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    gint64 left;
    char key;

    while (!ended && (left = until - g_get_monotonic_time()) > 0) {
        int n = poll(&input, 1, (int)(left / 1000) + 1);

        if (n < 0 && errno == EINTR) {
            top_draw(top); /* the size of the terminal may have changed */
        } else if (n > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) {
            return false;
        } else if (n > 0 && top_screen_sort(key)) {
            top_draw(top);
        }
    }
    return !ended;
}

static void top_on_resize(int number)
{
}

static int top_on_terminal(struct top *top, unsigned seconds)
{
    struct sigaction resize = {.sa_handler = top_on_resize};
    struct termios before, raw;
    bool has_terminal = !tcgetattr(STDIN_FILENO, &before), goes_on = true;
    g_autoptr(GError) err = NULL;

    top_catch_signals();
    sigaction(SIGWINCH, &resize, NULL);
    if (has_terminal) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs(BEGIN_SCREEN, stdout);
    while (goes_on && top_look(top, &err)) {
        top_draw(top);
        goes_on = top_wait(top, g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC);
    }
    fputs(END_SCREEN, stdout);
    fflush(stdout);
    if (has_terminal) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    }
    return err ? top_say(err) : cli_flush(EXIT_SUCCESS);
}

/* -- for Prometheus ---------------------------------------------------------------------------- */

static GString *top_make_metrics(void *opaque)
{
    /* A folder that cannot be read now has no numbers. */
    return top_look(opaque, NULL) ? top_metrics(top_rows(opaque)) : g_string_new(NULL);
}

static int top_serve(struct top *top, const char *address)
{
    g_autoptr(GError) err = NULL;
    struct pollfd listener = {.events = POLLIN};

    listener.fd = top_listen(address, &err);
    if (listener.fd < 0) {
        return top_say(err);
    }
    top_catch_signals();
    while (!ended) {
        if (poll(&listener, 1, -1) == 1) {
            http_serve(listener.fd, top_make_metrics, top);
        }
    }
    close(listener.fd);
    if (*address == '/') {
        unlink(address);
    }
    return EXIT_SUCCESS;
}

/* -- the command ------------------------------------------------------------------------------- */

int cli_top(const struct cli_line *line)
{
    const char *interval = cli_line_get(line, "interval"), *usual = g_getenv("HCASIM_CONTROL");
    const char *address = cli_line_get(line, "prometheus");
    char *usual_paths[] = {(char *)usual, NULL};
    unsigned seconds = interval ? (unsigned)strtoul(interval, NULL, 10) : 1;
    bool once = cli_line_get(line, "once") || !isatty(STDOUT_FILENO);
    struct top *top;
    int status;

    if (!line->rest[0] && !(usual && *usual)) {
        return cli_refuse("top needs a folder of control sockets, or a control socket, see hcasim "
                          "help top");
    }
    if (address && cli_line_get(line, "once")) {
        return cli_refuse("--once and --prometheus exclude each other");
    }
    top = top_new(line->rest[0] ? line->rest : usual_paths);
    if (address) {
        status = top_serve(top, address);
    } else {
        status = once ? top_once(top, seconds) : top_on_terminal(top, seconds);
    }
    top_free(top);
    return status;
}
