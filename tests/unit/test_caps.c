/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests capabilities: QUERY_HCA_CAP reports what the device has, and SET_HCA_CAP changes nothing
 * else.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define CAP_CUR false
#define CAP_MAX true

static struct fwd d;

static void setup(void)
{
    fwd_init(&d);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
}

static void setup_ready(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* The sections, each with its layout. */
static const struct section {
    const char *name;
    uint16_t section; /* op_mod >> 1 */
    const char *layout;
} sections[] = {
    {"GENERAL", PRM_HCA_CAP_TYPE_GENERAL, "cmd_hca_cap"},
    {"ETHERNET_OFFLOADS", PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
     "per_protocol_networking_offload_caps"},
    {"ATOMIC", PRM_HCA_CAP_TYPE_ATOMIC, "atomic_caps"},
    {"ROCE", PRM_HCA_CAP_TYPE_ROCE, "roce_cap"},
    {"FLOW_TABLE", PRM_HCA_CAP_TYPE_FLOW_TABLE, "flow_table_nic_cap"},
    {"QOS", PRM_HCA_CAP_TYPE_QOS, "qos_cap"},
    {"DEV_EVENT", PRM_HCA_CAP_TYPE_DEV_EVENT, "device_event_cap"},
    {"GENERAL_2", PRM_HCA_CAP_TYPE_GENERAL_2, "cmd_hca_cap_2"},
    {"DEV_MEM", PRM_HCA_CAP_TYPE_DEV_MEM, "device_mem_cap"},
    {"ODP", PRM_HCA_CAP_TYPE_ODP, "odp_cap"},
    {"VECTOR_CALC", PRM_HCA_CAP_TYPE_VECTOR_CALC, "vector_calc_cap"},
    {"DEBUG", PRM_HCA_CAP_TYPE_DEBUG, "debug_cap"},
};

/* -- what the default generation says ---------------------------------------------------------- */

/* Returns all sections as text: a line for each field that is not 0. */
static char *describe_all(struct fwd *fwd)
{
    GString *text = g_string_new(NULL);
    uint8_t cap[4096];

    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        const struct section *s = &sections[i];

        for (int max = 1; max >= 0; max--) {
            char *dump;

            ck_assert_uint_eq(fwd_query_cap(fwd, s->section, max, cap), 0);
            dump = prm_dump_string(prm_struct_find(s->layout), cap, sizeof(cap), PRM_DUMP_NONZERO);
            g_string_append_printf(text, "%s, %s\n%s", s->name, max ? "maximum" : "current", dump);
            free(dump);
        }
    }
    return g_string_free(text, FALSE);
}

/* Users of the default generation rely on tests/unit/cx5.caps. A change of that file is a change
 * for them, and belongs in the commit that causes it. */
START_TEST(capabilities_of_the_default_generation_are_unchanged)
{
    g_autofree char *path = g_build_filename(g_getenv("HCASIM_TESTS"), "cx5.caps", NULL);
    g_autofree char *pinned = NULL, *says = describe_all(&d);
    const char *begin;

    ck_assert_msg(g_file_get_contents(path, &pinned, NULL, NULL), "no %s", path);
    begin = strchr(pinned, '\n') + 1; /* the licence */
    if (strcmp(begin, says) != 0) {
        g_autofree char *now = g_build_filename(g_get_tmp_dir(), "cx5.caps", NULL);

        g_file_set_contents(now, says, -1, NULL);
        ck_abort_msg("%s differs, see diff %s %s", path, path, now);
    }
}
END_TEST

/* -- what is there -----------------------------------------------------------------------------*/

/* The current value of no field exceeds its maximum. */
START_TEST(current_is_within_maximum)
{
    uint8_t cur[4096], max[4096];
    const struct prm_struct *s = prm_struct_find(sections[_i].layout);

    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(fwd_query_cap(&d, sections[_i].section, CAP_CUR, cur), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, sections[_i].section, CAP_MAX, max), 0);
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];

        if (!f->type && f->width <= 64) {
            ck_assert_msg(prm_field_get(f, cur, 0) <= prm_field_get(f, max, 0),
                          "%s.%s: current exceeds maximum", s->name, f->name);
        }
    }
}
END_TEST

