/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tour: posts the same work requests in the same order at every run, one at a time, from one
 * process to itself, so that two traces of a device can be compared line by line
 * (tests/vm/two-paths).
 *
 *     tour DEVICE GID-INDEX
 *
 * It uses two connected RC QPs, two UD QPs and an SRQ: every operation that rdma-core posts,
 * several pieces and inline data, multicast, an event, an error and its flush. Exit status 0:
 * everything completed as expected.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES    16384
#define PSN      0x1234
#define QKEY     0x11223344
#define DEPTH    16
#define PATIENCE 60 /* seconds for one completion */

static struct {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp *rc[2], *ud[2]; /* the first one of each two sends */
    struct ibv_ah *ah;
    union ibv_gid gid;
    uint8_t gid_index;
    uint8_t *mem; /* first half: source; second half: destination */
} t;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "tour: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    exit(1);
}

static void *must(void *object, const char *what)
{
    if (!object) {
        die("%s: %s", what, strerror(errno));
    }
    return object;
}

static void ok(int err, const char *what)
{
    if (err) {
        die("%s: %s", what, strerror(err));
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            t.ctx = must(ibv_open_device(list[i]), "ibv_open_device");
        }
    }
    must(t.ctx, name);
    ibv_free_device_list(list);
    ok(ibv_query_gid(t.ctx, 1, t.gid_index, &t.gid), "ibv_query_gid");
}

static struct ibv_qp *create_qp(enum ibv_qp_type type, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = t.send_cq,
        .recv_cq = t.recv_cq,
        .srq = srq,
        .cap = {.max_send_wr = DEPTH,
                .max_recv_wr = srq ? 0 : DEPTH,
                .max_send_sge = 4,
                .max_recv_sge = 2,
                .max_inline_data = 64},
        .qp_type = type,
    };

    return must(ibv_create_qp(t.pd, &attr), "ibv_create_qp");
}

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = QKEY,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    bool ud = qp->qp_type == IBV_QPT_UD;

    ok(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                         (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
       "INIT");
}

static struct ibv_ah_attr address_of(union ibv_gid dgid)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = dgid, .sgid_index = t.gid_index, .hop_limit = 64},
    };
}

static struct ibv_ah_attr address(void)
{
    return address_of(t.gid);
}

/* reads: how many READs the peer may have outstanding */
static void connect_rc(struct ibv_qp *qp, const struct ibv_qp *peer, uint8_t reads)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp_num,
        .rq_psn = PSN,
        .max_dest_rd_atomic = reads,
        .min_rnr_timer = 12,
        .ah_attr = address(),
    };

    to_init(qp);
    ok(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
       "RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .timeout = 18,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .sq_psn = PSN,
        .max_rd_atomic = 4,
    };
    ok(ibv_modify_qp(qp, &attr,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
       "RTS");
}

static void start_ud(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .sq_psn = PSN};

    to_init(qp);
    ok(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
    attr.qp_state = IBV_QPS_RTS;
    ok(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

static void create_all(void)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = DEPTH, .max_sge = 2}};
    struct ibv_ah_attr ah_attr = address();

    t.pd = must(ibv_alloc_pd(t.ctx), "ibv_alloc_pd");
    t.mem = must(aligned_alloc(4096, BYTES), "memory");
    for (int i = 0; i < BYTES; i++) {
        t.mem[i] = (uint8_t)(i * 7);
    }
    t.mr = must(ibv_reg_mr(t.pd, t.mem, BYTES,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC),
                "ibv_reg_mr");
    t.channel = must(ibv_create_comp_channel(t.ctx), "ibv_create_comp_channel");
    t.send_cq = must(ibv_create_cq(t.ctx, 4 * DEPTH, NULL, NULL, 0), "ibv_create_cq");
    t.recv_cq = must(ibv_create_cq(t.ctx, 4 * DEPTH, NULL, t.channel, 0), "ibv_create_cq");
    t.srq = must(ibv_create_srq(t.pd, &srq_attr), "ibv_create_srq");
    t.rc[0] = create_qp(IBV_QPT_RC, NULL);
    t.rc[1] = create_qp(IBV_QPT_RC, t.srq);
    t.ud[0] = create_qp(IBV_QPT_UD, NULL);
    t.ud[1] = create_qp(IBV_QPT_UD, NULL);
    connect_rc(t.rc[0], t.rc[1], 0);
    connect_rc(t.rc[1], t.rc[0], 4);
    start_ud(t.ud[0]);
    start_ud(t.ud[1]);
    t.ah = must(ibv_create_ah(t.pd, &ah_attr), "ibv_create_ah");
}

