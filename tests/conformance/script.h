/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads conformance scripts: cases, each with the rules that it checks and its steps. play.h says
 * what the words of a step mean.
 *
 *   # a comment, to the end of the line
 *   case  What holds, in a sentence
 *   rule  9.7.5.2.8  What the specification says, in our words
 *   a step in each further line, up to the next case
 */
#ifndef HCASIM_TESTS_CONFORMANCE_SCRIPT_H
#define HCASIM_TESTS_CONFORMANCE_SCRIPT_H

#include <glib.h>

struct script_line {
    unsigned number; /* in the file, from 1 */
    char *text;      /* without comment and surrounding space; never empty */
};

struct script_case {
    char *file;
    unsigned line;
    char *title;
    GPtrArray *rules; /* char *; at least one */
    GPtrArray *steps; /* struct script_line *; at least one */
};

/* Returns the cases of a file (struct script_case *), in its order. Returns NULL with *err if the
 * file cannot be read or a line is out of place. */
GPtrArray *script_read(const char *path, GError **err);

#endif
