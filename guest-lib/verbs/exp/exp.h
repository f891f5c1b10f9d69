/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Experimental verbs (ibv_exp_*) in the library. Their calls are a table that lies before the
 * context's struct verbs_context (struct verbs_context_exp). A slot that stays NULL is a call that
 * the library does not have: the inline call of <infiniband/verbs_exp.h> then answers as the old
 * library answered for such a device.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_EXP_EXP_H
#define HCASIM_GUEST_LIB_VERBS_EXP_EXP_H

#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "guest-lib/verbs/user/user.h"

/* Makes a new context one with experimental verbs, and fills in their calls (context.c). */
void hv_exp_init(struct hv_context *ctx);

/* The topics: each fills in the calls of its file. */
void hv_exp_cq_ops(struct verbs_context_exp *ops);
void hv_exp_dct_ops(struct verbs_context_exp *ops);
void hv_exp_peer_ops(struct verbs_context_exp *ops);
void hv_exp_mr_ops(struct verbs_context_exp *ops);
void hv_exp_umr_ops(struct verbs_context_exp *ops);
void hv_exp_dm_ops(struct verbs_context_exp *ops);
void hv_exp_device_ops(struct verbs_context_exp *ops);
void hv_exp_domain_ops(struct verbs_context_exp *ops);
void hv_exp_ec_ops(struct verbs_context_exp *ops);
void hv_exp_flow_ops(struct verbs_context_exp *ops);
void hv_exp_intf_ops(struct verbs_context_exp *ops);
void hv_exp_poll_ops(struct verbs_context_exp *ops);
void hv_exp_port_ops(struct verbs_context_exp *ops);
void hv_exp_qp_ops(struct verbs_context_exp *ops);
void hv_exp_send_ops(struct verbs_context_exp *ops);
void hv_exp_srq_ops(struct verbs_context_exp *ops);
void hv_exp_task_ops(struct verbs_context_exp *ops);
void hv_exp_wq_ops(struct verbs_context_exp *ops);

/* Fills in the attributes of ibv_exp_query_device() for erasure codes (ec.c). */
void hv_exp_ec_caps(struct ibv_context *ctx, struct ibv_exp_device_attr *attr);

/* Frees the private environment of a context that closes (port.c). */
void hv_exp_env_free(struct verbs_context_exp *exp);

/* A resource domain (domain.c): how many threads use its queues, and the doorbell page of its QPs.
 * hv_exp_domain_uar() returns NULL for no domain. */
bool hv_exp_domain_is_safe(const struct ibv_exp_res_domain *domain);
struct hv_uar *hv_exp_domain_uar(struct ibv_exp_res_domain *domain);

#endif
