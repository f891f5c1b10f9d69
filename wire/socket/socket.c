/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements socket.h: the table of schemes. */
#include "wire/socket/socket.h"
#include "wire/slirp/slirp.h"
#include "wire/socket/datagram.h"
#include "wire/socket/stream.h"

#include <string.h>

static struct wire_port *socket_open_connect(const char *rest, GError **err)
{
    return wire_stream_open(rest, false, err);
}

static struct wire_port *socket_open_listen(const char *rest, GError **err)
{
    return wire_stream_open(rest, true, err);
}

static const struct {
    const char *scheme;
    struct wire_port *(*open)(const char *rest, GError **err);
} kinds[] = {
    {"connect:", socket_open_connect}, {"listen:", socket_open_listen}, {"unix:", wire_unix_open},
    {"udp:", wire_udp_open},           {"vxlan:", wire_vxlan_open},     {"tap:", wire_tap_open},
    {"if:", wire_interface_open},      {"slirp:", wire_slirp_open},
};

static unsigned socket_kind(const char *uri)
{
    unsigned i = 0;

    while (i < G_N_ELEMENTS(kinds) && !g_str_has_prefix(uri, kinds[i].scheme)) {
        i++;
    }
    return i;
}

bool wire_socket_is(const char *uri)
{
    return socket_kind(uri) < G_N_ELEMENTS(kinds);
}

struct wire_port *wire_socket_open(const char *uri, GError **err)
{
    unsigned kind = socket_kind(uri);

    return kinds[kind].open(uri + strlen(kinds[kind].scheme), err);
}
