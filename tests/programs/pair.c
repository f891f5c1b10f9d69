/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements pair.h: two connected QPs. */
#define _GNU_SOURCE
#include "tests/programs/pair.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ACCESS_ALL                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_device **list;
struct ibv_context *ctx[2];
struct ibv_pd *pd[2];
static uint8_t gid_index = 1;
static unsigned devices = 1;

void use_two_devices(void)
{
    devices = 2;
    setenv("HCASIM_DEVICES", "2", 1);
}

void device_open(void)
{
    const char *index = getenv("RDEV_GID_INDEX");

    if (index) {
        gid_index = (uint8_t)atoi(index);
    }
    list = ibv_get_device_list(NULL);
    for (unsigned end = 0; end < 2; end++) {
        if (end < devices) {
            must(list && list[0] && list[end], "errno %d", errno);
            ctx[end] = ibv_open_device(list[end]);
            must(ctx[end], "errno %d", errno);
            pd[end] = ibv_alloc_pd(ctx[end]);
            must(pd[end], "errno %d", errno);
        } else {
            ctx[end] = ctx[0];
            pd[end] = pd[0];
        }
    }
}

void device_close(void)
{
    for (unsigned end = 0; end < devices; end++) {
        must_be_0(ibv_dealloc_pd(pd[end]));
        must_be_0(ibv_close_device(ctx[end]));
    }
    ibv_free_device_list(list);
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* -- threads ----------------------------------------------------------------------------------- */

struct runner {
    pthread_t thread;
    pthread_barrier_t *start;
    void (*run)(void *arg);
    void *arg;
};

static void *runs(void *opaque)
{
    struct runner *runner = opaque;

    pthread_barrier_wait(runner->start);
    runner->run(runner->arg);
    return NULL;
}

double run_at_once(unsigned n, void (*run)(void *arg), void *args, size_t size)
{
    struct runner runners[THREADS_MOST];
    pthread_barrier_t start;
    double began;

    must(n <= THREADS_MOST, "%u threads", n);
    must_be_0(pthread_barrier_init(&start, NULL, n + 1));
    for (unsigned i = 0; i < n; i++) {
        runners[i] = (struct runner){.start = &start, .run = run, .arg = (char *)args + i * size};
        must_be_0(pthread_create(&runners[i].thread, NULL, runs, &runners[i]));
    }
    began = now();
    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < n; i++) {
        must_be_0(pthread_join(runners[i].thread, NULL));
    }
    pthread_barrier_destroy(&start);
    return began;
}

/* -- two ends ---------------------------------------------------------------------------------- */

struct ibv_qp *new_qp(int end, struct ibv_cq *cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(pd[end], &init);

    must(qp, "errno %d", errno);
    return qp;
}

void to_rts_towards(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest, uint8_t timeout)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS_ALL};
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = *gid, .sgid_index = gid_index, .hop_limit = 1}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .timeout = timeout,
                              .retry_cnt = 7,
                              .rnr_retry = 7,
                              .max_rd_atomic = 1};

    must_be_0(ibv_modify_qp(qp, &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    must_be_0(ibv_modify_qp(qp, &rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    must_be_0(ibv_modify_qp(qp, &rts,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void gid_of(int end, union ibv_gid *gid)
{
    must_be_0(ibv_query_gid(ctx[end], 1, gid_index, gid));
}

void to_rts(int end, struct ibv_qp *qp, uint32_t dest, uint8_t timeout)
{
    union ibv_gid gid;

    gid_of(!end, &gid);
    to_rts_towards(qp, &gid, dest, timeout);
}

void datagrams_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

    must_be_0(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    must_be_0(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    must_be_0(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

struct ibv_ah *own_address(void)
{
    struct ibv_ah_attr to = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .hop_limit = 1}};
    struct ibv_ah *ah;

    gid_of(0, &to.grh.dgid);
    ah = ibv_create_ah(pd[0], &to);
    must(ah, "errno %d", errno);
    return ah;
}

struct pair *pair_new(bool channels, bool srq)
{
    struct pair *p = calloc(1, sizeof(*p));
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

    must(p, "errno %d", errno);
    p->srq = srq ? ibv_create_srq(pd[1], &attr) : NULL;
    must(!srq || p->srq, "errno %d", errno);
    for (int i = 0; i < 2; i++) {
        p->channel[i] = channels ? ibv_create_comp_channel(ctx[i]) : NULL;
        must(!channels || p->channel[i], "errno %d", errno);
        p->cq[i] = ibv_create_cq(ctx[i], 4 * DEPTH, NULL, p->channel[i], 0);
        must(p->cq[i], "errno %d", errno);
        p->mr[i] = ibv_reg_mr(pd[i], p->buf, sizeof(p->buf), ACCESS_ALL);
        must(p->mr[i], "errno %d", errno);
        p->qp[i] = new_qp(i, p->cq[i], i ? p->srq : NULL);
    }
    to_rts(0, p->qp[0], p->qp[1]->qp_num, 14);
    to_rts(1, p->qp[1], p->qp[0]->qp_num, 14);
    return p;
}

void pair_free(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        must_be_0(ibv_destroy_qp(p->qp[i]));
    }
    for (int i = 0; i < 2; i++) {
        must_be_0(ibv_destroy_cq(p->cq[i]));
        must_be_0(ibv_dereg_mr(p->mr[i]));
        if (p->channel[i]) {
            must_be_0(ibv_destroy_comp_channel(p->channel[i]));
        }
    }
    if (p->srq) {
        must_be_0(ibv_destroy_srq(p->srq));
    }
    free(p);
}

void post_recv(struct pair *p, int end, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)p->buf[end][slot % DEPTH], MSG, p->mr[end]->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    must_be_0(end && p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad)
                            : ibv_post_recv(p->qp[end], &wr, &bad));
}

int try_send(struct pair *p, int end, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)p->buf[end][slot % DEPTH], MSG, p->mr[end]->lkey};
    struct ibv_send_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND},
                       *bad;

    return ibv_post_send(p->qp[end], &wr, &bad);
}

void post_send(struct pair *p, int end, unsigned slot)
{
    must_be_0(try_send(p, end, slot));
}

struct ibv_wc completion(struct ibv_cq *cq)
{
    double end = now() + SECONDS;
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc))) {
        must(now() < end, "no completion");
    }
    must(n == 1, "%d", n);
    return wc;
}

struct ibv_wc success(struct ibv_cq *cq)
{
    struct ibv_wc wc = completion(cq);

    must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
    return wc;
}

/* Sends a numbered message. When it is complete, the other end's buffer holds it. */
void message(struct pair *p, int from, unsigned n)
{
    uint8_t *src = p->buf[from][n % DEPTH], *dst = p->buf[!from][n % DEPTH];

    memset(src, (int)(n & 0xff), MSG);
    memset(dst, 0xee, MSG);
    post_recv(p, !from, n);
    post_send(p, from, n);
    must(success(p->cq[!from]).wr_id == n, "another message than %u", n);
    must_be_0(memcmp(src, dst, MSG));
    must(success(p->cq[from]).wr_id == n, "another message than %u", n);
}

void *map_far_below(size_t len)
{
    void *at = mmap((void *)0x10000000, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    must(at != MAP_FAILED, "errno %d", errno);
    return at;
}
