/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a device, and how the calls of this header find them.
 */
#ifndef HCASIM_INFINIBAND_EXP_CONTEXT_H
#define HCASIM_INFINIBAND_EXP_CONTEXT_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <infiniband/verbs.h>
#include "cq.h"
#include "device.h"
#include "ec.h"
#include "flow.h"
#include "intf.h"
#include "memory.h"
#include "qp.h"
#include "send.h"
#include "wq.h"

/* Bit of has_comp_mask: struct verbs_context_exp lies before struct verbs_context. */
#define VERBS_CONTEXT_EXP ((uint64_t)1 << 62)

struct ibv_exp_peer_commit;
struct ibv_exp_rollback_ctx;
struct ibv_exp_peer_peek;
struct ibv_exp_peer_abort_peek;

/*
 * The calls of experimental verbs, in memory before struct verbs_context. It grows towards lower
 * addresses, so sz says which of its first members exist. NULL: the device is without the call.
 */

struct verbs_context_exp {
    struct ibv_exp_dm *(*exp_alloc_dm)(struct ibv_context *context,
                                       struct ibv_exp_alloc_dm_attr *attr);
    int (*exp_free_dm)(struct ibv_exp_dm *dm);
    int (*exp_memcpy_dm)(struct ibv_exp_dm *dm, struct ibv_exp_memcpy_dm_attr *attr);
    int (*exp_post_srq_ops)(struct ibv_srq *srq, struct ibv_exp_ops_wr *op,
                            struct ibv_exp_ops_wr **bad_op);
    struct ibv_srq *(*exp_create_srq)(struct ibv_context *context,
                                      struct ibv_exp_create_srq_attr *attr);
    int (*drv_exp_set_context_attr)(struct ibv_context *context,
                                    struct ibv_exp_open_device_attr *attr);
    struct ibv_ah *(*drv_exp_ibv_create_kah)(struct ibv_pd *pd, struct ibv_exp_ah_attr *attr_exp);
    int (*exp_peer_peek_cq)(struct ibv_cq *ibcq, struct ibv_exp_peer_peek *peek_ctx);
    int (*exp_peer_abort_peek_cq)(struct ibv_cq *ibcq, struct ibv_exp_peer_abort_peek *ack_ctx);
    int (*exp_peer_commit_qp)(struct ibv_qp *qp, struct ibv_exp_peer_commit *peer);
    int (*exp_rollback_send)(struct ibv_qp *qp, struct ibv_exp_rollback_ctx *rollback);
    int (*ec_update_sync)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                          uint8_t *data_updates, uint8_t *code_updates);
    int (*ec_update_async)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                           uint8_t *data_updates, uint8_t *code_updates,
                           struct ibv_exp_ec_comp *ec_comp);
    struct ibv_exp_ec_calc *(*alloc_ec_calc)(struct ibv_pd *pd,
                                             struct ibv_exp_ec_calc_init_attr *attr);
    void (*dealloc_ec_calc)(struct ibv_exp_ec_calc *calc);
    int (*ec_encode_async)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                           struct ibv_exp_ec_comp *ec_comp);
    int (*ec_encode_sync)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem);
    int (*ec_decode_async)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                           uint8_t *erasures, uint8_t *decode_matrix,
                           struct ibv_exp_ec_comp *ec_comp);
    int (*ec_decode_sync)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                          uint8_t *erasures, uint8_t *decode_matrix);
    int (*ec_poll)(struct ibv_exp_ec_calc *calc, int n);
    int (*ec_encode_send)(struct ibv_exp_ec_calc *calc, struct ibv_exp_ec_mem *ec_mem,
                          struct ibv_exp_ec_stripe *data_stripes,
                          struct ibv_exp_ec_stripe *code_stripes);
    int (*exp_query_gid_attr)(struct ibv_context *context, uint8_t port_num, unsigned int index,
                              struct ibv_exp_gid_attr *attr);
    int (*exp_destroy_rwq_ind_table)(struct ibv_exp_rwq_ind_table *rwq_ind_table);
    struct ibv_exp_rwq_ind_table *(*exp_create_rwq_ind_table)(
        struct ibv_context *context, struct ibv_exp_rwq_ind_table_init_attr *init_attr);
    int (*exp_destroy_wq)(struct ibv_exp_wq *wq);
    int (*exp_modify_wq)(struct ibv_exp_wq *wq, struct ibv_exp_wq_attr *wq_attr);
    struct ibv_exp_wq *(*exp_create_wq)(struct ibv_context *context,
                                        struct ibv_exp_wq_init_attr *wq_init_attr);
    int (*drv_exp_poll_dc_info)(struct ibv_context *context, struct ibv_exp_dc_info_ent *ents,
                                int nent, int port);
    void *(*exp_query_intf)(struct ibv_context *context, struct ibv_exp_query_intf_params *params,
                            enum ibv_exp_query_intf_status *status);
    int (*exp_release_intf)(struct ibv_context *context, void *intf,
                            struct ibv_exp_release_intf_params *params);
    struct ibv_exp_res_domain *(*exp_create_res_domain)(struct ibv_context *context,
                                                        struct ibv_exp_res_domain_init_attr *attr);
    int (*exp_destroy_res_domain)(struct ibv_context *context, struct ibv_exp_res_domain *res_dom,
                                  struct ibv_exp_destroy_res_domain_attr *attr);
    int (*lib_exp_use_priv_env)(struct ibv_context *context);
    int (*lib_exp_setenv)(struct ibv_context *context, const char *name, const char *value,
                          int overwrite);
    struct verbs_environment *venv;
    int (*drv_exp_dereg_mr)(struct ibv_mr *mr, struct ibv_exp_dereg_out *out);
    void (*ABI_placeholder2)(void);
    void (*ABI_placeholder1)(void);
    int (*drv_exp_prefetch_mr)(struct ibv_mr *mr, struct ibv_exp_prefetch_attr *attr);
    int (*lib_exp_prefetch_mr)(struct ibv_mr *mr, struct ibv_exp_prefetch_attr *attr);
    struct ibv_exp_mkey_list_container *(*drv_exp_alloc_mkey_list_memory)(
        struct ibv_exp_mkey_list_container_attr *attr);
    struct ibv_exp_mkey_list_container *(*lib_exp_alloc_mkey_list_memory)(
        struct ibv_exp_mkey_list_container_attr *attr);
    int (*drv_exp_dealloc_mkey_list_memory)(struct ibv_exp_mkey_list_container *mem);
    int (*lib_exp_dealloc_mkey_list_memory)(struct ibv_exp_mkey_list_container *mem);
    int (*drv_exp_query_mkey)(struct ibv_mr *mr, struct ibv_exp_mkey_attr *mkey_attr);
    int (*lib_exp_query_mkey)(struct ibv_mr *mr, struct ibv_exp_mkey_attr *mkey_attr);
    struct ibv_mr *(*drv_exp_create_mr)(struct ibv_exp_create_mr_in *in);
    struct ibv_mr *(*lib_exp_create_mr)(struct ibv_exp_create_mr_in *in);
    int (*drv_exp_arm_dct)(struct ibv_exp_dct *dct, struct ibv_exp_arm_attr *attr);
    int (*lib_exp_arm_dct)(struct ibv_exp_dct *dct, struct ibv_exp_arm_attr *attr);
    int (*drv_exp_bind_mw)(struct ibv_exp_mw_bind *mw_bind);
    int (*lib_exp_bind_mw)(struct ibv_exp_mw_bind *mw_bind);
    int (*drv_exp_post_send)(struct ibv_qp *qp, struct ibv_exp_send_wr *wr,
                             struct ibv_exp_send_wr **bad_wr);
    struct ibv_mr *(*drv_exp_reg_mr)(struct ibv_exp_reg_mr_in *in);
    struct ibv_mr *(*lib_exp_reg_mr)(struct ibv_exp_reg_mr_in *in);
    struct ibv_ah *(*drv_exp_ibv_create_ah)(struct ibv_pd *pd, struct ibv_exp_ah_attr *attr_exp);
    int (*drv_exp_query_values)(struct ibv_context *context, int q_values,
                                struct ibv_exp_values *values);
    struct ibv_cq *(*exp_create_cq)(struct ibv_context *context, int cqe,
                                    struct ibv_comp_channel *channel, int comp_vector,
                                    struct ibv_exp_cq_init_attr *attr);
    int (*drv_exp_ibv_poll_cq)(struct ibv_cq *ibcq, int num_entries, struct ibv_exp_wc *wc,
                               uint32_t wc_size);
    void *(*drv_exp_get_legacy_xrc)(struct ibv_srq *ibv_srq);
    void (*drv_exp_set_legacy_xrc)(struct ibv_srq *ibv_srq, void *legacy_xrc);
    struct ibv_mr *(*drv_exp_ibv_reg_shared_mr)(struct ibv_exp_reg_shared_mr_in *in);
    struct ibv_mr *(*lib_exp_ibv_reg_shared_mr)(struct ibv_exp_reg_shared_mr_in *in);
    int (*drv_exp_modify_qp)(struct ibv_qp *qp, struct ibv_exp_qp_attr *attr,
                             uint64_t exp_attr_mask);
    int (*lib_exp_modify_qp)(struct ibv_qp *qp, struct ibv_exp_qp_attr *attr,
                             uint64_t exp_attr_mask);
    int (*drv_exp_post_task)(struct ibv_context *context, struct ibv_exp_task *task,
                             struct ibv_exp_task **bad_task);
    int (*lib_exp_post_task)(struct ibv_context *context, struct ibv_exp_task *task,
                             struct ibv_exp_task **bad_task);
    int (*drv_exp_modify_cq)(struct ibv_cq *cq, struct ibv_exp_cq_attr *attr, int attr_mask);
    int (*lib_exp_modify_cq)(struct ibv_cq *cq, struct ibv_exp_cq_attr *attr, int attr_mask);
    int (*drv_exp_ibv_destroy_flow)(struct ibv_exp_flow *flow);
    int (*lib_exp_ibv_destroy_flow)(struct ibv_exp_flow *flow);
    struct ibv_exp_flow *(*drv_exp_ibv_create_flow)(struct ibv_qp *qp,
                                                    struct ibv_exp_flow_attr *flow_attr);
    struct ibv_exp_flow *(*lib_exp_ibv_create_flow)(struct ibv_qp *qp,
                                                    struct ibv_exp_flow_attr *flow_attr);
    int (*drv_exp_query_port)(struct ibv_context *context, uint8_t port_num,
                              struct ibv_exp_port_attr *port_attr);
    int (*lib_exp_query_port)(struct ibv_context *context, uint8_t port_num,
                              struct ibv_exp_port_attr *port_attr);
    struct ibv_exp_dct *(*create_dct)(struct ibv_context *context,
                                      struct ibv_exp_dct_init_attr *attr);
    int (*destroy_dct)(struct ibv_exp_dct *dct);
    int (*query_dct)(struct ibv_exp_dct *dct, struct ibv_exp_dct_attr *attr);
    int (*drv_exp_query_device)(struct ibv_context *context, struct ibv_exp_device_attr *attr);
    int (*lib_exp_query_device)(struct ibv_context *context, struct ibv_exp_device_attr *attr);
    struct ibv_qp *(*drv_exp_create_qp)(struct ibv_context *context,
                                        struct ibv_exp_qp_init_attr *init_attr);
    struct ibv_qp *(*lib_exp_create_qp)(struct ibv_context *context,
                                        struct ibv_exp_qp_init_attr *init_attr);
    size_t sz;
};

