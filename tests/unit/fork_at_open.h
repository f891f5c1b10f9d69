/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks in the moment in which another thread opens a file: the file is open, and the code that
 * opens it does not have the descriptor yet. A program that is linked with this has an open() of
 * its own.
 */
#ifndef HCASIM_TESTS_FORK_AT_OPEN_H
#define HCASIM_TESTS_FORK_AT_OPEN_H

#include <stdbool.h>

/* A thread of the test forks when this file is opened the next time. If the fork() waits for the
 * thread that opens the file, open() returns after a moment. */
void fork_at_open_begin(const char *path);

/* Waits for the child's end. Whether the child had the file open. Fails the test if the file was
 * not opened. */
bool fork_at_open_end(void);

#endif
