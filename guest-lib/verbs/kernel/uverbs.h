/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that a program makes to a kernel (ib_uverbs, mlx5_ib): one function per command.
 *
 * Each returns 0 or an errno, which user/ returns through hv_kernel(). A function first checks the
 * handles of the objects that the program names, then the attributes, then sends commands to the
 * device. An object that it creates then has its number and handle, and is registered for events.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_UVERBS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_UVERBS_H

#include "guest-lib/verbs/kernel/kernel.h"

/* -- contexts (context.c) -----------------------------------------------------------------------
 */

/* Allocates the context's user (if it has none yet), its transport domain and its doorbell page.
 * From now on the context gets the HCA's asynchronous events. Whether or not this succeeds,
 * uverbs_put_context() gives all of it back. */
int uverbs_get_context(struct hv_context *ctx);
/* The context gets no events any more. */
void uverbs_forget_context(struct hv_context *ctx);
/* The context leaves its file, which frees it. If it is the file's last context, the objects that
 * are left in the file are ended. */
void uverbs_put_context(struct hv_context *ctx);
struct stat;
/* Shares the file behind a descriptor of one of the HCA's contexts, and returns its user. 0 or
 * errno: EINVAL: there is no such context; ENODEV: the device is removed. */
int uverbs_share_file(struct hv_hca *hca, const struct stat *wanted, struct hv_file **file,
                      uint16_t *uid);

/* Makes the peer of that name and number the context's (peer.c): 0 or errno; ENODEV: there is none.
 */
int uverbs_set_peer(struct hv_context *ctx, uint64_t peer_id, const char *name);
/* Whether a range is memory of a GPU, from which no CPU can load. */
bool uverbs_is_gpu_memory(const void *addr, size_t len);

/* -- domains (pd.c, xrcd.c) ---------------------------------------------------------------------
 */

int uverbs_alloc_pd(struct hv_pd *pd);
/* pd may be any object that refers to a PD. */
int uverbs_dealloc_pd(struct ibv_pd *pd);
/* Adds (1) or removes (-1) a reference of a queue to its PD. */
void uverbs_use_pd(struct ibv_pd *pd, int change);

int uverbs_close_xrcd(struct hv_xrcd *xrcd);

/* -- memory (mr.c, mw.c) ------------------------------------------------------------------------
 */

/* A flag of access beside those of IBV_ACCESS_: RDMA WRITEs to the region are tunneled atomics
 * (IB_EXP_ACCESS_TUNNELED_ATOMIC). */
#define HV_ACCESS_TUNNELED (1u << 31)
int uverbs_reg_mr(struct hv_mr *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                  unsigned access);
/* Registers a part of a dma-buf, which is memory of a GPU of this process. */
int uverbs_reg_dmabuf_mr(struct hv_mr *mr, struct ibv_pd *pd, uint64_t offset, size_t length,
                         uint64_t iova, int fd, unsigned access);
/* Registers bus addresses (mlx5_ib_phys_addr()); length 0: all of them. */
int uverbs_reg_physical_mr(struct hv_mr *mr, struct ibv_pd *pd, uint64_t start, uint64_t length,
                           unsigned access);
/* Creates a key of up to max_klms keys (mlx5_ib_alloc_mr()), or of equal ranges of them. */
int uverbs_create_keys_mr(struct hv_mr *mr, struct ibv_pd *pd, uint32_t max_klms,
                          bool equal_ranges);
int uverbs_rereg_mr(struct hv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
                    unsigned access);
int uverbs_dereg_mr(struct hv_mr *mr);
/* The paging of DC that libmlx5 reports (get_dc_odp_caps()): IBV_ODP_SUPPORT_ bits of the transport
 * scheme, also if the driver uses the other scheme (odp.c). */
uint32_t uverbs_dc_odp_caps(struct hv_hca *hca);
/* ibv_advise_mr() (odp_fault.c). */
int uverbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     const struct ibv_sge *list, uint32_t num);

/* -- device memory (dm.c)
 * ------------------------------------------------------------------------ */

/* Allocates dm->length bytes, aligned to 1 << log_align. */
int uverbs_alloc_dm(struct hv_dm *dm, uint32_t log_align);
/* Takes the memory of the handle away from the device; dm may be an imported one. */
int uverbs_free_dm(struct ibv_dm *dm);
/* Maps the memory for the program: dm->map. */
int uverbs_mmap_dm(struct hv_dm *dm);
/* Fills dm in from the memory that the handle belongs to. */
int uverbs_query_dm(struct hv_dm *dm, uint32_t handle);
/* Maps the addresses of an operation on the memory (MLX5_IB_METHOD_DM_MAP_OP_ADDR). */
int uverbs_map_dm_op(struct ibv_dm *dm, uint8_t op, void **addr);
int uverbs_reg_dm_mr(struct hv_mr *mr, struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
                     size_t length, unsigned access);

