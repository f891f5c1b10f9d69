/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements the command queue: from the doorbell until software owns the entry again.
 *
 * An entry (PRM cmd_queue_entry, 64 bytes) carries 16 bytes of input and of output. Longer input
 * and output continue in chains of mailboxes (cmd_if_box: 512 bytes of data, then next pointer,
 * block number, token, signatures). One entry at a time is under way, in stages:
 *
 *   IDLE -> READ_INPUT -> WALK_OUTPUT -> EXECUTE -> WRITE_OUTPUT -> HAND_BACK -> RELEASE -> IDLE
 *
 * First the chains are read and checked. Then the command runs. Then output and ownership are
 * written, and the CMD event is raised. A chain that is broken in any way ends the entry with a
 * delivery status and no effect: the entry goes to HAND_BACK at once. A step of a stage is one
 * mailbox, or one call of the command's handler (fw/cmd.h). When a turn is over, the entry waits
 * between two steps for the next turn. A command may take thousands of turns. If the queue is
 * forgotten meanwhile (by a reset, or a write that disables the function), the command is forgotten
 * with all memory that it took. Firmware that has stopped (fw/health.c) leaves the command where it
 * is.
 *
 * No length or pointer is trusted. A chain is walked block by block, and each block must carry the
 * expected number, so a loop ends at its second visit. Memory is taken only for blocks that really
 * arrive.
 *
 * Signatures: the XOR of all bytes of an entry, and of all bytes of a mailbox, is 0xff; so is that
 * of a mailbox's control part (ctrl_signature). Signatures are always written. Whether they are
 * checked depends on SET_HCA_CAP's cmdif_checksum: disabled, only where present (initial state),
 * enabled.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/cmd_table.h"
#include "fw/fw_internal.h"
#include "model/queue/eq.h"

#define ENTRY_BYTES PRM_SIZE(cmd_queue_entry)
#define BOX_BYTES   PRM_SIZE(cmd_if_box)
#define BOX_DATA    512
/* from here on: the fields that link mailboxes */
#define BOX_CTRL     PRM_OFFSET(cmd_if_box, next_pointer_63_32)
#define INLINE_BYTES 16
#define CMDQ_ENTRIES (1u << CMDQ_LOG_ENTRIES)

/* More than any command's layout needs: CREATE_MKEY of 8 GiB in 4 KiB pages, QUERY_FLOW_COUNTER in
 * bulk. */
#define CMD_MAX_INPUT  (20u << 20)
#define CMD_MAX_OUTPUT (4u << 20)

/* Bytes of input or output for which the function always has room. Longer input and output are paid
 * for by hca->memory while the command is under way. So commands that destroy objects, which are
 * short, can always run. */
#define CMD_FREE_BYTES (64u << 10)

enum stage {
    STAGE_IDLE, /* no entry is under way */
    STAGE_READ_INPUT,
    STAGE_WALK_OUTPUT,
    STAGE_EXECUTE,
    STAGE_WRITE_OUTPUT,
    STAGE_HAND_BACK,
    STAGE_RELEASE,
    STAGES
};

/* The joined data of mailboxes. */
struct buffer {
    uint8_t *data; /* own[], or a block that hca->memory pays for */
    uint64_t size; /* size of that block; 0: own[] */
    uint32_t have, len;
    uint8_t own[CMD_FREE_BYTES];
};

/* The entry under way. */
struct cmdq_entry {
    enum stage stage;
    unsigned index; /* STAGE_IDLE: index of the last entry */
    uint64_t addr;
    struct prm_cmd_queue_entry image[1];
    uint32_t in_len, out_len;
    uint8_t token;
    uint8_t status;    /* delivery status: PRM_CMD_DELIVERY_STATUS_ */
    bool reports;      /* its completion is an event, too */
    uint64_t box;      /* bus address of the next mailbox of the chain that is being read */
    uint32_t block;    /* number of that mailbox; WRITE_OUTPUT: of the mailbox to be written */
    struct fw_cmd cmd; /* from EXECUTE on */

    struct buffer in, out;
    GArray *out_blocks; /* bus addresses (uint64_t) of the output mailboxes */
};

static uint8_t cmdq_xor8(const uint8_t *p, size_t len)
{
    uint8_t sum = 0;

    while (len--) {
        sum ^= *p++;
    }
    return sum;
}

