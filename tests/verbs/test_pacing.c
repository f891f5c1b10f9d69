/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the rates of send queues on two hosts in virtual time: ibv_modify_qp_rate_limit(),
 * mlx5dv_pp_alloc(), and the trees of mlx5dv_sched_node_create().
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/host/inproc.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define DEPTH     32
#define FRAME     1000
#define MAX_RATES 127 /* packet_pacing_rate_table_size without index 0 */
#define MAX_KBPS  100000000u

static struct verbs_table *v;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;

static struct ibv_qp *raw_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {DEPTH, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp *made = ibv_create_qp(v->hosts->host[0].pd, &init);

    ck_assert_ptr_nonnull(made);
    return made;
}

static void move(struct ibv_qp *of, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

    ck_assert_int_eq(
        ibv_modify_qp(of, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)), 0);
}

static void make_ready(struct ibv_qp *of)
{
    move(of, IBV_QPS_INIT);
    move(of, IBV_QPS_RTR);
    move(of, IBV_QPS_RTS);
}

static void begin(const char *profile)
{
    v = profile ? verbs_table_on(verbs_hosts_new_as(2, NULL, profile)) : verbs_table_new();
    cq = ibv_create_cq(v->a, 255, NULL, NULL, 0);
    mr = table_mr_new(v, 0);
    qp = raw_qp();
}

static void setup(void)
{
    begin(NULL);
    memcpy(mr->addr, v->hosts->host[1].config.mac, 6);
    make_ready(qp);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    table_mr_free(mr);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

static int limit(struct ibv_qp *of, uint32_t kbps, uint32_t burst, uint16_t typical)
{
    struct ibv_qp_rate_limit_attr attr = {kbps, burst, typical, 0};

    return ibv_modify_qp_rate_limit(of, &attr);
}

/* The nanoseconds between the first and the last of n frames. */
static uint64_t time_of(struct ibv_qp *of, unsigned n)
{
    struct ibv_sge sge = {(uintptr_t)mr->addr, FRAME, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    uint64_t first = 0;

    table_wait(v); /* it owes nothing any more */
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(ibv_post_send(of, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
        first = i ? first : v->hosts->world->now_ns;
    }
    return v->hosts->world->now_ns - first;
}

/* ns within 5 % of the time that n - 1 frames take at that rate. */
static void expect_rate(struct ibv_qp *of, uint32_t kbps)
{
    const unsigned n = 21;
    uint64_t want = (uint64_t)(n - 1) * FRAME * 8 * 1000000 / kbps, took = time_of(of, n);

    ck_assert_msg(took > want - want / 20 && took < want + want / 20,
                  "%u frames at %u kb/s took %" G_GUINT64_FORMAT " ns, not %" G_GUINT64_FORMAT, n,
                  kbps, took, want);
}

static void expect_no_rate(struct ibv_qp *of)
{
    ck_assert_uint_lt(time_of(of, 21), 1000000);
}

/* -- rates of raw packet QPs ------------------------------------------------------------------- */

START_TEST(a_queue_keeps_its_rate)
{
    static const uint32_t rates[] = {1000, 25000, 400000};

    expect_no_rate(qp);
    for (size_t i = 0; i < G_N_ELEMENTS(rates); i++) {
        ck_assert_int_eq(limit(qp, rates[i], 0, 0), 0);
        expect_rate(qp, rates[i]);
    }
    ck_assert_int_eq(limit(qp, 0, 0, 0), 0);
    expect_no_rate(qp);
}
END_TEST

/* max_burst_sz: bytes that may leave at once after a pause. */
START_TEST(a_burst_leaves_at_once)
{
    ck_assert_int_eq(limit(qp, 1000, 10 * FRAME, FRAME), 0);
    ck_assert_uint_lt(time_of(qp, 10), 1000000);
    ck_assert_int_eq(limit(qp, 1000, 0, 0), 0);
    ck_assert_uint_gt(time_of(qp, 10), 60000000);
}
END_TEST

/* ib_modify_qp_is_ok(): the transitions to RTS take it. */
START_TEST(a_queue_can_begin_with_a_rate)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = 2000};
    struct ibv_qp *other = raw_qp();

    move(other, IBV_QPS_INIT);
    ck_assert_int_eq(limit(other, 2000, 0, 0), EINVAL);
    move(other, IBV_QPS_RTR);
    ck_assert_int_eq(limit(other, 2000, 0, 0), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(other, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
    expect_rate(other, 2000);
    /* modify_raw_packet_qp_sq(): a queue that is not ready has no rate */
    move(other, IBV_QPS_RESET);
    make_ready(other);
    expect_no_rate(other);
    ck_assert_int_eq(ibv_destroy_qp(other), 0);
}
END_TEST

/* ibv_exp_modify_qp(): the experimental verbs have rate and burst in the attributes of a QP. */
START_TEST(experimental_verbs_set_rate_and_burst)
{
    struct ibv_exp_qp_attr attr = {.rate_limit = 1000,
                                   .comp_mask = IBV_EXP_QP_ATTR_BURST_INFO,
                                   .burst_info = {10 * FRAME, FRAME}};
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS};

    ck_assert_int_eq(ibv_exp_query_device(v->a, &device), 0);
    ck_assert_uint_eq(device.comp_mask, IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS);
    ck_assert_uint_eq(device.packet_pacing_caps.qp_rate_limit_min, 1);
    ck_assert_uint_eq(device.packet_pacing_caps.qp_rate_limit_max, MAX_KBPS);
    ck_assert_uint_eq(device.packet_pacing_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
    ck_assert_uint_eq(device.packet_pacing_caps.cap_flags, IBV_EXP_QP_SUPPORT_BURST);
    ck_assert_int_eq(ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_RATE_LIMIT), 0);
    ck_assert_uint_lt(time_of(qp, 10), 1000000);
    attr.comp_mask = 0; /* the burst does not count */
    ck_assert_int_eq(ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_RATE_LIMIT), 0);
    expect_rate(qp, 1000);
    attr.comp_mask = IBV_EXP_QP_ATTR_BURST_INFO;
    attr.rate_limit = 0;
    ck_assert_int_eq(ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_RATE_LIMIT), EINVAL);
}
END_TEST

