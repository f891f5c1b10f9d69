/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs with threads. Several threads use their own queues, shared queues and events, and
 * destroy objects while others use the device; the result must be as if they had done it in turn.
 *
 * Written to libibverbs alone. One process, one device; its QPs are connected to each other. Under
 * ThreadSanitizer it also shows that no two threads use anything in the library without
 * synchronization. ThreadSanitizer does not see what processes share (the wire).
 */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"
#include "tests/programs/pair.h"

#define THREADS 8

/* Returns the number of repetitions: fewer where each step costs more (a sanitizer, Valgrind). */
static unsigned times(unsigned n)
{
    const char *percent = getenv("THREADS_PERCENT");
    unsigned scaled = percent ? n * (unsigned)atoi(percent) / 100 : n;

    return scaled ? scaled : 1;
}

/* -- threads ----------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    unsigned index;
    void *arg;
};

/* Runs body in n threads. A failed assertion in a thread ends the program, which Check reports. */
static void in_threads(unsigned n, void *(*body)(void *worker), void *arg)
{
    struct worker workers[THREADS];

    must(n <= THREADS, "%u", n);
    for (unsigned i = 0; i < n; i++) {
        workers[i] = (struct worker){.index = i, .arg = arg};
        must_be_0(pthread_create(&workers[i].thread, NULL, body, &workers[i]));
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
    }
}

/* -- one message after another ----------------------------------------------------------------- */

START_TEST(one_thread_at_both_ends_has_one_message_outstanding)
{
    struct pair *p = pair_new(false, _i);

    for (unsigned n = 0; n < times(50000); n++) {
        message(p, 0, n);
    }
    pair_free(p);
}
END_TEST

/* Posts five messages at once, which can be recognized as this round's. */
static void posts_five(struct pair *p, unsigned round)
{
    for (unsigned i = 0; i < 5; i++) {
        memset(p->buf[0][i], (int)(round + i) & 0xff, MSG);
        memset(p->buf[1][i], 0xee, MSG);
        post_recv(p, 1, i);
    }
    for (unsigned i = 0; i < 5; i++) {
        post_send(p, 0, i);
    }
}

/* Polls for so long that the library expects it to continue, then posts five messages at once. */
static void polls_then_posts(struct pair *p, unsigned round)
{
    double until = now() + 0.005;
    struct ibv_wc wc;

    while (now() < until) {
        must_be_0(ibv_poll_cq(p->cq[0], 1, &wc));
    }
    posts_five(p, round);
}

/* Returns whether the last of them has arrived, without a call. (The device writes this memory
 * meanwhile: ThreadSanitizer would report a race because it sees the device.) */
__attribute__((noinline, no_sanitize("thread"))) static bool has_arrived(struct pair *p,
                                                                         unsigned round)
{
    return *(volatile uint8_t *)&p->buf[1][4][MSG - 1] == ((round + 4) & 0xff);
}

/* A thread that polls all the time performs its own work: what it posts between two polls may wait
 * for the second poll. If the second poll does not come, the work is sent anyway, whether the
 * program spins on its memory or sleeps. */
START_TEST(posted_work_is_done_without_another_poll)
{
    bool sleeps = _i;
    struct pair *p = pair_new(false, false);

    for (unsigned round = 0; round < times(30); round++) {
        double end = now() + SECONDS;

        polls_then_posts(p, round);
        while (!has_arrived(p, round)) {
            must(now() < end, "what was posted in round %u was left undone", round);
            if (sleeps) {
                usleep(1000);
            }
        }
        for (unsigned i = 0; i < 5; i++) {
            success(p->cq[1]);
            success(p->cq[0]);
        }
    }
    pair_free(p);
}
END_TEST

static bool over;

