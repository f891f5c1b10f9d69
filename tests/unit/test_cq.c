/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests completion queues: ownership, arming, moderation, overrun, resize, and refused requests.
 *
 * The consumer here reads the ring as the driver does (mlx5_ib: get_sw_cqe()), and rings the
 * doorbell as mlx5_cq_arm() does.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/rig.h"
#include "tests/unit/suite.h"

#define VECTOR 3
#define NEXT   0u
#define SOLIC  1u

static struct rig rig;
static struct rig_eq comp_eq, async_eq;

struct test_cq {
    uint32_t cqn;
    struct cq *cq;
    uint64_t ring, dbr;
    unsigned log_size, stride;
    uint32_t ci, arm_sn;
};

static void setup(void)
{
    rig_init(&rig);
    rig.host.now = 1000000000;
    rig_eq_create(&rig, &comp_eq, 6, VECTOR, 0);
    rig_eq_create(&rig, &async_eq, 6, 0, RIG_ASYNC_MASK);
    rig_eq_doorbell(&rig, &comp_eq, true);
}

static void teardown(void)
{
    rig_clear(&rig);
}

static void fill_cqc(struct prm_cqc *cqc, unsigned log_size, unsigned cqe_sz)
{
    memset(cqc, 0, PRM_SIZE(cqc));
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, cqe_sz, cqe_sz);
    PRM_SET(cqc, cqc, uar_page, rig.uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, comp_eq.eqn);
}

/* A ring in host memory; CQEs start as the driver initializes them. */
static uint64_t new_ring(struct mem_buf *buf, unsigned log_size, unsigned stride)
{
    uint64_t size = (uint64_t)stride << log_size;
    uint64_t addr = fake_host_alloc(&rig.host, MAX(size, 4096), 4096);
    uint32_t npages = (uint32_t)((size + 4095) / 4096);
    g_autofree uint8_t *pas = g_malloc(npages * 8);
    struct mtt *mtt;

    for (uint32_t i = 0; i < npages; i++) {
        prm_store64(pas + 8 * i, addr + 4096ull * i);
    }
    for (uint64_t at = stride - 64; at < size; at += stride) {
        *(uint8_t *)fake_host_ptr(&rig.host, addr + at + 63, 1) = PRM_CQE_OPCODE_INVALID << 4 | 1;
    }
    mtt = mtt_new(pas, npages, 12);
    ck_assert(mem_buf_init(buf, mtt, 0, size));
    mtt_unref(mtt);
    return addr;
}

static void create_cq(struct test_cq *t, unsigned log_size, const struct prm_cqc *cqc)
{
    struct mem_buf buf;

    memset(t, 0, sizeof(*t));
    t->log_size = log_size;
    t->stride = PRM_GET(cqc, cqc, cqe_sz) ? 128 : 64;
    t->ring = new_ring(&buf, log_size, t->stride);
    t->dbr = fake_host_alloc(&rig.host, 8, 8);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, t->dbr, &t->cqn), SYN_OK);
    t->cq = cq_find(&rig.hca, t->cqn);
}

static void create_plain_cq(struct test_cq *t, unsigned log_size)
{
    struct prm_cqc cqc[1];

    fill_cqc(cqc, log_size, PRM_CQE_SZ_64_BYTES);
    create_cq(t, log_size, cqc);
}

static void post(struct test_cq *t, unsigned opcode, uint16_t wqe_counter, bool solicited)
{
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, opcode, opcode);
    PRM_SET(cqe64, cqe, wqe_counter, wqe_counter);
    cq_post(&rig.hca, t->cq, cqe, solicited);
}

static void *cqe_at(struct test_cq *t, uint32_t index)
{
    uint32_t slot = index & ((1u << t->log_size) - 1);

    return fake_host_ptr(&rig.host, t->ring + slot * t->stride + t->stride - 64, 64);
}

/* Returns the CQE at ci if software owns it, else NULL. */
static void *poll(struct test_cq *t)
{
    struct prm_cqe64 *cqe = cqe_at(t, t->ci);

    if (PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, cqe, owner) != (t->ci >> t->log_size & 1)) {
        return NULL;
    }
    t->ci++;
    prm_store32(fake_host_ptr(&rig.host, t->dbr, 4), t->ci & 0xffffff);
    return cqe;
}

static void arm(struct test_cq *t, uint32_t cmd)
{
    uint32_t word = (t->arm_sn & 3) << 28 | cmd << 24 | (t->ci & 0xffffff);

    prm_store32(fake_host_ptr(&rig.host, t->dbr + 4, 4), word);
    uar_write(&rig.hca, rig.uarn, 0x20, (uint64_t)word << 32 | t->cqn, 8);
}

