/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: some hosts send to one whose shared receive queue matches tags, and software there
 * that does as an MPI does. It posts receives with a tag and a mask, cancels some, and matches by
 * itself what the device did not. What the device says is held against MPI's rule (matcher.h): it
 * must have given each message the receive that the rule gives it.
 *
 * Senders send small messages with their data, announce others, whose data the device fetches and
 * then says so (FIN), and some without a tag. Now and then a connection ends, by a QP that is moved
 * to the error state or by a request that must fail: then no receive stays behind that a message
 * had taken.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/intake.h"
#include "tests/sim/fabric/tm_message.h"

#define PEERS    2u
#define SLOTS    16u /* messages of a sender that are not at their end */
#define TAGS     16u
#define OPS      64u /* list operations that are outstanding */
#define FINS     (2 * SLOTS)
#define BACKLOG  8u /* unexpected messages, from which on software looks for receives for them */
#define TAG_WR   (1ull << 62) /* in wr_id: a receive with a tag; the rest is its number */
#define MARK_WR  (1ull << 61) /* the last one of a queue in error */
#define WRITE_WR (1ull << 60)

enum tm_state {
    TM_RUNS,
    TM_DRAINS,
    TM_IS_QUIET,
};

/* A sender and its connection. */
struct tm_peer {
    struct sim_host *host;
    struct ibv_qp *qp, *at; /* its own; the receiver's */
    struct ibv_cq *cq, *at_cq;
    struct span span; /* of its messages */
    struct intake fins;
    uint8_t *scratch; /* that the receiver writes to */
    struct tm_message messages[SLOTS];
    uint64_t sent, first, arrived; /* numbers; first: that is not at its end */
    uint64_t limit;
    uint64_t written; /* by the receiver, no more than were sent */
    unsigned writes;  /* that are outstanding */
    enum tm_state state;
    bool doomed, broken;
    bool failed;    /* a SEND has: those behind it are flushed */
    unsigned marks; /* that are to come */
    uint64_t quiet_ns;
};

struct tm_receive {
    struct matcher_receive match; /* first */
    uint32_t handle;
    unsigned completions; /* that are to come before it is free */
    bool cancelled, by_software;
    bool awaits;          /* the data of its message */
    struct tm_peer *peer; /* of the message that it got, or NULL */
    struct tm_message *message;
};

struct tm_op {
    enum ibv_ops_wr_opcode opcode;
    bool signaled;
    bool knows_all; /* the program knows of all messages that there were */
    struct tm_receive *receive;
};

struct tagged {
    struct job *job;
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
    struct intake in; /* for what nobody expects */
    struct span here; /* of the receives with tags */
    uint32_t size, stride;
    struct tm_peer peer[PEERS];
    struct tm_receive receives[TAGS];
    struct tm_op ops[OPS];
    uint64_t ops_posted, ops_done;
    struct matcher matcher;
    uint32_t unexpected; /* count */
    bool wants_sync, ends, has_probed;
};

/* -- messages ---------------------------------------------------------------------------------- */

static struct tm_message *tm_message(struct tm_peer *peer, uint64_t n)
{
    return &peer->messages[n % SLOTS];
}

static uint8_t *tm_bytes(const struct tagged *tm, const struct tm_peer *peer,
                         const struct tm_message *msg)
{
    return peer->span.at + (size_t)(msg - peer->messages) * tm->stride;
}

static uint8_t *tm_data(const struct tagged *tm, const struct tm_peer *peer,
                        const struct tm_message *msg)
{
    return tm_message_data(msg, tm_bytes(tm, peer, msg));
}

static uint64_t tm_draw_tag(struct chance *chance)
{
    return chance_below(chance, 4) << 8 | chance_below(chance, 4);
}

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
           peer->sent - peer->first < SLOTS;
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

/* Nothing more is to come of those that are at their end. */
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

/* -- list operations --------------------------------------------------------------------------- */

static bool tm_has_room_for_ops(const struct tagged *tm)
{
    return tm->ops_posted - tm->ops_done < OPS - 2 * TAGS;
}

/* No message is on its way, or will be. */
static bool tm_knows_all(const struct tagged *tm)
{
    for (unsigned i = 0; i < PEERS; i++) {
        const struct tm_peer *peer = &tm->peer[i];

        if (peer->state != TM_RUNS || peer->broken || peer->sent < peer->limit ||
            peer->arrived < peer->sent) {
            return false;
        }
    }
    return true;
}

