/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: states. A table says which attributes a transition requires and allows
 * (ib_modify_qp_is_ok()). */
#include <stdarg.h>
#include <string.h>
#include "guest-lib/verbs/kernel/qp.h"
#include "guest-lib/verbs/kernel/rate.h"
#include "guest-lib/verbs/kernel/shadow.h"

/* Service types as bits. */
enum {
    RC = 1 << IBV_QPT_RC,
    UC = 1 << IBV_QPT_UC,
    UD = 1 << IBV_QPT_UD,
    INI = 1 << IBV_QPT_XRC_SEND,
    TGT = 1 << IBV_QPT_XRC_RECV,
    RAW = 1 << IBV_QPT_RAW_PACKET,
    DCI = 1 << 30 /* its type is IBV_QPT_DRIVER */
};

#define ANY_OPT (IBV_QP_STATE | IBV_QP_CUR_STATE)
#define PATHS   (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                     \
    (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX) /* optional, except for UD */
#define CONNECT   (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTER (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define INIT_PORT (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
/* The DCI's attributes are those of modify_dci_qp_is_ok(). */
#define DCI_REQUESTER                                                                              \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN)

/* Optional parameters of a command, as bits of enum qp_optpar: those that mlx5_ib passes on. */
#define B(name)   (1u << PRM_QP_OPTPAR_##name)
#define RC_ACCESS (B(RRE) | B(RAE) | B(RWE))

