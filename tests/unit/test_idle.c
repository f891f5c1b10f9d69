/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what QPs share: a QP needs some memory only while it is at work, and then another QP uses
 * it. No program may notice. Also tests WQEs of the device's own, in addition to the guest's.
 */
#include "model/core/work.h"
#include "model/rdma/rdma.h"
#include "model/rdma/wqe_source.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MANY 40
#define LONG 8192 /* bytes of a message of several packets */

static struct lab_qp as[MANY], bs[MANY];

static void pairs(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        lab_rc_pair(lab, &as[i], &bs[i], &lab_path);
    }
}

/* -- memory ------------------------------------------------------------------------------------ */

/* docs/explanation/performance.md promises this. */
START_TEST(an_idle_rc_qp_takes_a_kibibyte_at_most)
{
    struct lab_qp_attr no_rings = lab_rc;
    uint64_t before;
    struct lab_qp qp;

    no_rings.log_sq = no_rings.log_rq = 0; /* their page lists do not count */
    lab_qp_new(left, &no_rings, &qp);
    before = left->hca.memory.used;
    lab_qp_new(left, &no_rings, &qp);
    ck_assert_uint_le(left->hca.memory.used - before - sizeof(struct mtt) - 8, 1024);
}
END_TEST

START_TEST(a_qp_that_was_at_work_keeps_nothing_of_it_from_the_next)
{
    uint64_t addr = lab_mem(left, 64, 1), used;

    pairs(MANY);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            struct lab_wr wr = send_wr(addr, 64);

            lab_post_recv(&bs[i], lab_mem(right, 64, 0), 64);
            lab_post(&as[i], &wr);
            lab_run(lab);
            expect_sent(PRM_WQE_OPCODE_SEND, (uint16_t)round);
            expect_received(64);
        }
        if (round == 0) {
            used = left->hca.memory.used;
        }
    }
    ck_assert_uint_eq(left->hca.memory.used, used);
    ck_assert_uint_le(left->hca.rdma->flights.all->len, FLIGHTS_LEAST);
}
END_TEST

/* All QPs are at work at the same time, as far as there is memory; the others wait, and are
 * served. */
START_TEST(qps_without_memory_for_their_flight_wait)
{
    uint64_t addr = lab_mem(left, 64, 1);

    pairs(MANY);
    left->hca.memory.limit = left->hca.memory.used;
    for (unsigned i = 0; i < MANY; i++) {
        struct lab_wr wr = send_wr(addr, 64);

        lab_post_recv(&bs[i], lab_mem(right, 64, 0), 64);
        lab_post(&as[i], &wr);
    }
    lab_run(lab);
    lab_advance(lab, 1000 * LAB_MS);
    ck_assert_uint_eq(left->hca.rdma->flights.all->len, FLIGHTS_LEAST);
    for (unsigned i = 0; i < MANY; i++) {
        expect_sent(PRM_WQE_OPCODE_SEND, 0);
        expect_received(64);
    }
}
END_TEST

/* Other QPs use a queue's memory, and the queue needs it again. What it then waits for is the
 * answer to its later sends, for the whole of its ACK timeout. */
