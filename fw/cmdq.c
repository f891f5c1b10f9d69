/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command queue: from the doorbell to the entry that software owns again.
 *
 * An entry (PRM cmd_queue_entry, 64 bytes) carries 16 bytes of input and of output; longer ones go
 * on in chains of mailboxes (cmd_if_box: 512 bytes of data, then next pointer, block number,
 * token, signatures). One entry is executed per step of hca_run(): the chains are read and
 * checked first, then the command runs, then output and ownership are written, then the CMD event
 * is raised. A chain that is broken in any way ends the entry with a delivery status and no effect.
 *
 * Nothing here trusts a length or a pointer: a chain is walked block by block, each block must
 * carry the number it is expected to have (so a loop ends at its second visit), and memory grows
 * only as blocks really arrive.
 *
 * Signatures: the XOR of all bytes of an entry, and of all bytes of a mailbox, is 0xff; that of a
 * mailbox's control part too (ctrl_signature). They are always written; they are checked as
 * SET_HCA_CAP's cmdif_checksum says: disabled, only where present (initial state), enabled.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/cmd_table.h"
#include "fw/fw_internal.h"
#include "model/eq.h"

#define ENTRY_BYTES    PRM_SIZE(cmd_queue_entry)
#define BOX_BYTES      PRM_SIZE(cmd_if_box)
#define BOX_DATA       512
#define BOX_CTRL       PRM_OFFSET(cmd_if_box, next_pointer_63_32) /* from here on: what links boxes */
#define INLINE_BYTES   16

#define ENTRY_TYPE_PCI 7 /* PCI command transport, the only one */

/* Beyond any command's layout: CREATE_MKEY of 8 GiB in 4 KiB pages, QUERY_FLOW_COUNTER in bulk. */
#define CMD_MAX_INPUT  (20u << 20)
#define CMD_MAX_OUTPUT (4u << 20)

/* Bytes of input or output for which the function has room at any time. Longer ones are paid for
 * (hca->memory) while the command is there: so what destroys objects, which is short, always runs.
 */
#define CMD_FREE_BYTES (64u << 10)

enum cmdif_checksum {
    CHECKSUM_DISABLED = 0,
    CHECKSUM_INITIAL_STATE = 1,
    CHECKSUM_ENABLED = 3,
};

struct entry {
    unsigned index;
    uint64_t addr;
    uint8_t image[PRM_SIZE(cmd_queue_entry)];
    uint32_t in_len, out_len;
    uint8_t token;
};

static uint8_t xor8(const uint8_t *p, size_t len)
{
    uint8_t sum = 0;

    while (len--) {
        sum ^= *p++;
    }
    return sum;
}

/* Whether a signature byte must be checked. */
static bool must_check(const struct fw *fw, uint8_t signature)
{
    switch (fw->caps.cmdif_checksum) {
    case CHECKSUM_DISABLED:
        return false;
    case CHECKSUM_INITIAL_STATE:
        return signature != 0;
    default:
        return true;
    }
}

static bool box_signature_ok(const struct fw *fw, const uint8_t *box)
{
    if (must_check(fw, PRM_GET(cmd_if_box, box, ctrl_signature)) &&
        xor8(box + BOX_DATA, BOX_BYTES - BOX_DATA - 1) != 0xff) {
        return false;
    }
    return !must_check(fw, PRM_GET(cmd_if_box, box, signature)) || xor8(box, BOX_BYTES) == 0xff;
}

static void box_sign(uint8_t *box)
{
    PRM_SET(cmd_if_box, box, ctrl_signature, 0);
    PRM_SET(cmd_if_box, box, signature, 0);
    PRM_SET(cmd_if_box, box, ctrl_signature,
            (uint8_t)~xor8(box + BOX_DATA, BOX_BYTES - BOX_DATA - 1));
    PRM_SET(cmd_if_box, box, signature, (uint8_t)~xor8(box, BOX_BYTES));
}

