/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and ends key encryption keys, credentials and sessions, and unwraps what sessions import.
 */
#include <string.h>
#include "model/memory/aes.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"

#define WRAPPED_MAX (KEK_SECRET_BYTES + KEK_WRAP_BYTES)

/* Bytes 00, 01 and so on; and the ASCII text "hcasim credential", padded with zeros. */
const uint8_t card_kek[KEK_MAX] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
const uint8_t card_credential[KEK_SECRET_BYTES] = "hcasim credential";

static bool kek_is_wrapped_mode(const struct hca *hca)
{
    return crypto_is_there(hca) && hca->limits.crypto == HCA_CRYPTO_WRAPPED;
}

static bool kek_run(const struct import_kek *kek, const uint8_t *wrapped, size_t len,
                    uint8_t *plain)
{
    return aes_unwrap(kek ? kek->key : card_kek, kek ? kek->len : KEK_MAX, wrapped, len, plain);
}

/* The valid session of that number, if it is the user's. */
static struct crypto_login *kek_session(struct hca *hca, uint16_t uid, uint32_t num)
{
    struct crypto_login *login = (struct crypto_login *)obj_find(&hca->crypto_logins, num);

    return login && login->obj.uid == uid &&
                   PRM_GET(crypto_login_obj, login->ctx, state) == PRM_CRYPTO_LOGIN_STATE_VALID
               ? login
               : NULL;
}

bool kek_has_session(struct hca *hca, uint16_t uid)
{
    for (uint32_t num = 0; num < 1u << KEK_LOG_LOGINS; num++) {
        if (kek_session(hca, uid, num)) {
            return true;
        }
    }
    return false;
}

/* Wrapping protects against changes, so at most one KEK unwraps the bytes. */
static enum syn kek_import(struct hca *hca, uint16_t uid, bool needs_officer,
                           const uint8_t *wrapped, size_t len, uint8_t *plain)
{
    enum syn syn = needs_officer ? SYN_LOGIN_ROLE : SYN_DEK_LOGIN;

    for (uint32_t num = 0; num < 1u << KEK_LOG_LOGINS; num++) {
        const struct crypto_login *login = kek_session(hca, uid, num);

        if (login && (login->is_officer || !needs_officer)) {
            if (kek_run(login->kek, wrapped, len, plain)) {
                return SYN_OK;
            }
            syn = SYN_DEK_KEY;
        }
    }
    return syn;
}

enum syn kek_unwrap(struct hca *hca, uint16_t uid, const uint8_t *wrapped, size_t len,
                    uint8_t *plain)
{
    return kek_import(hca, uid, false, wrapped, len, plain);
}

/* Makes every session of the KEK or the credential of that number invalid. The other number is 0,
 * which stands for the card's own, which is never destroyed. */
static void kek_end_sessions(struct hca *hca, uint32_t kek, uint32_t credential)
{
    for (uint32_t num = 0; num < 1u << KEK_LOG_LOGINS; num++) {
        struct crypto_login *login = (struct crypto_login *)obj_find(&hca->crypto_logins, num);

        if (login &&
            ((kek && PRM_GET(crypto_login_obj, login->ctx, session_import_kek_ptr) == kek) ||
             (credential &&
              PRM_GET(crypto_login_obj, login->ctx, credential_pointer) == credential))) {
            PRM_SET(crypto_login_obj, login->ctx, state, PRM_CRYPTO_LOGIN_STATE_INVALID);
            login->kek = NULL;
        }
    }
}

/* -- KEKs and credentials ---------------------------------------------------------------------- */