/* Whether a signature byte must be checked. */
static bool cmdq_must_check(const struct fw *fw, uint8_t signature)
{
    switch (fw->caps.cmdif_checksum) {
    case PRM_CAP_CMDIF_CHECKSUM_DISABLED:
        return false;
    case PRM_CAP_CMDIF_CHECKSUM_INITIAL:
        return signature != 0;
    default:
        return true;
    }
}

static bool cmdq_box_signature_ok(const struct fw *fw, const struct prm_cmd_if_box *box)
{
    if (cmdq_must_check(fw, PRM_GET(cmd_if_box, box, ctrl_signature)) &&
        cmdq_xor8(box->bytes + BOX_DATA, BOX_BYTES - BOX_DATA - 1) != 0xff) {
        return false;
    }
    return !cmdq_must_check(fw, PRM_GET(cmd_if_box, box, signature)) ||
           cmdq_xor8(box->bytes, BOX_BYTES) == 0xff;
}

static void cmdq_box_sign(struct prm_cmd_if_box *box)
{
    PRM_SET(cmd_if_box, box, ctrl_signature, 0);
    PRM_SET(cmd_if_box, box, signature, 0);
    PRM_SET(cmd_if_box, box, ctrl_signature,
            (uint8_t)~cmdq_xor8(box->bytes + BOX_DATA, BOX_BYTES - BOX_DATA - 1));
    PRM_SET(cmd_if_box, box, signature, (uint8_t)~cmdq_xor8(box->bytes, BOX_BYTES));
}

/* Checks the fields that link a mailbox to its chain. Of box, only the control part needs to be
 * filled. */
static uint8_t cmdq_box_check(const struct cmdq_entry *e, const struct prm_cmd_if_box *box,
                              uint32_t block)
{
    if (PRM_GET(cmd_if_box, box, token) != e->token) {
        return PRM_CMD_DELIVERY_STATUS_TOKEN_ERR;
    }
    if (PRM_GET(cmd_if_box, box, block_number) != block) {
        return PRM_CMD_DELIVERY_STATUS_BAD_BLOCK_NUMBER;
    }
    return PRM_CMD_DELIVERY_STATUS_OK;
}

static uint64_t cmdq_box_next(const struct prm_cmd_if_box *box)
{
    return (uint64_t)PRM_GET(cmd_if_box, box, next_pointer_63_32) << 32 |
           (uint64_t)PRM_GET(cmd_if_box, box, next_pointer_31_10) << 10;
}

/* Whether the low bits of a next pointer, which are not part of the address, are zero. */
static bool cmdq_box_next_aligned(const struct prm_cmd_if_box *box)
{
    return (box->bytes[BOX_CTRL + 7] | (box->bytes[BOX_CTRL + 6] & 3)) == 0;
}

static enum stage cmdq_fail(struct cmdq_entry *e, uint8_t status)
{
    e->status = status;
    return STAGE_HAND_BACK;
}

/* -- taking an entry --------------------------------------------------------------------------- */

