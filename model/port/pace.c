/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds send queues to rates. A queue pays for each frame that it has sent, so a frame may leave
 * when those before it have had their time. The mean rate is therefore exact, whatever the sizes of
 * the frames are.
 *
 * After a pause, a queue may send a burst. If the gate's own turn comes late, or a frame whose time
 * has come waits for the wire or for other queues, the queue does not lose the time: what was due
 * meanwhile leaves at once.
 */
#include <stddef.h>
#include "model/core/pd.h"
#include "model/port/pace.h"
#include "model/port/port.h"

/* Most time that the gate makes up for when its turn comes late. */
#define PACE_LATE_NS 10000000ull
/* A waiting frame looks again after this time, because the rate may have changed. */
#define PACE_LOOK_NS 10000000ull

/* -- the table --------------------------------------------------------------------------------- */

enum syn pace_set(struct hca *hca, unsigned index, const struct pace_rate *rate)
{
    struct pace_rate *entry;

    if (index == 0 || index >= PACE_RATES) {
        return SYN_PACE_INDEX;
    }
    if (rate->kbps > PACE_MAX_KBPS) {
        return SYN_PACE_RATE;
    }
    if (!hca->pace_rates) {
        hca->pace_rates = g_new0(struct pace_rate, PACE_RATES);
    }
    entry = &hca->pace_rates[index];
    if (entry->kbps && rate->uid && rate->uid != entry->uid) {
        return SYN_BAD_UID;
    }
    *entry = rate->kbps ? *rate : (struct pace_rate){0};
    return SYN_OK;
}

enum syn pace_find(struct hca *hca, uint16_t uid, unsigned index, const struct pace_rate **rate)
{
    *rate = NULL;
    if (index == 0) {
        return SYN_OK;
    }
    if (index >= PACE_RATES || !hca->pace_rates || !hca->pace_rates[index].kbps) {
        return SYN_PACE_INDEX;
    }
    if (uid && uid != UID_SHARED && hca->pace_rates[index].uid != uid &&
        hca->pace_rates[index].uid != UID_SHARED) {
        return SYN_BAD_UID;
    }
    *rate = &hca->pace_rates[index];
    return SYN_OK;
}

void pace_forget(struct hca *hca, uint16_t uid)
{
    for (unsigned i = 0; hca->pace_rates && i < PACE_RATES; i++) {
        if (hca->pace_rates[i].uid == uid) {
            hca->pace_rates[i] = (struct pace_rate){0};
        }
    }
}

void pace_reset(struct hca *hca)
{
    g_free(hca->pace_rates);
    hca->pace_rates = NULL;
}

/* -- the gate ---------------------------------------------------------------------------------- */

static void pace_due(struct hca *hca, struct hca_timer *timer)
{
    struct pace *pace = (struct pace *)((char *)timer - offsetof(struct pace, timer));

    hca_schedule(hca, pace->work);
}

void pace_start(struct hca *hca, struct pace *pace, const struct pace_rate *rate, struct work *work)
{
    bool waited = pace->waits;

    pace_stop(hca, pace);
    pace->rate = rate;
    pace->work = work;
    pace->timer.fire = pace_due;
    if (waited) {
        hca_schedule(hca, work); /* the timer will not fire for the waiting frame */
    }
}

void pace_stop(struct hca *hca, struct pace *pace)
{
    hca_timer_stop(hca, &pace->timer);
    pace->waits = false;
    pace->bucket = (struct bucket){.debt_at = hca_now(hca)};
}

/* The credit that a queue gets in a pause. With the frame that ends the burst, it makes a burst
 * that is no longer than the rate allows. */
static int64_t pace_burst(struct hca *hca, const struct pace_rate *rate)
{
    uint32_t last = rate->typical ? rate->typical : port_mtu(hca);

    return rate->burst > last ? bucket_cost(rate->burst - last) : 0;
}

bool pace_is_time(struct hca *hca, struct pace *pace)
{
    const struct pace_rate *rate = pace->rate;
    uint64_t now = hca_now(hca);

    if (!rate->kbps) {
        pace->waits = false;
        pace->bucket = (struct bucket){.debt_at = now};
        return true;
    }
    bucket_refill(&pace->bucket, now, rate->kbps,
                  pace->waits ? (int64_t)(rate->kbps * PACE_LATE_NS) : pace_burst(hca, rate));
    pace->waits = true;
    if (pace->bucket.debt <= 0) {
        return true;
    }
    hca_timer_set(hca, &pace->timer,
                  now + MIN(bucket_wait(&pace->bucket, rate->kbps), PACE_LOOK_NS));
    return false;
}
