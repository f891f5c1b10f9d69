/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that filters share: a port that wraps another one and passes everything through.
 *
 * A filter embeds struct wire_filter first, copies wire_filter_ops and wire_filter_client,
 * replaces the operations that it has an opinion on, and calls the originals for the rest. A
 * filter owns the port that it wraps: whoever closes the outermost port closes them all. Filters
 * stack in any order. A filter offers no flags of frames, since it looks at their bytes or changes
 * them; what it receives may have some.
 */
#ifndef HCASIM_WIRE_FILTER_H
#define HCASIM_WIRE_FILTER_H

#include "wire/port.h"

struct wire_filter {
    struct wire_port port; /* towards the client */
    struct wire_port *inner;
};

/*
 * Sets up f between its client (set later, as on any port) and inner. inside is the table of what
 * inner calls, with f as its first argument; it and ops live as long as f does.
 */
void wire_filter_init(struct wire_filter *f, struct wire_port *inner,
                      const struct wire_port_ops *ops, const struct wire_client *inside);

/* Pass-through. close() closes inner; freeing f is for the filter. */
extern const struct wire_port_ops wire_filter_ops;
extern const struct wire_client wire_filter_client;

#endif
