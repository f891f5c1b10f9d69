/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a switch in real time: sockets at which ports connect, ports of any URI, and one thread that
 * waits for all of them.
 *
 * Who ends a wait: a port's descriptor, a listening socket, a descriptor of the owner
 * (switch_loop_watch()), or the switch's next deadline.
 */
#ifndef HCASIM_WIRE_SWITCH_LOOP_H
#define HCASIM_WIRE_SWITCH_LOOP_H

#include "wire/capture_blocks.h"
#include "wire/switch/switch.h"

struct switch_loop;

/* Told to people, a line each: an end that was refused, a port that was lost. */
typedef void switch_loop_say_fn(void *opaque, const char *line);

/* The switch belongs to the loop. NULL: *err says why. */
struct switch_loop *switch_loop_new(const struct wire_switch_config *config,
                                    switch_loop_say_fn *say, void *opaque, GError **err);
/* Closes all ports and sockets. */
void switch_loop_free(struct switch_loop *loop);
struct wire_switch *switch_loop_switch(struct switch_loop *loop);

/* Captures the frames of all ports to come to a file (wire/capture.h): each port is an interface of
 * it. A port that the file cannot take is not made. To be called once. */
void switch_loop_capture(struct switch_loop *loop, const char *path,
                         const struct capture_ring *ring);

/* Each end that connects to /PATH or HOST:PORT becomes a port, until it goes. settings: pairs of
 * key and value for these ports (wire_switch_set(); or "fault", whose value is rules of
 * wire/fault/fault.h for the frames of the port), NULL at the end. The socket's file gives
 * access to the segment: whoever may write to it may join. */
bool switch_loop_listen(struct switch_loop *loop, const char *at, const char *const *settings,
                        GError **err);

/* A port of any URI (wire/open.h). It stays when its link is lost. Returns its number; 0 with *err.
 */
unsigned switch_loop_add(struct switch_loop *loop, const char *uri, const char *const *settings,
                         GError **err);
bool switch_loop_remove(struct switch_loop *loop, unsigned number, GError **err);

/* Calls ready() when the descriptor is readable. It may call any function of the loop but
 * switch_loop_free(). */
bool switch_loop_watch(struct switch_loop *loop, int fd, void (*ready)(void *opaque), void *opaque,
                       GError **err);

/* Runs until switch_loop_end(), which ready() may call. */
void switch_loop_run(struct switch_loop *loop);
void switch_loop_end(struct switch_loop *loop);

/* Splits "WHAT,KEY=VALUE,..." into WHAT and the settings, for switch_loop_listen() and
 * switch_loop_add(). Values may contain commas. False with *err: a value is wrong. */
bool switch_loop_split(const char *text, char **what, char ***settings, GError **err);

#endif
