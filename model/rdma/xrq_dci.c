/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the initiators by which an XRQ fetches over DC; see model/rdma/xrq_dci.h. */
#include <string.h>
#include "model/core/pd.h"
#include "model/rdma/dci.h"
#include "model/rdma/dct.h"
#include "model/rdma/xrq_dci.h"

#define REQUEST_HEADER (PRM_SIZE(tmh) + PRM_SIZE(rvh) + PRM_SIZE(ravh))

/* No parameter gives the number of retries, and an initiator that waits for ever would block the
 * requests behind it. */
#define RETRIES         7
#define RNR_RETRIES     100
#define ACK_TIMEOUT_MAX 20 /* 4.3 s; the value 0 would mean no limit */

/* -- parameters -------------------------------------------------------------------------------- */

static bool xrq_dci_all_idle(const struct srq *srq)
{
    for (const struct xrq_dci *dci = srq->dci; dci; dci = dci->next) {
        if (!rendezvous_is_idle(&dci->rendezvous)) {
            return false;
        }
    }
    return true;
}

static enum syn xrq_dci_check(const struct srq *srq,
                              const struct prm_set_xrq_dc_params_entry_in *params)
{
    uint32_t mtu = PRM_GET(set_xrq_dc_params_entry_in, params, mtu);

    if (!srq->attr.dc || !srq->attr.fetches) {
        return SYN_XRQ_NOT_DC;
    }
    if (srq->error) {
        return SYN_SRQ_STATE;
    }
    if (mtu < PRM_QP_MTU_256 || mtu > PRM_QP_MTU_4096) {
        return SYN_QP_MTU;
    }
    if (PRM_GET(set_xrq_dc_params_entry_in, params, pkey_table_index)) {
        return SYN_QP_PKEY;
    }
    return xrq_dci_all_idle(srq) ? SYN_OK : SYN_XRQ_FETCHES;
}

static void xrq_dci_load(struct xrq_dci *dci, const struct prm_set_xrq_dc_params_entry_in *params)
{
    uint32_t timeout = PRM_GET(set_xrq_dc_params_entry_in, params, ack_timeout);

    dci->qp.mtu = (uint16_t)(128u << PRM_GET(set_xrq_dc_params_entry_in, params, mtu));
    dci->qp.ack_timeout =
        (uint8_t)(timeout && timeout < ACK_TIMEOUT_MAX ? timeout : ACK_TIMEOUT_MAX);
    dci->priority = (uint8_t)(PRM_GET(set_xrq_dc_params_entry_in, params, sl) & 7);
}

/* Makes one more initiator. NULL: no memory. */
static struct xrq_dci *xrq_dci_new(struct hca *hca, struct srq *srq)
{
    struct xrq_dci *dci = obj_make(hca, OBJ_XRQ_DCI, 0, sizeof(*dci));
    struct qp *qp;

    if (!dci) {
        return NULL;
    }
    qp = &dci->qp;
    qp->hca = hca;
    qp->peer.qp = qp;
    qp->service = &services[PRM_QP_ST_DCI];
    qp->srq = srq;
    dci->next = srq->dci;
    srq->dci = dci;
    qp->pdn = srq->attr.pdn;
    qp->rlky = true; /* the tag list's entries were checked when a QP appended them */
    qp->pkey = 0xffff;
    qp->log_msg_max = (uint8_t)hca->limits.log_max_msg;
    qp->log_sra_max = (uint8_t)hca->limits.log_max_ra_req_qp;
    qp->ack_req_freq = 1;
    qp->retry_count = RETRIES;
    qp->rnr_retry = RNR_RETRIES;
    if (!dci_new(qp) || !rendezvous_init(qp, &dci->rendezvous) || !requester_init(qp)) {
        xrq_dci_free(hca, &qp->obj);
        return NULL;
    }
    qp->dci->alone = true;
    qp->state = PRM_QP_STATE_RTS;
    return dci;
}

enum syn xrq_set_dc_params(struct hca *hca, uint16_t uid,
                           const struct prm_set_xrq_dc_params_entry_in *params)
{
    struct srq *srq = srq_find(hca, PRM_GET(set_xrq_dc_params_entry_in, params, xrqn));
    enum syn syn;

    if (!srq || srq->obj.kind != OBJ_XRQ) {
        return SYN_SRQ_NUM;
    }
    if (!uid_owns(&srq->obj, uid)) {
        return SYN_BAD_UID;
    }
    syn = xrq_dci_check(srq, params);
    if (syn != SYN_OK) {
        return syn;
    }
    if (!srq->dci && !xrq_dci_new(hca, srq)) {
        return SYN_NO_MEMORY;
    }
    for (struct xrq_dci *dci = srq->dci; dci; dci = dci->next) {
        xrq_dci_load(dci, params);
    }
    return SYN_OK;
}

/* -- requests ---------------------------------------------------------------------------------- */

/* The entry of the address table that the request was sent to. < 0: the entry is gone. */
static int xrq_dci_gid(const struct peer *peer)
{
    const struct roce_addr *path = &peer->path;

    return vport_find_gid(peer->qp->hca->vport, path->sgid, path->is_v1, path->has_vlan,
                          path->vlan_tci & 0xfff);
}

