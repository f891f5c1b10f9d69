/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A physical port of the card: cable, administration, what its PHY's registers keep, and what
 * passed the cable. It knows nothing of functions, and none of their resets changes it.
 */
#ifndef HCASIM_MODEL_UPLINK_H
#define HCASIM_MODEL_UPLINK_H

#include "model/port/cong.h"
#include "model/port/traffic.h"
#include "wire/encap/roce.h"

struct wire_port;

/* PMTU: the largest frame, and the one in force after reset (bytes, VLAN tag and FCS included). */
#define PORT_MAX_MTU      9978
#define PORT_DEFAULT_MTU  1522

#define FCS_LEN           4
#define PORT_DEFAULT_MBPS 100000
#define UPLINK_FEC_SPEEDS 4 /* for which PPLM has a wish (fw/regs_module.c) */
#define PRIORITIES        8
#define DSCPS             64

struct uplink_counters {
    struct traffic rx, tx;
    /* Of rx and tx, what has another priority than 0; element 0 counts nothing. */
    struct priority_traffic {
        uint64_t frames, bytes;
    } rx_priority[PRIORITIES], tx_priority[PRIORITIES];
    uint64_t rx_sizes[10], tx_sizes[10]; /* RFC 2819 classes, PPCNT group 2 */
    uint64_t rx_truncated;               /* frames without a whole header */
    uint64_t link_downs;                 /* times that the link went down */
};

/* Modes of an Ethernet link, as PTYS has them. */
struct link_modes {
    uint32_t legacy; /* bits: enum prm_eth_link_mode */
    uint32_t ext;    /* bits: enum prm_ext_eth_link_mode; 0: the generation does not know these */
};

/* What the registers of the PHY keep (fw/regs_port.c, fw/regs_module.c). */
struct uplink_phy {
    struct link_modes eth_admin; /* PTYS */
    bool an_disable_admin;
    bool has_mode;           /* of the next two something is known */
    struct link_modes mode;  /* since the link came up */
    uint64_t mode_downs;     /* times that it had been down before */
    bool pause_rx, pause_tx; /* PFCC */
    uint8_t pfc_rx, pfc_tx;
    uint8_t fec_admin[UPLINK_FEC_SPEEDS]; /* PPLM: corrections wished, by speed */
    bool trusts_dscp;                     /* QPTS: for priorities, not the VLAN tag */
    uint8_t dscp_priority[DSCPS];         /* QPDPM */
    uint64_t counters_cleared_ns;
};

/* What the card's functions owe to peers (model/port/owing.c). */
struct uplink_owing {
    unsigned begun; /* functions that have not done a round of their work in this epoch */
    unsigned owing; /* those of them for which peers have to wait at the moment */
    uint64_t epoch; /* how often all had */
};

struct uplink {
    unsigned number;        /* as registers and events name it, from 1 */
    struct wire_port *wire; /* the cable, or NULL */
    bool admin_up;          /* PAOS.admin_status */
    bool was_up;            /* when it was last looked at */
    uint16_t mtu;           /* PMTU.admin_mtu: bytes of a frame with one VLAN tag and FCS */
    uint32_t line_mbps;     /* what the PHY can do: no rate is limited to more */
    struct cong cong;
    struct uplink_owing owing;
    struct uplink_phy phy;
    struct uplink_counters counters;
};

/* As after power-on, but for the cable. */
void uplink_reset(struct uplink *uplink);

/* True if cable, link and administration say so. */
bool uplink_is_up(const struct uplink *uplink);
/* The link may have changed: counts it if it went down. Returns whether it is up. */
bool uplink_look(struct uplink *uplink);

/* The priority of an IP packet, whose frame's VLAN tag, if it has one, has pcp. */
static inline unsigned uplink_priority(const struct uplink *uplink, unsigned pcp, uint8_t tclass)
{
    return uplink->phy.trusts_dscp ? uplink->phy.dscp_priority[tclass >> 2] : pcp;
}

/* The same, of a RoCE packet. */
static inline unsigned uplink_roce_priority(const struct uplink *uplink,
                                            const struct roce_addr *addr)
{
    return uplink_priority(uplink, roce_priority(addr), addr->tclass);
}

/* Completes the path of a reliable or unreliable connection: its traffic class becomes ECT(0) if
 * the reaction point tags packets of this priority (tag_enable) and the class has no ECN bits yet.
 */
void uplink_mark_path(const struct uplink *uplink, struct roce_addr *addr);

/* A frame of len bytes, 14 or more; its headers are at frame. */
void uplink_count_rx(struct uplink *uplink, const uint8_t *frame, size_t len);
void uplink_count_tx(struct uplink *uplink, const uint8_t *frame, size_t len);

#endif
