/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that writes the frames that pass to a file for Wireshark.
 */
#ifndef HCASIM_WIRE_CAPTURE_H
#define HCASIM_WIRE_CAPTURE_H

#include "wire/port.h"

#include <glib.h>

/*
 * Wraps inner, and writes the frames of both directions to path (replaced if it exists): pcapng,
 * Ethernet, whole frames, nanoseconds, each marked inbound (received here) or outbound. A frame
 * that came without its ICRC (WIRE_NO_ICRC) is written with its ICRC. A frame is in the file before
 * the call that passed it on returns, so a killed process leaves a readable file. If the file
 * cannot take a frame (disk full), it keeps what it has, capturing ends with one warning, and
 * traffic goes on.
 *
 * clock_ns gives nanoseconds since 1970; its argument is clock_opaque. NULL: the system's real-time
 * clock is used.
 *
 * Returns NULL if the file cannot be made (*err); inner is then unchanged. Otherwise the new port
 * owns inner. Errors are of WIRE_ERROR (wire/open.h).
 */
struct wire_port *wire_capture_new(struct wire_port *inner, const char *path,
                                   uint64_t (*clock_ns)(void *clock_opaque), void *clock_opaque,
                                   GError **err);

#endif
