/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compresses CQEs (cqc.cqe_comp_en). A session is a row of CQEs of one queue that differ only in
 * what a mini CQE of 8 bytes carries. All other fields are those of the title, the first CQE of the
 * session; the time stamps of the others are lost. docs/adr/0028 names the sources.
 *
 * A mini CQE carries byte_cnt, and for a receive what the CQ's format says: the hash (HASH), the
 * checksum (CSUM), or, with wqe_counter, the checksum (CSUM_STRIDX), the flow tag (FTAG_STRIDX) or
 * the header types (L34H_STRIDX). The hash or checksum that it does not carry is lost. In HASH and
 * CSUM, wqe_counter grows by one from CQE to CQE, and on a striding queue by the strides that each
 * CQE reports (mlx5e_decompress_cqe()). For a send it always carries wqe_counter and the opcode of
 * the WQE. CQEs of a striding queue that name different WQEs (wqe_id) are never in one session.
 *
 * Basic layout (mlx5e_decompress_cqes_start()): n CQEs use the slots of n CQEs. The title has
 * format COMPRESSED and byte_cnt n. Arrays of 8 mini CQEs are in the slots 1, 8, 16, 24 ... after
 * the title, as far as they are needed; the first mini CQE is that of the title. Software sets the
 * owner bits of the other slots. The device writes the title last, and only when the session ends.
 *
 * Enhanced layout (mlx5e_decompress_enhanced_cqe()): the title is an ordinary CQE. An entry of
 * format COMPRESSED after it has up to 7 mini CQEs, and their number less one in place of the
 * opcode. It uses as many slots as it has mini CQEs. Any number of such entries may follow a title.
 * In every entry the byte of the signature is the number of the round of the ring, which software
 * compares instead of the owner bit. The device does not write the other slots that such an entry
 * uses, so a slot could keep the number of a round for 256 rounds and look new. Therefore the
 * device writes ordinary CQEs in one round of 128.
 *
 * An open session holds CQEs that software does not see yet. These end it:
 * - a CQE that does not fit: of another queue or opcode, with other fields, with data in it, or an
 *   error; and the entry that ends the ring of a CQ that is resized
 * - a CQE that comes CQE_SESSION_TIMEOUT_US after the first
 * - the session is full: CQE_SESSION_MOST CQEs, in the enhanced layout 7
 * - the end of the ring: DPDK's vector code (rxq_burst_v()) takes arrays and buffers in one row
 * - whatever software may notice: the CQ's event, the arming of the CQ, an asynchronous event, the
 *   end of any command (among them QUERY_CQ, MODIFY_CQ and 2RST_QP)
 * - the end of the turn (hca_run()); outside a turn, a CQE is written at once
 * - DESTROY_CQ; a reset, which loses it
 */
#include "model/queue/cqe_compress.h"
#include "model/queue/cq_priv.h"
#include "model/queue/cqe.h"

enum {
    MINIS_BASIC = 8, /* mini CQEs of an array */
    MINIS_ENHANCED = 7,
    ROUND_MASK = 0xff,   /* rounds are counted in a byte */
    PLAIN_ROUNDS = 0x7f, /* rounds whose low 7 bits are these are not compressed */
};

/* Which format a CQE has in a session. */
enum cqe_kind {
    CQE_KIND_NONE, /* it is never compressed */
    CQE_KIND_SENT,
    CQE_KIND_RECEIVED,
    CQE_KINDS,
};

struct cqe_session {
    struct cq *cq;
    struct cqe_session *next, **link; /* the list of open sessions; link is NULL outside it */
    bool enhanced;
    uint8_t format; /* PRM_MINI_CQE_FORMAT_ of receives */
    /* Of each kind, the bits in which all CQEs of a session are equal. */
    uint64_t same[CQE_KINDS][sizeof(struct prm_cqe64) / 8];

    enum cqe_kind kind; /* CQE_KIND_NONE: there is no title */
    struct prm_cqe64 title[1];
    uint16_t counter; /* wqe_counter that the next CQE must have, if mini CQEs do not carry it */

    unsigned held;             /* CQEs that are not in the ring yet */
    uint64_t since;            /* time of the first of them */
    struct prm_cqe64 first[1]; /* the first of them */
    struct prm_mini_cqe8 minis[CQE_SESSION_MOST];
};

/* A PRM_MINI_CQE_FORMAT_, which has two fields. */
static uint8_t cqe_session_format(const struct prm_cqc *cqc)
{
    return (uint8_t)(PRM_GET(cqc, cqc, mini_cqe_res_format_ext) << 2 |
                     PRM_GET(cqc, cqc, mini_cqe_res_format));
}

