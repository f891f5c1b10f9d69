/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: commands. An ordinary one is an RMP to the device, as in mlx5_ib. XRC
 * SRQs, and those with tag matching, which are XRQs, name their CQ. Each kind has a row in
 * srq_kinds[].
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* The commands of a kind of shared receive queue. */
struct srq_kind {
    int (*create)(struct hv_srq *srq);
    int (*arm)(const struct hv_srq *srq, uint16_t limit);
    int (*query)(const struct hv_srq *srq, uint32_t *limit);
    const struct prm_object *object; /* the device's object */
    /* it belongs to the kernel, not to the program's user context */
    bool kernel_owns;
};

static const struct srq_kind *srq_kind(const struct hv_srq *srq);

static uint16_t srq_uid(const struct hv_srq *srq)
{
    return srq_kind(srq)->kernel_owns ? 0 : hv_context(srq->ibv.context)->uid;
}

/* Describes the ring of an RMP or an XRQ in its context. */
static void srq_set_wq(const struct hv_srq *srq, struct prm_wq *wq)
{
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, log_wq_stride, srq->wqe_shift);
    PRM_SET(wq, wq, log_wq_sz, (uint32_t)g_bit_storage(srq->ring_cnt) - 1);
    PRM_SET(wq, wq, pd, srq->pd->pdn);
    PRM_SET(wq, wq, dbr_addr, (uintptr_t)shadow_real(srq->dbrec));
    PRM_SET(wq, wq, page_offset, hv_ring_offset(srq->ring));
    hv_set_pas(PRM_PTR(wq, wq, pas), srq->ring, srq->ring_size);
}

/* -- ordinary SRQs ----------------------------------------------------------------------------- */

static int srq_create_rmp(struct hv_srq *srq)
{
    size_t len = PRM_SIZE(create_rmp_in) + 8 * hv_ring_pages(srq->ring, srq->ring_size);
    g_autofree struct prm_create_rmp_in *in = g_malloc0(len);
    struct prm_create_rmp_out out[1] = {0};
    struct prm_rmpc *rmpc = PRM_PTR(create_rmp_in, in, ctx);
    struct prm_wq *wq = PRM_PTR(rmpc, rmpc, wq);
    int err;

    PRM_SET(create_rmp_in, in, opcode, PRM_CMD_OP_CREATE_RMP);
    PRM_SET(create_rmp_in, in, uid, srq_uid(srq));
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    srq_set_wq(srq, wq);
    err = hv_cmd(srq->hca, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_rmp_out, out, rmpn);
    return err;
}

static int srq_arm_rmp(const struct hv_srq *srq, uint16_t limit)
{
    struct prm_modify_rmp_in in[1] = {0};
    struct prm_rmpc *rmpc = PRM_PTR(modify_rmp_in, in, ctx);

    PRM_SET(modify_rmp_in, in, opcode, PRM_CMD_OP_MODIFY_RMP);
    PRM_SET(modify_rmp_in, in, uid, srq_uid(srq));
    PRM_SET(modify_rmp_in, in, rmp_state, PRM_RMPC_STATE_RDY);
    PRM_SET(modify_rmp_in, in, rmpn, srq->srqn);
    PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, in, bitmask), lwm, 1);
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, PRM_PTR(rmpc, rmpc, wq), lwm, limit);
    return hv_cmd_simple(srq->hca, in, sizeof(in));
}

static int srq_query_rmp(const struct hv_srq *srq, uint32_t *limit)
{
    struct prm_query_rmp_in in[1] = {0};
    struct prm_query_rmp_out out[1] = {0};
    struct prm_rmpc *rmpc = PRM_PTR(query_rmp_out, out, rmp_context);
    int err;

    PRM_SET(query_rmp_in, in, opcode, PRM_CMD_OP_QUERY_RMP);
    PRM_SET(query_rmp_in, in, rmpn, srq->srqn);
    err = hv_cmd(srq->hca, in, sizeof(in), out, sizeof(out));
    *limit = PRM_GET(wq, PRM_PTR(rmpc, rmpc, wq), lwm);
    return err;
}