/* Polls its own CQ in vain for some time, sleeps for some time, and so on. */
static void *polls_now_and_then(void *worker)
{
    struct ibv_cq *cq = ((struct worker *)worker)->arg;
    struct ibv_wc wc;

    for (unsigned i = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); i++) {
        double until = now() + 0.0004 * (i % 8);

        while (now() < until) {
            must_be_0(ibv_poll_cq(cq, 1, &wc));
        }
        usleep(i * 37 % 2000);
    }
    return NULL;
}

/* A thread that posts while another thread polls may leave the work to the polling thread. If that
 * thread turns to something else just then, the work is done anyway. */
START_TEST(posted_work_is_done_if_the_polling_thread_stops)
{
    struct pair *p = pair_new(false, false);
    struct worker poller = {.arg = ibv_create_cq(ctx[0], DEPTH, NULL, NULL, 0)};

    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    must(poller.arg, "no CQ");
    must_be_0(pthread_create(&poller.thread, NULL, polls_now_and_then, &poller));
    for (unsigned round = 0; round < times(1000); round++) {
        double end = now() + SECONDS;

        posts_five(p, round);
        while (!has_arrived(p, round)) {
            must(now() < end, "what was posted in round %u was left undone", round);
        }
        for (unsigned i = 0; i < 5; i++) {
            success(p->cq[1]);
            success(p->cq[0]);
        }
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(poller.thread, NULL);
    must_be_0(ibv_destroy_cq(poller.arg));
    pair_free(p);
}
END_TEST

/* -- queues of each thread, and queues of all -------------------------------------------------- */

static void *uses_its_own(void *worker)
{
    struct pair *p = pair_new(false, *(bool *)((struct worker *)worker)->arg);

    for (unsigned n = 0; n < times(5000); n++) {
        message(p, n & 1, n);
    }
    pair_free(p);
    return NULL;
}

START_TEST(each_thread_has_queues_of_its_own)
{
    bool srq = _i;

    in_threads(THREADS, uses_its_own, &srq);
}
END_TEST

/* What the threads of the next test share. */
struct shared {
    struct pair *p;
    unsigned total;
    unsigned next, sent, received; /* changed by atomic operations */
    uint8_t *seen;                 /* by number of the message */
};

static unsigned load(const unsigned *n)
{
    return __atomic_load_n(n, __ATOMIC_ACQUIRE);
}

/* Any thread posts to the QPs, polls either CQ, and sees messages that another thread has
 * posted. */
static void *uses_what_all_use(void *worker)
{
    struct shared *s = ((struct worker *)worker)->arg;
    double end = now() + SECONDS;
    struct ibv_wc wc;
    uint8_t before;

    while (load(&s->sent) < s->total || load(&s->received) < s->total) {
        unsigned mine = load(&s->next);

        must(now() < end, "%u of %u sent, %u received", s->sent, s->total, s->received);
        /* at most DEPTH / 2 are outstanding, so receives and sends both have room */
        if (mine < s->total && mine < load(&s->received) + DEPTH / 2 &&
            mine < load(&s->sent) + DEPTH / 2 &&
            __atomic_compare_exchange_n(&s->next, &mine, mine + 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            post_recv(s->p, 1, mine);
            post_send(s->p, 0, mine);
        }
        for (int i = 0; i < 2; i++) {
            if (ibv_poll_cq(s->p->cq[i], 1, &wc) == 1) {
                must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
                must(wc.wr_id < s->total, "%llu", (unsigned long long)wc.wr_id);
                before = __atomic_fetch_or(&s->seen[wc.wr_id], 1u << i, __ATOMIC_ACQ_REL);
                must(!(before & 1u << i), "message %u twice", (unsigned)wc.wr_id);
                __atomic_add_fetch(i ? &s->received : &s->sent, 1, __ATOMIC_ACQ_REL);
            }
        }
    }
    return NULL;
}

START_TEST(all_threads_share_a_qp_and_its_cqs)
{
    struct shared s = {.p = pair_new(false, _i), .total = times(20000)};

    s.seen = calloc(s.total, 1);
    must(s.seen, "errno %d", errno);
    in_threads(THREADS, uses_what_all_use, &s);
    for (unsigned i = 0; i < s.total; i++) {
        must(s.seen[i] == 3, "message %u: %u", i, s.seen[i]);
    }
    free(s.seen);
    pair_free(s.p);
}
END_TEST

/* -- events ------------------------------------------------------------------------------------ */

/* Arms, polls once more, and sleeps in poll(): a completion after that check causes an event. */
static struct ibv_wc wait_for(struct pair *p, int end)
{
    struct pollfd fd = {.fd = p->channel[end]->fd, .events = POLLIN};
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;
    int n;

    for (;;) {
        n = ibv_poll_cq(p->cq[end], 1, &wc);
        if (!n) {
            must_be_0(ibv_req_notify_cq(p->cq[end], 0));
            n = ibv_poll_cq(p->cq[end], 1, &wc);
        }
        if (n) {
            must(n == 1, "%d", n);
            must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
            return wc;
        }
        must(poll(&fd, 1, SECONDS * 1000) == 1, "no event at end %d", end);
        must_be_0(ibv_get_cq_event(p->channel[end], &cq, &context));
        must(cq == p->cq[end], "another one");
        ibv_ack_cq_events(cq, 1);
    }
}

static struct ibv_wc next_completion(struct pair *p, int end)
{
    return p->channel[end] ? wait_for(p, end) : success(p->cq[end]);
}

/* The second thread answers each message; both threads poll, or sleep until there is an event. */
static void *answers(void *worker)
{
    struct pair *p = ((struct worker *)worker)->arg;
    int end = (int)((struct worker *)worker)->index;
    unsigned total = times(20000), received = 0, sent = 0;

    if (end == 0) {
        post_send(p, 0, 0);
    }
    while (received < total || sent < total) {
        struct ibv_wc wc = next_completion(p, end);

        if (wc.opcode & IBV_WC_RECV) {
            received++;
            post_recv(p, end, received + DEPTH / 2);
            if (end == 1 || received < total) {
                post_send(p, end, received);
            }
        } else {
            sent++;
        }
    }
    return NULL;
}

static void answer_each_other(struct pair *p)
{
    for (int end = 0; end < 2; end++) {
        for (unsigned i = 0; i < DEPTH / 2; i++) {
            post_recv(p, end, i);
        }
    }
    in_threads(2, answers, p);
    pair_free(p);
}

START_TEST(two_threads_answer_each_other)
{
    answer_each_other(pair_new(false, _i));
}
END_TEST

START_TEST(two_threads_answer_each_other_by_events)
{
    answer_each_other(pair_new(true, _i));
}
END_TEST

/* One thread handles both ends, and sleeps until each completion has come. */
static void *messages_by_events(void *worker)
{
    struct pair *p = pair_new(true, false);

    for (unsigned n = 0; n < times(5000); n++) {
        post_recv(p, 1, n);
        post_send(p, 0, n);
        must(wait_for(p, 1).wr_id == n, "another message than %u", n);
        must(wait_for(p, 0).wr_id == n, "another message than %u", n);
    }
    pair_free(p);
    return NULL;
}

START_TEST(each_thread_sleeps_until_its_event)
{
    in_threads(_i ? THREADS : 1, messages_by_events, NULL);
}
END_TEST

/* -- objects that come and go ------------------------------------------------------------------ */

static void *makes_uses_destroys(void *worker)
{
    for (unsigned i = 0; i < times(100); i++) {
        struct pair *p = pair_new(i & 1, i & 2);

        for (unsigned n = 0; n < 10; n++) {
            message(p, 0, n);
        }
        pair_free(p);
    }
    return NULL;
}

START_TEST(threads_make_use_and_destroy_queues)
{
    in_threads(THREADS, makes_uses_destroys, NULL);
}
END_TEST

/* Sends until its QP gets an error because the other QP is gone. */
static void *sends_to_what_goes(void *worker)
{
    struct pair *p = ((struct worker *)worker)->arg;
    double end = now() + SECONDS;
    struct ibv_wc wc;

    for (unsigned n = 0;;) {
        if (!try_send(p, 0, n)) {
            n++;
        }
        must(now() < end, "no error although the target is gone");
        while (ibv_poll_cq(p->cq[0], 1, &wc) == 1) {
            if (wc.status != IBV_WC_SUCCESS) {
                must(wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_RNR_RETRY_EXC_ERR,
                     "%s", ibv_wc_status_str(wc.status));
                return NULL;
            }
        }
    }
}

static void *destroys_a_target(void *worker)
{
    for (unsigned i = 0; i < times(10); i++) {
        struct pair *p = pair_new(false, false);
        struct worker sender = {.arg = p};
        struct ibv_wc wc;

        for (unsigned n = 0; n < DEPTH; n++) {
            post_recv(p, 1, n);
        }
        must_be_0(pthread_create(&sender.thread, NULL, sends_to_what_goes, &sender));
        for (unsigned n = 0; n < 100;) {
            if (ibv_poll_cq(p->cq[1], 1, &wc) == 1) {
                must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
                post_recv(p, 1, n++);
            }
        }
        must_be_0(ibv_destroy_qp(p->qp[1]));
        pthread_join(sender.thread, NULL);
        p->qp[1] = new_qp(1, p->cq[1], NULL);
        pair_free(p);
    }
    return NULL;
}

START_TEST(a_qp_is_destroyed_while_it_is_a_target)
{
    in_threads(THREADS, destroys_a_target, NULL);
}
END_TEST

static void *opens_and_closes(void *worker)
{
    for (unsigned i = 0; i < times(20); i++) {
        struct ibv_context *own = ibv_open_device(list[0]);
        struct ibv_pd *domain;

        must(own, "errno %d", errno);
        domain = ibv_alloc_pd(own);
        must(domain, "errno %d", errno);
        must_be_0(ibv_dealloc_pd(domain));
        must_be_0(ibv_close_device(own));
    }
    return NULL;
}

/* Nobody else has the device open: each thread may be the first and the last. */
START_TEST(threads_open_and_close_the_device)
{
    device_close();
    list = ibv_get_device_list(NULL);
    in_threads(THREADS, opens_and_closes, NULL);
    ibv_free_device_list(list);
    device_open();
}
END_TEST

/* -- main() ------------------------------------------------------------------------------------ */

static void two_devices_open(void)
{
    use_two_devices();
    device_open();
}

/* Adds the tests as loops: with a receive queue, with an SRQ. */
static void add_tests(Suite *s, const char *name, SFun open)
{
    TCase *tc = tcase_create(name);

    suite_add_tcase(s, tc);
    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, open, device_close);
    tcase_add_loop_test(tc, one_thread_at_both_ends_has_one_message_outstanding, 0, 2);
    tcase_add_loop_test(tc, posted_work_is_done_without_another_poll, 0, 2);
    tcase_add_test(tc, posted_work_is_done_if_the_polling_thread_stops);
    tcase_add_loop_test(tc, two_threads_answer_each_other, 0, 2);
    tcase_add_loop_test(tc, each_thread_has_queues_of_its_own, 0, 2);
    tcase_add_loop_test(tc, all_threads_share_a_qp_and_its_cqs, 0, 2);
    tcase_add_loop_test(tc, two_threads_answer_each_other_by_events, 0, 2);
    tcase_add_loop_test(tc, each_thread_sleeps_until_its_event, 0, 2);
    tcase_add_test(tc, threads_make_use_and_destroy_queues);
    tcase_add_test(tc, a_qp_is_destroyed_while_it_is_a_target);
    tcase_add_test(tc, threads_open_and_close_the_device);
}

int main(void)
{
    Suite *s = suite_create("threads");

    add_tests(s, "one device", device_open);
    add_tests(s, "two devices", two_devices_open);
    return run_on_own_wire(s, "threads");
}
