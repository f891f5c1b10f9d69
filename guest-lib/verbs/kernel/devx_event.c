/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DevX: channels. A command channel carries the outputs of asynchronous queries. An event channel
 * carries the HCA's events about objects that it is subscribed to.
 *
 * Both are a queue of messages with a file descriptor (event_queue.h). Rules and errnos are those
 * of the kernel's driver (mlx5_ib's devx.c). A query runs at once: its output is available when
 * mlx5dv_devx_obj_query_async() returns.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/devx_cmd.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"

#define MIN_LEN 16u

/* -- messages ---------------------------------------------------------------------------------- */

/* The buffer for a message. */
struct reader {
    void *buf;
    size_t len;
    int too_long; /* the errno if the message does not fit */
};

/* Copies the message if it fits; otherwise leaves it in the queue. */
static bool devx_fits(void *message, void *opaque)
{
    struct reader *reader = opaque;
    size_t size = g_bytes_get_size(message);

    if (size > reader->len) {
        errno = reader->too_long;
        return false;
    }
    memcpy(reader->buf, g_bytes_get_data(message, NULL), size);
    reader->len = size;
    return true;
}

/* Takes a message; waits for one unless the descriptor is O_NONBLOCK. Returns its length; -1 with
 * errno: there is none, or too_long. */
static ssize_t devx_queue_get(struct hv_event_queue *queue, void *buf, size_t len, int too_long)
{
    struct reader reader = {buf, len, too_long};
    GBytes *message = hv_event_take(queue, devx_fits, &reader);

    if (!message) {
        return -1;
    }
    g_bytes_unref(message);
    return (ssize_t)reader.len;
}

static void devx_free_message(void *message)
{
    g_bytes_unref(message);
}

/* -- asynchronous queries ---------------------------------------------------------------------- */

struct mlx5dv_devx_cmd_comp *hv_dv_devx_create_cmd_comp(struct ibv_context *ctx)
{
    struct hv_dv_cmd_comp *comp = g_new0(struct hv_dv_cmd_comp, 1);
    int err = hv_event_file_open(ctx, &comp->file, devx_free_message);

    if (err) {
        g_free(comp);
        errno = err;
        return NULL;
    }
    comp->context = ctx;
    comp->dv.fd = comp->file.queue.fd;
    return &comp->dv;
}

void hv_dv_devx_destroy_cmd_comp(struct mlx5dv_devx_cmd_comp *dv)
{
    struct hv_dv_cmd_comp *comp = DV_CONTAINER(dv, struct hv_dv_cmd_comp);

    hv_event_file_close(&comp->file);
    g_free(comp);
}

int hv_dv_devx_obj_query_async(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen,
                               size_t outlen, uint64_t wr_id, struct mlx5dv_devx_cmd_comp *dv)
{
    struct hv_dv_cmd_comp *comp = DV_CONTAINER(dv, struct hv_dv_cmd_comp);
    struct mlx5dv_devx_async_cmd_hdr *message;
    int err;

    if (outlen < MIN_LEN || outlen > UINT16_MAX) {
        return EINVAL;
    }
    message = g_malloc0(sizeof(*message) + outlen);
    message->wr_id = wr_id;
    err = hv_dv_devx_obj_query(obj, in, inlen, message->out_data, outlen);
    if (err && err != EREMOTEIO) {
        g_free(message);
        return err;
    }
    hv_event_put(&comp->file.queue, g_bytes_new_take(message, sizeof(*message) + outlen));
    return 0;
}

int hv_dv_devx_get_async_cmd_comp(struct mlx5dv_devx_cmd_comp *dv,
                                  struct mlx5dv_devx_async_cmd_hdr *resp, size_t len)
{
    struct hv_dv_cmd_comp *comp = DV_CONTAINER(dv, struct hv_dv_cmd_comp);

    return devx_queue_get(&comp->file.queue, resp, len, ENOSPC) < 0 ? errno : 0;
}

