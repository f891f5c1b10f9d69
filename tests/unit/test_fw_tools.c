/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests registers that Mellanox's tools read: which card it is (mstflint q), an update of its
 * firmware (mstflint burn, devlink flash), its stored configuration (mstconfig q), the state of its
 * link (mstlink).
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* MCAM, which mstflint reads first. */
static bool has_register(unsigned id)
{
    struct prm_mcam_reg reg[1] = {0};
    const uint8_t *mask = (void *)PRM_PTR(mcam_reg, reg, mng_access_reg_cap_mask_access_regs);

    PRM_SET(mcam_reg, reg, access_reg_group, (id - 0x9000) / 128);
    ck_assert_uint_eq(READ(MCAM, reg), SYN_OK);
    return mask[15 - id % 128 / 8] >> id % 8 & 1;
}

/* mstflint fw_comps_mgr.cpp getFwSupport(): without these it looks for a flash. */
START_TEST(mstflint_finds_its_commands_and_needs_no_flash)
{
    static const unsigned needed[] = {PRM_REG_ID_MGIR, PRM_REG_ID_MQIS, PRM_REG_ID_MCQS,
                                      PRM_REG_ID_MCQI, PRM_REG_ID_MCC,  PRM_REG_ID_MCDA};

    for (size_t i = 0; i < G_N_ELEMENTS(needed); i++) {
        ck_assert_msg(has_register(needed[i]), "0x%x", needed[i]);
    }
    ck_assert(!has_register(0x9021));
    ck_assert(!has_register(0x9010)); /* MFPA: a flash */
}
END_TEST

START_TEST(the_card_says_what_it_is)
{
    struct prm_mgir_reg reg[1] = {0};
    const struct prm_mgir_hardware_info *chip = PRM_PTR(mgir_reg, reg, hw_info);
    const struct prm_mgir_fw_info *image = PRM_PTR(mgir_reg, reg, fw_info);
    uint64_t mac;

    d.host.now += 7500000000ull;
    ck_assert_uint_eq(READ(MGIR, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mgir_hardware_info, chip, device_id), 0x1017);
    ck_assert_uint_eq(PRM_GET(mgir_hardware_info, chip, hw_dev_id), fw_hw_id(d.fw));
    ck_assert_uint_eq(PRM_GET(mgir_hardware_info, chip, num_ports), 1);
    ck_assert_uint_eq(PRM_GET(mgir_hardware_info, chip, uptime), 7);
    mac = (uint64_t)PRM_GET(mgir_hardware_info, chip, manufacturing_base_mac_47_32) << 32 |
          PRM_GET(mgir_hardware_info, chip, manufacturing_base_mac_31_0);
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_uint_eq(mac >> (40 - 8 * i) & 0xff, d.fw->hca.vport->permanent_mac[i]);
    }
    ck_assert_uint_eq(PRM_GET(mgir_fw_info, image, extended_major), 16);
    ck_assert_uint_eq(PRM_GET(mgir_fw_info, image, extended_minor), 35);
    ck_assert_uint_eq(PRM_GET(mgir_fw_info, image, extended_sub_minor), 4030);
    ck_assert_mem_eq(PRM_PTR(mgir_fw_info, image, psid), "MT_0000000012\0\0\0", 16);
    ck_assert_uint_ne(WRITE(MGIR, reg), SYN_OK);
}
END_TEST

static enum syn read_text(unsigned type, unsigned at, unsigned len, struct prm_mqis_reg *reg)
{
    memset(reg, 0, PRM_SIZE(mqis_reg));
    PRM_SET(mqis_reg, reg, info_type, type);
    PRM_SET(mqis_reg, reg, read_offset, at);
    PRM_SET(mqis_reg, reg, read_length, len);
    return fwd_reg(&d, PRM_REG_ID_MQIS, false, reg, PRM_SIZE(mqis_reg));
}

static void check_text(unsigned type, const char *text)
{
    struct prm_mqis_reg reg[1];
    char got[256] = {0};
    size_t at = 0;

    do {
        ck_assert_uint_eq(read_text(type, (unsigned)at, 8, reg), SYN_OK);
        ck_assert_uint_eq(PRM_GET(mqis_reg, reg, info_length), strlen(text));
        memcpy(got + at, PRM_PTR(mqis_reg, reg, info_string), 8);
        at += PRM_GET(mqis_reg, reg, read_length);
    } while (at < strlen(text));
    ck_assert_str_eq(got, text);
}

