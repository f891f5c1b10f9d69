/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the lines of the trace; see model/core/trace.h. */
#include "model/core/trace.h"
#include "model/core/trace_event.h"
#include <inttypes.h>
#include <stdio.h>
#include "prm/reflect.h"
#include "wire/encap/roce.h"
#include "wire/packet/describe.h"
#include "wire/port.h"

#define COMMAND_BYTES 4096u /* of input and output; what follows are lists of pages */
#define OUTPUT_CHARS  300   /* so that a long output leaves space for the input */
#define UNKNOWN_BYTES 64    /* bytes that are shown of something without a layout */

void trace_begin(struct trace_line *to)
{
    prm_line_begin(&to->line, to->text, sizeof(to->text));
}

void trace_end(struct hca *hca, const struct trace_line *from)
{
    hca->ops->log(hca->host, HCA_LOG_TRACE, from->text);
}

/* Takes the colon at that place away if nothing follows it. */
static void trace_drop_colon(struct prm_line *line, size_t at)
{
    if (!line->is_full && line->len == at + 1) {
        line->text[at] = '\0';
        line->len = at;
    }
}

/* -- commands ---------------------------------------------------------------------------------- */

/* Adds the fields of the input of a command that changed an object: the changes take the place of
 * the structures, which say what was asked for. */
static void trace_add_changes(struct prm_line *line, const struct trace_command *what)
{
    const struct prm_struct *in = what->command->in;

    for (size_t i = 0; i < in->n_fields; i++) {
        if (!in->fields[i].type && strcmp(in->fields[i].name, "opcode") != 0) {
            prm_line_add_chosen(line, in, what->in, MIN(what->in_len, COMMAND_BYTES),
                                (const char *[]){in->fields[i].name, NULL});
        }
    }
    prm_line_add(line, "%s", what->changes);
}

static void trace_add_output(struct prm_line *line, const struct trace_command *what)
{
    struct prm_line part;
    size_t before;

    prm_line_begin_part(&part, line, OUTPUT_CHARS);
    prm_line_add(&part, " ->");
    before = part.len;
    prm_line_add_fields(&part, what->command->out, what->out, MIN(what->out_len, COMMAND_BYTES));
    if (part.len == before) {
        line->text[line->len] = '\0'; /* no output */
    } else {
        prm_line_end_part(line, &part);
    }
}

void trace_describe_command(struct prm_line *line, const struct trace_command *what)
{
    const char *name = prm_enum_name("cmd_op", what->opcode);
    size_t before;

    if (name) {
        prm_line_add(line, "command %s ", name);
    } else {
        prm_line_add(line, "unknown command 0x%x ", what->opcode);
    }
    prm_line_add_name(line, "cmd_status", syn_status(what->syn));
    if (what->syn != SYN_OK) {
        prm_line_add(line, " (syndrome 0x%x, %s)", syn_code(what->syn), syn_text(what->syn));
    } else if (what->command) {
        trace_add_output(line, what);
    }
    before = line->len;
    prm_line_add(line, ":");
    if (!what->command) {
        prm_line_add(line, " ");
        prm_line_add_bytes(line, what->in, what->in_len, UNKNOWN_BYTES);
    } else if (what->changes && what->syn == SYN_OK) {
        trace_add_changes(line, what);
    } else {
        prm_line_add_fields(line, what->command->in, what->in, MIN(what->in_len, COMMAND_BYTES));
    }
    trace_drop_colon(line, before);
}

void trace_command(struct hca *hca, const struct trace_command *what)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_command(hca, what);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    trace_describe_command(&line.line, what);
    trace_end(hca, &line);
}

/* -- completions ------------------------------------------------------------------------------- */

/* The fields of each kind of CQE that the line's beginning does not have. Fields that are the same
 * bits as others, the phase and the time are left out. */
#define RECEIVED                                                                                   \
    "byte_cnt", "srqn", "rqpn", "grh", "roce_l3_hdr_type", "ml_path", "slid", "l4_ok", "l3_ok",    \
        "l2_ok", "l4_hdr_type", "l3_hdr_type", "ip_frag", "ip_ext_opts", "cv", "vlan_info",        \
        "check_sum", "rx_hash_type_l4", "rx_hash_type_ip", "rx_hash_result", "lro_num_seg", "app", \
        "app_op", "app_info", "format", "se", "signature", NULL

