/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the generations: the identity of each, and what each has less than the model.
 * tests/sim/test_bringup.c tests what a driver can do on all of them, test_caps.c tests all
 * capabilities.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static const struct generation {
    const char *name;
    uint16_t device;    /* PCI */
    uint16_t family;    /* major firmware version */
    uint16_t hw_id;     /* mstflint: tools_dev_types.c */
    const char *psid;   /* of the board */
    bool inline_l2;     /* headers in send WQEs, and no VLAN insertion */
    uint32_t eth_modes; /* PTYS: legacy, extended */
    uint32_t ext_modes;
} generations[] = {
    {"cx4", 0x1013, 12, 0x209, "MT_2150110033", true, 0x48101041, 0},
    {"cx4lx", 0x1015, 14, 0x20b, "MT_2420110034", true, 0x08001001, 0},
    {"cx5", 0x1017, 16, 0x20d, "MT_0000000012", false, 0x48101041, 0},
    {"cx6dx", 0x101d, 22, 0x212, "MT_0000000359", false, 0x48101041, 0x7f2},
    {"cx7", 0x1021, 28, 0x218, "MT_0000000838", false, 0x48101041, 0x13ff2},
    {"cx8", 0x1023, 40, 0x21e, "MT_0000001222", false, 0x48101041, 0x13ff2},
};

static struct fwd d;
static const struct generation *g;

static void be(const char *profile)
{
    fwd_init_as(&d, profile);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* -- identity ---------------------------------------------------------------------------------- */

/* Tools and drivers recognize a card by these: PCI id (mlx5_core_pci_table), the firmware's version
 * in the initialization segment, the health buffer's hardware id, the board's PSID. */
START_TEST(each_generation_has_its_ids)
{
    struct prm_query_adapter_in in[1] = {0};
    struct prm_query_adapter_out out[1];
    const uint8_t *psid;
    struct fw_pci_id id;

    g = &generations[_i];
    be(g->name);
    ck_assert(fw_profile_pci_id(g->name, &id));
    ck_assert_uint_eq(id.vendor, 0x15b3);
    ck_assert_uint_eq(id.device, g->device);
    ck_assert_uint_eq(fw_mmio_read(d.fw, 0, 4) & 0xffff, g->family);
    ck_assert_uint_eq(
        fw_mmio_read(d.fw,
                     PRM_OFFSET(initial_seg, health_buffer) + PRM_OFFSET(health_buffer, hw_id), 4),
        g->hw_id);
    PRM_SET(query_adapter_in, in, opcode, PRM_CMD_OP_QUERY_ADAPTER);
    ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    psid = PRM_PTR(query_adapter_param_block, PRM_PTR(query_adapter_out, out, query_adapter_struct),
                   vsd_contd_psid);
    ck_assert_str_eq((const char *)psid, g->psid);
}
END_TEST

START_TEST(fw_profile_names_lists_all_and_the_default_is_cx5)
{
    const char *const *names = fw_profile_names();

    be(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(generations); i++) {
        ck_assert_str_eq(names[i], generations[i].name);
    }
    ck_assert_ptr_null(names[G_N_ELEMENTS(generations)]);
    ck_assert_str_eq(d.fw->profile->name, "cx5");
}
END_TEST

/* -- capabilities ------------------------------------------------------------------------------ */

static uint32_t eth_cap(uint32_t field)
{
    static uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS, false, cap), SYN_OK);
    return (uint32_t)prm_get(cap, field);
}

#define ETH_CAP(name) eth_cap(PRM_per_protocol_networking_offload_caps_##name##_FIELD)

/* DPDK's mlx5 guide, txq_inline_min: ConnectX-4 and -4 Lx require the layer 2 header in the WQE,
 * later ones nothing. test_eth_tx.c tests what the model does. */
START_TEST(headers_are_inline_before_connectx_5)
{
    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(ETH_CAP(wqe_inline_mode),
                      g->inline_l2 ? PRM_CAP_INLINE_MODE_L2 : PRM_CAP_INLINE_MODE_NOT_REQUIRED);
    ck_assert_uint_eq(ETH_CAP(wqe_vlan_insert), !g->inline_l2);
    ck_assert_uint_eq(ETH_CAP(vlan_cap), 1);
    ck_assert_int_eq(d.fw->hca.limits.inline_l2, g->inline_l2);
}
END_TEST

