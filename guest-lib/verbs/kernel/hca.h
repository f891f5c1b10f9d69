/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's HCA, as the kernel half knows it. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H

#include "guest-lib/host/control.h"
#include "guest-lib/host/local.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/refuse.h"
#include "guest-lib/verbs/verbs.h"

struct hv_hca {
    struct local_hca *local;
    struct drv *drv;
    struct hv_device *device;
    GPtrArray
        *doorbell_pages;      /* of programs that own rings (watch.c); under the local HCA's lock */
    unsigned doorbell_looks;  /* under the local HCA's lock, too */
    pthread_mutex_t cmd_lock; /* around the driver: commands and its EQs */
    /* vectors with an interrupt; the thread that releases cmd_lock polls their EQs */
    guint eqs_pending;
    gint key_variant;         /* variant of the key that was made last */
    gint removed;             /* hv_is_removed() */
    pthread_mutex_t reg_lock; /* around the members below */
    GHashTable *numbers;      /* registry of objects that events are about (numbers.c) */
    GPtrArray *contexts;      /* struct hv_context that are open */
    GPtrArray *event_files;   /* struct hv_event_file */
    struct hv_context *kept;  /* closed contexts with objects left */
    /* a closed file left objects, through which threads may still call */
    bool left_behind;
    struct hv_gsi *gsi;        /* queue pair 1, or NULL: it is not open */
    pthread_mutex_t xrcd_lock; /* around xrcds, and the xrcdn of contexts */
    GPtrArray *xrcds;          /* struct hv_xrcd_inode */
    pthread_mutex_t flow_lock; /* around flow_tables and sniffers */
    struct hv_flow_table *flow_tables[PRM_FLOW_TABLE_TYPE_RDMA_TX + 1]; /* NULL: has no flow */
    struct hv_sniffers *sniffers; /* NULL: there are none (flow_sniffer.c) */
    pthread_mutex_t rate_lock;    /* around rates */
    struct hv_rate_entry *rates;  /* of packet pacing; NULL: none was set yet (rate.c) */
    pthread_mutex_t devx_lock;    /* around subscriptions */
    GPtrArray *subscriptions;     /* of DevX event channels (devx_event.c) */
    struct odp *odp;              /* NULL: no on-demand paging yet (odp.c) */
    gint devx_queues;             /* a program made a queue by DevX (odp.c) */
    gint delays_drop;             /* the timeout of delayed drop is set (wq.c) */
    struct hv_said said;          /* lines of the log that explain refused verbs */
    bool explains;                /* error completions are explained when they are polled */
    struct host_control *control; /* its control socket, or NULL */
    struct hv_hca *next_kept;     /* list of closed HCAs with objects left behind */
};

#endif
