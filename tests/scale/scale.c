/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: scale [QPS...]
 *
 * Measures what many RC QPs on one device cost, for each number of them (default: 1000 to 1000000):
 * the time to make one, its memory beyond its rings, the time of a message while all exist, and the
 * time to destroy one and to reset them all. One QP in a thousand is connected and used, in turn
 * with the others.
 *
 * Two HCAs are in this process (guest-lib/host/inproc.h), each with the driver. QPs are made,
 * connected, queried and destroyed by its commands, and the driver gives the pages that the device
 * asks for. Idle QPs share a page as their ring. Times are processor times of this thread, and
 * include the driver.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fw/fw_internal.h"
#include "guest-lib/drv/drv.h"
#include "guest-lib/host/inproc.h"
#include "wire/pair.h"

#define LOG_MAX_QP 21
#define ONE_IN     1000   /* one QP of so many is connected */
#define MESSAGES   200000 /* for each number of QPs */
#define BYTES      64
#define LOG_CQ     10

struct side {
    struct inproc_hca *hca;
    struct drv *drv;
    uint8_t gid[16];
    struct drv_cq cq;
    struct drv_mr mr;
    struct drv_qp *qps; /* the connected ones */
};

static struct inproc_world *world;
static struct side left, right;
static struct pci_ops pci_ops;
static uint8_t create_idle[PRM_SIZE(create_qp_in) + 8]; /* CREATE_QP, of one page */
static uint32_t *qpns;
static unsigned n_connected;

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "scale: %s failed\n", what);
        exit(EXIT_FAILURE);
    }
}

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

    must(f && fscanf(f, "%llu %llu", &size, &pages) == 2, "reading /proc/self/statm");
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* -- two HCAs ---------------------------------------------------------------------------------- */

/* The device accesses none of the pages that it gets. It would first clear a returned page that it
 * uses again, but it uses none again. */
static void keep(void *pci, void *ptr, size_t size)
{
}

static void side_new(struct side *side, uint8_t host)
{
    const struct fw_config config = {
        .mac = {2, 0, 0, 0, 0, host}, .memory = 8ull << 30, .log_max_qp = LOG_MAX_QP};
    GError *err = NULL;
    struct pci_dev dev;
    struct drv_mem mem;

    side->hca = inproc_hca_new(world, &config, &err);
    must(side->hca, "making an HCA");
    dev = inproc_pci(side->hca);
    pci_ops = *dev.ops;
    pci_ops.dma_free = keep;
    dev.ops = &pci_ops;
    side->drv = drv_open(dev, &err);
    must(side->drv, "bringing it up");
    drv_ipv4_gid(side->gid, host);
    must(drv_set_gid(side->drv, 0, side->gid) == 0, "SET_ROCE_ADDRESS");
    must(drv_create_cq(side->drv, LOG_CQ, &side->cq) == 0, "CREATE_CQ");
    mem = drv_alloc(side->drv, PCI_PAGE);
    must(drv_reg_mr(side->drv, side->drv->pdn, &mem, 0, PCI_PAGE, DRV_ALL, &side->mr) == 0,
         "CREATE_MKEY");
    side->qps = g_new0(struct drv_qp, n_connected);
}

static void bring_up(void)
{
    struct wire_port *ends[2];

    world = inproc_world_new();
    world->arena_size = 4ul << 30;
    side_new(&left, 1);
    world->arena_size = INPROC_ARENA_SIZE;
    side_new(&right, 2);
    wire_pair_new(64, ends);
    fw_set_wire(left.hca->fw, ends[0]);
    fw_set_wire(right.hca->fw, ends[1]);
    inproc_settle(world);
}

/* -- idle QPs ---------------------------------------------------------------------------------- */

static void prepare_idle(void)
{
    struct prm_create_qp_in *in = (void *)create_idle;
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    struct drv_mem ring = drv_alloc(left.drv, PCI_PAGE);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, left.drv->pdn);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_REGULAR);
    PRM_SET(qpc, qpc, uar_page, left.drv->uarn);
    PRM_SET(qpc, qpc, cqn_snd, left.cq.cqn);
    PRM_SET(qpc, qpc, cqn_rcv, left.cq.cqn);
    PRM_SET(qpc, qpc, dbr_addr, ring.bus + PCI_PAGE / 2);
    PRM_SET_AT(create_qp_in, in, pas, 0, ring.bus);
}

static void make(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct prm_create_qp_out out[1] = {0};

        must(drv_cmd(left.drv, create_idle, sizeof(create_idle), out, sizeof(out)) == 0,
             "CREATE_QP");
        qpns[i] = PRM_GET(create_qp_out, out, qpn);
    }
}

