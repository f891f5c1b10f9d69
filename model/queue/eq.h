/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: rings of EQEs in host memory, each raising an MSI-X vector.
 *
 * An EQ is armed when its doorbell says so (UAR offset 0x40: update consumer index and arm, 0x48:
 * update only). An EQE posted to an armed EQ raises the interrupt and disarms; arming with a
 * consumer index behind the producer raises it at once. An EQ with no room goes to status
 * EQ_OVERFLOW and loses the event, logged; a completion event is not lost but waits for room, in
 * line with others.
 *
 * EQE n belongs to software when its owner bit is bit log_eq_size of n (driver: next_eqe_sw()).
 */
#ifndef HCASIM_MODEL_EQ_H
#define HCASIM_MODEL_EQ_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct eq;

#define EQE_DATA_LEN 28 /* eqe.event_data */

/* Somebody with an event for a full EQ. Zero-initialized means not waiting. */
struct eq_waiter {
    struct eq_waiter *prev, *next;
    /* There is room for at least one event; it may wait again. */
    void (*retry)(struct hca *hca, struct eq_waiter *waiter);
};

/* eqc and page list as in CREATE_EQ, event_bitmask as its four 64-bit words: bit t % 64 of word t /
 * 64 asks for event type t. */
enum syn eq_create(struct hca *hca, uint16_t uid, const struct prm_eqc *eqc, const void *pas,
                   uint32_t npas, const uint64_t event_bitmask[4], uint32_t *eqn);
/* The eqc with its live fields, and the bitmask. */
enum syn eq_query(struct hca *hca, uint32_t eqn, struct prm_eqc *eqc, uint64_t event_bitmask[4]);
enum syn eq_destroy(struct hca *hca, uint16_t uid, uint32_t eqn);
void eq_free(struct hca *hca, struct obj *obj);

/* NULL: no such EQ. Holders count themselves in obj.refs (struct obj is the first member). */
struct eq *eq_find(struct hca *hca, uint32_t eqn);
static inline struct obj *eq_obj(struct eq *eq)
{
    return (struct obj *)eq;
}

/* Posts an event to one EQ (GEN_EQE). data: EQE_DATA_LEN bytes. */
void eq_post(struct hca *hca, uint32_t eqn, uint8_t type, uint8_t sub_type, const void *data);

/* Posts the completion event of a CQ. False: no room, or others wait for some; so does waiter. */
bool eq_post_comp(struct hca *hca, struct eq *eq, uint32_t cqn, struct eq_waiter *waiter);
/* Stops waiting; no effect on one who does not wait. */
void eq_stop_waiting(struct eq_waiter *waiter);

/* Posts an async event to every EQ whose bitmask has its type. data: EQE_DATA_LEN bytes. */
void eq_async(struct hca *hca, uint8_t type, uint8_t sub_type, const void *data);

/* Async events of a QP, SQ, RQ (queue_type: PRM_EVENT_QUEUE_TYPE_) or SRQ (0), by number. */
void eq_async_qp(struct hca *hca, uint8_t type, uint8_t queue_type, uint32_t qpn);

/* Doorbell at offset 0x40 (arm) or 0x48 of UAR uarn: value is eqn << 24 | consumer index. Taken
 * only from the UAR that eqc.uar_page names. */
void eq_doorbell(struct hca *hca, uint32_t uarn, uint32_t value, bool arm);

#endif
