/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of events from the EQ to a program: the numbers by which the device names objects, and
 * the queues that a program reads.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_EVENTS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_EVENTS_H

#include "guest-lib/host/event_queue.h"
#include "guest-lib/verbs/verbs.h"

/* The kind of object that an asynchronous event is about. */
enum hv_about {
    HV_ABOUT_CQ,
    HV_ABOUT_QP,
    HV_ABOUT_SRQ,
    HV_ABOUT_WQ,
    HV_ABOUT_DCT, /* of the experimental verbs */
    HV_ABOUT_PORT
};

/* Types of the events of a DCT of the experimental verbs, beyond enum ibv_event_type: the values of
 * verbs_exp.h. */
#define HV_EVENT_DCT_KEY_VIOLATION ((enum ibv_event_type)32)
#define HV_EVENT_DCT_ACCESS_ERR    ((enum ibv_event_type)33)
#define HV_EVENT_DCT_REQ_ERR       ((enum ibv_event_type)34)

/* Register objects that events can be about, by their numbers (numbers.c). */
void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_add_wq(struct hv_hca *hca, struct hv_rwq *wq);
void hv_event_del_wq(struct hv_hca *hca, struct hv_rwq *wq);
void hv_event_add_dct(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_del_dct(struct hv_hca *hca, struct hv_qp *qp);
/* To be called with the registry's lock. Finds a struct hv_cq, hv_qp, hv_srq, hv_rwq or
 * hv_exp_dct, as kind says, or NULL; sets one. */
void *hv_number_find(struct hv_hca *hca, enum hv_about kind, uint32_t num);
void hv_number_set(struct hv_hca *hca, enum hv_about kind, uint32_t num, void *obj);
/* Removes all objects of a closing file from the registry, even those that the device would not
 * destroy. */
void hv_event_forget_file(struct hv_hca *hca, const struct hv_file *file);

/* Gets the completion events of CQs. */
struct hv_channel {
    struct ibv_comp_channel ibv;
    struct hv_event_file file; /* struct hv_cq */
};

static inline struct hv_channel *hv_channel(struct ibv_comp_channel *channel)
{
    return (struct hv_channel *)channel;
}

/* Opens a channel (channels.c). Its queue is closed together with the context's file, or when the
 * device is removed. Returns 0 or errno; EIO: the device was removed already. */
int hv_event_file_open(struct ibv_context *context, struct hv_event_file *file,
                       GDestroyNotify free_event);
/* Closes a channel, whose file may be closed already. */
void hv_event_file_close(struct hv_event_file *file);
/* Close the queues of all channels: of a file that closes; of a device that is removed. */
void hv_event_files_end(struct hv_hca *hca, const struct hv_file *of);
void hv_event_files_removed(struct hv_hca *hca);

/* Gets a context's asynchronous events. */
struct hv_async {
    struct hv_event_queue queue; /* struct ibv_async_event */
};

enum hv_about hv_event_about(enum ibv_event_type type);

/* Hands an event of the driver's EQ to those that it concerns. Called with no lock held. */
void hv_events_dispatch(struct hv_hca *hca, const struct drv_event *event);
/* Tells every context that the device is lost (IBV_EVENT_DEVICE_FATAL). In a kernel, mlx5_core
 * notices that in its health poll (poll_health()), and mlx5_ib passes it on
 * (mlx5_ib_handle_event()). */
void hv_events_fatal(struct hv_hca *hca);
/* The device was removed (uverbs_destroy_ufile_hw()). Events of its objects are dropped, each
 * context gets IBV_EVENT_DEVICE_FATAL as its last event, channels are closed, and the owner of
 * queue pair 1 is woken. */
void hv_events_removed(struct hv_hca *hca);

#endif
