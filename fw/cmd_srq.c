/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on shared receive queues: SRQ (drivers with ISSI 0), XRC SRQ, RMP (from which drivers
 * with ISSI 1 make a basic SRQ), XRQ (tag matching), and the commands that arm them.
 *
 * The four contexts have the same contents in different layouts. Each create handler converts its
 * layout to a struct srq_attr, and each query handler converts it back.
 */
#include "fw/cmd.h"
#include "model/core/pd.h"
#include "model/queue/srq.h"
#include "model/rdma/xrq_dci.h"

/* Converts the fields that have the same names in srqc and xrc_srqc to a struct srq_attr, and
 * back. */
#define COMMON_ATTR(layout, ctx)                                                                   \
    .pdn = PRM_GET(layout, ctx, pd), .log_stride = PRM_GET(layout, ctx, log_rq_stride) + 4,        \
    .has_signature = PRM_GET(layout, ctx, wq_signature), .lwm = PRM_GET(layout, ctx, lwm),         \
    .log_page_size = PRM_GET(layout, ctx, log_page_size),                                          \
    .page_offset = PRM_GET(layout, ctx, page_offset)

#define COMMON_QUERY(layout, ctx, srq)                                                             \
    do {                                                                                           \
        PRM_SET(layout, ctx, state, (srq)->error ? PRM_SRQC_STATE_ERROR : PRM_SRQC_STATE_GOOD);    \
        PRM_SET(layout, ctx, wq_signature, (srq)->attr.has_signature);                             \
        PRM_SET(layout, ctx, log_rq_stride, (srq)->attr.log_stride - 4);                           \
        PRM_SET(layout, ctx, page_offset, (srq)->attr.page_offset);                                \
        PRM_SET(layout, ctx, log_page_size, (srq)->attr.log_page_size);                            \
        PRM_SET(layout, ctx, pd, (srq)->attr.pdn);                                                 \
        PRM_SET(layout, ctx, lwm, (srq)->lwm);                                                     \
        PRM_SET(layout, ctx, wqe_cnt, wq_posted(&(srq)->wq));                                      \
    } while (0)

/* page_offset counts 64ths of a page (driver: po_quanta). */
static struct fw_ring_ref cmd_srq_ring(uint8_t log_page_size, uint8_t page_offset, size_t pas_off)
{
    uint8_t log_page = log_page_size + 12;

    return (struct fw_ring_ref){
        .log_page = log_page,
        /* fw_ring() refuses pages of more than 2 GiB */
        .page_offset = (uint32_t)(((uint64_t)page_offset << MIN(log_page, 31)) / 64),
        .pas_off = pas_off,
    };
}

/* Common end of the create commands: ring, object, number. If it fails, no reference is left.
 * dbr_umem: the umem that has the doorbell record, or NULL. */
static enum syn cmd_srq_create(struct fw *fw, struct fw_cmd *cmd, struct srq_attr *attr,
                               const struct fw_ring_ref *ref, struct obj *dbr_umem, uint32_t *num)
{
    struct srq *srq;
    enum syn syn;

    if (attr->log_size > fw->hca.limits.log_max_srq_sz || attr->log_stride > 16) {
        return SYN_SRQ_SIZE;
    }
    attr->uid = cmd->uid;
    syn = fw_ring(fw, cmd, ref, 1ULL << (attr->log_size + attr->log_stride), &attr->buf);
    if (syn != SYN_OK) {
        return syn;
    }
    attr->buf.dbr_umem = dbr_umem;
    syn = srq_create(&fw->hca, attr, &srq);
    if (syn != SYN_OK) {
        mem_buf_clear(&attr->buf);
        return syn;
    }
    *num = srq->obj.num;
    return SYN_OK;
}

static struct srq *cmd_srq_find(struct fw *fw, uint32_t num, uint8_t kind)
{
    struct srq *srq = srq_find(&fw->hca, num);

    return srq && srq->obj.kind == kind ? srq : NULL;
}

static enum syn cmd_srq_arm(struct fw *fw, struct fw_cmd *cmd, struct srq *srq, uint32_t lwm)
{
    if (!srq) {
        return SYN_SRQ_NUM;
    }
    if (!uid_owns(&srq->obj, cmd->uid)) {
        return SYN_BAD_UID;
    }
    return srq_arm(&fw->hca, srq, (uint16_t)lwm);
}

