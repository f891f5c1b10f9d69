/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests compressed CQEs: what a session holds, when it ends, that each CQE comes back out of the
 * ring as it went in, and what is refused. Rings are read by a decoder that shares no code with the
 * device (tests/programs/cqe_decoder.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/queue/cqe.h"
#include "model/queue/cqe_compress.h"
#include "tests/programs/cqe_decoder.h"
#include "tests/unit/rig.h"
#include "tests/unit/suite.h"

#define VECTOR 3
#define FORMS  10 /* five formats of receives, in two layouts */

static struct rig rig;
static struct rig_eq comp_eq, async_eq;

/* A CQ, its reader, and the CQEs that were posted and not read. */
struct zip {
    uint32_t cqn;
    struct cq *cq;
    uint64_t dbr;
    unsigned format; /* PRM_MINI_CQE_FORMAT_ */
    struct cqe_decoder d;
    struct prm_cqe64 sent[1 << 13];
    uint32_t posted, read;
    unsigned lost; /* CQEs whose time stamp was lost */
};

/* What a turn posts. */
struct burst {
    struct work work;
    struct zip *z;
    void (*post)(struct zip *z);
};

static struct zip *z;

static void setup(void)
{
    rig_init(&rig);
    rig.host.now = 1000000000;
    rig_eq_create(&rig, &comp_eq, 8, VECTOR, 0);
    rig_eq_create(&rig, &async_eq, 6, 0, RIG_ASYNC_MASK);
    rig_eq_doorbell(&rig, &comp_eq, true);
    z = calloc(1, sizeof(*z));
}

static void teardown(void)
{
    free(z);
    rig_clear(&rig);
}

static void fill_cqc(struct prm_cqc *cqc, unsigned log_size, unsigned cqe_sz, unsigned format,
                     unsigned layout)
{
    memset(cqc, 0, PRM_SIZE(cqc));
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, cqe_sz, cqe_sz);
    PRM_SET(cqc, cqc, uar_page, rig.uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, comp_eq.eqn);
    PRM_SET(cqc, cqc, cqe_comp_en, 1);
    PRM_SET(cqc, cqc, mini_cqe_res_format, format & 3);
    PRM_SET(cqc, cqc, mini_cqe_res_format_ext, format >> 2);
    PRM_SET(cqc, cqc, cqe_compression_layout, layout);
}

/* A ring in host memory, and the decoder that reads it. */
static void new_ring(struct mem_buf *buf, struct cqe_decoder *d, unsigned log_size, unsigned stride)
{
    uint64_t size = (uint64_t)stride << log_size;

    cqe_decoder_init(d, rig_ring(&rig, size, buf), log_size, stride);
}

static void create(const struct prm_cqc *cqc)
{
    struct mem_buf buf;

    memset(z, 0, sizeof(*z));
    z->format =
        PRM_GET(cqc, cqc, mini_cqe_res_format_ext) << 2 | PRM_GET(cqc, cqc, mini_cqe_res_format);
    new_ring(&buf, &z->d, PRM_GET(cqc, cqc, log_cq_size), PRM_GET(cqc, cqc, cqe_sz) ? 128 : 64);
    z->d.enhanced = PRM_GET(cqc, cqc, cqe_compression_layout);
    z->d.format = (enum dec_format)z->format;
    z->dbr = fake_host_alloc(&rig.host, 8, 8);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, z->dbr, &z->cqn), SYN_OK);
    z->cq = cq_find(&rig.hca, z->cqn);
}

static void create_zip(unsigned log_size, unsigned format, unsigned layout)
{
    struct prm_cqc cqc[1];

    fill_cqc(cqc, log_size, PRM_CQE_SZ_64_BYTES, format, layout);
    create(cqc);
}

static void post(const struct prm_cqe64 *cqe)
{
    struct prm_cqe64 copy[1];

    memcpy(copy, cqe, sizeof(copy));
    memcpy(&z->sent[z->posted++ % G_N_ELEMENTS(z->sent)], cqe, sizeof(copy));
    ck_assert(cq_post(&rig.hca, z->cq, copy, PRM_GET(cqe64, cqe, se)));
}

/* A received packet: the fields that mini CQEs carry are different in each. */
static void post_received(uint16_t counter, uint32_t qpn)
{
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
    PRM_SET(cqe64, cqe, qpn, qpn);
    PRM_SET(cqe64, cqe, srqn, qpn);
    PRM_SET(cqe64, cqe, wqe_counter, counter);
    PRM_SET(cqe64, cqe, byte_cnt, 64 + counter);
    PRM_SET(cqe64, cqe, rx_hash_result, 0x1000000 + counter);
    PRM_SET(cqe64, cqe, check_sum, 0xa000 + counter % 0x1000);
    PRM_SET(cqe64, cqe, l3_ok, 1);
    post(cqe);
}

