/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements cuda_links.h. A folder gets its links under another name before it gets its own name,
 * so that each folder with the right name is complete. */
#include "cli/cuda_links.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "guest-lib/cuda/cuda_api.h"
#include "guest-lib/cuda/front.h"
#include "guest-lib/verbs/preload/tree_place.h"

#define LINKS_PREFIX    "hcasim-cuda-"
#define LINKS_NEW       LINKS_PREFIX "XXXXXX"
#define LINKS_DIGITS    16 /* of the checksum in the name */
#define LINKS_MIN_AGE   60 /* seconds: a younger folder may not have its links yet */
#define LINKS_TRIES     3
#define LINKS_RIGHTS    0755
#define LINKS_OF_OTHERS 022 /* rights to change the folder that only its owner may have */

static const char *const links_of_front[] = {CUDA_LIBRARY, "libcuda.so"};

bool cuda_links_are(const char *folder)
{
    g_autofree char *name = g_path_get_basename(folder);

    return g_str_has_prefix(name, LINKS_PREFIX);
}

/* The name says which user it belongs to, so that users do not meet in /tmp. */
static char *links_name(const char *front, const char *driver)
{
    g_autofree char *both = g_strconcat(front, "\n", driver, NULL);
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, both, -1);

    return g_strdup_printf(LINKS_PREFIX "%lu-%.*s", (unsigned long)geteuid(), LINKS_DIGITS, sum);
}

/* Whether the path is a folder of this user that nobody else may change. */
static bool links_is_own_folder(const char *path, struct stat *st)
{
    return !lstat(path, st) && S_ISDIR(st->st_mode) && st->st_uid == geteuid() &&
           !(st->st_mode & LINKS_OF_OTHERS);
}

static bool links_leads_to(const char *folder, const char *name, const char *target)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *found = g_file_read_link(path, NULL);

    return found && !strcmp(found, target);
}

static bool links_are_made(const char *folder, const char *front, const char *driver)
{
    bool ok = links_leads_to(folder, CUDA_FRONT_DRIVER, driver);
    struct stat st;

    for (unsigned i = 0; i < G_N_ELEMENTS(links_of_front); i++) {
        ok = ok && links_leads_to(folder, links_of_front[i], front);
    }
    return ok && links_is_own_folder(folder, &st);
}

/* The front goes first: it cannot be loaded without the link to the driver. */
static void links_clear(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0) {
        for (unsigned i = 0; i < G_N_ELEMENTS(links_of_front); i++) {
            unlinkat(fd, links_of_front[i], 0);
        }
        tree_clear(fd);
        close(fd);
    }
}

static bool links_add(const char *folder, const char *name, const char *target)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);

    return !symlink(target, path);
}

/* Makes the folder with all its links. False with errno. */
static bool links_make_folder(const char *place, const char *folder, const char *front,
                              const char *driver)
{
    g_autofree char *new = g_build_filename(place, LINKS_NEW, NULL);
    bool ok;
    int why;

    if (!mkdtemp(new)) {
        return false;
    }
    /* A program may change its user. */
    ok = !chmod(new, LINKS_RIGHTS) && links_add(new, CUDA_FRONT_DRIVER, driver);
    for (unsigned i = 0; i < G_N_ELEMENTS(links_of_front); i++) {
        ok = ok && links_add(new, links_of_front[i], front);
    }
    ok = ok && !rename(new, folder);
    why = errno;
    if (!ok) {
        links_clear(new);
        rmdir(new);
    }
    errno = why;
    return ok;
}

/* The folder in this place, or NULL with errno. Several runs may do this at the same time. */
static char *links_make_in(const char *place, const char *front, const char *driver)
{
    g_autofree char *name = links_name(front, driver);
    g_autofree char *folder = g_build_filename(place, name, NULL);
    struct stat st;

    for (unsigned i = 0; i < LINKS_TRIES; i++) {
        if (links_are_made(folder, front, driver)) {
            return g_steal_pointer(&folder);
        }
        if (links_make_folder(place, folder, front, driver)) {
            cuda_links_sweep(NULL);
            continue;
        }
        /* It is there, and not complete: somebody has removed a link. */
        if ((errno == EEXIST || errno == ENOTEMPTY) && links_is_own_folder(folder, &st) &&
            !links_are_made(folder, front, driver)) {
            links_clear(folder);
            errno = EEXIST;
        }
    }
    return NULL;
}

char *cuda_links_make(const char *front, const char *driver)
{
    char *folder = NULL;

    errno = ENOENT;
    for (unsigned i = 0; !folder && i < TREE_PLACES; i++) {
        const char *place = tree_place_at(i);

        /* These characters separate the folders of LD_LIBRARY_PATH. */
        if (place && !strpbrk(place, ":;")) {
            folder = links_make_in(place, front, driver);
        }
    }
    return folder;
}

/* -- removal ----------------------------------------------------------------------------------- */

static bool links_are_broken(const char *folder)
{
    const char *const names[] = {CUDA_FRONT_DRIVER, links_of_front[0], links_of_front[1]};
    bool broken = false;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(folder, names[i], NULL);

        broken = broken || access(path, F_OK);
    }
    return broken;
}

static void links_sweep_place(const char *place, GPtrArray *removed)
{
    GDir *dir = g_dir_open(place, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *folder = g_build_filename(place, name, NULL);
        struct stat st;

        if (!g_str_has_prefix(name, LINKS_PREFIX) || !links_is_own_folder(folder, &st) ||
            time(NULL) - st.st_mtime < LINKS_MIN_AGE || !links_are_broken(folder)) {
            continue;
        }
        links_clear(folder);
        if (!rmdir(folder) && removed) {
            g_ptr_array_add(removed, g_steal_pointer(&folder));
        }
    }
    if (dir) {
        g_dir_close(dir);
    }
}

void cuda_links_sweep(GPtrArray *removed)
{
    for (unsigned i = 0; i < TREE_PLACES; i++) {
        const char *place = tree_place_at(i);

        if (place) {
            links_sweep_place(place, removed);
        }
    }
}
