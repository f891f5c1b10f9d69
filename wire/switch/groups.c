/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements groups.h: memberships in chains by group, in an array. */
#include "wire/switch/groups.h"
#include "wire/chance.h"

#include <glib.h>

enum {
    GROUPS_NONE = UINT32_MAX,
    GROUPS_SWEEP = 8,
};

void groups_init(struct groups *g, unsigned members, unsigned ports, uint64_t seed)
{
    uint32_t chains = 64;

    while (chains < members) {
        chains *= 2;
    }
    *g = (struct groups){.num = members, .chain_mask = chains - 1, .seed = seed, .ports = ports};
    g->members = g_new0(struct groups_member, members);
    g->chains = g_new(uint32_t, chains);
    for (uint32_t i = 0; i < chains; i++) {
        g->chains[i] = GROUPS_NONE;
    }
    for (uint32_t i = 0; i < members; i++) {
        g->members[i].next = i + 1 < members ? i + 1 : GROUPS_NONE;
    }
    for (unsigned f = 0; f < GROUPS_FAMILIES; f++) {
        g->router_until[f] = g_new0(uint64_t, ports + 1);
        g->querier_until[f] = g_new0(uint64_t, GROUPS_VIDS);
        g->yields_until[f] = g_new0(uint64_t, GROUPS_VIDS);
    }
    g->overflown = g_new0(uint8_t, GROUPS_VIDS);
    g->held = g_new0(uint32_t, ports + 1);
    g->made_known = g_new0(uint32_t, ports + 1);
    g->takes_all = g_new0(bool, ports + 1);
}

void groups_clear(struct groups *g)
{
    g_free(g->members);
    g_free(g->chains);
    g_free(g->overflown);
    g_free(g->held);
    g_free(g->made_known);
    g_free(g->takes_all);
    for (unsigned f = 0; f < GROUPS_FAMILIES; f++) {
        g_free(g->router_until[f]);
        g_free(g->querier_until[f]);
        g_free(g->yields_until[f]);
    }
}

static uint32_t *groups_chain(const struct groups *g, uint64_t key)
{
    return &g->chains[chance_mix(key ^ g->seed) & g->chain_mask];
}

static struct groups_member *groups_look(const struct groups *g, uint64_t key, unsigned port)
{
    for (uint32_t i = *groups_chain(g, key); i != GROUPS_NONE; i = g->members[i].next) {
        if (g->members[i].key == key && g->members[i].port == port) {
            return &g->members[i];
        }
    }
    return NULL;
}

/* The counter to which an entry belongs. */
static uint32_t *groups_count(const struct groups *g, unsigned port, unsigned by)
{
    return port == GROUPS_KNOWN ? &g->made_known[by] : &g->held[port];
}

static void groups_free_member(struct groups *g, uint32_t at)
{
    uint32_t *link = groups_chain(g, g->members[at].key);

    while (*link != at) {
        link = &g->members[*link].next;
    }
    *link = g->members[at].next;
    --*groups_count(g, g->members[at].port, g->members[at].by);
    g->members[at] = (struct groups_member){.next = g->first_free};
    g->first_free = at;
    g->used--;
}

static void groups_sweep(struct groups *g, uint64_t now_ns)
{
    for (unsigned i = 0; i < GROUPS_SWEEP; i++) {
        g->hand = g->hand + 1 < g->num ? g->hand + 1 : 0;
        if (g->members[g->hand].key && g->members[g->hand].until_ns < now_ns) {
            groups_free_member(g, g->hand);
        }
    }
}

static bool groups_put(struct groups *g, uint64_t key, unsigned port, unsigned by, uint64_t now_ns)
{
    struct groups_member *m = groups_look(g, key, port);
    uint32_t at, *chain;

    if (m) {
        m->until_ns = now_ns + GROUPS_MEMBER_NS;
        return true;
    }
    groups_sweep(g, now_ns);
    at = g->first_free;
    if (at == GROUPS_NONE) {
        return false;
    }
    chain = groups_chain(g, key);
    g->first_free = g->members[at].next;
    g->members[at] = (struct groups_member){key, now_ns + GROUPS_MEMBER_NS, *chain, (uint16_t)port,
                                            (uint16_t)by};
    *chain = at;
    ++*groups_count(g, port, by);
    g->used++;
    return true;
}

