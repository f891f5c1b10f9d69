/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and frees the steering part of a function. */
#include "model/core/pd.h"
#include "model/steering/change.h"

void steering_init(struct hca *hca)
{
    flow_key_init();
    hca->steering = g_new0(struct steering, 1);
    hca->steers_roce = hca->sniffs_tx = false;
    obj_table_init(&hca->steering->tables, &hca->memory, 1, 1u << STEERING_LOG_FT_NUM);
}

/* Frees all tables, whatever references them. */
void steering_clear(struct hca *hca)
{
    uint32_t num = 0;
    struct obj *obj;

    while ((obj = obj_next(&hca->steering->tables, num))) {
        num = obj->num + 1;
        steering_table_free(hca, (struct flow_table *)obj);
    }
    obj_table_clear(&hca->steering->tables);
    steering_free_scratch(hca);
    g_free(hca->steering);
    hca->steering = NULL;
}