static const struct transition {
    enum ibv_qp_state from, to;
    unsigned types;
    uint16_t op;
    int required, optional;
    uint32_t opt_mask;
} transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, RC | UC | INI | TGT, PRM_CMD_OP_RST2INIT_QP,
     INIT_PORT | IBV_QP_ACCESS_FLAGS, 0, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, UD, PRM_CMD_OP_RST2INIT_QP, INIT_PORT | IBV_QP_QKEY, 0, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, RAW, 0, IBV_QP_PORT, 0, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, DCI, PRM_CMD_OP_RST2INIT_QP, INIT_PORT, 0, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, RC | INI | TGT, PRM_CMD_OP_INIT2INIT_QP, 0,
     INIT_PORT | IBV_QP_ACCESS_FLAGS, RC_ACCESS | B(PKEY_INDEX) | B(PRI_PORT)},
    {IBV_QPS_INIT, IBV_QPS_INIT, UC, PRM_CMD_OP_INIT2INIT_QP, 0, INIT_PORT | IBV_QP_ACCESS_FLAGS,
     B(RWE) | B(PKEY_INDEX) | B(PRI_PORT)},
    {IBV_QPS_INIT, IBV_QPS_INIT, UD, PRM_CMD_OP_INIT2INIT_QP, 0, INIT_PORT | IBV_QP_QKEY,
     B(PKEY_INDEX) | B(Q_KEY) | B(PRI_PORT)},
    {IBV_QPS_INIT, IBV_QPS_INIT, RAW, 0, 0, 0, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, DCI, PRM_CMD_OP_INIT2INIT_QP, 0, INIT_PORT,
     B(PKEY_INDEX) | B(PRI_PORT)},
    {IBV_QPS_INIT, IBV_QPS_RTR, RC | TGT, PRM_CMD_OP_INIT2RTR_QP, CONNECT | RESPONDER, TO_RTR,
     RC_ACCESS | B(PKEY_INDEX)},
    {IBV_QPS_INIT, IBV_QPS_RTR, INI, PRM_CMD_OP_INIT2RTR_QP, CONNECT, TO_RTR,
     RC_ACCESS | B(PKEY_INDEX)},
    {IBV_QPS_INIT, IBV_QPS_RTR, UC, PRM_CMD_OP_INIT2RTR_QP, CONNECT, TO_RTR,
     B(RWE) | B(PKEY_INDEX)},
    {IBV_QPS_INIT, IBV_QPS_RTR, UD, PRM_CMD_OP_INIT2RTR_QP, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
     B(PKEY_INDEX) | B(Q_KEY)},
    {IBV_QPS_INIT, IBV_QPS_RTR, RAW, 0, 0, 0, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR, DCI, PRM_CMD_OP_INIT2RTR_QP, IBV_QP_PATH_MTU,
     IBV_QP_PKEY_INDEX | IBV_QP_AV, 0},
    {IBV_QPS_RTR, IBV_QPS_RTS, RC, PRM_CMD_OP_RTR2RTS_QP, REQUESTER | IBV_QP_SQ_PSN,
     PATHS | IBV_QP_MIN_RNR_TIMER, RC_ACCESS | B(RNR_TIMEOUT)},
    {IBV_QPS_RTR, IBV_QPS_RTS, INI, PRM_CMD_OP_RTR2RTS_QP, REQUESTER | IBV_QP_SQ_PSN, PATHS,
     RC_ACCESS},
    {IBV_QPS_RTR, IBV_QPS_RTS, TGT, PRM_CMD_OP_RTR2RTS_QP, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     PATHS | IBV_QP_MIN_RNR_TIMER, RC_ACCESS | B(RNR_TIMEOUT)},
    {IBV_QPS_RTR, IBV_QPS_RTS, UC, PRM_CMD_OP_RTR2RTS_QP, IBV_QP_SQ_PSN, PATHS, B(RWE)},
    {IBV_QPS_RTR, IBV_QPS_RTS, UD, PRM_CMD_OP_RTR2RTS_QP, IBV_QP_SQ_PSN, IBV_QP_QKEY, B(Q_KEY)},
    {IBV_QPS_RTR, IBV_QPS_RTS, RAW, 0, 0, IBV_QP_RATE_LIMIT, 0},
    {IBV_QPS_RTR, IBV_QPS_RTS, DCI, PRM_CMD_OP_RTR2RTS_QP, DCI_REQUESTER, IBV_QP_MIN_RNR_TIMER, 0},
    {IBV_QPS_RTS, IBV_QPS_RTS, RC | TGT, PRM_CMD_OP_RTS2RTS_QP, 0, PATHS | IBV_QP_MIN_RNR_TIMER,
     RC_ACCESS | B(RNR_TIMEOUT)},
    {IBV_QPS_RTS, IBV_QPS_RTS, INI, PRM_CMD_OP_RTS2RTS_QP, 0, PATHS, RC_ACCESS},
    {IBV_QPS_RTS, IBV_QPS_RTS, UC, PRM_CMD_OP_RTS2RTS_QP, 0, PATHS, B(RWE)},
    {IBV_QPS_RTS, IBV_QPS_RTS, UD, PRM_CMD_OP_RTS2RTS_QP, 0, IBV_QP_QKEY, B(Q_KEY)},
    {IBV_QPS_RTS, IBV_QPS_RTS, RAW, 0, 0, IBV_QP_RATE_LIMIT, 0},
    {IBV_QPS_RTS, IBV_QPS_RTS, DCI, PRM_CMD_OP_RTS2RTS_QP, 0, IBV_QP_MIN_RNR_TIMER, 0},
    {IBV_QPS_SQE, IBV_QPS_RTS, UC, PRM_CMD_OP_SQERR2RTS_QP, 0, IBV_QP_ACCESS_FLAGS, B(RWE)},
    {IBV_QPS_SQE, IBV_QPS_RTS, UD, PRM_CMD_OP_SQERR2RTS_QP, 0, IBV_QP_QKEY, B(Q_KEY)},
    /* neither mlx5_ib nor DevX can enter SQD, but a device may do so by itself */
    {IBV_QPS_SQD, IBV_QPS_RTS, RC | TGT, PRM_CMD_OP_SQD_RTS_QP, 0, PATHS | IBV_QP_MIN_RNR_TIMER,
     RC_ACCESS | B(RNR_TIMEOUT)},
    {IBV_QPS_SQD, IBV_QPS_RTS, INI, PRM_CMD_OP_SQD_RTS_QP, 0, PATHS, RC_ACCESS},
    {IBV_QPS_SQD, IBV_QPS_RTS, UC, PRM_CMD_OP_SQD_RTS_QP, 0, PATHS, B(RWE)},
    {IBV_QPS_SQD, IBV_QPS_RTS, UD, PRM_CMD_OP_SQD_RTS_QP, 0, IBV_QP_QKEY, B(Q_KEY)},
};

static const struct transition *
qp_modify_transition_find(const struct hv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    unsigned type = qp->dc == HV_DC_DCI ? DCI : 1u << qp->ibv.qp_type;

    for (size_t i = 0; i < G_N_ELEMENTS(transitions); i++) {
        if (transitions[i].from == from && transitions[i].to == to &&
            (transitions[i].types & type)) {
            return &transitions[i];
        }
    }
    return NULL;
}

