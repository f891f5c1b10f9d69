/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of programs that own their rings.
 *
 * Direct verbs gives a program the ring, the doorbell record and a doorbell page, and the program
 * rings by storing to the page. Here the page is shared memory. The thread that drives the HCA
 * takes the stored value, by an exchange with NO_DOORBELL, and rings the real doorbell. So it does
 * not matter which thread, process or device stored it, nor whether the doorbell record changed.
 *
 * A register holds only one doorbell: if two come between two scans, the first one is lost. But the
 * doorbell record of its queue was written before it. So if anything was stored to a page, the
 * records of all queues that ring there are read, too, and a doorbell is rung for each record that
 * has changed since the last scan. The device reads the record itself, so ringing a queue late or
 * twice does no harm.
 *
 * A queue may have no record (qpc.send_dbr_mode). Its doorbell tells the send counter itself, at a
 * register of the page that only such queues use. What is lost there, the ring shows (unheard.h).
 *
 * One doorbell leaves no trace in its record: the first arm of a CQ, for any completion and from
 * the first one on, stores 0, which the record held before. So if another CQ of its page is armed,
 * a CQ that never rang is armed as its record says. Its program may get one event that it did not
 * ask for, which is better than missing one.
 *
 * A record may lie in memory of a GPU, from which no CPU can load. Reading it is a copy by the CUDA
 * driver, which takes microseconds. So it is read only to find lost doorbells: if something was
 * stored to the register of its kind, and no doorbell of its own queue was found there.
 *
 * (docs/adr/0018-doorbells-are-memory-that-is-looked-at.md)
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/kernel/watch.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/host/held.h"
#include "guest-lib/host/memory.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/refuse.h"
#include "guest-lib/verbs/kernel/unheard.h"
#include "model/queue/uar.h"

#define NO_DOORBELL  0u   /* no queue and no CQ has the number 0 */
#define RECORD_LOOKS 32u  /* every so many scans of the pages, all records are read */
#define BF_BUF       256u /* bytes from one BlueFlame buffer of a page to the next */

struct watch_queue {
    const void *owner;
    enum hv_watch_kind kind;
    bool rung; /* it has rung since it was registered */
    uint32_t num;
    const uint32_t *dbrec; /* NULL: it is unknown, or unmapped */
    bool is_far;           /* it is in memory of a GPU */
    bool was_seen;         /* seen is known; always so unless it is far */
    uint32_t seen;         /* its value at the last scan */
    /* of a send queue without record whose ring is known */
    struct unheard *unheard;
};

struct watch_page {
    uint32_t uarn;
    uint64_t *registers; /* a mapping for this file only, so that no program can unmap it */
    void *told;          /* the mapping for the program: hv_watch_uar() */
    GArray *queues;      /* struct watch_queue */
    unsigned unheard;    /* how many of them have an unheard */
};

/* -- memory ------------------------------------------------------------------------------------ */

/* Makes the file behind the context's descriptor at least this large, and forbids shrinking it.
 * Under the HCA's lock. */
static bool watch_grow(int fd, off_t size)
{
    struct stat st;

    return !fstat(fd, &st) && (st.st_size >= size || !ftruncate(fd, size)) &&
           !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
}

static void *watch_map(struct hv_context *ctx, uint32_t uarn)
{
    int fd = ctx->ibv.context.cmd_fd;
    off_t offset = hv_uar_offset(uarn);
    void *page;

    if (!watch_grow(fd, offset + PCI_PAGE)) {
        return NULL;
    }
    page = mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return page == MAP_FAILED ? NULL : page;
}

static void watch_unmap(void *page)
{
    if (page) {
        munmap(page, PCI_PAGE);
    }
}

/* Reads a record. False: the program has unmapped it, or the GPU does not answer. */
static bool watch_read_record(const struct watch_queue *queue, uint32_t *value)
{
    uint64_t addr = (uintptr_t)queue->dbrec;

    if (queue->is_far) {
        return gpu_read(addr, value, sizeof(*value));
    }
    if (held_has(addr, sizeof(*value))) {
        memory_take(addr, value, sizeof(*value));
        return true;
    }
    return memory_read(addr, value, sizeof(*value), NULL);
}

/* -- pages and queues, under the HCA's lock ---------------------------------------------------- */

static unsigned watch_count(const struct hv_hca *hca)
{
    unsigned num = 0;

    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        num += ((struct watch_page *)hca->doorbell_pages->pdata[i])->queues->len;
    }
    return num;
}

static struct watch_page *watch_find_page(struct hv_hca *hca, uint32_t uarn)
{
    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        struct watch_page *page = hca->doorbell_pages->pdata[i];