static void post_sent(uint16_t counter, uint8_t wqe_opcode)
{
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_REQ);
    PRM_SET(cqe64, cqe, qpn, 0x123);
    PRM_SET(cqe64, cqe, wqe_counter, counter);
    PRM_SET(cqe64, cqe, send_wqe_opcode, wqe_opcode);
    PRM_SET(cqe64, cqe, byte_cnt, 7 * counter);
    post(cqe);
}

/* Clears the fields that a mini CQE of a receive loses. */
static void forget(uint8_t *cqe)
{
    if (z->format != PRM_MINI_CQE_FORMAT_CSUM && z->format != PRM_MINI_CQE_FORMAT_CSUM_STRIDX) {
        memset(cqe + DEC_CHECKSUM, 0, 2);
    }
    if (z->format != PRM_MINI_CQE_FORMAT_HASH) {
        memset(cqe + DEC_HASH, 0, 4);
    }
    if (z->format == PRM_MINI_CQE_FORMAT_L34H_STRIDX) {
        cqe[DEC_HASH_TYPE] = 0;
    }
}

/* Reads everything that is in the ring, and compares it with what was posted. Returns the number of
 * CQEs. */
static unsigned read_all(void)
{
    const uint8_t *got;
    bool mini;
    unsigned n = 0;

    while ((got = cqe_decoder_next(&z->d, &mini))) {
        uint8_t want[64], have[64];
        bool received;

        ck_assert_msg(z->read != z->posted, "a CQE that was never posted");
        memcpy(want, &z->sent[z->read++ % G_N_ELEMENTS(z->sent)], 64);
        memcpy(have, got, 64);
        received = want[DEC_OP_OWN] >> 4 != DEC_REQ;
        want[DEC_OP_OWN] &= 0xf2;
        memset(want + 0x30, 0, 8); /* the device adds the time stamp */
        memset(have + 0x30, 0, 8);
        if (want[DEC_OP_OWN] >> 4 >= 0xd) { /* and the vendor's syndrome */
            have[0x36] = want[0x36];
        }
        if (mini && received) {
            forget(want);
            forget(have);
        }
        ck_assert_msg(!memcmp(want, have, 64), "CQE %u (%s) differs", z->read - 1,
                      mini ? "mini" : "whole");
        z->lost += mini;
        n++;
    }
    ck_assert_msg(!z->d.fault, "%s", z->d.fault);
    prm_store32(fake_host_ptr(&rig.host, z->dbr, 4), z->d.ci & 0xffffff);
    return n;
}

static void burst_run(struct hca *hca, struct work *work)
{
    (void)hca;
    ((struct burst *)work)->post(z);
}

/* Posts inside a turn; the CQEs that are held at its end are written then. */
static void in_turn(void (*what)(struct zip *z))
{
    struct burst burst = {.work = {.run = burst_run}, .post = what};

    hca_schedule(&rig.hca, &burst.work);
    rig_run(&rig);
}

static unsigned layout_of(int i)
{
    return i & 1;
}

static unsigned format_of(int i)
{
    static const unsigned formats[] = {
        PRM_MINI_CQE_FORMAT_HASH, PRM_MINI_CQE_FORMAT_CSUM, PRM_MINI_CQE_FORMAT_CSUM_STRIDX,
        PRM_MINI_CQE_FORMAT_FTAG_STRIDX, PRM_MINI_CQE_FORMAT_L34H_STRIDX};

    return formats[i / 2 % 5];
}

/* -- what a session is ------------------------------------------------------------------------ */

static unsigned burst_length;

static void receive_burst(struct zip *zip)
{
    for (unsigned i = 0; i < burst_length; i++) {
        post_received((uint16_t)zip->posted, 0x55);
    }
}

/* The slots that mlx5e reads: title, 1, 8, 16, ...; of the enhanced layout title, 1, 8, 15, ... */
START_TEST(arrays_are_where_drivers_read_them)
{
    static const unsigned lengths[] = {2, 7, 8, 9, 16, 17, 24, 63, 64};

    for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
        create_zip(8, format_of(_i), layout_of(_i));
        burst_length = lengths[i];
        in_turn(receive_burst);
        ck_assert_uint_eq(read_all(), lengths[i]);
        if (!layout_of(_i)) {
            ck_assert_uint_eq(z->d.sessions, 1);
            ck_assert_uint_eq(z->d.slots_written, 1 + (lengths[i] + 7) / 8);
        } else {
            unsigned rest = (lengths[i] - 1) % 7;

            ck_assert_uint_eq(z->d.sessions, (lengths[i] - 1) / 7 + (rest > 1));
            ck_assert_uint_eq(z->d.slots_written, 1 + (lengths[i] - 1 + 6) / 7);
        }
    }
}
END_TEST

