/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of a member: frames for all members. The sender writes each frame once, to its own log in
 * the header, and each receiver reads it there. The sender does not wait: a receiver that comes
 * after the frame has been overwritten misses it.
 *
 * A log is a ring of bytes whose positions never wrap. A record begins at a multiple of SHM_LINE
 * and lies in one piece. A record without a frame says that the next record is at the ring's
 * beginning. Before the writer overwrites bytes, it moves the tail past them. A reader checks the
 * tail after it has copied a record, so the copy is either whole or thrown away.
 */
#ifndef HCASIM_WIRE_SHM_LOG_H
#define HCASIM_WIRE_SHM_LOG_H

#include "wire/shm/segment.h"

/* The position of a reader in a member's log. Private memory. */
struct shm_log_reader {
    uint32_t gen;   /* the writer's generation */
    uint64_t pos;   /* in bytes */
    uint64_t count; /* frames before that position */
    bool follows;   /* count is known */
};

/* The writer's private state of its own log. */
struct shm_log_writer {
    uint64_t pos, count;
    size_t len; /* bytes that have memory */
};

enum shm_log_result {
    SHM_LOG_EMPTY,
    SHM_LOG_FRAME,
    SHM_LOG_LOST, /* overwritten, or not a record: the reader goes on with what is written next */
};

/* Begins this member's log, for its new generation. */
void shm_log_begin(struct shm_segment *seg);

/* Writes a frame to this member's log. False: there is no memory for it. */
bool shm_log_write(struct shm_segment *seg, struct shm_log_writer *writer, const uint8_t *frame,
                   size_t len, unsigned flags);

/* Makes a reader begin after all that is in the log of id now. */
void shm_log_skip(const struct shm_segment *seg, unsigned id, struct shm_log_reader *reader);

/* Copies the next frame of id's log to frame, which has room for WIRE_FRAME_MAX bytes. Adds the
 * number of frames that the reader missed to *missed. */
enum shm_log_result shm_log_read(const struct shm_segment *seg, unsigned id,
                                 struct shm_log_reader *reader, uint8_t *frame, size_t *len,
                                 unsigned *flags, uint64_t *missed);

#endif
