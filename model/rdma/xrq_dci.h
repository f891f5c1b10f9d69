/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rendezvous over DC. A target has no send queue. Therefore an XRQ whose targets get rendezvous
 * requests fetches the data with initiators of its own. The XRQ's software gives their parameters
 * (SET_XRQ_DC_PARAMS_ENTRY), and the device makes them.
 *
 * Such an initiator is a DCI (model/rdma/dci.h) without a ring. All its WQEs come from rendezvous
 * (model/rdma/rendezvous.h). READ and FIN go to the target that the request names (its ravh), at
 * the address that the request came from. The initiator has a number, by which responses find it;
 * no command finds it. It lives as long as the XRQ.
 *
 * An initiator serves one target at a time, and waits long for a target that falls silent.
 * Therefore each target that data is fetched from has an initiator of its own, up to XRQ_DCIS
 * initiators for an XRQ, of which XRQ_DCIS_OF_HOST serve the targets of one address. Further
 * requests wait behind another request of the same address, if there is one.
 *
 * A request that fails ends alone, with MSG_COMPLETION_CANCELED; the next request goes on. Nothing
 * is repeated without limit: whatever the parameters say, a target that does not answer, or is
 * never ready, is given up (ADR 10).
 */
#ifndef HCASIM_MODEL_XRQ_DCI_H
#define HCASIM_MODEL_XRQ_DCI_H

#include "model/rdma/qp.h"
#include "model/rdma/rendezvous.h"

#define XRQ_DCIS         16
#define XRQ_DCIS_OF_HOST 4

struct xrq_dci {
    struct qp qp;         /* its obj is the initiator object */
    struct xrq_dci *next; /* next initiator of the same XRQ */
    struct rendezvous rendezvous;
    uint16_t last;    /* entry of the last request that it was given */
    uint8_t priority; /* Ethernet priority of its packets, in a VLAN */
};

/* SET_XRQ_DC_PARAMS_ENTRY: makes the first initiator, or changes the parameters of all initiators
 * while all are idle. */
enum syn xrq_set_dc_params(struct hca *hca, uint16_t uid,
                           const struct prm_set_xrq_dc_params_entry_in *params);

/* Whether the device can fetch the data for a request that came to a target's peer in one
 * packet. */
bool xrq_dci_can_fetch(const struct peer *peer, const struct roce_packet *pkt);
/* Fetches the data, into the taken entry. */
void xrq_dci_begin(struct peer *peer, const struct roce_packet *pkt, uint16_t handle);

/* For the table of object classes: free an initiator, and an XRQ with or without initiators. */
void xrq_dci_free(struct hca *hca, struct obj *obj);
void xrq_free(struct hca *hca, struct obj *obj);

#endif
