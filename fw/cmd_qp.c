/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on queue pairs and multicast groups.
 *
 * The transition commands have one layout (except 2ERR_QP and 2RST_QP, which end before the mask)
 * and one handler; model/rdma/qp_modify.c says what each does.
 *
 * Enhanced connection establishment (ECE): a command asks for options of a connection in its word
 * ece, and the device answers with those that it enables (Linux commit "net/mlx5: Add ability to
 * read and write ECE options"). Bits 31:28 are the version, and 0 means no options; the options
 * that programs are known to use are selective repeat (bit 0) and the algorithm of congestion
 * control (bits 8:1; UCX pull requests 6518 and 7174). The device resends go-back-N and has one
 * algorithm of congestion control. It has none of these options, so the answer to each request is
 * 0, as cards without programmable congestion control give it in logs of NCCL.
 */
#include <string.h>
#include "fw/cmd.h"
#include "model/rdma/mcg.h"
#include "model/rdma/qp.h"

/* page_offset counts 64ths of a page (driver: mlx5_umem_find_best_quantized_pgoff()). */
static struct fw_ring_ref cmd_qp_ring(const struct prm_create_qp_in *in)
{
    const struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    uint8_t log_page = (uint8_t)(PRM_GET(qpc, qpc, log_page_size) + 12);

    return (struct fw_ring_ref){
        .umem_valid = PRM_GET(create_qp_in, in, wq_umem_valid),
        .umem_id = PRM_GET(create_qp_in, in, wq_umem_id),
        .umem_offset = PRM_GET(create_qp_in, in, wq_umem_offset),
        .log_page = log_page,
        .page_offset = (uint32_t)(((uint64_t)PRM_GET(qpc, qpc, page_offset) << log_page) / 64),
        .pas_off = PRM_OFFSET(create_qp_in, pas) +
                   (PRM_GET(create_qp_in, in, qpc_ext) ? PRM_SIZE(qp_context_extension) : 0),
    };
}

/* A QP without receive queue whose doorbells tell the send counter has no doorbell record. If the
 * command names a umem for it nevertheless, the umem must be there (gpunetio always names one). */
static enum syn cmd_qp_dbr(struct fw *fw, struct fw_cmd *cmd, const struct prm_qpc *qpc,
                           struct fw_dbr *dbr)
{
    bool in_umem = PRM_GET(qpc, qpc, dbr_umem_valid);

    if (!in_umem && !qp_has_dbr(qpc)) {
        return SYN_OK;
    }
    return fw_dbr(fw, cmd, in_umem, PRM_GET(qpc, qpc, dbr_umem_id), PRM_GET(qpc, qpc, dbr_addr),
                  dbr);
}

/* The extended context of a command, which begins at byte at if the command says that there is one.
 * NULL: there is none, or the command ends before its first fields. */
static const struct prm_qp_context_extension *cmd_qp_extension(const struct fw_cmd *cmd, bool said,
                                                               size_t at)
{
    return said && cmd->in_len >= at + PRM_SIZE(uint64)
               ? (const void *)((const uint8_t *)cmd->in + at)
               : NULL;
}

static enum syn cmd_create_qp(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_qp_in *in = cmd->in;
    const struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    const struct prm_qp_context_extension *ext =
        cmd_qp_extension(cmd, PRM_GET(create_qp_in, in, qpc_ext), PRM_OFFSET(create_qp_in, pas));
    struct fw_ring_ref ref = cmd_qp_ring(cmd->in);
    uint64_t size = qp_ring_size(qpc);
    struct mem_buf buf = {0};
    struct fw_dbr dbr = {0};
    uint32_t qpn;
    enum syn syn = qp_check_extension(&fw->hca, qpc, ext);

    if (syn != SYN_OK) {
        return syn;
    }
    if (size) {
        syn = cmd_qp_dbr(fw, cmd, qpc, &dbr);
        if (syn == SYN_OK) {
            syn = fw_ring(fw, cmd, &ref, size, &buf);
        }
        if (syn != SYN_OK) {
            return syn;
        }
        buf.dbr_umem = dbr.umem;
    }
    syn = qp_create_as(&fw->hca, cmd->uid, qpc, &buf, dbr.addr,
                       PRM_GET(create_qp_in, in, input_qpn), &qpn);
    if (syn != SYN_OK) {
        mem_buf_clear(&buf);
        return syn;
    }
    if (ext && PRM_GET(qp_context_extension, ext, mmo)) {
        qp_find(&fw->hca, qpn)->mmo = true;
    }
    PRM_SET(create_qp_out, cmd->out, qpn, qpn);
    return SYN_OK;
}

static enum syn cmd_modify_qp(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_rts2rts_qp_in *in = cmd->in;
    uint64_t opt_mask = PRM_GET(rts2rts_qp_in, in, opt_param_mask);
    const struct prm_qp_context_extension *ext = NULL;

    if (cmd->opcode == PRM_CMD_OP_RTS2RTS_QP || cmd->opcode == PRM_CMD_OP_INIT2INIT_QP) {
        uint64_t high = PRM_GET(rts2rts_qp_in, in, opt_param_mask_95_32);

        if (high >> 32) {
            return SYN_QP_OPT_MASK;
        }
        opt_mask |= high << 32;
        ext = cmd_qp_extension(cmd, PRM_GET(rts2rts_qp_in, in, qpc_ext),
                               PRM_OFFSET(rts2rts_qp_ext_in, qpc_data_ext));
    }
    return qp_modify(&fw->hca, cmd->uid, PRM_GET(rts2rts_qp_in, in, qpn), cmd->opcode, opt_mask,
                     PRM_PTR(rts2rts_qp_in, in, qpc), ext);
}

static enum syn cmd_end_qp(struct fw *fw, struct fw_cmd *cmd)
{
    return qp_modify(&fw->hca, cmd->uid, PRM_GET(qp_2rst_in, cmd->in, qpn), cmd->opcode, 0, NULL,
                     NULL);
}

/* A stream is not reported, because it is an argument of RTS2RTS_QP alone. The command's row does
 * not require room for this context, because most callers leave none. */
static enum syn cmd_query_qp(struct fw *fw, struct fw_cmd *cmd)
{
    if (PRM_GET(query_qp_in, cmd->in, qpc_ext)) {
        if (cmd->out_len <
            PRM_OFFSET(query_qp_out, qp_pas_or_qpc_ext_and_pas) + PRM_SIZE(qp_context_extension)) {
            return SYN_OUT_LEN;
        }
        qp_query_extension(&fw->hca, PRM_GET(query_qp_in, cmd->in, qpn),
                           (void *)PRM_PTR(query_qp_out, cmd->out, qp_pas_or_qpc_ext_and_pas));
    }
    return qp_query(&fw->hca, PRM_GET(query_qp_in, cmd->in, qpn),
                    PRM_PTR(query_qp_out, cmd->out, qpc));
}

static enum syn cmd_destroy_qp(struct fw *fw, struct fw_cmd *cmd)
{
    return qp_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_qp_in, cmd->in, qpn));
}

