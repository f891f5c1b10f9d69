/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests block signatures of memory keys against a reference (sig_ref.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/psv.h"
#include "model/memory/sig.h"
#include "tests/unit/mkey_bench.h"
#include "tests/unit/sig_ref.h"
#include "tests/unit/suite.h"

#define ROOM  (10 * PAGE) /* of the signature key's memory */
#define VALUE 0x1234u     /* application tag of the tests */

/* -- keys with signatures ---------------------------------------------------------------------- */

static uint32_t inner, key, psvs[PSV_MAX];
static uint64_t memory; /* offset of the key's memory in the bench's */

static struct umr umr;

static void sig_setup(void)
{
    static const unsigned pages[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct prm_mkc mkc[1];

    setup();
    inner = create_mtt(VA, 12 * PAGE, pages, 12);
    memory = 64;
    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 4);
    key = create(mkc, NULL, 0);
    ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, 2, psvs), SYN_OK);
}

static struct prm_bsf *the_bsf(void)
{
    return (struct prm_bsf *)(umr.xlt + 64);
}

/* Prepares the UMR that configures the key: one range of len bytes, and the descriptor. */
static void prepare(const struct ref *mem_ref, const struct ref *wire_ref, uint64_t len, bool armed)
{
    struct prm_bsf *bsf;

    umr_start(&umr, key,
              MASK(LEN) | MASK(FREE) | MASK(KEY) | MASK(BSF_EN) | MASK(EN_SIGERR) | ACCESS_MASK);
    klm(umr.xlt, 0, (uint32_t)len, inner, VA + memory);
    fill_mkc(umr.mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, len);
    PRM_SET(mkc, umr.mkc, bsf_en, 1);
    PRM_SET(mkc, umr.mkc, expected_sigerr_count, armed);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
    umr.req.xlt_len = 64;
    umr.req.bsf = bsf = the_bsf();
    umr.req.bsf_len = sizeof(*bsf);
    ref_bsf(bsf, mem_ref, wire_ref, psvs);
    psv_find(&rig.hca, psvs[0], rig.pdn)->value = ref_psv(mem_ref);
    psv_find(&rig.hca, psvs[1], rig.pdn)->value = ref_psv(wire_ref);
}

static void configure(const struct ref *mem_ref, const struct ref *wire_ref, uint64_t len)
{
    prepare(mem_ref, wire_ref, len, true);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
}

/* Transfers a range of the wire domain in pieces of the given size; 0: random pieces. */
static enum mem_result transfer(bool is_write, uint64_t at, uint8_t *buf, size_t len, size_t piece)
{
    enum mem_result result = MEM_OK;

    for (size_t done = 0, part; done < len && result == MEM_OK; done += part) {
        part = piece ? piece : 1 + (size_t)(rand() % 1500);
        part = MIN(part, len - done);
        result =
            is_write
                ? mkey_write(&rig.hca, key, rig.pdn, at + done, buf + done, part, MEM_LOCAL_WRITE)
                : mkey_read(&rig.hca, key, rig.pdn, at + done, buf + done, part, MEM_LOCAL_READ);
    }
    return result;
}

static bool next_error(struct sig_error *error)
{
    return sig_take_error(&rig.hca, rig.pdn, error);
}

static uint8_t data[ROOM], in_memory[2 * ROOM], on_wire[2 * ROOM], got[2 * ROOM];

static void random_data(size_t len)
{
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)rand();
    }
}

/* -- tests ------------------------------------------------------------------------------------- */

/* The check values are those of the catalogue of parametrised CRC algorithms for "123456789":
 * CRC-16/T10-DIF, CRC-32/ISO-HDLC, CRC-32/ISCSI, CRC-64/NVME. The checksum is that of RFC 1071's
 * example. */
