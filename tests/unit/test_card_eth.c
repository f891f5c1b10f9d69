/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests Ethernet between two functions of a card: which function gets a frame, by its destination,
 * and how the vports' lists are searched.
 */
#include <check.h>
#include <string.h>
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define FRAME 100

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const uint8_t group[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};
static const uint8_t stranger[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t mac_of[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 0x11}};

static struct card *card;
static struct bench *b[2];
static struct bench_queue rq[2], sq[2];

static struct vport *vport(unsigned i)
{
    return b[i]->rig.hca.vport;
}

static void setup(void)
{
    card = card_new();
    for (unsigned i = 0; i < 2; i++) {
        b[i] = bench_new_on(card, i);
        bench_rq_new(b[i], NULL, &rq[i]);
        bench_sq_new(b[i], b[i]->tisn, &sq[i]);
        bench_catch_all(b[i], bench_direct_tir(b[i], rq[i].num));
        for (unsigned n = 0; n < 8; n++) {
            bench_post_recv(&rq[i], bench_mem(b[i], NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
}

static void teardown(void)
{
    bench_free(b[0]);
    bench_free(b[1]);
    card_free(card);
}

static void settle(void)
{
    for (unsigned i = 0; i < 4; i++) {
        bench_run(b[i % 2]);
    }
}

static void fill_frame(uint8_t *frame, const uint8_t *dmac)
{
    memset(frame, 0x5a, FRAME);
    memcpy(frame, dmac, 6);
    memcpy(frame + 6, bench_peer_mac, 6);
    prm_store16(frame + 12, 0x88b5); /* local experimental */
}

/* Where frames went: bits 0 and 1 to a function, bit 2 out by the cable; each once. */
#define TO_FIRST  1u
#define TO_SECOND 2u
#define TO_CABLE  4u

static unsigned where(void)
{
    unsigned to = 0;

    settle();
    for (unsigned i = 0; i < 2; i++) {
        if (bench_cqe(&rq[i])) {
            to |= 1u << i;
            bench_expect_none(&rq[i]);
            bench_post_recv(&rq[i], bench_mem(b[i], NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
    ck_assert_uint_le(b[0]->num_frames, 1);
    to |= b[0]->num_frames ? TO_CABLE : 0;
    b[0]->num_frames = 0;
    return to;
}

static unsigned sent_by(unsigned i, const uint8_t *dmac)
{
    uint8_t frame[FRAME];
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};

    fill_frame(frame, dmac);
    wr.sge[0] = (struct bench_sge){bench_mem(b[i], frame, sizeof(frame)), sizeof(frame), 0};
    bench_send(&sq[i], &wr);
    return where();
}

static unsigned sent_by_cable(const uint8_t *dmac)
{
    uint8_t frame[FRAME];

    fill_frame(frame, dmac);
    bench_rx(b[0], frame, sizeof(frame));
    return where();
}

/* -- who gets a frame -------------------------------------------------------------------------- */

START_TEST(a_unicast_goes_to_the_owner_of_its_address)
{
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_SECOND);
    ck_assert_uint_eq(sent_by(1, mac_of[0]), TO_FIRST);
    ck_assert_uint_eq(sent_by_cable(mac_of[0]), TO_FIRST);
    ck_assert_uint_eq(sent_by_cable(mac_of[1]), TO_SECOND);
    ck_assert_uint_eq(sent_by(0, stranger), TO_CABLE);
    ck_assert_uint_eq(sent_by(1, stranger), TO_CABLE);
}
END_TEST

START_TEST(an_address_in_a_list_belongs_to_its_vport)
{
    vport_set_macs(vport(1), &vport(1)->uc, &stranger, 1);
    ck_assert_uint_eq(sent_by(0, stranger), TO_SECOND);
    ck_assert_uint_eq(sent_by_cable(stranger), TO_SECOND);
    vport_set_macs(vport(1), &vport(1)->uc, NULL, 0);
    ck_assert_uint_eq(sent_by(0, stranger), TO_CABLE);
}
END_TEST

START_TEST(a_frame_follows_a_changed_address)
{
    vport_set_mac(vport(1), stranger);
    ck_assert_uint_eq(sent_by(0, stranger), TO_SECOND);
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_CABLE);
    vport_set_macs(vport(1), &vport(1)->uc, &mac_of[1], 1);
    vport_set_mac(vport(1), mac_of[1]);
    vport_set_macs(vport(1), &vport(1)->uc, NULL, 0); /* the other vport had it, too */
    ck_assert_uint_eq(sent_by(0, stranger), TO_CABLE);
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_SECOND);
}
END_TEST

/* A vport keeps its permanent MAC. */
START_TEST(a_vport_that_is_released_keeps_its_first_address_alone)
{
    vport_set_macs(vport(1), &vport(1)->uc, &stranger, 1);
    vport_set_promisc(vport(1), false, false, true);
    ck_assert_uint_eq(sent_by_cable(mac_of[0]), TO_FIRST | TO_SECOND);
    vport_set_mac(vport(1), stranger);
    vport_release(vport(1));
    ck_assert_uint_eq(sent_by(0, stranger), TO_CABLE);
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_SECOND);
    ck_assert_uint_eq(sent_by_cable(mac_of[0]), TO_FIRST);
}
END_TEST

START_TEST(frames_from_the_cable_go_to_both_owners_of_an_address)
{
    vport_set_macs(vport(0), &vport(0)->uc, &stranger, 1);
    vport_set_macs(vport(1), &vport(1)->uc, &stranger, 1);
    ck_assert_uint_eq(sent_by_cable(stranger), TO_FIRST | TO_SECOND);
    vport_set_macs(vport(0), &vport(0)->uc, NULL, 0);
    ck_assert_uint_eq(sent_by_cable(stranger), TO_SECOND);
    vport_set_macs(vport(1), &vport(1)->uc, NULL, 0);
    ck_assert_uint_eq(g_hash_table_size(card->sw.macs), 2); /* their own */
}
END_TEST

/* A function's own frames to a group come back only by self_lb_block, which is off here. */
START_TEST(a_group_goes_to_its_listeners_and_to_the_cable)
{
    ck_assert_uint_eq(sent_by(0, group), TO_CABLE);
    vport_set_macs(vport(1), &vport(1)->mc, &group, 1);
    ck_assert_uint_eq(sent_by(0, group), TO_SECOND | TO_CABLE);
    ck_assert_uint_eq(sent_by_cable(group), TO_SECOND);
    vport_set_macs(vport(0), &vport(0)->mc, &group, 1);
    ck_assert_uint_eq(sent_by_cable(group), TO_FIRST | TO_SECOND);
    ck_assert_uint_eq(sent_by(1, group), TO_FIRST | TO_CABLE);
    ck_assert_uint_eq(sent_by(0, broadcast), TO_SECOND | TO_CABLE);
    ck_assert_uint_eq(sent_by_cable(broadcast), TO_FIRST | TO_SECOND);
}
END_TEST

/* A promiscuous vport sees what the cable brings (driver: esw_update_vport_rx_mode()), but not what
 * one function of the card sends to another. */
START_TEST(promiscuous_mode_applies_to_the_cable_only)
{
    vport_set_promisc(vport(0), false, false, true);
    ck_assert_uint_eq(sent_by_cable(mac_of[1]), TO_FIRST | TO_SECOND);
    ck_assert_uint_eq(sent_by_cable(stranger), TO_FIRST);
    ck_assert_uint_eq(sent_by(1, stranger), TO_CABLE);
    ck_assert_uint_eq(sent_by(1, mac_of[1]), 0); /* its own, and of its own transport domain */
}
END_TEST

/* A raw packet QP's flow adds nothing to any list. */
START_TEST(an_unlisted_address_goes_to_the_rules_of_all_vports)
{
    ck_assert_uint_eq(sent_by_cable(stranger), TO_FIRST | TO_SECOND);
    ck_assert_uint_eq(vport(0)->counters.rx_no_steering, 0);
}
END_TEST

/* A TIR does not take what its own transport domain sent. Another function's domains are different
 * domains, even if both have the same number, as here. */
START_TEST(another_functions_transport_domain_is_another)
{
    ck_assert_uint_eq(b[0]->tdn, b[1]->tdn);
    ck_assert_uint_eq(sent_by(0, mac_of[0]), 0);
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_SECOND);
}
END_TEST

START_TEST(no_link_is_needed_inside)
{
    port_set_wire(&b[0]->rig.hca, NULL);
    vport_set_macs(vport(1), &vport(1)->mc, &group, 1);
    ck_assert_uint_eq(sent_by(0, mac_of[1]), TO_SECOND);
    ck_assert_uint_eq(sent_by(0, group), TO_SECOND);
}
END_TEST

/* -- full tables ------------------------------------------------------------------------------- */

START_TEST(a_full_list_of_macs_is_searched_right)
{
    static uint8_t macs[PORT_MAX_MACS][6];
    struct mac_list *list = &vport(0)->uc;

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < PORT_MAX_MACS; i++) {
            memcpy(macs[i], (uint8_t[]){2, (uint8_t)round, 0, 0, (uint8_t)(i >> 4), (uint8_t)i}, 6);
        }
        mac_list_set(list, (const uint8_t(*)[6])macs, PORT_MAX_MACS);
        for (unsigned i = 0; i < PORT_MAX_MACS; i++) {
            uint8_t other[6];

            ck_assert(mac_list_has(list, macs[i]));
            ck_assert_mem_eq(list->mac[i], macs[i], 6);
            memcpy(other, macs[i], 6);
            other[1] ^= 1; /* of the previous round */
            ck_assert(!mac_list_has(list, other));
        }
    }
    mac_list_set(list, (const uint8_t(*)[6])macs, 1);
    ck_assert(mac_list_has(list, macs[0]));
    ck_assert(!mac_list_has(list, macs[1]));
    mac_list_set(list, NULL, 0);
    ck_assert(!mac_list_has(list, macs[0]));
}
END_TEST

