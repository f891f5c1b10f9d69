/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which datagram QPs of this HCA are members of which group.
 *
 * A datagram to a group goes to each member here (IBTA 10.5.2), in the order in which they joined.
 * Capabilities report the number of groups and of members. A group is found by a hash of its GID,
 * and by a hash of its MAC, which other groups may share.
 */
#ifndef HCASIM_MODEL_MCG_H
#define HCASIM_MODEL_MCG_H

#include "model/core/hca.h"

struct qp;

#define MCG_LOG_MAX 7  /* log2 of the number of groups */
#define MCG_MAX_QPS 64 /* members of a group */

struct mcg {
    struct mcg *next_gid, *next_mac; /* next group with the same hash */
    uint8_t mgid[16], mac[6];
    unsigned num_qps;
    struct qp *qps[MCG_MAX_QPS];
};

#define MCG_LOG_SLOTS 8
#define MCG_SLOTS     (1 << MCG_LOG_SLOTS)

/* The groups of a function. */
struct mcg_table {
    unsigned n;
    struct mcg *by_gid[MCG_SLOTS], *by_mac[MCG_SLOTS];
};

/* ATTACH_TO_MCG, DETACH_FROM_MCG: joins or leaves a group for a UD QP. SYN_NO_MEMORY: one of the
 * limits above is reached. */
enum syn mcg_attach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
enum syn mcg_detach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16]);
/* Ends every membership of a QP. */
void mcg_leave(struct qp *qp);
/* For a reset: ends all groups from *slot on, as long as hca_has_room(). False: some are left. */
bool mcg_clear(struct hca *hca, unsigned *slot);

/* NULL: the group has no members. */
struct mcg *mcg_find(const struct hca *hca, const uint8_t mgid[16]);
/* Whether a destination MAC is that of a group with members. */
bool mcg_has_mac(struct hca *hca, const uint8_t dmac[6]);

#endif
