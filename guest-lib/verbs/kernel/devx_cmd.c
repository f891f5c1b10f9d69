/* SPDX-License-Identifier: BSD-2-Clause */
/* DevX: which commands there are, as a table. */
#include <string.h>
#include "guest-lib/verbs/kernel/devx_cmd.h"

#define MASK24 0xffffffu
#define MASK32 0xffffffffu

/* Creating commands: where the new object's number is, and how the command that ends it is made. */
static const struct create_row {
    uint16_t op, destroy;
    bool in_input;   /* the program chose the number */
    uint16_t at;     /* the dword with the number in the output, or the input */
    uint32_t mask;   /* its bits */
    uint16_t copied; /* bytes of the input, from the third dword, that say where the object is */
    uint16_t destroy_at, destroy_len; /* where the number goes in the destroying command */
} creates[] = {
#define ROW(create, end)                                                                           \
    {                                                                                              \
        PRM_CMD_OP_##create, PRM_CMD_OP_##end, false, 8, MASK24, 0, 8, 16                          \
    }
#define ROW32(create, end)                                                                         \
    {                                                                                              \
        PRM_CMD_OP_##create, PRM_CMD_OP_##end, false, 8, MASK32, 0, 8, 16                          \
    }
    ROW32(CREATE_GENERAL_OBJECT, DESTROY_GENERAL_OBJECT),
    ROW(CREATE_MKEY, DESTROY_MKEY),
    ROW(CREATE_CQ, DESTROY_CQ),
    ROW(ALLOC_PD, DEALLOC_PD),
    ROW(ALLOC_TRANSPORT_DOMAIN, DEALLOC_TRANSPORT_DOMAIN),
    ROW(CREATE_RMP, DESTROY_RMP),
    ROW(CREATE_SQ, DESTROY_SQ),
    ROW(CREATE_RQ, DESTROY_RQ),
    ROW(CREATE_RQT, DESTROY_RQT),
    ROW(CREATE_TIR, DESTROY_TIR),
    ROW(CREATE_TIS, DESTROY_TIS),
    ROW(ALLOC_Q_COUNTER, DEALLOC_Q_COUNTER),
    ROW32(ALLOC_FLOW_COUNTER, DEALLOC_FLOW_COUNTER),
    ROW32(ALLOC_PACKET_REFORMAT_CONTEXT, DEALLOC_PACKET_REFORMAT_CONTEXT),
    ROW32(ALLOC_MODIFY_HEADER_CONTEXT, DEALLOC_MODIFY_HEADER_CONTEXT),
    ROW(CREATE_QP, DESTROY_QP),
    ROW(CREATE_SRQ, DESTROY_SRQ),
    ROW(CREATE_XRC_SRQ, DESTROY_XRC_SRQ),
    ROW(CREATE_DCT, DESTROY_DCT),
    ROW(CREATE_XRQ, DESTROY_XRQ),
    ROW(ALLOC_XRCD, DEALLOC_XRCD),
    ROW(CREATE_PSV, DESTROY_PSV),
    /* a table is named by its vport and type, a group and a rule by their table, too */
    {PRM_CMD_OP_CREATE_FLOW_TABLE, PRM_CMD_OP_DESTROY_FLOW_TABLE, false, 8, MASK24, 12, 0x14,
     PRM_SIZE(destroy_flow_table_in)},
    {PRM_CMD_OP_CREATE_FLOW_GROUP, PRM_CMD_OP_DESTROY_FLOW_GROUP, false, 8, MASK24, 16, 0x18,
     PRM_SIZE(destroy_flow_group_in)},
    {PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY, true, 0x20, MASK32, 16,
     0x20, PRM_SIZE(delete_fte_in)},
    /* a membership is named by QPN and group */
    {PRM_CMD_OP_ATTACH_TO_MCG, PRM_CMD_OP_DETACH_FROM_MCG, true, 8, MASK24, 24, 8,
     PRM_SIZE(detach_from_mcg_in)},
    {PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT, PRM_CMD_OP_DESTROY_SCHEDULING_ELEMENT, false, 0x10,
     MASK32, 4, 0x0c, PRM_SIZE(destroy_scheduling_element_in)},
    {PRM_CMD_OP_ADD_VXLAN_UDP_DPORT, PRM_CMD_OP_DELETE_VXLAN_UDP_DPORT, true, 0x0c, 0xffff, 0, 0x0c,
     16},
    {PRM_CMD_OP_SET_L2_TABLE_ENTRY, PRM_CMD_OP_DELETE_L2_TABLE_ENTRY, true, 0x14, MASK24, 0, 0x14,
     PRM_SIZE(delete_l2_table_entry_in)},
#undef ROW
#undef ROW32
};

