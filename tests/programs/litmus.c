/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * litmus: checks in which order one side sees the other side's operations
 * (docs/explanation/ordering.md).
 *
 *     litmus -g GID [options]          on one side; it listens on TCP for the other side
 *     litmus -g GID [options] HOST     on the other side, with the same options
 *
 * Each test is a row of the table below: rounds in which the sides take turns. One side sends data
 * over an RC QP; length and content depend on the round. The other side waits, in the way of the
 * test, for a sign that the data has arrived. Then it compares every byte at once, with nothing in
 * between that would hide bytes that arrive late. Prints a line for each test. Exit status 0: the
 * data was always right. 1: it was not. 2: bad arguments or no such device.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/other_side.h"

#define MAX_LEN 16384
#define TIMEOUT 18 /* 1 s */
#define PORT    "18515"

struct shared {
    uint8_t data[MAX_LEN]; /* the other side writes from here on */
    uint64_t flag;
    uint64_t mark;  /* store buffering: what the other side writes in a round */
    uint64_t count; /* counter that both sides' CPUs and HCAs change */
    uint64_t reply; /* this side's HCA writes from here on */
    uint64_t read_back[MAX_LEN / 8];
    uint8_t out[MAX_LEN]; /* outgoing data */
    uint64_t out_flag, out_mark;
};

/* The parameters that the sides exchange, all in network byte order. */
struct hello {
    uint64_t addr;
    uint32_t rkey, qpn, psn, rounds;
    uint8_t gid[16];
};

struct litmus {
    const char *dev, *host, *port;
    unsigned gid, ib_port, rounds;
    bool cpu_is_emulated;
    int peer; /* the socket to the other side */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct shared *mem;
    struct hello mine, theirs;
    unsigned wrong;
};

/* -- operations ---------------------------------------------------------------------------------
 */

static uint64_t at_peer(const struct litmus *l, size_t offset)
{
    return be64toh(l->theirs.addr) + offset;
}

#define THERE(field) offsetof(struct shared, field)

static void post(struct litmus *l, struct ibv_send_wr *wr, void *from, size_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)from, .length = (uint32_t)len, .lkey = l->mr->lkey};
    struct ibv_send_wr *bad;

    wr->sg_list = &sge;
    wr->num_sge = 1;
    need(ibv_post_send(l->qp, wr, &bad) == 0, "ibv_post_send");
}

static void post_rdma(struct litmus *l, enum ibv_wr_opcode opcode, void *from, size_t len,
                      size_t there, unsigned flags)
{
    struct ibv_send_wr wr = {.opcode = opcode, .send_flags = flags};

    wr.wr.rdma.remote_addr = at_peer(l, there);
    wr.wr.rdma.rkey = ntohl(l->theirs.rkey);
    post(l, &wr, from, len);
}

static void post_add(struct litmus *l, size_t there, uint64_t add)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED};

    wr.wr.atomic.remote_addr = at_peer(l, there);
    wr.wr.atomic.rkey = ntohl(l->theirs.rkey);
    wr.wr.atomic.compare_add = add;
    post(l, &wr, &l->mem->reply, 8);
}

