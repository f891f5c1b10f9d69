/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests send queues without acknowledgements (UC, UD, GSI), and UMR. */
#include "model/core/pd.h"
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

/* -- UC, UD, UMR ------------------------------------------------------------------------------- */

START_TEST(uc_completes_when_sent)
{
    uint64_t src = lab_mem(left, 5000, 1), dst = lab_mem(right, 5000, 0);

    pair_of(PRM_QP_ST_UC);
    write_from(src, 5000, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, 5000);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_UC | BTH_WRITE_FIRST);
    ck_assert(!lab->trace[4].pkt.ackreq);
    ck_assert_uint_eq(lab_count(lab, 1, BTH_ACK), 0);

    lab->tap = drop_all;
    write_from(src, 5000, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 1);
    ck_assert_uint_eq(left->host.deadline, UINT64_MAX);
}
END_TEST

/* The queue waits for a wire without room, so nothing is lost before the wire. */
START_TEST(uc_waits_for_room)
{
    const uint32_t len = 1u << 20; /* 1024 packets, and the cable holds 512 */
    uint64_t src = lab_mem(left, len, 1), dst = lab_mem(right, len, 0);

    pair_of(PRM_QP_ST_UC);
    write_from(src, len, dst);
    while (hca_run(&left->hca, LAB_BUDGET)) {
        continue;
    }
    ck_assert(a.qp->req.waits == SEND_WAITS_CREDIT);
    expect_none(left);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 0);
    same(src, dst, len);
}
END_TEST

/* IBTA 10.3.1, SQE state: an error in the send queue leaves the receive queue alone. */
START_TEST(uc_error_leads_to_sqer_and_back)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr bad = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, src, 64, dst);

    pair_of(PRM_QP_ST_UC);
    lab_post(&a, &bad);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_WRITE, 2, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 3);
    same(src, dst, 64);
}
END_TEST

/* Requests posted before the error are flushed, even if the driver moves the QP back to RTS
 * first. */
START_TEST(back_from_sqer_before_the_flush)
{
    uint64_t src = lab_mem(left, 64, 1), dst = lab_mem(right, 64, 0);
    struct lab_wr bad = rdma_wr(PRM_WQE_OPCODE_RDMA_READ, src, 64, dst);

    pair_of(PRM_QP_ST_UC);
    lab_post(&a, &bad);
    for (unsigned i = 0; i < 50; i++) {
        write_from(src, 64, dst);
    }
    hca_run(&left->hca, 5);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQERR2RTS_QP, &lab_path, 0, &b), SYN_OK);
    write_from(src, 64, dst);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_RDMA_READ, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    for (uint16_t i = 1; i < 51; i++) {
        expect_error(PRM_WQE_OPCODE_RDMA_WRITE, i, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    expect_sent(PRM_WQE_OPCODE_RDMA_WRITE, 51);
    expect_none(left);
}
END_TEST

static struct lab_wr ud_wr(uint32_t len)
{
    struct lab_wr wr = send_wr(lab_mem(left, len, 2), len);

    wr.dest_qpn = b.qp->obj.num;
    wr.qkey = lab_path.qkey;
    return wr;
}

START_TEST(ud_goes_where_its_vector_says)
{
    uint64_t dst = lab_mem(right, 1024 + 40, 0);
    struct lab_wr wr;
    const struct roce_packet *pkt = &lab->trace[0].pkt;
    struct lab_cqe cqe;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(1000);
    lab_post_recv(&b, dst, 1040);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert(lab_poll(right, &cqe));
    ck_assert_uint_eq(cqe.byte_cnt, 1040);
    same(wr.sge[0].addr, dst + 40, 1000);
    ck_assert_uint_eq(pkt->opcode, BTH_UD | BTH_SEND_ONLY);
    ck_assert_uint_eq(pkt->deth.src_qp, a.qp->obj.num);
    ck_assert_uint_eq(pkt->deth.qkey, lab_path.qkey);
    ck_assert_uint_eq(pkt->addr.udp_sport, 0xd000);
    ck_assert_uint_eq(pkt->addr.hop_limit, 33);
    ck_assert_uint_eq(pkt->addr.tclass, 0x48);
    ck_assert(pkt->addr.is_ipv4);
    ck_assert_mem_eq(pkt->addr.smac, left->mac, 6);
    ck_assert_mem_eq(pkt->addr.dmac, right->mac, 6);
}
END_TEST

/* IBTA 10.2.5: a Q_Key with the high bit set in the WQE means the QP's own. */
START_TEST(ud_own_qkey)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(8);
    wr.qkey = 0x80000000;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(lab->trace[0].pkt.deth.qkey, lab_path.qkey);
}
END_TEST

START_TEST(ud_longer_than_the_mtu)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(1025);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQER);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* The driver's active_mtu for an Ethernet MTU of 1500 is 1024. */
START_TEST(ud_longer_than_the_port_allows)
{
    struct lab_path path = lab_path;
    struct lab_wr wr;

    path.mtu = PRM_QP_MTU_4096;
    left->hca.vport->uplink->mtu = 1522;
    pair_on(PRM_QP_ST_UD, &path);
    wr = ud_wr(1024);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    wr = ud_wr(1025);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 2, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
}
END_TEST

