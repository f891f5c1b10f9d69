/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of DevX commands. */
#include <string.h>
#include "guest-lib/verbs/kernel/devx_cmd.h"

/* Commands on objects; prm/cmd_op.prm says which object each is about. */
static const struct prm_command *const objects[] = {
#define CREATE_AND_QUERY(kind) PRM_COMMAND(CREATE_##kind), PRM_COMMAND(QUERY_##kind)
    CREATE_AND_QUERY(MKEY),
    CREATE_AND_QUERY(CQ),
    CREATE_AND_QUERY(QP),
    CREATE_AND_QUERY(SRQ),
    CREATE_AND_QUERY(XRC_SRQ),
    CREATE_AND_QUERY(DCT),
    CREATE_AND_QUERY(XRQ),
    CREATE_AND_QUERY(RMP),
    CREATE_AND_QUERY(SQ),
    CREATE_AND_QUERY(RQ),
    CREATE_AND_QUERY(RQT),
    CREATE_AND_QUERY(TIR),
    CREATE_AND_QUERY(TIS),
    CREATE_AND_QUERY(FLOW_TABLE),
    CREATE_AND_QUERY(FLOW_GROUP),
    CREATE_AND_QUERY(GENERAL_OBJECT),
#undef CREATE_AND_QUERY
    PRM_COMMAND(CREATE_PSV),
    PRM_COMMAND(CREATE_SCHEDULING_ELEMENT),
    PRM_COMMAND(ALLOC_PD),
    PRM_COMMAND(ALLOC_TRANSPORT_DOMAIN),
    PRM_COMMAND(ALLOC_XRCD),
    PRM_COMMAND(ALLOC_Q_COUNTER),
    PRM_COMMAND(QUERY_Q_COUNTER),
    PRM_COMMAND(ALLOC_FLOW_COUNTER),
    PRM_COMMAND(QUERY_FLOW_COUNTER),
    PRM_COMMAND(ALLOC_PACKET_REFORMAT_CONTEXT),
    PRM_COMMAND(QUERY_PACKET_REFORMAT_CONTEXT),
    PRM_COMMAND(ALLOC_MODIFY_HEADER_CONTEXT),
    PRM_COMMAND(SET_FLOW_TABLE_ENTRY),
    PRM_COMMAND(QUERY_FLOW_TABLE_ENTRY),
    PRM_COMMAND(ATTACH_TO_MCG),
    PRM_COMMAND(ADD_VXLAN_UDP_DPORT),
    PRM_COMMAND(SET_L2_TABLE_ENTRY),
    PRM_COMMAND(MODIFY_CQ),
    PRM_COMMAND(RST2INIT_QP),
    PRM_COMMAND(INIT2INIT_QP),
    PRM_COMMAND(INIT2RTR_QP),
    PRM_COMMAND(RTR2RTS_QP),
    PRM_COMMAND(RTS2RTS_QP),
    PRM_COMMAND(SQERR2RTS_QP),
    PRM_COMMAND(2ERR_QP),
    PRM_COMMAND(2RST_QP),
    PRM_COMMAND(ARM_RQ),
    PRM_COMMAND(ARM_XRC_SRQ),
    PRM_COMMAND(ARM_XRQ),
    PRM_COMMAND(SET_XRQ_DC_PARAMS_ENTRY),
    PRM_COMMAND(ARM_DCT_FOR_KEY_VIOLATION),
    PRM_COMMAND(MODIFY_RMP),
    PRM_COMMAND(MODIFY_SQ),
    PRM_COMMAND(MODIFY_RQ),
    PRM_COMMAND(MODIFY_RQT),
    PRM_COMMAND(MODIFY_TIR),
    PRM_COMMAND(MODIFY_TIS),
    PRM_COMMAND(MODIFY_FLOW_TABLE),
    PRM_COMMAND(MODIFY_GENERAL_OBJECT),
};

/* Commands on the function as a whole. */
static const uint16_t generals[] = {
    PRM_CMD_OP_QUERY_HCA_CAP,           PRM_CMD_OP_QUERY_HCA_VPORT_CONTEXT,
    PRM_CMD_OP_QUERY_ESW_VPORT_CONTEXT, PRM_CMD_OP_QUERY_VPORT_STATE,
    PRM_CMD_OP_QUERY_ADAPTER,           PRM_CMD_OP_QUERY_ISSI,
    PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT, PRM_CMD_OP_QUERY_ROCE_ADDRESS,
    PRM_CMD_OP_QUERY_VNIC_ENV,          PRM_CMD_OP_QUERY_VPORT_COUNTER,
    PRM_CMD_OP_GET_DROPPED_PACKET_LOG,  PRM_CMD_OP_NOP,
    PRM_CMD_OP_QUERY_CONG_STATUS,       PRM_CMD_OP_QUERY_CONG_PARAMS,
    PRM_CMD_OP_QUERY_CONG_STATISTICS,   PRM_CMD_OP_QUERY_LAG,
    PRM_CMD_OP_QUERY_ESW_FUNCTIONS,
};
/* A range of opcodes that are always allowed (MLX5_CMD_OP_GENERAL_START, _END). */
#define GENERAL_START 0xb00
#define GENERAL_END   0xd00

