/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what a connection's path depends on: the port's RoCE address table and its MTU. */
#include "model/rdma/mcg.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define GID_INDEX 3 /* of both sides (lab.c) */

static const struct vport_gid *entry(struct lab_side *side)
{
    return &side->hca.vport->gids[GID_INDEX];
}

static void set_entry(struct lab_side *side, const struct vport_gid *gid)
{
    vport_set_gid(side->hca.vport, GID_INDEX, gid);
}

static const struct roce_addr *last_address(void)
{
    ck_assert_uint_gt(lab->num_packets, 0);
    return &lab->trace[lab->num_packets - 1].pkt.addr;
}

/* The driver gives a QP the index of its source address (ads.src_addr_index); SET_ROCE_ADDRESS may
 * change the entry. */
START_TEST(packets_leave_from_the_address_that_is_there_now)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct vport_gid first = *entry(left), other = first;

    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);

    other.gid[15] = 99;
    other.mac[5] ^= 0x40;
    other.has_vlan = true;
    other.vlan_id = 7;
    set_entry(left, &other);
    write_from(src, 64, dst);
    lab_run(lab);
    ck_assert_uint_eq(last_address()->sgid[15], 99);
    ck_assert_mem_eq(last_address()->smac, entry(left)->mac, 6);
    ck_assert(last_address()->has_vlan);
    ck_assert_uint_eq(last_address()->vlan_tci & 0xfff, 7);
    expect_none(left); /* this is not the address that the other side is connected to */

    set_entry(left, &first);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
}
END_TEST

START_TEST(another_entry_is_no_concern)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct vport_gid other = *entry(left);

    other.gid[15] = 99;
    vport_set_gid(left->hca.vport, GID_INDEX + 1, &other);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

/* The same for a datagram whose address vector names an empty entry. */
START_TEST(without_a_source_address_nothing_is_sent)
{
    set_entry(left, NULL);
    write_from(lab_mem(left, 64, 1), 64, lab_mem(right, 64, 0));
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 0);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
}
END_TEST

/* The program chooses a connection's path MTU. The port drops packets that are too long for it, and
 * the requester gives up after its retries. */
START_TEST(the_port_drops_what_its_mtu_does_not_allow)
{
    uint64_t src = lab_mem(left, 1024, 1), dst = lab_mem(right, 1024, 0);

    left->hca.vport->uplink->mtu = 600;
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    ck_assert_uint_eq(left->hca.vport->counters.tx_oversize, 0);

    write_from(src, 1024, dst);
    lab_run(lab);
    ck_assert_uint_eq(left->hca.vport->counters.tx_oversize, 1);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_WRITE_ONLY), 1);
    expect_none(left);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}
END_TEST

/* An IPv4 address can be written as an IPv6 address (RFC 4291, 2.5.5.2). The source's entry
 * decides what is sent (roce_l3_type): from an IPv6 entry the packets are IPv6, whatever the
 * destination. */
START_TEST(the_gid_entry_of_the_source_decides_the_version_of_ip)
{
    struct vport_gid from = *entry(left), to = *entry(right);

    memset(from.gid, 0, sizeof(from.gid));
    from.gid[0] = 0xfd;
    from.gid[15] = 1;
    from.l3_type = to.l3_type = PRM_ROCE_L3_TYPE_IPV6;
    set_entry(left, &from);
    set_entry(right, &to); /* ::ffff:10.0.0.2 still */
    lab_rc_pair(lab, &a, &b, &lab_path);
    lab_post(&a, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                                  .inline_data = "sent",
                                  .inline_len = 4,
                                  .raddr = lab_mem(right, 4, 0),
                                  .rkey = right->key});
    lab_run(lab);
    ck_assert_uint_eq(lab->num_packets, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct roce_addr *addr = &lab->trace[i].pkt.addr;

        ck_assert(!addr->is_ipv4);
        ck_assert_mem_eq(addr->sgid, i ? to.gid : from.gid, 16);
        ck_assert_mem_eq(addr->dgid, i ? from.gid : to.gid, 16);
    }
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

static void write_inline(void)
{
    lab_rc_pair(lab, &a, &b, &lab_path);
    lab_post(&a, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                                  .inline_data = "sent",
                                  .inline_len = 4,
                                  .raddr = lab_mem(right, 4, 0),
                                  .rkey = right->key});
    lab_run(lab);
}

/* Annex A16: from an entry of RoCE version 1 the packets have a GRH, whatever its l3_type (driver
 * set_roce_addr() leaves it 0). */
