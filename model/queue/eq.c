/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements event queues. The producer index runs freely in 32 bits. The doorbell gives the
 * consumer index modulo 2^24; because rings are smaller, full and empty can be told apart.
 *
 * States: disarmed -> armed (doorbell) -> disarmed (interrupt). An EQ also has a status: OK,
 * EQ_OVERFLOW after an event was lost, EQ_WRITE_FAILURE after the ring did not answer.
 */
#include <inttypes.h>
#include "model/core/pd.h"
#include "model/core/trace_event.h"
#include "model/queue/cqe_compress.h"
#include "model/queue/eq.h"
#include "model/queue/ring.h"
#include "model/queue/uar.h"
#include "prm/prm.h"

#define EQ_INDEX_MASK 0xffffff

struct eq {
    struct obj obj;
    struct prm_eqc eqc[1]; /* as created */
    uint64_t event_bitmask[4];
    struct mem_buf ring;
    uint8_t log_size;
    unsigned intr;
    struct obj *uar; /* referenced */
    uint32_t pi;
    uint32_t ci; /* 24 bits */
    bool armed;
    uint8_t status; /* PRM_EQC_STATUS_ */
    uint64_t lost;
    struct eq_waiter waiting; /* list head */
    struct work retry_work;   /* retries the waiters while there is room */
    bool retrying;            /* the first waiter's retry() runs now */
};

static void eq_retry_run(struct hca *hca, struct work *work);

static uint32_t eq_used(const struct eq *eq)
{
    return (eq->pi - eq->ci) & EQ_INDEX_MASK;
}

static bool eq_full(const struct eq *eq)
{
    return !PRM_GET(eqc, eq->eqc, oi) && eq_used(eq) >= 1u << eq->log_size;
}

struct eq *eq_find(struct hca *hca, uint32_t eqn)
{
    return (struct eq *)obj_find(&hca->eqs, eqn);
}

/* Adds the EQ to the EQs that get events of its types, or removes it. */
static void eq_set_wants(struct hca *hca, const struct eq *eq, bool wants)
{
    uint64_t bit = 1ull << eq->obj.num % 64;

    for (unsigned type = 0; type < G_N_ELEMENTS(hca->eqs_for); type++) {
        uint64_t *eqs = &hca->eqs_for[type][eq->obj.num / 64];

        if (eq->event_bitmask[type / 64] >> type % 64 & 1) {
            *eqs = wants ? *eqs | bit : *eqs & ~bit;
        }
    }
}

enum syn eq_create(struct hca *hca, uint16_t uid, const struct prm_eqc *eqc, const void *pas,
                   uint32_t npas, const uint64_t event_bitmask[4], uint32_t *eqn)
{
    uint32_t log_size = PRM_GET(eqc, eqc, log_eq_size);
    uint32_t log_page = PRM_GET(eqc, eqc, log_page_size) + 12;
    struct obj *uar = obj_find(&hca->uars, PRM_GET(eqc, eqc, uar_page));
    struct mem_buf ring;
    struct mtt *mtt;
    struct eq *eq;
    bool covered;

    if (!uar) {
        return SYN_NO_UAR;
    }
    if (!uid_may_use(uar, uid)) {
        return SYN_BAD_UID;
    }
    if (PRM_GET(eqc, eqc, intr) >= hca->limits.num_msix) {
        return SYN_EQ_VECTOR;
    }
    if (log_size > hca->limits.log_max_eq_sz) {
        return SYN_LIMIT;
    }
    mtt = mtt_new_for(hca, pas, npas, log_page);
    if (!mtt) {
        return SYN_NO_MEMORY;
    }
    /* page_offset counts 64ths of a page */
    covered = mem_buf_init(&ring, mtt, ((uint64_t)PRM_GET(eqc, eqc, page_offset) << log_page) / 64,
                           (uint64_t)RING_ENTRY << log_size);
    mtt_unref(mtt);
    if (!covered) {
        return SYN_BAD_PAS;
    }
    eq = obj_make(hca, OBJ_EQ, uid, sizeof(*eq));
    if (!eq) {
        mem_buf_clear(&ring);
        return SYN_NO_MEMORY;
    }
    memcpy(eq->eqc, eqc, sizeof(eq->eqc));
    memcpy(eq->event_bitmask, event_bitmask, sizeof(eq->event_bitmask));
    eq->ring = ring;
    eq->log_size = log_size;
    eq->intr = PRM_GET(eqc, eqc, intr);
    eq->waiting.prev = eq->waiting.next = &eq->waiting;
    eq->retry_work.run = eq_retry_run;
    eq_set_wants(hca, eq, true);
    eq->uar = uar;
    obj_ref(&eq->obj, uar);
    *eqn = eq->obj.num;
    return SYN_OK;
}

