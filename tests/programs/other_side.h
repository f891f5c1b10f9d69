/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program of two processes has besides RDMA: a TCP connection for synchronization, and
 * functions that end the program on an error.
 */
#ifndef HCASIM_TESTS_PROGRAMS_OTHER_SIDE_H
#define HCASIM_TESTS_PROGRAMS_OTHER_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#define OTHER_SIDE_PATIENCE 300 /* seconds to wait for the other side */

/* Prints what is wrong, after the program's name, and exits with status 1. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* fail()s with "WHAT failed" unless the condition holds. */
void need(bool condition, const char *what);

/* Returns a connected socket: to host, or, with NULL, from the first caller. */
int other_side_connect(const char *host, const char *port);
/* Sends len bytes, and waits for as many. Both sides call it. */
void tell(int fd, const void *mine, void *theirs, size_t len);
/* Waits until both sides have called it. */
void together(int fd);

#endif
