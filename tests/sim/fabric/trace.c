/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements trace.h. A line has the time since the start, the host, and the event. */
#include "tests/sim/fabric/trace.h"
#include <inttypes.h>
#include <stdio.h>
#include "wire/encap/roce.h"

static void trace_time(const struct sim *sim)
{
    printf("%12.3f us  ", (double)sim->world->now_ns / 1000);
}

static void trace_roce(const struct roce_packet *p)
{
    const struct bth_opcode_info *info = &bth_opcodes[p->opcode];

    printf("%s qp 0x%x psn %u", info->name ? info->name : "?", p->dest_qp, p->psn);
    if (info->flags & HDR_RETH) {
        printf(" va 0x%" PRIx64 " rkey 0x%x len %u", p->reth.va, p->reth.rkey, p->reth.len);
    }
    if (info->flags & HDR_ATOMIC_ETH) {
        printf(" va 0x%" PRIx64 " swap/add %" PRIu64, p->atomic.va, p->atomic.swap_add);
    }
    if (info->flags & HDR_AETH) {
        printf(" syndrome 0x%02x msn %u", p->aeth.syndrome, p->aeth.msn);
    }
    if (info->flags & (HDR_IMM_DT | HDR_IETH)) {
        printf(" imm 0x%x", p->imm);
    }
    printf(" %zu bytes%s%s%s\n", p->payload_len, p->solicited ? " solicited" : "",
           p->ackreq ? " ackreq" : "", (p->addr.tclass & 3) == 3 ? " CE" : "");
}

void trace_frame(struct sim *sim, unsigned host, bool arrives, const uint8_t *frame, size_t len)
{
    struct roce_packet packet;
    enum roce_verdict verdict;

    if (arrives) {
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
    trace_time(sim);
    printf("host %-3u %s ", host, arrives ? "<-" : "->");
    verdict = roce_parse(frame, len, &packet);
    if (verdict == ROCE_OK) {
        trace_roce(&packet);
    } else {
        printf("%s, %zu bytes\n",
               verdict == ROCE_NOT_ROCE ? "Ethernet" : "RoCE, but bytes of it are wrong", len);
    }
}
