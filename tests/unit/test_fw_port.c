/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the function's ports as a driver meets them: virtual port, registers of port and device. */
#include <check.h>
#include <stdlib.h>
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

/* -- virtual port ------------------------------------------------------------------------------ */

static enum syn query_vport(uint32_t list_type, void *out, size_t out_len)
{
    struct prm_query_nic_vport_context_in in[1] = {0};

    PRM_SET(query_nic_vport_context_in, in, opcode, PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT);
    PRM_SET(query_nic_vport_context_in, in, allowed_list_type, list_type);
    return fwd_cmd(&d, in, sizeof(in), out, out_len);
}

START_TEST(mac_list_round_trip)
{
    uint8_t in_bytes[PRM_SIZE(modify_nic_vport_context_in) + 3 * 8] = {0}, out[16];
    void *in = in_bytes;
    uint8_t seen_bytes[PRM_SIZE(query_nic_vport_context_out) + 8 * 8];
    void *seen = seen_bytes;
    struct prm_nic_vport_context *ctx = PRM_PTR(modify_nic_vport_context_in, in, nic_vport_context);
    struct prm_modify_nic_vport_field_select *select =
        PRM_PTR(modify_nic_vport_context_in, in, field_select);

    PRM_SET(modify_nic_vport_context_in, in, opcode, PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT);
    PRM_SET(modify_nic_vport_field_select, select, addresses_list, 1);
    PRM_SET(nic_vport_context, ctx, allowed_list_type, 1);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, 3);
    for (unsigned i = 0; i < 3; i++) {
        PRM_SET_AT(nic_vport_context, ctx, current_uc_mac_address, i, 0x01005e000000ull + i);
    }
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    ck_assert_uint_eq(query_vport(1, seen, sizeof(seen_bytes)), 0);
    ctx = PRM_PTR(query_nic_vport_context_out, seen, nic_vport_context);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, ctx, allowed_list_size), 3);
    ck_assert_uint_eq(PRM_GET_AT(nic_vport_context, ctx, current_uc_mac_address, 2),
                      0x01005e000002ull);
    /* the list is longer than what was sent */
    ctx = PRM_PTR(modify_nic_vport_context_in, in, nic_vport_context);
    PRM_SET(nic_vport_context, ctx, allowed_list_size, 4);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), SYN_IN_LEN);
}
END_TEST

START_TEST(vport_refuses_what_it_does_not_manage)
{
    struct prm_modify_nic_vport_context_in in[1] = {0};
    uint8_t out[16];
    struct prm_modify_nic_vport_field_select *select =
        PRM_PTR(modify_nic_vport_context_in, in, field_select);

    PRM_SET(modify_nic_vport_context_in, in, opcode, PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT);
    PRM_SET(modify_nic_vport_field_select, select, node_guid, 1);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 16), SYN_VPORT_FIELD);
    PRM_SET(modify_nic_vport_field_select, select, node_guid, 0);
    PRM_SET(modify_nic_vport_context_in, in, other_vport, 1);
    PRM_SET(modify_nic_vport_context_in, in, vport_number, 1);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 16), SYN_NO_VPORT);
    /* the function manages only a group with its own vport */
    PRM_SET(modify_nic_vport_context_in, in, vport_number, 0);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 16), SYN_OK);
}
END_TEST

START_TEST(guid_comes_from_mac)
{
    struct prm_query_nic_vport_context_out out[1];
    const struct prm_nic_vport_context *ctx =
        PRM_PTR(query_nic_vport_context_out, out, nic_vport_context);

    ck_assert_uint_eq(query_vport(0, out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(nic_vport_context, ctx, node_guid), 0x0200000300000001ull);
}
END_TEST

/* When an entry is set or emptied, paths that used the table are looked up again at their next use
 * (qp_path_check(); unit-path tests the result). Nobody iterates over all QPs. */
START_TEST(paths_learn_of_a_change_of_the_gid_table)
{
    struct prm_set_roce_address_in in[1] = {0};
    uint8_t out[16];
    struct prm_roce_addr_layout *addr = PRM_PTR(set_roce_address_in, in, roce_address);
    uint32_t before = d.fw->hca.vport->gid_version;
    uint64_t looks = d.fw->hca.qpns.steps;

    PRM_SET(set_roce_address_in, in, opcode, PRM_CMD_OP_SET_ROCE_ADDRESS);
    PRM_SET(set_roce_address_in, in, roce_address_index, 7);
    PRM_SET(roce_addr_layout, addr, roce_version, 2);
    addr->bytes[15] = 9;
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 16), 0);
    ck_assert_uint_ne(d.fw->hca.vport->gid_version, before);
    before = d.fw->hca.vport->gid_version;
    addr->bytes[15] = 0;
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, 16), 0);
    ck_assert_uint_ne(d.fw->hca.vport->gid_version, before);
    ck_assert_uint_eq(d.fw->hca.qpns.steps, looks);
}
END_TEST