START_TEST(texts_come_in_pieces)
{
    struct prm_mqis_reg reg[1];

    check_text(PRM_MQIS_INFO_TYPE_MODEL_NAME, "MCX516A-CCAT");
    check_text(PRM_MQIS_INFO_TYPE_MODEL_DESCRIPTION, "CX516A - ConnectX-5 QSFP28");
    check_text(PRM_MQIS_INFO_TYPE_IMAGE_VSD, "");
    check_text(PRM_MQIS_INFO_TYPE_DEVICE_VSD, "");
    /* a piece is what is asked for, and no more than there is */
    ck_assert_uint_eq(read_text(PRM_MQIS_INFO_TYPE_MODEL_NAME, 3, 2, reg), SYN_OK);
    ck_assert_mem_eq(PRM_PTR(mqis_reg, reg, info_string), "51\0\0\0\0\0\0", 8);
    ck_assert_uint_eq(read_text(PRM_MQIS_INFO_TYPE_MODEL_NAME, 0, 60000, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mqis_reg, reg, read_length), 8);
    ck_assert_uint_eq(read_text(PRM_MQIS_INFO_TYPE_MODEL_NAME, 12, 8, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mqis_reg, reg, read_length), 0);
    ck_assert_uint_eq(read_text(PRM_MQIS_INFO_TYPE_MODEL_NAME, 13, 8, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(read_text(0, 0, 8, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(read_text(5, 0, 8, reg), SYN_REG_VALUE);
}
END_TEST

static enum syn update(unsigned instruction, unsigned handle, struct prm_mcc_reg *reg)
{
    memset(reg, 0, PRM_SIZE(mcc_reg));
    PRM_SET(mcc_reg, reg, instruction, instruction);
    PRM_SET(mcc_reg, reg, update_handle, handle);
    return fwd_reg(&d, PRM_REG_ID_MCC, instruction != 0, reg, PRM_SIZE(mcc_reg));
}

static unsigned update_state(unsigned *handle, unsigned *error)
{
    struct prm_mcc_reg reg[1];

    ck_assert_uint_eq(update(0, 0, reg), SYN_OK);
    *handle = PRM_GET(mcc_reg, reg, update_handle);
    *error = PRM_GET(mcc_reg, reg, error_code);
    return PRM_GET(mcc_reg, reg, control_state);
}

/* Driver mlx5_fsm_lock() and mlxfw_fsm_component_update(): the handle is read while the state is
 * IDLE, and then locked. A tool that offers an image reads why it is not accepted. */
START_TEST(no_firmware_image_is_accepted)
{
    struct prm_mcc_reg reg[1];
    unsigned handle, other, error;
    uint8_t bytes[PRM_SIZE(mcda_reg) + 128] = {0};
    void *data = bytes;

    ck_assert_uint_eq(update_state(&handle, &error), PRM_MCC_STATE_IDLE);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_UPDATE_COMPONENT, handle, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle + 1, reg),
                      SYN_REG_VALUE);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcc_reg, reg, control_state), PRM_MCC_STATE_LOCKED);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle, reg), SYN_REG_VALUE);

    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_UPDATE_COMPONENT, handle, reg), SYN_OK);
    ck_assert_uint_eq(update_state(&other, &error), PRM_MCC_STATE_LOCKED);
    ck_assert_uint_eq(other, handle);
    ck_assert_uint_eq(error, PRM_MCC_ERROR_REJECTED_NOT_APPLICABLE);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_CANCEL, handle, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mcc_reg, reg, error_code), PRM_MCC_ERROR_OK);
    ck_assert_uint_eq(update(4, handle, reg), SYN_REG_VALUE); /* VERIFY_COMPONENT */

    PRM_SET(mcda_reg, data, update_handle, handle);
    PRM_SET(mcda_reg, data, size, 128);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_MCDA, true, data, sizeof(bytes)), SYN_REG_VALUE);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_MCDA, false, data, sizeof(bytes)), SYN_REG_VALUE);

    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_RELEASE_UPDATE_HANDLE, handle, reg), SYN_OK);
    ck_assert_uint_eq(update_state(&other, &error), PRM_MCC_STATE_IDLE);
    ck_assert_uint_ne(other, handle); /* the old handle is invalid */
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle, reg), SYN_REG_VALUE);
}
END_TEST

/* The tool that began an update may have ended. */
START_TEST(an_update_ends_by_force_and_by_a_reset)
{
    struct prm_mcc_reg reg[1];
    unsigned handle, error;

    update_state(&handle, &error);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle, reg), SYN_OK);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_FORCE_HANDLE_RELEASE, 0, reg), SYN_OK);
    ck_assert_uint_eq(update_state(&handle, &error), PRM_MCC_STATE_IDLE);
    ck_assert_uint_eq(update(PRM_MCC_INSTRUCTION_LOCK_UPDATE_HANDLE, handle, reg), SYN_OK);
    fw_reset(d.fw);
    memset(reg, 0, sizeof(reg));
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_MCC, false, reg, sizeof(reg)), FW_REG_OK);
    ck_assert_uint_eq(PRM_GET(mcc_reg, reg, control_state), PRM_MCC_STATE_IDLE);
}
END_TEST

