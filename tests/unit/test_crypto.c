/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests encryption of the data behind memory keys: the cipher against the vectors of the standards,
 * and the transform against a whole data unit at a time.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/crypto.h"
#include "model/memory/kek.h"
#include "model/memory/mkey_priv.h"
#include "model/memory/psv.h"
#include "tests/unit/mkey_bench.h"
#include "tests/unit/suite.h"

#define ROOM (10 * PAGE) /* of the encrypted key's memory */

static void from_hex(const char *hex, uint8_t *bytes)
{
    for (size_t i = 0; hex[2 * i]; i++) {
        unsigned byte;

        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (uint8_t)byte;
    }
}

/* -- the cipher -------------------------------------------------------------------------------- */

/* IEEE 1619-2007, annex B: vectors 2, 3, 10 (its first 32 bytes, with the unit's 512) and 15 to 18,
 * whose units are no multiple of a block. plain NULL: bytes 00, 01 and so on. */
static const struct {
    const char *key, *tweak, *plain, *cipher;
    size_t len;
} vectors[] = {
    {"1111111111111111111111111111111122222222222222222222222222222222", "3333333333",
     "4444444444444444444444444444444444444444444444444444444444444444",
     "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0", 32},
    {"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f022222222222222222222222222222222", "3333333333",
     "4444444444444444444444444444444444444444444444444444444444444444",
     "af85336b597afc1a900b2eb21ec949d292df4c047e0b21532186a5971a227a89", 32},
    {"2718281828459045235360287471352662497757247093699959574966967627"
     "3141592653589793238462643383279502884197169399375105820974944592",
     "ff", NULL, "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b", 512},
    {"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0", "9a78563412", NULL,
     "6c1625db4671522d3d7599601de7ca09ed", 17},
    {"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0", "9a78563412", NULL,
     "d069444b7a7e0cab09e24447d24deb1fedbf", 18},
    {"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0", "9a78563412", NULL,
     "e5df1351c0544ba1350b3363cd8ef4beedbf9d", 19},
    {"fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0", "9a78563412", NULL,
     "9d84c813f719aa2c7be3f66171c7c5c2edbf9dac", 20},
};

START_TEST(the_cipher_is_that_of_the_standard)
{
    uint8_t key[64] = {0}, tweak[16] = {0}, plain[512], cipher[32] = {0}, got[512];
    size_t key_len = strlen(vectors[_i].key) / 2, len = vectors[_i].len;
    struct aes_xts *xts;

    from_hex(vectors[_i].key, key);
    from_hex(vectors[_i].tweak, tweak);
    from_hex(vectors[_i].cipher, cipher);
    for (size_t i = 0; i < sizeof(plain); i++) {
        plain[i] = (uint8_t)i;
    }
    if (vectors[_i].plain) {
        from_hex(vectors[_i].plain, plain);
    }
    ck_assert(aes_is_there());
    xts = aes_xts_new(key, key_len);
    ck_assert_ptr_nonnull(xts);
    ck_assert(aes_xts_run(xts, true, tweak, plain, got, len));
    ck_assert_mem_eq(got, cipher, strlen(vectors[_i].cipher) / 2);
    ck_assert(aes_xts_run(xts, false, tweak, got, got, len));
    ck_assert_mem_eq(got, plain, len);
    aes_xts_free(xts);
}
END_TEST

/* IEEE 1619 vector 1 has equal halves, which NIST SP 800-38E forbids. */
START_TEST(keys_with_equal_halves_are_refused)
{
    static const uint8_t zeros[64];

    ck_assert_ptr_null(aes_xts_new(zeros, 32));
    ck_assert_ptr_null(aes_xts_new(zeros, 64));
}
END_TEST

/* RFC 3394, 4.6: 256 bits of key data with a KEK of 256 bits, which is the card's. */
START_TEST(keys_are_unwrapped_as_the_rfc_says)
{
    uint8_t wrapped[40], key[32], want[32];

    from_hex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21",
             wrapped);
    from_hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F", want);
    ck_assert(aes_unwrap(card_kek, KEK_MAX, wrapped, sizeof(wrapped), key));
    ck_assert_mem_eq(key, want, sizeof(want));
    wrapped[rand() % 40] ^= 0x10;
    ck_assert(!aes_unwrap(card_kek, KEK_MAX, wrapped, sizeof(wrapped), key));
}
END_TEST

/* -- keys ---------------------------------------------------------------------------------------
 */

static uint32_t inner, key, dek, psvs[PSV_MAX];
static struct umr umr;
static struct aes_xts *reference;
static uint8_t secret[64];

