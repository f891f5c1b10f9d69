/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements address.h. */
#include "wire/socket/address.h"
#include "wire/open.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

bool socket_address_of_path(struct socket_address *address, const char *path, GError **err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&address->at;

    memset(address, 0, sizeof(*address));
    un->sun_family = AF_UNIX;
    address->len = sizeof(*un);
    if (!*path || g_strlcpy(un->sun_path, path, sizeof(un->sun_path)) >= sizeof(un->sun_path)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "the path of a socket has 1 to %zu bytes",
                    sizeof(un->sun_path) - 1);
        return false;
    }
    return true;
}

/* Splits "HOST:PORT" or "[HOST]:PORT" at its last colon. */
static bool address_split(const char *text, char **host, const char **port)
{
    const char *colon = strrchr(text, ':');

    if (!colon || colon == text || !colon[1]) {
        return false;
    }
    *port = colon + 1;
    if (text[0] == '[' && colon[-1] == ']') {
        *host = g_strndup(text + 1, (gsize)(colon - text - 2));
    } else {
        *host = g_strndup(text, (gsize)(colon - text));
    }
    return **host != '\0';
}

static bool address_look_up(struct socket_address *address, const char *host, const char *port,
                            const struct addrinfo *hints, GError **err)
{
    struct addrinfo *found;
    int code;

    /* getaddrinfo() would take the empty text for port 0, and a name for a service. */
    if (!*port || strspn(port, G_CSET_DIGITS) != strlen(port) || strlen(port) > 5 ||
        g_ascii_strtoull(port, NULL, 10) > 65535) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "a port is a number up to 65535, not '%s'",
                    port);
        return false;
    }
    code = getaddrinfo(host, port, hints, &found);
    if (code) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: %s", host ? host : "this machine",
                    gai_strerror(code));
        return false;
    }
    memset(address, 0, sizeof(*address));
    memcpy(&address->at, found->ai_addr, found->ai_addrlen);
    address->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool socket_address_of_host(struct socket_address *address, const char *text, int type,
                            GError **err)
{
    struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICSERV};
    g_autofree char *host = NULL;
    const char *port;

    if (!address_split(text, &host, &port)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "'%s' is not HOST:PORT", text);
        return false;
    }
    return address_look_up(address, host, port, &hints, err);
}

bool socket_address_of_port(struct socket_address *address, const char *text, int family,
                            GError **err)
{
    struct addrinfo hints = {
        .ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV | AI_PASSIVE};

    return address_look_up(address, NULL, text, &hints, err);
}
