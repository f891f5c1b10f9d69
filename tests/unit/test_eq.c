/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests event queues: ownership, arming, routing, overflow, and requests that must be refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/rig.h"
#include "tests/unit/suite.h"

#define PORT_CHANGE PRM_EVENT_TYPE_PORT_CHANGE
#define CQ_ERROR    PRM_EVENT_TYPE_CQ_ERROR

static struct rig rig;

static void setup(void)
{
    rig_init(&rig);
}

static void teardown(void)
{
    rig_clear(&rig);
}

static void event(uint8_t type, uint8_t first_byte)
{
    uint8_t data[EQE_DATA_LEN] = {first_byte};

    eq_async(&rig.hca, type, 3, data);
}

/* An EQE is software's when its owner bit equals bit log_eq_size of the consumer index. */
START_TEST(owner_bit_changes_with_each_round)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 2, 1, RIG_ASYNC_MASK);
    for (unsigned i = 0; i < 4 * 5; i++) {
        const struct prm_eqe *eqe;

        ck_assert_ptr_null(rig_eq_peek(&rig, &eq));
        event(PORT_CHANGE, i);
        eqe = rig_eq_next(&rig, &eq);
        ck_assert_ptr_nonnull(eqe);
        ck_assert_uint_eq(PRM_GET(eqe, eqe, event_type), PORT_CHANGE);
        ck_assert_uint_eq(PRM_GET(eqe, eqe, event_sub_type), 3);
        ck_assert_uint_eq(*(const uint8_t *)PRM_PTR(eqe, eqe, event_data), i);
        rig_eq_doorbell(&rig, &eq, false);
    }
}
END_TEST

START_TEST(armed_eq_interrupts_once)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 4, 5, RIG_ASYNC_MASK);
    event(PORT_CHANGE, 0);
    ck_assert_uint_eq(rig.host.irqs[5], 0);
    rig_eq_next(&rig, &eq);
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_uint_eq(rig.host.irqs[5], 0);
    event(PORT_CHANGE, 1);
    ck_assert_uint_eq(rig.host.irqs[5], 1);
    event(PORT_CHANGE, 2);
    ck_assert_uint_eq(rig.host.irqs[5], 1);
}
END_TEST

/* The driver arms with the consumer index it has reached; events that came meanwhile must not
 * wait. */
START_TEST(arming_behind_the_producer_interrupts_at_once)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 4, 2, RIG_ASYNC_MASK);
    event(PORT_CHANGE, 0);
    event(PORT_CHANGE, 1);
    rig_eq_next(&rig, &eq);
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_uint_eq(rig.host.irqs[2], 1);
}
END_TEST

START_TEST(offset_0x48_does_not_arm)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 4, 2, RIG_ASYNC_MASK);
    rig_eq_doorbell(&rig, &eq, false);
    event(PORT_CHANGE, 0);
    ck_assert_uint_eq(rig.host.irqs[2], 0);
}
END_TEST

/* Bit t of event_bitmask asks for event type t. */
START_TEST(event_goes_to_the_eqs_that_asked)
{
    struct rig_eq a, b;

    rig_eq_create(&rig, &a, 3, 1, 1ull << PORT_CHANGE | 1ull << CQ_ERROR);
    rig_eq_create(&rig, &b, 3, 2, 1ull << CQ_ERROR);
    event(PORT_CHANGE, 0);
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &a));
    ck_assert_ptr_null(rig_eq_next(&rig, &b));
    event(CQ_ERROR, 0);
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &a));
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &b));
    event(PRM_EVENT_TYPE_GPIO_EVENT, 0);
    ck_assert_ptr_null(rig_eq_next(&rig, &a));
}
END_TEST