START_TEST(the_gid_entry_of_the_source_decides_the_version_of_roce)
{
    struct vport_gid from = *entry(left), to = *entry(right);

    from.version = to.version = PRM_ROCE_VERSION_V1;
    from.l3_type = to.l3_type = PRM_ROCE_L3_TYPE_IPV4;
    left->hca.vport->uplink->cong.rp_side.enabled = 0xff;
    left->hca.vport->uplink->cong.rp_side.tagged = 0xff;
    set_entry(left, &from);
    set_entry(right, &to);
    write_inline();
    ck_assert_uint_eq(lab->num_packets, 2);
    for (unsigned i = 0; i < 2; i++) {
        const struct roce_addr *addr = &lab->trace[i].pkt.addr;

        ck_assert(addr->is_v1 && !addr->is_ipv4);
        ck_assert_uint_eq(addr->tclass & 3, 0); /* although IP packets would be tagged */
        ck_assert_mem_eq(addr->sgid, i ? to.gid : from.gid, 16);
        ck_assert_mem_eq(addr->dgid, i ? from.gid : to.gid, 16);
    }
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

/* Packets of version 1 are not those of a connection of version 2 between the same GIDs. */
START_TEST(a_connection_has_one_version_of_roce)
{
    struct vport_gid first = *entry(left), other = first, also = *entry(right);

    other.version = also.version = PRM_ROCE_VERSION_V1;
    set_entry(left, &other);
    vport_set_gid(right->hca.vport, GID_INDEX + 1, &also);
    write_inline();
    ck_assert_uint_eq(lab->num_packets, 1);
    ck_assert_uint_eq(right->hca.vport->counters.rx_bad_gid, 1);
    set_entry(left, &first);
    lab_advance(lab, 2 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
}
END_TEST

static void setup_datagrams(void)
{
    setup_bare();
    pair_of(PRM_QP_ST_UD);
}

/* A datagram has the VLAN of its source's entry; the priority is in the upper three of the four
 * bits of the address vector's sl (driver: create_ib_ah()). */
START_TEST(a_datagram_has_the_vlan_of_its_source_and_the_priority_of_its_address)
{
    struct vport_gid from = *entry(left), to = *entry(right);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .sge = {{lab_mem(left, 64, 1), 64, 0}},
                        .num_sge = 1,
                        .dest_qpn = b.qp->obj.num,
                        .qkey = lab_path.qkey};
    uint8_t *wqe;

    from.has_vlan = to.has_vlan = true;
    from.vlan_id = to.vlan_id = 7;
    set_entry(left, &from);
    set_entry(right, &to);
    lab_post_recv(&b, lab_mem(right, 256, 0), 256);
    wqe = lab_write_wqe(&a, &wr);
    PRM_SET(wqe_av, (struct prm_wqe_av *)(wqe + 16), sl, 5 << 1 | 1);
    lab_ring(&a);
    lab_run(lab);
    ck_assert(last_address()->has_vlan);
    ck_assert_uint_eq(last_address()->vlan_tci, 5 << 13 | 7);
    expect_received(64 + 40);
}
END_TEST

/* IBTA 10.5.2: a multicast goes to a group, and to the number that stands for its members. */
START_TEST(a_multicast_to_the_number_of_a_qp_is_not_received)
{
    static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 0, 0, 1};
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .sge = {{lab_mem(left, 64, 1), 64, 0}},
                        .num_sge = 1,
                        .dest_qpn = _i ? 0xffffff : b.qp->obj.num,
                        .qkey = lab_path.qkey};
    uint8_t *wqe;

    ck_assert_int_eq(mcg_attach(&right->hca, 0, b.qp->obj.num, mgid), SYN_OK);
    lab_post_recv(&b, lab_mem(right, 256, 0), 256);
    wqe = lab_write_wqe(&a, &wr);
    memcpy(PRM_PTR(wqe_av, (struct prm_wqe_av *)(wqe + 16), rgid), mgid, 16);
    lab_ring(&a);
    lab_run(lab);
    ck_assert_uint_eq(right->hca.vport->counters.rx_no_qp, !_i);
    if (_i) {
        expect_received(64 + 40);
    } else {
        expect_none(right);
    }
}
END_TEST

/* A QP that is joined to itself by force loopback writes to its own function: mlx5dv_dr writes its
 * steering entries so. It needs no entry of the address table, and nothing of it is on the cable,
 * also after the function's MAC has changed. */
