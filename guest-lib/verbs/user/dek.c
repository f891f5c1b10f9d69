/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data encryption keys, and the sessions in which wrapped keys can be imported: mlx5dv_dek_*() and
 * mlx5dv_crypto_*(). They are general objects, which are made by DevX commands. A context may have
 * one session of its own (mlx5dv_crypto_login()), and any number of session objects.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/user/dv_crypto.h"

#define MAX_NUMBER 0xffffffu /* of a credential or KEK */

/* The errno of a command that failed: the errno itself or, if the device refused it, its status. */
static int dek_errno(int err, const void *out)
{
    return err == EREMOTEIO
               ? hv_status_errno((int)PRM_GET(general_obj_out_cmd_hdr, (void *)out, status))
               : err;
}

static bool dek_has_type(struct hv_hca *hca, unsigned type)
{
    return HV_CAP(hca, general_obj_types) >> type & 1;
}

/* Makes an object of a type. in begins with the head of the command. */
static struct mlx5dv_devx_obj *dek_new(struct ibv_context *ctx, unsigned type, void *in, size_t len)
{
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    struct mlx5dv_devx_obj *obj;

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, type);
    obj = hv_dv_devx_obj_create(ctx, in, len, out, sizeof(out));
    if (!obj) {
        errno = dek_errno(errno, out);
    }
    return obj;
}

/* Queries an object. Returns 0 or errno. */
static int dek_ask(struct mlx5dv_devx_obj *obj, unsigned type, void *out, size_t len)
{
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    int err;

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_QUERY_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, type);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, obj->id);
    err = hv_dv_devx_obj_query(obj, in, sizeof(in), out, len);
    return err ? dek_errno(err, out) : 0;
}

/* -- sessions ---------------------------------------------------------------------------------- */

struct login_in {
    struct prm_general_obj_in_cmd_hdr head[1];
    struct prm_crypto_login_obj obj[1];
};

struct login_out {
    struct prm_general_obj_out_cmd_hdr head[1];
    struct prm_crypto_login_obj obj[1];
};

