/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembers the number of each initiator's last session. So a packet of that session or of an
 * earlier one that comes again begins no new session. Notes are kept for DC_LATE_NS after the
 * session has ended, and longer while there is room.
 */
#include <string.h>
#include "model/rdma/dct.h"
#include "model/rdma/rdma.h"

#define SOURCE_WORDS 5

/* Random factors of the hash. Peers choose the sources, but do not know the factors. So they cannot
 * make all their sources collide. */
static uint64_t source_factors[SOURCE_WORDS];

static void dc_note_factors_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (unsigned i = 0; i < SOURCE_WORDS; i++) {
            source_factors[i] = (uint64_t)g_random_int() << 32 | g_random_int();
        }
        g_once_init_leave(&done, 1);
    }
}

guint dc_source_hash(gconstpointer key)
{
    const struct dc_source *source = key;
    uint32_t words[SOURCE_WORDS] = {source->dci};
    uint64_t sum = 0;

    dc_note_factors_init();
    memcpy(&words[1], source->gid, sizeof(source->gid));
    for (unsigned i = 0; i < SOURCE_WORDS; i++) {
        sum += source_factors[i] * words[i];
    }
    return (guint)(sum >> 32);
}

gboolean dc_source_equal(gconstpointer a, gconstpointer b)
{
    const struct dc_source *x = a, *y = b;

    return x->dci == y->dci && memcmp(x->gid, y->gid, sizeof(x->gid)) == 0;
}

struct dc_note *dc_note_find(struct hca *hca, const struct dc_source *source)
{
    return g_hash_table_lookup(hca->rdma->dc.notes, source);
}

static void dc_note_forget(struct hca *hca, struct dc_note *note)
{
    struct dc_pool *pool = &hca->rdma->dc;

    g_queue_unlink(&pool->ended, &note->ended);
    g_hash_table_remove(pool->notes, &note->source);
    hca_free(hca, OBJ_DC_NOTE, note, sizeof(*note));
}

/* Frees the oldest note, if no packet of its session can come any more. */
static bool dc_note_make_room(struct hca *hca)
{
    struct dc_pool *pool = &hca->rdma->dc;
    struct dc_note *oldest = g_queue_peek_head(&pool->ended);

    if (!oldest || hca_now(hca) - oldest->at <= DC_LATE_NS) {
        return false;
    }
    dc_note_forget(hca, oldest);
    return true;
}

struct dc_note *dc_note_new(struct hca *hca, const struct dc_source *source)
{
    struct dc_pool *pool = &hca->rdma->dc;
    struct dc_note *note;

    if (pool->ended.length >= DC_NOTES && !dc_note_make_room(hca)) {
        return NULL;
    }
    note = hca_alloc(hca, OBJ_DC_NOTE, sizeof(*note));
    if (!note && dc_note_make_room(hca)) {
        note = hca_alloc(hca, OBJ_DC_NOTE, sizeof(*note));
    }
    if (!note) {
        return NULL;
    }
    note->source = *source;
    note->ended.data = note;
    note->at = hca_now(hca);
    g_queue_push_tail_link(&pool->ended, &note->ended);
    g_hash_table_insert(pool->notes, &note->source, note);
    return note;
}

void dc_note_end(struct hca *hca, struct dc_note *note)
{
    GQueue *ended = &hca->rdma->dc.ended;

    note->responder = NULL;
    if (hca_now(hca) - note->at > DC_LATE_NS) {
        g_queue_push_head_link(ended, &note->ended); /* the session has been silent for long */
    } else {
        g_queue_push_tail_link(ended, &note->ended);
    }
}

void dc_note_begin(struct hca *hca, struct dc_note *note)
{
    g_queue_unlink(&hca->rdma->dc.ended, &note->ended);
}

bool dc_note_is_new(const struct dc_note *note, uint32_t session, uint64_t now)
{
    return session != note->session &&
           (now - note->at > DC_LATE_NS || psn_diff(session, note->session) > 0);
}

void dc_notes_clear(struct hca *hca)
{
    struct dc_pool *pool = &hca->rdma->dc;

    while (pool->ended.head) {
        dc_note_forget(hca, pool->ended.head->data);
    }
    g_assert(g_hash_table_size(pool->notes) == 0);
}
