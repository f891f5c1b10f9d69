/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datacheck: two processes send each other what a plan says (data_plan.h), over libibverbs, and
 * check every byte that came or must not have changed.
 *
 *     datacheck -g GID [options]          on one side; it listens on TCP for the other side
 *     datacheck -g GID [options] HOST     on the other side, with the same options
 *
 * Exit status 0: every operation completed as expected and no byte differs. 1: an operation did
 * not, or a byte differs. 2: bad arguments or no such device.
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
#include "tests/programs/data_plan.h"
#include "tests/programs/other_side.h"

#define PATIENCE   OTHER_SIDE_PATIENCE /* seconds without any completion */
#define INLINE     200
#define RD_ATOM    16
#define QKEY       0x11223344
#define PORT       "18515"
#define RECEIVE_ID (1ull << 32)
#define RNR_TIMER  12 /* 0.64 ms */
#define TIMEOUT    18 /* 1 s */

struct options {
    const char *dev, *host, *port;
    uint64_t ops, seed;
    unsigned gid, ib_port, qps, transports; /* transports: a bit mask */
    uint8_t timeout;
};

/* The parameters that the sides exchange, all in network byte order. */
struct hello {
    uint64_t ops, seed, arena;
    uint32_t lanes, transports, max_sge, max_srq_sge, max_inline, rd_atom, mtu, rkey;
    uint32_t qpn[DATA_LANES], psn[DATA_LANES];
    uint8_t gid[16];
};

struct check {
    struct options opt;
    unsigned side;
    int peer; /* the socket to the other side */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *local, *open; /* two keys for the arena: without and with remote access */
    struct ibv_qp *qp[DATA_LANES];
    struct ibv_ah *ah;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct hello mine, theirs;
    uint8_t *arena, *shadow;
    struct data_plan plan;
    unsigned last_done[DATA_LANES]; /* one more than the index of the last completed operation */
    uint64_t differences;
};

/* -- the other side -----------------------------------------------------------------------------
 */

/* Returns when both sides have reached this point. */
static void meet(struct check *c, unsigned point)
{
    uint64_t mine = htobe64(c->plan.batch << 8 | point), theirs;

    tell(c->peer, &mine, &theirs, sizeof(mine));
    need(mine == theirs, "agreeing with the other side on where we are");
}

/* -- objects ------------------------------------------------------------------------------------
 */

static unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void open_device(struct check *c)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n), *dev = NULL;

    for (int i = 0; list && i < n && !dev; i++) {
        if (!c->opt.dev || strcmp(c->opt.dev, ibv_get_device_name(list[i])) == 0) {
            dev = list[i];
        }
    }
    if (!dev || !(c->ctx = ibv_open_device(dev))) {
        fprintf(stderr, "datacheck: no RDMA device %s\n", c->opt.dev ? c->opt.dev : "");
        exit(2);
    }
    ibv_free_device_list(list);
    need(ibv_query_device(c->ctx, &c->attr) == 0, "ibv_query_device");
    need(ibv_query_port(c->ctx, (uint8_t)c->opt.ib_port, &c->port) == 0, "ibv_query_port");
}

/* Makes the same choice on both sides: qps lanes of each transport. */
static void choose_lanes(const struct options *opt, struct data_config *config)
{
    config->seed = opt->seed;
    config->lanes = 0;
    for (unsigned t = 0; t < DATA_TRANSPORTS; t++) {
        for (unsigned i = 0; i < opt->qps && opt->transports >> t & 1; i++) {
            config->transport[config->lanes++] = (enum data_transport)t;
        }
    }
}