static struct vport_gid gid_of(unsigned i, bool has_vlan, uint16_t vlan_id)
{
    struct vport_gid gid = {
        .valid = true, .version = PRM_ROCE_VERSION_V2, .has_vlan = has_vlan, .vlan_id = vlan_id};

    memcpy(gid.gid, (uint8_t[]){0xfe, 0x80, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)i}, 16);
    return gid;
}

static int find(const struct vport_gid *gid)
{
    return vport_find_gid(vport(0), gid->gid, gid->version == PRM_ROCE_VERSION_V1, gid->has_vlan,
                          gid->vlan_id);
}

/* Returns how many entries a look-up of a missing GID may have to pass. */
static unsigned longest_run_of_gids(void)
{
    unsigned longest = 0, run = 0;

    for (unsigned i = 0; i < 2 * VPORT_GID_SLOTS; i++) {
        run = vport(0)->gid_slots[i % VPORT_GID_SLOTS] ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    return longest;
}

START_TEST(a_full_table_of_gids_is_searched_right)
{
    struct vport_gid gid;

    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        gid = gid_of(i, false, 0);
        vport_set_gid(vport(0), i, &gid);
    }
    ck_assert_uint_lt(longest_run_of_gids(), PORT_MAX_GIDS / 4);
    for (unsigned i = 0; i < 2 * PORT_MAX_GIDS; i++) {
        gid = gid_of(i, false, 0);
        ck_assert_int_eq(find(&gid), i < PORT_MAX_GIDS ? (int)i : -1);
        gid = gid_of(i, true, 3);
        ck_assert_int_eq(find(&gid), -1);
    }
    for (unsigned i = 0; i < PORT_MAX_GIDS; i += 2) {
        vport_set_gid(vport(0), i, NULL);
    }
    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        gid = gid_of(i, false, 0);
        ck_assert_int_eq(find(&gid), i % 2 ? (int)i : -1);
    }
}
END_TEST

