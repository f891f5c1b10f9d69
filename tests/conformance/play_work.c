/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays the steps about work requests, completions and events. */
#include "tests/conformance/play.h"
#include <errno.h>
#include <string.h>
#include <endian.h>

#define SGES 8
/* work requests in addition to those of enum ibv_wr_opcode */
#define UMR    0x1000
#define MEMCPY 0x1001
#define CROSS  0x2000 /* and enum host_cross_op */

static const struct words_name send_opcodes[] = {
    {"SEND", IBV_WR_SEND},
    {"SEND_IMM", IBV_WR_SEND_WITH_IMM},
    {"SEND_INV", IBV_WR_SEND_WITH_INV},
    {"WRITE", IBV_WR_RDMA_WRITE},
    {"WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM},
    {"READ", IBV_WR_RDMA_READ},
    {"CAS", IBV_WR_ATOMIC_CMP_AND_SWP},
    {"FAA", IBV_WR_ATOMIC_FETCH_AND_ADD},
    {"LOCAL_INV", IBV_WR_LOCAL_INV},
    {"BIND", IBV_WR_BIND_MW},
    {"UMR", UMR},
    {"MEMCPY", MEMCPY},
    {"WAIT", CROSS | HOST_WAIT},
    {"SEND_ENABLE", CROSS | HOST_SEND_ENABLE},
    {"RECV_ENABLE", CROSS | HOST_RECV_ENABLE},
    {NULL, 0},
};

/* The remaining words are ranges of regions; lkey=K gives another key for all of them. */
static int play_sges(struct play *p, struct ibv_sge sge[SGES])
{
    const char *lkey = words_value(&p->words, "lkey"), *word;
    int num = 0;

    for (; (word = words_next(&p->words)); num++) {
        struct play_range range = play_range(p, word);

        if (num == SGES) {
            words_mistake(&p->words, "these are too many pieces: %d are the most", SGES);
        }
        sge[num] = (struct ibv_sge){
            .addr = range.mr->addr + range.offset,
            .length = (uint32_t)range.len,
            .lkey = lkey ? play_key(p, lkey, false) : play_key(p, range.mr->name, false),
        };
    }
    return num;
}

static uint64_t play_next_id(struct play *p, struct play_qp *qp)
{
    uint64_t id = words_number(&p->words, "id", qp->next_id);

    qp->next_id = id + 1;
    return id;
}

/* recv NAME [RANGE ...] [id=N] [errno=E]: NAME is of a queue pair or a shared receive queue */
void play_recv(struct play *p)
{
    struct words *w = &p->words;
    struct ibv_sge sge[SGES];
    struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
    const char *srq = words_value(w, "srq"), *error = words_value(w, "errno");
    struct play_qp *qp = srq ? play_qp_meant(p) : play_live_qp(p, words_need(w, "the queue pair"));
    int err;

    wr.wr_id = play_next_id(p, qp);
    wr.num_sge = play_sges(p, sge);
    err = srq ? ibv_post_srq_recv(play_srq(p, srq)->srq, &wr, &bad)
              : ibv_post_recv(qp->qp, &wr, &bad);
    play_result_is(p, error, err);
}

/* BIND [RANGE] mw=W [rights=R] [again]: binds a window, which gets another key, or with "again"
 * keeps its key */
static void play_bind(struct play *p, struct ibv_send_wr *wr)
{
    struct play_mr *window = play_mr(p, words_need_value(&p->words, "mw", "the window"));
    unsigned rights = play_rights(p, "rights", IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    bool again = words_flag(&p->words, "again");
    const char *word = words_next(&p->words);
    struct play_range range;

    if (!window->mw) {
        words_mistake(&p->words, "'%s' is no window", window->name);
    }
    wr->bind_mw.mw = window->mw;
    window->rkey = again ? window->rkey : ibv_inc_rkey(window->rkey);
    wr->bind_mw.rkey = window->rkey;
    wr->bind_mw.bind_info.mw_access_flags = rights;
    if (word) {
        range = play_range(p, word);
        wr->bind_mw.bind_info.mr = range.mr->mr;
        wr->bind_mw.bind_info.addr = range.mr->addr + range.offset;
        wr->bind_mw.bind_info.length = range.len;
    }
}

/* mem, wire: the domains of a key with signatures that have them; copies, app=N, ref=N */
static struct host_sig play_sig(struct play *p)
{
    struct words *w = &p->words;

    return (struct host_sig){
        .mem = words_flag(w, "mem"),
        .wire = words_flag(w, "wire"),
        .copies = words_flag(w, "copies"),
        .app_tag = (uint16_t)words_number(w, "app", 0),
        .ref_tag = (uint32_t)words_number(w, "ref", 0),
    };
}

/* The length of a key as a list element counts it: the data, and those signatures that both domains
 * have (docs/adr/0026). A block has 512 bytes, and a signature 8. */
static size_t play_sig_len(const struct host_sig *sig, size_t pieces)
{
    return sig->mem && !sig->wire ? pieces - pieces / 520 * 8 : pieces;
}

/* MEMCPY FROM TO: a copy by the device, as long as the first range */
static void play_copy(struct play *p, struct play_qp *qp, const char *error)
{
    struct words *w = &p->words;
    struct ibv_sge sge[SGES];
    struct ibv_send_wr wr = {
        .sg_list = sge,
        .send_flags = words_flag(w, "unsignaled") ? 0 : IBV_SEND_SIGNALED,
    };

    if (!p->host->direct) {
        play_cannot(p, "copies need direct verbs", 0);
    }
    wr.wr_id = play_next_id(p, qp);
    wr.num_sge = play_sges(p, sge);
    if (wr.num_sge != 2) {
        words_mistake(w, "a copy has two ranges: from, and to");
    }
    play_result_is(p, error, p->host->direct->copy(qp->qp, &wr));
}

/* WAIT QP N, SEND_ENABLE QP N, RECV_ENABLE QP N: waits for the next N completions where that queue
 * pair completes, or starts the next N of its requests */
static void play_cross(struct play *p, struct play_qp *qp, enum host_cross_op op, const char *error)
{
    struct words *w = &p->words;
    struct ibv_send_wr wr = {.send_flags = words_flag(w, "unsignaled") ? 0 : IBV_SEND_SIGNALED};
    struct play_qp *other = play_live_qp(p, words_need(w, "the other queue pair's name"));
    uint32_t count = (uint32_t)words_to_number(w, words_need(w, "how many"));

    if (!p->host->direct) {
        play_cannot(p, "cross channel needs direct verbs", 0);
    }
    wr.wr_id = play_next_id(p, qp);
    play_result_is(p, error, p->host->direct->cross(qp->qp, &wr, op, other->qp, count));
}

/* UMR RANGE ... key=K [rights=R] [mem] [wire] [copies] [app=N] [ref=N]: from now on the key
 * consists of these pieces; its addresses begin with 0 */
static void play_umr(struct play *p, struct play_qp *qp, const char *error)
{
    struct words *w = &p->words;
    struct ibv_sge sge[SGES];
    struct ibv_send_wr wr = {
        .sg_list = sge,
        .send_flags = words_flag(w, "unsignaled") ? 0 : IBV_SEND_SIGNALED,
    };
    struct play_mr *mr = play_mr(p, words_need_value(w, "key", "the key that gets these pieces"));
    unsigned rights = play_rights(p, "rights",
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

    struct host_sig sig = play_sig(p);
    int err;

    if (!mr->key || !p->host->direct) {
        words_mistake(w, "'%s' is no key of several pieces", mr->name);
    }
    wr.wr_id = play_next_id(p, qp);
    wr.num_sge = play_sges(p, sge);
    mr->len = 0;
    for (int i = 0; i < wr.num_sge; i++) {
        mr->len += sge[i].length;
    }
    mr->len = mr->has_sig ? play_sig_len(&sig, mr->len) : mr->len;
    err = mr->has_sig ? p->host->direct->configure_sig(qp->qp, &wr, mr->key, rights, &sig)
                      : p->host->direct->configure(qp->qp, &wr, mr->key, rights);
    play_result_is(p, error, err);
}

/* The target of a DCI's request: the peer, with a target's number. */
static struct host_target play_target(struct play *p, const struct play_qp *qp)
{
    const char *stream = words_value(&p->words, "stream");

    return (struct host_target){
        .ah = qp->ah,
        .dctn = (uint32_t)words_number(&p->words, "dest", qp->peer_qpn),
        .key = words_number(&p->words, "key", 0),
        .stream = stream ? (int)words_to_number(&p->words, stream) : -1,
    };
}

/* send NAME OPCODE [RANGE ...] [va=A] [rkey=K] [imm=N] [inv=K] [cmp=N] [swap=N] [add=N] [fence]
 * [se] [inline] [unsignaled] [dest=QPN] [qkey=Q] [key=K] [stream=N] [id=N] [errno=E] */
void play_send(struct play *p)
{
    struct words *w = &p->words;
    struct play_qp *qp = play_live_qp(p, words_need(w, "the queue pair's name"));
    struct ibv_sge sge[SGES];
    struct ibv_send_wr wr = {.sg_list = sge}, *bad;
    const char *value, *error = words_value(w, "errno"), *srq = words_value(w, "srq");
    struct host_target target = {0};
    unsigned long opcode = words_to_choice(w, words_need(w, "the operation"), send_opcodes);
    bool atomic;
    int err;

    if (opcode == UMR) {
        play_umr(p, qp, error);
        return;
    }
    if (opcode == MEMCPY) {
        play_copy(p, qp, error);
        return;
    }
    if (opcode & CROSS) {
        play_cross(p, qp, (enum host_cross_op)(opcode & ~(unsigned long)CROSS), error);
        return;
    }
    wr.opcode = (enum ibv_wr_opcode)opcode;
    atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.send_flags = (words_flag(w, "fence") ? IBV_SEND_FENCE : 0) |
                    (words_flag(w, "se") ? IBV_SEND_SOLICITED : 0) |
                    (words_flag(w, "inline") ? IBV_SEND_INLINE : 0) |
                    (words_flag(w, "unsignaled") ? 0 : IBV_SEND_SIGNALED);
    if (qp->type == PLAY_DCI) {
        target = play_target(p, qp);
    }
    if (qp->type == IBV_QPT_UD) {
        wr.wr.ud.ah = qp->ah;
        wr.wr.ud.remote_qpn = (uint32_t)words_number(w, "dest", qp->peer_qpn);
        wr.wr.ud.remote_qkey = (uint32_t)words_number(w, "qkey", qp->attr.qkey);
    } else if (wr.opcode == IBV_WR_BIND_MW) {
        play_bind(p, &wr);
    } else if (atomic) {
        wr.wr.atomic.remote_addr = words_number(w, "va", 0);
        wr.wr.atomic.rkey = (uint32_t)words_number(w, "rkey", 0);
        wr.wr.atomic.compare_add = words_number(w, "cmp", 0) + words_number(w, "add", 0);
        wr.wr.atomic.swap = words_number(w, "swap", 0);
    } else {
        wr.wr.rdma.remote_addr = words_number(w, "va", 0);
        wr.wr.rdma.rkey = (uint32_t)words_number(w, "rkey", 0);
    }
    wr.qp_type.xrc.remote_srqn = srq ? (uint32_t)words_to_number(w, srq) : 0;
    wr.imm_data = htobe32((uint32_t)words_number(w, "imm", 0));
    value = wr.opcode == IBV_WR_BIND_MW ? NULL : words_value(w, "inv");
    if (value) {
        wr.invalidate_rkey = play_key(p, value, true);
    }
    wr.wr_id = play_next_id(p, qp);
    wr.num_sge = play_sges(p, sge);
    p->mark_ns = play_now(p);
    err = qp->type == PLAY_DCI ? p->host->direct->post(qp->qp, &wr, &target)
                               : ibv_post_send(qp->qp, &wr, &bad);
    if (!err && wr.opcode == IBV_WR_BIND_MW) {
        wr.bind_mw.mw->rkey = wr.bind_mw.rkey; /* the next bind names the window by its last key */
    }
    play_result_is(p, error, err);
}

/* -- completions ------------------------------------------------------------------------------- */

#define WC_ERROR 0x10000 /* a status, not an opcode */

static const struct words_name wc_names[] = {
    {"SEND", IBV_WC_SEND},
    {"WRITE", IBV_WC_RDMA_WRITE},
    {"READ", IBV_WC_RDMA_READ},
    {"CAS", IBV_WC_COMP_SWAP},
    {"FAA", IBV_WC_FETCH_ADD},
    {"LOCAL_INV", IBV_WC_LOCAL_INV},
    {"BIND", IBV_WC_BIND_MW},
    {"UMR", IBV_WC_DRIVER1},
    {"MEMCPY", IBV_WC_DRIVER3},
    {"RECV", IBV_WC_RECV},
    {"RECV_IMM", IBV_WC_RECV_RDMA_WITH_IMM},
    {"LOC_LEN_ERR", WC_ERROR | IBV_WC_LOC_LEN_ERR},
    {"LOC_QP_OP_ERR", WC_ERROR | IBV_WC_LOC_QP_OP_ERR},
    {"LOC_PROT_ERR", WC_ERROR | IBV_WC_LOC_PROT_ERR},
    {"WR_FLUSH_ERR", WC_ERROR | IBV_WC_WR_FLUSH_ERR},
    {"MW_BIND_ERR", WC_ERROR | IBV_WC_MW_BIND_ERR},
    {"BAD_RESP_ERR", WC_ERROR | IBV_WC_BAD_RESP_ERR},
    {"LOC_ACCESS_ERR", WC_ERROR | IBV_WC_LOC_ACCESS_ERR},
    {"REM_INV_REQ_ERR", WC_ERROR | IBV_WC_REM_INV_REQ_ERR},
    {"REM_ACCESS_ERR", WC_ERROR | IBV_WC_REM_ACCESS_ERR},
    {"REM_OP_ERR", WC_ERROR | IBV_WC_REM_OP_ERR},
    {"RETRY_EXC_ERR", WC_ERROR | IBV_WC_RETRY_EXC_ERR},
    {"RNR_RETRY_EXC_ERR", WC_ERROR | IBV_WC_RNR_RETRY_EXC_ERR},
    {"REM_ABORT_ERR", WC_ERROR | IBV_WC_REM_ABORT_ERR},
    {NULL, 0},
};

static unsigned long wc_value(const struct ibv_wc *wc)
{
    return wc->status ? WC_ERROR | (unsigned long)wc->status : (unsigned long)wc->opcode;
}

static const char *wc_text(const struct ibv_wc *wc)
{
    return words_name_of(wc_names, wc_value(wc));
}

static void wc_check_number(struct play *p, const char *key, uint64_t is)
{
    uint64_t wanted = words_number(&p->words, key, is);

    if (wanted != is) {
        words_fail(&p->words, "%s is 0x%" G_GINT64_MODIFIER "x", key, is);
    }
}

static void wc_check(struct play *p, const struct play_qp *qp, const struct ibv_wc *wc)
{
    wc_check_number(p, "id", wc->wr_id);
    if (qp && wc->qp_num != qp->qpn) {
        words_fail(&p->words, "it is of queue pair 0x%x", wc->qp_num);
    }
    if (wc->status) {
        return;
    }
    wc_check_number(p, "len", wc->byte_len);
    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        wc_check_number(p, "imm", be32toh(wc->imm_data));
    } else if (wc->wc_flags & IBV_WC_WITH_INV) {
        const char *key = words_value(&p->words, "inv");

        if (!key || play_key(p, key, true) != wc->invalidated_rkey) {
            words_fail(&p->words, "key 0x%x was invalidated", wc->invalidated_rkey);
        }
    }
    wc_check_number(p, "src", wc->src_qp);
    /* the flag has no meaning for a connection */
    if (qp && qp->type == IBV_QPT_UD &&
        words_flag(&p->words, "grh") != !!(wc->wc_flags & IBV_WC_GRH)) {
        words_fail(&p->words, "say grh if there is a network header, and only then");
    }
}

static bool play_poll(struct play *p, struct ibv_cq *cq, struct ibv_wc *wc)
{
    uint64_t limit = play_now(p) + p->clock->patience_ns;

    while (!ibv_poll_cq(cq, 1, wc)) {
        if (!p->clock->step(p->clock, limit)) {
            return false;
        }
    }
    return true;
}

/* wc NAME none, wc NAME OPCODE [len=N] [imm=N] [inv=K] [src=QPN] [grh] [id=N], wc NAME ERROR [id=N]
 */
void play_wc(struct play *p)
{
    struct words *w = &p->words;
    const char *name = words_need(w, "the name of the queue pair, or of XRC's queue");
    const struct play_srq *srq = play_srq_if(p, name);
    struct play_qp *qp = srq ? NULL : play_qp(p, name);
    struct ibv_cq *cq = srq ? srq->cq : qp->cq;
    const char *word = words_need(w, "what completes");
    unsigned long wanted;
    struct ibv_wc wc;

    if (!strcmp(word, "none")) {
        play_settle(p);
        if (ibv_poll_cq(cq, 1, &wc)) {
            words_fail(w, "there is %s of id %u", wc_text(&wc), (unsigned)wc.wr_id);
        }
        return;
    }
    wanted = words_to_choice(w, word, wc_names);
    if (!play_poll(p, cq, &wc)) {
        words_fail(w, "nothing completes");
    }
    if (wc_value(&wc) != wanted) {
        words_fail(w, "it is %s of id %u", wc_text(&wc), (unsigned)wc.wr_id);
    }
    wc_check(p, qp, &wc);
    play_happened(p, play_now(p));
}

/* -- notices of completions -----------------------------------------------------------------------
 */

/* arm NAME [solicited]: requests a notice of the next completion */
void play_arm(struct play *p)
{
    struct play_qp *qp = play_qp(p, words_need(&p->words, "the queue pair's name"));

    play_result(p, ibv_req_notify_cq(qp->cq, words_flag(&p->words, "solicited")));
}

/* notice NAME [none] */
void play_notice(struct play *p)
{
    struct play_qp *qp = play_qp(p, words_need(&p->words, "the queue pair's name"));
    bool none = words_flag(&p->words, "none");
    uint64_t limit = play_now(p) + p->clock->patience_ns;
    struct ibv_cq *cq;
    void *context;

    play_settle(p);
    while (ibv_get_cq_event(qp->channel, &cq, &context)) {
        if (none) {
            return;
        }
        if (!p->clock->is_real || !p->clock->step(p->clock, limit)) {
            words_fail(&p->words, "there is none");
        }
    }
    ibv_ack_cq_events(cq, 1);
    if (none) {
        words_fail(&p->words, "there is one");
    }
}

/* -- events ------------------------------------------------------------------------------------ */

static const struct words_name events[] = {
    {"CQ_ERR", IBV_EVENT_CQ_ERR},
    {"QP_FATAL", IBV_EVENT_QP_FATAL},
    {"QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR},
    {"QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR},
    {"COMM_EST", IBV_EVENT_COMM_EST},
    {"SQ_DRAINED", IBV_EVENT_SQ_DRAINED},
    {"PATH_MIG", IBV_EVENT_PATH_MIG},
    {"SRQ_ERR", IBV_EVENT_SRQ_ERR},
    {"SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED},
    {"QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED},
    {NULL, 0},
};

/* event NAME, event none */
void play_event(struct play *p)
{
    const char *word = words_need(&p->words, "the event's name");
    /* some devices have no such event: then this whole wait is in vain */
    uint64_t limit = play_now(p) + p->clock->patience_ns / 5;
    struct ibv_async_event event;
    unsigned long wanted;

    play_settle(p);
    if (!strcmp(word, "none")) {
        if (!ibv_get_async_event(p->host->ctx, &event)) {
            words_fail(&p->words, "there is %s", words_name_of(events, event.event_type));
        }
        return;
    }
    wanted = words_to_choice(&p->words, word, events);
    while (ibv_get_async_event(p->host->ctx, &event)) {
        /* virtual time has settled; real time may need longer */
        if (!p->clock->is_real || !p->clock->step(p->clock, limit)) {
            words_fail(&p->words, "there is none");
        }
    }
    ibv_ack_async_event(&event);
    if (event.event_type != wanted) {
        words_fail(&p->words, "it is %s", words_name_of(events, event.event_type));
    }
}

void play_end_work(struct play *p)
{
    struct ibv_async_event event;
    struct ibv_wc wc;

    for (unsigned i = 0; i < p->qps->len; i++) {
        struct play_qp *qp = g_ptr_array_index(p->qps, i);

        if (ibv_poll_cq(qp->cq, 1, &wc)) {
            words_fail(&p->words, "at the end there is a completion of '%s': %s of id %u", qp->name,
                       wc_text(&wc), (unsigned)wc.wr_id);
        }
    }
    if (!ibv_get_async_event(p->host->ctx, &event)) {
        words_fail(&p->words, "at the end there is an event: %s",
                   words_name_of(events, event.event_type));
    }
}