/* -- XRC --------------------------------------------------------------------------------------- */

static int srq_create_xrc(struct hv_srq *srq)
{
    size_t len = PRM_SIZE(create_xrc_srq_in) + 8 * hv_ring_pages(srq->ring, srq->ring_size);
    g_autofree struct prm_create_xrc_srq_in *in = g_malloc0(len);
    struct prm_create_xrc_srq_out out[1] = {0};
    struct prm_xrc_srqc *ctx = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);
    uint64_t dbr = (uintptr_t)shadow_real(srq->dbrec);
    int err;

    PRM_SET(create_xrc_srq_in, in, opcode, PRM_CMD_OP_CREATE_XRC_SRQ);
    PRM_SET(create_xrc_srq_in, in, uid, srq_uid(srq));
    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, (uint32_t)g_bit_storage(srq->ring_cnt) - 1);
    PRM_SET(xrc_srqc, ctx, log_rq_stride, srq->wqe_shift - 4);
    PRM_SET(xrc_srqc, ctx, xrcd, srq->xrcd->xrcdn);
    PRM_SET(xrc_srqc, ctx, cqn, srq->cq->cqn);
    PRM_SET(xrc_srqc, ctx, user_index, (uint32_t)srq->uidx);
    PRM_SET(xrc_srqc, ctx, pd, srq->pd->pdn);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, (uint32_t)(dbr >> 32));
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (uint32_t)dbr >> 2);
    PRM_SET(xrc_srqc, ctx, page_offset, hv_ring_offset(srq->ring));
    hv_set_pas(PRM_PTR(create_xrc_srq_in, in, pas), srq->ring, srq->ring_size);
    err = hv_cmd(srq->hca, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_xrc_srq_out, out, xrc_srqn);
    return err;
}

static int srq_arm_xrc(const struct hv_srq *srq, uint16_t limit)
{
    struct prm_arm_xrc_srq_in in[1] = {0};

    PRM_SET(arm_xrc_srq_in, in, opcode, PRM_CMD_OP_ARM_XRC_SRQ);
    PRM_SET(arm_xrc_srq_in, in, op_mod, PRM_ARM_XRC_SRQ_OP_XRC_SRQ);
    PRM_SET(arm_xrc_srq_in, in, uid, srq_uid(srq));
    PRM_SET(arm_xrc_srq_in, in, xrc_srqn, srq->srqn);
    PRM_SET(arm_xrc_srq_in, in, lwm, limit);
    return hv_cmd_simple(srq->hca, in, sizeof(in));
}

static int srq_query_xrc(const struct hv_srq *srq, uint32_t *limit)
{
    struct prm_query_xrc_srq_in in[1] = {0};
    struct prm_query_xrc_srq_out out[1] = {0};
    int err;

    PRM_SET(query_xrc_srq_in, in, opcode, PRM_CMD_OP_QUERY_XRC_SRQ);
    PRM_SET(query_xrc_srq_in, in, xrc_srqn, srq->srqn);
    err = hv_cmd(srq->hca, in, sizeof(in), out, sizeof(out));
    *limit = PRM_GET(xrc_srqc, PRM_PTR(query_xrc_srq_out, out, xrc_srq_context_entry), lwm);
    return err;
}

/* -- with tag matching, and rendezvous by the device ------------------------------------------- */

