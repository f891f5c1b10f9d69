/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts work: send WQEs segment by segment, receive WQEs, doorbells.
 *
 * A send WQE is built in a flat buffer and then copied into the ring's 64-byte basic blocks, so the
 * code that builds it need not handle wrapping.
 */
#include <string.h>
#include "guest-lib/drv/drv.h"

#define WQEBB       64
#define SEGMENT     16
#define MAX_WQE     1008
#define INLINE_FLAG 0x80000000u
#define BF_SIZE     0x100
#define UDP_SPORT   0xc000
#define HOP_LIMIT   64

static uint8_t *drv_wqe_put_raddr(uint8_t *seg, uint64_t raddr, uint32_t rkey)
{
    prm_store64(seg, raddr);
    prm_store32(seg + 8, rkey);
    return seg + SEGMENT;
}

static uint8_t *drv_wqe_put_data(uint8_t *seg, const struct drv_sge *sge)
{
    prm_store32(seg, sge->len);
    prm_store32(seg + 4, sge->lkey);
    prm_store64(seg + 8, sge->va);
    return seg + SEGMENT;
}

static uint8_t *drv_wqe_put_inline(uint8_t *seg, const struct drv_send *send)
{
    uint8_t *p = seg + 4;

    for (unsigned i = 0; i < send->num_sge; i++) {
        g_assert((size_t)(p - seg) + send->sge[i].len <= MAX_WQE / 2);
        memcpy(p, (const void *)(uintptr_t)send->sge[i].va, send->sge[i].len);
        p += send->sge[i].len;
    }
    prm_store32(seg, (uint32_t)(p - seg - 4) | INLINE_FLAG);
    while ((p - seg) % SEGMENT) {
        *p++ = 0;
    }
    return p;
}

/* Writes an extended atomic's operands: swap, compare and their masks, or add and boundary, padded
 * to units of 16 bytes. */
static uint8_t *drv_wqe_put_operands(uint8_t *seg, const struct drv_send *send)
{
    size_t n = send->opcode == PRM_WQE_OPCODE_ATOMIC_MASKED_CS ? 4 : 2;
    size_t len = n * send->sge->len;

    memcpy(seg, send->operands, len);
    return seg + MAX(len, SEGMENT);
}

/* Writes the whole address vector, always. */
static uint8_t *drv_wqe_put_av(uint8_t *seg, const struct drv_path *ah, uint32_t qkey)
{
    struct prm_wqe_av *av = (void *)seg;

    PRM_SET(wqe_av, av, qkey, qkey);
    PRM_SET(wqe_av, av, ext, 1);
    PRM_SET(wqe_av, av, dqp_dct, ah->remote_qpn);
    PRM_SET(wqe_av, av, udp_sport, UDP_SPORT);
    memcpy(PRM_PTR(wqe_av, av, rmac), ah->mac, 6);
    PRM_SET(wqe_av, av, hop_limit, HOP_LIMIT);
    PRM_SET(wqe_av, av, grh, 1);
    PRM_SET(wqe_av, av, src_addr_index, ah->sgid_index);
    memcpy(PRM_PTR(wqe_av, av, rgid), ah->gid, 16);
    return seg + PRM_SIZE(wqe_av);
}

