/* SPDX-License-Identifier: BSD-2-Clause */
/* What an error completion means, in a line of the log; see explain.h. */
#include "guest-lib/verbs/user/explain.h"
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/user/send_wqe.h"
#include "prm/reflect.h"

#define UNIT            16u   /* bytes: what WQEs are made of */
#define TERMINATOR_LKEY 0x100 /* ends the list of a receive */

/* -- a work request, as its WQE says it -------------------------------------------------------- */

struct explained {
    const struct user_cq *cq;
    struct user_qp *qp; /* NULL: a WQ, or an SRQ that names its CQ */
    bool send;
    const char *owner; /* whose PD the keys must be in: "QP", "SRQ", "WQ"; NULL: no PD is known */
    uint32_t pdn;
    uint32_t index; /* of the WQE */
    uint64_t wr_id;
    uint8_t opcode; /* of a send WQE */
    unsigned num_sge;
    struct ibv_sge sge[64];
    uint64_t bytes; /* of all of them */
    bool has_remote, inlined;
    uint64_t raddr;
    uint32_t rkey;
};

/* Send WQEs by PRM_WQE_OPCODE_: what verbs call them, and the 16-byte units before their data,
 * beside the control segment and the service type's. */
static const struct explain_op {
    const char *name;
    unsigned units;
    bool remote, reads;
} ops[256] = {
    [PRM_WQE_OPCODE_NOP] = {"NOP", 0, false, false},
    [PRM_WQE_OPCODE_SEND_INVAL] = {"SEND_WITH_INV", 0, false, false},
    [PRM_WQE_OPCODE_RDMA_WRITE] = {"RDMA_WRITE", 1, true, false},
    [PRM_WQE_OPCODE_RDMA_WRITE_IMM] = {"RDMA_WRITE_WITH_IMM", 1, true, false},
    [PRM_WQE_OPCODE_SEND] = {"SEND", 0, false, false},
    [PRM_WQE_OPCODE_SEND_IMM] = {"SEND_WITH_IMM", 0, false, false},
    [PRM_WQE_OPCODE_RDMA_READ] = {"RDMA_READ", 1, true, true},
    [PRM_WQE_OPCODE_ATOMIC_CS] = {"ATOMIC_CMP_AND_SWP", 2, true, true},
    [PRM_WQE_OPCODE_ATOMIC_FA] = {"ATOMIC_FETCH_AND_ADD", 2, true, true},
};

static const char *explain_op_name(const struct explained *e)
{
    if (!e->send) {
        return "RECV";
    }
    return ops[e->opcode].name ? ops[e->opcode].name : "another operation";
}

static void explain_add_sge(struct explained *e, const struct prm_wqe_data_seg *seg)
{
    uint32_t length = PRM_GET(wqe_data_seg, seg, byte_count);

    if (e->num_sge < G_N_ELEMENTS(e->sge)) {
        e->sge[e->num_sge++] = (struct ibv_sge){PRM_GET(wqe_data_seg, seg, addr), length,
                                                PRM_GET(wqe_data_seg, seg, lkey)};
        e->bytes += length;
    }
}

/* Units of the service type's segment. False: its data begins where only the device knows. */
static bool explain_type_units(const struct user_qp *qp, unsigned *units)
{
    if (qp->dc == HV_DC_DCI) {
        *units = 3;
        return true;
    }
    switch (qp->ibv.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
        *units = 0;
        return true;
    case IBV_QPT_XRC_SEND:
        *units = 1;
        return true;
    case IBV_QPT_UD:
    case IBV_QPT_DRIVER:
        *units = 3;
        return true;
    default:
        return false;
    }
}