static int srq_create_xrq(struct hv_srq *srq)
{
    size_t len = PRM_SIZE(create_xrq_in) + 8 * hv_ring_pages(srq->ring, srq->ring_size);
    g_autofree struct prm_create_xrq_in *in = g_malloc0(len);
    struct prm_create_xrq_out out[1] = {0};
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);
    struct prm_tag_matching_topology_context *tm =
        PRM_PTR(xrqc, xrqc, tag_matching_topology_context);
    struct prm_wq *wq = PRM_PTR(xrqc, xrqc, wq);
    unsigned log_list = (unsigned)g_bit_storage(srq->max_tags); /* ilog2() + 1 */
    int err;

    if (!HV_CAP(srq->hca, tag_matching) || log_list > HV_CAP(srq->hca, log_tag_matching_list_sz)) {
        return EINVAL;
    }
    PRM_SET(create_xrq_in, in, opcode, PRM_CMD_OP_CREATE_XRQ);
    PRM_SET(create_xrq_in, in, uid, srq_uid(srq));
    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, user_index, (uint32_t)srq->uidx);
    PRM_SET(xrqc, xrqc, cqn, srq->cq->cqn);
    PRM_SET(tag_matching_topology_context, tm, log_matching_list_sz, log_list);
    srq_set_wq(srq, wq);
    err = hv_cmd(srq->hca, in, len, out, sizeof(out));
    srq->srqn = PRM_GET(create_xrq_out, out, xrqn);
    return err;
}

/* Uses ARM_RQ, as mlx5_ib does, not ARM_XRQ. */
static int srq_arm_xrq(const struct hv_srq *srq, uint16_t limit)
{
    struct prm_arm_rq_in in[1] = {0};

    PRM_SET(arm_rq_in, in, opcode, PRM_CMD_OP_ARM_RQ);
    PRM_SET(arm_rq_in, in, op_mod, PRM_ARM_RQ_OP_XRQ);
    PRM_SET(arm_rq_in, in, uid, srq_uid(srq));
    PRM_SET(arm_rq_in, in, srq_number, srq->srqn);
    PRM_SET(arm_rq_in, in, lwm, limit);
    return hv_cmd_simple(srq->hca, in, sizeof(in));
}

static int srq_query_xrq(const struct hv_srq *srq, uint32_t *limit)
{
    struct prm_query_xrq_in in[1] = {0};
    struct prm_query_xrq_out out[1] = {0};
    struct prm_xrqc *xrqc = PRM_PTR(query_xrq_out, out, xrq_context);
    int err;

    PRM_SET(query_xrq_in, in, opcode, PRM_CMD_OP_QUERY_XRQ);
    PRM_SET(general_obj_in_cmd_hdr, (void *)in, uid, srq_uid(srq));
    PRM_SET(query_xrq_in, in, xrqn, srq->srqn);
    err = hv_cmd(srq->hca, in, sizeof(in), out, sizeof(out));
    *limit = PRM_GET(wq, PRM_PTR(xrqc, xrqc, wq), lwm);
    return err;
}

/* -- kinds ------------------------------------------------------------------------------------- */

static const struct srq_kind srq_kinds[] = {
    [IBV_SRQT_BASIC] = {.create = srq_create_rmp,
                        .arm = srq_arm_rmp,
                        .query = srq_query_rmp,
                        .object = PRM_OBJECT(RMP)},
    [IBV_SRQT_XRC] = {.create = srq_create_xrc,
                      .arm = srq_arm_xrc,
                      .query = srq_query_xrc,
                      .object = PRM_OBJECT(XRC_SRQ),
                      .kernel_owns = true}, /* as in mlx5_ib (create_srq_user()) */
    [IBV_SRQT_TM] = {.create = srq_create_xrq,
                     .arm = srq_arm_xrq,
                     .query = srq_query_xrq,
                     .object = PRM_OBJECT(XRQ)},
};

static const struct srq_kind *srq_kind(const struct hv_srq *srq)
{
    return &srq_kinds[srq->type];
}

const struct prm_object *hv_srq_object(const struct hv_srq *srq)
{
    return srq_kind(srq)->object;
}