static void post_receive(struct litmus *l)
{
    struct ibv_sge sge = {.addr = (uintptr_t)l->mem->data, .length = MAX_LEN, .lkey = l->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    need(ibv_post_recv(l->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void complete(struct ibv_cq *cq)
{
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        need(time(NULL) <= end, "waiting for a completion");
    }
    need(n == 1, "ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS) {
        fail("a completion says %s", ibv_wc_status_str(wc.status));
    }
}

/* Waits until the word holds a value, and reads only the word. */
static void await(const uint64_t *word, uint64_t value)
{
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;

    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        need(time(NULL) <= end, "waiting for a word to change");
    }
}

/* -- the data of a round ------------------------------------------------------------------------
 */

/* Returns lengths of all sizes: within a packet's copy in one piece, in several pieces, with other
 * instructions, and in several packets. The last word is the round. */
static size_t length_of(unsigned round)
{
    static const size_t lengths[] = {16,  24,   40,   64,   72,   120,  256,  264,
                                     520, 1024, 2048, 2056, 4096, 4104, 8192, MAX_LEN};

    return lengths[round % (sizeof(lengths) / sizeof(lengths[0]))];
}

static void fill(uint8_t *data, unsigned round)
{
    size_t words = length_of(round) / 8;

    for (size_t i = 0; i < words; i++) {
        uint64_t word = i == words - 1 ? round : (uint64_t)round << 32 | i;

        memcpy(data + 8 * i, &word, 8);
    }
}

static void compare(struct litmus *l, const char *test, const void *data, unsigned round)
{
    size_t words = length_of(round) / 8;
    const uint64_t *there = data;

    for (size_t i = 0; i < words; i++) {
        uint64_t is = __atomic_load_n(&there[i], __ATOMIC_RELAXED);
        uint64_t should_be = i == words - 1 ? round : (uint64_t)round << 32 | i;

        if (is != should_be) {
            if (l->wrong++ < 10) {
                fprintf(stderr,
                        "%s: round %u, %zu bytes: byte %zu: %016" PRIx64
                        " is there, not %016" PRIx64 "\n",
                        test, round, 8 * words, 8 * i, is, should_be);
            }
            return;
        }
    }
}

/* -- tests: what the writing side does, and what the other side does --------------------------- */

static void write_then_flag(struct litmus *l, unsigned round)
{
    l->mem->out_flag = round;
    post_rdma(l, IBV_WR_RDMA_WRITE, l->mem->out, length_of(round), THERE(data), 0);
    post_rdma(l, IBV_WR_RDMA_WRITE, &l->mem->out_flag, 8, THERE(flag), IBV_SEND_SIGNALED);
    complete(l->send_cq);
}

static void see_flag(struct litmus *l, const char *test, unsigned round)
{
    await(&l->mem->flag, round);
    compare(l, test, l->mem->data, round);
}

static void write_alone(struct litmus *l, unsigned round)
{
    post_rdma(l, IBV_WR_RDMA_WRITE, l->mem->out, length_of(round), THERE(data), IBV_SEND_SIGNALED);
    complete(l->send_cq);
}

static void see_last_word(struct litmus *l, const char *test, unsigned round)
{
    await((const uint64_t *)(const void *)(l->mem->data + length_of(round) - 8), round);
    compare(l, test, l->mem->data, round);
}

static void write_then_add(struct litmus *l, unsigned round)
{
    post_rdma(l, IBV_WR_RDMA_WRITE, l->mem->out, length_of(round), THERE(data), 0);
    post_add(l, THERE(flag), 1);
    complete(l->send_cq);
}

static void see_increment(struct litmus *l, const char *test, unsigned round)
{
    while (!__atomic_load_n(&l->mem->flag, __ATOMIC_ACQUIRE)) {
    }
    compare(l, test, l->mem->data, round);
}

static void send_message(struct litmus *l, unsigned round)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

    post(l, &wr, l->mem->out, length_of(round));
    complete(l->send_cq);
}

static void write_imm(struct litmus *l, unsigned round)
{
    post_rdma(l, IBV_WR_RDMA_WRITE_WITH_IMM, l->mem->out, length_of(round), THERE(data),
              IBV_SEND_SIGNALED);
    complete(l->send_cq);
}

static void see_completion(struct litmus *l, const char *test, unsigned round)
{
    complete(l->recv_cq);
    compare(l, test, l->mem->data, round);
    post_receive(l);
}

/* IBTA table of ordering rules: a READ is executed after the WRITEs that were posted before it. */
static void write_then_read(struct litmus *l, unsigned round)
{
    post_rdma(l, IBV_WR_RDMA_WRITE, l->mem->out, length_of(round), THERE(data), 0);
    post_rdma(l, IBV_WR_RDMA_READ, l->mem->read_back, length_of(round), THERE(data),
              IBV_SEND_SIGNALED);
    complete(l->send_cq);
    compare(l, "write, then read", l->mem->read_back, round);
    write_then_flag(l, round);
}

static const struct {
    const char *name;
    void (*act)(struct litmus *l, unsigned round);
    void (*see)(struct litmus *l, const char *test, unsigned round);
} tests[] = {
    {"a WRITE, then a WRITE of a flag", write_then_flag, see_flag},
    {"a WRITE whose last word is the flag", write_alone, see_last_word},
    {"a WRITE, then an atomic on the flag", write_then_add, see_increment},
    {"a SEND and its completion", send_message, see_completion},
    {"a WRITE with immediate and its completion", write_imm, see_completion},
    {"a WRITE, then a READ of the same place", write_then_read, see_flag},
};

/* -- rounds -------------------------------------------------------------------------------------
 */

/* Returns when both sides are here, and no operation is under way. */
static void meet(struct litmus *l)
{
    uint64_t mine = 0, theirs;

    tell(l->peer, &mine, &theirs, sizeof(mine));
}

static void report(struct litmus *l, const char *test, unsigned before)
{
    printf("%-45s %s\n", test, l->wrong == before ? "ok" : "WRONG");
    fflush(stdout);
}

/* The sides act in turn. What was there before a round is not the data of any round. */
static void take_turns(struct litmus *l, size_t test)
{
    unsigned before = l->wrong;

    for (unsigned round = 1; round <= l->rounds; round++) {
        bool acts = (round % 2 == 0) == (l->host != NULL);

        if (acts) {
            fill(l->mem->out, round);
        } else {
            memset(l->mem->data, 0, MAX_LEN);
            __atomic_store_n(&l->mem->flag, 0, __ATOMIC_RELEASE);
        }
        meet(l);
        if (acts) {
            tests[test].act(l, round);
        } else {
            tests[test].see(l, tests[test].name, round);
        }
    }
    meet(l);
    report(l, tests[test].name, before);
}

/* Each side writes to the other side, waits until the WRITE is complete, and reads what the other
 * side writes here. At least one of them finds the other's value, because a completion of a WRITE
 * says that it is in memory. */
static void store_buffering(struct litmus *l)
{
    unsigned before = l->wrong;

    for (unsigned round = 1; round <= l->rounds; round++) {
        uint64_t seen, theirs;

        l->mem->mark = 0;
        l->mem->out_mark = round;
        meet(l);
        post_rdma(l, IBV_WR_RDMA_WRITE, &l->mem->out_mark, 8, THERE(mark), IBV_SEND_SIGNALED);
        complete(l->send_cq);
        seen = __atomic_load_n(&l->mem->mark, __ATOMIC_ACQUIRE);
        tell(l->peer, &seen, &theirs, sizeof(seen));
        if (!seen && !theirs) {
            l->wrong++;
            fprintf(stderr, "store buffering: round %u: neither side saw the other's WRITE\n",
                    round);
        }
    }
    report(l, "store buffering", before);
}

/* Both CPUs and both HCAs add to the same words: no addition is lost (IBV_ATOMIC_GLOB's
 * promise). */
static void atomics_and_cpu(struct litmus *l)
{
    unsigned before = l->wrong;

    __atomic_store_n(&l->mem->count, 0, __ATOMIC_SEQ_CST);
    meet(l);
    for (unsigned round = 0; round < l->rounds; round++) {
        struct ibv_wc wc;
        int n;

        post_add(l, THERE(count), 1);
        do {
            for (unsigned i = 0; i < 16 && !l->cpu_is_emulated; i++) {
                __atomic_fetch_add(&l->mem->count, 1ull << 32, __ATOMIC_SEQ_CST);
                __atomic_fetch_sub(&l->mem->count, 1ull << 32, __ATOMIC_SEQ_CST);
            }
            n = ibv_poll_cq(l->send_cq, 1, &wc);
        } while (n == 0);
        need(n == 1 && wc.status == IBV_WC_SUCCESS, "an atomic");
    }
    meet(l);
    if (l->mem->count != l->rounds) {
        l->wrong++;
        fprintf(stderr, "atomics: the word is %016" PRIx64 " after %u additions\n", l->mem->count,
                l->rounds);
    }
    report(l, "atomics, and the CPU on the same word", before);
}

/* -- bring-up -----------------------------------------------------------------------------------
 */

static void open_device(struct litmus *l)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n), *dev = NULL;

    for (int i = 0; list && i < n && !dev; i++) {
        if (!l->dev || strcmp(l->dev, ibv_get_device_name(list[i])) == 0) {
            dev = list[i];
        }
    }
    l->ctx = dev ? ibv_open_device(dev) : NULL;
    if (!l->ctx) {
        fprintf(stderr, "litmus: no RDMA device %s\n", l->dev ? l->dev : "");
        exit(2);
    }
    ibv_free_device_list(list);
}

