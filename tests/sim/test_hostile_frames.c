/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a peer that sends frames with one error each. A QP sees what the specification lets it see;
 * everything else is dropped and counted where the driver reads it. A correct frame afterwards
 * arrives.
 */
#include <check.h>
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"
#include "wire/encap/eth.h"
#include "wire/encap/roce.h"

#define PEER_QPN 0x777777 /* not a QP of the other HCA, which therefore does not answer */
#define QKEY     0x1234
#define PSN      0x123456
#define MTU      1024
#define LEN      257 /* bytes of the usual message: three bytes of pad */
#define ETH_LEN  14
#define IP_LEN   20
#define HDR_LEN  (ETH_LEN + IP_LEN + 8) /* Ethernet, IPv4, UDP */

static struct two_hcas *t;
static struct node *a;
static struct drv_qp *rc, *ud;
static struct buf *mem; /* memory that is open to the peer; and memory of receives */
static struct wire_port *wire;
static uint8_t frame[WIRE_FRAME_MAX];
static size_t frame_len;

static void connect(struct drv_qp *qp)
{
    struct drv_path path = path_to(&t->b, qp);

    path.remote_qpn = PEER_QPN;
    path.rq_psn = PSN;
    qp->dbr[0] = qp->dbr[1] = 0;
    qp->sq_pi = qp->rq_pi = 0;
    qp->qkey = QKEY;
    ck_assert_int_eq(drv_qp_connect(qp, &path), 0);
}

static void setup(void)
{
    t = two_hcas_new(NULL);
    a = &t->a;
    wire = t->b.port;
    mem = node_buf(a, 16384, DRV_ALL, 0);
    rc = node_qp(a, PRM_QP_ST_RC, NULL);
    ud = node_qp(a, PRM_QP_ST_UD, NULL);
    connect(rc);
    connect(ud);
    inproc_settle(t->world);
}

static void teardown(void)
{
    ck_assert_uint_eq(a->hca->log_errors, 0);
    two_hcas_free(t);
}

/* -- the peer -----------------------------------------------------------------------------------
 */

static struct roce_packet packet(uint8_t opcode, const struct drv_qp *qp)
{
    struct roce_packet pkt = {
        .opcode = opcode,
        .dest_qp = qp->qpn,
        .psn = PSN,
        .pkey = 0xffff,
        .migreq = true,
        .ackreq = true,
        .addr = {.is_ipv4 = true, .hop_limit = 64, .udp_sport = 0xc123},
        .deth = {.qkey = QKEY, .src_qp = PEER_QPN},
        .reth = {.va = mem->va, .rkey = mem->mr.key, .len = LEN},
    };

    memcpy(pkt.addr.dmac, a->drv->mac, 6);
    memcpy(pkt.addr.smac, t->b.drv->mac, 6);
    memcpy(pkt.addr.dgid, a->gid, 16);
    memcpy(pkt.addr.sgid, t->b.gid, 16);
    return pkt;
}

/* Builds a frame of len bytes of payload, in which a test then makes an error. */
static void build(const struct roce_packet *pkt, size_t len)
{
    memset(roce_build(frame, pkt, len), 0xa5, len);
    frame_len = roce_finish(frame, pkt, len);
}

static void put_on_wire(size_t len)
{
    uint8_t *room = wire_tx_reserve(wire, len);

    ck_assert_ptr_nonnull(room);
    memcpy(room, frame, len);
    wire_tx_commit(wire, len);
    inproc_settle(t->world);
}

static void send_packet(const struct roce_packet *pkt, size_t len)
{
    build(pkt, len);
    put_on_wire(frame_len);
}

/* Makes the IP and UDP lengths agree with the frame's, and the checksum right: the error is behind
 * them. */
static void fix_lengths(size_t len)
{
    struct eth_info info;

    prm_store16(frame + ETH_LEN + 2, len - ETH_LEN);
    prm_store16(frame + ETH_LEN + IP_LEN + 4, len - ETH_LEN - IP_LEN);
    ck_assert(eth_parse(frame, len, &info));
    eth_csum_fill_ipv4(frame, &info);
}

