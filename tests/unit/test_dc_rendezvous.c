/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests rendezvous over DC, packet by packet. An initiator on side 0 sends a request and has a
 * target of its own there, from which the data is read and which gets the FIN (ravh). The XRQ on
 * side 1 fetches.
 */
#include <stdlib.h>
#include <string.h>
#include "model/rdma/rdma.h"
#include "model/rdma/xrq_dci.h"
#include "tests/unit/dc_tags_lab.h"
#include "tests/unit/suite.h"

#define REQUEST (HEADER + PRM_SIZE(rvh) + PRM_SIZE(ravh))
#define DATA    REQUEST /* offset of the data in its initiator's memory */
#define LONG    2500u

static struct lab_dct back;
static struct prm_set_xrq_dc_params_entry_in params[1];
static uint64_t fins;
static uint32_t read_key;

static enum syn set_params(void)
{
    return xrq_set_dc_params(&far->hca, 0, params);
}

static void rendezvous_setup(void)
{
    dc_tags_setup();
    dc_tags_target(true);
    PRM_SET(set_xrq_dc_params_entry_in, params, xrqn, xrq->obj.num);
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, PRM_QP_MTU_1024);
    PRM_SET(set_xrq_dc_params_entry_in, params, ack_timeout, LAB_ACK_TIMEOUT);
    ck_assert_int_eq(set_params(), SYN_OK);
    lab_dct_new(near, &back);
    fins = lab_mem(near, TAGS * 64, 0);
    for (unsigned i = 0; i < TAGS; i++) {
        lab_dct_post_recv(&back, fins + i * 64, 64);
    }
    read_key = near->key;
}

/* Sends a request for len bytes behind it, to be fetched from the target dctn with that key. It
 * comes from the address at that index of the address table. */
static void ask_from_gid(struct lab_qp *dci, uint64_t tag, uint32_t len, uint32_t dctn,
                         uint64_t key, unsigned gid)
{
    void *at = lab_ptr(near, memory_of(dci), REQUEST);
    struct prm_tmh *tmh = at;
    struct prm_rvh *rvh = (void *)(tmh + 1);
    struct prm_ravh *ravh = (void *)(rvh + 1);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .unsignaled = true,
                        .inline_data = at,
                        .inline_len = REQUEST};

    memset(at, 0, REQUEST);
    PRM_SET(tmh, tmh, op, PRM_TM_OP_RNDV);
    PRM_SET(tmh, tmh, app_ctx, 0x1234);
    PRM_SET(tmh, tmh, tag, tag);
    PRM_SET(rvh, rvh, va, memory_of(dci) + DATA);
    PRM_SET(rvh, rvh, rkey, read_key);
    PRM_SET(rvh, rvh, len, len);
    PRM_SET(ravh, ravh, dct, dctn);
    PRM_SET(ravh, ravh, dc_access_key, key);
    PRM_SET(wqe_av, lab_write_wqe(dci, lab_to(&wr, &dct)) + PRM_SIZE(wqe_ctrl_seg), src_addr_index,
            gid);
    lab_ring(dci);
}

static void ask_from(struct lab_qp *dci, uint64_t tag, uint32_t len, uint32_t dctn, uint64_t key)
{
    ask_from_gid(dci, tag, len, dctn, key, 3);
}

static void ask(struct lab_qp *dci, uint64_t tag, uint32_t len)
{
    ask_from(dci, tag, len, back.dctn, DC_LAB_KEY);
}

static void expect_fetched(const struct lab_qp *dci, uint16_t handle, uint32_t len)
{
    const struct prm_cqe64 *cqe = EXPECT(EXPECTED, handle);

    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), len);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rqpn), dci->qp->obj.num);
    ck_assert_mem_eq(lab_ptr(far, dst + handle * ROOM, len),
                     lab_ptr(near, memory_of(dci) + DATA, len), len);
    ck_assert_uint_eq(xrq->tags->entries[handle].state, TAG_FREE);
}

/* Expects FIN number n in the sender's receive WQE. "A copy of the original TMH and RVH of the
 * rendezvous request, apart the opcode." */
