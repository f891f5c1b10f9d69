/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data encryption keys (DEK): general objects.
 *
 * A function is in one of two modes (limits.crypto). In wrapped mode, DEKs are created in a
 * session, with a key that is wrapped by the session's key encryption key (model/memory/kek.h). In
 * plaintext mode, DEKs are created with their key, and there are no sessions.
 *
 * A DEK belongs to a PD. Memory keys of this PD name the DEK in their crypto descriptor. They look
 * it up at each access, so a DEK may be destroyed at any time.
 */
#ifndef HCASIM_MODEL_DEK_H
#define HCASIM_MODEL_DEK_H

#include "model/core/hca.h"
#include "model/memory/aes.h"
#include "prm/prm.h"

#define DEK_LOG_MAX      12 /* log_max_num_deks */
#define DEK_KEYTAG_BYTES 8

struct dek {
    struct obj obj;
    struct prm_encryption_key_obj ctx[1]; /* as QUERY reports it: without the key */
    struct obj *pd;                       /* referenced */
    uint32_t pdn;
    bool has_keytag;
    uint8_t keytag[DEK_KEYTAG_BYTES];
    struct aes_xts *xts;
};

/* Whether the function has crypto: its generation does, and the library is there. */
bool crypto_is_there(const struct hca *hca);

/* CREATE_, MODIFY_GENERAL_OBJECT; object is as in the command. */
enum syn dek_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
enum syn dek_modify(struct hca *hca, struct obj *obj, const void *object);
/* Whether the user may query a DEK. */
enum syn dek_may_query(struct hca *hca, uint16_t uid);
void dek_free(struct hca *hca, struct obj *obj);

/* The DEK that a key of the PD may use, or NULL. */
struct dek *dek_find(struct hca *hca, uint32_t num, uint32_t pdn);

#endif
