/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the function's life as a driver sees it: bring-up, tear-down, reset. */
#include <check.h>
#include "fw/fw_internal.h"
#include "model/queue/eq.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

static struct inproc_world *world;
static struct inproc_hca *hca;

static void setup(void)
{
    struct fw_config config = {.mac = {0x02, 0, 0, 0, 0, 1}};

    world = inproc_world_new();
    hca = inproc_hca_new(world, &config, NULL);
    ck_assert_ptr_nonnull(hca);
}

static void teardown(void)
{
    inproc_world_free(world);
}

static struct drv *open_driver(void)
{
    GError *err = NULL;
    struct drv *drv = drv_open(inproc_pci(hca), &err);

    ck_assert_msg(drv, "%s", err ? err->message : "");
    return drv;
}

START_TEST(bring_up_and_tear_down_leave_nothing_behind)
{
    for (int round = 0; round < 3; round++) {
        struct drv *drv = open_driver();

        ck_assert_uint_eq(drv_close(drv), 0);
        ck_assert_uint_eq(hca->outstanding, 0);
    }
    ck_assert_uint_eq(hca->log_errors, 0);
    ck_assert_uint_eq(hca->log_guest_errors, 0);
}
END_TEST

START_TEST(driver_finds_the_permanent_mac_and_a_reserved_key)
{
    static const uint8_t mac[6] = {0x02, 0, 0, 0, 0, 1};
    struct drv *drv = open_driver();

    ck_assert_mem_eq(drv->mac, mac, 6);
    ck_assert_uint_ne(drv->resd_lkey, 0);
    ck_assert_uint_eq(PRM_GET(cmd_hca_cap, drv->cap, port_type), 1); /* Ethernet */
    drv_close(drv);
}
END_TEST

/* A destroyed queue gives its doorbell record back: the number of records does not limit the number
 * of queues over time. */
START_TEST(doorbell_records_are_used_again)
{
    struct drv *drv = open_driver();
    size_t before = 0;

    for (int i = 0; i < 5000; i++) {
        struct drv_cq cq;

        ck_assert_int_eq(drv_create_cq(drv, 0, &cq), 0);
        cq.dbr[1] = 1;
        ck_assert_int_eq(drv_destroy_cq(drv, &cq), 0);
        before = i == 0 ? hca->outstanding : before;
    }
    ck_assert_uint_eq(hca->outstanding, before);
    ck_assert_uint_eq(drv_close(drv), 0);
    ck_assert_uint_eq(hca->outstanding, 0);
}
END_TEST

/* If objects need more pages than the first supply, the device requests them by an event and gets
 * them. */
START_TEST(device_asks_for_pages_while_it_runs)
{
    struct drv *drv = open_driver();
    struct drv_mem mem = drv_alloc(drv, 64 << 10);
    unsigned before = g_hash_table_size(drv->pages), most = before;
    enum {
        KEYS = 30000
    };
    struct drv_mr *mr = g_new(struct drv_mr, KEYS);

    for (unsigned i = 0; i < KEYS; i++) {
        ck_assert_int_eq(drv_reg_mr(drv, drv->pdn, &mem, 0, mem.size, DRV_ALL, &mr[i]), 0);
        most = MAX(most, g_hash_table_size(drv->pages));
    }
    ck_assert_uint_gt(most, before);
    for (unsigned i = 0; i < KEYS; i++) {
        ck_assert_int_eq(drv_dereg_mr(drv, &mr[i]), 0);
    }
    g_free(mr);
    drv_free(drv, &mem);
    ck_assert_uint_eq(drv_close(drv), 0);
    ck_assert_uint_eq(hca->outstanding, 0);
    ck_assert_uint_eq(hca->log_guest_errors, 0);
}
END_TEST

/* A driver that was busy finds every entry of an EQ full, and arms the EQ before it reads. The
 * device knows that index, and signals at once that an event waits. This driver checks its EQs with
 * each command, so the events come at once. */
START_TEST(a_full_eq_is_armed)
{
    struct drv *drv = open_driver();
    uint64_t arm = (uint64_t)drv->uarn * PCI_PAGE + PRM_OFFSET(uar, eq_db_arm);
    uint8_t data[EQE_DATA_LEN] = {0};
    const struct drv_eq *eq = &drv->comp_eq[0];
    unsigned before;

    ck_assert_int_eq(drv_create_comp_eqs(drv, 1), 0);
    drv->dev.ops->mmio_write(drv->dev.pci, arm, eq->eqn << 24, 4);
    before = hca->irqs[1];
    for (uint32_t i = 0; i < 1u << eq->log_size; i++) {
        eq_post(&hca->fw->hca, eq->eqn, PRM_EVENT_TYPE_GENERAL_EVENT, 0, data);
    }
    ck_assert_uint_eq(hca->irqs[1], before + 1);
    drv->dev.ops->mmio_write(drv->dev.pci, arm, eq->eqn << 24, 4);
    ck_assert_uint_eq(hca->irqs[1], before + 2);
    ck_assert_uint_eq(hca->log_guest_errors, 0);
    ck_assert_uint_eq(drv_close(drv), 0);
}
END_TEST

/* A function-level reset removes all objects of a running driver; the next driver starts from the
 * beginning. */
START_TEST(reset_under_a_running_driver)
{
    struct drv *drv = open_driver();
    struct drv_cq cq;

    ck_assert_int_eq(drv_create_cq(drv, 4, &cq), 0);
    fw_reset(hca->fw);
    drv_free(drv, &cq.ring);
    drv->up = false;
    drv_close(drv);
    ck_assert_uint_eq(hca->outstanding, 0);

    drv = open_driver();
    ck_assert_uint_eq(drv_close(drv), 0);
    ck_assert_uint_eq(hca->log_errors, 0);
}
END_TEST

/* Closing with existing objects is an error of the driver; TEARDOWN_HCA removes them anyway. */
START_TEST(tear_down_takes_forgotten_objects_along)
{
    struct drv *drv = open_driver();
    struct drv_cq cq;

    ck_assert_int_eq(drv_create_cq(drv, 4, &cq), 0);
    ck_assert_uint_eq(drv_close(drv), 0);
    drv = open_driver();
    ck_assert_uint_eq(drv_close(drv), 0);
    ck_assert_uint_eq(hca->log_errors, 0);
}
END_TEST

/* A driver brings up every generation, and two devices exchange messages. */
START_TEST(every_generation_works)
{
    struct two_hcas *t = two_hcas_of(fw_profile_names()[_i]);

    ping(t);
    two_hcas_free(t);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("bring-up");
    TCase *tc = tcase_create("bring-up");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, bring_up_and_tear_down_leave_nothing_behind);
    tcase_add_test(tc, driver_finds_the_permanent_mac_and_a_reserved_key);
    tcase_add_test(tc, doorbell_records_are_used_again);
    tcase_add_test(tc, device_asks_for_pages_while_it_runs);
    tcase_add_test(tc, a_full_eq_is_armed);
    tcase_add_test(tc, reset_under_a_running_driver);
    tcase_add_test(tc, tear_down_takes_forgotten_objects_along);
    tcase_add_loop_test(tc, every_generation_works, 0,
                        (int)g_strv_length((char **)fw_profile_names()));
    suite_add_tcase(suite, tc);
    return suite;
}
