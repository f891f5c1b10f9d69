/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what the firmware refuses, as a table: a command that is correct except for the named
 * fields, and its syndrome.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/cmd_table.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define FIELDS    3
#define LONGEST   4200 /* bytes of the longest command here */
#define REG_BYTES 16   /* bytes of a register that are sent */

static const struct refusal {
    uint16_t opcode;
    enum syn syn;
    struct {
        const char *path; /* path in the command's input; "+N": the byte N */
        uint64_t value;
    } fields[FIELDS];
} refusals[] = {
    /* every command */
    {0xfff, SYN_BAD_OPCODE, {{NULL, 0}}},
    {PRM_CMD_OP_SET_ISSI, SYN_SYS_STATE, {{NULL, 0}}},
    {PRM_CMD_OP_NOP, SYN_BAD_OP_MOD, {{"op_mod", 1}}},
    {PRM_CMD_OP_NOP, SYN_RESERVED, {{"+12", 1}}},
    {PRM_CMD_OP_ALLOC_PD, SYN_BAD_UID, {{"uid", 77}}},
    {PRM_CMD_OP_INIT_HCA, SYN_SYS_STATE, {{NULL, 0}}},

    /* the function */
    {PRM_CMD_OP_ENABLE_HCA, SYN_NO_FUNCTION, {{"function_id", 1}}},
    {PRM_CMD_OP_QUERY_HCA_CAP, SYN_NO_FUNCTION, {{"other_function", 1}}},
    {PRM_CMD_OP_QUERY_HCA_CAP, SYN_NO_FUNCTION, {{"function_id", 1}}},
    {PRM_CMD_OP_QUERY_HCA_CAP, SYN_NO_FUNCTION, {{"ec_vf_function", 1}}},
    {PRM_CMD_OP_QUERY_HCA_CAP, SYN_NO_FUNCTION, {{"other_function", 1}, {"function_id", 1}}},
    {PRM_CMD_OP_QUERY_HCA_CAP, SYN_NO_CAP_SECTION, {{"op_mod", 0x5 << 1}}},
    {PRM_CMD_OP_PAGE_FAULT_RESUME, SYN_NO_FAULT, {{"page_fault_info", 1}}},
    {PRM_CMD_OP_QUERY_PAGES, SYN_NO_FUNCTION, {{"op_mod", 1}, {"function_id", 1}}},
    {PRM_CMD_OP_QUERY_PAGES, SYN_BAD_OP_MOD, {{"op_mod", 9}}},
    {PRM_CMD_OP_MANAGE_PAGES, SYN_NO_FUNCTION, {{"op_mod", 1}, {"function_id", 1}}},
    {PRM_CMD_OP_TEARDOWN_HCA, SYN_BAD_TEARDOWN, {{"profile", 9}}},
    {PRM_CMD_OP_SET_TUNNELED_OPERATIONS,
     SYN_TUNNEL_MATCH,
     {{"asn_match_mask", 0xff00}, {"asn_match_value", 0x0100 + 1}}},

    /* its virtual port */
    {PRM_CMD_OP_QUERY_VPORT_STATE, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_VPORT_STATE, SYN_BAD_OP_MOD, {{"op_mod", 1}}},
    {PRM_CMD_OP_QUERY_VPORT_COUNTER, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_VPORT_COUNTER, SYN_NO_VPORT, {{"port_num", 2}}},
    {PRM_CMD_OP_QUERY_VNIC_ENV, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_HCA_VPORT_CONTEXT, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_HCA_VPORT_CONTEXT, SYN_NO_VPORT, {{"port_num", 2}}},
    {PRM_CMD_OP_QUERY_HCA_VPORT_PKEY, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_HCA_VPORT_PKEY, SYN_NO_VPORT, {{"port_num", 2}}},
    {PRM_CMD_OP_QUERY_HCA_VPORT_PKEY, SYN_LIMIT, {{"pkey_index", 128}}},
    {PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT, SYN_BAD_LIST, {{"allowed_list_type", 3}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT, SYN_VPORT_FIELD, {{"field_select.node_guid", 1}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT, SYN_VPORT_FIELD, {{"field_select.min_inline", 1}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT,
     SYN_BAD_LIST,
     {{"field_select.addresses_list", 1}, {"nic_vport_context.allowed_list_type", 3}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT,
     SYN_BAD_MTU,
     {{"field_select.mtu", 1}, {"nic_vport_context.mtu", 60}}},
    {PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT,
     SYN_BAD_MAC,
     {{"field_select.permanent_address", 1},
      {"nic_vport_context.permanent_address.mac_addr_47_32", 0x0100}}},
    {PRM_CMD_OP_SET_ROCE_ADDRESS, SYN_BAD_GID_INDEX, {{"roce_address_index", 0xffff}}},
    {PRM_CMD_OP_SET_ROCE_ADDRESS,
     SYN_BAD_ROCE_TYPE,
     {{"roce_address.roce_version", 7}, {"+31", 1}}},
    {PRM_CMD_OP_QUERY_ROCE_ADDRESS, SYN_BAD_GID_INDEX, {{"roce_address_index", 0xffff}}},

    /* congestion control: no QCN, no round-trip answers; each parameter has its range */
    {PRM_CMD_OP_QUERY_CONG_STATUS, SYN_CONG_PROTOCOL, {{NULL, 0}}},
    {PRM_CMD_OP_QUERY_CONG_STATUS, SYN_CONG_PRIORITY, {{"cong_protocol", 1}, {"priority", 8}}},
    {PRM_CMD_OP_QUERY_CONG_STATUS, SYN_BAD_OP_MOD, {{"cong_protocol", 1}, {"op_mod", 1}}},
    {PRM_CMD_OP_MODIFY_CONG_STATUS, SYN_CONG_PROTOCOL, {{"cong_protocol", 3}}},
    {PRM_CMD_OP_MODIFY_CONG_STATUS, SYN_CONG_PRIORITY, {{"cong_protocol", 2}, {"priority", 15}}},
    {PRM_CMD_OP_MODIFY_CONG_STATUS, SYN_RESERVED, {{"cong_protocol", 2}, {"+12", 1}}},
    {PRM_CMD_OP_QUERY_CONG_PARAMS, SYN_CONG_PROTOCOL, {{"cong_protocol", 15}}},
    {PRM_CMD_OP_MODIFY_CONG_PARAMS, SYN_CONG_PROTOCOL, {{NULL, 0}}},
    {PRM_CMD_OP_MODIFY_CONG_PARAMS, SYN_CONG_PARAM, {{"cong_protocol", 1}, {"field_select", 1}}},
    {PRM_CMD_OP_MODIFY_CONG_PARAMS,
     SYN_CONG_PARAM,
     {{"cong_protocol", 1}, {"field_select", 1u << 17}}},
    {PRM_CMD_OP_MODIFY_CONG_PARAMS, /* rpg_time_reset 0 */
     SYN_CONG_PARAM,
     {{"cong_protocol", 1}, {"field_select", 1u << 3}}},
    {PRM_CMD_OP_MODIFY_CONG_PARAMS, /* min_time_between_cnps 4096 */
     SYN_CONG_PARAM,
     {{"cong_protocol", 2}, {"field_select", 1u << 2}, {"+54", 0x10}}},
    {PRM_CMD_OP_QUERY_CONG_STATISTICS, SYN_RESERVED, {{"+12", 1}}},

    /* rates of send queues */
    {PRM_CMD_OP_SET_PP_RATE_LIMIT, SYN_PACE_INDEX, {{"ctx.rate_limit", 1}}},
    {PRM_CMD_OP_SET_PP_RATE_LIMIT, SYN_PACE_INDEX, {{"rate_limit_index", 128}}},
    {PRM_CMD_OP_SET_PP_RATE_LIMIT,
     SYN_PACE_RATE,
     {{"rate_limit_index", 1}, {"ctx.rate_limit", 100000001}}},
    {PRM_CMD_OP_SET_PP_RATE_LIMIT, SYN_BAD_UID, {{"rate_limit_index", 1}, {"uid", 9}}},
    {PRM_CMD_OP_SET_PP_RATE_LIMIT, SYN_RESERVED, {{"rate_limit_index", 1}, {"+12", 1}}},
    {PRM_CMD_OP_SET_PP_RATE_LIMIT, SYN_BAD_OP_MOD, {{"rate_limit_index", 1}, {"op_mod", 1}}},

    /* scheduling elements: no tree of the eswitch */
    {PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT, SYN_SCHED_TREE, {{NULL, 0}}},
    {PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT, SYN_SCHED_TREE, {{"scheduling_hierarchy", 2}}},
    {PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT,
     SYN_SCHED_KIND,
     {{"scheduling_hierarchy", 3}, {"scheduling_context.element_type", 1}}},
    {PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT,
     SYN_SCHED_ROOT,
     {{"scheduling_hierarchy", 3}, {"scheduling_context.max_average_bw", 1}}},
    {PRM_CMD_OP_QUERY_SCHEDULING_ELEMENT,
     SYN_NO_SCHEDULING_ELEMENT,
     {{"scheduling_hierarchy", 3}, {"scheduling_element_id", UINT32_MAX}}},
    {PRM_CMD_OP_MODIFY_SCHEDULING_ELEMENT,
     SYN_NO_SCHEDULING_ELEMENT,
     {{"scheduling_hierarchy", 3}, {"scheduling_element_id", 1}}},
    {PRM_CMD_OP_DESTROY_SCHEDULING_ELEMENT,
     SYN_NO_SCHEDULING_ELEMENT,
     {{"scheduling_hierarchy", 3}, {"scheduling_element_id", 1}}},
    {PRM_CMD_OP_DESTROY_SCHEDULING_ELEMENT, SYN_SCHED_TREE, {{"scheduling_element_id", 1}}},
    {PRM_CMD_OP_CREATE_GENERAL_OBJECT, SYN_IN_LEN, {{"hdr.obj_type", 0x26}}},

    /* registers: 0x5006 is PAOS, 0x5008 PPCNT */
    {PRM_CMD_OP_ACCESS_REG, SYN_NO_REG, {{"register_id", 0x9999}}},
    {PRM_CMD_OP_ACCESS_REG, SYN_BAD_OP_MOD, {{"register_id", 0x5006}, {"op_mod", 2}}},
    {PRM_CMD_OP_ACCESS_REG, SYN_NO_PORT, {{"register_id", 0x5006}, {"op_mod", 1}, {"+17", 2}}},
    {PRM_CMD_OP_ACCESS_REG, SYN_REG_ACCESS, {{"register_id", 0x5008}, {"+17", 1}}},
    {PRM_CMD_OP_ACCESS_REG,
     SYN_REG_VALUE,
     {{"register_id", 0x5006}, {"+17", 1}, {"+20", 0x80}}}, /* ase, and no state */

    /* objects */
    {PRM_CMD_OP_QUERY_Q_COUNTER, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_QUERY_Q_COUNTER, SYN_Q_COUNTER_VPORT, {{"aggregate", 1}}},
    {PRM_CMD_OP_QUERY_Q_COUNTER, SYN_NO_Q_COUNTER, {{"counter_set_id", 9}}},
    {PRM_CMD_OP_CREATE_UCTX, SYN_BAD_UCTX_CAP, {{"uctx.cap", 0x80}}},
    {PRM_CMD_OP_DESTROY_UCTX, SYN_NO_UCTX, {{"uid", 9}}},
    {PRM_CMD_OP_DESTROY_UMEM, SYN_NO_UMEM, {{"umem_id", 9}}},
    {PRM_CMD_OP_CREATE_GENERAL_OBJECT, SYN_NO_OBJ_TYPE, {{"hdr.obj_type", 0x13}}},
    {PRM_CMD_OP_CREATE_MKEY, SYN_MKEY_MODE, {{"data_direct", 1}}},
    {PRM_CMD_OP_CREATE_MKEY, SYN_NO_UMEM, {{"mkey_umem_valid", 1}, {"mkey_umem_id", 9}}},

    /* numbers that no object of the kind can have */
    {PRM_CMD_OP_QUERY_MKEY, SYN_NO_MKEY, {{"mkey_index", 0xffffff}}},
    {PRM_CMD_OP_DESTROY_MKEY, SYN_NO_MKEY, {{"mkey_index", 0xffffff}}},
    {PRM_CMD_OP_CREATE_PSV, SYN_NO_PD, {{"num_psv", 1}, {"pd", 0xffffff}}},
    {PRM_CMD_OP_DESTROY_PSV, SYN_NO_PSV, {{"psvn", 0xffffff}}},
    {PRM_CMD_OP_DEALLOC_MEMIC, SYN_NO_MEMIC, {{"memic_start_addr", UINT64_MAX}}},
    {PRM_CMD_OP_MODIFY_MEMIC, SYN_NO_MEMIC, {{"memic_start_addr", UINT64_MAX}}},
    {PRM_CMD_OP_DESTROY_UMEM, SYN_NO_UMEM, {{"umem_id", 0xffffffff}}},
    {PRM_CMD_OP_PAGE_FAULT_RESUME, SYN_NO_FAULT, {{"page_fault_info", UINT64_MAX}}},
    {PRM_CMD_OP_QUERY_GENERAL_OBJECT,
     SYN_NO_OBJ_TYPE, /* this generation has no data encryption keys */
     {{"obj_type", PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY}, {"obj_id", UINT32_MAX}}},
    /* what only the kernel may do */
    {PRM_CMD_OP_PAGE_FAULT_RESUME, SYN_BAD_UID, {{"+3", 1}}},

    {PRM_CMD_OP_CREATE_XRC_SRQ, SYN_SRQ_TYPE, {{"xrc_srq_umem_valid", 1}}},
    {PRM_CMD_OP_CREATE_RQT, SYN_ETH_RQT_LIST, {{"rqt_context.list_q_type", 1}}},
    {PRM_CMD_OP_CREATE_SQ, SYN_HAIRPIN_SIZE, {{"ctx.hairpin", 1}}},
    {PRM_CMD_OP_CREATE_SQ,
     SYN_ETH_WQ, /* such a queue has no ring */
     {{"ctx.hairpin", 1}, {"ctx.wq.log_hairpin_data_sz", 16}, {"ctx.wq.wq_umem_id", 1}}},
    {PRM_CMD_OP_CREATE_SQ,
     SYN_ETH_WQ,
     {{"ctx.hairpin", 1}, {"ctx.wq.log_hairpin_data_sz", 16}, {"ctx.wq.dbr_umem_id", 1}}},
    {PRM_CMD_OP_CREATE_RQ, SYN_ETH_CQ, {{"ctx.mem_rq_type", 1}}},
    {PRM_CMD_OP_CREATE_RQ,
     SYN_ETH_WQ, /* nor has one with an RMP */
     {{"ctx.mem_rq_type", 1}, {"ctx.wq.wq_umem_id", 1}}},
    {PRM_CMD_OP_CREATE_RQ, SYN_HAIRPIN_SIZE, {{"ctx.hairpin", 1}}},
    {PRM_CMD_OP_CREATE_RQ,
     SYN_ETH_WQ,
     {{"ctx.hairpin", 1}, {"ctx.wq.log_hairpin_data_sz", 16}, {"ctx.wq.wq_umem_id", 1}}},
    {PRM_CMD_OP_MANAGE_PAGES, SYN_OUT_LEN, {{"op_mod", 2}, {"input_num_entries", 9}}},

    /* steering: no other virtual port's tables, no larger bulks of counters */
    {PRM_CMD_OP_ADD_VXLAN_UDP_DPORT, SYN_VXLAN_PORT, {{NULL, 0}}},
    {PRM_CMD_OP_DELETE_VXLAN_UDP_DPORT, SYN_VXLAN_PORT, {{"vxlan_udp_port", 8472}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ROOT, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ROOT,
     SYN_NO_VPORT,
     {{"table_of_other_vport", 1}, {"table_vport_number", 1}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ROOT, SYN_FT_TYPE, {{"underlay_qpn", 1}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ROOT, SYN_BAD_OP_MOD, {{"op_mod", 2}}},
    {PRM_CMD_OP_CREATE_FLOW_TABLE, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_MODIFY_FLOW_TABLE, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_DESTROY_FLOW_TABLE, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_CREATE_FLOW_GROUP, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_DESTROY_FLOW_GROUP, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, SYN_BAD_OP_MOD, {{"op_mod", 2}}},
    {PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY, SYN_NO_VPORT, {{"other_vport", 1}, {"vport_number", 1}}},
    {PRM_CMD_OP_ALLOC_FLOW_COUNTER, SYN_FC_BULK, {{"flow_counter_bulk", 8}}},
    {PRM_CMD_OP_ALLOC_FLOW_COUNTER, SYN_FC_BULK, {{"flow_counter_bulk_log_size", 1}}},
    {PRM_CMD_OP_QUERY_FLOW_COUNTER, SYN_LIMIT, {{"num_of_counters", 1025}}},
    {PRM_CMD_OP_QUERY_FLOW_COUNTER, SYN_OUT_LEN, {{"num_of_counters", 1024}}},
    {PRM_CMD_OP_DEALLOC_FLOW_COUNTER, SYN_FC_NOT_FOUND, {{"flow_counter_id", 9}}},
};

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

static const struct prm_struct *layout_of(uint16_t opcode)
{
    const struct fw_cmd_row *row = fw_cmd_find(opcode);

    return row ? row->command->in : prm_struct_find("cmd_in");
}

START_TEST(a_command_that_cannot_be_is_refused_by_name)
{
    const struct refusal *r = &refusals[_i];
    const struct fw_cmd_row *row = fw_cmd_find(r->opcode);
    uint8_t in_bytes[LONGEST] = {0}, out[LONGEST] = {0};
    void *in = in_bytes;
    size_t in_len = row ? row->command->in_least : 16, out_len = row ? row->command->out_least : 16;
    enum syn syn;

    if (r->opcode == PRM_CMD_OP_ACCESS_REG) {
        in_len = PRM_SIZE(access_register_in) + REG_BYTES;
        out_len = PRM_SIZE(access_register_out) + REG_BYTES;
    }
    PRM_SET(cmd_in, in, opcode, r->opcode);
    for (size_t i = 0; i < FIELDS && r->fields[i].path; i++) {
        const char *path = r->fields[i].path;

        if (path[0] == '+') {
            in_bytes[atoi(path)] = (uint8_t)r->fields[i].value;
        } else if (strcmp(path, "uid") == 0 && r->opcode == PRM_CMD_OP_ALLOC_PD) {
            PRM_SET(general_obj_in_cmd_hdr, in, uid, r->fields[i].value);
        } else {
            fwd_set(in, layout_of(r->opcode), path, r->fields[i].value);
        }
    }
    syn = fwd_cmd(&d, in, in_len, out, out_len);
    ck_assert_msg(syn == r->syn, "%s: \"%s\", not \"%s\"", prm_cmd_op_name(r->opcode),
                  syn_text(syn), syn_text(r->syn));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw_refusals");
    TCase *tc = tcase_create("fw_refusals");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_command_that_cannot_be_is_refused_by_name, 0, G_N_ELEMENTS(refusals));
    suite_add_tcase(s, tc);
    return s;
}
