/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random frames of many protocols from one host to another, and random rules at both: tables,
 * groups that match any fields, entries that drop, count, and lead to queues and further tables.
 * Entries of the sender add VLAN tags, those of the receiver remove them, and both rewrite a source
 * address and a register, which later tables match.
 *
 * Rules of the sender see its send queues; the receiver has rules for RoCE frames and for all
 * others. rules.h is the reference: each frame arrives at exactly the queues that it says, with the
 * tags of the entries, and with the bytes that the rules made; counters of packets and bytes are
 * equal.
 *
 * The rules of the receiver change while frames are on their way. Such a frame may find the rules
 * of any moment since it was sent, but always all rules of one moment. The rules of the sender
 * change when it has sent everything that was posted.
 *
 * Frames may be lost and duplicated. Then only those that arrive are checked, and no counters.
 * Both hosts are the job's own, because the root of a host's rules exists once.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/verbs.h"
#include "prm/prm.h"
#include "tests/sim/fabric/intake.h"
#include "tests/sim/fabric/steer_rules.h"

#define QUEUES  4u
#define SENDERS 2u
#define WINDOW  (INTAKE_SLOTS / RULES_COPIES) /* frames on their way */
#define MOMENTS 12u                           /* changes of the rules while a frame is on its way */
#define USED_MS 5 /* a frame that has not arrived after this time is lost */

enum {
    SENDER,
    RECEIVER,
};

/* A frame that is on its way. */
struct steer_frame {
    bool exists, is_sent; /* is_sent: it is completed at the sender */
    bool dropped;         /* by the sender's rules */
    uint32_t number;
    uint64_t quiet_ns; /* it has arrived by then */
    unsigned moments;
    struct rules_outcome right[MOMENTS]; /* by the rules of each moment */
    struct rules_outcome seen;           /* copies that have arrived */
    struct rules_frame frame;
    struct rules_state state; /* as it is on the wire */
};

struct steer_queue {
    struct ibv_cq_ex *cq;
    struct ibv_qp *qp;
    struct intake in;
};

struct steer {
    struct sim_host host[2];
    struct steer_rules rules[2];
    struct rules_domain sent, received, roce;
    struct rules_terms terms[2];
    struct steer_queue queue[QUEUES];
    struct ibv_qp *qp[SENDERS];
    struct ibv_cq *cq;
    struct span near;
    uint32_t tirn[QUEUES], sqn[SENDERS];
    uint64_t posted, completed, limit;
    unsigned on_way;
    struct steer_frame frame[WINDOW];
};

static bool steer_is_exact(const struct job *job)
{
    return !sim_is_lossy(job->sim) && !sim_is_disorderly(job->sim);
}

/* -- what must come of a frame ----------------------------------------------------------------- */

static struct rules_outcome steer_outcome(const struct steer *s, const struct rules_state *arrived)
{
    struct rules_outcome out = {0};
    struct rules_state state = *arrived;
    bool is_roce = rules_state_is_roce(&state);

    if (is_roce) {
        rules_apply(&s->roce, &state, &out);
    }
    if (!is_roce || (out.switched && !out.dropped)) {
        rules_apply(&s->received, &state, &out);
    }
    rules_sort(&out);
    return out;
}

/* The rules of the receiver have changed. */
static void steer_add_moment(struct steer *s)
{
    for (unsigned i = 0; i < WINDOW; i++) {
        struct steer_frame *f = &s->frame[i];

        if (f->exists && !f->dropped) {
            f->right[f->moments++] = steer_outcome(s, &f->state);
        }
    }
}

static bool steer_may_change(const struct steer *s)
{
    bool may = true;

    for (unsigned i = 0; i < WINDOW; i++) {
        may &= !s->frame[i].exists || s->frame[i].moments < MOMENTS;
    }
    return may;
}

/* -- sending ----------------------------------------------------------------------------------- */

