/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests ibv_exp_query_device(): each attribute against the capabilities that the device itself
 * tells (QUERY_HCA_CAP), which bits of a mask are answered, and that nothing else is written.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static const char *const profiles[] = {"cx4", "cx5", "cx7"};

static struct verbs_table *v;

/* The sections of the capabilities. */
static struct {
    struct prm_cmd_hca_cap general[1];
    struct prm_per_protocol_networking_offload_caps eth[1];
    struct prm_atomic_caps atomic[1];
    struct prm_device_mem_cap memory[1];
    struct prm_vector_calc_cap vectors[1];
} caps;

#define CAP(field)        PRM_GET(cmd_hca_cap, caps.general, field)
#define ETH_CAP(field)    PRM_GET(per_protocol_networking_offload_caps, caps.eth, field)
#define ATOMIC_CAP(field) PRM_GET(atomic_caps, caps.atomic, field)

/* A section that the device does not have stays 0. */
static void read_section(unsigned type, void *section, size_t len)
{
    struct prm_query_hca_cap_in in[1] = {0};
    struct prm_query_hca_cap_out *out = g_new0(struct prm_query_hca_cap_out, 1);

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, type << 1 | 1);
    memset(section, 0, len);
    if (!hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(*out))) {
        memcpy(section, PRM_PTR(query_hca_cap_out, out, capability), len);
    }
    g_free(out);
}

static void begin(const char *profile)
{
    v = verbs_table_on(verbs_hosts_new_as(2, NULL, profile));
    read_section(PRM_HCA_CAP_TYPE_GENERAL, caps.general, sizeof(caps.general));
    read_section(PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS, caps.eth, sizeof(caps.eth));
    read_section(PRM_HCA_CAP_TYPE_ATOMIC, caps.atomic, sizeof(caps.atomic));
    read_section(PRM_HCA_CAP_TYPE_DEV_MEM, caps.memory, sizeof(caps.memory));
    read_section(PRM_HCA_CAP_TYPE_VECTOR_CALC, caps.vectors, sizeof(caps.vectors));
}

static struct ibv_exp_device_attr query(uint32_t mask, uint64_t mask_2)
{
    struct ibv_exp_device_attr attr;

    memset(&attr, 0xa5, sizeof(attr));
    attr.comp_mask = mask;
    attr.comp_mask_2 = mask_2;
    ck_assert_int_eq(ibv_exp_query_device(v->a, &attr), 0);
    return attr;
}

/* -- values ------------------------------------------------------------------------------------ */

/* Flags that all generations have, and that are no flags of ibv_query_device(). */
#define ALL_HAVE                                                                                   \
    (IBV_EXP_DEVICE_DC_TRANSPORT | IBV_EXP_DEVICE_EXT_ATOMICS |                                    \
     IBV_EXP_DEVICE_EXT_MASKED_ATOMICS | IBV_EXP_DEVICE_NOP | IBV_EXP_DEVICE_UMR |                 \
     IBV_EXP_DEVICE_UMR_FIXED_SIZE | IBV_EXP_DEVICE_ODP | IBV_EXP_DEVICE_RX_CSUM_IP_PKT |          \
     IBV_EXP_DEVICE_RX_CSUM_TCP_UDP_PKT | IBV_EXP_DEVICE_RX_TCP_UDP_PKT_TYPE |                     \
     IBV_EXP_DEVICE_EC_OFFLOAD | IBV_EXP_DEVICE_PHYSICAL_RANGE_MR | IBV_EXP_DEVICE_CROSS_CHANNEL | \
     IBV_EXP_DEVICE_MR_ALLOCATE | IBV_EXP_DEVICE_SCATTER_FCS | IBV_EXP_DEVICE_WQ_DELAY_DROP)

