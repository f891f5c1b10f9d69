/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: some hosts send to one host whose shared receive queue matches tags
 * (tm_receiver.c). They send small messages with their data, announce other messages, whose data
 * the device fetches and then acknowledges (FIN), and send some messages without a tag. Now and
 * then a connection ends, because a QP is moved to the error state or a request must fail. Then
 * every receive that a message had taken must come back.
 */
#include <errno.h>
#include <inttypes.h>
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/tm.h"

#define FINS     (2 * TM_SLOTS)
#define MARK_WR  (1ull << 61) /* flag in wr_id: the last request of a queue in error */
#define WRITE_WR (1ull << 60)

/* -- messages ---------------------------------------------------------------------------------- */

static void tm_send(struct tagged *tm, struct tm_peer *peer, enum tm_what what)
{
    struct chance *chance = &tm->job->chance;
    uint64_t n = peer->sent++;
    struct tm_message *msg = tm_message(peer, n);
    struct ibv_sge sge = {.lkey = peer->span.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = n,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    *msg = (struct tm_message){.match = {.tag = tm_draw_tag(chance)}, .what = what};
    msg->len = (uint32_t)chance_below(
        chance, (chance_one_in(chance, 2) ? tm->size : MIN(tm->size, 64)) + 1);
    msg->len += what == TM_BAD_REQUEST && !msg->len;
    tm_message_write(msg, tm_bytes(tm, peer, msg), (uint32_t)n, peer->span.mr->rkey, chance);
    sge.addr = (uintptr_t)tm_bytes(tm, peer, msg);
    sge.length = msg->sent_len;
    sge.lkey ^= what == TM_BAD_LKEY ? 0x5500 : 0;
    sim_must(tm->job, ibv_post_send(peer->qp, &wr, &bad));
}

static bool tm_may_send(const struct tm_peer *peer)
{
    return peer->state == TM_RUNS && !peer->doomed && !peer->broken && peer->sent < peer->limit &&
           peer->sent - peer->first < TM_SLOTS;
}

static void tm_send_some(struct tagged *tm, struct tm_peer *peer)
{
    for (unsigned n = (unsigned)chance_below(&tm->job->chance, 4); n && tm_may_send(peer); n--) {
        tm_send(tm, peer,
                chance_one_in(&tm->job->chance, 8)
                    ? TM_NO_TAG
                    : (enum tm_what)chance_below(&tm->job->chance, 2));
    }
}

/* Retires the messages that have ended: nothing more comes of them. */
static void tm_retire(struct tagged *tm, struct tm_peer *peer)
{
    while (peer->first < peer->sent) {
        struct tm_message *msg = tm_message(peer, peer->first);
        bool fetched = msg->what == TM_REQUEST && msg->by_device;

        if (!msg->done || !msg->sent || (fetched && !msg->fin)) {
            return;
        }
        peer->first++;
        tm->job->sim->tally.messages++;
        tm->job->sim->tally.bytes += msg->len;
    }
}

/* -- a sender's completions -------------------------------------------------------------------- */

static void tm_on_fin(struct tagged *tm, struct tm_peer *peer, const struct ibv_wc *wc)
{
    uint8_t *slot = intake_take(&peer->fins, wc);
    struct tm_header *tmh = (void *)slot;
    uint32_t number = GUINT32_FROM_BE(tmh->app_ctx);
    struct tm_message *msg = tm_message(peer, number);

    if (wc->status) {
        sim_check(tm->job, wc->status == IBV_WC_WR_FLUSH_ERR && tm_may_fail(peer),
                  "a receive fails: %s", ibv_wc_status_str(wc->status));
        peer->broken = true;
        intake_forget(&peer->fins, slot);
        return;
    }
    sim_check(tm->job,
              wc->byte_len == sizeof(*tmh) + sizeof(struct tm_rendezvous) &&
                  tmh->opcode == TM_OP_FIN,
              "a FIN of %u bytes, of operation %u", wc->byte_len, tmh->opcode);
    sim_check(tm->job,
              number >= peer->first && number < peer->sent && msg->what == TM_REQUEST &&
                  !msg->fin && (msg->by_device || !msg->arrived),
              "FIN of message %u, which is not fetched", number);
    tmh->opcode = TM_OP_REQUEST;
    msg->fin = true;
    intake_check(&peer->fins, slot, 0, tm_bytes(tm, peer, msg), wc->byte_len);
}

static void tm_on_sent(struct tagged *tm, struct tm_peer *peer, const struct ibv_wc *wc)
{
    struct tm_message *msg = tm_message(peer, wc->wr_id);
    bool is_bad = msg->what == TM_BAD_LKEY;

    sim_check(tm->job,
              wc->wr_id < peer->sent &&
                  (wc->wr_id == peer->first || tm_message(peer, wc->wr_id - 1)->sent) && !msg->sent,
              "message %" PRIu64 " completes, whose turn it is not", wc->wr_id);
    sim_check(tm->job,
              wc->status == IBV_WC_SUCCESS
                  ? !is_bad && !peer->failed
                  : tm_may_fail(peer) && (wc->status == IBV_WC_WR_FLUSH_ERR ||
                                          (is_bad && wc->status == IBV_WC_LOC_PROT_ERR)),
              "message %" PRIu64 ": %s", wc->wr_id, ibv_wc_status_str(wc->status));
    msg->sent = true;
    if (wc->status) {
        tm->job->sim->tally.errors += !peer->failed;
        peer->broken = peer->failed = true;
    }
}

static void tm_on_mark(struct tagged *tm, struct tm_peer *peer, const struct ibv_wc *wc)
{
    sim_check(tm->job, wc->status == IBV_WC_WR_FLUSH_ERR && peer->marks,
              "a SEND of a queue in error: %s", ibv_wc_status_str(wc->status));
    peer->marks--;
}

static bool tm_poll_peer(struct tagged *tm, struct tm_peer *peer)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(peer->cq, 1, &wc) > 0) {
        did = true;
        if (wc.wr_id & INTAKE_WR) {
            tm_on_fin(tm, peer, &wc);
        } else if (wc.wr_id & MARK_WR) {
            tm_on_mark(tm, peer, &wc);
        } else {
            tm_on_sent(tm, peer, &wc);
        }
    }
    while (ibv_poll_cq(peer->at_cq, 1, &wc) > 0) {
        did = true;
        if (wc.wr_id & MARK_WR) {
            tm_on_mark(tm, peer, &wc);
            continue;
        }
        sim_check(tm->job, !wc.status || (wc.status == IBV_WC_WR_FLUSH_ERR && tm_may_fail(peer)),
                  "a WRITE fails: %s", ibv_wc_status_str(wc.status));
        peer->broken |= wc.status;
        peer->writes--;
    }
    return did;
}

