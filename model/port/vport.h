/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A virtual port: where a function stands on its card. It has the addresses by which frames find
 * it, its counters, and a queue of frames that came to it from inside the card.
 *
 * A vport belongs to the card and outlives its function. What a function's driver said of it
 * (current MAC, lists, GIDs, filters) ends with the function's reset; its number, its permanent MAC
 * and its counters stay.
 */
#ifndef HCASIM_MODEL_VPORT_H
#define HCASIM_MODEL_VPORT_H

#include "model/port/mac_list.h"
#include "model/port/uplink.h"
#include "wire/encap/roce.h"

struct eswitch;
struct hca;

#define PORT_MAX_GIDS       256
#define VPORT_LOG_GID_SLOTS 9
#define VPORT_GID_SLOTS     (1 << VPORT_LOG_GID_SLOTS)
G_STATIC_ASSERT(VPORT_GID_SLOTS >= 2 * PORT_MAX_GIDS);
#define VPORT_MAX_VLANS 4096

/* Frames in a vport's queue. */
#define VPORT_QUEUE 64

/* RoCE address table entry (SET_ROCE_ADDRESS, roce_addr_layout). */
struct vport_gid {
    bool valid;
    uint8_t version; /* PRM roce_version: 0 v1, 1 v1.5, 2 v2 */
    uint8_t l3_type; /* 0 IPv4, 1 IPv6 */
    uint8_t gid[16];
    uint8_t mac[6];
    bool has_vlan;
    uint16_t vlan_id;
};

/* What went in and out, be it by the cable or not, and what came and was refused. */
struct vport_counters {
    struct traffic rx, tx;
    struct traffic rx_roce, tx_roce;                   /* the part of it that is RoCE */
    uint64_t rx_bad_icrc, rx_truncated, rx_bad_header; /* RoCE packets dropped by the parser */
    uint64_t rx_no_qp, rx_bad_gid;                     /* RoCE packets that fit no QP, no GID */
    uint64_t rx_bad_pkey, rx_bad_qkey;                 /* key violations of RoCE packets */
    uint64_t rx_no_steering;                           /* Ethernet frames that nobody took */
    uint64_t rx_oversize, tx_oversize;                 /* longer than the port's MTU allows */
    uint64_t rx_discards; /* copies for receivers too many, or for a queue that is full */
};

/* What the function's next turn is to look at. */
enum vport_pending {
    VPORT_PENDING_CABLE = 1, /* frames may wait there */
    VPORT_PENDING_QUEUE = 2, /* here, too */
    VPORT_PENDING_LINK = 4,  /* the link may have changed */
};

struct vport {
    unsigned number; /* on its card, from 0 */
    unsigned place;  /* in its switch's list */
    struct eswitch *sw;
    struct uplink *uplink; /* the way out */
    struct hca *hca;       /* the function that stands here, or NULL */

    uint8_t permanent_mac[6];
    uint8_t mac[6]; /* nic_vport_context.permanent_address: the current one */
    struct mac_list uc, mc;
    bool roce_enabled; /* nic_vport_context.roce_en */
    bool promisc_uc, promisc_mc, promisc_all;
    struct vport_gid gids[PORT_MAX_GIDS];
    uint16_t gid_slots[VPORT_GID_SLOTS]; /* index in gids[] + 1 by a hash of the GID; 0: free */
    uint32_t gid_version; /* goes up with each change of gids[], or of what else a path is made
                           * from; who keeps something of that looks */
    uint64_t node_guid, port_guid;
    uint16_t mtu;                       /* nic_vport_context.mtu: frame bytes with FCS */
    uint8_t vlans[VPORT_MAX_VLANS / 8]; /* the driver's list, for it to read back */

    struct vport_counters counters;
    struct vport_counters cleared; /* as they stood when QUERY_VPORT_COUNTER last cleared them */

    struct wire_port *queue[2];     /* frames to it: written at [0], polled at [1] */
    uint32_t queue_td[VPORT_QUEUE]; /* their senders, in their order */
    unsigned queued, taken;         /* frames ever written, and read */

    /* of the function's turns */
    uint32_t pending;           /* enum vport_pending; one word, for each turn looks at it */
    bool was_up, link_lost;     /* link as last announced; it was down, if only for a moment */
    uint64_t copies_end;        /* pieces, as hca->pieces counts */
    struct wire_port *reserved; /* where port_tx_reserve() found credit; NULL: nowhere, drop */
    struct vport *to;           /* whose queue that is; NULL: it is the cable */
    uint8_t *frame;             /* the place */
    uint8_t *drop;              /* the place of frames that go nowhere */
    struct roce_last last;      /* without an ICRC that came */
};

struct vport *vport_new(struct eswitch *sw, unsigned number, const uint8_t mac[6]);
void vport_free(struct vport *vport);
/* What the function's driver said of it is forgotten, and so are the frames in its queue. */
void vport_release(struct vport *vport);

/* What its function's driver says of it: its current MAC; one of its lists, of at most
 * PORT_MAX_MACS; its promiscuous modes. */
void vport_set_mac(struct vport *vport, const uint8_t mac[6]);
void vport_set_macs(struct vport *vport, struct mac_list *list, const uint8_t (*macs)[6],
                    unsigned n);
void vport_set_promisc(struct vport *vport, bool uc, bool mc, bool all);

static inline void vport_set_pending(struct vport *vport, enum vport_pending which, bool pends)
{
    vport->pending = pends ? vport->pending | which : vport->pending & ~(uint32_t)which;
}

/* Whether a unicast to this MAC is for the vport. */
static inline bool vport_has_mac(const struct vport *vport, const uint8_t mac[6])
{
    return memcmp(vport->mac, mac, 6) == 0 || mac_list_has(&vport->uc, mac);
}

/* Whether a received frame with this destination passes the vport's own MAC filter
 * (current MAC, uc/mc lists of the NIC vport context, promiscuous modes, broadcast). */
bool vport_accepts_mac(const struct vport *vport, const uint8_t dmac[6]);

/* -- its RoCE address table (model/port/gid.c) */

/* gid NULL: the entry is empty from now on. */
void vport_set_gid(struct vport *vport, unsigned index, const struct vport_gid *gid);
void vport_clear_gids(struct vport *vport);
/* The RoCEv2 entry whose GID and VLAN match, or -1. */
int vport_find_gid(const struct vport *vport, const uint8_t gid[16], bool has_vlan,
                   uint16_t vlan_id);

/* -- receiving (model/port/vport_rx.c) */

/* A frame of 14 bytes at least has come to the vport, which has a function. from_td: the transport
 * domain of this very function that sent it, or PORT_NO_TD. */
void vport_rx(struct vport *vport, const uint8_t *frame, size_t len, unsigned flags,
              uint32_t from_td);

#endif