/* The table of EQs is not searched: the cost depends only on the EQs that asked for the event. */
START_TEST(the_cost_of_an_event_depends_on_its_subscribers)
{
    struct rig_eq asked[2], others[58];
    uint64_t steps;

    rig_eq_create(&rig, &asked[0], 3, 1, 1ull << CQ_ERROR);
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        rig_eq_create(&rig, &others[i], 3, 1, 0);
    }
    rig_eq_create(&rig, &asked[1], 3, 1, 1ull << CQ_ERROR);
    steps = rig.hca.eqs.steps;
    event(CQ_ERROR, 0);
    ck_assert_uint_eq(rig.hca.eqs.steps, steps);
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &asked[0]));
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &asked[1]));
}
END_TEST

/* The number is given to another EQ, which asks for another event. */
START_TEST(event_forgets_an_eq_that_is_gone)
{
    struct rig_eq eq;
    uint32_t gone;

    rig_eq_create(&rig, &eq, 3, 1, 1ull << CQ_ERROR);
    gone = eq.eqn;
    ck_assert_int_eq(eq_destroy(&rig.hca, 0, gone), SYN_OK);
    do {
        rig_eq_create(&rig, &eq, 3, 1, 1ull << PORT_CHANGE);
    } while (eq.eqn != gone);
    event(CQ_ERROR, 0);
    ck_assert_ptr_null(rig_eq_next(&rig, &eq));
    event(PORT_CHANGE, 0);
    ck_assert_ptr_nonnull(rig_eq_next(&rig, &eq));
}
END_TEST

START_TEST(async_event_names_queue_type_and_number)
{
    struct rig_eq eq;
    const struct prm_eqe *eqe;

    rig_eq_create(&rig, &eq, 3, 1, RIG_ASYNC_MASK);
    eq_async_qp(&rig.hca, PRM_EVENT_TYPE_SRQ_RQ_LIMIT, 1, 0xabcdef);
    eqe = rig_eq_next(&rig, &eq);
    ck_assert_ptr_nonnull(eqe);
    ck_assert_uint_eq(PRM_GET(qp_events, PRM_PTR(eqe, eqe, event_data), type), 1);
    ck_assert_uint_eq(PRM_GET(qp_events, PRM_PTR(eqe, eqe, event_data), qpn_rqn_sqn), 0xabcdef);
}
END_TEST

START_TEST(full_eq_keeps_what_it_has)
{
    struct rig_eq eq;
    struct prm_eqc eqc[1];
    uint64_t mask[4];

    rig_eq_create(&rig, &eq, 2, 1, RIG_ASYNC_MASK);
    for (unsigned i = 0; i < 6; i++) {
        event(PORT_CHANGE, i);
    }
    ck_assert_int_eq(eq_query(&rig.hca, eq.eqn, eqc, mask), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, status), PRM_EQC_STATUS_EQ_OVERFLOW);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, producer_counter), 4);
    ck_assert_uint_eq(rig.host.guest_errors, 2);
    ck_assert_uint_eq(rig.hca.eq_overruns, 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(*(const uint8_t *)PRM_PTR(eqe, rig_eq_next(&rig, &eq), event_data), i);
    }
    ck_assert_ptr_null(rig_eq_next(&rig, &eq));
    rig_eq_doorbell(&rig, &eq, true);
    event(PORT_CHANGE, 9);
    ck_assert_uint_eq(*(const uint8_t *)PRM_PTR(eqe, rig_eq_next(&rig, &eq), event_data), 9);
    ck_assert_uint_eq(rig.host.irqs[1], 1);
}
END_TEST

/* Software that has read nothing yet arms an EQ whose every entry is full: its index is in the
 * ring, so an event waits. An index further behind is not in the ring, nor is one ahead. */
START_TEST(an_eq_that_is_exactly_full_can_be_armed)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 2, 1, RIG_ASYNC_MASK);
    for (unsigned i = 0; i < 4; i++) {
        event(PORT_CHANGE, i);
    }
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_uint_eq(rig.host.guest_errors, 0);
    ck_assert_uint_eq(rig.host.irqs[1], 1);
    eq.ci--;
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_uint_eq(rig.host.guest_errors, 1);
    eq.ci += 6;
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_uint_eq(rig.host.guest_errors, 2);
    ck_assert_uint_eq(rig.host.irqs[1], 1);
}
END_TEST

