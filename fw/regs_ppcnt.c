/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements PPCNT: the port's counters in the groups of the standards (802.3, RFC 2863, RFC 2819,
 * RFC 3635), by priority, of the physical layer, of InfiniBand, and the RoCE packets with a wrong
 * ICRC. They count the frames on the cable. The frame's vport finds and counts errors in it.
 *
 * Octets are those on the wire: the 4 bytes of FCS of each frame are counted, as the standards
 * require. The port has one buffer. The priority of a frame comes from its VLAN tag or its DSCP
 * (fw/regs_qos.c). Errors of a physical layer that the model does not have are 0, because they
 * cannot happen.
 */
#include "fw/regs.h"
#include "model/port/eswitch.h"

#define NS_PER_MS 1000000

/* Errors that the card's vports found in the frames that they received. */
static uint64_t ppcnt_found_wrong(const struct fw *fw, size_t counter)
{
    const struct eswitch *sw = fw->hca.vport->sw;
    uint64_t sum = 0;

    for (unsigned i = 0; i < sw->num_vports; i++) {
        sum += *(const uint64_t *)((const char *)&sw->vports[i]->counters + counter);
    }
    return sum;
}

#define FOUND(fw, counter) ppcnt_found_wrong(fw, offsetof(struct vport_counters, counter))

static uint64_t ppcnt_octets(const struct traffic *t)
{
    return traffic_bytes(t) + FCS_LEN * traffic_frames(t);
}