static bool item_can_be_read(unsigned class, unsigned port, unsigned param)
{
    struct prm_mnvqc_reg reg[1] = {0};
    void *type = PRM_PTR(mnvqc_reg, reg, type);

    PRM_SET(nv_type, type, param_class, class);
    PRM_SET(nv_type, type, port, port);
    PRM_SET(nv_type, type, param_idx, param);
    ck_assert_uint_eq(READ(NVQC, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nv_type, type, param_idx), param);
    ck_assert_uint_eq(PRM_GET(mnvqc_reg, reg, support_wr), 0);
    return PRM_GET(mnvqc_reg, reg, support_rd);
}

static enum syn read_item(unsigned class, unsigned port, unsigned param, size_t room,
                          struct prm_mnvda_reg *reg)
{
    void *type = PRM_PTR(mnvda_reg, reg, type);

    memset(reg, 0, PRM_SIZE(mnvda_reg));
    PRM_SET(mnvda_reg, reg, length, (uint32_t)room);
    PRM_SET(nv_type, type, param_class, class);
    PRM_SET(nv_type, type, port, port);
    PRM_SET(nv_type, type, param_idx, param);
    return fwd_reg(&d, PRM_REG_ID_NVDA, false, reg, PRM_OFFSET(mnvda_reg, data) + room);
}

#define GLOBAL PRM_NV_CLASS_GLOBAL
#define PORT   PRM_NV_CLASS_PORT

/* mstconfig q: items that NVQC declares readable can be read by NVDA. */
START_TEST(the_configuration_is_what_the_device_is)
{
    struct prm_mnvda_reg reg[1];
    const void *data = PRM_PTR(mnvda_reg, reg, data);
    uint64_t mac;

    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_BASE_MAC_GUID, 64, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mnvda_reg, reg, length), PRM_SIZE(nv_base_mac_guid));
    mac = PRM_GET(nv_base_mac_guid, data, base_mac);
    ck_assert_uint_eq(mac >> 40 & 0xff, d.fw->hca.vport->permanent_mac[0]);
    ck_assert_uint_eq(mac & 0xff, d.fw->hca.vport->permanent_mac[5]);
    ck_assert_uint_eq(PRM_GET(nv_base_mac_guid, data, base_guid), d.fw->hca.vport->node_guid);

    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_BASE_MAC_GUID_CAP, 64, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nv_base_mac_guid_cap, data, num_of_allocated_macs), 1);

    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_GLOBAL_PCI_CAP, 256, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_cap, data, sriov_support), 0);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_cap, data, max_log_pf_uar_bar_size), 5);
    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_GLOBAL_PCI_CONF, 256, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_conf, data, sriov_en), 0);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_conf, data, num_pfs), 1);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_conf, data, num_pf_msix),
                      d.fw->hca.limits.num_msix - 1);
    ck_assert_uint_eq(PRM_GET(nv_global_pci_conf, data, log_pf_uar_bar_size), 5);

    ck_assert_uint_eq(read_item(PORT, 1, PRM_NV_PARAM_VPI_LINK_TYPE, 256, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(nv_vpi_link_type, data, default_link_type), PRM_NV_LINK_TYPE_ETH);
}
END_TEST

START_TEST(missing_items_cannot_be_read_and_no_item_can_be_written)
{
    struct prm_mnvda_reg reg[1];

    ck_assert(item_can_be_read(GLOBAL, 0, PRM_NV_PARAM_GLOBAL_PCI_CONF));
    ck_assert(item_can_be_read(PORT, 1, PRM_NV_PARAM_VPI_LINK_TYPE));
    /* another item, another port, an item of a port that has none, another class */
    ck_assert(!item_can_be_read(GLOBAL, 0, 130));
    ck_assert(!item_can_be_read(PORT, 2, PRM_NV_PARAM_VPI_LINK_TYPE));
    ck_assert(!item_can_be_read(PORT, 0, PRM_NV_PARAM_VPI_LINK_TYPE));
    ck_assert(!item_can_be_read(GLOBAL, 1, PRM_NV_PARAM_GLOBAL_PCI_CONF));
    ck_assert(!item_can_be_read(3, 0, PRM_NV_PARAM_GLOBAL_PCI_CONF));
    ck_assert_uint_eq(read_item(GLOBAL, 0, 130, 64, reg), SYN_NO_NV_ITEM);
    ck_assert_uint_eq(read_item(PORT, 2, PRM_NV_PARAM_VPI_LINK_TYPE, 64, reg), SYN_NO_NV_ITEM);
    /* mstconfig goes on only if it is told so of an expansion ROM's items */
    ck_assert_int_eq(fw_access_reg(d.fw, PRM_REG_ID_NVDA, false, reg, sizeof(reg)),
                     FW_REG_NO_RESOURCE);
    /* no room for it */
    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_BASE_MAC_GUID, 12, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(read_item(GLOBAL, 0, PRM_NV_PARAM_BASE_MAC_GUID, 64, reg), SYN_OK);
    ck_assert_uint_eq(WRITE(NVDA, reg), SYN_REG_ACCESS);
}
END_TEST

