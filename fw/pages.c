/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the ledger of the host pages that the function owns.
 *
 * A real device keeps contexts and translation entries in host memory, which the driver gives to it
 * in pages of 4 KiB: some at boot, some before INIT_HCA, and more as objects are created. The model
 * keeps its objects elsewhere, but charges for them as the device would (hca->icm,
 * model/core/ledger.h). Every object takes the size of its context; a QP also takes what the model
 * keeps for its queues. The number of pages in use changes accordingly. When free pages run short,
 * or too many are idle, one PAGE_REQUEST event (pages_req_event) requests or offers a batch of
 * pages. Only one request is under way at a time. A create command that finds no room left fails.
 * Pages are never read or written.
 *
 * After TEARDOWN_HCA, and before INIT_HCA, every page may be taken back; then the driver has all
 * its pages again.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/fw_internal.h"
#include "model/queue/eq.h"

#define PAGE_SHIFT  12
#define PAGE_BYTES  (1u << PAGE_SHIFT)

#define BOOT_PAGES  16   /* requested at boot */
#define INIT_PAGES  1024 /* requested before INIT_HCA */
#define LOW_PAGES   512  /* if fewer are free, a batch is requested */
#define BATCH_PAGES 1024 /* in one request or offer */

/* 4 GiB: more than a guest of this size could reasonably give. */
#define MAX_OWNED (1u << 20)

/* Memory of this process that an owned page takes, in the list and in a hash table, in bytes. */
#define OWNED_COST (LEDGER_SET_ENTRY + 2 * sizeof(uint64_t))

static uint64_t pages_load_pa(const uint8_t *pas, uint32_t i)
{
    uint64_t pa;

    memcpy(&pa, pas + (size_t)i * sizeof(pa), sizeof(pa));
    return GUINT64_FROM_BE(pa);
}

static void pages_store_pa(uint8_t *pas, uint32_t i, uint64_t pa)
{
    pa = GUINT64_TO_BE(pa);
    memcpy(pas + (size_t)i * sizeof(pa), &pa, sizeof(pa));
}

static uint32_t pages_owned(const struct fw *fw)
{
    return fw->pages.list->len;
}

/* Pages that boot and the present objects take. The other owned pages are free. */
static uint32_t pages_in_use(const struct fw *fw)
{
    return BOOT_PAGES + (uint32_t)((fw->hca.icm.used + PAGE_BYTES - 1) >> PAGE_SHIFT);
}

/* Limits the objects' memory to the owned pages. */
static void pages_set_limit(struct fw *fw)
{
    uint64_t have = pages_owned(fw);

    fw->hca.icm.limit = have > BOOT_PAGES ? (have - BOOT_PAGES) << PAGE_SHIFT : 0;
}

uint32_t pages_wanted_boot(const struct fw *fw)
{
    uint32_t have = pages_owned(fw);

    return BOOT_PAGES > have ? BOOT_PAGES - have : 0;
}

uint32_t pages_wanted_init(const struct fw *fw)
{
    uint32_t have = pages_owned(fw), need = BOOT_PAGES + INIT_PAGES;

    return need > have ? need - have : 0;
}

int32_t pages_wanted_regular(const struct fw *fw)
{
    int64_t idle = (int64_t)pages_owned(fw) - pages_in_use(fw);

    if (idle < LOW_PAGES) {
        return BATCH_PAGES;
    }
    /* The pages that INIT_HCA requested are kept. Of the others, a batch is offered only if two
     * batches stay idle. */
    if (pages_owned(fw) >= BOOT_PAGES + INIT_PAGES + BATCH_PAGES &&
        idle >= LOW_PAGES + 3 * BATCH_PAGES) {
        return -BATCH_PAGES;
    }
    return 0;
}

/*
 * Finds the hash table of a page, and its *key there. The key is a permutation of the page's
 * number. A guest chooses the numbers, but does not know the permutation. So it can neither make
 * all its pages collide in a hash table, nor make all hash tables grow at once.
 */
static GHashTable *pages_set_of(struct fw *fw, uint64_t frame, gpointer *key)
{
    uint64_t x = frame * fw->pages.secret;

    x = (x ^ x >> 32) * fw->pages.secret;
    x ^= x >> 29;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    *key = GSIZE_TO_POINTER(x);
    return fw->pages.sets[x >> (64 - FW_LOG_PAGE_SETS)];
}

static enum syn pages_own(struct fw *fw, uint64_t pa)
{
    uint64_t frame = pa >> PAGE_SHIFT;
    gpointer key;
    GHashTable *set = pages_set_of(fw, frame, &key);

