/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests congestion control: the answer to a packet with a congestion mark (annex A17.9), and how a
 * QP sends after a CNP (DCQCN). The link has 1 Gb/s here, so a byte takes 8 ns.
 */
#include "model/port/cong.h"
#include "model/rdma/reaction_point.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define MBPS  1000u
#define US    1000ull
#define BYTES (64u << 10)

static uint64_t from, to;

static struct cong *cong_of(struct lab_side *side)
{
    return &side->hca.vport->uplink->cong;
}

static void setup_slow_link(void)
{
    setup();
    left->hca.vport->uplink->line_mbps = right->hca.vport->uplink->line_mbps = MBPS;
    from = lab_mem(left, BYTES, 1);
    to = lab_mem(right, BYTES, 0);
}

/* Gives the QP's packets the ECN bits of ECT(0), which become CE on their way. */
static void mark_packets_of(struct lab_qp *qp)
{
    ck_assert_uint_eq(qp->qp->peer.path.tclass & ECN_MASK, ECN_ECT0);
    qp->qp->peer.path.tclass |= ECN_CE;
}

static void write_and_run(uint32_t len)
{
    write_from(from, len, to);
    lab_run(lab);
}

static unsigned cnps_from(unsigned side)
{
    unsigned n = 0;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        n += lab->trace[i].from == side && lab->trace[i].pkt.opcode == BTH_CNP_OPCODE;
    }
    return n;
}

/* Returns a CNP from a QP's peer to a QP of that number. */
static struct roce_packet cnp_to(const struct lab_qp *qp, uint32_t qpn)
{
    struct roce_packet pkt = {
        .opcode = BTH_CNP_OPCODE, .becn = true, .pkey = 0xffff, .dest_qp = qpn};
    const struct roce_addr *path = &qp->qp->peer.path;

    pkt.addr = *path;
    memcpy(pkt.addr.dmac, path->smac, 6);
    memcpy(pkt.addr.smac, path->dmac, 6);
    memcpy(pkt.addr.dgid, path->sgid, 16);
    memcpy(pkt.addr.sgid, path->dgid, 16);
    return pkt;
}

static void put(struct lab_side *side, const struct roce_packet *pkt)
{
    struct wire_port *wire = lab->mid[side == right];
    uint8_t *frame = wire_tx_reserve(wire, roce_frame_len(pkt, 0));

    ck_assert_ptr_nonnull(frame);
    roce_build(frame, pkt, 0);
    wire_tx_commit(wire, roce_finish(frame, pkt, 0));
    lab_run(lab);
}

static void tell(struct lab_qp *qp)
{
    struct roce_packet pkt = cnp_to(qp, qp->qp->obj.num);

    put(qp->side, &pkt);
}

static uint32_t rate_of(const struct lab_qp *qp)
{
    return qp->qp->peer.limiter ? qp->qp->peer.limiter->current / 1000 : MBPS;
}

/* -- the notification point -------------------------------------------------------------------- */

/* A17.9: BTH opcode 0x81, BECN set, the QP that the marked packet came from; a ConnectX-4 Lx sends
 * DSCP 48, ECT(0), PSN 0, and neither AckReq nor MigReq. */
START_TEST(a_mark_is_answered_with_a_cnp)
{
    const struct roce_packet *cnp = NULL;

    mark_packets_of(&a);
    write_and_run(100);
    for (unsigned i = 0; i < lab->num_packets; i++) {
        if (lab->trace[i].pkt.opcode == BTH_CNP_OPCODE) {
            ck_assert_uint_eq(lab->trace[i].from, 1);
            cnp = &lab->trace[i].pkt;
        }
    }
    ck_assert_ptr_nonnull(cnp);
    ck_assert_uint_eq(cnp->dest_qp, a.qp->obj.num);
    ck_assert(cnp->becn && !cnp->fecn && !cnp->ackreq && !cnp->migreq && !cnp->solicited);
    ck_assert_uint_eq(cnp->psn, 0);
    ck_assert_uint_eq(cnp->pkey, 0xffff);
    ck_assert_uint_eq(cnp->addr.tclass, 48 << 2 | ECN_ECT0);
    ck_assert_uint_eq(cong_of(right)->counters.marked, 1);
    ck_assert_uint_eq(cong_of(right)->counters.cnps_sent, 1);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, 1);
    ck_assert_uint_eq(cong_of(left)->counters.marked, 0);
}
END_TEST