START_TEST(gid_table_is_bounded)
{
    uint8_t in_bytes[PRM_SIZE(set_roce_address_in)] = {0};
    void *in = in_bytes;
    struct prm_query_roce_address_out out[1];
    struct prm_roce_addr_layout *addr = PRM_PTR(set_roce_address_in, in, roce_address);

    PRM_SET(set_roce_address_in, in, opcode, PRM_CMD_OP_SET_ROCE_ADDRESS);
    PRM_SET(set_roce_address_in, in, roce_address_index, 7);
    PRM_SET(roce_addr_layout, addr, roce_version, 2);
    PRM_SET(roce_addr_layout, addr, source_mac_31_0, 0x11223344);
    addr->bytes[15] = 9;
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), 0);
    PRM_SET(set_roce_address_in, in, roce_address_index, 0xffff);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in_bytes), out, 16), SYN_BAD_GID_INDEX);
    memset(in, 0, sizeof(in_bytes));
    PRM_SET(query_roce_address_in, in, opcode, PRM_CMD_OP_QUERY_ROCE_ADDRESS);
    PRM_SET(query_roce_address_in, in, roce_address_index, 7);
    ck_assert_uint_eq(fwd_cmd(&d, in, 16, out, sizeof(out)), 0);
    addr = PRM_PTR(query_roce_address_out, out, roce_address);
    ck_assert_uint_eq(addr->bytes[15], 9);
    ck_assert_uint_eq(PRM_GET(roce_addr_layout, addr, source_mac_31_0), 0x11223344);
}
END_TEST

/* A card whose port is not bonded reports that; it offers no LAG, and makes none. */
START_TEST(the_port_is_not_bonded)
{
    uint8_t in[16] = {0}, caps_in[PRM_SIZE(query_hca_cap_in)] = {0};
    static struct prm_query_hca_cap_out caps[1];
    const struct prm_cmd_hca_cap *cap = (const void *)PRM_PTR(query_hca_cap_out, caps, capability);
    struct prm_query_lag_out out[1];

    memset(out, 0xff, sizeof(out));
    PRM_SET(cmd_in, (void *)in, opcode, PRM_CMD_OP_QUERY_LAG);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(lagc, PRM_PTR(query_lag_out, out, ctx), lag_state), 0);
    ck_assert_uint_eq(PRM_GET(lagc, PRM_PTR(query_lag_out, out, ctx), port_select_mode), 0);

    PRM_SET(cmd_in, (void *)in, opcode, PRM_CMD_OP_CREATE_LAG);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_BAD_OPCODE);
    PRM_SET(cmd_in, (void *)caps_in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    ck_assert_uint_eq(fwd_cmd(&d, caps_in, sizeof(caps_in), caps, sizeof(caps)), 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, cap, lag_master), 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, cap, num_lag_ports), 0);
}
END_TEST

/* -- registers --------------------------------------------------------------------------------- */

START_TEST(unknown_register_is_bad_param)
{
    uint8_t reg[16] = {0};

    ck_assert_uint_eq(fwd_reg(&d, 0x9999, false, reg, sizeof(reg)), SYN_NO_REG);
}
END_TEST

START_TEST(a_register_has_one_dword_at_least)
{
    struct prm_paos_reg reg[1] = {0};

    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PAOS, false, reg, 3), SYN_IN_LEN);
    PRM_SET(paos_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PAOS, false, reg, 4), SYN_OK);
}
END_TEST