/* A CQE alone gains nothing from compression: it is an ordinary one. */
START_TEST(a_session_of_one_is_an_ordinary_cqe)
{
    create_zip(4, format_of(_i), layout_of(_i));
    burst_length = 1;
    for (unsigned i = 0; i < 40; i++) {
        in_turn(receive_burst);
        ck_assert_uint_eq(read_all(), 1);
        rig.host.now += 1000;
    }
    ck_assert_uint_eq(z->d.sessions, 0);
}
END_TEST

static void send_burst(struct zip *zip)
{
    for (unsigned i = 0; i < burst_length; i++) {
        post_sent((uint16_t)(3 * zip->posted),
                  i & 1 ? PRM_WQE_OPCODE_SEND : PRM_WQE_OPCODE_RDMA_READ);
    }
}

/* Mini CQEs of sends carry counter and opcode, in every format of receives. */
START_TEST(sends_carry_counter_and_opcode)
{
    create_zip(8, format_of(_i), layout_of(_i));
    burst_length = 30;
    in_turn(send_burst);
    ck_assert_uint_eq(read_all(), 30);
    ck_assert_uint_ge(z->d.minis, 27);
}
END_TEST

/* The header of a tagged message is where other CQEs have their hash (UCX reads it there). */
static void tagged_burst(struct zip *zip)
{
    for (unsigned i = 0; i < 10; i++) {
        struct prm_cqe64 cqe[1] = {0};

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
        PRM_SET(cqe64, cqe, wqe_counter, zip->posted);
        PRM_SET(cqe64, cqe, rx_hash_result, i);
        PRM_SET(cqe64, cqe, app, PRM_CQE_APP_TAG_MATCHING);
        post(cqe);
    }
}

START_TEST(tag_matching_is_not_compressed)
{
    create_zip(5, format_of(_i), layout_of(_i));
    in_turn(tagged_burst);
    ck_assert_uint_eq(read_all(), 10);
    ck_assert_uint_eq(z->d.sessions, 0);
}
END_TEST

/* -- who ends a session ----------------------------------------------------------------------- */

/* Three CQEs that a session holds, then something that ends it, and what software sees then. */
static unsigned seen_within;

static void three(void)
{
    burst_length = 3;
    receive_burst(z);
    ck_assert_uint_eq(read_all(), layout_of((int)z->d.enhanced));
}

static void see(void)
{
    seen_within = read_all();
}

static void end_by_queue(struct zip *zip)
{
    three();
    post_received((uint16_t)zip->posted, 0x56);
    see();
}

static void end_by_send(struct zip *zip)
{
    three();
    post_sent((uint16_t)zip->posted, PRM_WQE_OPCODE_SEND);
    see();
}

static void end_by_solicited(struct zip *zip)
{
    struct prm_cqe64 cqe[1];

    three();
    memcpy(cqe, &zip->sent[zip->posted - 1], sizeof(cqe));
    PRM_SET(cqe64, cqe, wqe_counter, zip->posted);
    PRM_SET(cqe64, cqe, se, 1);
    post(cqe);
    see();
}

static void end_by_error(struct zip *zip)
{
    struct prm_cqe64 cqe[1] = {0};

    three();
    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_ERR);
    PRM_SET(cqe64, cqe, wqe_counter, zip->posted);
    post(cqe);
    see();
    ck_assert_uint_eq(zip->read, zip->posted); /* an error is never held */
}

static void end_by_immediate(struct zip *zip)
{
    struct prm_cqe64 cqe[1];

    three();
    memcpy(cqe, &zip->sent[zip->posted - 1], sizeof(cqe));
    PRM_SET(cqe64, cqe, wqe_counter, zip->posted);
    PRM_SET(cqe64, cqe, immediate, 5);
    post(cqe);
    see();
}

static void end_by_timeout(struct zip *zip)
{
    three();
    rig.host.now += CQE_SESSION_TIMEOUT_US * 1000 - 1;
    post_received((uint16_t)zip->posted, 0x55);
    ck_assert_uint_eq(read_all(), 0);
    rig.host.now += 1;
    post_received((uint16_t)zip->posted, 0x55);
    see();
}

static void ring_arm(struct zip *zip, uint32_t ci)
{
    uint32_t word = ci & 0xffffff;

    prm_store32(fake_host_ptr(&rig.host, zip->dbr + 4, 4), word);
    uar_write(&rig.hca, rig.uarn, 0x20, (uint64_t)word << 32 | zip->cqn, 8);
}

static void end_by_arm(struct zip *zip)
{
    three();
    ring_arm(zip, zip->posted); /* nothing is due: arming alone shows what is there */
    see();
}

static void end_by_event(struct zip *zip)
{
    struct prm_cqc cqc[1] = {0};

    PRM_SET(cqc, cqc, cq_period, 1000);
    PRM_SET(cqc, cqc, cq_max_count, 4);
    PRM_SET(cqc, cqc, cq_period_mode, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, zip->cqn,
                               PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT |
                                   PRM_CQ_MODIFY_CQ_PERIOD_MODE,
                               cqc, NULL),
                     SYN_OK);
    ring_arm(zip, 0);
    three();
    ck_assert_ptr_null(rig_eq_peek(&rig, &comp_eq));
    post_received((uint16_t)zip->posted, 0x55);
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &comp_eq));
    see();
}

