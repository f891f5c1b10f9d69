/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that a turn is bounded, whatever waits, and that everybody gets turns (model/card/turn.c):
 * pieces are counted, frames and the rest each have a share, timers come after the frames that may
 * stop them.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/mkey.h"
#include "model/queue/q_counter.h"
#include "model/queue/uar.h"
#include "model/rdma/flight.h"
#include "prm/prm.h"
#include "tests/unit/lab.h"
#include "tests/unit/suite.h"

#define BUDGET 64 /* pieces of a turn that a test takes itself */
#define BATCH  8  /* frames that are taken before their cost is checked */
#define BYTES  4096

/* The cost of a packet of BYTES bytes whose memory is a key of ranges of one byte: a look at each
 * range and a call of the host for each; plus the rest of a packet's cost. */
#define WORST_PACKET (2 * BYTES + 32)

static struct lab *lab;
static struct lab_side *left, *right;
static struct lab_qp a, b;

static void setup(void)
{
    struct lab_path path = lab_path;

    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    path.mtu = PRM_QP_MTU_4096;
    lab_rc_pair(lab, &a, &b, &path);
}

static void teardown(void)
{
    lab_free(lab);
}

static void write_from(uint64_t src, uint32_t key, uint64_t dst, uint32_t rkey, uint32_t len)
{
    lab_post(&a, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                                  .sge = {{src, len, key}},
                                  .num_sge = 1,
                                  .raddr = dst,
                                  .rkey = rkey});
}

/* -- bounds ------------------------------------------------------------------------------------ */

START_TEST(gathering_crumbs_ends_a_turn_after_a_packet)
{
    uint64_t src = lab_mem(left, BYTES, 3), dst = lab_mem(right, BYTES, 0);
    uint32_t key = lab_crumbs(left, src, BYTES, 0);

    for (unsigned i = 0; i < 10; i++) {
        write_from(0, key, dst, right->key, BYTES);
    }
    lab_run(lab);
    ck_assert_mem_eq(lab_ptr(left, src, BYTES), lab_ptr(right, dst, BYTES), BYTES);
    ck_assert_uint_gt(left->hca.most_pieces, BYTES);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + WORST_PACKET);
}
END_TEST

START_TEST(scattering_crumbs_ends_a_turn_after_a_batch)
{
    uint64_t src = lab_mem(left, BYTES, 3), dst = lab_mem(right, BYTES, 0);
    uint32_t rkey = lab_crumbs(right, dst, BYTES, 0);

    for (unsigned i = 0; i < 40; i++) {
        write_from(src, 0, 0, rkey, BYTES);
    }
    lab_run(lab);
    ck_assert_mem_eq(lab_ptr(left, src, BYTES), lab_ptr(right, dst, BYTES), BYTES);
    ck_assert_uint_gt(right->hca.most_pieces, BYTES);
    ck_assert_uint_le(right->hca.most_pieces, LAB_BUDGET + BATCH * WORST_PACKET);
}
END_TEST

/* -- UMR: translation entries that lie in memory in ranges of one byte ---------------------------
 */

#define UMR_BYTES (8 * BYTES) /* bytes of entries */
#define UMR_PAGES (UMR_BYTES / 8)

/* The cost of a part, and of the key's change with the last part. */
#define WORST_UMR (WORST_PACKET + UMR_PAGES / HCA_PIECE_ENTRIES)

/* A QP of service type REG_UMR in RTS. */
static void umr_qp(struct lab_qp *umr)
{
    struct lab_qp_attr attr = {.st = PRM_QP_ST_REG_UMR, .log_sq = 5, .no_rq = true};

    lab_qp_new(left, &attr, umr);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_RST2INIT_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_INIT2RTR_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_RTR2RTS_QP, NULL, 0, NULL), SYN_OK);
}

