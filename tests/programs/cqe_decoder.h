/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a CQ whose CQEs are compressed, from raw memory. Shares nothing with the device: the
 * offsets are those of struct mlx5_cqe64 and mlx5_mini_cqe8 in the drivers, and the order of slots
 * is that of Linux's mlx5e (en_rx.c) and DPDK's mlx5_rx_poll_len(). Where flow tag and header types
 * are in a mini CQE is what DPDK's rxq_cq_to_mbuf() and rxq_cq_to_pkt_type() read.
 *
 * The decoder restores each CQE as software sees it: the title with the fields of the mini CQE.
 */
#ifndef HCASIM_TESTS_CQE_DECODER_H
#define HCASIM_TESTS_CQE_DECODER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    DEC_CQE = 64,
    DEC_HASH = 0x0c,
    DEC_HASH_TYPE = 0x10,
    DEC_CHECKSUM = 0x14,
    DEC_HEADERS = 0x1d,
    DEC_BYTE_CNT = 0x2c,
    DEC_SEND_OPCODE = 0x38,
    DEC_FLOW_TAG = 0x39,
    DEC_COUNTER = 0x3c,
    DEC_ROUND = 0x3e,
    DEC_OP_OWN = 0x3f,
    DEC_COMPRESSED = 3, /* of bits 3:2 of op_own */
    DEC_INVALID = 0xf,  /* of bits 7:4 of op_own */
    DEC_REQ = 0,
    DEC_MINI = 8,
    DEC_FIFO = 256, /* CQEs of one session, at most */
};

enum dec_format {
    DEC_FORMAT_HASH = 0,
    DEC_FORMAT_CSUM = 1,
    DEC_FORMAT_FTAG_STRIDX = 2,
    DEC_FORMAT_CSUM_STRIDX = 3,
    DEC_FORMAT_L34H_STRIDX = 4,
};

struct cqe_decoder {
    uint8_t *ring; /* slots of stride bytes; the cqe64 is in the last 64 of a slot */
    unsigned log_size, stride;
    bool enhanced;
    bool strides;           /* of a striding queue: byte_cnt has strides in bits 30:16 */
    enum dec_format format; /* of receives */
    uint32_t ci;            /* the next slot that the device writes a title, CQE or array to */

    uint8_t title[DEC_CQE];
    uint16_t counter;
    bool titled;

    struct {
        uint8_t bytes[DEC_CQE];
        bool mini; /* from a mini CQE: time stamp, and hash or checksum, are the title's */
    } fifo[DEC_FIFO];
    unsigned head, tail;
    /* what was read */
    uint64_t cqes, minis, sessions, slots_written;
    const char *fault; /* what the device did wrong */
};

static inline uint8_t *dec_slot(const struct cqe_decoder *d, uint32_t index)
{
    uint32_t slot = index & ((1u << d->log_size) - 1);

    return d->ring + (size_t)slot * d->stride + d->stride - DEC_CQE;
}

static inline uint16_t dec_16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t dec_32(const uint8_t *p)
{
    return (uint32_t)dec_16(p) << 16 | dec_16(p + 2);
}

static inline bool dec_ready(const struct cqe_decoder *d)
{
    const uint8_t *cqe = dec_slot(d, d->ci);
    uint8_t op_own = __atomic_load_n(&cqe[DEC_OP_OWN], __ATOMIC_ACQUIRE);

    if (d->enhanced) {
        return cqe[DEC_ROUND] == (uint8_t)(d->ci >> d->log_size) && op_own >> 4 != DEC_INVALID;
    }
    return (op_own & 1) == (d->ci >> d->log_size & 1) && op_own >> 4 != DEC_INVALID;
}

static inline void dec_push(struct cqe_decoder *d, const uint8_t *cqe, bool mini)
{
    memcpy(d->fifo[d->tail].bytes, cqe, DEC_CQE);
    d->fifo[d->tail].bytes[DEC_OP_OWN] &= 0xf2; /* opcode and solicited event */
    d->fifo[d->tail].bytes[DEC_ROUND] = 0;
    d->fifo[d->tail++].mini = mini;
    d->cqes++;
    d->minis += mini;
}

/* Puts the fields of a mini CQE into the title, and the result into the fifo. */
static inline void dec_expand(struct cqe_decoder *d, const uint8_t *mini)
{
    memcpy(d->title + DEC_BYTE_CNT, mini + 4, 4);
    if (d->title[DEC_OP_OWN] >> 4 == DEC_REQ) {
        memcpy(d->title + DEC_COUNTER, mini, 2);
        d->title[DEC_SEND_OPCODE] = mini[2];
        if (mini[3]) {
            d->fault = "reserved byte of a mini CQE";
        }
    } else if (d->format >= DEC_FORMAT_FTAG_STRIDX) {
        memcpy(d->title + DEC_COUNTER, mini + 2, 2);
        if (d->format == DEC_FORMAT_CSUM_STRIDX) {
            memcpy(d->title + DEC_CHECKSUM, mini, 2);
        } else if (d->format == DEC_FORMAT_FTAG_STRIDX) {
            d->title[DEC_FLOW_TAG] = mini[4];
            memcpy(d->title + DEC_FLOW_TAG + 1, mini, 2);
            d->title[DEC_BYTE_CNT] = 0;
        } else {
            d->title[DEC_HEADERS] = mini[0];
            if (mini[1]) {
                d->fault = "reserved byte of a mini CQE";
            }
        }
    } else {
        if (d->format == DEC_FORMAT_HASH) {
            memcpy(d->title + DEC_HASH, mini, 4);
        } else {
            memcpy(d->title + DEC_CHECKSUM, mini, 2);
        }
        d->title[DEC_COUNTER] = (uint8_t)(d->counter >> 8);
        d->title[DEC_COUNTER + 1] = (uint8_t)d->counter;
        d->counter = (uint16_t)(d->counter + (d->strides ? dec_16(mini + 4) & 0x7fff : 1));
    }
    dec_push(d, d->title, true);
}

