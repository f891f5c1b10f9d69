/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the faults of a device that its owner wants (model/core/inject.h, fw/inject.c), as a driver
 * meets them: late interrupts, doorbells that are not seen, health, late page requests.
 */
#include <check.h>
#include "fw/fw_internal.h"
#include "model/core/inject.h"
#include "model/queue/eq.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"
#include "wire/fault/fault.h"

static struct two_hcas *t;
static struct fault_set *set;

static uint64_t clock_ns(void *opaque)
{
    return t->world->now_ns;
}

static void begin(const char *rules)
{
    const struct fault_options options = {.clock_ns = clock_ns, .names = &fw_fault_names};

    t = two_hcas_new(NULL);
    set = fault_set_new(&options);
    ck_assert(fault_set_add(set, rules, NULL));
    fw_set_faults(t->a.hca->fw, set);
}

static void end(void)
{
    fw_set_faults(t->a.hca->fw, NULL);
    fault_set_free(set);
    two_hcas_free(t);
}

static uint64_t done(void)
{
    struct fault_info info;

    fault_set_get(set, 0, &info);
    return info.done;
}

/* Makes an EQ send an interrupt. */
static void interrupt_of(uint32_t eqn)
{
    struct drv *drv = t->a.drv;
    uint64_t arm = (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, eq_db_arm);
    uint8_t data[EQE_DATA_LEN] = {0};

    drv->dev.ops->mmio_write(drv->dev.pci, arm, eqn << 24, 4);
    eq_post(&t->a.hca->fw->hca, eqn, PRM_EVENT_TYPE_GENERAL_EVENT, 0, data);
}

/* The same, of vector 1. */
static void interrupt(void)
{
    interrupt_of(t->a.drv->comp_eq[0].eqn);
}

START_TEST(an_interrupt_comes_late)
{
    unsigned before;

    begin("interrupt late 5ms vector 1 once");
    ck_assert_int_eq(drv_create_comp_eqs(t->a.drv, 1), 0);
    before = t->a.hca->irqs[1];
    interrupt();
    inproc_advance(t->world, 5 * MS - 1);
    ck_assert_uint_eq(t->a.hca->irqs[1], before);
    inproc_advance(t->world, 1);
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    inproc_advance(t->world, SECOND);
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    end();
}
END_TEST

/* An interrupt says "look", and so stands for all of its vector that came before. */
START_TEST(an_interrupt_stands_for_the_late_one)
{
    unsigned before;

    begin("interrupt late 5ms vector 1 once");
    ck_assert_int_eq(drv_create_comp_eqs(t->a.drv, 1), 0);
    before = t->a.hca->irqs[1];
    interrupt();
    ck_assert_uint_eq(t->a.hca->irqs[1], before);
    interrupt();
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    inproc_advance(t->world, SECOND);
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    end();
}
END_TEST

/* Otherwise a stream of interrupts would put the first one off for ever. */
START_TEST(the_next_late_interrupt_does_not_put_it_off)
{
    unsigned before;

    begin("interrupt late 5ms vector 1");
    ck_assert_int_eq(drv_create_comp_eqs(t->a.drv, 1), 0);
    before = t->a.hca->irqs[1];
    interrupt();
    inproc_advance(t->world, 3 * MS);
    interrupt();
    inproc_advance(t->world, 2 * MS);
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    end();
}
END_TEST

/* Otherwise a driver that waits would wait for ever. */
START_TEST(a_late_interrupt_comes_when_the_rules_end)
{
    unsigned before;

    begin("interrupt late 5ms vector 1");
    ck_assert_int_eq(drv_create_comp_eqs(t->a.drv, 1), 0);
    before = t->a.hca->irqs[1];
    interrupt();
    ck_assert_uint_eq(t->a.hca->irqs[1], before);
    fw_set_faults(t->a.hca->fw, NULL);
    ck_assert_uint_eq(t->a.hca->irqs[1], before + 1);
    end();
}
END_TEST

START_TEST(no_late_interrupt_survives_a_reset)
{
    unsigned before;

    begin("interrupt late 5ms vector 1");
    ck_assert_int_eq(drv_create_comp_eqs(t->a.drv, 1), 0);
    before = t->a.hca->irqs[1];
    interrupt();
    node_revive(&t->a);
    inproc_advance(t->world, SECOND);
    ck_assert_uint_eq(t->a.hca->irqs[1], before);
    end();
}
END_TEST

