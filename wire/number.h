/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The head of a number on a wire (wire/open.h). What holds a number depends on the kind of wire: a
 * lock of a segment (shm/number.c), or nothing where the other hosts are not known.
 */
#ifndef HCASIM_WIRE_NUMBER_H
#define HCASIM_WIRE_NUMBER_H

#include "wire/open.h"

#include <sys/types.h>

struct wire_number {
    unsigned number;
    pid_t pid; /* the process that owns it; a child of fork() has only a copy of this structure */
    /* What holds the number, in the owner. NULL: nothing does, so it cannot be lost. */
    bool (*is_held)(const struct wire_number *number);
    /* Frees the structure, and gives the number back if is_owner. NULL: g_free(). */
    void (*end)(struct wire_number *number, bool is_owner);
};

/* A number that was chosen and that nothing holds. */
struct wire_number *wire_number_unheld(unsigned number);

#endif