START_TEST(guards_have_their_published_values)
{
    static const uint8_t digits[] = "123456789";
    static const uint8_t rfc1071[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    static const struct {
        enum sig_kind kind;
        uint64_t seed, value;
    } known[] = {
        {SIG_T10_CRC, 0, 0xd0db},
        {SIG_CRC32, 0xffffffff, 0xcbf43926},
        {SIG_CRC32C, 0xffffffff, 0xe3069283},
        {SIG_CRC64_XP10, UINT64_MAX, 0xae8b14860a799888},
    };

    sig_sum_init();
    sig_sum_use_library(_i); /* the tables, then ISA-L if it is there */
    for (size_t i = 0; i < G_N_ELEMENTS(known); i++) {
        ck_assert_uint_eq(
            sig_sum_end(known[i].kind, sig_sum_add(known[i].kind, known[i].seed, 0, digits, 9)),
            known[i].value);
    }
    ck_assert_uint_eq(sig_sum_end(SIG_T10_CSUM, sig_sum_add(SIG_T10_CSUM, 0, 0, rfc1071, 8)),
                      ~0xddf2 & 0xffff);
}
END_TEST

/* The guard of a block does not depend on the pieces in which the block comes. */
START_TEST(guards_are_computed_in_any_pieces)
{
    static const enum sig_kind kinds[] = {SIG_T10_CRC, SIG_T10_CSUM, SIG_CRC32, SIG_CRC32C,
                                          SIG_CRC64_XP10};

    sig_sum_init();
    sig_sum_use_library(_i);
    random_data(600);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        for (int ones = 0; ones < 2; ones++) {
            struct ref ref = {.kind = kinds[i], .ones = ones};
            uint64_t want = ref_guard(&ref, data, 600);
            uint64_t seed = ones ? kinds[i] == SIG_CRC64_XP10 ? UINT64_MAX
                                   : ref_bytes(&ref) == 4     ? 0xffffffff
                                                              : 0xffff
                                 : 0;

            for (size_t cut = 0; cut <= 600; cut++) {
                size_t cut2 = cut + (600 - cut) / 3;
                uint64_t state = sig_sum_add(kinds[i], seed, 0, data, cut);

                state = sig_sum_add(kinds[i], state, cut, data + cut, cut2 - cut);
                state = sig_sum_add(kinds[i], state, cut2, data + cut2, 600 - cut2);
                ck_assert_uint_eq(sig_sum_end(kinds[i], state), want);
            }
        }
    }
}
END_TEST

static const struct ref none = {.kind = SIG_NONE};
static const struct ref domains[] = {
    {.kind = SIG_NONE},
    {SIG_T10_CRC, 512, false, true, VALUE, 77},
    {SIG_T10_CRC, 4096, true, true, VALUE, 0xffffffff},
    {SIG_T10_CSUM, 520, false, false, VALUE, 5},
    {SIG_T10_CSUM, 512, true, true, VALUE, 77},
    {SIG_CRC32, 512, true, false, 0, 0},
    {SIG_CRC32, 4160, false, false, 0, 0},
    {SIG_CRC32C, 4048, true, false, 0, 0},
    {SIG_CRC64_XP10, 520, true, false, 0, 0},
    {SIG_CRC64_XP10, 512, false, false, 0, 0},
};

/* Each pair of domains, in both directions, in random pieces: the wire and the memory have exactly
 * the bytes of the reference, and no error is found. */
START_TEST(every_pair_of_domains_agrees_with_the_reference)
{
    const struct ref *m = &domains[_i / (int)G_N_ELEMENTS(domains)];
    const struct ref *w = &domains[_i % (int)G_N_ELEMENTS(domains)];
    struct sig_error error;

    srand((unsigned)_i + 1);
    for (unsigned round = 0; round < 6; round++) {
        /* whole blocks of both, any number of bytes, and less than a block */
        size_t len = round < 2   ? 8320 * (1 + (size_t)rand() % 4)
                     : round < 5 ? 1 + (size_t)rand() % 30000
                                 : 1 + (size_t)rand() % 500;
        size_t mem_len, wire_len;

        random_data(len);
        mem_len = ref_layout(m, data, len, in_memory);
        wire_len = ref_layout(w, data, len, on_wire);
        configure(m, w, mem_len);

        memcpy(ram(memory), in_memory, mem_len);
        *ram(memory + mem_len) = 0xaa;
        ck_assert_int_eq(transfer(false, 0, got, wire_len, 0), MEM_OK);
        ck_assert_int_eq(memcmp(got, on_wire, wire_len), 0);
        ck_assert(!next_error(&error));
        ck_assert_int_eq(transfer(false, wire_len, got, 1, 1), MEM_BAD_BOUNDS);

        memset(ram(memory), 0, mem_len);
        ck_assert_int_eq(transfer(true, 0, on_wire, wire_len, 0), MEM_OK);
        ck_assert_int_eq(memcmp(ram(memory), in_memory, mem_len), 0);
        ck_assert_uint_eq(*ram(memory + mem_len), 0xaa);
        ck_assert(!next_error(&error));
    }
}
END_TEST

