/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a process's memory as its HCA accesses it (guest-lib/host/memory.h): existing memory is
 * read and written, missing memory fails, and a fault that is not the HCA's belongs to the program.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/host/far.h"
#include "guest-lib/host/memory.h"
#include "tests/unit/suite.h"

#define PAGE 4096u

static uint8_t *page; /* the pages before and behind it are inaccessible */

static uint64_t addr(const void *ptr)
{
    return (uintptr_t)ptr;
}

static void setup(void)
{
    page = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    page += PAGE;
    ck_assert_int_eq(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
    signal(SIGSEGV, SIG_DFL); /* other watchers of the test, such as a sanitizer */
    signal(SIGBUS, SIG_DFL);
    memory_catch_faults();
}

static void teardown(void)
{
    munmap(page - PAGE, 3 * PAGE);
}

/* Compare and swap, as a device does it in a program's memory. */
static bool swap(uint64_t at, size_t len, uint64_t *expected, uint64_t desired,
                 const struct memory_missed *missed)
{
    struct host_atomic op = {HOST_ATOMIC_CMP_SWAP, .operand = desired, .compare = *expected};
    bool there = memory_atomic(at, len, &op, missed);

    if (there) {
        *expected = op.held;
    }
    return there;
}

START_TEST(present_memory_is_read_and_written)
{
    uint8_t from[100], to[100];
    uint64_t expected = 0;

    for (unsigned i = 0; i < sizeof(from); i++) {
        from[i] = (uint8_t)(i + 1);
    }
    for (unsigned at = 0; at < 9; at++) {
        for (unsigned len = 0; len <= sizeof(from); len++) {
            memset(page, 0xee, 2 * sizeof(from));
            ck_assert(memory_write(addr(page + at), from, len, NULL));
            ck_assert_mem_eq(page + at, from, len);
            ck_assert_uint_eq(page[at + len], 0xee);
            memset(to, 0xee, sizeof(to));
            ck_assert(memory_read(addr(page + at), to, len, NULL));
            ck_assert_mem_eq(to, from, len);
            ck_assert(len == sizeof(to) || to[len] == 0xee);
        }
    }
    memset(page, 0, 8);
    ck_assert(swap(addr(page), 8, &expected, 5, NULL));
    ck_assert_uint_eq(*(uint64_t *)page, 5);
    ck_assert(swap(addr(page), 8, &expected, 7, NULL));
    ck_assert_uint_eq(expected, 5); /* the value that was found instead */
    ck_assert_uint_eq(*(uint64_t *)page, 5);
    /* a word of 4 bytes leaves its neighbour alone */
    expected = 0;
    ck_assert(swap(addr(page + 4), 4, &expected, 9, NULL));
    ck_assert_uint_eq(*(uint64_t *)page, 9ull << 32 | 5);
    ck_assert(swap(addr(page), 4, &expected, 1, NULL));
    ck_assert_uint_eq(expected, 5);
}
END_TEST

/* Whatever part of a cache line it begins and ends in, exactly these bytes are copied. */
START_TEST(a_far_copy_has_the_same_bytes)
{
    static const unsigned lens[] = {0, 1, 63, 64, 65, 127, 128, 191, 1000, 2048, 2111, 3000};
    static _Alignas(FAR_LINE) uint8_t to[PAGE];

    for (unsigned i = 0; i < PAGE; i++) {
        page[i] = (uint8_t)(i * 7 + i / 256);
    }
    for (unsigned n = 0; n < sizeof(lens) / sizeof(lens[0]); n++) {
        for (unsigned at = 1; at <= FAR_LINE; at++) {
            unsigned from = (at * 5) % 32;

            memset(to, 0xee, sizeof(to));
            ck_assert(memory_read_far(addr(page + from), to + at, lens[n], NULL));
            ck_assert_mem_eq(to + at, page + from, lens[n]);
            ck_assert_uint_eq(to[at - 1], 0xee);
            ck_assert_uint_eq(to[at + lens[n]], 0xee);
        }
    }
    ck_assert(!memory_read_far(addr(page + 1), to, PAGE, NULL));
    ck_assert(!memory_read_far(addr(page - 1), to, 1, NULL));
}
END_TEST

/* One inaccessible byte at the end of an access is enough. */
START_TEST(an_access_to_missing_memory_fails)
{
    static const unsigned lens[] = {1, 4, 8, 64, 100};
    uint8_t buf[100] = {0};
    uint64_t expected = 0;

    for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        ck_assert(!memory_read(addr(page + PAGE + 1) - lens[i], buf, lens[i], NULL));
        ck_assert(!memory_write(addr(page + PAGE + 1) - lens[i], buf, lens[i], NULL));
        ck_assert(!memory_read(addr(page - 1), buf, lens[i], NULL));
        ck_assert(memory_read(addr(page + PAGE) - lens[i], buf, lens[i], NULL));
        ck_assert(memory_write(addr(page + PAGE) - lens[i], buf, lens[i], NULL));
    }
    ck_assert(!swap(addr(page + PAGE), 8, &expected, 1, NULL));
    ck_assert_int_eq(mprotect(page, PAGE, PROT_READ), 0);
    ck_assert(memory_read(addr(page), buf, 64, NULL));
    ck_assert(!memory_write(addr(page), buf, 64, NULL));
    ck_assert(!swap(addr(page), 8, &expected, 1, NULL));
}
END_TEST