static uint32_t new_dek(uint32_t pdn, bool has_keytag)
{
    struct prm_encryption_key_obj object[1] = {0};
    uint32_t num;

    PRM_SET(encryption_key_obj, object, key_size, PRM_DEK_SIZE_256);
    PRM_SET(encryption_key_obj, object, key_purpose, PRM_DEK_PURPOSE_AES_XTS);
    PRM_SET(encryption_key_obj, object, pd, pdn);
    PRM_SET(encryption_key_obj, object, has_keytag, has_keytag);
    memcpy(PRM_PTR(encryption_key_obj, object, key), secret, sizeof(secret));
    memcpy((uint8_t *)PRM_PTR(encryption_key_obj, object, key) + sizeof(secret), "the tag!", 8);
    ck_assert_int_eq(dek_create(&rig.hca, 0, object, &num), SYN_OK);
    return num;
}

static void crypto_setup(void)
{
    static const unsigned pages[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct prm_mkc mkc[1];

    setup();
    for (size_t i = 0; i < sizeof(secret); i++) {
        secret[i] = (uint8_t)(3 * i + 1);
    }
    rig.hca.limits.crypto = HCA_CRYPTO_PLAINTEXT;
    reference = aes_xts_new(secret, sizeof(secret));
    dek = new_dek(rig.pdn, false);
    inner = create_mtt(VA, 12 * PAGE, pages, 12);
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, crypto_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 8);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, 2, psvs), SYN_OK);
}

static void crypto_teardown(void)
{
    aes_xts_free(reference);
    teardown();
}

static const struct {
    unsigned selector;
    uint32_t bytes;
} units[] = {{PRM_BSF_BLOCK_512, 512},
             {PRM_BSF_BLOCK_520, 520},
             {PRM_BSF_BLOCK_4048, 4048},
             {PRM_BSF_BLOCK_4096, 4096},
             {PRM_BSF_BLOCK_4160, 4160}};

/* The low half of the first tweak overflows in the third unit. */
#define TWEAK_LOW  (UINT64_MAX - 1)
#define TWEAK_HIGH 0x1122334455667788ull

/* Prepares the UMR that configures the key: one range of len bytes, and the crypto descriptor. */
static struct prm_crypto_bsf *prepare(unsigned order, unsigned selector, uint64_t len)
{
    struct prm_crypto_bsf *bsf = (struct prm_crypto_bsf *)(umr.xlt + 64);

    umr_start(&umr, key, MASK(LEN) | MASK(FREE) | MASK(KEY) | MASK(BSF_EN) | ACCESS_MASK);
    klm(umr.xlt, 0, (uint32_t)len, inner, VA);
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, len);
    PRM_SET(mkc, umr.mkc, bsf_en, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
    umr.req.xlt_len = 64;
    umr.req.bsf = bsf;
    umr.req.bsf_len = sizeof(*bsf);
    memset(bsf, 0, sizeof(*bsf));
    PRM_SET(crypto_bsf, bsf, size, PRM_BSF_SIZE_WITH_INLINE);
    PRM_SET(crypto_bsf, bsf, crypto, 1);
    PRM_SET(crypto_bsf, bsf, enc_order, order);
    PRM_SET(crypto_bsf, bsf, bs_pointer, selector);
    PRM_SET(crypto_bsf, bsf, dek_pointer, dek);
    prm_store64(PRM_PTR(crypto_bsf, bsf, xts_initial_tweak), TWEAK_HIGH);
    prm_store64((uint8_t *)PRM_PTR(crypto_bsf, bsf, xts_initial_tweak) + 8, TWEAK_LOW);
    return bsf;
}

static enum mem_result configure(void)
{
    return mkey_umr(&rig.hca, &umr.req);
}

/* Encrypts or decrypts whole units, as the standard says. */
static void by_reference(bool encrypt, uint32_t unit, const uint8_t *from, uint8_t *to, size_t len)
{
    uint64_t low = TWEAK_LOW, high = TWEAK_HIGH;

    for (size_t at = 0; at < len; at += unit) {
        size_t size = MIN(unit, len - at);
        uint8_t tweak[16];

        for (unsigned i = 0; i < 8; i++) {
            tweak[i] = (uint8_t)(low >> 8 * i);
            tweak[8 + i] = (uint8_t)(high >> 8 * i);
        }
        if (size < 16) {
            memcpy(to + at, from + at, size);
        } else {
            ck_assert(aes_xts_run(reference, encrypt, tweak, from + at, to + at, size));
        }
        high += ++low == 0;
    }
}

static enum mem_result transfer(bool is_write, uint64_t at, uint8_t *buf, size_t len)
{
    return is_write ? mkey_write(&rig.hca, key, rig.pdn, at, buf, len, MEM_LOCAL_WRITE)
                    : mkey_read(&rig.hca, key, rig.pdn, at, buf, len, MEM_LOCAL_READ);
}

static uint8_t data[ROOM], in_memory[ROOM], on_wire[ROOM], got[ROOM];

