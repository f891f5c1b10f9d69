/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: the user of a user-mode network (wire/slirp), by its first byte: the options in a URI,
 * or the frames that a host sends. The network is a restricted one, so that nothing goes out.
 *
 * Options that are taken must make a network in which libslirp finds no fault. Frames follow behind
 * a byte with their length. The port must count each, keep its bounds, and give back all its
 * descriptors.
 */
#include <dirent.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "wire/open.h"
#include "wire/slirp/options.h"
#include "wire/slirp/slirp.h"

#define MAX_FRAMES 64
#define MAX_TEXT   512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static unsigned open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (dir && readdir(dir)) {
        n++;
    }
    if (dir) {
        closedir(dir);
    }
    return n;
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    require(len >= 14 && len <= 1514 && !flags);
}

static const struct wire_client client = {.rx = on_rx};

static void take_all(struct wire_port *port)
{
    wire_fd_event(port);
    while (wire_poll(port, 8) == 8) {
    }
}

static void try_options(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, MIN(size, MAX_TEXT));
    struct slirp_options o;
    GError *err = NULL;

    if (slirp_options_read(&o, text, &err)) {
        require(o.n_forwards <= SLIRP_FORWARDS_MAX && !err);
        require((o.host.s_addr & o.mask.s_addr) == o.net.s_addr &&
                (o.dns.s_addr & o.mask.s_addr) == o.net.s_addr &&
                (o.dhcp.s_addr & o.mask.s_addr) == o.net.s_addr);
        if (!o.n_forwards) { /* those would take ports of this machine */
            struct wire_port *port = wire_slirp_open(text, &err);

            require(port != NULL);
            wire_close(port);
        }
    } else {
        require(err && strlen(err->message) > 0);
        g_error_free(err);
    }
}

static void try_frames(const uint8_t *data, size_t size)
{
    struct wire_port *port = wire_slirp_open("restrict=on", NULL);
    struct wire_stats stats;
    unsigned sent = 0;
    size_t at = 0;

    require(port != NULL);
    wire_set_client(port, &client, NULL);
    for (unsigned i = 0; i < MAX_FRAMES && at < size; i++) {
        size_t len = MIN(data[at], size - at - 1);
        uint8_t *frame = wire_tx_reserve(port, len);

        require(frame != NULL);
        memcpy(frame, data + at + 1, len);
        wire_tx_commit_as(port, len, i % 2 ? WIRE_MORE : 0);
        sent += len >= 14;
        if (i % 3 == 2) {
            take_all(port);
        }
        at += 1 + len;
    }
    wire_tx_flush(port);
    take_all(port);
    wire_get_stats(port, &stats);
    require(stats.tx_frames == sent);
    wire_close(port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned files;

    if (!files) { /* the library stays loaded */
        require(wire_slirp_open("nonsense", NULL) == NULL);
        files = open_files();
    }
    if (size && data[0] & 1) {
        try_options(data + 1, size - 1);
    } else {
        try_frames(data + !!size, size - !!size);
    }
    require(open_files() == files);
    return 0;
}
