/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys that a program fills by UMR (mlx5dv_create_mkey()). They are DevX objects. */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/user/dv_crypto.h"
#include "guest-lib/verbs/user/dv_sig.h"

struct mlx5dv_mkey *hv_dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
    const uint32_t known =
        MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE |
        MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO;
    bool is_crypto = attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO;
    struct prm_create_mkey_in in[1] = {0};
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc;
    struct ibv_context *ctx = attr->pd->context;
    struct hv_dv_mkey *mkey;

    if (!attr->create_flags || (attr->create_flags & ~known) ||
        (is_crypto && !hv_dv_crypto_engines(hv_hca_of(ctx)))) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    mkey = g_new0(struct hv_dv_mkey, 1);
    mkey->context = ctx;
    mkey->num_desc = (attr->max_entries + 3u) & ~3u;
    if (attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE) {
        int err = hv_dv_sig_new(attr->pd, mkey);

        if (err) {
            g_free(mkey);
            errno = err;
            return NULL;
        }
    }
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, pd, hv_pd(attr->pd)->pdn);
    PRM_SET(mkc, mkc, translations_octword_size, mkey->num_desc);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    if (attr->create_flags & MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE) {
        PRM_SET(mkc, mkc, en_rinval, 1);
    }
    if (is_crypto) {
        mkey->crypto = g_new0(struct hv_dv_crypto, 1);
        PRM_SET(mkc, mkc, crypto_en, 1);
    }
    if (mkey->sig || is_crypto) {
        PRM_SET(mkc, mkc, bsf_en, 1);
        PRM_SET(mkc, mkc, bsf_octword_size,
                ((mkey->sig ? PRM_SIZE(bsf) : 0) + (is_crypto ? PRM_SIZE(crypto_bsf) : 0)) / 16);
    }
    mkey->obj = hv_dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    if (!mkey->obj) {
        int err = errno == EREMOTEIO ? hv_status_errno((int)PRM_GET(create_mkey_out, out, status))
                                     : errno;

        if (mkey->sig) {
            hv_dv_sig_free(mkey);
        }
        g_free(mkey->crypto);
        g_free(mkey);
        errno = err;
        return NULL;
    }
    mkey->dv.lkey = mkey->obj->id << 8;
    attr->max_entries = (uint16_t)mkey->num_desc;
    mkey->dv.rkey = mkey->dv.lkey;
    if (mkey->sig) {
        hv_dv_sig_enter(mkey);
    }
    return &mkey->dv;
}

static int dv_mkey_destroy(struct mlx5dv_mkey *dv, int (*destroy)(struct mlx5dv_devx_obj *obj))
{
    struct hv_dv_mkey *mkey = DV_CONTAINER(dv, struct hv_dv_mkey);
    int err = mkey->sig ? hv_dv_sig_free(mkey) : 0;

    err = err ? err : destroy(mkey->obj);
    if (!err) {
        g_free(mkey->crypto);
        g_free(mkey);
    }
    return err;
}

int hv_dv_destroy_mkey(struct mlx5dv_mkey *dv)
{
    return dv_mkey_destroy(dv, hv_dv_devx_obj_destroy);
}

int hv_mkey_end(struct mlx5dv_mkey *dv)
{
    return dv_mkey_destroy(dv, hv_devx_obj_end);
}