static const struct prm_command *devx_find(const void *in)
{
    uint16_t op = (uint16_t)PRM_GET(cmd_in, in, opcode);

    for (size_t i = 0; i < G_N_ELEMENTS(objects); i++) {
        if (objects[i]->opcode == op) {
            return objects[i];
        }
    }
    return NULL;
}

bool devx_cmd_does(const void *in, enum prm_act act)
{
    const struct prm_command *command = devx_find(in);

    if (command == PRM_COMMAND(SET_FLOW_TABLE_ENTRY)) { /* creates a rule, or changes one */
        switch (PRM_GET(cmd_in, in, op_mod)) {
        case PRM_SET_FTE_OP_NEW:
            return act == PRM_CREATES;
        case PRM_SET_FTE_OP_MODIFY:
            return act == PRM_MODIFIES;
        default:
            return false;
        }
    }
    return command && command->act == act;
}

bool devx_cmd_is_general(const void *in)
{
    uint16_t op = (uint16_t)PRM_GET(cmd_in, in, opcode);

    for (size_t i = 0; i < G_N_ELEMENTS(generals); i++) {
        if (generals[i] == op) {
            return true;
        }
    }
    return op >= GENERAL_START && op < GENERAL_END;
}

/* Reads the number of the command's object from len bytes of input or output. False: they end
 * before it. */
static bool devx_number(const struct prm_command *command, const void *image, size_t len,
                        uint32_t *num)
{
    if (PRM_FIELD_BIT(command->number) / 32 * 4 + 4u > len) {
        return false;
    }
    *num = (uint32_t)prm_get(image, command->number);
    return true;
}

bool devx_cmd_object(const void *in, size_t inlen, const struct prm_object **object, uint32_t *id,
                     uint32_t *obj_type)
{
    const struct prm_command *command = devx_find(in);

    if (!command || !devx_number(command, in, inlen, id)) {
        return false;
    }
    /* as in mlx5_ib, the SRQ number in ARM_RQ counts as an RQ's number */
    *object = command == PRM_COMMAND(ARM_RQ) ? PRM_OBJECT(RQ) : command->object;
    *obj_type = *object == PRM_OBJECT(GENERAL_OBJECT)
                    ? (uint32_t)PRM_GET(general_obj_in_cmd_hdr, in, obj_type)
                    : 0;
    return true;
}

bool devx_cmd_is_of_keys(const struct prm_create_mkey_in *in)
{
    const struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint32_t mode = PRM_GET(mkc, mkc, access_mode_1_0) | PRM_GET(mkc, mkc, access_mode_4_2) << 2;

    return mode == PRM_MKC_ACCESS_MODE_KLMS || mode == PRM_MKC_ACCESS_MODE_KSM;
}

void devx_cmd_set_umem_valid(void *in, size_t inlen)
{
    const struct prm_command *command = devx_find(in);

    if (!command || inlen < command->in->size ||
        (command == PRM_COMMAND(CREATE_MKEY) && devx_cmd_is_of_keys(in))) {
        return;
    }
    for (size_t i = 0; i < PRM_UMEM_FIELDS && command->umem_valid[i]; i++) {
        prm_set(in, command->umem_valid[i], 1, command->name);
    }
}

void devx_cmd_created(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, const void *out,
                      size_t outlen)
{
    const struct prm_command *create = devx_find(in), *destroy = create->object->destroy;
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)obj->destroy; /* all inputs begin with it */

    g_assert(destroy->in_least <= sizeof(obj->destroy));
    obj->object = create->object;
    if (create->number_in_out) {
        devx_number(create, out, outlen, &obj->id);
    } else {
        devx_number(create, in, inlen, &obj->id);
    }
    /* the other fields that identify the object */
    prm_copy_common(destroy->in, obj->destroy, create->in, in, inlen);
    if (obj->object == PRM_OBJECT(GENERAL_OBJECT)) {
        obj->obj_type = (uint32_t)PRM_GET(general_obj_in_cmd_hdr, in, obj_type);
        PRM_SET(general_obj_in_cmd_hdr, hdr, obj_type, obj->obj_type);
    }
    PRM_SET(general_obj_in_cmd_hdr, hdr, opcode, destroy->opcode);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, PRM_GET(general_obj_in_cmd_hdr, in, uid));
    prm_set(obj->destroy, destroy->number, obj->id, destroy->name);
}
