/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests Ethernet send queues: what a WQE becomes on the wire, and what happens to an invalid
 * WQE. */
#include <check.h>
#include <string.h>
#include "model/core/real_time.h"
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/queue/mmo.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

static struct bench *b;
static struct bench_queue sq;

static void setup(void)
{
    b = bench_new();
    bench_sq_new(b, b->tisn, &sq);
}

static void teardown(void)
{
    bench_free(b);
}

/* Returns a packet to the peer with a payload of that length. */
static struct bench_pkt packet(uint8_t version, uint8_t proto, size_t payload)
{
    return (struct bench_pkt){
        .dmac = bench_peer_mac,
        .ip_version = version,
        .proto = proto,
        .src = {10, 0, 0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .dst = {10, 0, 0, 2, 25, 26, 27, 28, 29},
        .sport = 1111,
        .dport = 2222,
        .tcp_flags = 0x18,
        .seq = 0x01020304,
        .payload = payload,
    };
}

/* Returns a WQE whose first inline_len bytes are inline and the rest in one segment. */
static struct bench_wr wr_of(const uint8_t *frame, size_t len, size_t inline_len)
{
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .hdr = frame, .hdr_len = inline_len};

    if (len > inline_len) {
        wr.sge[wr.num_sge++] = (struct bench_sge){
            bench_mem(b, frame + inline_len, len - inline_len), (uint32_t)(len - inline_len), 0};
    }
    return wr;
}

static void expect_frame(unsigned nth, const uint8_t *frame, size_t len)
{
    ck_assert_uint_lt(nth, b->num_frames);
    ck_assert_uint_eq(b->frames[nth].len, len);
    ck_assert_mem_eq(b->frames[nth].data, frame, len);
}

static uint32_t sq_state(void)
{
    struct prm_sqc sqc[1];

    ck_assert_int_eq(eth_sq_query(&b->rig.hca, sq.num, sqc), SYN_OK);
    return PRM_GET(sqc, sqc, state);
}

/* Expects that the WQE just posted fails with this syndrome and the queue stops. */
static void expect_failure(uint8_t syndrome, uint16_t counter)
{
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, syndrome, counter);
    ck_assert_uint_eq(sq_state(), PRM_SQC_STATE_ERR);
}

/* -- WQE to frame ------------------------------------------------------------------------------ */

START_TEST(any_part_of_the_headers_may_be_inline)
{
    static const size_t inline_lens[] = {0, 2, 14, 17, 18, 19, 54, 154};
    struct bench_pkt pkt = packet(4, 6, 100);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);

    for (unsigned i = 0; i < G_N_ELEMENTS(inline_lens); i++) {
        uint16_t at = sq.pi;
        struct bench_wr wr = wr_of(frame, len, inline_lens[i]);

        bench_send(&sq, &wr);
        expect_frame(i, frame, len);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, at);
    }
    ck_assert_uint_eq(b->num_frames, G_N_ELEMENTS(inline_lens));
}
END_TEST

/* Memory that a CPU changes meanwhile: at each read the destination address differs. */
static const uint8_t group[6] = {0x33, 0x33, 0, 0, 0, 1};
static uint8_t *shifting;

static void shift(void *opaque, enum fake_call call)
{
    if (call == FAKE_READ) {
        memcpy(shifting, shifting[0] & 1 ? bench_mac : group, 6);
    }
}

/* A frame carries the address that was used to route it. */
START_TEST(the_destination_is_looked_at_once)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr = wr_of(frame, sizeof(frame), 0);

    shifting = fake_host_ptr(&b->rig.host, wr.sge[0].addr, 6);
    b->rig.host.hook = shift;
    for (unsigned i = 0; i < 8; i++) {
        memcpy(shifting, i % 2 ? bench_mac : group, 6);
        bench_send(&sq, &wr);
        ck_assert_ptr_nonnull(bench_cqe(&sq));
        for (unsigned j = 0; j < b->num_frames; j++) {
            ck_assert(b->frames[j].data[0] & 1);
        }
    }
    b->rig.host.hook = NULL;
    ck_assert_uint_gt(b->num_frames, 0);
    ck_assert_uint_lt(b->num_frames, 8);
}
END_TEST

/* wqe_inline_mode L2, as on ConnectX-4 and -4 Lx: the layer 2 header is in the WQE, with all its
 * tags (DPDK's mlx5 guide, txq_inline_min). Therefore no tag can be inserted: it takes the header's
 * place. */