START_TEST(a_packet_without_a_mark_is_not)
{
    write_and_run(BYTES);
    ck_assert_uint_eq(cnps_from(1), 0);
    ck_assert_uint_eq(cong_of(right)->counters.marked, 0);
    ck_assert_ptr_null(a.qp->peer.limiter);
}
END_TEST

/* min_time_between_cnps, microseconds, for the port. */
START_TEST(cnps_keep_their_distance)
{
    cong_of(left)->rp_side.enabled = 0; /* the sender does not react */
    mark_packets_of(&a);
    write_and_run(8 << 10);
    ck_assert_uint_eq(cong_of(right)->counters.marked, 8);
    ck_assert_uint_eq(cnps_from(1), 1);
    lab_advance(lab, 3999);
    write_and_run(8 << 10);
    ck_assert_uint_eq(cnps_from(1), 1);
    lab_advance(lab, 1);
    write_and_run(8 << 10);
    ck_assert_uint_eq(cnps_from(1), 2);
    ck_assert_uint_eq(cong_of(right)->counters.cnps_sent, 2);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 2);
}
END_TEST

/* cnp_prio_mode 0: a CNP has its own VLAN priority, cnp_802p_prio; 1: the priority of the marked
 * packet. */
START_TEST(a_cnp_has_the_priority_that_it_is_given)
{
    const struct roce_packet *cnp = NULL;
    struct vport_gid l = left->hca.vport->gids[3], r = right->hca.vport->gids[3];

    l.has_vlan = r.has_vlan = true;
    l.vlan_id = r.vlan_id = 7;
    vport_set_gid(left->hca.vport, 3, &l);
    vport_set_gid(right->hca.vport, 3, &r);
    cong_of(right)->np.cnp_prio_mode = (uint32_t)_i;
    write_and_run(100); /* looks up the paths */
    mark_packets_of(&a);
    a.qp->peer.path.vlan_tci = 2 << 13 | 7;
    write_and_run(100);
    for (unsigned i = 0; i < lab->num_packets; i++) {
        cnp = lab->trace[i].pkt.opcode == BTH_CNP_OPCODE ? &lab->trace[i].pkt : cnp;
    }
    ck_assert_ptr_nonnull(cnp);
    ck_assert(cnp->addr.has_vlan);
    ck_assert_uint_eq(cnp->addr.vlan_tci, (_i ? 2 : 6) << 13 | 7);
}
END_TEST

/* With 0 there is a CNP for each mark, as far as there is room. */
START_TEST(a_flood_of_marks_makes_no_more_cnps_than_marks)
{
    cong_of(left)->rp_side.enabled = 0;
    cong_of(right)->np.min_time_between_cnps = 0;
    mark_packets_of(&a);
    for (unsigned i = 0; i < 20; i++) {
        write_and_run(BYTES);
    }
    ck_assert_uint_eq(cong_of(right)->counters.marked, 20 * 64);
    ck_assert_uint_le(cong_of(right)->counters.cnps_sent, 20 * 64);
    ck_assert_uint_gt(cong_of(right)->counters.cnps_sent, 20);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, cong_of(right)->counters.cnps_sent);
    same(from, to, BYTES);
}
END_TEST

START_TEST(a_priority_that_is_off_is_not_answered)
{
    cong_of(right)->np_side.enabled = 0xfe;
    mark_packets_of(&a);
    write_and_run(100);
    ck_assert_uint_eq(cnps_from(1), 0);
    ck_assert_uint_eq(cong_of(right)->counters.marked, 1);
}
END_TEST

