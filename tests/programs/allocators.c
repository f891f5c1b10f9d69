/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a parent domain's allocators in real time, with the library's helper thread beside the
 * program. The program unmaps memory as soon as free() is called, so a thread that still looks at a
 * ring or record ends the test. And a program that ends keeps what it did not destroy.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define PAGE   4096u
#define PIECES 8 /* two QPs and an SRQ have 6 */
#define ROUNDS 100

/* The memory is pages of its own, and begins inside the first one if the alignment allows that. */
struct piece {
    void *ptr, *pages;
    size_t len;
};

/* Counts that a parent and its child share. */
static struct counts {
    unsigned allocs, frees, inside;
} * counts;
static struct piece pieces[PIECES];
static struct ibv_pd *real;

static void *program_alloc(struct ibv_pd *of, void *context, size_t size, size_t alignment,
                           uint64_t type)
{
    struct piece *p = pieces;

    (void)of;
    (void)context;
    (void)type;
    while (p->ptr) {
        must(++p < pieces + PIECES, "more than %d pieces", PIECES);
    }
    p->len = (size + 2 * PAGE - 1) & ~(size_t)(PAGE - 1);
    p->pages = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(p->pages != MAP_FAILED, "errno %d", errno);
    p->ptr = (uint8_t *)p->pages + (alignment < PAGE ? PAGE - alignment : 0);
    counts->allocs++;
    counts->inside += alignment < PAGE;
    return p->ptr;
}

static void program_free(struct ibv_pd *of, void *context, void *ptr, uint64_t type)
{
    struct piece *p = pieces;

    (void)of;
    (void)context;
    (void)type;
    while (p->ptr != ptr) {
        must(++p < pieces + PIECES, "free() of %p", ptr);
    }
    must_be_0(munmap(p->pages, p->len));
    p->ptr = NULL;
    counts->frees++;
}

/* Opens the device; the PD of both ends is a parent domain. */
static void domain_open(void)
{
    struct ibv_parent_domain_init_attr attr = {.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
                                               .alloc = program_alloc,
                                               .free = program_free};

    device_open();
    attr.pd = real = pd[0];
    pd[0] = pd[1] = ibv_alloc_parent_domain(ctx[0], &attr);
    must(pd[0], "errno %d", errno);
}

static void setup(void)
{
    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(counts, MAP_FAILED);
}

START_TEST(nobody_looks_at_memory_that_was_given_back)
{
    domain_open();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct pair *p = pair_new(false, round % 2);

        for (unsigned n = 0; n < round % 8; n++) {
            message(p, 0, n);
        }
        pair_free(p);
        must(counts->frees == counts->allocs, "%u of %u", counts->frees, counts->allocs);
    }
    must(counts->allocs == ROUNDS / 2 * (4 + 6), "%u", counts->allocs);
    must(counts->inside, "no ring began inside a page");
    must_be_0(ibv_dealloc_pd(pd[0]));
    pd[0] = pd[1] = real;
    device_close();
}
END_TEST

START_TEST(a_program_that_ends_keeps_its_memory)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        domain_open();
        message(pair_new(false, true), 0, 0);
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(counts->allocs, 6);
    ck_assert_uint_eq(counts->frees, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-allocators-program");
    TCase *tc = tcase_create("allocators");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, nobody_looks_at_memory_that_was_given_back);
    tcase_add_test(tc, a_program_that_ends_keeps_its_memory);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "verbs-allocators");
}
