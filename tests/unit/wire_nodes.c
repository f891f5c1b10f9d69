/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements wire_nodes.h.
 */
#include "tests/unit/wire_nodes.h"

#include <check.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *nodes_dir;
static char *uri;
static pid_t dir_owner;

/* Runs at the end of the program, not of each test's process. */
static void nodes_remove_dir(void)
{
    GDir *d = getpid() == dir_owner ? g_dir_open(nodes_dir, 0, NULL) : NULL;
    const char *name;

    if (!d) {
        return;
    }
    while ((name = g_dir_read_name(d))) {
        char *path = g_build_filename(nodes_dir, name, NULL);

        g_remove(path);
        g_free(path);
    }
    g_dir_close(d);
    g_rmdir(nodes_dir);
}

void nodes_make_dir(void)
{
    char template[] = "/dev/shm/hcasim-test-XXXXXX";

    dir_owner = getpid();
    atexit(nodes_remove_dir);
    nodes_dir = g_strdup(g_mkdtemp(template));
    uri = g_strdup_printf("shm:%s/seg", nodes_dir);
}

unsigned nodes_files_left(void)
{
    GDir *d = g_dir_open(nodes_dir, 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(d)) {
        n++;
    }
    g_dir_close(d);
    return n;
}

void mac_of(uint8_t mac[6], uint8_t id)
{
    memcpy(mac, (const uint8_t[6]){2, 0, 0, 0, 0, id}, 6);
}

/* Here and in announce() a successful check must not notify Check: a process of a test's own that
 * is killed while it writes into the file of messages would leave an incomplete message there. */
static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct node *n = client;

    if (len < 14 || len > WIRE_FRAME_MAX) {
        ck_abort_msg("a frame of %zu bytes", len);
    }
    n->frames++;
    n->last_len = len;
    n->last_flags = flags;
    n->last_from = frame[11];
    if (len >= 18) {
        memcpy(&n->last_number, frame + 14, 4);
        if (n->last_number != n->expect[n->last_from]) {
            n->out_of_order++;
        }
        n->expect[n->last_from] = n->last_number + 1;
    }
}

static void on_tx_ready(void *client)
{
    struct node *n = client;

    n->tx_readies++;
    n->tx_credits = wire_tx_credits(n->port);
}

static void on_rx_ready(void *client)
{
    ((struct node *)client)->rx_readies++;
}

static void on_host_end(void *client)
{
    ((struct node *)client)->ends++;
}

static const struct wire_client listening = {
    .rx = on_rx,
    .tx_ready = on_tx_ready,
    .rx_ready = on_rx_ready,
    .host_ended = on_host_end,
};

struct node *join(uint8_t id)
{
    struct node *n = g_new0(struct node, 1);
    GError *err = NULL;

    n->id = id;
    n->port = wire_open(uri, &err);
    if (!n->port) {
        fprintf(stderr, "%s\n", err->message);
        abort();
    }
    wire_set_client(n->port, &listening, n);
    return n;
}

void leave(struct node *n)
{
    wire_close(n->port);
    g_free(n);
}

void wrap(struct node *n, struct wire_port *filter)
{
    n->port = filter;
    wire_set_client(n->port, &listening, n);
}

bool send_frame(struct node *n, uint8_t to, uint32_t number, size_t len)
{
    return send_frame_as(n, to, number, len, 0);
}

bool send_frame_as(struct node *n, uint8_t to, uint32_t number, size_t len, unsigned flags)
{
    uint8_t dmac[6], *frame;

    mac_of(dmac, to);
    if (to == 0xff) {
        memset(dmac, 0xff, 6);
    }
    frame = wire_tx_reserve_to(n->port, dmac, len);
    if (!frame) {
        return false;
    }
    memcpy(frame, dmac, 6);
    mac_of(frame + 6, n->id);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    if (len >= 18) {
        memcpy(frame + 14, &number, 4);
        memset(frame + 18, (uint8_t)number, len - 18);
    }
    wire_tx_commit_as(n->port, len, flags);
    return true;
}

void announce(struct node *n)
{
    if (!send_frame(n, 0xff, 0, 64)) {
        ck_abort_msg("no room for an announcement");
    }
}

struct wire_stats stats_of(struct node *n)
{
    struct wire_stats s;

    wire_get_stats(n->port, &s);
    return s;
}

unsigned drain(struct node *n)
{
    unsigned total = 0, got;

    while ((got = wire_poll(n->port, 64))) {
        total += got;
    }
    return total;
}

bool sleep_on(struct node *n, int ms)
{
    struct pollfd p = {.fd = wire_fd(n->port), .events = POLLIN};

    if (poll(&p, 1, ms) != 1) {
        return false;
    }
    wire_fd_event(n->port);
    return true;
}

int64_t ms_now(void)
{
    return g_get_monotonic_time() / 1000;
}

void two(struct node **a, struct node **b)
{
    *a = join(1);
    *b = join(2);
    announce(*a);
    announce(*b);
    drain(*a);
    drain(*b);
    (*a)->frames = (*b)->frames = 0;
}
