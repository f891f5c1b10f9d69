/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel half, as the whole library uses it: errnos, handles, and the HCA. What a program asks
 * a kernel for is in uverbs.h.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_KERNEL_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_KERNEL_H

#include "guest-lib/verbs/verbs.h"

struct hv_port_config;

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
    HV_HANDLE_FLOW,
    HV_HANDLE_MATCHER, /* struct mlx5dv_flow_matcher; those of mlx5_ib from here on */
    HV_HANDLE_DEVX_OBJ,
    HV_HANDLE_UMEM, /* struct hv_dv_umem */
    HV_HANDLE_UAR   /* struct hv_dv_uar */
};
#define HV_HANDLE_KINDS (HV_HANDLE_UAR + 1)

/* The handles of a new open device: one context's, until others share it (handles.c). */
struct hv_file *hv_file_new(void);
struct hv_file *hv_file_share(struct hv_file *file);
/* A context leaves. Its memory is the file's from now on, for objects that were made through it may
 * stay. False: other contexts stay. */
bool hv_file_leave(struct hv_file *file, struct hv_context *ctx);
/* Calls for each of the contexts that have left. */
void hv_file_each_context(struct hv_file *file, void (*call)(struct hv_context *ctx));
/* Ends each object with the function of its kind, 0 or errno, the youngest first, again and again
 * while any can be ended. Returns how many cannot. The last context has left. */
unsigned hv_file_end_objects(struct hv_file *file, int (*const end[])(void *obj));
bool hv_file_has_objects(struct hv_file *file);
/* Frees the file, and its contexts, unless they are kept. */
void hv_file_free(struct hv_file *file, bool keep);

uint32_t hv_handle_add(struct ibv_context *context, enum hv_handle_kind kind, void *obj);
void hv_handle_del(struct ibv_context *context, uint32_t handle);
/* What a handle stands for. NULL with *err: ENOENT: nothing, EINVAL: an object of another kind. */
void *hv_handle_get(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    int *err);
/* As hv_handle_get(), but calls use(obj, arg) before the handle can go. False: there is no such
 * object, with *err. */
bool hv_handle_use(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                   void (*use)(void *obj, void *arg), void *arg, int *err);
/* Calls for each object of a kind until it returns true, before any of them can go. */
bool hv_handle_find(struct ibv_context *context, enum hv_handle_kind kind,
                    bool (*found)(void *obj, void *arg), void *arg);
/* Whether a handle is that object's: 0, or errno as above. EINVAL, too, if it is another object's
 * of the kind, to which a kernel would do what was meant for this one. */
int hv_handle_check(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    const void *obj);

/* Whether an object's handle is its own, for the kernel half of a call: 0 or errno. */
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

static inline int hv_srq_check(struct ibv_srq *srq)
{
    return hv_handle_check(srq->context, HV_HANDLE_SRQ, srq->handle, srq);
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

/* Brings a device's HCA up. NULL with *err. */
struct hv_hca *hv_hca_open(struct hv_device *device, const struct hv_port_config *config,
                           GError **err);
void hv_hca_close(struct hv_hca *hca);
/* The function is reset behind the driver's back, in the midst of all: as mlx5_core does from then
 * on, commands that destroy succeed, and all others fail (EIO). Every context is told at once
 * (IBV_EVENT_DEVICE_FATAL); mlx5_core takes until it next looks at the device's health, 2 s. */
void hv_hca_reset(struct hv_hca *hca);
/* The device is removed beneath the programs that have it open, as if its card were pulled out of
 * its slot (ib_uverbs_remove_one(), mlx5_ib_disassociate_ucontext()). A command that is under way
 * ends first. Then no frame comes or goes, doorbells go nowhere, polls find what is in the rings
 * already; each context is told (IBV_EVENT_DEVICE_FATAL), channels are closed, and so is the way to
 * the connection manager. What is asked for then fails (EIO), but destroying succeeds. Memory
 * stays. Any thread, without the HCA's locks; once. */
void hv_hca_remove(struct hv_hca *hca);
bool hv_is_removed(const struct hv_hca *hca);
/* EIO if it is, else 0: of what a kernel would do without a command to the device. */
static inline int hv_check_there(struct hv_hca *hca)
{
    return hv_is_removed(hca) ? EIO : 0;
}
/* In the child of fork(): it has stayed with the parent. */
void hv_hca_abandon(struct hv_hca *hca);
/* Around fork(), in the parent: its threads sleep meanwhile. */
void hv_hca_before_fork(struct hv_hca *hca);
void hv_hca_after_fork(struct hv_hca *hca);

/* Executes a command; any thread. Returns 0 or the errno that mlx5_core makes of its status
 * (cmd_status_to_err()); out is what the device wrote, all zero if it did not answer. */
int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len);
/* For commands whose output nobody reads. */
int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len);

/* Around whatever else the driver does. False: the HCA is the parent's. */
bool hv_cmd_begin(struct hv_hca *hca, int *state);
void hv_cmd_end(struct hv_hca *hca, int state);

