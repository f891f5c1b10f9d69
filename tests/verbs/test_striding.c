/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests striding receive queues of direct verbs (mlx5dv_create_wq()) on two hosts in virtual time:
 * a program writes their WQEs and reads their CQEs itself, as DPDK does (mlx5_rx_burst_mprq()).
 */
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

enum {
    DEPTH = 4, /* WQEs */
    LOG_NUM = 4,
    LOG_SIZE = 8,
    NUM = 1 << LOG_NUM,
    SIZE = 1 << LOG_SIZE,
    PAGE = 4096, /* a WQE's memory is one page */
    HEADER = 14,
};

static struct verbs_table *v;
static struct ibv_pd *pd;

/* The receiver, host 0. */
static struct {
    struct ibv_cq *cq;
    struct ibv_wq *wq;
    struct ibv_rwq_ind_table *table;
    struct ibv_qp *qp;
    struct ibv_flow *flow;
    struct ibv_mr *mr[DEPTH];
    struct mlx5dv_rwq ring;
    struct mlx5dv_cq cqes;
    uint32_t posted, polled;
} to;

/* The sender, host 1. */
static struct {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
} from;

static void setup(void)
{
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    memset(&to, 0, sizeof(to));
    to.cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_cq(to.cq), 0);
    verbs_table_free(v);
}

static struct ibv_wq *create(const struct mlx5dv_striding_rq_init_attr *strides, uint32_t max_sge)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = max_sge, .pd = pd, .cq = to.cq};
    struct mlx5dv_wq_init_attr dv = {.comp_mask = MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ,
                                     .striding_rq_attrs = *strides};

    return hv_dv_create_wq(v->a, &attr, &dv);
}

static void post(void)
{
    uint32_t at = to.posted++ % DEPTH;
    struct mlx5_wqe_data_seg *seg = (void *)((uint8_t *)to.ring.buf + at * to.ring.stride +
                                             sizeof(struct mlx5_wqe_srq_next_seg));

    *seg = (struct mlx5_wqe_data_seg){.byte_count = htobe32(NUM * SIZE),
                                      .lkey = htobe32(to.mr[at]->lkey),
                                      .addr = htobe64((uintptr_t)to.mr[at]->addr)};
    *to.ring.dbrec = htobe32(to.posted & 0xffff);
}

static void make_receiver(bool shift)
{
    const struct mlx5dv_striding_rq_init_attr strides = {LOG_SIZE, LOG_NUM, shift};
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    struct ibv_rwq_ind_table_init_attr table = {.ind_tbl = &to.wq};
    uint8_t key[40] = {1, 2, 3};
    struct ibv_qp_init_attr_ex qp = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE,
        .pd = pd,
        .rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, 0},
    };
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } rule = {
        .attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1, .port = 1},
        .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    struct mlx5dv_obj obj = {.rwq = {.out = &to.ring}, .cq = {.in = to.cq, .out = &to.cqes}};

    to.wq = create(&strides, 1);
    ck_assert_msg(to.wq, "errno %d", errno);
    ck_assert_int_eq(ibv_modify_wq(to.wq, &ready), 0);
    obj.rwq.in = to.wq;
    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_RWQ | MLX5DV_OBJ_CQ), 0);
    ck_assert_uint_eq(to.ring.stride, 32);
    ck_assert_uint_eq(to.ring.wqe_cnt, DEPTH);
    to.table = ibv_create_rwq_ind_table(v->a, &table);
    ck_assert_ptr_nonnull(to.table);
    qp.rwq_ind_tbl = to.table;
    to.qp = ibv_create_qp_ex(v->a, &qp);
    ck_assert_msg(to.qp, "errno %d", errno);
    memcpy(rule.eth.val.dst_mac, v->hosts->host[0].config.mac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    to.flow = ibv_create_flow(to.qp, &rule.attr);
    ck_assert_msg(to.flow, "errno %d", errno);
    for (unsigned i = 0; i < DEPTH; i++) {
        to.mr[i] = table_mr_new(v, 0);
    }
}

static void make_sender(void)
{
    struct ibv_qp_init_attr init = {.cap = {16, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};

    from.cq = init.send_cq = init.recv_cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    from.qp = ibv_create_qp(v->hosts->host[1].pd, &init);
    ck_assert_ptr_nonnull(from.qp);
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

        ck_assert_int_eq(
            ibv_modify_qp(from.qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)),
            0);
    }
    from.mr = table_mr_new(v, 1);
}