static void create_qp(struct check *c, const struct data_config *config, unsigned lane)
{
    enum data_transport transport = config->transport[lane];
    struct ibv_qp_init_attr init = {
        .send_cq = c->send_cq,
        .recv_cq = c->recv_cq,
        .srq = transport == DATA_RC_SRQ ? c->srq : NULL,
        .qp_type = transport == DATA_UD   ? IBV_QPT_UD
                   : transport == DATA_UC ? IBV_QPT_UC
                                          : IBV_QPT_RC,
        .cap = {.max_send_wr = DATA_DEPTH,
                .max_recv_wr = DATA_DEPTH,
                .max_send_sge = min(DATA_MAX_SGE, (unsigned)c->attr.max_sge),
                .max_recv_sge = min(DATA_MAX_SGE, (unsigned)c->attr.max_sge),
                .max_inline_data = INLINE},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)c->opt.ib_port};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    c->qp[lane] = ibv_create_qp(c->pd, &init);
    need(c->qp[lane] != NULL, "ibv_create_qp");
    if (transport == DATA_UD) {
        attr.qkey = QKEY;
        mask |= IBV_QP_QKEY;
    } else {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (transport != DATA_UC) {
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        }
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    need(ibv_modify_qp(c->qp[lane], &attr, mask) == 0, "ibv_modify_qp to INIT");
    c->mine.qpn[lane] = htonl(c->qp[lane]->qp_num);
    /* far apart; the PSN of the first lane soon passes the largest value */
    c->mine.psn[lane] = htonl((0xffff80 + lane * 0x070000 + c->side * 0x030000) & 0xffffff);
}

static void create_objects(struct check *c, const struct data_config *config)
{
    int rights = IBV_ACCESS_LOCAL_WRITE;
    unsigned srq_sge = min(DATA_MAX_SGE, (unsigned)c->attr.max_srq_sge);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = DATA_BATCH, .max_sge = srq_sge}};
    union ibv_gid gid;

    c->arena = aligned_alloc(4096, DATA_ARENA);
    c->shadow = malloc(DATA_ARENA);
    need(c->arena && c->shadow, "finding memory");
    memset(c->arena, 0, DATA_ARENA);
    c->pd = ibv_alloc_pd(c->ctx);
    need(c->pd != NULL, "ibv_alloc_pd");
    c->local = ibv_reg_mr(c->pd, c->arena, DATA_ARENA, rights);
    rights |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    c->open = ibv_reg_mr(c->pd, c->arena, DATA_ARENA, rights);
    need(c->local && c->open, "ibv_reg_mr");
    c->send_cq = ibv_create_cq(c->ctx, DATA_BATCH, NULL, NULL, 0);
    c->recv_cq = ibv_create_cq(c->ctx, DATA_BATCH, NULL, NULL, 0);
    need(c->send_cq && c->recv_cq, "ibv_create_cq");
    if (c->opt.transports >> DATA_RC_SRQ & 1) {
        c->srq = ibv_create_srq(c->pd, &srq);
        need(c->srq != NULL, "ibv_create_srq");
    }
    for (unsigned lane = 0; lane < config->lanes; lane++) {
        create_qp(c, config, lane);
    }
    need(ibv_query_gid(c->ctx, (uint8_t)c->opt.ib_port, (int)c->opt.gid, &gid) == 0,
         "ibv_query_gid");
    memcpy(c->mine.gid, gid.raw, 16);
    c->mine.ops = htobe64(c->opt.ops);
    c->mine.seed = htobe64(c->opt.seed);
    c->mine.lanes = htonl(config->lanes);
    c->mine.transports = htonl(c->opt.transports);
    c->mine.arena = htobe64((uintptr_t)c->arena);
    c->mine.rkey = htonl(c->open->rkey);
    c->mine.max_sge = htonl(min(DATA_MAX_SGE, (unsigned)c->attr.max_sge));
    c->mine.max_srq_sge = htonl(srq_sge);
    c->mine.max_inline = htonl(INLINE);
    c->mine.rd_atom = htonl(min(RD_ATOM, (unsigned)c->attr.max_qp_rd_atom));
    c->mine.mtu = htonl(c->port.active_mtu);
}

static uint32_t lesser(uint32_t mine, uint32_t theirs)
{
    return min(ntohl(mine), ntohl(theirs));
}

static void fill_ah(const struct check *c, struct ibv_ah_attr *ah)
{
    memset(ah, 0, sizeof(*ah));
    ah->is_global = 1;
    ah->port_num = (uint8_t)c->opt.ib_port;
    ah->grh.sgid_index = (uint8_t)c->opt.gid;
    ah->grh.hop_limit = 64;
    memcpy(ah->grh.dgid.raw, c->theirs.gid, 16);
}

