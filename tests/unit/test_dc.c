/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the dynamically connected transport between an initiator on side 0 and targets on side 1
 * (docs/explanation/dc.md, docs/adr/0009). The path MTU is 1024 bytes.
 */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/mkey.h"
#include "model/queue/q_counter.h"
#include "model/rdma/dci.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

/* -- sessions ---------------------------------------------------------------------------------- */

/* CONNECT and data are sent at once; the session ends when there is no further request. */
START_TEST(a_send_connects_and_goes_out_at_once)
{
    lab_dct_post_recv(&dct, dst, LEN);
    send_from(&dci, &dct, LEN, 0);
    lab_run(lab);
    expect_sent(0);
    expect_received(&dct, LEN);
    ck_assert_mem_eq(lab_ptr(far, dst, LEN), lab_ptr(near, src, LEN), LEN);
    ck_assert_uint_eq(lab->num_packets, 3);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_DC | BTH_CONNECT);
    ck_assert(!lab->trace[0].pkt.solicited);
    ck_assert_uint_eq(lab->trace[0].pkt.dceth.number, dci.qp->obj.num);
    ck_assert_uint_eq(lab->trace[1].pkt.opcode, BTH_DC | BTH_SEND_ONLY);
    ck_assert_uint_eq(lab->trace[1].pkt.dceth.session, lab->trace[0].pkt.dceth.session);
    ck_assert_uint_eq(lab->trace[1].pkt.psn,
                      lab->trace[0].pkt.psn); /* CONNECT has no PSN of its own */
    ck_assert_uint_eq(lab->trace[2].pkt.opcode, BTH_DC | BTH_ACK);
    ck_assert_uint_eq(lab->trace[2].pkt.dceth.session, lab->trace[0].pkt.dceth.session);
    ck_assert_uint_eq(lab->trace[2].pkt.dceth.number, dct.dctn);
    ck_assert_uint_eq(q_counter_get(&far->hca, 0)->rx_dct_connect, 1);

    ck_assert_uint_eq(responders(), 1);
    lab_advance(lab, LOOK);
    ck_assert_uint_eq(lab->num_packets, 4);
    ck_assert(lab->trace[3].pkt.solicited);
    ck_assert_uint_eq(responders(), 0);
    expect_no_sequence_errors();
}
END_TEST

START_TEST(one_session_as_long_as_the_target_is_the_same)
{
    for (unsigned i = 0; i < 10; i++) {
        lab_dct_post_recv(&dct, dst, 5000);
        send_from(&dci, &dct, 5000, 0);
    }
    lab_run(lab);
    for (unsigned i = 0; i < 10; i++) {
        expect_sent(0);
        expect_received(&dct, 5000);
    }
    ck_assert_uint_eq(count_connects(false), 1);
    ck_assert_uint_eq(count_connects(true), 0);
    expect_no_sequence_errors();
}
END_TEST

START_TEST(another_target_is_another_session)
{
    for (unsigned i = 0; i < 10; i++) {
        lab_dct_post_recv(i % 2 ? &other : &dct, dst, LEN);
        send_from(&dci, i % 2 ? &other : &dct, LEN, 0);
    }
    lab_run(lab);
    for (unsigned i = 0; i < 10; i++) {
        expect_sent(0);
        expect_received(i % 2 ? &other : &dct, LEN);
    }
    ck_assert_uint_eq(count_connects(false), 10);
    ck_assert_uint_eq(count_connects(true), 9);
    ck_assert_uint_eq(responders(), 1);
    expect_no_sequence_errors();
}
END_TEST

/* A DISCONNECT has no PSN of its own, either: it uses the PSN behind the session's last packet,
 * whatever comes next. */
START_TEST(a_session_ends_behind_its_last_packet)
{
    uint32_t next = 0;
    unsigned ends = 0;

    for (unsigned i = 0; i < 4; i++) {
        lab_dct_post_recv(i % 2 ? &other : &dct, dst, 3000);
        send_from(&dci, i % 2 ? &other : &dct, 3000, 0);
    }
    lab_advance(lab, LOOK);
    for (unsigned i = 0; i < lab->num_packets; i++) {
        const struct roce_packet *pkt = &lab->trace[i].pkt;

        if (pkt->opcode == (BTH_DC | BTH_CONNECT) && pkt->solicited) {
            ck_assert_uint_eq(pkt->psn, next);
            ends++;
        } else if (lab->trace[i].from == 0 && pkt->opcode != (BTH_DC | BTH_CONNECT)) {
            next = (pkt->psn + 1) & PSN_MASK;
        }
    }
    ck_assert_uint_eq(ends, 4);
}
END_TEST

