/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that take memory away, replace it and fork while a device uses that memory through
 * on-demand regions, in real time.
 *
 * Written to libibverbs alone. One thread writes and reads by RDMA; the other changes the memory.
 * As long as there is memory at each address, no request may fail. What a program has taken away,
 * the device must not touch any more when the call returns.
 */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define PAGE   4096
#define PAGES  64
#define LEN    ((size_t)PAGES * PAGE)
#define ROUNDS 300
#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_ON_DEMAND)

static struct pair *p;
static uint8_t *from, *to; /* LEN bytes each; the device writes from one to the other */
static struct ibv_mr *from_mr, *to_mr;
static int rounds = ROUNDS;
static bool done;

static uint8_t *map(void)
{
    uint8_t *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    must(at != MAP_FAILED, "errno %d", errno);
    return at;
}

static void setup(void)
{
    const char *percent = getenv("PAGING_PERCENT");

    rounds = percent ? ROUNDS * atoi(percent) / 100 : ROUNDS;
    device_open();
    p = pair_new(false, false);
    from = map();
    to = map();
    from_mr = ibv_reg_mr(pd[0], from, LEN, ALL);
    to_mr = ibv_reg_mr(pd[1], to, LEN, ALL);
    must(from_mr && to_mr, "errno %d", errno);
    __atomic_store_n(&done, false, __ATOMIC_RELAXED);
}

static void teardown(void)
{
    must_be_0(ibv_dereg_mr(from_mr));
    must_be_0(ibv_dereg_mr(to_mr));
    munmap(from, LEN);
    munmap(to, LEN);
    pair_free(p);
    device_close();
}

static void post(enum ibv_wr_opcode opcode, const struct ibv_mr *local, const void *at,
                 const struct ibv_mr *remote, const void *there, size_t len)
{
    struct ibv_sge sge = {(uintptr_t)at, (uint32_t)len, local->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)there, .rkey = remote->rkey}},
                       *bad;

    must_be_0(ibv_post_send(p->qp[0], &wr, &bad));
}

static enum ibv_wc_status rdma(enum ibv_wr_opcode opcode, const struct ibv_mr *local,
                               const void *at, const struct ibv_mr *remote, const void *there,
                               size_t len)
{
    post(opcode, local, at, remote, there, len);
    return completion(p->cq[0]).status;
}

/* Starts a thread that changes memory until stop(). */
static pthread_t start(void *(*run)(void *opaque))
{
    pthread_t thread;

    must_be_0(pthread_create(&thread, NULL, run, NULL));
    return thread;
}

static void stop(pthread_t thread)
{
    __atomic_store_n(&done, true, __ATOMIC_RELAXED);
    must_be_0(pthread_join(thread, NULL));
}

static bool is_done(void)
{
    return __atomic_load_n(&done, __ATOMIC_RELAXED);
}

static unsigned any(unsigned below)
{
    static __thread unsigned state = 12345;

    state = state * 1103515245 + 12345;
    return (state >> 16) % below;
}

/* -- pages that go and come ---------------------------------------------------------------------
 */

static void *drops_and_replaces(void *opaque)
{
    while (!is_done()) {
        unsigned first = any(PAGES), n = 1 + any(PAGES - first);
        uint8_t *at = to + (size_t)first * PAGE;

        if (any(2)) {
            must_be_0(madvise(at, (size_t)n * PAGE, MADV_DONTNEED));
        } else {
            must(mmap(at, (size_t)n * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
                 "errno %d", errno);
        }
        sched_yield();
    }
    return NULL;
}

/* Each word is what a WRITE brought, this one or an earlier one, or 0 of a new page. */
START_TEST(pages_that_are_replaced_cost_no_request)
{
    pthread_t thread = start(drops_and_replaces);

    for (int round = 1; round <= rounds; round++) {
        uint64_t *word = (void *)from, *got = (void *)to;

        for (size_t i = 0; i < LEN / sizeof(*word); i++) {
            word[i] = (uint64_t)round << 32 | i;
        }
        ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, to_mr, to, LEN), IBV_WC_SUCCESS);
        for (size_t i = 0; i < LEN / sizeof(*word); i += 64) {
            uint64_t is = __atomic_load_n(&got[i], __ATOMIC_RELAXED);

            must(!is || ((is & UINT32_MAX) == i && is >> 32 <= (uint64_t)round), "word %zu: %lx", i,
                 (unsigned long)is);
        }
        ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, from_mr, from, to_mr, to, LEN), IBV_WC_SUCCESS);
    }
    stop(thread);
    memset(from, 0x5a, LEN);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, to_mr, to, LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(from, to, LEN), 0);
}
END_TEST