/* Checks what links a box to its chain, from a whole image of which the control part is filled. */
static uint8_t box_check(const struct entry *e, const uint8_t *box, uint32_t block)
{
    if (PRM_GET(cmd_if_box, box, token) != e->token) {
        return PRM_CMD_DELIVERY_STATUS_TOKEN_ERR;
    }
    if (PRM_GET(cmd_if_box, box, block_number) != block) {
        return PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER;
    }
    return PRM_CMD_DELIVERY_STATUS_OK;
}

static uint64_t box_next(const uint8_t *box)
{
    return (uint64_t)PRM_GET(cmd_if_box, box, next_pointer_63_32) << 32 |
           (uint64_t)PRM_GET(cmd_if_box, box, next_pointer_31_10) << 10;
}

/* Low bits of a next pointer that are not part of the address. */
static bool box_next_aligned(const uint8_t *box)
{
    return (box[BOX_CTRL + 7] | (box[BOX_CTRL + 6] & 3)) == 0;
}

static uint8_t read_input(struct fw *fw, const struct entry *e)
{
    GByteArray *in = fw->cmdq.in;
    uint64_t addr = (uint64_t)PRM_GET(cmd_queue_entry, e->image, input_mailbox_pointer_63_32)
                        << 32 |
                    (uint64_t)PRM_GET(cmd_queue_entry, e->image, input_mailbox_pointer_31_9) << 9;
    uint8_t box[PRM_SIZE(cmd_if_box)], status;

    g_byte_array_set_size(in, 0);
    g_byte_array_append(in, PRM_PTR(cmd_queue_entry, e->image, command_input_inline_data),
                        MIN(e->in_len, INLINE_BYTES));
    if (e->in_len > INLINE_BYTES && (e->image[0xf] || (e->image[0xe] & 1))) {
        return PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER;
    }
    for (uint32_t block = 0; in->len < e->in_len; block++) {
        if (!addr) {
            return PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR;
        }
        if (!hca_dma_read(&fw->hca, addr, box, BOX_BYTES)) {
            return PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR;
        }
        status = box_check(e, box, block);
        if (status) {
            return status;
        }
        if (!box_signature_ok(fw, box)) {
            return PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR;
        }
        if (!box_next_aligned(box)) {
            return PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER;
        }
        g_byte_array_append(in, box, MIN(e->in_len - in->len, BOX_DATA));
        addr = box_next(box);
    }
    return PRM_CMD_DELIVERY_STATUS_OK;
}

/* Walks the output chain, so that a broken one is known before the command has an effect. */
static uint8_t walk_output(struct fw *fw, const struct entry *e)
{
    GArray *blocks = fw->cmdq.out_blocks;
    uint64_t addr = (uint64_t)PRM_GET(cmd_queue_entry, e->image, output_mailbox_pointer_63_32)
                        << 32 |
                    (uint64_t)PRM_GET(cmd_queue_entry, e->image, output_mailbox_pointer_31_9) << 9;
    uint32_t n =
        e->out_len > INLINE_BYTES ? (e->out_len - INLINE_BYTES + BOX_DATA - 1) / BOX_DATA : 0;
    uint8_t box[PRM_SIZE(cmd_if_box)], status;

    g_array_set_size(blocks, 0);
    if (n && (e->image[0x37] || (e->image[0x36] & 1))) {
        return PRM_CMD_DELIVERY_STATUS_BAD_OUTPUT_POINTER;
    }
    for (uint32_t block = 0; block < n; block++) {
        if (!addr) {
            return PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR;
        }
        if (!hca_dma_read(&fw->hca, addr + BOX_DATA, box + BOX_DATA, BOX_BYTES - BOX_DATA)) {
            return PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR;
        }
        status = box_check(e, box, block);
        if (status) {
            return status;
        }
        if (!box_next_aligned(box)) {
            return PRM_CMD_DELIVERY_STATUS_BAD_OUTPUT_POINTER;
        }
        g_array_append_val(blocks, addr);
        addr = box_next(box);
    }
    return PRM_CMD_DELIVERY_STATUS_OK;
}