START_TEST(a_generation_may_want_layer_2_inline)
{
    const struct {
        bool vlan, insert;
        size_t inline_len;
        bool is_sent;
    } table[] = {
        {false, false, 14, true}, {false, false, 54, true}, {false, false, 13, false},
        {false, false, 0, false}, {true, false, 18, true},  {true, false, 17, false},
        {true, false, 14, false}, {false, true, 0, false},
    };
    unsigned sent = 0;

    b->rig.hca.limits.inline_l2 = true;
    for (unsigned i = 0; i < G_N_ELEMENTS(table); i++) {
        struct bench_pkt pkt = packet(4, 6, 60);
        uint8_t frame[256];
        uint16_t at = sq.pi;
        struct bench_wr wr;

        pkt.vlan = table[i].vlan;
        wr = wr_of(frame, bench_build(frame, &pkt), table[i].inline_len);
        wr.insert_vlan = table[i].insert;
        bench_send(&sq, &wr);
        if (table[i].is_sent) {
            bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, at);
            sent++;
        } else {
            expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, at);
            bench_sq_revive(&sq);
        }
    }
    ck_assert_uint_eq(b->num_frames, sent);
}
END_TEST

START_TEST(segments_follow_each_other_and_empty_ones_do_not_count)
{
    struct bench_pkt pkt = packet(6, 17, 500);
    uint8_t frame[1024];
    size_t len = bench_build(frame, &pkt);
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .hdr = frame, .hdr_len = 18, .num_sge = 4};

    wr.sge[0] = (struct bench_sge){bench_mem(b, frame + 18, 1), 1, 0};
    wr.sge[1] = (struct bench_sge){0, 0, 0};
    wr.sge[2] = (struct bench_sge){bench_mem(b, frame + 19, 300), 300, 0};
    wr.sge[3] = (struct bench_sge){bench_mem(b, frame + 319, len - 319), (uint32_t)len - 319, 0};
    bench_send(&sq, &wr);
    expect_frame(0, frame, len);
}
END_TEST

/* IEEE 802.3: at least 60 bytes without FCS. The padding is zero, not the buffer's old content. */
START_TEST(short_frames_are_padded_with_zeros)
{
    struct bench_pkt pkt = packet(4, 17, 1);
    uint8_t frame[64] = {0}, big[200];
    struct bench_wr wr;

    memset(big, 0xff, sizeof(big));
    memcpy(big, bench_peer_mac, 6);
    for (unsigned i = 0; i < 16; i++) { /* dirties every slot of the wire */
        wr = wr_of(big, sizeof(big), 18);
        bench_send(&sq, &wr);
    }
    wr = wr_of(frame, bench_build(frame, &pkt), 18);
    bench_send(&sq, &wr);
    expect_frame(16, frame, 60);
}
END_TEST

START_TEST(vlan_tag_is_inserted_behind_the_addresses)
{
    struct bench_pkt pkt = packet(4, 6, 60);
    uint8_t plain[256], tagged[256];
    size_t len = bench_build(plain, &pkt);
    struct bench_wr wr = wr_of(plain, len, 0);

    pkt.vlan = true;
    pkt.tci = 0xa123;
    bench_build(tagged, &pkt);
    wr.insert_vlan = true;
    wr.vlan_tci = 0xa123;
    bench_send(&sq, &wr);
    expect_frame(0, tagged, len + 4);
}
END_TEST

/* 802.1ad: a service tag has a type of its own. */
START_TEST(service_tag_is_inserted_with_its_type)
{
    struct bench_pkt pkt = packet(4, 6, 60);
    uint8_t plain[256], tagged[256];
    size_t len = bench_build(plain, &pkt);
    struct bench_wr wr = wr_of(plain, len, 0);
    void *wqe;

    pkt.vlan = true;
    pkt.tci = 0xa123;
    bench_build(tagged, &pkt);
    prm_store16(tagged + 12, 0x88a8);
    wr.insert_vlan = true;
    wr.vlan_tci = 0xa123;
    wqe = bench_write_wqe(&sq, &wr);
    PRM_SET(wqe_eth_seg, wqe + PRM_SIZE(wqe_ctrl_seg), insert_svlan, 1);
    bench_ring_sq(&sq);
    bench_run(b);
    expect_frame(0, tagged, len + 4);
}
END_TEST