/* Connected lanes use the port's MTU and the two smaller MTUs in turn. */
static void connect_qp(struct check *c, const struct data_config *config, unsigned lane)
{
    enum data_transport transport = config->transport[lane];
    unsigned mtu = lesser(c->mine.mtu, c->theirs.mtu);
    uint32_t rd_atom = lesser(c->mine.rd_atom, c->theirs.rd_atom);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)(mtu > lane % 3 ? mtu - lane % 3 : IBV_MTU_256),
        .dest_qp_num = ntohl(c->theirs.qpn[lane]),
        .rq_psn = ntohl(c->theirs.psn[lane]),
        .max_dest_rd_atomic = (uint8_t)rd_atom,
        .min_rnr_timer = RNR_TIMER,
    };
    int mask = IBV_QP_STATE;

    fill_ah(c, &attr.ah_attr);
    if (transport != DATA_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (transport == DATA_RC || transport == DATA_RC_SRQ) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    need(ibv_modify_qp(c->qp[lane], &attr, mask) == 0, "ibv_modify_qp to RTR");
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = ntohl(c->mine.psn[lane]);
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (transport == DATA_RC || transport == DATA_RC_SRQ) {
        attr.timeout = c->opt.timeout;
        attr.retry_cnt = attr.rnr_retry = 7;
        attr.max_rd_atomic = (uint8_t)rd_atom;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    need(ibv_modify_qp(c->qp[lane], &attr, mask) == 0, "ibv_modify_qp to RTS");
}

static void destroy_objects(struct check *c)
{
    if (c->ah) {
        need(ibv_destroy_ah(c->ah) == 0, "ibv_destroy_ah");
    }
    for (unsigned lane = 0; lane < c->plan.config.lanes; lane++) {
        need(ibv_destroy_qp(c->qp[lane]) == 0, "ibv_destroy_qp");
    }
    if (c->srq) {
        need(ibv_destroy_srq(c->srq) == 0, "ibv_destroy_srq");
    }
    need(ibv_destroy_cq(c->send_cq) == 0 && ibv_destroy_cq(c->recv_cq) == 0, "ibv_destroy_cq");
    need(ibv_dereg_mr(c->local) == 0 && ibv_dereg_mr(c->open) == 0, "ibv_dereg_mr");
    need(ibv_dealloc_pd(c->pd) == 0, "ibv_dealloc_pd");
    need(ibv_close_device(c->ctx) == 0, "ibv_close_device");
    free(c->arena);
    free(c->shadow);
}

/* -- a batch ------------------------------------------------------------------------------------
 */

/* The two keys alternate in a list. */
static int make_sges(const struct check *c, const struct data_list *list, struct ibv_sge *sge)
{
    for (unsigned i = 0; i < list->n; i++) {
        sge[i].addr = (uintptr_t)(c->arena + list->piece[i].at);
        sge[i].length = list->piece[i].len;
        sge[i].lkey = i % 2 ? c->open->lkey : c->local->lkey;
    }
    return (int)list->n;
}

static void post_receives(struct check *c)
{
    for (unsigned i = 0; i < c->plan.num_slots[c->side]; i++) {
        const struct data_slot *slot = &c->plan.slot[c->side][i];
        struct ibv_sge sge[DATA_MAX_SGE];
        struct ibv_recv_wr wr = {.wr_id = RECEIVE_ID | i, .sg_list = sge}, *bad;

        wr.num_sge = make_sges(c, &slot->list, sge);
        if (c->plan.config.transport[slot->lane] == DATA_RC_SRQ) {
            need(ibv_post_srq_recv(c->srq, &wr, &bad) == 0, "ibv_post_srq_recv");
        } else {
            need(ibv_post_recv(c->qp[slot->lane], &wr, &bad) == 0, "ibv_post_recv");
        }
    }
}

static const struct {
    enum ibv_wr_opcode send;
    enum ibv_wc_opcode done, received;
} verbs[DATA_KINDS] = {
    [DATA_SEND] = {IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV},
    [DATA_SEND_IMM] = {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV},
    [DATA_WRITE] = {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0},
    [DATA_WRITE_IMM] = {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM},
    [DATA_READ] = {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0},
    [DATA_FETCH_ADD] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0},
    [DATA_CMP_SWAP] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 0},
};

