/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives Ethernet frames. Steering decides where a frame goes. The RQ takes a receive WQE,
 * scatters the frame, and completes the WQE with the results of the NIC's checks: checksums,
 * headers, RSS hash, VLAN tag, flow tag.
 *
 * A frame that is longer than a WQE of the RQ is dropped and counted, and the WQE stays for the
 * next frame: no completion reports it (the kernel's counters.rst: rx_oversize_pkts_buffer).
 */
#include <inttypes.h>
#include <string.h>
#include "model/eth/eth_delay.h"
#include "model/eth/eth_hairpin.h"
#include "model/eth/eth_stride.h"
#include "model/eth/eth_trace.h"
#include "model/steering/steering.h"
#include "model/memory/end_pad.h"
#include "model/queue/cqe.h"
#include "model/queue/q_counter.h"

#define VLAN_TAG_LEN 4
#define VLAN_TAG_AT  12 /* after the two MACs */

bool eth_rx(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td, bool passed_filter)
{
    struct eth_info info;

    if (!eth_parse(frame, len, &info)) {
        hca->vport->counters.rx_truncated += passed_filter;
        return false;
    }
    if (G_UNLIKELY(hca->steers_roce) && passed_filter) {
        steering_sniff(hca, frame, len, &info);
    }
    if (steering_rx(hca, frame, len, &info, from_td) == 0) {
        hca->vport->counters.rx_no_steering += passed_filter;
        return false;
    }
    return true;
}

bool eth_steer_roce(struct hca *hca, const uint8_t *frame, size_t len)
{
    struct eth_info info;

    if (!eth_parse(frame, len, &info)) {
        return true; /* the RoCE parser counts it */
    }
    steering_sniff(hca, frame, len, &info);
    return steering_rx_rdma(hca, frame, len, &info);
}

void eth_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len)
{
    struct eth_info info;

    if (eth_parse(frame, len, &info)) {
        steering_sniff_tx(hca, frame, len, &info);
    }
}

static void eth_rq_complete_error(struct hca *hca, struct eth_rq *rq, const struct eth_place *place,
                                  uint8_t syndrome)
{
    struct cqe_about about = {
        .qpn = rq->obj.num, .srqn = rq->user_index, .index = (uint16_t)rq->wq.ci};
    struct prm_cqe64 cqe[1] = {0};

    if (rq->rmp) {
        about.index = place->counter;
        srq_advance(hca, rq->rmp, place->next);
    } else if (rq->strides) {
        about.index = eth_stride_id(rq);
        PRM_SET(cqe64, cqe, wqe_id, about.index);
        eth_stride_close(rq);
    } else {
        rq->wq.ci++;
    }
    cqe_receive_failed(cqe, about, syndrome);
    cq_post(hca, rq->cq, cqe, true);
}

void eth_rq_flush(struct hca *hca, struct eth_rq *rq)
{
    if (PRM_GET(rqc, rq->rqc, flush_in_error_en) && !rq->hairpin && !rq->rmp) {
        hca_schedule(hca, &rq->flush_work);
    }
}