/* QPTS, QPDPM: also for frames without a VLAN tag. */
START_TEST(a_priority_is_that_of_the_dscp_if_that_is_trusted)
{
    struct uplink *uplink = right->hca.vport->uplink;

    uplink->phy.dscp_priority[0] = 3;
    cong_of(right)->np_side.enabled = 1u << 3;
    mark_packets_of(&a);
    write_and_run(100);
    ck_assert_uint_eq(cnps_from(1), 0); /* it has priority 0 */
    uplink->phy.trusts_dscp = true;
    write_and_run(100);
    ck_assert_uint_eq(cnps_from(1), 1);
}
END_TEST

/* A17.9.3 is about connections: the sender of a datagram has no rate to reduce here. */
START_TEST(a_marked_datagram_is_counted_and_not_answered)
{
    struct lab_wr wr = send_wr(from, 64);
    uint64_t mem = lab_mem(right, 256, 0);
    uint8_t *wqe;

    wr.dest_qpn = b.qp->obj.num;
    wr.qkey = lab_path.qkey;
    lab_post_recv(&b, mem, 256);
    wqe = lab_write_wqe(&a, &wr);
    PRM_SET(wqe_av, (struct prm_wqe_av *)(wqe + 16), tclass, ECN_CE);
    lab_ring(&a);
    lab_run(lab);
    expect_received(64 + 40);
    ck_assert_uint_eq(cong_of(right)->counters.marked, 1);
    ck_assert_uint_eq(cnps_from(1), 0);
}
END_TEST

static void setup_ud(void)
{
    setup_bare();
    pair_of(PRM_QP_ST_UD);
    from = lab_mem(left, 4096, 1);
}

/* -- the reaction point ------------------------------------------------------------------------ */

/* Alpha is one at first, so the rate halves (rpg_gd 11, rpg_min_dec_fac 50 %). */
START_TEST(a_cnp_halves_the_rate)
{
    tell(&a);
    ck_assert_ptr_nonnull(a.qp->peer.limiter);
    ck_assert_uint_eq(rate_of(&a), MBPS / 2);
    ck_assert_uint_eq(a.qp->peer.limiter->target, MBPS * 1000);
    ck_assert_uint_eq(cong_of(left)->flows, 1);
    ck_assert_uint_eq(cong_of(left)->counters.sum_flows, 1);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, 1);
    ck_assert_ptr_null(b.qp->peer.limiter);
}
END_TEST

/* The DSCP of a's packets, which have no VLAN tag, stands for that priority. */
static void trust_dscp(unsigned priority)
{
    struct vport *vport = left->hca.vport;

    vport->uplink->phy.dscp_priority[a.qp->peer.path.tclass >> 2] = (uint8_t)priority;
    vport->uplink->phy.trusts_dscp = true;
    eswitch_paths_changed(vport->sw); /* as writes of QPTS and QPDPM do */
}

START_TEST(a_priority_that_the_dscp_stands_for_reacts)
{
    trust_dscp(3);
    cong_of(left)->rp_side.enabled = _i ? 1u << 3 : (uint8_t) ~(1u << 3);
    tell(&a);
    ck_assert_int_eq(a.qp->peer.limiter != NULL, _i);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, !_i);
    write_and_run(100); /* a limiter stays while its priority reacts */
    ck_assert_int_eq(a.qp->peer.limiter != NULL, _i);
}
END_TEST

/* .tag_enable: packets say that they may be marked. */
START_TEST(a_priority_that_the_dscp_stands_for_may_be_marked)
{
    cong_of(left)->rp_side.tagged = 1u << 3;
    cong_of(left)->rp_side.enabled = 0xff;
    eswitch_paths_changed(left->hca.vport->sw);
    write_and_run(100);
    ck_assert_uint_eq(a.qp->peer.path.tclass & ECN_MASK, 0);
    trust_dscp(3);
    write_and_run(100);
    ck_assert_uint_eq(a.qp->peer.path.tclass & ECN_MASK, ECN_ECT0);
}
END_TEST

