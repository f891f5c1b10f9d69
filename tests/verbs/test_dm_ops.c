/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests operations on device memory (mlx5dv_dm_map_op_addr()): each instruction that loads, stores
 * or compares a word does the operation, and does to the registers what it does with plain memory.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "guest-lib/host/mmio.h"
#include "guest-lib/host/mmio_insn.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define PAGE    4096u
#define LENGTH  (3 * PAGE)
#define INC     PRM_MEMIC_OPERATION_INCREMENT
#define TAS     PRM_MEMIC_OPERATION_TEST_AND_SET
#define THREADS 4
#define TIMES   500

static struct verbs_table *v;
static struct ibv_dm *dm;
static volatile uint8_t *memory; /* where the program sees it */

static void setup(void)
{
    struct ibv_alloc_dm_attr attr = {.length = LENGTH};

    v = verbs_table_new();
    dm = ibv_alloc_dm(v->a, &attr);
    ck_assert_ptr_nonnull(dm);
    memory = hv_dm(dm)->map;
}

static void teardown(void)
{
    if (dm) {
        ck_assert_int_eq(ibv_free_dm(dm), 0);
    }
    verbs_table_free(v);
}

static volatile uint8_t *map_op(uint8_t op)
{
    void *at = hv_dv_dm_map_op_addr(dm, op);

    ck_assert_ptr_nonnull(at);
    return at;
}

static void unmap(volatile uint8_t *at)
{
    ck_assert_int_eq(munmap((void *)(uintptr_t)at, LENGTH), 0);
}

/* -- what an operation does -------------------------------------------------------------------- */

/* Test test_dm_atomic_ops of rdma-core. */
START_TEST(increments_are_counted_and_the_word_is_set)
{
    volatile uint8_t *inc = map_op(INC), *tas = map_op(TAS);

    *inc = 1;
    *inc = 1;
    ck_assert_uint_eq(*tas, 2);
    ck_assert_uint_eq(*tas, 1);
    ck_assert_uint_eq(memory[0], 1);
    unmap(inc);
    unmap(tas);
}
END_TEST

START_TEST(each_word_of_the_memory_has_its_address)
{
    volatile uint8_t *inc = map_op(INC), *tas = map_op(TAS);

    for (unsigned at = 0; at < LENGTH; at += 1000) {
        *(volatile uint32_t *)(inc + at) = at + 7;
        ck_assert_uint_eq(*(volatile uint32_t *)(memory + at), at + 7);
        ck_assert_uint_eq(*(volatile uint32_t *)(tas + at), at + 7);
        ck_assert_uint_eq(*(volatile uint32_t *)(memory + at), 1);
    }
    unmap(inc);
    unmap(tas);
}
END_TEST

static void *increments(void *at)
{
    for (unsigned i = 0; i < TIMES; i++) {
        *(volatile uint16_t *)at = 1;
    }
    return NULL;
}

/* No increment of a thread is lost. */
START_TEST(operations_of_threads_are_atomic)
{
    volatile uint8_t *inc = map_op(INC);
    pthread_t thread[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, increments, (void *)(uintptr_t)inc), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    ck_assert_uint_eq(*(volatile uint16_t *)memory, THREADS * TIMES);
    unmap(inc);
}
END_TEST

START_TEST(unknown_operations_are_refused)
{
    for (unsigned op = 2; op < 256; op += 10) {
        errno = 0;
        ck_assert_ptr_null(hv_dv_dm_map_op_addr(dm, (uint8_t)op));
        ck_assert_int_eq(errno, EOPNOTSUPP);
    }
}
END_TEST

/* -- mappings ---------------------------------------------------------------------------------- */

