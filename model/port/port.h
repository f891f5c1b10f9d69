/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives a function's frames, through its vport (model/port/vport.h), the card's switch
 * (model/port/eswitch.h), and the cable (model/port/uplink.h).
 *
 * Sending: a transport or SQ reserves a place for a frame, for which the wire has credit, builds
 * the frame there and commits it. A frame for a MAC of a vport of this card goes into that vport's
 * queue (also a frame to the sender itself). It is received from the queue in a later step of
 * hca_run(). Between reserve and commit the host is only read from, so no other function of the
 * card can come between. Receiving: RoCEv2 goes to the QPs and everything else to steering: struct
 * port_receivers.
 */
#ifndef HCASIM_MODEL_PORT_H
#define HCASIM_MODEL_PORT_H

#include "model/core/hca.h"
#include "model/port/vport.h"
#include "wire/encap/roce.h"

struct wire_pause;

/* The transport domain of a frame that came from the wire, from a QP, or from another function. */
#define PORT_NO_TD 0xffffffffu

/* Attaches the function to a vport, and detaches it. */
void port_init(struct hca *hca, struct vport *vport);
void port_clear(struct hca *hca);

/* Plugs in the card's cable; NULL unplugs it. */
void port_set_wire(struct hca *hca, struct wire_port *wire);

/* PMTU: the longest frame, in bytes with one VLAN tag and FCS. */
static inline uint16_t port_mtu(const struct hca *hca)
{
    return hca->vport->uplink->mtu;
}

/* Whether the port is up: the operational state of PAOS and the vport state. */
static inline bool port_is_up(const struct hca *hca)
{
    return uplink_is_up(hca->vport->uplink);
}

/* If port_is_up() has changed, announces it by a PORT_CHANGE event: to this function at once, to
 * the other functions of the card in their turns. A change of the cable's link is announced to all
 * functions in their turns. */
void port_update_link(struct hca *hca);

/* Reserves a place for a frame of up to len bytes to dmac, sent by a queue of that priority. NULL:
 * no credit now, or the link partner holds the priority; call hca_wait_tx().
 * While the link is down, frames are taken and dropped, as a NIC does. A frame that stays in the
 * card needs no link. */
uint8_t *port_tx_reserve(struct hca *hca, const uint8_t dmac[6], unsigned priority, size_t len);
/* Sends the frame that was built in the last reserved place; len 0 gives the place back. from_td:
 * the transport domain of the sending queue, or PORT_NO_TD. */
void port_tx_commit(struct hca *hca, size_t len, uint32_t from_td);
/* The same for a RoCE packet: writes its headers, and returns the place of its payload. */
uint8_t *port_tx_reserve_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len);
/* Completes the packet that was begun there, and sends it. A packet to a multicast group is also
 * copied to this function's own members. A frame longer than the port's MTU is dropped and counted;
 * the path MTU of a connection is not checked against the port's MTU before. */
void port_tx_commit_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len);

/* Whether somebody wants to know why the frame in the last reserved place is sent. Then its sender
 * calls port_note() before it commits the frame. */
static inline bool port_wants_note(const struct hca *hca)
{
    const struct wire_port *reserved = hca->vport->reserved;

    return hca->tracing || (reserved && reserved->wants_notes);
}

/* Says why. note->function is filled in here. */
void port_note(struct hca *hca, const struct wire_note *note);

/* Whether the receiver of frames to dmac lives, but has not read yet what was sent to it
 * (wire_is_paused()). */
bool port_is_paused(struct hca *hca, const uint8_t dmac[6], struct wire_pause *pause);

/* Lets frames out that were sent during hca_run(); some wires hold them until this call. */
void port_tx_flush(struct hca *hca);

/* Called at the end of a turn, before port_tx_flush(): tells the wire whether peers have to wait
 * for this function (model/port/owing.c). */
void port_owe(struct hca *hca);
/* The function has no work left that peers could wait for. */
void port_owe_nothing(struct hca *hca);

/* Called before port_tx_commit(): copies the frame in the last reserved place back to this function
 * through its vport's queue. Without credit there the copy is lost. It is for multicasts, which go
 * to the wire and to their own function's members. If the destination address is the function's
 * own, the frame comes back anyway, and nothing is copied. flags: enum wire_frame_flags. */
void port_loop(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags, uint32_t from_td);

/* Whether port_poll() would find frames, or a change of the link. */
static inline bool port_rx_pending(const struct hca *hca)
{
    return hca->vport->pending;
}

/* Takes frames from the vport's queue, and from the cable if this function reads it, as long as
 * hca_may_go_on(). True: more frames wait. */
bool port_poll(struct hca *hca);
/* Looks for frames once more in the same turn, even if nothing has announced any. Takes a small
 * number of frames at most. */
void port_look(struct hca *hca);

/* The most pieces that a turn's frames may cost at their second and further receivers. This is
 * enough for the frames that a turn takes at a time, each to 64 QPs or 128 queues; it may not be
 * enough if they go to memory in small pieces. */
#define PORT_COPY_PIECES 32768

/* Whether one more receiver of a frame may get it. is_first: it is the frame's first receiver,
 * which always gets it. False: copies have used up their pieces of this turn; this copy is dropped
 * and counted. */
bool port_may_copy(struct hca *hca, bool is_first);

/*
 * The functions of higher folders that take received frames (model/card/hca.c fills them in).
 * Packets and frames are valid only during the call.
 */
struct port_receivers {
    void (*roce)(struct hca *hca, const struct roce_packet *pkt);
    /* Called first for a RoCE frame if hca->steers_roce is set. False: no QP gets the frame. */
    bool (*steer_roce)(struct hca *hca, const uint8_t *frame, size_t len);
    /* from_td as above. passed_filter: the frame passed the vport's MAC filter. Returns whether the
     * frame was delivered. */
    bool (*eth)(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td,
                bool passed_filter);
    /* Called before a RoCE packet is sent if hca->sniffs_tx is set, with the whole frame. False: a
     * rule drops it. */
    bool (*steer_roce_tx)(struct hca *hca, const uint8_t *frame, size_t len);
    /* Called for each sent frame if hca->sniffs_tx is set. */
    void (*sniff_tx)(struct hca *hca, const uint8_t *frame, size_t len);
    /* Whether the function wants frames to this MAC although the vport's own filter rejects it: it
     * is the address of a group whose members are QPs. */
    bool (*wants_mac)(struct hca *hca, const uint8_t dmac[6]);
    /* Called before a datagram is sent: whether QPs of this HCA get a copy of it (IBTA 10.5.2). */
    bool (*wants_copy)(struct hca *hca, const struct roce_addr *addr);
};
extern const struct port_receivers port_receivers;

#endif
