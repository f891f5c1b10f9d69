/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements flow counters, one by one and in bulks. */
#include "model/core/pd.h"
#include "model/steering/tables.h"

/* Finds count consecutive free numbers, from a multiple of STEERING_BULK_UNIT on; at first behind
 * the last number that was given out. Returns the end of the table if there are none. */
static uint32_t counter_find_room(struct obj_table *table, uint32_t from, uint32_t count)
{
    uint32_t num = MAX(from, 1);

    num = (num + STEERING_BULK_UNIT - 1) / STEERING_BULK_UNIT * STEERING_BULK_UNIT;
    while (num + count <= table->end) {
        const struct obj *taken = obj_next(table, num);

        if (!taken || taken->num >= num + count) {
            return num;
        }
        num = (taken->num / STEERING_BULK_UNIT + 1) * STEERING_BULK_UNIT;
    }
    return table->end;
}

static bool counter_make(struct hca *hca, uint16_t uid, uint32_t first, uint32_t count,
                         uint32_t num)
{
    struct flow_counter *counter = obj_new(hca, OBJ_FLOW_COUNTER, uid, sizeof(*counter));

    if (!counter) {
        return false;
    }
    counter->first = first;
    counter->count = count;
    if (!obj_insert_at(&hca->flow_counters, &counter->obj, num)) {
        obj_free(hca, &counter->obj);
        return false;
    }
    return true;
}

/* Ends the counters of a bulk that are still there. */
static void counter_end_bulk(struct hca *hca, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct flow_counter *counter = flow_counter_find(hca, first + i);

        if (counter && counter->first == first) {
            obj_end(hca, &counter->obj);
        }
    }
}

static enum syn counter_alloc_bulk(struct hca *hca, uint16_t uid, uint32_t count, uint32_t *id)
{
    struct obj_table *table = &hca->flow_counters;
    uint32_t first = counter_find_room(table, table->next, count);

    if (first == table->end) {
        first = counter_find_room(table, table->first, count);
    }
    if (first == table->end) {
        return SYN_NO_MEMORY;
    }
    hca_spend(hca, count / HCA_PIECE_ENTRIES);
    for (uint32_t i = 0; i < count; i++) {
        if (!counter_make(hca, uid, first, count, first + i)) {
            counter_end_bulk(hca, first, i);
            return SYN_NO_MEMORY;
        }
    }
    table->next = first + count < table->end ? first + count : table->first;
    *id = first;
    return SYN_OK;
}

enum syn flow_counter_alloc(struct hca *hca, uint16_t uid, uint32_t count, uint32_t *id)
{
    struct flow_counter *counter;

    if (count > 1) {
        return counter_alloc_bulk(hca, uid, count, id);
    }
    counter = obj_make(hca, OBJ_FLOW_COUNTER, uid, sizeof(*counter));
    if (!counter) {
        return SYN_NO_MEMORY;
    }
    counter->first = counter->obj.num;
    counter->count = 1;
    *id = counter->obj.num;
    return SYN_OK;
}

struct flow_counter *flow_counter_find(struct hca *hca, uint32_t id)
{
    return obj_find_kind(&hca->flow_counters, id, OBJ_FLOW_COUNTER);
}

enum syn flow_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id)
{
    const struct flow_counter *first = flow_counter_find(hca, id);

    if (!first || first->first != id) {
        return SYN_FC_NOT_FOUND;
    }
    if (!uid_owns(&first->obj, uid)) {
        return SYN_BAD_UID;
    }
    hca_spend(hca, first->count / HCA_PIECE_ENTRIES);
    for (uint32_t i = 0; i < first->count; i++) {
        const struct flow_counter *counter = flow_counter_find(hca, id + i);

        if (counter && counter->first == id && counter->obj.refs) {
            return SYN_IN_USE;
        }
    }
    counter_end_bulk(hca, id, first->count);
    return SYN_OK;
}
