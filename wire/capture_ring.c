/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements capture_ring.h. */
#include "wire/capture_ring.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "wire/capture_file.h"

char *capture_ring_name(const char *path, uint32_t number)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');
    int stem = (int)(dot && dot != base ? dot - path : (ptrdiff_t)strlen(path));

    return g_strdup_printf("%.*s.%05" PRIu32 "%s", stem, path, number, path + stem);
}

char *capture_ring_next_name(const char *path)
{
    return g_strconcat(path, ".next", NULL);
}

static void capture_ring_remove_one(const char *path, uint32_t number)
{
    g_autofree char *name = capture_ring_name(path, number);

    unlink(name);
}

bool capture_ring_advance(const char *path, const char *next, const struct capture_record *record)
{
    g_autofree char *name = capture_ring_name(path, record->number);

    if (record->number >= record->ring.files) {
        capture_ring_remove_one(path, record->number - record->ring.files + 1);
    }
    if (record->ring.files > 1) {
        unlink(name); /* of an earlier ring, or of one who was killed here */
        if (link(path, name) < 0) {
            return false;
        }
    }
    return !rename(next, path);
}

void capture_ring_remove(const char *path, const struct capture_record *record)
{
    uint32_t files = MIN(record->ring.files, CAPTURE_RING_FILES_MAX);

    for (uint32_t back = 1; back < files && back < record->number; back++) {
        capture_ring_remove_one(path, record->number - back);
    }
}
