/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_exp_post_send(). A request that ibv_post_send() knows, too, is built by its function. The
 * other requests, and all requests of DC initiators, are built here.
 */
#include <string.h>
#include "guest-lib/verbs/exp/calc.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/exp/mem.h"
#include "guest-lib/verbs/exp/send.h"
#include "guest-lib/verbs/user/send_wqe.h"

G_STATIC_ASSERT(sizeof(((struct ibv_send_wr *)0)->wr) == sizeof(((struct ibv_exp_send_wr *)0)->wr));
G_STATIC_ASSERT(offsetof(struct ibv_send_wr, wr) == offsetof(struct ibv_exp_send_wr, wr));

static unsigned exp_send_flags(const struct ibv_exp_send_wr *wr)
{
    return (unsigned)(wr->exp_send_flags & (IBV_EXP_SEND_FENCE | IBV_EXP_SEND_SIGNALED |
                                            IBV_EXP_SEND_SOLICITED | IBV_EXP_SEND_INLINE)) |
           (wr->exp_send_flags & IBV_EXP_SEND_IP_CSUM ? IBV_SEND_IP_CSUM : 0);
}

/* The same request in the terms of ibv_post_send(). */
static struct ibv_send_wr exp_send_plain(const struct ibv_exp_send_wr *wr)
{
    struct ibv_send_wr plain = {
        .wr_id = wr->wr_id,
        .sg_list = wr->sg_list,
        .num_sge = wr->num_sge,
        .opcode =
            wr->exp_opcode == IBV_EXP_WR_TSO ? IBV_WR_TSO : (enum ibv_wr_opcode)wr->exp_opcode,
        .send_flags = exp_send_flags(wr),
        .imm_data = wr->ex.imm_data,
        .qp_type.xrc.remote_srqn = wr->qp_type.xrc.remote_srqn,
    };

    memcpy(&plain.wr, &wr->wr, sizeof(plain.wr));
    if (wr->exp_opcode == IBV_EXP_WR_BIND_MW) {
        plain.bind_mw.mw = wr->bind_mw.mw;
        plain.bind_mw.rkey = wr->bind_mw.rkey;
        plain.bind_mw.bind_info.mr = wr->bind_mw.bind_info.mr;
        plain.bind_mw.bind_info.addr = wr->bind_mw.bind_info.addr;
        plain.bind_mw.bind_info.length = wr->bind_mw.bind_info.length;
        plain.bind_mw.bind_info.mw_access_flags =
            hv_exp_window_access(wr->bind_mw.bind_info.exp_mw_access_flags);
    } else if (wr->exp_opcode == IBV_EXP_WR_TSO) {
        plain.tso.hdr = wr->tso.hdr;
        plain.tso.hdr_sz = wr->tso.hdr_sz;
        plain.tso.mss = wr->tso.mss;
    }
    return plain;
}

unsigned hv_exp_window_access(uint64_t exp_access)
{
    const uint64_t same = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE |
                          IBV_EXP_ACCESS_REMOTE_READ | IBV_EXP_ACCESS_REMOTE_ATOMIC |
                          IBV_EXP_ACCESS_MW_BIND;

    return (unsigned)(exp_access & same) |
           (exp_access & IBV_EXP_ACCESS_MW_ZERO_BASED ? IBV_ACCESS_ZERO_BASED : 0);
}

bool hv_exp_send_begin(struct user_qp *qp, const struct ibv_exp_send_wr *wr, uint8_t opcode,
                       enum ibv_wc_opcode wc, uint32_t imm)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_gs) {
        hv_wqe_fail(qp, ENOMEM, "num_sge is %d; max_send_sge is %u", wr->num_sge, qp->sq.max_gs);
        return false;
    }
    if (!hv_wqe_begin(qp, opcode, exp_send_flags(wr), wr->wr_id, wc, imm)) {
        return false;
    }
    if (qp->ibv.qp_type == IBV_QPT_XRC_SEND && opcode != PRM_WQE_OPCODE_UMR) {
        hv_wqe_put_xrc(qp, wr->qp_type.xrc.remote_srqn);
    } else if (qp->dc == HV_DC_DCI && opcode != PRM_WQE_OPCODE_NOP) {
        struct prm_wqe_av av[1] = {((const struct hv_ah *)wr->dc.ah)->av[0]};

        PRM_SET(wqe_av, av, ext, 1);
        PRM_SET(wqe_av, av, dqp_dct, wr->dc.dct_number & 0xffffff);
        PRM_SET(wqe_av, av, dc_key, wr->dc.dct_access_key);
        hv_wqe_put(qp, av, sizeof(av));
    }
    return true;
}

