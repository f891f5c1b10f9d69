/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What will happen on a virtual clock, and when: a member of a world (guest-lib/host/inproc.h) that
 * calls back in the order of time and, at the same time, in the order in which it was asked to.
 */
#ifndef HCASIM_TESTS_TIMELINE_H
#define HCASIM_TESTS_TIMELINE_H

#include "guest-lib/host/inproc.h"

struct timeline;

typedef void timeline_fn(void *opaque, void *what);

struct timeline *timeline_new(struct inproc_world *world);
/* What has not happened will not. Leaves the world. */
void timeline_free(struct timeline *t);

uint64_t timeline_now(const struct timeline *t);
/* Calls fn(opaque, what) at that time, or in the next round if it is not in the future. */
void timeline_at(struct timeline *t, uint64_t time_ns, timeline_fn *fn, void *opaque, void *what);
/* Takes back what has not happened of that callback; each what goes to free. */
void timeline_forget(struct timeline *t, timeline_fn *fn, GDestroyNotify free);

#endif