static uint8_t cmdq_check_entry(struct fw *fw, struct cmdq_entry *e)
{
    const struct prm_cmd_queue_entry *p = e->image;

    if (PRM_GET(cmd_queue_entry, p, type) != PRM_CMD_TYPE_PCIE_CMD_IF_TRANSPORT) {
        return PRM_CMD_DELIVERY_STATUS_BAD_CMD_TYPE;
    }
    if (cmdq_must_check(fw, PRM_GET(cmd_queue_entry, p, signature)) &&
        cmdq_xor8(p->bytes, ENTRY_BYTES) != 0xff) {
        return PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR;
    }
    if (p->bytes[1] || p->bytes[2] || p->bytes[3] || p->bytes[0x3e]) {
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

/* Makes room for len bytes. False: the ledger refuses them. */
static bool cmdq_buffer_begin(struct fw *fw, struct buffer *b, uint32_t len)
{
    b->len = len;
    b->have = 0;
    b->data = b->own;
    if (len > sizeof(b->own)) {
        b->data = ledger_alloc(&fw->hca.memory, len);
        b->size = b->data ? len : 0;
    }
    return b->data;
}

static void cmdq_buffer_end(struct fw *fw, struct buffer *b)
{
    if (b->size) {
        ledger_free(&fw->hca.memory, b->data, b->size);
        b->size = 0;
    }
}

/* Frees a part of a buffer. True: all of it is freed. */
static bool cmdq_buffer_trim(struct fw *fw, struct buffer *b)
{
    if (!b->size || ledger_trim(&fw->hca.memory, b->data, &b->size)) {
        cmdq_buffer_end(fw, b);
        return true;
    }
    hca_spend(&fw->hca, LEDGER_TRIM_PAGES);
    return false;
}

static void cmdq_buffer_append(struct buffer *b, const void *data, uint32_t max)
{
    uint32_t n = MIN(b->len - b->have, max);

    memcpy(b->data + b->have, data, n);
    b->have += n;
}

/* Answers a command for which there is no memory, without reading it. */
static void cmdq_refuse(struct fw *fw, struct cmdq_entry *e)
{
    void *out = PRM_PTR(cmd_queue_entry, e->image, command_output_inline_data);

    hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command of %u bytes of input, %u of output: %s",
            e->in_len, e->out_len, syn_text(SYN_NO_MEMORY));
    fw->invalid_commands++;
    memset(out, 0, INLINE_BYTES);
    PRM_SET(cmd_out, out, status, syn_status(SYN_NO_MEMORY));
    PRM_SET(cmd_out, out, syndrome, syn_code(SYN_NO_MEMORY));
}

/* Of the entries whose doorbells rang, the first one after the last entry that was taken, going
 * round. So no entry is taken twice before another waiting one, even if software posts it again at
 * once. */
static unsigned cmdq_next_index(const struct fw_cmdq *q)
{
    uint32_t behind = q->pending & ~1u << q->entry->index;

    return (unsigned)__builtin_ctz(behind ? behind : q->pending);
}

/* Reads the next entry. False: the queue is not there, or the device does not own the entry. */
static bool cmdq_read_entry(struct fw *fw, struct cmdq_entry *e)
{
    struct fw_cmdq *q = &fw->cmdq;

    e->index = cmdq_next_index(q);
    e->addr = q->addr + ((uint64_t)e->index << CMDQ_LOG_STRIDE);
    q->pending &= ~(1u << e->index);
    if (!q->addr || !hca_dma_read(&fw->hca, e->addr, e->image, ENTRY_BYTES)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "command doorbell %u: no command queue at 0x%" G_GINT64_MODIFIER "x", e->index,
                e->addr);
        return false;
    }
    if (!PRM_GET(cmd_queue_entry, e->image, ownership)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command doorbell %u: entry is not the device's",
                e->index);
        return false;
    }
    return true;
}

static enum stage cmdq_take(struct fw *fw, struct cmdq_entry *e)
{
    uint8_t status;

    if (!fw->cmdq.pending || !cmdq_read_entry(fw, e)) {
        return STAGE_IDLE;
    }
    /* The driver polls for the command that makes the EQ of these events. An event of it would come
     * when the driver has used the entry again, and would complete that command. */
    e->reports = eq_takes(&fw->hca, PRM_EVENT_TYPE_CMD);
    status = cmdq_check_entry(fw, e);
    if (status) {
        return cmdq_fail(e, status);
    }
    e->status = PRM_CMD_DELIVERY_STATUS_OK;
    if (!cmdq_buffer_begin(fw, &e->in, e->in_len) || !cmdq_buffer_begin(fw, &e->out, e->out_len)) {
        cmdq_refuse(fw, e);
        return STAGE_HAND_BACK;
    }
    if (e->in_len > INLINE_BYTES && (e->image->bytes[0xf] || (e->image->bytes[0xe] & 1))) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER);
    }
    cmdq_buffer_append(&e->in, PRM_PTR(cmd_queue_entry, e->image, command_input_inline_data),
                       INLINE_BYTES);
    e->block = 0;
    e->box = (uint64_t)PRM_GET(cmd_queue_entry, e->image, input_mailbox_pointer_63_32) << 32 |
             (uint64_t)PRM_GET(cmd_queue_entry, e->image, input_mailbox_pointer_31_9) << 9;
    return STAGE_READ_INPUT;
}

/* -- chains of mailboxes ----------------------------------------------------------------------- */

static const uint8_t zeros[BOX_DATA];

static enum stage cmdq_begin_output(struct cmdq_entry *e)
{
    if (e->out_len > INLINE_BYTES && (e->image->bytes[0x37] || (e->image->bytes[0x36] & 1))) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_BAD_OUTPUT_POINTER);
    }
    cmdq_buffer_append(&e->out, zeros, INLINE_BYTES);
    g_array_set_size(e->out_blocks, 0);
    e->block = 0;
    e->box = (uint64_t)PRM_GET(cmd_queue_entry, e->image, output_mailbox_pointer_63_32) << 32 |
             (uint64_t)PRM_GET(cmd_queue_entry, e->image, output_mailbox_pointer_31_9) << 9;
    return STAGE_WALK_OUTPUT;
}