/* 802.1Q leaves the minimum at 60: an untagged frame of 56 bytes and its tag need no padding. */
START_TEST(the_tag_counts_for_the_minimum)
{
    uint8_t frame[57] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 57, 0);
    wr.insert_vlan = true;
    bench_send(&sq, &wr);
    wr = wr_of(frame, 20, 0);
    wr.insert_vlan = true;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->frames[0].len, 61);
    ck_assert_uint_eq(b->frames[1].len, 60);
}
END_TEST

/* -- checksums --------------------------------------------------------------------------------- */

START_TEST(checksums_are_filled_in_where_asked_for)
{
    static const uint8_t versions[] = {4, 6}, protos[] = {6, 17};
    uint8_t good[512], bad[512];

    for (unsigned i = 0; i < 16; i++) {
        struct bench_pkt pkt = packet(versions[i & 1], protos[i >> 1 & 1], 101 + i);
        struct bench_wr wr;
        size_t len;

        pkt.vlan = i & 4;
        len = bench_build(good, &pkt);
        pkt.no_csum = true;
        bench_build(bad, &pkt);
        ck_assert(!bench_sums_ok(bad, len));
        wr = wr_of(bad, len, i & 8 ? 18 : 0);
        wr.cs_flags = CS_L3 | CS_L4;
        bench_send(&sq, &wr);
        expect_frame(i, good, len);
        ck_assert(bench_sums_ok(b->frames[i].data, len));
    }
}
END_TEST

START_TEST(each_checksum_has_its_own_flag)
{
    struct bench_pkt pkt = packet(4, 17, 33);
    uint8_t good[128], bad[128];
    size_t len = bench_build(good, &pkt);
    struct bench_wr wr;

    pkt.no_csum = true;
    bench_build(bad, &pkt);
    wr = wr_of(bad, len, 18);
    bench_send(&sq, &wr);
    expect_frame(0, bad, len);
    wr.cs_flags = CS_L3;
    bench_send(&sq, &wr);
    ck_assert_mem_eq(b->frames[1].data + 24, good + 24, 2);
    ck_assert_mem_eq(b->frames[1].data + 40, bad + 40, 2);
    wr.cs_flags = CS_L4;
    bench_send(&sq, &wr);
    ck_assert_mem_eq(b->frames[2].data + 24, bad + 24, 2);
    ck_assert_mem_eq(b->frames[2].data + 40, good + 40, 2);
}
END_TEST

/* RFC 768: a UDP checksum that comes out as zero is sent as all ones. */
START_TEST(udp_checksum_zero_is_sent_as_ones)
{
    struct bench_pkt pkt = packet(4, 17, 2);
    uint8_t frame[64] = {0};
    size_t len = bench_build(frame, &pkt);
    struct bench_wr wr;

    /* The checksum field's value as data makes the sum all ones, the checksum zero. */
    prm_store16(frame + 42,
                bench_sum((uint8_t[]){frame[42], frame[43], frame[40], frame[41]}, 4, 0));
    wr = wr_of(frame, len, 18);
    wr.cs_flags = CS_L4;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(prm_load16(b->frames[0].data + 40), 0xffff);
}
END_TEST

/* In a frame that is not IP, is a fragment or is cut short there is no checksum to compute: it is
 * sent unchanged. */
START_TEST(frames_without_a_checksum_to_fill_go_out_unchanged)
{
    struct bench_pkt pkt = packet(4, 6, 80);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);
    struct bench_wr wr;

    pkt.no_csum = true;
    bench_build(frame, &pkt);
    prm_store16(frame + 12, 0x0806);
    wr = wr_of(frame, len, 18);
    wr.cs_flags = CS_L3 | CS_L4;
    bench_send(&sq, &wr);
    expect_frame(0, frame, len);

    bench_build(frame, &pkt);
    frame[20] = 0x20; /* more fragments */
    wr = wr_of(frame, len, 18);
    wr.cs_flags = CS_L4;
    bench_send(&sq, &wr);
    expect_frame(1, frame, len);

    bench_build(frame, &pkt);
    frame[14] = 0x4f; /* 60 bytes of IP header: TCP's would end beyond 74 */
    wr = wr_of(frame, 80, 18);
    wr.cs_flags = CS_L4;
    bench_send(&sq, &wr);
    expect_frame(2, frame, 80);
    ck_assert_uint_eq(sq_state(), PRM_SQC_STATE_RDY);
}
END_TEST

