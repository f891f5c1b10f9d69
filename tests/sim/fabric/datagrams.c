/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements datagrams.h, and checks what must hold. Every message that arrives was sent, with its
 * bytes and length. Without faults each message arrives once and in order. All of a sender's
 * completions come, in order. On a fabric that duplicates and reorders, a message of one packet may
 * arrive twice or late, on an unreliable connection, too: a FIRST or ONLY packet begins a new
 * message whatever its PSN is (IBTA 9.8.2.2.1).
 */
#include "tests/sim/fabric/datagrams.h"
#include <errno.h>
#include <inttypes.h>
#include "tests/sim/fabric/connect.h"

#define SLOTS   32
#define DEPTH   64
#define MTU     1024
#define USED_MS 5 /* a message that has not arrived after this time is lost */

static struct ibv_qp *datagrams_qp(struct datagrams *d, enum ibv_qp_type type,
                                   struct sim_host *host, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = SLOTS, .max_send_sge = 2, .max_recv_sge = 1},
        .qp_type = type,
    };
    struct ibv_qp *qp = ibv_create_qp(host->pd, &attr);

    sim_check(d->job, qp, "no QP: errno %d", errno);
    return qp;
}

static void datagrams_to_init(const struct datagrams *d, struct ibv_qp *qp)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = DATAGRAMS_QKEY,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    sim_must(d->job,
             ibv_modify_qp(qp, &init,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                               (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static struct ibv_ah_attr datagrams_path(const struct sim_host *to)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = to->config.gid[1], .sgid_index = 1, .hop_limit = 1}};
}