/* A 64-bit counter is stored as two dwords, high and low. */
#define PUT(s, p, field, value)                                                                    \
    do {                                                                                           \
        uint64_t put_value_ = (value);                                                             \
        PRM_SET(s, p, field##_high, put_value_ >> 32);                                             \
        PRM_SET(s, p, field##_low, put_value_ & 0xffffffff);                                       \
    } while (0)

static void ppcnt_fill_802_3(struct fw *fw, const struct uplink_counters *c, void *set)
{
#define P(field, value) PUT(eth_802_3_cntrs_grp_data_layout, set, field, value)
    P(a_frames_transmitted_ok, traffic_frames(&c->tx));
    P(a_frames_received_ok, traffic_frames(&c->rx));
    P(a_octets_transmitted_ok, ppcnt_octets(&c->tx));
    P(a_octets_received_ok, ppcnt_octets(&c->rx));
    P(a_multicast_frames_xmitted_ok, c->tx.frames[FRAME_MULTICAST]);
    P(a_broadcast_frames_xmitted_ok, c->tx.frames[FRAME_BROADCAST]);
    P(a_multicast_frames_received_ok, c->rx.frames[FRAME_MULTICAST]);
    P(a_broadcast_frames_received_ok, c->rx.frames[FRAME_BROADCAST]);
    P(a_frame_too_long_errors, FOUND(fw, rx_oversize));
#undef P
}

static void ppcnt_fill_rfc_2863(struct fw *fw, const struct uplink_counters *c, void *set)
{
#define P(field, value) PUT(eth_2863_cntrs_grp_data_layout, set, field, value)
    P(if_in_octets, ppcnt_octets(&c->rx));
    P(if_in_ucast_pkts, c->rx.frames[FRAME_UNICAST]);
    P(if_in_discards, FOUND(fw, rx_discards));
    P(if_in_errors, FOUND(fw, rx_oversize));
    P(if_out_octets, ppcnt_octets(&c->tx));
    P(if_out_ucast_pkts, c->tx.frames[FRAME_UNICAST]);
    P(if_out_discards, FOUND(fw, tx_oversize));
    P(if_in_multicast_pkts, c->rx.frames[FRAME_MULTICAST]);
    P(if_in_broadcast_pkts, c->rx.frames[FRAME_BROADCAST]);
    P(if_out_multicast_pkts, c->tx.frames[FRAME_MULTICAST]);
    P(if_out_broadcast_pkts, c->tx.frames[FRAME_BROADCAST]);
#undef P
}

static void ppcnt_fill_rfc_2819(struct fw *fw, const struct uplink_counters *c, void *set)
{
#define P(field, value) PUT(eth_2819_cntrs_grp_data_layout, set, field, value)
    P(ether_stats_octets, ppcnt_octets(&c->rx));
    P(ether_stats_pkts, traffic_frames(&c->rx));
    P(ether_stats_broadcast_pkts, c->rx.frames[FRAME_BROADCAST]);
    P(ether_stats_multicast_pkts, c->rx.frames[FRAME_MULTICAST]);
    P(ether_stats_oversize_pkts, FOUND(fw, rx_oversize));
    P(ether_stats_pkts64octets, c->rx_sizes[0]);
    P(ether_stats_pkts65to127octets, c->rx_sizes[1]);
    P(ether_stats_pkts128to255octets, c->rx_sizes[2]);
    P(ether_stats_pkts256to511octets, c->rx_sizes[3]);
    P(ether_stats_pkts512to1023octets, c->rx_sizes[4]);
    P(ether_stats_pkts1024to1518octets, c->rx_sizes[5]);
    P(ether_stats_pkts1519to2047octets, c->rx_sizes[6]);
    P(ether_stats_pkts2048to4095octets, c->rx_sizes[7]);
    P(ether_stats_pkts4096to8191octets, c->rx_sizes[8]);
    P(ether_stats_pkts8192to10239octets, c->rx_sizes[9]);
#undef P
}

static void ppcnt_fill_rfc_3635(struct fw *fw, const struct uplink_counters *c, void *set)
{
    PUT(eth_3635_cntrs_grp_data_layout, set, dot3stats_frame_too_longs, FOUND(fw, rx_oversize));
}

static void ppcnt_fill_extended(struct fw *fw, const struct uplink_counters *c, void *set)
{
    PUT(eth_extended_cntrs_grp_data_layout, set, rx_icrc_encapsulated, FOUND(fw, rx_bad_icrc));
}

static void ppcnt_fill_priority(const struct uplink_counters *c, unsigned priority, void *set)
{
    const struct priority_traffic *rx = &c->rx_priority[priority], *tx = &c->tx_priority[priority];
    struct priority_traffic in = *rx, out = *tx;

    if (priority == 0) { /* the total minus the other priorities */
        in = (struct priority_traffic){traffic_frames(&c->rx), traffic_bytes(&c->rx)};
        out = (struct priority_traffic){traffic_frames(&c->tx), traffic_bytes(&c->tx)};
        for (unsigned i = 1; i < PRIORITIES; i++) {
            in.frames -= rx[i].frames;
            in.bytes -= rx[i].bytes;
            out.frames -= tx[i].frames;
            out.bytes -= tx[i].bytes;
        }
    }
#define P(field, value) PUT(eth_per_prio_grp_data_layout, set, field, value)
    P(rx_octets, in.bytes + FCS_LEN * in.frames);
    P(rx_frames, in.frames);
    P(tx_octets, out.bytes + FCS_LEN * out.frames);
    P(tx_frames, out.frames);
#undef P
}

static void ppcnt_fill_physical(struct fw *fw, const struct uplink_counters *c, void *set)
{
    uint64_t age = hca_now(&fw->hca) - fw_uplink(fw)->phy.counters_cleared_ns;

    PUT(phys_layer_cntrs, set, time_since_last_clear, age / NS_PER_MS);
    PRM_SET(phys_layer_cntrs, set, link_down_events, (uint32_t)c->link_downs);
}

/* The bit error rate of a cable without errors, as cards report it: 15E-255. */
#define NO_ERRORS_COEF      15
#define NO_ERRORS_MAGNITUDE 255

static void ppcnt_fill_statistical(struct fw *fw, const struct uplink_counters *c, void *set)
{
    uint64_t age = hca_now(&fw->hca) - fw_uplink(fw)->phy.counters_cleared_ns;

    PUT(phys_layer_statistical_cntrs, set, time_since_last_clear, age / NS_PER_MS);
    PUT(phys_layer_statistical_cntrs, set, phy_received_bits, 8 * ppcnt_octets(&c->rx));
    PRM_SET(phys_layer_statistical_cntrs, set, raw_ber_coef, NO_ERRORS_COEF);
    PRM_SET(phys_layer_statistical_cntrs, set, raw_ber_magnitude, NO_ERRORS_MAGNITUDE);
    PRM_SET(phys_layer_statistical_cntrs, set, effective_ber_coef, NO_ERRORS_COEF);
    PRM_SET(phys_layer_statistical_cntrs, set, effective_ber_magnitude, NO_ERRORS_MAGNITUDE);
}

/* IBTA PortCounters (16.1.3.5): a counter stops at the largest value of its field. */
static void ppcnt_fill_infiniband(struct fw *fw, const struct uplink_counters *c, void *set)
{
    uint64_t bad = c->rx_truncated + FOUND(fw, rx_truncated) + FOUND(fw, rx_bad_header) +
                   FOUND(fw, rx_bad_icrc) + FOUND(fw, rx_oversize);

    PRM_SET(ib_port_cntrs_grp_data_layout, set, link_downed_counter,
            (uint32_t)MIN(c->link_downs, UINT8_MAX));
    PRM_SET(ib_port_cntrs_grp_data_layout, set, port_rcv_errors, (uint32_t)MIN(bad, UINT16_MAX));
}

static const struct {
    uint8_t group;
    void (*fill)(struct fw *fw, const struct uplink_counters *c, void *set);
} groups[] = {
    {PRM_PPCNT_GRP_IEEE_802_3, ppcnt_fill_802_3},
    {PRM_PPCNT_GRP_RFC_2863, ppcnt_fill_rfc_2863},
    {PRM_PPCNT_GRP_RFC_2819, ppcnt_fill_rfc_2819},
    {PRM_PPCNT_GRP_RFC_3635, ppcnt_fill_rfc_3635},
    {PRM_PPCNT_GRP_ETHERNET_EXTENDED, ppcnt_fill_extended},
    {PRM_PPCNT_GRP_PHYSICAL_LAYER, ppcnt_fill_physical},
    {PRM_PPCNT_GRP_PHYSICAL_LAYER_STATISTICAL, ppcnt_fill_statistical},
    {PRM_PPCNT_GRP_INFINIBAND_PORT, ppcnt_fill_infiniband},
};

enum syn reg_ppcnt_query(struct fw *fw, const void *in, void *out)
{
    uint32_t group = PRM_GET(ppcnt_reg, in, grp);
    uint32_t prio = PRM_GET(ppcnt_reg, in, prio_tc);

    if (PRM_GET(ppcnt_reg, in, clr)) {
        return SYN_REG_VALUE; /* the counters are never cleared, because all readers share them */
    }
    PRM_SET(ppcnt_reg, out, grp, group);
    PRM_SET(ppcnt_reg, out, prio_tc, prio);
    if (group == PRM_PPCNT_GRP_PER_PRIORITY) {
        if (prio < PRIORITIES) {
            ppcnt_fill_priority(&fw_uplink(fw)->counters, prio,
                                PRM_PTR(ppcnt_reg, out, counter_set));
        }
        return SYN_OK;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        if (groups[i].group == group) {
            groups[i].fill(fw, &fw_uplink(fw)->counters, PRM_PTR(ppcnt_reg, out, counter_set));
            return SYN_OK;
        }
    }
    return SYN_REG_VALUE;
}