/* Takes a completion event off the EQ as the driver's interrupt handler does. */
static bool take_event(struct test_cq *t)
{
    const struct prm_eqe *eqe = rig_eq_next(&rig, &comp_eq);

    if (!eqe) {
        return false;
    }
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_COMP);
    ck_assert_uint_eq(PRM_GET(comp_event, PRM_PTR(eqe, eqe, event_data), cq_number), t->cqn);
    t->arm_sn++;
    rig_eq_doorbell(&rig, &comp_eq, true);
    return true;
}

static const struct prm_cq_error *take_cq_error(struct test_cq *t)
{
    const struct prm_eqe *eqe = rig_eq_next(&rig, &async_eq);

    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PRM_EVENT_TYPE_CQ_ERROR);
    ck_assert_uint_eq(PRM_GET(cq_error, PRM_PTR(eqe, eqe, event_data), cqn), t->cqn);
    return PRM_PTR(eqe, eqe, event_data);
}

static uint32_t status(struct test_cq *t)
{
    struct prm_cqc cqc[1];

    ck_assert_int_eq(cq_query(&rig.hca, t->cqn, cqc), SYN_OK);
    return PRM_GET(cqc, cqc, status);
}

/* -- CQEs ------------------------------------------------------------------------------------- */

/* A CQE is software's when its owner bit equals bit log_cq_size of the consumer index. */
START_TEST(owner_bit_changes_with_each_round)
{
    struct test_cq t;

    create_plain_cq(&t, 2);
    for (unsigned i = 0; i < 4 * 5; i++) {
        struct prm_cqe64 *cqe;

        ck_assert_ptr_null(poll(&t));
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
        cqe = poll(&t);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), i);
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
}
END_TEST

START_TEST(cqe_carries_the_device_time_but_error_cqes_do_not)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    rig.host.now = 0x123456789abcull;
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 0, false);
    ck_assert_uint_eq(PRM_GET(cqe64, poll(&t), timestamp), 0x123456789abcull);
    post(&t, PRM_CQE_OPCODE_RESP_ERR, 0, false);
    ck_assert_uint_eq(PRM_GET(err_cqe, poll(&t), syndrome), 0);
}
END_TEST

/* With 128-byte CQEs the cqe64 is the second half. */
START_TEST(large_cqe_has_the_completion_in_its_second_half)
{
    struct prm_cqc cqc[1];
    struct test_cq t;

    fill_cqc(cqc, 3, PRM_CQE_SZ_128_BYTES);
    create_cq(&t, 3, cqc);
    for (unsigned i = 0; i < 20; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
        ck_assert_uint_eq(PRM_GET(cqe64, poll(&t), wqe_counter), i);
    }
}
END_TEST

/* cqc.cc: all CQEs are written to the first entry. */
START_TEST(collapsed_cq_has_one_slot)
{
    struct prm_cqc cqc[1];
    struct test_cq t;

    fill_cqc(cqc, 3, PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, cc, 1);
    create_cq(&t, 3, cqc);
    for (unsigned i = 0; i < 20; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 0), wqe_counter), i);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 0), owner), i >> 3 & 1);
    }
    ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 1), opcode), PRM_CQE_OPCODE_INVALID);
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
}
END_TEST

/* -- events ----------------------------------------------------------------------------------- */

START_TEST(armed_cq_raises_one_event)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    poll(&t);
    ck_assert(!take_event(&t));
    arm(&t, NEXT);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert_uint_eq(rig.host.irqs[VECTOR], 1);
    ck_assert(take_event(&t));
    post(&t, PRM_CQE_OPCODE_REQ, 2, false);
    ck_assert(!take_event(&t));
}
END_TEST

/* An existing CQE of index >= ci counts at once: software polls, arms, and sleeps. */
START_TEST(arming_with_cqes_pending_raises_the_event_at_once)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    arm(&t, NEXT);
    ck_assert(take_event(&t));
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    arm(&t, NEXT);
    ck_assert(take_event(&t));
    poll(&t);
    poll(&t);
    arm(&t, NEXT);
    ck_assert(!take_event(&t));
}
END_TEST

/* -- AS notify: "when AS_notify interrupt cannot be triggered, firmware will fall back into the
 * traditional MSI interrupt" ------------------------------------------------------------------- */

static struct hca_host_ops power9_ops;
static struct host_thread woken;
static unsigned wakes;
static bool thread_sleeps;

static bool power9_as_notify(void *host, const struct host_thread *thread)
{
    (void)host;
    woken = *thread;
    wakes += thread_sleeps;
    return thread_sleeps;
}

