/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of service types: a row says what a QP of that type is and does. No other code compares
 * service types; it asks the row for the property that it needs.
 */
#ifndef HCASIM_MODEL_SERVICE_H
#define HCASIM_MODEL_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct peer_owner;

struct service {
    const char *name;  /* NULL: the device does not have this service */
    uint8_t st;        /* qpc.st: PRM_QP_ST_ */
    uint8_t transport; /* transport of its packets: enum bth_transport, or SERVICE_NO_PACKETS */
    uint8_t extended;  /* its extended atomics: enum bth_extended; 0: none */
    uint8_t paging;    /* enum paging_transport; PAGING_TRANSPORTS: its accesses may not fault */

    /* Requests are acknowledged in order, repeated, and carried out once (IBTA 9.7). */
    bool reliable;
    /* There is one remote QP, which the context names; otherwise each WQE brings an address
     * vector. */
    bool connected;
    /* Each WQE's address vector names a target. The QP is connected to that target as long as it
     * has WQEs for it (model/rdma/dci.h). */
    bool dynamic;
    /* A QP is one half of a connection: either it has a send queue and takes responses, or it has
     * no send queue and takes requests (annex A14: initiator and target). */
    bool one_half;
    /* Each message names the SRQ that it is for, in wqe_xrc_seg and XRCETH (annex A14). */
    bool names_srq;
    /* An error in the send queue does not affect the receive queue: SQE state (IBTA 10.3.1). */
    bool has_sqe;
    /* A QP may be a member of multicast groups (IBTA 10.5). */
    bool joins_groups;
    /* For management datagrams: QP 1, of which a port has one (IBTA 13.5.3). */
    bool is_gsi;
    /* Sends nothing and belongs to no PD: the kernel's queue for UMR, which may change every
     * key. */
    bool is_umr;

    /* How its peers are handled: the owner is a QP, or a DCT, which is not a QP
     * (model/rdma/peer.h). */
    const struct peer_owner *owner;
};

#define SERVICE_NO_PACKETS 0xff
#define SERVICES           16 /* all values of qpc.st with a service are less */

extern const struct service services[SERVICES];

#endif
