/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements large receive offload. A session collects the segments of a connection that come in
 * order, and delivers them as one packet: the headers of the first segment and all payload. The
 * headers stay as they are; the CQE says what software has to write into them (lro_*: segments,
 * least TTL, last acknowledgement and window, PSH; driver: mlx5e_lro_update_hdr(), DPDK:
 * mlx5_lro_update_hdr()). check_sum then covers the payload alone.
 *
 * A segment is merged if it is TCP right behind a plain IP header, carries data, has right
 * checksums, and no flags but ACK and PSH. It continues a session if it has the session's
 * addresses, ports, TOS, VLAN tags, TCP options and flow tag, the next sequence number, and an
 * acknowledgement that does not go back. Time stamps are options, so only segments with equal time
 * stamps are merged. Software that reads a CQE with segments trusts the checksums. Queues that
 * store the frame check sequence get no merged packets, which have none.
 *
 * Who ends a session: a segment with PSH; a full packet (lro_max_ip_payload_size, 255 segments); a
 * packet of the connection that does not continue it, which is received behind it; the timer
 * (lro_timeout_period_usecs after the first segment); a session that needs its place, if all are
 * taken; MODIFY_TIR. When the RQ or TIR ends, what the session holds is lost, as in a card.
 *
 * Payload is copied once more than without LRO, into the memory of the session. This memory, of
 * ETH_LRO_SESSIONS * ETH_LRO_BYTES at most, is taken when sessions first need it, and given back
 * with the last TIR that has LRO.
 */
#include <string.h>
#include "model/eth/eth_lro.h"
#include "wire/bytes.h"

enum {
    TCP_SEQ = 4,
    TCP_ACK_SEQ = 8,
    TCP_WINDOW = 14,
    TCP_OPTIONS = 20,
    MERGED_FLAGS = TCP_ACK | TCP_PSH,
    MOST_SEGMENTS = 255, /* lro_num_seg has 8 bits */
    PERIOD_NS = 1000,
};

struct eth_lro_session {
    struct hca_timer timer; /* armed while the session is open */
    struct eth_rq *rq;      /* NULL: the session is not open */
    const struct eth_tir *tir;
    uint64_t since; /* number of sessions opened before */
    struct eth_info info;
    struct rss rss;
    uint32_t flow_tag;
    uint32_t next_seq;
    struct eth_merged merged;
    size_t len;
    uint8_t *bytes; /* ETH_LRO_BYTES; NULL: not taken yet */
};

struct eth_lro {
    unsigned tirs; /* with LRO */
    uint64_t opened;
    struct eth_lro_session sessions[ETH_LRO_SESSIONS];
};

static void eth_lro_fire(struct hca *hca, struct hca_timer *timer);

static bool eth_lro_begin(struct hca *hca)
{
    struct eth_lro *lro = hca->lro;

    if (!lro) {
        lro = ledger_alloc(&hca->memory, sizeof(*lro));
        if (!lro) {
            return false;
        }
        for (unsigned i = 0; i < ETH_LRO_SESSIONS; i++) {
            lro->sessions[i].timer.fire = eth_lro_fire;
        }
        hca->lro = lro;
    }
    lro->tirs++;
    return true;
}

/* The session holds nothing any more. */
static void eth_lro_drop(struct hca *hca, struct eth_lro_session *s)
{
    hca_timer_stop(hca, &s->timer);
    s->rq = NULL;
    s->tir = NULL;
}

/* Delivers what the session holds. */
static void eth_lro_close(struct hca *hca, struct eth_lro_session *s)
{
    struct eth_rq *rq = s->rq;

    eth_lro_drop(hca, s);
    s->info.ip_end = (uint32_t)s->len;
    s->info.frame_len = (uint32_t)s->len;
    eth_rq_receive(hca, rq,
                   &(struct eth_arrival){
                       .frame = s->bytes,
                       .len = s->len,
                       .info = &s->info,
                       .rss = &s->rss,
                       .flow_tag = s->flow_tag,
                       .merged = s->merged.segments > 1 ? &s->merged : NULL,
                   });
}

static void eth_lro_fire(struct hca *hca, struct hca_timer *timer)
{
    eth_lro_close(
        hca, (struct eth_lro_session *)((char *)timer - offsetof(struct eth_lro_session, timer)));
}

