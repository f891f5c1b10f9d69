/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet half as the rest of the model sees it: send queues, receive queues, and the objects
 * between them and the wire (TIS, TIR, RQT, steering).
 */
#ifndef HCASIM_MODEL_ETH_H
#define HCASIM_MODEL_ETH_H

#include "model/hca.h"

/* Doorbell of an SQ object found in hca->qpns under OBJ_SQ. */
void eth_sq_doorbell(struct hca *hca, struct obj *sq, uint64_t ctrl);
/* For hca_reset(): frees any object of the Ethernet half. */
void eth_free(struct hca *hca, struct obj *obj);
void steering_init(struct hca *hca);
void steering_clear(struct hca *hca);

#endif