static void post_operation(struct check *c, unsigned i)
{
    const struct data_op *op = &c->plan.op[i];
    struct ibv_sge sge[DATA_MAX_SGE];
    struct ibv_send_wr wr = {.wr_id = i, .sg_list = sge, .opcode = verbs[op->kind].send}, *bad;
    uint64_t remote = be64toh(c->theirs.arena) + op->remote;
    uint32_t rkey = ntohl(c->theirs.rkey);

    wr.num_sge = make_sges(c, &op->local, sge);
    wr.imm_data = htonl(op->imm);
    wr.send_flags = (op->signaled ? IBV_SEND_SIGNALED : 0) | (op->inlined ? IBV_SEND_INLINE : 0) |
                    (op->solicited ? IBV_SEND_SOLICITED : 0) | (op->fence ? IBV_SEND_FENCE : 0);
    if (c->plan.config.transport[op->lane] == DATA_UD) {
        wr.wr.ud.ah = c->ah;
        wr.wr.ud.remote_qpn = ntohl(c->theirs.qpn[op->lane]);
        wr.wr.ud.remote_qkey = QKEY;
    } else if (op->kind == DATA_FETCH_ADD || op->kind == DATA_CMP_SWAP) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = op->kind == DATA_FETCH_ADD ? op->swap_add : op->compare;
        wr.wr.atomic.swap = op->swap_add;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = rkey;
    }
    need(ibv_post_send(c->qp[op->lane], &wr, &bad) == 0, "ibv_post_send");
    if (op->inlined) {
        data_scribble(op, c->arena, c->shadow);
    }
}

/* Prints what is wrong with a completion. */
static void wrong(const struct check *c, const struct ibv_wc *wc, const char *what)
{
    fail("batch %" PRIu64 ", completion of %s %u (%s, opcode %d, %u bytes): %s", c->plan.batch,
         wc->wr_id & RECEIVE_ID ? "receive" : "operation", (unsigned)wc->wr_id,
         ibv_wc_status_str(wc->status), (int)wc->opcode, wc->byte_len, what);
}

static void expect(const struct check *c, const struct ibv_wc *wc, bool condition, const char *what)
{
    if (!condition) {
        wrong(c, wc, what);
    }
}

static void sent(struct check *c, const struct ibv_wc *wc)
{
    const struct data_op *op;

    expect(c, wc, wc->wr_id < c->plan.num_ops, "an operation that was not posted");
    op = &c->plan.op[wc->wr_id];
    expect(c, wc, wc->status == IBV_WC_SUCCESS, data_kind_name[op->kind]);
    expect(c, wc, op->side == c->side && op->signaled, "not posted as signaled");
    expect(c, wc, wc->qp_num == c->qp[op->lane]->qp_num, "of another QP");
    expect(c, wc, wc->wr_id >= c->last_done[op->lane], "not in the order of posting");
    expect(c, wc, wc->opcode == verbs[op->kind].done, data_kind_name[op->kind]);
    if (op->kind == DATA_READ) {
        expect(c, wc, wc->byte_len == op->len, "a READ of another length");
    }
    c->last_done[op->lane] = (unsigned)wc->wr_id + 1;
}

/* The GRH of a datagram over RoCEv2 names both GIDs. For IPv4 only its last 20 bytes are written,
 * and they are an IPv4 header (annex A17). */
static bool names_the_peer(const struct check *c, unsigned slot)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const struct data_list *list = &c->plan.slot[c->side][slot].list;
    uint8_t grh[DATA_GRH];
    unsigned n = 0;

    for (unsigned i = 0; i < list->n; i++) {
        for (uint32_t k = 0; k < list->piece[i].len && n < DATA_GRH; k++) {
            grh[n++] = c->arena[list->piece[i].at + k];
        }
    }
    if (memcmp(c->mine.gid, mapped, sizeof(mapped)) == 0) {
        return memcmp(grh + 32, c->theirs.gid + 12, 4) == 0 &&
               memcmp(grh + 36, c->mine.gid + 12, 4) == 0;
    }
    return memcmp(grh + 8, c->theirs.gid, 16) == 0 && memcmp(grh + 24, c->mine.gid, 16) == 0;
}

