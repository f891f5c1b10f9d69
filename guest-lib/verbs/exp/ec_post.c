/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts the WQEs of a step of a calculation; see exp/ec.h. */
#include "guest-lib/verbs/exp/ec.h"
#include "guest-lib/verbs/user/send_wqe.h"

/* The bytes of each block that are computed: the device takes whole units of 4. */
static uint32_t exp_ec_size(const struct exp_ec_plan *plan)
{
    return plan->block & ~3u;
}

/* Whole chunks of a block. If there are none, or there is one result, the message has the results
 * one behind the other. */
static uint32_t exp_ec_rounds(const struct exp_ec_plan *plan)
{
    return plan->num_out > 1 ? exp_ec_size(plan) / EXP_EC_CHUNK : 0;
}

/* Whether the blocks to read follow one another behind one key. */
static bool exp_ec_is_one_run(const struct exp_ec_plan *plan)
{
    for (unsigned i = 1; i < plan->num_in; i++) {
        if (plan->in[i].lkey != plan->in[0].lkey ||
            plan->in[i].addr != plan->in[i - 1].addr + plan->block) {
            return false;
        }
    }
    return plan->block == exp_ec_size(plan);
}

/* -- UMRs -------------------------------------------------------------------------------------- */

static uint64_t exp_ec_mask(void)
{
    return 1ull << PRM_MKEY_MASK_LEN | 1ull << PRM_MKEY_MASK_START_ADDR |
           1ull << PRM_MKEY_MASK_KEY | 1ull << PRM_MKEY_MASK_FREE | 1ull << PRM_MKEY_MASK_LR |
           1ull << PRM_MKEY_MASK_LW;
}

/* Posts a UMR that gives a key len bytes from address 0 on, behind the entries at list, which lie
 * in the calculation's memory. */
static void exp_ec_put_umr(struct exp_ec_calc *calc, uint32_t key, const void *list,
                           unsigned entries, uint64_t len)
{
    struct user_qp *qp = user_qp(calc->qp);
    unsigned padded = (entries + 3) & ~3u;
    struct prm_wqe_umr_ctrl_seg umr[1] = {0};
    struct prm_mkc mkc[1] = {0};
    struct prm_wqe_data_seg data[1] = {0};

    if (!hv_wqe_begin(qp, PRM_WQE_OPCODE_UMR, 0, 0, IBV_WC_DRIVER1, key)) {
        return;
    }
    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, padded);
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask, exp_ec_mask());
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, key & 0xff);
    PRM_SET(mkc, mkc, pd, hv_pd(calc->ibv.pd)->pdn);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, translations_octword_size, padded);
    PRM_SET(wqe_data_seg, data, byte_count, padded * 16);
    PRM_SET(wqe_data_seg, data, lkey, calc->mr->lkey);
    PRM_SET(wqe_data_seg, data, addr, (uintptr_t)list);
    hv_wqe_put(qp, umr, sizeof(umr));
    hv_wqe_put(qp, mkc, sizeof(mkc));
    hv_wqe_put(qp, data, sizeof(data));
    hv_wqe_end(qp);
    qp->small_fence = true;
}

/* A key whose list has the blocks that are read. */
static void exp_ec_join_in(struct exp_ec_calc *calc, struct exp_ec_step *step,
                           const struct exp_ec_plan *plan)
{
    uint32_t size = exp_ec_size(plan);

    for (unsigned i = 0; i < plan->num_in; i++) {
        PRM_SET(wqe_klm_seg, &step->in_list[i], byte_count, size);
        PRM_SET(wqe_klm_seg, &step->in_list[i], mkey, plan->in[i].lkey);
        PRM_SET(wqe_klm_seg, &step->in_list[i], va, plan->in[i].addr);
    }
    exp_ec_put_umr(calc, step->in->lkey, step->in_list, plan->num_in,
                   (uint64_t)size * plan->num_in);
}

#define EXP_EC_REPEAT 0x400 /* in place of a key: the list is repeated */

