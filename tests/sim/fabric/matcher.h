/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's matching rule and nothing else: a message takes the first posted receive whose tag fits; a
 * receive takes the first waiting message.
 */
#ifndef HCASIM_TESTS_MATCHER_H
#define HCASIM_TESTS_MATCHER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct matcher_receive {
    uint64_t tag, mask; /* the bits of mask must equal those of the tag */
    bool posted;        /* posted, and no message has taken it */
};

struct matcher_message {
    uint64_t tag;
    bool waits;
};

struct matcher {
    GQueue posted, waiting; /* in order */
};

void matcher_init(struct matcher *matcher);
void matcher_clear(struct matcher *matcher);
/* Returns the receive that the message takes, or NULL. */
struct matcher_receive *matcher_find(struct matcher *matcher, const struct matcher_message *msg);
/* Returns the message that the receive takes, or NULL. */
struct matcher_message *matcher_find_waiting(struct matcher *matcher,
                                             const struct matcher_receive *receive);
void matcher_post(struct matcher *matcher, struct matcher_receive *receive);
/* A message took the receive, or it was cancelled. */
void matcher_take_back(struct matcher *matcher, struct matcher_receive *receive);
void matcher_wait(struct matcher *matcher, struct matcher_message *msg);
void matcher_end_wait(struct matcher *matcher, struct matcher_message *msg);

#endif