START_TEST(port_goes_down_and_up)
{
    struct prm_paos_reg reg[1] = {0};

    PRM_SET(paos_reg, reg, local_port, 1);
    PRM_SET(paos_reg, reg, admin_status, 2);
    PRM_SET(paos_reg, reg, ase, 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5006, true, reg, sizeof(reg)), 0);
    memset(reg, 0, sizeof(reg));
    PRM_SET(paos_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5006, false, reg, sizeof(reg)), 0);
    ck_assert_uint_eq(PRM_GET(paos_reg, reg, admin_status), 2);
    PRM_SET(paos_reg, reg, local_port, 2);
    ck_assert_uint_eq(fwd_reg(&d, 0x5006, false, reg, sizeof(reg)), SYN_NO_PORT);
}
END_TEST

START_TEST(mtu_is_bounded)
{
    struct prm_pmtu_reg reg[1] = {0};
    uint32_t max;

    PRM_SET(pmtu_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5003, false, reg, sizeof(reg)), 0);
    max = PRM_GET(pmtu_reg, reg, max_mtu);
    ck_assert_uint_ge(max, 9022); /* 9000 bytes of MTU */
    PRM_SET(pmtu_reg, reg, admin_mtu, max);
    ck_assert_uint_eq(fwd_reg(&d, 0x5003, true, reg, sizeof(reg)), 0);
    PRM_SET(pmtu_reg, reg, admin_mtu, max + 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5003, true, reg, sizeof(reg)), SYN_BAD_MTU);
}
END_TEST

/* Driver mlx5_query_mcia(): 48 bytes at a time, from module 0 at address 0x50 of its bus. */
static uint32_t read_module(uint8_t first, uint8_t size, uint8_t *bytes)
{
    struct prm_mcia_reg reg[1] = {0};

    PRM_SET(mcia_reg, reg, i2c_device_address, 0x50);
    PRM_SET(mcia_reg, reg, device_address, first);
    PRM_SET(mcia_reg, reg, size, size);
    ck_assert_uint_eq(fwd_reg(&d, 0x9014, false, reg, sizeof(reg)), 0);
    memcpy(bytes, PRM_PTR(mcia_reg, reg, dwords), size);
    return PRM_GET(mcia_reg, reg, status);
}

/* SFF-8636: a passive QSFP28 cable, its two checksums right. Without one, status 3: nothing there.
 */
START_TEST(cable_has_a_memory)
{
    uint8_t low[2], upper[48], rest[48], sum = 0;

    ck_assert_uint_eq(read_module(0, 2, low), 3);
    fwd_plug(&d);
    ck_assert_uint_eq(read_module(0, 2, low), 0);
    ck_assert_uint_eq(low[0], 0x11);
    ck_assert_uint_eq(read_module(128, 48, upper), 0);
    ck_assert_mem_eq(upper + 148 - 128, "hcasim          ", 16);
    ck_assert_uint_eq(upper[147 - 128] >> 4, 0xa); /* copper */
    ck_assert_uint_eq(read_module(176, 48, rest), 0);
    for (unsigned i = 128; i < 191; i++) {
        sum = (uint8_t)(sum + (i < 176 ? upper[i - 128] : rest[i - 176]));
    }
    ck_assert_uint_eq(rest[191 - 176], sum);
    sum = 0;
    for (unsigned i = 192; i < 223; i++) {
        sum = (uint8_t)(sum + rest[i - 176]);
    }
    ck_assert_uint_eq(rest[223 - 176], sum);
}
END_TEST

START_TEST(module_memory_is_bounded)
{
    const struct {
        unsigned module, first, size;
    } wrong[] = {{1, 0, 1}, {0, 0, 0}, {0, 0, 49}, {0, 220, 37}, {0, 65535, 1}};

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        struct prm_mcia_reg reg[1] = {0};

        PRM_SET(mcia_reg, reg, i2c_device_address, 0x50);
        PRM_SET(mcia_reg, reg, module, wrong[i].module);
        PRM_SET(mcia_reg, reg, device_address, wrong[i].first);
        PRM_SET(mcia_reg, reg, size, wrong[i].size);
        ck_assert_uint_eq(fwd_reg(&d, 0x9014, false, reg, sizeof(reg)), SYN_REG_VALUE);
    }
}
END_TEST