/* Commands on an object that is there: who created it, and where its number stands. */
static const struct use_row {
    uint16_t op;
    enum devx_role role;
    uint16_t create_op, at;
    uint32_t mask;
} uses[] = {
#define QUERY(op, create)                                                                          \
    {                                                                                              \
        PRM_CMD_OP_##op, DEVX_QUERY, PRM_CMD_OP_##create, 8, MASK24                                \
    }
#define MODIFY(op, create)                                                                         \
    {                                                                                              \
        PRM_CMD_OP_##op, DEVX_MODIFY, PRM_CMD_OP_##create, 8, MASK24                               \
    }
    {PRM_CMD_OP_QUERY_GENERAL_OBJECT, DEVX_QUERY, PRM_CMD_OP_CREATE_GENERAL_OBJECT, 8, MASK32},
    {PRM_CMD_OP_MODIFY_GENERAL_OBJECT, DEVX_MODIFY, PRM_CMD_OP_CREATE_GENERAL_OBJECT, 8, MASK32},
    QUERY(QUERY_MKEY, CREATE_MKEY),
    QUERY(QUERY_CQ, CREATE_CQ),
    MODIFY(MODIFY_CQ, CREATE_CQ),
    QUERY(QUERY_SQ, CREATE_SQ),
    MODIFY(MODIFY_SQ, CREATE_SQ),
    QUERY(QUERY_RQ, CREATE_RQ),
    MODIFY(MODIFY_RQ, CREATE_RQ),
    QUERY(QUERY_RMP, CREATE_RMP),
    MODIFY(MODIFY_RMP, CREATE_RMP),
    QUERY(QUERY_RQT, CREATE_RQT),
    MODIFY(MODIFY_RQT, CREATE_RQT),
    QUERY(QUERY_TIR, CREATE_TIR),
    MODIFY(MODIFY_TIR, CREATE_TIR),
    QUERY(QUERY_TIS, CREATE_TIS),
    MODIFY(MODIFY_TIS, CREATE_TIS),
    {PRM_CMD_OP_QUERY_FLOW_TABLE, DEVX_QUERY, PRM_CMD_OP_CREATE_FLOW_TABLE, 0x14, MASK24},
    {PRM_CMD_OP_MODIFY_FLOW_TABLE, DEVX_MODIFY, PRM_CMD_OP_CREATE_FLOW_TABLE, 0x14, MASK24},
    {PRM_CMD_OP_QUERY_FLOW_GROUP, DEVX_QUERY, PRM_CMD_OP_CREATE_FLOW_GROUP, 0x18, MASK32},
    {PRM_CMD_OP_QUERY_FLOW_TABLE_ENTRY, DEVX_QUERY, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, 0x20, MASK32},
    {PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, DEVX_MODIFY, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, 0x20, MASK32},
    {PRM_CMD_OP_QUERY_Q_COUNTER, DEVX_QUERY, PRM_CMD_OP_ALLOC_Q_COUNTER, 0x1c, 0xff},
    {PRM_CMD_OP_QUERY_FLOW_COUNTER, DEVX_QUERY, PRM_CMD_OP_ALLOC_FLOW_COUNTER, 0x1c, MASK32},
    QUERY(QUERY_QP, CREATE_QP),
    MODIFY(RST2INIT_QP, CREATE_QP),
    MODIFY(INIT2INIT_QP, CREATE_QP),
    MODIFY(INIT2RTR_QP, CREATE_QP),
    MODIFY(RTR2RTS_QP, CREATE_QP),
    MODIFY(RTS2RTS_QP, CREATE_QP),
    MODIFY(SQERR2RTS_QP, CREATE_QP),
    MODIFY(2ERR_QP, CREATE_QP),
    MODIFY(2RST_QP, CREATE_QP),
    QUERY(QUERY_SRQ, CREATE_SRQ),
    MODIFY(ARM_RQ, CREATE_RQ),
    QUERY(QUERY_XRC_SRQ, CREATE_XRC_SRQ),
    MODIFY(ARM_XRC_SRQ, CREATE_XRC_SRQ),
    QUERY(QUERY_DCT, CREATE_DCT),
    MODIFY(ARM_DCT_FOR_KEY_VIOLATION, CREATE_DCT),
    QUERY(QUERY_XRQ, CREATE_XRQ),
    QUERY(QUERY_XRQ_DC_PARAMS_ENTRY, CREATE_XRQ),
    QUERY(QUERY_XRQ_ERROR_PARAMS, CREATE_XRQ),
    MODIFY(ARM_XRQ, CREATE_XRQ),
    MODIFY(SET_XRQ_DC_PARAMS_ENTRY, CREATE_XRQ),
    MODIFY(RELEASE_XRQ_ERROR, CREATE_XRQ),
    MODIFY(MODIFY_XRQ, CREATE_XRQ),
    {PRM_CMD_OP_QUERY_MODIFY_HEADER_CONTEXT, DEVX_QUERY, PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT, 8,
     MASK32},
    {PRM_CMD_OP_QUERY_PACKET_REFORMAT_CONTEXT, DEVX_QUERY, PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT,
     8, MASK32},
#undef QUERY
#undef MODIFY
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
/* Opcodes for which nobody needs to ask (MLX5_CMD_OP_GENERAL_START, _END). */
#define GENERAL_START 0xb00
#define GENERAL_END   0xd00

static const struct create_row *devx_find_create(uint16_t op)
{
    for (size_t i = 0; i < G_N_ELEMENTS(creates); i++) {
        if (creates[i].op == op) {
            return &creates[i];
        }
    }
    return NULL;
}

static const struct use_row *devx_find_use(uint16_t op)
{
    for (size_t i = 0; i < G_N_ELEMENTS(uses); i++) {
        if (uses[i].op == op) {
            return &uses[i];
        }
    }
    return NULL;
}

static bool devx_is_general(uint16_t op)
{
    for (size_t i = 0; i < G_N_ELEMENTS(generals); i++) {
        if (generals[i] == op) {
            return true;
        }
    }
    return op >= GENERAL_START && op < GENERAL_END;
}

bool devx_cmd_is(const void *in, enum devx_role role)
{
    uint16_t op = (uint16_t)PRM_GET(general_obj_in_cmd_hdr, in, opcode);
    /* SET_FLOW_TABLE_ENTRY makes a rule, or changes one */
    bool second = op == PRM_CMD_OP_SET_FLOW_TABLE_ENTRY && PRM_GET(cmd_in, in, op_mod) == 1;
    const struct use_row *use;

    if (op == PRM_CMD_OP_SET_FLOW_TABLE_ENTRY && PRM_GET(cmd_in, in, op_mod) > 1) {
        return false;
    }
    switch (role) {
    case DEVX_CREATE:
        return devx_find_create(op) && !second;
    case DEVX_GENERAL:
        return devx_is_general(op);
    default:
        use = devx_find_use(op);
        return use && use->role == role && (op != PRM_CMD_OP_SET_FLOW_TABLE_ENTRY || second);
    }
}

bool devx_cmd_object(const void *in, size_t inlen, uint16_t *create_op, uint32_t *id,
                     uint32_t *obj_type)
{
    const struct use_row *use =
        devx_find_use((uint16_t)PRM_GET(general_obj_in_cmd_hdr, in, opcode));

    if (!use || use->at + 4u > inlen) {
        return false;
    }
    *create_op = use->create_op;
    *id = (uint32_t)prm_load32((const uint8_t *)in + use->at) & use->mask;
    *obj_type = use->create_op == PRM_CMD_OP_CREATE_GENERAL_OBJECT
                    ? (uint32_t)PRM_GET(general_obj_in_cmd_hdr, in, obj_type)
                    : 0;
    return true;
}

void devx_cmd_set_umem_valid(void *in, size_t inlen)
{
    uint16_t op = (uint16_t)PRM_GET(general_obj_in_cmd_hdr, in, opcode);

#define ROOM(layout) (inlen >= PRM_SIZE(layout))
    switch (op) {
    case PRM_CMD_OP_CREATE_MKEY:
        if (ROOM(create_mkey_in)) {
            PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
        }
        break;
    case PRM_CMD_OP_CREATE_CQ:
        if (ROOM(create_cq_in)) {
            PRM_SET(create_cq_in, in, cq_umem_valid, 1);
            PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), dbr_umem_valid, 1);
        }
        break;
    case PRM_CMD_OP_MODIFY_CQ:
        if (ROOM(modify_cq_in)) {
            PRM_SET(modify_cq_in, in, cq_umem_valid, 1);
        }
        break;
    case PRM_CMD_OP_CREATE_QP:
        if (ROOM(create_qp_in)) {
            PRM_SET(create_qp_in, in, wq_umem_valid, 1);
            PRM_SET(qpc, PRM_PTR(create_qp_in, in, qpc), dbr_umem_valid, 1);
        }
        break;
    case PRM_CMD_OP_CREATE_XRC_SRQ:
        if (ROOM(create_xrc_srq_in)) {
            PRM_SET(create_xrc_srq_in, in, xrc_srq_umem_valid, 1);
            PRM_SET(xrc_srqc, PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry), dbr_umem_valid,
                    1);
        }
        break;
