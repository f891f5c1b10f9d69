/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's own queue for UMRs, which may change any key of any PD (driver: umr.c,
 * mlx5r_umr_resource_init()). It is made when it is first needed, and stays until drv_close().
 */
#include <string.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/drv/drv_internal.h"

#define LOG_SQ      4
#define LOG_CQ      4
#define WQEBB       64u
#define UMR_TIMEOUT 10000000000ull /* ns */

struct umr_wqe {
    struct prm_wqe_ctrl_seg ctrl[1];
    struct prm_wqe_umr_ctrl_seg umr[1];
    struct prm_mkc mkc[1];
};

struct drv_umr {
    struct drv_cq cq;
    struct drv_qp qp;
};

static int umr_open(struct drv *drv)
{
    struct drv_umr *umr = g_new0(struct drv_umr, 1);
    struct drv_qp_attr attr = {
        .st = PRM_QP_ST_REG_UMR,
        .pdn = drv->pdn,
        .send_cq = &umr->cq,
        .recv_cq = &umr->cq,
        .no_rq = true,
        .log_sq = LOG_SQ,
    };
    struct drv_path path = {.no_remote_access = true};
    int status = drv_create_cq(drv, LOG_CQ, &umr->cq);

    if (status) {
        g_free(umr);
        return status;
    }
    status = drv_create_qp(drv, &attr, &umr->qp);
    if (status) {
        drv_destroy_cq(drv, &umr->cq);
        g_free(umr);
        return status;
    }
    drv->umr = umr;
    status = drv_qp_connect(&umr->qp, &path);
    if (status) {
        drv_umr_close(drv);
    }
    return status;
}

void drv_umr_close(struct drv *drv)
{
    struct drv_umr *umr = drv->umr;

    drv->umr = NULL;
    if (umr) {
        drv_destroy_qp(&umr->qp);
        drv_destroy_cq(drv, &umr->cq);
        g_free(umr);
    }
}

int drv_umr(struct drv *drv, uint32_t key, uint64_t mask, const struct prm_mkc *mkc)
{
    struct umr_wqe wqe = {0};
    int status = drv->lost ? PRM_CMD_STATUS_INTERNAL_ERR : drv->umr ? 0 : umr_open(drv);
    struct drv_qp *qp;
    struct drv_wc wc;

    if (status) {
        return status;
    }
    qp = &drv->umr->qp;
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, wqe_index, qp->sq_pi);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ds, sizeof(wqe) / 16);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ce, PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, umr_mkey, key);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, check_free, PRM_UMR_CHECK_FREE);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, mkey_mask, mask);
    wqe.mkc[0] = *mkc;
    for (size_t at = 0; at < sizeof(wqe); at += WQEBB) {
        memcpy((uint8_t *)qp->ring.ptr + qp->sq_offset +
                   (size_t)(qp->sq_pi & ((1u << LOG_SQ) - 1)) * WQEBB,
               (const uint8_t *)&wqe + at, WQEBB);
        qp->sq_pi++;
    }
    __atomic_store_n(&qp->dbr[1], GUINT32_TO_BE(qp->sq_pi), __ATOMIC_RELEASE);
    drv_ring_doorbell(qp, (uint32_t)prm_load32(&wqe), (uint32_t)prm_load32(&wqe.ctrl->bytes[4]));
    if (!drv_wait_cq(drv, &drv->umr->cq, &wc, UMR_TIMEOUT)) {
        return DRV_TIMEOUT;
    }
    if (wc.opcode != PRM_CQE_OPCODE_REQ) {
        drv_umr_close(drv); /* the queue is in the error state; the next UMR makes another one */
        return PRM_CMD_STATUS_BAD_PARAM;
    }
    return 0;
}