/* Writes the ICRC into the last 4 bytes of a frame of this length, whatever it contains. */
static void fix_icrc(size_t len)
{
    struct roce_packet pkt;

    if (roce_parse(frame, len, &pkt) == ROCE_BAD_ICRC) {
        roce_finish(frame, &pkt, pkt.payload_len + pkt.pad_count);
    }
}

/* -- what the driver sees -----------------------------------------------------------------------
 */

/* sysfs qkey_viol_cntr: mlx5_query_nic_vport_qkey_viol_cntr(). */
static uint32_t qkey_violations(void)
{
    struct prm_query_nic_vport_context_in in[1] = {0};
    struct prm_query_nic_vport_context_out out[1] = {0};

    PRM_SET(query_nic_vport_context_in, in, opcode, PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT);
    ck_assert_int_eq(drv_cmd(a->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(nic_vport_context, PRM_PTR(query_nic_vport_context_out, out, nic_vport_context),
                   qkey_violation_counter);
}

/* mlx5_query_hca_vport_context(). */
static uint32_t pkey_violations(void)
{
    struct prm_query_hca_vport_context_in in[1] = {0};
    struct prm_query_hca_vport_context_out out[1] = {0};
    const struct prm_hca_vport_context *ctx =
        PRM_PTR(query_hca_vport_context_out, out, hca_vport_context);

    PRM_SET(query_hca_vport_context_in, in, opcode, PRM_CMD_OP_QUERY_HCA_VPORT_CONTEXT);
    ck_assert_int_eq(drv_cmd(a->drv, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(hca_vport_context, ctx, port_state), 4); /* active */
    ck_assert_uint_eq(PRM_GET(hca_vport_context, ctx, qkey_violation_counter), qkey_violations());
    return PRM_GET(hca_vport_context, ctx, pkey_violation_counter);
}

/* hw_counters/rx_icrc_encapsulated: PPCNT, extended Ethernet group. */
static uint32_t bad_icrcs(void)
{
    struct {
        struct prm_access_register_in in[1];
        struct prm_ppcnt_reg ppcnt[1];
    } read = {0};
    struct {
        struct prm_access_register_out out[1];
        struct prm_ppcnt_reg ppcnt[1];
    } told = {0};
    const struct prm_eth_extended_cntrs_grp_data_layout *counters =
        (const void *)PRM_PTR(ppcnt_reg, told.ppcnt, counter_set);

    PRM_SET(access_register_in, read.in, opcode, PRM_CMD_OP_ACCESS_REG);
    PRM_SET(access_register_in, read.in, op_mod, PRM_ACCESS_REGISTER_OP_READ);
    PRM_SET(access_register_in, read.in, register_id, PRM_REG_ID_PPCNT);
    PRM_SET(ppcnt_reg, read.ppcnt, local_port, 1);
    PRM_SET(ppcnt_reg, read.ppcnt, grp, 5);
    ck_assert_int_eq(drv_cmd(a->drv, &read, sizeof(read), &told, sizeof(told)), 0);
    return PRM_GET(eth_extended_cntrs_grp_data_layout, counters, rx_icrc_encapsulated_low);
}

/* QUERY_VPORT_COUNTER received_errors. */
static uint64_t received_errors(void)
{
    struct prm_query_vport_counter_in in[1] = {0};
    struct prm_query_vport_counter_out out[1] = {0};

    PRM_SET(query_vport_counter_in, in, opcode, PRM_CMD_OP_QUERY_VPORT_COUNTER);
    ck_assert_int_eq(drv_cmd(a->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(traffic_counter, PRM_PTR(query_vport_counter_out, out, received_errors),
                   packets);
}

static uint32_t expected_psn(void)
{
    struct prm_qpc qpc[1];

    ck_assert_int_eq(drv_query_qp(rc, qpc), 0);
    return PRM_GET(qpc, qpc, next_rcv_psn);
}

/* The QP is unaffected, and memory is unchanged. */
static void expect_nothing(void)
{
    expect_no_wc(t, a);
    ck_assert_uint_eq(qp_state(rc), PRM_QP_STATE_RTS);
    ck_assert_uint_eq(expected_psn(), PSN);
    for (size_t i = 0; i < 8192; i++) {
        ck_assert_uint_eq(mem->ptr[i], 0);
    }
}

/* The same packet without an error arrives. */
static void expect_good_write(void)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    send_packet(&pkt, LEN);
    ck_assert_uint_eq(expected_psn(), PSN + 1);
    ck_assert_uint_eq(mem->ptr[LEN - 1], 0xa5);
    ck_assert_uint_eq(mem->ptr[LEN], 0);
}

/* -- frames -------------------------------------------------------------------------------------
 */

/* Frames are cut at any length; the lengths in the headers are unchanged, or adjusted, or the ICRC
 * is adjusted as well. In the last case the RETH still announces more bytes than there are. */
START_TEST(cut_short)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);
    uint64_t before = received_errors();
    unsigned sent = 0;

    for (size_t len = 1;; len++) {
        build(&pkt, LEN);
        if (len == frame_len) {
            break;
        }
        if (_i > 0 && len >= HDR_LEN) {
            fix_lengths(len);
        }
        put_on_wire(len);
        sent += len >= ETH_LEN;
        if (len % 64 == 0) {
            expect_nothing();
        }
    }
    expect_nothing();
    /* a frame that is no longer recognized as RoCE goes to the Ethernet side, which has its own
     * counters */
    ck_assert_uint_ge(received_errors() - before, sent - HDR_LEN - 4);
    expect_good_write();
}
END_TEST

/* IBTA 9.7.4: a packet that carries fewer or more bytes than its RETH announces, because it is
 * shorter or because its pad is another, is an invalid request. */
START_TEST(length_that_is_not_the_announced_one)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    build(&pkt, _i == 0 ? LEN - 4 : LEN);
    if (_i > 0) {
        frame[HDR_LEN + 1] ^= (uint8_t)(_i << 4);
        fix_icrc(frame_len);
    }
    put_on_wire(frame_len);
    ck_assert_uint_eq(qp_state(rc), PRM_QP_STATE_ERR);
    expect_event(a, PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, rc->qpn);
    ck_assert_uint_eq(mem->ptr[0], 0);
}
END_TEST

/* A17.3: fields that routers change are not in the ICRC: TOS, TTL, IPv4 checksum, UDP checksum, and
 * the BTH's FECN, BECN and reserved bits. Every other wrong bit is found. */
static bool is_covered(size_t at)
{
    static const size_t open[] = {ETH_LEN + 1,  ETH_LEN + 8,          ETH_LEN + 10,
                                  ETH_LEN + 11, ETH_LEN + IP_LEN + 6, ETH_LEN + IP_LEN + 7,
                                  HDR_LEN + 4};

    for (size_t i = 0; i < G_N_ELEMENTS(open); i++) {
        if (at == open[i]) {
            return false;
        }
    }
    return at >= ETH_LEN;
}

START_TEST(wrong_in_one_bit)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);
    uint32_t before = bad_icrcs();
    struct eth_info info;

    build(&pkt, LEN);
    for (size_t at = 0; at < frame_len; at++) {
        if (!is_covered(at)) {
            continue;
        }
        for (int bit = 0; bit < 8; bit += 3) {
            frame[at] ^= (uint8_t)(1 << bit);
            eth_parse(frame, frame_len, &info);
            eth_csum_fill_ipv4(frame, &info);
            put_on_wire(frame_len);
            build(&pkt, LEN);
        }
    }
    expect_nothing();
    ck_assert_uint_ge(bad_icrcs() - before, 3 * (LEN + 4)); /* at least the payload and the ICRC */
    expect_good_write();
}
END_TEST