enum syn cqe_compress_check(const struct hca *hca, const struct prm_cqc *cqc)
{
    uint8_t layout = PRM_GET(cqc, cqc, cqe_compression_layout);

    if (!PRM_GET(cqc, cqc, cqe_comp_en)) {
        return SYN_OK;
    }
    if (layout > (hca->limits.enhanced_cqes ? PRM_CQE_LAYOUT_ENHANCED : PRM_CQE_LAYOUT_BASIC) ||
        cqe_session_format(cqc) > PRM_MINI_CQE_FORMAT_L34H_STRIDX || PRM_GET(cqc, cqc, cc)) {
        return SYN_CQ_COMPRESSION;
    }
    return SYN_OK;
}

/* -- the formats ------------------------------------------------------------------------------ */

static void cqe_session_fill_masks(struct cqe_session *s)
{
    for (enum cqe_kind kind = CQE_KIND_SENT; kind < CQE_KINDS; kind++) {
        struct prm_cqe64 *mask = (void *)s->same[kind];

        memset(mask, 0xff, sizeof(*mask));
        PRM_SET(cqe64, mask, byte_cnt, 0);
        PRM_SET(cqe64, mask, timestamp, 0);
        PRM_SET(cqe64, mask, wqe_counter, 0);
        PRM_SET(cqe64, mask, signature, 0);
        PRM_SET(cqe64, mask, owner, 0);
        if (kind == CQE_KIND_SENT) {
            PRM_SET(cqe64, mask, send_wqe_opcode, 0);
            continue;
        }
        PRM_SET(cqe64, mask, rx_hash_result, 0);
        PRM_SET(cqe64, mask, check_sum, 0);
        if (s->format == PRM_MINI_CQE_FORMAT_FTAG_STRIDX) {
            PRM_SET(cqe64, mask, qpn, 0); /* the flow tag is there */
        } else if (s->format == PRM_MINI_CQE_FORMAT_L34H_STRIDX) {
            PRM_SET(cqe64, mask, l4_l3_hdr_type, 0);
            PRM_SET(cqe64, mask, rx_hash_type, 0);
        }
    }
}

static bool cqe_session_same(const uint64_t *mask, const struct prm_cqe64 *a,
                             const struct prm_cqe64 *b)
{
    uint64_t words[2][sizeof(*a) / 8], differ = 0;

    memcpy(words[0], a, sizeof(*a));
    memcpy(words[1], b, sizeof(*b));
    for (size_t i = 0; i < G_N_ELEMENTS(words[0]); i++) {
        differ |= (words[0][i] ^ words[1][i]) & mask[i];
    }
    return !differ;
}

static enum cqe_kind cqe_session_kind(const struct cqe_session *s, const struct prm_cqe64 *cqe)
{
    if (PRM_GET(cqe64, cqe, format) != PRM_CQE_FORMAT_NO_INLINE ||
        PRM_GET(cqe64, cqe, app) != PRM_CQE_APP_NONE) {
        return CQE_KIND_NONE;
    }
    switch (PRM_GET(cqe64, cqe, opcode)) {
    case PRM_CQE_OPCODE_REQ:
        return CQE_KIND_SENT;
    case PRM_CQE_OPCODE_RESP_WR_IMM:
    case PRM_CQE_OPCODE_RESP_SEND:
    case PRM_CQE_OPCODE_RESP_SEND_IMM:
    case PRM_CQE_OPCODE_RESP_SEND_INV:
        if (s->format == PRM_MINI_CQE_FORMAT_FTAG_STRIDX &&
            PRM_GET(cqe64, cqe, byte_cnt) >= 1u << 24) {
            return CQE_KIND_NONE; /* the flow tag takes eight bits of byte_cnt */
        }
        return CQE_KIND_RECEIVED;
    default:
        return CQE_KIND_NONE;
    }
}

/* Whether a CQE can be a mini CQE under the title. */
static bool cqe_session_fits(const struct cqe_session *s, const struct prm_cqe64 *cqe,
                             enum cqe_kind kind)
{
    if (kind == CQE_KIND_NONE || kind != s->kind ||
        !cqe_session_same(s->same[kind], s->title, cqe)) {
        return false;
    }
    return kind == CQE_KIND_SENT || s->format >= PRM_MINI_CQE_FORMAT_FTAG_STRIDX ||
           PRM_GET(cqe64, cqe, wqe_counter) == s->counter;
}

