/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts put together: a card and its functions; a function's life, and its turns.
 *
 * A card owns its physical port and its vports (model/port/eswitch.h), and outlives its functions;
 * a function (struct hca) owns objects, work and timers, and stands at one vport. Each function has
 * an owner of its own, which gives it its turns; all of a card's are one thread's. A turn of a
 * function touches its own objects only: what it sends to another waits in that one's queue for a
 * turn of its own, which its owner is asked for.
 */
#ifndef HCASIM_MODEL_CARD_H
#define HCASIM_MODEL_CARD_H

#include "model/core/hca.h"
#include "model/port/eswitch.h"

struct card {
    struct eswitch sw;
    bool ends_with_function; /* hca_init() made it */
};

struct card *card_new(void);
/* The card must have no functions any more. The cable is not the card's, but must still be there.
 */
void card_free(struct card *card);

/* Whether the card can have a function of that number, which it has not. */
bool card_has_room(const struct card *card, unsigned number);

/* Prepares an empty HCA (hca is zeroed by the caller), alone on a card of its own. */
void hca_init(struct hca *hca, const struct hca_host_ops *ops, void *host,
              const struct hca_limits *limits, const uint8_t mac[6]);
/* The same as a card's function of that number. It stands at the vport of that number, where no
 * other may stand; mac is the vport's permanent MAC if there has been none yet. */
void hca_init_on(struct hca *hca, const struct hca_host_ops *ops, void *host,
                 const struct hca_limits *limits, struct card *card, unsigned number,
                 const uint8_t mac[6]);
/* The function starts over: destroys every object whatever its references, forgets work and timers,
 * and what its driver said of its vport. */
void hca_reset(struct hca *hca);
/* A part of that: as much as hca_has_room() for, one step at least. False: there is more. Meanwhile
 * nobody may make objects. */
bool hca_reset_part(struct hca *hca);
void hca_clear(struct hca *hca);

/* The function and what is its alone are as after power-on: on a card with others that is the
 * vport's part that hca_reset() resets. A function that is alone begins the card anew, but for the
 * cable: port, counters. Returns whether it did. */
bool hca_restart_card(struct hca *hca);

/* Takes one turn of about budget pieces: received frames, due timers, pending work, each with its
 * share; see fw_run(). */
bool hca_run(struct hca *hca, unsigned budget);

#endif