static uint64_t time_of(void (*post)(void))
{
    uint64_t start = left->host.now;
    struct lab_cqe cqe;

    post();
    lab_run(lab);
    while (!lab_poll(left, &cqe)) {
        ck_assert_uint_lt(left->host.now - start, 10 * 1000 * LAB_MS);
        lab_advance(lab, 10 * US);
    }
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    return left->host.now - start;
}

static void post_write(void)
{
    write_from(from, BYTES, to);
}

static void post_read(void)
{
    struct lab_wr wr = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, from, BYTES, to);

    lab_post(&a, &wr);
}

/* 64 KiB at 500 Mb/s take 1049 us; the rate increases meanwhile. */
START_TEST(a_slower_qp_sends_at_its_rate)
{
    uint64_t ns;

    cong_of(left)->rp.rpg_time_reset = 131071;
    cong_of(left)->rp.rpg_byte_reset = 0;
    tell(&a);
    ns = time_of(post_write);
    ck_assert_uint_ge(ns, 1040 * US);
    ck_assert_uint_le(ns, 1200 * US);
    same(from, to, BYTES);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(read_data_is_sent_at_the_responders_rate)
{
    uint64_t ns;

    cong_of(right)->rp.rpg_time_reset = 131071;
    cong_of(right)->rp.rpg_byte_reset = 0;
    tell(&b);
    ck_assert_uint_eq(rate_of(&b), MBPS / 2);
    ns = time_of(post_read);
    ck_assert_uint_ge(ns, 1040 * US);
    ck_assert_uint_le(ns, 1200 * US);
    ck_assert_mem_eq(lab_ptr(left, from, BYTES), lab_ptr(right, to, BYTES), BYTES);
}
END_TEST

/* A QP is limited from its first CNP on until it sends at full speed again. */
START_TEST(a_qp_that_hears_no_more_comes_back_to_full_speed)
{
    tell(&a);
    lab_advance(lab, 100 * LAB_MS);
    ck_assert_uint_eq(cong_of(left)->flows, 1);
    write_and_run(100);
    ck_assert_ptr_null(a.qp->peer.limiter);
    ck_assert_uint_eq(cong_of(left)->flows, 0);
    ck_assert_uint_eq(cong_of(left)->counters.sum_flows, 1);
}
END_TEST

/* Fast recovery goes half of the way to the target, which is the previous rate. Additive increase
 * raises the target by rpg_ai_rate, from rpg_threshold events on. */
START_TEST(the_rate_comes_back_by_halves)
{
    struct cong_rp *rp = &cong_of(left)->rp;

    rp->rpg_threshold = 3;
    rp->rpg_max_rate = 0;
    rp->rate_to_set_on_first_cnp = 400;
    tell(&a);
    ck_assert_uint_eq(rate_of(&a), 400);
    rp->rate_reduce_monitor_period = 1;
    lab_advance(lab, 10 * US);
    tell(&a);
    lab_advance(lab, 299 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_lt(rate_of(&a), 210);
    lab_advance(lab, 1 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_ge(rate_of(&a), 299);
    ck_assert_uint_le(rate_of(&a), 305);
    ck_assert_uint_eq(a.qp->peer.limiter->target, 400000);
    lab_advance(lab, 300 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_eq(a.qp->peer.limiter->target, 400000);
    lab_advance(lab, 300 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_eq(a.qp->peer.limiter->target, 405000);
}
END_TEST

/* The clock is read when a packet is to be sent. After a long pause the rate is as high as if it
 * had been updated all the time. */
START_TEST(a_rate_rises_during_a_pause)
{
    struct cong_rp *rp = &cong_of(left)->rp;
    uint32_t looked_at;

    rp->rate_to_set_on_first_cnp = 10;
    rp->rpg_byte_reset = 0;
    tell(&a);
    for (unsigned i = 0; i < 150; i++) {
        lab_advance(lab, 300 * US);
        reaction_is_time(&a.qp->peer);
    }
    looked_at = rate_of(&a);
    ck_assert_uint_gt(looked_at, 700);
    ck_assert_uint_lt(looked_at, MBPS);
    reaction_end(&a.qp->peer);
    tell(&a);
    ck_assert_uint_eq(rate_of(&a), 10);
    lab_advance(lab, 150 * 300 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_ge(rate_of(&a), looked_at - rp->rpg_ai_rate);
    ck_assert_uint_le(rate_of(&a), looked_at + rp->rpg_ai_rate);
}
END_TEST

/* Alpha is multiplied by 1019/1024 in each microsecond without a CNP. */
START_TEST(a_later_cnp_costs_less)
{
    uint32_t before;

    cong_of(left)->rp.rpg_time_reset = 131071;
    tell(&a);
    lab_advance(lab, 5 * US);
    before = rate_of(&a);
    tell(&a);
    ck_assert_uint_le(rate_of(&a), before * 52 / 100);
    lab_advance(lab, 1000 * US);
    before = rate_of(&a);
    tell(&a);
    ck_assert_uint_ge(rate_of(&a), before * 98 / 100);
    ck_assert_uint_lt(rate_of(&a), before + 1);
}
END_TEST

/* rate_reduce_monitor_period: at most one decrease in it; an earlier CNP takes effect when it is
 * over. */
START_TEST(a_cnp_that_comes_too_soon_waits)
{
    cong_of(left)->rp.rate_reduce_monitor_period = 50;
    tell(&a);
    tell(&a);
    tell(&a);
    ck_assert_uint_eq(rate_of(&a), MBPS / 2);
    lab_advance(lab, 50 * US);
    reaction_is_time(&a.qp->peer);
    ck_assert_uint_lt(rate_of(&a), MBPS / 2);
    ck_assert_uint_ge(rate_of(&a), MBPS / 4);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, 3);
}
END_TEST

/* However many CNPs a peer sends, the rate is never below rpg_min_rate, and the message arrives. */
START_TEST(a_flood_of_cnps_leaves_the_least_rate)
{
    for (unsigned i = 0; i < 2000; i++) {
        tell(&a);
        lab_advance(lab, 5 * US);
        ck_assert_uint_ge(rate_of(&a), 1);
    }
    ck_assert_uint_eq(rate_of(&a), 1);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, 2000);
    time_of(post_write);
    same(from, to, BYTES);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}
END_TEST

START_TEST(a_cnp_without_a_reaction_point_is_ignored)
{
    struct roce_packet pkt = cnp_to(&a, 0x55555);

    put(left, &pkt); /* no such QP */
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 1);
    pkt = cnp_to(&a, a.qp->obj.num);
    pkt.addr.sgid[15] ^= 1; /* not from its peer */
    put(left, &pkt);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 2);
    cong_of(left)->rp_side.enabled = 0xfe;
    tell(&a);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 3);
    cong_of(left)->rp_side.enabled = 0xff;
    qp_set_state(a.qp, PRM_QP_STATE_ERR);
    tell(&a);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 4);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, 0);
    ck_assert_uint_eq(cong_of(left)->flows, 0);
}
END_TEST

