/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues of receives, their indirection tables, shared receive queues, tag matching.
 */
#ifndef HCASIM_INFINIBAND_EXP_WQ_H
#define HCASIM_INFINIBAND_EXP_WQ_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include "device.h"

struct ibv_exp_res_domain;

/* -- Work queues: ibv_exp_create_wq(), ibv_exp_modify_wq() */

enum ibv_exp_wq_type {
    IBV_EXP_WQT_RQ,
    IBV_EXP_WQT_SRQ
};

enum ibv_exp_wq_state {
    IBV_EXP_WQS_RESET,
    IBV_EXP_WQS_RDY,
    IBV_EXP_WQS_ERR,
    IBV_EXP_WQS_UNKNOWN
};

enum ibv_exp_vlan_offloads {
    IBV_EXP_RECEIVE_WQ_CVLAN_STRIP = 1 << 0,
    IBV_EXP_RECEIVE_WQ_CVLAN_INSERTION = 1 << 1,
    IBV_EXP_RECEIVE_WQ_VLAN_OFFLOADS_RESERVED = 1 << 2
};

struct ibv_exp_wq {
    struct ibv_context *context;
    void *wq_context;
    uint32_t handle;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    uint32_t wq_num;
    enum ibv_exp_wq_state state;
    enum ibv_exp_wq_type wq_type;
    uint32_t comp_mask;
};

enum ibv_exp_wq_init_attr_mask {
    IBV_EXP_CREATE_WQ_RES_DOMAIN = 1 << 0,
    IBV_EXP_CREATE_WQ_MP_RQ = 1 << 1,
    IBV_EXP_CREATE_WQ_VLAN_OFFLOADS = 1 << 2,
    IBV_EXP_CREATE_WQ_FLAGS = 1 << 3,
    IBV_EXP_CREATE_WQ_RESERVED = 1 << 4
};

struct ibv_exp_wq_mp_rq {
    enum ibv_exp_mp_rq_shifts use_shift;
    uint8_t single_wqe_log_num_of_strides;
    uint8_t single_stride_log_num_of_bytes;
};

enum ibv_exp_wq_init_attr_flags {
    IBV_EXP_CREATE_WQ_FLAG_RX_END_PADDING = 1 << 0,
    IBV_EXP_CREATE_WQ_FLAG_SCATTER_FCS = 1 << 1,
    IBV_EXP_CREATE_WQ_FLAG_DELAY_DROP = 1 << 2,
    IBV_EXP_CREATE_WQ_FLAG_RESERVED = 1 << 3
};

struct ibv_exp_wq_init_attr {
    void *wq_context;
    enum ibv_exp_wq_type wq_type;
    uint32_t max_recv_wr;
    uint32_t max_recv_sge;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    uint32_t comp_mask;
    struct ibv_exp_res_domain *res_domain;
    struct ibv_exp_wq_mp_rq mp_rq;
    uint16_t vlan_offloads;
    uint64_t flags;
};

enum ibv_exp_wq_attr_mask {
    IBV_EXP_WQ_ATTR_STATE = 1 << 0,
    IBV_EXP_WQ_ATTR_CURR_STATE = 1 << 1,
    IBV_EXP_WQ_ATTR_VLAN_OFFLOADS = 1 << 2,
    IBV_EXP_WQ_ATTR_RESERVED = 1 << 3
};

struct ibv_exp_wq_attr {
    uint32_t attr_mask;
    enum ibv_exp_wq_state wq_state;
    enum ibv_exp_wq_state curr_wq_state;
    uint16_t vlan_offloads;
};

/* -- Indirection tables: the hash of a packet says which WQ gets it. */

struct ibv_exp_rwq_ind_table {
    struct ibv_context *context;
    struct ibv_pd *pd;
    int ind_tbl_handle;
    int ind_tbl_num;
    uint32_t comp_mask;
};

