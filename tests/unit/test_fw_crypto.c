/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the commands on data encryption keys, KEKs, credentials and logins: general objects of a
 * card with crypto. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define IN_LEN  (PRM_SIZE(general_object_in) + PRM_SIZE(encryption_key_obj))
#define OUT_LEN (PRM_SIZE(general_obj_out_cmd_hdr) + PRM_SIZE(encryption_key_obj))
#define DEK     PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY
#define LOGIN   PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN
#define KEK     PRM_GENERAL_OBJ_TYPE_IMPORT_KEK
#define CRED    PRM_GENERAL_OBJ_TYPE_CREDENTIAL

static struct fwd d;
static uint16_t uid, second_uid;
static uint32_t pdn;
static void *const in = (uint8_t[IN_LEN]){0}, *const out = (uint8_t[OUT_LEN]){0};

/* Wrapped by the KEK of bytes 00 to 1f (RFC 3394) with another implementation (OpenSSL's enc): keys
 * of bytes 40 to 5f, and the text "hcasim credential" with zeros up to 40 bytes. */
static uint8_t wrapped_key[40], wrapped_credential[48];

static void from_hex(const char *hex, uint8_t *bytes)
{
    for (size_t i = 0; hex[2 * i]; i++) {
        unsigned byte;

        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
}

/* Makes a user, who has a PD; the following commands are those of the user. */
static void open_uctx(void)
{
    struct prm_create_uctx_in create[1] = {0};
    struct prm_create_uctx_out made[1];
    struct prm_alloc_pd_in alloc[1] = {0};
    struct prm_alloc_pd_out pd[1];

    PRM_SET(create_uctx_in, create, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_uint_eq(fwd_cmd(&d, create, sizeof(create), made, sizeof(made)), SYN_OK);
    uid = second_uid = (uint16_t)PRM_GET(create_uctx_out, made, uid);
    PRM_SET(alloc_pd_in, alloc, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, alloc, uid, uid);
    ck_assert_uint_eq(fwd_cmd(&d, alloc, sizeof(alloc), pd, sizeof(pd)), SYN_OK);
    pdn = PRM_GET(alloc_pd_out, pd, pd);
}

static void open_as(const char *profile)
{
    fwd_init_as(&d, profile);
    fwd_bring_up(&d);
    open_uctx();
    from_hex("bd2a276ae8c7464c7e8b396674ac6e0e9558c84c6009b3fa413cf06a67a200823e4d720df2419fa9",
             wrapped_key);
    from_hex(
        "ddcaca05270e769c0650ef7cfe7491b0136602ac2a2acd28742c31cdc40228041c5478ac42689339120c809cb75e814d",
        wrapped_credential);
}

static void setup(void)
{
    open_as("cx6dx");
}

static void setup_plaintext(void)
{
    open_as("cx7");
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* Begins a command in `in`. Returns what follows the head. */
static void *begin(uint16_t opcode, uint16_t type, uint32_t id)
{
    memset(in, 0, IN_LEN);
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, type);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, id);
    return PRM_PTR(general_object_in, in, object);
}

static enum syn run(void)
{
    return fwd_cmd(&d, in, IN_LEN, out, OUT_LEN);
}

static uint32_t made(void)
{
    return PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

/* CREATE of a DEK with a key of 128 bits, in in. */
static struct prm_encryption_key_obj *dek_in(const uint8_t *key, size_t len)
{
    struct prm_encryption_key_obj *dek = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, DEK, 0);

    PRM_SET(encryption_key_obj, dek, key_purpose, PRM_DEK_PURPOSE_AES_XTS);
    PRM_SET(encryption_key_obj, dek, pd, pdn);
    PRM_SET(encryption_key_obj, dek, opaque, 0x6465 << 8);
    memcpy(PRM_PTR(encryption_key_obj, dek, key), key, len);
    return dek;
}

static struct prm_crypto_login_obj *login_in(void)
{
    struct prm_crypto_login_obj *login = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, LOGIN, 0);

    memcpy(PRM_PTR(crypto_login_obj, login, credential), wrapped_credential, 48);
    return login;
}

