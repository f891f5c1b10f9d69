/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in a CQE what the NIC has found in a received frame: which headers, and whether their
 * checksums are right.
 *
 * Of a frame with a tunnel, the CQE describes the inner headers, and outer_l3_tunneled is set. Then
 * l3_ok and l4_ok speak of both packets, because the driver takes them so: it reports to the stack
 * that two levels of checksums were verified (csum_level 1 of mlx5e_handle_csum()). A checksum of 0
 * in the outer UDP header is right, over IPv6, too (RFC 6935).
 *
 * check_sum covers the outer packet, from after the Ethernet header and its tags to the end of the
 * IP packet, without Ethernet padding. The driver uses it for every frame with an IP ethertype,
 * whatever the following headers say. A generation with cqe_checksum_full covers all that is stored
 * behind the first 14 bytes, of every frame, also the frame check sequence.
 */
#include "model/eth/eth_priv.h"
#include "wire/bytes.h"

#define VLAN_TAG_LEN 4
#define UDP_CSUM     6

/* cqe64.l4_hdr_type of a parsed packet. */
static uint8_t eth_rx_l4_hdr_type(const struct eth_info *info)
{
    if (info->l4 == ETH_L4_UDP) {
        return PRM_CQE_L4_HDR_TYPE_UDP;
    }
    if (info->l4 != ETH_L4_TCP) {
        return PRM_CQE_L4_HDR_TYPE_NONE;
    }
    if (!(info->tcp_flags & TCP_ACK)) {
        return PRM_CQE_L4_HDR_TYPE_TCP_NO_ACK;
    }
    return info->payload_off < info->ip_end ? PRM_CQE_L4_HDR_TYPE_TCP_ACK_AND_DATA
                                            : PRM_CQE_L4_HDR_TYPE_TCP_ACK_NO_DATA;
}

static bool eth_rx_l3_ok(const uint8_t *frame, const struct eth_info *info)
{
    return info->ip_version == 6 || eth_csum_ipv4_ok(frame, info);
}

static bool eth_rx_l4_ok(const uint8_t *frame, const struct eth_info *info)
{
    return info->l4 != ETH_L4_NONE && eth_csum_l4_ok(frame, info);
}

/* The header of the outer packet that carries the tunnel: UDP, or no header of layer 4. */
static bool eth_rx_carrier_ok(const uint8_t *frame, const struct eth_info *outer)
{
    return outer->l4 != ETH_L4_UDP || get16(frame + outer->l4_off + UDP_CSUM) == 0 ||
           eth_csum_l4_ok(frame, outer);
}

/* Describes the packet whose headers the CQE is about. */
static void eth_rx_fill_headers(struct prm_cqe64 *cqe, const struct eth_info *info)
{
    uint32_t basic = info->ip_version == 4 ? IPV4_BYTES : IPV6_BYTES; /* of the header alone */

    PRM_SET(cqe64, cqe, l3_hdr_type,
            info->ip_version == 4 ? PRM_CQE_L3_HDR_TYPE_IPV4 : PRM_CQE_L3_HDR_TYPE_IPV6);
    PRM_SET(cqe64, cqe, l4_hdr_type, eth_rx_l4_hdr_type(info));
    PRM_SET(cqe64, cqe, ip_frag, info->fragment);
    PRM_SET(cqe64, cqe, ip_ext_opts, info->l4_off - info->l3_off > basic);
}

static void eth_rx_fill_tunneled(struct prm_cqe64 *cqe, const uint8_t *frame,
                                 const struct eth_info *outer, const struct eth_info *inner)
{
    PRM_SET(cqe64, cqe, tunneled, 1);
    PRM_SET(cqe64, cqe, outer_l3_type, outer->ip_version == 6);
    if (!inner->ip_version || inner->malformed) {
        return;
    }
    PRM_SET(cqe64, cqe, l3_ok, eth_rx_l3_ok(frame, outer) && eth_rx_l3_ok(frame, inner));
    PRM_SET(cqe64, cqe, l4_ok, eth_rx_carrier_ok(frame, outer) && eth_rx_l4_ok(frame, inner));
    eth_rx_fill_headers(cqe, inner);
}

/* Bit 6 of lro_tcppsh_abort_dupack. */
#define LRO_PSH 0x40

void eth_rx_fill_merged(struct prm_cqe64 *cqe, const struct eth_info *info,
                        const struct eth_merged *merged)
{
    PRM_SET(cqe64, cqe, l2_ok, 1);
    PRM_SET(cqe64, cqe, l3_ok, 1);
    PRM_SET(cqe64, cqe, l4_ok, 1);
    eth_rx_fill_headers(cqe, info);
    PRM_SET(cqe64, cqe, check_sum, merged->sum);
    PRM_SET(cqe64, cqe, lro_num_seg, merged->segments);
    PRM_SET(cqe64, cqe, lro_min_ttl, merged->min_ttl);
    PRM_SET(cqe64, cqe, lro_tcp_win, merged->window);
    PRM_SET(cqe64, cqe, lro_ack_seq_num, merged->ack);
    PRM_SET(cqe64, cqe, lro_tcppsh_abort_dupack, merged->psh ? LRO_PSH : 0);
}

/* If the length is odd, the sequence begins in the low half of a word, behind the last byte. */
void eth_rx_sum_fcs(struct prm_cqe64 *cqe, const uint8_t *frame, size_t len)
{
    uint8_t bytes[1 + ETH_FCS_BYTES] = {0};
    size_t odd = len & 1;

    eth_fcs_put(bytes + 1, frame, len);
    PRM_SET(cqe64, cqe, check_sum,
            csum_add((uint16_t)PRM_GET(cqe64, cqe, check_sum),
                     csum_partial(bytes + 1 - odd, ETH_FCS_BYTES + odd)));
}

void eth_rx_fill_checks(const struct hca *hca, struct prm_cqe64 *cqe, const uint8_t *frame,
                        size_t len, const struct eth_info *info, const struct eth_tunnel *tunnel,
                        bool strip)
{
    PRM_SET(cqe64, cqe, l2_ok, 1);
    if (G_UNLIKELY(hca->limits.cqe_checksum_full)) {
        size_t from = ETH_BYTES + (strip ? VLAN_TAG_LEN : 0);

        PRM_SET(cqe64, cqe, check_sum, csum_partial(frame + from, len - from));
    }
    if (info->ethertype != ETH_TYPE_IPV4 && info->ethertype != ETH_TYPE_IPV6) {
        return;
    }
    if (!hca->limits.cqe_checksum_full) {
        size_t end = info->ip_version ? info->ip_end : len;

        PRM_SET(cqe64, cqe, check_sum, csum_partial(frame + info->l3_off, end - info->l3_off));
    }
    if (!info->ip_version || info->malformed) {
        return;
    }
    if (G_UNLIKELY(tunnel)) {
        eth_rx_fill_tunneled(cqe, frame, info, &tunnel->inner);
        return;
    }
    PRM_SET(cqe64, cqe, l3_ok, eth_rx_l3_ok(frame, info));
    PRM_SET(cqe64, cqe, l4_ok, eth_rx_l4_ok(frame, info));
    eth_rx_fill_headers(cqe, info);
}
