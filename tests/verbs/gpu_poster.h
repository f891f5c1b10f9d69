/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for a GPU that posts work: it has the addresses of a ring, a doorbell record, a
 * doorbell page and a CQ, and numbers and keys. It calls nothing. It writes WQEs by stores of 32
 * bits, rings in the orders of the libraries that run on GPUs, and reads CQEs by loads.
 *
 * It states the layouts again, from rdma-core's mlx5dv.h, so that device and test do not share a
 * mistake.
 */
#ifndef HCASIM_TESTS_GPU_POSTER_H
#define HCASIM_TESTS_GPU_POSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_BLOCK  64u /* bytes of a basic block of a send queue, and of a CQE */
#define GPU_INLINE 64u /* the most bytes of inline data */
#define GPU_AV     48u /* bytes of an address vector; a short one has 16 */

/* The stores that make a device notice posted WQEs. */
enum gpu_order {
    GPU_RECORD_DOORBELL, /* NVSHMEM's IBGDA: the doorbell has no opcode and no length */
    GPU_DOORBELL_TWICE,  /* gpunetio: doorbell, record, doorbell */
    GPU_BLUEFLAME,       /* gpunetio: 64 bytes of the last WQE, record, doorbell */
    GPU_HALVES, /* rocSHMEM: record, then 8 bytes of the last WQE to one half of a BlueFlame
                   register, and to the other half the next time */
    GPU_ORDERS,
    GPU_NO_RECORD = GPU_ORDERS, /* gpunetio: a doorbell alone, at a register of its own. The queue
                                   has no record, which ConnectX-8 allows */
};

/* Makes a store of 4 or 8 bytes, or a fence (size 0). value: as the bytes are in memory. */
typedef void gpu_store_fn(void *opaque, void *at, uint64_t value, unsigned size);

/* Stores at once: the store function of a GPU that is a thread. */
void gpu_store_now(void *opaque, void *at, uint64_t value, unsigned size);

struct gpu_sq {
    gpu_store_fn *store;
    void *opaque;
    enum gpu_order order;
    uint8_t *ring;
    uint32_t blocks; /* of the ring; a power of two */
    uint32_t *record;
    uint8_t *page; /* the doorbell page */
    uint32_t qpn;
    uint32_t pi;                   /* blocks written so far */
    uint16_t last;                 /* index of the last WQE */
    uint64_t image[GPU_BLOCK / 8]; /* its first bytes */
    bool half;                     /* the half that GPU_HALVES takes next */
};

struct gpu_cq {
    uint8_t *ring;    /* CQEs of 64 bytes */
    uint32_t cqes;    /* a power of two */
    uint32_t *record; /* NULL: the consumer index is never written */
    bool collapsed;   /* all CQEs are written to the first slot */
    uint32_t ci;
    uint32_t seen; /* collapsed: the last word of the CQE that was read last */
};

enum gpu_what {
    GPU_NOP,
    GPU_DUMP, /* reads local memory and drops it */
    GPU_WRITE,
    GPU_READ,
    GPU_CS, /* atomics of 8 bytes */
    GPU_FA,
    GPU_MASKED_CS, /* of 4 or 8 bytes */
    GPU_MASKED_FA,
    GPU_WHATS,
    GPU_WAIT = GPU_WHATS, /* until another CQ has had a CQE (gpunetio's companion queues) */
};

struct gpu_op {
    enum gpu_what what;
    bool unsignaled; /* no CQE if it succeeds */
    bool fence;
    const void *av; /* DC: the address vector, av_len bytes */
    size_t av_len;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t laddr;
    uint32_t lkey;
    uint32_t len;
    const void *data; /* a WRITE whose data is in the WQE */
    /* CS: swap, compare. FA: what is added. Masked CS: swap, compare, the masks of both. Masked FA:
     * what is added, the top bits of its fields. */
    uint64_t operand[4];
    /* WAIT: the CQ, and the index of the CQE, from 0 on */
    uint32_t wait_cqn, wait_index;
};

/* Writes a WQE, and returns its index. The device does not know of it before gpu_ring(). */
uint16_t gpu_post(struct gpu_sq *sq, const struct gpu_op *op);
/* Returns the blocks that the WQE takes. */
unsigned gpu_blocks(const struct gpu_op *op);
/* Rings for all WQEs that were written so far. */
void gpu_ring(struct gpu_sq *sq);
/* Stores the doorbell of an earlier counter again, as a thread of the GPU does that comes late. For
 * a queue without a record, whose threads have no lock (gpunetio). */
void gpu_ring_late(struct gpu_sq *sq, uint32_t counter);
/* Posts one WQE and rings for it. */
uint16_t gpu_post_and_ring(struct gpu_sq *sq, const struct gpu_op *op);

struct gpu_cqe {
    uint16_t index; /* of the WQE */
    uint8_t opcode; /* 0: it succeeded; GPU_CQE_ERROR: it failed */
    uint8_t syndrome;
    uint32_t qpn;
};
#define GPU_CQE_ERROR   0xd
#define GPU_CQE_FLUSHED 0x05 /* a syndrome */

/* Takes the next CQE; of a collapsed CQ the last one, if it is another than before. Returns whether
 * there is one. */
bool gpu_poll(struct gpu_cq *cq, struct gpu_cqe *cqe);
/* Fills a CQ's ring with CQEs that are none, before a queue's life. */
void gpu_cq_clear(struct gpu_cq *cq);

#endif
