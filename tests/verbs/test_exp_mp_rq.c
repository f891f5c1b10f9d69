/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests multi-packet receive queues of experimental verbs (IBV_EXP_CREATE_WQ_MP_RQ), with the polls
 * of accelerated verbs and with ibv_exp_poll_cq(), between two hosts in virtual time.
 */
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/exp/wq.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_wq_bench.h"

enum {
    DEPTH = 2, /* WQEs */
    LOG_NUM = 3,
    LOG_SIZE = 8,
    NUM = 1 << LOG_NUM,
    SIZE = 1 << LOG_SIZE,
    WQE = NUM * SIZE, /* bytes of a WQE; the page has room for two */
    ETHER_TYPE = 0x88b5,
};

/* The receiver, host 1. */
static struct {
    struct ibv_cq *cq; /* has time stamps */
    struct ibv_exp_wq *wq;
    struct ibv_exp_rwq_ind_table *table;
    struct ibv_qp *qp;
    struct ibv_exp_flow *flow;
    struct ibv_exp_wq_family *recv;
    struct ibv_exp_cq_family_v1 *poll;
    unsigned posted;
} to;
static struct ibv_qp *from;

static struct ibv_exp_wq_init_attr many_attr(bool shift)
{
    struct ibv_exp_wq_init_attr attr = wq_attr();

    attr.max_recv_wr = DEPTH;
    attr.comp_mask = IBV_EXP_CREATE_WQ_MP_RQ;
    attr.mp_rq = (struct ibv_exp_wq_mp_rq){
        shift ? IBV_EXP_MP_RQ_2BYTES_SHIFT : IBV_EXP_MP_RQ_NO_SHIFT, LOG_NUM, LOG_SIZE};
    return attr;
}

static void begin(bool shift)
{
    struct ibv_exp_cq_init_attr stamps = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_FLAGS,
                                          .flags = IBV_EXP_CQ_TIMESTAMP};
    struct ibv_exp_wq_init_attr attr = many_attr(shift);
    struct rule rule = rule_for(0);

    memset(&to, 0, sizeof(to));
    rule.eth.mask.ether_type = 0;
    attr.cq = to.cq = ibv_exp_create_cq(v->b, 63, NULL, NULL, 0, &stamps);
    attr.comp_mask |= IBV_EXP_CREATE_WQ_VLAN_OFFLOADS;
    attr.vlan_offloads = IBV_EXP_RECEIVE_WQ_CVLAN_STRIP;
    to.wq = wq_with(attr);
    to.table = table_of(to.wq);
    to.qp = hashed(to.table);
    to.flow = ibv_exp_create_flow(to.qp, &rule.attr);
    ck_assert_ptr_nonnull(to.flow);
    to.recv = family(IBV_EXP_INTF_WQ, to.wq);
    to.poll = family_of(IBV_EXP_INTF_CQ, 1, to.cq);
    from = sender();
}

