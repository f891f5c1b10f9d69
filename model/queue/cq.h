/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: rings of CQEs in host memory.
 *
 * The device keeps the producer index. It reads the consumer index from the CQ's doorbell record
 * when the ring looks full. If a CQ has no room for a CQE, it enters the overflow state, raises a
 * CQ_ERROR event (syndrome CQ_OVERRUN), and every QP on it enters the error state. There are two
 * exceptions: with cqc.oi overruns are ignored, and with cqc.cc all CQEs go to slot 0. If the ring
 * does not answer, the same happens with syndrome CQ_ACCESS_VIOLATION_ERROR.
 *
 * Arming (doorbell at UAR offset 0x20, driver: mlx5_cq_arm()) asks for one event, at the first CQE
 * of index >= ci that counts, whether it is already there or not. cqc.cq_period and cq_max_count
 * delay the event until either is reached. If one of them is 0, the event comes at once.
 */
#ifndef HCASIM_MODEL_CQ_H
#define HCASIM_MODEL_CQ_H

#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "prm/prm.h"

struct cq;
struct cqe_data;

/* Everything that a RESIZE_CQ may change (resize_field_select). */
#define CQ_RESIZE_ALL                                                                              \
    (PRM_CQ_RESIZE_LOG_CQ_SIZE | PRM_CQ_RESIZE_PAGE_OFFSET | PRM_CQ_RESIZE_LOG_PAGE_SIZE)

/* Bytes of the ring that cqc describes. Returns 0 if log_cq_size or cqe_sz is out of range. */
uint64_t cq_ring_size(const struct prm_cqc *cqc);

/* cqc is as in CREATE_CQ. buf holds a reference, which the CQ takes over only on success. */
enum syn cq_create(struct hca *hca, uint16_t uid, const struct prm_cqc *cqc, struct mem_buf *buf,
                   uint64_t dbr_addr, uint32_t *cqn);
/* Fills the cqc, including its live fields. */
enum syn cq_query(struct hca *hca, uint32_t cqn, struct prm_cqc *cqc);
/* MODIFY_CQ. field_select says which fields of cqc to change. For a resize, buf is the new ring,
 * else NULL. A resize ends the old ring with a RESIZE_CQ CQE; the next index belongs to the new
 * ring (driver: copy_resize_cqes()). */
enum syn cq_modify(struct hca *hca, uint16_t uid, uint32_t cqn, uint32_t field_select,
                   const struct prm_cqc *cqc, struct mem_buf *buf);
enum syn cq_destroy(struct hca *hca, uint16_t uid, uint32_t cqn);
void cq_free(struct hca *hca, struct obj *obj);

/* NULL: no such CQ. Objects that use the CQ count in its obj.refs (struct obj is the first
 * member). */
struct cq *cq_find(struct hca *hca, uint32_t cqn);
static inline struct obj *cq_obj(struct cq *cq)
{
    return (struct obj *)cq;
}

/*
 * Writes a CQE. cqe is the 64-byte image of a cqe64 with everything except the owner bit; op_own
 * 7:4 has the opcode. This function adds the owner bit, and a timestamp or the vendor syndrome. In
 * a CQE of 128 bytes the image is the second half. solicited: the CQE counts for a CQ that is armed
 * for solicited completions (a solicited receive, or any error). data is data that goes into the
 * CQE too (model/queue/cqe.h), or NULL; without 64 bytes of data the first half of a 128-byte CQE
 * is not written. False: the CQ has failed, now or before, and the program will see neither this
 * CQE nor the data.
 */
bool cq_post_data(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                  const struct cqe_data *data);
static inline bool cq_post(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe, bool solicited)
{
    return cq_post_data(hca, cq, cqe, solicited, NULL);
}

/* How many bytes of data a CQE of this CQ can have if a queue asks for that many: 64 (in the first
 * half of a 128-byte CQE), 32 (in the cqe64 itself) or 0. */
unsigned cq_data_room(const struct cq *cq, unsigned asked);

/* Whether the CQ has failed because it had no room. */
bool cq_has_overrun(const struct cq *cq);

/* -- cross channel: queues that wait for a CQE (model/queue/cq_wait.c) --------------------------
 */

/*
 * A work that waits until the CQ has a CQE of this index. It is on the CQ's list until the CQ has
 * the CQE, fails or ends; then it is taken off, and the work runs. The work looks again at what it
 * waits for. Zero-initialized means that it does not wait.
 */
struct cq_wait {
    struct cq *cq; /* NULL: not waiting */
    struct cq_wait *prev, *next;
    struct work *work;
    uint32_t index; /* 24 bits */
};

/* Whether the CQ has, or has had, the CQE of an index. Indices are counted from 0 at the CQ's
 * creation, modulo 2^24; an index that is up to 2^23 ahead is still to come. */
bool cq_has_had(const struct cq *cq, uint32_t index);
/* Whether the CQ takes no CQEs any more. */
bool cq_has_failed(const struct cq *cq);
/* The work waits for that CQE, which the CQ has not had. It must not wait yet. */
void cq_wait_begin(struct hca *hca, struct cq *cq, uint32_t index, struct cq_wait *wait);
/* The work waits no more. */
void cq_wait_end(struct cq_wait *wait);

/*
 * Doorbell at UAR offset 0x20: dword 0 is cmd_sn << 28 | cmd << 24 | ci, dword 1 the cqn. The
 * doorbell counts only on the UAR that cqc.uar_page names. If the sequence number is that of the
 * last answered request, the doorbell is ignored: the event already sent answers it, but software
 * has not seen that event yet.
 */
void cq_doorbell(struct hca *hca, uint32_t uarn, uint32_t dword0, uint32_t cqn);

#endif
