/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queues whose WQEs begin with a next segment: linked lists, and striding queues, whose
 * WQEs take many frames. eth_stride.c describes them.
 */
#ifndef HCASIM_MODEL_ETH_STRIDE_H
#define HCASIM_MODEL_ETH_STRIDE_H

#include "model/eth/eth_priv.h"

/* The members that such a queue has besides those of every RQ. */
struct eth_strides {
    bool linked;      /* a linked list; otherwise a ring */
    uint8_t log_num;  /* log2 of the strides of a WQE */
    uint8_t log_size; /* log2 of the bytes of a stride; 0: a WQE takes one frame of any size */
    uint8_t shift;    /* bytes that are left before each frame: 0 or 2 */
    /* of a list: the slot of the next WQE is not known, because a WQE could not be read */
    bool lost;
    uint16_t head; /* of a list: the slot of the WQE at ci */
    uint16_t next; /* of a list, if open: the slot after it */
    bool open;     /* the WQE at ci is in wqe, and its first `used` strides are taken */
    uint32_t used;
    struct recv_wqe wqe;
};

/* Where a frame goes. */
struct eth_place {
    const struct recv_wqe *wqe;
    uint64_t at;      /* its first byte in the list of the WQE */
    uint64_t room;    /* bytes from there on that it may use */
    uint64_t most;    /* bytes of the longest frame that a WQE of the queue takes */
    uint16_t counter; /* wqe_counter of its CQE */
    uint32_t next;    /* of a WQE of an RMP: what srq_advance() needs */
    uint32_t strides; /* of a striding queue: the strides it takes; else 0 */
};

/* Whether an RQ can have this work queue. */
bool eth_stride_ok(const struct prm_wq *wq);
/* Fills in rq->strides, if the work queue needs it. */
enum syn eth_stride_init(struct hca *hca, struct eth_rq *rq, const struct prm_wq *wq);
void eth_stride_free(struct hca *hca, struct eth_rq *rq);
/* RST: the queue begins again with slot 0. */
void eth_stride_reset(struct eth_rq *rq);

/* Finds a place for a frame of len bytes. Writes a filler CQE if the frame needs the next WQE; if
 * the CQ fails with it, the result is RECV_EMPTY. RECV_OK does not say that the frame fits. If it
 * is longer than place->most, nothing is done, and nothing else is known of the place. */
enum recv_result eth_stride_place(struct hca *hca, struct eth_rq *rq, size_t len,
                                  struct eth_place *place);
/* The frame is in its place. */
void eth_stride_take(struct eth_rq *rq, const struct eth_place *place);
/* The wqe_id of the WQE at ci. */
uint16_t eth_stride_id(const struct eth_rq *rq);
/* The WQE at ci is done. */
void eth_stride_close(struct eth_rq *rq);
/* Whether the WQE at ci can be flushed. False: it is not known which WQE that is. */
bool eth_stride_may_flush(struct hca *hca, struct eth_rq *rq);

#endif
