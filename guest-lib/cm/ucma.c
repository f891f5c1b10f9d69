/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, contexts, events, and the command table.
 *
 * Locks: that of struct ucma, then that of a file's queue. A thread that waits for an event holds
 * neither.
 */
#include <unistd.h>
#include "guest-lib/cm/ucma_internal.h"
#include "guest-lib/host/memory.h"
#include "wire/cancel.h"
#include "wire/signals.h"

/* -- events -------------------------------------------------------------------------------------
 */

void ucma_put_event(struct ucma_context *context, struct ucma_context *request,
                    struct ucma_group *group, const struct rdma_ucm_event_resp *resp)
{
    struct ucma_event *event = g_new0(struct ucma_event, 1);

    event->context = context;
    event->request = request;
    event->group = group;
    event->resp = *resp;
    event->resp.uid = group ? group->uid : context->uid;
    event->resp.id = group ? group->id : request ? request->id : context->id;
    hv_event_put(&context->file->queue, event);
}

/* For a new identifier, only its request is reported until the program has accepted it. */
static int ucma_on_event(void *opaque, struct cma_id *listener, struct cma_id *id,
                         const struct rdma_ucm_event_resp *resp)
{
    struct ucma_context *context = listener ? listener->context : id->context, *request;

    if (!listener) {
        if (context && context->uid) {
            ucma_put_event(context, NULL, NULL, resp);
        }
        return 0;
    }
    if (g_atomic_int_get(&context->backlog) <= 0) {
        return ENOMEM;
    }
    g_atomic_int_add(&context->backlog, -1);
    request = ucma_new_context(context->file, 0);
    request->cma = id;
    id->context = request;
    ucma_put_event(context, request, NULL, resp);
    return 0;
}

/* Where the program wants an answer. */
struct ucma_answer {
    uint64_t addr;
    size_t len;
};

/* Called with the queue's lock. If the event cannot be written to the program's address, it stays
 * in the queue. */
static bool ucma_take_event(void *opaque, void *arg)
{
    struct ucma_event *event = opaque;
    const struct ucma_answer *to = arg;

    if (!memory_write(to->addr, &event->resp, to->len, NULL)) {
        errno = EFAULT;
        return false;
    }
    if (event->request) {
        g_atomic_int_inc(&event->context->backlog);
    }
    g_atomic_int_inc(&event->context->events_reported);
    if (event->group) {
        g_atomic_int_inc(&event->group->events_reported);
    }
    g_free(event);
    return true;
}

/* Takes the oldest event. Waits for one unless the descriptor is O_NONBLOCK. */
static int ucma_get_event(struct ucma_file *file, const struct rdma_ucm_cmd_hdr *hdr,
                          const void *buf)
{
    struct rdma_ucm_get_event cmd;
    struct ucma_answer to;

    if (hdr->out < offsetof(struct rdma_ucm_event_resp, reserved)) {
        return ENOSPC;
    }
    if (!memory_read((uintptr_t)buf, &cmd, sizeof(cmd), NULL)) {
        return EFAULT;
    }
    to = (struct ucma_answer){cmd.response, MIN(hdr->out, sizeof(struct rdma_ucm_event_resp))};
    return hv_event_take(&file->queue, ucma_take_event, &to) ? 0 : errno;
}

/* -- contexts -----------------------------------------------------------------------------------
 */

struct ucma_context *ucma_find(struct ucma_file *file, uint32_t id, int *err)
{
    struct ucma_context *context = g_hash_table_lookup(file->ucma->contexts, GUINT_TO_POINTER(id));

    *err = !context ? ENOENT : context->file != file ? EINVAL : 0;
    return *err ? NULL : context;
}

/* Finds a free number, beginning with *next. */
static uint32_t ucma_new_number(GHashTable *table, uint32_t *next)
{
    while (g_hash_table_contains(table, GUINT_TO_POINTER(*next))) {
        *next = (*next + 1) & G_MAXINT32;
    }
    return (*next)++;
}

struct ucma_context *ucma_new_context(struct ucma_file *file, uint64_t uid)
{
    struct ucma_context *context = g_new0(struct ucma_context, 1);

    context->id = ucma_new_number(file->ucma->contexts, &file->ucma->next_context);
    context->uid = uid;
    context->file = file;
    context->groups = g_ptr_array_new();
    g_hash_table_insert(file->ucma->contexts, GUINT_TO_POINTER(context->id), context);
    return context;
}

struct ucma_group *ucma_new_group(struct ucma_context *context, uint64_t uid)
{
    struct ucma *ucma = context->file->ucma;
    struct ucma_group *group = g_new0(struct ucma_group, 1);

    group->id = ucma_new_number(ucma->groups, &ucma->next_group);
    group->uid = uid;
    group->context = context;
    g_ptr_array_add(context->groups, group);
    g_hash_table_insert(ucma->groups, GUINT_TO_POINTER(group->id), group);
    return group;
}

