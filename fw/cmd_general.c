/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on general objects: four opcodes for objects of many types. The head of the input names
 * the type.
 *
 * Each supported type is a kind of object (GENERAL in model/core/obj_classes.def) and has a row
 * here: how many numbers an object takes, which layout follows the head, and which function makes
 * it, and which changes it, if it can be changed. Types that QUERY_HCA_CAP does not report are
 * refused.
 */
#include <string.h>
#include "fw/cmd.h"
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"
#include "model/memory/sw_icm.h"
#include "model/rdma/av_qp_mapping.h"
#include "model/port/sched.h"
#include "model/rdma/reserved_qpn.h"
#include "model/steering/meter.h"
#include "model/steering/sampler.h"

struct general_type {
    enum obj_kind kind;
    unsigned log_range; /* log2 of the numbers that one object takes */
    size_t layout;      /* bytes that follow the head of CREATE and QUERY */
    size_t kept;        /* offset of these bytes in the object */
    enum syn (*create)(struct hca *hca, uint16_t uid, const void *layout, uint32_t *num);
    enum syn (*modify)(struct hca *hca, struct obj *obj, const void *layout); /* or NULL */
    enum syn (*may_query)(struct hca *hca, uint16_t uid);                     /* or NULL */
};

static const struct general_type general_types[] = {
    {OBJ_AV_QP_MAPPING, 0, PRM_SIZE(av_qp_mapping), offsetof(struct av_qp_mapping, ctx),
     av_qp_mapping_create, NULL, NULL},
    {OBJ_RESERVED_QPN, OBJ_LOG_RESERVED, 0, 0, reserved_qpn_create, NULL, NULL},
    {OBJ_SW_ICM, 0, PRM_SIZE(sw_icm), offsetof(struct sw_icm, ctx), sw_icm_create, NULL, NULL},
    {OBJ_SAMPLER, 0, PRM_SIZE(flow_sampler), offsetof(struct flow_sampler, ctx),
     flow_sampler_create, NULL, NULL},
    {OBJ_FLOW_METER, 0, PRM_SIZE(flow_meter), offsetof(struct flow_meter, ctx), flow_meter_create,
     flow_meter_modify, NULL},
    {OBJ_SCHED_ELEM, 0, PRM_SIZE(sched_elem_obj), offsetof(struct sched_elem, ctx),
     sched_create_general, sched_modify_general, NULL},
    {OBJ_ENCRYPTION_KEY, 0, PRM_SIZE(encryption_key_obj), offsetof(struct dek, ctx), dek_create,
     dek_modify, dek_may_query},
    {OBJ_CRYPTO_LOGIN, 0, PRM_SIZE(crypto_login_obj), offsetof(struct crypto_login, ctx),
     crypto_login_create, NULL, NULL},
    {OBJ_CREDENTIAL, 0, PRM_SIZE(credential_obj), offsetof(struct credential, ctx),
     credential_create, NULL, NULL},
    {OBJ_IMPORT_KEK, 0, PRM_SIZE(import_kek_obj), offsetof(struct import_kek, ctx),
     import_kek_create, NULL, NULL},
};

/* The row of the type that the input's head names. NULL: the device has no such objects. */
static const struct general_type *general_type(const struct fw *fw, const struct fw_cmd *cmd)
{
    uint16_t type = (uint16_t)PRM_GET(general_obj_in_cmd_hdr, cmd->in, obj_type);

    for (size_t i = 0; i < G_N_ELEMENTS(general_types); i++) {
        if (obj_classes[general_types[i].kind].general_type == type &&
            caps_have_general_type(fw, type)) {
            return &general_types[i];
        }
    }
    return NULL;
}

/* Checks that the op_param has the wanted values: the command is about a whole object of this
 * function. */
static enum syn general_check_head(const struct fw_cmd *cmd,
                                   const struct prm_general_obj_create_param *want)
{
    const struct prm_general_obj_create_param *param =
        PRM_PTR(general_obj_in_cmd_hdr, cmd->in, op_param_create);

    if (PRM_GET(general_obj_create_param, param, alias_object)) {
        return SYN_NO_FUNCTION;
    }
    return memcmp(param, want, sizeof(*want)) == 0 ? SYN_OK : SYN_RESERVED;
}

static enum syn cmd_create_general_object(struct fw *fw, struct fw_cmd *cmd)
{
    const struct general_type *type = general_type(fw, cmd);
    struct prm_general_obj_create_param want[1] = {0};
    uint32_t num = 0;
    enum syn syn;

