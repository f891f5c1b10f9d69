/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and their rings, for the files that create, poll and clean them. */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_CQ_H
#define HCASIM_GUEST_LIB_VERBS_USER_CQ_H

#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/user/user.h"

/* Implements ibv_create_cq_ex() and mlx5dv_create_cq(); dv may be NULL. extended: fills in the
 * reader functions of struct ibv_cq_ex. NULL with errno. */
struct user_cq *hv_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
                             bool extended, const struct mlx5dv_cq_init_attr *dv);
/* As hv_cq_create(), for a CQ for whose completions a peer waits. */
struct ibv_exp_peer_direct_attr;
struct user_cq *hv_cq_create_for_peer(struct ibv_context *context,
                                      const struct ibv_cq_init_attr_ex *attr,
                                      const struct mlx5dv_cq_init_attr *dv,
                                      const struct ibv_exp_peer_direct_attr *peer);
/* Sets the functions of extended polling for these wc_flags (cq_ex.c). */
void hv_cq_ex_init(struct user_cq *cq, uint64_t wc_flags);
/* Removes the completions of a queue that is destroyed or goes to RESET (mlx5_cq_clean()), found by
 * its user index. srq: gives their WQEs back to it. The caller holds the CQ's lock, and calls
 * hv_uidx_free() before it releases the lock. */
void hv_cq_clean(struct user_cq *cq, uint32_t uidx, struct hv_srq *srq);
/* Locks both CQs of a QP in an order that cannot deadlock. Either may be NULL, or both may be the
 * same. */
void hv_cq_lock_pair(struct user_cq *a, struct user_cq *b);
void hv_cq_unlock_pair(struct user_cq *a, struct user_cq *b);

/* A poll of a CQ that only a GPU polls: says so, and undoes the step to the next entry. */
void hv_cq_poll_lost(struct user_cq *cq);

/* libmlx5's CQ_POLL_ERR: ibv_poll_cq() and ibv_start_poll() return it for a CQE that names an
 * object which does not exist. */
#define CQ_POLL_ERR (-2)

static inline void cq_lock(struct user_cq *cq)
{
    if (!cq->single_threaded) {
        pthread_spin_lock(&cq->lock);
    }
}

static inline void cq_unlock(struct user_cq *cq)
{
    if (!cq->single_threaded) {
        pthread_spin_unlock(&cq->lock);
    }
}

/* The cqe64 of entry n of a ring. In a CQE of 128 bytes it is the second half. */
static inline struct prm_cqe64 *cqe64_at(uint8_t *ring, uint32_t mask, unsigned cqe_size,
                                         uint32_t n)
{
    return (void *)(ring + (size_t)(n & mask) * cqe_size + (cqe_size - PRM_SIZE(cqe64)));
}

static inline struct prm_cqe64 *cq_cqe64(const struct user_cq *cq, uint32_t n)
{
    return cqe64_at(cq->ring, (1u << cq->log_size) - 1, cq->cqe_size, n);
}

/* Entry n if software owns it, else NULL. The owner bit changes with every round. Reads that come
 * later in program order are made after the read of the owner bit. */
static inline struct prm_cqe64 *cq_sw_cqe64(const struct user_cq *cq, uint32_t n)
{
    struct prm_cqe64 *cqe = cq_cqe64(cq, n);
    uint8_t op_own = (uint8_t)drv_last_word(cqe);

    return op_own >> 4 != PRM_CQE_OPCODE_INVALID && (op_own & 1) == (n >> cq->log_size & 1) ? cqe
                                                                                            : NULL;
}

/* The last byte of a CQE, with opcode and owner bit. */
static inline uint8_t cqe_op_own(const struct prm_cqe64 *cqe)
{
    return cqe->bytes[PRM_SIZE(cqe64) - 1];
}

static inline void cqe_set_op_own(struct prm_cqe64 *cqe, unsigned op_own)
{
    cqe->bytes[PRM_SIZE(cqe64) - 1] = (uint8_t)op_own;
}

/* Whether the CQE contains data (user/cqe_data.h). */
static inline bool cqe_has_data(const struct prm_cqe64 *cqe)
{
    return cqe_op_own(cqe) >> 2 & 3;
}

/* Whether data is in the part of the cqe64 that otherwise holds the message's sender, headers and
 * tag. */
static inline bool cqe_is_data(const struct prm_cqe64 *cqe)
{
    return (cqe_op_own(cqe) >> 2 & 3) == PRM_CQE_FORMAT_INLINE_32;
}

/* The same bytes as an error CQE, for a CQE whose opcode says that it failed. */
static inline const struct prm_err_cqe *cqe_failed(const struct prm_cqe64 *cqe)
{
    return (const void *)cqe;
}

/* Tells the device which entries have been consumed. */
static inline void cq_update_ci(struct user_cq *cq)
{
    __atomic_store_n(&cq->dbrec[0], GUINT32_TO_BE(cq->ci & 0xffffff), __ATOMIC_RELEASE);
}

/* What is known of a completion in addition to its CQE. */
struct completion {
    uint64_t wr_id;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode; /* of a send WQE */
    bool csum_valid;
    bool tm_sync; /* IBV_WC_TM_SYNC_REQ */
    bool strides; /* of a striding WQ; the next two are then set */
    bool last;    /* the WQE takes no more packets */
    uint32_t len; /* bytes of the packet; 0: strides that no packet has (a filler) */
};

/* byte_cnt of a CQE of a striding WQ: the length, which counts the two bytes before the packet; the
 * strides; and whether it is a filler (libmlx5 of MLNX_OFED 4.6: poll_length()). */
#define HV_STRIDES_BYTES         0xffffu
#define HV_STRIDES_NUM(byte_cnt) ((byte_cnt) >> 16 & 0x7fff)
#define HV_STRIDES_FILLER        (1u << 31)

/* Removes the CQE's WQE from its queue. Returns 0 or CQ_POLL_ERR. The CQ's lock is held.
 *
 * CQ_OWN: the CQE was for the library alone, which has handled it: a signature error, or a receive
 * of an SRQ whose pages were missing. Programs see no completion. */
#define CQ_OWN 1
int cq_complete(struct user_cq *cq, const struct prm_cqe64 *cqe, struct completion *done);

/* The same, and fills in what ibv_poll_cq() says of it. */
int hv_cq_poll_one(struct user_cq *cq, const struct prm_cqe64 *cqe, struct ibv_wc *wc,
                   struct completion *done);
/* The opcode of a send WQE that failed; stored: what its posting function has stored. */
enum ibv_wc_opcode hv_cq_failed_opcode(const struct prm_cqe64 *cqe, enum ibv_wc_opcode stored);
/* Implements ibv_poll_cq(). */
int hv_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);

/* IBV_WC_IP_CSUM_OK or 0, for a CQE of a queue whose checksum fields are valid. */
static inline unsigned cqe_csum_ok(const struct prm_cqe64 *cqe)
{
    bool ok = PRM_GET(cqe64, cqe, l4_ok) && PRM_GET(cqe64, cqe, l3_ok) &&
              PRM_GET(cqe64, cqe, l3_hdr_type) == PRM_CQE_L3_HDR_TYPE_IPV4;

    return ok ? IBV_WC_IP_CSUM_OK : 0;
}

/* Which CQEs the device compresses, as mlx5dv_query_device() reports it (dv_device.c). */
struct mlx5dv_cqe_comp_caps hv_dv_cqe_comp_caps(struct hv_hca *hca);

#endif
