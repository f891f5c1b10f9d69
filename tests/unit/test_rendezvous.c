/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the rendezvous of matched requests, packet by packet (rdma-core:
 * Documentation/tag_matching.md). */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "tests/unit/suite.h"
#include "tests/unit/tags_bench.h"

#define RVA  0x123456789000ull
#define RKEY 0xabcdef42

static void put_request(uint64_t tag, uint32_t len)
{
    struct prm_rvh *rvh = (void *)(message + sizeof(struct prm_tmh));

    put_header(PRM_TM_OP_RNDV, tag);
    PRM_SET(rvh, rvh, va, RVA);
    PRM_SET(rvh, rvh, rkey, RKEY);
    PRM_SET(rvh, rvh, len, len);
}

/* Sends a request of one packet with some data of the application behind the headers. */
static void send_request(uint64_t tag, uint32_t len)
{
    put_request(tag, len);
    rx(BTH_SEND_ONLY, 0, 40);
}

/* The request is acknowledged. */
static void expect_taken(void)
{
    expect_answer(ACK);
    psn++;
}

/* Returns the next packet that the device sends by itself. */
static struct roce_packet expect_packet(uint8_t bth_op)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | bth_op);
    ck_assert_uint_eq(pkt.dest_qp, BENCH_PEER_QPN);
    return pkt;
}

static struct roce_packet expect_read(uint32_t len)
{
    struct roce_packet pkt = expect_packet(BTH_READ_REQUEST);

    ck_assert_uint_eq(pkt.reth.va, RVA);
    ck_assert_uint_eq(pkt.reth.rkey, RKEY);
    ck_assert_uint_eq(pkt.reth.len, len);
    return pkt;
}

/* Answers a READ with len bytes of message, in packets of the path MTU. */
static void answer_read(const struct roce_packet *read, uint32_t len)
{
    uint32_t at = 0;

    do {
        uint32_t run = MIN(len - at, MTU);
        bool first = at == 0, last = at + run == len;
        uint8_t op = first ? (last ? BTH_READ_RESP_ONLY : BTH_READ_RESP_FIRST)
                           : (last ? BTH_READ_RESP_LAST : BTH_READ_RESP_MIDDLE);
        struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | op, read->psn + at / MTU);

        pkt.aeth.syndrome = ACK;
        bench_rx(&b, &pkt, message + at, run);
        at += run;
    } while (at < len);
}

static void answer(uint32_t of_psn, uint8_t syndrome)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | BTH_ACK, of_psn);

    pkt.aeth.syndrome = syndrome;
    bench_rx(&b, &pkt, NULL, 0);
}

/* "Send a rendezvous completion indication: a copy of the original TMH and RVH of the rendezvous
 * request, apart the opcode." Returns its PSN. */
static uint32_t expect_fin(uint64_t tag, uint32_t len)
{
    struct roce_packet pkt = expect_packet(BTH_SEND_ONLY);

    put_request(tag, len);
    message[0] = PRM_TM_OP_FIN;
    ck_assert_uint_eq(pkt.payload_len, 32);
    ck_assert_mem_eq(pkt.payload, message, 32);
    ck_assert(pkt.ackreq);
    return pkt.psn;
}

/* "HW will also initiate the RDMA-Read data transfer and send a notification message when the data
 * transfer completes." */
START_TEST(the_data_of_a_matched_request_is_fetched)
{
    const uint32_t len = 3 * MTU - 5;
    uint16_t handle = append(0x77, ALL, 0, ROOM, 0);
    struct roce_packet read;
    struct told told;
    uint32_t fin;

    send_request(0x77, len);
    told = EXPECT(CONSUMED, NO_PACKET);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.tag, 0x77);
    read = expect_read(len);
    expect_taken();
    bench_expect_silence(&b);
    answer_read(&read, len);
    expect_bytes(mem, 0, len);
    expect_nothing(); /* the sender is not notified yet */
    fin = expect_fin(0x77, len);
    ck_assert_uint_eq(fin, read.psn + 3);
    answer(fin, ACK);
    told = EXPECT(EXPECTED, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.bytes, len);
    ck_assert_uint_eq(told.tag, 0);
    ck_assert_uint_eq(told.qpn, data_qp.qpn);
    expect_nothing();
    ck_assert_uint_eq(xrq->tags->entries[handle].state, TAG_FREE);
}
END_TEST

/* Whatever the QP requests for data in CQEs: the data belongs to the receive, not to a WQE of the
 * QP. */
