/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements tag lists: order, matching, and the entries held until software's count agrees. */
#include <string.h>
#include "model/queue/tag_list.h"

static size_t tag_list_bytes(unsigned log_size)
{
    return sizeof(struct tag_list) + (sizeof(struct tag_entry) << log_size);
}

struct tag_list *tag_list_new(struct hca *hca, const struct prm_tag_matching_topology_context *ctx)
{
    unsigned log_size = PRM_GET(tag_matching_topology_context, ctx, log_matching_list_sz);
    struct tag_list *list = ledger_alloc(&hca->memory, tag_list_bytes(log_size));

    if (list) {
        list->log_size = (uint8_t)log_size;
        list->append_next = PRM_GET(tag_matching_topology_context, ctx, append_next_index);
        list->sw_phase = PRM_GET(tag_matching_topology_context, ctx, sw_phase_cnt);
        list->hw_phase = PRM_GET(tag_matching_topology_context, ctx, hw_phase_cnt);
        list->head = list->tail = list->held = TAG_NONE;
    }
    return list;
}

void tag_list_free(struct hca *hca, struct tag_list *list)
{
    if (list) {
        ledger_free(&hca->memory, list, tag_list_bytes(list->log_size));
    }
}

void tag_list_query(const struct tag_list *list, struct prm_tag_matching_topology_context *ctx)
{
    PRM_SET(tag_matching_topology_context, ctx, log_matching_list_sz, list->log_size);
    PRM_SET(tag_matching_topology_context, ctx, append_next_index, list->append_next);
    PRM_SET(tag_matching_topology_context, ctx, sw_phase_cnt, list->sw_phase);
    PRM_SET(tag_matching_topology_context, ctx, hw_phase_cnt, list->hw_phase);
}

static bool tag_list_has(const struct tag_list *list, uint16_t handle)
{
    return handle < 1u << list->log_size;
}

/* If the counts agree, no entry is held. */
static void tag_list_compare(struct tag_list *list)
{
    if (list->sw_phase == list->hw_phase) {
        list->held = TAG_NONE;
    }
}

uint16_t tag_list_append(struct tag_list *list, uint16_t next, uint64_t tag, uint64_t mask,
                         const struct sge *buffer)
{
    uint16_t handle = list->append_next;
    struct tag_entry *entry = &list->entries[handle];

    if (!tag_list_has(list, next) || entry->state != TAG_FREE) {
        return TAG_NONE;
    }
    entry->tag = tag & mask;
    entry->mask = mask;
    entry->buffer = *buffer;
    entry->state = TAG_LISTED;
    entry->prev = list->tail;
    entry->next = TAG_NONE;
    if (list->tail == TAG_NONE) {
        list->head = handle;
    } else {
        list->entries[list->tail].next = handle;
    }
    list->tail = handle;
    if (list->held == TAG_NONE && list->sw_phase != list->hw_phase) {
        list->held = handle;
    }
    list->append_next = next;
    return handle;
}

static void tag_list_unlink(struct tag_list *list, uint16_t handle)
{
    const struct tag_entry *entry = &list->entries[handle];

    if (entry->prev == TAG_NONE) {
        list->head = entry->next;
    } else {
        list->entries[entry->prev].next = entry->next;
    }
    if (entry->next == TAG_NONE) {
        list->tail = entry->prev;
    } else {
        list->entries[entry->next].prev = entry->prev;
    }
    if (list->held == handle) {
        list->held = entry->next;
    }
}

bool tag_list_remove(struct tag_list *list, uint16_t handle)
{
    if (!tag_list_has(list, handle) || list->entries[handle].state != TAG_LISTED) {
        return false;
    }
    tag_list_unlink(list, handle);
    list->entries[handle].state = TAG_FREE;
    return true;
}

void tag_list_sync(struct tag_list *list, uint16_t sw_phase)
{
    list->sw_phase = sw_phase;
    tag_list_compare(list);
}

uint16_t tag_list_take(struct hca *hca, struct tag_list *list, uint64_t tag)
{
    unsigned looked_at = 0;
    uint16_t handle;

    for (handle = list->head; handle != TAG_NONE && handle != list->held;
         handle = list->entries[handle].next) {
        struct tag_entry *entry = &list->entries[handle];

        looked_at++;
        if ((tag & entry->mask) == entry->tag) {
            tag_list_unlink(list, handle);
            entry->state = TAG_TAKEN;
            break;
        }
    }
    hca_spend(hca, looked_at / HCA_PIECE_ENTRIES);
    return handle != TAG_NONE && list->entries[handle].state == TAG_TAKEN ? handle : TAG_NONE;
}

void tag_list_release(struct tag_list *list, uint16_t handle)
{
    g_assert(list->entries[handle].state == TAG_TAKEN);
    list->entries[handle].state = TAG_FREE;
}

void tag_list_unexpected(struct tag_list *list)
{
    list->hw_phase++;
    tag_list_compare(list);
}

void tag_list_not_delivered(struct tag_list *list)
{
    list->hw_phase--;
    tag_list_compare(list);
}