/* Undescribed bits of a section stay 0: nothing is advertised by accident. */
START_TEST(reserved_capability_bits_are_0)
{
    uint8_t cap[4096];
    size_t bad;

    ck_assert_uint_eq(fwd_query_cap(&d, sections[_i].section, CAP_MAX, cap), 0);
    ck_assert(prm_reserved_clear(prm_struct_find(sections[_i].layout), cap, sizeof(cap), &bad));
}
END_TEST

/* Every advertised ability has the commands that it needs. */
START_TEST(advertised_is_implemented)
{
    static const struct {
        const char *field;
        uint16_t opcode;
    } needs[] = {
        {"rc", PRM_CMD_OP_CREATE_QP},
        {"ud", PRM_CMD_OP_QUERY_QP},
        {"device_memory", PRM_CMD_OP_ALLOC_MEMIC},
        {"xrc", PRM_CMD_OP_ALLOC_XRCD},
        {"xrc", PRM_CMD_OP_CREATE_XRC_SRQ},
        {"roce", PRM_CMD_OP_SET_ROCE_ADDRESS},
        {"eth_net_offloads", PRM_CMD_OP_CREATE_SQ},
        {"eth_net_offloads", PRM_CMD_OP_MODIFY_TIR},
        {"nic_flow_table", PRM_CMD_OP_SET_FLOW_TABLE_ENTRY},
        {"cq_moderation", PRM_CMD_OP_MODIFY_CQ},
        {"vport_counters", PRM_CMD_OP_QUERY_VPORT_COUNTER},
        {"nic_receive_steering_discard", PRM_CMD_OP_QUERY_VNIC_ENV},
        {"vnic_env_cq_overrun", PRM_CMD_OP_QUERY_VNIC_ENV},
        {"eth_wqe_too_small", PRM_CMD_OP_QUERY_VNIC_ENV},
        {"eq_overrun_count", PRM_CMD_OP_QUERY_VNIC_ENV},
        {"retransmission_q_counters", PRM_CMD_OP_QUERY_Q_COUNTER},
        {"log_max_uctx", PRM_CMD_OP_CREATE_UCTX},
        {"log_max_umem", PRM_CMD_OP_CREATE_UMEM},
        {"driver_version", PRM_CMD_OP_SET_DRIVER_VERSION},
        {"log_max_mcg", PRM_CMD_OP_ATTACH_TO_MCG},
        {"log_max_rmp", PRM_CMD_OP_CREATE_RMP},
        {"tag_matching", PRM_CMD_OP_CREATE_XRQ},
        {"sho", PRM_CMD_OP_CREATE_PSV},
        {"rndv_offload_dc", PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY},
        {"pcam_reg", PRM_CMD_OP_ACCESS_REG},
        {"qcam_reg", PRM_CMD_OP_ACCESS_REG},
    };
    const struct prm_struct *s = prm_struct_find("cmd_hca_cap");
    uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_MAX, cap), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(needs); i++) {
        const struct prm_field *f = prm_field_find(s, needs[i].field);

        ck_assert_ptr_nonnull(f);
        ck_assert_msg(!prm_field_get(f, cap, 0) || fw_cmd_find(needs[i].opcode),
                      "%s without its command", needs[i].field);
    }
}
END_TEST

/* Abilities whose commands do not exist; if advertised, the driver would use them. */
START_TEST(unsupported_abilities_are_not_advertised)
{
    static const char *const absent[] = {
        "eswitch_manager",
        "vhca_group_manager",
        "sf",
        "fpga",
        "ipsec_offload",
        "crypto",
        "tls_tx",
        "tls_rx",
        "dcbx",
        "lag_master",
        "pps",
        "ib_virt",
        "temp_warn_event",
        "port_module_event",
        "vhca_state",
        "repeated_block_disabled",
    };
    const struct prm_struct *s = prm_struct_find("cmd_hca_cap");
    uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_MAX, cap), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(absent); i++) {
        const struct prm_field *f = prm_field_find(s, absent[i]);

        ck_assert_ptr_nonnull(f);
        ck_assert_msg(prm_field_get(f, cap, 0) == 0, "%s is advertised", absent[i]);
    }
}
END_TEST