/* A program unmaps them without a call of the library. */
START_TEST(unmapped_ranges_are_forgotten)
{
    volatile uint8_t *kept[200];

    for (unsigned i = 0; i < 1000; i++) {
        unmap(map_op(INC));
    }
    ck_assert_uint_le(mmio_ranges(), 4);
    for (unsigned n = 0; n < 3; n++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(kept); i++) {
            kept[i] = map_op(INC);
            *kept[i] = 1;
        }
        for (unsigned i = 0; i < G_N_ELEMENTS(kept); i++) {
            unmap(kept[i]);
        }
    }
    ck_assert_uint_le(mmio_ranges(), G_N_ELEMENTS(kept) + 64);
    ck_assert_uint_eq(memory[0], (uint8_t)(3 * G_N_ELEMENTS(kept)));
}
END_TEST

START_TEST(addresses_of_freed_memory_do_nothing)
{
    volatile uint8_t *inc = map_op(INC), *tas = map_op(TAS), *new_inc, *new_tas;
    struct ibv_alloc_dm_attr attr = {.length = LENGTH};

    ck_assert_int_eq(ibv_free_dm(dm), 0);
    dm = ibv_alloc_dm(v->a, &attr); /* takes the same place */
    ck_assert_ptr_nonnull(dm);
    memory = hv_dm(dm)->map;
    new_inc = map_op(INC);
    new_tas = map_op(TAS);
    *new_inc = 5;
    *inc = 1;
    ck_assert_uint_eq(*tas, 0);
    ck_assert_uint_eq(*new_tas, 5);
    unmap(new_inc);
    unmap(new_tas);
    unmap(inc);
    unmap(tas);
}
END_TEST

START_TEST(addresses_of_a_removed_device_do_nothing)
{
    volatile uint8_t *inc = map_op(INC), *tas = map_op(TAS);

    hv_hca_remove(v->hca[0]);
    *inc = 1;
    ck_assert_uint_eq(*tas, 0);
    errno = 0;
    ck_assert_ptr_null(hv_dv_dm_map_op_addr(dm, INC));
    ck_assert_int_eq(errno, EIO);
    unmap(inc);
    unmap(tas);
}
END_TEST

/* ASan takes the signals of faults, and ends the program by itself. */
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN true
#else
#define UNDER_ASAN false
#endif

START_TEST(a_fault_elsewhere_is_the_programs)
{
    volatile uint8_t *inc = map_op(INC);

    unmap(inc);
    *inc = 1;
}
END_TEST

/* -- instructions ------------------------------------------------------------------------------ */

#ifdef __x86_64__