/* DPDK's mlx5 guide: enhanced multi-packet sends from ConnectX-5 on. */
START_TEST(offloads_of_ethernet_come_with_generations)
{
    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(ETH_CAP(tunnel_stateless_vxlan), 1);
    ck_assert_uint_eq(ETH_CAP(tunnel_stateless_gre), 1);
    ck_assert_uint_eq(ETH_CAP(tunnel_stateless_geneve_rx), !g->inline_l2);
    ck_assert_uint_eq(ETH_CAP(tunnel_stateless_ip_over_ip), !g->inline_l2);
    ck_assert_uint_eq(ETH_CAP(enhanced_multi_pkt_send_wqe), !g->inline_l2);
    ck_assert_uint_eq(ETH_CAP(swp), !g->inline_l2);
    ck_assert_uint_eq(ETH_CAP(cqe_checksum_full), g->family >= 22);
    ck_assert(d.fw->hca.limits.tunnels);
    ck_assert_int_eq(d.fw->hca.limits.multi_packet, !g->inline_l2);
    ck_assert_int_eq(d.fw->hca.limits.swp, !g->inline_l2);
    ck_assert_int_eq(d.fw->hca.limits.cqe_checksum_full, g->family >= 22);
}
END_TEST

/* Geneve and VXLAN-GPE, in the numbers of rdma-core's mlx5_ifc.h. */
START_TEST(the_flexible_parser_comes_with_connectx_5)
{
    static uint8_t cap[4096];

    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, false, cap), SYN_OK);
    ck_assert_uint_eq(prm_get(cap, PRM_cmd_hca_cap_flex_parser_protocols_FIELD),
                      g->inline_l2 ? 0 : 1 << 3 | 1 << 7);
}
END_TEST

/* A profile only takes away from what the model has. */
START_TEST(no_generation_has_more_than_the_model)
{
    static const struct {
        uint16_t section;
        const char *layout;
    } sections[] = {
        {PRM_HCA_CAP_TYPE_GENERAL, "cmd_hca_cap"},
        {PRM_HCA_CAP_TYPE_GENERAL_2, "cmd_hca_cap_2"},
        {PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS, "per_protocol_networking_offload_caps"},
        {PRM_HCA_CAP_TYPE_ATOMIC, "atomic_caps"},
        {PRM_HCA_CAP_TYPE_ROCE, "roce_cap"},
    };
    static uint8_t model[G_N_ELEMENTS(sections)][4096], cap[4096];

    struct fw_profile all;

    be("cx8");
    all = *d.fw->profile;
    all.at_most = NULL;
    d.fw->profile = &all;
    d.fw->hca.limits.crypto = HCA_CRYPTO_WRAPPED; /* which has objects that plaintext has not */
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        ck_assert_uint_eq(fwd_query_cap(&d, sections[i].section, true, model[i]), SYN_OK);
    }
    fwd_clear(&d);
    be(generations[_i].name);
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        const struct prm_struct *s = prm_struct_find(sections[i].layout);

        ck_assert_uint_eq(fwd_query_cap(&d, sections[i].section, true, cap), SYN_OK);
        for (size_t f = 0; f < s->n_fields; f++) {
            if (!s->fields[f].type && s->fields[f].count < 0) {
                ck_assert_msg(prm_field_get(&s->fields[f], cap, 0) <=
                                  prm_field_get(&s->fields[f], model[i], 0),
                              "%s has more %s", generations[_i].name, s->fields[f].name);
            }
        }
    }
}
END_TEST

/* -- the port ---------------------------------------------------------------------------------- */

static enum syn ptys(bool write, uint32_t legacy, uint32_t ext, struct prm_ptys_reg *reg)
{
    memset(reg, 0, PRM_SIZE(ptys_reg));
    PRM_SET(ptys_reg, reg, local_port, 1);
    PRM_SET(ptys_reg, reg, proto_mask, 1u << PRM_PTYS_PROTO_ETH);
    PRM_SET(ptys_reg, reg, eth_proto_admin, legacy);
    PRM_SET(ptys_reg, reg, ext_eth_proto_admin, ext);
    return fwd_reg(&d, PRM_REG_ID_PTYS, write, reg, PRM_SIZE(ptys_reg));
}

/* Driver mlx5e_ptys_ext_supported(): PCAM's ptys_extended_ethernet, or else possible extended
 * modes, say which bits count. */