/* Driver mlx5_eth_supported(): what the driver's network half requires. */
START_TEST(ethernet_is_complete)
{
    uint8_t bytes[4096];
    void *cap = bytes;
    const struct prm_flow_table_prop_layout *ft;

    ck_assert_uint_eq(fwd_query_cap(&d, 1, CAP_CUR, cap), 0);
    ck_assert_uint_eq(PRM_GET(per_protocol_networking_offload_caps, cap, csum_cap), 1);
    ck_assert_uint_ne(PRM_GET(per_protocol_networking_offload_caps, cap, max_lso_cap), 0);
    ck_assert_uint_eq(PRM_GET(per_protocol_networking_offload_caps, cap, vlan_cap), 1);
    ck_assert_uint_ne(PRM_GET(per_protocol_networking_offload_caps, cap, rss_ind_tbl_cap), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, 7, CAP_CUR, cap), 0);
    ft = PRM_PTR(flow_table_nic_cap, cap, flow_table_properties_nic_receive);
    ck_assert_uint_ge(PRM_GET(flow_table_prop_layout, ft, max_ft_level), 3);
}
END_TEST

START_TEST(unknown_sections_are_refused)
{
    static const uint16_t unknown[] = {0x5, 0x6, 0x8, 0x11, 0x13, 0x21, 0x7fff};
    uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, unknown[_i], CAP_CUR, cap), SYN_NO_CAP_SECTION);
}
END_TEST

static enum syn set_cap(uint16_t section, const void *cap)
{
    static struct prm_set_hca_cap_in in[1];
    uint8_t out[16];

    memset(in, 0, sizeof(in));
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    PRM_SET(set_hca_cap_in, in, op_mod, (uint32_t)section << 1);
    memcpy(PRM_PTR(set_hca_cap_in, in, capability), cap, 4096);
    return fwd_cmd(&d, in, sizeof(in), out, sizeof(out));
}

/* An e-switch manager's driver sets its VFs' capabilities (mlx5_vport_set_other_func_cap()). This
 * function may not do so, as a VF may not: bad parameter. Its own capabilities stay. */
START_TEST(another_functions_capabilities_are_not_its_business)
{
    static const uint32_t fields[] = {PRM_set_hca_cap_in_other_function_FIELD,
                                      PRM_set_hca_cap_in_ec_vf_function_FIELD,
                                      PRM_set_hca_cap_in_function_id_FIELD};
    struct prm_set_hca_cap_in in[1] = {0};
    void *cap = PRM_PTR(set_hca_cap_in, in, capability);
    struct prm_set_hca_cap_out out[1];
    uint8_t before[4096], after[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, before), 0);
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    memcpy(cap, before, sizeof(before));
    PRM_SET(cmd_hca_cap, cap, log_max_qp, 17);
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        prm_set(in, fields[i], 1, "field");
        ck_assert_uint_eq(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_NO_FUNCTION);
        ck_assert_uint_eq(PRM_GET(set_hca_cap_out, out, status), PRM_CMD_STATUS_BAD_PARAM);
        prm_set(in, fields[i], 0, "field");
    }
    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, after), 0);
    ck_assert_mem_eq(after, before, sizeof(after));
}
END_TEST

/* Driver handle_hca_cap(): writes the current values back with a few changes. */
START_TEST(capabilities_are_set)
{
    uint8_t bytes[4096];
    void *cap = bytes;

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, cap), 0);
    PRM_SET(cmd_hca_cap, cap, log_max_qp, 17);
    PRM_SET(cmd_hca_cap, cap, cmdif_checksum, 0);
    PRM_SET(cmd_hca_cap, cap, roce, 0);
    ck_assert_uint_eq(set_cap(0, cap), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, cap), 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, cap, log_max_qp), 17);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, cap, roce), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, 4, CAP_CUR, cap), SYN_NO_CAP_SECTION);
    ck_assert_uint_eq(fwd_query_cap(&d, 4, CAP_MAX, cap), 0);
}
END_TEST

