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

enum devx_role {
    DEVX_CREATE,
    DEVX_MODIFY,
    DEVX_QUERY,
    DEVX_GENERAL
};

/* Whether the command in, of at least 16 bytes, has that role. */
bool devx_cmd_is(const void *in, enum devx_role role);

/* What creating command and number the object of a MODIFY or QUERY command has. False: the
 * command is about no object. For general objects, *obj_type is set. */
bool devx_cmd_object(const void *in, size_t inlen, uint16_t *create_op, uint32_t *id,
                     uint32_t *obj_type);

/* Says that rings and doorbell records are in umems, in commands that can say so. */
void devx_cmd_set_umem_valid(void *in, size_t inlen);

/* After a successful create command: fills the object's numbers and the command that ends it. */
void devx_cmd_created(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, const void *out,
                      size_t outlen);

#endif
