/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More threads than processors, all of which spin. Each thread has its own queue pair and CQ, asks
 * the other threads in turn, and polls all the time until every thread has all its answers. None
 * sleeps, so a question waits until the scheduler runs its thread and the asked thread.
 *
 * usage: spinners [-k ud | rc | memory] [-t THREADS] [-n QUESTIONS] [-y]
 *
 * -k memory uses mailboxes instead of a device, to show the effect of the scheduler alone on such a
 * program. -y: a thread that found nothing yields its processor, which no program of this kind
 * does.
 *
 * Prints how long it took, and the times of the threads. Written to libibverbs alone.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <string.h>
#include "tests/programs/pair.h"

#define MOST    THREADS_MOST
#define ROOM    256 /* bytes of a receive */
#define ANSWERS 2   /* receives and sends for each other thread: its question and an answer */

enum kind {
    UD,
    RC,
    MEMORY
};

static const char *const kind_names[] = {"ud", "rc", "memory"};

/* A message; in memory, a mailbox. */
struct word {
    uint32_t from, number; /* the question's thread and number; 0: an empty mailbox */
    bool answers;
};

struct spinner {
    unsigned index;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp[MOST]; /* towards each thread; for UD all are the same */
    struct ibv_ah *ah;       /* towards all threads, because they share one device */
    struct ibv_mr *mr;
    uint8_t received[MOST * ANSWERS][ROOM];
    struct word sent[MOST * ANSWERS];
    unsigned next_sent;
    unsigned asked, answered;
    double began, longest, done; /* seconds */
};

static enum kind kind = UD;
static unsigned threads = 32, questions = 100, finished;
static bool yields;
static struct spinner all[MOST];
static struct word mailbox[MOST][MOST][2]; /* to, from, whether it answers */

/* -- a device ---------------------------------------------------------------------------------- */

static void receive(struct spinner *me, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)me->received[slot], ROOM, me->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    must_be_0(ibv_post_srq_recv(me->srq, &wr, &bad));
}

static struct ibv_qp *make_qp(struct spinner *me)
{
    struct ibv_qp_init_attr init = {
        .send_cq = me->cq,
        .recv_cq = me->cq,
        .srq = me->srq,
        .cap = {.max_send_wr = MOST * ANSWERS, .max_send_sge = 1},
        .qp_type = kind == UD ? IBV_QPT_UD : IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(pd[0], &init);

