/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A virtual port: it attaches a function to its card. It has the function's addresses, its
 * counters, and a queue of frames that came from inside the card.
 *
 * A vport belongs to the card and outlives its function. The function's reset ends the settings of
 * its driver (current MAC, lists, GIDs, filters). The vport's number, its permanent MAC and its
 * counters stay.
 */
#ifndef HCASIM_MODEL_VPORT_H
#define HCASIM_MODEL_VPORT_H

#include "model/port/mac_list.h"
#include "model/port/uplink.h"
#include "wire/encap/roce.h"
#include "wire/port.h"

struct eswitch;
struct hca;

#define PORT_MAX_GIDS       256
#define VPORT_LOG_GID_SLOTS 9
#define VPORT_GID_SLOTS     (1 << VPORT_LOG_GID_SLOTS)
G_STATIC_ASSERT(VPORT_GID_SLOTS >= 2 * PORT_MAX_GIDS);
#define VPORT_MAX_VLANS 4096

/* Most frames in a vport's queue. */
#define VPORT_QUEUE 64

/* The RoCE versions that SET_ROCE_ADDRESS takes and roce_cap reports, as bits: 1 and 2. */
#define ROCE_VERSIONS (1u << 0 | 1u << 2)

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

/* Counts frames sent and received, whether by the cable or not, and received frames that were
 * refused. */
struct vport_counters {
    struct traffic rx, tx;
    struct traffic rx_roce, tx_roce;                   /* the RoCE part of rx and tx */
    uint64_t rx_bad_icrc, rx_truncated, rx_bad_header; /* RoCE packets dropped by the parser */
    uint64_t rx_no_qp, rx_bad_gid;                     /* RoCE packets to no QP; to no GID */
    uint64_t rx_bad_pkey, rx_bad_qkey;                 /* key violations of RoCE packets */
    uint64_t rx_no_steering;                           /* Ethernet frames that no rule took */
    uint64_t rx_wqe_too_small;         /* Ethernet frames that were longer than their receive WQE */
    uint64_t rx_oversize, tx_oversize; /* longer than the port's MTU allows */
    uint64_t rx_discards;              /* copies beyond PORT_COPY_PIECES, or for a full queue */
};

/* What the function's next turn must look at. */
enum vport_pending {
    VPORT_PENDING_CABLE = 1, /* the cable may have frames */
    VPORT_PENDING_QUEUE = 2, /* the queue may have frames */
    VPORT_PENDING_LINK = 4,  /* the link may have changed */
};

struct vport {
    unsigned number; /* on its card, from 0 */
    unsigned place;  /* position in its switch's list */
    struct eswitch *sw;
    struct uplink *uplink; /* the physical port */
    struct hca *hca;       /* the attached function, or NULL */

    uint8_t permanent_mac[6];
    uint8_t mac[6]; /* nic_vport_context.permanent_address, which holds the current MAC */
    struct mac_list uc, mc;
    bool roce_enabled; /* nic_vport_context.roce_en */
    bool promisc_uc, promisc_mc, promisc_all;
    /* Ethernet frames of the function's send queues do not come back to the function, whatever its
     * TIRs say (nic_vport_context.disable_uc_local_lb, disable_mc_local_lb). A unicast to the own
     * address then goes where the next switch has it. RoCE packets come back as ever. */
    bool no_loop_uc, no_loop_mc;
    struct vport_gid gids[PORT_MAX_GIDS];
    uint16_t gid_slots[VPORT_GID_SLOTS]; /* index in gids[] + 1, by the hash of the GID; 0: free */
    /* Goes up with each change of gids[], or of other data that paths are made from. Code that
     * caches such data compares it. */
    uint32_t gid_version;
    uint64_t node_guid, port_guid;
    uint16_t mtu;                       /* nic_vport_context.mtu: frame bytes with FCS */
    uint8_t vlans[VPORT_MAX_VLANS / 8]; /* the driver's list; the driver can only read it back */

    struct vport_counters counters;
    struct vport_counters cleared; /* their values when QUERY_VPORT_COUNTER last cleared them */

    struct wire_port *queue[2];     /* frames to this vport: written at [0], polled at [1] */
    uint32_t queue_td[VPORT_QUEUE]; /* the transport domains of their senders, in the same order */
    unsigned queued, taken;         /* number of frames written and read so far */

    /* state of the function's turns */
    uint32_t pending; /* enum vport_pending; one word, because each turn checks it */
    /* link as last announced; the link was down since, at least for a moment */
    bool was_up, link_lost;
    uint64_t copies_end; /* value of hca->pieces at which copies end */
    /* where port_tx_reserve() found credit; NULL: nowhere, the frame is dropped */
    struct wire_port *reserved;
    struct vport *to; /* the vport whose queue reserved is; NULL: reserved is the cable */
    uint8_t *frame;   /* the reserved place */
    uint8_t *drop;    /* place for frames that are dropped */
    bool has_note;    /* the sender of the reserved frame has said why it is sent */
    struct wire_note note;
    struct roce_last last; /* the last packet that came without an ICRC */
};

struct vport *vport_new(struct eswitch *sw, unsigned number, const uint8_t mac[6]);
void vport_free(struct vport *vport);
/* Forgets the settings of the function's driver, and the frames in the queue. */
void vport_release(struct vport *vport);

/* Settings of the function's driver: the current MAC; one of the lists, of at most PORT_MAX_MACS;
 * the promiscuous modes. */
void vport_set_mac(struct vport *vport, const uint8_t mac[6]);
void vport_set_macs(struct vport *vport, struct mac_list *list, const uint8_t (*macs)[6],
                    unsigned n);
void vport_set_promisc(struct vport *vport, bool uc, bool mc, bool all);

static inline void vport_set_pending(struct vport *vport, enum vport_pending which, bool pends)
{
    vport->pending = pends ? vport->pending | which : vport->pending & ~(uint32_t)which;
}

/* Whether a unicast to this MAC is for this vport. */
static inline bool vport_has_mac(const struct vport *vport, const uint8_t mac[6])
{
    return memcmp(vport->mac, mac, 6) == 0 || mac_list_has(&vport->uc, mac);
}

/* Whether a received frame with this destination passes the vport's own MAC filter
 * (current MAC, uc/mc lists of the NIC vport context, promiscuous modes, broadcast). */
bool vport_accepts_mac(const struct vport *vport, const uint8_t dmac[6]);

/* -- the RoCE address table (model/port/gid.c) */

/* gid NULL: empties the entry. */
void vport_set_gid(struct vport *vport, unsigned index, const struct vport_gid *gid);
void vport_clear_gids(struct vport *vport);
/* The entry whose RoCE version, GID and VLAN match, or -1. */
int vport_find_gid(const struct vport *vport, const uint8_t gid[16], bool is_v1, bool has_vlan,
                   uint16_t vlan_id);
/* Whether the entry can be used: there is one, of RoCE version 1 or 2. */
bool vport_gid_is_usable(const struct vport_gid *entry);

/* -- receiving (model/port/vport_rx.c) */

/* Receives a frame of at least 14 bytes. The vport must have a function. from_td: if this same
 * function has sent the frame, the transport domain of its queue; else PORT_NO_TD. */
void vport_rx(struct vport *vport, const uint8_t *frame, size_t len, unsigned flags,
              uint32_t from_td);

#endif
