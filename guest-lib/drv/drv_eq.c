/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: creation, taking events by owner bit, arming.
 *
 * One EQ is for asynchronous events, and for completions of CQs that name no other EQ. Further EQs
 * are for completions only, as mlx5_core has one for each vector (create_comp_eq()). A program that
 * uses on-demand paging has one more EQ, for page faults.
 */
#include <string.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/drv/drv_internal.h"

#define EQ_LOG_SIZE         8
#define COMP_EQ_LOG_SIZE    6  /* one page; if the EQ is full, completions wait */
#define FAULT_EQ_LOG_SIZE   12 /* MLX5_IB_NUM_PF_EQE; if the EQ is full, page faults wait */

#define EVENT_BIT(type)     (1ull << PRM_EVENT_TYPE_##type)

#define SHARED_RESOURCE_UID 0xffff /* MLX5_SHARED_RESOURCE_UID */

static int drv_create_eq(struct drv *drv, struct drv_eq *eq, unsigned log_size, unsigned vector,
                         uint64_t events)
{
    size_t size = (size_t)PRM_SIZE(eqe) << log_size;
    size_t len = PRM_SIZE(create_eq_in) + 8 * drv_pages(size);
    g_autofree struct prm_create_eq_in *in = g_malloc0(len);
    struct prm_create_eq_out out[1] = {0};
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    struct prm_eqe *eqe;
    int status;

    eq->log_size = log_size;
    eq->ring = drv_alloc(drv, size);
    eqe = eq->ring.ptr;
    for (unsigned i = 0; i < 1u << log_size; i++) {
        PRM_SET(eqe, &eqe[i], owner, 1);
    }
    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    if (eq != &drv->fault_eq) { /* as in mlx5_core: CQs of every user context may report to it */
        PRM_SET(create_eq_in, in, uid, SHARED_RESOURCE_UID);
    }
    PRM_SET_AT(create_eq_in, in, event_bitmask, 0, events);
    PRM_SET(eqc, eqc, log_eq_size, log_size);
    PRM_SET(eqc, eqc, uar_page, drv->uarn);
    PRM_SET(eqc, eqc, intr, vector);
    drv_set_pas(PRM_PTR(create_eq_in, in, pas), &eq->ring);
    status = drv_cmd(drv, in, len, out, sizeof(out));
    eq->eqn = PRM_GET(create_eq_out, out, eq_number);
    return status;
}

int drv_create_async_eq(struct drv *drv)
{
    const uint64_t not_async = EVENT_BIT(COMP) | EVENT_BIT(CMD) | EVENT_BIT(PAGE_FAULT);
    int status = drv_create_eq(drv, &drv->eq, EQ_LOG_SIZE, 0, ~not_async);

    drv->up = status == 0;
    return status;
}

int drv_create_comp_eqs(struct drv *drv, unsigned n)
{
    int status = 0;

    while (drv->num_comp_eqs < MIN(n, DRV_COMP_EQS) && !status) {
        unsigned i = drv->num_comp_eqs;

        status = drv_create_eq(drv, &drv->comp_eq[i], COMP_EQ_LOG_SIZE, i + 1, 0);
        if (status) {
            drv_free(drv, &drv->comp_eq[i].ring);
        } else {
            drv->num_comp_eqs++;
        }
    }
    return status;
}

static void drv_arm_eq(struct drv *drv, const struct drv_eq *eq);

int drv_create_fault_eq(struct drv *drv)
{
    int status;

    if (drv->fault_eq.ring.ptr) {
        return 0;
    }
    status = drv_create_eq(drv, &drv->fault_eq, FAULT_EQ_LOG_SIZE, 0, EVENT_BIT(PAGE_FAULT));
    if (status) {
        drv_free(drv, &drv->fault_eq.ring);
        return status;
    }
    drv_arm_eq(drv, &drv->fault_eq);
    return 0;
}

static int drv_destroy_eq(struct drv *drv, const struct drv_eq *eq)
{
    struct prm_destroy_eq_in in[1] = {0};

    PRM_SET(destroy_eq_in, in, opcode, PRM_CMD_OP_DESTROY_EQ);
    PRM_SET(destroy_eq_in, in, eq_number, eq->eqn);
    return drv_cmd_simple(drv, in, sizeof(in));
}

void drv_destroy_eqs(struct drv *drv)
{
    for (unsigned i = 0; i < drv->num_comp_eqs; i++) {
        drv_destroy_eq(drv, &drv->comp_eq[i]);
    }
    if (drv->fault_eq.ring.ptr) {
        drv_destroy_eq(drv, &drv->fault_eq);
    }
    drv->up = false;
    drv_destroy_eq(drv, &drv->eq);
}

