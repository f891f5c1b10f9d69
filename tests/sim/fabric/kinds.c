/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the kinds of jobs, and behind it the kinds of a program outside of this tree. */
#include <string.h>
#include "tests/sim/fabric/sim.h"

#define KIND(name) extern const struct kind kind_##name;
#include "tests/sim/fabric/kinds.def"
#undef KIND

static const struct kind *const kinds[] = {
#define KIND(name) &kind_##name,
#include "tests/sim/fabric/kinds.def"
#undef KIND
};

const struct kind *kind_at(unsigned nth)
{
    return nth < G_N_ELEMENTS(kinds) ? kinds[nth] : sim_own_kinds[nth - G_N_ELEMENTS(kinds)];
}

const struct kind *kind_find(const char *name)
{
    const struct kind *kind;

    for (unsigned i = 0; (kind = kind_at(i)); i++) {
        if (!strcmp(kind->name, name)) {
            return kind;
        }
    }
    return NULL;
}
