/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel half's files of direct verbs share: DevX commands, user memory, event
 * subscriptions. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_H

#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

/*
 * Sends a command that the program wrote, as the user of its context (devx.c). The input is not
 * changed. Returns 0; EREMOTEIO: the device refused the command, and out says why; another errno:
 * the command did not reach the device.
 */
int hv_dv_command(struct ibv_context *ctx, const void *in, size_t inlen, void *out, size_t outlen,
                  bool umem);

/* The process's address of an offset in a umem, with size bytes behind it. NULL: there is none. */
void *hv_dv_umem_at(struct ibv_context *ctx, uint32_t umem_id, uint64_t offset, size_t size);

/* Removes all event subscriptions to an object; all of a file that closes (devx_event.c). */
void hv_dv_unsubscribe_obj(struct mlx5dv_devx_obj *obj);
void hv_dv_unsubscribe_file(struct hv_hca *hca, const struct hv_file *file);

/* End objects that are left when their file closes. Each returns 0 or errno. The structure
 * stays. */
int uverbs_destroy_devx_obj(struct mlx5dv_devx_obj *obj);
/* As mlx5dv_devx_obj_destroy(), which a removed device refuses, for an object that the library made
 * for itself: it ends then, too. Returns 0 or errno. */
int hv_devx_obj_end(struct mlx5dv_devx_obj *obj);
int uverbs_dereg_umem(struct hv_dv_umem *umem);
int uverbs_free_uar(struct hv_dv_uar *uar);
/* Gives an event of the EQ, completions included, to its subscribers. Called with no lock held. */
void hv_dv_event(struct hv_hca *hca, const struct drv_event *event);

#endif
