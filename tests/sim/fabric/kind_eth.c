/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packets from one host to another. The received frame equals the sent frame byte by byte, with
 * the checksums that the device had to insert; a large TCP packet arrives as the segments that it
 * must become. Either receive queues share the packets by receive-side scaling, and a packet comes
 * to the queue that a Toeplitz hash of its addresses selects; or one QP receives all packets and
 * reports for each whether its checksums are right. With VLAN tags, the flow's rule may match one
 * VLAN, and the tag may be removed and reported separately. eth_message.h has the reference for all
 * of that.
 *
 * Now and then a packet names an invalid key: it fails, the packets behind it are flushed, none of
 * their bytes is sent, and the queue is made ready again.
 *
 * Frames may be lost and duplicated, as on any Ethernet. Frames with a wrong bit are lost: the
 * fabric flips no bit where no ICRC would detect it.
 */
#include <errno.h>
#include <inttypes.h>
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/eth_message.h"
#include "tests/sim/fabric/intake.h"

#define QUEUES    4u
#define LOG_TABLE 3u
#define TABLE     (1u << LOG_TABLE)
#define DEPTH     16u   /* outstanding messages */
#define KNOWN     256u  /* the newest messages, which are remembered */
#define MOST      4000u /* bytes of a frame: the hosts' MTU is 4,200 */
#define LARGEST   (8 * MOST)
#define USED_MS   5 /* a message that has not arrived after this time is lost */
#define PORT      20000u

struct eth_known {
    struct eth_message message;
    bool sums;     /* the device inserts the checksums */
    bool bad;      /* its key is invalid */
    bool unwanted; /* it must not be received: it was not sent, or no rule matches it */
    uint64_t seen; /* a bit for each packet */
};

struct eth_queue {
    struct ibv_cq_ex *cq;
    struct ibv_wq *wq;
    struct intake in;
    uint64_t newest; /* number and packet of the last one that arrived */
};

struct eth {
    struct eth_kind kind;
    bool scales;         /* several queues, by receive-side scaling; otherwise one QP */
    bool strips, sieves; /* the tag is removed; the rule matches one VLAN */
    unsigned queues;
    struct ibv_qp *qp, *to;
    struct ibv_cq *cq;
    struct ibv_rwq_ind_table *table;
    struct ibv_flow *flow;
    struct eth_queue queue[QUEUES];
    unsigned entries[TABLE]; /* the queue of each entry */
    struct span near;
    uint32_t most, stride;
    uint64_t seed, posted, sent, limit, packets, received, quiet_ns;
    bool broken; /* a packet has failed */
    struct eth_known known[KNOWN];
    uint8_t payload[LARGEST], packet[MOST + ETH_MOST_HEADERS];
};

/* -- sending ----------------------------------------------------------------------------------- */

static bool eth_has_faults(const struct job *job)
{
    return sim_is_lossy(job->sim) || sim_is_disorderly(job->sim);
}

/* If no packet may be lost, a sender does not send more than there are receives. */
static bool eth_may_send(const struct job *job, const struct eth *e)
{
    uint64_t room = UINT64_MAX;

    for (unsigned i = 0; i < e->queues; i++) {
        room = MIN(room, e->queue[i].in.posted);
    }
    return !e->broken && e->posted < e->limit && e->posted - e->sent < DEPTH &&
           (eth_has_faults(job) || e->packets - e->received + 8 <= room);
}

