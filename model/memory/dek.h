/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data encryption keys (DEK) and the sessions that may import them (CRYPTO_LOGIN): general objects.
 *
 * A function is in one of two modes (limits.crypto). In wrapped mode, a user proves that it knows
 * the credential of the card when it makes a login object, and may then create DEKs whose key is
 * wrapped by the card's key encryption key (KEK). In plaintext mode, DEKs are created with their
 * key, and there are no logins. The card's credential and KEK are those that it is delivered with
 * (docs/adr/0027).
 *
 * A DEK belongs to a PD. Memory keys of this PD name the DEK in their crypto descriptor. They look
 * it up at each access, so a DEK may be destroyed at any time.
 */
#ifndef HCASIM_MODEL_DEK_H
#define HCASIM_MODEL_DEK_H

#include "model/core/hca.h"
#include "model/memory/aes.h"
#include "prm/prm.h"

#define DEK_LOG_MAX        12 /* log_max_num_deks */
#define DEK_LOG_LOGINS     5
#define DEK_KEYTAG_BYTES   8
#define LOGIN_SECRET_BYTES 40 /* of a credential, before it is wrapped */

struct dek {
    struct obj obj;
    struct prm_encryption_key_obj ctx[1]; /* as QUERY reports it: without the key */
    struct obj *pd;                       /* referenced */
    uint32_t pdn;
    bool has_keytag;
    uint8_t keytag[DEK_KEYTAG_BYTES];
    struct aes_xts *xts;
};

struct crypto_login {
    struct obj obj;
    struct prm_crypto_login_obj ctx[1];
};

/* Whether the function has crypto: its generation does, and the library is there. */
bool crypto_is_there(const struct hca *hca);

/* CREATE_, MODIFY_GENERAL_OBJECT; object is as in the command. */
enum syn dek_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
enum syn dek_modify(struct hca *hca, struct obj *obj, const void *object);
enum syn crypto_login_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
void dek_free(struct hca *hca, struct obj *obj);

/* The DEK that a key of the PD may use, or NULL. */
struct dek *dek_find(struct hca *hca, uint32_t num, uint32_t pdn);

/* The credential and the KEK with which a card is delivered. */
extern const uint8_t card_kek[32];
extern const uint8_t card_credential[LOGIN_SECRET_BYTES];

#endif
