/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel half, for the whole library: errnos, handles, and the HCA. uverbs.h has the requests
 * that a program makes to a kernel.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_KERNEL_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_KERNEL_H

#include "guest-lib/verbs/kernel/refuse.h"

struct hv_port_config;

/* -- the two halves -----------------------------------------------------------------------------
 */

/*
 * Programs can tell by errno what rdma-core does in the process and what it asks the kernel for. So
 * the kernel half of a call returns through hv_kernel(), as a system call does: a failure is stored
 * in errno, too, and a success leaves errno alone. What libmlx5 refuses by itself is returned, and
 * is stored in errno only where libmlx5 stores it.
 */
static inline int hv_kernel(int err)
{
    if (err) {
        errno = err;
    }
    return err;
}

/* Kinds of objects with a handle, as the object types of uverbs (handles.c). */
enum hv_handle_kind {
    HV_HANDLE_PD, /* struct hv_pd that is neither imported nor a parent domain */
    HV_HANDLE_MR, /* struct hv_mr that was registered */
    HV_HANDLE_MW, /* struct ibv_mw; the kinds below: the structure in verbs.h */
    HV_HANDLE_AH,
    HV_HANDLE_CQ,
    HV_HANDLE_SRQ,
    HV_HANDLE_QP,
    HV_HANDLE_XRCD,
    HV_HANDLE_WQ,
    HV_HANDLE_IND_TABLE,
    HV_HANDLE_FLOW,
    HV_HANDLE_DM,      /* struct hv_dm that is not imported */
    HV_HANDLE_MATCHER, /* struct mlx5dv_flow_matcher; from here on, kinds of mlx5_ib */
    HV_HANDLE_DEVX_OBJ,
    HV_HANDLE_UMEM,        /* struct hv_dv_umem */
    HV_HANDLE_UAR,         /* struct hv_dv_uar */
    HV_HANDLE_PP,          /* struct hv_dv_pp */
    HV_HANDLE_FLOW_ACTION, /* struct hv_flow_action */
    HV_HANDLE_COUNTERS     /* struct hv_counters */
};
#define HV_HANDLE_KINDS (HV_HANDLE_COUNTERS + 1)

/* Makes the file of a newly opened device: the handles of one context, until others share them
 * (handles.c). */
struct hv_file *hv_file_new(void);
struct hv_file *hv_file_share(struct hv_file *file);
/* A context leaves its file. From now on the file owns the context's memory, because objects that
 * were made through it may stay. False: other contexts stay. */
bool hv_file_leave(struct hv_file *file, struct hv_context *ctx);
/* Calls call() for each of the contexts that have left. */
void hv_file_each_context(struct hv_file *file, void (*call)(struct hv_context *ctx));
/* To be called when the last context has left. Ends each object with the function of its kind,
 * which returns 0 or errno: the youngest first, and again and again as long as any object can be
 * ended. Returns how many cannot be ended. */
unsigned hv_file_end_objects(struct hv_file *file, int (*const end[])(void *obj));
bool hv_file_has_objects(struct hv_file *file);
/* Frees the file. keep: its contexts stay in memory; otherwise they are freed, too. */
void hv_file_free(struct hv_file *file, bool keep);

uint32_t hv_handle_add(struct ibv_context *context, enum hv_handle_kind kind, void *obj);
void hv_handle_del(struct ibv_context *context, uint32_t handle);
/* The object of a handle. NULL with *err: ENOENT: there is none; EINVAL: the object is of another
 * kind. */
void *hv_handle_get(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    int *err);
/* As hv_handle_get(), but calls use(obj, arg) while the handle cannot be deleted. False: there is
 * no such object (*err). */
bool hv_handle_use(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                   void (*use)(void *obj, void *arg), void *arg, int *err);
/* Calls found() for each object of a kind until it returns true. Meanwhile none of them can be
 * deleted. */
bool hv_handle_find(struct ibv_context *context, enum hv_handle_kind kind,
                    bool (*found)(void *obj, void *arg), void *arg);