bool hv_qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                      int *required, int *optional)
{
    const struct hv_qp qp = {.ibv = {.qp_type = type},
                             .dc = type == IBV_QPT_DRIVER ? HV_DC_DCI : HV_DC_NONE};
    const struct transition *t = qp_modify_transition_find(&qp, from, to);

    if (t) {
        *required = t->required;
        *optional = t->optional;
    }
    return t;
}

/* -- why not ------------------------------------------------------------------------------------
 */

/* Says why the change is refused, and returns err. */
static int G_GNUC_PRINTF(5, 6) modify_refuse(const struct hv_qp *qp, enum ibv_qp_state from,
                                             enum ibv_qp_state to, int err, const char *fmt, ...)
{
    g_autofree char *why = NULL;
    va_list ap;

    if (!hv_says(qp->hca)) {
        return err;
    }
    va_start(ap, fmt);
    why = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return hv_refuse(qp->hca, err, "modify_qp (QP 0x%x, %s to %s): %s", qp->ibv.qp_num,
                     hv_qp_state_name(from), hv_qp_state_name(to), why);
}

/* There is no such transition: where the QP may go. */
static int modify_refuse_transition(const struct hv_qp *qp, enum ibv_qp_state from,
                                    enum ibv_qp_state to)
{
    g_autoptr(GString) next = g_string_new(NULL);

    for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_ERR; state++) {
        bool may = state == IBV_QPS_RESET || (state == IBV_QPS_ERR && from != IBV_QPS_RESET) ||
                   qp_modify_transition_find(qp, from, state);

        if (may && state != from) {
            g_string_append_printf(next, "%s%s", next->len ? " or " : "", hv_qp_state_name(state));
        }
    }
    return modify_refuse(qp, from, to, EINVAL,
                         "there is no such transition; from %s the QP may go to %s",
                         hv_qp_state_name(from), next->str);
}

static int modify_refuse_mask(const struct hv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
                              int missing, int excess)
{
    struct hv_words words;

    if (missing) {
        return modify_refuse(qp, from, to, EINVAL, "attr_mask must have %s, too",
                             hv_qp_mask_names(missing, &words));
    }
    return modify_refuse(qp, from, to, EINVAL,
                         "attr_mask must not have %s in this transition of %s QPs",
                         hv_qp_mask_names(excess, &words),
                         qp->dc == HV_DC_DCI ? "DCI" : hv_qp_type_name(qp->ibv.qp_type));
}

/* -- a change, as a command -------------------------------------------------------------------- */

static uint32_t modify_opt_params(int mask)
{
    return (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC) ? RC_ACCESS : 0) |
           (mask & IBV_QP_PKEY_INDEX ? B(PKEY_INDEX) : 0) | (mask & IBV_QP_QKEY ? B(Q_KEY) : 0) |
           (mask & IBV_QP_MIN_RNR_TIMER ? B(RNR_TIMEOUT) : 0) |
           (mask & IBV_QP_PORT ? B(PRI_PORT) : 0);
}

/* The log2 of a number of outstanding READs and atomics, rounded up. */
static unsigned qp_modify_log_rd_atom(unsigned n)
{
    return n > 1 ? g_bit_storage(n - 1) : 0;
}

static uint16_t modify_udp_sport(const struct hv_qp *qp, const struct ibv_ah_attr *ah,
                                 uint32_t dest_qpn)
{
    uint32_t label = ah->grh.flow_label & 0xfffff;

    if (!label) { /* as rdma_calc_flow_label() */
        uint64_t v = (uint64_t)qp->ibv.qp_num * dest_qpn;

        v ^= v >> 20;
        v ^= v >> 40;
        label = v & 0xfffff;
    }
    return ibv_flow_label_to_udp_sport(label);
}

