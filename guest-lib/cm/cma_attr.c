/* SPDX-License-Identifier: BSD-2-Clause */
/* The attributes that an identifier's queue pair needs in each state (ib_cm_init_qp_attr()). */
#include <infiniband/verbs.h>
#include "guest-lib/cm/cma_internal.h"

#define PORT_NUM 1

/* Attributes before there is a connection, and of datagrams at any time. */
static int cma_attr_without_connection(struct cma_id *id, struct ib_uverbs_qp_attr *attr)
{
    attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->port_num = PORT_NUM;
    if (id->qp_type == IBV_QPT_UD) {
        id->qkey = id->qkey ? id->qkey : CMA_UDP_QKEY;
        attr->qkey = id->qkey;
        attr->qp_attr_mask |= IBV_QP_QKEY;
    } else {
        attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
    }
    return 0;
}

static int cma_attr_init(const struct cma_id *id, struct ib_uverbs_qp_attr *attr)
{
    attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (id->cm->responder_resources) {
        attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    attr->port_num = PORT_NUM;
    return 0;
}

static int cma_attr_rtr(const struct cma_id *id, struct ib_uverbs_qp_attr *attr)
{
    const struct cm_id *cm = id->cm;

    attr->qp_attr_mask =
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    cma_fill_ah(id, id->dgid, &attr->ah_attr);
    attr->ah_attr.grh.flow_label = cm->av.flow_label;
    attr->ah_attr.grh.traffic_class = cm->av.traffic_class;
    attr->ah_attr.sl = cm->av.sl;
    attr->path_mtu = cm->path_mtu;
    attr->dest_qp_num = cm->remote_qpn;
    attr->rq_psn = id->seq_num;
    if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_RECV) {
        attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = cm->responder_resources;
    }
    return 0;
}

static int cma_attr_rts(const struct cma_id *id, struct ib_uverbs_qp_attr *attr)
{
    const struct cm_id *cm = id->cm;

    attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    attr->sq_psn = cm->sq_psn;
    if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_SEND) {
        attr->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        attr->retry_cnt = cm->retry_count;
        attr->rnr_retry = cm->rnr_retry_count;
        attr->max_rd_atomic = cm->initiator_depth;
    }
    if (id->qp_type != IBV_QPT_UC) {
        attr->qp_attr_mask |= IBV_QP_TIMEOUT;
        attr->timeout = id->ack_timeout ? id->ack_timeout : cm->ack_timeout;
    }
    return 0;
}

int cma_init_qp_attr(struct cma_id *id, struct ib_uverbs_qp_attr *attr)
{
    bool established, asked;

    if (id->device == CMA_NO_DEVICE) {
        return EINVAL;
    }
    if (!id->cm || id->qp_type == IBV_QPT_UD) {
        return cma_attr_without_connection(id, attr);
    }
    asked = id->cm->state == CM_REQ_SENT || id->cm->state == CM_MRA_REQ_RCVD;
    established = id->cm->state >= CM_REQ_RCVD && id->cm->state <= CM_ESTABLISHED && !asked;
    if (attr->qp_state == IBV_QPS_INIT && (established || asked)) {
        return cma_attr_init(id, attr);
    }
    if (attr->qp_state == IBV_QPS_RTR && established) {
        return cma_attr_rtr(id, attr);
    }
    if (attr->qp_state == IBV_QPS_RTS && established) {
        return cma_attr_rts(id, attr);
    }
    return EINVAL;
}