/* NVDA reads the card's own values, the present ones and the next ones. */
START_TEST(all_values_of_an_item_can_be_read)
{
    struct prm_mnvgc_reg reg[1] = {0};

    ck_assert_uint_eq(READ(NVGC, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(mnvgc_reg, reg, nvda_read_current_settings), 1);
    ck_assert_uint_eq(PRM_GET(mnvgc_reg, reg, nvda_read_factory_settings), 1);
    ck_assert_uint_eq(PRM_GET(mnvgc_reg, reg, priv_nv_other_host), 0);
}
END_TEST

static const struct prm_pddr_operation_info_page *link_page(struct prm_pddr_reg *reg)
{
    memset(reg, 0, PRM_SIZE(pddr_reg));
    PRM_SET(pddr_reg, reg, local_port, 1);
    PRM_SET(pddr_reg, reg, page_select, PRM_PDDR_PAGE_OPERATIONAL_INFO);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PDDR, false, reg, PRM_SIZE(pddr_reg)), SYN_OK);
    return (const void *)PRM_PTR(pddr_reg, reg, page_data);
}

static void check_link(unsigned state, unsigned negotiation, uint32_t active, unsigned fec)
{
    struct prm_pddr_reg reg[1];
    const struct prm_pddr_operation_info_page *page = link_page(reg);

    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, page, proto_active), 4); /* Ethernet */
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, page, phy_mngr_fsm_state), state);
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, page, eth_an_fsm_state), negotiation);
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, page, link_active), active);
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, page, fec_mode_active), fec);
}

static void set_port(bool up)
{
    struct prm_paos_reg reg[1] = {0};

    PRM_SET(paos_reg, reg, local_port, 1);
    PRM_SET(paos_reg, reg, ase, 1);
    PRM_SET(paos_reg, reg, admin_status, up ? PRM_PAOS_STATUS_UP : PRM_PAOS_STATUS_DOWN);
    ck_assert_uint_eq(WRITE(PAOS, reg), SYN_OK);
}

static unsigned phy_status(void)
{
    struct prm_ppaos_reg reg[1] = {0};

    PRM_SET(ppaos_reg, reg, local_port, 1);
    ck_assert_uint_eq(READ(PPAOS, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ppaos_reg, reg, phy_test_mode_status), 0);
    return PRM_GET(ppaos_reg, reg, phy_status_admin) << 4 | PRM_GET(ppaos_reg, reg, phy_status);
}

START_TEST(a_tool_sees_how_the_link_is_doing)
{
    struct prm_pddr_reg reg[1];
    const uint32_t cr4 = 1u << PRM_ETH_LINK_MODE_100GBASE_CR4;

    set_port(true);
    check_link(PRM_PHY_MNGR_STATE_POLLING, PRM_ETH_AN_STATE_ABILITY_DETECT, 0, 0);
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, link_page(reg), cable_proto_cap), 0);
    ck_assert_uint_eq(phy_status(), PRM_PAOS_STATUS_UP << 4 | PRM_PAOS_STATUS_DOWN);
    fwd_plug(&d);
    check_link(PRM_PHY_MNGR_STATE_ACTIVE, PRM_ETH_AN_STATE_GOOD, cr4, PRM_FEC_RS_528_514);
    ck_assert_uint_eq(PRM_GET(pddr_operation_info_page, link_page(reg), neg_mode_active),
                      PRM_PDDR_NEG_MODE_CL73);
    ck_assert(PRM_GET(pddr_operation_info_page, link_page(reg), cable_proto_cap) & cr4);
    ck_assert_uint_eq(phy_status(), PRM_PAOS_STATUS_UP << 4 | PRM_PAOS_STATUS_UP);
    set_port(false);
    check_link(PRM_PHY_MNGR_STATE_DISABLED, PRM_ETH_AN_STATE_ENABLE, 0, 0);
    ck_assert_uint_eq(phy_status(), PRM_PAOS_STATUS_DOWN << 4 | PRM_PAOS_STATUS_DOWN);
}
END_TEST

