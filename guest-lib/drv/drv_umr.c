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
    struct prm_wqe_data_seg data[1]; /* where the entries are; without entries, not part of it */
};
#define UMR_BARE offsetof(struct umr_wqe, data) /* bytes of a WQE without entries */

struct drv_umr {
    struct drv_cq cq;
    struct drv_qp qp;
    struct drv_mem entries; /* drv_umr_buffer(); without memory: not needed yet */
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
        drv_free(drv, &umr->entries);
        g_free(umr);
    }
}

/* Makes the queue if it is not there. Returns a command's status. */
static int umr_need(struct drv *drv)
{
    return drv->lost ? PRM_CMD_STATUS_INTERNAL_ERR : drv->umr ? 0 : umr_open(drv);
}

/* Writes the first len bytes of a WQE to the ring and rings the doorbell. */
static void umr_ring(struct drv_qp *qp, struct umr_wqe *wqe, size_t len)
{
    uint8_t *sq = (uint8_t *)qp->ring.ptr + qp->sq_offset;

    PRM_SET(wqe_ctrl_seg, wqe->ctrl, wqe_index, qp->sq_pi);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ds, len / 16);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ce, PRM_WQE_CE_ALWAYS);
    for (size_t at = 0; at < len; at += WQEBB) {
        memcpy(sq + (size_t)(qp->sq_pi & ((1u << LOG_SQ) - 1)) * WQEBB, (const uint8_t *)wqe + at,
               MIN(WQEBB, len - at));
        qp->sq_pi++;
    }
    __atomic_store_n(&qp->dbr[1], GUINT32_TO_BE(qp->sq_pi), __ATOMIC_RELEASE);
    drv_ring_doorbell(qp, (uint32_t)prm_load32(wqe), (uint32_t)prm_load32(&wqe->ctrl->bytes[4]));
}

/* Carries out a UMR. Returns a command's status. */
static int umr_do(struct drv *drv, struct umr_wqe *wqe, size_t len)
{
    struct drv_wc wc;

    umr_ring(&drv->umr->qp, wqe, len);
    if (!drv_wait_cq(drv, &drv->umr->cq, &wc, UMR_TIMEOUT)) {
        return DRV_TIMEOUT;
    }
    if (wc.opcode != PRM_CQE_OPCODE_REQ) {
        drv_umr_close(drv); /* the queue is in the error state; the next UMR makes another one */
        return PRM_CMD_STATUS_BAD_PARAM;
    }
    return 0;
}

int drv_umr(struct drv *drv, uint32_t key, uint64_t mask, const struct prm_mkc *mkc)
{
    struct umr_wqe wqe = {0};
    int status = umr_need(drv);

    if (status) {
        return status;
    }
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, umr_mkey, key);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, check_free, PRM_UMR_CHECK_FREE);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, mkey_mask, mask);
    wqe.mkc[0] = *mkc;
    return umr_do(drv, &wqe, UMR_BARE);
}

void *drv_umr_buffer(struct drv *drv, int *status)
{
    *status = umr_need(drv);
    if (*status) {
        return NULL;
    }
    if (!drv->umr->entries.ptr) {
        drv->umr->entries = drv_alloc(drv, DRV_UMR_ENTRIES);
    }
    return drv->umr->entries.ptr;
}

/* As mlx5r_umr_update_xlt() posts it. */
int drv_umr_entries(struct drv *drv, const struct drv_umr_entries *umr)
{
    struct umr_wqe wqe = {0};
    uint64_t octword = umr->offset / 16;
    int status = umr_need(drv);

    if (status) {
        return status;
    }
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, umr_mkey, umr->key);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, check_free,
            umr->is_free ? PRM_UMR_CHECK_NOT_FREE : PRM_UMR_CHECK_FREE);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, mkey_mask, umr->mask);
    if (umr->mkc) {
        wqe.mkc[0] = *umr->mkc;
    }
    if (!umr->len) {
        PRM_SET(wqe_umr_ctrl_seg, wqe.umr, inl, 1);
        return umr_do(drv, &wqe, UMR_BARE);
    }
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, translation_offset_en, 1);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, xlt_octowords, umr->len / 16);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, xlt_offset, octword & 0xffff);
    PRM_SET(wqe_umr_ctrl_seg, wqe.umr, xlt_offset_47_16, octword >> 16);
    PRM_SET(wqe_data_seg, wqe.data, byte_count, umr->len);
    PRM_SET(wqe_data_seg, wqe.data, lkey, drv->resd_lkey);
    PRM_SET(wqe_data_seg, wqe.data, addr, drv->umr->entries.bus);
    return umr_do(drv, &wqe, sizeof(wqe));
}