static void datagrams_connect(const struct datagrams *d, struct ibv_qp *qp,
                              const struct sim_host *to, uint32_t dest)
{
    bool uc = qp->qp_type == IBV_QPT_UC;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = dest,
                               .rq_psn = 0xfffff0,
                               .sq_psn = 0xfffff0,
                               .ah_attr = datagrams_path(to)};

    sim_must(d->job, ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | (uc ? IBV_QP_AV | IBV_QP_PATH_MTU |
                                                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                                      : 0)));
    attr.qp_state = IBV_QPS_RTS;
    sim_must(d->job, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* Connects both QPs, from RESET on. */
static void datagrams_begin(struct datagrams *d)
{
    datagrams_to_init(d, d->qp);
    datagrams_to_init(d, d->to_qp);
    datagrams_connect(d, d->qp, d->to, d->to_qp->qp_num);
    datagrams_connect(d, d->to_qp, d->from, d->qp->qp_num);
    d->state = DATAGRAMS_RUN;
    d->broken = false;
    d->first = d->posted;
}

/* Returns the longest message: a datagram is one packet, of the port's MTU at most (IBTA 9.8.3). */
static uint32_t datagrams_max(const struct datagrams *d)
{
    struct ibv_port_attr port;

    sim_must(d->job, ibv_query_port(d->from->ctx, 1, &port));
    return 128u << port.active_mtu;
}

void datagrams_init(struct datagrams *d, struct job *job, enum ibv_qp_type type,
                    struct sim_host *from, struct sim_host *to)
{
    struct ibv_ah_attr path = datagrams_path(to);

    *d = (struct datagrams){.job = job, .from = from, .to = to, .limit = job->sim->options.ops};
    d->most = (uint32_t)MIN(job->sim->options.size, type == IBV_QPT_UD ? MTU : UINT32_MAX);
    /* some are longer than a receive, by a header or by packets */
    d->size = chance_one_in(&job->chance, 2)
                  ? d->most
                  : (uint32_t)chance_from(&job->chance, d->most / 4, d->most);
    d->cq = ibv_create_cq(from->ctx, DEPTH, NULL, NULL, 0);
    d->to_cq = ibv_create_cq(to->ctx, SLOTS, NULL, NULL, 0);
    sim_check(job, d->cq && d->to_cq, "no CQ: errno %d", errno);
    d->qp = datagrams_qp(d, type, from, d->cq);
    d->to_qp = datagrams_qp(d, type, to, d->to_cq);
    if (type == IBV_QPT_UD) {
        d->ah = ibv_create_ah(from->pd, &path);
        sim_check(job, d->ah, "no address handle: errno %d", errno);
        d->over = sim_span(job, from, datagrams_max(d) + 1);
    }
    datagrams_begin(d);
    intake_init(&d->in, job, to, SLOTS, d->size + (d->ah ? DATAGRAMS_GRH : 0));
    d->in.qp = d->to_qp;
    d->near = sim_span(job, from, 2 * (size_t)d->most);
    d->far = sim_span(job, to, d->most);
    chance_fill(&job->chance, d->near.at, d->near.len);
}

void datagrams_free(struct datagrams *d)
{
    sim_must(d->job, ibv_destroy_qp(d->qp));
    sim_must(d->job, ibv_destroy_qp(d->to_qp));
    sim_must(d->job, ibv_destroy_cq(d->cq));
    sim_must(d->job, ibv_destroy_cq(d->to_cq));
    if (d->ah) {
        sim_must(d->job, ibv_destroy_ah(d->ah));
        sim_span_free(d->job, &d->over);
    }
    intake_free(&d->in);
    sim_span_free(d->job, &d->near);
    sim_span_free(d->job, &d->far);
}

/* -- sending ----------------------------------------------------------------------------------- */

static bool datagrams_faults(const struct datagrams *d)
{
    return sim_is_lossy(d->job->sim) || sim_is_disorderly(d->job->sim);
}

/* If no message may be lost, a sender does not send more than there are receives. */
static bool datagrams_may_send(const struct datagrams *d)
{
    return d->state == DATAGRAMS_RUN && !d->broken && d->posted < d->limit &&
           d->posted - d->sent < DEPTH &&
           (datagrams_faults(d) || d->posted - d->received - d->lost < d->in.posted);
}

/* Draws the Q_Key: the receiver's, or a value with the high bit, which means the sender's own Q_Key
 * (IBTA 10.2.5) and is the same here, or another value. */
static uint32_t datagrams_draw_qkey(struct datagrams *d, struct datagram *g)
{
    switch (chance_below(&d->job->chance, 8)) {
    case 0:
        g->lost = true;
        return DATAGRAMS_QKEY + 1;
    case 1:
        return 0x80000000u | (uint32_t)chance_next(&d->job->chance);
    default:
        return DATAGRAMS_QKEY;
    }
}

/* Returns the place of its bytes, with their key. */
static struct ibv_sge datagrams_place(const struct datagrams *d, const struct datagram *g)
{
    if (g->ends == IBV_WC_LOC_LEN_ERR) {
        return (struct ibv_sge){(uintptr_t)d->over.at, g->len, d->over.mr->lkey};
    }
    return (struct ibv_sge){(uintptr_t)(d->near.at + g->at), g->len,
                            d->near.mr->lkey ^ (g->ends ? 0x5500 : 0)};
}

static void datagrams_send(struct datagrams *d, enum ibv_wc_status ends)
{
    struct chance *chance = &d->job->chance;
    uint64_t number = d->posted++;
    struct datagram *g = &d->known[number % DATAGRAMS_KNOWN];
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = number,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    *g = (struct datagram){.number = number,
                           .len = (uint32_t)chance_below(chance, d->most + 1),
                           .at = (uint32_t)chance_below(chance, d->most + 1),
                           .ends = ends,
                           .write = !d->ah && chance_one_in(chance, 3)};
    g->len = ends == IBV_WC_LOC_LEN_ERR ? (uint32_t)d->over.len : g->len + (ends && !g->len);
    g->at = ends == IBV_WC_LOC_LEN_ERR ? 0 : (uint32_t)MIN(g->at, d->near.len - g->len);
    sge = datagrams_place(d, g);
    wr.imm_data = GUINT32_TO_BE((uint32_t)number);
    if (g->write) {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.rdma.remote_addr = (uintptr_t)d->far.at;
        wr.wr.rdma.rkey = d->far.mr->rkey;
    }
    if (d->ah) {
        wr.wr.ud.ah = d->ah;
        wr.wr.ud.remote_qpn = d->to_qp->qp_num;
        wr.wr.ud.remote_qkey = datagrams_draw_qkey(d, g);
    }
    g->lost |= !g->write && g->len > d->size;
    d->lost += g->lost;
    sim_must(d->job, ibv_post_send(d->qp, &wr, &bad));
}

static bool datagrams_may_end_as(const struct datagrams *d, const struct datagram *g,
                                 enum ibv_wc_status status)
{
    bool may_flush = d->broken || d->state == DATAGRAMS_DRAIN;

    return status == IBV_WC_WR_FLUSH_ERR ? may_flush : status == g->ends && !d->broken;
}

static bool datagrams_poll_sent(struct datagrams *d)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(d->cq, 1, &wc) > 0) {
        sim_check(d->job,
                  wc.wr_id == d->sent && d->state != DATAGRAMS_ARE_QUIET &&
                      datagrams_may_end_as(d, &d->known[d->sent % DATAGRAMS_KNOWN], wc.status),
                  "completion %" PRIu64 " (%s), not %" PRIu64, wc.wr_id,
                  ibv_wc_status_str(wc.status), d->sent);
        d->job->sim->tally.errors += wc.status && !d->broken;
        d->broken |= wc.status != IBV_WC_SUCCESS;
        d->sent++;
        d->quiet_ns = sim_quiet_ns(d->job->sim) + USED_MS * SIM_MS;
        d->job->sim->tally.checks++;
        did = true;
    }
    return did;
}