/* Driver mlx5e_set_fec_mode(): reads PPLM, changes what is wished, writes it; 2 is Reed-Solomon. */
START_TEST(error_correction_is_what_was_wished)
{
    struct prm_pplm_reg reg[1] = {0};

    fwd_plug(&d);
    PRM_SET(pplm_reg, reg, local_port, 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5023, false, reg, sizeof(reg)), 0);
    ck_assert_uint_eq(PRM_GET(pplm_reg, reg, fec_mode_active), 1u << 2);
    ck_assert_uint_eq(PRM_GET(pplm_reg, reg, fec_override_cap_100g), 1u << 2 | 1u << 0);
    PRM_SET(pplm_reg, reg, fec_override_admin_100g, 1u << 0);
    ck_assert_uint_eq(fwd_reg(&d, 0x5023, true, reg, sizeof(reg)), 0);
    ck_assert_uint_eq(fwd_reg(&d, 0x5023, false, reg, sizeof(reg)), 0);
    ck_assert_uint_eq(PRM_GET(pplm_reg, reg, fec_override_admin_100g), 1u << 0);
    ck_assert_uint_eq(PRM_GET(pplm_reg, reg, fec_mode_active), 1u << 0);
    PRM_SET(pplm_reg, reg, fec_override_admin_100g, 1u << 1); /* FireCode is not for 100 Gb/s */
    ck_assert_uint_eq(fwd_reg(&d, 0x5023, true, reg, sizeof(reg)), SYN_REG_VALUE);
}
END_TEST

/* PCAM names exactly the registers 0x5000 to 0x507f that answer. */
START_TEST(pcam_lists_exactly_the_registers_that_exist)
{
    uint8_t pcam[PRM_SIZE(pcam_reg)] = {0};

    ck_assert_uint_eq(fwd_reg(&d, 0x507f, false, pcam, sizeof(pcam)), 0);
    for (unsigned i = 0; i < 128; i++) {
        uint8_t reg_bytes[256] = {0};
        void *reg = reg_bytes;
        bool named = pcam[8 + 15 - i / 8] >> i % 8 & 1;
        bool known;

        PRM_SET(paos_reg, reg, local_port, 1);
        PRM_SET(pddr_reg, reg, page_select, 1);
        if (0x5000 + i == PRM_REG_ID_PCAM || 0x5000 + i == PRM_REG_ID_PMAOS) { /* not a port's */
            memset(reg, 0, sizeof(reg_bytes));
        }
        known = fwd_reg(&d, (uint16_t)(0x5000 + i), false, reg, sizeof(reg_bytes)) == 0;
        ck_assert_msg(named == known, "register 0x%x", 0x5000 + i);
    }
}
END_TEST

/* Driver mlx5_fw_version_query(): the boot image is found, and its version is the running one. */
START_TEST(the_firmware_version_is_reported)
{
    struct prm_mcam_reg mcam[1] = {0};
    struct prm_mcqs_reg mcqs[1] = {0};
    uint8_t mcqi_bytes[PRM_SIZE(mcqi_reg) + PRM_SIZE(mcqi_version)] = {0};
    void *mcqi = mcqi_bytes;
    const struct prm_mcam_access_reg *regs =
        PRM_PTR(mcam_reg, mcam, mng_access_reg_cap_mask_access_regs);

    ck_assert_uint_eq(fwd_reg(&d, 0x907f, false, mcam, sizeof(mcam)), 0);
    ck_assert_uint_eq(PRM_GET(mcam_access_reg, regs, mcqs), 1);
    ck_assert_uint_eq(PRM_GET(mcam_access_reg, regs, mcqi), 1);
    ck_assert_uint_eq(PRM_GET(mcam_access_reg, regs, mcc), 1);
    ck_assert_uint_eq(PRM_GET(mcam_access_reg, regs, mfrl), 0);
    ck_assert_uint_eq(fwd_reg(&d, 0x9060, false, mcqs, sizeof(mcqs)), 0);
    ck_assert_uint_eq(PRM_GET(mcqs_reg, mcqs, identifier), 1);
    PRM_SET(mcqi_reg, mcqi, info_type, 1);
    PRM_SET(mcqi_reg, mcqi, data_size, PRM_SIZE(mcqi_version));
    ck_assert_uint_eq(fwd_reg(&d, 0x9061, false, mcqi, sizeof(mcqi_bytes)), 0);
    ck_assert_uint_eq(PRM_GET(mcqi_version, mcqi + PRM_SIZE(mcqi_reg), version),
                      fw_mmio_read(d.fw, 0x230, 4));
}
END_TEST

