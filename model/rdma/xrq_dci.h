/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous over DC. A target has no send queue, so an XRQ whose targets are asked for a
 * rendezvous fetches by initiators of its own: the XRQ's software says what those are to be like
 * (SET_XRQ_DC_PARAMS_ENTRY), and the device makes them.
 *
 * Such a one is a DCI (model/rdma/dci.h) without a ring, whose WQEs come from rendezvous alone
 * (model/rdma/rendezvous.h). READ and FIN go to the target that the request names (its ravh), at
 * the address that the request came from. It has a number, by which responses find it and no
 * command does; its life is the XRQ's.
 *
 * An initiator serves one target at a time, and waits long for one that falls silent. So each
 * target that is fetched from has an initiator, as far as there are enough: XRQ_DCIS of an XRQ,
 * XRQ_DCIS_OF_HOST of them for the targets of one address. What comes beyond stands behind another
 * request of the same address, if there is one.
 *
 * One that fails ends itself alone, with MSG_COMPLETION_CANCELED; the next goes on. Nothing is
 * asked for without an end: whatever the parameters say, a target that does not answer, or is never
 * ready, is given up (ADR 10).
 */
#ifndef HCASIM_MODEL_XRQ_DCI_H
#define HCASIM_MODEL_XRQ_DCI_H

#include "model/rdma/qp.h"
#include "model/rdma/rendezvous.h"

#define XRQ_DCIS         16
#define XRQ_DCIS_OF_HOST 4

struct xrq_dci {
    struct qp qp;         /* its obj is the initiator's */
    struct xrq_dci *next; /* of the same XRQ */
    struct rendezvous rendezvous;
    uint16_t last;    /* entry of the latest request that it was given */
    uint8_t priority; /* Ethernet priority of its packets, in a VLAN */
};

/* SET_XRQ_DC_PARAMS_ENTRY: makes the first initiator, or changes what all are like while they have
 * nothing to do. */
enum syn xrq_set_dc_params(struct hca *hca, uint16_t uid,
                           const struct prm_set_xrq_dc_params_entry_in *params);

/* Whether the request that came to a target's peer, in one packet, can be fetched. */
bool xrq_dci_can_fetch(const struct peer *peer, const struct roce_packet *pkt);
/* It is, into the taken entry. */
void xrq_dci_begin(struct peer *peer, const struct roce_packet *pkt, uint16_t handle);

/* For the table of object classes: of an initiator, and of an XRQ with or without some. */
void xrq_dci_free(struct hca *hca, struct obj *obj);
void xrq_free(struct hca *hca, struct obj *obj);

#endif