/* IBTA 9.6.1: what a packet needs to reach a QP. Each of these is dropped without an answer. */
START_TEST(wrong_header)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    build(&pkt, LEN);
    switch (_i) {
    case 0: /* C9-11: TVer */
        frame[HDR_LEN + 1] |= 1;
        break;
    case 1: /* a pad of more bytes than the packet has */
        build(&pkt, 0);
        frame[HDR_LEN + 1] |= 0x30;
        break;
    case 2: /* IP version */
        frame[ETH_LEN] = 0x65;
        break;
    case 3: /* header checksum */
        frame[ETH_LEN + 10] ^= 1;
        break;
    case 4: /* a fragment */
        frame[ETH_LEN + 6] = 0x20;
        break;
    case 5: /* another UDP port */
        frame[ETH_LEN + IP_LEN + 3]++;
        break;
    case 6: /* another host's MAC */
        frame[5] ^= 0x40;
        break;
    case 7: /* a group without members */
        frame[0] |= 1;
        break;
    }
    if (_i != 3) {
        struct eth_info info;

        eth_parse(frame, frame_len, &info);
        eth_csum_fill_ipv4(frame, &info);
        fix_icrc(frame_len);
    }
    put_on_wire(frame_len);
    expect_nothing();
    expect_good_write();
}
END_TEST

