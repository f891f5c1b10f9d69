/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests regions of bus addresses (IBV_EXP_ACCESS_PHYSICAL_ADDR), which need CAP_SYS_RAWIO. The
 * program is skipped for a user who does not have it. */
#include <check.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/unit/suite.h"
#include "tests/verbs/exp_memory_bench.h"

static bool has_raw_io(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return !syscall(SYS_capget, &header, data) &&
           data[CAP_TO_INDEX(CAP_SYS_RAWIO)].effective & CAP_TO_MASK(CAP_SYS_RAWIO);
}

static struct ibv_mr *reg_bus(void *addr, size_t length)
{
    struct ibv_mr *mr = reg(addr, length, RIGHTS | IBV_EXP_ACCESS_PHYSICAL_ADDR);

    ck_assert_ptr_nonnull(mr);
    return mr;
}

/* Length 0 means all memory. */
START_TEST(a_region_of_all_bus_addresses_reaches_any_memory)
{
    uint8_t *mem = aligned_alloc(PAGE, PAGE);
    struct ibv_mr *mr = reg_bus(NULL, 0);

    memset(mem, 7, PAGE);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, (uintptr_t)mem, 100), IBV_WC_SUCCESS);
    ck_assert_uint_eq(((uint8_t *)far->addr)[99], 7);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(mem);
}
END_TEST

START_TEST(a_region_of_a_range_reaches_no_further)
{
    uint8_t *mem = aligned_alloc(PAGE, 2 * PAGE);
    struct ibv_mr *mr = reg_bus(mem + PAGE, PAGE);

    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, (uintptr_t)mem + PAGE, PAGE),
                     IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, (uintptr_t)mem + PAGE - 1, 2),
                     IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(mem);
}
END_TEST

START_TEST(flags_that_bus_addresses_do_not_have)
{
    static const uint64_t more[] = {IBV_EXP_ACCESS_MW_BIND, IBV_EXP_ACCESS_ON_DEMAND,
                                    RIGHTS | IBV_EXP_ACCESS_TUNNELED_ATOMIC};

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        errno = 0;
        ck_assert_ptr_null(reg(NULL, 0, IBV_EXP_ACCESS_PHYSICAL_ADDR | more[i]));
        ck_assert_int_eq(errno, EINVAL);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("regions of bus addresses");
    TCase *tc = tcase_create("bus addresses");

    if (!has_raw_io()) {
        puts("skipped: the user does not have CAP_SYS_RAWIO");
        exit(77); /* meson: the program was skipped */
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_region_of_all_bus_addresses_reaches_any_memory);
    tcase_add_test(tc, a_region_of_a_range_reaches_no_further);
    tcase_add_test(tc, flags_that_bus_addresses_do_not_have);
    suite_add_tcase(suite, tc);
    return suite;
}
