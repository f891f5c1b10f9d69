/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements block signatures of keys (dv_sig.h).
 *
 * A work request that sets signatures is one UMR with a descriptor (BSF), and a SET_PSV for each
 * domain. Only the last of them may have a completion. The key counts its errors; the parity of the
 * count in the next UMR makes the device report errors again.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/qp.h"

/* -- capabilities ------------------------------------------------------------------------------ */

void hv_dv_sig_caps(struct hv_hca *hca, struct mlx5dv_sig_caps *caps)
{
    *caps = (struct mlx5dv_sig_caps){0};
    if (!HV_CAP(hca, sho) || !HV_CAP(hca, sigerr_domain_and_sig_type)) {
        return;
    }
    caps->block_size = MLX5DV_BLOCK_SIZE_CAP_512 | MLX5DV_BLOCK_SIZE_CAP_520 |
                       MLX5DV_BLOCK_SIZE_CAP_4096 | MLX5DV_BLOCK_SIZE_CAP_4160 |
                       (HV_CAP(hca, sig_block_4048) ? MLX5DV_BLOCK_SIZE_CAP_4048 : 0);
    caps->block_prot = MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC;
    caps->t10dif_bg = MLX5DV_SIG_T10DIF_BG_CAP_CRC | MLX5DV_SIG_T10DIF_BG_CAP_CSUM;
    caps->crc_type = MLX5DV_SIG_CRC_TYPE_CAP_CRC32 |
                     (HV_CAP(hca, sig_crc32c) ? MLX5DV_SIG_CRC_TYPE_CAP_CRC32C : 0) |
                     (HV_CAP(hca, sig_crc64_xp10) ? MLX5DV_SIG_CRC_TYPE_CAP_CRC64_XP10 : 0);
}

int hv_dv_enable_drain(struct user_qp *qp)
{
    struct prm_init2init_qp_in in[1] = {0};
    struct prm_init2init_qp_out out[1] = {0};

    PRM_SET(init2init_qp_in, in, opcode, PRM_CMD_OP_INIT2INIT_QP);
    PRM_SET(init2init_qp_in, in, uid, hv_context(qp->ibv.context)->uid);
    PRM_SET(init2init_qp_in, in, qpn, qp->ibv.qp_num);
    PRM_SET(init2init_qp_in, in, opt_param_mask, 1u << PRM_QP_OPTPAR_DRAIN_SIGERR);
    PRM_SET(qpc, PRM_PTR(init2init_qp_in, in, qpc), drain_sigerr, 1);
    return hv_kernel(hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out)));
}

/* -- keys -------------------------------------------------------------------------------------- */

static struct mlx5dv_devx_obj *dv_sig_new_psv(struct ibv_pd *pd)
{
    struct prm_create_psv_in in[1] = {0};
    struct prm_create_psv_out out[1] = {0};
    struct mlx5dv_devx_obj *psv;

    PRM_SET(create_psv_in, in, opcode, PRM_CMD_OP_CREATE_PSV);
    PRM_SET(create_psv_in, in, pd, hv_pd(pd)->pdn);
    PRM_SET(create_psv_in, in, num_psv, 1);
    psv = hv_dv_devx_obj_create(pd->context, in, sizeof(in), out, sizeof(out));
    if (!psv && errno == EREMOTEIO) {
        errno = hv_status_errno((int)PRM_GET(create_psv_out, out, status));
    }
    return psv;
}

static int dv_sig_free_psv(struct mlx5dv_devx_obj **psv)
{
    int err = *psv ? hv_dv_devx_obj_destroy(*psv) : 0;

    if (!err) {
        *psv = NULL;
    }
    return err;
}

