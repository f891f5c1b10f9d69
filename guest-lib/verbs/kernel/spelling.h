/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the name that a user may have meant with a name that does not exist. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_SPELLING_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_SPELLING_H

/* Returns the name from which the word differs by slips of typing: for each three of its letters,
 * one letter that is wrong, missing or too much, or two neighbours that are exchanged. Among
 * several names, the nearest one, and then the one with the longest common beginning. NULL: there
 * is none. names: NULL at the end. */
const char *spelling_find_slip(const char *word, const char *const *names);

/* The same, or a name that begins with the word, or with which the word begins and goes on with "_"
 * or "-". */
const char *spelling_guess(const char *word, const char *const *names);

#endif