/* A CQ whose events wake thread 0x3333 of process 0x22222 in partition 0x111. */
static void create_waited_cq(struct test_cq *t)
{
    struct prm_cqc cqc[1];

    power9_ops = fake_host_ops;
    power9_ops.as_notify = power9_as_notify;
    rig.hca.ops = &power9_ops;
    rig.hca.tunnels = true;
    wakes = 0;
    thread_sleeps = true;
    fill_cqc(cqc, 4, PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, as_notify, 1);
    PRM_SET(cqc, cqc, local_partition_id, 0x111);
    PRM_SET(cqc, cqc, process_id, 0x22222);
    PRM_SET(cqc, cqc, thread_id, 0x3333);
    create_cq(t, 4, cqc);
}

START_TEST(as_notify_wakes_the_thread_instead_of_an_interrupt)
{
    struct test_cq t;

    create_waited_cq(&t);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert_uint_eq(wakes, 0); /* not armed */
    poll(&t);
    arm(&t, NEXT);
    ck_assert_uint_eq(wakes, 0);
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert_uint_eq(wakes, 1);
    ck_assert_uint_eq(woken.partition, 0x111);
    ck_assert_uint_eq(woken.process, 0x22222);
    ck_assert_uint_eq(woken.thread, 0x3333);
    ck_assert_uint_eq(rig.host.irqs[VECTOR], 0);
    ck_assert_ptr_null(rig_eq_peek(&rig, &comp_eq));
    post(&t, PRM_CQE_OPCODE_REQ, 2, false);
    ck_assert_uint_eq(wakes, 1); /* one arm request, one event */
}
END_TEST

START_TEST(as_notify_falls_back_to_the_interrupt)
{
    struct test_cq t;

    create_waited_cq(&t);
    thread_sleeps = false; /* the thread runs on no processor */
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert_uint_eq(rig.host.irqs[VECTOR], 1);
    ck_assert(take_event(&t));

    thread_sleeps = true;
    rig.hca.tunnels = false; /* the driver has not enabled tunneled operations */
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert(take_event(&t));

    rig.hca.tunnels = true;
    rig.hca.ops = &fake_host_ops; /* a host without such a message */
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 2, false);
    ck_assert(take_event(&t));
    ck_assert_uint_eq(wakes, 0);
}
END_TEST

/* Software that arms before it polls gets one event for each CQE (ib_send_lat -e depends on it: it
 * takes a repeated event for the send's event). */
START_TEST(arming_again_raises_no_event_for_the_same_cqes)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 0, true);
    ck_assert(take_event(&t));
    arm(&t, NEXT);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 1, true);
    ck_assert(take_event(&t));
    arm(&t, SOLIC);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 2, false);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 3, true);
    ck_assert(take_event(&t));
}
END_TEST

START_TEST(solicited_arming_waits_for_a_solicited_cqe)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    arm(&t, SOLIC);
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 0, false);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 1, true);
    ck_assert(take_event(&t));
    poll(&t);
    poll(&t);
    arm(&t, SOLIC);
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 2, false);
    ck_assert(!take_event(&t));
    arm(&t, NEXT); /* a stronger request: same sequence number, no event yet */
    ck_assert(take_event(&t));
}
END_TEST

/* IBTA 11.4.2.2: a request for solicited completions does not cancel a request for any completion
 * that has had no event. */
START_TEST(a_request_for_any_cqe_is_not_narrowed)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    arm(&t, NEXT);
    arm(&t, SOLIC);
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 0, false);
    ck_assert(take_event(&t));
    poll(&t);
    arm(&t, SOLIC); /* that request was answered: this is a new one */
    post(&t, PRM_CQE_OPCODE_RESP_SEND, 1, false);
    ck_assert(!take_event(&t));
}
END_TEST

/* The event of sequence number n answers every request that carries n. */
START_TEST(request_that_was_answered_is_ignored)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert_ptr_nonnull(rig_eq_peek(&rig, &comp_eq));
    arm(&t, NEXT); /* software has not seen the event yet */
    ck_assert(take_event(&t));
    ck_assert(!take_event(&t));
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert(take_event(&t));
}
END_TEST

START_TEST(doorbell_may_come_in_two_halves)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    uar_write(&rig.hca, rig.uarn, 0x24, t.cqn, 4); /* second half alone: nothing */
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert(!take_event(&t));
    uar_write(&rig.hca, rig.uarn, 0x20, 0, 4);
    ck_assert(!take_event(&t));
    uar_write(&rig.hca, rig.uarn, 0x24, t.cqn, 4);
    ck_assert(take_event(&t));
}
END_TEST

