/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rdma_cm ABI (rdma/rdma_user_cm.h): answers the commands that a program writes to
 * /dev/infiniband/rdma_cm, as the kernel's rdma_ucm does. A file has a descriptor that is readable
 * while an event waits.
 *
 *   ucma.c        files, contexts, events, the command table
 *   ucma_cmd.c    commands that change something
 *   ucma_query.c  commands that query
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
    /* A timer may be due earlier than before. Called with the lock held. */
    void (*changed)(void *opaque);
    /* Whether the program may take ports below 1024. */
    bool (*has_low_ports)(void *opaque);
    /* As in struct cma_ops. */
    int (*find)(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16]);
};

struct ucma *ucma_new(const struct ucma_ops *ops, void *opaque, const struct cma_device *devices,
                      unsigned num_devices);
/* To be called when all files are closed. */
void ucma_free(struct ucma *ucma);
/* Ends all identifiers, because the program ends. Its files stay. False: a thread is in a command
 * for longer than until (CLOCK_REALTIME). */
bool ucma_end(struct ucma *ucma, const struct timespec *until);

/* To be called around the connection manager's work between commands (cm_recv(), and what
 * follows). */
struct cm *ucma_lock(struct ucma *ucma);
void ucma_unlock(struct ucma *ucma);
/* cma_run() and cma_deadline_ns(), called with the lock held. */
void ucma_run(struct ucma *ucma, bool answered);
uint64_t ucma_deadline_ns(const struct ucma *ucma);

/* A device is gone. The owner of an identifier that is bound to it gets
 * RDMA_CM_EVENT_DEVICE_REMOVAL. The identifier can then be destroyed; all other commands fail with
 * ENXIO. To be called once, with the lock held. */
void ucma_remove_device(struct ucma *ucma, unsigned device);

/* Opens a file. NULL with errno. file_of returns the file of a descriptor, or NULL. */
struct ucma_file *ucma_open(struct ucma *ucma, struct ucma_file *(*file_of)(int fd));
/* The opaque that was given to ucma_new(). */
void *ucma_opaque(const struct ucma_file *file);
/* A descriptor that is readable while an event waits, and that honours O_NONBLOCK. It belongs to
 * the file. */
int ucma_fd(const struct ucma_file *file);
/* As write(2). If a signal comes during a command, its handler runs after the command. */
ssize_t ucma_write(struct ucma_file *file, const void *buf, size_t len);
/* To be called when the file's last descriptor is closed and no thread is in ucma_write() any
 * more. */
void ucma_close(struct ucma_file *file);

#endif