/* What is forgotten about a group must not make it go to fewer ports than it should: from now on
 * the VLAN is not pruned. */
static void groups_overflow(struct groups *g, uint64_t key)
{
    g->overflows++;
    g->overflown[key >> 48 & (GROUPS_VIDS - 1)] = 1;
}

/* Whether the port has as many entries as it may have, and needs one more for this group. A host
 * that joins and leaves one group after the other makes no memberships that last, but the switch
 * remembers that there are such groups. */
static bool groups_is_at_limit(const struct groups *g, uint64_t key, unsigned port, unsigned limit)
{
    return (g->held[port] >= limit && !groups_look(g, key, port)) ||
           (g->made_known[port] >= limit && !groups_look(g, key, GROUPS_KNOWN));
}

void groups_join(struct groups *g, uint64_t key, unsigned port, unsigned limit, uint64_t now_ns)
{
    if (groups_is_at_limit(g, key, port, limit)) {
        groups_sweep(g, now_ns);
        g->overflows++;
        g->takes_all[port] = true;
        return;
    }
    if (!groups_put(g, key, port, port, now_ns) ||
        !groups_put(g, key, GROUPS_KNOWN, port, now_ns)) {
        groups_overflow(g, key);
    }
}

void groups_leave(struct groups *g, uint64_t key, unsigned port, uint64_t now_ns)
{
    struct groups_member *m = groups_look(g, key, port);

    if (m) {
        m->until_ns = MIN(m->until_ns, now_ns + GROUPS_LEAVE_NS);
    }
}

void groups_query(struct groups *g, enum groups_family family, unsigned vid, unsigned port,
                  bool yields, uint64_t now_ns)
{
    uint64_t until = now_ns + GROUPS_OTHER_QUERIER_NS;

    g->querier_until[family][vid] = until;
    g->router_until[family][port] = until;
    if (yields) {
        g->yields_until[family][vid] = until;
    }
}

void groups_forget(struct groups *g, unsigned port)
{
    for (uint32_t i = 0; i < g->num; i++) {
        if (g->members[i].key && g->members[i].port == port) {
            groups_free_member(g, i);
        }
    }
    for (unsigned f = 0; f < GROUPS_FAMILIES; f++) {
        g->router_until[f][port] = 0;
    }
    g->takes_all[port] = false;
}

bool groups_asks(const struct groups *g, enum groups_family family, unsigned vid, uint64_t now_ns)
{
    return g->own_querier && g->yields_until[family][vid] <= now_ns;
}

bool groups_prunes(const struct groups *g, enum groups_family family, unsigned vid, uint64_t now_ns)
{
    return !g->overflown[vid] && (g->own_querier || g->querier_until[family][vid] > now_ns);
}

bool groups_floods(const struct groups *g, uint64_t key, uint64_t now_ns)
{
    const struct groups_member *known = groups_look(g, key, GROUPS_KNOWN);

    return !known || known->until_ns < now_ns;
}

bool groups_is_router(const struct groups *g, enum groups_family family, unsigned port,
                      uint64_t now_ns)
{
    return g->router_until[family][port] > now_ns;
}

bool groups_wants(const struct groups *g, enum groups_family family, uint64_t key, unsigned port,
                  uint64_t now_ns)
{
    const struct groups_member *m = groups_look(g, key, port);

    return g->takes_all[port] || (m && m->until_ns >= now_ns) ||
           groups_is_router(g, family, port, now_ns);
}

bool groups_is_prunable(const uint8_t mac[6], enum groups_family *family)
{
    if (mac[0] == 0x01 && mac[1] == 0x00 && mac[2] == 0x5e && mac[3] < 0x80) {
        *family = GROUPS_IPV4;
        return mac[3] || mac[4];
    }
    *family = GROUPS_IPV6;
    return mac[0] == 0x33 && mac[1] == 0x33 && (mac[2] || mac[3] || mac[4]);
}