static void received(struct check *c, const struct ibv_wc *wc)
{
    unsigned slot = (unsigned)wc->wr_id, lane = 0;
    const struct data_op *op;
    bool ud;

    expect(c, wc, wc->status == IBV_WC_SUCCESS, "a receive");
    expect(c, wc, wc->wr_id & RECEIVE_ID, "not posted as a receive");
    while (lane < c->plan.config.lanes && c->qp[lane]->qp_num != wc->qp_num) {
        lane++;
    }
    expect(c, wc, lane < c->plan.config.lanes, "no such QP");
    op = data_received(&c->plan, c->side, lane, slot, c->arena, c->shadow);
    if (!op) {
        wrong(c, wc, "nothing is due there");
        return;
    }
    ud = c->plan.config.transport[lane] == DATA_UD;
    expect(c, wc, wc->opcode == verbs[op->kind].received, data_kind_name[op->kind]);
    expect(c, wc, wc->byte_len == op->len + (ud ? DATA_GRH : 0), "not of the length that was sent");
    expect(c, wc, !(wc->wc_flags & IBV_WC_WITH_IMM) == (op->kind == DATA_SEND), "immediate flag");
    if (op->kind != DATA_SEND) {
        expect(c, wc, ntohl(wc->imm_data) == op->imm, "another immediate");
    }
    if (ud) {
        expect(c, wc, wc->wc_flags & IBV_WC_GRH, "no GRH");
        expect(c, wc, wc->src_qp == ntohl(c->theirs.qpn[lane]), "another source QP");
        expect(c, wc, names_the_peer(c, slot), "a GRH of other addresses");
    }
}

static void poll_batch(struct check *c)
{
    unsigned to_send = data_completions_due(&c->plan, c->side);
    unsigned to_receive = data_receives_due(&c->plan, c->side);
    time_t last = time(NULL);

    while (to_send || to_receive) {
        struct ibv_wc wc[16];
        int n = ibv_poll_cq(c->send_cq, 16, wc), m;

        need(n >= 0, "ibv_poll_cq");
        for (int i = 0; i < n; i++) {
            expect(c, &wc[i], to_send-- > 0, "more than were posted");
            sent(c, &wc[i]);
        }
        m = ibv_poll_cq(c->recv_cq, 16, wc);
        need(m >= 0, "ibv_poll_cq");
        for (int i = 0; i < m; i++) {
            expect(c, &wc[i], to_receive-- > 0, "more than were posted");
            received(c, &wc[i]);
        }
        if (n || m) {
            last = time(NULL);
        } else if (time(NULL) - last > PATIENCE) {
            fail("batch %" PRIu64 ": %u own operations and %u receives do not complete",
                 c->plan.batch, to_send, to_receive);
        }
    }
}

static void run_batch(struct check *c, unsigned max_ops)
{
    data_plan_next(&c->plan, max_ops);
    memset(c->last_done, 0, sizeof(c->last_done));
    data_fill(&c->plan, c->side, c->arena, c->shadow);
    post_receives(c);
    meet(c, 1);
    for (unsigned i = 0; i < c->plan.num_ops; i++) {
        if (c->plan.op[i].side == c->side) {
            post_operation(c, i);
        }
    }
    poll_batch(c);
    meet(c, 2);
    c->differences += data_compare(&c->plan, c->side, c->arena, c->shadow, stderr);
}

/* -- the program --------------------------------------------------------------------------------
 */

static const char usage[] = "usage: datacheck [options] [HOST]\n"
                            "  -d, --dev NAME         RDMA device (the first one)\n"
                            "  -i, --ib-port N        its port (1)\n"
                            "  -g, --gid INDEX        GID of the port (0)\n"
                            "  -n, --ops N            operations, of both sides together (10000)\n"
                            "  -s, --seed N           what decides all of them (1)\n"
                            "  -t, --transport LIST   of rc,srq,uc,ud (all)\n"
                            "  -q, --qps N            QPs of each transport (3)\n"
                            "  -u, --timeout N        ACK timeout, 4 us * 2^N (18)\n"
                            "  -p, --port N           TCP port (" PORT ")\n";

