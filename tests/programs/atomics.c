/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * atomics: every HCA and CPU that may changes one word at the same time, by additions and by
 * compare-and-swap. At the end the word must hold the result of all changes together.
 *
 *     atomics -g GID [-d DEVICE[,DEVICE]] [-p PORT]          the side that owns the word
 *     atomics -g GID [-d DEVICE[,DEVICE]] [-p PORT] HOST     the other side
 *
 * The other side's HCA reaches the word over a QP with each device of the first side. Each of those
 * devices also reaches it over a QP with itself. If the devices promise PCI atomics of the word's
 * size (IBV_ATOMIC_GLOB), all of them share one word with threads that change it by C11's atomics.
 * If they promise atomics only among the QPs of an HCA (IBV_ATOMIC_HCA), each device has a word of
 * its own, and no thread touches it: docs/explanation/ordering.md.
 *
 * The lower half of a word counts additions, its upper half counts swaps that took effect. Exit
 * status 0: every word is exact; 77: the device has no atomics.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/masked_wqe.h"
#include "tests/programs/other_side.h"

#define NO_ATOMICS  77
#define MAX_DEVICES 2
#define CPU_THREADS 2
#define CPU_MOST    (1u << 28) /* the most changes by a thread: no half overflows */
#define BURST       4096       /* the most changes of a thread in a burst */
#define PAUSE       500 /* the longest pause after a burst, us: longer than an HCA's swap takes */
#define ROUNDS      100 /* each round has an addition and a swap */
#define TIMEOUT     18  /* 1 s */
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static const struct test {
    const char *name;
    unsigned size;
    bool masked;
} tests[] = {
    {"8 bytes", 8, false},
    {"8 bytes in fields, under masks", 8, true},
    {"4 bytes in fields, under masks", 4, true},
};
#define TESTS (sizeof(tests) / sizeof(tests[0]))

/* Numbers of changes that took effect. */
struct counts {
    uint64_t adds, swaps;
};

/* What the first side's devices promise for a test. */
enum promise {
    PROMISES_NOTHING,
    PROMISES_HCA,
    PROMISES_ALL
};

struct hello {
    uint32_t devices;
    uint32_t promises[TESTS];
    uint64_t addr;
    struct {
        union ibv_gid gid;
        uint32_t rkey, qpn;
    } at[MAX_DEVICES];
};

struct device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    bool masked;
};

/* A QP that changes a word, and the thread that controls it. */
struct requester {
    pthread_t thread;
    const struct test *test;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint64_t word;  /* its address at the responder */
    uint64_t *back; /* receives the old value */
    uint32_t rkey, lkey;
    struct counts counts;
};

struct cpu {
    pthread_t thread;
    const struct test *test;
    void *word;
    unsigned seed;
    struct counts counts;
};

struct memory {
    uint64_t words[TESTS][MAX_DEVICES][16]; /* each word has two cache lines to itself */
    uint64_t back[MAX_DEVICES];
};

static struct endpoint_options options = {.port = "18520"};
static struct device devices[MAX_DEVICES];
static unsigned num_devices;
static struct requester remote[MAX_DEVICES], own[MAX_DEVICES];
static struct ibv_qp *echo[MAX_DEVICES]; /* the peers of this side's own requesters */
static struct memory *memory;
static struct hello mine, theirs;
static atomic_bool stop;
static int peer;

static unsigned half_of(const struct test *test)
{
    return test->size * 4;
}

static uint64_t lower_half(const struct test *test)
{
    return (1ull << half_of(test)) - 1;
}

/* -- changes by an HCA ------------------------------------------------------------------------- */

static uint64_t post_plain(struct requester *r, bool swap, uint64_t operand, uint64_t compare)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(r->qp);

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    if (swap) {
        ibv_wr_atomic_cmp_swp(ex, r->rkey, r->word, compare, operand);
    } else {
        ibv_wr_atomic_fetch_add(ex, r->rkey, r->word, operand);
    }
    ibv_wr_set_sge(ex, r->lkey, (uintptr_t)r->back, 8);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
    need(!endpoint_completion(r->cq).status, "an atomic");
    return *r->back;
}

static uint64_t post_masked(struct requester *r, struct masked_wqe w)
{
    w.size = r->test->size;
    w.remote = r->word;
    w.rkey = r->rkey;
    w.local = r->back;
    w.lkey = r->lkey;
    masked_post(r->qp, &w);
    need(!endpoint_completion(r->cq).status, "an atomic under masks");
    return masked_reply(&w);
}

