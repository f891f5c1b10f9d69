/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: linked lists of WQEs in host memory (srqc, xrc_srqc and rmpc with wq_type
 * linked list), taken from by many QPs.
 *
 * Each slot begins with wqe_srq_next_seg, which names the next slot; the producer counter in the doorbell
 * record counts what was posted. When fewer than lwm WQEs are left and the SRQ is armed (ARM_RQ),
 * SRQ_LIMIT_REACHED (event 0x14) is raised once.
 */
#ifndef HCASIM_MODEL_SRQ_H
#define HCASIM_MODEL_SRQ_H

#include "model/wq.h"

struct srq;

/* What CREATE_SRQ, CREATE_XRC_SRQ and CREATE_RMP have in common once their contexts are read. */
struct srq_attr {
    uint16_t uid;
    uint32_t pdn;
    uint8_t log_size, log_stride;
    struct mem_buf buf; /* one reference, taken over on success */
    uint64_t offset, dbr;
    bool has_signature;
    uint16_t lwm;
    /* basic SRQ and RMP leave these 0 */
    bool is_xrc;
    uint32_t xrcdn, cqn, user_index;
};

enum syn srq_create(struct hca *hca, const struct srq_attr *attr, struct srq **srq);
struct srq *srq_find(struct hca *hca, uint32_t srqn);
/* ARM_RQ with op_mod SRQ: sets lwm; 0 disarms. */
enum syn srq_arm(struct hca *hca, struct srq *srq, uint16_t lwm);
enum syn srq_destroy(struct hca *hca, uint16_t uid, uint32_t srqn);
void srq_free(struct hca *hca, struct obj *obj);

/* Takes the WQE at the head of the list. */
enum recv_result srq_take(struct hca *hca, struct srq *srq, struct recv_wqe *wqe);

#endif
