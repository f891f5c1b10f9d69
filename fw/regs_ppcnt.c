/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements PPCNT: the port's counters in the groups of the standards (802.3, RFC 2863, RFC 2819,
 * RFC 3635), of discards, by priority and traffic class, of the physical layer, of InfiniBand, and
 * the RoCE packets with a wrong ICRC. They count the frames on the cable. The frame's vport finds
 * and counts errors in it.
 *
 * Octets are those on the wire: the 4 bytes of FCS of each frame are counted, as the standards
 * require. The port has one buffer. The priority of a frame comes from its VLAN tag or its DSCP
 * (fw/regs_qos.c). Errors of a physical layer that the model does not have are 0, because they
 * cannot happen.
 *
 * A read with clr set clears the counters of one group, for a group by priority or traffic class
 * those of one of them, as seen by all later reads of that group. No other group changes.
 */
#include "fw/regs.h"
#include "model/port/eswitch.h"
#include "model/port/pause.h"

#define NS_PER_US 1000
#define NS_PER_MS 1000000

/* The counts of port and vports since the port was reset. */
static void ppcnt_tally(struct fw *fw, struct uplink_tally *t)
{
    const struct eswitch *sw = fw->hca.vport->sw;

    pause_count(fw_uplink(fw), hca_now(&fw->hca));
    *t = (struct uplink_tally){.cable = fw_uplink(fw)->counters};
    t->ns = hca_now(&fw->hca) - fw_uplink(fw)->phy.counters_cleared_ns;
    for (unsigned i = 0; i < sw->num_vports; i++) {
        const struct vport_counters *c = &sw->vports[i]->counters;

        t->rx_oversize += c->rx_oversize;
        t->tx_oversize += c->tx_oversize;
        t->rx_discards += c->rx_discards;
        t->rx_bad_icrc += c->rx_bad_icrc;
        t->rx_truncated += c->rx_truncated;
        t->rx_bad_header += c->rx_bad_header;
    }
}

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

static void ppcnt_fill_802_3(const struct uplink_tally *t, unsigned unit, void *set)
{
#define P(field, value) PUT(eth_802_3_cntrs_grp_data_layout, set, field, value)
    P(a_frames_transmitted_ok, traffic_frames(&t->cable.tx));
    P(a_frames_received_ok, traffic_frames(&t->cable.rx));
    P(a_octets_transmitted_ok, ppcnt_octets(&t->cable.tx));
    P(a_octets_received_ok, ppcnt_octets(&t->cable.rx));
    P(a_multicast_frames_xmitted_ok, t->cable.tx.frames[FRAME_MULTICAST]);
    P(a_broadcast_frames_xmitted_ok, t->cable.tx.frames[FRAME_BROADCAST]);
    P(a_multicast_frames_received_ok, t->cable.rx.frames[FRAME_MULTICAST]);
    P(a_broadcast_frames_received_ok, t->cable.rx.frames[FRAME_BROADCAST]);
    P(a_frame_too_long_errors, t->rx_oversize);
    P(a_mac_control_frames_received, t->cable.rx_control);
    P(a_unsupported_opcodes_received, t->cable.rx_control_unknown);
    P(a_pause_mac_ctrl_frames_received, t->cable.rx_pause_frames);
#undef P
}

static void ppcnt_fill_rfc_2863(const struct uplink_tally *t, unsigned unit, void *set)
{
#define P(field, value) PUT(eth_2863_cntrs_grp_data_layout, set, field, value)
    P(if_in_octets, ppcnt_octets(&t->cable.rx));
    P(if_in_ucast_pkts, t->cable.rx.frames[FRAME_UNICAST]);
    P(if_in_discards, t->rx_discards);
    P(if_in_errors, t->rx_oversize);
    P(if_out_octets, ppcnt_octets(&t->cable.tx));
    P(if_out_ucast_pkts, t->cable.tx.frames[FRAME_UNICAST]);
    P(if_out_discards, t->tx_oversize);
    P(if_in_multicast_pkts, t->cable.rx.frames[FRAME_MULTICAST]);
    P(if_in_broadcast_pkts, t->cable.rx.frames[FRAME_BROADCAST]);
    P(if_out_multicast_pkts, t->cable.tx.frames[FRAME_MULTICAST]);
    P(if_out_broadcast_pkts, t->cable.tx.frames[FRAME_BROADCAST]);
#undef P
}