static uint64_t hca_add(struct requester *r)
{
    uint64_t last_of_field = 1ull << (half_of(r->test) - 1);

    return r->test->masked ? post_masked(r, (struct masked_wqe){.opcode = MASKED_ADD,
                                                                .operands = {1, last_of_field}})
                           : post_plain(r, false, 1, 0);
}

/* Tries one swap, given what the word may still hold. */
static bool hca_swap(struct requester *r, uint64_t is)
{
    uint64_t upper = ~lower_half(r->test), next = is + (1ull << half_of(r->test));

    if (!r->test->masked) {
        return post_plain(r, true, next, is) == is;
    }
    return !((post_masked(r, (struct masked_wqe){.opcode = MASKED_SWAP,
                                                 .operands = {next, is, upper, upper}}) ^
              is) &
             upper);
}

static void *requester_run(void *arg)
{
    struct requester *r = arg;

    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t before = hca_add(r);

        r->counts.adds++;
        /* under masks the lower field may hold anything; a whole word must be as it was left */
        r->counts.swaps += hca_swap(r, r->test->masked ? before : before + 1);
    }
    return NULL;
}

/* -- changes by a CPU -------------------------------------------------------------------------- */

static uint64_t changed(const struct test *test, uint64_t word, bool swap)
{
    uint64_t lower = lower_half(test);

    return swap ? word + lower + 1 : (word & ~lower) | ((word + 1) & lower);
}

static bool cpu_try(struct cpu *cpu, bool swap)
{
    if (cpu->test->size == 8) {
        _Atomic uint64_t *word = cpu->word;
        uint64_t is = atomic_load(word);

        return atomic_compare_exchange_strong(word, &is, changed(cpu->test, is, swap));
    } else {
        _Atomic uint32_t *word = cpu->word;
        uint32_t is = atomic_load(word);

        return atomic_compare_exchange_strong(word, &is, (uint32_t)changed(cpu->test, is, swap));
    }
}

static void *cpu_run(void *arg)
{
    struct cpu *cpu = arg;

    for (unsigned done = 0; !atomic_load(&stop) && done < CPU_MOST;) {
        for (int burst = rand_r(&cpu->seed) % BURST; burst >= 0; burst--, done++) {
            if (burst % 8 == 0) {
                cpu->counts.swaps += cpu_try(cpu, true);
            } else if (!cpu->test->masked) {
                atomic_fetch_add((_Atomic uint64_t *)cpu->word, 1);
                cpu->counts.adds++;
            } else {
                cpu->counts.adds += cpu_try(cpu, false);
            }
        }
        usleep((useconds_t)(rand_r(&cpu->seed) % PAUSE));
    }
    return NULL;
}

/* -- a test -------------------------------------------------------------------------------------
 */

static void begin(pthread_t *thread, void *(*function)(void *), void *arg)
{
    need(!pthread_create(thread, NULL, function, arg), "pthread_create()");
}

/* Lets these requesters work on the words of a test, and waits for them. */
static void requesters_work(struct requester *first, unsigned num, size_t test)
{
    for (unsigned i = 0; i < num; i++) {
        first[i].test = &tests[test];
        first[i].counts = (struct counts){0};
        begin(&first[i].thread, requester_run, &first[i]);
    }
    for (unsigned i = 0; i < num; i++) {
        need(!pthread_join(first[i].thread, NULL), "pthread_join()");
    }
}

static uint64_t word_at(uint64_t addr, const struct hello *of, size_t test, unsigned device)
{
    unsigned which = of->promises[test] == PROMISES_ALL ? 0 : device;

    return addr + offsetof(struct memory, words) +
           (test * MAX_DEVICES + which) * sizeof(memory->words[0][0]);
}

static struct counts sum_of(struct counts a, struct counts b)
{
    return (struct counts){a.adds + b.adds, a.swaps + b.swaps};
}

static void check(const struct test *test, unsigned device, struct counts all)
{
    uint64_t is = 0, lower = lower_half(test), should_be;

    memcpy(&is, memory->words[test - tests][device], test->size);
    should_be = (all.adds & lower) | (all.swaps & lower) << half_of(test);
    if (is != should_be) {
        fail("%s: the word is %016lx after %lu additions and %lu swaps", test->name,
             (unsigned long)is, (unsigned long)all.adds, (unsigned long)all.swaps);
    }
}

