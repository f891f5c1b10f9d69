/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of what is done around fork() (pthread_atfork()). Before it the handlers run in the
 * reverse of the order in which they were made known: to take locks as everybody takes them, that
 * of a lock which others hold while they take it has to be known before theirs.
 *
 * All are made known when the library is loaded. A fork() that has begun does not run what is made
 * known later.
 */
#ifndef HCASIM_WIRE_FORKS_H
#define HCASIM_WIRE_FORKS_H

/* For the function that makes the handlers of an inner lock known: under it no other one is taken
 * that has handlers. Those of outer locks are made known by a plain constructor, which is later. */
#define FORKS_INNER_LOCK                                                                           \
    __attribute__((constructor(101))) /* the first that is not the compiler's */

#endif
