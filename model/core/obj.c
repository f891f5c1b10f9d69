/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements numbered objects: a two-level table. A chunk of the lower level exists only while it
 * is used. */
#include <glib.h>
#include "model/core/obj_class.h"

#define WORD_BITS 64

static uint32_t obj_chunk_count(const struct obj_table *table)
{
    return (table->end + OBJ_CHUNK - 1) / OBJ_CHUNK;
}

static void obj_bit_put(uint64_t *words, uint32_t bit, bool value)
{
    uint64_t mask = 1ull << bit % WORD_BITS;

    words[bit / WORD_BITS] = value ? words[bit / WORD_BITS] | mask : words[bit / WORD_BITS] & ~mask;
}

/* The first bit at or after from that equals value. Returns end if there is none before end. */
static uint32_t obj_bit_find(struct obj_table *table, const uint64_t *words, bool value,
                             uint32_t from, uint32_t end)
{
    while (from < end) {
        uint64_t word = value ? words[from / WORD_BITS] : ~words[from / WORD_BITS];

        table->steps++;
        word &= UINT64_MAX << from % WORD_BITS;
        if (word) {
            return MIN(from / WORD_BITS * WORD_BITS + (uint32_t)__builtin_ctzll(word), end);
        }
        from = (from / WORD_BITS + 1) * WORD_BITS;
    }
    return end;
}

void obj_table_init(struct obj_table *table, struct ledger *ledger, uint32_t first, uint32_t end)
{
    uint32_t words;

    g_assert(first < end && end <= 1 << 24);
    *table = (struct obj_table){.ledger = ledger, .first = first, .end = end};
    table->start = table->next = first;
    words = (obj_chunk_count(table) + WORD_BITS - 1) / WORD_BITS;
    table->chunks = g_new0(struct obj_chunk *, obj_chunk_count(table));
    table->some = g_new0(uint64_t, words);
    table->full = g_new0(uint64_t, words);
}

static void obj_chunk_free(struct obj_table *table, uint32_t index)
{
    ledger_free(table->ledger, table->chunks[index], sizeof(struct obj_chunk));
    table->chunks[index] = NULL;
}

void obj_table_reset(struct obj_table *table)
{
    g_assert(table->count == 0);
    obj_chunk_free(table, table->next / OBJ_CHUNK); /* the chunk that may exist without objects */
    table->next = table->start;
    table->next_reserved = 0;
}

void obj_table_start(struct obj_table *table, uint32_t num)
{
    obj_table_reset(table);
    table->start = table->next = table->first + num % (table->end - table->first);
}

void obj_table_clear(struct obj_table *table)
{
    obj_table_reset(table);
    g_clear_pointer(&table->chunks, g_free);
    g_clear_pointer(&table->some, g_free);
    g_clear_pointer(&table->full, g_free);
    table->end = 0;
}

/* How many numbers a chunk has: the first and the last chunk may have fewer than OBJ_CHUNK. */
static uint32_t obj_chunk_room(const struct obj_table *table, uint32_t index)
{
    return MIN(table->end, (index + 1) * OBJ_CHUNK) - MAX(table->first, index * OBJ_CHUNK);
}

/* NULL: the ledger is full. */
static struct obj_chunk *obj_chunk_get(struct obj_table *table, uint32_t index)
{
    if (!table->chunks[index]) {
        table->chunks[index] = ledger_alloc(table->ledger, sizeof(struct obj_chunk));
    }
    return table->chunks[index];
}

static bool obj_slot_is_reserved(const struct obj_chunk *chunk, uint32_t slot)
{
    return chunk->reserved >> slot / WORD_BITS & 1;
}

/* Updates the table after the bits of a chunk have changed. */
static void obj_chunk_changed(struct obj_table *table, uint32_t index)
{
    const struct obj_chunk *chunk = table->chunks[index];

    obj_bit_put(table->some, index, chunk->objects);
    obj_bit_put(table->full, index, chunk->count == obj_chunk_room(table, index));
    if (!chunk->count && index != table->next / OBJ_CHUNK) { /* the chunk of next is needed soon */
        obj_chunk_free(table, index);
    }
}

bool obj_insert_at(struct obj_table *table, struct obj *obj, uint32_t num)
{
    uint32_t index = num / OBJ_CHUNK;
    struct obj_chunk *chunk;

    if (num < table->first || num >= table->end || obj_find(table, num)) {
        return false;
    }
    chunk = obj_chunk_get(table, index);
    if (!chunk) {
        return false;
    }
    chunk->slot[num % OBJ_CHUNK] = obj;
    obj_bit_put(chunk->there, num % OBJ_CHUNK, true);
    chunk->objects++;
    if (!obj_slot_is_reserved(chunk, num % OBJ_CHUNK)) {
        obj_bit_put(chunk->used, num % OBJ_CHUNK, true);
        chunk->count++;
    }
    obj_chunk_changed(table, index);
    obj->num = num;
    table->count++;
    return true;
}

/* The first free number at or after num. Returns the table's end if there is none. */
static uint32_t obj_free_from(struct obj_table *table, uint32_t num)
{
    while (num < table->end) {
        uint32_t index =
            obj_bit_find(table, table->full, false, num / OBJ_CHUNK, obj_chunk_count(table));
        const struct obj_chunk *chunk;
        uint32_t slot;

        if (index == obj_chunk_count(table)) {
            return table->end;
        }
        num = MAX(num, index * OBJ_CHUNK);
        chunk = table->chunks[index];
        slot = chunk ? obj_bit_find(table, chunk->used, false, num % OBJ_CHUNK, OBJ_CHUNK)
                     : num % OBJ_CHUNK;
        num = index * OBJ_CHUNK + slot;
        if (slot < OBJ_CHUNK) {
            break;
        }
    }
    return MIN(num, table->end);
}