static void tm_post_op(struct tagged *tm, struct ibv_ops_wr *wr, struct tm_receive *receive)
{
    struct ibv_ops_wr *bad;

    wr->wr_id = tm->ops_posted;
    tm->ops[tm->ops_posted++ % OPS] = (struct tm_op){
        wr->opcode, wr->flags & IBV_OPS_SIGNALED,
        wr->opcode == IBV_WR_TAG_ADD && wr->flags & IBV_OPS_TM_SYNC && tm_knows_all(tm), receive};
    wr->tm.unexpected_cnt = tm->unexpected;
    sim_must(tm->job, ibv_post_srq_ops(tm->srq, wr, &bad));
}

static void tm_sync(struct tagged *tm)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC};

    tm->wants_sync = false;
    tm_post_op(tm, &wr, NULL);
}

static void tm_cancel(struct tagged *tm, struct tm_receive *receive)
{
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_DEL,
                            .flags = IBV_OPS_SIGNALED |
                                     (chance_one_in(&tm->job->chance, 2) ? IBV_OPS_TM_SYNC : 0),
                            .tm = {.handle = receive->handle}};

    if (!receive->cancelled) {
        receive->cancelled = true;
        receive->completions++;
        tm_post_op(tm, &wr, receive);
    }
}

static uint8_t *tm_buffer(const struct tagged *tm, const struct tm_receive *receive)
{
    return tm->here.at + (size_t)(receive - tm->receives) * tm->stride;
}

/* Software matches it with a message that has come before. */
static void tm_match_waiting(struct tagged *tm, struct matcher_message *match)
{
    matcher_end_wait(&tm->matcher, match);
    ((struct tm_message *)match)->done = true;
    tm->job->sim->tally.checks++;
}

static void tm_post_receive(struct tagged *tm, struct tm_receive *receive, uint64_t tag,
                            uint64_t mask, int flags)
{
    struct matcher_message *waiting;
    struct ibv_sge sge = {(uintptr_t)tm_buffer(tm, receive), tm->size, tm->here.mr->lkey};
    struct ibv_ops_wr wr = {
        .opcode = IBV_WR_TAG_ADD,
        .flags = flags,
        .tm = {.add = {.recv_wr_id = TAG_WR | (uint64_t)(receive - tm->receives),
                       .sg_list = &sge,
                       .num_sge = 1,
                       .tag = tag & mask,
                       .mask = mask}}};

    *receive = (struct tm_receive){.match = {.tag = tag, .mask = mask}};
    waiting = matcher_find_waiting(&tm->matcher, &receive->match);
    if (waiting) {
        tm_match_waiting(tm, waiting);
        return;
    }
    sim_check(tm->job, !memcmp(tm_buffer(tm, receive), poison(), tm->size),
              "the buffer of receive %u was written to after its message was there",
              (unsigned)(receive - tm->receives));
    receive->completions = wr.flags & IBV_OPS_SIGNALED ? 2 : 1;
    matcher_post(&tm->matcher, &receive->match);
    tm_post_op(tm, &wr, receive);
    receive->handle = wr.tm.handle;
}

static uint64_t tm_num_sent(const struct tagged *tm)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < PEERS; i++) {
        n += tm->peer[i].sent;
    }
    return n;
}

/* Too many wait, or one for so long that its sender waits for it. */
static bool tm_has_backlog(const struct tagged *tm)
{
    bool has = tm->matcher.waiting.length > BACKLOG;

    for (unsigned i = 0; i < PEERS; i++) {
        has |= tm->peer[i].sent - tm->peer[i].first == SLOTS;
    }
    return has;
}

/* Software does not work for nothing while it waits for messages. */
static bool tm_is_lively(const struct tagged *tm)
{
    return tm_has_backlog(tm) || tm->ops_posted < 8 * tm_num_sent(tm) + OPS;
}

/* A receive that anybody's message fits, while too many wait. */
static void tm_post_some(struct tagged *tm)
{
    static const uint64_t masks[] = {UINT64_MAX, 0xff00, 0x00ff, 0};
    struct chance *chance = &tm->job->chance;
    struct tm_receive *receive = &tm->receives[chance_below(chance, TAGS)];
    bool any = tm->ends || tm_has_backlog(tm);

    if (!receive->completions && tm_has_room_for_ops(tm) && (tm->ends || tm_is_lively(tm))) {
        tm_post_receive(tm, receive, tm_draw_tag(chance), any ? 0 : masks[chance_below(chance, 4)],
                        (chance_one_in(chance, 2) ? IBV_OPS_TM_SYNC : 0) |
                            (chance_one_in(chance, 4) ? 0 : IBV_OPS_SIGNALED));
    } else if (receive->match.posted && tm_is_lively(tm) && chance_one_in(chance, 8)) {
        tm_cancel(tm, receive);
    }
}

