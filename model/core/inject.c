/* SPDX-License-Identifier: BSD-2-Clause */
/* Late interrupts, doorbells that are not seen, receives that are returned; see
 * model/core/inject.h. */
#include "model/core/inject.h"

#define NEVER UINT64_MAX

static void inject_arm(struct hca *hca)
{
    struct inject *inject = hca->inject;
    uint64_t first = NEVER;

    for (unsigned v = 0; v < inject->vectors; v++) {
        first = MIN(first, inject->due_ns[v]);
    }
    if (first == NEVER) {
        hca_timer_stop(hca, &inject->timer);
    } else {
        hca_timer_set(hca, &inject->timer, first);
    }
}

/* Sends the interrupts that are due by then. */
static void inject_send(struct hca *hca, uint64_t by_ns)
{
    struct inject *inject = hca->inject;

    for (unsigned v = 0; v < inject->vectors; v++) {
        if (inject->due_ns[v] <= by_ns && inject->due_ns[v] != NEVER) {
            inject->due_ns[v] = NEVER;
            if (!hca->off) {
                hca->ops->irq(hca->host, v);
            }
        }
    }
}

static void inject_fire(struct hca *hca, struct hca_timer *timer)
{
    inject_send(hca, hca_now(hca));
    inject_arm(hca);
}

static struct inject *inject_new(struct hca *hca, struct fault_set *set)
{
    unsigned vectors = hca->limits.num_msix;
    struct inject *inject = g_malloc0(sizeof(*inject) + vectors * sizeof(inject->due_ns[0]));

    inject->set = set;
    inject->timer.fire = inject_fire;
    inject->vectors = vectors;
    for (unsigned v = 0; v < vectors; v++) {
        inject->due_ns[v] = NEVER;
    }
    return inject;
}

void inject_set(struct hca *hca, struct fault_set *set)
{
    if (hca->inject) {
        inject_send(hca, NEVER - 1);
        hca_timer_stop(hca, &hca->inject->timer);
        g_clear_pointer(&hca->inject, g_free);
    }
    if (set) {
        hca->inject = inject_new(hca, set);
    }
}

void inject_reset(struct hca *hca)
{
    for (unsigned v = 0; hca->inject && v < hca->inject->vectors; v++) {
        hca->inject->due_ns[v] = NEVER;
    }
}

bool inject_interrupt(struct hca *hca, unsigned vector)
{
    struct inject *inject = hca->inject;
    struct fault_event event = {.subject = FAULT_ABOUT_INTERRUPTS, .vector = vector};
    struct fault_outcome outcome;

    if (vector >= inject->vectors || !fault_set_has(inject->set, FAULT_ABOUT_INTERRUPTS)) {
        return false;
    }
    if (!fault_set_ask(inject->set, &event, &outcome)) {
        /* it stands for the one that waits */
        inject->due_ns[vector] = NEVER;
        return false;
    }
    inject->due_ns[vector] = MIN(inject->due_ns[vector], hca_now(hca) + outcome.late_ns);
    inject_arm(hca);
    return true;
}

/* Whether something of the queue fails, because a rule says so. */
static bool inject_fails(struct hca *hca, enum fault_subject subject, uint32_t qpn)
{
    struct fault_event event = {.subject = subject, .qpn = qpn};
    struct fault_outcome outcome;

    return fault_set_has(hca->inject->set, subject) &&
           fault_set_ask(hca->inject->set, &event, &outcome) && outcome.fails;
}

bool inject_doorbell(struct hca *hca, uint32_t qpn)
{
    return inject_fails(hca, FAULT_ABOUT_DOORBELLS, qpn);
}

bool inject_receive(struct hca *hca, uint32_t qpn)
{
    return inject_fails(hca, FAULT_ABOUT_RECEIVES, qpn);
}