static bool write_output(struct fw *fw, const struct entry *e)
{
    const GByteArray *out = fw->cmdq.out;
    uint8_t box[PRM_SIZE(cmd_if_box)];

    for (guint i = 0; i < fw->cmdq.out_blocks->len; i++) {
        uint64_t addr = g_array_index(fw->cmdq.out_blocks, uint64_t, i);
        size_t done = INLINE_BYTES + (size_t)i * BOX_DATA;
        size_t len = MIN(out->len - done, BOX_DATA);

        if (!hca_dma_read(&fw->hca, addr + BOX_DATA, box + BOX_DATA, BOX_BYTES - BOX_DATA)) {
            return false;
        }
        memset(box, 0, BOX_DATA);
        memcpy(box, out->data + done, len);
        box_sign(box);
        if (!hca_dma_write(&fw->hca, addr, box, BOX_BYTES)) {
            return false;
        }
    }
    return true;
}

static uint8_t check_entry(struct fw *fw, struct entry *e)
{
    const uint8_t *p = e->image;

    if (PRM_GET(cmd_queue_entry, p, type) != ENTRY_TYPE_PCI) {
        return PRM_CMD_DELIVERY_STATUS_BAD_CMD_TYPE;
    }
    if (must_check(fw, PRM_GET(cmd_queue_entry, p, signature)) && xor8(p, ENTRY_BYTES) != 0xff) {
        return PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR;
    }
    if (p[1] || p[2] || p[3] || p[0x3e]) {
        return PRM_CMD_DELIVERY_STATUS_RESERVED_NOT_ZERO;
    }
    e->token = PRM_GET(cmd_queue_entry, p, token);
    e->in_len = PRM_GET(cmd_queue_entry, p, input_length);
    e->out_len = PRM_GET(cmd_queue_entry, p, output_length);
    if (e->in_len < PRM_SIZE(cmd_in) || e->in_len > CMD_MAX_INPUT) {
        return PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR;
    }
    if (e->out_len < PRM_OFFSET(cmd_out, command_output) || e->out_len > CMD_MAX_OUTPUT) {
        return PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR;
    }
    return PRM_CMD_DELIVERY_STATUS_OK;
}

/* What a command's buffers cost, which grow by doubling. */
static uint64_t buffer_cost(const struct entry *e)
{
    return 2ull * ((e->in_len > CMD_FREE_BYTES ? e->in_len : 0) +
                   (e->out_len > CMD_FREE_BYTES ? e->out_len : 0));
}

static void buffers_new(struct fw *fw)
{
    fw->cmdq.in = g_byte_array_new();
    fw->cmdq.out = g_byte_array_new();
    fw->cmdq.out_blocks = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

static void buffers_free(struct fw *fw)
{
    g_byte_array_unref(fw->cmdq.in);
    g_byte_array_unref(fw->cmdq.out);
    g_array_unref(fw->cmdq.out_blocks);
}

/* The answer to a command for which there is no memory: it is not read. */
static void refuse(struct fw *fw, struct entry *e)
{
    uint8_t *out = PRM_PTR(cmd_queue_entry, e->image, command_output_inline_data);

    hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command of %u bytes of input, %u of output: %s",
            e->in_len, e->out_len, syn_text(SYN_NO_MEMORY));
    fw->invalid_commands++;
    memset(out, 0, INLINE_BYTES);
    PRM_SET(cmd_out, out, status, syn_status(SYN_NO_MEMORY));
    PRM_SET(cmd_out, out, syndrome, syn_code(SYN_NO_MEMORY));
}

static uint8_t execute_entry(struct fw *fw, struct entry *e)
{
    GByteArray *out = fw->cmdq.out;
    uint8_t status = read_input(fw, e);

    if (!status) {
        status = walk_output(fw, e);
    }
    if (status) {
        return status;
    }
    g_byte_array_set_size(out, e->out_len);
    memset(out->data, 0, out->len);
    /* A command stands for itself: it may free any object. */
    fw->hca.holding = false;
    fw_execute(fw, fw->cmdq.in->data, fw->cmdq.in->len, out->data, out->len);
    fw->hca.holding = fw_is_entered(fw);
    memcpy(PRM_PTR(cmd_queue_entry, e->image, command_output_inline_data), out->data,
           MIN(out->len, INLINE_BYTES));
    return write_output(fw, e) ? PRM_CMD_DELIVERY_STATUS_OK : PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR;
}