static bool ucma_is_group_event(const void *event, const void *group)
{
    return ((const struct ucma_event *)event)->group == group;
}

uint32_t ucma_free_group(struct ucma_group *group)
{
    uint32_t reported;

    hv_event_take_out(&group->context->file->queue, ucma_is_group_event, group, g_free);
    reported = (uint32_t)g_atomic_int_get(&group->events_reported);
    g_hash_table_remove(group->context->file->ucma->groups, GUINT_TO_POINTER(group->id));
    g_ptr_array_remove(group->context->groups, group);
    g_free(group);
    return reported;
}

static bool ucma_is_context_event(const void *event, const void *context)
{
    return ((const struct ucma_event *)event)->context == context;
}

static bool ucma_is_request_event(const void *event, const void *context)
{
    return ((const struct ucma_event *)event)->request == context;
}

/* Called with the queue's lock: notes a request that the program has not taken, which is rejected
 * later. */
static void ucma_drop_event(void *opaque)
{
    struct ucma_event *event = opaque;

    if (event->request) {
        g_queue_push_tail(&event->request->file->ucma->refused, event->request);
    }
    g_free(event);
}

uint32_t ucma_free_context(struct ucma_context *context)
{
    struct ucma *ucma = context->file->ucma;
    struct ucma_context *request;
    uint32_t reported;

    while (context->groups->len) {
        ucma_free_group(context->groups->pdata[0]);
    }
    if (context->cma) {
        cma_destroy_id(context->cma);
    }
    g_hash_table_remove(ucma->contexts, GUINT_TO_POINTER(context->id));
    hv_event_take_out(&context->file->queue, ucma_is_request_event, context, g_free);
    hv_event_take_out(&context->file->queue, ucma_is_context_event, context, ucma_drop_event);
    while ((request = g_queue_pop_head(&ucma->refused))) {
        ucma_free_context(request);
    }
    reported = (uint32_t)g_atomic_int_get(&context->events_reported);
    g_ptr_array_free(context->groups, TRUE);
    g_free(context);
    return reported;
}

static void ucma_move_request(void *opaque, void *file)
{
    struct ucma_event *event = opaque;

    if (event->request) {
        event->request->file = file;
    }
}

/* The context's events move with it, in order. */
void ucma_move_context(struct ucma_context *context, struct ucma_file *file)
{
    hv_event_move(&context->file->queue, &file->queue, ucma_is_context_event, context,
                  ucma_move_request, file);
    context->file = file;
}

/* -- the command table --------------------------------------------------------------------------
 */

/* Names of the ABI's structures without their prefix. */
#define NOT_THERE   UINT16_MAX
#define SIZE(type)  sizeof(struct rdma_ucm_##type)
#define AT(type, f) ((uint16_t)offsetof(struct rdma_ucm_##type, f))
/* QUIET: a command on an identifier, whose input has this type. ANSWERS: a command that also has an
 * answer. */
#define QUIET(fn, type)                                                                            \
    {                                                                                              \
        .run = (fn), .in_size = SIZE(type), .id_at = AT(type, id), .response_at = NOT_THERE        \
    }
#define ANSWERS(fn, type) .run = (fn), .in_size = SIZE(type), .response_at = AT(type, response)
#define MAX_IN            1024
#define MAX_OUT           1024