/* Whether a handle belongs to that object: 0, or an errno of hv_handle_get(). Also EINVAL if the
 * handle belongs to another object of the kind: a kernel would then act on that other object. */
int hv_handle_check(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    const void *obj);

/* The functions below check whether an object's handle is its own, for the kernel half of a call.
 * Each returns 0 or errno. */
static inline int hv_pd_check(struct ibv_pd *pd)
{
    return hv_handle_check(pd->context, HV_HANDLE_PD, pd->handle, hv_real_pd(pd));
}

static inline int hv_cq_check(struct ibv_cq *cq)
{
    return hv_handle_check(cq->context, HV_HANDLE_CQ, cq->handle, cq);
}

static inline int hv_xrcd_check(struct ibv_xrcd *xrcd)
{
    return hv_handle_check(xrcd->context, HV_HANDLE_XRCD, ((struct hv_xrcd *)xrcd)->handle, xrcd);
}

static inline int hv_srq_check(struct ibv_srq *ibsrq)
{
    struct hv_srq *srq = hv_srq(ibsrq);

    return hv_handle_check(srq->ibv.context, HV_HANDLE_SRQ, srq->ibv.handle, srq);
}

static inline int hv_qp_check(struct ibv_qp *qp)
{
    return hv_handle_check(qp->context, HV_HANDLE_QP, qp->handle, qp);
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

/* -- the HCA (hca.c) ---------------------------------------------------------------------------
 */

/* Brings up a device's HCA. NULL with *err. */
struct hv_hca *hv_hca_open(struct hv_device *device, const struct hv_port_config *config,
                           GError **err);
void hv_hca_close(struct hv_hca *hca);
/* Resets the function without the driver's knowledge, while it is in use. As in mlx5_core, commands
 * that destroy an object succeed from then on, and all others fail (EIO). Every context is told at
 * once (IBV_EVENT_DEVICE_FATAL); mlx5_core would notice only at its next health poll, after up to 2
 * s. */
void hv_hca_reset(struct hv_hca *hca);
/* Hot removal of the device while programs have it open, as if its card were pulled out of its slot
 * (ib_uverbs_remove_one(), mlx5_ib_disassociate_ucontext()). A command that is in progress ends
 * first. After that no frame comes or goes, doorbells have no effect, and polls find only what is
 * in the rings already. Each context is told (IBV_EVENT_DEVICE_FATAL). Channels are closed, and so
 * is the connection to the connection manager. Later requests fail (EIO), but destroying objects
 * succeeds. Memory stays. May be called from any thread, without the HCA's locks, once. */
void hv_hca_remove(struct hv_hca *hca);
bool hv_is_removed(const struct hv_hca *hca);
/* EIO if the device was removed, else 0. For requests that a kernel carries out without a command
 * to the device. */
static inline int hv_check_there(struct hv_hca *hca)
{
    return hv_is_removed(hca) ? hv_refuse(hca, EIO, "the device has been removed") : 0;
}
/* To be called in the child of fork(): the HCA stays with the parent. */
void hv_hca_abandon(struct hv_hca *hca);
/* To be called around fork(), in the parent: the HCA's threads sleep meanwhile. */
void hv_hca_before_fork(struct hv_hca *hca);
void hv_hca_after_fork(struct hv_hca *hca);

/* Executes a command; may be called from any thread. Returns 0 or the errno that mlx5_core derives
 * from its status (cmd_status_to_err()). out is what the device wrote, or all zero if it did not
 * answer. */
int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len);
/* As hv_cmd(), for commands whose output is not read. */
int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len);

/* To be called around all other work with the driver. False: the HCA is the parent's. */
bool hv_cmd_begin(struct hv_hca *hca, int *state);
void hv_cmd_end(struct hv_hca *hca, int state);

/* The errno that mlx5_core's cmd_status_to_err() derives from a status, or from DRV_TIMEOUT. */
int hv_status_errno(int status);

/* The device's object for a shared receive queue: an RMP, an XRC SRQ or an XRQ (srq.c). */
const struct prm_object *hv_srq_object(const struct hv_srq *srq);