static void expect_fin(unsigned n, const struct lab_qp *dci)
{
    const struct prm_tmh *tmh = lab_ptr(near, fins + n * 64, 32);
    struct lab_cqe cqe;

    ck_assert(lab_poll(near, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(cqe.qpn, back.dctn);
    ck_assert_uint_eq(cqe.byte_cnt, 32);
    ck_assert_uint_eq(PRM_GET(tmh, tmh, op), PRM_TM_OP_FIN);
    ck_assert_mem_eq((const uint8_t *)tmh + 1, lab_ptr(near, memory_of(dci) + 1, 31), 31);
}

static unsigned num_seen(unsigned from, uint8_t bth_op)
{
    return lab_count(lab, from, bth_op);
}

/* Sends a CNP as from the target that the XRQ's initiator is connected to. */
static void tell_of_congestion(const struct qp *qp)
{
    struct roce_packet pkt = {.addr = qp->peer.path,
                              .opcode = BTH_CNP_OPCODE,
                              .becn = true,
                              .pkey = 0xffff,
                              .dest_qp = qp->obj.num};
    struct wire_port *wire = lab->mid[1];
    uint8_t *frame;

    memcpy(pkt.addr.dmac, qp->peer.path.smac, 6);
    memcpy(pkt.addr.smac, qp->peer.path.dmac, 6);
    memcpy(pkt.addr.dgid, qp->peer.path.sgid, 16);
    memcpy(pkt.addr.sgid, qp->peer.path.dgid, 16);
    frame = wire_tx_reserve(wire, roce_frame_len(&pkt, 0));
    ck_assert_ptr_nonnull(frame);
    roce_build(frame, &pkt, 0);
    wire_tx_commit(wire, roce_finish(frame, &pkt, 0));
    lab_run(lab);
}

/* Checks the packets of the far side, in order, up to the answer to the request. */
START_TEST(the_data_is_read_from_the_senders_target_and_acknowledged)
{
    static const uint8_t ops[] = {BTH_ACK, BTH_CONNECT, BTH_READ_REQUEST, BTH_SEND_ONLY};
    uint16_t handle = append(7, ROOM);
    const struct xrq_dci *dci = xrq->dci;
    unsigned seen = 0;

    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_fetched(&one, handle, LONG);
    expect_fin(0, &one);
    expect_none();
    for (unsigned i = 0; i < lab->num_packets; i++) {
        const struct roce_packet *pkt = &lab->trace[i].pkt;
        uint8_t op = pkt->opcode & 0x1f;

        if (lab->trace[i].from == 0) {
            continue;
        }
        ck_assert_uint_lt(seen, G_N_ELEMENTS(ops));
        if (op == BTH_ACK) { /* the answer to the request, whenever it is sent */
            ck_assert_uint_eq(pkt->dest_qp, one.qp->obj.num);
        } else {
            ck_assert_uint_eq(pkt->dest_qp, back.dctn);
            ck_assert_uint_eq(pkt->dceth.number, dci->qp.obj.num);
        }
        if (op == BTH_READ_REQUEST) {
            ck_assert_uint_eq(pkt->reth.va, memory_of(&one) + DATA);
            ck_assert_uint_eq(pkt->reth.rkey, near->key);
            ck_assert_uint_eq(pkt->reth.len, LONG);
        }
        seen++;
    }
    ck_assert_uint_eq(seen, G_N_ELEMENTS(ops));
    for (unsigned i = 0; i < G_N_ELEMENTS(ops); i++) {
        ck_assert_uint_eq(num_seen(1, ops[i]), 1);
    }
}
END_TEST

START_TEST(an_empty_message_is_read_and_acknowledged)
{
    uint16_t handle = append(7, 0);

    ask(&one, 7, 0);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_fetched(&one, handle, 0);
    expect_fin(0, &one);
}
END_TEST

/* Each request is served in turn; the first request is not served last. */
START_TEST(requests_of_many_are_carried_out)
{
    uint16_t first = append(1, ROOM), second = append(2, ROOM);

    ask(&one, 1, LONG);
    ask(&two, 2, 100);
    lab_run(lab);
    EXPECT(CONSUMED, first);
    EXPECT(CONSUMED, second);
    expect_fetched(&one, first, LONG);
    expect_fetched(&two, second, 100);
    expect_fin(0, &one);
    expect_fin(1, &two);
    expect_none();
}
END_TEST

/* A CNP slows down the XRQ's initiator: its requests wait and then continue. The link has 1 Gb/s,
 * of which it keeps 1 Mb/s. */
START_TEST(congestion_slows_the_initiator_down)
{
    struct cong *cong = &far->hca.vport->uplink->cong;
    struct qp *qp = &xrq->dci->qp;
    uint16_t first = append(1, ROOM), second = append(2, ROOM);

    far->hca.vport->uplink->line_mbps = 1000;
    cong->rp.rate_to_set_on_first_cnp = 1;
    ask(&one, 1, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, first);
    expect_fetched(&one, first, LONG);
    tell_of_congestion(qp);
    ck_assert_uint_eq(cong->counters.cnps_handled, 1);
    ask(&two, 2, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, second);
    expect_none();
    lab_advance(lab, 10 * LAB_MS);
    expect_fetched(&two, second, LONG);
}
END_TEST

/* -- loss -------------------------------------------------------------------------------------- */

/* Loses one packet of a rendezvous: the nth, from either side. */
static unsigned lost;

static bool lose_one(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return l->tap_count++ != lost;
}

/* Nothing is fetched or acknowledged twice. */
START_TEST(a_lost_packet_of_a_fetch_is_sent_again)
{
    uint16_t handle = append(7, ROOM);
    struct lab_cqe cqe;

    lost = (unsigned)_i;
    lab->tap = lose_one;
    ask(&one, 7, LONG);
    lab_run(lab);
    lab_advance(lab, 100 * LAB_MS);
    EXPECT(CONSUMED, handle);
    expect_fetched(&one, handle, LONG);
    expect_fin(0, &one);
    expect_none();
    ck_assert(!lab_poll(near, &cqe));
    ck_assert_uint_gt(lab->tap_count, lost);
}
END_TEST

/* -- what is not fetched ----------------------------------------------------------------------- */

/* "When a posted tagged buffer is insufficient to hold the data of a rendezvous request, the TMH
 * and RVH headers are scattered into the tagged buffer, and message handling is resumed by SW." The
 * same happens if the XRQ has no initiator, the target no offload, or the request no ravh. */
START_TEST(a_rendezvous_that_is_not_fetched_is_left_to_software)
{
    uint16_t handle;
    uint32_t bytes = REQUEST;

    switch (_i) {
    case 1:
        dc_tags_target(true);
        break;
    case 2:
        PRM_SET(dctc, lab_dct_of(&dct)->dctc, offload_type, PRM_QP_OFFLOAD_NONE);
        break;
    case 3:
        bytes = HEADER + PRM_SIZE(rvh) + PRM_SIZE(ravh) - 1;
        break;
    default:
        break;
    }
    handle = append(7, _i == 0 ? LONG - 1 : ROOM);
    if (_i == 3) {
        send_tagged(&one, PRM_TM_OP_RNDV, 7, bytes - (uint32_t)HEADER);
    } else {
        ask(&one, 7, LONG);
    }
    lab_run(lab);
    ck_assert_uint_eq(PRM_GET(cqe64, EXPECT(CONSUMED_MSG_SW_RNDV, handle), byte_cnt), bytes);
    expect_none();
    ck_assert_uint_eq(num_seen(1, BTH_READ_REQUEST), 0);
}
END_TEST

/* -- failures ---------------------------------------------------------------------------------- */

/* A rendezvous works afterwards: the failure affected only its own request. */
static void expect_another_to_work(unsigned nth_fin)
{
    uint16_t handle = append(8, ROOM);

    ask(&two, 8, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_fetched(&two, handle, LONG);
    expect_fin(nth_fin, &two);
    expect_none();
}

START_TEST(a_key_that_does_not_allow_it_cancels_that_one_alone)
{
    uint16_t refused = append(7, ROOM), other = append(6, ROOM);

    read_key = lab_mr(near, memory_of(&one), ROOM, MEM_LOCAL_WRITE);
    ask(&one, 7, LONG);
    read_key = near->key;
    ask(&two, 6, 10); /* waits behind the first request */
    lab_run(lab);
    EXPECT(CONSUMED, refused);
    EXPECT(CONSUMED, other);
    EXPECT(MSG_COMPLETION_CANCELED, refused);
    expect_fetched(&two, other, 10);
    expect_fin(0, &two);
    ck_assert_uint_eq(xrq->tags->entries[refused].state, TAG_FREE);
    expect_another_to_work(1);
}
END_TEST

/* The memory of the entry: the data has come, and cannot be written. */
START_TEST(a_buffer_that_cannot_be_written_cancels_that_one_alone)
{
    uint16_t handle = append(7, ROOM);

    xrq->tags->entries[handle].buffer.lkey = far->key + 0x100;
    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    EXPECT(MSG_COMPLETION_CANCELED, handle);
    expect_another_to_work(0);
}
END_TEST

static bool lose_its_fin(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return pkt->dest_qp != l->tap_count || (pkt->opcode & 0x1f) != BTH_SEND_ONLY;
}

/* A target that does not exist, or has another key, does not answer. The request is given up after
 * the largest number of retries that a QP can have. */
START_TEST(a_target_that_does_not_answer_is_given_up)
{
    uint16_t handle = append(7, ROOM);

    ask_from(&one, 7, LONG, _i ? back.dctn : 0x3ffff, _i ? DC_LAB_KEY + 1 : DC_LAB_KEY);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_none();
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    EXPECT(MSG_COMPLETION_CANCELED, handle);
    expect_another_to_work(0);
}
END_TEST

/* Returns how many initiators the XRQ has. */
static unsigned num_initiators(void)
{
    unsigned n = 0;

    for (const struct xrq_dci *dci = xrq->dci; dci; dci = dci->next) {
        n++;
    }
    return n;
}

#define NO_TARGET 0x3ff00u

START_TEST(a_silent_target_keeps_no_other_waiting)
{
    uint16_t silent = append(7, ROOM);

    ask_from(&one, 7, LONG, NO_TARGET, DC_LAB_KEY);
    lab_run(lab);
    EXPECT(CONSUMED, silent);
    expect_another_to_work(0);
    expect_another_to_work(1);
    ck_assert_uint_eq(num_initiators(), 2);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    EXPECT(MSG_COMPLETION_CANCELED, silent);
}
END_TEST

/* The target has answered, but does not accept the FIN. */
START_TEST(a_target_that_falls_silent_keeps_no_other_waiting)
{
    uint16_t silent = append(7, ROOM);
    struct lab_dct dying;

    lab_dct_new(near, &dying);
    lab_dct_post_recv(&dying, fins, 64);
    lab->tap = lose_its_fin;
    lab->tap_count = dying.dctn;
    ask_from(&one, 7, LONG, dying.dctn, DC_LAB_KEY);
    lab_run(lab);
    EXPECT(CONSUMED, silent);
    expect_none();
    expect_another_to_work(0);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_fetched(&one, silent, LONG);
}
END_TEST

/* One address can use only a part of the initiators, however many targets it names. */
START_TEST(an_address_takes_a_part_of_the_initiators)
{
    struct vport_gid gid = near->hca.vport->gids[3];
    uint16_t silent[TAGS - 2], handle;

    gid.gid[15] = 77;
    vport_set_gid(near->hca.vport, 4, &gid);
    for (unsigned i = 0; i < TAGS - 2; i++) {
        silent[i] = append(7, ROOM);
        ask_from(&one, 7, LONG, NO_TARGET + i, DC_LAB_KEY);
        lab_run(lab);
        EXPECT(CONSUMED, silent[i]);
    }
    ck_assert_uint_eq(num_initiators(), XRQ_DCIS_OF_HOST);
    handle = append(8, ROOM);
    ask_from_gid(&two, 8, LONG, back.dctn, DC_LAB_KEY, 4);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_fetched(&two, handle, LONG);
    ck_assert_uint_eq(num_initiators(), XRQ_DCIS_OF_HOST + 1);
    lab_advance(lab, 60 * LAB_ACK_TIMEOUT_NS);
    for (unsigned i = 0; i < TAGS - 2; i++) {
        ck_assert_uint_eq(PRM_GET(cqe64, next_cqe(), app_op),
                          PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    }
    expect_none();
}
END_TEST

/* Without memory for another initiator the first one serves all requests, one after the other. */
START_TEST(one_initiator_serves_all_requests_if_memory_is_short)
{
    const unsigned n = TAGS - 1;

    for (unsigned i = 0; i < n; i++) {
        uint16_t handle = append(7, ROOM);

        ask_from(&one, 7, LONG, NO_TARGET + i, DC_LAB_KEY);
        lab_run(lab);
        EXPECT(CONSUMED, handle);
        far->hca.memory.limit = far->hca.memory.used;
    }
    ck_assert_uint_eq(num_initiators(), 1);
    far->hca.memory.limit = UINT64_MAX;
    lab_advance(lab, 20 * n * LAB_ACK_TIMEOUT_NS);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(PRM_GET(cqe64, next_cqe(), app_op),
                          PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    }
    expect_another_to_work(0);
}
END_TEST

/* 0 means no timeout for a QP, and 31 means two hours; here it is 4.3 s at most. */
START_TEST(a_fetch_with_any_timeout_parameter_ends)
{
    static const uint8_t timeouts[] = {0, 31};
    uint16_t handle = append(7, ROOM);

    PRM_SET(set_xrq_dc_params_entry_in, params, ack_timeout, timeouts[_i]);
    ck_assert_int_eq(set_params(), SYN_OK);
    ask_from(&one, 7, LONG, 0x3ffff, DC_LAB_KEY);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    lab_advance(lab, 60000 * LAB_MS);
    EXPECT(MSG_COMPLETION_CANCELED, handle);
}
END_TEST

static bool target_is_gone;

/* Destroys the sender's target as soon as the data has arrived. */
static bool destroy_behind_data(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    if (from == 0 && (pkt->opcode & 0x1f) == BTH_READ_RESP_LAST && !target_is_gone) {
        target_is_gone = true;
        ck_assert_int_eq(dct_destroy(&near->hca, 0, back.dctn), SYN_OK);
    }
    return true;
}

/* The FIN fails; the message is delivered anyway. */
START_TEST(data_that_has_arrived_stays_if_the_fin_fails)
{
    uint16_t handle = append(7, ROOM);

    lab->tap = destroy_behind_data;
    target_is_gone = false;
    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    expect_none();
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    expect_fetched(&one, handle, LONG);
}
END_TEST

/* The sender never has a receive WQE for the FIN. */
START_TEST(a_target_that_is_never_ready_is_given_up)
{
    uint16_t handle = append(7, ROOM);

    PRM_SET(srq_dbr, lab_ptr(near, back.dbr, 4), counter, 0); /* takes the posted WQE back */
    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    lab_advance(lab, 20 * LAB_MS);
    expect_none();
    lab_advance(lab, 200 * LAB_MS);
    expect_fetched(&one, handle, LONG);
}
END_TEST

/* -- ends -------------------------------------------------------------------------------------- */

/* Loses the answer to a READ, and everything after it. */
static bool lose_answers(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    uint8_t op = pkt->opcode & 0x1f;

    return from == 1 || op < BTH_READ_RESP_FIRST || op > BTH_READ_RESP_ONLY;
}

static void begin_what_does_not_end(void)
{
    uint16_t handle = append(7, ROOM);

    lab->tap = lose_answers;
    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    ck_assert_uint_eq(num_seen(1, BTH_READ_REQUEST), 1);
}

/* The fetch belongs to the XRQ, not to the target. */
START_TEST(a_fetch_goes_on_without_the_target_that_was_asked)
{
    uint16_t handle = append(7, ROOM);
    uint32_t dctn = dct.dctn;

    lab->tap = lose_answers;
    ask(&one, 7, LONG);
    lab_run(lab);
    EXPECT(CONSUMED, handle);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dctn), SYN_OK);
    lab->tap = NULL;
    lab_advance(lab, 4 * LAB_ACK_TIMEOUT_NS);
    expect_fetched(&one, handle, LONG);
    expect_fin(0, &one);
}
END_TEST

/* Nobody gets a FIN any more, and the sender's target gets its responder back. */
START_TEST(destroying_an_xrq_ends_its_fetches)
{
    uint32_t number = xrq->dci->qp.obj.num;
    uint64_t memory;

    begin_what_does_not_end();
    ck_assert_int_eq(srq_destroy(&far->hca, 0, xrq->obj.num, OBJ_XRQ), SYN_IN_USE);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    memory = far->hca.memory.used;
    ck_assert_int_eq(srq_destroy(&far->hca, 0, xrq->obj.num, OBJ_XRQ), SYN_OK);
    ck_assert_uint_le(far->hca.memory.used + sizeof(struct xrq_dci), memory);
    ck_assert_ptr_null(obj_find(&far->hca.qpns, number));
    lab->tap = NULL;
    lab_run(lab);
    lab_advance(lab, 100 * LAB_MS);
    expect_none();
    ck_assert_uint_eq(num_seen(1, BTH_READ_REQUEST), 1);
    ck_assert_uint_eq(lab_dct_of(&back)->responders.length, 0);
}
END_TEST

START_TEST(a_reset_ends_all_fetches)
{
    begin_what_does_not_end();
    hca_reset(&far->hca);
    ck_assert_uint_eq(far->hca.qpns.count, 0);
    ck_assert_uint_eq(far->hca.srqs.count, 0);
    lab->tap = NULL;
    lab_advance(lab, 100 * LAB_MS);
    ck_assert_uint_eq(num_seen(1, BTH_READ_REQUEST), 1);
}
END_TEST

/* -- the initiator ----------------------------------------------------------------------------- */

/* The initiator's number is among those of QPs. No command finds it by that number, and no packet
 * except answers. */
START_TEST(no_command_finds_the_initiator)
{
    const struct xrq_dci *dci = xrq->dci;
    uint32_t number = dci->qp.obj.num;
    struct prm_qpc qpc[1] = {0};
    struct lab_dct as_target = {.side = far, .dctn = number};
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_RDMA_WRITE, .unsignaled = true};
    uint64_t dropped = far->hca.vport->counters.rx_no_qp;

    ck_assert_int_eq(qp_query(&far->hca, number, qpc), SYN_QP_NUM);
    ck_assert_int_eq(qp_destroy(&far->hca, 0, number), SYN_QP_NUM);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, number), SYN_DCT_NUM);
    ck_assert_int_eq(qp_modify(&far->hca, 0, number, PRM_CMD_OP_2RST_QP, 0, qpc, NULL), SYN_QP_NUM);
    lab_post(&one, lab_to(&wr, &as_target));
    lab_run(lab);
    ck_assert_uint_gt(far->hca.vport->counters.rx_no_qp, dropped);
    ck_assert_uint_eq(dci->qp.state, PRM_QP_STATE_RTS);
}
END_TEST