START_TEST(the_device_says_which_rates_it_has)
{
    struct ibv_device_attr_ex device;

    ck_assert_int_eq(ibv_query_device_ex(v->a, NULL, &device), 0);
    ck_assert_uint_eq(device.packet_pacing_caps.qp_rate_limit_min, 1);
    ck_assert_uint_eq(device.packet_pacing_caps.qp_rate_limit_max, MAX_KBPS);
    ck_assert_uint_eq(device.packet_pacing_caps.supported_qpts, 1u << IBV_QPT_RAW_PACKET);
}
END_TEST

START_TEST(bad_rates_are_refused)
{
    struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1000, .comp_mask = 1};
    struct ibv_cq *own = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_qp *rc = table_qp_new(v, 0, own, NULL);

    ck_assert_int_eq(ibv_modify_qp_rate_limit(qp, &attr), EINVAL);
    ck_assert_int_eq(limit(qp, MAX_KBPS + 1, 0, 0), EINVAL);
    ck_assert_int_eq(limit(qp, 0, 1, 0), EINVAL);
    ck_assert_int_eq(limit(qp, 0, 0, 1), EINVAL);
    ck_assert_int_eq(limit(rc, 1000, 0, 0), EINVAL);
    ck_assert_int_eq(limit(qp, MAX_KBPS, 0, 0), 0);
    /* a device that refuses leaves the queue and the table as they were */
    ck_assert_int_eq(limit(qp, 5000, 0, 0), 0);
    table_refuse(v, 0, PRM_CMD_STATUS_NO_RES); /* SET_PP_RATE_LIMIT */
    ck_assert_int_eq(limit(qp, 7000, 0, 0), EAGAIN);
    table_refuse_nth(v, 0, PRM_CMD_STATUS_NO_RES, 1); /* MODIFY_SQ */
    ck_assert_int_eq(limit(qp, 7000, 0, 0), EAGAIN);
    expect_rate(qp, 5000);
    table_qp_free(rc);
    ck_assert_int_eq(ibv_destroy_cq(own), 0);
}
END_TEST

