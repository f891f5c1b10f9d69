/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests receiving on unreliable connections and datagram QPs, including the GSI QP and multicast
 * groups. The path MTU of the connections is 256 bytes.
 */
#include <stdlib.h>
#include <string.h>
#include "model/rdma/mcg.h"
#include "model/rdma/rdma.h"
#include "model/queue/q_counter.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define MTU  256
#define QKEY 0x11223344
#define GRH  40

static struct bench b;
static struct bench_qp qp;
static uint8_t data[8192];
static uint64_t mem;
static uint32_t all;

static void setup(void)
{
    bench_init(&b);
    mem = fake_host_alloc(&b.host, 64 << 10, 4096);
    all = bench_mkey(&b, mem, 64 << 10,
                     MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE);
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 5 + i / 256 + 1);
    }
}

static void teardown(void)
{
    bench_clear(&b);
}

static void *at(uint64_t addr, size_t len)
{
    return fake_host_ptr(&b.host, addr, len);
}

static const struct prm_cqe64 *expect_cqe(uint8_t opcode, uint32_t byte_cnt)
{
    const struct prm_cqe64 *cqe = bench_poll(&b, &b.cq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), opcode);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), byte_cnt);
    return cqe;
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

static void expect_silence(void)
{
    struct roce_packet pkt;

    ck_assert(!bench_tx(&b, &pkt));
}

/* -- unreliable connection --------------------------------------------------------------------- */

static void setup_uc(void)
{
    setup();
    bench_qp_rts(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_UC}, &qp);
}

static void uc(uint8_t op, uint32_t psn, size_t len)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_UC | op, psn);

    pkt.reth.va = mem;
    pkt.reth.rkey = all;
    pkt.reth.len = (uint32_t)len;
    bench_rx(&b, &pkt, data, len);
}

START_TEST(uc_messages_arrive_and_are_not_acknowledged)
{
    bench_post_recv(&qp, mem, 1000, all);
    uc(BTH_SEND_FIRST, 0, MTU);
    uc(BTH_SEND_LAST, 1, 4);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, MTU + 4);
    uc(BTH_WRITE_ONLY, 2, 40);
    ck_assert_mem_eq(at(mem, 40), data, 40);
    expect_no_cqe();
    expect_silence();
}
END_TEST

/* IBTA 9.8.2: a message with a missing packet is dropped; its WQE serves the next message. */
START_TEST(a_uc_message_with_a_hole_is_dropped)
{
    bench_post_recv(&qp, mem, 1000, all);
    uc(BTH_SEND_FIRST, 0, MTU);
    uc(BTH_SEND_LAST, 2, 4);
    uc(BTH_SEND_MIDDLE, 3, MTU);
    uc(BTH_SEND_LAST, 4, 4);
    uc(BTH_SEND_LAST, 1, 4); /* late, and of a message that was dropped */
    expect_no_cqe();
    uc(BTH_SEND_ONLY, 9, 7);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 7);
    expect_no_cqe();
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
    expect_silence();
}
END_TEST

START_TEST(a_new_uc_message_ends_the_one_before)
{
    bench_post_recv(&qp, mem, 1000, all);
    uc(BTH_SEND_FIRST, 0, MTU);
    uc(BTH_SEND_FIRST, 7, MTU);
    uc(BTH_SEND_LAST, 8, 4);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, MTU + 4);
    expect_no_cqe();
}
END_TEST

/* A packet that would end a reliable QP is dropped here; the sender gets no answer anyway. */
START_TEST(a_bad_uc_request_is_dropped_silently)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_UC | BTH_WRITE_ONLY, 0);

    pkt.reth.va = mem;
    pkt.reth.rkey = all ^ 1;
    pkt.reth.len = 4;
    bench_rx(&b, &pkt, data, 4);
    uc(BTH_SEND_LAST, 1, 4);
    uc(BTH_SEND_FIRST, 2, MTU - 4);
    uc(BTH_SEND_ONLY, 3, 4); /* no WQE */
    bench_post_recv(&qp, mem, 10, all);
    uc(BTH_SEND_ONLY, 4, 11);
    ck_assert_uint_eq(*(uint8_t *)at(mem, 1), 0);
    expect_silence();
    expect_no_cqe();
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
    ck_assert_int_eq(bench_event(&b, qp.qpn), -1);
    ck_assert_uint_eq(qp_counters(qp.qp)->out_of_buffer, 1);
    uc(BTH_SEND_ONLY, 5, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, 10);
}
END_TEST