static void eth_send(struct job *job, struct eth *e)
{
    uint64_t n = e->posted++;
    struct eth_known *known = &e->known[n % KNOWN];
    struct eth_message *msg = &known->message;
    uint8_t *at = e->near.at + n % DEPTH * e->stride;
    struct ibv_sge sge = {(uintptr_t)at, 0, e->near.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = n,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    eth_message_draw(msg, &e->kind, e->seed, (uint32_t)n, e->most);
    known->seen = 0;
    known->bad = chance_happens(&job->chance, (unsigned)job->sim->options.errors);
    known->unwanted = known->bad || (e->sieves && eth_message_is_astray(msg, &e->kind));
    known->sums = msg->mss || chance_one_in(&job->chance, 2);
    eth_message_fill(msg, e->payload);
    eth_message_packet(msg, &e->kind, 0, false, e->payload, at);
    sge.length = msg->headers_len + msg->len; /* without its padding */
    if (msg->mss) {
        wr.opcode = IBV_WR_TSO;
        wr.tso.hdr = msg->headers;
        wr.tso.hdr_sz = (uint16_t)msg->headers_len;
        wr.tso.mss = (uint16_t)msg->mss;
        memcpy(at, e->payload, msg->len);
        sge.length = msg->len;
    } else if (known->sums) { /* any value */
        chance_fill(&job->chance, at + msg->headers_len - (e->kind.tcp ? 4 : 2), 2);
    }
    wr.send_flags |= known->sums ? IBV_SEND_IP_CSUM : 0;
    sge.lkey ^= known->bad ? 0x5500 : 0;
    e->packets += known->unwanted ? 0 : eth_message_packets(msg);
    sim_must(job, ibv_post_send(e->qp, &wr, &bad));
}

/* Packets before the failed one were sent, packets behind it were not. */
static void eth_on_sent(struct job *job, struct eth *e, const struct ibv_wc *wc)
{
    struct eth_known *known = &e->known[wc->wr_id % KNOWN];
    enum ibv_wc_status right = e->broken    ? IBV_WC_WR_FLUSH_ERR
                               : known->bad ? IBV_WC_LOC_PROT_ERR
                                            : IBV_WC_SUCCESS;

    sim_check(job, wc->status == right && wc->wr_id == e->sent && e->sent < e->posted,
              "completion %" PRIu64 " (%s), not %" PRIu64 " (%s)", wc->wr_id,
              ibv_wc_status_str(wc->status), e->sent, ibv_wc_status_str(right));
    e->sent++;
    job->sim->tally.checks++;
    if (right) {
        job->sim->tally.errors += !e->broken;
        e->broken = true;
        e->packets -= known->unwanted ? 0 : eth_message_packets(&known->message);
        known->unwanted = true;
    }
}

static void eth_move_up(struct job *job, struct ibv_qp *qp, enum ibv_qp_state last)
{
    struct ibv_qp_attr to = {.port_num = 1};

    for (to.qp_state = IBV_QPS_INIT; to.qp_state <= last; to.qp_state++) {
        sim_must(job, ibv_modify_qp(
                          qp, &to, IBV_QP_STATE | (to.qp_state == IBV_QPS_INIT ? IBV_QP_PORT : 0)));
    }
}

/* A kernel learns that a send queue has entered the error state when it is asked for the QP's
 * state. Before that it does not know from which state it moves the queue (query_sq() of
 * mlx5_ib). */
static void eth_make_ready_again(struct job *job, struct eth *e)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    sim_must(job, ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init));
    connect_move(job, e->qp, IBV_QPS_RESET);
    eth_move_up(job, e->qp, IBV_QPS_RTS);
    e->broken = false;
}

static bool eth_poll_sent(struct job *job, struct eth *e)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(e->cq, 1, &wc) > 0) {
        eth_on_sent(job, e, &wc);
        e->quiet_ns = sim_quiet_ns(job->sim) + USED_MS * SIM_MS;
        did = true;
    }
    if (e->broken && e->sent == e->posted) {
        eth_make_ready_again(job, e);
        did = true;
    }
    return did;
}

/* -- receiving --------------------------------------------------------------------------------- */

struct eth_wc {
    struct ibv_wc wc; /* wr_id, status, byte_len, wc_flags */
    uint16_t tci;     /* of the removed tag */
};

static bool eth_poll(struct job *job, struct eth_queue *q, struct eth_wc *w)
{
    struct ibv_poll_cq_attr attr = {0};
    int err = ibv_start_poll(q->cq, &attr);

    if (err) {
        sim_check(job, err == ENOENT, "ibv_start_poll: %d", err);
        return false;
    }
    *w = (struct eth_wc){.wc = {.wr_id = q->cq->wr_id, .status = q->cq->status}};
    if (!w->wc.status) {
        w->wc.byte_len = ibv_wc_read_byte_len(q->cq);
        w->wc.wc_flags = ibv_wc_read_wc_flags(q->cq);
        w->tci = ibv_wc_read_cvlan(q->cq);
    }
    ibv_end_poll(q->cq);
    return true;
}

