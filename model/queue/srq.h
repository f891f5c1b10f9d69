/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: linked lists of WQEs in host memory (srqc, xrc_srqc and rmpc with wq_type
 * linked list), taken from by many QPs.
 *
 * Each slot begins with wqe_srq_next_seg, which names the next slot; the producer counter in the
 * doorbell record counts what was posted. When fewer than lwm WQEs are left and the SRQ is armed
 * (ARM_RQ), SRQ_RQ_LIMIT (event 0x14) is raised once.
 *
 * SRQ, XRC SRQ and RMP share one number space (hca->srqs), because qpc.srqn_rmpn_xrqn names any of
 * them. States: good, and error once the list or the doorbell record makes no sense
 * (SRQ_CATAS_ERROR, event 0x12); an SRQ in error yields no WQE until it is destroyed.
 */
#ifndef HCASIM_MODEL_SRQ_H
#define HCASIM_MODEL_SRQ_H

#include "model/memory/mem.h"
#include "model/queue/wq.h"

struct cq;

/* The user index that asks for CQEs of version 0, which name an SRQN or QPN (the driver's
 * MLX5_IB_DEFAULT_UIDX). */
#define USER_INDEX_CQE_V0 0xffffff

/* What CREATE_SRQ, CREATE_XRC_SRQ and CREATE_RMP have in common once their contexts are read. */
struct srq_attr {
    uint16_t uid;
    uint8_t kind; /* OBJ_SRQ, OBJ_XRC_SRQ or OBJ_RMP */
    uint32_t pdn;
    uint8_t log_size, log_stride; /* slots; bytes of a slot (5 or more) */
    struct mem_buf buf;           /* one reference, taken over on success */
    uint64_t offset, dbr;
    bool has_signature; /* the next segment's signature field is kept, and not checked */
    uint16_t lwm;       /* not 0: armed from the start */
    uint8_t log_page_size, page_offset; /* as in the context, for queries only */
    /* basic SRQ and RMP leave these 0 */
    uint32_t xrcdn, cqn, user_index;
};

struct srq {
    struct obj obj;       /* num is the SRQN; refs counts the QPs that name it */
    struct srq_attr attr; /* as created; buf is owned here */
    struct wq wq;         /* the list; ci counts WQEs taken, its buffer is attr.buf */
    uint16_t head;        /* slot to be taken next */
    uint16_t lwm;         /* 0: not armed */
    bool error;
    struct obj *pd, *xrcd; /* counted; xrcd may be NULL */
    struct cq *cq;         /* XRC: of receive completions; counted, else NULL */
};

enum syn srq_create(struct hca *hca, const struct srq_attr *attr, struct srq **srq);
struct srq *srq_find(struct hca *hca, uint32_t srqn);
/* ARM_RQ with op_mod SRQ, ARM_XRC_SRQ, MODIFY_RMP: sets lwm; 0 disarms. If fewer than lwm are
 * posted already the event is raised at once. */
enum syn srq_arm(struct hca *hca, struct srq *srq, uint16_t lwm);
/* kind must be that of the SRQ: each command destroys its own sort only. */
enum syn srq_destroy(struct hca *hca, uint16_t uid, uint32_t srqn, uint8_t kind);
void srq_free(struct hca *hca, struct obj *obj);
void srq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

/* To the error state, with its event. An XRC SRQ goes there with its CQ too. */
void srq_fail(struct hca *hca, struct srq *srq, const char *why);

/* Reads the WQE in slot index, and the slot that it says is next (NULL: not asked for). One that
 * makes no sense is the end of the SRQ. */
enum recv_result srq_read(struct hca *hca, struct srq *srq, uint32_t index, struct recv_wqe *wqe,
                          uint32_t *next);
/* Takes the WQE at the head of the list. wqe->index is the slot. */
enum recv_result srq_take(struct hca *hca, struct srq *srq, struct recv_wqe *wqe);

#endif