/* Changes each field of the packet that decides whether the QP may receive it. */
START_TEST(not_for_this_qp)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    switch (_i) {
    case 0:
        pkt.dest_qp = 0x7fffff;
        break;
    case 1: /* IBTA 10.9.3: another partition */
        pkt.pkey = 0x8001;
        break;
    case 2:
        pkt.addr.dgid[15] ^= 0x40;
        break;
    case 3:
        pkt.addr.sgid[15] ^= 0x40;
        break;
    case 4:
        pkt.addr.has_vlan = true;
        pkt.addr.vlan_tci = 9;
        break;
    case 5:
        pkt.dest_qp = ud->qpn;
        break;
    }
    send_packet(&pkt, LEN);
    expect_nothing();
    expect_good_write();
}
END_TEST

/* Every opcode except those of a reliable connection, and the undefined opcodes among them. */
START_TEST(opcodes_of_other_services)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    for (unsigned opcode = 0; opcode < 256; opcode++) {
        if (bth_opcodes[opcode].name && bth_opcodes[opcode].transport == BTH_RC) {
            continue;
        }
        build(&pkt, LEN);
        frame[HDR_LEN] = (uint8_t)opcode;
        fix_icrc(frame_len);
        put_on_wire(frame_len);
        if (bth_opcodes[opcode].name) {
            /* made well formed for its own service */
            pkt.opcode = (uint8_t)opcode;
            send_packet(&pkt, bth_opcodes[opcode].flags & HDR_PAYLOAD ? LEN : 0);
            pkt.opcode = BTH_RC | BTH_WRITE_ONLY;
        }
    }
    expect_nothing();
    expect_good_write();
}
END_TEST

/* C9-110 and on: a PSN in the half behind is a duplicate, in the half ahead a gap. Neither is
 * executed. */
START_TEST(psn_far_away)
{
    static const int32_t away[] = {1, 2, 1000, 0x7ffffe, -1, -2, -1000, -0x7fffff};
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    for (size_t i = 0; i < G_N_ELEMENTS(away); i++) {
        pkt.psn = (PSN + (uint32_t)away[i]) & 0xffffff;
        send_packet(&pkt, LEN);
    }
    expect_nothing();
    expect_good_write();
}
END_TEST

/* C9-92: a packet longer than the path MTU is an invalid request. */
START_TEST(payload_beyond_the_path_mtu)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);

    pkt.reth.len = MTU + 1;
    send_packet(&pkt, MTU + 1);
    ck_assert_uint_eq(qp_state(rc), PRM_QP_STATE_ERR);
    expect_event(a, PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, rc->qpn);
    ck_assert_uint_eq(mem->ptr[0], 0);
}
END_TEST

/* A frame longer than the port's MTU is counted and dropped. */
START_TEST(frame_beyond_the_port_mtu)
{
    struct roce_packet pkt = packet(BTH_RC | BTH_WRITE_ONLY, rc);
    uint64_t before = received_errors();

    pkt.reth.len = 4096;
    send_packet(&pkt, 4096);
    expect_nothing();
    ck_assert_uint_eq(received_errors() - before, 1);
    expect_good_write();
}
END_TEST

