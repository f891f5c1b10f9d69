/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests TIS, RQT and TIR: what can be made, how frames are hashed, and which queue they reach. */
#include <arpa/inet.h>
#include <check.h>
#include <string.h>
#include "model/eth/eth_queue.h"
#include "model/core/pd.h"
#include "model/steering/steering.h"
#include "model/eth/tir.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define QUEUES 4

/* Fields of rx_hash_field_select. */
#define IPS   (1u << PRM_RX_HASH_FIELD_SRC_IP | 1u << PRM_RX_HASH_FIELD_DST_IP)
#define PORTS (1u << PRM_RX_HASH_FIELD_L4_SPORT | 1u << PRM_RX_HASH_FIELD_L4_DPORT)

/* The key that Microsoft's "Verifying the RSS hash calculation" gives. */
static const uint8_t ms_key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct bench *b;
static struct hca *hca;
static struct bench_queue rqs[QUEUES];

static void setup(void)
{
    b = bench_new();
    hca = &b->rig.hca;
    for (unsigned i = 0; i < QUEUES; i++) {
        bench_rq_new(b, NULL, &rqs[i]);
        for (unsigned n = 0; n < 1u << BENCH_LOG_RQ; n++) {
            bench_post_recv(&rqs[i], bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
}

static void teardown(void)
{
    bench_free(b);
}

/* -- helpers ----------------------------------------------------------------------------------- */

static enum syn make_rqt(unsigned max, unsigned size, const uint32_t *rqn, size_t list_len,
                         uint32_t *rqtn)
{
    uint8_t in_bytes[PRM_SIZE(rqtc) + 64 * 4] = {0};
    void *in = in_bytes;

    PRM_SET(rqtc, in, rqt_max_size, max);
    PRM_SET(rqtc, in, rqt_actual_size, size);
    for (unsigned i = 0; i < MIN(size, 64); i++) {
        PRM_SET(rq_num, in + PRM_SIZE(rqtc) + i * 4, rq_num, rqn[i]);
    }
    return rqt_create(hca, 0, in, list_len, rqtn);
}

static uint32_t rqt_of_all(void)
{
    const uint32_t rqn[QUEUES] = {rqs[0].num, rqs[1].num, rqs[2].num, rqs[3].num};
    uint32_t rqtn;

    ck_assert_int_eq(make_rqt(QUEUES, QUEUES, rqn, sizeof(rqn), &rqtn), SYN_OK);
    return rqtn;
}

static void fill_hash(struct prm_tirc *tirc, uint8_t fn, const uint8_t *key, uint8_t version,
                      uint8_t proto, uint32_t fields)
{
    struct prm_rx_hash_field_select *select = PRM_PTR(tirc, tirc, rx_hash_field_selector_outer);

    PRM_SET(tirc, tirc, rx_hash_fn, fn);
    memcpy(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), key, 40);
    PRM_SET(rx_hash_field_select, select, l3_prot_type,
            version == 6 ? PRM_L3_PROT_TYPE_IPV6 : PRM_L3_PROT_TYPE_IPV4);
    PRM_SET(rx_hash_field_select, select, l4_prot_type,
            proto == 17 ? PRM_L4_PROT_TYPE_UDP : PRM_L4_PROT_TYPE_TCP);
    PRM_SET(rx_hash_field_select, select, selected_fields, fields);
}

/* Makes a TIR over all queues that receives every frame. */
static uint32_t rss_tir(uint8_t fn, bool symmetric, uint8_t version, uint8_t proto, uint32_t fields)
{
    struct prm_tirc tirc[1] = {0};
    uint32_t tirn;

    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_INDIRECT);
    PRM_SET(tirc, tirc, indirect_table, rqt_of_all());
    PRM_SET(tirc, tirc, transport_domain, b->tdn);
    PRM_SET(tirc, tirc, rx_hash_symmetric, symmetric);
    fill_hash(tirc, fn, ms_key, version, proto, fields);
    ck_assert_int_eq(tir_create(hca, 0, tirc, &tirn), SYN_OK);
    bench_catch_all(b, tirn);
    return tirn;
}

/* Returns the CQE of the frame and the queue that received it; exactly one does. */
static const void *deliver_frame(const uint8_t *frame, size_t len, unsigned *queue)
{
    const void *cqe = NULL;

    bench_rx(b, frame, len);
    for (unsigned i = 0; i < QUEUES; i++) {
        const void *one = bench_cqe(&rqs[i]);

        ck_assert(!one || !cqe);
        if (one) {
            cqe = one;
            *queue = i;
            bench_post_recv(&rqs[i], bench_mem(b, NULL, BENCH_RX_SIZE), BENCH_RX_SIZE);
        }
    }
    ck_assert_ptr_nonnull(cqe);
    return cqe;
}

static const void *deliver(const struct bench_pkt *pkt, unsigned *queue)
{
    uint8_t frame[256] = {0};

    return deliver_frame(frame, MAX(bench_build(frame, pkt), 60), queue);
}

static struct bench_pkt flow(uint8_t proto, const char *src, uint16_t sport, const char *dst,
                             uint16_t dport)
{
    bool v6 = strchr(src, ':');
    struct bench_pkt pkt = {.ip_version = v6 ? 6 : 4,
                            .proto = proto,
                            .sport = sport,
                            .dport = dport,
                            .tcp_flags = 0x10};

    ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, src, pkt.src), 1);
    ck_assert_int_eq(inet_pton(v6 ? AF_INET6 : AF_INET, dst, pkt.dst), 1);
    return pkt;
}