static void cqe_session_fill_mini(const struct cqe_session *s, enum cqe_kind kind,
                                  const struct prm_cqe64 *cqe, struct prm_mini_cqe8 *mini)
{
    memset(mini, 0, sizeof(*mini));
    PRM_SET(mini_cqe8, mini, byte_cnt, PRM_GET(cqe64, cqe, byte_cnt));
    if (kind == CQE_KIND_SENT) {
        PRM_SET(mini_cqe8, mini, wqe_counter, PRM_GET(cqe64, cqe, wqe_counter));
        PRM_SET(mini_cqe8, mini, s_wqe_opcode, PRM_GET(cqe64, cqe, send_wqe_opcode));
        return;
    }
    if (s->format >= PRM_MINI_CQE_FORMAT_FTAG_STRIDX) {
        PRM_SET(mini_cqe8, mini, stridx, PRM_GET(cqe64, cqe, wqe_counter));
    }
    switch (s->format) {
    case PRM_MINI_CQE_FORMAT_HASH:
        PRM_SET(mini_cqe8, mini, rx_hash_result, PRM_GET(cqe64, cqe, rx_hash_result));
        break;
    case PRM_MINI_CQE_FORMAT_FTAG_STRIDX:
        PRM_SET(mini_cqe8, mini, flow_tag_low, PRM_GET(cqe64, cqe, qpn) & 0xffff);
        PRM_SET(mini_cqe8, mini, flow_tag_high, PRM_GET(cqe64, cqe, qpn) >> 16);
        break;
    case PRM_MINI_CQE_FORMAT_L34H_STRIDX:
        PRM_SET(mini_cqe8, mini, l4_l3_hdr_type, PRM_GET(cqe64, cqe, l4_l3_hdr_type));
        break;
    default:
        PRM_SET(mini_cqe8, mini, checksum, PRM_GET(cqe64, cqe, check_sum));
        break;
    }
}

/* -- life ------------------------------------------------------------------------------------- */

