/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the table of `hcasim top` as text. */
#ifndef HCASIM_CLI_TOP_SCREEN_H
#define HCASIM_CLI_TOP_SCREEN_H

#include <glib.h>

/* The column that a key sorts by. False: the key is of no column. */
gboolean top_screen_sort(char key);
/* The titles and the rows of struct top_row, each a line of at most `width` columns without its
 * newline. The caller frees it with g_strfreev(). */
char **top_screen_lines(const GPtrArray *rows, unsigned width);
/* One line: the keys. */
const char *top_screen_keys(void);

#endif
