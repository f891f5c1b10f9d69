/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests faults that meet the responder of a reliable connection in the middle of something else:
 * who is notified, of what, and in which order. The path MTU is 256 bytes throughout.
 */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/mkey_priv.h"
#include "model/queue/q_counter.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU 256

/* AETH syndromes on the wire (IBTA 9.5.4). */
#define ACK         0x1f
#define RNR         0x20
#define NAK_SEQ     0x60
#define NAK_INVALID 0x61
#define NAK_ACCESS  0x62
#define NAK_OP      0x63

#define ALL_RIGHTS                                                                                 \
    (MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)

static struct bench b;
static struct bench_qp qp;
static uint8_t data[4 * MTU];
static uint64_t mem; /* 64 KiB of the host's memory */
static uint32_t all; /* a key for it with every right */

static void setup_attr(const struct bench_qp_attr *attr)
{
    bench_qp_rts(&b, attr, &qp);
}

static void setup(void)
{
    bench_init(&b);
    mem = fake_host_alloc(&b.host, 64 << 10, 4096);
    all = bench_mkey(&b, mem, 64 << 10, ALL_RIGHTS);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + i / 256 + 1);
    }
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2, .min_rnr_nak = 12});
}

static void teardown(void)
{
    bench_clear(&b);
}

static void *at(uint64_t addr, size_t len)
{
    return fake_host_ptr(&b.host, addr, len);
}

static struct roce_packet request(uint8_t op, uint32_t psn)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_RC | op, psn);

    pkt.ackreq = true;
    return pkt;
}

static struct roce_packet rdma(uint8_t op, uint32_t psn, uint32_t rkey, uint32_t len)
{
    struct roce_packet pkt = request(op, psn);

    pkt.reth.va = pkt.atomic.va = mem;
    pkt.reth.rkey = pkt.atomic.rkey = rkey;
    pkt.reth.len = len;
    return pkt;
}

static void rx_send(uint8_t op, uint32_t psn, size_t len)
{
    struct roce_packet pkt = request(op, psn);

    bench_rx(&b, &pkt, data, len);
}

/* Sends a packet that arrives in the same turn as the next one. */
static void rx_at_once(struct roce_packet pkt)
{
    roce_rx(&b.hca, &pkt);
}

static void expect_ack(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, psn);
    ck_assert_uint_eq(pkt.aeth.msn, msn);
}

static void expect_state(uint8_t state)
{
    ck_assert_uint_eq(qp.qp->state, state);
}

static void expect_cqe(uint8_t opcode, uint32_t byte_cnt)
{
    const struct prm_cqe64 *cqe = bench_poll(&b, &b.cq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), opcode);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), byte_cnt);
}

static void expect_error_cqe(uint8_t syndrome)
{
    const struct prm_err_cqe *cqe = bench_poll(&b, &b.cq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, opcode), PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
}

static void expect_no_cqe(void)
{
    ck_assert_ptr_null(bench_poll(&b, &b.cq));
}

static void expect_event(int type)
{
    ck_assert_int_eq(bench_event(&b, qp.qpn), type);
}

/* -- what waits to be sent --------------------------------------------------------------------- */

/* A NAK acknowledges everything before it (IBTA 9.7.5.1): the ACK of a duplicate adds nothing, and
 * must not replace the NAK, because a gap is reported only once. */
START_TEST(the_ack_of_a_duplicate_leaves_a_waiting_nak_alone)
{
    bench_post_recv(&qp, mem, 100, all);
    rx_send(BTH_SEND_ONLY, 0, 4);
    expect_ack(ACK, 0, 1);
    rx_at_once(request(BTH_SEND_ONLY, 2));
    rx_at_once(request(BTH_SEND_ONLY, 0));
    bench_run(&b);
    expect_ack(NAK_SEQ, 1, 1);
    bench_expect_silence(&b);
}
END_TEST

START_TEST(the_ack_of_a_duplicate_leaves_a_waiting_rnr_nak_alone)
{
    bench_post_recv(&qp, mem, 100, all);
    rx_send(BTH_SEND_ONLY, 0, 4);
    expect_ack(ACK, 0, 1);
    rx_at_once(request(BTH_SEND_ONLY, 1));
    rx_at_once(request(BTH_SEND_ONLY, 0));
    bench_run(&b);
    expect_ack(RNR | 12, 1, 1);
    bench_expect_silence(&b);
}
END_TEST

