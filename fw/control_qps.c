/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of query-qps. */
#include <arpa/inet.h>
#include "fw/control.h"
#include "fw/fw_internal.h"
#include "model/rdma/dct.h"
#include "model/rdma/flight.h"
#include "model/rdma/qp.h"

static const char *const waits[] = {
    [SEND_GOES_ON] = "sends",
    [SEND_WAITS_STATE] = "state",
    [SEND_WAITS_POST] = "nothing posted",
    [SEND_WAITS_ANSWER] = "answer",
    [SEND_WAITS_RNR] = "RNR timer",
    [SEND_WAITS_CREDIT] = "wire",
    [SEND_WAITS_RATE] = "rate limit",
    [SEND_WAITS_PAGE] = "page",
    [SEND_WAITS_MEMORY] = "memory",
    [SEND_WAITS_CQE] = "another CQ",
    [SEND_WAITS_PAUSE] = "pause",
};

static void qps_put(json_t *row, const char *name, uint64_t value)
{
    json_object_set_new(row, name, json_integer((json_int_t)value));
}

/* The address of the QP's peer, if it is connected. */
static void qps_put_peer(json_t *row, const struct qp *qp)
{
    char text[INET6_ADDRSTRLEN];
    const uint8_t *gid = qp->peer.path.dgid;
    bool is_ipv4 = qp->peer.path.is_ipv4;

    if (!qp->service->connected || qp->state == PRM_QP_STATE_RST ||
        qp->state == PRM_QP_STATE_INIT) {
        return;
    }
    inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? gid + 12 : gid, text, sizeof(text));
    json_object_set_new(row, "peer", json_string(text));
    qps_put(row, "peer_qpn", qp->peer.qpn);
}

static void qps_put_requester(json_t *row, const struct qp *qp)
{
    const struct flight *flight = qp->req.flight;

    if (!qp->has_sq) {
        return;
    }
    qps_put(row, "sq_blocks_posted", wq_posted(&qp->sq));
    qps_put(row, "sq_wqes_in_flight", requester_started(qp));
    qps_put(row, "next_psn", qp->req.next_psn);
    qps_put(row, "unacked_psn", qp->req.unacked_psn);
    qps_put(row, "retries", flight ? flight->retries : 0);
    qps_put(row, "rnr_retries", flight ? flight->rnr_retries : 0);
    json_object_set_new(
        row, "waits_for",
        json_string(qp->req.waits < G_N_ELEMENTS(waits) ? waits[qp->req.waits] : "?"));
}

static json_t *qps_row(const struct qp *qp)
{
    const char *state = prm_enum_name("qp_state", qp->state);
    json_t *row = json_pack("{si ss ss}", "qpn", (int)qp->obj.num, "type", qp->service->name,
                            "state", state ? state : "?");

    qps_put_peer(row, qp);
    qps_put_requester(row, qp);
    if (qp->has_rq && !qp->srq) {
        qps_put(row, "rq_wqes_posted", wq_posted(&qp->rq));
    }
    if (qp->service->connected) {
        qps_put(row, "expected_psn", qp->peer.resp.epsn & PSN_MASK);
    }
    return row;
}

static json_t *qps_row_of_dct(const struct dct *dct)
{
    return json_pack("{si ss si}", "qpn", (int)dct->qp.obj.num, "type", "DCT", "sessions",
                     (int)dct->responders.length);
}

json_t *fw_control_qps(struct fw *fw, uint32_t from, unsigned count)
{
    struct obj_table *table = &fw->hca.qpns;
    json_t *list = json_array();

    for (struct obj *obj = obj_next(table, from); obj && json_array_size(list) < count;
         obj = obj_next(table, obj->num + 1)) {
        if (obj->kind == OBJ_QP) {
            json_array_append_new(list, qps_row((struct qp *)obj));
        } else if (obj->kind == OBJ_DCT) {
            json_array_append_new(list, qps_row_of_dct((struct dct *)obj));
        }
    }
    return list;
}