START_TEST(dc_has_the_operations_of_a_reliable_connection)
{
    struct lab_wr read = {.opcode = PRM_WQE_OPCODE_RDMA_READ,
                          .sge = {{src + 8192, 5000, 0}},
                          .num_sge = 1,
                          .raddr = dst,
                          .rkey = far->key};
    struct lab_wr imm = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE_IMM,
                         .sge = {{src, 3000, 0}},
                         .num_sge = 1,
                         .raddr = dst,
                         .rkey = far->key,
                         .imm = 0x12345678};
    struct lab_wr swap = {.opcode = PRM_WQE_OPCODE_ATOMIC_CS,
                          .sge = {{src + 64, 8, 0}},
                          .num_sge = 1,
                          .raddr = word,
                          .rkey = far->key,
                          .swap_add = 7,
                          .compare = 1};
    struct lab_wr inl = {.opcode = PRM_WQE_OPCODE_SEND, .inline_data = "inline", .inline_len = 6};
    struct lab_cqe cqe;
    uint64_t was;

    write_to(&dct, far->key, 5000, 0);
    lab_post(&dci, lab_to(&read, &dct));
    add_to(&dci, &dct);
    lab_post(&dci, lab_to(&swap, &dct));
    lab_dct_post_recv(&dct, dst + 9000, 100);
    lab_dct_post_recv(&dct, dst + 9000, 100);
    lab_post(&dci, lab_to(&imm, &dct));
    lab_post(&dci, lab_to(&inl, &dct));
    lab_run(lab);
    for (unsigned i = 0; i < 6; i++) {
        expect_sent(0);
    }
    ck_assert_mem_eq(lab_ptr(near, src + 8192, 5000), lab_ptr(far, dst, 5000), 5000);
    ck_assert_uint_eq(sum(), 7);
    memcpy(&was, lab_ptr(near, src + 64, 8), 8);
    ck_assert_uint_eq(was, 1);
    ck_assert(lab_poll(far, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_WR_IMM);
    ck_assert_uint_eq(cqe.imm, 0x12345678);
    expect_received(&dct, 6);
    ck_assert_mem_eq(lab_ptr(far, dst + 9000, 6), "inline", 6);
    expect_no_sequence_errors();
}
END_TEST

static void send_and_invalidate(struct lab_qp *from, uint32_t key)
{
    struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND_INVAL, .sge = {{src, LEN, 0}}, .num_sge = 1, .imm = key};

    lab_dct_post_recv(&dct, dst, LEN);
    lab_post(from, lab_to(&wr, &dct));
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
}

/* IBTA 9.4.1.1.4: a SEND with invalidate invalidates a key of the target's own protection domain,
 * as the completion reports. */