        if (page->uarn == uarn) {
            return page;
        }
    }
    return NULL;
}

static struct watch_page *watch_make_page(struct hv_context *ctx, uint32_t uarn)
{
    struct watch_page *page = watch_find_page(ctx->hca, uarn);
    uint64_t *registers = page ? NULL : watch_map(ctx, uarn);

    if (page || !registers) {
        return page;
    }
    page = g_new0(struct watch_page, 1);
    page->uarn = uarn;
    page->registers = registers;
    page->queues = g_array_new(FALSE, FALSE, sizeof(struct watch_queue));
    g_ptr_array_add(ctx->hca->doorbell_pages, page);
    return page;
}

static void watch_free_page(struct watch_page *page)
{
    watch_unmap(page->registers);
    watch_unmap(page->told);
    for (guint i = 0; i < page->queues->len; i++) {
        g_free(g_array_index(page->queues, struct watch_queue, i).unheard);
    }
    g_array_free(page->queues, TRUE);
    g_free(page);
}

/* The index of the owner's queue in the page's array. The array's length: it has none. */
static guint watch_index(const struct watch_page *page, const void *owner)
{
    guint i = 0;

    while (i < page->queues->len &&
           g_array_index(page->queues, struct watch_queue, i).owner != owner) {
        i++;
    }
    return i;
}

/* -- functions for the library ----------------------------------------------------------------- */

void *hv_uar_mmap(struct hv_context *ctx, uint32_t uarn)
{
    void *page;

    local_lock_scan(ctx->hca->local);
    page = watch_make_page(ctx, uarn) ? watch_map(ctx, uarn) : NULL;
    local_unlock_scan(ctx->hca->local, watch_count(ctx->hca));
    return page;
}

void *hv_watch_uar(struct hv_context *ctx, uint32_t uarn)
{
    struct watch_page *page;
    void *told = NULL;

    if (!hv_is_ours(ctx->hca)) {
        errno = EIO;
        return NULL;
    }
    local_lock_scan(ctx->hca->local);
    page = watch_make_page(ctx, uarn);
    if (page) {
        page->told = page->told ? page->told : watch_map(ctx, uarn);
        told = page->told;
    }
    local_unlock_scan(ctx->hca->local, watch_count(ctx->hca));
    return told;
}

void hv_watch_forget_uar(struct hv_hca *hca, uint32_t uarn)
{
    struct watch_page *page;

    if (!hv_is_ours(hca)) {
        return;
    }
    local_lock_scan(hca->local);
    page = watch_find_page(hca, uarn);
    if (page) {
        g_ptr_array_remove_fast(hca->doorbell_pages, page);
        watch_free_page(page);
    }
    local_unlock_scan(hca->local, watch_count(hca));
}

/* Discards doorbells that were stored while the page was not scanned: they were for queues that do
 * not exist any more. */
static void watch_clear(struct watch_page *page)
{
    for (size_t i = 0; i < PCI_PAGE / sizeof(*page->registers); i++) {
        __atomic_store_n(&page->registers[i], NO_DOORBELL, __ATOMIC_RELAXED);
    }
}

int hv_watch_queue(struct hv_context *ctx, const void *owner, enum hv_watch_kind kind, uint32_t num,
                   uint32_t uarn, const uint32_t *dbrec)
{
    struct watch_queue queue = {.owner = owner, .kind = kind, .num = num, .dbrec = dbrec};
    struct watch_page *page;
    int err = 0;

    if (!hv_is_ours(ctx->hca)) {
        return EIO;
    }
    local_lock_scan(ctx->hca->local);
    page = watch_make_page(ctx, uarn);
    if (!page) {
        err = errno;
    } else if (watch_index(page, owner) == page->queues->len) {
        if (page->queues->len == 0) {
            watch_clear(page);
        }
        queue.is_far = dbrec && gpu_has((uintptr_t)dbrec);
        queue.was_seen = dbrec && !queue.is_far && watch_read_record(&queue, &queue.seen);
        queue.dbrec = queue.is_far || queue.was_seen ? dbrec : NULL;
        g_array_append_val(page->queues, queue);
    }
    local_unlock_scan(ctx->hca->local, watch_count(ctx->hca));
    return err;
}

/* The owner's queue without record and its page. NULL: there is none. */
static struct watch_queue *watch_find_no_record(struct hv_hca *hca, const void *owner,
                                                struct watch_page **page)
{
    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        guint at;

        *page = hca->doorbell_pages->pdata[i];
        at = watch_index(*page, owner);
        if (at < (*page)->queues->len) {
            struct watch_queue *queue = &g_array_index((*page)->queues, struct watch_queue, at);

            return queue->kind == HV_WATCH_SQ_NO_RECORD ? queue : NULL;
        }
    }
    return NULL;
}

