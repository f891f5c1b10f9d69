/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a card with two functions, each with its own firmware, driver and host memory. Frames
 * between them stay in the card, frames to a third host leave by the one cable, and a reset of one
 * function does not affect the other.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "guest-lib/drv/drv.h"
#include "guest-lib/host/inproc.h"
#include "model/card/card.h"
#include "model/rdma/mcg.h"
#include "tests/unit/suite.h"
#include "wire/pair.h"

#define LEN    3000
#define MS     1000000ull
#define SECOND (1000 * MS)

/* A function as its driver knows it. */
struct side {
    struct inproc_hca *hca;
    struct drv *drv;
    uint8_t host; /* last byte of MAC and IPv4 address */
    uint8_t gid[16];
    struct drv_cq cq;
    struct drv_mem mem;
    struct drv_mr mr;
};

static struct inproc_world *world;
static struct card *card;
static struct side a, b, far; /* far: the third host, on its own card */
static struct wire_port *ends[2];

static struct vport *vport_of(const struct side *side)
{
    return side->hca->fw->hca.vport;
}

static void bring_up(struct side *side)
{
    GError *err = NULL;

    side->drv = drv_open(inproc_pci(side->hca), &err);
    ck_assert_msg(side->drv, "%s", err ? err->message : "");
    drv_ipv4_gid(side->gid, side->host);
    ck_assert_int_eq(drv_set_gid(side->drv, 0, side->gid), 0);
    ck_assert_int_eq(drv_create_cq(side->drv, 6, &side->cq), 0);
    side->mem = drv_alloc(side->drv, 2 * LEN);
    ck_assert_int_eq(
        drv_reg_mr(side->drv, side->drv->pdn, &side->mem, 0, 2 * LEN, DRV_ALL, &side->mr), 0);
}

static void side_new(struct side *side, struct card *on, unsigned function, uint8_t host)
{
    struct fw_config config = {.mac = {2, 0, 0, 0, 0, host}, .card = on, .function = function};
    GError *err = NULL;

    side->host = host;
    side->hca = inproc_hca_new(world, &config, &err);
    ck_assert_msg(side->hca, "%s", err ? err->message : "");
    bring_up(side);
}

static void setup(void)
{
    world = inproc_world_new();
    card = card_new();
    side_new(&a, card, 0, 1);
    side_new(&b, card, 1, 2);
    wire_pair_new(64, ends);
}

/* Connects the card and a third host by a cable. */
static void plug(void)
{
    side_new(&far, NULL, 0, 3);
    fw_set_wire(a.hca->fw, ends[0]);
    fw_set_wire(far.hca->fw, ends[1]);
    inproc_settle(world);
}

/* Removes the driver, whatever it has made. */
static void forget(struct side *side)
{
    fw_reset(side->hca->fw);
    side->drv->up = false;
    drv_close(side->drv);
    side->drv = NULL;
}

/* Also removes the function; its vport stays. */
static void end(struct side *side)
{
    struct inproc_hca *hca = side->hca;

    forget(side);
    inproc_hca_end(hca);
}

static void teardown(void)
{
    forget(&a);
    forget(&b);
    if (far.drv) {
        forget(&far);
    }
    inproc_world_free(world);
    card_free(card);
    wire_close(ends[0]);
    wire_close(ends[1]);
}

/* -- queue pairs ------------------------------------------------------------------------------- */

struct pair {
    struct side *side[2];
    struct drv_qp qp[2];
};

static void connect_one(struct drv_qp *qp, const struct side *to, const struct drv_qp *peer)
{
    struct drv_path path = {.remote_qpn = peer->qpn};

    memcpy(path.mac, to->drv->mac, 6);
    memcpy(path.gid, to->gid, 16);
    ck_assert_int_eq(drv_qp_connect(qp, &path), 0);
}

static struct pair rc_pair(struct side *first, struct side *second)
{
    struct pair pair = {.side = {first, second}};

    for (unsigned i = 0; i < 2; i++) {
        struct side *side = pair.side[i];
        struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                                   .pdn = side->drv->pdn,
                                   .send_cq = &side->cq,
                                   .recv_cq = &side->cq,
                                   .log_sq = 6,
                                   .log_rq = 4,
                                   .max_recv_sge = 1};

        ck_assert_int_eq(drv_create_qp(side->drv, &attr, &pair.qp[i]), 0);
    }
    connect_one(&pair.qp[0], second, &pair.qp[1]);
    connect_one(&pair.qp[1], first, &pair.qp[0]);
    return pair;
}

static struct drv_wc next_wc(struct side *side)
{
    struct drv_wc wc;

    ck_assert(drv_wait_cq(side->drv, &side->cq, &wc, 100 * SECOND));
    return wc;
}

