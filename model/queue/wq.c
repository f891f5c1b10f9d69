/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accesses rings of WQEs: finds slots, reads doorbell records, parses receive WQEs.
 *
 * The guest may write at any time what is read here. Indices are reduced modulo the ring. A
 * doorbell record that claims more than the ring holds is refused, because then a new WQE could not
 * be told from an old one.
 */
#include "model/queue/wq.h"
#include "prm/prm.h"

static inline uint64_t wq_ring_bytes(const struct wq *wq)
{
    return 1ULL << (wq->log_size + wq->log_stride);
}

void wq_tell_pi(struct wq *wq, uint16_t pi)
{
    /* the largest ring has 2^15 slots, so a counter is at most that far ahead */
    if ((uint16_t)(pi - wq->told) <= 1u << 15) {
        wq->told = pi;
    }
}

uint16_t wq_gate_open(const struct wq *wq)
{
    uint16_t open = (uint16_t)(wq->enabled - (wq->gate == WQ_GATE_SEND ? wq->taken : wq->ci));

    /* the largest ring has 2^15 slots; anything beyond is an index that the queue has passed */
    return open <= 1u << 15 ? open : 0;
}

/* The same for a managed send queue: an open gate makes the ring count as full. */
static bool wq_update_gated(struct wq *wq)
{
    wq->pi = wq_gate_open(wq) ? (wq->ci + (1u << wq->log_size)) & 0xffff : wq->ci;
    return true;
}

bool wq_update_pi(struct hca *hca, struct wq *wq)
{
    struct prm_srq_dbr record[1];
    uint16_t pi = wq->told;

    if (G_UNLIKELY(wq->gate == WQ_GATE_SEND)) {
        return wq_update_gated(wq);
    }
    if (!wq->no_record) {
        if (!hca_dma_read(hca, wq->dbr, record, sizeof(record))) {
            return false;
        }
        pi = (uint16_t)PRM_GET(srq_dbr, record, counter);
    }
    if ((uint16_t)(pi - wq->ci) > 1u << wq->log_size) {
        return false;
    }
    if (G_UNLIKELY(wq->gate)) {
        pi = (uint16_t)(wq->ci + MIN((uint16_t)(pi - wq->ci), wq_gate_open(wq)));
    }
    wq->pi = pi;
    return true;
}

bool wq_read(struct hca *hca, const struct wq *wq, uint32_t index, void *data, size_t len)
{
    uint64_t ring = wq_ring_bytes(wq);
    uint64_t start = ((uint64_t)index << wq->log_stride) & (ring - 1);
    size_t run = MIN((uint64_t)len, ring - start);

    if (len > ring) {
        return false;
    }
    if (wq->bf) {
        size_t at = (size_t)(uint16_t)(index - wq->bf->index) << wq->log_stride;

        if (at < wq->bf->len && len <= wq->bf->len - at) {
            memcpy(data, wq->bf->bytes + at, len);
            return true;
        }
    }
    return mem_buf_read(hca, &wq->buf, wq->offset + start, data, run) &&
           mem_buf_read(hca, &wq->buf, wq->offset, (uint8_t *)data + run, len - run);
}

bool wq_write(struct hca *hca, const struct wq *wq, uint32_t index, size_t offset, const void *data,
              size_t len)
{
    uint64_t stride = 1ULL << wq->log_stride;
    uint64_t start = ((uint64_t)index << wq->log_stride) & (wq_ring_bytes(wq) - 1);

    if (offset > stride || len > stride - offset) {
        return false;
    }
    return mem_buf_write(hca, &wq->buf, wq->offset + start + offset, data, len);
}

bool recv_wqe_parse(struct recv_wqe *wqe, const struct prm_wqe_data_seg *seg, size_t len,
                    bool start_padding)
{
    wqe->num_sge = 0;
    wqe->len = 0;
    for (; len >= PRM_SIZE(wqe_data_seg); len -= PRM_SIZE(wqe_data_seg), seg++) {
        uint32_t bytes = PRM_GET(wqe_data_seg, seg, byte_count);
        uint32_t lkey = PRM_GET(wqe_data_seg, seg, lkey);

        if (PRM_GET(wqe_data_seg, seg, inl) && !start_padding) {
            return false;
        }
        if (bytes == 0 && lkey == WQE_TERMINATOR_LKEY) {
            break;
        }
        if (wqe->num_sge == WQE_MAX_SGE) {
            return false;
        }
        if (bytes == 0) {
            bytes = 1u << 31;
        }
        wqe->sge[wqe->num_sge++] = (struct sge){
            .va = PRM_GET(wqe_data_seg, seg, addr),
            .len = bytes,
            .lkey = lkey,
        };
        wqe->len += bytes;
    }
    return true;
}

void recv_wqe_deny(struct recv_wqe *wqe, uint32_t lkey)
{
    for (unsigned i = 0; i < wqe->num_sge; i++) {
        if (wqe->sge[i].lkey == lkey) {
            wqe->sge[i].lkey = MKEY_NONE;
        }
    }
}

enum recv_result rq_read(struct hca *hca, const struct wq *rq, uint32_t index, bool has_signature,
                         struct recv_wqe *wqe)
{
    struct prm_wqe_data_seg slot[WQE_MAX_BYTES / PRM_SIZE(wqe_data_seg)];
    const struct prm_wqe_data_seg *first = slot + has_signature;
    size_t skip = (size_t)(first->bytes - slot->bytes);
    size_t len = MIN(1ULL << rq->log_stride, sizeof(slot));

    if (skip > len || !wq_read(hca, rq, index, slot, len) ||
        !recv_wqe_parse(wqe, first, len - skip, rq->start_padding)) {
        return RECV_ERROR;
    }
    wqe->index = index & 0xffff;
    return RECV_OK;
}

enum recv_result rq_peek(struct hca *hca, struct wq *rq, bool has_signature, struct recv_wqe *wqe)
{
    if (wq_posted(rq) == 0 && !wq_update_pi(hca, rq)) {
        return RECV_ERROR;
    }
    if (wq_posted(rq) == 0) {
        return RECV_EMPTY;
    }
    return rq_read(hca, rq, rq->ci, has_signature, wqe);
}
