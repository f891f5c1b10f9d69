/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the port: administration, speed, MTU, pause.
 *
 * The simulated cable has no speed of its own. Each time the link comes up, it takes the fastest
 * mode that the administrator has left enabled. A write to PTYS while the link is up takes effect
 * the next time (drivers take the port down and up after it: mlx5_toggle_port_link()). Pause
 * frames of the link partner are obeyed as PFCC says (model/port/pause.h). The port sends none: a
 * lossless cable lets the partner wait.
 */
#include <string.h>
#include "fw/regs.h"
#include "model/port/ets.h"
#include "model/port/pause.h"

/* -- PAOS: administrative and operational state ------------------------------------------------ */

static enum syn regs_paos_query(struct fw *fw, const void *in, void *out)
{
    PRM_SET(paos_reg, out, admin_status,
            fw_uplink(fw)->admin_up ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    PRM_SET(paos_reg, out, oper_status,
            uplink_is_up(fw_uplink(fw)) ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    return SYN_OK;
}

static enum syn regs_paos_write(struct fw *fw, const void *in, void *out)
{
    uint32_t admin = PRM_GET(paos_reg, in, admin_status);

    if (PRM_GET(paos_reg, in, ase)) { /* admin state enable: set admin_status */
        if (admin != PRM_PAOS_STATUS_UP && admin != PRM_PAOS_STATUS_DOWN) {
            return SYN_REG_VALUE;
        }
        fw_uplink(fw)->admin_up = admin == PRM_PAOS_STATUS_UP;
        port_update_link(&fw->hca);
    }
    return SYN_OK;
}

/* -- PTYS: protocols and speed ----------------------------------------------------------------- */

#define LEGACY(mode) (1u << PRM_ETH_LINK_MODE_##mode)
#define EXT(mode)    (1u << PRM_EXT_ETH_LINK_MODE_##mode)

/* From fast to slow. A legacy bit stands for one medium, an extended bit for all media of a
 * speed. */
static const struct link_speed {
    uint32_t mbps;
    struct link_modes modes;
} speeds[] = {
    {400000, {0, EXT(400GAUI_4_400GBASE_CR4_KR4)}},
    {400000, {0, EXT(400GAUI_8_400GBASE_CR8)}},
    {200000, {0, EXT(200GAUI_2_200GBASE_CR2_KR2)}},
    {200000, {0, EXT(200GAUI_4_200GBASE_CR4_KR4)}},
    {100000, {0, EXT(100GAUI_1_100GBASE_CR_KR)}},
    {100000, {0, EXT(100GAUI_2_100GBASE_CR2_KR2)}},
    {100000,
     {LEGACY(100GBASE_CR4) | LEGACY(100GBASE_SR4) | LEGACY(100GBASE_KR4) | LEGACY(100GBASE_LR4),
      EXT(CAUI_4_100GBASE_CR4_KR4)}},
    {56000, {LEGACY(56GBASE_R4), 0}},
    {50000, {0, EXT(50GAUI_1_LAUI_1_50GBASE_CR_KR)}},
    {50000,
     {LEGACY(50GBASE_SR2) | LEGACY(50GBASE_CR2) | LEGACY(50GBASE_KR2),
      EXT(50GAUI_2_LAUI_2_50GBASE_CR2_KR2)}},
    {40000,
     {LEGACY(40GBASE_CR4) | LEGACY(40GBASE_KR4) | LEGACY(40GBASE_SR4) | LEGACY(40GBASE_LR4),
      EXT(40GBASE_XLAUI_4_XLPPI_4)}},
    {25000,
     {LEGACY(25GBASE_CR) | LEGACY(25GBASE_KR) | LEGACY(25GBASE_SR), EXT(25GAUI_1_25GBASE_CR_KR)}},
    {20000, {LEGACY(20GBASE_KR2), 0}},
    {10000,
     {LEGACY(10GBASE_CX4) | LEGACY(10GBASE_KX4) | LEGACY(10GBASE_KR) | LEGACY(10GBASE_CR) |
          LEGACY(10GBASE_SR) | LEGACY(10GBASE_ER) | LEGACY(10GBASE_T),
      EXT(10GBASE_XFI_XAUI_1)}},
    {5000, {0, EXT(5GBASE_R)}},
    {1000,
     {LEGACY(1000BASE_CX_SGMII) | LEGACY(1000BASE_KX) | LEGACY(1000BASE_T), EXT(1000BASE_X_SGMII)}},
    {100, {LEGACY(100BASE_TX), EXT(SGMII_100M)}},
};

static bool regs_modes_overlap(struct link_modes a, struct link_modes b)
{
    return (a.legacy & b.legacy) || (a.ext & b.ext);
}

static struct link_modes regs_modes_fastest(struct link_modes of)
{
    for (size_t i = 0; i < G_N_ELEMENTS(speeds); i++) {
        if (regs_modes_overlap(speeds[i].modes, of)) {
            uint32_t legacy = speeds[i].modes.legacy & of.legacy;

            return (struct link_modes){legacy & (0 - legacy), speeds[i].modes.ext & of.ext};
        }
    }
    return (struct link_modes){0, 0};
}

bool fw_profile_link_mode(const char *profile, uint32_t *legacy, uint32_t *ext)
{
    const struct fw_profile *p = fw_profile_find(profile);
    struct link_modes mode = {0, 0};

    if (p) {
        mode = regs_modes_fastest(p->eth_modes);
    }
    *legacy = mode.legacy;
    *ext = mode.ext;
    return p != NULL;
}

/* Sets the rate that congestion control uses as full speed. It applies at once, not from the next
 * time that the link comes up. */
static void regs_set_line_rate(struct uplink *uplink)
{
    size_t i = 0;

    while (i < G_N_ELEMENTS(speeds) - 1 &&
           !regs_modes_overlap(speeds[i].modes, uplink->phy.eth_admin)) {
        i++;
    }
    uplink->line_mbps = speeds[i].mbps;
}

void regs_port_reset(struct fw *fw)
{
    struct uplink *uplink = fw_uplink(fw);

    uplink->phy = (struct uplink_phy){
        .eth_admin = fw->profile->eth_modes,
        .counters_cleared_ns = hca_now(&fw->hca),
    };
    for (unsigned dscp = 0; dscp < DSCPS; dscp++) {
        uplink->phy.dscp_priority[dscp] = (uint8_t)(dscp / PRIORITIES);
    }
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        uplink->phy.priority_tc[i] = (uint8_t)i;
        uplink->phy.tc[i] = (struct tc_setting){.percent = 100};
    }
    for (unsigned i = 0; i < UPLINK_BUFFERS; i++) { /* the first has all there is */
        uplink->phy.buffers[i] =
            (struct uplink_buffer){.lossy = true, .size = i ? 0 : FW_BUFFER_CELLS};
    }
    ets_changed(fw->hca.vport->sw);
    uplink->cong.counters.since = uplink->phy.counters_cleared_ns;
    regs_set_line_rate(uplink);
}

/* All modes of the card that have the speeds of some modes. */
static struct link_modes regs_modes_at_speeds_of(const struct fw *fw, struct link_modes some)
{
    struct link_modes all = {0, 0};

