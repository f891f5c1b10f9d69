/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on targets of dynamic connections. */
#include "fw/cmd.h"
#include "model/rdma/dct.h"

static enum syn cmd_create_dct(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t dctn;
    enum syn syn;

    if (!fw->caps.dct) {
        return SYN_QP_FEATURE; /* the driver has not enabled DC */
    }
    syn = dct_create(&fw->hca, cmd->uid, PRM_PTR(create_dct_in, cmd->in, dct_context_entry), &dctn);
    if (syn == SYN_OK) {
        PRM_SET(create_dct_out, cmd->out, dctn, dctn);
    }
    return syn;
}

static enum syn cmd_query_dct(struct fw *fw, struct fw_cmd *cmd)
{
    return dct_query(&fw->hca, PRM_GET(query_dct_in, cmd->in, dctn),
                     PRM_PTR(query_dct_out, cmd->out, dct_context_entry));
}

static enum syn cmd_drain_dct(struct fw *fw, struct fw_cmd *cmd)
{
    return dct_drain(&fw->hca, cmd->uid, PRM_GET(drain_dct_in, cmd->in, dctn));
}

static enum syn cmd_destroy_dct(struct fw *fw, struct fw_cmd *cmd)
{
    return dct_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_dct_in, cmd->in, dctn));
}

static enum syn cmd_arm_dct(struct fw *fw, struct fw_cmd *cmd)
{
    return dct_arm(&fw->hca, cmd->uid, PRM_GET(arm_dct_in, cmd->in, dct_number));
}

const struct fw_cmd_row cmds_dct[] = {
    FW_CMD(CREATE_DCT, cmd_create_dct),
    FW_CMD(QUERY_DCT, cmd_query_dct),
    FW_CMD(DRAIN_DCT, cmd_drain_dct),
    FW_CMD(DESTROY_DCT, cmd_destroy_dct),
    FW_CMD(ARM_DCT_FOR_KEY_VIOLATION, cmd_arm_dct),
    {0},
};
