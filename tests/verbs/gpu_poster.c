/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements gpu_poster.h: WQEs, doorbells and CQEs by loads and stores alone. */
#include "tests/verbs/gpu_poster.h"
#include <endian.h>
#include <string.h>

#define WORDS       64u    /* of the largest WQE */
#define BLUEFLAME   0x800u /* offset of the first BlueFlame register in a doorbell page */
#define HALF        0x100u /* offset of its second half */
#define NO_RECORD   0x600u /* offset of the register of queues without a record */
#define INLINE_FLAG (1u << 31)

/* Fields of a control segment. */
#define CE_ALWAYS 0x08u
#define FM_FENCE  0x40u

/* Fields of a CQE. */
#define CQE_SYNDROME 0x37u
#define CQE_QPN      0x38u
#define CQE_LAST     0x3cu /* wqe_counter, signature, op_own */
#define CQE_NONE     0xfu  /* opcode: never written */

void gpu_store_now(void *opaque, void *at, uint64_t value, unsigned size)
{
    if (size == 8) {
        __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELAXED);
    } else if (size == 4) {
        __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_RELAXED);
    } else {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

/* -- WQEs -------------------------------------------------------------------------------------- */

/* A WQE under construction, as it will be in memory. */
struct wqe {
    uint32_t word[WORDS];
    unsigned words;
};

static void wqe_add32(struct wqe *wqe, uint32_t value)
{
    wqe->word[wqe->words++] = htobe32(value);
}

static void wqe_add64(struct wqe *wqe, uint64_t value)
{
    wqe_add32(wqe, (uint32_t)(value >> 32));
    wqe_add32(wqe, (uint32_t)value);
}

static void wqe_add_bytes(struct wqe *wqe, const void *bytes, size_t len)
{
    if (len) { /* memcpy() takes no NULL, which stands for no bytes */
        memcpy(&wqe->word[wqe->words], bytes, len);
    }
    wqe->words += (unsigned)(len + 3) / 4;
}

/* Fills up the last 16 bytes. */
static void wqe_pad(struct wqe *wqe)
{
    while (wqe->words % 4) {
        wqe_add32(wqe, 0);
    }
}

static bool op_is_masked(const struct gpu_op *op)
{
    return op->what == GPU_MASKED_CS || op->what == GPU_MASKED_FA;
}

static void wqe_add_operands(struct wqe *wqe, const struct gpu_op *op)
{
    unsigned n = op->what == GPU_MASKED_CS ? 4 : 2;

    for (unsigned i = 0; i < n; i++) {
        if (op_is_masked(op) && op->len == 4) {
            wqe_add32(wqe, (uint32_t)op->operand[i]);
        } else {
            wqe_add64(wqe, op->operand[i]);
        }
    }
    wqe_pad(wqe);
}

static void wqe_add_data(struct wqe *wqe, const struct gpu_op *op)
{
    if (op->data) {
        wqe_add32(wqe, op->len | INLINE_FLAG);
        wqe_add_bytes(wqe, op->data, op->len);
        wqe_pad(wqe);
    } else if (op->len) {
        wqe_add32(wqe, op->len);
        wqe_add32(wqe, op->lkey);
        wqe_add64(wqe, op->laddr);
    }
}

/* Everything behind the control segment. */
static void wqe_add_segments(struct wqe *wqe, const struct gpu_op *op)
{
    if (op->what == GPU_NOP) {
        return;
    }
    if (op->what == GPU_DUMP) {
        wqe_add_data(wqe, op);
        return;
    }
    if (op->what == GPU_WAIT) { /* gpunetio does not store the first 8 bytes */
        wqe_add64(wqe, 0xa5a5a5a5a5a5a5a5);
        wqe_add32(wqe, op->wait_index);
        wqe_add32(wqe, op->wait_cqn);
        return;
    }
    wqe_add_bytes(wqe, op->av, op->av_len);
    wqe_add64(wqe, op->raddr);
    wqe_add32(wqe, op->rkey);
    wqe_add32(wqe, 0);
    if (op->what >= GPU_CS) {
        wqe_add_operands(wqe, op);
    }
    wqe_add_data(wqe, op);
}

static struct wqe wqe_make(const struct gpu_op *op, uint32_t qpn, uint16_t index)
{
    static const uint8_t opcodes[] = {
        [GPU_NOP] = 0x00,       [GPU_DUMP] = 0x23,      [GPU_WRITE] = 0x08,
        [GPU_READ] = 0x10,      [GPU_CS] = 0x11,        [GPU_FA] = 0x12,
        [GPU_MASKED_CS] = 0x14, [GPU_MASKED_FA] = 0x15, [GPU_WAIT] = 0x0f};
    struct wqe wqe = {.words = 4};
    uint32_t opmod = !op_is_masked(op) ? 0 : op->len == 4 ? 8 : 9;

    wqe_add_segments(&wqe, op);
    wqe.word[0] = htobe32(opmod << 24 | (uint32_t)index << 8 | opcodes[op->what]);
    wqe.word[1] = htobe32(qpn << 8 | wqe.words / 4);
    wqe.word[2] = htobe32((op->unsignaled ? 0 : CE_ALWAYS) | (op->fence ? FM_FENCE : 0));
    return wqe;
}

unsigned gpu_blocks(const struct gpu_op *op)
{
    return (wqe_make(op, 0, 0).words * 4 + GPU_BLOCK - 1) / GPU_BLOCK;
}

static void sq_fence(struct gpu_sq *sq)
{
    sq->store(sq->opaque, NULL, 0, 0);
}

static uint8_t *sq_at(const struct gpu_sq *sq, uint32_t byte)
{
    return sq->ring + byte % (sq->blocks * GPU_BLOCK);
}

uint16_t gpu_post(struct gpu_sq *sq, const struct gpu_op *op)
{
    struct wqe wqe = wqe_make(op, sq->qpn, (uint16_t)sq->pi);

    for (unsigned i = 0; i < wqe.words; i++) {
        sq->store(sq->opaque, sq_at(sq, sq->pi * GPU_BLOCK + i * 4), wqe.word[i], 4);
    }
    memcpy(sq->image, wqe.word, sizeof(sq->image));
    sq->last = (uint16_t)sq->pi;
    sq->pi += gpu_blocks(op);
    return sq->last;
}

/* -- doorbells --------------------------------------------------------------------------------- */

static void sq_store_record(struct gpu_sq *sq)
{
    sq_fence(sq);
    sq->store(sq->opaque, sq->record, htobe32(sq->pi & 0xffff), 4);
    sq_fence(sq);
}

/* Two big-endian dwords as the bytes of one store. */
static uint64_t two_words(uint32_t first, uint32_t second)
{
    const uint32_t word[2] = {htobe32(first), htobe32(second)};
    uint64_t both;

    memcpy(&both, word, sizeof(both));
    return both;
}

/* gpunetio stores more bits of the counter than the device has. */
static void sq_store_doorbell(struct gpu_sq *sq, uint32_t to, uint32_t counter)
{
    sq->store(sq->opaque, sq->page + to, two_words(counter << 8, sq->qpn << 8), 8);
}

/* Stores the first bytes of the last WQE to a BlueFlame buffer. */
static void sq_store_wqe(struct gpu_sq *sq, uint32_t to, unsigned len)
{
    for (unsigned i = 0; i < len / 8; i++) {
        sq->store(sq->opaque, sq->page + to + (size_t)8 * i, sq->image[i], 8);
    }
}

void gpu_ring(struct gpu_sq *sq)
{
    switch (sq->order) {
    case GPU_DOORBELL_TWICE:
        sq_fence(sq);
        sq_store_doorbell(sq, BLUEFLAME, sq->pi);
        sq_store_record(sq);
        sq_store_doorbell(sq, BLUEFLAME, sq->pi);
        break;
    case GPU_BLUEFLAME:
        sq_fence(sq);
        sq_store_wqe(sq, BLUEFLAME, GPU_BLOCK);
        sq_store_record(sq);
        sq_store_doorbell(sq, BLUEFLAME, sq->pi);
        break;
    case GPU_NO_RECORD:
        sq_fence(sq);
        sq_store_doorbell(sq, NO_RECORD, sq->pi);
        break;
    case GPU_HALVES:
        sq_store_record(sq);
        sq_store_wqe(sq, BLUEFLAME + (sq->half ? HALF : 0), 8);
        sq->half = !sq->half;
        break;
    default:
        sq_store_record(sq);
        sq_store_doorbell(sq, BLUEFLAME, sq->pi & 0xffff);
    }
}

void gpu_ring_late(struct gpu_sq *sq, uint32_t counter)
{
    sq_store_doorbell(sq, NO_RECORD, counter);
}

uint16_t gpu_post_and_ring(struct gpu_sq *sq, const struct gpu_op *op)
{
    uint16_t index = gpu_post(sq, op);

    gpu_ring(sq);
    return index;
}

/* -- CQEs -------------------------------------------------------------------------------------- */

static uint32_t cq_load_last(const uint8_t *cqe)
{
    return be32toh(
        __atomic_load_n((const uint32_t *)(const void *)(cqe + CQE_LAST), __ATOMIC_ACQUIRE));
}

static struct gpu_cqe cq_read(const uint8_t *cqe, uint32_t last)
{
    struct gpu_cqe seen = {.index = (uint16_t)(last >> 16),
                           .opcode = (uint8_t)last >> 4,
                           .syndrome = __atomic_load_n(cqe + CQE_SYNDROME, __ATOMIC_ACQUIRE)};
    uint32_t qpn =
        __atomic_load_n((const uint32_t *)(const void *)(cqe + CQE_QPN), __ATOMIC_ACQUIRE);

    seen.qpn = be32toh(qpn) & 0xffffff;
    return seen;
}

/* The device may write the next CQE while this one is read: then it is read again. */
static bool cq_poll_collapsed(struct gpu_cq *cq, struct gpu_cqe *cqe)
{
    uint32_t last = cq_load_last(cq->ring), again = last;

    if (last == cq->seen || (last >> 4 & 0xf) == CQE_NONE) {
        return false;
    }
    do {
        last = again;
        *cqe = cq_read(cq->ring, last);
        again = cq_load_last(cq->ring);
    } while (again != last);
    cq->seen = last;
    return true;
}

bool gpu_poll(struct gpu_cq *cq, struct gpu_cqe *cqe)
{
    const uint8_t *at = cq->ring + (size_t)(cq->ci & (cq->cqes - 1)) * GPU_BLOCK;
    uint32_t last;

    if (cq->collapsed) {
        return cq_poll_collapsed(cq, cqe);
    }
    last = cq_load_last(at);
    if ((last >> 4 & 0xf) == CQE_NONE || (last & 1) != !!(cq->ci & cq->cqes)) {
        return false;
    }
    *cqe = cq_read(at, last);
    cq->ci++;
    if (cq->record) {
        __atomic_store_n(cq->record, htobe32(cq->ci & 0xffffff), __ATOMIC_RELEASE);
    }
    return true;
}

void gpu_cq_clear(struct gpu_cq *cq)
{
    memset(cq->ring, 0xff, (size_t)cq->cqes * GPU_BLOCK);
    cq->seen = UINT32_MAX;
}