/* Flags that repeat one of ibv_query_device(). */
static const struct {
    unsigned verbs;
    uint64_t exp;
} repeated[] = {
    {IBV_DEVICE_MEM_WINDOW, IBV_EXP_DEVICE_MEM_WINDOW},
    {IBV_DEVICE_MEM_WINDOW_TYPE_2B, IBV_EXP_DEVICE_MW_TYPE_2B},
    {IBV_DEVICE_MEM_MGT_EXTENSIONS, IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS},
    {IBV_DEVICE_MANAGED_FLOW_STEERING, IBV_EXP_DEVICE_MANAGED_FLOW_STEERING},
};

START_TEST(the_first_members_and_the_flags_are_those_of_verbs)
{
    struct ibv_exp_device_attr attr;
    struct ibv_device_attr verbs;
    uint64_t flags = ALL_HAVE;

    begin(profiles[_i]);
    ck_assert_int_eq(ibv_query_device(v->a, &verbs), 0);
    attr = query(IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS, 0);
    ck_assert_mem_eq(&attr, &verbs, offsetof(struct ibv_device_attr, atomic_cap));
    ck_assert_int_eq(attr.max_srq_sge, verbs.max_srq_sge);
    ck_assert_uint_eq(attr.phys_port_cnt, verbs.phys_port_cnt);
    for (size_t i = 0; i < G_N_ELEMENTS(repeated); i++) {
        flags |= verbs.device_cap_flags & repeated[i].verbs ? repeated[i].exp : 0;
    }
    ck_assert_uint_eq(attr.exp_device_cap_flags, flags | verbs.device_cap_flags);
    ck_assert(CAP(dct) && CAP(cd) && CAP(fixed_buffer_size) && CAP(vector_calc) && CAP(pg));
    verbs_table_free(v);
}
END_TEST

START_TEST(values_of_the_transports)
{
    struct ibv_exp_device_attr attr;

    begin(profiles[_i]);
    attr = query(~0u, 0);
    ck_assert_int_eq(attr.max_dc_req_rd_atom, 1 << CAP(log_max_ra_req_dc));
    ck_assert_int_eq(attr.max_dc_res_rd_atom, 1 << CAP(log_max_ra_res_dc));
    ck_assert_int_eq(attr.max_dct, 1 << CAP(log_max_qp));
    ck_assert_int_eq(attr.inline_recv_sz, CAP(sctr_data_cqe) ? 64 : 0);
    ck_assert_uint_eq(attr.hca_core_clock, CAP(device_frequency_khz));
    ck_assert_uint_eq(attr.timestamp_mask, INT64_MAX);
    if (CAP(dp_ordering_ooo_rw_rc)) {
        ck_assert_uint_eq(attr.ooo_caps.rc_caps, IBV_EXP_OOO_SUPPORT_RW_DATA_PLACEMENT);
        ck_assert_uint_eq(attr.ooo_caps.xrc_caps, CAP(dp_ordering_ooo_rw_xrc));
        ck_assert_uint_eq(attr.ooo_caps.dc_caps, CAP(dp_ordering_ooo_rw_dc));
        ck_assert_uint_eq(attr.ooo_caps.ud_caps, 0);
    }
    if (CAP(tag_matching)) {
        ck_assert_uint_eq(attr.tm_caps.max_num_tags, (1u << CAP(log_tag_matching_list_sz)) - 1);
        ck_assert_uint_eq(attr.tm_caps.capability_flags, IBV_EXP_TM_CAP_RC);
        ck_assert_uint_eq(attr.tm_caps.max_ops, 1u << CAP(log_max_qp_sz));
        ck_assert_uint_eq(attr.tm_caps.max_rndv_hdr_size, 64);
        ck_assert_uint_eq(attr.tm_caps.max_sge, 1);
    }
    verbs_table_free(v);
}
END_TEST

