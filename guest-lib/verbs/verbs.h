/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of libibverbs.so.1 share: devices, contexts, and how objects reach their HCA.
 *
 * A process has one HCA per device that it opened (struct hv_hca): the firmware and model that QEMU
 * runs, on a wire, with guest-lib's driver over its BAR. All contexts of a device share it, as
 * processes share a kernel's. What mlx5_ib does by command for a process, the files here do with
 * hv_cmd(); what libmlx5 does with rings and doorbells they do likewise, so that command stream,
 * WQEs and CQEs are those of a real host.
 *
 * Bus addresses are process addresses: a pointer is what goes into a pas[] list, a WQE or a key.
 *
 * Locks, in the order in which they are taken: an object's own (a QP's send or receive lock, a
 * CQ's), then the HCA's. hv_cmd() takes its own and the HCA's; never call it with the HCA's held.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_VERBS_H
#define HCASIM_GUEST_LIB_VERBS_VERBS_H

#include <errno.h>
#include <glib.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include "guest-lib/drv.h"
#include "prm/prm.h"

/* What the version script exports. */
#define HV_EXPORT __attribute__((visibility("default")))

struct hv_dv_ops; /* guest-lib/mlx5dv/dv.h: what libmlx5.so.1 calls */
struct hv_hca;
struct hv_context;

struct hv_device {
    struct ibv_device ibv;
    const struct hv_dv_ops *dv;
    unsigned index;     /* of the process's devices, from 0 */
    struct hv_hca *hca; /* while any context is open */
    unsigned users;     /* contexts */
};

/* A doorbell page of 4 KiB in BAR0; its two BlueFlame registers alternate. */
struct hv_uar {
    uint32_t page;
    unsigned bf_toggle; /* 0 or 0x100 */
};

struct hv_context {
    struct hv_hca *hca;
    const struct hv_dv_ops *dv;
    uint16_t uid;      /* DevX user (CREATE_UCTX) of this context's commands */
    uint32_t tdn;      /* transport domain */
    struct hv_uar uar; /* doorbells of everything that has no thread domain of its own */
    int async_pipe;    /* what ibv_get_async_event() takes from; its reading end is ibv.async_fd */
    struct hv_async *async;
    struct verbs_context ibv; /* last: the size of its prefix is the library's own business */
};

static inline struct hv_device *hv_device(struct ibv_device *device)
{
    return (struct hv_device *)((char *)device - offsetof(struct hv_device, ibv));
}

static inline struct hv_context *hv_context(struct ibv_context *context)
{
    return (struct hv_context *)((char *)context - offsetof(struct verbs_context, context) -
                                 offsetof(struct hv_context, ibv));
}

static inline struct hv_hca *hv_hca_of(struct ibv_context *context)
{
    return hv_context(context)->hca;
}

/* -- the HCA (hca.c, progress.c) ----------------------------------------------------------------
 */

/* Executes a command; any thread. Returns 0 or the errno that mlx5_core makes of its status
 * (cmd_status_to_err()); out is what the device wrote, all zero if it did not answer. */
int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len);
/* For commands whose output nobody reads. */
int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len);

/* Rings a doorbell: value as in fw_mmio_write(), size 8; then lets the HCA work, so that in the
 * usual case a frame is on the wire before this returns. */
void hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);

/* Lets the HCA work for a moment if no other thread does (received frames, timers, doorbells).
 * Polling functions call it when they find nothing. True: there was something to do. */
bool hv_progress(struct hv_hca *hca);

/* The driver below: capabilities (drv->cap), async EQ. */
struct drv *hv_drv(struct hv_hca *hca);

/* Zeroed, page-aligned memory for rings. */
void *hv_ring_alloc(size_t size);
void hv_ring_free(void *ptr, size_t size);
/* A doorbell record of 8 bytes in a cache line of its own, zeroed. */
uint32_t *hv_dbrec_alloc(struct hv_context *ctx);
void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec);

/* A field of the general device capabilities in use. */
#define HV_CAP(hca, field) PRM_GET(cmd_hca_cap, hv_drv(hca)->cap, field)

/* Doorbell of a send queue: the control segment's first 8 bytes to the BlueFlame register. */
static inline void hv_ring_sq(struct hv_hca *hca, struct hv_uar *uar, const void *ctrl)
{
    hv_doorbell(hca, (uint64_t)uar->page * PCI_PAGE + PRM_OFFSET(uar, blue_flame) + uar->bf_toggle,
                prm_load64(ctrl));
    uar->bf_toggle ^= 0x100;
}

/* -- events (events.c) --------------------------------------------------------------------------
 */

/*
 * The driver's EQ handler calls these two with the HCA's lock not held; objects that can have
 * events register by number.
 */
struct hv_cq;
struct hv_qp;
struct hv_srq;
void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq);
/* Waits until all events handed out for the object are acknowledged, and takes back those that
 * nobody has read, as ibv_destroy_*() do. */
void hv_event_drain_cq(struct hv_cq *cq);
void hv_event_drain_qp(struct hv_qp *qp);
void hv_event_drain_srq(struct hv_srq *srq);

/* -- objects ------------------------------------------------------------------------------------
 */

struct hv_td {
    struct ibv_td ibv;
    struct hv_uar uar; /* its own doorbell page: no lock is needed */
    unsigned refs;
};

