/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the module at the port: its lanes, state and memory, and the FEC agreed over it.
 *
 * The module is a passive copper cable with QSFP28 ends: one module with four lanes. It has the
 * memory of such cables (SFF-8636), the lower page and upper page 0 and no other pages ("flat"),
 * and no sensors. The simulated wire flips no bits. So a FEC is agreed on, kept and reported, but
 * never has anything to correct.
 */
#include <string.h>
#include "fw/regs.h"
#include "model/port/eswitch.h"

/* -- PMLP: lanes ------------------------------------------------------------------------------- */

static enum syn regs_pmlp_query(struct fw *fw, const void *in, void *out)
{
    static const size_t lanes[] = {
        PRM_OFFSET(pmlp_reg, lane0_module_mapping), PRM_OFFSET(pmlp_reg, lane1_module_mapping),
        PRM_OFFSET(pmlp_reg, lane2_module_mapping), PRM_OFFSET(pmlp_reg, lane3_module_mapping)};

    G_STATIC_ASSERT(G_N_ELEMENTS(lanes) == FW_LANES);
    PRM_SET(pmlp_reg, out, width, FW_LANES);
    for (unsigned i = 0; i < FW_LANES; i++) {
        PRM_SET(lane_2_module_mapping, out + lanes[i], module, 0);
        PRM_SET(lane_2_module_mapping, out + lanes[i], tx_lane, i);
        PRM_SET(lane_2_module_mapping, out + lanes[i], rx_lane, i);
    }
    return SYN_OK;
}

/* -- MCIA: memory ------------------------------------------------------------------------------ */

#define EEPROM_BYTES 256 /* lower page, upper page 0 */
#define I2C_ADDRESS  0x50
#define MCIA_BYTES   48 /* in one access, without MCAM's mcia_32dwords */

/* The bytes of the SFF-8636 memory that are not 0 and not text. */
static const struct {
    uint8_t at, value;
} eeprom_bytes[] = {
    {0, 0x11},   /* identifier: QSFP28 */
    {1, 0x08},   /* revision 2.8 of the memory map */
    {2, 0x06},   /* flat memory; no interrupt */
    {128, 0x11}, /* identifier, repeated */
    {130, 0x23}, /* connector: cable that cannot be separated */
    {131, 0x88}, /* 40GBASE-CR4, and see byte 192 */
    {140, 0xff}, /* signaling rate: see byte 222 */
    {146, 1},    /* length of the copper, m */
    {147, 0xa0}, /* copper, unequalized */
    {190, 70},   /* highest case temperature, degrees Celsius */
    {192, 0x0b}, /* 100GBASE-CR4, 25GBASE-CR CA-L, 50GBASE-CR2 */
    {222, 103},  /* signaling rate, 250 MBd */
};

/* Text, padded with spaces. */
static void regs_eeprom_text(uint8_t *eeprom, size_t at, size_t len, const char *text)
{
    memset(eeprom + at, ' ', len);
    memcpy(eeprom + at, text, MIN(len, strlen(text)));
}

/* CC_BASE and CC_EXT: the sum of the bytes from first to check - 1. */
static void regs_eeprom_check(uint8_t *eeprom, size_t first, size_t check)
{
    uint8_t sum = 0;

    for (size_t i = first; i < check; i++) {
        sum = (uint8_t)(sum + eeprom[i]);
    }
    eeprom[check] = sum;
}

static void regs_eeprom_fill(const struct fw *fw, uint8_t eeprom[EEPROM_BYTES])
{
    const uint8_t *mac = fw->hca.vport->sw->vports[0]->permanent_mac;
    char serial[17];

    memset(eeprom, 0, EEPROM_BYTES);
    for (size_t i = 0; i < G_N_ELEMENTS(eeprom_bytes); i++) {
        eeprom[eeprom_bytes[i].at] = eeprom_bytes[i].value;
    }
    g_snprintf(serial, sizeof(serial), "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3],
               mac[4], mac[5]);
    regs_eeprom_text(eeprom, 148, 16, "hcasim");
    regs_eeprom_text(eeprom, 168, 16, "SIMULATED-CABLE");
    regs_eeprom_text(eeprom, 184, 2, "A1");
    regs_eeprom_text(eeprom, 196, 16, serial);
    regs_eeprom_text(eeprom, 212, 8, "260101"); /* date of manufacture: YYMMDD and lot */
    regs_eeprom_check(eeprom, 128, 191);
    regs_eeprom_check(eeprom, 192, 223);
}