/* When the missing request has come, its NAK is outdated. */
START_TEST(the_ack_of_the_missing_request_replaces_its_nak)
{
    bench_post_recv(&qp, mem, 100, all);
    rx_at_once(request(BTH_SEND_ONLY, 1));
    rx_at_once(request(BTH_SEND_ONLY, 0));
    bench_run(&b);
    expect_ack(ACK, 0, 1);
    bench_expect_silence(&b);
}
END_TEST

/* -- an answer that cannot be made ------------------------------------------------------------- */

/* The READ is refused, with the event of an access error (IBTA 11.6.3.2), and is not counted by MSN
 * (9.7.7). The receive of the SEND that is arriving meanwhile is not the cause: it is flushed. */
START_TEST(a_send_that_arrives_while_a_read_fails_is_flushed)
{
    uint32_t key = bench_mkey(&b, mem, 64 << 10, MEM_REMOTE_READ);
    struct roce_packet pkt = rdma(BTH_READ_REQUEST, 0, key, MTU), send;

    b.hca.late_reads = true;
    bench_post_recv(&qp, mem, 4 * MTU, all);
    send = request(BTH_SEND_FIRST, 1);
    send.payload = data;
    send.payload_len = MTU;
    rx_at_once(pkt);
    rx_at_once(send);
    ck_assert_int_eq(mkey_destroy(&b.hca, 0, key >> 8), SYN_OK);
    bench_run(&b);
    expect_ack(NAK_ACCESS, 0, 0);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_ERR);
    expect_event(PRM_EVENT_TYPE_WQ_ACCESS_ERROR);
    expect_error_cqe(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_no_cqe();
}
END_TEST

/* A READ that was answered is repeated after its key is gone: it is dropped, and is not a fault
 * (ADR 15). */
START_TEST(a_duplicate_read_whose_key_is_gone_is_dropped)
{
    uint32_t key = bench_mkey(&b, mem, 64 << 10, MEM_REMOTE_READ);
    struct roce_packet read = rdma(BTH_READ_REQUEST, 0, key, 3 * MTU);
    struct roce_packet write = rdma(BTH_WRITE_ONLY, 3, all, MTU);

    bench_rx(&b, &read, NULL, 0);
    b.read = b.got;
    ck_assert_int_eq(mkey_destroy(&b.hca, 0, key >> 8), SYN_OK);
    bench_rx(&b, &read, NULL, 0);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_RTS);
    bench_rx(&b, &write, data, MTU);
    expect_ack(ACK, 3, 2);
}
END_TEST

