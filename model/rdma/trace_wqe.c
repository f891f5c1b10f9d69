/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the WQEs of the trace; see model/rdma/trace_wqe.h.
 *
 * The segments are those that model/rdma/send_wqe.c parses, in the same order. This file reads the
 * image again, because it also describes the WQEs that the parser refuses.
 */
#include "model/rdma/trace_wqe.h"
#include <inttypes.h>
#include "model/core/trace.h"
#include "model/core/trace_event.h"
#include "model/memory/masked.h"
#include "model/rdma/service.h"

#define DS_BYTES    16
#define MOST_INLINE 16 /* bytes of inline data that are shown */
#define MOST_OTHER  64 /* of what has no description */

/* The fields of the control segment that the line's beginning does not have; the last one is the
 * field in dword 3 that the opcode uses. */
static const char *const ctrl_fields[] = {
    "opmod", "dci_stream_channel_id", "signature", "fm", "ce", "se", NULL};
#define AV_REST                                                                                    \
    "ext", "dqp_dct", "stat_rate", "sl", "fl", "mlid", "udp_sport", "rmac", "tclass", "hop_limit", \
        "grh", "src_addr_index", "flow_label", "rgid", NULL
static const char *const ud_av_fields[] = {"qkey", AV_REST};
static const char *const dc_av_fields[] = {"dc_key", AV_REST};
static const char *const tm_fields[] = {"opcode", "cqe_req",    "has_sw_cnt",  "index",
                                        "sw_cnt", "append_tag", "append_mask", NULL};
static const char *const data_fields[] = {"byte_count", "lkey", "addr", NULL};

/* The part of a WQE that is not described yet. */
struct wqe_rest {
    const uint8_t *pos;
    size_t left;
};

/* Adds something that is no structure. JSON: the text as the value of the title. */
static void trace_add_note(struct prm_line *line, const char *title, const char *text)
{
    if (line->is_json) {
        prm_line_add_text(line, title, text);
    } else {
        prm_line_add(line, " %s{%s}", title, text);
    }
}

static void trace_add_raw(struct prm_line *line, const char *title, const uint8_t *bytes,
                          size_t len)
{
    char text[2 * MOST_OTHER + 32];
    struct prm_line part;

    prm_line_begin(&part, text, sizeof(text));
    prm_line_add_bytes(&part, bytes, len, MOST_OTHER);
    trace_add_note(line, title, text);
}

static void trace_add_rest(struct prm_line *line, const struct wqe_rest *rest)
{
    if (rest->left) {
        trace_add_raw(line, "other", rest->pos, rest->left);
    }
}

/* Takes the next len bytes. NULL: fewer are left, and the line says so. */
static const uint8_t *trace_take(struct prm_line *line, struct wqe_rest *rest, const char *title,
                                 size_t len)
{
    const uint8_t *pos = rest->pos;

    if (len > rest->left) {
        char text[64];

        snprintf(text, sizeof(text), "%zu of %zu bytes", rest->left, len);
        trace_add_note(line, title, text);
        rest->left = 0;
        return NULL;
    }
    rest->pos += len;
    rest->left -= len;
    return pos;
}

/* Adds a segment of len bytes: the fields with these names, or all of them. */
static void trace_add_segment(struct prm_line *line, struct wqe_rest *rest, const char *title,
                              const char *layout, size_t len, const char *const *fields)
{
    const struct prm_struct *s = prm_struct_find(layout);
    const uint8_t *seg = trace_take(line, rest, title, len);

    if (!seg) {
        return;
    }
    prm_line_open_group(line, title);
    if (fields) {
        prm_line_add_chosen(line, s, seg, len, fields);
    } else {
        prm_line_add_fields(line, s, seg, len);
    }
    prm_line_close_group(line);
}

static void trace_add_inline(struct prm_line *line, struct wqe_rest *rest, uint32_t bytes)
{
    size_t padded = (PRM_SIZE(wqe_inline_seg) + bytes + DS_BYTES - 1) & ~(size_t)(DS_BYTES - 1);
    const uint8_t *seg = trace_take(line, rest, "inline", padded);

    if (seg) {
        char text[2 * MOST_INLINE + 32];
        struct prm_line part;

        prm_line_begin(&part, text, sizeof(text));
        prm_line_add_bytes(&part, seg + PRM_SIZE(wqe_inline_seg), bytes, MOST_INLINE);
        prm_line_open_group(line, "inline");
        if (line->is_json) {
            prm_line_add_count(line, "byte_count", bytes);
            prm_line_add_text(line, "data", text);
        } else {
            prm_line_add(line, "byte_count=%u data=%s", bytes, text);
        }
        prm_line_close_group(line);
    }
}

