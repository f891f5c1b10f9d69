/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues and completions.
 */
#ifndef HCASIM_INFINIBAND_EXP_CQ_H
#define HCASIM_INFINIBAND_EXP_CQ_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include "device.h"

struct ibv_exp_peer_direct_attr; /* <infiniband/peer_ops.h> */
struct ibv_exp_res_domain;
struct ibv_exp_dct;

/* -- ibv_exp_create_cq() */

enum ibv_exp_cq_create_flags {
    IBV_EXP_CQ_CREATE_CROSS_CHANNEL = 1 << 0,
    IBV_EXP_CQ_TIMESTAMP = 1 << 1,
    IBV_EXP_CQ_TIMESTAMP_TO_SYS_TIME = 1 << 2,
    IBV_EXP_CQ_COMPRESSED_CQE = 1 << 3,
    IBV_EXP_CQ_AS_NOTIFY = 1 << 4
};

enum {
    IBV_EXP_CQ_CREATE_FLAGS_MASK = 0x1f
};

enum ibv_exp_cq_init_attr_mask {
    IBV_EXP_CQ_INIT_ATTR_FLAGS = 1 << 0,
    IBV_EXP_CQ_INIT_ATTR_RESERVED = 1 << 1,
    IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN = 1 << 1,
    IBV_EXP_CQ_INIT_ATTR_PEER_DIRECT = 1 << 2,
    IBV_EXP_CQ_INIT_ATTR_RESERVED1 = 1 << 3
};

struct ibv_exp_cq_init_attr {
    uint32_t comp_mask;
    uint32_t flags;
    struct ibv_exp_res_domain *res_domain;
    struct ibv_exp_peer_direct_attr *peer_direct_attrs;
};

/* -- ibv_exp_modify_cq() */

enum ibv_exp_cq_attr_mask {
    IBV_EXP_CQ_MODERATION = 1 << 0,
    IBV_EXP_CQ_CAP_FLAGS = 1 << 1
};

enum ibv_exp_cq_cap_flags {
    IBV_EXP_CQ_IGNORE_OVERRUN = 1 << 0,
    IBV_EXP_CQ_CAP_MASK = 0x1
};

enum ibv_exp_cq_attr_comp_mask {
    IBV_EXP_CQ_ATTR_MODERATION = 1 << 0,
    IBV_EXP_CQ_ATTR_CQ_CAP_FLAGS = 1 << 1,
    IBV_EXP_CQ_ATTR_RESERVED = 1 << 2
};

struct ibv_exp_cq_attr {
    uint32_t comp_mask;
    struct {
        uint16_t cq_count;
        uint16_t cq_period;
    } moderation;
    uint32_t cq_cap_flags;
};

/* -- ibv_exp_poll_cq(). A test for (exp_opcode & IBV_EXP_WC_RECV) finds receive completions. */

enum ibv_exp_wc_opcode {
    IBV_EXP_WC_SEND,
    IBV_EXP_WC_RDMA_WRITE,
    IBV_EXP_WC_RDMA_READ,
    IBV_EXP_WC_COMP_SWAP,
    IBV_EXP_WC_FETCH_ADD,
    IBV_EXP_WC_BIND_MW,
    IBV_EXP_WC_LOCAL_INV,
    IBV_EXP_WC_MASKED_COMP_SWAP = 9,
    IBV_EXP_WC_MASKED_FETCH_ADD = 10,
    IBV_EXP_WC_TSO,
    IBV_EXP_WC_UMR = 0x100,
    IBV_EXP_WC_RECV = 1 << 7,
    IBV_EXP_WC_RECV_RDMA_WITH_IMM,
    IBV_EXP_WC_TM_ADD = 0xc0,
    IBV_EXP_WC_TM_DEL,
    IBV_EXP_WC_TM_SYNC,
    IBV_EXP_WC_TM_RECV,
    IBV_EXP_WC_TM_NO_TAG,
    IBV_EXP_WC_RECV_NOP
};

enum ibv_exp_wc_flags {
    IBV_EXP_WC_GRH = IBV_WC_GRH,
    IBV_EXP_WC_WITH_IMM = IBV_WC_WITH_IMM,
    IBV_EXP_WC_WITH_INV = IBV_WC_WITH_INV,
    IBV_EXP_WC_WITH_SL = 1ULL << 36,
    IBV_EXP_WC_WITH_SLID = 1ULL << 37,
    IBV_EXP_WC_WITH_TIMESTAMP = 1ULL << 38,
    IBV_EXP_WC_QP = 1ULL << 39,
    IBV_EXP_WC_SRQ = 1ULL << 40,
    IBV_EXP_WC_DCT = 1ULL << 41,
    IBV_EXP_WC_RX_IP_CSUM_OK = 1ULL << 42,
    IBV_EXP_WC_RX_TCP_UDP_CSUM_OK = 1ULL << 43,
    IBV_EXP_WC_RX_IPV4_PACKET = 1ULL << 44,
    IBV_EXP_WC_RX_IPV6_PACKET = 1ULL << 45,
    IBV_EXP_WC_RX_TUNNEL_PACKET = 1ULL << 46,
    IBV_EXP_WC_RX_OUTER_IP_CSUM_OK = 1ULL << 47,
    IBV_EXP_WC_RX_OUTER_TCP_UDP_CSUM_OK = 1ULL << 48,
    IBV_EXP_WC_RX_OUTER_IPV4_PACKET = 1ULL << 49,
    IBV_EXP_WC_RX_OUTER_IPV6_PACKET = 1ULL << 50,
    IBV_EXP_WC_TM_SYNC_REQ = 1ULL << 51,
    IBV_EXP_WC_TM_DEL_FAILED = 1ULL << 52,
    IBV_EXP_WC_TM_MATCH = 1ULL << 53,
    IBV_EXP_WC_TM_DATA_VALID = 1ULL << 54,
    IBV_EXP_WC_TM_RNDV_INCOMPLETE = 1ULL << 55,
    IBV_EXP_WC_MP_WR_MORE_IN_MSG = 1ULL << 56,
    IBV_EXP_WC_MP_WR_CONSUMED = 1ULL << 57
};

struct ibv_exp_wc {
    uint64_t wr_id;
    enum ibv_wc_status status;
    enum ibv_exp_wc_opcode exp_opcode;
    uint32_t vendor_err;
    union {
        uint32_t byte_len;
        struct {
            uint16_t strides_offset;
            uint16_t byte_len;
        } mp_wr;
    };
    uint32_t imm_data;
    uint32_t qp_num;
    uint32_t src_qp;
    int reserved;
    uint16_t pkey_index;
    uint16_t slid;
    uint8_t sl;
    uint8_t dlid_path_bits;
    uint64_t timestamp;
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    struct ibv_exp_dct *dct;
    uint64_t exp_wc_flags;
    struct {
        uint64_t tag;
        uint32_t priv;
    } tm_info;
};

#endif
