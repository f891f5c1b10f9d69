/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a host behind on-demand keys, and the pager that a driver would be: it takes page
 * faults from an EQ, brings pages in and takes them away by UMRs, and answers faults. It answers
 * late, with error, after it has brought in a part of the pages, twice, or only when the queue is
 * gone.
 *
 * An implicit region is a list of blocks (KSM). An entry names the null key until a fault asks for
 * it, then a part of an on-demand key, and the null key again when the pager likes.
 *
 * A page has memory of its own while the device has none for it. To bring it in, the pager copies
 * it to a free frame, which the device then reaches. A free frame contains a pattern: if the device
 * touches a frame after the UMR that took it away has completed, the pattern is broken.
 */
#ifndef HCASIM_TESTS_PAGER_H
#define HCASIM_TESTS_PAGER_H

#include "tests/sim/fabric/access.h"
#include "tests/sim/fabric/keymap.h"

#define PAGER_KEYS     3u
#define PAGER_LIST     16u /* pages of a key */
#define PAGER_PAGES    (PAGER_KEYS * PAGER_LIST)
#define PAGER_BLOCKS   4u         /* of the implicit region */
#define PAGER_IMPLICIT PAGER_KEYS /* its slot in the reference */
#define PAGER_SLOTS    (PAGER_KEYS + 1)
#define PAGER_FRAMES   (PAGER_PAGES + 8u)
#define PAGER_FAULTS   64u /* the most that the pager holds: more than queues have sides */

struct pager_fault {
    uint8_t sub_type;
    uint8_t data[28];
    uint64_t due_ns;
    uint32_t qpn; /* a QP, or a DC target */
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
    uint32_t implicit;            /* the key of the implicit region */
    bool linked[PAGER_BLOCKS];    /* its entry names a key, and not the null key */
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

/* Creates the EQ, the on-demand keys and the implicit region, which take the first PAGER_SLOTS
 * slots of the reference. access: its mirror of this host has been made; the first PAGER_PAGES
 * pages of the memory become on-demand. */
void pager_init(struct faulty_pager *p, struct access *a, unsigned host, struct keymap *keys);
void pager_free(struct faulty_pager *p);
/* Takes faults and answers those that are due; takes pages away, and brings pages in ahead. */
bool pager_step(struct faulty_pager *p);
/* A connection of the host has ended: its faults need no answer. */
void pager_lost_a_connection(struct faulty_pager *p);
/* Checks that the device has not touched what it may not touch. */
void pager_check(const struct faulty_pager *p);

#endif
