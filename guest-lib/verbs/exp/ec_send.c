/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_exp_ec_encode_send(): sends blocks of data, encodes, and sends the blocks of code as soon as
 * they are there. The queues of the code wait for the completions of the calculation (CQE_WAIT), so
 * the processor does not; see exp/ec.h.
 */
#include "guest-lib/verbs/exp/ec.h"
#include <limits.h>
#include "guest-lib/verbs/user/send_wqe.h"

/* Posts a WAIT for the last completion of all steps that were posted so far. */
static int exp_ec_post_wait(const struct exp_ec_calc *calc, struct ibv_qp *ibqp)
{
    struct user_qp *qp = user_qp(ibqp);
    struct prm_wqe_wait_en_seg seg[1] = {0};
    int err, lost;

    PRM_SET(wqe_wait_en_seg, seg, pi, calc->cqes - 1);
    PRM_SET(wqe_wait_en_seg, seg, obj_num, ((const struct user_cq *)hv_cq(calc->cq))->cqn);
    hv_wr_begin_list(qp);
    if (hv_wqe_begin(qp, PRM_WQE_OPCODE_CQE_WAIT, 0, 0, IBV_WC_SEND, 0)) {
        hv_wqe_put(qp, seg, sizeof(seg));
        hv_wqe_end(qp);
    }
    err = qp->wr_err;
    lost = hv_wr_end_list(qp);
    return err ? err : lost;
}

/* Whether the queues of the code can wait: 0 or errno. A queue waits for CQs of its own device. */
static int exp_ec_check_code(const struct exp_ec_calc *calc, const struct ibv_exp_ec_stripe *code)
{
    for (unsigned j = 0; j < calc->m; j++) {
        struct user_qp *qp = user_qp(code[j].qp);

        if (qp->hca != calc->hca) {
            return hv_refuse(calc->hca, EINVAL,
                             "ec_encode_send: QP 0x%x of code block %u is another device's",
                             code[j].qp->qp_num, j);
        }
        if (!qp->can_send) {
            return hv_send_refuse_state(qp, true);
        }
    }
    return 0;
}

/* Sends the blocks of code, with the lock held: in each queue the WAIT, then the block. */
static int exp_ec_send_code(const struct exp_ec_calc *calc, const struct ibv_exp_ec_stripe *code)
{
    int err = 0;

    for (unsigned j = 0; j < calc->m && !err; j++) {
        struct ibv_send_wr *bad;

        err = exp_ec_post_wait(calc, code[j].qp);
        err = err ? err : ibv_post_send(code[j].qp, code[j].wr, &bad);
    }
    return err;
}

int exp_ec_encode_send(struct ibv_exp_ec_calc *ibv, struct ibv_exp_ec_mem *mem,
                       struct ibv_exp_ec_stripe *data, struct ibv_exp_ec_stripe *code)
{
    struct exp_ec_calc *calc = exp_ec_calc(ibv);
    int err;

    if (calc->polling) {
        return -hv_refuse(calc->hca, EINVAL, "ec_encode_send: not with polling");
    }
    err = exp_ec_check_encode(calc, mem);
    err = err ? err : exp_ec_check_code(calc, code);
    for (unsigned i = 0; i < calc->k && !err; i++) {
        struct ibv_send_wr *bad;

        err = ibv_post_send(data[i].qp, data[i].wr, &bad);
    }
    if (err) {
        return err;
    }
    /* The steps of earlier calls may have ended. Their places are free only when they are polled.
     */
    exp_ec_poll(calc, INT_MAX);
    err = exp_ec_begin(calc);
    if (!err) {
        err = exp_ec_encode(calc, mem, NULL);
        err = err ? err : exp_ec_send_code(calc, code);
        pthread_mutex_unlock(&calc->lock);
    }
    return err;
}