START_TEST(no_late_interrupt_of_vector_0_survives_a_reset)
{
    unsigned before;

    begin("interrupt late 5ms vector 0");
    before = t->a.hca->irqs[0];
    interrupt_of(t->a.drv->eq.eqn);
    fw_reset(t->a.hca->fw);
    inproc_advance(t->world, SECOND);
    ck_assert_uint_eq(t->a.hca->irqs[0], before);
    ck_assert_uint_eq(t->a.hca->fw->hca.inject->due_ns[0], UINT64_MAX); /* the next one is new */
    node_revive(&t->a);
    end();
}
END_TEST

/* The WQE is executed when the next doorbell of the queue is rung. */
START_TEST(a_doorbell_that_is_not_seen_has_no_effect)
{
    struct qp_pair rc;
    struct drv_send send = {.opcode = PRM_WQE_OPCODE_NOP, .flags = DRV_SIGNALED};

    begin("doorbell unseen once");
    rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    drv_post_send(rc.a, &send);
    expect_no_wc(t, &t->a);
    ck_assert_uint_eq(done(), 1);
    drv_post_send(rc.a, &send);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    ping(t);
    end();
}
END_TEST

START_TEST(other_queues_doorbells_are_seen)
{
    begin("doorbell unseen qp 0xfffffe");
    ping(t);
    ck_assert_uint_eq(done(), 0);
    end();
}
END_TEST

START_TEST(the_firmware_fails_when_its_time_has_come)
{
    bool fatal;

    begin("health 3 after 2s");
    inproc_advance(t->world, 2 * SECOND - 1);
    ck_assert_uint_eq(fw_get_health(t->a.hca->fw, &fatal), 0);
    inproc_advance(t->world, 1);
    ck_assert_uint_eq(fw_get_health(t->a.hca->fw, &fatal), 3);
    ck_assert(fatal);
    node_revive(&t->a); /* the rule does not act twice */
    inproc_advance(t->world, 10 * SECOND);
    ck_assert_uint_eq(fw_get_health(t->a.hca->fw, &fatal), 0);
    end();
}
END_TEST

START_TEST(a_rule_that_is_added_has_its_time)
{
    bool fatal;

    begin("none");
    inproc_advance(t->world, SECOND);
    ck_assert(fault_set_add(set, "health 3 report after 1s", NULL));
    inproc_advance(t->world, SECOND);
    ck_assert_uint_eq(fw_get_health(t->a.hca->fw, &fatal), 3);
    ck_assert(!fatal);
    end();
}
END_TEST

/* A device that needs pages gets them in the end: the late request is made. */
START_TEST(a_late_page_request_is_made)
{
    enum {
        KEYS = 30000
    };
    struct drv *drv;
    struct drv_mem mem;
    g_autofree struct drv_mr *mr = g_new(struct drv_mr, KEYS);

    begin("pages slow 20ms");
    drv = t->a.drv;
    mem = drv_alloc(drv, 64 << 10);
    for (unsigned i = 0; i < KEYS; i++) {
        ck_assert_int_eq(drv_reg_mr(drv, drv->pdn, &mem, 0, mem.size, DRV_ALL, &mr[i]), 0);
        if (t->a.hca->fw->inject.pages.pos) {
            inproc_advance(t->world, 20 * MS);
            ck_assert_uint_eq(t->a.hca->fw->inject.pages.pos, 0);
        }
    }
    ck_assert_uint_gt(done(), 0);
    for (unsigned i = 0; i < KEYS; i++) {
        ck_assert_int_eq(drv_dereg_mr(drv, &mr[i]), 0);
    }
    drv_free(drv, &mem);
    end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("injected");
    TCase *tc = tcase_create("injected");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, an_interrupt_comes_late);
    tcase_add_test(tc, an_interrupt_stands_for_the_late_one);
    tcase_add_test(tc, the_next_late_interrupt_does_not_put_it_off);
    tcase_add_test(tc, a_late_interrupt_comes_when_the_rules_end);
    tcase_add_test(tc, no_late_interrupt_survives_a_reset);
    tcase_add_test(tc, no_late_interrupt_of_vector_0_survives_a_reset);
    tcase_add_test(tc, a_doorbell_that_is_not_seen_has_no_effect);
    tcase_add_test(tc, other_queues_doorbells_are_seen);
    tcase_add_test(tc, the_firmware_fails_when_its_time_has_come);
    tcase_add_test(tc, a_rule_that_is_added_has_its_time);
    tcase_add_test(tc, a_late_page_request_is_made);
    suite_add_tcase(suite, tc);
    return suite;
}