static enum stage cmdq_read_input(struct fw *fw, struct cmdq_entry *e)
{
    struct prm_cmd_if_box box[1];
    uint8_t status;

    if (e->in.have == e->in.len) {
        return cmdq_begin_output(e);
    }
    if (!e->box) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_INPUT_LEN_ERR);
    }
    if (!hca_dma_read(&fw->hca, e->box, box, BOX_BYTES)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR);
    }
    status = cmdq_box_check(e, box, e->block);
    if (status) {
        return cmdq_fail(e, status);
    }
    if (!cmdq_box_signature_ok(fw, box)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_SIGNATURE_ERR);
    }
    if (!cmdq_box_next_aligned(box)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_BAD_INPUT_POINTER);
    }
    cmdq_buffer_append(&e->in, box, BOX_DATA);
    e->box = cmdq_box_next(box);
    e->block++;
    return STAGE_READ_INPUT;
}

static enum stage cmdq_begin_command(struct cmdq_entry *e)
{
    e->cmd = (struct fw_cmd){
        .in = e->in.data, .in_len = e->in.len, .out = e->out.data, .out_len = e->out.len};
    return STAGE_EXECUTE;
}

/* The output chain is checked before the command runs, so that a broken chain is known before the
 * command has an effect. */
static enum stage cmdq_walk_output(struct fw *fw, struct cmdq_entry *e)
{
    struct prm_cmd_if_box box[1];
    uint8_t status;

    if (e->out.have == e->out.len) {
        return cmdq_begin_command(e);
    }
    if (!e->box) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_OUTPUT_LEN_ERR);
    }
    if (!hca_dma_read(&fw->hca, e->box + BOX_DATA, box->bytes + BOX_DATA, BOX_BYTES - BOX_DATA)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR);
    }
    status = cmdq_box_check(e, box, e->block);
    if (status) {
        return cmdq_fail(e, status);
    }
    if (!cmdq_box_next_aligned(box)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_BAD_OUTPUT_POINTER);
    }
    g_array_append_val(e->out_blocks, e->box);
    cmdq_buffer_append(&e->out, zeros, BOX_DATA);
    e->box = cmdq_box_next(box);
    e->block++;
    return STAGE_WALK_OUTPUT;
}

static enum stage cmdq_write_output(struct fw *fw, struct cmdq_entry *e)
{
    struct prm_cmd_if_box box[1];
    size_t done = INLINE_BYTES + (size_t)e->block * BOX_DATA;
    uint64_t addr;

    if (e->block == e->out_blocks->len) {
        return STAGE_HAND_BACK;
    }
    addr = g_array_index(e->out_blocks, uint64_t, e->block);
    if (!hca_dma_read(&fw->hca, addr + BOX_DATA, box->bytes + BOX_DATA, BOX_BYTES - BOX_DATA)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR);
    }
    memset(box, 0, BOX_DATA);
    memcpy(box, e->out.data + done, MIN(e->out.len - done, BOX_DATA));
    cmdq_box_sign(box);
    if (!hca_dma_write(&fw->hca, addr, box, BOX_BYTES)) {
        return cmdq_fail(e, PRM_CMD_DELIVERY_STATUS_INTERNAL_ERR);
    }
    e->block++;
    return STAGE_WRITE_OUTPUT;
}

/* -- execution and hand-back ------------------------------------------------------------------ */

static enum stage cmdq_execute(struct fw *fw, struct cmdq_entry *e)
{
    bool done;

    /* No object is in use while a command runs, so it may free any object. */
    fw->hca.holding = false;
    done = fw_execute(fw, &e->cmd);
    fw->hca.holding = fw_is_entered(fw);
    if (!done) {
        hca_spend(&fw->hca, 1);
        return STAGE_EXECUTE;
    }
    g_assert(!e->cmd.drop); /* a command that is done keeps nothing */
    memcpy(PRM_PTR(cmd_queue_entry, e->image, command_output_inline_data), e->out.data,
           MIN(e->out.len, INLINE_BYTES));
    e->block = 0;
    return STAGE_WRITE_OUTPUT;
}

/* Writes the output first, then the word with status and ownership. */
static enum stage cmdq_hand_back(struct fw *fw, struct cmdq_entry *e)
{
    size_t out = PRM_OFFSET(cmd_queue_entry, command_output_inline_data);
    size_t last = ENTRY_BYTES - 4;
    struct prm_cmd_inter_comp_event event[1] = {0};

