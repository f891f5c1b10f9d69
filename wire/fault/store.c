/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps frames until they are due. */
#include "wire/fault/rule.h"
#include "wire/port.h"

#include <string.h>

#define STORE_BYTES (8u << 20)

static uint64_t fault_store_due_of(const GList *link)
{
    return ((const struct fault_stored *)link->data)->due_ns;
}

void fault_store_put(struct fault_store *store, const uint8_t *frame, size_t len, char *comment,
                     const struct wire_note *note, uint64_t due_ns)
{
    struct fault_stored *s = g_malloc(sizeof(*s) + len);
    GList *before = store->queue.tail;

    *s = (struct fault_stored){.due_ns = due_ns, .comment = comment, .len = (uint32_t)len};
    if (note) {
        s->has_note = true;
        s->note = *note;
    }
    memcpy(s->frame, frame, len);
    while (before && fault_store_due_of(before) > due_ns) {
        before = before->prev;
    }
    if (before) {
        g_queue_insert_after(&store->queue, before, s);
    } else {
        g_queue_push_head(&store->queue, s);
    }
    store->bytes += sizeof(*s) + len;
    store->next_due_ns = MIN(store->next_due_ns, due_ns);
}

void fault_store_take_out(struct fault_store *store, GList *link)
{
    struct fault_stored *s = link->data;

    store->bytes -= sizeof(*s) + s->len;
    g_free(s->comment);
    g_free(s);
    g_queue_delete_link(&store->queue, link);
}

bool fault_store_is_full(const struct fault_store *store)
{
    return store->bytes + 2 * WIRE_FRAME_MAX > STORE_BYTES;
}

bool fault_store_has_room_again(const struct fault_store *store)
{
    return store->bytes <= STORE_BYTES / 2;
}