START_TEST(doorbells_that_fit_nothing_are_ignored)
{
    struct test_cq t;

    create_plain_cq(&t, 4);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    uar_write(&rig.hca, rig.user_uarn, 0x20, t.cqn, 8);
    uar_write(&rig.hca, rig.uarn, 0x20, 0xffffff, 8);
    ck_assert(!take_event(&t));
    ck_assert_uint_eq(rig.host.guest_errors, 2);
    /* a consumer index ahead of the producer means: from the next CQE on */
    uar_write(&rig.hca, rig.uarn, 0x20, 100ull << 32 | t.cqn, 8);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert(take_event(&t));
}
END_TEST

/* If its EQ is full, a completion event comes when there is room. */
START_TEST(event_waits_for_a_full_eq)
{
    struct rig_eq small;
    struct test_cq t[6];
    struct prm_cqc cqc[1];
    unsigned seen = 0;

    rig_eq_create(&rig, &small, 2, 1, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(t); i++) {
        fill_cqc(cqc, 2, PRM_CQE_SZ_64_BYTES);
        PRM_SET(cqc, cqc, c_eqn_or_apu_element, small.eqn);
        create_cq(&t[i], 2, cqc);
        arm(&t[i], NEXT);
        post(&t[i], PRM_CQE_OPCODE_REQ, 0, false);
    }
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, t[5].cqn), SYN_OK); /* while waiting */
    while (rig_eq_next(&rig, &small)) {
        rig_eq_doorbell(&rig, &small, true);
        rig_run(&rig);
        seen++;
    }
    ck_assert_uint_eq(seen, 5);
}
END_TEST

/* -- moderation ------------------------------------------------------------------------------- */

static void create_moderated(struct test_cq *t, unsigned usec, unsigned count, unsigned mode)
{
    struct prm_cqc cqc[1];

    fill_cqc(cqc, 6, PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, cq_period, usec);
    PRM_SET(cqc, cqc, cq_max_count, count);
    PRM_SET(cqc, cqc, cq_period_mode, mode);
    create_cq(t, 6, cqc);
}

START_TEST(event_comes_after_max_count_cqes)
{
    struct test_cq t;

    create_moderated(&t, 100, 3, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert(!take_event(&t));
    post(&t, PRM_CQE_OPCODE_REQ, 2, false);
    ck_assert(take_event(&t));
}
END_TEST

START_TEST(period_from_cqe_starts_again_with_each_cqe)
{
    struct test_cq t;

    create_moderated(&t, 10, 100, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm(&t, NEXT);
    for (unsigned i = 0; i < 5; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
        rig_advance(&rig, 9000);
        ck_assert(!take_event(&t));
    }
    rig_advance(&rig, 1000);
    ck_assert(take_event(&t));
    ck_assert_uint_eq(rig.host.deadline, UINT64_MAX);
}
END_TEST

START_TEST(period_from_eqe_counts_from_the_last_event)
{
    struct test_cq t;

    create_moderated(&t, 10, 100, PRM_CQ_PERIOD_MODE_START_FROM_EQE);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false); /* no event for long: at once */
    ck_assert(take_event(&t));
    poll(&t);
    arm(&t, NEXT);
    rig_advance(&rig, 4000);
    post(&t, PRM_CQE_OPCODE_REQ, 1, false);
    ck_assert(!take_event(&t));
    rig_advance(&rig, 5999);
    ck_assert(!take_event(&t));
    rig_advance(&rig, 1);
    ck_assert(take_event(&t));
}
END_TEST

START_TEST(moderation_can_be_modified)
{
    struct prm_cqc cqc[1] = {0};
    struct test_cq t;

    create_moderated(&t, 100, 50, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert(!take_event(&t));
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn,
                               PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT, cqc, NULL),
                     SYN_OK);
    ck_assert(take_event(&t)); /* the delayed event is not lost */
    ck_assert_int_eq(cq_query(&rig.hca, t.cqn, cqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, cq_period), 0);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, cq_period_mode), PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, 1u << 9, cqc, NULL), SYN_CQ_FIELDS);
    ck_assert_int_eq(cq_modify(&rig.hca, RIG_USER, t.cqn, 0, cqc, NULL), SYN_BAD_UID);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn + 9, 0, cqc, NULL), SYN_NO_CQ);
}
END_TEST

