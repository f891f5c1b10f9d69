/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that a CQ may be resized at any moment: with CQEs of each form in it, while a session of
 * compressed CQEs is open, while an event waits for moderation or for a full EQ. No completion is
 * lost or comes twice, and each arm request gets its event, and gets it once.
 *
 * The consumer reads the old ring up to the entry RESIZE_CQ, and goes on in the new ring. It reads
 * with a decoder that shares no code with the device (tests/programs/cqe_decoder.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/core/real_time.h"
#include "model/queue/cqe.h"
#include "tests/programs/cqe_decoder.h"
#include "tests/unit/rig.h"
#include "tests/unit/suite.h"

#define VECTOR     3
#define MAX_PERIOD 4095 /* microseconds */
#define DEC_RESIZE 5
#define DEC_STAMP  0x30

/* The forms of a CQ: size of CQEs, padding, compression, clock of the time stamps. */
static const struct form {
    uint8_t cqe_sz;
    bool compresses;
    uint8_t format, layout;
    bool real_time;
} forms[] = {
    {PRM_CQE_SZ_64_BYTES, false, 0, 0, false},
    {PRM_CQE_SZ_128_BYTES, false, 0, 0, true},
    {PRM_CQE_SZ_128_BYTES_PAD, false, 0, 0, false},
    {PRM_CQE_SZ_64_BYTES, true, PRM_MINI_CQE_FORMAT_HASH, PRM_CQE_LAYOUT_BASIC, false},
    {PRM_CQE_SZ_64_BYTES, true, PRM_MINI_CQE_FORMAT_CSUM_STRIDX, PRM_CQE_LAYOUT_ENHANCED, false},
    {PRM_CQE_SZ_128_BYTES, true, PRM_MINI_CQE_FORMAT_FTAG_STRIDX, PRM_CQE_LAYOUT_BASIC, false},
    {PRM_CQE_SZ_128_BYTES_PAD, true, PRM_MINI_CQE_FORMAT_CSUM, PRM_CQE_LAYOUT_ENHANCED, true},
};

static struct rig rig;
static struct rig_eq comp_eq, async_eq;

static struct {
    const struct form *form;
    uint32_t cqn;
    struct cq *cq;
    uint64_t dbr;
    struct cqe_decoder d, next; /* next: the ring that a resize has given the CQ */
    bool resized;
    uint32_t posted, read; /* CQEs without those of resizes */
    uint32_t arm_sn;
    uint64_t stamp; /* of the last CQE that was not a mini CQE */
} t;

static void setup(void)
{
    rig_init(&rig);
    rig.host.now = 1000000000;
    real_time_set(rig.hca.real_time, rig.host.now, 1000ull * REAL_TIME_SECOND);
    rig_eq_create(&rig, &comp_eq, 8, VECTOR, 0);
    rig_eq_create(&rig, &async_eq, 6, 0, RIG_ASYNC_MASK);
    rig_eq_doorbell(&rig, &comp_eq, true);
    memset(&t, 0, sizeof(t));
}

static void teardown(void)
{
    rig_clear(&rig);
}

static void new_ring(struct mem_buf *buf, struct cqe_decoder *d, unsigned log_size)
{
    unsigned stride = t.form->cqe_sz == PRM_CQE_SZ_64_BYTES ? 64 : 128;
    uint64_t size = (uint64_t)stride << log_size;

    cqe_decoder_init(d, rig_ring(&rig, size, buf), log_size, stride);
    d->enhanced = t.form->compresses && t.form->layout;
    d->format = (enum dec_format)t.form->format;
}

static void create(const struct form *form, unsigned log_size, uint32_t eqn)
{
    struct prm_cqc cqc[1] = {0};
    struct mem_buf buf;

    t.form = form;
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, cqe_sz, form->cqe_sz);
    PRM_SET(cqc, cqc, uar_page, rig.uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, cqe_comp_en, form->compresses);
    PRM_SET(cqc, cqc, mini_cqe_res_format, form->format);
    PRM_SET(cqc, cqc, cqe_compression_layout, form->layout);
    new_ring(&buf, &t.d, log_size);
    t.dbr = fake_host_alloc(&rig.host, 8, 8);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, t.dbr, &t.cqn), SYN_OK);
    t.cq = cq_find(&rig.hca, t.cqn);
}