START_TEST(a_wqe_taken_by_a_lost_uc_message_is_flushed)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_UC};

    bench_post_recv(&qp, mem, 1000, all);
    uc(BTH_SEND_FIRST, 0, MTU);
    uc(BTH_SEND_LAST, 2, 4);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &attr), SYN_OK);
    bench_run(&b);
    expect_error_cqe(PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    expect_no_cqe();
}
END_TEST

START_TEST(a_bad_lkey_ends_a_uc_qp)
{
    bench_post_recv(&qp, mem, 1000, 0xbad00);
    uc(BTH_SEND_ONLY, 0, 4);
    expect_error_cqe(PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_ERR);
    expect_silence();
}
END_TEST

/* -- datagrams --------------------------------------------------------------------------------- */

static void setup_ud(void)
{
    setup();
    bench_qp_rts(&b,
                 &(struct bench_qp_attr){
                     .st = PRM_QP_ST_UD,
                     .mtu = PRM_QP_MTU_4096,
                     .qkey = QKEY,
                 },
                 &qp);
}

static struct roce_packet datagram(void)
{
    struct roce_packet pkt = bench_packet(&qp, BTH_UD | BTH_SEND_ONLY, 77);

    pkt.deth.qkey = QKEY;
    pkt.deth.src_qp = 0x777;
    return pkt;
}

/* Annex A17: the IPv4 header is in the last 20 of the buffer's first 40 bytes. */
START_TEST(a_datagram_lands_behind_its_ipv4_header)
{
    struct roce_packet pkt = datagram();
    const struct prm_cqe64 *cqe;
    const uint8_t *ip;

    bench_post_recv(&qp, mem, 1000, all);
    bench_rx(&b, &pkt, data, 100);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 100);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rqpn), 0x777);
    ck_assert_uint_ne(PRM_GET(cqe64, cqe, grh), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, roce_l3_hdr_type), 2);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 0);
    ck_assert_mem_eq(at(mem + GRH, 100), data, 100);
    ip = at(mem + 20, 20);
    ck_assert_uint_eq(ip[0], 0x45);
    ck_assert_uint_eq(ip[9], 17);
    ck_assert_mem_eq(ip + 12, pkt.addr.sgid + 12, 4);
    ck_assert_mem_eq(ip + 16, pkt.addr.dgid + 12, 4);
    expect_silence();
}
END_TEST

/* Annex A16: the first 40 bytes are the GRH. */
START_TEST(a_datagram_of_version_1_lands_behind_its_grh)
{
    struct vport_gid gid = b.hca.vport->gids[BENCH_IPV6];
    struct roce_packet pkt;
    const struct prm_cqe64 *cqe;
    const uint8_t *grh;

    qp.gid = BENCH_IPV6;
    pkt = datagram();
    pkt.addr.is_v1 = true;
    gid.version = PRM_ROCE_VERSION_V1;
    vport_set_gid(b.hca.vport, BENCH_IPV6, &gid);
    bench_post_recv(&qp, mem, 1000, all);
    bench_rx(&b, &pkt, data, 12);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 12);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, roce_l3_hdr_type), PRM_CQE_ROCE_L3_GRH);
    grh = at(mem, 40);
    ck_assert_uint_eq(grh[0] >> 4, 6);
    ck_assert_uint_eq(grh[6], 27);
    ck_assert_mem_eq(grh + 8, pkt.addr.sgid, 16);
    ck_assert_mem_eq(grh + 24, pkt.addr.dgid, 16);
    ck_assert_mem_eq(at(mem + GRH, 12), data, 12);
    pkt.addr.is_v1 = false; /* the GID is of version 1 alone now */
    bench_rx(&b, &pkt, data, 12);
    expect_silence();
    ck_assert_uint_eq(b.hca.vport->counters.rx_bad_gid, 1);
}
END_TEST

