/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests DC targets and initiators as objects, SRQs with tag matching, and reserved QP numbers: what
 * is refused, as by libmlx5 and the kernel. Programs test what they do (tests/programs). */
#include <check.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/user/device.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;

static void setup(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 1}};

    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &attr);
    ck_assert_ptr_nonnull(srq);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

static struct ibv_qp *make(enum mlx5dv_dc_type type, struct ibv_srq *with, uint32_t max_recv,
                           uint32_t attr_mask, uint64_t dv_mask)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_DRIVER,
        .send_cq = cq,
        .recv_cq = cq,
        .srq = with,
        .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = max_recv},
        .comp_mask = IBV_QP_INIT_ATTR_PD | attr_mask,
        .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = dv_mask,
                                     .dc_init_attr = {.dc_type = type, .dct_access_key = 1}};

    if (type == MLX5DV_DCTYPE_DCI) { /* a union with the key */
        dv.dc_init_attr.dci_streams = (struct mlx5dv_dci_streams){63, 63};
    }
    errno = 0;
    return hv_dv_create_qp(v->a, &attr, &dv);
}

/* create_dct() of libmlx5, mlx5_ib_create_dct(); a DCI has no receive queue. */
START_TEST(what_makes_no_dc_qp_is_refused)
{
    const uint64_t dc = MLX5DV_QP_INIT_ATTR_MASK_DC;

    ck_assert_ptr_null(make(MLX5DV_DCTYPE_DCT, NULL, 0, 0, dc));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(make(MLX5DV_DCTYPE_DCT, srq, 0, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, dc));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(
        make(MLX5DV_DCTYPE_DCT, srq, 0, 0, dc | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(
        make(MLX5DV_DCTYPE_DCI, NULL, 0, 0, dc | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(make(MLX5DV_DCTYPE_DCI, NULL, 4, 0, dc));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(make(MLX5DV_DCTYPE_DCI, NULL, 0, 0, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(make((enum mlx5dv_dc_type)7, NULL, 0, 0, dc));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* mlx5_ib_modify_dct(): RESET to INIT to RTR with these attributes and no others; RTR is final.
 * Only in RTR does a DCT have a number and can be queried. */
START_TEST(a_dct_goes_to_rtr_and_no_further)
{
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    const int to_rtr = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV;
    struct ibv_qp *qp = make(MLX5DV_DCTYPE_DCT, srq, 0, 0, MLX5DV_QP_INIT_ATTR_MASK_DC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .path_mtu = IBV_MTU_1024,
                               .min_rnr_timer = 3,
                               .ah_attr = {.is_global = 1, .port_num = 1}};
    struct ibv_qp_init_attr init;

    ck_assert_ptr_nonnull(qp);
    ck_assert_uint_eq(qp->qp_num, 0);
    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init & ~IBV_QP_ACCESS_FLAGS), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init | IBV_QP_SQ_PSN), EINVAL);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .min_rnr_timer = 3,
                                .ah_attr = {.is_global = 0, .port_num = 1}};
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_rtr), EINVAL);
    attr.ah_attr.is_global = 1;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_rtr), 0);
    ck_assert_uint_ne(qp->qp_num, 0);
    attr.qp_state = IBV_QPS_RESET;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER, &init), 0);
    ck_assert_int_eq(attr.qp_state, IBV_QPS_RTR);
    ck_assert_uint_eq(attr.min_rnr_timer, 3);
    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN, &init), EINVAL);
    ck_assert_int_eq(ibv_destroy_srq(srq), EBUSY);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* mlx5_ib delivers no event of a DCT to a program (dct_allowed_event_types()); it delivers events
 * of a QP. */
