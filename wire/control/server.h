/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control socket: a Unix socket on which other processes of this user give commands, a line of
 * JSON for each (command.h). A client that connects is first sent {"hcasim": {"version": ...}}.
 *
 * The server has no thread. Its owner polls control_fd(), and calls control_run() when that is
 * readable; the handlers of the commands run in that call. No call waits.
 *
 * Bounds: CONTROL_CLIENTS clients; CONTROL_LINE_MAX bytes of a request; CONTROL_DEPTH_MAX levels of
 * its JSON; CONTROL_ANSWER_MAX bytes of an answer; one request of each client in a call of
 * control_run(). The next request of a client is not read before its last answer has been sent.
 *
 * Who ends each wait: a client that does not read its answer waits for itself. If all places are
 * taken, the next client gets the place of the one that has left an answer unread for longest, or
 * else an error, and is closed. A client that has sent half a line, or none, stays until it goes.
 *
 * The file can be used by its owner alone (mode 0600). A file at which no process listens any more
 * is replaced; a live one is refused. A child of fork() has no part in the socket (own_fd.h):
 * there, control_run() does nothing, and control_close() leaves the file alone.
 */
#ifndef HCASIM_WIRE_CONTROL_SERVER_H
#define HCASIM_WIRE_CONTROL_SERVER_H

#include "wire/control/command.h"

#define CONTROL_CLIENTS  16
#define CONTROL_LINE_MAX (64u << 10)

struct control;

/* Listens at path. The server has only query-commands until control_add(). NULL: *err. */
struct control *control_open(const char *path, GError **err);
/* Adds a table, which must live as long as the server. opaque is the first argument of its
 * handlers. */
void control_add(struct control *control, const struct control_command *table, void *opaque);
/* A descriptor that is readable when control_run() has something to do. */
int control_fd(const struct control *control);
/* Takes new clients, runs requests, sends answers. A handler must not call control_run() or
 * control_close(). False: the socket is gone, because this is a child of fork(), or the program has
 * closed descriptors that it does not know. */
bool control_run(struct control *control);
/* Removes the file. To be called on any thread when the process ends without control_close(). */
void control_unlink(struct control *control);
/* Removes a file that a killed process left. Other files stay. */
void control_remove_stale(const char *path);
/* Closes all clients and removes the file. */
void control_close(struct control *control);

#endif
