/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements switch.h: ports, and turns. The settings and views are in view.c. */
#include "wire/switch/priv.h"
#include "wire/open.h"

#include <string.h>

enum {
    SWITCH_PORTS = 512,
    SWITCH_ADDRESSES = 8192,
    SWITCH_MEMBERS = 4096,
    SWITCH_ROUNDS = 4, /* times that a turn visits each port */
};

#define SWITCH_BUFFER (64u << 20)
#define SWITCH_AGE_NS 300000000000ull

/* -- what a wire tells ------------------------------------------------------------------------- */

static void switch_on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    ingress_frame(client, frame, len, flags);
}

static void switch_on_tx_ready(void *client)
{
    struct switch_port *p = client;
    uint64_t now_ps = p->sw->now_ns * 1000;

    p->blocked = p->stuck = false;
    p->stuck_classes &= ~wire_tx_credits(p->wire);
    p->free_ps = MAX(p->free_ps, now_ps); /* the line did nothing meanwhile */
    p->sw->due_ns[p->number] = 0;
}

static void switch_on_link_change(void *client)
{
    struct switch_port *p = client;

    p->changed = true;
    p->sw->due_ns[p->number] = 0;
}

static void switch_on_rx_ready(void *client)
{
    struct switch_port *p = client;

    switch_set_put(&p->sw->ready, p->number, true);
}

static const struct wire_client switch_client = {.rx = switch_on_rx,
                                                 .tx_ready = switch_on_tx_ready,
                                                 .link_change = switch_on_link_change,
                                                 .rx_ready = switch_on_rx_ready};

/* -- ports ------------------------------------------------------------------------------------- */

static struct switch_port *switch_port_at(const struct wire_switch *sw, unsigned number)
{
    return number && number <= sw->top && sw->ports[number].wire ? &sw->ports[number] : NULL;
}

unsigned wire_switch_add(struct wire_switch *sw, struct wire_port *port, const char *about,
                         bool passing, GError **err)
{
    struct switch_port *p;
    unsigned number = 1;

    if (sw->num_ports == sw->config.ports) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_TAKEN, "all %u ports of the switch are used",
                    sw->config.ports);
        return 0;
    }
    while (switch_port_at(sw, number)) {
        number++;
    }
    p = &sw->ports[number];
    *p = (struct switch_port){.sw = sw,
                              .wire = port,
                              .about = g_strdup(about),
                              .number = (uint16_t)number,
                              .serial = ++sw->serials,
                              .passing = passing,
                              .config = sw->ports[0].config,
                              .chance = chance_of(sw->config.seed, "switch", sw->serials),
                              .link_up = wire_link_up(port)};
    pool_queue_init(&p->line);
    for (unsigned i = 0; i < SWITCH_PRIORITIES; i++) {
        pool_queue_init(&p->queue[i]);
    }
    sw->due_ns[number] = SWITCH_NEVER;
    switch_set_put(&sw->ready, number, true);
    sw->top = MAX(sw->top, number);
    sw->num_ports++;
    sw->num_flows += p->config.flow != SWITCH_FLOW_DROPS;
    wire_set_client(port, &switch_client, p);
    return number;
}

void wire_switch_remove(struct wire_switch *sw, unsigned number)
{
    struct switch_port *p = switch_port_at(sw, number);
    struct wire_port *wire;

    if (!p) {
        return;
    }
    egress_drop_all(p, &p->stats.down);
    fdb_forget(&sw->fdb, number);
    groups_forget(&sw->groups, number);
    switch_stats_add(&sw->gone, &p->stats);
    sw->num_ports--;
    sw->num_flows -= p->config.flow != SWITCH_FLOW_DROPS;
    sw->num_lost -= p->lost;
    sw->due_ns[number] = SWITCH_NEVER;
    switch_set_put(&sw->ready, number, false);
    switch_set_put(&sw->dirty, number, false);
    g_free(p->about);
    wire = p->wire;
    wire_set_client(wire, NULL, NULL);
    *p = (struct switch_port){0};
    while (sw->top && !sw->ports[sw->top].wire) {
        sw->top--;
    }
    wire_close(wire);
}

unsigned wire_switch_next_lost(struct wire_switch *sw)
{
    for (unsigned i = 1; sw->num_lost && i <= sw->top; i++) {
        if (sw->ports[i].lost) {
            return i;
        }
    }
    return 0;
}

struct wire_port *wire_switch_wire(struct wire_switch *sw, unsigned number)
{
    struct switch_port *p = switch_port_at(sw, number);

    return p ? p->wire : NULL;
}

unsigned wire_switch_next(const struct wire_switch *sw, unsigned number)
{
    while (++number <= sw->top) {
        if (sw->ports[number].wire) {
            return number;
        }
    }
    return 0;
}

bool wire_switch_takes(const struct wire_switch *sw, unsigned number)
{
    const struct switch_port *p = switch_port_at(sw, number);

    return p && !p->holds;
}

bool wire_switch_takes_changed(struct wire_switch *sw)
{
    bool changed = sw->takes_changed;

    sw->takes_changed = false;
    return changed;
}

/* -- turns ------------------------------------------------------------------------------------- */

/* The link of the port has changed. */
static void switch_look_at_link(struct switch_port *p)
{
    p->changed = false;
    p->link_up = wire_link_up(p->wire);
    if (p->link_up) {
        switch_set_put(&p->sw->ready, p->number, true);
        return;
    }
    egress_drop_all(p, &p->stats.down);
    fdb_forget(&p->sw->fdb, p->number);
    groups_forget(&p->sw->groups, p->number);
    memset(p->paused_until, 0, sizeof(p->paused_until));
    if (p->passing && !p->lost) {
        p->lost = true;
        p->sw->num_lost++;
    }
}