START_TEST(a_dct_has_no_events_for_programs)
{
    struct ibv_qp *dct = make(MLX5DV_DCTYPE_DCT, srq, 0, 0, MLX5DV_QP_INIT_ATTR_MASK_DC);
    struct ibv_qp *qp = table_qp_new(v, 0, cq, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct drv_event event = {.type = PRM_EVENT_TYPE_WQ_ACCESS_ERROR};
    struct ibv_async_event got;

    table_do_not_wait(v->a->async_fd);
    ck_assert_int_eq(
        ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    ck_assert_int_eq(
        ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV),
        0);
    event.num = dct->qp_num;
    hv_events_dispatch(v->hca[0], &event);
    ck_assert_int_ne(ibv_get_async_event(v->a, &got), 0);
    event.num = qp->qp_num;
    hv_events_dispatch(v->hca[0], &event);
    ck_assert_int_eq(ibv_get_async_event(v->a, &got), 0);
    ck_assert_int_eq(got.event_type, IBV_EVENT_QP_ACCESS_ERR);
    ibv_ack_async_event(&got);
    table_qp_free(qp);
    ck_assert_int_eq(ibv_destroy_qp(dct), 0);
}
END_TEST

/* Nothing of a removed device is drained (_mlx5_core_destroy_dct() continues without). */
START_TEST(a_dct_of_a_removed_device_can_be_destroyed)
{
    struct ibv_qp *dct = make(MLX5DV_DCTYPE_DCT, srq, 0, 0, MLX5DV_QP_INIT_ATTR_MASK_DC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *unborn = make(MLX5DV_DCTYPE_DCT, srq, 0, 0, MLX5DV_QP_INIT_ATTR_MASK_DC);
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

    ck_assert_int_eq(ibv_modify_qp(dct, &attr, to_init), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .min_rnr_timer = 3,
                                .ah_attr = {.is_global = 1, .port_num = 1}};
    ck_assert_int_eq(
        ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER),
        0);
    hv_device_remove(v->a->device);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
    ck_assert_int_eq(ibv_modify_qp(unborn, &attr, to_init), EIO);
    ck_assert_int_eq(ibv_destroy_qp(unborn), 0);
    ck_assert_int_eq(ibv_destroy_qp(dct), 0);
}
END_TEST

/* modify_dci_qp_is_ok() accepts neither a transition without a state, nor a transition to the
 * current state. */
START_TEST(a_dci_has_a_table_of_transitions_of_its_own)
{
    struct ibv_qp *qp = make(MLX5DV_DCTYPE_DCI, NULL, 0, 0, MLX5DV_QP_INIT_ATTR_MASK_DC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024};
    const int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init | IBV_QP_ACCESS_FLAGS), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init | IBV_QP_CUR_STATE), EINVAL);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, to_init), 0);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_PKEY_INDEX), EINVAL);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN),
                     EINVAL);
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
    ck_assert_int_eq(hv_dv_dci_stream_id_reset(qp, 0), EOPNOTSUPP); /* only in RTS */
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* libmlx5 requires an extended CQ, mlx5_ib a list that the device supports; without a list there
 * are no list operations. */
START_TEST(tag_matching_is_of_its_srq)
{
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 63, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(v->a, &cq_attr);
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 7, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = pd,
                                        .cq = cq,
                                        .tm_cap = {.max_num_tags = 15, .max_ops = 4}};
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL, .tm = {.handle = 99}}, *bad = NULL;
    struct ibv_srq *tm;

    ck_assert_ptr_null(ibv_create_srq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.cq = ibv_cq_ex_to_cq(ex);
    attr.tm_cap.max_num_tags = 1u << HV_CAP(v->hca[0], log_tag_matching_list_sz);
    ck_assert_ptr_null(ibv_create_srq_ex(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.tm_cap.max_num_tags = 15;
    tm = ibv_create_srq_ex(v->a, &attr);
    ck_assert_ptr_nonnull(tm);
    ck_assert_int_eq(ibv_post_srq_ops(tm, &wr, &bad), ENOMEM);
    ck_assert_ptr_eq(bad, &wr);
    wr.opcode = (enum ibv_ops_wr_opcode)9;
    ck_assert_int_eq(ibv_post_srq_ops(tm, &wr, &bad), EINVAL);
    ck_assert_int_eq(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), EBUSY);
    ck_assert_int_eq(ibv_destroy_srq(tm), 0);
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}
END_TEST

START_TEST(numbers_left_over_go_with_the_context)
{
    uint32_t first, second;

    ck_assert_int_eq(hv_dv_reserved_qpn_alloc(v->a, &first), 0);
    ck_assert_int_eq(hv_dv_reserved_qpn_alloc(v->a, &second), 0);
    ck_assert_uint_ne(first, second);
    ck_assert_int_eq(hv_dv_reserved_qpn_dealloc(v->b, first), EINVAL);
    ck_assert_int_eq(hv_dv_reserved_qpn_dealloc(v->a, first), 0);
    ck_assert_int_eq(hv_dv_reserved_qpn_dealloc(v->a, first), EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs DC");
    TCase *tc = tcase_create("objects");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_makes_no_dc_qp_is_refused);
    tcase_add_test(tc, a_dct_goes_to_rtr_and_no_further);
    tcase_add_test(tc, a_dct_has_no_events_for_programs);
    tcase_add_test(tc, a_dct_of_a_removed_device_can_be_destroyed);
    tcase_add_test(tc, a_dci_has_a_table_of_transitions_of_its_own);
    tcase_add_test(tc, tag_matching_is_of_its_srq);
    tcase_add_test(tc, numbers_left_over_go_with_the_context);
    suite_add_tcase(s, tc);
    return s;
}
