/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements lossy.h. A late frame waits in the filter until a later frame has passed it. */
#include <glib.h>
#include <string.h>
#include "tests/sim/lossy.h"
#include "wire/encap/ip.h"
#include "wire/filter.h"

struct lossy {
    struct wire_filter filter; /* first member: wire/filter.h */
    struct lossy_config config;
    GRand *rand;
    lossy_trace_fn *trace;
    void *opaque;
    uint8_t held[WIRE_FRAME_MAX];
    size_t held_len; /* 0: no frame is held */
    unsigned faults;
};

static void deliver(struct lossy *l, const uint8_t *frame, size_t len)
{
    if (l->trace) {
        l->trace(l->opaque, frame, len);
    }
    wire_filter_client.rx(l, frame, len, 0);
}

static bool happens(struct lossy *l, unsigned per_thousand)
{
    bool yes = (unsigned)g_rand_int_range(l->rand, 0, 1000) < per_thousand;

    l->faults += yes;
    return yes;
}

static void lossy_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct lossy *l = opaque;

    if (happens(l, l->config.lose)) {
        return;
    }
    if (happens(l, l->config.corrupt)) {
        uint8_t bad[WIRE_FRAME_MAX];
        gint32 at = g_rand_int_range(l->rand, 0, (gint32)len);

        memcpy(bad, frame, len);
        bad[at] ^= 1 << g_rand_int_range(l->rand, 0, 8);
        if (!l->config.fcs || at >= ETH_BYTES) {
            deliver(l, bad, len);
        }
        return;
    }
    if (!l->held_len && happens(l, l->config.late)) {
        memcpy(l->held, frame, len);
        l->held_len = len;
        return;
    }
    deliver(l, frame, len);
    if (happens(l, l->config.twice)) {
        deliver(l, frame, len);
    }
    if (l->held_len) {
        size_t held_len = l->held_len;

        l->held_len = 0;
        deliver(l, l->held, held_len);
    }
}

static bool lossy_tells_hosts(struct wire_port *port)
{
    return !((const struct lossy *)port)->config.strangers;
}

static bool lossy_knows(struct wire_port *port, const uint8_t mac[6])
{
    return lossy_tells_hosts(port);
}

static void lossy_close(struct wire_port *port)
{
    struct lossy *l = (struct lossy *)port;

    wire_filter_ops.close(port);
    g_rand_free(l->rand);
    g_free(l);
}

struct wire_port *lossy_new(struct wire_port *inner, const struct lossy_config *config,
                            lossy_trace_fn *trace, void *opaque)
{
    static struct wire_port_ops ops;
    static struct wire_client inside;
    struct lossy *l = g_new0(struct lossy, 1);

    ops = wire_filter_ops;
    ops.close = lossy_close;
    ops.knows = lossy_knows;
    ops.tells_hosts = lossy_tells_hosts;
    inside = wire_filter_client;
    inside.rx = lossy_rx;
    l->config = *config;
    l->rand = g_rand_new_with_seed(config->seed);
    l->trace = trace;
    l->opaque = opaque;
    wire_filter_init(&l->filter, inner, &ops, &inside);
    return &l->filter.port;
}

unsigned lossy_faults(const struct wire_port *port)
{
    return ((const struct lossy *)port)->faults;
}
