/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DC in the experimental verbs: targets, the attributes of initiators, and the trace of refused
 * connections (docs/adr/0033-dc-of-the-experimental-verbs.md).
 */
#include <inttypes.h>
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/qp.h"

/* -- targets ----------------------------------------------------------------------------------- */

/* The checks of libibverbs and the kernel before the device is asked: 0 or EINVAL. */
static int exp_dct_check(struct hv_hca *hca, const struct ibv_exp_dct_init_attr *attr)
{
    if (!attr->pd || !attr->cq || !attr->srq) {
        return hv_refuse(hca, EINVAL, "exp_create_dct: a DCT needs a PD, a CQ and an SRQ");
    }
    if (attr->create_flags & ~(uint32_t)IBV_EXP_DCT_CREATE_FLAGS_MASK) {
        return hv_refuse(hca, EINVAL, "exp_create_dct: create_flags has unknown bits 0x%x",
                         attr->create_flags & ~(uint32_t)IBV_EXP_DCT_CREATE_FLAGS_MASK);
    }
    if (attr->port != 1) {
        return hv_refuse(hca, EINVAL, "exp_create_dct: port is %u; the device has port 1",
                         attr->port);
    }
    if (attr->create_flags & IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT &&
        !HV_CAP(hca, dp_ordering_ooo_rw_dc)) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_dct: this generation of the device places no data of DC out "
                         "of order");
    }
    if (hv_srq(attr->srq)->type == IBV_SRQT_TM && !HV_CAP(hca, rndv_offload_dc)) {
        return hv_refuse(hca, EINVAL,
                         "exp_create_dct: this generation of the device matches no tags for DC");
    }
    return 0;
}

/* Takes a new DCT to RTR, where it gets its number (dct_modify_qp_INIT(), _RTR()). 0 or errno. */
static int exp_dct_start(struct ibv_qp *qp, const struct ibv_exp_dct_init_attr *attr)
{
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT,
                                  .qp_access_flags = (int)attr->access_flags,
                                  .port_num = attr->port,
                                  .pkey_index = attr->pkey_index};
    struct ibv_qp_attr to_rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = attr->mtu,
        .min_rnr_timer = attr->min_rnr_timer,
        .ah_attr = {.is_global = 1,
                    .port_num = attr->port,
                    .grh = {.flow_label = attr->flow_label,
                            .sgid_index = attr->gid_index,
                            .hop_limit = attr->hop_limit,
                            .traffic_class = attr->tclass}},
    };
    int err = ibv_modify_qp(qp, &to_init,
                            IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);

    return err ? err
               : ibv_modify_qp(qp, &to_rtr,
                               IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU);
}

/* Makes the DCT of direct verbs. NULL with errno. */
static struct ibv_qp *exp_dct_new_qp(struct ibv_context *context,
                                     const struct ibv_exp_dct_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_QPT_DRIVER,
                                     .send_cq = attr->cq,
                                     .recv_cq = attr->cq,
                                     .srq = attr->srq,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD,
                                     .pd = attr->pd};
    struct hv_qp_extra extra = {.dc = HV_DC_DCT,
                                .dct_access_key = attr->dc_key,
                                .allow_scatter_to_cqe = attr->inline_size != 0,
                                .no_scatter_to_cqe = attr->inline_size == 0};

    return hv_qp_create(context, &ex, &extra);
}

static struct ibv_exp_dct *exp_create_dct(struct ibv_context *context,
                                          struct ibv_exp_dct_init_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(context);
    int err = exp_dct_check(hca, attr);
    struct hv_exp_dct *dct = err ? NULL : calloc(1, sizeof(*dct));
    struct ibv_qp *qp;

    if (!dct) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    qp = exp_dct_new_qp(context, attr);
    if (!qp) {
        free(dct);
        return NULL;
    }
    dct->qp = user_qp(qp);
    dct->ibv = (struct ibv_exp_dct){
        .context = context, .handle = qp->handle, .pd = attr->pd, .cq = attr->cq, .srq = attr->srq};
    pthread_mutex_init(&dct->ibv.mutex, NULL);
    pthread_cond_init(&dct->ibv.cond, NULL);
    dct->qp->ooo_rw = attr->create_flags & IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT;
    dct->qp->exp_dct = dct;
    err = exp_dct_start(qp, attr);
    if (err) {
        ibv_destroy_qp(qp);
        free(dct);
        errno = err;
        return NULL;
    }
    dct->ibv.dct_num = qp->qp_num;
    hv_event_add_dct(hca, &dct->qp->hv);
    /* a CQE of 64 bytes has no room for data of a DCT */
    attr->inline_size = attr->inline_size && hv_cq(attr->cq)->cqe_size == 128 ? 64 : 0;
    return &dct->ibv;
}

