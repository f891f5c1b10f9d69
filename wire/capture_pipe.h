/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes frames to a named pipe, or to another file that is none of bytes at a place (a terminal),
 * for a program that shows them while they come.
 *
 * No call here waits for the reader, except that opening gives it a few seconds to come. A reader
 * gets a stream that begins with a section header and the interface, whenever it opens the pipe. A
 * frame for which the pipe has no room, or for which there is no reader, is left out; the next one
 * that is written says how many are missing (epb_dropcount). The kernel keeps what a reader has not
 * read yet: a megabyte at most.
 */
#ifndef HCASIM_WIRE_CAPTURE_PIPE_H
#define HCASIM_WIRE_CAPTURE_PIPE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "wire/capture_blocks.h"

struct capture_pipe;

/* st is that of path. Several ports of a process may write one pipe: each is an interface. NULL
 * with *err: the pipe cannot be written, or another process writes it now. */
struct capture_pipe *capture_pipe_open(const char *path, const struct stat *st, const char *name,
                                       GError **err);
void capture_pipe_frame(struct capture_pipe *pipe, const struct capture_frame *frame,
                        uint64_t now_ns);
void capture_pipe_close(struct capture_pipe *pipe);

#endif
