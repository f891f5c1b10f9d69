/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests requests of ibv_exp_post_send() between two hosts in virtual time: memory windows of both
 * types and their end, large sends of raw packets, masked atomics on long numbers, and the lists of
 * atomics.
 */
#include <check.h>
#include <string.h>
#include "tests/unit/suite.h"
#include "tests/verbs/exp_queues_bench.h"

/* -- memory windows ---------------------------------------------------------------------------- */

#define WINDOW_AT  256
#define WINDOW_LEN 64
#define PIECE      16

static struct ibv_mr *under; /* the page of host 1, as a region that may have windows */
static struct ibv_mw *window;
static uint32_t window_rkey;

static void window_setup(void)
{
    setup();
    under = ibv_reg_mr(v->hosts->host[1].pd, mr[1]->addr, mr[1]->length,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    ck_assert_ptr_nonnull(under);
}

static void window_teardown(void)
{
    if (window) {
        ck_assert_int_eq(ibv_dealloc_mw(window), 0);
        window = NULL;
    }
    ck_assert_int_eq(ibv_dereg_mr(under), 0);
    teardown();
}

/* Makes a window, and binds it by host 1's QP. */
static void bind_window(enum ibv_mw_type type, uint64_t access)
{
    struct ibv_exp_send_wr wr = {.wr_id = 11, .exp_opcode = IBV_EXP_WR_BIND_MW};
    struct ibv_exp_wc wc;

    window = ibv_alloc_mw(v->hosts->host[1].pd, type);
    ck_assert_ptr_nonnull(window);
    window_rkey = ibv_inc_rkey(window->rkey);
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = window_rkey;
    wr.bind_mw.bind_info.mr = under;
    wr.bind_mw.bind_info.addr = (uintptr_t)under->addr + WINDOW_AT;
    wr.bind_mw.bind_info.length = WINDOW_LEN;
    wr.bind_mw.bind_info.exp_mw_access_flags = access;
    wc = complete_on(1, &wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_BIND_MW);
    ck_assert_uint_eq(wc.wr_id, 11);
}

/* Host 0 writes a piece to that address of the window. */
static enum ibv_wc_status write_piece(uint64_t addr)
{
    struct ibv_sge sge = {(uintptr_t)mr[0]->addr, PIECE, mr[0]->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_RDMA_WRITE,
                                 .wr.rdma = {addr, window_rkey}};

    memset(mr[1]->addr, 0, mr[1]->length);
    return complete(&wr).status;
}

static const uint8_t *piece_at(size_t at)
{
    return (const uint8_t *)mr[1]->addr + at;
}

START_TEST(a_window_is_bound_and_ends_where_it_was_bound)
{
    uint64_t start = (uintptr_t)under->addr + WINDOW_AT;

    bind_window(_i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1, IBV_EXP_ACCESS_REMOTE_WRITE);
    ck_assert_int_eq(write_piece(start + WINDOW_LEN - PIECE), IBV_WC_SUCCESS);
    ck_assert_mem_eq(piece_at(WINDOW_AT + WINDOW_LEN - PIECE), mr[0]->addr, PIECE);
    ck_assert_int_eq(write_piece(start + WINDOW_LEN - PIECE + 1), IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(*piece_at(WINDOW_AT + WINDOW_LEN - 1), 0);
}
END_TEST

START_TEST(a_window_has_the_rights_that_it_was_bound_with)
{
    bind_window(_i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1, IBV_EXP_ACCESS_REMOTE_READ);
    ck_assert_int_eq(write_piece((uintptr_t)under->addr + WINDOW_AT), IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(*piece_at(WINDOW_AT), 0);
}
END_TEST

/* IBV_EXP_ACCESS_MW_ZERO_BASED has another value than IBV_ACCESS_ZERO_BASED. */
START_TEST(addresses_of_a_zero_based_window_begin_at_0)
{
    bind_window(IBV_MW_TYPE_2, IBV_EXP_ACCESS_REMOTE_WRITE | IBV_EXP_ACCESS_MW_ZERO_BASED);
    ck_assert_int_eq(write_piece(8), IBV_WC_SUCCESS);
    ck_assert_mem_eq(piece_at(WINDOW_AT + 8), mr[0]->addr, PIECE);
}
END_TEST

START_TEST(a_local_invalidation_ends_a_window)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_LOCAL_INV};
    uint64_t start = (uintptr_t)under->addr + WINDOW_AT;
    struct ibv_exp_wc wc;

    bind_window(IBV_MW_TYPE_2, IBV_EXP_ACCESS_REMOTE_WRITE);
    ck_assert_int_eq(write_piece(start), IBV_WC_SUCCESS);
    wr.ex.invalidate_rkey = window_rkey;
    wc = complete_on(1, &wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_LOCAL_INV);
    ck_assert_int_eq(write_piece(start), IBV_WC_REM_ACCESS_ERR);
    ck_assert_uint_eq(*piece_at(WINDOW_AT), 0);
}
END_TEST

START_TEST(a_message_ends_a_window)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_SEND_WITH_INV};
    uint64_t start = (uintptr_t)under->addr + WINDOW_AT;
    struct ibv_exp_wc wc;

    bind_window(IBV_MW_TYPE_2, IBV_EXP_ACCESS_REMOTE_WRITE);
    post_recv();
    wr.ex.invalidate_rkey = window_rkey;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    wc = wc_of(cq[1]);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_ne(wc.exp_wc_flags & IBV_EXP_WC_WITH_INV, 0);
    ck_assert_uint_eq(wc.imm_data, window_rkey);
    ck_assert_int_eq(write_piece(start), IBV_WC_REM_ACCESS_ERR);
}
END_TEST

