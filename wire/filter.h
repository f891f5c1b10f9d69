/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that all filters share: a port that wraps another one and passes everything through.
 *
 * A filter embeds struct wire_filter first, copies wire_filter_ops and wire_filter_client
 * (wire_filter_make_tables()), replaces the operations that it changes, and calls the originals for
 * the rest. A filter owns the port that it wraps: closing the outermost port closes all of them.
 * Filters stack in any order. A filter offers no frame flags, because it reads or changes the bytes
 * of frames; frames that it receives may have flags.
 */
#ifndef HCASIM_WIRE_FILTER_H
#define HCASIM_WIRE_FILTER_H

#include <glib.h>

#include "wire/port.h"

struct wire_filter {
    struct wire_port port; /* towards the client */
    struct wire_port *inner;
};

/*
 * Sets up f between its client (set later, as on any port) and inner. inside is the table of
 * callbacks that inner calls, with f as their first argument. inside and ops live as long as f.
 */
void wire_filter_init(struct wire_filter *f, struct wire_port *inner,
                      const struct wire_port_ops *ops, const struct wire_client *inside);

/* The tables of a kind of filter. A static variable of this type is zero, and is filled by
 * wire_filter_make_tables(). */
struct wire_filter_tables {
    struct wire_port_ops ops;
    struct wire_client inside;
    gsize is_made;
};

/* Fills the tables at the first call: copies the tables that pass everything through, and then
 * calls replace() for the operations that this kind of filter changes. Any thread may call this. */
void wire_filter_make_tables(struct wire_filter_tables *tables,
                             void (*replace)(struct wire_filter_tables *tables));

/* These pass everything through. close() closes inner; the filter itself frees f. */
extern const struct wire_port_ops wire_filter_ops;
extern const struct wire_client wire_filter_client;

#endif