/* Driver mlx5e_stats_grp_*: the groups that are read without asking for a capability. */
START_TEST(counter_groups_answer)
{
    static const uint8_t groups[] = {0x0, 0x1, 0x2, 0x10, 0x12, 0x20};
    struct prm_ppcnt_reg reg[1] = {0};

    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, groups[_i]);
    ck_assert_uint_eq(fwd_reg(&d, 0x5008, false, reg, sizeof(reg)), 0);
}
END_TEST

static struct vport_counters *counters(void)
{
    return &d.fw->hca.vport->counters;
}

/* Driver pport_2863_stats_desc: rx_discards_phy is RFC 2863's ifInDiscards. */
START_TEST(copies_for_receivers_too_many_are_discards)
{
    struct prm_ppcnt_reg reg[1] = {0};
    const struct prm_eth_2863_cntrs_grp_data_layout *set = PRM_PTR(ppcnt_reg, reg, counter_set);

    counters()->rx_discards = 1ull << 32 | 7;
    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, PRM_PPCNT_GRP_RFC_2863);
    ck_assert_uint_eq(fwd_reg(&d, 0x5008, false, reg, sizeof(reg)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eth_2863_cntrs_grp_data_layout, set, if_in_discards_high), 1);
    ck_assert_uint_eq(PRM_GET(eth_2863_cntrs_grp_data_layout, set, if_in_discards_low), 7);
}
END_TEST

/* Driver pma_cnt_assign(): the errors in /sys/class/infiniband/.../ports/1/counters. IBTA 16.1.3.5:
 * a counter that reaches the largest value of its field stays there. */
START_TEST(infiniband_counters_stop_at_their_largest)
{
    struct prm_ppcnt_reg reg[1] = {0};
    const struct prm_ib_port_cntrs_grp_data_layout *set = PRM_PTR(ppcnt_reg, reg, counter_set);

    d.fw->hca.vport->uplink->counters.link_downs = 3;
    counters()->rx_bad_icrc = 4;
    counters()->rx_oversize = 5;
    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, PRM_PPCNT_GRP_INFINIBAND_PORT);
    ck_assert_uint_eq(fwd_reg(&d, 0x5008, false, reg, sizeof(reg)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, set, link_downed_counter), 3);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, set, port_rcv_errors), 9);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, set, symbol_error_counter), 0);
    d.fw->hca.vport->uplink->counters.link_downs = 256;
    counters()->rx_bad_icrc = 65536;
    ck_assert_uint_eq(fwd_reg(&d, 0x5008, false, reg, sizeof(reg)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, set, link_downed_counter), 255);
    ck_assert_uint_eq(PRM_GET(ib_port_cntrs_grp_data_layout, set, port_rcv_errors), 65535);
}
END_TEST

#define VPORT_PACKETS(name)                                                                        \
    PRM_GET(traffic_counter, PRM_PTR(query_vport_counter_out, out, name), packets)

/* Driver pma_cnt_ext_assign(): unicast and multicast packets of RoCE have their own counters,
 * separate from Ethernet's. */
START_TEST(a_vport_counts_each_frame_once)
{
    struct prm_query_vport_counter_in in[1] = {0};
    struct prm_query_vport_counter_out out[1];

    counters()->rx.frames[FRAME_UNICAST] = 10;
    counters()->rx_roce.frames[FRAME_UNICAST] = 4;
    counters()->rx.frames[FRAME_MULTICAST] = 20;
    counters()->rx_roce.frames[FRAME_MULTICAST] = 7;
    counters()->tx.frames[FRAME_MULTICAST] = 5;
    counters()->tx_roce.frames[FRAME_MULTICAST] = 5;
    PRM_SET(query_vport_counter_in, in, opcode, PRM_CMD_OP_QUERY_VPORT_COUNTER);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    ck_assert_uint_eq(VPORT_PACKETS(received_ib_unicast), 4);
    ck_assert_uint_eq(VPORT_PACKETS(received_eth_unicast), 6);
    ck_assert_uint_eq(VPORT_PACKETS(received_ib_multicast), 7);
    ck_assert_uint_eq(VPORT_PACKETS(received_eth_multicast), 13);
    ck_assert_uint_eq(VPORT_PACKETS(transmitted_ib_multicast), 5);
    ck_assert_uint_eq(VPORT_PACKETS(transmitted_eth_multicast), 0);
}
END_TEST

