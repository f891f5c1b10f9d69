/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests CQs for whose completions a peer waits. */
#include "tests/verbs/peer_queues.h"

/* -- peek -------------------------------------------------------------------------------------- */

static struct peer_list peek(uint32_t whence, uint32_t offset, uint64_t *id)
{
    struct peer_list list;

    ck_assert_int_eq(peer_list_peek(&list, pq.cq, whence, offset, id), 0);
    ck_assert_uint_eq(list.num, 2);
    ck_assert_int_eq(list.op[1].type, IBV_EXP_PEER_OP_STORE_DWORD);
    ck_assert_uint_eq(list.op[1].wr.dword_va.data, 0);
    return list;
}

static int abort_peek(uint64_t id)
{
    struct ibv_exp_peer_abort_peek a = {.peek_id = id};

    return ibv_exp_peer_abort_peek_cq(pq.cq, &a);
}

START_TEST(a_peer_waits_for_a_completion_and_unblocks_polls)
{
    struct peer_list wait = peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), list;

    ck_assert(!peer_list_run(&wait));
    pq_expect_blocked();
    list = pq_commit_one(1, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_blocked(); /* the completion is there, and the peer has not seen it */
    ck_assert(peer_list_run(&wait));
    pq_expect_wc(1);
    pq_expect_no_wc();
}
END_TEST

/* The wait is over when the completion is written, in each round of the ring and by each kind of
 * operation. */
static void expect_waits_in_all_rounds(enum ibv_exp_peer_op even)
{
    for (uint32_t n = 0; n < 5 * CQES; n++) {
        struct peer_list wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, n, NULL), list;

        ck_assert_int_eq(wait.op[0].type, n / CQES % 2 ? IBV_EXP_PEER_OP_POLL_AND_DWORD : even);
        ck_assert(!peer_list_run(&wait));
        list = pq_commit_one(n, NULL);
        pq_run(&list);
        ck_assert_uint_eq(pq_executed(), n + 1);
        ck_assert(peer_list_run(&wait));
        pq_expect_wc(n);
    }
}

START_TEST(waits_by_nor_are_over_in_each_round)
{
    expect_waits_in_all_rounds(IBV_EXP_PEER_OP_POLL_NOR_DWORD);
}
END_TEST

START_TEST(waits_by_geq_are_over_in_each_round)
{
    pq_make_queues(PEER_CAPS_GEQ, true);
    expect_waits_in_all_rounds(IBV_EXP_PEER_OP_POLL_GEQ_DWORD);
    pq_free_queues();
}
END_TEST

/* ibv_exp_poll_cq(), too, stops before a blocked entry, and in each round it leaves the entry as
 * the next wait needs it. */
START_TEST(experimental_polls_stop_before_a_blocked_entry)
{
    struct ibv_exp_wc wc = {0};
    uint64_t id;

    pq_make_queues(_i ? PEER_CAPS_GEQ : PEER_CAPS_NOR, true);
    for (uint32_t n = 0; n < 5 * CQES; n++) {
        struct peer_list wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, n, NULL), list;

        list = pq_commit_one(n, NULL);
        pq_run(&list);
        ck_assert_uint_eq(pq_executed(), n + 1);
        errno = 0;
        ck_assert_int_eq(ibv_exp_poll_cq(pq.cq, 1, &wc, sizeof(wc)), 0);
        ck_assert_int_eq(errno, EBUSY);
        ck_assert(peer_list_run(&wait));
        ck_assert_int_eq(ibv_exp_poll_cq(pq.cq, 1, &wc, sizeof(wc)), 1);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.wr_id, n);
        if (n % 2) { /* there are as many waits as entries, and this one lasts for a round */
            wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, n + CQES, &id);
            ck_assert(!peer_list_run(&wait));
            ck_assert_int_eq(abort_peek(id), 0);
        }
    }
    pq_free_queues();
}
END_TEST

START_TEST(several_entries_are_waited_for_in_any_order)
{
    struct peer_list wait[3], list;

    wait[2] = peek(IBV_EXP_PEER_PEEK_RELATIVE, 3, NULL);
    wait[0] = peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL);
    wait[1] = peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL); /* two for one entry */
    for (unsigned i = 0; i < 3; i++) {
        pq_post(i);
    }
    list = pq_commit(NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 3);
    ck_assert(peer_list_run(&wait[2]));
    ck_assert(peer_list_run(&wait[0]));
    pq_expect_blocked();
    ck_assert(peer_list_run(&wait[1]));
    for (unsigned i = 0; i < 3; i++) {
        pq_expect_wc(i);
    }
}
END_TEST