/* -- events ------------------------------------------------------------------------------------ */

/* A duplicate of a program's eventfd, which is signalled. It belongs to this library. */
struct listener {
    gint refs;
    int fd;
};

struct subscription {
    struct hv_dv_event_channel *channel;
    const struct mlx5dv_devx_obj *obj; /* NULL: events that are about no object */
    uint16_t event;
    uint8_t queue_type; /* the type in matching EQEs */
    uint64_t cookie;
    struct listener *listener; /* gets the events instead of the channel; or NULL */
    bool waits;                /* the channel already has an event without data */
};

static void devx_listener_unref(struct listener *listener)
{
    if (listener && g_atomic_int_dec_and_test(&listener->refs)) {
        close(listener->fd);
        g_free(listener);
    }
}

static void devx_event_subscription_free(struct subscription *sub)
{
    devx_listener_unref(sub->listener);
    g_free(sub);
}

/* As eventfd_ctx_fdget(): 0 or errno. Without /proc, any descriptor that is not a file of the usual
 * kinds is accepted. */
static int devx_check_eventfd(int fd)
{
    char path[32], name[32] = "";
    struct stat st;

    if (fstat(fd, &st)) {
        return EBADF;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) < 0 && errno == ENOENT) {
        return st.st_mode & S_IFMT ? EINVAL : 0;
    }
    return strcmp(name, "anon_inode:[eventfd]") ? EINVAL : 0;
}

/* NULL with *err. */
static struct listener *devx_listener_new(int fd, int *err)
{
    struct listener *listener;
    int own;

    *err = devx_check_eventfd(fd);
    own = *err ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        *err = *err ? *err : errno;
        return NULL;
    }
    listener = g_new0(struct listener, 1);
    *listener = (struct listener){1, own};
    return listener;
}

/* eventfd_signal() never waits: if the counter of the eventfd is full, nothing is added. */
static void devx_listener_tell(struct listener *listener)
{
    struct pollfd room = {.fd = listener->fd, .events = POLLOUT};
    uint64_t one = 1;

    if (poll(&room, 1, 0) == 1 && room.revents & POLLOUT &&
        write(listener->fd, &one, sizeof(one)) != sizeof(one) && errno != EAGAIN) {
        g_warning("a DevX subscriber's eventfd: %s", g_strerror(errno));
    }
}

struct mlx5dv_devx_event_channel *
hv_dv_devx_create_event_channel(struct ibv_context *ctx,
                                enum mlx5dv_devx_create_event_channel_flags flags)
{
    struct hv_dv_event_channel *channel;
    int err;

    if ((unsigned)flags & ~(unsigned)MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA) {
        errno = EINVAL;
        return NULL;
    }
    channel = g_new0(struct hv_dv_event_channel, 1);
    err = hv_event_file_open(ctx, &channel->file, devx_free_message);
    if (err) {
        g_free(channel);
        errno = err;
        return NULL;
    }
    channel->context = ctx;
    channel->omit_data = flags & MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA;
    channel->dv.fd = channel->file.queue.fd;
    return &channel->dv;
}

/* Removes the subscriptions of a channel, to an object, or of all channels of a file. */
static void devx_unsubscribe(struct hv_hca *hca, const struct hv_dv_event_channel *channel,
                             const struct mlx5dv_devx_obj *obj, const struct hv_file *file)
{
    pthread_mutex_lock(&hca->devx_lock);
    for (guint i = hca->subscriptions->len; i-- > 0;) {
        struct subscription *sub = hca->subscriptions->pdata[i];

        if (sub->channel == channel || (obj && sub->obj == obj) ||
            sub->channel->file.file == file) {
            g_ptr_array_remove_index(hca->subscriptions, i);
            devx_event_subscription_free(sub);
        }
    }
    pthread_mutex_unlock(&hca->devx_lock);
}