void drv_free_eqs(struct drv *drv)
{
    for (unsigned i = 0; i < drv->num_comp_eqs; i++) {
        drv_free(drv, &drv->comp_eq[i].ring);
    }
    drv_free(drv, &drv->fault_eq.ring);
    drv_free(drv, &drv->eq.ring);
}

/* -- events -------------------------------------------------------------------------------------
 */

static void drv_arm_eq(struct drv *drv, const struct drv_eq *eq)
{
    drv->dev.ops->mmio_write(drv->dev.pci,
                             (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, eq_db_arm),
                             eq->eqn << 24 | (eq->ci & 0xffffff), 4);
}

void drv_arm_eqs(struct drv *drv)
{
    drv_arm_eq(drv, &drv->eq);
    for (unsigned i = 0; i < drv->num_comp_eqs; i++) {
        drv_arm_eq(drv, &drv->comp_eq[i]);
    }
}

/* The next EQE, if its owner bit says that the device wrote it in this round of the ring. */
static const struct prm_eqe *drv_next_eqe(struct drv_eq *eq)
{
    uint32_t mask = (1u << eq->log_size) - 1;
    const struct prm_eqe *ring = eq->ring.ptr, *eqe = &ring[eq->ci & mask];
    unsigned round = eq->ci >> eq->log_size & 1;

    return (drv_last_word(eqe) & DRV_OWNER) == round ? eqe : NULL;
}

static void drv_handle_eqe(struct drv *drv, const struct prm_eqe *eqe)
{
    struct drv_event event = {
        .type = (uint8_t)PRM_GET(eqe, eqe, event_type),
        .sub_type = (uint8_t)PRM_GET(eqe, eqe, event_sub_type),
    };

    memcpy(event.data.bytes, PRM_PTR(eqe, eqe, event_data), sizeof(event.data.bytes));
    event.num = event.type == PRM_EVENT_TYPE_CQ_ERROR
                    ? PRM_GET(cq_error, event.data.cq, cqn)
                    : PRM_GET(qp_events, event.data.queue, qpn_rqn_sqn);
    if (event.type != PRM_EVENT_TYPE_PAGE_REQUEST) {
        g_array_append_val(drv->events, event);
        return;
    }
    int32_t pages = (int32_t)PRM_GET(pages_req_event, event.data.pages, num_pages);

    if (pages > 0) {
        drv_give_pages(drv, (uint32_t)pages);
    } else if (pages < 0) {
        drv_reclaim_pages(drv, (uint32_t)-pages);
    }
}

static void drv_poll_eq(struct drv *drv, struct drv_eq *eq)
{
    const struct prm_eqe *eqe;
    bool any = false;

    while ((eqe = drv_next_eqe(eq))) {
        struct prm_eqe copy = *eqe;

        eq->ci++;
        any = true;
        drv_handle_eqe(drv, &copy);
    }
    if (any) {
        drv_arm_eq(drv, eq);
    }
}

void drv_poll_eqs(struct drv *drv, uint32_t vectors)
{
    if (vectors & 1) {
        drv_poll_eq(drv, &drv->eq);
        if (drv->fault_eq.ring.ptr) {
            drv_poll_eq(drv, &drv->fault_eq);
        }
    }
    for (unsigned i = 0; i < drv->num_comp_eqs; i++) {
        if (vectors & 1u << (i + 1)) {
            drv_poll_eq(drv, &drv->comp_eq[i]);
        }
    }
}

void drv_poll_events(struct drv *drv)
{
    drv_poll_eqs(drv, DRV_ALL_VECTORS);
}

bool drv_wait_event(struct drv *drv, uint8_t type, uint32_t num, struct drv_event *event,
                    uint64_t timeout_ns)
{
    uint64_t deadline = drv->dev.ops->now(drv->dev.pci) + timeout_ns;

    for (;;) {
        uint64_t now;

        drv_poll_events(drv);
        for (unsigned i = 0; i < drv->events->len; i++) {
            *event = g_array_index(drv->events, struct drv_event, i);
            if (event->type == type && (num == DRV_ANY_NUM || event->num == num)) {
                g_array_remove_index(drv->events, i);
                return true;
            }
        }
        now = drv->dev.ops->now(drv->dev.pci);
        if (now >= deadline) {
            return false;
        }
        drv->dev.ops->wait(drv->dev.pci, deadline - now);
    }
}
