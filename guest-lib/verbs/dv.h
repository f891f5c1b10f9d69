/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects libmlx5.so.1 with libibverbs.so.1, and declares the objects of direct verbs.
 *
 * libmlx5.so.1 (user/dv_export.c) has no state and no HCA of its own. Each mlx5dv_ function finds
 * its context and calls through the table that every device and context carries. So neither library
 * exports a symbol that rdma-core's libraries do not export. dv_functions.def lists the functions.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_DV_H
#define HCASIM_GUEST_LIB_VERBS_DV_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/host/event_queue.h"
#include "guest-lib/verbs/verbs.h"

struct hv_dv_ops {
    int (*init_obj)(struct mlx5dv_obj *obj, uint64_t obj_type);
    int (*query_port)(struct ibv_context *ctx, uint32_t port, struct mlx5dv_port *info, size_t len);
    struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
                                    uint64_t iova, int fd, int access);
    int (*mkey_check)(struct mlx5dv_mkey *mkey, struct mlx5dv_mkey_err *info, size_t size);
    struct mlx5dv_qp_ex *(*qp_ex_from_ibv_qp_ex)(struct ibv_qp_ex *qp);
    struct ibv_context *(*open_device)(struct ibv_device *device, struct mlx5dv_context_attr *attr);
#define DV_OP(ret, name, ops, params, args) ret(*name) params;
#define DV_ERRNO(name, err, params)
#define DV_NULL(type, name, err, params)
#define DV_VOID(name, params)
#define DV_DR(type, name, params)
#include "guest-lib/verbs/dv_functions.def"
#undef DV_OP
#undef DV_ERRNO
#undef DV_NULL
#undef DV_VOID
#undef DV_DR
};

/* Defined in libibverbs.so.1 (user/dv_ops.c). */
extern const struct hv_dv_ops hv_dv_ops;

/* -- the operations -----------------------------------------------------------------------------
 */

#define DV_OP(ret, name, ops, params, args) ret hv_dv_##name params;
#define DV_ERRNO(name, err, params)
#define DV_NULL(type, name, err, params)
#define DV_VOID(name, params)
#define DV_DR(type, name, params)
#include "guest-lib/verbs/dv_functions.def"
#undef DV_OP
#undef DV_ERRNO
#undef DV_NULL
#undef DV_VOID
#undef DV_DR
int hv_dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type);
struct mlx5dv_qp_ex *hv_dv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);
int hv_dv_query_port(struct ibv_context *ctx, uint32_t port, struct mlx5dv_port *info, size_t len);
/* As hv_dv_destroy_mkey(), for a key that the library made for itself: it ends also if the device
 * was removed. */
int hv_mkey_end(struct mlx5dv_mkey *mkey);

/* -- objects: libmlx5.so.1 uses only their context
 * ---------------------------------------------- */

struct user_qp;

/* An object that was made by a DevX command. */
struct mlx5dv_devx_obj {
    struct ibv_context *context;
    const struct prm_object *object;
    uint32_t obj_type;   /* of a general object */
    uint32_t id;         /* its number */
    uint8_t destroy[64]; /* the input of the command that destroys it */
    uint32_t handle;
};

/* A data encryption key, and a session that may import such keys (user/dek.c). */
struct mlx5dv_dek {
    struct mlx5dv_devx_obj *obj;
};

struct mlx5dv_crypto_login_obj {
    struct mlx5dv_devx_obj *obj;
};

/* User memory that DevX commands name by a number. */
struct hv_dv_umem {
    struct mlx5dv_devx_umem dv;
    struct ibv_context *context;
    void *addr;
    size_t size;
    struct hv_umem umem;
    uint32_t handle;
};

struct hv_dv_uar {
    struct mlx5dv_devx_uar dv;
    struct ibv_context *context;
    struct hv_uar uar;
    uint32_t handle;
};

/* A rate of packet pacing: mlx5dv_pp_alloc(). */
struct hv_dv_pp {
    struct mlx5dv_pp dv;
    struct ibv_context *context;
    uint32_t handle;
};

/* Elements of the tree that divides bandwidth (user/dv_sched.c). */
struct mlx5dv_sched_node {
    struct mlx5dv_devx_obj *obj;
};

struct mlx5dv_sched_leaf {
    struct mlx5dv_devx_obj *obj;
};

/* Channels (kernel/devx_event.c). file: the data that waits to be read. */
struct hv_dv_cmd_comp {
    struct mlx5dv_devx_cmd_comp dv;
    struct ibv_context *context;
    struct hv_event_file file; /* GBytes */
};

struct hv_dv_event_channel {
    struct mlx5dv_devx_event_channel dv;
    struct ibv_context *context;
    struct hv_event_file file; /* GBytes */
    bool omit_data;
};

/* A key for UMR: mlx5dv_create_mkey(). */
struct hv_dv_mkey {
    struct mlx5dv_mkey dv;
    struct ibv_context *context;
    struct mlx5dv_devx_obj *obj;
    uint32_t num_desc;           /* translation entries, a multiple of 4 */
    uint64_t length;             /* bytes, as its last layout says */
    struct hv_dv_sig *sig;       /* of a key with signatures (user/dv_sig.h), else NULL */
    struct hv_dv_crypto *crypto; /* of a key with encryption (user/dv_crypto.h), else NULL */
};

/* A UMR WQE with everything inline: entries has the translation entries, then the descriptor. */
struct hv_umr_wqe {
    struct prm_wqe_ctrl_seg ctrl[1];
    struct prm_wqe_umr_ctrl_seg umr[1];
    struct prm_mkc mkc[1];
    uint8_t entries[];
};

/* Additional state of a QP that was made by mlx5dv_create_qp() (dv in struct user_qp). */
struct hv_dv_qp {
    struct mlx5dv_qp_ex ex;
    struct ibv_context *context;
    struct user_qp *qp;
    /* The UMR that is being built, between wr_mkey_configure() and its last setter. */
    struct hv_dv_mkey *cur_mkey;
    unsigned setters_left;
    size_t wqe_size, wqe_room;
    struct hv_umr_wqe *wqe; /* wqe_room bytes long */
};

struct mlx5dv_flow_matcher {
    struct ibv_context *context;
    struct prm_fte_match_param mask[1];
    uint8_t criteria; /* bits PRM_MATCH_CRITERIA_ */
    uint8_t table;    /* PRM_FLOW_TABLE_TYPE_ */
    uint16_t priority;
    uint32_t handle;
    gint flows; /* number of flows made with it */
};

#define DV_CONTAINER(ptr, type) ((type *)((char *)(ptr)-offsetof(type, dv)))

static inline struct hv_dv_qp *hv_dv_qp(struct mlx5dv_qp_ex *ex)
{
    return (struct hv_dv_qp *)((char *)ex - offsetof(struct hv_dv_qp, ex));
}

#endif