/* Posts a UMR that leads all pages of a key to the one at page; returns the key. */
static uint32_t post_umr(struct lab_qp *umr, uint64_t page)
{
    uint64_t entries = lab_mem(left, UMR_BYTES, 0);
    uint32_t key = lab_mr(left, lab_mem(left, BYTES, 0) & ~4095ull, 4096ull * UMR_PAGES, 1);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR, .imm = key};
    void *wqe = lab_write_wqe(umr, &wr);

    for (unsigned i = 0; i < UMR_PAGES; i++) {
        prm_store64((uint8_t *)lab_ptr(left, entries, UMR_BYTES) + 8 * i, page | 3);
    }
    umr->sq_pi = 4;
    PRM_SET(wqe_ctrl_seg, wqe, ds, 16);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, xlt_octowords, UMR_BYTES / 16);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, mkey_mask, 1ull << PRM_MKEY_MASK_START_ADDR);
    PRM_SET(mkc, wqe + 64, mkey_7_0, key & 0xff);
    for (unsigned i = 0; i < UMR_BYTES / BYTES; i++) {
        struct prm_wqe_data_seg *seg = wqe + 128 + 16 * i;

        PRM_SET(wqe_data_seg, seg, byte_count, BYTES);
        PRM_SET(wqe_data_seg, seg, lkey, lab_crumbs(left, entries + i * BYTES, BYTES, 0));
        PRM_SET(wqe_data_seg, seg, addr, 0);
    }
    lab_ring(umr);
    return key;
}

START_TEST(umr_from_crumbs_is_read_over_several_turns)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0), byte = 0;
    uint64_t page = fake_host_alloc(&left->host, 4096, 4096);
    struct lab_cqe cqe;
    struct lab_qp umr;
    uint32_t key;

    umr_qp(&umr);
    key = post_umr(&umr, page);
    for (unsigned i = 0; i < 3; i++) {
        write_from(src, 0, dst, right->key, 64);
    }
    lab_run(lab);
    ck_assert_uint_gt(left->hca.most_pieces, BYTES);
    ck_assert_uint_le(left->hca.most_pieces, LAB_BUDGET + WORST_UMR);
    for (unsigned i = 0; i < 3; i++) { /* a request that was posted later did not wait for it */
        ck_assert(lab_poll(left, &cqe));
        ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_RDMA_WRITE);
    }
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_UMR);
    memcpy(lab_ptr(left, page + 40, 8), "in place", 8);
    ck_assert_int_eq(mkey_read(&left->hca, key, left->pdn, 4096ull * (UMR_PAGES - 1) + 40, &byte, 8,
                               MEM_LOCAL_READ),
                     MEM_OK);
    ck_assert_mem_eq(&byte, "in place", 8);
}
END_TEST

static void to_err(struct lab_qp *qp)
{
    struct lab_cqe cqe;

    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_2ERR_QP, NULL, 0, NULL), SYN_OK);
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_UMR);
}

static void to_rst(struct lab_qp *qp)
{
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
}

static void destroy(struct lab_qp *qp)
{
    ck_assert_int_eq(qp_destroy(&left->hca, 0, qp->qp->obj.num), SYN_OK);
}

static void unreadable(struct lab_qp *qp)
{
    struct lab_cqe cqe;

    OBJ_TABLE_FOREACH (obj, &left->hca.mkeys) { /* the unread rest is gone */
        mkey_invalidate(&left->hca, obj->num << 8 | 0x42, left->pdn, false);
    }
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(qp->qp->state, PRM_QP_STATE_ERR);
}

static void (*const umr_ends[])(struct lab_qp *qp) = {to_err, to_rst, destroy, unreadable};

/* What was read of a UMR is freed with its queue, and the key stays unchanged. */
START_TEST(half_a_umr_leaves_nothing_behind)
{
    uint64_t used, qp_bytes;
    struct lab_cqe cqe;
    struct lab_qp umr;
    uint32_t key;

    ck_assert(flight_reserve(&left->hca));
    used = left->hca.memory.used;
    umr_qp(&umr);
    qp_bytes = left->hca.memory.used - used;
    key = post_umr(&umr, 0);
    used = left->hca.memory.used;
    for (unsigned i = 0; i < 3; i++) {
        hca_run(&left->hca, BUDGET);
    }
    ck_assert_uint_gt(left->hca.memory.used, used);
    umr_ends[_i](&umr);
    lab_run(lab);
    ck_assert_uint_eq(left->hca.memory.used, used - (umr_ends[_i] == destroy ? qp_bytes : 0));
    ck_assert(!lab_poll(left, &cqe));
    if (umr_ends[_i] != unreadable) {
        ck_assert_int_eq(mkey_check(&left->hca, key, left->pdn, 0, 8, MEM_LOCAL_READ),
                         MEM_BAD_BOUNDS);
    }
}
END_TEST

static unsigned fired;

static void count(struct hca *hca, struct hca_timer *timer)
{
    (void)hca;
    (void)timer;
    fired++;
}

