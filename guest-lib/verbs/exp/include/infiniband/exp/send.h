/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests: ibv_exp_post_send(), ibv_exp_post_task(), address handles.
 */
#ifndef HCASIM_INFINIBAND_EXP_SEND_H
#define HCASIM_INFINIBAND_EXP_SEND_H

#include <stdint.h>
#include <infiniband/verbs.h>
#include "memory.h"

/* -- Calculations of a request with IBV_EXP_SEND_WITH_CALC */

enum ibv_exp_calc_op {
    IBV_EXP_CALC_OP_ADD = 0,
    IBV_EXP_CALC_OP_MAXLOC,
    IBV_EXP_CALC_OP_BAND,
    IBV_EXP_CALC_OP_BXOR,
    IBV_EXP_CALC_OP_BOR,
    IBV_EXP_CALC_OP_NUMBER
};

enum ibv_exp_calc_data_type {
    IBV_EXP_CALC_DATA_TYPE_INT = 0,
    IBV_EXP_CALC_DATA_TYPE_UINT,
    IBV_EXP_CALC_DATA_TYPE_FLOAT,
    IBV_EXP_CALC_DATA_TYPE_NUMBER
};

enum ibv_exp_calc_data_size {
    IBV_EXP_CALC_DATA_SIZE_64_BIT = 0,
    IBV_EXP_CALC_DATA_SIZE_NUMBER
};

/* -- Masked atomics: an operand of up to 8 bytes is the value itself, of more bytes its address. */

struct ibv_exp_cmp_swap {
    uint64_t compare_mask;
    uint64_t compare_val;
    uint64_t swap_val;
    uint64_t swap_mask;
};

struct ibv_exp_fetch_add {
    uint64_t add_val;
    uint64_t field_boundary;
};

/* -- UMR: what a memory key consists of */

enum ibv_exp_umr_wr_type {
    IBV_EXP_UMR_MR_LIST,
    IBV_EXP_UMR_REPEAT,
    IBV_EXP_UMR_MR_LIST_FIXED_SIZE
};

struct ibv_exp_mem_region {
    uint64_t base_addr;
    struct ibv_mr *mr;
    size_t length;
};

struct ibv_exp_mem_repeat_block {
    uint64_t base_addr;
    struct ibv_mr *mr;
    size_t *byte_count;
    size_t *stride;
};

/*
 * A work request. Its first members are those of struct ibv_send_wr, except that exp_opcode takes
 * the place of the opcode and exp_send_flags that of the flags.
 */

enum ibv_exp_wr_opcode {
    IBV_EXP_WR_RDMA_WRITE = IBV_WR_RDMA_WRITE,
    IBV_EXP_WR_RDMA_WRITE_WITH_IMM = IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_EXP_WR_SEND = IBV_WR_SEND,
    IBV_EXP_WR_SEND_WITH_IMM = IBV_WR_SEND_WITH_IMM,
    IBV_EXP_WR_RDMA_READ = IBV_WR_RDMA_READ,
    IBV_EXP_WR_ATOMIC_CMP_AND_SWP = IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_EXP_WR_ATOMIC_FETCH_AND_ADD = IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_EXP_WR_LOCAL_INV = IBV_WR_LOCAL_INV,
    IBV_EXP_WR_BIND_MW = IBV_WR_BIND_MW,
    IBV_EXP_WR_SEND_WITH_INV = IBV_WR_SEND_WITH_INV,
    IBV_EXP_WR_TSO = 0x4f,
    IBV_EXP_WR_SEND_ENABLE = 0x60,
    IBV_EXP_WR_RECV_ENABLE,
    IBV_EXP_WR_CQE_WAIT,
    IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP,
    IBV_EXP_WR_EXT_MASKED_ATOMIC_FETCH_AND_ADD,
    IBV_EXP_WR_NOP,
    IBV_EXP_WR_UMR_FILL,
    IBV_EXP_WR_UMR_INVALIDATE
};

enum ibv_exp_send_flags {
    IBV_EXP_SEND_FENCE = IBV_SEND_FENCE,
    IBV_EXP_SEND_SIGNALED = IBV_SEND_SIGNALED,
    IBV_EXP_SEND_SOLICITED = IBV_SEND_SOLICITED,
    IBV_EXP_SEND_INLINE = IBV_SEND_INLINE,
    IBV_EXP_SEND_IP_CSUM = 1ULL << 32,
    IBV_EXP_SEND_WITH_CALC = 1ULL << 33,
    IBV_EXP_SEND_WAIT_EN_LAST = 1ULL << 34,
    IBV_EXP_SEND_EXT_ATOMIC_INLINE = 1ULL << 35
};