/* In the host's order, answers of 8 bytes alone have that order (docs/adr/0011). */
START_TEST(values_of_atomics)
{
    struct ibv_exp_device_attr attr;
    uint64_t sizes;

    begin(profiles[_i]);
    attr = query(~0u, ~0ull >> 62);
    sizes = ATOMIC_CAP(atomic_size_qp) & ATOMIC_CAP(atomic_size_dc);
    ck_assert_uint_ne(sizes & 8, 0);
    ck_assert_uint_eq(ATOMIC_CAP(atomic_req_8B_endianness_mode), 1);
    ck_assert_int_eq(attr.exp_atomic_cap, IBV_EXP_ATOMIC_HCA);
    ck_assert_uint_eq(attr.ext_atom.log_atomic_arg_sizes, 8);
    ck_assert_uint_eq(attr.ext_atom.max_fa_bit_boundary, 64);
    ck_assert_uint_eq(attr.ext_atom.log_max_atomic_inline, 6);
    ck_assert_uint_eq(attr.masked_atomic.masked_log_atomic_arg_sizes, sizes);
    ck_assert_uint_eq(attr.masked_atomic.masked_log_atomic_arg_sizes_network_endianness,
                      sizes & ~8ull);
    ck_assert_uint_eq(attr.masked_atomic.max_fa_bit_boundary, 64);
    ck_assert_uint_eq(attr.masked_atomic.log_max_atomic_inline, 6);
    ck_assert_uint_eq(attr.pci_atomic_caps.fetch_add, ATOMIC_CAP(fetch_add_pci_atomic));
    ck_assert_uint_eq(attr.pci_atomic_caps.swap, ATOMIC_CAP(swap_pci_atomic));
    ck_assert_uint_eq(attr.pci_atomic_caps.compare_swap, ATOMIC_CAP(compare_swap_pci_atomic));
    verbs_table_free(v);
}
END_TEST

/* An errno of ibv_exp_create_qp() for a QP that takes UMRs with so many keys. */
static int create_for_keys(struct ibv_cq *cq, uint32_t keys)
{
    struct ibv_exp_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                        .send_cq = cq,
                                        .recv_cq = cq,
                                        .cap = {1, 1, 1, 1, 0},
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD |
                                                     IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
                                                     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
                                        .pd = v->hosts->host[0].pd,
                                        .exp_create_flags = IBV_EXP_QP_CREATE_UMR,
                                        .max_inl_send_klms = keys};
    struct ibv_qp *qp = ibv_exp_create_qp(v->a, &attr);

    if (!qp) {
        return errno;
    }
    table_qp_free(qp);
    return 0;
}

START_TEST(values_of_memory)
{
    struct ibv_exp_device_attr attr;
    struct ibv_cq *cq;

    begin(profiles[_i]);
    attr = query(~0u, ~0ull >> 62);
    ck_assert_uint_eq(attr.umr_caps.max_klm_list_size, 1u << CAP(log_max_klm_list_size));
    ck_assert_uint_eq(attr.umr_caps.max_umr_recursion_depth, CAP(max_indirection));
    ck_assert_uint_eq(attr.umr_caps.max_umr_stride_dimension, 1);
    cq = ibv_create_cq(v->a, 1, NULL, NULL, 0);
    ck_assert_int_eq(create_for_keys(cq, attr.umr_caps.max_send_wqe_inline_klms), 0);
    ck_assert_int_eq(create_for_keys(cq, attr.umr_caps.max_send_wqe_inline_klms + 1), EINVAL);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_uint_eq(attr.umr_fixed_size_caps.max_entity_size, 1ull << 31);
    ck_assert_uint_eq(attr.odp_caps.general_odp_caps,
                      IBV_EXP_ODP_SUPPORT | IBV_EXP_ODP_SUPPORT_IMPLICIT);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.raw_eth_odp_caps, 0);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.uc_odp_caps, 0);
    ck_assert_uint_ne(attr.odp_caps.per_transport_caps.rc_odp_caps, 0);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.ud_odp_caps &
                          ~(IBV_EXP_ODP_SUPPORT_SEND | IBV_EXP_ODP_SUPPORT_SRQ_RECV),
                      0);
    ck_assert_uint_eq(attr.odp_mr_max_size, attr.max_mr_size);
    if (CAP(device_memory)) {
        ck_assert_uint_eq(attr.max_dm_size, PRM_GET(device_mem_cap, caps.memory, max_memic_size));
    }
    if (CAP(tunneled_atomic)) {
        ck_assert_uint_eq(attr.tunneled_atomic_caps, IBV_EXP_TUNNELED_ATOMIC_SUPPORTED);
    }
    verbs_table_free(v);
}
END_TEST

