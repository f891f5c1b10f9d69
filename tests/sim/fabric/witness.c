/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements witness.h. For each PSN that an end has sent it records the opcode, when the packet
 * last left, and how many messages are complete with it. It compares the peer's answers with that.
 *
 * Rules about what has arrived are checked only where the host has surely accepted the frame: a
 * frame with a wrong bit, or one that comes twice or late, proves nothing about a host.
 */
#include "tests/sim/fabric/witness.h"
#include <inttypes.h>
#include "tests/sim/fabric/rogue.h"

#define PSN_MASK    0xffffffu
#define SENT        32768u /* remembered PSNs; many more than can be outstanding */
#define RNR_NAK     0x20
#define ROGUE_TRIES 32
#define RNR_LONG    20 /* a timer of 10 ms: long enough for duplicates to come meanwhile */
#define NAK_SEQ     0x60
#define KIND(b)     ((b)&0x60)

/* Opcodes of a reliable connection (IBTA 9.2.1). */
enum {
    OP_READ = 0x0c,
    OP_RESPONSE_FIRST = 0x0d,
    OP_RESPONSE_MIDDLE = 0x0e,
    OP_RESPONSE_LAST = 0x0f,
    OP_RESPONSE_ONLY = 0x10,
    OP_ACK = 0x11,
    OP_ATOMIC_ACK = 0x12,
    OP_CMP_SWAP = 0x13,
    OP_FETCH_ADD = 0x14,
    OPS = 0x18,
};

/* Properties of a request. */
enum {
    IS_REQUEST = 1 << 0,
    BEGINS = 1 << 1,
    ENDS = 1 << 2,
    IS_SEND = 1 << 3,
    IS_WRITE = 1 << 4,
    HAS_RETH = 1 << 5,
    HAS_IMM = 1 << 6,     /* or a key to invalidate, which has the same length */
    IS_ANSWERED = 1 << 7, /* answered with data */
};

static const uint8_t ops[OPS] = {
    [0x00] = IS_REQUEST | IS_SEND | BEGINS,
    [0x01] = IS_REQUEST | IS_SEND,
    [0x02] = IS_REQUEST | IS_SEND | ENDS,
    [0x03] = IS_REQUEST | IS_SEND | ENDS | HAS_IMM,
    [0x04] = IS_REQUEST | IS_SEND | BEGINS | ENDS,
    [0x05] = IS_REQUEST | IS_SEND | BEGINS | ENDS | HAS_IMM,
    [0x06] = IS_REQUEST | IS_WRITE | BEGINS | HAS_RETH,
    [0x07] = IS_REQUEST | IS_WRITE,
    [0x08] = IS_REQUEST | IS_WRITE | ENDS,
    [0x09] = IS_REQUEST | IS_WRITE | ENDS | HAS_IMM,
    [0x0a] = IS_REQUEST | IS_WRITE | BEGINS | ENDS | HAS_RETH,
    [0x0b] = IS_REQUEST | IS_WRITE | BEGINS | ENDS | HAS_RETH | HAS_IMM,
    [OP_READ] = IS_REQUEST | BEGINS | ENDS | HAS_RETH | IS_ANSWERED,
    [OP_CMP_SWAP] = IS_REQUEST | BEGINS | ENDS | IS_ANSWERED,
    [OP_FETCH_ADD] = IS_REQUEST | BEGINS | ENDS | IS_ANSWERED,
    [0x16] = IS_REQUEST | IS_SEND | ENDS | HAS_IMM,
    [0x17] = IS_REQUEST | IS_SEND | BEGINS | ENDS | HAS_IMM,
};

#define ETH        14u
#define IP         20u
#define UDP        8u
#define BTH        12u
#define RETH       16u
#define CRC        4u
#define READ_BYTES (ETH + IP + UDP + BTH + RETH + CRC)

struct sent {
    uint64_t ns; /* when it left last */
    uint8_t op;
    uint32_t messages;    /* messages complete with this packet, since the connection began */
    uint32_t first, last; /* of a READ: its PSNs */
    uint32_t len;         /* length of its data */
};