static void tm_cancel_all(struct tagged *tm)
{
    for (unsigned i = 0; i < TAGS; i++) {
        if (tm->receives[i].match.posted) {
            tm_cancel(tm, &tm->receives[i]);
        }
    }
}

static void tm_count_down(struct tagged *tm, struct tm_receive *receive)
{
    sim_check(tm->job, receive->completions, "a receive completes more often than it must");
    receive->completions--;
}

/* -- what the receiver hears ------------------------------------------------------------------- */

struct tm_wc {
    uint64_t wr_id, tag;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint32_t len, qpn, number;
};

static bool tm_poll(struct tagged *tm, struct tm_wc *wc)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc_tm_info info = {0};
    int err = ibv_start_poll(tm->cq, &attr);

    if (err) {
        sim_check(tm->job, err == ENOENT, "ibv_start_poll: %d", err);
        return false;
    }
    *wc = (struct tm_wc){.wr_id = tm->cq->wr_id, .status = tm->cq->status};
    wc->qpn = ibv_wc_read_qp_num(tm->cq);
    if (!wc->status || wc->status == IBV_WC_TM_ERR) {
        wc->opcode = ibv_wc_read_opcode(tm->cq);
        wc->flags = ibv_wc_read_wc_flags(tm->cq);
        wc->len = ibv_wc_read_byte_len(tm->cq);
        ibv_wc_read_tm_info(tm->cq, &info);
        wc->tag = info.tag;
        wc->number = info.priv;
    }
    ibv_end_poll(tm->cq);
    return true;
}

static struct tm_peer *tm_peer_of(struct tagged *tm, const struct tm_wc *wc)
{
    for (unsigned i = 0; i < PEERS; i++) {
        if (tm->peer[i].at->qp_num == wc->qpn) {
            return &tm->peer[i];
        }
    }
    sim_fail(tm->job, "a completion of QP 0x%x, which no sender has", wc->qpn);
}

/* The message with that number has come: a sender's come in their order, each once. */
static struct tm_message *tm_arrives(struct tagged *tm, struct tm_peer *peer, uint32_t number)
{
    struct tm_message *msg = tm_message(peer, number);

    sim_check(tm->job, number == peer->arrived && number < peer->sent && !msg->arrived,
              "message %u arrives, and %" PRIu64 " is next", number, peer->arrived);
    sim_check(tm->job, peer->state != TM_IS_QUIET, "message %u arrives after its connection",
              number);
    sim_check(tm->job, msg->what != TM_BAD_LKEY, "message %u arrives, which is nobody's to send",
              number);
    peer->arrived++;
    msg->arrived = true;
    return msg;
}

static void tm_on_match(struct tagged *tm, const struct tm_wc *wc, struct tm_receive *receive)
{
    struct tm_peer *peer = tm_peer_of(tm, wc);
    struct tm_message *msg = tm_arrives(tm, peer, wc->number);
    struct matcher_receive *right = matcher_find(&tm->matcher, &msg->match);

    sim_check(tm->job, wc->tag == msg->match.tag && msg->what != TM_NO_TAG,
              "message %u is of tag 0x%" PRIx64 ", not 0x%" PRIx64, wc->number, wc->tag,
              msg->match.tag);
    sim_check(tm->job, right == &receive->match,
              "message %u is given receive %u, and MPI gives it %d", wc->number,
              (unsigned)(receive - tm->receives),
              right ? (int)((struct tm_receive *)right - tm->receives) : -1);
    matcher_take_back(&tm->matcher, &receive->match);
    receive->peer = peer;
    receive->message = msg;
    receive->awaits = true;
    msg->by_device = true;
    tm->job->sim->tally.checks++;
}

static void tm_on_data(struct tagged *tm, const struct tm_wc *wc, struct tm_receive *receive)
{
    struct tm_message *msg = receive->message;
    uint8_t *at = tm_buffer(tm, receive);

    sim_check(tm->job, receive->awaits, "data comes for receive %u, and no message",
              (unsigned)(receive - tm->receives));
    sim_check(tm->job, wc->len == msg->len && msg->what != TM_BAD_REQUEST,
              "a message of %u bytes has %u", msg->len, wc->len);
    sim_check(tm->job, !memcmp(at, tm_data(tm, receive->peer, msg), msg->len),
              "other bytes were received than were sent");
    memset(at, poison()[0], msg->len);
    msg->done = true;
    receive->awaits = false;
    tm_count_down(tm, receive);
}