START_TEST(a_queue_that_idled_waits_as_long_as_ever)
{
    uint64_t addr = lab_mem(left, 64, 1);
    struct lab_wr wr = send_wr(addr, 64);
    struct lab_path path = lab_path;
    struct lab_qp idle, peer;

    path.retry_count = 0;
    lab_rc_pair(lab, &idle, &peer, &path);
    pairs(MANY);
    lab_post_recv(&peer, lab_mem(right, 64, 0), 64);
    lab_post(&idle, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(64);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS / 2);
    for (unsigned i = 0; i < MANY && idle.qp->req.flight; i++) {
        lab_post_recv(&bs[i], lab_mem(right, 64, 0), 64);
        lab_post(&as[i], &wr);
        lab_run(lab);
        expect_sent(PRM_WQE_OPCODE_SEND, 0);
        expect_received(64);
    }
    ck_assert_ptr_null(idle.qp->req.flight);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS / 2 - 1000);
    lab->tap = drop_all;
    lab_post_recv(&peer, lab_mem(right, 64, 0), 64);
    lab_post(&idle, &wr);
    lab_advance(lab, LAB_ACK_TIMEOUT_NS - 1000);
    ck_assert_uint_eq(idle.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(qp_counters(idle.qp)->local_ack_timeout_err, 0);
    lab_advance(lab, 2000);
    expect_error(PRM_WQE_OPCODE_SEND, 1, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}
END_TEST

/* A READ is treated as lost while there is no memory to answer it, and is repeated. */
START_TEST(a_read_waits_for_memory)
{
    uint64_t addr = lab_mem(left, 64, 0), raddr = lab_mem(right, 64, 1);
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, addr, 64, raddr);

    right->hca.memory.limit = right->hca.memory.used;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_none(left);
    right->hca.memory.limit = UINT64_MAX;
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_READ, 0);
    same(addr, raddr, 64);
}
END_TEST

/* -- the wire ---------------------------------------------------------------------------------- */

#define MIB (1u << 20)

/* Returns the longest wait of QP i for its first packet from a side, from a packet of the trace on:
 * the number of other packets before it. */
static unsigned packets_before(unsigned from, uint32_t dest_qp, unsigned start)
{
    unsigned before = 0;

    for (unsigned i = start; i < lab->num_packets; i++) {
        const struct lab_packet *p = &lab->trace[i];

        if (p->from == from && p->pkt.dest_qp == dest_qp) {
            return before;
        }
        before += p->from == from;
    }
    return UINT_MAX;
}

/* READ data of others is sent a burst at a time, whatever the credit on the wire. */
START_TEST(an_ack_is_not_behind_all_the_data_of_reads)
{
    const unsigned reads = 8;
    uint64_t addr = lab_mem(left, 64, 1), to = lab_mem(left, MIB, 0), from = lab_mem(right, MIB, 3);
    struct lab_wr wr = send_wr(addr, 64), read = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, to, MIB, from);

    pairs(reads + 1);
    for (unsigned i = 1; i <= reads; i++) {
        lab_post(&as[i], &read);
    }
    lab_post_recv(&bs[0], lab_mem(right, 64, 0), 64);
    lab_post(&as[0], &wr);
    lab_run(lab);
    ck_assert_uint_le(packets_before(1, as[0].qp->obj.num, 0), reads * 16);
}
END_TEST

/* The same for an ACK that becomes due while a READ's data fills the wire all the time. */
START_TEST(an_ack_is_not_behind_the_rest_of_a_read)
{
    const uint32_t len = 12 * MIB;
    uint64_t addr = lab_mem(left, 64, 1), to = lab_mem(left, len, 0), from = lab_mem(right, len, 3);
    struct lab_wr wr = send_wr(addr, 64), read = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, to, len, from);
    unsigned start = 0;

    pairs(2);
    lab_post(&as[1], &read);
    lab_post_recv(&bs[0], lab_mem(right, 64, 0), 64);
    while (hca_work_pending(&left->hca) || hca_work_pending(&right->hca) || !start ||
           lab->num_packets < start + 4000) {
        for (unsigned i = 0; i < 2; i++) {
            hca_run(&lab->side[i].hca, LAB_BUDGET);
            wire_poll(lab->mid[i], 64);
            lab->side[i].host.now += 100000;
        }
        if (!start && lab->num_packets > 2000) {
            lab_post(&as[0], &wr);
            start = lab->num_packets;
        }
    }
    ck_assert_uint_eq(as[0].qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(qp_counters(as[0].qp)->local_ack_timeout_err, 0);
    ck_assert_uint_le(packets_before(1, as[0].qp->obj.num, start), 600);
}
END_TEST