START_TEST(capabilities_beyond_maximum_are_refused)
{
    uint8_t bytes[4096];
    void *cap = bytes;

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_MAX, cap), 0);
    PRM_SET(cmd_hca_cap, cap, log_max_qp, 31);
    ck_assert_uint_eq(set_cap(0, cap), SYN_CAP_TOO_HIGH);
    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_MAX, cap), 0);
    PRM_SET(cmd_hca_cap, cap, log_uar_page_sz, 0xffff);
    ck_assert_uint_eq(set_cap(0, cap), SYN_CAP_TOO_HIGH);
    memset(cap, 0, sizeof(bytes));
    PRM_SET(atomic_caps, cap, atomic_req_8B_endianness_mode, 2); /* a value without meaning */
    ck_assert_uint_eq(set_cap(3, cap), SYN_CAP_TOO_HIGH);
    ck_assert_uint_eq(set_cap(4, cap), SYN_NO_CAP_SECTION);
}
END_TEST

/* The driver's handle_hca_cap_atomic() asks for results of atomics in the host's byte order;
 * without that request they are big-endian. A reset forgets the request. */
START_TEST(byte_order_of_atomics_is_the_drivers_choice)
{
    uint8_t bytes[4096] = {0};
    void *cap = bytes;

    ck_assert_uint_eq(set_cap(PRM_HCA_CAP_TYPE_ATOMIC, cap), SYN_OK);
    ck_assert(d.fw->hca.big_endian_replies);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_ATOMIC, CAP_CUR, cap), SYN_OK);
    ck_assert_uint_eq(PRM_GET(atomic_caps, cap, atomic_req_8B_endianness_mode), 0);
    ck_assert_uint_eq(PRM_GET(atomic_caps, cap, supported_atomic_req_8B_endianness_mode_1), 1);
    ck_assert_uint_eq(PRM_GET(atomic_caps, cap, atomic_operations), 15);
    ck_assert_uint_eq(PRM_GET(atomic_caps, cap, atomic_size_qp), 4 | 8 | 16 | 32 | 64 | 128);
    memset(bytes, 0, sizeof(bytes));
    PRM_SET(atomic_caps, cap, atomic_req_8B_endianness_mode, 1);
    ck_assert_uint_eq(set_cap(PRM_HCA_CAP_TYPE_ATOMIC, cap), SYN_OK);
    ck_assert(!d.fw->hca.big_endian_replies);
}
END_TEST

/* Abilities that the function does not have, or that the driver may not remove: if a set fails,
 * nothing of it is kept. */
START_TEST(capabilities_are_not_made_by_setting_them)
{
    static const struct {
        const char *field;
        uint64_t value;
        enum syn syn;
    } table[] = {
        {"sf", 1, SYN_CAP_FIXED},
        {"release_all_pages", 1, SYN_CAP_FIXED},
        {"mkey_by_name", 1, SYN_CAP_FIXED},
        {"num_vhca_ports", 2, SYN_CAP_FIXED},
        {"xrc", 0, SYN_CAP_FIXED},
        {"log_max_cq", 3, SYN_CAP_FIXED},
        {"log_uar_page_sz", 4, SYN_CAP_TOO_HIGH}, /* a host of 64 KiB pages */
        {"pkey_table_size", 1, SYN_CAP_TOO_HIGH},
        {"cmdif_checksum", 2, SYN_CAP_TOO_HIGH},
    };
    uint8_t before[4096], after[4096];
    uint8_t bytes[4096];
    void *cap = bytes;

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, before), 0);
    memcpy(cap, before, sizeof(bytes));
    PRM_SET(cmd_hca_cap, cap, log_max_qp, 10);
    fwd_set(cap, prm_struct_find("cmd_hca_cap"), table[_i].field, table[_i].value);
    ck_assert_uint_eq(set_cap(0, cap), table[_i].syn);
    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, after), 0);
    ck_assert_mem_eq(before, after, sizeof(before));
}
END_TEST

