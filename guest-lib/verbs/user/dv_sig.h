/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures of keys in direct verbs: mlx5dv_wr_set_mkey_sig_block(), mlx5dv_mkey_check(),
 * and the signature errors in CQs (libmlx5: qp.c, cq.c, verbs.c).
 */
#ifndef HCASIM_GUEST_LIB_VERBS_DV_SIG_H
#define HCASIM_GUEST_LIB_VERBS_DV_SIG_H

#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/queues.h"

/* The state of a key's signature attributes (libmlx5: enum mlx5_mkey_bsf_state). */
enum dv_sig_state {
    DV_SIG_INIT,
    DV_SIG_RESET,   /* the work request that is being built turns signatures off */
    DV_SIG_SET,     /* the device has the attributes */
    DV_SIG_UPDATED, /* the work request that is being built has new attributes */
};

struct dv_sig_domain {
    bool exists;
    enum mlx5dv_sig_type type;
    struct mlx5dv_sig_t10dif dif;
    struct mlx5dv_sig_crc crc;
    enum mlx5dv_block_size block_size;
};

/* The part of a key's attributes that only a key with signatures has. */
struct hv_dv_sig {
    struct mlx5dv_devx_obj *mem_psv, *wire_psv;
    struct dv_sig_domain mem, wire;
    uint32_t flags;
    uint8_t check_mask, copy_mask;
    enum dv_sig_state state;
    /* the last error, and how many there were; the context's lock is around these */
    bool has_error, is_count_new;
    uint32_t error_count;
    struct prm_sig_err_cqe error[1];
};

/* Fills in the capabilities. All 0: the device has no signatures. */
void hv_dv_sig_caps(struct hv_hca *hca, struct mlx5dv_sig_caps *caps);

/* Called at the creation of the key, and before its destruction. hv_dv_sig_new() returns 0 or
 * errno. */
int hv_dv_sig_new(struct ibv_pd *pd, struct hv_dv_mkey *mkey);
int hv_dv_sig_free(struct hv_dv_mkey *mkey);
/* The key has its number: CQEs may name it from now on, until hv_dv_sig_free(). */
void hv_dv_sig_enter(struct hv_dv_mkey *mkey);

/* The steps of a work request that configures a key: its beginning, the setter (0 or errno), and
 * its end, which posts it. */
void hv_dv_sig_begin(struct hv_dv_mkey *mkey, uint32_t conf_flags);
int hv_dv_sig_set(struct hv_dv_mkey *mkey, const struct mlx5dv_sig_block_attr *attr);
void hv_dv_sig_finish(struct hv_dv_qp *dv);

/* The parts of hv_dv_sig_finish(), for keys that are also encrypted: puts the parity of the key's
 * errors into the UMR if there was an error since the last UMR; fills in the descriptor (0 or
 * errno); posts the UMR and, if asked to, what sets the PSVs. */
bool hv_dv_sig_put_count(struct hv_dv_qp *dv);
int hv_dv_sig_fill_bsf(const struct hv_dv_sig *sig, struct prm_bsf *bsf);
void hv_dv_sig_post(struct hv_dv_qp *dv, bool sets_psvs);

int hv_dv_mkey_check(struct mlx5dv_mkey *mkey, struct mlx5dv_mkey_err *info, size_t size);

/* Takes a SIG_ERR CQE. Returns 0 or CQ_POLL_ERR. */
int hv_dv_sig_error(struct ibv_context *context, const struct prm_cqe64 *cqe);

/* Enables the drain of the send queue by signature errors, in the state INIT: 0 or errno. */
int hv_dv_enable_drain(struct user_qp *qp);

#endif