/* Does what is due. */
static void switch_run_due(struct wire_switch *sw)
{
    for (unsigned i = 1; i <= sw->top; i++) {
        struct switch_port *p = &sw->ports[i];

        if (sw->due_ns[i] <= sw->now_ns && p->wire) {
            if (p->changed) {
                switch_look_at_link(p);
            }
            egress_run(p);
        }
    }
}

/* Takes a batch of frames from the port. True: there may be more. */
static bool switch_take(struct switch_port *p)
{
    if (p->config.flow != SWITCH_FLOW_DROPS && !flow_takes(p)) {
        return false;
    }
    switch_set_put(&p->sw->ready, p->number, false);
    if (wire_poll(p->wire, SWITCH_BATCH) == SWITCH_BATCH) {
        switch_set_put(&p->sw->ready, p->number, true);
    }
    return switch_set_has(&p->sw->ready, p->number);
}

/* Takes a batch from each port that has frames. Whether any has more. */
static bool switch_take_all(struct wire_switch *sw)
{
    bool more = false;

    for (unsigned i = 0; (i = switch_set_next(&sw->ready, i));) {
        more |= switch_take(&sw->ports[i]);
    }
    return more;
}

/* Notes which ports are held up, for the owner. */
static void switch_note_holds(struct wire_switch *sw)
{
    for (unsigned i = 1; sw->num_flows && i <= sw->top; i++) {
        struct switch_port *p = &sw->ports[i];
        bool holds = p->wire && !flow_takes(p);

        if (p->holds != holds) {
            p->holds = holds;
            if (!holds) {
                switch_set_put(&sw->ready, i, true);
            }
            sw->takes_changed = true;
        }
    }
}

static void switch_flush(struct wire_switch *sw)
{
    for (unsigned i = 0; (i = switch_set_next(&sw->dirty, i));) {
        switch_set_put(&sw->dirty, i, false);
        wire_tx_flush(sw->ports[i].wire);
    }
}

static void switch_ask(struct wire_switch *sw)
{
    if (sw->groups.own_querier && sw->query_ns <= sw->now_ns) {
        sw->query_ns = sw->now_ns + (sw->queries ? GROUPS_QUERY_NS : GROUPS_QUERY_FIRST_NS);
        sw->queries++;
        ingress_ask(sw);
    }
}

bool wire_switch_turn(struct wire_switch *sw, uint64_t now_ns)
{
    bool more = true;

    sw->now_ns = MAX(sw->now_ns, now_ns);
    switch_ask(sw);
    for (unsigned round = 0; more && round < SWITCH_ROUNDS; round++) {
        switch_run_due(sw);
        more = switch_take_all(sw);
        switch_run_due(sw);
    }
    switch_note_holds(sw);
    switch_flush(sw);
    for (unsigned i = 0; !more && (i = switch_set_next(&sw->ready, i));) {
        more = !sw->ports[i].holds;
    }
    return more || wire_switch_deadline(sw) <= sw->now_ns;
}

uint64_t wire_switch_deadline(const struct wire_switch *sw)
{
    uint64_t due = sw->groups.own_querier ? sw->query_ns : SWITCH_NEVER;

    for (unsigned i = 1; i <= sw->top; i++) {
        due = MIN(due, sw->due_ns[i]);
    }
    return due;
}

/* -- life -------------------------------------------------------------------------------------- */

struct wire_switch *wire_switch_new(const struct wire_switch_config *config, uint64_t now_ns)
{
    struct wire_switch *sw = g_new0(struct wire_switch, 1);
    struct wire_switch_config *c = &sw->config;
    struct chance chance;

    *c = *config;
    c->ports = c->ports ? MIN(c->ports, WIRE_SWITCH_PORTS_MAX) : SWITCH_PORTS;
    c->buffer = c->buffer ? c->buffer : SWITCH_BUFFER;
    c->addresses = c->addresses ? c->addresses : SWITCH_ADDRESSES;
    c->age_ns = c->age_ns ? c->age_ns : SWITCH_AGE_NS;
    c->groups = c->groups ? c->groups : SWITCH_MEMBERS;
    sw->now_ns = now_ns;
    sw->ports = g_new0(struct switch_port, c->ports + 1);
    sw->due_ns = g_new0(uint64_t, c->ports + 1);
    switch_config_init(&sw->ports[0].config);
    pool_init(&sw->pool, c->buffer, c->ports);
    chance = chance_of(c->seed, "switch", 0);
    fdb_init(&sw->fdb, c->addresses, c->ports, c->age_ns, chance_next(&chance));
    groups_init(&sw->groups, c->groups, c->ports, chance_next(&chance));
    chance_fill(&chance, sw->mac, sizeof(sw->mac));
    sw->mac[0] = (uint8_t)((sw->mac[0] & ~1u) | 2u); /* locally administered, of one station */
    wire_switch_set_querier(sw, c->querier);
    return sw;
}

void wire_switch_free(struct wire_switch *sw)
{
    while (sw->top) {
        wire_switch_remove(sw, sw->top);
    }
    pool_clear(&sw->pool);
    fdb_clear(&sw->fdb);
    groups_clear(&sw->groups);
    g_free(sw->ports);
    g_free(sw->due_ns);
    g_free(sw);
}