int hv_dv_sig_new(struct ibv_pd *pd, struct hv_dv_mkey *mkey)
{
    struct mlx5dv_sig_caps caps;
    struct hv_dv_sig *sig;

    hv_dv_sig_caps(hv_hca_of(pd->context), &caps);
    if (!caps.block_prot) {
        return EOPNOTSUPP;
    }
    sig = g_new0(struct hv_dv_sig, 1);
    sig->error_count = 1;
    sig->is_count_new = true;
    mkey->sig = sig;
    sig->mem_psv = dv_sig_new_psv(pd);
    sig->wire_psv = sig->mem_psv ? dv_sig_new_psv(pd) : NULL;
    if (!sig->wire_psv) {
        int err = errno;

        hv_dv_sig_free(mkey);
        return err;
    }
    return 0;
}

void hv_dv_sig_enter(struct hv_dv_mkey *mkey)
{
    struct hv_context *ctx = hv_context(mkey->context);

    pthread_mutex_lock(&ctx->sig_lock);
    if (!ctx->sig_mkeys) {
        ctx->sig_mkeys = g_hash_table_new(NULL, NULL);
    }
    g_hash_table_insert(ctx->sig_mkeys, GUINT_TO_POINTER(mkey->dv.lkey >> 8), mkey);
    pthread_mutex_unlock(&ctx->sig_lock);
}

static void dv_sig_leave(struct hv_dv_mkey *mkey)
{
    struct hv_context *ctx = hv_context(mkey->context);
    gpointer index = GUINT_TO_POINTER(mkey->dv.lkey >> 8);

    pthread_mutex_lock(&ctx->sig_lock);
    if (ctx->sig_mkeys && g_hash_table_lookup(ctx->sig_mkeys, index) == mkey) {
        g_hash_table_remove(ctx->sig_mkeys, index);
        if (!g_hash_table_size(ctx->sig_mkeys)) {
            g_hash_table_destroy(ctx->sig_mkeys);
            ctx->sig_mkeys = NULL;
        }
    }
    pthread_mutex_unlock(&ctx->sig_lock);
}

int hv_dv_sig_free(struct hv_dv_mkey *mkey)
{
    int err = dv_sig_free_psv(&mkey->sig->mem_psv);

    err = err ? err : dv_sig_free_psv(&mkey->sig->wire_psv);
    if (!err) {
        dv_sig_leave(mkey);
        g_free(mkey->sig);
        mkey->sig = NULL;
    }
    return err;
}

/* -- configuring ------------------------------------------------------------------------------- */

void hv_dv_sig_begin(struct hv_dv_mkey *mkey, uint32_t conf_flags)
{
    struct hv_dv_sig *sig = mkey->sig;

    if (conf_flags & MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR) {
        sig->mem.exists = sig->wire.exists = false;
        sig->state = DV_SIG_RESET;
    } else if (sig->state == DV_SIG_UPDATED) {
        sig->state = DV_SIG_SET;
    } else if (sig->state == DV_SIG_RESET) {
        sig->state = DV_SIG_INIT;
    }
}

static bool dv_sig_is_seed(uint64_t seed, uint64_t ones)
{
    return seed == 0 || seed == ones;
}

static bool dv_sig_domain_ok(const struct mlx5dv_sig_block_domain *domain)
{
    const uint32_t known = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP | MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE |
                           MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE;

    if (domain->block_size < MLX5DV_BLOCK_SIZE_512 || domain->block_size > MLX5DV_BLOCK_SIZE_4160 ||
        domain->comp_mask) {
        return false;
    }
    if (domain->sig_type == MLX5DV_SIG_TYPE_T10DIF) {
        const struct mlx5dv_sig_t10dif *dif = domain->sig.dif;

        return dv_sig_is_seed(dif->bg, 0xffff) &&
               (dif->bg_type == MLX5DV_SIG_T10DIF_CRC || dif->bg_type == MLX5DV_SIG_T10DIF_CSUM) &&
               !(dif->flags & ~known);
    }
    if (domain->sig_type != MLX5DV_SIG_TYPE_CRC) {
        return false;
    }
    switch (domain->sig.crc->type) {
    case MLX5DV_SIG_CRC_TYPE_CRC32:
    case MLX5DV_SIG_CRC_TYPE_CRC32C:
        return dv_sig_is_seed(domain->sig.crc->seed, UINT32_MAX);
    case MLX5DV_SIG_CRC_TYPE_CRC64_XP10:
        return dv_sig_is_seed(domain->sig.crc->seed, UINT64_MAX);
    default:
        return false;
    }
}

