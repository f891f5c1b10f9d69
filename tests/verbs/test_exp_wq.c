/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests WQs, indirection tables, steering rules, SRQs with tag matching and accelerated verbs of
 * experimental verbs, between two hosts in virtual time.
 */
#include <check.h>
#include <endian.h>
#include <string.h>
#include "guest-lib/verbs/user/qp.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_wq_bench.h"

/* -- WQs and rules ----------------------------------------------------------------------------- */

/* The rule selects the packet, the hash selects the WQ; a packet for which there is no rule is in
 * no WQ. Objects in use cannot be destroyed. */
START_TEST(a_packet_finds_its_wq_by_rule_and_table)
{
    struct ibv_exp_wq *wq = wq_new();
    struct ibv_exp_rwq_ind_table *table = table_of(wq);
    struct ibv_qp *qp = hashed(table), *from = sender();
    struct rule rule = rule_for(0x88b5);
    struct ibv_exp_flow *flow = ibv_exp_create_flow(qp, &rule.attr);
    struct ibv_exp_wq_family *recv = family(IBV_EXP_INTF_WQ, wq);
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};

    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(recv->recv_burst(wq, &sge, 1), 0);
    send_frame(from, 0x88b6);
    send_frame(from, 0x88b5);
    ck_assert_uint_eq(wc_of(cq[1]).byte_len, FRAME);
    ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, FRAME);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), EBUSY);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), EBUSY);
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
    ck_assert_int_eq(recv->recv_sg_list(wq, &sge, 1), 0);
    send_frame(from, 0x88b5);
    table_wait(v);
    ck_assert_int_eq(ibv_exp_poll_cq(cq[1], 1, &(struct ibv_exp_wc){0}, sizeof(struct ibv_exp_wc)),
                     0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), 0);
}
END_TEST

/* The CRC of a frame and of its frame check sequence is the same for all frames (IEEE 802.3). */
static void check_fcs(const uint8_t *frame, size_t len)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < len; i++) {
        crc ^= frame[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
    }
    ck_assert_uint_eq(~crc, 0x2144df1c);
}

START_TEST(a_wq_may_have_the_frame_check_sequence)
{
    struct ibv_exp_wq_init_attr attr = wq_attr();
    struct rule rule = rule_for(0x88b5);
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};
    struct ibv_exp_rwq_ind_table *table;
    struct ibv_qp *qp, *from = sender();
    struct ibv_exp_wq_family *recv;
    struct ibv_exp_flow *flow;
    struct ibv_exp_wq *wq;

    attr.comp_mask = IBV_EXP_CREATE_WQ_FLAGS;
    attr.flags = IBV_EXP_CREATE_WQ_FLAG_SCATTER_FCS;
    wq = wq_with(attr);
    table = table_of(wq);
    qp = hashed(table);
    flow = ibv_exp_create_flow(qp, &rule.attr);
    recv = family(IBV_EXP_INTF_WQ, wq);
    ck_assert_int_eq(recv->recv_burst(wq, &sge, 1), 0);
    send_frame(from, 0x88b5);
    ck_assert_uint_eq(wc_of(cq[1]).byte_len, FRAME + 4);
    check_fcs(mr[1]->addr, FRAME + 4);
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), 0);
}
END_TEST

/* IBV_QP_CREATE_SCATTER_FCS, which only raw packet QPs may have. */
START_TEST(a_raw_packet_qp_may_have_the_frame_check_sequence)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq[1],
                                       .recv_cq = cq[1],
                                       .cap = {1, 1, 1, 1, 0},
                                       .qp_type = IBV_QPT_UD,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                       .pd = v->hosts->host[1].pd,
                                       .create_flags = IBV_QP_CREATE_SCATTER_FCS};
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    struct rule rule = rule_for(0x88b5);
    struct ibv_qp *qp, *from = sender();
    struct ibv_device_attr_ex device;
    struct ibv_exp_flow *flow;

    ck_assert_int_eq(ibv_query_device_ex(v->b, NULL, &device), 0);
    ck_assert(device.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS);
    ck_assert(device.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS);
    ck_assert_ptr_null(ibv_create_qp_ex(v->b, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr.qp_type = IBV_QPT_RAW_PACKET;
    qp = ibv_create_qp_ex(v->b, &attr);
    ck_assert_ptr_nonnull(qp);
    for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTR; s++) {
        struct ibv_qp_attr to = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

        ck_assert_int_eq(
            ibv_modify_qp(qp, &to, IBV_QP_STATE | (s == IBV_QPS_INIT ? IBV_QP_PORT : 0)), 0);
    }
    flow = ibv_exp_create_flow(qp, &rule.attr);
    ck_assert_ptr_nonnull(flow);
    ck_assert_int_eq(ibv_post_recv(qp, &wr, &bad), 0);
    send_frame(from, 0x88b5);
    ck_assert_uint_eq(wc_of(cq[1]).byte_len, FRAME + 4);
    check_fcs(mr[1]->addr, FRAME + 4);
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
}
END_TEST

