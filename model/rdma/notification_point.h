/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notification point (annex A17.9, DCQCN). It answers a packet with a congestion mark by a CNP
 * to the QP that sent it, with at least the port's configured time between two CNPs.
 */
#ifndef HCASIM_MODEL_NOTIFICATION_POINT_H
#define HCASIM_MODEL_NOTIFICATION_POINT_H

#include "model/port/cong.h"
#include "model/rdma/peer.h"

/* Counts a marked packet of any service. */
void notification_count_mark(struct hca *hca);
/* Answers the marked packet of a peer, after it has passed the checks of its QP. */
void notification_answer_mark(struct peer *peer, const struct roce_packet *pkt);

static inline bool notification_is_marked(const struct roce_packet *pkt)
{
    return (pkt->addr.tclass & ECN_MASK) == ECN_CE && !pkt->addr.is_v1;
}

#endif
