/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of the Ethernet half for the rest of the model: send queues, receive queues, and
 * the objects between them and the wire (TIS, TIR, RQT, steering).
 */
#ifndef HCASIM_MODEL_ETH_H
#define HCASIM_MODEL_ETH_H

#include "model/core/obj_class.h"
#include "wire/encap/eth.h"

/* For struct port_receivers: takes a received frame. from_td: the transport domain of the queue
 * that sent it, or PORT_NO_TD. passed_filter: the frame passed the vport's MAC filter. False:
 * no queue took the frame. */
bool eth_rx(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td,
            bool passed_filter);
/* For struct port_receivers: a RoCE frame on its way to a QP passes the flow tables that see RoCE.
 * False: a rule dropped it, or led it elsewhere. */
bool eth_steer_roce(struct hca *hca, const uint8_t *frame, size_t len);
/* For struct port_receivers: copies a sent frame to the sniffers. */
void eth_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len);
/* Takes a frame that steering led to a TIR: RSS chooses the RQ. flow_tag goes into the CQE;
 * metadata goes on with a frame of a hairpin RQ. False: the TIR does not take the frame, because
 * its own transport domain has sent it (from_td; see tir_takes()). */
bool tir_rx(struct hca *hca, uint32_t tirn, const uint8_t *frame, size_t len,
            const struct eth_info *info, uint32_t flow_tag, uint32_t metadata, uint32_t from_td);
/* Whether some TIR takes multicasts that the transport domain from_td has sent. */
bool tir_takes_group(struct hca *hca, uint32_t from_td);

/* For the table of object classes. If a queue's CQ fails, the queue goes to ERR with
 * WQ_CATAS_ERROR. */
extern const struct obj_sender eth_sq_sender;
void eth_sq_free(struct hca *hca, struct obj *obj);
void eth_rq_free(struct hca *hca, struct obj *obj);
void eth_sq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);
void eth_rq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

#endif