static uint32_t log_in(void)
{
    login_in();
    ck_assert_uint_eq(run(), SYN_OK);
    return made();
}

static enum syn destroy(uint16_t type, uint32_t id)
{
    begin(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, type, id);
    return run();
}

START_TEST(keys_are_imported_in_a_session)
{
    const struct prm_encryption_key_obj *told =
        (const void *)((uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr));
    static const uint8_t zeros[128];
    uint32_t login, num;
    struct dek *dek;

    dek_in(wrapped_key, sizeof(wrapped_key));
    ck_assert_uint_eq(run(), SYN_DEK_LOGIN);
    login = log_in();
    dek_in(wrapped_key, sizeof(wrapped_key));
    ck_assert_uint_eq(run(), SYN_OK);
    num = made();
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, DEK, num);
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(encryption_key_obj, told, state), PRM_DEK_STATE_READY);
    ck_assert_uint_eq(PRM_GET(encryption_key_obj, told, pd), pdn);
    ck_assert_uint_eq(PRM_GET(encryption_key_obj, told, opaque), 0x6465 << 8);
    ck_assert_mem_eq(PRM_PTR(encryption_key_obj, told, key), zeros, sizeof(zeros));
    /* a session of another user does not count */
    uid = 0;
    dek_in(wrapped_key, sizeof(wrapped_key));
    ck_assert_uint_eq(run(), SYN_DEK_LOGIN);
    dek = dek_find(&d.fw->hca, num, pdn);
    ck_assert_ptr_nonnull(dek);
    ck_assert_ptr_null(dek_find(&d.fw->hca, num, pdn + 1));
    ck_assert_uint_eq(destroy(LOGIN, login), SYN_OK);
    ck_assert_uint_eq(destroy(DEK, num), SYN_OK);
    ck_assert_uint_eq(destroy(DEK, num), SYN_NO_GENERAL_OBJECT);
}
END_TEST

START_TEST(a_session_needs_the_cards_credential)
{
    const struct prm_crypto_login_obj *told =
        (const void *)((uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr));
    struct prm_crypto_login_obj *login = login_in();
    uint32_t num;

    PRM_SET(crypto_login_obj, login, credential_pointer, 1);
    ck_assert_uint_eq(run(), SYN_LOGIN_NUMBER);
    PRM_SET(crypto_login_obj, login_in(), session_import_kek_ptr, 1);
    ck_assert_uint_eq(run(), SYN_LOGIN_NUMBER);
    login = login_in();
    ((uint8_t *)PRM_PTR(crypto_login_obj, login, credential))[5] ^= 1;
    ck_assert_uint_eq(run(), SYN_LOGIN_CREDENTIAL);
    login = login_in();
    memset(PRM_PTR(crypto_login_obj, login, credential), 0, 48);
    memcpy(PRM_PTR(crypto_login_obj, login, credential), wrapped_key, sizeof(wrapped_key));
    ck_assert_uint_eq(run(), SYN_LOGIN_CREDENTIAL);
    num = log_in();
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, LOGIN, num);
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(crypto_login_obj, told, state), PRM_CRYPTO_LOGIN_STATE_VALID);
    begin(PRM_CMD_OP_MODIFY_GENERAL_OBJECT, LOGIN, num);
    ck_assert_uint_eq(run(), SYN_NO_OBJ_TYPE);
}
END_TEST

/* Made with another implementation (OpenSSL's enc): new KEKs of bytes a0 to af and a0 to bf,
 * wrapped by the card's KEK; the text "another credential" with zeros up to 40 bytes, wrapped by
 * the card's KEK; the same, and keys of bytes 40 to 5f, wrapped by each of the new KEKs. */
