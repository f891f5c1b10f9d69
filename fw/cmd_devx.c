/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on user contexts and user memory (DevX), with which a process creates objects by
 * commands of its own.
 *
 * A user context is a number, the uid. Its commands carry the uid, and its objects keep it.
 * Destroying the context destroys the objects that it still owns: the firmware runs the objects'
 * own destroy commands in the context's name, users before the objects that they use, until nothing
 * more can be destroyed. This takes as many turns as the number of objects requires.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/cmd_table.h"
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/steering/steering.h"
#include "model/memory/umem.h"
#include "model/port/pace.h"

bool devx_uid_exists(const struct fw *fw, uint16_t uid)
{
    return obj_find(&fw->hca.uctxs, uid) != NULL;
}

/* -- user contexts ----------------------------------------------------------------------------- */

static enum syn cmd_create_uctx(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_uctx *ctx = PRM_PTR(create_uctx_in, cmd->in, uctx);
    struct obj *uctx;

    if (PRM_GET(uctx, ctx, cap) & ~PRM_UCTX_CAP_RAW_TX) {
        return SYN_BAD_UCTX_CAP;
    }
    uctx = obj_make(&fw->hca, OBJ_UCTX, 0, sizeof(*uctx));
    if (!uctx) {
        return SYN_NO_MEMORY;
    }
    PRM_SET(create_uctx_out, cmd->out, uid, uctx->num);
    return SYN_OK;
}

#define DESTROY_CMD_BYTES 0x40 /* no destroy command is longer */

static enum syn cmd_destroy_object(struct fw *fw, uint16_t uid, const struct obj *obj)
{
    const struct prm_command *destroy = obj_class(obj)->object->destroy;
    const struct fw_cmd_row *row = fw_cmd_find(destroy->opcode);
    uint8_t in[DESTROY_CMD_BYTES] = {0}, out[DESTROY_CMD_BYTES] = {0};
    struct fw_cmd cmd = {.row = row,
                         .opcode = destroy->opcode,
                         .uid = uid,
                         .vport = fw->hca.vport,
                         .in = in,
                         .in_len = sizeof(in),
                         .out = out,
                         .out_len = sizeof(out)};
    void *hdr = in;

    PRM_SET(general_obj_in_cmd_hdr, hdr, opcode, destroy->opcode);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, hdr, obj_type, obj_class(obj)->general_type);
    prm_set(in, destroy->number, obj->num, destroy->name);
    return row->handler(fw, &cmd);
}

/* Continues in a number space; looking at an object costs one piece. False: the turn is used up.
 * The progress of destroying a large object is kept in the object. */
static bool cmd_destroy_in(struct fw *fw, uint16_t uid, struct obj_table *table,
                           struct uctx_progress *at)
{
    struct obj *obj;

    while ((obj = obj_next(table, at->num))) {
        at->num = obj->num;
        if (obj->uid == uid) {
            enum syn syn = cmd_destroy_object(fw, uid, obj);

            if (syn == SYN_AGAIN) {
                return false;
            }
            at->gone += syn == SYN_OK;
            at->left += syn != SYN_OK;
        }
        at->num++;
        hca_spend(&fw->hca, 1);
        if (!hca_may_go_on(&fw->hca)) {
            return false;
        }
    }
    return true;
}

/* Continues a pass over all number spaces, which counts the objects that were destroyed and those
 * that were left. Flow tables come first, because their entries name other objects and are not
 * objects with a number themselves. */
static bool cmd_destroy_owned(struct fw *fw, uint16_t uid, struct uctx_progress *at)
{
    if (!at->tables_gone) {
        if (!flow_tables_empty_of(&fw->hca, uid)) {
            return false;
        }
        at->gone = flow_tables_destroy_of(&fw->hca, uid, &at->left);
        at->tables_gone = true;
    }
    for (; at->space < obj_n_spaces; at->space++, at->num = 0) {
        if (!cmd_destroy_in(fw, uid, obj_space(&fw->hca, at->space), at)) {
            return false;
        }
    }
    return true;
}

static enum syn cmd_destroy_uctx(struct fw *fw, struct fw_cmd *cmd)
{
    uint16_t uid = (uint16_t)PRM_GET(destroy_uctx_in, cmd->in, uid);
    struct obj *uctx = obj_find(&fw->hca.uctxs, uid);
    struct uctx_progress *at = &cmd->at.uctx;

