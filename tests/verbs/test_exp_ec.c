/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests erasure coding (ibv_exp_ec_*()): what the device computes is compared with a reference that
 * multiplies bit by bit; and every error of the calls.
 */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include "guest-lib/verbs/exp/ec.h"
#include "guest-lib/verbs/user/device.h"
#include "tests/unit/gf_ref.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define MOST   24u /* blocks of a code */
#define AREA   (64u << 10)
#define EXTRA  12u /* blocks for updates */
#define BLOCK  1024u
#define UNUSED 0xee

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t *area; /* of all blocks: block b begins at b * slot */
static uint32_t slot;
static struct code code;
static struct ibv_exp_ec_calc *calc;
static struct ibv_sge sge[MOST + EXTRA]; /* data, code, then others */

static unsigned done, failed;

static void note(struct ibv_exp_ec_comp *comp)
{
    done++;
    failed += comp->status != IBV_EXP_EC_CALC_SUCCESS;
}

static struct ibv_exp_ec_comp comp = {.done = note};

/* Polls until n calculations have ended, within 100 virtual seconds. */
static void await(unsigned n)
{
    uint64_t limit = v->hosts->world->now_ns + 100 * VERBS_SECOND;

    while (done < n) {
        ck_assert_int_ge(ibv_exp_ec_poll(calc, INT_MAX), 0);
        ck_assert(done >= n || inproc_step(v->hosts->world, limit));
    }
    ck_assert_uint_eq(done, n);
}

/* A calculation, which must succeed. */
static void must(int err)
{
    ck_assert_int_eq(err, 0);
    await(1);
    done = 0;
    ck_assert_uint_eq(failed, 0);
}

static void setup(void)
{
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    area = aligned_alloc(4096, (MOST + EXTRA) * AREA);
    memset(area, UNUSED, (MOST + EXTRA) * AREA);
    mr = ibv_reg_mr(pd, area, (MOST + EXTRA) * AREA, IBV_ACCESS_LOCAL_WRITE);
    ck_assert_ptr_nonnull(mr);
}

static void teardown(void)
{
    if (calc) {
        ibv_exp_dealloc_ec_calc(calc);
        calc = NULL;
    }
    ibv_dereg_mr(mr);
    free(area);
    verbs_table_free(v);
}

static struct ibv_exp_ec_calc_init_attr attr_of(const struct code *of)
{
    return (struct ibv_exp_ec_calc_init_attr){
        .comp_mask = IBV_EXP_EC_CALC_INIT_ATTR_RESERVED - 1,
        .max_inflight_calcs = 4,
        .k = (int)of->k,
        .m = (int)of->m,
        .w = (int)of->w,
        .max_data_sge = (int)of->k,
        .max_code_sge = (int)of->m,
        .encode_matrix = (uint8_t *)of->matrix,
        .polling = 1,
    };
}

/* Makes a calculation, and its blocks, which lie distance bytes apart. */
static struct ibv_exp_ec_mem begin(unsigned k, unsigned m, unsigned w, uint32_t block,
                                   uint32_t distance)
{
    struct ibv_exp_ec_calc_init_attr attr;

    if (calc) {
        ibv_exp_dealloc_ec_calc(calc);
    }
    code_make(&code, k, m, w);
    attr = attr_of(&code);
    calc = ibv_exp_alloc_ec_calc(pd, &attr);
    ck_assert_msg(calc != NULL, "k %u m %u w %u: errno %d", k, m, w, errno);
    slot = distance;
    memset(area, UNUSED, (MOST + EXTRA) * AREA);
    for (unsigned b = 0; b < MOST + EXTRA; b++) {
        sge[b] = (struct ibv_sge){(uintptr_t)(area + b * slot), block, mr->lkey};
    }
    for (size_t i = 0; i < (size_t)k * slot; i++) {
        area[i] = (uint8_t)(i * 31 + i / 253 + w);
    }
    done = failed = 0;
    return (struct ibv_exp_ec_mem){.data_blocks = sge,
                                   .num_data_sge = (int)k,
                                   .code_blocks = sge + k,
                                   .num_code_sge = (int)m,
                                   .block_size = (int)block};
}

/* Whether code block j, at the given place, is what the data say; and nothing is written behind. */
static void expect_code(unsigned j, const uint8_t *at, uint32_t block)
{
    uint8_t *data[MOST];

    for (unsigned i = 0; i < code.k; i++) {
        data[i] = area + i * slot;
    }
    for (uint32_t n = 0; n < (block & ~3u); n++) {
        ck_assert_msg(at[n] == code_byte(&code, data, j, n), "k %u m %u w %u: code %u, byte %u",
                      code.k, code.m, code.w, j, n);
    }
    for (uint32_t n = block & ~3u; n < slot; n++) {
        ck_assert_msg(at[n] == UNUSED, "byte %u behind code %u", n, j);
    }
}

