/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants of Ethernet (IEEE 802.3, 802.1Q), IP (RFC 791, RFC 8200) and the protocols over IP:
 * types, numbers, sizes of headers; and IPv4 addresses as GIDs.
 */
#ifndef HCASIM_WIRE_ENCAP_IP_H
#define HCASIM_WIRE_ENCAP_IP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    ETH_TYPE_IPV4 = 0x0800,
    ETH_TYPE_ARP = 0x0806,
    ETH_TYPE_TEB = 0x6558,  /* an Ethernet frame in GRE or GENEVE (RFC 1701) */
    ETH_TYPE_VLAN = 0x8100, /* IEEE 802.1Q, the inner or only tag */
    ETH_TYPE_MPLS = 0x8847, /* RFC 3032; with a label that an upstream router gave: 0x8848 */
    ETH_TYPE_MPLS_MC = 0x8848,
    ETH_TYPE_QINQ = 0x88a8, /* IEEE 802.1ad, an outer tag */
    ETH_TYPE_IPV6 = 0x86dd,
    ETH_TYPE_ROCE = 0x8915, /* RoCE version 1: a GRH follows */
};

enum {
    IP_PROTO_ICMP = 1,
    IP_PROTO_IPV4 = 4, /* IPv4 in IP (RFC 2003) */
    IP_PROTO_TCP = 6,
    IP_PROTO_UDP = 17,
    IP_PROTO_IBA = 27,  /* of a GRH: a transport packet of InfiniBand follows */
    IP_PROTO_IPV6 = 41, /* IPv6 in IP (RFC 4213, RFC 2473) */
    IP_PROTO_GRE = 47,  /* RFC 2784 */
    IP_PROTO_ESP = 50,  /* RFC 4303 */
    IP_PROTO_ICMPV6 = 58,
    IP_PROTO_MPLS = 137, /* MPLS in IP (RFC 4023) */
};

enum {
    ETH_BYTES = 14,
    VLAN_BYTES = 4,
    IPV4_BYTES = 20, /* without options */
    IPV4_BYTES_MAX = 60,
    IPV6_BYTES = 40, /* without extension headers */
    UDP_BYTES = 8,
    TCP_BYTES = 20, /* without options */
};

/* An IPv4 address as a GID is ::ffff:a.b.c.d (RFC 4291 2.5.5.2). Its own bytes begin at
 * GID_IPV4. */
enum {
    GID_BYTES = 16,
    GID_IPV4 = 12,
};

static inline void gid_of_ipv4(uint8_t gid[GID_BYTES], const uint8_t addr[4])
{
    memset(gid, 0, 10);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + GID_IPV4, addr, 4);
}

#endif