START_TEST(a_send_with_invalidate)
{
    uint32_t key = lab_mr(far, dst, LEN, MEM_REMOTE_WRITE);
    struct lab_cqe cqe;

    write_to(&dct, key, LEN, 0);
    lab_run(lab);
    expect_sent(0);
    send_and_invalidate(&dci, key);
    expect_sent(0);
    ck_assert_uint_eq(lab_count(lab, 0, BTH_SEND_ONLY_INV), 1);
    ck_assert(lab_poll(far, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND_INV);
    ck_assert_uint_eq(cqe.qpn, dct.dctn);
    ck_assert_uint_eq(cqe.imm, key);
    ck_assert_int_eq(mkey_check(&far->hca, key, far->pdn, dst, LEN, MEM_REMOTE_WRITE), MEM_BAD_KEY);
    write_to(&dct, key, LEN, 0);
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}
END_TEST

/* A key of another protection domain must not be invalidated: the receive WQE fails, the key stays,
 * and so does the target. */
START_TEST(a_send_that_invalidates_a_foreign_key)
{
    uint32_t own_pd = far->pdn, foreign_pd, key;
    struct lab_qp second;
    struct lab_cqe cqe;

    ck_assert_int_eq(pd_alloc(&far->hca, 0, &foreign_pd), SYN_OK);
    far->pdn = foreign_pd;
    key = lab_mr(far, dst, LEN, MEM_REMOTE_WRITE);
    far->pdn = own_pd;
    send_and_invalidate(&dci, key);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert(lab_poll(far, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_MW_BIND_ERR);
    expect_nothing(far);
    ck_assert_int_eq(mkey_check(&far->hca, key, foreign_pd, dst, LEN, MEM_REMOTE_WRITE), MEM_OK);

    lab_dci_new(near, &lab_dci, NULL, &second);
    add_to(&second, &dct);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

/* An initiator and a target of one device communicate inside it. */
START_TEST(a_target_on_the_same_device)
{
    struct lab_dct here;
    struct lab_wr wr = {
        .opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, LEN, 0}}, .num_sge = 1, .loop = true};
    struct lab_cqe cqe;
    unsigned sent = 0, received = 0;

    lab_dct_new(near, &here);
    lab_dct_post_recv(&here, src + 4096, LEN);
    lab_post(&dci, lab_to(&wr, &here));
    lab_run(lab);
    while (lab_poll(near, &cqe)) {
        sent += cqe.opcode == PRM_CQE_OPCODE_REQ && cqe.qpn == dci.qp->obj.num;
        received += cqe.opcode == PRM_CQE_OPCODE_RESP_SEND && cqe.qpn == here.dctn;
    }
    ck_assert_uint_eq(sent, 1);
    ck_assert_uint_eq(received, 1);
    ck_assert_uint_eq(lab->num_packets, 0);
}
END_TEST

/* A WQE without a path to its target fails; the next WQE's path is looked up again. */
START_TEST(the_way_to_a_target)
{
    struct vport_gid gid = near->hca.vport->gids[3], none = {0};

    vport_set_gid(near->hca.vport, 3, &none);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(lab->num_packets, 0);
    vport_set_gid(near->hca.vport, 3, &gid);

    lab_dci_new(near, &lab_dci, NULL, &dci);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    vport_set_gid(near->hca.vport, 3, &gid); /* the same in the middle of a session */
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_eq(count_connects(false), 1);
}
END_TEST

/* A short address vector uses the QP's own path. */
START_TEST(a_short_address_vector)
{
    struct lab_qp like = {.side = far, .qp = dci.qp};
    struct lab_qp qp;
    struct prm_wqe_ctrl_seg *ctrl;
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .inline_data = "x", .inline_len = 1};
    uint8_t *seg;

    lab_qp_new(near, &lab_dci, &qp);
    ck_assert_int_eq(lab_modify(&qp, PRM_CMD_OP_RST2INIT_QP, &lab_path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&qp, PRM_CMD_OP_INIT2RTR_QP, &lab_path, 0, &like), SYN_OK);
    ck_assert_int_eq(lab_modify(&qp, PRM_CMD_OP_RTR2RTS_QP, &lab_path, 5, NULL), SYN_OK);
    lab_dct_post_recv(&dct, dst, LEN);
    ctrl = lab_write_wqe(&qp, lab_to(&wr, &dct));
    seg = (uint8_t *)ctrl + PRM_SIZE(wqe_ctrl_seg);
    PRM_SET(wqe_av, (void *)seg, ext, 0);
    memmove(seg + WQE_SHORT_AV, seg + PRM_SIZE(wqe_av), 16); /* ring slots follow one another */
    PRM_SET(wqe_ctrl_seg, ctrl, ds, 3);
    qp.sq_pi = 1;
    lab_ring(&qp);
    lab_run(lab);
    expect_sent(0);
    expect_received(&dct, 1);
}
END_TEST

/* -- loss -------------------------------------------------------------------------------------- */

/* Drops lab->tap_count packets that what() selects. */
static bool (*what)(unsigned from, const struct roce_packet *pkt);

static bool drop_some(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (l->tap_count && what(from, pkt)) {
        l->tap_count--;
        return false;
    }
    return true;
}

static void drop(unsigned n, bool (*which)(unsigned from, const struct roce_packet *pkt))
{
    what = which;
    lab->tap = drop_some;
    lab->tap_count = n;
}

static bool is_response(unsigned from, const struct roce_packet *pkt)
{
    return from == 1;
}

static bool is_connect(unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode == (BTH_DC | BTH_CONNECT) && !pkt->solicited;
}

static bool is_disconnect(unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode == (BTH_DC | BTH_CONNECT) && pkt->solicited;
}

static bool is_end(unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode == (BTH_DC | BTH_SEND_LAST);
}

static bool is_request(unsigned from, const struct roce_packet *pkt)
{
    return from == 0;
}

/* The target knows the session: it repeats the answers of requests that it has executed. */
START_TEST(lost_answers_carry_nothing_out_twice)
{
    drop(3, is_response);
    add_to(&dci, &dct);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 1);
    ck_assert_uint_eq(count_connects(false), 4); /* it did not know whether the first had arrived */

    lab_dct_post_recv(&dct, dst, LEN);
    lab_dct_post_recv(&dct, dst, LEN);
    drop(3, is_response);
    send_from(&dci, &dct, LEN, 0);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    expect_received(&dct, LEN);
    expect_nothing(far);
}
END_TEST

