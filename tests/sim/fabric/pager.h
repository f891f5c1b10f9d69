/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a host behind on-demand keys, and the pager that a driver would be: it takes page
 * faults from an EQ, brings pages in and takes them away by UMRs, and answers faults. It answers
 * late, with error, after it has brought in a part of the pages, twice, or only when the queue is
 * gone.
 *
 * A page has memory of its own while the device has none for it. To bring it in, the pager copies
 * it to a free frame, which the device then reaches. A free frame contains a pattern: if the device
 * touches a frame after the UMR that took it away has completed, the pattern is broken.
 */
#ifndef HCASIM_TESTS_PAGER_H
#define HCASIM_TESTS_PAGER_H

#include "tests/sim/fabric/access.h"
#include "tests/sim/fabric/keymap.h"

#define PAGER_KEYS   3u
#define PAGER_LIST   16u /* pages of a key */
#define PAGER_PAGES  (PAGER_KEYS * PAGER_LIST)
#define PAGER_FRAMES (PAGER_PAGES + 8u)
#define PAGER_FAULTS 64u /* the most that the pager holds: more than queues have sides */

struct pager_fault {
    uint8_t sub_type;
    uint8_t data[28];
    uint64_t due_ns;
    uint32_t qpn;
    bool requester;
    uint64_t life; /* how often connections had ended when the fault came */
    bool stale;    /* its connection had ended before it came */
};

struct faulty_pager {
    struct job *job;
    struct access *access;
    unsigned host; /* index in access->host */
    struct sim_host *on;
    struct mirror *mirror;
    const struct keymap *keys;
    uint32_t key[PAGER_KEYS];
    unsigned rights[PAGER_PAGES]; /* of the device: 0, or bits of a translation entry */
    uint8_t *swap, *frames;
    bool taken[PAGER_FRAMES];
    struct prm_eqe *eqes;
    uint32_t eqn, ci;
    struct pager_fault fault[PAGER_FAULTS];
    unsigned faults;
    uint64_t lives;  /* how often a connection has ended */
    bool took_other; /* the device may have taken an answer for that of another fault */
    uint64_t answered;
};

/* Creates the EQ and the on-demand keys. access: its mirror of this host has been made; the first
 * PAGER_PAGES pages of the memory become on-demand. */
void pager_init(struct faulty_pager *p, struct access *a, unsigned host, struct keymap *keys);
void pager_free(struct faulty_pager *p);
/* Takes faults and answers those that are due; takes pages away, and brings pages in ahead. */
bool pager_step(struct faulty_pager *p);
/* A connection of the host has ended: its faults need no answer. */
void pager_lost_a_connection(struct faulty_pager *p);
/* Checks that the device has not touched what it may not touch. */
void pager_check(const struct faulty_pager *p);

#endif
