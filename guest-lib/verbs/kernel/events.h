/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events from the EQ on their way to a program: the numbers by which the device names objects, and
 * the queues that a program reads from.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_EVENTS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_EVENTS_H

#include "guest-lib/host/event_queue.h"
#include "guest-lib/verbs/verbs.h"

/* What an asynchronous event is about. */
enum hv_about {
    HV_ABOUT_CQ,
    HV_ABOUT_QP,
    HV_ABOUT_SRQ,
    HV_ABOUT_WQ,
    HV_ABOUT_PORT
};

/* Objects that events can be about are known by number (numbers.c). */
void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_add_wq(struct hv_hca *hca, struct hv_rwq *wq);
void hv_event_del_wq(struct hv_hca *hca, struct hv_rwq *wq);
/* With the registry's lock: a struct hv_cq, hv_qp, hv_srq or hv_rwq, as kind says, or NULL. */
void *hv_number_find(struct hv_hca *hca, enum hv_about kind, uint32_t num);
void hv_number_set(struct hv_hca *hca, enum hv_about kind, uint32_t num, void *obj);
/* No object of a file that closes is known any more, though the device would not destroy it. */
void hv_event_forget_file(struct hv_hca *hca, const struct hv_file *file);

/* Where a CQ's completion events go. */
struct hv_channel {
    struct ibv_comp_channel ibv;
    struct hv_event_file file; /* struct hv_cq */
};

static inline struct hv_channel *hv_channel(struct ibv_comp_channel *channel)
{
    return (struct hv_channel *)channel;
}

/* A channel (channels.c): its queue is closed with the context's file, or when the device is
 * removed. 0 or errno: EIO, it is removed already. */
int hv_event_file_open(struct ibv_context *context, struct hv_event_file *file,
                       GDestroyNotify free_event);
/* Its file may be closed already. */
void hv_event_file_close(struct hv_event_file *file);
/* All of a file that closes; all of a device that is removed. */
void hv_event_files_end(struct hv_hca *hca, const struct hv_file *of);
void hv_event_files_removed(struct hv_hca *hca);

/* Where a context's asynchronous events go. */
struct hv_async {
    struct hv_event_queue queue; /* struct ibv_async_event */
};

enum hv_about hv_event_about(enum ibv_event_type type);

/* Takes an event of the driver's EQ to whom it concerns, with no lock held. */
void hv_events_dispatch(struct hv_hca *hca, const struct drv_event *event);
/* Tells every context that the device is lost (IBV_EVENT_DEVICE_FATAL): mlx5_core finds that out in
 * its health poll (poll_health()), and mlx5_ib hands it on (mlx5_ib_handle_event()). */
void hv_events_fatal(struct hv_hca *hca);
/* The device was removed (uverbs_destroy_ufile_hw()): events of its objects go with them, each
 * context is told that it is lost, which is the last that it is told, channels are closed, and who
 * has queue pair 1 looks. */
void hv_events_removed(struct hv_hca *hca);

#endif