static void random_data(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)rand();
    }
}

/* A random length, at most left. */
static size_t piece(size_t left)
{
    size_t part = 1 + (size_t)(rand() % 1500);

    return MIN(part, left);
}

/* Both directions, in random pieces, some of them twice, as packets may come again. The last unit
 * is shorter, or too short for XTS. */
START_TEST(data_is_encrypted_unit_by_unit)
{
    uint32_t unit = units[_i % 5].bytes;
    bool of_wire = _i < 5;
    size_t len = 5 * unit + (_i % 2 ? 100 : 9);
    size_t stored = MIN(len, ROOM);

    prepare(of_wire ? PRM_CRYPTO_ORDER_WIRE_SIGNATURE : PRM_CRYPTO_ORDER_MEMORY_SIGNATURE,
            units[_i % 5].selector, stored);
    ck_assert_int_eq(configure(), MEM_OK);
    random_data(in_memory, stored);
    memcpy(ram(0), in_memory, stored);
    by_reference(of_wire, unit, in_memory, on_wire, stored);
    for (size_t done = 0, part; done < stored; done += part) {
        part = piece(stored - done);
        ck_assert_int_eq(transfer(false, done, got + done, part), MEM_OK);
    }
    ck_assert_mem_eq(got, on_wire, stored);

    random_data(on_wire, stored);
    by_reference(!of_wire, unit, on_wire, in_memory, stored);
    for (size_t done = 0, part; done < stored; done += part) {
        size_t again = piece(done + 1) - 1;

        part = piece(stored - done);
        ck_assert_int_eq(transfer(true, done - again, on_wire + done - again, part + again),
                         MEM_OK);
    }
    ck_assert_mem_eq(ram(0), in_memory, stored);
    ck_assert_int_eq(transfer(false, 0, got, stored + 1), MEM_BAD_BOUNDS);
}
END_TEST

/* What is read through a key with signatures, too, can be written through it: the memory is the
 * same, and each signature is right. The length on the wire has the signatures. */
START_TEST(signatures_lie_on_their_side_of_the_encryption)
{
    const size_t blocks = 6, len = blocks * 512;
    struct prm_bsf *sig = (struct prm_bsf *)(umr.xlt + 64);
    struct prm_crypto_bsf *bsf = prepare((unsigned)_i, PRM_BSF_BLOCK_512, len);
    struct sig_error error;

    memcpy(umr.xlt + 128, bsf, sizeof(*bsf));
    PRM_SET(crypto_bsf, (struct prm_crypto_bsf *)(umr.xlt + 128), size,
            PRM_BSF_SIZE_SIG_AND_CRYPTO);
    memset(sig, 0, sizeof(*sig));
    PRM_SET(bsf, sig, size, PRM_BSF_SIZE_SIG_AND_CRYPTO);
    PRM_SET(bsf, sig, raw_data_size, UINT32_MAX);
    PRM_SET(bsf, sig, check_byte_mask, 0xf0);
    PRM_SET(bsf, sig, w_bfs, PRM_BSF_FORMAT_CRC32 | PRM_BSF_FORMAT_REPEAT);
    PRM_SET(bsf, sig, w_psv, psvs[0]);
    PRM_SET(bsf, sig, wire_bs_selector, PRM_BSF_BLOCK_512);
    umr.req.bsf_len = 128;
    psv_find(&rig.hca, psvs[0], rig.pdn)->value = 0xffffffffull << 32;
    ck_assert_int_eq(configure(), MEM_OK);
    random_data(data, len);
    memcpy(ram(0), data, len);
    ck_assert_int_eq(transfer(false, 0, on_wire, len + 4 * blocks), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, len + 4 * blocks + 1), MEM_BAD_BOUNDS);
    if (_i == PRM_CRYPTO_ORDER_WIRE_SIGNATURE || _i == PRM_CRYPTO_ORDER_RAW_MEMORY) {
        /* signed first: the encryption is above, and covers the signatures */
        by_reference(_i != PRM_CRYPTO_ORDER_WIRE_SIGNATURE, 512, on_wire, got, len + 4 * blocks);
        for (size_t i = 0; i < blocks; i++) {
            ck_assert_mem_eq(got + 516 * i, data + 512 * i, 512);
        }
    } else {
        by_reference(_i == PRM_CRYPTO_ORDER_RAW_WIRE, 512, data, got, len);
        for (size_t i = 0; i < blocks; i++) {
            ck_assert_mem_eq(on_wire + 516 * i, got + 512 * i, 512);
        }
    }
    memset(ram(0), 0, len);
    ck_assert_int_eq(transfer(true, 0, on_wire, len + 4 * blocks), MEM_OK);
    ck_assert_mem_eq(ram(0), data, len);
    ck_assert(!sig_take_error(&rig.hca, rig.pdn, &error));
}
END_TEST

