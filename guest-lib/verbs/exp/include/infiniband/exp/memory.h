/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory: regions, memory keys, windows, device memory.
 */
#ifndef HCASIM_INFINIBAND_EXP_MEMORY_H
#define HCASIM_INFINIBAND_EXP_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "device.h"

/* -- Access flags: those of <infiniband/verbs.h>, and those of experimental verbs */

enum {
    IBV_EXP_ACCESS_FLAGS_SHIFT = 0xf
};

enum ibv_exp_access_flags {
    IBV_EXP_ACCESS_LOCAL_WRITE = IBV_ACCESS_LOCAL_WRITE,
    IBV_EXP_ACCESS_REMOTE_WRITE = IBV_ACCESS_REMOTE_WRITE,
    IBV_EXP_ACCESS_REMOTE_READ = IBV_ACCESS_REMOTE_READ,
    IBV_EXP_ACCESS_REMOTE_ATOMIC = IBV_ACCESS_REMOTE_ATOMIC,
    IBV_EXP_ACCESS_MW_BIND = IBV_ACCESS_MW_BIND,
    IBV_EXP_ACCESS_ALLOCATE_MR = 1ULL << 37,
    IBV_EXP_ACCESS_SHARED_MR_USER_READ = 1ULL << 38,
    IBV_EXP_ACCESS_SHARED_MR_USER_WRITE = 1ULL << 39,
    IBV_EXP_ACCESS_SHARED_MR_GROUP_READ = 1ULL << 40,
    IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE = 1ULL << 41,
    IBV_EXP_ACCESS_SHARED_MR_OTHER_READ = 1ULL << 42,
    IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE = 1ULL << 43,
    IBV_EXP_ACCESS_NO_RDMA = 1ULL << 44,
    IBV_EXP_ACCESS_MW_ZERO_BASED = 1ULL << 45,
    IBV_EXP_ACCESS_ON_DEMAND = 1ULL << 46,
    IBV_EXP_ACCESS_RELAXED = 1ULL << 47,
    IBV_EXP_ACCESS_PHYSICAL_ADDR = 1ULL << 48,
    IBV_EXP_ACCESS_TUNNELED_ATOMIC = 1ULL << 49,
    IBV_EXP_ACCESS_RESERVED = 1ULL << 50
};

/* -- ibv_exp_reg_mr() */

enum ibv_exp_reg_mr_in_comp_mask {
    IBV_EXP_REG_MR_CREATE_FLAGS = 1 << 0,
    IBV_EXP_REG_MR_DM = 1 << 1,
    IBV_EXP_REG_MR_RESERVED = 1 << 2
};

enum ibv_exp_reg_mr_create_flags {
    IBV_EXP_REG_MR_CREATE_CONTIG = 1 << 0
};

struct ibv_exp_reg_mr_in {
    struct ibv_pd *pd;
    void *addr;
    size_t length;
    uint64_t exp_access;
    uint32_t comp_mask;
    uint32_t create_flags;
    struct ibv_exp_dm *dm;
};

/* -- ibv_exp_reg_shared_mr() */

enum ibv_exp_reg_shared_mr_comp_mask {
    IBV_EXP_REG_SHARED_MR_RESERVED = 1 << 0
};

struct ibv_exp_reg_shared_mr_in {
    uint32_t mr_handle;
    struct ibv_pd *pd;
    void *addr;
    uint64_t exp_access;
    uint32_t comp_mask;
};

/* -- ibv_exp_prefetch_mr() */

enum ibv_exp_prefetch_attr_comp_mask {
    IBV_EXP_PREFETCH_MR_RESERVED = 1 << 0
};

enum ibv_exp_prefetch_attr_flags {
    IBV_EXP_PREFETCH_WRITE_ACCESS = 1 << 0
};

struct ibv_exp_prefetch_attr {
    uint32_t flags;
    void *addr;
    size_t length;
    uint32_t comp_mask;
};