    if (!uctx) {
        return SYN_NO_UCTX;
    }
    if (!cmd_destroy_owned(fw, uid, at)) {
        return SYN_AGAIN;
    }
    if (at->gone && at->left) {
        /* another pass, because users of the objects that were left may be destroyed now */
        *at = (struct uctx_progress){0};
        return SYN_AGAIN;
    }
    if (at->left) {
        return SYN_IN_USE;
    }
    pace_forget(&fw->hca, uid);
    obj_end(&fw->hca, uctx);
    return SYN_OK;
}

/* -- user memory ------------------------------------------------------------------------------- */

/* Drops a umem whose pages are not all listed yet; no command can find it. */
static void cmd_umem_drop(struct fw *fw, struct fw_cmd *cmd)
{
    struct umem *umem = cmd->at.list.object;

    mtt_unref(umem->mtt);
    obj_free(&fw->hca, &umem->obj);
}

static enum syn cmd_umem_begin(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_umem *in = PRM_PTR(create_umem_in, cmd->in, umem);
    uint8_t log_page = (uint8_t)(PRM_GET(umem, in, log_page_size) + 12);
    uint64_t page_offset = PRM_GET(umem, in, page_offset);
    uint64_t n = PRM_GET(umem, in, num_of_mtt);
    struct umem *umem;

    if (!cmd->uid) {
        return SYN_BAD_UID;
    }
    if (n > (cmd->in_len - PRM_SIZE(create_umem_in)) / PRM_SIZE(mtt)) {
        return SYN_IN_LEN;
    }
    if (n == 0 || log_page > 31 || page_offset >= 1ull << log_page) {
        return SYN_UMEM_RANGE;
    }
    umem = obj_new(&fw->hca, OBJ_UMEM, cmd->uid, sizeof(*umem));
    if (!umem) {
        return SYN_NO_MEMORY;
    }
    umem->mtt = mtt_empty(&fw->hca, (uint32_t)n, log_page);
    if (!umem->mtt) {
        obj_free(&fw->hca, &umem->obj);
        return SYN_NO_MEMORY;
    }
    umem->mtt->umem = &umem->obj;
    umem->page_offset = page_offset;
    umem->size = (n << log_page) - page_offset;
    cmd->at.list.object = umem;
    cmd->drop = cmd_umem_drop;
    return SYN_OK;
}

/* Creates a umem. Its page list is taken over in parts. */
static enum syn cmd_create_umem(struct fw *fw, struct fw_cmd *cmd)
{
    const uint8_t *pas = PRM_PTR(umem, PRM_PTR(create_umem_in, cmd->in, umem), mtt)->bytes;
    enum syn syn = cmd->at.list.object ? SYN_OK : cmd_umem_begin(fw, cmd);
    struct umem *umem = cmd->at.list.object;
    uint64_t *done = &cmd->at.list.done;

    if (syn) {
        return syn;
    }
    while (*done < umem->mtt->npages) {
        uint32_t part = (uint32_t)MIN(umem->mtt->npages - *done, FW_LIST_PART);

        mtt_put(umem->mtt, (uint32_t)*done, pas + *done * PRM_SIZE(mtt), part);
        *done += part;
        hca_spend(&fw->hca, part / HCA_PIECE_ENTRIES);
        if (!hca_may_go_on(&fw->hca)) {
            return SYN_AGAIN;
        }
    }
    if (!obj_insert(&fw->hca.umems, &umem->obj)) {
        cmd_umem_drop(fw, cmd);
        cmd->drop = NULL;
        return SYN_NO_MEMORY;
    }
    cmd->drop = NULL;
    PRM_SET(create_umem_out, cmd->out, umem_id, umem->obj.num);
    return SYN_OK;
}

static enum syn cmd_destroy_umem(struct fw *fw, struct fw_cmd *cmd)
{
    struct umem *umem = umem_find(&fw->hca, PRM_GET(destroy_umem_in, cmd->in, umem_id));

    if (!umem) {
        return SYN_NO_UMEM;
    }
    if (!uid_owns(&umem->obj, cmd->uid)) {
        return SYN_BAD_UID;
    }
    if (umem->obj.refs) {
        return SYN_IN_USE;
    }
    if (!umem_trim(&fw->hca, &umem->obj)) {
        return SYN_AGAIN;
    }
    umem_free(&fw->hca, &umem->obj);
    return SYN_OK;
}

const struct fw_cmd_row cmds_devx[] = {
    FW_KERNEL_CMD(CREATE_UCTX, cmd_create_uctx),
    FW_KERNEL_CMD(DESTROY_UCTX, cmd_destroy_uctx),
    FW_CMD(CREATE_UMEM, cmd_create_umem),
    FW_CMD(DESTROY_UMEM, cmd_destroy_umem),
    {0},
};
