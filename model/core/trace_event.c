/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the events of the trace; see model/core/trace_event.h. */
#include "model/core/trace_event.h"
#include <inttypes.h>
#include <stdio.h>
#include "prm/reflect.h"
#include "wire/encap/roce.h"
#include "wire/packet/describe.h"

#define COMMAND_BYTES 4096u /* of input and output; what follows are lists of pages */
#define ADDRESS_CHARS 48

void trace_event_begin(struct trace_event *event, const char *kind)
{
    prm_line_begin_json(&event->line, event->text, sizeof(event->text));
    prm_line_add_text(&event->line, "e", kind);
}

void trace_event_add_name(struct trace_event *event, const char *key, const char *enum_name,
                          uint64_t value)
{
    const char *name = prm_enum_name(enum_name, value);

    if (name) {
        prm_line_add_text(&event->line, key, name);
    } else {
        prm_line_add_count(&event->line, key, value);
    }
}

/* An event with more fields than there is room for has none. */
static void trace_event_cut(struct trace_event *event)
{
    char *fields = strstr(event->text, ",\"fields\":{");

    if (fields) {
        *fields = '\0';
        event->line.len = (size_t)(fields - event->text);
        event->line.is_full = false;
    }
    prm_line_add_text(&event->line, "cut", "the fields are too many");
}

void trace_event_end(struct hca *hca, struct trace_event *event)
{
    if (event->line.is_full) {
        trace_event_cut(event);
    }
    hca->ops->trace(hca->host, event->text, event->line.len);
}

/* -- commands, completions, events ------------------------------------------------------------- */

void trace_event_command(struct hca *hca, const struct trace_command *what)
{
    struct trace_event event;

    trace_event_begin(&event, "command");
    trace_event_add_name(&event, "command", "cmd_op", what->opcode);
    trace_event_add_name(&event, "status", "cmd_status", syn_status(what->syn));
    if (what->syn != SYN_OK) {
        prm_line_add_count(&event.line, "syndrome", syn_code(what->syn));
        prm_line_add_text(&event.line, "reason", syn_text(what->syn));
    }
    if (what->command) {
        prm_line_open_group(&event.line, "fields");
        prm_line_add_fields(&event.line, what->command->in, what->in,
                            MIN(what->in_len, COMMAND_BYTES));
        if (what->syn == SYN_OK) {
            prm_line_open_group(&event.line, "output");
            prm_line_add_fields(&event.line, what->command->out, what->out,
                                MIN(what->out_len, COMMAND_BYTES));
            prm_line_close_group(&event.line);
        }
        if (what->changes && what->syn == SYN_OK) {
            prm_line_add_text(&event.line, "changes", what->changes);
        }
        prm_line_close_group(&event.line);
    }
    trace_event_end(hca, &event);
}

void trace_event_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe)
{
    unsigned opcode = PRM_GET(cqe64, cqe, opcode);
    bool of_send = opcode == PRM_CQE_OPCODE_REQ || opcode == PRM_CQE_OPCODE_REQ_ERR;
    bool failed = opcode == PRM_CQE_OPCODE_REQ_ERR || opcode == PRM_CQE_OPCODE_RESP_ERR;
    struct trace_event event;

    trace_event_begin(&event, "cqe");
    prm_line_add_count(&event.line, "cqn", cqn);
    prm_line_add_count(&event.line, "qpn", PRM_GET(cqe64, cqe, qpn));
    prm_line_add_count(&event.line, "wqe", PRM_GET(cqe64, cqe, wqe_counter));
    prm_line_add_count(&event.line, "of_send", of_send);
    trace_event_add_name(&event, "opcode", "cqe_opcode", opcode);
    if (of_send) {
        trace_event_add_name(&event, "wqe_opcode", "wqe_opcode",
                             PRM_GET(cqe64, cqe, send_wqe_opcode));
    }
    if (failed) {
        trace_event_add_name(&event, "syndrome", "cqe_syndrome",
                             PRM_GET(err_cqe, (const void *)cqe, syndrome));
    }
    prm_line_open_group(&event.line, "fields");
    trace_add_cqe_fields(&event.line, cqe);
    prm_line_close_group(&event.line);
    trace_event_end(hca, &event);
}

void trace_event_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe)
{
    unsigned type = PRM_GET(eqe, eqe, event_type), sub_type = PRM_GET(eqe, eqe, event_sub_type);
    const struct prm_struct *layout = trace_event_data(type, sub_type);
    struct trace_event event;

    trace_event_begin(&event, "eqe");
    prm_line_add_count(&event.line, "eqn", eqn);
    trace_event_add_name(&event, "type", "event_type", type);
    prm_line_add_count(&event.line, "sub_type", sub_type);
    if (layout) {
        prm_line_open_group(&event.line, "fields");
        prm_line_add_fields(&event.line, layout, PRM_PTR(eqe, eqe, event_data),
                            PRM_COUNT(eqe, event_data));
        prm_line_close_group(&event.line);
    }
    trace_event_end(hca, &event);
}