enum syn import_kek_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_import_kek_obj *object = ctx;
    uint32_t size = PRM_GET(import_kek_obj, object, key_size);
    size_t len = size == PRM_DEK_SIZE_128 ? KEK_MAX / 2 : KEK_MAX;
    uint8_t plain[WRAPPED_MAX];
    struct import_kek *kek;
    enum syn syn;

    if (size > PRM_DEK_SIZE_256) {
        return SYN_DEK_SIZE;
    }
    syn = kek_import(hca, uid, true, PRM_PTR(import_kek_obj, object, key), len + KEK_WRAP_BYTES,
                     plain);
    if (syn) {
        return syn;
    }
    kek = obj_make(hca, OBJ_IMPORT_KEK, uid, sizeof(*kek));
    if (!kek) {
        return SYN_NO_MEMORY;
    }
    memcpy(kek->key, plain, len);
    kek->len = (uint8_t)len;
    PRM_SET(import_kek_obj, kek->ctx, key_size, size);
    *num = kek->obj.num;
    return SYN_OK;
}

void import_kek_free(struct hca *hca, struct obj *obj)
{
    kek_end_sessions(hca, obj->num, 0);
    obj_end(hca, obj);
}

enum syn credential_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_credential_obj *object = ctx;
    uint32_t role = PRM_GET(credential_obj, object, credential_role);
    uint8_t plain[WRAPPED_MAX];
    struct credential *credential;
    enum syn syn;

    if (role > PRM_CREDENTIAL_ROLE_USER) {
        return SYN_LOGIN_ROLE;
    }
    syn =
        kek_import(hca, uid, true, PRM_PTR(credential_obj, object, credential), WRAPPED_MAX, plain);
    if (syn) {
        return syn;
    }
    credential = obj_make(hca, OBJ_CREDENTIAL, uid, sizeof(*credential));
    if (!credential) {
        return SYN_NO_MEMORY;
    }
    memcpy(credential->secret, plain, KEK_SECRET_BYTES);
    PRM_SET(credential_obj, credential->ctx, credential_role, role);
    *num = credential->obj.num;
    return SYN_OK;
}

void credential_free(struct hca *hca, struct obj *obj)
{
    kek_end_sessions(hca, 0, obj->num);
    obj_end(hca, obj);
}

/* -- sessions ---------------------------------------------------------------------------------- */

/* The number 0 of a KEK and of a credential are the card's own. */
enum syn crypto_login_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    const struct prm_crypto_login_obj *object = ctx;
    uint32_t pointer = PRM_GET(crypto_login_obj, object, credential_pointer);
    uint32_t kekn = PRM_GET(crypto_login_obj, object, session_import_kek_ptr);
    const struct credential *credential = (void *)obj_find(&hca->credentials, pointer);
    const struct import_kek *kek = (void *)obj_find(&hca->import_keks, kekn);
    uint8_t secret[WRAPPED_MAX];
    struct crypto_login *login;

    if (!kek_is_wrapped_mode(hca)) {
        return SYN_LOGIN_MODE;
    }
    if ((pointer && !credential) || (kekn && !kek)) {
        return SYN_LOGIN_NUMBER;
    }
    if (!kek_run(kek, PRM_PTR(crypto_login_obj, object, credential), WRAPPED_MAX, secret) ||
        memcmp(secret, credential ? credential->secret : card_credential, KEK_SECRET_BYTES)) {
        return SYN_LOGIN_CREDENTIAL;
    }
    login = obj_make(hca, OBJ_CRYPTO_LOGIN, uid, sizeof(*login));
    if (!login) {
        return SYN_NO_MEMORY;
    }
    login->kek = kek;
    login->is_officer = !credential || PRM_GET(credential_obj, credential->ctx, credential_role) ==
                                           PRM_CREDENTIAL_ROLE_OFFICER;
    PRM_SET(crypto_login_obj, login->ctx, state, PRM_CRYPTO_LOGIN_STATE_VALID);
    PRM_SET(crypto_login_obj, login->ctx, credential_pointer, pointer);
    PRM_SET(crypto_login_obj, login->ctx, session_import_kek_ptr, kekn);
    *num = login->obj.num;
    return SYN_OK;
}
