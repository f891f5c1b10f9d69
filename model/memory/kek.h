/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions that may import wrapped keys (CRYPTO_LOGIN), and what they are based on: key encryption
 * keys (KEK) and credentials. All three are general objects of a function in wrapped mode.
 *
 * The card is delivered with one KEK and one credential; both have the number 0 (docs/adr/0027). A
 * user proves that it knows a credential when it makes a login object, which names a KEK, too.
 * Everything secret that the user then imports is wrapped by that KEK: data encryption keys
 * (model/memory/dek.h) and, if the credential is an officer's, further KEKs and credentials. Any
 * user may name them in its own login object.
 *
 * If the KEK or the credential of a session is destroyed, the session becomes invalid for good.
 */
#ifndef HCASIM_MODEL_KEK_H
#define HCASIM_MODEL_KEK_H

#include "model/core/hca.h"
#include "prm/prm.h"

#define KEK_LOG_MAX             4 /* log_max_num_import_keks */
#define KEK_LOG_MAX_CREDENTIALS 4 /* log_max_num_creds */
#define KEK_LOG_LOGINS          5
#define KEK_SECRET_BYTES        40 /* of a credential, before it is wrapped */
#define KEK_MAX                 32 /* bytes of the longer keys */
#define KEK_WRAP_BYTES          8  /* that wrapping adds (RFC 3394) */

struct import_kek {
    struct obj obj;
    struct prm_import_kek_obj ctx[1]; /* as QUERY reports it: without the key */
    uint8_t key[KEK_MAX];
    uint8_t len;
};

struct credential {
    struct obj obj;
    struct prm_credential_obj ctx[1]; /* as QUERY reports it: without the secret */
    uint8_t secret[KEK_SECRET_BYTES];
};

struct crypto_login {
    struct obj obj;
    struct prm_crypto_login_obj ctx[1]; /* as QUERY reports it: without the credential */
    const struct import_kek *kek;       /* NULL: the card's. Valid as long as the session is. */
    bool is_officer;
};

/* CREATE_GENERAL_OBJECT; object is as in the command. */
enum syn import_kek_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
enum syn credential_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
enum syn crypto_login_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
void import_kek_free(struct hca *hca, struct obj *obj);
void credential_free(struct hca *hca, struct obj *obj);

/* Whether the user has a valid session. */
bool kek_has_session(struct hca *hca, uint16_t uid);
/* Unwraps len bytes with the KEK of a valid session of the user. DEK_LOGIN: the user has no
 * session; DEK_KEY: they are not wrapped by the KEK of any. */
enum syn kek_unwrap(struct hca *hca, uint16_t uid, const uint8_t *wrapped, size_t len,
                    uint8_t *plain);

/* The credential and the KEK with which a card is delivered. */
extern const uint8_t card_kek[KEK_MAX];
extern const uint8_t card_credential[KEK_SECRET_BYTES];

#endif
