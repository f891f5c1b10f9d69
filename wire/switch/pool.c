/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements pool.h. */
#include "wire/switch/pool.h"
#include "wire/port.h"

#include <glib.h>
#include <sys/mman.h>

enum {
    POOL_FEW = 64,              /* frames that any buffer has room for */
    POOL_ENTRIES_PER_FRAME = 8, /* a unicast frame needs one, a flooded frame one for each port */
    POOL_PLACE = WIRE_FRAME_MAX,
};

void pool_init(struct pool *pool, size_t bytes, unsigned ports)
{
    size_t num = MIN(MAX(bytes / POOL_PLACE, POOL_FEW), UINT32_MAX / 16);

    *pool = (struct pool){.num_frames = (uint32_t)num};
    pool->num_entries = pool->num_frames * POOL_ENTRIES_PER_FRAME + ports * 4;
    pool->frames = g_new0(struct pool_frame, pool->num_frames);
    pool->entries = g_new0(struct pool_entry, pool->num_entries);
    pool->bytes = mmap(NULL, num * POOL_PLACE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->bytes == MAP_FAILED) {
        g_error("no memory for %zu frames of %d bytes", num, POOL_PLACE);
    }
    for (uint32_t i = 0; i < pool->num_frames; i++) {
        pool->frames[i].users = i + 1 < pool->num_frames ? i + 1 : POOL_NONE;
    }
    for (uint32_t i = 0; i < pool->num_entries; i++) {
        pool->entries[i].next = i + 1 < pool->num_entries ? i + 1 : POOL_NONE;
    }
    pool->free_frames = pool->num_frames;
    pool->free_entries = pool->num_entries;
}

void pool_clear(struct pool *pool)
{
    munmap(pool->bytes, (size_t)pool->num_frames * POOL_PLACE);
    g_free(pool->frames);
    g_free(pool->entries);
}

uint32_t pool_take_frame(struct pool *pool)
{
    uint32_t frame = pool->first_frame;

    if (frame != POOL_NONE) {
        pool->first_frame = pool->frames[frame].users;
        pool->frames[frame].users = 0;
        pool->free_frames--;
    }
    return frame;
}

void pool_free_frame(struct pool *pool, uint32_t frame)
{
    pool->frames[frame].users = pool->first_frame;
    pool->first_frame = frame;
    pool->free_frames++;
}

uint32_t pool_take_entry(struct pool *pool)
{
    uint32_t entry = pool->first_entry;

    if (entry != POOL_NONE) {
        pool->first_entry = pool->entries[entry].next;
        pool->free_entries--;
    }
    return entry;
}

void pool_free_entry(struct pool *pool, uint32_t entry)
{
    pool->entries[entry].next = pool->first_entry;
    pool->first_entry = entry;
    pool->free_entries++;
}

uint8_t *pool_bytes(const struct pool *pool, uint32_t frame)
{
    return pool->bytes + (size_t)frame * POOL_PLACE;
}

void pool_queue_init(struct pool_queue *queue)
{
    *queue = (struct pool_queue){.head = POOL_NONE, .tail = POOL_NONE};
}

void pool_push(struct pool *pool, struct pool_queue *queue, uint32_t entry)
{
    pool->entries[entry].next = POOL_NONE;
    if (queue->head == POOL_NONE) {
        queue->head = entry;
    } else {
        pool->entries[queue->tail].next = entry;
    }
    queue->tail = entry;
    queue->frames++;
    queue->bytes += pool->frames[pool->entries[entry].frame].len;
}

uint32_t pool_pop(struct pool *pool, struct pool_queue *queue)
{
    uint32_t entry = queue->head;

    queue->head = pool->entries[entry].next;
    if (queue->head == POOL_NONE) {
        queue->tail = POOL_NONE;
    }
    queue->frames--;
    queue->bytes -= pool->frames[pool->entries[entry].frame].len;
    return entry;
}