START_TEST(link_modes_are_those_of_the_generation)
{
    struct prm_ptys_reg reg[1];
    struct prm_pcam_reg pcam[1] = {0};

    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(ptys(false, 0, 0, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, eth_proto_capability), g->eth_modes);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, ext_eth_proto_capability), g->ext_modes);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, eth_proto_admin), g->eth_modes);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, ext_eth_proto_admin), g->ext_modes);
    ck_assert_uint_eq(fwd_reg(&d, PRM_REG_ID_PCAM, false, pcam, sizeof(pcam)), SYN_OK);
    ck_assert_uint_eq(PRM_GET(pcam_enhanced_features,
                              PRM_PTR(pcam_reg, pcam, feature_cap_mask_enhanced_features),
                              ptys_extended_ethernet),
                      g->ext_modes != 0);
}
END_TEST

#define LEGACY(mode) (1u << PRM_ETH_LINK_MODE_##mode)
#define EXT(mode)    (1u << PRM_EXT_ETH_LINK_MODE_##mode)

/* A setting in either kind of bits appears in both; a lane of 50 Gb/s has no legacy bit. */
START_TEST(the_two_kinds_of_link_modes_agree)
{
    struct prm_ptys_reg reg[1];

    be("cx6dx");
    ck_assert_uint_eq(ptys(true, 0, EXT(25GAUI_1_25GBASE_CR_KR), reg), SYN_OK);
    ck_assert_uint_eq(ptys(false, 0, 0, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, eth_proto_admin), LEGACY(25GBASE_CR));
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, ext_eth_proto_admin), EXT(25GAUI_1_25GBASE_CR_KR));
    ck_assert_uint_eq(ptys(true, LEGACY(40GBASE_CR4), 0, reg), SYN_OK);
    ck_assert_uint_eq(ptys(false, 0, 0, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, eth_proto_admin), LEGACY(40GBASE_CR4));
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, ext_eth_proto_admin), EXT(40GBASE_XLAUI_4_XLPPI_4));
    ck_assert_uint_eq(ptys(true, 0, EXT(50GAUI_1_LAUI_1_50GBASE_CR_KR), reg), SYN_OK);
    ck_assert_uint_eq(ptys(false, 0, 0, reg), SYN_OK);
    ck_assert_uint_eq(PRM_GET(ptys_reg, reg, eth_proto_admin), 0);
    ck_assert_uint_eq(ptys(true, 0, EXT(400GAUI_4_400GBASE_CR4_KR4), reg), SYN_REG_VALUE);
    ck_assert_uint_eq(ptys(true, 0, 0, reg), SYN_REG_VALUE);
}
END_TEST

START_TEST(generations_without_extended_link_modes_refuse_them)
{
    struct prm_ptys_reg reg[1];

    be("cx5");
    ck_assert_uint_eq(ptys(true, 0, EXT(25GAUI_1_25GBASE_CR_KR), reg), SYN_REG_VALUE);
    ck_assert_uint_eq(ptys(true, LEGACY(25GBASE_CR), EXT(25GAUI_1_25GBASE_CR_KR), reg),
                      SYN_REG_VALUE);
}
END_TEST

/* NVIDIA, "Out-of-Order (OOO) Data Placement": ConnectX-5 and above, RC, XRC and DC. */
START_TEST(data_is_in_order_before_connectx_5)
{
    uint8_t cap[4096];
    bool has;

    g = &generations[_i];
    has = !g->inline_l2; /* the generations with inline_l2 lack it */
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_rw_rc), has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_all_rc), has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_all_xrc), has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_all_dc), has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_all_uc), 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dp_ordering_ooo_all_ud), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL_2, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap_2, (void *)cap, dp_ordering_force), has);
    ck_assert_int_eq(d.fw->hca.limits.early_packets, has);
}
END_TEST

/* DPDK's mlx5 guide, "Hairpin Ports": ConnectX-5. */
START_TEST(hairpin_queues_come_with_connectx_5)
{
    uint8_t cap[4096];
    bool has;

    g = &generations[_i];
    has = !g->inline_l2;
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, hairpin), has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, log_max_hairpin_queues) != 0, has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, log_max_hairpin_wq_data_sz) != 0, has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, log_min_hairpin_wq_data_sz) != 0, has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, log_max_hairpin_num_packets) != 0, has);
    ck_assert_int_eq(d.fw->hca.limits.hairpin, has);
}
END_TEST

/* Published outputs of ibv_devinfo: EXP_CROSS_CHANNEL and the flag of erasure codes (bit 45) on a
 * ConnectX-4 Lx (firmware 14.27.1016) and a ConnectX-5 (16.23.1020); on the -4 Lx no line about
 * tunneled atomics, which the program prints if the device has them (docs/adr/0032). */