START_TEST(timers_that_expire_together_fire_over_several_turns)
{
    struct hca_timer *timers = g_new0(struct hca_timer, 1000);
    unsigned turns = 0;

    for (unsigned i = 0; i < 1000; i++) {
        timers[i].fire = count;
        hca_timer_set(&left->hca, &timers[i], 2000);
    }
    left->host.now = 3000;
    while (fired < 1000) {
        unsigned before = fired;

        hca_run(&left->hca, BUDGET);
        ck_assert_uint_gt(fired, before);
        ck_assert_uint_le(fired - before, BUDGET / 8);
        ck_assert(fired == 1000 || left->host.deadline == 2000);
        turns++;
    }
    ck_assert_uint_ge(turns, 1000 / (BUDGET / 8));
    g_free(timers);
}
END_TEST

static uint64_t *contended;

/* A CPU that changes the word each time the device has read it. */
static void change_word(void *opaque, enum fake_call call)
{
    (void)opaque;
    if (call == FAKE_ATOMIC) {
        ++*contended;
    }
}

static uint64_t fetch_and_add_from_left(uint64_t add)
{
    uint64_t src = lab_mem(left, 8, 0), dst = lab_mem(right, 8, 0);

    contended = lab_ptr(right, dst, 8);
    *contended = 5;
    lab_post(&a, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_ATOMIC_FA,
                                  .sge = {{src, 8, 0}},
                                  .num_sge = 1,
                                  .raddr = dst,
                                  .rkey = right->key,
                                  .swap_add = add});
    lab_run(lab);
    return src;
}

/* An addition is one call of the host, so no CPU comes in between. */
START_TEST(fetch_and_add_never_waits_for_a_cpu_that_changes_the_word)
{
    struct lab_cqe cqe;
    uint64_t src;

    right->host.hook = change_word;
    src = fetch_and_add_from_left(1000000);
    right->host.hook = NULL;
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(*(uint64_t *)lab_ptr(left, src, 8), 5);
    ck_assert_uint_eq(*contended, 1000006);
}
END_TEST

/* If the host could not perform an atomic because of its CPUs, the request is treated as lost, and
 * executed when it is repeated. */
START_TEST(atomic_that_lost_to_cpus_is_done_when_it_is_asked_for_again)
{
    struct lab_cqe cqe;

    right->host.atomics_lose = true;
    fetch_and_add_from_left(1000000);
    ck_assert(!lab_poll(left, &cqe));
    ck_assert_uint_eq(*contended, 5);
    ck_assert_uint_eq(b.qp->state, PRM_QP_STATE_RTS);
    right->host.atomics_lose = false;
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(*contended, 1000005);
}
END_TEST

static uint64_t changed_meanwhile(const void *with, uint64_t held)
{
    (void)with;
    ++*contended;
    return held + 1000;
}

/* An operation that a CPU can interrupt is tried for a limited time. */
START_TEST(computed_atomic_that_never_wins_ends_and_leaves_the_word_to_the_cpu)
{
    struct host_atomic op = {.kind = HOST_ATOMIC_COMPUTE, .compute = changed_meanwhile};
    uint64_t word = 0;

    contended = &word;
    host_atomic_do(&word, sizeof(word), &op);
    ck_assert(op.lost);
    ck_assert_uint_eq(word, HOST_ATOMIC_TRIES);
}
END_TEST

/* What ends with a CQ ends over several turns. */
START_TEST(failing_cq_takes_its_qps_down_over_several_turns)
{
    enum {
        QPS = 200
    };
    struct lab_qp_attr attr = lab_rc;
    uint64_t ring, dbr;
    struct lab_qp *qps = g_new0(struct lab_qp, QPS);
    unsigned left_up = QPS, after_first = 0, turns = 0;

    attr.cqn = lab_cq_new(left, 0, &ring, &dbr);
    for (unsigned i = 0; i < QPS; i++) {
        lab_qp_new(left, &attr, &qps[i]);
        ck_assert_int_eq(lab_modify(&qps[i], PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, &b), SYN_OK);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct prm_cqe64 image[1] = {0};

        cq_post(&left->hca, cq_find(&left->hca, attr.cqn), image, false);
    }
    while (left_up) {
        hca_run(&left->hca, BUDGET);
        left_up = 0;
        for (unsigned i = 0; i < QPS; i++) {
            left_up += qps[i].qp->state != PRM_QP_STATE_ERR;
        }
        after_first = turns++ ? after_first : left_up;
        ck_assert_uint_lt(turns, 10 * QPS);
    }
    ck_assert_uint_gt(after_first, 0);
    ck_assert_uint_lt(after_first, QPS);
    ck_assert_uint_le(left->hca.most_pieces, 2 * BUDGET);
    g_free(qps);
}
END_TEST

