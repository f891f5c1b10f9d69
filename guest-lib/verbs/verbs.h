/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both halves of the verbs library know: devices, contexts, objects.
 *
 * A process has one HCA per device that it opened (struct hv_hca): the firmware and model that QEMU
 * also runs, on a wire, with guest-lib's driver over its BAR. All contexts of a device share the
 * HCA, as processes share a kernel's. kernel/ does what mlx5_ib does for a process by commands.
 * user/ does what rdma-core does with rings and doorbells; it calls kernel/ where a program makes
 * system calls. So the command stream, WQEs and CQEs are those of a real host.
 *
 * struct hv_qp and struct hv_cq hold what a command about the object says, and what the kernel half
 * keeps. With the user half's rings and builders added, they are a struct user_qp or user_cq
 * (user/queues.h).
 *
 * Bus addresses are process addresses: pointers go into pas[] lists, WQEs and keys as they are.
 *
 * Locks, in the order in which they are taken: an object's own (a QP's send or receive lock, a
 * CQ's), then the HCA's. A command takes its own lock and the HCA's; never send a command with the
 * HCA's lock held.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_VERBS_H
#define HCASIM_GUEST_LIB_VERBS_VERBS_H

#include <errno.h>
#include <glib.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/host/event_queue.h"
#include "guest-lib/verbs/exp/include/infiniband/exp/context.h"
#include "prm/prm.h"

/* Symbols that the version script exports. */
#define HV_EXPORT __attribute__((visibility("default")))

struct hv_dv_ops; /* guest-lib/verbs/dv.h: the functions that libmlx5.so.1 calls */
struct hv_cm_ops; /* guest-lib/verbs/cm/door.h: the functions that libhcasim.so calls */
struct hv_port_config;
struct hv_hca;
struct hv_file;
struct hv_reserved_qpns; /* user/reserved_qpn.c */
struct hv_context;

/*
 * User indices: the numbers by which CQEs of version 1 name their queue (user_index of QPs, DCTs,
 * SQs, RQs, XRC SRQs and XRQs). As in libmlx5, there is one numbering per context. A QP with an
 * ordinary SRQ keeps its own index.
 */
enum hv_rsc_type {
    HV_RSC_NONE,
    HV_RSC_QP,   /* struct hv_qp */
    HV_RSC_XSRQ, /* struct hv_srq that names its own CQ: an XRC SRQ, or one with tag matching */
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
    struct hv_rsc *chunk[HV_UIDX_MAX >> HV_UIDX_CHUNK_SHIFT]; /* allocated when first needed */
    uint32_t next; /* where the search for a free index begins */
};

struct hv_device {
    struct ibv_device ibv;
    const struct hv_dv_ops *dv;
    const struct hv_cm_ops *cm;
    unsigned index; /* among the process's devices, from 0 */
    const struct hv_port_config *config;
    struct hv_hca *hca; /* exists while any context is open */
    unsigned users;     /* number of open contexts */
    bool removed;       /* this process does not list it any more */
    bool watched;       /* a thread waits for the time to remove it */
};

/* A descriptor from which a program reads events, other than its context's own
 * (kernel/channels.c). */
struct hv_event_file {
    struct hv_event_queue queue;
    struct hv_hca *hca; /* NULL: the file that it belonged to is closed */
    const struct hv_file *file;
};

/* A doorbell page of 4 KiB in BAR0; its two BlueFlame registers alternate. */
struct hv_uar {
    uint32_t page;
    unsigned bf_toggle; /* 0 or 0x100 */
    gint qps;           /* QPs that ring on it (user/qp.c) */
};