static int modify_fill_path(struct hv_qp *qp, const struct ibv_qp_attr *attr, struct prm_ads *ads)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;
    uint8_t mac[6];
    int err;

    if (!ah->is_global) {
        return hv_refuse(qp->hca, EINVAL, "modify_qp (QP 0x%x): ah_attr." HV_NOT_GLOBAL,
                         qp->ibv.qp_num);
    }
    err = hv_resolve_mac(hv_context(qp->ibv.context), ah->port_num ? ah->port_num : 1,
                         ah->grh.sgid_index, &ah->grh.dgid, mac);
    if (err) {
        return hv_refuse_path(hv_context(qp->ibv.context), err, "modify_qp: ah_attr.", ah);
    }
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, src_addr_index, ah->grh.sgid_index);
    PRM_SET(ads, ads, hop_limit, ah->grh.hop_limit);
    PRM_SET(ads, ads, tclass, ah->grh.traffic_class);
    PRM_SET(ads, ads, flow_label, ah->grh.flow_label & 0xfffff);
    PRM_SET(ads, ads, dscp, ah->grh.traffic_class >> 2);
    PRM_SET(ads, ads, eth_prio, ah->sl & 7);
    PRM_SET(ads, ads, udp_sport, modify_udp_sport(qp, ah, attr->dest_qp_num));
    memcpy(PRM_PTR(ads, ads, rgid_rip), ah->grh.dgid.raw, 16);
    PRM_SET(ads, ads, rmac_47_32, prm_load16(mac));
    PRM_SET(ads, ads, rmac_31_0, prm_load32(mac + 2));
    return 0;
}

unsigned hv_qp_atomic_mode(const struct hv_qp *qp)
{
    const struct prm_atomic_caps *caps = hv_drv(qp->hca)->atomic_cap;
    const unsigned standard =
        1u << PRM_ATOMIC_OPERATION_CMP_SWAP | 1u << PRM_ATOMIC_OPERATION_FETCH_ADD;
    const unsigned extended = 1u << PRM_ATOMIC_OPERATION_EXTENDED_CMP_SWAP |
                              1u << PRM_ATOMIC_OPERATION_EXTENDED_FETCH_ADD;
    unsigned ops = PRM_GET(atomic_caps, caps, atomic_operations);
    unsigned sizes = qp->dc == HV_DC_DCT ? PRM_GET(atomic_caps, caps, atomic_size_dc)
                                         : PRM_GET(atomic_caps, caps, atomic_size_qp);

    sizes &= 0x1ff; /* a bit for each size up to 256 bytes: larger sizes have no mode */
    if ((ops & extended) == extended && sizes) {
        unsigned log_largest = (unsigned)g_bit_storage(sizes) - 1;

        return qp->ooo || qp->ooo_rw ? PRM_ATOMIC_MODE_UP_TO_8B
                                     : MAX(log_largest, PRM_ATOMIC_MODE_UP_TO_8B);
    }
    return (ops & standard) == standard ? PRM_ATOMIC_MODE_IB_SPEC : 0;
}

/* Fills in the access rights. Without responder resources, the rights for READs and atomics are
 * withheld (set_qpc_atomic_flags()). */
