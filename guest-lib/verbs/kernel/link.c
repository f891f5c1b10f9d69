/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of link modes (link.h), and the query of the device's mode. */
#include "guest-lib/verbs/kernel/link.h"
#include "guest-lib/verbs/kernel/kernel.h"

/* ibv_port_attr.active_width and active_speed: bits (IBTA 14.2.5.6, PortInfo). */
enum {
    WIDTH_1X = 1,
    WIDTH_4X = 2,
    WIDTH_8X = 4,
    WIDTH_2X = 16
};
enum {
    SDR = 1,
    DDR = 2,
    QDR = 4,
    FDR = 16,
    EDR = 32,
    HDR = 64,
    NDR = 128
};

#define LEGACY(mode) (1u << PRM_ETH_LINK_MODE_##mode)
#define EXT(mode)    (1u << PRM_EXT_ETH_LINK_MODE_##mode)

/* The table of translate_eth_legacy_proto_oper(), which lacks 20GBASE-KR2, and of
 * translate_eth_ext_proto_oper(). */
static const struct {
    uint32_t legacy, ext; /* modes */
    struct hv_link link;
} modes[] = {
    {LEGACY(100BASE_TX), EXT(SGMII_100M), {WIDTH_1X, SDR, 100}},
    {LEGACY(1000BASE_CX_SGMII) | LEGACY(1000BASE_KX) | LEGACY(1000BASE_T),
     EXT(1000BASE_X_SGMII),
     {WIDTH_1X, SDR, 1000}},
    {0, EXT(5GBASE_R), {WIDTH_1X, DDR, 5000}},
    {LEGACY(10GBASE_T) | LEGACY(10GBASE_CX4) | LEGACY(10GBASE_KX4) | LEGACY(10GBASE_KR) |
         LEGACY(10GBASE_CR) | LEGACY(10GBASE_SR) | LEGACY(10GBASE_ER),
     EXT(10GBASE_XFI_XAUI_1),
     {WIDTH_1X, QDR, 10000}},
    {LEGACY(25GBASE_CR) | LEGACY(25GBASE_KR) | LEGACY(25GBASE_SR),
     EXT(25GAUI_1_25GBASE_CR_KR),
     {WIDTH_1X, EDR, 25000}},
    {LEGACY(40GBASE_CR4) | LEGACY(40GBASE_KR4) | LEGACY(40GBASE_SR4) | LEGACY(40GBASE_LR4),
     EXT(40GBASE_XLAUI_4_XLPPI_4),
     {WIDTH_4X, QDR, 40000}},
    {LEGACY(50GBASE_CR2) | LEGACY(50GBASE_KR2) | LEGACY(50GBASE_SR2),
     EXT(50GAUI_1_LAUI_1_50GBASE_CR_KR),
     {WIDTH_1X, HDR, 50000}},
    {0, EXT(50GAUI_2_LAUI_2_50GBASE_CR2_KR2), {WIDTH_2X, EDR, 50000}},
    {LEGACY(56GBASE_R4), 0, {WIDTH_4X, FDR, 56000}},
    {LEGACY(100GBASE_CR4) | LEGACY(100GBASE_SR4) | LEGACY(100GBASE_KR4) | LEGACY(100GBASE_LR4),
     EXT(CAUI_4_100GBASE_CR4_KR4),
     {WIDTH_4X, EDR, 100000}},
    {0, EXT(100GAUI_2_100GBASE_CR2_KR2), {WIDTH_2X, HDR, 100000}},
    {0, EXT(100GAUI_1_100GBASE_CR_KR), {WIDTH_1X, NDR, 100000}},
    {0, EXT(200GAUI_4_200GBASE_CR4_KR4), {WIDTH_4X, HDR, 200000}},
    {0, EXT(200GAUI_2_200GBASE_CR2_KR2), {WIDTH_2X, NDR, 200000}},
    {0, EXT(400GAUI_8_400GBASE_CR8), {WIDTH_8X, HDR, 400000}},
    {0, EXT(400GAUI_4_400GBASE_CR4_KR4), {WIDTH_4X, NDR, 400000}},
};

struct hv_link hv_link_of_mode(uint32_t legacy, uint32_t ext)
{
    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        if (ext ? (modes[i].ext & ext) : (modes[i].legacy & legacy)) {
            return modes[i].link;
        }
    }
    return (struct hv_link){WIDTH_4X, QDR, 0};
}

struct hv_link hv_link_now(struct hv_hca *hca)
{
    struct {
        struct prm_access_register_in in;
        struct prm_ptys_reg ptys;
    } query = {0};
    struct {
        struct prm_access_register_out out;
        struct prm_ptys_reg ptys;
    } is = {0};

    PRM_SET(access_register_in, &query.in, opcode, PRM_CMD_OP_ACCESS_REG);
    PRM_SET(access_register_in, &query.in, op_mod, PRM_ACCESS_REGISTER_OP_READ);
    PRM_SET(access_register_in, &query.in, register_id, PRM_REG_ID_PTYS);
    PRM_SET(ptys_reg, &query.ptys, local_port, 1);
    PRM_SET(ptys_reg, &query.ptys, proto_mask, 1u << PRM_PTYS_PROTO_ETH);
    if (hv_cmd(hca, &query, sizeof(query), &is, sizeof(is)) != 0) {
        return hv_link_of_mode(0, 0);
    }
    return hv_link_of_mode(PRM_GET(ptys_reg, &is.ptys, eth_proto_oper),
                           PRM_GET(ptys_reg, &is.ptys, ext_eth_proto_oper));
}
