/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the target of a command: a table lists the commands that name a function, vport or port,
 * and the places of these fields.
 *
 * A command that is not listed here is about the function that it was given to, its vport and its
 * port. In the listed commands, function 0 with no flag set means the function itself. Port 0 or
 * the port's own number means the function's port. Whatever the vport number is, the vport is the
 * function's own, unless other_vport is set. Then the number names a vport in the group that the
 * function manages. That group has one vport, number 0, which is the function's own.
 */
#include "fw/cmd_table.h"

/* A place is a field's code (prm/access.h), or 0. */
static const struct about {
    uint16_t opcode;
    enum syn refusal;
    uint32_t other; /* names another function or vport if it is not 0 */
    uint32_t port;
    uint32_t number; /* number of the vport, if other_vport is set */
} abouts[] = {
#define ABOUT_FUNCTION(op, layout, field)                                                          \
    {                                                                                              \
        PRM_CMD_OP_##op, SYN_NO_FUNCTION, PRM_##layout##_in_##field##_FIELD, 0, 0                  \
    }
#define FUNCTION(op, layout) ABOUT_FUNCTION(op, layout, function_id)
#define FUNCTION_OR_OTHER(op, layout)                                                              \
    FUNCTION(op, layout), ABOUT_FUNCTION(op, layout, other_function),                              \
        ABOUT_FUNCTION(op, layout, ec_vf_function)
#define VPORT(op, layout)                                                                          \
    {                                                                                              \
        PRM_CMD_OP_##op, SYN_NO_VPORT, PRM_##layout##_in_other_vport_FIELD, 0,                     \
            PRM_##layout##_in_vport_number_FIELD                                                   \
    }
#define VPORT_AND_PORT(op, layout)                                                                 \
    {                                                                                              \
        PRM_CMD_OP_##op, SYN_NO_VPORT, PRM_##layout##_in_other_vport_FIELD,                        \
            PRM_##layout##_in_port_num_FIELD, PRM_##layout##_in_vport_number_FIELD                 \
    }
    FUNCTION(ENABLE_HCA, enable_hca),
    FUNCTION(DISABLE_HCA, disable_hca),
    FUNCTION(QUERY_PAGES, query_pages),
    FUNCTION(MANAGE_PAGES, manage_pages),
    FUNCTION_OR_OTHER(QUERY_HCA_CAP, query_hca_cap),
    FUNCTION_OR_OTHER(SET_HCA_CAP, set_hca_cap),
#define TUNNELLED(op)                                                                              \
    {                                                                                              \
        PRM_CMD_OP_##op, SYN_NO_FUNCTION, PRM_general_obj_in_cmd_hdr_vhca_tunnel_id_FIELD, 0, 0    \
    }
    TUNNELLED(CREATE_GENERAL_OBJECT),
    TUNNELLED(MODIFY_GENERAL_OBJECT),
    TUNNELLED(QUERY_GENERAL_OBJECT),
    TUNNELLED(DESTROY_GENERAL_OBJECT),
    VPORT(QUERY_VPORT_STATE, query_vport_state),
    VPORT(QUERY_NIC_VPORT_CONTEXT, query_nic_vport_context),
    VPORT(MODIFY_NIC_VPORT_CONTEXT, modify_nic_vport_context),
    VPORT_AND_PORT(QUERY_HCA_VPORT_CONTEXT, query_hca_vport_context),
    VPORT_AND_PORT(QUERY_HCA_VPORT_PKEY, query_hca_vport_pkey),
    VPORT_AND_PORT(QUERY_VPORT_COUNTER, query_vport_counter),
    VPORT(QUERY_VNIC_ENV, query_vnic_env),
    VPORT(QUERY_Q_COUNTER, query_q_counter),
    VPORT(SET_FLOW_TABLE_ROOT, set_flow_table_root),
    {PRM_CMD_OP_SET_FLOW_TABLE_ROOT, SYN_NO_VPORT,
     PRM_set_flow_table_root_in_table_of_other_vport_FIELD, 0,
     PRM_set_flow_table_root_in_table_vport_number_FIELD},
    VPORT(CREATE_FLOW_TABLE, create_flow_table),
    VPORT(MODIFY_FLOW_TABLE, modify_flow_table),
    VPORT(DESTROY_FLOW_TABLE, destroy_flow_table),
    VPORT(CREATE_FLOW_GROUP, create_flow_group),
    VPORT(DESTROY_FLOW_GROUP, destroy_flow_group),
    VPORT(SET_FLOW_TABLE_ENTRY, set_fte),
    VPORT(DELETE_FLOW_TABLE_ENTRY, delete_fte),
#undef VPORT_AND_PORT
#undef VPORT
#undef FUNCTION_OR_OTHER
#undef FUNCTION
#undef ABOUT_FUNCTION
};

static enum syn cmd_about_resolve(const struct fw *fw, const struct about *about,
                                  const struct fw_cmd *cmd)
{
    uint64_t port = about->port ? prm_get(cmd->in, about->port) : 0;
    bool in_group = about->number && prm_get(cmd->in, about->number) == 0;

    if ((prm_get(cmd->in, about->other) && !in_group) || (port && port != fw_uplink(fw)->number)) {
        return about->refusal;
    }
    return SYN_OK;
}

enum syn fw_cmd_resolve(struct fw *fw, struct fw_cmd *cmd)
{
    cmd->vport = fw->hca.vport;
    for (size_t i = 0; i < G_N_ELEMENTS(abouts); i++) {
        enum syn syn =
            abouts[i].opcode == cmd->opcode ? cmd_about_resolve(fw, &abouts[i], cmd) : SYN_OK;

        if (syn != SYN_OK) {
            return syn;
        }
    }
    return SYN_OK;
}