static void eth_lro_leave(struct hca *hca, struct eth_tir *tir, bool deliver)
{
    struct eth_lro *lro = hca->lro;

    if (!tir->lro.mask) {
        return;
    }
    tir->lro.mask = 0;
    for (unsigned i = 0; i < ETH_LRO_SESSIONS; i++) {
        struct eth_lro_session *s = &lro->sessions[i];

        if (s->rq && s->tir == tir && deliver) {
            eth_lro_close(hca, s);
        } else if (s->rq && s->tir == tir) {
            eth_lro_drop(hca, s);
        }
    }
    if (--lro->tirs) {
        return;
    }
    for (unsigned i = 0; i < ETH_LRO_SESSIONS; i++) {
        ledger_free(&hca->memory, lro->sessions[i].bytes, ETH_LRO_BYTES);
    }
    ledger_free(&hca->memory, lro, sizeof(*lro));
    hca->lro = NULL;
}

enum syn eth_lro_set(struct hca *hca, struct eth_tir *tir, const struct prm_tirc *tirc)
{
    uint32_t mask = PRM_GET(tirc, tirc, packet_merge_mask);

    if (mask & ~(1u << PRM_PACKET_MERGE_IPV4_LRO | 1u << PRM_PACKET_MERGE_IPV6_LRO)) {
        return SYN_ETH_LRO;
    }
    eth_lro_leave(hca, tir, true);
    if (mask && !eth_lro_begin(hca)) {
        return SYN_NO_MEMORY;
    }
    tir->lro.mask = (uint8_t)mask;
    tir->lro.most = (uint32_t)PRM_GET(tirc, tirc, lro_max_ip_payload_size) << 8;
    tir->lro.period_ns = (uint64_t)PRM_GET(tirc, tirc, lro_timeout_period_usecs) * PERIOD_NS;
    return SYN_OK;
}

void eth_lro_end(struct hca *hca, struct eth_tir *tir)
{
    eth_lro_leave(hca, tir, false);
}

void eth_lro_forget(struct hca *hca, const struct eth_rq *rq)
{
    for (unsigned i = 0; hca->lro && i < ETH_LRO_SESSIONS; i++) {
        if (hca->lro->sessions[i].rq == rq) {
            eth_lro_drop(hca, &hca->lro->sessions[i]);
        }
    }
}

/* -- segments ---------------------------------------------------------------------------------- */

/* The bytes of both addresses, and of both ports behind them. */
static const uint8_t *eth_lro_addrs(const uint8_t *frame, const struct eth_info *info, size_t *len)
{
    *len = info->ip_version == 4 ? 8 : 32;
    return frame + info->l3_off + (info->ip_version == 4 ? 12 : 8);
}

/* The session of the frame's connection, or NULL. */
static struct eth_lro_session *eth_lro_find(struct hca *hca, const struct eth_rq *rq,
                                            const struct eth_arrival *a)
{
    for (unsigned i = 0; i < ETH_LRO_SESSIONS; i++) {
        struct eth_lro_session *s = &hca->lro->sessions[i];
        size_t len;
        const uint8_t *addrs;

        if (s->rq != rq || s->info.ip_version != a->info->ip_version ||
            s->info.sport != a->info->sport || s->info.dport != a->info->dport) {
            continue;
        }
        addrs = eth_lro_addrs(a->frame, a->info, &len);
        if (memcmp(addrs, eth_lro_addrs(s->bytes, &s->info, &len), len) == 0) {
            return s;
        }
    }
    return NULL;
}

/* Whether the frame is a segment that a session may begin with, or contain. */
static bool eth_lro_is_plain(const struct eth_tir *tir, const struct eth_arrival *a)
{
    const struct eth_info *info = a->info;
    bool ipv4 = info->ip_version == 4;
    unsigned bit = ipv4 ? PRM_PACKET_MERGE_IPV4_LRO : PRM_PACKET_MERGE_IPV6_LRO;

    return tir->lro.mask >> bit & 1 && !info->malformed &&
           info->l4_off - info->l3_off == (ipv4 ? IPV4_BYTES : IPV6_BYTES) &&
           (info->tcp_flags | TCP_PSH) == MERGED_FLAGS && info->payload_off < info->ip_end &&
           (!ipv4 || eth_csum_ipv4_ok(a->frame, info)) && eth_csum_l4_ok(a->frame, info);
}