/* One poll takes the completions before the blocked entry. */
START_TEST(a_poll_stops_before_a_blocked_entry)
{
    struct peer_list wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, 2, NULL), list;
    struct ibv_wc wc[4];

    for (unsigned i = 0; i < 4; i++) {
        pq_post(i);
    }
    list = pq_commit(NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 4);
    ck_assert_int_eq(ibv_poll_cq(pq.cq, 4, wc), 2);
    ck_assert_uint_eq(wc[1].wr_id, 1);
    pq_expect_blocked();
    ck_assert(peer_list_run(&wait));
    ck_assert_int_eq(ibv_poll_cq(pq.cq, 4, wc), 2);
    ck_assert_uint_eq(wc[0].wr_id, 2);
}
END_TEST

START_TEST(an_aborted_wait_unblocks_polls)
{
    uint64_t id;
    struct peer_list list;

    peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, &id);
    list = pq_commit_one(1, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_blocked();
    ck_assert_int_eq(abort_peek(id), 0);
    pq_expect_wc(1);
}
END_TEST

/* Its place was given to another wait, which stays. Whichever wait has the place, it is the only
 * one that is left in one of the rounds. */
START_TEST(a_wait_that_is_over_cannot_be_aborted)
{
    uint64_t old, id[CQES];
    struct peer_list list;

    peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, &old);
    ck_assert_int_eq(abort_peek(old), 0);
    pq_expect_no_wc();
    for (unsigned i = 0; i < CQES; i++) { /* all places, also the old one */
        peek(IBV_EXP_PEER_PEEK_RELATIVE, 1, &id[i]);
    }
    ck_assert_int_eq(abort_peek(old), 0);
    for (int i = 0; i < (int)CQES; i++) {
        ck_assert_int_eq(i == _i ? 0 : abort_peek(id[i]), 0);
    }
    list = pq_commit_one(1, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_blocked();
    ck_assert_int_eq(abort_peek(id[_i]), 0);
    pq_expect_wc(1);
}
END_TEST

START_TEST(an_abort_of_no_wait_is_refused)
{
    ck_assert_int_eq(abort_peek(0), EINVAL);
    ck_assert_int_eq(abort_peek(CQES + 1), EINVAL);
    ck_assert_int_eq(abort_peek((uintptr_t)&pq.peer & 0xffffffff), EINVAL);
}
END_TEST

START_TEST(a_wait_needs_two_entries_a_whence_and_an_entry_of_the_cq)
{
    struct peer_op_wr op[2] = {{.next = &op[1]}, {.next = NULL}};
    struct ibv_exp_peer_peek p = {
        .storage = op, .entries = 1, .whence = IBV_EXP_PEER_PEEK_RELATIVE, .offset = 1};

    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), ENOSPC);
    p.entries = 2;
    op[0].next = NULL;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), ENOSPC);
    op[0].next = &op[1];
    p.whence = 2;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), EINVAL);
    p.whence = IBV_EXP_PEER_PEEK_RELATIVE;
    p.offset = CQES;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), E2BIG);
    p.whence = IBV_EXP_PEER_PEEK_ABSOLUTE;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), E2BIG);
    pq_expect_no_wc(); /* none of them blocks anything */
    p.offset = CQES - 1;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), 0);
    p.whence = IBV_EXP_PEER_PEEK_RELATIVE;
    ck_assert_int_eq(ibv_exp_peer_peek_cq(pq.cq, &p), 0);
}
END_TEST

START_TEST(as_many_waits_as_entries_are_possible)
{
    struct peer_list list;
    uint64_t id[CQES];

    for (unsigned i = 0; i < CQES; i++) {
        peek(IBV_EXP_PEER_PEEK_RELATIVE, 1 + i % 3, &id[i]);
    }
    ck_assert_int_eq(peer_list_peek(&list, pq.cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), ENOMEM);
    for (unsigned i = 0; i < CQES; i++) {
        ck_assert_int_eq(abort_peek(id[i]), 0);
    }
    /* a poll takes the places of the waits for its entry */
    ck_assert_int_eq(peer_list_peek(&list, pq.cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), ENOMEM);
    pq_expect_no_wc();
    ck_assert_int_eq(peer_list_peek(&list, pq.cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), 0);
}
END_TEST