/* -- hashes ------------------------------------------------------------------------------------ */

static const struct {
    const char *dst;
    uint16_t dport;
    const char *src;
    uint16_t sport;
    uint32_t ip_only, with_ports;
} vectors[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985,
     0x02d1feef},
};

/* Microsoft, "Verifying the RSS hash calculation". The queue is the hash's low bits. */
START_TEST(toeplitz_gives_the_published_values)
{
    uint8_t version = strchr(vectors[_i].src, ':') ? 6 : 4;
    struct bench_pkt pkt =
        flow(6, vectors[_i].src, vectors[_i].sport, vectors[_i].dst, vectors[_i].dport);
    uint32_t tirn = rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, version, 6, IPS | PORTS);
    struct prm_tirc tirc[1] = {0};
    struct prm_modify_tir_bitmask bitmask[1] = {0};
    const struct prm_cqe64 *cqe;
    unsigned queue;

    cqe = deliver(&pkt, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), vectors[_i].with_ports);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_ip),
                      version == 4 ? PRM_RSS_HASH_IP_IPV4 : PRM_RSS_HASH_IP_IPV6);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_TCP);
    ck_assert_uint_eq(queue, vectors[_i].with_ports % QUEUES);

    /* MODIFY_TIR: addresses only */
    PRM_SET(modify_tir_bitmask, bitmask, hash, 1);
    fill_hash(tirc, PRM_RX_HASH_FN_TOEPLITZ, ms_key, version, 6, IPS);
    ck_assert_int_eq(tir_modify(hca, 0, tirn, bitmask, tirc), SYN_OK);
    cqe = deliver(&pkt, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), vectors[_i].ip_only);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_NONE);
    ck_assert_uint_eq(queue, vectors[_i].ip_only % QUEUES);
}
END_TEST

/* IPsec hides the ports: the SPI replaces them, first in ESP, behind a word in AH (RFC 4303, 4302).
 * Here it has the bytes of the published ports, so the hash has the published value. */
