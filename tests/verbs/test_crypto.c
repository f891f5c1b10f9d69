/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests encryption in direct verbs: sessions, data encryption keys, and keys of memory whose data
 * is encrypted. The cards are a ConnectX-6 Dx, which takes wrapped keys in a session, and a
 * ConnectX-7, which takes keys as they are.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define UNIT 512

/* Wrapped by the KEK of bytes 00 to 1f (RFC 3394): the keys of bytes 40 to 5f, and the card's
 * credential, "hcasim credential" with zeros up to 40 bytes. */
static const uint8_t wrapped_key[40] = {0xbd, 0x2a, 0x27, 0x6a, 0xe8, 0xc7, 0x46, 0x4c, 0x7e, 0x8b,
                                        0x39, 0x66, 0x74, 0xac, 0x6e, 0x0e, 0x95, 0x58, 0xc8, 0x4c,
                                        0x60, 0x09, 0xb3, 0xfa, 0x41, 0x3c, 0xf0, 0x6a, 0x67, 0xa2,
                                        0x00, 0x82, 0x3e, 0x4d, 0x72, 0x0d, 0xf2, 0x41, 0x9f, 0xa9};
static const uint8_t credential[48] = {
    0xdd, 0xca, 0xca, 0x05, 0x27, 0x0e, 0x76, 0x9c, 0x06, 0x50, 0xef, 0x7c, 0xfe, 0x74, 0x91, 0xb0,
    0x13, 0x66, 0x02, 0xac, 0x2a, 0x2a, 0xcd, 0x28, 0x74, 0x2c, 0x31, 0xcd, 0xc4, 0x02, 0x28, 0x04,
    0x1c, 0x54, 0x78, 0xac, 0x42, 0x68, 0x93, 0x39, 0x12, 0x0c, 0x80, 0x9c, 0xb7, 0x5e, 0x81, 0x4d};
/* A KEK of bytes a0 to af and the text "another credential" with zeros up to 40 bytes, wrapped by
 * the card's KEK; the same credential and the keys of bytes 40 to 5f, wrapped by the new KEK. */
static const uint8_t new_kek[24] = {0xdc, 0xa0, 0x59, 0xd4, 0xac, 0x7c, 0xac, 0xfe,
                                    0xb9, 0xcf, 0xe2, 0xaa, 0x0f, 0x38, 0x63, 0x4f,
                                    0x80, 0x3d, 0x71, 0xd0, 0x9c, 0x76, 0x1d, 0xe0};
static const uint8_t new_credential[48] = {
    0x0f, 0x59, 0x58, 0xa8, 0xdc, 0x52, 0x71, 0xad, 0x5e, 0x13, 0x00, 0x73, 0xa7, 0x54, 0xd2, 0x26,
    0xfb, 0xea, 0xf3, 0x66, 0x17, 0x1f, 0x1d, 0xb1, 0xfd, 0x97, 0x7a, 0x60, 0x3c, 0x92, 0x7e, 0xeb,
    0xba, 0xbe, 0x54, 0xdb, 0xaa, 0x6e, 0x66, 0x86, 0x77, 0x05, 0x8b, 0xf5, 0xcc, 0xaf, 0x18, 0xa6};
static const uint8_t new_credential_of_kek[48] = {
    0x83, 0xea, 0xec, 0xea, 0xeb, 0x06, 0x6a, 0x5b, 0x3a, 0x64, 0xab, 0x49, 0x59, 0x8d, 0xa5, 0x0c,
    0x63, 0xad, 0xbd, 0xa7, 0x10, 0x7a, 0x4c, 0x16, 0x9c, 0x2c, 0x53, 0xbd, 0x25, 0x20, 0x2b, 0xbb,
    0x12, 0x85, 0x6a, 0xeb, 0x47, 0xd0, 0x0c, 0x42, 0x45, 0x2b, 0x36, 0xbd, 0x77, 0xc4, 0xc8, 0x5e};
static const uint8_t key_of_kek[40] = {0xbd, 0xbd, 0xce, 0x2a, 0x25, 0xc9, 0x44, 0x2c, 0x72, 0xe6,
                                       0x94, 0x30, 0xdb, 0xb7, 0x7f, 0xdc, 0x63, 0x68, 0x1e, 0x3f,
                                       0xa5, 0x25, 0xc1, 0xe7, 0x3c, 0x14, 0x87, 0x40, 0x4e, 0x1a,
                                       0x07, 0x79, 0xf8, 0xc3, 0x67, 0x07, 0xc6, 0x06, 0xa7, 0x24};