/* Adds the data segments, to the terminator or to the end. */
static void trace_add_data(struct prm_line *line, struct wqe_rest *rest)
{
    while (rest->left >= PRM_SIZE(wqe_data_seg) && !line->is_full) {
        const struct prm_wqe_data_seg *seg = (const void *)rest->pos;

        if (PRM_GET(wqe_data_seg, seg, inl)) {
            trace_add_inline(line, rest, PRM_GET(wqe_inline_seg, (const void *)seg, byte_count));
        } else if (PRM_GET(wqe_data_seg, seg, byte_count) == 0 &&
                   PRM_GET(wqe_data_seg, seg, lkey) == WQE_TERMINATOR_LKEY) {
            return;
        } else {
            trace_add_segment(line, rest, "data", "wqe_data_seg", PRM_SIZE(wqe_data_seg),
                              data_fields);
        }
    }
}

/* Adds the operands of an extended atomic, whose length opmod gives (send_wqe.c). */
static void trace_add_operands(struct prm_line *line, struct wqe_rest *rest,
                               const struct prm_wqe_ctrl_seg *ctrl)
{
    enum masked_op op = PRM_GET(wqe_ctrl_seg, ctrl, opcode) == PRM_WQE_OPCODE_ATOMIC_MASKED_CS
                            ? MASKED_CMP_SWAP
                            : MASKED_FETCH_ADD;
    size_t len = (size_t)4 << (PRM_GET(wqe_ctrl_seg, ctrl, opmod) & 7), bytes;
    const uint8_t *operands;

    if (!masked_len_ok(len)) {
        char text[64];

        snprintf(text, sizeof(text), "%zu bytes each, which is no length of an atomic", len);
        trace_add_note(line, "operands", text);
        return;
    }
    bytes = masked_operand_bytes(op, len);
    operands = trace_take(line, rest, "operands", MAX(bytes, DS_BYTES));
    if (operands) {
        trace_add_raw(line, "operands", operands, bytes);
    }
}

static void trace_add_umr(struct prm_line *line, struct wqe_rest *rest)
{
    const struct prm_wqe_umr_ctrl_seg *ctrl = (const void *)rest->pos;
    bool is_inline =
        rest->left >= PRM_SIZE(wqe_umr_ctrl_seg) && PRM_GET(wqe_umr_ctrl_seg, ctrl, inl);

    trace_add_segment(line, rest, "umr", "wqe_umr_ctrl_seg", PRM_SIZE(wqe_umr_ctrl_seg), NULL);
    trace_add_segment(line, rest, "mkc", "mkc", PRM_SIZE(mkc), NULL);
    if (is_inline) {
        trace_add_rest(line, rest);
    } else {
        trace_add_data(line, rest);
    }
}

static bool trace_is_cross(unsigned opcode)
{
    return opcode == PRM_WQE_OPCODE_CQE_WAIT || opcode == PRM_WQE_OPCODE_SEND_ENABLE ||
           opcode == PRM_WQE_OPCODE_RECV_ENABLE;
}