bool obj_insert(struct obj_table *table, struct obj *obj)
{
    uint32_t num = obj_free_from(table, table->next);

    if (num == table->end) {
        num = obj_free_from(table, table->first);
    }
    if (!obj_insert_at(table, obj, num)) {
        return false;
    }
    table->next = num + 1 < table->end ? num + 1 : table->first;
    return true;
}

void obj_remove(struct obj_table *table, struct obj *obj)
{
    uint32_t index = obj->num / OBJ_CHUNK;
    struct obj_chunk *chunk = table->chunks[index];

    g_assert(obj_find(table, obj->num) == obj);
    chunk->slot[obj->num % OBJ_CHUNK] = NULL;
    obj_bit_put(chunk->there, obj->num % OBJ_CHUNK, false);
    chunk->objects--;
    table->count--;
    if (!obj_slot_is_reserved(chunk, obj->num % OBJ_CHUNK)) {
        obj_bit_put(chunk->used, obj->num % OBJ_CHUNK, false);
        chunk->count--;
    }
    obj_chunk_changed(table, index);
}

/* -- reserved numbers -------------------------------------------------------------------------- */

#define RESERVED (1u << OBJ_LOG_RESERVED)
G_STATIC_ASSERT(RESERVED == WORD_BITS);
G_STATIC_ASSERT(OBJ_CHUNK / RESERVED <= 16);

/* The first number of a word of RESERVED free numbers, at or after num, which is a multiple of
 * RESERVED. Returns end if there is none. */
static uint32_t obj_free_word(struct obj_table *table, uint32_t num, uint32_t end)
{
    while (num + RESERVED <= end) {
        uint32_t index =
            obj_bit_find(table, table->full, false, num / OBJ_CHUNK, obj_chunk_count(table));
        const struct obj_chunk *chunk;

        num = MAX(num, index * OBJ_CHUNK);
        if (num + RESERVED > end) {
            break;
        }
        chunk = table->chunks[index];
        table->steps++;
        if (!chunk || !chunk->used[num % OBJ_CHUNK / WORD_BITS]) {
            return num;
        }
        num += RESERVED;
    }
    return end;
}

bool obj_reserve(struct obj_table *table, uint32_t *first)
{
    uint32_t least = (table->first + RESERVED - 1) & ~(RESERVED - 1);
    uint32_t num = obj_free_word(table, MAX(table->next_reserved, least), table->end);
    struct obj_chunk *chunk;

    if (num == table->end) {
        num = obj_free_word(table, least, table->end);
    }
    if (num == table->end) {
        return false;
    }
    chunk = obj_chunk_get(table, num / OBJ_CHUNK);
    if (!chunk) {
        return false;
    }
    chunk->used[num % OBJ_CHUNK / WORD_BITS] = UINT64_MAX;
    chunk->reserved |= (uint16_t)(1u << num % OBJ_CHUNK / WORD_BITS);
    chunk->count += RESERVED;
    obj_chunk_changed(table, num / OBJ_CHUNK);
    table->next_reserved = num + RESERVED;
    *first = num;
    return true;
}

void obj_unreserve(struct obj_table *table, uint32_t first)
{
    uint32_t index = first / OBJ_CHUNK, word = first % OBJ_CHUNK / WORD_BITS;
    struct obj_chunk *chunk = table->chunks[index];

    g_assert(obj_slot_is_reserved(chunk, first % OBJ_CHUNK));
    chunk->reserved &= (uint16_t) ~(1u << word);
    chunk->used[word] = chunk->there[word];
    chunk->count -= RESERVED - (uint32_t)__builtin_popcountll(chunk->there[word]);
    obj_chunk_changed(table, index);
}

struct obj *obj_next(struct obj_table *table, uint32_t num)
{
    while (num < table->end) {
        uint32_t index =
            obj_bit_find(table, table->some, true, num / OBJ_CHUNK, obj_chunk_count(table));
        const struct obj_chunk *chunk;
        uint32_t slot;

        if (index == obj_chunk_count(table)) {
            return NULL;
        }
        num = MAX(num, index * OBJ_CHUNK);
        chunk = table->chunks[index];
        slot = obj_bit_find(table, chunk->there, true, num % OBJ_CHUNK, OBJ_CHUNK);
        if (slot < OBJ_CHUNK) {
            return chunk->slot[slot];
        }
        num = (index + 1) * OBJ_CHUNK;
    }
    return NULL;
}

/* The table of an object's kind. */
static struct obj_table *obj_table_of(struct hca *hca, const struct obj *obj)
{
    return (struct obj_table *)((char *)hca + obj_class(obj)->space);
}

void *obj_make(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size)
{
    struct obj *obj = obj_new(hca, kind, uid, size);

    if (obj && !obj_insert(obj_table_of(hca, obj), obj)) {
        obj_free(hca, obj);
        return NULL;
    }
    return obj;
}

void obj_ref(struct obj *obj, struct obj *target)
{
    if (target) {
        g_assert(obj_class(obj)->names & 1ull << target->kind);
        obj->names++;
        target->refs++;
    }
}

void obj_unref(struct obj *obj, struct obj *target)
{
    if (target) {
        g_assert(obj->names && target->refs);
        obj->names--;
        target->refs--;
    }
}

void obj_end(struct hca *hca, struct obj *obj)
{
    obj_remove(obj_table_of(hca, obj), obj);
    obj_free(hca, obj);
}