/* -- receiving --------------------------------------------------------------------------------- */

static void datagrams_take(struct datagrams *d, const struct ibv_wc *wc)
{
    uint32_t number = GUINT32_FROM_BE(wc->imm_data), grh = d->ah ? DATAGRAMS_GRH : 0;
    struct datagram *g = &d->known[number % DATAGRAMS_KNOWN];
    uint8_t *slot = intake_take(&d->in, wc);

    sim_check(d->job, d->state != DATAGRAMS_ARE_QUIET,
              "a message is received after its connection");
    if (d->state == DATAGRAMS_DRAIN && wc->status == IBV_WC_WR_FLUSH_ERR) {
        intake_forget(&d->in, slot);
        return;
    }
    sim_check(d->job, wc->status == IBV_WC_SUCCESS, "a receive fails: %s",
              ibv_wc_status_str(wc->status));
    sim_check(d->job, wc->wc_flags & IBV_WC_WITH_IMM && number < d->posted,
              "a message is received that nobody has sent");
    d->received++;
    d->job->sim->tally.messages++;
    d->job->sim->tally.checks++;
    sim_check(d->job, number >= d->first && !g->ends, "message %u was not to be sent", number);
    if (g->number != number) { /* it came so late that it is no longer remembered */
        sim_check(d->job, sim_is_disorderly(d->job->sim), "message %u is late", number);
        intake_forget(&d->in, slot);
        return;
    }
    sim_check(d->job, sim_is_disorderly(d->job->sim) || (!g->seen && number >= d->newest),
              "message %u arrives again, or after %" PRIu64, number, d->newest);
    sim_check(d->job, !g->lost, "message %u is received, of another Q_Key or too long", number);
    g->seen++;
    d->newest = MAX(d->newest, number + 1ull);
    d->job->sim->tally.bytes += g->len;
    sim_check(d->job, wc->byte_len == g->len + (g->write ? 0 : grh),
              "message %u is of %u bytes, not %u", number, wc->byte_len, g->len + grh);
    sim_check(d->job, !d->ah || wc->src_qp == d->qp->qp_num, "message %u is from QP 0x%x", number,
              wc->src_qp);
    if (!g->write) {
        sim_check(d->job, !memcmp(slot + grh, d->near.at + g->at, g->len),
                  "other bytes of message %u were received than were sent", number);
    }
    if (!d->ah && (datagrams_faults(d) || d->size < d->most)) {
        /* The rest of a message that was abandoned in the middle; this message got its receive. */
        intake_forget(&d->in, slot);
    } else if (g->write) {
        intake_check(&d->in, slot, 0, slot, 0);
    } else {
        intake_check(&d->in, slot, grh, d->near.at + g->at, g->len);
    }
}