/* -- completions and the ring ------------------------------------------------------------------ */

START_TEST(unsignaled_wqes_complete_silently)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    wr.unsignaled = true;
    bench_write_wqe(&sq, &wr);
    bench_write_wqe(&sq, &wr);
    wr.unsignaled = false;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 3);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 2);
    bench_expect_none(&sq);
}
END_TEST

START_TEST(a_nop_completes_and_sends_nothing)
{
    const struct bench_wr nop = {.opcode = PRM_WQE_OPCODE_NOP};
    const struct prm_cqe64 *cqe;

    bench_send(&sq, &nop);
    cqe = bench_cqe(&sq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, send_wqe_opcode), PRM_WQE_OPCODE_NOP);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), sq.num);
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

/* WQEs of three basic blocks in a ring of 16: every fifth or sixth is cut by the ring's end. */
START_TEST(wqes_continue_at_the_rings_start)
{
    struct bench_pkt pkt = packet(4, 6, 50);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);

    for (unsigned i = 0; i < 40; i++) {
        uint16_t at = sq.pi;
        struct bench_wr wr;

        frame[100] = (uint8_t)i;
        wr = wr_of(frame, len, 100);
        bench_send(&sq, &wr);
        ck_assert_uint_eq(sq.pi, at + 3);
        expect_frame(i, frame, len);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, at);
    }
}
END_TEST

START_TEST(a_queue_in_reset_does_not_send)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST), SYN_OK);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 0);
    bench_expect_none(&sq);
}
END_TEST

/* -- copies from memory to memory (model/queue/mmo.h) ------------------------------------------ */

/* Without inline headers, the Ethernet segment of the bench's WQE takes the place of the copy's
 * metadata. */
static void send_copy(uint64_t from, uint64_t to, uint32_t from_len, uint32_t to_len)
{
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_MMO, .sge = {{from, from_len, 0}, {to, to_len, 0}}, .num_sge = 2};

    PRM_SET(wqe_ctrl_seg, bench_write_wqe(&sq, &wr), opmod, PRM_MMO_OPMOD_DMA);
    bench_ring_sq(&sq);
    bench_run(b);
}

#define MOST (1u << MMO_LOG_MAX)

START_TEST(an_sq_copies_memory)
{
    static const uint32_t lengths[] = {1, 4096, 4097, 100000, MOST};
    uint8_t *bytes = g_malloc0(MOST + 1);

    b->rig.hca.limits.mmo_sq = true;
    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        uint64_t from, to = bench_mem(b, bytes, lengths[i] + 1);

        memset(bytes, 0x5a + (int)i, lengths[i]);
        from = bench_mem(b, bytes, lengths[i]);
        memset(bytes, 0, lengths[i]);
        send_copy(from, to, lengths[i], lengths[i]);
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, (uint16_t)i);
        ck_assert_mem_eq(fake_host_ptr(&b->rig.host, from, lengths[i]),
                         fake_host_ptr(&b->rig.host, to, lengths[i]), lengths[i]);
        ck_assert_uint_eq(*(uint8_t *)fake_host_ptr(&b->rig.host, to + lengths[i], 1), 0);
    }
    ck_assert_uint_eq(b->num_frames, 0);
    g_free(bytes);
}
END_TEST