    for (size_t i = 0; i < G_N_ELEMENTS(speeds); i++) {
        if (regs_modes_overlap(speeds[i].modes, some)) {
            all.legacy |= speeds[i].modes.legacy & fw->profile->eth_modes.legacy;
            all.ext |= speeds[i].modes.ext & fw->profile->eth_modes.ext;
        }
    }
    return all;
}

/* The mode in use. It is determined when it is read, and before a setting changes from which it is
 * determined. If the link has gone down since it was determined, it came up again with the modes
 * enabled at that time. */
struct link_modes regs_eth_mode(struct fw *fw)
{
    struct uplink *uplink = fw_uplink(fw);
    struct uplink_phy *phy = &uplink->phy;
    uint64_t downs = uplink->counters.link_downs;

    if (!uplink_is_up(uplink)) {
        phy->has_mode = false;
        phy->mode = (struct link_modes){0, 0};
    } else if (!phy->has_mode || phy->mode_downs != downs) {
        phy->has_mode = true;
        phy->mode = regs_modes_fastest(phy->eth_admin);
        phy->mode_downs = downs;
    }
    return phy->mode;
}

static enum syn regs_ptys_query(struct fw *fw, const void *in, void *out)
{
    const struct link_modes *can = &fw->profile->eth_modes;
    const struct link_modes *admin = &fw_uplink(fw)->phy.eth_admin;
    struct link_modes oper = regs_eth_mode(fw);
    bool up = uplink_is_up(fw_uplink(fw));
    uint32_t mask = PRM_GET(ptys_reg, in, proto_mask);

    PRM_SET(ptys_reg, out, proto_mask, mask);
    if (!(mask & 1u << PRM_PTYS_PROTO_ETH)) {
        return SYN_OK; /* other protocols have no supported modes */
    }
    PRM_SET(ptys_reg, out, an_disable_cap, 1);
    PRM_SET(ptys_reg, out, an_disable_admin, fw_uplink(fw)->phy.an_disable_admin);
    PRM_SET(ptys_reg, out, an_status, up ? PRM_AN_STATUS_LINK_UP : PRM_AN_STATUS_LINK_DOWN);
    PRM_SET(ptys_reg, out, eth_proto_capability, can->legacy);
    PRM_SET(ptys_reg, out, ext_eth_proto_capability, can->ext);
    PRM_SET(ptys_reg, out, eth_proto_admin, admin->legacy);
    PRM_SET(ptys_reg, out, ext_eth_proto_admin, admin->ext);
    PRM_SET(ptys_reg, out, eth_proto_oper, oper.legacy);
    PRM_SET(ptys_reg, out, ext_eth_proto_oper, oper.ext);
    PRM_SET(ptys_reg, out, connector_type, PRM_CONNECTOR_TYPE_DA);
    return SYN_OK;
}

/* A driver sets one kind of bits (mlx5_port_set_eth_ptys()). Extended bits come before legacy bits,
 * which then follow them. */
static enum syn regs_ptys_write(struct fw *fw, const void *in, void *out)
{
    const struct link_modes *can = &fw->profile->eth_modes;
    struct link_modes wish = {PRM_GET(ptys_reg, in, eth_proto_admin),
                              PRM_GET(ptys_reg, in, ext_eth_proto_admin)};
    struct link_modes all = regs_modes_at_speeds_of(fw, wish);

