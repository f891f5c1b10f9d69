/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packets from one host to another, whose receive queues share them by receive-side scaling:
 * the frame is the one that was sent, byte by byte, with the checksums that the device was to put
 * in; it comes to the queue that a Toeplitz hash of its addresses says; a large TCP packet comes as
 * the segments that it must become. eth_message.h has the reference for all of that.
 *
 * Frames may be lost and doubled, as on any Ethernet. Those with a wrong bit are: the fabric flips
 * none where no ICRC would tell.
 */
#include <errno.h>
#include <inttypes.h>
#include "tests/sim/fabric/eth_message.h"
#include "tests/sim/fabric/intake.h"

#define QUEUES    4u
#define LOG_TABLE 3u
#define TABLE     (1u << LOG_TABLE)
#define DEPTH     16u   /* messages that are outstanding */
#define KNOWN     256u  /* the last ones are remembered */
#define MOST      4000u /* bytes of a frame: the hosts' MTU is 4,200 */
#define LARGEST   (8 * MOST)
#define USED_MS   5 /* after which what has not arrived is lost */
#define PORT      20000u

struct eth_known {
    struct eth_message message;
    bool sums;     /* the device puts them in */
    uint64_t seen; /* a bit for each packet */
};

struct eth_queue {
    struct ibv_cq *cq;
    struct ibv_wq *wq;
    struct intake in;
    uint64_t newest; /* number and packet of the last one */
};

struct eth {
    struct eth_kind kind;
    struct ibv_qp *qp, *rss;
    struct ibv_cq *cq;
    struct ibv_rwq_ind_table *table;
    struct ibv_flow *flow;
    struct eth_queue queue[QUEUES];
    unsigned entries[TABLE]; /* queues */
    struct span near;
    uint32_t most, stride;
    uint64_t seed, posted, sent, limit, packets, received, quiet_ns;
    struct eth_known known[KNOWN];
    uint8_t payload[LARGEST], packet[MOST + ETH_MOST_HEADERS];
};

/* -- sending ----------------------------------------------------------------------------------- */

static bool eth_has_faults(const struct job *job)
{
    return sim_is_lossy(job->sim) || sim_is_disorderly(job->sim);
}

/* One that nothing is to be lost of does not send what there is no receive for. */
static bool eth_may_send(const struct job *job, const struct eth *e)
{
    uint64_t room = UINT64_MAX;

    for (unsigned i = 0; i < QUEUES; i++) {
        room = MIN(room, e->queue[i].in.posted);
    }
    return e->posted < e->limit && e->posted - e->sent < DEPTH &&
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
    known->sums = msg->mss || chance_one_in(&job->chance, 2);
    eth_message_fill(msg, e->payload);
    eth_message_packet(msg, &e->kind, 0, false, e->payload, at);
    sge.length = msg->headers_len + msg->len; /* without what pads it */
    if (msg->mss) {
        wr.opcode = IBV_WR_TSO;
        wr.tso.hdr = msg->headers;
        wr.tso.hdr_sz = (uint16_t)msg->headers_len;
        wr.tso.mss = (uint16_t)msg->mss;
        memcpy(at, e->payload, msg->len);
        sge.length = msg->len;
    } else if (known->sums) { /* whatever is there */
        chance_fill(&job->chance, at + msg->headers_len - (e->kind.tcp ? 4 : 2), 2);
    }
    wr.send_flags |= known->sums ? IBV_SEND_IP_CSUM : 0;
    e->packets += eth_message_packets(msg);
    sim_must(job, ibv_post_send(e->qp, &wr, &bad));
}

static bool eth_poll_sent(struct job *job, struct eth *e)
{
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(e->cq, 1, &wc) > 0) {
        sim_check(job, wc.status == IBV_WC_SUCCESS && wc.wr_id == e->sent,
                  "completion %" PRIu64 " (%s), not %" PRIu64, wc.wr_id,
                  ibv_wc_status_str(wc.status), e->sent);
        e->sent++;
        e->quiet_ns = sim_quiet_ns(job->sim) + USED_MS * SIM_MS;
        job->sim->tally.checks++;
        did = true;
    }
    return did;
}

/* -- receiving --------------------------------------------------------------------------------- */

