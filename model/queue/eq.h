/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: rings of EQEs in host memory. Each EQ raises an MSI-X vector.
 *
 * A doorbell arms an EQ (UAR offset 0x40: update the consumer index and arm; 0x48: only update). An
 * EQE posted to an armed EQ raises the interrupt and disarms the EQ. Arming with a consumer index
 * behind the producer raises the interrupt at once. If an EQ has no room, it enters status
 * EQ_OVERFLOW; the event is lost and logged. Completion events and page faults are not lost: they
 * wait for room, in order.
 *
 * EQE n belongs to software when its owner bit is bit log_eq_size of n (driver: next_eqe_sw()).
 */
#ifndef HCASIM_MODEL_EQ_H
#define HCASIM_MODEL_EQ_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct eq;

#define EQE_DATA_LEN 28 /* bytes of eqe.event_data */

/* Waits to post an event to a full EQ. Zero-initialized means not waiting. */
struct eq_waiter {
    struct eq_waiter *prev, *next;
    /* Called when there is room for at least one event. It may wait again. */
    void (*retry)(struct hca *hca, struct eq_waiter *waiter);
};

/* eqc and page list are as in CREATE_EQ. event_bitmask is its four 64-bit words: bit t % 64 of word
 * t / 64 asks for event type t. */
enum syn eq_create(struct hca *hca, uint16_t uid, const struct prm_eqc *eqc, const void *pas,
                   uint32_t npas, const uint64_t event_bitmask[4], uint32_t *eqn);
/* Fills the eqc, including its live fields, and the bitmask. */
enum syn eq_query(struct hca *hca, uint32_t eqn, struct prm_eqc *eqc, uint64_t event_bitmask[4]);
enum syn eq_destroy(struct hca *hca, uint16_t uid, uint32_t eqn);
void eq_free(struct hca *hca, struct obj *obj);

/* NULL: no such EQ. Objects that use the EQ count in its obj.refs (struct obj is the first
 * member). */
struct eq *eq_find(struct hca *hca, uint32_t eqn);
static inline struct obj *eq_obj(struct eq *eq)
{
    return (struct obj *)eq;
}

/* Posts an event to one EQ (GEN_EQE). data: EQE_DATA_LEN bytes. */
void eq_post(struct hca *hca, uint32_t eqn, uint8_t type, uint8_t sub_type, const void *data);

/* Posts an event that must not be lost: a completion event, or a page fault. data: EQE_DATA_LEN
 * bytes. False: there is no room, or others already wait for room; then waiter waits, too. */
bool eq_post_or_wait(struct hca *hca, struct eq *eq, uint8_t type, uint8_t sub_type,
                     const void *data, struct eq_waiter *waiter);
/* Posts the completion event of a CQ, in the same way. */
bool eq_post_comp(struct hca *hca, struct eq *eq, uint32_t cqn, struct eq_waiter *waiter);
/* Stops waiting. No effect if waiter does not wait. */
void eq_stop_waiting(struct eq_waiter *waiter);

/* The EQ that gets page faults: the first EQ of the kernel's that asks for them. NULL: none. */
struct eq *eq_for_page_faults(struct hca *hca);

/* Whether an EQ's bitmask has this type. */
bool eq_takes(const struct hca *hca, uint8_t type);
/* Posts an async event to every EQ whose bitmask has its type. data: EQE_DATA_LEN bytes. */
void eq_async(struct hca *hca, uint8_t type, uint8_t sub_type, const void *data);

/* Posts an async event that names a QP, SQ, RQ (queue_type: PRM_EVENT_QUEUE_TYPE_) or SRQ
 * (queue_type 0) by its number. */
void eq_async_qp(struct hca *hca, uint8_t type, uint8_t queue_type, uint32_t qpn);

/* Doorbell at offset 0x40 (arm) or 0x48 of UAR uarn: value is eqn << 24 | consumer index. The
 * doorbell counts only on the UAR that eqc.uar_page names. */
void eq_doorbell(struct hca *hca, uint32_t uarn, uint32_t value, bool arm);

#endif
