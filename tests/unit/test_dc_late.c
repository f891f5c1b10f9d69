/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what an initiator may do to its target repeatedly or late (model/rdma/dct.h). */
#include <stdlib.h>
#include "model/memory/mkey_priv.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_dc.h"

static void again(const struct roce_packet *pkt, const struct dcceth *connect)
{
    size_t len = connect ? DCC_ETH_BYTES : 0;
    uint8_t *frame = wire_tx_reserve(lab->mid[1], roce_frame_len(pkt, len));
    uint8_t *payload;

    ck_assert_ptr_nonnull(frame);
    payload = roce_build(frame, pkt, len);
    if (connect) {
        dcceth_build(payload, connect);
    }
    wire_tx_commit(lab->mid[1], roce_finish(frame, pkt, len));
    lab_run(lab);
}

static unsigned count_events(uint8_t of_type)
{
    unsigned n = 0;
    uint8_t type;
    uint32_t num;

    while (lab_event(far, &type, &num)) {
        ck_assert_uint_eq(type, of_type);
        ck_assert_uint_eq(num, dct.dctn);
        n++;
    }
    return n;
}

static struct lab_wr read_of(uint32_t rkey)
{
    return (struct lab_wr){.opcode = PRM_WQE_OPCODE_RDMA_READ,
                           .sge = {{src, LEN, 0}},
                           .num_sge = 1,
                           .raddr = dst,
                           .rkey = rkey};
}

static bool no_disconnect(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    return pkt->opcode != (BTH_DC | BTH_CONNECT) || !pkt->solicited;
}

/* -- events ------------------------------------------------------------------------------------ */

/* A READ whose data cannot be read is repeated: one event reports that the responder has failed,
 * however much time passes, and the initiator gets an answer each time. */
START_TEST(a_failed_responder_raises_one_event)
{
    uint32_t key = lab_mr(far, dst, LEN, MEM_REMOTE_READ);
    struct mkey *mkey = mkey_find(&far->hca, key >> 8);
    uint32_t capacity = mkey->capacity;
    struct lab_wr read = read_of(key);
    struct roce_packet pkt;

    lab->tap = no_disconnect;
    mkey->capacity = 0; /* its range is longer than its list of pages */
    lab_post(&dci, lab_to(&read, &dct));
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    pkt = lab->trace[1].pkt;
    ck_assert_uint_eq(pkt.opcode, BTH_DC | BTH_READ_REQUEST);
    for (unsigned i = 0; i < 10; i++) {
        lab->num_packets = 0;
        again(&pkt, NULL);
        ck_assert_uint_eq(lab->num_packets, 1);
        lab_advance(lab, 2 * DC_SECOND);
    }
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_WQ_ACCESS_ERROR), 1);
    mkey->capacity = capacity;
}
END_TEST

/* A READ that was executed is repeated after its key is gone: it is dropped (ADR 15). */
START_TEST(a_read_whose_key_is_gone_is_not_answered_again)
{
    uint32_t key = lab_mr(far, dst, LEN, MEM_REMOTE_READ);
    struct lab_wr read = read_of(key);
    struct roce_packet pkt;

    lab->tap = no_disconnect;
    lab_post(&dci, lab_to(&read, &dct));
    lab_run(lab);
    expect_sent(0);
    pkt = lab->trace[1].pkt;
    mkey_trim(&far->hca, &mkey_find(&far->hca, key >> 8)->obj); /* the key begins to be destroyed */
    lab->num_packets = 0;
    again(&pkt, NULL);
    ck_assert_uint_eq(lab->num_packets, 0);
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_WQ_ACCESS_ERROR), 0);
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
}
END_TEST

/* One session after the other, each with a bad request: one event a second. */
START_TEST(many_bad_sessions_raise_few_events)
{
    struct lab_wr read = read_of(far->key ^ 0x100);
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct roce_packet first, second;

    lab_post(&dci, lab_to(&read, &dct));
    lab_run(lab);
    expect_sent(PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_WQ_ACCESS_ERROR), 1);
    first = lab->trace[0].pkt;
    second = lab->trace[1].pkt;
    connect.psn = first.psn;
    for (unsigned i = 0; i < 40; i++) {
        first.dceth.session = second.dceth.session = second.dceth.session + 1;
        again(&first, &connect);
        again(&second, NULL);
    }
    ck_assert_uint_eq(q_counter_get(&far->hca, 0)->rx_dct_connect, 41);
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_WQ_ACCESS_ERROR), 0);
    lab_advance(lab, DC_SECOND);
    first.dceth.session = second.dceth.session = second.dceth.session + 1;
    again(&first, &connect);
    again(&second, NULL);
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_WQ_ACCESS_ERROR), 1);
}
END_TEST

/* -- the return path --------------------------------------------------------------------------- */

/* A tag of VLAN 0 contains only a priority (IEEE 802.1Q). A frame with it belongs to the GID
 * without a VLAN, and is still answered so when the GID table has changed. */
