/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements encryption of the data behind keys (dv_crypto.h). The UMR of such a key has its
 * descriptors behind the translation entries: that of signatures, if the key can have them, then
 * the crypto descriptor.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/user/dv_crypto.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/qp.h"

/* -- capabilities ------------------------------------------------------------------------------ */

#define IMPORT_AES_XTS 0x4 /* MLX5_CRYPTO_CAPS_WRAPPED_IMPORT_METHOD_AES */

uint8_t hv_dv_crypto_engines(struct hv_hca *hca)
{
    uint8_t single = MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK;

    if (HV_CAP(hca, aes_xts_multi_block_be_tweak)) {
        return single | MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK;
    }
    return HV_CAP(hca, aes_xts_single_block_le_tweak) ? single : 0;
}

void hv_dv_crypto_caps(struct hv_hca *hca, struct mlx5dv_crypto_caps *caps)
{
    const struct prm_crypto_cap *cap = hv_drv(hca)->crypto_cap;

    *caps = (struct mlx5dv_crypto_caps){.crypto_engines = hv_dv_crypto_engines(hca)};
    if (!HV_CAP(hca, crypto)) {
        return;
    }
    caps->flags = MLX5DV_CRYPTO_CAPS_CRYPTO;
    if (PRM_GET(crypto_cap, cap, wrapped_crypto_operational)) {
        caps->flags |= MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL;
    }
    if (PRM_GET(crypto_cap, cap, wrapped_crypto_going_to_commissioning)) {
        caps->flags |= MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_GOING_TO_COMMISSIONING;
    }
    if (PRM_GET(crypto_cap, cap, wrapped_import_method) & IMPORT_AES_XTS) {
        caps->wrapped_import_method = MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS;
    }
    caps->log_max_num_deks = (uint8_t)PRM_GET(crypto_cap, cap, log_max_num_deks);
    caps->failed_selftests = (uint16_t)PRM_GET(crypto_cap, cap, failed_selftests);
}

/* -- configuring ------------------------------------------------------------------------------- */

void hv_dv_crypto_begin(struct hv_dv_mkey *mkey)
{
    if (mkey->crypto->state == DV_CRYPTO_UPDATED) {
        mkey->crypto->state = DV_CRYPTO_SET;
    }
}

int hv_dv_crypto_set(struct hv_dv_mkey *mkey, const struct mlx5dv_crypto_attr *attr)
{
    struct hv_dv_crypto *crypto = mkey->crypto;

    if (!crypto || crypto->state == DV_CRYPTO_UPDATED || attr->comp_mask ||
        attr->crypto_standard != MLX5DV_CRYPTO_STANDARD_AES_XTS ||
        attr->signature_crypto_order >
            MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX ||
        attr->data_unit_size < MLX5DV_BLOCK_SIZE_512 ||
        attr->data_unit_size > MLX5DV_BLOCK_SIZE_4160) {
        return EINVAL;
    }
    crypto->attr = *attr;
    crypto->dek = attr->dek->obj->id;
    crypto->state = DV_CRYPTO_UPDATED;
    return 0;
}

static unsigned dv_crypto_order(const struct mlx5dv_crypto_attr *attr)
{
    bool is_after =
        attr->signature_crypto_order == MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX;

    if (attr->encrypt_on_tx) {
        return is_after ? PRM_CRYPTO_ORDER_RAW_WIRE : PRM_CRYPTO_ORDER_WIRE_SIGNATURE;
    }
    return is_after ? PRM_CRYPTO_ORDER_MEMORY_SIGNATURE : PRM_CRYPTO_ORDER_RAW_MEMORY;
}

static unsigned dv_crypto_selector(enum mlx5dv_block_size size)
{
    static const uint8_t selectors[] = {
        [MLX5DV_BLOCK_SIZE_512] = PRM_BSF_BLOCK_512,
        [MLX5DV_BLOCK_SIZE_520] = PRM_BSF_BLOCK_520,
        [MLX5DV_BLOCK_SIZE_4048] = PRM_BSF_BLOCK_4048,
        [MLX5DV_BLOCK_SIZE_4096] = PRM_BSF_BLOCK_4096,
        [MLX5DV_BLOCK_SIZE_4160] = PRM_BSF_BLOCK_4160,
    };

    return selectors[size];
}

/* A device that encrypts several data units counts their tweaks, and takes the first as a
 * big-endian number. Programs give it as XTS uses it. */
static void dv_crypto_put_tweak(struct hv_hca *hca, const char *from, uint8_t *tweak)
{
    const size_t len = sizeof(((struct mlx5dv_crypto_attr *)0)->initial_tweak);
    bool is_big = hv_dv_crypto_engines(hca) & MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK;

    for (size_t i = 0; i < len; i++) {
        tweak[i] = (uint8_t)from[is_big ? len - 1 - i : i];
    }
}

