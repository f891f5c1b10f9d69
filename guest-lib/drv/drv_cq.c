/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: creation, polling by owner bit, arming. */
#include <string.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/drv/drv_internal.h"

void drv_set_pas(uint8_t *pas, const struct drv_mem *mem)
{
    for (size_t i = 0; i < drv_pages(mem->size); i++) {
        prm_store64(pas + 8 * i, mem->bus + i * PCI_PAGE);
    }
}

static int drv_create_cq_of(struct drv *drv, unsigned log_size, unsigned cqe_size,
                            struct drv_cq *cq)
{
    size_t ring = (size_t)cqe_size << log_size;
    size_t len = PRM_SIZE(create_cq_in) + 8 * drv_pages(ring);
    g_autofree struct prm_create_cq_in *in = g_malloc0(len);
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    int status;

    memset(cq, 0, sizeof(*cq));
    cq->log_size = log_size;
    cq->cqe_size = cqe_size;
    cq->ring = drv_alloc(drv, ring);
    for (size_t end = cqe_size; end <= ring; end += cqe_size) {
        ((uint8_t *)cq->ring.ptr)[end - 1] = PRM_CQE_OPCODE_INVALID << 4 | 1;
    }
    cq->dbr = drv_new_db(drv, &cq->dbr_bus);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, uid, drv->uid);
    PRM_SET(cqc, cqc, cqe_sz, cqe_size == 128 ? PRM_CQE_SZ_128_BYTES : PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, uar_page, drv->uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, drv->eq.eqn);
    PRM_SET(cqc, cqc, dbr_addr, cq->dbr_bus);
    drv_set_pas(PRM_PTR(create_cq_in, in, pas), &cq->ring);
    status = drv_cmd(drv, in, len, out, sizeof(out));
    cq->cqn = PRM_GET(create_cq_out, out, cqn);
    if (status) {
        drv_free(drv, &cq->ring);
        drv_free_db(drv, cq->dbr, cq->dbr_bus);
    }
    return status;
}

int drv_create_cq(struct drv *drv, unsigned log_size, struct drv_cq *cq)
{
    return drv_create_cq_of(drv, log_size, PRM_SIZE(cqe64), cq);
}

int drv_create_cq128(struct drv *drv, unsigned log_size, struct drv_cq *cq)
{
    return drv_create_cq_of(drv, log_size, 2 * PRM_SIZE(cqe64), cq);
}

int drv_destroy_cq(struct drv *drv, struct drv_cq *cq)
{
    struct prm_destroy_cq_in in[1] = {0};
    int status;

    PRM_SET(destroy_cq_in, in, opcode, PRM_CMD_OP_DESTROY_CQ);
    PRM_SET(destroy_cq_in, in, uid, drv->uid);
    PRM_SET(destroy_cq_in, in, cqn, cq->cqn);
    status = drv_cmd_simple(drv, in, sizeof(in));
    if (!status) {
        drv_free(drv, &cq->ring);
        drv_free_db(drv, cq->dbr, cq->dbr_bus);
    }
    return status;
}

bool drv_poll_cq(struct drv *drv, struct drv_cq *cq, struct drv_wc *wc)
{
    size_t slot = (cq->ci & ((1u << cq->log_size) - 1)) + 1;
    const struct prm_cqe64 *cqe =
        (const void *)((uint8_t *)cq->ring.ptr + slot * cq->cqe_size - PRM_SIZE(cqe64));
    uint8_t op_own = (uint8_t)drv_last_word(cqe);
    unsigned round = cq->ci >> cq->log_size & 1;

    if ((op_own & 1) != round || op_own >> 4 == PRM_CQE_OPCODE_INVALID) {
        return false;
    }
    cq->ci++;
    cq->dbr[0] = GUINT32_TO_BE(cq->ci & 0xffffff);
    memset(wc, 0, sizeof(*wc));
    wc->raw[0] = *cqe;
    wc->opcode = op_own >> 4;
    wc->send_opcode = (uint8_t)PRM_GET(cqe64, cqe, send_wqe_opcode);
    wc->imm = PRM_GET(cqe64, cqe, immediate);
    wc->byte_cnt = PRM_GET(cqe64, cqe, byte_cnt);
    wc->src_qp = PRM_GET(cqe64, cqe, rqpn);
    wc->grh = PRM_GET(cqe64, cqe, grh) != 0;
    wc->solicited = PRM_GET(cqe64, cqe, se);
    wc->srqn = PRM_GET(cqe64, cqe, srqn);
    wc->qpn = PRM_GET(cqe64, cqe, qpn);
    wc->wqe_counter = (uint16_t)PRM_GET(cqe64, cqe, wqe_counter);
    if (wc->opcode == PRM_CQE_OPCODE_REQ_ERR || wc->opcode == PRM_CQE_OPCODE_RESP_ERR) {
        const struct prm_err_cqe *failed = (const void *)cqe; /* the same bytes */

        wc->vendor_syndrome = (uint8_t)PRM_GET(err_cqe, failed, vendor_err_synd);
        wc->syndrome = (uint8_t)PRM_GET(err_cqe, failed, syndrome);
    }
    return true;
}

bool drv_wait_cq(struct drv *drv, struct drv_cq *cq, struct drv_wc *wc, uint64_t timeout_ns)
{
    uint64_t deadline = drv->dev.ops->now(drv->dev.pci) + timeout_ns;

    while (!drv_poll_cq(drv, cq, wc)) {
        uint64_t now = drv->dev.ops->now(drv->dev.pci);

        if (now >= deadline) {
            return false;
        }
        drv->dev.ops->wait(drv->dev.pci, deadline - now);
        drv_poll_events(drv);
    }
    return true;
}

/* As mlx5_cq_arm(): writes the doorbell record first, then the same words to the UAR. */
void drv_arm_cq(struct drv *drv, struct drv_cq *cq, bool solicited_only)
{
    struct prm_cq_doorbell db[1] = {0};

    PRM_SET(cq_doorbell, db, arm_sn, cq->arm_sn & 3);
    PRM_SET(cq_doorbell, db, cmd,
            solicited_only ? PRM_CQ_DB_CMD_REQ_NOT_SOL : PRM_CQ_DB_CMD_REQ_NOT);
    PRM_SET(cq_doorbell, db, ci, cq->ci & 0xffffff);
    PRM_SET(cq_doorbell, db, cqn, cq->cqn);
    memcpy(&cq->dbr[1], db, 4);
    drv->dev.ops->mmio_write(drv->dev.pci, (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, cq_db),
                             prm_load64(db), 8);
}

bool drv_wait_cq_event(struct drv *drv, struct drv_cq *cq, uint64_t timeout_ns)
{
    struct drv_event event;

    if (!drv_wait_event(drv, PRM_EVENT_TYPE_COMP, cq->cqn, &event, timeout_ns)) {
        return false;
    }
    cq->arm_sn++;
    return true;
}
