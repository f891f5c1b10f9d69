/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a network driver leaves to its NIC, at random: checksums of the outer and the inner packet,
 * segments of large TCP and UDP packets, also in tunnels, headers that software names, inserted
 * VLAN tags; headers and data in WQEs, WQEs of several packets. The receiver has cyclic or striding
 * queues, removes VLAN tags or not, hashes inner or outer headers over a table of queues, and its
 * CQs may be compressed. offload.h is the reference: bytes, lengths, tags, hashes, queues, strides.
 *
 * Both hosts are the job's own, because a host has one root of rules. The job writes WQEs and reads
 * CQEs itself (eth_rings.h). Without faults each packet arrives once and in order.
 */
#include <inttypes.h>
#include <string.h>
#include "prm/prm.h"
#include "tests/sim/fabric/eth_rings.h"
#include "tests/sim/fabric/offload.h"

#define QUEUES  2u
#define KNOWN   64u /* the newest messages, which are remembered */
#define WINDOW  4u  /* WQEs on their way */
#define MPW     4u  /* the most packets of a WQE */
#define MOST    3000u
#define BUFFER  4096u /* of a cyclic queue's WQE; at least this for a striding queue's */
#define PAYLOAD (OFFLOAD_PACKETS * MOST)
#define USED_MS 5
#define INLINE  0x80000000u

enum {
    SENDER,
    RECEIVER,
};

struct known {
    struct offload offload;
    uint64_t seen; /* a bit for each packet */
};

struct offload_queue {
    struct ring_cq cq;
    struct ring_rq rq;
    uint32_t used;   /* strides of the oldest WQE that are used */
    uint64_t newest; /* number and packet of the last one that arrived */
};

/* A WQE on its way. */
struct posted {
    uint16_t index;
    unsigned blocks;
};

struct offloads {
    struct sim_host host[2];
    struct offload_kind kind;
    struct ring_hash hash;
    uint8_t key[OFFLOAD_KEY];
    struct ring_cq cq;
    struct ring_sq sq;
    struct offload_queue queue[QUEUES];
    struct ring_way way;
    unsigned entries[RINGS_TABLE];
    bool strips;
    uint32_t most;
    size_t payload_at;
    uint64_t seed, posted, wqes, done, limit, packets, received, quiet_ns;
    struct posted on_way[WINDOW];
    struct span near[WINDOW * MPW];
    struct known known[KNOWN];
    uint8_t payload[PAYLOAD], packet[BUFFER];
};

static bool offloads_is_exact(const struct job *job)
{
    return !sim_is_lossy(job->sim) && !sim_is_disorderly(job->sim);
}

/* -- WQEs -------------------------------------------------------------------------------------- */

struct offload_wqe {
    uint8_t bytes[RINGS_WQE_BYTES];
    size_t len;
};

static void *wqe_add(struct offload_wqe *wqe, size_t len)
{
    void *at = wqe->bytes + wqe->len;

    wqe->len += len;
    g_assert_cmpuint(wqe->len, <=, sizeof(wqe->bytes));
    return at;
}

/* The Ethernet segment; the first bytes of headers may be in it. */
static void wqe_add_eth(struct offload_wqe *wqe, const struct offloads *s, const struct offload *o,
                        uint32_t inline_len)
{
    struct prm_wqe_eth_seg *eth = wqe_add(wqe, PRM_SIZE(wqe_eth_seg));

    PRM_SET(wqe_eth_seg, eth, cs_flags, o->cs_flags);
    PRM_SET(wqe_eth_seg, eth, mss, o->mss);
    if (o->names_headers) {
        PRM_SET(wqe_eth_seg, eth, swp_outer_l3_offset, o->swp[0]);
        PRM_SET(wqe_eth_seg, eth, swp_outer_l4_offset, o->swp[1]);
        PRM_SET(wqe_eth_seg, eth, swp_inner_l3_offset, o->swp[2]);
        PRM_SET(wqe_eth_seg, eth, swp_inner_l4_offset, o->swp[3]);
        PRM_SET(wqe_eth_seg, eth, swp_flags, o->swp_flags);
    }
    if (s->kind.vlan == OFFLOAD_VLAN_INSERTED) {
        PRM_SET(wqe_eth_seg, eth, insert_vlan, 1);
        PRM_SET(wqe_eth_seg, eth, insert_svlan, o->svlan);
        PRM_SET(wqe_eth_seg, eth, vlan_tci, o->tci);
        return;
    }
    PRM_SET(wqe_eth_seg, eth, inline_hdr_sz, inline_len);
    if (inline_len > 2) {
        wqe_add(wqe, (inline_len - 2 + 15) / 16 * 16);
    }
    memcpy(eth->bytes + 14, o->headers, inline_len);
}

