/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of libhcasim.so share. The library is in every process that `hcasim run` starts,
 * also in processes that do not use verbs. So it needs only the C library, each function that it
 * replaces costs other programs one comparison, and nothing happens until a program asks for
 * something of the HCA.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_PRELOAD_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "guest-lib/verbs/facts.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))
/* For functions that only the HCA's users need: their buffers must not be on every caller's
 * stack. */
#define PRELOAD_SLOW __attribute__((noinline, cold))

/* -- self.c ------------------------------------------------------------------------------------ */

/* The path of a file in this library's folder. False: it is too long. */
bool self_beside(const char *name, char path[PATH_MAX]);
/* Gets the facts; loads libibverbs.so.1 for that if necessary. False: there are none. */
bool self_look(struct hv_facts *facts);
/* To be called when the program loads libibverbs.so.1 with dlopen(). */
void self_ask(void);
/* Whether the process uses verbs: libibverbs.so.1 is loaded, or an object in the process needs it
 * and has not called it yet. */
bool self_is_known(void);
/* Calls hv_beside_ops.is_peer(), if libibverbs.so.1 has set it; otherwise returns false. */
bool self_is_peer(uint32_t ipv4);
/* Calls hv_beside_ops.sigaction(), if libibverbs.so.1 has set it; otherwise returns false. */
bool self_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
/* Calls hv_beside_ops.memory_changed(), if libibverbs.so.1 has set it. */
void self_memory_changed(const void *start, size_t len);

/* -- ifaddrs.c --------------------------------------------------------------------------------- */

/* Whether an address is in a subnet of one of the machine's own interfaces. */
bool ifaddrs_is_machines(uint32_t ipv4);

/* -- sockets.c --------------------------------------------------------------------------------- */

/* Whether the address, in host byte order, belongs to a host of the wire or may become a host's,
 * and the machine does not reach it by itself. */
bool sockets_leads_to_host(uint32_t ipv4);

/* -- rsockets.c -------------------------------------------------------------------------------- */

/* The lowest number that a descriptor of the connection manager may have. */
int rsockets_least_fd(void);

/* -- tree.c ------------------------------------------------------------------------------------ */

/* If the HCA has something at the path, stores in `there` the path of the HCA's file. A relative
 * path is relative to the folder `at`, as in openat(2). False: the HCA has nothing there, or the
 * tree cannot be made. Leaves errno unchanged. */
bool tree_find(int at, const char *path, char there[PATH_MAX]);
/* Changes a path in the tree to the path that it stands for. Leaves other paths unchanged. */
void tree_strip(char *path);
/* The part of a path in the tree that is a path of the machine. */
const char *tree_stands_for(const char *there);

/* Whether a relative path may lead to the HCA from a folder above it. True for few other paths. */
bool tree_may_lead(const char *path);

/* Whether a path may be one of the HCA's. True for few other paths. A program may pass NULL,
 * although the C library's headers tell the compiler that it does not. */
static inline bool tree_may_have(const char *path)
{
    __asm__("" : "+r"(path));
    if (path && path[0] != '/') {
        return tree_may_lead(path);
    }
    return path &&
           (path[1] == 's' ? path[2] == 'y' && path[3] == 's' && path[4] == '/'
                           : path[1] == 'd' && path[2] == 'e' && path[3] == 'v' && path[4] == '/' &&
                                 path[5] == 'i' && path[6] == 'n' && path[7] == 'f');
}

/* -- guest-lib/verbs/cm/interpose.c ------------------------------------------------------------ */

/* Opens /dev/infiniband/rdma_cm. -1 with errno. */
int interpose_open(int flags);

#endif