/* What its message was to bring does not come. */
static void tm_on_broken(struct tagged *tm, const struct tm_wc *wc, struct tm_receive *receive)
{
    struct tm_peer *peer = receive->peer;
    bool may = peer && (peer->doomed || peer->broken || peer->state == TM_DRAINS);

    for (unsigned i = 0; !peer && i < PEERS; i++) { /* its message was not told of */
        may |= tm->peer[i].doomed || tm->peer[i].broken || tm->peer[i].state == TM_DRAINS;
    }
    sim_check(tm->job, may && wc->status == IBV_WC_TM_RNDV_INCOMPLETE, "receive %u fails: %s",
              (unsigned)(receive - tm->receives), ibv_wc_status_str(wc->status));
    if (receive->match.posted) {
        matcher_take_back(&tm->matcher, &receive->match);
    }
    if (receive->awaits) {
        receive->awaits = false;
        receive->message->done = true;
        peer->broken = true;
    }
    memset(tm_buffer(tm, receive), poison()[0], tm->size);
    tm->job->sim->tally.errors++;
    tm_count_down(tm, receive);
}

/* The whole of it is in a receive without a tag. */
static void tm_on_unexpected(struct tagged *tm, const struct tm_wc *wc)
{
    struct tm_peer *peer = tm_peer_of(tm, wc);
    struct ibv_wc plain = {.wr_id = wc->wr_id};
    uint8_t *slot = intake_take(&tm->in, &plain);
    struct tm_receive *receive;
    struct tm_message *msg;

    if (wc->status) {
        sim_check(tm->job,
                  wc->status == IBV_WC_WR_FLUSH_ERR && (peer->doomed || peer->state == TM_DRAINS),
                  "a receive fails: %s", ibv_wc_status_str(wc->status));
        intake_forget(&tm->in, slot);
        return;
    }
    msg = tm_arrives(tm, peer, GUINT32_FROM_BE(((struct tm_header *)(void *)slot)->app_ctx));
    sim_check(tm->job, wc->len == msg->sent_len, "message %u is of %u bytes, not %u",
              (unsigned)peer->arrived - 1, wc->len, msg->sent_len);
    sim_check(tm->job, wc->opcode == (msg->what == TM_NO_TAG ? IBV_WC_TM_NO_TAG : IBV_WC_TM_RECV),
              "message %u is a %u", (unsigned)peer->arrived - 1, wc->opcode);
    intake_check(&tm->in, slot, 0, tm_bytes(tm, peer, msg), msg->sent_len);
    if (msg->what == TM_BAD_REQUEST) {
        peer->doomed = false; /* software does not fetch it */
    }
    if (msg->what == TM_NO_TAG) {
        msg->done = true;
        return;
    }
    tm->unexpected++;
    receive = (struct tm_receive *)matcher_find(&tm->matcher, &msg->match);
    if (!receive) {
        matcher_wait(&tm->matcher, &msg->match);
        return;
    }
    matcher_take_back(&tm->matcher, &receive->match);
    receive->by_software = true;
    msg->done = true;
    tm_cancel(tm, receive);
}

static const enum ibv_wc_opcode tm_wc_opcodes[] = {[IBV_WR_TAG_ADD] = IBV_WC_TM_ADD,
                                                   [IBV_WR_TAG_DEL] = IBV_WC_TM_DEL,
                                                   [IBV_WR_TAG_SYNC] = IBV_WC_TM_SYNC};

