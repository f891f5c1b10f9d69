/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands that a program may send through DevX, and the object that each is about.
 *
 * The rules are those of the kernel's driver (mlx5_ib's devx.c). Creating, modifying and querying
 * an object are different calls, and each accepts only its own commands. A command must be about
 * the object that the call names. Rings and doorbell records are in umems.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_CMD_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_DEVX_CMD_H

#include "guest-lib/verbs/dv.h"

/* devx_cmd_does(): whether the command `in`, of at least 16 bytes, is one with which a program may
 * do act to an object. devx_cmd_is_general(): whether it is about no object. */
bool devx_cmd_does(const void *in, enum prm_act act);
bool devx_cmd_is_general(const void *in);

/* The kind and number of the existing object that a command is about. *obj_type is the type of a
 * general object, else 0. False: the command is not about an existing object. */
bool devx_cmd_object(const void *in, size_t inlen, const struct prm_object **object, uint32_t *id,
                     uint32_t *obj_type);

/* If the command has fields for it, sets them to say that rings and doorbell records are in
 * umems. */
void devx_cmd_set_umem_valid(void *in, size_t inlen);

/* Whether the key that a CREATE_MKEY makes refers to other keys. Such a command has these keys, and
 * no pages (devx_handle_mkey_create()). */
bool devx_cmd_is_of_keys(const struct prm_create_mkey_in *in);

/* To be called after a successful create command. Fills in the object's numbers and the command
 * that destroys it. */
void devx_cmd_created(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, const void *out,
                      size_t outlen);

#endif