START_TEST(a_lost_connect_is_sent_again)
{
    drop(1, is_connect);
    add_to(&dci, &dct);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 1);
    ck_assert_uint_eq(q_counter_get(&far->hca, 0)->out_of_sequence, 0);
}
END_TEST

START_TEST(a_silent_target_is_given_up)
{
    drop(UINT32_MAX, is_request);
    add_to(&dci, &dct);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_ERR);
    ck_assert_uint_eq(sum(), 0);
}
END_TEST

/* A target that missed the end of a session learns it from the next session. */
START_TEST(a_lost_disconnect)
{
    drop(1, is_disconnect);
    add_to(&dci, &dct);
    lab_advance(lab, LOOK);
    ck_assert_uint_eq(responders(), 1);
    add_to(&dci, &other);
    lab_run(lab);
    ck_assert_uint_eq(responders(), 1);
    add_to(&dci, &dct);
    lab_advance(lab, LOOK);
    ck_assert_uint_eq(responders(), 0);
    for (unsigned i = 0; i < 3; i++) {
        expect_sent(0);
    }
    ck_assert_uint_eq(sum(), 3);
    expect_no_sequence_errors();
}
END_TEST

static void again(unsigned from, const struct roce_packet *pkt, const struct dcceth *connect)
{
    size_t len = connect ? DCC_ETH_BYTES : 0;
    uint8_t *frame = wire_tx_reserve(lab->mid[!from], roce_frame_len(pkt, len));

    ck_assert_ptr_nonnull(frame);
    if (connect) {
        dcceth_build(roce_build(frame, pkt, len), connect);
    } else {
        roce_build(frame, pkt, len);
    }
    wire_tx_commit(lab->mid[!from], roce_finish(frame, pkt, len));
    lab_run(lab);
}

/* Makes the session of an addition: returns its first packet and its CONNECT header. */
static struct dcceth add_in_a_session(struct roce_packet *first, struct roce_packet *second)
{
    add_to(&dci, &dct);
    lab_run(lab);
    *first = lab->trace[0].pkt;
    *second = lab->trace[1].pkt;
    return (struct dcceth){.key = DC_LAB_KEY, .psn = first->psn};
}

/* All packets of a finished session come again, and begin nothing. */
START_TEST(late_packets_of_an_old_session)
{
    struct roce_packet first, second;
    struct dcceth connect = add_in_a_session(&first, &second);

    ck_assert_uint_eq(second.opcode, BTH_DC | BTH_FETCH_ADD);
    for (unsigned i = 0; i < 3; i++) {
        again(0, &first, &connect); /* in the session, after it, in the next */
        again(0, &second, NULL);
        ck_assert_uint_eq(sum(), 1 + (i == 2));
        lab_advance(lab, LOOK);
        again(0, &first, &connect);
        again(0, &second, NULL);
        ck_assert_uint_eq(sum(), 1 + (i == 2));
        if (i == 1) {
            add_to(&dci, &dct);
            lab_run(lab);
            ck_assert_uint_eq(sum(), 2);
        }
    }
}
END_TEST

/* The return path to the initiator comes from the session's last CONNECT: no ICRC covers the MAC
 * addresses and the VLAN tag, so those of an earlier CONNECT may be wrong. */
START_TEST(a_connect_with_a_wrong_address)
{
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct roce_packet first;

    drop(UINT32_MAX, is_request);
    add_to(&dci, &dct);
    lab_run(lab);
    lab->tap = NULL;
    first = lab->trace[0].pkt;
    first.addr.smac[5] ^= 1;
    connect.psn = first.psn;
    again(0, &first, &connect);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 1);
    ck_assert_uint_eq(q_counter_get(&far->hca, 0)->rx_dct_connect, 1);
}
END_TEST

/* The same holds if both sides knew the session before. */
START_TEST(a_late_connect_with_a_wrong_address)
{
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct roce_packet first;

    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    first = lab->trace[0].pkt;
    first.addr.smac[5] ^= 1;
    connect.psn = first.psn;
    again(0, &first, &connect);
    add_to(&dci, &dct);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_eq(q_counter_get(&far->hca, 0)->rx_dct_connect, 1);
}
END_TEST

