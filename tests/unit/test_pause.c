/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests pauses of the link partner: which Ethernet frames they hold, and what ends a hold. */
#include <check.h>
#include <string.h>
#include "model/eth/eth_queue.h"
#include "model/eth/tir.h"
#include "model/port/pause.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define MBPS    100000
#define QUANTUM (512 * 1000 / (double)MBPS) /* nanoseconds */
#define XOFF    0xffff

static struct bench *b;
static struct uplink *uplink;
static struct bench_queue sq[2]; /* of priority 0 and 3 */

static const uint8_t control_mac[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

static void setup(void)
{
    uint32_t tisn;

    b = bench_new();
    uplink = b->rig.hca.vport->uplink;
    ck_assert_uint_eq(uplink->line_mbps, MBPS);
    uplink->phy.pfc_rx = 0xff;
    tisn = bench_tis(b, b->tdn);
    bench_sq_new(b, b->tisn, &sq[0]);
    bench_sq_new(b, tisn, &sq[1]);
    bench_set_priority(b, tisn, 3); /* after the queue was made: drivers may do that */
}

static void teardown(void)
{
    bench_free(b);
}

static size_t control_frame(uint8_t *frame, uint16_t opcode)
{
    memset(frame, 0, 60);
    memcpy(frame, control_mac, 6);
    memcpy(frame + 6, bench_peer_mac, 6);
    prm_store16(frame + 12, PAUSE_ETHERTYPE);
    prm_store16(frame + 14, opcode);
    return 60;
}

/* The partner holds the priorities of a mask for that time. */
static void pfc(uint8_t mask, uint16_t quanta)
{
    uint8_t frame[60];

    control_frame(frame, 0x0101);
    frame[17] = mask;
    for (unsigned i = 0; i < 8; i++) {
        prm_store16(frame + 18 + 2 * i, quanta);
    }
    bench_rx(b, frame, sizeof(frame));
}

static void pause_frame(uint16_t quanta)
{
    uint8_t frame[60];

    control_frame(frame, 0x0001);
    prm_store16(frame + 16, quanta);
    bench_rx(b, frame, sizeof(frame));
}

/* Posts a frame on a queue. */
static void post(unsigned i)
{
    uint8_t frame[100] = {0};
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    memcpy(frame, bench_peer_mac, 6);
    memcpy(frame + 6, bench_mac, 6);
    prm_store16(frame + 12, 0x88b5); /* local experimental */
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    bench_send(&sq[i], &wr);
}

static bool is_sent(unsigned i)
{
    return bench_cqe(&sq[i]) != NULL;
}

static void wait_for(uint64_t ns)
{
    b->rig.host.now += ns;
    bench_run(b);
}

/* -- what is held ------------------------------------------------------------------------------ */

START_TEST(a_held_priority_waits_and_others_pass)
{
    pfc(1 << 3, XOFF);
    post(1);
    post(0);
    ck_assert(!is_sent(1));
    ck_assert(is_sent(0));
    post(0);
    ck_assert(is_sent(0));
}
END_TEST

START_TEST(a_pause_frame_holds_every_priority)
{
    uplink->phy.pause_rx = true;
    pause_frame(XOFF);
    post(0);
    post(1);
    ck_assert(!is_sent(0));
    ck_assert(!is_sent(1));
    pause_frame(0);
    ck_assert(is_sent(0));
    ck_assert(is_sent(1));
}
END_TEST

/* A frame to a MAC of this card does not leave it. */
START_TEST(frames_inside_the_card_are_not_held)
{
    uint8_t frame[100] = {0};
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    pfc(0xff, XOFF);
    memcpy(frame, bench_mac, 6);
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame, sizeof(frame)), sizeof(frame), 0};
    bench_send(&sq[1], &wr);
    ck_assert(is_sent(1));
}
END_TEST

/* PFCC decides which frames are obeyed, and IEEE 802.3 which are pauses at all. */
START_TEST(other_frames_hold_nothing)
{
    uint8_t frame[60];

    uplink->phy.pfc_rx = 0x01;
    pfc(1 << 3, XOFF); /* not obeyed for this priority */
    pause_frame(XOFF); /* not obeyed at all */
    ck_assert_uint_eq(uplink->counters.rx_control_unknown, 0);
    uplink->phy.pfc_rx = 0xff;
    control_frame(frame, 0x0101);
    memset(frame + 16, 0xff, 44);
    bench_rx(b, frame, 33); /* ends in the last time */
    frame[15] = 0x02;       /* no such opcode */
    bench_rx(b, frame, 60);
    frame[15] = 0x01;
    memcpy(frame, bench_mac, 6); /* not to the address of link partners */
    bench_rx(b, frame, 60);
    bench_rx(b, frame, 14);
    ck_assert_uint_eq(uplink->counters.rx_control, 6);
    ck_assert_uint_eq(uplink->counters.rx_pause_frames, 2);
    ck_assert_uint_eq(uplink->counters.rx_control_unknown, 4);
    post(0);
    post(1);
    ck_assert(is_sent(0));
    ck_assert(is_sent(1));
}
END_TEST