void eth_rq_flush_run(struct hca *hca, struct work *work)
{
    struct eth_rq *rq = (struct eth_rq *)((char *)work - offsetof(struct eth_rq, flush_work));

    if (!wq_update_pi(hca, &rq->wq)) {
        return;
    }
    while (wq_posted(&rq->wq)) {
        if (rq->strides && !eth_stride_may_flush(hca, rq)) {
            return;
        }
        q_counter_get(hca, rq->counter_set_id)->resp_cqe_flush_error++;
        eth_rq_complete_error(hca, rq, NULL, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        hca_spend(hca, 1);
        if (!hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
    hca_wait_late(hca, work); /* no doorbell announces WQEs posted from now on */
}

/* The WQE at ci, or that of the RMP, cannot take a frame: its completion says why, and the RQ goes
 * to ERR. */
static void eth_rx_fail(struct hca *hca, struct eth_rq *rq, const struct eth_place *place,
                        uint8_t syndrome)
{
    bool intact = rq->rmp || wq_update_pi(hca, &rq->wq);

    rq->state = PRM_RQC_STATE_ERR;
    eth_rq_stop(hca, rq);
    q_counter_get(hca, rq->counter_set_id)->resp_cqe_error++;
    eth_rq_complete_error(hca, rq, place, syndrome);
    if (intact) {
        eth_rq_flush(hca, rq);
    }
}

/* Returns byte_cnt of the CQE. If the queue is a striding one, byte_cnt has the number of strides
 * and counts the bytes before the frame (libmlx5 of MLNX_OFED 4.6 subtracts them:
 * poll_length()). */
static uint32_t eth_rx_byte_cnt(const struct eth_rq *rq, size_t stored,
                                const struct eth_place *place)
{
    return G_UNLIKELY(place->strides)
               ? (uint32_t)(stored + rq->strides->shift) | CQE_STRIDES_IN(place->strides)
               : (uint32_t)stored;
}

/* Puts the frame check sequence, as it was on the cable, behind the stored bytes. */
static enum mem_result eth_rx_scatter_fcs(struct hca *hca, struct eth_rq *rq,
                                          const struct eth_place *place, size_t stored,
                                          const uint8_t *frame, size_t len)
{
    struct sge_cursor cursor = {0};
    uint8_t fcs[ETH_FCS_BYTES];

    eth_fcs_put(fcs, frame, len);
    return sge_scatter(hca, place->wqe->sge, place->wqe->num_sge, rq->pdn, &cursor,
                       place->at + stored - sizeof(fcs), fcs, sizeof(fcs));
}

/* Scatters the frame to its place. strip: leaves out its outer VLAN tag. */
static enum mem_result eth_rx_scatter(struct hca *hca, struct eth_rq *rq,
                                      const struct eth_place *place, const uint8_t *frame,
                                      size_t len, bool strip)
{
    static const uint8_t zeros[2];
    const struct recv_wqe *wqe = place->wqe;
    struct sge_cursor cursor = {0};
    uint64_t at = place->at;
    enum mem_result result = MEM_OK;

    if (G_UNLIKELY(rq->strides && rq->strides->shift)) {
        result = sge_scatter(hca, wqe->sge, wqe->num_sge, rq->pdn, &cursor, at - sizeof(zeros),
                             zeros, sizeof(zeros));
    }
    if (result == MEM_OK && strip) {
        result = sge_scatter(hca, wqe->sge, wqe->num_sge, rq->pdn, &cursor, at, frame, VLAN_TAG_AT);
        at += VLAN_TAG_AT;
        frame += VLAN_TAG_AT + VLAN_TAG_LEN;
        len -= VLAN_TAG_AT + VLAN_TAG_LEN;
    }
    return result != MEM_OK
               ? result
               : sge_scatter(hca, wqe->sge, wqe->num_sge, rq->pdn, &cursor, at, frame, len);
}

/* Finds the place of a frame in a ring of WQEs of one frame each, the RQ's own or that of its RMP.
 * wqe receives the WQE that is the next to be taken. */
static enum recv_result eth_rx_place(struct hca *hca, struct eth_rq *rq, struct recv_wqe *wqe,
                                     struct eth_place *place)
{
    enum recv_result taken;
    uint32_t next = 0;

    wqe->num_sge = 0; /* if the WQE cannot be read */
    wqe->len = 0;
    wqe->index = rq->wq.ci;
    taken = G_UNLIKELY(rq->rmp) ? srq_peek(hca, rq->rmp, wqe, &next)
                                : rq_peek(hca, &rq->wq, false, wqe);
    recv_wqe_deny(wqe, mkey_denied(hca, PRM_GET(rqc, rq->rqc, rlky)));
    *place = (struct eth_place){.wqe = wqe,
                                .room = wqe->len,
                                .most = wqe->len,
                                .counter = (uint16_t)wqe->index,
                                .next = next};
    return taken;
}

/* Says why the WQE at ci cannot take a frame of len bytes. */
static void eth_rx_log_failure(struct hca *hca, const struct eth_rq *rq, size_t len,
                               const struct eth_place *place, enum recv_result taken, uint64_t room,
                               enum mem_result result)
{
    struct mkey_words words;
    char why[sizeof(words.text)] = "it cannot be read, or is invalid";

    if (result != MEM_OK) {
        g_strlcpy(why, mkey_why(hca, &words), sizeof(why));
    } else if (taken == RECV_OK) {
        g_snprintf(why, sizeof(why), "it has room for %" PRIu64 " bytes", room);
    }
    hca_log(hca, HCA_LOG_GUEST_ERROR, "RQ 0x%x: WQE 0x%x cannot take a frame of %zu bytes: %s",
            rq->obj.num, rq->strides ? eth_stride_id(rq) : place->counter, len, why);
}

bool eth_rq_try(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a)
{
    const uint8_t *frame = a->frame;
    size_t len = a->len;
    const struct eth_info *info = a->info;
    bool strip = !rq->vsd && info->vlan_count && info->vlan_tpid[0] == ETH_TYPE_VLAN;
    size_t stored = len - (strip ? VLAN_TAG_LEN : 0) + (rq->fcs ? ETH_FCS_BYTES : 0);
    struct prm_cqe64 cqe[1] = {0};
    struct recv_wqe wqe;
    struct eth_place place;
    enum recv_result taken;
    enum mem_result result = MEM_OK;

    if (rq->state != PRM_RQC_STATE_RDY) {
        hca->vport->counters.rx_no_steering++;
        return true;
    }
    if (G_UNLIKELY(rq->hairpin)) {
        return eth_hairpin_take(hca, rq, a);
    }
    taken = G_UNLIKELY(rq->strides) ? eth_stride_place(hca, rq, stored, &place)
                                    : eth_rx_place(hca, rq, &wqe, &place);
    if (taken == RECV_EMPTY) {
        return false;
    }
    if (taken == RECV_ERROR && wq_posted(&rq->wq) == 0) {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "RQ 0x%x: %s", rq->obj.num,
                rq->rmp ? "its RMP has failed" : "doorbell record is unreadable or impossible");
        hca->vport->counters.rx_no_steering++; /* later frames are counted there, too */
        eth_rq_fatal(hca, rq);
        return true;
    }
    if (G_UNLIKELY(taken == RECV_OK && stored > place.most)) {
        hca->vport->counters.rx_wqe_too_small++;
        eth_rx_log_failure(hca, rq, stored, &place, taken, place.most, result);
        return true;
    }
    if (taken == RECV_OK && stored <= place.room) {
        result = eth_rx_scatter(hca, rq, &place, frame, len, strip);
        if (G_UNLIKELY(rq->fcs) && result == MEM_OK) {
            result = eth_rx_scatter_fcs(hca, rq, &place, stored, frame, len);
        }
        if (rq->pads_end && result == MEM_OK) {
            sge_pad_end(hca, place.wqe->sge, place.wqe->num_sge, rq->pdn, place.at + stored);
        }
    }
    if (taken != RECV_OK || stored > place.room || result != MEM_OK) {
        eth_rx_log_failure(hca, rq, stored, &place, taken, place.room, result);
        eth_rx_fail(hca, rq, &place,
                    taken == RECV_OK && stored > place.room ? PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR
                                                            : PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
        return true;
    }
    if (G_UNLIKELY(hca->tracing)) {
        eth_trace_receive(hca, rq, &place, stored);
    }
    if (G_UNLIKELY(rq->strides)) {
        PRM_SET(cqe64, cqe, wqe_id, eth_stride_id(rq));
        eth_stride_take(rq, &place);
    } else if (G_UNLIKELY(rq->rmp)) {
        srq_advance(hca, rq->rmp, place.next);
    } else {
        rq->wq.ci++;
    }
    if (G_UNLIKELY(a->merged)) {
        eth_rx_fill_merged(cqe, info, a->merged);
    } else {
        eth_rx_fill_checks(hca, cqe, frame, len, info, a->rss->tunnel, strip);
    }
    if (G_UNLIKELY(rq->fcs && hca->limits.cqe_checksum_full)) {
        eth_rx_sum_fcs(cqe, frame, len);
    }
    if (strip) {
        PRM_SET(cqe64, cqe, cv, 1);
        PRM_SET(cqe64, cqe, vlan_info, info->vlan_tci[0]);
    }
    PRM_SET(cqe64, cqe, rx_hash_result, a->rss->hash);
    PRM_SET(cqe64, cqe, rx_hash_type_ip, a->rss->ip);
    PRM_SET(cqe64, cqe, rx_hash_type_l4, a->rss->l4);
    /* on receive, sop_drop_qpn carries the flow tag */
    cqe_received(cqe,
                 (struct cqe_about){.qpn = a->flow_tag,
                                    .srqn = rq->user_index,
                                    .index = place.counter,
                                    .real_time = rq->real_time,
                                    .strides = place.strides},
                 PRM_CQE_OPCODE_RESP_SEND, eth_rx_byte_cnt(rq, stored, &place), false);
    cq_post(hca, rq->cq, cqe, false);
    return true;
}

void eth_rq_receive(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a)
{
    bool in_order = G_LIKELY(!rq->delay) || eth_delay_pass(hca, rq);

    if (in_order && eth_rq_try(hca, rq, a)) {
        return;
    }
    if (!rq->delay || !eth_delay_keep(hca, rq, a)) {
        q_counter_get(hca, rq->counter_set_id)->out_of_buffer++;
    }
}