static void trace_add_segments(struct prm_line *line, struct wqe_rest *rest,
                               const struct service *service, const struct prm_wqe_ctrl_seg *ctrl,
                               unsigned flags)
{
    bool is_local = flags & SEND_OP_LOCAL;
    /* libmlx5 writes it before the segment of cross channel, too */
    bool has_service = !is_local || (trace_is_cross(PRM_GET(wqe_ctrl_seg, ctrl, opcode)) &&
                                     rest->left > PRM_SIZE(wqe_wait_en_seg));

    if (service->names_srq && has_service) {
        trace_add_segment(line, rest, "xrc", "wqe_xrc_seg", PRM_SIZE(wqe_xrc_seg), NULL);
    }
    if (!service->connected && has_service) {
        bool is_short = service->dynamic && rest->left >= WQE_SHORT_AV &&
                        !PRM_GET(wqe_av, (const void *)rest->pos, ext);

        trace_add_segment(line, rest, "av", "wqe_av", is_short ? WQE_SHORT_AV : PRM_SIZE(wqe_av),
                          service->dynamic ? dc_av_fields : ud_av_fields);
    }
    if (flags & SEND_OP_RADDR) {
        trace_add_segment(line, rest, "raddr", "wqe_raddr_seg", PRM_SIZE(wqe_raddr_seg), NULL);
    }
    if (send_op_computes(flags)) {
        trace_add_segment(line, rest, "calc", "wqe_vec_calc_seg", PRM_SIZE(wqe_vec_calc_seg), NULL);
        trace_add_rest(line, rest);
    } else if (flags & SEND_OP_EXTENDED) {
        trace_add_operands(line, rest, ctrl);
    } else if (flags & SEND_OP_ATOMIC) {
        trace_add_segment(line, rest, "atomic", "wqe_atomic_seg", PRM_SIZE(wqe_atomic_seg), NULL);
    }
    if (flags & SEND_OP_UMR) {
        trace_add_umr(line, rest);
    } else if (flags & SEND_OP_TAGS) {
        trace_add_segment(line, rest, "tm", "wqe_tm_seg", PRM_SIZE(wqe_tm_seg), tm_fields);
        trace_add_data(line, rest);
    } else if (PRM_GET(wqe_ctrl_seg, ctrl, opcode) == PRM_WQE_OPCODE_SET_PSV) {
        trace_add_segment(line, rest, "psv", "wqe_set_psv_seg", PRM_SIZE(wqe_set_psv_seg), NULL);
    } else if (PRM_GET(wqe_ctrl_seg, ctrl, opcode) == PRM_WQE_OPCODE_GET_PSV) {
        trace_add_segment(line, rest, "psv", "wqe_get_psv_seg", PRM_SIZE(wqe_get_psv_seg), NULL);
    } else if (trace_is_cross(PRM_GET(wqe_ctrl_seg, ctrl, opcode))) {
        trace_add_segment(line, rest, "cross", "wqe_wait_en_seg", PRM_SIZE(wqe_wait_en_seg), NULL);
    } else if (PRM_GET(wqe_ctrl_seg, ctrl, opcode) == PRM_WQE_OPCODE_MMO) {
        trace_add_segment(line, rest, "mmo", "wqe_mmo_seg", PRM_OFFSET(wqe_mmo_seg, source), NULL);
        trace_add_data(line, rest);
    } else if (!is_local || PRM_GET(wqe_ctrl_seg, ctrl, opcode) == PRM_WQE_OPCODE_DUMP) {
        trace_add_data(line, rest);
    }
}

/* The name of dword 3 of the control segment, or NULL: the operation does not use it. */
static const char *trace_general_field(unsigned opcode, unsigned flags)
{
    switch (opcode) {
    case PRM_WQE_OPCODE_SEND_INVAL:
    case PRM_WQE_OPCODE_LOCAL_INVAL:
        return "inval_key";
    case PRM_WQE_OPCODE_UMR:
        return "umr_mkey";
    case PRM_WQE_OPCODE_TAG_MATCHING:
        return "general_id";
    default:
        return flags & SEND_OP_IMM ? "imm" : NULL;
    }
}

void trace_describe_send_wqe(struct prm_line *line, const struct service *service,
                             const uint8_t *image, size_t len)
{
    const struct prm_struct *layout = prm_struct_find("wqe_ctrl_seg");
    const struct prm_wqe_ctrl_seg *ctrl = (const void *)image;
    struct wqe_rest rest = {image, len};
    const struct send_op *op;
    unsigned opcode;

    if (!trace_take(line, &rest, "ctrl", PRM_SIZE(wqe_ctrl_seg))) {
        return;
    }
    opcode = PRM_GET(wqe_ctrl_seg, ctrl, opcode);
    op = opcode < SEND_OPS && send_ops[opcode].name ? &send_ops[opcode] : NULL;
    if (opcode == PRM_WQE_OPCODE_SEND &&
        PRM_GET(wqe_ctrl_seg, ctrl, opmod) == PRM_SEND_OPMOD_VECTOR_CALC) {
        op = &send_computed_op;
    }
    if (!line->is_json) { /* an event has it by itself */
        prm_line_add(line, " ");
        prm_line_add_name(line, "wqe_opcode", opcode);
    }
    prm_line_add_chosen(line, layout, ctrl, PRM_SIZE(wqe_ctrl_seg), ctrl_fields);
    if (!op) {
        trace_add_rest(line, &rest);
        return;
    }
    if (trace_general_field(opcode, op->flags)) {
        const char *const names[] = {trace_general_field(opcode, op->flags), NULL};

        prm_line_add_chosen(line, layout, ctrl, PRM_SIZE(wqe_ctrl_seg), names);
    }
    if (!(op->st_mask & 1u << service->st)) {
        if (!line->is_json) {
            prm_line_add(line, " (no operation of %s)", service->name);
        }
        trace_add_rest(line, &rest);
        return;
    }
    trace_add_segments(line, &rest, service, ctrl, op->flags);
}