static void wqe_add_pointer(struct offload_wqe *wqe, const struct span *span, const uint8_t *at,
                            uint32_t len)
{
    struct prm_wqe_data_seg *seg = wqe_add(wqe, PRM_SIZE(wqe_data_seg));

    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, span->mr->lkey);
    PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)at);
}

static void wqe_add_inline(struct offload_wqe *wqe, const uint8_t *data, uint32_t len)
{
    uint8_t *seg = wqe_add(wqe, (4 + len + 15) / 16 * 16);

    prm_store32(seg, INLINE | len);
    memcpy(seg + 4, data, len);
}

/* Data from `at` on, in pieces: pointers, and short pieces in the WQE. */
static void wqe_add_data(struct offload_wqe *wqe, struct chance *chance, const struct span *span,
                         const uint8_t *at, uint32_t len)
{
    for (unsigned i = 0; i < 2 && len > 1; i++) {
        uint32_t part = (uint32_t)chance_from(chance, 1, len - 1);

        if (chance_one_in(chance, 3)) {
            part = MIN(part, 100);
            wqe_add_inline(wqe, at, part);
        } else {
            wqe_add_pointer(wqe, span, at, part);
        }
        at += part;
        len -= part;
    }
    wqe_add_pointer(wqe, span, at, len);
}

/* -- sending ----------------------------------------------------------------------------------- */

/* Draws the next message, and writes its headers and payload to memory. */
static struct offload *offloads_next(struct job *job, struct offloads *s, const struct span *span,
                                     bool large, const struct offload *like)
{
    uint32_t number = (uint32_t)s->posted++;
    struct known *known = &s->known[number % KNOWN];
    struct offload *o = &known->offload;

    offload_draw(o, &s->kind, &job->chance, number, s->most, large, like);
    known->seen = 0;
    memcpy(span->at, o->headers, o->headers_len);
    offload_fill(o, span->at + o->headers_len);
    s->packets += offload_packets(o);
    return o;
}

static void offloads_send_one(struct job *job, struct offloads *s, struct offload_wqe *wqe,
                              const struct span *span)
{
    const struct offload *o = offloads_next(job, s, span, true, NULL);
    uint32_t inline_len = o->mss ? o->headers_len : 0;

    if (!o->mss && s->kind.vlan != OFFLOAD_VLAN_INSERTED && chance_one_in(&job->chance, 2)) {
        inline_len = (uint32_t)chance_from(&job->chance, 18, o->headers_len);
    }
    wqe_add_eth(wqe, s, o, inline_len);
    wqe_add_data(wqe, &job->chance, span, span->at + inline_len,
                 o->headers_len + o->len - inline_len);
}

static void offloads_send_several(struct job *job, struct offloads *s, struct offload_wqe *wqe,
                                  const struct span *spans)
{
    uint64_t wanted = chance_from(&job->chance, 1, MPW), n = MIN(wanted, s->limit - s->posted);
    const struct offload *first = NULL;

    for (uint64_t i = 0; i < n; i++) {
        const struct offload *o = offloads_next(job, s, &spans[i], false, first);
        uint32_t len = o->headers_len + o->len;

        if (!first) {
            first = o;
            wqe_add_eth(wqe, s, o, 0);
        }
        if (len <= 200 && chance_one_in(&job->chance, 2)) {
            wqe_add_inline(wqe, spans[i].at, len);
        } else {
            wqe_add_pointer(wqe, &spans[i], spans[i].at, len);
        }
    }
}

static void offloads_send(struct job *job, struct offloads *s)
{
    struct posted *posted = &s->on_way[s->wqes % WINDOW];
    const struct span *spans = &s->near[s->wqes % WINDOW * MPW];
    bool several = s->sq.has_mpw && chance_one_in(&job->chance, 3);
    struct offload_wqe wqe = {.len = PRM_SIZE(wqe_ctrl_seg)};

    if (several) {
        offloads_send_several(job, s, &wqe, spans);
    } else {
        offloads_send_one(job, s, &wqe, spans);
    }
    posted->blocks = ring_wqe_blocks(wqe.len);
    posted->index =
        ring_sq_post(&s->sq, wqe.bytes, wqe.len,
                     several                                         ? PRM_WQE_OPCODE_ENHANCED_MPSW
                     : s->known[(s->posted - 1) % KNOWN].offload.mss ? PRM_WQE_OPCODE_TSO
                                                                     : PRM_WQE_OPCODE_SEND);
    s->wqes++;
}