START_TEST(an_spi_is_hashed_as_ports_are)
{
    struct bench_pkt pkt =
        flow(17, vectors[0].src, vectors[0].sport, vectors[0].dst, vectors[0].dport);
    uint8_t frame[256] = {0}, *ip = frame + 14, *l4 = ip + 20;
    size_t len;
    const struct prm_cqe64 *cqe;
    unsigned queue;

    pkt.payload = 64;
    len = bench_build(frame, &pkt);
    ip[9] = _i ? 51 : 50;
    if (_i) {
        memmove(l4 + 4, l4, 4);
        memset(l4, 0x5a, 4);
    }
    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, IPS | 1u << PRM_RX_HASH_FIELD_IPSEC_SPI);
    cqe = deliver_frame(frame, len, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), vectors[0].with_ports);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_IPSEC);
    ck_assert_uint_eq(queue, vectors[0].with_ports % QUEUES);

    /* in a fragment only the addresses count */
    ip[6] |= 0x20;
    cqe = deliver_frame(frame, len, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), vectors[0].ip_only);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_NONE);
}
END_TEST

START_TEST(ports_of_the_other_transport_do_not_count)
{
    struct bench_pkt pkt = flow(17, vectors[0].src, 2794, vectors[0].dst, 1766);
    const struct prm_cqe64 *cqe;
    unsigned queue;

    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, IPS | PORTS);
    cqe = deliver(&pkt, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), vectors[0].ip_only);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type_l4), PRM_RSS_HASH_L4_NONE);
}
END_TEST

START_TEST(frames_of_another_network_protocol_are_not_hashed)
{
    struct bench_pkt pkt = flow(6, "fe80::1", 1, "fe80::2", 2);
    const struct prm_cqe64 *cqe;
    unsigned queue;

    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, IPS | PORTS);
    cqe = deliver(&pkt, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type), 0);
    ck_assert_uint_eq(queue, 0);
}
END_TEST

/* Without fields to hash, every frame goes to the first queue. */
START_TEST(without_fields_there_is_no_hash)
{
    struct bench_pkt pkt = flow(6, vectors[0].src, 2794, vectors[0].dst, 1766);
    const struct prm_cqe64 *cqe;
    unsigned queue;

    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, 0);
    cqe = deliver(&pkt, &queue);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_result), 0);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, rx_hash_type), 0);
    ck_assert_uint_eq(queue, 0);
}
END_TEST

START_TEST(symmetric_hashes_are_the_same_for_both_directions)
{
    bool v6 = _i & 1, udp = _i & 2;
    struct bench_pkt there =
        flow(udp ? 17 : 6, vectors[v6 ? 5 : 0].src, 4711, vectors[v6 ? 5 : 0].dst, 80);
    struct bench_pkt back =
        flow(udp ? 17 : 6, vectors[v6 ? 5 : 0].dst, 80, vectors[v6 ? 5 : 0].src, 4711);
    uint32_t hash[2];
    unsigned queue[2];

    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, _i & 4, v6 ? 6 : 4, udp ? 17 : 6, IPS | PORTS);
    hash[0] = PRM_GET(cqe64, deliver(&there, &queue[0]), rx_hash_result);
    hash[1] = PRM_GET(cqe64, deliver(&back, &queue[1]), rx_hash_result);
    if (_i & 4) {
        ck_assert_uint_eq(hash[0], hash[1]);
        ck_assert_uint_eq(queue[0], queue[1]);
        ck_assert_uint_ne(hash[0], 0);
    } else {
        ck_assert_uint_ne(hash[0], hash[1]);
    }
}
END_TEST

/* Linux, ethtool: "SRC_IP | DST_IP, SRC_IP ^ DST_IP, SRC_PORT | DST_PORT, SRC_PORT ^ DST_PORT": the
 * symmetric hash is the plain hash of a packet with these values as addresses and ports. */
START_TEST(a_symmetric_hash_is_over_or_and_xor)
{
    struct bench_pkt pkt = flow(17, "10.1.2.3", 0x1234, "192.168.8.7", 0x5678), plain = pkt;
    unsigned queue;
    uint32_t want;

    for (unsigned i = 0; i < 4; i++) {
        plain.src[i] = pkt.src[i] | pkt.dst[i];
        plain.dst[i] = pkt.src[i] ^ pkt.dst[i];
    }
    plain.sport = pkt.sport | pkt.dport;
    plain.dport = pkt.sport ^ pkt.dport;
    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 17, IPS | PORTS);
    want = PRM_GET(cqe64, deliver(&plain, &queue), rx_hash_result);
    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, true, 4, 17, IPS | PORTS);
    ck_assert_uint_eq(PRM_GET(cqe64, deliver(&pkt, &queue), rx_hash_result), want);
}
END_TEST