/* After a loss, packets are sent again from any byte on: the transfer goes back to any place, again
 * and again, and ends with the same bytes. */
START_TEST(going_back_into_the_midst_of_a_block_changes_nothing)
{
    const struct ref *m = &domains[_i / (int)G_N_ELEMENTS(domains)];
    const struct ref *w = &domains[_i % (int)G_N_ELEMENTS(domains)];
    size_t mem_len, wire_len, at = 0, reached = 0;
    struct sig_error error;

    srand((unsigned)_i + 1000);
    random_data(8320);
    mem_len = ref_layout(m, data, 8320, in_memory);
    wire_len = ref_layout(w, data, 8320, on_wire);
    configure(m, w, mem_len);
    memcpy(ram(memory), in_memory, mem_len);
    while (at < wire_len) {
        size_t part = 1 + (size_t)rand() % 1024;
        size_t back = rand() % 3 ? 0 : (size_t)rand() % 2000;

        part = MIN(part, wire_len - at);
        ck_assert_int_eq(transfer(false, at, got + at, part, part), MEM_OK);
        ck_assert_int_eq(memcmp(got + at, on_wire + at, part), 0);
        at += part;
        if (at > reached) {
            reached = at;
            at -= MIN(at, back);
        }
    }
    ck_assert(!next_error(&error));
}
END_TEST

/* Each byte of a block and of its signature is damaged in turn: the error is found, and says where;
 * the transfer goes on. */
START_TEST(each_damaged_byte_is_found)
{
    const struct ref *d = &domains[_i / 2 + 1];
    bool is_write = _i % 2;
    size_t unit = d->block + ref_bytes(d),
           len = ref_layout(d, memset(data, 7, ROOM), 3 * d->block, in_memory);
    struct sig_error error;
    bool armed = false;

    for (size_t at = 0; at < unit; at += at < d->block - 4 ? 97 : 1) {
        armed = !armed;
        memcpy(got, in_memory, len);
        got[unit + at] ^= 0x10;
        got[2 * unit + at] ^= 0x10; /* a second error, which is not reported */
        prepare(is_write ? &none : d, is_write ? d : &none, is_write ? 3 * d->block : len, armed);
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        if (!is_write) {
            memcpy(ram(memory), got, len);
        }
        ck_assert_int_eq(transfer(is_write, 0, got, is_write ? len : 3 * d->block, 0), MEM_OK);
        ck_assert(next_error(&error));
        ck_assert_uint_eq(error.key, key);
        ck_assert_uint_eq(error.offset, unit);
        ck_assert_uint_eq(error.domain,
                          is_write ? PRM_SIG_ERR_DOMAIN_WIRE : PRM_SIG_ERR_DOMAIN_MEMORY);
        if (ref_bytes(d) == 8 && d->kind != SIG_CRC64_XP10 && at >= d->block + 4) {
            ck_assert_uint_eq(error.syndrome, 1 << PRM_SIG_ERR_SYNDROME_REFTAG);
        } else if (ref_bytes(d) == 8 && d->kind != SIG_CRC64_XP10 && at >= d->block + 2) {
            ck_assert_uint_eq(error.syndrome, 1 << PRM_SIG_ERR_SYNDROME_APPTAG);
        } else {
            ck_assert_uint_eq(error.syndrome, 1 << PRM_SIG_ERR_SYNDROME_GUARD);
        }
        ck_assert(!next_error(&error));
        transfer(is_write, 0, got, is_write ? len : 3 * d->block, 0);
        ck_assert(!next_error(&error)); /* kept, until a UMR changes the parity */
    }
}
END_TEST

