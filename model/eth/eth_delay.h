/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delayed drop: frames wait for receive WQEs. eth_delay.c describes it.
 */
#ifndef HCASIM_MODEL_ETH_DELAY_H
#define HCASIM_MODEL_ETH_DELAY_H

#include "model/eth/eth_priv.h"

/* SET_DELAY_DROP_PARAMS: how long frames wait, in 100 microseconds; 0: they do not wait. */
void eth_delay_set(struct hca *hca, uint16_t timeout);
#define ETH_DELAY_UNIT_NS 100000u

/* The most bytes that the waiting frames of a function take, with what belongs to them. */
#define ETH_DELAY_BYTES (256u << 10)

/* Makes and frees rq->delay, for a queue with delay_drop_en. */
enum syn eth_delay_init(struct hca *hca, struct eth_rq *rq);
void eth_delay_free(struct hca *hca, struct eth_rq *rq);

/* Receives the frames that wait, as far as there are WQEs. False: some wait still. */
bool eth_delay_pass(struct hca *hca, struct eth_rq *rq);
/* A frame for which there is no WQE waits. False: it does not. */
bool eth_delay_keep(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a);
/* The queue receives no more: drops and counts the frames that wait. */
void eth_delay_end(struct hca *hca, struct eth_rq *rq);

#endif
