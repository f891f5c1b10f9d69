/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out WQEs that stay inside the HCA: UMR, LOCAL_INVAL and changes of a tag list.
 *
 * The translation entries of a UMR may lie in memory. They have up to 1 MiB (wqe_umr_ctrl_seg
 * counts units of 16 bytes in 16 bits), and may be behind any key: if that key has ranges of one
 * byte, they take a million accesses. Therefore they are read a part at a time, and each part is a
 * step of its own, like a packet of a message. The WQE starts when all parts are read, so the key
 * changes at once. Until then it is a posted WQE like any other: flushing or resetting the queue
 * forgets the parts.
 */
#include "model/rdma/requester_internal.h"
#include "model/rdma/tags.h"

/* Bytes of entries that one step reads, as many as a large packet has. */
#define UMR_PART 4096

/* The kernel's own UMR queue may change every key of any PD; a queue of a user context may not. */
static bool requester_is_privileged(const struct qp *qp)
{
    return qp->service->is_umr && qp->obj.uid == 0;
}

bool requester_read_umr(struct qp *qp, struct send_line *line, uint8_t *syndrome)
{
    const struct send_wqe *wqe = &line->wqe;
    struct umr_entries *umr = &qp->req.flight->umr;
    uint32_t pdn = requester_is_privileged(qp) ? MKEY_ANY_PD : qp->pdn;
    enum mem_result result;
    size_t part;

    if (!(wqe->op->flags & SEND_OP_UMR) || wqe->umr_xlt || !wqe->umr_xlt_len) {
        return true;
    }
    if (umr->len != wqe->umr_xlt_len) {
        requester_forget_umr(qp); /* the entries were read for another WQE */
    }
    if (!umr->bytes) {
        umr->bytes = ledger_alloc(&qp->hca->memory, wqe->umr_xlt_len);
        umr->len = umr->bytes ? wqe->umr_xlt_len : 0;
    }
    if (!umr->bytes) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    part = MIN(umr->len - umr->have, UMR_PART);
    result = sge_gather(qp->hca, wqe->sge, wqe->num_sge, pdn, &line->cursor, umr->have,
                        umr->bytes + umr->have, part);
    if (result == MEM_FAULT && requester_park(qp, false)) {
        return false;
    }
    if (result != MEM_OK) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
        return true;
    }
    umr->have += part;
    return umr->have == umr->len;
}

void requester_forget_umr(struct qp *qp)
{
    struct umr_entries *umr = &qp->req.flight->umr;

    if (umr->bytes) {
        ledger_free(&qp->hca->memory, umr->bytes, umr->len);
        *umr = (struct umr_entries){0};
    }
}

uint8_t requester_execute_local(struct qp *qp, const struct send_wqe *wqe)
{
    struct mkey_umr umr = {
        .key = wqe->imm,
        .pdn = qp->pdn,
        .qpn = qp->obj.num,
        .privileged = requester_is_privileged(qp),
        .fast = qp->fre,
        .ctrl = wqe->umr_ctrl,
        .mkey_seg = wqe->umr_mkc,
        .xlt = wqe->umr_xlt ? wqe->umr_xlt : qp->req.flight->umr.bytes,
        .xlt_len = wqe->umr_xlt_len,
    };
    enum mem_result result = MEM_OK;

    if (wqe->op->flags & SEND_OP_TAGS) {
        return tags_change_list(qp, wqe);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_LOCAL_INVAL) {
        result = mkey_invalidate(qp->hca, wqe->imm, qp->pdn, false);
    } else if (wqe->op->flags & SEND_OP_UMR) {
        result = mkey_umr(qp->hca, &umr);
    }
    return result == MEM_OK ? 0 : PRM_CQE_SYNDROME_MW_BIND_ERR;
}