/* -- The answer of a driver when a region ends */

enum ibv_exp_dereg_mr_comp_mask {
    IBV_EXP_DEREG_MR_RESERVED = 1 << 0
};

struct ibv_exp_dereg_out {
    int need_dofork;
    uint32_t comp_mask;
};

/* -- Device memory */

enum ibv_exp_dm_attr_comp_mask {
    IBV_EXP_ALLOC_DM_ATTR_RESERVED = 1 << 0
};

struct ibv_exp_alloc_dm_attr {
    size_t length;
    uint32_t comp_mask;
};

enum ibv_exp_dm_comp_mask {
    IBV_EXP_DM_COMP_MASK_RESERVED = 1 << 0
};

struct ibv_exp_dm {
    struct ibv_context *context;
    uint32_t handle;
    uint32_t comp_mask;
};

enum ibv_exp_dm_memcpy_dir {
    IBV_EXP_DM_CPY_TO_DEVICE,
    IBV_EXP_DM_CPY_TO_HOST
};

enum ibv_exp_dm_cpy_comp_mask {
    IBV_EXP_DM_CPY_COMP_MASK_RESERVED = 1 << 0
};

struct ibv_exp_memcpy_dm_attr {
    enum ibv_exp_dm_memcpy_dir memcpy_dir;
    void *host_addr;
    uint64_t dm_offset;
    size_t length;
    uint32_t comp_mask;
};

/* -- Memory keys that a UMR work request fills: ibv_exp_create_mr(), ibv_exp_query_mkey() */

enum ibv_exp_mr_create_flags {
    IBV_EXP_MR_SIGNATURE_EN = 1 << 0,
    IBV_EXP_MR_INDIRECT_KLMS = 1 << 1,
    IBV_EXP_MR_FIXED_BUFFER_SIZE = 1 << 2
};

struct ibv_exp_mr_init_attr {
    uint32_t max_klm_list_size;
    uint32_t create_flags;
    uint64_t exp_access_flags;
};

enum ibv_exp_create_mr_in_comp_mask {
    IBV_EXP_CREATE_MR_IN_RESERVED = 1 << 0
};

struct ibv_exp_create_mr_in {
    struct ibv_pd *pd;
    struct ibv_exp_mr_init_attr attr;
    uint32_t comp_mask;
};

enum ibv_exp_mkey_attr_comp_mask {
    IBV_EXP_MKEY_ATTR_RESERVED = 1 << 0
};

struct ibv_exp_mkey_attr {
    uint32_t max_klm_list_size;
    uint32_t comp_mask;
};

/* -- Memory for the lists of UMR work requests that do not fit into the WQE */

enum ibv_exp_mkey_list_type {
    IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR
};

enum ibv_exp_alloc_mkey_list_comp_mask {
    IBV_EXP_MKEY_LIST_CONTAINER_RESERVED = 1 << 0
};

struct ibv_exp_mkey_list_container_attr {
    struct ibv_pd *pd;
    uint32_t mkey_list_type;
    uint32_t max_klm_list_size;
    uint32_t comp_mask;
};

struct ibv_exp_mkey_list_container {
    uint32_t max_klm_list_size;
    struct ibv_context *context;
};

/* -- Memory windows */

struct ibv_exp_mw_bind_info {
    struct ibv_mr *mr;
    uint64_t addr;
    uint64_t length;
    uint64_t exp_mw_access_flags;
};

enum ibv_exp_bind_mw_comp_mask {
    IBV_EXP_BIND_MW_RESERVED = 1 << 0
};

struct ibv_exp_mw_bind {
    struct ibv_qp *qp;
    struct ibv_mw *mw;
    uint64_t wr_id;
    uint64_t exp_send_flags;
    struct ibv_exp_mw_bind_info bind_info;
    uint32_t comp_mask;
};

/* The length of a region that is all memory of the process, paged on demand */
#define IBV_EXP_IMPLICIT_MR_SIZE (~((size_t)0))

#endif