/* -- shares ------------------------------------------------------------------------------------ */

/* A cable whose frames never end. */
static uint8_t *flood_reserve(struct wire_port *port, size_t len)
{
    static uint8_t room[WIRE_FRAME_MAX];

    (void)port;
    return len <= sizeof(room) ? room : NULL;
}

static unsigned flood_sent;

static void flood_commit(struct wire_port *port, size_t len, unsigned flags)
{
    (void)port;
    (void)flags;
    flood_sent += len > 0;
}

static unsigned flood_poll(struct wire_port *port, unsigned max)
{
    static const uint8_t frame[64] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 9, 0x08, 0x06};

    for (unsigned i = 0; i < max; i++) {
        port->client->rx(port->opaque, frame, sizeof(frame), 0);
    }
    return max;
}

static bool flood_link_up(struct wire_port *port)
{
    (void)port;
    return true;
}

static void flood_close(struct wire_port *port)
{
    (void)port;
}

static const struct wire_port_ops flood_ops = {
    .tx_reserve = flood_reserve,
    .tx_commit = flood_commit,
    .poll = flood_poll,
    .link_up = flood_link_up,
    .close = flood_close,
};

START_TEST(endless_frames_do_not_keep_the_device_from_sending)
{
    struct wire_port flood = {.ops = &flood_ops}, *cable = left->hca.vport->uplink->wire;
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct hca_timer timer = {.fire = count};

    port_set_wire(&left->hca, &flood);
    hca_timer_set(&left->hca, &timer, 2000);
    left->host.now = 3000;
    write_from(src, 0, dst, right->key, 64);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t before = traffic_frames(&left->hca.vport->counters.rx);

        ck_assert(hca_run(&left->hca, BUDGET));
        ck_assert_uint_gt(traffic_frames(&left->hca.vport->counters.rx), before);
        ck_assert_uint_le(traffic_frames(&left->hca.vport->counters.rx) - before, BUDGET);
    }
    ck_assert_uint_eq(flood_sent, 1);
    ck_assert_uint_eq(fired, 1); /* timers wait for frames, but not for ever */
    port_set_wire(&left->hca, cable);
}
END_TEST

/* A host that got no processor for longer than the ACK timeout finds the ACK in its ring. */
START_TEST(acknowledgement_in_the_ring_is_seen_before_the_timeout)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_cqe cqe;

    write_from(src, 0, dst, right->key, 64);
    hca_run(&left->hca, BUDGET);
    wire_poll(lab->mid[0], 64);
    hca_run(&right->hca, BUDGET);
    hca_run(&right->hca, BUDGET);
    wire_poll(lab->mid[1], 64);
    left->host.now += 10 * LAB_ACK_TIMEOUT_NS;
    right->host.now += 10 * LAB_ACK_TIMEOUT_NS;
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 1);
    ck_assert_uint_eq(qp_counters(a.qp)->local_ack_timeout_err, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("turns");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, gathering_crumbs_ends_a_turn_after_a_packet);
    tcase_add_test(tcase, scattering_crumbs_ends_a_turn_after_a_batch);
    tcase_add_test(tcase, umr_from_crumbs_is_read_over_several_turns);
    tcase_add_loop_test(tcase, half_a_umr_leaves_nothing_behind, 0, G_N_ELEMENTS(umr_ends));
    tcase_add_test(tcase, timers_that_expire_together_fire_over_several_turns);
    tcase_add_test(tcase, fetch_and_add_never_waits_for_a_cpu_that_changes_the_word);
    tcase_add_test(tcase, atomic_that_lost_to_cpus_is_done_when_it_is_asked_for_again);
    tcase_add_test(tcase, computed_atomic_that_never_wins_ends_and_leaves_the_word_to_the_cpu);
    tcase_add_test(tcase, failing_cq_takes_its_qps_down_over_several_turns);
    tcase_add_test(tcase, endless_frames_do_not_keep_the_device_from_sending);
    tcase_add_test(tcase, acknowledgement_in_the_ring_is_seen_before_the_timeout);
    suite_add_tcase(suite, tcase);
    return suite;
}