static const struct {
    uint32_t size; /* enum prm_dek_size */
    size_t len;    /* of the wrapped KEK */
    const char *kek, *secret, *key;
} new_keks[] = {
    {PRM_DEK_SIZE_128, 24, "dca059d4ac7cacfeb9cfe2aa0f38634f803d71d09c761de0",
     "83eaeceaeb066a5b3a64ab49598da50c63adbda7107a4c169c2c53bd25202bbb12856aeb47d00c42452b36bd77c4"
     "c85e",
     "bdbdce2a25c9442c72e69430dbb77fdc63681e3fa525c1e73c1487404e1a0779f8c36707c606a724"},
    {PRM_DEK_SIZE_256, 40,
     "d29fa348b506fb7c8df0ad97bd22b94a3ec5a9cc74787fb26eb58ffc9d91387901c82b4370386891",
     "a3a4bb0a95f93dd6753ed3e7f218a5dfc58c9fde8703724eb52edc51ce298befb2fbae0d6a8d70998d00dbff5260"
     "a08c",
     "aea2e792c546c96a0b9532f9168bc1d8efeade927277a0ccb20e75d656c60cc0530659cf07026aad"},
};
static const char new_secret[] =
    "0f5958a8dc5271ad5e130073a754d226fbeaf366171f1db1fd977a603c927eebbabe54dbaa6e668677058bf5ccaf"
    "18a6";

/* CREATE of a KEK, in in. */
static struct prm_import_kek_obj *kek_in(int i)
{
    struct prm_import_kek_obj *kek = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, KEK, 0);

    PRM_SET(import_kek_obj, kek, key_size, new_keks[i].size);
    from_hex(new_keks[i].kek, PRM_PTR(import_kek_obj, kek, key));
    return kek;
}

static struct prm_credential_obj *credential_in(unsigned role)
{
    struct prm_credential_obj *credential = begin(PRM_CMD_OP_CREATE_GENERAL_OBJECT, CRED, 0);

    PRM_SET(credential_obj, credential, credential_role, role);
    from_hex(new_secret, PRM_PTR(credential_obj, credential, credential));
    return credential;
}

/* Runs the command that is in in, which must succeed. Returns the object's number. */
static uint32_t must(void)
{
    ck_assert_uint_eq(run(), SYN_OK);
    return made();
}

static uint32_t new_login(int i, uint32_t credential, uint32_t kek)
{
    struct prm_crypto_login_obj *login = login_in();

    PRM_SET(crypto_login_obj, login, credential_pointer, credential);
    PRM_SET(crypto_login_obj, login, session_import_kek_ptr, kek);
    from_hex(new_keks[i].secret, PRM_PTR(crypto_login_obj, login, credential));
    return must();
}

static uint32_t login_state(uint32_t num)
{
    const struct prm_crypto_login_obj *told =
        (const void *)((uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr));

    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, LOGIN, num);
    ck_assert_uint_eq(run(), SYN_OK);
    return PRM_GET(crypto_login_obj, told, state);
}

/* A session of another user, with its own KEK and credential, imports a key that only this KEK
 * unwraps. */
START_TEST(an_officer_makes_keks_and_credentials)
{
    static const uint8_t zeros[128];
    void *told = (uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr);
    uint32_t kek, credential, login, dek;
    uint8_t key[40];

    log_in();
    kek_in(_i);
    kek = must();
    ck_assert_uint_gt(kek, 0); /* 0 is the card's */
    credential_in(PRM_CREDENTIAL_ROLE_USER);
    credential = must();
    ck_assert_uint_gt(credential, 0);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, KEK, kek);
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(import_kek_obj, told, key_size), new_keks[_i].size);
    ck_assert_mem_eq(PRM_PTR(import_kek_obj, told, key), zeros, sizeof(zeros));
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, CRED, credential);
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(credential_obj, told, credential_role), PRM_CREDENTIAL_ROLE_USER);
    ck_assert_mem_eq(PRM_PTR(credential_obj, told, credential), zeros, 48);

    open_uctx();
    login = new_login(_i, credential, kek);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, LOGIN, login);
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(crypto_login_obj, told, credential_pointer), credential);
    ck_assert_uint_eq(PRM_GET(crypto_login_obj, told, session_import_kek_ptr), kek);
    dek_in(wrapped_key, sizeof(wrapped_key));
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    from_hex(new_keks[_i].key, key);
    dek_in(key, sizeof(key));
    dek = must();
    ck_assert_ptr_nonnull(dek_find(&d.fw->hca, dek, pdn));
    /* the session's credential is a user's */
    kek_in(_i);
    ck_assert_uint_eq(run(), SYN_LOGIN_ROLE);
    credential_in(PRM_CREDENTIAL_ROLE_OFFICER);
    ck_assert_uint_eq(run(), SYN_LOGIN_ROLE);
    /* an officer's objects are not the user's to end */
    ck_assert_uint_eq(destroy(KEK, kek), SYN_BAD_UID);
    ck_assert_uint_eq(destroy(CRED, credential), SYN_BAD_UID);
}
END_TEST

