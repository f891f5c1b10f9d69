/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /dev/infiniband/rdma_cm of a process: what libhcasim.so (interpose.c) calls when a program
 * opens it. It finds these by a device, so that libibverbs.so.1 exports nothing of its own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_CM_DOOR_H
#define HCASIM_GUEST_LIB_VERBS_CM_DOOR_H

#include <sys/types.h>

struct ucma_file;

struct hv_cm_ops {
    /* A file, and a descriptor of it in *fd, from `least` on if such are to be had; flags as
     * open(2)'s. NULL with errno. file_of tells the file of a descriptor, or NULL. */
    struct ucma_file *(*open)(struct ucma_file *(*file_of)(int fd), int flags, int least, int *fd);
    ssize_t (*write)(struct ucma_file *file, const void *buf, size_t len);
    /* Its last descriptor is gone. */
    void (*close)(struct ucma_file *file);
};
extern const struct hv_cm_ops hv_cm_ops;

#endif
