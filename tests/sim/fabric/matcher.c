/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements matcher.h with two lists. */
#include "tests/sim/fabric/matcher.h"

static bool matcher_fits(const struct matcher_receive *receive, const struct matcher_message *msg)
{
    return (msg->tag & receive->mask) == (receive->tag & receive->mask);
}

void matcher_init(struct matcher *matcher)
{
    g_queue_init(&matcher->posted);
    g_queue_init(&matcher->waiting);
}

void matcher_clear(struct matcher *matcher)
{
    g_queue_clear(&matcher->posted);
    g_queue_clear(&matcher->waiting);
}

struct matcher_receive *matcher_find(struct matcher *matcher, const struct matcher_message *msg)
{
    for (GList *at = matcher->posted.head; at; at = at->next) {
        if (matcher_fits(at->data, msg)) {
            return at->data;
        }
    }
    return NULL;
}

struct matcher_message *matcher_find_waiting(struct matcher *matcher,
                                             const struct matcher_receive *receive)
{
    for (GList *at = matcher->waiting.head; at; at = at->next) {
        if (matcher_fits(receive, at->data)) {
            return at->data;
        }
    }
    return NULL;
}

void matcher_post(struct matcher *matcher, struct matcher_receive *receive)
{
    receive->posted = true;
    g_queue_push_tail(&matcher->posted, receive);
}

void matcher_take_back(struct matcher *matcher, struct matcher_receive *receive)
{
    receive->posted = false;
    g_queue_remove(&matcher->posted, receive);
}

void matcher_wait(struct matcher *matcher, struct matcher_message *msg)
{
    msg->waits = true;
    g_queue_push_tail(&matcher->waiting, msg);
}

void matcher_end_wait(struct matcher *matcher, struct matcher_message *msg)
{
    msg->waits = false;
    g_queue_remove(&matcher->waiting, msg);
}