/* The keys of vector 4 of IEEE 1619-2007. */
static const uint8_t plain_key[32] = {
    0x27, 0x18, 0x28, 0x18, 0x28, 0x45, 0x90, 0x45, 0x23, 0x53, 0x60, 0x28, 0x74, 0x71, 0x35, 0x26,
    0x31, 0x41, 0x59, 0x26, 0x53, 0x58, 0x97, 0x93, 0x23, 0x84, 0x62, 0x64, 0x33, 0x83, 0x27, 0x95};

/* The first bytes of the encrypted data units 0 and 1. Each unit has 512 bytes that count up from
 * 0. The first one of the second card is in the standard (vector 4); OpenSSL made the others. */
static const struct card {
    const char *profile;
    const uint8_t *key;
    size_t key_len;
    uint8_t units[2][16];
} cards[] = {
    {"cx6dx",
     wrapped_key,
     sizeof(wrapped_key),
     {{0x32, 0x62, 0xbc, 0x24, 0x87, 0xb2, 0xb0, 0xdd, 0x20, 0x8d, 0x1d, 0x8e, 0xdd, 0x65, 0xa8,
       0xf2},
      {0xf0, 0xa6, 0x6a, 0xac, 0x80, 0x1b, 0xed, 0xf8, 0xdd, 0x3c, 0x1c, 0xf1, 0x62, 0xdc, 0x6e,
       0xfc}}},
    {"cx7",
     plain_key,
     sizeof(plain_key),
     {{0x27, 0xa7, 0x47, 0x9b, 0xef, 0xa1, 0xd4, 0x76, 0x48, 0x9f, 0x30, 0x8c, 0xd4, 0xcf, 0xa6,
       0xe2},
      {0xbb, 0xf9, 0xd6, 0xa7, 0x4a, 0x74, 0x65, 0xfe, 0xe2, 0x0f, 0x42, 0xad, 0xf9, 0xa6, 0x23,
       0xfc}}},
};

static struct verbs_table *v;
static const struct card *card;

static void open_as(const char *profile)
{
    v = verbs_table_on(verbs_hosts_new_as(2, NULL, profile));
}

static void setup(void)
{
    open_as("cx6dx");
}

static void teardown(void)
{
    verbs_table_free(v);
}

/* -- sessions ---------------------------------------------------------------------------------- */

static struct mlx5dv_crypto_login_attr login_attr(void)
{
    struct mlx5dv_crypto_login_attr attr = {0};

    memcpy(attr.credential, credential, sizeof(credential));
    return attr;
}

static enum mlx5dv_crypto_login_state login_state(void)
{
    enum mlx5dv_crypto_login_state state;

    ck_assert_int_eq(hv_dv_crypto_login_query_state(v->a, &state), 0);
    return state;
}

/* mlx5dv_crypto_login(3): EEXIST, ENOENT and EINVAL. */
START_TEST(a_context_has_one_session)
{
    struct mlx5dv_crypto_login_attr attr = login_attr();

    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
    ck_assert_int_eq(hv_dv_crypto_logout(v->a), ENOENT);
    attr.comp_mask = 1;
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EINVAL);
    attr = login_attr();
    attr.credential[7] ^= 1;
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EINVAL);
    attr = login_attr();
    attr.credential_id = 1; /* the card has only number 0 */
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EINVAL);
    attr = login_attr();
    attr.import_kek_id = 1u << 24; /* not a number */
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EINVAL);
    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
    attr = login_attr();
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), 0);
    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_VALID);
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EEXIST);
    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_VALID);
    ck_assert_int_eq(hv_dv_crypto_logout(v->a), 0);
    ck_assert_int_eq(hv_dv_crypto_logout(v->a), ENOENT);
}
END_TEST

static struct mlx5dv_crypto_login_obj *session(const struct mlx5dv_crypto_login_attr_ex *given)
{
    struct mlx5dv_crypto_login_attr_ex attr = *given;

    errno = 0;
    return hv_dv_crypto_login_create(v->a, &attr);
}

