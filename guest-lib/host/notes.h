/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes that threads leave for the one that works, without a lock: which of some things wants
 * attention. A note that is there already need not be left again, so there are as many as there are
 * things, and what comes between two looks of the one that takes them costs it one.
 *
 * What was written before notes_leave() is seen by who takes the note, also if the note was there
 * before. No thread waits for another: one that is stopped in the midst of leaving a note keeps
 * back that one only, and only until somebody leaves the same note.
 */
#ifndef HCASIM_GUEST_LIB_HOST_NOTES_H
#define HCASIM_GUEST_LIB_HOST_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#define NOTES_ROOM  64 /* a bit each */
#define NOTES_TRIES 4  /* places for one note */

struct notes {
    uint64_t left;             /* which places may have one */
    uint64_t what[NOTES_ROOM]; /* 0: none */
};

/* Leaves a note that is not 0. False: its places have others. */
static inline bool notes_leave(struct notes *notes, uint64_t note)
{
    unsigned place = (unsigned)((note * 0x9e3779b97f4a7c15ull) >> 58);

    /* What the note is about was written before it is looked for: if it is still there, it is taken
     * after that. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < NOTES_TRIES; i++, place = (place + 1) % NOTES_ROOM) {
        uint64_t held = __atomic_load_n(&notes->what[place], __ATOMIC_SEQ_CST);

        if (!held && __atomic_compare_exchange_n(&notes->what[place], &held, note, false,
                                                 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            held = note;
        }
        if (held == note) {
            /* also for one who has left it, but has not come to say so */
            if (!(__atomic_load_n(&notes->left, __ATOMIC_SEQ_CST) >> place & 1)) {
                __atomic_fetch_or(&notes->left, 1ull << place, __ATOMIC_SEQ_CST);
            }
            return true;
        }
    }
    return false;
}

/* Whether there may be some. */
static inline bool notes_any(const struct notes *notes)
{
    return __atomic_load_n(&notes->left, __ATOMIC_SEQ_CST);
}

/* Takes all that are there, and calls take(opaque, note) for each. One at a time may do this. */
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
