/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire/shm/fdb.h. Each change of a place is a compare-and-swap from the value that was read. If
 * the value has changed meanwhile, the change is tried again.
 */
#include "wire/shm/fdb.h"

enum {
    TRIES =
        8, /* then another process changes the table all the time, and the address stays unknown */
};

static uint64_t shm_fdb_place_word(uint64_t mac, unsigned id)
{
    return mac << SHM_ID_BITS | (id + 1);
}

static bool shm_fdb_is_live(const struct shm_segment *seg, uint64_t word)
{
    unsigned id = shm_tag_id(word);

    return id < SHM_MEMBERS &&
           atomic_load_explicit(&seg->header->member[id].attached, memory_order_acquire);
}

/* The first place of a window: the beginning of a cache line. */
static uint32_t shm_fdb_window_of(uint64_t mac)
{
    return (uint32_t)(mac * 0x9e3779b97f4a7c15ull >> 40) % SHM_FDB & ~7u;
}

static _Atomic uint64_t *shm_fdb_place_at(const struct shm_segment *seg, uint32_t window,
                                          unsigned i)
{
    return &seg->header->fdb[(window + i) % SHM_FDB];
}

unsigned shm_fdb_find(const struct shm_segment *seg, uint64_t mac)
{
    uint32_t window = shm_fdb_window_of(mac);

    for (unsigned i = 0; i < SHM_FDB_WINDOW; i++) {
        uint64_t word =
            atomic_load_explicit(shm_fdb_place_at(seg, window, i), memory_order_acquire);

        if (word >> SHM_ID_BITS == mac && shm_fdb_is_live(seg, word)) {
            return shm_tag_id(word);
        }
    }
    return SHM_MEMBERS;
}

static void shm_fdb_free_place(struct shm_segment *seg, uint32_t place)
{
    _Atomic uint64_t *at = &seg->header->fdb[place % SHM_FDB];
    uint64_t word = atomic_load(at);

    if (shm_tag_id(word) == seg->id) {
        atomic_compare_exchange_strong(at, &word, 0);
    }
}

/* Remembers that this member uses a place. Replaces the place that it has had longest. */
static void shm_fdb_remember(struct shm_segment *seg, uint32_t place)
{
    _Atomic uint32_t *mac = seg->header->member[seg->id].mac;
    uint32_t before;

    for (unsigned i = 0; i < SHM_MACS; i++) {
        if (atomic_load(&mac[i]) == place + 1) {
            return;
        }
    }
    before = atomic_exchange(&mac[seg->next_mac % SHM_MACS], place + 1);
    seg->next_mac++;
    if (before) {
        shm_fdb_free_place(seg, before - 1);
    }
}

/* The index of the place for mac in its window: its present place; else a free place; else one in
 * use. */
static unsigned shm_fdb_choose(const struct shm_segment *seg, uint64_t mac, uint32_t window)
{
    unsigned place = SHM_FDB_WINDOW;

    for (unsigned i = 0; i < SHM_FDB_WINDOW; i++) {
        uint64_t word = atomic_load(shm_fdb_place_at(seg, window, i));

        if (word >> SHM_ID_BITS == mac) {
            return i;
        }
        if (place == SHM_FDB_WINDOW && !shm_fdb_is_live(seg, word)) {
            place = i;
        }
    }
    return place < SHM_FDB_WINDOW ? place : (unsigned)(mac % SHM_FDB_WINDOW);
}

void shm_fdb_learn(struct shm_segment *seg, uint64_t mac)
{
    uint32_t window = shm_fdb_window_of(mac);
    bool stored = false;
    unsigned place = 0;

    for (unsigned i = 0; i < TRIES && !stored; i++) {
        uint64_t word;

        place = shm_fdb_choose(seg, mac, window);
        word = atomic_load(shm_fdb_place_at(seg, window, place));
        shm_fdb_remember(seg, (window + place) % SHM_FDB);
        stored = atomic_compare_exchange_strong(shm_fdb_place_at(seg, window, place), &word,
                                                shm_fdb_place_word(mac, seg->id));
    }
    /* Two members that learned the same address at the same time may have chosen different
     * places. */
    for (unsigned i = 0; i < SHM_FDB_WINDOW; i++) {
        uint64_t word = atomic_load(shm_fdb_place_at(seg, window, i));

        if (i != place && word >> SHM_ID_BITS == mac) {
            atomic_compare_exchange_strong(shm_fdb_place_at(seg, window, i), &word, 0);
        }
    }
    atomic_fetch_add(&seg->header->fdb_gen, 1);
}

void shm_fdb_forget(struct shm_segment *seg)
{
    _Atomic uint32_t *mac = seg->header->member[seg->id].mac;

    for (unsigned i = 0; i < SHM_MACS; i++) {
        uint32_t place = atomic_exchange(&mac[i], 0);

        if (place) {
            shm_fdb_free_place(seg, place - 1);
        }
    }
}
