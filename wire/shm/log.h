/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames for all members: the sender writes each once, to a log of its own in the header, and
 * everybody reads it there when he comes to it. Nobody waits: who comes too late, when the frame
 * has been overwritten, misses it.
 *
 * A log is a ring of bytes that counts on for ever. A record begins at a multiple of SHM_LINE and
 * lies in one piece; one without a frame says that the next is at the ring's beginning. Before it
 * overwrites bytes the writer moves the tail past them, and a reader looks at the tail after it has
 * copied a record: what it has is then whole, or thrown away.
 */
#ifndef HCASIM_WIRE_SHM_LOG_H
#define HCASIM_WIRE_SHM_LOG_H

#include "wire/shm/segment.h"

/* Where a reader is in a member's log. Private memory. */
struct shm_log_reader {
    uint32_t gen;   /* the writer's */
    uint64_t pos;   /* in bytes */
    uint64_t count; /* of the frames before that */
    bool follows;   /* count is known */
};

/* What a writer knows of its own. Private memory. */
struct shm_log_writer {
    uint64_t pos, count;
    size_t len; /* bytes that have memory */
};

enum shm_log_result {
    SHM_LOG_EMPTY,
    SHM_LOG_FRAME,
    SHM_LOG_LOST, /* overwritten, or no record: the reader goes on with what is written next */
};

/* Begins this member's log, for its new generation. */
void shm_log_begin(struct shm_segment *seg);

/* Writes a frame to this member's log. False: there is no memory for it. */
bool shm_log_write(struct shm_segment *seg, struct shm_log_writer *writer, const uint8_t *frame,
                   size_t len, unsigned flags);

/* Has a reader begin after all that is in the log of id now. */
void shm_log_skip(const struct shm_segment *seg, unsigned id, struct shm_log_reader *reader);

/* Copies the next frame of id's log to frame, which has WIRE_FRAME_MAX bytes. Adds to *missed. */
enum shm_log_result shm_log_read(const struct shm_segment *seg, unsigned id,
                                 struct shm_log_reader *reader, uint8_t *frame, size_t *len,
                                 unsigned *flags, uint64_t *missed);

#endif