/* Returns the most consecutive packets of one QP that a side sends while another QP has something
 * to send. */
static unsigned longest_run(unsigned from)
{
    unsigned run = 0, longest = 0;
    uint32_t last = 0;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        const struct lab_packet *p = &lab->trace[i];

        if (p->from == from) {
            run = p->pkt.dest_qp == last ? run + 1 : 1;
            last = p->pkt.dest_qp;
            longest = MAX(longest, run);
        }
    }
    return longest;
}

/* QPs with much to send take turns, however little room there is: no QP sends more than two bursts
 * in a row, the second because what it waited for came first. */
START_TEST(large_writes_take_turns)
{
    uint64_t from = lab_mem(left, MIB, 1), to = lab_mem(right, MIB, 0);
    struct lab_wr write = rdma_wr(PRM_WQE_OPCODE_RDMA_WRITE, from, MIB, to);

    pairs(4);
    for (unsigned i = 0; i < 4; i++) {
        lab_post(&as[i], &write);
    }
    lab_run(lab);
    for (unsigned i = 0; i < 4; i++) {
        expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    }
    ck_assert_uint_le(longest_run(0), 32);
}
END_TEST

/* -- lines ------------------------------------------------------------------------------------- */

/* Messages of many packets, of more QPs than there are lines, all under way at a time. */
START_TEST(messages_of_many_qps_come_bit_by_bit)
{
    const uint32_t len = 100000;
    uint64_t from[MANY], to[MANY];

    pairs(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        struct lab_wr wr;

        from[i] = lab_mem(left, len, i + 1);
        to[i] = lab_mem(right, len, 0);
        if (_i == 0) {
            wr = send_wr(from[i], len);
            lab_post_recv(&bs[i], to[i], len);
        } else {
            wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, from[i], len, to[i]);
            memset(lab_ptr(right, to[i], len), (int)i + 1, len);
        }
        lab_post(&as[i], &wr);
    }
    lab_run(lab);
    for (unsigned i = 0; i < MANY; i++) {
        same(from[i], to[i], len);
    }
}
END_TEST

static bool only_first(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return from == 1 || pkt->psn == lab_path.psn;
}

/* The first packet of a SEND has arrived, and another QP has taken the line since. */
static void half_a_message(uint64_t addr)
{
    struct lab_wr wr = send_wr(addr, LONG);

    lab->tap = only_first;
    lab_post(&a, &wr);
    lab_run(lab);
    lab->tap = NULL;
    for (unsigned i = 0; i < WQE_LINES; i++) {
        right->hca.rdma->lines.recv[i].peer = NULL;
    }
}

/* The receive WQE of an incomplete message is read again after another QP took its line; it must
 * not have changed. */
