/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements shared receive queues: the list or ring of WQEs, the limit event, and the error state.
 *
 * The next pointer of a slot is read when the slot is taken. By then software has set it, since it
 * reads the pointer itself to know where the following WQE goes (driver: post_srq_recv). If a
 * pointer or a counter is invalid, the SRQ raises SRQ_CATAS_ERROR, once.
 */
#include <string.h>
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/queue/srq.h"
#include "prm/prm.h"

#define SRQ_MIN_LOG_STRIDE 4  /* one data segment; with a next segment, one more */
#define SRQ_MAX_LOG_STRIDE 10 /* WQE_MAX_BYTES */

void srq_fail(struct hca *hca, struct srq *srq, const char *why)
{
    hca_log(hca, HCA_LOG_GUEST_ERROR, "SRQ 0x%x: %s", srq->obj.num, why);
    srq->error = true;
    srq->lwm = 0;
    if (srq->tags) {
        struct prm_xrq_error_event data[1] = {0};

        PRM_SET(xrq_error_event, data, xrqn, srq->obj.num);
        eq_async(hca, PRM_EVENT_TYPE_XRQ_ERROR, 0, data);
        return;
    }
    eq_async_qp(hca, PRM_EVENT_TYPE_SRQ_CATAS_ERROR, 0, srq->obj.num);
}

static void srq_check_limit(struct hca *hca, struct srq *srq)
{
    if (srq->lwm && wq_posted(&srq->wq) < srq->lwm) {
        srq->lwm = 0;
        eq_async_qp(hca, PRM_EVENT_TYPE_SRQ_RQ_LIMIT, 0, srq->obj.num);
    }
}

static bool srq_tags_ok(const struct prm_tag_matching_topology_context *tags)
{
    uint32_t log_size = PRM_GET(tag_matching_topology_context, tags, log_matching_list_sz);

    return log_size <= TAG_LIST_LOG_MAX &&
           PRM_GET(tag_matching_topology_context, tags, append_next_index) < 1u << log_size;
}

static void srq_count_refs(struct srq *srq, int by)
{
    obj_count(&srq->obj, srq->pd, by);
    obj_count(&srq->obj, srq->xrcd, by);
    obj_count(&srq->obj, srq->cq ? cq_obj(srq->cq) : NULL, by);
}

enum syn srq_create(struct hca *hca, const struct srq_attr *attr, struct srq **out)
{
    struct obj *pd = obj_find(&hca->pds, attr->pdn);
    struct obj *xrcd = NULL;
    struct cq *cq = NULL;
    struct srq *srq;

    if (attr->log_size > hca->limits.log_max_srq_sz ||
        attr->log_stride < SRQ_MIN_LOG_STRIDE + (attr->form != SRQ_RING_BASIC) ||
        attr->log_stride > SRQ_MAX_LOG_STRIDE || 1u << attr->log_stride > hca->limits.max_rq_wqe) {
        return SYN_SRQ_SIZE;
    }
    if (attr->offset > attr->buf.size ||
        1ULL << (attr->log_size + attr->log_stride) > attr->buf.size - attr->offset) {
        return SYN_BAD_PAS;
    }
    if (!pd || !uid_may_use(pd, attr->uid)) {
        return SYN_SRQ_PD;
    }
    if (attr->kind == OBJ_XRC_SRQ) {
        xrcd = obj_find(&hca->xrcds, attr->xrcdn);
        if (!xrcd || !uid_may_use(xrcd, attr->uid)) {
            return SYN_SRQ_XRCD;
        }
    }
    if (attr->kind == OBJ_XRC_SRQ || attr->kind == OBJ_XRQ) {
        cq = cq_find(hca, attr->cqn);
        if (!cq || !uid_may_use(cq_obj(cq), attr->uid)) {
            return SYN_SRQ_CQ;
        }
    }
    if (attr->tags && !srq_tags_ok(attr->tags)) {
        return SYN_XRQ_TAGS;
    }

    srq = obj_make(hca, attr->kind, attr->uid, sizeof(*srq));
    if (!srq) {
        return SYN_NO_MEMORY;
    }
    if (attr->tags) {
        srq->tags = tag_list_new(hca, attr->tags);
        if (!srq->tags) {
            obj_end(hca, &srq->obj);
            return SYN_NO_MEMORY;
        }
    }
    srq->attr = *attr;
    srq->attr.tags = NULL; /* belongs to the command */
    mem_buf_take(&srq->obj, &srq->attr.buf, &attr->buf);
    srq->wq = (struct wq){
        .buf = attr->buf,
        .offset = attr->offset,
        .log_size = attr->log_size,
        .log_stride = attr->log_stride,
        .dbr = attr->dbr,
    };
    srq->lwm = attr->lwm;
    srq->pd = pd;
    srq->xrcd = xrcd;
    srq->cq = cq;
    srq_count_refs(srq, 1);
    *out = srq;
    return SYN_OK;
}

struct srq *srq_find(struct hca *hca, uint32_t srqn)
{
    return (struct srq *)obj_find(&hca->srqs, srqn);
}