static void destroy_all(void)
{
    ok(ibv_destroy_ah(t.ah), "ibv_destroy_ah");
    for (int i = 0; i < 2; i++) {
        ok(ibv_destroy_qp(t.rc[i]), "ibv_destroy_qp");
        ok(ibv_destroy_qp(t.ud[i]), "ibv_destroy_qp");
    }
    ok(ibv_destroy_srq(t.srq), "ibv_destroy_srq");
    ok(ibv_destroy_cq(t.send_cq), "ibv_destroy_cq");
    ok(ibv_destroy_cq(t.recv_cq), "ibv_destroy_cq");
    ok(ibv_destroy_comp_channel(t.channel), "ibv_destroy_comp_channel");
    ok(ibv_dereg_mr(t.mr), "ibv_dereg_mr");
    ok(ibv_dealloc_pd(t.pd), "ibv_dealloc_pd");
    ok(ibv_close_device(t.ctx), "ibv_close_device");
    free(t.mem);
}

/* -- operations ---------------------------------------------------------------------------------
 */

static struct ibv_sge piece(size_t offset, uint32_t len)
{
    return (struct ibv_sge){(uintptr_t)t.mem + offset, len, t.mr->lkey};
}

static void expect(struct ibv_cq *cq, enum ibv_wc_status status, const char *what)
{
    time_t end = time(NULL) + PATIENCE;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
        if (time(NULL) > end) {
            die("%s does not complete", what);
        }
    }
    if (n < 0 || wc.status != status) {
        die("%s: %s", what, n < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
    }
}

static struct ibv_recv_wr receive(struct ibv_sge *sge, int num_sge)
{
    return (struct ibv_recv_wr){.sg_list = sge, .num_sge = num_sge};
}

static void post_shared(struct ibv_sge *sge, int num_sge)
{
    struct ibv_recv_wr wr = receive(sge, num_sge), *bad;

    ok(ibv_post_srq_recv(t.srq, &wr, &bad), "ibv_post_srq_recv");
}

