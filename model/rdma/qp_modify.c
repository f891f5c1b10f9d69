/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out the state transition commands: which command is legal in which state, and which
 * fields it takes from its qpc.
 *
 * The fields form groups, with one bit each. A command always takes some groups, and takes others
 * if their bit is set in opt_param_mask. Both depend on the service type (IBTA 11.2.5.2, the
 * driver's opt_mask). A bit that the command does not know for the QP's service is refused. A
 * command that fails changes nothing.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/rdma/dci.h"
#include "model/rdma/early.h"
#include "model/rdma/qp.h"
#include "model/rdma/qp_sched.h"
#include "model/rdma/wqe_source.h"

#define S(name)   (1u << PRM_QP_STATE_##name)
#define ANY_STATE 0xff

/* Groups with a bit in opt_param_mask have that bit's number. */
#define G(name) (1ull << PRM_QP_OPTPAR_##name)
#define ACCESS  (G(RRE) | G(RAE) | G(RWE))
/* Parts of the path that a connection may change (gpunetio: doca_verbs_qp::rts2rts() sets both). */
#define OF_PATH (G(DSCP) | G(SGID_INDEX))

/* Groups that are never optional have these bits. */
#define G_MTU        (1ull << 48)
#define G_REMOTE_QPN (1ull << 49)
#define G_RQ_PSN     (1ull << 50)
#define G_SQ_PSN     (1ull << 51)
#define G_ACK_FREQ   (1ull << 52)
#define G_INIT       (1ull << 53) /* fields that only RST2INIT sets */
#define G_ORDER      (1ull << 54) /* dp_ordering */

/* Groups whose fields are in the extended context. */
#define OF_EXTENSION (G(DCI_STREAM_CHANNEL) | G(MMO) | G(QOS_QUEUE_GROUP))

struct fields {
    uint64_t always, optional;
};

struct transition {
    uint16_t opcode;
    uint8_t from; /* mask of states */
    uint8_t to;
    struct fields rc, uc, ud, dci; /* rc: also for XRC; ud: also for QP1 and REG_UMR */
};

static const struct transition transitions[] = {
    {
        .opcode = PRM_CMD_OP_RST2INIT_QP,
        .from = S(RST),
        .to = PRM_QP_STATE_INIT,
        .rc = {G_INIT | G(PKEY_INDEX) | G(PRI_PORT) | G(COUNTER_SET_ID) | ACCESS, 0},
        .uc = {G_INIT | G(PKEY_INDEX) | G(PRI_PORT) | G(COUNTER_SET_ID) | G(RWE), 0},
        .ud = {G_INIT | G(PKEY_INDEX) | G(PRI_PORT) | G(COUNTER_SET_ID) | G(Q_KEY), 0},
        .dci = {G_INIT | G(PKEY_INDEX) | G(PRI_PORT) | G(COUNTER_SET_ID), ACCESS},
    },
    {
        .opcode = PRM_CMD_OP_INIT2INIT_QP,
        .from = S(INIT),
        .to = PRM_QP_STATE_INIT,
        .rc = {0, ACCESS | G(PKEY_INDEX) | G(PRI_PORT) | G(MMO) | G(DRAIN_SIGERR) |
                      G(QOS_QUEUE_GROUP)},
        .uc = {0, G(RWE) | G(PKEY_INDEX) | G(PRI_PORT) | G(QOS_QUEUE_GROUP)},
        .ud = {0, G(PKEY_INDEX) | G(Q_KEY) | G(PRI_PORT) | G(QOS_QUEUE_GROUP)},
        .dci = {0, ACCESS | G(PKEY_INDEX) | G(PRI_PORT) | G(MMO)},
    },
    {
        .opcode = PRM_CMD_OP_INIT2RTR_QP,
        .from = S(INIT),
        .to = PRM_QP_STATE_RTR,
        .rc = {G_ORDER | G_MTU | G_REMOTE_QPN | G_RQ_PSN | G(RRA_MAX) | G(RNR_TIMEOUT) |
                   G(PRIMARY_ADDR_PATH),
               ACCESS | G(PKEY_INDEX)},
        .uc = {G_ORDER | G_MTU | G_REMOTE_QPN | G_RQ_PSN | G(PRIMARY_ADDR_PATH),
               G(RWE) | G(PKEY_INDEX)},
        .ud = {G_ORDER | G_MTU, G(PKEY_INDEX) | G(Q_KEY)},
        .dci = {G_ORDER | G_MTU | G(PRIMARY_ADDR_PATH), ACCESS | G(PKEY_INDEX)},
    },
    {
        .opcode = PRM_CMD_OP_RTR2RTS_QP,
        .from = S(RTR),
        .to = PRM_QP_STATE_RTS,
        .rc = {G_SQ_PSN | G_ACK_FREQ | G(ACK_TIMEOUT) | G(RETRY_COUNT) | G(RNR_RETRY) | G(SRA_MAX),
               ACCESS | G(RNR_TIMEOUT) | G(PM_STATE)},
        .uc = {G_SQ_PSN, G(RWE) | G(PM_STATE)},
        .ud = {G_SQ_PSN, G(Q_KEY)},
        .dci = {G_SQ_PSN | G_ACK_FREQ | G(ACK_TIMEOUT) | G(RETRY_COUNT) | G(RNR_RETRY) | G(SRA_MAX),
                ACCESS | G(RNR_TIMEOUT) | G(PM_STATE)},
    },
    {
        .opcode = PRM_CMD_OP_RTS2RTS_QP,
        .from = S(RTS),
        .to = PRM_QP_STATE_RTS,
        .rc = {0, ACCESS | G(RNR_TIMEOUT) | G(PM_STATE) | G(COUNTER_SET_ID) | G(UDP_SPORT) |
                      OF_PATH | G(QOS_QUEUE_GROUP)},
        .uc = {0, G(RWE) | G(PM_STATE) | G(COUNTER_SET_ID) | G(UDP_SPORT) | OF_PATH |
                      G(QOS_QUEUE_GROUP)},
        .ud = {0, G(Q_KEY) | G(COUNTER_SET_ID) | G(QOS_QUEUE_GROUP)},
        .dci = {0, ACCESS | G(RNR_TIMEOUT) | G(PM_STATE) | G(COUNTER_SET_ID) | G(UDP_SPORT) |
                       G(DCI_STREAM_CHANNEL)},
    },
    {
        .opcode = PRM_CMD_OP_SQERR2RTS_QP,
        .from = S(SQER),
        .to = PRM_QP_STATE_RTS,
        .rc = {0, ACCESS | G(RNR_TIMEOUT)},
        .uc = {0, G(RWE)},
        .ud = {0, G(Q_KEY)},
    },
    {
        .opcode = PRM_CMD_OP_RTS2SQD_QP,
        .from = S(RTS),
        .to = PRM_QP_STATE_SQ_DRAINING,
    },
    {
        .opcode = PRM_CMD_OP_SQD_RTS_QP,
        .from = S(SQD),
        .to = PRM_QP_STATE_RTS,
        .rc = {0, ACCESS | G(RNR_TIMEOUT)},
        .uc = {0, G(RWE)},
        .ud = {0, G(Q_KEY)},
        .dci = {0, ACCESS | G(RNR_TIMEOUT)},
    },
    {
        .opcode = PRM_CMD_OP_2ERR_QP,
        .from = ANY_STATE,
        .to = PRM_QP_STATE_ERR,
    },
    {
        .opcode = PRM_CMD_OP_2RST_QP,
        .from = ANY_STATE,
        .to = PRM_QP_STATE_RST,
    },
};

static const struct transition *qp_modify_find_transition(uint16_t opcode)
{
    for (size_t i = 0; i < G_N_ELEMENTS(transitions); i++) {
        if (transitions[i].opcode == opcode) {
            return &transitions[i];
        }
    }
    return NULL;
}

static const struct fields *qp_modify_fields_of(const struct transition *t, const struct qp *qp)
{
    if (qp->service->dynamic) {
        return &t->dci;
    }
    return qp->service->reliable ? &t->rc : qp->service->connected ? &t->uc : &t->ud;
}

/* -- fields ------------------------------------------------------------------------------------ */

#define COPY(f)      PRM_SET(qpc, to, f, PRM_GET(qpc, from, f))
#define COPY_PATH(f) PRM_SET(ads, to_path, f, PRM_GET(ads, from_path, f))

/* Copies the primary path, except the fields that are groups of their own. */
static void qp_modify_copy_path(struct prm_ads *to, const struct prm_ads *from)
{
    uint32_t pkey_index = PRM_GET(ads, to, pkey_index);
    uint32_t port = PRM_GET(ads, to, vhca_port_num);
    uint32_t ack_timeout = PRM_GET(ads, to, ack_timeout);
    uint32_t log_rtm = PRM_GET(ads, to, log_rtm);

    memcpy(to, from, PRM_SIZE(ads));
    PRM_SET(ads, to, pkey_index, pkey_index);
    PRM_SET(ads, to, vhca_port_num, port);
    PRM_SET(ads, to, ack_timeout, ack_timeout);
    PRM_SET(ads, to, log_rtm, log_rtm);
}

static void qp_modify_copy_fields(uint64_t groups, struct prm_qpc *to, const struct prm_qpc *from)
{
    struct prm_ads *to_path = PRM_PTR(qpc, to, primary_address_path);
    const struct prm_ads *from_path = PRM_PTR(qpc, from, primary_address_path);

    if (groups & G(PRIMARY_ADDR_PATH)) {
        qp_modify_copy_path(to_path, from_path);
    }
    if (groups & G(PKEY_INDEX)) {
        COPY_PATH(pkey_index);
    }
    if (groups & G(PRI_PORT)) {
        COPY_PATH(vhca_port_num);
    }
    if (groups & G(ACK_TIMEOUT)) {
        COPY_PATH(ack_timeout);
        COPY_PATH(log_rtm);
    }
    if (groups & G(UDP_SPORT)) {
        COPY_PATH(udp_sport);
    }
    if (groups & G(DSCP)) {
        COPY_PATH(dscp);
    }
    if (groups & G(SGID_INDEX)) {
        COPY_PATH(src_addr_index);
    }
    if (groups & G(RRE)) {
        COPY(rre);
    }
    if (groups & G(RWE)) {
        COPY(rwe);
    }
    if (groups & G(RAE)) {
        COPY(rae);
        COPY(atomic_mode);
    }
    if (groups & G(Q_KEY)) {
        COPY(q_key);
    }
    if (groups & G(RNR_TIMEOUT)) {
        COPY(min_rnr_nak);
    }
    if (groups & G(SRA_MAX)) {
        COPY(log_sra_max);
    }
    if (groups & G(RRA_MAX)) {
        COPY(log_rra_max);
    }
    if (groups & G(PM_STATE)) {
        COPY(pm_state);
    }
    if (groups & G(DRAIN_SIGERR)) {
        COPY(drain_sigerr);
    }
    if (groups & G(RETRY_COUNT)) {
        COPY(retry_count);
    }
    if (groups & G(RNR_RETRY)) {
        COPY(rnr_retry);
    }
    if (groups & G(COUNTER_SET_ID)) {
        COPY(counter_set_id);
    }
    if (groups & G_MTU) {
        COPY(mtu);
        COPY(log_msg_max);
    }
    if (groups & G_REMOTE_QPN) {
        COPY(remote_qpn);
    }
    if (groups & G_RQ_PSN) {
        COPY(next_rcv_psn);
    }
    if (groups & G_SQ_PSN) {
        COPY(next_send_psn);
    }
    if (groups & G_ACK_FREQ) {
        COPY(log_ack_req_freq);
    }
    if (groups & G_INIT) {
        COPY(deth_sqpn);
    }
    if (groups & G_ORDER) {
        COPY(dp_ordering_0);
        COPY(dp_ordering_1);
        COPY(dp_ordering_force);
    }
}

/* The default UDP source port. RoCEv2 uses the upper quarter of the ports (annex A17.5.3: dynamic
 * range, for entropy). */
static uint16_t qp_modify_default_sport(const struct qp *qp)
{
    return (uint16_t)(0xc000 | ((qp->obj.num ^ qp->peer.qpn ^ qp->peer.qpn >> 10) & 0x3fff));
}

/* -- check and take over ----------------------------------------------------------------------- */

/* Without force, the order is the port's setting, which is the standard's order. With another
 * order, atomics have at most 8 bytes (mlx5_ib, get_atomic_mode()). */
bool qp_order_is_ok(const struct qp *qp, unsigned order, bool force, bool long_atomics)
{
    if (order == PRM_DP_ORDERING_IBTA && !force) {
        return true;
    }
    return qp->hca->limits.early_packets && qp->service->reliable &&
           order <= PRM_DP_ORDERING_OOO_ALL && !(order && force && long_atomics);
}

/* Queues that may be enabled for memory to memory operations: RC and DCI (libmlx5,
 * mlx5_qp_fill_wr_pfns()). */
bool qp_mmo_is_possible(const struct hca *hca, const struct service *service)
{
    return hca->limits.mmo_qp && (service->st == PRM_QP_ST_RC || service->dynamic);
}

enum syn qp_check_extension(const struct hca *hca, const struct prm_qpc *qpc,
                            const struct prm_qp_context_extension *ext)
{
    uint32_t st = PRM_GET(qpc, qpc, st);

    if (ext && qp_sched_is_named(ext)) {
        return SYN_QP_FEATURE; /* QPs join scheduling elements later */
    }
    return ext && PRM_GET(qp_context_extension, ext, mmo) &&
                   !(st < SERVICES && qp_mmo_is_possible(hca, &services[st]))
               ? SYN_QP_FEATURE
               : SYN_OK;
}

static unsigned qp_modify_order(const struct prm_qpc *qpc)
{
    return PRM_GET(qpc, qpc, dp_ordering_1) << 1 | PRM_GET(qpc, qpc, dp_ordering_0);
}

static bool qp_modify_order_is_ok(const struct qp *qp, const struct prm_qpc *qpc)
{
    bool long_atomics =
        PRM_GET(qpc, qpc, rae) && PRM_GET(qpc, qpc, atomic_mode) > PRM_ATOMIC_MODE_UP_TO_8B;

    return qp_order_is_ok(qp, qp_modify_order(qpc), PRM_GET(qpc, qpc, dp_ordering_force),
                          long_atomics);
}

static enum syn qp_modify_check_fields(const struct qp *qp, uint64_t groups,
                                       const struct prm_qpc *qpc)
{
    const struct hca_limits *limits = &qp->hca->limits;
    const struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);
    uint32_t mtu = PRM_GET(qpc, qpc, mtu);

    if ((groups & G(PRI_PORT)) && PRM_GET(ads, path, vhca_port_num) > 1) {
        return SYN_QP_PORT;
    }
    if ((groups & G(PKEY_INDEX)) && PRM_GET(ads, path, pkey_index) != 0) {
        return SYN_QP_PKEY;
    }
    if ((groups & G(PM_STATE)) && PRM_GET(qpc, qpc, pm_state) != PRM_QP_PM_STATE_MIGRATED) {
        return SYN_QP_FEATURE;
    }
    if ((groups & G_MTU) &&
        (mtu > PRM_QP_MTU_4096 || (mtu < PRM_QP_MTU_256 && qp->service->connected) ||
         PRM_GET(qpc, qpc, log_msg_max) > limits->log_max_msg)) {
        return SYN_QP_MTU;
    }
    if (((groups & G(RRA_MAX)) && PRM_GET(qpc, qpc, log_rra_max) > limits->log_max_ra_res_qp) ||
        ((groups & G(SRA_MAX)) && PRM_GET(qpc, qpc, log_sra_max) > limits->log_max_ra_req_qp)) {
        return SYN_LIMIT;
    }
    if ((groups & G_ORDER) && !qp_modify_order_is_ok(qp, qpc)) {
        return SYN_QP_FEATURE;
    }
    return SYN_OK;
}