/* A receive completion whose byte_cnt is its number. */
static void post(void)
{
    struct prm_cqe64 cqe[1] = {0};

    cqe_received(cqe,
                 (struct cqe_about){
                     .qpn = 0x55, .index = (uint16_t)t.posted, .real_time = t.form->real_time},
                 PRM_CQE_OPCODE_RESP_SEND, t.posted, false);
    t.posted++;
    ck_assert(cq_post(&rig.hca, t.cq, cqe, false));
}

/* Changes the size, and expects that it works. Nothing is resized again before the consumer has
 * reached the new ring (mlx5_ib: the command is under the CQ's resize_mutex). */
static void resize(unsigned log_size)
{
    struct prm_cqc cqc[1] = {0};
    struct mem_buf buf;

    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, cqe_sz, t.form->cqe_sz);
    new_ring(&buf, &t.next, log_size);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, PRM_CQ_RESIZE_LOG_CQ_SIZE, cqc, &buf), SYN_OK);
    t.resized = true;
}

static void check_stamp(const uint8_t *cqe)
{
    uint64_t stamp = prm_load64(cqe + DEC_STAMP);

    ck_assert_uint_ge(stamp, t.stamp);
    if (t.form->real_time) {
        ck_assert_uint_le(stamp, real_time_stamp(rig.hca.real_time, rig.host.now));
        ck_assert_uint_ge(stamp >> 32, 1000);
    } else {
        ck_assert_uint_le(stamp, rig.host.now);
    }
    t.stamp = stamp;
}

static void read_all(void)
{
    const uint8_t *cqe;
    bool mini;

    while ((cqe = cqe_decoder_next(&t.d, &mini))) {
        if (cqe[DEC_OP_OWN] >> 4 == DEC_RESIZE) {
            ck_assert(t.resized);
            t.next.ci = t.d.ci;
            t.d = t.next;
            t.resized = false;
            continue;
        }
        ck_assert_uint_eq(dec_32(cqe + DEC_BYTE_CNT), t.read);
        ck_assert_uint_eq(dec_16(cqe + DEC_COUNTER), (uint16_t)t.read);
        if (!mini) {
            check_stamp(cqe);
        }
        t.read++;
    }
    ck_assert_msg(!t.d.fault, "%s", t.d.fault);
    prm_store32(fake_host_ptr(&rig.host, t.dbr, 4), t.d.ci & 0xffffff);
}

static void arm(void)
{
    uint32_t word = (t.arm_sn++ & 3) << 28 | (t.d.ci & 0xffffff);

    prm_store32(fake_host_ptr(&rig.host, t.dbr + 4, 4), word);
    uar_write(&rig.hca, rig.uarn, 0x20, (uint64_t)word << 32 | t.cqn, 8);
}

static void moderate(unsigned usec, unsigned count, unsigned mode)
{
    struct prm_cqc cqc[1] = {0};

    PRM_SET(cqc, cqc, cq_period, usec);
    PRM_SET(cqc, cqc, cq_max_count, count);
    PRM_SET(cqc, cqc, cq_period_mode, mode);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn,
                               PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT |
                                   PRM_CQ_MODIFY_CQ_PERIOD_MODE,
                               cqc, NULL),
                     SYN_OK);
}

static unsigned take_events(struct rig_eq *eq)
{
    unsigned n = 0;

    while (rig_eq_next(&rig, eq)) {
        n++;
    }
    rig_eq_doorbell(&rig, eq, true);
    return n;
}

/* -- random streams --------------------------------------------------------------------------- */

static void random_turn(struct hca *hca, struct work *work)
{
    unsigned n = (unsigned)rand() % 12;

    (void)hca;
    (void)work;
    for (unsigned i = 0; i < n; i++) {
        post();
        if (rand() % 12 == 0 && !t.resized) {
            resize(5 + (unsigned)rand() % 4); /* at most 24 CQEs are in the ring */
        }
    }
    if (rand() % 8 == 0 && !t.resized) {
        resize(5 + (unsigned)rand() % 4);
    }
    if (rand() % 8 == 0) {
        moderate((unsigned)rand() % MAX_PERIOD, (unsigned)rand() % 20, (unsigned)rand() % 2);
    }
}

