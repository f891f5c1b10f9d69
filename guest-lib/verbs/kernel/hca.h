/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's HCA as the kernel half knows it. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_HCA_H

#include "guest-lib/host/local.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/verbs.h"

struct hv_hca {
    struct local_hca *local;
    struct drv *drv;
    struct hv_device *device;
    GPtrArray
        *doorbell_pages;      /* of programs that own rings (watch.c); under the local HCA's lock */
    unsigned doorbell_looks;  /* likewise */
    pthread_mutex_t cmd_lock; /* the driver's: commands and its EQs */
    guint eqs_pending; /* vectors whose interrupt came; who gives cmd_lock back sees to their EQs */
    gint key_variant;  /* of the key made last */
    gint removed;      /* hv_is_removed() */
    pthread_mutex_t reg_lock;  /* what follows */
    GHashTable *numbers;       /* of objects that events are about (numbers.c) */
    GPtrArray *contexts;       /* struct hv_context: the open ones */
    GPtrArray *event_files;    /* struct hv_event_file */
    struct hv_context *kept;   /* closed, with objects left */
    bool left_behind;          /* objects of a closed file, with which threads may come here */
    struct hv_gsi *gsi;        /* or NULL: queue pair 1 is nobody's */
    pthread_mutex_t xrcd_lock; /* around xrcds, and the xrcdn of contexts */
    GPtrArray *xrcds;          /* struct hv_xrcd_inode */
    pthread_mutex_t flow_lock; /* around flow_table and sniffers */
    struct hv_flow_table *flow_table; /* or NULL: there are no flows */
    struct hv_sniffers *sniffers;     /* likewise (flow_sniffer.c) */
    pthread_mutex_t devx_lock;        /* around subscriptions */
    GPtrArray *subscriptions;         /* of DevX's channels (devx_event.c) */
    struct hv_hca *next_kept;         /* closed, with objects left behind */
};

#endif
