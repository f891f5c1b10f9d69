/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a control socket, for a program that waits for its answers.
 *
 * Each call ends after the time that control_connect() was given, whatever the server does. What
 * the server sends is foreign: a line has at most CONTROL_ANSWER_MAX bytes and a bounded nesting.
 */
#ifndef HCASIM_WIRE_CONTROL_CLIENT_H
#define HCASIM_WIRE_CONTROL_CLIENT_H

#include "wire/control/json.h"

#define CONTROL_TIMEOUT_MS 5000 /* the usual patience */

struct control_client;

/* Connects, and reads the greeting. timeout_ms: how long this call, and each other one, may take.
 * NULL: *err says why, with the path. CONTROL_ERROR_NOT_FOUND: no process listens there. */
struct control_client *control_connect(const char *path, unsigned timeout_ms, GError **err);
/* What the server says that it is: the greeting's value of "hcasim". */
const json_t *control_greeting(const struct control_client *client);
/*
 * Runs a command. arguments: an object, or NULL; the caller keeps it. Returns the value of the
 * answer, which the caller drops with json_decref(). NULL: *err is the error that the server
 * reports, with its message, or says why there is no answer; no further call then succeeds if the
 * server broke the protocol or was too slow.
 */
json_t *control_call(struct control_client *client, const char *name, json_t *arguments,
                     GError **err);
void control_disconnect(struct control_client *client);

#endif