static uint8_t run_entry(struct fw *fw, struct entry *e)
{
    uint8_t status = check_entry(fw, e);
    uint64_t cost;

    if (status) {
        return status;
    }
    cost = buffer_cost(e);
    if (!ledger_take(&fw->hca.memory, cost)) {
        refuse(fw, e);
        return PRM_CMD_DELIVERY_STATUS_OK;
    }
    status = execute_entry(fw, e);
    if (cost) {
        buffers_free(fw);
        buffers_new(fw);
        ledger_give(&fw->hca.memory, cost);
    }
    return status;
}

/* Hands the entry back: output first, then the word with status and ownership. */
static void finish_entry(struct fw *fw, struct entry *e, uint8_t status)
{
    size_t out = PRM_OFFSET(cmd_queue_entry, command_output_inline_data);
    size_t last = ENTRY_BYTES - 4;
    uint8_t event[EQE_DATA_LEN] = {0};

    PRM_SET(cmd_queue_entry, e->image, status, status);
    PRM_SET(cmd_queue_entry, e->image, ownership, 0);
    PRM_SET(cmd_queue_entry, e->image, signature, 0);
    PRM_SET(cmd_queue_entry, e->image, signature, (uint8_t)~xor8(e->image, ENTRY_BYTES));
    if (!hca_dma_write(&fw->hca, e->addr + out, e->image + out, last - out) ||
        !hca_dma_write(&fw->hca, e->addr + last, e->image + last, 4)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command queue entry %u does not answer", e->index);
        return;
    }
    PRM_SET(cmd_inter_comp_event, event, command_completion_vector, 1u << e->index);
    eq_async(&fw->hca, PRM_EVENT_TYPE_CMD, 0, event);
}

static void run_index(struct fw *fw, unsigned index)
{
    struct entry e = {.index = index};
    uint8_t status;

    e.addr = fw->cmdq.addr + ((uint64_t)index << CMDQ_LOG_STRIDE);
    if (!fw->cmdq.addr || !hca_dma_read(&fw->hca, e.addr, e.image, ENTRY_BYTES)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "command doorbell %u: no command queue at 0x%" G_GINT64_MODIFIER "x", index,
                e.addr);
        return;
    }
    if (!PRM_GET(cmd_queue_entry, e.image, ownership)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command doorbell %u: entry is not the device's",
                index);
        return;
    }
    status = run_entry(fw, &e);
    if (status) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command queue entry %u: %s (%u)", index,
                prm_enum_name("cmd_delivery_status", status), status);
    }
    finish_entry(fw, &e, status);
}

static void cmdq_work(struct hca *hca, struct work *work)
{
    struct fw *fw = fw_of_hca(hca);
    struct fw_cmdq *q = &fw->cmdq;
    unsigned index;

    if (!q->pending || health_is_fatal(fw)) {
        return;
    }
    index = (unsigned)__builtin_ctz(q->pending);
    q->pending &= ~(1u << index);
    run_index(fw, index);
    if (q->pending) {
        hca_schedule(hca, work);
    }
}

void cmdq_doorbell(struct fw *fw, uint32_t vector)
{
    fw->cmdq.pending |= vector;
    if (fw->cmdq.pending) {
        hca_schedule(&fw->hca, &fw->cmdq.work);
    }
}

void cmdq_init(struct fw *fw)
{
    fw->cmdq.work.run = cmdq_work;
    buffers_new(fw);
}

void cmdq_clear(struct fw *fw)
{
    buffers_free(fw);
}

void cmdq_reset(struct fw *fw)
{
    fw->cmdq.addr = 0;
    fw->cmdq.pending = 0;
    hca_unschedule(&fw->cmdq.work);
}
