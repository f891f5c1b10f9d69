/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests raw packet QPs that look into tunnels, on two hosts in virtual time: which checksums a
 * completion judges, and by which headers a packet's queue is chosen.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/hex_frame.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"
#include "wire/bytes.h"

enum {
    DEPTH = 64,
    FLOWS = 32,
    QUEUES = 2,
    ROOM = 256,
    OUTER_SUM = 14 + 20 + 6,               /* the checksum of the outer UDP header */
    INNER_TCP = 14 + 20 + 8 + 8 + 14 + 20, /* its first field is the source port */
    INNER_SUM = INNER_TCP + 16,
};

static const struct {
    const char *name, *hex;
} frames[] = {
#define FRAME(name, made_by, hex) {#name, hex},
#include "tests/unit/tunnel_frames.def"
#undef FRAME
};

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_cq *cq[QUEUES];
static struct ibv_mr *mr;

/* The sender, host 1. */
static struct {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
} from;

static void to_ready(struct ibv_qp *qp)
{
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};
        int mask = IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0);

        ck_assert_int_eq(ibv_modify_qp(qp, &attr, mask), 0);
    }
}

static void setup(void)
{
    struct ibv_qp_init_attr init = {.cap = {DEPTH, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};

    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    mr = table_mr_new(v, 0);
    for (int i = 0; i < QUEUES; i++) {
        cq[i] = ibv_create_cq(v->a, DEPTH, NULL, NULL, 0);
    }
    from.cq = init.send_cq = init.recv_cq = ibv_create_cq(v->b, DEPTH, NULL, NULL, 0);
    from.qp = ibv_create_qp(v->hosts->host[1].pd, &init);
    ck_assert_ptr_nonnull(from.qp);
    to_ready(from.qp);
    from.mr = table_mr_new(v, 1);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_qp(from.qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(from.cq), 0);
    table_mr_free(from.mr);
    for (int i = 0; i < QUEUES; i++) {
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
    }
    table_mr_free(mr);
    verbs_table_free(v);
}

static struct hex_frame vxlan(void)
{
    struct hex_frame f = hex_frame(frames[0].hex);

    ck_assert_str_eq(frames[0].name, "vxlan");
    memcpy(f.bytes, v->hosts->host[0].config.mac, 6);
    put16(f.bytes + OUTER_SUM, 0); /* none */
    return f;
}

static void send_frame(const struct hex_frame *f)
{
    struct ibv_sge sge = {(uintptr_t)from.mr->addr, (uint32_t)f->len, from.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    memcpy(from.mr->addr, f->bytes, f->len);
    ck_assert_int_eq(ibv_post_send(from.qp, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, from.cq).status, IBV_WC_SUCCESS);
    table_wait(v);
}

static struct ibv_flow *all_frames_to(struct ibv_qp *qp)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } rule = {
        .attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1, .port = 1},
        .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)}};
    struct ibv_flow *flow;

    memcpy(rule.eth.val.dst_mac, v->hosts->host[0].config.mac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    flow = ibv_create_flow(qp, &rule.attr);
    ck_assert_msg(flow, "errno %d", errno);
    return flow;
}

static struct ibv_qp *create(struct ibv_qp_init_attr_ex *attr, bool tunnels)
{
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags =
                                         tunnels ? MLX5DV_QP_CREATE_TUNNEL_OFFLOADS : 0};

    return hv_dv_create_qp(v->a, attr, &dv);
}

/* The inner packet has a wrong checksum. A QP that does not look into tunnels sees the outer packet
 * only, which is right. */
START_TEST(a_completion_judges_the_inner_packet_if_the_qp_looks_into_tunnels)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq[0],
                                       .recv_cq = cq[0],
                                       .cap = {1, DEPTH, 1, 1, 0},
                                       .qp_type = IBV_QPT_RAW_PACKET,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    struct ibv_qp *qp = create(&attr, _i);
    struct ibv_flow *flow;

    ck_assert_ptr_nonnull(qp);
    to_ready(qp);
    flow = all_frames_to(qp);
    for (int damaged = 0; damaged < 2; damaged++) {
        struct ibv_sge sge = {(uintptr_t)mr->addr, ROOM, mr->lkey};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
        struct hex_frame f = vxlan();
        struct ibv_wc wc;

        ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
        f.bytes[INNER_SUM] ^= (uint8_t)damaged;
        send_frame(&f);
        wc = table_wc(v, cq[0]);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(wc.byte_len, f.len);
        ck_assert_int_eq(!!(wc.wc_flags & IBV_WC_IP_CSUM_OK), !(damaged && _i));
    }
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Two queues behind an RSS QP. The frames differ in the inner TCP port. */
static struct ibv_wq *wq[QUEUES];
static struct ibv_rwq_ind_table *table;
static uint8_t key[40];

static struct ibv_qp *create_rss(uint64_t fields, bool tunnels)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE,
        .pd = pd,
        .rwq_ind_tbl = table,
        .rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, fields},
    };

    return create(&attr, tunnels);
}

