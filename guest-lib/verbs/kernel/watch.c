/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of programs that own their rings.
 *
 * Direct verbs hands a program the ring, the doorbell record and a doorbell page. Here the page is
 * memory, and a write to it goes nowhere: two doorbells on one register could hide each other
 * there. What counts is in the doorbell record, which the program writes first: the send counter of
 * a queue, the arm word of a CQ. hv_watch_scan() looks at those of all queues that are in a
 * program's hands and rings the real doorbell for each that changed. The device reads the record
 * itself, so one that is rung late, or twice for the same value, does no harm. Whoever drives the
 * HCA calls it each time; while queues are watched nobody may sleep.
 */
#include "guest-lib/verbs/kernel/watch.h"

struct hv_dv_watch {
    struct hv_hca *hca;
    enum hv_dv_watch_kind kind;
    uint32_t num, uar_page;
    const uint32_t *dbrec; /* big-endian */
    uint32_t seen;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *watches;
gint hv_watches;

struct hv_dv_watch *hv_dv_watch_new(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num,
                                    uint32_t uar_page, const uint32_t *dbrec)
{
    struct hv_dv_watch *watch = g_new0(struct hv_dv_watch, 1);

    *watch = (struct hv_dv_watch){.hca = hca,
                                  .kind = kind,
                                  .num = num,
                                  .uar_page = uar_page,
                                  .dbrec = dbrec,
                                  .seen = __atomic_load_n(dbrec, __ATOMIC_ACQUIRE)};
    pthread_mutex_lock(&lock);
    if (!watches) {
        watches = g_ptr_array_new();
    }
    g_ptr_array_add(watches, watch);
    g_atomic_int_inc(&hv_watches);
    pthread_mutex_unlock(&lock);
    return watch;
}

void hv_dv_watch_free(struct hv_dv_watch *watch)
{
    if (!watch) {
        return;
    }
    pthread_mutex_lock(&lock);
    g_ptr_array_remove_fast(watches, watch);
    g_atomic_int_add(&hv_watches, -1);
    pthread_mutex_unlock(&lock);
    g_free(watch);
}

static bool watch_is_of(const struct hv_dv_watch *watch, struct hv_hca *hca,
                        enum hv_dv_watch_kind kind, uint32_t num)
{
    return watch->hca == hca && watch->kind == kind && watch->num == num;
}

bool hv_dv_watched(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (guint i = 0; watches && i < watches->len && !found; i++) {
        found = watch_is_of(watches->pdata[i], hca, kind, num);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Queues of verbs end with their verbs object: no one but its destroy function knows. */
static void watch_forget(struct hv_hca *hca, enum hv_dv_watch_kind kind, uint32_t num)
{
    if (!g_atomic_int_get(&hv_watches)) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (guint i = 0; i < watches->len; i++) {
        struct hv_dv_watch *watch = watches->pdata[i];

        if (watch_is_of(watch, hca, kind, num)) {
            g_ptr_array_remove_index_fast(watches, i);
            g_atomic_int_add(&hv_watches, -1);
            g_free(watch);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void hv_watch_forget_sq(struct hv_hca *hca, uint32_t num)
{
    watch_forget(hca, HV_WATCH_SQ, num);
}

void hv_watch_forget_cq(struct hv_hca *hca, uint32_t cqn)
{
    watch_forget(hca, HV_WATCH_CQ, cqn);
}

/* The two dwords that the program wrote, or will write, to its doorbell page. */
static uint64_t watch_doorbell(const struct hv_dv_watch *watch, uint32_t value)
{
    if (watch->kind == HV_WATCH_CQ) {
        return (uint64_t)value << 32 | watch->num;
    }
    return (uint64_t)(value & 0xffff) << 40 | (uint64_t)watch->num << 8;
}

bool hv_watch_scan(struct hv_hca *hca, hv_ring_fn *ring)
{
    bool any = false;

    if (!g_atomic_int_get(&hv_watches) || pthread_mutex_trylock(&lock)) {
        return false; /* who has the lock looks as well */
    }
    for (guint i = 0; i < watches->len; i++) {
        struct hv_dv_watch *watch = watches->pdata[i];
        uint32_t now = __atomic_load_n(watch->dbrec, __ATOMIC_ACQUIRE);
        uint32_t reg =
            watch->kind == HV_WATCH_CQ ? PRM_OFFSET(uar, cq_db) : PRM_OFFSET(uar, blue_flame);

        if (watch->hca == hca && now != watch->seen) {
            watch->seen = now;
            any = true;
            ring(hca, (uint64_t)watch->uar_page * PCI_PAGE + reg,
                 watch_doorbell(watch, __builtin_bswap32(now)));
        }
    }
    pthread_mutex_unlock(&lock);
    return any;
}