struct hv_context {
    struct hv_hca *hca;
    struct hv_file *file; /* handles of its objects, shared with contexts that imported it */
    const struct hv_dv_ops *dv;
    uint16_t uid;   /* DevX user (CREATE_UCTX) of this context's commands */
    uint32_t tdn;   /* transport domain */
    uint32_t xrcdn; /* for XRC send QPs, whose program gives them no domain (kernel/qp.c) */
    bool has_xrcdn;
    bool has_peer; /* it finds memory of one GPU alone, which is peer_gpu (kernel/peer.c) */
    uint64_t peer_gpu;
    gint legacy_xrc;   /* it has had an XRC domain of ibv_open_xrc_domain() */
    bool allocated;    /* transport domain and page are allocated */
    struct hv_uar uar; /* doorbell page of all queues without a thread domain of their own */
    struct hv_async *async;
    GHashTable *record_pages; /* pinned pages of doorbell records, or NULL (kernel/memlock.c) */
    struct hv_uidx_table uidx;
    pthread_mutex_t reserved_lock;          /* around reserved_qpns */
    struct hv_reserved_qpns *reserved_qpns; /* blocks of QP numbers that it has reserved */
    pthread_mutex_t sig_lock;               /* around sig_mkeys, and the errors of these keys */
    GHashTable *sig_mkeys;       /* its keys with signatures by index, or NULL (user/dv_sig.c) */
    pthread_mutex_t crypto_lock; /* around crypto_login */
    struct mlx5dv_devx_obj *crypto_login; /* of mlx5dv_crypto_login(), or NULL (user/dek.c) */
    pthread_mutex_t task_lock;            /* around the posts of a list of ibv_exp_post_task() */
    /* frees its memory when it has no objects left; or NULL */
    void (*free)(struct hv_context *ctx);
    struct hv_context *next_kept;
    struct verbs_context_exp exp; /* directly before ibv (exp/context.c) */
    struct verbs_context ibv;     /* last: the size of its prefix is internal to the library */
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

/* Rounds up to a whole number of pages. */
static inline size_t hv_whole_pages(size_t size)
{
    return (size + PCI_PAGE - 1) & ~(size_t)(PCI_PAGE - 1);
}

/* -- objects ------------------------------------------------------------------------------------
 */

/*
 * refs and users count the references to an object: while there is any, destroying the object fails
 * with EBUSY. A new reference increments with g_atomic_int_inc(); the end of the reference
 * decrements. Objects in a PD refer to hv_real_pd(), as in the kernel. Queues that were given a
 * parent domain refer to the parent domain as well (hv_pd_use()).
 */
struct hv_td {
    struct ibv_td ibv;
    struct hv_uar uar; /* its own doorbell page: no lock is needed */
    gint refs;
};

/* A PD, or an object that refers to a PD: a parent domain, or the result of ibv_import_pd(). */
struct hv_pd {
    struct ibv_pd ibv;
    uint32_t pdn;
    enum {
        HV_PD_OWN,
        HV_PD_PARENT_DOMAIN,
        HV_PD_IMPORTED
    } kind;
    struct hv_pd *parent; /* the PD that it refers to, or NULL */
    /* users of this structure: the program until it deallocates it, and imported PDs */
    gint holders;
    struct hv_td *td; /* of a parent domain; may be NULL */
    void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
                   uint64_t resource_type);
    void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
    void *pd_context;
    gint refs;    /* objects in the PD; while there are any, dealloc fails with EBUSY */
    gint domains; /* parent domains of it, unknown to the kernel; also EBUSY */
    gint unpaged; /* queues in the PD that may not miss a page (kernel/odp.c) */
};

/* Memory of the program that a device may access (kernel/umem.h). */
struct hv_umem {
    uint64_t pinned;        /* pages (kernel/memlock.h) */
    struct gpu_claim *gpu;  /* NULL: it is not a GPU's (guest-lib/host/gpu.h) */
    void *mapping;          /* of a dma-buf that is not a GPU's: where it is mapped, or NULL */
    size_t mapped;          /* bytes of the mapping */
    bool read_only;         /* it can only be read */
    struct odp_region *odp; /* NULL: it is not paged on demand (kernel/odp.h) */
};

struct hv_mr {
    struct ibv_mr ibv;
    struct hv_pd *pd; /* the PD whose refs count it */
    uint64_t iova;
    struct hv_umem umem; /* if it was registered */
    struct hv_dm *dm;    /* the device memory that it is a part of, whose refs count it, or NULL */
    unsigned access;
    /* Of experimental verbs: memory that the library allocated for the region, which ends with it,
     * or NULL; memory that processes share, or NULL, then ibv.handle is its number and own_handle
     * the handle; how many keys a key of keys can name. */
    void *allocated;
    size_t allocated_len;
    struct hv_shared *shared;
    uint32_t own_handle;
    uint32_t max_klms;
    enum {
        HV_MR_USER,
        HV_MR_DMABUF,
        HV_MR_DM,
        HV_MR_NULL,
        HV_MR_PHYSICAL, /* bus addresses; no memory of its own */
        HV_MR_KEYS,     /* a key of keys (ibv_exp_create_mr()) */
        HV_MR_NO_RDMA,  /* shared memory without a key */
        HV_MR_IMPORTED,
        HV_MR_DV /* mlx5dv_mkey and similar */
    } kind;
};

