/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements hub.h. All frames wait in one queue, because all take the same time. */
#include <glib.h>
#include <string.h>
#include "tests/sim/hub.h"
#include "wire/pair.h"

#define SLOTS 256
#define BURST 64 /* the most frames taken from a port in a round */

struct hub_port {
    struct hub *hub;
    struct wire_port *port;
};

struct hub {
    struct inproc_member member; /* first member, so a pointer to it is also one to the hub */
    struct inproc_world *world;
    uint64_t latency_ns;
    struct hub_port ports[HUB_PORTS];
    unsigned num_ports;
    GQueue frames; /* struct hub_frame */
};

struct hub_frame {
    uint64_t due_ns;
    const struct hub_port *from;
    size_t len;
    uint8_t bytes[];
};

static void hub_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct hub_port *from = opaque;
    struct hub_frame *copy = g_malloc(sizeof(*copy) + len);

    *copy = (struct hub_frame){
        .due_ns = from->hub->world->now_ns + from->hub->latency_ns, .from = from, .len = len};
    memcpy(copy->bytes, frame, len);
    g_queue_push_tail(&from->hub->frames, copy);
}

static const struct wire_client hub_client = {.rx = hub_rx};

static void hub_flood(struct hub *hub, const struct hub_frame *frame)
{
    for (unsigned i = 0; i < hub->num_ports; i++) {
        struct hub_port *to = &hub->ports[i];
        uint8_t *room = to == frame->from ? NULL : wire_tx_reserve(to->port, frame->len);

        if (room) {
            memcpy(room, frame->bytes, frame->len);
            wire_tx_commit(to->port, frame->len);
        }
    }
}

static bool hub_run(struct inproc_member *member, uint64_t now_ns)
{
    struct hub *hub = (struct hub *)member;
    const struct hub_frame *first;
    unsigned did = 0;

    for (unsigned i = 0; i < hub->num_ports; i++) {
        did += wire_poll(hub->ports[i].port, BURST);
    }
    while ((first = g_queue_peek_head(&hub->frames)) && first->due_ns <= now_ns) {
        g_autofree struct hub_frame *frame = g_queue_pop_head(&hub->frames);

        hub_flood(hub, frame);
        did++;
    }
    return did;
}

static uint64_t hub_deadline_ns(const struct inproc_member *member)
{
    const struct hub *hub = (const struct hub *)member;
    const struct hub_frame *first = g_queue_peek_head((GQueue *)&hub->frames);

    return first ? first->due_ns : UINT64_MAX;
}

struct hub *hub_new(struct inproc_world *world, uint64_t latency_ns)
{
    struct hub *hub = g_new0(struct hub, 1);

    hub->member = (struct inproc_member){hub_run, hub_deadline_ns};
    hub->world = world;
    hub->latency_ns = latency_ns;
    g_queue_init(&hub->frames);
    inproc_join(world, &hub->member);
    return hub;
}

void hub_free(struct hub *hub)
{
    inproc_leave(hub->world, &hub->member);
    for (unsigned i = 0; i < hub->num_ports; i++) {
        wire_close(hub->ports[i].port);
    }
    g_queue_clear_full(&hub->frames, g_free);
    g_free(hub);
}

struct wire_port *hub_plug(struct hub *hub)
{
    struct hub_port *port = &hub->ports[hub->num_ports];
    struct wire_port *ends[2];

    g_assert_cmpuint(hub->num_ports, <, HUB_PORTS);
    hub->num_ports++;
    wire_pair_new(SLOTS, ends);
    *port = (struct hub_port){hub, ends[0]};
    wire_set_client(ends[0], &hub_client, port);
    return ends[1];
}