/* -- rates of a program's own queues ----------------------------------------------------------- */

static struct mlx5dv_pp *pp_new(struct ibv_context *ctx, uint32_t kbps, uint32_t flags)
{
    uint8_t rate[4];

    prm_store32(rate, kbps);
    return hv_dv_pp_alloc(ctx, sizeof(rate), rate, flags);
}

#define DEDICATED MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX

/* mlx5_rl_add_rate_raw() */
START_TEST(equal_rates_share_an_index_unless_it_is_dedicated)
{
    struct mlx5dv_pp *one = pp_new(v->a, 100, 0), *same = pp_new(v->a, 100, 0);
    struct mlx5dv_pp *other = pp_new(v->a, 101, 0), *own = pp_new(v->a, 100, DEDICATED);
    struct mlx5dv_pp *again;

    ck_assert(one && same && other && own);
    ck_assert_uint_ne(one->index, 0);
    ck_assert_uint_eq(one->index, same->index);
    ck_assert_uint_ne(one->index, other->index);
    ck_assert_uint_ne(one->index, own->index);
    hv_dv_pp_free(own);
    own = pp_new(v->a, 300, DEDICATED);
    again = pp_new(v->a, 300, 0);
    ck_assert_uint_ne(again->index, own->index);
    hv_dv_pp_free(again);
    hv_dv_pp_free(one);
    again = pp_new(v->a, 200, 0);
    ck_assert_uint_ne(again->index, same->index); /* which still has a user */
    hv_dv_pp_free(same);
    hv_dv_pp_free(other);
    hv_dv_pp_free(own);
    hv_dv_pp_free(again);
}
END_TEST

static unsigned fill(struct mlx5dv_pp **all)
{
    unsigned n = 0;

    while (n <= MAX_RATES && (all[n] = pp_new(v->a, 1000, DEDICATED))) {
        n++;
    }
    ck_assert_int_eq(errno, ENOSPC);
    return n;
}

/* Every way in which a user of a rate ends gives the index back. */
START_TEST(no_index_is_lost)
{
    struct mlx5dv_pp *all[MAX_RATES + 1], *left[2];
    struct ibv_context *other = ibv_open_device(v->a->device);
    struct ibv_qp *second = raw_qp();

    ck_assert_int_eq(limit(qp, 5000, 0, 0), 0);
    make_ready(second);
    ck_assert_int_eq(limit(second, 6000, 0, 0), 0);
    left[0] = pp_new(other, 100, DEDICATED);
    left[1] = pp_new(other, 100, 0);
    ck_assert(left[0] && left[1]);
    ck_assert_uint_eq(fill(all), MAX_RATES - 4);
    ck_assert_int_eq(limit(qp, 7000, 0, 0), ENOSPC);
    ck_assert_int_eq(limit(qp, 6000, 0, 0), 0); /* as the other queue */
    ck_assert_int_eq(limit(qp, 5000, 0, 0), 0);
    for (unsigned i = 0; i < MAX_RATES - 4; i++) {
        hv_dv_pp_free(all[i]);
    }
    ck_assert_int_eq(ibv_close_device(other), 0); /* ends what it has left, but for the memory */
    free(DV_CONTAINER(left[0], struct hv_dv_pp));
    free(DV_CONTAINER(left[1], struct hv_dv_pp));
    ck_assert_int_eq(ibv_destroy_qp(second), 0);
    move(qp, IBV_QPS_ERR);
    ck_assert_uint_eq(fill(all), MAX_RATES);
    for (unsigned i = 0; i < MAX_RATES; i++) {
        hv_dv_pp_free(all[i]);
    }
}
END_TEST