START_TEST(a_datagram_lands_behind_its_ipv6_header)
{
    struct roce_packet pkt;
    const struct prm_cqe64 *cqe;
    const uint8_t *ip;

    qp.gid = BENCH_IPV6;
    pkt = datagram();
    bench_post_recv(&qp, mem, 1000, all);
    bench_rx(&b, &pkt, data, 0);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, roce_l3_hdr_type), 1);
    ip = at(mem, 40);
    ck_assert_uint_eq(ip[0] >> 4, 6);
    ck_assert_mem_eq(ip + 8, pkt.addr.sgid, 16);
    ck_assert_mem_eq(ip + 24, pkt.addr.dgid, 16);
}
END_TEST

START_TEST(a_datagram_carries_immediate_solicited_event_and_vlan)
{
    struct vport_gid gid = b.hca.vport->gids[BENCH_IPV4];
    struct roce_packet pkt = datagram();
    const struct prm_cqe64 *cqe;

    gid.has_vlan = true;
    gid.vlan_id = 9;
    vport_set_gid(b.hca.vport, BENCH_IPV4, &gid);
    pkt.addr.has_vlan = true;
    pkt.addr.vlan_tci = 3 << 13 | 9;
    pkt.opcode = BTH_UD | BTH_SEND_ONLY_IMM;
    pkt.imm = 0xcafe;
    pkt.solicited = true;
    bench_post_recv(&qp, mem, 1000, all);
    bench_rx(&b, &pkt, data, 1);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND_IMM, GRH + 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, immediate), 0xcafe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, se), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, vlan_info), 3 << 13 | 9);
    ck_assert_mem_eq(at(mem + 32, 4), pkt.addr.sgid + 12, 4);
}
END_TEST

/* IBTA 10.2.5: a datagram with another Q_Key is dropped and counted. */
START_TEST(a_wrong_q_key_is_counted)
{
    struct roce_packet pkt = datagram();

    bench_post_recv(&qp, mem, 1000, all);
    pkt.deth.qkey++;
    bench_rx(&b, &pkt, data, 4);
    expect_no_cqe();
    ck_assert_uint_eq(b.hca.vport->counters.rx_bad_qkey, 1);
}
END_TEST

START_TEST(a_datagram_without_a_wqe_is_counted)
{
    struct roce_packet pkt = datagram();

    bench_rx(&b, &pkt, data, 4);
    expect_no_cqe();
    expect_silence();
    ck_assert_uint_eq(qp_counters(qp.qp)->out_of_buffer, 1);
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* IBTA 9.9.3, class D: the datagram is dropped, and its receive WQE waits for the next one. */
START_TEST(a_datagram_longer_than_its_buffer_is_dropped)
{
    struct roce_packet pkt = datagram();

    bench_post_recv(&qp, mem, GRH + 3, all);
    bench_rx(&b, &pkt, data, 4);
    expect_no_cqe();
    expect_silence();
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
    ck_assert_uint_eq(*(uint8_t *)at(mem + 20, 1), 0);
    ck_assert_uint_eq(qp_counters(qp.qp)->resp_local_length_error, 1);
    bench_rx(&b, &pkt, data, 3);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 3);
    ck_assert_mem_eq(at(mem + GRH, 3), data, 3);
}
END_TEST

START_TEST(a_datagram_longer_than_the_mtu_is_dropped)
{
    struct roce_packet pkt = datagram();

    bench_post_recv(&qp, mem, 10, all);
    bench_rx(&b, &pkt, data, 4100);
    expect_no_cqe();
    ck_assert_uint_eq(qp.qp->state, PRM_QP_STATE_RTS);
}
END_TEST

/* IBTA 3.5.10: management packets go to QP 1, whatever its QP's number. */
START_TEST(a_packet_for_qp_1_goes_to_the_gsi_qp)
{
    struct roce_packet pkt;
    const struct prm_cqe64 *cqe;

    bench_qp_rts(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_QP1, .qkey = 0x80010000}, &qp);
    pkt = datagram();
    pkt.deth.qkey = 0x80010000;
    pkt.deth.src_qp = 1;
    pkt.dest_qp = 1;
    bench_post_recv(&qp, mem, GRH + 256, all);
    bench_rx(&b, &pkt, data, 256);
    cqe = expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 256);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), qp.qpn);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rqpn), 1);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, pkey), 0xffff);

    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    bench_rx(&b, &pkt, data, 256);
    ck_assert_uint_eq(b.hca.vport->counters.rx_no_qp, 1);
}
END_TEST