/* The target of a session learns at once that its initiator has moved. */
START_TEST(the_initiator_moves)
{
    struct vport_gid gid = near->hca.vport->gids[3];

    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    lab->num_packets = 0;
    gid.mac[5] ^= 1;
    vport_set_gid(near->hca.vport, 3, &gid);
    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_eq(lab->num_packets, 3);
    ck_assert_uint_eq(lab->trace[0].pkt.opcode, BTH_DC | BTH_CONNECT);
    ck_assert_uint_eq(lab->trace[1].pkt.dceth.session, lab->trace[0].pkt.dceth.session);
    ck_assert_uint_eq(lab->trace[2].from, 1);
    ck_assert_mem_eq(lab->trace[2].pkt.addr.dmac, gid.mac, 6);
}
END_TEST

/* With another GID the initiator is another source to the target, which could not tell what it has
 * executed for the old one. Therefore nothing is repeated; the next request begins a session. */
START_TEST(the_initiator_has_another_gid)
{
    struct vport_gid gid = near->hca.vport->gids[3];

    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    gid.gid[15] ^= 1;
    vport_set_gid(near->hca.vport, 3, &gid);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    ck_assert_uint_eq(count_connects(false), 2);
    drop(UINT32_MAX, is_response);
    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_uint_eq(sum(), 3);
    gid.gid[15] ^= 1;
    vport_set_gid(near->hca.vport, 3, &gid);
    lab->tap = NULL;
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(sum(), 3);
}
END_TEST

/* A CONNECT that was delayed for long begins nothing, although the session is all that the target
 * knows of its initiator. */
START_TEST(a_very_late_connect_of_the_last_session)
{
    struct roce_packet first, second;
    struct dcceth connect = add_in_a_session(&first, &second);

    lab_advance(lab, 2 * DC_LATE_NS);
    again(0, &first, &connect);
    again(0, &second, NULL);
    ck_assert_uint_eq(responders(), 0);
    ck_assert_uint_eq(sum(), 1);
}
END_TEST

/* -- the target's refusals --------------------------------------------------------------------- */

