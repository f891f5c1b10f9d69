/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues and queue pairs: creation and state transitions. */
#include <string.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/drv/drv_internal.h"

#define USER_INDEX_NONE 0xffffff /* CQEs of version 0 */
#define SRQ_LOG_STRIDE  6        /* next segment and up to three data segments */

int drv_create_srq(struct drv *drv, uint32_t pdn, unsigned log_size, struct drv_srq *srq)
{
    size_t ring = 1ul << (log_size + SRQ_LOG_STRIDE);
    size_t len = PRM_SIZE(create_srq_in) + 8 * drv_pages(ring);
    g_autofree struct prm_create_srq_in *in = g_malloc0(len);
    struct prm_create_srq_out out[1] = {0};
    struct prm_srqc *srqc = PRM_PTR(create_srq_in, in, srq_context_entry);
    uint32_t size = 1u << log_size;
    int status;

    memset(srq, 0, sizeof(*srq));
    srq->log_size = log_size;
    srq->log_stride = SRQ_LOG_STRIDE;
    srq->ring = drv_alloc(drv, ring);
    srq->dbr = drv_new_db(drv, &srq->dbr_bus);
    /* the free list: each slot's next segment names the following slot */
    for (uint32_t i = 0; i < size; i++) {
        prm_store16((uint8_t *)srq->ring.ptr + ((size_t)i << SRQ_LOG_STRIDE) + 2,
                    (i + 1) & (size - 1));
    }
    PRM_SET(create_srq_in, in, opcode, PRM_CMD_OP_CREATE_SRQ);
    PRM_SET(create_srq_in, in, uid, drv->uid);
    PRM_SET(srqc, srqc, log_srq_size, log_size);
    PRM_SET(srqc, srqc, log_rq_stride, SRQ_LOG_STRIDE - 4);
    PRM_SET(srqc, srqc, pd, pdn);
    PRM_SET(srqc, srqc, dbr_addr, srq->dbr_bus);
    drv_set_pas(PRM_PTR(create_srq_in, in, pas), &srq->ring);
    status = drv_cmd(drv, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_srq_out, out, srqn);
    if (status) {
        drv_free(drv, &srq->ring);
        drv_free_db(drv, srq->dbr, srq->dbr_bus);
    }
    return status;
}

int drv_destroy_srq(struct drv *drv, struct drv_srq *srq)
{
    struct prm_destroy_srq_in in[1] = {0};
    int status;

    PRM_SET(destroy_srq_in, in, opcode, PRM_CMD_OP_DESTROY_SRQ);
    PRM_SET(destroy_srq_in, in, uid, drv->uid);
    PRM_SET(destroy_srq_in, in, srqn, srq->srqn);
    status = drv_cmd_simple(drv, in, sizeof(in));
    if (!status) {
        drv_free(drv, &srq->ring);
        drv_free_db(drv, srq->dbr, srq->dbr_bus);
    }
    return status;
}

int drv_arm_srq(struct drv *drv, struct drv_srq *srq, uint16_t limit)
{
    struct prm_arm_rq_in in[1] = {0};

    PRM_SET(arm_rq_in, in, opcode, PRM_CMD_OP_ARM_RQ);
    PRM_SET(arm_rq_in, in, op_mod, PRM_ARM_RQ_OP_SRQ);
    PRM_SET(arm_rq_in, in, uid, drv->uid);
    PRM_SET(arm_rq_in, in, srq_number, srq->srqn);
    PRM_SET(arm_rq_in, in, lwm, limit);
    return drv_cmd_simple(drv, in, sizeof(in));
}