/* QUERY_HCA_CAP reports the limits of groups and of a group's members. */
START_TEST(groups_and_members_have_a_limit)
{
    uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 0, 0, 0};
    struct bench_qp others[MCG_MAX_QPS];

    for (unsigned i = 0; i < 1u << MCG_LOG_MAX; i++) {
        mgid[15] = (uint8_t)i;
        ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    }
    mgid[14] = 1;
    ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_NO_MEMORY);
    mgid[14] = 0;
    for (unsigned i = 0; i < MCG_MAX_QPS; i++) {
        bench_qp(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_UD}, &others[i]);
        ck_assert_int_eq(mcg_attach(&b.hca, 0, others[i].qpn, mgid),
                         i < MCG_MAX_QPS - 1 ? SYN_OK : SYN_NO_MEMORY);
    }
    ck_assert_int_eq(mcg_detach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    ck_assert_int_eq(mcg_attach(&b.hca, 0, others[MCG_MAX_QPS - 1].qpn, mgid), SYN_OK);
}
END_TEST

static bool is_group_mac(unsigned x, unsigned y, unsigned z)
{
    const uint8_t mac[6] = {0x01, 0x00, 0x5e, (uint8_t)x, (uint8_t)y, (uint8_t)z};

    return mcg_has_mac(&b.hca, mac);
}

/* RFC 1112 6.4: 32 groups share one MAC; it is accepted until the last of them is gone. */
START_TEST(every_group_is_found_and_so_is_its_mac)
{
    uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 0, 7, 0};
    unsigned by_gid = 0, by_mac = 0;

    for (unsigned i = 0; i < 1u << MCG_LOG_MAX; i++) {
        mgid[12] = 224 + i % 2;
        mgid[15] = (uint8_t)(i / 2);
        ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    }
    /* Addresses that differ only in their last byte, as they do, are spread over the table. */
    for (unsigned i = 0; i < MCG_SLOTS; i++) {
        by_gid += b.hca.rdma->mcgs.by_gid[i] != NULL;
        by_mac += b.hca.rdma->mcgs.by_mac[i] != NULL;
    }
    ck_assert_uint_gt(by_gid, (1u << MCG_LOG_MAX) / 2);
    ck_assert_uint_gt(by_mac, (1u << MCG_LOG_MAX) / 4); /* each has two groups */
    for (unsigned i = 0; i < 1u << MCG_LOG_MAX; i++) {
        mgid[12] = 224 + i % 2;
        mgid[15] = (uint8_t)(i / 2);
        ck_assert_mem_eq(mcg_find(&b.hca, mgid)->mgid, mgid, 16);
        ck_assert(is_group_mac(0, 7, i / 2));
        ck_assert_int_eq(mcg_detach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
        ck_assert_ptr_null(mcg_find(&b.hca, mgid));
        ck_assert_int_eq(is_group_mac(0, 7, i / 2), i % 2 == 0);
    }
    mgid[12] = 224;
    ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    ck_assert_ptr_null(mcg_find(&b.hca, mgid));
}
END_TEST

START_TEST(a_multicast_goes_to_every_member)
{
    static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
    static const uint8_t mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
    struct bench_qp other;
    struct roce_packet pkt;

    bench_qp_rts(&b,
                 &(struct bench_qp_attr){
                     .st = PRM_QP_ST_UD,
                     .mtu = PRM_QP_MTU_4096,
                     .qkey = QKEY,
                 },
                 &other);
    ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    ck_assert_int_eq(mcg_attach(&b.hca, 0, other.qpn, mgid), SYN_OK);
    for (int i = 0; i < 4; i++) {
        bench_post_recv(&qp, mem, 1000, all);
        bench_post_recv(&other, mem + 0x1000, 1000, all);
    }
    pkt = datagram();
    memcpy(pkt.addr.dmac, mac, 6);
    memcpy(pkt.addr.dgid, mgid, 16);
    pkt.dest_qp = 0xffffff;
    bench_rx(&b, &pkt, data, 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 10);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 10);
    expect_no_cqe();

    ck_assert_int_eq(mcg_detach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    ck_assert_int_eq(mcg_detach(&b.hca, 0, qp.qpn, mgid), SYN_QP_MCG);
    bench_rx(&b, &pkt, data, 10);
    ck_assert_uint_eq(PRM_GET(cqe64, expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 10), qpn),
                      other.qpn);
    expect_no_cqe();
    ck_assert_uint_eq(b.hca.vport->counters.rx_roce.frames[FRAME_MULTICAST], 2);
    ck_assert_uint_eq(b.hca.vport->counters.rx_roce.frames[FRAME_UNICAST], 0);

    /* A destroyed member is no longer a member. */
    ck_assert_int_eq(qp_destroy(&b.hca, 0, other.qpn), SYN_OK);
    bench_rx(&b, &pkt, data, 10);
    expect_no_cqe();
}
END_TEST

