/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues (srqc, xrc_srqc, rmpc, xrqc): WQEs in host memory that many QPs take.
 *
 * Each slot begins with a wqe_srq_next_seg. In a linked list this segment names the next slot. A
 * ring (wq_type cyclic) is taken slot by slot, whatever the segment says. The slots of a ring of
 * basic WQEs (basic_cyclic_rcv_wqe) have only data segments. The producer counter in the doorbell
 * record counts the posted WQEs. When fewer than lwm WQEs are left and the SRQ is armed (ARM_RQ),
 * SRQ_RQ_LIMIT (event 0x14) is raised once.
 *
 * An XRQ is an SRQ with a tag list (model/queue/tag_list.h). A message that matches an entry of the
 * list takes that entry, any other message takes a WQE (model/rdma/tags.h).
 *
 * SRQ, XRC SRQ, RMP and XRQ share one number space (hca->srqs), because qpc.srqn_rmpn_xrqn names
 * any of them. An SRQ has two states: good, and error. It enters the error state when the list or
 * the doorbell record is invalid (SRQ_CATAS_ERROR, event 0x12; for an XRQ XRQ_ERROR, 0x18). An SRQ
 * in error yields no WQE until it is destroyed.
 */
#ifndef HCASIM_MODEL_SRQ_H
#define HCASIM_MODEL_SRQ_H

#include "model/memory/mem.h"
#include "model/queue/tag_list.h"
#include "model/queue/wq.h"

struct cq;
struct xrq_dci;

/* The user index that asks for CQEs of version 0, which carry an SRQN or QPN (the driver's
 * MLX5_IB_DEFAULT_UIDX). */
#define USER_INDEX_CQE_V0 0xffffff

enum srq_form {
    SRQ_LIST,
    SRQ_RING,
    SRQ_RING_BASIC, /* without next segments */
};

/* The common parameters of CREATE_SRQ, CREATE_XRC_SRQ, CREATE_RMP and CREATE_XRQ. */
struct srq_attr {
    uint16_t uid;
    uint8_t kind; /* OBJ_SRQ, OBJ_XRC_SRQ, OBJ_RMP or OBJ_XRQ */
    uint32_t pdn;
    /* log2 of the number of slots; log2 of a slot's bytes (4 or more) */
    uint8_t log_size, log_stride;
    struct mem_buf buf; /* holds a reference, which the SRQ takes over on success */
    uint64_t offset, dbr;
    enum srq_form form;
    bool has_signature; /* the next segment's signature field is kept, and not checked */
    uint16_t lwm;       /* limit; not 0: armed from the start */
    uint8_t log_page_size, page_offset; /* as in the context, for queries only */
    /* 0 for basic SRQ and RMP */
    uint32_t xrcdn, cqn, user_index;
    /* XRQ: the initial state of its tag list. fetches: it fetches the data of rendezvous itself. */
    const struct prm_tag_matching_topology_context *tags;
    bool fetches;
    bool dc; /* fetches over DC, too (SET_XRQ_DC_PARAMS_ENTRY) */
};

struct srq {
    struct obj obj;       /* num is the SRQN; refs counts the QPs that use it */
    struct srq_attr attr; /* as created; its buf is the owner of the ring */
    struct wq wq;         /* the list or ring: ci counts the WQEs taken; its buffer is attr.buf */
    uint16_t head;        /* of a list: the slot to be taken next */
    uint16_t lwm;         /* 0: not armed */
    bool error;
    struct obj *pd, *xrcd; /* referenced; xrcd may be NULL */
    struct cq *cq;         /* XRC SRQ, XRQ: the CQ of receive completions, referenced; else NULL */
    struct tag_list *tags; /* of an XRQ, else NULL */
    /* list of the initiators that fetch over DC (model/rdma/xrq_dci.h), or NULL */
    struct xrq_dci *dci;
};

/* The srqn in the CQEs of an SRQ that has a CQ: its user index, or its number with CQEs of version
 * 0. */
static inline uint32_t srq_cqe_srqn(const struct srq *srq)
{
    return srq->attr.user_index != USER_INDEX_CQE_V0 ? srq->attr.user_index : srq->obj.num;
}

enum syn srq_create(struct hca *hca, const struct srq_attr *attr, struct srq **srq);
struct srq *srq_find(struct hca *hca, uint32_t srqn);
/* ARM_RQ, ARM_XRC_SRQ, ARM_XRQ, MODIFY_RMP: sets lwm; 0 disarms. If fewer than lwm WQEs are posted
 * already, the event is raised at once. */
enum syn srq_arm(struct hca *hca, struct srq *srq, uint16_t lwm);
/* kind must be the kind of the SRQ, because each command destroys only its own kind. */
enum syn srq_destroy(struct hca *hca, uint16_t uid, uint32_t srqn, uint8_t kind);
void srq_free(struct hca *hca, struct obj *obj);
void srq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

/* Puts the SRQ into the error state and raises its event. An XRC SRQ or XRQ also enters it when its
 * CQ fails. */
void srq_fail(struct hca *hca, struct srq *srq, const char *why);

/* Reads the WQE in slot index. *next receives the next slot that the WQE names; next may be NULL.
 * If the WQE is invalid, the SRQ fails. */
enum recv_result srq_read(struct hca *hca, struct srq *srq, uint32_t index, struct recv_wqe *wqe,
                          uint32_t *next);
/* Reads the WQE that is the next to be taken. *next receives what srq_advance() needs to take it.
 * If the WQE or the doorbell record is invalid, the SRQ fails. */
enum recv_result srq_peek(struct hca *hca, struct srq *srq, struct recv_wqe *wqe, uint32_t *next);
void srq_advance(struct hca *hca, struct srq *srq, uint32_t next);
/* Takes the next WQE. wqe->index is its slot; in a ring the index runs on modulo 2^16. */
enum recv_result srq_take(struct hca *hca, struct srq *srq, struct recv_wqe *wqe);

#endif
