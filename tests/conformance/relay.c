/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay WIRE WIRE: joins two wires until it is killed. Each wire is one that a player's key file
 * may name (docs/howto/conformance.md). So a process under hcasim run, whose wires are private, can
 * be reached through an interface of the kernel. Frames without room on the other wire are lost.
 */
#include <glib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "wire/encap/roce.h"
#include "wire/open.h"

#define SLOTS 64

struct relay_end {
    struct wire_port *port;
    struct relay_end *other;
};

static void relay_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct wire_port *to = ((struct relay_end *)opaque)->other->port;
    uint8_t *copy = wire_tx_reserve(to, len);

    if (!copy) {
        return;
    }
    memcpy(copy, frame, len);
    if (flags & WIRE_NO_ICRC) {
        roce_fill_icrc(copy, len);
    }
    wire_tx_commit(to, len);
}

static void relay_nothing(void *opaque)
{
}

static const struct wire_client relay_client = {
    .rx = relay_rx,
    .tx_ready = relay_nothing,
    .link_change = relay_nothing,
    .rx_ready = relay_nothing,
};

static bool relay_open(struct relay_end *end, const char *uri)
{
    g_autoptr(GError) err = NULL;

    end->port = wire_open(uri, &err);
    if (!end->port) {
        fprintf(stderr, "%s: %s\n", uri, err->message);
        return false;
    }
    wire_set_client(end->port, &relay_client, end);
    return true;
}

static void relay_run(struct relay_end ends[2])
{
    struct pollfd fds[2];

    for (unsigned i = 0; i < 2; i++) {
        fds[i] = (struct pollfd){.fd = wire_fd(ends[i].port), .events = POLLIN};
    }
    for (;;) {
        bool more = false;

        for (unsigned i = 0; i < 2; i++) {
            more = wire_poll(ends[i].port, SLOTS) == SLOTS || more;
        }
        if (!more && poll(fds, 2, -1) > 0) {
            for (unsigned i = 0; i < 2; i++) {
                if (fds[i].revents) {
                    wire_fd_event(ends[i].port);
                }
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct relay_end ends[2] = {{.other = &ends[1]}, {.other = &ends[0]}};

    if (argc != 3) {
        fprintf(stderr, "usage: relay WIRE WIRE\n");
        return 2;
    }
    if (!relay_open(&ends[0], argv[1]) || !relay_open(&ends[1], argv[2])) {
        return 1;
    }
    printf("relays\n");
    fflush(stdout);
    relay_run(ends);
}
