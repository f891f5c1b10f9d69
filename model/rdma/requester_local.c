/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out WQEs that stay inside the HCA: UMR, SET_PSV, GET_PSV, LOCAL_INVAL, DUMP, copies from
 * memory to memory (MMO), changes of a tag list, and those of cross channel (cross.c).
 *
 * The translation entries of a UMR may lie in memory. They have up to 1 MiB (wqe_umr_ctrl_seg
 * counts units of 16 bytes in 16 bits), and may be behind any key: if that key has ranges of one
 * byte, they take a million accesses. Therefore they are read a part at a time, and each part is a
 * step of its own, like a packet of a message. The WQE starts when all parts are read, so the key
 * changes at once. Until then it is a posted WQE like any other: flushing or resetting the queue
 * forgets the parts.
 *
 * A DUMP reads its list and drops the data. Programs of GPUs post it to know that all earlier
 * writes of the device have arrived, because the answer to a read comes after them (NVSHMEM:
 * nvshmemi_ibgda_enforce_consistency_at_target()). It is read in the same parts. A copy (MMO) is
 * done in such parts, too.
 */
#include "model/memory/psv.h"
#include "model/queue/mmo.h"
#include "model/rdma/cross.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/tags.h"

/* Bytes that one step reads, as many as a large packet has. */
#define LOCAL_PART 4096

/* The kernel's own UMR queue may change every key of any PD; a queue of a user context may not. */
static bool requester_is_privileged(const struct qp *qp)
{
    return qp->service->is_umr && qp->obj.uid == 0;
}

/* Reads the next part of the WQE's list, or of its first len bytes, to buf. False: it did not, and
 * *syndrome says why; or a page is missing, and *syndrome is 0. */
static bool requester_read_part(struct qp *qp, struct send_line *line, uint32_t pdn, void *buf,
                                uint8_t *syndrome)
{
    const struct send_wqe *wqe = &line->wqe;
    struct local_read *read = &qp->req.flight->local;
    size_t part = MIN(read->len - read->have, LOCAL_PART);
    enum mem_result result =
        sge_gather(qp->hca, wqe->sge, wqe->num_sge, pdn, &line->cursor, read->have, buf, part);

    if (result == MEM_FAULT && requester_park(qp, false,
                                              &(struct wqe_part){wqe, line->wqe.index, false,
                                                                 read->have, (uint32_t)part})) {
        return false;
    }
    if (result != MEM_OK) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
        return false;
    }
    read->have += part;
    return true;
}

/* Begins to read len bytes, unless some of them are read already. */
static struct local_read *requester_begin_read(struct qp *qp, size_t len, bool keeps)
{
    struct local_read *read = &qp->req.flight->local;

    if (read->len != len || keeps != !!read->bytes) {
        requester_forget_read(qp); /* it was for another WQE */
        read->bytes = keeps ? ledger_alloc(&qp->hca->memory, len) : NULL;
        read->len = keeps && !read->bytes ? 0 : len;
    }
    return read;
}

static bool requester_dump(struct qp *qp, struct send_line *line, uint8_t *syndrome)
{
    struct local_read *read = requester_begin_read(qp, (size_t)line->wqe.len, false);
    uint8_t dropped[LOCAL_PART];

    if (!read->len) {
        return true;
    }
    if (!requester_read_part(qp, line, qp->pdn, dropped, syndrome)) {
        return *syndrome;
    }
    return read->have == read->len;
}

/* Copies the next part. If a page is missing on either side, the whole part is copied again when
 * the page is there. */
static bool requester_copy(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome)
{
    const struct mmo_copy copy = {.from = wqe->sge[0], .to = wqe->sge[1]};
    struct local_read *read;
    enum mem_result result;

    if (!qp->mmo) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    read = requester_begin_read(qp, copy.from.len, false);
    result = mmo_copy_part(qp->hca, qp->pdn, &copy, &read->have);
    if (result == MEM_FAULT &&
        requester_park(qp, false,
                       &(struct wqe_part){wqe, wqe->index, true, read->have,
                                          (uint32_t)(read->len - read->have)})) {
        return false;
    }
    if (result != MEM_OK) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
        return true;
    }
    return read->have == read->len;
}