/*
 * Returns the calls of a context, or NULL if its device has none. struct verbs_context begins with
 * members that later releases added; sz says how many the library has. Its last members are always
 * has_comp_mask, which rdma-core's header calls a placeholder, sz and the context.
 */
static inline struct verbs_context_exp *verbs_get_exp_ctx(struct ibv_context *ctx)
{
    struct verbs_context *vctx = verbs_get_ctx(ctx);
    uint64_t has_comp_mask;

    if (!vctx) {
        return NULL;
    }
    has_comp_mask = *(uint64_t *)((char *)&vctx->sz - sizeof(has_comp_mask));
    if (!(has_comp_mask & VERBS_CONTEXT_EXP)) {
        return NULL;
    }
    return (struct verbs_context_exp *)((char *)(ctx + 1) - vctx->sz) - 1;
}

/* The calls of a context if the call op is among them, or NULL */
#define verbs_get_exp_ctx_op(ctx, op)                                                              \
    ({                                                                                             \
        struct verbs_context_exp *_exp = verbs_get_exp_ctx(ctx);                                   \
        _exp && _exp->sz >= sizeof(*_exp) - offsetof(struct verbs_context_exp, op) && _exp->op     \
            ? _exp                                                                                 \
            : NULL;                                                                                \
    })

/* For drivers: sets a call, if the library knows it */
#define verbs_set_exp_ctx_op(calls, op, ptr)                                                       \
    ({                                                                                             \
        struct verbs_context_exp *_exp = (calls);                                                  \
        if (_exp && _exp->sz >= sizeof(*_exp) - offsetof(struct verbs_context_exp, op)) {          \
            _exp->op = (ptr);                                                                      \
        }                                                                                          \
    })

/*
 * Returns whether a call knows the bits of a comp_mask: all bits up to the highest that has a
 * meaning. If not, errno is EINVAL, and a line on stderr says so.
 */
static inline int ibv_exp_known_mask(const char *call, unsigned long long mask,
                                     unsigned long long known)
{
    if (mask <= known) {
        return 1;
    }
    fprintf(stderr, "%s: comp_mask is 0x%llx, but its known bits are 0x%llx\n", call, mask, known);
    errno = EINVAL;
    return 0;
}

#define IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid_mask, ret)                                     \
    if (!ibv_exp_known_mask(__func__, (val), (valid_mask))) {                                      \
        return ret;                                                                                \
    }
#define IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(val, valid_mask)                                     \
    IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid_mask, NULL)
#define IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(val, valid_mask)                                   \
    IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid_mask, EINVAL)
#define IBV_EXP_RET_ZERO_ON_INVALID_COMP_MASK(val, valid_mask)                                     \
    IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid_mask, 0)

#endif