START_TEST(a_datagram_qp_does_not_react)
{
    struct roce_packet pkt = {.opcode = BTH_CNP_OPCODE, .becn = true, .pkey = 0xffff};
    const struct vport_gid *l = &left->hca.vport->gids[3], *r = &right->hca.vport->gids[3];

    pkt.dest_qp = a.qp->obj.num;
    pkt.addr.is_ipv4 = l->l3_type == 0;
    pkt.addr.hop_limit = 64;
    memcpy(pkt.addr.dmac, left->mac, 6);
    memcpy(pkt.addr.smac, right->mac, 6);
    memcpy(pkt.addr.dgid, l->gid, 16);
    memcpy(pkt.addr.sgid, r->gid, 16);
    put(left, &pkt);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_ignored, 1);
    ck_assert_ptr_null(a.qp->peer.limiter);
}
END_TEST

START_TEST(a_limiter_ends_with_reset_and_error)
{
    tell(&a);
    qp_set_state(a.qp, _i ? PRM_QP_STATE_ERR : PRM_QP_STATE_RST);
    ck_assert_ptr_null(a.qp->peer.limiter);
    ck_assert_uint_eq(cong_of(left)->flows, 0);
    lab_advance(lab, LAB_MS);
}
END_TEST

START_TEST(a_qp_is_destroyed_while_a_packet_waits)
{
    cong_of(left)->rp.rate_to_set_on_first_cnp = 1;
    tell(&a);
    write_and_run(BYTES);
    ck_assert_uint_ne(a.qp->peer.limiter->timer.pos, 0);
    ck_assert_uint_eq(qp_destroy(&left->hca, 0, a.qp->obj.num), SYN_OK);
    ck_assert_uint_eq(cong_of(left)->flows, 0);
    lab_advance(lab, 100 * LAB_MS);
}
END_TEST

