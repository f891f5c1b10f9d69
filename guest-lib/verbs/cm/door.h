/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls behind a process's /dev/infiniband/rdma_cm: libhcasim.so (interpose.c) makes them when
 * a program opens that file. It finds the table through a device, so that libibverbs.so.1 exports
 * no symbol of its own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_CM_DOOR_H
#define HCASIM_GUEST_LIB_VERBS_CM_DOOR_H

#include <sys/types.h>

struct ucma_file;

struct hv_cm_ops {
    /* Opens a file, and stores a descriptor of it in *fd, numbered `least` or higher if such a
     * number is free; flags as for open(2). NULL with errno. file_of returns the file of a
     * descriptor, or NULL. */
    struct ucma_file *(*open)(struct ucma_file *(*file_of)(int fd), int flags, int least, int *fd);
    ssize_t (*write)(struct ucma_file *file, const void *buf, size_t len);
    /* The file's last descriptor is closed. */
    void (*close)(struct ucma_file *file);
};
extern const struct hv_cm_ops hv_cm_ops;

#endif
