/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the rdma_cm ABI share. */
#ifndef HCASIM_GUEST_LIB_CM_UCMA_INTERNAL_H
#define HCASIM_GUEST_LIB_CM_UCMA_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "guest-lib/cm/ucma.h"
#include "guest-lib/host/event_queue.h"

#define UCMA_MAX_BACKLOG 1024
/* Flags of the path of a connection: IB_PATH_GMP, _PRIMARY, _BIDIRECTIONAL. */
#define UCMA_PATH_FLAGS (1 | 2 | 8 | 32)

struct ucma {
    pthread_mutex_t lock;
    const struct ucma_ops *ops;
    struct cma_ops cma_ops;
    void *opaque;
    struct cma *cma;
    GHashTable *contexts, *groups; /* by id */
    uint32_t next_context, next_group;
    GQueue refused; /* contexts of requests that were dropped before the program took them */
};

struct ucma_file {
    struct ucma *ucma;
    struct ucma_file *(*file_of)(int fd);
    struct hv_event_queue queue; /* struct ucma_event */
};

/* An identifier, as the program knows it. */
struct ucma_context {
    uint32_t id;
    uint64_t uid;
    struct ucma_file *file;
    struct cma_id *cma;   /* NULL: its device is gone */
    gint backlog;         /* how many more requests may wait */
    gint events_reported; /* events that the program has taken */
    GPtrArray *groups;    /* struct ucma_group */
};

/* A multicast group that an identifier is in. */
struct ucma_group {
    uint32_t id;
    uint64_t uid;
    struct ucma_context *context;
    gint events_reported;
};

struct ucma_event {
    struct ucma_context *context; /* the context that counts the event */
    struct ucma_context *request; /* of a connection request: the new context */
    struct ucma_group *group;     /* or NULL */
    struct rdma_ucm_event_resp resp;
};

/* A command while it runs: input and output in the ABI's layouts. */
struct ucma_call {
    struct ucma *ucma;
    struct ucma_file *file;
    struct ucma_context *context; /* the context that the command names */
    const void *in;
    size_t in_len;
    void *out; /* zeroed, out_size of the command's row */
    size_t out_room, out_len;
};
typedef int ucma_command(struct ucma_call *call);

/* Puts an event into the queue of the context's file. */
void ucma_put_event(struct ucma_context *context, struct ucma_context *request,
                    struct ucma_group *group, const struct rdma_ucm_event_resp *resp);
/* NULL with *err: ENOENT: there is no such context; EINVAL: it belongs to another file. */
struct ucma_context *ucma_find(struct ucma_file *file, uint32_t id, int *err);
struct ucma_context *ucma_new_context(struct ucma_file *file, uint64_t uid);
/* Frees a context. Returns how many of its events the program has taken. */
uint32_t ucma_free_context(struct ucma_context *context);
struct ucma_group *ucma_new_group(struct ucma_context *context, uint64_t uid);
uint32_t ucma_free_group(struct ucma_group *group);
void ucma_move_context(struct ucma_context *context, struct ucma_file *file);

/* -- ucma_cmd.c, ucma_query.c ------------------------------------------------------------------ */

ucma_command ucma_create_id, ucma_destroy_id, ucma_bind_ip, ucma_resolve_ip, ucma_resolve_route,
    ucma_connect, ucma_listen, ucma_accept, ucma_reject, ucma_disconnect, ucma_init_qp_attr,
    ucma_set_option, ucma_notify, ucma_join_ip_mcast, ucma_leave_mcast, ucma_migrate_id, ucma_bind,
    ucma_resolve_addr, ucma_join_mcast;
ucma_command ucma_query_route, ucma_query;

#endif