START_TEST(query_tells_the_live_state)
{
    struct rig_eq eq;
    struct prm_eqc eqc[1];
    uint64_t mask[4];

    rig_eq_create(&rig, &eq, 3, 1, 1ull << PORT_CHANGE);
    event(PORT_CHANGE, 0);
    event(PORT_CHANGE, 0);
    rig_eq_next(&rig, &eq);
    rig_eq_next(&rig, &eq);
    rig_eq_doorbell(&rig, &eq, true);
    ck_assert_int_eq(eq_query(&rig.hca, eq.eqn, eqc, mask), SYN_OK);
    ck_assert_uint_eq(mask[0], 1ull << PORT_CHANGE);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, st), PRM_EQC_ST_ARMED);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, consumer_counter), 2);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, producer_counter), 2);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, log_eq_size), 3);
    event(PORT_CHANGE, 0);
    ck_assert_int_eq(eq_query(&rig.hca, eq.eqn, eqc, mask), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, st), PRM_EQC_ST_FIRED);
}
END_TEST

/* page_offset counts 64ths of a page. */
START_TEST(ring_may_begin_inside_a_page)
{
    const uint64_t mask[4] = {RIG_ASYNC_MASK};
    uint64_t page = fake_host_alloc(&rig.host, 8192, 8192);
    struct prm_eqc eqc[1] = {0};
    uint8_t pas[8];
    uint32_t eqn;

    PRM_SET(eqc, eqc, log_eq_size, 4);
    PRM_SET(eqc, eqc, uar_page, rig.uarn);
    PRM_SET(eqc, eqc, log_page_size, 1);
    PRM_SET(eqc, eqc, page_offset, 3);
    prm_store64(pas, page);
    ck_assert_int_eq(eq_create(&rig.hca, 0, eqc, pas, 1, mask, &eqn), SYN_OK);
    event(PORT_CHANGE, 0);
    ck_assert_uint_eq(PRM_GET(eqe, fake_host_ptr(&rig.host, page + 3 * 128, 64), event_type),
                      PORT_CHANGE);
    PRM_SET(eqc, eqc, page_offset, 63); /* 128 bytes left, 1024 needed */
    ck_assert_int_eq(eq_create(&rig.hca, 0, eqc, pas, 1, mask, &eqn), SYN_BAD_PAS);
}
END_TEST

START_TEST(bad_contexts_are_refused)
{
    const uint64_t mask[4] = {0};
    const struct {
        unsigned log_size, uar, intr, npas;
        enum syn want;
    } cases[] = {
        {6, 0, RIG_MSIX, 1, SYN_EQ_VECTOR}, {6, 0, 0xfff, 1, SYN_EQ_VECTOR},
        {11, 0, 0, 64, SYN_LIMIT},          {31, 0, 0, 64, SYN_LIMIT},
        {7, 0, 0, 1, SYN_BAD_PAS},          {6, 0, 0, 0, SYN_BAD_PAS},
        {6, 63, 0, 1, SYN_NO_UAR},          {6, 0xffffff, 0, 1, SYN_NO_UAR},
    };
    uint8_t pas[64 * 8] = {0};
    uint32_t eqn;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct prm_eqc eqc[1] = {0};

        PRM_SET(eqc, eqc, log_eq_size, cases[i].log_size);
        PRM_SET(eqc, eqc, uar_page, cases[i].uar ? cases[i].uar : rig.uarn);
        PRM_SET(eqc, eqc, intr, cases[i].intr);
        ck_assert_int_eq(eq_create(&rig.hca, 0, eqc, pas, cases[i].npas, mask, &eqn),
                         cases[i].want);
    }
}
END_TEST

