/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire/shm/log.h.
 */
#include "wire/shm/log.h"

#include <string.h>

enum {
    MEMORY_STEP = 4 << 10, /* the log's memory grows in steps of this size */
};

struct record {
    uint64_t count; /* of the writer's frames before this one */
    uint16_t len;   /* 0: the next record is at the ring's beginning */
    uint16_t flags; /* enum wire_frame_flags */
    uint32_t reserved;
    uint8_t frame[];
};

static size_t shm_log_record_size(size_t len)
{
    return (sizeof(struct record) + len + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
}

static struct record *shm_log_record_at(const struct shm_segment *seg, unsigned id, uint64_t pos)
{
    return (struct record *)(seg->header->log[id].bytes + pos % SHM_LOG);
}

void shm_log_begin(struct shm_segment *seg)
{
    struct shm_member *self = &seg->header->member[seg->id];

    atomic_store(&self->log_tail, 0);
    atomic_store(&self->log_head, 0);
}

bool shm_log_write(struct shm_segment *seg, struct shm_log_writer *writer, const uint8_t *frame,
                   size_t len, unsigned flags)
{
    struct shm_member *self = &seg->header->member[seg->id];
    uint64_t begin = writer->pos, end;
    size_t size = shm_log_record_size(len);
    bool turns = begin % SHM_LOG + size > SHM_LOG;
    struct record *record;

    if (turns) {
        begin += SHM_LOG - begin % SHM_LOG;
    }
    end = begin + size;
    if (end <= SHM_LOG && end > writer->len) { /* once it wraps, all of it has memory */
        size_t len_now = (end + MEMORY_STEP - 1) / MEMORY_STEP * MEMORY_STEP;

        if (!shm_segment_grow_log(seg, len_now)) {
            return false;
        }
        writer->len = len_now;
    }
    if (end > SHM_LOG) {
        atomic_store_explicit(&self->log_tail, end - SHM_LOG, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
    }
    if (turns) {
        shm_log_record_at(seg, seg->id, writer->pos)->len = 0;
    }
    record = shm_log_record_at(seg, seg->id, begin);
    record->count = writer->count++;
    record->len = (uint16_t)len;
    record->flags = (uint16_t)(flags & WIRE_NO_ICRC);
    memcpy(record->frame, frame, len);
    writer->pos = end;
    atomic_store_explicit(&self->log_head, end, memory_order_release);
    return true;
}

void shm_log_skip(const struct shm_segment *seg, unsigned id, struct shm_log_reader *reader)
{
    struct shm_member *writer = &seg->header->member[id];

    reader->gen = atomic_load(&writer->gen);
    reader->pos = atomic_load(&writer->log_head);
    reader->follows = false;
}

static bool shm_log_is_overwritten(const struct shm_member *writer, uint64_t pos)
{
    return (int64_t)(pos - atomic_load_explicit(&writer->log_tail, memory_order_relaxed)) < 0;
}

/* Copies the record at pos. False: there is no whole record. */
static bool shm_log_read_record(const struct shm_segment *seg, unsigned id, uint64_t pos,
                                struct record *head, uint8_t *frame)
{
    const struct record *record = shm_log_record_at(seg, id, pos);

    *head = *(const volatile struct record *)record;
    if (head->len > WIRE_FRAME_MAX || pos % SHM_LOG + sizeof(*record) + head->len > SHM_LOG) {
        return false;
    }
    memcpy(frame, record->frame, head->len);
    return true;
}

enum shm_log_result shm_log_read(const struct shm_segment *seg, unsigned id,
                                 struct shm_log_reader *reader, uint8_t *frame, size_t *len,
                                 unsigned *flags, uint64_t *missed)
{
    struct shm_member *writer = &seg->header->member[id];
    uint32_t gen = atomic_load_explicit(&writer->gen, memory_order_acquire);
    struct record head;
    uint64_t end;
    bool whole;

    if (reader->gen != gen) {
        *reader = (struct shm_log_reader){.gen = gen, .follows = true};
    }
    end = atomic_load_explicit(&writer->log_head, memory_order_acquire);
    if (reader->pos == end) {
        return SHM_LOG_EMPTY;
    }
    whole = end - reader->pos <= SHM_LOG && reader->pos % SHM_LINE == 0 &&
            shm_log_read_record(seg, id, reader->pos, &head, frame);
    if (whole && !head.len && reader->pos % SHM_LOG) {
        reader->pos += SHM_LOG - reader->pos % SHM_LOG;
        whole =
            end - reader->pos <= SHM_LOG && shm_log_read_record(seg, id, reader->pos, &head, frame);
    }
    atomic_thread_fence(memory_order_acquire);
    if (!whole || shm_log_is_overwritten(writer, reader->pos)) {
        /* The next frame's count tells how many frames were missed. */
        reader->pos = end;
        return SHM_LOG_LOST;
    }
    if (reader->follows) {
        *missed += head.count - reader->count;
    }
    reader->follows = true;
    reader->count = head.count + 1;
    reader->pos += shm_log_record_size(head.len);
    *len = head.len;
    *flags = head.flags & WIRE_NO_ICRC;
    return SHM_LOG_FRAME;
}
