/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: rings of CQEs in host memory.
 *
 * The producer index is the device's; the consumer index and the arm request are read from the
 * CQ's doorbell record when they matter. A CQ without room for a CQE goes to the overflow state:
 * CQ_ERROR event (syndrome 1, CQ overrun), and every QP on it to the error state, unless cqc.oi
 * says that overruns are to be ignored.
 */
#ifndef HCASIM_MODEL_CQ_H
#define HCASIM_MODEL_CQ_H

#include "model/hca.h"

struct cq;

/* cqc as in CREATE_CQ; buf comes with one reference which the CQ takes over on success only. */
enum syn cq_create(struct hca *hca, uint16_t uid, const void *cqc, struct mem_buf *buf,
                   uint64_t dbr_addr, uint32_t *cqn);
enum syn cq_query(struct hca *hca, uint32_t cqn, void *cqc);
/* MODIFY_CQ: field_select picks from cqc; buf is the new ring for a resize, else NULL. */
enum syn cq_modify(struct hca *hca, uint16_t uid, uint32_t cqn, uint32_t field_select,
                   const void *cqc, struct mem_buf *buf);
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
 * in op_own 7:4; timestamp and owner are filled in here. solicited: it counts for a CQ armed
 * for solicited completions (solicited receive, or any error).
 */
void cq_post(struct hca *hca, struct cq *cq, void *cqe, bool solicited);

/* Doorbell at UAR offset 0x20: dword 0 is cmd_sn << 28 | cmd << 24 | ci, dword 1 the cqn. */
void cq_doorbell(struct hca *hca, uint32_t dword0, uint32_t cqn);

#endif