struct told {
    unsigned times;
    uint64_t addr;
    size_t len;
};

static void be_told(void *opaque, uint64_t missed, size_t len)
{
    struct told *told = opaque;

    *told = (struct told){told->times + 1, missed, len};
}

/* Tells about the failed access: after a fault only what was recorded for it is left. */
START_TEST(a_failed_access_is_reported_to_its_caller)
{
    struct told told = {0};
    const struct memory_missed missed = {be_told, &told};
    uint64_t expected = 0;
    uint8_t buf[100] = {0};

    ck_assert(memory_read(addr(page), buf, 64, &missed));
    ck_assert_uint_eq(told.times, 0);
    ck_assert(!memory_read(addr(page + PAGE), buf, 64, &missed));
    ck_assert_uint_eq(told.addr, addr(page + PAGE));
    ck_assert_uint_eq(told.len, 64);
    ck_assert(!memory_read_far(addr(page - 1), buf, 100, &missed));
    ck_assert_uint_eq(told.addr, addr(page - 1));
    ck_assert_uint_eq(told.len, 100);
    ck_assert(!memory_write(addr(page + PAGE - 4), buf, 5, &missed));
    ck_assert_uint_eq(told.addr, addr(page + PAGE - 4));
    ck_assert_uint_eq(told.len, 5);
    ck_assert(!swap(addr(page + PAGE), 8, &expected, 1, &missed));
    ck_assert_uint_eq(told.addr, addr(page + PAGE));
    ck_assert_uint_eq(told.len, 8);
    ck_assert(!memory_read(1, buf, 3, &missed)); /* without a fault, too */
    ck_assert_uint_eq(told.addr, 1);
    ck_assert_uint_eq(told.len, 3);
    ck_assert_uint_eq(told.times, 5);
}
END_TEST

START_TEST(an_access_to_an_impossible_address_fails)
{
    uint8_t buf[16] = {0};
    uint64_t expected = 0;

    ck_assert(!memory_read(0, buf, 1, NULL));
    ck_assert(!memory_write(PAGE - 1, buf, 1, NULL));
    ck_assert(!memory_read(UINT64_MAX - 7, buf, 16, NULL)); /* past the end and round */
    ck_assert(!memory_read(0x8000000000000000, buf, 16, NULL));
    ck_assert(!swap(addr(page + 4), 8, &expected, 1, NULL)); /* not aligned */
    ck_assert_uint_eq(*(uint64_t *)(page + 8), 0);
}
END_TEST

#define ADDITIONS 100000

static void *add_in_a_loop(void *opaque)
{
    for (unsigned i = 0; i < ADDITIONS; i++) {
        __atomic_fetch_add((uint64_t *)opaque, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* A device's and a CPU's additions at the same time: none is lost, and none sees the other in
 * between. */
START_TEST(additions_of_a_device_and_of_a_cpu_are_all_there)
{
    uint64_t *word = (uint64_t *)page;
    pthread_t cpu;

    *word = 0;
    ck_assert_int_eq(pthread_create(&cpu, NULL, add_in_a_loop, word), 0);
    for (unsigned i = 0; i < ADDITIONS; i++) {
        struct host_atomic op = {HOST_ATOMIC_ADD, .operand = 1};

        ck_assert(memory_atomic(addr(word), 8, &op, NULL) && !op.lost);
    }
    ck_assert_int_eq(pthread_join(cpu, NULL), 0);
    ck_assert_uint_eq(*word, 2 * ADDITIONS);
}
END_TEST

static void *read_page_by_page(void *opaque)
{
    uint8_t buf[8];

    memory_unblock_faults();
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(memory_read(addr(page), buf, 8, NULL));
        ck_assert(!memory_read(addr(page + PAGE), buf, 8, NULL));
    }
    return NULL;
}

/* Each thread has its own window: one thread's fault does not end another thread's access. */
START_TEST(each_thread_has_its_own_faults)
{
    pthread_t threads[4];
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* as in the helper (local_start()) */
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_page_by_page, NULL), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
END_TEST

/* The same holds after a failed access. */
START_TEST(a_fault_outside_of_an_access_is_the_programs)
{
    uint8_t byte;

    ck_assert(!memory_read(addr(page + PAGE), &byte, 1, NULL));
    ck_assert(memory_read(addr(page), &byte, 1, NULL));
    *(volatile uint8_t *)(page + PAGE) = 1;
}
END_TEST

/* A signal from kill() is not a fault, wherever the thread is. */
START_TEST(a_signal_of_kill_is_no_fault_of_memory)
{
    raise(SIGSEGV);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("guest-memory");
    TCase *tc = tcase_create("guest-memory");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, present_memory_is_read_and_written);
    tcase_add_test(tc, a_far_copy_has_the_same_bytes);
    tcase_add_test(tc, an_access_to_missing_memory_fails);
    tcase_add_test(tc, a_failed_access_is_reported_to_its_caller);
    tcase_add_test(tc, an_access_to_an_impossible_address_fails);
    tcase_add_test(tc, additions_of_a_device_and_of_a_cpu_are_all_there);
    tcase_add_test(tc, each_thread_has_its_own_faults);
    tcase_add_test_raise_signal(tc, a_fault_outside_of_an_access_is_the_programs, SIGSEGV);
    tcase_add_test_raise_signal(tc, a_signal_of_kill_is_no_fault_of_memory, SIGSEGV);
    suite_add_tcase(suite, tc);
    return suite;
}
