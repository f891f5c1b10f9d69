/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests hosts of the verbs library whose MAC addresses cannot be derived from their IP addresses: a
 * host asks for a peer's address by ARP and neighbour discovery, and waits, in virtual time.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/kernel/gsi.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/sim/seeds.h"
#include "tests/sim/verbs_hosts.h"
#include "tests/unit/suite.h"

#define IPV4       1
#define LINK_LOCAL 0

static struct verbs_hosts *v;

/* Lets everything on the wire arrive. */
static void arrive(void)
{
    while (inproc_step(v->world, v->world->now_ns + 2 * VERBS_LATENCY)) {
    }
}

static void begin(unsigned lose, uint32_t seed)
{
    struct lossy_config cable = {.seed = seed, .lose = lose, .strangers = true};

    v = verbs_hosts_new(2, &cable);
    arrive();
}

static void setup(void)
{
    begin(0, 1);
}

static void teardown(void)
{
    verbs_hosts_free(v);
}

static struct ibv_ah *make_ah(const union ibv_gid *dgid, unsigned sgid_index)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = *dgid, .sgid_index = (uint8_t)sgid_index}};

    errno = 0;
    return ibv_create_ah(v->host[0].pd, &attr);
}

static void expect_mac(const union ibv_gid *gid, unsigned sgid_index, const uint8_t *mac)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = (uint8_t)sgid_index}};
    uint16_t vid;
    uint8_t got[6];

    verbs_must_be_0(ibv_resolve_eth_l2_from_gid(v->host[0].ctx, &attr, got, &vid));
    ck_assert_mem_eq(got, mac, 6);
}

/* rdma_addr_find_l2_eth_by_grh(): a question and an answer, which take VERBS_LATENCY each. */
START_TEST(a_host_is_found_wherever_it_is)
{
    for (unsigned index = LINK_LOCAL; index <= IPV4; index++) {
        uint64_t begun = v->world->now_ns;

        expect_mac(&v->host[1].config.gid[index], index, v->host[1].config.mac);
        ck_assert_uint_eq(v->world->now_ns, begun + 2 * VERBS_LATENCY);
        expect_mac(&v->host[1].config.gid[index], index, v->host[1].config.mac);
        ck_assert_uint_eq(v->world->now_ns, begun + 2 * VERBS_LATENCY); /* it is known now */
    }
}
END_TEST

/* ETIMEDOUT, as from the kernel. */
START_TEST(an_address_without_a_host)
{
    union ibv_gid nobody[2] = {v->host[1].config.gid[0], v->host[1].config.gid[1]};

    for (unsigned index = LINK_LOCAL; index <= IPV4; index++) {
        uint64_t begun = v->world->now_ns, frames = v->frames;

        nobody[index].raw[15] ^= 0x55;
        ck_assert_ptr_null(make_ah(&nobody[index], index));
        ck_assert_int_eq(errno, ETIMEDOUT);
        ck_assert_uint_eq(v->world->now_ns, begun + HV_RESOLVE_NS);
        ck_assert_uint_eq(v->frames, frames + 3); /* a second apart */
    }
}
END_TEST

/* A connection over a wire that loses one frame in five, including the questions and answers. */
START_TEST(questions_are_repeated)
{
    struct seeds seeds = seeds_of_run(20);
    unsigned found = 0;

    for (uint32_t s = 0; s < seeds.num; s++) {
        uint64_t begun;
        struct ibv_ah *ah;

        teardown();
        begin(200, seeds.first + s);
        begun = v->world->now_ns;
        ah = make_ah(&v->host[1].config.gid[IPV4], IPV4);
        ck_assert_uint_le(v->world->now_ns, begun + HV_RESOLVE_NS);
        if (ah) {
            found++;
            verbs_must_be_0(ibv_destroy_ah(ah));
        }
    }
    ck_assert_uint_gt(found, seeds.num * 3 / 4);
}
END_TEST

/* Makes a whole RC connection. */
START_TEST(strangers_talk)
{
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
    struct ibv_recv_wr recv = {0}, *bad_recv;

    for (unsigned i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(v->host[i].ctx, 16, NULL, NULL, 0);
        qp[i] = verbs_qp(&v->host[i], IBV_QPT_RC, cq[i], NULL, NULL);
    }
    verbs_connect(qp[0], &v->host[1], qp[1]->qp_num, NULL);
    verbs_connect(qp[1], &v->host[0], qp[0]->qp_num, NULL);
    verbs_must_be_0(ibv_post_recv(qp[1], &recv, &bad_recv));
    verbs_must_be_0(ibv_post_send(qp[0], &send, &bad_send));
    ck_assert_int_eq(verbs_wc(v, cq[1]).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(verbs_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        verbs_must_be_0(ibv_destroy_qp(qp[i]));
        verbs_must_be_0(ibv_destroy_cq(cq[i]));
    }
}
END_TEST

/* -- queue pair 1 ------------------------------------------------------------------------------ */

static unsigned arrivals[2];

static void arrived(void *opaque)
{
    ++*(unsigned *)opaque;
}

/* A datagram to a host whose address is unknown waits for the answer, of which the owner is
 * notified. A datagram to nobody waits as long as the host asks. Only a limited number of datagrams
 * wait. */
START_TEST(datagrams_wait_for_an_answer)
{
    static const uint8_t mad[HV_MAD_LEN] = {1, 7, 2, 3};
    union ibv_gid nobody = v->host[1].config.gid[IPV4];
    struct hv_gsi *gsi[2];
    struct hv_datagram datagram;

    memset(arrivals, 0, sizeof(arrivals));
    for (unsigned i = 0; i < 2; i++) {
        verbs_must_be_0(hv_gsi_open(hv_context(v->host[i].ctx), arrived, &arrivals[i], &gsi[i]));
    }
    nobody.raw[15] ^= 0x55;
    ck_assert(hv_gsi_send(gsi[0], IPV4, &v->host[1].config.gid[IPV4], mad));
    ck_assert(hv_gsi_send(gsi[0], IPV4, &nobody, mad));
    ck_assert(!hv_gsi_poll(gsi[0], &datagram));
    ck_assert(!hv_gsi_is_answered(gsi[0]));
    arrive();
    ck_assert_uint_eq(arrivals[0], 1);
    ck_assert(!hv_gsi_poll(gsi[1], &datagram));
    ck_assert(!hv_gsi_poll(gsi[0], &datagram)); /* it is sent */
    ck_assert(hv_gsi_is_answered(gsi[0]));
    ck_assert(!hv_gsi_is_answered(gsi[0]));
    arrive();
    ck_assert(hv_gsi_poll(gsi[1], &datagram));
    ck_assert_mem_eq(datagram.mad, mad, sizeof(mad));
    ck_assert(!hv_gsi_poll(gsi[1], &datagram));
    for (unsigned i = 0; i < 2; i++) {
        hv_gsi_close(gsi[i]);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("sim-neighbours");
    TCase *tc = tcase_create("neighbours");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_host_is_found_wherever_it_is);
    tcase_add_test(tc, an_address_without_a_host);
    tcase_add_test(tc, questions_are_repeated);
    tcase_add_test(tc, strangers_talk);
    tcase_add_test(tc, datagrams_wait_for_an_answer);
    suite_add_tcase(suite, tc);
    return suite;
}