static void dv_sig_copy_domain(struct dv_sig_domain *to, const struct mlx5dv_sig_block_domain *from)
{
    *to = (struct dv_sig_domain){.exists = from};
    if (!from) {
        return;
    }
    to->type = from->sig_type;
    to->block_size = from->block_size;
    if (from->sig_type == MLX5DV_SIG_TYPE_CRC) {
        to->crc = *from->sig.crc;
    } else {
        to->dif = *from->sig.dif;
    }
}

int hv_dv_sig_set(struct hv_dv_mkey *mkey, const struct mlx5dv_sig_block_attr *attr)
{
    struct hv_dv_sig *sig = mkey->sig;

    if (!sig || sig->state == DV_SIG_UPDATED || (!attr->mem && !attr->wire) ||
        (attr->flags & ~(uint32_t)MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK) || attr->comp_mask ||
        (attr->mem && !dv_sig_domain_ok(attr->mem)) ||
        (attr->wire && !dv_sig_domain_ok(attr->wire))) {
        return EINVAL;
    }
    dv_sig_copy_domain(&sig->mem, attr->mem);
    dv_sig_copy_domain(&sig->wire, attr->wire);
    sig->flags = attr->flags;
    sig->check_mask = attr->check_mask;
    sig->copy_mask = attr->copy_mask;
    sig->state = DV_SIG_UPDATED;
    return 0;
}

/* -- the descriptor ---------------------------------------------------------------------------- */

static unsigned dv_sig_selector(enum mlx5dv_block_size size)
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

static unsigned dv_sig_format(const struct dv_sig_domain *domain)
{
    static const uint8_t formats[] = {
        [MLX5DV_SIG_CRC_TYPE_CRC32] = PRM_BSF_FORMAT_CRC32,
        [MLX5DV_SIG_CRC_TYPE_CRC32C] = PRM_BSF_FORMAT_CRC32C,
        [MLX5DV_SIG_CRC_TYPE_CRC64_XP10] = PRM_BSF_FORMAT_CRC64_XP10,
    };

    if (!domain->exists || domain->type != MLX5DV_SIG_TYPE_CRC) {
        return 0;
    }
    return formats[domain->crc.type] | PRM_BSF_FORMAT_REPEAT |
           (domain->crc.seed ? 0 : PRM_BSF_FORMAT_ZERO_SEED);
}

static void dv_sig_fill_inl(const struct dv_sig_domain *domain, struct prm_bsf_inl *inl)
{
    const struct mlx5dv_sig_t10dif *dif = &domain->dif;

    if (!domain->exists || domain->type != MLX5DV_SIG_TYPE_T10DIF) {
        return;
    }
    PRM_SET(bsf_inl, inl, valid, 1);
    PRM_SET(bsf_inl, inl, refresh_dif, 1);
    PRM_SET(bsf_inl, inl, dif_apptag, dif->app_tag);
    PRM_SET(bsf_inl, inl, dif_reftag, dif->ref_tag);
    PRM_SET(bsf_inl, inl, repeat_block, 1);
    PRM_SET(bsf_inl, inl, seed, dif->bg != 0);
    PRM_SET(bsf_inl, inl, sig_type,
            dif->bg_type == MLX5DV_SIG_T10DIF_CRC ? PRM_BSF_DIF_CRC : PRM_BSF_DIF_IPCS);
    PRM_SET(bsf_inl, inl, inc_reftag, !!(dif->flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP));
    if (dif->flags & MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE) {
        PRM_SET(bsf_inl, inl, appref_escape, 1);
    } else if (dif->flags & MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE) {
        PRM_SET(bsf_inl, inl, apptag_escape, 1);
    }
    PRM_SET(bsf_inl, inl, dif_app_bitmask_check, 0xffff);
}