static const struct {
    const char *layout;
    const char *const *fields;
} cqe_kinds[16] = {
    [PRM_CQE_OPCODE_REQ] = {"cqe64", (const char *[]){"byte_cnt", "format", "signature", NULL}},
    [PRM_CQE_OPCODE_RESP_WR_IMM] = {"cqe64", (const char *[]){"immediate", RECEIVED}},
    [PRM_CQE_OPCODE_RESP_SEND] = {"cqe64", (const char *[]){"imm_inval_pkey", RECEIVED}},
    [PRM_CQE_OPCODE_RESP_SEND_IMM] = {"cqe64", (const char *[]){"immediate", RECEIVED}},
    [PRM_CQE_OPCODE_RESP_SEND_INV] = {"cqe64", (const char *[]){"inval_rkey", RECEIVED}},
    [PRM_CQE_OPCODE_NO_PACKET] = {"cqe64",
                                  (const char *[]){"tm_success", "hw_phase_cnt", RECEIVED}},
    [PRM_CQE_OPCODE_SIG_ERR] = {"sig_err_cqe",
                                (const char *[]){"syndrome", "domain", "mkey", "err_offset",
                                                 "expected_trans_sig", "actual_trans_sig",
                                                 "expected_reftag", "actual_reftag", NULL}},
    [PRM_CQE_OPCODE_REQ_ERR] = {"err_cqe", (const char *[]){"syndrome", "vendor_err_synd",
                                                            "hw_synd_type", "hw_err_synd", NULL}},
    [PRM_CQE_OPCODE_RESP_ERR] = {"err_cqe", (const char *[]){"syndrome", "vendor_err_synd", "srqn",
                                                             "hw_synd_type", "hw_err_synd", NULL}},
};

static bool trace_cqe_is_of_send(unsigned opcode)
{
    return opcode == PRM_CQE_OPCODE_REQ || opcode == PRM_CQE_OPCODE_REQ_ERR;
}

void trace_add_cqe_fields(struct prm_line *line, const struct prm_cqe64 *cqe)
{
    unsigned opcode = PRM_GET(cqe64, cqe, opcode);
    struct prm_cqe64 shown[1] = {*cqe};

    if (PRM_GET(cqe64, cqe, format) == PRM_CQE_FORMAT_INLINE_32) {
        /* Data is in the place of the first fields. */
        memset(shown, 0, MIN(PRM_GET(cqe64, cqe, byte_cnt), PRM_COUNT(cqe64, inline_data_32)));
    }
    if (cqe_kinds[opcode].layout) {
        prm_line_add_chosen(line, prm_struct_find(cqe_kinds[opcode].layout), shown, sizeof(shown),
                            cqe_kinds[opcode].fields);
    }
}

void trace_describe_cqe(struct prm_line *line, const struct prm_cqe64 *cqe)
{
    unsigned opcode = PRM_GET(cqe64, cqe, opcode);
    size_t before;

    prm_line_add(line, "cqe ");
    prm_line_add_name(line, "cqe_opcode", opcode);
    if (trace_cqe_is_of_send(opcode)) {
        prm_line_add(line, " ");
        prm_line_add_name(line, "wqe_opcode", PRM_GET(cqe64, cqe, send_wqe_opcode));
    }
    prm_line_add(line, " qp 0x%x wqe %u", (unsigned)PRM_GET(cqe64, cqe, qpn),
                 (unsigned)PRM_GET(cqe64, cqe, wqe_counter));
    before = line->len;
    prm_line_add(line, ":");
    trace_add_cqe_fields(line, cqe);
    trace_drop_colon(line, before);
}

void trace_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_cqe(hca, cqn, cqe);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    prm_line_add(&line.line, "cq 0x%x: ", cqn);
    trace_describe_cqe(&line.line, cqe);
    trace_end(hca, &line);
}

/* -- events ------------------------------------------------------------------------------------ */