START_TEST(session_objects_are_independent)
{
    const struct mlx5dv_crypto_login_attr_ex good = {.credential = credential,
                                                     .credential_len = sizeof(credential)};
    struct mlx5dv_crypto_login_attr_ex bad = good;
    struct mlx5dv_crypto_login_query_attr state = {0};
    struct mlx5dv_crypto_login_obj *one = session(&good), *two = session(&good);

    ck_assert(one && two);
    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
    ck_assert_int_eq(hv_dv_crypto_login_query(one, &state), 0);
    ck_assert_int_eq(state.state, MLX5DV_CRYPTO_LOGIN_STATE_VALID);
    state.comp_mask = 1;
    ck_assert_int_eq(hv_dv_crypto_login_query(one, &state), EINVAL);
    ck_assert_int_eq(hv_dv_crypto_login_destroy(one), 0);
    state.comp_mask = 0;
    ck_assert_int_eq(hv_dv_crypto_login_query(two, &state), 0);
    ck_assert_int_eq(hv_dv_crypto_login_destroy(two), 0);
    bad.credential_len = sizeof(credential) + 1;
    ck_assert_ptr_null(session(&bad));
    ck_assert_int_eq(errno, EINVAL);
    bad = good;
    bad.credential_len = 40; /* the rest counts as zeros */
    ck_assert_ptr_null(session(&bad));
    ck_assert_int_eq(errno, EINVAL);
    bad = good;
    bad.comp_mask = 1;
    ck_assert_ptr_null(session(&bad));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* Cards without sessions: one without crypto, and one that takes keys as they are. */
START_TEST(other_cards_have_no_sessions)
{
    struct mlx5dv_crypto_login_attr attr = login_attr();
    struct mlx5dv_dek_init_attr key = {.pd = NULL};

    open_as(_i ? "cx7" : "cx5");
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &attr), EOPNOTSUPP);
    ck_assert_int_eq(login_state(), MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
    key.pd = v->hosts->host[0].pd;
    ck_assert_ptr_null(hv_dv_dek_create(v->a, &key));
    ck_assert_int_eq(errno, _i ? EINVAL : EOPNOTSUPP);
}
END_TEST

/* -- data encryption keys ---------------------------------------------------------------------- */

/* The attributes of a key that this card takes. */
static struct mlx5dv_dek_init_attr dek_attr(struct mlx5dv_crypto_login_obj *login)
{
    struct mlx5dv_dek_init_attr attr = {.key_size = MLX5DV_CRYPTO_KEY_SIZE_128,
                                        .key_purpose = MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
                                        .pd = v->hosts->host[0].pd,
                                        .opaque = "opaque!",
                                        .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN,
                                        .crypto_login = login};

    memcpy(attr.key, card->key, card->key_len);
    return attr;
}

static struct mlx5dv_crypto_login_obj *session_of_card(void)
{
    const struct mlx5dv_crypto_login_attr_ex attr = {.credential = credential,
                                                     .credential_len = sizeof(credential)};
    struct mlx5dv_crypto_login_obj *login = card->key == wrapped_key ? session(&attr) : NULL;

    ck_assert(login || card->key != wrapped_key);
    return login;
}

static void dek_refused(const struct mlx5dv_dek_init_attr *attr)
{
    struct mlx5dv_dek_init_attr given = *attr;

    errno = 0;
    ck_assert_ptr_null(hv_dv_dek_create(v->a, &given));
    ck_assert_int_eq(errno, EINVAL);
}

/* Makes a KEK or a credential, as DevX programs do. The secret is at the same place in both. */
static struct mlx5dv_devx_obj *devx_secret(unsigned type, const uint8_t *secret, size_t len)
{
    struct {
        struct prm_general_obj_in_cmd_hdr head[1];
        struct prm_import_kek_obj object[1];
    } in = {0};
    struct prm_general_obj_out_cmd_hdr out[1] = {0};

    PRM_SET(general_obj_in_cmd_hdr, in.head, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in.head, obj_type, type);
    memcpy(PRM_PTR(import_kek_obj, in.object, key), secret, len);
    return hv_dv_devx_obj_create(v->a, &in, sizeof(in), out, sizeof(out));
}

/* A session with a KEK and a credential that DevX programs have made takes keys that this KEK
 * wraps. It is invalid when the KEK is gone. */