struct hv_mw {
    struct ibv_mw ibv; /* the program may change its rkey */
    struct hv_pd *pd;
    uint32_t key; /* the key as it was created */
};
int uverbs_alloc_mw(struct hv_mw *mw, enum ibv_mw_type type);
int uverbs_dealloc_mw(struct hv_mw *mw);

/* -- addresses (ah.c) ---------------------------------------------------------------------------
 */

/* mac: the MAC address of the destination, which is returned. */
int uverbs_create_ah(struct hv_ah *ah, const struct ibv_ah_attr *attr, uint8_t mac[6]);
int uverbs_destroy_ah(struct hv_ah *ah);

/* -- completion queues (cq.c) -------------------------------------------------------------------
 */

int uverbs_create_cq(struct hv_cq *cq, bool ignore_overrun);
int uverbs_destroy_cq(struct hv_cq *cq);
int uverbs_modify_cq(struct hv_cq *cq, const struct ibv_modify_cq_attr *attr);
int uverbs_ignore_overrun(struct hv_cq *cq, bool ignore);
/* uverbs_check_resize_cq(): whether the CQ may have so many entries. uverbs_resize_cq(): gives it
 * that ring. */
int uverbs_check_resize_cq(struct hv_cq *cq, int cqe);
int uverbs_resize_cq(struct hv_cq *cq, const uint8_t *ring, size_t size, unsigned log_size);

/* -- shared receive queues (srq.c) --------------------------------------------------------------
 */

int uverbs_create_srq(struct hv_srq *srq);
int uverbs_destroy_srq(struct hv_srq *srq);
/* Adds (1) or removes (-1) the SRQ's references to its objects. */
void uverbs_use_srq(struct hv_srq *srq, int change);
int uverbs_modify_srq(struct hv_srq *srq, const struct ibv_srq_attr *attr, int attr_mask);
int uverbs_query_srq(struct hv_srq *srq, uint32_t *limit);

/* -- work queues, indirection tables (wq.c) -----------------------------------------------------
 */

int uverbs_create_wq(struct hv_rwq *wq, uint32_t flags);
/* The timeout of delayed drop has passed, and with it the device's setting: sets it again. */
void uverbs_delay_drop_event(struct hv_hca *hca);
int uverbs_destroy_wq(struct hv_rwq *wq);
/* As uverbs_use_srq(), for a WQ. */
void uverbs_use_wq(struct hv_rwq *wq, int change);
int uverbs_modify_wq(struct hv_rwq *wq, const struct ibv_wq_attr *attr);
int uverbs_create_ind_table(struct hv_ind_table *table);
int uverbs_destroy_ind_table(struct hv_ind_table *table);

/* -- queue pairs (qp.c, qp_raw.c, dct.c, qp_modify.c, xrc_tgt.c) --------------------------------
 */

int uverbs_create_qp(struct hv_qp *qp);
/* Creates a QP that is a TIR over an indirection table. */
int uverbs_create_rss_qp(struct hv_qp *qp, const struct ibv_rx_hash_conf *conf);
/* The QP of an XRC target is destroyed with its last handle. */
int uverbs_destroy_qp(struct hv_qp *qp);
/* Adds (1) or removes (-1) the QP's references to its objects. */
void uverbs_use_qp(struct hv_qp *qp, int change);
/* rate: read if mask has IBV_QP_RATE_LIMIT, instead of attr's. */
int uverbs_modify_qp(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                     const struct hv_rate *rate);
/* Queries all attributes except those of the rings. mask: the attributes that are asked for. */
int uverbs_query_qp(struct hv_qp *qp, struct ibv_qp_attr *attr, int mask);
/* The syndrome (PRM_CQE_SYNDROME_) with which the device moved the QP to ERR. 0: the device names
 * none. The caller may hold the locks of the user half. */
uint8_t uverbs_qp_error(struct hv_qp *qp);
/* Commands of the experimental verbs on a DCT that is in RTR (ib_uverbs_exp_query_dct(),
 * ib_uverbs_exp_arm_dct()): what the device says of it; the next wrong key raises an event. */
int uverbs_query_dct(struct hv_qp *qp, struct prm_dctc *dctc);
int uverbs_arm_dct(struct hv_qp *qp);
/* Opens a new handle on an existing XRC target. qp->ibv.qp_num is its number. */
int uverbs_open_qp(struct hv_qp *qp);
/* The QP was modified through this handle: updates its other handles. */
void uverbs_qp_changed(struct hv_qp *qp);
/* Handles of ibv_create_xrc_rcv_qp() and ibv_reg_xrc_rcv_qp(): a QP number has one in the process.
 * The first function returns it, or NULL; the second makes the handle the one, and returns false if
 * there is one. */
struct hv_qp *uverbs_xrc_registered(struct hv_hca *hca, uint32_t qpn);
bool uverbs_xrc_register(struct hv_qp *qp);

/* -- operations that consist of such a call only: these functions enter them in the table
 * ---------- */

void hv_xrcd_ops(struct verbs_context *ops);
void hv_flow_ops(struct verbs_context *ops);
void hv_query_ops(struct verbs_context *ops);

#endif
