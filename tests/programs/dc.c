/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dc: two processes, each with DC targets and initiators, over libibverbs and libmlx5: messages of
 * few initiators to many targets, RDMA and atomics, errors, and streams. Every byte is checked.
 *
 *     dc -g GID [-d DEVICE] [-p PORT]          on one side
 *     dc -g GID [-d DEVICE] [-p PORT] HOST     on the other side
 *
 * Exit status 0: everything is right, and a line says what was done. 77: the device has no DC.
 */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/programs/dc_queues.h"
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define TARGETS    8
#define INITIATORS 2
#define ROUNDS     50 /* messages from each initiator to each target */
#define MESSAGE    3000
#define DEPTH      128
/* key of the first target; the keys of the other targets follow */
#define KEY     0x1122334455667788ull
#define NO_DC   77
#define CQE     4095
#define TIMEOUT 14 /* 67 ms */

struct hello {
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, readonly;
    uint32_t dctn[TARGETS];
};

/* A side's memory: what the other side writes, by initiator and target; its counters; what it reads
 * from here; and where messages arrive. */
struct arena {
    uint8_t written[INITIATORS][TARGETS][MESSAGE];
    uint64_t counter[TARGETS];
    uint8_t source[MESSAGE];
    uint8_t received[DEPTH][MESSAGE];
    uint8_t out[MESSAGE];
    uint64_t result;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_srq *srq;
static struct ibv_qp *dct[TARGETS], *dci[INITIATORS];
static struct ibv_mr *mr, *readonly;
static struct ibv_ah *ah;
static struct arena *arena;
static struct hello mine, theirs;
static struct endpoint_options options = {.port = "18517"};
static unsigned side, messages, operations;
static int peer;

static uint8_t byte_of(unsigned from, unsigned initiator, unsigned target, unsigned round,
                       size_t at)
{
    return (uint8_t)(from * 101 + initiator * 37 + target * 17 + round * 7 + at);
}

/* -- objects ------------------------------------------------------------------------------------
 */

static struct ibv_qp *make_dct(uint64_t key)
{
    struct ibv_qp *qp =
        dc_make_dct(srq, recv_cq, key, options.gid_index,
                    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

    need(qp, "making a DCT");
    return qp;
}

static struct ibv_qp *make_dci(const struct mlx5dv_dci_streams *streams)
{
    struct dci_attr with = {
        .cq = send_cq,
        .cap = {.max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = 64},
        .operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
        .timeout = TIMEOUT,
        .streams = streams,
    };

    return dc_make_dci(pd, &with);
}

static void post_receive(unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)arena->received[slot], MESSAGE, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    need(!ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv()");
}

/* -- completions --------------------------------------------------------------------------------
 */

static void completed(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = endpoint_completion(send_cq);

    if (wc.status || wc.opcode != opcode) {
        fail("operation %u is %s, opcode %d", operations, ibv_wc_status_str(wc.status), wc.opcode);
    }
    operations++;
}

/* -- work ---------------------------------------------------------------------------------------
 */

struct work {
    enum ibv_wr_opcode opcode;
    unsigned initiator, target;
    uint64_t key;
    void *local;
    uint32_t len, imm;
    uint64_t remote;
    uint32_t rkey;
    uint64_t compare, add_swap;
    int stream; /* -1: none */
};

static void post_to(struct ibv_qp *qp, const struct work *w)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
    int err;

    ibv_wr_start(ex);
    ex->wr_id = w->target;
    ex->wr_flags = IBV_SEND_SIGNALED;
    switch (w->opcode) {
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(ex, htobe32(w->imm));
        break;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(ex, w->rkey, w->remote);
        break;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(ex, w->rkey, w->remote);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(ex, w->rkey, w->remote, w->add_swap);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(ex, w->rkey, w->remote, w->compare, w->add_swap);
        break;
    default:
        fail("no such work");
    }
    if (w->stream < 0) {
        mlx5dv_wr_set_dc_addr(dv, ah, theirs.dctn[w->target], w->key);
    } else {
        mlx5dv_wr_set_dc_addr_stream(dv, ah, theirs.dctn[w->target], w->key, (uint16_t)w->stream);
    }
    if (w->len <= 64 && w->opcode == IBV_WR_SEND_WITH_IMM) {
        ex->wr_flags |= IBV_SEND_INLINE;
        ibv_wr_set_inline_data(ex, w->local, w->len);
    } else {
        ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)w->local, w->len);
    }
    err = ibv_wr_complete(ex);
    if (err) {
        fail("ibv_wr_complete() is %d", err);
    }
}