static void end_by_async_event(struct zip *zip)
{
    (void)zip;
    three();
    eq_async_qp(&rig.hca, PRM_EVENT_TYPE_SQ_DRAINED, PRM_EVENT_QUEUE_TYPE_QP, 0x55);
    see();
}

static void end_by_query(struct zip *zip)
{
    struct prm_cqc cqc[1];

    three();
    ck_assert_int_eq(cq_query(&rig.hca, zip->cqn, cqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, producer_counter), 3);
    see();
}

static void end_by_destroy(struct zip *zip)
{
    three();
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, zip->cqn), SYN_OK);
    zip->cq = NULL;
    see();
}

/* The counter of the next CQE is not the next one: formats without a counter cannot carry it. */
static void end_by_counter(struct zip *zip)
{
    three();
    post_received((uint16_t)(zip->posted + 1), 0x55);
    see();
}

static void end_by_turn(struct zip *zip)
{
    (void)zip;
    three();
    seen_within = 0;
}

static const struct {
    void (*post)(struct zip *z);
    bool sees_all; /* software sees the held CQEs before the turn is over */
} ends[] = {
    {end_by_queue, true}, {end_by_send, true},      {end_by_solicited, true},
    {end_by_error, true}, {end_by_immediate, true}, {end_by_timeout, true},
    {end_by_arm, true},   {end_by_event, true},     {end_by_async_event, true},
    {end_by_query, true}, {end_by_destroy, true},   {end_by_counter, true},
    {end_by_turn, false},
};

START_TEST(each_of_these_ends_a_session)
{
    unsigned which = (unsigned)_i / FORMS;

    create_zip(6, format_of(_i), layout_of(_i));
    in_turn(ends[which].post);
    if (ends[which].post == end_by_counter && z->format >= PRM_MINI_CQE_FORMAT_FTAG_STRIDX) {
        ck_assert_uint_eq(seen_within, 0); /* this format carries it */
    } else if (ends[which].sees_all) {
        ck_assert_uint_ge(seen_within + layout_of(_i), 3);
    }
    read_all();
    ck_assert_uint_eq(z->read, z->posted);
    ck_assert_ptr_null(rig.hca.open_sessions);
}
END_TEST

static void tagged_frames(struct zip *zip)
{
    for (unsigned i = 0; i < 8; i++) {
        struct prm_cqe64 cqe[1] = {0};

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
        PRM_SET(cqe64, cqe, qpn, 0xa1b2c0 + i);
        PRM_SET(cqe64, cqe, l4_l3_hdr_type, 0x24 + i);
        PRM_SET(cqe64, cqe, wqe_counter, 0x1234 + 3 * i);
        PRM_SET(cqe64, cqe, byte_cnt, i == 5 ? 0x1000000 : 0x30000 + i);
        if (zip->format != PRM_MINI_CQE_FORMAT_FTAG_STRIDX) {
            PRM_SET(cqe64, cqe, qpn, 0xa1b2c0);
        } else {
            PRM_SET(cqe64, cqe, l4_l3_hdr_type, 0x24);
        }
        post(cqe);
    }
}

/* Bytes of mini CQEs as DPDK reads them (rxq_cq_to_mbuf(), rxq_cq_to_pkt_type()). A length that
 * leaves no room for the flow tag is not compressed. */
START_TEST(flow_tag_and_header_types_are_where_dpdk_reads_them)
{
    static const uint8_t tag[8] = {0xb2, 0xc1, 0x12, 0x37, 0xa1, 3, 0, 1};
    static const uint8_t headers[8] = {0x25, 0, 0x12, 0x37, 0, 3, 0, 1};
    bool by_tag = _i == 0;

    create_zip(6, by_tag ? PRM_MINI_CQE_FORMAT_FTAG_STRIDX : PRM_MINI_CQE_FORMAT_L34H_STRIDX,
               PRM_CQE_LAYOUT_BASIC);
    in_turn(tagged_frames);
    ck_assert_mem_eq(z->d.ring + 64 + 8, by_tag ? tag : headers, 8);
    ck_assert_uint_eq(read_all(), 8);
    ck_assert_uint_eq(z->d.sessions, by_tag ? 2 : 1);
}
END_TEST

/* Outside a turn nothing would end a session, so nothing is held. */
START_TEST(outside_a_turn_nothing_is_held)
{
    create_zip(6, format_of(_i), layout_of(_i));
    for (unsigned i = 0; i < 20; i++) {
        post_received((uint16_t)i, 0x55);
        ck_assert_uint_eq(read_all(), 1);
    }
}
END_TEST