/* The RQ lies at the ring's start, the SQ right behind it (calc in mlx5_ib create_kernel_qp()). */
int drv_create_qp(struct drv *drv, const struct drv_qp_attr *attr, struct drv_qp *qp)
{
    unsigned log_stride = 4 + (unsigned)g_bit_storage(MAX(attr->max_recv_sge, 1) - 1);
    size_t rq_bytes = attr->srq || attr->no_rq ? 0 : 1ul << (attr->log_rq + log_stride);
    size_t ring = rq_bytes + (attr->no_sq ? 0 : 64ul << attr->log_sq);
    size_t len = PRM_SIZE(create_qp_in) + 8 * drv_pages(ring);
    g_autofree struct prm_create_qp_in *in = g_malloc0(len);
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    int status;

    memset(qp, 0, sizeof(*qp));
    qp->drv = drv;
    qp->attr = *attr;
    qp->log_rq_stride = log_stride;
    qp->sq_offset = rq_bytes;
    qp->ring = drv_alloc(drv, MAX(ring, 1));
    qp->dbr = drv_new_db(drv, &qp->dbr_bus);
    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, uid, drv->uid);
    PRM_SET(qpc, qpc, st, attr->st);
    PRM_SET(qpc, qpc, pm_state, 3); /* migrated */
    PRM_SET(qpc, qpc, rlky, 1);     /* may use the reserved lkey (create_kernel_qp()) */
    PRM_SET(qpc, qpc, fre, 1);
    PRM_SET(qpc, qpc, pd, attr->pdn);
    PRM_SET(qpc, qpc, uar_page, drv->uarn);
    PRM_SET(qpc, qpc, log_sq_size, attr->log_sq);
    PRM_SET(qpc, qpc, no_sq, attr->no_sq);
    PRM_SET(qpc, qpc, offload_type, attr->fetches ? PRM_QP_OFFLOAD_RNDV : PRM_QP_OFFLOAD_NONE);
    PRM_SET(qpc, qpc, xrcd, attr->xrcd);
    PRM_SET(qpc, qpc, log_num_dci_stream_channels, attr->log_streams);
    PRM_SET(qpc, qpc, cd_master, attr->cd_master);
    PRM_SET(qpc, qpc, cd_slave_send, attr->cd_slave_send);
    PRM_SET(qpc, qpc, cd_slave_receive, attr->cd_slave_receive);
    PRM_SET(qpc, qpc, cs_req, attr->cs_req);
    PRM_SET(qpc, qpc, cs_res, attr->cs_res);
    PRM_SET(qpc, qpc, cqn_snd, attr->send_cq->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, attr->recv_cq->cqn);
    PRM_SET(qpc, qpc, dbr_addr, qp->dbr_bus);
    PRM_SET(qpc, qpc, user_index, attr->user_index ? attr->user_index : USER_INDEX_NONE);
    if (attr->srq) {
        PRM_SET(qpc, qpc, rq_type, 1); /* SRQ */
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, attr->srq->srqn);
    } else if (attr->no_rq) {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    } else {
        PRM_SET(qpc, qpc, log_rq_size, attr->log_rq);
        PRM_SET(qpc, qpc, log_rq_stride, log_stride - 4);
    }
    if (ring) { /* without a ring, the command has no list of pages */
        drv_set_pas(PRM_PTR(create_qp_in, in, pas), &qp->ring);
    }
    status = drv_cmd(drv, in, len, out, sizeof(out));
    qp->qpn = PRM_GET(create_qp_out, out, qpn);
    if (status) {
        drv_free(drv, &qp->ring);
        drv_free_db(drv, qp->dbr, qp->dbr_bus);
    }
    return status;
}

int drv_destroy_qp(struct drv_qp *qp)
{
    struct prm_destroy_qp_in in[1] = {0};
    int status;

    PRM_SET(destroy_qp_in, in, opcode, PRM_CMD_OP_DESTROY_QP);
    PRM_SET(destroy_qp_in, in, uid, qp->drv->uid);
    PRM_SET(destroy_qp_in, in, qpn, qp->qpn);
    status = drv_cmd_simple(qp->drv, in, sizeof(in));
    if (!status) {
        drv_free(qp->drv, &qp->ring);
        drv_free_db(qp->drv, qp->dbr, qp->dbr_bus);
    }
    return status;
}

int drv_query_qp(struct drv_qp *qp, struct prm_qpc *qpc)
{
    struct prm_query_qp_in in[1] = {0};
    struct prm_query_qp_out out[1] = {0};
    int status;

    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qp->qpn);
    status = drv_cmd(qp->drv, in, sizeof(in), out, sizeof(out));
    memcpy(qpc, PRM_PTR(query_qp_out, out, qpc), PRM_SIZE(qpc));
    return status;
}

/* All transition commands have the layout of rst2init_qp_in; 2ERR and 2RST end before the qpc. */
int drv_modify_qp(struct drv_qp *qp, uint16_t opcode, uint32_t opt_mask, const struct prm_qpc *qpc)
{
    struct prm_rst2init_qp_in in[1] = {0};
    size_t len = qpc ? sizeof(in) : PRM_SIZE(qp_2err_in);

    PRM_SET(rst2init_qp_in, in, opcode, opcode);
    PRM_SET(rst2init_qp_in, in, uid, qp->drv->uid);
    PRM_SET(rst2init_qp_in, in, qpn, qp->qpn);
    PRM_SET(rst2init_qp_in, in, opt_param_mask, opt_mask);
    if (qpc) {
        memcpy(PRM_PTR(rst2init_qp_in, in, qpc), qpc, PRM_SIZE(qpc));
    }
    return drv_cmd_simple(qp->drv, in, len);
}

/* Fills in what every transition repeats: the identity that mlx5_ib puts into each qpc. */
static void drv_qp_fill_common(struct drv_qp *qp, struct prm_qpc *qpc)
{
    memset(qpc, 0, PRM_SIZE(qpc));
    PRM_SET(qpc, qpc, st, qp->attr.st);
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(qpc, qpc, pd, qp->attr.pdn);
    PRM_SET(qpc, qpc, cqn_snd, qp->attr.send_cq->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, qp->attr.recv_cq->cqn);
}

