/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests send queues that a peer starts: the lists that the library writes, what happens when a peer
 * executes them, and when it does not, twice, too late or in another order.
 */
#include <pthread.h>
#include "tests/verbs/peer_queues.h"

/* -- commit ------------------------------------------------------------------------------------ */

START_TEST(posting_rings_nothing_until_the_list_is_executed)
{
    struct peer_list list;

    pq_post(1);
    ck_assert_uint_eq(pq_executed(), 0);
    list = pq_commit(NULL);
    ck_assert_uint_eq(pq_executed(), 0);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(1);
}
END_TEST

/* mlx5_exp_peer_commit_qp(): the send counter to the record, a fence, the first 8 bytes of the last
 * control segment to the doorbell page. */
START_TEST(a_list_has_record_fence_and_doorbell)
{
    struct peer_list list;
    struct user_qp *qp = user_qp(pq.qp);
    uint32_t last;

    pq_post(1);
    last = qp->sq_post;
    pq_post(2);
    list = pq_commit(NULL);
    ck_assert_uint_eq(list.num, 3);
    ck_assert_int_eq(list.op[0].type, IBV_EXP_PEER_OP_STORE_DWORD);
    ck_assert_uint_eq(list.op[0].wr.dword_va.data, GUINT32_TO_BE(qp->sq_post));
    ck_assert_uint_eq(list.op[0].wr.dword_va.offset, 4);
    ck_assert_ptr_eq(peer_op_target(&list.op[0]), &qp->dbrec[1]);
    ck_assert_int_eq(list.op[1].type, IBV_EXP_PEER_OP_FENCE);
    ck_assert_uint_eq(list.op[1].wr.fence.fence_flags, IBV_EXP_PEER_FENCE_OP_WRITE |
                                                           IBV_EXP_PEER_FENCE_FROM_HCA |
                                                           IBV_EXP_PEER_FENCE_MEM_PEER);
    ck_assert_int_eq(list.op[2].type, IBV_EXP_PEER_OP_STORE_QWORD);
    ck_assert_mem_eq(&list.op[2].wr.qword_va.data, qp->sq.buf + (size_t)last * 64, 8);
    ck_assert_uint_eq(list.op[2].wr.qword_va.offset, 0);
    ck_assert(((struct peer_area *)(uintptr_t)list.op[2].wr.qword_va.target_id)->is_page);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
}
END_TEST

START_TEST(a_record_of_the_library_is_fenced_as_memory_of_the_system)
{
    struct peer_list list;

    pq_make_queues(PEER_CAPS_NOR, false);
    list = pq_commit_one(1, NULL);
    ck_assert_uint_eq(list.op[1].wr.fence.fence_flags, IBV_EXP_PEER_FENCE_OP_WRITE |
                                                           IBV_EXP_PEER_FENCE_FROM_HCA |
                                                           IBV_EXP_PEER_FENCE_MEM_SYS);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(1);
    pq_free_queues();
}
END_TEST

START_TEST(without_posted_requests_a_list_is_empty)
{
    struct peer_list list = pq_commit(NULL);

    ck_assert_uint_eq(list.num, 0);
    list = pq_commit_one(1, NULL);
    ck_assert_uint_eq(pq_commit(NULL).num, 0);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
}
END_TEST

START_TEST(a_list_needs_three_entries)
{
    struct peer_op_wr op[3] = {{.next = &op[1]}, {.next = &op[2]}, {.next = NULL}};
    struct ibv_exp_peer_commit c = {.storage = op, .entries = 2};
    struct peer_list list;

    pq_post(1);
    ck_assert_int_eq(ibv_exp_peer_commit_qp(pq.qp, &c), -ENOSPC);
    c.entries = 3;
    op[1].next = NULL; /* the program is wrong about the length */
    ck_assert_int_eq(ibv_exp_peer_commit_qp(pq.qp, &c), -ENOSPC);
    list = pq_commit(NULL); /* the request is still there */
    ck_assert_uint_eq(list.num, 3);
}
END_TEST