void trace_event_irq(struct hca *hca, uint32_t eqn, unsigned vector)
{
    struct trace_event event;

    trace_event_begin(&event, "interrupt");
    prm_line_add_count(&event.line, "eqn", eqn);
    prm_line_add_count(&event.line, "vector", vector);
    trace_event_end(hca, &event);
}

void trace_event_qp_state(struct hca *hca, uint32_t qpn, uint8_t from, uint8_t to)
{
    struct trace_event event;

    trace_event_begin(&event, "state");
    prm_line_add_count(&event.line, "qpn", qpn);
    trace_event_add_name(&event, "from", "qp_state", from);
    trace_event_add_name(&event, "to", "qp_state", to);
    trace_event_end(hca, &event);
}

void trace_event_doorbell(struct hca *hca, uint32_t qpn, uint64_t ctrl)
{
    struct trace_event event;

    trace_event_begin(&event, "doorbell");
    prm_line_add_count(&event.line, "qpn", qpn);
    prm_line_add_count(&event.line, "wqe", ctrl >> 40 & 0xffff);
    trace_event_add_name(&event, "opcode", "wqe_opcode", ctrl >> 32 & 0xff);
    trace_event_end(hca, &event);
}

void trace_event_posted(struct hca *hca, bool is_srq, uint32_t number, uint16_t before,
                        uint16_t now)
{
    struct trace_event event;

    trace_event_begin(&event, "posted");
    prm_line_add_count(&event.line, is_srq ? "srqn" : "qpn", number);
    prm_line_add_count(&event.line, "from", before);
    prm_line_add_count(&event.line, "to", now);
    trace_event_end(hca, &event);
}

/* -- packets ----------------------------------------------------------------------------------- */

static void event_add_address(struct prm_line *line, const char *key, const uint8_t gid[16],
                              bool is_ipv4)
{
    char text[ADDRESS_CHARS];
    struct prm_line part;

    prm_line_begin(&part, text, sizeof(text));
    trace_add_gid(&part, gid, is_ipv4);
    prm_line_add_text(line, key, text);
}

static void event_add_hex(struct prm_line *line, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    prm_line_add_text(line, key, text);
}

/* What the sender says of its packet. */
static void event_add_note(struct prm_line *line, const struct wire_note *note)
{
    prm_line_add_count(line, "fn", note->function);
    if (note->qpn) {
        prm_line_add_count(line, "qpn", note->qpn);
    }
    if (note->is_response) {
        prm_line_add_count(line, "request_psn", note->request_psn);
    } else if (note->has_wqe) {
        prm_line_add_count(line, "wqe", note->wqe);
        if (!note->no_psn) {
            prm_line_add_count(line, "first_psn", note->first_psn);
        }
    }
    if (note->why) {
        prm_line_add_text(line, "why", wire_note_words(note->why));
        prm_line_add_count(line, "repeated", wire_note_repeats(note));
    }
}

/* The headers behind the BTH. */
static void event_add_headers(struct prm_line *line, const struct transport_packet *pkt)
{
    uint32_t flags = bth_opcodes[pkt->opcode].flags;

    if (flags & HDR_XRC_ETH) {
        event_add_hex(line, "srqn", pkt->xrc_srqn);
    }
    if (flags & HDR_DC_ETH) {
        event_add_hex(line, "session", pkt->dceth.session);
        event_add_hex(line, "session_of", pkt->dceth.number);
    }
    if (flags & HDR_DETH) {
        event_add_hex(line, "src_qp", pkt->deth.src_qp);
        event_add_hex(line, "qkey", pkt->deth.qkey);
    }
    if (flags & HDR_RETH) {
        event_add_hex(line, "va", pkt->reth.va);
        event_add_hex(line, "rkey", pkt->reth.rkey);
        prm_line_add_count(line, "dma_len", pkt->reth.len);
    }
    if (flags & HDR_ATOMIC_ETH) {
        event_add_hex(line, "va", pkt->atomic.va);
        event_add_hex(line, "rkey", pkt->atomic.rkey);
        event_add_hex(line, "swap_add", pkt->atomic.swap_add);
        event_add_hex(line, "compare", pkt->atomic.compare);
    }
    if (flags & HDR_AETH) {
        g_autoptr(GString) words = g_string_new(NULL);

        aeth_describe(words, pkt->aeth.syndrome);
        prm_line_add_text(line, "syndrome", words->str);
        prm_line_add_count(line, "msn", pkt->aeth.msn);
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        event_add_hex(line, "value", pkt->atomic_ack);
    }
    if (flags & (HDR_IMM_DT | HDR_IETH)) {
        event_add_hex(line, flags & HDR_IMM_DT ? "imm" : "inval_rkey", pkt->imm);
    }
}