static void post(struct pair *pair, uint8_t opcode)
{
    struct drv_sge from = {.va = 0, .len = LEN, .lkey = pair->side[0]->mr.key};
    struct drv_send send = {.opcode = opcode,
                            .flags = DRV_SIGNALED,
                            .sge = &from,
                            .num_sge = 1,
                            .raddr = LEN,
                            .rkey = pair->side[1]->mr.key};

    drv_post_send(&pair->qp[0], &send);
}

/* A SEND and a READ: the first half of one side's memory to the second half of the other side's,
 * and back. */
static void talk(struct pair *pair)
{
    static uint8_t seed;
    uint8_t *src = pair->side[0]->mem.ptr, *dst = (uint8_t *)pair->side[1]->mem.ptr + LEN;
    struct drv_sge to = {.va = LEN, .len = LEN, .lkey = pair->side[1]->mr.key};

    memset(src, ++seed, LEN);
    memset(dst, 0, LEN);
    drv_post_recv(&pair->qp[1], &to, 1);
    post(pair, PRM_WQE_OPCODE_SEND);
    /* in either order, if both are the same */
    ck_assert_uint_eq(next_wc(pair->side[0]).opcode + next_wc(pair->side[1]).opcode,
                      PRM_CQE_OPCODE_REQ + PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_mem_eq(src, dst, LEN);
    memset(dst, ++seed, LEN);
    post(pair, PRM_WQE_OPCODE_RDMA_READ);
    ck_assert_uint_eq(next_wc(pair->side[0]).opcode, PRM_CQE_OPCODE_REQ);
    ck_assert_mem_eq(src, dst, LEN);
}

/* -- inside the card --------------------------------------------------------------------------- */

START_TEST(functions_of_a_card_talk_without_a_cable)
{
    struct pair pair = rc_pair(&a, &b), back = rc_pair(&b, &a), own = rc_pair(&a, &a);

    talk(&pair);
    talk(&back);
    talk(&own);
    ck_assert_uint_eq(traffic_frames(&card->sw.uplink.counters.tx), 0);
    ck_assert_uint_eq(traffic_frames(&card->sw.uplink.counters.rx), 0);
    ck_assert_uint_gt(vport_of(&b)->counters.rx_roce.frames[FRAME_UNICAST], 0);
}
END_TEST

/* Both vports count a frame from one vport to another; no port counts it. */
START_TEST(each_vport_counts_its_own_frames)
{
    struct pair pair = rc_pair(&a, &b);

    talk(&pair);
    ck_assert_uint_eq(traffic_frames(&vport_of(&a)->counters.tx),
                      traffic_frames(&vport_of(&b)->counters.rx));
    ck_assert_uint_eq(traffic_bytes(&vport_of(&b)->counters.tx),
                      traffic_bytes(&vport_of(&a)->counters.rx));
}
END_TEST

/* Sends more than the queue of a vport holds: the sender waits for room, and no message is lost. */
START_TEST(many_messages_arrive_without_loss)
{
    struct pair pair = rc_pair(&a, &b);

    memset(a.mem.ptr, 0x5a, LEN);
    for (unsigned i = 0; i < 60; i++) {
        post(&pair, PRM_WQE_OPCODE_RDMA_WRITE);
    }
    for (unsigned i = 0; i < 60; i++) {
        ck_assert_uint_eq(next_wc(&a).opcode, PRM_CQE_OPCODE_REQ);
    }
    ck_assert_uint_eq(vport_of(&b)->counters.rx_discards, 0);
    ck_assert_uint_eq(traffic_frames(&vport_of(&b)->counters.rx_roce),
                      traffic_frames(&vport_of(&a)->counters.tx_roce));
    ck_assert_mem_eq(a.mem.ptr, (uint8_t *)b.mem.ptr + LEN, LEN);
}
END_TEST

/* -- the cable --------------------------------------------------------------------------------- */

START_TEST(each_function_reaches_a_third_host)
{
    struct pair from_a, from_b, to_b;

    plug();
    from_a = rc_pair(&a, &far);
    from_b = rc_pair(&b, &far);
    to_b = rc_pair(&far, &b);
    talk(&from_a);
    talk(&from_b);
    talk(&to_b);
    ck_assert_uint_eq(traffic_frames(&card->sw.uplink.counters.tx),
                      traffic_frames(&vport_of(&a)->counters.tx) +
                          traffic_frames(&vport_of(&b)->counters.tx));
    ck_assert_uint_eq(traffic_frames(&card->sw.uplink.counters.rx),
                      traffic_frames(&vport_of(&a)->counters.rx) +
                          traffic_frames(&vport_of(&b)->counters.rx));
}
END_TEST

/* Frames from the cable for a vport with a full queue wait on the cable. */
START_TEST(a_flood_from_the_cable_arrives_without_loss)
{
    struct pair pair;

    plug();
    pair = rc_pair(&far, &b);
    for (unsigned i = 0; i < 60; i++) {
        post(&pair, PRM_WQE_OPCODE_RDMA_WRITE);
    }
    for (unsigned i = 0; i < 60; i++) {
        ck_assert_uint_eq(next_wc(&far).opcode, PRM_CQE_OPCODE_REQ);
    }
    ck_assert_uint_eq(vport_of(&b)->counters.rx_discards, 0);
    ck_assert_uint_eq(traffic_frames(&vport_of(&b)->counters.rx_roce),
                      traffic_frames(&vport_of(&far)->counters.tx_roce));
}
END_TEST

/* Puts frames for b on the cable. */
static void frames_come(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint8_t *room = wire_tx_reserve(ends[1], 60);

        ck_assert_ptr_nonnull(room);
        memset(room, 0, 60);
        memcpy(room, b.drv->mac, 6);
        wire_tx_commit(ends[1], 60);
    }
    while (fw_run(a.hca->fw, 512)) {
    }
}

