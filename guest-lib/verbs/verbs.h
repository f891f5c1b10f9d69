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
#include "guest-lib/drv/drv.h"
#include "prm/prm.h"

/* What the version script exports. */
#define HV_EXPORT __attribute__((visibility("default")))

struct hv_dv_ops; /* guest-lib/verbs/dv.h: what libmlx5.so.1 calls */
struct hv_hca;
struct hv_file;
struct hv_context;

/*
 * User indices: what CQEs of version 1 name their queue by (user_index of QPs, SQs, RQs and XRC
 * SRQs), one numbering per context, as libmlx5 has. A QP with an ordinary SRQ keeps its own.
 */
enum hv_rsc_type {
    HV_RSC_NONE,
    HV_RSC_QP,   /* struct hv_qp */
    HV_RSC_XSRQ, /* struct hv_srq that names its own CQ */
    HV_RSC_RWQ   /* struct hv_rwq */
};
struct hv_rsc {
    void *obj;
    enum hv_rsc_type type;
};
#define HV_UIDX_CHUNK_SHIFT 12
#define HV_UIDX_MAX         (1u << 24)
#define HV_UIDX_NONE        0xffffffu /* USER_INDEX of queues whose CQEs are of version 0 */
struct hv_uidx_table {
    pthread_mutex_t lock;
    struct hv_rsc *chunk[HV_UIDX_MAX >> HV_UIDX_CHUNK_SHIFT]; /* made when first needed */
    uint32_t next; /* where the search for a free one begins */
};

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
    struct hv_file *file; /* its objects' handles, shared with who imported it */
    const struct hv_dv_ops *dv;
    uint16_t uid;   /* DevX user (CREATE_UCTX) of this context's commands */
    uint32_t tdn;   /* transport domain */
    uint32_t xrcdn; /* of XRC send QPs, which have none of the program's (qp.c) */
    bool has_xrcdn;
    struct hv_uar uar; /* doorbells of everything that has no thread domain of its own */
    int async_pipe;    /* what ibv_get_async_event() takes from; its reading end is ibv.async_fd */
    struct hv_async *async;
    struct hv_uidx_table uidx;
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

/* -- the two halves -----------------------------------------------------------------------------
 */

/*
 * What rdma-core does in the process and what it asks the kernel are told apart here as a program
 * can: by errno. The kernel half of a call returns through this, as a system call does: a failure
 * is in errno, too, and a success leaves errno alone. What libmlx5 refuses by itself is returned,
 * and is in errno only where libmlx5 puts it there.
 */
static inline int hv_kernel(int err)
{
    if (err) {
        errno = err;
    }
    return err;
}

/* Objects with a handle, as uverbs' object types (handles.c). */
enum hv_handle_kind {
    HV_HANDLE_PD, /* struct hv_pd, which is neither imported nor a parent domain */
    HV_HANDLE_MR, /* struct hv_mr that was registered */
    HV_HANDLE_MW, /* struct ibv_mw; the others: the structure that verbs.h declares */
    HV_HANDLE_AH,
    HV_HANDLE_CQ,
    HV_HANDLE_SRQ,
    HV_HANDLE_QP,
    HV_HANDLE_XRCD,
    HV_HANDLE_WQ,
    HV_HANDLE_IND_TABLE,
    HV_HANDLE_FLOW
};

/* The handles of an open device: one context's, until others share it. hv_file_close() takes a
 * context away, and tells whether it was the last. */
struct hv_file *hv_file_new(void);
struct hv_file *hv_file_share(struct hv_file *file);
bool hv_file_close(struct hv_file *file);

uint32_t hv_handle_add(struct ibv_context *context, enum hv_handle_kind kind, void *obj);
void hv_handle_del(struct ibv_context *context, uint32_t handle);
/* What a handle stands for. NULL with *err: ENOENT: nothing, EINVAL: an object of another kind. */
void *hv_handle_get(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    int *err);
/* Whether a handle is that object's: 0, or errno as above. EINVAL, too, if it is another object's
 * of the kind, to which a kernel would do what was meant for this one. */