static void tm_on_op(struct tagged *tm, const struct tm_wc *wc)
{
    const struct tm_op *op;
    struct tm_receive *receive;

    while (tm->ops_done < tm->ops_posted && !tm->ops[tm->ops_done % OPS].signaled) {
        tm->ops_done++;
    }
    sim_check(tm->job, tm->ops_done < tm->ops_posted && wc->wr_id == tm->ops_done,
              "list operation %" PRIu64 " completes, and %" PRIu64 " is next", wc->wr_id,
              tm->ops_done);
    op = &tm->ops[tm->ops_done++ % OPS];
    receive = op->receive;
    sim_check(tm->job,
              wc->opcode == tm_wc_opcodes[op->opcode] &&
                  (!wc->status || (op->opcode == IBV_WR_TAG_DEL && wc->status == IBV_WC_TM_ERR)),
              "list operation %" PRIu64 " is a %u: %s", wc->wr_id, wc->opcode,
              ibv_wc_status_str(wc->status));
    if (op->opcode == IBV_WR_TAG_DEL) {
        sim_check(tm->job, wc->status ? !receive->match.posted : !receive->message,
                  "receive %u is %s", (unsigned)(receive - tm->receives),
                  wc->status ? "not cancelled, and has no message"
                             : "cancelled, and has a message");
        if (receive->match.posted) {
            matcher_take_back(&tm->matcher, &receive->match);
        }
        if (!wc->status) {
            tm_count_down(tm, receive); /* there will be no message */
        }
    }
    if (receive) {
        tm_count_down(tm, receive);
    }
    sim_check(tm->job, !op->knows_all || !(wc->flags & IBV_WC_TM_SYNC_REQ),
              "the device counts other messages than there were");
    tm->job->sim->tally.checks++;
}

static void tm_take(struct tagged *tm, const struct tm_wc *wc)
{
    struct tm_receive *receive = &tm->receives[wc->wr_id % TAGS];

    tm->wants_sync |= wc->flags & IBV_WC_TM_SYNC_REQ;
    if (wc->wr_id & INTAKE_WR) {
        tm_on_unexpected(tm, wc);
    } else if (!(wc->wr_id & TAG_WR)) {
        tm_on_op(tm, wc);
    } else if (wc->status) {
        tm_on_broken(tm, wc, receive);
    } else {
        sim_check(tm->job,
                  wc->opcode == IBV_WC_TM_RECV &&
                      wc->flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID),
                  "receive %u is a %u with flags 0x%x", (unsigned)(receive - tm->receives),
                  wc->opcode, wc->flags);
        if (wc->flags & IBV_WC_TM_MATCH) {
            tm_on_match(tm, wc, receive);
        }
        if (wc->flags & IBV_WC_TM_DATA_VALID) {
            tm_on_data(tm, wc, receive);
        }
    }
}

/* -- what a sender hears ----------------------------------------------------------------------- */

static bool tm_may_fail(const struct tm_peer *peer)
{
    return peer->doomed || peer->broken || peer->state == TM_DRAINS;
}

/* FIN: the request's header. */
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