/* Sends DRAIN_DCT, and waits until the device says that the DCT's last connection is gone. Returns
 * 0 or errno. */
int hv_drain_dct(struct hv_hca *hca, uint16_t uid, uint32_t dctn);

/* Calls drv_umr() under the command lock; may be called from any thread. Returns 0 or errno. */
int hv_umr(struct hv_hca *hca, uint32_t key, uint64_t mask, const struct prm_mkc *mkc);

/* Rings a doorbell that arms something (value as in fw_mmio_write(), size 8), then lets the HCA
 * work. Returns 0, or EIO if hv_is_ours() is false. A doorbell of a removed device has no effect
 * and returns 0. */
int hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
/* As hv_doorbell(), for a doorbell that announces work. Usually a frame is on the wire before this
 * returns; in a program that polls, the work may wait for the program's next poll. */
int hv_doorbell_soon(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
/* To be called when the process is about to end: does the work that still waits. */
void hv_finish(struct hv_hca *hca);

/* Lets the HCA work for a moment (received frames, timers, doorbells), if no other thread does.
 * Polling functions call it when they find nothing. True: something may have come, so they should
 * look again. */
bool hv_progress(struct hv_hca *hca);

/* Whether an HCA of this process has a trace file. Adds an event of the program to that of the HCA
 * (local_trace()). */
extern bool hv_traces;
void hv_trace_event(struct hv_hca *hca, const char *event, size_t len);
/* Polling functions call this when they have found something, without the CQ's lock. */
void hv_progress_now_and_then(struct hv_hca *hca);

/* False: this is a child of fork(), and the HCA has stayed with the parent (process.c). */
bool hv_is_ours(struct hv_hca *hca);

/* Completion vectors: each is an EQ with an interrupt of its own. A card has one for each
 * processor; here a program has the same number on every machine. */
#define HV_COMP_VECTORS 8
/* The EQ of a completion vector. */
uint32_t hv_comp_eqn(const struct hv_hca *hca, uint32_t vector);

/* The driver below: the capabilities, which it read at the start, and the async EQ. */
struct drv *hv_drv(struct hv_hca *hca);

/* Zeroed, page-aligned memory for rings. */
void *hv_ring_alloc(size_t size);
void hv_ring_free(void *ptr, size_t size);
/* A doorbell record of 8 bytes in a cache line of its own, zeroed. */
uint32_t *hv_dbrec_alloc(struct hv_context *ctx);
void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec);

/* Maps a part of the HCA's device memory, or of its registers, for the program: offset in BAR0 and
 * size in bytes, multiples of a page. NULL with errno. hv_forget_registers(): the registers are
 * gone. */
void *hv_map_device_memory(struct hv_hca *hca, uint64_t offset, size_t size);
void *hv_map_registers(struct hv_hca *hca, uint64_t offset, size_t size);
void hv_forget_registers(struct hv_hca *hca, uint64_t offset, size_t size);

/* Reads a register of the initialization segment, which a program may have mapped. A removed device
 * reads as 0 (rdma_umap_fault()). */
uint32_t hv_iseg_read(struct hv_hca *hca, size_t offset);

/* A field of the current general device capabilities; of those for Ethernet. */
#define HV_CAP(hca, field) PRM_GET(cmd_hca_cap, hv_drv(hca)->cap, field)

/* Whether queues may have time stamps of the card's real-time clock (mlx5_ib: rt_supported()). */
static inline bool hv_has_real_time(struct hv_hca *hca)
{
    return HV_CAP(hca, sq_ts_format) == PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME &&
           HV_CAP(hca, rq_ts_format) == PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME;
}

/* The format of time stamps that a CQ asks of its queues, a PRM_TS_FORMAT_ (mlx5_ib:
 * get_ts_format()). */