static void steer_send(struct job *job, struct steer *s)
{
    uint32_t number = (uint32_t)s->posted++;
    unsigned slot = number % WINDOW, by = (unsigned)chance_below(&job->chance, SENDERS);
    struct steer_frame *f = &s->frame[slot];
    uint8_t *at = s->near.at + (size_t)slot * RULES_FRAME_MOST;
    struct ibv_sge sge = {(uintptr_t)at, 0, s->near.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct rules_outcome sent = {0};

    memset(f, 0, sizeof(*f));
    f->exists = true;
    f->number = number;
    rules_frame_draw(&f->frame, &job->chance, s->terms[0].dmac, s->terms[0].smac,
                     steer_is_exact(job), number);
    memcpy(at, f->frame.bytes, f->frame.len);
    sge.length = f->frame.len;
    f->frame.field[RULES_SOURCE_SQ] = s->sqn[by];
    f->state = rules_state_of(&f->frame);
    rules_apply(&s->sent, &f->state, &sent);
    f->dropped = sent.dropped;
    steer_rules_count(&s->rules[SENDER], sent.hits, sent.hits);
    f->right[f->moments++] = f->dropped ? (struct rules_outcome){0} : steer_outcome(s, &f->state);
    s->on_way++;
    sim_must(job, ibv_post_send(s->qp[by], &wr, &bad));
}

static bool steer_poll_sent(struct job *job, struct steer *s)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(s->cq, 1, &wc) > 0) {
        struct steer_frame *f = &s->frame[wc.wr_id % WINDOW];

        sim_check(job, !wc.status && f->exists && f->number == wc.wr_id && !f->is_sent,
                  "completion of frame %" PRIu64 ": %s", wc.wr_id, ibv_wc_status_str(wc.status));
        f->is_sent = true;
        f->quiet_ns = sim_quiet_ns(job->sim) + USED_MS * SIM_MS;
        s->completed++;
        job->sim->tally.checks++;
        did = true;
    }
    return did;
}

/* There is a receive for each copy of each frame on its way. */
static bool steer_may_send(const struct steer *s)
{
    bool may = s->posted < s->limit && !s->frame[s->posted % WINDOW].exists;

    for (unsigned i = 0; i < QUEUES; i++) {
        may &= s->queue[i].in.posted >= (s->on_way + 1) * RULES_COPIES;
    }
    return may;
}

/* -- receiving --------------------------------------------------------------------------------- */

/* Returns whether rules of some moment lead such a copy to this queue. */
static bool steer_may_come(const struct steer_frame *f, const struct rules_copy *copy)
{
    for (unsigned i = 0; i < f->moments; i++) {
        for (unsigned j = 0; j < f->right[i].copies; j++) {
            if (!memcmp(&f->right[i].copy[j], copy, sizeof(*copy))) {
                return true;
            }
        }
    }
    return false;
}

static void steer_receive(struct job *job, struct steer *s, unsigned nth, uint8_t *slot,
                          uint32_t len, uint32_t tag)
{
    uint32_t number = len >= 8 ? rules_frame_number(slot, len) : UINT32_MAX;
    struct steer_frame *f = &s->frame[number % WINDOW];
    struct rules_copy copy = {nth, tag, len, rules_state_print(slot, len)};

    if (!f->exists || f->number != number) {
        sim_check(job, !steer_is_exact(job),
                  "a copy of frame %u, of %u bytes, comes late to queue %u", number, len, nth);
        intake_forget(&s->queue[nth].in, slot);
        return;
    }
    sim_check(job, steer_may_come(f, &copy),
              "frame %u comes to queue %u with tag %u and %u bytes, and no rules say so", number,
              nth, tag, len);
    intake_check(&s->queue[nth].in, slot, 0, slot, len);
    if (f->seen.copies < RULES_COPIES) {
        f->seen.copy[f->seen.copies++] = copy;
    }
    job->sim->tally.messages++;
    job->sim->tally.bytes += len;
}

static bool steer_poll_received(struct job *job, struct steer *s, unsigned nth)
{
    struct steer_queue *q = &s->queue[nth];
    bool did = false;

    for (;;) {
        struct ibv_poll_cq_attr attr = {0};
        int err = ibv_start_poll(q->cq, &attr);
        struct ibv_wc wc;
        uint32_t tag;

        if (err) {
            sim_check(job, err == ENOENT, "ibv_start_poll: %d", err);
            return did;
        }
        wc = (struct ibv_wc){.wr_id = q->cq->wr_id, .status = q->cq->status};
        sim_check(job, !wc.status, "a receive fails: %s", ibv_wc_status_str(wc.status));
        wc.byte_len = ibv_wc_read_byte_len(q->cq);
        tag = ibv_wc_read_flow_tag(q->cq);
        ibv_end_poll(q->cq);
        steer_receive(job, s, nth, intake_take(&q->in, &wc), wc.byte_len, tag);
        did = true;
    }
}

/* -- the end of a frame ------------------------------------------------------------------------ */

/* Returns whether all copies are there, or no further one can come. */
static bool steer_has_ended(const struct job *job, const struct steer_frame *f)
{
    bool is_known = f->moments == 1 && steer_is_exact(job);

    return f->exists && f->is_sent &&
           (f->dropped || job->sim->world->now_ns >= f->quiet_ns ||
            (is_known && f->right[0].copies && f->seen.copies == f->right[0].copies));
}

