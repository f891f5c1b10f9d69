/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of host pages that the function owns.
 *
 * A real device keeps contexts and translation entries in host memory which the driver gives it
 * in pages of 4 KiB: some to boot with, some before INIT_HCA, and more as objects are created. The
 * model keeps its objects elsewhere, but accounts for them as the device would: every object has
 * the size of its context, a QP also what the model keeps for its queues, and the pages in use grow
 * and shrink with them: what a guest can make this process keep for QPs is bounded by the pages
 * that it gives. Page lists (model/mem.c) and translation entries (model/mkey.c) have bounds of
 * their own. When free pages
 * run short, or too many lie idle, one PAGE_REQUEST event (pages_req_event) asks for a batch or
 * offers one; there is one request at a time. A create command that finds no room left fails.
 * Pages are never read or written.
 *
 * After TEARDOWN_HCA, and before INIT_HCA, every page may be taken back, which leaves the
 * driver with none.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/fw_internal.h"
#include "model/eq.h"

#define PAGE_SHIFT 12
#define PAGE_BYTES (1u << PAGE_SHIFT)

/* More than a guest of this size could sensibly give: 4 GiB. */
#define MAX_OWNED (1u << 20)

/* Bytes of device memory that one object of a table takes. */
struct table_cost {
    size_t table; /* offset in struct fw */
    uint32_t bytes;
};

static const struct table_cost costs[] = {
    {offsetof(struct fw, hca.qpns), 1024},
    {offsetof(struct fw, hca.cqs), 256},
    {offsetof(struct fw, hca.eqs), 256},
    {offsetof(struct fw, hca.srqs), 512},
    {offsetof(struct fw, hca.mkeys), 128},
    {offsetof(struct fw, hca.tirs), 512},
    {offsetof(struct fw, hca.tiss), 256},
    {offsetof(struct fw, hca.rqts), 512},
    {offsetof(struct fw, hca.flow_counters), 64},
    {offsetof(struct fw, hca.modify_headers), 256},
    {offsetof(struct fw, hca.reformats), 256},
    {offsetof(struct fw, hca.q_counters), 512},
    {offsetof(struct fw, umems), 256},
    {offsetof(struct fw, uctxs), 256},
};

/* Commands that make an object grow one of these tables. */
static const uint16_t creators[] = {
    PRM_CMD_OP_CREATE_QP,
    PRM_CMD_OP_CREATE_SQ,
    PRM_CMD_OP_CREATE_RQ,
    PRM_CMD_OP_CREATE_CQ,
    PRM_CMD_OP_CREATE_EQ,
    PRM_CMD_OP_CREATE_SRQ,
    PRM_CMD_OP_CREATE_XRC_SRQ,
    PRM_CMD_OP_CREATE_RMP,
    PRM_CMD_OP_CREATE_MKEY,
    PRM_CMD_OP_CREATE_TIR,
    PRM_CMD_OP_CREATE_TIS,
    PRM_CMD_OP_CREATE_RQT,
    PRM_CMD_OP_ALLOC_FLOW_COUNTER,
    PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT,
    PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT,
    PRM_CMD_OP_ALLOC_Q_COUNTER,
    PRM_CMD_OP_CREATE_UMEM,
    PRM_CMD_OP_CREATE_UCTX,
};

static uint64_t load_pa(const uint8_t *pas, uint32_t i)
{
    uint64_t pa;

    memcpy(&pa, pas + (size_t)i * sizeof(pa), sizeof(pa));
    return GUINT64_FROM_BE(pa);
}

static void store_pa(uint8_t *pas, uint32_t i, uint64_t pa)
{
    pa = GUINT64_TO_BE(pa);
    memcpy(pas + (size_t)i * sizeof(pa), &pa, sizeof(pa));
}

static uint32_t owned(const struct fw *fw)
{
    return g_hash_table_size(fw->pages.owned);
}

