/* SPDX-License-Identifier: BSD-2-Clause */
/* See cli/leftovers.h. */
#include "cli/leftovers.h"
#include "guest-lib/verbs/preload/tree_place.h"
#include "wire/open.h"

static void leftovers_add(const char *path, void *removed)
{
    g_ptr_array_add(removed, g_strdup(path));
}

void leftovers_remove(GPtrArray *removed)
{
    wire_sweep(removed);
    tree_place_sweep(removed ? leftovers_add : NULL, removed);
}
