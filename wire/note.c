/* SPDX-License-Identifier: BSD-2-Clause */
/* The words for the reasons of a note; see wire/note.h. */
#include "wire/note.h"

static const char *const note_words[] = {
#define NOTE_WORDS(name, words) [WIRE_NOTE_##name] = words,
    WIRE_NOTE_REASONS(NOTE_WORDS)
#undef NOTE_WORDS
};

const char *wire_note_words(enum wire_note_why why)
{
    return why < WIRE_NOTE_REASON_COUNT ? note_words[why] : "unknown";
}