/* The peer copies the WQE to the BlueFlame buffer, if it can copy as much. */
START_TEST(one_wqe_is_copied_by_a_peer_that_copies_blocks)
{
    struct peer_list list;

    pq_make_queues(PEER_CAPS_NOR | IBV_EXP_PEER_OP_COPY_BLOCK_CAP, true);
    list = pq_commit_one(1, NULL);
    ck_assert_int_eq(list.op[2].type, IBV_EXP_PEER_OP_STORE_QWORD); /* peer_dma_op_map_len is 0 */
    pq_run(&list);
    pq_free_queues();

    peer_device_init(&pq.peer, PEER_CAPS_NOR | IBV_EXP_PEER_OP_COPY_BLOCK_CAP, true);
    pq.peer.attr.peer_dma_op_map_len = 256;
    memset(pq.far->addr, 0, 8);
    pq_make_queues_for_peer();
    list = pq_commit_one(2, NULL);
    ck_assert_int_eq(list.op[2].type, IBV_EXP_PEER_OP_COPY_BLOCK);
    ck_assert_ptr_eq(list.op[2].wr.copy_op.src, hv_qp(pq.qp)->sq.buf);
    ck_assert_uint_eq(list.op[2].wr.copy_op.len, 64);
    ck_assert_uint_eq(list.op[2].wr.copy_op.offset, 0);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(2);
    pq_post(3);
    pq_post(4);
    list = pq_commit(NULL); /* two do not fit a BlueFlame buffer */
    ck_assert_int_eq(list.op[2].type, IBV_EXP_PEER_OP_STORE_QWORD);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 3);
    pq_free_queues();
}
END_TEST

START_TEST(lists_of_a_thousand_requests_wrap_around_the_ring)
{
    for (unsigned i = 0; i < 1000; i++) {
        struct peer_list list = pq_commit_one(i, NULL);

        pq_run(&list);
        ck_assert_uint_eq(pq_executed(), i + 1);
        pq_expect_wc(i);
    }
}
END_TEST

/* -- rollback ---------------------------------------------------------------------------------- */

START_TEST(a_rolled_back_list_is_as_if_never_posted)
{
    uint64_t id;
    struct peer_list list;

    pq_commit_one(1, &id);
    ck_assert_int_eq(pq_roll_back(id, 0), 0);
    list = pq_commit_one(2, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(2);
    pq_expect_no_wc();
}
END_TEST

/* All places of the queue are free again. */
START_TEST(a_full_queue_has_room_after_a_rollback)
{
    struct peer_list list;
    uint64_t id;
    unsigned n = 0;

    while (pq_try_post(n) == 0) {
        n++;
    }
    ck_assert_uint_ge(n, WRS);
    pq_commit(&id);
    ck_assert_int_eq(pq_roll_back(id, 0), 0);
    for (unsigned i = 0; i < n; i++) {
        pq_post(100 + i);
    }
    list = pq_commit(NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), n);
    for (unsigned i = 0; i < n; i++) {
        pq_expect_wc(100 + i);
    }
}
END_TEST

START_TEST(a_list_with_others_behind_it_is_rolled_back_only_late)
{
    struct peer_list first, list;
    uint64_t id[3];

    first = pq_commit_one(1, &id[0]);
    pq_commit_one(2, &id[1]);
    pq_commit_one(3, &id[2]);
    ck_assert_int_eq(pq_roll_back(id[1], 0), -ERANGE);
    ck_assert_int_eq(pq_roll_back(id[1], IBV_EXP_ROLLBACK_ABORT_LATE), 0);
    ck_assert_int_eq(pq_roll_back(id[2], IBV_EXP_ROLLBACK_ABORT_LATE), -ERANGE); /* it is gone */
    ck_assert_int_eq(pq_roll_back(id[1], 0), -ERANGE);
    list = pq_commit_one(4, NULL);
    pq_run(&first);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_expect_wc(1);
    pq_expect_wc(4);
}
END_TEST

START_TEST(requests_behind_a_list_are_rolled_back_with_it)
{
    struct peer_list list;
    uint64_t id;

    pq_commit_one(1, &id);
    pq_post(2);
    ck_assert_int_eq(pq_roll_back(id, 0), -ERANGE);
    ck_assert_int_eq(pq_roll_back(id, IBV_EXP_ROLLBACK_ABORT_LATE), 0);
    list = pq_commit(NULL);
    ck_assert_uint_eq(list.num, 0); /* the second request is gone, too */
}
END_TEST