/* Bytes outside the check mask, and blocks with escape values, are not checked. */
START_TEST(masks_and_escapes_are_obeyed)
{
    static const struct {
        uint8_t check_mask;
        uint16_t app_bits;
        bool app_escape, ref_escape;
        uint16_t app;
        uint32_t tag;
        int bit; /* of the syndrome; -1: no error */
    } cases[] = {
        {0xff, 0xffff, false, false, VALUE, 1, PRM_SIG_ERR_SYNDROME_GUARD},
        {0x3f, 0xffff, false, false, VALUE, 0, -1},
        {0x3f, 0xffff, false, false, VALUE, 1, PRM_SIG_ERR_SYNDROME_REFTAG},
        {0x30, 0xffff, false, false, VALUE, 1, -1},
        {0x30, 0xffff, false, false, VALUE ^ 0x8000, 1, PRM_SIG_ERR_SYNDROME_APPTAG},
        {0x30, 0x7fff, false, false, VALUE ^ 0x8000, 1, -1},
        {0x20, 0xffff, false, false, VALUE ^ 0x80, 1, -1}, /* only the first byte */
        {0x20, 0xffff, false, false, VALUE ^ 0x8000, 1, PRM_SIG_ERR_SYNDROME_APPTAG},
        {0x01, 0xffff, false, false, 0, 0x100, -1}, /* only the last byte */
        {0xff, 0xffff, true, false, 0xffff, 1, -1},
        {0xff, 0xffff, true, false, 0xfffe, 1, PRM_SIG_ERR_SYNDROME_GUARD},
        {0xff, 0xffff, false, true, 0xffff, 1, PRM_SIG_ERR_SYNDROME_GUARD},
        {0xff, 0xffff, false, true, 0xffff, 0xffffffff, -1},
        {0x00, 0xffff, false, false, 0, 1, -1},
    };
    const struct ref ref = {SIG_T10_CRC, 512, false, false, VALUE, 0};
    bool armed = true;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct sig_error error;
        struct prm_bsf_inl *inl;

        memset(data, 3, 512);
        ref_layout(&ref, data, 512, in_memory);
        in_memory[512] ^= 1; /* the guard is always wrong */
        in_memory[514] = cases[i].app >> 8;
        in_memory[515] = cases[i].app & 0xff;
        prm_store32(in_memory + 516, cases[i].tag);
        memcpy(ram(memory), in_memory, 520);
        prepare(&ref, &none, 520, armed);
        inl = PRM_PTR(bsf, the_bsf(), m_inl);
        PRM_SET(bsf, the_bsf(), check_byte_mask, cases[i].check_mask);
        PRM_SET(bsf_inl, inl, dif_app_bitmask_check, cases[i].app_bits);
        PRM_SET(bsf_inl, inl, apptag_escape, cases[i].app_escape);
        PRM_SET(bsf_inl, inl, appref_escape, cases[i].ref_escape);
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        ck_assert_int_eq(transfer(false, 0, got, 512, 100), MEM_OK);
        if (cases[i].bit < 0) {
            ck_assert_msg(!next_error(&error), "case %zu", i);
        } else {
            ck_assert_msg(next_error(&error), "case %zu", i);
            ck_assert_uint_eq(error.syndrome, 1u << cases[i].bit);
            armed = !armed; /* the next UMR arms the key again */
        }
    }
}
END_TEST

