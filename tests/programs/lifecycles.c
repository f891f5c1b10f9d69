/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that make, use and destroy objects of one kind at once, kind after kind. Each call must
 * succeed, and each thread must end. The program prints whether threads wait for each other, but
 * does not judge it.
 *
 * usage: lifecycles [-t THREADS] [-n TIMES]
 *
 * Prints for each kind how many objects a second one thread alone handles, how many all threads
 * handle together, and when the first thread was done. Written to libibverbs alone.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "tests/programs/pair.h"

#define SRQS  8
#define LIVES 3 /* transitions of a QP from RESET to ERR */

struct worker {
    const struct kind *kind;
    double done;
    uint8_t buf[4096];
};

struct kind {
    const char *name;
    void (*once)(struct worker *me, unsigned n);
    bool alone; /* only these threads have the device open */
};

static unsigned times = 100;

/* -- kinds ------------------------------------------------------------------------------------- */

static void domain(struct worker *me, unsigned n)
{
    struct ibv_pd *own = ibv_alloc_pd(ctx[0]);

    must(own, "errno %d", errno);
    must_be_0(ibv_dealloc_pd(own));
}

static void region(struct worker *me, unsigned n)
{
    struct ibv_mr *mr = ibv_reg_mr(pd[0], me->buf, sizeof(me->buf), IBV_ACCESS_LOCAL_WRITE);

    must(mr, "errno %d", errno);
    must_be_0(ibv_dereg_mr(mr));
}

static void window(struct worker *me, unsigned n)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd[0], IBV_MW_TYPE_2);

    must(mw, "errno %d", errno);
    must_be_0(ibv_dealloc_mw(mw));
}

static void channel_and_cq(struct worker *me, unsigned n)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx[0]);
    struct ibv_cq *cq = ibv_create_cq(ctx[0], DEPTH, NULL, channel, 0);
    struct ibv_wc wc;

    must(channel && cq, "errno %d", errno);
    must_be_0(ibv_req_notify_cq(cq, 0));
    must_be_0(ibv_poll_cq(cq, 1, &wc));
    must_be_0(ibv_destroy_cq(cq));
    must_be_0(ibv_destroy_comp_channel(channel));
}

static void several_srqs(struct worker *me, unsigned n)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
    struct ibv_srq *srq[SRQS];

    for (unsigned i = 0; i < SRQS; i++) {
        srq[i] = ibv_create_srq(pd[0], &attr);
        must(srq[i], "errno %d", errno);
        for (unsigned j = 0; j < DEPTH; j++) {
            must_be_0(ibv_post_srq_recv(srq[i], &wr, &bad));
        }
    }
    for (unsigned i = 0; i < SRQS; i++) {
        must_be_0(ibv_query_srq(srq[i], &attr.attr));
        must_be_0(ibv_destroy_srq(srq[i]));
    }
}

static void pair_by_srq(struct worker *me, unsigned n)
{
    struct pair *p = pair_new(n & 1, true);

    message(p, 0, n);
    message(p, 1, n);
    pair_free(p);
}

