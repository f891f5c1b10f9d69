/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of a switch share: switch.c (ports and turns), ingress.c (which ports a frame is
 * for), egress.c (queues and lines), flow.c (pauses), view.c (settings and what is there).
 */
#ifndef HCASIM_WIRE_SWITCH_PRIV_H
#define HCASIM_WIRE_SWITCH_PRIV_H

#include "wire/chance.h"
#include "wire/switch/config.h"
#include "wire/switch/fdb.h"
#include "wire/switch/groups.h"
#include "wire/switch/pool.h"
#include "wire/switch/snoop.h"
#include "wire/switch/switch.h"

enum {
    SWITCH_BATCH = 16,          /* frames that are taken from a port before the next one */
    SWITCH_HEADROOM = 64 << 10, /* bytes that may come behind a pause */
    SWITCH_MAC = 6,
};

#define SWITCH_STUCK_NS 1000000000ull
#define SWITCH_WAIT_NS  50000000ull /* for one of several receivers behind a port */
#define SWITCH_NEVER    UINT64_MAX
#define SWITCH_SPEED    100000000000ull /* bits/s, by which pauses count at a port without a rate */

/* A frame on its way through the switch. */
struct switch_frame {
    uint8_t head[2 * SWITCH_MAC]; /* its addresses */
    const uint8_t *body; /* its type, behind any tag, and what follows. A hostile sender may
                          * still write there */
    uint32_t len;        /* without a tag */
    uint16_t vid, from;
    uint8_t priority;
    bool dei, no_icrc;
    uint32_t stored; /* where it is in the pool; POOL_NONE: nowhere yet */
};

struct switch_port {
    struct wire_switch *sw;
    struct wire_port *wire; /* NULL: no port has this number */
    char *about;
    uint16_t number;
    uint32_t serial;
    bool passing;
    struct switch_port_config config;
    struct chance chance;

    /* What the wire has told: handled in the next turn. */
    bool changed; /* its link */
    bool link_up;
    bool lost; /* a passing port's link was lost */

    /* Towards the wire. Frames wait in the queue of their priority, then on the line. */
    struct pool_queue queue[SWITCH_PRIORITIES];
    struct pool_queue line;
    uint8_t waiting_priorities; /* queues that are not empty, a bit each */
    bool blocked, stuck;
    uint64_t blocked_ns;
    unsigned blocked_class; /* the class of credits that is waited for */
    uint64_t stuck_classes; /* those for which nobody waits any more, a bit each */
    uint64_t free_ps;       /* when the line is free, as in the simulation's link */
    uint64_t paused_until[SWITCH_PRIORITIES];

    /* From the wire. */
    uint64_t held[SWITCH_PRIORITIES]; /* bytes of its frames that wait anywhere in the switch */
    uint64_t held_all;
    uint8_t pauses;     /* priorities that the peer is asked to pause */
    bool pause_pending; /* and a frame shall tell it */
    bool holds;         /* frames are not taken from the wire now */
    uint64_t refresh_ns;

    struct switch_stats stats;
};

/* A bit for each port, by number. */
struct switch_set {
    uint64_t word[WIRE_SWITCH_PORTS_MAX / 64 + 1];
};

static inline void switch_set_put(struct switch_set *set, unsigned number, bool is_in)
{
    uint64_t bit = 1ull << (number % 64);

    set->word[number / 64] = (set->word[number / 64] & ~bit) | (is_in ? bit : 0);
}

static inline bool switch_set_has(const struct switch_set *set, unsigned number)
{
    return set->word[number / 64] >> (number % 64) & 1;
}

/* The next number behind one; 0: there is none. */
static inline unsigned switch_set_next(const struct switch_set *set, unsigned number)
{
    unsigned at = (number + 1) / 64;
    uint64_t left = at < G_N_ELEMENTS(set->word) ? set->word[at] >> ((number + 1) % 64) : 0;

    if (left) {
        return number + 1 + (unsigned)__builtin_ctzll(left);
    }
    while (++at < G_N_ELEMENTS(set->word)) {
        if (set->word[at]) {
            return at * 64 + (unsigned)__builtin_ctzll(set->word[at]);
        }
    }
    return 0;
}

struct wire_switch {
    struct wire_switch_config config;
    uint64_t now_ns;
    struct switch_port *ports; /* by number; 0 is none, and has the defaults */
    uint64_t *due_ns;          /* by number: when the port's line or pauses need a turn */
    struct switch_set ready;   /* frames may be waiting at the port's wire */
    struct switch_set dirty;   /* frames were sent and not flushed */
    unsigned top;              /* no port has a higher number */
    unsigned num_ports, num_flows, num_lost;
    uint32_t serials;
    bool takes_changed;
    struct pool pool;
    uint32_t frames_most;
    struct fdb fdb;
    struct groups groups;
    uint64_t bad_reports;
    uint8_t mac[SWITCH_MAC];
    uint64_t query_ns;               /* when the switch asks next */
    unsigned queries;                /* how often it has asked */
    uint64_t vids[SWITCH_VIDS / 64]; /* of frames that came in: where it asks */
    struct switch_stats gone;        /* of ports that were removed */
    struct snoop snoop;
    uint8_t scratch[WIRE_FRAME_MAX];
};

/* -- egress.c ---------------------------------------------------------------------------------- */

/* Whether the port has the VLAN. */
bool egress_has_vid(const struct switch_port *p, unsigned vid);
/* A copy of the frame is meant for this port. */
void egress_offer(struct switch_port *to, struct switch_frame *frame);
/* Sends what can be sent now, and notes when there is more to do. */
void egress_run(struct switch_port *p);
/* The rate or the latency has changed: what is on the line takes no more time than it would now. */
void egress_hurry(struct switch_port *p);
/* Gives back a user's share of a stored frame. */
void egress_put_frame(struct wire_switch *sw, uint32_t at);
/* A reservation found no credit: the port waits for it. */
void egress_block(struct switch_port *p);
/* Drops all frames that wait. *fate is a counter of the port's statistics. */
void egress_drop_all(struct switch_port *p, uint64_t *fate);

/* -- flow.c ------------------------------------------------------------------------------------ */

/* Whether frames of this priority from the port are held up rather than dropped. */
bool flow_is_lossless(const struct switch_port *p, unsigned priority);
/* The bytes of a port's frames that wait have changed. */
void flow_hold(struct switch_port *from, unsigned priority, uint64_t bytes);
void flow_release(struct switch_port *from, unsigned priority, uint64_t bytes);
/* Looks at the thresholds anew. */
void flow_check(struct switch_port *p);
/* Sends a pause frame if one shall be sent. False: no credit. */
bool flow_send(struct switch_port *p);
/* Obeys a frame of MAC control that has come (Ethernet header first). */
void flow_take(struct switch_port *p, const uint8_t *frame, size_t len);
/* Whether frames may be taken from the wire. */
bool flow_takes(const struct switch_port *p);

/* -- ingress.c --------------------------------------------------------------------------------- */

/* A frame has come from a port's wire. */
void ingress_frame(struct switch_port *p, const uint8_t *bytes, size_t len, unsigned flags);
/* Asks for the members of groups, in all VLANs that are used. */
void ingress_ask(struct wire_switch *sw);

#endif