START_TEST(copies_that_an_sq_does_not_make_fail)
{
    static const struct {
        uint32_t from, to;
        bool has, answers;
        uint8_t syndrome;
    } tries[] = {
        {64, 64, false, true, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR},
        {64, 63, true, true, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
        {MOST + 1, MOST + 1, true, true, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR},
        {64, 64, true, false, PRM_CQE_SYNDROME_LOCAL_PROT_ERR},
    };
    uint8_t bytes[64] = {0};
    uint64_t from = bench_mem(b, bytes, 64);
    uint64_t to = tries[_i].answers ? bench_mem(b, bytes, 64) : FAKE_HOST_BASE - 64;

    b->rig.hca.limits.mmo_sq = tries[_i].has;
    send_copy(from, to, tries[_i].from, tries[_i].to);
    expect_failure(tries[_i].syndrome, 0);
}
END_TEST

/* The program changes the WQE of a copy that is in progress into a shorter one. */
START_TEST(a_copy_that_has_changed_begins_again)
{
    uint8_t *bytes = g_malloc0(MOST);
    uint64_t from = bench_mem(b, bytes, MOST), to = bench_mem(b, bytes, MOST);
    struct bench_wr wr = {
        .opcode = PRM_WQE_OPCODE_MMO, .sge = {{from, MOST, 0}, {to, MOST, 0}}, .num_sge = 2};
    struct eth_sq *queue = eth_sq_find(&b->rig.hca, sq.num);
    void *wqe = bench_write_wqe(&sq, &wr);

    b->rig.hca.limits.mmo_sq = true;
    PRM_SET(wqe_ctrl_seg, wqe, opmod, PRM_MMO_OPMOD_DMA);
    bench_ring_sq(&sq);
    hca_run(&b->rig.hca, 1);
    ck_assert_uint_gt(queue->done, 64);
    ck_assert_uint_lt(queue->done, MOST);
    memset(fake_host_ptr(&b->rig.host, from, 64), 0x77, 64);
    PRM_SET(wqe_data_seg, wqe + 32, byte_count, 64);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert_uint_eq(queue->done, 0);
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, from, 64), fake_host_ptr(&b->rig.host, to, 64),
                     64);
    g_free(bytes);
}
END_TEST

/* -- invalid WQEs ------------------------------------------------------------------------------ */

START_TEST(opcodes_that_an_sq_does_not_have_fail)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_READ, PRM_WQE_OPCODE_UMR, 0x29, 0x7f, 0xff};
    uint8_t frame[64] = {0};

    memcpy(frame, bench_peer_mac, 6);
    for (unsigned i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        struct bench_wr wr = wr_of(frame, 64, 18);

        wr.opcode = opcodes[i];
        bench_send(&sq, &wr);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        bench_sq_revive(&sq);
    }
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

