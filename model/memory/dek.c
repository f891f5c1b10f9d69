/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, changes and ends data encryption keys. */
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"

#define XTS_KEYS_MAX 64 /* bytes of the two keys of 256 bits */
#define PLAIN_MAX    (XTS_KEYS_MAX + DEK_KEYTAG_BYTES)

/* Bits of modify_field_select. */
#define MODIFY_KEY 1ull

bool crypto_is_there(const struct hca *hca)
{
    return hca->limits.crypto != HCA_CRYPTO_NONE && aes_is_there();
}

/* Finds the keys in the command: as they are, or wrapped together with the key tag. */
static enum syn dek_take_key(struct hca *hca, uint16_t uid,
                             const struct prm_encryption_key_obj *object, size_t keys,
                             bool has_keytag, uint8_t plain[PLAIN_MAX])
{
    const uint8_t *key = PRM_PTR(encryption_key_obj, object, key);
    size_t len = keys + (has_keytag ? DEK_KEYTAG_BYTES : 0);

    if (hca->limits.crypto == HCA_CRYPTO_PLAINTEXT) {
        memcpy(plain, key, len);
        return SYN_OK;
    }
    return kek_unwrap(hca, uid, key, len + KEK_WRAP_BYTES, plain);
}

/* Gives the DEK the keys of the command; if that fails, the DEK keeps its own. */
static enum syn dek_set_key(struct hca *hca, struct dek *dek, uint16_t uid,
                            const struct prm_encryption_key_obj *object)
{
    uint32_t size = PRM_GET(encryption_key_obj, object, key_size);
    size_t keys = size == PRM_DEK_SIZE_128 ? XTS_KEYS_MAX / 2 : XTS_KEYS_MAX;
    bool has_keytag = PRM_GET(encryption_key_obj, object, has_keytag);
    uint8_t plain[PLAIN_MAX] = {0};
    struct aes_xts *xts;
    enum syn syn = dek_take_key(hca, uid, object, keys, has_keytag, plain);

    if (syn) {
        return syn;
    }
    xts = aes_xts_new(plain, keys);
    if (!xts) {
        return SYN_DEK_KEY;
    }
    aes_xts_free(dek->xts);
    dek->xts = xts;
    dek->has_keytag = has_keytag;
    memcpy(dek->keytag, plain + keys, DEK_KEYTAG_BYTES);
    memset(plain, 0, sizeof(plain));
    PRM_SET(encryption_key_obj, dek->ctx, key_size, size);
    PRM_SET(encryption_key_obj, dek->ctx, has_keytag, has_keytag);
    return SYN_OK;
}

static enum syn dek_check(const struct hca *hca, const struct prm_encryption_key_obj *object)
{
    if (!crypto_is_there(hca) ||
        PRM_GET(encryption_key_obj, object, key_purpose) != PRM_DEK_PURPOSE_AES_XTS) {
        return SYN_DEK_PURPOSE;
    }
    return PRM_GET(encryption_key_obj, object, key_size) > PRM_DEK_SIZE_256 ? SYN_DEK_SIZE : SYN_OK;
}

enum syn dek_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_encryption_key_obj *object = ctx;
    uint32_t pdn = PRM_GET(encryption_key_obj, object, pd);
    struct obj *pd = obj_find(&hca->pds, pdn);
    enum syn syn = dek_check(hca, object);
    struct dek *dek;

    syn = syn ? syn : uid_check(pd, uid, SYN_DEK_PD);
    if (syn) {
        return syn;
    }
    dek = obj_make(hca, OBJ_ENCRYPTION_KEY, uid, sizeof(*dek));
    if (!dek) {
        return SYN_NO_MEMORY;
    }
    syn = dek_set_key(hca, dek, uid, object);
    if (syn) {
        obj_end(hca, &dek->obj);
        return syn;
    }
    dek->pd = pd;
    dek->pdn = pdn;
    obj_ref(&dek->obj, pd);
    PRM_SET(encryption_key_obj, dek->ctx, state, PRM_DEK_STATE_READY);
    PRM_SET(encryption_key_obj, dek->ctx, key_purpose, PRM_DEK_PURPOSE_AES_XTS);
    PRM_SET(encryption_key_obj, dek->ctx, pd, pdn);
    PRM_SET(encryption_key_obj, dek->ctx, opaque, PRM_GET(encryption_key_obj, object, opaque));
    *num = dek->obj.num;
    return SYN_OK;
}

/* Only the key can be changed (mlx5_crypto_modify_dek_key()). */
enum syn dek_modify(struct hca *hca, struct obj *obj, const void *ctx)
{
    const struct prm_encryption_key_obj *object = ctx;
    struct dek *dek = (struct dek *)obj;
    enum syn syn = dek_check(hca, object);

    if (syn) {
        return syn;
    }
    if (PRM_GET(encryption_key_obj, object, modify_field_select) != MODIFY_KEY) {
        return SYN_DEK_FIELDS;
    }
    return dek_set_key(hca, dek, obj->uid, object);
}

/* A wrapped key is only queried in a session (mlx5dv_dek_create(3)). */
enum syn dek_may_query(struct hca *hca, uint16_t uid)
{
    return hca->limits.crypto == HCA_CRYPTO_WRAPPED && !kek_has_session(hca, uid) ? SYN_DEK_LOGIN
                                                                                  : SYN_OK;
}

void dek_free(struct hca *hca, struct obj *obj)
{
    struct dek *dek = (struct dek *)obj;

    aes_xts_free(dek->xts);
    obj_unref(obj, dek->pd);
    obj_end(hca, obj);
}

struct dek *dek_find(struct hca *hca, uint32_t num, uint32_t pdn)
{
    struct dek *dek = (struct dek *)obj_find(&hca->deks, num);

    return dek && dek->pdn == pdn ? dek : NULL;
}
