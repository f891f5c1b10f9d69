/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: scale [QPS...]
 *
 * What many RC QPs on one device cost, for each number of them (default: 1000 to 1000000): to make
 * one, in memory beyond its rings, for a message while all are there, to destroy one, and to reset
 * them all. One QP in a thousand is connected and used, in turn with the others.
 *
 * Two HCAs on a table (tests/unit/lab.h): QPs are made by the model's own functions. What is idle
 * shares a page as its ring. Times are of the processor, for this thread.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "model/card/card.h"
#include "prm/prm.h"
#include "tests/unit/lab.h"

#define ONE_IN   1000   /* QPs of which one is connected */
#define MESSAGES 200000 /* for each number of QPs */
#define BYTES    64

/* What an assertion of the table's own comes to, with no test around it. */
void _mark_point(const char *file, int line)
{
}

void _ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
    fprintf(stderr, "scale: %s:%d: %s\n", file, line, expr);
    exit(EXIT_FAILURE);
}

static const struct hca_limits limits = {
    .log_max_qp = 21,
    .log_max_cq = 10,
    .log_max_srq = 10,
    .log_max_mkey = 10,
    .log_max_pd = 10,
    .log_max_eq = 7,
    .log_max_uar = 10,
    .log_max_qp_sz = 15,
    .log_max_cq_sz = 22,
    .log_max_srq_sz = 15,
    .log_max_eq_sz = 22,
    .log_max_umem = 10,
    .log_max_uctx = 10,
    .log_max_msg = 30,
    .log_max_ra_res_qp = 4,
    .log_max_ra_req_qp = 4,
    .num_msix = 4,
    .max_gid = 16,
    .max_sq_wqe = 1024,
    .max_rq_wqe = 512,
};

static struct lab *lab;
static struct lab_side *left, *right;
static struct mem_buf ring; /* of all that are idle */
static uint32_t *qpns;
static struct lab_qp *from, *to; /* the connected ones */
static unsigned n_connected;

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t resident(void)
{
    unsigned long long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%llu %llu", &size, &pages) != 2) {
        fprintf(stderr, "scale: no /proc/self/statm\n");
        exit(EXIT_FAILURE);
    }
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t make_idle(void)
{
    struct prm_qpc qpc[1] = {0};
    struct mem_buf buf = ring;
    uint32_t qpn;

    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, left->pdn);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_REGULAR);
    PRM_SET(qpc, qpc, uar_page, left->uarn);
    PRM_SET(qpc, qpc, cqn_snd, left->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, left->cqn);
    mtt_ref(ring.mtt);
    if (qp_create(&left->hca, 0, qpc, &buf, FAKE_HOST_BASE, &qpn) != SYN_OK) {
        fprintf(stderr, "scale: no QP more: %s\n", left->host.last_line);
        exit(EXIT_FAILURE);
    }
    return qpn;
}

static void make(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        qpns[i] = make_idle();
    }
}

static void connect(void)
{
    struct lab_qp_attr attr = lab_rc;

    attr.log_sq = attr.log_rq = 2;
    for (unsigned i = 0; i < n_connected; i++) {
        lab_qp_new(left, &attr, &from[i]);
        lab_qp_new(right, &attr, &to[i]);
        lab_connect(lab, &from[i], &to[i], &lab_path);
    }
}

static void message(unsigned i, const struct lab_wr *wr, uint64_t into)
{
    struct lab_cqe cqe;

    lab->num_packets = 0;
    lab_post_recv(&to[i], into, BYTES);
    lab_post(&from[i], wr);
    lab_run(lab);
    if (!lab_poll(left, &cqe) || cqe.opcode != PRM_CQE_OPCODE_REQ || !lab_poll(right, &cqe) ||
        cqe.opcode != PRM_CQE_OPCODE_RESP_SEND) {
        fprintf(stderr, "scale: a message did not arrive\n");
        exit(EXIT_FAILURE);
    }
}

static double messages(void)
{
    uint64_t start, addr = lab_mem(left, BYTES, 1), into = lab_mem(right, BYTES, 0);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{addr, BYTES, 0}}, .num_sge = 1};

    for (unsigned i = 0; i < n_connected; i++) {
        message(i, &wr, into);
    }
    start = cpu_ns();
    for (unsigned i = 0; i < MESSAGES; i++) {
        message(i % n_connected, &wr, into);
    }
    return (double)(cpu_ns() - start) / MESSAGES;
}

static void set_limits(struct lab_side *side)
{
    side->hca.limits = limits;
    obj_table_clear(&side->hca.qpns);
    obj_table_init(&side->hca.qpns, &side->hca.memory, 64, 1u << limits.log_max_qp);
}

static void one_size(unsigned n)
{
    uint64_t start, used, pages;
    double create, message, destroy, reset;

    lab = lab_new();
    left = &lab->side[0];
    right = &lab->side[1];
    set_limits(left);
    ring = lab_buf(fake_host_alloc(&left->host, 4096, 4096), 4096);
    qpns = g_new(uint32_t, n);
    memset(qpns, 1, n * sizeof(*qpns));
    n_connected = MAX(n / ONE_IN, 1);
    from = g_new0(struct lab_qp, n_connected);
    to = g_new0(struct lab_qp, n_connected);

    ring.mtt->hca = NULL;
    used = left->hca.memory.used;
    pages = resident();
    start = cpu_ns();
    make(n);
    create = (double)(cpu_ns() - start) / n;
    used = left->hca.memory.used - used;
    pages = resident() - pages;
    connect();
    message = messages();
    start = cpu_ns();
    for (unsigned i = 0; i < n; i++) {
        qp_destroy(&left->hca, 0, qpns[i]);
    }
    destroy = (double)(cpu_ns() - start) / n;
    make(n);
    start = cpu_ns();
    hca_reset(&left->hca);
    reset = (double)(cpu_ns() - start) / 1e9;
    printf("%9u  %10.0f  %8.0f  %8.0f  %11.0f  %10.0f  %8.2f\n", n, create, (double)used / n,
           (double)pages / n, message, destroy, reset);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1000", "10000", "100000", "1000000"};
    const char *const *sizes = argc > 1 ? (const char *const *)argv + 1 : usual;
    int n = argc > 1 ? argc - 1 : (int)G_N_ELEMENTS(usual);

    printf("%9s  %10s  %8s  %8s  %11s  %10s  %8s\n", "RC QPs", "create ns", "bytes", "resident",
           "message ns", "destroy ns", "reset s");
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        unsigned long qps = strtoul(sizes[i], NULL, 10);
        int status;
        pid_t child;

        if (qps < 1 || qps > 1u << 20) {
            fprintf(stderr, "scale: 1 to %u QPs, not '%s'\n", 1u << 20, sizes[i]);
            return EXIT_FAILURE;
        }
        child = fork();
        if (child == 0) {
            one_size((unsigned)qps);
            exit(EXIT_SUCCESS);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