static void report(size_t test, struct counts hcas, struct counts cpus)
{
    printf("%s: %lu additions and %lu swaps of HCAs at %u devices, ", tests[test].name,
           (unsigned long)hcas.adds, (unsigned long)hcas.swaps, num_devices);
    if (mine.promises[test] == PROMISES_ALL) {
        printf("%lu and %lu of the CPU: exact\n", (unsigned long)cpus.adds,
               (unsigned long)cpus.swaps);
    } else {
        printf("a word each: exact\n");
    }
    fflush(stdout);
}

/* Runs a test on the side that owns the word. */
static void hold_word(size_t test)
{
    bool all = mine.promises[test] == PROMISES_ALL;
    struct cpu cpus[CPU_THREADS] = {{0}};
    struct counts of_cpus = {0}, of_hcas = {0}, nothing = {0}, others;

    atomic_store(&stop, false);
    for (unsigned i = 0; i < num_devices; i++) {
        own[i].word = word_at(mine.addr, &mine, test, i);
    }
    together(peer);
    for (unsigned i = 0; all && i < CPU_THREADS; i++) {
        cpus[i] = (struct cpu){.test = &tests[test], .word = memory->words[test][0], .seed = i + 1};
        begin(&cpus[i].thread, cpu_run, &cpus[i]);
    }
    requesters_work(own, num_devices, test);
    together(peer);
    atomic_store(&stop, true);
    for (unsigned i = 0; all && i < CPU_THREADS; i++) {
        need(!pthread_join(cpus[i].thread, NULL), "pthread_join()");
        of_cpus = sum_of(of_cpus, cpus[i].counts);
    }
    for (unsigned i = 0; i < num_devices; i++) {
        tell(peer, &nothing, &others, sizeof(others));
        others = sum_of(others, own[i].counts);
        of_hcas = sum_of(of_hcas, others);
        if (!all) {
            check(&tests[test], i, others);
        }
    }
    if (all) {
        check(&tests[test], 0, sum_of(of_hcas, of_cpus));
    }
    need(of_hcas.adds == 2ull * num_devices * ROUNDS && of_hcas.swaps,
         "having HCAs add, and at times swap");
    report(test, of_hcas, of_cpus);
}