START_TEST(bad_rates_get_no_index)
{
    static const struct {
        size_t size;
        uint32_t kbps, flags;
        int err;
    } table[] = {
        {0, 100, 0, EINVAL},     {49, 100, 0, EINVAL},          {48, 0, 0, EINVAL},
        {4, 100, 2, EOPNOTSUPP}, {48, MAX_KBPS + 1, 0, EINVAL},
    };
    uint8_t rate[64] = {0};
    struct mlx5dv_pp *whole;

    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        prm_store32(rate, table[i].kbps);
        errno = 0;
        ck_assert_ptr_null(hv_dv_pp_alloc(v->a, table[i].size, rate, table[i].flags));
        ck_assert_msg(errno == table[i].err, "row %zu: errno %d", i, errno);
    }
    prm_store32(rate, 100);
    whole = hv_dv_pp_alloc(v->a, 48, rate, 0);
    ck_assert_ptr_nonnull(whole);
    hv_dv_pp_free(whole);
    table_refuse(v, 0, PRM_CMD_STATUS_BAD_PARAM);
    ck_assert_ptr_null(pp_new(v->a, 100, 0));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* -- trees ------------------------------------------------------------------------------------- */

#define SHARE MLX5DV_SCHED_ELEM_ATTR_FLAGS_BW_SHARE
#define MOST  MLX5DV_SCHED_ELEM_ATTR_FLAGS_MAX_AVG_BW

static struct mlx5dv_sched_leaf *leaf_under(struct mlx5dv_sched_node *node, uint32_t mbps)
{
    const struct mlx5dv_sched_attr attr = {node, MOST, 0, mbps, 0};
    struct mlx5dv_sched_leaf *leaf = hv_dv_sched_leaf_create(v->a, &attr);

    ck_assert_msg(leaf, "errno %d", errno);
    return leaf;
}

static struct mlx5dv_sched_node *root_new(void)
{
    struct mlx5dv_sched_node *root =
        hv_dv_sched_node_create(v->a, &(struct mlx5dv_sched_attr){.flags = 0});

    ck_assert_msg(root, "errno %d", errno);
    return root;
}

START_TEST(a_raw_queue_keeps_the_limit_of_its_leaf)
{
    struct mlx5dv_sched_node *root = root_new();
    struct mlx5dv_sched_leaf *leaf = leaf_under(root, 20);
    const struct mlx5dv_sched_attr more = {root, MOST, 0, 30, 0};

    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(qp, leaf, leaf), EINVAL);
    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(qp, leaf, NULL), 0);
    expect_rate(qp, 20000);
    ck_assert_int_eq(hv_dv_sched_leaf_modify(leaf, &more), 0);
    expect_rate(qp, 30000);
    ck_assert_int_eq(hv_dv_sched_leaf_destroy(leaf), EINVAL); /* it has a queue */
    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(qp, NULL, NULL), 0);
    expect_no_rate(qp);
    ck_assert_int_eq(hv_dv_sched_node_destroy(root), EINVAL); /* it has a child */
    ck_assert_int_eq(hv_dv_sched_leaf_destroy(leaf), 0);
    ck_assert_int_eq(hv_dv_sched_node_destroy(root), 0);
}
END_TEST

/* A WRITE of 2 KiB, and a READ of 2 KiB from the QP, take this time in nanoseconds. */
static uint64_t time_of_message(struct ibv_qp *of, struct ibv_cq *its, enum ibv_wr_opcode opcode,
                                const struct ibv_mr *from, const struct ibv_mr *to)
{
    struct ibv_sge sge = {(uintptr_t)from->addr, 2048, from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)to->addr, to->rkey}},
                       *bad;
    uint64_t start;

    table_wait(v);
    start = v->hosts->world->now_ns;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ibv_post_send(of, &wr, &bad), 0);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(table_wc(v, its).status, IBV_WC_SUCCESS);
    }
    return v->hosts->world->now_ns - start;
}

