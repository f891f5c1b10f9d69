/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements receive queues whose WQEs begin with a next segment: linked lists (wq_type 0 and 2),
 * and striding queues (2 and 3), whose WQEs take many frames. A ring of striding WQEs has the
 * segment, too, but does not use it (DPDK: struct mlx5_wqe_mprq).
 *
 * A striding WQE describes memory of 2^log_num strides of 2^log_size bytes. A frame begins at a
 * stride and takes as many as it needs, all of one WQE. Its CQE names the WQE (wqe_id: the slot of
 * a list, the index in a ring), the first stride (wqe_counter) and the number of strides (byte_cnt
 * 30:16). Software frees a WQE when CQEs have reported all its strides. So if a frame does not fit
 * into the rest of a WQE, a filler CQE reports the rest, and the frame goes into the next WQE
 * (driver: mlx5e_handle_rx_cqe_mpwrq(), DPDK: mlx5_rx_burst_mprq()). The filler is written even if
 * no next WQE is posted, because software may not post one before the WQE is free. If a WQE has
 * less memory than its strides, and a frame reaches beyond it, the queue fails: dropped frames
 * would leave the WQE open for ever.
 *
 * The device reads a WQE once, for its first frame, as into the WQE cache of a card. Later
 * writes of software into it have no effect. All lengths are checked against that copy.
 */
#include <string.h>
#include "model/eth/eth_stride.h"
#include "model/queue/cqe.h"

enum {
    STRIDES_BASE = 9, /* log_wqe_num_of_strides is a number of 4 bits with sign, less this */
    STRIDES_MOST = 7, /* its greatest value */
    STRIDE_SIZE_BASE = 6,
    TWO_BYTES = 2,
    LINKED_MIN_LOG = 5, /* next segment and one data segment */
};

static bool eth_stride_is_striding(uint32_t type)
{
    return type == PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ || type == PRM_WQ_TYPE_CYCLIC_STRIDING_RQ;
}

bool eth_stride_ok(const struct prm_wq *wq)
{
    uint32_t type = PRM_GET(wq, wq, wq_type), num = PRM_GET(wq, wq, log_wqe_num_of_strides);

    if (type == PRM_WQ_TYPE_CYCLIC) {
        return true;
    }
    return type <= PRM_WQ_TYPE_CYCLIC_STRIDING_RQ &&
           PRM_GET(wq, wq, log_wq_stride) >= LINKED_MIN_LOG &&
           (!eth_stride_is_striding(type) || num <= STRIDES_MOST || num >= 16 - 6);
}

enum syn eth_stride_init(struct hca *hca, struct eth_rq *rq, const struct prm_wq *wq)
{
    uint32_t type = PRM_GET(wq, wq, wq_type), num = PRM_GET(wq, wq, log_wqe_num_of_strides);
    struct eth_strides *s;

    if (type == PRM_WQ_TYPE_CYCLIC) {
        return SYN_OK;
    }
    s = hca_alloc(hca, OBJ_RQ, sizeof(*s));
    if (!s) {
        return SYN_NO_MEMORY;
    }
    s->linked = type == PRM_WQ_TYPE_LINKED_LIST || type == PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ;
    if (eth_stride_is_striding(type)) {
        s->log_num = (uint8_t)(STRIDES_BASE + num - (num > STRIDES_MOST ? 16 : 0));
        s->log_size = (uint8_t)(STRIDE_SIZE_BASE + PRM_GET(wq, wq, log_wqe_stride_size));
        s->shift = PRM_GET(wq, wq, two_byte_shift_en) ? TWO_BYTES : 0;
    }
    rq->strides = s;
    return SYN_OK;
}

void eth_stride_free(struct hca *hca, struct eth_rq *rq)
{
    if (rq->strides) {
        hca_free(hca, OBJ_RQ, rq->strides, sizeof(*rq->strides));
        rq->strides = NULL;
    }
}

void eth_stride_reset(struct eth_rq *rq)
{
    if (rq->strides) {
        rq->strides->open = rq->strides->lost = false;
        rq->strides->head = 0;
    }
}

uint16_t eth_stride_id(const struct eth_rq *rq)
{
    return rq->strides->linked ? rq->strides->head : (uint16_t)rq->wq.ci;
}

void eth_stride_close(struct eth_rq *rq)
{
    struct eth_strides *s = rq->strides;

    rq->wq.ci++;
    s->lost |= !s->open && s->linked;
    s->head = s->next;
    s->open = false;
}