START_TEST(capabilities_are_fixed_after_init)
{
    uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, cap), 0);
    ck_assert_uint_eq(set_cap(0, cap), SYN_SYS_STATE);
}
END_TEST

/* The driver's handle_hca_cap_odp(): switches on what the device can. Without that, only the
 * operations of RC, and SENDs of UD, may miss pages. UC never may. */
START_TEST(page_faults_are_the_drivers_choice)
{
    const uint8_t of_rc = FAULT_SEND | FAULT_RECEIVE | FAULT_WRITE | FAULT_READ | FAULT_ATOMIC;
    const uint8_t before[PAGING_TRANSPORTS] = {[PAGING_RC] = of_rc, [PAGING_UD] = FAULT_SEND};
    const uint8_t all[PAGING_TRANSPORTS] = {
        [PAGING_RC] = of_rc | FAULT_SRQ_RECEIVE,
        [PAGING_UD] = FAULT_SEND | FAULT_SRQ_RECEIVE,
        [PAGING_XRC] = of_rc | FAULT_SRQ_RECEIVE,
        [PAGING_DC] = of_rc | FAULT_SRQ_RECEIVE,
    };
    const struct hca *hca = &d.fw->hca;
    uint8_t bytes[4096];
    void *cap = bytes;

    fwd_clear(&d);
    fwd_init_as(&d, _i ? "cx7" : "cx5");
    hca = &d.fw->hca;
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    ck_assert_mem_eq(hca->may_fault, before, sizeof(before));
    ck_assert(!hca->memory_faults);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_ODP, _i ? CAP_CUR : CAP_MAX, cap), 0);
    PRM_SET(odp_cap, cap, mem_page_fault, _i);
    ck_assert_uint_eq(set_cap(PRM_HCA_CAP_TYPE_ODP, cap), SYN_OK);
    ck_assert_mem_eq(hca->may_fault, all, sizeof(all));
    ck_assert(hca->memory_faults == _i);
    if (!_i) {
        PRM_SET(odp_cap, cap, mem_page_fault, 1);
        ck_assert_uint_eq(set_cap(PRM_HCA_CAP_TYPE_ODP, cap), SYN_CAP_TOO_HIGH);
    }
}
END_TEST

/* -- every field ------------------------------------------------------------------------------- */

/* Calls visit() for each scalar of a layout and of its nested structures, with its offset there. */
typedef void field_fn(const struct section *section, const char *name, uint32_t field);

static void each_field(const struct section *section, const struct prm_struct *s, uint32_t bit,
                       field_fn *visit)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];

        if (f->type) {
            each_field(section, f->type, bit + f->bit, visit);
        } else {
            visit(section, f->name, (bit + f->bit) << 8 | f->width);
        }
    }
}

static GString *taken; /* names of the fields whose change was accepted */

/* Executes SET_HCA_CAP with one field changed. Either it is refused and changes nothing, or the set
 * value is read back and is within the maximum. */
static void try_to_set(const struct section *section, const char *name, uint64_t value,
                       uint32_t field)
{
    static uint8_t max[4096], before[4096], wished[4096], after[4096];
    enum syn syn;

    ck_assert_uint_eq(fwd_query_cap(&d, section->section, CAP_MAX, max), 0);
    ck_assert_uint_eq(fwd_query_cap(&d, section->section, CAP_CUR, before), 0);
    memcpy(wished, before, sizeof(wished));
    prm_set(wished, field, value & prm_field_mask(field), name);
    if (memcmp(wished, before, sizeof(wished)) == 0) {
        return;
    }
    syn = set_cap(section->section, wished);
    ck_assert_uint_eq(fwd_query_cap(&d, section->section, CAP_CUR, after), 0);
    if (syn == SYN_OK && section->section == PRM_HCA_CAP_TYPE_ATOMIC &&
        field != PRM_atomic_caps_atomic_req_8B_endianness_mode_FIELD) {
        ck_assert_uint_eq(prm_get(wished, field), 0); /* the driver leaves out the other fields */
        ck_assert_mem_eq(after, before, sizeof(after));
    } else if (syn == SYN_OK) {
        ck_assert_mem_eq(after, wished, sizeof(after));
        ck_assert_uint_le(prm_get(after, field), prm_get(max, field));
        g_string_append_printf(taken, "%s ", name);
        ck_assert_uint_eq(set_cap(section->section, before), SYN_OK);
    } else {
        ck_assert_mem_eq(after, before, sizeof(after));
        ck_assert_msg(syn == SYN_CAP_FIXED || syn == SYN_CAP_TOO_HIGH || syn == SYN_NO_CAP_SECTION,
                      "%s: syndrome 0x%x", name, syn_code(syn));
    }
}