uint16_t drv_post_send(struct drv_qp *qp, const struct drv_send *send)
{
    uint8_t wqe[MAX_WQE + WQEBB] = {0};
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe;
    uint8_t *seg = wqe + SEGMENT;
    uint16_t index = qp->sq_pi;
    uint32_t mask = (1u << qp->attr.log_sq) - 1;
    unsigned ds, blocks;

    if (qp->attr.st == PRM_QP_ST_XRC) {
        PRM_SET(wqe_xrc_seg, (void *)seg, xrc_srqn, send->xrc_srqn);
        seg += PRM_SIZE(wqe_xrc_seg);
    }
    if (send->ah) {
        struct prm_wqe_av *av = (void *)seg;

        seg = drv_wqe_put_av(seg, send->ah, send->qkey);
        if (qp->attr.st == PRM_QP_ST_DCI) {
            PRM_SET(wqe_av, av, dc_key, send->dc_key);
        }
    }
    switch (send->opcode) {
    case PRM_WQE_OPCODE_RDMA_WRITE:
    case PRM_WQE_OPCODE_RDMA_WRITE_IMM:
    case PRM_WQE_OPCODE_RDMA_READ:
        seg = drv_wqe_put_raddr(seg, send->raddr, send->rkey);
        break;
    case PRM_WQE_OPCODE_ATOMIC_CS:
    case PRM_WQE_OPCODE_ATOMIC_FA:
        seg = drv_wqe_put_raddr(seg, send->raddr, send->rkey);
        prm_store64(seg, send->swap_add);
        prm_store64(seg + 8, send->compare);
        seg += SEGMENT;
        break;
    case PRM_WQE_OPCODE_ATOMIC_MASKED_CS:
    case PRM_WQE_OPCODE_ATOMIC_MASKED_FA:
        seg = drv_wqe_put_raddr(seg, send->raddr, send->rkey);
        seg = drv_wqe_put_operands(seg, send);
        PRM_SET(wqe_ctrl_seg, ctrl, opmod, 8 | (__builtin_ctz(send->sge->len) - 2));
        break;
    }
    if (send->flags & DRV_INLINE) {
        seg = drv_wqe_put_inline(seg, send);
    } else {
        for (unsigned i = 0; i < send->num_sge; i++) {
            seg = drv_wqe_put_data(seg, &send->sge[i]);
        }
    }
    ds = (unsigned)(seg - wqe) / SEGMENT;
    blocks = (ds + 3) / 4;
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, index);
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, send->opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, ds);
    PRM_SET(wqe_ctrl_seg, ctrl, ce, send->flags & DRV_SIGNALED ? PRM_WQE_CE_ALWAYS : 0);
    PRM_SET(wqe_ctrl_seg, ctrl, se, !!(send->flags & DRV_SOLICITED));
    PRM_SET(wqe_ctrl_seg, ctrl, fm, send->flags & DRV_FENCE ? PRM_WQE_FM_SMALL_AND_FENCE : 0);
    PRM_SET(wqe_ctrl_seg, ctrl, imm, send->imm);
    for (unsigned i = 0; i < blocks; i++) {
        memcpy((uint8_t *)qp->ring.ptr + qp->sq_offset + (size_t)((index + i) & mask) * WQEBB,
               wqe + (size_t)i * WQEBB, WQEBB);
    }
    qp->sq_pi = (uint16_t)(index + blocks);
    qp->dbr[1] = GUINT32_TO_BE(qp->sq_pi);
    if (!(send->flags & DRV_NO_DOORBELL)) {
        drv_ring_doorbell(qp, (uint32_t)prm_load32(wqe), (uint32_t)prm_load32(wqe + 4));
    }
    return index;
}

/* Writes to the two halves of the BlueFlame register alternately. */
void drv_ring_doorbell(struct drv_qp *qp, uint32_t ctrl0, uint32_t ctrl1)
{
    struct drv *drv = qp->drv;

    drv->dev.ops->mmio_write(drv->dev.pci,
                             (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame) +
                                 (qp->bf_toggle++ & 1) * BF_SIZE,
                             (uint64_t)ctrl0 << 32 | ctrl1, 8);
}

/* If the list is shorter than the slot, it ends with the invalid key. */
static void drv_wqe_put_recv_list(uint8_t *slot, size_t slot_len, const struct drv_sge *sge,
                                  unsigned n)
{
    struct drv_sge end = {.lkey = 0x100};

    for (unsigned i = 0; i < n; i++) {
        slot = drv_wqe_put_data(slot, &sge[i]);
    }
    if (n * SEGMENT < slot_len) {
        drv_wqe_put_data(slot, &end);
    }
}

void drv_post_recv(struct drv_qp *qp, const struct drv_sge *sge, unsigned num_sge)
{
    uint32_t slot = qp->rq_pi & ((1u << qp->attr.log_rq) - 1);

    g_assert(num_sge <= 1u << (qp->log_rq_stride - 4));
    drv_wqe_put_recv_list((uint8_t *)qp->ring.ptr + ((size_t)slot << qp->log_rq_stride),
                          1u << qp->log_rq_stride, sge, num_sge);
    qp->rq_pi++;
    qp->dbr[0] = GUINT32_TO_BE(qp->rq_pi);
}

void drv_post_srq_recv(struct drv *drv, struct drv_srq *srq, const struct drv_sge *sge,
                       unsigned num_sge)
{
    uint8_t *slot = (uint8_t *)srq->ring.ptr + ((size_t)srq->head << srq->log_stride);

    g_assert(num_sge < 1u << (srq->log_stride - 4));
    srq->head = (uint32_t)prm_load16(slot + 2);
    drv_wqe_put_recv_list(slot + SEGMENT, (1u << srq->log_stride) - SEGMENT, sge, num_sge);
    srq->counter++;
    srq->dbr[0] = GUINT32_TO_BE(srq->counter);
}