void hv_watch_ring(struct hv_hca *hca, const void *owner, uint32_t qpn, const void *ring,
                   unsigned log_size)
{
    struct watch_page *page;
    struct watch_queue *queue;

    local_lock_scan(hca->local);
    queue = watch_find_no_record(hca, owner, &page);
    if (queue && !queue->unheard) {
        queue->unheard = g_new0(struct unheard, 1);
        queue->unheard->qpn = qpn;
        queue->unheard->ring = (uintptr_t)ring;
        queue->unheard->log_size = log_size;
        unheard_begin(queue->unheard);
        page->unheard++;
    }
    local_unlock_scan(hca->local, watch_count(hca));
}

void hv_watch_reset(struct hv_hca *hca, const void *owner)
{
    struct watch_page *page;
    struct watch_queue *queue;

    if (!hv_is_ours(hca) || !local_is_watched(hca->local)) {
        return;
    }
    local_lock_scan(hca->local);
    queue = watch_find_no_record(hca, owner, &page);
    if (queue && queue->unheard) {
        unheard_begin(queue->unheard);
    }
    local_unlock_scan(hca->local, watch_count(hca));
}

void hv_watch_forget(struct hv_hca *hca, const void *owner)
{
    if (!hv_is_ours(hca) || !local_is_watched(hca->local)) {
        return;
    }
    local_lock_scan(hca->local);
    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        struct watch_page *page = hca->doorbell_pages->pdata[i];
        guint at = watch_index(page, owner);
        struct unheard *unheard;

        if (at == page->queues->len) {
            continue;
        }
        unheard = g_array_index(page->queues, struct watch_queue, at).unheard;
        page->unheard -= !!unheard;
        g_free(unheard);
        g_array_remove_index_fast(page->queues, at);
    }
    local_unlock_scan(hca->local, watch_count(hca));
}

void hv_watch_free(struct hv_hca *hca)
{
    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        watch_free_page(hca->doorbell_pages->pdata[i]);
    }
    g_ptr_array_free(hca->doorbell_pages, TRUE);
}

/* -- scanning ---------------------------------------------------------------------------------- */

/* The doorbells that one scan found on a page. */
struct watch_found {
    uint64_t armed;                     /* the doorbell that armed a CQ, or NO_DOORBELL */
    unsigned sends;                     /* send doorbells */
    uint32_t sender[PCI_PAGE / BF_BUF]; /* their queues */
};

static void watch_ring(struct hv_hca *hca, const struct watch_page *page, uint32_t reg,
                       uint64_t doorbell, hv_ring_fn *ring)
{
    ring(hca, (uint64_t)page->uarn * PCI_PAGE + reg, doorbell);
}

static void watch_ring_counter(struct hv_hca *hca, const struct watch_page *page, uint32_t reg,
                               uint32_t qpn, uint16_t counter, hv_ring_fn *ring)
{
    watch_ring(hca, page, reg, (uint64_t)counter << 40 | (uint64_t)qpn << 8, ring);
}

/* Rings the doorbell that was stored to a register. Returns it as two dwords, or NO_DOORBELL. */
static uint64_t watch_look_at_register(struct hv_hca *hca, struct watch_page *page, uint32_t reg,
                                       hv_ring_fn *ring)
{
    uint64_t *at = &page->registers[reg / sizeof(*at)], stored, doorbell;

    if (__atomic_load_n(at, __ATOMIC_RELAXED) == NO_DOORBELL) {
        /* only reading takes no cache line away from a thread that stores there */
        return NO_DOORBELL;
    }
    /* in a build that is not optimized, the macro looks at its argument eight times */
    stored = __atomic_exchange_n(at, NO_DOORBELL, __ATOMIC_SEQ_CST);
    doorbell = GUINT64_FROM_BE(stored);
    watch_ring(hca, page, reg, doorbell, ring);
    return doorbell;
}

static void watch_look_at_sends(struct hv_hca *hca, struct watch_page *page, uint32_t reg,
                                struct watch_found *found, hv_ring_fn *ring)
{
    uint64_t doorbell = watch_look_at_register(hca, page, reg, ring);

    if (doorbell != NO_DOORBELL) {
        found->sender[found->sends++] = doorbell >> 8 & 0xffffff;
    }
}

/* Whether a doorbell of this queue was found. */
static bool watch_was_found(const struct watch_queue *queue, const struct watch_found *found)
{
    if (queue->kind == HV_WATCH_CQ) {
        return found->armed && (found->armed & 0xffffff) == queue->num;
    }
    for (unsigned i = 0; i < found->sends; i++) {
        if (found->sender[i] == queue->num) {
            return true;
        }
    }
    return false;
}