START_TEST(a_full_queue_holds_the_cable_until_it_is_read)
{
    enum {
        MORE = 8 /* they stay on the cable */
    };

    plug();
    frames_come(VPORT_QUEUE);
    frames_come(MORE);
    ck_assert(card->sw.cable_waits);
    ck_assert_uint_eq(traffic_frames(&vport_of(&b)->counters.rx), 0);
    inproc_settle(world);
    ck_assert(!card->sw.cable_waits);
    ck_assert_uint_eq(traffic_frames(&vport_of(&b)->counters.rx), VPORT_QUEUE + MORE);
    ck_assert_uint_eq(vport_of(&b)->counters.rx_discards, 0);
}
END_TEST

/* A multicast group is in none of the driver's lists: the card knows it by its members. Another
 * vport also takes the group, so the rules for everybody do not get it. */
START_TEST(a_group_goes_to_the_function_whose_qps_are_in_it)
{
    static const uint8_t mgid[16] = {[10] = 0xff, 0xff, 224, 1, 2, 3};
    static const uint8_t mac[6] = {0x01, 0x00, 0x5e, 1, 2, 3};
    struct hca *hca = &b.hca->fw->hca;
    struct drv_qp_attr attr = {.st = PRM_QP_ST_UD,
                               .pdn = b.drv->pdn,
                               .send_cq = &b.cq,
                               .recv_cq = &b.cq,
                               .log_sq = 6,
                               .log_rq = 4,
                               .max_recv_sge = 1};
    struct drv_qp qp;
    unsigned known;

    plug();
    known = g_hash_table_size(card->sw.macs);
    vport_set_promisc(vport_of(&a), false, true, false);
    ck_assert_int_eq(drv_create_qp(b.drv, &attr, &qp), 0);
    for (unsigned i = 0; i < 3; i++) {
        uint8_t *room = wire_tx_reserve(ends[1], 60);

        if (i == 1) {
            ck_assert_int_eq(mcg_attach(hca, 0, qp.qpn, mgid), SYN_OK);
        } else if (i == 2) {
            ck_assert_int_eq(drv_destroy_qp(&qp), 0);
        }
        memset(room, 0, 60);
        memcpy(room, mac, 6);
        wire_tx_commit(ends[1], 60);
        inproc_settle(world);
        ck_assert_uint_eq(traffic_frames(&vport_of(&b)->counters.rx), i > 0);
        ck_assert_uint_eq(traffic_frames(&vport_of(&a)->counters.rx), i + 1);
        ck_assert_uint_eq(g_hash_table_size(card->sw.macs), known + (i == 1));
    }
}
END_TEST

/* Driver: port_state_change_event. */
static bool port_event(struct side *side)
{
    struct drv_event event;

    return drv_wait_event(side->drv, PRM_EVENT_TYPE_PORT_CHANGE, DRV_ANY_NUM, &event, MS);
}

START_TEST(each_function_sees_link_changes)
{
    plug();
    ck_assert(port_event(&a));
    ck_assert(port_event(&b));
    fw_set_wire(b.hca->fw, NULL);
    ck_assert(port_event(&a));
    ck_assert(port_event(&b));
    ck_assert(!port_event(&a));
    ck_assert(!port_event(&b));
    ck_assert_uint_eq(card->sw.uplink.counters.link_downs, 1);
}
END_TEST

/* -- one function's end ------------------------------------------------------------------------ */