/* The completion was there, whatever the ring holds now. */
static void expect_no_wait_for_polled(void)
{
    struct peer_list list, wait;

    for (unsigned i = 0; i < CQES + 3; i++) {
        list = pq_commit_one(i, NULL);
        pq_run(&list);
        pq_executed();
        pq_expect_wc(i);
    }
    for (uint32_t n = 0; n < CQES + 3; n += 3) {
        wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, n, NULL);
        ck_assert(peer_list_run(&wait));
        pq_expect_no_wc();
    }
    wait = peek(IBV_EXP_PEER_PEEK_RELATIVE, 0, NULL);
    ck_assert(peer_list_run(&wait));
}

START_TEST(a_wait_for_a_polled_completion_is_over_at_once)
{
    expect_no_wait_for_polled();
}
END_TEST

START_TEST(a_wait_by_geq_for_a_polled_completion_is_over_at_once)
{
    pq_make_queues(PEER_CAPS_GEQ, true);
    expect_no_wait_for_polled();
    pq_free_queues();
}
END_TEST

/* Removing the completions of a destroyed QP, behind so many polled ones, leaves entries as if they
 * were polled. */
static void expect_waits_after_destruction(uint64_t caps, uint32_t polled)
{
    struct peer_list list, wait;
    uint32_t n;

    memset(pq.far->addr, 0, 8);
    pq_make_queues(caps, true);
    for (n = 0; n < polled; n++) {
        list = pq_commit_one(n, NULL);
        pq_run(&list);
        ck_assert_uint_eq(pq_executed(), n + 1);
        pq_expect_wc(n);
    }
    for (; n < polled + 3; n++) {
        list = pq_commit_one(n, NULL);
        pq_run(&list);
    }
    ck_assert_uint_eq(pq_executed(), polled + 3);
    table_qp_free(pq.qp); /* with 3 completions that were not polled */
    table_qp_free(pq.far_qp);
    pq.qp = pq_try_qp(&pq.peer.attr, pq.cq);
    pq.far_qp = table_qp_new(pq.v, 1, pq.far_cq, NULL);
    pq_connect_queues();
    for (; n < polled + 3 * CQES; n++) {
        wait = peek(IBV_EXP_PEER_PEEK_ABSOLUTE, n, NULL);
        ck_assert(!peer_list_run(&wait));
        list = pq_commit_one(n, NULL);
        pq_run(&list);
        pq_executed();
        ck_assert(peer_list_run(&wait));
        pq_expect_wc(n);
    }
    pq_free_queues();
}

START_TEST(completions_of_a_destroyed_queue_disturb_no_wait)
{
    for (uint32_t polled = 0; polled <= CQES; polled += CQES) { /* both values of the owner bit */
        expect_waits_after_destruction(PEER_CAPS_NOR, polled);
        expect_waits_after_destruction(PEER_CAPS_GEQ, polled);
    }
}
END_TEST

START_TEST(a_cq_with_a_peer_cannot_be_resized)
{
    ck_assert_int_eq(ibv_resize_cq(pq.cq, 2 * CQES), EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs PeerDirect: completion queues");
    TCase *queues = tcase_create("queues"), *hosts = tcase_create("hosts");

    tcase_add_checked_fixture(queues, pq_setup_queues, pq_teardown_queues);
    tcase_add_test(queues, a_peer_waits_for_a_completion_and_unblocks_polls);
    tcase_add_test(queues, waits_by_nor_are_over_in_each_round);
    tcase_add_test(queues, several_entries_are_waited_for_in_any_order);
    tcase_add_test(queues, a_poll_stops_before_a_blocked_entry);
    tcase_add_test(queues, an_aborted_wait_unblocks_polls);
    tcase_add_loop_test(queues, a_wait_that_is_over_cannot_be_aborted, 0, CQES);
    tcase_add_test(queues, an_abort_of_no_wait_is_refused);
    tcase_add_test(queues, a_wait_needs_two_entries_a_whence_and_an_entry_of_the_cq);
    tcase_add_test(queues, as_many_waits_as_entries_are_possible);
    tcase_add_test(queues, a_wait_for_a_polled_completion_is_over_at_once);
    tcase_add_test(queues, a_cq_with_a_peer_cannot_be_resized);
    tcase_add_checked_fixture(hosts, pq_setup, pq_teardown);
    tcase_add_test(hosts, waits_by_geq_are_over_in_each_round);
    tcase_add_loop_test(hosts, experimental_polls_stop_before_a_blocked_entry, 0, 2);
    tcase_add_test(hosts, a_wait_by_geq_for_a_polled_completion_is_over_at_once);
    tcase_add_test(hosts, completions_of_a_destroyed_queue_disturb_no_wait);
    suite_add_tcase(s, queues);
    suite_add_tcase(s, hosts);
    return s;
}