/* Checks the copies against the rules of each moment, and counts what these rules count. */
static void steer_end(struct job *job, struct steer *s, struct steer_frame *f)
{
    struct rules_hits least[RULES_COUNTERS], most[RULES_COUNTERS] = {0};
    bool fits = false;

    memset(least, 0xff, sizeof(least));
    rules_sort(&f->seen);
    for (unsigned i = 0; i < f->moments; i++) {
        if (rules_same_copies(&f->right[i], &f->seen)) {
            for (unsigned c = 0; c < RULES_COUNTERS; c++) {
                const struct rules_hits *hits = &f->right[i].hits[c];

                least[c].packets = MIN(least[c].packets, hits->packets);
                least[c].bytes = MIN(least[c].bytes, hits->bytes);
                most[c].packets = MAX(most[c].packets, hits->packets);
                most[c].bytes = MAX(most[c].bytes, hits->bytes);
            }
            fits = true;
        }
    }
    f->exists = false;
    s->on_way--;
    if (steer_is_exact(job)) {
        sim_check(job, fits, "frame %u has arrived as %u copies; by the first rules it is %u",
                  f->number, f->seen.copies, f->right[0].copies);
        steer_rules_count(&s->rules[RECEIVER], least, most);
        job->sim->tally.checks++;
    }
}

static bool steer_end_frames(struct job *job, struct steer *s)
{
    bool did = false;

    for (unsigned i = 0; i < WINDOW; i++) {
        if (steer_has_ended(job, &s->frame[i])) {
            steer_end(job, s, &s->frame[i]);
            did = true;
        }
    }
    return did;
}

/* -- the job ----------------------------------------------------------------------------------- */

static void steer_move_up(struct job *job, struct ibv_qp *qp, enum ibv_qp_state last)
{
    struct ibv_qp_attr to = {.port_num = 1};

    for (to.qp_state = IBV_QPS_INIT; to.qp_state <= last; to.qp_state++) {
        sim_must(job, ibv_modify_qp(
                          qp, &to, IBV_QP_STATE | (to.qp_state == IBV_QPS_INIT ? IBV_QP_PORT : 0)));
    }
}

static void steer_make_sender(struct job *job, struct steer *s)
{
    struct sim_host *host = &s->host[SENDER];
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = WINDOW, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RAW_PACKET};

    attr.send_cq = attr.recv_cq = s->cq = ibv_create_cq(host->ctx, 2 * WINDOW, NULL, NULL, 0);
    sim_check(job, s->cq, "no CQ: errno %d", errno);
    for (unsigned i = 0; i < SENDERS; i++) {
        s->qp[i] = ibv_create_qp(host->pd, &attr);
        sim_check(job, s->qp[i], "no raw packet QP: errno %d", errno);
        steer_move_up(job, s->qp[i], IBV_QPS_RTS);
        s->sqn[i] = hv_qp(s->qp[i])->sqn;
    }
    s->near = sim_span(job, host, WINDOW * RULES_FRAME_MOST);
}

