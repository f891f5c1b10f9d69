/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes peers wait for answers of a slow device.
 *
 * A READ is taken from the wire in one turn, and its response may be sent many turns later, because
 * the work of other queue pairs comes first. If the device's host rarely gets a processor, the
 * response can take longer than the peer's ACK timer and all its retries allow, though nothing was
 * lost. A card is never that slow. Therefore the device tells the wire that it owes answers
 * (wire_owe()), and the peer's timer stops.
 *
 * The timer must not stop for ever: a peer whose packet was lost waits for its timer, and a busy
 * device always has work. All answers that are owed for received packets are among the work that is
 * ready at that time. So a function puts a mark (struct owing.round) at the end of the ready list.
 * When nothing is before the mark any more, each queue pair has had a turn: the function has done a
 * round. When each function that had work has done such a round, all received packets are settled.
 * Then a new epoch begins, in which each function may owe once more.
 *
 * If a turn found no credit on the wire, it was no turn in this sense. Then the mark waits for that
 * credit, too, behind the work that does, but at most OWING_WAITS times. Meanwhile this function
 * owes nothing. The receiver that has used up the credit delays its own answers, and the wire knows
 * that. Other peers need not wait because of it. Answers that a pause of the link partner holds
 * (model/port/pause.h) are not waited for.
 */
#include "model/core/work.h"
#include "model/port/port.h"
#include "model/port/uplink.h"
#include "wire/port.h"

#define OWING_WAITS 256 /* waits for credit in one round */

/* Runs when the mark is the first on the ready list. */
static void owing_reach(struct hca *hca, struct work *work)
{
    struct owing *owing = &hca->owing;

    if (owing->waits < OWING_WAITS && hca->credit_class < HCA_CREDIT_CLASSES &&
        hca_credit_awaited(hca, hca->credit_class)) {
        owing->waits++;
        owing->awaits_credit = true;
        owing->credit_class = hca->credit_class;
        hca->credits_back &= ~(1ull << owing->credit_class);
        hca_wait_tx_last(hca, work);
    }
}

/* Sets whether peers have to wait for this function. */
static void owing_set(struct hca *hca, bool owes)
{
    struct uplink *uplink = hca->vport->uplink;

    if (hca->owing.owes == owes) {
        return;
    }
    hca->owing.owes = owes;
    uplink->owing.owing += owes ? 1 : -1u;
    if (uplink->wire && uplink->owing.owing == (owes ? 1 : 0)) {
        wire_owe(uplink->wire, owes);
    }
}

void port_owe_nothing(struct hca *hca)
{
    struct uplink *uplink = hca->vport->uplink;

    hca_unschedule(&hca->owing.round);
    owing_set(hca, false);
    if (hca->owing.begun) {
        hca->owing.begun = hca->owing.awaits_credit = false;
        uplink->owing.begun--;
        uplink->owing.epoch += uplink->owing.begun == 0;
    }
}

static void owing_begin(struct hca *hca)
{
    struct uplink *uplink = hca->vport->uplink;
    struct owing *owing = &hca->owing;

    owing->begun = true;
    owing->waits = 0;
    owing->next_epoch = uplink->owing.epoch + 1;
    owing->round.run = owing_reach;
    uplink->owing.begun++;
    hca_schedule(hca, &owing->round);
    owing_set(hca, true);
}

static bool owing_is_round_done(const struct hca *hca)
{
    return !hca->owing.round.next || hca->ready.next == &hca->owing.round;
}

void port_owe(struct hca *hca)
{
    struct owing *owing = &hca->owing;

    if (owing->begun) {
        owing->awaits_credit =
            owing->awaits_credit && !(hca->credits_back >> owing->credit_class & 1);
        if (!owing->awaits_credit && owing_is_round_done(hca)) {
            port_owe_nothing(hca);
        } else {
            owing_set(hca, !owing->awaits_credit);
        }
    } else if (hca_work_pending(hca) && hca->vport->uplink->owing.epoch >= owing->next_epoch) {
        owing_begin(hca);
    }
    hca->credits_back = 0;
}