START_TEST(a_connect_with_a_priority)
{
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct vport_gid none = {0};
    struct roce_packet first, second;

    lab->tap = no_disconnect;
    add_to(&dci, &dct);
    lab_run(lab);
    expect_sent(0);
    first = lab->trace[0].pkt;
    second = lab->trace[1].pkt;
    first.addr.has_vlan = second.addr.has_vlan = true;
    first.addr.vlan_tci = second.addr.vlan_tci = 5 << 13;
    connect.psn = first.psn;
    first.dceth.session = second.dceth.session = second.dceth.session + 1;
    again(&first, &connect);
    vport_set_gid(far->hca.vport, 9, &none);
    lab->num_packets = 0;
    again(&second, NULL);
    ck_assert_uint_eq(sum(), 2);
    ck_assert_uint_eq(lab->num_packets, 1);
    ck_assert_uint_eq(lab->trace[0].from, 1);
    ck_assert(!lab->trace[0].pkt.addr.has_vlan);
}
END_TEST

/* -- notes ------------------------------------------------------------------------------------- */

static struct dc_source source_of(uint32_t dci_num, uint8_t a, uint8_t b)
{
    return (struct dc_source){.gid = {a, b}, .dci = dci_num};
}

/* A session that was silent for long and then ended is replaced before younger ones. */
START_TEST(an_old_note_makes_room_first)
{
    struct dc_source source;

    lab->tap = no_disconnect;
    add_to(&dci, &dct);
    lab_advance(lab, 2 * DC_LATE_NS);
    expect_sent(0);
    for (unsigned i = 0; i < DC_NOTES - 1; i++) {
        source = source_of(i, 1, 2);
        ck_assert_ptr_nonnull(dc_note_new(&far->hca, &source));
    }
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_OK);
    source = source_of(DC_NOTES, 1, 2);
    ck_assert_ptr_nonnull(dc_note_new(&far->hca, &source));
    source = source_of(DC_NOTES + 1, 1, 2);
    ck_assert_ptr_null(dc_note_new(&far->hca, &source)); /* all other notes are young */
}
END_TEST

/* Peers choose the values by which notes are found, but do not know the factors of the hash. Bytes
 * that compensate each other in a sum of powers (of 33, here) do not collide. */
START_TEST(initiators_do_not_meet_in_one_place)
{
    g_autoptr(GHashTable) places = g_hash_table_new(NULL, NULL);

    for (unsigned i = 0; i < 7; i++) {
        struct dc_source source = source_of(5, (uint8_t)(7 - i), (uint8_t)(33 * i));

        g_hash_table_add(places, GUINT_TO_POINTER(dc_source_hash(&source)));
    }
    ck_assert_uint_eq(g_hash_table_size(places), 7);
}
END_TEST

/* -- many initiators --------------------------------------------------------------------------- */

#define MANY   200
#define BUDGET 64 /* pieces of a turn */

static void connect_many(void)
{
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct roce_packet first;

    far->hca.limits.dc_responders = MANY;
    add_to(&dci, &dct);
    lab_advance(lab, LOOK); /* the initiator has left */
    expect_sent(0);
    first = lab->trace[0].pkt;
    for (unsigned i = 0; i < MANY; i++) {
        first.dceth.number = 0x1000 + i;
        again(&first, &connect);
    }
    ck_assert_uint_eq(responders(), MANY);
}

/* However many responders a target has, a turn ends: the rest drain in later turns. */
START_TEST(a_target_drains_in_turns)
{
    unsigned turns = 0;

    connect_many();
    far->hca.most_pieces = 0;
    ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_OK);
    while (hca_run(&far->hca, BUDGET)) {
        turns++;
        ck_assert_uint_ge(responders() + turns * (BUDGET + 1), MANY);
    }
    ck_assert_uint_ge(turns, MANY / BUDGET);
    ck_assert_uint_le(far->hca.most_pieces, 2 * BUDGET);
    ck_assert_uint_eq(responders(), 0);
    ck_assert_uint_eq(count_events(PRM_EVENT_TYPE_DCT_DRAINED), 1);
}
END_TEST

/* Its destruction also takes several turns, for which the command comes back. From the first turn
 * on the target accepts nothing. */
START_TEST(a_target_is_destroyed_in_pieces)
{
    struct dcceth connect = {.key = DC_LAB_KEY};
    struct roce_packet first;
    unsigned left = MANY;
    enum syn syn;

    connect_many();
    first = lab->trace[0].pkt;
    first.dceth.number = 0x2000;
    for (;;) {
        far->hca.pieces_end = far->hca.pieces + BUDGET;
        syn = dct_destroy(&far->hca, 0, dct.dctn);
        if (syn != SYN_AGAIN) {
            break;
        }
        ck_assert_uint_lt(responders(), left);
        ck_assert_uint_ge(responders() + BUDGET, left);
        left = responders();
        again(&first, &connect);
        ck_assert_uint_eq(responders(), left);
        ck_assert_int_eq(dct_drain(&far->hca, 0, dct.dctn), SYN_DCT_STATE);
    }
    ck_assert_int_eq(syn, SYN_OK);
    ck_assert_uint_lt(left, MANY);
    ck_assert_int_eq(dct_destroy(&far->hca, 0, dct.dctn), SYN_DCT_NUM);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("dc late");
    TCase *tc = tcase_create("late");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_failed_responder_raises_one_event);
    tcase_add_test(tc, a_read_whose_key_is_gone_is_not_answered_again);
    tcase_add_test(tc, many_bad_sessions_raise_few_events);
    tcase_add_test(tc, a_connect_with_a_priority);
    tcase_add_test(tc, an_old_note_makes_room_first);
    tcase_add_test(tc, initiators_do_not_meet_in_one_place);
    tcase_add_test(tc, a_target_drains_in_turns);
    tcase_add_test(tc, a_target_is_destroyed_in_pieces);
    suite_add_tcase(s, tc);
    return s;
}