static void *writes(void *opaque)
{
    for (uint64_t n = 1; !is_done(); n++) {
        __atomic_store_n((uint64_t *)from, n, __ATOMIC_RELAXED);
        must(rdma(IBV_WR_RDMA_WRITE, from_mr, from, to_mr, to, 8) == IBV_WC_SUCCESS, "round %d",
             (int)n);
    }
    return NULL;
}

/* A page moves to another address, and its old address gets an empty page in the same call. From
 * then on the device writes to the empty page. */
START_TEST(a_page_that_was_moved_away_is_not_touched)
{
    pthread_t thread = start(writes);

    for (int round = 0; round < rounds; round++) {
        uint64_t *away = mremap(to, PAGE, PAGE, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL);
        uint64_t before;

        must(away != MAP_FAILED, "errno %d", errno);
        before = __atomic_load_n(away, __ATOMIC_RELAXED);
        for (int i = 0; i < 20; i++) {
            sched_yield();
            must(__atomic_load_n(away, __ATOMIC_RELAXED) == before, "round %d", round);
        }
        munmap(away, PAGE);
    }
    stop(thread);
}
END_TEST

/* A child's memory is as it was at the fork. */
START_TEST(a_child_does_not_see_what_comes_later)
{
    pthread_t thread = start(writes);

    for (int round = 0; round < rounds / 20 + 1; round++) {
        pid_t child = fork();
        int status;

        must(child >= 0, "errno %d", errno);
        if (!child) {
            uint64_t before = __atomic_load_n((uint64_t *)to, __ATOMIC_RELAXED);

            for (int i = 0; i < 20; i++) {
                sched_yield();
                if (__atomic_load_n((uint64_t *)to, __ATOMIC_RELAXED) != before) {
                    _exit(1);
                }
            }
            /* the region is the parent's, as its device */
            _exit(ibv_dereg_mr(to_mr) == EIO ? 0 : 2);
        }
        must(waitpid(child, &status, 0) == child, "errno %d", errno);
        ck_assert_int_eq(status, 0);
    }
    stop(thread);
}
END_TEST

/* -- the allocator, signals ---------------------------------------------------------------------
 */

static struct ibv_mr *everything;

static void *allocates(void *opaque)
{
    while (!is_done()) {
        uint8_t *block[8];

        for (int i = 0; i < 8; i++) {
            size_t size = 100000 + any(400000);

            block[i] = malloc(size);
            must(block[i] != NULL, "no memory");
            memset(block[i], i, size);
        }
        for (int i = 0; i < 8; i++) {
            free(block[i]);
        }
    }
    return NULL;
}

/* malloc() and free() map and unmap inside the C library, with its locks held. */
START_TEST(memory_of_the_allocator_is_paged)
{
    struct ibv_mr *all[2];
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        all[i] = ibv_reg_mr(pd[i], NULL, SIZE_MAX, ALL);
        must(all[i] != NULL, "errno %d", errno);
    }
    thread = start(allocates);
    for (int round = 0; round < rounds; round++) {
        size_t len = 150000 + any(300000);
        uint8_t *a = malloc(len), *b = malloc(len);

        memset(a, round, len);
        ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, all[0], a, all[1], b, len), IBV_WC_SUCCESS);
        ck_assert_int_eq(memcmp(a, b, len), 0);
        free(a);
        free(b);
    }
    stop(thread);
    for (int i = 0; i < 2; i++) {
        must_be_0(ibv_dereg_mr(all[i]));
    }
}
END_TEST

