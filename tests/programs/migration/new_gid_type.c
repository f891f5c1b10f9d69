/* SPDX-License-Identifier: BSD-2-Clause */
/* The type of a GID, new: ibv_query_gid_ex(). */
#include "tests/programs/migration/both.h"

int main(void)
{
    struct both b = both_begin(0);

    for (unsigned i = 0; i < 4; i++) {
        struct ibv_gid_entry entry;

        NEED(!ibv_query_gid_ex(b.ctx, 1, i, &entry, 0));
        printf("GID %u: %s\n", i, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "RoCE v1");
    }
    return 0;
}
