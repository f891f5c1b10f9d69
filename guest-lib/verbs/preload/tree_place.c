/* SPDX-License-Identifier: BSD-2-Clause */
/* See guest-lib/verbs/preload/tree_place.h. */
#include "guest-lib/verbs/preload/tree_place.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_PREFIX   "hcasim-tree-"
#define TREE_ATTEMPTS 4
#define TREE_HIGH_FD  200 /* the lowest descriptors belong to the program */
#define PLACE_MAX     512 /* a longer path leaves no room for the paths of files */

void tree_clear(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) && (errno == EISDIR || errno == EPERM)) {
            int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

            if (below >= 0) {
                tree_clear(below);
                close(below);
            }
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

const char *tree_place_at(unsigned i)
{
    /* A root file system that is read-only often includes /tmp. /dev/shm is there all the same,
     * because wires are there. */
    static const char *const always[] = {"/tmp", "/dev/shm"};
    const char *place = i ? always[i - 1] : getenv("XDG_RUNTIME_DIR");

    return place && place[0] == '/' && strlen(place) < PLACE_MAX ? place : NULL;
}

static bool tree_is_at(int fd, const char *path)
{
    struct stat open_one, named;

    return !fstat(fd, &open_one) && !lstat(path, &named) && S_ISDIR(named.st_mode) &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

int tree_place_make(const char *place, char path[PATH_MAX])
{
    for (int i = 0; i < TREE_ATTEMPTS; i++) {
        int fd, high;

        snprintf(path, PATH_MAX, "%s/" TREE_PREFIX "XXXXXX", place);
        if (!mkdtemp(path)) {
            return -1;
        }
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && tree_is_at(fd, path)) {
            high = fcntl(fd, F_DUPFD_CLOEXEC, TREE_HIGH_FD);
            if (high >= 0) {
                close(fd);
            }
            return high >= 0 ? high : fd;
        }
        if (fd >= 0) {
            close(fd);
        }
        rmdir(path);
    }
    return -1;
}

/* Removes a folder of this user that no process holds. That may be one that was just made and is
 * not held yet: its maker notices. Returns whether it is removed. */
static bool tree_sweep_one(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    bool removed = false;
    struct stat st;

    if (fd < 0) {
        return false;
    }
    if (!fstat(fd, &st) && st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
        tree_clear(fd);
        removed = !rmdir(path);
    }
    close(fd);
    return removed;
}

static void tree_sweep_place(const char *place, void (*removed)(const char *path, void *opaque),
                             void *opaque)
{
    DIR *dir = opendir(place);
    const struct dirent *entry;
    char path[PATH_MAX];

    while (dir && (entry = readdir(dir))) {
        if (!strncmp(entry->d_name, TREE_PREFIX, strlen(TREE_PREFIX))) {
            snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
            if (tree_sweep_one(path) && removed) {
                removed(path, opaque);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
}

void tree_place_sweep(void (*removed)(const char *path, void *opaque), void *opaque)
{
    for (unsigned i = 0; i < TREE_PLACES; i++) {
        const char *place = tree_place_at(i);

        if (place) {
            tree_sweep_place(place, removed, opaque);
        }
    }
}