static void explain_read_send(struct explained *e)
{
    const struct user_qp *qp = e->qp;
    const struct hv_wq *sq = &qp->sq;
    uint32_t units, at, mask = sq->wqe_cnt * (HV_WQEBB / UNIT) - 1;
    uint32_t first = (e->index & (sq->wqe_cnt - 1)) * (HV_WQEBB / UNIT);
    const struct prm_wqe_ctrl_seg *ctrl = (const void *)(sq->buf + (size_t)first * UNIT);
    unsigned type;

    e->wr_id = sq->wrid[e->index & (sq->wqe_cnt - 1)];
    if (sq->gpu_max) {
        return; /* no CPU reads its WQEs */
    }
    e->opcode = (uint8_t)PRM_GET(wqe_ctrl_seg, ctrl, opcode);
    units = PRM_GET(wqe_ctrl_seg, ctrl, ds);
    if (!ops[e->opcode].name || !explain_type_units(qp, &type)) {
        return;
    }
    at = 1 + type;
    if (ops[e->opcode].remote && at < units) {
        const struct prm_wqe_raddr_seg *raddr =
            (const void *)(sq->buf + (size_t)((first + at) & mask) * UNIT);

        e->has_remote = true;
        e->raddr = PRM_GET(wqe_raddr_seg, raddr, raddr);
        e->rkey = PRM_GET(wqe_raddr_seg, raddr, rkey);
    }
    for (at += ops[e->opcode].units; at < units; at++) {
        const struct prm_wqe_data_seg *seg =
            (const void *)(sq->buf + (size_t)((first + at) & mask) * UNIT);

        if (PRM_GET(wqe_data_seg, seg, inl)) {
            e->inlined = true;
            e->bytes += PRM_GET(wqe_inline_seg, (const struct prm_wqe_inline_seg *)seg, byte_count);
            return;
        }
        explain_add_sge(e, seg);
    }
}

static void explain_read_list(struct explained *e, const void *first, unsigned max)
{
    const struct prm_wqe_data_seg *seg = first;

    for (unsigned i = 0; i < max && PRM_GET(wqe_data_seg, &seg[i], lkey) != TERMINATOR_LKEY; i++) {
        explain_add_sge(e, &seg[i]);
    }
}

static void explain_read_recv(struct explained *e, const struct hv_rsc *rsc)
{
    struct hv_srq *srq = rsc->type == HV_RSC_XSRQ ? rsc->obj : e->qp ? e->qp->srq : NULL;
    struct hv_wq *rq = rsc->type == HV_RSC_RWQ ? &((struct hv_rwq *)rsc->obj)->rq
                       : e->qp                 ? &e->qp->rq
                                               : NULL;

    if (srq) {
        e->owner = "SRQ";
        e->pdn = hv_real_pd(srq->ibv.pd)->pdn;
        if (e->index < srq->wqe_cnt && !srq->on_gpu) {
            e->wr_id = srq->wrid[e->index];
            explain_read_list(e, srq->ring + ((size_t)e->index << srq->wqe_shift) + UNIT,
                              srq->max_gs);
        }
    } else if (rq && rq->wqe_cnt) {
        if (rsc->type == HV_RSC_RWQ) {
            e->owner = "WQ";
            e->pdn = hv_real_pd(((struct hv_rwq *)rsc->obj)->ibv.pd)->pdn;
        }
        e->index &= rq->wqe_cnt - 1;
        e->wr_id = rq->wrid[e->index];
        if (rq->gpu_max) {
            return;
        }
        explain_read_list(e, rq->buf + ((size_t)e->index << rq->wqe_shift), rq->max_gs);
    }
}

/* -- a key of this host ------------------------------------------------------------------------ */

struct explain_key {
    const struct ibv_sge *sge;
    const char *owner;
    uint32_t pdn;
    bool writes; /* into the region */
    bool found;
    char why[200]; /* empty: the region allows it */
};

static bool explain_look_at_region(void *obj, void *arg)
{
    const struct hv_mr *mr = obj;
    struct explain_key *key = arg;
    const struct ibv_sge *sge = key->sge;
    uint64_t base = mr->access & IBV_ACCESS_ZERO_BASED ? 0 : mr->iova;

    if (mr->ibv.lkey != sge->lkey) {
        return false;
    }
    key->found = true;
    if (mr->pd->pdn != key->pdn) {
        g_snprintf(key->why, sizeof(key->why),
                   "lkey 0x%x is of another PD than the %s; register the memory in the %s's PD",
                   sge->lkey, key->owner, key->owner);
    } else if (sge->addr < base || sge->addr - base > mr->ibv.length ||
               sge->length > mr->ibv.length - (sge->addr - base)) {
        g_snprintf(key->why, sizeof(key->why),
                   "%u bytes at 0x%" PRIx64 " are not inside the region of lkey 0x%x, which has "
                   "%zu bytes at 0x%" PRIx64,
                   sge->length, sge->addr, sge->lkey, mr->ibv.length, base);
    } else if (key->writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE)) {
        g_snprintf(key->why, sizeof(key->why),
                   "the region of lkey 0x%x has no IBV_ACCESS_LOCAL_WRITE, which receives, READs "
                   "and atomics need",
                   sge->lkey);
    }
    return true;
}

/* Whether a DevX object is the key; those of mlx5dv_create_mkey() are DevX objects, too. */
static bool explain_look_at_object(void *obj, void *arg)
{
    const struct mlx5dv_devx_obj *made = obj;
    const struct explain_key *key = arg;

    return made->object == PRM_OBJECT(MKEY) && made->id == key->sge->lkey >> 8;
}

