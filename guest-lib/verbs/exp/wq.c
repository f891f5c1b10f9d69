/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues and indirection tables of experimental verbs: structures of their own around those of
 * verbs (user/wq.c).
 */
#include "guest-lib/verbs/exp/wq.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/qp.h"

#define WQ_FLAGS                                                                                   \
    (IBV_EXP_CREATE_WQ_FLAG_RX_END_PADDING | IBV_EXP_CREATE_WQ_FLAG_SCATTER_FCS |                  \
     IBV_EXP_CREATE_WQ_FLAG_DELAY_DROP)

static int exp_wq_check(struct hv_hca *hca, const struct ibv_exp_wq_init_attr *attr)
{
    uint16_t vlan = attr->comp_mask & IBV_EXP_CREATE_WQ_VLAN_OFFLOADS ? attr->vlan_offloads : 0;
    uint64_t flags = attr->comp_mask & IBV_EXP_CREATE_WQ_FLAGS ? attr->flags : 0;

    if (attr->wq_type != IBV_EXP_WQT_RQ) {
        return hv_refuse(hca, ENOSYS, "exp_create_wq: wq_type must be IBV_EXP_WQT_RQ");
    }
    if (attr->comp_mask & IBV_EXP_CREATE_WQ_MP_RQ &&
        attr->mp_rq.use_shift & ~(unsigned)IBV_EXP_MP_RQ_2BYTES_SHIFT) {
        return hv_refuse(hca, EINVAL, "exp_create_wq: use_shift is 0x%x; it may be 0 or 0x%x",
                         (unsigned)attr->mp_rq.use_shift, (unsigned)IBV_EXP_MP_RQ_2BYTES_SHIFT);
    }
    if (vlan & ~(unsigned)IBV_EXP_RECEIVE_WQ_CVLAN_STRIP) {
        return hv_refuse(hca, EOPNOTSUPP, "exp_create_wq: vlan_offloads is 0x%x; it may be 0x%x",
                         vlan, (unsigned)IBV_EXP_RECEIVE_WQ_CVLAN_STRIP);
    }
    if (flags & ~(uint64_t)WQ_FLAGS) {
        return hv_refuse(hca, EOPNOTSUPP, "exp_create_wq: flags may be 0x%x", (unsigned)WQ_FLAGS);
    }
    return 0;
}

static struct ibv_exp_wq *exp_create_wq(struct ibv_context *context,
                                        struct ibv_exp_wq_init_attr *attr)
{
    bool strips = attr->comp_mask & IBV_EXP_CREATE_WQ_VLAN_OFFLOADS &&
                  attr->vlan_offloads & IBV_EXP_RECEIVE_WQ_CVLAN_STRIP;
    uint64_t flags = attr->comp_mask & IBV_EXP_CREATE_WQ_FLAGS ? attr->flags : 0;
    bool pads = flags & IBV_EXP_CREATE_WQ_FLAG_RX_END_PADDING;
    bool checks = flags & IBV_EXP_CREATE_WQ_FLAG_SCATTER_FCS;
    bool delays = flags & IBV_EXP_CREATE_WQ_FLAG_DELAY_DROP;
    struct ibv_wq_init_attr verbs = {
        .wq_context = attr->wq_context,
        .wq_type = IBV_WQT_RQ,
        .max_wr = attr->max_recv_wr,
        .max_sge = attr->max_recv_sge,
        .pd = attr->pd,
        .cq = attr->cq,
        .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
        .create_flags = (strips ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0) |
                        (pads ? IBV_WQ_FLAGS_PCI_WRITE_END_PADDING : 0) |
                        (checks ? IBV_WQ_FLAGS_SCATTER_FCS : 0) |
                        (delays ? IBV_WQ_FLAGS_DELAY_DROP : 0),
    };
    const struct mlx5dv_wq_init_attr many = {
        .comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
        .striding_rq_attrs = {attr->mp_rq.single_stride_log_num_of_bytes,
                              attr->mp_rq.single_wqe_log_num_of_strides,
                              attr->mp_rq.use_shift == IBV_EXP_MP_RQ_2BYTES_SHIFT},
    };
    int err = exp_wq_check(hv_hca_of(context), attr);
    struct hv_exp_wq *wq = err ? NULL : calloc(1, sizeof(*wq));

    if (!wq) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    wq->verbs =
        hv_wq_create(context, &verbs, attr->comp_mask & IBV_EXP_CREATE_WQ_MP_RQ ? &many : NULL);
    if (!wq->verbs) {
        free(wq);
        return NULL;
    }
    attr->max_recv_wr = verbs.max_wr;
    attr->max_recv_sge = verbs.max_sge;
    wq->ibv = (struct ibv_exp_wq){
        .context = context,
        .wq_context = attr->wq_context,
        .handle = wq->verbs->handle,
        .pd = attr->pd,
        .cq = attr->cq,
        .wq_num = wq->verbs->wq_num,
        .state = IBV_EXP_WQS_RESET,
        .wq_type = IBV_EXP_WQT_RQ,
    };
    return &wq->ibv;
}

