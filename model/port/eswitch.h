/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins the vports of a card to each other and to the card's uplink, by their MACs.
 *
 *   a vport's unicast      goes to the vport that has the address (the sender included), else to
 *                          the cable
 *   a vport's group frame  goes to the cable, and a copy to each other vport that wants the group
 *   a frame of the cable   goes to each vport that wants it. If no vport wants it, it goes to all
 *                          vports, because a rule of theirs may take it
 *
 * Inside the card a frame is written into the queue of the destination vport. That vport's function
 * takes it from there in a turn of its own. A sender waits for credit of the queue as it does for
 * credit of the cable. A copy for which there is no credit is lost and counted. One function, the
 * first, reads the cable in its turns. It reads only while every queue has credit, so nothing is
 * lost between cable and queue.
 *
 * All functions of a card belong to one thread, so nothing here locks. A function that writes into
 * a queue asks the owner of the queue's function for a turn (hca_wake()), and touches nothing else
 * of that function.
 */
#ifndef HCASIM_MODEL_ESWITCH_H
#define HCASIM_MODEL_ESWITCH_H

#include <glib.h>
#include "model/port/vport.h"

#define ESWITCH_MAX_VPORTS 128

/* A set of a card's vports: a bit for each vport, by its place. */
struct vport_set {
    uint64_t bits[ESWITCH_MAX_VPORTS / 64];
};

struct eswitch {
    struct uplink uplink;
    struct vport *vports[ESWITCH_MAX_VPORTS]; /* in the order in which they were made */
    unsigned num_vports;
    unsigned num_functions; /* vports that have a function */
    struct vport *reader;   /* the vport whose function reads the cable; NULL: no function */
    bool cable_waits;       /* the cable is not read until queues have credit */
    /* which vports take which frames (model/port/eswitch_macs.c) */
    GHashTable *macs;
    struct vport_set promiscuous[2]; /* the vports that take every unicast; every group frame */
    struct vport_set everyone;
    uint64_t system_image_guid; /* of the card: the node GUID of the first vport */
};

void eswitch_init(struct eswitch *sw);
void eswitch_clear(struct eswitch *sw);

/* The vport of that number, or NULL. */
struct vport *eswitch_find_vport(const struct eswitch *sw, unsigned number);
/* The vport of that number. If there is none, makes it with mac as its permanent MAC. */
struct vport *eswitch_vport(struct eswitch *sw, unsigned number, const uint8_t mac[6]);
/* Attaches a function to a vport that has none, or detaches it. */
void eswitch_attach(struct vport *vport, struct hca *hca);
void eswitch_detach(struct vport *vport);

/* Plugs in the cable; NULL unplugs it. */
void eswitch_set_wire(struct eswitch *sw, struct wire_port *wire);
/* The link may have changed: each function learns it in a turn of its own. */
void eswitch_link_changed(struct eswitch *sw);

/* The vport of another function that a unicast goes to. NULL: it goes to the cable. */
struct vport *eswitch_find(const struct vport *from, const uint8_t dmac[6]);
/* Copies a group frame to each vport that wants it, except the sender. */
void eswitch_copy_group(const struct vport *from, const uint8_t *frame, size_t len, unsigned flags);
/* Copies a frame into a vport's queue. from_td is as in vport_rx(). False: no credit. */
bool eswitch_copy(struct vport *to, const uint8_t *frame, size_t len, unsigned flags,
                  uint32_t from_td);

/* Port settings that the paths of QPs depend on have changed (model/port/cong.h): each path is
 * looked up again. */
void eswitch_paths_changed(struct eswitch *sw);

/* There is credit: all work that waits for it goes on. */
void eswitch_tx_ready(struct eswitch *sw);
/* Whether every queue has credit for that many frames, so that the cable may be read. If not,
 * eswitch_queue_taken() makes the reader look at the cable again. */
bool eswitch_may_read(struct eswitch *sw, unsigned frames);
/* Frames were taken from some queue. */
void eswitch_queue_taken(struct eswitch *sw);

/* -- by MAC (model/port/eswitch_macs.c) */

void eswitch_macs_init(struct eswitch *sw);
void eswitch_macs_clear(struct eswitch *sw);
/* eswitch_owners(): the vports that have a unicast MAC, or that want the group. eswitch_takers():
 * these, and the vports that take every such frame. Both include vports without a function. */
struct vport_set eswitch_owners(const struct eswitch *sw, const uint8_t mac[6]);
struct vport_set eswitch_takers(const struct eswitch *sw, const uint8_t mac[6]);
/* Takes the first vport out of a set. NULL: the set is empty. */
struct vport *eswitch_next(const struct eswitch *sw, struct vport_set *set);
/* The frames that a vport takes have changed: for one MAC, in its lists or its function's groups;
 * by its promiscuous modes. */
void eswitch_mac_changed(const struct vport *vport, const uint8_t mac[6]);
void eswitch_promisc_changed(const struct vport *vport);

#endif