/* libmlx5 takes neither queues nor capacities of a QP whose packets go to the WQs of a table. */
START_TEST(a_qp_with_a_hash_has_no_queues_of_its_own)
{
    static const struct ibv_qp_cap caps[] = {
        {.max_send_wr = 1},  {.max_recv_wr = 1},     {.max_send_sge = 1},
        {.max_recv_sge = 1}, {.max_inline_data = 1},
    };
    const struct ibv_qp_cap none = {0};
    struct ibv_exp_wq *wq = wq_new();
    struct ibv_exp_rwq_ind_table *table = table_of(wq);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(v->hosts->host[1].pd, &srq_attr);
    struct ibv_qp *qp;

    ck_assert_ptr_nonnull(srq);
    for (size_t i = 0; i < G_N_ELEMENTS(caps); i++) {
        errno = 0;
        ck_assert_ptr_null(hashed_with(table, NULL, NULL, NULL, caps[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
    for (int i = 0; i < 3; i++) {
        errno = 0;
        ck_assert_ptr_null(hashed_with(table, i == 0 ? cq[1] : NULL, i == 1 ? cq[1] : NULL,
                                       i == 2 ? srq : NULL, none));
        ck_assert_int_eq(errno, EINVAL);
    }
    qp = hashed(table);
    ck_assert_ptr_nonnull(qp);
    /* nor states: libmlx5 returns this one negative */
    ck_assert_int_eq(
        ibv_exp_modify_qp(qp, &(struct ibv_exp_qp_attr){.qp_state = IBV_QPS_INIT}, IBV_QP_STATE),
        -ENOSYS);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), 0);
}
END_TEST

/* A packet without a receive waits, 100 ms at most. Then it is dropped, and the next packet waits
 * again (delay_drop_handler() of mlx5_ib). */
START_TEST(a_packet_waits_for_a_receive)
{
    struct ibv_exp_wq_init_attr attr = wq_attr();
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS};
    struct rule rule = rule_for(0x88b5);
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};
    struct ibv_exp_rwq_ind_table *table;
    struct ibv_exp_wq_family *recv;
    struct ibv_qp *qp, *from = sender();
    struct ibv_exp_flow *flow;
    struct ibv_exp_wq *wq;

    ck_assert_int_eq(ibv_exp_query_device(v->b, &device), 0);
    ck_assert(device.exp_device_cap_flags & IBV_EXP_DEVICE_WQ_DELAY_DROP);
    attr.comp_mask = IBV_EXP_CREATE_WQ_FLAGS;
    attr.flags = IBV_EXP_CREATE_WQ_FLAG_DELAY_DROP;
    wq = wq_with(attr);
    table = table_of(wq);
    qp = hashed(table);
    flow = ibv_exp_create_flow(qp, &rule.attr);
    recv = family(IBV_EXP_INTF_WQ, wq);
    for (int i = 0; i < 2; i++) {
        post_frame(from, 0x88b5);
        inproc_advance(v->hosts->world, VERBS_SECOND / 20);
        ck_assert_int_eq(recv->recv_burst(wq, &sge, 1), 0);
        ck_assert_uint_eq(wc_of(cq[1]).byte_len, FRAME);
        wc_of(cq[0]);
        send_frame(from, 0x88b5);
        table_wait(v);
        ck_assert_int_eq(recv->recv_burst(wq, &sge, 1), 0);
        table_wait(v);
        ck_assert_int_eq(
            ibv_exp_poll_cq(cq[1], 1, &(struct ibv_exp_wc){0}, sizeof(struct ibv_exp_wc)), 0);
        send_frame(from, 0x88b5);
        ck_assert_uint_eq(wc_of(cq[1]).byte_len, FRAME);
    }
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), 0);
}
END_TEST