START_TEST(a_receive_wqe_that_changed_meanwhile_ends_the_qp)
{
    struct prm_wqe_data_seg *seg;

    lab_post_recv(&b, lab_mem(right, LONG, 0), LONG);
    half_a_message(lab_mem(left, LONG, 1));
    seg = lab_ptr(right, b.rq_ring, 16);
    PRM_SET(wqe_data_seg, seg, byte_count, LONG - 8);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_REMOTE_OP_ERR);
    expect_cqe(right, PRM_CQE_OPCODE_RESP_ERR, 0, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

START_TEST(a_receive_wqe_is_read_again_from_its_slot)
{
    uint64_t addr = lab_mem(left, LONG, 1), to = lab_mem(right, LONG, 0);

    lab_post_recv(&b, to, LONG);
    lab_post_recv(&b, lab_mem(right, LONG, 0), LONG);
    half_a_message(addr);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    same(addr, to, LONG);
}
END_TEST

/* There are more queues with new WQEs than BlueFlame lines: WQEs that lost their line are in the
 * ring. */
START_TEST(a_wqe_that_lost_its_blueflame_line_is_in_the_ring)
{
    uint8_t from_ring[64], line[64], got[64];

    pairs(BLUEFLAME_LINES + 1);
    memset(line, 0x5a, sizeof(line));
    for (unsigned i = 0; i <= BLUEFLAME_LINES; i++) {
        memset(lab_ptr(left, as[i].sq_ring, 64), 0x11, 64);
        blueflame_fill(&left->hca, &as[i].qp->sq, 0, line, sizeof(line));
    }
    memset(from_ring, 0x11, sizeof(from_ring));
    ck_assert(wq_read(&left->hca, &as[0].qp->sq, 0, got, sizeof(got)));
    ck_assert_mem_eq(got, from_ring, sizeof(got));
    ck_assert(wq_read(&left->hca, &as[1].qp->sq, 0, got, sizeof(got)));
    ck_assert_mem_eq(got, line, sizeof(got));
    ck_assert_int_eq(qp_destroy(&left->hca, 0, as[1].qp->obj.num), SYN_OK);
    blueflame_fill(&left->hca, &as[0].qp->sq, 0, line, sizeof(line));
    ck_assert(wq_read(&left->hca, &as[0].qp->sq, 0, got, sizeof(got)));
    ck_assert_mem_eq(got, line, sizeof(got));
}
END_TEST

/* -- WQEs of the device ------------------------------------------------------------------------ */

#define OWN_READS 4

/* READs that a device makes by itself to fetch data, as rendezvous does. */
struct own_reads {
    struct wqe_source source;
    uint64_t va, raddr;
    uint32_t len;
    unsigned ended;
    uint8_t syndrome;
};

static uint8_t own_fetch(struct wqe_source *source, struct qp *qp, uint16_t index,
                         struct send_wqe *wqe)
{
    struct own_reads *own = (struct own_reads *)source;

    memset(wqe, 0, offsetof(struct send_wqe, sge));
    wqe->op = &send_ops[PRM_WQE_OPCODE_RDMA_READ];
    wqe->opcode = PRM_WQE_OPCODE_RDMA_READ;
    wqe->index = index;
    wqe->num_bb = 1;
    wqe->raddr = own->raddr + (uint64_t)index * own->len;
    wqe->rkey = right->key;
    wqe->sge[0] = (struct sge){
        .va = own->va + (uint64_t)index * own->len, .len = own->len, .lkey = left->key};
    wqe->inl[0] = NULL;
    wqe->num_sge = 1;
    wqe->len = own->len;
    return 0;
}

static void own_ended(struct wqe_source *source, struct qp *qp, uint16_t index, uint8_t syndrome)
{
    struct own_reads *own = (struct own_reads *)source;

    ck_assert_uint_eq(index, own->ended++);
    own->syndrome = syndrome;
}

static const struct wqe_source_ops own_ops = {.fetch = own_fetch, .ended = own_ended};

static struct own_reads own_reads(uint32_t len)
{
    return (struct own_reads){
        .source = {.ops = &own_ops, .end = OWN_READS},
        .va = lab_mem(left, OWN_READS * len, 0),
        .raddr = lab_mem(right, OWN_READS * len, 7),
        .len = len,
    };
}

/* They start before the guest's WQEs, and have no CQE. */
START_TEST(the_device_reads_by_itself_beside_the_guests_wqes)
{
    struct own_reads own = own_reads(3000);
    uint64_t addr = lab_mem(left, 64, 1), to = lab_mem(right, 64, 0);
    struct lab_wr wr = send_wr(addr, 64);

    if (_i == 1) {
        lose_psn(1, 3, 1); /* a response: the READ is repeated from its source */
    }
    lab_post_recv(&b, to, 64);
    lab_write_wqe(&a, &wr);
    wqe_source_attach(a.qp, &own.source);
    lab_ring(&a);
    lab_run(lab);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(own.ended, OWN_READS);
    ck_assert_uint_eq(own.syndrome, 0);
    same(own.va, own.raddr, OWN_READS * 3000);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_none(left);
    expect_received(64);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_RC | BTH_READ_REQUEST);
}
END_TEST