/* mlx5dv_crypto_login(3): such a session becomes invalid, and its keys can still be used. */
START_TEST(a_session_ends_with_its_kek_or_credential)
{
    uint32_t kek, credential, login, other, dek, again;
    uint16_t officer = uid;
    uint8_t key[40];

    other = log_in();
    kek_in(0);
    kek = must();
    credential_in(PRM_CREDENTIAL_ROLE_OFFICER);
    credential = must();
    open_uctx();
    login = new_login(0, credential, kek);
    from_hex(new_keks[0].key, key);
    dek_in(key, sizeof(key));
    dek = must();
    uid = officer;
    ck_assert_uint_eq(_i ? destroy(KEK, kek) : destroy(CRED, credential), SYN_OK);
    ck_assert_uint_eq(login_state(other), PRM_CRYPTO_LOGIN_STATE_VALID);
    /* not even another object of the same number revives it */
    do {
        if (_i) {
            kek_in(0);
        } else {
            credential_in(PRM_CREDENTIAL_ROLE_OFFICER);
        }
        again = must();
    } while (again != (_i ? kek : credential) && !destroy(_i ? KEK : CRED, again));
    uid = second_uid;
    ck_assert_uint_eq(login_state(login), PRM_CRYPTO_LOGIN_STATE_INVALID);
    ck_assert_ptr_nonnull(dek_find(&d.fw->hca, dek, pdn)->xts);
    dek_in(key, sizeof(key));
    ck_assert_uint_eq(run(), SYN_DEK_LOGIN);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, DEK, dek);
    ck_assert_uint_eq(run(), SYN_DEK_LOGIN);
    kek_in(0);
    ck_assert_uint_eq(run(), SYN_LOGIN_ROLE);
    new_login(0, credential, kek);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, DEK, dek);
    ck_assert_uint_eq(run(), SYN_OK);
}
END_TEST

START_TEST(keks_and_credentials_that_are_not_legal_are_refused)
{
    kek_in(0);
    ck_assert_uint_eq(run(), SYN_LOGIN_ROLE); /* no session */
    log_in();
    PRM_SET(import_kek_obj, kek_in(0), key_size, 2);
    ck_assert_uint_eq(run(), SYN_DEK_SIZE);
    PRM_SET(import_kek_obj, kek_in(0), key_size, PRM_DEK_SIZE_256);
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    credential_in(2);
    ck_assert_uint_eq(run(), SYN_LOGIN_ROLE);
    ((uint8_t *)PRM_PTR(credential_obj, credential_in(0), credential))[47] ^= 1;
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    kek_in(0);
    ck_assert_uint_eq(must(), 1);
    begin(PRM_CMD_OP_MODIFY_GENERAL_OBJECT, KEK, 1);
    ck_assert_uint_eq(run(), SYN_NO_OBJ_TYPE);
    ck_assert_uint_eq(destroy(KEK, 0), SYN_NO_GENERAL_OBJECT); /* the card's own */
    ck_assert_uint_eq(destroy(CRED, 1), SYN_NO_GENERAL_OBJECT);
}
END_TEST

/* A key that is another user's, that is not there, whose number no key can have, or that is
 * destroyed twice. */
