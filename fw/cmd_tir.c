/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on TIS, TIR and RQT (model/eth/tir.h). */
#include "fw/cmd.h"
#include "model/eth/tir.h"
#include "model/steering/ste.h"

static enum syn cmd_create_tis(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t tisn = 0;
    enum syn syn = tis_create(&fw->hca, cmd->uid, PRM_PTR(create_tis_in, cmd->in, ctx), &tisn);

    PRM_SET(create_tis_out, cmd->out, tisn, tisn);
    return syn;
}

static enum syn cmd_modify_tis(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_tis_in *in = cmd->in;

    return tis_modify(&fw->hca, cmd->uid, PRM_GET(modify_tis_in, in, tisn),
                      PRM_PTR(modify_tis_in, in, bitmask), PRM_PTR(modify_tis_in, in, ctx));
}

static enum syn cmd_query_tis(struct fw *fw, struct fw_cmd *cmd)
{
    return tis_query(&fw->hca, PRM_GET(query_tis_in, cmd->in, tisn),
                     PRM_PTR(query_tis_out, cmd->out, tis_context));
}

static enum syn cmd_destroy_tis(struct fw *fw, struct fw_cmd *cmd)
{
    return tis_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_tis_in, cmd->in, tisn));
}

/* Bytes of the RQ list after the rqtc at that offset of the command. */
static size_t cmd_list_len(size_t len, size_t offset)
{
    return len - offset - PRM_SIZE(rqtc);
}

static enum syn cmd_create_rqt(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t rqtn = 0;
    enum syn syn =
        rqt_create(&fw->hca, cmd->uid, PRM_PTR(create_rqt_in, cmd->in, rqt_context),
                   cmd_list_len(cmd->in_len, PRM_OFFSET(create_rqt_in, rqt_context)), &rqtn);

    PRM_SET(create_rqt_out, cmd->out, rqtn, rqtn);
    return syn;
}

static enum syn cmd_modify_rqt(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_rqt_in *in = cmd->in;

    return rqt_modify(&fw->hca, cmd->uid, PRM_GET(modify_rqt_in, in, rqtn),
                      PRM_PTR(modify_rqt_in, in, bitmask), PRM_PTR(modify_rqt_in, in, ctx),
                      cmd_list_len(cmd->in_len, PRM_OFFSET(modify_rqt_in, ctx)));
}

static enum syn cmd_query_rqt(struct fw *fw, struct fw_cmd *cmd)
{
    return rqt_query(&fw->hca, PRM_GET(query_rqt_in, cmd->in, rqtn),
                     PRM_PTR(query_rqt_out, cmd->out, rqt_context),
                     cmd_list_len(cmd->out_len, PRM_OFFSET(query_rqt_out, rqt_context)));
}

static enum syn cmd_destroy_rqt(struct fw *fw, struct fw_cmd *cmd)
{
    return rqt_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_rqt_in, cmd->in, rqtn));
}

static enum syn cmd_create_tir(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t tirn = 0;
    enum syn syn = tir_create(&fw->hca, cmd->uid, PRM_PTR(create_tir_in, cmd->in, ctx), &tirn);
    uint64_t address = ste_end_address(STE_TIR, tirn);

    PRM_SET(create_tir_out, cmd->out, tirn, tirn);
    PRM_SET(create_tir_out, cmd->out, icm_address_39_32, address >> 32);
    PRM_SET(create_tir_out, cmd->out, icm_address_31_0, (uint32_t)address);
    return syn;
}

static enum syn cmd_modify_tir(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_tir_in *in = cmd->in;

    return tir_modify(&fw->hca, cmd->uid, PRM_GET(modify_tir_in, in, tirn),
                      PRM_PTR(modify_tir_in, in, bitmask), PRM_PTR(modify_tir_in, in, ctx));
}

static enum syn cmd_query_tir(struct fw *fw, struct fw_cmd *cmd)
{
    return tir_query(&fw->hca, PRM_GET(query_tir_in, cmd->in, tirn),
                     PRM_PTR(query_tir_out, cmd->out, tir_context));
}

static enum syn cmd_destroy_tir(struct fw *fw, struct fw_cmd *cmd)
{
    return tir_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_tir_in, cmd->in, tirn));
}

const struct fw_cmd_row cmds_tir[] = {
    FW_CMD(CREATE_TIS, cmd_create_tis),
    FW_CMD(MODIFY_TIS, cmd_modify_tis),
    FW_CMD(QUERY_TIS, cmd_query_tis),
    FW_CMD(DESTROY_TIS, cmd_destroy_tis),
    FW_CMD(CREATE_RQT, cmd_create_rqt),
    FW_CMD(MODIFY_RQT, cmd_modify_rqt),
    FW_CMD(QUERY_RQT, cmd_query_rqt),
    FW_CMD(DESTROY_RQT, cmd_destroy_rqt),
    FW_CMD(CREATE_TIR, cmd_create_tir),
    FW_CMD(MODIFY_TIR, cmd_modify_tir),
    FW_CMD(QUERY_TIR, cmd_query_tir),
    FW_CMD(DESTROY_TIR, cmd_destroy_tir),
    {0},
};
