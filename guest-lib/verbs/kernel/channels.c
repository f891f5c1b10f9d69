/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels: the descriptors beside a context's own from which a program reads events (completion
 * channels, those of DevX). They are known here, so that they are closed when their device is
 * removed. One may outlive its context, which a program is free to close first.
 */
#include "guest-lib/host/event_queue.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/kernel.h"

struct channel {
    struct hv_hca *hca;
    struct hv_event_queue *queue;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before those of the queues */
static GPtrArray *channels;

int hv_channel_open(struct hv_hca *hca, struct hv_event_queue *queue, GDestroyNotify free_event)
{
    int err;

    pthread_mutex_lock(&lock);
    err = hv_check_there(hca);
    err = err ? err : hv_event_queue_init(queue, free_event);
    if (!err) {
        struct channel *channel = g_new0(struct channel, 1);

        *channel = (struct channel){hca, queue};
        if (!channels) {
            channels = g_ptr_array_new_with_free_func(g_free);
        }
        g_ptr_array_add(channels, channel);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

void hv_channel_close(struct hv_event_queue *queue)
{
    pthread_mutex_lock(&lock);
    for (guint i = 0; i < channels->len; i++) {
        if (((struct channel *)channels->pdata[i])->queue == queue) {
            g_ptr_array_remove_index_fast(channels, i);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    hv_event_queue_fini(queue);
}

void hv_channels_removed(const struct hv_hca *hca)
{
    pthread_mutex_lock(&lock);
    for (guint i = 0; channels && i < channels->len; i++) {
        const struct channel *channel = channels->pdata[i];

        if (channel->hca == hca) {
            hv_event_queue_close(channel->queue);
        }
    }
    pthread_mutex_unlock(&lock);
}