/* The layout of each type's data, and the names of its sub-types. */
static const struct {
    const char *layout, *sub_types;
} event_kinds[] = {
    [PRM_EVENT_TYPE_COMP] = {"comp_event", NULL},
    [PRM_EVENT_TYPE_COMM_EST] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_PATH_MIG] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_PATH_MIG_FAILED] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_SQ_DRAINED] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_WQ_CATAS_ERROR] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_WQ_ACCESS_ERROR] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_SRQ_CATAS_ERROR] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_SRQ_LAST_WQE] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_SRQ_RQ_LIMIT] = {"qp_events", NULL},
    [PRM_EVENT_TYPE_CQ_ERROR] = {"cq_error", NULL},
    [PRM_EVENT_TYPE_PORT_CHANGE] = {"port_state_change_event", "port_change_subtype"},
    [PRM_EVENT_TYPE_CMD] = {"cmd_inter_comp_event", NULL},
    [PRM_EVENT_TYPE_PAGE_REQUEST] = {"pages_req_event", NULL},
    [PRM_EVENT_TYPE_NIC_VPORT_CHANGE] = {"vport_change_event", NULL},
    [PRM_EVENT_TYPE_GPIO_EVENT] = {"gpio_event", NULL},
    [PRM_EVENT_TYPE_PORT_MODULE_EVENT] = {"port_module_event", NULL},
    [PRM_EVENT_TYPE_TEMP_WARN_EVENT] = {"temp_warning_event", NULL},
    [PRM_EVENT_TYPE_XRQ_ERROR] = {"xrq_error_event", NULL},
    [PRM_EVENT_TYPE_DCT_DRAINED] = {"dct_events", NULL},
    [PRM_EVENT_TYPE_DCT_KEY_VIOLATION] = {"dct_events", NULL},
    [PRM_EVENT_TYPE_GENERAL_EVENT] = {NULL, "general_subtype"},
    [PRM_EVENT_TYPE_PPS_EVENT] = {"pps_event", NULL},
    [PRM_EVENT_TYPE_OBJECT_CHANGE] = {"obj_change_event", NULL},
};

/* The layout of an event's data. A page fault's depends on the sub-type. NULL: there is none. */
const struct prm_struct *trace_event_data(unsigned type, unsigned sub_type)
{
    const char *name = type < G_N_ELEMENTS(event_kinds) ? event_kinds[type].layout : NULL;

    if (type == PRM_EVENT_TYPE_PAGE_FAULT) {
        name = sub_type == PRM_PFAULT_SUBTYPE_WQE      ? "wqe_associated_page_fault_event"
               : sub_type == PRM_PFAULT_SUBTYPE_RDMA   ? "rdma_page_fault_event"
               : sub_type == PRM_PFAULT_SUBTYPE_MEMORY ? "memory_page_fault_event"
                                                       : NULL;
    }
    return name ? prm_struct_find(name) : NULL;
}

void trace_describe_eqe(struct prm_line *line, const struct prm_eqe *eqe)
{
    unsigned type = PRM_GET(eqe, eqe, event_type), sub_type = PRM_GET(eqe, eqe, event_sub_type);
    const struct prm_struct *layout = trace_event_data(type, sub_type);
    const char *names = type < G_N_ELEMENTS(event_kinds) ? event_kinds[type].sub_types : NULL;
    const uint8_t *data = PRM_PTR(eqe, eqe, event_data);

    prm_line_add(line, "event ");
    prm_line_add_name(line, "event_type", type);
    if (names) {
        prm_line_add(line, " ");
        prm_line_add_name(line, names, sub_type);
    } else if (sub_type) {
        prm_line_add(line, " sub-type 0x%x", sub_type);
    }
    prm_line_add(line, ":");
    if (layout) {
        prm_line_add_fields(line, layout, data, PRM_COUNT(eqe, event_data));
    } else {
        prm_line_add(line, " ");
        prm_line_add_bytes(line, data, PRM_COUNT(eqe, event_data), UNKNOWN_BYTES);
    }
}

void trace_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_eqe(hca, eqn, eqe);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    prm_line_add(&line.line, "eq 0x%x: ", eqn);
    trace_describe_eqe(&line.line, eqe);
    trace_end(hca, &line);
}

/* -- states ------------------------------------------------------------------------------------ */

void trace_qp_state(struct hca *hca, uint32_t qpn, uint8_t from, uint8_t to)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_qp_state(hca, qpn, from, to);
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    prm_line_add(&line.line, "qp 0x%x: state ", qpn);
    prm_line_add_name(&line.line, "qp_state", from);
    prm_line_add(&line.line, " -> ");
    prm_line_add_name(&line.line, "qp_state", to);
    trace_end(hca, &line);
}

/* -- packets ----------------------------------------------------------------------------------- */