struct end {
    struct witness_end is;
    struct job *job;
    struct end *peer;
    struct sent *sent;
    /* as a requester: the next PSN */
    uint32_t next;     /* the next PSN */
    uint8_t message;   /* IS_SEND or IS_WRITE: a message is incomplete; or 0 */
    uint32_t left;     /* bytes of a WRITE that are still to come */
    uint32_t messages; /* messages that it has sent completely */
    unsigned reads;    /* READs and atomics without an answer */
    uint32_t answered; /* PSN up to which answers have come */
    uint32_t repeat;   /* the PSN that comes next if it continues to retransmit */
    bool is_hidden;    /* its cable was out: the frames that it sent meanwhile are unknown */
    /* A READ that will be sent again when it is answered; its last PSN. */
    uint8_t read[READ_BYTES];
    bool has_read;
    uint32_t read_last;
    bool is_alone;     /* its peer does not answer any more */
    unsigned repeats;  /* retransmissions without a request since it heard from its peer */
    unsigned refusals; /* refusals of the same request since it heard anything else from its peer */
    bool refused;      /* it was told to retransmit since its last retransmission */
    bool nagged;       /* or something has come that may have told it (IBTA 9.7.5.2.8) */
    /* A receiver was not ready for this PSN; when the host has seen that; when it may
     * retransmit. */
    uint32_t rnr_psn;
    uint64_t rnr_seen_ns, rnr_ns;
    /* as a responder */
    uint32_t acked, naked;
    bool has_acked, has_naked;
    uint32_t read_next; /* the next PSN of an answer of several packets */
    bool reading;
    bool is_misled, was_misled; /* by a rogue */
    bool by_answers;
    unsigned mistake, tries; /* mistake drawn, and frames since then */
};

struct witness {
    struct sim *sim;
    GHashTable *ends; /* struct end by address and QPN */
    bool is_quiet;    /* the run has no faults of frames */
    bool is_orderly;  /* frames arrive whole, once, and in order */
};

/* A frame, with the fields that are checked. */
struct seen {
    uint32_t to;
    uint8_t op;
    bool solicited, ackreq;
    uint16_t pkey;
    uint32_t qpn, psn;
    const uint8_t *rest; /* behind the BTH */
    uint32_t len;        /* length of the payload */
    uint32_t reth_len;
    uint8_t syndrome;
    uint32_t msn;
};

static uint32_t be32(const uint8_t *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return GUINT32_FROM_BE(word);
}

