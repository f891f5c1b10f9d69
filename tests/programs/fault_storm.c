/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A storm of page faults: many QPs write to a large on-demand region of which one page in a hundred
 * is present, a page with each message.
 *
 *   fault_storm [MIB] [QPS]
 *
 * Meanwhile one more QP writes to pinned memory, and must make progress during the storm. Prints
 * its rate, and its rate while the same QPs write to the same region again, whose pages are then
 * present. All requests must succeed, every page must have its data, and the process must need
 * little more memory than the region. Exit status 0: all of this was so.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/programs/pair.h"

#define PAGE      4096
#define PRESENT   100 /* of so many pages one is present */
#define QPS_MOST  256
#define WINDOW    8                  /* messages of a QP on their way */
#define MORE      ((size_t)96 << 20) /* bytes that the process may need beside the region */
#define SEND_SIZE ((size_t)WINDOW * PAGE)

static size_t pages, qps;
static uint8_t *region;
static struct ibv_mr *region_mr;

struct storm_qp {
    struct ibv_qp *qp[2];
    uint8_t *source; /* a page for each message on its way */
    struct ibv_mr *mr;
    size_t next, end; /* pages of the region that are its own */
};
static struct storm_qp storm[QPS_MOST];
static struct ibv_cq *cq[2];

/* -- the other QP -------------------------------------------------------------------------------
 */

static struct pair *other;
static uint64_t other_writes;
static bool done;

static void *writes_beside(void *opaque)
{
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        struct ibv_sge sge = {(uintptr_t)other->buf[0], MSG * DEPTH, other->mr[0]->lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = (uintptr_t)other->buf[1],
                                             .rkey = other->mr[1]->rkey}},
                           *bad;

        must_be_0(ibv_post_send(other->qp[0], &wr, &bad));
        success(other->cq[0]);
        __atomic_add_fetch(&other_writes, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* -- the storm ----------------------------------------------------------------------------------
 */

static uint64_t stamp(size_t page, unsigned pass)
{
    return (uint64_t)page * 0x9e3779b97f4a7c15u + pass;
}

static void post(struct storm_qp *s, size_t slot, unsigned pass)
{
    uint8_t *source = s->source + slot * PAGE;
    struct ibv_sge sge = {(uintptr_t)source, PAGE, s->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)(s - storm) << 32 | slot,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)(region + s->next * PAGE),
                                         .rkey = region_mr->rkey}},
                       *bad;

    *(uint64_t *)source = stamp(s->next++, pass);
    must_be_0(ibv_post_send(s->qp[0], &wr, &bad));
}

/* Writes each page once. */
static void write_all(unsigned pass)
{
    double began = now();
    size_t left = 0, of_qp = (pages + qps - 1) / qps;

    for (size_t i = 0; i < qps; i++) {
        storm[i].next = i * of_qp < pages ? i * of_qp : pages;
        storm[i].end = (i + 1) * of_qp < pages ? (i + 1) * of_qp : pages;
        for (size_t slot = 0; slot < WINDOW && storm[i].next < storm[i].end; slot++, left++) {
            post(&storm[i], slot, pass);
        }
    }
    while (left) {
        struct ibv_wc wc[16];
        int n = ibv_poll_cq(cq[0], 16, wc);

        must(n >= 0, "%d", n);
        must(now() - began < 600, "%zu requests do not complete", left);
        for (int i = 0; i < n; i++) {
            struct storm_qp *s = &storm[wc[i].wr_id >> 32];

            must(wc[i].status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
            left--;
            if (s->next < s->end) {
                post(s, wc[i].wr_id & UINT32_MAX, pass);
                left++;
            }
        }
    }
    for (size_t i = 0; i < pages; i++) {
        must(*(uint64_t *)(region + i * PAGE) == stamp(i, pass), "page %zu", i);
    }
}

/* Writes all pages again and again for so many seconds, and at least once. Returns the writes of
 * the other QP in a second. */
static double run(const char *what, double least)
{
    static unsigned pass;
    double began = now(), seconds;
    uint64_t before = __atomic_load_n(&other_writes, __ATOMIC_RELAXED);
    unsigned passes = 0;

    do {
        write_all(++pass);
        passes++;
        seconds = now() - began;
    } while (seconds < least);
    before = __atomic_load_n(&other_writes, __ATOMIC_RELAXED) - before;
    printf("%s: %zu pages in %.2f s, %.0f pages/s; the other QP: %.0f writes/s\n", what,
           passes * pages, seconds, (double)(passes * pages) / seconds, (double)before / seconds);
    return (double)before / seconds;
}

/* -- memory -------------------------------------------------------------------------------------
 */

static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t size, rss = 0;

    must(file && fscanf(file, "%zu %zu", &size, &rss) == 2, "statm");
    fclose(file);
    return rss * PAGE;
}

static void make(size_t i)
{
    struct storm_qp *s = &storm[i];

    s->source = aligned_alloc(PAGE, SEND_SIZE);
    memset(s->source, (int)i, SEND_SIZE);
    s->mr = ibv_reg_mr(pd[0], s->source, SEND_SIZE, 0);
    must(s->mr, "errno %d", errno);
    for (int end = 0; end < 2; end++) {
        s->qp[end] = new_qp(end, cq[end], NULL);
    }
    to_rts(0, s->qp[0], s->qp[1]->qp_num, 18);
    to_rts(1, s->qp[1], s->qp[0]->qp_num, 18);
}

static void end(size_t i)
{
    must_be_0(ibv_destroy_qp(storm[i].qp[0]));
    must_be_0(ibv_destroy_qp(storm[i].qp[1]));
    must_be_0(ibv_dereg_mr(storm[i].mr));
    free(storm[i].source);
}

int main(int argc, char **argv)
{
    size_t len = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20, before, grown;
    double during, after;
    pthread_t thread;

    pages = len / PAGE;
    qps = argc > 2 ? (size_t)atoi(argv[2]) : 64;
    must(pages && qps && qps <= QPS_MOST, "fault_storm [MIB] [QPS]");
    device_open();
    other = pair_new(false, false);
    for (int i = 0; i < 2; i++) {
        cq[i] = ibv_create_cq(ctx[i], (int)(qps * WINDOW), NULL, NULL, 0);
        must(cq[i], "errno %d", errno);
    }
    for (size_t i = 0; i < qps; i++) {
        make(i);
    }
    before = resident();
    region = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(region != MAP_FAILED, "errno %d", errno);
    madvise(region, len, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i += PRESENT) {
        region[i * PAGE] = 1;
    }
    region_mr = ibv_reg_mr(pd[1], region, len,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
    must(region_mr, "errno %d", errno);
    must_be_0(pthread_create(&thread, NULL, writes_beside, NULL));
    during = run("storm", 0);
    grown = resident() - before;
    after = run("again, pages present", 2);
    __atomic_store_n(&done, true, __ATOMIC_RELAXED);
    must_be_0(pthread_join(thread, NULL));
    printf("memory: %zu MiB for a region of %zu MiB\n", grown >> 20, len >> 20);
    for (size_t i = 0; i < qps; i++) {
        end(i);
    }
    must_be_0(ibv_destroy_cq(cq[0]));
    must_be_0(ibv_destroy_cq(cq[1]));
    must_be_0(ibv_dereg_mr(region_mr));
    munmap(region, len);
    pair_free(other);
    device_close();
    printf("the other QP kept %.0f %% of its rate\n", after > 0 ? 100 * during / after : 0);
    if (grown > len + MORE || during <= 0) {
        printf("too much memory, or the other QP stood still\n");
        return 1;
    }
    return 0;
}
