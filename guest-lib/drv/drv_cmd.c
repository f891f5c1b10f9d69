/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command queue: entries, mailbox chains, waiting for the ownership bit (polling mode).
 *
 * One command at a time runs in slot 0. Slot 1 is for MANAGE_PAGES, because the device may ask for
 * pages before it completes the command in slot 0. The first 16 bytes of input and output are in
 * the entry, the rest in chains of 512-byte mailboxes.
 */
#include <string.h>
#include "guest-lib/drv/drv.h"

#define INLINE_LEN   16
#define MBOX_DATA    512
#define MBOX_STRIDE  1024
#define CMD_PCI_TYPE 7 /* cmd_queue_entry.type: PCI command interface transport */

/* Mailbox i of a slot. */
static struct prm_cmd_if_box *drv_cmd_mailbox_at(const struct drv_mem *boxes, unsigned i)
{
    return (void *)((uint8_t *)boxes->ptr + (size_t)i * MBOX_STRIDE);
}

static uint64_t drv_cmd_mailbox_bus(const struct drv_mem *boxes, unsigned i)
{
    return boxes->bus + (uint64_t)i * MBOX_STRIDE;
}

static unsigned drv_cmd_blocks_for(size_t len)
{
    return len > INLINE_LEN ? (unsigned)((len - INLINE_LEN + MBOX_DATA - 1) / MBOX_DATA) : 0;
}

/* Links blocks first..first+n-1 into a chain. */
static void drv_cmd_chain(const struct drv_mem *boxes, unsigned first, unsigned n, uint8_t token)
{
    for (unsigned i = 0; i < n; i++) {
        struct prm_cmd_if_box *box = drv_cmd_mailbox_at(boxes, first + i);
        uint64_t next = i + 1 < n ? drv_cmd_mailbox_bus(boxes, first + i + 1) : 0;

        memset(box, 0, PRM_SIZE(cmd_if_box));
        PRM_SET(cmd_if_box, box, next_pointer_63_32, next >> 32);
        PRM_SET(cmd_if_box, box, next_pointer_31_10, (uint32_t)next >> 10);
        PRM_SET(cmd_if_box, box, block_number, i);
        PRM_SET(cmd_if_box, box, token, token);
    }
}

struct prm_cmd_queue_entry *drv_cmd_entry(const struct drv *drv, unsigned slot)
{
    return (void *)((uint8_t *)drv->cmdq.ptr + ((size_t)slot << drv->cmd_log_stride));
}

struct prm_cmd_if_box *drv_cmd_mailbox(const struct drv *drv, unsigned slot, unsigned i)
{
    return drv_cmd_mailbox_at(&drv->mailboxes[slot], i);
}

uint8_t drv_delivery_status(const struct drv *drv)
{
    return (uint8_t)PRM_GET(cmd_queue_entry, drv_cmd_entry(drv, DRV_SLOT_CMD), status);
}

static bool drv_cmd_wait_done(struct drv *drv, unsigned slot)
{
    const struct prm_cmd_queue_entry *entry = drv_cmd_entry(drv, slot);
    uint64_t now = drv->dev.ops->now(drv->dev.pci), deadline = now + DRV_CMD_TIMEOUT;

    while (drv_last_word(entry) & DRV_OWNER) {
        if (now >= deadline) {
            return false;
        }
        drv->dev.ops->wait(drv->dev.pci, deadline - now);
        if (slot == DRV_SLOT_CMD && drv->up) {
            drv_poll_events(drv);
        }
        now = drv->dev.ops->now(drv->dev.pci);
    }
    return true;
}

unsigned drv_cmd_prepare(struct drv *drv, unsigned slot, const void *in, size_t in_len,
                         size_t out_len)
{
    struct drv_mem *boxes = &drv->mailboxes[slot];
    struct prm_cmd_queue_entry *entry = drv_cmd_entry(drv, slot);
    unsigned in_blocks = drv_cmd_blocks_for(in_len), out_blocks = drv_cmd_blocks_for(out_len);
    const uint8_t *src = in;

    if ((size_t)(in_blocks + out_blocks) * MBOX_STRIDE > boxes->size) {
        drv_free(drv, boxes);
        *boxes = drv_alloc(drv, (size_t)(in_blocks + out_blocks) * MBOX_STRIDE);
    }
    drv->token = drv->token == 255 ? 1 : drv->token + 1;
    drv_cmd_chain(boxes, 0, in_blocks, drv->token);
    drv_cmd_chain(boxes, in_blocks, out_blocks, drv->token);
    memset(entry, 0, PRM_SIZE(cmd_queue_entry));
    memcpy(PRM_PTR(cmd_queue_entry, entry, command_input_inline_data), src,
           MIN(in_len, INLINE_LEN));
    for (unsigned i = 0; i < in_blocks; i++) {
        size_t at = INLINE_LEN + (size_t)i * MBOX_DATA;

        memcpy(drv_cmd_mailbox_at(boxes, i), src + at, MIN(in_len - at, MBOX_DATA));
    }
    PRM_SET(cmd_queue_entry, entry, type, CMD_PCI_TYPE);
    PRM_SET(cmd_queue_entry, entry, input_length, in_len);
    PRM_SET(cmd_queue_entry, entry, output_length, out_len);
    if (in_blocks) {
        uint64_t bus = drv_cmd_mailbox_bus(boxes, 0);

        PRM_SET(cmd_queue_entry, entry, input_mailbox_pointer_63_32, bus >> 32);
        PRM_SET(cmd_queue_entry, entry, input_mailbox_pointer_31_9, (uint32_t)bus >> 9);
    }
    if (out_blocks) {
        uint64_t bus = drv_cmd_mailbox_bus(boxes, in_blocks);

        PRM_SET(cmd_queue_entry, entry, output_mailbox_pointer_63_32, bus >> 32);
        PRM_SET(cmd_queue_entry, entry, output_mailbox_pointer_31_9, (uint32_t)bus >> 9);
    }
    PRM_SET(cmd_queue_entry, entry, token, drv->token);
    PRM_SET(cmd_queue_entry, entry, ownership, 1);
    return in_blocks;
}

