/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel half's files of direct verbs share: DevX commands, user memory, subscriptions. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_H

#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

/*
 * Sends a command that the program wrote, in the name of its context (devx.c). The input is not
 * changed. 0; EREMOTEIO: the device refused, and out says why; another errno: it never got there.
 */
int hv_dv_command(struct ibv_context *ctx, const void *in, size_t inlen, void *out, size_t outlen,
                  bool umem);

/* The process's address of offset in a umem, with room for size bytes; NULL: there is none. */
void *hv_dv_umem_at(struct ibv_context *ctx, uint32_t umem_id, uint64_t offset, size_t size);

/* Takes back all event subscriptions of an object, of a file that closes (devx_event.c). */
void hv_dv_unsubscribe_obj(struct mlx5dv_devx_obj *obj);
void hv_dv_unsubscribe_file(struct hv_hca *hca, const struct hv_file *file);

/* What ends with the file that it is left in: 0 or errno. The structure stays. */
int uverbs_destroy_devx_obj(struct mlx5dv_devx_obj *obj);
int uverbs_dereg_umem(struct hv_dv_umem *umem);
int uverbs_free_uar(struct hv_dv_uar *uar);
/* The EQ's event, to who subscribed to it; completions included, with no lock held. */
void hv_dv_event(struct hv_hca *hca, const struct drv_event *event);

#endif