static void try_field(const struct section *section, const char *name, uint32_t field)
{
    static uint8_t cur[4096];
    uint64_t value;

    ck_assert_uint_eq(fwd_query_cap(&d, section->section, CAP_CUR, cur), 0);
    value = prm_get(cur, field);
    try_to_set(section, name, value - 1, field);
    if (PRM_FIELD_WIDTH(field) > 1) {
        try_to_set(section, name, value + 1, field);
    }
}

#define CX7 4 /* its place in the list of profiles */

/* Lists exactly the fields that can be set: the same for every generation, but for the memory
 * scheme of page faults. */
START_TEST(few_fields_can_be_set)
{
    static const char *const odp = "send receive write read atomic srq_receive ";
    g_autofree char *expected = NULL;

    fwd_clear(&d);
    fwd_init_as(&d, fw_profile_names()[_i]);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    taken = g_string_new(NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        uint8_t cap[4096];

        if (sections[i].section == PRM_HCA_CAP_TYPE_DEV_MEM &&
            fwd_query_cap(&d, sections[i].section, CAP_MAX, cap) == SYN_NO_CAP_SECTION) {
            continue; /* before the -5 */
        }
        each_field(&sections[i], prm_struct_find(sections[i].layout), 0, try_field);
    }
    expected = g_strconcat("log_max_qp cache_line_128byte cmdif_checksum dct roce "
                           "log_max_current_uc_list atomic_req_8B_endianness_mode "
                           "srq_receive srq_receive ",
                           odp, odp, _i < CX7 ? "" : "mem_page_fault ", NULL);
    ck_assert_str_eq(taken->str, expected);
    g_string_free(taken, TRUE);
}
END_TEST

/* -- what a profile allows --------------------------------------------------------------------- */

#define AT_MOST(name, most)                                                                        \
    {                                                                                              \
        PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_##name##_FIELD, most                             \
    }

/* Makes the device one of a generation that has at most this. */
static void allow(const struct fw_cap_limit *at_most)
{
    static struct fw_profile profile;

    profile = *d.fw->profile;
    profile.at_most = at_most;
    d.fw->profile = &profile;
}

static uint64_t general(bool max, uint32_t field)
{
    static uint8_t cap[4096];

    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, max, cap), 0);
    return prm_get(cap, field);
}

/* A feature that a generation lacks is not reported, cannot be set, and its commands are unknown,
 * as on an older card. */
START_TEST(a_profile_takes_away)
{
    static const struct fw_cap_limit at_most[] = {AT_MOST(xrc, 0), AT_MOST(log_max_xrcd, 0), {0}};
    uint8_t bytes[4096];
    void *cap = bytes;

    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ALLOC_XRCD, 0), SYN_OK);
    allow(at_most);
    ck_assert_uint_eq(general(CAP_MAX, PRM_cmd_hca_cap_xrc_FIELD), 0);
    ck_assert_uint_eq(general(CAP_CUR, PRM_cmd_hca_cap_log_max_xrcd_FIELD), 0);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ALLOC_XRCD, 0), SYN_BAD_OPCODE);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_CREATE_XRC_SRQ, 0), SYN_BAD_OPCODE);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_ALLOC_PD, 0), SYN_OK);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_TEARDOWN_HCA, 0), SYN_OK);
    ck_assert_uint_eq(fwd_query_cap(&d, 0, CAP_CUR, cap), 0);
    PRM_SET(cmd_hca_cap, cap, xrc, 1);
    ck_assert_uint_eq(set_cap(0, cap), SYN_CAP_TOO_HIGH);
}
END_TEST