#define WQ_IN(name, ctx_field, layout)                                                             \
    case PRM_CMD_OP_CREATE_##name:                                                                 \
        if (ROOM(create_##layout##_in)) {                                                          \
            struct prm_wq *wq =                                                                    \
                PRM_PTR(layout##c, PRM_PTR(create_##layout##_in, in, ctx_field), wq);              \
            PRM_SET(wq, wq, dbr_umem_valid, 1);                                                    \
            PRM_SET(wq, wq, wq_umem_valid, 1);                                                     \
        }                                                                                          \
        break
        WQ_IN(RQ, ctx, rq);
        WQ_IN(SQ, ctx, sq);
        WQ_IN(RMP, ctx, rmp);
#undef WQ_IN
    default:
        break;
    }
#undef ROOM
}

void devx_cmd_created(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, const void *out,
                      size_t outlen)
{
    uint16_t op = (uint16_t)PRM_GET(general_obj_in_cmd_hdr, in, opcode);
    const struct create_row *row = devx_find_create(op);
    const uint8_t *where = row->in_input ? in : out;
    struct prm_general_obj_in_cmd_hdr *destroy = (void *)obj->destroy;

    obj->create_op = op;
    if (row->at + 4u <= (row->in_input ? inlen : outlen)) {
        obj->id = (uint32_t)prm_load32(where + row->at) & row->mask;
    }
    obj->destroy_len = row->destroy_len;
    if (op == PRM_CMD_OP_CREATE_GENERAL_OBJECT) {
        obj->obj_type = (uint32_t)PRM_GET(general_obj_in_cmd_hdr, in, obj_type);
        PRM_SET(general_obj_in_cmd_hdr, destroy, obj_type, obj->obj_type);
    }
    if (8u + row->copied <= inlen) {
        memcpy(obj->destroy + 8, (const uint8_t *)in + 8, row->copied);
    }
    PRM_SET(general_obj_in_cmd_hdr, destroy, opcode, row->destroy);
    PRM_SET(general_obj_in_cmd_hdr, destroy, uid, PRM_GET(general_obj_in_cmd_hdr, in, uid));
    prm_store32(obj->destroy + row->destroy_at, obj->id);
}