/* mlx5dv_wr_set_mkey_sig_block(3): bytes in the copy mask are taken from the input domain. */
START_TEST(bytes_in_the_copy_mask_are_copied)
{
    const struct ref m = {SIG_T10_CRC, 512, false, true, VALUE, 7};
    const struct ref w = {SIG_T10_CRC, 512, false, true, 0x5678, 100};

    for (unsigned mask = 0; mask < 256; mask += 15) {
        size_t len;

        random_data(2048);
        len = ref_layout(&m, data, 2048, in_memory);
        ref_layout(&w, data, 2048, on_wire);
        prepare(&m, &w, len, true);
        PRM_SET(bsf, the_bsf(), copy_byte_mask, mask);
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        memcpy(ram(memory), in_memory, len);
        ck_assert_int_eq(transfer(false, 0, got, len, 0), MEM_OK);
        for (size_t i = 0; i < len; i++) {
            bool copied = i % 520 >= 512 && mask & 0x80 >> (i % 520 - 512);

            ck_assert_uint_eq(got[i], copied ? in_memory[i] : on_wire[i]);
        }
        ck_assert_int_eq(transfer(true, 0, on_wire, len, 0), MEM_OK);
        for (size_t i = 0; i < len; i++) {
            bool copied = i % 520 >= 512 && mask & 0x80 >> (i % 520 - 512);

            ck_assert_uint_eq(*ram(memory + i), copied ? on_wire[i] : in_memory[i]);
        }
    }
}
END_TEST

/* raw_data_size: the data ends there, and a block that it cuts short has a signature. */
START_TEST(data_ends_at_its_size)
{
    const struct ref ref = {SIG_CRC32C, 4096, true, false, 0, 0};
    uint32_t crc;

    random_data(ROOM);
    prepare(&none, &ref, 9000, true);
    PRM_SET(bsf, the_bsf(), raw_data_size, 5000);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    memcpy(ram(memory), data, 9000);
    ck_assert_int_eq(transfer(false, 0, got, 5008, 0), MEM_OK);
    ck_assert_int_eq(memcmp(got + 4100, data + 4096, 904), 0);
    memcpy(&crc, got + 5004, 4);
    ck_assert_uint_eq(GUINT32_FROM_LE(crc), ref_guard(&ref, data + 4096, 904));
    ck_assert_int_eq(transfer(false, 5008, got, 1, 1), MEM_BAD_BOUNDS);
}
END_TEST

/* A list element counts the data, and the signatures that both domains have: 512 bytes of data are
 * 520 on the wire (rdma-core: test_mkey_sig_t10dif), and with a signature in memory alone they are
 * 512 (test_mkey_sig_err). */
START_TEST(elements_become_ranges_of_the_wire)
{
    const struct ref t10 = {SIG_T10_CRC, 512, false, true, VALUE, 7};
    const struct ref *pairs[][2] = {{&none, &t10}, {&t10, &none}, {&t10, &t10}};
    const uint32_t want[][2] = {{520, 1040}, {512, 1024}, {512, 1024}};
    struct sge list[2];

    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        uint64_t len = 512 + 512 + 100;

        configure(pairs[i][0], pairs[i][1], 4 * 520);
        list[0] = (struct sge){.va = 0, .len = 512, .lkey = key};
        list[1] = (struct sge){.va = 512, .len = 512, .lkey = key};
        mkey_list_to_wire(&rig.hca, list, 2, &len);
        ck_assert_uint_eq(list[0].len, want[i][0]);
        ck_assert_uint_eq(list[1].va, list[0].len);
        ck_assert_uint_eq(list[1].va + list[1].len, want[i][1]);
        ck_assert_uint_eq(len, 100 + want[i][1]);
    }
    list[0] = (struct sge){.va = VA, .len = 512, .lkey = inner};
    mkey_list_transform(&rig.hca, list, 1, &(uint64_t){0});
    ck_assert_uint_eq(list[0].len, 512);
}
END_TEST