static void post_own(struct ibv_qp *qp, struct ibv_sge *sge, int num_sge)
{
    struct ibv_recv_wr wr = receive(sge, num_sge), *bad;

    ok(ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* The kind of a request and its pieces. The list of one row is posted with one call. */
struct request {
    const char *name;
    enum ibv_wr_opcode opcode;
    unsigned flags; /* in addition to IBV_SEND_SIGNALED */
    unsigned num_sge;
    uint32_t len; /* of each piece */
    bool received;
};

static const struct request requests[] = {
    {"SEND of three pieces", IBV_WR_SEND, 0, 3, 100, true},
    {"SEND of several packets", IBV_WR_SEND, 0, 2, 2000, true},
    {"SEND of nothing", IBV_WR_SEND, 0, 0, 0, true},
    {"SEND inline", IBV_WR_SEND, IBV_SEND_INLINE, 2, 20, true},
    {"SEND with immediate, solicited", IBV_WR_SEND_WITH_IMM, IBV_SEND_SOLICITED, 1, 8, true},
    {"WRITE", IBV_WR_RDMA_WRITE, 0, 1, 3000, false},
    {"WRITE inline", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 1, 33, false},
    {"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, 0, 4, 64, true},
    {"READ", IBV_WR_RDMA_READ, 0, 2, 1500, false},
    {"SEND behind a fence", IBV_WR_SEND, IBV_SEND_FENCE, 1, 1, true},
    {"fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, false},
    {"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 8, false},
};

static void run_rc(const struct request *r)
{
    struct ibv_sge sge[4], room[2] = {piece(BYTES / 2, 64), piece(BYTES / 2 + 64, 4096)};
    struct ibv_send_wr wr = {.opcode = r->opcode,
                             .sg_list = sge,
                             .num_sge = (int)r->num_sge,
                             .send_flags = r->flags | IBV_SEND_SIGNALED,
                             .imm_data = 0x01020304},
                       *bad;

    for (unsigned i = 0; i < r->num_sge; i++) {
        sge[i] = piece(i * 2048, r->len);
    }
    if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = (uintptr_t)t.mem + BYTES / 2;
        wr.wr.atomic.rkey = t.mr->rkey;
        wr.wr.atomic.compare_add = 5;
        wr.wr.atomic.swap = 6;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)t.mem + BYTES / 2;
        wr.wr.rdma.rkey = t.mr->rkey;
    }
    if (r->received) {
        post_shared(room, 2);
    }
    ok(ibv_post_send(t.rc[0], &wr, &bad), r->name);
    expect(t.send_cq, IBV_WC_SUCCESS, r->name);
    if (r->received) {
        expect(t.recv_cq, IBV_WC_SUCCESS, r->name);
    }
}

/* Posts several WQEs with one doorbell; only the last WQE is signaled. */
static void run_list(void)
{
    struct ibv_sge sge = piece(0, 256);
    struct ibv_send_wr wr[3] = {0}, *bad;

    for (int i = 0; i < 3; i++) {
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].sg_list = &sge;
        wr[i].num_sge = 1;
        wr[i].send_flags = i < 2 ? 0 : IBV_SEND_SIGNALED;
        wr[i].wr.rdma.remote_addr = (uintptr_t)t.mem + BYTES / 2;
        wr[i].wr.rdma.rkey = t.mr->rkey;
    }
    ok(ibv_post_send(t.rc[0], wr, &bad), "a list");
    expect(t.send_cq, IBV_WC_SUCCESS, "a list");
}

/* Sends to qpn; the second UD QP receives it, or no QP does. */
static void run_datagram(struct ibv_ah *ah, uint32_t qpn, unsigned flags, uint32_t len,
                         bool arrives)
{
    struct ibv_sge sge = piece(0, len), room = piece(BYTES / 2, 4096);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = flags | IBV_SEND_SIGNALED,
                             .wr.ud = {ah, qpn, QKEY}},
                       *bad;

    if (arrives) {
        post_own(t.ud[1], &room, 1);
    }
    ok(ibv_post_send(t.ud[0], &wr, &bad), "a datagram");
    expect(t.send_cq, IBV_WC_SUCCESS, "a datagram");
    if (arrives) {
        expect(t.recv_cq, IBV_WC_SUCCESS, "a datagram");
    }
}

static void run_ud(unsigned flags, uint32_t len)
{
    run_datagram(t.ah, t.ud[1]->qp_num, flags, len, true);
}

/* A member receives what is sent to its group. After it has left, it receives only what is sent to
 * itself. */
static void run_multicast(void)
{
    const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
    struct ibv_ah_attr attr = address_of(group);
    struct ibv_ah *ah = must(ibv_create_ah(t.pd, &attr), "ibv_create_ah of a group");

    ok(ibv_attach_mcast(t.ud[1], &group, 0), "ibv_attach_mcast");
    run_datagram(ah, 0xffffff, 0, 100, true);
    ok(ibv_destroy_qp(t.ud[1]) == EBUSY ? 0 : EPROTO, "ibv_destroy_qp of a member");
    ok(ibv_detach_mcast(t.ud[1], &group, 0), "ibv_detach_mcast");
    run_datagram(ah, 0xffffff, 0, 100, false);
    run_ud(0, 16);
    ok(ibv_detach_mcast(t.ud[1], &group, 0) == EINVAL ? 0 : EPROTO,
       "ibv_detach_mcast of no member");
    ok(ibv_destroy_ah(ah), "ibv_destroy_ah");
}

/* Posts a SEND whose receiver sleeps until an event comes. */
static void run_event(void)
{
    struct ibv_sge sge = piece(0, 16), room = piece(BYTES / 2, 64);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_cq *cq;
    void *opaque;

    ok(ibv_req_notify_cq(t.recv_cq, 0), "ibv_req_notify_cq");
    post_shared(&room, 1);
    ok(ibv_post_send(t.rc[0], &wr, &bad), "ibv_post_send");
    ok(ibv_get_cq_event(t.channel, &cq, &opaque) ? errno : 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    expect(t.recv_cq, IBV_WC_SUCCESS, "SEND with an event");
    expect(t.send_cq, IBV_WC_SUCCESS, "SEND with an event");
}

/* A nonexistent key fails its WQE and flushes later WQEs, on both sides. */
static void run_error(void)
{
    struct ibv_sge good = piece(0, 8), wrong = {good.addr, 8, ~t.mr->lkey};
    struct ibv_send_wr wr[2] =
        {{.next = &wr[1],
          .opcode = IBV_WR_RDMA_WRITE,
          .sg_list = &wrong,
          .num_sge = 1,
          .send_flags = IBV_SEND_SIGNALED,
          .wr.rdma = {(uintptr_t)t.mem + BYTES / 2, t.mr->rkey}},
         {.opcode = IBV_WR_SEND, .sg_list = &good, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}},
                       *bad;

    post_own(t.rc[0], &good, 1);
    ok(ibv_post_send(t.rc[0], wr, &bad), "ibv_post_send");
    expect(t.send_cq, IBV_WC_LOC_PROT_ERR, "a wrong key");
    expect(t.send_cq, IBV_WC_WR_FLUSH_ERR, "what follows it");
    expect(t.recv_cq, IBV_WC_WR_FLUSH_ERR, "a posted receive");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: tour DEVICE GID-INDEX\n");
        return 2;
    }
    t.gid_index = (uint8_t)atoi(argv[2]);
    open_device(argv[1]);
    create_all();
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        run_rc(&requests[i]);
    }
    run_list();
    run_ud(0, 1000);
    run_ud(IBV_SEND_INLINE, 30);
    run_multicast();
    run_event();
    run_error();
    destroy_all();
    printf("done\n");
    return 0;
}