/* Device memory. An imported one has a mapping of its own; the rest is the owner's. */
struct hv_dm {
    struct ibv_dm ibv;
    void *map;     /* where the program sees it, or NULL */
    size_t length; /* bytes that were asked for */
    bool imported;
    uint64_t addr;        /* offset in BAR0 */
    uint32_t size;        /* bytes that the device gave */
    gint refs;            /* MRs */
    pthread_mutex_t lock; /* around the members below */
    uint32_t ops;         /* a bit for each operation that has an address */
    uint64_t op_addr[32]; /* offset in BAR0 */
};

struct hv_xrcd {
    struct ibv_xrcd ibv;
    uint32_t handle;
    uint32_t xrcdn;
    struct hv_xrcd_inode *inode; /* shared by all that opened the same file, or NULL */
    gint refs;
};

struct hv_ah {
    struct ibv_ah ibv;
    struct hv_pd *pd;                /* the PD whose refs count it */
    struct prm_wqe_av av[1];         /* address vector, in the layout of UD and DC WQEs */
    pthread_mutex_t lock;            /* around mapping */
    struct mlx5dv_devx_obj *mapping; /* made by mlx5dv_map_ah_to_qp(), or NULL */
};

struct hv_cq {
    union {
        struct ibv_cq ibv;
        struct ibv_cq_ex ex;
    };
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint32_t cqn, log_size;
    uint32_t comp_vector; /* the vector whose EQ gets its events */
    unsigned cqe_size;    /* 64 or 128 */
    bool pads;            /* all 128 bytes of a CQE are written */
    uint8_t compression;  /* enum mlx5dv_cqe_comp_res_format; 0: none */
    bool real_time;       /* time stamps are those of the card's real-time clock */
    uint64_t pinned;      /* pages (kernel/memlock.h) */
    uint32_t *dbrec;      /* [0] consumer index, [1] arm word, big-endian */
    struct hv_uar *uar;
    gint users; /* QPs (counted once each for send and receive), WQs, XRC SRQs */
};

/* A work queue's ring: WQE index -> wr_id. */
struct hv_wq {
    uint64_t *wrid;
    /* of an SQ, by WQEBB index: the enum ibv_wc_opcode of WQEs that a CQE does not distinguish
     * (UMR, NOP: LOCAL_INV, BIND_MW, DRIVER1; raw WQEs DRIVER2; MMO: DRIVER3) */
    uint8_t *wr_data;
    uint32_t wqe_cnt;  /* power of two: WQEBBs of an SQ, WQEs of an RQ */
    uint32_t max_post; /* WQEs that may be outstanding */
    bool unchecked;    /* more may be: the program sees to it (of ibv_exp_create_qp()) */
    uint32_t head;     /* under the lock */
    uint32_t tail;     /* under its CQ's lock; posting reads it before reusing table entries */
    uint32_t max_gs;
    uint32_t wqe_shift;
    uint8_t *buf;
    pthread_spinlock_t lock;
    /* the WQEs that only a GPU may post, because the ring or its record is the GPU's (max_post is
     * then 0) */
    uint32_t gpu_max;
};

struct hv_tm; /* user/tm.h */

/* Where the memory of a ring or doorbell record comes from (user/buf.c). */
enum hv_from {
    HV_FROM_HELD,    /* the library's own */
    HV_FROM_HUGE,    /* the library's own, on huge pages */
    HV_FROM_PROGRAM, /* the parent domain's allocators */
    HV_FROM_PEER,    /* a peer's allocator (exp/peer.h) */
};

struct hv_srq {
    struct ibv_srq ibv;
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint64_t pinned; /* pages (kernel/memlock.h) */
    uint32_t srqn;
    struct hv_pd *pd; /* the PD whose refs count it and whose allocators supply its memory */
    enum hv_from ring_from, dbrec_from;
    uint64_t *wrid;
    uint32_t wqe_cnt, max_gs, wqe_shift;
    uint32_t ring_cnt; /* WQEs in the ring; wqe_cnt of them can be posted at a time */
    /* the WQEs that may be posted: a list from head to tail; the tail itself is not posted */
    uint32_t head, tail;
    /* the other WQEs of the ring: a list in which WQEs rest whose pages were missing */
    uint32_t rest_head, rest_tail;
    uint16_t counter;
    uint32_t *dbrec;
    bool single_threaded;
    bool on_gpu; /* only a GPU posts: the ring or its record is the GPU's. head is then tail */
    pthread_spinlock_t lock;
    enum ibv_srq_type type;
    int uidx; /* of an SRQ that names its CQ, else -1 */
    struct hv_xrcd *xrcd;
    struct hv_cq *cq;  /* of an XRC SRQ, or one with tag matching */
    uint32_t max_tags; /* with tag matching: entries of its list */
    struct hv_tm *tm;  /* with tag matching: state of the user half, or NULL */
    gint users;        /* QPs */
    uint32_t events_reported;
    void *legacy; /* ibv_create_xrc_srq(): the program's struct ibv_srq_legacy; else NULL */
};

