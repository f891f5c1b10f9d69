/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports by name.
 */
#ifndef HCASIM_WIRE_OPEN_H
#define HCASIM_WIRE_OPEN_H

#include "wire/port.h"

#include <glib.h>

#define WIRE_ERROR (wire_error_quark())
GQuark wire_error_quark(void);

enum wire_error {
    WIRE_ERROR_URI, /* the URI has no form that is known */
    WIRE_ERROR_IO,  /* the system refused */
};

/*
 * Opens the port that a URI names. NULL: *err says why and, for a bad URI, which forms there are.
 *
 * shm:NAME   the Ethernet segment NAME of this user on this machine, in /dev/shm. NAME: letters,
 *            digits, '.', '_', '-', not beginning with '.'.
 * shm:/PATH  the segment whose file is PATH. Whoever may write the file may join: a group shares
 *            a segment by creating an empty file with the rights it wants.
 *
 * A segment's files go with its last member or number. What killed processes leave behind in
 * /dev/shm is removed by the next wire_open() of any NAME.
 *
 * A segment is a switch: a unicast frame goes to the member that last sent with that source
 * address, without loss (a full receiver makes the sender wait). Other frames go to all members,
 * and may overtake those to one or be overtaken; who comes late, after some 250 KB of the sender's,
 * misses such a frame (counted, rx_missed). A segment has room for 1,024 members. The link is up
 * from opening to closing. A member that lives but does not run pauses its senders
 * (wire_is_paused()).
 */
struct wire_port *wire_open(const char *uri, GError **err);

/*
 * A number from 1 to WIRE_NUMBER_MAX on the wire that a URI names, for addresses that must differ:
 * nobody else has it until it is released, or its process has ended, however that came. All
 * who can join the wire see it taken, in whatever container they are. wanted: 0: the lowest that is
 * free. NULL: *err says why. A child of fork() does not have its parent's.
 */
#define WIRE_NUMBER_MAX 65534
struct wire_number;

struct wire_number *wire_number_take(const char *uri, unsigned wanted, GError **err);
unsigned wire_number_get(const struct wire_number *number);
/* False: in a child of fork(), or the program has closed the descriptor that it needs. */
bool wire_number_is_held(const struct wire_number *number);
void wire_number_release(struct wire_number *number);

/* The lowest number greater than beyond that is free just now. Nothing is taken or made, nobody is
 * waited for, and the next one may be told the same. 0: there is none, or no such wire. */
unsigned wire_number_look(const char *uri, unsigned beyond);

/* The forms of URI, one per line, for help texts. */
const char *wire_uri_help(void);

#endif
