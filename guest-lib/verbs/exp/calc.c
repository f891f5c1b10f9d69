/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements guest-lib/verbs/exp/calc.h. */
#include "guest-lib/verbs/exp/calc.h"
#include <errno.h>

/* Operations of numbers of 64 bits, as the control segment has them; 0: there is none. Bits have no
 * type, so the bit operations take any. */
static const uint8_t exp_calc_opmod[IBV_EXP_CALC_OP_NUMBER][IBV_EXP_CALC_DATA_TYPE_NUMBER] = {
    /*                          INT UINT FLOAT */
    [IBV_EXP_CALC_OP_ADD] = {1, 1, 2},  [IBV_EXP_CALC_OP_MAXLOC] = {0, 3, 0},
    [IBV_EXP_CALC_OP_BAND] = {4, 4, 4}, [IBV_EXP_CALC_OP_BOR] = {5, 5, 5},
    [IBV_EXP_CALC_OP_BXOR] = {6, 6, 6},
};

static bool exp_calc_may_have(enum ibv_exp_wr_opcode opcode)
{
    return opcode == IBV_EXP_WR_SEND || opcode == IBV_EXP_WR_RDMA_WRITE ||
           opcode == IBV_EXP_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_EXP_WR_RDMA_READ;
}

int hv_exp_calc_opmod(const struct ibv_exp_send_wr *wr, bool is_cross_channel, uint8_t *opmod)
{
    unsigned op = (unsigned)wr->op.calc.calc_op, type = (unsigned)wr->op.calc.data_type;

    *opmod = 0;
    if (!(wr->exp_send_flags & IBV_EXP_SEND_WITH_CALC)) {
        return 0;
    }
    if (!is_cross_channel) {
        return EINVAL;
    }
    if (!exp_calc_may_have(wr->exp_opcode)) {
        return 0;
    }
    if (op >= IBV_EXP_CALC_OP_NUMBER || type >= IBV_EXP_CALC_DATA_TYPE_NUMBER ||
        wr->op.calc.data_size != IBV_EXP_CALC_DATA_SIZE_64_BIT || !exp_calc_opmod[op][type]) {
        return EINVAL;
    }
    *opmod = exp_calc_opmod[op][type];
    return 0;
}

void hv_exp_calc_caps(struct ibv_exp_device_calc_cap *caps)
{
    const uint64_t ops = 1ull << IBV_EXP_CALC_OP_ADD | 1ull << IBV_EXP_CALC_OP_BAND |
                         1ull << IBV_EXP_CALC_OP_BXOR | 1ull << IBV_EXP_CALC_OP_BOR;

    *caps = (struct ibv_exp_device_calc_cap){
        .data_types = 1ull << IBV_EXP_CALC_DATA_TYPE_INT | 1ull << IBV_EXP_CALC_DATA_TYPE_UINT |
                      1ull << IBV_EXP_CALC_DATA_TYPE_FLOAT,
        .data_sizes = 1ull << IBV_EXP_CALC_DATA_SIZE_64_BIT,
        .int_ops = ops,
        .uint_ops = ops,
        .fp_ops = ops,
    };
}