/* The start of the period can be modified, too. */
START_TEST(the_period_s_mode_can_be_modified)
{
    struct prm_cqc cqc[1] = {0};
    struct test_cq t;

    create_moderated(&t, 10, 100, PRM_CQ_PERIOD_MODE_START_FROM_EQE);
    PRM_SET(cqc, cqc, cq_period_mode, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, PRM_CQ_MODIFY_CQ_PERIOD_MODE, cqc, NULL),
                     SYN_OK);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert(!take_event(&t));
    rig_advance(&rig, 10000);
    ck_assert(take_event(&t));
    PRM_SET(cqc, cqc, cq_period_mode, PRM_CQ_PERIOD_MODE_START_FROM_CQE + 1);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, PRM_CQ_MODIFY_CQ_PERIOD_MODE, cqc, NULL),
                     SYN_CQ_FIELDS);
    ck_assert_int_eq(cq_query(&rig.hca, t.cqn, cqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, cq_period_mode), PRM_CQ_PERIOD_MODE_START_FROM_CQE);
}
END_TEST

/* cq_max_count and cq_period: the event comes when the first of them is reached. */
START_TEST(count_and_period_end_the_wait_whichever_is_first)
{
    struct test_cq t;

    create_moderated(&t, 10, 3, _i);
    arm(&t, NEXT);
    if (_i == PRM_CQ_PERIOD_MODE_START_FROM_EQE) { /* an event from which the period counts */
        post(&t, PRM_CQE_OPCODE_REQ, 0, false);
        ck_assert(take_event(&t));
        poll(&t);
        arm(&t, NEXT);
    }
    for (unsigned round = 0; round < 4; round++) {
        post(&t, PRM_CQE_OPCODE_REQ, 1, false);
        ck_assert(!take_event(&t));
        if (round % 2) { /* two more CQEs, after 3 of 10 microseconds */
            rig_advance(&rig, 3000);
            post(&t, PRM_CQE_OPCODE_REQ, 2, false);
            ck_assert(!take_event(&t));
            post(&t, PRM_CQE_OPCODE_REQ, 3, false);
        } else { /* two CQEs, and then the time */
            post(&t, PRM_CQE_OPCODE_REQ, 2, false);
            rig_advance(&rig, 9999);
            ck_assert(!take_event(&t));
            rig_advance(&rig, 1);
        }
        ck_assert(take_event(&t));
        ck_assert_uint_eq(rig.host.deadline, UINT64_MAX); /* no timer is left */
        while (poll(&t)) {
        }
        arm(&t, NEXT);
    }
}
END_TEST

/* A program that arms again while its event waits gets the event once, at the old time. */
START_TEST(arming_again_does_not_move_a_moderated_event)
{
    struct test_cq t;

    create_moderated(&t, 10, 100, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    rig_advance(&rig, 6000);
    arm(&t, NEXT);
    arm(&t, SOLIC); /* a request for any CQE is not narrowed */
    rig_advance(&rig, 3999);
    ck_assert(!take_event(&t));
    rig_advance(&rig, 1);
    ck_assert(take_event(&t));
    rig_advance(&rig, 100000);
    ck_assert(!take_event(&t));
}
END_TEST

/* The new moderation holds for the event that waits. */
START_TEST(a_change_holds_for_the_event_that_waits)
{
    static const struct {
        unsigned usec, count, after; /* the event comes after so many microseconds */
    } cases[] = {{4, 100, 4}, {10, 100, 10}, {50, 100, 50}, {50, 2, 3}, {2, 100, 3}, {50, 0, 3}};
    const unsigned changed = 3; /* microseconds after the CQEs */

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct prm_cqc cqc[1] = {0};
        struct test_cq t;

        create_moderated(&t, 10, 100, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
        arm(&t, NEXT);
        post(&t, PRM_CQE_OPCODE_REQ, 0, false);
        post(&t, PRM_CQE_OPCODE_REQ, 1, false);
        rig_advance(&rig, changed * 1000);
        PRM_SET(cqc, cqc, cq_period, cases[i].usec);
        PRM_SET(cqc, cqc, cq_max_count, cases[i].count);
        ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn,
                                   PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT, cqc, NULL),
                         SYN_OK);
        if (cases[i].after > changed) {
            ck_assert(!take_event(&t));
            rig_advance(&rig, (cases[i].after - changed) * 1000 - 1);
            ck_assert(!take_event(&t));
            rig_advance(&rig, 1);
        }
        ck_assert(take_event(&t));
        ck_assert_int_eq(cq_destroy(&rig.hca, 0, t.cqn), SYN_OK);
    }
}
END_TEST

START_TEST(cq_may_go_away_while_its_timer_runs)
{
    struct test_cq t;

    create_moderated(&t, 100, 50, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    arm(&t, NEXT);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert_uint_ne(rig.host.deadline, UINT64_MAX);
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, t.cqn), SYN_OK);
    rig_advance(&rig, 1000000);
    ck_assert_ptr_null(rig_eq_peek(&rig, &comp_eq));
}
END_TEST

/* -- errors ----------------------------------------------------------------------------------- */