/* Writes signature values of the QP's PD to memory. False: a page is missing. */
static bool requester_get_psv(struct qp *qp, const struct send_wqe *wqe, uint8_t *syndrome)
{
    const struct sge *to = &wqe->sge[0];
    struct prm_wqe_set_psv_seg values[PSV_MAX] = {0};
    unsigned n = to->len / PRM_SIZE(wqe_set_psv_seg);
    enum mem_result result;

    for (unsigned i = 0; i < n; i++) {
        uint32_t num =
            PRM_GET_AT(wqe_get_psv_seg, (const struct prm_wqe_get_psv_seg *)wqe->psv, psv_index, i);
        const struct psv *psv = psv_find(qp->hca, num, qp->pdn);

        if (!psv) {
            *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
            return true;
        }
        PRM_SET(wqe_set_psv_seg, &values[i], psv_num, num);
        PRM_SET(wqe_set_psv_seg, &values[i], transient_signature, psv->value);
    }
    result = mkey_write(qp->hca, to->lkey, qp->pdn, to->va, values, to->len, MEM_LOCAL_WRITE);
    if (result == MEM_FAULT &&
        requester_park(qp, false, &(struct wqe_part){wqe, wqe->index, true, 0, to->len})) {
        return false;
    }
    *syndrome = result == MEM_OK ? 0 : PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
    return true;
}

static bool requester_read_umr(struct qp *qp, struct send_line *line, uint8_t *syndrome)
{
    const struct send_wqe *wqe = &line->wqe;
    uint32_t pdn = requester_is_privileged(qp) ? MKEY_ANY_PD : qp->pdn;
    struct local_read *read;

    if (wqe->umr_xlt || !(wqe->umr_xlt_len + wqe->umr_bsf_len)) {
        return true;
    }
    read = requester_begin_read(qp, wqe->umr_xlt_len + wqe->umr_bsf_len, true);
    if (!read->bytes) {
        *syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        return true;
    }
    if (!requester_read_part(qp, line, pdn, read->bytes + read->have, syndrome)) {
        return *syndrome;
    }
    return read->have == read->len;
}

bool requester_read_local(struct qp *qp, struct send_line *line, uint8_t *syndrome)
{
    if (G_LIKELY(!(line->wqe.op->flags & SEND_OP_LOCAL))) {
        return true;
    }
    if (line->wqe.opcode == PRM_WQE_OPCODE_CQE_WAIT) {
        return cross_wait(qp, &line->wqe, syndrome);
    }
    if (line->wqe.opcode == PRM_WQE_OPCODE_DUMP) {
        return requester_dump(qp, line, syndrome);
    }
    if (line->wqe.opcode == PRM_WQE_OPCODE_MMO) {
        return requester_copy(qp, &line->wqe, syndrome);
    }
    if (line->wqe.opcode == PRM_WQE_OPCODE_GET_PSV) {
        return requester_get_psv(qp, &line->wqe, syndrome);
    }
    return !(line->wqe.op->flags & SEND_OP_UMR) || requester_read_umr(qp, line, syndrome);
}

void requester_forget_read(struct qp *qp)
{
    struct local_read *read = &qp->req.flight->local;

    if (read->bytes) {
        ledger_free(&qp->hca->memory, read->bytes, read->len);
    }
    *read = (struct local_read){0};
}

/* Sets a signature value of the QP's PD. */
static uint8_t requester_set_psv(struct qp *qp, const struct send_wqe *wqe)
{
    const struct prm_wqe_set_psv_seg *seg = wqe->psv;
    struct psv *psv = psv_find(qp->hca, PRM_GET(wqe_set_psv_seg, seg, psv_num), qp->pdn);

    if (!psv) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    psv_set(qp->hca, psv, PRM_GET(wqe_set_psv_seg, seg, transient_signature));
    return 0;
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
        .xlt = wqe->umr_xlt ? wqe->umr_xlt : qp->req.flight->local.bytes,
        .xlt_len = wqe->umr_xlt_len,
        .bsf_len = wqe->umr_bsf_len,
    };
    enum mem_result result = MEM_OK;

    if (umr.xlt) {
        umr.bsf = (const uint8_t *)umr.xlt + umr.xlt_len;
    }
    if (wqe->op->flags & SEND_OP_TAGS) {
        return tags_change_list(qp, wqe);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_SET_PSV) {
        return requester_set_psv(qp, wqe);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_SEND_ENABLE || wqe->opcode == PRM_WQE_OPCODE_RECV_ENABLE) {
        return cross_enable(qp, wqe);
    }
    if (wqe->opcode == PRM_WQE_OPCODE_LOCAL_INVAL) {
        result = mkey_invalidate(qp->hca, wqe->imm, qp->pdn, false);
    } else if (wqe->op->flags & SEND_OP_UMR) {
        result = mkey_umr(qp->hca, &umr);
    }
    return result == MEM_OK ? 0 : PRM_CQE_SYNDROME_MW_BIND_ERR;
}
