/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes frames to a pcapng file that several ports, in one process or in many, may share.
 *
 * Each port that writes the file is an interface of it. The file is whole after each frame: a
 * process that is killed while it writes leaves a part of a block, and the next writer cuts that
 * part off.
 *
 * A ring is a row of files of a bounded size. PATH is always the newest one. When it is full, it
 * gets the name of its number (all.pcapng becomes all.00001.pcapng), a new PATH begins, and the
 * oldest file is removed. Each file is a whole capture: each port describes its interface in each
 * file before its first frame there.
 */
#ifndef HCASIM_WIRE_CAPTURE_FILE_H
#define HCASIM_WIRE_CAPTURE_FILE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/capture_blocks.h"

struct capture_file;

/* Values of the direction bits of pcapng's epb_flags. */
enum capture_direction {
    CAPTURE_INBOUND = 1,
    CAPTURE_OUTBOUND = 2,
};

/*
 * Opens path, and adds an interface with that name to it.
 *
 * If no one writes path at the moment, the file is emptied first, except if run is not NULL and the
 * last writer had the same run: then the frames are appended. If another port writes path, the
 * frames are appended in any case. Of run, the first CAPTURE_RUN_MAX bytes count.
 *
 * ring: NULL or a size of 0: there is one file, which grows. All who write the file must ask for
 * the same ring; opening fails if others have another one. If the file is emptied, the older files
 * of its ring are removed.
 *
 * A path that is no regular file (a pipe, a terminal) has the ports of one process and no ring
 * (wire/capture_pipe.h).
 *
 * NULL: the file cannot be made (*err, of WIRE_ERROR).
 */
struct capture_file *capture_file_open(const char *path, const char *name, const char *run,
                                       const struct capture_ring *ring, GError **err);

/*
 * Appends a frame. comment is shown with the packet (opt_comment); NULL: there is none. clock_ns
 * gives nanoseconds since 1970; it is called when the file's order of frames is settled, so that
 * times in the file do not run backwards.
 *
 * Another process can be stopped (SIGSTOP) in the moment in which it writes. Then a frame waits for
 * some milliseconds and is left out; the next one that is written says how many are missing
 * (epb_dropcount).
 *
 * If the file takes no more (disk full), it keeps its whole blocks, this port's frames are no
 * longer captured, and one warning says so.
 */
void capture_file_frame(struct capture_file *file, const struct capture_frame *frame,
                        uint64_t (*clock_ns)(void *opaque), void *clock_opaque);

void capture_file_close(struct capture_file *file);

/* The name of the file of a ring with that number: the number before the suffix. */
char *capture_ring_name(const char *path, uint32_t number);

#endif
