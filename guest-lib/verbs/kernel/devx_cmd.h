/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that a program may send through DevX, and the object that each is about.
 *
 * The rules are those of the kernel's driver (mlx5_ib's devx.c): creating, changing and asking for
 * an object are different calls, each for its own commands; a command must be about the object
 * that the call names; rings and doorbell records are in umems.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_CMD_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_CMD_H

#include "guest-lib/verbs/dv.h"

/* Whether the command in, of at least 16 bytes, is one that a program may send to do that to an
 * object; whether it is one that is about no object. */
bool devx_cmd_does(const void *in, enum prm_act act);
bool devx_cmd_is_general(const void *in);

/* Kind and number of the object that a command is about which is there already. False: the command
 * is about none. *obj_type is that of a general object, else 0. */
bool devx_cmd_object(const void *in, size_t inlen, const struct prm_object **object, uint32_t *id,
                     uint32_t *obj_type);

/* Says that rings and doorbell records are in umems, in commands that can say so. */
void devx_cmd_set_umem_valid(void *in, size_t inlen);

/* After a successful create command: fills the object's numbers and the command that ends it. */
void devx_cmd_created(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, const void *out,
                      size_t outlen);

#endif
