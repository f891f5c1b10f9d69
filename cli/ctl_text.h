/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shows a JSON value as text for people: an object as lines "name: value", a list of objects as a
 * table, other lists as words. The value comes from another process: what could move a terminal's
 * cursor is shown as '?'.
 */
#ifndef HCASIM_CLI_CTL_TEXT_H
#define HCASIM_CLI_CTL_TEXT_H

#include <glib.h>
#include <jansson.h>

/* Appends the value, as whole lines that begin with indent blanks. An empty object has no line. */
void ctl_text(GString *to, const json_t *value, unsigned indent);
/* Text without special characters. The caller frees it. */
char *ctl_plain(const char *text);

#endif