static void modify_fill_rights(const struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                               struct prm_qpc *qpc)
{
    unsigned access = mask & IBV_QP_ACCESS_FLAGS ? attr->qp_access_flags : qp->access;
    uint8_t depth =
        mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr->max_dest_rd_atomic : qp->max_dest_rd_atomic;

    if (!depth) {
        access &= IBV_ACCESS_REMOTE_WRITE;
    }
    PRM_SET(qpc, qpc, rre, !!(access & IBV_ACCESS_REMOTE_READ));
    PRM_SET(qpc, qpc, rwe, !!(access & IBV_ACCESS_REMOTE_WRITE));
    PRM_SET(qpc, qpc, rae, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    PRM_SET(qpc, qpc, atomic_mode, access & IBV_ACCESS_REMOTE_ATOMIC ? hv_qp_atomic_mode(qp) : 0);
}

static int modify_fill_qpc(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                           struct prm_qpc *qpc)
{
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);
    int err = 0;

    if (qp->ibv.qp_type == IBV_QPT_UD) {
        PRM_SET(qpc, qpc, mtu, IBV_MTU_4096);
        PRM_SET(qpc, qpc, log_msg_max, 12);
    } else if (mask & IBV_QP_PATH_MTU) {
        PRM_SET(qpc, qpc, mtu, attr->path_mtu);
        PRM_SET(qpc, qpc, log_msg_max, HV_CAP(qp->hca, log_max_msg));
    }
#define IF(bit, field, value)                                                                      \
    do {                                                                                           \
        if (mask & (bit)) {                                                                        \
            PRM_SET(qpc, qpc, field, value);                                                       \
        }                                                                                          \
    } while (0)
    IF(IBV_QP_DEST_QPN, remote_qpn, attr->dest_qp_num & 0xffffff);
    IF(IBV_QP_RQ_PSN, next_rcv_psn, attr->rq_psn & 0xffffff);
    IF(IBV_QP_SQ_PSN, next_send_psn, attr->sq_psn & 0xffffff);
    IF(IBV_QP_QKEY, q_key, attr->qkey);
    IF(IBV_QP_MIN_RNR_TIMER, min_rnr_nak, attr->min_rnr_timer & 31);
    IF(IBV_QP_RETRY_CNT, retry_count, attr->retry_cnt & 7);
    IF(IBV_QP_RNR_RETRY, rnr_retry, attr->rnr_retry & 7);
    IF(IBV_QP_MAX_QP_RD_ATOMIC, log_sra_max, qp_modify_log_rd_atom(attr->max_rd_atomic));
    IF(IBV_QP_MAX_DEST_RD_ATOMIC, log_rra_max, qp_modify_log_rd_atom(attr->max_dest_rd_atomic));
#undef IF
    if (mask & (IBV_QP_ACCESS_FLAGS | IBV_QP_MAX_DEST_RD_ATOMIC)) {
        modify_fill_rights(qp, attr, mask, qpc);
    }
    if (mask & IBV_QP_PORT) {
        PRM_SET(ads, ads, vhca_port_num, attr->port_num);
    }
    if (mask & IBV_QP_PKEY_INDEX) {
        PRM_SET(ads, ads, pkey_index, attr->pkey_index);
    }
    if (mask & IBV_QP_TIMEOUT) {
        PRM_SET(ads, ads, ack_timeout, attr->timeout & 31);
    }
    if (mask & IBV_QP_AV) {
        err = modify_fill_path(qp, attr, ads);
    }
    return err;
}

int hv_qp_stop(struct hv_qp *qp, uint16_t op)
{
    struct prm_qp_2err_in in[1] = {0};

    PRM_SET(qp_2err_in, in, opcode, op);
    PRM_SET(qp_2err_in, in, uid, qp->uid);
    PRM_SET(qp_2err_in, in, qpn, qp->ibv.qp_num);
    return hv_cmd_simple(qp->hca, in, sizeof(in));
}

/* The checks of values that the kernel makes without the device: 0 or EINVAL. */
static int modify_check_values(const struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                               enum ibv_qp_state from, enum ibv_qp_state to)
{
    bool dci = qp->dc == HV_DC_DCI;
    unsigned most_init =
        1u << (dci ? HV_CAP(qp->hca, log_max_ra_res_dc) : HV_CAP(qp->hca, log_max_ra_res_qp));
    unsigned most_resp =
        1u << (dci ? HV_CAP(qp->hca, log_max_ra_req_dc) : HV_CAP(qp->hca, log_max_ra_req_qp));
    unsigned pkeys = 128u << HV_CAP(qp->hca, pkey_table_size);

#define REFUSE_IF(bit, condition, ...)                                                             \
    do {                                                                                           \
        if ((mask & (bit)) && (condition)) {                                                       \
            return modify_refuse(qp, from, to, EINVAL, __VA_ARGS__);                               \
        }                                                                                          \
    } while (0)
    REFUSE_IF(IBV_QP_CUR_STATE,
              attr->cur_qp_state != IBV_QPS_RTR && attr->cur_qp_state != IBV_QPS_RTS &&
                  attr->cur_qp_state != IBV_QPS_SQD && attr->cur_qp_state != IBV_QPS_SQE,
              "cur_qp_state is %s; it may be RTR, RTS, SQD or SQE",
              hv_qp_state_name(attr->cur_qp_state));
    REFUSE_IF(IBV_QP_STATE, attr->qp_state > IBV_QPS_ERR, "qp_state is %u, which is no state",
              (unsigned)attr->qp_state);
    REFUSE_IF(IBV_QP_PORT, attr->port_num != 1, "port_num is %u; the device has port 1",
              attr->port_num);
    REFUSE_IF(IBV_QP_AV, attr->ah_attr.port_num != 1,
              "ah_attr.port_num is %u; the device has port 1", attr->ah_attr.port_num);
    REFUSE_IF(IBV_QP_PKEY_INDEX, attr->pkey_index >= pkeys,
              "pkey_index is %u; the table has %u entries", attr->pkey_index, pkeys);
    REFUSE_IF(IBV_QP_PATH_MTU, attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096,
              "path_mtu is %u; it may be IBV_MTU_256 (1) to IBV_MTU_4096 (5)",
              (unsigned)attr->path_mtu);
    REFUSE_IF(IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic > most_init,
              "max_rd_atomic is %u; the device allows %u", attr->max_rd_atomic, most_init);
    REFUSE_IF(IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic > most_resp,
              "max_dest_rd_atomic is %u; the device allows %u", attr->max_dest_rd_atomic,
              most_resp);
#undef REFUSE_IF
    return 0;
}