bool xrq_dci_can_fetch(const struct peer *peer, const struct roce_packet *pkt)
{
    const struct prm_dctc *dctc = dc_responder_of(peer)->dct->dctc;

    return peer->qp->srq->dci && PRM_GET(dctc, dctc, offload_type) == PRM_QP_OFFLOAD_RNDV &&
           pkt->payload_len >= REQUEST_HEADER && xrq_dci_gid(peer) >= 0;
}

/* The address vector for the sender of the request: the path by which it is answered. */
static void xrq_dci_address(uint8_t priority, const struct peer *peer, const struct prm_ravh *ravh,
                            struct prm_wqe_av *av)
{
    const struct roce_addr *path = &peer->path;

    memset(av, 0, sizeof(*av));
    PRM_SET(wqe_av, av, dc_key, PRM_GET(ravh, ravh, dc_access_key));
    PRM_SET(wqe_av, av, ext, 1);
    PRM_SET(wqe_av, av, dqp_dct, PRM_GET(ravh, ravh, dct));
    PRM_SET(wqe_av, av, sl, priority << 1);
    PRM_SET(wqe_av, av, tclass, path->tclass);
    PRM_SET(wqe_av, av, hop_limit, path->hop_limit);
    PRM_SET(wqe_av, av, grh, 1);
    PRM_SET(wqe_av, av, src_addr_index, (uint32_t)xrq_dci_gid(peer));
    PRM_SET(wqe_av, av, flow_label, path->flow_label);
    memcpy(PRM_PTR(wqe_av, av, rmac), path->dmac, sizeof(path->dmac));
    memcpy(PRM_PTR(wqe_av, av, rgid), path->dgid, sizeof(path->dgid));
}

static bool xrq_dci_same_host(const struct prm_wqe_av *a, const struct prm_wqe_av *b)
{
    return memcmp(PRM_PTR(wqe_av, a, rgid), PRM_PTR(wqe_av, b, rgid), 16) == 0;
}

/* The initiator with fewer pending rendezvous. a may be NULL. */
static struct xrq_dci *xrq_dci_shorter(struct xrq_dci *a, struct xrq_dci *b)
{
    return a && rendezvous_pending(&a->rendezvous) <= rendezvous_pending(&b->rendezvous) ? a : b;
}

/* Makes another initiator with the parameters of the first. */
static struct xrq_dci *xrq_dci_add(struct hca *hca, struct srq *srq)
{
    const struct xrq_dci *like = srq->dci;
    struct xrq_dci *dci = xrq_dci_new(hca, srq);

    if (dci) {
        dci->qp.mtu = like->qp.mtu;
        dci->qp.ack_timeout = like->qp.ack_timeout;
        dci->priority = like->priority;
    }
    return dci;
}

/* Chooses the initiator for a request to that target. */
static struct xrq_dci *xrq_dci_choose(struct hca *hca, struct srq *srq, const struct prm_wqe_av *av)
{
    struct xrq_dci *idle = NULL, *of_host = NULL, *any = NULL;
    unsigned num = 0, num_of_host = 0;

    for (struct xrq_dci *dci = srq->dci; dci; dci = dci->next, num++) {
        const struct prm_wqe_av *to = &dci->rendezvous.to[dci->last];

        if (rendezvous_is_idle(&dci->rendezvous)) {
            idle = dci;
            continue;
        }
        any = xrq_dci_shorter(any, dci);
        if (xrq_dci_same_host(to, av)) {
            if (PRM_GET(wqe_av, to, dqp_dct) == PRM_GET(wqe_av, av, dqp_dct)) {
                return dci;
            }
            of_host = xrq_dci_shorter(of_host, dci);
            num_of_host++;
        }
    }
    if (num_of_host < XRQ_DCIS_OF_HOST) {
        if (!idle && num < XRQ_DCIS) {
            idle = xrq_dci_add(hca, srq);
        }
        if (idle) {
            return idle;
        }
    }
    return of_host ? of_host : any;
}

void xrq_dci_begin(struct peer *peer, const struct roce_packet *pkt, uint16_t handle)
{
    struct srq *srq = peer->qp->srq;
    const uint8_t *ravh = pkt->payload + REQUEST_HEADER - PRM_SIZE(ravh);
    struct prm_wqe_av av[1];
    struct xrq_dci *dci;

    xrq_dci_address(srq->dci->priority, peer, (const void *)ravh, av);
    dci = xrq_dci_choose(peer->qp->hca, srq, av);
    dci->last = handle;
    dci->rendezvous.to[handle] = *av;
    rendezvous_begin(&dci->qp, &dci->rendezvous, handle);
}

/* -- end --------------------------------------------------------------------------------------- */

void xrq_dci_free(struct hca *hca, struct obj *obj)
{
    struct xrq_dci *dci = (struct xrq_dci *)obj;
    struct xrq_dci **at = &dci->qp.srq->dci;

    while (*at != dci) {
        at = &(*at)->next;
    }
    *at = dci->next;
    requester_clear(&dci->qp);
    rendezvous_clear(&dci->qp, &dci->rendezvous);
    dci_free(&dci->qp);
    obj_end(hca, obj);
}

/* The unfinished rendezvous are not reported, because the software that would get the CQEs has
 * destroyed the XRQ. */
void xrq_free(struct hca *hca, struct obj *obj)
{
    struct srq *srq = (struct srq *)obj;

    while (srq->dci) {
        dci_leave(&srq->dci->qp);
        xrq_dci_free(hca, &srq->dci->qp.obj);
    }
    srq_free(hca, obj);
}