static bool offloads_poll_sent(struct job *job, struct offloads *s)
{
    struct ring_cqe cqe;
    bool did = false;

    while (ring_cq_poll(&s->cq, &cqe)) {
        const struct posted *posted = &s->on_way[s->done % WINDOW];

        sim_check(job,
                  s->done < s->wqes && cqe.opcode == MLX5_CQE_REQ &&
                      cqe.wqe_counter == posted->index,
                  "a completion has opcode %u and names WQE %u, not %u", cqe.opcode,
                  cqe.wqe_counter, posted->index);
        s->done++;
        s->quiet_ns = sim_quiet_ns(job->sim) + USED_MS * SIM_MS;
        job->sim->tally.checks++;
        did = true;
    }
    return did;
}

/* The receives suffice for all packets of all WQEs: a WQE of a striding queue takes at least one.
 */
static bool offloads_may_send(const struct job *job, const struct offloads *s)
{
    unsigned blocks = 0;

    for (uint64_t i = s->done; i < s->wqes; i++) {
        blocks += s->on_way[i % WINDOW].blocks;
    }
    return s->posted < s->limit && s->wqes - s->done < WINDOW &&
           blocks + RINGS_WQE_BYTES / 64 <= 1u << RINGS_LOG_SQ &&
           (!offloads_is_exact(job) || s->packets - s->received + OFFLOAD_PACKETS <= 32);
}

/* -- receiving --------------------------------------------------------------------------------- */

/* Where the packet of a CQE is in memory. NULL: the CQE reports that strides were left out. */
static uint8_t *offloads_place(struct job *job, struct offloads *s, struct offload_queue *q,
                               const struct ring_cqe *cqe)
{
    struct ring_rq *rq = &q->rq;
    uint16_t oldest = (uint16_t)(rq->pi - rq->wqes);
    uint32_t strides = cqe->byte_cnt >> 16 & 0x7fff, first = q->used;
    uint32_t len = cqe->byte_cnt & 0xffff, size = 1u << rq->log_stride;
    uint8_t *buffer = rq->span.at + (size_t)(oldest % rq->wqes) * rq->bytes;

    if (!rq->log_strides) {
        sim_check(job, cqe->wqe_counter == oldest, "a packet comes to WQE %u, and WQE %u is next",
                  cqe->wqe_counter, oldest);
        ring_rq_post(rq);
        return buffer;
    }
    sim_check(job, cqe->wqe_id == oldest && (cqe->byte_cnt >> 31 || cqe->wqe_counter == first),
              "a packet comes to stride %u of WQE %u, and stride %u of WQE %u is next",
              cqe->wqe_counter, cqe->wqe_id, first, oldest);
    sim_check(job, cqe->byte_cnt >> 31 || strides == (len + size - 1) / size,
              "a packet of %u bytes uses %u strides of %u bytes", len, strides, size);
    q->used += strides;
    sim_check(job, q->used <= 1u << rq->log_strides, "a WQE has more strides than it has");
    if (q->used == 1u << rq->log_strides) {
        q->used = 0;
        ring_rq_post(rq);
    }
    (void)s;
    return cqe->byte_cnt >> 31 ? NULL : buffer + (size_t)first * size;
}

static uint32_t offloads_get32(const uint8_t *at)
{
    return (uint32_t)prm_load32(at);
}

/* Finds the message that the payload names. NULL: it came so late that it is forgotten. */
static struct known *offloads_find(struct job *job, struct offloads *s, unsigned nth,
                                   const uint8_t *payload)
{
    uint32_t number = offloads_get32(payload), packet = offloads_get32(payload + 4);
    struct known *known = &s->known[number % KNOWN];
    struct offload_queue *q = &s->queue[nth];

    sim_check(job, number < s->posted, "a packet is received that nobody has sent");
    if (known->offload.number != number) {
        sim_check(job, !offloads_is_exact(job), "message %u is late", number);
        return NULL;
    }
    sim_check(job, packet < offload_packets(&known->offload), "message %u has no packet %u", number,
              packet);
    sim_check(job,
              sim_is_disorderly(job->sim) ||
                  (!(known->seen >> packet & 1) && ((uint64_t)number << 8 | packet) >= q->newest),
              "packet %u of message %u comes again, or late", packet, number);
    known->seen |= 1ull << packet;
    q->newest = ((uint64_t)number << 8 | packet) + 1;
    return known;
}

