/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements ld_cache.h: reads the format "glibc-ld.so.cache1.1", which glibc has written
 * since 2.2, alone or behind its older format (sysdeps/generic/dl-cache.h of glibc). */
#include "cli/ld_cache.h"
#include <glib.h>
#include <stdint.h>
#include <string.h>
#include "cli/loader.h"

#define LD_CACHE_FILE "/etc/ld.so.cache"

static const char ld_cache_magic[] = "glibc-ld.so.cache1.1"; /* without its end */

struct ld_cache_header {
    char magic[20];
    uint32_t libraries; /* the number of entries */
    uint32_t rest[6];
};

/* name, path: where a text begins, in bytes from the header. */
struct ld_cache_entry {
    int32_t flags;
    uint32_t name, path, os_version;
    uint64_t hwcap;
};

/* A text that ends inside the cache, or NULL. */
static const char *ld_cache_text(const char *cache, size_t size, uint32_t at)
{
    return at < size && memchr(cache + at, 0, size - at) ? cache + at : NULL;
}

static char *ld_cache_search(const char *cache, size_t size, const char *name)
{
    struct ld_cache_header header;
    struct ld_cache_entry entry;

    memcpy(&header, cache, sizeof(header));
    for (size_t i = 0; i < header.libraries; i++) {
        size_t at = sizeof(header) + i * sizeof(entry);
        const char *found, *path;

        if (at + sizeof(entry) > size) {
            return NULL;
        }
        memcpy(&entry, cache + at, sizeof(entry));
        found = ld_cache_text(cache, size, entry.name);
        path = found && !strcmp(found, name) ? ld_cache_text(cache, size, entry.path) : NULL;
        if (path && loader_is_of_our_kind(path)) {
            return g_strdup(path);
        }
    }
    return NULL;
}

char *ld_cache_find(const char *name)
{
    g_autoptr(GMappedFile) file = g_mapped_file_new(LD_CACHE_FILE, FALSE, NULL);
    const char *text = file ? g_mapped_file_get_contents(file) : NULL;
    size_t size = file ? g_mapped_file_get_length(file) : 0;
    const char *cache =
        text ? memmem(text, size, ld_cache_magic, sizeof(ld_cache_magic) - 1) : NULL;

    size -= cache ? (size_t)(cache - text) : 0;
    return cache && size >= sizeof(struct ld_cache_header) ? ld_cache_search(cache, size, name)
                                                           : NULL;
}
