/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that the vector functions of DPDK's driver find the length of each frame in a CQ that
 * compresses. reader_burst() takes the steps of rxq_burst_v() and rxq_cq_decompress_v()
 * (mlx5_rxtx_vec.c, mlx5_rxtx_vec_sse.h). It shares no code with the device. Each access to the
 * ring and to the row of buffers is checked: the driver does not go on at the beginning when it is
 * behind the end, so what it takes there is not the device's.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/queue/cqe.h"
#include "model/queue/cqe_compress.h"
#include "tests/unit/rig.h"
#include "tests/unit/suite.h"

enum {
    FORMATS = 5,
    LAYOUTS = 2,
    LOG_MOST = 8,
    PER_LOOP = 4,   /* MLX5_VPMD_DESCS_PER_LOOP */
    BURST_MOST = 64 /* MLX5_VPMD_RX_MAX_BURST */
};

struct reader {
    uint8_t *ring;
    unsigned log_size;
    bool enhanced;
    uint32_t cq_ci, rq_pi;
    unsigned decompressed;
    uint16_t lens[(1 << LOG_MOST) + PER_LOOP]; /* of the buffers, and of those that pad the row */
};

static struct rig rig;
static struct rig_eq comp_eq, async_eq;
static struct reader reader;
static struct cq *vec_cq;
static uint64_t dbr;
static uint32_t posted, received, minis;
static unsigned burst_length;

static void setup(void)
{
    rig_init(&rig);
    rig.host.now = 1000000000;
    rig_eq_create(&rig, &comp_eq, 8, 3, 0);
    rig_eq_create(&rig, &async_eq, 6, 0, RIG_ASYNC_MASK);
}

static void teardown(void)
{
    rig_clear(&rig);
}

/* -- the driver ------------------------------------------------------------------------------- */

static uint8_t *reader_slot(uint32_t at)
{
    ck_assert_msg(at < 1u << reader.log_size, "the driver takes slot %u of a ring of %u", at,
                  1u << reader.log_size);
    return reader.ring + (size_t)at * 64;
}

static bool reader_owns(uint32_t at, uint32_t ci)
{
    const uint8_t *cqe;

    if (at >= 1u << reader.log_size) {
        return false; /* the driver looks there, but takes nothing that is not of this round */
    }
    cqe = reader_slot(at);
    if (cqe[0x3f] >> 4 == 0xf) {
        return false;
    }
    return reader.enhanced ? cqe[0x3e] == (uint8_t)(ci >> reader.log_size)
                           : (cqe[0x3f] & 1) == (ci >> reader.log_size & 1);
}

static bool reader_is_compressed(uint32_t at)
{
    return (reader_slot(at)[0x3f] >> 2 & 3) == 3;
}

static void reader_fill(uint32_t elt, const uint8_t *len)
{
    ck_assert_uint_lt(elt, (1u << reader.log_size) + PER_LOOP);
    reader.lens[elt] = (uint16_t)(len[0] << 8 | len[1]);
}

/* Reads the mini CQEs of a session, four at a time, as far as its arrays go. */
static unsigned reader_unzip_one(uint32_t at, uint32_t elt)
{
    const uint8_t *title = reader_slot(at), *array = title;
    unsigned n = reader.enhanced ? (title[0x3f] >> 4) + 1u : title[0x2f];

    if (!reader.enhanced) {
        array = reader_slot(at + 1);
    }
    for (unsigned pos = 0; pos < n; pos += PER_LOOP) {
        if (!reader.enhanced && pos && pos % 8 == 0) {
            array = reader_slot(at + pos);
        }
        for (unsigned i = pos; i < pos + PER_LOOP; i++) {
            reader_fill(elt + i, array + i % 8 * 8 + 6);
        }
    }
    for (unsigned i = 0; !reader.enhanced && i < n; i++) {
        reader_slot(at + i)[0x3f] = 0xf0;
    }
    minis += n;
    return n;
}

/* Reads a session, and in the enhanced layout those that follow it. */
static unsigned reader_unzip(uint32_t at, uint32_t elt)
{
    unsigned n = reader_unzip_one(at, elt);

    while (reader.enhanced && reader_owns(at + n, reader.cq_ci + n) &&
           reader_is_compressed(at + n)) {
        n += reader_unzip_one(at + n, elt + n);
    }
    return n;
}

/* Takes n buffers from rq_pi: the lengths of the next frames. */
static void reader_take(unsigned n)
{
    uint32_t elt = reader.rq_pi & ((1u << reader.log_size) - 1);

    for (unsigned i = 0; i < n; i++) {
        ck_assert_msg(elt + i < 1u << reader.log_size, "the driver takes a buffer that is none");
        ck_assert_msg(reader.lens[elt + i] == 60 + received * 37 % 1400,
                      "frame %u has %u bytes, the driver sees %u", received,
                      60 + received * 37 % 1400, reader.lens[elt + i]);
        received++;
    }
    reader.rq_pi += n;
}