/* A full session is written, and the next CQE begins another one. */
START_TEST(a_full_session_is_written)
{
    create_zip(8, format_of(_i), layout_of(_i));
    burst_length = 200;
    in_turn(receive_burst);
    ck_assert_uint_eq(read_all(), 200);
    ck_assert_uint_eq(z->d.sessions, layout_of(_i) ? 28 + 1 : 4);
}
END_TEST

/* -- rings ------------------------------------------------------------------------------------ */

/* A session is never longer than the ring, even if overruns are ignored. */
START_TEST(a_small_ring_bounds_the_session)
{
    for (unsigned log_size = 0; log_size < 5; log_size++) {
        create_zip(log_size, format_of(_i), layout_of(_i));
        for (unsigned i = 0; i < 100; i++) {
            burst_length = 1 + i % (1u << log_size);
            in_turn(receive_burst);
            ck_assert_uint_eq(read_all(), burst_length);
        }
    }
}
END_TEST

/* If overruns are ignored, only the end of the ring bounds a session in a small ring: the second
 * session of four lies where the first one was. */
START_TEST(a_session_is_no_longer_than_a_ring_that_may_overrun)
{
    struct prm_cqc cqc[1];

    fill_cqc(cqc, 2, PRM_CQE_SZ_64_BYTES, format_of(_i), PRM_CQE_LAYOUT_BASIC);
    PRM_SET(cqc, cqc, oi, 1);
    create(cqc);
    burst_length = 8;
    in_turn(receive_burst);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)z->d.ring, format),
                      PRM_CQE_FORMAT_COMPRESSED);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)z->d.ring, byte_cnt), 4);
}
END_TEST

/* "Not to cross queue end" (DPDK, rxq_burst_v()): it takes the arrays and the buffers of a session
 * in one row, and would read and write behind the ring. */
START_TEST(a_session_ends_at_the_end_of_the_ring)
{
    create_zip(4, format_of(_i), PRM_CQE_LAYOUT_BASIC);
    burst_length = 9;
    in_turn(receive_burst);
    ck_assert_uint_eq(read_all(), 9);
    burst_length = 12;
    in_turn(receive_burst);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)(z->d.ring + 9 * 64), byte_cnt), 7);
    ck_assert_uint_eq(PRM_GET(cqe64, (const struct prm_cqe64 *)z->d.ring, byte_cnt), 5);
    ck_assert_uint_eq(read_all(), 12);
}
END_TEST

static void wrapping_burst(struct zip *zip)
{
    (void)zip;
    for (unsigned i = 0; i < 10; i++) {
        post_received((uint16_t)(0xfffa + i), 0x55);
    }
}

/* The counters of a session may wrap. */
START_TEST(counters_wrap_within_a_session)
{
    create_zip(8, format_of(_i), layout_of(_i));
    in_turn(wrapping_burst);
    ck_assert_uint_eq(read_all(), 10);
    ck_assert_uint_eq(z->d.sessions, layout_of(_i) ? 2 : 1);
}
END_TEST

/* The rest of an array of mini CQEs is zeros, and nothing of an earlier session. */
START_TEST(the_rest_of_an_array_is_empty)
{
    const uint8_t *array;

    create_zip(8, format_of(_i), PRM_CQE_LAYOUT_BASIC);
    burst_length = 16;
    in_turn(receive_burst);
    burst_length = 9;
    in_turn(receive_burst);
    array = (const uint8_t *)z->d.ring + (16 + 8) * 64;
    ck_assert_uint_ne(prm_load64(array), 0);
    for (unsigned i = 1; i < 8; i++) {
        ck_assert_uint_eq(prm_load64(array + 8 * i), 0);
    }
    ck_assert_uint_eq(read_all(), 25);
}
END_TEST

/* The slots that an entry of mini CQEs uses beside its own keep what they had. If that were the
 * number of a round 256 rounds ago, software would take it for a new CQE: here an entry that begins
 * in slot 1 in round 0, and only there. */
START_TEST(old_slots_never_look_new)
{
    create_zip(3, format_of(_i), PRM_CQE_LAYOUT_ENHANCED);
    for (unsigned i = 0; i < 8 * 600; i += burst_length) {
        unsigned round = i / 8;

        burst_length = round % 256 || !round ? 4 : 1;
        in_turn(receive_burst);
        ck_assert_uint_eq(read_all(), burst_length);
        ck_assert_uint_eq(z->read, z->posted);
    }
    ck_assert_uint_gt(z->d.minis, 8 * 400);
}
END_TEST

/* Held CQEs count: a CQ overruns when its slots are used up, whoever holds the CQEs. */
static bool overran;

static void overrun_burst(struct zip *zip)
{
    for (unsigned i = 0; i < 17; i++) {
        struct prm_cqe64 cqe[1] = {0};

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
        PRM_SET(cqe64, cqe, wqe_counter, i);
        memcpy(&zip->sent[zip->posted++], cqe, sizeof(cqe));
        overran = !cq_post(&rig.hca, zip->cq, cqe, false);
        ck_assert_int_eq(overran, i == 16);
    }
}

