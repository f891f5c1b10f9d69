/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests memory of experimental verbs: regions with memory of the library, with tunneled atomics and
 * shared by processes; windows, device memory, prefetch. What needs rights that not every user has
 * is in test_exp_bus_addresses.c and test_exp_other_user.c.
 */
#include <check.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/odp_internal.h"
#include "guest-lib/verbs/kernel/shared_mr.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_memory_bench.h"

#define USER_BOTH (IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE)

static void expect_refused(void *addr, size_t length, uint64_t access, int err)
{
    ck_assert_ptr_null(reg(addr, length, access));
    ck_assert_int_eq(errno, err);
}

/* -- memory of the library --------------------------------------------------------------------- */

/* "ibv_exp_reg_mr() will allocate a memory block automatically, which its address will be page
 * aligned. This block will be freed implicitly when ibv_dereg_mr() is called." */
START_TEST(the_library_allocates_the_memory_of_a_region)
{
    struct ibv_mr *mr = reg(NULL, 5000, RIGHTS | IBV_EXP_ACCESS_ALLOCATE_MR);
    unsigned char there;
    uint8_t *mem;

    ck_assert_ptr_nonnull(mr);
    mem = mr->addr;
    ck_assert_uint_eq((uintptr_t)mem % PAGE, 0);
    ck_assert_uint_eq(mr->length, 5000);
    memset(mem, 0x5a, 5000);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, (uintptr_t)mem + 1000, 4000),
                     IBV_WC_SUCCESS);
    ck_assert_uint_eq(((uint8_t *)far->addr)[3999], 0x5a);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(mincore(mem, PAGE, &there), -1);
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

/* "If the user passes a specific address; that is not null; the driver will try to allocate the
 * passed address and register it." */
START_TEST(contiguous_memory_lies_where_the_program_wants_it)
{
    uint8_t *range = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_exp_reg_mr_in in = {.pd = pd,
                                   .addr = range + PAGE + 8,
                                   .length = PAGE,
                                   .exp_access = RIGHTS,
                                   .comp_mask = IBV_EXP_REG_MR_CREATE_FLAGS,
                                   .create_flags = IBV_EXP_REG_MR_CREATE_CONTIG};
    struct ibv_mr *mr = ibv_exp_reg_mr(&in);

    ck_assert_ptr_nonnull(mr);
    ck_assert_ptr_eq(mr->addr, range + PAGE + 8);
    memset(mr->addr, 1, PAGE);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    munmap(range, 4 * PAGE);
}
END_TEST

START_TEST(what_contradicts_itself_is_refused)
{
    struct ibv_exp_reg_mr_in in = {.pd = pd, .length = PAGE, .comp_mask = IBV_EXP_REG_MR_DM};
    uint8_t *mem = aligned_alloc(PAGE, PAGE);

    expect_refused(mem, PAGE, IBV_EXP_ACCESS_ALLOCATE_MR, EINVAL);
    expect_refused(NULL, 0, IBV_EXP_ACCESS_ALLOCATE_MR, EINVAL);
    expect_refused(NULL, SIZE_MAX, IBV_EXP_ACCESS_ALLOCATE_MR, EINVAL);
    expect_refused(mem, PAGE, IBV_EXP_ACCESS_RESERVED, EINVAL);
    expect_refused(mem, PAGE, IBV_EXP_ACCESS_REMOTE_WRITE, EINVAL);
    expect_refused(mem, PAGE, USER_BOTH, EINVAL); /* not the library's memory */
    ck_assert_ptr_null(ibv_exp_reg_mr(&in));      /* no device memory */
    ck_assert_int_eq(errno, EINVAL);
    free(mem);
}
END_TEST

/* -- bus addresses ----------------------------------------------------------------------------- */