START_TEST(a_session_may_have_a_kek_and_a_credential_of_its_own)
{
    struct mlx5dv_crypto_login_query_attr state = {0};
    struct mlx5dv_crypto_login_attr_ex other = {.credential = new_credential_of_kek,
                                                .credential_len = 48};
    struct mlx5dv_crypto_login_obj *officer, *login;
    struct mlx5dv_devx_obj *kek, *secret;
    struct mlx5dv_dek_init_attr attr;
    struct mlx5dv_dek *dek;

    card = &cards[0];
    ck_assert_ptr_null(
        devx_secret(PRM_GENERAL_OBJ_TYPE_IMPORT_KEK, new_kek, sizeof(new_kek))); /* no session */
    officer = session_of_card();
    kek = devx_secret(PRM_GENERAL_OBJ_TYPE_IMPORT_KEK, new_kek, sizeof(new_kek));
    secret = devx_secret(PRM_GENERAL_OBJ_TYPE_CREDENTIAL, new_credential, sizeof(new_credential));
    ck_assert(kek && secret);
    ck_assert_int_eq(hv_dv_crypto_login_destroy(officer), 0);
    ck_assert_ptr_null(session(&other));
    other.credential_id = secret->id;
    other.import_kek_id = kek->id;
    login = session(&other);
    ck_assert_ptr_nonnull(login);
    attr = dek_attr(login);
    dek_refused(&attr); /* it is wrapped by the card's KEK */
    memcpy(attr.key, key_of_kek, sizeof(key_of_kek));
    dek = hv_dv_dek_create(v->a, &attr);
    ck_assert_ptr_nonnull(dek);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(kek), 0);
    ck_assert_int_eq(hv_dv_crypto_login_query(login, &state), 0);
    ck_assert_int_eq(state.state, MLX5DV_CRYPTO_LOGIN_STATE_INVALID);
    dek_refused(&attr);
    ck_assert_int_eq(hv_dv_dek_destroy(dek), 0);
    ck_assert_int_eq(hv_dv_crypto_login_destroy(login), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(secret), 0);
}
END_TEST

START_TEST(keys_are_imported_as_the_card_takes_them)
{
    struct mlx5dv_crypto_login_obj *login;
    struct mlx5dv_dek_attr told = {0};
    struct mlx5dv_dek_init_attr attr, bad;
    struct mlx5dv_dek *dek;

    card = &cards[_i];
    open_as(card->profile);
    login = session_of_card();
    attr = dek_attr(login);
    dek = hv_dv_dek_create(v->a, &attr);
    ck_assert_ptr_nonnull(dek);
    ck_assert_int_eq(hv_dv_dek_query(dek, &told), 0);
    ck_assert_int_eq(told.state, MLX5DV_DEK_STATE_READY);
    ck_assert_mem_eq(told.opaque, attr.opaque, sizeof(attr.opaque));
    told.comp_mask = 1;
    ck_assert_int_eq(hv_dv_dek_query(dek, &told), EINVAL);

    bad = attr;
    bad.key_size = (enum mlx5dv_crypto_key_size)2;
    dek_refused(&bad);
    bad = attr;
    bad.key_purpose = (enum mlx5dv_crypto_key_purpose)1;
    dek_refused(&bad);
    bad = attr;
    bad.comp_mask = 2;
    dek_refused(&bad);
    bad = attr;
    bad.comp_mask = 0; /* the session of the context, which has none */
    dek_refused(&bad);
    bad = attr; /* what the device refuses: two equal keys, or a key that is not wrapped */
    memset(bad.key, 1, sizeof(bad.key));
    dek_refused(&bad);
    ck_assert_int_eq(hv_dv_dek_destroy(dek), 0);
    if (login) {
        bad = attr;
        bad.crypto_login = NULL; /* not wrapped */
        dek_refused(&bad);
        ck_assert_int_eq(hv_dv_crypto_login_destroy(login), 0);
        bad = attr;
        bad.crypto_login = (void *)1; /* a session, but the device has none any more */
        dek_refused(&bad);
    }
}
END_TEST

/* The session of the context counts for keys that name none. A wrapped key is only queried in a
 * session (mlx5dv_dek_create(3)). */
START_TEST(a_key_may_use_the_contexts_session)
{
    struct mlx5dv_crypto_login_attr login = login_attr();
    struct mlx5dv_dek_init_attr attr;
    struct mlx5dv_dek *dek;

    card = &cards[0];
    attr = dek_attr(NULL);
    attr.comp_mask = 0;
    dek_refused(&attr);
    ck_assert_int_eq(hv_dv_crypto_login(v->a, &login), 0);
    dek = hv_dv_dek_create(v->a, &attr);
    ck_assert_ptr_nonnull(dek);
    ck_assert_int_eq(hv_dv_dek_query(dek, &(struct mlx5dv_dek_attr){0}), 0);
    ck_assert_int_eq(hv_dv_crypto_logout(v->a), 0);
    ck_assert_int_eq(hv_dv_dek_query(dek, &(struct mlx5dv_dek_attr){0}), EINVAL);
    ck_assert_int_eq(hv_dv_dek_destroy(dek), 0);
}
END_TEST

