/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a peer that sends arbitrary packets to QPs of every service: packets that are nearly right,
 * in any order. The device continues, memory outside the one key stays unchanged, and nothing is
 * left when the QPs are destroyed. Each seed is a run that repeats bit for bit.
 */
#include <stdlib.h>
#include <string.h>
#include "model/core/work.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

#define SEEDS   8
#define PACKETS 3000
#define QPS     4
#define OPEN    4096 /* bytes that the key opens */
#define GUARD   4096 /* bytes before and behind it */
#define QKEY    0x1234

static struct bench b;
static GRand *rnd;
static uint64_t mem; /* guard, open memory, guard */
static uint32_t rkey, lkey;
static struct bench_qp qps[QPS];
static struct bench_qp_attr attrs[QPS];
static uint8_t data[2048];

static uint32_t below(uint32_t n)
{
    return g_rand_int(rnd) % n;
}

/* Returns the usual value, or anything. */
static uint32_t mostly(uint32_t usual, uint32_t anything)
{
    return below(8) ? usual : anything;
}

static void start(struct bench_qp *qp, const struct bench_qp_attr *attr)
{
    qp->posted = 0;
    memset(fake_host_ptr(&b.host, qp->dbr, 8), 0, 8);
    ck_assert_int_eq(bench_modify(&b, qp, PRM_CMD_OP_2RST_QP, attr), SYN_OK);
    ck_assert_int_eq(bench_modify(&b, qp, PRM_CMD_OP_RST2INIT_QP, attr), SYN_OK);
    ck_assert_int_eq(bench_modify(&b, qp, PRM_CMD_OP_INIT2RTR_QP, attr), SYN_OK);
    if (below(2)) {
        ck_assert_int_eq(bench_modify(&b, qp, PRM_CMD_OP_RTR2RTS_QP, attr), SYN_OK);
    }
}

static void setup(void)
{
    static const uint8_t types[QPS] = {PRM_QP_ST_RC, PRM_QP_ST_RC, PRM_QP_ST_UC, PRM_QP_ST_UD};

    bench_init(&b);
    mem = fake_host_alloc(&b.host, GUARD + OPEN + GUARD, 4096);
    rkey = bench_mkey(&b, mem + GUARD, OPEN,
                      MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC | MEM_LOCAL_READ |
                          MEM_LOCAL_WRITE);
    lkey = rkey;
    for (int i = 0; i < QPS; i++) {
        attrs[i] = (struct bench_qp_attr){.st = types[i], .qkey = QKEY, .log_rra_max = 2};
        bench_qp(&b, &attrs[i], &qps[i]);
    }
    memset(data, 0xa5, sizeof(data));
}

static void teardown(void)
{
    g_rand_free(rnd);
    bench_clear(&b);
}

static void post_receives(struct bench_qp *qp)
{
    while ((uint16_t)(qp->posted - qp->qp->rq.ci) < 4) {
        uint32_t len = below(4) ? 1024 : below(300);

        bench_post_recv(qp, mem + GUARD + below(OPEN - 1024), len, mostly(lkey, lkey ^ 1));
    }
}

static uint8_t any_opcode(const struct bench_qp *qp)
{
    uint8_t opcode;

    do {
        opcode = (uint8_t)(mostly(qp->qp->service->transport, below(6) << 5) | below(0x18));
    } while (!bth_opcodes[opcode].name);
    return opcode;
}

static void send_something(struct bench_qp *qp)
{
    static const uint32_t lens[] = {0, 1, 4, 252, 255, 256, 256, 256, 256, 257, 1000};
    uint8_t opcode = any_opcode(qp);
    struct roce_packet pkt = bench_packet(
        qp, opcode, mostly(qp->qp->peer.resp.epsn, qp->qp->peer.resp.epsn - 8 + below(16)));
    size_t len = bth_opcodes[opcode].flags & HDR_PAYLOAD ? lens[below(G_N_ELEMENTS(lens))] : 0;

    pkt.ackreq = below(2);
    pkt.solicited = below(2);
    pkt.pkey = (uint16_t)mostly(0xffff, below(0x10000));
    pkt.reth.va = mem + GUARD + below(OPEN);
    pkt.reth.rkey = mostly(rkey, g_rand_int(rnd));
    pkt.reth.len = mostly((uint32_t)len + 256 * below(2), g_rand_int(rnd));
    if (!below(20)) {
        pkt.reth.va = (uint64_t)g_rand_int(rnd) << 32 | g_rand_int(rnd);
    }
    pkt.atomic.va = pkt.reth.va & ~7ull;
    pkt.atomic.rkey = pkt.reth.rkey;
    pkt.atomic.swap_add = g_rand_int(rnd);
    pkt.imm = g_rand_int(rnd);
    pkt.deth.qkey = mostly(QKEY, 1);
    pkt.deth.src_qp = below(1 << 24);
    pkt.aeth.syndrome = (uint8_t)below(256);
    pkt.aeth.msn = below(1 << 24);
    bench_rx(&b, &pkt, data, len);
    b.got = b.read = 0;
}

START_TEST(a_hostile_peer_writes_no_foreign_memory)
{
    unsigned completions = 0, errors = 0;

    rnd = g_rand_new_with_seed((guint32)_i);
    for (int i = 0; i < PACKETS; i++) {
        struct bench_qp *qp = &qps[below(QPS)];
        const struct prm_cqe64 *cqe;

        if (qp->qp->state == PRM_QP_STATE_RST || qp->qp->state == PRM_QP_STATE_ERR) {
            start(qp, &attrs[qp - qps]);
        }
        post_receives(qp);
        b.deaf = below(4) == 0;
        send_something(qp);
        b.host.now += below(2000000);
        while ((cqe = bench_poll(&b, &b.cq))) {
            uint8_t opcode = (uint8_t)PRM_GET(cqe64, cqe, opcode);

            ck_assert(opcode == PRM_CQE_OPCODE_RESP_ERR || opcode <= PRM_CQE_OPCODE_RESP_SEND_INV);
            completions++;
            errors += opcode == PRM_CQE_OPCODE_RESP_ERR;
        }
    }
    /* The run had both kinds. */
    ck_assert_uint_gt(completions - errors, 100);
    ck_assert_uint_gt(errors, 100);
    for (unsigned i = 0; i < GUARD; i++) {
        ck_assert_uint_eq(*(uint8_t *)fake_host_ptr(&b.host, mem + i, 1), 0);
        ck_assert_uint_eq(*(uint8_t *)fake_host_ptr(&b.host, mem + GUARD + OPEN + i, 1), 0);
    }
    for (int i = 0; i < QPS; i++) {
        ck_assert_int_eq(qp_destroy(&b.hca, 0, qps[i].qpn), SYN_OK);
    }
    ck_assert_int_eq(cq_destroy(&b.hca, 0, b.cq.cqn), SYN_OK);
    ck_assert_ptr_eq(b.hca.ready.next, &b.hca.ready);
    ck_assert(!hca_tx_awaited(&b.hca));
    ck_assert_uint_eq(b.hca.timers->len, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("hostile peer");
    TCase *tc = tcase_create("peer");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_hostile_peer_writes_no_foreign_memory, 0, SEEDS);
    suite_add_tcase(s, tc);
    return s;
}