/* One GID in many VLANs, and of both RoCE versions; version 1.5 is not looked up. */
START_TEST(a_gid_is_found_by_its_version_and_vlan)
{
    static const uint8_t versions[] = {PRM_ROCE_VERSION_V1, 1, PRM_ROCE_VERSION_V2};
    struct vport_gid gid;

    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        gid = gid_of(7, i > 2, (uint16_t)(i / 3));
        gid.version = versions[i % 3];
        vport_set_gid(vport(0), i, &gid);
    }
    for (unsigned i = 0; i < PORT_MAX_GIDS; i++) {
        gid = gid_of(7, i > 2, (uint16_t)(i / 3));
        for (int is_v1 = 0; is_v1 < 2; is_v1++) {
            unsigned of_version = i / 3 * 3 + (is_v1 ? 0 : 2);

            ck_assert_int_eq(vport_find_gid(vport(0), gid.gid, is_v1, gid.has_vlan, gid.vlan_id),
                             of_version < PORT_MAX_GIDS ? (int)of_version : -1);
        }
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("card_eth");
    TCase *tcase = tcase_create("card_eth");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_unicast_goes_to_the_owner_of_its_address);
    tcase_add_test(tcase, an_address_in_a_list_belongs_to_its_vport);
    tcase_add_test(tcase, a_frame_follows_a_changed_address);
    tcase_add_test(tcase, a_vport_that_is_released_keeps_its_first_address_alone);
    tcase_add_test(tcase, frames_from_the_cable_go_to_both_owners_of_an_address);
    tcase_add_test(tcase, a_group_goes_to_its_listeners_and_to_the_cable);
    tcase_add_test(tcase, promiscuous_mode_applies_to_the_cable_only);
    tcase_add_test(tcase, an_unlisted_address_goes_to_the_rules_of_all_vports);
    tcase_add_test(tcase, another_functions_transport_domain_is_another);
    tcase_add_test(tcase, no_link_is_needed_inside);
    tcase_add_test(tcase, a_full_list_of_macs_is_searched_right);
    tcase_add_test(tcase, a_full_table_of_gids_is_searched_right);
    tcase_add_test(tcase, a_gid_is_found_by_its_version_and_vlan);
    suite_add_tcase(suite, tcase);
    return suite;
}
