/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: the other end of a socket (wire/socket) sends arbitrary bytes, in pieces: to a port
 * that listens for a stream, and to a port of VXLAN.
 *
 * The first byte says which. Then each piece follows behind a byte with its length. The port must
 * hand out the frames that an independent reading of the same bytes finds, and no others; count the
 * rest as malformed; and bring the link of a stream down at the first length that no frame has.
 */
#include <arpa/inet.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "wire/socket/socket.h"

#define VNI        0x123456u
#define MAX_PIECES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The frames in the bytes that were sent, or those that the port has handed out. */
struct tally {
    unsigned frames, malformed;
    guint32 sum; /* of the frames' bytes, in their order */
};

static char dir[] = "/tmp/hcasim-fuzz-XXXXXX";

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void tally_frame(struct tally *t, const uint8_t *frame, size_t len)
{
    t->frames++;
    t->sum = t->sum * 31 + (guint32)len;
    for (size_t i = 0; i < len; i++) {
        t->sum = t->sum * 31 + frame[i];
    }
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    require(len >= 14 && len <= WIRE_FRAME_MAX && !flags);
    tally_frame(client, frame, len);
}

static const struct wire_client client = {.rx = on_rx};

static void take_all(struct wire_port *port)
{
    wire_fd_event(port);
    while (wire_poll(port, 4) == 4) {
    }
}

/* -- an independent reading -------------------------------------------------------------------- */

static guint32 be32(const uint8_t *p)
{
    guint32 word;

    memcpy(&word, p, 4);
    return GUINT32_FROM_BE(word);
}

static void read_stream(struct tally *t, const GByteArray *bytes)
{
    for (size_t at = 0; at + 4 <= bytes->len;) {
        size_t len = be32(bytes->data + at);

        if (len < 14 || len > WIRE_FRAME_MAX) {
            t->malformed++;
            return;
        }
        if (at + 4 + len > bytes->len) {
            return;
        }
        tally_frame(t, bytes->data + at + 4, len);
        at += 4 + len;
    }
}

static void read_vxlan(struct tally *t, const uint8_t *bytes, size_t len)
{
    if (len >= 8 + 14 && bytes[0] & 8 && be32(bytes + 4) >> 8 == VNI) {
        tally_frame(t, bytes + 8, len - 8);
    } else {
        t->malformed++;
    }
}

/* -- the other end ----------------------------------------------------------------------------- */

static struct wire_port *begin_stream(int *fd)
{
    g_autofree char *uri = g_strdup_printf("listen:%s/s", dir);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct wire_port *port = wire_socket_open(uri, NULL);

    require(port != NULL);
    g_snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", dir);
    *fd = socket(AF_UNIX, SOCK_STREAM, 0);
    require(!connect(*fd, (struct sockaddr *)&at, sizeof(at)));
    return port;
}

static struct wire_port *begin_vxlan(int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct wire_port *port = NULL;
    socklen_t len = sizeof(at);

    *fd = socket(AF_INET, SOCK_DGRAM, 0);
    require(!bind(*fd, (struct sockaddr *)&at, len) &&
            !getsockname(*fd, (struct sockaddr *)&at, &len));
    for (unsigned ours = 20000; !port && ours < 60000; ours++) {
        g_autofree char *uri =
            g_strdup_printf("vxlan:%u:%u:127.0.0.1:%u", VNI, ours, ntohs(at.sin_port));

        port = wire_socket_open(uri, NULL);
        at.sin_port = port ? htons((uint16_t)ours) : at.sin_port;
    }
    require(port && !connect(*fd, (struct sockaddr *)&at, sizeof(at)));
    return port;
}

static void make_dir(void)
{
    static gsize made;

    if (g_once_init_enter(&made)) {
        require(g_mkdtemp(dir) != NULL);
        g_once_init_leave(&made, 1);
    }
}

__attribute__((destructor)) static void remove_dir(void)
{
    g_rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_stream = !size || !(data[0] & 1);
    g_autoptr(GByteArray) sent = g_byte_array_new();
    struct tally expected = {0}, found = {0};
    struct wire_port *port;
    struct wire_stats stats;
    size_t at = 1;
    int fd;

    make_dir();
    port = is_stream ? begin_stream(&fd) : begin_vxlan(&fd);
    wire_set_client(port, &client, &found);
    take_all(port);
    for (unsigned i = 0; i < MAX_PIECES && at < size && wire_link_up(port); i++) {
        size_t len = MIN(data[at], size - at - 1);

        require(send(fd, data + at + 1, len, MSG_NOSIGNAL) == (ssize_t)len);
        if (is_stream) {
            g_byte_array_append(sent, data + at + 1, (guint)len);
        } else {
            read_vxlan(&expected, data + at + 1, len);
        }
        take_all(port);
        at += 1 + len;
    }
    if (is_stream) {
        read_stream(&expected, sent);
    }
    wire_get_stats(port, &stats);
    require(found.frames == expected.frames && found.sum == expected.sum);
    require(stats.rx_frames == expected.frames && stats.rx_malformed == expected.malformed);
    require(wire_link_up(port) == !(is_stream && expected.malformed));
    wire_close(port);
    close(fd);
    return 0;
}
