/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes events to a file, one JSON object a line, which several hosts, in one process or in many,
 * may share.
 *
 *     {"t":1764356219000000123,"host":"10.0.0.1 prog[7]","e":"cqe","cqn":1,...}
 *
 * The first line names the run. Events are gathered in a buffer of fixed size, and written as whole
 * lines: when the buffer is full, and when trace_file_flush() is called. Each write appends to the
 * file at once, so lines of different writers do not mix, and a process that is killed leaves whole
 * lines. If the file takes no more (disk full), tracing ends with one warning, and traffic goes on.
 */
#ifndef HCASIM_WIRE_TRACE_FILE_H
#define HCASIM_WIRE_TRACE_FILE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

struct trace_file;

struct trace_file_options {
    /* Nanoseconds since 1970; NULL: the system's real-time clock. */
    uint64_t (*clock_ns)(void *clock_opaque);
    void *clock_opaque;
    const char *host; /* the value of "host" in each event */
    const char *run;  /* the file keeps the events of the same run; NULL: of this process */
};

/*
 * Opens path, which is created, or emptied unless its first line names the same run. Only a regular
 * file is taken: a pipe without a reader would block the device.
 *
 * NULL: the file cannot be made (*err, of WIRE_ERROR).
 */
struct trace_file *trace_file_open(const char *path, const struct trace_file_options *options,
                                   GError **err);

/* Adds an event: len bytes, the members of a JSON object without its braces. Any thread may call
 * this. In a child of fork() it does nothing. */
void trace_file_event(struct trace_file *file, const char *event, size_t len);

/* Writes what is in the buffer. */
void trace_file_flush(struct trace_file *file);

void trace_file_close(struct trace_file *file);

#endif
