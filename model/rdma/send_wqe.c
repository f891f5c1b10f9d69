/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses send WQEs from the basic blocks in a ring.
 *
 * Segments follow one another in 16-byte units up to ds: control, XRC, address vector, remote
 * address or atomic or UMR, then data segments, pointers and inline data in any order.
 */
#include <string.h>
#include "model/port/port.h"
#include "model/memory/psv.h"
#include "model/queue/mmo.h"
#include "model/rdma/send_wqe.h"
#include "model/rdma/service.h"
#include "model/rdma/vec_calc.h"
#include "prm/prm.h"

#define DS_BYTES  16
#define BB_BYTES  64

#define ST(x)     (1u << PRM_QP_ST_##x)
#define RELIABLE  (ST(RC) | ST(XRC) | ST(DCI))
#define CONNECTED (RELIABLE | ST(UC))
#define DATAGRAM  (ST(UD) | ST(QP1))
#define ANY       (CONNECTED | DATAGRAM | ST(REG_UMR))
#define KEYS      (CONNECTED | ST(REG_UMR))
#define EXTENDED  (SEND_OP_RADDR | SEND_OP_ATOMIC | SEND_OP_EXTENDED)

const struct send_op send_ops[SEND_OPS] = {
    [PRM_WQE_OPCODE_NOP] = {"NOP", ANY, SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_SEND] = {"SEND", CONNECTED | DATAGRAM, 0, BTH_SEND_FIRST, BTH_SEND_MIDDLE,
                             BTH_SEND_LAST, BTH_SEND_ONLY},
    [PRM_WQE_OPCODE_SEND_IMM] = {"SEND_IMM", CONNECTED | DATAGRAM, SEND_OP_IMM, BTH_SEND_FIRST,
                                 BTH_SEND_MIDDLE, BTH_SEND_LAST_IMM, BTH_SEND_ONLY_IMM},
    [PRM_WQE_OPCODE_SEND_INVAL] = {"SEND_INVAL", RELIABLE, SEND_OP_IMM, BTH_SEND_FIRST,
                                   BTH_SEND_MIDDLE, BTH_SEND_LAST_INV, BTH_SEND_ONLY_INV},
    [PRM_WQE_OPCODE_RDMA_WRITE] = {"RDMA_WRITE", CONNECTED, SEND_OP_RADDR, BTH_WRITE_FIRST,
                                   BTH_WRITE_MIDDLE, BTH_WRITE_LAST, BTH_WRITE_ONLY},
    [PRM_WQE_OPCODE_RDMA_WRITE_IMM] = {"RDMA_WRITE_IMM", CONNECTED, SEND_OP_RADDR | SEND_OP_IMM,
                                       BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST_IMM,
                                       BTH_WRITE_ONLY_IMM},
    [PRM_WQE_OPCODE_RDMA_READ] = {"RDMA_READ", RELIABLE, SEND_OP_RADDR | SEND_OP_READ, 0, 0, 0,
                                  BTH_READ_REQUEST},
    [PRM_WQE_OPCODE_ATOMIC_CS] = {"ATOMIC_CS", RELIABLE, SEND_OP_RADDR | SEND_OP_ATOMIC, 0, 0, 0,
                                  BTH_CMP_SWAP},
    [PRM_WQE_OPCODE_ATOMIC_FA] = {"ATOMIC_FA", RELIABLE, SEND_OP_RADDR | SEND_OP_ATOMIC, 0, 0, 0,
                                  BTH_FETCH_ADD},
    [PRM_WQE_OPCODE_ATOMIC_MASKED_CS] = {"ATOMIC_MASKED_CS", RELIABLE, EXTENDED, 0, 0, 0,
                                         BTH_EXTENDED_CMP_SWAP},
    [PRM_WQE_OPCODE_ATOMIC_MASKED_FA] = {"ATOMIC_MASKED_FA", RELIABLE, EXTENDED, 0, 0, 0,
                                         BTH_EXTENDED_FETCH_ADD},
    [PRM_WQE_OPCODE_LOCAL_INVAL] = {"LOCAL_INVAL", KEYS, SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_SET_PSV] = {"SET_PSV", KEYS, SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_GET_PSV] = {"GET_PSV", KEYS, SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_DUMP] = {"DUMP", CONNECTED, SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_CQE_WAIT] = {"CQE_WAIT", CONNECTED | ST(UD), SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_RECV_ENABLE] = {"RECV_ENABLE", CONNECTED | ST(UD), SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_SEND_ENABLE] = {"SEND_ENABLE", CONNECTED | ST(UD), SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_UMR] = {"UMR", KEYS, SEND_OP_LOCAL | SEND_OP_UMR, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_MMO] = {"MMO", ST(RC) | ST(DCI), SEND_OP_LOCAL, 0, 0, 0, 0},
    [PRM_WQE_OPCODE_TAG_MATCHING] = {"TAG_MATCHING", ST(RC), SEND_OP_LOCAL | SEND_OP_TAGS, 0, 0, 0,
                                     0},
};

