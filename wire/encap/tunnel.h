/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses the tunnel of a frame: the header that carries another packet, and the headers of that
 * packet, as a NIC reads them for checksums, receive-side scaling, steering and segmentation.
 *
 * A NIC knows VXLAN (RFC 7348) and VXLAN-GPE by their UDP ports, GENEVE (RFC 8926) and MPLS over
 * UDP (RFC 7510) by theirs; GRE (RFC 2784, RFC 2890), NVGRE (RFC 7637) and IP in IP by the protocol
 * number; and MPLS (RFC 3032) by the ethertype. It reads one tunnel: what is inside a second one is
 * payload. Values are in host byte order; offsets are in bytes from the beginning of the frame.
 */
#ifndef HCASIM_WIRE_ENCAP_TUNNEL_H
#define HCASIM_WIRE_ENCAP_TUNNEL_H

#include "wire/encap/eth.h"

/* UDP ports (IANA). */
enum {
    UDP_PORT_VXLAN = 4789,
    UDP_PORT_VXLAN_GPE = 4790,
    UDP_PORT_GENEVE = 6081,
    UDP_PORT_MPLS = 6635,
};

enum eth_tunnel_kind {
    ETH_TUNNEL_NONE,
    ETH_TUNNEL_VXLAN,
    ETH_TUNNEL_VXLAN_GPE,
    ETH_TUNNEL_GENEVE,
    ETH_TUNNEL_GRE, /* NVGRE, too */
    ETH_TUNNEL_IP,  /* IP in IP: there is no header between them */
    ETH_TUNNEL_MPLS,
};

/* What carries a stack of MPLS labels. */
enum eth_mpls_over {
    ETH_MPLS_OVER_ETH,
    ETH_MPLS_OVER_IP,
    ETH_MPLS_OVER_UDP,
    ETH_MPLS_OVER_GRE,
};

/* gre_flags (RFC 2890): which fields a GRE header has. */
enum {
    GRE_HAS_CSUM = 0x8000,
    GRE_HAS_KEY = 0x2000,
    GRE_HAS_SEQ = 0x1000,
};

/* flags of VXLAN and VXLAN-GPE, the header's first byte. */
enum {
    VXLAN_HAS_VNI = 0x08,
    VXLAN_GPE_HAS_PROTOCOL = 0x04,
};

/* Fields that a kind does not have are 0. */
struct eth_tunnel {
    enum eth_tunnel_kind kind;
    uint32_t off;       /* the tunnel's header; IP in IP: the inner IP header */
    uint32_t inner_off; /* the carried packet: its Ethernet header, or its IP header */
    bool inner_eth;     /* it begins with an Ethernet header */
    uint16_t protocol;  /* its ethertype, as the header says; ETH_TYPE_TEB: an Ethernet frame.
                         * 0: the header does not say it in a way that a NIC knows */
    uint32_t vni;       /* VXLAN, GENEVE, NVGRE (its virtual subnet): 24 bits */
    uint8_t flags;      /* VXLAN: the first byte */
    uint8_t next;       /* VXLAN-GPE: the next protocol */
    bool oam, critical; /* GENEVE */
    uint32_t opt_len;   /* GENEVE: bytes of options, which begin at off + 8 */
    bool nvgre;
    uint16_t gre_flags;      /* bits GRE_HAS_; MPLS over GRE has these three fields, too */
    uint32_t gre_key;        /* if GRE_HAS_KEY */
    uint32_t gre_seq;        /* if GRE_HAS_SEQ */
    enum eth_mpls_over over; /* MPLS */
    unsigned labels;         /* MPLS: entries of the stack, at `off`, up to the bottom */
    uint32_t mpls;         /* MPLS: the first entry: label << 12 | class << 9 | bottom << 8 | TTL */
    struct eth_info inner; /* all zero except frame_len if the kind of packet is not known */
};

/* The UDP ports at which a NIC expects VXLAN. */
#define ETH_VXLAN_PORTS_MAX 4
struct eth_vxlan_ports {
    uint16_t port[ETH_VXLAN_PORTS_MAX];
    unsigned count;
};

/*
 * Parses the tunnel of a frame that eth_parse() has parsed. ports: NULL means UDP_PORT_VXLAN.
 * False, and *tunnel all zero: the frame has no tunnel, or its header is not whole, is a fragment,
 * or has a version that a NIC does not know.
 *
 * The inner packet ends where the outer one does, at the latest; inner.malformed says whether its
 * lengths fit.
 */
bool eth_tunnel_parse(const uint8_t *frame, const struct eth_info *info,
                      const struct eth_vxlan_ports *ports, struct eth_tunnel *tunnel);

/* As eth_tunnel_parse(), for headers that eth_parse_headers() has parsed. */
bool eth_tunnel_parse_headers(const uint8_t *headers, const struct eth_info *info,
                              const struct eth_vxlan_ports *ports, struct eth_tunnel *tunnel);

/* Whether a frame may have a tunnel: a quick look that says no to nearly all other frames. */
static inline bool eth_tunnel_possible(const struct eth_info *info)
{
    if (info->l4 == ETH_L4_TCP) {
        return false;
    }
    return info->l4 == ETH_L4_UDP || info->proto == IP_PROTO_GRE || info->proto == IP_PROTO_IPV4 ||
           info->proto == IP_PROTO_IPV6 || info->proto == IP_PROTO_MPLS ||
           info->ethertype == ETH_TYPE_MPLS || info->ethertype == ETH_TYPE_MPLS_MC;
}

#endif