static void steer_make_queue(struct job *job, struct steer *s, unsigned nth)
{
    struct sim_host *host = &s->host[RECEIVER];
    struct steer_queue *q = &s->queue[nth];
    struct ibv_cq_init_attr_ex attr = {
        .cqe = INTAKE_SLOTS, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_FLOW_TAG};
    struct ibv_qp_init_attr qp = {.cap = {.max_recv_wr = INTAKE_SLOTS, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RAW_PACKET};

    q->cq = ibv_create_cq_ex(host->ctx, &attr);
    sim_check(job, q->cq, "no CQ: errno %d", errno);
    intake_init(&q->in, job, host, INTAKE_SLOTS, RULES_FRAME_MOST);
    qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(q->cq);
    q->in.qp = q->qp = ibv_create_qp(host->pd, &qp);
    sim_check(job, q->qp, "no raw packet QP: errno %d", errno);
    steer_move_up(job, q->qp, IBV_QPS_RTR);
    s->tirn[nth] = hv_qp(q->qp)->tirn;
}

static void steer_make_rules(struct job *job, struct steer *s)
{
    struct rules_terms roce;

    for (unsigned h = 0; h < 2; h++) {
        s->terms[h] = (struct rules_terms){.chance = &job->chance,
                                           .dmac = s->host[RECEIVER].config.mac,
                                           .smac = s->host[SENDER].config.mac,
                                           .queues = h == RECEIVER ? QUEUES : 0,
                                           .sqn = s->sqn};
        s->rules[h].hca = (struct rules_hca){.job = job, .ctx = s->host[h].ctx, .tirn = s->tirn};
        rules_cmd_make_counters(&s->rules[h].hca);
    }
    s->sent.type = PRM_FLOW_TABLE_TYPE_NIC_TX;
    s->received.type = PRM_FLOW_TABLE_TYPE_NIC_RX;
    s->roce.type = PRM_FLOW_TABLE_TYPE_RDMA_RX;
    roce = s->terms[RECEIVER];
    roce.is_roce = true;
    steer_rules_make(&s->rules[RECEIVER], &s->received, RULES_TABLES, &s->terms[RECEIVER]);
    if (chance_below(&job->chance, 4)) {
        steer_rules_make(&s->rules[RECEIVER], &s->roce, RULES_TABLES / 2, &roce);
    }
    if (chance_below(&job->chance, 4)) {
        steer_rules_make(&s->rules[SENDER], &s->sent, RULES_TABLES - 1, &s->terms[SENDER]);
    }
}

static void kind_steering_make(struct job *job)
{
    struct steer *s = job->state;

    s->limit = job->sim->options.ops;
    sim_host_own(job, &s->host[SENDER], SENDER, NULL);
    sim_host_own(job, &s->host[RECEIVER], RECEIVER, NULL);
    steer_make_sender(job, s);
    for (unsigned i = 0; i < QUEUES; i++) {
        steer_make_queue(job, s, i);
    }
    steer_make_rules(job, s);
}

static bool steer_change(struct job *job, struct steer *s)
{
    struct rules_terms terms = s->terms[RECEIVER];

    if (s->sent.tables && s->completed == s->posted && chance_one_in(&job->chance, 8)) {
        steer_rules_change(&s->rules[SENDER], &s->sent, &s->terms[SENDER]);
        return true;
    }
    if (!chance_one_in(&job->chance, 4) || !steer_may_change(s)) {
        return false;
    }
    terms.is_roce = s->roce.tables && chance_one_in(&job->chance, 4);
    steer_rules_change(&s->rules[RECEIVER], terms.is_roce ? &s->roce : &s->received, &terms);
    steer_add_moment(s);
    return true;
}

static bool kind_steering_step(struct job *job)
{
    struct steer *s = job->state;
    bool did = false;

    for (unsigned h = 0; h < 2; h++) {
        sim_poll_events(job, &s->host[h]);
    }
    did |= steer_poll_sent(job, s);
    for (unsigned i = 0; i < QUEUES; i++) {
        did |= steer_poll_received(job, s, i);
        did |= intake_post(&s->queue[i].in, INTAKE_SLOTS) > 0;
    }
    did |= steer_end_frames(job, s);
    if (!s->on_way && steer_is_exact(job) && chance_one_in(&job->chance, 8)) {
        steer_rules_check(&s->rules[SENDER]);
        steer_rules_check(&s->rules[RECEIVER]);
    }
    if (s->posted < s->limit) {
        did |= steer_change(job, s);
    }
    if (steer_may_send(s)) {
        steer_send(job, s);
        did = true;
    }
    return did;
}

static bool kind_steering_is_done(const struct job *job)
{
    const struct steer *s = job->state;

    return s->posted == s->limit && !s->on_way;
}

static void kind_steering_check(struct job *job)
{
    struct steer *s = job->state;

    if (steer_is_exact(job)) {
        steer_rules_check(&s->rules[SENDER]);
        steer_rules_check(&s->rules[RECEIVER]);
    }
}

static void kind_steering_free(struct job *job)
{
    struct steer *s = job->state;

    steer_rules_free(&s->rules[RECEIVER], &s->received);
    steer_rules_free(&s->rules[RECEIVER], &s->roce);
    steer_rules_free(&s->rules[SENDER], &s->sent);
    for (unsigned i = 0; i < QUEUES; i++) {
        sim_must(job, ibv_destroy_qp(s->queue[i].qp));
        sim_must(job, ibv_destroy_cq(ibv_cq_ex_to_cq(s->queue[i].cq)));
        intake_free(&s->queue[i].in);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        sim_must(job, ibv_destroy_qp(s->qp[i]));
    }
    sim_must(job, ibv_destroy_cq(s->cq));
    sim_span_free(job, &s->near);
    for (unsigned h = 0; h < 2; h++) {
        rules_cmd_free_counters(&s->rules[h].hca);
        sim_host_down(&s->host[h]);
    }
}

const struct kind kind_steering = {
    .name = "steering",
    .about = "frames of many protocols through random rules that change under traffic",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct steer),
    .make = kind_steering_make,
    .step = kind_steering_step,
    .is_done = kind_steering_is_done,
    .check = kind_steering_check,
    .free = kind_steering_free,
};
