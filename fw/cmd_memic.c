/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on device memory. The layouts have no user context: the memory belongs to the kernel,
 * which hands it out. */
#include "fw/cmd.h"
#include "model/memory/memic.h"

static enum syn cmd_alloc_memic(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_alloc_memic_in *in = cmd->in;
    struct memic_request want = {
        .start = PRM_GET(alloc_memic_in, in, range_start_addr),
        .range = PRM_GET(alloc_memic_in, in, range_size),
        .size = PRM_GET(alloc_memic_in, in, memic_size),
        .log_align = PRM_GET(alloc_memic_in, in, log_memic_addr_alignment),
    };
    uint64_t addr = 0;
    enum syn syn = memic_alloc(&fw->hca, &want, &addr);

    PRM_SET(alloc_memic_out, cmd->out, memic_start_addr, addr);
    return syn;
}

static enum syn cmd_dealloc_memic(struct fw *fw, struct fw_cmd *cmd)
{
    return memic_dealloc(&fw->hca, PRM_GET(dealloc_memic_in, cmd->in, memic_start_addr),
                         PRM_GET(dealloc_memic_in, cmd->in, memic_size));
}

static enum syn cmd_modify_memic(struct fw *fw, struct fw_cmd *cmd)
{
    const struct prm_modify_memic_in *in = cmd->in;
    uint64_t addr = PRM_GET(modify_memic_in, in, memic_start_addr), op_addr = 0;
    unsigned op = PRM_GET(modify_memic_in, in, memic_operation_type);
    enum syn syn;

    if (cmd->op_mod == PRM_MODIFY_MEMIC_OP_DEALLOC) {
        return memic_op_dealloc(&fw->hca, cmd->uid, addr, op);
    }
    syn = memic_op_alloc(&fw->hca, cmd->uid, addr, op, &op_addr);
    PRM_SET(modify_memic_out, cmd->out, memic_operation_addr, op_addr);
    return syn;
}

const struct fw_cmd_row cmds_memic[] = {
    FW_KERNEL_CMD(ALLOC_MEMIC, cmd_alloc_memic),
    FW_KERNEL_CMD(DEALLOC_MEMIC, cmd_dealloc_memic),
    FW_CMD(MODIFY_MEMIC, cmd_modify_memic),
    {0},
};
