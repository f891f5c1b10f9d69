/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements capture_writer.h. */
#include "tests/unit/capture_writer.h"
#include "wire/port.h"

#include <check.h>
#include <glib/gstdio.h>
#include <string.h>

char *capture_path;
int capture_warnings;
char capture_last_warning[256];

static void capture_count_warning(const gchar *domain, GLogLevelFlags level, const gchar *message,
                                  gpointer opaque)
{
    capture_warnings++;
    g_strlcpy(capture_last_warning, message, sizeof(capture_last_warning));
}

void capture_make_folder(const char *name)
{
    g_autofree char *folder = g_dir_make_tmp("hcasim-XXXXXX", NULL);

    capture_path = g_build_filename(folder, name, NULL);
    capture_warnings = 0;
    g_log_set_handler(NULL, G_LOG_LEVEL_WARNING, capture_count_warning, NULL);
}

void capture_remove_folder(void)
{
    g_autofree char *folder = g_path_get_dirname(capture_path);
    GDir *dir = g_dir_open(folder, 0, NULL);

    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(folder, name, NULL);

        g_remove(file);
    }
    g_dir_close(dir);
    g_rmdir(folder);
    g_free(capture_path);
}

struct capture_file *capture_open_as(const char *name, const char *run,
                                     const struct capture_ring *ring)
{
    GError *err = NULL;
    struct capture_file *file = capture_file_open(capture_path, name, run, ring, &err);

    ck_assert_msg(file, "%s", err ? err->message : "");
    return file;
}

static uint64_t capture_a_second(void *opaque)
{
    return 1000000000;
}

void capture_write_frame(struct capture_file *file, uint8_t fill, size_t len)
{
    uint8_t frame[WIRE_FRAME_MAX];

    memset(frame, fill, len);
    capture_file_frame(
        file, &(struct capture_frame){.bytes = frame, .len = len, .direction = CAPTURE_OUTBOUND},
        capture_a_second, NULL);
}