/* -- large sends ------------------------------------------------------------------------------- */

#define IP       14
#define TCP      34
#define HEADERS  54
#define MSS      500
#define SEGMENTS 3
#define ROOM     1024

static struct ibv_qp *raw_new(int side)
{
    struct ibv_exp_qp_init_attr attr = qp_attr(side);
    struct ibv_qp *raw;

    attr.qp_type = IBV_QPT_RAW_PACKET;
    attr.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER;
    attr.max_tso_header = HEADERS;
    raw = qp_new(side, attr);
    ck_assert_ptr_nonnull(raw);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
        struct ibv_exp_qp_attr to = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

        ck_assert_int_eq(
            ibv_exp_modify_qp(raw, &to,
                              IBV_EXP_QP_STATE | (s == IBV_QPS_INIT ? IBV_EXP_QP_PORT : 0)),
            0);
    }
    return raw;
}

/* Headers of Ethernet, IPv4 and TCP from host 0 to host 1. */
static void fill_headers(uint8_t *headers)
{
    memset(headers, 0, HEADERS);
    memcpy(headers, v->hosts->host[1].config.mac, 6);
    memcpy(headers + 6, v->hosts->host[0].config.mac, 6);
    headers[12] = 0x08;
    headers[IP] = 0x45;
    headers[IP + 8] = 64;
    headers[IP + 9] = 6;
    headers[TCP + 12] = 5 << 4;
}

/* The device divides the data, and gives each segment its length and its place in the stream. */
START_TEST(a_large_send_becomes_segments)
{
    struct {
        struct ibv_exp_flow_attr attr;
        struct ibv_exp_flow_spec_eth eth;
    } rule = {.attr = {.size = sizeof(rule), .num_of_specs = 1, .port = 1},
              .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    uint8_t headers[HEADERS];
    struct ibv_sge sge = {(uintptr_t)mr[0]->addr, SEGMENTS * MSS - 1, mr[0]->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_TSO,
                                 .exp_send_flags = IBV_EXP_SEND_IP_CSUM,
                                 .tso = {headers, HEADERS, MSS}};
    struct ibv_qp *rc = qp[0], *to = raw_new(1);
    struct ibv_exp_flow *flow;
    struct ibv_exp_wc wc;

    qp[0] = raw_new(0);
    memcpy(rule.eth.val.dst_mac, v->hosts->host[1].config.mac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    flow = ibv_exp_create_flow(to, &rule.attr);
    ck_assert_ptr_nonnull(flow);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        struct ibv_sge room = {(uintptr_t)mr[1]->addr + i * ROOM, ROOM, mr[1]->lkey};
        struct ibv_recv_wr recv = {.wr_id = i, .sg_list = &room, .num_sge = 1}, *bad;

        ck_assert_int_eq(ibv_post_recv(to, &recv, &bad), 0);
    }
    fill_headers(headers);
    wc = complete(&wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_TSO);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        const uint8_t *frame = piece_at(i * ROOM);
        unsigned len = MSS - (i == SEGMENTS - 1);

        wc = wc_of(cq[1]);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(wc.byte_len, HEADERS + len);
        ck_assert_uint_eq(prm_load32(frame + TCP + 4), i * MSS);
        ck_assert_uint_eq((unsigned)frame[IP + 2] << 8 | frame[IP + 3], HEADERS - IP + len);
        ck_assert_uint_ne(wc.exp_wc_flags & IBV_EXP_WC_RX_IP_CSUM_OK, 0);
        ck_assert_uint_ne(wc.exp_wc_flags & IBV_EXP_WC_RX_TCP_UDP_CSUM_OK, 0);
        ck_assert_mem_eq(frame + HEADERS, (uint8_t *)mr[0]->addr + i * MSS, len);
    }
    wr.tso.hdr_sz = HEADERS + 1; /* max_tso_header is HEADERS */
    ck_assert_int_eq(post(&wr), EINVAL);
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
    table_qp_free(to);
    table_qp_free(qp[0]);
    qp[0] = rc;
}
END_TEST