START_TEST(a_key_belongs_to_its_user)
{
    static const uint16_t commands[] = {PRM_CMD_OP_QUERY_GENERAL_OBJECT,
                                        PRM_CMD_OP_MODIFY_GENERAL_OBJECT,
                                        PRM_CMD_OP_DESTROY_GENERAL_OBJECT};
    struct prm_create_uctx_in create[1] = {0};
    struct prm_create_uctx_out out_uctx[1];
    uint16_t mine = uid, other;
    uint32_t num;

    log_in();
    dek_in(wrapped_key, 40);
    num = must();
    PRM_SET(create_uctx_in, create, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_uint_eq(fwd_cmd(&d, create, sizeof(create), out_uctx, sizeof(out_uctx)), SYN_OK);
    other = (uint16_t)PRM_GET(create_uctx_out, out_uctx, uid);
    for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
        uid = other;
        begin(commands[i], DEK, num);
        ck_assert_uint_eq(run(), SYN_BAD_UID);
        uid = mine;
        begin(commands[i], DEK, num + 1);
        ck_assert_uint_eq(run(), SYN_NO_GENERAL_OBJECT);
        begin(commands[i], DEK, UINT32_MAX);
        ck_assert_uint_eq(run(), SYN_NO_GENERAL_OBJECT);
    }
    ck_assert_uint_eq(syn_status(SYN_NO_GENERAL_OBJECT), PRM_CMD_STATUS_BAD_RES);
    ck_assert_uint_eq(destroy(DEK, num), SYN_OK);
    ck_assert_uint_eq(destroy(DEK, num), SYN_NO_GENERAL_OBJECT);
    /* a key of another user's PD */
    uid = other;
    log_in();
    dek_in(wrapped_key, 40);
    ck_assert_uint_eq(run(), SYN_BAD_UID);
    uid = mine;
}
END_TEST

START_TEST(keys_that_are_not_legal_are_refused)
{
    log_in();
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), key_purpose, PRM_DEK_PURPOSE_TLS);
    ck_assert_uint_eq(run(), SYN_DEK_PURPOSE);
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), key_size, 2);
    ck_assert_uint_eq(run(), SYN_DEK_SIZE);
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), pd, 0xfffff);
    ck_assert_uint_eq(run(), SYN_DEK_PD);
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), pd, d.drv->pdn);
    ck_assert_uint_eq(run(), d.drv->pdn ? SYN_BAD_UID : SYN_DEK_PD);
    dek_in(wrapped_key, 39);
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), has_keytag, 1);
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    PRM_SET(encryption_key_obj, dek_in(wrapped_key, 40), key_size, PRM_DEK_SIZE_256);
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    dek_in(wrapped_key, 40);
    ck_assert_uint_eq(fwd_cmd(&d, in, IN_LEN - 4, out, OUT_LEN), SYN_IN_LEN);
}
END_TEST

/* Driver mlx5_crypto_modify_dek_key(). */
START_TEST(only_the_key_can_be_modified)
{
    struct prm_encryption_key_obj *dek;
    struct aes_xts *xts;
    uint32_t num;

    log_in();
    dek_in(wrapped_key, 40);
    ck_assert_uint_eq(run(), SYN_OK);
    num = made();
    xts = dek_find(&d.fw->hca, num, pdn)->xts;
    for (uint64_t fields = 0; fields < 4; fields++) {
        dek = dek_in(wrapped_key, 40);
        PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_MODIFY_GENERAL_OBJECT);
        PRM_SET(general_obj_in_cmd_hdr, in, obj_id, num);
        PRM_SET(encryption_key_obj, dek, modify_field_select, fields);
        ck_assert_uint_eq(run(), fields == 1 ? SYN_OK : SYN_DEK_FIELDS);
    }
    ck_assert_ptr_nonnull(xts);
    /* one that fails leaves the key as it is */
    xts = dek_find(&d.fw->hca, num, pdn)->xts;
    dek = dek_in(wrapped_key, 39);
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_MODIFY_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, num);
    PRM_SET(encryption_key_obj, dek, modify_field_select, 1);
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    ck_assert_ptr_eq(dek_find(&d.fw->hca, num, pdn)->xts, xts);
}
END_TEST