const struct send_op send_computed_op = {"SEND",         ST(RC),          SEND_OP_EXTENDED,
                                         BTH_SEND_FIRST, BTH_SEND_MIDDLE, BTH_SEND_LAST,
                                         BTH_SEND_ONLY};

/* State of the parser: the rest of the image. */
struct parse {
    const void *pos, *end;
    uint32_t denied; /* limits.denied */
    bool master;     /* limits.master */
};

static const void *send_wqe_take(struct parse *p, size_t len)
{
    const void *seg = p->pos;

    if ((size_t)(p->end - p->pos) < len) {
        return NULL;
    }
    p->pos += len;
    return seg;
}

/* Takes the last segment. libmlx5 puts the segment of the service (SRQ, address) before that of
 * cross channel (__mlx5_post_send_one_rc_dc()), which does not use it. */
static const void *send_wqe_take_last(struct parse *p, size_t len)
{
    if ((size_t)(p->end - p->pos) > len) {
        p->pos = p->end - len;
    }
    return send_wqe_take(p, len);
}

static bool send_wqe_parse_inline(struct send_wqe *wqe, struct parse *p)
{
    uint32_t bytes = PRM_GET(wqe_inline_seg, p->pos, byte_count);
    size_t padded = (PRM_SIZE(wqe_inline_seg) + bytes + DS_BYTES - 1) & ~(size_t)(DS_BYTES - 1);
    const struct prm_wqe_inline_seg *seg = send_wqe_take(p, padded);

    if (!seg || wqe->num_sge == WQE_MAX_SGE) {
        return false;
    }
    wqe->sge[wqe->num_sge] = (struct sge){.len = bytes};
    wqe->inl[wqe->num_sge] = PRM_PTR(wqe_inline_seg, seg, data);
    wqe->num_sge++;
    wqe->len += bytes;
    wqe->is_special = true;
    return true;
}

/* Parses data segments to the end of the WQE. */
static bool send_wqe_parse_data(struct send_wqe *wqe, struct parse *p, bool may_inline)
{
    while (p->pos < p->end) {
        const struct prm_wqe_data_seg *seg = p->pos;
        uint32_t bytes = PRM_GET(wqe_data_seg, seg, byte_count);
        uint32_t lkey = PRM_GET(wqe_data_seg, seg, lkey);

        if (PRM_GET(wqe_data_seg, seg, inl)) {
            if (!may_inline || !send_wqe_parse_inline(wqe, p)) {
                return false;
            }
            continue;
        }
        if (bytes == 0 && lkey == WQE_TERMINATOR_LKEY) {
            return true;
        }
        if (wqe->num_sge == WQE_MAX_SGE) {
            return false;
        }
        if (bytes == 0) {
            bytes = 1u << 31;
        }
        wqe->sge[wqe->num_sge] = (struct sge){
            .va = PRM_GET(wqe_data_seg, seg, addr),
            .len = bytes,
            .lkey = lkey == p->denied ? MKEY_NONE : lkey,
        };
        wqe->inl[wqe->num_sge] = NULL;
        wqe->num_sge++;
        wqe->len += bytes;
        p->pos += PRM_SIZE(wqe_data_seg);
    }
    return true;
}

/* Parses the segments of a UMR: its control, the key's new context, then entries and descriptor,
 * which are inline or behind data segments. */