/* -- SRQ --------------------------------------------------------------------------------------- */

static enum syn cmd_create_srq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_srqc *ctx = PRM_PTR(create_srq_in, cmd->in, srq_context_entry);
    struct srq_attr attr = {
        .kind = OBJ_SRQ,
        COMMON_ATTR(srqc, ctx),
        .log_size = PRM_GET(srqc, ctx, log_srq_size),
        .dbr = PRM_GET(srqc, ctx, dbr_addr),
    };
    struct fw_ring_ref ref =
        cmd_srq_ring(attr.log_page_size, attr.page_offset, PRM_OFFSET(create_srq_in, pas));
    uint32_t num;
    enum syn syn = cmd_srq_create(fw, cmd, &attr, &ref, NULL, &num);

    if (syn == SYN_OK) {
        PRM_SET(create_srq_out, cmd->out, srqn, num);
    }
    return syn;
}

static enum syn cmd_query_srq(struct fw *fw, struct fw_cmd *cmd)
{
    struct srq *srq = cmd_srq_find(fw, PRM_GET(query_srq_in, cmd->in, srqn), OBJ_SRQ);
    struct prm_srqc *ctx = PRM_PTR(query_srq_out, cmd->out, srq_context_entry);

    if (!srq) {
        return SYN_SRQ_NUM;
    }
    COMMON_QUERY(srqc, ctx, srq);
    PRM_SET(srqc, ctx, log_srq_size, srq->attr.log_size);
    PRM_SET(srqc, ctx, dbr_addr, srq->attr.dbr);
    return SYN_OK;
}

static enum syn cmd_destroy_srq(struct fw *fw, struct fw_cmd *cmd)
{
    return srq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_srq_in, cmd->in, srqn), OBJ_SRQ);
}

static enum syn cmd_arm_rq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_arm_rq_in *in = cmd->in;
    uint8_t kind = cmd->op_mod == PRM_ARM_RQ_OP_XRQ ? OBJ_XRQ : OBJ_SRQ;

    return cmd_srq_arm(fw, cmd, cmd_srq_find(fw, PRM_GET(arm_rq_in, in, srq_number), kind),
                       PRM_GET(arm_rq_in, in, lwm));
}

/* -- XRC SRQ ----------------------------------------------------------------------------------- */

static enum syn cmd_create_xrc_srq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_xrc_srq_in *in = cmd->in;
    const struct prm_xrc_srqc *ctx = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);
    struct srq_attr attr = {
        .kind = OBJ_XRC_SRQ,
        COMMON_ATTR(xrc_srqc, ctx),
        .log_size = PRM_GET(xrc_srqc, ctx, log_xrc_srq_size),
        .dbr = (uint64_t)PRM_GET(xrc_srqc, ctx, db_record_addr_h) << 32 |
               PRM_GET(xrc_srqc, ctx, db_record_addr_l) << 2,
        .xrcdn = PRM_GET(xrc_srqc, ctx, xrcd),
        .cqn = PRM_GET(xrc_srqc, ctx, cqn),
        .user_index = PRM_GET(xrc_srqc, ctx, user_index),
        .form = PRM_GET(xrc_srqc, ctx, basic_cyclic_rcv_wqe) ? SRQ_RING_BASIC : SRQ_LIST,
    };
    struct fw_ring_ref ref =
        cmd_srq_ring(attr.log_page_size, attr.page_offset, PRM_OFFSET(create_xrc_srq_in, pas));
    uint32_t num;
    enum syn syn;

    if (PRM_GET(xrc_srqc, ctx, dbr_umem_valid) ||
        PRM_GET(create_xrc_srq_in, in, xrc_srq_umem_valid)) {
        return SYN_SRQ_TYPE;
    }
    syn = cmd_srq_create(fw, cmd, &attr, &ref, NULL, &num);
    if (syn == SYN_OK) {
        PRM_SET(create_xrc_srq_out, cmd->out, xrc_srqn, num);
    }
    return syn;
}

static enum syn cmd_query_xrc_srq(struct fw *fw, struct fw_cmd *cmd)
{
    struct srq *srq = cmd_srq_find(fw, PRM_GET(query_xrc_srq_in, cmd->in, xrc_srqn), OBJ_XRC_SRQ);
    struct prm_xrc_srqc *ctx = PRM_PTR(query_xrc_srq_out, cmd->out, xrc_srq_context_entry);

