/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the accounts of memory (model/core/ledger.h), and charges each object for its kind. */
#include <sys/mman.h>
#include "model/core/obj_class.h"

/* Blocks of this size or more are mmap()ed separately. An allocator that reuses freed memory would
 * clear such a block all at once, and would give memory back at a time of its choice. */
#define MAPPED_BYTES (1u << 20)
#define PAGE_BYTES   4096u

/* The size of a block in glibc's allocator: a size word before the block, a multiple of 16 bytes,
 * at least 32. */
static uint64_t ledger_block_bytes(uint64_t bytes)
{
    return bytes >= MAPPED_BYTES ? (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1)
                                 : MAX((bytes + 8 + 15) & ~15ull, 32);
}

static void *ledger_mapped(uint64_t bytes)
{
    void *block = mmap(NULL, ledger_block_bytes(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return block == MAP_FAILED ? NULL : block;
}

bool ledger_take(struct ledger *ledger, uint64_t bytes)
{
    if (bytes > ledger->limit || ledger->used > ledger->limit - bytes) {
        return false;
    }
    ledger->used += bytes;
    return true;
}

void ledger_give(struct ledger *ledger, uint64_t bytes)
{
    g_assert(bytes <= ledger->used);
    ledger->used -= bytes;
}

void *ledger_alloc(struct ledger *ledger, uint64_t bytes)
{
    void *block;

    if (!ledger_take(ledger, ledger_block_bytes(bytes))) {
        return NULL;
    }
    block = bytes >= MAPPED_BYTES ? ledger_mapped(bytes)
                                  /* for 0 bytes glib returns NULL */
                                  : g_try_malloc0(MAX(bytes, 1));
    if (!block) {
        ledger_give(ledger, ledger_block_bytes(bytes));
    }
    return block;
}

void ledger_free(struct ledger *ledger, void *block, uint64_t bytes)
{
    if (!block) {
        return;
    }
    ledger_give(ledger, ledger_block_bytes(bytes));
    if (bytes >= MAPPED_BYTES) {
        munmap(block, ledger_block_bytes(bytes));
    } else {
        g_free(block);
    }
}

bool ledger_trim(struct ledger *ledger, void *block, uint64_t *bytes)
{
    /* The remaining block must stay large enough to be recognized as a mapping, even if its owner
     * counts in larger units. */
    if (*bytes < MAPPED_BYTES + 2 * LEDGER_TRIM) {
        return true;
    }
    *bytes = ledger_block_bytes(*bytes) - LEDGER_TRIM;
    munmap((uint8_t *)block + *bytes, LEDGER_TRIM);
    ledger_give(ledger, LEDGER_TRIM);
    return false;
}

void *hca_alloc(struct hca *hca, enum obj_kind kind, size_t size)
{
    void *block;

    if (!ledger_take(&hca->icm, obj_classes[kind].icm)) {
        return NULL;
    }
    if (ledger_take(&hca->memory, obj_classes[kind].host)) {
        block = ledger_alloc(&hca->memory, size);
        if (block) {
            return block;
        }
        ledger_give(&hca->memory, obj_classes[kind].host);
    }
    ledger_give(&hca->icm, obj_classes[kind].icm);
    return NULL;
}

void hca_free(struct hca *hca, enum obj_kind kind, void *block, size_t size)
{
    ledger_free(&hca->memory, block, size);
    ledger_give(&hca->memory, obj_classes[kind].host);
    ledger_give(&hca->icm, obj_classes[kind].icm);
}

void *obj_new(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size)
{
    struct obj *obj = hca_alloc(hca, kind, size);

    if (obj) {
        obj->kind = kind;
        obj->uid = uid;
        obj->size = (uint32_t)size;
    }
    return obj;
}

void obj_free(struct hca *hca, struct obj *obj)
{
    if (obj->refs || obj->names) {
        g_error("%s 0x%x ends, but is named %u times and names %u", obj_class(obj)->name, obj->num,
                obj->refs, obj->names);
    }
    hca_free(hca, obj->kind, obj, obj->size);
}