/* "requestor", "responder" (mlx5dv_modify_qp_sched_elem(3)) */
START_TEST(requests_and_answers_of_a_qp_have_a_leaf_each)
{
    struct mlx5dv_sched_node *root = root_new();
    struct mlx5dv_sched_leaf *leaf = leaf_under(root, 1);
    struct ibv_cq *a_cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_cq *b_cq = ibv_create_cq(v->b, 15, NULL, NULL, 0);
    struct ibv_qp *a = table_qp_new(v, 0, a_cq, NULL), *b = table_qp_new(v, 1, b_cq, NULL);
    struct ibv_mr *theirs = table_mr_new(v, 1);
    const uint64_t slow = 2ull * 2048 * 8 * 1000; /* ns: the last message waits for two others */

    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(a, leaf, NULL), EOPNOTSUPP); /* in RESET */
    table_connect(v, a, b);
    ck_assert_uint_lt(time_of_message(a, a_cq, IBV_WR_RDMA_WRITE, mr, theirs), slow / 10);
    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(a, leaf, NULL), 0);
    ck_assert_uint_gt(time_of_message(a, a_cq, IBV_WR_RDMA_WRITE, mr, theirs), slow);
    ck_assert_uint_lt(time_of_message(b, b_cq, IBV_WR_RDMA_READ, theirs, mr), slow / 10);
    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(a, NULL, leaf), 0);
    ck_assert_uint_lt(time_of_message(a, a_cq, IBV_WR_RDMA_WRITE, mr, theirs), slow / 10);
    ck_assert_uint_gt(time_of_message(b, b_cq, IBV_WR_RDMA_READ, theirs, mr), slow);
    table_qp_free(a);
    table_qp_free(b);
    table_mr_free(theirs);
    ck_assert_int_eq(ibv_destroy_cq(a_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(b_cq), 0);
    ck_assert_int_eq(hv_dv_sched_leaf_destroy(leaf), 0);
    ck_assert_int_eq(hv_dv_sched_node_destroy(root), 0);
}
END_TEST

/* libmlx5's sched_attr_valid() */
START_TEST(bad_elements_are_refused)
{
    struct mlx5dv_sched_node *root = root_new();
    const struct mlx5dv_sched_attr bad[] = {
        {root, 4, 0, 0, 0}, {root, 0, 0, 0, 1}, {NULL, SHARE, 1, 0, 0}};
    const struct mlx5dv_sched_attr too_much = {root, SHARE, 101, 0, 0}, none = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        ck_assert_ptr_null(hv_dv_sched_node_create(v->a, &bad[i]));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_null(hv_dv_sched_leaf_create(v->a, &bad[i]));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_int_eq(hv_dv_sched_node_modify(root, &bad[i]), EINVAL);
    }
    ck_assert_ptr_null(hv_dv_sched_node_create(v->a, NULL));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(hv_dv_sched_leaf_create(v->a, &none)); /* only a node is a root */
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(hv_dv_sched_leaf_create(v->a, &too_much)); /* by the device */
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(hv_dv_sched_node_destroy(root), 0);
}
END_TEST

/* fw/profile.c: a ConnectX-4 has rates and no trees. */
START_TEST(a_connectx_4_has_no_trees)
{
    begin("cx4");
    make_ready(qp);
    ck_assert_ptr_null(hv_dv_sched_node_create(v->a, &(struct mlx5dv_sched_attr){.flags = 0}));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(hv_dv_modify_qp_sched_elem(qp, NULL, NULL), EOPNOTSUPP);
    ck_assert_int_eq(limit(qp, 3000, 0, 0), 0);
    expect_rate(qp, 3000);
    teardown();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("pacing");
    TCase *tc = tcase_create("two hosts");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_queue_keeps_its_rate);
    tcase_add_test(tc, a_burst_leaves_at_once);
    tcase_add_test(tc, a_queue_can_begin_with_a_rate);
    tcase_add_test(tc, experimental_verbs_set_rate_and_burst);
    tcase_add_test(tc, the_device_says_which_rates_it_has);
    tcase_add_test(tc, bad_rates_are_refused);
    tcase_add_test(tc, equal_rates_share_an_index_unless_it_is_dedicated);
    tcase_add_test(tc, no_index_is_lost);
    tcase_add_test(tc, bad_rates_get_no_index);
    tcase_add_test(tc, a_raw_queue_keeps_the_limit_of_its_leaf);
    tcase_add_test(tc, requests_and_answers_of_a_qp_have_a_leaf_each);
    tcase_add_test(tc, bad_elements_are_refused);
    tc = tcase_create("other devices");
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, a_connectx_4_has_no_trees);
    return suite;
}