/* A descriptor that the device cannot obey changes nothing. */
START_TEST(bad_descriptors_are_refused)
{
    static const struct {
        uint32_t field;
        uint64_t value;
    } bad[] = {
        {PRM_bsf_m_psv_FIELD, 0xffff},
        {PRM_bsf_w_psv_FIELD, 0},
        {PRM_bsf_mem_bs_selector_FIELD, 0},
        {PRM_bsf_mem_bs_selector_FIELD, PRM_BSF_BLOCK_1_GIB}, /* of any length */
        {PRM_bsf_mem_bs_selector_FIELD, 7},
        {PRM_bsf_wire_bs_selector_FIELD, 200},
        {PRM_bsf_w_bfs_FIELD, 0x32},
        {PRM_bsf_w_bfs_FIELD, PRM_BSF_FORMAT_CRC32},
        {PRM_bsf_crypto_FIELD, 1},
        {PRM_bsf_t_init_gen_pro_size_FIELD, 1},
        {PRM_bsf_epi_size_FIELD, 1},
        {PRM_bsf_w_t_psv_FIELD, 1},
        {PRM_bsf_m_t_psv_FIELD, 1},
        {PRM_bsf_sbs_FIELD, 1},
    };
    const struct ref m = {SIG_T10_CRC, 512, false, true, VALUE, 7};
    const struct ref w = {SIG_CRC32, 512, false, false, 0, 0};
    uint32_t foreign[PSV_MAX], index;
    struct prm_mkc mkc[1];
    uint8_t byte;

    configure(&none, &none, 520);
    ck_assert_int_eq(peek(key, 519, &byte), MEM_OK);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        prepare(&m, &w, 520, true);
        prm_set(the_bsf(), bad[i].field, bad[i].value, "bsf");
        ck_assert_msg(mkey_umr(&rig.hca, &umr.req) == MEM_BAD_BOUNDS, "case %zu", i);
        ck_assert_int_eq(peek(key, 519, &byte), MEM_OK); /* still without signatures */
    }
    prepare(&m, &w, 520, true);
    umr.req.bsf_len = 128; /* more than the key has room for */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    umr.req.bsf_len = 8;
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    umr.req.bsf_len = 16; /* it says that it has the inline parts */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    prepare(&m, &w, 520, true);
    PRM_SET(bsf_inl, PRM_PTR(bsf, the_bsf(), m_inl), repeat_block, 0);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    ck_assert_int_eq(psv_create(&rig.hca, 0, rig.user_pdn, 1, foreign), SYN_OK);
    prepare(&m, &w, 520, true);
    PRM_SET(bsf, the_bsf(), m_psv, foreign[0]);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);

    fill_mkc(mkc, PRM_MKC_ACCESS_MODE_KLMS, 0, 0); /* room for the basic part alone */
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, bsf_octword_size, 1);
    prepare(&m, &w, 520, true);
    umr.req.key = create(mkc, NULL, 0);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
    PRM_SET(mkc, mkc, free, 0); /* only a free key may have room */
    ck_assert_int_eq(mkey_create(&rig.hca, 0, mkc, NULL, 0, false, &index), SYN_MKEY_MODE);

    umr_start(&umr, inner, MASK(BSF_EN)); /* a key without room for a descriptor */
    PRM_SET(mkc, umr.mkc, bsf_en, 1);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_BAD_BOUNDS);
}
END_TEST

/* If there is no memory for all, there are none. */
START_TEST(psvs_are_created_together_or_not_at_all)
{
    uint32_t four[PSV_MAX];
    unsigned refused = 0;
    uint64_t used;
    enum syn syn;

    for (unsigned warm = 0; warm < 2; warm++) {
        ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, PSV_MAX, four), SYN_OK);
        for (unsigned i = 0; i < PSV_MAX; i++) {
            ck_assert_int_eq(psv_destroy(&rig.hca, 0, four[i]), SYN_OK);
        }
    }
    used = rig.hca.memory.used;
    for (uint64_t room = 0;; room += 16) {
        rig.hca.memory.limit = used + room;
        syn = psv_create(&rig.hca, 0, rig.pdn, PSV_MAX, four);
        if (syn == SYN_OK) {
            break;
        }
        ck_assert_int_eq(syn, SYN_NO_MEMORY);
        ck_assert_uint_eq(rig.hca.memory.used, used);
        refused++;
    }
    rig.hca.memory.limit = UINT64_MAX;
    ck_assert_uint_gt(refused, PSV_MAX);
}
END_TEST