static void queues_new(void)
{
    struct ibv_rwq_ind_table_init_attr of = {.log_ind_tbl_size = 1, .ind_tbl = wq};

    for (size_t i = 0; i < sizeof(key); i++) {
        key[i] = (uint8_t)(i * 37 + 11);
    }
    for (int i = 0; i < QUEUES; i++) {
        struct ibv_wq_init_attr attr = {
            .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = pd, .cq = cq[i]};
        struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

        wq[i] = ibv_create_wq(v->a, &attr);
        ck_assert_ptr_nonnull(wq[i]);
        ck_assert_int_eq(ibv_modify_wq(wq[i], &ready), 0);
    }
    table = ibv_create_rwq_ind_table(v->a, &of);
    ck_assert_ptr_nonnull(table);
}

static void queues_free(void)
{
    ck_assert_int_eq(ibv_destroy_rwq_ind_table(table), 0);
    for (int i = 0; i < QUEUES; i++) {
        ck_assert_int_eq(ibv_destroy_wq(wq[i]), 0);
    }
}

/* Sends a frame of each flow; fills in how many came to each queue. */
static void send_flows(unsigned came[QUEUES])
{
    for (int i = 0; i < QUEUES; i++) {
        struct ibv_sge sge = {(uintptr_t)mr->addr, ROOM, mr->lkey};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

        for (int n = 0; n < FLOWS; n++) {
            ck_assert_int_eq(ibv_post_wq_recv(wq[i], &wr, &bad), 0);
        }
        came[i] = 0;
    }
    for (uint16_t port = 0; port < FLOWS; port++) {
        struct hex_frame f = vxlan();

        put16(f.bytes + INNER_TCP, (uint16_t)(1000 + port));
        send_frame(&f);
    }
    for (int i = 0; i < QUEUES; i++) {
        struct ibv_wc wc;

        while (ibv_poll_cq(cq[i], 1, &wc) == 1) {
            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            came[i]++;
        }
    }
    ck_assert_uint_eq(came[0] + came[1], FLOWS);
}

START_TEST(inner_fields_choose_the_queue)
{
    const uint64_t ports = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
    struct ibv_qp *qp;
    struct ibv_flow *flow;
    unsigned came[QUEUES];

    queues_new();
    qp = create_rss(ports | (_i ? (uint64_t)IBV_RX_HASH_INNER : 0), true);
    ck_assert_msg(qp, "errno %d", errno);
    flow = all_frames_to(qp);
    send_flows(came);
    if (_i) {
        ck_assert_msg(came[0] && came[1], "%u and %u", came[0], came[1]);
    } else { /* the outer packet has no TCP ports */
        ck_assert_msg(!came[0] || !came[1], "%u and %u", came[0], came[1]);
    }
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    queues_free();
}
END_TEST

/* mlx5_ib create_rss_raw_qp_tir(). */
START_TEST(inner_fields_need_a_qp_that_looks_into_tunnels)
{
    queues_new();
    errno = 0;
    ck_assert_ptr_null(create_rss(IBV_RX_HASH_SRC_PORT_TCP | (uint64_t)IBV_RX_HASH_INNER, false));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    queues_free();
}
END_TEST

START_TEST(other_qps_do_not_look_into_tunnels)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq[0],
                                       .recv_cq = cq[0],
                                       .cap = {1, 1, 1, 1, 0},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};

    errno = 0;
    ck_assert_ptr_null(create(&attr, true));
    ck_assert_int_eq(errno, EOPNOTSUPP);
}
END_TEST

/* The device reports what it does (mlx5dv_query_device()). */
START_TEST(the_kinds_of_tunnels_are_reported)
{
    struct mlx5dv_context dv = {.comp_mask =
                                    MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS | MLX5DV_CONTEXT_MASK_SWP};

    ck_assert_int_eq(hv_dv_query_device(v->a, &dv), 0);
    ck_assert_uint_eq(dv.comp_mask, MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS | MLX5DV_CONTEXT_MASK_SWP);
    ck_assert_uint_eq(dv.tunnel_offloads_caps, MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN |
                                                   MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE |
                                                   MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GENEVE);
    ck_assert_uint_eq(dv.sw_parsing_caps.sw_parsing_offloads,
                      MLX5DV_SW_PARSING | MLX5DV_SW_PARSING_CSUM | MLX5DV_SW_PARSING_LSO);
    ck_assert_uint_eq(dv.flags & MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW,
                      MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tunnels of raw packet QPs");
    TCase *tc = tcase_create("tunnels");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_completion_judges_the_inner_packet_if_the_qp_looks_into_tunnels, 0,
                        2);
    tcase_add_loop_test(tc, inner_fields_choose_the_queue, 0, 2);
    tcase_add_test(tc, inner_fields_need_a_qp_that_looks_into_tunnels);
    tcase_add_test(tc, other_qps_do_not_look_into_tunnels);
    tcase_add_test(tc, the_kinds_of_tunnels_are_reported);
    suite_add_tcase(suite, tc);
    return suite;
}