static void post(const struct work *w)
{
    post_to(dci[w->initiator], w);
}

static struct work to(unsigned initiator, unsigned target, enum ibv_wr_opcode opcode)
{
    return (struct work){.opcode = opcode,
                         .initiator = initiator,
                         .target = target,
                         .key = KEY + target,
                         .local = arena->out,
                         .stream = -1};
}

static uint32_t length_of(unsigned round)
{
    return round % 3 == 0 ? 40 : round % 3 == 1 ? 1024 : MESSAGE;
}

static void take_message(void)
{
    struct ibv_wc wc = endpoint_completion(recv_cq);
    unsigned tag = be32toh(wc.imm_data), initiator = tag & 0xff, target = tag >> 8 & 0xff;
    unsigned round = tag >> 16;

    if (wc.status || wc.opcode != IBV_WC_RECV || !(wc.wc_flags & IBV_WC_WITH_IMM) ||
        target >= TARGETS || wc.qp_num != mine.dctn[target] || wc.byte_len != length_of(round)) {
        fail("message %u: %s, flags %x, queue %x, %u bytes, imm %x", messages,
             ibv_wc_status_str(wc.status), wc.wc_flags, wc.qp_num, wc.byte_len, tag);
    }
    for (size_t i = 0; i < wc.byte_len; i++) {
        if (arena->received[wc.wr_id][i] != byte_of(!side, initiator, target, round, i)) {
            fail("message %u: byte %zu differs", messages, i);
        }
    }
    post_receive((unsigned)wc.wr_id);
    messages++;
}

/* Each initiator sends to one target after another, message by message. */
static void sends(void)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned t = 0; t < TARGETS; t++) {
            for (unsigned i = 0; i < INITIATORS; i++) {
                struct work w = to(i, t, IBV_WR_SEND_WITH_IMM);

                w.len = length_of(round);
                w.imm = round << 16 | t << 8 | i;
                for (size_t n = 0; n < w.len; n++) {
                    arena->out[n] = byte_of(side, i, t, round, n);
                }
                post(&w);
                completed(IBV_WC_SEND);
                take_message();
            }
        }
    }
    together(peer);
}

static void writes(void)
{
    for (unsigned i = 0; i < INITIATORS; i++) {
        for (unsigned t = 0; t < TARGETS; t++) {
            struct work w = to(i, t, IBV_WR_RDMA_WRITE);

            w.len = MESSAGE;
            w.rkey = theirs.rkey;
            w.remote = theirs.addr + offsetof(struct arena, written[i][t]);
            for (size_t n = 0; n < MESSAGE; n++) {
                arena->out[n] = byte_of(side, i, t, 1000, n);
            }
            post(&w);
            completed(IBV_WC_RDMA_WRITE);
        }
    }
    together(peer);
    for (unsigned i = 0; i < INITIATORS; i++) {
        for (unsigned t = 0; t < TARGETS; t++) {
            for (size_t n = 0; n < MESSAGE; n++) {
                if (arena->written[i][t][n] != byte_of(!side, i, t, 1000, n)) {
                    fail("WRITE %u to %u: byte %zu differs", i, t, n);
                }
            }
        }
    }
}

