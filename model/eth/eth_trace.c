/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements eth_trace.h. */
#include "model/eth/eth_trace.h"
#include <inttypes.h>
#include "model/core/trace_event.h"

/* Whether the WQE has an Ethernet segment behind its control segment. */
static bool eth_trace_has_segment(const struct eth_wqe *wqe)
{
    bool sends = wqe->opcode == PRM_WQE_OPCODE_SEND || wqe->opcode == PRM_WQE_OPCODE_TSO ||
                 wqe->opcode == PRM_WQE_OPCODE_ENHANCED_MPSW;

    return sends && wqe->ds * 16u >= PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_eth_seg);
}

static void eth_trace_fields(struct prm_line *line, const struct eth_wqe *wqe, const void *raw)
{
    prm_line_add_chosen(line, prm_struct_find("wqe_ctrl_seg"), raw, PRM_SIZE(wqe_ctrl_seg),
                        (const char *[]){"ce", NULL});
    if (eth_trace_has_segment(wqe)) {
        prm_line_open_group(line, "eth");
        prm_line_add_chosen(line, prm_struct_find("wqe_eth_seg"), raw + PRM_SIZE(wqe_ctrl_seg),
                            PRM_SIZE(wqe_eth_seg),
                            (const char *[]){"l3_csum", "l4_csum", "l3_inner_csum", "l4_inner_csum",
                                             "mss", "flow_table_metadata",
                                             wqe->insert_vlan ? "vlan_tci" : "inline_hdr_sz",
                                             NULL});
        prm_line_close_group(line);
    }
}

static void eth_trace_send_event(struct hca *hca, const struct eth_sq *sq,
                                 const struct eth_wqe *wqe, const void *raw)
{
    uint64_t len = wqe->inline_len + wqe->data_len;
    struct trace_event event;

    trace_event_begin(&event, "wqe");
    prm_line_add_count(&event.line, "qpn", sq->obj.num);
    prm_line_add_count(&event.line, "wqe", wqe->index);
    trace_event_add_name(&event, "opcode", "wqe_opcode", wqe->opcode);
    if (len) {
        prm_line_add_count(&event.line, "len", len);
    }
    prm_line_open_group(&event.line, "fields");
    eth_trace_fields(&event.line, wqe, raw);
    prm_line_close_group(&event.line);
    trace_event_end(hca, &event);
}

void eth_trace_send(struct hca *hca, struct eth_sq *sq, const struct eth_wqe *wqe, const void *raw)
{
    struct trace_line line;

    if (sq->traced) {
        return;
    }
    sq->traced = true;
    if (hca->tracing & HCA_TRACES_EVENTS) {
        eth_trace_send_event(hca, sq, wqe, raw);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    prm_line_add(&line.line, "sq 0x%x: send wqe %u ", sq->obj.num, wqe->index);
    prm_line_add_name(&line.line, "wqe_opcode", wqe->opcode);
    if (wqe->inline_len + wqe->data_len) {
        prm_line_add(&line.line, ", %" PRIu64 " bytes", wqe->inline_len + wqe->data_len);
    }
    prm_line_add(&line.line, ":");
    eth_trace_fields(&line.line, wqe, raw);
    trace_end(hca, &line);
}

/* The CQE does not name the RQ, so the event has the CQ to which the CQE goes. */
static void eth_trace_receive_event(struct hca *hca, const struct eth_rq *rq,
                                    const struct eth_place *place, size_t len)
{
    struct trace_event event;

    trace_event_begin(&event, "receive");
    prm_line_add_count(&event.line, "rqn", rq->obj.num);
    prm_line_add_count(&event.line, "cqn", (uint32_t)PRM_GET(rqc, rq->rqc, cqn));
    prm_line_add_count(&event.line, "wqe", place->counter);
    prm_line_add_count(&event.line, "len", len);
    if (place->strides) {
        prm_line_add_count(&event.line, "strides", place->strides);
    }
    trace_event_end(hca, &event);
}

void eth_trace_receive(struct hca *hca, const struct eth_rq *rq, const struct eth_place *place,
                       size_t len)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        eth_trace_receive_event(hca, rq, place, len);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    prm_line_add(&line.line, "rq 0x%x: receive wqe %u, %zu bytes", rq->obj.num, place->counter,
                 len);
    if (place->strides) {
        prm_line_add(&line.line, ", %u strides", place->strides);
    }
    trace_end(hca, &line);
}