static void query(struct drv_qp *qp, uint8_t state)
{
    struct prm_qpc qpc[1];

    must(drv_query_qp(qp, qpc) == 0 && PRM_GET(qpc, qpc, state) == state &&
             PRM_GET(qpc, qpc, cqn_snd) == left.cq.cqn,
         "QUERY_QP");
}

static void query_all(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        query(&(struct drv_qp){.drv = left.drv, .qpn = qpns[i]}, PRM_QP_STATE_RST);
    }
    for (unsigned i = 0; i < n_connected; i++) {
        query(&left.qps[i], PRM_QP_STATE_RTS);
    }
}

static void destroy(unsigned n)
{
    struct prm_destroy_qp_in in[1] = {0};

    PRM_SET(destroy_qp_in, in, opcode, PRM_CMD_OP_DESTROY_QP);
    for (unsigned i = 0; i < n; i++) {
        PRM_SET(destroy_qp_in, in, qpn, qpns[i]);
        must(drv_cmd_simple(left.drv, in, sizeof(in)) == 0, "DESTROY_QP");
    }
}

/* -- connected ones ---------------------------------------------------------------------------- */

static void make_connected(struct side *side, unsigned i)
{
    const struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                                     .pdn = side->drv->pdn,
                                     .send_cq = &side->cq,
                                     .recv_cq = &side->cq,
                                     .log_sq = 2,
                                     .log_rq = 2,
                                     .max_recv_sge = 1};

    must(drv_create_qp(side->drv, &attr, &side->qps[i]) == 0, "CREATE_QP");
}

static void connect_to(struct side *from, const struct side *to, unsigned i)
{
    struct drv_path path = {.remote_qpn = to->qps[i].qpn};

    memcpy(path.mac, to->drv->mac, 6);
    memcpy(path.gid, to->gid, 16);
    must(drv_qp_connect(&from->qps[i], &path) == 0, "connecting a QP");
}

static void connect_all(void)
{
    for (unsigned i = 0; i < n_connected; i++) {
        make_connected(&left, i);
        make_connected(&right, i);
        connect_to(&left, &right, i);
        connect_to(&right, &left, i);
    }
}

static void message(unsigned i)
{
    const struct drv_sge from = {.va = 0, .len = BYTES, .lkey = left.mr.key};
    const struct drv_sge to = {.va = BYTES, .len = BYTES, .lkey = right.mr.key};
    const struct drv_send send = {
        .opcode = PRM_WQE_OPCODE_SEND, .flags = DRV_SIGNALED, .sge = &from, .num_sge = 1};
    struct drv_wc wc;

    drv_post_recv(&right.qps[i], &to, 1);
    drv_post_send(&left.qps[i], &send);
    inproc_settle(world);
    must(drv_poll_cq(left.drv, &left.cq, &wc) && wc.opcode == PRM_CQE_OPCODE_REQ &&
             drv_poll_cq(right.drv, &right.cq, &wc) && wc.opcode == PRM_CQE_OPCODE_RESP_SEND,
         "a message");
}

static double messages(void)
{
    uint64_t start;

    for (unsigned i = 0; i < n_connected; i++) {
        message(i);
    }
    start = cpu_ns();
    for (unsigned i = 0; i < MESSAGES; i++) {
        message(i % n_connected);
    }
    return (double)(cpu_ns() - start) / MESSAGES;
}

/* ---------------------------------------------------------------------------------------------- */

static void one_size(unsigned n)
{
    uint64_t start, used, pages;
    double create_ns, message_ns, destroy_ns, reset_s;

    n_connected = MAX(n / ONE_IN, 1);
    qpns = g_new(uint32_t, n);
    memset(qpns, 1, n * sizeof(*qpns));
    bring_up();
    prepare_idle();
    make(1); /* the first QP also makes what all QPs share */

    used = left.hca->fw->hca.memory.used;
    pages = resident();
    start = cpu_ns();
    make(n);
    create_ns = (double)(cpu_ns() - start) / n;
    used = left.hca->fw->hca.memory.used - used;
    pages = resident() - pages;
    connect_all();
    message_ns = messages();
    query_all(n);
    start = cpu_ns();
    destroy(n);
    destroy_ns = (double)(cpu_ns() - start) / n;
    make(n);
    start = cpu_ns();
    fw_reset(left.hca->fw);
    while (fw_run(left.hca->fw, 512)) {
    }
    reset_s = (double)(cpu_ns() - start) / 1e9;
    printf("%9u  %10.0f  %8.0f  %8.0f  %11.0f  %10.0f  %8.2f\n", n, create_ns, (double)used / n,
           (double)pages / n, message_ns, destroy_ns, reset_s);
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