/* SQD is reached when the started requests have been sent and acknowledged, at the limited rate. */
START_TEST(a_queue_with_a_limited_rate_drains)
{
    uint8_t type;
    uint32_t num;

    cong_of(left)->rp.rate_to_set_on_first_cnp = 10;
    tell(&a);
    write_and_run(BYTES);
    qp_set_state(a.qp, PRM_QP_STATE_SQ_DRAINING);
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQ_DRAINING);
    lab_advance(lab, 100 * LAB_MS);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQD);
    ck_assert(lab_event(left, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_SQ_DRAINED);
    same(from, to, BYTES);
}
END_TEST

START_TEST(lost_packets_are_repeated_at_the_current_rate)
{
    cong_of(left)->rp.rate_to_set_on_first_cnp = 10;
    tell(&a);
    lose_psn(0, 5, 2);
    time_of(post_write);
    same(from, to, BYTES);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* Marks on the way: messages arrive more and more slowly. The first message is on its way when its
 * mark is reported. */
START_TEST(marked_packets_slow_their_sender_down)
{
    mark_packets_of(&a);
    time_of(post_write);
    time_of(post_write);
    same(from, to, BYTES);
    ck_assert_uint_gt(cong_of(right)->counters.cnps_sent, 1);
    ck_assert_uint_eq(cong_of(left)->counters.cnps_handled, cong_of(right)->counters.cnps_sent);
    ck_assert_uint_lt(rate_of(&a), MBPS / 2);
}
END_TEST

/* -- parameters -------------------------------------------------------------------------------- */

static const struct {
    uint32_t field;
    const char *name;
    unsigned select;
} params[] = {
#define RP_PARAM(name, select, ...) {PRM_cong_control_r_roce_ecn_rp_##name##_FIELD, #name, select},
#define NP_PARAM(...)
#include "model/port/cong_params.def"
#undef RP_PARAM
#undef NP_PARAM
};

static const uint32_t extremes[] = {0, 1, 10, 11, 100, 1023, 32767, 131071, UINT32_MAX};

/* With all accepted parameters a QP continues, no slower than the least rate. */
START_TEST(no_parameter_stops_a_qp)
{
    struct prm_cong_control_r_roce_ecn_rp rp[1];
    unsigned accepted = 0;

    for (size_t v = 0; v < G_N_ELEMENTS(extremes); v++) {
        cong_reset(cong_of(left));
        memset(rp, 0, sizeof(rp));
        prm_set(rp, params[_i].field, extremes[v] & (_i < 2 ? 1 : UINT32_MAX), params[_i].name);
        if (cong_modify(cong_of(left), PRM_CONG_PROTOCOL_R_ROCE_ECN_RP, 1u << params[_i].select,
                        rp) != SYN_OK) {
            continue;
        }
        accepted++;
        for (unsigned i = 0; i < 8; i++) {
            tell(&a);
            lab_advance(lab, (i * 97) * US);
            time_of(post_write);
        }
        lab_advance(lab, 3600ull * 1000 * LAB_MS);
        time_of(post_write);
    }
    ck_assert_uint_ge(accepted, 2);
    same(from, to, BYTES);
}
END_TEST

START_TEST(parameters_are_taken_all_or_none)
{
    struct prm_cong_control_r_roce_ecn_rp rp[1] = {0};
    struct cong *cong = cong_of(left);

    PRM_SET(cong_control_r_roce_ecn_rp, rp, rpg_ai_rate, 77);
    PRM_SET(cong_control_r_roce_ecn_rp, rp, rpg_gd, 12);
    ck_assert_uint_eq(cong_modify(cong, PRM_CONG_PROTOCOL_R_ROCE_ECN_RP, 1u << 7 | 1u << 16, rp),
                      SYN_CONG_PARAM);
    ck_assert_uint_eq(cong->rp.rpg_ai_rate, 5);
    ck_assert_uint_eq(cong_modify(cong, PRM_CONG_PROTOCOL_R_ROCE_ECN_RP, 1u << 7, rp), SYN_OK);
    ck_assert_uint_eq(cong->rp.rpg_ai_rate, 77);
    ck_assert_uint_eq(cong->rp.rpg_hai_rate, 50);
}
END_TEST

/* -- both sides of a QP have one limiter --------------------------------------------------------
 */

/* Events that end the limiter while a packet waits for it: reactions are disabled
 * (MODIFY_CONG_STATUS), or the rate is back where it was. */
enum limiter_end {
    END_DISABLED,
    END_RECOVERED,
    ENDS
};

static void begin_slow_limiter(struct lab_qp *qp, enum limiter_end how)
{
    struct cong_rp *rp = &cong_of(qp->side)->rp;

    rp->rate_to_set_on_first_cnp = 1;
    if (how == END_RECOVERED) {
        rp->rpg_time_reset = 10;
        rp->rpg_ai_rate = rp->rpg_hai_rate = 100;
    }
    tell(qp);
}

/* The other side of the QP checks first, and finds the limiter ended. */
static void end_limiter(struct lab_qp *qp, enum limiter_end how)
{
    lab_advance(lab, 900 * US);
    ck_assert_ptr_nonnull(qp->qp->peer.limiter);
    if (how == END_DISABLED) {
        cong_of(qp->side)->rp_side.enabled = 0;
    }
}

static void expect_done_soon(uint8_t opcode)
{
    ck_assert_ptr_null(a.qp->peer.limiter);
    ck_assert_ptr_null(b.qp->peer.limiter);
    lab_advance(lab, 100 * US);
    expect_sent(opcode, 0);
    ck_assert_uint_eq(counters()->local_ack_timeout_err, 0);
}

START_TEST(requests_go_on_when_an_answer_ends_the_limiter)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{to, 64, 0}},
                          .num_sge = 1,
                          .raddr = from,
                          .rkey = left->key};

    begin_slow_limiter(&a, (enum limiter_end)_i);
    write_and_run(BYTES);
    expect_none(left);
    end_limiter(&a, (enum limiter_end)_i);
    read.sge[0].addr = lab_mem(right, 64, 0);
    lab_post(&b, &read);
    lab_run(lab);
    expect_done_soon(PRM_WQE_OPCODE_RDMA_WRITE);
    same(from, to, BYTES);
}
END_TEST