    if (!srq) {
        return SYN_SRQ_NUM;
    }
    COMMON_QUERY(xrc_srqc, ctx, srq);
    PRM_SET(xrc_srqc, ctx, basic_cyclic_rcv_wqe, srq->attr.form == SRQ_RING_BASIC);
    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, srq->attr.log_size);
    PRM_SET(xrc_srqc, ctx, xrcd, srq->attr.xrcdn);
    PRM_SET(xrc_srqc, ctx, cqn, srq->attr.cqn);
    PRM_SET(xrc_srqc, ctx, user_index, srq->attr.user_index);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, srq->attr.dbr >> 32);
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (srq->attr.dbr & UINT32_MAX) >> 2);
    return SYN_OK;
}

static enum syn cmd_destroy_xrc_srq(struct fw *fw, struct fw_cmd *cmd)
{
    return srq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_xrc_srq_in, cmd->in, xrc_srqn),
                       OBJ_XRC_SRQ);
}

static enum syn cmd_arm_xrc_srq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_arm_xrc_srq_in *in = cmd->in;

    return cmd_srq_arm(fw, cmd,
                       cmd_srq_find(fw, PRM_GET(arm_xrc_srq_in, in, xrc_srqn), OBJ_XRC_SRQ),
                       PRM_GET(arm_xrc_srq_in, in, lwm));
}

/* -- the wq in the contexts of RMP and XRQ ---------------------------------------------------- */

#define WQ_ATTR(wq_)                                                                               \
    .pdn = PRM_GET(wq, wq_, pd), .log_size = PRM_GET(wq, wq_, log_wq_sz),                          \
    .log_stride = PRM_GET(wq, wq_, log_wq_stride),                                                 \
    .has_signature = PRM_GET(wq, wq_, wq_signature), .lwm = PRM_GET(wq, wq_, lwm),                 \
    .log_page_size = PRM_GET(wq, wq_, log_wq_pg_sz), .page_offset = PRM_GET(wq, wq_, page_offset), \
    .form = PRM_GET(wq, wq_, wq_type) == PRM_WQ_TYPE_CYCLIC ? SRQ_RING : SRQ_LIST

/* pas: the offset of the wq's page list in the command. */
static enum syn cmd_wq_create(struct fw *fw, struct fw_cmd *cmd, const struct prm_wq *wq,
                              size_t pas, struct srq_attr *attr, uint32_t *num)
{
    struct fw_ring_ref ref = cmd_srq_ring(attr->log_page_size, attr->page_offset, pas);
    uint32_t type = PRM_GET(wq, wq, wq_type);
    struct fw_dbr dbr;
    enum syn syn;

    if ((type != PRM_WQ_TYPE_LINKED_LIST && type != PRM_WQ_TYPE_CYCLIC) ||
        PRM_GET(wq, wq, cd_slave)) {
        return SYN_SRQ_TYPE;
    }
    ref.umem_valid = PRM_GET(wq, wq, wq_umem_valid);
    ref.umem_id = PRM_GET(wq, wq, wq_umem_id);
    ref.umem_offset = PRM_GET(wq, wq, wq_umem_offset);
    syn = fw_dbr(fw, cmd, PRM_GET(wq, wq, dbr_umem_valid), PRM_GET(wq, wq, dbr_umem_id),
                 PRM_GET(wq, wq, dbr_addr), &dbr);
    if (syn == SYN_OK) {
        attr->dbr = dbr.addr;
        syn = cmd_srq_create(fw, cmd, attr, &ref, dbr.umem, num);
    }
    return syn;
}

static void cmd_wq_query(const struct srq *srq, struct prm_wq *wq)
{
    PRM_SET(wq, wq, wq_type,
            srq->attr.form == SRQ_LIST ? PRM_WQ_TYPE_LINKED_LIST : PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, wq_signature, srq->attr.has_signature);
    PRM_SET(wq, wq, page_offset, srq->attr.page_offset);
    PRM_SET(wq, wq, lwm, srq->lwm);
    PRM_SET(wq, wq, pd, srq->attr.pdn);
    PRM_SET(wq, wq, dbr_addr, srq->attr.dbr);
    PRM_SET(wq, wq, hw_counter, srq->wq.ci);
    PRM_SET(wq, wq, sw_counter, srq->wq.pi);
    PRM_SET(wq, wq, log_wq_stride, srq->attr.log_stride);
    PRM_SET(wq, wq, log_wq_pg_sz, srq->attr.log_page_size);
    PRM_SET(wq, wq, log_wq_sz, srq->attr.log_size);
}

