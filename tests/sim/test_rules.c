/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that a driver stands on and that no workload shows: which interrupts come, what a key may
 * hold. Each was asked for by a mutant that nothing else found out from outside (scripts/mutate).
 */
#include <check.h>
#include <stdlib.h>
#include "tests/sim/examples.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

static struct two_hcas *t;

static void setup(void)
{
    t = two_hcas_new(NULL);
}

static void teardown(void)
{
    node_revive(&t->a); /* whatever a test has made */
    two_hcas_free(t);
}

static unsigned interrupts(void)
{
    unsigned n = 0;

    inproc_settle(t->world);
    for (unsigned i = 0; i < INPROC_VECTORS; i++) {
        n += t->a.hca->irqs[i];
    }
    return n;
}

/* A request that completes at once, which the CQ is asked to tell of. */
static void complete_one(struct drv_qp *qp)
{
    struct drv_send nop = {.opcode = PRM_WQE_OPCODE_NOP, .flags = DRV_SIGNALED};
    struct drv_wc wc;

    drv_arm_cq(t->a.drv, &t->a.cq, false);
    drv_post_send(qp, &nop);
    inproc_settle(t->world);
    ck_assert(drv_poll_cq(t->a.drv, &t->a.cq, &wc)); /* looks at no event queue */
    t->a.cq.arm_sn++; /* its event will have been seen */
}

/* PRM, EQ doorbell with arm: an interrupt for the next event, and at once if one waits already. The
 * driver arms behind its last look (mlx5_eq_update_ci()): what came in between must not be lost. */
START_TEST(an_event_queue_that_is_armed_late_interrupts_at_once)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    unsigned before;

    drv_poll_events(t->a.drv);
    drv_arm_eqs(t->a.drv);
    before = interrupts();
    complete_one(rc.a);
    ck_assert_uint_eq(interrupts(), before + 1);
    complete_one(rc.a); /* nobody has armed it again */
    ck_assert_uint_eq(interrupts(), before + 1);
    drv_arm_eqs(t->a.drv); /* none of the two was taken */
    ck_assert_uint_eq(interrupts(), before + 2);
}
END_TEST

/* CREATE_MKEY: translations_octword_size is the key's room, translations_octword_actual_size what
 * the command brings. */
START_TEST(a_key_takes_no_more_entries_than_it_has_room_for)
{
    static struct guest guest;
    uint8_t in_bytes[EXAMPLE_MAX + 256] = {0}, out[16];
    void *in = in_bytes;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    size_t len;

    guest_init(&guest, &t->a);
    len = example(&guest, PRM_CMD_OP_CREATE_MKEY, in);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 8);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, translations_octword_size), 4);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len + 64, out, sizeof(out)), PRM_CMD_STATUS_BAD_PARAM);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("rules");
    TCase *tc = tcase_create("rules");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_event_queue_that_is_armed_late_interrupts_at_once);
    tcase_add_test(tc, a_key_takes_no_more_entries_than_it_has_room_for);
    suite_add_tcase(s, tc);
    return s;
}