/* Pages that boot and the objects of now take; the rest of those owned are free. */
static uint32_t in_use(const struct fw *fw)
{
    uint64_t bytes = fw->hca.qp_bytes;

    for (size_t i = 0; i < G_N_ELEMENTS(costs); i++) {
        const struct obj_table *t = (const void *)((const uint8_t *)fw + costs[i].table);

        bytes += (uint64_t)t->count * costs[i].bytes;
    }
    return fw->profile->boot_pages + (uint32_t)((bytes + PAGE_BYTES - 1) >> PAGE_SHIFT);
}

uint32_t pages_wanted_boot(const struct fw *fw)
{
    uint32_t have = owned(fw);

    return fw->profile->boot_pages > have ? fw->profile->boot_pages - have : 0;
}

uint32_t pages_wanted_init(const struct fw *fw)
{
    uint32_t have = owned(fw), need = fw->profile->boot_pages + fw->profile->init_pages;

    return need > have ? need - have : 0;
}

int32_t pages_wanted_regular(const struct fw *fw)
{
    const struct fw_profile *p = fw->profile;
    int64_t idle = (int64_t)owned(fw) - in_use(fw);

    if (idle < p->low_pages) {
        return (int32_t)p->batch_pages;
    }
    /* What INIT_HCA asked for stays; of the rest, as much as leaves two batches idle. */
    if (owned(fw) >= p->boot_pages + p->init_pages + p->batch_pages &&
        idle >= (int64_t)p->low_pages + 3 * (int64_t)p->batch_pages) {
        return -(int32_t)p->batch_pages;
    }
    return 0;
}

bool pages_have_room(const struct fw *fw, uint16_t opcode)
{
    for (size_t i = 0; i < G_N_ELEMENTS(creators); i++) {
        if (creators[i] == opcode) {
            return in_use(fw) < owned(fw);
        }
    }
    return true;
}

enum syn pages_give(struct fw *fw, const uint8_t *pas, uint32_t n)
{
    uint32_t i;

    if (n > MAX_OWNED || owned(fw) > MAX_OWNED - n) {
        return SYN_LIMIT;
    }
    for (i = 0; i < n; i++) {
        uint64_t pa = load_pa(pas, i);

        if (pa == 0 || (pa & (PAGE_BYTES - 1)) ||
            !g_hash_table_add(fw->pages.owned, GSIZE_TO_POINTER(pa >> PAGE_SHIFT))) {
            break;
        }
    }
    if (i < n) {
        while (i--) {
            uint64_t pa = load_pa(pas, i);

            g_hash_table_remove(fw->pages.owned, GSIZE_TO_POINTER(pa >> PAGE_SHIFT));
        }
        return SYN_BAD_PAGE;
    }
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

/* How many pages the function can do without. */
static uint32_t spare(const struct fw *fw)
{
    uint32_t keep;

    if (fw->state != CMD_READY) {
        return owned(fw);
    }
    keep =
        MAX(in_use(fw) + fw->profile->low_pages, fw->profile->boot_pages + fw->profile->init_pages);
    return owned(fw) > keep ? owned(fw) - keep : 0;
}

uint32_t pages_take(struct fw *fw, uint8_t *pas, uint32_t n)
{
    uint32_t given = 0;
    GHashTableIter iter;
    gpointer frame;

    n = MIN(n, spare(fw));
    g_hash_table_iter_init(&iter, fw->pages.owned);
    while (given < n && g_hash_table_iter_next(&iter, &frame, NULL)) {
        store_pa(pas, given, (uint64_t)GPOINTER_TO_SIZE(frame) << PAGE_SHIFT);
        g_hash_table_iter_remove(&iter);
        given++;
    }
    if (fw->pages.asked < 0) {
        fw->pages.asked = 0;
    }
    return given;
}

void pages_balance(struct fw *fw)
{
    int32_t wanted = pages_wanted_regular(fw);
    uint8_t event[EQE_DATA_LEN] = {0};

    if (wanted <= 0) {
        fw->pages.refused = false;
    }
    if (wanted == 0 || fw->pages.asked || fw->pages.refused) {
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
    fw->pages.owned = g_hash_table_new(NULL, NULL);
}

void pages_clear(struct fw *fw)
{
    g_hash_table_unref(fw->pages.owned);
}

void pages_reset(struct fw *fw)
{
    g_hash_table_remove_all(fw->pages.owned);
    pages_forget_request(fw);
}
