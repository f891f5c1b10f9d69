/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes every kind of object that a program can make on an open device, chosen by chance; and takes
 * a census of the objects that the library and the device know.
 */
#ifndef HCASIM_TESTS_VERBS_THINGS_H
#define HCASIM_TESTS_VERBS_THINGS_H

#include <glib.h>
#include <stdbool.h>
#include "guest-lib/verbs/verbs.h"

/* The objects of a context, by kind, in the order in which they can be made: things[kind] holds
 * void *. */
enum thing {
    THING_PD,
    THING_TD,
    THING_PARENT_DOMAIN,
    THING_MR,
    THING_DM,
    THING_DM_MR,
    THING_MW,
    THING_AH,
    THING_CHANNEL,
    THING_CQ,
    THING_CQ_EX,
    THING_XRCD,
    THING_SRQ,
    THING_XRC_SRQ,
    THING_TM_SRQ,
    THING_QP, /* RC, UC or UD, in some state; a UD QP may be in multicast groups */
    THING_XRC_QP,
    THING_RAW_QP,
    THING_DCI,
    THING_DCT,
    THING_WQ,
    THING_IND_TABLE,
    THING_RSS_QP,
    THING_FLOW,
    THING_MATCHER,
    THING_DV_FLOW,
    THING_MKEY,
    THING_RESERVED_QPN,
    THING_UMEM,
    THING_UAR,
    THING_DEVX_CQ,
    THING_DEVX_OBJ,
    THING_EVENTS, /* a DevX channel, with subscriptions */
    THING_COMMANDS,
    THINGS
};
extern const char *const thing_names[THINGS];

struct things {
    struct ibv_context *ctx;
    GRand *rand;
    int file; /* the caller's file of XRC domains */
    GPtrArray *made[THINGS];
    struct things *next; /* things of contexts that were left */
};

/* Starts with no objects on an open context. The caller keeps the random generator. */
struct things *things_new(struct ibv_context *ctx, GRand *rand, int file);
/* Makes an object. Returns false if an object that it needs is missing, or the device has no
 * more. */
bool thing_make(struct things *things, enum thing kind);
/* Destroys an object. Returns false if it is in use. */
bool thing_destroy(struct things *things, enum thing kind, unsigned index);
/* Closes the context, whatever objects are left. */
void things_close(struct things *things);
/* When a device file is closed under a kernel, the program's memory of its objects stays. Here it
 * is remembered, so that it is no leak. Closes the descriptors of channels. */
void things_leave(struct things *things);
/* What the HCA of a context uses. */
struct census {
    uint64_t device, icm; /* bytes of its objects, in this process and in the host's pages */
    unsigned objects;     /* objects in the device's tables */
    unsigned numbers;     /* objects that may have events */
    unsigned contexts, event_files, subscriptions, xrcds, doorbell_pages;
    bool flows;
};
struct census census_take(struct ibv_context *ctx);
/* Fails, and prints the difference, unless both are the same. */
void census_compare(const struct census *is, const struct census *was, const char *when);

#endif
