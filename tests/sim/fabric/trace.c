/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements trace.h. A line has the time since the start, the host, and the event. */
#include "tests/sim/fabric/trace.h"
#include <inttypes.h>
#include <stdio.h>
#include "wire/encap/roce.h"
#include "wire/packet/describe.h"

static void trace_time(const struct sim *sim)
{
    printf("%12.3f us  ", (double)sim->world->now_ns / 1000);
}

static void trace_describe(GString *line, const uint8_t *frame, size_t len)
{
    struct roce_packet packet;
    enum roce_verdict verdict = roce_parse(frame, len, &packet);

    if (verdict == ROCE_OK || verdict == ROCE_BAD_ICRC) {
        transport_describe(line, &packet.transport);
        g_string_append(line, (packet.addr.tclass & 3) == 3 ? ", CE" : "");
        g_string_append(line, verdict == ROCE_BAD_ICRC ? ", wrong ICRC" : "");
    } else {
        g_string_append_printf(line, "%s, %zu bytes",
                               verdict == ROCE_NOT_ROCE ? "Ethernet" : "RoCE with a wrong header",
                               len);
    }
}

/* The sign between host and frame: a frame that is lost has a cross in place of the arrow's end. */
static const char *trace_sign(bool arrives, unsigned fate)
{
    if (fate & FRAME_GONE) {
        return arrives ? "x-" : "-x";
    }
    return arrives ? "<-" : "->";
}

void trace_frame(struct sim *sim, unsigned host, bool arrives, const uint8_t *frame, size_t len,
                 unsigned fate)
{
    g_autoptr(GString) line = NULL;
    g_autofree char *said = NULL;

    if (arrives && !(fate & FRAME_GONE)) {
        uint64_t mix = sim->tally.fingerprint ^ sim->world->now_ns ^ (uint64_t)host << 48, word = 0;
        size_t at;

        for (at = 0; at + sizeof(word) <= len; at += sizeof(word)) {
            memcpy(&word, frame + at, sizeof(word));
            mix = (mix ^ word) * 0x9e3779b97f4a7c15ull;
            mix ^= mix >> 32;
        }
        memcpy(&word, frame + len - MIN(len, sizeof(word)), MIN(len, sizeof(word)));
        sim->tally.fingerprint = chance_mix(mix ^ word);
    }
    if (!sim->options.trace) {
        return;
    }
    line = g_string_new(NULL);
    trace_describe(line, frame, len);
    said = frame_describe_fate(fate);
    if (said) {
        g_string_append_printf(line, " [%s]", said);
    }
    trace_time(sim);
    printf("host %-3u %s %s\n", host, trace_sign(arrives, fate), line->str);
}
