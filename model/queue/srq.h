/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues (srqc, xrc_srqc, rmpc, xrqc): WQEs in host memory, taken from by many QPs.
 *
 * Each slot begins with wqe_srq_next_seg. In a linked list it names the next slot; a ring (wq_type
 * cyclic) is taken from slot by slot, whatever it says, and one of basic WQEs
 * (basic_cyclic_rcv_wqe) has data segments alone. The producer counter in the doorbell record
 * counts what was posted. When fewer than lwm WQEs are left and the SRQ is armed
 * (ARM_RQ), SRQ_RQ_LIMIT (event 0x14) is raised once.
 *
 * An XRQ is an SRQ with a tag list (model/queue/tag_list.h): a message that matches an entry there
 * takes that, any other a WQE (model/rdma/tags.h).
 *
 * SRQ, XRC SRQ, RMP and XRQ share one number space (hca->srqs), because qpc.srqn_rmpn_xrqn names
 * any of them. States: good, and error once the list or the doorbell record makes no sense
 * (SRQ_CATAS_ERROR, event 0x12; of an XRQ XRQ_ERROR, 0x18); an SRQ in error yields no WQE until it
 * is destroyed.
 */
#ifndef HCASIM_MODEL_SRQ_H
#define HCASIM_MODEL_SRQ_H

#include "model/memory/mem.h"
#include "model/queue/tag_list.h"
#include "model/queue/wq.h"

struct cq;
struct xrq_dci;

/* The user index that asks for CQEs of version 0, which name an SRQN or QPN (the driver's
 * MLX5_IB_DEFAULT_UIDX). */
#define USER_INDEX_CQE_V0 0xffffff

enum srq_form {
    SRQ_LIST,
    SRQ_RING,
    SRQ_RING_BASIC, /* without next segments */
};

/* What CREATE_SRQ, CREATE_XRC_SRQ, CREATE_RMP and CREATE_XRQ have in common once their contexts are
 * read. */
struct srq_attr {
    uint16_t uid;
    uint8_t kind; /* OBJ_SRQ, OBJ_XRC_SRQ, OBJ_RMP or OBJ_XRQ */
    uint32_t pdn;
    uint8_t log_size, log_stride; /* slots; bytes of a slot (5 or more) */
    struct mem_buf buf;           /* one reference, taken over on success */
    uint64_t offset, dbr;
    enum srq_form form;
    bool has_signature; /* the next segment's signature field is kept, and not checked */
    uint16_t lwm;       /* not 0: armed from the start */
    uint8_t log_page_size, page_offset; /* as in the context, for queries only */
    /* basic SRQ and RMP leave these 0 */
    uint32_t xrcdn, cqn, user_index;
    /* XRQ: what its tag list begins with; it fetches the data of rendezvous by itself */
    const struct prm_tag_matching_topology_context *tags;
    bool fetches;
    bool dc; /* over DC, too, as SET_XRQ_DC_PARAMS_ENTRY says */
};

struct srq {
    struct obj obj;       /* num is the SRQN; refs counts the QPs that name it */
    struct srq_attr attr; /* as created; buf is owned here */
    struct wq wq;         /* the list; ci counts WQEs taken, its buffer is attr.buf */
    uint16_t head;        /* of a list: slot to be taken next */
    uint16_t lwm;         /* 0: not armed */
    bool error;
    struct obj *pd, *xrcd; /* counted; xrcd may be NULL */
    struct cq *cq;         /* XRC SRQ, XRQ: of receive completions; counted, else NULL */
    struct tag_list *tags; /* of an XRQ, else NULL */
    struct xrq_dci *dci;   /* the initiators by which it fetches over DC, or NULL: a list
                            * (model/rdma/xrq_dci.h) */
};

/* What the CQEs of one that has a CQ carry as srqn: its user index, or with CQEs of version 0 its
 * number. */
static inline uint32_t srq_cqe_srqn(const struct srq *srq)
{
    return srq->attr.user_index != USER_INDEX_CQE_V0 ? srq->attr.user_index : srq->obj.num;
}

enum syn srq_create(struct hca *hca, const struct srq_attr *attr, struct srq **srq);
struct srq *srq_find(struct hca *hca, uint32_t srqn);
/* ARM_RQ, ARM_XRC_SRQ, ARM_XRQ, MODIFY_RMP: sets lwm; 0 disarms. If fewer than lwm are
 * posted already the event is raised at once. */
enum syn srq_arm(struct hca *hca, struct srq *srq, uint16_t lwm);
/* kind must be that of the SRQ: each command destroys its own sort only. */
enum syn srq_destroy(struct hca *hca, uint16_t uid, uint32_t srqn, uint8_t kind);
void srq_free(struct hca *hca, struct obj *obj);
void srq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

/* To the error state, with its event. An XRC SRQ or XRQ goes there with its CQ too. */
void srq_fail(struct hca *hca, struct srq *srq, const char *why);

/* Reads the WQE in slot index, and the slot that it says is next (NULL: not asked for). One that
 * makes no sense is the end of the SRQ. */
enum recv_result srq_read(struct hca *hca, struct srq *srq, uint32_t index, struct recv_wqe *wqe,
                          uint32_t *next);
/* Takes the WQE that is next. wqe->index is the slot; of a ring it counts on, modulo 2^16. */
enum recv_result srq_take(struct hca *hca, struct srq *srq, struct recv_wqe *wqe);

#endif