START_TEST(unknown_counter_group_is_refused)
{
    struct prm_ppcnt_reg reg[1] = {0};

    PRM_SET(ppcnt_reg, reg, local_port, 1);
    PRM_SET(ppcnt_reg, reg, grp, 0x3f);
    ck_assert_uint_eq(fwd_reg(&d, 0x5008, false, reg, sizeof(reg)), SYN_REG_VALUE);
}
END_TEST

START_TEST(ptys_takes_only_what_it_offers)
{
    struct prm_ptys_reg reg[1] = {0};
    uint32_t cap;

    PRM_SET(ptys_reg, reg, local_port, 1);
    PRM_SET(ptys_reg, reg, proto_mask, 4);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, false, reg, sizeof(reg)), 0);
    cap = PRM_GET(ptys_reg, reg, eth_proto_capability);
    ck_assert_uint_ne(cap, 0);
    PRM_SET(ptys_reg, reg, eth_proto_admin, cap);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, true, reg, sizeof(reg)), 0);
    PRM_SET(ptys_reg, reg, eth_proto_admin, 0xffffffff);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, true, reg, sizeof(reg)), SYN_REG_VALUE);
    memset(reg, 0, sizeof(reg));
    PRM_SET(ptys_reg, reg, local_port, 1);
    PRM_SET(ptys_reg, reg, proto_mask, 4);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, true, reg, sizeof(reg)), SYN_REG_VALUE);
}
END_TEST

/* -- the link ---------------------------------------------------------------------------------- */

static void set_link(bool up)
{
    struct prm_paos_reg reg[1] = {0};

    PRM_SET(paos_reg, reg, local_port, 1);
    PRM_SET(paos_reg, reg, admin_status, up ? 1 : 2);
    PRM_SET(paos_reg, reg, ase, 1);
    ck_assert_uint_eq(fwd_reg(&d, 0x5006, true, reg, sizeof(reg)), SYN_OK);
}

static uint32_t ptys_oper(void)
{
    struct prm_ptys_reg reg[1] = {0};

    PRM_SET(ptys_reg, reg, local_port, 1);
    PRM_SET(ptys_reg, reg, proto_mask, 4);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, false, reg, sizeof(reg)), SYN_OK);
    return PRM_GET(ptys_reg, reg, eth_proto_oper);
}

static void ptys_set(uint32_t protos)
{
    struct prm_ptys_reg reg[1] = {0};

    PRM_SET(ptys_reg, reg, local_port, 1);
    PRM_SET(ptys_reg, reg, proto_mask, 4);
    PRM_SET(ptys_reg, reg, eth_proto_admin, protos);
    ck_assert_uint_eq(fwd_reg(&d, 0x5004, true, reg, sizeof(reg)), SYN_OK);
}

#define PROTO_25G  (1u << 27)
#define PROTO_40G  (1u << 6)
#define PROTO_100G (1u << 20)

/* A link keeps the speed with which it came up: driver mlx5e_ethtool_set_link_ksettings() writes
 * PTYS and then takes the port down and up. */
START_TEST(a_speed_is_for_the_next_time_the_link_comes_up)
{
    fwd_plug(&d);
    ck_assert_uint_eq(ptys_oper(), PROTO_100G);
    ptys_set(PROTO_25G);
    ck_assert_uint_eq(ptys_oper(), PROTO_100G);
    set_link(false);
    ck_assert_uint_eq(ptys_oper(), 0);
    set_link(true);
    ck_assert_uint_eq(ptys_oper(), PROTO_25G);
    /* written while it is down, and again before anybody reads */
    set_link(false);
    ptys_set(PROTO_40G);
    set_link(true);
    ptys_set(PROTO_100G);
    ck_assert_uint_eq(ptys_oper(), PROTO_40G);
}
END_TEST

/* PAOS, PMTU and counters belong to the port, which outlives a function's driver; addresses and
 * filters belong to the function. A reset of the function restores everything. */
