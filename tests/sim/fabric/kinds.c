/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the kinds of jobs. */
#include <string.h>
#include "tests/sim/fabric/sim.h"

#define KIND(name) extern const struct kind kind_##name;
#include "tests/sim/fabric/kinds.def"
#undef KIND

static const struct kind *const kinds[] = {
#define KIND(name) &kind_##name,
#include "tests/sim/fabric/kinds.def"
#undef KIND
    NULL,
};

const struct kind *kind_at(unsigned nth)
{
    return kinds[nth];
}

const struct kind *kind_find(const char *name)
{
    for (unsigned i = 0; kinds[i]; i++) {
        if (!strcmp(kinds[i]->name, name)) {
            return kinds[i];
        }
    }
    return NULL;
}