/* Whether both domains have the same block structure. *copy_mask receives the parts of the
 * signatures that are equal on both sides. */
static bool dv_sig_is_same(const struct hv_dv_sig *sig, uint8_t *copy_mask)
{
    const struct dv_sig_domain *mem = &sig->mem, *wire = &sig->wire;

    *copy_mask = 0;
    if (!mem->exists || !wire->exists || mem->type != wire->type ||
        mem->block_size != wire->block_size) {
        return false;
    }
    if (mem->type == MLX5DV_SIG_TYPE_CRC) {
        *copy_mask = mem->crc.type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? MLX5DV_SIG_MASK_CRC64_XP10
                                                                     : MLX5DV_SIG_MASK_CRC32;
        return mem->crc.type == wire->crc.type;
    }
    if (mem->dif.bg_type == wire->dif.bg_type && mem->dif.bg == wire->dif.bg) {
        *copy_mask |= MLX5DV_SIG_MASK_T10DIF_GUARD;
    }
    if (mem->dif.app_tag == wire->dif.app_tag) {
        *copy_mask |= MLX5DV_SIG_MASK_T10DIF_APPTAG;
    }
    if (mem->dif.ref_tag == wire->dif.ref_tag) {
        *copy_mask |= MLX5DV_SIG_MASK_T10DIF_REFTAG;
    }
    return true;
}

int hv_dv_sig_fill_bsf(const struct hv_dv_sig *sig, struct prm_bsf *bsf)
{
    const struct dv_sig_domain *mem = &sig->mem, *wire = &sig->wire;
    uint8_t copy_mask;
    bool is_same = dv_sig_is_same(sig, &copy_mask);

    if (sig->flags & MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK) {
        if (wire->exists && !is_same) {
            return EINVAL;
        }
        copy_mask = sig->copy_mask;
    }
    memset(bsf, 0, sizeof(*bsf));
    PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_WITH_INLINE);
    PRM_SET(bsf, bsf, raw_data_size, UINT32_MAX);
    PRM_SET(bsf, bsf, check_byte_mask, sig->check_mask);
    if (mem->exists) {
        PRM_SET(bsf, bsf, m_bfs, dv_sig_format(mem));
        PRM_SET(bsf, bsf, m_psv, sig->mem_psv->id);
        PRM_SET(bsf, bsf, mem_bs_selector, dv_sig_selector(mem->block_size));
        dv_sig_fill_inl(mem, PRM_PTR(bsf, bsf, m_inl));
    }
    if (wire->exists) {
        PRM_SET(bsf, bsf, w_bfs, dv_sig_format(wire));
        PRM_SET(bsf, bsf, w_psv, sig->wire_psv->id);
        dv_sig_fill_inl(wire, PRM_PTR(bsf, bsf, w_inl));
        PRM_SET(bsf, bsf, sbs, is_same);
        PRM_SET(bsf, bsf, wire_bs_selector,
                is_same ? copy_mask : dv_sig_selector(wire->block_size));
    }
    return 0;
}

/* -- posting ----------------------------------------------------------------------------------- */

static uint64_t dv_sig_psv_value(const struct dv_sig_domain *domain)
{
    if (domain->type == MLX5DV_SIG_TYPE_T10DIF) {
        return (uint64_t)domain->dif.bg << 48 | (uint64_t)domain->dif.app_tag << 32 |
               domain->dif.ref_tag;
    }
    return domain->crc.type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10 ? domain->crc.seed
                                                              : domain->crc.seed << 32;
}

