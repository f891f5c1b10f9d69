/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a program says of its peer: attributes of queues, memory that the peer gives, and
 * contexts that are opened for a peer.
 */
#include "tests/verbs/peer_queues.h"

/* -- attributes -------------------------------------------------------------------------------- */

START_TEST(queues_without_a_peer_have_no_lists)
{
    struct ibv_exp_peer_abort_peek a = {.peek_id = 1};
    struct ibv_exp_rollback_ctx rollback = {0};
    struct ibv_cq *cq = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0);
    struct ibv_qp *qp = table_qp_new(pq.v, 0, cq, NULL);
    struct peer_list list;

    ck_assert_int_eq(peer_list_commit(&list, qp, NULL), -EINVAL);
    ck_assert_int_eq(ibv_exp_rollback_qp(qp, &rollback), -EINVAL);
    ck_assert_int_eq(peer_list_peek(&list, cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), EINVAL);
    ck_assert_int_eq(ibv_exp_peer_abort_peek_cq(cq, &a), EINVAL);
    table_qp_free(qp);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

static void expect_refused(struct ibv_exp_peer_direct_attr *attr, bool by_qp, bool by_cq)
{
    struct ibv_cq *plain = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0), *cq;
    struct ibv_qp *qp;

    cq = pq_try_cq(attr, CQES - 1);
    ck_assert(!cq == by_cq);
    if (cq) {
        ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    } else {
        ck_assert_int_eq(errno, EINVAL);
    }
    qp = pq_try_qp(attr, plain);
    ck_assert(!qp == by_qp);
    if (qp) {
        table_qp_free(qp);
    } else {
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_int_eq(ibv_destroy_cq(plain), 0);
}

/* check_peer_direct() of libmlx5. */
START_TEST(attributes_that_libmlx5_refuses_are_refused)
{
    static const struct {
        uint64_t cap;
        bool qp, cq;
    } needed[] = {
        {IBV_EXP_PEER_OP_FENCE_CAP, true, false},
        {IBV_EXP_PEER_OP_STORE_DWORD_CAP, true, true},
        {IBV_EXP_PEER_OP_STORE_QWORD_CAP, true, false},
        {IBV_EXP_PEER_OP_POLL_AND_DWORD_CAP, false, true},
        {IBV_EXP_PEER_OP_POLL_NOR_DWORD_CAP, false, true},
    };
    struct ibv_exp_peer_direct_attr attr;

    peer_device_init(&pq.peer, PEER_CAPS_NOR, true);
    expect_refused(NULL, true, true);
    attr = pq.peer.attr;
    attr.comp_mask = 0;
    expect_refused(&attr, true, true);
    attr.comp_mask = 3;
    expect_refused(&attr, true, true);
    attr = pq.peer.attr;
    attr.version = 2;
    expect_refused(&attr, true, true);
    attr = pq.peer.attr;
    attr.unregister_va = NULL;
    expect_refused(&attr, true, true);
    attr = pq.peer.attr;
    attr.buf_alloc = NULL;
    expect_refused(&attr, true, true);
    for (unsigned i = 0; i < G_N_ELEMENTS(needed); i++) {
        attr = pq.peer.attr;
        attr.caps &= ~needed[i].cap;
        expect_refused(&attr, needed[i].qp, needed[i].cq);
    }
    expect_refused(&pq.peer.attr, false, false);
    ck_assert_uint_eq(pq.peer.areas, 0);
    ck_assert_uint_eq(pq.peer.buffers, 0);
}
END_TEST

/* Without register_va, operations name no target. */
START_TEST(a_peer_without_hooks_gets_lists_without_targets)
{
    struct peer_list list;

    peer_device_init(&pq.peer, PEER_CAPS_NOR, false);
    pq.peer.attr.register_va = NULL;
    pq.peer.attr.unregister_va = NULL;
    pq_make_queues_for_peer();
    list = pq_commit_one(1, NULL);
    ck_assert_uint_eq(list.op[0].wr.dword_va.target_id, 0);
    ck_assert_int_eq(peer_list_peek(&list, pq.cq, IBV_EXP_PEER_PEEK_RELATIVE, 1, NULL), 0);
    ck_assert_uint_eq(list.op[0].wr.dword_va.target_id, 0);
    pq_free_queues();
}
END_TEST

/* The directions of access: alloc attributes of libmlx5. */
START_TEST(memory_is_asked_for_with_its_directions)
{
    ck_assert_uint_eq(pq.peer.num_dirs, 3);
    ck_assert_uint_eq(pq.peer.dirs[0], IBV_EXP_PEER_DIRECTION_FROM_HCA |
                                           IBV_EXP_PEER_DIRECTION_TO_PEER |
                                           IBV_EXP_PEER_DIRECTION_TO_CPU);
    ck_assert_uint_eq(pq.peer.dirs[1],
                      IBV_EXP_PEER_DIRECTION_FROM_PEER | IBV_EXP_PEER_DIRECTION_TO_CPU);
    ck_assert_uint_eq(pq.peer.dirs[2],
                      IBV_EXP_PEER_DIRECTION_FROM_PEER | IBV_EXP_PEER_DIRECTION_TO_HCA);
    ck_assert_uint_eq(pq.peer.buffers, 3);
    ck_assert_uint_eq(pq.peer.areas, 4); /* and the doorbell page */
}
END_TEST

