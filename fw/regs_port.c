/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the port: administration, speed, MTU, pause, what is wrong with the link.
 *
 * The simulated cable has no speed of its own: the link takes the fastest mode that the
 * administrator left enabled, each time it comes up; what PTYS is told while it is up is for the
 * next time (drivers take the port down and up behind it: mlx5_toggle_port_link()). Pause settings
 * are kept for the driver to read back; a lossless cable never needs a pause frame, so none is
 * sent.
 */
#include <string.h>
#include "fw/regs.h"

void regs_port_reset(struct fw *fw)
{
    fw_uplink(fw)->phy = (struct uplink_phy){
        .eth_proto_admin = fw->profile->eth_proto_cap,
        .counters_cleared_ns = hca_now(&fw->hca),
    };
}

/* -- PAOS: administrative and operational state ------------------------------------------------ */

static enum syn paos_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    PRM_SET(paos_reg, out, admin_status,
            fw_uplink(fw)->admin_up ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    PRM_SET(paos_reg, out, oper_status,
            uplink_is_up(fw_uplink(fw)) ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    return SYN_OK;
}

static enum syn paos_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint32_t admin = PRM_GET(paos_reg, in, admin_status);

    if (PRM_GET(paos_reg, in, ase)) { /* admin state enable: take admin_status over */
        if (admin != PRM_PAOS_STATUS_UP && admin != PRM_PAOS_STATUS_DOWN) {
            return SYN_REG_VALUE;
        }
        fw_uplink(fw)->admin_up = admin == PRM_PAOS_STATUS_UP;
        port_update_link(&fw->hca);
    }
    return SYN_OK;
}

/* -- PTYS: protocols and speed ----------------------------------------------------------------- */

/* Legacy Ethernet protocol bits from fast to slow. */
static const uint8_t protos_by_speed[] = {
    23, 22, 21, 20,          /* 100 Gb/s */
    8,                       /* 56 */
    31, 30, 18,              /* 50 */
    16, 15, 7,  6,           /* 40 */
    29, 28, 27,              /* 25 */
    5,                       /* 20 */
    26, 14, 13, 12, 4, 3, 2, /* 10 */
    25, 1,  0,               /* 1 */
    24,                      /* 0.1 */
};

static uint32_t fastest(uint32_t protos)
{
    for (size_t i = 0; i < G_N_ELEMENTS(protos_by_speed); i++) {
        uint32_t bit = 1u << protos_by_speed[i];

        if (protos & bit) {
            return bit;
        }
    }
    return 0;
}

/* The mode is worked out when somebody looks, and before somebody changes what it would be worked
 * out from; a link that went down since came up with what was enabled then. */
uint32_t regs_eth_proto_oper(struct fw *fw)
{
    struct uplink *uplink = fw_uplink(fw);
    struct uplink_phy *phy = &uplink->phy;
    uint64_t downs = uplink->counters.link_downs;

    if (!uplink_is_up(uplink)) {
        phy->proto = 0;
    } else if (!phy->proto || phy->proto_downs != downs) {
        phy->proto = fastest(phy->eth_proto_admin);
        phy->proto_downs = downs;
    }
    return phy->proto;
}

static enum syn ptys_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    bool up = uplink_is_up(fw_uplink(fw));
    uint32_t mask = PRM_GET(ptys_reg, in, proto_mask);

    PRM_SET(ptys_reg, out, proto_mask, mask);
    if (!(mask & 1u << PRM_PTYS_PROTO_ETH)) {
        return SYN_OK; /* nothing is supported of any other protocol */
    }
    PRM_SET(ptys_reg, out, an_disable_cap, 1);
    PRM_SET(ptys_reg, out, an_disable_admin, fw_uplink(fw)->phy.an_disable_admin);
    PRM_SET(ptys_reg, out, an_status, up ? PRM_AN_STATUS_LINK_UP : PRM_AN_STATUS_LINK_DOWN);
    PRM_SET(ptys_reg, out, eth_proto_capability, fw->profile->eth_proto_cap);
    PRM_SET(ptys_reg, out, eth_proto_admin, fw_uplink(fw)->phy.eth_proto_admin);
    PRM_SET(ptys_reg, out, eth_proto_oper, regs_eth_proto_oper(fw));
    PRM_SET(ptys_reg, out, connector_type, PRM_CONNECTOR_TYPE_DA);
    return SYN_OK;
}

static enum syn ptys_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint32_t admin = PRM_GET(ptys_reg, in, eth_proto_admin);

    if (!(PRM_GET(ptys_reg, in, proto_mask) & 1u << PRM_PTYS_PROTO_ETH) || admin == 0 ||
        (admin & ~fw->profile->eth_proto_cap) || PRM_GET(ptys_reg, in, ext_eth_proto_admin)) {
        return SYN_REG_VALUE;
    }
    regs_eth_proto_oper(fw); /* a link that is up keeps its mode */
    fw_uplink(fw)->phy.eth_proto_admin = admin;
    fw_uplink(fw)->phy.an_disable_admin = PRM_GET(ptys_reg, in, an_disable_admin);
    return SYN_OK;
}

/* -- PMTU -------------------------------------------------------------------------------------- */

