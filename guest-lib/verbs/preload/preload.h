/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of libhcasim.so share. It is in every process that `hcasim run` starts, whether
 * that has to do with verbs or not; so it needs the C library alone, what it stands before costs
 * others a comparison, and nothing happens until a program asks for something of the HCA's.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_PRELOAD_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_PRELOAD_H

#include <limits.h>
#include <stdbool.h>
#include "guest-lib/verbs/facts.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))
/* What only those need who mean the HCA: its buffers are not on everybody's stack. */
#define PRELOAD_SLOW __attribute__((noinline, cold))

/* -- self.c ------------------------------------------------------------------------------------ */

/* The path of a file beside this library. False: it is too long. */
bool self_beside(const char *name, char path[PATH_MAX]);
/* The facts, for which libibverbs.so.1 is loaded if it is not there. False: there are none. */
bool self_look(struct hv_facts *facts);
/* The program loads libibverbs.so.1 by hand. */
void self_ask(void);
/* Whether the process has to do with verbs: libibverbs.so.1 is there, or something in it needs it
 * and has not called it yet. */
bool self_is_known(void);
/* hv_beside_ops.is_peer(), if it is there. */
bool self_is_peer(uint32_t ipv4);
/* hv_beside_ops.sigaction(), if it is there. */
bool self_sigaction(int signal, const struct sigaction *action, struct sigaction *old);

/* -- ifaddrs.c --------------------------------------------------------------------------------- */

/* Whether an address is in a subnet of the machine's own interfaces. */
bool ifaddrs_is_machines(uint32_t ipv4);

/* -- sockets.c --------------------------------------------------------------------------------- */

/* Whether the address, in host byte order, is a host's or may become one's, and none that the
 * machine reaches by itself. */
bool sockets_leads_to_host(uint32_t ipv4);

/* -- rsockets.c -------------------------------------------------------------------------------- */

/* The least number that a descriptor of the connection manager may have. */
int rsockets_least_fd(void);

/* -- tree.c ------------------------------------------------------------------------------------ */

/* What would be at the path, if it is one that the HCA has something at, is at the path stored in
 * there. A relative one is of the folder `at`, as openat(2) takes it. False: it is not, or the tree
 * cannot be made. Leaves errno as it was. */
bool tree_find(int at, const char *path, char there[PATH_MAX]);
/* A path in the tree becomes the one that it stands for; others stay. */
void tree_strip(char *path);
/* The part of a path in the tree that is the machine's. */
const char *tree_stands_for(const char *there);

/* Whether a relative path may be one of the HCA's, seen from a folder above: true for few others.
 */
bool tree_may_lead(const char *path);

/* Whether it may be a path of the HCA's: true for few others. A program may pass NULL, though the
 * C library's headers tell the compiler that it does not. */
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