    must(qp, "errno %d", errno);
    return qp;
}

static void make_ud(struct spinner *me)
{
    struct ibv_qp *qp = make_qp(me);

    datagrams_to_rts(qp);
    me->ah = own_address();
    for (unsigned i = 0; i < threads; i++) {
        me->qp[i] = qp;
    }
}

static void make_all(void)
{
    device_open();
    for (unsigned i = 0; i < threads; i++) {
        struct spinner *me = &all[i];
        struct ibv_srq_init_attr attr = {.attr = {.max_wr = MOST * ANSWERS, .max_sge = 1}};

        me->cq = ibv_create_cq(ctx[0], 4 * MOST * ANSWERS, NULL, NULL, 0);
        me->srq = ibv_create_srq(pd[0], &attr);
        me->mr = ibv_reg_mr(pd[0], me, sizeof(*me), IBV_ACCESS_LOCAL_WRITE);
        must(me->cq && me->srq && me->mr, "errno %d", errno);
        for (unsigned slot = 0; slot < MOST * ANSWERS; slot++) {
            receive(me, slot);
        }
        if (kind == UD) {
            make_ud(me);
        }
        for (unsigned to = 0; kind == RC && to < threads; to++) {
            me->qp[to] = make_qp(me);
        }
    }
    for (unsigned i = 0; kind == RC && i < threads; i++) {
        for (unsigned to = 0; to < threads; to++) {
            to_rts(0, all[i].qp[to], all[to].qp[i]->qp_num, 14);
        }
    }
}

static void free_all(void)
{
    for (unsigned i = 0; i < threads; i++) {
        for (unsigned to = 0; to < (kind == UD ? 1 : threads); to++) {
            must_be_0(ibv_destroy_qp(all[i].qp[to]));
        }
        if (all[i].ah) {
            must_be_0(ibv_destroy_ah(all[i].ah));
        }
        must_be_0(ibv_destroy_srq(all[i].srq));
        must_be_0(ibv_destroy_cq(all[i].cq));
        must_be_0(ibv_dereg_mr(all[i].mr));
    }
    device_close();
}

/* -- sending, receiving ------------------------------------------------------------------------ */

static void say(struct spinner *me, unsigned to, struct word word)
{
    struct word *sent = &me->sent[me->next_sent++ % (MOST * ANSWERS)];
    struct ibv_sge sge = {(uintptr_t)sent, sizeof(*sent), 0};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    if (kind == MEMORY) {
        struct word *box = &mailbox[to][me->index][word.answers];

        box->from = word.from;
        __atomic_store_n(&box->number, word.number, __ATOMIC_RELEASE);
        return;
    }
    *sent = word;
    sge.lkey = me->mr->lkey;
    if (kind == UD) {
        wr.wr.ud.ah = me->ah;
        wr.wr.ud.remote_qpn = all[to].qp[0]->qp_num;
        wr.wr.ud.remote_qkey = QKEY;
    }
    must_be_0(ibv_post_send(me->qp[to], &wr, &bad));
}

/* Checks all mailboxes once. */
static bool hear_memory(struct spinner *me, struct word *word)
{
    for (unsigned from = 0; from < threads; from++) {
        for (unsigned answers = 0; answers < 2; answers++) {
            struct word *box = &mailbox[me->index][from][answers];
            uint32_t number = __atomic_load_n(&box->number, __ATOMIC_ACQUIRE);

            if (number) {
                *word = (struct word){box->from, number, answers};
                __atomic_store_n(&box->number, 0, __ATOMIC_RELEASE);
                return true;
            }
        }
    }
    return false;
}

/* Polls once. Returns false if nothing has come. */
static bool hear(struct spinner *me, struct word *word)
{
    struct ibv_wc wc;
    int n;

    if (kind == MEMORY) {
        return hear_memory(me, word);
    }
    while ((n = ibv_poll_cq(me->cq, 1, &wc)) == 1) {
        must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
        if (wc.opcode & IBV_WC_RECV) {
            memcpy(word, me->received[wc.wr_id] + (kind == UD ? GRH : 0), sizeof(*word));
            receive(me, (unsigned)wc.wr_id);
            return true;
        }
    }
    must_be_0(n);
    return false;
}

/* -- a thread ---------------------------------------------------------------------------------- */

static void ask(struct spinner *me)
{
    unsigned to = (me->index + 1 + me->asked++ % (threads - 1)) % threads;

    me->began = now();
    say(me, to, (struct word){me->index, me->asked, false});
}

static void take_answer(struct spinner *me, const struct word *word)
{
    double time = now();

    must(word->number == me->asked, "%u after %u", word->number, me->asked);
    me->longest = time - me->began > me->longest ? time - me->began : me->longest;
    if (++me->answered < questions) {
        ask(me);
    } else {
        me->done = time;
        __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
    }
}

static void spins(void *arg)
{
    struct spinner *me = arg;
    struct word word;

    ask(me);
    while (__atomic_load_n(&finished, __ATOMIC_SEQ_CST) < threads) {
        if (!hear(me, &word)) {
            if (yields) {
                sched_yield();
            }
        } else if (word.answers) {
            take_answer(me, &word);
        } else {
            say(me, word.from, (struct word){me->index, word.number, true});
        }
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void options(int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "k:t:n:y")) > 0) {
        switch (option) {
        case 'k':
            for (kind = UD; kind < MEMORY && strcmp(optarg, kind_names[kind]); kind++) {
            }
            must(!strcmp(optarg, kind_names[kind]), "%s", optarg);
            break;
        case 't':
            threads = (unsigned)atoi(optarg);
            break;
        case 'n':
            questions = (unsigned)atoi(optarg);
            break;
        case 'y':
            yields = true;
            break;
        default:
            exit(2);
        }
    }
    must(threads >= 2 && threads <= MOST && questions > 0, "%u threads", threads);
}

int main(int argc, char **argv)
{
    double began, first = 1e9, last = 0, longest = 0;

    options(argc, argv);
    if (kind != MEMORY) {
        make_all();
    }
    for (unsigned i = 0; i < threads; i++) {
        all[i].index = i;
    }
    began = run_at_once(threads, spins, all, sizeof(all[0]));
    for (unsigned i = 0; i < threads; i++) {
        first = all[i].done < first ? all[i].done : first;
        last = all[i].done > last ? all[i].done : last;
        longest = all[i].longest > longest ? all[i].longest : longest;
    }
    printf("%s: %u threads, %u questions each: %.3f s, the first thread was done after %.3f s; "
           "the longest wait for an answer: %.1f ms\n",
           kind_names[kind], threads, questions, last - began, first - began, longest * 1e3);
    if (kind != MEMORY) {
        free_all();
    }
    return 0;
}