/* The answer of the duplicate ends where it is, and later requests are answered. */
START_TEST(a_duplicate_read_whose_key_goes_is_not_ended)
{
    uint32_t key = bench_mkey(&b, mem, 64 << 10, MEM_REMOTE_READ);
    struct roce_packet first = rdma(BTH_READ_REQUEST, 0, key, 3 * MTU);
    struct roce_packet second = rdma(BTH_READ_REQUEST, 3, all, 8);

    bench_rx(&b, &first, NULL, 0);
    b.read = b.got;
    rx_at_once(first);
    rx_at_once(second);
    ck_assert_int_eq(mkey_destroy(&b.hca, 0, key >> 8), SYN_OK);
    bench_run(&b);
    ck_assert(bench_tx(&b, &first));
    ck_assert_uint_eq(first.opcode, BTH_READ_RESP_ONLY);
    ck_assert_uint_eq(first.psn, 3);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

/* Another QP has bound the window of type 2 since, with the same key. */
START_TEST(a_duplicate_read_of_another_qps_window_is_dropped)
{
    uint32_t key = bench_mkey(&b, mem, 64 << 10, MEM_REMOTE_READ);
    struct roce_packet read = rdma(BTH_READ_REQUEST, 0, key, 8);
    struct mkey *mkey = mkey_find(&b.hca, key >> 8);

    mkey->qpn = qp.qp->obj.num;
    bench_rx(&b, &read, NULL, 0);
    ck_assert(bench_tx(&b, &read));
    ck_assert_uint_eq(read.opcode, BTH_READ_RESP_ONLY);
    mkey->qpn = qp.qp->obj.num + 1;
    read = rdma(BTH_READ_REQUEST, 0, key, 8);
    bench_rx(&b, &read, NULL, 0);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

/* SET_ROCE_ADDRESS emptied the entry that the QP's path names: there is no source address for an
 * answer. */
START_TEST(without_a_source_address_no_answer_is_sent)
{
    struct roce_packet pkt = rdma(BTH_READ_REQUEST, 0, all, 100 * MTU);

    b.deaf = true;
    bench_rx(&b, &pkt, NULL, 0);
    vport_set_gid(b.hca.vport, BENCH_IPV4, NULL);
    b.deaf = false;
    bench_run(&b);
    ck_assert_uint_lt(b.got, 100);
    expect_state(PRM_QP_STATE_RTS);
}
END_TEST

/* A resource is found by the newest request of its PSN: requests of 2^24 PSNs ago are over. */
START_TEST(a_duplicate_is_of_the_newest_request_of_its_psn)
{
    uint64_t *word = at(mem, 8);
    struct roce_packet pkt = rdma(BTH_FETCH_ADD, 0, all, 0);

    *word = 10;
    pkt.atomic.swap_add = 5;
    bench_rx(&b, &pkt, NULL, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.atomic_ack, 10);
    qp.qp->peer.resp.epsn = 0; /* all numbers were used once */
    pkt = rdma(BTH_FETCH_ADD, 0, all, 0);
    pkt.atomic.swap_add = 5;
    bench_rx(&b, &pkt, NULL, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.atomic_ack, 15);
    pkt = rdma(BTH_FETCH_ADD, 0, all, 0);
    pkt.atomic.swap_add = 5;
    bench_rx(&b, &pkt, NULL, 0);
    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.atomic_ack, 15);
    ck_assert_uint_eq(*word, 20);
}
END_TEST

/* -- completions that nobody will see ---------------------------------------------------------- */

/* IBTA 10.2.9.3 and class G of 9.9.3: the message whose completion is lost is not acknowledged, and
 * an event reports it. The ACK of the previous message waits for the wire at that moment. */
START_TEST(a_message_whose_completion_is_lost_is_not_acknowledged)
{
    struct bench_cq small;

    bench_cq(&b, 1, &small);
    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .cqn = small.cqn});
    for (uint32_t i = 0; i < 3; i++) {
        bench_post_recv(&qp, mem, 100, all);
    }
    rx_send(BTH_SEND_ONLY, 0, 4);
    expect_ack(ACK, 0, 1);
    rx_at_once(request(BTH_SEND_ONLY, 1));
    rx_at_once(request(BTH_SEND_ONLY, 2));
    bench_run(&b);
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_ERR);
    expect_event(PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    expect_event(-1);
    ck_assert_uint_eq(qp_counters(qp.qp)->cq_overflow, 1);
    ck_assert_uint_eq(b.hca.cq_overruns, 1);
}
END_TEST

/* -- rights ------------------------------------------------------------------------------------ */

/* IBTA 9.7.4: a WRITE with immediate takes its receive before its key is checked, and that receive
 * reports a bad key. */
START_TEST(a_write_with_immediate_and_a_bad_key_completes_its_receive)
{
    struct roce_packet pkt = rdma(BTH_WRITE_ONLY_IMM, 0, 0xbad00, 4);

    bench_rx(&b, &pkt, data, 4);
    expect_ack(RNR | 12, 0, 0);
    bench_post_recv(&qp, mem, 100, all);
    bench_rx(&b, &pkt, data, 4);
    expect_ack(NAK_ACCESS, 0, 0);
    expect_state(PRM_QP_STATE_ERR);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_ACCESS_ERR);
    expect_no_cqe();
    expect_event(-1);
}
END_TEST

