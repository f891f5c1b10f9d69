/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements spelling.h. */
#include "guest-lib/verbs/kernel/spelling.h"
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define MOST_LETTERS 32 /* longer words have no neighbours */
#define SLIP_LETTERS 3  /* one slip for so many letters */
#define LEAST_PART   3  /* letters of a word that is a part of a name */

/* The least number of slips that make one word of the other: the distance of Damerau and
 * Levenshtein in which no part is changed twice. */
static unsigned spelling_distance(const char *a, const char *b)
{
    unsigned row[3][MOST_LETTERS + 1];
    unsigned *last = row[0], *before = row[1], *now = row[2];
    size_t len_a = strlen(a), len_b = strlen(b);

    if (len_a > MOST_LETTERS || len_b > MOST_LETTERS) {
        return G_MAXUINT;
    }
    for (unsigned j = 0; j <= len_b; j++) {
        last[j] = j;
    }
    for (unsigned i = 1; i <= len_a; i++) {
        unsigned *oldest = before;

        now[0] = i;
        for (unsigned j = 1; j <= len_b; j++) {
            now[j] = MIN(MIN(now[j - 1], last[j]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = MIN(now[j], before[j - 2] + 1);
            }
        }
        before = last;
        last = now;
        now = oldest;
    }
    return last[len_b];
}

static unsigned spelling_common(const char *a, const char *b)
{
    unsigned n = 0;

    while (a[n] && a[n] == b[n]) {
        n++;
    }
    return n;
}

const char *spelling_find_slip(const char *word, const char *const *names)
{
    unsigned least = (unsigned)(strlen(word) / SLIP_LETTERS);
    const char *found = NULL;

    for (; *names; names++) {
        unsigned distance = spelling_distance(word, *names);

        if (distance < least ||
            (distance == least && least &&
             (!found || spelling_common(word, *names) > spelling_common(word, found)))) {
            least = distance;
            found = *names;
        }
    }
    return found;
}

/* Whether the longer text begins with the shorter one. is_whole: a word of it ends there. */
static bool spelling_begins(const char *longer, const char *shorter, bool is_whole)
{
    size_t len = strlen(shorter);

    return len >= LEAST_PART && !strncmp(longer, shorter, len) &&
           (!is_whole || longer[len] == '_' || longer[len] == '-');
}

const char *spelling_guess(const char *word, const char *const *names)
{
    const char *slip = spelling_find_slip(word, names);

    for (; *names && !slip; names++) {
        if (spelling_begins(*names, word, false) || spelling_begins(word, *names, true)) {
            slip = *names;
        }
    }
    return slip;
}