/* Half of a pair has no other half to be symmetric with. */
START_TEST(half_a_pair_is_hashed_as_it_is)
{
    struct bench_pkt pkt = flow(17, "192.168.8.7", 0x1234, "10.1.2.3", 0x5678);
    unsigned queue;
    uint32_t want;

    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 17, 1u << PRM_RX_HASH_FIELD_SRC_IP);
    want = PRM_GET(cqe64, deliver(&pkt, &queue), rx_hash_result);
    rss_tir(PRM_RX_HASH_FN_TOEPLITZ, true, 4, 17, 1u << PRM_RX_HASH_FIELD_SRC_IP);
    ck_assert_uint_eq(PRM_GET(cqe64, deliver(&pkt, &queue), rx_hash_result), want);
}
END_TEST

/* INVERTED_XOR8: all selected bytes folded into one, inverted. */
START_TEST(xor8_folds_the_fields)
{
    struct bench_pkt pkt = flow(17, "10.1.2.3", 0x1234, "10.9.8.7", 0x5678);
    uint8_t want = (uint8_t) ~(0xa ^ 1 ^ 2 ^ 3 ^ 10 ^ 9 ^ 8 ^ 7 ^ 0x12 ^ 0x34 ^ 0x56 ^ 0x78);
    unsigned queue;

    rss_tir(PRM_RX_HASH_FN_INVERTED_XOR8, false, 4, 17, IPS | PORTS);
    ck_assert_uint_eq(PRM_GET(cqe64, deliver(&pkt, &queue), rx_hash_result), want);
    ck_assert_uint_eq(queue, want % QUEUES);
}
END_TEST

START_TEST(a_direct_tir_has_one_queue)
{
    struct bench_pkt pkt = flow(17, "10.1.2.3", 1, "10.9.8.7", 2);
    unsigned queue;

    bench_catch_all(b, bench_direct_tir(b, rqs[2].num));
    for (uint16_t i = 0; i < 20; i++) {
        pkt.sport = i;
        deliver(&pkt, &queue);
        ck_assert_uint_eq(queue, 2);
    }
}
END_TEST

/* rdma-core's test_mlx5_dr makes a TIR by DevX without a transport domain. It can be changed, takes
 * frames, and ends as others do. */
START_TEST(a_tir_needs_no_transport_domain)
{
    struct prm_modify_tir_bitmask bitmask[1] = {0};
    struct prm_tirc tirc[1] = {0};
    uint32_t tirn;

    PRM_SET(tirc, tirc, inline_rqn, rqs[0].num);
    ck_assert_int_eq(tir_create(hca, 0, tirc, &tirn), SYN_OK);
    PRM_SET(tirc, tirc, self_lb_block, 3);
    PRM_SET(modify_tir_bitmask, bitmask, self_lb_en, 1);
    ck_assert_int_eq(tir_modify(hca, 0, tirn, bitmask, tirc), SYN_OK);
    ck_assert_int_eq(tir_query(hca, tirn, tirc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(tirc, tirc, transport_domain), 0);
    ck_assert_uint_eq(PRM_GET(tirc, tirc, self_lb_block), 3);
    ck_assert_int_eq(tir_destroy(hca, 0, tirn), SYN_OK);
}
END_TEST

/* -- RQT --------------------------------------------------------------------------------------- */

START_TEST(a_changed_rqt_is_used_at_once)
{
    struct bench_pkt pkt = flow(6, vectors[0].src, 2794, vectors[0].dst, 1766);
    uint8_t in_bytes[PRM_SIZE(rqtc) + 4] = {0};
    void *in = in_bytes;
    struct prm_rqt_bitmask bitmask[1] = {0};
    unsigned queue;
    uint32_t tirn = rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, IPS | PORTS), rqtn;
    struct prm_tirc tirc[1];

    ck_assert_int_eq(tir_query(hca, tirn, tirc), SYN_OK);
    rqtn = PRM_GET(tirc, tirc, indirect_table);
    PRM_SET(rqt_bitmask, bitmask, rqn_list, 1);
    PRM_SET(rqtc, in, rqt_actual_size, 1);
    PRM_SET(rq_num, in + PRM_SIZE(rqtc), rq_num, rqs[3].num);
    ck_assert_int_eq(rqt_modify(hca, 0, rqtn, bitmask, in, 4), SYN_OK);
    for (uint16_t i = 0; i < 10; i++) {
        pkt.sport = i;
        deliver(&pkt, &queue);
        ck_assert_uint_eq(queue, 3);
    }
    /* the others are free now, this one is not */
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[3].num), SYN_IN_USE);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[0].num), SYN_OK);
}
END_TEST