START_TEST(impossible_lengths_of_a_wqe_fail)
{
    static const uint8_t ds[] = {0, 1, 5, 63};
    uint8_t frame[64] = {0};

    memcpy(frame, bench_peer_mac, 6);
    for (unsigned i = 0; i < G_N_ELEMENTS(ds); i++) {
        struct bench_wr wr = wr_of(frame, 64, 18);

        /* One basic block is posted: 5 and 63 claim more; 1 has no Ethernet segment. */
        PRM_SET(wqe_ctrl_seg, bench_write_wqe(&sq, &wr), ds, ds[i]);
        bench_ring_sq(&sq);
        bench_run(b);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        ck_assert_ptr_nonnull(strstr(b->rig.host.last_line,
                                     "fails with syndrome 0x2: the WQE, its list or the doorbell "
                                     "record cannot be read, or is invalid"));
        bench_expect_none(&sq);
        bench_sq_revive(&sq);
    }
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

START_TEST(inline_headers_beyond_the_wqe_fail)
{
    static const uint16_t sizes[] = {0x3ff, 0x100, 51};
    uint8_t frame[64] = {0};

    memcpy(frame, bench_peer_mac, 6);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct bench_wr wr = wr_of(frame, 64, 18);

        PRM_SET(wqe_eth_seg, bench_write_wqe(&sq, &wr) + 16, inline_hdr_sz, sizes[i]);
        bench_ring_sq(&sq);
        bench_run(b);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        bench_sq_revive(&sq);
    }
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

/* sqc.rlky: a program's queue cannot use bus addresses. */
START_TEST(the_reserved_lkey_is_not_every_queues)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    PRM_SET(sqc, eth_sq_find(&b->rig.hca, sq.num)->sqc, rlky, 0);
    bench_send(&sq, &wr);
    expect_failure(PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

START_TEST(keys_that_do_not_allow_it_fail)
{
    const struct bench_sge bad[] = {
        {FAKE_HOST_BASE, 64, 0x123456},               /* no such key */
        {FAKE_HOST_BASE + FAKE_HOST_SIZE - 1, 64, 0}, /* runs out of the host's memory */
        {FAKE_HOST_BASE - 64, 64, 0},
        {UINT64_MAX - 10, 64, 0}, /* wraps */
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                              .hdr = (const uint8_t[18]){2, 0, 0, 0, 0, 2},
                              .hdr_len = 18,
                              .sge = {bad[i]},
                              .num_sge = 1};

        bench_send(&sq, &wr);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
        if (i == 0) {
            char line[256];

            snprintf(line, sizeof(line),
                     "SQ 0x%x: WQE 0x0 opcode 0xa fails with syndrome 0x4: lkey 0x123456 does not "
                     "exist",
                     sq.num);
            ck_assert_str_eq(b->rig.host.last_line, line);
        }
        bench_sq_revive(&sq);
        wr.hdr_len = 0; /* the destination address itself cannot be read */
        bench_send(&sq, &wr);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
        bench_sq_revive(&sq);
    }
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

START_TEST(frames_too_short_or_too_long_fail)
{
    const struct bench_sge bad[] = {
        {FAKE_HOST_BASE, 13, 0},
        {FAKE_HOST_BASE, WIRE_FRAME_MAX + 1, 0},
        {FAKE_HOST_BASE, 0x7fffffff, 0},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        const struct bench_wr wr = {
            .opcode = PRM_WQE_OPCODE_SEND, .sge = {bad[i], bad[i]}, .num_sge = i == 2 ? 2 : 1};

        bench_send(&sq, &wr);
        expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0);
        bench_expect_none(&sq);
        bench_sq_revive(&sq);
    }
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

/* IBTA 11.6.3.2, local work queue catastrophic error: if completions cannot be reported, there is
 * an event. Without a doorbell record there is no WQE that a completion could name. */
START_TEST(a_doorbell_record_that_cannot_be_fails_the_queue)
{
    sq.pi = 17; /* of 16 basic blocks */
    if (_i) {
        b->rig.host.hole = sq.dbr;
    }
    bench_ring_sq(&sq);
    bench_run(b);
    bench_expect_none(&sq);
    bench_expect_fatal(&sq, PRM_EVENT_QUEUE_TYPE_SQ);
    ck_assert_uint_eq(sq_state(), PRM_SQC_STATE_ERR);
    ck_assert_ptr_nonnull(
        strstr(b->rig.host.last_line, "doorbell record is unreadable or impossible"));
}
END_TEST

/* IBTA 10.2.9.3, 11.6.3.2: a CQ that fails makes its work queues fail. */
START_TEST(a_cq_that_fails_takes_its_queue_down)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr = wr_of(frame, 64, 18);

    b->rig.host.hole = sq.cq_ring;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 1);
    bench_expect_fatal(&sq, PRM_EVENT_QUEUE_TYPE_SQ);
    ck_assert_uint_eq(sq_state(), PRM_SQC_STATE_ERR);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(b->num_frames, 1);
}
END_TEST

/* flush_in_error_en: every posted WQE completes, with WR_FLUSH_ERR behind the failed one. */
START_TEST(wqes_behind_a_failed_one_are_flushed)
{
    uint8_t frame[64] = {0};
    struct bench_wr good, bad;

    memcpy(frame, bench_peer_mac, 6);
    good = wr_of(frame, 64, 18);
    bad = good;
    bad.sge[0].key = 0x123456;
    bench_write_wqe(&sq, &good);
    bench_write_wqe(&sq, &bad);
    good.unsignaled = true;
    bench_write_wqe(&sq, &good);
    bench_send(&sq, &good);
    ck_assert_uint_eq(b->num_frames, 1);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 1);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 2);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 3);
    bench_expect_none(&sq);
}
END_TEST

START_TEST(modify_to_err_flushes_too)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    bench_write_wqe(&sq, &wr);
    bench_ring_sq(&sq);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0);
    ck_assert_uint_eq(b->num_frames, 0);
}
END_TEST

/* driver: mlx5e_tx_reporter_err_cqe_recover(): ERR to RST to RDY, indices from 0. */
START_TEST(a_failed_queue_works_again_after_recovery)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    for (unsigned i = 0; i < 5; i++) {
        bench_send(&sq, &wr);
    }
    wr.opcode = 0x7f;
    bench_send(&sq, &wr);
    for (unsigned i = 0; i < 5; i++) {
        bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, (uint16_t)i);
    }
    expect_failure(PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 5);
    bench_sq_revive(&sq);
    bench_run(b);
    ck_assert_uint_eq(b->num_frames, 5); /* the old doorbell record does not count */
    wr.opcode = PRM_WQE_OPCODE_SEND;
    bench_send(&sq, &wr);
    expect_frame(5, frame, 64);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
}
END_TEST