    if (!(PRM_GET(ptys_reg, in, proto_mask) & 1u << PRM_PTYS_PROTO_ETH) ||
        !(wish.legacy | wish.ext) || (wish.legacy & ~can->legacy) || (wish.ext & ~can->ext)) {
        return SYN_REG_VALUE;
    }
    regs_eth_mode(fw); /* a link that is up keeps its mode */
    fw_uplink(fw)->phy.eth_admin = wish.ext ? (struct link_modes){all.legacy, wish.ext}
                                            : (struct link_modes){wish.legacy, all.ext};
    fw_uplink(fw)->phy.an_disable_admin = PRM_GET(ptys_reg, in, an_disable_admin);
    regs_set_line_rate(fw_uplink(fw));
    return SYN_OK;
}

/* -- PMTU -------------------------------------------------------------------------------------- */

static enum syn regs_pmtu_query(struct fw *fw, const void *in, void *out)
{
    PRM_SET(pmtu_reg, out, max_mtu, PORT_MAX_MTU);
    PRM_SET(pmtu_reg, out, admin_mtu, fw_uplink(fw)->mtu);
    PRM_SET(pmtu_reg, out, oper_mtu, fw_uplink(fw)->mtu);
    return SYN_OK;
}

static enum syn regs_pmtu_write(struct fw *fw, const void *in, void *out)
{
    uint32_t mtu = PRM_GET(pmtu_reg, in, admin_mtu);

    if (mtu < FW_MIN_MTU || mtu > PORT_MAX_MTU) {
        return SYN_BAD_MTU;
    }
    fw_uplink(fw)->mtu = (uint16_t)mtu;
    return SYN_OK;
}

/* -- PFCC: global pause and priority flow control ---------------------------------------------- */

static enum syn regs_pfcc_query(struct fw *fw, const void *in, void *out)
{
    const struct uplink_phy *phy = &fw_uplink(fw)->phy;

    PRM_SET(pfcc_reg, out, pptx, phy->pause_tx);
    PRM_SET(pfcc_reg, out, pprx, phy->pause_rx);
    PRM_SET(pfcc_reg, out, pfctx, phy->pfc_tx);
    PRM_SET(pfcc_reg, out, pfcrx, phy->pfc_rx);
    return SYN_OK;
}

static enum syn regs_pfcc_write(struct fw *fw, const void *in, void *out)
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
    pause_settings_changed(fw->hca.vport->sw);
    return SYN_OK;
}

/* -- PCAM: which port registers exist --------------------------------------------------------- */

#define PCAM_FIRST 0x5000

static enum syn regs_pcam_query(struct fw *fw, const void *in, void *out)
{
    struct prm_pcam_regs_5000_to_507f *mask =
        PRM_PTR(pcam_reg, out, port_access_reg_cap_mask_regs_5000_to_507f);
    struct prm_pcam_enhanced_features *features =
        PRM_PTR(pcam_reg, out, feature_cap_mask_enhanced_features);

    if (PRM_GET(pcam_reg, in, feature_group) || PRM_GET(pcam_reg, in, access_reg_group)) {
        return SYN_REG_VALUE;
    }
    fw_reg_mask(PCAM_FIRST, mask);
    PRM_SET(pcam_enhanced_features, features, ptys_connector_type, 1);
    PRM_SET(pcam_enhanced_features, features, ptys_extended_ethernet,
            fw->profile->eth_modes.ext != 0);
    PRM_SET(pcam_enhanced_features, features, rx_icrc_encapsulated_counter, 1);
    PRM_SET(pcam_enhanced_features, features, ppcnt_statistical_group, 1);
    PRM_SET(pcam_enhanced_features, features, ppcnt_discard_group, 1);
    PRM_SET(pcam_enhanced_features, features, per_lane_error_counters, 1);
    return SYN_OK;
}

const struct fw_reg regs_port[] = {
    {PRM_REG_ID_PMTU, PRM_SIZE(pmtu_reg), true, regs_pmtu_query, regs_pmtu_write},
    {PRM_REG_ID_PTYS, PRM_SIZE(ptys_reg), true, regs_ptys_query, regs_ptys_write},
    {PRM_REG_ID_PAOS, PRM_SIZE(paos_reg), true, regs_paos_query, regs_paos_write},
    {PRM_REG_ID_PFCC, PRM_SIZE(pfcc_reg), true, regs_pfcc_query, regs_pfcc_write},
    {PRM_REG_ID_PPCNT, PRM_SIZE(ppcnt_reg), true, reg_ppcnt_query, NULL},
    {PRM_REG_ID_PCAM, PRM_SIZE(pcam_reg), false, regs_pcam_query, NULL},
    {0},
};
