/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which member owns an Ethernet address: the segment's table (a switch's forwarding database).
 *
 * An address has its place among SHM_FDB_WINDOW that its hash names. A place is one word, so that
 * it is always whole: the address and the id of the member that used it last. A place of a member
 * that is not attached is free. Each member remembers its places, at most SHM_MACS, and who has its
 * id next frees them. When a window is full, which with so many places it hardly ever is, one of
 * its addresses is forgotten: frames to it go to all, until it is used again.
 */
#ifndef HCASIM_WIRE_SHM_FDB_H
#define HCASIM_WIRE_SHM_FDB_H

#include "wire/shm/segment.h"

enum {
    SHM_FDB_WINDOW = 16, /* two lines */
};

/* The member that owns mac, or SHM_MEMBERS: nobody who is attached. */
unsigned shm_fdb_find(const struct shm_segment *seg, uint64_t mac);

/* Makes this member the owner of mac, which is not 0. */
void shm_fdb_learn(struct shm_segment *seg, uint64_t mac);

/* Frees what this member's id owns. */
void shm_fdb_forget(struct shm_segment *seg);

#endif