/* Fills in the crypto descriptor: 0 or errno. The device does not support signatures in both
 * domains around raw data that is encrypted. */
static int dv_crypto_fill(struct hv_hca *hca, const struct hv_dv_mkey *mkey,
                          struct prm_crypto_bsf *bsf)
{
    const struct mlx5dv_crypto_attr *attr = &mkey->crypto->attr;
    unsigned order = dv_crypto_order(attr);
    bool is_raw = order == PRM_CRYPTO_ORDER_RAW_WIRE || order == PRM_CRYPTO_ORDER_RAW_MEMORY;

    if (is_raw && mkey->sig && mkey->sig->mem.exists && mkey->sig->wire.exists) {
        return EINVAL;
    }
    memset(bsf, 0, sizeof(*bsf));
    PRM_SET(crypto_bsf, bsf, size,
            mkey->sig ? PRM_BSF_SIZE_SIG_AND_CRYPTO : PRM_BSF_SIZE_WITH_INLINE);
    PRM_SET(crypto_bsf, bsf, crypto, 1);
    PRM_SET(crypto_bsf, bsf, enc_order, order);
    PRM_SET(crypto_bsf, bsf, enc_standard, PRM_CRYPTO_STANDARD_AES_XTS);
    PRM_SET(crypto_bsf, bsf, raw_data_size, UINT32_MAX);
    PRM_SET(crypto_bsf, bsf, bs_pointer, dv_crypto_selector(attr->data_unit_size));
    dv_crypto_put_tweak(hca, attr->initial_tweak, PRM_PTR(crypto_bsf, bsf, xts_initial_tweak));
    PRM_SET(crypto_bsf, bsf, dek_pointer, mkey->crypto->dek & 0xffffff);
    memcpy(PRM_PTR(crypto_bsf, bsf, keytag), attr->keytag, sizeof(attr->keytag));
    return 0;
}

/* Appends the descriptors to the UMR: 0 or errno. */
static int dv_crypto_put_descriptors(struct hv_dv_qp *dv, bool has_crypto)
{
    struct prm_wqe_umr_ctrl_seg *umr = dv->wqe->umr;
    struct hv_dv_mkey *mkey = dv->cur_mkey;
    size_t data = PRM_GET(wqe_umr_ctrl_seg, umr, xlt_octowords) * 16;
    size_t size = (mkey->sig ? PRM_SIZE(bsf) : 0) + (has_crypto ? PRM_SIZE(crypto_bsf) : 0);
    uint8_t *at = (uint8_t *)dv->wqe + dv->wqe_size;
    int err = 0;

    if (data + size > hv_dv_data_room(dv->qp)) {
        return ENOMEM;
    }
    if (mkey->length > UINT32_MAX) {
        return EINVAL;
    }
    if (mkey->sig) {
        err = hv_dv_sig_fill_bsf(mkey->sig, (void *)at);
        if (has_crypto) {
            PRM_SET(bsf, (void *)at, size, PRM_BSF_SIZE_SIG_AND_CRYPTO);
        }
        at += PRM_SIZE(bsf);
    }
    if (!err && has_crypto) {
        err = dv_crypto_fill(dv->qp->hca, mkey, (void *)at);
    }
    dv->wqe_size += size;
    PRM_SET(wqe_umr_ctrl_seg, umr, bsf_octowords, size / 16);
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask,
            PRM_GET(wqe_umr_ctrl_seg, umr, mkey_mask) | 1ull << PRM_MKEY_MASK_BSF_EN);
    PRM_SET(mkc, dv->wqe->mkc, bsf_en, 1);
    return err;
}

void hv_dv_crypto_finish(struct hv_dv_qp *dv)
{
    struct hv_dv_mkey *mkey = dv->cur_mkey;
    struct hv_dv_sig *sig = mkey->sig;
    bool sets_psvs = sig && hv_dv_sig_put_count(dv) && sig->state == DV_SIG_SET;

    if (mkey->crypto->state == DV_CRYPTO_UPDATED ||
        (sig && (sig->state == DV_SIG_UPDATED || sig->state == DV_SIG_RESET))) {
        int err = dv_crypto_put_descriptors(dv, mkey->crypto->state != DV_CRYPTO_INIT);

        if (err) {
            dv->qp->wr_err = dv->qp->wr_err ? dv->qp->wr_err : err;
            return;
        }
        sets_psvs |= sig && sig->state == DV_SIG_UPDATED;
    }
    if (sig) {
        hv_dv_sig_post(dv, sets_psvs);
    } else {
        hv_wr_post_wqe(dv->qp, dv->wqe, dv->wqe_size / 16, IBV_WC_DRIVER1, false);
    }
}
