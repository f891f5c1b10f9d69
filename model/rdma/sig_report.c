/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds and posts SIG_ERR CQEs (model/rdma/sig_report.h). */
#include <inttypes.h>
#include "model/memory/sig.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/sig_report.h"

static void sig_report_log(struct qp *qp, const struct sig_error *error)
{
    const char *what = error->syndrome & 1u << PRM_SIG_ERR_SYNDROME_GUARD    ? "guard"
                       : error->syndrome & 1u << PRM_SIG_ERR_SYNDROME_APPTAG ? "application tag"
                                                                             : "reference tag";

    hca_log(qp->hca, HCA_LOG_GUEST_ERROR,
            "qp 0x%x: the %s of the block at byte 0x%" PRIx64 " of key 0x%x does not match%s: the "
            "signature is 0x%016" PRIx64 ", but the data gives 0x%016" PRIx64,
            qp->obj.num, what, error->offset, error->key,
            error->domain == PRM_SIG_ERR_DOMAIN_WIRE ? " on the wire" : " in memory", error->found,
            error->computed);
}

static void sig_report_post(struct qp *qp, struct cq *cq, const struct sig_error *error)
{
    struct prm_sig_err_cqe cqe[1] = {0};

    PRM_SET(sig_err_cqe, cqe, expected_trans_sig, (uint32_t)(error->found >> 32));
    PRM_SET(sig_err_cqe, cqe, actual_trans_sig, (uint32_t)(error->computed >> 32));
    PRM_SET(sig_err_cqe, cqe, expected_reftag, (uint32_t)error->found);
    PRM_SET(sig_err_cqe, cqe, actual_reftag, (uint32_t)error->computed);
    PRM_SET(sig_err_cqe, cqe, syndrome, error->syndrome);
    PRM_SET(sig_err_cqe, cqe, sig_type, error->type);
    PRM_SET(sig_err_cqe, cqe, domain, error->domain);
    PRM_SET(sig_err_cqe, cqe, mkey, error->key);
    PRM_SET(sig_err_cqe, cqe, err_offset, error->offset);
    PRM_SET(sig_err_cqe, cqe, qpn, qp->obj.num);
    PRM_SET(sig_err_cqe, cqe, opcode, PRM_CQE_OPCODE_SIG_ERR);
    qp_post_cqe(qp, cq, (struct prm_cqe64 *)cqe, true);
}

static bool sig_report_all(struct qp *qp, struct cq *cq, uint32_t pdn)
{
    struct sig_error error;
    bool any = false;

    while (sig_take_error(qp->hca, pdn, &error)) {
        sig_report_log(qp, &error);
        if (cq) {
            sig_report_post(qp, cq, &error);
        }
        any = true;
    }
    return any;
}

bool sig_report_sent(struct qp *qp, uint32_t pdn)
{
    if (sig_report_all(qp, qp->send_cq, pdn) && PRM_GET(qpc, qp->qpc, drain_sigerr) &&
        qp->state == PRM_QP_STATE_RTS) {
        qp_set_state(qp, PRM_QP_STATE_SQ_DRAINING);
    }
    return qp_may_send(qp);
}

bool sig_report_received(struct peer *peer, uint32_t pdn)
{
    const struct srq *srq = responder_srq(peer);

    sig_report_all(peer->qp, srq && srq->cq ? srq->cq : peer->qp->recv_cq, pdn);
    return peer->qp->state != PRM_QP_STATE_ERR;
}