/* -- RMP --------------------------------------------------------------------------------------- */

static enum syn cmd_create_rmp(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_rmpc *ctx = PRM_PTR(create_rmp_in, cmd->in, ctx);
    const struct prm_wq *wq = PRM_PTR(rmpc, ctx, wq);
    struct srq_attr attr = {
        .kind = OBJ_RMP,
        WQ_ATTR(wq),
    };
    bool is_basic = PRM_GET(rmpc, ctx, basic_cyclic_rcv_wqe);
    size_t pas = PRM_OFFSET(create_rmp_in, ctx) + PRM_OFFSET(rmpc, wq) + PRM_OFFSET(wq, pas);
    uint32_t num;
    enum syn syn;

    if ((is_basic && attr.form == SRQ_LIST) || PRM_GET(rmpc, ctx, state) != PRM_RMPC_STATE_RDY) {
        return SYN_SRQ_TYPE;
    }
    attr.form = is_basic ? SRQ_RING_BASIC : attr.form;
    syn = cmd_wq_create(fw, cmd, wq, pas, &attr, &num);
    if (syn == SYN_OK) {
        PRM_SET(create_rmp_out, cmd->out, rmpn, num);
    }
    return syn;
}

/* Only the limit can change; the state cannot be set. */
static enum syn cmd_modify_rmp(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_rmp_in *in = cmd->in;
    struct srq *srq = cmd_srq_find(fw, PRM_GET(modify_rmp_in, in, rmpn), OBJ_RMP);
    const struct prm_rmpc *ctx = PRM_PTR(modify_rmp_in, in, ctx);
    const struct prm_rmp_bitmask *bitmask = PRM_PTR(modify_rmp_in, in, bitmask);

    if (!srq) {
        return SYN_SRQ_NUM;
    }
    if (srq->error || PRM_GET(modify_rmp_in, in, rmp_state) != PRM_RMPC_STATE_RDY ||
        PRM_GET(rmpc, ctx, state) != PRM_RMPC_STATE_RDY) {
        return SYN_SRQ_STATE;
    }
    if (!uid_owns(&srq->obj, cmd->uid)) {
        return SYN_BAD_UID;
    }
    if (!PRM_GET(rmp_bitmask, bitmask, lwm)) {
        return SYN_OK;
    }
    return cmd_srq_arm(fw, cmd, srq, PRM_GET(wq, PRM_PTR(rmpc, ctx, wq), lwm));
}

static enum syn cmd_query_rmp(struct fw *fw, struct fw_cmd *cmd)
{
    struct srq *srq = cmd_srq_find(fw, PRM_GET(query_rmp_in, cmd->in, rmpn), OBJ_RMP);
    struct prm_rmpc *ctx = PRM_PTR(query_rmp_out, cmd->out, rmp_context);

    if (!srq) {
        return SYN_SRQ_NUM;
    }
    PRM_SET(rmpc, ctx, state, srq->error ? PRM_RMPC_STATE_ERR : PRM_RMPC_STATE_RDY);
    PRM_SET(rmpc, ctx, basic_cyclic_rcv_wqe, srq->attr.form == SRQ_RING_BASIC);
    cmd_wq_query(srq, PRM_PTR(rmpc, ctx, wq));
    return SYN_OK;
}

static enum syn cmd_destroy_rmp(struct fw *fw, struct fw_cmd *cmd)
{
    return srq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_rmp_in, cmd->in, rmpn), OBJ_RMP);
}

/* -- XRQ --------------------------------------------------------------------------------------- */

