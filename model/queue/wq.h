/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues: the rings of WQEs which software fills, and the doorbell records beside them.
 *
 * A cyclic queue has 2^log_size slots of 2^log_stride bytes at offset in a buffer. For send queues
 * a slot is a WQE basic block of 64 bytes and a WQE takes one or more; for receive queues a slot
 * is a WQE: a list of data segments. Indices run freely modulo 2^16 (SQ, RQ).
 */
#ifndef HCASIM_MODEL_WQ_H
#define HCASIM_MODEL_WQ_H

#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "model/memory/mkey.h"
#include "model/queue/blueflame.h"

#define WQE_MAX_BYTES 1024 /* 16 basic blocks of a send WQE (ds is 6 bits: 63 * 16 fits) */
#define WQE_MAX_SGE   64

/* Ends a list of data segments early (driver: terminate_scatter_list_mkey). */
#define WQE_TERMINATOR_LKEY 0x100

struct wq {
    struct mem_buf buf;
    uint64_t offset;    /* of slot 0 in buf */
    uint8_t log_size;   /* slots */
    uint8_t log_stride; /* bytes of a slot */
    uint64_t dbr;       /* bus address of the queue's 32-bit counter in its doorbell record */
    uint32_t ci;        /* the slot that the device takes next */
    uint32_t pi;        /* the producer counter as last read */
    bool rung;          /* a QP's send queue: a doorbell has rung since the last reset. Until then
                         * nothing is posted, whatever the record says: none need have cleared it */
    struct blueflame_line *bf; /* of a send queue: what its last doorbell brought; NULL: nothing */
    bool start_padding; /* Ethernet RQ: bit 31 of byte_count is the driver's MLX5_HW_START_PADDING,
                         * the leave to put padding before a packet; no use is made of it */
};

/* WQEs or basic blocks posted and not taken yet, as far as the doorbell record was last read. */
static inline uint16_t wq_posted(const struct wq *wq)
{
    return (uint16_t)(wq->pi - wq->ci);
}

/* Reads the 32-bit big-endian doorbell record, stores its low 16 bits in wq->pi. False: no
 * answer, or more is posted than the ring holds: the queue is broken. wq->pi then is as before. */
bool wq_update_pi(struct hca *hca, struct wq *wq);
/* Copies slots from index (modulo the ring's size) on, wrapping at the ring's end, or from the
 * BlueFlame line that has them. False: no
 * answer, or len is more than the ring. */
bool wq_read(struct hca *hca, const struct wq *wq, uint32_t index, void *data, size_t len);
/* Writes within slot index (linked lists, inline signatures). False: no answer, or not within. */
bool wq_write(struct hca *hca, const struct wq *wq, uint32_t index, size_t offset, const void *data,
              size_t len);

/* A receive WQE taken apart. */
struct recv_wqe {
    uint32_t index; /* wqe_counter of its CQE */
    unsigned num_sge;
    uint64_t len; /* sum of the elements */
    struct sge sge[WQE_MAX_SGE];
};

/* What taking a receive WQE can come to. */
enum recv_result {
    RECV_OK,
    RECV_EMPTY, /* no WQE posted: RNR NAK, or drop */
    RECV_ERROR, /* ring does not answer or WQE is malformed: the queue is broken */
};

/*
 * The data segments from seg on (len bytes) to *wqe: len, num_sge and sge; ends at the terminator
 * or at their end. A length of 0 in a segment is 2^31 bytes (PRM, memory pointer data segment).
 * False: an inline segment, or more than WQE_MAX_SGE.
 */
bool recv_wqe_parse(struct recv_wqe *wqe, const struct prm_wqe_data_seg *seg, size_t len,
                    bool start_padding);

/* Its elements with that lkey (mkey_denied()) have none from now on. */
void recv_wqe_deny(struct recv_wqe *wqe, uint32_t lkey);

/* Fills *wqe from the cyclic receive queue's slot at index; ends at the terminator key
 * (mkc.terminate_scatter_list / lkey 0x100 with count 0) or at the slot's end. has_signature: the
 * first 16 bytes are a signature segment. */
enum recv_result rq_read(struct hca *hca, const struct wq *rq, uint32_t index, bool has_signature,
                         struct recv_wqe *wqe);
/* The same of the slot at ci, if one is posted. Does not advance ci. */
enum recv_result rq_peek(struct hca *hca, struct wq *rq, bool has_signature, struct recv_wqe *wqe);

#endif
