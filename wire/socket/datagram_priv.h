/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of the ports of datagram.h, for the files that make their descriptors. */
#ifndef HCASIM_WIRE_SOCKET_DATAGRAM_PRIV_H
#define HCASIM_WIRE_SOCKET_DATAGRAM_PRIV_H

#include "wire/socket/address.h"
#include "wire/socket/datagram.h"
#include "wire/own_fd.h"

#include <sys/un.h>

/* RFC 7348, clause 5: a word with the flag I ("the VNI is valid"), a word with the VNI. */
#define VXLAN_HEADER   8
#define VXLAN_FLAG_VNI 0x08000000u
#define VXLAN_VNI_MAX  0xffffffu

struct datagram {
    struct wire_port port;
    struct own_fd own;
    struct own_fd waiter; /* of a Unix socket whose frame waits: connected, for EPOLLOUT */
    int epoll_fd;
    bool is_socket;               /* send() and recv(); otherwise write() and read() */
    bool is_interface;            /* a packet socket, which also receives what it sends */
    bool is_vxlan;                /* each datagram begins with `header` */
    bool blocked;                 /* a reservation failed since tx_ready */
    size_t held;                  /* bytes of tx that wait for room; 0: none */
    struct socket_address at, to; /* ours and the other end's; of a Unix socket, whose file need not
                                     exist yet, and of UDP */
    char *name;                   /* of an interface */
    uint8_t header[VXLAN_HEADER];
    struct wire_stats stats;
    uint8_t tx[WIRE_FRAME_MAX], rx[VXLAN_HEADER + WIRE_FRAME_MAX + 1];
};

/* A port without a descriptor. datagram_close() frees it. */
struct datagram *datagram_new(void);
void datagram_close(struct wire_port *port);

/* Gives the port the descriptor that make() returns, and which does not block. No fork() happens
 * meanwhile, so make() does not wait. NULL, and the port is freed: make() returned -1 and has set
 * *err. */
struct wire_port *datagram_open(struct datagram *d, int (*make)(struct datagram *d, GError **err),
                                GError **err);

/* Sets *err, and closes a descriptor, if it is one. Returns -1. */
int datagram_refuse(int fd, GError **err, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

static inline bool datagram_is_unix(const struct datagram *d)
{
    return d->at.at.ss_family == AF_UNIX;
}

static inline const char *datagram_path(const struct datagram *d)
{
    return ((const struct sockaddr_un *)&d->at.at)->sun_path;
}

#endif