/* "Abort all WQEs which were not committed to HW yet. rollback_id is ignored." */
START_TEST(all_that_the_peer_has_not_started_is_rolled_back)
{
    struct peer_list list = pq_commit_one(1, NULL);

    pq_commit_one(2, NULL);
    pq_post(3);
    pq_run(&list);
    ck_assert_int_eq(pq_roll_back(~0ull, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), 0);
    list = pq_commit_one(4, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_expect_wc(1);
    pq_expect_wc(4);
    ck_assert_int_eq(pq_roll_back(0, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), 0); /* there is nothing */
    ck_assert_uint_eq(pq_executed(), 2);
}
END_TEST

START_TEST(what_the_peer_has_started_is_not_rolled_back)
{
    struct peer_list list;
    uint64_t id;

    list = pq_commit_one(1, &id);
    pq_run(&list);
    ck_assert_int_eq(pq_roll_back(id, 0), -ERANGE);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(1);
    ck_assert_int_eq(pq_roll_back(id, IBV_EXP_ROLLBACK_ABORT_LATE), -ERANGE);
    list = pq_commit_one(2, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
}
END_TEST

START_TEST(identifiers_that_the_queue_never_gave_are_refused)
{
    const uint64_t ids[] = {0, 1, 1ull << 32, 2ull << 32 | 1, ~0ull, 0xffffffffull << 32, 5};
    struct peer_list list;

    pq_post(1);
    for (unsigned i = 0; i < G_N_ELEMENTS(ids); i++) {
        ck_assert_int_eq(pq_roll_back(ids[i], 0), -ERANGE);
        ck_assert_int_eq(pq_roll_back(ids[i], IBV_EXP_ROLLBACK_ABORT_LATE), -ERANGE);
    }
    list = pq_commit(NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
}
END_TEST

/* A peer that stores anything to the record. */
START_TEST(a_record_that_no_list_stored_rolls_nothing_back)
{
    pq_commit_one(1, NULL);
    pq_post(2);
    for (uint32_t value = 3; value < 0x10000; value = value * 3 + 1) {
        hv_qp(pq.qp)->dbrec[1] = GUINT32_TO_BE(value);
        ck_assert_int_eq(pq_roll_back(0, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), -ERANGE);
    }
    hv_qp(pq.qp)->dbrec[1] = 0;
    ck_assert_int_eq(pq_roll_back(0, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), 0);
    ck_assert_uint_eq(pq_executed(), 0);
}
END_TEST

/* Lists are started as a whole. */
START_TEST(a_record_within_a_list_rolls_nothing_back)
{
    for (unsigned i = 0; i < 3; i++) {
        pq_post(i);
    }
    pq_commit(NULL);
    for (uint32_t value = 1; value < 3; value++) {
        hv_qp(pq.qp)->dbrec[1] = GUINT32_TO_BE(value);
        ck_assert_int_eq(pq_roll_back(0, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), -ERANGE);
    }
    hv_qp(pq.qp)->dbrec[1] = 0;
    ck_assert_int_eq(pq_roll_back(0, IBV_EXP_ROLLBACK_ABORT_UNCOMMITED), 0);
    ck_assert_uint_eq(pq_commit(NULL).num, 0);
    ck_assert_uint_eq(pq_executed(), 0);
}
END_TEST

/* Requests that are posted later stand in the same places of the ring. */
START_TEST(the_identifier_of_a_rolled_back_list_is_void)
{
    struct peer_list list;
    uint64_t id[2];

    pq_commit_one(1, &id[0]);
    pq_commit_one(2, &id[1]);
    ck_assert_int_eq(pq_roll_back(id[0], IBV_EXP_ROLLBACK_ABORT_LATE), 0);
    pq_post(3);
    pq_post(4);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(pq_roll_back(id[i], 0), -ERANGE);
        ck_assert_int_eq(pq_roll_back(id[i], IBV_EXP_ROLLBACK_ABORT_LATE), -ERANGE);
    }
    list = pq_commit(NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_expect_wc(3);
    pq_expect_wc(4);
}
END_TEST

/* -- peers that do not do as they are told ----------------------------------------------------- */

START_TEST(a_list_that_is_executed_twice_is_executed_once)
{
    struct peer_list list = pq_commit_one(1, NULL);

    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(1);
    pq_expect_no_wc();
    list = pq_commit_one(2, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 2);
}
END_TEST

/* The later list commits the earlier requests, too. */
START_TEST(a_later_list_commits_what_is_before_it)
{
    struct peer_list second;

    pq_commit_one(1, NULL);
    second = pq_commit_one(2, NULL);
    pq_run(&second);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_expect_wc(1);
    pq_expect_wc(2);
}
END_TEST

/* The record goes back: no counter can do that, so the device ends the queue. */
START_TEST(an_earlier_list_after_a_later_one_ends_the_queue)
{
    struct peer_list first = pq_commit_one(1, NULL), second = pq_commit_one(2, NULL);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    pq_run(&second);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_run(&first);
    ck_assert_uint_eq(pq_executed(), 2);
    ck_assert_int_eq(ibv_query_qp(pq.qp, &attr, IBV_QP_STATE, &init), 0);
    ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
}
END_TEST

/* Sends the queue through RESET, after which it works. */
static void expect_usable_after_reset(void)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct peer_list list;

    ck_assert_int_eq(ibv_modify_qp(pq.qp, &reset, IBV_QP_STATE), 0);
    ck_assert_int_eq(ibv_modify_qp(pq.far_qp, &reset, IBV_QP_STATE), 0);
    pq_connect_queues();
    memset(pq.far->addr, 0, 8);
    ck_assert_uint_eq(pq_record(), 0);
    ck_assert_uint_eq(pq_commit(NULL).num, 0);
    list = pq_commit_one(77, NULL);
    pq_run(&list);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(77);
}

/* The device executes what is in the ring; the library's places are not confused. */
START_TEST(a_list_that_is_executed_after_its_rollback_does_no_harm)
{
    struct peer_list late, list;
    struct ibv_wc wc[WRS];
    uint64_t id;

    pq_post(1);
    pq_post(2);
    late = pq_commit(&id);
    ck_assert_int_eq(pq_roll_back(id, 0), 0);
    pq_post(3);
    pq_run(&late);
    ck_assert_uint_eq(pq_executed(), 2);
    ck_assert_int_eq(ibv_poll_cq(pq.cq, WRS, wc), 2);
    list = pq_commit(NULL); /* its record goes back */
    pq_run(&list);
    ck_assert_uint_le(pq_executed(), 3);
    for (unsigned i = 0; i < 2 * WRS; i++) {
        pq_try_post(i);
    }
    expect_usable_after_reset();
}
END_TEST

START_TEST(requests_that_no_peer_starts_end_with_the_queue)
{
    struct peer_list list;

    pq_post(1);
    pq_commit(NULL);
    pq_post(2);
    ck_assert_int_eq(peer_list_peek(&list, pq.cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), 0);
    pq_expect_blocked();
    ck_assert_uint_eq(pq_executed(), 0);
}
END_TEST

START_TEST(a_reset_voids_all_lists)
{
    uint64_t id;

    pq_commit_one(1, &id);
    pq_post(2);
    expect_usable_after_reset();
    ck_assert_int_eq(pq_roll_back(id, IBV_EXP_ROLLBACK_ABORT_LATE), -ERANGE);
}
END_TEST

/* A flushed request needs no doorbell of the error state's: its list still rings. */
START_TEST(requests_of_a_queue_in_error_are_flushed_when_they_are_committed)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct peer_list list = pq_commit_one(1, NULL);
    struct ibv_wc wc;

    ck_assert_int_eq(ibv_modify_qp(pq.qp, &error, IBV_QP_STATE), 0);
    ck_assert_uint_eq(pq_executed(), 0);
    pq_run(&list);
    table_wait(pq.v);
    wc = table_wc(pq.v, pq.cq);
    ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    ck_assert_uint_eq(wc.wr_id, 1);
}
END_TEST

/* -- other peers ------------------------------------------------------------------------------- */

static void *run_in_thread(void *list)
{
    return (void *)(uintptr_t)peer_list_run(list);
}

START_TEST(a_thread_executes_a_list)
{
    for (unsigned i = 0; i < 20; i++) {
        struct peer_list list = pq_commit_one(i, NULL);
        pthread_t thread;
        void *done;

        ck_assert_int_eq(pthread_create(&thread, NULL, run_in_thread, &list), 0);
        ck_assert_int_eq(pthread_join(thread, &done), 0);
        ck_assert_ptr_nonnull(done);
        ck_assert_uint_eq(pq_executed(), i + 1);
        pq_expect_wc(i);
    }
}
END_TEST

/* As the tests of libmlx5 do it: an RDMA QP writes what the list stores, also to the doorbell page.
 */
START_TEST(an_rdma_qp_executes_a_list)
{
    struct ibv_cq *cq = ibv_create_cq(pq.v->b, CQES - 1, NULL, NULL, 0);
    struct ibv_cq *near_cq = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0);
    struct ibv_qp *qp = table_qp_new(pq.v, 1, cq, NULL),
                  *near_qp = table_qp_new(pq.v, 0, near_cq, NULL);
    struct ibv_mr *values = table_mr_new(pq.v, 1);

    table_connect(pq.v, near_qp, qp);
    for (unsigned n = 0; n < 6; n++) {
        struct peer_list list = pq_commit_one(n, NULL);

        for (unsigned i = 0; i < list.num; i += 2) {
            size_t len = i ? 8 : 4;
            uint8_t *at = peer_op_target(&list.op[i]);
            struct ibv_mr *mr = ibv_reg_mr(pq.v->hosts->host[0].pd, at, len,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
            struct ibv_sge sge = {(uintptr_t)values->addr, (uint32_t)len, values->lkey};
            struct ibv_send_wr wr = {.sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma.remote_addr = (uintptr_t)at},
                               *bad;

            ck_assert_ptr_nonnull(mr);
            wr.wr.rdma.rkey = mr->rkey;
            memcpy(values->addr,
                   i ? (void *)&list.op[i].wr.qword_va.data : (void *)&list.op[i].wr.dword_va.data,
                   len);
            ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
            ck_assert_int_eq(table_wc(pq.v, cq).status, IBV_WC_SUCCESS);
            ck_assert_int_eq(ibv_dereg_mr(mr), 0);
        }
        ck_assert_uint_eq(pq_executed(), n + 1);
        pq_expect_wc(n);
    }
    table_mr_free(values);
    table_qp_free(qp);
    table_qp_free(near_qp);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(near_cq), 0);
}
END_TEST