static void expect_codes(uint32_t block)
{
    for (unsigned j = 0; j < code.m; j++) {
        expect_code(j, area + (code.k + j) * slot, block);
    }
}

/* -- encode ------------------------------------------------------------------------------------ */

static const struct {
    unsigned k, m, w;
} codes[] = {
    {1, 1, 1}, {1, 1, 2}, {2, 2, 2},  {3, 1, 2}, {1, 3, 4}, {4, 2, 4},  {10, 4, 4},
    {8, 5, 4}, {1, 1, 8}, {10, 4, 8}, {6, 3, 8}, {3, 9, 8}, {12, 8, 8},
};

static const struct {
    uint32_t block, distance;
} blocks[] = {{64, 64},     {64, 128},    {4, 64},      {60, 64},  {1024, 1024},
              {1000, 1024}, {4096, 8192}, {5000, 6000}, {131, 192}};

/* m is not limited to the four results of a calculation; neither is the length of a block to whole
 * chunks. Of a block, whole units of 4 bytes are computed. */
START_TEST(the_device_encodes_every_code)
{
    for (unsigned b = 0; b < G_N_ELEMENTS(blocks); b++) {
        struct ibv_exp_ec_mem mem =
            begin(codes[_i].k, codes[_i].m, codes[_i].w, blocks[b].block, blocks[b].distance);

        must(ibv_exp_ec_encode_async(calc, &mem, &comp));
        expect_codes(blocks[b].block);
    }
}
END_TEST

/* -- decode ------------------------------------------------------------------------------------ */

/* Loses the blocks of a map, decodes, and compares with what was there. */
static void lose(struct ibv_exp_ec_mem *mem, const uint8_t *lost)
{
    uint8_t decoder[CODE_SMALL * MOST], was[MOST][BLOCK], map[MOST];

    memcpy(map, lost, sizeof(map));
    code_decoder(&code, map, decoder);
    for (unsigned b = 0; b < code.k + code.m; b++) {
        memcpy(was[b], area + b * slot, BLOCK);
        if (lost[b]) {
            memset(area + b * slot, UNUSED, BLOCK);
        }
    }
    must(ibv_exp_ec_decode_async(calc, mem, map, decoder, &comp));
    for (unsigned b = 0; b < code.k + code.m; b++) {
        ck_assert_msg(!memcmp(was[b], area + b * slot, BLOCK), "block %u is not decoded", b);
    }
}

static unsigned code_lost(const uint8_t *lost, unsigned n)
{
    unsigned count = 0;

    for (unsigned b = 0; b < n; b++) {
        count += lost[b];
    }
    return count;
}

/* Any m blocks may be lost: all choices of small codes, windows of large ones. */
START_TEST(lost_blocks_are_decoded)
{
    struct ibv_exp_ec_mem mem = begin(codes[_i].k, codes[_i].m, codes[_i].w, BLOCK, 2 * BLOCK);
    unsigned n = code.k + code.m;

    must(ibv_exp_ec_encode_async(calc, &mem, &comp));
    for (unsigned choice = 1; choice < 1u << MIN(n, 7); choice++) {
        uint8_t lost[MOST] = {0};

        for (unsigned b = 0; b < 7; b++) {
            lost[(b + choice) % n] |= choice >> b & 1;
        }
        if (code_lost(lost, n) && code_lost(lost, n) <= code.m) {
            lose(&mem, lost);
        }
    }
}
END_TEST

/* More than four lost blocks take several calculations. */
START_TEST(many_lost_blocks_are_decoded)
{
    struct ibv_exp_ec_mem mem = begin(12, 8, 8, BLOCK, BLOCK);
    static const uint8_t lost[MOST] = {1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1};

    must(ibv_exp_ec_encode_async(calc, &mem, &comp));
    lose(&mem, lost);
}
END_TEST

START_TEST(nothing_lost_is_decoded_at_once)
{
    struct ibv_exp_ec_mem mem = begin(4, 2, 4, BLOCK, BLOCK);
    uint8_t lost[MOST] = {0}, decoder[1];

    ck_assert_int_eq(ibv_exp_ec_decode_sync(calc, &mem, lost, decoder), 0);
}
END_TEST

