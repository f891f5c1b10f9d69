/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on signature values (PSV). */
#include "fw/cmd.h"
#include "model/memory/psv.h"

static enum syn cmd_create_psv(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_create_psv_in *in = cmd->in;
    struct prm_create_psv_out *out = cmd->out;
    uint32_t psvn[PSV_MAX] = {0};
    enum syn syn = psv_create(&fw->hca, cmd->uid, PRM_GET(create_psv_in, in, pd),
                              PRM_GET(create_psv_in, in, num_psv), psvn);

    PRM_SET(create_psv_out, out, psv0_index, psvn[0]);
    PRM_SET(create_psv_out, out, psv1_index, psvn[1]);
    PRM_SET(create_psv_out, out, psv2_index, psvn[2]);
    PRM_SET(create_psv_out, out, psv3_index, psvn[3]);
    return syn;
}

static enum syn cmd_destroy_psv(struct fw *fw, struct fw_cmd *cmd)
{
    return psv_destroy(&fw->hca, cmd->uid, PRM_GET(destroy_psv_in, cmd->in, psvn));
}

const struct fw_cmd_row cmds_psv[] = {
    FW_CMD(CREATE_PSV, cmd_create_psv),
    FW_CMD(DESTROY_PSV, cmd_destroy_psv),
    {0},
};
