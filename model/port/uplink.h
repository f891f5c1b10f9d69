/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A physical port of the card: its cable, administrative state, the PHY's registers, and counters
 * of the frames on the cable. It knows nothing about functions, and a function's reset does not
 * change it.
 */
#ifndef HCASIM_MODEL_UPLINK_H
#define HCASIM_MODEL_UPLINK_H

#include "model/port/cong.h"
#include "model/port/traffic.h"
#include "wire/encap/ip.h"
#include "wire/encap/roce.h"

struct wire_port;

/* PMTU: the largest MTU, and the MTU after reset (bytes of a frame, with VLAN tag and FCS). */
#define PORT_MAX_MTU      9978
#define PORT_DEFAULT_MTU  1522

#define FCS_LEN           4
#define PORT_DEFAULT_MBPS 100000
#define UPLINK_FEC_SPEEDS 4 /* speed classes for which PPLM has a setting (fw/regs_module.c) */
#define PRIORITIES        8
#define TRAFFIC_CLASSES   8
#define TC_GROUPS         8
#define UPLINK_BUFFERS    8 /* receive buffers that priorities may have */
#define DSCPS             64

/* Only numbers of 64 bits (uplink_since()). */
struct uplink_counters {
    struct traffic rx, tx;
    /* The part of rx and tx with a priority other than 0; element 0 counts nothing. */
    struct priority_traffic {
        uint64_t frames, bytes;
    } rx_priority[PRIORITIES], tx_priority[PRIORITIES];
    uint64_t rx_sizes[10], tx_sizes[10]; /* RFC 2819 classes, PPCNT group 2 */
    uint64_t rx_truncated;               /* frames that are too short for an Ethernet header */
    /* MAC control frames; those among them that are pauses; those of an unknown kind */
    uint64_t rx_control, rx_pause_frames, rx_control_unknown;
    /* by priority: pauses that were obeyed, the time of the holds, and how many holds began */
    struct pause_traffic {
        uint64_t frames, ns, begun;
    } rx_pause[PRIORITIES];
    uint64_t link_downs; /* times that the link went down */
};

/* Everything that PPCNT's groups are made from: the counters of the cable, the errors that the
 * card's vports found in frames, and the time. Only numbers of 64 bits. */
struct uplink_tally {
    struct uplink_counters cable;
    uint64_t rx_oversize, tx_oversize, rx_discards;
    uint64_t rx_bad_icrc, rx_truncated, rx_bad_header;
    uint64_t ns; /* since the port was reset */
};

/* Modes of an Ethernet link, as in PTYS. */
struct link_modes {
    uint32_t legacy; /* bits: enum prm_eth_link_mode */
    uint32_t ext;    /* bits: enum prm_ext_eth_link_mode; 0: the generation has no such modes */
};

/* The most that a traffic class or the port sends (QETCR): max_bw_units, max_bw_value. */
struct tc_limit {
    uint8_t units, value;
};

enum {
    TC_NO_LIMIT = 0,
    TC_100_MBPS = 3,
    TC_1_GBPS = 4,
};

struct tc_setting {
    uint8_t group, percent; /* QETCR: group, bw_allocation */
    struct tc_limit max;
};

/* A receive buffer (PBMC), in cells. */
struct uplink_buffer {
    bool lossy;
    uint16_t size, xoff, xon;
};

/* The settings in the PHY's registers (fw/regs_port.c, fw/regs_module.c, fw/regs_qos.c). */
struct uplink_phy {
    struct link_modes eth_admin; /* PTYS */
    bool an_disable_admin;
    bool has_mode;           /* the next two fields are valid */
    struct link_modes mode;  /* mode of the present link */
    uint64_t mode_downs;     /* link_downs when mode was set */
    bool pause_rx, pause_tx; /* PFCC */
    uint8_t pfc_rx, pfc_tx;
    uint8_t fec_admin[UPLINK_FEC_SPEEDS]; /* PPLM: requested FEC modes, by speed class */
    bool trusts_dscp;             /* QPTS: priorities come from the DSCP, not from the VLAN tag */
    uint8_t dscp_priority[DSCPS]; /* QPDPM */
    uint8_t priority_tc[PRIORITIES]; /* QTCT */
    struct tc_setting tc[TRAFFIC_CLASSES];
    struct tc_limit port_max;
    struct uplink_buffer buffers[UPLINK_BUFFERS];
    uint32_t priority_buffer; /* PPTB: four bits for each priority */
    uint64_t counters_cleared_ns;
};

/* How many of the card's functions have work that peers wait for (model/port/owing.c). */
struct uplink_owing {
    unsigned begun; /* functions that have a round of their work under way */
    unsigned owing; /* the functions among them for which peers have to wait now */
    uint64_t epoch; /* goes up when all begun rounds are done */
};