/* The event of a WQE that starts; its first packet has the QP's next PSN. */
static void trace_send_event(const struct qp *qp, const struct send_wqe *wqe)
{
    struct trace_event event;

    trace_event_begin(&event, "wqe");
    prm_line_add_count(&event.line, "qpn", qp->obj.num);
    prm_line_add_count(&event.line, "wqe", wqe->index);
    prm_line_add_count(&event.line, "psn", qp->req.next_psn);
    trace_event_add_name(&event, "opcode", "wqe_opcode", PRM_GET(wqe_ctrl_seg, wqe->ctrl, opcode));
    if (qp->service->connected) {
        prm_line_add_count(&event.line, "dqpn", qp->peer.qpn);
    }
    prm_line_add_count(&event.line, "len", wqe->len);
    prm_line_open_group(&event.line, "fields");
    trace_describe_send_wqe(&event.line, qp->service, wqe->image, send_wqe_bytes(wqe));
    prm_line_close_group(&event.line);
    trace_event_end(qp->hca, &event);
}

void trace_send_wqe(const struct qp *qp, const struct send_wqe *wqe)
{
    struct trace_line line;

    if (qp->hca->tracing & HCA_TRACES_EVENTS) {
        trace_send_event(qp, wqe);
    }
    if (!(qp->hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }

    trace_begin(&line);
    prm_line_add(&line.line, "qp 0x%x: send wqe %u", qp->obj.num, wqe->index);
    trace_describe_send_wqe(&line.line, qp->service, wqe->image, send_wqe_bytes(wqe));
    if (wqe->num_bb == 0) {
        prm_line_add(&line.line, " (ds=%u is not the length of a WQE that was posted)",
                     (unsigned)PRM_GET(wqe_ctrl_seg, wqe->ctrl, ds));
    }
    if (PRM_GET(wqe_ctrl_seg, wqe->ctrl, qpn) != qp->obj.num) {
        prm_line_add(&line.line, " (qpn=0x%x)", (unsigned)PRM_GET(wqe_ctrl_seg, wqe->ctrl, qpn));
    }
    trace_end(qp->hca, &line);
}

static void trace_recv_event(const struct qp *qp, const struct srq *srq, const struct recv_wqe *wqe)
{
    struct trace_event event;

    trace_event_begin(&event, "receive");
    prm_line_add_count(&event.line, "qpn", qp->obj.num);
    if (srq) {
        prm_line_add_count(&event.line, "srqn", srq->obj.num);
    }
    prm_line_add_count(&event.line, "wqe", wqe->index);
    prm_line_add_count(&event.line, "len", wqe->len);
    prm_line_open_group(&event.line, "fields");
    for (unsigned i = 0; i < wqe->num_sge && !event.line.is_full; i++) {
        char addr[32], key[16];

        snprintf(addr, sizeof(addr), "0x%" PRIx64, wqe->sge[i].va);
        snprintf(key, sizeof(key), "0x%x", wqe->sge[i].lkey);
        prm_line_open_group(&event.line, "data");
        prm_line_add_count(&event.line, "byte_count", wqe->sge[i].len);
        prm_line_add_text(&event.line, "lkey", key);
        prm_line_add_text(&event.line, "addr", addr);
        prm_line_close_group(&event.line);
    }
    prm_line_close_group(&event.line);
    trace_event_end(qp->hca, &event);
}

void trace_recv_wqe(const struct qp *qp, const struct srq *srq, const struct recv_wqe *wqe)
{
    struct trace_line line;

    if (qp->hca->tracing & HCA_TRACES_EVENTS) {
        trace_recv_event(qp, srq, wqe);
    }
    if (!(qp->hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }

    trace_begin(&line);
    prm_line_add(&line.line, "qp 0x%x: receive wqe %u, %" PRIu64 " bytes:", qp->obj.num, wqe->index,
                 wqe->len);
    for (unsigned i = 0; i < wqe->num_sge && !line.line.is_full; i++) {
        prm_line_add(&line.line, " data{byte_count=%u lkey=0x%x addr=0x%" PRIx64 "}",
                     wqe->sge[i].len, wqe->sge[i].lkey, wqe->sge[i].va);
    }
    trace_end(qp->hca, &line);
}