START_TEST(answers_go_on_when_a_request_ends_the_limiter)
{
    struct lab_wr write = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE, .num_sge = 1, .rkey = left->key};

    write.sge[0].addr = lab_mem(right, 64, 7);
    write.sge[0].len = 64;
    write.raddr = lab_mem(left, 64, 0);
    begin_slow_limiter(&b, (enum limiter_end)_i);
    post_read();
    lab_run(lab);
    expect_none(left);
    end_limiter(&b, (enum limiter_end)_i);
    lab_post(&b, &write);
    lab_run(lab);
    expect_done_soon(PRM_WQE_OPCODE_RDMA_READ);
    same(from, to, BYTES);
}
END_TEST

/* RTR2RTS starts the send queue, and with it the QP's rate; answers that the responder owes
 * continue. */
START_TEST(answers_go_on_when_the_qp_is_set_to_rts)
{
    struct lab_path p = lab_path;

    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_RST2INIT_QP, &p, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_INIT2RTR_QP, &p, p.psn, &a), SYN_OK);
    begin_slow_limiter(&b, END_DISABLED);
    post_read();
    lab_run(lab);
    expect_none(left);
    ck_assert_ptr_nonnull(b.qp->peer.limiter);
    lab_advance(lab, 900 * US);
    ck_assert_int_eq(lab_modify(&b, PRM_CMD_OP_RTR2RTS_QP, &p, p.psn + 0x1000, &a), SYN_OK);
    expect_done_soon(PRM_WQE_OPCODE_RDMA_READ);
    same(from, to, BYTES);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("congestion");
    TCase *tc = tcase_create("notification point");

    tcase_add_checked_fixture(tc, setup_slow_link, teardown);
    tcase_add_test(tc, a_mark_is_answered_with_a_cnp);
    tcase_add_test(tc, a_packet_without_a_mark_is_not);
    tcase_add_test(tc, cnps_keep_their_distance);
    tcase_add_loop_test(tc, a_cnp_has_the_priority_that_it_is_given, 0, 2);
    tcase_add_test(tc, a_flood_of_marks_makes_no_more_cnps_than_marks);
    tcase_add_test(tc, a_priority_that_is_off_is_not_answered);
    tcase_add_test(tc, a_priority_is_that_of_the_dscp_if_that_is_trusted);
    suite_add_tcase(s, tc);
    tc = tcase_create("datagrams");
    tcase_add_checked_fixture(tc, setup_ud, teardown);
    tcase_add_test(tc, a_marked_datagram_is_counted_and_not_answered);
    tcase_add_test(tc, a_datagram_qp_does_not_react);
    suite_add_tcase(s, tc);
    tc = tcase_create("reaction point");
    tcase_add_checked_fixture(tc, setup_slow_link, teardown);
    tcase_add_test(tc, a_cnp_halves_the_rate);
    tcase_add_loop_test(tc, a_priority_that_the_dscp_stands_for_reacts, 0, 2);
    tcase_add_test(tc, a_priority_that_the_dscp_stands_for_may_be_marked);
    tcase_add_test(tc, a_slower_qp_sends_at_its_rate);
    tcase_add_test(tc, read_data_is_sent_at_the_responders_rate);
    tcase_add_test(tc, a_qp_that_hears_no_more_comes_back_to_full_speed);
    tcase_add_test(tc, the_rate_comes_back_by_halves);
    tcase_add_test(tc, a_rate_rises_during_a_pause);
    tcase_add_test(tc, a_later_cnp_costs_less);
    tcase_add_test(tc, a_cnp_that_comes_too_soon_waits);
    tcase_add_test(tc, a_flood_of_cnps_leaves_the_least_rate);
    tcase_add_test(tc, a_cnp_without_a_reaction_point_is_ignored);
    tcase_add_loop_test(tc, a_limiter_ends_with_reset_and_error, 0, 2);
    tcase_add_test(tc, a_qp_is_destroyed_while_a_packet_waits);
    tcase_add_test(tc, a_queue_with_a_limited_rate_drains);
    tcase_add_test(tc, lost_packets_are_repeated_at_the_current_rate);
    tcase_add_test(tc, marked_packets_slow_their_sender_down);
    tcase_add_loop_test(tc, requests_go_on_when_an_answer_ends_the_limiter, 0, ENDS);
    tcase_add_loop_test(tc, answers_go_on_when_a_request_ends_the_limiter, 0, ENDS);
    tcase_add_test(tc, answers_go_on_when_the_qp_is_set_to_rts);
    tcase_add_loop_test(tc, no_parameter_stops_a_qp, 0, G_N_ELEMENTS(params));
    tcase_add_test(tc, parameters_are_taken_all_or_none);
    suite_add_tcase(s, tc);
    return s;
}
