/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that all filters share: a port that wraps another one and passes everything through.
 *
 * A filter embeds struct wire_filter first, copies wire_filter_ops and wire_filter_client, replaces
 * the operations that it changes, and calls the originals for the rest. A filter owns the port that
 * it wraps: closing the outermost port closes all of them. Filters stack in any order. A filter
 * offers no frame flags, because it reads or changes the bytes of frames; frames that it receives
 * may have flags.
 */
#ifndef HCASIM_WIRE_FILTER_H
#define HCASIM_WIRE_FILTER_H

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

/* These pass everything through. close() closes inner; the filter itself frees f. */
extern const struct wire_port_ops wire_filter_ops;
extern const struct wire_client wire_filter_client;

#endif