/* A WQ (ibv_create_wq()). */
struct hv_rwq {
    struct ibv_wq ibv;
    struct hv_hca *hca;
    uint8_t *ring;
    size_t ring_size;
    uint64_t pinned; /* pages (kernel/memlock.h) */
    enum hv_from ring_from, dbrec_from;
    uint32_t rqn;
    int uidx;
    uint32_t *dbrec; /* [0] receive, big-endian */
    struct hv_wq rq;
    struct hv_pd *pd;
    gint users; /* indirection tables */
    uint32_t events_reported;
    /* Striding (mlx5dv_create_wq(), ibv_exp_create_wq()): log2 of the strides of a WQE, or 0; log2
     * of a stride's bytes; two bytes are left before each packet */
    uint8_t log_strides, log_stride;
    bool stride_shift;
    uint32_t *strides_used; /* with striding, of each WQE: strides whose CQEs were polled */
};

struct hv_mcast;
struct hv_exp_dct; /* guest-lib/verbs/exp/dct.h */

/* The kind of a QP of type IBV_QPT_DRIVER. */
enum hv_dc {
    HV_DC_NONE, /* another type */
    HV_DC_DCI,
    HV_DC_DCT
};

/* An indirection table of WQs (wq.c). */
struct hv_ind_table {
    struct ibv_rwq_ind_table ibv;
    uint32_t rqtn;
    gint users; /* RSS QPs */
    unsigned num;
    struct hv_rwq *wqs[];
};

/* A rate of packet pacing, as a program asks for it. */
struct hv_rate {
    uint32_t kbps;    /* 0: no limit */
    uint32_t burst;   /* bytes that may leave at once; 0: the program does not say */
    uint16_t typical; /* usual bytes of a packet; 0: likewise */
};

struct hv_qp {
    union {
        struct ibv_qp ibv;
        struct ibv_qp_ex ex;
    };
    struct hv_hca *hca;
    /* What the QP uses now. The public fields say what the program gave and was told. */
    struct hv_cq *send_cq, *recv_cq;
    struct hv_srq *srq;
    enum ibv_qp_state state;
    uint8_t *ring; /* without the send queue, if hv_qp_has_two_rings() */
    size_t ring_size;
    uint32_t *dbrec; /* [0] receive, [1] send counter, big-endian */
    enum hv_from ring_from, dbrec_from;
    struct hv_uar *uar;
    struct hv_wq sq, rq;
    int uidx;           /* user index (user_index of its contexts): hv_uidx_alloc(), HV_RSC_QP */
    bool rx_csum_valid; /* l3_ok and l4_ok of its CQEs are valid: a raw packet QP */
    bool block_self_mcast, strip_vlan, scatter_fcs, end_padding;
    bool tunnels; /* its TIR looks into tunnels (MLX5_QP_FLAG_TUNNEL_OFFLOADS) */
    bool sq_sig_all;
    /* scatter_to_cqe: CQEs may hold small data; allow_scatter_to_cqe: also that of READs if not all
     * WQEs are signalled (MLX5_QP_FLAG_SCATTER_CQE, _ALLOW_SCATTER_CQE). */
    bool scatter_to_cqe, allow_scatter_to_cqe;
    uint16_t uid;             /* user of its commands; the kernel's for XRC targets */
    struct hv_xrcd *xrcd;     /* XRC targets only */
    struct hv_ind_table *ind; /* RSS QPs only, which have no queues of their own */
    enum hv_dc dc;
    bool dci_streams; /* it has streams; the next two numbers describe them */
    uint8_t dci_log_streams, dci_log_errored;
    uint64_t dct_access_key;
    /* DCTs only: the command while it is put together (kernel/dct.c) */
    struct prm_create_dct_in *dct;
    bool dct_exists;    /* the DCT was created in the device and has its number */
    bool ooo;           /* data may be placed out of order */
    bool ooo_rw;        /* data of READs and WRITEs may be (the experimental verbs) */
    uint32_t exp_flags; /* of ibv_exp_create_qp(): enum ibv_exp_qp_create_flags */
    /* a DCT of the experimental verbs, which has asynchronous events of its own, or NULL */
    struct hv_exp_dct *exp_dct;
    /* ECE options (enhanced connection establishment): ece_options of mlx5_ib's commands, which the
     * library sets before uverbs_create_qp() and uverbs_modify_qp(), and of their answers. */
    struct {
        uint32_t asked, answered;
    } ece;
    /* Used by the kernel half only: */
    uint64_t pinned;            /* pages (memlock.h) */
    unsigned access;            /* IBV_ACCESS_ of the last ibv_modify_qp() */
    uint8_t max_dest_rd_atomic; /* of the last ibv_modify_qp() */
    struct {
        bool known; /* qpn, gid and mac are given */
        uint32_t qpn;
        union ibv_gid gid;
        uint8_t mac[6], timeout, retry_cnt, rnr_retry;
    } peer; /* of the last ibv_modify_qp(), for lines of the log */
    /* multicast groups and flows; destroying the QP then fails with EBUSY */
    gint refs;
    struct hv_mcast *groups;   /* multicast groups that it is in (mcast.c) */
    struct hv_qp *next_handle; /* circular list of its handles (xrc_tgt.c); NULL: only this one */
    bool registered;           /* XRC targets: the handle of ibv_reg_xrc_rcv_qp() */
    uint32_t rqn, sqn, tirn, tisn; /* raw packet QPs */
    uint8_t rq_state, sq_state;    /* states of these queues when last set or queried */
    struct hv_rate rate;           /* of the SQ, while it is ready */
    uint16_t rate_index;           /* of that rate (kernel/rate.h); 0: no limit */
};

