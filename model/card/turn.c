/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs one turn of a function.
 *
 * A turn has three parts in this order: received frames, due timers, ready work. Each part has a
 * share of the turn's pieces, so that no part starves the others: frames get at most three
 * quarters, timers an eighth, and work gets the rest, but at least a quarter. The last step of a
 * share may overrun it, because a step cannot be divided: a batch of frames, a timer, a packet, a
 * step of a command. With a virtual clock the order is the same in every run.
 *
 * Work may wait for more frames. Then the turn looks for frames again, a few times.
 *
 * Timers come after frames, because the frame that would stop a timer may lie in the ring of a host
 * that did not get to run. While more frames wait than fit their share, timers are held, but for a
 * bounded number of turns.
 */
#include "model/card/card.h"
#include "model/core/work.h"
#include "model/port/port.h"
#include "model/queue/cqe_compress.h"

/* Gives the next part of the turn this many pieces, at least one. */
static void turn_share(struct hca *hca, uint64_t pieces)
{
    hca->pieces_end = hca->pieces + MAX(pieces, 1);
}

/* Runs the work that waits for frames after each look at the wire, until no work waits or the turn
 * is used up. */
static void turn_look_again(struct hca *hca)
{
    while (hca_frames_awaited(hca)) {
        hca_spend(hca, 1);
        if (hca->pieces < hca->turn_end && !hca->off) {
            port_look(hca);
        }
        hca_frames_looked_for(hca);
        hca_work_run(hca);
    }
}

bool hca_run(struct hca *hca, unsigned budget)
{
    uint64_t start = hca->pieces, spent;
    bool more_frames;

    hca->running = true;
    hca->turn_end = start + budget;
    turn_share(hca, budget - budget / 4);
    more_frames = port_poll(hca);
    turn_share(hca, budget / 8);
    hca_timers_fire(hca, more_frames);
    spent = hca->pieces - start;
    turn_share(hca, MAX(budget / 4, budget - MIN(budget, spent)));
    hca_work_run(hca);
    turn_look_again(hca);
    cqe_sessions_close(hca);
    port_owe(hca);
    port_tx_flush(hca);
    hca->running = false;
    hca->most_pieces = MAX(hca->most_pieces, hca->pieces - start);
    hca_timers_announce(hca);
    if (G_UNLIKELY(hca->tracing & HCA_TRACES_EVENTS)) {
        hca->ops->trace(hca->host, NULL, 0);
    }
    return hca_work_pending(hca) || port_rx_pending(hca);
}