/* Which of the WR's keys does not allow what it is for. */
static void explain_keys(const struct explained *e, char *why, size_t size)
{
    struct ibv_context *context = e->cq->ibv.context;
    uint32_t unknown = 0; /* a key of which only the device knows what it allows */

    for (unsigned i = 0; e->owner && i < e->num_sge; i++) {
        struct explain_key key = {.sge = &e->sge[i],
                                  .owner = e->owner,
                                  .pdn = e->pdn,
                                  .writes = !e->send || ops[e->opcode].reads};

        hv_handle_find(context, HV_HANDLE_MR, explain_look_at_region, &key);
        if (!key.found &&
            hv_handle_find(context, HV_HANDLE_DEVX_OBJ, explain_look_at_object, &key)) {
            unknown = key.sge->lkey;
        } else if (!key.found) {
            g_snprintf(why, size,
                       "lkey 0x%x, for %u bytes at 0x%" PRIx64 ", is no key of this PD; look at "
                       "sge.lkey and at whether the region is still registered",
                       key.sge->lkey, key.sge->length, key.sge->addr);
            return;
        }
        if (key.why[0]) {
            g_strlcpy(why, key.why, size);
            return;
        }
    }
    if (unknown) {
        g_snprintf(why, size,
                   "lkey 0x%x was made by mlx5dv or DevX, so only the device knows what it allows; "
                   "look at the device's line above",
                   unknown);
        return;
    }
    g_strlcpy(why,
              "a key of its list did not allow the access when the device used it; look at "
              "whether a region was deregistered or unmapped since",
              size);
}

/* -- what the peer answered, or did not -------------------------------------------------------- */

static void explain_peer(const struct user_qp *qp, char *text, size_t size)
{
    struct hv_words gid;

    if (!qp || !qp->peer.known) {
        g_strlcpy(text, "the peer", size);
        return;
    }
    g_snprintf(text, size, "QP 0x%x at %s", qp->peer.qpn, hv_gid_name(&qp->peer.gid, &gid));
}

static bool explain_is_own(const struct explained *e, const uint8_t mac[6])
{
    const struct hv_device *device = hv_device(e->qp->ibv.context->device);

    return !memcmp(device->config->mac, mac, 6);
}

static void explain_no_answer(const struct explained *e, const char *peer, char *why, size_t size)
{
    const struct user_qp *qp = e->qp;
    bool known = qp && qp->peer.known;
    bool own = known && explain_is_own(e, qp->peer.mac);
    bool host = known && hv_knows_host(qp->hca, qp->peer.mac);
    bool asked = known && hv_tells_hosts(qp->hca);
    char tries[64] = "after all retries";

    if (qp) {
        g_snprintf(tries, sizeof(tries), "after retry_cnt %u retries (timeout %u)",
                   qp->peer.retry_cnt, qp->peer.timeout);
    }
    g_snprintf(why, size, "%s did not answer %s; %s", peer, tries,
               own     ? "the device itself has this address, so look at whether dest_qp_num is "
                         "right, and at whether that QP is in RTR or RTS and connected to this QP"
               : host  ? "a host has this address, so look at whether dest_qp_num is right, and at "
                         "whether the peer's QP is in RTR or RTS and connected to this QP"
               : asked ? "no host is known to have this address, so look at whether the peer has "
                         "ended, and at ah_attr.grh.dgid"
                       : "whether a host has this address is not known, so look at whether the "
                         "peer has ended, at its address and QP number, and at whether its QP is "
                         "in RTR or RTS and connected to this QP");
}

static const char *explain_remote_right(uint8_t opcode)
{
    switch (opcode) {
    case PRM_WQE_OPCODE_RDMA_READ:
        return "IBV_ACCESS_REMOTE_READ";
    case PRM_WQE_OPCODE_ATOMIC_CS:
    case PRM_WQE_OPCODE_ATOMIC_FA:
        return "IBV_ACCESS_REMOTE_ATOMIC";
    default:
        return "IBV_ACCESS_REMOTE_WRITE";
    }
}

static void explain_refused(const struct explained *e, const char *peer, char *why, size_t size)
{
    if (e->has_remote) {
        g_snprintf(why, size,
                   "%s does not take this operation (%" PRIu64 " bytes); look at whether its "
                   "qp_access_flags have %s, and at its max_dest_rd_atomic",
                   peer, e->bytes, explain_remote_right(e->opcode));
    } else {
        g_snprintf(why, size,
                   "%s does not take this message of %" PRIu64 " bytes; look at whether the "
                   "receive that it took is shorter",
                   peer, e->bytes);
    }
}