START_TEST(held_cqes_count_for_an_overrun)
{
    create_zip(4, format_of(_i), layout_of(_i));
    in_turn(overrun_burst);
    ck_assert(overran);
    z->posted--;
    ck_assert_uint_eq(read_all(), 16);
    ck_assert(cq_has_overrun(z->cq));
}
END_TEST

/* The ring of a CQ is replaced while its session is open. */
static struct mem_buf next_ring;
static struct cqe_decoder next_reader;
static unsigned next_log_size;

static void resize_burst(struct zip *zip)
{
    struct prm_cqe64 *resize = &zip->sent[zip->posted + 5];
    struct prm_cqc cqc[1] = {0};

    for (unsigned i = 0; i < 5; i++) {
        post_received((uint16_t)zip->posted, 0x55);
    }
    memset(resize, 0, sizeof(*resize));
    PRM_SET(cqe64, &zip->sent[zip->posted++], opcode, PRM_CQE_OPCODE_RESIZE_CQ);
    PRM_SET(cqc, cqc, log_cq_size, next_log_size);
    new_ring(&next_ring, &next_reader, next_log_size, zip->d.stride);
    PRM_SET(cqc, cqc, cqe_sz, zip->d.stride == 64 ? PRM_CQE_SZ_64_BYTES : PRM_CQE_SZ_128_BYTES);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, zip->cqn, PRM_CQ_RESIZE_LOG_CQ_SIZE, cqc, &next_ring),
                     SYN_OK);
    for (unsigned i = 0; i < 5; i++) {
        post_received((uint16_t)zip->posted, 0x55);
    }
}

START_TEST(a_resize_ends_the_session_in_the_old_ring)
{
    create_zip(6, format_of(_i), layout_of(_i));
    next_log_size = 7;
    in_turn(resize_burst);
    ck_assert_uint_eq(read_all(), 6); /* the last is the RESIZE_CQ entry */
    next_reader.enhanced = z->d.enhanced;
    next_reader.format = z->d.format;
    next_reader.ci = z->d.ci;
    z->d = next_reader;
    ck_assert_uint_eq(read_all(), 5);
    ck_assert_uint_eq(z->read, z->posted);
}
END_TEST

/* -- CQEs of 128 bytes ------------------------------------------------------------------------ */

static void data_burst(struct zip *zip)
{
    static const uint8_t bytes[40] = "forty bytes in the first half of a CQE";
    struct cqe_data data = {.bytes = bytes, .len = sizeof(bytes), .room = CQE_DATA_64};
    struct prm_cqe64 cqe[1] = {0}, *sent;

    three();
    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
    PRM_SET(cqe64, cqe, qpn, 0x55);
    PRM_SET(cqe64, cqe, wqe_counter, zip->posted);
    PRM_SET(cqe64, cqe, byte_cnt, sizeof(bytes));
    sent = &zip->sent[zip->posted++];
    memcpy(sent, cqe, sizeof(cqe));
    ck_assert(cq_post_data(&rig.hca, zip->cq, cqe, false, &data));
    see();
    ck_assert_mem_eq(dec_slot(&zip->d, 3) - 64, bytes, sizeof(bytes));
}

START_TEST(a_cqe_with_data_is_not_compressed)
{
    struct prm_cqc cqc[1];

    fill_cqc(cqc, 5, PRM_CQE_SZ_128_BYTES, format_of(_i), layout_of(_i));
    create(cqc);
    in_turn(data_burst);
    ck_assert_uint_eq(z->read, z->posted);
}
END_TEST

/* With padding, the device writes all 128 bytes of each slot that it writes; without, only the
 * second half. */
START_TEST(padding_fills_the_first_half)
{
    for (unsigned pads = 0; pads < 2; pads++) {
        struct prm_cqc cqc[1];
        unsigned filled = 0;

        fill_cqc(cqc, 5, pads ? PRM_CQE_SZ_128_BYTES_PAD : PRM_CQE_SZ_128_BYTES, format_of(_i),
                 layout_of(_i));
        PRM_SET(cqc, cqc, cqe_comp_en, _i >= FORMS ? 0 : 1);
        create(cqc);
        z->d.enhanced = _i < FORMS && z->d.enhanced;
        for (unsigned i = 0; i < 32; i++) {
            memset(dec_slot(&z->d, i) - 64, 0xee, 64);
        }
        burst_length = 20;
        in_turn(receive_burst);
        for (unsigned i = 0; i < 32; i++) {
            const uint8_t *half = dec_slot(&z->d, i) - 64;

            filled += half[0] == 0 && !memcmp(half, half + 1, 63);
        }
        ck_assert_uint_eq(read_all(), 20);
        ck_assert_uint_eq(filled, pads ? z->d.slots_written : 0);
    }
}
END_TEST