static void dv_sig_post_psv(struct user_qp *qp, const struct mlx5dv_devx_obj *psv,
                            const struct dv_sig_domain *domain)
{
    struct {
        struct prm_wqe_ctrl_seg ctrl[1];
        struct prm_wqe_set_psv_seg psv[1];
    } wqe = {0};

    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opcode, PRM_WQE_OPCODE_SET_PSV);
    PRM_SET(wqe_set_psv_seg, wqe.psv, psv_num, psv->id);
    PRM_SET(wqe_set_psv_seg, wqe.psv, transient_signature, dv_sig_psv_value(domain));
    hv_wr_post_wqe(qp, wqe.ctrl, sizeof(wqe) / 16, IBV_WC_DRIVER1, false);
}

void hv_dv_sig_post(struct hv_dv_qp *dv, bool sets_psvs)
{
    struct hv_dv_sig *sig = dv->cur_mkey->sig;
    struct user_qp *qp = dv->qp;
    unsigned flags = qp->ex.wr_flags;

    if (sets_psvs && (sig->mem.exists || sig->wire.exists)) {
        qp->ex.wr_flags = flags & ~(unsigned)IBV_SEND_SIGNALED;
    }
    hv_wr_post_wqe(qp, dv->wqe, dv->wqe_size / 16, IBV_WC_DRIVER1, false);
    if (sets_psvs && sig->mem.exists) {
        qp->ex.wr_flags = sig->wire.exists ? qp->ex.wr_flags : flags;
        dv_sig_post_psv(qp, sig->mem_psv, &sig->mem);
    }
    qp->ex.wr_flags = flags;
    if (sets_psvs && sig->wire.exists) {
        dv_sig_post_psv(qp, sig->wire_psv, &sig->wire);
    }
}

static void dv_sig_mask(struct prm_wqe_umr_ctrl_seg *umr, unsigned bit)
{
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask,
            PRM_GET(wqe_umr_ctrl_seg, umr, mkey_mask) | 1ull << bit);
}

bool hv_dv_sig_put_count(struct hv_dv_qp *dv)
{
    struct hv_context *ctx = hv_context(dv->cur_mkey->context);
    struct hv_dv_sig *sig = dv->cur_mkey->sig;
    bool is_new;

    pthread_mutex_lock(&ctx->sig_lock);
    is_new = sig->is_count_new;
    sig->is_count_new = false;
    if (is_new) {
        dv_sig_mask(dv->wqe->umr, PRM_MKEY_MASK_EN_SIGERR);
        PRM_SET(mkc, dv->wqe->mkc, expected_sigerr_count, sig->error_count & 1);
    }
    pthread_mutex_unlock(&ctx->sig_lock);
    return is_new;
}

void hv_dv_sig_finish(struct hv_dv_qp *dv)
{
    struct hv_dv_sig *sig = dv->cur_mkey->sig;
    struct prm_wqe_umr_ctrl_seg *umr = dv->wqe->umr;
    size_t data = PRM_GET(wqe_umr_ctrl_seg, umr, xlt_octowords) * 16;
    bool rearms;
    int err;

    if (sig->state == DV_SIG_INIT || sig->state == DV_SIG_RESET) {
        dv_sig_mask(umr, PRM_MKEY_MASK_BSF_EN); /* the new value is 0 */
    }
    rearms = hv_dv_sig_put_count(dv);
    if (sig->state != DV_SIG_UPDATED) {
        hv_dv_sig_post(dv, rearms && sig->state == DV_SIG_SET);
        return;
    }
    if (data + PRM_SIZE(bsf) > hv_dv_data_room(dv->qp)) {
        dv->qp->wr_err = dv->qp->wr_err ? dv->qp->wr_err : ENOMEM;
        return;
    }
    err = dv->cur_mkey->length > UINT32_MAX
              ? EINVAL
              : hv_dv_sig_fill_bsf(sig, (void *)((uint8_t *)dv->wqe + dv->wqe_size));
    if (err) {
        dv->qp->wr_err = dv->qp->wr_err ? dv->qp->wr_err : err;
        return;
    }
    dv->wqe_size += PRM_SIZE(bsf);
    PRM_SET(wqe_umr_ctrl_seg, umr, bsf_octowords, PRM_SIZE(bsf) / 16);
    dv_sig_mask(umr, PRM_MKEY_MASK_BSF_EN);
    PRM_SET(mkc, dv->wqe->mkc, bsf_en, 1);
    hv_dv_sig_post(dv, true);
}