int hv_handle_check(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    const void *obj);

/* -- the HCA (hca.c, local.c) ----------------------------------------------------------------
 */

/* Executes a command; any thread. Returns 0 or the errno that mlx5_core makes of its status
 * (cmd_status_to_err()); out is what the device wrote, all zero if it did not answer. */
int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len);
/* For commands whose output nobody reads. */
int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len);

/* What cmd_status_to_err() of mlx5_core makes of a status, or of DRV_TIMEOUT. */
int hv_status_errno(int status);

/* drv_umr(), as a command's: any thread; 0 or errno. */
int hv_umr(struct hv_hca *hca, uint32_t key, uint64_t mask, const void *mkc);

/* Rings a doorbell: value as in fw_mmio_write(), size 8; then lets the HCA work, so that in the
 * usual case a frame is on the wire before this returns. 0, or EIO if hv_is_ours() is false. */
int hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);

/* Lets the HCA work for a moment if no other thread does (received frames, timers, doorbells).
 * Polling functions call it when they find nothing. True: there was something to do. */
bool hv_progress(struct hv_hca *hca);

/* False in a child of fork(): the HCA has stayed with the parent (process.c). */
bool hv_is_ours(struct hv_hca *hca);

/* The context's user indices (uidx.c). A zeroed table is an empty one; hv_uidx_fini() at close.
 * hv_uidx_alloc() returns a number below HV_UIDX_NONE, or -1 (ENOMEM). Objects leave under the
 * locks of the CQs that may name them. */
int hv_uidx_alloc(struct hv_context *ctx, enum hv_rsc_type type, void *obj);
void hv_uidx_free(struct hv_context *ctx, uint32_t uidx);
void hv_uidx_fini(struct hv_context *ctx);
/* NULL: there is none. */
static inline const struct hv_rsc *hv_uidx_find(const struct hv_context *ctx, uint32_t uidx)
{
    const struct hv_rsc *chunk =
        __atomic_load_n(&ctx->uidx.chunk[uidx >> HV_UIDX_CHUNK_SHIFT], __ATOMIC_ACQUIRE);
    const struct hv_rsc *rsc;

    if (!chunk) {
        return NULL;
    }
    rsc = &chunk[uidx & ((1u << HV_UIDX_CHUNK_SHIFT) - 1)];
    return rsc->type != HV_RSC_NONE ? rsc : NULL;
}

/* The driver below: capabilities, which it has read at the start, and async EQ. */
struct drv *hv_drv(struct hv_hca *hca);

/* Zeroed, page-aligned memory for rings. */
void *hv_ring_alloc(size_t size);
void hv_ring_free(void *ptr, size_t size);
/* A doorbell record of 8 bytes in a cache line of its own, zeroed. */
uint32_t *hv_dbrec_alloc(struct hv_context *ctx);
void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec);

/* A field of the general device capabilities in use; of those for Ethernet. */
#define HV_CAP(hca, field) PRM_GET(cmd_hca_cap, hv_drv(hca)->cap, field)
#define HV_ETH_CAP(hca, field)                                                                     \
    PRM_GET(per_protocol_networking_offload_caps, hv_drv(hca)->eth_cap, field)

/* Doorbell of a send queue: the control segment's first 8 bytes to the BlueFlame register. 0 or
 * EIO. It says no more than that there is something new: how much, the doorbell record says. So it
 * is rung without the queue's lock, and who comes late asks for what was done already. */
static inline int hv_ring_sq(struct hv_hca *hca, struct hv_uar *uar, uint64_t ctrl)
{
    unsigned toggle = __atomic_load_n(&uar->bf_toggle, __ATOMIC_RELAXED);

    __atomic_store_n(&uar->bf_toggle, toggle ^ 0x100, __ATOMIC_RELAXED);
    return hv_doorbell(hca, (uint64_t)uar->page * PCI_PAGE + PRM_OFFSET(uar, blue_flame) + toggle,
                       ctrl);
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
struct hv_rwq;
void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq);
void hv_event_add_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_del_qp(struct hv_hca *hca, struct hv_qp *qp);
void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq);
void hv_event_add_wq(struct hv_hca *hca, struct hv_rwq *wq);
void hv_event_del_wq(struct hv_hca *hca, struct hv_rwq *wq);
/* Waits until all events handed out for the object are acknowledged, and takes back those that
 * nobody has read, as ibv_destroy_*() do. */
