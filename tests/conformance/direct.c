/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct verbs, for what ordinary verbs do not offer: dynamic connections, keys of several pieces,
 * block signatures, copies, and SQD. */
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/qp.h"
#include "tests/conformance/host.h"

#define UMR_INLINE 256 /* bytes of a UMR's pieces: room for 16 */
#define SIG_INLINE 512 /* the same with a descriptor of signatures */

static struct ibv_qp_init_attr_ex direct_init(const struct host *host,
                                              const struct ibv_qp_init_attr *init)
{
    return (struct ibv_qp_init_attr_ex){
        .qp_type = IBV_QPT_DRIVER,
        .send_cq = init->send_cq,
        .recv_cq = init->recv_cq,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = host->pd,
        .sq_sig_all = init->sq_sig_all,
    };
}

static struct ibv_qp *direct_make_target(const struct host *host,
                                         const struct ibv_qp_init_attr *init, uint64_t key)
{
    struct ibv_qp_init_attr_ex attr = direct_init(host, init);
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = key}};

    attr.srq = init->srq;
    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

static struct ibv_qp *direct_make_initiator(const struct host *host,
                                            const struct ibv_qp_init_attr *init, uint8_t streams,
                                            uint8_t errored)
{
    struct ibv_qp_init_attr_ex attr = direct_init(host, init);
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};

    attr.cap = init->cap;
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if (streams) {
        dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv.dc_init_attr.dci_streams = (struct mlx5dv_dci_streams){streams, errored};
    }
    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

/* -- work -------------------------------------------------------------------------------------- */

static bool direct_build(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
    switch (wr->opcode) {
    case IBV_WR_SEND:
        ibv_wr_send(ex);
        return true;
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(ex, wr->imm_data);
        return true;
    case IBV_WR_SEND_WITH_INV:
        ibv_wr_send_inv(ex, wr->invalidate_rkey);
        return true;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
        return true;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        return true;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                              wr->wr.atomic.compare_add, wr->wr.atomic.swap);
        return true;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                                wr->wr.atomic.compare_add);
        return true;
    default:
        return false;
    }
}

static int direct_post(struct ibv_qp *qp, const struct ibv_send_wr *wr,
                       const struct host_target *to)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = hv_dv_qp_ex_from_ibv_qp_ex(ex);

    ibv_wr_start(ex);
    ex->wr_id = wr->wr_id;
    ex->wr_flags = wr->send_flags;
    if (!direct_build(ex, wr)) {
        ibv_wr_abort(ex);
        return EOPNOTSUPP;
    }
    if (to->stream < 0) {
        dv->wr_set_dc_addr(dv, to->ah, to->dctn, to->key);
    } else {
        dv->wr_set_dc_addr_stream(dv, to->ah, to->dctn, to->key, (uint16_t)to->stream);
    }
    ibv_wr_set_sge_list(ex, (size_t)wr->num_sge, wr->sg_list);
    return ibv_wr_complete(ex);
}

/* -- keys -------------------------------------------------------------------------------------- */

static struct ibv_qp *direct_make_configurer(const struct host *host,
                                             const struct ibv_qp_init_attr *init, unsigned work)
{
    struct ibv_qp_init_attr_ex attr = direct_init(host, init);
    /* data in a CQE would be copied to a key's addresses, which may not be those of the process */
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
                                                  MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
                                     .send_ops_flags =
                                         (work & HOST_UMR ? MLX5DV_QP_EX_WITH_MR_LIST : 0) |
                                         (work & HOST_SIG ? MLX5DV_QP_EX_WITH_MKEY_CONFIGURE : 0) |
                                         (work & HOST_MMO ? MLX5DV_QP_EX_WITH_MEMCPY : 0)};

    attr.qp_type = IBV_QPT_RC;
    attr.srq = init->srq;
    attr.cap = init->cap;
    attr.cap.max_inline_data =
        MAX(attr.cap.max_inline_data, work & HOST_SIG ? SIG_INLINE : UMR_INLINE);
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_RDMA_READ;
    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

/* Makes a key that no UMR may change; mlx5dv_create_mkey() does not offer it. */
static struct mlx5dv_mkey *direct_make_fixed_key(struct ibv_pd *pd, uint16_t pieces)
{
    struct prm_create_mkey_in in[1] = {0};
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    struct hv_dv_mkey *mkey = g_new0(struct hv_dv_mkey, 1);

    mkey->context = pd->context;
    mkey->num_desc = (pieces + 3u) & ~3u;
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, pd, hv_pd(pd)->pdn);
    PRM_SET(mkc, mkc, translations_octword_size, mkey->num_desc);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    mkey->obj = hv_dv_devx_obj_create(pd->context, in, sizeof(in), out, sizeof(out));
    if (!mkey->obj) {
        g_free(mkey);
        return NULL;
    }
    mkey->dv.rkey = mkey->dv.lkey = mkey->obj->id << 8;
    return &mkey->dv;
}

static void *direct_make_key(struct ibv_pd *pd, uint16_t pieces, bool rinval, bool fixed,
                             uint32_t *key)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = pd,
        .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                        (rinval ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0),
        .max_entries = pieces,
    };
    struct mlx5dv_mkey *mkey = fixed ? direct_make_fixed_key(pd, pieces) : hv_dv_create_mkey(&attr);

    *key = mkey ? mkey->rkey : 0;
    return mkey;
}