/* Reads the WQE at ci, which is posted. False: the ring does not answer, the WQE is malformed, or
 * it names a next slot outside the ring. */
static bool eth_stride_open(struct hca *hca, struct eth_rq *rq)
{
    struct eth_strides *s = rq->strides;
    struct {
        struct prm_wqe_srq_next_seg next[1];
        struct prm_wqe_data_seg data[WQE_MAX_BYTES / PRM_SIZE(wqe_data_seg) - 1];
    } slot;
    size_t len = MIN(1ULL << rq->wq.log_stride, sizeof(slot));
    uint32_t next;

    s->wqe.num_sge = 0;
    s->wqe.len = 0;
    if (s->lost || !wq_read(hca, &rq->wq, eth_stride_id(rq), &slot, len) ||
        !recv_wqe_parse(&s->wqe, slot.data, len - sizeof(slot.next), rq->wq.start_padding)) {
        return false;
    }
    next = PRM_GET(wqe_srq_next_seg, slot.next, next_wqe_index);
    if (s->linked && next >= 1u << rq->wq.log_size) {
        return false;
    }
    recv_wqe_deny(&s->wqe, mkey_denied(hca, PRM_GET(rqc, rq->rqc, rlky)));
    s->next = (uint16_t)next;
    s->used = 0;
    s->open = true;
    return true;
}

bool eth_stride_may_flush(struct hca *hca, struct eth_rq *rq)
{
    return !rq->strides->linked || rq->strides->open || eth_stride_open(hca, rq);
}

/* Reports the rest of the WQE at ci as used. */
static void eth_stride_fill_up(struct hca *hca, struct eth_rq *rq)
{
    struct eth_strides *s = rq->strides;
    struct prm_cqe64 cqe[1] = {0};
    uint32_t rest = (1u << s->log_num) - s->used;

    PRM_SET(cqe64, cqe, wqe_id, eth_stride_id(rq));
    cqe_received(cqe,
                 (struct cqe_about){.srqn = rq->user_index,
                                    .index = (uint16_t)s->used,
                                    .real_time = rq->real_time,
                                    .strides = true},
                 PRM_CQE_OPCODE_RESP_SEND, CQE_FILLER | CQE_STRIDES_IN(rest), false);
    eth_stride_close(rq);
    cq_post(hca, rq->cq, cqe, false);
}

/* The strides that a frame of len bytes needs. */
static uint32_t eth_stride_need(const struct eth_strides *s, size_t len)
{
    return s->log_size ? (uint32_t)((len + s->shift + (1u << s->log_size) - 1) >> s->log_size) : 1;
}

enum recv_result eth_stride_place(struct hca *hca, struct eth_rq *rq, size_t len,
                                  struct eth_place *place)
{
    struct eth_strides *s = rq->strides;
    uint32_t num = 1u << s->log_num, need = eth_stride_need(s, len);
    uint64_t begin, end;

    *place = (struct eth_place){.wqe = &s->wqe, .most = ((uint64_t)num << s->log_size) - s->shift};
    if (G_UNLIKELY(s->log_size && len > place->most)) {
        return RECV_OK;
    }
    if (s->open && s->used + need > num) {
        eth_stride_fill_up(hca, rq);
        if (rq->state != PRM_RQC_STATE_RDY) {
            return RECV_EMPTY;
        }
    }
    if (!s->open) {
        s->wqe.num_sge = 0;
        s->wqe.len = 0;
        if (wq_posted(&rq->wq) == 0 && !wq_update_pi(hca, &rq->wq)) {
            return RECV_ERROR;
        }
        if (wq_posted(&rq->wq) == 0) {
            return RECV_EMPTY;
        }
        if (!eth_stride_open(hca, rq)) {
            return RECV_ERROR;
        }
    }
    begin = ((uint64_t)s->used << s->log_size) + s->shift;
    end = s->log_size ? MIN(s->wqe.len, (uint64_t)num << s->log_size) : s->wqe.len;
    place->at = begin;
    place->room = end > begin ? end - begin : 0;
    place->most = s->log_size ? place->most : s->wqe.len;
    place->strides = s->log_size ? need : 0;
    place->counter = s->log_size ? (uint16_t)s->used : eth_stride_id(rq);
    return RECV_OK;
}

void eth_stride_take(struct eth_rq *rq, const struct eth_place *place)
{
    struct eth_strides *s = rq->strides;

    s->used += MAX(place->strides, 1);
    if (s->used >= 1u << s->log_num) {
        eth_stride_close(rq);
    }
}