/* A fetch counts its packets with the present MTU. */
START_TEST(parameters_change_while_nothing_is_fetched)
{
    begin_what_does_not_end();
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, PRM_QP_MTU_512);
    ck_assert_int_eq(set_params(), SYN_XRQ_FETCHES);
    ck_assert_uint_eq(xrq->dci->qp.mtu, 1024);
    lab_advance(lab, 20 * LAB_ACK_TIMEOUT_NS);
    ck_assert_uint_eq(PRM_GET(cqe64, next_cqe(), app_op), PRM_CQE_TM_OP_MSG_COMPLETION_CANCELED);
    ck_assert_int_eq(set_params(), SYN_OK);
    ck_assert_uint_eq(xrq->dci->qp.mtu, 512);
}
END_TEST

START_TEST(parameters_that_make_no_sense_are_refused)
{
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, 0);
    ck_assert_int_eq(set_params(), SYN_QP_MTU);
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, PRM_QP_MTU_4096 + 1);
    ck_assert_int_eq(set_params(), SYN_QP_MTU);
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, PRM_QP_MTU_1024);
    PRM_SET(set_xrq_dc_params_entry_in, params, pkey_table_index, 1);
    ck_assert_int_eq(set_params(), SYN_QP_PKEY);
    PRM_SET(set_xrq_dc_params_entry_in, params, pkey_table_index, 0);
    ck_assert_int_eq(xrq_set_dc_params(&far->hca, 1, params), SYN_BAD_UID);
    PRM_SET(set_xrq_dc_params_entry_in, params, xrqn, back.srq->obj.num + 100);
    ck_assert_int_eq(set_params(), SYN_SRQ_NUM);
    dc_tags_target(false);
    PRM_SET(set_xrq_dc_params_entry_in, params, xrqn, xrq->obj.num);
    ck_assert_int_eq(set_params(), SYN_XRQ_NOT_DC);
}
END_TEST

