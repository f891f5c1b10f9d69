/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends a frame that a send queue has made, by the rules of the NIC transmit domain.
 *
 * The frame was made in a place of the wire that its address and length chose. If rules change one
 * of them, it needs another place. If there is no credit for that, the send queue waits as for any
 * frame, and makes the frame again from its WQE. Counters do not count it a second time.
 */
#include <string.h>
#include "model/eth/eth_priv.h"
#include "model/steering/steering.h"
#include "wire/port.h"

#define MAC_BYTES 6

/* The place of the changed frame, with the frame in it. was, was_len: the frame before. NULL: there
 * is no credit for it. */
static uint8_t *eth_commit_changed(struct hca *hca, const struct eth_sq *sq, uint8_t *was,
                                   size_t was_len, const uint8_t *frame, size_t len)
{
    size_t padded = MAX(len, ETH_MIN_FRAME);
    uint8_t *place = was;

    if (padded != was_len || memcmp(was, frame, MAC_BYTES) != 0) {
        port_tx_commit(hca, 0, sq->tdn);
        place = port_tx_reserve(hca, frame, eth_sq_priority(sq), padded);
        if (!place) {
            return NULL;
        }
    }
    memcpy(place, frame, len);
    memset(place + len, 0, padded - len);
    return place;
}

/* Notes for trace and capture which queue and WQE send the frame. */
static G_GNUC_NO_INLINE __attribute__((cold)) void eth_commit_note(struct hca *hca,
                                                                   const struct eth_sq *sq)
{
    port_note(hca, &(struct wire_note){.qpn = sq->obj.num,
                                       .has_wqe = !sq->hairpin,
                                       .no_psn = true,
                                       .wqe = (uint16_t)sq->wq.ci});
}

bool eth_commit(struct hca *hca, struct eth_sq *sq, uint32_t metadata, uint8_t *frame, size_t len)
{
    if (G_UNLIKELY(steering_has_tx(hca))) {
        const struct steering_sent sent = {
            .sqn = sq->obj.num, .metadata = metadata, .counted = sq->counted};
        const uint8_t *steered = frame;
        size_t steered_len = len;

        sq->counted = false;
        if (!steering_tx(hca, &sent, &steered, &steered_len)) {
            pace_note_sent(&sq->pace, len);
            sched_note_sent(&sq->sched, len);
            port_tx_commit(hca, 0, sq->tdn);
            return true;
        }
        if (steered != frame) {
            frame = eth_commit_changed(hca, sq, frame, len, steered, steered_len);
            if (!frame) {
                sq->counted = true;
                return false;
            }
            len = MAX(steered_len, ETH_MIN_FRAME);
        }
    }
    pace_note_sent(&sq->pace, len);
    sched_note_sent(&sq->sched, len);
    if ((frame[0] & 1) && !sq->hairpin && !hca->vport->no_loop_mc &&
        tir_takes_group(hca, sq->tdn)) {
        port_loop(hca, frame, len, 0, sq->tdn);
    }
    if (G_UNLIKELY(port_wants_note(hca))) {
        eth_commit_note(hca, sq);
    }
    port_tx_commit(hca, len, sq->tdn);
    return true;
}
