/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mesh: one of N processes that exchange messages over RC, each with each, and check every byte.
 *
 *     mesh -i RANK -n RANKS -g GID [-r ROUNDS] [-t TIMEOUT] FOLDER
 *
 * A round with a peer is a WRITE into the peer's memory and a SEND behind it. Round r + 1 is sent
 * when the peer's round r has come, so the two halves of a peer's memory are never overwritten
 * before they are checked. With -r 0 rounds go on until there is a file "stop" in FOLDER. The
 * timeout of an acknowledgement is 4.096 us times 2^TIMEOUT (18: a second), eight times.
 *
 * Files in FOLDER: this program makes hello.RANK (what peers must know), ready.RANK (connected) and
 * done.RANK (all rounds complete). The parent makes "go" when all are ready, and "end" when all
 * surviving processes are done.
 *
 * Prints "rank R: N rounds, D differences, lost: PEER PEER ...". A peer is lost if a request to it
 * completes with IBV_WC_RETRY_EXC_ERR; any other error is a failure. Exit status 0: no difference
 * and no failure.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 128
#define MESSAGE   256
#define RECEIVES  2
#define PROBE_MS  1000
#define PROBE     (1u << 31) /* flag in a wr_id: the request belongs to no round */
#define LAST      1u

struct hello {
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey, qpn[MAX_RANKS];
};

/* A round's SEND. The WRITE before it consists of bytes of pattern(). */
struct message {
    uint32_t from, round, flags;
    uint8_t fill[MESSAGE - 12];
};

/* The memory that peers write to, and what is sent to them, by rank. */
struct share {
    uint8_t written[2][MESSAGE]; /* memory that the peer writes */
    uint8_t writes[MESSAGE];
    struct message out, in[RECEIVES];
};

struct peer {
    struct ibv_qp *qp;
    unsigned sent, got; /* rounds */
    unsigned next_in;   /* the next receive to complete */
    bool busy, sent_last, got_last, lost;
};

static unsigned rank, ranks, rounds = 10, gid_index, timeout = 18, differences, most_rounds;
static const char *folder;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct share *share;
static struct peer peers[MAX_RANKS];
static struct hello theirs[MAX_RANKS];

static void need(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "mesh: rank %u: %s failed\n", rank, what);
        exit(1);
    }
}

/* -- files --------------------------------------------------------------------------------------
 */

static void path_of(char *path, size_t len, const char *name, int number)
{
    if (number < 0) {
        snprintf(path, len, "%s/%s", folder, name);
    } else {
        snprintf(path, len, "%s/%s.%d", folder, name, number);
    }
}

static bool is_there(const char *name)
{
    char path[512];

    path_of(path, sizeof(path), name, -1);
    return access(path, F_OK) == 0;
}

static void publish(const char *name, const void *data, size_t len)
{
    char path[512], temporary[512];
    int fd;

    path_of(path, sizeof(path), name, (int)rank);
    path_of(temporary, sizeof(temporary), "new", (int)rank);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0 && write(fd, data, len) == (ssize_t)len, "writing a file");
    close(fd);
    need(rename(temporary, path) == 0, "renaming a file");
}

static void read_hello(unsigned other)
{
    char path[512];
    int fd;

    path_of(path, sizeof(path), "hello", (int)other);
    while ((fd = open(path, O_RDONLY)) < 0) {
        usleep(20000);
    }
    need(read(fd, &theirs[other], sizeof(theirs[other])) == sizeof(theirs[other]),
         "reading a peer's file");
    close(fd);
}

static void wait_for(const char *name)
{
    while (!is_there(name)) {
        usleep(20000);
    }
}

/* -- objects ------------------------------------------------------------------------------------
 */

static struct ibv_sge sge_of(void *at, uint32_t len)
{
    return (struct ibv_sge){.addr = (uintptr_t)at, .length = len, .lkey = mr->lkey};
}

