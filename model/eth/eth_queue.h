/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet send and receive queues (SQ, RQ): creation, states, query.
 *
 * States: RST after creation; RDY: works; ERR: flushed. Legal transitions: RST->RDY, RDY->ERR,
 * RDY->RST, ERR->RST, and any state to itself (to change other fields in RDY). An SQ may also go
 * RST->ERR, because mlx5_ib does that when a raw packet QP goes to ERR before RTS
 * (modify_raw_packet_qp()).
 */
#ifndef HCASIM_MODEL_ETH_QUEUE_H
#define HCASIM_MODEL_ETH_QUEUE_H

#include "model/core/hca.h"
#include "model/memory/mem.h"
#include "prm/prm.h"

/* log2 of the payload bytes of one large send (max_lso_cap). */
#define ETH_LOG_MAX_LSO 18

/* Bytes of the ring that a wq context describes. 0: the size is not supported. */
uint64_t eth_wq_size(const struct prm_wq *wq);

/* sqc and rqc are as in the commands. buf holds one reference, which is taken over on success. dbr
 * is the bus address of the doorbell record: receive counter at 0, send counter at 4. */
enum syn eth_sq_create(struct hca *hca, uint16_t uid, const struct prm_sqc *sqc,
                       struct mem_buf *buf, uint64_t dbr, uint32_t *sqn);
enum syn eth_sq_modify(struct hca *hca, uint16_t uid, uint32_t sqn, uint8_t cur_state,
                       uint64_t bitmask, const struct prm_sqc *sqc);
enum syn eth_sq_query(struct hca *hca, uint32_t sqn, struct prm_sqc *sqc);
enum syn eth_sq_destroy(struct hca *hca, uint16_t uid, uint32_t sqn);

enum syn eth_rq_create(struct hca *hca, uint16_t uid, const struct prm_rqc *rqc,
                       struct mem_buf *buf, uint64_t dbr, uint32_t *rqn);
enum syn eth_rq_modify(struct hca *hca, uint16_t uid, uint32_t rqn, uint8_t cur_state,
                       uint64_t bitmask, const struct prm_rqc *rqc);
enum syn eth_rq_query(struct hca *hca, uint32_t rqn, struct prm_rqc *rqc);
enum syn eth_rq_destroy(struct hca *hca, uint16_t uid, uint32_t rqn);

#endif