void hv_exp_send_end(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    const struct ibv_send_wr plain = {.sg_list = wr->sg_list,
                                      .num_sge = wr->num_sge,
                                      .opcode = IBV_WR_SEND,
                                      .send_flags = exp_send_flags(wr)};

    hv_send_put_data(qp, &plain);
    if (!qp->wr_err) {
        hv_wqe_end(qp);
    }
}

/* The same for an atomic, whose answer has that many bytes. */
static void exp_send_end_atomic(struct user_qp *qp, const struct ibv_exp_send_wr *wr,
                                uint32_t bytes)
{
    if (wr->exp_send_flags & IBV_EXP_SEND_INLINE) {
        hv_exp_send_end(qp, wr);
        return;
    }
    hv_wqe_put_answer(qp, (size_t)wr->num_sge, wr->sg_list, bytes);
    hv_wqe_end(qp);
}

/* -- masked atomics ---------------------------------------------------------------------------- */

/* The sizes of their operands as the device has them for QPs and for DC: bit n is 2^n bytes. */
static unsigned exp_send_atomic_sizes(struct hv_hca *hca)
{
    const struct prm_atomic_caps *caps = hv_drv(hca)->atomic_cap;

    return (unsigned)PRM_GET(atomic_caps, caps, atomic_size_qp) &
           (unsigned)PRM_GET(atomic_caps, caps, atomic_size_dc);
}

/* The checks of libmlx5: true, or the request fails with EINVAL. */
static bool exp_send_check_atomic(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    unsigned log_size = wr->ext_op.masked_atomics.log_arg_sz;

    if (!hv_exp_may_post_atomics(qp)) {
        hv_wqe_fail(qp, EINVAL, "the QP posts no atomics (IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY)");
    } else if (log_size > 8 || !(exp_send_atomic_sizes(qp->hca) >> log_size & 1)) {
        hv_wqe_fail(qp, EINVAL, "log_arg_sz is %u; the device has the sizes 0x%x", log_size,
                    exp_send_atomic_sizes(qp->hca));
    } else if (!(wr->exp_send_flags & IBV_EXP_SEND_EXT_ATOMIC_INLINE)) {
        hv_wqe_fail(qp, EINVAL, "a masked atomic needs IBV_EXP_SEND_EXT_ATOMIC_INLINE");
    } else if (1u << log_size > qp->max_atomic_arg) {
        hv_wqe_fail(qp, EINVAL, "an operand has %u bytes; max_atomic_arg is %u", 1u << log_size,
                    qp->max_atomic_arg);
    }
    return !qp->wr_err;
}

/* Writes operands in the order of the WQE. An operand of up to 8 bytes is the value itself; of
 * more bytes, the address of words in host order. They fill whole units of 16 bytes. */
static void exp_send_put_operands(struct user_qp *qp, unsigned size, const uint64_t *values,
                                  unsigned num)
{
    uint8_t unit[16] = {0};
    size_t fill = 0;

    for (unsigned i = 0; i < num; i++) {
        for (unsigned at = 0; at < MAX(size, 8); at += 8) {
            if (size == 4) {
                prm_store32(unit + fill, (uint32_t)values[i]);
            } else {
                uint64_t word = values[i];

                if (size > 8) {
                    memcpy(&word, (const uint8_t *)(uintptr_t)values[i] + at, 8);
                }
                prm_store64(unit + fill, word);
            }
            fill += MIN(size, 8);
            if (fill == sizeof(unit)) {
                hv_wqe_put(qp, unit, sizeof(unit));
                memset(unit, 0, sizeof(unit));
                fill = 0;
            }
        }
    }
    if (fill) {
        hv_wqe_put(qp, unit, sizeof(unit));
    }
}

/* opmod: bit 3, and the size as a power of two of 4 bytes. */
#define EXT_ATOMIC 0x08