START_TEST(overrun_is_an_event_and_ends_the_cq)
{
    struct test_cq t;

    create_plain_cq(&t, 2);
    for (unsigned i = 0; i < 4; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
    post(&t, PRM_CQE_OPCODE_REQ, 4, false);
    post(&t, PRM_CQE_OPCODE_REQ, 5, false);
    ck_assert_uint_eq(PRM_GET(cq_error, take_cq_error(&t), syndrome),
                      PRM_CQ_ERROR_SYNDROME_CQ_OVERRUN);
    ck_assert_ptr_null(rig_eq_peek(&rig, &async_eq));
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_CQ_OVERFLOW);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(PRM_GET(cqe64, poll(&t), wqe_counter), i);
    }
    post(&t, PRM_CQE_OPCODE_REQ, 6, false);
    ck_assert_ptr_null(poll(&t));
    rig_run(&rig);
}
END_TEST

/* cqc.oi: overruns are software's problem. */
START_TEST(overrun_can_be_ignored)
{
    struct prm_cqc cqc[1];
    struct test_cq t;

    fill_cqc(cqc, 2, PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, oi, 1);
    create_cq(&t, 2, cqc);
    for (unsigned i = 0; i < 9; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 0), wqe_counter), 8);
    memset(cqc, 0, sizeof(cqc));
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, PRM_CQ_MODIFY_OI, cqc, NULL), SYN_OK);
    for (unsigned i = 9; i <= 12; i++) {
        post(&t, PRM_CQE_OPCODE_REQ, i, false);
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_CQ_OVERFLOW);
}
END_TEST

/* A collapsed CQ as a program that polls one slot makes it (NVSHMEM): its record is never written.
 * Events, moderation and the size of CQEs are those of any CQ; its one slot cannot be resized. */
START_TEST(a_collapsed_cq_is_a_cq_otherwise)
{
    struct prm_cqc cqc[1], back[1];
    struct mem_buf buf;
    struct test_cq t;

    fill_cqc(cqc, 2, _i ? PRM_CQE_SZ_128_BYTES : PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, cc, 1);
    PRM_SET(cqc, cqc, oi, _i);
    PRM_SET(cqc, cqc, cq_max_count, 3);
    PRM_SET(cqc, cqc, cq_period, 10);
    PRM_SET(cqc, cqc, cq_period_mode, PRM_CQ_PERIOD_MODE_START_FROM_CQE);
    create_cq(&t, 2, cqc);
    for (unsigned i = 0; i < 100; i++) {
        unsigned event =
            i % 5; /* arms before the first of five, and three of them make the event */

        if (event == 0) {
            t.ci = i;
            arm(&t, NEXT);
        }
        post(&t, PRM_CQE_OPCODE_REQ, (uint16_t)i, false);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 0), wqe_counter), i);
        ck_assert_int_eq(take_event(&t), event == 2 - (i >= 5 ? 2 : 0));
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
    ck_assert_int_eq(cq_query(&rig.hca, t.cqn, back), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqc, back, cc), 1);
    ck_assert_uint_eq(PRM_GET(cqc, back, producer_counter), 100);
    new_ring(&buf, 3, t.stride);
    PRM_SET(cqc, cqc, log_cq_size, 3);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_CQ_SIZE);
    mem_buf_clear(&buf);
}
END_TEST

START_TEST(ring_that_does_not_answer_ends_the_cq)
{
    struct prm_cqc cqc[1];
    uint8_t pas[8];
    struct mem_buf buf;
    struct test_cq t = {0};
    struct mtt *mtt;

    fill_cqc(cqc, 2, PRM_CQE_SZ_64_BYTES);
    prm_store64(pas, 0x1000);
    mtt = mtt_new(pas, 1, 12);
    ck_assert(mem_buf_init(&buf, mtt, 0, 4096));
    mtt_unref(mtt);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, 0x1000, &t.cqn), SYN_OK);
    t.cq = cq_find(&rig.hca, t.cqn);
    post(&t, PRM_CQE_OPCODE_REQ, 0, false);
    ck_assert_uint_eq(PRM_GET(cq_error, take_cq_error(&t), syndrome),
                      PRM_CQ_ERROR_SYNDROME_CQ_ACCESS_VIOLATION_ERROR);
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_CQ_WRITE_FAIL);
}
END_TEST

