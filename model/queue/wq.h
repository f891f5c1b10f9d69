/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues: the rings of WQEs that software fills, and the doorbell records beside them.
 *
 * A cyclic queue has 2^log_size slots of 2^log_stride bytes, which begin at offset in a buffer. In
 * a send queue a slot is a WQE basic block of 64 bytes, and a WQE takes one or more slots. In a
 * receive queue a slot is a WQE: a list of data segments. Indices run freely modulo 2^16 (SQ, RQ).
 */
#ifndef HCASIM_MODEL_WQ_H
#define HCASIM_MODEL_WQ_H

#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "model/memory/mkey.h"
#include "model/queue/blueflame.h"

/* 16 basic blocks of a send WQE; ds has 6 bits, so a WQE is at most 63 * 16 bytes */
#define WQE_MAX_BYTES 1024
#define WQE_MAX_SGE   64

/* Ends a list of data segments early (driver: terminate_scatter_list_mkey). */
#define WQE_TERMINATOR_LKEY 0x100

enum wq_gate {
    WQ_UNGATED, /* any posted WQE may be taken */
    WQ_GATE_SEND,
    WQ_GATE_RECV,
};

struct wq {
    struct mem_buf buf;
    uint64_t offset;    /* of slot 0 in buf */
    uint8_t log_size;   /* log2 of the number of slots */
    uint8_t log_stride; /* log2 of a slot's bytes */
    /* Ethernet RQ: bit 31 of byte_count is the driver's MLX5_HW_START_PADDING. It allows padding
     * before a packet, which the device does not use. */
    bool start_padding;
    /* Cross channel: of a managed queue, only so many WQEs may be taken as WQEs of other queues
     * have enabled (model/rdma/cross.h). Indices count WQEs, of however many slots, modulo 2^16. */
    uint8_t gate;     /* enum wq_gate */
    uint16_t enabled; /* one past the last WQE that may be taken */
    uint16_t taken;   /* of a send queue: the next WQE; a receive queue has ci */
    uint64_t dbr;     /* bus address of the queue's 32-bit counter in its doorbell record */
    uint32_t ci;      /* the slot that the device takes next */
    uint32_t pi;      /* the producer counter as last read */
    /* A QP's send queue: a doorbell has rung since the last reset. Before the first doorbell
     * nothing is posted, whatever the record says, because software need not clear the record. */
    bool rung;
    /* of a send queue without a doorbell record: the producer counter that its doorbells told;
     * dbr is not valid */
    bool no_record;
    uint16_t told;
    /* of a send queue: the WQE that came with its last doorbell; NULL: none */
    struct blueflame_line *bf;
};

/* The number of WQEs that a managed queue may take: enabled and not taken. */
uint16_t wq_gate_open(const struct wq *wq);

/* Number of WQEs or basic blocks that are posted and not taken yet, according to the last read of
 * the doorbell record. */
static inline uint16_t wq_posted(const struct wq *wq)
{
    return (uint16_t)(wq->pi - wq->ci);
}

/* Reads the 32-bit big-endian doorbell record, and stores its low 16 bits in wq->pi. A queue
 * without a record takes what its doorbells told. The gate of a managed receive queue holds wq->pi
 * back. A managed send queue is not asked: if its gate is open, its ring counts as full, for the
 * legacy library never writes the record (mlx5_post_send(), CREATE_FLAG_NO_DOORBELL). False: the
 * record does not answer, or the counter claims more than the ring holds; the queue is broken, and
 * wq->pi is unchanged. */
bool wq_update_pi(struct hca *hca, struct wq *wq);
/* A doorbell of a queue without a record told this producer counter. Threads of a program may ring
 * out of order, so a counter that is behind the greatest one changes nothing. */
void wq_tell_pi(struct wq *wq, uint16_t pi);
/* Copies slots from index (modulo the ring's size) on, and wraps at the ring's end. If the queue's
 * BlueFlame line has the slots, copies them from there. False: the host does not answer, or len is
 * more than the ring. */
bool wq_read(struct hca *hca, const struct wq *wq, uint32_t index, void *data, size_t len);
/* Writes within slot index (linked lists, inline signatures). False: the host does not answer, or
 * the range is not within the slot. */
bool wq_write(struct hca *hca, const struct wq *wq, uint32_t index, size_t offset, const void *data,
              size_t len);

/* A parsed receive WQE. */
struct recv_wqe {
    uint32_t index; /* wqe_counter of its CQE */
    unsigned num_sge;
    uint64_t len; /* sum of the elements' lengths */
    struct sge sge[WQE_MAX_SGE];
};

/* The results of taking a receive WQE. */
enum recv_result {
    RECV_OK,
    RECV_EMPTY, /* no WQE is posted: answer with RNR NAK, or drop */
    RECV_ERROR, /* the ring does not answer or the WQE is malformed: the queue is broken */
};

/*
 * Parses the data segments from seg on (len bytes) into wqe's len, num_sge and sge. Ends at the
 * terminator or after len bytes. A length of 0 in a segment means 2^31 bytes (PRM, memory pointer
 * data segment). False: there is an inline segment, or more than WQE_MAX_SGE segments.
 */
bool recv_wqe_parse(struct recv_wqe *wqe, const struct prm_wqe_data_seg *seg, size_t len,
                    bool start_padding);

/* Takes that lkey (mkey_denied()) away from the WQE's elements, so that an access fails. */
void recv_wqe_deny(struct recv_wqe *wqe, uint32_t lkey);

/* Fills *wqe from slot index of the cyclic receive queue. The list ends at the terminator (lkey
 * 0x100 with byte_count 0) or at the slot's end. has_signature: the first 16 bytes are a signature
 * segment. */
enum recv_result rq_read(struct hca *hca, const struct wq *rq, uint32_t index, bool has_signature,
                         struct recv_wqe *wqe);
/* The same for the slot at ci, if a WQE is posted there. Does not advance ci. */
enum recv_result rq_peek(struct hca *hca, struct wq *rq, bool has_signature, struct recv_wqe *wqe);

#endif
