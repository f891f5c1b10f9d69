/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the lists of pending work, and the heap of timers.
 *
 * A struct work is on at most one list: ready, waiting for the wire's credit, waiting until this
 * turn has looked at the wire again, or late. A timer is in the heap while it is armed.
 * model/card/turn.c says when they run.
 */
#include "model/core/work.h"

#define NEVER_FIRST UINT64_MAX /* as waits_since */

static void work_list_init(struct work *head)
{
    head->prev = head->next = head;
}

static bool work_list_empty(const struct work *head)
{
    return head->next == head;
}

static void work_list_append(struct work *head, struct work *work)
{
    work->prev = head->prev;
    work->next = head;
    head->prev->next = work;
    head->prev = work;
}

/* Moves all work of a list to the end of another list. */
static void work_list_move(struct work *to, struct work *from)
{
    if (work_list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    work_list_init(from);
}

void hca_unschedule(struct work *work)
{
    if (work->next) {
        work->prev->next = work->next;
        work->next->prev = work->prev;
        work->prev = work->next = NULL;
    }
}

void hca_wake(struct hca *hca)
{
    if (!hca->running) {
        hca->ops->wake(hca->host);
    }
}

void hca_schedule(struct hca *hca, struct work *work)
{
    if (!work->next) {
        work->waits_since = 0;
        work_list_append(&hca->ready, work);
        hca_wake(hca);
    }
}

bool hca_wait_frames(struct hca *hca, struct work *work)
{
    if (hca->pieces >= hca->turn_end) {
        return false;
    }
    work_list_append(&hca->rx_waiting, work);
    return true;
}

/*
 * The first work on the list finds the credit, and takes as much of it as it can use. Therefore
 * work that has sent something waits behind work that found no credit.
 *
 * That order alone starves work: if a turn ends before all work has tried, and credit for one frame
 * comes at a time, the same works can be the first again and again. Therefore one work is put
 * before all ready work when credit comes back (work_find_first()): of the works that found no
 * credit, the one that has waited longest. If there is none, it is that of the served works, unless
 * there is ready work, which has not tried since. The first work is served then, or its receiver
 * has no room yet; in either case it takes the last place.
 */
void hca_wait_tx(struct hca *hca, struct work *work)
{
    bool served = hca->tx_frames != hca->tx_frames_before;

    if (served || !work->waits_since) {
        work->waits_since = ++hca->waits;
    }
    hca_unschedule(work);
    work_list_append(
        served ? &hca->tx_served[hca->credit_class] : &hca->tx_waiting[hca->credit_class], work);
}

void hca_wait_tx_last(struct hca *hca, struct work *work)
{
    work->waits_since = NEVER_FIRST;
    hca_unschedule(work);
    work_list_append(&hca->tx_served[hca->credit_class], work);
}

/* The work of the list that has waited longest, or NULL. */
static struct work *work_find_first(struct work *list)
{
    struct work *first = NULL;

    for (struct work *work = list->next; work != list; work = work->next) {
        if (work->waits_since < (first ? first->waits_since : NEVER_FIRST)) {
            first = work;
        }
    }
    return first;
}

/* Moves the work that waits for credit of a class to the ready list: one work behind before, where
 * it is the first to try, the others to the end. Returns where the next first one goes. */
static struct work *work_get_ready(struct hca *hca, unsigned credit_class, struct work *before)
{
    struct work *waiting = &hca->tx_waiting[credit_class], *served = &hca->tx_served[credit_class];
    struct work *first = work_find_first(waiting);

    if (!first && work_list_empty(&hca->ready)) {
        first = work_find_first(served);
    }
    if (first) {
        hca_unschedule(first);
        first->waits_since = 0;
        work_list_append(before->next, first);
        before = first;
    }
    work_list_move(&hca->ready, waiting);
    work_list_move(&hca->ready, served);
    return before;
}

void hca_credits_back(struct hca *hca, uint64_t classes)
{
    struct work *before = &hca->ready;
    bool any = false;

    for (; classes; classes &= classes - 1) {
        unsigned credit_class = (unsigned)__builtin_ctzll(classes);

        if (hca_credit_awaited(hca, credit_class)) {
            before = work_get_ready(hca, credit_class, before);
            hca->credits_back |= classes & -classes;
            any = true;
        }
    }
    if (any) {
        hca_wake(hca);
    }
}

void hca_holds_over(struct hca *hca, unsigned priorities)
{
    struct work *before = &hca->ready;
    bool is_due = false;

    for (unsigned i = 0; i < HCA_HOLDS; i++) {
        if (priorities >> i & 1 && hca_credit_awaited(hca, HCA_CREDIT_CLASSES + i)) {
            before = work_get_ready(hca, HCA_CREDIT_CLASSES + i, before);
            is_due = true;
        }
    }
    if (is_due) {
        hca_wake(hca);
    }
}

void hca_tx_ready(struct hca *hca)
{
    hca_credits_back(hca, ~0ull);
    hca_holds_over(hca, ~0u);
}

bool hca_credit_awaited(const struct hca *hca, unsigned credit_class)
{
    return !work_list_empty(&hca->tx_waiting[credit_class]) ||
           !work_list_empty(&hca->tx_served[credit_class]);
}

bool hca_tx_awaited(const struct hca *hca)
{
    for (unsigned i = 0; i < HCA_WAIT_CLASSES; i++) {
        if (hca_credit_awaited(hca, i)) {
            return true;
        }
    }
    return false;
}

bool hca_frames_awaited(const struct hca *hca)
{
    return !work_list_empty(&hca->rx_waiting);
}

void hca_frames_looked_for(struct hca *hca)
{
    work_list_move(&hca->ready, &hca->rx_waiting);
}

/* -- timers: a binary heap, each timer knowing its place ----------------------------------------
 */

static struct hca_timer *work_timer_at(struct hca *hca, unsigned pos)
{
    return g_ptr_array_index(hca->timers, pos);
}

static void work_timer_place(struct hca *hca, unsigned pos, struct hca_timer *timer)
{
    hca->timers->pdata[pos] = timer;
    timer->pos = pos + 1;
}

static void work_timer_sift(struct hca *hca, unsigned pos)
{
    struct hca_timer *timer = work_timer_at(hca, pos);
    unsigned n = hca->timers->len;

    while (pos > 0 && work_timer_at(hca, (pos - 1) / 2)->deadline > timer->deadline) {
        work_timer_place(hca, pos, work_timer_at(hca, (pos - 1) / 2));
        pos = (pos - 1) / 2;
    }
    for (;;) {
        unsigned child = 2 * pos + 1;

        if (child + 1 < n &&
            work_timer_at(hca, child + 1)->deadline < work_timer_at(hca, child)->deadline) {
            child++;
        }
        if (child >= n || work_timer_at(hca, child)->deadline >= timer->deadline) {
            break;
        }
        work_timer_place(hca, pos, work_timer_at(hca, child));
        pos = child;
    }
    work_timer_place(hca, pos, timer);
}

static void work_timer_remove(struct hca *hca, struct hca_timer *timer)
{
    unsigned pos = timer->pos - 1;
    struct hca_timer *last = work_timer_at(hca, hca->timers->len - 1);

    g_ptr_array_set_size(hca->timers, (int)hca->timers->len - 1);
    timer->pos = 0;
    if (last != timer) {
        work_timer_place(hca, pos, last);
        work_timer_sift(hca, pos);
    }
}

void hca_timers_announce(struct hca *hca)
{
    hca->ops->timer_arm(hca->host, hca->timers->len ? work_timer_at(hca, 0)->deadline : UINT64_MAX);
}

void hca_timer_set(struct hca *hca, struct hca_timer *timer, uint64_t deadline_ns)
{
    if (timer->pos) {
        timer->deadline = deadline_ns;
        work_timer_sift(hca, timer->pos - 1);
    } else {
        timer->deadline = deadline_ns;
        g_ptr_array_add(hca->timers, timer);
        timer->pos = hca->timers->len;
        work_timer_sift(hca, timer->pos - 1);
    }
    if (!hca->running) {
        hca_timers_announce(hca);
    }
}

void hca_timer_stop(struct hca *hca, struct hca_timer *timer)
{
    if (timer->pos) {
        work_timer_remove(hca, timer);
        if (!hca->running) {
            hca_timers_announce(hca);
        }
    }
}

/* Turns in a row in which timers may wait for frames. */
#define TIMERS_HELD_MAX 8

void hca_timers_fire(struct hca *hca, bool more_frames)
{
    uint64_t now;

    if (!hca->timers->len) {
        return;
    }
    if (more_frames && hca->timers_held < TIMERS_HELD_MAX) {
        hca->timers_held++;
        return;
    }
    hca->timers_held = 0;
    now = hca_now(hca);
    while (hca_may_go_on(hca) && hca->timers->len && work_timer_at(hca, 0)->deadline <= now) {
        struct hca_timer *timer = work_timer_at(hca, 0);

        work_timer_remove(hca, timer);
        timer->fire(hca, timer);
        hca_spend(hca, 1);
    }
}

/* -- work that nothing wakes: run again from time to time, all of it at a bounded cost -----------
 */

#define LATE_NS   250000000ull
#define LATE_MOST 256 /* per LATE_NS */

void hca_wait_late(struct hca *hca, struct work *work)
{
    hca_unschedule(work);
    work_list_append(&hca->late, work);
    if (!hca->late_timer.pos) {
        hca_timer_set(hca, &hca->late_timer, hca_now(hca) + LATE_NS);
    }
}

void hca_unschedule_late(struct hca *hca, struct work *work)
{
    hca_unschedule(work);
    if (work_list_empty(&hca->late)) {
        hca_timer_stop(hca, &hca->late_timer);
    }
}

static void work_late_fire(struct hca *hca, struct hca_timer *timer)
{
    hca_spend(hca, LATE_MOST / HCA_PIECE_ENTRIES);
    for (unsigned i = 0; i < LATE_MOST && !work_list_empty(&hca->late); i++) {
        struct work *work = hca->late.next;

        hca_unschedule(work);
        hca_schedule(hca, work);
    }
    if (!work_list_empty(&hca->late)) {
        hca_timer_set(hca, timer, hca_now(hca) + LATE_NS);
    }
}

void hca_run_now(struct hca *hca, struct work *work)
{
    hca_unschedule(work);
    hca->tx_frames_before = hca->tx_frames;
    work->run(hca, work);
}

void hca_work_run(struct hca *hca)
{
    while (hca_may_go_on(hca) && !work_list_empty(&hca->ready)) {
        hca_run_now(hca, hca->ready.next);
        hca_spend(hca, 1);
    }
}

/* -- begin and end ------------------------------------------------------------------------------
 */

void hca_work_init(struct hca *hca)
{
    work_list_init(&hca->ready);
    work_list_init(&hca->rx_waiting);
    for (unsigned i = 0; i < HCA_WAIT_CLASSES; i++) {
        work_list_init(&hca->tx_waiting[i]);
        work_list_init(&hca->tx_served[i]);
    }
    work_list_init(&hca->late);
    hca->late_timer.fire = work_late_fire;
    hca->timers = g_ptr_array_new();
}

static void work_list_clear(struct work *head)
{
    while (!work_list_empty(head)) {
        hca_unschedule(head->next);
    }
}

void hca_work_reset(struct hca *hca)
{
    work_list_clear(&hca->ready);
    work_list_clear(&hca->rx_waiting);
    for (unsigned i = 0; i < HCA_WAIT_CLASSES; i++) {
        work_list_clear(&hca->tx_waiting[i]);
        work_list_clear(&hca->tx_served[i]);
    }
    work_list_clear(&hca->late);
    while (hca->timers->len) {
        hca_timer_stop(hca, work_timer_at(hca, hca->timers->len - 1));
    }
    g_ptr_array_unref(hca->timers); /* it may have been large */
    hca->timers = g_ptr_array_new();
}

void hca_work_clear(struct hca *hca)
{
    g_ptr_array_free(hca->timers, TRUE);
}

bool hca_work_pending(const struct hca *hca)
{
    return !work_list_empty(&hca->ready);
}