/* If the channel's file is closed, its subscriptions were removed with the file. */
void hv_dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *dv)
{
    struct hv_dv_event_channel *channel = DV_CONTAINER(dv, struct hv_dv_event_channel);

    struct hv_hca *hca = __atomic_load_n(&channel->file.hca, __ATOMIC_ACQUIRE);

    if (hca && hv_is_ours(hca)) {
        devx_unsubscribe(hca, channel, NULL, NULL);
    }
    hv_event_file_close(&channel->file);
    g_free(channel);
}

void hv_dv_unsubscribe_obj(struct mlx5dv_devx_obj *obj)
{
    devx_unsubscribe(hv_hca_of(obj->context), NULL, obj, NULL);
}

void hv_dv_unsubscribe_file(struct hv_hca *hca, const struct hv_file *file)
{
    devx_unsubscribe(hca, NULL, NULL, file);
}

/* Whether the device offers the event to users, about an object (affiliated) or about none. */
static bool devx_is_offered(struct ibv_context *ctx, uint16_t event, bool affiliated)
{
    const struct prm_device_event_cap *cap = hv_drv(hv_hca_of(ctx))->event_cap;

    if (event > 255) {
        return false;
    }
    if (affiliated && event == PRM_EVENT_TYPE_COMP) {
        return true;
    }
    return (affiliated ? PRM_GET_AT(device_event_cap, cap, user_affiliated_events, event / 64)
                       : PRM_GET_AT(device_event_cap, cap, user_unaffiliated_events, event / 64)) >>
               (event % 64) &
           1;
}

/* The type in EQEs about such an object (enum of struct qp_events). */
static uint8_t devx_queue_type_of(const struct prm_object *object)
{
    return object == PRM_OBJECT(RQ) || object == PRM_OBJECT(RMP) ? 1
           : object == PRM_OBJECT(SQ)                            ? 2
                                                                 : 0;
}

#define MAX_EVENTS 16

static int devx_subscribe(struct mlx5dv_devx_event_channel *dv, const struct mlx5dv_devx_obj *obj,
                          const uint16_t *events, size_t num, uint64_t cookie, bool is_fd, int fd)
{
    struct hv_dv_event_channel *channel = DV_CONTAINER(dv, struct hv_dv_event_channel);
    struct hv_hca *hca = hv_hca_of(channel->context);
    struct subscription *made[MAX_EVENTS];

    if (!hv_is_ours(hca) || hv_is_removed(hca)) {
        return EIO;
    }
    if (num > MAX_EVENTS) {
        return EINVAL;
    }
    for (size_t i = 0; i < num; i++) {
        if (!devx_is_offered(channel->context, events[i], obj != NULL)) {
            return EINVAL;
        }
    }
    for (size_t i = 0; i < num; i++) {
        int err = 0;
        struct listener *listener = is_fd ? devx_listener_new(fd, &err) : NULL;

        if (err) {
            while (i-- > 0) {
                devx_event_subscription_free(made[i]);
            }
            return err;
        }
        made[i] = g_new0(struct subscription, 1);
        *made[i] = (struct subscription){.channel = channel,
                                         .obj = obj,
                                         .event = events[i],
                                         .queue_type = obj ? devx_queue_type_of(obj->object) : 0,
                                         .cookie = cookie,
                                         .listener = listener};
    }
    pthread_mutex_lock(&hca->devx_lock);
    for (size_t i = 0; i < num; i++) {
        g_ptr_array_add(hca->subscriptions, made[i]);
    }
    pthread_mutex_unlock(&hca->devx_lock);
    return 0;
}

int hv_dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *channel,
                                    struct mlx5dv_devx_obj *obj, uint16_t events_sz,
                                    uint16_t events_num[], uint64_t cookie)
{
    if (events_sz % sizeof(events_num[0])) {
        return EINVAL;
    }
    return hv_kernel(devx_subscribe(channel, obj, events_num, events_sz / sizeof(events_num[0]),
                                    cookie, false, -1));
}

