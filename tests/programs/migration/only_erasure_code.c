/* SPDX-License-Identifier: BSD-2-Clause */
/* Erasure codes: three blocks get a parity block; a lost block comes back from the other three. */
#include <infiniband/verbs_exp.h>
#include "tests/programs/migration/both.h"

#define K     3
#define BLOCK 1024

int main(void)
{
    struct both b = both_begin(0);
    uint8_t ones[K] = {1, 1, 1}, lost[K + 1] = {0, 1, 0, 0};
    struct ibv_exp_ec_calc_init_attr attr = {
        .comp_mask = IBV_EXP_EC_CALC_ATTR_MAX_INFLIGHT | IBV_EXP_EC_CALC_ATTR_K |
                     IBV_EXP_EC_CALC_ATTR_M | IBV_EXP_EC_CALC_ATTR_W |
                     IBV_EXP_EC_CALC_ATTR_MAX_DATA_SGE | IBV_EXP_EC_CALC_ATTR_MAX_CODE_SGE |
                     IBV_EXP_EC_CALC_ATTR_ENCODE_MAT,
        .max_inflight_calcs = 1,
        .k = K,
        .m = 1,
        .w = 8,
        .max_data_sge = K,
        .max_code_sge = 1,
        .encode_matrix = ones};
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};
    struct ibv_sge data[K], code = {(uintptr_t)both_to(&b), BLOCK, b.mr->lkey};
    struct ibv_exp_ec_mem mem = {data, K, &code, 1, BLOCK};
    struct ibv_exp_ec_calc *calc;
    uint8_t kept[BLOCK], *block = both_from(&b);
    unsigned wrong = 0;

    NEED(!ibv_exp_query_device(b.ctx, &device));
    if (!(device.exp_device_cap_flags & IBV_EXP_DEVICE_EC_OFFLOAD)) {
        return ABSENT;
    }
    NEED(calc = ibv_exp_alloc_ec_calc(b.pd, &attr));
    for (unsigned i = 0; i < K; i++) {
        data[i] = (struct ibv_sge){(uintptr_t)block + i * BLOCK, BLOCK, b.mr->lkey};
        for (unsigned at = 0; at < BLOCK; at++) {
            block[i * BLOCK + at] = (uint8_t)(at * (i + 3));
        }
    }
    NEED(!ibv_exp_ec_encode_sync(calc, &mem));
    for (unsigned at = 0; at < BLOCK; at++) {
        wrong += both_to(&b)[at] != (block[at] ^ block[BLOCK + at] ^ block[2 * BLOCK + at]);
    }
    printf("parity: %s\n", wrong ? "wrong" : "right");
    memcpy(kept, block + BLOCK, BLOCK);
    memset(block + BLOCK, 0, BLOCK);
    NEED(!ibv_exp_ec_decode_sync(calc, &mem, lost, ones));
    printf("the lost block: %s\n", memcmp(block + BLOCK, kept, BLOCK) ? "wrong" : "right");
    ibv_exp_dealloc_ec_calc(calc);
    return 0;
}
