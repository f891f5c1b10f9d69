/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder with a capture, and what the tests of captures write to it. */
#ifndef HCASIM_TESTS_UNIT_CAPTURE_WRITER_H
#define HCASIM_TESTS_UNIT_CAPTURE_WRITER_H

#include "wire/capture_file.h"

extern char *capture_path; /* of the capture */
extern int capture_warnings;
extern char capture_last_warning[256];

/* Makes a folder of its own, names the capture in it, and begins to count warnings. */
void capture_make_folder(const char *name);
/* With all that is in it. */
void capture_remove_folder(void);

struct capture_file *capture_open_as(const char *name, const char *run,
                                     const struct capture_ring *ring);
/* Writes a frame whose bytes all are `fill`, at the time of one second. */
void capture_write_frame(struct capture_file *file, uint8_t fill, size_t len);

#endif
