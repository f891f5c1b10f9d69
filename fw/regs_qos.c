/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the quality of service: whether the priority of a packet comes from its VLAN tag or
 * from its DSCP (dcb app). The priority selects the counters of the packet (PPCNT). It decides
 * whether a congestion mark is answered (model/rdma/notification_point.c), whether the packets of a
 * connection may be marked, and whether the connection slows down (model/rdma/reaction_point.c).
 *
 * QTCT and QETCR divide what is sent among traffic classes (dcb ets, dcb maxrate;
 * model/port/ets.h). There is no agent of DCBX in the firmware, so the capability "dcbx" is not
 * advertised, and the host decides.
 */
#include <string.h>
#include "fw/regs.h"
#include "model/port/ets.h"

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

/* -- QTCT, QETCR: traffic classes ---------------------------------------------------------------
 */

/* Some of the driver's functions leave the port out (mlx5_set_port_prio_tc()). */
static bool regs_is_port(const struct fw *fw, uint32_t number)
{
    return number == 0 || number == fw_uplink(fw)->number;
}

static enum syn regs_qtct_query(struct fw *fw, const void *in, void *out)
{
    uint32_t priority = PRM_GET(qtct_reg, in, prio);

    if (!regs_is_port(fw, PRM_GET(qtct_reg, in, port_number))) {
        return SYN_NO_PORT;
    }
    PRM_SET(qtct_reg, out, port_number, PRM_GET(qtct_reg, in, port_number));
    PRM_SET(qtct_reg, out, prio, priority);
    PRM_SET(qtct_reg, out, tclass, fw_uplink(fw)->phy.priority_tc[priority]);
    return SYN_OK;
}

static enum syn regs_qtct_write(struct fw *fw, const void *in, void *out)
{
    (void)out;
    if (!regs_is_port(fw, PRM_GET(qtct_reg, in, port_number))) {
        return SYN_NO_PORT;
    }
    fw_uplink(fw)->phy.priority_tc[PRM_GET(qtct_reg, in, prio)] =
        (uint8_t)PRM_GET(qtct_reg, in, tclass);
    return SYN_OK;
}

static enum syn regs_qetcr_query(struct fw *fw, const void *in, void *out)
{
    const struct uplink_phy *phy = &fw_uplink(fw)->phy;
    void *port = PRM_PTR(qetc_reg, out, global_configuration);

    if (!regs_is_port(fw, PRM_GET(qetc_reg, in, port_number))) {
        return SYN_NO_PORT;
    }
    PRM_SET(qetc_reg, out, port_number, PRM_GET(qetc_reg, in, port_number));
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        void *tc = PRM_PTR_AT(qetc_reg, out, tc_configuration, i);

        PRM_SET(ets_tcn_config_reg, tc, group, phy->tc[i].group);
        PRM_SET(ets_tcn_config_reg, tc, bw_allocation, phy->tc[i].percent);
        PRM_SET(ets_tcn_config_reg, tc, max_bw_units, phy->tc[i].max.units);
        PRM_SET(ets_tcn_config_reg, tc, max_bw_value, phy->tc[i].max.value);
    }
    PRM_SET(ets_global_config_reg, port, max_bw_units, phy->port_max.units);
    PRM_SET(ets_global_config_reg, port, max_bw_value, phy->port_max.value);
    return SYN_OK;
}

/* False: there is no such unit. */
static bool regs_take_limit(struct tc_limit *limit, uint32_t units, uint32_t value)
{
    *limit = (struct tc_limit){(uint8_t)units, (uint8_t)value};
    return units == TC_NO_LIMIT || units == TC_100_MBPS || units == TC_1_GBPS;
}

/* The fields of a class that its flags name. False: one is out of range. */
static bool regs_take_class(struct tc_setting *tc, const void *in)
{
    if (PRM_GET(ets_tcn_config_reg, in, g)) {
        tc->group = (uint8_t)PRM_GET(ets_tcn_config_reg, in, group);
    }
    if (PRM_GET(ets_tcn_config_reg, in, b)) {
        tc->percent = (uint8_t)PRM_GET(ets_tcn_config_reg, in, bw_allocation);
    }
    return tc->group < TC_GROUPS && tc->percent <= 100 &&
           (!PRM_GET(ets_tcn_config_reg, in, r) ||
            regs_take_limit(&tc->max, PRM_GET(ets_tcn_config_reg, in, max_bw_units),
                            PRM_GET(ets_tcn_config_reg, in, max_bw_value)));
}

static enum syn regs_qetcr_write(struct fw *fw, const void *in, void *out)
{
    struct uplink_phy *phy = &fw_uplink(fw)->phy;
    struct uplink_phy wished = *phy;
    const void *port = PRM_PTR(qetc_reg, in, global_configuration);

    (void)out;
    if (!regs_is_port(fw, PRM_GET(qetc_reg, in, port_number))) {
        return SYN_NO_PORT;
    }
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        if (!regs_take_class(&wished.tc[i], PRM_PTR_AT(qetc_reg, in, tc_configuration, i))) {
            return SYN_REG_VALUE;
        }
    }
    if (PRM_GET(ets_global_config_reg, port, r) &&
        !regs_take_limit(&wished.port_max, PRM_GET(ets_global_config_reg, port, max_bw_units),
                         PRM_GET(ets_global_config_reg, port, max_bw_value))) {
        return SYN_REG_VALUE;
    }
    *phy = wished;
    ets_changed(fw->hca.vport->sw);
    return SYN_OK;
}

const struct fw_reg regs_qos[] = {
    {PRM_REG_ID_QCAM, PRM_SIZE(qcam_reg), false, regs_qcam_query, NULL},
    {PRM_REG_ID_QPTS, PRM_SIZE(qpts_reg), true, regs_qpts_query, regs_qpts_write},
    {PRM_REG_ID_QTCT, PRM_SIZE(qtct_reg), false, regs_qtct_query, regs_qtct_write},
    {PRM_REG_ID_QETCR, PRM_SIZE(qetc_reg), false, regs_qetcr_query, regs_qetcr_write},
    {PRM_REG_ID_QPDPM, PRM_SIZE(qpdpm_reg), true, regs_qpdpm_query, regs_qpdpm_write},
    {0},
};