void trace_add_gid(struct prm_line *line, const uint8_t gid[GID_BYTES], bool is_ipv4)
{
    if (is_ipv4) {
        prm_line_add(line, "%u.%u.%u.%u", gid[GID_IPV4], gid[GID_IPV4 + 1], gid[GID_IPV4 + 2],
                     gid[GID_IPV4 + 3]);
        return;
    }
    for (size_t i = 0; i < GID_BYTES; i += 2) {
        prm_line_add(line, "%s%x", i ? ":" : "", gid[i] << 8 | gid[i + 1]);
    }
}

static void trace_add_eth(struct prm_line *line, const uint8_t *mac, const uint8_t *frame,
                          size_t len)
{
    prm_line_add(line, "%02x:%02x:%02x:%02x:%02x:%02x ethertype 0x%02x%02x, %zu bytes", mac[0],
                 mac[1], mac[2], mac[3], mac[4], mac[5], frame[12], frame[13], len);
}

/* Adds why a frame is no RoCE packet that this device takes. */
static void trace_add_damage(struct prm_line *line, enum roce_verdict verdict,
                             const struct roce_packet *pkt, size_t len)
{
    if (verdict == ROCE_TRUNCATED) {
        prm_line_add(line, "RoCE, %zu bytes, lengths that do not agree", len);
    } else if (pkt->tver || bth_opcodes[pkt->opcode].name) {
        prm_line_add(line, "RoCE, %zu bytes, bad header", len);
    } else {
        prm_line_add(line, "RoCE, %zu bytes, unknown opcode 0x%02x", len, pkt->opcode);
    }
}

void trace_describe_frame(struct prm_line *line, bool is_sent, const uint8_t *frame, size_t len,
                          bool has_icrc)
{
    struct roce_packet pkt = {0};
    enum roce_verdict verdict;

    prm_line_add(line, is_sent ? "-> " : "<- ");
    if (len < ETH_BYTES) {
        prm_line_add(line, "%zu bytes, too short for a frame", len);
        return;
    }
    verdict = has_icrc ? roce_parse(frame, len, &pkt) : roce_parse_unchecked(frame, len, &pkt);
    if (verdict == ROCE_OK || verdict == ROCE_BAD_ICRC) {
        g_autoptr(GString) words = g_string_new(NULL);

        trace_add_gid(line, is_sent ? pkt.addr.dgid : pkt.addr.sgid, pkt.addr.is_ipv4);
        transport_describe(words, &pkt.transport);
        prm_line_add(line, " %s%s%s", words->str, (pkt.addr.tclass & 3) == 3 ? ", CE" : "",
                     verdict == ROCE_BAD_ICRC ? ", bad ICRC" : "");
        if (roce_priority(&pkt.addr)) {
            prm_line_add(line, ", priority %u", roce_priority(&pkt.addr));
        }
    } else if (verdict == ROCE_NOT_ROCE) {
        trace_add_eth(line, is_sent ? frame : frame + 6, frame, len);
    } else {
        trace_add_damage(line, verdict, &pkt, len);
    }
}

static void trace_any_frame(struct hca *hca, bool is_sent, const uint8_t *frame, size_t len,
                            bool has_icrc, const struct wire_note *note, const char *lost)
{
    struct trace_line line;

    if (hca->tracing & HCA_TRACES_EVENTS) {
        trace_event_frame(hca, &(struct trace_frame){
                                   .is_sent = is_sent,
                                   .has_icrc = has_icrc,
                                   .bytes = frame,
                                   .len = len,
                                   .note = note,
                                   .lost = lost,
                               });
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        return;
    }
    trace_begin(&line);
    trace_describe_frame(&line.line, is_sent, frame, len, has_icrc);
    if (note && wire_note_repeats(note)) {
        prm_line_add(&line.line, ", %s", wire_note_words(note->why));
    }
    if (lost) {
        prm_line_add(&line.line, ", lost: %s", lost);
    }
    trace_end(hca, &line);
}

/* The ICRC of a frame that is sent need not be there yet. */
void trace_sent(struct hca *hca, const uint8_t *frame, size_t len, const struct wire_note *note,
                const char *lost)
{
    trace_any_frame(hca, true, frame, len, false, note, lost);
}

void trace_received(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags,
                    const char *lost)
{
    trace_any_frame(hca, false, frame, len, !(flags & WIRE_NO_ICRC), NULL, lost);
}