/* Finds the message that the payload names; it must be a packet that may come now. */
static struct eth_known *eth_find(struct job *job, struct eth *e, unsigned nth,
                                  const uint8_t *payload)
{
    uint32_t number = eth_payload_number(payload), packet = eth_payload_nth(payload);
    struct eth_known *known = &e->known[number % KNOWN];
    const struct eth_message *msg = &known->message;
    unsigned right = e->entries[eth_message_hash(msg, &e->kind) % TABLE];
    struct eth_queue *q = &e->queue[nth];

    sim_check(job, number < e->posted, "a packet is received that nobody has sent");
    if (msg->number != number) { /* it came so late that it is no longer remembered */
        sim_check(job, sim_is_disorderly(job->sim), "message %u is late", number);
        return NULL;
    }
    sim_check(job, packet < eth_message_packets(msg), "message %u has no packet %u", number,
              packet);
    sim_check(job, !known->unwanted, "message %u is received, which was not sent, or to others",
              number);
    sim_check(job, right == nth, "message %u comes to queue %u, and its hash says %u", number, nth,
              right);
    sim_check(job,
              sim_is_disorderly(job->sim) ||
                  (!(known->seen >> packet & 1) && ((uint64_t)number << 8 | packet) >= q->newest),
              "packet %u of message %u comes again, or late", packet, number);
    known->seen |= 1ull << packet;
    q->newest = ((uint64_t)number << 8 | packet) + 1;
    return known;
}

/* libmlx5 reports correct checksums for IPv4 only, and never for a queue that is not a QP's
 * (handle_responder() and get_csum_ok() of its cq.c). */
static bool eth_sums_are_right(const struct eth *e, const struct eth_known *known)
{
    const struct eth_message *msg = &known->message;

    return !e->scales && !e->kind.ipv6 && (known->sums || (!msg->bad_sum && !msg->bad_l3_sum));
}

static void eth_check(struct job *job, struct eth *e, unsigned nth, const struct eth_wc *w,
                      uint8_t *slot)
{
    size_t tag = e->strips ? ETH_TAG : 0, len;
    const uint8_t *payload = slot + eth_headers_len(&e->kind) - tag;
    uint32_t number = eth_payload_number(payload), packet = eth_payload_nth(payload);
    struct eth_known *known = eth_find(job, e, nth, payload);
    struct intake *in = &e->queue[nth].in;

    if (!known) {
        intake_forget(in, slot);
        return;
    }
    eth_message_fill(&known->message, e->payload);
    len = eth_message_packet(&known->message, &e->kind, packet, known->sums, e->payload, e->packet);
    len -= tag;
    memmove(e->packet + ETH_TAG_AT, e->packet + ETH_TAG_AT + tag, len - ETH_TAG_AT);
    sim_check(job, w->wc.byte_len == len, "packet %u of message %u is of %u bytes, not %zu", packet,
              number, w->wc.byte_len, len);
    sim_check(job, w->tci == (e->strips ? known->message.tci : 0),
              "message %u has VLAN tag 0x%04x, and 0x%04x is told", number, known->message.tci,
              w->tci);
    sim_check(job, !(w->wc.wc_flags & IBV_WC_IP_CSUM_OK) == !eth_sums_are_right(e, known),
              "the checksums of message %u are judged wrongly", number);
    for (size_t i = 0; i < len; i++) {
        sim_check(job, slot[i] == e->packet[i],
                  "byte %zu of packet %u of message %u is 0x%02x, not 0x%02x", i, packet, number,
                  slot[i], e->packet[i]);
    }
    intake_check(in, slot, 0, e->packet, len);
    job->sim->tally.bytes += len;
}

static bool eth_poll_received(struct job *job, struct eth *e, unsigned nth)
{
    struct eth_queue *q = &e->queue[nth];
    struct eth_wc w;
    bool did = false;

    while (eth_poll(job, q, &w)) {
        uint8_t *slot = intake_take(&q->in, &w.wc);

        sim_check(job, w.wc.status == IBV_WC_SUCCESS, "a receive fails: %s",
                  ibv_wc_status_str(w.wc.status));
        eth_check(job, e, nth, &w, slot);
        e->received++;
        job->sim->tally.messages++;
        job->sim->tally.checks++;
        did = true;
    }
    return did;
}

/* -- the job ----------------------------------------------------------------------------------- */