/* A target on an SRQ has nothing to offload. */
START_TEST(a_target_on_an_srq_has_no_rendezvous_offload)
{
    struct prm_dctc dctc[1];

    lab_dctc(near, dctc);
    PRM_SET(dctc, dctc, offload_type, PRM_QP_OFFLOAD_RNDV);
    ck_assert_int_eq(lab_dct_create(near, dctc, &back), SYN_QP_FEATURE);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("rendezvous over DC");
    TCase *tc = tcase_create("rendezvous");

    tcase_add_checked_fixture(tc, rendezvous_setup, dc_tags_teardown);
    tcase_add_test(tc, the_data_is_read_from_the_senders_target_and_acknowledged);
    tcase_add_test(tc, an_empty_message_is_read_and_acknowledged);
    tcase_add_test(tc, requests_of_many_are_carried_out);
    tcase_add_test(tc, congestion_slows_the_initiator_down);
    tcase_add_loop_test(tc, a_lost_packet_of_a_fetch_is_sent_again, 0, 10);
    tcase_add_loop_test(tc, a_rendezvous_that_is_not_fetched_is_left_to_software, 0, 4);
    tcase_add_test(tc, a_key_that_does_not_allow_it_cancels_that_one_alone);
    tcase_add_test(tc, a_buffer_that_cannot_be_written_cancels_that_one_alone);
    tcase_add_loop_test(tc, a_target_that_does_not_answer_is_given_up, 0, 2);
    tcase_add_test(tc, a_silent_target_keeps_no_other_waiting);
    tcase_add_test(tc, a_target_that_falls_silent_keeps_no_other_waiting);
    tcase_add_test(tc, an_address_takes_a_part_of_the_initiators);
    tcase_add_test(tc, one_initiator_serves_all_requests_if_memory_is_short);
    tcase_add_loop_test(tc, a_fetch_with_any_timeout_parameter_ends, 0, 2);
    tcase_add_test(tc, data_that_has_arrived_stays_if_the_fin_fails);
    tcase_add_test(tc, a_target_that_is_never_ready_is_given_up);
    tcase_add_test(tc, a_fetch_goes_on_without_the_target_that_was_asked);
    tcase_add_test(tc, destroying_an_xrq_ends_its_fetches);
    tcase_add_test(tc, a_reset_ends_all_fetches);
    tcase_add_test(tc, no_command_finds_the_initiator);
    tcase_add_test(tc, parameters_change_while_nothing_is_fetched);
    tcase_add_test(tc, parameters_that_make_no_sense_are_refused);
    tcase_add_test(tc, a_target_on_an_srq_has_no_rendezvous_offload);
    suite_add_tcase(suite, tc);
    return suite;
}