enum syn srq_arm(struct hca *hca, struct srq *srq, uint16_t lwm)
{
    if (srq->error) {
        return SYN_SRQ_STATE;
    }
    if (lwm > 1u << srq->wq.log_size) {
        return SYN_SRQ_LIMIT;
    }
    srq->lwm = lwm;
    if (lwm && !wq_update_pi(hca, &srq->wq)) {
        srq_fail(hca, srq, "doorbell record is unreadable or impossible");
        return SYN_OK;
    }
    srq_check_limit(hca, srq);
    return SYN_OK;
}

enum syn srq_destroy(struct hca *hca, uint16_t uid, uint32_t srqn, uint8_t kind)
{
    struct srq *srq = srq_find(hca, srqn);

    if (!srq || srq->obj.kind != kind) {
        return SYN_SRQ_NUM;
    }
    if (!uid_owns(&srq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (srq->obj.refs) {
        return SYN_IN_USE;
    }
    obj_class(&srq->obj)->free(hca, &srq->obj);
    return SYN_OK;
}

void srq_free(struct hca *hca, struct obj *obj)
{
    struct srq *srq = (struct srq *)obj;

    srq_count_refs(srq, -1);
    tag_list_free(hca, srq->tags);
    mem_buf_drop(obj, &srq->attr.buf);
    obj_end(hca, obj);
}

/* The SRQ fails with its own CQ. Other QPs on the SRQ fail with their next message. */
void srq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq)
{
    struct srq *srq = (struct srq *)obj;

    if (srq->cq == cq && !srq->error) {
        srq_fail(hca, srq, "its CQ failed");
    }
}

enum recv_result srq_read(struct hca *hca, struct srq *srq, uint32_t index, struct recv_wqe *wqe,
                          uint32_t *next)
{
    struct {
        struct prm_wqe_srq_next_seg next[1];
        struct prm_wqe_data_seg data[WQE_MAX_BYTES / PRM_SIZE(wqe_data_seg) - 1];
    } slot;
    size_t len = 1ULL << srq->wq.log_stride;

    if (srq->attr.form == SRQ_RING_BASIC) {
        if (rq_read(hca, &srq->wq, index, false, wqe) != RECV_OK) {
            srq_fail(hca, srq, "WQE is unreadable or malformed");
            return RECV_ERROR;
        }
        return RECV_OK;
    }
    if (!wq_read(hca, &srq->wq, index, &slot, len) ||
        !recv_wqe_parse(wqe, slot.data, len - sizeof(slot.next), false)) {
        srq_fail(hca, srq, "WQE is unreadable or malformed");
        return RECV_ERROR;
    }
    wqe->index = index;
    if (next) {
        *next = PRM_GET(wqe_srq_next_seg, slot.next, next_wqe_index);
    }
    return RECV_OK;
}

/* The head of the list. The slot that the WQE names as next becomes the head when it is taken. */
static enum recv_result srq_peek_head(struct hca *hca, struct srq *srq, struct recv_wqe *wqe,
                                      uint32_t *next)
{
    if (srq_read(hca, srq, srq->head, wqe, next) != RECV_OK) {
        return RECV_ERROR;
    }
    if (*next >= 1u << srq->wq.log_size) {
        srq_fail(hca, srq, "next WQE lies outside the queue");
        return RECV_ERROR;
    }
    return RECV_OK;
}

enum recv_result srq_peek(struct hca *hca, struct srq *srq, struct recv_wqe *wqe, uint32_t *next)
{
    if (srq->error) {
        return RECV_ERROR;
    }
    if (wq_posted(&srq->wq) == 0 && !wq_update_pi(hca, &srq->wq)) {
        srq_fail(hca, srq, "doorbell record is unreadable or impossible");
        return RECV_ERROR;
    }
    if (wq_posted(&srq->wq) == 0) {
        return RECV_EMPTY;
    }
    return srq->attr.form == SRQ_LIST ? srq_peek_head(hca, srq, wqe, next)
                                      : srq_read(hca, srq, srq->wq.ci & 0xffff, wqe, NULL);
}

void srq_advance(struct hca *hca, struct srq *srq, uint32_t next)
{
    if (srq->attr.form == SRQ_LIST) {
        srq->head = (uint16_t)next;
    }
    srq->wq.ci++;

    /* Software may have posted more WQEs since the doorbell record was last read. */
    if (srq->lwm && wq_posted(&srq->wq) < srq->lwm && !wq_update_pi(hca, &srq->wq)) {
        srq_fail(hca, srq, "doorbell record is unreadable or impossible");
    } else {
        srq_check_limit(hca, srq);
    }
}

enum recv_result srq_take(struct hca *hca, struct srq *srq, struct recv_wqe *wqe)
{
    uint32_t next = 0;
    enum recv_result result = srq_peek(hca, srq, wqe, &next);

    if (result == RECV_OK) {
        srq_advance(hca, srq, next);
    }
    return result;
}