static const struct ucma_row {
    ucma_command *run;
    uint16_t in_size;
    uint16_t id_at;       /* offset in the input: the identifier that the command is about */
    uint16_t response_at; /* offset in the input: the address for the answer */
    uint16_t out_min;     /* the program must ask for at least this many bytes */
    uint16_t out_size;    /* the whole answer */
} ucma_rows[] = {
    [RDMA_USER_CM_CMD_CREATE_ID] =
        {
            ANSWERS(ucma_create_id, create_id),
            .id_at = NOT_THERE,
            .out_min = SIZE(create_id_resp),
            .out_size = SIZE(create_id_resp),
        },
    [RDMA_USER_CM_CMD_DESTROY_ID] =
        {
            ANSWERS(ucma_destroy_id, destroy_id),
            .id_at = AT(destroy_id, id),
            .out_min = SIZE(destroy_id_resp),
            .out_size = SIZE(destroy_id_resp),
        },
    [RDMA_USER_CM_CMD_BIND_IP] = QUIET(ucma_bind_ip, bind_ip),
    [RDMA_USER_CM_CMD_RESOLVE_IP] = QUIET(ucma_resolve_ip, resolve_ip),
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = QUIET(ucma_resolve_route, resolve_route),
    [RDMA_USER_CM_CMD_QUERY_ROUTE] =
        {
            ANSWERS(ucma_query_route, query),
            .id_at = AT(query, id),
            .out_min = AT(query_route_resp, ibdev_index),
            .out_size = SIZE(query_route_resp),
        },
    [RDMA_USER_CM_CMD_CONNECT] = QUIET(ucma_connect, connect),
    [RDMA_USER_CM_CMD_LISTEN] = QUIET(ucma_listen, listen),
    [RDMA_USER_CM_CMD_ACCEPT] = QUIET(ucma_accept, accept),
    [RDMA_USER_CM_CMD_REJECT] = QUIET(ucma_reject, reject),
    [RDMA_USER_CM_CMD_DISCONNECT] = QUIET(ucma_disconnect, disconnect),
    [RDMA_USER_CM_CMD_INIT_QP_ATTR] =
        {
            ANSWERS(ucma_init_qp_attr, init_qp_attr),
            .id_at = AT(init_qp_attr, id),
            .out_min = sizeof(struct ib_uverbs_qp_attr),
            .out_size = sizeof(struct ib_uverbs_qp_attr),
        },
    [RDMA_USER_CM_CMD_SET_OPTION] = QUIET(ucma_set_option, set_option),
    [RDMA_USER_CM_CMD_NOTIFY] = QUIET(ucma_notify, notify),
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
        {
            ANSWERS(ucma_join_ip_mcast, join_ip_mcast),
            .id_at = AT(join_ip_mcast, id),
            .out_min = SIZE(create_id_resp),
            .out_size = SIZE(create_id_resp),
        },
    [RDMA_USER_CM_CMD_LEAVE_MCAST] =
        {
            ANSWERS(ucma_leave_mcast, destroy_id),
            .id_at = NOT_THERE,
            .out_min = SIZE(destroy_id_resp),
            .out_size = SIZE(destroy_id_resp),
        },
    [RDMA_USER_CM_CMD_MIGRATE_ID] =
        {
            ANSWERS(ucma_migrate_id, migrate_id),
            .id_at = NOT_THERE,
            .out_min = SIZE(migrate_resp),
            .out_size = SIZE(migrate_resp),
        },
    [RDMA_USER_CM_CMD_QUERY] =
        {
            ANSWERS(ucma_query, query),
            .id_at = AT(query, id),
            .out_min = 0,
            .out_size = MAX_OUT,
        },
    [RDMA_USER_CM_CMD_BIND] = QUIET(ucma_bind, bind),
    [RDMA_USER_CM_CMD_RESOLVE_ADDR] = QUIET(ucma_resolve_addr, resolve_addr),
    [RDMA_USER_CM_CMD_JOIN_MCAST] =
        {
            ANSWERS(ucma_join_mcast, join_mcast),
            .id_at = AT(join_mcast, id),
            .out_min = SIZE(create_id_resp),
            .out_size = SIZE(create_id_resp),
        },
};

void ucma_remove_device(struct ucma *ucma, unsigned device)
{
    const struct rdma_ucm_event_resp removal = {.event = CMA_EVENT_DEVICE_REMOVAL};
    struct ucma_context *context;
    GHashTableIter iter;

    cma_remove_device(ucma->cma, device);
    g_hash_table_iter_init(&iter, ucma->contexts);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&context)) {
        struct cma_id *id = context->cma;

        if (id && id->device == device) {
            ucma_on_event(NULL, NULL, id, &removal);
            context->cma = NULL;
            cma_destroy_id(id);
        }
    }
}

/* With the lock held. */
static int ucma_run_command(struct ucma_call *call, const struct ucma_row *row)
{
    uint32_t id;
    int err = 0;

    if (row->id_at != NOT_THERE) {
        memcpy(&id, (const char *)call->in + row->id_at, sizeof(id));
        call->context = ucma_find(call->file, id, &err);
    }
    if (!err && call->context && !call->context->cma && row->run != ucma_destroy_id) {
        err = ENXIO;
    }
    return err ? err : row->run(call);
}

static int ucma_command_of(struct ucma_file *file, const struct ucma_row *row,
                           const struct rdma_ucm_cmd_hdr *hdr, const void *buf)
{
    uint64_t in[MAX_IN / 8] = {0}, out[MAX_OUT / 8] = {0}, response;
    struct ucma_call call = {.ucma = file->ucma,
                             .file = file,
                             .in = in,
                             .in_len = MIN(hdr->in, row->in_size),
                             .out = out,
                             .out_room = hdr->out,
                             .out_len = row->out_size};
    sigset_t signals;
    int err, state;

    if (hdr->out < row->out_min) {
        return ENOSPC;
    }
    if (!memory_read((uintptr_t)buf, in, call.in_len, NULL)) {
        return EFAULT;
    }
    state = cancel_disable();
    signals_hold(&signals);
    pthread_mutex_lock(&file->ucma->lock);
    err = ucma_run_command(&call, row);
    file->ucma->ops->changed(file->ucma->opaque);
    pthread_mutex_unlock(&file->ucma->lock);
    signals_release(&signals);
    cancel_restore(state);
    if (err || row->response_at == NOT_THERE) {
        return err;
    }
    memcpy(&response, (char *)in + row->response_at, sizeof(response));
    return memory_write(response, out, MIN(hdr->out, call.out_len), NULL) ? 0 : EFAULT;
}