/* Goes to RESET from any state, or to ERR from any state except RESET. */
static int modify_leave(struct hv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    if (from == IBV_QPS_RESET && to == IBV_QPS_ERR) {
        return modify_refuse_transition(qp, from, to);
    }
    if (mask & ~ANY_OPT) {
        return modify_refuse_mask(qp, from, to, 0, mask & ~ANY_OPT);
    }
    if (from == IBV_QPS_RESET) {
        return 0;
    }
    if (qp->ibv.qp_type == IBV_QPT_RAW_PACKET) {
        return hv_raw_modify(qp, to, &qp->rate);
    }
    return hv_qp_stop(qp, to == IBV_QPS_RESET ? PRM_CMD_OP_2RST_QP : PRM_CMD_OP_2ERR_QP);
}

/* What lines of the log say of the QP that it is connected to. */
static void modify_note_peer(struct hv_qp *qp, const struct ibv_qp_attr *attr, int mask,
                             const struct prm_ads *path)
{
    if (mask & IBV_QP_AV && mask & IBV_QP_DEST_QPN) {
        qp->peer.known = true;
        qp->peer.qpn = attr->dest_qp_num & 0xffffff;
        qp->peer.gid = attr->ah_attr.grh.dgid;
        prm_store16(qp->peer.mac, PRM_GET(ads, path, rmac_47_32));
        prm_store32(qp->peer.mac + 2, PRM_GET(ads, path, rmac_31_0));
    }
    if (mask & IBV_QP_TIMEOUT) {
        qp->peer.timeout = attr->timeout & 31;
    }
    if (mask & IBV_QP_RETRY_CNT) {
        qp->peer.retry_cnt = attr->retry_cnt & 7;
    }
    if (mask & IBV_QP_RNR_RETRY) {
        qp->peer.rnr_retry = attr->rnr_retry & 7;
    }
}

/* Whether the command takes and answers ECE options (modify_qp_mbox_alloc()). */
static bool modify_op_has_ece(uint16_t op)
{
    return op != PRM_CMD_OP_SQERR2RTS_QP && op != PRM_CMD_OP_SQD_RTS_QP;
}

/* rate: read if mask has IBV_QP_RATE_LIMIT. */
static int modify_advance(struct hv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state from,
                          enum ibv_qp_state to, int mask, const struct hv_rate *rate)
{
    const struct transition *t = qp_modify_transition_find(qp, from, to);
    struct prm_rts2rts_qp_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(rts2rts_qp_in, in, qpc);
    int err;