/* What has not arrived does not; what was not fetched is not. */
static void tm_settle(struct tagged *tm, struct tm_peer *peer)
{
    for (unsigned i = 0; i < TAGS; i++) {
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
    for (unsigned i = 0; i < TAGS; i++) {
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

/* The receiver's QP sends, too, beside what the device sends there. */
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

/* In the end the device must count as the program does: it says so of a receive that is posted.
 */
static void tm_probe(struct tagged *tm)
{
    for (unsigned i = 0; i < TAGS && !tm->has_probed; i++) {
        if (!tm->receives[i].completions) {
            tm_post_receive(tm, &tm->receives[i], 0, 0, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
            tm->has_probed = true;
        }
    }
    if (!tm->has_probed) {
        tm_cancel_all(tm);
    }
}

/* -- the job ----------------------------------------------------------------------------------- */

static void tm_make_srq(struct tagged *tm)
{
    struct job *job = tm->job;
    struct sim_host *host = job->host[0];
    struct ibv_cq_init_attr_ex cq = {.cqe = 4 * TAGS + OPS + INTAKE_SLOTS,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = host->pd,
        .tm_cap = {.max_num_tags = TAGS, .max_ops = OPS},
    };

    tm->cq = ibv_create_cq_ex(host->ctx, &cq);
    sim_check(job, tm->cq, "no CQ: errno %d", errno);
    attr.cq = ibv_cq_ex_to_cq(tm->cq);
    tm->srq = ibv_create_srq_ex(host->ctx, &attr);
    sim_check(job, tm->srq, "no SRQ: errno %d", errno);
    intake_init(&tm->in, job, host, INTAKE_SLOTS / 2,
                MAX(tm->size + sizeof(struct tm_header), TM_HEADERS));
    tm->in.srq = tm->srq;
    tm->here = sim_span(job, host, (size_t)TAGS * tm->stride);
    memset(tm->here.at, poison()[0], tm->here.len);
}

static struct ibv_qp *tm_make_qp(struct tagged *tm, struct tm_peer *peer, bool receives)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = receives ? peer->at_cq : peer->cq,
        .recv_cq = receives ? ibv_cq_ex_to_cq(tm->cq) : peer->cq,
        .srq = receives ? tm->srq : NULL,
        .cap = {.max_send_wr = SLOTS + 1,
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
    peer->cq = ibv_create_cq(host->ctx, SLOTS + 1 + FINS, NULL, NULL, 0);
    peer->at_cq = ibv_create_cq(job->host[0]->ctx, SLOTS + 1, NULL, NULL, 0);
    sim_check(job, peer->cq && peer->at_cq, "no CQ: errno %d", errno);
    peer->span = sim_span(job, host, (size_t)(SLOTS + 1) * tm->stride);
    peer->scratch = peer->span.at + (size_t)SLOTS * tm->stride;
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
    matcher_init(&tm->matcher);
    tm_make_srq(tm);
    for (unsigned i = 0; i < PEERS; i++) {
        tm_make_peer(tm, &tm->peer[i], job->host[1 + i]);
    }
}

/* All messages have come, and their data. */
static bool tm_has_all(const struct tagged *tm)
{
    for (unsigned i = 0; i < PEERS; i++) {
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
    for (unsigned i = 0; i < PEERS; i++) {
        if (tm->peer[i].state != TM_RUNS || tm->peer[i].sent < tm->peer[i].limit) {
            return true;
        }
    }
    return false;
}

static bool kind_tm_step(struct job *job)
{
    struct tagged *tm = job->state;
    struct tm_wc wc;
    bool did = false;

    while (tm_poll(tm, &wc)) {
        tm_take(tm, &wc);
        did = true;
    }
    if (chance_below(&job->chance, 4)) {
        did |= intake_post(&tm->in, (unsigned)chance_from(&job->chance, 1, INTAKE_SLOTS));
    }
    tm->ends = !tm_is_sending(tm);
    for (unsigned i = 0; i < PEERS; i++) {
        did |= tm_step_peer(tm, &tm->peer[i]);
    }
    if ((tm->wants_sync || (tm_is_lively(tm) && chance_one_in(&job->chance, 16))) &&
        tm_has_room_for_ops(tm)) {
        tm_sync(tm);
    }
    if (tm_has_all(tm) && tm->has_probed) {
        tm_cancel_all(tm);
    } else if (tm_has_all(tm)) {
        tm_probe(tm);
    } else {
        for (unsigned n = (unsigned)chance_below(&job->chance, 6); n; n--) {
            tm_post_some(tm);
        }
    }
    return did;
}

static bool kind_tm_is_done(const struct job *job)
{
    const struct tagged *tm = job->state;
    bool is_done = tm_has_all(tm) && tm->has_probed;

    for (unsigned i = 0; i < TAGS; i++) {
        is_done &= !tm->receives[i].completions;
    }
    return is_done;
}

static void kind_tm_check(struct job *job)
{
    struct tagged *tm = job->state;

    sim_check(job,
              !g_queue_get_length(&tm->matcher.posted) && !g_queue_get_length(&tm->matcher.waiting),
              "receives or messages are left");
    for (unsigned i = 0; i < TAGS; i++) {
        sim_check(job, !memcmp(tm_buffer(tm, &tm->receives[i]), poison(), tm->size),
                  "the buffer of receive %u was written to after its message was there", i);
    }
}

static void kind_tm_free(struct job *job)
{
    struct tagged *tm = job->state;

    for (unsigned i = 0; i < PEERS; i++) {
        struct tm_peer *peer = &tm->peer[i];

        sim_must(job, ibv_destroy_qp(peer->qp));
        sim_must(job, ibv_destroy_qp(peer->at));
        sim_must(job, ibv_destroy_cq(peer->cq));
        sim_must(job, ibv_destroy_cq(peer->at_cq));
        intake_free(&peer->fins);
        sim_span_free(job, &peer->span);
    }
    sim_must(job, ibv_destroy_srq(tm->srq));
    sim_must(job, ibv_destroy_cq(ibv_cq_ex_to_cq(tm->cq)));
    intake_free(&tm->in);
    sim_span_free(job, &tm->here);
    matcher_clear(&tm->matcher);
}

const struct kind kind_tm = {
    .name = "tm",
    .about = "messages with tags, matched by the device in MPI's order, and fetched",
    .usual = true,
    .hosts = 1 + PEERS,
    .size = sizeof(struct tagged),
    .make = kind_tm_make,
    .step = kind_tm_step,
    .is_done = kind_tm_is_done,
    .check = kind_tm_check,
    .free = kind_tm_free,
};
