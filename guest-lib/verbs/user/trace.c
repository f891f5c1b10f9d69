/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the program in the trace file; see user/trace.h. */
#include "guest-lib/verbs/user/trace.h"
#include "guest-lib/verbs/user/cqe_data.h"
#include "prm/line.h"
#include "prm/reflect.h"

#define EVENT 512

/* wr_id is the program's own, of 64 bits: a string, as JavaScript has no such integers. */
static void trace_add_wr_id(struct prm_line *line, uint64_t wr_id)
{
    char text[24];

    g_snprintf(text, sizeof(text), "0x%" G_GINT64_MODIFIER "x", wr_id);
    prm_line_add_text(line, "wr_id", text);
}

void hv_trace_post(struct user_qp *qp)
{
    uint32_t index = qp->sq_post & (qp->sq.wqe_cnt - 1);
    const char *opcode = prm_enum_name("wqe_opcode", PRM_GET(wqe_ctrl_seg, qp->cur_ctrl, opcode));
    char text[EVENT];
    struct prm_line line;

    prm_line_begin_json(&line, text, sizeof(text));
    prm_line_add_text(&line, "e", "post");
    prm_line_add_count(&line, "qpn", qp->ibv.qp_num);
    prm_line_add_count(&line, "wqe", qp->sq_post & 0xffff);
    prm_line_add_text(&line, "opcode", opcode ? opcode : "unknown");
    trace_add_wr_id(&line, qp->sq.wrid[index]);
    prm_line_add_count(&line, "signaled",
                       PRM_GET(wqe_ctrl_seg, qp->cur_ctrl, ce) == PRM_WQE_CE_ALWAYS);
    hv_trace_event(qp->hca, line.text, line.len);
}

void hv_trace_receive(struct hv_hca *hca, bool is_srq, uint32_t number, uint32_t wqe,
                      uint64_t wr_id)
{
    char text[EVENT];
    struct prm_line line;

    prm_line_begin_json(&line, text, sizeof(text));
    prm_line_add_text(&line, "e", "post_recv");
    prm_line_add_count(&line, is_srq ? "srqn" : "qpn", number);
    prm_line_add_count(&line, "wqe", wqe & 0xffff);
    trace_add_wr_id(&line, wr_id);
    hv_trace_event(hca, line.text, line.len);
}

void hv_trace_poll(struct user_cq *cq, const struct prm_cqe64 *cqe, const struct completion *done)
{
    unsigned opcode = PRM_GET(cqe64, cqe, opcode);
    char text[EVENT];
    struct prm_line line;

    prm_line_begin_json(&line, text, sizeof(text));
    prm_line_add_text(&line, "e", "poll");
    prm_line_add_count(&line, "cqn", cq->cqn);
    prm_line_add_count(&line, "qpn", PRM_GET(cqe64, cqe, qpn));
    prm_line_add_count(&line, "wqe", PRM_GET(cqe64, cqe, wqe_counter));
    prm_line_add_count(&line, "of_send",
                       opcode == PRM_CQE_OPCODE_REQ || opcode == PRM_CQE_OPCODE_REQ_ERR);
    trace_add_wr_id(&line, done->wr_id);
    prm_line_add_text(&line, "status", ibv_wc_status_str(done->status));
    hv_trace_event(cq->hca, line.text, line.len);
}
