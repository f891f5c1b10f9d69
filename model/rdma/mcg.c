/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the multicast groups that have members. Each group has room for as many members as it may
 * have. */
#include <string.h>
#include "model/core/pd.h"
#include "model/port/address_hash.h"
#include "model/port/eswitch.h"
#include "model/rdma/mcg.h"
#include "model/rdma/rdma.h"
#include "model/rdma/qp.h"

/* The group MAC of a multicast GID: 01:00:5e and the low 23 bits of the IPv4 address (RFC 1112), or
 * 33:33 and the low 32 bits of the IPv6 address (RFC 2464). */
static void mcg_group_mac(const uint8_t mgid[16], uint8_t mac[6])
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

/* The link that points to the group, or the end of its chain. */
static struct mcg **mcg_at_gid(struct mcg_table *table, const uint8_t mgid[16])
{
    struct mcg **at = &table->by_gid[gid_place(mgid, MCG_LOG_SLOTS)];

    while (*at && memcmp((*at)->mgid, mgid, 16) != 0) {
        at = &(*at)->next_gid;
    }
    return at;
}

static struct mcg **mcg_at_mac(struct mcg_table *table, const struct mcg *mcg)
{
    struct mcg **at = &table->by_mac[mac_place(mcg->mac, MCG_LOG_SLOTS)];

    while (*at && *at != mcg) {
        at = &(*at)->next_mac;
    }
    return at;
}

struct mcg *mcg_find(const struct hca *hca, const uint8_t mgid[16])
{
    return *mcg_at_gid(&hca->rdma->mcgs, mgid);
}

bool mcg_has_mac(struct hca *hca, const uint8_t dmac[6])
{
    const struct mcg *mcg = hca->rdma->mcgs.by_mac[mac_place(dmac, MCG_LOG_SLOTS)];

    while (mcg && memcmp(mcg->mac, dmac, 6) != 0) {
        mcg = mcg->next_mac;
    }
    return mcg != NULL;
}

/* NULL: there are as many groups as allowed. */
static struct mcg *mcg_new(struct hca *hca, const uint8_t mgid[16])
{
    struct mcg_table *table = &hca->rdma->mcgs;
    struct mcg *mcg = table->n < 1u << MCG_LOG_MAX ? hca_alloc(hca, OBJ_MCG, sizeof(*mcg)) : NULL;

    if (mcg) {
        memcpy(mcg->mgid, mgid, 16);
        mcg_group_mac(mgid, mcg->mac);
        *mcg_at_gid(table, mgid) = mcg;
        *mcg_at_mac(table, mcg) = mcg;
        table->n++;
        eswitch_mac_changed(hca->vport, mcg->mac);
    }
    return mcg;
}

static void mcg_free(struct hca *hca, struct mcg *mcg)
{
    struct mcg_table *table = &hca->rdma->mcgs;

    *mcg_at_gid(table, mcg->mgid) = mcg->next_gid;
    *mcg_at_mac(table, mcg) = mcg->next_mac;
    table->n--;
    eswitch_mac_changed(hca->vport, mcg->mac);
    hca_free(hca, OBJ_MCG, mcg, sizeof(*mcg));
}

/* -- members ----------------------------------------------------------------------------------- */

/* A member's position in its group; num_qps: it is not a member. */
static unsigned mcg_member_at(const struct mcg *mcg, const struct qp *qp)
{
    unsigned i = 0;

    while (i < mcg->num_qps && mcg->qps[i] != qp) {
        i++;
    }
    return i;
}

/* Ends the QP's membership. A group without members ends, too. False: the QP is not a member. */
static bool mcg_leave_group(struct mcg *mcg, struct qp *qp)
{
    unsigned i = mcg_member_at(mcg, qp);

    if (i == mcg->num_qps) {
        return false;
    }
    mcg->num_qps--;
    memmove(mcg->qps + i, mcg->qps + i + 1, (mcg->num_qps - i) * sizeof(mcg->qps[0]));
    qp->num_mcgs--;
    if (!mcg->num_qps) {
        mcg_free(qp->hca, mcg);
    }
    return true;
}

void mcg_leave(struct qp *qp)
{
    const struct mcg_table *table = &qp->hca->rdma->mcgs;

    for (unsigned i = 0; qp->num_mcgs && i < MCG_SLOTS; i++) {
        for (struct mcg *mcg = table->by_gid[i], *next; mcg; mcg = next) {
            next = mcg->next_gid;
            mcg_leave_group(mcg, qp);
        }
    }
}

bool mcg_clear(struct hca *hca, unsigned *slot)
{
    struct mcg_table *table = &hca->rdma->mcgs;

    for (; *slot < MCG_SLOTS; ++*slot) {
        while (table->by_gid[*slot]) {
            mcg_leave_group(table->by_gid[*slot], table->by_gid[*slot]->qps[0]);
            hca_spend(hca, 1);
            if (!hca_has_room(hca)) {
                return false;
            }
        }
    }
    return true;
}

/* -- commands ---------------------------------------------------------------------------------- */

static enum syn mcg_find_qp(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16],
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

enum syn mcg_attach(struct hca *hca, uint16_t uid, uint32_t qpn, const uint8_t mgid[16])
{
    struct mcg *mcg;
    struct qp *qp;
    enum syn syn = mcg_find_qp(hca, uid, qpn, mgid, &qp);

    if (syn != SYN_OK) {
        return syn;
    }
    mcg = mcg_find(hca, mgid);
    if (!mcg) {
        mcg = mcg_new(hca, mgid);
    }
    if (!mcg) {
        return SYN_NO_MEMORY;
    }
    if (mcg_member_at(mcg, qp) < mcg->num_qps) {
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
    struct mcg *mcg;
    struct qp *qp;
    enum syn syn = mcg_find_qp(hca, uid, qpn, mgid, &qp);

    if (syn != SYN_OK) {
        return syn;
    }
    mcg = mcg_find(hca, mgid);
    return mcg && mcg_leave_group(mcg, qp) ? SYN_OK : SYN_QP_MCG;
}