/* ::ffff:a.b.c.d */
static inline bool hv_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

/* Multicast: ff00::/8, or 224.0.0.0/4 (rdma_is_multicast_addr()). */
static inline bool hv_gid_is_multicast(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xff || (hv_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe);
}

static inline struct hv_pd *hv_pd(struct ibv_pd *pd)
{
    return (struct hv_pd *)pd;
}

/* The PD that a QP uses. An XRC target uses none (NULL), although its structure names the PD that
 * the program gave: librdmacm reads it from there. */
static inline struct ibv_pd *hv_qp_pd(const struct hv_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_XRC_RECV ? NULL : qp->ibv.pd;
}

/* Whether the send queue has a ring of its own, at sq.buf: in a raw packet QP that also receives.
 */
static inline bool hv_qp_has_two_rings(const struct hv_qp *qp)
{
    return qp->ibv.qp_type == IBV_QPT_RAW_PACKET && qp->sq.wqe_cnt && qp->rq.wqe_cnt;
}

/* The PD that objects are in: the last one in the chain of references. */
static inline struct hv_pd *hv_real_pd(struct ibv_pd *pd)
{
    struct hv_pd *real = hv_pd(pd);

    while (real->parent) {
        real = real->parent;
    }
    return real;
}

static inline struct hv_cq *hv_cq(struct ibv_cq *cq)
{
    return (struct hv_cq *)cq;
}

/* The type IBV_QPT_XRC of OFED 1.5, which rdma-core does not have. */
#define HV_QPT_XRC ((enum ibv_qp_type)5)

/* A program that made the SRQ by ibv_create_xrc_srq() has another structure, a struct
 * ibv_srq_legacy, which has this handle, and a pointer to the library's at this offset
 * (exp/xrc.c). */
#define HV_LEGACY_SRQ    0xffffffffu
#define HV_LEGACY_SRQ_AT 144

static inline struct hv_srq *hv_srq(struct ibv_srq *srq)
{
    if (G_UNLIKELY(srq->handle == HV_LEGACY_SRQ)) {
        return *(struct hv_srq **)((char *)srq + HV_LEGACY_SRQ_AT);
    }
    return (struct hv_srq *)srq;
}

/* The structure that the program has. */
static inline struct ibv_srq *hv_srq_of_program(struct hv_srq *srq)
{
    return srq->legacy ? srq->legacy : &srq->ibv;
}

static inline struct hv_qp *hv_qp(struct ibv_qp *qp)
{
    return (struct hv_qp *)qp;
}

static inline struct hv_rwq *hv_rwq(struct ibv_wq *wq)
{
    return (struct hv_rwq *)wq;
}

static inline struct hv_ah *hv_ah(struct ibv_ah *ah)
{
    return (struct hv_ah *)ah;
}

static inline struct hv_dm *hv_dm(struct ibv_dm *dm)
{
    return (struct hv_dm *)dm;
}

static inline struct hv_mr *hv_mr(struct ibv_mr *mr)
{
    return (struct hv_mr *)mr;
}

#endif
