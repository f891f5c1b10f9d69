/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on Ethernet send and receive queues (model/eth/eth_queue.h). */
#include "fw/cmd.h"
#include "model/eth/eth_delay.h"
#include "model/eth/eth_queue.h"

/* Finds the ring of an SQ or RQ. Both contexts end with the same wq; its page list is at the end of
 * the command. A hairpin queue has no ring, nor has an RQ that takes its WQEs from an RMP. For each
 * queue of a DevX user, mlx5_ib sets the flags that ring and record are in umems
 * (devx_set_umem_valid()), also for queues without a ring. Therefore only the number of a umem is
 * refused there. */
static enum syn cmd_ring_of(struct fw *fw, struct fw_cmd *cmd, bool no_ring,
                            const struct prm_wq *wq, struct mem_buf *buf, struct fw_dbr *dbr)
{
    struct fw_ring_ref ref = {
        .umem_valid = PRM_GET(wq, wq, wq_umem_valid),
        .umem_id = PRM_GET(wq, wq, wq_umem_id),
        .umem_offset = PRM_GET(wq, wq, wq_umem_offset),
        .log_page = (uint8_t)(PRM_GET(wq, wq, log_wq_pg_sz) + 12),
        .pas_off = (size_t)(wq->bytes - (const uint8_t *)cmd->in) + PRM_SIZE(wq),
    };
    uint64_t size = eth_wq_size(wq);
    enum syn syn;

    /* page_offset counts 64ths of a page */
    ref.page_offset = (uint32_t)(((uint64_t)PRM_GET(wq, wq, page_offset) << ref.log_page) / 64);

    if (no_ring) {
        return ref.umem_id || PRM_GET(wq, wq, dbr_umem_id) ? SYN_ETH_WQ : SYN_OK;
    }
    if (!size) {
        return SYN_ETH_WQ;
    }
    syn = fw_dbr(fw, cmd, PRM_GET(wq, wq, dbr_umem_valid), PRM_GET(wq, wq, dbr_umem_id),
                 PRM_GET(wq, wq, dbr_addr), dbr);
    if (syn == SYN_OK) {
        syn = fw_ring(fw, cmd, &ref, size, buf);
    }
    buf->dbr_umem = dbr->umem;
    return syn;
}

static enum syn cmd_create_sq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_sqc *sqc = PRM_PTR(create_sq_in, cmd->in, ctx);
    struct mem_buf buf = {0};
    uint32_t sqn = 0;
    struct fw_dbr dbr = {0};
    enum syn syn =
        cmd_ring_of(fw, cmd, PRM_GET(sqc, sqc, hairpin), PRM_PTR(sqc, sqc, wq), &buf, &dbr);

    if (syn != SYN_OK) {
        return syn;
    }
    syn = eth_sq_create(&fw->hca, cmd->uid, sqc, &buf, dbr.addr, &sqn);
    if (syn != SYN_OK) {
        mem_buf_clear(&buf);
    }
    PRM_SET(create_sq_out, cmd->out, sqn, sqn);
    return syn;
}

static enum syn cmd_modify_sq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_sq_in *in = cmd->in;

    return eth_sq_modify(&fw->hca, cmd->uid, PRM_GET(modify_sq_in, in, sqn),
                         (uint8_t)PRM_GET(modify_sq_in, in, sq_state),
                         PRM_GET(modify_sq_in, in, modify_bitmask), PRM_PTR(modify_sq_in, in, ctx));
}

static enum syn cmd_query_sq(struct fw *fw, struct fw_cmd *cmd)
{
    return eth_sq_query(&fw->hca, PRM_GET(query_sq_in, cmd->in, sqn),
                        PRM_PTR(query_sq_out, cmd->out, sq_context));
}

static enum syn cmd_destroy_sq(struct fw *fw, struct fw_cmd *cmd)
{
    return eth_sq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_sq_in, cmd->in, sqn));
}

static enum syn cmd_create_rq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_rqc *rqc = PRM_PTR(create_rq_in, cmd->in, ctx);
    struct mem_buf buf = {0};
    uint32_t rqn = 0;
    struct fw_dbr dbr = {0};
    bool no_ring = PRM_GET(rqc, rqc, hairpin) || PRM_GET(rqc, rqc, mem_rq_type);
    enum syn syn = cmd_ring_of(fw, cmd, no_ring, PRM_PTR(rqc, rqc, wq), &buf, &dbr);

    if (syn != SYN_OK) {
        return syn;
    }
    syn = eth_rq_create(&fw->hca, cmd->uid, rqc, &buf, dbr.addr, &rqn);
    if (syn != SYN_OK) {
        mem_buf_clear(&buf);
    }
    PRM_SET(create_rq_out, cmd->out, rqn, rqn);
    return syn;
}

static enum syn cmd_modify_rq(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_rq_in *in = cmd->in;

    return eth_rq_modify(&fw->hca, cmd->uid, PRM_GET(modify_rq_in, in, rqn),
                         (uint8_t)PRM_GET(modify_rq_in, in, rq_state),
                         PRM_GET(modify_rq_in, in, modify_bitmask), PRM_PTR(modify_rq_in, in, ctx));
}

static enum syn cmd_query_rq(struct fw *fw, struct fw_cmd *cmd)
{
    return eth_rq_query(&fw->hca, PRM_GET(query_rq_in, cmd->in, rqn),
                        PRM_PTR(query_rq_out, cmd->out, rq_context));
}

static enum syn cmd_destroy_rq(struct fw *fw, struct fw_cmd *cmd)
{
    return eth_rq_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_rq_in, cmd->in, rqn));
}

static enum syn cmd_set_delay_drop_params(struct fw *fw, struct fw_cmd *cmd)
{
    eth_delay_set(&fw->hca,
                  (uint16_t)PRM_GET(set_delay_drop_params_in, cmd->in, delay_drop_timeout));
    return SYN_OK;
}

const struct fw_cmd_row cmds_eth_queue[] = {
    FW_CMD(CREATE_SQ, cmd_create_sq),
    FW_CMD(MODIFY_SQ, cmd_modify_sq),
    FW_CMD(QUERY_SQ, cmd_query_sq),
    FW_CMD(DESTROY_SQ, cmd_destroy_sq),
    FW_CMD(CREATE_RQ, cmd_create_rq),
    FW_CMD(MODIFY_RQ, cmd_modify_rq),
    FW_CMD(QUERY_RQ, cmd_query_rq),
    FW_CMD(DESTROY_RQ, cmd_destroy_rq),
    FW_KERNEL_CMD(SET_DELAY_DROP_PARAMS, cmd_set_delay_drop_params),
    {0},
};
