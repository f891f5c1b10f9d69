/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erasure coding.
 */
#ifndef HCASIM_INFINIBAND_EXP_EC_H
#define HCASIM_INFINIBAND_EXP_EC_H

#include <stdint.h>
#include <infiniband/verbs.h>

/* -- The blocks of a calculation: k blocks of data, m of code, in GF(2^w) */

enum ibv_exp_ec_calc_attr_comp_mask {
    IBV_EXP_EC_CALC_ATTR_MAX_INFLIGHT = 1 << 0,
    IBV_EXP_EC_CALC_ATTR_K = 1 << 1,
    IBV_EXP_EC_CALC_ATTR_M = 1 << 2,
    IBV_EXP_EC_CALC_ATTR_W = 1 << 3,
    IBV_EXP_EC_CALC_ATTR_MAX_DATA_SGE = 1 << 4,
    IBV_EXP_EC_CALC_ATTR_MAX_CODE_SGE = 1 << 5,
    IBV_EXP_EC_CALC_ATTR_ENCODE_MAT = 1 << 6,
    IBV_EXP_EC_CALC_ATTR_AFFINITY = 1 << 7,
    IBV_EXP_EC_CALC_ATTR_POLLING = 1 << 8,
    IBV_EXP_EC_CALC_INIT_ATTR_RESERVED = 1 << 9
};

struct ibv_exp_ec_calc_init_attr {
    uint32_t comp_mask;
    uint32_t max_inflight_calcs;
    int k;
    int m;
    int w;
    int max_data_sge;
    int max_code_sge;
    uint8_t *encode_matrix;
    int affinity_hint;
    int polling;
};

struct ibv_exp_ec_calc {
    struct ibv_pd *pd;
};

struct ibv_exp_ec_mem {
    struct ibv_sge *data_blocks;
    int num_data_sge;
    struct ibv_sge *code_blocks;
    int num_code_sge;
    int block_size;
};

/* -- The end of an asynchronous calculation */

enum ibv_exp_ec_status {
    IBV_EXP_EC_CALC_SUCCESS,
    IBV_EXP_EC_CALC_FAIL
};

struct ibv_exp_ec_comp {
    void (*done)(struct ibv_exp_ec_comp *comp);
    enum ibv_exp_ec_status status;
};

/* -- ibv_exp_ec_encode_send(): a queue and a request for each block */

struct ibv_exp_ec_stripe {
    struct ibv_qp *qp;
    struct ibv_send_wr *wr;
};

#endif
