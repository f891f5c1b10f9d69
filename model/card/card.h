/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts the parts together: cards and their functions, the life of a function, and its turns.
 *
 * A card owns its physical port and its vports (model/port/eswitch.h), and outlives its functions.
 * A function (struct hca) owns objects, work and timers, and is attached to one vport. Each
 * function has an owner of its own, which gives it turns; all functions of a card belong to one
 * thread. A turn of a function touches only the function's own objects. Frames for another function
 * wait in that function's queue until a turn of that function; the sender asks the other function's
 * owner for it. The exception is a hairpin RQ, which schedules the work of an SQ of another
 * function (model/eth/eth_hairpin.c).
 */
#ifndef HCASIM_MODEL_CARD_H
#define HCASIM_MODEL_CARD_H

#include "model/core/hca.h"
#include "model/core/real_time.h"
#include "model/port/eswitch.h"

struct card {
    struct eswitch sw;
    struct real_time real_time;
    bool ends_with_function; /* hca_init() made the card */
};

struct card *card_new(void);
/* All functions of the card must have been cleared. The card does not own the cable, but the cable
 * must still exist. */
void card_free(struct card *card);

/* Whether the card can take a new function of that number. */
bool card_has_room(const struct card *card, unsigned number);

/* Prepares an HCA with a card of its own. The caller has zeroed hca. */
void hca_init(struct hca *hca, const struct hca_host_ops *ops, void *host,
              const struct hca_limits *limits, const uint8_t mac[6]);
/* The same for a function on an existing card. The function is attached to the vport of that
 * number, which must have no other function. If the vport is new, mac becomes its permanent MAC. */
void hca_init_on(struct hca *hca, const struct hca_host_ops *ops, void *host,
                 const struct hca_limits *limits, struct card *card, unsigned number,
                 const uint8_t mac[6]);
/* Restarts the function: destroys every object whatever its references, and forgets work, timers,
 * and what the driver has set on the vport. */
void hca_reset(struct hca *hca);
/* Does a part of hca_reset(): at least one step, and more as long as hca_has_room(). False: there
 * is more to do. Until it returns true, no object may be made. */
bool hca_reset_part(struct hca *hca);
void hca_clear(struct hca *hca);

/* Brings the function and everything that belongs to it alone to the state after power-on. On a
 * card with other functions, that is only the part of the vport that hca_reset() resets. If the
 * function is alone, the card restarts too (port, counters), except for the cable. Returns whether
 * the card has restarted. */
bool hca_restart_card(struct hca *hca);

/* Takes one turn of about budget pieces: received frames, due timers and pending work, each with
 * its share; see fw_run(). Returns whether more work or frames wait. */
bool hca_run(struct hca *hca, unsigned budget);

#endif
