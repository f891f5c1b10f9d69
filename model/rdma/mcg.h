/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which datagram QPs of this HCA are members of which.
 *
 * A datagram to a group goes to each member here (IBTA 10.5.2), in the order in which they joined.
 * How many groups there are and how many members one has is what the capabilities report: so a
 * frame is looked up, and delivered, at a bounded cost.
 */
#ifndef HCASIM_MODEL_MCG_H
#define HCASIM_MODEL_MCG_H

#include "model/core/hca.h"

struct qp;

#define MCG_LOG_MAX 7  /* groups */
#define MCG_MAX_QPS 64 /* members of one */

struct mcg {
    struct mcg *next;
    uint8_t mgid[16], mac[6];
    unsigned num_qps;
    struct qp *qps[MCG_MAX_QPS];
};

/* ATTACH_TO_MCG, DETACH_FROM_MCG: a UD QP's membership. SYN_NO_MEMORY: one of the above is reached.
 */
enum syn mcg_attach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
enum syn mcg_detach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
/* Ends every membership of a QP. */
void mcg_leave(struct qp *qp);
/* For hca_reset(): ends all there are. */
void mcg_clear(struct hca *hca);

/* NULL: nobody is a member. */
const struct mcg *mcg_find(struct hca *hca, const uint8_t mgid[16]);
/* Whether a destination MAC is that of a group with members. */
bool mcg_has_mac(struct hca *hca, const uint8_t dmac[6]);

#endif