/* -- update ------------------------------------------------------------------------------------ */

/* The old code, the old and the new blocks of data give the new code. */
static void update(struct ibv_exp_ec_mem *mem, const uint8_t *data_map, const uint8_t *code_map)
{
    struct ibv_sge in[MOST + EXTRA], out[MOST];
    struct ibv_exp_ec_mem changes = {
        .data_blocks = in, .code_blocks = out, .block_size = mem->block_size};
    unsigned n = code.k + code.m;

    for (unsigned j = 0; j < code.m; j++) {
        if (code_map[j]) {
            in[changes.num_data_sge++] = sge[code.k + j];
            out[changes.num_code_sge++] = sge[code.k + j];
        }
    }
    for (unsigned i = 0; i < code.k; i++) {
        if (data_map[i]) { /* the old block moves away; the new one takes its place */
            in[changes.num_data_sge++] = sge[n];
            in[changes.num_data_sge++] = sge[i];
            memcpy(area + n++ * slot, area + i * slot, BLOCK);
            for (unsigned at = 0; at < BLOCK; at++) {
                area[i * slot + at] ^= (uint8_t)(at * 13 + i);
            }
        }
    }
    must(ibv_exp_ec_update_async(calc, &changes, (uint8_t *)data_map, (uint8_t *)code_map, &comp));
}

START_TEST(code_is_updated_by_changes)
{
    static const struct {
        unsigned k, m, w;
        uint8_t data[MOST], code[MOST];
    } updates[] = {
        {6, 1, 4, {0, 1}, {1}},
        {8, 2, 4, {1, 0, 1}, {1, 1}},
        {12, 4, 4, {0, 0, 1, 0, 0, 1, 1}, {1, 1, 1, 1}},
        {12, 3, 8, {1, 1, 1, 1}, {1, 1, 1}},
        {12, 7, 8, {0, 1, 0, 0, 0, 1}, {1, 1, 1, 1, 1, 1, 1}},
    };
    struct ibv_exp_ec_mem mem = begin(updates[_i].k, updates[_i].m, updates[_i].w, BLOCK, BLOCK);

    must(ibv_exp_ec_encode_async(calc, &mem, &comp));
    update(&mem, updates[_i].data, updates[_i].code);
    expect_codes(BLOCK);
}
END_TEST

/* A block of code that the map does not name stays as it is. */
START_TEST(other_code_is_not_touched)
{
    struct ibv_exp_ec_mem mem = begin(12, 6, 8, BLOCK, BLOCK);
    static const uint8_t data[MOST] = {0, 0, 1}, some[MOST] = {1, 0, 1, 1, 1, 1};
    uint8_t was[BLOCK];

    must(ibv_exp_ec_encode_async(calc, &mem, &comp));
    memcpy(was, area + 13 * slot, BLOCK);
    update(&mem, data, some);
    ck_assert_mem_eq(area + 13 * slot, was, BLOCK);
    expect_code(0, area + 12 * slot, BLOCK);
    for (unsigned j = 2; j < 6; j++) {
        expect_code(j, area + (12 + j) * slot, BLOCK);
    }
}
END_TEST

/* -- asynchronous calls ------------------------------------------------------------------------ */

/* max_inflight_calcs of the program's, and four more, may be in flight. */
START_TEST(too_many_calculations_are_refused)
{
    struct ibv_exp_ec_mem mem = begin(4, (unsigned)_i, 8, BLOCK, BLOCK);

    for (unsigned i = 0; i < 4 + EXP_EC_BATCH; i++) {
        ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    }
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), -EOVERFLOW);
    await(4 + EXP_EC_BATCH);
    ck_assert_uint_eq(failed, 0);
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    await(5 + EXP_EC_BATCH);
    expect_codes(BLOCK);
}
END_TEST

/* A key that does not allow the access fails the calculation, and those after it. */
START_TEST(a_calculation_with_a_bad_key_fails)
{
    struct ibv_exp_ec_mem mem = begin(4, 5, 8, BLOCK, 2 * BLOCK);

    sge[_i].lkey += 0x100000;
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    await(2);
    ck_assert_uint_eq(failed, 2);
    sge[_i].lkey -= 0x100000;
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    await(3);
    ck_assert_uint_eq(failed, 3);
}
END_TEST

/* -- the end ----------------------------------------------------------------------------------- */

static void end_it(struct ibv_exp_ec_comp *ended)
{
    note(ended);
    ibv_exp_dealloc_ec_calc(calc);
    calc = NULL;
}

/* The calculation that the callback has ended is not touched any more: the others that were in
 * flight are not told of. */
