/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended polling: ibv_start_poll() to ibv_end_poll(), and the reader functions of struct
 * ibv_cq_ex, which read the CQE itself.
 *
 * The CQ is locked from a start that finds a CQE until the end. Wallclock time is the device's
 * clock, which counts nanoseconds of CLOCK_MONOTONIC, converted to CLOCK_REALTIME.
 */
#include <time.h>
#include "guest-lib/verbs/user/tm.h"
#include "guest-lib/verbs/user/trace.h"

static struct user_cq *cq_of(struct ibv_cq_ex *ex)
{
    return user_cq(ibv_cq_ex_to_cq(ex));
}

/* Takes the next CQE: returns 0, ENOENT or CQ_POLL_ERR. */
static inline int cq_ex_take(struct user_cq *cq)
{
    const struct prm_cqe64 *cqe;
    struct completion done;
    int err;

    for (;;) {
        cqe = cq_sw_cqe64(cq, cq->ci);
        if (!cqe) {
            return ENOENT;
        }
        cq->ci++;
        err = cq_complete(cq, cqe, &done);
        if (G_LIKELY(err != CQ_OWN)) {
            break;
        }
        cq_update_ci(cq);
    }
    cq->cur_cqe = cqe;
    if (G_UNLIKELY(err)) {
        return err;
    }
    if (G_UNLIKELY(hv_traces)) {
        hv_trace_poll(cq, cqe, &done);
    }
    cq->ex.wr_id = done.wr_id;
    cq->ex.status = done.status;
    cq->cur_opcode = done.opcode;
    cq->cur_csum_valid = done.csum_valid;
    cq->cur_tm_sync = done.tm_sync;
    return 0;
}

static int cq_ex_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct user_cq *cq = cq_of(ex);
    int err;

    if (attr->comp_mask) {
        return EINVAL;
    }
    cq_lock(cq);
    err = cq_ex_take(cq);
    if (err == ENOENT) {
        cq_unlock(cq);
        if (!hv_progress(cq->hca)) {
            return hv_is_ours(cq->hca) ? ENOENT : EIO;
        }
        cq_lock(cq);
        err = cq_ex_take(cq);
    }
    if (err) {
        cq_unlock(cq);
    }
    return err;
}

static int cq_ex_next_poll(struct ibv_cq_ex *ex)
{
    return cq_ex_take(cq_of(ex));
}

static void cq_ex_end_poll(struct ibv_cq_ex *ex)
{
    struct user_cq *cq = cq_of(ex);

    cq_update_ci(cq);
    cq_unlock(cq);
    hv_progress_now_and_then(cq->hca);
}

/* A field of the CQE in a place where small data may be; 0 if data is there. */
#define CQ_EX_FIELD(ex, field)                                                                     \
    (cqe_is_data(cq_of(ex)->cur_cqe) ? 0 : PRM_GET(cqe64, cq_of(ex)->cur_cqe, field))

/* -- readers ------------------------------------------------------------------------------------
 */

static enum ibv_wc_opcode cq_ex_read_opcode(struct ibv_cq_ex *ex)
{
    const struct user_cq *cq = cq_of(ex);

    switch (cqe_op_own(cq->cur_cqe) >> 4) {
    case PRM_CQE_OPCODE_RESP_WR_IMM:
        return IBV_WC_RECV_RDMA_WITH_IMM;
    case PRM_CQE_OPCODE_RESP_SEND:
    case PRM_CQE_OPCODE_RESP_SEND_IMM:
    case PRM_CQE_OPCODE_RESP_SEND_INV:
        return hv_tm_is_cqe(cq->cur_cqe) ? hv_tm_wc_opcode(cq->cur_cqe) : IBV_WC_RECV;
    case PRM_CQE_OPCODE_NO_PACKET:
        return hv_tm_wc_opcode(cq->cur_cqe);
    case PRM_CQE_OPCODE_REQ:
        return cq->cur_opcode;
    default:
        return 0;
    }
}

static uint32_t cq_ex_read_vendor_err(struct ibv_cq_ex *ex)
{
    return PRM_GET(err_cqe, cqe_failed(cq_of(ex)->cur_cqe), vendor_err_synd);
}

static unsigned cq_ex_read_wc_flags(struct ibv_cq_ex *ex)
{
    const struct user_cq *cq = cq_of(ex);
    unsigned flags = cq->cur_csum_valid ? cqe_csum_ok(cq->cur_cqe) : 0;

    switch (cqe_op_own(cq->cur_cqe) >> 4) {
    case PRM_CQE_OPCODE_RESP_WR_IMM:
    case PRM_CQE_OPCODE_RESP_SEND_IMM:
        flags |= IBV_WC_WITH_IMM;
        break;
    case PRM_CQE_OPCODE_RESP_SEND_INV:
        flags |= IBV_WC_WITH_INV;
        break;
    }
    flags |= cq->cur_tm_sync ? IBV_WC_TM_SYNC_REQ : 0;
    flags |= hv_tm_is_cqe(cq->cur_cqe) ? hv_tm_wc_flags(cq->cur_cqe) : 0;
    return flags | (CQ_EX_FIELD(ex, grh) ? IBV_WC_GRH : 0);
}

