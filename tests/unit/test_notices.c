/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests notices (model/rdma/notice.h) and a receiver that gives no credit for any: notices for
 * other receivers are sent, and the queue that made the notice continues.
 */
#include "model/port/cong.h"
#include "model/rdma/notice.h"
#include "model/rdma/rdma.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"
#include "wire/filter.h"

#define STUCK_ROOM 5

static const uint8_t stuck[6] = {2, 0, 0, 0, 0, 99};

/* The port of the examined side; that receiver gives no credit. */
static struct wire_filter narrow;
static bool has_credit;
static unsigned refused, sent_to_stuck;

static uint8_t *narrow_reserve(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    if (memcmp(dmac, stuck, 6) == 0) {
        if (!has_credit) {
            refused++;
            return NULL;
        }
        sent_to_stuck++;
    }
    return wire_tx_reserve(narrow.inner, len);
}

static unsigned narrow_credit_class(struct wire_port *port)
{
    return STUCK_ROOM;
}

static uint64_t narrow_credits(struct wire_port *port)
{
    return 1ull << STUCK_ROOM;
}

static struct wire_port_ops narrow_ops;

static void plug_narrow_port(struct lab_side *side)
{
    struct wire_port *cable = side->hca.vport->uplink->wire;

    narrow_ops = wire_filter_ops;
    narrow_ops.tx_reserve_to = narrow_reserve;
    narrow_ops.tx_credit_class = narrow_credit_class;
    narrow_ops.tx_credits = narrow_credits;
    has_credit = false;
    refused = sent_to_stuck = 0;
    port_set_wire(&side->hca, NULL);
    wire_filter_init(&narrow, cable, &narrow_ops, &wire_filter_client);
    port_set_wire(&side->hca, &narrow.port);
}

static void give_credit(void)
{
    has_credit = true;
    narrow.port.client->tx_ready(narrow.port.opaque);
    lab_run(lab);
}

static void setup_narrow(void)
{
    setup();
    lab_run(lab);
    plug_narrow_port(far);
}

/* A CONNECT to a target, of an initiator on the host that gives no credit. */
static void connect_from_stuck(uint32_t number)
{
    const struct dcceth connect = {.psn = 7, .key = DC_LAB_KEY};
    const struct vport_gid *gid = &near->hca.vport->gids[3];
    struct roce_packet pkt = {
        .opcode = BTH_DC | BTH_CONNECT,
        .migreq = true,
        .pkey = 0xffff,
        .psn = 7,
        .dest_qp = dct.dctn,
        .dceth = {.version = far->hca.limits.dc_version, .session = 1, .number = number},
    };
    uint8_t *frame;

    memcpy(pkt.addr.dmac, far->mac, 6);
    memcpy(pkt.addr.smac, stuck, 6);
    memcpy(pkt.addr.sgid, gid->gid, 16);
    memcpy(pkt.addr.dgid, far->hca.vport->gids[3].gid, 16);
    pkt.addr.is_ipv4 = gid->gid[10] == 0xff;
    pkt.addr.hop_limit = 64;
    frame = wire_tx_reserve(lab->mid[1], roce_frame_len(&pkt, DCC_ETH_BYTES));
    ck_assert_ptr_nonnull(frame);
    dcceth_build(roce_build(frame, &pkt, DCC_ETH_BYTES), &connect);
    wire_tx_commit(lab->mid[1], roce_finish(frame, &pkt, DCC_ETH_BYTES));
    lab_run(lab);
}

START_TEST(a_refusal_is_not_behind_another_initiators)
{
    far->hca.limits.dc_responders = 0;
    for (unsigned i = 0; i < 3 * NOTICES; i++) {
        connect_from_stuck(0x4000 + i);
    }
    ck_assert_uint_gt(refused, 0);
    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_uint_eq(count_cnaks(), 1);
    far->hca.limits.dc_responders = 1;
    lab_advance(lab, 40 * LAB_MS);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 1);
    /* Of the other notices, the newest ones wait. */
    give_credit();
    ck_assert_uint_le(sent_to_stuck, NOTICES);
    ck_assert_uint_ge(sent_to_stuck, NOTICES - 1);
}
END_TEST

START_TEST(a_cnp_is_not_behind_another_peers)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE, .sge = {{src, LEN, 0}}, .num_sge = 1};
    struct lab_qp a[2], b[2];

    wr.raddr = dst;
    wr.rkey = far->key;
    for (unsigned i = 0; i < 2; i++) {
        lab_rc_pair(lab, &a[i], &b[i], &lab_path);
        a[i].qp->peer.path.tclass |= ECN_CE;
    }
    far->hca.vport->uplink->cong.np.min_time_between_cnps = 0;
    memcpy(b[0].qp->peer.path.dmac, stuck, 6);
    lab_post(&a[0], &wr);
    lab_run(lab);
    ck_assert_uint_gt(refused, 0);
    lab_post(&a[1], &wr);
    lab_run(lab);
    ck_assert_uint_eq(far->hca.vport->uplink->cong.counters.cnps_sent, 1);
    ck_assert_uint_eq(near->hca.vport->uplink->cong.counters.cnps_handled, 1);
    give_credit();
    ck_assert_uint_eq(far->hca.vport->uplink->cong.counters.cnps_sent, 2);
}
END_TEST

/* The initiator has a session with a target that accepts nothing any more, and begins one with
 * another target. */
START_TEST(a_disconnect_does_not_hold_up_the_next_session)
{
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    plug_narrow_port(near);
    memcpy(dci.qp->peer.path.dmac, stuck, 6);
    add_to(&dci, &other);
    lab_run(lab);
    ck_assert_uint_gt(refused, 0);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
    give_credit();
    ck_assert_uint_eq(sent_to_stuck, 1);
}
END_TEST

/* Waiting notices do not outlive the function's reset, either. */
START_TEST(a_reset_drops_what_waits)
{
    far->hca.limits.dc_responders = 0;
    connect_from_stuck(0x4000);
    ck_assert_uint_gt(refused, 0);
    notices_reset(&far->hca);
    give_credit();
    ck_assert_uint_eq(sent_to_stuck, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("notices");
    TCase *tc = tcase_create("notices");

    tcase_add_checked_fixture(tc, setup_narrow, teardown);
    tcase_add_test(tc, a_refusal_is_not_behind_another_initiators);
    tcase_add_test(tc, a_cnp_is_not_behind_another_peers);
    tcase_add_test(tc, a_reset_drops_what_waits);
    suite_add_tcase(suite, tc);
    tc = tcase_create("initiators");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_disconnect_does_not_hold_up_the_next_session);
    suite_add_tcase(suite, tc);
    return suite;
}