static enum syn regs_mcia_query(struct fw *fw, const void *in, void *out)
{
    uint32_t first = PRM_GET(mcia_reg, in, device_address);
    uint32_t size = PRM_GET(mcia_reg, in, size);
    uint8_t eeprom[EEPROM_BYTES];

    if (PRM_GET(mcia_reg, in, module) || size == 0 || size > MCIA_BYTES ||
        first + size > EEPROM_BYTES) {
        return SYN_REG_VALUE;
    }
    memcpy(out, in, PRM_OFFSET(mcia_reg, dwords));
    if (!fw_uplink(fw)->wire) {
        PRM_SET(mcia_reg, out, status, PRM_MCIA_STATUS_NOT_CONNECTED);
        return SYN_OK;
    }
    if (PRM_GET(mcia_reg, in, i2c_device_address) != I2C_ADDRESS) {
        PRM_SET(mcia_reg, out, status, PRM_MCIA_STATUS_NO_EEPROM);
        return SYN_OK;
    }
    /* A flat memory has no page select byte, so every upper page reads as page 0. */
    regs_eeprom_fill(fw, eeprom);
    memcpy(PRM_PTR(mcia_reg, out, dwords), eeprom + first, size);
    PRM_SET(mcia_reg, out, status, PRM_MCIA_STATUS_GOOD);
    return SYN_OK;
}

/* -- PMAOS; PDDR's page about the module: state, and the contents of its memory --------------- */

static enum syn regs_pmaos_query(struct fw *fw, const void *in, void *out)
{
    if (PRM_GET(pmaos_reg, in, module)) {
        return SYN_REG_VALUE;
    }
    PRM_SET(pmaos_reg, out, admin_status, PRM_PMAOS_ADMIN_STATUS_ENABLED);
    PRM_SET(pmaos_reg, out, oper_status,
            fw_uplink(fw)->wire ? PRM_PMAOS_OPER_STATUS_PLUGGED_ENABLED
                                : PRM_PMAOS_OPER_STATUS_UNPLUGGED);
    return SYN_OK;
}

void regs_module_info(struct fw *fw, void *page)
{
    uint8_t eeprom[EEPROM_BYTES];

    if (!fw_uplink(fw)->wire) {
        PRM_SET(pddr_module_info, page, cable_type, PRM_PDDR_CABLE_TYPE_UNPLUGGED);
        return;
    }
    regs_eeprom_fill(fw, eeprom);
    PRM_SET(pddr_module_info, page, cable_type, PRM_PDDR_CABLE_TYPE_PASSIVE_COPPER);
    PRM_SET(pddr_module_info, page, cable_identifier, PRM_PDDR_CABLE_IDENTIFIER_QSFP28);
    PRM_SET(pddr_module_info, page, memory_map_rev, eeprom[1]);
    PRM_SET(pddr_module_info, page, connector_type, eeprom[130]);
    PRM_SET(pddr_module_info, page, ethernet_compliance_code, eeprom[131]);
    PRM_SET(pddr_module_info, page, cable_length, eeprom[146]);
    PRM_SET(pddr_module_info, page, cable_technology, eeprom[147]);
    PRM_SET(pddr_module_info, page, ext_ethernet_compliance_code, eeprom[192]);
    PRM_SET(pddr_module_info, page, nbr250, eeprom[222]);
    memcpy(PRM_PTR(pddr_module_info, page, vendor_name), eeprom + 148, 16);
    memcpy(PRM_PTR(pddr_module_info, page, vendor_pn), eeprom + 168, 16);
    memcpy(PRM_PTR(pddr_module_info, page, vendor_rev), eeprom + 184, 2);
    memcpy(PRM_PTR(pddr_module_info, page, vendor_sn), eeprom + 196, 16);
    memcpy(PRM_PTR(pddr_module_info, page, date_code), eeprom + 212, 8);
}

/* -- PPLM: forward error correction ------------------------------------------------------------ */

#define FEC_NONE       (1u << PRM_FEC_NONE)
#define FEC_FIRECODE   (1u << PRM_FEC_FIRECODE)
#define FEC_RS_528_514 (1u << PRM_FEC_RS_528_514)

#define MODE(mode)     (1u << PRM_ETH_LINK_MODE_##mode)

/* For each speed: the legacy modes of PTYS with that speed, the register's fields, the supported
 * FECs, and the FEC that both ends of the cable agree on if none is requested. */
