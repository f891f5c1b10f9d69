/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: control-server SOCKET
 *
 * A process with a control socket, for the tests of `hcasim ctl`. It prints "ready", and ends with
 * its standard input.
 */
#include <glib.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include "wire/control/server.h"

static bool is_up = true;

static bool run_status(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    *result =
        json_pack("{ss sb s[ss] s[] s{si sn} s[{ss si} {ss si si}]}", "name", "mlx5_0", "up", is_up,
                  "addresses", "10.0.0.1", "fe80::1", "faults", "link", "mtu", 1500, "peer", "qps",
                  "type", "RC", "qpn", 7, "type", "UD \x1b[31m", "qpn", 1234, "depth", 3);
    return true;
}

static bool run_set_link(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    is_up = json_is_true(json_object_get(arguments, "up"));
    return true;
}

static bool run_echo(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    *result = json_incref((json_t *)arguments);
    return true;
}

static bool run_fail(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    g_set_error_literal(err, CONTROL_ERROR, CONTROL_ERROR_NOT_FOUND, "there is no\x1b QP 7");
    return false;
}

static bool run_sleep(void *opaque, const json_t *arguments, json_t **result, GError **err)
{
    sleep(6); /* longer than hcasim ctl waits */
    return true;
}

static const struct control_arg link_args[] = {
    {.name = "up", .type = CONTROL_BOOL, .required = true, .help = "whether the link is up"},
    {.name = NULL},
};

static const struct control_arg echo_args[] = {
    {.name = "text", .type = CONTROL_TEXT},
    {.name = "int", .type = CONTROL_INT},
    {.name = "number", .type = CONTROL_NUMBER},
    {.name = "any", .type = CONTROL_ANY},
    {.name = NULL},
};

static const struct control_command table[] = {
    {"query-status", "tells the state", NULL, run_status},
    {"set-link", "sets the link up or down", link_args, run_set_link},
    {"echo", "answers with its arguments", echo_args, run_echo},
    {"fail", "fails", NULL, run_fail},
    {"sleep", "is slow", NULL, run_sleep},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    g_autoptr(GError) err = NULL;
    struct control *server = argc > 1 ? control_open(argv[1], &err) : NULL;
    struct pollfd fds[2] = {{.events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};

    if (!server) {
        fprintf(stderr, "control-server: %s\n", err ? err->message : "wants a path");
        return 1;
    }
    control_add(server, table, NULL);
    puts("ready");
    fflush(stdout);
    fds[0].fd = control_fd(server);
    while (!fds[1].revents) {
        poll(fds, 2, -1);
        control_run(server);
    }
    control_close(server);
    return 0;
}
