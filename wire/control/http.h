/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers HTTP requests for one text, for Prometheus.
 *
 * One request is answered on a connection, and one connection is served at a time. A client has
 * HTTP_PATIENCE_MS to send its request, of at most HTTP_HEAD_MAX bytes, and as long to take the
 * answer; so no client holds up the others for longer.
 */
#ifndef HCASIM_WIRE_CONTROL_HTTP_H
#define HCASIM_WIRE_CONTROL_HTTP_H

#include <glib.h>

#define HTTP_PATIENCE_MS 2000
#define HTTP_HEAD_MAX    8192

/* Serves one client of the listening socket, if there is one. text() makes the text; the caller of
 * it frees the text. */
void http_serve(int listener, GString *(*text)(void *opaque), void *opaque);
/* The status with which the head of a request, which ends at len, is answered: 200, 400, 404, 405.
 */
unsigned http_status(const char *head, gsize len);

#endif
