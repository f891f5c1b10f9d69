/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HCA's one physical port: cable, link state, addresses, counters, and where a received frame
 * goes.
 *
 * Sending: a transport or SQ reserves room for a frame, builds it in place and commits it. A
 * frame for a MAC of this very port takes the loopback path and comes back as a received frame in a
 * later step of hca_run().
 * Receiving: RoCEv2 goes to the QPs and everything else to steering: struct port_receivers.
 */
#ifndef HCASIM_MODEL_PORT_H
#define HCASIM_MODEL_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/core/hca.h"
#include "wire/encap/roce.h"

struct wire_pause;
struct wire_port;

#define PORT_MAX_GIDS 256
#define PORT_MAX_MACS 128

/* PMTU: the largest frame, and the one in force after reset (bytes, VLAN tag and FCS included). */
#define PORT_MAX_MTU     9978
#define PORT_DEFAULT_MTU 1522

/* Frames in the loopback path. */
#define PORT_LOOP_SLOTS 64

/* The sender of a frame that came from the wire, or from a QP. */
#define PORT_NO_TD 0xffffffffu

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

/* What the port has seen; the source of PPCNT, vport counters and sysfs. */
struct vport_counters {
    uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
    uint64_t rx_unicast_frames, rx_unicast_bytes, rx_multicast_frames, rx_multicast_bytes,
        rx_broadcast_frames, rx_broadcast_bytes;
    uint64_t tx_unicast_frames, tx_unicast_bytes, tx_multicast_frames, tx_multicast_bytes,
        tx_broadcast_frames, tx_broadcast_bytes;
    /* RoCE part of the unicasts and multicasts (vport counters "received_ib_unicast"...) */
    uint64_t rx_roce_unicast_frames, rx_roce_unicast_bytes, rx_roce_multicast_frames,
        rx_roce_multicast_bytes;
    uint64_t tx_roce_unicast_frames, tx_roce_unicast_bytes, tx_roce_multicast_frames,
        tx_roce_multicast_bytes;
    uint64_t rx_bad_icrc, rx_truncated, rx_bad_header; /* RoCE packets dropped by the parser */
    uint64_t rx_no_qp, rx_bad_gid;                     /* RoCE packets that fit no QP, no GID */
    uint64_t rx_bad_pkey, rx_bad_qkey;                 /* key violations of RoCE packets */
    uint64_t rx_cnp;                                   /* congestion notifications */
    uint64_t rx_no_steering;                           /* Ethernet frames that nobody took */
    uint64_t rx_oversize, tx_oversize;                 /* longer than the port's MTU allows */
    uint64_t rx_discards;                              /* copies for receivers too many */
    uint64_t link_downs;                               /* times that the link went down */
    uint64_t rx_size_hist[10], tx_size_hist[10];       /* RFC 2819 histogram, PPCNT group 2 */
};

/* What port_poll() is to look at. */
enum port_pending {
    PORT_PENDING_CABLE = 1, /* frames may wait there */
    PORT_PENDING_LOOP = 2,  /* here, too */
    PORT_PENDING_LINK = 4,  /* the cable said that its state changed */
};

struct vport {
    struct wire_port *wire;            /* the cable, or NULL */
    struct wire_port *loop[2];         /* loopback: written at [0], polled at [1] */
    uint32_t loop_td[PORT_LOOP_SLOTS]; /* senders of the frames in it, in their order */
    unsigned loop_in, loop_out;        /* frames ever written, and read */
    struct wire_port *reserved;        /* where port_tx_reserve() found room; NULL: nowhere, drop */
    uint8_t *frame;                    /* the room */
    uint8_t *drop;                     /* room for frames that go nowhere */
    uint8_t permanent_mac[6];
    uint8_t mac[6];    /* nic_vport_context.permanent_address: the current one */
    bool admin_up;     /* PAOS.admin_status */
    bool roce_enabled; /* nic_vport_context.roce_en */
    bool promisc_uc, promisc_mc, promisc_all;
    uint8_t uc_list[PORT_MAX_MACS][6], mc_list[PORT_MAX_MACS][6];
    unsigned num_uc, num_mc;
    uint16_t mtu; /* PMTU.admin_mtu: bytes of a frame with one VLAN tag and FCS */
    struct vport_gid gids[PORT_MAX_GIDS];
    uint32_t gid_version; /* goes up with each change of gids[]; who keeps something of one looks */
    struct vport_counters counters;
    uint32_t pending;    /* enum port_pending; one word, for each turn looks at all of it */
    bool was_up;         /* link state last announced */
    bool link_lost;      /* in between it was down, if only for a moment */
    uint64_t copies_end; /* pieces, as hca->pieces counts */
};