static void end(void)
{
    ck_assert_int_eq(ibv_destroy_qp(from), 0);
    ck_assert_int_eq(ibv_exp_destroy_flow(to.flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(to.qp), 0);
    ck_assert_int_eq(ibv_exp_destroy_rwq_ind_table(to.table), 0);
    ck_assert_int_eq(ibv_exp_destroy_wq(to.wq), 0);
    ck_assert_int_eq(ibv_destroy_cq(to.cq), 0);
}

static uint8_t *memory_of(unsigned wqe)
{
    return (uint8_t *)mr[1]->addr + wqe % DEPTH * WQE;
}

static int post(void)
{
    struct ibv_sge sge = {(uintptr_t)memory_of(to.posted), WQE, mr[1]->lkey};
    int err = to.recv->recv_burst(to.wq, &sge, 1);

    to.posted += !err;
    return err;
}

/* Sends a frame of len bytes, which depend on seed. tci: of a tag that the WQ takes out; 0: none.
 */
static const uint8_t *send_of(uint32_t len, uint8_t seed, uint16_t tci)
{
    struct ibv_exp_qp_burst_family_v1 *burst = family_on(v->a, IBV_EXP_INTF_QP_BURST, 1, from);
    uint8_t *frame = mr[0]->addr;

    memcpy(frame, v->hosts->host[1].config.mac, 6);
    memcpy(frame + 6, v->hosts->host[0].config.mac, 6);
    prm_store16(frame + 12, ETHER_TYPE);
    for (uint32_t i = 14; i < len; i++) {
        frame[i] = (uint8_t)(seed + i);
    }
    ck_assert_int_eq(tci ? burst->send_pending_vlan(from, (uintptr_t)frame, len, mr[0]->lkey,
                                                    IBV_EXP_QP_BURST_SIGNALED, &tci)
                         : burst->send_pending(from, (uintptr_t)frame, len, mr[0]->lkey,
                                               IBV_EXP_QP_BURST_SIGNALED),
                     0);
    ck_assert_int_eq(burst->send_flush(from), 0);
    wc_of(cq[0]);
    table_wait(v);
    return frame;
}

/* The results of one of the four polls. */
struct polled {
    int32_t len;
    uint32_t offset, flags;
    uint16_t tci;
    uint64_t time;
};

/* way: bit 0, with the tag; bit 1, with the time. */
static struct polled poll_once(int way)
{
    struct polled p = {.offset = UINT32_MAX, .flags = UINT32_MAX};

    p.len = way == 0   ? to.poll->poll_length_flags_mp_rq(to.cq, &p.offset, &p.flags)
            : way == 1 ? to.poll->poll_length_flags_mp_rq_cvlan(to.cq, &p.offset, &p.flags, &p.tci)
            : way == 2 ? to.poll->poll_length_flags_mp_rq_ts(to.cq, &p.offset, &p.flags, &p.time)
                       : to.poll->poll_length_flags_mp_rq_cvlan_ts(to.cq, &p.offset, &p.flags,
                                                                   &p.tci, &p.time);
    return p;
}

/* A WQE of 8 strides takes frames of 1, 5 and 2 strides, and is then used up. _i: bits 0 and 1 are
 * the poll; bit 2: two bytes are left before each frame. */
START_TEST(packets_share_a_receive_by_strides)
{
    static const uint32_t lens[] = {60, 1100, 400};
    unsigned shift = _i & 4 ? 2 : 0;
    int way = _i & 3;
    struct polled p;

    begin(shift);
    for (unsigned wqe = 0; wqe < 3 * DEPTH; wqe++) {
        uint32_t stride = 0;

        ck_assert_int_eq(post(), 0);
        p = poll_once(way);
        ck_assert_int_eq(p.len, 0); /* empty: no flags */
        ck_assert_uint_eq(p.flags, 0);
        for (unsigned i = 0; i < 3; i++) {
            uint16_t tci = (uint16_t)(0x6000 + wqe * 3 + i);
            const uint8_t *frame = send_of(lens[i], (uint8_t)(wqe + i), tci);

            p = poll_once(way);
            ck_assert_int_eq(p.len, (int32_t)lens[i]);
            ck_assert_uint_eq(p.offset, stride * SIZE + shift);
            ck_assert_mem_eq(memory_of(wqe) + p.offset, frame, lens[i]);
            ck_assert_uint_eq(p.flags, (way & 1 ? IBV_EXP_CQ_RX_CVLAN_STRIPPED_V1 : 0) |
                                           (way & 2 ? IBV_EXP_CQ_RX_WITH_TIMESTAMP : 0) |
                                           (i == 2 ? IBV_EXP_CQ_RX_MULTI_PACKET_LAST_V1 : 0));
            ck_assert_uint_eq(p.tci, way & 1 ? tci : 0);
            ck_assert(way & 2 ? p.time : !p.time);
            stride += (lens[i] + shift + SIZE - 1) / SIZE;
        }
    }
    end();
}
END_TEST

/* "filler CQE may come at any time regardless to the last-packet indication", "the application get
 * WC with message-size = 0" (poll_length() of libmlx5). The frame that did not fit is in the next
 * WQE. A WQE has its place in the queue until the CQE of its last stride was polled. */
START_TEST(a_filler_ends_a_receive)
{
    const uint8_t *frame;
    struct polled p;

    begin(false);
    ck_assert_int_eq(post(), 0);
    ck_assert_int_eq(post(), 0);
    ck_assert_int_eq(post(), ENOMEM);
    send_of(1100, 1, 0);
    frame = send_of(1000, 2, 0);
    ck_assert_int_eq(poll_once(0).len, 1100);
    ck_assert_int_eq(post(), ENOMEM);
    p = poll_once(0);
    ck_assert_int_eq(p.len, 0);
    ck_assert_uint_eq(p.flags, IBV_EXP_CQ_RX_MULTI_PACKET_LAST_V1);
    ck_assert_int_eq(post(), 0);
    p = poll_once(0);
    ck_assert_int_eq(p.len, 1000);
    ck_assert_uint_eq(p.offset, 0);
    ck_assert_uint_eq(p.flags, 0);
    ck_assert_mem_eq(memory_of(1), frame, 1000);
    ck_assert_int_eq(poll_once(0).len, 0);
    end();
}
END_TEST

/* "Can't handle Multi-Packet RQ completion since 'offset' output parameter is not provided"
 * (poll_length()): -1, and the completion stays. */
START_TEST(a_poll_without_an_offset_leaves_the_packet)
{
    uint32_t inl, flags;
    uint16_t tci;
    uint64_t time;

    begin(false);
    ck_assert_int_eq(post(), 0);
    send_of(100, 1, 0);
    ck_assert_int_eq(to.poll->poll_length(to.cq, NULL, &inl), -1);
    ck_assert_int_eq(to.poll->poll_length_flags(to.cq, NULL, &inl, &flags), -1);
    ck_assert_int_eq(to.poll->poll_length_flags_cvlan(to.cq, NULL, &inl, &flags, &tci), -1);
    ck_assert_int_eq(to.poll->poll_length_flags_ts(to.cq, NULL, &inl, &flags, &time), -1);
    ck_assert_int_eq(poll_once(0).len, 100);
    end();
}
END_TEST

/* ibv_exp_poll_cq() tells the same by members and flags. */
START_TEST(a_work_completion_says_where_its_packet_is)
{
    static const uint32_t lens[] = {300, 1000, 700};
    struct ibv_exp_wc wc;

    begin(_i);
    for (uint64_t wqe = 0; wqe < 2; wqe++) {
        struct ibv_sge sge = {(uintptr_t)memory_of((unsigned)wqe), WQE, mr[1]->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = 70 + wqe, .sg_list = &sge, .num_sge = 1};

        ck_assert_int_eq(ibv_post_wq_recv(hv_exp_wq(to.wq)->verbs, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        send_of(lens[i], 0, 0);
    }
    for (unsigned i = 0; i < 2; i++) { /* 2 and 4 strides */
        wc = wc_of(to.cq);
        ck_assert_uint_eq(wc.wr_id, 70);
        ck_assert_uint_eq(wc.exp_opcode, IBV_EXP_WC_RECV);
        ck_assert_uint_eq(wc.mp_wr.byte_len, lens[i]);
        ck_assert_uint_eq(wc.mp_wr.strides_offset, i * 2);
        ck_assert(!(wc.exp_wc_flags & IBV_EXP_WC_MP_WR_CONSUMED));
    }
    wc = wc_of(to.cq); /* the rest of the first: 2 strides, where 3 are needed */
    ck_assert_uint_eq(wc.wr_id, 70);
    ck_assert_uint_eq(wc.exp_opcode, IBV_EXP_WC_RECV_NOP);
    ck_assert_uint_eq(wc.mp_wr.byte_len, 0);
    ck_assert(wc.exp_wc_flags & IBV_EXP_WC_MP_WR_CONSUMED);
    wc = wc_of(to.cq);
    ck_assert_uint_eq(wc.wr_id, 71);
    ck_assert_uint_eq(wc.mp_wr.byte_len, lens[2]);
    ck_assert_uint_eq(wc.mp_wr.strides_offset, 0);
    end();
}
END_TEST

/* Writes an IPv4 packet of UDP or TCP without data, and sends it. */
static void send_ip(uint8_t protocol)
{
    static const uint8_t header[] = {0x08, 0x00, 0x45, 0,  0, 40, 0, 1,  0, 0, 64,
                                     0,    0,    0,    10, 0, 0,  1, 10, 0, 0, 2};
    uint8_t *frame = mr[0]->addr;
    struct ibv_sge sge = {(uintptr_t)frame, 60, mr[0]->lkey};
    struct ibv_exp_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .exp_opcode = IBV_EXP_WR_SEND,
              .exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_IP_CSUM};

    memset(frame, 0, 60);
    memcpy(frame, v->hosts->host[1].config.mac, 6);
    memcpy(frame + 6, v->hosts->host[0].config.mac, 6);
    memcpy(frame + 12, header, sizeof(header));
    frame[23] = protocol;
    prm_store16(frame + 34, 1000);
    prm_store16(frame + 36, 2000);
    if (protocol == 17) {
        prm_store16(frame + 38, 20); /* length */
    } else {
        frame[46] = 5 << 4; /* words of the header */
        frame[47] = 0x10;   /* ACK */
    }
    ck_assert_int_eq(ibv_exp_post_send(from, &wr, &bad), 0);
    wc_of(cq[0]);
    table_wait(v);
}

/* IBV_EXP_DEVICE_RX_TCP_UDP_PKT_TYPE, also of a queue that takes one packet in each WQE. */
START_TEST(headers_of_a_packet_are_told)
{
    const uint32_t ip =
        IBV_EXP_CQ_RX_IPV4_PACKET | IBV_EXP_CQ_RX_IP_CSUM_OK | IBV_EXP_CQ_RX_TCP_UDP_CSUM_OK;

    begin(false);
    ck_assert_int_eq(post(), 0);
    send_ip(17);
    ck_assert_uint_eq(poll_once(0).flags, ip | IBV_EXP_CQ_RX_UDP_PACKET);
    send_ip(6);
    ck_assert_uint_eq(poll_once(0).flags, ip | IBV_EXP_CQ_RX_TCP_PACKET);
    send_of(60, 0, 0);
    ck_assert_uint_eq(poll_once(0).flags, 0);
    end();
}
END_TEST

/* A queue in ERR gives its WQEs back, also one that has taken packets. Its next life begins with an
 * empty ring and unused WQEs. */
START_TEST(receives_come_back_from_a_queue_in_error)
{
    struct ibv_exp_wq_attr attr = {.attr_mask = IBV_EXP_WQ_ATTR_STATE};
    struct polled p = {0};
    struct ibv_wc wc;

    begin(false);
    ck_assert_int_eq(post(), 0);
    ck_assert_int_eq(post(), 0);
    send_of(500, 1, 0);
    ck_assert_int_eq(poll_once(0).len, 500);
    attr.wq_state = IBV_EXP_WQS_ERR;
    ck_assert_int_eq(ibv_exp_modify_wq(to.wq, &attr), 0);
    table_wait(v);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(poll_once(0).len, -1);
        ck_assert_int_eq(ibv_poll_cq(to.cq, 1, &wc), 1);
        ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    ck_assert_int_eq(poll_once(0).len, 0);
    for (int i = 0; i < DEPTH; i++) { /* their places are free */
        ck_assert_int_eq(post(), 0);
    }
    for (int s = 0; s < 2; s++) {
        attr.wq_state = s ? IBV_EXP_WQS_RDY : IBV_EXP_WQS_RESET;
        ck_assert_int_eq(ibv_exp_modify_wq(to.wq, &attr), 0);
    }
    to.posted = 0;
    for (int life = 0; life < 2; life++) {
        ck_assert_int_eq(post(), 0);
        send_of(NUM / 2 * SIZE, 1, 0);
        p = poll_once(0);
        ck_assert_uint_eq(p.flags, 0);
        if (!life) { /* reset with half a WQE used, whose CQE was polled */
            for (int s = 0; s < 2; s++) {
                attr.wq_state = s ? IBV_EXP_WQS_RDY : IBV_EXP_WQS_RESET;
                ck_assert_int_eq(ibv_exp_modify_wq(to.wq, &attr), 0);
            }
            to.posted = 0;
        }
    }
    send_of(NUM / 2 * SIZE, 1, 0);
    ck_assert_uint_eq(poll_once(0).flags, IBV_EXP_CQ_RX_MULTI_PACKET_LAST_V1);
    end();
}
END_TEST

/* Sizes outside the attributes of the device are refused with EINVAL, and so is an unknown shift.
 */
START_TEST(attributes_outside_those_of_the_device_are_refused)
{
    struct ibv_exp_device_attr device = {.comp_mask = IBV_EXP_DEVICE_ATTR_MP_RQ};
    const struct ibv_exp_mp_rq_caps *caps = &device.mp_rq_caps;
    struct ibv_exp_wq_init_attr attr = many_attr(false);
    struct ibv_exp_wq *wq;

    ck_assert_int_eq(ibv_exp_query_device(v->b, &device), 0);
    ck_assert_uint_eq(caps->supported_qps, IBV_EXP_MP_RQ_SUP_TYPE_WQ_RQ);
    ck_assert_uint_eq(caps->allowed_shifts, IBV_EXP_MP_RQ_2BYTES_SHIFT);
    for (uint8_t size = 5; size <= 14; size++) {
        for (uint8_t num = 2; num <= 17; num++) {
            bool right = size >= caps->min_single_stride_log_num_of_bytes &&
                         size <= caps->max_single_stride_log_num_of_bytes &&
                         num >= caps->min_single_wqe_log_num_of_strides &&
                         num <= caps->max_single_wqe_log_num_of_strides;

            attr.mp_rq.single_stride_log_num_of_bytes = size;
            attr.mp_rq.single_wqe_log_num_of_strides = num;
            errno = 0;
            wq = ibv_exp_create_wq(v->b, &attr);
            ck_assert_msg(!!wq == right, "2^%u strides of 2^%u bytes: errno %d", num, size, errno);
            ck_assert_int_eq(errno, right ? 0 : EINVAL);
            ck_assert_int_eq(wq ? ibv_exp_destroy_wq(wq) : 0, 0);
        }
    }
    attr = many_attr(false);
    attr.mp_rq.use_shift = (enum ibv_exp_mp_rq_shifts)(IBV_EXP_MP_RQ_2BYTES_SHIFT << 1);
    ck_assert_ptr_null(ibv_exp_create_wq(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("exp_mp_rq");
    TCase *tc = tcase_create("exp_mp_rq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, packets_share_a_receive_by_strides, 0, 8);
    tcase_add_test(tc, a_filler_ends_a_receive);
    tcase_add_test(tc, a_poll_without_an_offset_leaves_the_packet);
    tcase_add_loop_test(tc, a_work_completion_says_where_its_packet_is, 0, 2);
    tcase_add_test(tc, headers_of_a_packet_are_told);
    tcase_add_test(tc, receives_come_back_from_a_queue_in_error);
    tcase_add_test(tc, attributes_outside_those_of_the_device_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