static void reads(void)
{
    for (unsigned t = 0; t < TARGETS; t++) {
        struct work w = to(t % INITIATORS, t, IBV_WR_RDMA_READ);

        memset(arena->out, 0, MESSAGE);
        w.len = MESSAGE;
        w.rkey = theirs.rkey;
        w.remote = theirs.addr + offsetof(struct arena, source);
        post(&w);
        completed(IBV_WC_RDMA_READ);
        for (size_t n = 0; n < MESSAGE; n++) {
            if (arena->out[n] != byte_of(!side, 0, 0, 2000, n)) {
                fail("READ from %u: byte %zu differs", t, n);
            }
        }
    }
    together(peer);
}

static void atomics(void)
{
    for (unsigned t = 0; t < TARGETS; t++) {
        for (unsigned n = 0; n < 10; n++) {
            struct work w = to(t % INITIATORS, t, IBV_WR_ATOMIC_FETCH_AND_ADD);

            w.local = &arena->result;
            w.len = 8;
            w.rkey = theirs.rkey;
            w.remote = theirs.addr + offsetof(struct arena, counter[t]);
            w.add_swap = t + 1;
            post(&w);
            completed(IBV_WC_FETCH_ADD);
            if (arena->result != n * (t + 1)) {
                fail("fetch and add %u of %u found %lu", n, t, (unsigned long)arena->result);
            }
            if (n == 9) {
                w.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
                w.compare = 10 * (t + 1);
                w.add_swap = 7000 + t;
                post(&w);
                completed(IBV_WC_COMP_SWAP);
            }
        }
    }
    together(peer);
    for (unsigned t = 0; t < TARGETS; t++) {
        if (arena->counter[t] != 7000 + t) {
            fail("counter %u is %lu", t, (unsigned long)arena->counter[t]);
        }
    }
}

/* With a wrong key there is no connection. The initiator is reset and works as before. */
static void wrong_key(void)
{
    struct work w = to(0, 3, IBV_WR_RDMA_WRITE);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_wc wc;

    w.key ^= 1;
    w.len = 100;
    w.rkey = theirs.rkey;
    w.remote = theirs.addr + offsetof(struct arena, written[0][3]);
    post(&w);
    wc = endpoint_completion(send_cq);
    if (wc.status == IBV_WC_SUCCESS) {
        fail("a wrong key is taken");
    }
    need(!ibv_modify_qp(dci[0], &reset, IBV_QP_STATE), "DCI to RESET");
    dc_start_dci(dci[0], TIMEOUT);
    w.key ^= 1;
    post(&w);
    completed(IBV_WC_RDMA_WRITE);
    together(peer);
}

/* An error on a stream affects only that stream, until it is reset. Returns false if there are no
 * streams. */
static bool streams(void)
{
    struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS};
    struct mlx5dv_dci_streams wanted = {.log_num_concurent = 3, .log_num_errored = 2};
    struct ibv_qp *qp;

    if (mlx5dv_query_device(ctx, &caps) || caps.dci_streams_caps.max_log_num_concurent < 3 ||
        caps.dci_streams_caps.max_log_num_errored < 2) {
        return false;
    }
    need((qp = make_dci(&wanted)), "making a DCI with streams");
    for (int bad = 1; bad <= 6; bad++) {
        struct work w = to(0, (unsigned)bad % TARGETS, IBV_WR_RDMA_WRITE);
        struct ibv_wc wc;

        w.len = 64;
        w.rkey = theirs.readonly;
        w.remote = theirs.addr + offsetof(struct arena, written[0][0]);
        w.stream = bad;
        post_to(qp, &w);
        wc = endpoint_completion(send_cq);
        if (wc.status != IBV_WC_REM_ACCESS_ERR) {
            fail("stream %d: %s", bad, ibv_wc_status_str(wc.status));
        }
        w.rkey = theirs.rkey;
        w.stream = bad + 1;
        post_to(qp, &w);
        completed(IBV_WC_RDMA_WRITE);
        need(!mlx5dv_dci_stream_id_reset(qp, (uint16_t)bad), "mlx5dv_dci_stream_id_reset()");
        w.stream = bad;
        post_to(qp, &w);
        completed(IBV_WC_RDMA_WRITE);
    }
    need(!ibv_destroy_qp(qp), "destroying a DCI");
    together(peer);
    return true;
}

