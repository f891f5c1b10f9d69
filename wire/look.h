/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at wires from outside: lists the wires, the hosts that live on them, and the files that
 * dead hosts have left.
 *
 * Looking joins nothing, takes no lock, writes nothing and does not wait. The hosts do not
 * notice it. The result is true for the moment only: a host may join or end meanwhile. So no caller
 * may remove a file because of it; wire_sweep() and wire_clean() check again, under the locks.
 *
 * A file may have been written by anybody. Whatever it contains, it is described, and nothing in it
 * is trusted.
 */
#ifndef HCASIM_WIRE_LOOK_H
#define HCASIM_WIRE_LOOK_H

#include "wire/open.h"

#include <sys/types.h>

enum wire_condition {
    WIRE_IN_USE,        /* at least one host lives */
    WIRE_LEFT,          /* no host lives on it */
    WIRE_OTHER_VERSION, /* another version of this program made it, and is using it */
    WIRE_FOREIGN,       /* something else */
    WIRE_UNREADABLE,    /* errno says why it could not be read */
};

#define WIRE_PROGRAM_MAX 16 /* what the kernel keeps of a program's name, with the 0 */

/* A member of a wire, or the holder of a number on it. A process is usually both. */
struct wire_tenant {
    unsigned number;                /* of the holder of a number; 0: a member */
    bool alive;                     /* a member that is not alive was killed */
    uint32_t byte;                  /* of the file: the lock on it tells that the tenant lives */
    pid_t pid;                      /* 0: not to be seen from here (another container) */
    char program[WIRE_PROGRAM_MAX]; /* may contain any bytes; empty if pid is 0 */
    unsigned num_macs;              /* source addresses of a member that the wire has learned */
    uint8_t mac[6];                 /* the first of them */
};

struct wire_view {
    char *name; /* as in shm:NAME; for shm:/PATH, the path. May contain any bytes */
    char *path;
    enum wire_condition condition;
    int why;        /* errno of WIRE_UNREADABLE */
    uint64_t bytes; /* memory that the file takes */
    int64_t made;   /* when the segment was made, in seconds since 1970 */
    struct wire_tenant *tenants;
    unsigned num_tenants;
};

/* The wires of this user, by name. Free the array with g_ptr_array_unref(). */
GPtrArray *wire_look_all(void);

/* The same for one wire, which is added to `views`. False with *err: the URI has no known form, or
 * there is no such wire. */
bool wire_look(const char *uri, GPtrArray *views, GError **err);

/* An array for wire_look(). */
GPtrArray *wire_views_new(void);

#endif
