/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the commands on data encryption keys and logins: general objects of a card with crypto. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/memory/dek.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define IN_LEN  (PRM_SIZE(general_object_in) + PRM_SIZE(encryption_key_obj))
#define OUT_LEN (PRM_SIZE(general_obj_out_cmd_hdr) + PRM_SIZE(encryption_key_obj))
#define DEK     PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY
#define LOGIN   PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN

static struct fwd d;
static uint16_t uid;
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

static void open_as(const char *profile)
{
    struct prm_create_uctx_in create[1] = {0};
    struct prm_create_uctx_out made[1];
    struct prm_alloc_pd_in alloc[1] = {0};
    struct prm_alloc_pd_out pd[1];

    fwd_init_as(&d, profile);
    fwd_bring_up(&d);
    PRM_SET(create_uctx_in, create, opcode, PRM_CMD_OP_CREATE_UCTX);
    ck_assert_uint_eq(fwd_cmd(&d, create, sizeof(create), made, sizeof(made)), SYN_OK);
    uid = (uint16_t)PRM_GET(create_uctx_out, made, uid);
    PRM_SET(alloc_pd_in, alloc, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, alloc, uid, uid);
    ck_assert_uint_eq(fwd_cmd(&d, alloc, sizeof(alloc), pd, sizeof(pd)), SYN_OK);
    pdn = PRM_GET(alloc_pd_out, pd, pd);
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
    uint64_t types = 1ull << DEK | 1ull << LOGIN;

    open_as(cards[_i].profile);
    ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_GENERAL, false, bytes), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, crypto), cards[_i].has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, aes_xts_multi_block_be_tweak), cards[_i].has);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, general, general_obj_types) & types,
                      cards[_i].has ? types : 0);
    if (cards[_i].has) {
        ck_assert_uint_eq(fwd_query_cap(&d, PRM_HCA_CAP_TYPE_CRYPTO, false, bytes), SYN_OK);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, wrapped_crypto_operational), cards[_i].wrapped);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, wrapped_import_method),
                          cards[_i].wrapped ? 4 : 0);
        ck_assert_uint_eq(PRM_GET(crypto_cap, cap, log_max_num_deks), DEK_LOG_MAX);
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
    tcase_add_test(tc, keys_that_are_not_legal_are_refused);
    tcase_add_test(tc, only_the_key_can_be_modified);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(plain, setup_plaintext, teardown);
    tcase_add_test(plain, a_card_for_plaintext_takes_keys_as_they_are);
    suite_add_tcase(s, plain);
    tcase_add_checked_fixture(caps, NULL, teardown);
    tcase_add_loop_test(caps, capabilities_say_how_keys_are_imported, 0, 3);
    suite_add_tcase(s, caps);
    return s;
}