int drv_cmd_ring(struct drv *drv, unsigned slot)
{
    drv->dev.ops->mmio_write(drv->dev.pci, PRM_OFFSET(initial_seg, command_doorbell_vector),
                             1u << slot, 4);
    if (!drv_cmd_wait_done(drv, slot)) {
        return DRV_TIMEOUT;
    }
    return PRM_GET(cmd_queue_entry, drv_cmd_entry(drv, slot), status) ? DRV_UNDELIVERED : 0;
}

int drv_cmd_output(struct drv *drv, unsigned slot, unsigned in_blocks, void *out, size_t out_len)
{
    uint8_t *dst = out;

    memcpy(dst, PRM_PTR(cmd_queue_entry, drv_cmd_entry(drv, slot), command_output_inline_data),
           MIN(out_len, INLINE_LEN));
    for (unsigned i = 0; i < drv_cmd_blocks_for(out_len); i++) {
        size_t at = INLINE_LEN + (size_t)i * MBOX_DATA;

        memcpy(dst + at, drv_cmd_mailbox(drv, slot, in_blocks + i), MIN(out_len - at, MBOX_DATA));
    }
    drv->syndrome = PRM_GET(cmd_out, out, syndrome);
    return (int)PRM_GET(cmd_out, out, status);
}

/* Commands that succeed after a reset, because it leaves nothing for them to do
 * (mlx5_internal_err_ret_value()), and a command that the driver leaves out then
 * (_mlx5_core_destroy_dct()). */
static const uint16_t drv_ending_cmds[] = {
    PRM_CMD_OP_DESTROY_MKEY,       PRM_CMD_OP_DESTROY_EQ,
    PRM_CMD_OP_DESTROY_CQ,         PRM_CMD_OP_DESTROY_QP,
    PRM_CMD_OP_DESTROY_RMP,        PRM_CMD_OP_DESTROY_XRC_SRQ,
    PRM_CMD_OP_DESTROY_XRQ,        PRM_CMD_OP_DESTROY_DCT,
    PRM_CMD_OP_DESTROY_SQ,         PRM_CMD_OP_DESTROY_RQ,
    PRM_CMD_OP_DESTROY_TIR,        PRM_CMD_OP_DESTROY_TIS,
    PRM_CMD_OP_DESTROY_RQT,        PRM_CMD_OP_DESTROY_UCTX,
    PRM_CMD_OP_DEALLOC_PD,         PRM_CMD_OP_DEALLOC_UAR,
    PRM_CMD_OP_DEALLOC_XRCD,       PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN,
    PRM_CMD_OP_TEARDOWN_HCA,       PRM_CMD_OP_DISABLE_HCA,
    PRM_CMD_OP_DRAIN_DCT,          PRM_CMD_OP_DESTROY_FLOW_TABLE,
    PRM_CMD_OP_DESTROY_FLOW_GROUP, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY,
    PRM_CMD_OP_DESTROY_UMEM,       PRM_CMD_OP_DEALLOC_MEMIC,
};

static int drv_cmd_lost(const void *in)
{
    for (size_t i = 0; i < G_N_ELEMENTS(drv_ending_cmds); i++) {
        if (prm_load16(in) == drv_ending_cmds[i]) {
            return PRM_CMD_STATUS_OK;
        }
    }
    return PRM_CMD_STATUS_INTERNAL_ERR;
}

int drv_cmd_slot(struct drv *drv, unsigned slot, const void *in, size_t in_len, void *out,
                 size_t out_len)
{
    unsigned in_blocks;
    int undelivered;

    if (drv->lost) {
        return drv_cmd_lost(in);
    }
    in_blocks = drv_cmd_prepare(drv, slot, in, in_len, out_len);
    undelivered = drv_cmd_ring(drv, slot);
    return undelivered ? undelivered : drv_cmd_output(drv, slot, in_blocks, out, out_len);
}

int drv_cmd(struct drv *drv, const void *in, size_t in_len, void *out, size_t out_len)
{
    return drv_cmd_slot(drv, DRV_SLOT_CMD, in, in_len, out, out_len);
}

int drv_cmd_simple(struct drv *drv, const void *in, size_t in_len)
{
    uint8_t out[16] = {0};

    return drv_cmd(drv, in, in_len, out, sizeof(out));
}