/* A WRITE whose first packet has taken no receive yet reports it by the event. */
START_TEST(a_long_write_with_a_bad_key_has_taken_no_receive)
{
    struct roce_packet pkt = rdma(BTH_WRITE_FIRST, 0, 0xbad00, MTU + 4);

    bench_post_recv(&qp, mem, 100, all);
    bench_rx(&b, &pkt, data, MTU);
    expect_ack(NAK_ACCESS, 0, 0);
    expect_event(PRM_EVENT_TYPE_WQ_ACCESS_ERROR);
    expect_error_cqe(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_no_cqe();
}
END_TEST

/* qpc.atomic_mode says which atomics a QP answers; qpc.rae alone admits none. */
START_TEST(a_qp_of_no_atomic_mode_answers_no_atomics)
{
    struct roce_packet pkt;

    setup_attr(&(struct bench_qp_attr){.st = PRM_QP_ST_RC, .log_rra_max = 2, .no_atomics = true});
    pkt = rdma(BTH_FETCH_ADD, 0, all, 0);
    bench_rx(&b, &pkt, NULL, 0);
    expect_ack(NAK_INVALID, 0, 0);
    expect_state(PRM_QP_STATE_ERR);
}
END_TEST

/* The keys that a SEND with invalidate may not take back. */
enum {
    NO_SUCH_KEY,
    OTHER_VARIANT,
    OTHER_PD,
    OTHER_QP, /* a window of type 2 bound to another QP */
    NOT_THIS, /* mkc.en_rinval is not set: a region, or a window of type 1 */
    INVALID_KEYS,
};

static uint32_t key_of(int what)
{
    uint32_t pdn = b.pdn, key;

    if (what == OTHER_PD) {
        ck_assert_int_eq(pd_alloc(&b.hca, 0, &b.pdn), SYN_OK);
    }
    key = bench_key(&b, &(struct bench_key_attr){.addr = mem,
                                                 .len = 4096,
                                                 .access = ALL_RIGHTS,
                                                 .no_rinval = what == NOT_THIS,
                                                 .qpn = what == OTHER_QP ? qp.qpn + 1 : 0});
    b.pdn = pdn;
    return what == NO_SUCH_KEY ? key + 0x100 : what == OTHER_VARIANT ? key ^ 1 : key;
}

/* IBTA 9.9.3, class J: the receive completes in error (a memory management operation error, which
 * is the driver's MW_BIND_ERR) and the QP stops; the requester gets no answer. */
START_TEST(an_invalidation_that_is_not_allowed_stops_the_qp_without_an_answer)
{
    struct roce_packet pkt = request(BTH_SEND_ONLY_INV, 0);

    pkt.imm = key_of(_i);
    bench_post_recv(&qp, mem, 1000, all);
    bench_rx(&b, &pkt, data, 8);
    expect_error_cqe(PRM_CQE_SYNDROME_MW_BIND_ERR);
    expect_no_cqe();
    bench_expect_silence(&b);
    expect_state(PRM_QP_STATE_ERR);
    expect_event(-1);
}
END_TEST

/* -- shared receive queues --------------------------------------------------------------------- */

#define LOG_SIZE   3
#define LOG_STRIDE 6

/* Makes an SRQ in its own PD with one receive posted, of a key in key_pdn (0: the SRQ's). */
static void srq_qp(uint8_t st, uint32_t key_pdn, uint32_t bytes)
{
    struct srq_attr attr = {.kind = OBJ_RMP, .log_size = LOG_SIZE, .log_stride = LOG_STRIDE};
    uint64_t ring = fake_host_alloc(&b.host, 4096, 4096), pa = GUINT64_TO_BE(ring);
    struct mtt *mtt = mtt_new(&pa, 1, 12);
    void *slot = fake_host_ptr(&b.host, ring, 64);
    void *seg = slot + PRM_SIZE(wqe_srq_next_seg);
    uint32_t pdn = b.pdn, key;
    struct srq *srq;

    ck_assert_int_eq(pd_alloc(&b.hca, 0, &attr.pdn), SYN_OK);
    ck_assert(mem_buf_init(&attr.buf, mtt, 0, 4096));
    mtt_unref(mtt);
    attr.dbr = fake_host_alloc(&b.host, 8, 8);
    ck_assert_int_eq(srq_create(&b.hca, &attr, &srq), SYN_OK);
    b.pdn = key_pdn ? key_pdn : attr.pdn;
    key = bench_mkey(&b, mem, 64 << 10, ALL_RIGHTS);
    b.pdn = pdn;
    PRM_SET(wqe_srq_next_seg, slot, next_wqe_index, 1);
    PRM_SET(wqe_data_seg, seg, byte_count, bytes);
    PRM_SET(wqe_data_seg, seg, lkey, key);
    PRM_SET(wqe_data_seg, seg, addr, mem);
    PRM_SET(wqe_data_seg, seg + 16, lkey, WQE_TERMINATOR_LKEY);
    PRM_SET(srq_dbr, fake_host_ptr(&b.host, attr.dbr, 4), counter, 1);
    setup_attr(
        &(struct bench_qp_attr){.st = st, .log_rra_max = 2, .srqn = srq->obj.num, .qkey = 0x1234});
}

/* The keys of receives are checked against the PD of the queue that they are in (IBTA 10.2.3.1). */
START_TEST(receive_keys_are_of_the_srqs_domain)
{
    srq_qp(PRM_QP_ST_RC, 0, 1000);
    rx_send(BTH_SEND_ONLY, 0, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 10);
    expect_ack(ACK, 0, 1);
    ck_assert_mem_eq(at(mem, 10), data, 10);
}
END_TEST

START_TEST(receive_keys_of_the_qps_domain_are_not_the_srqs)
{
    srq_qp(PRM_QP_ST_RC, b.pdn, 1000);
    rx_send(BTH_SEND_ONLY, 0, 10);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_ack(NAK_OP, 0, 0);
}
END_TEST

/* The rkeys of requests are still checked against the QP's PD. */
START_TEST(remote_keys_are_of_the_qps_domain)
{
    struct roce_packet pkt;

    srq_qp(PRM_QP_ST_RC, 0, 1000);
    pkt = rdma(BTH_WRITE_ONLY_IMM, 0, all, 4);
    bench_rx(&b, &pkt, data, 4);
    expect_cqe(PRM_CQE_OPCODE_RESP_WR_IMM, 4);
    expect_ack(ACK, 0, 1);
}
END_TEST

static void rx_datagram(size_t len)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_UD | BTH_SEND_ONLY, 0);

    pkt.deth.qkey = 0x1234;
    pkt.deth.src_qp = BENCH_PEER_QPN;
    bench_rx(&b, &pkt, data, len);
}

