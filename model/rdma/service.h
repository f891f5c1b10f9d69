/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service types: what a QP of each is and does, a row each. Nothing else asks which service a QP
 * has: who wants to know a fact asks the row.
 */
#ifndef HCASIM_MODEL_SERVICE_H
#define HCASIM_MODEL_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct peer_owner;

struct service {
    const char *name;  /* NULL: there is no such service here */
    uint8_t st;        /* qpc.st: PRM_QP_ST_ */
    uint8_t transport; /* its packets: enum bth_transport; SERVICE_NO_PACKETS */
    uint8_t extended;  /* its extended atomics: enum bth_extended; 0: it has none */

    /* Requests are acknowledged in order, repeated, and carried out once (IBTA 9.7). */
    bool reliable;
    /* There is one remote QP, which the context names; else each WQE brings an address vector. */
    bool connected;
    /* Each WQE's address vector names a target, to which the QP is connected for as long as it has
     * WQEs for it (model/rdma/dci.h). */
    bool dynamic;
    /* A QP is one half of a connection: it has a send queue and takes responses, or it has none and
     * takes requests (annex A14: initiator and target). */
    bool one_half;
    /* Each message names the SRQ that it is for, in wqe_xrc_seg and XRCETH (annex A14). */
    bool names_srq;
    /* An error in the send queue leaves the receive queue alone: SQE state (IBTA 10.3.1). */
    bool has_sqe;
    /* A QP may be a member of multicast groups (IBTA 10.5). */
    bool joins_groups;
    /* Management datagrams: QP 1, of which a port has one (IBTA 13.5.3). */
    bool is_gsi;
    /* Sends nothing and belongs to no PD: the kernel's queue for UMR, which may change every key.
     */
    bool is_umr;

    /* What it does about its peers: a QP, or a DCT, which is no QP (model/rdma/peer.h). */
    const struct peer_owner *owner;
};

#define SERVICE_NO_PACKETS 0xff
#define SERVICES           16 /* qpc.st is less than this, or of no service */

extern const struct service services[SERVICES];

#endif