START_TEST(fetched_data_is_in_no_cqe)
{
    struct bench_qp_attr attr = {.log_rra_max = 2,
                                 .srqn = xrq->obj.num,
                                 .fetches = true,
                                 .cs_req = PRM_CS_REQ_UP_TO_32B,
                                 .cs_res = PRM_CS_RES_UP_TO_32B};
    struct roce_packet read;

    bench_qp_rts(&b, &attr, &data_qp);
    append(1, ALL, 0, ROOM, 0);
    send_request(1, 20);
    EXPECT(CONSUMED, NO_PACKET);
    read = expect_read(20);
    expect_taken();
    answer_read(&read, 20);
    expect_bytes(mem, 0, 20);
    answer(expect_fin(1, 20), ACK);
    ck_assert_uint_eq(EXPECT(EXPECTED, RESP_SEND).bytes, 20);
    ck_assert_uint_eq(PRM_GET(cqe64, last_told(), format), PRM_CQE_FORMAT_NO_INLINE);
}
END_TEST

START_TEST(an_empty_message_is_read_and_acknowledged)
{
    struct roce_packet read;

    append(1, ALL, 0, 0, 0);
    send_request(1, 0);
    EXPECT(CONSUMED, NO_PACKET);
    read = expect_read(0);
    expect_taken();
    answer_read(&read, 0);
    answer(expect_fin(1, 0), ACK);
    ck_assert_uint_eq(EXPECT(EXPECTED, RESP_SEND).bytes, 0);
}
END_TEST

/* The QP has four READs outstanding at most (log_sra_max 2). */
START_TEST(many_rendezvous_go_on_at_a_time)
{
    struct roce_packet reads[TAGS];
    uint32_t fin = 0;

    for (unsigned i = 0; i < TAGS; i++) {
        append(i, ALL, i, ROOM, 0);
    }
    for (unsigned i = 0; i < TAGS; i++) {
        put_request(i, 10 + i);
        rx(BTH_SEND_ONLY, 0, 32);
        if (i < 4) {
            reads[i] = expect_read(10 + i);
        }
        expect_answer(ACK);
        psn++;
        EXPECT(CONSUMED, NO_PACKET);
    }
    for (unsigned i = 0; i < TAGS; i++) {
        answer_read(&reads[i], 10 + i);
        /* The FIN comes behind what is posted already, in the order of the READs. */
        if (i + 4 < TAGS) {
            reads[i + 4] = expect_read(10 + i + 4);
        } else if (i + 4 == TAGS) {
            for (unsigned k = 0; k <= i; k++) {
                fin = expect_fin(k, 10 + k);
            }
        } else {
            fin = expect_fin(i, 10 + i);
        }
    }
    answer(fin, ACK);
    for (uint16_t i = 0; i < TAGS; i++) {
        ck_assert_uint_eq(EXPECT(EXPECTED, RESP_SEND).handle, i);
    }
    expect_nothing();
}
END_TEST

/* "When a posted tagged buffer is insufficient to hold the data of a rendezvous request, the TMH
 * and RVH headers are scattered into the tagged buffer, and message handling is resumed by SW." The
 * same happens if the QP, or the XRQ, does not fetch. */
START_TEST(a_rendezvous_that_cannot_be_fetched_is_left_to_software)
{
    struct told told;
    uint16_t handle;

    if (_i == 1) {
        make_data_qp(false);
    } else if (_i == 2) {
        xrq->attr.fetches = false;
        make_data_qp(true);
    }
    handle = append(1, ALL, 0, 100, 0);
    send_request(1, _i == 0 ? 101 : 100);
    expect_taken();
    told = EXPECT(CONSUMED_MSG_SW_RNDV, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.bytes, 40);
    ck_assert_uint_eq(told.tag, 1);
    expect_bytes(mem, 0, 40);
    bench_expect_silence(&b);
    expect_nothing();
}
END_TEST

START_TEST(a_request_of_several_packets_is_left_to_software)
{
    uint16_t handle = append(1, ALL, 0, ROOM, 0);
    struct told told;

    put_request(1, 10);
    rx(BTH_SEND_FIRST, 0, MTU);
    psn++;
    told = EXPECT(CONSUMED_SW_RNDV, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.tag, 1);
    rx(BTH_SEND_LAST, MTU, 3);
    told = EXPECT(EXPECTED, RESP_SEND);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.bytes, MTU + 3);
    expect_bytes(mem, 0, MTU + 3);
}
END_TEST