static unsigned module_state(void)
{
    struct prm_pmaos_reg reg[1] = {0};

    ck_assert_uint_eq(READ(PMAOS, reg), SYN_OK);
    return PRM_GET(pmaos_reg, reg, oper_status);
}

/* mstlink -m, and all that it shows beside the link itself. */
START_TEST(a_tool_sees_what_cable_is_plugged_in)
{
    struct prm_pddr_reg reg[1] = {0};
    const void *page = PRM_PTR(pddr_reg, reg, page_data);
    struct prm_pmaos_reg other[1] = {0};

    PRM_SET(pddr_reg, reg, local_port, 1);
    PRM_SET(pddr_reg, reg, page_select, PRM_PDDR_PAGE_MODULE_INFO);
    ck_assert_uint_eq(READ(PDDR, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pddr_module_info, page, cable_type), PRM_PDDR_CABLE_TYPE_UNPLUGGED);
    ck_assert_uint_eq(module_state(), PRM_PMAOS_OPER_STATUS_UNPLUGGED);
    fwd_plug(&d);
    ck_assert_uint_eq(READ(PDDR, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pddr_module_info, page, cable_type),
                      PRM_PDDR_CABLE_TYPE_PASSIVE_COPPER);
    ck_assert_uint_eq(PRM_GET(pddr_module_info, page, cable_length), 1);
    ck_assert_mem_eq(PRM_PTR(pddr_module_info, page, vendor_pn), "SIMULATED-CABLE ", 16);
    ck_assert_uint_eq(module_state(), PRM_PMAOS_OPER_STATUS_PLUGGED_ENABLED);
    PRM_SET(pmaos_reg, other, module, 1);
    ck_assert_uint_eq(READ(PMAOS, other), SYN_REG_VALUE);
}
END_TEST

/* mstlink -c. */
START_TEST(no_bit_was_ever_wrong)
{
    struct prm_ppcnt_reg reg[1] = {0};
    const void *set = PRM_PTR(ppcnt_reg, reg, counter_set);

    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, PRM_PPCNT_GRP_PHYSICAL_LAYER_STATISTICAL);
    d.host.now += 3000000;
    ck_assert_uint_eq(READ(PPCNT, reg), SYN_OK);
    ck_assert_uint_ge(PRM_GET(phys_layer_statistical_cntrs, set, time_since_last_clear_low), 3);
    ck_assert_uint_eq(PRM_GET(phys_layer_statistical_cntrs, set, phy_symbol_errors_low), 0);
    ck_assert_uint_eq(PRM_GET(phys_layer_statistical_cntrs, set, raw_ber_magnitude), 255);
}
END_TEST

/* mstlink shows no product while SLTP is refused; no lane's settings are valid. */
START_TEST(lanes_have_no_settings)
{
    struct prm_sltp_reg reg[1] = {0};

    PRM_SET(sltp_reg, reg, local_port, 1);
    PRM_SET(sltp_reg, reg, lane, 3);
    ck_assert_uint_eq(READ(SLTP, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(sltp_reg, reg, lane), 3);
    ck_assert_uint_eq(PRM_GET(sltp_reg, reg, status), 0);
    PRM_SET(sltp_reg, reg, lane, 4);
    ck_assert_uint_eq(READ(SLTP, reg), SYN_REG_VALUE);
    ck_assert_uint_eq(WRITE(SLTP, reg), SYN_REG_ACCESS);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw tools");
    TCase *tc = tcase_create("tools");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, mstflint_finds_its_commands_and_needs_no_flash);
    tcase_add_test(tc, the_card_says_what_it_is);
    tcase_add_test(tc, texts_come_in_pieces);
    tcase_add_test(tc, no_firmware_image_is_accepted);
    tcase_add_test(tc, an_update_ends_by_force_and_by_a_reset);
    tcase_add_test(tc, the_configuration_is_what_the_device_is);
    tcase_add_test(tc, missing_items_cannot_be_read_and_no_item_can_be_written);
    tcase_add_test(tc, all_values_of_an_item_can_be_read);
    tcase_add_test(tc, a_tool_sees_how_the_link_is_doing);
    tcase_add_test(tc, a_tool_sees_what_cable_is_plugged_in);
    tcase_add_test(tc, no_bit_was_ever_wrong);
    tcase_add_test(tc, lanes_have_no_settings);
    suite_add_tcase(s, tc);
    return s;
}