static bool send_wqe_parse_umr(struct send_wqe *wqe, struct parse *p)
{
    wqe->umr_ctrl = send_wqe_take(p, PRM_SIZE(wqe_umr_ctrl_seg));
    wqe->umr_mkc = send_wqe_take(p, PRM_SIZE(mkc));
    if (!wqe->umr_ctrl || !wqe->umr_mkc) {
        return false;
    }
    wqe->umr_xlt_len = PRM_GET(wqe_umr_ctrl_seg, wqe->umr_ctrl, xlt_octowords) * DS_BYTES;
    /* The field is the low half of the offset of the entries in a UMR that has an offset. */
    if (PRM_GET(wqe_umr_ctrl_seg, wqe->umr_ctrl, mkey_mask) >> PRM_MKEY_MASK_BSF_EN & 1 &&
        !PRM_GET(wqe_umr_ctrl_seg, wqe->umr_ctrl, translation_offset_en)) {
        wqe->umr_bsf_len = PRM_GET(wqe_umr_ctrl_seg, wqe->umr_ctrl, bsf_octowords) * DS_BYTES;
    }
    if (PRM_GET(wqe_umr_ctrl_seg, wqe->umr_ctrl, inl)) {
        wqe->umr_xlt = send_wqe_take(p, wqe->umr_xlt_len + wqe->umr_bsf_len);
        return wqe->umr_xlt;
    }
    return send_wqe_parse_data(wqe, p, false) && wqe->umr_xlt_len + wqe->umr_bsf_len <= wqe->len;
}

/* Parses the operands of an extended atomic: the numbers follow one another, and together fill
 * whole units of 16 bytes. Bit 3 of opmod means extended; the other bits give the length of a
 * number: log2 of its bytes, minus 2. (7 would mean operands behind pointers.) */
static bool send_wqe_parse_operands(struct send_wqe *wqe, struct parse *p)
{
    enum masked_op op =
        wqe->opcode == PRM_WQE_OPCODE_ATOMIC_MASKED_CS ? MASKED_CMP_SWAP : MASKED_FETCH_ADD;
    uint32_t opmod = PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod);
    size_t len = (size_t)4 << (opmod & 7);

    if (opmod >> 3 != 1 || !masked_len_ok(len)) {
        return false;
    }
    wqe->number_len = (uint8_t)len;
    wqe->operands_len = (uint16_t)masked_operand_bytes(op, len);
    wqe->operands = send_wqe_take(p, MAX(wqe->operands_len, DS_BYTES));
    return wqe->operands;
}

/* Parses the address vector. DC also has short ones; then the QP has the path to the target. */
static const struct prm_wqe_av *send_wqe_take_av(struct parse *p, bool may_be_short)
{
    const struct prm_wqe_av *av = send_wqe_take(p, WQE_SHORT_AV);
    bool is_short = av && may_be_short && !PRM_GET(wqe_av, av, ext);

    return av && (is_short || send_wqe_take(p, PRM_SIZE(wqe_av) - WQE_SHORT_AV)) ? av : NULL;
}

/* Parses an operation on a tag list, and the buffer of an appended entry. */
static bool send_wqe_parse_tags(struct send_wqe *wqe, struct parse *p)
{
    wqe->tags = send_wqe_take(p, PRM_SIZE(wqe_tm_seg));
    return wqe->tags && send_wqe_parse_data(wqe, p, false) && wqe->num_sge <= 1;
}

/* Parses a copy from memory to memory: the list is its source, then its destination. */
static bool send_wqe_parse_mmo(struct send_wqe *wqe, struct parse *p)
{
    uint32_t opmod = PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod);
    struct mmo_copy copy;

    if (!mmo_parse(opmod, p->pos, (size_t)(p->end - p->pos), p->denied, &copy)) {
        return false;
    }
    wqe->sge[0] = copy.from;
    wqe->sge[1] = copy.to;
    wqe->num_sge = 2;
    wqe->len = copy.from.len;
    return true;
}

