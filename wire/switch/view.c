/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements switch.h: settings, and what is there. */
#include "wire/switch/priv.h"
#include "wire/open.h"

#include <string.h>

/* The port of a number, also 0 for the defaults; NULL with *err. */
static struct switch_port *view_settings_of(const struct wire_switch *sw, unsigned number,
                                            GError **err)
{
    if (number && (number > sw->top || !sw->ports[number].wire)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "there is no port %u", number);
        return NULL;
    }
    return &sw->ports[number];
}

/* A peer that pauses goes on: nobody would tell it later. */
static void view_end_pauses(struct switch_port *p)
{
    if (p->pauses) {
        p->pauses = 0;
        p->pause_pending = true;
        flow_send(p);
    }
}

/* What else changes with a setting. */
static void view_apply(struct switch_port *p, const struct switch_port_config *before)
{
    struct wire_switch *sw = p->sw;
    struct switch_port_config *c = &p->config;

    if (c->flow != before->flow) {
        struct switch_port_config after = *c;

        *c = *before;
        view_end_pauses(p);
        *c = after;
    }
    sw->num_flows += c->flow != SWITCH_FLOW_DROPS;
    sw->num_flows -= before->flow != SWITCH_FLOW_DROPS;
    flow_check(p);
    if (c->flow == SWITCH_FLOW_DROPS && p->holds) {
        p->holds = false;
        switch_set_put(&sw->ready, p->number, true);
        sw->takes_changed = true;
    }
    if (c->rate != before->rate || c->latency_ns != before->latency_ns) {
        egress_hurry(p);
    }
    if (c->down) {
        egress_drop_all(p, &p->stats.down);
    }
    if (c->down || memcmp(&c->vlans, &before->vlans, sizeof(c->vlans)) != 0) {
        fdb_forget(&sw->fdb, p->number);
        groups_forget(&sw->groups, p->number);
    }
    sw->due_ns[p->number] = 0;
}

bool wire_switch_set(struct wire_switch *sw, unsigned number, const char *key, const char *value,
                     GError **err)
{
    struct switch_port *p = view_settings_of(sw, number, err);
    struct switch_port_config before;

    if (!p) {
        return false;
    }
    before = p->config;
    if (!switch_config_set(&p->config, key, value, err)) {
        return false;
    }
    if (number) {
        view_apply(p, &before);
    }
    return true;
}

char *wire_switch_get(const struct wire_switch *sw, unsigned number, const char *key)
{
    const struct switch_port *p = view_settings_of(sw, number, NULL);

    return p ? switch_config_get(&p->config, key) : NULL;
}

const char *const *wire_switch_keys(void)
{
    return switch_config_keys();
}

void wire_switch_set_querier(struct wire_switch *sw, bool on)
{
    sw->groups.own_querier = on;
    sw->queries = 0;
    sw->query_ns = sw->now_ns;
}

/* -- what is there ----------------------------------------------------------------------------- */

bool wire_switch_view(const struct wire_switch *sw, unsigned number,
                      struct wire_switch_port_view *view)
{
    const struct switch_port *p = number ? view_settings_of(sw, number, NULL) : NULL;

    if (!p) {
        return false;
    }
    *view = (struct wire_switch_port_view){.about = p->about,
                                           .link_up = p->link_up,
                                           .blocked = p->blocked,
                                           .pauses = p->pauses,
                                           .addresses = fdb_count(&sw->fdb, number, sw->now_ns),
                                           .stats = p->stats};
    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        view->paused |= (unsigned)(p->paused_until[i] > sw->now_ns) << i;
    }
    return true;
}

struct wire_switch_view wire_switch_whole(const struct wire_switch *sw)
{
    return (struct wire_switch_view){.ports = sw->num_ports,
                                     .ports_most = sw->config.ports,
                                     .addresses = fdb_count(&sw->fdb, 0, sw->now_ns),
                                     .addresses_most = sw->fdb.num,
                                     .memberships = sw->groups.used,
                                     .memberships_most = sw->groups.num,
                                     .frames = sw->pool.num_frames - sw->pool.free_frames,
                                     .frames_most = sw->pool.num_frames,
                                     .moves = sw->fdb.moves,
                                     .not_learned = sw->fdb.not_learned,
                                     .bad_reports = sw->bad_reports,
                                     .querier = sw->groups.own_querier};
}

struct switch_stats wire_switch_total(const struct wire_switch *sw)
{
    struct switch_stats total = sw->gone;

    for (unsigned i = 1; i <= sw->top; i++) {
        switch_stats_add(&total, &sw->ports[i].stats);
    }
    return total;
}

bool wire_switch_adds_up(const struct wire_switch *sw)
{
    struct switch_stats total = wire_switch_total(sw);
    bool good = switch_stats_add_up(&total) && total.offered == total.copies;

    for (unsigned i = 1; i <= sw->top; i++) {
        good = good && switch_stats_add_up(&sw->ports[i].stats);
    }
    return good;
}

static void view_mac(uint64_t key, uint8_t mac[SWITCH_MAC])
{
    for (int i = 0; i < SWITCH_MAC; i++) {
        mac[i] = (uint8_t)(key >> (40 - 8 * i));
    }
}

void wire_switch_stations(const struct wire_switch *sw, wire_switch_station_fn *fn, void *opaque)
{
    for (uint32_t i = 0; i < sw->fdb.num; i++) {
        const struct fdb_entry *e = &sw->fdb.entries[i];
        uint8_t mac[SWITCH_MAC];

        if (e->key && sw->now_ns - e->seen_ns <= sw->fdb.age_ns) {
            view_mac(e->key, mac);
            fn(opaque, (unsigned)(e->key >> 48), mac, e->port, sw->now_ns - e->seen_ns);
        }
    }
}

void wire_switch_members(const struct wire_switch *sw, wire_switch_station_fn *fn, void *opaque)
{
    for (uint32_t i = 0; i < sw->groups.num; i++) {
        const struct groups_member *m = &sw->groups.members[i];
        uint8_t mac[SWITCH_MAC];

        if (m->key && m->port && m->until_ns >= sw->now_ns) {
            view_mac(m->key, mac);
            fn(opaque, (unsigned)(m->key >> 48), mac, m->port,
               GROUPS_MEMBER_NS - MIN(GROUPS_MEMBER_NS, m->until_ns - sw->now_ns));
        }
    }
}