/* A key that takes the results apart: it interleaves the whole chunks of the computed blocks. */
static void exp_ec_join_out(struct exp_ec_calc *calc, struct exp_ec_step *step,
                            const struct exp_ec_plan *plan)
{
    struct prm_wqe_repeat_block_seg *block = step->out_list;
    struct prm_wqe_repeat_ent_seg *entry = (void *)(block + 1);
    uint32_t round = EXP_EC_CHUNK * plan->num_out;

    PRM_SET(wqe_repeat_block_seg, block, op, EXP_EC_REPEAT);
    PRM_SET(wqe_repeat_block_seg, block, num_ent, plan->num_out);
    PRM_SET(wqe_repeat_block_seg, block, repeat_count, exp_ec_rounds(plan));
    PRM_SET(wqe_repeat_block_seg, block, byte_count, round);
    for (unsigned i = 0; i < plan->num_out; i++, entry++) {
        PRM_SET(wqe_repeat_ent_seg, entry, stride, EXP_EC_CHUNK);
        PRM_SET(wqe_repeat_ent_seg, entry, byte_count, EXP_EC_CHUNK);
        PRM_SET(wqe_repeat_ent_seg, entry, memkey, plan->out[i].lkey);
        PRM_SET(wqe_repeat_ent_seg, entry, va, plan->out[i].addr);
    }
    exp_ec_put_umr(calc, step->out->lkey, block, plan->num_out + 1,
                   (uint64_t)round * exp_ec_rounds(plan));
}

/* -- SEND and receive -------------------------------------------------------------------------- */

static void exp_ec_put_send(struct exp_ec_calc *calc, struct exp_ec_step *step,
                            const struct exp_ec_plan *plan, uint32_t lkey, uint64_t addr)
{
    struct user_qp *qp = user_qp(calc->qp);
    struct prm_wqe_vec_calc_seg seg[1] = {0};

    if (!hv_wqe_begin(qp, PRM_WQE_OPCODE_SEND, IBV_SEND_SIGNALED, (uintptr_t)step, IBV_WC_SEND,
                      0)) {
        return;
    }
    PRM_SET(wqe_ctrl_seg, qp->cur_ctrl, opmod, PRM_SEND_OPMOD_VECTOR_CALC);
    for (unsigned i = 0; i < plan->num_out; i++) {
        PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, i, PRM_VEC_CALC_OP_XOR);
    }
    PRM_SET(wqe_vec_calc_seg, seg, matrix, 1);
    PRM_SET(wqe_vec_calc_seg, seg, matrix_8bit, calc->w == 8);
    PRM_SET(wqe_vec_calc_seg, seg, vec_count, plan->num_in);
    PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, calc->mr->lkey);
    PRM_SET(wqe_vec_calc_seg, seg, cm_addr, (uintptr_t)plan->matrix);
    PRM_SET(wqe_vec_calc_seg, seg, vec_size, exp_ec_size(plan));
    PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, lkey);
    PRM_SET(wqe_vec_calc_seg, seg, vec_addr, addr);
    hv_wqe_put(qp, seg, sizeof(seg));
    hv_wqe_end(qp);
}

/* The list of the receive WQE: the key of the whole chunks, then what is left of each block. */
static int exp_ec_post_recv(struct exp_ec_calc *calc, struct exp_ec_step *step,
                            const struct exp_ec_plan *plan)
{
    uint32_t whole = exp_ec_rounds(plan) * EXP_EC_CHUNK, left = exp_ec_size(plan) - whole;
    struct ibv_sge list[1 + EXP_EC_RESULTS];
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)step, .sg_list = list}, *bad;

    if (whole) {
        list[wr.num_sge++] =
            (struct ibv_sge){.length = whole * plan->num_out, .lkey = step->out->lkey};
    }
    for (unsigned i = 0; left && i < plan->num_out; i++) {
        list[wr.num_sge++] = (struct ibv_sge){
            .addr = plan->out[i].addr + whole, .length = left, .lkey = plan->out[i].lkey};
    }
    return ibv_post_recv(calc->qp, &wr, &bad);
}

/* Only the receive WQE can be refused. The send queue has room for the three WQEs of each step
 * (exp_ec_make_queue()), and each of them waits for no other. */
int exp_ec_post(struct exp_ec_calc *calc, struct exp_ec_step *step, const struct exp_ec_plan *plan)
{
    struct user_qp *qp = user_qp(calc->qp);
    bool joins = !exp_ec_is_one_run(plan);
    int err = exp_ec_post_recv(calc, step, plan);

    if (err) {
        return err;
    }
    hv_wr_begin_list(qp);
    if (exp_ec_rounds(plan)) {
        exp_ec_join_out(calc, step, plan);
    }
    if (joins) {
        exp_ec_join_in(calc, step, plan);
    }
    exp_ec_put_send(calc, step, plan, joins ? step->in->lkey : plan->in[0].lkey,
                    joins ? 0 : plan->in[0].addr);
    step->left = 2;
    calc->cqes += 2;
    hv_wr_end_list(qp);
    return 0;
}