static uint32_t cq_ex_read_byte_len(struct ibv_cq_ex *ex)
{
    return PRM_GET(cqe64, cq_of(ex)->cur_cqe, byte_cnt);
}

/* Returns immediate data in network order; the key of SEND with invalidate in host order
 * (ibv_wc_read_invalidated_rkey()). */
static __be32 cq_ex_read_imm_data(struct ibv_cq_ex *ex)
{
    const struct prm_cqe64 *cqe = cq_of(ex)->cur_cqe;
    uint32_t value = PRM_GET(cqe64, cqe, immediate);

    return cqe_op_own(cqe) >> 4 == PRM_CQE_OPCODE_RESP_SEND_INV ? value : GUINT32_TO_BE(value);
}

static uint32_t cq_ex_read_qp_num(struct ibv_cq_ex *ex)
{
    return PRM_GET(cqe64, cq_of(ex)->cur_cqe, qpn);
}

static uint32_t cq_ex_read_src_qp(struct ibv_cq_ex *ex)
{
    return CQ_EX_FIELD(ex, rqpn);
}

static uint32_t cq_ex_read_slid(struct ibv_cq_ex *ex)
{
    return CQ_EX_FIELD(ex, slid);
}

static uint8_t cq_ex_read_sl(struct ibv_cq_ex *ex)
{
    return (uint8_t)CQ_EX_FIELD(ex, sl);
}

static uint8_t cq_ex_read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    return CQ_EX_FIELD(ex, ml_path) & 0x7f;
}

static uint64_t cq_ex_read_completion_ts(struct ibv_cq_ex *ex)
{
    return PRM_GET(cqe64, cq_of(ex)->cur_cqe, timestamp);
}

static uint64_t cq_ex_clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cq_ex_read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
    return cq_ex_read_completion_ts(ex) + cq_ex_clock_ns(CLOCK_REALTIME) -
           cq_ex_clock_ns(CLOCK_MONOTONIC);
}

static uint16_t cq_ex_read_cvlan(struct ibv_cq_ex *ex)
{
    return (uint16_t)CQ_EX_FIELD(ex, vlan_info);
}

/* In a receive CQE of a raw packet, the flow tag is where other CQEs have the QPN. */
static uint32_t cq_ex_read_flow_tag(struct ibv_cq_ex *ex)
{
    return PRM_GET(cqe64, cq_of(ex)->cur_cqe, qpn);
}

static void cq_ex_read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *tm_info)
{
    const struct prm_cqe64 *cqe = cq_of(ex)->cur_cqe;

    /* the tag matching header as it was received: opcode, application context, tag */
    tm_info->priv = cqe_is_data(cqe) ? 0 : (uint32_t)prm_load32(&cqe->bytes[4]);
    tm_info->tag = cqe_is_data(cqe) ? 0 : prm_load64(&cqe->bytes[8]);
}

#define READER(flag, reader)                                                                       \
    if (wc_flags & (flag)) {                                                                       \
        ex->reader = cq_ex_##reader;                                                               \
    }

void hv_cq_ex_init(struct user_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;

    ex->start_poll = cq_ex_start_poll;
    ex->next_poll = cq_ex_next_poll;
    ex->end_poll = cq_ex_end_poll;
    ex->read_opcode = cq_ex_read_opcode;
    ex->read_vendor_err = cq_ex_read_vendor_err;
    ex->read_wc_flags = cq_ex_read_wc_flags;
    READER(IBV_WC_EX_WITH_BYTE_LEN, read_byte_len)
    READER(IBV_WC_EX_WITH_IMM, read_imm_data)
    READER(IBV_WC_EX_WITH_QP_NUM, read_qp_num)
    READER(IBV_WC_EX_WITH_SRC_QP, read_src_qp)
    READER(IBV_WC_EX_WITH_SLID, read_slid)
    READER(IBV_WC_EX_WITH_SL, read_sl)
    READER(IBV_WC_EX_WITH_DLID_PATH_BITS, read_dlid_path_bits)
    READER(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, read_completion_ts)
    READER(IBV_WC_EX_WITH_CVLAN, read_cvlan)
    READER(IBV_WC_EX_WITH_FLOW_TAG, read_flow_tag)
    READER(IBV_WC_EX_WITH_TM_INFO, read_tm_info)
    READER(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns)
    if (cq->real_time) {
        /* libmlx5 returns the stamp as it is, seconds and nanoseconds (mlx5_cq_fill_pfns()) */
        ex->read_completion_wallclock_ns = cq_ex_read_completion_ts;
    }
}