static void ppcnt_fill_rfc_2819(const struct uplink_tally *t, unsigned unit, void *set)
{
#define P(field, value) PUT(eth_2819_cntrs_grp_data_layout, set, field, value)
    P(ether_stats_octets, ppcnt_octets(&t->cable.rx));
    P(ether_stats_pkts, traffic_frames(&t->cable.rx));
    P(ether_stats_broadcast_pkts, t->cable.rx.frames[FRAME_BROADCAST]);
    P(ether_stats_multicast_pkts, t->cable.rx.frames[FRAME_MULTICAST]);
    P(ether_stats_oversize_pkts, t->rx_oversize);
    P(ether_stats_pkts64octets, t->cable.rx_sizes[0]);
    P(ether_stats_pkts65to127octets, t->cable.rx_sizes[1]);
    P(ether_stats_pkts128to255octets, t->cable.rx_sizes[2]);
    P(ether_stats_pkts256to511octets, t->cable.rx_sizes[3]);
    P(ether_stats_pkts512to1023octets, t->cable.rx_sizes[4]);
    P(ether_stats_pkts1024to1518octets, t->cable.rx_sizes[5]);
    P(ether_stats_pkts1519to2047octets, t->cable.rx_sizes[6]);
    P(ether_stats_pkts2048to4095octets, t->cable.rx_sizes[7]);
    P(ether_stats_pkts4096to8191octets, t->cable.rx_sizes[8]);
    P(ether_stats_pkts8192to10239octets, t->cable.rx_sizes[9]);
#undef P
}

static void ppcnt_fill_rfc_3635(const struct uplink_tally *t, unsigned unit, void *set)
{
    PUT(eth_3635_cntrs_grp_data_layout, set, dot3stats_frame_too_longs, t->rx_oversize);
}

/* Frames that were whole and are lost: on receive those of ifInDiscards, on send those of
 * ifOutDiscards. */
static void ppcnt_fill_discards(const struct uplink_tally *t, unsigned unit, void *set)
{
    PUT(eth_discard_cntrs_grp, set, ingress_general, t->rx_discards);
    PUT(eth_discard_cntrs_grp, set, egress_general, t->tx_oversize);
}

static void ppcnt_fill_extended(const struct uplink_tally *t, unsigned unit, void *set)
{
    PUT(eth_extended_cntrs_grp_data_layout, set, rx_icrc_encapsulated, t->rx_bad_icrc);
}