/* Parses a GET_PSV: the list is where the values go to. */
static bool send_wqe_parse_get_psv(struct send_wqe *wqe, struct parse *p)
{
    const struct prm_wqe_get_psv_seg *seg = send_wqe_take(p, PRM_SIZE(wqe_get_psv_seg));
    uint32_t n, lkey;

    if (!seg || PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod)) {
        return false;
    }
    n = PRM_GET(wqe_get_psv_seg, seg, num_psv);
    lkey = PRM_GET(wqe_get_psv_seg, seg, l_key);
    wqe->psv = seg;
    wqe->sge[0] = (struct sge){
        .va = PRM_GET(wqe_get_psv_seg, seg, va),
        .len = n * PRM_SIZE(wqe_set_psv_seg),
        .lkey = lkey == p->denied ? MKEY_NONE : lkey,
    };
    wqe->num_sge = 1;
    wqe->len = wqe->sge[0].len;
    return n >= 1 && n <= PSV_MAX;
}

/* Parses a vector calculation: the segment is all that follows. */
static G_GNUC_NO_INLINE __attribute__((cold)) bool send_wqe_parse_vectors(struct send_wqe *wqe,
                                                                          struct parse *p)
{
    wqe->vectors = send_wqe_take(p, PRM_SIZE(wqe_vec_calc_seg));
    if (!wqe->vectors || p->pos != p->end || !vec_calc_ok(wqe->vectors)) {
        return false;
    }
    wqe->len = vec_calc_len(wqe->vectors);
    return true;
}

/* Parses what follows the control segment of an operation that sends nothing on the wire. */
static G_GNUC_NO_INLINE bool send_wqe_parse_local(struct send_wqe *wqe, struct parse *p)
{
    if (wqe->op->flags & SEND_OP_UMR) {
        return send_wqe_parse_umr(wqe, p);
    }
    if (wqe->op->flags & SEND_OP_TAGS) {
        return send_wqe_parse_tags(wqe, p);
    }
    switch (wqe->opcode) {
    case PRM_WQE_OPCODE_SET_PSV:
        wqe->psv = send_wqe_take(p, PRM_SIZE(wqe_set_psv_seg));
        return wqe->psv;
    case PRM_WQE_OPCODE_GET_PSV:
        return send_wqe_parse_get_psv(wqe, p);
    case PRM_WQE_OPCODE_CQE_WAIT:
    case PRM_WQE_OPCODE_RECV_ENABLE:
    case PRM_WQE_OPCODE_SEND_ENABLE:
        wqe->wait_en = send_wqe_take_last(p, PRM_SIZE(wqe_wait_en_seg));
        return wqe->wait_en && (p->master || wqe->opcode == PRM_WQE_OPCODE_CQE_WAIT);
    case PRM_WQE_OPCODE_DUMP:
        return send_wqe_parse_data(wqe, p, false);
    case PRM_WQE_OPCODE_MMO:
        return send_wqe_parse_mmo(wqe, p);
    default:
        return true;
    }
}

static bool send_wqe_parse_segments(struct send_wqe *wqe, struct parse *p,
                                    const struct service *service)
{
    if (service->names_srq && !(wqe->op->flags & SEND_OP_LOCAL)) {
        const struct prm_wqe_xrc_seg *seg = send_wqe_take(p, PRM_SIZE(wqe_xrc_seg));

        if (!seg) {
            return false;
        }
        wqe->xrc_srqn = PRM_GET(wqe_xrc_seg, seg, xrc_srqn);
    }
    if (!service->connected && !(wqe->op->flags & SEND_OP_LOCAL)) {
        wqe->av = send_wqe_take_av(p, service->dynamic);
        if (!wqe->av) {
            return false;
        }
    }
    if (wqe->op->flags & SEND_OP_RADDR) {
        const struct prm_wqe_raddr_seg *seg = send_wqe_take(p, PRM_SIZE(wqe_raddr_seg));

        if (!seg) {
            return false;
        }
        wqe->raddr = PRM_GET(wqe_raddr_seg, seg, raddr);
        wqe->rkey = PRM_GET(wqe_raddr_seg, seg, rkey);
    }
    if (wqe->op->flags & SEND_OP_EXTENDED) {
        if (send_op_computes(wqe->op->flags)) {
            return send_wqe_parse_vectors(wqe, p);
        }
        if (!send_wqe_parse_operands(wqe, p)) {
            return false;
        }
    } else if (wqe->op->flags & SEND_OP_ATOMIC) {
        const struct prm_wqe_atomic_seg *seg = send_wqe_take(p, PRM_SIZE(wqe_atomic_seg));

        if (!seg) {
            return false;
        }
        wqe->swap_add = PRM_GET(wqe_atomic_seg, seg, swap_add);
        wqe->compare = PRM_GET(wqe_atomic_seg, seg, compare);
    }
    if (G_UNLIKELY(wqe->op->flags & SEND_OP_LOCAL)) {
        return send_wqe_parse_local(wqe, p);
    }
    return send_wqe_parse_data(wqe, p, !(wqe->op->flags & (SEND_OP_READ | SEND_OP_ATOMIC)));
}