static void event_add_packet(struct prm_line *line, const struct roce_packet *pkt, bool is_sent)
{
    const char *name = bth_opcodes[pkt->opcode].name;

    prm_line_add_text(line, "opcode", name ? name : "unknown");
    prm_line_add_count(line, "psn", pkt->psn);
    if (is_sent) {
        prm_line_add_count(line, "dqpn", pkt->dest_qp);
    } else {
        prm_line_add_count(line, "qpn", pkt->dest_qp);
    }
    prm_line_add_count(line, "len", pkt->payload_len);
    event_add_address(line, "src", pkt->addr.sgid, pkt->addr.is_ipv4);
    event_add_address(line, "dst", pkt->addr.dgid, pkt->addr.is_ipv4);
    prm_line_open_group(line, "fields");
    event_add_headers(line, &pkt->transport);
    prm_line_add_count(line, "ackreq", pkt->ackreq);
    prm_line_add_count(line, "solicited", pkt->solicited);
    prm_line_add_count(line, "fecn", pkt->fecn);
    prm_line_add_count(line, "becn", pkt->becn);
    event_add_hex(line, "pkey", pkt->pkey);
    prm_line_add_count(line, "ecn", pkt->addr.tclass & 3);
    prm_line_add_count(line, "dscp", pkt->addr.tclass >> 2);
    prm_line_add_count(line, "priority", roce_priority(&pkt->addr));
    prm_line_close_group(line);
}

/* A RoCE packet by its fields; any other frame as text. Its frame check sequence tells it from
 * others, so that a reader can join its sending and its arrival. */
static void event_add_frame(struct prm_line *line, const struct trace_frame *frame,
                            const struct roce_packet *pkt, enum roce_verdict verdict)
{
    struct prm_line part;
    char text[TRACE_LINE + 1];

    if (verdict == ROCE_OK || verdict == ROCE_BAD_ICRC) {
        event_add_packet(line, pkt, frame->is_sent);
        return;
    }
    prm_line_begin(&part, text, sizeof(text));
    trace_describe_frame(&part, frame->is_sent, frame->bytes, frame->len, frame->has_icrc);
    prm_line_add_text(line, "text", text);
    prm_line_add_count(line, "len", frame->len);
    if (frame->len >= ETH_BYTES) {
        uint8_t fcs[ETH_FCS_BYTES];

        eth_fcs_put(fcs, frame->bytes, frame->len);
        event_add_hex(line, "fcs", prm_load32(fcs));
    }
}

static enum roce_verdict event_parse(const struct trace_frame *frame, struct roce_packet *pkt)
{
    if (frame->len < ETH_BYTES) {
        return ROCE_NOT_ROCE;
    }
    return frame->has_icrc ? roce_parse(frame->bytes, frame->len, pkt)
                           : roce_parse_unchecked(frame->bytes, frame->len, pkt);
}

void trace_event_frame(struct hca *hca, const struct trace_frame *frame)
{
    struct trace_event event;
    struct roce_packet pkt = {0};
    enum roce_verdict verdict = event_parse(frame, &pkt);

    trace_event_begin(&event, frame->is_sent ? "sent" : "received");
    prm_line_add_count(&event.line, "n", hca->traced_frames++);
    if (frame->lost) {
        prm_line_add_text(&event.line, "lost", frame->lost);
    } else if (verdict == ROCE_BAD_ICRC) {
        prm_line_add_text(&event.line, "lost", "bad ICRC");
    }
    if (frame->note) {
        event_add_note(&event.line, frame->note);
    }
    event_add_frame(&event.line, frame, &pkt, verdict);
    trace_event_end(hca, &event);
}

/* -- faults ------------------------------------------------------------------------------------ */

/* The ICRC of a frame that is sent need not be there yet, and a lost one was not looked at. */
static void event_add_faulty_frame(struct prm_line *line, const struct fault_deed *deed)
{
    const struct trace_frame frame = {
        .is_sent = !deed->inbound, .bytes = deed->frame, .len = deed->len};
    struct roce_packet pkt = {0};
    enum roce_verdict verdict = event_parse(&frame, &pkt);

    prm_line_add_count(line, "inbound", deed->inbound);
    event_add_frame(line, &frame, &pkt, verdict);
}

static void event_add_device_fault(struct prm_line *line, const struct fault_deed *deed)
{
    const char *command;

    if (deed->subject == FAULT_ABOUT_DOORBELLS || deed->subject == FAULT_ABOUT_RECEIVES) {
        prm_line_add_count(line, "qpn", deed->qpn);
    } else if (deed->subject == FAULT_ABOUT_INTERRUPTS) {
        prm_line_add_count(line, "vector", deed->vector);
    } else if (deed->subject == FAULT_ABOUT_COMMANDS) {
        command = prm_enum_name("cmd_op", deed->opcode);
        prm_line_add_text(line, "command", command ? command : "unknown");
    }
    if (deed->late_ns) {
        prm_line_add_count(line, "late_ns", deed->late_ns);
    }
}

void trace_event_fault(struct hca *hca, const struct fault_deed *deed)
{
    struct trace_event event;

    trace_event_begin(&event, deed->is_lost ? "lost" : "fault");
    prm_line_add_text(&event.line, "what", deed->what);
    if (deed->text) {
        prm_line_add_count(&event.line, "rule", deed->rule);
        prm_line_add_text(&event.line, "of", deed->text);
    }
    if (deed->frame) {
        event_add_faulty_frame(&event.line, deed);
    } else {
        event_add_device_fault(&event.line, deed);
    }
    trace_event_end(hca, &event);
}