/* A key whose PSV is gone refuses what needs the PSV. An error that nobody has asked for ends with
 * its key, and errors of other PDs are not told. */
START_TEST(what_ends_is_not_used)
{
    const struct ref ref = {SIG_CRC32, 512, true, false, 0, 0};
    struct sig_error error;
    struct mkey_words words;
    uint32_t foreign[PSV_MAX];

    memset(ram(memory), 0, 2048);
    configure(&ref, &none, 2064);
    ck_assert_int_eq(transfer(false, 0, got, 2048, 0), MEM_OK);
    ck_assert(!sig_take_error(&rig.hca, rig.user_pdn, &error));
    ck_assert(!next_error(&error)); /* the other PD has not got it either */
    prepare(&ref, &none, 2064, false);
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 2048, 0), MEM_OK);
    ck_assert_ptr_nonnull(rig.hca.sig_pending);
    ck_assert_int_eq(psv_create(&rig.hca, RIG_USER, rig.pdn, 1, foreign), SYN_BAD_UID);
    ck_assert_int_eq(psv_destroy(&rig.hca, RIG_USER, psvs[0]), SYN_BAD_UID);
    ck_assert_int_eq(psv_destroy(&rig.hca, 0, psvs[0]), SYN_OK);
    ck_assert_int_eq(psv_destroy(&rig.hca, 0, psvs[0]), SYN_NO_PSV);
    ck_assert_int_eq(transfer(false, 0, got, 512, 0), MEM_BAD_KEY);
    ck_assert_ptr_nonnull(strstr(mkey_why(&rig.hca, &words), "(PSV)"));
    ck_assert_int_eq(mkey_destroy(&rig.hca, 0, key >> 8), SYN_OK);
    ck_assert_ptr_null(rig.hca.sig_pending);
    ck_assert_uint_eq(rig.hca.transforms, 0);
}
END_TEST

/* Words of the wire domain have no place in memory. */
/* A block begins again while its signature value is gone, so the attempt fails; its data is in
 * memory. When another value has the number, the rest of the block comes: the guard is that of the
 * bytes in memory, and not of those that came first. */
START_TEST(a_block_that_begins_in_vain_is_read_again)
{
    const struct ref *m = &domains[1], *w = &domains[0];
    size_t len = m->block, mem_len;
    uint32_t again[PSV_MAX];

    memset(data, 1, len);
    configure(m, w, ref_layout(m, data, len, in_memory));
    ck_assert_int_eq(transfer(true, 0, data, 300, 300), MEM_OK);
    memset(data, 2, len);
    ck_assert_int_eq(psv_destroy(&rig.hca, 0, psvs[0]), SYN_OK);
    ck_assert_int_eq(transfer(true, 0, data, 300, 300), MEM_BAD_KEY);
    do {
        ck_assert_int_eq(psv_create(&rig.hca, 0, rig.pdn, 1, again), SYN_OK);
    } while (again[0] != psvs[0] && !psv_destroy(&rig.hca, 0, again[0]));
    psv_set(&rig.hca, psv_find(&rig.hca, psvs[0], rig.pdn), ref_psv(m));
    ck_assert_int_eq(transfer(true, 300, data + 300, len - 300, len - 300), MEM_OK);
    mem_len = ref_layout(m, data, len, in_memory);
    ck_assert_int_eq(memcmp(ram(memory), in_memory, mem_len), 0);
}
END_TEST

/* The bytes in front of a piece are read from memory for its block's guard. If that fails midway,
 * nothing of it is kept: they are read again, and may have changed. */