static void ppcnt_fill_priority(const struct uplink_tally *t, unsigned priority, void *set)
{
    const struct priority_traffic *rx = t->cable.rx_priority, *tx = t->cable.tx_priority;
    struct priority_traffic in = rx[priority], out = tx[priority];

    if (priority == 0) { /* the total minus the other priorities */
        in = (struct priority_traffic){traffic_frames(&t->cable.rx), traffic_bytes(&t->cable.rx)};
        out = (struct priority_traffic){traffic_frames(&t->cable.tx), traffic_bytes(&t->cable.tx)};
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
    P(rx_pause, t->cable.rx_pause[priority].frames);
    P(rx_pause_duration, t->cable.rx_pause[priority].ns / NS_PER_US);
    P(rx_pause_transition, t->cable.rx_pause[priority].begun);
#undef P
}

/* A traffic class's queue and its congestion: nothing waits behind the cable, no packet is dropped
 * early or for want of buffer, and the port marks none. So all of these counters are 0. */
static void ppcnt_fill_nothing(const struct uplink_tally *t, unsigned unit, void *set)
{
}

static void ppcnt_fill_physical(const struct uplink_tally *t, unsigned unit, void *set)
{
    PUT(phys_layer_cntrs, set, time_since_last_clear, t->ns / NS_PER_MS);
    PRM_SET(phys_layer_cntrs, set, link_down_events, (uint32_t)t->cable.link_downs);
}

/* The bit error rate of a cable without errors, as cards report it: 15E-255. */
#define NO_ERRORS_COEF      15
#define NO_ERRORS_MAGNITUDE 255

static void ppcnt_fill_statistical(const struct uplink_tally *t, unsigned unit, void *set)
{
    PUT(phys_layer_statistical_cntrs, set, time_since_last_clear, t->ns / NS_PER_MS);
    PUT(phys_layer_statistical_cntrs, set, phy_received_bits, 8 * ppcnt_octets(&t->cable.rx));
    PRM_SET(phys_layer_statistical_cntrs, set, raw_ber_coef, NO_ERRORS_COEF);
    PRM_SET(phys_layer_statistical_cntrs, set, raw_ber_magnitude, NO_ERRORS_MAGNITUDE);
    PRM_SET(phys_layer_statistical_cntrs, set, effective_ber_coef, NO_ERRORS_COEF);
    PRM_SET(phys_layer_statistical_cntrs, set, effective_ber_magnitude, NO_ERRORS_MAGNITUDE);
}

/* IBTA PortCounters (16.1.3.5): a counter stops at the largest value of its field. */
static void ppcnt_fill_infiniband(const struct uplink_tally *t, unsigned unit, void *set)
{
    uint64_t bad = t->cable.rx_truncated + t->rx_truncated + t->rx_bad_header + t->rx_bad_icrc +
                   t->rx_oversize;

    PRM_SET(ib_port_cntrs_grp_data_layout, set, link_downed_counter,
            (uint32_t)MIN(t->cable.link_downs, UINT8_MAX));
    PRM_SET(ib_port_cntrs_grp_data_layout, set, port_rcv_errors, (uint32_t)MIN(bad, UINT16_MAX));
}

/* units: sets of counters in the group, one for each priority or traffic class. */
static const struct ppcnt_group {
    uint8_t group, units;
    void (*fill)(const struct uplink_tally *t, unsigned unit, void *set);
} groups[] = {
    {PRM_PPCNT_GRP_IEEE_802_3, 1, ppcnt_fill_802_3},
    {PRM_PPCNT_GRP_RFC_2863, 1, ppcnt_fill_rfc_2863},
    {PRM_PPCNT_GRP_RFC_2819, 1, ppcnt_fill_rfc_2819},
    {PRM_PPCNT_GRP_RFC_3635, 1, ppcnt_fill_rfc_3635},
    {PRM_PPCNT_GRP_ETHERNET_EXTENDED, 1, ppcnt_fill_extended},
    {PRM_PPCNT_GRP_ETHERNET_DISCARD, 1, ppcnt_fill_discards},
    {PRM_PPCNT_GRP_PER_PRIORITY, PRIORITIES, ppcnt_fill_priority},
    {PRM_PPCNT_GRP_PER_TRAFFIC_CLASS, PRIORITIES, ppcnt_fill_nothing},
    {PRM_PPCNT_GRP_PHYSICAL_LAYER, 1, ppcnt_fill_physical},
    {PRM_PPCNT_GRP_PER_TRAFFIC_CLASS_CONGESTION, PRIORITIES, ppcnt_fill_nothing},
    {PRM_PPCNT_GRP_PHYSICAL_LAYER_STATISTICAL, 1, ppcnt_fill_statistical},
    {PRM_PPCNT_GRP_INFINIBAND_PORT, 1, ppcnt_fill_infiniband},
};

/* Sets of counters before those of a group; of the last: all sets. */
static unsigned ppcnt_sets_before(size_t group)
{
    unsigned sets = 0;

    for (size_t i = 0; i < group; i++) {
        sets += groups[i].units;
    }
    return sets;
}

static void ppcnt_read(struct fw *fw, size_t group, unsigned unit, bool clear, void *set)
{
    struct uplink *uplink = fw_uplink(fw);
    unsigned at = ppcnt_sets_before(group) + unit;
    struct uplink_tally all, t;

    ppcnt_tally(fw, &all);
    t = all;
    if (uplink->cleared) {
        uplink_since(&t, &uplink->cleared[at]);
    }
    groups[group].fill(&t, unit, set);
    if (clear && !uplink->cleared) {
        uplink->cleared = g_new0(struct uplink_tally, ppcnt_sets_before(G_N_ELEMENTS(groups)));
    }
    if (clear) {
        uplink->cleared[at] = all;
    }
}

enum syn reg_ppcnt_query(struct fw *fw, const void *in, void *out)
{
    uint32_t group = PRM_GET(ppcnt_reg, in, grp);
    uint32_t unit = PRM_GET(ppcnt_reg, in, prio_tc);

    PRM_SET(ppcnt_reg, out, grp, group);
    PRM_SET(ppcnt_reg, out, prio_tc, unit);
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++) {
        if (groups[i].group != group) {
            continue;
        }
        if (groups[i].units == 1) {
            unit = 0; /* the field counts only for a group by priority or class */
        }
        if (unit < groups[i].units) { /* other priorities and classes count nothing */
            ppcnt_read(fw, i, unit, PRM_GET(ppcnt_reg, in, clr),
                       PRM_PTR(ppcnt_reg, out, counter_set));
        }
        return SYN_OK;
    }
    return SYN_REG_VALUE;
}