enum ibv_exp_send_wr_comp_mask {
    IBV_EXP_SEND_WR_ATTR_RESERVED = 1 << 0
};

struct ibv_exp_send_wr {
    uint64_t wr_id;
    struct ibv_exp_send_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
    enum ibv_exp_wr_opcode exp_opcode;
    int reserved;
    union {
        uint32_t imm_data;
        uint32_t invalidate_rkey;
    } ex;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } atomic;
        struct {
            struct ibv_ah *ah;
            uint32_t remote_qpn;
            uint32_t remote_qkey;
        } ud;
    } wr;
    union {
        union {
            struct {
                uint32_t remote_srqn;
            } xrc;
        } qp_type;
        uint32_t xrc_remote_srq_num;
    };
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } atomic;
        struct {
            struct ibv_cq *cq;
            int32_t cq_count;
        } cqe_wait;
        struct {
            struct ibv_qp *qp;
            int32_t wqe_count;
        } wqe_enable;
    } task;
    union {
        struct {
            enum ibv_exp_calc_op calc_op;
            enum ibv_exp_calc_data_type data_type;
            enum ibv_exp_calc_data_size data_size;
        } calc;
    } op;
    struct {
        struct ibv_ah *ah;
        uint64_t dct_access_key;
        uint32_t dct_number;
    } dc;
    union {
        struct {
            struct ibv_mw *mw;
            uint32_t rkey;
            struct ibv_exp_mw_bind_info bind_info;
        } bind_mw;
        struct {
            void *hdr;
            uint16_t hdr_sz;
            uint16_t mss;
        } tso;
    };
    uint64_t exp_send_flags;
    uint32_t comp_mask;
    union {
        struct {
            uint32_t umr_type;
            struct ibv_exp_mkey_list_container *memory_objects;
            uint64_t exp_access;
            struct ibv_mr *modified_mr;
            uint64_t base_addr;
            uint32_t num_mrs;
            union {
                struct ibv_exp_mem_region *mem_reg_list;
                struct {
                    struct ibv_exp_mem_repeat_block *mem_repeat_block_list;
                    size_t *repeat_count;
                    uint32_t stride_dim;
                } rb;
            } mem_list;
        } umr;
        struct {
            uint32_t log_arg_sz;
            uint64_t remote_addr;
            uint32_t rkey;
            union {
                struct {
                    union {
                        struct ibv_exp_cmp_swap cmp_swap;
                        struct ibv_exp_fetch_add fetch_add;
                    } op;
                } inline_data;
            } wr_data;
        } masked_atomics;
    } ext_op;
};

/* -- ibv_exp_post_task(): work for several queues */

enum ibv_exp_task_type {
    IBV_EXP_TASK_SEND = 0,
    IBV_EXP_TASK_RECV = 1
};

enum ibv_exp_task_comp_mask {
    IBV_EXP_TASK_RESERVED = 1 << 0
};

struct ibv_exp_task {
    enum ibv_exp_task_type task_type;
    struct {
        struct ibv_qp *qp;
        union {
            struct ibv_exp_send_wr *send_wr;
            struct ibv_recv_wr *recv_wr;
        };
    } item;
    struct ibv_exp_task *next;
    uint32_t comp_mask;
};

/* -- Address handles: of two calls of struct verbs_context_exp that only the old library's
 * ibv_create_ah() called. Programs have no call for them. */

enum ibv_exp_ah_attr_attr_comp_mask {
    IBV_EXP_AH_ATTR_LL = 1 << 0,
    IBV_EXP_AH_ATTR_VID = 1 << 1,
    IBV_EXP_AH_ATTR_RESERVED = 1 << 2
};

enum ll_address_type {
    LL_ADDRESS_UNKNOWN,
    LL_ADDRESS_IB,
    LL_ADDRESS_ETH,
    LL_ADDRESS_SIZE
};

struct ibv_exp_ah_attr {
    struct ibv_global_route grh;
    uint16_t dlid;
    uint8_t sl;
    uint8_t src_path_bits;
    uint8_t static_rate;
    uint8_t is_global;
    uint8_t port_num;
    uint32_t comp_mask;
    struct {
        enum ll_address_type type;
        uint32_t len;
        char *address;
    } ll_address;
    uint16_t vid;
};

#endif
