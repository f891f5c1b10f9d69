/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What joins the vports of a card to each other and to its uplink, by their MACs.
 *
 *   a vport's unicast      to the vport whose address it is, its own included, else to the cable
 *   a vport's group frame  to the cable, and a copy to each other vport that wants the group
 *   a frame of the cable   to each vport that wants it; if none does to all, whose rules may
 *
 * Inside the card a frame is written into the queue of the vport that it goes to, whose function
 * takes it from there in a turn of its own. A sender waits for credit there as it does for credit
 * on the cable; a copy that finds none is lost and counted. The cable is read in the turns of one
 * function, the first; for it to be read each queue must give credit, so nothing is lost between
 * cable and queue.
 *
 * All functions of a card belong to one thread: nothing here locks. Who writes into a queue asks
 * that function's owner for a turn (hca_wake()) and touches nothing else of it.
 */
#ifndef HCASIM_MODEL_ESWITCH_H
#define HCASIM_MODEL_ESWITCH_H

#include <glib.h>
#include "model/port/vport.h"

#define ESWITCH_MAX_VPORTS 128

/* Some of a card's vports: a bit each, by its place. */
struct vport_set {
    uint64_t bits[ESWITCH_MAX_VPORTS / 64];
};

struct eswitch {
    struct uplink uplink;
    struct vport *vports[ESWITCH_MAX_VPORTS]; /* in the order in which they were made */
    unsigned num_vports;
    unsigned num_functions; /* vports at which one stands */
    struct vport *reader;   /* whose function reads the cable; NULL: there is no function */
    bool cable_waits;       /* for credit of some queue */
    /* who takes which frames (model/port/eswitch_macs.c) */
    GHashTable *macs;
    struct vport_set promiscuous[2]; /* who takes every unicast, every group frame */
    struct vport_set everyone;
    uint64_t system_image_guid; /* of the card: the first vport's */
};

void eswitch_init(struct eswitch *sw);
void eswitch_clear(struct eswitch *sw);

/* The vport of that number, or NULL. */
struct vport *eswitch_find_vport(const struct eswitch *sw, unsigned number);
/* The vport of that number, which is made if it is not there: mac is its permanent MAC then. */
struct vport *eswitch_vport(struct eswitch *sw, unsigned number, const uint8_t mac[6]);
/* A function comes to a vport that has none, or leaves. */
void eswitch_attach(struct vport *vport, struct hca *hca);
void eswitch_detach(struct vport *vport);

/* Cable in (or NULL: out). */
void eswitch_set_wire(struct eswitch *sw, struct wire_port *wire);
/* The link may have changed: each function is told in a turn of its own. */
void eswitch_link_changed(struct eswitch *sw);

/* The vport of another function that a unicast goes to, or NULL: to the cable. */
struct vport *eswitch_find(const struct vport *from, const uint8_t dmac[6]);
/* A copy of a group frame to each vport that wants it, but its sender. */
void eswitch_copy_group(const struct vport *from, const uint8_t *frame, size_t len, unsigned flags);
/* A copy of a frame into a vport's queue, if that gives credit. from_td as in vport_rx(). */
bool eswitch_copy(struct vport *to, const uint8_t *frame, size_t len, unsigned flags,
                  uint32_t from_td);

/* What the paths of QPs hold of the port has changed (model/port/cong.h): each is looked up again.
 */
void eswitch_paths_changed(struct eswitch *sw);

/* There is credit on the cable, or of a queue: whoever waits for it goes on. */
void eswitch_tx_ready(struct eswitch *sw);
/* Whether the cable may be read now; if not, eswitch_queue_taken() has it read again. */
bool eswitch_may_read(struct eswitch *sw, unsigned frames);
/* Frames were taken from some queue. */
void eswitch_queue_taken(struct eswitch *sw);

/* -- by MAC (model/port/eswitch_macs.c) */

void eswitch_macs_init(struct eswitch *sw);
void eswitch_macs_clear(struct eswitch *sw);
/* The vports whose address a unicast MAC is, or that want the group; and with those that take every
 * such frame. With a function or without. */
struct vport_set eswitch_owners(const struct eswitch *sw, const uint8_t mac[6]);
struct vport_set eswitch_takers(const struct eswitch *sw, const uint8_t mac[6]);
/* Takes the first one out of a set. NULL: it is empty. */
struct vport *eswitch_next(const struct eswitch *sw, struct vport_set *set);
/* What a vport takes has changed: as to a MAC in its lists or its function's groups; as to its
 * promiscuous modes. */
void eswitch_mac_changed(const struct vport *vport, const uint8_t mac[6]);
void eswitch_promisc_changed(const struct vport *vport);

#endif