void qp_load(struct qp *qp)
{
    const struct prm_qpc *qpc = qp->qpc;
    const struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);
    uint32_t mtu = PRM_GET(qpc, qpc, mtu);

    qp->counter_set_id = PRM_GET(qpc, qpc, counter_set_id);
    qp->qkey = PRM_GET(qpc, qpc, q_key);
    if (!qp->dci) { /* a DCI's peer belongs to its session */
        qp->peer.qpn = PRM_GET(qpc, qpc, remote_qpn);
    }
    qp->src_qpn = qp->service->is_gsi ? 1 : PRM_GET(qpc, qpc, deth_sqpn);
    if (qp->src_qpn == 0) {
        qp->src_qpn = qp->obj.num;
    }
    qp->pkey = 0xffff;
    qp->mtu = (uint16_t)(mtu >= PRM_QP_MTU_256 && mtu <= PRM_QP_MTU_4096 ? 128u << mtu : 4096);
    qp->log_msg_max = (uint8_t)MIN(PRM_GET(qpc, qpc, log_msg_max), qp->hca->limits.log_max_msg);
    qp->log_rra_max = (uint8_t)PRM_GET(qpc, qpc, log_rra_max);
    qp->log_sra_max = (uint8_t)PRM_GET(qpc, qpc, log_sra_max);
    qp->ack_req_freq = (uint16_t)(1u << PRM_GET(qpc, qpc, log_ack_req_freq));
    qp->retry_count = (uint8_t)PRM_GET(qpc, qpc, retry_count);
    qp->rnr_retry = (uint8_t)PRM_GET(qpc, qpc, rnr_retry);
    qp->ack_timeout = (uint8_t)PRM_GET(ads, path, ack_timeout);
    qp->log_rtm = (uint8_t)PRM_GET(ads, path, log_rtm);
    qp->min_rnr_nak = (uint8_t)PRM_GET(qpc, qpc, min_rnr_nak);
    qp->rre = PRM_GET(qpc, qpc, rre);
    qp->rwe = PRM_GET(qpc, qpc, rwe);
    qp->rae = PRM_GET(qpc, qpc, rae);
    qp->atomic_mode = (uint8_t)PRM_GET(qpc, qpc, atomic_mode);
    wqe_source_set_limits(qp);
}