/* -- random streams --------------------------------------------------------------------------- */

static unsigned stream_turn;

/* Posts CQEs of a few queues, as their WQEs complete, and rings doorbells between them. */
static void random_burst(struct zip *zip)
{
    static uint16_t counters[4];
    unsigned n = (unsigned)(rand() % 40), queue = 0;

    for (unsigned i = 0; i < n && zip->posted - zip->read < (1u << zip->d.log_size) - 2; i++) {
        struct prm_cqe64 cqe[1] = {0};
        unsigned odd = (unsigned)rand() % 64;

        queue = rand() % 12 ? queue : (unsigned)rand() % 4;
        PRM_SET(cqe64, cqe, qpn, queue == 3 ? 0xffffff : queue);
        PRM_SET(cqe64, cqe, srqn, queue);
        PRM_SET(cqe64, cqe, opcode, queue & 1 ? PRM_CQE_OPCODE_REQ : PRM_CQE_OPCODE_RESP_SEND);
        PRM_SET(cqe64, cqe, byte_cnt, rand() >> (rand() % 16 ? 8 : 0));
        PRM_SET(cqe64, cqe, wqe_counter, counters[queue]);
        counters[queue] = (uint16_t)(counters[queue] + (rand() % 16 ? 1 : rand()));
        if (queue & 1) {
            PRM_SET(cqe64, cqe, send_wqe_opcode, (unsigned)rand() % 0x30);
        } else {
            PRM_SET(cqe64, cqe, rx_hash_result, rand());
            PRM_SET(cqe64, cqe, check_sum, rand() & 0xffff);
            /* mostly what the format carries, sometimes what it does not carry */
            if (zip->format == PRM_MINI_CQE_FORMAT_FTAG_STRIDX || rand() % 32 == 0) {
                PRM_SET(cqe64, cqe, qpn, rand() & 0xffffff);
            }
            if (zip->format == PRM_MINI_CQE_FORMAT_L34H_STRIDX || rand() % 32 == 0) {
                PRM_SET(cqe64, cqe, l4_l3_hdr_type, rand() & 0xff);
                PRM_SET(cqe64, cqe, rx_hash_type, rand() & 0xff);
            }
        }
        if (odd == 0) {
            PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_ERR);
            PRM_SET(cqe64, cqe, byte_cnt, 0);
        } else if (odd == 1) {
            PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_NO_PACKET);
        } else if (odd == 2) {
            PRM_SET(cqe64, cqe, se, 1);
        } else if (odd == 3) {
            PRM_SET(cqe64, cqe, vlan_info, 1 + stream_turn % 3);
        } else if (odd == 4) {
            PRM_SET(cqe64, cqe, app, PRM_CQE_APP_TAG_MATCHING);
        }
        post(cqe);
        switch (rand() % 40) {
        case 0:
            ring_arm(zip, zip->posted);
            break;
        case 1:
            eq_async_qp(&rig.hca, PRM_EVENT_TYPE_SQ_DRAINED, PRM_EVENT_QUEUE_TYPE_QP, queue);
            rig_eq_next(&rig, &async_eq);
            break;
        case 2:
            read_all();
            break;
        case 3:
            rig.host.now += (uint64_t)rand() % 60000;
            break;
        default:
            break;
        }
    }
}

START_TEST(random_streams_come_back_as_they_were)
{
    srand(1 + (unsigned)_i);
    for (unsigned round = 0; round < 6; round++) {
        struct prm_cqc cqc[1];

        fill_cqc(cqc, 5 + (unsigned)rand() % 4, (unsigned)rand() % 3, format_of(_i), layout_of(_i));
        create(cqc);
        for (stream_turn = 0; stream_turn < 400; stream_turn++) {
            in_turn(random_burst);
            while (rig_eq_next(&rig, &comp_eq)) {
                rig_eq_doorbell(&rig, &comp_eq, true);
            }
            rig_eq_doorbell(&rig, &async_eq, true);
            if (rand() % 3) {
                read_all();
                ck_assert_uint_eq(z->read, z->posted); /* nothing is held after a turn */
            }
        }
        ck_assert_uint_gt(z->d.minis, z->d.cqes / 4);
        ck_assert_uint_lt(z->d.slots_written, z->d.cqes);
        ck_assert_int_eq(cq_destroy(&rig.hca, 0, z->cqn), SYN_OK);
    }
}
END_TEST

/* -- a host that does not answer, and what is refused ----------------------------------------- */

static void hole_burst(struct zip *zip)
{
    burst_length = 4;
    receive_burst(zip);
}

START_TEST(a_ring_that_does_not_answer_fails_the_cq)
{
    const struct prm_eqe *eqe;

    create_zip(4, format_of(_i), layout_of(_i));
    rig.host.no_map = true;
    rig.host.hole = FAKE_HOST_BASE + (uint64_t)(z->d.ring - rig.host.ram) + 64;
    in_turn(hole_burst);
    eqe = rig_eq_next(&rig, &async_eq);
    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_CQ_ERROR);
    ck_assert_ptr_null(rig.hca.open_sessions);
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, z->cqn), SYN_OK);
}
END_TEST