    if (e->status) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command queue entry %u: %s (%u)", e->index,
                prm_enum_name("cmd_delivery_status", e->status), e->status);
    }
    PRM_SET(cmd_queue_entry, e->image, status, e->status);
    PRM_SET(cmd_queue_entry, e->image, ownership, 0);
    PRM_SET(cmd_queue_entry, e->image, signature, 0);
    PRM_SET(cmd_queue_entry, e->image, signature,
            (uint8_t)~cmdq_xor8(e->image->bytes, ENTRY_BYTES));
    if (!hca_dma_write(&fw->hca, e->addr + out, e->image->bytes + out, last - out) ||
        !hca_dma_write(&fw->hca, e->addr + last, e->image->bytes + last, 4)) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR, "command queue entry %u does not answer", e->index);
        return STAGE_RELEASE;
    }
    if (e->reports) {
        PRM_SET(cmd_inter_comp_event, event, command_completion_vector, 1u << e->index);
        eq_async(&fw->hca, PRM_EVENT_TYPE_CMD, 0, event);
    }
    return STAGE_RELEASE;
}

/* Frees the buffers of the entry. */
static enum stage cmdq_release(struct fw *fw, struct cmdq_entry *e)
{
    return cmdq_buffer_trim(fw, &e->in) && cmdq_buffer_trim(fw, &e->out) ? STAGE_IDLE
                                                                         : STAGE_RELEASE;
}

/* -- work -------------------------------------------------------------------------------------- */

/* One step for each stage. Returns the stage of the next step. */
static enum stage (*const steps[STAGES])(struct fw *fw, struct cmdq_entry *e) = {
    [STAGE_IDLE] = cmdq_take,
    [STAGE_READ_INPUT] = cmdq_read_input,
    [STAGE_WALK_OUTPUT] = cmdq_walk_output,
    [STAGE_EXECUTE] = cmdq_execute,
    [STAGE_WRITE_OUTPUT] = cmdq_write_output,
    [STAGE_HAND_BACK] = cmdq_hand_back,
    [STAGE_RELEASE] = cmdq_release,
};

static bool cmdq_has_work(const struct fw_cmdq *q)
{
    return q->pending || q->entry->stage != STAGE_IDLE;
}

static void cmdq_work(struct hca *hca, struct work *work)
{
    struct fw *fw = fw_of_hca(hca);
    struct cmdq_entry *e = fw->cmdq.entry;

    if (health_is_fatal(fw) || inject_command_waits(fw)) {
        return;
    }
    do {
        e->stage = steps[e->stage](fw, e);
    } while (e->stage != STAGE_IDLE && hca_may_go_on(hca) && !inject_command_waits(fw));
    if (cmdq_has_work(&fw->cmdq) && !inject_command_waits(fw)) {
        hca_schedule(hca, work);
    }
}

void cmdq_doorbell(struct fw *fw, uint32_t vector)
{
    fw->cmdq.pending |= vector;
    if (cmdq_has_work(&fw->cmdq)) {
        hca_schedule(&fw->hca, &fw->cmdq.work);
    }
}

void cmdq_init(struct fw *fw)
{
    fw->cmdq.work.run = cmdq_work;
    fw->cmdq.entry = g_new0(struct cmdq_entry, 1);
    fw->cmdq.entry->index = CMDQ_ENTRIES - 1;
    fw->cmdq.entry->out_blocks = g_array_new(FALSE, FALSE, sizeof(uint64_t));
}

void cmdq_clear(struct fw *fw)
{
    cmdq_forget(fw);
    g_array_unref(fw->cmdq.entry->out_blocks);
    g_clear_pointer(&fw->cmdq.entry, g_free);
}

void cmdq_forget(struct fw *fw)
{
    struct cmdq_entry *e = fw->cmdq.entry;

    if (e->cmd.drop) {
        e->cmd.drop(fw, &e->cmd);
    }
    e->cmd.drop = NULL;
    cmdq_buffer_end(fw, &e->in);
    cmdq_buffer_end(fw, &e->out);
    e->stage = STAGE_IDLE;
    e->index = CMDQ_ENTRIES - 1; /* so that entry 0 is the next */
    fw->cmdq.pending = 0;
    hca_unschedule(&fw->cmdq.work);
    hca_timer_stop(&fw->hca, &fw->inject.command);
}

void cmdq_reset(struct fw *fw)
{
    cmdq_forget(fw);
    fw->cmdq.addr = 0;
}
