/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that is owed comes to its end: no queue of a host is idle with work in it, and none
 * stands still for longer than its own timers allow.
 *
 * A queue with work in it waits for something that has a name (enum send_wait in
 * model/rdma/requester.h), and somebody ends that. So whenever the queue is looked at, that one
 * must be there: the work is on a list, the timer runs. And what a queue does must change within
 * the time that the reason has. With an ACK timer each change is progress, a retry or the end, so
 * faults or not, all is over after as many of these times as retries were agreed.
 */
#ifndef HCASIM_TESTS_LIVENESS_H
#define HCASIM_TESTS_LIVENESS_H

#include "tests/sim/fabric/sim.h"

struct liveness;

struct liveness *liveness_new(struct sim *sim);
void liveness_free(struct liveness *l);

/* From now on, or no more, the queues of that host are looked at. */
void liveness_host_up(struct liveness *l, const struct sim_host *host);
void liveness_host_down(struct liveness *l, const struct sim_host *host);

/* What the queues that have work in them wait for, a line each. */
char *liveness_tell(struct liveness *l);

#endif
