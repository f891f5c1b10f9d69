/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folders in which processes make their trees (tree.h), and the trees that dead processes left.
 *
 * A process holds a lock (flock) on the folder of its tree. The kernel releases the lock however
 * the process ends. Anybody of the same user may remove a folder that no process holds.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_PLACE_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_PLACE_H

#include <limits.h>
#include <stdbool.h>

enum {
    TREE_PLACES = 3,
};

/* The i-th place for trees, in order of preference; NULL: there is none ($XDG_RUNTIME_DIR is not
 * set). */
const char *tree_place_at(unsigned i);

/* Makes a new folder in a place, stores its path and locks it. Returns its descriptor. -1: errno
 * says why none can be made. */
int tree_place_make(const char *place, char path[PATH_MAX]);

/* Removes the folders of this user that no process holds, in all places. Calls removed(path,
 * opaque), which may be NULL, for each. */
void tree_place_sweep(void (*removed)(const char *path, void *opaque), void *opaque);

/* Deletes the contents of a folder. */
void tree_clear(int fd);

#endif