/* A QP that enters ERR ends them all: their owner is notified. */
START_TEST(the_devices_wqes_are_flushed_with_the_queue)
{
    struct own_reads own = own_reads(64);

    lab->tap = drop_responses;
    wqe_source_attach(a.qp, &own.source);
    lab_run(lab);
    ck_assert_uint_eq(own.ended, 0);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    ck_assert_uint_eq(own.ended, OWN_READS);
    ck_assert_uint_eq(own.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_none(left);
}
END_TEST

/* -- machines ---------------------------------------------------------------------------------- */

static void whole_table(const struct machine *m, unsigned n_states)
{
    for (unsigned state = 0; state < n_states; state++) {
        ck_assert_ptr_nonnull(m->states[state]);
        for (unsigned event = 0; event < m->n_events; event++) {
            uint8_t next = m->next[state * m->n_events + event];

            ck_assert_ptr_nonnull(m->events[event]);
            ck_assert(next == MACHINE_IGNORES || next < n_states);
        }
    }
}

START_TEST(every_state_has_an_action_for_each_event)
{
    whole_table(&responder_machine, RESPONDER_FAILED + 1);
    whole_table(&requester_queue_machine, QUEUE_RESUMING + 1);
    whole_table(&requester_recovery_machine, RECOVERY_RNR_WAIT + 1);
}
END_TEST

static bool went_back, came_on;

static void note_line(void *host, enum hca_log_level level, const char *line)
{
    went_back |= strstr(line, "recovery: none -> went back (NAK)") != NULL;
    came_on |= strstr(line, "recovery: went back -> none (progress)") != NULL;
}

START_TEST(a_change_of_state_is_traced_by_name)
{
    uint64_t addr = lab_mem(left, LONG, 1), to = lab_mem(right, LONG, 0);
    static struct hca_host_ops ops;

    ops = *left->hca.ops;
    ops.log = note_line;
    left->hca.ops = &ops;
    left->hca.tracing = true;
    lose_psn(0, 0, 1); /* the second packet shows the gap */
    write_from(addr, LONG, to);
    lab_run(lab);
    same(addr, to, LONG);
    ck_assert(went_back);
    ck_assert(came_on);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("idle");
    TCase *tc = tcase_create("pair"), *bare = tcase_create("bare");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_read_waits_for_memory);
    tcase_add_test(tc, a_receive_wqe_that_changed_meanwhile_ends_the_qp);
    tcase_add_test(tc, a_receive_wqe_is_read_again_from_its_slot);
    tcase_add_loop_test(tc, the_device_reads_by_itself_beside_the_guests_wqes, 0, 2);
    tcase_add_test(tc, the_devices_wqes_are_flushed_with_the_queue);
    tcase_add_test(tc, every_state_has_an_action_for_each_event);
    tcase_add_test(tc, a_change_of_state_is_traced_by_name);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(bare, setup_bare, teardown);
    tcase_add_test(bare, an_idle_rc_qp_takes_a_kibibyte_at_most);
    tcase_add_test(bare, a_qp_that_was_at_work_keeps_nothing_of_it_from_the_next);
    tcase_add_test(bare, a_queue_that_idled_waits_as_long_as_ever);
    tcase_add_test(bare, an_ack_is_not_behind_all_the_data_of_reads);
    tcase_add_test(bare, an_ack_is_not_behind_the_rest_of_a_read);
    tcase_add_test(bare, large_writes_take_turns);
    tcase_add_test(bare, qps_without_memory_for_their_flight_wait);
    tcase_add_loop_test(bare, messages_of_many_qps_come_bit_by_bit, 0, 2);
    tcase_add_test(bare, a_wqe_that_lost_its_blueflame_line_is_in_the_ring);
    suite_add_tcase(s, bare);
    return s;
}