ssize_t ucma_write(struct ucma_file *file, const void *buf, size_t len)
{
    struct rdma_ucm_cmd_hdr hdr;
    const void *in = (const char *)buf + sizeof(hdr);
    int err;

    if (len < sizeof(hdr)) {
        err = EINVAL;
    } else if (!memory_read((uintptr_t)buf, &hdr, sizeof(hdr), NULL)) {
        err = EFAULT;
    } else if (hdr.cmd >= G_N_ELEMENTS(ucma_rows) || hdr.in + sizeof(hdr) > len) {
        err = EINVAL;
    } else if (hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
        err = ucma_get_event(file, &hdr, in);
    } else {
        const struct ucma_row *row = &ucma_rows[hdr.cmd];

        err = row->run ? ucma_command_of(file, row, &hdr, in) : ENOSYS;
    }
    if (err) {
        errno = err;
        return -1;
    }
    return (ssize_t)len;
}

/* -- creation and end -------------------------------------------------------------------------- */

struct ucma *ucma_new(const struct ucma_ops *ops, void *opaque, const struct cma_device *devices,
                      unsigned num_devices)
{
    struct ucma *ucma = g_new0(struct ucma, 1);

    memory_catch_faults();
    pthread_mutex_init(&ucma->lock, NULL);
    ucma->ops = ops;
    ucma->opaque = opaque;
    ucma->cma_ops = (struct cma_ops){
        .cm = ops->cm,
        .event = ucma_on_event,
        .has_low_ports = ops->has_low_ports,
        .find = ops->find,
    };
    ucma->contexts = g_hash_table_new(NULL, NULL);
    ucma->groups = g_hash_table_new(NULL, NULL);
    ucma->cma = cma_new(&ucma->cma_ops, opaque, devices, num_devices);
    return ucma;
}

void ucma_free(struct ucma *ucma)
{
    cma_free(ucma->cma);
    g_hash_table_destroy(ucma->contexts);
    g_hash_table_destroy(ucma->groups);
    pthread_mutex_destroy(&ucma->lock);
    g_free(ucma);
}

struct cm *ucma_lock(struct ucma *ucma)
{
    pthread_mutex_lock(&ucma->lock);
    return cma_cm(ucma->cma);
}

void ucma_unlock(struct ucma *ucma)
{
    pthread_mutex_unlock(&ucma->lock);
}

void ucma_run(struct ucma *ucma, bool answered)
{
    cma_run(ucma->cma, answered);
}

uint64_t ucma_deadline_ns(const struct ucma *ucma)
{
    return cma_deadline_ns(ucma->cma);
}

struct ucma_file *ucma_open(struct ucma *ucma, struct ucma_file *(*file_of)(int fd))
{
    struct ucma_file *file = g_new0(struct ucma_file, 1);
    int err = hv_event_queue_init(&file->queue, g_free);

    if (err) {
        g_free(file);
        errno = err;
        return NULL;
    }
    file->queue.holds_signals = true;
    file->ucma = ucma;
    file->file_of = file_of;
    return file;
}

void *ucma_opaque(const struct ucma_file *file)
{
    return file->ucma->opaque;
}

int ucma_fd(const struct ucma_file *file)
{
    return file->queue.fd;
}

static gboolean ucma_is_of(gpointer id, gpointer context, gpointer file)
{
    return ((struct ucma_context *)context)->file == file;
}

/* Freeing one context may free others, so the search starts again each time. */
static void ucma_free_contexts(const struct ucma *ucma, struct ucma_file *file)
{
    struct ucma_context *context;

    while ((context = g_hash_table_find(ucma->contexts, ucma_is_of, file))) {
        ucma_free_context(context);
    }
}

bool ucma_end(struct ucma *ucma, const struct timespec *until)
{
    struct ucma_context *context;
    GHashTableIter iter;

    if (pthread_mutex_timedlock(&ucma->lock, until)) {
        return false;
    }
    g_hash_table_iter_init(&iter, ucma->contexts);
    while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&context)) {
        if (context->cma) {
            cma_destroy_id(context->cma);
            context->cma = NULL;
        }
    }
    ucma_unlock(ucma);
    return true;
}

void ucma_close(struct ucma_file *file)
{
    ucma_lock(file->ucma);
    ucma_free_contexts(file->ucma, file);
    ucma_unlock(file->ucma);
    hv_event_queue_fini(&file->queue);
    g_free(file);
}