/* PRM cqe64.srqn: "SRQ number, or user index (CQE version 1)"; the user index is sqc.user_index. */
START_TEST(completions_carry_the_user_index)
{
    uint8_t frame[64] = {0};
    struct bench_wr wr;

    memcpy(frame, bench_peer_mac, 6);
    wr = wr_of(frame, 64, 18);
    bench_send(&sq, &wr);
    ck_assert_uint_eq(PRM_GET(cqe64, bench_cqe(&sq), srqn), BENCH_SQ_INDEX);
    wr.opcode = 0x7f;
    bench_send(&sq, &wr);
    ck_assert_uint_eq(PRM_GET(err_cqe, bench_cqe(&sq), srqn), BENCH_SQ_INDEX);
}
END_TEST

/* -- states ------------------------------------------------------------------------------------ */

START_TEST(illegal_moves_are_refused)
{
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_ETH_STATE);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, 2), SYN_ETH_STATE);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, 15), SYN_ETH_STATE);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_ERR), SYN_OK);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RDY), SYN_ETH_STATE);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST), SYN_OK);
}
END_TEST

/* Driver: modify_raw_packet_qp(), MLX5_CMD_OP_2ERR_QP of a QP whose SQ has not begun. Its next life
 * begins in RST. */
START_TEST(a_queue_that_never_sent_can_go_to_err)
{
    const uint8_t frame[64] = {2};
    struct bench_wr wr = wr_of(frame, sizeof(frame), 18);

    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST), SYN_OK);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_ERR), SYN_OK);
    ck_assert_ptr_null(bench_cqe(&sq));
    bench_send(&sq, &wr);
    ck_assert_uint_eq(PRM_GET(err_cqe, bench_cqe(&sq), syndrome), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST), SYN_OK);
    ck_assert_int_eq(bench_sq_move(&sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
}
END_TEST

START_TEST(only_the_owner_may_modify_and_destroy)
{
    struct prm_sqc sqc[1] = {0};

    ck_assert_int_eq(eth_sq_modify(&b->rig.hca, RIG_USER, sq.num, PRM_SQC_STATE_RDY, 0, sqc),
                     SYN_BAD_UID);
    ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, RIG_USER, sq.num), SYN_BAD_UID);
    ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, sq.num), SYN_OK);
    ck_assert_int_eq(eth_sq_destroy(&b->rig.hca, 0, sq.num), SYN_ETH_NOT_FOUND);
    ck_assert_int_eq(eth_sq_query(&b->rig.hca, sq.num, sqc), SYN_ETH_NOT_FOUND);
}
END_TEST

/* sqc.ts_format: the free-running timer, or seconds and nanoseconds of the real-time clock. */
START_TEST(time_stamps_are_of_the_clock_that_the_queue_asks_for)
{
    struct bench_pkt pkt = packet(4, 17, 64);
    uint8_t frame[256];
    size_t len = bench_build(frame, &pkt);

    b->rig.hca.limits.real_time = true;
    real_time_set(b->rig.hca.real_time, b->rig.host.now, 5000000007ull);
    for (b->ts_format = 0; b->ts_format < 3; b->ts_format++) {
        struct bench_wr wr = wr_of(frame, len, 18);
        const struct prm_cqe64 *cqe;

        bench_sq_new(b, b->tisn, &sq);
        bench_send(&sq, &wr);
        cqe = bench_cqe(&sq);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, timestamp),
                          b->ts_format ? 5ull << 32 | 7 : b->rig.host.now);
    }
}
END_TEST

