/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The future events of a virtual clock: a member of a world (guest-lib/host/inproc.h) that makes
 * callbacks in the order of their times and, at the same time, in the order of the requests.
 */
#ifndef HCASIM_TESTS_TIMELINE_H
#define HCASIM_TESTS_TIMELINE_H

#include "guest-lib/host/inproc.h"

struct timeline;

typedef void timeline_fn(void *opaque, void *what);

struct timeline *timeline_new(struct inproc_world *world);
/* Drops all future events, and leaves the world. */
void timeline_free(struct timeline *t);

uint64_t timeline_now(const struct timeline *t);
/* Calls fn(opaque, what) at that time, or in the next round if it is not in the future. */
void timeline_at(struct timeline *t, uint64_t time_ns, timeline_fn *fn, void *opaque, void *what);
/* Takes back the future events of that callback; passes each what to free. */
void timeline_forget(struct timeline *t, timeline_fn *fn, GDestroyNotify free);

#endif
