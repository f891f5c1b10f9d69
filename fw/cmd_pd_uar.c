/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that give out numbers: PD, transport domain, XRC domain, UAR page. */
#include "fw/cmd.h"
#include "model/core/pd.h"
#include "model/queue/uar.h"

static enum syn cmd_alloc_pd(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t num = 0;
    enum syn syn = pd_alloc(&fw->hca, cmd->uid, &num);

    PRM_SET(alloc_pd_out, cmd->out, pd, num);
    return syn;
}

static enum syn cmd_dealloc_pd(struct fw *fw, struct fw_cmd *cmd)
{
    return pd_dealloc(&fw->hca, cmd->uid, PRM_GET(dealloc_pd_in, cmd->in, pd));
}

static enum syn cmd_alloc_td(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t num = 0;
    enum syn syn = td_alloc(&fw->hca, cmd->uid, &num);

    PRM_SET(alloc_transport_domain_out, cmd->out, transport_domain, num);
    return syn;
}

static enum syn cmd_dealloc_td(struct fw *fw, struct fw_cmd *cmd)
{
    return td_dealloc(&fw->hca, cmd->uid,
                      PRM_GET(dealloc_transport_domain_in, cmd->in, transport_domain));
}

static enum syn cmd_alloc_xrcd(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t num = 0;
    enum syn syn = xrcd_alloc(&fw->hca, cmd->uid, &num);

    PRM_SET(alloc_xrcd_out, cmd->out, xrcd, num);
    return syn;
}

static enum syn cmd_dealloc_xrcd(struct fw *fw, struct fw_cmd *cmd)
{
    return xrcd_dealloc(&fw->hca, cmd->uid, PRM_GET(dealloc_xrcd_in, cmd->in, xrcd));
}

static enum syn cmd_alloc_uar(struct fw *fw, struct fw_cmd *cmd)
{
    uint32_t num = 0;
    enum syn syn = uar_alloc(&fw->hca, cmd->uid, &num);

    PRM_SET(alloc_uar_out, cmd->out, uar, num);
    return syn;
}

static enum syn cmd_dealloc_uar(struct fw *fw, struct fw_cmd *cmd)
{
    return uar_dealloc(&fw->hca, cmd->uid, PRM_GET(dealloc_uar_in, cmd->in, uar));
}

const struct fw_cmd_row cmds_pd_uar[] = {
    FW_CMD(ALLOC_PD, cmd_alloc_pd),
    FW_CMD(DEALLOC_PD, cmd_dealloc_pd),
    FW_CMD(ALLOC_TRANSPORT_DOMAIN, cmd_alloc_td),
    FW_CMD(DEALLOC_TRANSPORT_DOMAIN, cmd_dealloc_td),
    FW_CMD(ALLOC_XRCD, cmd_alloc_xrcd),
    FW_CMD(DEALLOC_XRCD, cmd_dealloc_xrcd),
    FW_CMD(ALLOC_UAR, cmd_alloc_uar),
    FW_CMD(DEALLOC_UAR, cmd_dealloc_uar),
    {0},
};