/* -- keys of memory ---------------------------------------------------------------------------- */

static struct {
    struct mlx5dv_crypto_login_obj *login;
    struct mlx5dv_dek *dek;
    struct mlx5dv_mkey *mkey;
    struct ibv_cq *cq, *peer_cq;
    struct ibv_qp *qp, *peer_qp;
    struct ibv_mr *mr, *peer;
} t;

static struct ibv_qp *qp_new(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = t.cq,
        .recv_cq = t.cq,
        .pd = v->hosts->host[0].pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
        .cap = {.max_send_wr = 16,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 512},
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
    struct ibv_qp *qp = hv_dv_create_qp(v->a, &attr, &dv);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void memory_setup(const struct card *of)
{
    struct mlx5dv_dek_init_attr attr;

    card = of;
    open_as(card->profile);
    t.login = session_of_card();
    attr = dek_attr(t.login);
    t.dek = hv_dv_dek_create(v->a, &attr);
    t.cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    t.peer_cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    ck_assert(t.dek && t.cq && t.peer_cq);
    t.qp = qp_new();
    t.peer_qp = table_qp_new(v, 1, t.peer_cq, NULL);
    table_connect(v, t.qp, t.peer_qp);
    t.mr = table_mr_new(v, 0);
    t.peer = table_mr_new(v, 1);
    t.mkey = table_mkey_new(v, 0, MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
    for (unsigned i = 0; i < 2 * UNIT; i++) {
        ((uint8_t *)t.mr->addr)[i] = (uint8_t)i;
    }
}

static void memory_setup_first(void)
{
    memory_setup(&cards[0]);
}

static void memory_teardown(void)
{
    ck_assert_int_eq(hv_dv_destroy_mkey(t.mkey), 0);
    ck_assert_int_eq(t.dek ? hv_dv_dek_destroy(t.dek) : 0, 0);
    ck_assert_int_eq(t.login ? hv_dv_crypto_login_destroy(t.login) : 0, 0);
    table_mr_free(t.mr);
    table_mr_free(t.peer);
    table_qp_free(t.qp);
    table_qp_free(t.peer_qp);
    verbs_must_be_0(ibv_destroy_cq(t.cq));
    verbs_must_be_0(ibv_destroy_cq(t.peer_cq));
    verbs_table_free(v);
}

static struct mlx5dv_crypto_attr crypto_attr(bool encrypt_on_tx)
{
    return (struct mlx5dv_crypto_attr){
        .crypto_standard = MLX5DV_CRYPTO_STANDARD_AES_XTS,
        .encrypt_on_tx = encrypt_on_tx,
        .signature_crypto_order = MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX,
        .data_unit_size = MLX5DV_BLOCK_SIZE_512,
        .dek = t.dek,
    };
}

/* Posts a configuration with a layout of two units and this attribute, num times. */
static int configure(struct mlx5dv_mkey *key, const struct mlx5dv_crypto_attr *attr, unsigned num)
{
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(t.qp);
    struct mlx5dv_qp_ex *dvx = hv_dv_qp_ex_from_ibv_qp_ex(qpx);
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct ibv_sge sge = {(uintptr_t)t.mr->addr, 2 * UNIT, t.mr->lkey};

    ibv_wr_start(qpx);
    qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dvx, key, (uint8_t)(num + 2), &conf);
    mlx5dv_wr_set_mkey_access_flags(dvx, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                             IBV_ACCESS_REMOTE_WRITE);
    mlx5dv_wr_set_mkey_layout_list(dvx, 1, &sge);
    for (unsigned i = 0; i < num; i++) {
        mlx5dv_wr_set_mkey_crypto(dvx, attr);
    }
    return ibv_wr_complete(qpx);
}

static void must_configure(const struct mlx5dv_crypto_attr *attr)
{
    ck_assert_int_eq(configure(t.mkey, attr, 1), 0);
    ck_assert_int_eq(table_wc(v, t.cq).status, IBV_WC_SUCCESS);
}

/* Writes len bytes of the key, from an offset on, to the peer. */
static enum ibv_wc_status write_key(uint64_t offset, uint32_t len)
{
    struct ibv_sge sge = {offset, len, t.mkey->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)t.peer->addr, t.peer->rkey}};

    ck_assert_int_eq(ibv_post_send(t.qp, &wr, &bad), 0);
    return table_wc(v, t.cq).status;
}

