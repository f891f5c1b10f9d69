/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes the lines of a control socket: one JSON value in each.
 *
 * The other end is a foreign process, so each line has a bound on its bytes and on its nesting.
 */
#ifndef HCASIM_WIRE_CONTROL_JSON_H
#define HCASIM_WIRE_CONTROL_JSON_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define CONTROL_DEPTH_MAX 32 /* objects and lists within each other */

#define CONTROL_ERROR     control_error_quark()
GQuark control_error_quark(void);

/* What is wrong, by the class that an answer names. An error of another domain is "GenericError".
 */
enum control_error {
    CONTROL_ERROR_GENERIC,
    CONTROL_ERROR_SYNTAX,    /* the line is no request */
    CONTROL_ERROR_COMMAND,   /* there is no such command */
    CONTROL_ERROR_ARGUMENTS, /* an argument is missing, unknown or wrong */
    CONTROL_ERROR_NOT_FOUND, /* what an argument names is not there */
    CONTROL_ERROR_BUSY,      /* no more clients are served */
    CONTROL_ERROR_TOO_LONG,  /* a line has more bytes than are allowed */
};

/* "GenericError", "SyntaxError" and so on. */
const char *control_error_class(const GError *err);
/* The code for a class that the other end names; an unknown class is CONTROL_ERROR_GENERIC. */
enum control_error control_error_code(const char *class_name);

/* Reads a line of len bytes. The caller drops the value with json_decref(). NULL: *err says why. */
json_t *control_parse(const char *line, size_t len, GError **err);

/* The value as a line, with its newline. The caller frees it. NULL: the value cannot be written. */
GString *control_line(const json_t *value);

#endif