static void drv_qp_fill_access(const struct drv_path *path, struct prm_qpc *qpc)
{
    PRM_SET(qpc, qpc, rre, !path->no_remote_access);
    PRM_SET(qpc, qpc, rwe, !path->no_remote_access);
    PRM_SET(qpc, qpc, rae, !path->no_remote_access);
    PRM_SET(qpc, qpc, atomic_mode,
            path->no_remote_access ? PRM_ATOMIC_MODE_NONE
            : path->order          ? PRM_ATOMIC_MODE_UP_TO_8B
                                   : PRM_ATOMIC_MODE_UP_TO_128B);
}

static bool drv_qp_is_ud(const struct drv_qp *qp)
{
    return qp->attr.st == PRM_QP_ST_UD || qp->attr.st == PRM_QP_ST_QP1;
}

int drv_qp_to_init(struct drv_qp *qp, const struct drv_path *path)
{
    struct prm_qpc qpc[1];

    drv_qp_fill_common(qp, qpc);
    drv_qp_fill_access(path, qpc);
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), vhca_port_num, 1);
    PRM_SET(qpc, qpc, q_key, qp->qkey);
    return drv_modify_qp(qp, PRM_CMD_OP_RST2INIT_QP, 0, qpc);
}

int drv_qp_to_rtr(struct drv_qp *qp, const struct drv_path *path)
{
    struct prm_qpc qpc[1];
    struct prm_ads *ads;

    drv_qp_fill_common(qp, qpc);
    drv_qp_fill_access(path, qpc);
    ads = PRM_PTR(qpc, qpc, primary_address_path);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(qpc, qpc, log_msg_max, drv_qp_is_ud(qp) ? 12 : 30);
    PRM_SET(qpc, qpc, mtu, drv_qp_is_ud(qp) ? 5 : path->mtu ? path->mtu : 3);
    if (!drv_qp_is_ud(qp)) {
        PRM_SET(qpc, qpc, dp_ordering_0, path->order & 1);
        PRM_SET(qpc, qpc, dp_ordering_1, path->order >> 1);
        PRM_SET(qpc, qpc, dp_ordering_force, path->order != PRM_DP_ORDERING_IBTA);
        PRM_SET(qpc, qpc, remote_qpn, path->remote_qpn);
        PRM_SET(qpc, qpc, next_rcv_psn, path->rq_psn);
        PRM_SET(qpc, qpc, min_rnr_nak, path->min_rnr_nak ? path->min_rnr_nak : 1);
        PRM_SET(qpc, qpc, log_rra_max, path->log_rd_atom ? path->log_rd_atom : 4);
        PRM_SET(ads, ads, src_addr_index, path->sgid_index);
        PRM_SET(ads, ads, hop_limit, 64);
        PRM_SET(ads, ads, udp_sport, 0xc000 | (qp->qpn & 0x3fff));
        memcpy(PRM_PTR(ads, ads, rgid_rip), path->gid, 16);
        PRM_SET(ads, ads, rmac_47_32, path->mac[0] << 8 | path->mac[1]);
        PRM_SET(ads, ads, rmac_31_0, prm_load32(path->mac + 2));
    }
    return drv_modify_qp(qp, PRM_CMD_OP_INIT2RTR_QP, 0, qpc);
}

static unsigned drv_qp_retries(uint8_t value)
{
    return value == DRV_NO_RETRY ? 0 : value ? value : 7;
}

int drv_qp_to_rts(struct drv_qp *qp, const struct drv_path *path)
{
    struct prm_qpc qpc[1];

    drv_qp_fill_common(qp, qpc);
    drv_qp_fill_access(path, qpc);
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), vhca_port_num, 1);
    PRM_SET(qpc, qpc, next_send_psn, path->sq_psn);
    if (!drv_qp_is_ud(qp)) {
        PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), ack_timeout,
                path->ack_timeout ? path->ack_timeout : 14);
        PRM_SET(qpc, qpc, retry_count, drv_qp_retries(path->retry_count));
        PRM_SET(qpc, qpc, rnr_retry, drv_qp_retries(path->rnr_retry));
        PRM_SET(qpc, qpc, log_sra_max, path->log_rd_atom ? path->log_rd_atom : 4);
    }
    return drv_modify_qp(qp, PRM_CMD_OP_RTR2RTS_QP, 0, qpc);
}

int drv_qp_connect(struct drv_qp *qp, const struct drv_path *path)
{
    int status = drv_qp_to_init(qp, path);

    if (!status) {
        status = drv_qp_to_rtr(qp, path);
    }
    if (!status) {
        status = drv_qp_to_rts(qp, path);
    }
    return status;
}