/* The states have the same values. */
static int exp_modify_wq(struct ibv_exp_wq *ibwq, struct ibv_exp_wq_attr *attr)
{
    bool vlan = attr->attr_mask & IBV_EXP_WQ_ATTR_VLAN_OFFLOADS;
    bool strips = attr->vlan_offloads & IBV_EXP_RECEIVE_WQ_CVLAN_STRIP;
    struct ibv_wq *wq = hv_exp_wq(ibwq)->verbs;
    struct ibv_wq_attr verbs = {
        .attr_mask = (attr->attr_mask & IBV_EXP_WQ_ATTR_STATE ? IBV_WQ_ATTR_STATE : 0) |
                     (attr->attr_mask & IBV_EXP_WQ_ATTR_CURR_STATE ? IBV_WQ_ATTR_CURR_STATE : 0) |
                     (vlan ? IBV_WQ_ATTR_FLAGS : 0),
        .wq_state = (enum ibv_wq_state)attr->wq_state,
        .curr_wq_state = (enum ibv_wq_state)attr->curr_wq_state,
        .flags = strips ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0,
        .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING,
    };
    int err = ibv_modify_wq(wq, &verbs);

    ibwq->state = (enum ibv_exp_wq_state)wq->state;
    return err;
}

static int exp_destroy_wq(struct ibv_exp_wq *ibwq)
{
    int err = ibv_destroy_wq(hv_exp_wq(ibwq)->verbs);

    if (!err) {
        free(ibwq);
    }
    return err;
}

/* -- indirection tables ------------------------------------------------------------------------ */

struct exp_ind_table {
    struct ibv_exp_rwq_ind_table ibv;
    struct ibv_rwq_ind_table *verbs;
};

/* 0 or errno. */
static int exp_ind_table_check(struct hv_hca *hca,
                               const struct ibv_exp_rwq_ind_table_init_attr *attr)
{
    if (attr->log_ind_tbl_size > HV_CAP(hca, log_max_rqt_size)) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_rwq_ind_table: log_ind_tbl_size is %u; it may be %u",
                         attr->log_ind_tbl_size, HV_CAP(hca, log_max_rqt_size));
    }
    for (unsigned i = 0; i < 1u << attr->log_ind_tbl_size; i++) {
        if (!attr->ind_tbl || !attr->ind_tbl[i]) {
            return hv_refuse(hca, EINVAL, "exp_create_rwq_ind_table: WQ %u of the table is NULL",
                             i);
        }
    }
    return 0;
}

static struct ibv_exp_rwq_ind_table *
exp_create_ind_table(struct ibv_context *context, struct ibv_exp_rwq_ind_table_init_attr *attr)
{
    struct ibv_rwq_ind_table_init_attr verbs = {.log_ind_tbl_size = attr->log_ind_tbl_size};
    g_autofree struct ibv_wq **wqs = NULL;
    struct exp_ind_table *table;
    int err = exp_ind_table_check(hv_hca_of(context), attr);

    if (err) {
        errno = err;
        return NULL;
    }
    wqs = g_new0(struct ibv_wq *, 1u << attr->log_ind_tbl_size);
    for (unsigned i = 0; i < 1u << attr->log_ind_tbl_size; i++) {
        wqs[i] = hv_exp_wq(attr->ind_tbl[i])->verbs;
    }
    verbs.ind_tbl = wqs;
    table = calloc(1, sizeof(*table));
    if (!table) {
        return NULL;
    }
    table->verbs = ibv_create_rwq_ind_table(context, &verbs);
    if (!table->verbs) {
        free(table);
        return NULL;
    }
    table->ibv = (struct ibv_exp_rwq_ind_table){
        .context = context,
        .pd = attr->pd,
        .ind_tbl_handle = table->verbs->ind_tbl_handle,
        .ind_tbl_num = table->verbs->ind_tbl_num,
    };
    return &table->ibv;
}

static int exp_destroy_ind_table(struct ibv_exp_rwq_ind_table *ibv)
{
    int err = ibv_destroy_rwq_ind_table(((struct exp_ind_table *)ibv)->verbs);

    if (!err) {
        free(ibv);
    }
    return err;
}

struct ibv_rwq_ind_table *hv_exp_ind_table(struct ibv_exp_rwq_ind_table *ibv)
{
    return ibv ? ((struct exp_ind_table *)ibv)->verbs : NULL;
}

void hv_exp_wq_ops(struct verbs_context_exp *ops)
{
    ops->exp_create_wq = exp_create_wq;
    ops->exp_modify_wq = exp_modify_wq;
    ops->exp_destroy_wq = exp_destroy_wq;
    ops->exp_create_rwq_ind_table = exp_create_ind_table;
    ops->exp_destroy_rwq_ind_table = exp_destroy_ind_table;
}