static int exp_destroy_dct(struct ibv_exp_dct *ibdct)
{
    struct hv_exp_dct *dct = hv_exp_dct(ibdct);
    int err = ibv_destroy_qp(&dct->qp->ibv);

    if (!err) {
        pthread_mutex_destroy(&ibdct->mutex);
        pthread_cond_destroy(&ibdct->cond);
        free(dct);
    }
    return err;
}

static int exp_query_dct(struct ibv_exp_dct *ibdct, struct ibv_exp_dct_attr *attr)
{
    struct prm_dctc dctc[1];
    int err = hv_kernel(uverbs_query_dct(&hv_exp_dct(ibdct)->qp->hv, dctc));

    if (err) {
        return err;
    }
    attr->dc_key = PRM_GET(dctc, dctc, dc_access_key);
    attr->port = (uint8_t)PRM_GET(dctc, dctc, port);
    attr->access_flags = (PRM_GET(dctc, dctc, rre) ? IBV_ACCESS_REMOTE_READ : 0) |
                         (PRM_GET(dctc, dctc, rwe) ? IBV_ACCESS_REMOTE_WRITE : 0) |
                         (PRM_GET(dctc, dctc, rae) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
    attr->min_rnr_timer = (uint8_t)PRM_GET(dctc, dctc, min_rnr_nak);
    attr->tclass = (uint8_t)PRM_GET(dctc, dctc, tclass);
    attr->flow_label = PRM_GET(dctc, dctc, flow_label);
    attr->mtu = PRM_GET(dctc, dctc, mtu);
    attr->pkey_index = (uint8_t)PRM_GET(dctc, dctc, pkey_index);
    attr->gid_index = (uint8_t)PRM_GET(dctc, dctc, my_addr_index);
    attr->hop_limit = (uint8_t)PRM_GET(dctc, dctc, hop_limit);
    attr->key_violations = PRM_GET(dctc, dctc, dc_access_key_violation_count);
    attr->state = (uint8_t)PRM_GET(dctc, dctc, state);
    attr->srq = ibdct->srq;
    attr->cq = ibdct->cq;
    attr->pd = ibdct->pd;
    return 0;
}

static int exp_arm_dct(struct ibv_exp_dct *ibdct, struct ibv_exp_arm_attr *attr)
{
    if (attr->comp_mask) {
        errno = EINVAL;
        return EINVAL;
    }
    return hv_kernel(uverbs_arm_dct(&hv_exp_dct(ibdct)->qp->hv));
}

/* -- initiators -------------------------------------------------------------------------------- */

struct ibv_qp *hv_exp_create_dci(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_init_attr_ex ex = *attr;
    struct hv_qp_extra extra = {.dc = HV_DC_DCI, .no_scatter_to_cqe = true};
    struct ibv_qp *qp;

    ex.qp_type = IBV_QPT_DRIVER;
    qp = hv_qp_create(context, &ex, &extra);
    if (qp) {
        qp->qp_type = attr->qp_type;
        attr->cap = ex.cap;
    }
    return qp;
}

/* -- changes of QPs ---------------------------------------------------------------------------- */

/* Whether the device places data of READs and WRITEs of this service out of order. */
static bool exp_dct_ooo_is_possible(const struct hv_qp *qp)
{
    if (qp->dc == HV_DC_DCI) {
        return HV_CAP(qp->hca, dp_ordering_ooo_rw_dc);
    }
    switch (qp->ibv.qp_type) {
    case IBV_QPT_RC:
        return HV_CAP(qp->hca, dp_ordering_ooo_rw_rc);
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return HV_CAP(qp->hca, dp_ordering_ooo_rw_xrc);
    default:
        return false;
    }
}

/* The bit is an attribute of the change to RTR only (qp_state_table of MLNX_OFED's ib_core). */
int hv_exp_take_ooo(struct hv_qp *qp, enum ibv_qp_state to)
{
    if (qp->state != IBV_QPS_INIT || to != IBV_QPS_RTR || !exp_dct_ooo_is_possible(qp)) {
        return hv_refuse(qp->hca, EINVAL,
                         "exp_modify_qp: IBV_EXP_QP_OOO_RW_DATA_PLACEMENT is for RC, XRC and DC on "
                         "a device with ooo_caps, from INIT to RTR");
    }
    qp->ooo_rw = true;
    return 0;
}

/* The attributes that a DCI's transition has in its mask besides IBV_QP_STATE (qp_state_table of
 * MLNX_OFED's ib_core). Unlike the transitions of direct verbs, they have a DC key, need an address
 * vector and have no SQ PSN. The device uses the key of each work request. */
static const struct exp_dci_row {
    enum ibv_qp_state from, to;
    uint64_t required, optional;
} exp_dci_rows[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_EXP_QP_DC_KEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_EXP_QP_DC_KEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU,
     IBV_QP_PKEY_INDEX | IBV_EXP_QP_DC_KEY | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_MIN_RNR_TIMER},
};

