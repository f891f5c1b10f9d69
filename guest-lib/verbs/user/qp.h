/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files about queue pairs share. */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_QP_H
#define HCASIM_GUEST_LIB_VERBS_USER_QP_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/user/user.h"

/* The part of a raw packet that goes into a WQE if the device wants layer 2 there: an Ethernet
 * header with a VLAN tag. */
#define HV_L2_HEADER 18

void hv_qp_modify_ops(struct verbs_context *ops);
/* As ibv_modify_qp(). rate: read if mask has IBV_QP_RATE_LIMIT, instead of attr's. */
int hv_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                 const struct hv_rate *rate);
void hv_qp_send_ops(struct verbs_context *ops);
/* Sets the functions of ibv_wr_*(). Returns 0, or EOPNOTSUPP if the service type does not support
 * an operation. */
int hv_qp_init_builders(struct user_qp *qp, uint64_t send_ops_flags);
/* log2 of what striding receive queues may have: bytes of a stride, strides of a WQE (the least
 * number depends on ext_stride_num_range). */
#define HV_MIN_LOG_STRIDE      6u
#define HV_MAX_LOG_STRIDE      13u
#define HV_MIN_LOG_STRIDES     9u
#define HV_MIN_LOG_STRIDES_EXT 3u
#define HV_MAX_LOG_STRIDES     16u

/* Creates a WQ as ibv_create_wq() does. dv: what direct verbs add, or NULL. NULL with errno. */
struct ibv_wq *hv_wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr,
                            const struct mlx5dv_wq_init_attr *dv);
/* Posts to a receive queue, under its lock. The caller updates the doorbell record. */
int hv_rq_post(struct hv_wq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Says why hv_rq_post() refused wr with err, which it returns. */
int hv_rq_refuse(struct hv_hca *hca, const struct hv_wq *rq, const struct ibv_recv_wr *wr, int err,
                 const char *verb);
/* What ibv_post_send() does with one request (qp_send.c), for the lists of ibv_exp_post_send(): why
 * a QP takes no requests, the whole WQE, its data. hv_send_build() and hv_send_put_data() are
 * called under the send queue's lock and report failures in wr_err. */
int hv_send_refuse_state(struct user_qp *qp, bool known);
void hv_send_build(struct user_qp *qp, const struct ibv_send_wr *wr);
void hv_send_put_data(struct user_qp *qp, const struct ibv_send_wr *wr);
/* Removes the QP's entries from its CQs. forget: also frees its user index. */
void hv_qp_clean_cqs(struct user_qp *qp, bool forget);

/*
 * Puts a complete WQE into the send queue (send_wqe.c), between ibv_wr_start() and
 * ibv_wr_complete(). ds: its length in 16-byte units. wr_id and flags are those of the struct
 * ibv_qp_ex. The index is filled in; unless raw is set, QPN, ds and flags are filled in as well.
 * wc_opcode: the opcode of its completion. If there is no room, wr_err is set to ENOMEM.
 */
void hv_wr_post_wqe(struct user_qp *qp, const void *wqe, unsigned ds, enum ibv_wc_opcode wc_opcode,
                    bool raw);

/* To be called around such WQEs outside a builder: takes and releases the send queue's lock, and
 * rings the doorbell. hv_wr_end_list() returns 0 or EIO. */
void hv_wr_begin_list(struct user_qp *qp);
int hv_wr_end_list(struct user_qp *qp);
/* Sets the destination of a DCI's message, after its builder was called. stream may be NULL. */
void hv_wr_set_dc_addr(struct user_qp *qp, const struct ibv_ah *ah, uint32_t dctn, uint64_t key,
                       const uint16_t *stream);

/* Creates a QP as ibv_create_qp_ex() does. extra: what direct verbs add, or NULL. NULL with
 * errno. */
struct ibv_exp_peer_direct_attr;
struct hv_qp_extra {
    enum hv_dc dc;
    uint64_t dct_access_key;
    bool dci_streams;
    uint8_t dci_log_streams, dci_log_errored;
    bool builders; /* fills in ibv_wr_*(), whatever attr says */
    bool configures_mkeys;
    uint32_t max_inl_klms; /* the WQE of a UMR can have so many keys */
    bool ooo;
    bool tunnels; /* looks into tunnels of received packets: a raw packet QP */
    bool drains;  /* signature errors drain the send queue */
    bool no_scatter_to_cqe, allow_scatter_to_cqe;
    bool wants_scatter_to_cqe;                   /* whatever MLX5_SCATTER_TO_CQE is */
    const struct ibv_exp_peer_direct_attr *peer; /* starts the send queue; or NULL */
    /* of ibv_exp_create_qp(): that the QP is of it, flags of the device, the largest operand of
     * masked atomics in bytes, the doorbell page of a resource domain or NULL */
    bool exp;
    uint32_t exp_flags, max_atomic_arg;
    struct hv_uar *uar;
};
/* The kinds of tunnels that raw packet QPs can look into: enum mlx5dv_tunnel_offloads
 * (dv_device.c). */
uint32_t hv_dv_tunnel_offloads(struct hv_hca *hca);

struct ibv_qp *hv_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                            const struct hv_qp_extra *extra);

/* Allocates the part of a QP that direct verbs need (dv_wr.c), with builders for these operations
 * (enum mlx5dv_qp_create_send_ops_flags). It is freed with free() when the QP is destroyed. NULL:
 * no memory. */
void *hv_dv_qp_new(struct user_qp *qp, uint64_t ops);

/* Bytes of inline data that a UMR of the QP may have: translation entries and descriptor. */
size_t hv_dv_data_room(const struct user_qp *qp);

/* Copies by the device (dv_qp.c): the longest in bytes, 0 if the device makes none; enabling a QP
 * for them, which returns 0 or errno. */
size_t hv_dv_max_memcpy(struct hv_hca *hca);
int hv_dv_enable_mmo(struct user_qp *qp);

#endif
