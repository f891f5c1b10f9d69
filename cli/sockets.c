/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements sockets.h. */
#include "cli/sockets.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define SOCKETS_MOST 4096 /* of a folder */

static bool sockets_is_socket(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISSOCK(st.st_mode);
}

/* "10.0.0.10..." after "10.0.0.9...". */
static gint sockets_compare(gconstpointer a, gconstpointer b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *sockets_find(const char *path, GError **err)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
    GDir *dir = NULL;
    const char *name;

    if (!g_file_test(path, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(found, g_strdup(path));
        return found;
    }
    dir = g_dir_open(path, 0, err);
    while (dir && (name = g_dir_read_name(dir)) && found->len < SOCKETS_MOST) {
        char *at = g_build_filename(path, name, NULL);

        if (sockets_is_socket(at)) {
            g_ptr_array_add(found, at);
        } else {
            g_free(at);
        }
    }
    if (!dir) {
        g_ptr_array_unref(found);
        return NULL;
    }
    g_dir_close(dir);
    g_ptr_array_sort(found, sockets_compare);
    return found;
}