/* MAC control ends at the port (IEEE 802.3, clause 31). */
START_TEST(no_function_receives_control_frames)
{
    struct bench_queue rq;

    bench_rq_new(b, NULL, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    bench_post_recv(&rq, bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
    b->rig.hca.vport->promisc_all = true;
    pfc(1 << 3, XOFF);
    bench_expect_none(&rq);
}
END_TEST

/* -- what ends a hold -------------------------------------------------------------------------- */

/* IEEE 802.3, 31B.2: the time is in units of 512 bit times of the port. */
START_TEST(a_hold_ends_when_its_time_runs_out)
{
    const uint16_t quanta = 1000;

    pfc(1 << 3, quanta);
    post(1);
    wait_for((uint64_t)(quanta * QUANTUM) - 1);
    ck_assert(!is_sent(1));
    wait_for(1);
    ck_assert(is_sent(1));
}
END_TEST

START_TEST(a_frame_with_time_0_ends_a_hold)
{
    pfc(1 << 3 | 1, XOFF);
    post(0);
    post(1);
    pfc(1 << 3, 0);
    ck_assert(!is_sent(0));
    ck_assert(is_sent(1));
}
END_TEST

/* The time of the last frame counts, whether the hold gets longer or shorter. */
START_TEST(a_new_frame_sets_the_time_anew)
{
    pfc(1 << 3, 1000);
    post(1);
    wait_for((uint64_t)(900 * QUANTUM));
    pfc(1 << 3, 1000);
    wait_for((uint64_t)(900 * QUANTUM));
    ck_assert(!is_sent(1));
    pfc(1 << 3, 10);
    wait_for((uint64_t)(10 * QUANTUM));
    ck_assert(is_sent(1));
}
END_TEST

START_TEST(a_hold_ends_when_its_kind_is_no_longer_obeyed)
{
    pfc(1 << 3, XOFF);
    post(1);
    uplink->phy.pfc_rx = 0x07;
    pause_settings_changed(b->rig.hca.vport->sw);
    bench_run(b);
    ck_assert(is_sent(1));
}
END_TEST

/* A new link begins without holds, and frames for a dead link are dropped. */
START_TEST(a_link_that_goes_down_ends_a_hold)
{
    pfc(1 << 3, XOFF);
    post(1);
    uplink->admin_up = false;
    port_update_link(&b->rig.hca);
    bench_run(b);
    ck_assert(is_sent(1));
    uplink->admin_up = true;
    port_update_link(&b->rig.hca);
    post(1);
    ck_assert(is_sent(1));
}
END_TEST

START_TEST(a_queue_that_ends_does_not_wait)
{
    pfc(1 << 3, XOFF);
    post(1);
    ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, sq[1].num), SYN_OK);
    wait_for((uint64_t)(XOFF * QUANTUM) + 1);
    post(0);
    ck_assert(is_sent(0));
}
END_TEST

START_TEST(a_reset_forgets_who_waits)
{
    pfc(1 << 3, XOFF);
    post(1);
    hca_reset(&b->rig.hca);
    wait_for((uint64_t)(XOFF * QUANTUM) + 1);
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

/* -- counters ---------------------------------------------------------------------------------- */

START_TEST(holds_are_counted_by_priority)
{
    const struct pause_traffic *c = &uplink->counters.rx_pause[3];

    pfc(1 << 3, 1000);
    wait_for((uint64_t)(500 * QUANTUM));
    pfc(1 << 3, 1000); /* the same hold goes on */
    wait_for((uint64_t)(2000 * QUANTUM));
    pfc(1 << 3, 1000);
    wait_for((uint64_t)(100 * QUANTUM));
    pause_count(uplink, b->rig.host.now); /* a hold that has not ended counts so far */
    ck_assert_uint_eq(c->frames, 3);
    ck_assert_uint_eq(c->begun, 2);
    ck_assert_uint_eq(c->ns, (uint64_t)(1600 * QUANTUM));
    pfc(1 << 3, 0);
    ck_assert_uint_eq(c->frames, 4);
    ck_assert_uint_eq(c->ns, (uint64_t)(1600 * QUANTUM));
    ck_assert_uint_eq(uplink->counters.rx_pause[0].frames, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("pause");
    TCase *tcase = tcase_create("pause");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_held_priority_waits_and_others_pass);
    tcase_add_test(tcase, a_pause_frame_holds_every_priority);
    tcase_add_test(tcase, frames_inside_the_card_are_not_held);
    tcase_add_test(tcase, other_frames_hold_nothing);
    tcase_add_test(tcase, no_function_receives_control_frames);
    tcase_add_test(tcase, a_hold_ends_when_its_time_runs_out);
    tcase_add_test(tcase, a_frame_with_time_0_ends_a_hold);
    tcase_add_test(tcase, a_new_frame_sets_the_time_anew);
    tcase_add_test(tcase, a_hold_ends_when_its_kind_is_no_longer_obeyed);
    tcase_add_test(tcase, a_link_that_goes_down_ends_a_hold);
    tcase_add_test(tcase, a_queue_that_ends_does_not_wait);
    tcase_add_test(tcase, a_reset_forgets_who_waits);
    tcase_add_test(tcase, holds_are_counted_by_priority);
    suite_add_tcase(suite, tcase);
    return suite;
}