static void offloads_check_cqe(struct job *job, const struct offloads *s, unsigned nth,
                               const struct offload *o, const struct ring_cqe *cqe, size_t len,
                               bool stripped)
{
    bool inner = s->hash.inner;
    uint32_t hash = offload_hash(o, inner ? 1 : 0, s->key);

    sim_check(job, (cqe->byte_cnt & 0xffff) == len,
              "a packet of message %u is of %u bytes, not %zu", o->number, cqe->byte_cnt & 0xffff,
              len);
    sim_check(job, cqe->hash == hash, "message %u has hash 0x%08x, and 0x%08x is told", o->number,
              hash, cqe->hash);
    sim_check(job, s->entries[hash % RINGS_TABLE] == nth,
              "message %u comes to queue %u, and its hash says %u", o->number, nth,
              s->entries[hash % RINGS_TABLE]);
    sim_check(job, cqe->has_vlan == stripped && (!stripped || cqe->vlan == o->tci),
              "message %u has VLAN tag 0x%04x, which is%s removed, and 0x%04x is told", o->number,
              o->tci, stripped ? "" : " not", cqe->vlan);
}

static void offloads_check(struct job *job, struct offloads *s, unsigned nth,
                           const struct ring_cqe *cqe, const uint8_t *place)
{
    /* The tag is an S-VLAN tag in some messages, and then stays: look at both places. */
    const uint8_t *payload = place + s->payload_at;
    bool tagged = s->kind.vlan && s->strips && !(place[12] == 0x88 && place[13] == 0xa8);
    struct known *known = offloads_find(job, s, nth, payload - (tagged ? 4 : 0));
    const struct offload *o;
    size_t len;

    if (!known) {
        return;
    }
    o = &known->offload;
    offload_fill(o, s->payload);
    len = offload_packet(o, &s->kind, offloads_get32(payload - (tagged ? 4 : 0) + 4), s->payload,
                         s->packet);
    if (tagged) {
        len -= 4;
        memmove(s->packet + 12, s->packet + 16, len - 12);
    }
    offloads_check_cqe(job, s, nth, o, cqe, len, tagged);
    for (size_t i = 0; i < len; i++) {
        sim_check(job, place[i] == s->packet[i],
                  "byte %zu of a packet of message %u is 0x%02x, not 0x%02x", i, o->number,
                  place[i], s->packet[i]);
    }
    job->sim->tally.bytes += len;
}

static bool offloads_poll_received(struct job *job, struct offloads *s, unsigned nth)
{
    struct offload_queue *q = &s->queue[nth];
    struct ring_cqe cqe;
    bool did = false;

    while (ring_cq_poll(&q->cq, &cqe)) {
        const uint8_t *place;

        sim_check(job, cqe.opcode == MLX5_CQE_RESP_SEND, "a receive has opcode %u", cqe.opcode);
        place = offloads_place(job, s, q, &cqe);
        if (place) {
            offloads_check(job, s, nth, &cqe, place);
            s->received++;
            job->sim->tally.messages++;
            job->sim->tally.checks++;
        }
        did = true;
    }
    return did;
}

/* -- the job ----------------------------------------------------------------------------------- */

static void offloads_draw_kind(struct job *job, struct offloads *s)
{
    struct chance *chance = &job->chance;
    struct offload_kind *kind = &s->kind;

    memcpy(kind->dmac, s->host[RECEIVER].config.mac, 6);
    memcpy(kind->smac, s->host[SENDER].config.mac, 6);
    kind->has_swp = s->sq.has_swp;
    kind->tunnel = chance_below(chance, OFFLOAD_TUNNELS - !kind->has_swp);
    kind->outer_v6 = chance_one_in(chance, 2);
    kind->v6 = chance_one_in(chance, 2);
    kind->udp = chance_one_in(chance, 2);
    kind->vlan = chance_below(chance, 3);
    s->strips = chance_one_in(chance, 2);
    chance_fill(chance, s->key, sizeof(s->key));
    s->hash = (struct ring_hash){.ipv6 = kind->v6, .udp = kind->udp, .key = s->key};
    s->hash.inner = kind->tunnel && kind->tunnel != OFFLOAD_UNKNOWN;
    if (kind->tunnel == OFFLOAD_UNKNOWN) {
        s->hash.ipv6 = kind->outer_v6;
        s->hash.udp = true;
    }
    s->most = (uint32_t)CLAMP(job->sim->options.size, 80, MOST);
    s->payload_at = offload_payload_at(kind);
    s->limit = job->sim->options.ops;
}

