/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet half as the rest of the model sees it: send queues, receive queues, and the objects
 * between them and the wire (TIS, TIR, RQT, steering).
 */
#ifndef HCASIM_MODEL_ETH_H
#define HCASIM_MODEL_ETH_H

#include "model/hca.h"
#include "wire/eth.h"

/* Doorbell of an SQ object found in hca->qpns under OBJ_SQ. */
void eth_sq_doorbell(struct hca *hca, struct obj *sq, uint64_t ctrl);
struct wq *eth_sq_wq(struct obj *sq);
/* The UAR page that it was created with. */
uint32_t eth_sq_uar(const struct obj *sq);
/* A frame that steering sent to a TIR: RSS, then the RQ it picks. flow_tag goes into the CQE.
 * False: the TIR does not take it, because it was sent by from_td (see tir_takes()). */
bool tir_rx(struct hca *hca, uint32_t tirn, const uint8_t *frame, size_t len,
            const struct eth_info *info, uint32_t flow_tag, uint32_t from_td);
/* Whether some TIR takes multicasts that from_td, a transport domain, sends. */
bool tir_takes_group(struct hca *hca, uint32_t from_td);

struct cq;
/* A CQ has failed: what is no SQ or RQ of it does not care; the others go to ERR with
 * WQ_CATAS_ERROR. */
void eth_cq_failed(struct hca *hca, struct obj *queue, const struct cq *cq);

/* For hca_reset(): frees any object of the Ethernet half. */
void eth_free(struct hca *hca, struct obj *obj);

#endif