static int srq_destroy_cmd(const struct hv_srq *srq)
{
    const struct prm_command *destroy = hv_srq_object(srq)->destroy;
    struct prm_general_obj_in_cmd_hdr in[1] = {0}; /* all inputs begin with it */

    g_assert(destroy->in_least <= sizeof(in));
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, destroy->opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, srq_uid(srq));
    prm_set(in, destroy->number, srq->srqn, destroy->name);
    return hv_cmd_simple(srq->hca, in, destroy->in_least);
}

int uverbs_query_srq(struct hv_srq *srq, uint32_t *limit)
{
    int err = hv_srq_check(&srq->ibv);

    return err ? err : srq_kind(srq)->query(srq, limit);
}

/* Checks the handles of the objects that the SRQ names (ib_uverbs_create_srq()): 0 or errno. */
static int srq_check_handles(const struct hv_srq *srq)
{
    int err = srq->xrcd ? hv_xrcd_check(&srq->xrcd->ibv) : 0;

    if (!err && srq->cq) {
        err = hv_cq_check(&srq->cq->ibv);
    }
    return err ? err : hv_pd_check(srq->ibv.pd);
}

void uverbs_use_srq(struct hv_srq *srq, int change)
{
    uverbs_use_pd(srq->ibv.pd, change);
    if (srq->xrcd) {
        g_atomic_int_add(&srq->xrcd->refs, change);
    }
    if (srq->cq) {
        g_atomic_int_add(&srq->cq->users, change);
    }
}

int uverbs_create_srq(struct hv_srq *srq)
{
    int err = srq_check_handles(srq);

    err = err ? err
              : hv_ring_check(srq->hca, "create_srq", srq->ring,
                              srq->type == IBV_SRQT_XRC ? HV_QUEUE_OFFSETS : HV_WQ_OFFSETS);
    err = err ? err
              : hv_pin_queue(srq->ibv.context, srq->ring, srq->ring_size, srq->dbrec, &srq->pinned);
    err = err ? err : srq_kind(srq)->create(srq);
    if (err) {
        hv_unpin_queue(srq->ibv.context, srq->dbrec, &srq->pinned);
        return err;
    }
    srq->ibv.handle = hv_handle_add(srq->ibv.context, HV_HANDLE_SRQ, srq);
    uverbs_use_srq(srq, 1);
    hv_event_add_srq(srq->hca, srq);
    return 0;
}

int uverbs_destroy_srq(struct hv_srq *srq)
{
    int err = hv_srq_check(&srq->ibv);

    if (!err && g_atomic_int_get(&srq->users)) {
        err = hv_refuse(srq->hca, EBUSY, "destroy_srq: %d QPs use the SRQ; destroy them first",
                        g_atomic_int_get(&srq->users));
    }
    err = err ? err : srq_destroy_cmd(srq);
    if (!err) {
        hv_handle_del(srq->ibv.context, srq->ibv.handle);
        hv_event_del_srq(srq->hca, srq);
        hv_unpin_queue(srq->ibv.context, srq->dbrec, &srq->pinned);
    }
    return err;
}

int uverbs_modify_srq(struct hv_srq *srq, const struct ibv_srq_attr *attr, int attr_mask)
{
    int err = hv_check_there(srq->hca);

    err = err ? err : hv_srq_check(&srq->ibv);
    if (err) {
        return err;
    }
    if (attr_mask & IBV_SRQ_MAX_WR) {
        return hv_refuse(srq->hca, EINVAL,
                         "modify_srq: the device does not resize SRQs (IBV_SRQ_MAX_WR)");
    }
    if (!(attr_mask & IBV_SRQ_LIMIT)) {
        return 0;
    }
    return attr->srq_limit >= srq->ring_cnt
               ? hv_refuse(srq->hca, EINVAL, "modify_srq: srq_limit is %u; it may be up to %u",
                           attr->srq_limit, srq->ring_cnt - 1)
               : srq_kind(srq)->arm(srq, (uint16_t)attr->srq_limit);
}
