/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures what a frame costs a table with few and with many rules: one group whose mask has
 * addresses and ports, and entries that drop and count. Prints nanoseconds of a frame, from the
 * Ethernet header to the counter: frames of 16 flows, for which the processor's caches hold what is
 * needed, and frames of all flows in random order. Each figure is the least of some rounds, in
 * which the tables take turns.
 *
 * It is a suite of Check, as its bench asserts what it does. Nothing is asserted about time.
 */
#include <check.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "model/eth/eth.h"
#include "model/port/port.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define FLOWS  16
#define FRAMES 65536
#define ROUNDS 7

static const unsigned sizes[] = {16, 1024, 65536};

enum {
    TABLES = G_N_ELEMENTS(sizes)
};

struct rules {
    struct bench *bench;
    uint32_t counter;
    double few, all; /* the least so far */
};

/* A flow is a destination port and the last byte of a destination address. */
static size_t flow_frame(uint8_t *frame, unsigned flow)
{
    struct bench_pkt pkt = {.ip_version = 4,
                            .proto = 17,
                            .src = {10, 0, 0, 2},
                            .dst = {10, 0, (uint8_t)(flow >> 8), (uint8_t)flow},
                            .sport = 1000,
                            .dport = (uint16_t)(1000 + flow % 1000),
                            .payload = 18};

    return bench_build(frame, &pkt);
}

static void flow_match(struct prm_fte_match_set_lyr_2_4 *set, unsigned flow)
{
    uint8_t dst[4] = {10, 0, (uint8_t)(flow >> 8), (uint8_t)flow};

    memset(set, 0, sizeof(*set));
    memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, src_ipv4_src_ipv6) + 12, "\x0a\x00\x00\x02", 4);
    memcpy(PRM_PTR(fte_match_set_lyr_2_4, set, dst_ipv4_dst_ipv6) + 12, dst, 4);
    PRM_SET(fte_match_set_lyr_2_4, set, ip_protocol, 17);
    PRM_SET(fte_match_set_lyr_2_4, set, udp_sport, 1000);
    PRM_SET(fte_match_set_lyr_2_4, set, udp_dport, 1000 + flow % 1000);
}

static void rules_make(struct rules *to, unsigned rules)
{
    struct bench *b = bench_new();
    struct prm_fte_match_set_lyr_2_4 mask[1], value[1];
    struct bench_fte fte = {.table = bench_table(b, 0, 16),
                            .value = value,
                            .action = PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_COUNT,
                            .num_counters = 1};

    memset(mask, 0, sizeof(mask));
    memset(PRM_PTR(fte_match_set_lyr_2_4, mask, src_ipv4_src_ipv6) + 12, 0xff, 4);
    memset(PRM_PTR(fte_match_set_lyr_2_4, mask, dst_ipv4_dst_ipv6) + 12, 0xff, 4);
    PRM_SET(fte_match_set_lyr_2_4, mask, ip_protocol, 0xff);
    PRM_SET(fte_match_set_lyr_2_4, mask, udp_sport, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, mask, udp_dport, 0xffff);
    *to = (struct rules){.bench = b, .few = 1e9, .all = 1e9};
    ck_assert_int_eq(flow_counter_alloc(&b->rig.hca, 0, 1, &to->counter), SYN_OK);
    fte.counters[0] = to->counter;
    fte.group = bench_group(b, fte.table, 0, rules - 1, mask);
    for (unsigned i = 0; i < rules; i++) {
        fte.index = i;
        flow_match(value, i);
        ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    }
    flow_table_set_root(&b->rig.hca, PRM_FLOW_TABLE_TYPE_NIC_RX, fte.table, true);
}

/* Processor time of this thread: others on the machine do not count. */
static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Nanoseconds of a frame; the flows are chosen by order. */
static double rules_measure(const struct rules *t, const uint8_t (*frames)[64], size_t len,
                            const unsigned *order, unsigned flows)
{
    struct hca *hca = &t->bench->rig.hca;
    uint64_t before = flow_counter_find(hca, t->counter)->packets;
    uint64_t start = cpu_ns(), end;

    for (unsigned i = 0; i < FRAMES; i++) {
        eth_rx(hca, frames[order[i] % flows], len, PORT_NO_TD, true);
    }
    end = cpu_ns();
    ck_assert_uint_eq(flow_counter_find(hca, t->counter)->packets, before + FRAMES);
    return (double)(end - start) / FRAMES;
}

START_TEST(frames_find_their_rules_among_few_and_many)
{
    g_autofree uint8_t(*frames)[64] = g_malloc0(sizes[TABLES - 1] * sizeof(*frames));
    g_autofree unsigned *order = g_new(unsigned, FRAMES);
    struct rules tables[TABLES];
    size_t len = 0;

    for (unsigned i = 0; i < sizes[TABLES - 1]; i++) {
        len = flow_frame(frames[i], i);
    }
    for (unsigned i = 0; i < FRAMES; i++) {
        order[i] = g_random_int();
    }
    for (unsigned i = 0; i < TABLES; i++) {
        rules_make(&tables[i], sizes[i]);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < TABLES; i++) {
            struct rules *t = &tables[i];

            t->few = MIN(t->few, rules_measure(t, frames, len, order, FLOWS));
            t->all = MIN(t->all, rules_measure(t, frames, len, order, sizes[i]));
        }
    }
    printf("# %8s %16s %16s\n", "rules", "16 flows, ns", "all flows, ns");
    for (unsigned i = 0; i < TABLES; i++) {
        printf("# %8u %16.1f %16.1f\n", sizes[i], tables[i].few, tables[i].all);
        bench_free(tables[i].bench);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("steering_bench");
    TCase *tcase = tcase_create("steering_bench");

    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, frames_find_their_rules_among_few_and_many);
    suite_add_tcase(suite, tcase);
    return suite;
}
