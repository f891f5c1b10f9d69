/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP numbers that the device assigns to no QP (mlx5dv_reserved_qpn_alloc()), for programs that need
 * a number without a QP of verbs, such as a connection manager.
 *
 * The device reserves numbers in blocks, which are DevX objects. The numbers of a block are given
 * out in order, each only once. A block is destroyed when all its numbers were given out and have
 * been returned.
 */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/user.h"

struct hv_reserved_qpns {
    struct mlx5dv_devx_obj *obj;
    uint32_t first, next, in_use;
    struct hv_reserved_qpns *older;
    uint8_t taken[]; /* one byte per number */
};

static uint32_t reserved_per_block(struct ibv_context *ctx)
{
    return 1u << PRM_GET(cmd_hca_cap_2, hv_drv(hv_hca_of(ctx))->cap_2,
                         log_reserved_qpn_granularity);
}

/* Reserves a block. NULL with the errno of the command. */
static struct hv_reserved_qpns *reserved_new_block(struct ibv_context *ctx)
{
    struct hv_reserved_qpns *block = calloc(1, sizeof(*block) + reserved_per_block(ctx));
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    uint32_t log_range = (uint32_t)g_bit_storage(reserved_per_block(ctx)) - 1;

    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    PRM_SET(general_obj_create_param, PRM_PTR(general_obj_in_cmd_hdr, in, op_param_create),
            log_obj_range, log_range);
    block->obj = hv_dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    if (!block->obj) {
        errno = errno == EREMOTEIO
                    ? hv_status_errno((int)PRM_GET(general_obj_out_cmd_hdr, out, status))
                    : errno;
        free(block);
        return NULL;
    }
    block->first = block->obj->id;
    return block;
}

int hv_dv_reserved_qpn_alloc(struct ibv_context *context, uint32_t *qpn)
{
    struct hv_context *ctx = hv_context(context);
    struct hv_reserved_qpns *block;
    int err = 0;

    if (!(HV_CAP(ctx->hca, general_obj_types) >> PRM_GENERAL_OBJ_TYPE_RESERVED_QPN & 1)) {
        return EOPNOTSUPP;
    }
    pthread_mutex_lock(&ctx->reserved_lock);
    block = ctx->reserved_qpns;
    if (!block || block->next >= reserved_per_block(context)) {
        block = reserved_new_block(context);
        if (block) {
            block->older = ctx->reserved_qpns;
            ctx->reserved_qpns = block;
        } else {
            err = errno;
        }
    }
    if (block) {
        *qpn = block->first + block->next;
        block->taken[block->next++] = 1;
        block->in_use++;
    }
    pthread_mutex_unlock(&ctx->reserved_lock);
    return err;
}

static void reserved_free_block(struct hv_reserved_qpns *block)
{
    hv_dv_devx_obj_destroy(block->obj);
    free(block);
}

int hv_dv_reserved_qpn_dealloc(struct ibv_context *context, uint32_t qpn)
{
    uint32_t num = reserved_per_block(context);
    struct hv_reserved_qpns **at, *block;
    int err = 0;

    pthread_mutex_lock(&hv_context(context)->reserved_lock);
    for (at = &hv_context(context)->reserved_qpns;
         *at && (qpn < (*at)->first || qpn - (*at)->first >= num); at = &(*at)->older) {
    }
    block = *at;
    if (!block || !block->taken[qpn - block->first]) {
        errno = err = EINVAL;
    } else {
        block->taken[qpn - block->first] = 0;
        if (--block->in_use == 0 && block->next >= num) {
            *at = block->older;
            reserved_free_block(block);
        }
    }
    pthread_mutex_unlock(&hv_context(context)->reserved_lock);
    return err;
}

void hv_reserved_qpns_free(struct hv_context *ctx)
{
    while (ctx->reserved_qpns) {
        struct hv_reserved_qpns *block = ctx->reserved_qpns;

        ctx->reserved_qpns = block->older;
        reserved_free_block(block);
    }
}