enum syn eq_query(struct hca *hca, uint32_t eqn, struct prm_eqc *eqc, uint64_t event_bitmask[4])
{
    struct eq *eq = eq_find(hca, eqn);

    if (!eq) {
        return SYN_NO_EQ;
    }
    memcpy(eqc, eq->eqc, sizeof(eq->eqc));
    PRM_SET(eqc, eqc, status, eq->status);
    PRM_SET(eqc, eqc, st, eq->armed ? PRM_EQC_ST_ARMED : PRM_EQC_ST_FIRED);
    PRM_SET(eqc, eqc, consumer_counter, eq->ci);
    PRM_SET(eqc, eqc, producer_counter, eq->pi & EQ_INDEX_MASK);
    memcpy(event_bitmask, eq->event_bitmask, sizeof(eq->event_bitmask));
    return SYN_OK;
}

enum syn eq_destroy(struct hca *hca, uint16_t uid, uint32_t eqn)
{
    struct eq *eq = eq_find(hca, eqn);

    if (!eq) {
        return SYN_NO_EQ;
    }
    if (!uid_owns(&eq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (eq->obj.refs) {
        return SYN_IN_USE;
    }
    eq_free(hca, &eq->obj);
    return SYN_OK;
}

void eq_free(struct hca *hca, struct obj *obj)
{
    struct eq *eq = (struct eq *)obj;

    hca_unschedule(&eq->retry_work);
    while (eq->waiting.next != &eq->waiting) {
        eq_stop_waiting(eq->waiting.next);
    }
    eq_set_wants(hca, eq, false);
    obj_unref(obj, eq->uar);
    mem_buf_clear(&eq->ring);
    obj_end(hca, obj);
}

static void eq_interrupt(struct hca *hca, struct eq *eq)
{
    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_irq(hca, eq->obj.num, eq->intr);
    }
    eq->armed = false;
    hca_irq(hca, eq->intr);
}

/* The caller has checked that there is room. */
static void eq_write(struct hca *hca, struct eq *eq, uint8_t type, uint8_t sub_type,
                     const void *data)
{
    uint32_t slot = eq->pi & ((1u << eq->log_size) - 1);
    struct prm_eqe eqe[1] = {0};

    PRM_SET(eqe, eqe, event_type, type);
    PRM_SET(eqe, eqe, event_sub_type, sub_type);
    memcpy(PRM_PTR(eqe, eqe, event_data), data, EQE_DATA_LEN);
    PRM_SET(eqe, eqe, owner, eq->pi >> eq->log_size & 1);
    if (!ring_write(hca, &eq->ring, (uint64_t)slot * RING_ENTRY, eqe)) {
        eq->status = PRM_EQC_STATUS_EQ_WRITE_FAILURE;
        eq->lost++;
        hca_log(hca, HCA_LOG_GUEST_ERROR, "EQ %u: ring does not answer", eq->obj.num);
        return;
    }
    if (hca->tracing) {
        trace_eqe(hca, eq->obj.num, eqe);
    }
    eq->pi++;
    if (eq->armed) {
        eq_interrupt(hca, eq);
    }
}

static void eq_put(struct hca *hca, struct eq *eq, uint8_t type, uint8_t sub_type, const void *data)
{
    if (eq_full(eq)) {
        eq->status = PRM_EQC_STATUS_EQ_OVERFLOW;
        eq->lost++;
        hca->eq_overruns++;
        hca_log(hca, HCA_LOG_GUEST_ERROR,
                "EQ %u is full: event of type 0x%x lost (%" PRIu64 " so far)", eq->obj.num, type,
                eq->lost);
        return;
    }
    eq_write(hca, eq, type, sub_type, data);
}

void eq_post(struct hca *hca, uint32_t eqn, uint8_t type, uint8_t sub_type, const void *data)
{
    struct eq *eq = eq_find(hca, eqn);

    if (eq) {
        eq_put(hca, eq, type, sub_type, data);
    }
}

static bool eq_has_waiters(const struct eq *eq)
{
    return eq->waiting.next != &eq->waiting;
}

bool eq_post_or_wait(struct hca *hca, struct eq *eq, uint8_t type, uint8_t sub_type,
                     const void *data, struct eq_waiter *waiter)
{
    if (eq_full(eq) || (eq_has_waiters(eq) && !eq->retrying)) {
        if (!waiter->next) {
            waiter->prev = eq->waiting.prev;
            waiter->next = &eq->waiting;
            eq->waiting.prev->next = waiter;
            eq->waiting.prev = waiter;
        }
        return false;
    }
    eq_write(hca, eq, type, sub_type, data);
    return true;
}

bool eq_post_comp(struct hca *hca, struct eq *eq, uint32_t cqn, struct eq_waiter *waiter)
{
    struct prm_comp_event data[1] = {0};

    PRM_SET(comp_event, data, cq_number, cqn);
    return eq_post_or_wait(hca, eq, PRM_EVENT_TYPE_COMP, 0, data, waiter);
}

void eq_stop_waiting(struct eq_waiter *waiter)
{
    if (waiter->next) {
        waiter->prev->next = waiter->next;
        waiter->next->prev = waiter->prev;
        waiter->prev = waiter->next = NULL;
    }
}

static void eq_retry_run(struct hca *hca, struct work *work)
{
    struct eq *eq = (struct eq *)((char *)work - offsetof(struct eq, retry_work));

    while (eq_has_waiters(eq) && !eq_full(eq)) {
        struct eq_waiter *waiter = eq->waiting.next;

        eq_stop_waiting(waiter);
        eq->retrying = true;
        waiter->retry(hca, waiter);
        eq->retrying = false;
        hca_spend(hca, 1);
        if (!hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
}

struct eq *eq_for_page_faults(struct hca *hca)
{
    for (uint32_t from = 0; from < HCA_MAX_EQS; from += 64) {
        for (uint64_t eqs = hca->eqs_for[PRM_EVENT_TYPE_PAGE_FAULT][from / 64]; eqs;
             eqs &= eqs - 1) {
            struct eq *eq = eq_find(hca, from + (uint32_t)__builtin_ctzll(eqs));

            if (eq && eq->obj.uid == 0) {
                return eq;
            }
        }
    }
    return NULL;
}

bool eq_takes(const struct hca *hca, uint8_t type)
{
    uint64_t any = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(hca->eqs_for[type]); i++) {
        any |= hca->eqs_for[type][i];
    }
    return any != 0;
}

void eq_async(struct hca *hca, uint8_t type, uint8_t sub_type, const void *data)
{
    hca->event_count++;
    cqe_sessions_close(hca); /* the event may be about completions before it */
    for (uint32_t from = 0; from < HCA_MAX_EQS; from += 64) {
        for (uint64_t eqs = hca->eqs_for[type][from / 64]; eqs; eqs &= eqs - 1) {
            eq_post(hca, from + (uint32_t)__builtin_ctzll(eqs), type, sub_type, data);
        }
    }
}

void eq_async_qp(struct hca *hca, uint8_t type, uint8_t queue_type, uint32_t qpn)
{
    struct prm_qp_events data[1] = {0};

    PRM_SET(qp_events, data, type, queue_type);
    PRM_SET(qp_events, data, qpn_rqn_sqn, qpn);
    eq_async(hca, type, 0, data);
}

void eq_doorbell(struct hca *hca, uint32_t uarn, uint32_t value, bool arm)
{
    struct eq *eq = eq_find(hca, value >> 24);
    uint32_t ci = value & EQ_INDEX_MASK;

    if (!eq || eq->uar->num != uarn) {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "UAR %u has no EQ %u", uarn, value >> 24);
        return;
    }
    if (((eq->pi - ci) & EQ_INDEX_MASK) > 1u << eq->log_size && !PRM_GET(eqc, eq->eqc, oi)) {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "EQ %u: consumer index 0x%x is not in the ring",
                eq->obj.num, ci);
        return;
    }
    eq->ci = ci;
    if (eq_has_waiters(eq)) {
        hca_schedule(hca, &eq->retry_work);
    }
    if (arm) {
        eq->armed = true;
        if (eq_used(eq)) {
            eq_interrupt(hca, eq);
        }
    }
}
