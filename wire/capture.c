/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capture to pcapng (draft-ietf-opsawg-pcapng): a section header, one interface description, then
 * one enhanced packet block per frame, in the machine's own byte order as the format allows.
 * Each block is one system call and nothing is buffered in this process.
 */
#include "wire/capture.h"
#include "wire/cancel.h"
#include "wire/filter.h"
#include "wire/open.h"
#include "wire/encap/roce.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK_SECTION_HEADER = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 6,
    BYTE_ORDER_MAGIC = 0x1a2b3c4d,
    LINKTYPE_ETHERNET = 1,

    OPT_END = 0,
    OPT_IF_TSRESOL = 9,
    OPT_EPB_FLAGS = 2,

    INBOUND = 1,
    OUTBOUND = 2,

    ETH_MIN = 14,
};

/* The beginning of a capture file. */
struct file_start {
    struct {
        uint32_t type, len, magic;
        uint16_t major, minor;
        int64_t section_len; /* -1: up to the end of the file */
        uint32_t len_again;
    } __attribute__((packed)) section;
    struct {
        uint32_t type, len;
        uint16_t linktype, reserved;
        uint32_t snaplen;
        uint16_t tsresol_code, tsresol_len;
        uint8_t tsresol[4]; /* one byte and padding; 9: units of 10^-9 s */
        uint32_t end_of_options;
        uint32_t len_again;
    } __attribute__((packed)) interface;
};

struct packet_start {
    uint32_t type, len, interface;
    uint32_t time_high, time_low;
    uint32_t captured_len, original_len;
};

struct packet_end {
    uint16_t flags_code, flags_len;
    uint32_t flags;
    uint32_t end_of_options;
    uint32_t len_again;
};

struct capture {
    struct wire_filter filter;
    uint64_t (*clock_ns)(void *opaque);
    void *clock_opaque;
    char *path;
    int fd;                         /* -1: capturing has ended */
    off_t size;                     /* length of the whole blocks */
    const uint8_t *sent;            /* the frame that the client is building, or NULL */
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

/* Writes one frame. If that fails, cuts the file behind its last whole block and ends the
 * capture. */
static void capture_write_packet(struct capture *c, const uint8_t *frame, size_t len,
                                 uint32_t direction)
{
    static const uint8_t zeros[4];
    size_t pad = -len & 3;
    uint32_t block =
        (uint32_t)(sizeof(struct packet_start) + len + pad + sizeof(struct packet_end));
    uint64_t now = c->clock_ns(c->clock_opaque);
    ssize_t written;

    struct packet_start start = {
        .type = BLOCK_PACKET,
        .len = block,
        .time_high = (uint32_t)(now >> 32),
        .time_low = (uint32_t)now,
        .captured_len = (uint32_t)len,
        .original_len = (uint32_t)len,
    };
    struct packet_end end = {
        .flags_code = OPT_EPB_FLAGS,
        .flags_len = 4,
        .flags = direction,
        .end_of_options = OPT_END,
        .len_again = block,
    };
    struct iovec parts[] = {
        {&start, sizeof(start)},
        {(void *)(uintptr_t)frame, len},
        {(void *)(uintptr_t)zeros, pad},
        {&end, sizeof(end)},
    };

    do {
        written = writev(c->fd, parts, G_N_ELEMENTS(parts));
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)block) {
        c->size += written;
        return;
    }
    g_warning("%s: capture ends: %s", c->path, written < 0 ? g_strerror(errno) : "short write");
    if (ftruncate(c->fd, c->size) < 0) {
        g_warning("%s: the last packet is incomplete: %s", c->path, g_strerror(errno));
    }
    close(c->fd);
    c->fd = -1;
}

static void capture_record(struct capture *c, const uint8_t *frame, size_t len, uint32_t direction)
{
    if (c->fd >= 0) {
        int state = cancel_disable();

        capture_write_packet(c, frame, len, direction);
        cancel_restore(state);
    }
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
        capture_record(c, c->sent, len, OUTBOUND);
    }
    c->sent = NULL;
    wire_tx_commit_as(c->filter.inner, len, flags);
}

static void capture_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct capture *c = opaque;

    /* Recorded before the client sees the frame, so that frames with which the client answers at
     * once come after it. */
    if (flags & WIRE_NO_ICRC) {
        memcpy(c->filled, frame, len);
        roce_fill_icrc(c->filled, len);
        capture_record(c, c->filled, len, INBOUND);
    } else {
        capture_record(c, frame, len, INBOUND);
    }
    wire_filter_client.rx(opaque, frame, len, flags);
}

static void capture_close(struct wire_port *port)
{
    struct capture *c = capture_of(port);

    wire_filter_ops.close(port);
    if (c->fd >= 0) {
        close(c->fd);
    }
    g_free(c->path);
    g_free(c);
}

static struct wire_port_ops capture_ops;
static struct wire_client capture_inside;

/* Makes the pass-through tables with this filter's own operations. */
static void capture_make_tables(void)
{
    capture_ops = wire_filter_ops;
    capture_ops.tx_reserve = capture_tx_reserve;
    capture_ops.tx_reserve_to = capture_tx_reserve_to;
    capture_ops.tx_commit = capture_tx_commit;
    capture_ops.close = capture_close;
    capture_inside = wire_filter_client;
    capture_inside.rx = capture_rx;
}

struct wire_port *wire_capture_new(struct wire_port *inner, const char *path,
                                   uint64_t (*clock_ns)(void *clock_opaque), void *clock_opaque,
                                   GError **err)
{
    static gsize tables;
    struct file_start start = {
        .section = {BLOCK_SECTION_HEADER, sizeof(start.section), BYTE_ORDER_MAGIC, 1, 0, -1,
                    sizeof(start.section)},
        .interface = {BLOCK_INTERFACE,
                      sizeof(start.interface),
                      LINKTYPE_ETHERNET,
                      0,
                      WIRE_FRAME_MAX,
                      OPT_IF_TSRESOL,
                      1,
                      {9},
                      OPT_END,
                      sizeof(start.interface)},
    };
    struct capture *c;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, &start, sizeof(start)) != (ssize_t)sizeof(start)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: cannot write the capture: %s", path,
                    g_strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    if (g_once_init_enter(&tables)) {
        capture_make_tables();
        g_once_init_leave(&tables, 1);
    }
    c = g_new0(struct capture, 1);
    c->clock_ns = clock_ns ? clock_ns : capture_realtime_ns;
    c->clock_opaque = clock_opaque;
    c->path = g_strdup(path);
    c->fd = fd;
    c->size = sizeof(start);
    wire_filter_init(&c->filter, inner, &capture_ops, &capture_inside);
    return &c->filter.port;
}