static void exp_send_masked_atomic(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    bool swap = wr->exp_opcode == IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP;
    const struct ibv_exp_cmp_swap *cs = &wr->ext_op.masked_atomics.wr_data.inline_data.op.cmp_swap;
    const struct ibv_exp_fetch_add *fa =
        &wr->ext_op.masked_atomics.wr_data.inline_data.op.fetch_add;
    const uint64_t of_swap[] = {cs->swap_val, cs->compare_val, cs->swap_mask, cs->compare_mask},
                   of_add[] = {fa->add_val, fa->field_boundary};
    unsigned log_size = wr->ext_op.masked_atomics.log_arg_sz;

    if (!exp_send_check_atomic(qp, wr) ||
        !hv_exp_send_begin(
            qp, wr, swap ? PRM_WQE_OPCODE_ATOMIC_MASKED_CS : PRM_WQE_OPCODE_ATOMIC_MASKED_FA,
            (enum ibv_wc_opcode)(swap ? IBV_EXP_WC_MASKED_COMP_SWAP : IBV_EXP_WC_MASKED_FETCH_ADD),
            0)) {
        return;
    }
    PRM_SET(wqe_ctrl_seg, qp->cur_ctrl, opmod, EXT_ATOMIC | (log_size - 2));
    hv_wqe_put_raddr(qp, wr->ext_op.masked_atomics.remote_addr, wr->ext_op.masked_atomics.rkey);
    exp_send_put_operands(qp, 1u << log_size, swap ? of_swap : of_add, swap ? 4 : 2);
    exp_send_end_atomic(qp, wr, 1u << log_size);
}

/* -- requests of DC initiators, and NOP -------------------------------------------------------- */

static void exp_send_nop(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    if (hv_exp_send_begin(qp, wr, PRM_WQE_OPCODE_NOP, IBV_WC_SEND, 0)) {
        hv_exp_send_end(qp, wr);
    }
}

static const struct {
    bool known, has_imm, has_key, rdma, atomic;
    uint8_t opcode;
} dc_ops[] = {
    [IBV_EXP_WR_RDMA_WRITE] = {.known = true, .rdma = true, .opcode = PRM_WQE_OPCODE_RDMA_WRITE},
    [IBV_EXP_WR_RDMA_WRITE_WITH_IMM] = {.known = true,
                                        .has_imm = true,
                                        .rdma = true,
                                        .opcode = PRM_WQE_OPCODE_RDMA_WRITE_IMM},
    [IBV_EXP_WR_SEND] = {.known = true, .opcode = PRM_WQE_OPCODE_SEND},
    [IBV_EXP_WR_SEND_WITH_IMM] = {.known = true,
                                  .has_imm = true,
                                  .opcode = PRM_WQE_OPCODE_SEND_IMM},
    [IBV_EXP_WR_RDMA_READ] = {.known = true, .rdma = true, .opcode = PRM_WQE_OPCODE_RDMA_READ},
    [IBV_EXP_WR_ATOMIC_CMP_AND_SWP] = {.known = true,
                                       .atomic = true,
                                       .opcode = PRM_WQE_OPCODE_ATOMIC_CS},
    [IBV_EXP_WR_ATOMIC_FETCH_AND_ADD] = {.known = true,
                                         .atomic = true,
                                         .opcode = PRM_WQE_OPCODE_ATOMIC_FA},
    [IBV_EXP_WR_SEND_WITH_INV] = {.known = true,
                                  .has_key = true,
                                  .opcode = PRM_WQE_OPCODE_SEND_INVAL},
};