START_TEST(a_callback_may_end_the_calculation)
{
    struct ibv_exp_ec_mem mem = begin(4, 5, 8, BLOCK, BLOCK);
    struct ibv_exp_ec_comp ends = {.done = end_it};

    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &ends), 0);
    }
    table_wait(v);
    ck_assert_int_gt(ibv_exp_ec_poll(calc, INT_MAX), 0);
    ck_assert_ptr_null(calc);
    ck_assert_uint_eq(done, 1);
}
END_TEST

/* A poll tells of those that will not complete any more, and nothing is begun. */
START_TEST(calculations_fail_when_the_device_is_removed)
{
    struct ibv_exp_ec_mem mem = begin(4, 5, 8, BLOCK, BLOCK);

    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), 0);
    }
    hv_device_remove(v->a->device);
    ck_assert_int_ge(ibv_exp_ec_poll(calc, INT_MAX), 0);
    ck_assert_uint_eq(done, 3);
    ck_assert_int_eq(ibv_exp_ec_encode_async(calc, &mem, &comp), EIO);
    ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &mem), EIO);
    ck_assert_int_eq(ibv_exp_ec_poll(calc, INT_MAX), 0);
    ck_assert_uint_eq(done, 3);
}
END_TEST

/* -- errors ------------------------------------------------------------------------------------ */

/* libmlx5, ec_attr_sanity_checks(). */
START_TEST(attributes_are_checked)
{
    static const struct {
        int k, m, w, data, code;
    } bad[] = {{0, 2, 8, 0, 2},      {256, 2, 8, 256, 2}, {4, 0, 8, 4, 0}, {4, 256, 8, 4, 256},
               {4, 2, 3, 4, 2},      {4, 2, 16, 4, 2},    {2, 1, 1, 2, 1}, {3, 2, 2, 3, 2},
               {12, 5, 4, 12, 5},    {4, 2, 8, 3, 2},     {4, 2, 8, 4, 3}, {-1, 2, 8, -1, 2},
               {200, 57, 8, 200, 57}};
    struct ibv_exp_ec_calc_init_attr attr;

    code_make(&code, 4, 2, 8);
    attr = attr_of(&code);
    attr.k = bad[_i].k;
    attr.m = bad[_i].m;
    attr.w = bad[_i].w;
    attr.max_data_sge = bad[_i].data;
    attr.max_code_sge = bad[_i].code;
    errno = 0;
    ck_assert_ptr_null(ibv_exp_alloc_ec_calc(pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(unknown_bits_of_the_mask_are_refused)
{
    struct ibv_exp_ec_calc_init_attr attr;

    code_make(&code, 4, 2, 8);
    attr = attr_of(&code);
    attr.comp_mask |= IBV_EXP_EC_CALC_INIT_ATTR_RESERVED;
    ck_assert_ptr_null(ibv_exp_alloc_ec_calc(pd, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* The device refuses each command in turn: nothing of the calculation is left in its PD. */
START_TEST(a_calculation_that_fails_half_way_is_taken_back)
{
    struct ibv_exp_ec_calc *made = NULL;
    struct ibv_exp_ec_calc_init_attr attr;
    unsigned refused = 0;

    code_make(&code, 4, 2, 8);
    attr = attr_of(&code);
    attr.polling = _i;
    while (!made) {
        struct ibv_pd *own = ibv_alloc_pd(v->a);

        table_refuse_nth(v, 0, PRM_CMD_STATUS_NO_RES, refused);
        errno = 0;
        made = ibv_exp_alloc_ec_calc(own, &attr);
        ck_assert(table_refuse_end() == (made != NULL));
        if (made) {
            ibv_exp_dealloc_ec_calc(made);
        } else {
            ck_assert_int_ne(errno, 0);
            refused++;
        }
        ck_assert_int_eq(ibv_dealloc_pd(own), 0);
    }
    /* a CQ, a QP and its three transitions, a region, two keys of each step */
    ck_assert_uint_ge(refused, 6 + 2 * (4 + EXP_EC_BATCH));
}
END_TEST

/* libmlx5: numbers of blocks are -EINVAL, lengths are EINVAL. */
START_TEST(numbers_and_lengths_of_blocks_are_checked)
{
    struct ibv_exp_ec_mem mem = begin(8, 2, 8, BLOCK, BLOCK);
    uint8_t lost[MOST] = {1}, map[MOST] = {1}, decoder[CODE_SMALL * MOST] = {0};
    struct ibv_exp_ec_mem bad = mem;

    bad.num_data_sge = 7;
    ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &bad), -EINVAL);
    bad = mem;
    bad.num_code_sge = 3;
    ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &bad), -EINVAL);
    bad = mem;
    bad.block_size = 512;
    ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &bad), EINVAL);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_exp_ec_decode_sync(calc, &bad, lost, decoder), EINVAL);
    bad.block_size = 0;
    ck_assert_int_eq(ibv_exp_ec_encode_sync(calc, &bad), EINVAL);
    memset(lost, 1, 3); /* of 2 */
    ck_assert_int_eq(ibv_exp_ec_decode_sync(calc, &mem, lost, decoder), EINVAL);
    /* an update: numbers that are not those of its maps; as many blocks as an encoding */
    ck_assert_int_eq(ibv_exp_ec_update_sync(calc, &mem, map, map), -EINVAL);
    memset(map, 1, 3);
    ck_assert_int_eq(ibv_exp_ec_update_sync(calc, &mem, map, map), -EINVAL);
}
END_TEST