START_TEST(unknown_forms_are_refused)
{
    struct prm_cqc good[1], cqc[1];
    struct cqe_decoder d;
    struct mem_buf buf;
    uint32_t cqn;
    uint64_t dbr = fake_host_alloc(&rig.host, 8, 8);

    fill_cqc(good, 4, PRM_CQE_SZ_64_BYTES, PRM_MINI_CQE_FORMAT_CSUM, PRM_CQE_LAYOUT_BASIC);
    for (unsigned i = 0; i < 5; i++) {
        memcpy(cqc, good, sizeof(cqc));
        switch (i) {
        case 0:
            PRM_SET(cqc, cqc, mini_cqe_res_format_ext, 1); /* with CSUM: format 5 */
            break;
        case 1:
            PRM_SET(cqc, cqc, cqe_compression_layout, 2);
            break;
        case 2:
            PRM_SET(cqc, cqc, cqe_compression_layout, 3);
            break;
        case 3:
            PRM_SET(cqc, cqc, cc, 1); /* all CQEs in one slot: there is no place for arrays */
            break;
        default:
            rig.hca.limits.enhanced_cqes = false;
            PRM_SET(cqc, cqc, cqe_compression_layout, PRM_CQE_LAYOUT_ENHANCED);
            break;
        }
        new_ring(&buf, &d, 4, 64);
        ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, dbr, &cqn), SYN_CQ_COMPRESSION);
        mem_buf_clear(&buf);
    }
    /* without compression, its fields mean nothing */
    PRM_SET(cqc, cqc, cqe_comp_en, 0);
    create(cqc);
}
END_TEST

/* A function that is reset with an open session keeps nothing of it. */
static void reset_burst(struct zip *zip)
{
    three();
    rig.hca.off = true; /* the host does not answer any more */
    cq_free(&rig.hca, cq_obj(zip->cq));
    rig.hca.off = false;
    ck_assert_ptr_null(rig.hca.open_sessions);
    ck_assert_uint_eq(read_all(), 0);
}

START_TEST(a_reset_forgets_an_open_session)
{
    create_zip(4, format_of(_i), layout_of(_i));
    in_turn(reset_burst);
    ck_assert_ptr_null(rig_eq_peek(&rig, &async_eq));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cqe-compress");
    TCase *tc = tcase_create("cqe-compress");

    /* in each format of receives, and each layout */
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, arrays_are_where_drivers_read_them, 0, FORMS);
    tcase_add_loop_test(tc, a_session_of_one_is_an_ordinary_cqe, 0, FORMS);
    tcase_add_loop_test(tc, sends_carry_counter_and_opcode, 0, FORMS);
    tcase_add_loop_test(tc, tag_matching_is_not_compressed, 0, FORMS);
    tcase_add_loop_test(tc, each_of_these_ends_a_session, 0, FORMS * (int)G_N_ELEMENTS(ends));
    tcase_add_loop_test(tc, flow_tag_and_header_types_are_where_dpdk_reads_them, 0, 2);
    tcase_add_loop_test(tc, outside_a_turn_nothing_is_held, 0, FORMS);
    tcase_add_loop_test(tc, a_full_session_is_written, 0, FORMS);
    tcase_add_loop_test(tc, a_small_ring_bounds_the_session, 0, FORMS);
    tcase_add_loop_test(tc, old_slots_never_look_new, 0, FORMS);
    tcase_add_loop_test(tc, a_session_is_no_longer_than_a_ring_that_may_overrun, 0, FORMS);
    tcase_add_loop_test(tc, a_session_ends_at_the_end_of_the_ring, 0, FORMS);
    tcase_add_loop_test(tc, counters_wrap_within_a_session, 0, FORMS);
    tcase_add_loop_test(tc, the_rest_of_an_array_is_empty, 0, FORMS);
    tcase_add_loop_test(tc, held_cqes_count_for_an_overrun, 0, FORMS);
    tcase_add_loop_test(tc, a_resize_ends_the_session_in_the_old_ring, 0, FORMS);
    tcase_add_loop_test(tc, a_cqe_with_data_is_not_compressed, 0, FORMS);
    tcase_add_loop_test(tc, padding_fills_the_first_half, 0, FORMS + 1);
    tcase_add_loop_test(tc, random_streams_come_back_as_they_were, 0, 2 * FORMS);
    tcase_add_loop_test(tc, a_ring_that_does_not_answer_fails_the_cq, 0, FORMS);
    tcase_add_test(tc, unknown_forms_are_refused);
    tcase_add_loop_test(tc, a_reset_forgets_an_open_session, 0, FORMS);
    suite_add_tcase(suite, tc);
    return suite;
}
