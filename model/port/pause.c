/* SPDX-License-Identifier: BSD-2-Clause */
/* Obeys pause frames of the link partner. */
#include "model/port/pause.h"
#include "model/core/hca.h"
#include "model/core/work.h"
#include "prm/prm.h"

#define OPCODE_PAUSE 0x0001
#define OPCODE_PFC   0x0101

enum {
    PAUSE_OPCODE_AT = 14,
    PAUSE_QUANTA_AT = 16, /* PAUSE: the time */
    PAUSE_LEN = 18,
    PFC_ENABLED_AT = 17, /* PFC: the priorities whose times count */
    PFC_QUANTA_AT = 18,  /* the times of the eight priorities */
    PFC_LEN = PFC_QUANTA_AT + 2 * PRIORITIES,
    PAUSE_EVERY_PRIORITY = (1 << PRIORITIES) - 1,
    PAUSE_QUANTUM_BITS = 512,
};

static const uint8_t pause_dmac[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

/* -- the port's state -------------------------------------------------------------------------- */

/* Counts the time of a held priority, and ends the hold if its time has run out. */
static void pause_settle(struct uplink *uplink, unsigned priority, uint64_t now)
{
    struct uplink_pause *p = &uplink->pause;
    uint64_t end = MIN(now, p->until[priority]);

    if (end > p->since[priority]) {
        uplink->counters.rx_pause[priority].ns += end - p->since[priority];
        p->since[priority] = end;
    }
    if (p->until[priority] <= now) {
        p->held &= (uint8_t) ~(1u << priority);
    }
}

void pause_count(struct uplink *uplink, uint64_t now)
{
    for (unsigned i = 0; i < PRIORITIES; i++) {
        if (uplink->pause.held >> i & 1) {
            pause_settle(uplink, i, now);
        }
    }
}

/* Holds a priority for ns from now on; 0 ends the hold. */
static void pause_hold(struct uplink *uplink, unsigned priority, uint64_t ns, uint64_t now)
{
    struct uplink_pause *p = &uplink->pause;
    bool was_held = p->held >> priority & 1;

    if (was_held) {
        pause_settle(uplink, priority, now);
        was_held = p->held >> priority & 1;
    }
    p->since[priority] = now;
    p->until[priority] = now + ns;
    if (ns) {
        p->held |= (uint8_t)(1u << priority);
        uplink->counters.rx_pause[priority].begun += !was_held;
    } else {
        p->held &= (uint8_t) ~(1u << priority);
    }
}

/* -- who waits --------------------------------------------------------------------------------- */

static void pause_due(struct hca *hca, struct hca_timer *timer);

/* The timer fires no later than the hold ends. */
static void pause_arm(struct hca *hca, uint64_t until)
{
    struct hca_timer *timer = &hca->hold_timer;

    timer->fire = pause_due;
    if (!timer->pos || timer->deadline > until) {
        hca_timer_set(hca, timer, until);
    }
}

static void pause_due(struct hca *hca, struct hca_timer *timer)
{
    struct uplink *uplink = hca->vport->uplink;

    (void)timer;
    pause_count(uplink, hca_now(hca));
    for (unsigned i = 0; i < PRIORITIES; i++) {
        if (uplink->pause.held >> i & 1 && hca_credit_awaited(hca, HCA_CREDIT_CLASSES + i)) {
            pause_arm(hca, uplink->pause.until[i]);
        }
    }
    hca_holds_over(hca, ~(unsigned)uplink->pause.held);
}

bool pause_holds(struct hca *hca, unsigned priority)
{
    struct uplink *uplink = hca->vport->uplink;

    if (!(uplink->pause.held >> priority & 1)) {
        return false;
    }
    pause_settle(uplink, priority, hca_now(hca));
    if (!(uplink->pause.held >> priority & 1)) {
        return false;
    }
    hca->credit_class = HCA_CREDIT_CLASSES + priority;
    pause_arm(hca, uplink->pause.until[priority]);
    return true;
}

/* Holds have changed: wakes what they no longer hold, and sets the timers of what they do. */
static void pause_changed(struct eswitch *sw)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        struct hca *hca = sw->vports[i]->hca;

        if (hca) {
            pause_due(hca, &hca->hold_timer);
        }
    }
}

/* Ends holds of priorities, a bit for each. */
static void pause_end(struct eswitch *sw, unsigned priorities)
{
    unsigned ended = sw->uplink.pause.held & priorities;

    for (unsigned i = 0; sw->reader && i < PRIORITIES; i++) {
        if (ended >> i & 1) {
            pause_hold(&sw->uplink, i, 0, hca_now(sw->reader->hca));
        }
    }
    sw->uplink.pause.held &= (uint8_t)~ended;
    if (ended) {
        pause_changed(sw);
    }
}

/* -- what frames and settings do --------------------------------------------------------------- */

/* The priorities for which pauses of that kind are obeyed. */
static unsigned pause_obeyed(const struct uplink *uplink, bool is_pfc)
{
    if (is_pfc) {
        return uplink->phy.pfc_rx;
    }
    return uplink->phy.pause_rx ? PAUSE_EVERY_PRIORITY : 0;
}

void pause_rx(struct eswitch *sw, const uint8_t *frame, size_t len)
{
    struct uplink *uplink = &sw->uplink;
    struct uplink_counters *c = &uplink->counters;
    uint64_t now = hca_now(sw->reader->hca);
    unsigned opcode = len >= PAUSE_LEN ? (unsigned)prm_load16(frame + PAUSE_OPCODE_AT) : 0;
    bool is_pfc = opcode == OPCODE_PFC;
    unsigned named;

    hca_spend(sw->reader->hca, 1);
    c->rx_control++;
    if (memcmp(frame, pause_dmac, sizeof(pause_dmac)) ||
        (opcode != OPCODE_PAUSE && (!is_pfc || len < PFC_LEN))) {
        c->rx_control_unknown++;
        return;
    }
    c->rx_pause_frames++;
    named = is_pfc ? frame[PFC_ENABLED_AT] : PAUSE_EVERY_PRIORITY;
    named &= pause_obeyed(uplink, is_pfc);
    for (unsigned i = 0; i < PRIORITIES; i++) {
        uint64_t quanta =
            (uint64_t)prm_load16(frame + (is_pfc ? PFC_QUANTA_AT + 2 * i : PAUSE_QUANTA_AT));

        if (named >> i & 1) {
            c->rx_pause[i].frames++;
            pause_hold(uplink, i, quanta * PAUSE_QUANTUM_BITS * 1000 / uplink->line_mbps, now);
        }
    }
    if (named) {
        pause_changed(sw);
    }
}

void pause_settings_changed(struct eswitch *sw)
{
    unsigned obeyed = pause_obeyed(&sw->uplink, true) | pause_obeyed(&sw->uplink, false);

    pause_end(sw, ~obeyed);
}

void pause_link_down(struct eswitch *sw)
{
    pause_end(sw, PAUSE_EVERY_PRIORITY);
}
