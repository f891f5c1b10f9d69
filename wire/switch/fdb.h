/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The forwarding database of a switch: at which port a station is, by VLAN and address.
 *
 * The table has a fixed size. An entry that was not used for the age is forgotten; a station that
 * sends at another port has moved. If the table is full, a new station is not learned, and frames
 * for it go to all ports. The same happens if its port has as many stations as it may have, so that
 * one port cannot fill the table. Where an address lies in the table depends on a seed, so that a
 * hostile station cannot choose addresses that lie together.
 */
#ifndef HCASIM_WIRE_SWITCH_FDB_H
#define HCASIM_WIRE_SWITCH_FDB_H

#include <stdbool.h>
#include <stdint.h>

struct fdb_entry {
    uint64_t key; /* the VLAN and the address (fdb_key()); 0: free */
    uint64_t seen_ns;
    uint32_t next; /* in its chain, or of the free ones */
    uint16_t port;
};

struct fdb {
    struct fdb_entry *entries;
    uint32_t *chains;
    uint32_t num, chain_mask, first_free, hand;
    uint64_t seed, age_ns;
    uint32_t used;
    uint32_t *held; /* entries, by port */
    uint64_t moves, not_learned;
};

/* ports: the highest number of a port. */
void fdb_init(struct fdb *fdb, unsigned entries, unsigned ports, uint64_t age_ns, uint64_t seed);
void fdb_clear(struct fdb *fdb);

static inline uint64_t fdb_key(unsigned vid, const uint8_t mac[6])
{
    uint64_t key = (uint64_t)vid << 48;

    for (int i = 0; i < 6; i++) {
        key |= (uint64_t)mac[i] << (40 - 8 * i);
    }
    return key;
}

/* A station has sent at a port, which may have that many stations. */
void fdb_learn(struct fdb *fdb, uint64_t key, unsigned port, unsigned limit, uint64_t now_ns);
/* The port of a station; 0: it is not known. */
unsigned fdb_find(const struct fdb *fdb, uint64_t key, uint64_t now_ns);
/* Forgets the stations of a port. */
void fdb_forget(struct fdb *fdb, unsigned port);
/* The stations of a port; port 0: of all. */
unsigned fdb_count(const struct fdb *fdb, unsigned port, uint64_t now_ns);

#endif