START_TEST(bad_contexts_are_refused)
{
    const struct {
        unsigned log_size, cqe_sz, eqn, uar, comp, layout, mode;
        enum syn want;
    } cases[] = {
        {.log_size = 13, .want = SYN_LIMIT},
        {.log_size = 31, .want = SYN_CQ_SIZE},
        {.log_size = 7, .want = SYN_BAD_PAS},
        {.log_size = 6, .cqe_sz = 1, .want = SYN_BAD_PAS},
        {.log_size = 2, .cqe_sz = 7, .want = SYN_CQ_SIZE},
        {.log_size = 2, .eqn = 60, .want = SYN_NO_EQ},
        {.log_size = 2, .eqn = 0xffffffff, .want = SYN_NO_EQ},
        {.log_size = 2, .uar = 0xffffff, .want = SYN_NO_UAR},
        {.log_size = 2, .comp = 1, .layout = 2, .want = SYN_CQ_COMPRESSION},
        {.log_size = 2, .mode = 3, .want = SYN_CQ_FEATURE},
    };
    struct prm_cqc cqc[1];
    struct mem_buf buf;
    uint64_t ring = new_ring(&buf, 6, 64);
    uint32_t cqn;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fill_cqc(cqc, cases[i].log_size, cases[i].cqe_sz);
        PRM_SET(cqc, cqc, cqe_comp_en, cases[i].comp);
        PRM_SET(cqc, cqc, cqe_compression_layout, cases[i].layout);
        PRM_SET(cqc, cqc, cq_period_mode, cases[i].mode);
        if (cases[i].eqn) {
            PRM_SET(cqc, cqc, c_eqn_or_apu_element, cases[i].eqn);
        }
        if (cases[i].uar) {
            PRM_SET(cqc, cqc, uar_page, cases[i].uar);
        }
        ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, ring, &cqn), cases[i].want);
    }
    fill_cqc(cqc, 2, 0);
    ck_assert_int_eq(cq_create(&rig.hca, 0, cqc, &buf, ring + 4, &cqn), SYN_CQ_DBR);
    /* a user context may use neither the kernel's UAR nor the kernel's EQ */
    ck_assert_int_eq(cq_create(&rig.hca, RIG_USER, cqc, &buf, ring, &cqn), SYN_BAD_UID);
    PRM_SET(cqc, cqc, uar_page, rig.user_uarn);
    ck_assert_int_eq(cq_create(&rig.hca, RIG_USER, cqc, &buf, ring, &cqn), SYN_BAD_UID);
    mem_buf_clear(&buf);
}
END_TEST

START_TEST(cq_in_use_cannot_be_destroyed)
{
    struct test_cq t;

    create_plain_cq(&t, 2);
    cq_obj(t.cq)->refs++;
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, t.cqn), SYN_IN_USE);
    cq_obj(t.cq)->refs--;
    ck_assert_int_eq(eq_destroy(&rig.hca, 0, comp_eq.eqn), SYN_IN_USE);
    ck_assert_int_eq(cq_destroy(&rig.hca, RIG_USER, t.cqn), SYN_BAD_UID);
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, t.cqn), SYN_OK);
    ck_assert_int_eq(cq_destroy(&rig.hca, 0, t.cqn), SYN_NO_CQ);
    ck_assert_int_eq(eq_destroy(&rig.hca, 0, comp_eq.eqn), SYN_OK);
}
END_TEST

/* -- resize ----------------------------------------------------------------------------------- */

/* The old ring ends with a RESIZE_CQ CQE. Software moves its unpolled CQEs to the new ring one
 * index further, and the device continues there (mlx5_ib: copy_resize_cqes()). */
START_TEST(resize_goes_on_in_the_new_ring)
{
    struct prm_cqc cqc[1];
    struct mem_buf buf;
    struct test_cq t;
    uint64_t ring;
    uint32_t i;

    create_plain_cq(&t, 3);
    for (unsigned n = 0; n < 5; n++) {
        post(&t, PRM_CQE_OPCODE_REQ, n, false);
    }
    poll(&t);
    poll(&t);
    fill_cqc(cqc, 5, PRM_CQE_SZ_64_BYTES);
    ring = new_ring(&buf, 5, 64);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_OK);

    for (i = t.ci; PRM_GET(cqe64, cqe_at(&t, i), opcode) != PRM_CQE_OPCODE_RESIZE_CQ; i++) {
        struct prm_cqe64 *to = fake_host_ptr(&rig.host, ring + ((i + 1) & 31) * 64, 64);

        ck_assert_uint_lt(i, 8);
        memcpy(to, cqe_at(&t, i), 64);
        PRM_SET(cqe64, to, owner, (i + 1) >> 5 & 1);
    }
    ck_assert_uint_eq(i, 5);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe_at(&t, 5), owner), 0);
    t.ci++;
    t.ring = ring;
    t.log_size = 5;

    for (unsigned n = 5; n < 25; n++) {
        post(&t, PRM_CQE_OPCODE_REQ, n, false);
    }
    for (unsigned n = 2; n < 25; n++) {
        ck_assert_uint_eq(PRM_GET(cqe64, poll(&t), wqe_counter), n);
    }
    ck_assert_ptr_null(poll(&t));
    ck_assert_int_eq(cq_query(&rig.hca, t.cqn, cqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, log_cq_size), 5);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, producer_counter), 26);
}
END_TEST