static struct mlx5dv_devx_obj *dek_login(struct ibv_context *ctx,
                                         const struct mlx5dv_crypto_login_attr_ex *attr)
{
    struct hv_hca *hca = hv_hca_of(ctx);
    struct mlx5dv_crypto_caps caps;
    struct login_in in = {0};

    hv_dv_crypto_caps(hca, &caps);
    if (!(caps.flags & MLX5DV_CRYPTO_CAPS_WRAPPED_CRYPTO_OPERATIONAL) ||
        !dek_has_type(hca, PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (attr->credential_id > MAX_NUMBER || attr->import_kek_id > MAX_NUMBER ||
        attr->credential_len > sizeof(((struct mlx5dv_crypto_login_attr *)0)->credential)) {
        errno = EINVAL;
        return NULL;
    }
    PRM_SET(crypto_login_obj, in.obj, credential_pointer, attr->credential_id);
    PRM_SET(crypto_login_obj, in.obj, session_import_kek_ptr, attr->import_kek_id);
    memcpy(PRM_PTR(crypto_login_obj, in.obj, credential), attr->credential, attr->credential_len);
    return dek_new(ctx, PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN, &in, sizeof(in));
}

static int dek_login_state(struct mlx5dv_devx_obj *login, enum mlx5dv_crypto_login_state *state)
{
    struct login_out out = {0};
    int err = dek_ask(login, PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN, &out, sizeof(out));

    if (!err) {
        *state = PRM_GET(crypto_login_obj, out.obj, state) == PRM_CRYPTO_LOGIN_STATE_VALID
                     ? MLX5DV_CRYPTO_LOGIN_STATE_VALID
                     : MLX5DV_CRYPTO_LOGIN_STATE_INVALID;
    }
    return err;
}

int hv_dv_crypto_login(struct ibv_context *context, struct mlx5dv_crypto_login_attr *attr)
{
    struct hv_context *ctx = hv_context(context);
    const struct mlx5dv_crypto_login_attr_ex ex = {
        .credential_id = attr->credential_id,
        .import_kek_id = attr->import_kek_id,
        .credential = attr->credential,
        .credential_len = sizeof(attr->credential),
    };
    int err = 0;

    if (attr->comp_mask) {
        return EINVAL;
    }
    pthread_mutex_lock(&ctx->crypto_lock);
    if (ctx->crypto_login) {
        err = EEXIST;
    } else {
        ctx->crypto_login = dek_login(context, &ex);
        err = ctx->crypto_login ? 0 : errno;
    }
    pthread_mutex_unlock(&ctx->crypto_lock);
    return err;
}

int hv_dv_crypto_login_query_state(struct ibv_context *context,
                                   enum mlx5dv_crypto_login_state *state)
{
    struct hv_context *ctx = hv_context(context);
    int err = 0;

    pthread_mutex_lock(&ctx->crypto_lock);
    if (ctx->crypto_login) {
        err = dek_login_state(ctx->crypto_login, state);
    } else {
        *state = MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN;
    }
    pthread_mutex_unlock(&ctx->crypto_lock);
    return err;
}

int hv_dv_crypto_logout(struct ibv_context *context)
{
    struct hv_context *ctx = hv_context(context);
    int err = ENOENT;

    pthread_mutex_lock(&ctx->crypto_lock);
    if (ctx->crypto_login) {
        err = hv_dv_devx_obj_destroy(ctx->crypto_login);
        ctx->crypto_login = err ? ctx->crypto_login : NULL;
    }
    pthread_mutex_unlock(&ctx->crypto_lock);
    return err;
}

struct mlx5dv_crypto_login_obj *hv_dv_crypto_login_create(struct ibv_context *ctx,
                                                          struct mlx5dv_crypto_login_attr_ex *attr)
{
    struct mlx5dv_crypto_login_obj *login;
    struct mlx5dv_devx_obj *obj;

    if (attr->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    obj = dek_login(ctx, attr);
    if (!obj) {
        return NULL;
    }
    login = g_new0(struct mlx5dv_crypto_login_obj, 1);
    login->obj = obj;
    return login;
}

int hv_dv_crypto_login_query(struct mlx5dv_crypto_login_obj *login,
                             struct mlx5dv_crypto_login_query_attr *attr)
{
    return attr->comp_mask ? EINVAL : dek_login_state(login->obj, &attr->state);
}

int hv_dv_crypto_login_destroy(struct mlx5dv_crypto_login_obj *login)
{
    int err = hv_dv_devx_obj_destroy(login->obj);

    if (!err) {
        g_free(login);
    }
    return err;
}

/* -- keys -------------------------------------------------------------------------------------- */

struct dek_in {
    struct prm_general_obj_in_cmd_hdr head[1];
    struct prm_encryption_key_obj obj[1];
};

struct dek_out {
    struct prm_general_obj_out_cmd_hdr head[1];
    struct prm_encryption_key_obj obj[1];
};

/* Whether keys are wrapped exactly if the device wants it, in a session: 0 or EINVAL. */
static int dek_check_import(struct ibv_context *ctx, const struct mlx5dv_dek_init_attr *attr)
{
    struct mlx5dv_crypto_caps caps;
    bool wants_wrapped, is_wrapped;

    hv_dv_crypto_caps(hv_hca_of(ctx), &caps);
    wants_wrapped = caps.wrapped_import_method & MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS;
    is_wrapped = !(attr->comp_mask & MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN) || attr->crypto_login;
    if (!(attr->comp_mask & MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN) && !hv_context(ctx)->crypto_login) {
        return EINVAL;
    }
    return is_wrapped == wants_wrapped ? 0 : EINVAL;
}

static int dek_check_attr(struct ibv_context *ctx, const struct mlx5dv_dek_init_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(ctx);

    if (!hv_dv_crypto_engines(hca) || !dek_has_type(hca, PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY)) {
        return EOPNOTSUPP;
    }
    if (attr->key_purpose != MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS ||
        (attr->key_size != MLX5DV_CRYPTO_KEY_SIZE_128 &&
         attr->key_size != MLX5DV_CRYPTO_KEY_SIZE_256) ||
        (attr->comp_mask & ~(uint64_t)MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN)) {
        return EINVAL;
    }
    return dek_check_import(ctx, attr);
}

struct mlx5dv_dek *hv_dv_dek_create(struct ibv_context *ctx, struct mlx5dv_dek_init_attr *attr)
{
    struct dek_in in = {0};
    struct mlx5dv_devx_obj *obj;
    struct mlx5dv_dek *dek;
    int err = dek_check_attr(ctx, attr);

    if (err) {
        errno = err;
        return NULL;
    }
    PRM_SET(encryption_key_obj, in.obj, key_size,
            attr->key_size == MLX5DV_CRYPTO_KEY_SIZE_128 ? PRM_DEK_SIZE_128 : PRM_DEK_SIZE_256);
    PRM_SET(encryption_key_obj, in.obj, has_keytag, attr->has_keytag);
    PRM_SET(encryption_key_obj, in.obj, key_purpose, PRM_DEK_PURPOSE_AES_XTS);
    PRM_SET(encryption_key_obj, in.obj, pd, hv_pd(attr->pd)->pdn);
    memcpy(PRM_PTR(encryption_key_obj, in.obj, opaque), attr->opaque, sizeof(attr->opaque));
    memcpy(PRM_PTR(encryption_key_obj, in.obj, key), attr->key, sizeof(attr->key));
    obj = dek_new(ctx, PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY, &in, sizeof(in));
    if (!obj) {
        return NULL;
    }
    dek = g_new0(struct mlx5dv_dek, 1);
    dek->obj = obj;
    return dek;
}

int hv_dv_dek_query(struct mlx5dv_dek *dek, struct mlx5dv_dek_attr *attr)
{
    struct dek_out out = {0};
    int err;

    if (attr->comp_mask) {
        return EINVAL;
    }
    err = dek_ask(dek->obj, PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY, &out, sizeof(out));
    if (err) {
        return err;
    }
    attr->state = PRM_GET(encryption_key_obj, out.obj, state) == PRM_DEK_STATE_READY
                      ? MLX5DV_DEK_STATE_READY
                      : MLX5DV_DEK_STATE_ERROR;
    memcpy(attr->opaque, PRM_PTR(encryption_key_obj, out.obj, opaque), sizeof(attr->opaque));
    return 0;
}

int hv_dv_dek_destroy(struct mlx5dv_dek *dek)
{
    int err = hv_dv_devx_obj_destroy(dek->obj);

    if (!err) {
        g_free(dek);
    }
    return err;
}