/* Receives at most n frames. Returns whether there was anything. */
static bool reader_burst(unsigned n)
{
    uint32_t size = 1u << reader.log_size, at = reader.cq_ci & (size - 1), elt;
    unsigned old = MIN(reader.decompressed, n), plain = 0;
    bool compressed;

    reader_take(old);
    reader.decompressed -= old;
    elt = reader.rq_pi & (size - 1);
    n = (n - old) / PER_LOOP * PER_LOOP;
    n = MIN(n, MIN(size - elt, size - at));
    if (!n) {
        return old;
    }
    while (plain < n && reader_owns(at + plain, reader.cq_ci + plain) &&
           !reader_is_compressed(at + plain)) {
        reader_fill(elt + plain, reader_slot(at + plain) + 0x2e);
        plain++;
    }
    compressed = plain < n && reader_owns(at + plain, reader.cq_ci + plain);
    reader_take(plain);
    reader.cq_ci += plain;
    if (compressed) {
        reader.decompressed = reader_unzip(at + plain, elt + plain);
        reader.cq_ci += reader.decompressed;
        old = MIN(reader.decompressed, n - plain);
        reader_take(old);
        reader.decompressed -= old;
    }
    return plain || compressed;
}

/* -- the device ------------------------------------------------------------------------------- */

static void create(unsigned log_size, unsigned format, bool enhanced)
{
    struct prm_cqc cqc[1] = {0};
    struct mem_buf buf;
    uint32_t cqn;

    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, uar_page, rig.uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, comp_eq.eqn);
    PRM_SET(cqc, cqc, cqe_comp_en, 1);
    PRM_SET(cqc, cqc, mini_cqe_res_format, format & 3);
    PRM_SET(cqc, cqc, mini_cqe_res_format_ext, format >> 2);
    PRM_SET(cqc, cqc, cqe_compression_layout, enhanced);
    memset(&reader, 0, sizeof(reader));
    reader.ring = rig_ring(&rig, 64ull << log_size, &buf);
    reader.log_size = log_size;
    reader.enhanced = enhanced;
    for (unsigned i = 0; i < 1u << log_size; i++) {
        reader_slot(i)[0x3f] = 0xf1;
        reader_slot(i)[0x3e] = 0xff;
    }
    posted = received = minis = 0;
    dbr = fake_host_alloc(&rig.host, 8, 8);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, dbr, &cqn), SYN_OK);
    vec_cq = cq_find(&rig.hca, cqn);
}

static void post_frames(struct hca *hca, struct work *work)
{
    (void)work;
    for (unsigned i = 0; i < burst_length; i++, posted++) {
        struct prm_cqe64 cqe[1] = {0};

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESP_SEND);
        PRM_SET(cqe64, cqe, qpn, 0x55);
        PRM_SET(cqe64, cqe, wqe_counter, posted & 0xffff);
        PRM_SET(cqe64, cqe, byte_cnt, 60 + posted * 37 % 1400);
        PRM_SET(cqe64, cqe, vlan_info, rand() % 8 == 0); /* sometimes no session holds it */
        ck_assert(cq_post(hca, vec_cq, cqe, false));
    }
}

START_TEST(vector_functions_find_each_length)
{
    static const uint8_t formats[FORMATS] = {
        PRM_MINI_CQE_FORMAT_HASH, PRM_MINI_CQE_FORMAT_CSUM, PRM_MINI_CQE_FORMAT_FTAG_STRIDX,
        PRM_MINI_CQE_FORMAT_CSUM_STRIDX, PRM_MINI_CQE_FORMAT_L34H_STRIDX};

    srand(1 + (unsigned)_i);
    for (unsigned log_size = 2; log_size <= LOG_MOST; log_size++) {
        create(log_size, formats[_i / LAYOUTS], _i % LAYOUTS);
        while (posted < 40u << log_size) {
            struct work work = {.run = post_frames};
            unsigned room = (1u << log_size) - (posted - received);

            burst_length = (unsigned)rand() % (MIN(room, 40) + 1);
            hca_schedule(&rig.hca, &work);
            rig_run(&rig);
            for (unsigned i = (unsigned)rand() % 4; i && reader_burst(32); i--) {
            }
            prm_store32(fake_host_ptr(&rig.host, dbr, 4), reader.cq_ci & 0xffffff);
        }
        while (reader_burst(BURST_MOST)) {
        }
        ck_assert_uint_eq(received, posted);
        ck_assert_uint_gt(minis, posted / 4);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cqe-vector");
    TCase *tc = tcase_create("cqe-vector");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, vector_functions_find_each_length, 0, FORMATS * LAYOUTS);
    suite_add_tcase(suite, tc);
    return suite;
}
