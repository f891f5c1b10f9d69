/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet half as the rest of the model sees it: send queues, receive queues, and the objects
 * between them and the wire (TIS, TIR, RQT, steering).
 */
#ifndef HCASIM_MODEL_ETH_H
#define HCASIM_MODEL_ETH_H

#include "model/core/obj_class.h"
#include "wire/encap/eth.h"

/* For struct port_receivers: a frame that arrived. from_td: the transport domain of the queue that
 * sent it, or PORT_NO_TD; passed_filter: that of MACs. False: nobody took it. */
bool eth_rx(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td,
            bool passed_filter);
/* For struct port_receivers: a RoCE frame, on its way to a QP, passes the flow tables that see
 * RoCE. False: a rule dropped it, or led it elsewhere. */
bool eth_steer_roce(struct hca *hca, const uint8_t *frame, size_t len);
/* For struct port_receivers: a frame that is sent, for who sniffs. */
void eth_sniff_tx(struct hca *hca, const uint8_t *frame, size_t len);
/* A frame that steering sent to a TIR: RSS, then the RQ it picks. flow_tag goes into the CQE.
 * False: the TIR does not take it, because it was sent by from_td (see tir_takes()). */
bool tir_rx(struct hca *hca, uint32_t tirn, const uint8_t *frame, size_t len,
            const struct eth_info *info, uint32_t flow_tag, uint32_t from_td);
/* Whether some TIR takes multicasts that from_td, a transport domain, sends. */
bool tir_takes_group(struct hca *hca, uint32_t from_td);

/* For the table of object classes. A queue of a CQ that failed goes to ERR with WQ_CATAS_ERROR. */
extern const struct obj_sender eth_sq_sender;
void eth_sq_free(struct hca *hca, struct obj *obj);
void eth_rq_free(struct hca *hca, struct obj *obj);
void eth_sq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);
void eth_rq_cq_failed(struct hca *hca, struct obj *obj, const struct cq *cq);

#endif