void port_init(struct hca *hca, const uint8_t mac[6]);
/* The function lets go of the port: its addresses and filters are gone. The port's own state stays
 * as it is: administration, MTU, counters. */
void port_release(struct hca *hca);
/* All of it as after power-on, but for the cable. */
void port_reset(struct hca *hca);
void port_clear(struct hca *hca);

/* Cable in (or NULL: out). */
void port_set_wire(struct hca *hca, struct wire_port *wire);

/* PMTU: the longest frame, in bytes with one VLAN tag and FCS. */
static inline uint16_t port_mtu(const struct hca *hca)
{
    return hca->vport->mtu;
}

/* True if cable, link and administration say so. Operational state of PAOS and vport state. */
bool port_is_up(const struct hca *hca);
/* Announces a change of port_is_up() by a PORT_CHANGE event, if there was one. What the cable says
 * is announced so by port_poll(). */
void port_update_link(struct hca *hca);

/* Room for a frame of up to len bytes to dmac. NULL: no room now; call hca_wait_tx(). While the
 * link is down frames are taken and dropped, as a NIC does; loopback works without a link. */
uint8_t *port_tx_reserve(struct hca *hca, const uint8_t dmac[6], size_t len);
/* Sends what was built in the room last reserved; len 0 gives it back. from_td: the transport
 * domain of the queue that sends, or PORT_NO_TD. */
void port_tx_commit(struct hca *hca, size_t len, uint32_t from_td);
/* Completes the RoCE packet that roce_build() and its payload began there, and sends it; a copy of
 * one to a multicast group goes to this port's own members. A frame that is longer than the port's
 * MTU is dropped and counted: the path MTU of a connection is not held against it before. */
void port_tx_commit_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len);

/* Whether the receiver of frames to dmac lives but has not yet come to what was sent to it
 * (wire_is_paused()). */
bool port_is_paused(struct hca *hca, const uint8_t dmac[6], struct wire_pause *pause);

/* What was sent from within hca_run() may leave only with this. */
void port_tx_flush(struct hca *hca);

/* Brings a copy of a frame back to this port by the loopback path; without room there it is
 * lost. For multicasts, which go to the wire and to their own port's members. flags: enum
 * wire_frame_flags. */
void port_loop(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags, uint32_t from_td);

/* Whether port_poll() would find frames, or news of the cable. */
bool port_rx_pending(const struct hca *hca);

/* Takes frames from cable and loopback as long as hca_may_go_on(). True: more of them wait. */
bool port_poll(struct hca *hca);
/* One more look later in the same turn, whether or not something says that there are any: takes a
 * few at most. */
void port_look(struct hca *hca);

/* Whether a received frame with this destination passes the port's own MAC filter
 * (current MAC, uc/mc lists of the NIC vport context, promiscuous modes, broadcast). */
bool port_accepts_mac(const struct hca *hca, const uint8_t dmac[6]);

/* The RoCEv2 entry whose GID and VLAN match, or -1. */
int vport_find_gid(const struct vport *vport, const uint8_t gid[16], bool has_vlan,
                   uint16_t vlan_id);

/* Names of before, for model/rdma. */
#define port_gid                vport_gid
#define port_counters           vport_counters
#define port_find_gid(hca, ...) vport_find_gid((hca)->vport, __VA_ARGS__)

/* What a turn's frames may cost at the second and further of their receivers. Some frames to 64 QPs
 * or 128 queues each, as a turn takes them at a time, cost less; to memory in small pieces, more.
 */
#define PORT_COPY_PIECES 32768

/* Whether one more receiver of a frame may get it. False: copies to others than the first have
 * taken what they may of this turn; this one is dropped, and counted. */
bool port_may_copy(struct hca *hca, bool is_first);

/*
 * Who takes what the port receives: the wings above it (model/card/hca.c). Packets and frames are
 * valid during the call.
 */
struct port_receivers {
    void (*roce)(struct hca *hca, const struct roce_packet *pkt);
    /* from_td as above; wanted: it passed the MAC filter. Returns whether it was delivered. */
    bool (*eth)(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td, bool wanted);
    /* Whether a frame to this MAC is wanted that the port's own filter does not know: a group of
     * which QPs are members. */
    bool (*wants_mac)(struct hca *hca, const uint8_t dmac[6]);
    /* A datagram is about to be sent: whether QPs of this HCA get a copy of it (IBTA 10.5.2). */
    bool (*wants_copy)(struct hca *hca, const struct roce_addr *addr);
};
extern const struct port_receivers port_receivers;

#endif