START_TEST(a_wrong_key_is_counted_and_raises_one_event)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{src, LEN, 0}}, .num_sge = 1};
    struct prm_dctc dctc[1];
    uint8_t type;
    uint32_t num;

    lab_dct_post_recv(&dct, dst, LEN);
    ck_assert_int_eq(dct_arm(&far->hca, 0, dct.dctn), SYN_OK);
    lab_to(&wr, &dct);
    wr.dc_key ^= 1;
    lab_post(&dci, &wr);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    expect_nothing(far);
    ck_assert_int_eq(dct_query(&far->hca, dct.dctn, dctc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(dctc, dctc, dc_access_key_violation_count), 8);
    ck_assert(lab_event(far, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_DCT_KEY_VIOLATION);
    ck_assert_uint_eq(num, dct.dctn);
    ck_assert(!lab_event(far, &type, &num)); /* it was armed once */

    ck_assert_int_eq(dct_arm(&far->hca, 0, dct.dctn), SYN_OK);
    lab_dci_new(near, &lab_dci, NULL, &dci);
    send_from(&dci, &dct, LEN, 0);
    lab_run(lab);
    expect_sent(0);
    ck_assert(!lab_event(far, &type, &num));
}
END_TEST

/* v0 and v1 do not know each other. */
START_TEST(another_version_of_the_transport)
{
    far->hca.limits.dc_version = 0;
    add_to(&dci, &dct);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(sum(), 0);
    ck_assert_uint_eq(lab_count(lab, 1, BTH_ACK), 0);

    near->hca.limits.dc_version = 0;
    lab_dci_new(near, &lab_dci, NULL, &dci);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

/* CNAK: if all responders are in use, an initiator waits, longer each time. */
START_TEST(no_responder_to_give)
{
    struct lab_path slow = lab_path;
    struct lab_qp second;

    slow.ack_timeout = 14;
    far->hca.limits.dc_responders = 1;
    lab_dci_new(near, &lab_dci, &slow, &second);
    add_to(&dci, &dct);
    lab_run(lab);
    add_to(&second, &other);
    lab_run(lab);
    ck_assert_uint_eq(count_cnaks(), 1);
    expect_sent(0);
    expect_nothing(near);
    lab_advance(lab, 100 * LAB_MS); /* meanwhile the first initiator has left */
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
    expect_no_sequence_errors();
}
END_TEST

/* The first initiator does not leave: nobody takes the responder of an initiator that may still
 * send requests. */
START_TEST(a_dc_initiator_that_is_always_refused_fails)
{
    struct lab_qp second;

    far->hca.limits.dc_responders = 1;
    drop(UINT32_MAX, is_disconnect);
    add_to(&dci, &dct);
    lab_advance(lab, LOOK);
    lab_dci_new(near, &lab_dci, NULL, &second);
    add_to(&second, &dct);
    lab_advance(lab, 1000 * LAB_MS);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(count_cnaks(), lab_path.retry_count + 1);
    ck_assert_uint_eq(sum(), 1);
    expect_no_sequence_errors();

    /* but an initiator that was silent for so long never sends requests again */
    lab_advance(lab, DC_IDLE_NS);
    lab_dci_new(near, &lab_dci, NULL, &second);
    add_to(&second, &dct);
    lab_run(lab);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
}
END_TEST

/* One initiator's error affects neither the other initiators nor the target. */
START_TEST(a_fault_ends_one_responder)
{
    struct lab_qp second;
    uint8_t type;
    uint32_t num;

    lab_dci_new(near, &lab_dci, NULL, &second);
    add_to(&second, &dct);
    lab_run(lab);
    write_to(&dct, far->key ^ 0x100, LEN, 0);
    lab_run(lab);
    add_to(&second, &dct);
    lab_run(lab);
    expect_sent(0);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    expect_sent(0);
    ck_assert_uint_eq(dci.qp->state, PRM_QP_STATE_ERR);
    ck_assert(lab_event(far, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_WQ_ACCESS_ERROR);
    ck_assert_uint_eq(num, dct.dctn);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_eq(responders(), 1); /* the first initiator has left in ERR */
}
END_TEST

/* A lost NAK is repeated. */
START_TEST(a_lost_nak)
{
    drop(1, is_response);
    write_to(&dct, far->key ^ 0x100, LEN, 0);
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
}
END_TEST

/* -- the QP ------------------------------------------------------------------------------------ */

/* RTS2RTS in the middle of a session. */
START_TEST(rts2rts_does_not_disturb)
{
    struct prm_qpc qpc[1] = {0};

    PRM_SET(qpc, qpc, min_rnr_nak, 3);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    lab_dct_post_recv(&dct, dst, 20000);
    lab_dct_post_recv(&dct, dst, 20000);
    drop(4, is_response);
    send_from(&dci, &dct, 20000, 0);
    lab_run(lab);
    ck_assert_int_eq(qp_modify(&near->hca, 0, dci.qp->obj.num, PRM_CMD_OP_RTS2RTS_QP,
                               1u << PRM_QP_OPTPAR_RNR_TIMEOUT | 1u << PRM_QP_OPTPAR_PM_STATE |
                                   1u << PRM_QP_OPTPAR_RWE | 1ull << PRM_QP_OPTPAR_UDP_SPORT,
                               qpc, NULL),
                     SYN_OK);
    send_from(&dci, &dct, 20000, 0);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_sent(0);
    expect_sent(0);
    expect_received(&dct, 20000);
    expect_received(&dct, 20000);
    for (unsigned i = 1; i < lab->num_packets; i++) {
        if (lab->trace[i].from == 0) {
            ck_assert_uint_eq(lab->trace[i].pkt.dest_qp, dct.dctn);
            ck_assert_uint_eq(lab->trace[i].pkt.dceth.session, lab->trace[0].pkt.dceth.session);
        }
    }
}
END_TEST

START_TEST(the_queues_of_an_initiator)
{
    struct lab_qp_attr attr = lab_dci;
    struct lab_qp qp;
    struct prm_qpc qpc[1] = {0};
    struct mem_buf buf = lab_buf(fake_host_alloc(&near->host, 8192, 4096), 8192);
    uint32_t qpn;

    attr.srqn = 0x777; /* no such SRQ exists: drivers write any value */
    lab_qp_new(near, &attr, &qp);
    ck_assert_ptr_null(qp.qp->srq);

    PRM_SET(qpc, qpc, st, PRM_QP_ST_DCI);
    PRM_SET(qpc, qpc, pd, near->pdn);
    PRM_SET(qpc, qpc, uar_page, near->uarn);
    PRM_SET(qpc, qpc, cqn_snd, near->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, near->cqn);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_REGULAR);
    ck_assert_int_eq(qp_create(&near->hca, 0, qpc, &buf, 0, &qpn), SYN_QP_FEATURE);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_DCT); /* no QP */
    ck_assert_int_eq(qp_create(&near->hca, 0, qpc, &buf, 0, &qpn), SYN_QP_SERVICE);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_DCI);
    PRM_SET(qpc, qpc, log_num_dci_stream_channels, DCI_LOG_STREAMS + 1);
    ck_assert_int_eq(qp_create(&near->hca, 0, qpc, &buf, 0, &qpn), SYN_QP_FEATURE);
    mem_buf_clear(&buf);
}
END_TEST

