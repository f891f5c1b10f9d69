/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side of a port that receives: which ports a frame is for. Each frame ends in one counter.
 */
#include "wire/bytes.h"
#include "wire/encap/ip.h"
#include "wire/switch/priv.h"

#include <string.h>

enum {
    INGRESS_TYPE_CONTROL = 0x8808,
    INGRESS_LAST_VID = 4094,
    INGRESS_QUERY_SECONDS = 10, /* in which members answer */
    INGRESS_LEAVE_SECONDS = 1,  /* the same when one has left: before GROUPS_LEAVE_NS is over */
};

/* The addresses that no bridge forwards (IEEE 802.1Q, table 8-1). */
static bool ingress_is_reserved(const uint8_t dmac[SWITCH_MAC])
{
    static const uint8_t first[SWITCH_MAC] = {0x01, 0x80, 0xc2, 0, 0, 0};

    return !memcmp(dmac, first, SWITCH_MAC - 1) && dmac[SWITCH_MAC - 1] < 0x10;
}

/* The upper three bits of the DSCP; the port's own priority if the frame has none. */
static uint8_t ingress_priority(const struct switch_port *p, const uint8_t *body, size_t len)
{
    unsigned type = get16(body);

    if (type == ETH_TYPE_IPV4 && len >= 2 + IPV4_BYTES) {
        return body[3] >> 5;
    }
    if (type == ETH_TYPE_IPV6 && len >= 2 + IPV6_BYTES) {
        return body[2] >> 1 & 7;
    }
    return (uint8_t)p->config.priority;
}

/* Reads the tag, if there is one. False: the frame goes nowhere, and is counted. */
static bool ingress_read_tag(struct switch_port *p, struct switch_frame *f, const uint8_t *bytes)
{
    const struct switch_vlans *v = &p->config.vlans;
    unsigned type = get16(bytes + 2 * SWITCH_MAC), tci, vid = 0;

    f->body = bytes + 2 * SWITCH_MAC;
    if (type == ETH_TYPE_VLAN) {
        if (f->len < ETH_BYTES + VLAN_BYTES) {
            p->stats.rx_malformed++;
            return false;
        }
        tci = get16(bytes + ETH_BYTES);
        vid = tci & 0xfff;
        f->priority = (uint8_t)(tci >> 13);
        f->dei = tci >> 12 & 1;
        f->body += VLAN_BYTES;
        f->len -= VLAN_BYTES;
    } else {
        f->priority = ingress_priority(p, f->body, f->len - 2 * SWITCH_MAC);
    }
    if (vid > INGRESS_LAST_VID ||
        (vid ? !switch_vlans_has_tagged(v, vid) : v->native == SWITCH_NO_VID)) {
        p->stats.vlan_refused++;
        return false;
    }
    f->vid = (uint16_t)(vid ? vid : v->native);
    return true;
}

/* -- multicast --------------------------------------------------------------------------------- */

/* Which of the ports of the VLAN a frame is for. */
struct ingress_who {
    bool all;
    bool routers_only;
    enum groups_family family;
    uint64_t group;
};

/* Sends a query to a port, or to all of the VLAN (port 0). */
static void ingress_query(struct wire_switch *sw, enum groups_family family, unsigned vid,
                          unsigned port, unsigned seconds)
{
    uint8_t query[SNOOP_QUERY_LEN];
    size_t len = snoop_build_query(query, family, sw->mac, seconds);
    struct switch_frame f = {.body = query + 2 * SWITCH_MAC,
                             .len = (uint32_t)len,
                             .vid = (uint16_t)vid,
                             .priority = 6, /* network control */
                             .stored = POOL_NONE};

    memcpy(f.head, query, sizeof(f.head));
    for (unsigned i = 1; i <= sw->top; i++) {
        struct switch_port *to = &sw->ports[i];

        if (to->wire && (!port || i == port) && egress_has_vid(to, vid)) {
            sw->gone.copies++;
            egress_offer(to, &f);
        }
    }
    if (f.stored != POOL_NONE) {
        egress_put_frame(sw, f.stored);
    }
}

void ingress_ask(struct wire_switch *sw)
{
    for (unsigned vid = 0; vid < SWITCH_VIDS; vid++) {
        if (!(sw->vids[vid / 64] >> (vid % 64) & 1)) {
            continue;
        }
        for (unsigned family = 0; family < GROUPS_FAMILIES; family++) {
            if (groups_asks(&sw->groups, family, vid, sw->now_ns)) {
                ingress_query(sw, family, vid, 0, INGRESS_QUERY_SECONDS);
            }
        }
    }
}

static void ingress_reports(struct switch_port *p, unsigned vid, const struct snoop *s)
{
    struct wire_switch *sw = p->sw;
    bool leaves = false;

    for (unsigned i = 0; i < s->num; i++) {
        uint64_t key = fdb_key(vid, s->report[i].mac);
        enum groups_family family;

        if (!groups_is_prunable(s->report[i].mac, &family)) {
            continue;
        }
        if (s->report[i].leaves) {
            leaves = true;
            groups_leave(&sw->groups, key, p->number, sw->now_ns);
        } else {
            groups_join(&sw->groups, key, p->number, p->config.groups, sw->now_ns);
        }
    }
    /* Other members may be behind the same port. */
    if (leaves && groups_asks(&sw->groups, s->family, vid, sw->now_ns)) {
        ingress_query(sw, s->family, vid, p->number, INGRESS_LEAVE_SECONDS);
    }
}