/* The buffer for the headers must have room for them, as for any message. */
START_TEST(headers_that_do_not_fit_are_a_fault)
{
    append(1, ALL, 0, 39, 0);
    put_request(1, 40);
    rx(BTH_SEND_ONLY, 0, 40);
    expect_answer(NAK_INVALID);
    EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET);
}
END_TEST

START_TEST(a_request_without_a_match_is_unexpected)
{
    append(1, ALL, 0, 100, 0);
    post_wqes(1);
    send_request(2, 50);
    expect_taken();
    ck_assert_uint_eq(EXPECT(UNEXPECTED, RESP_SEND).bytes, 40);
    ck_assert_uint_eq(xrq->tags->hw_phase, 1);
    bench_expect_silence(&b);
}
END_TEST

/* The sender refuses the READ: nobody will ever get the data. */
START_TEST(a_fetch_that_is_refused_is_canceled)
{
    uint16_t handle = append(1, ALL, 0, 100, 0);
    struct roce_packet read;

    send_request(1, 50);
    EXPECT(CONSUMED, NO_PACKET);
    read = expect_read(50);
    expect_taken();
    answer(read.psn, NAK_ACCESS);
    ck_assert_uint_eq(EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET).handle, handle);
    ck_assert_uint_eq(data_qp.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(data_qp.qp->error, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(xrq->tags->entries[handle].state, TAG_FREE);
    expect_nothing();
}
END_TEST

/* The QP fails, is reset or destroyed. Before the data has come, it will not come; afterwards it is
 * there, and the receive does not depend on the FIN. */
START_TEST(a_rendezvous_ends_with_its_qp)
{
    bool fetched = _i >= 3;
    uint16_t handle = append(1, ALL, 0, 100, 0), other = append(2, ALL, 1, 100, 0);
    struct roce_packet read;

    send_request(1, 50);
    EXPECT(CONSUMED, NO_PACKET);
    read = expect_read(50);
    expect_taken();
    if (fetched) {
        answer_read(&read, 50);
        expect_fin(1, 50);
    }
    switch (_i % 3) {
    case 0:
        ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_2ERR_QP, &(struct bench_qp_attr){0}),
                         SYN_OK);
        break;
    case 1:
        ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_2RST_QP, &(struct bench_qp_attr){0}),
                         SYN_OK);
        break;
    default:
        ck_assert_int_eq(qp_destroy(&b.hca, 0, data_qp.qpn), SYN_OK);
        break;
    }
    bench_run(&b);
    if (fetched) {
        ck_assert_uint_eq(EXPECT(EXPECTED, RESP_SEND).handle, handle);
    } else {
        ck_assert_uint_eq(EXPECT(MSG_COMPLETION_CANCELED, NO_PACKET).handle, handle);
    }
    expect_nothing();
    ck_assert_uint_eq(xrq->tags->entries[other].state, TAG_LISTED);
}
END_TEST

/* Entries belong to the XRQ's protection domain, which need not be the QP's. */
START_TEST(data_is_fetched_into_the_domain_of_the_xrq)
{
    uint32_t own = b.pdn;
    struct roce_packet read;

    ck_assert_int_eq(pd_alloc(&b.hca, 0, &b.pdn), SYN_OK);
    make_data_qp(true);
    b.pdn = own;
    append(1, ALL, 0, 100, 0);
    send_request(1, 50);
    EXPECT(CONSUMED, NO_PACKET);
    read = expect_read(50);
    expect_taken();
    answer_read(&read, 50);
    expect_bytes(mem, 0, 50);
    answer(expect_fin(1, 50), ACK);
    EXPECT(EXPECTED, RESP_SEND);
}
END_TEST

/* Before RTS a QP sends nothing. */
START_TEST(a_fetch_waits_for_rts)
{
    struct bench_qp_attr attr = {.srqn = xrq->obj.num, .no_sq = true, .fetches = true};

    bench_qp(&b, &attr, &data_qp);
    ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_RST2INIT_QP, &attr), SYN_OK);
    ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_INIT2RTR_QP, &attr), SYN_OK);
    append(1, ALL, 0, 100, 0);
    send_request(1, 50);
    EXPECT(CONSUMED, NO_PACKET);
    expect_taken();
    bench_expect_silence(&b);
    ck_assert_int_eq(bench_modify(&b, &data_qp, PRM_CMD_OP_RTR2RTS_QP, &attr), SYN_OK);
    bench_run(&b);
    expect_read(50);
}
END_TEST