    if (!type) {
        return SYN_NO_OBJ_TYPE;
    }
    if (cmd->in_len - PRM_SIZE(general_object_in) < type->layout) {
        return SYN_IN_LEN;
    }
    if (PRM_GET(general_obj_create_param, PRM_PTR(general_obj_in_cmd_hdr, cmd->in, op_param_create),
                log_obj_range) != type->log_range) {
        return SYN_LIMIT;
    }
    PRM_SET(general_obj_create_param, want, log_obj_range, type->log_range);
    syn = general_check_head(cmd, want);
    if (syn == SYN_OK) {
        syn = type->create(&fw->hca, cmd->uid, PRM_PTR(general_object_in, cmd->in, object), &num);
    }
    PRM_SET(general_obj_out_cmd_hdr, cmd->out, obj_id, num);
    return syn;
}

/* The object that QUERY and DESTROY name, if this user may access it. */
static enum syn general_find(struct fw *fw, const struct fw_cmd *cmd,
                             const struct general_type *type, struct obj **obj)
{
    static const struct prm_general_obj_create_param none[1];
    enum syn syn = general_check_head(cmd, none);

    if (syn) {
        return syn;
    }
    *obj = obj_find((struct obj_table *)((char *)&fw->hca + obj_classes[type->kind].space),
                    PRM_GET(general_obj_in_cmd_hdr, cmd->in, obj_id));
    if (!*obj || (*obj)->kind != type->kind) {
        return SYN_NO_GENERAL_OBJECT;
    }
    return uid_owns(*obj, cmd->uid) ? SYN_OK : SYN_BAD_UID;
}

static enum syn cmd_query_general_object(struct fw *fw, struct fw_cmd *cmd)
{
    const struct general_type *type = general_type(fw, cmd);
    struct obj *obj;
    enum syn syn;

    if (!type) {
        return SYN_NO_OBJ_TYPE;
    }
    if (cmd->out_len < PRM_SIZE(general_obj_out_cmd_hdr) + type->layout) {
        return SYN_OUT_LEN;
    }
    syn = general_find(fw, cmd, type, &obj);
    if (syn == SYN_OK && type->may_query) {
        syn = type->may_query(&fw->hca, cmd->uid);
    }
    if (syn) {
        return syn;
    }
    PRM_SET(general_obj_out_cmd_hdr, cmd->out, obj_id, obj->num);
    memcpy((char *)cmd->out + PRM_SIZE(general_obj_out_cmd_hdr), (char *)obj + type->kept,
           type->layout);
    return SYN_OK;
}

static enum syn cmd_destroy_general_object(struct fw *fw, struct fw_cmd *cmd)
{
    const struct general_type *type = general_type(fw, cmd);
    struct obj *obj;
    enum syn syn;

    if (!type) {
        return SYN_NO_OBJ_TYPE;
    }
    syn = general_find(fw, cmd, type, &obj);
    if (syn) {
        return syn;
    }
    if (obj->refs) {
        return SYN_IN_USE;
    }
    if (obj_class(obj)->trim && !obj_class(obj)->trim(&fw->hca, obj)) {
        return SYN_AGAIN;
    }
    obj_class(obj)->free(&fw->hca, obj);
    return SYN_OK;
}

static enum syn cmd_modify_general_object(struct fw *fw, struct fw_cmd *cmd)
{
    const struct general_type *type = general_type(fw, cmd);
    struct obj *obj;
    enum syn syn;

    if (!type || !type->modify) {
        return SYN_NO_OBJ_TYPE;
    }
    if (cmd->in_len - PRM_SIZE(general_object_in) < type->layout) {
        return SYN_IN_LEN;
    }
    syn = general_find(fw, cmd, type, &obj);
    return syn ? syn : type->modify(&fw->hca, obj, PRM_PTR(general_object_in, cmd->in, object));
}

const struct fw_cmd_row cmds_general[] = {
    FW_CMD(CREATE_GENERAL_OBJECT, cmd_create_general_object),
    FW_CMD(MODIFY_GENERAL_OBJECT, cmd_modify_general_object),
    FW_CMD(QUERY_GENERAL_OBJECT, cmd_query_general_object),
    FW_CMD(DESTROY_GENERAL_OBJECT, cmd_destroy_general_object),
    {0},
};