/* A READ whose response data is calculated with. */
static const struct send_op send_op_read_calc = {
    "RDMA_READ", RELIABLE,        SEND_OP_RADDR | SEND_OP_READ | SEND_OP_EXTENDED, 0, 0,
    0,           BTH_READ_REQUEST};

uint8_t send_wqe_set_calc_length(struct send_wqe *wqe)
{
    if (!calc_length_ok(wqe->len)) {
        return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    wqe->calc_len = (uint16_t)wqe->len;
    if (!(wqe->op->flags & SEND_OP_READ)) {
        wqe->len = CALC_ELEMENT;
    }
    return 0;
}

/* Parses opmod: the operations that libmlx5 posts with a calculation have it there; it says nothing
 * of others. Each element of the list has whole operands. */
static G_GNUC_NO_INLINE __attribute__((cold)) uint8_t
send_wqe_parse_calc(const struct send_limits *limits, struct send_wqe *wqe)
{
    uint32_t opmod = PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod);

    if (send_op_computes(wqe->op->flags)) {
        return 0;
    }
    switch (wqe->opcode) {
    case PRM_WQE_OPCODE_SEND:
    case PRM_WQE_OPCODE_RDMA_WRITE:
    case PRM_WQE_OPCODE_RDMA_WRITE_IMM:
        break;
    case PRM_WQE_OPCODE_RDMA_READ:
        wqe->op = &send_op_read_calc;
        break;
    default:
        return 0;
    }
    if (!limits->master || !limits->service->reliable || opmod >= CALC_OPS) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    wqe->calc = (uint8_t)opmod;
    wqe->is_special = true;
    for (unsigned i = 0; i < wqe->num_sge; i++) {
        if (wqe->sge[i].len % CALC_ELEMENT) {
            return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        }
    }
    return send_wqe_set_calc_length(wqe);
}

/* Checks lengths when the list is known. The QP limits the length of a message (qpc.log_msg_max).
 * The result of an atomic has 8 bytes, or the length of one of its numbers. */
static bool send_wqe_length_ok(const struct send_wqe *wqe, const struct send_limits *limits)
{
    if (G_UNLIKELY(wqe->op->flags & SEND_OP_LOCAL) && wqe->opcode != PRM_WQE_OPCODE_DUMP) {
        return wqe->opcode != PRM_WQE_OPCODE_MMO ||
               mmo_length_ok(&(struct mmo_copy){.from = wqe->sge[0], .to = wqe->sge[1]});
    }
    if (wqe->op->flags & SEND_OP_ATOMIC) {
        return wqe->len == (wqe->op->flags & SEND_OP_EXTENDED ? wqe->number_len : 8);
    }
    return wqe->len <= 1ULL << limits->log_msg_max;
}

static unsigned send_wqe_num_bb(const struct prm_wqe_ctrl_seg *ctrl)
{
    return (PRM_GET(wqe_ctrl_seg, ctrl, ds) * DS_BYTES + BB_BYTES - 1) / BB_BYTES;
}

unsigned send_wqe_peek(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       uint8_t *opcode)
{
    struct prm_wqe_ctrl_seg ctrl[1];
    unsigned num_bb;

    *opcode = 0;
    if (!wq_read(hca, sq, index, ctrl, sizeof(ctrl))) {
        return 0;
    }
    *opcode = PRM_GET(wqe_ctrl_seg, ctrl, opcode);
    num_bb = send_wqe_num_bb(ctrl);
    return num_bb <= max_bb ? num_bb : 0;
}