static void explain_length(const struct explained *e, char *why, size_t size)
{
    if (e->send) {
        g_snprintf(why, size,
                   "the message has %" PRIu64 " bytes; a datagram may have as many as the port's "
                   "active_mtu, other messages 2 GiB",
                   e->bytes);
    } else {
        g_snprintf(why, size,
                   "the message is longer than this receive, which has room for %" PRIu64 " bytes",
                   e->bytes);
    }
}

static void explain_operation(const struct explained *e, char *why, size_t size)
{
    enum ibv_qp_type type = e->qp ? e->qp->ibv.qp_type : IBV_QPT_RC;
    bool datagram = type == IBV_QPT_UD;

    if (e->send && ops[e->opcode].remote &&
        (datagram || (type == IBV_QPT_UC && ops[e->opcode].reads))) {
        g_snprintf(why, size, "%s QPs have no %s", hv_qp_type_name(type), ops[e->opcode].name);
        return;
    }
    g_snprintf(why, size,
               "the device cannot carry this WQE out: its opcode, its length or its "
               "segments are not what QPs of type %s take, or its memory is not mapped",
               hv_qp_type_name(type));
}

/* -- flushed ----------------------------------------------------------------------------------- */

static const char *const status_names[] = {
#define S(name) [IBV_WC_##name] = "IBV_WC_" #name
    S(SUCCESS),        S(LOC_LEN_ERR),       S(LOC_QP_OP_ERR),  S(LOC_EEC_OP_ERR),
    S(LOC_PROT_ERR),   S(WR_FLUSH_ERR),      S(MW_BIND_ERR),    S(BAD_RESP_ERR),
    S(LOC_ACCESS_ERR), S(REM_INV_REQ_ERR),   S(REM_ACCESS_ERR), S(REM_OP_ERR),
    S(RETRY_EXC_ERR),  S(RNR_RETRY_EXC_ERR), S(REM_ABORT_ERR),  S(GENERAL_ERR),
#undef S
};

/* -- why a QP is in ERR ------------------------------------------------------------------------
 *
 * Two threads may poll the two CQs of a QP, and a third one may modify it. */

void hv_explain_moved(struct user_qp *qp, enum ibv_qp_state to)
{
    if (!qp->hca || !hv_explains(qp->hca)) {
        return;
    }
    hv_said_lock(qp->hca);
    if (to == IBV_QPS_RESET || to == IBV_QPS_RTS) { /* RTS: out of SQE, too */
        qp->first_error = (struct user_qp_error){0};
    }
    hv_said_unlock(qp->hca);
}

bool hv_explain_moves(struct user_qp *qp, enum ibv_qp_state to, bool will)
{
    bool changes;

    if (to != IBV_QPS_ERR || !qp->hca || !hv_explains(qp->hca)) {
        return false;
    }
    hv_said_lock(qp->hca);
    changes = qp->first_error.by_program != will;
    qp->first_error.by_program = will;
    hv_said_unlock(qp->hca);
    return changes;
}

static void explain_note(const struct explained *e, enum ibv_wc_status status)
{
    struct user_qp_error *first = &e->qp->first_error;

    hv_said_lock(e->cq->hca);
    if (!first->status) {
        first->status = status;
        first->send = e->send;
        first->wr_id = e->wr_id;
    }
    hv_said_unlock(e->cq->hca);
}

/* Returns the first error, whose told says whether this was asked before. */
static struct user_qp_error explain_first(const struct explained *e)
{
    struct user_qp_error first;

    hv_said_lock(e->cq->hca);
    first = e->qp->first_error;
    e->qp->first_error.told = true;
    hv_said_unlock(e->cq->hca);
    return first;
}

static void explain_flush(const struct explained *e, const struct user_qp_error *first, char *why,
                          size_t size)
{
    uint8_t syndrome = first->status ? 0 : uverbs_qp_error(&e->qp->hv);
    const char *name = prm_enum_name("cqe_syndrome", syndrome);

    if (first->status) {
        g_snprintf(why, size,
                   "the QP went to ERR with %s of wr_id %" PRIu64 " (%s queue), which flushes all "
                   "WRs behind it; this is said once",
                   status_names[first->status], first->wr_id, first->send ? "send" : "receive");
    } else if (syndrome) {
        g_snprintf(why, size,
                   "the device moved the QP to ERR with %s (syndrome 0x%x), which flushes all WRs; "
                   "the device's line above says why; this is said once",
                   name ? name : "an error", syndrome);
    } else if (first->by_program) {
        g_strlcpy(why, "the program moved the QP to ERR, which flushes all WRs; this is said once",
                  size);
    } else {
        g_strlcpy(why,
                  "the QP is in ERR, which flushes all WRs; neither a polled completion nor the "
                  "device says why, as after a DevX command or the removal of the device; this is "
                  "said once",
                  size);
    }
}