START_TEST(values_of_packets_and_calculations)
{
    struct ibv_exp_device_attr attr;
    const uint64_t ops = 1u << IBV_EXP_CALC_OP_ADD | 1u << IBV_EXP_CALC_OP_BAND |
                         1u << IBV_EXP_CALC_OP_BXOR | 1u << IBV_EXP_CALC_OP_BOR;

    begin(profiles[_i]);
    attr = query(~0u, 0);
    ck_assert_uint_eq(attr.rx_hash_caps.max_rwq_indirection_tables, 1u << CAP(log_max_rqt));
    ck_assert_uint_eq(attr.rx_hash_caps.max_rwq_indirection_table_size,
                      1u << CAP(log_max_rqt_size));
    ck_assert_uint_eq(attr.rx_hash_caps.supported_hash_functions, IBV_EXP_RX_HASH_FUNC_TOEPLITZ);
    ck_assert_uint_eq(attr.rx_hash_caps.supported_packet_fields, 0xff);
    ck_assert_uint_eq(attr.rx_hash_caps.supported_qps, IBV_EXP_QPT_RAW_PACKET);
    ck_assert_uint_eq(attr.max_wq_type_rq, 1u << CAP(log_max_rq));
    ck_assert_uint_eq(attr.wq_vlan_offloads_cap,
                      ETH_CAP(vlan_cap) ? IBV_EXP_RECEIVE_WQ_CVLAN_STRIP : 0);
    ck_assert_int_eq(attr.rx_pad_end_addr_align, CAP(end_pad) ? 64 : 0);
    ck_assert_uint_eq(attr.tso_caps.max_tso, 1u << ETH_CAP(max_lso_cap));
    ck_assert_uint_eq(attr.tso_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
    ck_assert_uint_eq(attr.mp_rq_caps.supported_qps,
                      CAP(striding_rq) ? IBV_EXP_MP_RQ_SUP_TYPE_WQ_RQ : 0);
    ck_assert_uint_eq(attr.mp_rq_caps.allowed_shifts,
                      CAP(striding_rq) ? IBV_EXP_MP_RQ_2BYTES_SHIFT : 0);
    ck_assert_uint_eq(attr.mp_rq_caps.min_single_wqe_log_num_of_strides, !CAP(striding_rq) ? 0
                                                                         : CAP(ext_stride_num_range)
                                                                             ? 3
                                                                             : 9);
    ck_assert_uint_eq(attr.mp_rq_caps.max_single_wqe_log_num_of_strides, CAP(striding_rq) ? 16 : 0);
    ck_assert_uint_eq(attr.mp_rq_caps.min_single_stride_log_num_of_bytes, CAP(striding_rq) ? 6 : 0);
    ck_assert_uint_eq(attr.mp_rq_caps.max_single_stride_log_num_of_bytes,
                      CAP(striding_rq) ? 13 : 0);
    ck_assert_uint_eq(
        attr.tunnel_offloads_caps,
        (ETH_CAP(tunnel_stateless_vxlan) ? IBV_EXP_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN : 0) |
            (ETH_CAP(tunnel_stateless_gre) ? IBV_EXP_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE : 0) |
            (ETH_CAP(tunnel_stateless_geneve_rx) ? IBV_EXP_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GENEVE
                                                 : 0));
    ck_assert_uint_eq(attr.calc_cap.data_types, 1u << IBV_EXP_CALC_DATA_TYPE_INT |
                                                    1u << IBV_EXP_CALC_DATA_TYPE_UINT |
                                                    1u << IBV_EXP_CALC_DATA_TYPE_FLOAT);
    ck_assert_uint_eq(attr.calc_cap.data_sizes, 1u << IBV_EXP_CALC_DATA_SIZE_64_BIT);
    ck_assert_uint_eq(attr.calc_cap.int_ops, ops);
    ck_assert_uint_eq(attr.calc_cap.uint_ops, ops);
    ck_assert_uint_eq(attr.calc_cap.fp_ops, ops);
    ck_assert_uint_eq(attr.ec_caps.max_ec_data_vector_count,
                      PRM_GET(vector_calc_cap, caps.vectors, max_vec_count));
    ck_assert_uint_eq(attr.ec_caps.max_ec_calc_inflight_calcs, 1024);
    ck_assert_uint_eq(attr.ec_w_mask >> 7 & 1,
                      PRM_GET(vector_calc_cap, caps.vectors, calc_matrix_type_8bit));
    ck_assert_uint_eq(attr.ec_w_mask & 0x7f, 0x0b); /* 1, 2 and 4 bits */
    ck_assert_int_eq(attr.max_ctx_res_domain, 1 << (CAP(uar_sz) + 20 - 12 - 1));
    ck_assert_int_eq(attr.max_device_ctx, (1 << (CAP(uar_sz) + 20 - 12 - 1)) - 4);
    verbs_table_free(v);
}
END_TEST

/* -- masks ------------------------------------------------------------------------------------- */

#define M(mask, member)                                                                            \
    {                                                                                              \
        IBV_EXP_DEVICE_##mask, offsetof(struct ibv_exp_device_attr, member),                       \
            sizeof(((struct ibv_exp_device_attr *)0)->member)                                      \
    }
static const struct {
    int bit;
    size_t at, size;
} members[] = {
    M(ATTR_CALC_CAP, calc_cap),
    M(ATTR_WITH_TIMESTAMP_MASK, timestamp_mask),
    M(ATTR_WITH_HCA_CORE_CLOCK, hca_core_clock),
    M(DC_RD_REQ, max_dc_req_rd_atom),
    M(DC_RD_RES, max_dc_res_rd_atom),
    M(ATTR_INLINE_RECV_SZ, inline_recv_sz),
    M(ATTR_EXT_ATOMIC_ARGS, ext_atom),
    M(ATTR_UMR, umr_caps),
    M(ATTR_ODP, odp_caps),
    M(ATTR_MAX_DCT, max_dct),
    M(ATTR_MAX_CTX_RES_DOMAIN, max_ctx_res_domain),
    M(ATTR_RX_HASH, rx_hash_caps),
    M(ATTR_MAX_WQ_TYPE_RQ, max_wq_type_rq),
    M(ATTR_MAX_DEVICE_CTX, max_device_ctx),
    M(ATTR_MP_RQ, mp_rq_caps),
    M(ATTR_VLAN_OFFLOADS, wq_vlan_offloads_cap),
    M(ATTR_EC_CAPS, ec_caps),
    M(ATTR_MASKED_ATOMICS, masked_atomic),
    M(ATTR_RX_PAD_END_ALIGN, rx_pad_end_addr_align),
    M(ATTR_TSO_CAPS, tso_caps),
    M(ATTR_PACKET_PACING_CAPS, packet_pacing_caps),
    M(ATTR_OOO_CAPS, ooo_caps),
    M(ATTR_ODP_MAX_SIZE, odp_mr_max_size),
    M(ATTR_TM_CAPS, tm_caps),
    M(ATTR_TUNNEL_OFFLOADS_CAPS, tunnel_offloads_caps),
    M(ATTR_MAX_DM_SIZE, max_dm_size),
    M(ATTR_TUNNELED_ATOMIC, tunneled_atomic_caps),
};

/* A program with an older header has a shorter structure, and no bits for what is behind it. */
START_TEST(a_bit_brings_its_member_alone)
{
    const size_t first = offsetof(struct ibv_exp_device_attr, calc_cap);

    begin("cx7");
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        struct ibv_exp_device_attr attr = query((uint32_t)members[i].bit, UINT64_MAX);
        const uint8_t *bytes = (const uint8_t *)&attr;

        ck_assert_uint_eq(attr.comp_mask, (uint32_t)members[i].bit);
        ck_assert_uint_eq(attr.comp_mask_2, UINT64_MAX);
        memset((char *)&attr + members[i].at, 0xa5, members[i].size);
        attr.comp_mask_2 = 0xa5a5a5a5a5a5a5a5;
        for (size_t at = first; at < sizeof(attr); at++) {
            ck_assert_msg(bytes[at] == 0xa5, "bit 0x%x writes byte %zu", (unsigned)members[i].bit,
                          at);
        }
    }
    verbs_table_free(v);
}
END_TEST