/* -- draining ---------------------------------------------------------------------------------- */

START_TEST(a_target_drains_and_goes)
{
    uint8_t type;
    uint32_t num;

    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_OK);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_DCT_STATE);
    lab_run(lab);
    ck_assert(lab_event(far, &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_DCT_DRAINED);
    ck_assert_uint_eq(num, dct.dctn);
    ck_assert_uint_eq(responders(), 0);
    expect_sent(0);
    add_to(&dci, &dct);
    lab_advance(lab, 40 * LAB_ACK_TIMEOUT_NS);
    expect_sent(PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    ck_assert_uint_eq(sum(), 1);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_DCT_NUM);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_DCT_NUM);
    ck_assert_int_eq(dct_arm(&far->hca, 0, dct.dctn), SYN_DCT_NUM);
}
END_TEST

/* The SRQ entry of an incomplete message is flushed. */
START_TEST(a_message_in_progress_is_flushed)
{
    struct lab_cqe cqe;

    lab_dct_post_recv(&dct, dst, 65536);
    drop(UINT32_MAX, is_end);
    send_from(&dci, &dct, 65536, 0);
    lab_run(lab);
    expect_nothing(far);
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_OK);
    lab_run(lab);
    ck_assert(lab_poll(far, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    lab_dct_new(far, &dct);
}
END_TEST

START_TEST(a_target_is_destroyed_without_draining)
{
    add_to(&dci, &dct);
    lab_run(lab);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    lab_advance(lab, LOOK);
    lab_dct_new(far, &dct);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 2);
}
END_TEST

/* -- a hostile peer ---------------------------------------------------------------------------- */

/* Arbitrary packets for a target or an initiator: there are never more responders than allowed,
 * memory without an open key stays unchanged, and both still work. */
START_TEST(a_peer_that_sends_anything)
{
    uint64_t closed = lab_mem(far, 4096, 9);
    g_autofree uint8_t *before = g_memdup2(lab_ptr(far, closed, 4096), 4096);
    uint32_t key = lab_mr(far, dst, 4096, MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC);
    GRand *rand = g_rand_new_with_seed(7);
    struct dcceth connect = {0};

    far->hca.limits.dc_responders = 4;
    lab_dct_post_recv(&dct, dst, LEN);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    for (unsigned i = 0; i < 20000; i++) {
        struct roce_packet pkt = lab->trace[0].pkt;
        unsigned to = g_rand_int_range(rand, 0, 8) == 0;
        bool with_connect;

        pkt.opcode = BTH_DC | (g_rand_int(rand) & 0x1f);
        if (!bth_opcodes[pkt.opcode].name) {
            continue;
        }
        if (to) {
            memcpy(pkt.addr.dgid, lab->trace[0].pkt.addr.sgid, 16);
            memcpy(pkt.addr.sgid, lab->trace[0].pkt.addr.dgid, 16);
            memcpy(pkt.addr.dmac, near->mac, 6);
            pkt.dest_qp = dci.qp->obj.num;
        }
        pkt.solicited = g_rand_int(rand) & 1;
        pkt.ackreq = g_rand_int(rand) & 1;
        pkt.psn = (pkt.psn + g_rand_int(rand) % 8 - 2) & PSN_MASK;
        pkt.dceth.version = g_rand_int_range(rand, 0, 20) ? 1 : 0;
        pkt.dceth.session = (pkt.dceth.session + g_rand_int(rand) % 5) & PSN_MASK;
        pkt.dceth.number = to ? dct.dctn : 0x40 + g_rand_int(rand) % 10;
        pkt.reth.va = pkt.atomic.va = dst + g_rand_int(rand) % 5000;
        pkt.reth.rkey = pkt.atomic.rkey = key;
        pkt.reth.len = g_rand_int(rand) % 3000;
        pkt.aeth.syndrome = (uint8_t)g_rand_int(rand);
        connect.psn = pkt.psn;
        connect.key = DC_LAB_KEY + (g_rand_int_range(rand, 0, 10) == 0);
        with_connect = pkt.opcode == (BTH_DC | BTH_CONNECT) && !pkt.solicited;
        again(to ? 1 : 0, &pkt, with_connect ? &connect : NULL);
        ck_assert_uint_le(responders(), 4);
        lab->num_packets = MIN(lab->num_packets, 8000);
    }
    lab_advance(lab, 100 * LAB_MS);
    ck_assert_mem_eq(lab_ptr(far, closed, 4096), before, 4096);
    lab->num_packets = 0;
    lab_advance(lab, DC_IDLE_NS + LAB_MS);
    lab_dci_new(near, &lab_dci, NULL, &dci);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    g_rand_free(rand);
}
END_TEST

