/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of page faults share: the pager of both sides of the lab, its events, and pages
 * that are missing. */
#ifndef HCASIM_TESTS_PAGE_FAULT_BENCH_H
#define HCASIM_TESTS_PAGE_FAULT_BENCH_H

#include <check.h>
#include "model/memory/mkey_priv.h"
#include "model/queue/eq.h"
#include "model/rdma/rdma.h"
#include "tests/unit/lab.h"

#define FAULT_PAGE    4096
#define FAULT_ALL_OPS 0x3f

/* types of faults, as in the event (driver: MLX5_PFAULT_REQUESTOR, MLX5_WQE_PF_TYPE_*) */
enum {
    TYPE_RMP = 0,
    TYPE_REQ_SEND_OR_WRITE = 1,
    TYPE_RESP = 2,
    TYPE_REQ_READ_OR_ATOMIC = 3,
    TYPE_RDMA_READ = 4,
    TYPE_RDMA_WRITE = 6,
};

static uint32_t fault_ci[2]; /* how many EQEs of each side were looked at */

/* Gives both sides a pager, with every operation of every transport switched on. */
static inline void faults_begin(struct lab *l)
{
    for (unsigned i = 0; i < 2; i++) {
        paging_follow_eqs(&l->side[i].hca);
        memset(l->side[i].hca.may_fault, FAULT_ALL_OPS, sizeof(l->side[i].hca.may_fault));
        fault_ci[i] = 0;
    }
}

/* The next page fault event of side i, or NULL. */
static inline const struct prm_eqe *fault_next(struct lab *l, unsigned i)
{
    struct lab_side *side = &l->side[i];
    uint32_t *ci = &fault_ci[i];

    for (;;) {
        const struct prm_eqe *eqe =
            lab_ptr(side, side->eq_ring + (*ci & ((1u << LAB_EQ_LOG) - 1)) * 64, 64);

        if (PRM_GET(eqe, eqe, owner) != (*ci >> LAB_EQ_LOG & 1)) {
            return NULL;
        }
        ++*ci;
        if (PRM_GET(eqe, eqe, event_type) == PRM_EVENT_TYPE_PAGE_FAULT) {
            return eqe;
        }
    }
}

static inline uint64_t page_aligned(uint64_t addr)
{
    return (addr + FAULT_PAGE - 1) & ~(uint64_t)(FAULT_PAGE - 1);
}

/* A page that is missing. */
struct missing {
    struct lab_side *side;
    uint64_t *entry, was;
};

static inline struct missing fault_take_out(struct lab_side *side, uint32_t key, unsigned page)
{
    struct missing missing = {side, &mkey_find(&side->hca, key >> 8)->mtt[page], 0};

    missing.was = *missing.entry;
    *missing.entry = 0;
    mkey_changed(&side->hca);
    return missing;
}

static inline void fault_page_in(const struct missing *missing)
{
    *missing->entry = missing->was;
    mkey_changed(&missing->side->hca);
}

static inline uint8_t fault_type(const struct prm_eqe *eqe)
{
    const uint8_t *data = (const void *)PRM_PTR(eqe, eqe, event_data);

    return data[24] & 7;
}

#endif
