/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of one of two hosts that send to each other, for services whose receives are in a
 * shared receive queue: RC, XRC, DC and UD. Receives of such a queue are not flushed. So when its
 * peer has failed, everything is destroyed and made again.
 */
#ifndef HCASIM_TESTS_SERVICE_H
#define HCASIM_TESTS_SERVICE_H

#include "tests/sim/fabric/sim.h"

enum service_kind {
    SERVICE_OWN, /* RC with a receive queue of its own: not of this file */
    SERVICE_RC,
    SERVICE_XRC,
    SERVICE_DC,
    SERVICE_UD,
    SERVICE_KINDS,
};

struct service {
    struct job *job;
    enum service_kind kind;
    struct sim_host *host;
    struct ibv_qp *qp;     /* requests */
    struct ibv_qp *target; /* responds; RC: the same as qp */
    struct ibv_srq *srq;
    uint32_t srqn;         /* of XRC */
    struct ibv_xrcd *xrcd; /* of XRC */
    struct ibv_ah *ah;     /* of DC and UD: the peer's address */
    struct span grh;       /* of UD: where the first bytes of a receive go */
};

/* Makes the queues of one end; cq takes all completions. window: requests, and receives. */
void service_make(struct service *s, const struct sim_host *peer, struct ibv_cq *cq,
                  unsigned window, unsigned sges);
/* Connects two ends that were just made. */
void service_connect(struct service *const ends[2]);
void service_free(struct service *s);
int service_send(const struct service *s, const struct service *peer, struct ibv_send_wr *wr);
/* A list has one element less than the sges of service_make() if the service is UD. */
int service_receive(const struct service *s, struct ibv_recv_wr *wr);

#define SERVICE_GRH 40u /* bytes of a datagram's receive before the data */

/* -- of DC ------------------------------------------------------------------------------------- */

/* Makes a target whose receives are in the SRQ, or an initiator (NULL). */
struct ibv_qp *service_dc_qp(struct job *job, const struct sim_host *host, struct ibv_cq *cq,
                             struct ibv_srq *srq, unsigned window, unsigned sges);
/* Posts a list of requests to a target. */
int service_dc_post(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t dctn,
                    const struct ibv_send_wr *wr);

#endif
