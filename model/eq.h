/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: rings of EQEs in host memory, each raising an MSI-X vector.
 *
 * An EQ is armed when its doorbell says so (UAR offset 0x40: update consumer index and arm, 0x48:
 * update only). An EQE posted to an armed EQ raises the interrupt and disarms. An EQ with no
 * room raises its own overrun state (eqc.status 0x9 FW: EQ_OVERFLOW) and loses the event, counted
 * and logged.
 */
#ifndef HCASIM_MODEL_EQ_H
#define HCASIM_MODEL_EQ_H

#include "model/hca.h"

struct eq;

#define EQE_DATA_LEN 28 /* eqe.event_data */

/* eqc and page list as in CREATE_EQ, event_bitmask as its four 64-bit words. */
enum syn eq_create(struct hca *hca, uint16_t uid, const void *eqc, const void *pas,
                   uint32_t npas, const uint64_t event_bitmask[4], uint32_t *eqn);
enum syn eq_query(struct hca *hca, uint32_t eqn, void *eqc);
enum syn eq_destroy(struct hca *hca, uint16_t uid, uint32_t eqn);
void eq_free(struct hca *hca, struct obj *obj);

/* Posts an event to one EQ (completion events; GEN_EQE). data: EQE_DATA_LEN bytes. */
void eq_post(struct hca *hca, uint32_t eqn, uint8_t type, uint8_t sub_type, const void *data);

/* Posts an async event to every EQ whose bitmask has its type. data: EQE_DATA_LEN bytes. */
void eq_async(struct hca *hca, uint8_t type, uint8_t sub_type, const void *data);

/* Async events of a QP, SQ, RQ, SRQ (EQE data qp_srq: queue_type 0 QP, 1 RQ, 2 SQ and number). */
void eq_async_qp(struct hca *hca, uint8_t type, uint8_t queue_type, uint32_t qpn);

/* Doorbell at UAR offset 0x40 (arm) or 0x48: value is eqn << 24 | consumer index. */
void eq_doorbell(struct hca *hca, uint32_t value, bool arm);

#endif