/* Reads what a multicast frame says of groups. True: it is a report. */
static bool ingress_snoop(struct switch_port *p, const struct switch_frame *f,
                          enum groups_family *family)
{
    struct wire_switch *sw = p->sw;
    struct snoop *s = &sw->snoop;

    memcpy(sw->scratch, f->head, sizeof(f->head));
    memcpy(sw->scratch + sizeof(f->head), f->body, f->len - sizeof(f->head));
    if (!snoop_may_be(sw->scratch, f->len)) {
        return false;
    }
    snoop_read(sw->scratch, f->len, s);
    *family = s->family;
    switch (s->kind) {
    case SNOOP_BAD:
        sw->bad_reports++;
        return false;
    case SNOOP_QUERY:
        groups_query(&sw->groups, s->family, f->vid, p->number, snoop_yields(s, sw->mac),
                     sw->now_ns);
        return false;
    case SNOOP_REPORT:
        ingress_reports(p, f->vid, s);
        return true;
    default:
        return false;
    }
}

/* A cheap look whether the frame may be IGMP or MLD. */
static bool ingress_may_report(const struct switch_frame *f)
{
    unsigned type = get16(f->body);

    return (type == ETH_TYPE_IPV4 || type == ETH_TYPE_IPV6) && f->len >= ETH_BYTES + IPV4_BYTES;
}

static struct ingress_who ingress_members(struct switch_port *p, const struct switch_frame *f)
{
    const struct groups *g = &p->sw->groups;
    struct ingress_who who = {.group = fdb_key(f->vid, f->head)};
    enum groups_family family = GROUPS_IPV4;
    bool reports = ingress_may_report(f) && ingress_snoop(p, f, &family);
    bool prunable = groups_is_prunable(f->head, &who.family);

    /* A report goes to queriers only, so that other hosts do not keep quiet about the same group
     * (RFC 4541, 2.1.1). */
    if (reports) {
        who.family = family;
        who.routers_only = true;
        who.all = !groups_prunes(g, family, f->vid, p->sw->now_ns);
    } else {
        who.all = !prunable || !groups_prunes(g, who.family, f->vid, p->sw->now_ns) ||
                  groups_floods(g, who.group, p->sw->now_ns);
    }
    return who;
}

static bool ingress_is_for(const struct switch_port *to, const struct ingress_who *who)
{
    const struct groups *g = &to->sw->groups;
    uint64_t now = to->sw->now_ns;

    return who->all ||
           (who->routers_only ? groups_is_router(g, who->family, to->number, now)
                              : groups_wants(g, who->family, who->group, to->number, now));
}

/* -- all frames -------------------------------------------------------------------------------- */

/* Offers the frame to several ports. */
static void ingress_spread(struct switch_port *from, struct switch_frame *f,
                           const struct ingress_who *who)
{
    struct wire_switch *sw = from->sw;
    uint64_t copies = 0;

    for (unsigned i = 1; i <= sw->top; i++) {
        struct switch_port *to = &sw->ports[i];

        if (to->wire && to != from && egress_has_vid(to, f->vid) && ingress_is_for(to, who)) {
            copies++;
            egress_offer(to, f);
        }
    }
    from->stats.flooded += who->all && copies;
    from->stats.copies += copies;
    *(copies ? &from->stats.forwarded : &from->stats.nowhere) += 1;
}

static void ingress_forward(struct switch_port *from, struct switch_frame *f)
{
    struct wire_switch *sw = from->sw;
    struct ingress_who who = {.all = true};
    unsigned at;

    fdb_learn(&sw->fdb, fdb_key(f->vid, f->head + SWITCH_MAC), from->number, from->config.stations,
              sw->now_ns);
    if (f->head[0] & 1) {
        who = ingress_members(from, f);
        ingress_spread(from, f, &who);
        return;
    }
    at = fdb_find(&sw->fdb, fdb_key(f->vid, f->head), sw->now_ns);
    if (at == from->number) {
        from->stats.local++;
    } else if (at && egress_has_vid(&sw->ports[at], f->vid)) {
        from->stats.forwarded++;
        from->stats.copies++;
        egress_offer(&sw->ports[at], f);
    } else {
        ingress_spread(from, f, &who);
    }
}

void ingress_frame(struct switch_port *p, const uint8_t *bytes, size_t len, unsigned flags)
{
    static const uint8_t nobody[SWITCH_MAC];
    struct switch_frame f = {.len = (uint32_t)len,
                             .from = p->number,
                             .no_icrc = flags & WIRE_NO_ICRC,
                             .stored = POOL_NONE};

    p->stats.rx_frames++;
    p->stats.rx_bytes += len;
    if (p->config.down) {
        p->stats.rx_down++;
        return;
    }
    if (len < ETH_BYTES || len > WIRE_FRAME_MAX) {
        p->stats.rx_malformed++;
        return;
    }
    memcpy(f.head, bytes, sizeof(f.head));
    if (ingress_is_reserved(f.head) || get16(bytes + 12) == INGRESS_TYPE_CONTROL) {
        p->stats.control++;
        flow_take(p, bytes, len);
        return;
    }
    if (f.head[SWITCH_MAC] & 1 || !memcmp(f.head + SWITCH_MAC, nobody, SWITCH_MAC)) {
        p->stats.rx_malformed++;
        return;
    }
    if (!ingress_read_tag(p, &f, bytes)) {
        return;
    }
    p->sw->vids[f.vid / 64] |= 1ull << (f.vid % 64);
    ingress_forward(p, &f);
    if (f.stored != POOL_NONE) {
        egress_put_frame(p->sw, f.stored);
    }
}
