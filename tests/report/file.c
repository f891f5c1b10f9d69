/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements file.h. */
#include "tests/report/file.h"
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool report_file_fail(const char *path, int why, GError **err)
{
    g_set_error(err, G_FILE_ERROR, g_file_error_from_errno(why), "report %s: %s", path,
                g_strerror(why));
    return false;
}

bool report_file_check(const char *path, GError **err)
{
    g_autofree char *folder = g_path_get_dirname(path);
    struct stat st;

    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode)) {
            return report_file_fail(path, EISDIR, err);
        }
        return !access(path, W_OK) || report_file_fail(path, errno, err);
    }
    if (errno != ENOENT || !*path || access(folder, W_OK | X_OK)) {
        return report_file_fail(path, errno, err);
    }
    return true;
}

bool report_file_write(const char *path, const char *text, GError **err)
{
    FILE *file = fopen(path, "we");
    bool ok, is_regular;
    struct stat st;
    int why;

    if (!file) {
        return report_file_fail(path, errno, err);
    }
    is_regular = !fstat(fileno(file), &st) && S_ISREG(st.st_mode);
    ok = fputs(text, file) != EOF && !fflush(file);
    why = errno;
    if (fclose(file) && ok) {
        ok = false;
        why = errno;
    }
    if (!ok && is_regular) {
        g_unlink(path);
    }
    return ok || report_file_fail(path, why, err);
}