/* The responder that is replaced is the one that was silent for the longest time. */
START_TEST(the_least_recently_used_goes)
{
    struct lab_qp second, third;

    far->hca.limits.dc_responders = 2;
    drop(UINT32_MAX, is_disconnect);
    lab_dci_new(near, &lab_dci, NULL, &second);
    lab_dci_new(near, &lab_dci, NULL, &third);
    add_to(&dci, &dct);
    lab_advance(lab, LOOK);
    add_to(&second, &dct);
    lab_advance(lab, DC_IDLE_NS - LAB_MS);
    add_to(&dci, &dct); /* it sends again */
    lab_advance(lab, 10 * LAB_MS);
    add_to(&third, &dct);
    lab_run(lab);
    for (unsigned i = 0; i < 4; i++) {
        expect_sent(0);
    }
    ck_assert_uint_eq(count_cnaks(), 0);
    ck_assert_uint_eq(responders(), 2);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    ck_assert_uint_eq(sum(), 5);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dc");
    TCase *sessions = tcase_create("sessions");
    TCase *losses = tcase_create("losses");
    TCase *refusals = tcase_create("refusals");
    TCase *life = tcase_create("life");
    TCase *hostile = tcase_create("hostile");

    tcase_add_checked_fixture(sessions, setup, teardown);
    tcase_add_test(sessions, a_send_connects_and_goes_out_at_once);
    tcase_add_test(sessions, one_session_as_long_as_the_target_is_the_same);
    tcase_add_test(sessions, another_target_is_another_session);
    tcase_add_test(sessions, a_session_ends_behind_its_last_packet);
    tcase_add_test(sessions, dc_has_the_operations_of_a_reliable_connection);
    tcase_add_test(sessions, a_send_with_invalidate);
    tcase_add_test(sessions, a_send_that_invalidates_a_foreign_key);
    tcase_add_test(sessions, a_target_on_the_same_device);
    tcase_add_test(sessions, the_way_to_a_target);
    tcase_add_test(sessions, a_short_address_vector);
    suite_add_tcase(s, sessions);
    tcase_add_checked_fixture(losses, setup, teardown);
    tcase_add_test(losses, lost_answers_carry_nothing_out_twice);
    tcase_add_test(losses, a_lost_connect_is_sent_again);
    tcase_add_test(losses, a_silent_target_is_given_up);
    tcase_add_test(losses, a_lost_disconnect);
    tcase_add_test(losses, late_packets_of_an_old_session);
    tcase_add_test(losses, a_connect_with_a_wrong_address);
    tcase_add_test(losses, a_late_connect_with_a_wrong_address);
    tcase_add_test(losses, the_initiator_moves);
    tcase_add_test(losses, the_initiator_has_another_gid);
    tcase_add_test(losses, a_very_late_connect_of_the_last_session);
    suite_add_tcase(s, losses);
    tcase_add_checked_fixture(refusals, setup, teardown);
    tcase_add_test(refusals, a_wrong_key_is_counted_and_raises_one_event);
    tcase_add_test(refusals, another_version_of_the_transport);
    tcase_add_test(refusals, no_responder_to_give);
    tcase_add_test(refusals, a_dc_initiator_that_is_always_refused_fails);
    tcase_add_test(refusals, a_fault_ends_one_responder);
    tcase_add_test(refusals, a_lost_nak);
    suite_add_tcase(s, refusals);
    tcase_add_checked_fixture(life, setup, teardown);
    tcase_add_test(life, rts2rts_does_not_disturb);
    tcase_add_test(life, the_queues_of_an_initiator);
    tcase_add_test(life, a_target_drains_and_goes);
    tcase_add_test(life, a_message_in_progress_is_flushed);
    tcase_add_test(life, a_target_is_destroyed_without_draining);
    suite_add_tcase(s, life);
    tcase_add_checked_fixture(hostile, setup, teardown);
    tcase_add_test(hostile, a_peer_that_sends_anything);
    tcase_add_test(hostile, the_least_recently_used_goes);
    suite_add_tcase(s, hostile);
    return s;
}