static enum syn pmtu_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    PRM_SET(pmtu_reg, out, max_mtu, PORT_MAX_MTU);
    PRM_SET(pmtu_reg, out, admin_mtu, fw_uplink(fw)->mtu);
    PRM_SET(pmtu_reg, out, oper_mtu, fw_uplink(fw)->mtu);
    return SYN_OK;
}

static enum syn pmtu_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint32_t mtu = PRM_GET(pmtu_reg, in, admin_mtu);

    if (mtu < FW_MIN_MTU || mtu > PORT_MAX_MTU) {
        return SYN_BAD_MTU;
    }
    fw_uplink(fw)->mtu = (uint16_t)mtu;
    return SYN_OK;
}

/* -- PFCC: global pause and priority flow control ---------------------------------------------- */

static enum syn pfcc_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    const struct uplink_phy *phy = &fw_uplink(fw)->phy;

    PRM_SET(pfcc_reg, out, pptx, phy->pause_tx);
    PRM_SET(pfcc_reg, out, pprx, phy->pause_rx);
    PRM_SET(pfcc_reg, out, pfctx, phy->pfc_tx);
    PRM_SET(pfcc_reg, out, pfcrx, phy->pfc_rx);
    return SYN_OK;
}

static enum syn pfcc_write(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    struct uplink_phy *phy = &fw_uplink(fw)->phy;
    uint8_t tx_mask = (uint8_t)PRM_GET(pfcc_reg, in, prio_mask_tx);
    uint8_t rx_mask = (uint8_t)PRM_GET(pfcc_reg, in, prio_mask_rx);
    uint8_t pfc_tx = (uint8_t)PRM_GET(pfcc_reg, in, pfctx);
    uint8_t pfc_rx = (uint8_t)PRM_GET(pfcc_reg, in, pfcrx);

    phy->pfc_tx = (uint8_t)((phy->pfc_tx & ~tx_mask) | (pfc_tx & tx_mask));
    phy->pfc_rx = (uint8_t)((phy->pfc_rx & ~rx_mask) | (pfc_rx & rx_mask));
    if (!PRM_GET(pfcc_reg, in, pptx_mask_n)) {
        phy->pause_tx = PRM_GET(pfcc_reg, in, pptx);
    }
    if (!PRM_GET(pfcc_reg, in, pprx_mask_n)) {
        phy->pause_rx = PRM_GET(pfcc_reg, in, pprx);
    }
    return SYN_OK;
}

/* -- PDDR: why the link is down ---------------------------------------------------------------- */

#define PDDR_PAGE_TROUBLESHOOTING 1

/* Monitor opcodes (the driver's mlx5e_link_ext_state_opcode_map). */
enum pddr_opcode {
    PDDR_NO_ISSUE = 0,
    PDDR_NO_PARTNER = 2,
    PDDR_NO_CABLE = 1024,
};

static enum syn pddr_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint8_t *page = PRM_PTR(pddr_reg, out, page_data);
    uint32_t opcode = PDDR_NO_ISSUE;

    if (PRM_GET(pddr_reg, in, page_select) != PDDR_PAGE_TROUBLESHOOTING) {
        return SYN_REG_VALUE;
    }
    if (!fw_uplink(fw)->wire) {
        opcode = PDDR_NO_CABLE;
    } else if (fw_uplink(fw)->admin_up && !uplink_is_up(fw_uplink(fw))) {
        opcode = PDDR_NO_PARTNER;
    }
    PRM_SET(pddr_reg, out, page_select, PDDR_PAGE_TROUBLESHOOTING);
    PRM_SET(pddr_troubleshooting_page, page, status_opcode, opcode);
    return SYN_OK;
}

/* -- PCAM: which port registers there are ------------------------------------------------------ */

#define PCAM_FIRST 0x5000

static enum syn pcam_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint8_t *mask = PRM_PTR(pcam_reg, out, port_access_reg_cap_mask_regs_5000_to_507f);
    uint8_t *features = PRM_PTR(pcam_reg, out, feature_cap_mask_enhanced_features);

    if (PRM_GET(pcam_reg, in, feature_group) || PRM_GET(pcam_reg, in, access_reg_group)) {
        return SYN_REG_VALUE;
    }
    fw_reg_mask(PCAM_FIRST, mask);
    PRM_SET(pcam_enhanced_features, features, ptys_connector_type, 1);
    PRM_SET(pcam_enhanced_features, features, rx_icrc_encapsulated_counter, 1);
    return SYN_OK;
}

const struct fw_reg regs_port[] = {
    {PRM_REG_ID_PMTU, PRM_SIZE(pmtu_reg), true, pmtu_query, pmtu_write},
    {PRM_REG_ID_PTYS, PRM_SIZE(ptys_reg), true, ptys_query, ptys_write},
    {PRM_REG_ID_PAOS, PRM_SIZE(paos_reg), true, paos_query, paos_write},
    {PRM_REG_ID_PFCC, PRM_SIZE(pfcc_reg), true, pfcc_query, pfcc_write},
    {PRM_REG_ID_PPCNT, PRM_SIZE(ppcnt_reg), true, reg_ppcnt_query, NULL},
    {PRM_REG_ID_PDDR, PRM_SIZE(pddr_reg), true, pddr_query, NULL},
    {PRM_REG_ID_PCAM, PRM_SIZE(pcam_reg), false, pcam_query, NULL},
    {0},
};