static unsigned transports(char *list)
{
    unsigned bits = 0;

    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        unsigned t = 0;

        while (t < DATA_TRANSPORTS && strcmp(word, data_transport_name[t])) {
            t++;
        }
        if (t == DATA_TRANSPORTS) {
            return 0;
        }
        bits |= 1u << t;
    }
    return bits;
}

static bool parse(int argc, char **argv, struct options *opt)
{
    static const struct option longs[] = {
        {"dev", 1, NULL, 'd'},  {"ib-port", 1, NULL, 'i'}, {"gid", 1, NULL, 'g'},
        {"ops", 1, NULL, 'n'},  {"seed", 1, NULL, 's'},    {"transport", 1, NULL, 't'},
        {"qps", 1, NULL, 'q'},  {"timeout", 1, NULL, 'u'}, {"port", 1, NULL, 'p'},
        {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0},
    };
    int c;

    while ((c = getopt_long(argc, argv, "d:i:g:n:s:t:q:u:p:h", longs, NULL)) != -1) {
        switch (c) {
        case 'd':
            opt->dev = optarg;
            break;
        case 'i':
            opt->ib_port = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'g':
            opt->gid = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'n':
            opt->ops = strtoull(optarg, NULL, 0);
            break;
        case 's':
            opt->seed = strtoull(optarg, NULL, 0);
            break;
        case 't':
            opt->transports = transports(optarg);
            break;
        case 'q':
            opt->qps = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'u':
            opt->timeout = (uint8_t)strtoul(optarg, NULL, 0);
            break;
        case 'p':
            opt->port = optarg;
            break;
        default:
            return false;
        }
    }
    if (optind < argc) {
        opt->host = argv[optind++];
    }
    return optind == argc && opt->transports && opt->qps &&
           opt->qps <= DATA_LANES / DATA_TRANSPORTS;
}

int main(int argc, char **argv)
{
    static struct check check;
    struct check *c = &check;
    struct data_config config = {0};
    uint64_t left;

    c->opt = (struct options){.port = PORT,
                              .ops = 10000,
                              .seed = 1,
                              .ib_port = 1,
                              .qps = 3,
                              .timeout = TIMEOUT,
                              .transports = (1u << DATA_TRANSPORTS) - 1};
    if (!parse(argc, argv, &c->opt)) {
        fputs(usage, stderr);
        return 2;
    }
    c->side = c->opt.host ? 1 : 0;
    open_device(c);
    choose_lanes(&c->opt, &config);
    create_objects(c, &config);
    c->peer = other_side_connect(c->opt.host, c->opt.port);
    tell(c->peer, &c->mine, &c->theirs, sizeof(c->mine));
    need(c->mine.ops == c->theirs.ops && c->mine.seed == c->theirs.seed &&
             c->mine.lanes == c->theirs.lanes && c->mine.transports == c->theirs.transports,
         "agreeing with the other side on what to do");
    for (unsigned lane = 0; lane < config.lanes; lane++) {
        connect_qp(c, &config, lane);
    }
    if (c->opt.transports >> DATA_UD & 1) {
        struct ibv_ah_attr ah;

        fill_ah(c, &ah);
        c->ah = ibv_create_ah(c->pd, &ah);
        need(c->ah != NULL, "ibv_create_ah");
    }
    config.max_sge = lesser(c->mine.max_sge, c->theirs.max_sge);
    config.max_srq_sge = lesser(c->mine.max_srq_sge, c->theirs.max_srq_sge);
    config.max_inline = lesser(c->mine.max_inline, c->theirs.max_inline);
    config.mtu = 128u << lesser(c->mine.mtu, c->theirs.mtu);
    data_plan_init(&c->plan, &config);
    for (left = c->opt.ops; left; left -= c->plan.num_ops) {
        run_batch(c, left < DATA_BATCH ? (unsigned)left : DATA_BATCH);
    }
    meet(c, 3);
    destroy_objects(c);
    data_print(&c->plan);
    printf("%" PRIu64 " operations, %" PRIu64 " differences\n", c->opt.ops, c->differences);
    return c->differences != 0;
}
