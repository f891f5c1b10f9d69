/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers that report the state of the link: state, negotiation, why it is down; the PHY below
 * it, and its transmitters.
 *
 * The simulated cable has no signals. A link is either up or down, the PHY has no test modes, and
 * the lanes have no transmitters with valid settings.
 */
#include <string.h>
#include "fw/regs.h"

/* -- PDDR: diagnostics ------------------------------------------------------------------------- */

static uint32_t regs_only_bit(uint32_t mask)
{
    return mask ? (uint32_t)__builtin_ctz(mask) : 0;
}

/* The modes to report: the extended modes if the card has them (PTYS). */
static uint32_t regs_modes_shown(const struct fw *fw, struct link_modes modes)
{
    return fw->profile->eth_modes.ext ? modes.ext : modes.legacy;
}

static enum syn regs_pddr_operation(struct fw *fw, void *page)
{
    const struct uplink *uplink = fw_uplink(fw);
    bool up = uplink_is_up(uplink), negotiates = !uplink->phy.an_disable_admin;
    uint32_t enabled = regs_modes_shown(fw, uplink->phy.eth_admin);

    PRM_SET(pddr_operation_info_page, page, proto_active, 1u << PRM_PTYS_PROTO_ETH);
    PRM_SET(pddr_operation_info_page, page, neg_mode_active,
            up && negotiates ? PRM_PDDR_NEG_MODE_CL73 : PRM_PDDR_NEG_MODE_FORCED);
    PRM_SET(pddr_operation_info_page, page, phy_mngr_fsm_state,
            up                 ? PRM_PHY_MNGR_STATE_ACTIVE
            : uplink->admin_up ? PRM_PHY_MNGR_STATE_POLLING
                               : PRM_PHY_MNGR_STATE_DISABLED);
    PRM_SET(pddr_operation_info_page, page, eth_an_fsm_state,
            !negotiates || !uplink->admin_up ? PRM_ETH_AN_STATE_ENABLE
            : up                             ? PRM_ETH_AN_STATE_GOOD
                                             : PRM_ETH_AN_STATE_ABILITY_DETECT);
    PRM_SET(pddr_operation_info_page, page, phy_manager_link_enabled, enabled);
    PRM_SET(pddr_operation_info_page, page, core_to_phy_link_enabled, enabled);
    if (uplink->wire) { /* the cable supports every mode that the port supports */
        PRM_SET(pddr_operation_info_page, page, cable_proto_cap,
                regs_modes_shown(fw, fw->profile->eth_modes));
    }
    PRM_SET(pddr_operation_info_page, page, link_active, regs_modes_shown(fw, regs_eth_mode(fw)));
    PRM_SET(pddr_operation_info_page, page, fec_mode_active, regs_only_bit(regs_fec_active(fw)));
    return SYN_OK;
}

static enum syn regs_pddr_troubleshooting(struct fw *fw, void *page)
{
    static const struct trouble {
        uint32_t opcode;
        const char *message;
    } none = {PRM_PDDR_STATUS_OPCODE_NO_ISSUE, "No issue was observed"},
      closed = {PRM_PDDR_STATUS_OPCODE_CLOSED, "The port is closed by command"},
      no_partner = {PRM_PDDR_STATUS_OPCODE_NO_PARTNER, "Negotiation failure: no partner detected"},
      no_cable = {PRM_PDDR_STATUS_OPCODE_NO_CABLE, "Cable is unplugged"};
    const struct uplink *uplink = fw_uplink(fw);
    const struct trouble *trouble = &none;

    if (!uplink->wire) {
        trouble = &no_cable;
    } else if (!uplink->admin_up) {
        trouble = &closed;
    } else if (!uplink_is_up(uplink)) {
        trouble = &no_partner;
    }
    PRM_SET(pddr_troubleshooting_page, page, status_opcode, trouble->opcode);
    memcpy(PRM_PTR(pddr_troubleshooting_page, page, status_message), trouble->message,
           strlen(trouble->message));
    return SYN_OK;
}

static enum syn regs_pddr_query(struct fw *fw, const void *in, void *out)
{
    void *page = PRM_PTR(pddr_reg, out, page_data);
    uint32_t select = PRM_GET(pddr_reg, in, page_select);

    PRM_SET(pddr_reg, out, page_select, select);
    switch (select) {
    case PRM_PDDR_PAGE_OPERATIONAL_INFO:
        return regs_pddr_operation(fw, page);
    case PRM_PDDR_PAGE_TROUBLESHOOTING:
        return regs_pddr_troubleshooting(fw, page);
    case PRM_PDDR_PAGE_MODULE_INFO:
        regs_module_info(fw, page);
        return SYN_OK;
    default:
        return SYN_REG_VALUE;
    }
}

/* -- PPAOS, SLTP: the PHY ---------------------------------------------------------------------- */

static enum syn regs_ppaos_query(struct fw *fw, const void *in, void *out)
{
    const struct uplink *uplink = fw_uplink(fw);

    PRM_SET(ppaos_reg, out, phy_status_admin,
            uplink->admin_up ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    PRM_SET(ppaos_reg, out, phy_status,
            uplink_is_up(uplink) ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    return SYN_OK;
}

/* No settings are valid (status), so they have no format either (version). */
static enum syn regs_sltp_query(struct fw *fw, const void *in, void *out)
{
    uint32_t lane = PRM_GET(sltp_reg, in, lane);

    if (lane >= FW_LANES) {
        return SYN_REG_VALUE;
    }
    PRM_SET(sltp_reg, out, lane, lane);
    return SYN_OK;
}

const struct fw_reg regs_link[] = {
    {PRM_REG_ID_PDDR, PRM_SIZE(pddr_reg), true, regs_pddr_query, NULL},
    {PRM_REG_ID_PPAOS, PRM_SIZE(ppaos_reg), true, regs_ppaos_query, NULL},
    {PRM_REG_ID_SLTP, PRM_SIZE(sltp_reg), true, regs_sltp_query, NULL},
    {0},
};
