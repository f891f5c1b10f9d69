/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rdma_cm ABI (rdma/rdma_user_cm.h): what a program writes to /dev/infiniband/rdma_cm, answered
 * as the kernel's rdma_ucm does. A file is a descriptor that is readable while an event waits.
 *
 *   ucma.c        files, contexts, events, the command table
 *   ucma_cmd.c    commands
 *   ucma_query.c  those that ask
 */
#ifndef HCASIM_GUEST_LIB_CM_UCMA_H
#define HCASIM_GUEST_LIB_CM_UCMA_H

#include <sys/types.h>
#include <time.h>
#include "guest-lib/cm/cma.h"

struct ucma;
struct ucma_file;

struct ucma_ops {
    struct cm_ops cm;
    /* A timer may be due earlier than before. With the lock held. */
    void (*changed)(void *opaque);
    /* Ports below 1024 are the program's to take. */
    bool (*has_low_ports)(void *opaque);
    /* As in struct cma_ops. */
    int (*find)(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16]);
};

struct ucma *ucma_new(const struct ucma_ops *ops, void *opaque, const struct cma_device *devices,
                      unsigned num_devices);
/* All files are closed. */
void ucma_free(struct ucma *ucma);
/* The program ends: so do its identifiers. Its files stay. False: somebody is in a command for
 * longer than until (CLOCK_REALTIME). */
bool ucma_end(struct ucma *ucma, const struct timespec *until);

/* Around what the connection manager does between commands (cm_recv(), and what follows). */
struct cm *ucma_lock(struct ucma *ucma);
void ucma_unlock(struct ucma *ucma);
/* cma_run() and cma_deadline_ns(), with the lock held. */
void ucma_run(struct ucma *ucma, bool answered);
uint64_t ucma_deadline_ns(const struct ucma *ucma);

/* A device is gone: who is bound to it is told (RDMA_CM_EVENT_DEVICE_REMOVAL), and has an
 * identifier that can be destroyed and does nothing else (ENXIO). Once, with the lock held. */
void ucma_remove_device(struct ucma *ucma, unsigned device);

/* NULL with errno. file_of tells the file of a descriptor, or NULL. */
struct ucma_file *ucma_open(struct ucma *ucma, struct ucma_file *(*file_of)(int fd));
/* What ucma_new() was given. */
void *ucma_opaque(const struct ucma_file *file);
/* Readable while an event waits; O_NONBLOCK counts. It stays the file's. */
int ucma_fd(const struct ucma_file *file);
/* As write(2): the handler of a signal that comes during a command runs once that is done. */
ssize_t ucma_write(struct ucma_file *file, const void *buf, size_t len);
/* The last descriptor of it is gone, and nobody is in ucma_write() any more. */
void ucma_close(struct ucma_file *file);

#endif