static inline uint8_t hv_cq_ts_format(const struct hv_cq *cq)
{
    return cq->real_time ? PRM_TS_FORMAT_REAL_TIME : PRM_TS_FORMAT_FREE_RUNNING;
}
#define HV_CAP_2(hca, field) PRM_GET(cmd_hca_cap_2, hv_drv(hca)->cap_2, field)
/* A field of the capabilities of flow tables of a kind, such as nic_receive. */
#define HV_FLOW_CAP(hca, kind, field)                                                              \
    PRM_GET(flow_table_prop_layout,                                                                \
            PRM_PTR(flow_table_nic_cap, hv_drv(hca)->flow_cap, flow_table_properties_##kind),      \
            field)
#define HV_QOS_CAP(hca, field) PRM_GET(qos_cap, hv_drv(hca)->qos_cap, field)
#define HV_DM_CAP(hca, field)  PRM_GET(device_mem_cap, hv_drv(hca)->device_mem_cap, field)
#define HV_ETH_CAP(hca, field)                                                                     \
    PRM_GET(per_protocol_networking_offload_caps, hv_drv(hca)->eth_cap, field)

/* Whether the device writes the answer of an atomic in the host's order; otherwise big-endian. */
static inline bool hv_atomics_have_host_order(struct hv_hca *hca)
{
    return PRM_GET(atomic_caps, hv_drv(hca)->atomic_cap, atomic_req_8B_endianness_mode);
}

/* A thread that polled is about to sleep until an event comes: the HCA's helper takes over at
 * once. */
void hv_rest(struct hv_hca *hca);

/* Allocates a UAR page of the context's user (pd.c): 0 or errno. */
int hv_uar_alloc(struct hv_context *ctx, struct hv_uar *uar);
void hv_uar_free(struct hv_context *ctx, struct hv_uar *uar);

/* The number of entries of the port's GID table. */
unsigned hv_gid_table_len(struct hv_hca *hca);
/* The MAC address of a GID on the port's wire (gid.c). The MAC addresses of multicast GIDs (33:33
 * and 01:00:5e) and of the port's own GIDs are known; for others, the wire is asked. */
/* how long the wire is asked before the address counts as unused */
#define HV_RESOLVE_NS 3000000000ull
/* Returns 0 or errno: EAGAIN: the wire is being asked; EINVAL; EHOSTUNREACH; EIO. Does not wait. */
int hv_find_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                const union ibv_gid *dgid, uint8_t mac[6]);
/* As hv_find_mac(), but waits: returns ETIMEDOUT instead of EAGAIN, as ib_resolve_eth_dmac(). */
int hv_resolve_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                   const union ibv_gid *dgid, uint8_t mac[6]);
/* Says why hv_find_mac() or hv_resolve_mac() failed with err for this address, and returns err.
 * verb: how the line begins, as far as the name of the ibv_ah_attr's first member. */
int hv_refuse_path(struct hv_context *ctx, int err, const char *verb,
                   const struct ibv_ah_attr *attr);
#define HV_GIDS_USED                                                                               \
    "0 (link-local) and 1 (IPv4) are in use, and 2 and 3, which are the same for RoCE v1"
#define HV_NOT_GLOBAL                                                                              \
    "is_global is 0, but RoCE has no LIDs: set is_global, grh.dgid and grh.sgid_index "            \
    "(an option of most programs, such as -g 1)"
/* Sets the callback that is called, with locks held, when hv_find_mac() has an answer; it must only
 * make a note. */
void hv_on_neighbour(struct hv_hca *hca, void (*answered)(void *opaque), void *opaque);
/* hv_on_host_end(): sets the callback that is called, with locks held, when a host of the wire may
 * have ended; it must only make a note. False: ends are not reported, so the caller must check by
 * itself. hv_host_at() and hv_has_ended(): as wire_host_at() and wire_has_ended(). */
bool hv_on_host_end(struct hv_hca *hca, void (*ended)(void *opaque), void *opaque);
uint64_t hv_host_at(struct hv_hca *hca, const uint8_t mac[6]);
bool hv_has_ended(struct hv_hca *hca, uint64_t host);
/* Whether another host of the wire is known to have this address (wire_knows()), and whether the
 * wire can tell that at all. */
bool hv_knows_host(struct hv_hca *hca, const uint8_t mac[6]);
bool hv_tells_hosts(struct hv_hca *hca);

#endif