/* IBTA 10.2.5: a datagram with another Q_Key takes no WQE and is counted (port's violations). */
START_TEST(wrong_qkey)
{
    struct roce_packet pkt = packet(BTH_UD | BTH_SEND_ONLY, ud);
    struct drv_sge sge = buf_sge(mem, 8192, 2048);

    drv_post_recv(ud, &sge, 1);
    ck_assert_uint_eq(qkey_violations(), 0);
    pkt.deth.qkey++;
    send_packet(&pkt, 100);
    send_packet(&pkt, 100);
    expect_nothing();
    ck_assert_uint_eq(qkey_violations(), 2);
    pkt.deth.qkey--;
    send_packet(&pkt, 100);
    expect_wc(a, ud, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(qkey_violations(), 2);
}
END_TEST

/* IBTA 9.6.1, 10.9.3: a packet of another partition, or from a limited member to a limited member,
 * is not accepted and is counted, whatever the service. If its Q_Key is wrong, too, it counts as a
 * wrong P_Key. */
START_TEST(wrong_pkey)
{
    struct roce_packet of_rc = packet(BTH_RC | BTH_WRITE_ONLY, rc);
    struct roce_packet of_ud = packet(BTH_UD | BTH_SEND_ONLY, ud);
    struct drv_sge sge = buf_sge(mem, 8192, 2048);

    drv_post_recv(ud, &sge, 1);
    ck_assert_uint_eq(pkey_violations(), 0);
    of_rc.pkey = 0xfffe;
    send_packet(&of_rc, LEN);
    of_ud.pkey = 0x0001;
    send_packet(&of_ud, 100);
    of_ud.pkey = 0x8001;
    of_ud.deth.qkey++;
    send_packet(&of_ud, 100);
    expect_nothing();
    ck_assert_uint_eq(pkey_violations(), 3);
    ck_assert_uint_eq(qkey_violations(), 0);
    of_ud.pkey = 0x7fff; /* a limited member may send to a full member */
    of_ud.deth.qkey--;
    send_packet(&of_ud, 100);
    expect_wc(a, ud, PRM_CQE_OPCODE_RESP_SEND);
    expect_good_write();
    ck_assert_uint_eq(pkey_violations(), 3);
}
END_TEST

/* The counter has 16 bits and stays at its largest value. */
START_TEST(qkey_violations_stop_counting)
{
    struct roce_packet pkt = packet(BTH_UD | BTH_SEND_ONLY, ud);

    pkt.deth.qkey++;
    for (int i = 0; i < 0x10005; i++) {
        send_packet(&pkt, 0);
    }
    ck_assert_uint_eq(qkey_violations(), 0xffff);
}
END_TEST

/* A response of each kind without a request that waits for it: a ghost (IBTA 9.7.6.1). */
START_TEST(responses_to_nothing)
{
    static const uint8_t opcodes[] = {
        BTH_ACK,
        BTH_ATOMIC_ACK,
        BTH_READ_RESP_ONLY,
        BTH_READ_RESP_FIRST,
        BTH_READ_RESP_MIDDLE,
        BTH_READ_RESP_LAST,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        struct roce_packet pkt = packet(BTH_RC | opcodes[i], rc);
        bool data = bth_opcodes[opcodes[i]].flags & HDR_PAYLOAD;

        for (unsigned syndrome = 0; syndrome < 256; syndrome += 5) {
            for (uint32_t psn = 0; psn < 3; psn++) {
                pkt.psn = (psn - 1) & 0xffffff;
                pkt.aeth.syndrome = (uint8_t)syndrome;
                send_packet(&pkt, data ? MTU : 0);
            }
        }
    }
    expect_nothing();
    expect_good_write();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hostile peer, frames");
    TCase *tc = tcase_create("frames");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, cut_short, 0, 2);
    tcase_add_loop_test(tc, length_that_is_not_the_announced_one, 0, 4);
    tcase_add_test(tc, wrong_in_one_bit);
    tcase_add_loop_test(tc, wrong_header, 0, 8);
    tcase_add_loop_test(tc, not_for_this_qp, 0, 6);
    tcase_add_test(tc, opcodes_of_other_services);
    tcase_add_test(tc, psn_far_away);
    tcase_add_test(tc, payload_beyond_the_path_mtu);
    tcase_add_test(tc, frame_beyond_the_port_mtu);
    tcase_add_test(tc, wrong_qkey);
    tcase_add_test(tc, wrong_pkey);
    tcase_add_test(tc, qkey_violations_stop_counting);
    tcase_add_test(tc, responses_to_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