START_TEST(no_completion_and_no_event_is_lost)
{
    struct work work = {.run = random_turn};
    bool armed = false;
    uint32_t at_arm = 0;
    unsigned resizes = 0;

    srand(1 + (unsigned)_i);
    create(&forms[(unsigned)_i % G_N_ELEMENTS(forms)], 5, comp_eq.eqn);
    for (unsigned turn = 0; turn < 1500; turn++) {
        unsigned events;

        if (!armed && rand() % 2) {
            read_all();
            at_arm = t.posted;
            arm();
            armed = true;
        }
        hca_schedule(&rig.hca, &work);
        rig_advance(&rig, (uint64_t)rand() % 3 * 500000);
        resizes += t.resized;
        events = take_events(&comp_eq);
        ck_assert_uint_le(events, armed && t.posted != at_arm);
        armed = armed && !events;
        if (rand() % 3 == 0 || t.posted - t.read > 12) {
            read_all();
            ck_assert_uint_eq(t.read, t.posted);
        }
        if (armed && t.posted != at_arm && rand() % 4 == 0) {
            rig_advance(&rig, MAX_PERIOD * 1000ull); /* nothing waits longer */
            ck_assert_uint_eq(take_events(&comp_eq), 1);
            armed = false;
        }
    }
    ck_assert_uint_gt(resizes, 100);
    ck_assert_ptr_null(rig_eq_peek(&rig, &async_eq));
}
END_TEST

/* -- events that wait ------------------------------------------------------------------------- */

/* An event that moderation delays comes when its time is over, whatever ring the CQ has then. */
START_TEST(a_moderated_event_outlives_a_resize)
{
    create(&forms[_i], 5, comp_eq.eqn);
    moderate(100, 50, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm();
    post();
    rig_advance(&rig, 60000);
    resize(6);
    ck_assert_uint_eq(take_events(&comp_eq), 0);
    rig_advance(&rig, 39999);
    ck_assert_uint_eq(take_events(&comp_eq), 0);
    rig_advance(&rig, 1);
    ck_assert_uint_eq(take_events(&comp_eq), 1);
    read_all();
    ck_assert_uint_eq(t.read, 1);
    ck_assert_uint_eq(rig.host.deadline, UINT64_MAX);
}
END_TEST

/* The entry that ends the old ring is no completion: it satisfies no request, and does not count
 * for moderation. */
START_TEST(a_resize_alone_makes_no_event)
{
    create(&forms[_i], 5, comp_eq.eqn);
    moderate(1000, 3, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm();
    resize(6);
    moderate(0, 0, PRM_CQ_PERIOD_MODE_START_FROM_CQE); /* looks whether an event is due */
    ck_assert_uint_eq(take_events(&comp_eq), 0);
    moderate(1000, 3, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    read_all();
    post();
    post();
    resize(7);
    ck_assert_uint_eq(take_events(&comp_eq), 0);
    post();
    ck_assert_uint_eq(take_events(&comp_eq), 1);
    read_all();
    ck_assert_uint_eq(t.read, 3);
}
END_TEST

/* An event that waits for a full EQ comes when there is room. */
START_TEST(an_event_that_waits_for_its_eq_outlives_a_resize)
{
    struct rig_eq small;
    unsigned seen = 0;

    rig_eq_create(&rig, &small, 2, 1, 0);
    for (unsigned i = 0; i < 5; i++) { /* each is a CQ with an event; the last one waits */
        create(&forms[_i], 5, small.eqn);
        t.posted = t.read = t.arm_sn = 0;
        t.stamp = 0;
        arm();
        post();
    }
    resize(4);
    post();
    while (rig_eq_next(&rig, &small)) {
        rig_eq_doorbell(&rig, &small, true);
        rig_run(&rig);
        seen++;
    }
    ck_assert_uint_eq(seen, 5);
    read_all();
    ck_assert_uint_eq(t.read, 2);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cq-resize");
    TCase *tc = tcase_create("cq-resize");
    const int n = G_N_ELEMENTS(forms);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, no_completion_and_no_event_is_lost, 0, 2 * n);
    tcase_add_loop_test(tc, a_moderated_event_outlives_a_resize, 0, n);
    tcase_add_loop_test(tc, a_resize_alone_makes_no_event, 0, n);
    tcase_add_loop_test(tc, an_event_that_waits_for_its_eq_outlives_a_resize, 0, n);
    suite_add_tcase(suite, tc);
    return suite;
}