/* Runs an instruction with RAX = *rax and RDI = at. Returns the flags. */
#define INSN(name, text)                                                                           \
    static uint64_t insn_##name(void *at, uint64_t *rax)                                           \
    {                                                                                              \
        uint64_t flags;                                                                            \
                                                                                                   \
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"                                              \
                         "xor %%ecx, %%ecx\n\t" text "\n\t"                                        \
                         "pushfq\n\t"                                                              \
                         "popq %1\n\t"                                                             \
                         "lea 128(%%rsp), %%rsp"                                                   \
                         : "+a"(*rax), "=&r"(flags)                                                \
                         : "D"(at)                                                                 \
                         : "rcx", "rsi", "r8", "r9", "r12", "r13", "xmm0", "xmm9", "memory",       \
                           "cc");                                                                  \
        return flags;                                                                              \
    }

struct insn {
    uint64_t (*run)(void *at, uint64_t *rax);
    const char *text;
    unsigned size;
    bool tests; /* leaves AF undefined */
};

/* clang-format off */
INSN(load_0, "movb (%%rdi), %%al")
INSN(load_1, "movb (%%rdi), %%ah")
INSN(load_2, "movb (%%rdi), %%cl; movb %%cl, %%al")
INSN(load_3, "movb %%al, %%r9b; movb (%%rdi), %%sil; movb %%sil, %%al")
INSN(load_4, "movw (%%rdi), %%ax")
INSN(load_5, "movl (%%rdi), %%eax")
INSN(load_6, "movq (%%rdi), %%rax")
INSN(load_7, "movzbl (%%rdi), %%eax")
INSN(load_8, "movzbw (%%rdi), %%ax")
INSN(load_9, "movzbq (%%rdi), %%rax")
INSN(load_10, "movzwl (%%rdi), %%eax")
INSN(load_11, "movsbl (%%rdi), %%eax")
INSN(load_12, "movsbw (%%rdi), %%ax")
INSN(load_13, "movsbq (%%rdi), %%rax")
INSN(load_14, "movswl (%%rdi), %%eax")
INSN(load_15, "movswq (%%rdi), %%rax")
INSN(load_16, "movslq (%%rdi), %%rax")
INSN(load_17, "movq (%%rdi), %%r8; movq %%r8, %%rax")
INSN(load_18, "movl (%%rdi), %%r9d; movq %%r9, %%rax")
INSN(load_19, "movq (%%rdi), %%xmm0; movq %%xmm0, %%rax")
INSN(load_20, "movd (%%rdi), %%xmm9; movq %%xmm9, %%rax")
INSN(load_21, "movss (%%rdi), %%xmm9; movq %%xmm9, %%rax")
INSN(load_22, "movsd (%%rdi), %%xmm0; movq %%xmm0, %%rax")
INSN(load_23, "lea -0x40(%%rdi), %%rsi; movl 0x40(%%rsi), %%eax")
INSN(load_24, "lea 0x1000(%%rdi), %%rsi; movl -0x1000(%%rsi), %%eax")
INSN(load_25, "movl (%%rdi,%%rcx,4), %%eax")
INSN(load_26, "movl 0x10(%%rdi,%%rcx,8), %%esi; movq %%rsi, %%rax")
INSN(load_27, "mov %%rdi, %%r13; movl (%%r13), %%eax")
INSN(load_28, "mov %%rdi, %%r12; movq (%%r12), %%rax")
INSN(load_29, "mov %%rdi, %%r12; movw 2(%%r12,%%rcx,1), %%ax")
INSN(load_30, "movl 0(,%%rdi,1), %%eax")
INSN(load_31, "cmpb $2, (%%rdi)")
INSN(load_32, "cmpb %%al, (%%rdi)")
INSN(load_33, "cmpb (%%rdi), %%ah")
INSN(load_34, "cmpw $0x1234, (%%rdi)")
INSN(load_35, "cmpl $0x12345678, (%%rdi)")
INSN(load_36, "cmpl (%%rdi), %%eax")
INSN(load_37, "cmpq $-3, (%%rdi)")
INSN(load_38, "cmpq %%rax, (%%rdi)")
INSN(load_39, "cmpw (%%rdi), %%ax")
INSN(load_40, "cmpl $5, (%%rdi)")
INSN(load_41, "testb $3, (%%rdi)")
INSN(load_42, "testl %%eax, (%%rdi)")
INSN(load_43, "testq $-16, (%%rdi)")
INSN(load_44, "testw %%ax, (%%rdi)")

static const struct insn loads[] = {
    {insn_load_0, "movb (%rdi), %al", 1, false},
    {insn_load_1, "movb (%rdi), %ah", 1, false},
    {insn_load_2, "movb (%rdi), %cl; movb %cl, %al", 1, false},
    {insn_load_3, "movb %al, %r9b; movb (%rdi), %sil; movb %sil, %al", 1, false},
    {insn_load_4, "movw (%rdi), %ax", 2, false},
    {insn_load_5, "movl (%rdi), %eax", 4, false},
    {insn_load_6, "movq (%rdi), %rax", 8, false},
    {insn_load_7, "movzbl (%rdi), %eax", 1, false},
    {insn_load_8, "movzbw (%rdi), %ax", 1, false},
    {insn_load_9, "movzbq (%rdi), %rax", 1, false},
    {insn_load_10, "movzwl (%rdi), %eax", 2, false},
    {insn_load_11, "movsbl (%rdi), %eax", 1, false},
    {insn_load_12, "movsbw (%rdi), %ax", 1, false},
    {insn_load_13, "movsbq (%rdi), %rax", 1, false},
    {insn_load_14, "movswl (%rdi), %eax", 2, false},
    {insn_load_15, "movswq (%rdi), %rax", 2, false},
    {insn_load_16, "movslq (%rdi), %rax", 4, false},
    {insn_load_17, "movq (%rdi), %r8; movq %r8, %rax", 8, false},
    {insn_load_18, "movl (%rdi), %r9d; movq %r9, %rax", 4, false},
    {insn_load_19, "movq (%rdi), %xmm0; movq %xmm0, %rax", 8, false},
    {insn_load_20, "movd (%rdi), %xmm9; movq %xmm9, %rax", 4, false},
    {insn_load_21, "movss (%rdi), %xmm9; movq %xmm9, %rax", 4, false},
    {insn_load_22, "movsd (%rdi), %xmm0; movq %xmm0, %rax", 8, false},
    {insn_load_23, "lea -0x40(%rdi), %rsi; movl 0x40(%rsi), %eax", 4, false},
    {insn_load_24, "lea 0x1000(%rdi), %rsi; movl -0x1000(%rsi), %eax", 4, false},
    {insn_load_25, "movl (%rdi,%rcx,4), %eax", 4, false},
    {insn_load_26, "movl 0x10(%rdi,%rcx,8), %esi; movq %rsi, %rax", 4, false},
    {insn_load_27, "mov %rdi, %r13; movl (%r13), %eax", 4, false},
    {insn_load_28, "mov %rdi, %r12; movq (%r12), %rax", 8, false},
    {insn_load_29, "mov %rdi, %r12; movw 2(%r12,%rcx,1), %ax", 2, false},
    {insn_load_30, "movl 0(,%rdi,1), %eax", 4, false},
    {insn_load_31, "cmpb $2, (%rdi)", 1, false},
    {insn_load_32, "cmpb %al, (%rdi)", 1, false},
    {insn_load_33, "cmpb (%rdi), %ah", 1, false},
    {insn_load_34, "cmpw $0x1234, (%rdi)", 2, false},
    {insn_load_35, "cmpl $0x12345678, (%rdi)", 4, false},
    {insn_load_36, "cmpl (%rdi), %eax", 4, false},
    {insn_load_37, "cmpq $-3, (%rdi)", 8, false},
    {insn_load_38, "cmpq %rax, (%rdi)", 8, false},
    {insn_load_39, "cmpw (%rdi), %ax", 2, false},
    {insn_load_40, "cmpl $5, (%rdi)", 4, false},
    {insn_load_41, "testb $3, (%rdi)", 1, true},
    {insn_load_42, "testl %eax, (%rdi)", 4, true},
    {insn_load_43, "testq $-16, (%rdi)", 8, true},
    {insn_load_44, "testw %ax, (%rdi)", 2, true},
};

INSN(store_0, "movb %%al, (%%rdi)")
INSN(store_1, "movb %%ah, (%%rdi)")
INSN(store_2, "mov %%rax, %%rsi; movb %%sil, (%%rdi)")
INSN(store_3, "movw %%ax, (%%rdi)")
INSN(store_4, "movl %%eax, (%%rdi)")
INSN(store_5, "movq %%rax, (%%rdi)")
INSN(store_6, "movb $0x5a, (%%rdi)")
INSN(store_7, "movw $0x1234, (%%rdi)")
INSN(store_8, "movl $0x12345678, (%%rdi)")
INSN(store_9, "movq $-2, (%%rdi)")
INSN(store_10, "movl $0x12345678, 0x100(%%rdi,%%rcx,2)")
INSN(store_11, "mov %%rax, %%r9; movq %%r9, (%%rdi)")
INSN(store_12, "movnti %%eax, (%%rdi)")
INSN(store_13, "movnti %%rax, (%%rdi)")
INSN(store_14, "movq %%rax, %%xmm0; movd %%xmm0, (%%rdi)")
INSN(store_15, "movq %%rax, %%xmm9; movq %%xmm9, (%%rdi)")
INSN(store_16, "movq %%rax, %%xmm0; movss %%xmm0, (%%rdi)")
INSN(store_17, "movq %%rax, %%xmm9; movsd %%xmm9, (%%rdi)")

static const struct insn stores[] = {
    {insn_store_0, "movb %al, (%rdi)", 1, false},
    {insn_store_1, "movb %ah, (%rdi)", 1, false},
    {insn_store_2, "mov %rax, %rsi; movb %sil, (%rdi)", 1, false},
    {insn_store_3, "movw %ax, (%rdi)", 2, false},
    {insn_store_4, "movl %eax, (%rdi)", 4, false},
    {insn_store_5, "movq %rax, (%rdi)", 8, false},
    {insn_store_6, "movb $0x5a, (%rdi)", 1, false},
    {insn_store_7, "movw $0x1234, (%rdi)", 2, false},
    {insn_store_8, "movl $0x12345678, (%rdi)", 4, false},
    {insn_store_9, "movq $-2, (%rdi)", 8, false},
    {insn_store_10, "movl $0x12345678, 0x100(%rdi,%rcx,2)", 4, false},
    {insn_store_11, "mov %rax, %r9; movq %r9, (%rdi)", 8, false},
    {insn_store_12, "movnti %eax, (%rdi)", 4, false},
    {insn_store_13, "movnti %rax, (%rdi)", 8, false},
    {insn_store_14, "movq %rax, %xmm0; movd %xmm0, (%rdi)", 4, false},
    {insn_store_15, "movq %rax, %xmm9; movq %xmm9, (%rdi)", 8, false},
    {insn_store_16, "movq %rax, %xmm0; movss %xmm0, (%rdi)", 4, false},
    {insn_store_17, "movq %rax, %xmm9; movsd %xmm9, (%rdi)", 8, false},
};

/* clang-format on */

#define FLAGS 0x8d5u /* CF, PF, AF, ZF, SF, OF */
#define AF    0x10u

static const uint64_t words[] = {
    0,
    1,
    2,
    5,
    0x7f,
    0x80,
    0xff,
    0x1234,
    0x8000,
    0x12345678,
    0x80000000,
    0xfffffffffffffffd,
    0x8000000000000000,
    0x7fffffffffffffff,
    0x0123456789abcdef,
    0xfedcba9876543210,
};

/* The two halves of the page that the instructions of different addresses reach. */
static void fill(volatile uint8_t *at, uint64_t word)
{
    for (unsigned i = 0; i < 0x200; i += 8) {
        *(volatile uint64_t *)(at + i) = word;
    }
}

/* A load of TEST_AND_SET returns the word and makes it 1. The registers and flags are those of the
 * same instruction on plain memory. */
START_TEST(every_load_is_known)
{
    const struct insn *insn = &loads[_i];
    _Alignas(8) static uint8_t plain[LENGTH];
    volatile uint8_t *tas = map_op(TAS);

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(words); j++) {
            uint64_t want = words[j], rax = words[j], want_flags, flags, mask = FLAGS;

            fill(plain + PAGE, words[i]);
            fill(memory + PAGE, words[i]);
            want_flags = insn->run(plain + PAGE, &want);
            flags = insn->run((void *)(uintptr_t)(tas + PAGE), &rax);
            mask &= insn->tests ? ~AF : ~0u;
            ck_assert_msg(rax == want && (flags & mask) == (want_flags & mask),
                          "%s of 0x%lx: 0x%lx, flags 0x%lx, not 0x%lx, flags 0x%lx", insn->text,
                          words[i], rax, flags & mask, want, want_flags & mask);
        }
    }
    fill(memory + PAGE, 0);
    insn->run((void *)(uintptr_t)(tas + PAGE), &(uint64_t){0});
    for (unsigned i = 0, ones = 0; i < 0x200; i++) {
        ones += memory[PAGE + i];
        ck_assert_uint_le(memory[PAGE + i], 1);
        ck_assert(i + 1 < 0x200 || ones == 1);
    }
    unmap(tas);
}
END_TEST