/* Parses the control segment. */
static void send_wqe_parse_ctrl(struct send_wqe *wqe)
{
    wqe->opcode = PRM_GET(wqe_ctrl_seg, wqe->ctrl, opcode);
    wqe->fence = PRM_GET(wqe_ctrl_seg, wqe->ctrl, fm);
    wqe->ce = PRM_GET(wqe_ctrl_seg, wqe->ctrl, ce);
    wqe->solicited = PRM_GET(wqe_ctrl_seg, wqe->ctrl, se);
    wqe->imm = PRM_GET(wqe_ctrl_seg, wqe->ctrl, imm);
}

/* Parses the segments after the control segment. */
static uint8_t send_wqe_parse(const struct send_limits *limits, struct send_wqe *wqe)
{
    struct parse p = {
        .pos = wqe->image + PRM_SIZE(wqe_ctrl_seg),
        .end = wqe->image + PRM_GET(wqe_ctrl_seg, wqe->ctrl, ds) * (size_t)DS_BYTES,
        .denied = limits->denied,
        .master = limits->master,
    };

    if (wqe->opcode >= SEND_OPS || !(send_ops[wqe->opcode].st_mask & 1u << limits->service->st)) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    wqe->op = &send_ops[wqe->opcode];
    if (G_UNLIKELY(PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod) == PRM_SEND_OPMOD_VECTOR_CALC) &&
        wqe->opcode == PRM_WQE_OPCODE_SEND) {
        wqe->op = &send_computed_op;
        if (!(wqe->op->st_mask & 1u << limits->service->st)) {
            return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        }
    }
    if (!send_wqe_parse_segments(wqe, &p, limits->service)) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if (!send_wqe_length_ok(wqe, limits)) {
        return PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    return G_UNLIKELY(PRM_GET(wqe_ctrl_seg, wqe->ctrl, opmod)) ? send_wqe_parse_calc(limits, wqe)
                                                               : 0;
}