static void eth_check(struct job *job, struct eth *e, unsigned nth, const struct ibv_wc *wc,
                      uint8_t *slot)
{
    const uint8_t *payload = slot + eth_headers_len(&e->kind);
    uint32_t number = eth_payload_number(payload), packet = eth_payload_nth(payload);
    struct eth_known *known = &e->known[number % KNOWN];
    struct eth_queue *q = &e->queue[nth];
    const struct eth_message *msg = &known->message;
    unsigned right = e->entries[eth_message_hash(msg, &e->kind) % TABLE];
    size_t len;

    sim_check(job, number < e->posted, "a packet is received that nobody has sent");
    if (msg->number != number) { /* it comes too late to be known */
        sim_check(job, sim_is_disorderly(job->sim), "message %u is late", number);
        intake_forget(&q->in, slot);
        return;
    }
    sim_check(job, packet < eth_message_packets(msg), "message %u has no packet %u", number,
              packet);
    sim_check(job, right == nth, "message %u comes to queue %u, and its hash says %u", number, nth,
              right);
    sim_check(job,
              sim_is_disorderly(job->sim) ||
                  (!(known->seen >> packet & 1) && ((uint64_t)number << 8 | packet) >= q->newest),
              "packet %u of message %u comes again, or late", packet, number);
    known->seen |= 1ull << packet;
    q->newest = ((uint64_t)number << 8 | packet) + 1;
    eth_message_fill(msg, e->payload);
    len = eth_message_packet(msg, &e->kind, packet, known->sums, e->payload, e->packet);
    sim_check(job, wc->byte_len == len, "packet %u of message %u is of %u bytes, not %zu", packet,
              number, wc->byte_len, len);
    /* libmlx5 says nothing of checksums for a queue of its own (handle_responder() of its cq.c) */
    sim_check(job, !(wc->wc_flags & IBV_WC_IP_CSUM_OK), "the checksum of message %u is judged",
              number);
    for (size_t i = 0; i < len; i++) {
        sim_check(job, slot[i] == e->packet[i],
                  "byte %zu of packet %u of message %u is 0x%02x, not 0x%02x", i, packet, number,
                  slot[i], e->packet[i]);
    }
    intake_check(&q->in, slot, 0, e->packet, len);
    job->sim->tally.bytes += len;
}

static bool eth_poll_received(struct job *job, struct eth *e, unsigned nth)
{
    struct eth_queue *q = &e->queue[nth];
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(q->cq, 1, &wc) > 0) {
        uint8_t *slot = intake_take(&q->in, &wc);

        sim_check(job, wc.status == IBV_WC_SUCCESS, "a receive fails: %s",
                  ibv_wc_status_str(wc.status));
        eth_check(job, e, nth, &wc, slot);
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
    struct ibv_qp_attr to = {.port_num = 1};

    e->cq = ibv_create_cq(host->ctx, DEPTH, NULL, NULL, 0);
    sim_check(job, e->cq, "no CQ: errno %d", errno);
    attr.send_cq = attr.recv_cq = e->cq;
    e->qp = ibv_create_qp_ex(host->ctx, &attr);
    sim_check(job, e->qp, "no raw packet QP: errno %d", errno);
    for (to.qp_state = IBV_QPS_INIT; to.qp_state <= IBV_QPS_RTS; to.qp_state++) {
        sim_must(job,
                 ibv_modify_qp(e->qp, &to,
                               IBV_QP_STATE | (to.qp_state == IBV_QPS_INIT ? IBV_QP_PORT : 0)));
    }
    e->near = sim_span(job, host, (size_t)DEPTH * e->stride);
}

static void eth_make_queue(struct job *job, struct eth *e, struct eth_queue *q)
{
    struct sim_host *host = job->host[1];
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = INTAKE_SLOTS, .max_sge = 1, .pd = host->pd};
    struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

    q->cq = ibv_create_cq(host->ctx, INTAKE_SLOTS, NULL, NULL, 0);
    sim_check(job, q->cq, "no CQ: errno %d", errno);
    attr.cq = q->cq;
    q->wq = ibv_create_wq(host->ctx, &attr);
    sim_check(job, q->wq, "no receive queue: errno %d", errno);
    sim_must(job, ibv_modify_wq(q->wq, &ready));
    intake_init(&q->in, job, host, INTAKE_SLOTS, e->most + ETH_MOST_HEADERS);
    q->in.wq = q->wq;
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

    memcpy(rule.eth.val.dst_mac, e->kind.dmac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    e->flow = ibv_create_flow(e->rss, &rule.attr);
    sim_check(job, e->flow, "no flow: errno %d", errno);
}

static void eth_make_receiver(struct job *job, struct eth *e)
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
    e->rss = ibv_create_qp_ex(host->ctx, &attr);
    sim_check(job, e->rss, "no RSS QP: errno %d", errno);
    eth_make_flow(job, e);
}

static void kind_eth_make(struct job *job)
{
    struct eth *e = job->state;

    eth_draw_kind(job, e);
    eth_make_sender(job, e);
    eth_make_receiver(job, e);
}

static bool kind_eth_step(struct job *job)
{
    struct eth *e = job->state;
    bool did = eth_poll_sent(job, e);
    unsigned n = (unsigned)chance_from(&job->chance, 1, 8);

    for (unsigned i = 0; i < QUEUES; i++) {
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
    sim_must(job, ibv_destroy_qp(e->rss));
    sim_must(job, ibv_destroy_rwq_ind_table(e->table));
    for (unsigned i = 0; i < QUEUES; i++) {
        sim_must(job, ibv_destroy_wq(e->queue[i].wq));
        sim_must(job, ibv_destroy_cq(e->queue[i].cq));
        intake_free(&e->queue[i].in);
    }
    sim_must(job, ibv_destroy_qp(e->qp));
    sim_must(job, ibv_destroy_cq(e->cq));
    sim_span_free(job, &e->near);
}

const struct kind kind_eth = {
    .name = "eth",
    .about = "raw packets: checksums, large sends, receive-side scaling",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct eth),
    .make = kind_eth_make,
    .step = kind_eth_step,
    .is_done = kind_eth_is_done,
    .check = kind_eth_check,
    .free = kind_eth_free,
};
