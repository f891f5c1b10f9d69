/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that a child of fork() does not keep.
 *
 * A socket stays connected, and a lock of an open file stays held, as long as one process has it
 * open. A child that lives on after its parent would stand for a host that has ended. So each child
 * closes its copies.
 *
 * Other locks may be held during a call; no other lock is taken inside.
 */
#ifndef HCASIM_WIRE_OWN_FD_H
#define HCASIM_WIRE_OWN_FD_H

#include <stdbool.h>
#include <sys/types.h>

struct own_fd {
    int fd; /* -1: none */
    dev_t dev;
    ino_t ino;
    struct own_fd *next;
};

/* No fork() happens between these two calls, in which a descriptor is made and listed. The caller
 * must not wait meanwhile, since a fork() would wait with it. */
void own_fd_lock(void);
void own_fd_unlock(void);

/* Lists a descriptor, under the lock. own->fd must be -1 before. */
void own_fd_set(struct own_fd *own, int fd);

/* Whether the descriptor is still that file. A program that closes all descriptors that it does not
 * know may have another file at this number. */
bool own_fd_is_there(const struct own_fd *own);

/* Closes the descriptor, if there is one, without the lock. */
void own_fd_close(struct own_fd *own);

/* Takes a descriptor off the list, under the lock; another library closes it. */
void own_fd_forget(struct own_fd *own);

#endif