/* A PD, or a parent domain, which is a PD that refers to another one. */
struct hv_pd {
    struct ibv_pd ibv;
    uint32_t pdn;
    struct hv_pd *parent; /* of a parent domain: its PD */
    struct hv_td *td;     /* of a parent domain: or NULL */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
                   uint64_t resource_type);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
    void *pd_context;
    gint refs; /* objects in it: dealloc of a PD in use is EBUSY */
};

struct hv_mr {
    struct ibv_mr ibv;
    uint64_t iova;
    unsigned access;
    enum {
        HV_MR_USER,
        HV_MR_NULL,
        HV_MR_IMPORTED,
        HV_MR_DV /* mlx5dv_mkey and the like */
    } kind;
};

struct hv_ah {
    struct ibv_ah ibv;
    uint8_t av[PRM_SIZE(wqe_av)]; /* address vector as UD and DC WQEs carry it */
};

struct hv_cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex ex;
    };
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint32_t cqn, log_size, ci;
    unsigned cqe_size; /* 64 or 128 */
    uint32_t *dbrec;   /* [0] consumer index, [1] arm word, big-endian */
    uint64_t arm_sn;
    bool single_threaded;
    pthread_spinlock_t lock;
    struct hv_uar *uar;
    uint8_t *cur_cqe; /* extended polling: the CQE that readers look at */
    struct hv_qp *cur_qp;
    struct hv_srq *cur_srq;
    uint64_t wc_flags;                    /* enum ibv_create_cq_wc_flags */
    uint32_t unacked_comp, unacked_async; /* events handed out, under ibv.mutex */
};

/* A work queue's ring: WQE index -> wr_id. */
struct hv_wq {
    uint64_t *wrid;
    uint32_t wqe_cnt;  /* power of two: WQEBBs of an SQ, WQEs of an RQ */
    uint32_t max_post; /* WQEs that may be outstanding */
    uint32_t head, tail;
    uint32_t max_gs;
    uint32_t wqe_shift;
    uint8_t *buf;
    pthread_spinlock_t lock;
};

struct hv_srq {
    struct ibv_srq ibv;
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint32_t srqn;
    uint64_t *wrid;
    uint32_t wqe_cnt, max_gs, wqe_shift;
    int head, tail; /* free list of WQEs, as libmlx5's */
    uint16_t counter;
    uint32_t *dbrec;
    pthread_spinlock_t lock;
    struct hv_xrcd *xrcd;
    struct hv_cq *cq; /* of an XRC SRQ */
    uint32_t unacked_async;
};

struct hv_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex;
    };
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint32_t *dbrec; /* [0] receive, [1] send counter, big-endian */
    struct hv_uar *uar;
    struct hv_wq sq, rq;
    uint32_t *sq_wqe_head; /* WQEBB index -> head when it was posted, for completions */
    uint32_t max_inline;
    bool sq_sig_all, single_threaded;
    uint32_t rqn, sqn, tirn, tisn; /* raw packet QPs */
    uint32_t cur_qkey;
    /* send builder (ibv_wr_*): see qp_wr.c */
    uint8_t *cur_ctrl, *cur_data;
    uint32_t cur_post_rb, cur_size;
    int wr_err, nreq;
    unsigned wr_setters_left;
    uint32_t unacked_async;
    void *dv; /* mlx5dv's own, freed with free() */
};

static inline struct hv_pd *hv_pd(struct ibv_pd *pd)
{
    return (struct hv_pd *)pd;
}

/* The PD that objects are in: of a parent domain the one below. */
static inline struct hv_pd *hv_real_pd(struct ibv_pd *pd)
{
    return hv_pd(pd)->parent ? hv_pd(pd)->parent : hv_pd(pd);
}

static inline struct hv_cq *hv_cq(struct ibv_cq *cq)
{
    return (struct hv_cq *)cq;
}

static inline struct hv_srq *hv_srq(struct ibv_srq *srq)
{
    return (struct hv_srq *)srq;
}

static inline struct hv_qp *hv_qp(struct ibv_qp *qp)
{
    return (struct hv_qp *)qp;
}

static inline struct hv_ah *hv_ah(struct ibv_ah *ah)
{
    return (struct hv_ah *)ah;
}

static inline struct hv_mr *hv_mr(struct ibv_mr *mr)
{
    return (struct hv_mr *)mr;
}

/* Lookups by number for completions: NULL if there is none. The polling thread holds the CQ's
 * lock, and objects leave the tables under the locks of the CQs that may name them. */
struct hv_qp *hv_find_qp(struct hv_hca *hca, uint32_t qpn);
struct hv_srq *hv_find_srq(struct hv_hca *hca, uint32_t srqn);
struct hv_cq *hv_find_cq(struct hv_hca *hca, uint32_t cqn);

/* Removes the completions of a QP that goes away (mlx5_cq_clean()). srq: gives their WQEs back. */
void hv_cq_clean(struct hv_cq *cq, uint32_t qpn, struct hv_srq *srq);
/* Gives a WQE back to the SRQ's free list. */
void hv_srq_free_wqe(struct hv_srq *srq, uint16_t index);

/* Fills the operations of a new context; each file its own. */
void hv_pd_ops(struct verbs_context *ops);
void hv_mr_ops(struct verbs_context *ops);
void hv_cq_ops(struct verbs_context *ops);
void hv_srq_ops(struct verbs_context *ops);
void hv_qp_ops(struct verbs_context *ops);
void hv_eth_ops(struct verbs_context *ops);
void hv_query_ops(struct verbs_context *ops);

#endif