/* What cmd_status_to_err() of mlx5_core makes of a status, or of DRV_TIMEOUT. */
int hv_status_errno(int status);

/* What a shared receive queue is to the device: an RMP, an XRC SRQ or an XRQ (srq.c). */
const struct prm_object *hv_srq_object(const struct hv_srq *srq);

/* DRAIN_DCT, and waits until the device says that the DCT's last connection is gone: 0 or errno. */
int hv_drain_dct(struct hv_hca *hca, uint16_t uid, uint32_t dctn);

/* drv_umr(), as a command's: any thread; 0 or errno. */
int hv_umr(struct hv_hca *hca, uint32_t key, uint64_t mask, const struct prm_mkc *mkc);

/* Rings a doorbell that arms something: value as in fw_mmio_write(), size 8; then lets the HCA
 * work. 0, or EIO if hv_is_ours() is false. That of a removed device goes nowhere, and is 0. */
int hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
/* The same for one that says that there is work. In the usual case a frame is on the wire before
 * this returns; in a program that polls the work may wait for its next poll. */
int hv_doorbell_soon(struct hv_hca *hca, uint64_t bar_offset, uint64_t value);
/* The process is about to end: such work is done now. */
void hv_finish(struct hv_hca *hca);

/* Lets the HCA work for a moment if no other thread does (received frames, timers, doorbells).
 * Polling functions call it when they find nothing. True: they look again, for something may have
 * come. */
bool hv_progress(struct hv_hca *hca);
/* Polling functions call it when they have found something, without the CQ's lock. */
void hv_progress_now_and_then(struct hv_hca *hca);

/* False in a child of fork(): the HCA has stayed with the parent (process.c). */
bool hv_is_ours(struct hv_hca *hca);

/* Completion vectors: EQs with an interrupt of their own each. A card has one for each processor;
 * here a program has as many on every machine. */
#define HV_COMP_VECTORS 8
/* The EQ of one. */
uint32_t hv_comp_eqn(const struct hv_hca *hca, uint32_t vector);

/* The driver below: capabilities, which it has read at the start, and async EQ. */
struct drv *hv_drv(struct hv_hca *hca);

/* Zeroed, page-aligned memory for rings. */
void *hv_ring_alloc(size_t size);
void hv_ring_free(void *ptr, size_t size);
/* A doorbell record of 8 bytes in a cache line of its own, zeroed. */
uint32_t *hv_dbrec_alloc(struct hv_context *ctx);
void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec);

/* A register of the initialization segment, which a program may have mapped; 0 in a removed
 * device's place (rdma_umap_fault()). */
uint32_t hv_iseg_read(struct hv_hca *hca, size_t offset);

/* A field of the general device capabilities in use; of those for Ethernet. */
#define HV_CAP(hca, field)   PRM_GET(cmd_hca_cap, hv_drv(hca)->cap, field)
#define HV_CAP_2(hca, field) PRM_GET(cmd_hca_cap_2, hv_drv(hca)->cap_2, field)
#define HV_ETH_CAP(hca, field)                                                                     \
    PRM_GET(per_protocol_networking_offload_caps, hv_drv(hca)->eth_cap, field)

/* Who polled is about to sleep until an event comes: the HCA's helper takes over at once. */
void hv_rest(struct hv_hca *hca);

/* A UAR page of the context's user (pd.c): 0 or errno. */
int hv_uar_alloc(struct hv_context *ctx, struct hv_uar *uar);
void hv_uar_free(struct hv_context *ctx, struct hv_uar *uar);

/* Entries of the port's GID table. */
unsigned hv_gid_table_len(struct hv_hca *hca);
/* The MAC address of a GID on the port's wire (gid.c). Those of multicast GIDs, 33:33 and 01:00:5e,
 * and of the own ones are known; others' are asked for, on the wire. */
#define HV_RESOLVE_NS 3000000000ull /* as long as is asked before nobody has the address */
/* 0, or errno: EAGAIN: it is being asked for, EINVAL, EHOSTUNREACH, EIO. Does not wait. */
int hv_find_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                const union ibv_gid *dgid, uint8_t mac[6]);
/* The same, but waits: ETIMEDOUT instead of EAGAIN, as of ib_resolve_eth_dmac(). */
int hv_resolve_mac(struct hv_context *ctx, uint8_t port, unsigned sgid_index,
                   const union ibv_gid *dgid, uint8_t mac[6]);
/* Who is told that hv_find_mac() has an answer, with locks held: he only notes it. */
void hv_on_neighbour(struct hv_hca *hca, void (*answered)(void *opaque), void *opaque);
/* Likewise that a host of the wire may have ended (false: nothing is told, so who wants to know
 * looks); who is where, and whether it has (wire_host_at(), wire_has_ended()). */
bool hv_on_host_end(struct hv_hca *hca, void (*ended)(void *opaque), void *opaque);
uint64_t hv_host_at(struct hv_hca *hca, const uint8_t mac[6]);
bool hv_has_ended(struct hv_hca *hca, uint64_t host);

#endif
