/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of an on-demand region go elsewhere while a device writes to them.
 *
 *   paged_moves [ROUNDS]
 *
 * A thread keeps RDMA WRITEs to each page of the region on their way. Meanwhile the process
 * replaces the pages with mremap(), keeps them as the child of a fork() sees them, and has them
 * swapped out. When such a call has returned, the pages that were there before must have all data
 * of the writes that were complete before the call, whole, and must never change again; the region
 * must have the data of all later writes. Pages that are swapped out are also read by the device.
 * Prints what happened. Exit status 0: all of this was so; 77: the device has no on-demand paging.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/pair.h"

#define PAGE    4096ul
#define PAGES   64u
#define LEN     (PAGES * PAGE)
#define DATA    512u /* bytes of a write, the same number in each word; one packet */
#define WINDOW  8u
#define NONE    77
#define SWAPPED (1ull << 62) /* /proc/self/pagemap */

static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];
static struct ibv_mr *region_mr, *source_mr;
static uint8_t *region;
static uint64_t source[WINDOW][DATA / 8];

/* -- traffic ------------------------------------------------------------------------------------
 */

static uint32_t written[PAGES]; /* the number that the last complete write to the page had */
static uint64_t writes;
static bool stop, stopped; /* the thread has nothing on its way, as long as stop is set */
static bool end;

static void post(uint64_t *from, uint32_t key, unsigned page, uint64_t id,
                 enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)from, DATA, key};
    struct ibv_send_wr wr = {.wr_id = id,
                             .opcode = opcode,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)region + page * PAGE,
                                         .rkey = region_mr->rkey}},
                       *bad;

    must_be_0(ibv_post_send(qp[0], &wr, &bad));
}