static int direct_free_key(void *made)
{
    return hv_dv_destroy_mkey(made);
}

static int direct_configure(struct ibv_qp *qp, const struct ibv_send_wr *wr, void *made,
                            uint32_t rights)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = ex ? hv_dv_qp_ex_from_ibv_qp_ex(ex) : NULL;

    if (!dv || !dv->wr_mr_list) {
        return EOPNOTSUPP;
    }
    ibv_wr_start(ex);
    ex->wr_id = wr->wr_id;
    ex->wr_flags = wr->send_flags | IBV_SEND_INLINE;
    dv->wr_mr_list(dv, made, rights, (uint16_t)wr->num_sge, wr->sg_list);
    return ibv_wr_complete(ex);
}

static void *direct_make_sig_key(struct ibv_pd *pd, uint16_t pieces, uint32_t *key)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = pd,
        .create_flags =
            MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
        .max_entries = pieces,
    };
    struct mlx5dv_mkey *mkey = hv_dv_create_mkey(&attr);

    *key = mkey ? mkey->rkey : 0;
    return mkey;
}

static int direct_configure_sig(struct ibv_qp *qp, const struct ibv_send_wr *wr, void *made,
                                uint32_t rights, const struct host_sig *sig)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = ex ? hv_dv_qp_ex_from_ibv_qp_ex(ex) : NULL;
    const struct mlx5dv_sig_t10dif dif = {.bg_type = MLX5DV_SIG_T10DIF_CRC,
                                          .app_tag = sig->app_tag,
                                          .ref_tag = sig->ref_tag,
                                          .flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
    const struct mlx5dv_sig_block_domain domain = {
        .sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &dif, .block_size = MLX5DV_BLOCK_SIZE_512};
    const struct mlx5dv_sig_block_attr attr = {
        .mem = sig->mem ? &domain : NULL,
        .wire = sig->wire ? &domain : NULL,
        .flags = sig->copies ? MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK : 0,
        .check_mask = sig->copies ? 0
                                  : MLX5DV_SIG_MASK_T10DIF_GUARD | MLX5DV_SIG_MASK_T10DIF_APPTAG |
                                        MLX5DV_SIG_MASK_T10DIF_REFTAG,
        .copy_mask = sig->copies ? 0xff : 0,
    };
    struct mlx5dv_mkey_conf_attr conf = {0};

    if (!dv || !dv->wr_mkey_configure) {
        return EOPNOTSUPP;
    }
    ibv_wr_start(ex);
    ex->wr_id = wr->wr_id;
    ex->wr_flags = wr->send_flags | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dv, made, 3, &conf);
    mlx5dv_wr_set_mkey_access_flags(dv, rights);
    mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)wr->num_sge, wr->sg_list);
    mlx5dv_wr_set_mkey_sig_block(dv, &attr);
    return ibv_wr_complete(ex);
}

static int direct_check_sig(void *made, enum host_sig_error *error, uint64_t *offset)
{
    static const enum host_sig_error errors[] = {
        [MLX5DV_MKEY_NO_ERR] = HOST_SIG_NONE,
        [MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD] = HOST_SIG_GUARD,
        [MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG] = HOST_SIG_REF_TAG,
        [MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG] = HOST_SIG_APP_TAG,
    };
    struct mlx5dv_mkey_err info = {0};
    int err = hv_dv_ops.mkey_check(made, &info, sizeof(info));

    *error = errors[info.err_type];
    *offset = info.err.sig.offset;
    return err;
}

static int direct_copy(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = ex ? hv_dv_qp_ex_from_ibv_qp_ex(ex) : NULL;
    const struct ibv_sge *from = &wr->sg_list[0], *to = &wr->sg_list[1];

    if (!dv || !dv->wr_memcpy) {
        return EOPNOTSUPP;
    }
    ibv_wr_start(ex);
    ex->wr_id = wr->wr_id;
    ex->wr_flags = wr->send_flags;
    mlx5dv_wr_memcpy(dv, to->lkey, to->addr, from->lkey, from->addr, from->length);
    return ibv_wr_complete(ex);
}

/* -- states ------------------------------------------------------------------------------------ */

/* Neither verbs nor DevX let a program do this: here it is a command of the driver. */
static int direct_drain(struct ibv_qp *qp)
{
    struct prm_sqd2rts_qp_in in[1] = {0};
    struct prm_sqd2rts_qp_out out[1] = {0};

    PRM_SET(sqd2rts_qp_in, in, opcode, PRM_CMD_OP_RTS2SQD_QP);
    PRM_SET(sqd2rts_qp_in, in, uid, hv_qp(qp)->uid);
    PRM_SET(sqd2rts_qp_in, in, qpn, qp->qp_num);
    return hv_cmd(hv_qp(qp)->hca, in, sizeof(in), out, sizeof(out));
}

const struct host_direct host_direct = {
    .make_target = direct_make_target,
    .make_initiator = direct_make_initiator,
    .post = direct_post,
    .make_configurer = direct_make_configurer,
    .make_key = direct_make_key,
    .free_key = direct_free_key,
    .configure = direct_configure,
    .make_sig_key = direct_make_sig_key,
    .configure_sig = direct_configure_sig,
    .check_sig = direct_check_sig,
    .copy = direct_copy,
    .make_cross = direct_make_cross,
    .cross = direct_cross,
    .drain = direct_drain,
};
