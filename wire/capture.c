/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that captures what passes (wire/capture_file.h writes the file). Nothing is buffered in
 * this process.
 */
#include "wire/capture.h"
#include "wire/cancel.h"
#include "wire/filter.h"
#include "wire/open.h"
#include "wire/encap/roce.h"

#include <string.h>
#include <time.h>
#include "wire/capture_file.h"

enum {
    ETH_MIN = 14,
};

struct capture {
    struct wire_filter filter;
    uint64_t (*clock_ns)(void *opaque);
    void *clock_opaque;
    struct capture_file *file;
    const uint8_t *sent;                    /* the frame that the client is building, or NULL */
    char comment[WIRE_CAPTURE_COMMENT + 1]; /* of the next frame; empty: none */
    bool leaves_received;                   /* a filter around this one writes received frames */
    char *process;
    bool has_note; /* of the frame that is sent next */
    struct wire_note note;
    uint8_t filled[WIRE_FRAME_MAX]; /* a frame that came without ICRC, with its ICRC added */
};

static struct capture *capture_of(struct wire_port *port)
{
    return (struct capture *)port;
}

static uint64_t capture_realtime_ns(void *opaque)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void capture_record(struct capture *c, const uint8_t *frame, size_t len,
                           enum capture_direction direction)
{
    int state = cancel_disable();
    struct capture_frame captured = {.bytes = frame, .len = len, .direction = direction};
    char note[WIRE_CAPTURE_NOTE];

    if (direction == CAPTURE_OUTBOUND && c->has_note) {
        wire_capture_note_text(note, &c->note, c->process);
        captured.comments[0] = note;
        c->has_note = false;
    }
    captured.comments[1] = *c->comment ? c->comment : NULL;
    capture_file_frame(c->file, &captured, c->clock_ns, c->clock_opaque);
    *c->comment = '\0';
    cancel_restore(state);
}

/* For the frame that is committed next. */
static void capture_note(struct wire_port *port, const struct wire_note *note)
{
    struct capture *c = capture_of(port);

    c->note = *note;
    c->has_note = true;
    if (c->filter.inner->wants_notes) {
        wire_note(c->filter.inner, note); /* of another capture */
    }
}

void wire_capture_comment(struct wire_port *capture, const char *text)
{
    g_strlcpy(capture_of(capture)->comment, text, sizeof(capture_of(capture)->comment));
}

void wire_capture_lost(struct wire_port *capture, const uint8_t *frame, size_t len, bool inbound,
                       const char *text)
{
    wire_capture_comment(capture, text);
    capture_record(capture_of(capture), frame, len, inbound ? CAPTURE_INBOUND : CAPTURE_OUTBOUND);
}

static uint8_t *capture_tx_reserve(struct wire_port *port, size_t len)
{
    struct capture *c = capture_of(port);
    uint8_t *frame = wire_tx_reserve(c->filter.inner, len);

    c->sent = frame;
    return frame;
}

static uint8_t *capture_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    struct capture *c = capture_of(port);
    uint8_t *frame = wire_tx_reserve_to(c->filter.inner, dmac, len);

    c->sent = frame;
    return frame;
}

static void capture_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct capture *c = capture_of(port);

    if (c->sent && len >= ETH_MIN && len <= WIRE_FRAME_MAX) {
        if (!wire_link_up(c->filter.inner)) {
            wire_capture_comment(port, "lost: the link is down");
        }
        capture_record(c, c->sent, len, CAPTURE_OUTBOUND);
    }
    c->sent = NULL;
    c->has_note = false;
    wire_tx_commit_as(c->filter.inner, len, flags);
}

static void capture_received(struct capture *c, const uint8_t *frame, size_t len, unsigned flags)
{
    if (flags & WIRE_NO_ICRC) {
        memcpy(c->filled, frame, len);
        roce_fill_icrc(c->filled, len);
        capture_record(c, c->filled, len, CAPTURE_INBOUND);
    } else {
        capture_record(c, frame, len, CAPTURE_INBOUND);
    }
}

void wire_capture_leave_received(struct wire_port *capture)
{
    capture_of(capture)->leaves_received = true;
}

void wire_capture_arrived(struct wire_port *capture, const uint8_t *frame, size_t len,
                          unsigned flags, const char *text)
{
    if (text) {
        wire_capture_comment(capture, text);
    }
    capture_received(capture_of(capture), frame, len, flags);
}

char *wire_capture_take_comment(struct wire_port *capture)
{
    struct capture *c = capture_of(capture);
    char *text = *c->comment ? g_strdup(c->comment) : NULL;

    *c->comment = '\0';
    return text;
}

static void capture_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct capture *c = opaque;

    /* Recorded before the client sees the frame, so that frames with which the client answers at
     * once come after it. */
    if (!c->leaves_received) {
        capture_received(c, frame, len, flags);
    }
    wire_filter_client.rx(opaque, frame, len, flags);
}

static void capture_close(struct wire_port *port)
{
    struct capture *c = capture_of(port);

    wire_filter_ops.close(port);
    capture_file_close(c->file);
    g_free(c->process);
    g_free(c);
}

static void capture_replace(struct wire_filter_tables *tables)
{
    tables->ops.tx_reserve = capture_tx_reserve;
    tables->ops.tx_reserve_to = capture_tx_reserve_to;
    tables->ops.tx_commit = capture_tx_commit;
    tables->ops.note = capture_note;
    tables->ops.close = capture_close;
    tables->inside.rx = capture_rx;
}

struct wire_port *wire_capture_around(const struct wire_port *port)
{
    return port->client && port->client->rx == capture_rx ? port->opaque : NULL;
}

struct wire_port *wire_capture_new(struct wire_port *inner, const char *path,
                                   const struct wire_capture_options *options, GError **err)
{
    static const struct wire_capture_options none;
    static struct wire_filter_tables tables;
    struct capture_file *file;
    struct capture *c;

    options = options ? options : &none;
    file = capture_file_open(path, options->name ? options->name : "hcasim", options->run,
                             &options->ring, err);
    if (!file) {
        return NULL;
    }
    c = g_new0(struct capture, 1);
    c->clock_ns = options->clock_ns ? options->clock_ns : capture_realtime_ns;
    c->clock_opaque = options->clock_opaque;
    c->file = file;
    wire_filter_make_tables(&tables, capture_replace);
    wire_filter_init(&c->filter, inner, &tables.ops, &tables.inside);
    c->process = g_strdup(options->process);
    g_strdelimit(c->process ? c->process : (char[]){""}, " \t\n", '_'); /* it is one word */
    c->filter.port.wants_notes |= options->comments;
    return &c->filter.port;
}
