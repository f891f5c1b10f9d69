/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of slirp:, which are those of QEMU's -netdev user as far as they are here, with '+'
 * between them in place of a comma, because a comma separates wires:
 *
 *   net=A.B.C.D/LEN   the network (10.0.2.0/24)
 *   host=A.B.C.D      the gateway, which stands for this machine (the second address)
 *   dns=A.B.C.D       what answers for this machine's name server (the third)
 *   dhcpstart=A.B.C.D the first of the addresses that DHCP gives (the fifteenth)
 *   hostname=NAME     the name that DHCP gives to a host
 *   ipv6=on|off       fec0::/64, too (on)
 *   restrict=on|off   nothing but what forwarded ports bring goes out (off)
 *   hostfwd=tcp|udp:[HOSTADDR]:HOSTPORT-[ADDR]:PORT
 *                     what comes to this machine's port goes to a host's; again for each port
 */
#ifndef HCASIM_WIRE_SLIRP_OPTIONS_H
#define HCASIM_WIRE_SLIRP_OPTIONS_H

#include <glib.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SLIRP_FORWARDS_MAX 32
#define SLIRP_NAME_MAX     63 /* of a label of DNS */

struct slirp_forward {
    bool is_udp;
    struct in_addr host, guest; /* 0: all of this machine's addresses; DHCP's first address */
    uint16_t host_port, guest_port;
};

struct slirp_options {
    struct in_addr net, mask, host, dns, dhcp;
    bool has_ipv6, is_restricted;
    char hostname[SLIRP_NAME_MAX + 1];
    unsigned n_forwards;
    struct slirp_forward forwards[SLIRP_FORWARDS_MAX];
};

/* Reads what stands behind "slirp:". False with *err. */
bool slirp_options_read(struct slirp_options *options, const char *text, GError **err);

#endif
