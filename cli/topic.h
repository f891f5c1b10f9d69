/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes the subjects that have a page of their own: help and man pages are made from it. */
#ifndef HCASIM_CLI_TOPIC_H
#define HCASIM_CLI_TOPIC_H

#include <glib.h>

/* A paragraph begins at a line's end. Behind the text come the items, which may be none. */
struct cli_section {
    const char *title;
    char *text;       /* may be NULL */
    GPtrArray *items; /* pairs: a term and what it means; all to be freed */
};

struct cli_topic {
    const char *name;
    const char *summary; /* in a line without a full stop */
    /* Makes the sections: struct cli_section. The caller unreferences the array, which frees them.
     */
    GPtrArray *(*sections)(void);
};

const struct cli_topic *cli_topic_at(unsigned i);
const struct cli_topic *cli_topic_find(const char *name);

/* An array that a topic fills. cli_section_add() takes the text; cli_item_add() appends to the
 * section that was added last, and takes both texts. */
GPtrArray *cli_sections_new(void);
void cli_section_add(GPtrArray *sections, const char *title, char *text);
void cli_item_add(GPtrArray *sections, char *term, char *text);

#endif
