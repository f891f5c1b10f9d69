/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words of a step: some by position, some as key=value. Each word is taken once. A word that is
 * left over, or one that is missing, is a mistake in the script: nothing is wrong with the device.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_WORDS_H
#define HCASIM_TESTS_CONFORMANCE_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

struct words {
    char **word;      /* NULL-terminated; a taken word is marked */
    GPtrArray *known; /* what the step has looked for so far: flags, and keys with their "=" */
    void (*fail)(void *opaque, bool is_mistake, const char *why) G_GNUC_NORETURN;
    void *opaque;
};

/* A name and its number. */
struct words_name {
    const char *name; /* NULL ends a table */
    unsigned long value;
};

void words_split(struct words *w, const char *text);
void words_clear(struct words *w);
/* The device did not do what the step says. */
void words_fail(const struct words *w, const char *why, ...) G_GNUC_PRINTF(2, 3) G_GNUC_NORETURN;
/* The step itself is wrong: the script has a mistake. */
void words_mistake(const struct words *w, const char *why, ...) G_GNUC_PRINTF(2, 3) G_GNUC_NORETURN;

/* Returns the next word that was not taken, or NULL; valid until words_clear(). */
const char *words_next(struct words *w);
/* The same, but the word must be there; what: its purpose, for the message. */
const char *words_need(struct words *w, const char *what);
/* Takes this word if it is there. */
bool words_flag(struct words *w, const char *flag);
/* Takes key=value; returns NULL if it is not there. */
const char *words_value(struct words *w, const char *key);
/* The same, but it must be there; what: its purpose, for the message. */
const char *words_need_value(struct words *w, const char *key, const char *what);
/* The same as a number; returns usual if it is not there. */
uint64_t words_number(struct words *w, const char *key, uint64_t usual);
/* Looks up the value of key in a table; returns usual if the key is not there. */
unsigned long words_choice(struct words *w, const char *key, const struct words_name *table,
                           unsigned long usual);
/* Returns the words that are not taken yet, except key=value, as a line. */
char *words_without(const struct words *w, const char *key);
/* Unless all words were taken, a word is a mistake. The message names what the step knows. */
void words_end(const struct words *w);

/* Converts a single word to a number. */
uint64_t words_to_number(const struct words *w, const char *word);
unsigned long words_to_choice(const struct words *w, const char *word,
                              const struct words_name *table);
/* 10ns, 4.2us, 67ms, 2s */
uint64_t words_to_ns(const struct words *w, const char *word);
/* Returns "did you mean NAME?" or, if no name is near, "MANY: all names". all: NULL at its end. */
char *words_suggest(const char *word, const char *const *all, const char *many);
/* Returns the name of a value in a table, or "?". */
const char *words_name_of(const struct words_name *table, unsigned long value);

#endif