/* opmod: the calculation, or 0. */
static void exp_send_dc(struct user_qp *qp, const struct ibv_exp_send_wr *wr, uint8_t opmod)
{
    unsigned op = wr->exp_opcode;

    if (op >= G_N_ELEMENTS(dc_ops) || !dc_ops[op].known) {
        hv_wqe_fail(qp, EINVAL, "a DC initiator has no opcode %u", op);
        return;
    }
    if (!hv_exp_send_begin(qp, wr, dc_ops[op].opcode, IBV_WC_SEND,
                           dc_ops[op].has_imm   ? GUINT32_FROM_BE(wr->ex.imm_data)
                           : dc_ops[op].has_key ? wr->ex.invalidate_rkey
                                                : 0)) {
        return;
    }
    PRM_SET(wqe_ctrl_seg, qp->cur_ctrl, opmod, opmod);
    if (dc_ops[op].rdma) {
        hv_wqe_put_raddr(qp, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
    } else if (dc_ops[op].atomic) {
        hv_wqe_put_raddr(qp, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
        hv_wqe_put_atomic(qp, op == IBV_EXP_WR_ATOMIC_CMP_AND_SWP, wr->wr.atomic.compare_add,
                          wr->wr.atomic.swap);
        exp_send_end_atomic(qp, wr, 8);
        return;
    }
    hv_exp_send_end(qp, wr);
}

/* A request with a calculation, of a reliable service. False: the opcode has none, so the request
 * is built like any other. */
static bool exp_send_calc(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    uint8_t opmod;
    int err = hv_exp_calc_opmod(wr, qp->exp_flags & IBV_EXP_QP_CREATE_CROSS_CHANNEL, &opmod);

    if (err) {
        hv_wqe_fail(
            qp, err,
            "IBV_EXP_SEND_WITH_CALC needs a QP with IBV_EXP_QP_CREATE_CROSS_CHANNEL, and an "
            "operation for that type of data");
    } else if (opmod) {
        exp_send_dc(qp, wr, opmod);
    }
    return err || opmod;
}

/* -- lists ------------------------------------------------------------------------------------- */

/* The opcodes of experimental verbs: each topic has its rows. */
static const struct {
    enum ibv_exp_wr_opcode opcode;
    hv_exp_send_fn build;
} exp_ops[] = {
    {IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP, exp_send_masked_atomic},
    {IBV_EXP_WR_EXT_MASKED_ATOMIC_FETCH_AND_ADD, exp_send_masked_atomic},
    {IBV_EXP_WR_NOP, exp_send_nop},
    {IBV_EXP_WR_SEND_ENABLE, hv_exp_build_cross},
    {IBV_EXP_WR_RECV_ENABLE, hv_exp_build_cross},
    {IBV_EXP_WR_CQE_WAIT, hv_exp_build_cross},
    {IBV_EXP_WR_UMR_FILL, hv_exp_put_umr},
    {IBV_EXP_WR_UMR_INVALIDATE, hv_exp_put_umr},
};

static bool exp_send_is_atomic(const struct ibv_exp_send_wr *wr)
{
    return wr->exp_opcode == IBV_EXP_WR_ATOMIC_CMP_AND_SWP ||
           wr->exp_opcode == IBV_EXP_WR_ATOMIC_FETCH_AND_ADD;
}

static void exp_send_build(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    struct ibv_send_wr plain;

    for (size_t i = 0; wr->exp_opcode > IBV_EXP_WR_TSO && i < G_N_ELEMENTS(exp_ops); i++) {
        if (exp_ops[i].opcode == wr->exp_opcode) {
            exp_ops[i].build(qp, wr);
            return;
        }
    }
    if (exp_send_is_atomic(wr) && !hv_exp_may_post_atomics(qp)) {
        hv_wqe_fail(qp, EINVAL, "the QP posts no atomics (IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY)");
        return;
    }
    if (G_UNLIKELY(wr->exp_send_flags & IBV_EXP_SEND_WITH_CALC) && exp_send_calc(qp, wr)) {
        return;
    }
    if (qp->dc == HV_DC_DCI) {
        exp_send_dc(qp, wr, 0);
        return;
    }
    plain = exp_send_plain(wr);
    hv_send_build(qp, &plain);
}

static int exp_post_send(struct ibv_qp *ibqp, struct ibv_exp_send_wr *wr,
                         struct ibv_exp_send_wr **bad_wr)
{
    struct user_qp *qp = user_qp(ibqp);
    struct ibv_exp_send_wr *first = wr;
    int err, lost;

    if (!qp->can_send && wr) {
        *bad_wr = wr;
        return hv_send_refuse_state(qp, true);
    }
    hv_wr_begin_list(qp);
    for (; wr; wr = wr->next) {
        exp_send_build(qp, wr);
        if (qp->wr_err) {
            *bad_wr = wr;
            break;
        }
    }
    err = qp->wr_err;
    lost = hv_wr_end_list(qp);
    if (lost) {
        *bad_wr = first;
    }
    return lost ? lost : err;
}

void hv_exp_send_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_post_send = exp_post_send;
}