static enum syn cmd_create_xrq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_xrqc *ctx = PRM_PTR(create_xrq_in, cmd->in, xrq_context);
    const struct prm_wq *wq = PRM_PTR(xrqc, ctx, wq);
    struct srq_attr attr = {
        .kind = OBJ_XRQ,
        WQ_ATTR(wq),
        .cqn = PRM_GET(xrqc, ctx, cqn),
        .user_index = PRM_GET(xrqc, ctx, user_index),
        .tags = PRM_PTR(xrqc, ctx, tag_matching_topology_context),
        .fetches = PRM_GET(xrqc, ctx, offload) == PRM_XRQC_OFFLOAD_RNDV,
        .dc = PRM_GET(xrqc, ctx, dc),
    };
    size_t pas =
        PRM_OFFSET(create_xrq_in, xrq_context) + PRM_OFFSET(xrqc, wq) + PRM_OFFSET(wq, pas);
    uint32_t num;
    enum syn syn;

    if (PRM_GET(xrqc, ctx, topology) != PRM_XRQC_TOPOLOGY_TAG_MATCHING ||
        PRM_GET(xrqc, ctx, offload) > PRM_XRQC_OFFLOAD_RNDV) {
        return SYN_SRQ_TYPE;
    }
    syn = cmd_wq_create(fw, cmd, wq, pas, &attr, &num);
    if (syn == SYN_OK) {
        PRM_SET(create_xrq_out, cmd->out, xrqn, num);
    }
    return syn;
}

static enum syn cmd_query_xrq(struct fw *fw, struct fw_cmd *cmd)
{
    struct srq *srq = cmd_srq_find(fw, PRM_GET(query_xrq_in, cmd->in, xrqn), OBJ_XRQ);
    struct prm_xrqc *ctx = PRM_PTR(query_xrq_out, cmd->out, xrq_context);

    if (!srq) {
        return SYN_SRQ_NUM;
    }
    PRM_SET(xrqc, ctx, state, srq->error ? PRM_SRQC_STATE_ERROR : PRM_SRQC_STATE_GOOD);
    PRM_SET(xrqc, ctx, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, ctx, offload, srq->attr.fetches ? PRM_XRQC_OFFLOAD_RNDV : PRM_XRQC_OFFLOAD_NONE);
    PRM_SET(xrqc, ctx, user_index, srq->attr.user_index);
    PRM_SET(xrqc, ctx, cqn, srq->attr.cqn);
    PRM_SET(xrqc, ctx, dc, srq->attr.dc);
    tag_list_query(srq->tags, PRM_PTR(xrqc, ctx, tag_matching_topology_context));
    cmd_wq_query(srq, PRM_PTR(xrqc, ctx, wq));
    return SYN_OK;
}

static enum syn cmd_destroy_xrq(struct fw *fw, struct fw_cmd *cmd)
{
    return srq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_xrq_in, cmd->in, xrqn), OBJ_XRQ);
}

static enum syn cmd_arm_xrq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_arm_xrq_in *in = cmd->in;

    return cmd_srq_arm(fw, cmd, cmd_srq_find(fw, PRM_GET(arm_xrq_in, in, xrqn), OBJ_XRQ),
                       PRM_GET(arm_xrq_in, in, lwm));
}

static enum syn cmd_set_xrq_dc_params(struct fw *fw, struct fw_cmd *cmd)
{
    return xrq_set_dc_params(&fw->hca, cmd->uid, cmd->in);
}

const struct fw_cmd_row cmds_srq[] = {
    FW_CMD(CREATE_SRQ, cmd_create_srq),
    FW_CMD(QUERY_SRQ, cmd_query_srq),
    FW_CMD(DESTROY_SRQ, cmd_destroy_srq),
    FW_CMD(ARM_RQ, cmd_arm_rq),
    FW_CMD(CREATE_XRC_SRQ, cmd_create_xrc_srq),
    FW_CMD(QUERY_XRC_SRQ, cmd_query_xrc_srq),
    FW_CMD(DESTROY_XRC_SRQ, cmd_destroy_xrc_srq),
    FW_CMD(ARM_XRC_SRQ, cmd_arm_xrc_srq),
    FW_CMD(CREATE_RMP, cmd_create_rmp),
    FW_CMD(MODIFY_RMP, cmd_modify_rmp),
    FW_CMD(QUERY_RMP, cmd_query_rmp),
    FW_CMD(DESTROY_RMP, cmd_destroy_rmp),
    FW_CMD(CREATE_XRQ, cmd_create_xrq),
    FW_CMD(QUERY_XRQ, cmd_query_xrq),
    FW_CMD(DESTROY_XRQ, cmd_destroy_xrq),
    FW_CMD(ARM_XRQ, cmd_arm_xrq),
    FW_CMD(SET_XRQ_DC_PARAMS_ENTRY, cmd_set_xrq_dc_params),
    {0},
};