uint8_t send_wqe_fetch(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       const struct send_limits *limits, struct send_wqe *wqe)
{
    unsigned ds, num_bb;

    memset(wqe, 0, offsetof(struct send_wqe, sge));
    wqe->index = index;
    if (!wq_read(hca, sq, index, wqe->image, BB_BYTES)) {
        memset(wqe->image, 0, BB_BYTES); /* so that nothing of an earlier WQE is left */
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    ds = PRM_GET(wqe_ctrl_seg, wqe->ctrl, ds);
    num_bb = send_wqe_num_bb(wqe->ctrl);
    send_wqe_parse_ctrl(wqe);
    if (num_bb == 0 || num_bb > max_bb || ds * DS_BYTES > limits->max_wqe) {
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    wqe->num_bb = (uint8_t)num_bb;
    if (num_bb > 1 &&
        !wq_read(hca, sq, index + 1u, wqe->image + BB_BYTES, (num_bb - 1) * (size_t)BB_BYTES)) {
        memset(wqe->image + BB_BYTES, 0, (num_bb - 1) * (size_t)BB_BYTES);
        return PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    return send_wqe_parse(limits, wqe);
}

uint8_t send_wqe_decode(const struct send_limits *limits, uint16_t index, struct send_wqe *wqe)
{
    memset(wqe, 0, offsetof(struct send_wqe, sge));
    wqe->index = index;
    wqe->num_bb = (uint8_t)send_wqe_num_bb(wqe->ctrl);
    send_wqe_parse_ctrl(wqe);
    return send_wqe_parse(limits, wqe);
}

size_t send_wqe_bytes(const struct send_wqe *wqe)
{
    return wqe->num_bb ? PRM_GET(wqe_ctrl_seg, wqe->ctrl, ds) * 16u : BB_BYTES;
}

/* Copies bytes of a list of inline data and memory. */
static enum mem_result send_wqe_gather_inline(struct hca *hca, const struct send_wqe *wqe,
                                              uint32_t pdn, struct sge_cursor *cursor,
                                              uint64_t offset, void *buf, size_t len)
{
    uint8_t *out = buf;

    if (offset < cursor->base) {
        *cursor = (struct sge_cursor){0};
    }
    while (len) {
        const struct sge *sge = &wqe->sge[cursor->index];
        uint64_t skip = offset - cursor->base;
        enum mem_result result = MEM_OK;
        size_t run;

        if (cursor->index == wqe->num_sge) {
            return MEM_BAD_BOUNDS;
        }
        if (skip >= sge->len) {
            cursor->base += sge->len;
            cursor->index++;
            continue;
        }
        run = MIN((uint64_t)len, sge->len - skip);
        if (wqe->inl[cursor->index]) {
            memcpy(out, wqe->inl[cursor->index] + skip, run);
        } else {
            result = mkey_read(hca, sge->lkey, pdn, sge->va + skip, out, run, MEM_LOCAL_READ);
        }
        if (result != MEM_OK) {
            return result;
        }
        out += run;
        offset += run;
        len -= run;
    }
    return MEM_OK;
}

/* The operands are gathered anew for each packet that is sent again. */
static G_GNUC_NO_INLINE __attribute__((cold)) enum mem_result
send_wqe_calculate(struct hca *hca, const struct send_wqe *wqe, uint32_t pdn, uint8_t *sum)
{
    uint8_t operands[CALC_MAX_BYTES];
    struct sge_cursor cursor = {0};
    enum mem_result result =
        send_wqe_gather_inline(hca, wqe, pdn, &cursor, 0, operands, wqe->calc_len);

    if (result == MEM_OK) {
        calc_begin(wqe->calc, sum, operands, wqe->calc_len / CALC_ELEMENT);
    }
    return result;
}

enum mem_result send_wqe_gather(struct hca *hca, const struct send_wqe *wqe, uint32_t pdn,
                                struct sge_cursor *cursor, uint64_t offset, void *buf, size_t len)
{
    if (G_LIKELY(!wqe->is_special)) {
        return sge_gather(hca, wqe->sge, wqe->num_sge, pdn, cursor, offset, buf, len);
    }
    return G_UNLIKELY(wqe->calc) ? send_wqe_calculate(hca, wqe, pdn, buf)
                                 : send_wqe_gather_inline(hca, wqe, pdn, cursor, offset, buf, len);
}

bool send_wqe_address(struct hca *hca, const struct prm_wqe_av *av, struct roce_addr *addr)
{
    uint32_t index = PRM_GET(wqe_av, av, src_addr_index);
    const struct vport_gid *gid;

    /* av.grh is ignored on an Ethernet port, because every packet there has a GRH or an IP header.
     * The kernel sets it; rdma-core does not (mlx5_create_ah()). */
    if (!PRM_GET(wqe_av, av, ext) || index >= PORT_MAX_GIDS) {
        return false;
    }
    gid = &hca->vport->gids[index];
    if (!vport_gid_is_usable(gid)) {
        return false;
    }
    *addr = (struct roce_addr){
        .has_vlan = gid->has_vlan,
        .is_v1 = gid->version == PRM_ROCE_VERSION_V1,
        .is_ipv4 = gid->version == PRM_ROCE_VERSION_V2 && gid->l3_type == PRM_ROCE_L3_TYPE_IPV4,
        .tclass = PRM_GET(wqe_av, av, tclass),
        .hop_limit = PRM_GET(wqe_av, av, hop_limit),
        .flow_label = PRM_GET(wqe_av, av, flow_label),
        .udp_sport = PRM_GET(wqe_av, av, udp_sport),
    };
    if (gid->has_vlan) {
        /* The priority is in the upper three bits of sl (driver: create_ib_ah). */
        addr->vlan_tci = (uint16_t)((PRM_GET(wqe_av, av, sl) >> 1 & 7) << 13 | gid->vlan_id);
    }
    memcpy(addr->dmac, PRM_PTR(wqe_av, av, rmac), 6);
    memcpy(addr->smac, gid->mac, 6);
    memcpy(addr->sgid, gid->gid, 16);
    memcpy(addr->dgid, PRM_PTR(wqe_av, av, rgid), 16);
    return true;
}