START_TEST(doorbells_that_fit_nothing_are_ignored)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 3, 1, RIG_ASYNC_MASK);
    event(PORT_CHANGE, 0);
    uar_write(&rig.hca, rig.user_uarn, 0x40, eq.eqn << 24, 4); /* another's UAR */
    uar_write(&rig.hca, rig.uarn, 0x40, 0xffu << 24, 4);       /* no such EQ */
    uar_write(&rig.hca, 60, 0x40, eq.eqn << 24, 4);            /* page not allocated */
    uar_write(&rig.hca, rig.uarn, 0x40, eq.eqn << 24 | 5, 4);  /* ahead of the producer */
    uar_write(&rig.hca, rig.uarn, 0x40, eq.eqn << 24, 2);      /* no such width */
    uar_write(&rig.hca, rig.uarn, 0x7fc, 1, 4);                /* no such register */
    uar_write(&rig.hca, rig.uarn, 0x808, 0x123400, 8);         /* the rest of a BlueFlame WQE */
    uar_write(&rig.hca, rig.uarn, 0x904, 0x123400, 4);         /* half a send doorbell */
    ck_assert_uint_eq(rig.host.guest_errors, 6);
    uar_write(&rig.hca, rig.uarn, 0xa00, 0x123400, 8); /* no such QP */
    uar_write(&rig.hca, rig.uarn, 0x900, 0, 4);
    uar_write(&rig.hca, rig.uarn, 0x904, 0x123400, 4);
    ck_assert_uint_eq(rig.host.irqs[1], 0);
    ck_assert_uint_eq(rig.host.guest_errors, 8);
}
END_TEST

/* CREATE_EQ asks for event types by four words of 64; QUERY_EQ returns all of them. */
START_TEST(query_tells_every_event_asked_for)
{
    const uint64_t mask[4] = {1, 2, 0, 1ull << 63};
    struct prm_eqc eqc[1] = {0};
    uint8_t pas[8];
    uint64_t got[4];
    uint32_t eqn;

    PRM_SET(eqc, eqc, uar_page, rig.uarn);
    prm_store64(pas, fake_host_alloc(&rig.host, 4096, 4096));
    ck_assert_int_eq(eq_create(&rig.hca, 0, eqc, pas, 1, mask, &eqn), SYN_OK);
    ck_assert_int_eq(eq_query(&rig.hca, eqn, eqc, got), SYN_OK);
    ck_assert_mem_eq(got, mask, sizeof(mask));
}
END_TEST

START_TEST(ring_that_does_not_answer_is_reported)
{
    const uint64_t mask[4] = {RIG_ASYNC_MASK};
    struct prm_eqc eqc[1] = {0};
    uint8_t pas[8];
    uint32_t eqn;
    uint64_t got[4];

    PRM_SET(eqc, eqc, log_eq_size, 2);
    PRM_SET(eqc, eqc, uar_page, rig.uarn);
    prm_store64(pas, 0x1000);
    ck_assert_int_eq(eq_create(&rig.hca, 0, eqc, pas, 1, mask, &eqn), SYN_OK);
    event(PORT_CHANGE, 0);
    ck_assert_int_eq(eq_query(&rig.hca, eqn, eqc, got), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, status), PRM_EQC_STATUS_EQ_WRITE_FAILURE);
}
END_TEST

/* Memory that cannot be mapped in one piece is written anyway. */
START_TEST(ring_that_cannot_be_mapped_is_written)
{
    struct rig_eq eq;

    rig.host.no_map = true;
    rig_eq_create(&rig, &eq, 3, 1, RIG_ASYNC_MASK);
    event(PORT_CHANGE, 7);
    ck_assert_uint_eq(*(const uint8_t *)PRM_PTR(eqe, rig_eq_next(&rig, &eq), event_data), 7);
    rig.host.no_map = false;
    rig.host.map_limit = 32;
    event(PORT_CHANGE, 8);
    ck_assert_uint_eq(*(const uint8_t *)PRM_PTR(eqe, rig_eq_next(&rig, &eq), event_data), 8);
}
END_TEST