static void drops_a_page(int signal)
{
    madvise(to + PAGE, PAGE, MADV_DONTNEED);
    if (everything) {
        void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        munmap(at, PAGE);
    }
}

/* A signal comes wherever the program is, also inside this library with its locks held. */
START_TEST(a_signal_handler_may_change_memory)
{
    struct sigaction action = {.sa_handler = drops_a_page, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval.tv_usec = 500, .it_value.tv_usec = 500}, never = {0};

    everything = ibv_reg_mr(pd[0], NULL, SIZE_MAX, ALL);
    must(everything != NULL, "errno %d", errno);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int round = 0; round < rounds; round++) {
        struct ibv_mr *mr = ibv_reg_mr(pd[0], from, LEN, ALL);

        must(mr != NULL, "errno %d", errno);
        ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr, from, to_mr, to, LEN), IBV_WC_SUCCESS);
        must_be_0(ibv_dereg_mr(mr));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    must_be_0(ibv_dereg_mr(everything));
    everything = NULL;
}
END_TEST

/* -- memory that is gone ------------------------------------------------------------------------
 */

START_TEST(a_peer_is_refused_where_memory_is_gone)
{
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, to_mr, to, LEN), IBV_WC_SUCCESS);
    must_be_0(munmap(to + 3 * PAGE, PAGE));
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, to_mr, to, LEN), IBV_WC_REM_ACCESS_ERR);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* it would report the device's access, rightly */
/* The C library unmaps a large block when it is freed. */
START_TEST(a_peer_is_refused_where_a_block_was_freed)
{
    size_t len = (size_t)64 << 20;
    uint8_t *block = malloc(len), *volatile there = block + PAGE;
    struct ibv_mr *mr = ibv_reg_mr(pd[1], block, len, ALL);

    must(mr != NULL, "errno %d", errno);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, mr, there, LEN), IBV_WC_SUCCESS);
    free(block);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, from_mr, from, mr, there, LEN), IBV_WC_REM_ACCESS_ERR);
    must_be_0(ibv_dereg_mr(mr));
}
END_TEST
#endif

/* A region ends while its pages are asked for. The request succeeds or is refused; it never waits
 * for ever. */
START_TEST(a_region_may_end_under_traffic)
{
    for (int round = 0; round < rounds / 10 + 1; round++) {
        struct ibv_mr *mr;
        enum ibv_wc_status status;

        madvise(to, LEN, MADV_DONTNEED);
        mr = ibv_reg_mr(pd[1], to, LEN, ALL);
        must(mr != NULL, "errno %d", errno);
        post(IBV_WR_RDMA_WRITE, from_mr, from, mr, to, LEN);
        for (unsigned i = any(4); i > 0; i--) {
            struct ibv_wc wc;

            must(ibv_poll_cq(p->cq[1], 1, &wc) == 0, "a completion");
        }
        must_be_0(ibv_dereg_mr(mr));
        status = completion(p->cq[0]).status;
        must(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR, "status %d", status);
        if (status) {
            pair_free(p);
            p = pair_new(false, false);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("paging");
    TCase *tc = tcase_create("paging");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, pages_that_are_replaced_cost_no_request);
    tcase_add_test(tc, a_page_that_was_moved_away_is_not_touched);
    tcase_add_test(tc, a_child_does_not_see_what_comes_later);
    tcase_add_test(tc, memory_of_the_allocator_is_paged);
    tcase_add_test(tc, a_signal_handler_may_change_memory);
    tcase_add_test(tc, a_peer_is_refused_where_memory_is_gone);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(tc, a_peer_is_refused_where_a_block_was_freed);
#endif
    tcase_add_test(tc, a_region_may_end_under_traffic);
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "paging");
}