static void to_reset(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    must_be_0(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RESET;
    must_be_0(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void queue_pair(struct worker *me, unsigned n)
{
    struct pair *p = pair_new(false, false);

    for (unsigned life = 1;; life++) {
        message(p, life & 1, n);
        if (life == LIVES) {
            break;
        }
        to_reset(p->qp[0]);
        to_reset(p->qp[1]);
        to_rts(0, p->qp[0], p->qp[1]->qp_num, 14);
        to_rts(1, p->qp[1], p->qp[0]->qp_num, 14);
    }
    pair_free(p);
}

static struct ibv_qp *datagram_qp(struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(pd[0], &init);

    must(qp, "errno %d", errno);
    datagrams_to_rts(qp);
    return qp;
}

/* Sends a datagram over it to the QP itself. */
static void use_address(struct worker *me, struct ibv_qp *qp, struct ibv_ah *ah, struct ibv_mr *mr)
{
    struct ibv_sge sge = {(uintptr_t)me->buf, MSG, mr->lkey};
    struct ibv_sge room = {(uintptr_t)me->buf + MSG, GRH + MSG, mr->lkey};
    struct ibv_recv_wr recv = {.sg_list = &room, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    send.wr.ud.ah = ah;
    send.wr.ud.remote_qpn = qp->qp_num;
    send.wr.ud.remote_qkey = QKEY;
    must_be_0(ibv_post_recv(qp, &recv, &bad_recv));
    must_be_0(ibv_post_send(qp, &send, &bad));
    success(qp->recv_cq);
    success(qp->recv_cq);
}

static void address(struct worker *me, unsigned n)
{
    struct ibv_cq *cq = ibv_create_cq(ctx[0], 4 * DEPTH, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd[0], me->buf, sizeof(me->buf), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp *qp;

    must(cq && mr, "errno %d", errno);
    qp = datagram_qp(cq);
    for (unsigned i = 0; i < DEPTH; i++) {
        struct ibv_ah *ah = own_address();

        use_address(me, qp, ah, mr);
        must_be_0(ibv_destroy_ah(ah));
    }
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_dereg_mr(mr));
    must_be_0(ibv_destroy_cq(cq));
}

static void device(struct worker *me, unsigned n)
{
    struct ibv_context *own = ibv_open_device(list[0]);
    struct ibv_pd *its;

    must(own, "errno %d", errno);
    its = ibv_alloc_pd(own);
    must(its, "errno %d", errno);
    must_be_0(ibv_dealloc_pd(its));
    must_be_0(ibv_close_device(own));
}

#define LARGE 8192 /* work requests */

static void large_rings(struct worker *me, unsigned n)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = LARGE, .max_sge = 4}};
    struct ibv_cq *cq = ibv_create_cq(ctx[0], 2 * LARGE, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = ibv_create_srq(pd[0], &attr),
        .cap = {.max_send_wr = LARGE, .max_send_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp;

    must(cq && init.srq, "errno %d", errno);
    qp = ibv_create_qp(pd[0], &init);
    must(qp, "errno %d", errno);
    must_be_0(ibv_destroy_qp(qp));
    must_be_0(ibv_destroy_srq(init.srq));
    must_be_0(ibv_destroy_cq(cq));
}

static const struct kind kinds[] = {
    {"protection domains", domain, false},
    {"regions", region, false},
    {"windows", window, false},
    {"channels and CQs", channel_and_cq, false},
    {"address handles, 16 of a UD QP", address, false},
    {"several SRQs", several_srqs, false},
    {"pairs of QPs with an SRQ", pair_by_srq, false},
    {"pairs of QPs that live three times", queue_pair, false},
    {"queues with large rings", large_rings, false},
    {"contexts", device, false},
    {"contexts, the first and the last one of the device", device, true},
};

/* -- threads ----------------------------------------------------------------------------------- */

static void works(void *arg)
{
    struct worker *me = arg;

    for (unsigned n = 0; n < times; n++) {
        me->kind->once(me, n);
    }
    me->done = now();
}

/* Returns the seconds until the last thread was done; *first: until the first was done. */
static double run(const struct kind *kind, unsigned threads, double *first)
{
    static struct worker workers[THREADS_MOST];
    double began, last = 0;

    for (unsigned i = 0; i < threads; i++) {
        workers[i].kind = kind;
    }
    began = run_at_once(threads, works, workers, sizeof(workers[0]));
    *first = 1e9;
    for (unsigned i = 0; i < threads; i++) {
        *first = workers[i].done < *first ? workers[i].done : *first;
        last = workers[i].done > last ? workers[i].done : last;
    }
    *first -= began;
    return last - began;
}

int main(int argc, char **argv)
{
    unsigned threads = 8;
    int option;

    while ((option = getopt(argc, argv, "t:n:")) > 0) {
        switch (option) {
        case 't':
            threads = (unsigned)atoi(optarg);
            break;
        case 'n':
            times = (unsigned)atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    must(threads >= 1 && threads <= THREADS_MOST && times > 0, "%u threads", threads);
    device_open();
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        double first, alone, all;

        if (kinds[i].alone) {
            device_close();
            list = ibv_get_device_list(NULL);
        }
        alone = run(&kinds[i], 1, &first);
        all = run(&kinds[i], threads, &first);
        if (kinds[i].alone) {
            ibv_free_device_list(list);
            device_open();
        }
        printf("%s: %.0f/s alone, %.0f/s in %u threads (%.3f s, the first one after %.3f s)\n",
               kinds[i].name, times / alone, times * threads / all, threads, all, first);
        fflush(stdout);
    }
    device_close();
    return 0;
}