/* Checks what a DCT's queries return. */
static void questions(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    need(!ibv_query_qp(dct[0], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU, &init),
         "ibv_query_qp() of a DCT");
    if (attr.qp_state != IBV_QPS_RTR || attr.path_mtu != IBV_MTU_1024 ||
        attr.qp_access_flags !=
            (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)) {
        fail("a DCT is in state %d, MTU %d, rights %x", attr.qp_state, attr.path_mtu,
             attr.qp_access_flags);
    }
    need(ibv_query_qp(dct[0], &attr, IBV_QP_RQ_PSN, &init) != 0, "refusing what a DCT has not");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET};
    need(ibv_modify_qp(dct[0], &attr, IBV_QP_STATE) != 0, "refusing another state of a DCT");
}

/* -- setup and main() -------------------------------------------------------------------------- */

/* Returns false if the device has no DC. */
static bool make_objects(void)
{
    const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

    arena = aligned_alloc(4096, (sizeof(*arena) + 4095) & ~(size_t)4095);
    need(arena, "aligned_alloc()");
    memset(arena, 0, sizeof(*arena));
    for (size_t n = 0; n < MESSAGE; n++) {
        arena->source[n] = byte_of(side, 0, 0, 2000, n);
    }
    need((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd()");
    need((mr = ibv_reg_mr(pd, arena, sizeof(*arena), all)), "ibv_reg_mr()");
    need((readonly = ibv_reg_mr(pd, arena, sizeof(*arena), IBV_ACCESS_REMOTE_READ)),
         "ibv_reg_mr()");
    need((send_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0)), "ibv_create_cq()");
    need((recv_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0)), "ibv_create_cq()");
    need((srq = ibv_create_srq(pd, &attr)), "ibv_create_srq()");
    for (unsigned i = 0; i < INITIATORS; i++) {
        dci[i] = make_dci(NULL);
        if (!dci[i]) {
            return false;
        }
    }
    for (unsigned t = 0; t < TARGETS; t++) {
        dct[t] = make_dct(KEY + t);
        mine.dctn[t] = dct[t]->qp_num;
    }
    for (unsigned slot = 0; slot < DEPTH; slot++) {
        post_receive(slot);
    }
    return true;
}

static void meet(void)
{
    struct ibv_ah_attr attr;

    mine.gid = endpoint_gid(ctx, options.gid_index);
    mine.addr = (uintptr_t)arena;
    mine.rkey = mr->rkey;
    mine.readonly = readonly->rkey;
    peer = other_side_connect(options.host, options.port);
    tell(peer, &mine, &theirs, sizeof(mine));
    attr = endpoint_towards(theirs.gid, options.gid_index);
    need((ah = ibv_create_ah(pd, &attr)), "ibv_create_ah()");
}

static void end(void)
{
    for (unsigned i = 0; i < INITIATORS; i++) {
        need(!ibv_destroy_qp(dci[i]), "destroying a DCI");
    }
    for (unsigned t = 0; t < TARGETS; t++) {
        need(!ibv_destroy_qp(dct[t]), "destroying a DCT");
    }
    need(!ibv_destroy_srq(srq) && !ibv_destroy_cq(send_cq) && !ibv_destroy_cq(recv_cq),
         "destroying queues");
    need(!ibv_destroy_ah(ah) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(readonly) &&
             !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
         "the end");
}

int main(int argc, char **argv)
{
    bool has_streams;

    endpoint_options(argc, argv, &options);
    side = options.host != NULL;
    ctx = endpoint_open(options.device, ibv_open_device);
    if (!make_objects()) {
        printf("skipped: the device has no DC\n");
        return NO_DC;
    }
    meet();
    questions();
    sends();
    writes();
    reads();
    atomics();
    wrong_key();
    has_streams = streams();
    together(peer);
    end();
    printf("%u messages, %u operations, streams: %s\n", messages, operations,
           has_streams ? "yes" : "no");
    return 0;
}
