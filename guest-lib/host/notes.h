/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes that threads leave without a lock for the thread that works: they say which of some things
 * need attention. A note that is already there need not be left again, so there are at most as many
 * notes as things, and the worker handles each thing once, however often it was noted since it last
 * took the notes.
 *
 * The thread that takes a note sees everything that was written before notes_leave(), even if the
 * note was there before. No thread waits for another: if a thread is stopped while it leaves a
 * note, only that note is delayed, and only until another thread leaves the same note.
 */
#ifndef HCASIM_GUEST_LIB_HOST_NOTES_H
#define HCASIM_GUEST_LIB_HOST_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#define NOTES_ROOM  64 /* one bit each */
#define NOTES_TRIES 4  /* places for one note */

struct notes {
    uint64_t left;             /* bitmap of the places that may have a note */
    uint64_t what[NOTES_ROOM]; /* 0: none */
};

/* Leaves a note that is not 0. False: all its places have other notes. */
static inline bool notes_leave(struct notes *notes, uint64_t note)
{
    unsigned place = (unsigned)((note * 0x9e3779b97f4a7c15ull) >> 58);

    /* What the note is about was written before this thread looks for the note: if the note is
     * still there, it is taken after that write. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < NOTES_TRIES; i++, place = (place + 1) % NOTES_ROOM) {
        uint64_t held = __atomic_load_n(&notes->what[place], __ATOMIC_SEQ_CST);

        if (!held && __atomic_compare_exchange_n(&notes->what[place], &held, note, false,
                                                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            held = note;
        }
        if (held == note) {
            /* also if another thread left the note but has not set this bit yet */
            if (!(__atomic_load_n(&notes->left, __ATOMIC_SEQ_CST) >> place & 1)) {
                __atomic_fetch_or(&notes->left, 1ull << place, __ATOMIC_SEQ_CST);
            }
            return true;
        }
    }
    return false;
}

/* Whether there may be notes. */
static inline bool notes_any(const struct notes *notes)
{
    return __atomic_load_n(&notes->left, __ATOMIC_SEQ_CST);
}

/* Takes all notes, and calls take(opaque, note) for each. One thread at a time may do this. */
static inline void notes_take(struct notes *notes, void (*take)(void *opaque, uint64_t note),
                              void *opaque)
{
    uint64_t left = __atomic_exchange_n(&notes->left, 0, __ATOMIC_SEQ_CST);

    for (; left; left &= left - 1) {
        uint64_t note =
            __atomic_exchange_n(&notes->what[__builtin_ctzll(left)], 0, __ATOMIC_SEQ_CST);

        if (note) {
            take(opaque, note);
        }
    }
}

#endif