static const struct {
    uint32_t protos;
    unsigned cap, admin;
    uint8_t can, automatic;
} fec_speeds[] = {
    {MODE(10GBASE_CX4) | MODE(10GBASE_KX4) | MODE(10GBASE_KR) | MODE(10GBASE_CR) |
         MODE(10GBASE_SR) | MODE(10GBASE_ER) | MODE(10GBASE_T) | MODE(40GBASE_CR4) |
         MODE(40GBASE_KR4) | MODE(40GBASE_SR4) | MODE(40GBASE_LR4),
     PRM_pplm_reg_fec_override_cap_10g_40g_FIELD, PRM_pplm_reg_fec_override_admin_10g_40g_FIELD,
     FEC_NONE | FEC_FIRECODE, FEC_NONE},
    {MODE(25GBASE_CR) | MODE(25GBASE_KR) | MODE(25GBASE_SR),
     PRM_pplm_reg_fec_override_cap_25g_FIELD, PRM_pplm_reg_fec_override_admin_25g_FIELD,
     FEC_NONE | FEC_FIRECODE | FEC_RS_528_514, FEC_RS_528_514},
    {MODE(50GBASE_SR2) | MODE(50GBASE_CR2) | MODE(50GBASE_KR2),
     PRM_pplm_reg_fec_override_cap_50g_FIELD, PRM_pplm_reg_fec_override_admin_50g_FIELD,
     FEC_NONE | FEC_FIRECODE | FEC_RS_528_514, FEC_RS_528_514},
    {MODE(100GBASE_CR4) | MODE(100GBASE_SR4) | MODE(100GBASE_KR4) | MODE(100GBASE_LR4),
     PRM_pplm_reg_fec_override_cap_100g_FIELD, PRM_pplm_reg_fec_override_admin_100g_FIELD,
     FEC_NONE | FEC_RS_528_514, FEC_RS_528_514},
};

G_STATIC_ASSERT(G_N_ELEMENTS(fec_speeds) == UPLINK_FEC_SPEEDS);

/* The strongest of the requested FECs. */
static uint32_t regs_fec_in_use(size_t speed, uint8_t wished)
{
    if (!wished) {
        return fec_speeds[speed].automatic;
    }
    return wished & FEC_RS_528_514 ? FEC_RS_528_514
           : wished & FEC_FIRECODE ? FEC_FIRECODE
                                   : FEC_NONE;
}

uint32_t regs_fec_active(struct fw *fw)
{
    uint32_t proto = regs_eth_mode(fw).legacy;

    for (size_t i = 0; i < G_N_ELEMENTS(fec_speeds); i++) {
        if (fec_speeds[i].protos & proto) {
            return regs_fec_in_use(i, fw_uplink(fw)->phy.fec_admin[i]);
        }
    }
    return 0;
}

static enum syn regs_pplm_query(struct fw *fw, const void *in, void *out)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fec_speeds); i++) {
        prm_set(out, fec_speeds[i].cap, fec_speeds[i].can, "fec_override_cap");
        prm_set(out, fec_speeds[i].admin, fw_uplink(fw)->phy.fec_admin[i], "fec_override_admin");
    }
    PRM_SET(pplm_reg, out, fec_mode_active, regs_fec_active(fw));
    return SYN_OK;
}

static enum syn regs_pplm_write(struct fw *fw, const void *in, void *out)
{
    uint8_t wished[G_N_ELEMENTS(fec_speeds)];

    if (PRM_GET(pplm_reg, in, rs_fec_correction_bypass_admin) ||
        PRM_GET(pplm_reg, in, fec_override_admin_56g)) {
        return SYN_REG_VALUE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(fec_speeds); i++) {
        wished[i] = (uint8_t)prm_get(in, fec_speeds[i].admin);
        if (wished[i] & ~fec_speeds[i].can) {
            return SYN_REG_VALUE;
        }
    }
    memcpy(fw_uplink(fw)->phy.fec_admin, wished, sizeof(wished));
    return SYN_OK;
}

const struct fw_reg regs_module[] = {
    {PRM_REG_ID_PMLP, PRM_SIZE(pmlp_reg), true, regs_pmlp_query, NULL},
    {PRM_REG_ID_PMAOS, PRM_SIZE(pmaos_reg), false, regs_pmaos_query, NULL},
    {PRM_REG_ID_PPLM, PRM_SIZE(pplm_reg), true, regs_pplm_query, regs_pplm_write},
    {PRM_REG_ID_MCIA, PRM_SIZE(mcia_reg), false, regs_mcia_query, NULL},
    {0},
};