/* -- a line ------------------------------------------------------------------------------------ */

/* What the status means for this WR. False: nothing is to be said. */
static bool explain_status(const struct explained *e, enum ibv_wc_status status, char *why,
                           size_t size)
{
    struct user_qp_error first;
    char peer[64];

    explain_peer(e->qp, peer, sizeof(peer));
    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
        explain_keys(e, why, size);
        break;
    case IBV_WC_LOC_LEN_ERR:
        explain_length(e, why, size);
        break;
    case IBV_WC_LOC_QP_OP_ERR:
        explain_operation(e, why, size);
        break;
    case IBV_WC_MW_BIND_ERR:
        g_strlcpy(why,
                  "the window cannot be bound or invalidated; look at whether the region has "
                  "IBV_ACCESS_MW_BIND, and at whether the rkey is the window's present one",
                  size);
        break;
    case IBV_WC_RETRY_EXC_ERR:
        explain_no_answer(e, peer, why, size);
        break;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        g_snprintf(why, size,
                   "%s has no receive posted (rnr_retry was %u); post receives there before this "
                   "side sends, or set rnr_retry to 7, which retries for ever",
                   peer, e->qp ? e->qp->peer.rnr_retry : 0);
        break;
    case IBV_WC_REM_ACCESS_ERR:
        g_snprintf(why, size,
                   "%s refused rkey 0x%x for %" PRIu64 " bytes at 0x%" PRIx64 "; look at whether "
                   "the region there has these bytes and %s, and is in the PD of its QP",
                   peer, e->rkey, e->bytes, e->raddr, explain_remote_right(e->opcode));
        break;
    case IBV_WC_REM_INV_REQ_ERR:
        explain_refused(e, peer, why, size);
        break;
    case IBV_WC_REM_OP_ERR:
        g_snprintf(why, size,
                   "%s could not carry it out; look at its own completions: the receive that it "
                   "took may have a bad lkey",
                   peer);
        break;
    case IBV_WC_LOC_ACCESS_ERR:
        g_strlcpy(why,
                  "a request of the peer is not allowed by the rkey that it names; the peer gets "
                  "IBV_WC_REM_ACCESS_ERR",
                  size);
        break;
    case IBV_WC_BAD_RESP_ERR:
        g_snprintf(why, size, "%s sent a response that does not fit the request", peer);
        break;
    case IBV_WC_WR_FLUSH_ERR:
        if (!e->qp) {
            return false;
        }
        first = explain_first(e);
        if (first.told) {
            return false;
        }
        explain_flush(e, &first, why, size);
        break;
    default:
        g_strlcpy(why, "the device gives no more detail", size);
        break;
    }
    return true;
}

void hv_explain(const struct user_cq *cq, const struct hv_rsc *rsc, const struct prm_cqe64 *cqe,
                enum ibv_wc_status status)
{
    struct explained e = {.cq = cq,
                          .qp = rsc->type == HV_RSC_QP ? rsc->obj : NULL,
                          .send = cqe_op_own(cqe) >> 4 == PRM_CQE_OPCODE_REQ_ERR,
                          .index = PRM_GET(cqe64, cqe, wqe_counter)};
    char why[400];

    if (e.qp && hv_qp_pd(&e.qp->hv)) {
        e.owner = "QP";
        e.pdn = hv_real_pd(e.qp->ibv.pd)->pdn;
    }
    if (e.send && e.qp && e.qp->sq.wqe_cnt) {
        explain_read_send(&e);
    } else if (!e.send) {
        explain_read_recv(&e, rsc);
    } else {
        return;
    }
    if (e.qp && status != IBV_WC_WR_FLUSH_ERR) {
        explain_note(&e, status);
    }
    if (explain_status(&e, status, why, sizeof(why))) {
        hv_say(cq->hca, "QP 0x%x, WR %u (%s, wr_id %" PRIu64 "): %s (vendor_err 0x%x): %s",
               (unsigned)PRM_GET(cqe64, cqe, qpn), e.index, explain_op_name(&e), e.wr_id,
               status_names[status], (unsigned)PRM_GET(err_cqe, cqe_failed(cqe), vendor_err_synd),
               why);
    }
}