START_TEST(force_loopback_needs_no_addresses)
{
    const struct lab_path loop = {.mtu = PRM_QP_MTU_1024,
                                  .retry_count = 7,
                                  .rnr_retry = 7,
                                  .ack_timeout = LAB_ACK_TIMEOUT,
                                  .fl = true};
    static const uint16_t steps[] = {PRM_CMD_OP_RST2INIT_QP, PRM_CMD_OP_INIT2RTR_QP,
                                     PRM_CMD_OP_RTR2RTS_QP};
    uint8_t other_mac[6];
    struct lab_qp self;
    uint64_t dst, src;

    lab_qp_new(left, &lab_rc, &self);
    memcpy(other_mac, left->hca.vport->mac, 6);
    other_mac[5] ^= 0x40;
    set_entry(left, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        ck_assert_int_eq(lab_modify(&self, steps[i], &loop, 0, &self), SYN_OK);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct lab_wr write = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE,
                               .sge = {{.len = 3000}},
                               .num_sge = 1,
                               .rkey = left->key};
        struct lab_wr read = write;

        src = lab_mem(left, 3000, 5 + i);
        dst = lab_mem(left, 3000, 0);
        write.sge[0].addr = src;
        read.opcode = PRM_WQE_OPCODE_RDMA_READ;
        read.sge[0].addr = lab_mem(left, 3000, 0);
        write.raddr = read.raddr = dst;
        lab_post(&self, &write);
        lab_post(&self, &read);
        lab_run(lab);
        ck_assert_mem_eq(lab_ptr(left, read.sge[0].addr, 3000), lab_ptr(left, src, 3000), 3000);
        ck_assert_uint_eq(lab->num_packets, 0);
        vport_set_mac(left->hca.vport, other_mac);
    }
}
END_TEST

/* A group's GID with the sender's own MAC address: the datagram itself comes back, and no
 * additional copy. (A program chooses both.) */
START_TEST(a_multicast_to_the_own_mac_comes_once)
{
    static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 239, 0, 0, 1};
    const struct vport *vport = left->hca.vport;
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .sge = {{lab_mem(left, 64, 1), 64, 0}},
                        .num_sge = 1,
                        .dest_qpn = 0xffffff,
                        .qkey = lab_path.qkey};
    struct lab_cqe cqe;
    uint8_t *wqe;

    ck_assert_int_eq(mcg_attach(&left->hca, 0, a.qp->obj.num, mgid), SYN_OK);
    for (unsigned i = 0; i < 2; i++) {
        lab_post_recv(&a, lab_mem(left, 256, 0), 256);
    }
    wqe = lab_write_wqe(&a, &wr);
    memcpy(PRM_PTR(wqe_av, (struct prm_wqe_av *)(wqe + 16), rgid), mgid, 16);
    memcpy(PRM_PTR(wqe_av, (struct prm_wqe_av *)(wqe + 16), rmac), vport->mac, 6);
    lab_ring(&a);
    lab_run(lab);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ);
    ck_assert(lab_poll(left, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    expect_none(left);
    ck_assert_uint_eq(vport->queued, vport->taken);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("path");
    TCase *rc = tcase_create("connected"), *ud = tcase_create("datagrams");

    tcase_add_checked_fixture(rc, setup, teardown);
    tcase_add_test(rc, packets_leave_from_the_address_that_is_there_now);
    tcase_add_test(rc, another_entry_is_no_concern);
    tcase_add_test(rc, without_a_source_address_nothing_is_sent);
    tcase_add_test(rc, the_port_drops_what_its_mtu_does_not_allow);
    tcase_add_test(rc, the_gid_entry_of_the_source_decides_the_version_of_ip);
    tcase_add_test(rc, the_gid_entry_of_the_source_decides_the_version_of_roce);
    tcase_add_test(rc, a_connection_has_one_version_of_roce);
    tcase_add_test(rc, force_loopback_needs_no_addresses);
    suite_add_tcase(suite, rc);
    tcase_add_checked_fixture(ud, setup_datagrams, teardown);
    tcase_add_test(ud, a_datagram_has_the_vlan_of_its_source_and_the_priority_of_its_address);
    tcase_add_loop_test(ud, a_multicast_to_the_number_of_a_qp_is_not_received, 0, 2);
    tcase_add_test(ud, a_multicast_to_the_own_mac_comes_once);
    suite_add_tcase(suite, ud);
    return suite;
}
