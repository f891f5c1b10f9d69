/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames up and down, as a function sees them: its vport (model/port/vport.h), what joins it to
 * others (model/port/eswitch.h), and the cable (model/port/uplink.h).
 *
 * Sending: a transport or SQ reserves a frame, for which the wire has credit, builds it in place
 * and commits it. A frame for a MAC of a vport of this card goes into that vport's queue and comes
 * out of it as a received frame in a later step of hca_run(): one to oneself, too. Between the two
 * calls the host is read from only, so that no other function of the card can come between.
 * Receiving: RoCEv2 goes to the QPs and everything else to steering: struct port_receivers.
 */
#ifndef HCASIM_MODEL_PORT_H
#define HCASIM_MODEL_PORT_H

#include "model/core/hca.h"
#include "model/port/vport.h"
#include "wire/encap/roce.h"

struct wire_pause;

/* The sender of a frame that came from the wire, from a QP, or from another function. */
#define PORT_NO_TD 0xffffffffu

/* The function comes to a vport, and leaves it. */
void port_init(struct hca *hca, struct vport *vport);
void port_clear(struct hca *hca);

/* Cable of the card in (or NULL: out). */
void port_set_wire(struct hca *hca, struct wire_port *wire);

/* PMTU: the longest frame, in bytes with one VLAN tag and FCS. */
static inline uint16_t port_mtu(const struct hca *hca)
{
    return hca->vport->uplink->mtu;
}

/* Operational state of PAOS and vport state. */
static inline bool port_is_up(const struct hca *hca)
{
    return uplink_is_up(hca->vport->uplink);
}

/* Announces a change of port_is_up() by a PORT_CHANGE event, if there was one, to this function at
 * once and to the card's others in their turns, as to all what the cable says. */
void port_update_link(struct hca *hca);

/* A place for a frame of up to len bytes to dmac. NULL: no credit now; call hca_wait_tx(). While
 * the link is down frames are taken and dropped, as a NIC does; what stays in the card needs no
 * link.
 */
uint8_t *port_tx_reserve(struct hca *hca, const uint8_t dmac[6], size_t len);
/* Sends what was built in the place last reserved; len 0 gives it back. from_td: the transport
 * domain of the queue that sends, or PORT_NO_TD. */
void port_tx_commit(struct hca *hca, size_t len, uint32_t from_td);
/* The same for a RoCE packet, whose headers are there: the place of its payload. */
uint8_t *port_tx_reserve_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len);
/* Completes the packet that was begun there, and sends it; a copy of one to a multicast group goes
 * to this function's own members. A frame that is longer than the port's MTU is dropped and
 * counted: the path MTU of a connection is not held against it before. */
void port_tx_commit_roce(struct hca *hca, const struct roce_packet *pkt, size_t payload_len);
/* Both, of a packet without a payload. False: no credit. */
bool port_tx_send_roce(struct hca *hca, const struct roce_packet *pkt);

/* Whether the receiver of frames to dmac lives but has not yet come to what was sent to it
 * (wire_is_paused()). */
bool port_is_paused(struct hca *hca, const uint8_t dmac[6], struct wire_pause *pause);

/* What was sent from within hca_run() may leave only with this. */
void port_tx_flush(struct hca *hca);

/* At the end of a turn, before port_tx_flush(): whether peers have to wait for this function. */
void port_owe(struct hca *hca);
/* The function does nothing more that it may owe. */
void port_owe_nothing(struct hca *hca);

/* Before port_tx_commit(): brings a copy of the frame in the place last reserved back to this
 * function by its vport's queue; without credit there it is lost. For multicasts, which go to the
 * wire and to their own function's members. One whose destination address is the function's own
 * comes back anyway, and there is no copy. flags: enum wire_frame_flags. */
void port_loop(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags, uint32_t from_td);

/* Whether port_poll() would find frames, or news of the cable. */
static inline bool port_rx_pending(const struct hca *hca)
{
    return hca->vport->pending;
}

/* Takes frames from the vport's queue and, if it is this function that reads it, the cable, as long
 * as hca_may_go_on(). True: more of them wait. */
bool port_poll(struct hca *hca);
/* One more look later in the same turn, whether or not something says that there are any: takes a
 * few at most. */
void port_look(struct hca *hca);

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
    /* Asked first for a RoCE frame if hca->steers_roce. False: no QP gets it. */
    bool (*steer_roce)(struct hca *hca, const uint8_t *frame, size_t len);
    /* from_td as above; passed_filter: that of MACs. Returns whether it was delivered. */
    bool (*eth)(struct hca *hca, const uint8_t *frame, size_t len, uint32_t from_td,
                bool passed_filter);
    /* A frame that is sent, if hca->sniffs_tx. */
    void (*sniff_tx)(struct hca *hca, const uint8_t *frame, size_t len);
    /* Whether a frame to this MAC is wanted that the vport's own filter does not know: a group of
     * which QPs are members. */
    bool (*wants_mac)(struct hca *hca, const uint8_t dmac[6]);
    /* A datagram is about to be sent: whether QPs of this HCA get a copy of it (IBTA 10.5.2). */
    bool (*wants_copy)(struct hca *hca, const struct roce_addr *addr);
};
extern const struct port_receivers port_receivers;

#endif