START_TEST(a_descriptor_that_is_not_valid_is_refused)
{
    struct prm_crypto_bsf *bsf = prepare(PRM_CRYPTO_ORDER_RAW_WIRE, PRM_BSF_BLOCK_512, 4096);
    uint32_t other;

    switch (_i) {
    case 0:
        PRM_SET(crypto_bsf, bsf, enc_order, PRM_CRYPTO_ORDER_RAW_MEMORY + 1);
        break;
    case 1:
        PRM_SET(crypto_bsf, bsf, bs_pointer, PRM_BSF_BLOCK_NONE);
        break;
    case 2:
        PRM_SET(crypto_bsf, bsf, bs_pointer, 0xff);
        break;
    case 3:
        PRM_SET(crypto_bsf, bsf, enc_standard, PRM_CRYPTO_STANDARD_AES_XTS + 1);
        break;
    case 4:
        PRM_SET(crypto_bsf, bsf, dek_pointer, dek + 1);
        break;
    case 5: /* of another PD */
        ck_assert_int_eq(pd_alloc(&rig.hca, 0, &other), SYN_OK);
        PRM_SET(crypto_bsf, bsf, dek_pointer, new_dek(other, false));
        break;
    case 6:
        umr.req.bsf_len = 63;
        break;
    default:
        umr.req.bsf_len = 192;
        break;
    }
    ck_assert_int_eq(configure(), MEM_BAD_BOUNDS);
}
END_TEST

/* The key is looked up at each access. */
START_TEST(a_key_that_is_gone_or_tagged_otherwise_refuses)
{
    struct prm_crypto_bsf *bsf = prepare(PRM_CRYPTO_ORDER_RAW_WIRE, PRM_BSF_BLOCK_512, 4096);
    uint64_t original;

    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_OK);
    /* atomics have no places in encrypted data */
    ck_assert_int_ne(mkey_fetch_add(&rig.hca, key, rig.pdn, 0, 1, &original), MEM_OK);
    dek_free(&rig.hca, obj_find(&rig.hca.deks, dek));
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_BAD_KEY);
    ck_assert_int_eq(transfer(true, 0, got, 512), MEM_BAD_KEY);
    dek = new_dek(rig.pdn, true);
    bsf = prepare(PRM_CRYPTO_ORDER_RAW_WIRE, PRM_BSF_BLOCK_512, 4096);
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_BAD_KEY);
    memcpy(PRM_PTR(crypto_bsf, bsf, keytag), "the tag!", 8);
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_OK);
}
END_TEST

/* A UMR without the descriptor keeps it; one with bsf_en 0 turns the encryption off. */
START_TEST(encryption_can_be_turned_off)
{
    prepare(PRM_CRYPTO_ORDER_RAW_WIRE, PRM_BSF_BLOCK_512, 4096);
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, on_wire, 512), MEM_OK);
    ck_assert_mem_ne(on_wire, ram(0), 512);
    umr.req.bsf_len = 0;
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_OK);
    ck_assert_mem_eq(got, on_wire, 512);
    PRM_SET(mkc, umr.mkc, bsf_en, 0);
    ck_assert_int_eq(configure(), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 512), MEM_OK);
    ck_assert_mem_eq(got, ram(0), 512);
}
END_TEST

START_TEST(a_device_without_crypto_makes_no_such_keys)
{
    struct prm_mkc mkc[1];
    uint32_t index;

    rig.hca.limits.crypto = HCA_CRYPTO_NONE;
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, crypto_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 8);
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, true, &index), SYN_MKEY_MODE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("crypto");
    TCase *tc = tcase_create("crypto"), *cipher = tcase_create("cipher");

    tcase_add_loop_test(cipher, the_cipher_is_that_of_the_standard, 0, G_N_ELEMENTS(vectors));
    tcase_add_test(cipher, keys_with_equal_halves_are_refused);
    tcase_add_test(cipher, keys_are_unwrapped_as_the_rfc_says);
    suite_add_tcase(s, cipher);
    tcase_add_checked_fixture(tc, crypto_setup, crypto_teardown);
    tcase_add_loop_test(tc, data_is_encrypted_unit_by_unit, 0, 10);
    tcase_add_loop_test(tc, signatures_lie_on_their_side_of_the_encryption, 0, 4);
    tcase_add_loop_test(tc, a_descriptor_that_is_not_valid_is_refused, 0, 8);
    tcase_add_test(tc, a_key_that_is_gone_or_tagged_otherwise_refuses);
    tcase_add_test(tc, encryption_can_be_turned_off);
    tcase_add_test(tc, a_device_without_crypto_makes_no_such_keys);
    suite_add_tcase(s, tc);
    return s;
}
