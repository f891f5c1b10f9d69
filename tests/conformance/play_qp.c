/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays the steps about queue pairs and their states. */
#include "tests/conformance/play.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FIRST_PEER_QPN 0x100
#define QKEY           0x11111111
#define CQES           256

static const struct words_name qp_types[] = {{"rc", IBV_QPT_RC},
                                             {"uc", IBV_QPT_UC},
                                             {"ud", IBV_QPT_UD},
                                             {"xrc_send", IBV_QPT_XRC_SEND},
                                             {"xrc_recv", IBV_QPT_XRC_RECV},
                                             {"dci", PLAY_DCI},
                                             {"dct", PLAY_DCT},
                                             {NULL, 0}};

static const struct words_name qp_states[] = {
    {"RESET", IBV_QPS_RESET}, {"INIT", IBV_QPS_INIT}, {"RTR", IBV_QPS_RTR}, {"RTS", IBV_QPS_RTS},
    {"SQD", IBV_QPS_SQD},     {"SQE", IBV_QPS_SQE},   {"ERR", IBV_QPS_ERR}, {NULL, 0}};

static const struct words_name mtus[] = {{"256", IBV_MTU_256},   {"512", IBV_MTU_512},
                                         {"1024", IBV_MTU_1024}, {"2048", IBV_MTU_2048},
                                         {"4096", IBV_MTU_4096}, {NULL, 0}};

/* The same for DC, whose rules are those of the kernel's driver. */
static int qp_required_dc(unsigned type, enum ibv_qp_state to)
{
    bool target = type == PLAY_DCT;

    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (target ? IBV_QP_ACCESS_FLAGS : 0);
    case IBV_QPS_RTR:
        return IBV_QP_STATE | IBV_QP_PATH_MTU | (target ? IBV_QP_MIN_RNR_TIMER | IBV_QP_AV : 0);
    case IBV_QPS_RTS:
        return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC;
    default:
        return IBV_QP_STATE;
    }
}

/* Returns the attributes that a transition requires (IBTA table 91, "Modify QP": required
 * attributes). */
static int qp_required(unsigned type, enum ibv_qp_state to)
{
    bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD, target = type == IBV_QPT_XRC_RECV;
    bool initiator = rc || type == IBV_QPT_XRC_SEND, responder = rc || target;

    if (type == PLAY_DCI || type == PLAY_DCT) {
        return qp_required_dc(type, to);
    }
    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
        return IBV_QP_STATE |
               (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
               (responder ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
        return IBV_QP_STATE | IBV_QP_SQ_PSN | (target ? IBV_QP_TIMEOUT : 0) |
               (initiator
                    ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                    : 0);
    default:
        return IBV_QP_STATE;
    }
}

/* 0 means no timeout, also in real time. */
static uint8_t qp_timeout(struct play *p, uint8_t usual)
{
    const char *word = words_value(&p->words, "timeout");
    uint64_t value = word ? words_to_number(&p->words, word) : 0;

    return word ? (uint8_t)(value ? value + p->scale_bits : 0) : usual;
}

/* Takes the words that set an attribute; returns the attribute mask that modifying by them alone
 * needs. */
static int qp_take_attr(struct play *p, struct ibv_qp_attr *attr)
{
    struct words *w = &p->words;
    const struct ibv_qp_attr old = *attr;
    int mask = 0;

    attr->path_mtu = (enum ibv_mtu)words_choice(w, "mtu", mtus, attr->path_mtu);
    attr->timeout = qp_timeout(p, attr->timeout);
    attr->retry_cnt = (uint8_t)words_number(w, "retry", attr->retry_cnt);
    attr->rnr_retry = (uint8_t)words_number(w, "rnr_retry", attr->rnr_retry);
    attr->min_rnr_timer = (uint8_t)words_number(w, "rnr_timer", attr->min_rnr_timer);
    attr->max_rd_atomic = (uint8_t)words_number(w, "rd", attr->max_rd_atomic);
    attr->max_dest_rd_atomic = (uint8_t)words_number(w, "dest_rd", attr->max_dest_rd_atomic);
    attr->qkey = (uint32_t)words_number(w, "qkey", attr->qkey);
    attr->port_num = (uint8_t)words_number(w, "port", attr->port_num);
    attr->pkey_index = (uint16_t)words_number(w, "pkey_index", attr->pkey_index);
    attr->qp_access_flags = play_rights(p, "access", attr->qp_access_flags);
    mask |= attr->min_rnr_timer != old.min_rnr_timer ? IBV_QP_MIN_RNR_TIMER : 0;
    mask |= attr->qp_access_flags != old.qp_access_flags ? IBV_QP_ACCESS_FLAGS : 0;
    mask |= attr->qkey != old.qkey ? IBV_QP_QKEY : 0;
    return mask;
}

static void qp_init_attr(struct play *p, struct play_qp *qp, unsigned type)
{
    qp->attr = (struct ibv_qp_attr){
        .port_num = p->host->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                           (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV || type == PLAY_DCT
                                ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
                                : 0),
        .path_mtu = IBV_MTU_256,
        .dest_qp_num = qp->peer_qpn,
        .rq_psn = p->rq_psn,
        .sq_psn = p->sq_psn,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12, /* 0.64 ms */
        .timeout = p->host->timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .qkey = QKEY,
        .ah_attr = {.is_global = 1,
                    .port_num = p->host->port,
                    .grh = {.dgid = p->host->peer,
                            .sgid_index = p->host->gid_index,
                            .hop_limit = 64}},
    };
}

static void qp_go(struct play *p, struct play_qp *qp, enum ibv_qp_state to)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

    for (unsigned i = 0; i < G_N_ELEMENTS(way) && way[i] <= to; i++) {
        qp->attr.qp_state = way[i];
        int err = ibv_modify_qp(qp->qp, &qp->attr, qp_required(qp->type, way[i]));

        if (err) {
            play_cannot(p, words_name_of(qp_states, way[i]), err);
        }
    }
    qp->qpn = qp->qp->qp_num; /* a DCT has none before RTR */
}