START_TEST(eq_holds_its_uar)
{
    struct rig_eq eq;

    rig_eq_create(&rig, &eq, 3, 1, RIG_ASYNC_MASK);
    ck_assert_int_eq(uar_dealloc(&rig.hca, 0, rig.uarn), SYN_IN_USE);
    ck_assert_int_eq(eq_destroy(&rig.hca, RIG_USER, eq.eqn), SYN_BAD_UID);
    ck_assert_int_eq(eq_destroy(&rig.hca, 0, eq.eqn), SYN_OK);
    ck_assert_int_eq(eq_destroy(&rig.hca, 0, eq.eqn), SYN_NO_EQ);
    ck_assert_int_eq(uar_dealloc(&rig.hca, 0, rig.uarn), SYN_OK);
    ck_assert_int_eq(uar_dealloc(&rig.hca, 0, rig.uarn), SYN_NO_UAR);
}
END_TEST

START_TEST(numbers_have_owners)
{
    uint32_t num;

    ck_assert_int_eq(pd_dealloc(&rig.hca, RIG_USER, rig.pdn), SYN_BAD_UID);
    ck_assert_int_eq(uar_dealloc(&rig.hca, RIG_USER + 1, rig.user_uarn), SYN_BAD_UID);
    ck_assert_int_eq(pd_dealloc(&rig.hca, RIG_USER, rig.user_pdn), SYN_OK);
    ck_assert_int_eq(pd_dealloc(&rig.hca, RIG_USER, rig.user_pdn), SYN_NO_PD);
    ck_assert_int_eq(td_alloc(&rig.hca, RIG_USER, &num), SYN_OK);
    ck_assert_int_eq(td_dealloc(&rig.hca, 0, num), SYN_OK);
    ck_assert_int_eq(td_dealloc(&rig.hca, 0, num), SYN_NO_TD);
    ck_assert_int_eq(xrcd_alloc(&rig.hca, 0, &num), SYN_OK);
    ck_assert_int_eq(xrcd_dealloc(&rig.hca, RIG_USER, num), SYN_BAD_UID);
    ck_assert_int_eq(xrcd_dealloc(&rig.hca, 0, num + 1), SYN_NO_XRCD);
    ck_assert_int_eq(xrcd_dealloc(&rig.hca, 0, num), SYN_OK);
    for (unsigned i = 0; i < 255; i++) {
        ck_assert_int_eq(td_alloc(&rig.hca, 0, &num), SYN_OK);
    }
    ck_assert_int_eq(td_alloc(&rig.hca, 0, &num), SYN_NO_MEMORY);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eq");
    TCase *tc = tcase_create("eq");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, owner_bit_changes_with_each_round);
    tcase_add_test(tc, armed_eq_interrupts_once);
    tcase_add_test(tc, arming_behind_the_producer_interrupts_at_once);
    tcase_add_test(tc, offset_0x48_does_not_arm);
    tcase_add_test(tc, event_goes_to_the_eqs_that_asked);
    tcase_add_test(tc, the_cost_of_an_event_depends_on_its_subscribers);
    tcase_add_test(tc, event_forgets_an_eq_that_is_gone);
    tcase_add_test(tc, async_event_names_queue_type_and_number);
    tcase_add_test(tc, full_eq_keeps_what_it_has);
    tcase_add_test(tc, an_eq_that_is_exactly_full_can_be_armed);
    tcase_add_test(tc, query_tells_the_live_state);
    tcase_add_test(tc, ring_may_begin_inside_a_page);
    tcase_add_test(tc, bad_contexts_are_refused);
    tcase_add_test(tc, doorbells_that_fit_nothing_are_ignored);
    tcase_add_test(tc, query_tells_every_event_asked_for);
    tcase_add_test(tc, ring_that_does_not_answer_is_reported);
    tcase_add_test(tc, ring_that_cannot_be_mapped_is_written);
    tcase_add_test(tc, eq_holds_its_uar);
    tcase_add_test(tc, numbers_have_owners);
    suite_add_tcase(suite, tc);
    return suite;
}