static enum syn cmd_attach_to_mcg(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_attach_to_mcg_in *in = cmd->in;

    return mcg_attach(&fw->hca, cmd->uid, PRM_GET(attach_to_mcg_in, in, qpn),
                      PRM_PTR(attach_to_mcg_in, in, multicast_gid));
}

static enum syn cmd_detach_from_mcg(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_detach_from_mcg_in *in = cmd->in;

    return mcg_detach(&fw->hca, cmd->uid, PRM_GET(detach_from_mcg_in, in, qpn),
                      PRM_PTR(detach_from_mcg_in, in, multicast_gid));
}

const struct fw_cmd_row cmds_qp[] = {
    FW_CMD(CREATE_QP, cmd_create_qp),
    FW_CMD(RST2INIT_QP, cmd_modify_qp),
    FW_CMD(INIT2INIT_QP, cmd_modify_qp),
    FW_CMD(INIT2RTR_QP, cmd_modify_qp),
    FW_CMD(RTR2RTS_QP, cmd_modify_qp),
    FW_CMD(RTS2RTS_QP, cmd_modify_qp),
    FW_CMD(SQERR2RTS_QP, cmd_modify_qp),
    FW_CMD(RTS2SQD_QP, cmd_modify_qp),
    FW_CMD(SQD_RTS_QP, cmd_modify_qp),
    FW_CMD(2ERR_QP, cmd_end_qp),
    FW_CMD(2RST_QP, cmd_end_qp),
    FW_CMD(QUERY_QP, cmd_query_qp),
    FW_CMD(DESTROY_QP, cmd_destroy_qp),
    FW_CMD(ATTACH_TO_MCG, cmd_attach_to_mcg),
    FW_CMD(DETACH_FROM_MCG, cmd_detach_from_mcg),
    {0},
};