START_TEST(ud_without_a_source_gid)
{
    struct lab_wr wr;
    void *wqe;

    pair_of(PRM_QP_ST_UD);
    wr = ud_wr(8);
    wqe = lab_write_wqe(&a, &wr);
    PRM_SET(wqe_av, wqe + 16, src_addr_index, 200);
    lab_ring(&a);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_SEND, 0, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

START_TEST(gsi_sends_as_qp_1)
{
    struct lab_wr wr;

    pair_of(PRM_QP_ST_QP1);
    lab_post_recv(&b, lab_mem(right, 300, 0), 300);
    wr = ud_wr(256);
    wr.dest_qpn = 1;
    wr.qkey = 0x80010000;
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    ck_assert_uint_eq(lab->trace[0].pkt.deth.src_qp, 1);
    expect_received(296);
}
END_TEST

/* Makes a QP of service type REG_UMR in RTS, and on it, not yet posted, a UMR that moves a key: its
 * pages to *elsewhere, its start to 0x5000. */
static uint32_t make_umr(struct lab_qp *umr, uint64_t *elsewhere)
{
    struct lab_qp_attr attr = {.st = PRM_QP_ST_REG_UMR, .log_sq = 5, .no_rq = true};
    uint64_t pages = lab_mem(left, 8192, 9), entries = fake_host_alloc(&left->host, 64, 64);
    uint32_t key = lab_mr(left, pages, 8192, MEM_LOCAL_READ);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR, .imm = key};
    void *wqe;

    *elsewhere = fake_host_alloc(&left->host, 8192, 4096);
    lab_qp_new(left, &attr, umr);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_RST2INIT_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_INIT2RTR_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(umr, PRM_CMD_OP_RTR2RTS_QP, NULL, 0, NULL), SYN_OK);
    for (unsigned i = 0; i < 2; i++) {
        ((uint64_t *)lab_ptr(left, entries, 16))[i] = GUINT64_TO_BE((*elsewhere + i * 4096) | 3);
    }

    wqe = lab_write_wqe(umr, &wr);
    umr->sq_pi = 3;
    PRM_SET(wqe_ctrl_seg, wqe, ds, 9);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, xlt_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, mkey_mask, 1ull << PRM_MKEY_MASK_START_ADDR);
    PRM_SET(mkc, wqe + 64, start_addr, 0x5000);
    PRM_SET(mkc, wqe + 64, mkey_7_0, key & 0xff);
    PRM_SET(wqe_data_seg, wqe + 128, byte_count, 64);
    PRM_SET(wqe_data_seg, wqe + 128, lkey, left->hca.resd_lkey);
    PRM_SET(wqe_data_seg, wqe + 128, addr, entries);
    return key;
}

/* The driver registers memory by UMR on a QP of its own kind. */
START_TEST(umr_on_the_drivers_queue)
{
    struct lab_qp umr;
    uint64_t elsewhere;
    uint32_t key = make_umr(&umr, &elsewhere);
    uint8_t data[16];

    memcpy(lab_ptr(left, elsewhere, 16), "here I am, again", 16);
    lab_ring(&umr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_UMR, 0);
    ck_assert_int_eq(mkey_read(&left->hca, key, left->pdn, 0x5000, data, 16, MEM_LOCAL_READ),
                     MEM_OK);
    ck_assert_mem_eq(data, "here I am, again", 16);
}
END_TEST

START_TEST(umr_that_is_refused)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR, .imm = 0x777700};
    void *wqe = lab_write_wqe(&a, &wr);

    a.sq_pi = 2;
    PRM_SET(wqe_ctrl_seg, wqe, ds, 8);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, inl, 1);
    lab_ring(&a);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_UMR, 0, PRM_CQE_SYNDROME_MW_BIND_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

/* A user context's queue may not do what the kernel's queue may. */
START_TEST(umr_on_a_users_queue)
{
    struct lab_qp umr;
    uint64_t elsewhere;

    make_umr(&umr, &elsewhere);
    umr.qp->obj.uid = 7;
    ck_assert_int_eq(pd_alloc(&left->hca, 7, &umr.qp->pdn), SYN_OK);
    lab_ring(&umr);
    lab_run(lab);
    expect_error(PRM_WQE_OPCODE_UMR, 0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("requester-ud");
    TCase *rc = tcase_create("connected"), *bare = tcase_create("unconnected");

    tcase_add_checked_fixture(rc, setup, teardown);
    tcase_add_test(rc, umr_that_is_refused);
    suite_add_tcase(suite, rc);

    tcase_add_checked_fixture(bare, setup_bare, teardown);
    tcase_add_test(bare, uc_completes_when_sent);
    tcase_add_test(bare, uc_waits_for_room);
    tcase_add_test(bare, uc_error_leads_to_sqer_and_back);
    tcase_add_test(bare, back_from_sqer_before_the_flush);
    tcase_add_test(bare, ud_goes_where_its_vector_says);
    tcase_add_test(bare, ud_own_qkey);
    tcase_add_test(bare, ud_longer_than_the_mtu);
    tcase_add_test(bare, ud_longer_than_the_port_allows);
    tcase_add_test(bare, ud_without_a_source_gid);
    tcase_add_test(bare, gsi_sends_as_qp_1);
    tcase_add_test(bare, umr_on_the_drivers_queue);
    tcase_add_test(bare, umr_on_a_users_queue);
    suite_add_tcase(suite, bare);
    return suite;
}