START_TEST(a_card_for_plaintext_takes_keys_as_they_are)
{
    const struct prm_encryption_key_obj *told =
        (const void *)((uint8_t *)out + PRM_SIZE(general_obj_out_cmd_hdr));
    uint8_t key[32], same[32] = {0};
    struct dek *dek;

    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = (uint8_t)i;
    }
    login_in();
    ck_assert_uint_eq(run(), SYN_LOGIN_MODE);
    dek_in(key, sizeof(key));
    ck_assert_uint_eq(run(), SYN_OK);
    dek = dek_find(&d.fw->hca, made(), pdn);
    ck_assert_ptr_nonnull(dek);
    ck_assert_ptr_nonnull(dek->xts);
    dek_in(same, sizeof(same));
    ck_assert_uint_eq(run(), SYN_DEK_KEY);
    PRM_SET(encryption_key_obj, dek_in(key, sizeof(key)), has_keytag, 1);
    begin(PRM_CMD_OP_QUERY_GENERAL_OBJECT, DEK, must());
    ck_assert_uint_eq(run(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(encryption_key_obj, told, has_keytag), 1);
}
END_TEST

/* The sections and bits that libmlx5 reads. */
START_TEST(capabilities_say_how_keys_are_imported)
{
    static const struct {
        const char *profile;
        bool has, wrapped;
    } cards[] = {{"cx5", false, false}, {"cx6dx", true, true}, {"cx7", true, false}};
    uint8_t bytes[4096];
    struct prm_crypto_cap *cap = (void *)bytes;
    struct prm_cmd_hca_cap *general = (void *)bytes;
    uint64_t types = 1ull << DEK | 1ull << LOGIN, wrapped_types = 1ull << KEK | 1ull << CRED;

    open_as(cards[_i].profile);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, false, bytes), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, crypto), cards[_i].has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, aes_xts_multi_block_be_tweak), cards[_i].has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, general_obj_types) & types,
                      cards[_i].has ? types : 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, general_obj_types) & wrapped_types,
                      cards[_i].wrapped ? wrapped_types : 0);
    if (cards[_i].has) {
        ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_CRYPTO, false, bytes), SYN_OK);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, wrapped_crypto_operational), cards[_i].wrapped);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, wrapped_import_method),
                          cards[_i].wrapped ? 4 : 0);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, log_max_num_deks), DEK_LOG_MAX);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, log_max_num_import_keks),
                          cards[_i].wrapped ? KEK_LOG_MAX : 0);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, log_max_num_creds),
                          cards[_i].wrapped ? KEK_LOG_MAX_CREDENTIALS : 0);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, num_nv_import_keks), cards[_i].wrapped);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, log_dek_max_alloc), 0);
    } else {
        dek_in(wrapped_key, 40);
        ck_assert_uint_eq(run(), SYN_NO_OBJ_TYPE);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw crypto");
    TCase *tc = tcase_create("wrapped"), *plain = tcase_create("plaintext");
    TCase *caps = tcase_create("caps");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, keys_are_imported_in_a_session);
    tcase_add_test(tc, a_session_needs_the_cards_credential);
    tcase_add_test(tc, a_key_belongs_to_its_user);
    tcase_add_test(tc, keys_that_are_not_legal_are_refused);
    tcase_add_test(tc, only_the_key_can_be_modified);
    tcase_add_loop_test(tc, an_officer_makes_keks_and_credentials, 0, 2);
    tcase_add_loop_test(tc, a_session_ends_with_its_kek_or_credential, 0, 2);
    tcase_add_test(tc, keks_and_credentials_that_are_not_legal_are_refused);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(plain, setup_plaintext, teardown);
    tcase_add_test(plain, a_card_for_plaintext_takes_keys_as_they_are);
    suite_add_tcase(s, plain);
    tcase_add_checked_fixture(caps, NULL, teardown);
    tcase_add_loop_test(caps, capabilities_say_how_keys_are_imported, 0, 3);
    suite_add_tcase(s, caps);
    return s;
}