START_TEST(datagrams_too_use_the_srqs_domain)
{
    srq_qp(PRM_QP_ST_UD, 0, 1000);
    rx_datagram(10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 40 + 10);
}
END_TEST

/* IBTA 9.9.3, class E: a WQE of an SRQ is not kept for the QP's next datagram. */
START_TEST(a_datagram_longer_than_an_srqs_buffer_ends_the_qp)
{
    srq_qp(PRM_QP_ST_UD, 0, 49);
    rx_datagram(10);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    expect_state(PRM_QP_STATE_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("responder-faults");
    TCase *tc = tcase_create("rc");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_ack_of_a_duplicate_leaves_a_waiting_nak_alone);
    tcase_add_test(tc, the_ack_of_a_duplicate_leaves_a_waiting_rnr_nak_alone);
    tcase_add_test(tc, the_ack_of_the_missing_request_replaces_its_nak);
    tcase_add_test(tc, a_send_that_arrives_while_a_read_fails_is_flushed);
    tcase_add_test(tc, without_a_source_address_no_answer_is_sent);
    tcase_add_test(tc, a_duplicate_read_whose_key_is_gone_is_dropped);
    tcase_add_test(tc, a_duplicate_read_whose_key_goes_is_not_ended);
    tcase_add_test(tc, a_duplicate_read_of_another_qps_window_is_dropped);
    tcase_add_test(tc, a_duplicate_is_of_the_newest_request_of_its_psn);
    tcase_add_test(tc, a_message_whose_completion_is_lost_is_not_acknowledged);
    tcase_add_test(tc, a_write_with_immediate_and_a_bad_key_completes_its_receive);
    tcase_add_test(tc, a_long_write_with_a_bad_key_has_taken_no_receive);
    tcase_add_test(tc, a_qp_of_no_atomic_mode_answers_no_atomics);
    tcase_add_loop_test(tc, an_invalidation_that_is_not_allowed_stops_the_qp_without_an_answer, 0,
                        INVALID_KEYS);
    tcase_add_test(tc, receive_keys_are_of_the_srqs_domain);
    tcase_add_test(tc, receive_keys_of_the_qps_domain_are_not_the_srqs);
    tcase_add_test(tc, remote_keys_are_of_the_qps_domain);
    tcase_add_test(tc, datagrams_too_use_the_srqs_domain);
    tcase_add_test(tc, a_datagram_longer_than_an_srqs_buffer_ends_the_qp);
    suite_add_tcase(s, tc);
    return s;
}
