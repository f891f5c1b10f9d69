/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, changes and ends data encryption keys and logins. */
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/dek.h"

#define XTS_KEYS_MAX 64 /* bytes of the two keys of 256 bits */
#define WRAP_BYTES   8  /* that wrapping adds (RFC 3394) */
#define PLAIN_MAX    (XTS_KEYS_MAX + DEK_KEYTAG_BYTES)

/* Bits of modify_field_select. */
#define MODIFY_KEY 1ull

/* Bytes 00, 01 and so on; and the ASCII text "hcasim credential", padded with zeros. */
const uint8_t card_kek[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                              16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
const uint8_t card_credential[LOGIN_SECRET_BYTES] = "hcasim credential";

bool crypto_is_there(const struct hca *hca)
{
    return hca->limits.crypto != HCA_CRYPTO_NONE && aes_is_there();
}

/* Whether the user has logged in. */
static bool dek_user_is_in(struct hca *hca, uint16_t uid)
{
    for (uint32_t num = 0; num < 1u << DEK_LOG_LOGINS; num++) {
        const struct obj *login = obj_find(&hca->crypto_logins, num);

        if (login && login->uid == uid) {
            return true;
        }
    }
    return false;
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
    if (!dek_user_is_in(hca, uid)) {
        return SYN_DEK_LOGIN;
    }
    return aes_unwrap(card_kek, key, len + WRAP_BYTES, plain) ? SYN_OK : SYN_DEK_KEY;
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

/* The card has one credential and one KEK, both with number 0. */
enum syn crypto_login_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_crypto_login_obj *object = ctx;
    uint8_t secret[LOGIN_SECRET_BYTES];
    struct crypto_login *login;

    if (!crypto_is_there(hca) || hca->limits.crypto != HCA_CRYPTO_WRAPPED) {
        return SYN_LOGIN_MODE;
    }
    if (PRM_GET(crypto_login_obj, object, credential_pointer) ||
        PRM_GET(crypto_login_obj, object, session_import_kek_ptr)) {
        return SYN_LOGIN_NUMBER;
    }
    if (!aes_unwrap(card_kek, PRM_PTR(crypto_login_obj, object, credential),
                    LOGIN_SECRET_BYTES + WRAP_BYTES, secret) ||
        memcmp(secret, card_credential, sizeof(secret))) {
        return SYN_LOGIN_CREDENTIAL;
    }
    login = obj_make(hca, OBJ_CRYPTO_LOGIN, uid, sizeof(*login));
    if (!login) {
        return SYN_NO_MEMORY;
    }
    PRM_SET(crypto_login_obj, login->ctx, state, PRM_CRYPTO_LOGIN_STATE_VALID);
    *num = login->obj.num;
    return SYN_OK;
}