/* -- masked atomics on long numbers ------------------------------------------------------------ */

#define WORDS 16 /* of the longest number */

/* Numbers as programs give them: the upper word first. */
static void fill_number(uint64_t *number, unsigned words, uint64_t seed)
{
    for (unsigned i = 0; i < words; i++) {
        number[i] = (seed + i) * 0x9e3779b97f4a7c15ull;
    }
}

/* In memory, a number has the host's order (docs/adr/0011). */
static void number_to_memory(uint64_t *memory, const uint64_t *number, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        memory[words - 1 - i] = number[i];
    }
}

/* An answer of more than 8 bytes has the order of packets: the most significant byte is first. */
static void expect_answer(const uint64_t *memory, const uint64_t *number, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        ck_assert_uint_eq(GUINT64_FROM_BE(memory[i]), number[i]);
    }
}

static void expect_in_memory(const uint64_t *memory, const uint64_t *number, unsigned words)
{
    uint64_t expected[WORDS];

    number_to_memory(expected, number, words);
    ck_assert_mem_eq(memory, expected, words * sizeof(uint64_t));
}

/* A QP for operands of 128 bytes takes the place of host 0's. */
static void use_long_operands(void)
{
    struct ibv_exp_qp_init_attr attr = qp_attr(0);

    table_qp_free(qp[0]);
    table_qp_free(qp[1]);
    attr.max_atomic_arg = WORDS * sizeof(uint64_t);
    qp[0] = qp_new(0, attr);
    qp[1] = qp_new(1, qp_attr(1));
    ck_assert_ptr_nonnull(qp[0]);
    ck_assert_ptr_nonnull(qp[1]);
    table_connect(v, qp[0], qp[1]);
}

/* Runs the request on a number; checks that the answer is the number from before. */
static void run_on(struct ibv_exp_send_wr *wr, const uint64_t *before, unsigned words)
{
    uint64_t *there = mr[1]->addr, *got = mr[0]->addr;
    struct ibv_exp_wc wc;

    number_to_memory(there, before, words);
    memset(got, 0, 8 * WORDS);
    there[words] = got[words] = 0x5a5a5a5a5a5a5a5a;
    wc = complete(wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.byte_len, 8 * words);
    expect_answer(got, before, words);
    ck_assert_uint_eq(got[words], 0x5a5a5a5a5a5a5a5a);
    ck_assert_uint_eq(there[words], 0x5a5a5a5a5a5a5a5a);
}

/* The comparison spans all words, and so does the swap. _i: log2 of the number's bytes. */
START_TEST(a_long_number_is_compared_and_swapped_under_masks)
{
    unsigned words = (1u << _i) / 8;
    uint64_t before[WORDS], swap[WORDS], compare[WORDS], swap_mask[WORDS], compare_mask[WORDS],
        made[WORDS];
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, (unsigned)_i, true);

    use_long_operands();
    fill_number(before, words, 1);
    fill_number(swap, words, 101);
    fill_number(swap_mask, words, 201);
    fill_number(compare_mask, words, 301);
    for (unsigned i = 0; i < words; i++) {
        compare[i] = before[i] ^ (swap[i] & ~compare_mask[i]);
        made[i] = (before[i] & ~swap_mask[i]) | (swap[i] & swap_mask[i]);
    }
    wr.ext_op.masked_atomics.wr_data.inline_data.op.cmp_swap =
        (struct ibv_exp_cmp_swap){.compare_mask = (uintptr_t)compare_mask,
                                  .compare_val = (uintptr_t)compare,
                                  .swap_val = (uintptr_t)swap,
                                  .swap_mask = (uintptr_t)swap_mask};
    run_on(&wr, before, words);
    expect_in_memory(mr[1]->addr, made, words);
    compare_mask[words - 1] |= 1;
    compare[words - 1] = before[words - 1] ^ 1; /* the last bit differs: no swap */
    run_on(&wr, before, words);
    expect_in_memory(mr[1]->addr, before, words);
}
END_TEST

