/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbered objects: a two-level table whose lower level appears on use. */
#include <glib.h>
#include "model/obj.h"

static uint32_t chunk_count(const struct obj_table *table)
{
    return (table->end + OBJ_CHUNK - 1) / OBJ_CHUNK;
}

void obj_table_init(struct obj_table *table, uint32_t first, uint32_t end)
{
    g_assert(first < end && end <= 1 << 24);
    table->first = first;
    table->end = end;
    table->next = first;
    table->count = 0;
    table->chunks = g_new0(struct obj **, chunk_count(table));
}

void obj_table_clear(struct obj_table *table)
{
    g_assert(table->count == 0);
    for (uint32_t i = 0; table->chunks && i < chunk_count(table); i++) {
        g_free(table->chunks[i]);
    }
    g_free(table->chunks);
    table->chunks = NULL;
    table->end = 0;
}

bool obj_insert_at(struct obj_table *table, struct obj *obj, uint32_t num)
{
    struct obj ***chunk;

    if (num < table->first || num >= table->end || obj_find(table, num)) {
        return false;
    }
    chunk = &table->chunks[num / OBJ_CHUNK];
    if (!*chunk) {
        *chunk = g_new0(struct obj *, OBJ_CHUNK);
    }
    (*chunk)[num % OBJ_CHUNK] = obj;
    obj->num = num;
    table->count++;
    return true;
}

bool obj_insert(struct obj_table *table, struct obj *obj)
{
    uint32_t span = table->end - table->first;

    if (table->count >= span) {
        return false;
    }
    for (uint32_t i = 0; i < span; i++) {
        uint32_t num = table->next;

        table->next = num + 1 < table->end ? num + 1 : table->first;
        if (obj_insert_at(table, obj, num)) {
            return true;
        }
    }
    return false;
}

void obj_remove(struct obj_table *table, struct obj *obj)
{
    g_assert(obj_find(table, obj->num) == obj);
    table->chunks[obj->num / OBJ_CHUNK][obj->num % OBJ_CHUNK] = NULL;
    table->count--;
}

struct obj *obj_next(const struct obj_table *table, uint32_t num)
{
    while (num < table->end) {
        struct obj **chunk = table->chunks[num / OBJ_CHUNK];

        if (!chunk) {
            num = (num / OBJ_CHUNK + 1) * OBJ_CHUNK;
        } else if (chunk[num % OBJ_CHUNK]) {
            return chunk[num % OBJ_CHUNK];
        } else {
            num++;
        }
    }
    return NULL;
}
