/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the quality of service: whether the priority of a packet comes from its VLAN tag or
 * from its DSCP (dcb app). The priority selects the counters of the packet (PPCNT). It decides
 * whether a congestion mark is answered (model/rdma/notification_point.c), whether the packets of a
 * connection may be marked, and whether the connection slows down (model/rdma/reaction_point.c).
 *
 * The port is not shared by traffic classes, and has no buffers for priorities. Therefore QETCR,
 * QTCT, PPTB and PBMC do not exist, and the capability "ets" is not advertised.
 */
#include <string.h>
#include "fw/regs.h"
#include "model/port/eswitch.h"

#define QCAM_FIRST 0x4000

static enum syn regs_qcam_query(struct fw *fw, const void *in, void *out)
{
    if (PRM_GET(qcam_reg, in, feature_group) || PRM_GET(qcam_reg, in, access_reg_group)) {
        return SYN_REG_VALUE;
    }
    fw_reg_mask(QCAM_FIRST, PRM_PTR(qcam_reg, out, qos_access_reg_cap_mask_reg_cap));
    return SYN_OK;
}

static enum syn regs_qpts_query(struct fw *fw, const void *in, void *out)
{
    PRM_SET(qpts_reg, out, trust_state,
            fw_uplink(fw)->phy.trusts_dscp ? PRM_QPTS_TRUST_DSCP : PRM_QPTS_TRUST_PCP);
    return SYN_OK;
}

static enum syn regs_qpts_write(struct fw *fw, const void *in, void *out)
{
    uint32_t trust = PRM_GET(qpts_reg, in, trust_state);

    if (trust != PRM_QPTS_TRUST_PCP && trust != PRM_QPTS_TRUST_DSCP) {
        return SYN_REG_VALUE;
    }
    fw_uplink(fw)->phy.trusts_dscp = trust == PRM_QPTS_TRUST_DSCP;
    eswitch_paths_changed(fw->hca.vport->sw); /* the ECN bits of what is sent */
    return SYN_OK;
}

static enum syn regs_qpdpm_query(struct fw *fw, const void *in, void *out)
{
    for (unsigned i = 0; i < DSCPS; i++) {
        PRM_SET(qpdpm_dscp_reg, PRM_PTR_AT(qpdpm_reg, out, dscp, i), prio,
                fw_uplink(fw)->phy.dscp_priority[i]);
    }
    return SYN_OK;
}

static enum syn regs_qpdpm_write(struct fw *fw, const void *in, void *out)
{
    struct uplink_phy *phy = &fw_uplink(fw)->phy;
    uint8_t wished[DSCPS];

    memcpy(wished, phy->dscp_priority, sizeof(wished));
    for (unsigned i = 0; i < DSCPS; i++) {
        const void *entry = PRM_PTR_AT(qpdpm_reg, in, dscp, i);

        if (PRM_GET(qpdpm_dscp_reg, entry, e)) {
            wished[i] = (uint8_t)PRM_GET(qpdpm_dscp_reg, entry, prio);
            if (wished[i] >= PRIORITIES) {
                return SYN_REG_VALUE;
            }
        }
    }
    memcpy(phy->dscp_priority, wished, sizeof(wished));
    eswitch_paths_changed(fw->hca.vport->sw);
    return SYN_OK;
}

const struct fw_reg regs_qos[] = {
    {PRM_REG_ID_QCAM, PRM_SIZE(qcam_reg), false, regs_qcam_query, NULL},
    {PRM_REG_ID_QPTS, PRM_SIZE(qpts_reg), true, regs_qpts_query, regs_qpts_write},
    {PRM_REG_ID_QPDPM, PRM_SIZE(qpdpm_reg), true, regs_qpdpm_query, regs_qpdpm_write},
    {0},
};