/* A carry goes from word to word, and ends at a boundary. */
START_TEST(a_long_number_is_added_to_in_its_fields)
{
    unsigned words = (1u << _i) / 8;
    uint64_t before[WORDS], add[WORDS] = {0}, boundary[WORDS] = {0}, made[WORDS] = {0};
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, (unsigned)_i, false);

    use_long_operands();
    memset(before, 0xff, sizeof(before));
    before[0] = 41;
    add[words - 1] = 1;
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add =
        (struct ibv_exp_fetch_add){(uintptr_t)add, (uintptr_t)boundary};
    made[0] = 42;
    run_on(&wr, before, words);
    expect_in_memory(mr[1]->addr, made, words);
    boundary[words - 1] = 1ull << 63;
    memcpy(made, before, sizeof(made));
    made[words - 1] = 0;
    run_on(&wr, before, words);
    expect_in_memory(mr[1]->addr, made, words);
}
END_TEST

/* -- lists of atomics -------------------------------------------------------------------------- */

/* "Of several elements, [...] they share the answer by their own lengths." */
START_TEST(elements_of_a_list_share_the_answer)
{
    uint64_t *there = mr[1]->addr, *got = mr[0]->addr, first = 0, rest = 0;
    struct ibv_sge sge[] = {{(uintptr_t)got, (uint32_t)_i, mr[0]->lkey},
                            {(uintptr_t)(got + 2), (uint32_t)(8 - _i), mr[0]->lkey}};
    struct ibv_exp_send_wr wr = {.sg_list = sge,
                                 .num_sge = 2,
                                 .exp_opcode = IBV_EXP_WR_ATOMIC_FETCH_AND_ADD,
                                 .wr.atomic = {(uintptr_t)there, 1, 0, mr[1]->rkey}};
    uint64_t before = 0x0102030405060708;

    memset(got, 0, 32);
    *there = before;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    memcpy(&first, &before, (size_t)_i);
    memcpy(&rest, (char *)&before + _i, (size_t)(8 - _i));
    ck_assert_uint_eq(got[0], first);
    ck_assert_uint_eq(got[1], 0);
    ck_assert_uint_eq(got[2], rest);
    ck_assert_uint_eq(got[3], 0);
}
END_TEST

/* set_data_atom_seg(): the single element of the list takes the answer, whatever length the program
 * gave it, and an element without length takes nothing. */
START_TEST(the_list_of_an_atomic_has_the_length_of_the_answer)
{
    uint64_t *there = mr[1]->addr, *got = mr[0]->addr;
    struct ibv_sge sge[] = {{(uintptr_t)(got + 4), 0, mr[0]->lkey},
                            {(uintptr_t)got, _i, mr[0]->lkey}};
    struct ibv_exp_send_wr wr = {.sg_list = sge,
                                 .num_sge = 2,
                                 .exp_opcode = IBV_EXP_WR_ATOMIC_FETCH_AND_ADD,
                                 .wr.atomic = {(uintptr_t)there, 2, 0, mr[1]->rkey}};
    struct ibv_sge one;

    got[1] = got[4] = 0x5a5a5a5a5a5a5a5a;
    *there = 40;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*there, 42);
    ck_assert_uint_eq(got[0], 40);
    wr = masked(&one, 3, false);
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add.add_val = 3;
    wr.sg_list = sge;
    wr.num_sge = 2;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*there, 45);
    ck_assert_uint_eq(got[0], 42);
    ck_assert_uint_eq(got[1], 0x5a5a5a5a5a5a5a5a);
    ck_assert_uint_eq(got[4], 0x5a5a5a5a5a5a5a5a);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-send");
    TCase *tc = tcase_create("requests"), *windows = tcase_create("windows");

    tcase_add_checked_fixture(windows, window_setup, window_teardown);
    tcase_add_loop_test(windows, a_window_is_bound_and_ends_where_it_was_bound, 0, 2);
    tcase_add_loop_test(windows, a_window_has_the_rights_that_it_was_bound_with, 0, 2);
    tcase_add_test(windows, addresses_of_a_zero_based_window_begin_at_0);
    tcase_add_test(windows, a_local_invalidation_ends_a_window);
    tcase_add_test(windows, a_message_ends_a_window);
    suite_add_tcase(suite, windows);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_large_send_becomes_segments);
    tcase_add_loop_test(tc, a_long_number_is_compared_and_swapped_under_masks, 4, 8);
    tcase_add_loop_test(tc, a_long_number_is_added_to_in_its_fields, 4, 8);
    tcase_add_loop_test(tc, the_list_of_an_atomic_has_the_length_of_the_answer, 7, 17);
    tcase_add_loop_test(tc, elements_of_a_list_share_the_answer, 1, 8);
    suite_add_tcase(suite, tc);
    return suite;
}