START_TEST(a_queue_that_names_what_is_not_there_is_refused)
{
    struct prm_sqc sqc[1] = {0};
    struct prm_wq *wq = PRM_PTR(sqc, sqc, wq);
    struct mem_buf buf = {0};
    uint32_t num;

    PRM_SET(sqc, sqc, cqn, sq.cqn);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, pd, 0xabcd);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_PD);
    PRM_SET(wq, wq, pd, b->rig.pdn);
    PRM_SET(sqc, sqc, cqn, 0xabcd);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_CQ);
    PRM_SET(sqc, sqc, cqn, sq.cqn);
    PRM_SET(wq, wq, uar_page, 0xabcd);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_NO_UAR);
    PRM_SET(wq, wq, uar_page, b->rig.uarn);
    PRM_SET(sqc, sqc, tis_lst_sz, 1);
    PRM_SET(sqc, sqc, tis_num_0, 0xabcd);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_TIS);
    PRM_SET(sqc, sqc, tis_num_0, b->tisn);
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RDY);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_STATE);
    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RST);
    PRM_SET(wq, wq, log_wq_stride, 7);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_WQ);
    PRM_SET(wq, wq, log_wq_stride, 6);
    for (unsigned type = 0; type < 4; type++) { /* of lists and strides only RQs know */
        if (type != PRM_WQ_TYPE_CYCLIC) {
            PRM_SET(wq, wq, wq_type, type);
            ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_WQ);
        }
    }
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(sqc, sqc, cd_master, 1);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_WQ);
    PRM_SET(sqc, sqc, cd_master, 0);
    PRM_SET(wq, wq, cd_slave, 1);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_ETH_WQ);
    PRM_SET(wq, wq, cd_slave, 0);
    PRM_SET(sqc, sqc, ts_format, PRM_TS_FORMAT_REAL_TIME);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, 0, &num), SYN_TS_FORMAT);
    PRM_SET(sqc, sqc, ts_format, PRM_TS_FORMAT_DEFAULT);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, RIG_USER, sqc, &buf, 0, &num), SYN_BAD_UID);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_tx");
    TCase *tcase = tcase_create("eth_tx");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, any_part_of_the_headers_may_be_inline);
    tcase_add_test(tcase, the_destination_is_looked_at_once);
    tcase_add_test(tcase, a_generation_may_want_layer_2_inline);
    tcase_add_test(tcase, segments_follow_each_other_and_empty_ones_do_not_count);
    tcase_add_test(tcase, short_frames_are_padded_with_zeros);
    tcase_add_test(tcase, vlan_tag_is_inserted_behind_the_addresses);
    tcase_add_test(tcase, service_tag_is_inserted_with_its_type);
    tcase_add_test(tcase, the_tag_counts_for_the_minimum);
    tcase_add_test(tcase, checksums_are_filled_in_where_asked_for);
    tcase_add_test(tcase, each_checksum_has_its_own_flag);
    tcase_add_test(tcase, udp_checksum_zero_is_sent_as_ones);
    tcase_add_test(tcase, frames_without_a_checksum_to_fill_go_out_unchanged);
    tcase_add_test(tcase, unsignaled_wqes_complete_silently);
    tcase_add_test(tcase, a_nop_completes_and_sends_nothing);
    tcase_add_test(tcase, wqes_continue_at_the_rings_start);
    tcase_add_test(tcase, a_queue_in_reset_does_not_send);
    tcase_add_test(tcase, an_sq_copies_memory);
    tcase_add_loop_test(tcase, copies_that_an_sq_does_not_make_fail, 0, 4);
    tcase_add_test(tcase, a_copy_that_has_changed_begins_again);
    tcase_add_test(tcase, opcodes_that_an_sq_does_not_have_fail);
    tcase_add_test(tcase, impossible_lengths_of_a_wqe_fail);
    tcase_add_test(tcase, inline_headers_beyond_the_wqe_fail);
    tcase_add_test(tcase, keys_that_do_not_allow_it_fail);
    tcase_add_test(tcase, the_reserved_lkey_is_not_every_queues);
    tcase_add_test(tcase, frames_too_short_or_too_long_fail);
    tcase_add_loop_test(tcase, a_doorbell_record_that_cannot_be_fails_the_queue, 0, 2);
    tcase_add_test(tcase, a_cq_that_fails_takes_its_queue_down);
    tcase_add_test(tcase, wqes_behind_a_failed_one_are_flushed);
    tcase_add_test(tcase, modify_to_err_flushes_too);
    tcase_add_test(tcase, a_failed_queue_works_again_after_recovery);
    tcase_add_test(tcase, completions_carry_the_user_index);
    tcase_add_test(tcase, illegal_moves_are_refused);
    tcase_add_test(tcase, a_queue_that_never_sent_can_go_to_err);
    tcase_add_test(tcase, only_the_owner_may_modify_and_destroy);
    tcase_add_test(tcase, time_stamps_are_of_the_clock_that_the_queue_asks_for);
    tcase_add_test(tcase, a_queue_that_names_what_is_not_there_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