/* Doorbells of two queues on one page may replace each other. */
START_TEST(a_doorbell_starts_no_request_of_another_queue)
{
    struct ibv_qp *first = pq.qp, *first_far = pq.far_qp;
    struct peer_list list[2];

    pq.qp = pq_try_qp(&pq.peer.attr, pq.cq);
    pq.far_qp = table_qp_new(pq.v, 1, pq.far_cq, NULL);
    pq_connect_queues();
    list[1] = pq_commit_one(2, NULL);
    pq_post(3); /* in no list */
    table_wait(pq.v);
    pq_run(&list[1]);
    ck_assert_uint_eq(pq_executed(), 1);
    pq_expect_wc(2);
    table_qp_free(pq.qp);
    table_qp_free(pq.far_qp);
    pq.qp = first;
    pq.far_qp = first_far;
    list[0] = pq_commit_one(4, NULL);
    pq_run(&list[0]);
    ck_assert_uint_eq(pq_executed(), 2);
    pq_expect_wc(4);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs PeerDirect: send queues");
    TCase *queues = tcase_create("queues"), *hosts = tcase_create("hosts");

    tcase_add_checked_fixture(queues, pq_setup_queues, pq_teardown_queues);
    tcase_add_test(queues, posting_rings_nothing_until_the_list_is_executed);
    tcase_add_test(queues, a_list_has_record_fence_and_doorbell);
    tcase_add_test(queues, without_posted_requests_a_list_is_empty);
    tcase_add_test(queues, a_list_needs_three_entries);
    tcase_add_test(queues, lists_of_a_thousand_requests_wrap_around_the_ring);
    tcase_add_test(queues, a_rolled_back_list_is_as_if_never_posted);
    tcase_add_test(queues, a_full_queue_has_room_after_a_rollback);
    tcase_add_test(queues, a_list_with_others_behind_it_is_rolled_back_only_late);
    tcase_add_test(queues, requests_behind_a_list_are_rolled_back_with_it);
    tcase_add_test(queues, all_that_the_peer_has_not_started_is_rolled_back);
    tcase_add_test(queues, what_the_peer_has_started_is_not_rolled_back);
    tcase_add_test(queues, identifiers_that_the_queue_never_gave_are_refused);
    tcase_add_test(queues, a_record_that_no_list_stored_rolls_nothing_back);
    tcase_add_test(queues, a_record_within_a_list_rolls_nothing_back);
    tcase_add_test(queues, the_identifier_of_a_rolled_back_list_is_void);
    tcase_add_test(queues, a_list_that_is_executed_twice_is_executed_once);
    tcase_add_test(queues, a_later_list_commits_what_is_before_it);
    tcase_add_test(queues, an_earlier_list_after_a_later_one_ends_the_queue);
    tcase_add_test(queues, a_list_that_is_executed_after_its_rollback_does_no_harm);
    tcase_add_test(queues, requests_that_no_peer_starts_end_with_the_queue);
    tcase_add_test(queues, a_reset_voids_all_lists);
    tcase_add_test(queues, requests_of_a_queue_in_error_are_flushed_when_they_are_committed);
    tcase_add_test(queues, a_thread_executes_a_list);
    tcase_add_test(queues, an_rdma_qp_executes_a_list);
    tcase_add_test(queues, a_doorbell_starts_no_request_of_another_queue);
    tcase_add_checked_fixture(hosts, pq_setup, pq_teardown);
    tcase_add_test(hosts, a_record_of_the_library_is_fenced_as_memory_of_the_system);
    tcase_add_test(hosts, one_wqe_is_copied_by_a_peer_that_copies_blocks);
    suite_add_tcase(s, queues);
    suite_add_tcase(s, hosts);
    return s;
}
