/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notification point (annex A17.9, DCQCN): a packet that came with a congestion mark is
 * answered with a CNP to the QP that sent it, no more often than the port is told.
 */
#ifndef HCASIM_MODEL_NOTIFICATION_POINT_H
#define HCASIM_MODEL_NOTIFICATION_POINT_H

#include "model/port/cong.h"
#include "model/rdma/peer.h"

/* A packet of any service has come with a mark. */
void notification_count_mark(struct hca *hca);
/* It is this peer's, and passed the checks of its QP. */
void notification_answer_mark(struct peer *peer, const struct roce_packet *pkt);

static inline bool notification_is_marked(const struct roce_packet *pkt)
{
    return (pkt->addr.tclass & ECN_MASK) == ECN_CE;
}

#endif