static void offloads_make_queue(struct job *job, struct offloads *s, unsigned nth)
{
    struct offload_queue *q = &s->queue[nth];
    struct ring_rq *rq = &q->rq;

    rq->bytes = BUFFER;
    if (chance_one_in(&job->chance, 2)) {
        rq->log_stride = (uint32_t)chance_from(&job->chance, 6, 11);
        rq->log_strides =
            (uint32_t)chance_from(&job->chance, MAX(3, 12 - rq->log_stride), 14 - rq->log_stride);
        rq->bytes = 1u << (rq->log_stride + rq->log_strides);
    }
    ring_cq_make(&q->cq, job, &s->host[RECEIVER], 255, chance_one_in(&job->chance, 2));
    ring_rq_make(rq, job, &s->host[RECEIVER], &q->cq, s->strips);
}

static void kind_offloads_make(struct job *job)
{
    struct offloads *s = job->state;
    uint32_t rqn[RINGS_TABLE];

    sim_host_own(job, &s->host[SENDER], SENDER, NULL);
    sim_host_own(job, &s->host[RECEIVER], RECEIVER, NULL);
    ring_cq_make(&s->cq, job, &s->host[SENDER], 31, false);
    ring_sq_make(&s->sq, job, &s->host[SENDER], &s->cq);
    offloads_draw_kind(job, s);
    for (unsigned i = 0; i < WINDOW * MPW; i++) {
        s->near[i] = sim_span(job, &s->host[SENDER], i % MPW ? BUFFER : PAYLOAD + BUFFER);
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        offloads_make_queue(job, s, i);
    }
    for (unsigned i = 0; i < RINGS_TABLE; i++) {
        s->entries[i] = (unsigned)chance_below(&job->chance, QUEUES);
        rqn[i] = s->queue[s->entries[i]].rq.rqn;
    }
    ring_way_make(&s->way, job, &s->host[RECEIVER], rqn, &s->hash);
}

static bool kind_offloads_step(struct job *job)
{
    struct offloads *s = job->state;
    bool did = offloads_poll_sent(job, s);
    unsigned n = (unsigned)chance_from(&job->chance, 1, WINDOW);

    for (unsigned h = 0; h < 2; h++) {
        sim_poll_events(job, &s->host[h]);
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        did |= offloads_poll_received(job, s, i);
    }
    for (; n && offloads_may_send(job, s); n--) {
        offloads_send(job, s);
        did = true;
    }
    return did;
}

static bool kind_offloads_is_done(const struct job *job)
{
    const struct offloads *s = job->state;

    return s->posted == s->limit && s->done == s->wqes &&
           (job->sim->world->now_ns >= s->quiet_ns ||
            (offloads_is_exact(job) && s->received == s->packets));
}

static void kind_offloads_check(struct job *job)
{
    const struct offloads *s = job->state;

    sim_check(job, !offloads_is_exact(job) || s->received == s->packets,
              "%" PRIu64 " of %" PRIu64 " packets have arrived, on a fabric without faults",
              s->received, s->packets);
}

static void kind_offloads_free(struct job *job)
{
    struct offloads *s = job->state;

    ring_way_free(&s->way);
    for (unsigned i = 0; i < QUEUES; i++) {
        ring_rq_free(&s->queue[i].rq);
        ring_cq_free(&s->queue[i].cq);
    }
    ring_sq_free(&s->sq);
    ring_cq_free(&s->cq);
    for (unsigned i = 0; i < WINDOW * MPW; i++) {
        sim_span_free(job, &s->near[i]);
    }
    sim_host_down(&s->host[SENDER]);
    sim_host_down(&s->host[RECEIVER]);
}

const struct kind kind_offloads = {
    .name = "offloads",
    .about = "checksums, tunnels, large sends, VLAN tags, hashes, striding queues, compressed CQEs",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct offloads),
    .make = kind_offloads_make,
    .step = kind_offloads_step,
    .is_done = kind_offloads_is_done,
    .check = kind_offloads_check,
    .free = kind_offloads_free,
};
