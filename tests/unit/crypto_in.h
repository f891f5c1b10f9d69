/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills in the commands that make data encryption keys, logins, credentials and KEKs, which the
 * default generation does not have: they change the function's limits. */
#ifndef HCASIM_TESTS_CRYPTO_IN_H
#define HCASIM_TESTS_CRYPTO_IN_H

#include <string.h>
#include "fw/fw_internal.h"
#include "model/memory/kek.h"

/* CREATE_GENERAL_OBJECT with a key in plaintext. Returns the length of the input. */
static inline size_t crypto_dek_in(struct fw *fw, void *in, uint32_t pdn)
{
    struct prm_encryption_key_obj *dek = PRM_PTR(general_object_in, in, object);

    fw->hca.limits.crypto = HCA_CRYPTO_PLAINTEXT;
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY);
    PRM_SET(encryption_key_obj, dek, key_purpose, PRM_DEK_PURPOSE_AES_XTS);
    PRM_SET(encryption_key_obj, dek, pd, pdn);
    memset(PRM_PTR(encryption_key_obj, dek, key), 0x5a, 16);
    return PRM_SIZE(general_object_in) + PRM_SIZE(encryption_key_obj);
}

/* The same with the card's credential, wrapped. */
static inline size_t crypto_login_in(struct fw *fw, void *in, uint32_t pdn)
{
    struct prm_crypto_login_obj *login = PRM_PTR(general_object_in, in, object);
    static const uint8_t wrapped[48] = {0xdd, 0xca, 0xca, 0x05, 0x27, 0x0e, 0x76, 0x9c, 0x06, 0x50,
                                        0xef, 0x7c, 0xfe, 0x74, 0x91, 0xb0, 0x13, 0x66, 0x02, 0xac,
                                        0x2a, 0x2a, 0xcd, 0x28, 0x74, 0x2c, 0x31, 0xcd, 0xc4, 0x02,
                                        0x28, 0x04, 0x1c, 0x54, 0x78, 0xac, 0x42, 0x68, 0x93, 0x39,
                                        0x12, 0x0c, 0x80, 0x9c, 0xb7, 0x5e, 0x81, 0x4d};

    (void)pdn;
    fw->hca.limits.crypto = HCA_CRYPTO_WRAPPED;
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN);
    memcpy(PRM_PTR(crypto_login_obj, login, credential), wrapped, sizeof(wrapped));
    return PRM_SIZE(general_object_in) + PRM_SIZE(crypto_login_obj);
}

/* The same with a credential: the bytes are those of the login's. It needs a session: if the device
 * has none, one of the kernel is put in place. */
static inline size_t crypto_credential_in(struct fw *fw, void *in, uint32_t pdn)
{
    size_t len = crypto_login_in(fw, in, pdn);
    uint32_t num;

    if (!kek_has_session(&fw->hca, 0)) {
        g_assert_cmpuint(
            crypto_login_create(&fw->hca, 0, PRM_PTR(general_object_in, in, object), &num), ==,
            SYN_OK);
    }
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_CREDENTIAL);
    return len;
}

/* The same with a KEK of 128 bits. */
static inline size_t crypto_kek_in(struct fw *fw, void *in, uint32_t pdn)
{
    struct prm_import_kek_obj *kek = PRM_PTR(general_object_in, in, object);
    static const uint8_t wrapped[24] = {0xdc, 0xa0, 0x59, 0xd4, 0xac, 0x7c, 0xac, 0xfe,
                                        0xb9, 0xcf, 0xe2, 0xaa, 0x0f, 0x38, 0x63, 0x4f,
                                        0x80, 0x3d, 0x71, 0xd0, 0x9c, 0x76, 0x1d, 0xe0};
    size_t len = crypto_credential_in(fw, in, pdn);

    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_IMPORT_KEK);
    memcpy(PRM_PTR(import_kek_obj, kek, key), wrapped, sizeof(wrapped));
    return len;
}

#endif