void hv_event_drain_cq(struct hv_cq *cq);
void hv_event_drain_qp(struct hv_qp *qp);
void hv_event_drain_srq(struct hv_srq *srq);
void hv_event_drain_wq(struct hv_rwq *wq);

/* The MAC address of a GID on the port's wire (device.c): 0, or errno: EINVAL, EHOSTUNREACH.
 * Multicast GIDs map to 33:33 and 01:00:5e addresses. */
int hv_resolve_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                   const union ibv_gid *dgid, uint8_t mac[6]);

/* DevX subscriptions (kernel/devx_event.c): the EQ handler calls it for every event, completions
 * included, with no lock held. */
void hv_dv_event(struct hv_hca *hca, const struct drv_event *event);

/*
 * Queues whose doorbells a program writes itself (kernel/watch.c). While hv_watches is not zero
 * whoever drives the HCA calls hv_watch_scan() in every round and does not sleep. ring is called
 * for each doorbell found, as hv_doorbell() would be, and must not call back here.
 */
typedef void hv_ring_fn(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
extern gint hv_watches;
/* True: there was a doorbell. */
bool hv_watch_scan(struct hv_hca *hca, hv_ring_fn *ring);
/* The queue is about to be destroyed. */
void hv_watch_forget_sq(struct hv_hca *hca, uint32_t qpn_or_sqn);
void hv_watch_forget_cq(struct hv_hca *hca, uint32_t cqn);

/* -- objects ------------------------------------------------------------------------------------
 */

/*
 * refs and users count what refers to an object: destroying it while there is any is EBUSY.
 * Whoever refers increments with g_atomic_int_inc() and decrements when it is gone. What is in a
 * PD refers to hv_real_pd(), as the kernel has it; queues that were given a parent domain refer to
 * that as well (hv_pd_use()).
 */
struct hv_td {
    struct ibv_td ibv;
    struct hv_uar uar; /* its own doorbell page: no lock is needed */
    gint refs;
};

/* A PD, or one that refers to another: a parent domain, or what ibv_import_pd() returns. */
struct hv_pd {
    struct ibv_pd ibv;
    uint32_t pdn;
    enum {
        HV_PD_OWN,
        HV_PD_PARENT_DOMAIN,
        HV_PD_IMPORTED
    } kind;
    struct hv_pd *parent; /* the one that it refers to, or NULL */
    unsigned imports;     /* imported ones that refer to it (pd.c) */
    bool dead;            /* deallocated, but for them */
    struct hv_td *td;     /* of a parent domain: or NULL */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
                   uint64_t resource_type);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
    void *pd_context;
    gint refs;    /* objects in it: dealloc of a PD in use is EBUSY */
    gint domains; /* parent domains of it, of which the kernel knows nothing: likewise */
};

struct hv_mr {
    struct ibv_mr ibv;
    struct hv_pd *pd; /* whose refs count it */
    uint64_t iova;
    unsigned access;
    enum {
        HV_MR_USER,
        HV_MR_NULL,
        HV_MR_IMPORTED,
        HV_MR_DV /* mlx5dv_mkey and the like */
    } kind;
};

struct hv_xrcd {
    struct ibv_xrcd ibv;
    uint32_t handle;
    uint32_t xrcdn;
    struct hv_xrcd_inode *inode; /* shared by those who opened the same file, or NULL */
    gint refs;
};