struct cqe_session *cqe_session_new(struct hca *hca, struct cq *cq)
{
    struct cqe_session *s = hca_alloc(hca, OBJ_CQ, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->cq = cq;
    s->enhanced = PRM_GET(cqc, cq->cqc, cqe_compression_layout) == PRM_CQE_LAYOUT_ENHANCED;
    s->format = cqe_session_format(cq->cqc);
    cqe_session_fill_masks(s);
    return s;
}

/* Takes the session off the list of open ones. */
static void cqe_session_unlink(struct cqe_session *s)
{
    if (s->link) {
        *s->link = s->next;
        if (s->next) {
            s->next->link = s->link;
        }
        s->link = NULL;
    }
}

static void cqe_session_link(struct hca *hca, struct cqe_session *s)
{
    s->next = hca->open_sessions;
    s->link = &hca->open_sessions;
    if (s->next) {
        s->next->link = &s->next;
    }
    hca->open_sessions = s;
}

void cqe_session_free(struct hca *hca, struct cq *cq)
{
    if (cq->session) {
        cqe_session_unlink(cq->session);
        hca_free(hca, OBJ_CQ, cq->session, sizeof(*cq->session));
        cq->session = NULL;
    }
}

/* -- writing ---------------------------------------------------------------------------------- */

/* Writes an ordinary CQE. */
static bool cqe_session_write_plain(struct hca *hca, struct cq *cq, uint32_t index,
                                    const struct prm_cqe64 *cqe)
{
    struct prm_cqe64 entry[1];

    memcpy(entry, cqe, sizeof(entry));
    PRM_SET(cqe64, entry, owner, index >> cq->log_size & 1);
    if (cq->session->enhanced) {
        PRM_SET(cqe64, entry, signature, index >> cq->log_size & ROUND_MASK);
    }
    return cq_write(hca, cq, index, entry,
                    cq->pad && PRM_GET(cqe64, cqe, format) != PRM_CQE_FORMAT_INLINE_64);
}

static bool cqe_session_write_basic(struct hca *hca, struct cq *cq, uint32_t index, unsigned held)
{
    struct cqe_session *s = cq->session;
    struct prm_cqe64 title[1];

    memset(&s->minis[held], 0,
           (MINIS_BASIC - held % MINIS_BASIC) % MINIS_BASIC * sizeof(*s->minis));
    for (unsigned at = 0; at < held; at += MINIS_BASIC) {
        if (!cq_write(hca, cq, index + MAX(at, 1), &s->minis[at], cq->pad)) {
            return false;
        }
    }
    memcpy(title, s->first, sizeof(title));
    PRM_SET(cqe64, title, format, PRM_CQE_FORMAT_COMPRESSED);
    PRM_SET(cqe64, title, byte_cnt, held);
    return cqe_session_write_plain(hca, cq, index, title);
}

static bool cqe_session_write_enhanced(struct hca *hca, struct cq *cq, uint32_t index,
                                       unsigned held)
{
    struct cqe_session *s = cq->session;
    struct prm_cqe64 entry[1] = {0};

    memcpy(entry, s->minis, held * sizeof(*s->minis));
    PRM_SET(cqe64, entry, opcode, held - 1);
    PRM_SET(cqe64, entry, format, PRM_CQE_FORMAT_COMPRESSED);
    /* DPDK (mlx5_rx_poll_len()) reads there the counter of the first mini CQE */
    PRM_SET(cqe64, entry, wqe_counter, PRM_GET(cqe64, s->first, wqe_counter));
    return cqe_session_write_plain(hca, cq, index, entry);
}

bool cqe_session_close(struct hca *hca, struct cq *cq)
{
    struct cqe_session *s = cq->session;
    unsigned held = s->held;
    uint32_t index = cq->pi - held;

    if (!held || cq->status) {
        return !cq->status;
    }
    s->held = 0;
    cqe_session_unlink(s);
    if (held == 1) {
        memcpy(s->title, s->first, sizeof(s->title));
        return cqe_session_write_plain(hca, cq, index, s->first);
    }
    return s->enhanced ? cqe_session_write_enhanced(hca, cq, index, held)
                       : cqe_session_write_basic(hca, cq, index, held);
}

void cqe_sessions_write(struct hca *hca)
{
    struct cqe_session *s;

    while ((s = hca->open_sessions)) {
        cqe_session_unlink(s);
        cqe_session_close(hca, s->cq);
    }
}

/* -- taking CQEs ------------------------------------------------------------------------------ */

/* Whether a CQE at this index can be held. */
static bool cqe_session_may_hold(const struct cq *cq, uint32_t index)
{
    return !cq->session->enhanced || (index >> cq->log_size & PLAIN_ROUNDS) != PLAIN_ROUNDS;
}

static unsigned cqe_session_most(const struct cq *cq)
{
    return cq->session->enhanced ? MINIS_ENHANCED : CQE_SESSION_MOST;
}

/* Whether the next CQE cannot be added to those that are held. */
static bool cqe_session_is_over(const struct cq *cq, const struct prm_cqe64 *cqe,
                                enum cqe_kind kind)
{
    const struct cqe_session *s = cq->session;

    return !cqe_session_fits(s, cqe, kind) || s->held == cqe_session_most(cq) ||
           cq->last_cqe_ns - s->since >= CQE_SESSION_TIMEOUT_US * 1000 || !(cq->pi & cq->slot_mask);
}

bool cqe_session_take(struct hca *hca, struct cq *cq, const struct prm_cqe64 *cqe)
{
    struct cqe_session *s = cq->session;
    enum cqe_kind kind = cqe_session_kind(s, cqe);
    uint32_t index = cq->pi;
    bool titled;

    if (s->held && cqe_session_is_over(cq, cqe, kind) && !cqe_session_close(hca, cq)) {
        return false;
    }
    /* without a title, the basic layout holds the CQE, and the enhanced one writes it */
    titled = s->enhanced ? cqe_session_fits(s, cqe, kind) : kind != CQE_KIND_NONE;
    cq_count(cq);
    s->counter = (uint16_t)(PRM_GET(cqe64, cqe, wqe_counter) +
                            (cq->strides ? CQE_STRIDES_OF(PRM_GET(cqe64, cqe, byte_cnt)) : 1));
    if (!titled || !cqe_session_may_hold(cq, index)) {
        s->kind = kind;
        memcpy(s->title, cqe, sizeof(s->title));
        return cqe_session_write_plain(hca, cq, index, cqe);
    }
    if (!s->held) {
        if (!s->enhanced) {
            s->kind = kind;
            memcpy(s->title, cqe, sizeof(s->title));
        }
        memcpy(s->first, cqe, sizeof(s->first));
        s->since = cq->last_cqe_ns;
        cqe_session_link(hca, s);
    }
    cqe_session_fill_mini(s, kind, cqe, &s->minis[s->held++]);
    hca_spend(hca, 1);
    return hca->running && s->held < cqe_session_most(cq) ? true : cqe_session_close(hca, cq);
}
