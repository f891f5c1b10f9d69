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
 * A segment's files go with its last member. What killed processes leave behind in /dev/shm is
 * removed by the next wire_open() of any NAME.
 *
 * A segment is a switch: a unicast frame goes to the member that last sent with that source
 * address, without loss (a full receiver makes the sender wait). Other frames go to all members;
 * a full one misses such a frame (counted, tx_no_room). The link is up from opening to closing. A
 * member that lives but does not run pauses its senders (wire_is_paused()).
 */
struct wire_port *wire_open(const char *uri, GError **err);

/* The forms of URI, one per line, for help texts. */
const char *wire_uri_help(void);

#endif
