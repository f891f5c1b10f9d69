/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the user half share: user indices, memory of rings, doorbells, events that wait
 * to be acknowledged, and the operations of a context. Queues have headers of their own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_USER_H
#define HCASIM_GUEST_LIB_VERBS_USER_USER_H

#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "guest-lib/verbs/kernel/shadow.h"
#include "guest-lib/verbs/user/queues.h"

/* Bytes of a doorbell record. */
#define HV_DBREC_SIZE 8
/* Why a post fails on a queue whose ring or record an allocator put into memory of a GPU. */
#define HV_GPU_POSTS "the %s lies in memory of a GPU, so only the GPU can post to it"

/* The context's user indices (uidx.c). A zeroed table is empty; hv_uidx_fini() frees it at close.
 * hv_uidx_alloc() returns a number below HV_UIDX_NONE, or -1 (ENOMEM). hv_uidx_free() is called
 * under the locks of the CQs whose CQEs may name the object. */
int hv_uidx_alloc(struct hv_context *ctx, enum hv_rsc_type type, void *obj);
void hv_uidx_free(struct hv_context *ctx, uint32_t uidx);
void hv_uidx_fini(struct hv_context *ctx);
/* The object of a user index. NULL: there is none. */
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

/* Allocates memory for a ring or doorbell record (buf.c). It comes from the allocators of a parent
 * domain, unless they leave this type (MLX5DV_RES_TYPE_) to the library; *from says which. pd may
 * be NULL. The library's memory is zeroed and begins at a page. The program's alloc() must return
 * zeroed memory with that alignment: the library writes nothing to it that libmlx5 does not write,
 * because it may be memory that the CPU cannot reach. NULL with errno ENOMEM: there is no memory.
 */
void *hv_buf_alloc(struct hv_pd *pd, size_t size, size_t alignment, uint64_t type,
                   enum hv_from *from);
void hv_buf_free(struct hv_pd *pd, void *ptr, size_t size, uint64_t type, enum hv_from from);
uint32_t *hv_db_alloc(struct hv_context *ctx, struct hv_pd *pd, enum hv_from *from);
void hv_db_free(struct hv_context *ctx, struct hv_pd *pd, uint32_t *dbrec, enum hv_from from);

/* Rings the doorbell of a send queue: writes the first 8 bytes of the control segment to the
 * BlueFlame register. Returns 0 or EIO. The doorbell only says that there is something new; the
 * doorbell record says how much. So it is rung without the queue's lock, and a late doorbell asks
 * for work that was done already. */
static inline int hv_ring_sq(struct hv_hca *hca, struct hv_uar *uar, uint64_t ctrl)
{
    unsigned toggle = __atomic_load_n(&uar->bf_toggle, __ATOMIC_RELAXED);

    __atomic_store_n(&uar->bf_toggle, toggle ^ 0x100, __ATOMIC_RELAXED);
    return hv_doorbell_soon(
        hca, (uint64_t)uar->page * PCI_PAGE + PRM_OFFSET(uar, blue_flame) + toggle, ctrl);
}

/* The device's clock: nanoseconds per cycle, shifted left by HV_CLOCK_SHIFT. 0: the device has no
 * clock. */
#define HV_CLOCK_SHIFT 21
uint32_t hv_clock_mult(struct ibv_context *ctx);

/* Opens and closes a context's queue of asynchronous events (events.c): 0 or errno. */
int hv_async_open(struct hv_context *ctx);
void hv_async_close(struct hv_context *ctx);
/* Removes the object's events that have not been read, and waits until all its events that were
 * handed out are acknowledged, as ibv_destroy_*() do. */
void hv_event_drain_cq(struct user_cq *cq);
void hv_event_drain_qp(struct user_qp *qp);
void hv_event_drain_srq(struct hv_srq *srq);
void hv_event_drain_wq(struct hv_rwq *wq);
void hv_event_drain_dct(struct hv_exp_dct *dct);

/* Fork protection (process.c). hv_fork_note_memory(): memory is registered or a ring was made, so a
 * later ibv_fork_init() may be too late. hv_fork_init_from_env(): does what the environment asks
 * for, when devices are listed for the first time. */
void hv_fork_note_memory(void);
void hv_fork_init_from_env(void);

/* Ends the address handle's mapping to a QP, if it has one. */
void hv_ah_unmap(struct hv_ah *ah);

/* Gives back the context's reserved QP numbers when it closes. */
void hv_reserved_qpns_free(struct hv_context *ctx);

/* Gives back the memory that the library allocated or mapped for a region. */
void hv_mr_free_memory(struct hv_mr *mr);

/* Returns a WQE to the SRQ's list of free WQEs. */
void hv_srq_free_wqe(struct hv_srq *srq, uint16_t index);
/* Posts a receive again that the device gave back because pages were missing. */
void hv_srq_fault(struct hv_srq *srq, uint16_t index);

/* Each fills in the operations of its file for a new context. */
void hv_clock_ops(struct verbs_context *ops);
void hv_pd_ops(struct verbs_context *ops);
void hv_mr_ops(struct verbs_context *ops);
void hv_mw_ops(struct verbs_context *ops);
void hv_dm_ops(struct verbs_context *ops);
void hv_cq_ops(struct verbs_context *ops);
void hv_srq_ops(struct verbs_context *ops);
void hv_qp_ops(struct verbs_context *ops);
void hv_wq_ops(struct verbs_context *ops);

#endif