/* libmlx5 adds the calculations to the flags. */
START_TEST(flags_bring_the_calculations)
{
    struct ibv_exp_device_attr attr;

    begin("cx7");
    attr = query(IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS, 0);
    ck_assert_uint_eq(attr.comp_mask,
                      IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | IBV_EXP_DEVICE_ATTR_CALC_CAP);
    ck_assert_uint_ne(attr.calc_cap.int_ops, 0);
    ck_assert_uint_eq(attr.timestamp_mask, 0xa5a5a5a5a5a5a5a5);
    verbs_table_free(v);
}
END_TEST

/* A bit for something that no device has, or that a ConnectX-4 does not have, is not answered. */
START_TEST(a_bit_that_the_device_does_not_have_is_not_answered)
{
    const uint32_t never = IBV_EXP_DEVICE_ATTR_RSS_TBL_SZ | IBV_EXP_DEVICE_ATTR_SW_PARSING_CAPS,
                   late = IBV_EXP_DEVICE_ATTR_OOO_CAPS | IBV_EXP_DEVICE_ATTR_TM_CAPS |
                          IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE | IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC;
    struct ibv_exp_device_attr attr;

    begin("cx4");
    ck_assert_uint_eq(query(~0u, 0).comp_mask, ~(never | late));
    attr = query(never | late, 0);
    ck_assert_uint_eq(attr.comp_mask, 0);
    ck_assert_uint_eq(attr.max_dm_size, 0xa5a5a5a5a5a5a5a5);
    ck_assert_uint_eq(attr.max_rss_tbl_sz, 0xa5a5a5a5);
    verbs_table_free(v);
    begin("cx7");
    ck_assert_uint_eq(query(~0u, 0).comp_mask, ~never);
    verbs_table_free(v);
}
END_TEST

