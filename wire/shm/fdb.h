/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segment's table of Ethernet addresses (a switch's forwarding database): it tells which member
 * owns an address.
 *
 * The hash of an address names SHM_FDB_WINDOW places, and the address has one of them. A place is
 * one word, so it is always read whole: the address, and the id of the member that used it last. A
 * place whose member is not attached is free. Each member remembers its places, at most SHM_MACS;
 * the next member with its id frees them. If a window is full, which is rare with so many places,
 * one of its addresses is forgotten: frames to it go to all members until it is used again.
 */
#ifndef HCASIM_WIRE_SHM_FDB_H
#define HCASIM_WIRE_SHM_FDB_H

#include "wire/shm/segment.h"

enum {
    SHM_FDB_WINDOW = 16, /* two cache lines */
};

/* The member that owns mac. SHM_MEMBERS: no attached member owns it. */
unsigned shm_fdb_find(const struct shm_segment *seg, uint64_t mac);

/* Makes this member the owner of mac, which is not 0. */
void shm_fdb_learn(struct shm_segment *seg, uint64_t mac);

/* Frees the places that the members with this member's id have owned. */
void shm_fdb_forget(struct shm_segment *seg);

#endif