static void create_objects(struct litmus *l)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = (uint8_t)l->ib_port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    union ibv_gid gid;

    l->mem = aligned_alloc(4096, (sizeof(*l->mem) + 4095) / 4096 * 4096);
    need(l->mem != NULL, "finding memory");
    memset(l->mem, 0, sizeof(*l->mem));
    l->pd = ibv_alloc_pd(l->ctx);
    need(l->pd != NULL, "ibv_alloc_pd");
    l->mr = ibv_reg_mr(l->pd, l->mem, sizeof(*l->mem),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    l->send_cq = ibv_create_cq(l->ctx, 16, NULL, NULL, 0);
    l->recv_cq = ibv_create_cq(l->ctx, 16, NULL, NULL, 0);
    need(l->mr && l->send_cq && l->recv_cq, "ibv_reg_mr or ibv_create_cq");
    init.send_cq = l->send_cq;
    init.recv_cq = l->recv_cq;
    l->qp = ibv_create_qp(l->pd, &init);
    need(l->qp != NULL, "ibv_create_qp");
    need(ibv_modify_qp(l->qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "ibv_modify_qp to INIT");
    need(ibv_query_gid(l->ctx, (uint8_t)l->ib_port, (int)l->gid, &gid) == 0, "ibv_query_gid");
    l->mine = (struct hello){.addr = htobe64((uintptr_t)l->mem),
                             .rkey = htonl(l->mr->rkey),
                             .qpn = htonl(l->qp->qp_num),
                             .psn = htonl(0x123456),
                             .rounds = htonl(l->rounds)};
    memcpy(l->mine.gid, gid.raw, 16);
}

static void connect_qp(struct litmus *l)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .dest_qp_num = ntohl(l->theirs.qpn),
                               .rq_psn = ntohl(l->theirs.psn),
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = {.is_global = 1, .port_num = (uint8_t)l->ib_port}};

    need(ibv_query_port(l->ctx, (uint8_t)l->ib_port, &port) == 0, "ibv_query_port");
    attr.path_mtu = port.active_mtu;
    attr.ah_attr.grh.sgid_index = (uint8_t)l->gid;
    attr.ah_attr.grh.hop_limit = 64;
    memcpy(attr.ah_attr.grh.dgid.raw, l->theirs.gid, 16);
    need(ibv_modify_qp(l->qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "ibv_modify_qp to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = ntohl(l->mine.psn),
                                .timeout = TIMEOUT,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    need(ibv_modify_qp(l->qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "ibv_modify_qp to RTS");
}

static void destroy_objects(struct litmus *l)
{
    need(ibv_destroy_qp(l->qp) == 0 && ibv_destroy_cq(l->send_cq) == 0 &&
             ibv_destroy_cq(l->recv_cq) == 0 && ibv_dereg_mr(l->mr) == 0 &&
             ibv_dealloc_pd(l->pd) == 0 && ibv_close_device(l->ctx) == 0,
         "destroying");
    free(l->mem);
    close(l->peer);
}

static const char usage[] =
    "usage: litmus -g GID [-d DEVICE] [-i IB_PORT] [-n ROUNDS] [-p PORT] [-1] [HOST]\n";

static bool parse(int argc, char **argv, struct litmus *l)
{
    int c;

    while ((c = getopt(argc, argv, "d:i:g:n:p:1h")) != -1) {
        switch (c) {
        case 'd':
            l->dev = optarg;
            break;
        case 'i':
            l->ib_port = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'g':
            l->gid = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'n':
            l->rounds = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'p':
            l->port = optarg;
            break;
        case '1': /* docs/explanation/ordering.md says what it is for */
            l->cpu_is_emulated = true;
            break;
        default:
            return false;
        }
    }
    if (optind < argc) {
        l->host = argv[optind++];
    }
    return optind == argc && l->rounds;
}

int main(int argc, char **argv)
{
    static struct litmus litmus = {.port = PORT, .ib_port = 1, .rounds = 1000};
    struct litmus *l = &litmus;

    if (!parse(argc, argv, l)) {
        fputs(usage, stderr);
        return 2;
    }
    open_device(l);
    create_objects(l);
    l->peer = other_side_connect(l->host, l->port);
    tell(l->peer, &l->mine, &l->theirs, sizeof(l->mine));
    need(l->mine.rounds == l->theirs.rounds, "agreeing with the other side on what to do");
    connect_qp(l);
    post_receive(l);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        take_turns(l, i);
    }
    store_buffering(l);
    atomics_and_cpu(l);
    destroy_objects(l);
    printf("%u rounds of each, %u wrong\n", l->rounds, l->wrong);
    return l->wrong != 0;
}