static void send_datagram(const struct roce_packet *pkt)
{
    uint8_t *frame = port_tx_reserve(&b.hca, pkt->addr.dmac, 0, 256);

    memcpy(roce_build(frame, pkt, 12), data, 12);
    port_tx_commit_roce(&b.hca, pkt, 12);
}

/* A member's message to its group comes back to all members of this HCA (IBTA 10.5.2). */
START_TEST(own_multicasts_come_back_unless_they_are_blocked)
{
    static const uint8_t mgid[16] = {0xff, 0x0e, [12] = 9, 8, 7, 6};
    static const uint8_t mac[6] = {0x33, 0x33, 9, 8, 7, 6};
    struct roce_packet pkt = datagram();

    memcpy(pkt.addr.smac, pkt.addr.dmac, 6);
    memcpy(pkt.addr.dmac, mac, 6);
    pkt.addr.is_ipv4 = false;
    memcpy(pkt.addr.sgid, b.hca.vport->gids[BENCH_IPV6].gid, 16);
    memcpy(pkt.addr.dgid, mgid, 16);
    pkt.dest_qp = 0xffffff;
    bench_post_recv(&qp, mem, 1000, all);
    bench_post_recv(&qp, mem, 1000, all);

    send_datagram(&pkt);
    bench_run(&b);
    expect_no_cqe();
    ck_assert_int_eq(mcg_attach(&b.hca, 0, qp.qpn, mgid), SYN_OK);
    send_datagram(&pkt);
    bench_run(&b);
    expect_cqe(PRM_CQE_OPCODE_RESP_SEND, GRH + 12);

    qp.qp->block_lb_mc = true;
    bench_rx(&b, &pkt, data, 12);
    send_datagram(&pkt);
    bench_run(&b);
    expect_no_cqe();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("unreliable");
    TCase *conn = tcase_create("uc"), *dgram = tcase_create("ud");

    tcase_add_checked_fixture(conn, setup_uc, teardown);
    tcase_add_test(conn, uc_messages_arrive_and_are_not_acknowledged);
    tcase_add_test(conn, a_uc_message_with_a_hole_is_dropped);
    tcase_add_test(conn, a_new_uc_message_ends_the_one_before);
    tcase_add_test(conn, a_bad_uc_request_is_dropped_silently);
    tcase_add_test(conn, a_wqe_taken_by_a_lost_uc_message_is_flushed);
    tcase_add_test(conn, a_bad_lkey_ends_a_uc_qp);
    suite_add_tcase(s, conn);
    tcase_add_checked_fixture(dgram, setup_ud, teardown);
    tcase_add_test(dgram, a_datagram_lands_behind_its_ipv4_header);
    tcase_add_test(dgram, a_datagram_lands_behind_its_ipv6_header);
    tcase_add_test(dgram, a_datagram_of_version_1_lands_behind_its_grh);
    tcase_add_test(dgram, a_datagram_carries_immediate_solicited_event_and_vlan);
    tcase_add_test(dgram, a_wrong_q_key_is_counted);
    tcase_add_test(dgram, a_datagram_without_a_wqe_is_counted);
    tcase_add_test(dgram, a_datagram_longer_than_its_buffer_is_dropped);
    tcase_add_test(dgram, a_datagram_longer_than_the_mtu_is_dropped);
    tcase_add_test(dgram, a_packet_for_qp_1_goes_to_the_gsi_qp);
    tcase_add_test(dgram, groups_and_members_have_a_limit);
    tcase_add_test(dgram, every_group_is_found_and_so_is_its_mac);
    tcase_add_test(dgram, a_multicast_goes_to_every_member);
    tcase_add_test(dgram, own_multicasts_come_back_unless_they_are_blocked);
    suite_add_tcase(s, dgram);
    return s;
}
