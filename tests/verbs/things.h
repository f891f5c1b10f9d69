/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of every kind of object that a program can make on an open device, chosen by chance; and a
 * census of what library and device have on their books.
 */
#ifndef HCASIM_TESTS_VERBS_THINGS_H
#define HCASIM_TESTS_VERBS_THINGS_H

#include <glib.h>
#include <stdbool.h>
#include "guest-lib/verbs/verbs.h"

/* What a context has, by kind, in the order in which they can be made: things[kind] is of void *.
 */
enum thing {
    THING_PD,
    THING_TD,
    THING_PARENT_DOMAIN,
    THING_MR,
    THING_MW,
    THING_AH,
    THING_CHANNEL,
    THING_CQ,
    THING_CQ_EX,
    THING_XRCD,
    THING_SRQ,
    THING_XRC_SRQ,
    THING_TM_SRQ,
    THING_QP, /* RC, UC or UD, in some state; a UD one may be in multicast groups */
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
    THING_EVENTS, /* a channel of DevX, with subscriptions */
    THING_COMMANDS,
    THINGS
};
extern const char *const thing_names[THINGS];

struct things {
    struct ibv_context *ctx;
    GRand *rand;
    int file; /* of XRC domains; the caller's */
    GPtrArray *made[THINGS];
    struct things *next; /* of those that were left */
};

/* On an open context; the chance stays the caller's. */
struct things *things_new(struct ibv_context *ctx, GRand *rand, int file);
/* Makes one. False: what it needs is not there, or the device has no more. */
bool thing_make(struct things *things, enum thing kind);
/* Destroys one. False: it is in use. */
bool thing_destroy(struct things *things, enum thing kind, unsigned index);
/* Closes the context, whatever is left. */
void things_close(struct things *things);
/* What the program has pointers to stays when its file is closed, as beside a kernel: it is
 * remembered here, and so not lost. Descriptors of channels are closed. */
void things_leave(struct things *things);
/* The books of the HCA that a context is on. */
struct census {
    uint64_t device, icm; /* bytes of its objects, here and in the host's pages */
    unsigned objects;     /* in the device's tables */
    unsigned numbers;     /* objects that events can be about */
    unsigned contexts, event_files, subscriptions, xrcds, doorbell_pages;
    bool flows;
};
struct census census_take(struct ibv_context *ctx);
/* Fails, and says by what, unless both are the same. */
void census_compare(const struct census *is, const struct census *was, const char *when);

#endif
