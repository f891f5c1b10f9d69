/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conformance scripts as files: cases, each with the rules that it checks and its steps. What a
 * step's words mean is play.h's.
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
    char *text;      /* without comment and space around it; never empty */
};

struct script_case {
    char *file;
    unsigned line;
    char *title;
    GPtrArray *rules; /* char *; at least one */
    GPtrArray *steps; /* struct script_line *; at least one */
};

/* The cases of a file (struct script_case *), in its order; NULL with *err: it cannot be read, or a
 * line is where none of its kind may be. */
GPtrArray *script_read(const char *path, GError **err);

#endif