static void eth_draw_kind(struct job *job, struct eth *e)
{
    struct chance *chance = &job->chance;
    struct eth_kind *kind = &e->kind;

    memcpy(kind->dmac, job->host[1]->config.mac, 6);
    memcpy(kind->smac, job->host[0]->config.mac, 6);
    kind->ipv6 = chance_one_in(chance, 2);
    kind->tcp = chance_below(chance, 3);
    kind->dport = (uint16_t)(PORT + job->number % 10000);
    kind->hash_src = true;
    kind->hash_dst = chance_one_in(chance, 2);
    kind->hash_sport = chance_one_in(chance, 2);
    chance_fill(chance, kind->key, ETH_KEY);
    kind->tagged = chance_one_in(chance, 2);
    kind->vid = (uint16_t)chance_below(chance, 0xfff);
    e->strips = kind->tagged && chance_one_in(chance, 2);
    e->sieves = kind->tagged && chance_one_in(chance, 2);
    e->scales = chance_below(chance, 3);
    e->queues = e->scales ? QUEUES : 1;
    e->seed = chance_next(chance);
    e->limit = job->sim->options.ops;
    e->most = (uint32_t)CLAMP(job->sim->options.size, ETH_LEAST + 64, MOST - ETH_MOST_HEADERS);
    e->stride = 8 * e->most + ETH_MOST_HEADERS;
}

static void eth_make_sender(struct job *job, struct eth *e)
{
    struct sim_host *host = job->host[0];
    struct ibv_qp_init_attr_ex attr = {.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
                                       .qp_type = IBV_QPT_RAW_PACKET,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
                                       .pd = host->pd,
                                       .max_tso_header = ETH_MOST_HEADERS};

    e->cq = ibv_create_cq(host->ctx, DEPTH, NULL, NULL, 0);
    sim_check(job, e->cq, "no CQ: errno %d", errno);
    attr.send_cq = attr.recv_cq = e->cq;
    e->qp = ibv_create_qp_ex(host->ctx, &attr);
    sim_check(job, e->qp, "no raw packet QP: errno %d", errno);
    eth_move_up(job, e->qp, IBV_QPS_RTS);
    e->near = sim_span(job, host, (size_t)DEPTH * e->stride);
}

static struct ibv_cq *eth_make_cq(struct job *job, struct eth *e, struct eth_queue *q)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = INTAKE_SLOTS,
                                       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_CVLAN};

    q->cq = ibv_create_cq_ex(job->host[1]->ctx, &attr);
    sim_check(job, q->cq, "no CQ: errno %d", errno);
    intake_init(&q->in, job, job->host[1], INTAKE_SLOTS, e->most + ETH_MOST_HEADERS);
    return ibv_cq_ex_to_cq(q->cq);
}

static void eth_make_queue(struct job *job, struct eth *e, struct eth_queue *q)
{
    struct sim_host *host = job->host[1];
    struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ,
                                    .max_wr = INTAKE_SLOTS,
                                    .max_sge = 1,
                                    .pd = host->pd,
                                    .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
                                    .create_flags = e->strips ? IBV_WQ_FLAGS_CVLAN_STRIPPING : 0};
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

    attr.cq = eth_make_cq(job, e, q);
    q->in.wq = q->wq = ibv_create_wq(host->ctx, &attr);
    sim_check(job, q->wq, "no receive queue: errno %d", errno);
    sim_must(job, ibv_modify_wq(q->wq, &ready));
}

static void eth_make_flow(struct job *job, struct eth *e)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
        struct ibv_flow_spec_tcp_udp l4;
    } rule = {
        .attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2, .port = 1},
        .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
        .l4 = {.type = e->kind.tcp ? IBV_FLOW_SPEC_TCP : IBV_FLOW_SPEC_UDP,
               .size = sizeof(rule.l4),
               .val = {.dst_port = GUINT16_TO_BE(e->kind.dport)},
               .mask = {.dst_port = 0xffff}}};

    if (e->sieves) {
        rule.eth.val.vlan_tag = GUINT16_TO_BE(e->kind.vid);
        rule.eth.mask.vlan_tag = GUINT16_TO_BE(0x0fff);
    }
    memcpy(rule.eth.val.dst_mac, e->kind.dmac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    e->flow = ibv_create_flow(e->to, &rule.attr);
    sim_check(job, e->flow, "no flow: errno %d", errno);
}

