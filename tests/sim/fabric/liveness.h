/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that all owed work ends: no queue of a host is idle with work in it, and no queue stands
 * still longer than its own timers allow.
 *
 * A queue with work in it waits for a named reason (enum send_wait in model/rdma/requester.h), and
 * something ends that wait. So whenever the queue is examined, its waker must exist: the work is on
 * a list, or the timer runs. And the queue's state must change within the time that the reason
 * allows. With an ACK timer each change is progress, a retry or the end. Therefore, with or without
 * faults, everything ends after as many of these times as there are retries.
 */
#ifndef HCASIM_TESTS_LIVENESS_H
#define HCASIM_TESTS_LIVENESS_H

#include "tests/sim/fabric/sim.h"

struct liveness;

struct liveness *liveness_new(struct sim *sim);
void liveness_free(struct liveness *l);

/* Starts or stops examining the queues of that host. */
void liveness_host_up(struct liveness *l, const struct sim_host *host);
void liveness_host_down(struct liveness *l, const struct sim_host *host);

/* A GPU stores to the doorbell record of this queue and then rings, or no longer does. In between
 * the queue may be idle for a while, but not longer than for any other work. */
void liveness_gpu_rings(struct liveness *l, const struct sim_host *host, uint32_t qpn, bool does);

/* Returns what the queues with work in them wait for, a line each. */
char *liveness_tell(struct liveness *l);

#endif
