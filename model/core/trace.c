/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the lines of the trace. It may allocate memory: nothing here is on the data path. */
#include "model/core/trace.h"
#include <inttypes.h>
#include "prm/prm.h"
#include "prm/reflect.h"

#define COMMAND_BYTES 1024u

/* Logs "title: dwords", and frees line. */
static void trace_say(struct hca *hca, GString *line, const uint8_t *bytes, size_t len)
{
    g_string_append_c(line, ':');
    for (size_t i = 0; i < len; i++) {
        g_string_append_printf(line, "%s%02x", i % 4 ? "" : " ", bytes[i]);
    }
    hca->ops->log(hca->host, HCA_LOG_TRACE, line->str);
    g_string_free(line, TRUE);
}

static GString *trace_title(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
static GString *trace_title(const char *fmt, ...)
{
    GString *line = g_string_new(NULL);
    va_list ap;

    va_start(ap, fmt);
    g_string_vprintf(line, fmt, ap);
    va_end(ap);
    return line;
}

static const char *trace_name_of(const char *enum_name, uint64_t value)
{
    const char *name = prm_enum_name(enum_name, value);

    return name ? name : "unknown";
}

void trace_command(struct hca *hca, uint16_t opcode, uint8_t status, const void *in, size_t len)
{
    trace_say(hca, trace_title("command %s status %u", prm_cmd_op_name(opcode), status), in,
              MIN(len, COMMAND_BYTES));
}

void trace_send_wqe(struct hca *hca, uint32_t qpn, unsigned index, uint8_t opcode,
                    const uint8_t *image, size_t len)
{
    trace_say(
        hca,
        trace_title("qp 0x%x: send wqe %u %s", qpn, index, trace_name_of("wqe_opcode", opcode)),
        image, len);
}

void trace_recv_wqe(struct hca *hca, uint32_t qpn, unsigned index, unsigned num_sge, uint64_t len)
{
    hca_log(hca, HCA_LOG_TRACE, "qp 0x%x: receive wqe %u: %u pieces, %" PRIu64 " bytes", qpn, index,
            num_sge, len);
}

void trace_cqe(struct hca *hca, uint32_t cqn, const struct prm_cqe64 *cqe)
{
    trace_say(hca,
              trace_title("cq 0x%x: cqe %s", cqn,
                          trace_name_of("cqe_opcode", PRM_GET(cqe64, cqe, opcode))),
              cqe->bytes, PRM_SIZE(cqe64));
}

void trace_eqe(struct hca *hca, uint32_t eqn, const struct prm_eqe *eqe)
{
    trace_say(hca,
              trace_title("eq %u: event %s.%u", eqn,
                          trace_name_of("event_type", PRM_GET(eqe, eqe, event_type)),
                          (unsigned)PRM_GET(eqe, eqe, event_sub_type)),
              PRM_PTR(eqe, eqe, event_data), PRM_COUNT(eqe, event_data));
}