START_TEST(rqts_that_cannot_be_are_refused)
{
    uint32_t rqn[64] = {rqs[0].num, rqs[1].num, rqs[2].num, rqs[3].num}, rqtn;
    uint8_t in_bytes[PRM_SIZE(rqtc) + 16] = {0};
    void *in = in_bytes;
    struct prm_rqt_bitmask bitmask[1] = {0};

    ck_assert_int_eq(make_rqt(0, 1, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_int_eq(make_rqt(4096, 4, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_int_eq(make_rqt(4, 0, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_int_eq(make_rqt(4, 3, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_int_eq(make_rqt(2, 4, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_int_eq(make_rqt(4, 4, rqn, 15, &rqtn), SYN_IN_LEN);
    ck_assert_int_eq(make_rqt(2048, 2048, rqn, 256, &rqtn), SYN_IN_LEN);
    rqn[1] = 0xabcdef;
    ck_assert_int_eq(make_rqt(4, 4, rqn, 16, &rqtn), SYN_ETH_RQT_LIST);
    ck_assert_uint_eq(hca->rqts.count, 0);

    /* a MODIFY that fails changes nothing */
    rqn[1] = rqs[1].num;
    ck_assert_int_eq(make_rqt(4, 4, rqn, 16, &rqtn), SYN_OK);
    PRM_SET(rqt_bitmask, bitmask, rqn_list, 1);
    PRM_SET(rqtc, in, rqt_actual_size, 8);
    ck_assert_int_eq(rqt_modify(hca, 0, rqtn, bitmask, in, 16), SYN_ETH_RQT_LIST);
    PRM_SET(rqtc, in, rqt_actual_size, 1);
    ck_assert_int_eq(rqt_modify(hca, 0, rqtn, bitmask, in, 16), SYN_ETH_RQT_LIST); /* RQ 0 */
    ck_assert_int_eq(rqt_modify(hca, RIG_USER, rqtn, bitmask, in, 16), SYN_BAD_UID);
    for (unsigned i = 0; i < QUEUES; i++) {
        ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[i].num), SYN_IN_USE);
    }
    ck_assert_int_eq(rqt_query(hca, rqtn, in, 8), SYN_OK); /* as many entries as fit */
    ck_assert_uint_eq(PRM_GET(rqtc, in, rqt_actual_size), 4);
    ck_assert_uint_eq(PRM_GET(rq_num, in + PRM_SIZE(rqtc) + 4, rq_num), rqs[1].num);
    ck_assert_uint_eq(PRM_GET(rq_num, in + PRM_SIZE(rqtc) + 8, rq_num), 0);
    ck_assert_int_eq(rqt_destroy(hca, 0, rqtn), SYN_OK);
    ck_assert_int_eq(rqt_destroy(hca, 0, rqtn), SYN_ETH_NOT_FOUND);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[0].num), SYN_OK);
}
END_TEST

/* -- TIR --------------------------------------------------------------------------------------- */

START_TEST(tirs_that_cannot_be_are_refused)
{
    struct prm_tirc good[1] = {0}, tirc[1];
    uint32_t tirn, before = hca->tirs.count;

    PRM_SET(tirc, good, inline_rqn, rqs[0].num);
    PRM_SET(tirc, good, transport_domain, b->tdn);
#define REFUSED(field, value, syn)                                                                 \
    do {                                                                                           \
        memcpy(tirc, good, sizeof(tirc));                                                          \
        PRM_SET(tirc, tirc, field, value);                                                         \
        ck_assert_int_eq(tir_create(hca, 0, tirc, &tirn), syn);                                    \
    } while (0)
    REFUSED(transport_domain, 0xabcd, SYN_ETH_TD);
    REFUSED(inline_rqn, 0xabcdef, SYN_ETH_NOT_FOUND);
    REFUSED(inline_rqn, 0, SYN_ETH_NOT_FOUND);
    REFUSED(disp_type, PRM_TIRC_DISP_TYPE_INDIRECT, SYN_ETH_NOT_FOUND); /* RQT 0 */
    REFUSED(disp_type, 2, SYN_ETH_DISP_TYPE);
    REFUSED(disp_type, 15, SYN_ETH_DISP_TYPE);
    REFUSED(rx_hash_fn, 3, SYN_ETH_HASH);
    REFUSED(rx_hash_fn, 15, SYN_ETH_HASH);
    REFUSED(packet_merge_mask, 4, SYN_ETH_LRO);
    REFUSED(tls_en, 1, SYN_ETH_LRO);
#undef REFUSED
    memcpy(tirc, good, sizeof(tirc));
    fill_hash(tirc, PRM_RX_HASH_FN_TOEPLITZ, ms_key, 4, 6, 1u << 5);
    ck_assert_int_eq(tir_create(hca, 0, tirc, &tirn), SYN_ETH_HASH);
    ck_assert_int_eq(tir_create(hca, RIG_USER, good, &tirn), SYN_BAD_UID);
    ck_assert_uint_eq(hca->tirs.count, before);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[0].num), SYN_OK); /* nothing holds it */
}
END_TEST

START_TEST(tirs_hold_what_they_name)
{
    uint32_t tirn = bench_direct_tir(b, rqs[0].num), tdn = bench_td(b);
    struct prm_tirc tirc[1] = {0};
    struct prm_modify_tir_bitmask bitmask[1] = {0};

    ck_assert_int_eq(td_dealloc(hca, 0, b->tdn), SYN_IN_USE);
    ck_assert_int_eq(td_dealloc(hca, 0, tdn), SYN_OK);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[0].num), SYN_IN_USE);
    ck_assert_int_eq(tir_modify(hca, RIG_USER, tirn, bitmask, tirc), SYN_BAD_UID);
    ck_assert_int_eq(tir_destroy(hca, RIG_USER, tirn), SYN_BAD_UID);
    bench_catch_all(b, tirn);
    ck_assert_int_eq(tir_destroy(hca, 0, tirn), SYN_IN_USE); /* the flow entry's */
    ck_assert_int_eq(flow_entry_delete(hca, 0, PRM_FLOW_TABLE_TYPE_NIC_RX, 1, 0), SYN_OK);
    ck_assert_int_eq(tir_destroy(hca, 0, tirn), SYN_OK);
    ck_assert_int_eq(tir_destroy(hca, 0, tirn), SYN_ETH_NOT_FOUND);
    ck_assert_int_eq(eth_rq_destroy(hca, 0, rqs[0].num), SYN_OK);
}
END_TEST

START_TEST(a_modify_that_fails_changes_nothing)
{
    struct bench_pkt pkt = flow(6, vectors[0].src, 2794, vectors[0].dst, 1766);
    uint32_t tirn = rss_tir(PRM_RX_HASH_FN_TOEPLITZ, false, 4, 6, IPS | PORTS);
    struct prm_tirc tirc[1] = {0};
    struct prm_modify_tir_bitmask bitmask[1] = {0};
    unsigned queue;

    PRM_SET(modify_tir_bitmask, bitmask, hash, 1);
    PRM_SET(tirc, tirc, rx_hash_fn, 7);
    ck_assert_int_eq(tir_modify(hca, 0, tirn, bitmask, tirc), SYN_ETH_HASH);
    memset(bitmask, 0, sizeof(bitmask));
    PRM_SET(modify_tir_bitmask, bitmask, packet_merge, 1);
    PRM_SET(tirc, tirc, packet_merge_mask, 4);
    ck_assert_int_eq(tir_modify(hca, 0, tirn, bitmask, tirc), SYN_ETH_LRO);
    ck_assert_uint_eq(PRM_GET(cqe64, deliver(&pkt, &queue), rx_hash_result), vectors[0].with_ports);
}
END_TEST

/* -- TIS --------------------------------------------------------------------------------------- */

START_TEST(tises_hold_their_domain_and_are_held_by_queues)
{
    struct prm_tisc tisc[1] = {0};
    struct prm_modify_tis_bitmask bitmask[1] = {0};
    uint32_t tdn = bench_td(b), tisn = bench_tis(b, tdn), other;
    struct bench_queue sq;

    ck_assert_int_eq(td_dealloc(hca, 0, tdn), SYN_IN_USE);
    bench_sq_new(b, tisn, &sq);
    ck_assert_int_eq(tis_destroy(hca, 0, tisn), SYN_IN_USE);
    ck_assert_int_eq(eth_sq_destroy(hca, 0, sq.num), SYN_OK);
    PRM_SET(modify_tis_bitmask, bitmask, prio, 1);
    PRM_SET(tisc, tisc, prio, 6);
    ck_assert_int_eq(tis_modify(hca, RIG_USER, tisn, bitmask, tisc), SYN_BAD_UID);
    ck_assert_int_eq(tis_modify(hca, 0, tisn, bitmask, tisc), SYN_OK);
    memset(tisc, 0, sizeof(tisc));
    ck_assert_int_eq(tis_query(hca, tisn, tisc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(tisc, tisc, prio), 6);
    ck_assert_uint_eq(PRM_GET(tisc, tisc, transport_domain), tdn);
    PRM_SET(modify_tis_bitmask, bitmask, lag_tx_port_affinity, 1);
    ck_assert_int_eq(tis_modify(hca, 0, tisn, bitmask, tisc), SYN_ETH_MODIFY);
    ck_assert_int_eq(tis_destroy(hca, 0, tisn), SYN_OK);
    ck_assert_int_eq(tis_query(hca, tisn, tisc), SYN_ETH_NOT_FOUND);
    ck_assert_int_eq(td_dealloc(hca, 0, tdn), SYN_OK);
    ck_assert_int_eq(tis_create(hca, 0, tisc, &other), SYN_ETH_TD);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("tir");
    TCase *tcase = tcase_create("tir");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, toeplitz_gives_the_published_values, 0, G_N_ELEMENTS(vectors));
    tcase_add_loop_test(tcase, an_spi_is_hashed_as_ports_are, 0, 2);
    tcase_add_test(tcase, ports_of_the_other_transport_do_not_count);
    tcase_add_test(tcase, frames_of_another_network_protocol_are_not_hashed);
    tcase_add_test(tcase, without_fields_there_is_no_hash);
    tcase_add_loop_test(tcase, symmetric_hashes_are_the_same_for_both_directions, 0, 8);
    tcase_add_test(tcase, a_symmetric_hash_is_over_or_and_xor);
    tcase_add_test(tcase, half_a_pair_is_hashed_as_it_is);
    tcase_add_test(tcase, xor8_folds_the_fields);
    tcase_add_test(tcase, a_direct_tir_has_one_queue);
    tcase_add_test(tcase, a_tir_needs_no_transport_domain);
    tcase_add_test(tcase, a_changed_rqt_is_used_at_once);
    tcase_add_test(tcase, rqts_that_cannot_be_are_refused);
    tcase_add_test(tcase, tirs_that_cannot_be_are_refused);
    tcase_add_test(tcase, tirs_hold_what_they_name);
    tcase_add_test(tcase, a_modify_that_fails_changes_nothing);
    tcase_add_test(tcase, tises_hold_their_domain_and_are_held_by_queues);
    suite_add_tcase(suite, tcase);
    return suite;
}
