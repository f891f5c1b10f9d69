/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests tag matching with small data in the CQE (docs/adr/0013): "inline scatter 32 not supported
 * for TM" (rdma-core's handle_tag_matching()), which reads the tag matching header there.
 */
#include <string.h>
#include "tests/unit/suite.h"
#include "tests/unit/tags_bench.h"

static void setup_64(void)
{
    tags_setup_in_cqe(PRM_CS_RES_UP_TO_64B, true);
}

static void setup_32(void)
{
    tags_setup_in_cqe(PRM_CS_RES_UP_TO_32B, false);
}

static unsigned format(void)
{
    return PRM_GET(cqe64, last_told(), format);
}

static void expect_untouched(uint64_t addr, size_t len)
{
    static const uint8_t zeroes[256];

    ck_assert_mem_eq(fake_host_ptr(&b.host, addr, len), zeroes, len);
}

/* What a 128-byte CQE has before its second half. */
static const uint8_t *first_half(void)
{
    return (const uint8_t *)last_told() - 64;
}

START_TEST(matched_data_is_in_the_first_half)
{
    static const unsigned lens[] = {1, 31, 33, 64};

    for (unsigned i = 0; i < G_N_ELEMENTS(lens); i++) {
        struct told told;

        append(0x1234, ALL, i, 100, 0);
        send_eager(0x1234, lens[i]);
        told = EXPECT(CONSUMED_MSG, RESP_SEND);
        ck_assert_uint_eq(format(), PRM_CQE_FORMAT_INLINE_64);
        ck_assert_uint_eq(told.bytes, lens[i]);
        ck_assert_uint_eq(told.tag, 0x1234);
        ck_assert_mem_eq(first_half(), message + 16, lens[i]);
        expect_untouched(mem + i * ROOM, 100);
    }
}
END_TEST

START_TEST(matched_data_without_room_is_in_the_buffer)
{
    append(5, ALL, 0, 100, 0);
    send_eager(5, 65);
    EXPECT(CONSUMED_MSG, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_NO_INLINE);
    expect_bytes(mem, 16, 65);
}
END_TEST

/* The last packet of a long message may be short. */
START_TEST(the_end_of_a_message_is_in_the_buffer)
{
    append(7, ALL, 0, ROOM, 0);
    put_header(PRM_TM_OP_EAGER, 7);
    rx(BTH_SEND_FIRST, 0, MTU);
    psn++;
    EXPECT(CONSUMED, NO_PACKET);
    rx(BTH_SEND_LAST, MTU, 10);
    EXPECT(EXPECTED, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_NO_INLINE);
    expect_bytes(mem, 16, MTU + 10 - 16);
}
END_TEST

START_TEST(a_message_longer_than_its_tagged_buffer_fails)
{
    append(7, ALL, 0, 20, 0);
    put_header(PRM_TM_OP_EAGER, 7);
    rx(BTH_SEND_ONLY, 0, 16 + 21);
    expect_answer(NAK_INVALID);
    ck_assert_uint_eq(
        expect_told(PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED, PRM_CQE_OPCODE_NO_PACKET).bytes, 0);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_NO_INLINE);
}
END_TEST

/* As with any message of an SRQ, its header is in front. */
START_TEST(an_unexpected_message_is_in_the_cqe_as_a_whole)
{
    struct told told;

    post_wqes(2);
    send_eager(2, 20);
    told = EXPECT(UNEXPECTED, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_INLINE_64);
    ck_assert_uint_eq(told.bytes, 36);
    ck_assert_mem_eq(first_half(), message, 36);
    send_one(PRM_TM_OP_NO_TAG, 0, 1);
    EXPECT(NO_TAG, RESP_SEND);
    ck_assert_mem_eq(first_half(), message, 1);
    expect_untouched(unexpected, 200);
}
END_TEST

START_TEST(of_32_only_what_is_not_matched_is_in_the_cqe)
{
    struct told told;

    append(5, ALL, 0, 100, 0);
    send_eager(5, 8);
    EXPECT(CONSUMED_MSG, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_NO_INLINE);
    expect_bytes(mem, 16, 8);
    post_wqes(1);
    send_eager(2, 16);
    told = EXPECT(UNEXPECTED, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_INLINE_32);
    ck_assert_uint_eq(told.bytes, 32);
    ck_assert_mem_eq(last_told(), message, 32);
    expect_untouched(unexpected, 200);
}
END_TEST

/* A request that software must serve is data, too (rndv_cb() of UCX takes it from either place). */
START_TEST(a_request_that_is_not_fetched_is_in_the_cqe)
{
    make_data_qp(false);
    append(9, ALL, 0, 100, 0);
    send_one(PRM_TM_OP_RNDV, 9, 48);
    EXPECT(CONSUMED_MSG_SW_RNDV, RESP_SEND);
    ck_assert_uint_eq(format(), PRM_CQE_FORMAT_INLINE_64);
    ck_assert_mem_eq(first_half(), message, 48);
    expect_untouched(mem, 100);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("data in CQEs with tags");
    TCase *of_64 = tcase_create("64 bytes"), *of_32 = tcase_create("32 bytes");

    tcase_add_checked_fixture(of_64, setup_64, tags_teardown);
    tcase_add_test(of_64, matched_data_is_in_the_first_half);
    tcase_add_test(of_64, matched_data_without_room_is_in_the_buffer);
    tcase_add_test(of_64, the_end_of_a_message_is_in_the_buffer);
    tcase_add_test(of_64, a_message_longer_than_its_tagged_buffer_fails);
    tcase_add_test(of_64, an_unexpected_message_is_in_the_cqe_as_a_whole);
    tcase_add_test(of_64, a_request_that_is_not_fetched_is_in_the_cqe);
    tcase_add_checked_fixture(of_32, setup_32, tags_teardown);
    tcase_add_test(of_32, of_32_only_what_is_not_matched_is_in_the_cqe);
    suite_add_tcase(suite, of_64);
    suite_add_tcase(suite, of_32);
    return suite;
}