/* An allocator that returns NULL leaves the memory to the library. A registration that fails ends
 * the creation, and nothing is left. */
START_TEST(a_hook_that_fails_leaves_nothing)
{
    struct ibv_cq *cq, *plain = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0);
    struct ibv_qp *qp;
    unsigned made = 0;

    for (unsigned call = 1; call <= 5; call++) {
        peer_device_init(&pq.peer, PEER_CAPS_NOR, true);
        pq.peer.fails_at = call;
        cq = pq_try_cq(&pq.peer.attr, CQES - 1);
        ck_assert(!cq == (call == 2 || call == 4));
        if (cq) {
            made++;
            ck_assert_int_eq(ibv_destroy_cq(cq), 0);
        }
        ck_assert_uint_eq(pq.peer.areas + pq.peer.buffers, 0);
    }
    for (unsigned call = 1; call <= 4; call++) {
        peer_device_init(&pq.peer, PEER_CAPS_NOR, true);
        pq.peer.fails_at = call;
        qp = pq_try_qp(&pq.peer.attr, plain);
        ck_assert(!qp == (call == 2 || call == 3));
        if (qp) {
            made++;
            table_qp_free(qp);
        }
        ck_assert_uint_eq(pq.peer.areas + pq.peer.buffers, 0);
    }
    ck_assert_uint_eq(made, 5);
    ck_assert_int_eq(ibv_destroy_cq(plain), 0);
}
END_TEST

START_TEST(a_command_that_fails_leaves_nothing)
{
    struct ibv_cq *plain = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0);

    peer_device_init(&pq.peer, PEER_CAPS_NOR, true);
    table_refuse(pq.v, 0, PRM_CMD_STATUS_NO_RES);
    ck_assert_ptr_null(pq_try_cq(&pq.peer.attr, CQES - 1));
    ck_assert_uint_eq(pq.peer.areas + pq.peer.buffers, 0);
    table_refuse(pq.v, 0, PRM_CMD_STATUS_NO_RES);
    ck_assert_ptr_null(pq_try_qp(&pq.peer.attr, plain));
    ck_assert_uint_eq(pq.peer.areas + pq.peer.buffers, 0);
    ck_assert_int_eq(ibv_destroy_cq(plain), 0);
}
END_TEST

START_TEST(memory_that_is_too_small_or_crooked_is_refused)
{
    struct ibv_cq *plain = ibv_create_cq(pq.v->a, CQES - 1, NULL, NULL, 0);

    for (unsigned bad = 1; bad <= 2; bad++) {
        peer_device_init(&pq.peer, PEER_CAPS_NOR, true);
        pq.peer.bad_buffer = bad;
        ck_assert_ptr_null(pq_try_cq(&pq.peer.attr, CQES - 1));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(pq_try_qp(&pq.peer.attr, plain));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_uint_eq(pq.peer.areas + pq.peer.buffers, 0);
    }
    ck_assert_int_eq(ibv_destroy_cq(plain), 0);
}
END_TEST

/* -- a context for a peer ---------------------------------------------------------------------- */

static struct ibv_context *open_for(uint32_t mask, uint64_t id, const char *name)
{
    struct ibv_exp_open_device_attr attr = {.comp_mask = mask,
                                            .peer_info = {id, (char *)(uintptr_t)name}};

    errno = 0;
    return ibv_exp_open_device(pq.v->a->device, &attr);
}

/* ibv_exp_open_device(), ib_get_peer_private_data(). */
START_TEST(a_context_is_not_opened_for_a_peer_that_is_not_there)
{
    ck_assert_ptr_null(open_for(0, 0, "nv_mem"));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(open_for(IBV_EXP_SET_CONTEXT_ATTR_RESERVED, 0, "nv_mem"));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(open_for(IBV_EXP_SET_ATTR_PEER_INFO, 0, NULL));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(open_for(IBV_EXP_SET_ATTR_PEER_INFO, 0, "nobody"));
    ck_assert_int_eq(errno, ENODEV);
    ck_assert_ptr_null(open_for(IBV_EXP_SET_ATTR_PEER_INFO, 0, "nv_mem")); /* no CUDA driver */
    ck_assert_int_eq(errno, ENODEV);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs PeerDirect: attributes");
    TCase *queues = tcase_create("queues"), *hosts = tcase_create("hosts");

    tcase_add_checked_fixture(queues, pq_setup_queues, pq_teardown_queues);
    tcase_add_test(queues, memory_is_asked_for_with_its_directions);
    tcase_add_checked_fixture(hosts, pq_setup, pq_teardown);
    tcase_add_test(hosts, queues_without_a_peer_have_no_lists);
    tcase_add_test(hosts, attributes_that_libmlx5_refuses_are_refused);
    tcase_add_test(hosts, a_peer_without_hooks_gets_lists_without_targets);
    tcase_add_test(hosts, a_hook_that_fails_leaves_nothing);
    tcase_add_test(hosts, a_command_that_fails_leaves_nothing);
    tcase_add_test(hosts, memory_that_is_too_small_or_crooked_is_refused);
    tcase_add_test(hosts, a_context_is_not_opened_for_a_peer_that_is_not_there);
    suite_add_tcase(s, queues);
    suite_add_tcase(s, hosts);
    return s;
}