static int32_t psn_from(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static gint64 witness_key(uint32_t ip, uint32_t qpn)
{
    return (gint64)ip << 24 | qpn;
}

static size_t witness_headers(uint8_t op)
{
    size_t len = 0;

    if (op >= OPS) {
        return 0;
    }
    len += ops[op] & HAS_RETH ? 16 : 0;
    len += ops[op] & HAS_IMM ? 4 : 0;
    len += op == OP_CMP_SWAP || op == OP_FETCH_ADD ? 28 : 0;
    len += op >= OP_RESPONSE_FIRST && op <= OP_ATOMIC_ACK && op != OP_RESPONSE_MIDDLE ? 4 : 0;
    return len + (op == OP_ATOMIC_ACK ? 8 : 0);
}

/* Reads a RoCE frame over IPv4. */
static bool witness_read(const uint8_t *frame, size_t len, struct seen *seen)
{
    const uint8_t *bth = frame + ETH + IP + UDP;
    size_t headers, payload;

    if (len < ETH + IP + UDP + BTH + CRC || frame[12] != 8 || frame[13] || frame[ETH] != 0x45 ||
        frame[ETH + 9] != 17 || frame[ETH + IP + 2] != 4791 >> 8 ||
        frame[ETH + IP + 3] != (4791 & 0xff)) {
        return false;
    }
    *seen = (struct seen){.to = be32(frame + ETH + 16),
                          .op = bth[0],
                          .solicited = bth[1] & 0x80,
                          .pkey = (uint16_t)(be32(bth) & 0xffff),
                          .qpn = be32(bth + 4) & PSN_MASK,
                          .ackreq = bth[8] & 0x80,
                          .psn = be32(bth + 8) & PSN_MASK,
                          .rest = bth + BTH};
    headers = witness_headers(seen->op);
    /* by the IP header's length, because a short frame is padded */
    payload = (be32(frame + ETH) & 0xffff) - IP - UDP - BTH - CRC - headers - (bth[1] >> 4 & 3);
    if (payload > len) {
        return false;
    }
    seen->len = (uint32_t)payload;
    if (seen->op < OPS && ops[seen->op] & HAS_RETH) {
        seen->reth_len = be32(seen->rest + 12);
    } else if (seen->op >= OP_RESPONSE_FIRST && seen->op <= OP_ATOMIC_ACK) {
        seen->syndrome = seen->rest[0];
        seen->msn = be32(seen->rest) & PSN_MASK;
    }
    return true;
}

static struct sent *witness_sent(const struct end *e, uint32_t psn)
{
    return &e->sent[psn % SENT];
}

#define witness_check(e, seen, holds, ...)                                                         \
    do {                                                                                           \
        if (G_UNLIKELY(!(holds))) {                                                                \
            g_autofree char *said_ = g_strdup_printf(__VA_ARGS__);                                 \
            sim_fail((e)->job, "on the wire, opcode 0x%02x of PSN %u to QP 0x%x: %s", (seen)->op,  \
                     (seen)->psn, (seen)->qpn, said_);                                             \
        }                                                                                          \
    } while (0)

/* Returns how late a host may be with its work and its observations. */
static uint64_t witness_late_ns(const struct witness *w)
{
    return 20 * w->sim->options.whims;
}

/* -- requests ---------------------------------------------------------------------------------- */

static uint32_t witness_read_packets(const struct end *e, uint32_t len)
{
    return len ? (len - 1) / e->is.mtu + 1 : 1;
}

/* Handles the next packet: its message must continue as it began. */
static void witness_new_request(struct witness *w, struct end *e, const struct seen *s)
{
    uint8_t is = ops[s->op], message = is & (IS_SEND | IS_WRITE);
    uint32_t packets = s->op == OP_READ ? witness_read_packets(e, s->reth_len) : 1;

    witness_check(e, s, is & BEGINS ? !e->message : e->message == message,
                  "it does not belong where it is in its message (IBTA 9.7.4.1.3)");
    witness_check(e, s, is & ENDS ? s->len <= e->is.mtu : s->len == e->is.mtu,
                  "it has %u bytes, and the MTU is %u (C9-92)", s->len, e->is.mtu);
    witness_check(e, s, s->len || is & BEGINS, "the last packet of several is empty (C9-92)");
    if (is & IS_WRITE) {
        e->left = is & BEGINS ? s->reth_len : e->left;
        witness_check(e, s, s->len <= e->left && (!(is & ENDS) || s->len == e->left),
                      "its message is not as long as its RETH says");
        e->left -= s->len;
    }
    if (is & IS_ANSWERED) {
        e->reads++;
        witness_check(e, s, !w->is_orderly || e->reads <= e->is.max_reads,
                      "%u READs and atomics are outstanding, and %u were agreed upon", e->reads,
                      e->is.max_reads);
    }
    e->message = is & ENDS ? 0 : message;
    e->messages += is & ENDS ? 1 : 0;
    for (uint32_t i = 0; i < packets; i++) {
        *witness_sent(e, e->next) = (struct sent){
            .ns = w->sim->world->now_ns,
            .op = s->op,
            .messages = e->messages,
            .first = s->psn,
            .last = (s->psn + packets - 1) & PSN_MASK,
            .len = s->reth_len,
        };
        e->next = (e->next + 1) & PSN_MASK;
    }
    e->repeat = e->next;
}

static void witness_goes_back(struct witness *w, struct end *e, const struct seen *s,
                              const struct sent *before)
{
    uint64_t now = w->sim->world->now_ns, waits = 4096ull << e->is.timeout;

    witness_check(e, s, !w->is_quiet || e->refused || e->is_alone,
                  "it is repeated, and nothing was lost nor refused");
    witness_check(e, s, e->nagged || (e->is.timeout && now - before->ns >= waits / 2),
                  "it is repeated after %" PRIu64 " ns, and its timeout is %" PRIu64 " ns",
                  now - before->ns, waits);
    e->repeats += !e->refused;
    e->refused = e->nagged = false;
}

static void witness_repeated_request(struct witness *w, struct end *e, const struct seen *s)
{
    struct sent *before = witness_sent(e, s->psn);
    uint64_t now = w->sim->world->now_ns;

    witness_check(e, s, before->op == s->op, "it was opcode 0x%02x before", before->op);
    if (before->op == OP_READ) {
        uint32_t skipped = (s->psn - before->first) & PSN_MASK;

        witness_check(e, s, s->reth_len == before->len - skipped * e->is.mtu,
                      "a READ of %u bytes asks for %u of them, from packet %u on", before->len,
                      s->reth_len, skipped);
    }
    if (psn_from(s->psn, e->repeat) < 0) {
        witness_goes_back(w, e, s, before);
    }
    e->repeat = ((before->op == OP_READ ? before->last : s->psn) + 1) & PSN_MASK;
    witness_check(
        e, s, !w->is_quiet || s->psn != e->rnr_psn || now <= e->rnr_seen_ns || now >= e->rnr_ns,
        "it is repeated %" PRIu64 " ns before its receiver wants it again (IBTA 9.7.5.2.8)",
        e->rnr_ns - now);
    before->ns = now;
}

static void witness_request(struct witness *w, struct end *e, const struct seen *s)
{
    uint8_t is = ops[s->op];
    int32_t ahead = psn_from(s->psn, e->next);

    witness_check(e, s, ahead <= 0, "a PSN is left out: %u comes next", e->next);
    witness_check(e, s, !s->solicited || (is & ENDS && (is & IS_SEND || is & HAS_IMM)),
                  "a solicited event is for the last packet of what completes a receive");
    if (ahead == 0) {
        witness_new_request(w, e, s);
    } else {
        witness_repeated_request(w, e, s);
    }
}

/* -- answers ----------------------------------------------------------------------------------- */

static void witness_ack(struct witness *w, struct end *e, const struct seen *s)
{
    const struct sent *request = witness_sent(e->peer, s->psn);

    if (KIND(s->syndrome) == 0) {
        witness_check(e, s, psn_from(s->psn, e->peer->next) < 0,
                      "it acknowledges what was not sent");
        witness_check(e, s, !e->has_acked || psn_from(s->psn, e->acked) >= 0,
                      "it acknowledges less than one before, of PSN %u (C9-105)", e->acked);
        witness_check(e, s, s->msn == (request->messages & PSN_MASK),
                      "MSN %u, and %u messages are complete with it (IBTA 9.7.7.1)", s->msn,
                      request->messages & PSN_MASK);
        witness_check(e, s, !w->is_quiet || !(ops[request->op] & IS_ANSWERED),
                      "it acknowledges a READ or atomic, whose data do so");
        e->acked = s->psn;
        e->has_acked = true;
    } else if (s->syndrome == NAK_SEQ) {
        witness_check(e, s, !e->has_naked || s->psn != e->naked,
                      "the same gap is told a second time (IBTA 9.7.5.2.4)");
        e->naked = s->psn;
        e->has_naked = true;
    } else if (KIND(s->syndrome) == RNR_NAK) {
        witness_check(e, s, (s->syndrome & 0x1f) == e->is.rnr_timer,
                      "it asks to wait for timer %u, not %u", s->syndrome & 0x1f, e->is.rnr_timer);
    }
}

static void witness_data(const struct witness *w, struct end *e, const struct seen *s)
{
    const struct sent *request = witness_sent(e->peer, s->psn);
    bool begins = s->op == OP_RESPONSE_FIRST || s->op == OP_RESPONSE_ONLY;
    bool ends = s->op == OP_RESPONSE_LAST || s->op == OP_RESPONSE_ONLY;
    uint32_t nth = (s->psn - request->first) & PSN_MASK;

    witness_check(e, s, psn_from(s->psn, e->peer->next) < 0 && request->op == OP_READ,
                  "it answers no READ");
    witness_check(e, s, !w->is_quiet || !begins || s->psn == request->first,
                  "an answer begins in the midst of it");
    witness_check(e, s, begins || (e->reading && s->psn == e->read_next),
                  "it is not in its place in the answer (IBTA 9.7.5.1.3)");
    witness_check(e, s, ends == (s->psn == request->last), "the answer ends at PSN %u",
                  request->last);
    witness_check(e, s, s->len == (ends ? request->len - nth * e->is.mtu : e->is.mtu),
                  "it has %u bytes of a READ of %u", s->len, request->len);
    e->reading = !ends;
    e->read_next = (s->psn + 1) & PSN_MASK;
}

static void witness_response(struct witness *w, struct end *e, const struct seen *s)
{
    if (s->op == OP_ACK) {
        witness_ack(w, e, s);
    } else if (s->op == OP_ATOMIC_ACK) {
        const struct sent *request = witness_sent(e->peer, s->psn);

        witness_check(e, s, request->op == OP_CMP_SWAP || request->op == OP_FETCH_ADD,
                      "it answers no atomic");
    } else {
        witness_data(w, e, s);
    }
}

/* -- what comes to a requester ----------------------------------------------------------------- */

/* IBTA table 45, ns. */
static uint64_t witness_rnr_ns(uint8_t timer)
{
    static const uint32_t times[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return times[timer & 31] * 10000ull;
}

static void witness_arrives(struct witness *w, struct end *e, const struct seen *s)
{
    uint64_t now = w->sim->world->now_ns;

    e->repeats = 0;
    e->nagged = true;
    if (s->op == OP_ACK && KIND(s->syndrome) == RNR_NAK) {
        e->refused = true;
        if (s->psn != e->rnr_psn || now >= e->rnr_ns) { /* otherwise it is waiting already */
            e->refusals = s->psn == e->rnr_psn ? e->refusals + 1 : 1;
            e->rnr_psn = s->psn;
            e->rnr_seen_ns = now + witness_late_ns(w);
            e->rnr_ns = now + witness_rnr_ns(s->syndrome);
        }
        return;
    }
    e->refusals = 0;
    if (s->op == OP_RESPONSE_LAST || s->op == OP_RESPONSE_ONLY || s->op == OP_ATOMIC_ACK) {
        e->reads -= e->reads ? 1 : 0;
    }
}

/* -- rogues ------------------------------------------------------------------------------------ */

/* Sends frames that must have no effect: a READ that comes again when its answer has left, and asks
 * for more; an RNR NAK of a receiver, twice. */
static void witness_pester(struct witness *w, struct end *e, const struct seen *s,
                           const uint8_t *frame, size_t len)
{
    struct end *reader = e->peer;
    struct chance *chance = &w->sim->strays;

    if (!w->is_quiet || !w->sim->options.strays) {
        return;
    }
    if (s->op == OP_READ && !e->has_read && len == READ_BYTES && chance_one_in(chance, 4)) {
        memcpy(e->read, frame, len);
        e->read_last = witness_sent(e, s->psn)->last;
        e->has_read = true;
    } else if ((s->op == OP_RESPONSE_LAST || s->op == OP_RESPONSE_ONLY) && reader->has_read &&
               s->psn == reader->read_last) {
        rogue_read_more(w->sim, reader->is.port, e->is.port, reader->read, READ_BYTES,
                        (uint32_t)chance_from(chance, 1, e->is.mtu));
        reader->has_read = false;
    } else if (s->op == OP_ACK && KIND(s->syndrome) == RNR_NAK && e->is.rnr_timer >= RNR_LONG) {
        rogue_again(w->sim, e->is.port, frame, len);
    }
}

/* A frame of its peer may get a wrong frame before it. If none comes with which its mistake is
 * possible, it draws another mistake. */
static void witness_mislead(struct witness *w, struct end *e, bool is_answer, const uint8_t *frame,
                            size_t len)
{
    if (!e->is_misled || e->by_answers != is_answer) {
        return;
    }
    if (rogue_frame(w->sim, e->mistake, e->peer->is.port, e->is.mtu, frame, len)) {
        e->was_misled = true;
    } else if (++e->tries == ROGUE_TRIES) {
        e->mistake = rogue_draw(&w->sim->strays, is_answer);
        e->tries = 0;
    }
}

/* -- every frame ------------------------------------------------------------------------------- */

void witness_frame(struct witness *w, unsigned port, bool arrives, const uint8_t *frame, size_t len)
{
    struct seen s;
    struct end *to;
    gint64 key;

    if (!witness_read(frame, len, &s) || s.op >= OPS) {
        return;
    }
    key = witness_key(s.to, s.qpn);
    to = g_hash_table_lookup(w->ends, &key);
    if (!to || to->is_hidden || to->peer->is_hidden) {
        return;
    }
    if (arrives) {
        if (port == to->is.port && !(ops[s.op] & IS_REQUEST)) {
            witness_arrives(w, to, &s);
        }
        return;
    }
    if (port != to->peer->is.port) {
        return;
    }
    witness_check(to, &s, s.pkey == 0xffff, "P_Key 0x%04x", s.pkey);
    if (ops[s.op] & IS_REQUEST) {
        witness_request(w, to->peer, &s);
    } else {
        witness_response(w, to->peer, &s);
        if (s.op == OP_ACK && KIND(s.syndrome) == RNR_NAK) {
            to->peer->was_misled = false; /* a receive shows what is wrong with a request */
        }
    }
    witness_mislead(w, to, !(ops[s.op] & IS_REQUEST), frame, len);
    witness_pester(w, to->peer, &s, frame, len);
}

void witness_cable(struct witness *w, unsigned port)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, w->ends);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct end *e = value;

        e->is_hidden |= e->is.port == port;
    }
}