struct hv_ah {
    struct ibv_ah ibv;
    struct hv_pd *pd;             /* whose refs count it */
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
    unsigned cqe_size;              /* 64 or 128 */
    bool ring_custom, dbrec_custom; /* from the parent domain's allocators */
    uint32_t *dbrec;                /* [0] consumer index, [1] arm word, big-endian */
    uint64_t arm_sn;                /* ibv_get_cq_event() adds one */
    bool single_threaded;           /* the lock is not taken */
    pthread_spinlock_t lock;
    struct hv_uar *uar;
    struct hv_pd *parent_domain;  /* or NULL */
    gint users;                   /* QPs (once for each of send and receive), WQs, XRC SRQs */
    const struct hv_rsc *cur_rsc; /* of the CQE polled last */
    uint32_t cur_uidx;            /* its user index */
    /* extended polling: the cqe64 that readers look at, and what it does not tell */
    const uint8_t *cur_cqe;
    enum ibv_wc_opcode cur_opcode;
    bool cur_csum_valid;
    uint64_t wc_flags;                    /* enum ibv_create_cq_wc_flags */
    uint32_t unacked_comp, unacked_async; /* events handed out, under ibv.mutex */
};

/* A work queue's ring: WQE index -> wr_id. */
struct hv_wq {
    uint64_t *wrid;
    uint8_t *wr_data;  /* of an SQ, by WQEBB index: the enum ibv_wc_opcode of WQEs that a CQE does
                          not tell apart (UMR, NOP: LOCAL_INV, BIND_MW, DRIVER1; raw WQEs DRIVER2) */
    uint32_t wqe_cnt;  /* power of two: WQEBBs of an SQ, WQEs of an RQ */
    uint32_t max_post; /* WQEs that may be outstanding */
    uint32_t head;     /* under the lock */
    uint32_t tail; /* under its CQ's; who posts reads it, and the tables of what was completed */
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
    struct hv_pd *pd; /* whose refs count it, whose allocators its memory is from */
    bool ring_custom, dbrec_custom;
    uint64_t *wrid;
    uint32_t wqe_cnt, max_gs, wqe_shift;
    uint32_t head, tail; /* WQEs that may be posted: a list from head to tail, which stays */
    uint16_t counter;
    uint32_t *dbrec;
    bool single_threaded;
    pthread_spinlock_t lock;
    enum ibv_srq_type type;
    int uidx; /* of an XRC SRQ, else -1 */
    struct hv_xrcd *xrcd;
    struct hv_cq *cq; /* of an XRC SRQ */
    gint users;       /* QPs */
    uint32_t unacked_async;
};

/* A WQ (ibv_create_wq()). */
struct hv_rwq {
    struct ibv_wq ibv;
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    bool ring_custom, dbrec_custom;
    uint32_t rqn;
    int uidx;
    uint32_t *dbrec; /* [0] receive, big-endian */
    struct hv_wq rq;
    struct hv_pd *pd;
    gint users; /* indirection tables */
    uint32_t unacked_async;
};

struct hv_mcast;

/* An indirection table of WQs (wq.c). */
struct hv_ind_table {
    struct ibv_rwq_ind_table ibv;
    uint32_t rqtn;
    gint users; /* RSS QPs */
    unsigned num;
    struct hv_rwq *wqs[];
};

struct hv_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex;
    };
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    bool ring_custom, dbrec_custom; /* from the parent domain's allocators */
    uint32_t *dbrec;                /* [0] receive, [1] send counter, big-endian */
    struct hv_uar *uar;
    struct hv_wq sq, rq;
    uint32_t *sq_wqe_head; /* WQEBB index -> head when it was posted, for completions */
    int uidx;              /* user_index of its contexts: hv_uidx_alloc(), HV_RSC_QP */
    bool rx_csum_valid;    /* l3_ok and l4_ok of its CQEs count: a raw packet QP */
    uint32_t max_inline;
    bool sq_sig_all, single_threaded, block_self_mcast, strip_vlan, end_padding;
    uint16_t uid;               /* in whose name its commands are: the kernel's of XRC targets */
    bool can_send;              /* has been in RTS since RESET */
    unsigned access;            /* IBV_ACCESS_ that ibv_modify_qp() gave last */
    uint8_t max_dest_rd_atomic; /* likewise */
    gint refs;                  /* multicast groups and flows: destroying it then is EBUSY */
    struct hv_mcast *groups;    /* that it is in (mcast.c) */
    struct hv_xrcd *xrcd;       /* of an XRC target */
    struct hv_qp *next_handle; /* the circle of its handles (xrc_tgt.c); NULL: it is the only one */
    uint32_t rqn, sqn, tirn, tisn; /* raw packet QPs */
    uint8_t rq_state, sq_state;    /* of those, as they were set or queried last */
    struct hv_ind_table *ind;      /* of an RSS QP, which has no queues of its own */
    uint32_t max_tso_header;       /* raw packet QPs */
    uint32_t cur_qkey;
    /* send builder (ibv_wr_*): see qp_wr.c */
    uint8_t *cur_ctrl, *cur_data;
    uint32_t sq_post; /* WQEBBs posted since RESET */
    bool small_fence; /* the next WQE waits for a UMR before it */
    uint32_t cur_post_rb, cur_size;
    int wr_err, nreq;
    unsigned wr_setters_left;
    uint32_t unacked_async;
    void *dv; /* mlx5dv's own, freed with free() */
};

