/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes one JSON object. A command that has a Python part hands its checked options over in such
 * an object, as one argument.
 */
#ifndef HCASIM_CLI_JSON_H
#define HCASIM_CLI_JSON_H

#include <glib.h>

/* A new object; the members are appended in the order of the calls. */
GString *cli_json_new(void);
void cli_json_text(GString *json, const char *name, const char *text);
void cli_json_number(GString *json, const char *name, guint64 number);
void cli_json_bool(GString *json, const char *name, gboolean value);
/* A value that is JSON already: an object or a list. */
void cli_json_value(GString *json, const char *name, const char *value);
/* A list of strings; NULL: an empty one. */
void cli_json_texts(GString *json, const char *name, const GPtrArray *texts);
/* A list of values that are JSON already. The caller frees the text. */
char *cli_json_list(const GPtrArray *values);
/* Ends the object and frees the GString. The caller frees the text. */
char *cli_json_end(GString *json);

#endif
