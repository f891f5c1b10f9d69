/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's rule, and nothing else: a message takes the first receive posted whose tag fits; a receive
 * takes the first message that waits for one.
 */
#ifndef HCASIM_TESTS_MATCHER_H
#define HCASIM_TESTS_MATCHER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct matcher_receive {
    uint64_t tag, mask; /* bits that must be those of the tag */
    bool posted;        /* and no message has taken it */
};

struct matcher_message {
    uint64_t tag;
    bool waits;
};

struct matcher {
    GQueue posted, waiting; /* in their order */
};

void matcher_init(struct matcher *matcher);
void matcher_clear(struct matcher *matcher);
/* The receive that the message takes, or NULL. */
struct matcher_receive *matcher_find(struct matcher *matcher, const struct matcher_message *msg);
/* The message that the receive takes, or NULL. */
struct matcher_message *matcher_find_waiting(struct matcher *matcher,
                                             const struct matcher_receive *receive);
void matcher_post(struct matcher *matcher, struct matcher_receive *receive);
/* A message took it, or it was cancelled. */
void matcher_take_back(struct matcher *matcher, struct matcher_receive *receive);
void matcher_wait(struct matcher *matcher, struct matcher_message *msg);
void matcher_end_wait(struct matcher *matcher, struct matcher_message *msg);

#endif
