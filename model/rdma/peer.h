/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a connection, as the QP here knows it: who it is and how it is reached, and all
 * that the responder keeps of its requests. A QP of a connected service has one peer. So has one
 * that takes datagrams: whoever sends to it.
 */
#ifndef HCASIM_MODEL_PEER_H
#define HCASIM_MODEL_PEER_H

#include "model/rdma/responder.h"
#include "wire/encap/roce.h"

struct qp;

struct peer {
    struct qp *qp;         /* whose peer it is */
    uint32_t qpn;          /* its own QP's number: qpc.remote_qpn */
    struct roce_addr path; /* towards it: connected services; datagrams use the WQE's AV */
    bool path_gone;        /* the entry of the RoCE address table does not serve the path */
    uint32_t path_version; /* port.gid_version when the path was looked up */
    struct responder resp;
};

#endif
