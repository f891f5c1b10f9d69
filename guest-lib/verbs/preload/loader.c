/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen() of libibverbs or libmlx5 by any path, under any name that copies of them have: the
 * program gets the one that `hcasim run` has preloaded (front.c), whose SONAME the loader knows.
 *
 * The loader uses the return address to find out which object calls. So the functions here end in a
 * jump to the loader's own function.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"

#define FUNCTIONS(X) X(dlopen)
REAL_TABLE(FUNCTIONS)

/* Whether the text is ".so", with a version or without. */
static bool loader_is_suffix(const char *text)
{
    return !strncmp(text, ".so", 3) && text[3 + strspn(text + 3, ".0123456789")] == '\0';
}

/* Skips the checksum of eight digits that tools add which put copies of libraries into a package
 * (auditwheel). */
static const char *loader_skip_checksum(const char *text)
{
    return text[0] == '-' && strspn(text + 1, "0123456789abcdef") == 8 ? text + 9 : text;
}

static bool loader_is_copy(const char *file, const char *base)
{
    size_t len = strlen(base);

    return !strncmp(file, base, len) && loader_is_suffix(loader_skip_checksum(file + len));
}

/* Whether the path is that of the library itself, which its front loads. */
static bool loader_is_beside(const char *path, const char *name)
{
    char ours[PATH_MAX];

    return self_beside(name, ours) && !strcmp(path, ours);
}

PRELOAD_SLOW static const char *loader_find(const char *path, const char *file)
{
    static const struct {
        const char *base, *name;
    } fronts[] = {{"libibverbs", "libibverbs.so.1"}, {"libmlx5", "libmlx5.so.1"}};

    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
        if (loader_is_copy(file, fronts[i].base)) {
            if (loader_is_beside(path, fronts[i].name)) {
                return path;
            }
            self_ask();
            return fronts[i].name;
        }
    }
    return path;
}

/* The path to open in place of the given one: in most cases the same. */
static const char *loader_path(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL, *file = slash ? slash + 1 : path;

    return file && file[0] == 'l' && file[1] == 'i' && file[2] == 'b' &&
                   (file[3] == 'i' || file[3] == 'm')
               ? loader_find(path, file)
               : path;
}

PRELOAD_EXPORT void *dlopen(const char *path, int flags)
{
    __typeof__(dlopen) *real_one = REAL(dlopen);

    path = loader_path(path);
    return real_one(path, flags);
}