static void drop_raw_io(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    data[CAP_TO_INDEX(CAP_SYS_RAWIO)].effective &= ~CAP_TO_MASK(CAP_SYS_RAWIO);
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

/* ib_check_mr_access(): "Application is capable of writing to physical memory". What it may do
 * then: test_exp_bus_addresses.c. */
START_TEST(bus_addresses_need_the_capability)
{
    drop_raw_io();
    expect_refused(NULL, 0, RIGHTS | IBV_EXP_ACCESS_PHYSICAL_ADDR, EPERM);
    expect_refused(NULL, 0, IBV_EXP_ACCESS_PHYSICAL_ADDR | IBV_EXP_ACCESS_MW_BIND, EPERM);
}
END_TEST

/* -- tunneled atomics -------------------------------------------------------------------------- */

START_TEST(a_write_to_a_tunneled_region_is_an_atomic)
{
    uint8_t *mem = aligned_alloc(PAGE, PAGE);
    struct prm_tunneled_atomic *payload = far->addr;
    struct ibv_mr *mr = reg(mem, PAGE, RIGHTS | IBV_EXP_ACCESS_TUNNELED_ATOMIC);
    struct ibv_sge sge = {.addr = (uintptr_t)far->addr, .length = 16, .lkey = far->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    uint64_t word = 40;

    ck_assert_ptr_nonnull(mr);
    memcpy(mem + 64, &word, 8);
    memset(payload, 0, 16);
    PRM_SET(tunneled_atomic, payload, op, PRM_TUNNELED_OP_ADD);
    PRM_SET(tunneled_atomic, payload, log_size, 3);
    PRM_SET(tunneled_atomic, payload, operand, 2);
    wr.wr.rdma.remote_addr = (uintptr_t)mem + 64;
    wr.wr.rdma.rkey = mr->rkey;
    ck_assert_int_eq(ibv_post_send(far_qp, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, far_cq).status, IBV_WC_SUCCESS);
    memcpy(&word, mem + 64, 8);
    ck_assert_uint_eq(word, 42);

    sge.length = 8; /* no operation */
    ck_assert_int_eq(ibv_post_send(far_qp, &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, far_cq).status, IBV_WC_REM_ACCESS_ERR);
    memcpy(&word, mem + 64, 8);
    ck_assert_uint_eq(word, 42);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(mem);
}
END_TEST

START_TEST(tunneled_atomics_need_rights_to_write)
{
    uint8_t *mem = aligned_alloc(PAGE, PAGE);

    expect_refused(mem, PAGE, IBV_EXP_ACCESS_TUNNELED_ATOMIC, EINVAL);
    expect_refused(mem, PAGE, IBV_EXP_ACCESS_TUNNELED_ATOMIC | IBV_EXP_ACCESS_LOCAL_WRITE, EINVAL);
    expect_refused(mem, PAGE, IBV_EXP_ACCESS_TUNNELED_ATOMIC | RIGHTS | IBV_EXP_ACCESS_ON_DEMAND,
                   EINVAL);
    free(mem);
}
END_TEST

/* -- shared regions ---------------------------------------------------------------------------- */

static struct ibv_mr *reg_shared(struct ibv_pd *in, uint32_t handle, uint64_t access)
{
    struct ibv_exp_reg_shared_mr_in shared = {.mr_handle = handle, .pd = in, .exp_access = access};

    errno = 0;
    return verbs_get_exp_ctx_op(in->context, lib_exp_ibv_reg_shared_mr)
        ->lib_exp_ibv_reg_shared_mr(&shared);
}

/* "Once ibv_exp_reg_shared_mr() has succeeded its memory is valid even if original MR was released
 * by ibv_dereg_mr() call." */
START_TEST(a_region_can_be_registered_again_by_its_handle)
{
    struct ibv_pd *far_pd = far->pd;
    struct ibv_mr *mr = reg(NULL, PAGE + 1, RIGHTS | USER_BOTH | IBV_EXP_ACCESS_ALLOCATE_MR);
    struct ibv_mr *other;
    uint32_t handle;

    ck_assert_ptr_nonnull(mr);
    handle = mr->handle;
    ck_assert_uint_ge(handle, 1);
    ck_assert_uint_le(handle, 0xffff);
    other = reg_shared(far_pd, handle, RIGHTS);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_ne(other->addr, mr->addr);
    ck_assert_uint_eq(other->length, 2 * PAGE);
    ck_assert_uint_eq(other->handle, handle);
    strcpy(other->addr, "seen by both");
    ck_assert_str_eq(mr->addr, "seen by both");

    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_ptr_null(reg_shared(far_pd, handle, RIGHTS));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_str_eq(other->addr, "seen by both");
    ck_assert_int_eq(ibv_dereg_mr(other), 0);
}
END_TEST

/* The device of the region's owner reads the bytes that another process writes, and the other way
 * around. */
START_TEST(another_process_shares_the_memory)
{
    struct ibv_mr *mr = reg(NULL, PAGE, RIGHTS | USER_BOTH | IBV_EXP_ACCESS_ALLOCATE_MR);
    int status;
    pid_t pid;

    ck_assert_ptr_nonnull(mr);
    pid = fork();
    if (!pid) {
        struct hv_shared *shared = NULL;

        if (hv_shared_open(v->hca[0], mr->handle, true, NULL, &shared)) {
            _exit(1);
        }
        munmap(mr->addr, PAGE); /* only the new mapping is left */
        strcpy(shared->addr, "from another process");
        hv_shared_free(shared);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, (uintptr_t)mr->addr, 21), IBV_WC_SUCCESS);
    ck_assert_str_eq(far->addr, "from another process");
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

START_TEST(a_region_of_a_process_that_was_killed_is_gone)
{
    uint32_t number = 0;
    struct hv_shared *shared = NULL;
    int tell[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(tell), 0);
    pid = fork();
    if (!pid) {
        if (!hv_shared_new(v->hca[0], PAGE, 0600, NULL, &shared)) {
            number = shared->number;
        }
        _exit(write(tell[1], &number, sizeof(number)) != sizeof(number)); /* without cleaning up */
    }
    ck_assert_int_eq(read(tell[0], &number, sizeof(number)), sizeof(number));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(tell[0]);
    close(tell[1]);
    ck_assert_uint_ne(number, 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(hv_shared_open(v->hca[0], number, false, NULL, &shared), EINVAL);
    }
}
END_TEST

/* A child of fork() gives up its copy of a region: the region stays its parent's. */
START_TEST(a_child_does_not_end_its_parents_region)
{
    struct ibv_mr *mr =
        reg(NULL, PAGE,
            USER_BOTH | IBV_EXP_ACCESS_ALLOCATE_MR | (_i ? IBV_EXP_ACCESS_NO_RDMA : RIGHTS));
    struct hv_shared *shared = NULL;
    int status;
    pid_t pid;

    ck_assert_ptr_nonnull(mr);
    pid = fork();
    if (!pid) {
        ibv_dereg_mr(mr);
        exit(0); /* and the library's own end */
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(hv_shared_open(v->hca[0], mr->handle, true, NULL, &shared), 0);
    hv_shared_free(shared);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* The owner has a child of fork() that lives on. When the owner is gone, so is its region. */
START_TEST(a_region_ends_with_its_owner_and_not_with_its_owners_child)
{
    struct hv_shared *shared = NULL;
    int tell[2], hold[2], status;
    uint32_t number = 0;
    pid_t owner;

    ck_assert_int_eq(pipe(tell) | pipe(hold), 0);
    owner = fork();
    if (!owner) {
        if (hv_shared_new(v->hca[0], PAGE, 0600, NULL, &shared)) {
            _exit(1);
        }
        number = shared->number;
        if (!fork()) {
            char byte;

            /* it tells when its fork() is over */
            close(hold[1]);
            _exit(write(tell[1], &number, sizeof(number)) != sizeof(number) ||
                  read(hold[0], &byte, 1) != 0);
        }
        _exit(0);
    }
    ck_assert_int_eq(read(tell[0], &number, sizeof(number)), sizeof(number));
    ck_assert_int_eq(waitpid(owner, &status, 0), owner);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(hv_shared_open(v->hca[0], number, false, NULL, &shared), EINVAL);
    for (unsigned i = 0; i < 2; i++) {
        close(tell[i]);
        close(hold[i]);
    }
}
END_TEST

/* A program that ends without deregistering a region leaves no file behind. */
START_TEST(nothing_of_a_region_is_left_by_a_program_that_ends)
{
    struct hv_shared *shared = NULL;
    uint32_t number = 0;
    int tell[2], status;
    struct stat file;
    char path[64];
    pid_t pid;

    ck_assert_int_eq(pipe(tell), 0);
    pid = fork();
    if (!pid) {
        if (hv_shared_new(v->hca[0], PAGE, 0600, NULL, &shared)) {
            _exit(1);
        }
        exit(write(tell[1], &shared->number, sizeof(number)) != sizeof(number));
    }
    ck_assert_int_eq(read(tell[0], &number, sizeof(number)), sizeof(number));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    snprintf(path, sizeof(path), "/dev/shm/hcasim-shared-mr-%04x", number);
    ck_assert_int_eq(stat(path, &file), -1);
    ck_assert_int_eq(errno, ENOENT);
    close(tell[0]);
    close(tell[1]);
}
END_TEST

/* ibv_exp_dereg_mr() tells whether the program's own memory was marked as not for children of
 * fork(): the memory of the library and of a region that is paged on demand was not. */
START_TEST(a_deregistration_tells_whose_memory_it_was)
{
    uint8_t *mem = aligned_alloc(PAGE, PAGE);
    struct ibv_mr *mr[3] = {reg(mem, PAGE, RIGHTS),
                            reg(NULL, PAGE, RIGHTS | IBV_EXP_ACCESS_ALLOCATE_MR),
                            reg(mem, PAGE, IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ON_DEMAND)};

    for (unsigned i = 0; i < 3; i++) {
        struct ibv_exp_dereg_out out = {.need_dofork = -1};

        ck_assert_ptr_nonnull(mr[i]);
        ck_assert_int_eq(
            verbs_get_exp_ctx_op(mr[i]->context, drv_exp_dereg_mr)->drv_exp_dereg_mr(mr[i], &out),
            0);
        ck_assert_int_eq(out.need_dofork, i == 0);
    }
    free(mem);
}
END_TEST

START_TEST(shared_memory_without_rdma_has_no_key)
{
    struct ibv_mr *mr = reg(NULL, PAGE, RIGHTS | USER_BOTH | IBV_EXP_ACCESS_ALLOCATE_MR), *other;

    other = reg_shared(pd, mr->handle, IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_NO_RDMA);
    ck_assert_ptr_nonnull(other);
    ck_assert_uint_eq(other->lkey, 0);
    ck_assert_uint_eq(other->rkey, 0);
    strcpy(other->addr, "memory alone");
    ck_assert_str_eq(mr->addr, "memory alone");
    ck_assert_int_eq(ibv_dereg_mr(other), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

START_TEST(numbers_that_name_nothing_are_refused)
{
    static const uint32_t numbers[] = {0, 0x10000, UINT32_MAX};
    struct ibv_exp_reg_shared_mr_in in = {.pd = pd, .comp_mask = 1};

    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        ck_assert_ptr_null(reg_shared(pd, numbers[i], 0));
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_ptr_null(reg_shared(pd, 1, IBV_EXP_ACCESS_ON_DEMAND));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(verbs_get_exp_ctx(v->a)->lib_exp_ibv_reg_shared_mr(&in));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* -- windows, device memory, prefetch ---------------------------------------------------------- */

START_TEST(a_window_is_bound)
{
    uint8_t *mem = aligned_alloc(PAGE, PAGE);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    uint32_t before = mw->rkey;
    struct ibv_exp_mw_bind bind = {.qp = qp, .mw = mw, .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    struct ibv_mr *mr;

    mr = reg(mem, PAGE, RIGHTS | IBV_EXP_ACCESS_MW_BIND);
    bind.bind_info.mr = mr;
    bind.bind_info.addr = (uintptr_t)mem + 16;
    bind.bind_info.length = 16;
    bind.bind_info.exp_mw_access_flags = IBV_EXP_ACCESS_REMOTE_READ;
    ck_assert_int_eq(ibv_exp_bind_mw(&bind), 0);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
    ck_assert_uint_ne(mw->rkey, before);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(mem);
}
END_TEST

START_TEST(device_memory_is_copied_and_registered)
{
    struct ibv_exp_alloc_dm_attr attr = {.length = 130};
    struct ibv_exp_dm *dm = ibv_exp_alloc_dm(v->a, &attr);
    char text[16] = "0123456789abcde", back[16] = {0};
    struct ibv_exp_memcpy_dm_attr copy = {
        .memcpy_dir = IBV_EXP_DM_CPY_TO_DEVICE, .host_addr = text, .dm_offset = 64, .length = 15};
    struct ibv_exp_reg_mr_in in = {.pd = pd,
                                   .addr = (void *)64,
                                   .length = 32,
                                   .exp_access = RIGHTS,
                                   .comp_mask = IBV_EXP_REG_MR_DM,
                                   .dm = dm};
    struct ibv_mr *mr;

    ck_assert_ptr_nonnull(dm);
    ck_assert_ptr_eq(dm->context, v->a);
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), 0);
    memcpy(text, "XYZ?", 4);
    copy.length = 3; /* the fourth byte of the word stays */
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), 0);
    copy.memcpy_dir = IBV_EXP_DM_CPY_TO_HOST;
    copy.host_addr = back;
    copy.length = 15;
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), 0);
    ck_assert_str_eq(back, "XYZ3456789abcde");
    copy.dm_offset = 66;
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), EINVAL);
    copy.dm_offset = 120;
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), EINVAL);
    copy.dm_offset = UINT64_MAX - 3;
    ck_assert_int_eq(ibv_exp_memcpy_dm(dm, &copy), EINVAL);

    mr = ibv_exp_reg_mr(&in);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, mr->lkey, 0, 15), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "XYZ3456789abcde", 15);
    ck_assert_int_eq(ibv_exp_free_dm(dm), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    in.length = 67;
    ck_assert_ptr_null(ibv_exp_reg_mr(&in));
    ck_assert_int_eq(errno, EFAULT);
    in.length = 8;
    in.exp_access = IBV_EXP_ACCESS_MW_BIND;
    ck_assert_ptr_null(ibv_exp_reg_mr(&in));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_exp_free_dm(dm), 0);
    attr.length = HV_DM_CAP(v->hca[0], max_memic_size) + 1;
    ck_assert_ptr_null(ibv_exp_alloc_dm(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(prefetch_is_for_regions_on_demand)
{
    uint8_t *mem = aligned_alloc(PAGE, 4 * PAGE);
    struct ibv_exp_prefetch_attr attr = {
        .flags = IBV_EXP_PREFETCH_WRITE_ACCESS, .addr = mem + PAGE, .length = PAGE};
    struct ibv_mr *plain = reg(mem, 4 * PAGE, RIGHTS), *on_demand;

    ck_assert_int_eq(ibv_exp_prefetch_mr(plain, &attr), EINVAL);
    ck_assert_int_eq(ibv_dereg_mr(plain), 0);

    /* the pages of a relaxed region come at its registration, or at the latest before it ends */
    on_demand = reg(mem, 4 * PAGE, RIGHTS | IBV_EXP_ACCESS_ON_DEMAND | IBV_EXP_ACCESS_RELAXED);
    ck_assert_ptr_nonnull(on_demand);
    ck_assert_int_eq(ibv_exp_prefetch_mr(on_demand, &attr), 0);
    attr.length = 3 * PAGE + 1;
    ck_assert_int_eq(ibv_exp_prefetch_mr(on_demand, &attr), EFAULT);
    attr.addr = mem - 1;
    attr.length = 1;
    ck_assert_int_eq(ibv_exp_prefetch_mr(on_demand, &attr), EFAULT);
    attr.flags = 2;
    ck_assert_int_eq(ibv_exp_prefetch_mr(on_demand, &attr), EINVAL);
    ck_assert_int_eq(ibv_dereg_mr(on_demand), 0);
    ck_assert_uint_ge(v->hca[0]->odp->stats.prefetched, 4);
    free(mem);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("exp_memory");
    TCase *tc = tcase_create("exp_memory");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_library_allocates_the_memory_of_a_region);
    tcase_add_test(tc, contiguous_memory_lies_where_the_program_wants_it);
    tcase_add_test(tc, what_contradicts_itself_is_refused);
    tcase_add_test(tc, bus_addresses_need_the_capability);
    tcase_add_test(tc, a_write_to_a_tunneled_region_is_an_atomic);
    tcase_add_test(tc, tunneled_atomics_need_rights_to_write);
    tcase_add_test(tc, a_region_can_be_registered_again_by_its_handle);
    tcase_add_test(tc, another_process_shares_the_memory);
    tcase_add_test(tc, a_region_of_a_process_that_was_killed_is_gone);
    tcase_add_loop_test(tc, a_child_does_not_end_its_parents_region, 0, 2);
    tcase_add_test(tc, a_region_ends_with_its_owner_and_not_with_its_owners_child);
    tcase_add_test(tc, nothing_of_a_region_is_left_by_a_program_that_ends);
    tcase_add_test(tc, a_deregistration_tells_whose_memory_it_was);
    tcase_add_test(tc, shared_memory_without_rdma_has_no_key);
    tcase_add_test(tc, numbers_that_name_nothing_are_refused);
    tcase_add_test(tc, a_window_is_bound);
    tcase_add_test(tc, device_memory_is_copied_and_registered);
    tcase_add_test(tc, prefetch_is_for_regions_on_demand);
    suite_add_tcase(suite, tc);
    return suite;
}