START_TEST(what_makes_no_wq_table_or_rule)
{
    struct ibv_exp_wq_init_attr attr = wq_attr();
    struct ibv_exp_wq *wq = wq_new();
    struct ibv_exp_rwq_ind_table_init_attr large = {.log_ind_tbl_size = 31, .ind_tbl = &wq};
    struct ibv_exp_wq *one_of_two[] = {wq, NULL};
    struct ibv_exp_rwq_ind_table_init_attr hole = {.log_ind_tbl_size = 1, .ind_tbl = one_of_two};
    struct ibv_exp_rwq_ind_table *table = table_of(wq);
    struct ibv_qp *qp = hashed(table);
    struct rule rule = rule_for(0x88b5);

    attr.wq_type = IBV_EXP_WQT_SRQ;
    ck_assert_ptr_null(ibv_exp_create_wq(v->b, &attr));
    ck_assert_int_eq(errno, ENOSYS);
    attr = wq_attr();
    attr.comp_mask = IBV_EXP_CREATE_WQ_FLAGS;
    attr.flags = IBV_EXP_CREATE_WQ_FLAG_DELAY_DROP << 1;
    ck_assert_ptr_null(ibv_exp_create_wq(v->b, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr.comp_mask = IBV_EXP_CREATE_WQ_VLAN_OFFLOADS;
    attr.vlan_offloads = IBV_EXP_RECEIVE_WQ_CVLAN_INSERTION;
    ck_assert_ptr_null(ibv_exp_create_wq(v->b, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_ptr_null(ibv_exp_create_rwq_ind_table(v->b, &large));
    ck_assert_ptr_null(ibv_exp_create_rwq_ind_table(v->b, &hole));
    ck_assert_int_eq(errno, EINVAL);
    hole.ind_tbl = NULL;
    ck_assert_ptr_null(ibv_exp_create_rwq_ind_table(v->b, &hole));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(hashed(NULL));
    ck_assert_int_eq(errno, EINVAL);
    rule.eth.size--;
    ck_assert_ptr_null(ibv_exp_create_flow(qp, &rule.attr));
    ck_assert_int_eq(errno, EINVAL);
    rule.eth.size++;
    rule.attr.num_of_specs = 2; /* the second lies beyond attr.size */
    ck_assert_ptr_null(ibv_exp_create_flow(qp, &rule.attr));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(wq), 0);
}
END_TEST

/* -- tags -------------------------------------------------------------------------------------- */

#define TAG 0xabcdull

static struct ibv_exp_create_srq_attr tag_attr(void)
{
    return (struct ibv_exp_create_srq_attr){.base = {.attr = {.max_wr = 15, .max_sge = 1}},
                                            .srq_type = IBV_EXP_SRQT_TAG_MATCHING,
                                            .pd = v->hosts->host[1].pd,
                                            .comp_mask =
                                                IBV_EXP_CREATE_SRQ_CQ | IBV_EXP_CREATE_SRQ_TM,
                                            .cq = cq[1],
                                            .tm_cap = {16, 16}};
}

START_TEST(a_message_is_matched_by_its_tag)
{
    struct ibv_exp_create_srq_attr attr = tag_attr();
    struct ibv_srq *srq = ibv_exp_create_srq(v->b, &attr);
    struct ibv_sge from = {(uintptr_t)mr[0]->addr, sizeof(struct ibv_exp_tmh) + 100, mr[0]->lkey},
                   to = {(uintptr_t)mr[1]->addr, 1000, mr[1]->lkey};
    struct ibv_exp_ops_wr *bad,
        add = {
            .wr_id = 7,
            .opcode = IBV_EXP_WR_TAG_ADD,
            .flags = IBV_EXP_OPS_SIGNALED | IBV_EXP_OPS_TM_SYNC,
            .tm.add = {.recv_wr_id = 8, .sg_list = &to, .num_sge = 1, .tag = TAG, .mask = ~0ull}};
    struct ibv_exp_tmh *header = mr[0]->addr;
    struct ibv_send_wr *bad_send,
        send = {
            .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp *a, *b;
    struct ibv_exp_wc wc;

    ck_assert_ptr_nonnull(srq);
    a = table_qp_new(v, 0, cq[0], NULL);
    b = table_qp_new(v, 1, cq[1], srq);
    table_connect(v, a, b);
    ck_assert_int_eq(ibv_exp_post_srq_ops(srq, &add, &bad), 0);
    wc = wc_of(cq[1]);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_TM_ADD);
    ck_assert_uint_eq(wc.wr_id, 7);
    memset(mr[0]->addr, 0x5a, from.length);
    *header = (struct ibv_exp_tmh){.opcode = IBV_EXP_TMH_EAGER, .tag = htobe64(TAG)};
    ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
    wc_of(cq[0]);
    wc = wc_of(cq[1]);
    ck_assert_uint_eq(wc.wr_id, 8);
    ck_assert_uint_eq(wc.byte_len, 100);
    ck_assert_uint_eq(wc.tm_info.tag, TAG);
    ck_assert_uint_ne(wc.exp_wc_flags & IBV_EXP_WC_TM_MATCH, 0);
    ck_assert_mem_eq(mr[1]->addr, header + 1, 100);
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/* An entry is taken out once; a synchronization has its own completion. */
START_TEST(entries_of_tags_are_taken_out)
{
    struct ibv_exp_create_srq_attr attr = tag_attr();
    struct ibv_srq *srq = ibv_exp_create_srq(v->b, &attr);
    struct ibv_sge to = {(uintptr_t)mr[1]->addr, 1000, mr[1]->lkey};
    struct ibv_exp_ops_wr *bad,
        op = {.wr_id = 1,
              .opcode = IBV_EXP_WR_TAG_ADD,
              .flags = IBV_EXP_OPS_SIGNALED,
              .tm.add = {.recv_wr_id = 8, .sg_list = &to, .num_sge = 1, .tag = TAG, .mask = 1}};
    uint32_t handle;
    struct ibv_exp_wc wc;

    ck_assert_ptr_nonnull(srq);
    ck_assert_int_eq(ibv_exp_post_srq_ops(srq, &op, &bad), 0);
    ck_assert_int_eq(wc_of(cq[1]).exp_opcode, IBV_EXP_WC_TM_ADD);
    handle = op.tm.handle;
    op = (struct ibv_exp_ops_wr){
        .wr_id = 2, .opcode = IBV_EXP_WR_TAG_SYNC, .flags = IBV_EXP_OPS_SIGNALED};
    ck_assert_int_eq(ibv_exp_post_srq_ops(srq, &op, &bad), 0);
    wc = wc_of(cq[1]);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_TM_SYNC);
    ck_assert_uint_eq(wc.wr_id, 2);
    op = (struct ibv_exp_ops_wr){.wr_id = 3,
                                 .opcode = IBV_EXP_WR_TAG_DEL,
                                 .flags = IBV_EXP_OPS_SIGNALED,
                                 .tm.handle = handle};
    ck_assert_int_eq(ibv_exp_post_srq_ops(srq, &op, &bad), 0);
    wc = wc_of(cq[1]);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_TM_DEL);
    ck_assert_uint_eq(wc.wr_id, 3);
    ck_assert_uint_eq(wc.exp_wc_flags & IBV_EXP_WC_TM_DEL_FAILED, 0);
    ck_assert_int_ne(ibv_exp_post_srq_ops(srq, &op, &bad), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

START_TEST(what_makes_no_srq)
{
    struct ibv_exp_create_srq_attr attr = tag_attr();
    struct ibv_srq *srq;

    attr.comp_mask = IBV_EXP_CREATE_SRQ_CQ;
    ck_assert_ptr_null(ibv_exp_create_srq(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr = tag_attr();
    attr.comp_mask |= IBV_EXP_CREATE_SRQ_MP_WR;
    ck_assert_ptr_null(ibv_exp_create_srq(v->b, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr = tag_attr();
    attr.comp_mask |= IBV_EXP_CREATE_SRQ_DC_OFFLOAD_PARAMS;
    ck_assert_ptr_null(ibv_exp_create_srq(v->b, &attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr = tag_attr();
    attr.srq_type = (enum ibv_exp_srq_type)9;
    ck_assert_ptr_null(ibv_exp_create_srq(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr = tag_attr();
    attr.pd = NULL;
    ck_assert_ptr_null(ibv_exp_create_srq(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr = tag_attr();
    attr.srq_type = IBV_EXP_SRQT_BASIC;
    attr.comp_mask = 0;
    srq = ibv_exp_create_srq(v->b, &attr);
    ck_assert_ptr_nonnull(srq);
    ck_assert_uint_ge(attr.base.attr.max_wr, 15);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/* -- accelerated verbs ------------------------------------------------------------------------- */

START_TEST(bursts_are_counted_and_measured)
{
    struct ibv_qp *a = table_qp_new(v, 0, cq[0], NULL), *b = table_qp_new(v, 1, cq[1], NULL);
    struct ibv_exp_cq_family *poll = family(IBV_EXP_INTF_CQ, cq[0]);
    struct ibv_exp_qp_burst_family *burst;
    struct ibv_sge from[3], to[3];
    uint32_t inl = 9;

    table_connect(v, a, b);
    burst = family(IBV_EXP_INTF_QP_BURST, a);
    memset(mr[0]->addr, 0x77, 300);
    for (unsigned i = 0; i < 3; i++) {
        from[i] = (struct ibv_sge){(uintptr_t)mr[0]->addr + i * 100, 50 + i, mr[0]->lkey};
        to[i] = (struct ibv_sge){(uintptr_t)mr[1]->addr + i * 100, 100, mr[1]->lkey};
    }
    ck_assert_int_eq(burst->recv_burst(b, to, 3), 0);
    ck_assert_int_eq(poll->poll_length(cq[1], NULL, &inl), 0);
    ck_assert_int_eq(burst->send_burst(a, from, 2, IBV_EXP_QP_BURST_SIGNALED), 0);
    ck_assert_int_eq(burst->send_pending(a, from[2].addr, from[2].length, from[2].lkey,
                                         IBV_EXP_QP_BURST_SIGNALED),
                     0);
    ck_assert_int_eq(burst->send_flush(a), 0);
    table_wait(v);
    ck_assert_int_eq(poll->poll_length(cq[0], NULL, &inl), -1); /* a send: it stays */
    ck_assert_int_eq(poll->poll_cnt(cq[0], 8), 3);
    ck_assert_int_eq(poll->poll_cnt(cq[0], 8), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(poll->poll_length(cq[1], NULL, &inl), 50 + i);
        ck_assert_uint_eq(inl, 0);
        ck_assert_mem_eq((void *)(uintptr_t)to[i].addr, (void *)(uintptr_t)from[i].addr, 50);
    }
    ck_assert_int_eq(poll->poll_length(cq[1], NULL, &inl), 0);
    ck_assert_int_eq(ibv_exp_release_intf(v->b, poll, NULL), 0);
    table_qp_free(a);
    table_qp_free(b);
}
END_TEST

/* A WQ that strips the tag of packets, and a rule for them. */
struct stripper {
    struct ibv_exp_wq *wq;
    struct ibv_exp_rwq_ind_table *table;
    struct ibv_qp *qp;
    struct ibv_exp_flow *flow;
};

static struct stripper stripper_new(struct ibv_cq *to)
{
    struct ibv_exp_wq_init_attr attr = wq_attr();
    struct ibv_exp_wq_attr ready = {.attr_mask = IBV_EXP_WQ_ATTR_STATE,
                                    .wq_state = IBV_EXP_WQS_RDY};
    struct rule rule = rule_for(0x88b5);
    struct stripper s;

    attr.comp_mask = IBV_EXP_CREATE_WQ_VLAN_OFFLOADS;
    attr.vlan_offloads = IBV_EXP_RECEIVE_WQ_CVLAN_STRIP;
    attr.cq = to;
    s.wq = ibv_exp_create_wq(v->b, &attr);
    ck_assert_ptr_nonnull(s.wq);
    ck_assert_int_eq(ibv_exp_modify_wq(s.wq, &ready), 0);
    s.table = table_of(s.wq);
    s.qp = hashed(s.table);
    s.flow = ibv_exp_create_flow(s.qp, &rule.attr);
    ck_assert_ptr_nonnull(s.flow);
    return s;
}

static void stripper_free(struct stripper *s)
{
    ck_assert_int_eq(ibv_exp_destroy_flow(s->flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(s->qp), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(s->table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(s->wq), 0);
}

static void send_tagged(const struct ibv_exp_qp_burst_family_v1 *burst, struct ibv_qp *qp, int way,
                        uint16_t tci)
{
    uint8_t *frame = mr[0]->addr;
    struct ibv_sge list[] = {{(uintptr_t)frame, 60, mr[0]->lkey},
                             {(uintptr_t)frame + 60, FRAME - 60, mr[0]->lkey}};
    int err =
        way == 0 ? burst->send_pending_vlan(qp, list[0].addr, FRAME, list[0].lkey,
                                            IBV_EXP_QP_BURST_SIGNALED, &tci)
        : way == 1
            ? burst->send_pending_sg_list_vlan(qp, list, 2, IBV_EXP_QP_BURST_SIGNALED, &tci)
            : burst->send_pending_inline_vlan(qp, frame, FRAME, IBV_EXP_QP_BURST_SIGNALED, &tci);

    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(burst->send_flush(qp), 0);
    wc_of(cq[0]);
}

/* Polls by a function of version 1. way: bit 0, with the tag; bit 1, with the time; bit 2, for
 * multi-packet queues. */
static int32_t poll_way(const struct ibv_exp_cq_family_v1 *poll, struct ibv_cq *of, int way,
                        uint32_t *flags, uint16_t *tci, uint64_t *time)
{
    uint32_t inl = 9, offset = 9;
    int32_t n = way == 0   ? poll->poll_length_flags(of, NULL, &inl, flags)
                : way == 1 ? poll->poll_length_flags_cvlan(of, NULL, &inl, flags, tci)
                : way == 2 ? poll->poll_length_flags_ts(of, NULL, &inl, flags, time)
                : way == 3 ? poll->poll_length_flags_cvlan_ts(of, NULL, &inl, flags, tci, time)
                : way == 4 ? poll->poll_length_flags_mp_rq(of, &offset, flags)
                : way == 5 ? poll->poll_length_flags_mp_rq_cvlan(of, &offset, flags, tci)
                : way == 6 ? poll->poll_length_flags_mp_rq_ts(of, &offset, flags, time)
                           : poll->poll_length_flags_mp_rq_cvlan_ts(of, &offset, flags, tci, time);

    ck_assert_uint_eq(way < 4 ? inl : offset, way < 4 ? 0 : 9);
    return n;
}

/* The tag is put in by the sender's family, taken out by the WQ, and told by the receiver's. */
START_TEST(a_tag_and_a_time_are_told_by_version_1)
{
    struct ibv_exp_cq_init_attr stamps = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                          .flags = IBV_EXP_CQ_TIMESTAMP};
    struct ibv_cq *to = ibv_exp_create_cq(v->b, 63, NULL, NULL, 0, &stamps);
    struct stripper s = stripper_new(to);
    struct ibv_qp *from = sender();
    const struct ibv_exp_qp_burst_family_v1 *burst = family_of(IBV_EXP_INTF_QP_BURST, 1, from);
    const struct ibv_exp_cq_family_v1 *poll = family_of(IBV_EXP_INTF_CQ, 1, to);
    struct ibv_exp_wq_family *recv = family(IBV_EXP_INTF_WQ, s.wq);
    struct ibv_sge sge = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};
    uint64_t before = 0;

    send_frame(from, 0x88b6); /* fills in the frame; no rule takes it */
    memcpy((uint8_t *)mr[0]->addr + 12, "\x88\xb5", 2);
    for (int way = 0; way < 8; way++) {
        uint16_t sent = (uint16_t)(0x6000 + way), tci = 0;
        uint64_t time = 0;
        uint32_t flags = UINT32_MAX;

        ck_assert_int_eq(recv->recv_burst(s.wq, &sge, 1), 0);
        ck_assert_int_eq(poll_way(poll, to, way, &flags, &tci, &time), 0);
        ck_assert_uint_eq(flags, 0);
        memset(mr[1]->addr, 0, FRAME);
        send_tagged(burst, from, way % 3, sent);
        table_wait(v);
        ck_assert_int_eq(poll_way(poll, to, way, &flags, &tci, &time), FRAME);
        ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, FRAME);
        ck_assert_uint_eq(flags, (way & 1 ? IBV_EXP_CQ_RX_CVLAN_STRIPPED_V1 : 0) |
                                     (way & 2 ? IBV_EXP_CQ_RX_WITH_TIMESTAMP : 0));
        ck_assert_uint_eq(tci, way & 1 ? sent : 0);
        ck_assert(way & 2 ? time > before : time == 0);
        before = MAX(before, time);
    }
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
    stripper_free(&s);
    ck_assert_int_eq(ibv_destroy_cq(to), 0);
}
END_TEST

/* A packet with a tag needs a QP that can send; the errno is that of a post. poll_cnt() ends at a
 * completion that failed, and takes it. */
START_TEST(what_accelerated_verbs_do_with_a_qp_in_error)
{
    struct ibv_qp *from = sender();
    const struct ibv_exp_qp_burst_family_v1 *burst =
        family_on(v->a, IBV_EXP_INTF_QP_BURST, 1, from);
    const struct ibv_exp_cq_family_v1 *poll = family_on(v->a, IBV_EXP_INTF_CQ, 1, cq[0]);
    struct ibv_exp_qp_attr to = {.qp_state = IBV_QPS_ERR};
    uint16_t tci = 5;

    send_frame(from, 0x88b6);
    ck_assert_int_eq(ibv_exp_modify_qp(from, &to, IBV_EXP_QP_STATE), 0);
    ck_assert_int_eq(burst->send_pending_vlan(from, (uintptr_t)mr[0]->addr, FRAME, mr[0]->lkey,
                                              IBV_EXP_QP_BURST_SIGNALED, &tci),
                     0);
    table_wait(v);
    ck_assert_int_eq(poll->poll_cnt(cq[0], 8), -1);
    ck_assert_int_eq(poll->poll_cnt(cq[0], 8), 0);
    to.qp_state = IBV_QPS_RESET;
    ck_assert_int_eq(ibv_exp_modify_qp(from, &to, IBV_EXP_QP_STATE), 0);
    ck_assert_int_eq(burst->send_pending_vlan(from, (uintptr_t)mr[0]->addr, FRAME, mr[0]->lkey,
                                              IBV_EXP_QP_BURST_SIGNALED, &tci),
                     ENOMEM);
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
}
END_TEST

/* A message of one piece whose data are copied at once, and of a list. */
START_TEST(messages_are_inline_or_of_several_pieces)
{
    struct ibv_qp *a = table_qp_new(v, 0, cq[0], NULL), *b = table_qp_new(v, 1, cq[1], NULL);
    struct ibv_exp_qp_burst_family *burst;
    struct ibv_sge to = {(uintptr_t)mr[1]->addr, 64, mr[1]->lkey};
    struct ibv_sge list[2] = {{(uintptr_t)mr[0]->addr + 32, 8, mr[0]->lkey},
                              {(uintptr_t)mr[0]->addr, 8, mr[0]->lkey}};
    struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;
    char text[] = "inline";

    table_connect(v, a, b);
    burst = family_on(v->a, IBV_EXP_INTF_QP_BURST, 0, a);
    memcpy(mr[0]->addr, "second", 7);
    memcpy((char *)mr[0]->addr + 32, "the first", 8);
    ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
    ck_assert_int_eq(burst->send_pending_inline(a, text, sizeof(text), IBV_EXP_QP_BURST_SIGNALED),
                     0);
    memset(text, 0, sizeof(text));
    wc_of(cq[0]);
    ck_assert_uint_eq(wc_of(cq[1]).byte_len, sizeof(text));
    ck_assert_str_eq(mr[1]->addr, "inline");
    ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
    ck_assert_int_eq(burst->send_pending_sg_list(a, list, 2, IBV_EXP_QP_BURST_SIGNALED), 0);
    wc_of(cq[0]);
    ck_assert_uint_eq(wc_of(cq[1]).byte_len, 16);
    ck_assert_mem_eq(mr[1]->addr, "the firssecond", 15);
    table_qp_free(a);
    table_qp_free(b);
}
END_TEST

START_TEST(what_has_no_tag)
{
    struct ibv_qp *a = table_qp_new(v, 0, cq[0], NULL), *b = table_qp_new(v, 1, cq[1], NULL);
    struct ibv_qp *raw = sender();
    const struct ibv_exp_qp_burst_family_v1 *burst = family_of(IBV_EXP_INTF_QP_BURST, 1, raw);
    struct ibv_sge two[] = {{(uintptr_t)mr[0]->addr, 60, mr[0]->lkey},
                            {(uintptr_t)mr[0]->addr, 60, mr[0]->lkey}};
    uint64_t addr = (uintptr_t)mr[0]->addr;
    uint16_t tci = 1;

    table_connect(v, a, b);
    ck_assert_int_eq(burst->send_pending_vlan(a, addr, FRAME, mr[0]->lkey, 0, &tci), EINVAL);
    ck_assert_int_eq(burst->send_pending_vlan(raw, addr, 14, mr[0]->lkey, 0, &tci), EINVAL);
    ck_assert_int_eq(
        burst->send_pending_vlan(raw, addr, FRAME, mr[0]->lkey, IBV_EXP_QP_BURST_TUNNEL, &tci),
        EINVAL);
    ck_assert_int_eq(burst->send_pending_sg_list_vlan(raw, two, 0, 0, &tci), EINVAL);
    ck_assert_int_eq(
        burst->send_pending_sg_list_vlan(raw, two, user_qp(raw)->sq.max_gs + 1, 0, &tci), ENOMEM);
    ck_assert_int_eq(
        burst->send_pending_inline_vlan(raw, mr[0]->addr, user_qp(raw)->max_inline + 1, 0, &tci),
        ENOMEM);
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_qp(raw), 0);
}
END_TEST

/* libmlx5 gives a family for a QP from INIT to RTS that is not managed, of three types. */
START_TEST(which_qps_have_a_family)
{
    struct ibv_exp_qp_init_attr attr = {.send_cq = cq[0],
                                        .recv_cq = cq[0],
                                        .cap = {8, 8, 1, 1, 0},
                                        .qp_type = IBV_QPT_UD,
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                        .pd = v->hosts->host[0].pd};
    struct ibv_exp_query_intf_params params = {
        .family_flags = IBV_EXP_QP_BURST_CREATE_ENABLE_MULTI_PACKET_SEND_WR};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *rc = table_qp_new(v, 0, cq[0], NULL), *ud = ibv_exp_create_qp(v->a, &attr);
    enum ibv_exp_query_intf_status status;

    params.obj = rc;
    ck_assert_ptr_null(ibv_exp_query_intf(v->a, &params, &status));
    ck_assert_int_eq(status, IBV_EXP_INTF_STAT_INVAL_OBJ_STATE);
    ck_assert_int_eq(
        ibv_modify_qp(rc, &init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    ck_assert_ptr_nonnull(ibv_exp_query_intf(v->a, &params, &status));
    ck_assert_int_eq(status, IBV_EXP_INTF_STAT_OK);
    ck_assert_ptr_nonnull(ud);
    ck_assert_int_eq(
        ibv_modify_qp(ud, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    params.obj = ud;
    ck_assert_ptr_null(ibv_exp_query_intf(v->a, &params, &status));
    ck_assert_int_eq(status, IBV_EXP_INTF_STAT_INVAL_PARARM);
    table_qp_free(rc);
    table_qp_free(ud);
}
END_TEST

START_TEST(what_is_no_family)
{
    static const struct {
        struct ibv_exp_query_intf_params params;
        enum ibv_exp_query_intf_status status;
    } wrong[] = {
        {{.intf_scope = IBV_EXP_INTF_VENDOR}, IBV_EXP_INTF_STAT_INTF_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_RESERVED}, IBV_EXP_INTF_STAT_INTF_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_QP_BURST, .intf_version = 2},
         IBV_EXP_INTF_STAT_VERSION_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_CQ, .intf_version = 2}, IBV_EXP_INTF_STAT_VERSION_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_WQ, .intf_version = 1}, IBV_EXP_INTF_STAT_VERSION_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_CQ, .flags = 2}, IBV_EXP_INTF_STAT_FLAGS_NOT_SUPPORTED},
        {{.intf = IBV_EXP_INTF_CQ,
          .family_flags = IBV_EXP_QP_BURST_CREATE_ENABLE_MULTI_PACKET_SEND_WR},
         IBV_EXP_INTF_STAT_FAMILY_FLAGS_NOT_SUPPORTED},
    };
    struct ibv_exp_query_intf_params none = {.intf = IBV_EXP_INTF_CQ};
    enum ibv_exp_query_intf_status status;

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        struct ibv_exp_query_intf_params params = wrong[i].params;

        status = IBV_EXP_INTF_STAT_OK;
        params.obj = cq[0];
        errno = 0;
        ck_assert_ptr_null(ibv_exp_query_intf(v->a, &params, &status));
        ck_assert_int_eq(status, wrong[i].status);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(ibv_exp_query_intf(v->a, &none, &status));
    ck_assert_int_eq(status, IBV_EXP_INTF_STAT_INVAL_OBJ);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_query_intf(v->a, &none, NULL));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("experimental WQs");
    TCase *tc = tcase_create("WQs");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_packet_finds_its_wq_by_rule_and_table);
    tcase_add_test(tc, a_packet_waits_for_a_receive);
    tcase_add_test(tc, a_wq_may_have_the_frame_check_sequence);
    tcase_add_test(tc, a_raw_packet_qp_may_have_the_frame_check_sequence);
    tcase_add_test(tc, a_qp_with_a_hash_has_no_queues_of_its_own);
    tcase_add_test(tc, what_makes_no_wq_table_or_rule);
    tcase_add_test(tc, a_message_is_matched_by_its_tag);
    tcase_add_test(tc, entries_of_tags_are_taken_out);
    tcase_add_test(tc, what_makes_no_srq);
    tcase_add_test(tc, bursts_are_counted_and_measured);
    tcase_add_test(tc, a_tag_and_a_time_are_told_by_version_1);
    tcase_add_test(tc, what_accelerated_verbs_do_with_a_qp_in_error);
    tcase_add_test(tc, messages_are_inline_or_of_several_pieces);
    tcase_add_test(tc, what_has_no_tag);
    tcase_add_test(tc, which_qps_have_a_family);
    tcase_add_test(tc, what_is_no_family);
    suite_add_tcase(suite, tc);
    return suite;
}
