/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A note about a packet that is sent: which queue sends it, for which WQE or request, and why now.
 *
 * Only the sender knows this; it is not in the packet. The sender hands a note to its port for the
 * frame that it has reserved (wire_note() in wire/port.h), and to its trace. It makes notes only if
 * the port or the trace wants them.
 */
#ifndef HCASIM_WIRE_NOTE_H
#define HCASIM_WIRE_NOTE_H

#include <stdbool.h>
#include <stdint.h>

/* Why a packet is sent, with the words that a reader sees. The first reason is that of each packet
 * that is not repeated. The reasons up to DUPLICATE are reasons to send a packet again. */
#define WIRE_NOTE_REASONS(X)                                                                       \
    X(FIRST, "first time")                                                                         \
    X(ACK_TIMEOUT, "repeated: ACK timeout")                                                        \
    X(NAK_SEQUENCE, "repeated: NAK PSN sequence error")                                            \
    X(IMPLIED_NAK, "repeated: an earlier response is missing")                                     \
    X(RNR, "repeated: RNR NAK")                                                                    \
    X(PAGE, "repeated: a page is there again")                                                     \
    X(NO_RESPONDER, "repeated: the target had no free responder")                                  \
    X(DUPLICATE, "repeated: the request came again")                                               \
    X(REFUSES, "refuses the request")                                                              \
    X(NOT_READY, "not ready for the request")                                                      \
    X(GAP, "requests are missing before this PSN")                                                 \
    X(CONNECTS, "opens or closes a DC session")                                                    \
    X(CONGESTION, "congestion notification")

enum wire_note_why {
#define WIRE_NOTE_VALUE(name, words) WIRE_NOTE_##name,
    WIRE_NOTE_REASONS(WIRE_NOTE_VALUE)
#undef WIRE_NOTE_VALUE
    WIRE_NOTE_REASON_COUNT
};

struct wire_note {
    uint32_t function; /* number of the function on its card, from 0 */
    uint32_t qpn;      /* the sender's own QP, or Ethernet send queue; 0: none */
    bool is_response;
    /* a request: the index of the WQE in its send queue, and the first PSN of its message */
    bool has_wqe; /* false: the device itself made the request */
    bool no_psn;  /* the frame is none of a message with PSNs */
    uint16_t wqe;
    uint32_t first_psn;
    uint32_t request_psn; /* a response: the PSN of the request */
    uint8_t why;          /* enum wire_note_why */
    uint8_t retry;        /* the number of retries in a row, if the packet is repeated */
};

/* Returns the words for a reason, such as "repeated: ACK timeout". */
const char *wire_note_words(enum wire_note_why why);

/* Whether the packet was sent before. */
static inline bool wire_note_repeats(const struct wire_note *note)
{
    return note->why > WIRE_NOTE_FIRST && note->why <= WIRE_NOTE_DUPLICATE;
}

#endif