/* PCIe 6.6.2: a function-level reset affects no other function. */
START_TEST(one_functions_reset_is_not_the_others)
{
    static const uint8_t listed[1][6] = {{2, 0, 0, 0, 0, 77}};
    struct vport_counters a_had, b_had;
    struct pair pair;
    uint8_t gid[16];

    plug();
    pair = rc_pair(&b, &far);
    talk(&pair);
    card->sw.uplink.mtu = 3000;
    vport_set_macs(vport_of(&a), &vport_of(&a)->uc, listed, 1);
    vport_set_macs(vport_of(&b), &vport_of(&b)->uc, listed, 1);
    a_had = vport_of(&a)->counters;
    b_had = vport_of(&b)->counters;
    memcpy(gid, b.gid, sizeof(gid));

    fw_reset(a.hca->fw);

    /* its driver's settings of the vport are gone; the vport is there */
    ck_assert_int_eq(vport_find_gid(vport_of(&a), a.gid, false, false, 0), -1);
    ck_assert_uint_eq(vport_of(&a)->uc.n, 0);
    ck_assert_mem_eq(vport_of(&a)->mac, ((uint8_t[]){2, 0, 0, 0, 0, 1}), 6);
    ck_assert_mem_eq(&vport_of(&a)->counters, &a_had, sizeof(a_had));
    ck_assert_int_eq(vport_find_gid(vport_of(&b), gid, false, false, 0), 0);
    ck_assert(mac_list_has(&vport_of(&b)->uc, listed[0]));
    ck_assert_mem_eq(&vport_of(&b)->counters, &b_had, sizeof(b_had));
    ck_assert_uint_eq(card->sw.uplink.mtu, 3000);
    talk(&pair);

    a.drv->up = false;
    drv_close(a.drv);
    bring_up(&a);
    pair = rc_pair(&a, &b);
    talk(&pair);
}
END_TEST

/* Resets a function while it receives and sends. */
START_TEST(a_reset_amid_traffic_leaves_the_other_working)
{
    struct pair doomed, pair;

    plug();
    doomed = rc_pair(&far, &a);
    pair = rc_pair(&b, &a);
    for (unsigned i = 0; i < 20; i++) {
        post(&doomed, PRM_WQE_OPCODE_RDMA_WRITE);
        post(&pair, PRM_WQE_OPCODE_RDMA_WRITE);
    }
    fw_run(far.hca->fw, 64);
    fw_run(b.hca->fw, 64);
    fw_run(a.hca->fw, 16);
    fw_reset(a.hca->fw);
    ck_assert_uint_eq(vport_of(&a)->queued, vport_of(&a)->taken);
    pair = rc_pair(&b, &far);
    post(&pair, PRM_WQE_OPCODE_RDMA_WRITE);
    while (next_wc(&b).qpn != pair.qp[0].qpn) {
    }
}
END_TEST

/* The first function's turns read the cable; without it, the next function's turns do. */
START_TEST(a_function_that_ends_leaves_the_card_to_the_other)
{
    struct vport *vport;
    struct pair pair;

    plug();
    pair = rc_pair(&b, &far);
    talk(&pair);
    vport = vport_of(&a);
    ck_assert_ptr_eq(card->sw.reader, vport);
    end(&a);
    ck_assert_ptr_null(vport->hca);
    ck_assert_ptr_eq(card->sw.reader, vport_of(&b));
    talk(&pair);

    /* another driver finds the vport, with its previous MAC */
    side_new(&a, card, 0, 9);
    ck_assert_ptr_eq(vport_of(&a), vport);
    ck_assert_uint_eq(vport->mac[5], 1);
    pair = rc_pair(&b, &a);
    talk(&pair);
}
END_TEST

START_TEST(a_vport_has_one_function)
{
    struct fw_config config = {.mac = {2, 0, 0, 0, 0, 8}, .card = card, .function = 1};
    GError *err = NULL;

    ck_assert_ptr_null(inproc_hca_new(world, &config, &err));
    ck_assert_ptr_nonnull(err);
    g_clear_error(&err);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("card");
    TCase *tcase = tcase_create("card");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, functions_of_a_card_talk_without_a_cable);
    tcase_add_test(tcase, each_vport_counts_its_own_frames);
    tcase_add_test(tcase, many_messages_arrive_without_loss);
    tcase_add_test(tcase, each_function_reaches_a_third_host);
    tcase_add_test(tcase, a_flood_from_the_cable_arrives_without_loss);
    tcase_add_test(tcase, a_full_queue_holds_the_cable_until_it_is_read);
    tcase_add_test(tcase, a_group_goes_to_the_function_whose_qps_are_in_it);
    tcase_add_test(tcase, each_function_sees_link_changes);
    tcase_add_test(tcase, one_functions_reset_is_not_the_others);
    tcase_add_test(tcase, a_reset_amid_traffic_leaves_the_other_working);
    tcase_add_test(tcase, a_function_that_ends_leaves_the_card_to_the_other);
    tcase_add_test(tcase, a_vport_has_one_function);
    suite_add_tcase(suite, tcase);
    return suite;
}
