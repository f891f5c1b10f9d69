/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the headers of sent packets, and fills in their checksums. */
#include "model/eth/eth_headers.h"

/* swp_flags (driver: MLX5_ETH_WQE_SWP_*). */
enum {
    SWP_INNER_IPV6 = 0x01,
    SWP_INNER_UDP = 0x02,
    SWP_OUTER_IPV6 = 0x10,
    SWP_OUTER_UDP = 0x20,
};

/* The software parser's fields about one packet. Offsets are in words of two bytes; 0: none. */
struct swp_packet {
    uint8_t l3, l4;
    bool ipv6, udp;
};

/* The transport header that the software parser names; info has the parsed IP header. */
static bool eth_swp_l4(const uint8_t *packet, const struct swp_packet *swp, struct eth_info *info)
{
    uint32_t off = swp->l4 * 2u, least = swp->udp ? UDP_BYTES : TCP_BYTES, bytes = least;
    uint32_t basic = info->ip_version == 4 ? IPV4_BYTES : IPV6_BYTES;

    if (off < info->l3_off + basic || off > info->ip_end || info->ip_end - off < least) {
        return false;
    }
    if (!swp->udp) {
        const volatile uint8_t *doff = packet + off + 12; /* read once */

        bytes = (*doff >> 4) * 4u;
        if (bytes < least || info->ip_end - off < bytes) {
            return false;
        }
    }
    info->l4 = swp->udp ? ETH_L4_UDP : ETH_L4_TCP;
    info->proto = swp->udp ? IP_PROTO_UDP : IP_PROTO_TCP;
    info->l4_off = off;
    info->payload_off = off + bytes;
    return true;
}

static bool eth_swp_packet(const uint8_t *packet, size_t len, bool whole,
                           const struct swp_packet *swp, struct eth_info *info, uint32_t *ip_end)
{
    *info = (struct eth_info){0};
    *ip_end = 0;
    if (!swp->l3) {
        return !swp->l4;
    }
    if (swp->l3 * 2u < ETH_BYTES || swp->l3 * 2u > len) {
        return false;
    }
    eth_parse_inner(packet, swp->l3 * 2u, (uint32_t)len, swp->ipv6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4,
                    whole, info);
    if (!info->ip_version) {
        return false;
    }
    *ip_end = info->l4_off;
    info->l4 = ETH_L4_NONE;
    return !swp->l4 || eth_swp_l4(packet, swp, info);
}

static bool eth_headers_swp(const struct eth_wqe *wqe, const uint8_t *packet, size_t len,
                            bool whole, struct eth_headers *headers)
{
    struct swp_packet outer = {wqe->swp.outer_l3, wqe->swp.outer_l4,
                               wqe->swp.flags & SWP_OUTER_IPV6, wqe->swp.flags & SWP_OUTER_UDP};
    struct swp_packet inner = {wqe->swp.inner_l3, wqe->swp.inner_l4,
                               wqe->swp.flags & SWP_INNER_IPV6, wqe->swp.flags & SWP_INNER_UDP};

    return eth_swp_packet(packet, len, whole, &outer, &headers->outer, &headers->outer_ip_end) &&
           eth_swp_packet(packet, len, whole, &inner, &headers->inner, &headers->inner_ip_end);
}

bool eth_headers_find(const struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                      const uint8_t *packet, size_t len, bool whole, struct eth_headers *headers)
{
    struct eth_tunnel tunnel;

    if (G_UNLIKELY(sq->swp && wqe->swp.named)) {
        return eth_headers_swp(wqe, packet, len, whole, headers);
    }
    if (whole) {
        eth_parse(packet, len, &headers->outer);
    } else {
        eth_parse_headers(packet, len, &headers->outer);
    }
    headers->outer_ip_end = headers->outer.l4_off;
    if (G_UNLIKELY(wqe->cs_flags & (ETH_CS_L3_INNER | ETH_CS_L4_INNER)) || !whole) {
        headers->inner = (struct eth_info){0};
        if (eth_tunnel_possible(&headers->outer) &&
            (whole ? eth_tunnel_parse(packet, &headers->outer, &hca->vxlan, &tunnel)
                   : eth_tunnel_parse_headers(packet, &headers->outer, &hca->vxlan, &tunnel))) {
            headers->inner = tunnel.inner;
            headers->inner_ip_end = tunnel.inner.l4_off;
        }
    }
    return true;
}

static void eth_fill_ipv4(uint8_t *packet, const struct eth_info *info, uint32_t ip_end)
{
    struct eth_info ip = *info;

    ip.l4_off = ip_end;
    eth_csum_fill_ipv4(packet, &ip);
}

bool eth_fill_checksums(const struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                        uint8_t *packet, size_t len)
{
    struct eth_headers headers;

    if (!(wqe->cs_flags & ETH_CS_ANY)) {
        return true;
    }
    if (!eth_headers_find(hca, sq, wqe, packet, len, true, &headers)) {
        return false;
    }
    /* from the inside out: an outer checksum covers the inner ones */
    if (wqe->cs_flags & ETH_CS_L3_INNER) {
        eth_fill_ipv4(packet, &headers.inner, headers.inner_ip_end);
    }
    if (wqe->cs_flags & ETH_CS_L4_INNER) {
        eth_csum_fill_l4(packet, &headers.inner);
    }
    if (wqe->cs_flags & ETH_CS_L3) {
        eth_fill_ipv4(packet, &headers.outer, headers.outer_ip_end);
    }
    if (wqe->cs_flags & ETH_CS_L4) {
        eth_csum_fill_l4(packet, &headers.outer);
    }
    return true;
}