/* libmlx5, create_qp(): the QP may wait, and has room for a wait before each request. */
START_TEST(a_qp_for_code_waits_before_each_block)
{
    struct ibv_cq *cq = ibv_create_cq(v->a, 16, NULL, NULL, 0);
    uint32_t room[2];

    for (unsigned parity = 0; parity < 2; parity++) {
        struct ibv_exp_qp_init_attr attr = {
            .send_cq = cq,
            .recv_cq = cq,
            .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC,
            .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS,
            .pd = pd,
            .exp_create_flags = parity ? IBV_EXP_QP_CREATE_EC_PARITY_EN : 0,
        };
        struct ibv_qp *qp = ibv_exp_create_qp(v->a, &attr);

        ck_assert_ptr_nonnull(qp);
        room[parity] = attr.cap.max_send_wr;
        ck_assert(!(user_qp(qp)->exp_flags & IBV_EXP_QP_CREATE_CROSS_CHANNEL) == !parity);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    }
    ck_assert_uint_eq(room[1], 2 * room[0]);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

/* The capabilities that programs ask for before they use a calculation. */
START_TEST(the_device_says_what_it_computes)
{
    struct ibv_exp_device_attr attr = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS |
                                                    IBV_EXP_DEVICE_ATTR_EC_CAPS |
                                                    IBV_EXP_DEVICE_ATTR_EC_GF_BASE};

    ck_assert_int_eq(ibv_exp_query_device(v->a, &attr), 0);
    ck_assert(attr.exp_device_cap_flags & IBV_EXP_DEVICE_EC_OFFLOAD);
    ck_assert_uint_eq(attr.ec_caps.max_ec_data_vector_count, 255);
    ck_assert_uint_eq(attr.ec_caps.max_ec_calc_inflight_calcs, 1024);
    ck_assert_uint_eq(attr.ec_w_mask, 0x8b); /* bit w - 1: w is 1, 2, 4, 8 */
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("exp_ec");
    TCase *calls = tcase_create("calls");

    tcase_set_timeout(calls, 60);
    tcase_add_checked_fixture(calls, setup, teardown);
    tcase_add_loop_test(calls, the_device_encodes_every_code, 0, G_N_ELEMENTS(codes));
    tcase_add_loop_test(calls, lost_blocks_are_decoded, 0, G_N_ELEMENTS(codes));
    tcase_add_test(calls, many_lost_blocks_are_decoded);
    tcase_add_test(calls, nothing_lost_is_decoded_at_once);
    tcase_add_loop_test(calls, code_is_updated_by_changes, 0, 5);
    tcase_add_test(calls, other_code_is_not_touched);
    tcase_add_loop_test(calls, too_many_calculations_are_refused, 1, 6);
    tcase_add_loop_test(calls, a_calculation_with_a_bad_key_fails, 0, 9);
    tcase_add_test(calls, a_callback_may_end_the_calculation);
    tcase_add_test(calls, calculations_fail_when_the_device_is_removed);
    tcase_add_loop_test(calls, attributes_are_checked, 0, 13);
    tcase_add_test(calls, unknown_bits_of_the_mask_are_refused);
    tcase_add_loop_test(calls, a_calculation_that_fails_half_way_is_taken_back, 0, 2);
    tcase_add_test(calls, numbers_and_lengths_of_blocks_are_checked);
    tcase_add_test(calls, a_qp_for_code_waits_before_each_block);
    tcase_add_test(calls, the_device_says_what_it_computes);
    suite_add_tcase(s, calls);
    return s;
}