START_TEST(teardown_leaves_the_port_as_it_is)
{
    struct prm_pmtu_reg reg[1] = {0};
    struct vport *vport = d.fw->hca.vport;

    fwd_plug(&d);
    PRM_SET(pmtu_reg, reg, local_port, 1);
    PRM_SET(pmtu_reg, reg, admin_mtu, 3000);
    ck_assert_uint_eq(fwd_reg(&d, 0x5003, true, reg, sizeof(reg)), SYN_OK);
    set_link(false);
    vport_set_promisc(vport, false, false, true);
    vport->roce_enabled = true;
    vport->mc.n = 3;
    vport_set_gid(vport, 0, &(struct vport_gid){.valid = true});
    counters()->rx_oversize = 5;

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_TEARDOWN_HCA, 0), SYN_OK);
    ck_assert(!vport->promisc_all && !vport->roce_enabled && !vport->mc.n && !vport->gids[0].valid);
    ck_assert(!port_is_up(&d.fw->hca));
    ck_assert_uint_eq(vport->uplink->mtu, 3000);
    ck_assert_uint_eq(counters()->rx_oversize, 5);
    ck_assert_uint_eq(vport->uplink->counters.link_downs, 1);

    fw_reset(d.fw);
    ck_assert(port_is_up(&d.fw->hca));
    ck_assert_uint_eq(vport->uplink->mtu, PORT_DEFAULT_MTU);
    ck_assert_uint_eq(vport->uplink->counters.link_downs, 0);
}
END_TEST

/* -- flow tables ------------------------------------------------------------------------------- */

static enum syn create_table(uint8_t type)
{
    struct prm_create_flow_table_in in[1] = {0};
    struct prm_create_flow_table_out out[1];

    PRM_SET(create_flow_table_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, in, table_type, type);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

/* Tables of a kind can be made if, and only if, the capabilities say so. */
START_TEST(flow_tables_are_of_the_reported_types)
{
    struct prm_flow_table_nic_cap cap[1];

#define SUPPORTED(kind)                                                                            \
    PRM_GET(flow_table_prop_layout,                                                                \
            PRM_PTR(flow_table_nic_cap, cap, flow_table_properties_nic_##kind), ft_support)
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_FLOW_TABLE, false, cap), SYN_OK);
    ck_assert(SUPPORTED(receive) && SUPPORTED(receive_rdma) && SUPPORTED(receive_sniffer));
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_NIC_RX), SYN_OK);
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_RDMA_RX), SYN_OK);
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_SNIFFER_RX), SYN_OK);
    ck_assert(SUPPORTED(transmit_sniffer) && SUPPORTED(transmit) && SUPPORTED(transmit_rdma));
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_NIC_TX), SYN_OK);
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_RDMA_TX), SYN_OK);
    ck_assert_int_eq(create_table(PRM_FLOW_TABLE_TYPE_SNIFFER_TX), SYN_OK);
#undef SUPPORTED
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw_port");
    TCase *tc = tcase_create("fw_port");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, mac_list_round_trip);
    tcase_add_test(tc, vport_refuses_what_it_does_not_manage);
    tcase_add_test(tc, guid_comes_from_mac);
    tcase_add_test(tc, gid_table_is_bounded);
    tcase_add_test(tc, the_port_is_not_bonded);
    tcase_add_test(tc, paths_learn_of_a_change_of_the_gid_table);
    tcase_add_test(tc, unknown_register_is_bad_param);
    tcase_add_test(tc, a_register_has_one_dword_at_least);
    tcase_add_test(tc, port_goes_down_and_up);
    tcase_add_test(tc, mtu_is_bounded);
    tcase_add_test(tc, cable_has_a_memory);
    tcase_add_test(tc, module_memory_is_bounded);
    tcase_add_test(tc, error_correction_is_what_was_wished);
    tcase_add_test(tc, pcam_lists_exactly_the_registers_that_exist);
    tcase_add_test(tc, the_firmware_version_is_reported);
    tcase_add_loop_test(tc, counter_groups_answer, 0, 6);
    tcase_add_test(tc, copies_for_receivers_too_many_are_discards);
    tcase_add_test(tc, infiniband_counters_stop_at_their_largest);
    tcase_add_test(tc, a_vport_counts_each_frame_once);
    tcase_add_test(tc, unknown_counter_group_is_refused);
    tcase_add_test(tc, ptys_takes_only_what_it_offers);
    tcase_add_test(tc, a_speed_is_for_the_next_time_the_link_comes_up);
    tcase_add_test(tc, teardown_leaves_the_port_as_it_is);
    tcase_add_test(tc, flow_tables_are_of_the_reported_types);
    suite_add_tcase(s, tc);
    return s;
}
