/* SPDX-License-Identifier: BSD-2-Clause */
/* Defines struct cq for the files that implement completion queues: cq.c, cq_wait.c and
 * cqe_compress.c. */
#ifndef HCASIM_MODEL_CQ_PRIV_H
#define HCASIM_MODEL_CQ_PRIV_H

#include "model/queue/cq.h"
#include "model/queue/eq.h"

#define CQ_INDEX_MASK 0xffffff

struct cqe_session;

struct cq {
    struct obj obj;
    struct hca *hca;
    struct prm_cqc cqc[1]; /* as created and modified */
    struct mem_buf ring;
    uint8_t log_size, log_stride;
    uint8_t cqe_offset; /* offset of the cqe64 in a slot */
    bool oi, cc;
    bool pad;           /* the half of a slot before the cqe64 is always written, too */
    bool unusual;       /* the CQ pads or compresses, or a queue waits for its CQEs */
    bool as_notify;     /* an event wakes a thread, if the host can */
    uint32_t slot_mask; /* slot of an index: the ring's size - 1, or 0 if all go to slot 0 */
    struct eq *eq;      /* referenced */
    struct obj *uar;    /* referenced */
    uint64_t dbr;
    uint8_t status;              /* PRM_CQC_STATUS_ */
    struct cqe_session *session; /* NULL: the CQ does not compress (cqe_compress.h) */

    uint32_t pi; /* counts the CQEs that an open session holds, too */
    uint32_t ci; /* as last read from the doorbell record, 24 bits */

    uint8_t armed;          /* PRM_CQC_ST_ARMED, _SOLICITED_ARMED or 0 */
    uint8_t arm_sn;         /* sequence number of the last request */
    bool answered;          /* the last request has had its event */
    uint32_t arm_ci;        /* a CQE at or after this index counts */
    uint32_t last_notified; /* pi at the last event */
    uint32_t untold;        /* CQEs since the last event, at most CQ_INDEX_MASK */
    uint32_t last_solicit;  /* index after the last solicited CQE */

    uint32_t max_count;
    uint64_t period_ns;
    bool period_from_cqe;
    /* times; last_event_ns is set only with a moderation period */
    uint64_t last_event_ns, last_cqe_ns;
    bool strides; /* the last CQE was of a striding queue */
    struct hca_timer timer;
    struct eq_waiter waiter;
    /* the works that wait for CQEs, in the order of the indices */
    struct cq_wait *first_wait, *last_wait;
    struct work error_work; /* runs after the CQ has failed: notifies its users */
    unsigned error_space;   /* progress of error_work: number space and number */
    uint32_t error_at;
};

/* Counts a CQE that is in the ring, or in the open session. */
static inline void cq_count(struct cq *cq)
{
    cq->pi++;
    cq->untold = MIN(cq->untold + 1, CQ_INDEX_MASK);
}

/* Sets cq->unusual when one of its reasons begins or ends. */
static inline void cq_note_unusual(struct cq *cq)
{
    cq->unusual = cq->pad || cq->session || cq->first_wait;
}

/* Writes 64 bytes to the place of the cqe64 in the slot of this index. pads: writes zeros to the
 * first half of the slot, which has 128 bytes. False: the host does not answer, and the CQ has
 * failed. */
bool cq_write(struct hca *hca, struct cq *cq, uint32_t index, const void *entry, bool pads);

/* Runs the works whose CQE is there. */
void cq_wake_due(struct hca *hca, struct cq *cq);
/* The CQ has failed, or ends: runs all works that wait. */
void cq_wake_all(struct hca *hca, struct cq *cq);

#endif