/* The priorities that the link partner holds (model/port/pause.h). */
struct uplink_pause {
    uint8_t held; /* a bit for each priority, until it is seen that its time is over */
    uint64_t until[PRIORITIES]; /* the end of the hold, in the functions' time */
    uint64_t since[PRIORITIES]; /* its time is counted until then */
};

struct uplink {
    unsigned number;        /* its number in registers and events, from 1 */
    struct wire_port *wire; /* the cable, or NULL */
    bool admin_up;          /* PAOS.admin_status */
    bool is_cut;            /* the owner has cut the cable (fw_cut_cable()) */
    bool was_up;            /* whether it was up at the last uplink_look() */
    uint16_t mtu;           /* PMTU.admin_mtu: bytes of a frame with one VLAN tag and FCS */
    uint32_t line_mbps;     /* the PHY's speed, an upper bound for rates */
    struct cong cong;
    struct uplink_owing owing;
    struct uplink_pause pause;
    struct uplink_phy phy;
    struct uplink_counters counters;
    /* What was counted when PPCNT last cleared each of its sets of counters (fw/regs_ppcnt.c).
     * NULL: it has cleared none. */
    struct uplink_tally *cleared;
};

/* Brings the port to its state after power-on, except for the cable. */
void uplink_reset(struct uplink *uplink);

/* Subtracts what an earlier tally had counted. */
static inline void uplink_since(struct uplink_tally *now, const struct uplink_tally *then)
{
    uint64_t a[sizeof(*now) / 8], b[sizeof(*now) / 8];

    memcpy(a, now, sizeof(a));
    memcpy(b, then, sizeof(b));
    for (size_t i = 0; i < sizeof(*now) / 8; i++) {
        a[i] -= b[i];
    }
    memcpy(now, a, sizeof(a));
}

/* Whether frames of the cable are taken. */
static inline bool uplink_takes(const struct uplink *uplink)
{
    return uplink->admin_up && !uplink->is_cut;
}

/* Whether cable, link and administrative state are all up. */
bool uplink_is_up(const struct uplink *uplink);
/* The link may have changed: counts link failures. Returns whether the port is up. */
bool uplink_look(struct uplink *uplink);

/* The priority of an IP packet with traffic class tclass. pcp is the priority in its VLAN tag, or
 * 0. */
static inline unsigned uplink_priority(const struct uplink *uplink, unsigned pcp, uint8_t tclass)
{
    return uplink->phy.trusts_dscp ? uplink->phy.dscp_priority[tclass >> 2] : pcp;
}

/* The priority of a RoCE packet. */
static inline unsigned uplink_roce_priority(const struct uplink *uplink,
                                            const struct roce_addr *addr)
{
    return uplink_priority(uplink, roce_priority(addr), addr->tclass);
}

/* Completes the path of a reliable or unreliable connection: its traffic class becomes ECT(0) if
 * the reaction point tags packets of this priority (tag_enable) and the class has no ECN bits yet.
 */
void uplink_mark_path(const struct uplink *uplink, struct roce_addr *addr);

/* The RFC 2819 size class of a frame with its FCS: up to 64, 127, 255, 511, 1023, 1518, 2047, 4095,
 * 8191 bytes, and longer. All bounds except two are powers of two. */
static inline unsigned uplink_size_class(size_t len)
{
    unsigned bytes = (unsigned)len + FCS_LEN;
    unsigned log2 = 31u - (unsigned)__builtin_clz(bytes);

    if (bytes <= 64) {
        return 0;
    }
    if (log2 <= 10) {
        return log2 - 5 + (bytes > 1518);
    }
    return MIN(log2 - 4, 9);
}

/* Counts a frame that has a priority, other than by class and size. */
void uplink_count_priority(const struct uplink *uplink, struct priority_traffic *by_priority,
                           const uint8_t *frame, size_t len);

static inline void uplink_count(const struct uplink *uplink, struct traffic *all, uint64_t *sizes,
                                struct priority_traffic *by_priority, const uint8_t *frame,
                                size_t len)
{
    traffic_count(all, frame_class(frame), len);
    sizes[uplink_size_class(len)]++;
    if (G_UNLIKELY(uplink->phy.trusts_dscp) || G_UNLIKELY(frame[12] == ETH_TYPE_VLAN >> 8)) {
        uplink_count_priority(uplink, by_priority, frame, len);
    }
}

/* Each counts a frame of len bytes. len is at least 14, and the headers are at frame. */
static inline void uplink_count_rx(struct uplink *uplink, const uint8_t *frame, size_t len)
{
    struct uplink_counters *c = &uplink->counters;

    uplink_count(uplink, &c->rx, c->rx_sizes, c->rx_priority, frame, len);
}

static inline void uplink_count_tx(struct uplink *uplink, const uint8_t *frame, size_t len)
{
    struct uplink_counters *c = &uplink->counters;

    uplink_count(uplink, &c->tx, c->tx_sizes, c->tx_priority, frame, len);
}

#endif