static void reach_word(size_t test)
{
    struct counts nothing;

    for (unsigned i = 0; i < theirs.devices; i++) {
        remote[i].word = word_at(theirs.addr, &theirs, test, i);
    }
    together(peer);
    requesters_work(remote, theirs.devices, test);
    together(peer);
    for (unsigned i = 0; i < theirs.devices; i++) {
        tell(peer, &remote[i].counts, &nothing, sizeof(nothing));
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

/* Returns what a device promises. PROMISES_NOTHING: it cannot take part. */
static enum promise promise_of(const struct device *device, const struct test *test)
{
    unsigned bit = test->size == 8 ? IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP
                                   : IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP;
    struct ibv_device_attr_ex attr;

    need(!ibv_query_device_ex(device->ctx, NULL, &attr), "ibv_query_device_ex()");
    if (attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE || (test->masked && !device->masked)) {
        return PROMISES_NOTHING;
    }
    if (!test->masked) {
        return attr.orig_attr.atomic_cap == IBV_ATOMIC_GLOB ? PROMISES_ALL : PROMISES_HCA;
    }
    return attr.pci_atomic_caps.fetch_add & attr.pci_atomic_caps.compare_swap & bit ? PROMISES_ALL
                                                                                    : PROMISES_HCA;
}

/* Returns what all devices of this side promise. */
static enum promise promise(const struct test *test)
{
    enum promise least = PROMISES_ALL;

    for (unsigned i = 0; i < num_devices; i++) {
        enum promise one = promise_of(&devices[i], test);

        least = one < least ? one : least;
    }
    return least;
}

static void open_devices(void)
{
    char *names = options.device ? strdup(options.device) : NULL, *rest = names;
    const char *name = names ? strsep(&rest, ",") : NULL;

    do {
        struct device *device = &devices[num_devices++];

        device->ctx = endpoint_open(name, masked_open);
        device->masked = masked_device_has_them(device->ctx);
        need((device->pd = ibv_alloc_pd(device->ctx)) &&
                 (device->mr = ibv_reg_mr(device->pd, memory, sizeof(*memory), ACCESS)),
             "ibv_reg_mr()");
    } while (num_devices < MAX_DEVICES && rest && (name = strsep(&rest, ",")));
    free(names);
}

/* Makes a requester. Each thread has one place for replies, because only requesters of one kind
 * work on a side. */
static void make_requester(struct requester *r, const struct device *device, unsigned number)
{
    need((r->cq = ibv_create_cq(device->ctx, 64, NULL, NULL, 0)), "ibv_create_cq()");
    r->qp = masked_make_qp(device->pd, r->cq);
    r->back = &memory->back[number];
    r->lkey = device->mr->lkey;
    endpoint_init_rc(r->qp, ACCESS);
}

static void connect_to(struct requester *r, union ibv_gid gid, uint32_t qpn, uint32_t rkey)
{
    r->rkey = rkey;
    endpoint_connect_rc(r->qp, endpoint_towards(gid, options.gid_index), qpn, TIMEOUT);
}

/* Connects a device of the first side with itself. */
static void make_own(unsigned i)
{
    union ibv_gid gid = endpoint_gid(devices[i].ctx, options.gid_index);

    make_requester(&own[i], &devices[i], i);
    echo[i] = masked_make_qp(devices[i].pd, own[i].cq);
    endpoint_init_rc(echo[i], ACCESS);
    endpoint_connect_rc(echo[i], endpoint_towards(gid, options.gid_index), own[i].qp->qp_num,
                        TIMEOUT);
    connect_to(&own[i], gid, echo[i]->qp_num, devices[i].mr->rkey);
}

/* Makes this side's objects. The other side has a QP for each device of the first side. */
static void make_objects(void)
{
    uint32_t wanted = num_devices, told;
    unsigned num;

    tell(peer, &wanted, &told, sizeof(told));
    num = options.host ? told : num_devices;
    need(num <= MAX_DEVICES, "agreeing on the devices");
    mine.devices = num;
    mine.addr = (uintptr_t)memory;
    for (size_t t = 0; t < TESTS; t++) {
        mine.promises[t] = promise(&tests[t]);
    }
    for (unsigned i = 0; i < num; i++) {
        const struct device *device = &devices[i % num_devices];

        make_requester(&remote[i], device, i);
        mine.at[i].gid = endpoint_gid(device->ctx, options.gid_index);
        mine.at[i].rkey = device->mr->rkey;
        mine.at[i].qpn = remote[i].qp->qp_num;
    }
    tell(peer, &mine, &theirs, sizeof(mine));
    for (unsigned i = 0; i < num; i++) {
        connect_to(&remote[i], theirs.at[i].gid, theirs.at[i].qpn, theirs.at[i].rkey);
        if (!options.host) {
            make_own(i);
        }
    }
}

static void end_requester(struct requester *r)
{
    need(!r->qp || (!ibv_destroy_qp(r->qp) && !ibv_destroy_cq(r->cq)), "destroying a QP");
}

static void end(void)
{
    for (unsigned i = 0; i < MAX_DEVICES; i++) {
        need(!echo[i] || !ibv_destroy_qp(echo[i]), "destroying a QP");
        end_requester(&own[i]);
        end_requester(&remote[i]);
    }
    for (unsigned i = 0; i < num_devices; i++) {
        need(!ibv_dereg_mr(devices[i].mr) && !ibv_dealloc_pd(devices[i].pd) &&
                 !ibv_close_device(devices[i].ctx),
             "the end");
    }
    free(memory);
}

int main(int argc, char **argv)
{
    size_t size = (sizeof(*memory) + 4095) / 4096 * 4096;

    endpoint_options(argc, argv, &options);
    need((memory = aligned_alloc(4096, size)), "memory");
    memset(memory, 0, size);
    open_devices();
    if (promise(&tests[0]) == PROMISES_NOTHING) {
        printf("skipped: the device has no atomics\n");
        return NO_ATOMICS;
    }
    peer = other_side_connect(options.host, options.port);
    make_objects();
    for (size_t t = 0; t < TESTS; t++) {
        if (!mine.promises[t] || !theirs.promises[t]) {
            printf("%s: not by these devices\n", tests[t].name);
        } else if (options.host) {
            reach_word(t);
        } else {
            hold_word(t);
        }
    }
    together(peer);
    end();
    return 0;
}