static void witness_end_free(gpointer end)
{
    g_free(((struct end *)end)->sent);
    g_free(end);
}

static struct end *witness_find(const struct job *job, const struct witness_end *end)
{
    gint64 key = witness_key(end->ip, end->qpn);

    return g_hash_table_lookup(job->sim->witness->ends, &key);
}

unsigned witness_repeats(const struct job *job, const struct witness_end *end)
{
    return witness_find(job, end)->repeats;
}

unsigned witness_refusals(const struct job *job, const struct witness_end *end)
{
    return witness_find(job, end)->refusals;
}

void witness_falls_silent(const struct job *job, const struct witness_end *end)
{
    witness_find(job, end)->peer->is_alone = true;
}

void witness_be_rogue(const struct job *job, const struct witness_end *end, bool answers)
{
    struct end *e = witness_find(job, end);

    e->is_misled = true;
    e->by_answers = answers;
    e->mistake = rogue_draw(&job->sim->strays, answers);
}

bool witness_was_rogue(const struct job *job, const struct witness_end *end)
{
    const struct end *e = witness_find(job, end);

    return e && e->was_misled;
}

bool witness_is_quiet(const struct job *job)
{
    return job->sim->witness->is_quiet;
}

static struct end *witness_end_new(struct witness *w, const struct job *job,
                                   const struct witness_end *is)
{
    struct end *e = g_new0(struct end, 1);
    gint64 *key = g_new(gint64, 1);

    e->is = *is;
    e->job = (struct job *)job;
    e->next = e->repeat = is->psn;
    e->sent = g_new0(struct sent, SENT);
    *key = witness_key(is->ip, is->qpn);
    g_hash_table_replace(w->ends, key, e);
    return e;
}

void witness_connected(const struct job *job, const struct witness_end *a,
                       const struct witness_end *b)
{
    struct witness *w = job->sim->witness;
    struct end *end = witness_end_new(w, job, a);

    end->peer = witness_end_new(w, job, b);
    end->peer->peer = end;
}

void witness_parted(const struct job *job, const struct witness_end *a, const struct witness_end *b)
{
    const struct witness_end *ends[2] = {a, b};

    for (unsigned i = 0; i < 2; i++) {
        gint64 key = witness_key(ends[i]->ip, ends[i]->qpn);

        g_hash_table_remove(job->sim->witness->ends, &key);
    }
}

struct witness *witness_new(struct sim *sim)
{
    struct witness *w = g_new0(struct witness, 1);

    w->sim = sim;
    w->ends = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, witness_end_free);
    w->is_orderly = !sim_is_disorderly(sim) && !sim->options.corruption;
    w->is_quiet = w->is_orderly && !sim_is_lossy(sim);
    return w;
}

void witness_free(struct witness *w)
{
    g_hash_table_unref(w->ends);
    g_free(w);
}
