/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a device's trace to its owner's log: one line for each command, CQE, event, packet and
 * change of a QP's state, by the names of prm/. model/rdma/trace_wqe.h adds the WQEs.
 *
 *     command CREATE_CQ OK -> cqn=0x80: cq_context{cqe_comp_en=... log_cq_size=6 c_eqn=0x10}
 *     command INIT2RTR_QP OK: qpn=0x4a qpc{state=INIT->RTR mtu=0->1K_BYTES ...}
 *     cq 0x80: cqe REQ SEND qp 0x4a wqe 0
 *     cq 0x80: cqe REQ_ERR SEND qp 0x4a wqe 1: syndrome=LOCAL_PROT_ERR vendor_err_synd=0x51
 *     eq 0x10: event COMP: cq_number=0x80
 *     -> 10.0.0.2 RC_SEND_ONLY qp 0x4b psn 100, 64 bytes, ackreq
 *     <- 10.0.0.2 RC_ACK qp 0x4a psn 100 ACK msn 1
 *
 * Or as events in JSON (model/core/trace_event.h), or both: hca->tracing says which.
 *
 * docs/reference/trace.md describes the lines. A line has at most TRACE_LINE characters; if it
 * would be longer, it ends with "...". Only a function whose owner asked for a trace
 * (fw_config.trace) writes one: callers check hca->tracing first.
 */
#ifndef HCASIM_MODEL_TRACE_H
#define HCASIM_MODEL_TRACE_H

#include "model/core/hca.h"
#include "model/core/syndrome.h"
#include "prm/line.h"
#include "prm/prm.h"
#include "wire/note.h"

#define TRACE_LINE 1000

/* A line of the trace while it is written. */
struct trace_line {
    struct prm_line line;
    char text[TRACE_LINE + 1];
};
void trace_begin(struct trace_line *to);
void trace_end(struct hca *hca, const struct trace_line *from);

/* The result of a command. */
struct trace_command {
    const struct prm_command *command; /* NULL: the device does not have the command */
    uint16_t opcode;
    enum syn syn;
    const void *in, *out;
    size_t in_len, out_len;
    /* The fields that the command changed, or NULL. Then the input's structures are left out. */
    const char *changes;
};
void trace_command(struct hca *hca, const struct trace_command *what);

void trace_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe);
void trace_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe);

/* A QP's change from one state to another (PRM_QP_STATE_). */
void trace_qp_state(struct hca *hca, uint32_t qpn, uint8_t from, uint8_t to);

/* A frame that this function sends or gets. flags: enum wire_frame_flags. lost: why the frame goes
 * no further, or NULL. note: what the sender says of it, or NULL. */
void trace_sent(struct hca *hca, const uint8_t *frame, size_t len, const struct wire_note *note,
                const char *lost);
void trace_received(struct hca *hca, const uint8_t *frame, size_t len, unsigned flags,
                    const char *lost);

/* The parts of the lines. They need no HCA and take any bytes. */
void trace_describe_command(struct prm_line *line, const struct trace_command *what);
void trace_describe_cqe(struct prm_line *line, const struct prm_cqe64 *cqe);
void trace_describe_eqe(struct prm_line *line, const struct prm_eqe *eqe);
/* Their fields alone, for lines and events. trace_event_data() gives the layout of an event's data,
 * or NULL. */
void trace_add_cqe_fields(struct prm_line *line, const struct prm_cqe64 *cqe);
const struct prm_struct *trace_event_data(unsigned type, unsigned sub_type);
/* Adds a GID as the address that it is made of. */
void trace_add_gid(struct prm_line *line, const uint8_t gid[16], bool is_ipv4);
/* has_icrc: the frame ends with an ICRC, which is checked. */
void trace_describe_frame(struct prm_line *line, bool is_sent, const uint8_t *frame, size_t len,
                          bool has_icrc);

#endif