/* A target has no queues of its own: it is in the domain of the shared queue xrc=NAME. */
static struct ibv_qp *qp_make_target(struct play *p)
{
    const char *domain = words_value(&p->words, "xrc");
    struct ibv_qp_init_attr_ex init = {
        .qp_type = IBV_QPT_XRC_RECV,
        .comp_mask = IBV_QP_INIT_ATTR_XRCD,
        .xrcd = domain ? play_srq(p, domain)->xrcd : NULL,
    };

    return ibv_create_qp_ex(p->host->ctx, &init);
}

static struct ibv_qp *qp_make(struct play *p, const struct play_qp *qp,
                              struct ibv_qp_init_attr *init)
{
    const struct host_direct *direct = p->host->direct;
    struct words *w = &p->words;
    unsigned work = (words_flag(w, "umr") ? HOST_UMR : 0) | (words_flag(w, "sig") ? HOST_SIG : 0) |
                    (words_flag(w, "mmo") ? HOST_MMO : 0);
    unsigned cross = (words_flag(w, "master") ? HOST_MASTER : 0) |
                     (words_flag(w, "managed_send") ? HOST_MANAGED_SEND : 0) |
                     (words_flag(w, "managed_recv") ? HOST_MANAGED_RECV : 0);

    if ((qp->type == PLAY_DCI || qp->type == PLAY_DCT || work || cross) && !direct) {
        play_cannot(p, "such a queue pair needs direct verbs", 0);
    }
    if ((work || cross) && qp->type != IBV_QPT_RC) {
        words_mistake(w, "UMRs, copies and cross channel are for a reliable connection");
    }
    if (work && cross) {
        words_mistake(w, "a queue pair of cross channel has no UMRs and no copies");
    }
    if (cross) {
        return direct->make_cross(p->host, init, cross);
    }
    if (work) {
        return direct->make_configurer(p->host, init, work);
    }
    switch (qp->type) {
    case IBV_QPT_XRC_RECV:
        return qp_make_target(p);
    case PLAY_DCT:
        return direct->make_target(p->host, init, words_number(w, "key", 0));
    case PLAY_DCI:
        return direct->make_initiator(p->host, init, (uint8_t)words_number(w, "streams", 0),
                                      (uint8_t)words_number(w, "errored", 0));
    default:
        init->qp_type = (enum ibv_qp_type)qp->type;
        return ibv_create_qp(p->host->pd, init);
    }
}

/* cq=NAME: uses the CQ of another queue pair */
static void qp_make_cq(struct play *p, struct play_qp *qp)
{
    struct words *w = &p->words;
    const char *whose = words_value(w, "cq");

    if (whose) {
        qp->cq = play_qp(p, whose)->cq;
        qp->channel = play_qp(p, whose)->channel;
        qp->shares_cq = true;
        return;
    }
    qp->channel = ibv_create_comp_channel(p->host->ctx);
    if (!qp->channel || fcntl(qp->channel->fd, F_SETFL, O_NONBLOCK)) {
        words_fail(w, "no channel: %s", g_strerror(errno));
    }
    qp->cq = ibv_create_cq(p->host->ctx, (int)words_number(w, "cqe", CQES), NULL, qp->channel, 0);
}