/* Whether a record in memory of a GPU may tell of a doorbell that was lost. */
static bool watch_may_have_lost(struct watch_queue *queue, const struct watch_found *found)
{
    if (watch_was_found(queue, found)) {
        queue->was_seen = false; /* the device reads the record itself */
        return false;
    }
    return queue->kind == HV_WATCH_CQ ? found->armed : found->sends;
}

/* Rings a queue whose record has changed. True: it rang. */
static bool watch_look_at_record(struct hv_hca *hca, const struct watch_page *page,
                                 struct watch_queue *queue, const struct watch_found *found,
                                 hv_ring_fn *ring)
{
    bool cq = queue->kind == HV_WATCH_CQ;
    uint32_t now, value;

    if (cq && watch_was_found(queue, found)) {
        queue->rung = true;
    }
    if (!queue->dbrec || (queue->is_far && !watch_may_have_lost(queue, found))) {
        return false;
    }
    if (!watch_read_record(queue, &now)) {
        queue->dbrec = NULL;
        return false;
    }
    if (queue->was_seen && now == queue->seen && !(cq && found->armed && !queue->rung)) {
        return false;
    }
    queue->seen = now;
    queue->was_seen = queue->rung = true;
    value = GUINT32_FROM_BE(now);
    if (cq) {
        watch_ring(hca, page, PRM_OFFSET(uar, cq_db), (uint64_t)value << 32 | queue->num, ring);
    } else {
        watch_ring_counter(hca, page, PRM_OFFSET(uar, blue_flame), queue->num, (uint16_t)value,
                           ring);
    }
    return true;
}

/* Takes the doorbell that was found at the register of queues without record, of this queue or of
 * another one, whose doorbell may have hidden one of this queue; and, if it is time, rings the one
 * that was lost there. True: it did. */
static bool watch_look_at_ring(struct hv_hca *hca, const struct watch_page *page,
                               struct unheard *unheard, uint64_t found, uint64_t now_ns,
                               hv_ring_fn *ring)
{
    if (found != NO_DOORBELL) {
        unheard_tell(unheard,
                     (found >> 8 & 0xffffff) == unheard->qpn ? uar_told_counter(found)
                                                             : unheard->told,
                     now_ns);
    }
    if (!unheard_look(unheard, now_ns)) {
        return false;
    }
    hv_say(hca,
           "QP 0x%x has no doorbell record, and a doorbell of it was lost: its WQEs up to counter "
           "%u count as posted",
           unheard->qpn, unheard->told);
    watch_ring_counter(hca, page, PRM_OFFSET(uar, send_db_no_dbr), unheard->qpn, unheard->told,
                       ring);
    return true;
}

static bool watch_look_at_page(struct hv_hca *hca, struct watch_page *page, bool records,
                               uint64_t now_ns, hv_ring_fn *ring)
{
    struct watch_found found = {0};
    uint64_t no_record = watch_look_at_register(hca, page, PRM_OFFSET(uar, send_db_no_dbr), ring);
    bool rang;

    found.armed = watch_look_at_register(hca, page, PRM_OFFSET(uar, cq_db), ring);
    for (uint32_t reg = PRM_OFFSET(uar, blue_flame); reg < PCI_PAGE; reg += BF_BUF) {
        watch_look_at_sends(hca, page, reg, &found, ring);
    }
    rang = found.armed != NO_DOORBELL || found.sends || no_record != NO_DOORBELL;
    for (guint i = 0; page->unheard && i < page->queues->len; i++) {
        struct unheard *unheard = g_array_index(page->queues, struct watch_queue, i).unheard;

        rang |= unheard && watch_look_at_ring(hca, page, unheard, no_record, now_ns, ring);
    }
    if (rang || records) {
        for (guint i = 0; i < page->queues->len; i++) {
            rang |= watch_look_at_record(
                hca, page, &g_array_index(page->queues, struct watch_queue, i), &found, ring);
        }
    }
    return rang;
}

bool hv_watch_scan(struct hv_hca *hca, uint64_t now_ns, hv_ring_fn *ring)
{
    /* A queue whose program only writes records is not rung at each scan, because a card would not
     * notice it either. */
    bool any = false, records = hca->doorbell_looks++ % RECORD_LOOKS == 0;

    for (guint i = 0; i < hca->doorbell_pages->len; i++) {
        struct watch_page *page = hca->doorbell_pages->pdata[i];

        if (page->queues->len) {
            any |= watch_look_at_page(hca, page, records, now_ns, ring);
        }
    }
    return any;
}
