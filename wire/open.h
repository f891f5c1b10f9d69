/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens ports by URI.
 */
#ifndef HCASIM_WIRE_OPEN_H
#define HCASIM_WIRE_OPEN_H

#include "wire/port.h"

#include <glib.h>

#define WIRE_ERROR (wire_error_quark())
GQuark wire_error_quark(void);

/* The file of the wire shm:NAME of the user with the number UID is DIR/PREFIX and NAME. */
#define WIRE_SHM_DIR    "/dev/shm"
#define WIRE_SHM_PREFIX "hcasim-%lu-" /* with UID */
#define WIRE_NAME_MAX   200

enum wire_error {
    WIRE_ERROR_URI,   /* the URI has no known form */
    WIRE_ERROR_IO,    /* a system call failed */
    WIRE_ERROR_TAKEN, /* another host has the number, or others have all numbers */
    WIRE_ERROR_NONE,  /* nobody waits to be accepted */
};

/*
 * Opens the port that a URI names. NULL: *err says why. For a bad URI it also lists the known
 * forms.
 *
 * shm:NAME   the Ethernet segment NAME of this user on this machine, in /dev/shm. NAME: letters,
 *            digits, '.', '_', '-', not beginning with '.'.
 * shm:/PATH  the segment whose file is PATH. Any process that may write the file may join: a group
 *            shares a segment by creating an empty file with the access rights that it wants.
 *
 * The forms of sockets are in wire/socket/socket.h. The paragraphs below describe segments.
 *
 * A segment's files are removed with its last member or number. The next wire_open() of any NAME
 * removes what killed processes left behind in /dev/shm.
 *
 * A segment is a switch. A unicast frame goes to the member that last sent with that source
 * address, without loss: a full receiver makes the sender wait. Other frames go to all members.
 * They may overtake unicast frames or be overtaken by them. A receiver misses such a frame
 * (counted, rx_missed) if the sender has written some 250 KB after it. A segment has room for 1,024
 * members. The link is up from opening to closing. A member that lives but does not run pauses its
 * senders (wire_is_paused()).
 */
struct wire_port *wire_open(const char *uri, GError **err);

/* Whether a URI has a form that wire_open() knows. */
bool wire_is_uri(const char *uri);

/*
 * A number from 1 to WIRE_NUMBER_MAX on the wire that a URI names, for addresses that must differ.
 * No other process gets the same number until it is released or its process has ended, however it
 * ended.
 * On a wire of sockets, whose hosts are not known, `wanted` is the answer, and 0 is refused.
 * All processes that can join the wire see the number taken, in whatever container they are. If
 * wanted is 0, the lowest free number is taken. NULL: *err says why. A child of fork() does not
 * hold its parent's number.
 */
#define WIRE_NUMBER_MAX 65534
struct wire_number;

struct wire_number *wire_number_take(const char *uri, unsigned wanted, GError **err);
unsigned wire_number_get(const struct wire_number *number);
/* False: this is a child of fork(), or the program has closed the descriptor that the number
 * needs. */
bool wire_number_is_held(const struct wire_number *number);
void wire_number_release(struct wire_number *number);

/* The lowest number above `beyond` that is free at the moment. The call takes and makes nothing and
 * does not wait, so the next caller may get the same answer. If there is no such wire yet, the
 * answer is beyond + 1. 0: no number is free. */
unsigned wire_number_look(const char *uri, unsigned beyond);

/* Removes the wires of this user on which no host lives, as wire_open() does for its caller. Adds
 * the paths of the removed files to `removed` (freed with g_free()), which may be NULL. */
void wire_sweep(GPtrArray *removed);

/* The same for one wire. An empty file that a user has made for a group (shm:/PATH) stays. False:
 * *err says that the URI has no known form. */
bool wire_clean(const char *uri, GPtrArray *removed, GError **err);

/* The forms of URI, one per line, for help texts. */
const char *wire_uri_help(void);

#endif