/* The peer accesses the key. */
static enum ibv_wc_status peer_does(enum ibv_wr_opcode opcode, uint64_t offset, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)t.peer->addr, len, t.peer->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {offset, t.mkey->rkey}};

    ck_assert_int_eq(ibv_post_send(t.peer_qp, &wr, &bad), 0);
    return table_wc(v, t.peer_cq).status;
}

/* The wire has the encrypted data: of a WRITE, of a READ, and of a part of a unit. The peer's
 * WRITE of encrypted data is plain in memory. */
START_TEST(data_is_encrypted_on_the_wire)
{
    struct mlx5dv_crypto_attr attr;
    uint8_t *mine, *theirs, first[2 * UNIT];

    memory_setup(&cards[_i]);
    mine = t.mr->addr;
    theirs = t.peer->addr;
    attr = crypto_attr(true);
    must_configure(&attr);
    memcpy(first, mine, sizeof(first));
    ck_assert_int_eq(write_key(0, 2 * UNIT), IBV_WC_SUCCESS);
    ck_assert_mem_eq(theirs, card->units[0], 16);
    ck_assert_mem_eq(theirs + UNIT, card->units[1], 16);
    ck_assert_mem_eq(mine, first, sizeof(first));

    memset(mine, 0, 2 * UNIT);
    ck_assert_int_eq(peer_does(IBV_WR_RDMA_WRITE, 0, 2 * UNIT), IBV_WC_SUCCESS);
    ck_assert_mem_eq(mine, first, sizeof(first));
    memset(theirs, 0, 2 * UNIT);
    ck_assert_int_eq(peer_does(IBV_WR_RDMA_READ, UNIT + 4, 12), IBV_WC_SUCCESS);
    ck_assert_mem_eq(theirs, card->units[1] + 4, 12);
    ck_assert_uint_eq(theirs[12], 0);

    attr.initial_tweak[0] = 1; /* XTS's own order: the number of the first unit is 1 */
    must_configure(&attr);
    ck_assert_int_eq(write_key(0, UNIT), IBV_WC_SUCCESS);
    ck_assert_mem_eq(theirs, card->units[1], 16);
    memory_teardown();
}
END_TEST

/* The same the other way round: memory has the encrypted data, and the wire the plain data. */
START_TEST(data_is_encrypted_in_memory)
{
    struct mlx5dv_crypto_attr attr;
    uint8_t *mine, *theirs;

    memory_setup(&cards[_i]);
    mine = t.mr->addr;
    theirs = t.peer->addr;
    attr = crypto_attr(false);
    must_configure(&attr);
    memcpy(theirs, mine, 2 * UNIT);
    ck_assert_int_eq(peer_does(IBV_WR_RDMA_WRITE, 0, 2 * UNIT), IBV_WC_SUCCESS);
    ck_assert_mem_eq(mine, card->units[0], 16);
    ck_assert_mem_eq(mine + UNIT, card->units[1], 16);
    memset(theirs, 0, 2 * UNIT);
    ck_assert_int_eq(write_key(0, 2 * UNIT), IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 2 * UNIT; i++) {
        ck_assert_uint_eq(theirs[i], (uint8_t)i);
    }
    memory_teardown();
}
END_TEST