int hv_dv_devx_subscribe_devx_event_fd(struct mlx5dv_devx_event_channel *channel, int fd,
                                       struct mlx5dv_devx_obj *obj, uint16_t event_num)
{
    return hv_kernel(devx_subscribe(channel, obj, &event_num, 1, 0, true, fd));
}

/* Whether the event is about a queue whose kind is in its EQE. */
static bool devx_names_queue_type(uint8_t event)
{
    switch (event) {
    case PRM_EVENT_TYPE_WQ_CATAS_ERROR:
    case PRM_EVENT_TYPE_WQ_ACCESS_ERROR:
    case PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR:
    case PRM_EVENT_TYPE_SRQ_LAST_WQE:
    case PRM_EVENT_TYPE_COMM_EST:
    case PRM_EVENT_TYPE_SQ_DRAINED:
    case PRM_EVENT_TYPE_SRQ_RQ_LIMIT:
    case PRM_EVENT_TYPE_SRQ_CATAS_ERROR:
        return true;
    default:
        return false;
    }
}

/* Delivers an event to a subscription. Listeners are only added to *told, because they are
 * signalled when no lock is held. */
static void devx_deliver(struct subscription *sub, const struct drv_event *event, GPtrArray **told)
{
    struct mlx5dv_devx_async_event_hdr *message;
    size_t size = sizeof(*message);

    if (sub->listener) {
        *told = *told ? *told : g_ptr_array_new();
        g_atomic_int_inc(&sub->listener->refs);
        g_ptr_array_add(*told, sub->listener);
        return;
    }
    if (sub->channel->omit_data) {
        if (sub->waits) {
            return;
        }
        sub->waits = true;
    } else {
        size += PRM_SIZE(eqe);
    }
    message = g_malloc0(size);
    message->cookie = sub->cookie;
    if (!sub->channel->omit_data) {
        struct prm_eqe *eqe = (void *)message->out_data;

        PRM_SET(eqe, eqe, event_type, event->type);
        PRM_SET(eqe, eqe, event_sub_type, event->sub_type);
        memcpy(PRM_PTR(eqe, eqe, event_data), event->data.bytes, sizeof(event->data.bytes));
    }
    hv_event_put(&sub->channel->file.queue, g_bytes_new_take(message, size));
}

void hv_dv_event(struct hv_hca *hca, const struct drv_event *event)
{
    GPtrArray *told = NULL;

    pthread_mutex_lock(&hca->devx_lock);
    for (guint i = 0; i < hca->subscriptions->len; i++) {
        struct subscription *sub = hca->subscriptions->pdata[i];

        if (sub->event == event->type && (!sub->obj || sub->obj->id == event->num) &&
            (!sub->obj || !devx_names_queue_type(event->type) ||
             PRM_GET(qp_events, event->data.queue, type) == sub->queue_type)) {
            devx_deliver(sub, event, &told);
        }
    }
    pthread_mutex_unlock(&hca->devx_lock);
    for (guint i = 0; told && i < told->len; i++) {
        devx_listener_tell(told->pdata[i]);
        devx_listener_unref(told->pdata[i]);
    }
    if (told) {
        g_ptr_array_free(told, TRUE);
    }
}

ssize_t hv_dv_devx_get_event(struct mlx5dv_devx_event_channel *dv,
                             struct mlx5dv_devx_async_event_hdr *data, size_t len)
{
    struct hv_dv_event_channel *channel = DV_CONTAINER(dv, struct hv_dv_event_channel);
    ssize_t got = devx_queue_get(&channel->file.queue, data, len, EINVAL);

    if (got >= 0 && channel->omit_data) {
        struct hv_hca *hca = hv_hca_of(channel->context);

        pthread_mutex_lock(&hca->devx_lock);
        for (guint i = 0; i < hca->subscriptions->len; i++) {
            struct subscription *sub = hca->subscriptions->pdata[i];

            if (sub->channel == channel && sub->cookie == data->cookie) {
                sub->waits = false;
            }
        }
        pthread_mutex_unlock(&hca->devx_lock);
    }
    return got;
}