static void *traffic(void *unused)
{
    uint32_t number = 0;

    (void)unused;
    while (!__atomic_load_n(&end, __ATOMIC_ACQUIRE)) {
        unsigned first = number % PAGES;

        if (__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
            __atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
            usleep(50);
            continue;
        }
        for (unsigned i = 0; i < WINDOW; i++) {
            for (unsigned k = 0; k < DATA / 8; k++) {
                source[i][k] = number + i + 1;
            }
            post(source[i], source_mr->lkey, first + i, number + i + 1, IBV_WR_RDMA_WRITE);
        }
        for (unsigned i = 0; i < WINDOW; i++) {
            must(success(cq[0]).wr_id == number + i + 1, "not the next one");
            __atomic_store_n(&written[first + i], number + i + 1, __ATOMIC_RELEASE);
        }
        number += WINDOW;
        __atomic_add_fetch(&writes, WINDOW, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void pause_traffic(bool on)
{
    double began = now();

    __atomic_store_n(&stopped, false, __ATOMIC_RELEASE);
    __atomic_store_n(&stop, on, __ATOMIC_RELEASE);
    while (on && !__atomic_load_n(&stopped, __ATOMIC_ACQUIRE)) {
        must(now() - began < SECONDS, "writes do not complete");
        usleep(50);
    }
}

/* Waits until each page has been written twice. */
static void await_writes(void)
{
    uint64_t upto = __atomic_load_n(&writes, __ATOMIC_ACQUIRE) + 3 * PAGES;
    double began = now();

    while (__atomic_load_n(&writes, __ATOMIC_ACQUIRE) < upto) {
        must(now() - began < SECONDS, "writes do not complete");
        usleep(100);
    }
}

/* -- what pages have -----------------------------------------------------------------------------
 */

static void must_have_at_least(const uint8_t *pages, const uint32_t *least)
{
    for (unsigned i = 0; i < PAGES; i++) {
        const uint64_t *words = (const void *)(pages + i * PAGE);

        must(words[0] >= least[i], "page %u has %lu, and lost %u", i, (unsigned long)words[0],
             least[i]);
        for (unsigned k = 1; k < DATA / 8; k++) {
            must(words[k] == words[0], "page %u: a write was cut in two", i);
        }
    }
}

/* With no write on its way, the region has the data of each page's last write. */
static void check_region(void)
{
    pause_traffic(true);
    must_have_at_least(region, written);
    for (unsigned i = 0; i < PAGES; i++) {
        must(*(uint64_t *)(region + i * PAGE) == written[i], "page %u", i);
    }
    pause_traffic(false);
}

/* The pages that the region had at the call, which returned after the writes of `before` were
 * complete. */
static void must_stay(const uint8_t *old, const uint32_t *before)
{
    static uint8_t copy[LEN];

    memcpy(copy, old, LEN);
    must_have_at_least(copy, before);
    await_writes();
    must(!memcmp(copy, old, LEN), "a page was written after it had gone");
}

/* -- how pages go --------------------------------------------------------------------------------
 */

static void sample(uint32_t before[PAGES])
{
    for (unsigned i = 0; i < PAGES; i++) {
        before[i] = __atomic_load_n(&written[i], __ATOMIC_ACQUIRE);
    }
}

/* The pages move to another address, and the region is left without pages. */
static void move_away(void)
{
    uint32_t before[PAGES];
    uint8_t *old;

    sample(before);
    old = mremap(region, LEN, LEN, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    must(old != MAP_FAILED, "errno %d", errno);
    must_stay(old, before);
    munmap(old, LEN);
}

static uint8_t *shared_pages(int *fd)
{
    uint8_t *pages;

    *fd = memfd_create("pages", MFD_CLOEXEC);
    must(*fd >= 0 && !ftruncate(*fd, LEN), "errno %d", errno);
    pages = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    must(pages != MAP_FAILED, "errno %d", errno);
    return pages;
}

/* Other pages take the place of those of the region, twice: pages of a file, and private ones. The
 * pages of the file remain visible in another mapping. */
static void replace(void)
{
    uint32_t before[PAGES];
    uint8_t *pages, *seen;
    int fd;

    pages = shared_pages(&fd);
    must(mremap(pages, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, region) == region, "errno %d",
         errno);
    await_writes();
    check_region();
    seen = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
    pages = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(seen != MAP_FAILED && pages != MAP_FAILED, "errno %d", errno);
    sample(before);
    must(mremap(pages, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, region) == region, "errno %d",
         errno);
    must_stay(seen, before);
    munmap(seen, LEN);
    close(fd);
}

/* The child has the pages as they are at the fork. */
static void keep_in_a_child(void)
{
    uint32_t before[PAGES];
    int down[2], status;
    pid_t pid;

    must_be_0(pipe(down));
    sample(before);
    pid = fork();
    must(pid >= 0, "errno %d", errno);
    if (!pid) {
        static uint8_t copy[LEN];
        char go;

        close(down[1]);
        memcpy(copy, region, LEN);
        must_have_at_least(copy, before);
        must(read(down[0], &go, 1) == 1, "errno %d", errno);
        must(!memcmp(copy, region, LEN), "a page of the child was written");
        _exit(0);
    }
    await_writes();
    must(write(down[1], "", 1) == 1, "errno %d", errno);
    must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "status %x",
         status);
    close(down[0]);
    close(down[1]);
}

static unsigned swapped_out(void)
{
    uint64_t entries[PAGES];
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    unsigned n = 0;

    must(pread(fd, entries, sizeof(entries), (off_t)((uintptr_t)region / PAGE * 8)) ==
             sizeof(entries),
         "errno %d", errno);
    close(fd);
    for (unsigned i = 0; i < PAGES; i++) {
        n += !!(entries[i] & SWAPPED);
    }
    return n;
}

/* Under writes, and then without them, so that the device reads pages that are out. Returns how
 * many were. */
static unsigned swap_out(void)
{
    static uint64_t target[DATA / 8];
    struct ibv_mr *mr = ibv_reg_mr(pd[0], target, sizeof(target), IBV_ACCESS_LOCAL_WRITE);
    unsigned n;

    must(mr, "errno %d", errno);
    for (unsigned i = 0; i < 10; i++) {
        must_be_0(madvise(region, LEN, MADV_PAGEOUT));
        usleep(1000);
    }
    await_writes();
    pause_traffic(true);
    must_be_0(madvise(region, LEN, MADV_PAGEOUT));
    n = swapped_out();
    for (unsigned i = 0; i < PAGES; i++) {
        post(target, mr->lkey, i, i, IBV_WR_RDMA_READ);
        success(cq[0]);
        must(target[0] == written[i] && target[DATA / 8 - 1] == written[i],
             "page %u: %lu instead of %u", i, (unsigned long)target[0], written[i]);
    }
    must_be_0(ibv_dereg_mr(mr));
    pause_traffic(false);
    return n;
}

static bool pages_on_demand(void)
{
    struct ibv_device_attr_ex attr;

    must_be_0(ibv_query_device_ex(ctx[0], NULL, &attr));
    return attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10, out = 0;
    pthread_t thread;

    device_open();
    if (!pages_on_demand()) {
        puts("no on-demand paging");
        return NONE;
    }
    region = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(region != MAP_FAILED, "errno %d", errno);
    region_mr = ibv_reg_mr(pd[0], region, LEN,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
    source_mr = ibv_reg_mr(pd[0], source, sizeof(source), IBV_ACCESS_LOCAL_WRITE);
    must(region_mr && source_mr, "errno %d", errno);
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(ctx[0], 2 * WINDOW, NULL, NULL, 0);
        must(cq[i], "errno %d", errno);
        qp[i] = new_qp(0, cq[i], NULL);
    }
    to_rts(0, qp[0], qp[1]->qp_num, 14);
    to_rts(0, qp[1], qp[0]->qp_num, 14);
    must_be_0(pthread_create(&thread, NULL, traffic, NULL));
    await_writes();
    for (unsigned i = 0; i < rounds; i++) {
        move_away();
        check_region();
        replace();
        check_region();
        keep_in_a_child();
        check_region();
        out += swap_out();
        check_region();
    }
    __atomic_store_n(&end, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf(
        "%lu writes; in %u rounds the pages of %u were replaced 3 times, forked once, and %u were swapped out\n",
        (unsigned long)writes, rounds, PAGES, out);
    return 0;
}
