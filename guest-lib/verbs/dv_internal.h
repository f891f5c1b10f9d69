/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of direct verbs share among themselves, in libibverbs.so.1. */
#ifndef HCASIM_GUEST_LIB_VERBS_DV_INTERNAL_H
#define HCASIM_GUEST_LIB_VERBS_DV_INTERNAL_H

#include "guest-lib/verbs/dv.h"

/* The operations, each file its own. */
#define DV_OP(ret, name, ops, params, args) ret hv_dv_##name params;
#define DV_ERRNO(name, err, params)
#define DV_NULL(type, name, err, params)
#define DV_VOID(name, params)
#include "guest-lib/verbs/dv_functions.def"
#undef DV_OP
#undef DV_ERRNO
#undef DV_NULL
#undef DV_VOID
int hv_dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type);
int hv_dv_query_port(struct ibv_context *ctx, uint32_t port, struct mlx5dv_port *info, size_t len);

/*
 * Sends a command that the program wrote, in the name of its context (devx.c). The input is not
 * changed. 0; EREMOTEIO: the device refused, and out says why; another errno: it never got there.
 */
int hv_dv_command(struct ibv_context *ctx, const void *in, size_t inlen, void *out, size_t outlen,
                  bool umem);

/* The process's address of offset in a umem, with room for size bytes; NULL: there is none. */
void *hv_dv_umem_at(struct ibv_context *ctx, uint32_t umem_id, uint64_t offset, size_t size);

/*
 * Watching (watch.c). A program that owns a ring writes doorbells to memory, not to the HCA's BAR,
 * so the doorbell records are looked at instead: what they say is what the doorbell would.
 */
enum hv_dv_watch_kind {
    HV_WATCH_SQ, /* dbrec: the send counter */
    HV_WATCH_CQ  /* dbrec: the arm word */
};
struct hv_dv_watch *hv_dv_watch_new(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num,
                                    uint32_t uar_page, const uint32_t *dbrec);
/* NULL is allowed. */
void hv_dv_watch_free(struct hv_dv_watch *watch);
/* The queue's watch if there is one already, so that there are never two. */
bool hv_dv_watched(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num);

/* A QP's part of direct verbs (wr.c), freed with free() when the QP goes; NULL: no memory. */
void *hv_dv_qp_new(struct hv_qp *qp);

/* Takes back all event subscriptions of an object (devx_event.c). */
void hv_dv_unsubscribe_obj(struct mlx5dv_devx_obj *obj);

#endif
