/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on completion queues. */
#include "fw/cmd.h"
#include "model/queue/cq.h"

/* Finds the ring that a command's cqc describes. It is in a page list or in a umem. */
static enum syn cmd_cq_ring(struct fw *fw, struct fw_cmd *cmd, const struct prm_cqc *cqc,
                            bool umem_valid, uint32_t umem_id, uint64_t umem_offset, size_t pas_off,
                            struct mem_buf *ring)
{
    uint8_t log_page = PRM_GET(cqc, cqc, log_page_size) + 12;
    struct fw_ring_ref ref = {
        .umem_valid = umem_valid,
        .umem_id = umem_id,
        .umem_offset = umem_offset,
        .log_page = log_page,
        /* page_offset counts 64ths of a page */
        .page_offset = (uint32_t)(((uint64_t)PRM_GET(cqc, cqc, page_offset) << log_page) / 64),
        .pas_off = pas_off,
    };
    uint64_t size = cq_ring_size(cqc);

    return size ? fw_ring(fw, cmd, &ref, size, ring) : SYN_CQ_SIZE;
}

static enum syn cmd_create_cq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_cq_in *in = cmd->in;
    const struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    struct mem_buf ring;
    struct fw_dbr dbr;
    uint32_t cqn = 0;
    enum syn syn;

    syn = fw_dbr(fw, cmd, PRM_GET(cqc, cqc, dbr_umem_valid), PRM_GET(cqc, cqc, dbr_umem_id),
                 PRM_GET(cqc, cqc, dbr_addr), &dbr);
    if (syn) {
        return syn;
    }
    syn = cmd_cq_ring(fw, cmd, cqc, PRM_GET(create_cq_in, in, cq_umem_valid),
                      PRM_GET(create_cq_in, in, cq_umem_id),
                      PRM_GET(create_cq_in, in, cq_umem_offset), PRM_OFFSET(create_cq_in, pas),
                      &ring);
    if (syn) {
        return syn;
    }
    ring.dbr_umem = dbr.umem;
    syn = cq_create(&fw->hca, cmd->uid, cqc, &ring, dbr.addr, &cqn);
    if (syn) {
        mem_buf_clear(&ring);
        return syn;
    }
    PRM_SET(create_cq_out, cmd->out, cqn, cqn);
    return SYN_OK;
}

static enum syn cmd_query_cq(struct fw *fw, struct fw_cmd *cmd)
{
    return cq_query(&fw->hca, PRM_GET(query_cq_in, cmd->in, cqn),
                    PRM_PTR(query_cq_out, cmd->out, cq_context));
}

static enum syn cmd_modify_cq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_cq_in *in = cmd->in;
    const struct prm_cqc *cqc = PRM_PTR(modify_cq_in, in, cq_context);
    uint32_t cqn = PRM_GET(modify_cq_in, in, cqn);
    uint32_t fields = PRM_GET(modify_cq_in, in, modify_field_select_resize_field_select);
    struct mem_buf ring;
    enum syn syn;

    if (cmd->op_mod == PRM_MODIFY_CQ_OP_MODIFY_CQ) {
        return cq_modify(&fw->hca, cmd->uid, cqn, fields, cqc, NULL);
    }
    syn = cmd_cq_ring(fw, cmd, cqc, PRM_GET(modify_cq_in, in, cq_umem_valid),
                      PRM_GET(modify_cq_in, in, cq_umem_id),
                      PRM_GET(modify_cq_in, in, cq_umem_offset), PRM_OFFSET(modify_cq_in, pas),
                      &ring);
    if (syn) {
        return syn;
    }
    syn = cq_modify(&fw->hca, cmd->uid, cqn, fields, cqc, &ring);
    if (syn) {
        mem_buf_clear(&ring);
    }
    return syn;
}

static enum syn cmd_destroy_cq(struct fw *fw, struct fw_cmd *cmd)
{
    return cq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_cq_in, cmd->in, cqn));
}

const struct fw_cmd_row cmds_cq[] = {
    FW_CMD(CREATE_CQ, cmd_create_cq),
    FW_CMD(QUERY_CQ, cmd_query_cq),
    FW_CMD(MODIFY_CQ, cmd_modify_cq),
    FW_CMD(DESTROY_CQ, cmd_destroy_cq),
    {0},
};