enum syn qp_modify(struct hca *hca, uint16_t uid, uint32_t qpn, uint16_t opcode, uint64_t opt_mask,
                   const struct prm_qpc *qpc, const struct prm_qp_context_extension *ext)
{
    struct qp *qp = qp_find(hca, qpn);
    const struct transition *t = qp_modify_find_transition(opcode);
    const struct fields *fields;
    struct roce_addr path;
    struct prm_qpc merged[1];
    struct sched_elem *leaves[QP_SCHED_SIDES];
    uint16_t stream = 0;
    uint64_t groups;
    enum syn syn;

    if (!t) {
        return SYN_BAD_OPCODE;
    }
    if (!qp) {
        return SYN_QP_NUM;
    }
    if (!uid_owns(&qp->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (!(t->from & (1u << qp->state))) {
        return SYN_QP_STATE;
    }
    fields = qp_modify_fields_of(t, qp);
    if (opt_mask & ~(fields->always | fields->optional) || (opt_mask & OF_EXTENSION && !ext) ||
        (opt_mask & G(MMO) && !qp_mmo_is_possible(hca, qp->service))) {
        return SYN_QP_OPT_MASK;
    }
    groups = fields->always | opt_mask;
    memcpy(merged, qp->qpc, sizeof(merged));
    if (groups) {
        qp_modify_copy_fields(groups, merged, qpc);
    }
    syn = qp_modify_check_fields(qp, groups, merged);
    if (syn == SYN_OK && (groups & (G(PRIMARY_ADDR_PATH) | OF_PATH)) && qp->service->connected) {
        syn = peer_find_path(hca, PRM_PTR(qpc, merged, primary_address_path), &path);
    }
    if (groups & G(DCI_STREAM_CHANNEL)) {
        stream = (uint16_t)PRM_GET(qp_context_extension, ext, dci_stream_channel_id);
        syn = syn == SYN_OK ? dci_check_stream(qp, stream) : syn;
    }
    if (syn == SYN_OK && (groups & G(QOS_QUEUE_GROUP))) {
        syn = qp_sched_find(qp, uid, ext, leaves);
    }
    if (syn == SYN_OK && (groups & G_ORDER) && qp_modify_order(merged) &&
        PRM_GET(qpc, merged, dp_ordering_force) && !early_init(&qp->peer)) {
        syn = SYN_NO_MEMORY;
    }
    if (syn != SYN_OK) {
        return syn;
    }

    memcpy(qp->qpc, merged, sizeof(merged));
    qp_load(qp);
    if (groups & G(DCI_STREAM_CHANNEL)) {
        dci_reset_stream(qp, stream);
    }
    if (groups & G(QOS_QUEUE_GROUP)) {
        qp_sched_join(qp, leaves);
    }
    if (groups & G(MMO)) {
        qp->mmo = PRM_GET(qp_context_extension, ext, mmo);
    }
    if ((groups & OF_PATH) && qp->service->connected) {
        path.udp_sport = qp->peer.path.udp_sport;
    }
    if ((groups & (G(PRIMARY_ADDR_PATH) | OF_PATH)) && qp->service->connected) {
        peer_set_path(&qp->peer, &path);
    }
    if (groups & G(UDP_SPORT)) {
        const struct prm_ads *ads = PRM_PTR(qpc, qp->qpc, primary_address_path);

        qp->peer.path.udp_sport = (uint16_t)PRM_GET(ads, ads, udp_sport);
    }
    if (qp->service->connected && qp->peer.path.udp_sport == 0) {
        qp->peer.path.udp_sport = qp_modify_default_sport(qp);
    }
    if (t->to == PRM_QP_STATE_RTR) {
        responder_reset(&qp->peer, PRM_GET(qpc, qp->qpc, next_rcv_psn));
    } else if (t->from == S(RTR)) {
        requester_reset(qp, PRM_GET(qpc, qp->qpc, next_send_psn));
    }
    if (t->to == PRM_QP_STATE_ERR && qp->state != PRM_QP_STATE_ERR) {
        qp->error = qp->vendor_error = 0; /* a DCI may have that of a failed stream */
    }
    qp_set_state(qp, t->to);
    return SYN_OK;
}
