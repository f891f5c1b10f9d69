/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements PAGE_FAULT_RESUME, the driver's answer to a page fault (model/rdma/paging.h). */
#include "fw/cmd.h"
#include "model/rdma/paging.h"

static enum syn cmd_page_fault_resume(struct fw *fw, struct fw_cmd *cmd)
{
    const void *info = PRM_PTR(page_fault_resume_in, cmd->in, page_fault_info);
    const struct prm_trans_page_fault_info *trans = info;
    const struct prm_mem_page_fault_info *memory = info;

    if (fw->hca.memory_faults) {
        return paging_resume_memory(
            &fw->hca,
            (uint64_t)PRM_GET(mem_page_fault_info, memory, fault_token_47_32) << 32 |
                PRM_GET(mem_page_fault_info, memory, fault_token_31_0),
            PRM_GET(mem_page_fault_info, memory, error));
    }
    return paging_resume_transport(&fw->hca, PRM_GET(trans_page_fault_info, trans, page_fault_type),
                                   PRM_GET(trans_page_fault_info, trans, wq_number),
                                   PRM_GET(trans_page_fault_info, trans, fault_token),
                                   PRM_GET(trans_page_fault_info, trans, error));
}

const struct fw_cmd_row cmds_page_fault[] = {
    FW_KERNEL_CMD(PAGE_FAULT_RESUME, cmd_page_fault_resume),
    {0},
};