/* qp NAME TYPE [state=RTS] [srq=S] [cq=QP] [cqe=N] [wr=N] [sge=N] [inline=N] [sig=all] [umr]
 * [sig] [mmo] [master] [managed_send] [managed_recv] [key=K] [streams=N] [errored=N] [an attribute
 * ...] */
void play_new_qp(struct play *p)
{
    struct words *w = &p->words;
    struct play_qp *qp = g_new0(struct play_qp, 1);
    uint32_t wr, sge;
    struct ibv_qp_init_attr init = {0};
    const char *srq, *sig;

    qp->name = words_need(w, "the queue pair's name");
    qp->type = (unsigned)words_to_choice(w, words_need(w, "its type"), qp_types);
    wr = (uint32_t)words_number(w, "wr", 16);
    sge = (uint32_t)words_number(w, "sge", 4);
    init.cap = (struct ibv_qp_cap){.max_send_wr = wr,
                                   .max_recv_wr = wr,
                                   .max_send_sge = sge,
                                   .max_recv_sge = sge,
                                   .max_inline_data = (uint32_t)words_number(w, "inline", 0)};
    srq = words_value(w, "srq");
    init.srq = srq ? play_srq(p, srq)->srq : NULL;
    sig = words_value(w, "sig");
    init.sq_sig_all = sig && !strcmp(sig, "all");
    qp_make_cq(p, qp);
    init.send_cq = init.recv_cq = qp->cq;
    qp->qp = qp_make(p, qp, &init);
    if (!qp->qp) {
        play_cannot(p, "the device makes no such queue pair", errno);
    }
    qp->peer_qpn = FIRST_PEER_QPN + p->qps->len;
    qp->next_id = 1;
    qp_init_attr(p, qp, qp->type);
    qp_take_attr(p, &qp->attr);
    qp_go(p, qp,
          (enum ibv_qp_state)words_choice(w, "state", qp_states,
                                          qp->type == PLAY_DCT ? IBV_QPS_RTR : IBV_QPS_RTS));
    if (qp->type == IBV_QPT_UD || qp->type == PLAY_DCI) {
        qp->ah = ibv_create_ah(p->host->pd, &qp->attr.ah_attr);
    }
    g_ptr_array_add(p->qps, qp);
}

/* Moves a QP to SQD. Not every driver can do this. */
static int qp_drain(struct play *p, struct play_qp *qp, struct ibv_qp_attr *attr, int mask,
                    const char *error)
{
    int err = p->host->direct ? p->host->direct->drain(qp->qp) : ibv_modify_qp(qp->qp, attr, mask);

    if (err && !error && !p->host->direct) {
        play_cannot(p, "the driver has no way into SQD", err);
    }
    return err;
}

/* modify NAME [STATE] [without=psn,...] [cur=STATE] [an attribute ...] [errno=E] */
static void qp_modify(struct play *p, struct play_qp *qp)
{
    static const struct words_name attributes[] = {
        {"port", IBV_QP_PORT},
        {"pkey_index", IBV_QP_PKEY_INDEX},
        {"av", IBV_QP_AV},
        {"mtu", IBV_QP_PATH_MTU},
        {"dest", IBV_QP_DEST_QPN},
        {"rq_psn", IBV_QP_RQ_PSN},
        {"sq_psn", IBV_QP_SQ_PSN},
        {"timeout", IBV_QP_TIMEOUT},
        {"qkey", IBV_QP_QKEY},
        {"retry", IBV_QP_RETRY_CNT},
        {"rnr_retry", IBV_QP_RNR_RETRY},
        {"rd", IBV_QP_MAX_QP_RD_ATOMIC},
        {"dest_rd", IBV_QP_MAX_DEST_RD_ATOMIC},
        {"access", IBV_QP_ACCESS_FLAGS},
        {"rnr_timer", IBV_QP_MIN_RNR_TIMER},
        {NULL, 0},
    };
    struct words *w = &p->words;
    struct ibv_qp_attr attr = qp->attr;
    int mask = qp_take_attr(p, &attr), err;
    const char *without = words_value(w, "without"), *with = words_value(w, "with");
    const char *cur = words_value(w, "cur");
    const char *error = words_value(w, "errno"), *state = words_next(w);

    if (state) {
        attr.qp_state = (enum ibv_qp_state)words_to_choice(w, state, qp_states);
        mask |= qp->qp->state >= IBV_QPS_RTS && attr.qp_state == IBV_QPS_RTS
                    ? IBV_QP_STATE /* where it is, or back from SQD or SQE */
                    : qp_required(qp->type, attr.qp_state);
    }
    if (without) {
        mask &= ~(int)words_to_choice(w, without, attributes);
    }
    if (with) {
        mask |= (int)words_to_choice(w, with, attributes);
    }
    if (cur) {
        attr.cur_qp_state = (enum ibv_qp_state)words_to_choice(w, cur, qp_states);
        mask |= IBV_QP_CUR_STATE;
    }
    err = state && attr.qp_state == IBV_QPS_SQD ? qp_drain(p, qp, &attr, mask, error)
                                                : ibv_modify_qp(qp->qp, &attr, mask);
    play_result_is(p, error, err);
    if (!err) {
        qp->attr = attr;
    }
}