static bool datagrams_poll_received(struct datagrams *d)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(d->to_cq, 1, &wc) > 0) {
        datagrams_take(d, &wc);
        did = true;
    }
    return did;
}

/* -- errors ------------------------------------------------------------------------------------ */

/* Ends both QPs, so that all their outstanding work comes back. */
static void datagrams_end(struct datagrams *d)
{
    sim_note(d->job, "moves its QPs to the error state");
    d->state = DATAGRAMS_DRAIN;
    connect_move(d->job, d->qp, IBV_QPS_ERR);
    connect_move(d->job, d->to_qp, IBV_QPS_ERR);
}

static void datagrams_maybe_end(struct datagrams *d)
{
    struct chance *chance = &d->job->chance;

    if (d->broken) {
        datagrams_end(d);
    } else if (chance_happens(chance, (unsigned)d->job->sim->options.errors) &&
               datagrams_may_send(d)) {
        switch (chance_below(chance, 4)) {
        case 0:
            datagrams_send(d, IBV_WC_LOC_PROT_ERR);
            break;
        case 1:
            datagrams_send(d, d->ah ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
            break;
        default:
            datagrams_end(d);
        }
    }
}

/* All messages that have not arrived by now are lost. */
static bool datagrams_step_end(struct datagrams *d)
{
    if (d->state == DATAGRAMS_DRAIN && d->sent == d->posted && !d->in.posted) {
        d->state = DATAGRAMS_ARE_QUIET;
        d->again_ns = sim_quiet_ns(d->job->sim);
        d->lost = d->posted - d->received;
        d->limit = MAX(d->limit, d->posted);
        return true;
    }
    if (d->state == DATAGRAMS_ARE_QUIET && d->job->sim->world->now_ns >= d->again_ns) {
        connect_move(d->job, d->qp, IBV_QPS_RESET);
        connect_move(d->job, d->to_qp, IBV_QPS_RESET);
        datagrams_begin(d);
        d->job->sim->tally.connections++;
        return true;
    }
    return false;
}

bool datagrams_step(struct datagrams *d)
{
    bool did = datagrams_poll_sent(d);
    unsigned n = (unsigned)chance_from(&d->job->chance, 1, 8);

    did |= datagrams_poll_received(d);
    if (d->state != DATAGRAMS_RUN) {
        return datagrams_step_end(d) || did;
    }
    datagrams_maybe_end(d);
    if (d->state == DATAGRAMS_RUN && chance_below(&d->job->chance, 4)) {
        did |= intake_post(&d->in, (unsigned)chance_from(&d->job->chance, 1, SLOTS));
    }
    for (; n && datagrams_may_send(d); n--) {
        datagrams_send(d, IBV_WC_SUCCESS);
        did = true;
    }
    return did;
}

bool datagrams_is_done(const struct datagrams *d)
{
    return d->state == DATAGRAMS_RUN && !d->broken && d->sent == d->limit &&
           (d->job->sim->world->now_ns >= d->quiet_ns ||
            (!datagrams_faults(d) && d->received + d->lost == d->limit));
}

void datagrams_check(struct datagrams *d)
{
    sim_check(d->job, datagrams_faults(d) || d->received + d->lost == d->limit,
              "%" PRIu64 " of %" PRIu64 " messages have arrived, on a fabric without faults",
              d->received, d->limit - d->lost);
}