static void eth_make_queues(struct job *job, struct eth *e)
{
    struct sim_host *host = job->host[1];
    struct ibv_wq *wqs[TABLE];
    struct ibv_rwq_ind_table_init_attr table = {.log_ind_tbl_size = LOG_TABLE, .ind_tbl = wqs};
    const struct eth_kind *kind = &e->kind;
    uint64_t src = kind->ipv6 ? IBV_RX_HASH_SRC_IPV6 : IBV_RX_HASH_SRC_IPV4;
    uint64_t dst = kind->ipv6 ? IBV_RX_HASH_DST_IPV6 : IBV_RX_HASH_DST_IPV4;
    uint64_t sport = kind->tcp ? IBV_RX_HASH_SRC_PORT_TCP : IBV_RX_HASH_SRC_PORT_UDP;
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
        .pd = host->pd,
        .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                         .rx_hash_key_len = ETH_KEY,
                         .rx_hash_key = e->kind.key,
                         .rx_hash_fields_mask = (kind->hash_src ? src : 0) |
                                                (kind->hash_dst ? dst : 0) |
                                                (kind->hash_sport ? sport : 0)}};

    for (unsigned i = 0; i < QUEUES; i++) {
        eth_make_queue(job, e, &e->queue[i]);
    }
    for (unsigned i = 0; i < TABLE; i++) {
        e->entries[i] = (unsigned)chance_below(&job->chance, QUEUES);
        wqs[i] = e->queue[e->entries[i]].wq;
    }
    attr.rwq_ind_tbl = e->table = ibv_create_rwq_ind_table(host->ctx, &table);
    sim_check(job, e->table, "no indirection table: errno %d", errno);
    e->to = ibv_create_qp_ex(host->ctx, &attr);
    sim_check(job, e->to, "no RSS QP: errno %d", errno);
}

static void eth_make_qp(struct job *job, struct eth *e)
{
    struct sim_host *host = job->host[1];
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_recv_wr = INTAKE_SLOTS, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .pd = host->pd,
        .create_flags = e->strips ? IBV_QP_CREATE_CVLAN_STRIPPING : 0};

    attr.send_cq = attr.recv_cq = eth_make_cq(job, e, &e->queue[0]);
    e->queue[0].in.qp = e->to = ibv_create_qp_ex(host->ctx, &attr);
    sim_check(job, e->to, "no raw packet QP: errno %d", errno);
    eth_move_up(job, e->to, IBV_QPS_RTR);
}

static void kind_eth_make(struct job *job)
{
    struct eth *e = job->state;

    eth_draw_kind(job, e);
    eth_make_sender(job, e);
    if (e->scales) {
        eth_make_queues(job, e);
    } else {
        eth_make_qp(job, e);
    }
    eth_make_flow(job, e);
}

static bool kind_eth_step(struct job *job)
{
    struct eth *e = job->state;
    bool did = eth_poll_sent(job, e);
    unsigned n = (unsigned)chance_from(&job->chance, 1, 8);

    for (unsigned i = 0; i < e->queues; i++) {
        did |= eth_poll_received(job, e, i);
        if (chance_below(&job->chance, 4)) {
            did |=
                intake_post(&e->queue[i].in, (unsigned)chance_from(&job->chance, 1, INTAKE_SLOTS));
        }
    }
    for (; n && eth_may_send(job, e); n--) {
        eth_send(job, e);
        did = true;
    }
    return did;
}

static bool kind_eth_is_done(const struct job *job)
{
    const struct eth *e = job->state;

    return e->sent == e->limit && (job->sim->world->now_ns >= e->quiet_ns ||
                                   (!eth_has_faults(job) && e->received == e->packets));
}

static void kind_eth_check(struct job *job)
{
    const struct eth *e = job->state;

    sim_check(job, eth_has_faults(job) || e->received == e->packets,
              "%" PRIu64 " of %" PRIu64 " packets have arrived, on a fabric without faults",
              e->received, e->packets);
}

static void kind_eth_free(struct job *job)
{
    struct eth *e = job->state;

    sim_must(job, ibv_destroy_flow(e->flow));
    sim_must(job, ibv_destroy_qp(e->to));
    if (e->scales) {
        sim_must(job, ibv_destroy_rwq_ind_table(e->table));
    }
    for (unsigned i = 0; i < e->queues; i++) {
        if (e->scales) {
            sim_must(job, ibv_destroy_wq(e->queue[i].wq));
        }
        sim_must(job, ibv_destroy_cq(ibv_cq_ex_to_cq(e->queue[i].cq)));
        intake_free(&e->queue[i].in);
    }
    sim_must(job, ibv_destroy_qp(e->qp));
    sim_must(job, ibv_destroy_cq(e->cq));
    sim_span_free(job, &e->near);
}

const struct kind kind_eth = {
    .name = "eth",
    .about = "raw packets: checksums, VLAN tags, large sends, receive-side scaling",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct eth),
    .make = kind_eth_make,
    .step = kind_eth_step,
    .is_done = kind_eth_is_done,
    .check = kind_eth_check,
    .free = kind_eth_free,
};
