/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which datagram QPs of this HCA are members of which.
 *
 * A datagram to a group goes to each member here (IBTA 10.5.2), in the order in which they joined.
 * How many groups there are and how many members one has is what the capabilities report. A group
 * is found by a hash of its GID, and of its MAC, which it may share with others.
 */
#ifndef HCASIM_MODEL_MCG_H
#define HCASIM_MODEL_MCG_H

#include "model/core/hca.h"

struct qp;

#define MCG_LOG_MAX 7  /* groups */
#define MCG_MAX_QPS 64 /* members of one */

struct mcg {
    struct mcg *next_gid, *next_mac; /* of the same hash */
    uint8_t mgid[16], mac[6];
    unsigned num_qps;
    struct qp *qps[MCG_MAX_QPS];
};

#define MCG_LOG_SLOTS 8
#define MCG_SLOTS     (1 << MCG_LOG_SLOTS)

/* Of a function. */
struct mcg_table {
    unsigned n;
    struct mcg *by_gid[MCG_SLOTS], *by_mac[MCG_SLOTS];
};

/* ATTACH_TO_MCG, DETACH_FROM_MCG: a UD QP's membership. SYN_NO_MEMORY: one of the above is reached.
 */
enum syn mcg_attach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
enum syn mcg_detach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
/* Ends every membership of a QP. */
void mcg_leave(struct qp *qp);
/* For a reset: ends all there are from a slot on, as long as hca_has_room(). False: some are left.
 */
bool mcg_clear(struct hca *hca, unsigned *slot);

/* NULL: nobody is a member. */
struct mcg *mcg_find(const struct hca *hca, const uint8_t mgid[16]);
/* Whether a destination MAC is that of a group with members. */
bool mcg_has_mac(struct hca *hca, const uint8_t dmac[6]);

#endif