static const struct exp_dci_row *exp_dct_dci_row(enum ibv_qp_state from, enum ibv_qp_state to)
{
    for (size_t i = 0; i < G_N_ELEMENTS(exp_dci_rows); i++) {
        if (exp_dci_rows[i].from == from && exp_dci_rows[i].to == to) {
            return &exp_dci_rows[i];
        }
    }
    return NULL;
}

int hv_exp_take_dci(struct hv_qp *qp, uint64_t exp_mask, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state from = exp_mask & IBV_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
    enum ibv_qp_state to = exp_mask & IBV_QP_STATE ? attr->qp_state : from;
    uint64_t given = exp_mask & ~(uint64_t)(IBV_QP_STATE | IBV_QP_CUR_STATE);
    const struct exp_dci_row *row = exp_dct_dci_row(from, to);

    *mask = (int)(exp_mask & 0xffffffff & ~(uint64_t)IBV_QP_CUR_STATE) | IBV_QP_STATE;
    attr->qp_state = to;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return 0; /* ibv_modify_qp() checks that there is nothing else */
    }
    if (!row || (given & row->required) != row->required ||
        (given & ~(row->required | row->optional))) {
        return hv_refuse(qp->hca, EINVAL,
                         "exp_modify_qp (a DCI): %s to %s takes other attributes than 0x%" PRIx64,
                         hv_qp_state_name(from), hv_qp_state_name(to), exp_mask);
    }
    if (to == IBV_QPS_RTR) { /* only the service level counts (set_dc_ini_ah_fields()) */
        attr->ah_attr.port_num = 1;
        attr->ah_attr.static_rate = 0;
    }
    if (from == IBV_QPS_RTR) {
        attr->sq_psn = 0;
        *mask |= IBV_QP_SQ_PSN;
    }
    return 0;
}

/* -- refused connections ----------------------------------------------------------------------- */

/* The trace names initiators by LID, and a RoCE port has no LIDs: the kernel does not map it
 * (mlx5_ib_mmap_dc_info_page()), and libmlx5 then answers so. */
static int exp_dct_poll_info(struct ibv_context *context, struct ibv_exp_dc_info_ent *ents,
                             int nent, int port)
{
    return -ENOSYS;
}

void hv_exp_dct_ops(struct verbs_context_exp *ops)
{
    ops->create_dct = exp_create_dct;
    ops->destroy_dct = exp_destroy_dct;
    ops->query_dct = exp_query_dct;
    ops->drv_exp_arm_dct = ops->lib_exp_arm_dct = exp_arm_dct;
    ops->drv_exp_poll_dc_info = exp_dct_poll_info;
}