static void end(void)
{
    ck_assert_int_eq(ibv_destroy_flow(to.flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(to.qp), 0);
    ck_assert_int_eq(ibv_destroy_rwq_ind_table(to.table), 0);
    ck_assert_int_eq(ibv_destroy_wq(to.wq), 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        table_mr_free(to.mr[i]);
    }
    ck_assert_int_eq(ibv_destroy_qp(from.qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(from.cq), 0);
    table_mr_free(from.mr);
}

/* Sends a frame of len bytes, which depend on seed. */
static const uint8_t *send_frame(uint32_t len, uint8_t seed)
{
    uint8_t *frame = from.mr->addr;
    struct ibv_sge sge = {(uintptr_t)frame, len, from.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    memcpy(frame, v->hosts->host[0].config.mac, 6);
    memcpy(frame + 6, v->hosts->host[1].config.mac, 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
    for (uint32_t i = HEADER; i < len; i++) {
        frame[i] = (uint8_t)(seed + i);
    }
    ck_assert_int_eq(ibv_post_send(from.qp, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, from.cq).status, IBV_WC_SUCCESS);
    table_wait(v);
    return frame;
}

/* The next CQE, or NULL. */
static const struct mlx5_cqe64 *poll(void)
{
    uint32_t slot = to.polled & (to.cqes.cqe_cnt - 1);
    const struct mlx5_cqe64 *cqe =
        (void *)((uint8_t *)to.cqes.buf + slot * to.cqes.cqe_size + to.cqes.cqe_size - 64);

    if (mlx5dv_get_cqe_opcode((struct mlx5_cqe64 *)cqe) == MLX5_CQE_INVALID ||
        mlx5dv_get_cqe_owner((struct mlx5_cqe64 *)cqe) != !!(to.polled & to.cqes.cqe_cnt)) {
        return NULL;
    }
    to.polled++;
    to.cqes.dbrec[0] = htobe32(to.polled & 0xffffff);
    return cqe;
}

static void expect(uint16_t id, uint16_t stride, uint32_t byte_cnt)
{
    const struct mlx5_cqe64 *cqe = poll();

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(mlx5dv_get_cqe_opcode((struct mlx5_cqe64 *)cqe), MLX5_CQE_RESP_SEND);
    ck_assert_uint_eq(be16toh(cqe->wqe_id), id);
    ck_assert_uint_eq(be16toh(cqe->wqe_counter), stride);
    ck_assert_uint_eq(be32toh(cqe->byte_cnt), byte_cnt);
}

/* Each WQE takes frames of 1, 5 and 8 strides. A frame of 3 strides does not fit into the rest: a
 * filler reports the rest, and without another WQE the frame is lost. */
START_TEST(frames_come_to_strides_of_a_programs_memory)
{
    static const uint32_t lens[] = {60, 1100, 2000};
    unsigned shift = _i ? 2 : 0;

    make_receiver(_i);
    make_sender();
    for (uint16_t wqe = 0; wqe < 3 * DEPTH; wqe++) {
        uint16_t stride = 0;

        post();
        for (unsigned i = 0; i < 3; i++) {
            const uint8_t *frame = send_frame(lens[i], (uint8_t)(wqe + i));
            uint32_t n = (lens[i] + shift + SIZE - 1) / SIZE;

            expect(wqe, stride, n << 16 | (lens[i] + shift));
            ck_assert_mem_eq((uint8_t *)to.mr[wqe % DEPTH]->addr + stride * SIZE + shift, frame,
                             lens[i]);
            stride = (uint16_t)(stride + n);
        }
        send_frame(600, 0);
        expect(wqe, 14, 1u << 31 | 2u << 16);
        ck_assert_ptr_null(poll());
    }
    end();
}
END_TEST

/* mlx5dv_query_device(): striding_rq_caps; what lies outside is EINVAL (create_wq() of libmlx5). */
START_TEST(attributes_outside_the_capabilities_are_refused)
{
    struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ};
    const struct mlx5dv_striding_rq_caps *range = &caps.striding_rq_caps;
    struct mlx5dv_striding_rq_init_attr strides;
    struct mlx5dv_wq_init_attr unknown = {.comp_mask = 1 << 5};
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = to.cq};

    ck_assert_int_eq(hv_dv_query_device(v->a, &caps), 0);
    ck_assert_uint_eq(caps.comp_mask & MLX5DV_CONTEXT_MASK_STRIDING_RQ,
                      MLX5DV_CONTEXT_MASK_STRIDING_RQ);
    ck_assert_uint_eq(range->min_single_stride_log_num_of_bytes, 6);
    ck_assert_uint_eq(range->max_single_stride_log_num_of_bytes, 13);
    ck_assert_uint_eq(range->min_single_wqe_log_num_of_strides, 3);
    ck_assert_uint_eq(range->max_single_wqe_log_num_of_strides, 16);
    ck_assert_uint_eq(range->supported_qpts, 1 << IBV_QPT_RAW_PACKET);
    for (uint32_t size = 5; size <= 14; size++) {
        for (uint32_t num = 2; num <= 17; num++) {
            bool right = size >= 6 && size <= 13 && num >= 3 && num <= 16;
            struct ibv_wq *wq;

            strides = (struct mlx5dv_striding_rq_init_attr){size, num, 0};
            errno = 0;
            wq = create(&strides, 1);
            ck_assert_msg(!!wq == right, "2^%u strides of 2^%u bytes: errno %d", num, size, errno);
            ck_assert_int_eq(errno, right ? 0 : EINVAL);
            if (wq) {
                ck_assert_int_eq(ibv_destroy_wq(wq), 0);
            }
        }
    }
    ck_assert_ptr_null(hv_dv_create_wq(v->a, &attr, &unknown));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("striding");
    TCase *tc = tcase_create("striding");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, frames_come_to_strides_of_a_programs_memory, 0, 2);
    tcase_add_test(tc, attributes_outside_the_capabilities_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