    if (!t) {
        return modify_refuse_transition(qp, from, to);
    }
    if ((mask & t->required) != t->required || (mask & ~(t->required | t->optional | ANY_OPT))) {
        return modify_refuse_mask(qp, from, to, t->required & ~mask,
                                  mask & ~(t->required | t->optional | ANY_OPT));
    }
    if (qp->ibv.qp_type == IBV_QPT_RAW_PACKET) {
        if (!(mask & IBV_QP_RATE_LIMIT)) {
            return hv_raw_modify(qp, to, &qp->rate);
        }
        err = hv_rate_check(qp->hca, rate);
        return err ? err : hv_raw_modify(qp, to, rate);
    }
    /* as in __mlx5_ib_modify_qp(), for every change */
    hv_qp_fill_identity(qp, qpc);
    PRM_SET(qpc, qpc, log_ack_req_freq, 8);
    if (from == IBV_QPS_RESET && qp->rq.wqe_cnt) {
        PRM_SET(qpc, qpc, dbr_addr, (uintptr_t)shadow_real(qp->dbrec));
    }
    if ((qp->ooo || qp->ooo_rw) && t->op == PRM_CMD_OP_INIT2RTR_QP) {
        PRM_SET(qpc, qpc, dp_ordering_0, !qp->ooo);
        PRM_SET(qpc, qpc, dp_ordering_1, qp->ooo);
        PRM_SET(qpc, qpc, dp_ordering_force, 1);
    }
    err = modify_fill_qpc(qp, attr, mask, qpc);
    if (err) {
        return err;
    }
    PRM_SET(rts2rts_qp_in, in, opcode, t->op);
    PRM_SET(rts2rts_qp_in, in, uid, qp->uid);
    PRM_SET(rts2rts_qp_in, in, qpn, qp->ibv.qp_num);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask, modify_opt_params(mask) & t->opt_mask);
    PRM_SET(rts2rts_qp_in, in, ece, modify_op_has_ece(t->op) ? hv_qp_ece(qp) : 0);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    if (err) {
        return err;
    }
    qp->ece.answered = modify_op_has_ece(t->op) ? PRM_GET(rts2rts_qp_out, out, ece) : 0;
    modify_note_peer(qp, attr, mask, PRM_PTR(qpc, qpc, primary_address_path));
    if (mask & IBV_QP_ACCESS_FLAGS) {
        qp->access = attr->qp_access_flags;
    }
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
        qp->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    }
    return 0;
}

/* A program may give either half of XRC the attributes of the other half: they are ignored
 * (modify_qp_mask() of uverbs). */
static int modify_own_half(const struct hv_qp *qp, int mask)
{
    switch (qp->ibv.qp_type) {
    case IBV_QPT_XRC_SEND:
        return mask & ~(int)RESPONDER;
    case IBV_QPT_XRC_RECV:
        return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    default:
        return mask;
    }
}

int uverbs_modify_qp(struct hv_qp *qp, const struct ibv_qp_attr *attr, int asked,
                     const struct hv_rate *rate)
{
    int mask = modify_own_half(qp, asked);
    enum ibv_qp_state from = mask & IBV_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    int err = hv_check_there(qp->hca);

    qp->ece.answered = 0;
    err = err ? err : hv_qp_check(&qp->ibv);
    err = err ? err : modify_check_values(qp, attr, mask, from, to);
    if (err) {
        return err;
    }
    if (qp->dc == HV_DC_DCT) {
        return hv_dct_modify(qp, attr, mask);
    }
    if (qp->dc == HV_DC_DCI && (mask & (IBV_QP_STATE | IBV_QP_CUR_STATE)) != IBV_QP_STATE) {
        return modify_refuse(qp, from, to, EINVAL,
                             "attr_mask of a DCI must have IBV_QP_STATE and not IBV_QP_CUR_STATE");
    }
    return to == IBV_QPS_RESET || to == IBV_QPS_ERR
               ? modify_leave(qp, from, to, mask)
               : modify_advance(qp, attr, from, to, mask, rate);
}

static enum ibv_qp_state qp_modify_state_of(uint32_t state)
{
    static const enum ibv_qp_state states[] = {
        [PRM_QP_STATE_RST] = IBV_QPS_RESET, [PRM_QP_STATE_INIT] = IBV_QPS_INIT,
        [PRM_QP_STATE_RTR] = IBV_QPS_RTR,   [PRM_QP_STATE_RTS] = IBV_QPS_RTS,
        [PRM_QP_STATE_SQER] = IBV_QPS_SQE,  [PRM_QP_STATE_SQD] = IBV_QPS_SQD,
        [PRM_QP_STATE_ERR] = IBV_QPS_ERR,   [PRM_QP_STATE_SQ_DRAINING] = IBV_QPS_SQD,
    };

    return state < G_N_ELEMENTS(states) ? states[state] : IBV_QPS_UNKNOWN;
}