/* DPDK's vector code takes the CQEs of a session, and their buffers, in one row (rxq_burst_v()). */
static inline bool dec_crosses_end(struct cqe_decoder *d, uint32_t n)
{
    uint32_t slots = 1u << d->log_size;

    if ((d->ci & (slots - 1)) + n > slots) {
        d->fault = "a session goes on at the begin of the ring";
    }
    return d->fault;
}

static inline void dec_read_basic(struct cqe_decoder *d, const uint8_t *cqe)
{
    uint32_t n = dec_32(cqe + DEC_BYTE_CNT);
    uint8_t arrays[DEC_FIFO / 8][DEC_CQE];

    if (n < 2 || n > DEC_FIFO || n > 1u << d->log_size) {
        d->fault = "number of CQEs of a session";
        return;
    }
    if (dec_crosses_end(d, n)) {
        return;
    }
    memcpy(d->title, cqe, DEC_CQE);
    d->counter = dec_16(cqe + DEC_COUNTER);
    for (uint32_t at = 0; at < n; at += 8) {
        memcpy(arrays[at / 8], dec_slot(d, d->ci + (at ? at : 1)), DEC_CQE);
        d->slots_written++;
    }
    for (uint32_t i = 0; i < n; i++) {
        dec_expand(d, &arrays[i / 8][i % 8 * DEC_MINI]);
    }
    d->fifo[d->tail - n].mini = false; /* the title itself has lost nothing */
    d->minis--;
    for (uint32_t i = 0; i < n; i++) {
        dec_slot(d, d->ci + i)[DEC_OP_OWN] =
            (uint8_t)(DEC_INVALID << 4 | ((d->ci + i) >> d->log_size & 1));
    }
    d->ci += n;
    d->sessions++;
}

static inline void dec_read_enhanced(struct cqe_decoder *d, const uint8_t *cqe)
{
    unsigned n = (cqe[DEC_OP_OWN] >> 4) + 1;
    uint8_t array[DEC_CQE];

    if (n > 7 || !d->titled) {
        d->fault = d->titled ? "number of mini CQEs of an entry" : "mini CQEs without a title";
        return;
    }
    if (dec_crosses_end(d, n)) {
        return;
    }
    memcpy(array, cqe, DEC_CQE);
    for (unsigned i = 0; i < n; i++) {
        dec_expand(d, array + i * DEC_MINI);
        if (!i && dec_16(array + DEC_COUNTER) != dec_16(d->title + DEC_COUNTER)) {
            d->fault = "counter of an entry of mini CQEs";
        }
    }
    d->ci += n;
    d->sessions++;
}

/* Reads what is ready behind ci into the fifo, if the fifo is empty. */
static inline void dec_read(struct cqe_decoder *d)
{
    const uint8_t *cqe;

    if (d->head < d->tail || !dec_ready(d)) {
        return;
    }
    d->head = d->tail = 0;
    cqe = dec_slot(d, d->ci);
    d->slots_written++;
    if ((cqe[DEC_OP_OWN] >> 2 & 3) == DEC_COMPRESSED) {
        if (d->enhanced) {
            dec_read_enhanced(d, cqe);
        } else {
            dec_read_basic(d, cqe);
        }
        return;
    }
    memcpy(d->title, cqe, DEC_CQE);
    d->titled = true;
    d->counter = (uint16_t)(dec_16(cqe + DEC_COUNTER) + 1);
    dec_push(d, cqe, false);
    d->ci++;
}

/* The next CQE, without owner bit, format and number of the round. NULL: there is none. *mini, if
 * not NULL: it was a mini CQE. */
static inline const uint8_t *cqe_decoder_next(struct cqe_decoder *d, bool *mini)
{
    dec_read(d);
    if (d->head == d->tail || d->fault) {
        return NULL;
    }
    if (mini) {
        *mini = d->fifo[d->head].mini;
    }
    return d->fifo[d->head++].bytes;
}

/* The slots of a new ring, as drivers initialize them (mlx5e_alloc_cq()). */
static inline void cqe_decoder_init(struct cqe_decoder *d, void *ring, unsigned log_size,
                                    unsigned stride)
{
    memset(d, 0, sizeof(*d));
    d->ring = ring;
    d->log_size = log_size;
    d->stride = stride;
    for (uint32_t i = 0; i < 1u << log_size; i++) {
        dec_slot(d, i)[DEC_OP_OWN] = DEC_INVALID << 4 | 1;
        dec_slot(d, i)[DEC_ROUND] = 0xff;
    }
}

#endif