/* A store to INCREMENT adds the word, so it is what is there if there was 0. */
START_TEST(every_store_is_known)
{
    const struct insn *insn = &stores[_i];
    _Alignas(8) static uint8_t plain[LENGTH];
    volatile uint8_t *inc = map_op(INC);

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        uint64_t rax = words[i], kept = words[i];

        fill(plain + PAGE, 0);
        fill(memory + PAGE, 0);
        insn->run(plain + PAGE, &rax);
        insn->run((void *)(uintptr_t)(inc + PAGE), &kept);
        ck_assert_uint_eq(rax, kept);
        for (unsigned at = 0; at < 0x200; at++) {
            ck_assert_msg(memory[PAGE + at] == plain[PAGE + at], "%s: byte %u", insn->text, at);
        }
    }
    unmap(inc);
}
END_TEST

/* The length that the decoder finds is the length of the code: where it stops short of the next
 * instruction, the loads above go wrong. Here: code that is no load, store or comparison. */
START_TEST(other_instructions_are_not_known)
{
    static const uint8_t code[][16] = {
        {0xf0, 0xff, 0x07},       /* lock incl (%rdi) */
        {0xff, 0x07},             /* incl (%rdi) */
        {0x01, 0x07},             /* add %eax, (%rdi) */
        {0x03, 0x07},             /* add (%rdi), %eax */
        {0x87, 0x07},             /* xchg %eax, (%rdi) */
        {0xa4},                   /* movsb */
        {0xf3, 0xa4},             /* rep movsb */
        {0x0f, 0x28, 0x07},       /* movaps (%rdi), %xmm0 */
        {0x0f, 0x10, 0x07},       /* movups (%rdi), %xmm0 */
        {0xf3, 0x0f, 0x6f, 0x07}, /* movdqu (%rdi), %xmm0 */
        {0xc5, 0xfe, 0x6f, 0x07}, /* vmovdqu (%rdi), %ymm0 */
        {0x80, 0x07, 0x01},       /* addb $1, (%rdi) */
        {0xc7, 0xf8, 0, 0, 0, 0}, /* xbegin */
        {0x89, 0xc7},             /* mov %eax, %edi: no memory */
        {0x66, 0x0f, 0xc3, 0x07}, /* undefined */
    };
    struct mmio_insn insn;

    for (size_t i = 0; i < G_N_ELEMENTS(code); i++) {
        ck_assert_msg(!mmio_decode(code[i], &insn), "code %zu", i);
    }
}
END_TEST