/* -- connections ------------------------------------------------------------------------------- */

static void tm_connect(struct tagged *tm, struct tm_peer *peer)
{
    struct sim_host *const hosts[2] = {peer->host, tm->job->host[0]};
    struct ibv_qp *const qps[2] = {peer->qp, peer->at};

    connect_rc_patiently(tm->job, hosts, qps);
    peer->state = TM_RUNS;
    peer->doomed = peer->broken = peer->failed = false;
    intake_post(&peer->fins, FINS);
    intake_post(&peer->fins, FINS);
}

static void tm_mark(struct tagged *tm, struct tm_peer *peer, struct ibv_qp *qp)
{
    struct ibv_send_wr wr = {.wr_id = MARK_WR,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    sim_must(tm->job, ibv_post_send(qp, &wr, &bad));
    peer->marks++;
}

static void tm_begin_end(struct tagged *tm, struct tm_peer *peer)
{
    bool back = chance_one_in(&tm->job->chance, 2);

    peer->state = TM_DRAINS;
    connect_move(tm->job, back ? peer->at : peer->qp, IBV_QPS_ERR);
    connect_move(tm->job, back ? peer->qp : peer->at, IBV_QPS_ERR);
    tm_mark(tm, peer, peer->qp);
    tm_mark(tm, peer, peer->at);
    sim_note(tm->job, "moves QP 0x%x and 0x%x to the error state", peer->qp->qp_num,
             peer->at->qp_num);
}

/* Messages that have not arrived will not arrive; data that was not fetched will not be fetched. */
static void tm_settle(struct tagged *tm, struct tm_peer *peer)
{
    for (unsigned i = 0; i < TM_TAGS; i++) {
        const struct tm_receive *receive = &tm->receives[i];

        sim_check(tm->job, receive->peer != peer || !receive->awaits,
                  "receive %u has a message that does not come, and nobody says so", i);
    }
    for (uint64_t n = peer->first; n < peer->sent; n++) {
        struct tm_message *msg = tm_message(peer, n);

        sim_check(tm->job, msg->sent, "message %" PRIu64 " was not flushed", n);
        msg->done |= !msg->arrived;
        msg->fin = true;
    }
    for (unsigned i = 0; i < TM_TAGS; i++) {
        if (tm->receives[i].peer == peer) {
            tm->receives[i].peer = NULL;
        }
    }
    peer->arrived = peer->sent;
    peer->limit = MAX(peer->limit, peer->sent);
    tm_retire(tm, peer);
}

static void tm_maybe_doom(struct tagged *tm, struct tm_peer *peer)
{
    struct chance *chance = &tm->job->chance;

    if (!chance_happens(chance, (unsigned)tm->job->sim->options.errors) || !tm_may_send(peer)) {
        return;
    }
    switch (chance_below(chance, 3)) {
    case 0:
        tm_begin_end(tm, peer);
        break;
    default:
        peer->doomed = true;
        tm_send(tm, peer, chance_one_in(chance, 2) ? TM_BAD_LKEY : TM_BAD_REQUEST);
    }
}

/* The receiver's QP also sends, in addition to what the device sends on it. */
static void tm_write(struct tagged *tm, struct tm_peer *peer)
{
    struct ibv_sge sge = {(uintptr_t)tm->here.at, 8, tm->here.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = WRITE_WR,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr = {.rdma = {.remote_addr = (uintptr_t)peer->scratch,
                                             .rkey = peer->span.mr->rkey}}},
                       *bad;

    if (peer->writes < 4 && peer->written < peer->sent && !peer->broken &&
        chance_one_in(&tm->job->chance, 4)) {
        peer->writes++;
        peer->written++;
        sim_must(tm->job, ibv_post_send(peer->at, &wr, &bad));
    }
}

static bool tm_step_peer(struct tagged *tm, struct tm_peer *peer)
{
    bool did = tm_poll_peer(tm, peer);

    tm_retire(tm, peer);
    switch (peer->state) {
    case TM_RUNS:
        if (peer->broken) {
            tm_begin_end(tm, peer);
            return true;
        }
        intake_post(&peer->fins, FINS);
        tm_send_some(tm, peer);
        tm_write(tm, peer);
        tm_maybe_doom(tm, peer);
        return did;
    case TM_DRAINS:
        if (!peer->marks && !peer->writes && !peer->fins.posted) {
            peer->state = TM_IS_QUIET;
            peer->quiet_ns = sim_quiet_ns(tm->job->sim);
        }
        return did;
    default:
        if (tm->job->sim->world->now_ns < peer->quiet_ns) {
            return did;
        }
        tm_settle(tm, peer);
        connect_move(tm->job, peer->qp, IBV_QPS_RESET);
        connect_move(tm->job, peer->at, IBV_QPS_RESET);
        tm_connect(tm, peer);
        return true;
    }
}

/* -- the job ----------------------------------------------------------------------------------- */

static struct ibv_qp *tm_make_qp(struct tagged *tm, struct tm_peer *peer, bool receives)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = receives ? peer->at_cq : peer->cq,
        .recv_cq = receives ? ibv_cq_ex_to_cq(tm->cq) : peer->cq,
        .srq = receives ? tm->srq : NULL,
        .cap = {.max_send_wr = TM_SLOTS + 1,
                .max_recv_wr = receives ? 0 : FINS,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(receives ? tm->job->host[0]->pd : peer->host->pd, &attr);

    sim_check(tm->job, qp, "no QP: errno %d", errno);
    return qp;
}

static void tm_make_peer(struct tagged *tm, struct tm_peer *peer, struct sim_host *host)
{
    struct job *job = tm->job;

    peer->host = host;
    peer->limit = job->sim->options.ops;
    peer->cq = ibv_create_cq(host->ctx, TM_SLOTS + 1 + FINS, NULL, NULL, 0);
    peer->at_cq = ibv_create_cq(job->host[0]->ctx, TM_SLOTS + 1, NULL, NULL, 0);
    sim_check(job, peer->cq && peer->at_cq, "no CQ: errno %d", errno);
    peer->span = sim_span(job, host, (size_t)(TM_SLOTS + 1) * tm->stride);
    peer->scratch = peer->span.at + (size_t)TM_SLOTS * tm->stride;
    intake_init(&peer->fins, job, host, FINS, TM_HEADERS);
    peer->qp = peer->fins.qp = tm_make_qp(tm, peer, false);
    peer->at = tm_make_qp(tm, peer, true);
    tm_connect(tm, peer);
}

static void kind_tm_make(struct job *job)
{
    struct tagged *tm = job->state;

    tm->job = job;
    tm->size = (uint32_t)job->sim->options.size;
    tm->stride = (tm->size + TM_HEADERS + 63) & ~63u;
    tm_receiver_make(tm);
    for (unsigned i = 0; i < TM_PEERS; i++) {
        tm_make_peer(tm, &tm->peer[i], job->host[1 + i]);
    }
}

/* Returns whether all messages and their data have come. */
static bool tm_has_all(const struct tagged *tm)
{
    for (unsigned i = 0; i < TM_PEERS; i++) {
        const struct tm_peer *peer = &tm->peer[i];

        if (peer->state != TM_RUNS || peer->broken || peer->writes || peer->sent < peer->limit ||
            peer->first < peer->sent) {
            return false;
        }
    }
    return true;
}

static bool tm_is_sending(const struct tagged *tm)
{
    for (unsigned i = 0; i < TM_PEERS; i++) {
        if (tm->peer[i].state != TM_RUNS || tm->peer[i].sent < tm->peer[i].limit) {
            return true;
        }
    }
    return false;
}

static bool kind_tm_step(struct job *job)
{
    struct tagged *tm = job->state;
    bool did = tm_receiver_poll(tm);

    if (chance_below(&job->chance, 4)) {
        did |= intake_post(&tm->in, (unsigned)chance_from(&job->chance, 1, INTAKE_SLOTS));
    }
    tm->ends = !tm_is_sending(tm);
    for (unsigned i = 0; i < TM_PEERS; i++) {
        did |= tm_step_peer(tm, &tm->peer[i]);
    }
    tm_receiver_maybe_sync(tm);
    if (tm_has_all(tm) && tm->has_probed) {
        tm_receiver_cancel_all(tm);
    } else if (tm_has_all(tm)) {
        tm_receiver_probe(tm);
    } else {
        for (unsigned n = (unsigned)chance_below(&job->chance, 6); n; n--) {
            tm_receiver_post(tm);
        }
    }
    return did;
}

static bool kind_tm_is_done(const struct job *job)
{
    const struct tagged *tm = job->state;
    bool is_done = tm_has_all(tm) && tm->has_probed;

    for (unsigned i = 0; i < TM_TAGS; i++) {
        is_done &= !tm->receives[i].completions;
    }
    return is_done;
}

static void kind_tm_check(struct job *job)
{
    tm_receiver_check(job->state);
}

static void kind_tm_free(struct job *job)
{
    struct tagged *tm = job->state;

    for (unsigned i = 0; i < TM_PEERS; i++) {
        struct tm_peer *peer = &tm->peer[i];

        sim_must(job, ibv_destroy_qp(peer->qp));
        sim_must(job, ibv_destroy_qp(peer->at));
        sim_must(job, ibv_destroy_cq(peer->cq));
        sim_must(job, ibv_destroy_cq(peer->at_cq));
        intake_free(&peer->fins);
        sim_span_free(job, &peer->span);
    }
    tm_receiver_free(tm);
}

const struct kind kind_tm = {
    .name = "tm",
    .about = "messages with tags, matched by the device in MPI's order, and fetched",
    .usual = true,
    .hosts = 1 + TM_PEERS,
    .size = sizeof(struct tagged),
    .make = kind_tm_make,
    .step = kind_tm_step,
    .is_done = kind_tm_is_done,
    .check = kind_tm_check,
    .free = kind_tm_free,
};