START_TEST(resize_that_cannot_be_is_refused)
{
    struct prm_cqc cqc[1];
    struct mem_buf buf;
    struct test_cq t;

    create_plain_cq(&t, 3);
    for (unsigned n = 0; n < 4; n++) {
        post(&t, PRM_CQE_OPCODE_REQ, n, false);
    }
    new_ring(&buf, 2, 64);
    fill_cqc(cqc, 2, PRM_CQE_SZ_64_BYTES);
    /* four CQEs and the RESIZE_CQ do not fit in four */
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_CQ_OUTSTANDING);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, 2, cqc, &buf), SYN_CQ_FIELDS);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, 0x11, cqc, &buf), SYN_CQ_FIELDS);
    fill_cqc(cqc, 2, PRM_CQE_SZ_128_BYTES);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_CQ_SIZE);
    fill_cqc(cqc, 4, PRM_CQE_SZ_64_BYTES);
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_BAD_PAS);
    mem_buf_clear(&buf);
    new_ring(&buf, 4, 64);
    for (unsigned n = 4; n < 8; n++) {
        post(&t, PRM_CQE_OPCODE_REQ, n, false);
    }
    /* no room for the RESIZE_CQ in the old ring */
    ck_assert_int_eq(cq_modify(&rig.hca, 0, t.cqn, CQ_RESIZE_ALL, cqc, &buf), SYN_CQ_STATE);
    mem_buf_clear(&buf);
    for (unsigned n = 0; n < 8; n++) {
        ck_assert_uint_eq(PRM_GET(cqe64, poll(&t), wqe_counter), n);
    }
    ck_assert_uint_eq(status(&t), PRM_CQC_STATUS_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("cq");
    TCase *tc = tcase_create("cq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, owner_bit_changes_with_each_round);
    tcase_add_test(tc, cqe_carries_the_device_time_but_error_cqes_do_not);
    tcase_add_test(tc, large_cqe_has_the_completion_in_its_second_half);
    tcase_add_test(tc, collapsed_cq_has_one_slot);
    tcase_add_test(tc, armed_cq_raises_one_event);
    tcase_add_test(tc, as_notify_wakes_the_thread_instead_of_an_interrupt);
    tcase_add_test(tc, as_notify_falls_back_to_the_interrupt);
    tcase_add_test(tc, arming_with_cqes_pending_raises_the_event_at_once);
    tcase_add_test(tc, arming_again_raises_no_event_for_the_same_cqes);
    tcase_add_test(tc, solicited_arming_waits_for_a_solicited_cqe);
    tcase_add_test(tc, a_request_for_any_cqe_is_not_narrowed);
    tcase_add_test(tc, request_that_was_answered_is_ignored);
    tcase_add_test(tc, doorbell_may_come_in_two_halves);
    tcase_add_test(tc, doorbells_that_fit_nothing_are_ignored);
    tcase_add_test(tc, event_waits_for_a_full_eq);
    tcase_add_test(tc, event_comes_after_max_count_cqes);
    tcase_add_test(tc, period_from_cqe_starts_again_with_each_cqe);
    tcase_add_test(tc, period_from_eqe_counts_from_the_last_event);
    tcase_add_test(tc, moderation_can_be_modified);
    tcase_add_test(tc, the_period_s_mode_can_be_modified);
    tcase_add_loop_test(tc, count_and_period_end_the_wait_whichever_is_first, 0, 2);
    tcase_add_test(tc, arming_again_does_not_move_a_moderated_event);
    tcase_add_test(tc, a_change_holds_for_the_event_that_waits);
    tcase_add_test(tc, cq_may_go_away_while_its_timer_runs);
    tcase_add_test(tc, overrun_is_an_event_and_ends_the_cq);
    tcase_add_test(tc, overrun_can_be_ignored);
    tcase_add_loop_test(tc, a_collapsed_cq_is_a_cq_otherwise, 0, 2);
    tcase_add_test(tc, ring_that_does_not_answer_ends_the_cq);
    tcase_add_test(tc, bad_contexts_are_refused);
    tcase_add_test(tc, cq_in_use_cannot_be_destroyed);
    tcase_add_test(tc, resize_goes_on_in_the_new_ring);
    tcase_add_test(tc, resize_that_cannot_be_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