START_TEST(a_wider_access_ends_the_program)
{
    volatile uint8_t *tas = map_op(TAS);

    __asm__ volatile("movups (%0), %%xmm0" : : "r"(tas) : "xmm0", "memory");
}
END_TEST

#endif

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs operations on device memory");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    if (mmio_is_supported()) {
        tcase_add_test(tc, increments_are_counted_and_the_word_is_set);
        tcase_add_test(tc, each_word_of_the_memory_has_its_address);
        tcase_add_test(tc, operations_of_threads_are_atomic);
        tcase_add_test(tc, unmapped_ranges_are_forgotten);
        tcase_add_test(tc, addresses_of_freed_memory_do_nothing);
        tcase_add_test(tc, addresses_of_a_removed_device_do_nothing);
    }
    if (mmio_is_supported() && !UNDER_ASAN) {
        tcase_add_test_raise_signal(tc, a_fault_elsewhere_is_the_programs, SIGSEGV);
    }
    tcase_add_test(tc, unknown_operations_are_refused);
#ifdef __x86_64__
    tcase_add_loop_test(tc, every_load_is_known, 0, (int)G_N_ELEMENTS(loads));
    tcase_add_loop_test(tc, every_store_is_known, 0, (int)G_N_ELEMENTS(stores));
    tcase_add_test(tc, other_instructions_are_not_known);
    if (!UNDER_ASAN) {
        tcase_add_test_raise_signal(tc, a_wider_access_ends_the_program, SIGBUS);
    }
#endif
    suite_add_tcase(s, tc);
    return s;
}
