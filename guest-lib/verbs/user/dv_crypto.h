/* SPDX-License-Identifier: BSD-2-Clause */
/* Encryption of the data behind keys in direct verbs: mlx5dv_wr_set_mkey_crypto() (libmlx5: qp.c).
 */
#ifndef HCASIM_GUEST_LIB_VERBS_DV_CRYPTO_H
#define HCASIM_GUEST_LIB_VERBS_DV_CRYPTO_H

#include "guest-lib/verbs/dv.h"

/* The part of a key's attributes that only a key with encryption has. */
struct hv_dv_crypto {
    struct mlx5dv_crypto_attr attr;
    uint32_t dek; /* number of the key */
    enum {
        DV_CRYPTO_INIT,
        DV_CRYPTO_SET,     /* the device has the attributes */
        DV_CRYPTO_UPDATED, /* the work request that is being built has new attributes */
    } state;
};

/* Fills in the capabilities. All 0: the device has no crypto. */
void hv_dv_crypto_caps(struct hv_hca *hca, struct mlx5dv_crypto_caps *caps);
/* Its engines (enum mlx5dv_crypto_engines_caps). */
uint8_t hv_dv_crypto_engines(struct hv_hca *hca);

/* The steps of a work request that configures a key: its beginning, the setter (0 or errno), and
 * its end, which posts it. */
void hv_dv_crypto_begin(struct hv_dv_mkey *mkey);
int hv_dv_crypto_set(struct hv_dv_mkey *mkey, const struct mlx5dv_crypto_attr *attr);
void hv_dv_crypto_finish(struct hv_dv_qp *dv);

#endif
