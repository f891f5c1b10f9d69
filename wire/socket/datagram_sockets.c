/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports between two Unix sockets, and between two ports of UDP, with or without VXLAN. */
#include "wire/bytes.h"
#include "wire/open.h"
#include "wire/socket/datagram_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int datagram_make_socket(struct datagram *d, GError **err)
{
    bool is_udp = !datagram_is_unix(d);
    int fd = socket(d->at.at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (!is_udp) {
        unlink(datagram_path(d));
    }
    /* Connected, UDP receives from this peer only. */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&d->at.at, d->at.len) ||
        (is_udp && !d->is_vxlan && connect(fd, (const struct sockaddr *)&d->to.at, d->to.len))) {
        return datagram_refuse(fd, err, "%s: %s", is_udp ? "a socket of UDP" : datagram_path(d),
                               g_strerror(errno));
    }
    return fd;
}

struct wire_port *wire_unix_open(const char *rest, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(rest, ":", 2);
    struct datagram *d = datagram_new();

    if (g_strv_length(parts) != 2) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "'%s' is not OURS:THEIRS, two paths", rest);
    } else if (socket_address_of_path(&d->at, parts[0], err) &&
               socket_address_of_path(&d->to, parts[1], err)) {
        return datagram_open(d, datagram_make_socket, err);
    }
    datagram_close(&d->port);
    return NULL;
}

/* "PORT:HOST:PORT" */
static bool datagram_find_ends(struct datagram *d, const char *rest, GError **err)
{
    g_auto(GStrv) parts = g_strsplit(rest, ":", 2);

    if (g_strv_length(parts) != 2) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "'%s' is not PORT:HOST:PORT", rest);
        return false;
    }
    return socket_address_of_host(&d->to, parts[1], SOCK_DGRAM, err) &&
           socket_address_of_port(&d->at, parts[0], d->to.at.ss_family, err);
}

struct wire_port *wire_udp_open(const char *rest, GError **err)
{
    struct datagram *d = datagram_new();

    if (datagram_find_ends(d, rest, err)) {
        return datagram_open(d, datagram_make_socket, err);
    }
    datagram_close(&d->port);
    return NULL;
}

struct wire_port *wire_vxlan_open(const char *rest, GError **err)
{
    struct datagram *d = datagram_new();
    char *end = NULL;
    guint64 vni = g_ascii_strtoull(rest, &end, 10);

    d->is_vxlan = true;
    put32(d->header, VXLAN_FLAG_VNI);
    put32(d->header + 4, (uint32_t)vni << 8);
    if (!g_ascii_isdigit(rest[0]) || vni > VXLAN_VNI_MAX || *end != ':') {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                    "'%s' is not VNI:PORT:HOST:PORT with a VNI up to %u", rest, VXLAN_VNI_MAX);
    } else if (datagram_find_ends(d, end + 1, err)) {
        return datagram_open(d, datagram_make_socket, err);
    }
    datagram_close(&d->port);
    return NULL;
}
