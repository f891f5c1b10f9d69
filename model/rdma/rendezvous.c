/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the WQEs of rendezvous when they are fetched, from their entries of the tag list. */
#include <string.h>
#include "model/rdma/qp.h"
#include "model/rdma/rendezvous.h"
#include "model/rdma/tags.h"

#define IS_FIN   0x8000 /* flag in a ring entry: FIN, not READ */
#define DS_BYTES 16
#define WQE_MOST 128 /* most bytes of a WQE here */

static struct tag_entry *rendezvous_entry(const struct qp *qp, uint16_t slot)
{
    return &qp->srq->tags->entries[slot & ~IS_FIN];
}

static uint16_t *rendezvous_slot(struct rendezvous *r, uint16_t index)
{
    return &r->ring[index & (r->source.most - 1)];
}

static void rendezvous_post(struct qp *qp, struct rendezvous *r, uint16_t slot)
{
    *rendezvous_slot(r, r->source.end) = slot;
    r->source.end++;
    wqe_source_kick(qp);
}

/* Writes the segments of a READ. Returns the end of the segments. */
static void *rendezvous_make_read(const struct tag_entry *entry, void *seg)
{
    uint32_t len = PRM_GET(rvh, entry->rvh, len);

    PRM_SET(wqe_raddr_seg, seg, raddr, PRM_GET(rvh, entry->rvh, va));
    PRM_SET(wqe_raddr_seg, seg, rkey, PRM_GET(rvh, entry->rvh, rkey));
    seg += PRM_SIZE(wqe_raddr_seg);
    if (!len) {
        return seg; /* a data segment of length 0 would mean 2 GiB */
    }
    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, entry->buffer.lkey);
    PRM_SET(wqe_data_seg, seg, addr, entry->buffer.va);
    return seg + PRM_SIZE(wqe_data_seg);
}

static void *rendezvous_make_fin(const struct tag_entry *entry, void *seg)
{
    struct prm_tmh *tmh = PRM_PTR(wqe_inline_seg, seg, data);
    struct prm_rvh *rvh = (void *)(tmh + 1);

    PRM_SET(wqe_inline_seg, seg, inl, 1);
    PRM_SET(wqe_inline_seg, seg, byte_count, sizeof(*tmh) + sizeof(*rvh));
    memcpy(tmh, entry->tmh, sizeof(*tmh));
    memcpy(rvh, entry->rvh, sizeof(*rvh));
    PRM_SET(tmh, tmh, op, PRM_TM_OP_FIN);
    return rvh + 1;
}

static uint8_t rendezvous_fetch(struct wqe_source *source, struct qp *qp, uint16_t index,
                                struct send_wqe *wqe)
{
    struct rendezvous *r = (struct rendezvous *)source;
    uint16_t slot = *rendezvous_slot(r, index);
    const struct tag_entry *entry = rendezvous_entry(qp, slot);
    void *seg = wqe->image + PRM_SIZE(wqe_ctrl_seg);
    size_t len;

    memset(wqe->image, 0, WQE_MOST);
    if (r->to) {
        memcpy(seg, &r->to[slot & ~IS_FIN], PRM_SIZE(wqe_av));
        seg += PRM_SIZE(wqe_av);
    }
    seg = slot & IS_FIN ? rendezvous_make_fin(entry, seg) : rendezvous_make_read(entry, seg);
    len = (size_t)((uint8_t *)seg - wqe->image);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, opcode,
            slot & IS_FIN ? PRM_WQE_OPCODE_SEND : PRM_WQE_OPCODE_RDMA_READ);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, wqe_index, index);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, qpn, qp->obj.num);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ds, (len + DS_BYTES - 1) / DS_BYTES);
    return send_wqe_decode(&qp->req.limits, index, wqe);
}

static void rendezvous_ended(struct wqe_source *source, struct qp *qp, uint16_t index,
                             uint8_t syndrome)
{
    struct rendezvous *r = (struct rendezvous *)source;
    uint16_t slot = *rendezvous_slot(r, index);

    r->oldest = (uint16_t)(index + 1);
    if (slot & IS_FIN) {
        tags_complete(qp, slot & ~IS_FIN);
    } else if (syndrome) {
        tags_cancel(qp, slot);
    } else {
        rendezvous_post(qp, r, slot | IS_FIN);
    }
}

static const struct wqe_source_ops rendezvous_ops = {
    .fetch = rendezvous_fetch,
    .ended = rendezvous_ended,
};

static size_t rendezvous_bytes(const struct rendezvous *r)
{
    return r->source.most * sizeof(*r->ring);
}

static size_t rendezvous_to_bytes(const struct rendezvous *r)
{
    return r->source.most * sizeof(*r->to);
}

bool rendezvous_init(struct qp *qp, struct rendezvous *r)
{
    r->source.ops = &rendezvous_ops;
    r->source.most = (uint16_t)(1u << qp->srq->tags->log_size);
    r->ring = qp_alloc(qp, rendezvous_bytes(r));
    if (r->ring && qp->service->dynamic) {
        r->to = qp_alloc(qp, rendezvous_to_bytes(r));
    }
    if (!r->ring || (qp->service->dynamic && !r->to)) {
        return false;
    }
    wqe_source_attach(qp, &r->source);
    return true;
}

void rendezvous_clear(struct qp *qp, struct rendezvous *r)
{
    qp_dealloc(qp, r->ring, rendezvous_bytes(r));
    qp_dealloc(qp, r->to, rendezvous_to_bytes(r));
    if (qp->req.device == &r->source) {
        qp->req.device = NULL;
    }
}

void rendezvous_begin(struct qp *qp, struct rendezvous *r, uint16_t handle)
{
    rendezvous_post(qp, r, handle);
}

unsigned rendezvous_pending(const struct rendezvous *r)
{
    return (uint16_t)(r->source.end - r->oldest);
}

bool rendezvous_is_idle(const struct rendezvous *r)
{
    return r->oldest == r->source.end;
}

void rendezvous_reset(struct qp *qp, struct rendezvous *r)
{
    while (r->oldest != r->source.end) {
        uint16_t slot = *rendezvous_slot(r, r->oldest++);

        if (slot & IS_FIN) {
            tags_complete(qp, slot & ~IS_FIN);
        } else {
            tags_cancel(qp, slot);
        }
    }
    r->source.next = r->source.end;
}
