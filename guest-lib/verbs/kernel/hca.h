/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's HCA as hca.c, events.c, device.c and query.c know it. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H

#include "guest-lib/host/local.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/verbs.h"

struct hv_hca {
    struct local_hca *local;
    struct drv *drv;
    struct hv_device *device;
    pthread_mutex_t cmd_lock;           /* the driver's: commands and its EQ */
    gint eq_pending;                    /* an interrupt came; who gives cmd_lock back sees to it */
    pthread_mutex_t reg_lock;           /* what follows */
    GHashTable *cqs, *qps, *srqs, *wqs; /* number -> object */
    GPtrArray *contexts;                /* struct hv_context */
};

/* Brings a device's HCA up. NULL with *err. */
struct hv_hca *hv_hca_open(struct hv_device *device, const struct hv_port_config *config,
                           GError **err);
void hv_hca_close(struct hv_hca *hca);

/* events.c: takes the events of the driver's EQ to whom they concern. */
void hv_events_dispatch(struct hv_hca *hca, const struct drv_event *event);
/* A context's asynchronous events: 0 or errno. */
int hv_async_open(struct hv_context *ctx);
void hv_async_close(struct hv_context *ctx);

#endif