int uverbs_query_qp(struct hv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct prm_query_qp_in in[1] = {0};
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)in; /* all inputs begin with it */
    struct prm_query_qp_out out[1];
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);
    const struct prm_ads *ads;
    int err = hv_check_there(qp->hca);

    err = err ? err : hv_qp_check(&qp->ibv);
    if (err) {
        return err;
    }
    memset(attr, 0, sizeof(*attr));
    if (qp->dc == HV_DC_DCT) {
        return hv_dct_query(qp, attr, mask);
    }
    if (qp->ibv.qp_type == IBV_QPT_RAW_PACKET) {
        err = hv_raw_query_state(qp, &attr->qp_state);
        qp->state = err ? qp->state : attr->qp_state;
        attr->cur_qp_state = attr->qp_state;
        attr->port_num = 1;
        return err;
    }
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, qp->uid);
    PRM_SET(query_qp_in, in, qpn, qp->ibv.qp_num);
    err = hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out));
    if (err) {
        return err;
    }
    ads = PRM_PTR(qpc, qpc, primary_address_path);
    qp->state = attr->qp_state = attr->cur_qp_state = qp_modify_state_of(PRM_GET(qpc, qpc, state));
    attr->sq_draining = PRM_GET(qpc, qpc, state) == PRM_QP_STATE_SQ_DRAINING;
    attr->path_mtu = PRM_GET(qpc, qpc, mtu);
    attr->path_mig_state = IBV_MIG_MIGRATED;
    attr->qkey = PRM_GET(qpc, qpc, q_key);
    attr->rq_psn = PRM_GET(qpc, qpc, next_rcv_psn);
    attr->sq_psn = PRM_GET(qpc, qpc, next_send_psn);
    attr->dest_qp_num = PRM_GET(qpc, qpc, remote_qpn);
    attr->qp_access_flags = (PRM_GET(qpc, qpc, rre) ? IBV_ACCESS_REMOTE_READ : 0) |
                            (PRM_GET(qpc, qpc, rwe) ? IBV_ACCESS_REMOTE_WRITE : 0) |
                            (PRM_GET(qpc, qpc, rae) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
    attr->max_rd_atomic = (uint8_t)(1u << PRM_GET(qpc, qpc, log_sra_max));
    attr->max_dest_rd_atomic = (uint8_t)(1u << PRM_GET(qpc, qpc, log_rra_max));
    attr->min_rnr_timer = PRM_GET(qpc, qpc, min_rnr_nak);
    attr->retry_cnt = PRM_GET(qpc, qpc, retry_count);
    attr->rnr_retry = PRM_GET(qpc, qpc, rnr_retry);
    attr->timeout = PRM_GET(ads, ads, ack_timeout);
    attr->pkey_index = PRM_GET(ads, ads, pkey_index);
    attr->port_num = PRM_GET(ads, ads, vhca_port_num);
    if (qp->ibv.qp_type != IBV_QPT_UD && qp->dc != HV_DC_DCI) {
        attr->ah_attr.is_global = 1;
        attr->ah_attr.port_num = attr->port_num;
        attr->ah_attr.sl = PRM_GET(ads, ads, eth_prio);
        attr->ah_attr.grh.sgid_index = PRM_GET(ads, ads, src_addr_index);
        attr->ah_attr.grh.hop_limit = PRM_GET(ads, ads, hop_limit);
        attr->ah_attr.grh.traffic_class = PRM_GET(ads, ads, tclass);
        attr->ah_attr.grh.flow_label = PRM_GET(ads, ads, flow_label);
        memcpy(attr->ah_attr.grh.dgid.raw, PRM_PTR(ads, ads, rgid_rip), 16);
    }
    return 0;
}

uint8_t uverbs_qp_error(struct hv_qp *qp)
{
    struct prm_query_qp_in in[1] = {0};
    struct prm_general_obj_in_cmd_hdr *hdr = (void *)in; /* all inputs begin with it */
    struct prm_query_qp_out out[1];
    const struct prm_qp_context_extension *ext =
        PRM_PTR(query_qp_out, out, qp_pas_or_qpc_ext_and_pas);

    if (qp->dc == HV_DC_DCT || qp->ibv.qp_type == IBV_QPT_RAW_PACKET) {
        return 0; /* the device has no QP of that number */
    }
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, qp->uid);
    PRM_SET(query_qp_in, in, qpc_ext, 1);
    PRM_SET(query_qp_in, in, qpn, qp->ibv.qp_num);
    if (hv_cmd(qp->hca, in, sizeof(in), out, sizeof(out))) {
        return 0;
    }
    return (uint8_t)PRM_GET(cqe_error_syndrome, PRM_PTR(qp_context_extension, ext, error_syndrome),
                            syndrome);
}