START_TEST(the_second_mask_counts_if_the_first_says_so)
{
    const uint32_t more = (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2;
    struct ibv_exp_device_attr attr;

    begin("cx7");
    attr = query(more, IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS);
    ck_assert_uint_eq(attr.comp_mask, more);
    ck_assert_uint_eq(attr.comp_mask_2, IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS);
    ck_assert_uint_eq(attr.pci_atomic_caps.swap, ATOMIC_CAP(swap_pci_atomic));
    ck_assert_uint_eq(attr.umr_fixed_size_caps.max_entity_size, 0xa5a5a5a5a5a5a5a5);
    attr.comp_mask = more;
    attr.comp_mask_2 = IBV_EXP_DEVICE_ATTR_RESERVED_2;
    ck_assert_int_eq(ibv_exp_query_device(v->a, &attr), EINVAL);
    ck_assert_uint_eq(attr.comp_mask_2, IBV_EXP_DEVICE_ATTR_RESERVED_2);
    verbs_table_free(v);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-device");
    TCase *tc = tcase_create("attributes");
    const int n = G_N_ELEMENTS(profiles);

    tcase_add_loop_test(tc, the_first_members_and_the_flags_are_those_of_verbs, 0, n);
    tcase_add_loop_test(tc, values_of_the_transports, 0, n);
    tcase_add_loop_test(tc, values_of_atomics, 0, n);
    tcase_add_loop_test(tc, values_of_memory, 0, n);
    tcase_add_loop_test(tc, values_of_packets_and_calculations, 0, n);
    tcase_add_test(tc, a_bit_brings_its_member_alone);
    tcase_add_test(tc, flags_bring_the_calculations);
    tcase_add_test(tc, a_bit_that_the_device_does_not_have_is_not_answered);
    tcase_add_test(tc, the_second_mask_counts_if_the_first_says_so);
    suite_add_tcase(suite, tc);
    return suite;
}