enum ibv_exp_ind_table_init_attr_mask {
    IBV_EXP_CREATE_IND_TABLE_RESERVED = 1 << 0
};

struct ibv_exp_rwq_ind_table_init_attr {
    struct ibv_pd *pd;
    uint32_t log_ind_tbl_size;
    struct ibv_exp_wq **ind_tbl;
    uint32_t comp_mask;
};

/* -- ibv_exp_create_srq() */

enum ibv_exp_srq_type {
    IBV_EXP_SRQT_BASIC = IBV_SRQT_BASIC,
    IBV_EXP_SRQT_XRC = IBV_SRQT_XRC,
    IBV_EXP_SRQT_TAG_MATCHING = 32
};

enum ibv_exp_create_srq_comp_mask {
    IBV_EXP_CREATE_SRQ_CQ = 1 << 0,
    IBV_EXP_CREATE_SRQ_XRCD = 1 << 1,
    IBV_EXP_CREATE_SRQ_TM = 1 << 2,
    IBV_EXP_CREATE_SRQ_DC_OFFLOAD_PARAMS = 1 << 3,
    IBV_EXP_CREATE_SRQ_MP_WR = 1 << 4,
    IBV_EXP_CREATE_SRQ_RESERVED = 1 << 5
};

struct ibv_exp_tm_cap {
    uint32_t max_num_tags;
    uint32_t max_ops;
};

struct ibv_exp_srq_dc_offload_params {
    uint16_t pkey_index;
    enum ibv_mtu path_mtu;
    uint8_t sl;
    uint8_t max_rd_atomic;
    uint8_t min_rnr_timer;
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint64_t dct_key;
    uint32_t ooo_caps;
    uint32_t comp_mask;
};

struct ibv_exp_mp_wr {
    uint8_t log_num_of_strides;
    uint8_t log_stride_size;
};

struct ibv_exp_create_srq_attr {
    struct ibv_srq_init_attr base;
    enum ibv_exp_srq_type srq_type;
    struct ibv_pd *pd;
    uint32_t comp_mask;
    struct ibv_cq *cq;
    struct ibv_xrcd *xrcd;
    struct ibv_exp_tm_cap tm_cap;
    struct ibv_exp_srq_dc_offload_params *dc_offload_params;
    struct ibv_exp_mp_wr mp_wr;
};

/* -- ibv_exp_post_srq_ops(): the list of tags */

enum ibv_exp_ops_wr_opcode {
    IBV_EXP_WR_TAG_ADD,
    IBV_EXP_WR_TAG_DEL,
    IBV_EXP_WR_TAG_SYNC
};

enum ibv_exp_ops_flags {
    IBV_EXP_OPS_SIGNALED = 1 << 0,
    IBV_EXP_OPS_TM_SYNC = 1 << 1
};

struct ibv_exp_ops_wr {
    uint64_t wr_id;
    struct ibv_exp_ops_wr *next;
    enum ibv_exp_ops_wr_opcode opcode;
    int flags;
    struct {
        uint32_t unexpected_cnt;
        uint32_t handle;
        struct {
            uint64_t recv_wr_id;
            struct ibv_sge *sg_list;
            int num_sge;
            uint64_t tag;
            uint64_t mask;
        } add;
    } tm;
};

/* -- Headers of messages with tags */

enum ibv_exp_tmh_op {
    IBV_EXP_TMH_NO_TAG = 0,
    IBV_EXP_TMH_RNDV = 1,
    IBV_EXP_TMH_FIN = 2,
    IBV_EXP_TMH_EAGER = 3
};

struct ibv_exp_tmh {
    uint8_t opcode;
    uint8_t reserved[3];
    uint32_t app_ctx;
    uint64_t tag;
};

struct ibv_exp_tmh_rvh {
    uint64_t va;
    uint32_t rkey;
    uint32_t len;
};

struct ibv_exp_tmh_ravh {
    uint32_t sl_dct;
    uint32_t reserved;
    uint64_t dc_access_key;
};

#endif
