/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PPCNT: the port's counters in the groups of the standards (802.3, RFC 2863, RFC 2819, RFC 3635),
 * per priority, of the physical layer, of InfiniBand, and the RoCE packets whose ICRC was wrong.
 *
 * Octets are those on the wire: each frame's 4 bytes of FCS are counted, as the standards want. The
 * port has one buffer and one priority, 0. Errors of a physical layer that the model does not
 * have are 0 because they cannot happen.
 */
#include "fw/regs.h"

#define FCS_BYTES    4
#define NS_PER_MS    1000000

#define RX_OCTETS(c) ((c)->rx_bytes + FCS_BYTES * (c)->rx_frames)
#define TX_OCTETS(c) ((c)->tx_bytes + FCS_BYTES * (c)->tx_frames)

/* A 64-bit counter is two dwords, high and low. */
#define PUT(s, p, field, value)                                                                    \
    do {                                                                                           \
        uint64_t put_value_ = (value);                                                             \
        PRM_SET(s, p, field##_high, put_value_ >> 32);                                             \
        PRM_SET(s, p, field##_low, put_value_ & 0xffffffff);                                       \
    } while (0)

static void fill_802_3(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
#define P(field, value) PUT(eth_802_3_cntrs_grp_data_layout, set, field, value)
    P(a_frames_transmitted_ok, c->tx_frames);
    P(a_frames_received_ok, c->rx_frames);
    P(a_octets_transmitted_ok, TX_OCTETS(c));
    P(a_octets_received_ok, RX_OCTETS(c));
    P(a_multicast_frames_xmitted_ok, c->tx_multicast_frames);
    P(a_broadcast_frames_xmitted_ok, c->tx_broadcast_frames);
    P(a_multicast_frames_received_ok, c->rx_multicast_frames);
    P(a_broadcast_frames_received_ok, c->rx_broadcast_frames);
    P(a_frame_too_long_errors, c->rx_oversize);
#undef P
}

static void fill_rfc_2863(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
#define P(field, value) PUT(eth_2863_cntrs_grp_data_layout, set, field, value)
    P(if_in_octets, RX_OCTETS(c));
    P(if_in_ucast_pkts, c->rx_unicast_frames);
    P(if_in_discards, c->rx_discards);
    P(if_in_errors, c->rx_oversize);
    P(if_out_octets, TX_OCTETS(c));
    P(if_out_ucast_pkts, c->tx_unicast_frames);
    P(if_out_discards, c->tx_oversize);
    P(if_in_multicast_pkts, c->rx_multicast_frames);
    P(if_in_broadcast_pkts, c->rx_broadcast_frames);
    P(if_out_multicast_pkts, c->tx_multicast_frames);
    P(if_out_broadcast_pkts, c->tx_broadcast_frames);
#undef P
}

static void fill_rfc_2819(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
#define P(field, value) PUT(eth_2819_cntrs_grp_data_layout, set, field, value)
    P(ether_stats_octets, RX_OCTETS(c));
    P(ether_stats_pkts, c->rx_frames);
    P(ether_stats_broadcast_pkts, c->rx_broadcast_frames);
    P(ether_stats_multicast_pkts, c->rx_multicast_frames);
    P(ether_stats_oversize_pkts, c->rx_oversize);
    P(ether_stats_pkts64octets, c->rx_size_hist[0]);
    P(ether_stats_pkts65to127octets, c->rx_size_hist[1]);
    P(ether_stats_pkts128to255octets, c->rx_size_hist[2]);
    P(ether_stats_pkts256to511octets, c->rx_size_hist[3]);
    P(ether_stats_pkts512to1023octets, c->rx_size_hist[4]);
    P(ether_stats_pkts1024to1518octets, c->rx_size_hist[5]);
    P(ether_stats_pkts1519to2047octets, c->rx_size_hist[6]);
    P(ether_stats_pkts2048to4095octets, c->rx_size_hist[7]);
    P(ether_stats_pkts4096to8191octets, c->rx_size_hist[8]);
    P(ether_stats_pkts8192to10239octets, c->rx_size_hist[9]);
#undef P
}

static void fill_rfc_3635(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
    PUT(eth_3635_cntrs_grp_data_layout, set, dot3stats_frame_too_longs, c->rx_oversize);
}

static void fill_extended(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
    PUT(eth_extended_cntrs_grp_data_layout, set, rx_icrc_encapsulated, c->rx_bad_icrc);
}

static void fill_per_priority(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
#define P(field, value) PUT(eth_per_prio_grp_data_layout, set, field, value)
    P(rx_octets, RX_OCTETS(c));
    P(rx_frames, c->rx_frames);
    P(tx_octets, TX_OCTETS(c));
    P(tx_frames, c->tx_frames);
#undef P
}

static void fill_physical(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
    uint64_t age = hca_now(&fw->hca) - fw->regs.counters_cleared_ns;

    PUT(phys_layer_cntrs, set, time_since_last_clear, age / NS_PER_MS);
    PRM_SET(phys_layer_cntrs, set, link_down_events, (uint32_t)c->link_downs);
}

/* IBTA PortCounters (16.1.3.5): a counter stops at the largest value of its field. */
static void fill_infiniband(struct fw *fw, const struct vport_counters *c, uint8_t *set)
{
    uint64_t bad = c->rx_truncated + c->rx_bad_header + c->rx_bad_icrc + c->rx_oversize;

    PRM_SET(ib_port_cntrs_grp_data_layout, set, link_downed_counter,
            (uint32_t)MIN(c->link_downs, UINT8_MAX));
    PRM_SET(ib_port_cntrs_grp_data_layout, set, port_rcv_errors, (uint32_t)MIN(bad, UINT16_MAX));
}

static const struct {
    uint8_t group;
    void (*fill)(struct fw *fw, const struct vport_counters *c, uint8_t *set);
} groups[] = {
    {PRM_PPCNT_GRP_IEEE_802_3, fill_802_3},
    {PRM_PPCNT_GRP_RFC_2863, fill_rfc_2863},
    {PRM_PPCNT_GRP_RFC_2819, fill_rfc_2819},
    {PRM_PPCNT_GRP_RFC_3635, fill_rfc_3635},
    {PRM_PPCNT_GRP_ETHERNET_EXTENDED, fill_extended},
    {PRM_PPCNT_GRP_PER_PRIORITY, fill_per_priority},
    {PRM_PPCNT_GRP_PHYSICAL_LAYER, fill_physical},
    {PRM_PPCNT_GRP_INFINIBAND_PORT, fill_infiniband},
};

enum syn reg_ppcnt_query(struct fw *fw, const uint8_t *in, uint8_t *out)
{
    uint32_t group = PRM_GET(ppcnt_reg, in, grp);
    uint32_t prio = PRM_GET(ppcnt_reg, in, prio_tc);

    if (PRM_GET(ppcnt_reg, in, clr)) {
        return SYN_REG_VALUE; /* the counters run on for every reader */
    }
    PRM_SET(ppcnt_reg, out, local_port, 1);
    PRM_SET(ppcnt_reg, out, grp, group);
    PRM_SET(ppcnt_reg, out, prio_tc, prio);
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        if (groups[i].group == group) {
            if (group != PRM_PPCNT_GRP_PER_PRIORITY || prio == 0) {
                groups[i].fill(fw, &fw->hca.vport->counters, PRM_PTR(ppcnt_reg, out, counter_set));
            }
            return SYN_OK;
        }
    }
    return SYN_REG_VALUE;
}
