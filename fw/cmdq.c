/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command queue: from the doorbell to the entry that software owns again.
 *
 * An entry (PRM cmd_queue_entry, 64 bytes) carries 16 bytes of input and of output; longer ones go
 * on in chains of mailboxes (cmd_if_box: 512 bytes of data, then next pointer, block number,
 * token, signatures). One entry is under way at a time, in stages:
 *
 *   IDLE -> READ_INPUT -> WALK_OUTPUT -> EXECUTE -> WRITE_OUTPUT -> HAND_BACK -> RELEASE -> IDLE
 *
 * The chains are read and checked first, then the command runs, then output and ownership are
 * written, then the CMD event is raised. A chain that is broken in any way ends the entry with a
 * delivery status and no effect: it goes to HAND_BACK at once. A step of a stage is a mailbox, or a
 * call of the command's handler (fw/cmd.h); when a turn is over, the entry waits between two steps
 * for the next one. A command may take thousands of turns. What forgets the queue meanwhile (a
 * reset, a write that disables the function) forgets the command with all that it took; firmware
 * that has stopped (fw/health.c) leaves it where it is.
 *
 * Nothing here trusts a length or a pointer: a chain is walked block by block, each block must
 * carry the number it is expected to have (so a loop ends at its second visit), and memory is used
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
#include "model/queue/eq.h"

#define ENTRY_BYTES  PRM_SIZE(cmd_queue_entry)
#define BOX_BYTES    PRM_SIZE(cmd_if_box)
#define BOX_DATA     512
#define BOX_CTRL     PRM_OFFSET(cmd_if_box, next_pointer_63_32) /* from here on: what links boxes */
#define INLINE_BYTES 16
#define CMDQ_ENTRIES (1u << CMDQ_LOG_ENTRIES)

/* Beyond any command's layout: CREATE_MKEY of 8 GiB in 4 KiB pages, QUERY_FLOW_COUNTER in bulk. */
#define CMD_MAX_INPUT  (20u << 20)
#define CMD_MAX_OUTPUT (4u << 20)

/* Bytes of input or output for which the function has room at any time. Longer ones are paid for
 * (hca->memory) while the command is there: so what destroys objects, which is short, always runs.
 */
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

/* Mailboxes joined. */
struct buffer {
    uint8_t *data; /* own, or a block that hca->memory pays for */
    uint64_t size; /* of that block; 0: own */
    uint32_t have, len;
    uint8_t own[CMD_FREE_BYTES];
};

/* The entry under way. */
struct cmdq_entry {
    enum stage stage;
    unsigned index; /* STAGE_IDLE: of the last one */
    uint64_t addr;
    struct prm_cmd_queue_entry image[1];
    uint32_t in_len, out_len;
    uint8_t token;
    uint8_t status;    /* of the delivery: PRM_CMD_DELIVERY_STATUS_ */
    uint64_t box;      /* bus address of the next mailbox of the chain that is read */
    uint32_t block;    /* its number; WRITE_OUTPUT: of the one to write */
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

/* Checks what links a box to its chain, from a whole image of which the control part is filled. */
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

/* Low bits of a next pointer that are not part of the address. */
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

/* Room for len bytes. False: it cannot be paid for. */
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

/* A step of it. True: it has ended. */
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

/* The answer to a command for which there is no memory: it is not read. */
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

/* Of the entries whose doorbells rang, the first one behind the last one taken: no entry goes
 * before another one twice, however fast it is posted anew. */
static unsigned cmdq_next_index(const struct fw_cmdq *q)
{
    uint32_t behind = q->pending & ~1u << q->entry->index;

    return (unsigned)__builtin_ctz(behind ? behind : q->pending);
}

/* Reads the entry whose turn it is. False: it is not there, or not the device's. */
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

/* The output chain is walked before, so that a broken one is known before the command has an
 * effect. */
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

/* -- executing, and giving back ---------------------------------------------------------------- */

static enum stage cmdq_execute(struct fw *fw, struct cmdq_entry *e)
{
    bool done;

    /* A command stands for itself: it may free any object. */
    fw->hca.holding = false;
    done = fw_execute(fw, &e->cmd);
    fw->hca.holding = fw_is_entered(fw);
    if (!done) {
        hca_spend(&fw->hca, 1);
        return STAGE_EXECUTE;
    }
    g_assert(!e->cmd.drop); /* what is done keeps nothing */
    memcpy(PRM_PTR(cmd_queue_entry, e->image, command_output_inline_data), e->out.data,
           MIN(e->out.len, INLINE_BYTES));
    e->block = 0;
    return STAGE_WRITE_OUTPUT;
}

/* Output first, then the word with status and ownership. */
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
    PRM_SET(cmd_inter_comp_event, event, command_completion_vector, 1u << e->index);
    eq_async(&fw->hca, PRM_EVENT_TYPE_CMD, 0, event);
    return STAGE_RELEASE;
}

/* What the entry took, it gives back. */
static enum stage cmdq_release(struct fw *fw, struct cmdq_entry *e)
{
    return cmdq_buffer_trim(fw, &e->in) && cmdq_buffer_trim(fw, &e->out) ? STAGE_IDLE
                                                                         : STAGE_RELEASE;
}

/* -- work -------------------------------------------------------------------------------------- */

/* A step of each stage: returns the stage that the next step is of. */
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

    if (health_is_fatal(fw)) {
        return;
    }
    do {
        e->stage = steps[e->stage](fw, e);
    } while (e->stage != STAGE_IDLE && hca_may_go_on(hca));
    if (cmdq_has_work(&fw->cmdq)) {
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
    e->index = CMDQ_ENTRIES - 1; /* the first is the next */
    fw->cmdq.pending = 0;
    hca_unschedule(&fw->cmdq.work);
}

void cmdq_reset(struct fw *fw)
{
    cmdq_forget(fw);
    fw->cmdq.addr = 0;
}
