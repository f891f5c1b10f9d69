/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of the handlers that run around fork() (pthread_atfork()). Before a fork() they run in
 * the reverse of the order in which they were registered. A thread that holds an outer lock may
 * take an inner lock; fork() must take them in the same order. So the handlers of the inner lock
 * are registered before those of the outer lock.
 *
 * All handlers are registered when the library is loaded. A fork() that has begun does not run
 * handlers that are registered later.
 */
#ifndef HCASIM_WIRE_FORKS_H
#define HCASIM_WIRE_FORKS_H

/* Marks the function that registers the handlers of an inner lock, under which no other lock with
 * handlers is taken. The handlers of outer locks are registered by a plain constructor, which runs
 * later. */
#define FORKS_INNER_LOCK                                                                           \
    __attribute__((constructor(101))) /* the first that is not the compiler's */

#endif