    if (!ledger_take(&fw->hca.memory, OWNED_COST)) {
        return SYN_NO_MEMORY;
    }
    if (pa == 0 || (pa & (PAGE_BYTES - 1)) || !g_hash_table_add(set, key)) {
        ledger_give(&fw->hca.memory, OWNED_COST);
        return SYN_BAD_PAGE;
    }
    g_array_append_val(fw->pages.list, frame);
    return SYN_OK;
}

/* Gives up the page that was given last. */
static uint64_t pages_disown(struct fw *fw)
{
    uint64_t frame = g_array_index(fw->pages.list, uint64_t, pages_owned(fw) - 1);
    gpointer key;
    GHashTable *set = pages_set_of(fw, frame, &key);

    g_array_set_size(fw->pages.list, pages_owned(fw) - 1);
    g_hash_table_remove(set, key);
    ledger_give(&fw->hca.memory, OWNED_COST);
    return frame;
}

/* Called after a page was given or taken, which costs one piece. Returns whether the turn is used
 * up. */
static bool pages_is_over(struct fw *fw)
{
    hca_spend(&fw->hca, 1);
    return !hca_may_go_on(&fw->hca);
}

enum syn pages_give(struct fw *fw, const uint8_t *pas, uint32_t n, struct pages_progress *at)
{
    uint32_t before = pages_owned(fw) - at->done;

    if (n > MAX_OWNED || before > MAX_OWNED - n) {
        return SYN_LIMIT;
    }
    while (at->why == SYN_OK && at->done < n) {
        at->why = pages_own(fw, pages_load_pa(pas, at->done));
        at->done += at->why == SYN_OK;
        if (pages_is_over(fw)) {
            return SYN_AGAIN;
        }
    }
    if (at->why != SYN_OK) {
        while (at->done) {
            pages_disown(fw);
            at->done--;
            if (pages_is_over(fw)) {
                return SYN_AGAIN;
            }
        }
        return at->why;
    }
    pages_set_limit(fw);
    if (fw->pages.asked > 0) {
        fw->pages.asked = 0;
    }
    return SYN_OK;
}

void pages_cant_give(struct fw *fw)
{
    hca_log(&fw->hca, HCA_LOG_INFO, "the host has no pages to give");
    fw->pages.asked = 0;
    fw->pages.refused = true;
}

/* How many pages the function can give back. */
static uint32_t pages_spare(const struct fw *fw)
{
    uint32_t keep;

    if (fw->state != CMD_READY) {
        return pages_owned(fw);
    }
    keep = MAX(pages_in_use(fw) + LOW_PAGES, BOOT_PAGES + INIT_PAGES);
    return pages_owned(fw) > keep ? pages_owned(fw) - keep : 0;
}

enum syn pages_take(struct fw *fw, uint8_t *pas, uint32_t n, struct pages_progress *at)
{
    if (!at->begun) {
        at->begun = true;
        at->n = MIN(n, pages_spare(fw));
    }
    while (at->done < at->n) {
        pages_store_pa(pas, at->done, pages_disown(fw) << PAGE_SHIFT);
        at->done++;
        if (pages_is_over(fw)) {
            return SYN_AGAIN;
        }
    }
    pages_set_limit(fw);
    if (fw->pages.asked < 0) {
        fw->pages.asked = 0;
    }
    return SYN_OK;
}

void pages_balance(struct fw *fw)
{
    int32_t wanted = pages_wanted_regular(fw);
    struct prm_pages_req_event event[1] = {0};

    if (wanted <= 0) {
        fw->pages.refused = false;
    }
    if (wanted == 0 || fw->pages.asked || fw->pages.refused ||
        (G_UNLIKELY(fw->hca.inject) && inject_pages_wait(fw))) {
        return;
    }
    fw->pages.asked = wanted;
    PRM_SET(pages_req_event, event, num_pages, (uint32_t)wanted);
    eq_async(&fw->hca, PRM_EVENT_TYPE_PAGE_REQUEST, 0, event);
}

void pages_forget_request(struct fw *fw)
{
    fw->pages.asked = 0;
    fw->pages.refused = false;
}

void pages_init(struct fw *fw)
{
    fw->pages.secret = (uint64_t)g_random_int() << 32 | g_random_int() | 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(fw->pages.sets); i++) {
        fw->pages.sets[i] = g_hash_table_new(NULL, NULL);
    }
    fw->pages.list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    pages_set_limit(fw);
}

void pages_clear(struct fw *fw)
{
    ledger_give(&fw->hca.memory, pages_owned(fw) * OWNED_COST);
    for (unsigned i = 0; i < G_N_ELEMENTS(fw->pages.sets); i++) {
        g_hash_table_unref(fw->pages.sets[i]);
    }
    g_array_unref(fw->pages.list);
}

void pages_reset(struct fw *fw)
{
    pages_clear(fw); /* the list may have been large */
    pages_init(fw);
    pages_forget_request(fw);
}