/* modify NAME limit=N [errno=E]: the limit of a shared receive queue */
static void play_modify_srq(struct play *p, struct play_srq *srq)
{
    struct ibv_srq_attr attr = {.srq_limit = (uint32_t)words_number(&p->words, "limit", 0)};

    play_result(p, ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT));
}

void play_modify(struct play *p)
{
    const char *name = words_need(&p->words, "the queue pair's name");
    struct play_srq *srq = play_srq_if(p, name);

    if (srq) {
        play_modify_srq(p, play_srq(p, name));
    } else {
        qp_modify(p, play_live_qp(p, name));
    }
}

/* query NAME [state=S] [draining=N] [rq_psn=N] [sq_psn=N] ...: PSNs count from the first one */
void play_query(struct play *p)
{
    struct words *w = &p->words;
    struct play_qp *qp = play_live_qp(p, words_need(w, "the queue pair's name"));
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    unsigned long state;
    uint64_t psn;

    play_settle(p);
    if (ibv_query_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, &init)) {
        words_fail(w, "%s", g_strerror(errno));
    }
    state = words_choice(w, "state", qp_states, attr.qp_state);
    if (attr.qp_state != state) {
        words_fail(w, "it is in %s", words_name_of(qp_states, attr.qp_state));
    }
    if (attr.sq_draining != words_number(w, "draining", attr.sq_draining)) {
        words_fail(w, "its sq_draining is %u", attr.sq_draining);
    }
    psn = (words_number(w, "rq_psn", attr.rq_psn - p->rq_psn) + p->rq_psn) & 0xffffff;
    if (attr.rq_psn != psn) {
        words_fail(w, "its rq_psn is 0x%x", attr.rq_psn);
    }
    psn = (words_number(w, "sq_psn", attr.sq_psn - p->sq_psn) + p->sq_psn) & 0xffffff;
    if (attr.sq_psn != psn) {
        words_fail(w, "its sq_psn is 0x%x", attr.sq_psn);
    }
}

static int qp_free(struct play_qp *qp)
{
    int err = qp->qp ? ibv_destroy_qp(qp->qp) : 0;

    if (!err) {
        qp->qp = NULL;
    }
    return err;
}

/* destroy NAME [errno=E]: a queue pair, or a shared receive queue */
void play_destroy(struct play *p)
{
    const char *name = words_need(&p->words, "the name");
    struct play_srq *srq = play_srq_if(p, name) ? play_srq(p, name) : NULL;
    int err = srq ? ibv_destroy_srq(srq->srq) : qp_free(play_live_qp(p, name));

    if (srq && !err) {
        srq->srq = NULL;
    }
    play_result(p, err);
}

/* resize NAME CQES [errno=E]: its completion queue */
void play_resize(struct play *p)
{
    struct words *w = &p->words;
    const struct play_qp *qp = play_qp(p, words_need(w, "the queue pair's name"));

    play_result(p, ibv_resize_cq(qp->cq, (int)words_to_number(w, words_need(w, "how many"))));
}

void play_free_qps(struct play *p)
{
    for (unsigned i = 0; i < p->qps->len; i++) {
        struct play_qp *qp = g_ptr_array_index(p->qps, i);
        int err = qp->ah ? ibv_destroy_ah(qp->ah) : 0;

        err = err ? err : qp_free(qp);
        if (err) {
            words_fail(&p->words, "'%s' does not go at the end: %s", qp->name, g_strerror(err));
        }
    }
    for (unsigned i = 0; i < p->qps->len; i++) {
        struct play_qp *qp = g_ptr_array_index(p->qps, i);
        int err = qp->shares_cq ? 0 : ibv_destroy_cq(qp->cq);

        err = err || qp->shares_cq ? err : ibv_destroy_comp_channel(qp->channel);
        if (err) {
            words_fail(&p->words, "the completion queue of '%s' does not go at the end: %s",
                       qp->name, g_strerror(err));
        }
    }
}