/* A READ or a SEND of 16 bytes, with a fence or none, in the data QP's own send queue. */
static void post_own(uint16_t index, uint8_t opcode, uint8_t fence)
{
    void *wqe = fake_host_ptr(&b.host, data_qp.ring + 64u * index, 64);
    struct prm_wqe_raddr_seg *raddr = wqe + PRM_SIZE(wqe_ctrl_seg);
    bool is_read = opcode == PRM_WQE_OPCODE_RDMA_READ;
    struct prm_wqe_data_seg *data = (void *)raddr + (is_read ? PRM_SIZE(wqe_raddr_seg) : 0);

    memset(wqe, 0, 64);
    PRM_SET(wqe_ctrl_seg, wqe, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, wqe, wqe_index, index);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, data_qp.qpn);
    PRM_SET(wqe_ctrl_seg, wqe, ds, is_read ? 3 : 2);
    PRM_SET(wqe_ctrl_seg, wqe, fm, fence);
    if (is_read) {
        PRM_SET(wqe_raddr_seg, raddr, raddr, RVA + 0x1000);
        PRM_SET(wqe_raddr_seg, raddr, rkey, RKEY);
    }
    PRM_SET(wqe_data_seg, data, byte_count, 16);
    PRM_SET(wqe_data_seg, data, lkey, key);
    PRM_SET(wqe_data_seg, data, addr, mem + 3 * ROOM);
    PRM_SET(qp_dbr, fake_host_ptr(&b.host, data_qp.dbr, 8), send_counter, index + 1u);
    requester_doorbell(data_qp.qp);
    bench_run(&b);
}

/* A WQE that waits for its fence and was already read from the ring must not be confused with the
 * READ that the device makes meanwhile: each is executed once. */
START_TEST(a_fetch_overtakes_a_wqe_that_waits)
{
    struct bench_qp_attr attr = {.srqn = xrq->obj.num, .fetches = true};
    struct roce_packet own, fetch, first, second;

    bench_qp_rts(&b, &attr, &data_qp);
    psn = 0;
    data_qp.qp->log_sra_max = 2;
    post_own(0, PRM_WQE_OPCODE_RDMA_READ, PRM_WQE_FM_NONE);
    own = expect_packet(BTH_READ_REQUEST);
    post_own(1, PRM_WQE_OPCODE_SEND, PRM_WQE_FM_FENCE);
    bench_expect_silence(&b);
    append(5, ALL, 0, 100, 0);
    send_request(5, 50);
    EXPECT(CONSUMED, NO_PACKET);
    fetch = expect_read(50);
    expect_taken();
    answer_read(&own, 16);
    bench_expect_silence(&b);
    answer_read(&fetch, 50);
    first = expect_packet(BTH_SEND_ONLY);
    second = expect_packet(BTH_SEND_ONLY);
    ck_assert_uint_eq(first.payload_len + second.payload_len, 32 + 16);
    answer(second.psn, ACK);
    EXPECT(EXPECTED, RESP_SEND);
    bench_expect_silence(&b);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("rendezvous");
    TCase *tc = tcase_create("rendezvous");

    tcase_add_checked_fixture(tc, tags_setup, tags_teardown);
    tcase_add_test(tc, the_data_of_a_matched_request_is_fetched);
    tcase_add_test(tc, fetched_data_is_in_no_cqe);
    tcase_add_test(tc, an_empty_message_is_read_and_acknowledged);
    tcase_add_test(tc, many_rendezvous_go_on_at_a_time);
    tcase_add_loop_test(tc, a_rendezvous_that_cannot_be_fetched_is_left_to_software, 0, 3);
    tcase_add_test(tc, a_request_of_several_packets_is_left_to_software);
    tcase_add_test(tc, headers_that_do_not_fit_are_a_fault);
    tcase_add_test(tc, a_request_without_a_match_is_unexpected);
    tcase_add_test(tc, a_fetch_that_is_refused_is_canceled);
    tcase_add_loop_test(tc, a_rendezvous_ends_with_its_qp, 0, 6);
    tcase_add_test(tc, data_is_fetched_into_the_domain_of_the_xrq);
    tcase_add_test(tc, a_fetch_waits_for_rts);
    tcase_add_test(tc, a_fetch_overtakes_a_wqe_that_waits);
    suite_add_tcase(suite, tc);
    return suite;
}
