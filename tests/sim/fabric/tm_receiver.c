/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver of tagged messages: software that behaves like an MPI. It posts receives with a tag
 * and a mask, cancels some, and matches by itself what the device did not match. The device's
 * results are compared with MPI's rule (matcher.h): the device must have given each message the
 * receive that the rule selects.
 */
#include "tests/sim/fabric/tm.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define BACKLOG 8u /* with so many unexpected messages, software posts receives for them */
#define TAG_WR  (1ull << 62) /* flag in wr_id: a receive with a tag; the rest is its number */

static uint8_t *tm_data(const struct tagged *tm, const struct tm_peer *peer,
                        const struct tm_message *msg)
{
    return tm_message_data(msg, tm_bytes(tm, peer, msg));
}

/* -- list operations --------------------------------------------------------------------------- */

static bool tm_has_room_for_ops(const struct tagged *tm)
{
    return tm->ops_posted - tm->ops_done < TM_OPS - 2 * TM_TAGS;
}

/* Returns whether no message is on its way, or will be. */
static bool tm_knows_all(const struct tagged *tm)
{
    for (unsigned i = 0; i < TM_PEERS; i++) {
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
    tm->ops[tm->ops_posted++ % TM_OPS] = (struct tm_op){
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

    for (unsigned i = 0; i < TM_PEERS; i++) {
        n += tm->peer[i].sent;
    }
    return n;
}

/* Too many messages wait, or one for so long that its sender waits for it. */
static bool tm_has_backlog(const struct tagged *tm)
{
    bool has = tm->matcher.waiting.length > BACKLOG;

    for (unsigned i = 0; i < TM_PEERS; i++) {
        has |= tm->peer[i].sent - tm->peer[i].first == TM_SLOTS;
    }
    return has;
}

/* Software does not post without need while it waits for messages. */
static bool tm_is_lively(const struct tagged *tm)
{
    return tm_has_backlog(tm) || tm->ops_posted < 8 * tm_num_sent(tm) + TM_OPS;
}

/* Posts a receive that matches any message while too many wait. */
void tm_receiver_post(struct tagged *tm)
{
    static const uint64_t masks[] = {UINT64_MAX, 0xff00, 0x00ff, 0};
    struct chance *chance = &tm->job->chance;
    struct tm_receive *receive = &tm->receives[chance_below(chance, TM_TAGS)];
    bool any = tm->ends || tm_has_backlog(tm);

    if (!receive->completions && tm_has_room_for_ops(tm) && (tm->ends || tm_is_lively(tm))) {
        tm_post_receive(tm, receive, tm_draw_tag(chance), any ? 0 : masks[chance_below(chance, 4)],
                        (chance_one_in(chance, 2) ? IBV_OPS_TM_SYNC : 0) |
                            (chance_one_in(chance, 4) ? 0 : IBV_OPS_SIGNALED));
    } else if (receive->match.posted && tm_is_lively(tm) && chance_one_in(chance, 8)) {
        tm_cancel(tm, receive);
    }
}

void tm_receiver_cancel_all(struct tagged *tm)
{
    for (unsigned i = 0; i < TM_TAGS; i++) {
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

/* -- the receiver's completions ---------------------------------------------------------------- */

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
    for (unsigned i = 0; i < TM_PEERS; i++) {
        if (tm->peer[i].at->qp_num == wc->qpn) {
            return &tm->peer[i];
        }
    }
    sim_fail(tm->job, "a completion of QP 0x%x, which no sender has", wc->qpn);
}

/* Handles the arrival of the message with that number: a sender's messages come in order, each
 * once. */
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

/* The data of its message does not come. */
static void tm_on_broken(struct tagged *tm, const struct tm_wc *wc, struct tm_receive *receive)
{
    struct tm_peer *peer = receive->peer;
    bool may = peer && tm_may_fail(peer);

    for (unsigned i = 0; !peer && i < TM_PEERS; i++) { /* its message was not reported */
        may |= tm_may_fail(&tm->peer[i]);
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

/* The whole message is in a receive without a tag. */
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

    while (tm->ops_done < tm->ops_posted && !tm->ops[tm->ops_done % TM_OPS].signaled) {
        tm->ops_done++;
    }
    sim_check(tm->job, tm->ops_done < tm->ops_posted && wc->wr_id == tm->ops_done,
              "list operation %" PRIu64 " completes, and %" PRIu64 " is next", wc->wr_id,
              tm->ops_done);
    op = &tm->ops[tm->ops_done++ % TM_OPS];
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
            tm_count_down(tm, receive); /* no message will come for it */
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
    struct tm_receive *receive = &tm->receives[wc->wr_id % TM_TAGS];

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

/* -- the receiver ------------------------------------------------------------------------------ */

void tm_receiver_probe(struct tagged *tm)
{
    for (unsigned i = 0; i < TM_TAGS && !tm->has_probed; i++) {
        if (!tm->receives[i].completions) {
            tm_post_receive(tm, &tm->receives[i], 0, 0, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
            tm->has_probed = true;
        }
    }
    if (!tm->has_probed) {
        tm_receiver_cancel_all(tm);
    }
}

void tm_receiver_make(struct tagged *tm)
{
    struct job *job = tm->job;
    struct sim_host *host = job->host[0];
    struct ibv_cq_init_attr_ex cq = {.cqe = 4 * TM_TAGS + TM_OPS + INTAKE_SLOTS,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = host->pd,
        .tm_cap = {.max_num_tags = TM_TAGS, .max_ops = TM_OPS},
    };

    matcher_init(&tm->matcher);
    tm->cq = ibv_create_cq_ex(host->ctx, &cq);
    sim_check(job, tm->cq, "no CQ: errno %d", errno);
    attr.cq = ibv_cq_ex_to_cq(tm->cq);
    tm->srq = ibv_create_srq_ex(host->ctx, &attr);
    sim_check(job, tm->srq, "no SRQ: errno %d", errno);
    intake_init(&tm->in, job, host, INTAKE_SLOTS / 2,
                MAX(tm->size + sizeof(struct tm_header), TM_HEADERS));
    tm->in.srq = tm->srq;
    tm->here = sim_span(job, host, (size_t)TM_TAGS * tm->stride);
    memset(tm->here.at, poison()[0], tm->here.len);
}

bool tm_receiver_poll(struct tagged *tm)
{
    struct tm_wc wc;
    bool did = false;

    while (tm_poll(tm, &wc)) {
        tm_take(tm, &wc);
        did = true;
    }
    return did;
}

void tm_receiver_maybe_sync(struct tagged *tm)
{
    if ((tm->wants_sync || (tm_is_lively(tm) && chance_one_in(&tm->job->chance, 16))) &&
        tm_has_room_for_ops(tm)) {
        tm_sync(tm);
    }
}

void tm_receiver_check(struct tagged *tm)
{
    sim_check(tm->job,
              !g_queue_get_length(&tm->matcher.posted) && !g_queue_get_length(&tm->matcher.waiting),
              "receives or messages are left");
    for (unsigned i = 0; i < TM_TAGS; i++) {
        sim_check(tm->job, !memcmp(tm_buffer(tm, &tm->receives[i]), poison(), tm->size),
                  "the buffer of receive %u was written to after its message was there", i);
    }
}

void tm_receiver_free(struct tagged *tm)
{
    sim_must(tm->job, ibv_destroy_srq(tm->srq));
    sim_must(tm->job, ibv_destroy_cq(ibv_cq_ex_to_cq(tm->cq)));
    intake_free(&tm->in);
    sim_span_free(tm->job, &tm->here);
    matcher_clear(&tm->matcher);
}
