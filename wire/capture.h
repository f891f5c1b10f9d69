/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that writes the frames that pass it to a file for Wireshark.
 */
#ifndef HCASIM_WIRE_CAPTURE_H
#define HCASIM_WIRE_CAPTURE_H

#include "wire/capture_blocks.h"
#include "wire/port.h"

#include <glib.h>

struct wire_capture_options {
    /* Nanoseconds since 1970; NULL: the system's real-time clock. */
    uint64_t (*clock_ns)(void *clock_opaque);
    void *clock_opaque;
    const char *name;         /* the interface's name in the file; NULL: hcasim */
    const char *run;          /* the frames are appended to those of the same run; NULL: to none */
    struct capture_ring ring; /* size 0: one file, which grows */
    /* What senders say of their packets (wire/note.h) is written as comments. process: the word
     * that stands there for whoever drives the device; NULL: there is none. */
    bool comments;
    const char *process;
};

/*
 * Wraps inner, and writes the frames of both directions to path: pcapng, Ethernet, whole frames,
 * nanoseconds, each marked inbound (received here) or outbound. If path exists it is replaced,
 * unless it is of the same run, or another port captures to it at the moment: then this port is one
 * more interface in it (wire/capture_file.h). path may be a named pipe, for a reader that shows the
 * frames while they come (wire/capture_pipe.h).
 *
 * A frame that came without its ICRC (WIRE_NO_ICRC) is written with it. Every frame is in the file
 * when the call that passed the frame on returns, so a killed process leaves a readable file. When
 * the file cannot take a frame (disk full), it keeps what it has, capturing ends with one warning,
 * and traffic goes on.
 *
 * options may be NULL. A result of NULL means that the file cannot be made (*err, of WIRE_ERROR,
 * wire/open.h); inner is then as before. Otherwise the new port owns inner.
 */
struct wire_port *wire_capture_new(struct wire_port *inner, const char *path,
                                   const struct wire_capture_options *options, GError **err);

/*
 * The comment about a packet that is sent: words key=value, and behind them why=REASON
 * (docs/howto/capture.md). process may be NULL.
 */
#define WIRE_CAPTURE_NOTE 200
void wire_capture_note_text(char text[static WIRE_CAPTURE_NOTE], const struct wire_note *note,
                            const char *process);

/*
 * For filters and simulations that cause faults, and therefore know the fate of frames. capture is
 * a port that wire_capture_new() made. Wireshark shows the texts as packet comments; of a text, the
 * first WIRE_CAPTURE_COMMENT bytes count.
 *
 * wire_capture_comment(): the next frame that passes, in either direction, gets the comment.
 * wire_capture_lost(): writes a frame that does not pass, because it was lost.
 * wire_capture_around(): returns the capture that wraps a port, or NULL.
 */
#define WIRE_CAPTURE_COMMENT 120
struct wire_port *wire_capture_around(const struct wire_port *port);
void wire_capture_comment(struct wire_port *capture, const char *text);
void wire_capture_lost(struct wire_port *capture, const uint8_t *frame, size_t len, bool inbound,
                       const char *text);

/*
 * For a filter around the capture that decides what becomes of received frames. After
 * wire_capture_leave_received() the capture writes no received frames by itself. The filter calls
 * wire_capture_arrived() for each that it passes on, and wire_capture_lost() for the others. text:
 * a comment, or NULL. wire_capture_take_comment() takes away the comment that the next frame would
 * get, for a frame that is passed on later; the caller frees it. NULL: there is none.
 */
void wire_capture_leave_received(struct wire_port *capture);
void wire_capture_arrived(struct wire_port *capture, const uint8_t *frame, size_t len,
                          unsigned flags, const char *text);
char *wire_capture_take_comment(struct wire_port *capture);

#endif
