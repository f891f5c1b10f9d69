/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hairpin queues: an SQ and an RQ that are joined. eth_hairpin.c describes them.
 */
#ifndef HCASIM_MODEL_ETH_HAIRPIN_H
#define HCASIM_MODEL_ETH_HAIRPIN_H

#include "model/eth/eth_priv.h"

/* log2 of the bytes and of the frames that an RQ may hold. The sizes are those of hp_buf_log_sz in
 * DPDK's mlx5 guide. A frame that is longer than the whole buffer is dropped. */
#define ETH_HAIRPIN_LOG_DATA_MIN    9
#define ETH_HAIRPIN_LOG_DATA_MAX    17
#define ETH_HAIRPIN_LOG_PACKETS_MAX 12
/* log2 of the hairpin SQs, and of the hairpin RQs, of a function. */
#define ETH_HAIRPIN_LOG_QUEUES 8

/* The most frames that a hairpin SQ sends at one time of the clock, and how long it waits then. */
#define ETH_HAIRPIN_BURST    256
#define ETH_HAIRPIN_PAUSE_NS 1000

/* Makes what a hairpin queue has beside its context (sq->hairpin, rq->hairpin). wq says how much
 * the RQ holds. SYN_HAIRPIN_SIZE: it is out of range. SYN_NO_MEMORY: there is no memory, or there
 * are too many hairpin queues. */
enum syn eth_hairpin_sq_init(struct hca *hca, struct eth_sq *sq, const struct prm_wq *wq);
enum syn eth_hairpin_rq_init(struct hca *hca, struct eth_rq *rq, const struct prm_wq *wq);
/* Frees that. The queues may be ordinary ones, which have nothing. */
void eth_hairpin_sq_free(struct hca *hca, struct eth_sq *sq);
void eth_hairpin_rq_free(struct hca *hca, struct eth_rq *rq);

/* Whether the queue that a queue of the other direction names as its peer exists: the queue num of
 * the function vhca of this card. SYN_HAIRPIN_PEER, SYN_BAD_UID: it does not, or is not the
 * user's. */
enum syn eth_hairpin_find_rq(struct hca *hca, uint16_t uid, uint32_t vhca, uint32_t num);
enum syn eth_hairpin_find_sq(struct hca *hca, uint16_t uid, uint32_t vhca, uint32_t num);

/* The queue is RDY now: joins it with its peer, if that is RDY and names this queue. */
void eth_hairpin_sq_ready(struct hca *hca, struct eth_sq *sq);
void eth_hairpin_rq_ready(struct hca *hca, struct eth_rq *rq);
/* The queue is not RDY any more, or ends: parts it from its peer. The frames between them are
 * dropped and counted. */
void eth_hairpin_sq_part(struct hca *hca, struct eth_sq *sq);
void eth_hairpin_rq_part(struct hca *hca, struct eth_rq *rq);

/* Takes a frame that has come to a hairpin RQ. False: there is no room, or no peer. */
bool eth_hairpin_take(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a);

/* The number by which other functions of the card name this one (vhca_id). */
uint32_t eth_hairpin_vhca(const struct hca *hca);

#endif