/* libmlx5's mlx5_send_wr_set_mkey_crypto(). A refused request posts nothing. */
START_TEST(the_setter_refuses_what_libmlx5_refuses)
{
    struct mlx5dv_mkey *plain = table_mkey_new(v, 0, 0);
    const struct mlx5dv_crypto_attr good = crypto_attr(true);
    struct mlx5dv_crypto_attr bad = good;
    struct ibv_wc wc;

    bad.crypto_standard = (enum mlx5dv_crypto_standard)1;
    ck_assert_int_eq(configure(t.mkey, &bad, 1), EINVAL);
    bad = good;
    bad.signature_crypto_order = (enum mlx5dv_signature_crypto_order)2;
    ck_assert_int_eq(configure(t.mkey, &bad, 1), EINVAL);
    bad = good;
    bad.data_unit_size = (enum mlx5dv_block_size)(MLX5DV_BLOCK_SIZE_4160 + 1);
    ck_assert_int_eq(configure(t.mkey, &bad, 1), EINVAL);
    bad = good;
    bad.comp_mask = 1;
    ck_assert_int_eq(configure(t.mkey, &bad, 1), EINVAL);
    ck_assert_int_eq(configure(plain, &good, 1), EINVAL);
    ck_assert_int_eq(configure(t.mkey, &good, 2), EINVAL);
    table_wait(v);
    ck_assert_int_eq(ibv_poll_cq(t.cq, 1, &wc), 0);
    ck_assert_int_eq(hv_dv_destroy_mkey(plain), 0);
}
END_TEST

/* A data encryption key that is gone: its keys of memory refuse the peer's accesses, and the
 * program's own. */
START_TEST(memory_without_its_key_is_refused)
{
    const struct mlx5dv_crypto_attr attr = crypto_attr(true);

    must_configure(&attr);
    ck_assert_int_eq(hv_dv_dek_destroy(t.dek), 0);
    t.dek = NULL;
    if (_i) {
        ck_assert_int_eq(write_key(0, UNIT), IBV_WC_LOC_PROT_ERR);
    } else {
        ck_assert_int_eq(peer_does(IBV_WR_RDMA_READ, 0, UNIT), IBV_WC_REM_ACCESS_ERR);
    }
}
END_TEST

/* A key of memory whose data encryption key is not there. */
START_TEST(a_data_encryption_key_must_exist)
{
    struct mlx5dv_crypto_attr attr = crypto_attr(true);

    attr.dek = &(struct mlx5dv_dek){.obj = &(struct mlx5dv_devx_obj){.id = 0x1234}};
    ck_assert_int_eq(configure(t.mkey, &attr, 1), 0);
    ck_assert_int_eq(table_wc(v, t.cq).status, IBV_WC_MW_BIND_ERR);
}
END_TEST

/* The key of memory repeats the tag that the data encryption key was imported with. */
START_TEST(key_tags_must_match)
{
    struct mlx5dv_dek_init_attr tagged;
    struct mlx5dv_crypto_attr attr;

    memory_setup(&cards[1]);
    ck_assert_int_eq(hv_dv_dek_destroy(t.dek), 0);
    tagged = dek_attr(NULL);
    tagged.has_keytag = true;
    memcpy(tagged.key + sizeof(plain_key), "the tag!", 8);
    t.dek = hv_dv_dek_create(v->a, &tagged);
    ck_assert_ptr_nonnull(t.dek);
    attr = crypto_attr(true);
    memcpy(attr.keytag, _i ? "the tag?" : "the tag!", 8);
    must_configure(&attr);
    ck_assert_int_eq(write_key(0, UNIT), _i ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    memory_teardown();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("crypto in direct verbs");
    TCase *tc = tcase_create("objects"), *open = tcase_create("cards");
    TCase *memory = tcase_create("memory"), *data = tcase_create("data");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_context_has_one_session);
    tcase_add_test(tc, session_objects_are_independent);
    tcase_add_test(tc, a_key_may_use_the_contexts_session);
    tcase_add_test(tc, a_session_may_have_a_kek_and_a_credential_of_its_own);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(open, NULL, teardown);
    tcase_add_loop_test(open, other_cards_have_no_sessions, 0, 2);
    tcase_add_loop_test(open, keys_are_imported_as_the_card_takes_them, 0, G_N_ELEMENTS(cards));
    suite_add_tcase(s, open);
    tcase_add_loop_test(data, data_is_encrypted_on_the_wire, 0, G_N_ELEMENTS(cards));
    tcase_add_loop_test(data, data_is_encrypted_in_memory, 0, G_N_ELEMENTS(cards));
    tcase_add_loop_test(data, key_tags_must_match, 0, 2);
    suite_add_tcase(s, data);
    tcase_add_checked_fixture(memory, memory_setup_first, memory_teardown);
    tcase_add_test(memory, the_setter_refuses_what_libmlx5_refuses);
    tcase_add_loop_test(memory, memory_without_its_key_is_refused, 0, 2);
    tcase_add_test(memory, a_data_encryption_key_must_exist);
    suite_add_tcase(s, memory);
    return s;
}
