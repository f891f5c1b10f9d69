/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: a list of those with members, each with room for as many as it may have. */
#include <string.h>
#include "model/core/pd.h"
#include "model/rdma/mcg.h"
#include "model/rdma/rdma.h"
#include "model/rdma/qp.h"

/* The group MAC of a multicast GID: 01:00:5e and 23 bits of the IPv4 address (RFC 1112), 33:33 and
 * 32 bits of the IPv6 one (RFC 2464). */
static void group_mac(const uint8_t mgid[16], uint8_t mac[6])
{
    if (mgid[0] == 0xff) {
        memcpy(mac, (const uint8_t[]){0x33, 0x33}, 2);
        memcpy(mac + 2, mgid + 12, 4);
    } else {
        memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e}, 3);
        memcpy(mac + 3, mgid + 13, 3);
        mac[3] &= 0x7f;
    }
}

/* Where a group stands in the list, or its end. */
static struct mcg **group_at(struct hca *hca, const uint8_t mgid[16], unsigned *before)
{
    struct mcg **at = &hca->rdma->mcgs;

    for (*before = 0; *at && memcmp((*at)->mgid, mgid, 16) != 0; ++*before) {
        at = &(*at)->next;
    }
    return at;
}

const struct mcg *mcg_find(struct hca *hca, const uint8_t mgid[16])
{
    unsigned before;
    const struct mcg *mcg = *group_at(hca, mgid, &before);

    hca_spend(hca, before / HCA_PIECE_ENTRIES);
    return mcg;
}

bool mcg_has_mac(struct hca *hca, const uint8_t dmac[6])
{
    const struct mcg *mcg = hca->rdma->mcgs;
    unsigned before;

    for (before = 0; mcg && memcmp(mcg->mac, dmac, 6) != 0; before++) {
        mcg = mcg->next;
    }
    hca_spend(hca, before / HCA_PIECE_ENTRIES);
    return mcg != NULL;
}

/* -- members ----------------------------------------------------------------------------------- */

/* A member's place in its group; num_qps: it is none. */
static unsigned member_at(const struct mcg *mcg, const struct qp *qp)
{
    unsigned i = 0;

    while (i < mcg->num_qps && mcg->qps[i] != qp) {
        i++;
    }
    return i;
}

/* The QP's membership in the group at *at ends, with the last one the group. False: there is none.
 */
static bool leave_group(struct hca *hca, struct mcg **at, struct qp *qp)
{
    struct mcg *mcg = *at;
    unsigned i = member_at(mcg, qp);

    if (i == mcg->num_qps) {
        return false;
    }
    mcg->num_qps--;
    memmove(mcg->qps + i, mcg->qps + i + 1, (mcg->num_qps - i) * sizeof(mcg->qps[0]));
    qp->num_mcgs--;
    if (!mcg->num_qps) {
        *at = mcg->next;
        hca_free(hca, OBJ_MCG, mcg, sizeof(*mcg));
    }
    return true;
}

void mcg_leave(struct qp *qp)
{
    struct mcg **at = &qp->hca->rdma->mcgs;

    while (qp->num_mcgs) {
        struct mcg *mcg = *at;

        leave_group(qp->hca, at, qp);
        if (*at == mcg) {
            at = &mcg->next;
        }
    }
}

void mcg_clear(struct hca *hca)
{
    while (hca->rdma->mcgs) {
        struct mcg *mcg = hca->rdma->mcgs;

        for (unsigned i = 0; i < mcg->num_qps; i++) {
            mcg->qps[i]->num_mcgs--;
        }
        hca->rdma->mcgs = mcg->next;
        hca_free(hca, OBJ_MCG, mcg, sizeof(*mcg));
    }
}

/* -- commands ---------------------------------------------------------------------------------- */

static enum syn find_qp(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16],
                        struct qp **qp)
{
    *qp = qp_find(hca, qpn);
    if (!*qp) {
        return SYN_QP_NUM;
    }
    if (!uid_owns(&(*qp)->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (!(*qp)->service->joins_groups || !roce_gid_is_multicast(mgid)) {
        return SYN_QP_MCG;
    }
    return SYN_OK;
}

static struct mcg *group_new(struct hca *hca, const uint8_t mgid[16])
{
    struct mcg *mcg = hca_alloc(hca, OBJ_MCG, sizeof(*mcg));

    if (mcg) {
        memcpy(mcg->mgid, mgid, 16);
        group_mac(mgid, mcg->mac);
    }
    return mcg;
}

enum syn mcg_attach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16])
{
    struct mcg **at, *mcg;
    unsigned groups;
    struct qp *qp;
    enum syn syn = find_qp(hca, uid, qpn, mgid, &qp);

    if (syn != SYN_OK) {
        return syn;
    }
    at = group_at(hca, mgid, &groups);
    if (!*at) {
        *at = groups < 1u << MCG_LOG_MAX ? group_new(hca, mgid) : NULL;
    }
    mcg = *at;
    if (!mcg) {
        return SYN_NO_MEMORY;
    }
    if (member_at(mcg, qp) < mcg->num_qps) {
        return SYN_OK;
    }
    if (mcg->num_qps == MCG_MAX_QPS) {
        return SYN_NO_MEMORY;
    }
    mcg->qps[mcg->num_qps++] = qp;
    qp->num_mcgs++;
    return SYN_OK;
}

enum syn mcg_detach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16])
{
    struct mcg **at;
    unsigned before;
    struct qp *qp;
    enum syn syn = find_qp(hca, uid, qpn, mgid, &qp);

    if (syn != SYN_OK) {
        return syn;
    }
    at = group_at(hca, mgid, &before);
    return *at && leave_group(hca, at, qp) ? SYN_OK : SYN_QP_MCG;
}
