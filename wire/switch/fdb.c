/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements fdb.h: chains in an array. A hand goes round the array and frees what is too old. */
#include "wire/switch/fdb.h"
#include "wire/chance.h"

#include <glib.h>

enum {
    FDB_NONE = UINT32_MAX,
    FDB_SWEEP = 8, /* entries that a new station makes the hand look at */
};

void fdb_init(struct fdb *fdb, unsigned entries, unsigned ports, uint64_t age_ns, uint64_t seed)
{
    uint32_t chains = 64;

    while (chains < entries) {
        chains *= 2;
    }
    *fdb = (struct fdb){.num = entries, .chain_mask = chains - 1, .age_ns = age_ns, .seed = seed};
    fdb->entries = g_new0(struct fdb_entry, entries);
    fdb->chains = g_new(uint32_t, chains);
    fdb->held = g_new0(uint32_t, ports + 1);
    for (uint32_t i = 0; i < chains; i++) {
        fdb->chains[i] = FDB_NONE;
    }
    for (uint32_t i = 0; i < entries; i++) {
        fdb->entries[i].next = i + 1 < entries ? i + 1 : FDB_NONE;
    }
}

void fdb_clear(struct fdb *fdb)
{
    g_free(fdb->entries);
    g_free(fdb->chains);
    g_free(fdb->held);
}

static uint32_t *fdb_chain(const struct fdb *fdb, uint64_t key)
{
    return &fdb->chains[chance_mix(key ^ fdb->seed) & fdb->chain_mask];
}

static bool fdb_is_old(const struct fdb *fdb, const struct fdb_entry *e, uint64_t now_ns)
{
    return now_ns - e->seen_ns > fdb->age_ns;
}

static struct fdb_entry *fdb_look(const struct fdb *fdb, uint64_t key)
{
    for (uint32_t i = *fdb_chain(fdb, key); i != FDB_NONE; i = fdb->entries[i].next) {
        if (fdb->entries[i].key == key) {
            return &fdb->entries[i];
        }
    }
    return NULL;
}

static void fdb_free_entry(struct fdb *fdb, uint32_t at)
{
    uint32_t *link = fdb_chain(fdb, fdb->entries[at].key);

    while (*link != at) {
        link = &fdb->entries[*link].next;
    }
    *link = fdb->entries[at].next;
    fdb->held[fdb->entries[at].port]--;
    fdb->entries[at] = (struct fdb_entry){.next = fdb->first_free};
    fdb->first_free = at;
    fdb->used--;
}

static void fdb_sweep(struct fdb *fdb, uint64_t now_ns)
{
    for (unsigned i = 0; i < FDB_SWEEP; i++) {
        fdb->hand = fdb->hand + 1 < fdb->num ? fdb->hand + 1 : 0;
        if (fdb->entries[fdb->hand].key && fdb_is_old(fdb, &fdb->entries[fdb->hand], now_ns)) {
            fdb_free_entry(fdb, fdb->hand);
        }
    }
}

/* A station that was known has sent at another port. If this port has too many stations, nobody
 * knows any more where the station is, and frames for it go to all ports. */
static void fdb_move(struct fdb *fdb, struct fdb_entry *e, unsigned port, unsigned limit)
{
    if (fdb->held[port] >= limit) {
        fdb_free_entry(fdb, (uint32_t)(e - fdb->entries));
        fdb->not_learned++;
        return;
    }
    fdb->held[e->port]--;
    fdb->held[port]++;
    e->port = (uint16_t)port;
}

void fdb_learn(struct fdb *fdb, uint64_t key, unsigned port, unsigned limit, uint64_t now_ns)
{
    struct fdb_entry *e = fdb_look(fdb, key);
    uint32_t at, *chain;

    if (e) {
        bool moves = e->port != port;

        fdb->moves += moves && !fdb_is_old(fdb, e, now_ns);
        e->seen_ns = now_ns;
        if (G_UNLIKELY(moves)) {
            fdb_move(fdb, e, port, limit);
        }
        return;
    }
    fdb_sweep(fdb, now_ns);
    at = fdb->first_free;
    if (at == FDB_NONE || fdb->held[port] >= limit) {
        fdb->not_learned++;
        return;
    }
    chain = fdb_chain(fdb, key);
    fdb->first_free = fdb->entries[at].next;
    fdb->entries[at] = (struct fdb_entry){key, now_ns, *chain, (uint16_t)port};
    *chain = at;
    fdb->held[port]++;
    fdb->used++;
}

unsigned fdb_find(const struct fdb *fdb, uint64_t key, uint64_t now_ns)
{
    const struct fdb_entry *e = fdb_look(fdb, key);

    return e && !fdb_is_old(fdb, e, now_ns) ? e->port : 0;
}

void fdb_forget(struct fdb *fdb, unsigned port)
{
    for (uint32_t i = 0; i < fdb->num; i++) {
        if (fdb->entries[i].key && fdb->entries[i].port == port) {
            fdb_free_entry(fdb, i);
        }
    }
}

unsigned fdb_count(const struct fdb *fdb, unsigned port, uint64_t now_ns)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < fdb->num; i++) {
        const struct fdb_entry *e = &fdb->entries[i];

        count += e->key && (!port || e->port == port) && !fdb_is_old(fdb, e, now_ns);
    }
    return count;
}
