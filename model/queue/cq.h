/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: rings of CQEs in host memory.
 *
 * The producer index is the device's; the consumer index is read from the CQ's doorbell record when
 * the ring looks full. A CQ without room for a CQE goes to the overflow state: CQ_ERROR event
 * (syndrome CQ_OVERRUN), and every QP on it to the error state, unless cqc.oi says that
 * overruns are to be ignored or cqc.cc that all CQEs go to slot 0. A ring that does not answer
 * does the same with CQ_ACCESS_VIOLATION_ERROR.
 *
 * Arming (doorbell at UAR offset 0x20, driver: mlx5_cq_arm()) asks for one event at the first CQE
 * of index >= ci that counts, be it there already or not. cqc.cq_period and cq_max_count hold the
 * event back until either is reached; with one of them 0 it comes at once.
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

/* Bytes of the ring that cqc describes; 0: log_cq_size or cqe_sz is out of range. */
uint64_t cq_ring_size(const struct prm_cqc *cqc);

/* cqc as in CREATE_CQ; buf comes with one reference which the CQ takes over on success only. */
enum syn cq_create(struct hca *hca, uint16_t uid, const struct prm_cqc *cqc, struct mem_buf *buf,
                   uint64_t dbr_addr, uint32_t *cqn);
/* The cqc with its live fields. */
enum syn cq_query(struct hca *hca, uint32_t cqn, struct prm_cqc *cqc);
/* MODIFY_CQ: field_select picks from cqc; buf is the new ring for a resize, else NULL. A resize
 * ends the old ring with a RESIZE_CQ CQE; the next index is the new ring's (driver:
 * copy_resize_cqes()). */
enum syn cq_modify(struct hca *hca, uint16_t uid, uint32_t cqn, uint32_t field_select,
                   const struct prm_cqc *cqc, struct mem_buf *buf);
enum syn cq_destroy(struct hca *hca, uint16_t uid, uint32_t cqn);
void cq_free(struct hca *hca, struct obj *obj);

/* NULL: no such CQ. Holders count themselves in obj.refs (struct obj is the first member). */
struct cq *cq_find(struct hca *hca, uint32_t cqn);
static inline struct obj *cq_obj(struct cq *cq)
{
    return (struct obj *)cq;
}

/*
 * Writes a CQE: cqe is the 64-byte cqe64 image with everything but the owner bit, opcode included
 * in op_own 7:4; timestamp or vendor syndrome, and owner, are filled in here. solicited: it counts
 * for a CQ armed for solicited completions (solicited receive, or any error). With CQEs of 128
 * bytes it is the second half. data, or NULL: what goes into the CQE beside (model/queue/cqe.h);
 * else the first half is left as it is. False: the CQ has failed, now or before, and nobody will
 * see this CQE or the data.
 */
bool cq_post_data(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                  const struct cqe_data *data);
static inline bool cq_post(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe, bool solicited)
{
    return cq_post_data(hca, cq, cqe, solicited, NULL);
}

/* Of so many bytes of data that a queue asks for, as many as a CQE of this CQ can have: 64 (in the
 * first half of one of 128), 32 (in itself) or 0. */
unsigned cq_data_room(const struct cq *cq, unsigned asked);

/* Whether it failed for want of room. */
bool cq_has_overrun(const struct cq *cq);

/*
 * Doorbell at UAR offset 0x20: dword 0 is cmd_sn << 28 | cmd << 24 | ci, dword 1 the cqn. Taken
 * only from the UAR that cqc.uar_page names. A request whose sequence number is that of the last
 * event is ignored: that event is its answer, software has not seen it yet.
 */
void cq_doorbell(struct hca *hca, uint32_t uarn, uint32_t dword0, uint32_t cqn);

#endif