/* A command that another feature also needs stays: MODIFY_CQ moderates and resizes. */
START_TEST(a_shared_command_stays)
{
    static const struct fw_cap_limit no_resize[] = {AT_MOST(cq_resize, 0), {0}};
    static const struct fw_cap_limit nothing[] = {
        AT_MOST(cq_resize, 0), AT_MOST(cq_moderation, 0), AT_MOST(cq_period_mode_modify, 0), {0}};

    allow(no_resize);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_MODIFY_CQ, 0), SYN_IN_LEN);
    allow(nothing);
    ck_assert_uint_eq(fwd_simple(&d, PRM_CMD_OP_MODIFY_CQ, 0), SYN_BAD_OPCODE);
}
END_TEST

/* A number is capped, and a section disappears with its flag. A profile does not add what the model
 * lacks. */
START_TEST(a_profile_caps_and_grants_nothing)
{
    static const struct fw_cap_limit at_most[] = {AT_MOST(max_indirection, 1),
                                                  AT_MOST(nic_flow_table, 0),
                                                  AT_MOST(sf, 1),
                                                  AT_MOST(log_max_pd, 24),
                                                  {0}};
    uint64_t pds = general(CAP_MAX, PRM_cmd_hca_cap_log_max_pd_FIELD);
    uint8_t cap[4096];

    allow(at_most);
    ck_assert_uint_eq(general(CAP_MAX, PRM_cmd_hca_cap_max_indirection_FIELD), 1);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_FLOW_TABLE, CAP_MAX, cap),
                      SYN_NO_CAP_SECTION);
    ck_assert_uint_eq(general(CAP_MAX, PRM_cmd_hca_cap_sf_FIELD), 0);
    ck_assert_uint_eq(general(CAP_MAX, PRM_cmd_hca_cap_log_max_pd_FIELD), pds);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("caps");
    TCase *cold = tcase_create("cold"), *ready = tcase_create("ready");

    tcase_add_checked_fixture(cold, setup, teardown);
    tcase_add_test(cold, capabilities_of_the_default_generation_are_unchanged);
    tcase_add_test(cold, another_functions_capabilities_are_not_its_business);
    tcase_add_test(cold, capabilities_are_set);
    tcase_add_loop_test(cold, capabilities_are_not_made_by_setting_them, 0, 9);
    tcase_add_test(cold, capabilities_beyond_maximum_are_refused);
    tcase_add_loop_test(cold, page_faults_are_the_drivers_choice, 0, 2);
    tcase_add_test(cold, byte_order_of_atomics_is_the_drivers_choice);
    tcase_add_loop_test(cold, few_fields_can_be_set, 0,
                        (int)g_strv_length((char **)fw_profile_names()));
    suite_add_tcase(s, cold);

    tcase_add_checked_fixture(ready, setup_ready, teardown);
    tcase_add_loop_test(ready, current_is_within_maximum, 0, G_N_ELEMENTS(sections));
    tcase_add_loop_test(ready, reserved_capability_bits_are_0, 0, G_N_ELEMENTS(sections));
    tcase_add_test(ready, advertised_is_implemented);
    tcase_add_test(ready, unsupported_abilities_are_not_advertised);
    tcase_add_test(ready, ethernet_is_complete);
    tcase_add_loop_test(ready, unknown_sections_are_refused, 0, 7);
    tcase_add_test(ready, capabilities_are_fixed_after_init);
    tcase_add_test(ready, a_profile_takes_away);
    tcase_add_test(ready, a_shared_command_stays);
    tcase_add_test(ready, a_profile_caps_and_grants_nothing);
    suite_add_tcase(s, ready);
    return s;
}