START_TEST(bytes_that_were_read_in_vain_are_read_again)
{
    const struct ref *m = &domains[0], *w = &domains[2];
    size_t len = w->block, wire_len;

    configure(m, w, len);
    memset(ram(memory), 1, len);
    rig.host.hole = mem + memory + 1500;
    ck_assert_int_eq(transfer(false, 2000, got, 8, 8), MEM_NO_ANSWER);
    rig.host.hole = 0;
    memset(data, 2, len);
    memcpy(ram(memory), data, len);
    wire_len = ref_layout(w, data, len, on_wire);
    ck_assert_int_eq(transfer(false, 1024, got, wire_len - 1024, wire_len), MEM_OK);
    ck_assert_mem_eq(got, on_wire + 1024, wire_len - 1024);
}
END_TEST

START_TEST(atomics_are_refused)
{
    uint64_t original;

    configure(&none, &domains[1], 2080);
    ck_assert_int_eq(mkey_fetch_add(&rig.hca, key, rig.pdn, 0, 1, &original), MEM_BAD_BOUNDS);
}
END_TEST

/* A list that names a key with signatures could name itself behind that key. */
START_TEST(no_list_names_a_key_with_signatures)
{
    struct mkey_words words;
    uint8_t list[64] = {0};
    uint32_t outer;

    configure(&none, &domains[1], 1024);
    klm(list, 0, 1040, key, 0);
    outer = create_klm(PRM_MKC_ACCESS_MODE_KLMS, 0, 1040, list, 4);
    ck_assert_int_eq(mkey_read(&rig.hca, outer, rig.pdn, 0, got, 1, MEM_LOCAL_READ), MEM_BAD_KEY);
    ck_assert_ptr_nonnull(strstr(mkey_why(&rig.hca, &words), "has signatures"));
    prepare(&none, &domains[1], 1024, true);
    klm(umr.xlt, 0, 1024, key, 0); /* the key itself */
    ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
    ck_assert_int_eq(transfer(false, 0, got, 1024, 0), MEM_BAD_KEY);
}
END_TEST

/* An error that nobody asked for, because the key is in an Ethernet queue, is one error of the key,
 * however often a UMR arms the key. */
START_TEST(errors_without_a_reader_are_kept_once)
{
    struct sig_error error;

    memset(ram(memory), 0, 520);
    for (unsigned i = 0; i < 3; i++) {
        prepare(&domains[1], &none, 520, i % 2 == 0);
        ck_assert_int_eq(mkey_umr(&rig.hca, &umr.req), MEM_OK);
        ck_assert_int_eq(transfer(false, 0, got, 512, 0), MEM_OK);
    }
    ck_assert(next_error(&error));
    ck_assert(!next_error(&error));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("sig");
    TCase *tc = tcase_create("sig");
    int pairs = (int)(G_N_ELEMENTS(domains) * G_N_ELEMENTS(domains));

    tcase_add_checked_fixture(tc, sig_setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, guards_have_their_published_values, 0, 2);
    tcase_add_loop_test(tc, guards_are_computed_in_any_pieces, 0, 2);
    tcase_add_loop_test(tc, every_pair_of_domains_agrees_with_the_reference, 0, pairs);
    tcase_add_loop_test(tc, going_back_into_the_midst_of_a_block_changes_nothing, 0, pairs);
    tcase_add_loop_test(tc, each_damaged_byte_is_found, 0, 2 * (int)(G_N_ELEMENTS(domains) - 1));
    tcase_add_test(tc, masks_and_escapes_are_obeyed);
    tcase_add_test(tc, bytes_in_the_copy_mask_are_copied);
    tcase_add_test(tc, data_ends_at_its_size);
    tcase_add_test(tc, elements_become_ranges_of_the_wire);
    tcase_add_test(tc, bad_descriptors_are_refused);
    tcase_add_test(tc, what_ends_is_not_used);
    tcase_add_test(tc, a_block_that_begins_in_vain_is_read_again);
    tcase_add_test(tc, bytes_that_were_read_in_vain_are_read_again);
    tcase_add_test(tc, atomics_are_refused);
    tcase_add_test(tc, no_list_names_a_key_with_signatures);
    tcase_add_test(tc, errors_without_a_reader_are_kept_once);
    tcase_add_test(tc, psvs_are_created_together_or_not_at_all);
    suite_add_tcase(s, tc);
    return s;
}