static bool eth_lro_continues(const struct eth_lro_session *s, const struct eth_arrival *a)
{
    const struct eth_info *info = a->info, *first = &s->info;
    const uint8_t *tcp = a->frame + info->l4_off, *was = s->bytes + first->l4_off;
    size_t header = info->payload_off - info->l4_off;
    size_t payload = info->ip_end - info->payload_off;

    return get32(tcp + TCP_SEQ) == s->next_seq && info->tos == first->tos &&
           info->flow_label == first->flow_label && info->vlan_count == first->vlan_count &&
           info->vlan_tci[0] == first->vlan_tci[0] && info->vlan_tci[1] == first->vlan_tci[1] &&
           a->flow_tag == s->flow_tag && header == first->payload_off - first->l4_off &&
           memcmp(tcp + TCP_OPTIONS, was + TCP_OPTIONS, header - TCP_OPTIONS) == 0 &&
           (int32_t)(get32(tcp + TCP_ACK_SEQ) - s->merged.ack) >= 0 &&
           s->len - first->l4_off + payload <= s->tir->lro.most &&
           s->merged.segments < MOST_SEGMENTS && s->len + payload <= ETH_LRO_BYTES;
}

/* Notes the headers and the payload of the segment, whose payload is at the end of the session's
 * packet. */
static void eth_lro_note(struct eth_lro_session *s, const struct eth_arrival *a)
{
    const struct eth_info *info = a->info;
    const uint8_t *tcp = a->frame + info->l4_off;
    size_t payload = info->ip_end - info->payload_off;
    uint16_t sum = csum_partial(a->frame + info->payload_off, payload);

    /* bytes at an odd distance from the first one count in the other half of a word */
    if ((s->len - s->info.payload_off) & 1) {
        sum = (uint16_t)(sum << 8 | sum >> 8);
    }
    s->len += payload;
    s->next_seq = (uint32_t)(get32(tcp + TCP_SEQ) + payload);
    s->merged.sum = csum_add(s->merged.sum, sum);
    s->merged.segments++;
    s->merged.min_ttl = MIN(s->merged.min_ttl, info->ttl);
    s->merged.ack = get32(tcp + TCP_ACK_SEQ);
    s->merged.window = get16(tcp + TCP_WINDOW);
    s->merged.psh = info->tcp_flags & TCP_PSH;
}

/* A session that is not open; if all are open, the oldest is closed. NULL: no memory. */
static struct eth_lro_session *eth_lro_place(struct hca *hca)
{
    struct eth_lro_session *found = NULL;

    for (unsigned i = 0; i < ETH_LRO_SESSIONS; i++) {
        struct eth_lro_session *s = &hca->lro->sessions[i];

        if (!s->rq) {
            found = s;
            break;
        }
        if (!found || s->since < found->since) {
            found = s;
        }
    }
    if (found->rq) {
        eth_lro_close(hca, found);
    }
    if (!found->bytes) {
        found->bytes = ledger_alloc(&hca->memory, ETH_LRO_BYTES);
    }
    return found->bytes ? found : NULL;
}

static bool eth_lro_open(struct hca *hca, const struct eth_tir *tir, struct eth_rq *rq,
                         const struct eth_arrival *a)
{
    struct eth_lro_session *s = eth_lro_place(hca);

    /* the session that made room may have failed a CQ of both queues */
    if (!s || rq->state != PRM_RQC_STATE_RDY) {
        return false;
    }
    s->rq = rq;
    s->tir = tir;
    s->since = hca->lro->opened++;
    s->info = *a->info;
    s->rss = *a->rss;
    s->flow_tag = a->flow_tag;
    s->merged = (struct eth_merged){.min_ttl = UINT8_MAX};
    s->len = a->info->payload_off;
    memcpy(s->bytes, a->frame, a->info->ip_end);
    eth_lro_note(s, a);
    hca_timer_set(hca, &s->timer, hca_now(hca) + tir->lro.period_ns);
    return true;
}

bool eth_lro_take(struct hca *hca, const struct eth_tir *tir, struct eth_rq *rq,
                  const struct eth_arrival *a)
{
    const struct eth_info *info = a->info;
    struct eth_lro_session *s;
    bool plain;

    if (info->l4 != ETH_L4_TCP || a->rss->tunnel || rq->fcs || rq->hairpin ||
        rq->state != PRM_RQC_STATE_RDY) {
        return false;
    }
    plain = eth_lro_is_plain(tir, a);
    s = eth_lro_find(hca, rq, a);
    if (s && plain && s->tir == tir && eth_lro_continues(s, a)) {
        memcpy(s->bytes + s->len, a->frame + info->payload_off, info->ip_end - info->payload_off);
        eth_lro_note(s, a);
        if (s->merged.psh) {
            eth_lro_close(hca, s);
        }
        return true;
    }
    if (s) {
        eth_lro_close(hca, s);
    }
    /* a segment with PSH would be alone in its session */
    return plain && !(info->tcp_flags & TCP_PSH) && info->ip_end <= ETH_LRO_BYTES &&
           rq->state == PRM_RQC_STATE_RDY && eth_lro_open(hca, tir, rq, a);
}