static void post_receive(unsigned other, unsigned index)
{
    struct ibv_sge sge = sge_of(&share[other].in[index], sizeof(struct message));
    struct ibv_recv_wr wr = {.wr_id = other, .sg_list = &sge, .num_sge = 1}, *bad;

    need(ibv_post_recv(peers[other].qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void create_objects(struct hello *mine)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t len = ranks * sizeof(struct share);

    need(list && list[0] && (ctx = ibv_open_device(list[0])), "ibv_open_device");
    ibv_free_device_list(list);
    share = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
    need(share != NULL, "finding memory");
    memset(share, 0, len);
    need((pd = ibv_alloc_pd(ctx)) != NULL, "ibv_alloc_pd");
    mr = ibv_reg_mr(pd, share, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    need(mr != NULL, "ibv_reg_mr");
    need((channel = ibv_create_comp_channel(ctx)) != NULL, "ibv_create_comp_channel");
    cq = ibv_create_cq(ctx, (int)ranks * 8, NULL, channel, 0);
    need(cq != NULL, "ibv_create_cq");
    need(ibv_query_gid(ctx, 1, (int)gid_index, &mine->gid) == 0, "ibv_query_gid");
    mine->addr = (uintptr_t)share;
    mine->rkey = mr->rkey;
    for (unsigned i = 0; i < ranks; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 4,
                    .max_recv_wr = RECEIVES,
                    .max_send_sge = 1,
                    .max_recv_sge = 1},
        };
        struct ibv_qp_attr attr = {
            .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

        if (i == rank) {
            continue;
        }
        need((peers[i].qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
        need(ibv_modify_qp(peers[i].qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ==
                 0,
             "ibv_modify_qp to INIT");
        mine->qpn[i] = peers[i].qp->qp_num;
        for (unsigned k = 0; k < RECEIVES; k++) {
            post_receive(i, k);
        }
    }
}

static void connect_qp(unsigned other)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = theirs[other].qpn[rank],
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = theirs[other].gid,
                            .sgid_index = (uint8_t)gid_index,
                            .hop_limit = 64}},
    };

    need(ibv_modify_qp(peers[other].qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "ibv_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = (uint8_t)timeout;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    need(ibv_modify_qp(peers[other].qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "ibv_modify_qp to RTS");
}

/* -- traffic ------------------------------------------------------------------------------------
 */

/* Writes the bytes that rank a writes to (kind 0) or sends to (kind 1) rank b in a round. */
static void pattern(uint8_t *at, size_t len, unsigned a, unsigned b, unsigned round, unsigned kind)
{
    uint32_t x = (a * 131 + b) * 2654435761u + round * 40503u + kind * 977u + 1;

    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        at[i] = (uint8_t)(x >> 24);
    }
}

static void post_write(unsigned other, void *from, uint32_t len, unsigned half, uint64_t wr_id,
                       unsigned flags)
{
    struct ibv_sge sge = sge_of(from, len);
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags},
                       *bad;

    wr.wr.rdma.remote_addr =
        theirs[other].addr + rank * sizeof(struct share) + half * sizeof(share->written[0]);
    wr.wr.rdma.rkey = theirs[other].rkey;
    need(ibv_post_send(peers[other].qp, &wr, &bad) == 0, "ibv_post_send of a WRITE");
}

/* Sends the next round if it may be sent. */
static void advance(unsigned other, bool stop)
{
    struct peer *p = &peers[other];
    struct share *s = &share[other];
    struct ibv_sge sge = sge_of(&s->out, sizeof(s->out));
    struct ibv_send_wr wr = {.wr_id = other,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (p->lost || p->busy || p->sent_last || p->sent > p->got) {
        return;
    }
    pattern(s->writes, MESSAGE, rank, other, p->sent, 0);
    post_write(other, s->writes, MESSAGE, p->sent % 2, other, 0);
    p->sent_last = stop || p->got_last || (rounds && p->sent + 1 == rounds);
    s->out.from = rank;
    s->out.round = p->sent;
    s->out.flags = p->sent_last ? LAST : 0;
    pattern(s->out.fill, sizeof(s->out.fill), rank, other, p->sent, 1);
    need(ibv_post_send(p->qp, &wr, &bad) == 0, "ibv_post_send");
    p->busy = true;
    p->sent++;
    most_rounds = p->sent > most_rounds ? p->sent : most_rounds;
}

static void received(unsigned other, uint32_t len)
{
    struct peer *p = &peers[other];
    struct share *s = &share[other];
    const struct message *in = &s->in[p->next_in];
    uint8_t wanted[MESSAGE];

    differences += len != sizeof(*in) || in->from != other || in->round != p->got;
    pattern(wanted, sizeof(in->fill), other, rank, p->got, 1);
    differences += memcmp(wanted, in->fill, sizeof(in->fill)) != 0;
    pattern(wanted, MESSAGE, other, rank, p->got, 0);
    differences += memcmp(wanted, s->written[p->got % 2], MESSAGE) != 0;
    p->got_last = in->flags & LAST;
    p->got++;
    if (!p->got_last) {
        post_receive(other, p->next_in);
    }
    p->next_in = (p->next_in + 1) % RECEIVES;
}

static void complete(const struct ibv_wc *wc)
{
    unsigned other = (unsigned)wc->wr_id & ~PROBE;
    struct peer *p = &peers[other];

    if (wc->status == IBV_WC_RETRY_EXC_ERR) {
        p->lost = true;
    } else if (wc->status != IBV_WC_SUCCESS) {
        need(p->lost && wc->status == IBV_WC_WR_FLUSH_ERR, ibv_wc_status_str(wc->status));
    } else if (wc->opcode == IBV_WC_RECV) {
        received(other, wc->byte_len);
    } else {
        p->busy = false;
    }
}

static bool is_finished(const struct peer *p)
{
    return p->lost || (p->sent_last && p->got_last && !p->busy);
}

/* A peer that this process waits for may be dead; a WRITE of no bytes finds out. */
static void probe(void)
{
    for (unsigned i = 0; i < ranks; i++) {
        if (i != rank && !is_finished(&peers[i]) && !peers[i].busy) {
            peers[i].busy = true;
            post_write(i, share, 0, 0, i | PROBE, IBV_SEND_SIGNALED);
        }
    }
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static unsigned drain(void)
{
    struct ibv_wc wc[16];
    unsigned count = 0;
    int n;

    while ((n = ibv_poll_cq(cq, 16, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            complete(&wc[i]);
        }
        count += (unsigned)n;
    }
    need(n == 0, "ibv_poll_cq");
    return count;
}

/* Sleeps until something completes, or for PROBE_MS. */
static void sleep_on_channel(void)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *which;
    void *context;

    if (poll(&fd, 1, PROBE_MS) > 0) {
        need(ibv_get_cq_event(channel, &which, &context) == 0, "ibv_get_cq_event");
        ibv_ack_cq_events(which, 1);
    }
    need(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
}

static void run(void)
{
    uint64_t probed = now_ms();
    bool stop = false;

    need(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
    for (;;) {
        unsigned open = 0;

        stop = stop || (rounds == 0 && is_there("stop"));
        drain();
        for (unsigned i = 0; i < ranks; i++) {
            if (i != rank) {
                advance(i, stop);
                open += !is_finished(&peers[i]);
            }
        }
        if (!open) {
            return;
        }
        if (now_ms() - probed > PROBE_MS) {
            probe();
            probed = now_ms();
        }
        sleep_on_channel();
    }
}

static void destroy_objects(void)
{
    for (unsigned i = 0; i < ranks; i++) {
        need(!peers[i].qp || ibv_destroy_qp(peers[i].qp) == 0, "ibv_destroy_qp");
    }
    need(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
    need(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
    need(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
    need(ibv_close_device(ctx) == 0, "ibv_close_device");
    free(share);
}

int main(int argc, char **argv)
{
    static struct hello mine;
    int c;

    while ((c = getopt(argc, argv, "i:n:g:r:t:")) != -1) {
        unsigned *number = c == 'i'   ? &rank
                           : c == 'n' ? &ranks
                           : c == 'g' ? &gid_index
                           : c == 'r' ? &rounds
                           : c == 't' ? &timeout
                                      : NULL;

        if (!number) {
            break;
        }
        *number = (unsigned)strtoul(optarg, NULL, 0);
    }
    if (c != -1 || optind + 1 != argc || ranks < 2 || ranks > MAX_RANKS || rank >= ranks) {
        fprintf(stderr, "usage: mesh -i RANK -n RANKS -g GID [-r ROUNDS] [-t TIMEOUT] FOLDER\n");
        return 2;
    }
    folder = argv[optind];
    create_objects(&mine);
    publish("hello", &mine, sizeof(mine));
    for (unsigned i = 0; i < ranks; i++) {
        if (i != rank) {
            read_hello(i);
            connect_qp(i);
        }
    }
    publish("ready", "", 0);
    wait_for("go");
    run();
    publish("done", "", 0);
    wait_for("end");
    destroy_objects();
    printf("rank %u: %u rounds, %u differences, lost:", rank, most_rounds, differences);
    for (unsigned i = 0; i < ranks; i++) {
        if (peers[i].lost) {
            printf(" %u", i);
        }
    }
    printf("\n");
    return differences != 0;
}