/* -- errors ------------------------------------------------------------------------------------ */

int hv_dv_sig_error(struct ibv_context *context, const struct prm_cqe64 *cqe)
{
    const struct prm_sig_err_cqe *error = (const void *)cqe;
    gpointer index = GUINT_TO_POINTER(PRM_GET(sig_err_cqe, error, mkey) >> 8);
    struct hv_context *ctx = hv_context(context);
    struct hv_dv_mkey *mkey;

    pthread_mutex_lock(&ctx->sig_lock);
    mkey = ctx->sig_mkeys ? g_hash_table_lookup(ctx->sig_mkeys, index) : NULL;
    if (mkey) {
        mkey->sig->has_error = true;
        mkey->sig->error_count++;
        mkey->sig->is_count_new = true;
        memcpy(mkey->sig->error, error, sizeof(mkey->sig->error));
    }
    pthread_mutex_unlock(&ctx->sig_lock);
    return mkey ? 0 : CQ_POLL_ERR;
}

static void dv_sig_decode(const struct prm_sig_err_cqe *error, const struct dv_sig_domain *domain,
                          struct mlx5dv_mkey_err *info)
{
    uint32_t syndrome = PRM_GET(sig_err_cqe, error, syndrome);
    uint64_t expected = (uint64_t)PRM_GET(sig_err_cqe, error, expected_trans_sig) << 32 |
                        PRM_GET(sig_err_cqe, error, expected_reftag);
    uint64_t actual = (uint64_t)PRM_GET(sig_err_cqe, error, actual_trans_sig) << 32 |
                      PRM_GET(sig_err_cqe, error, actual_reftag);
    unsigned shift = 0;
    uint64_t mask = UINT64_MAX;

    info->err.sig.offset = PRM_GET(sig_err_cqe, error, err_offset);
    if (syndrome & 1u << PRM_SIG_ERR_SYNDROME_REFTAG) {
        info->err_type = MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
        mask = UINT32_MAX;
    } else if (syndrome & 1u << PRM_SIG_ERR_SYNDROME_APPTAG) {
        info->err_type = MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG;
        shift = 32;
        mask = UINT16_MAX;
    } else {
        info->err_type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;
        if (domain->type == MLX5DV_SIG_TYPE_T10DIF) {
            shift = 48;
        } else if (domain->crc.type != MLX5DV_SIG_CRC_TYPE_CRC64_XP10) {
            shift = 32;
        }
    }
    info->err.sig.expected_value = expected >> shift & mask;
    info->err.sig.actual_value = actual >> shift & mask;
}

int hv_dv_mkey_check(struct mlx5dv_mkey *dv, struct mlx5dv_mkey_err *info, size_t size)
{
    struct hv_dv_mkey *mkey = DV_CONTAINER(dv, struct hv_dv_mkey);
    struct hv_context *ctx = hv_context(mkey->context);
    struct hv_dv_sig *sig = mkey->sig;
    const struct prm_sig_err_cqe *error;
    const struct dv_sig_domain *domain;
    int err = 0;

    (void)size;
    if (!sig) {
        return EINVAL;
    }
    pthread_mutex_lock(&ctx->sig_lock);
    error = sig->error;
    domain =
        PRM_GET(sig_err_cqe, error, domain) == PRM_SIG_ERR_DOMAIN_WIRE ? &sig->wire : &sig->mem;
    if (!sig->has_error) {
        info->err_type = MLX5DV_MKEY_NO_ERR;
    } else if (!domain->exists) {
        err = EINVAL;
    } else {
        dv_sig_decode(error, domain, info);
        sig->has_error = false;
    }
    pthread_mutex_unlock(&ctx->sig_lock);
    return err;
}