/* ::ffff:a.b.c.d */
static inline bool hv_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* ff00::/8, or 224.0.0.0/4 (rdma_is_multicast_addr()). */
static inline bool hv_gid_is_multicast(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xff || (hv_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

static inline struct hv_pd *hv_pd(struct ibv_pd *pd)
{
    return (struct hv_pd *)pd;
}

/* The PD that objects are in: the one at the end of the references. */
static inline struct hv_pd *hv_real_pd(struct ibv_pd *pd)
{
    struct hv_pd *real = hv_pd(pd);

    while (real->parent) {
        real = real->parent;
    }
    return real;
}

/* Whether an object's handle is its own, for the kernel half of a call: 0 or errno. */
static inline int hv_pd_check(struct ibv_pd *pd)
{
    return hv_handle_check(pd->context, HV_HANDLE_PD, pd->handle, hv_real_pd(pd));
}

static inline struct hv_cq *hv_cq(struct ibv_cq *cq)
{
    return (struct hv_cq *)cq;
}

static inline int hv_cq_check(struct ibv_cq *cq)
{
    return hv_handle_check(cq->context, HV_HANDLE_CQ, cq->handle, cq);
}

static inline int hv_xrcd_check(struct ibv_xrcd *xrcd)
{
    return hv_handle_check(xrcd->context, HV_HANDLE_XRCD, ((struct hv_xrcd *)xrcd)->handle, xrcd);
}

static inline struct hv_srq *hv_srq(struct ibv_srq *srq)
{
    return (struct hv_srq *)srq;
}

static inline int hv_srq_check(struct ibv_srq *srq)
{
    return hv_handle_check(srq->context, HV_HANDLE_SRQ, srq->handle, srq);
}

static inline struct hv_qp *hv_qp(struct ibv_qp *qp)
{
    return (struct hv_qp *)qp;
}

static inline int hv_qp_check(struct ibv_qp *qp)
{
    return hv_handle_check(qp->context, HV_HANDLE_QP, qp->handle, qp);
}

static inline struct hv_rwq *hv_rwq(struct ibv_wq *wq)
{
    return (struct hv_rwq *)wq;
}

static inline int hv_wq_check(struct ibv_wq *wq)
{
    return hv_handle_check(wq->context, HV_HANDLE_WQ, wq->handle, wq);
}

static inline int hv_ind_table_check(struct ibv_rwq_ind_table *table)
{
    return hv_handle_check(table->context, HV_HANDLE_IND_TABLE, (uint32_t)table->ind_tbl_handle,
                           table);
}

static inline struct hv_ah *hv_ah(struct ibv_ah *ah)
{
    return (struct hv_ah *)ah;
}

static inline struct hv_mr *hv_mr(struct ibv_mr *mr)
{
    return (struct hv_mr *)mr;
}

/* Lookups by number: NULL if there is none. */
struct hv_qp *hv_find_qp(struct hv_hca *hca, uint32_t qpn);
struct hv_srq *hv_find_srq(struct hv_hca *hca, uint32_t srqn);
struct hv_cq *hv_find_cq(struct hv_hca *hca, uint32_t cqn);

struct mlx5dv_cq_init_attr;
/* ibv_create_cq_ex() and mlx5dv_create_cq(): dv may be NULL. extended: the readers of struct
 * ibv_cq_ex are filled in. NULL with errno. */
struct hv_cq *hv_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
                           bool extended, const struct mlx5dv_cq_init_attr *dv);
/* Extended polling's functions for these wc_flags (cq_ex.c). */
void hv_cq_ex_init(struct hv_cq *cq, uint64_t wc_flags);
/* Removes the completions of a queue that goes away or to RESET (mlx5_cq_clean()), by its user
 * index. srq: gives their WQEs back. The caller holds the CQ's lock: hv_uidx_free() comes before
 * it is dropped. */
void hv_cq_clean(struct hv_cq *cq, uint32_t uidx, struct hv_srq *srq);
void hv_cq_lock(struct hv_cq *cq);
void hv_cq_unlock(struct hv_cq *cq);
/* Both CQs of a QP, in an order that cannot deadlock; either may be NULL, or both the same. */
void hv_cq_lock_pair(struct hv_cq *a, struct hv_cq *b);
void hv_cq_unlock_pair(struct hv_cq *a, struct hv_cq *b);
/* Gives a WQE back to the SRQ's free list. */
void hv_srq_free_wqe(struct hv_srq *srq, uint16_t index);

/* Key variant: the low byte that the driver adds to the index of a new key, another one each time.
 */
uint8_t hv_key_variant(void);
/* Creates a key (mr.c) from a CREATE_MKEY command in which opcode and variant are still missing;
 * destroys one. 0 or errno. Keys are the kernel's, uid 0, as mlx5_ib's. */
int hv_mkey_create(struct hv_hca *hca, void *in, size_t in_len, uint32_t *key);
int hv_mkey_destroy(struct hv_hca *hca, uint32_t key);
/* A queue in this PD comes (1) or goes (-1). */
void hv_pd_use(struct ibv_pd *pd, int change);
/* Memory for a ring or doorbell record (pd.c), zeroed: from the allocator of a parent domain that
 * has one for this type (MLX5DV_RES_TYPE_), else the library's own (*custom is then false).
 * pd may be NULL. NULL with errno ENOMEM if there is none. */
void *hv_buf_alloc(struct hv_pd *pd, size_t size, uint64_t type, bool *custom);
void hv_buf_free(struct hv_pd *pd, void *ptr, size_t size, uint64_t type, bool custom);
uint32_t *hv_db_alloc(struct hv_context *ctx, struct hv_pd *pd, bool *custom);
void hv_db_free(struct hv_context *ctx, struct hv_pd *pd, uint32_t *dbrec, bool custom);
/* A UAR page of the context's user (pd.c): 0 or errno. */
int hv_uar_alloc(struct hv_context *ctx, struct hv_uar *uar);
void hv_uar_free(struct hv_context *ctx, struct hv_uar *uar);

/*
 * Puts a WQE that is whole into the send queue (qp_wr.c), between ibv_wr_start() and
 * ibv_wr_complete(): ds 16-byte units; wr_id and flags are those of the struct ibv_qp_ex. The
 * index is filled in; if not raw, QPN, ds and flags as well. wc_opcode is what its completion
 * says. No room: wr_err is ENOMEM.
 */
void hv_wr_post_wqe(struct hv_qp *qp, const void *wqe, unsigned ds, enum ibv_wc_opcode wc_opcode,
                    bool raw);

/* Fills the operations of a new context; each file its own. */
void hv_pd_ops(struct verbs_context *ops);
void hv_mr_ops(struct verbs_context *ops);
void hv_mw_ops(struct verbs_context *ops);
void hv_xrcd_ops(struct verbs_context *ops);
void hv_xrc_tgt_ops(struct verbs_context *ops);
void hv_cq_ops(struct verbs_context *ops);
void hv_srq_ops(struct verbs_context *ops);
void hv_qp_ops(struct verbs_context *ops);
void hv_eth_ops(struct verbs_context *ops);
void hv_query_ops(struct verbs_context *ops);

#endif