START_TEST(tunneled_atomics_come_with_connectx_5)
{
    uint8_t cap[4096];

    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, cd), 1);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, vector_calc), 1);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, tunneled_atomic), !g->inline_l2);
    ck_assert_int_eq(d.fw->hca.limits.tunneled, !g->inline_l2);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, as_notify), 1);
}
END_TEST

/* Copies by the DMA engine: docs/adr/0027. */
START_TEST(copies_come_with_connectx_6_dx)
{
    uint8_t cap[4096];
    bool sq, qp;

    g = &generations[_i];
    sq = !strcmp(g->name, "cx6dx");
    qp = !strcmp(g->name, "cx7") || !strcmp(g->name, "cx8");
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dma_mmo_sq), sq);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, dma_mmo_qp), qp);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, log_dma_mmo_max_size), sq || qp ? 21 : 0);
    ck_assert_int_eq(d.fw->hca.limits.mmo_sq, sq);
    ck_assert_int_eq(d.fw->hca.limits.mmo_qp, qp);
}
END_TEST

/* Enhanced connection establishment: a choice for the generations before (fw/profile.c). */
START_TEST(connection_options_come_with_connectx_5)
{
    uint8_t cap[4096];

    g = &generations[_i];
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, ece_support), !g->inline_l2);
}
END_TEST

/* docs/adr/0028: a choice between ConnectX-5 and the generations after it (fw/profile.c). */
START_TEST(enhanced_cqes_come_with_connectx_6_dx)
{
    uint8_t cap[4096];
    bool has;

    g = &generations[_i];
    has = !strcmp(g->name, "cx6dx") || !strcmp(g->name, "cx7") || !strcmp(g->name, "cx8");
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, true, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, cqe_compression), 1);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, enhanced_cqe_compression), has);
    ck_assert_int_eq(d.fw->hca.limits.enhanced_cqes, has);
}
END_TEST

/* DPDK's guide of the platform enables REAL_TIME_CLOCK_ENABLE on a ConnectX-6 Dx. */
START_TEST(the_real_time_clock_comes_with_connectx_6_dx)
{
    uint8_t cap[4096], roce[4096];
    unsigned want;

    g = &generations[_i];
    want = !strcmp(g->name, "cx6dx") || !strcmp(g->name, "cx7") || !strcmp(g->name, "cx8")
               ? PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME
               : PRM_CAP_TS_FORMAT_FREE_RUNNING;
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, false, cap), SYN_OK);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_ROCE, false, roce), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, sq_ts_format), want);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, (void *)cap, rq_ts_format), want);
    ck_assert_uint_eq(PRM_GET(roce_cap, (void *)roce, qp_ts_format), want);
}
END_TEST

/* NVIDIA-DOCA/gpunetio, CHANGELOG.md 2.0.0: ConnectX-8 has it in hardware, earlier ones do not. */
START_TEST(queues_without_a_send_record_come_with_connectx_8)
{
    uint8_t cap[4096];
    bool has;

    g = &generations[_i];
    has = !strcmp(g->name, "cx8");
    be(g->name);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL_2, false, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap_2, (void *)cap, send_dbr_mode_no_dbr_ext), has);
    ck_assert_int_eq(d.fw->hca.limits.no_send_dbr, has);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("profile");
    TCase *tc = tcase_create("profile");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, each_generation_has_its_ids, 0, G_N_ELEMENTS(generations));
    tcase_add_test(tc, fw_profile_names_lists_all_and_the_default_is_cx5);
    tcase_add_loop_test(tc, headers_are_inline_before_connectx_5, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, offloads_of_ethernet_come_with_generations, 0,
                        G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, the_flexible_parser_comes_with_connectx_5, 0,
                        G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, data_is_in_order_before_connectx_5, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, connection_options_come_with_connectx_5, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, tunneled_atomics_come_with_connectx_5, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, hairpin_queues_come_with_connectx_5, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, copies_come_with_connectx_6_dx, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, queues_without_a_send_record_come_with_connectx_8, 0,
                        G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, the_real_time_clock_comes_with_connectx_6_dx, 0,
                        G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, enhanced_cqes_come_with_connectx_6_dx, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, no_generation_has_more_than_the_model, 0, G_N_ELEMENTS(generations));
    tcase_add_loop_test(tc, link_modes_are_those_of_the_generation, 0, G_N_ELEMENTS(generations));
    tcase_add_test(tc, the_two_kinds_of_link_modes_agree);
    tcase_add_test(tc, generations_without_extended_link_modes_refuse_them);
    suite_add_tcase(s, tc);
    return s;
}
