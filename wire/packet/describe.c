/* SPDX-License-Identifier: BSD-2-Clause */
/* Describes transport packets in words; see wire/packet/describe.h. */
#include "wire/packet/describe.h"

#include <inttypes.h>

#define FULL_PKEY 0xffff /* the default partition's key, which no line shows */

const uint32_t aeth_rnr_delay[32] = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* IBTA table 44; the last one is DC's (docs/adr/0009). */
static const char *const nak_names[] = {
    [AETH_NAK_SEQ & 0x1f] = "NAK PSN sequence error",
    [AETH_NAK_INVALID & 0x1f] = "NAK invalid request",
    [AETH_NAK_ACCESS & 0x1f] = "NAK remote access error",
    [AETH_NAK_OP & 0x1f] = "NAK remote operational error",
    [AETH_CNAK & 0x1f] = "CNAK no free responder",
};

/* The credits of a credit count below 31: 0, 1, 2, 3, 4, 6, 8, 12, ... 32768 (IBTA 9.7.7.2). */
static unsigned describe_credits(unsigned count)
{
    if (count < 2) {
        return count;
    }
    return count % 2 ? 3u << (count - 3) / 2 : 1u << count / 2;
}

void aeth_describe(GString *line, uint8_t syndrome)
{
    unsigned value = aeth_value(syndrome);

    switch ((unsigned)aeth_class(syndrome)) {
    case AETH_CLASS_ACK:
        g_string_append(line, "ACK");
        if (syndrome != AETH_ACK) {
            g_string_append_printf(line, " credits %u", describe_credits(value));
        }
        return;
    case AETH_CLASS_RNR_NAK:
        g_string_append_printf(line, "RNR NAK %u.%02u ms", aeth_rnr_delay[value] / 100,
                               aeth_rnr_delay[value] % 100);
        return;
    case AETH_CLASS_NAK:
        if (value < G_N_ELEMENTS(nak_names)) {
            g_string_append(line, nak_names[value]);
            return;
        }
        break;
    default:
        break;
    }
    g_string_append_printf(line, "reserved syndrome 0x%02x", syndrome);
}

/* Appends the extended headers in the order in which they follow the BTH. */
static void describe_headers(GString *line, const struct transport_packet *pkt, uint32_t flags)
{
    if (flags & HDR_XRC_ETH) {
        g_string_append_printf(line, " srqn 0x%x", pkt->xrc_srqn);
    }
    if (flags & HDR_DC_ETH) {
        g_string_append_printf(line, " session 0x%x of 0x%x", pkt->dceth.session,
                               pkt->dceth.number);
    }
    if (flags & HDR_DETH) {
        g_string_append_printf(line, " from qp 0x%x qkey 0x%x", pkt->deth.src_qp, pkt->deth.qkey);
    }
    if (flags & HDR_RETH) {
        g_string_append_printf(line, " va 0x%" PRIx64 " rkey 0x%x len %u", pkt->reth.va,
                               pkt->reth.rkey, pkt->reth.len);
    }
    if (flags & HDR_ATOMIC_ETH) {
        g_string_append_printf(
            line, " va 0x%" PRIx64 " rkey 0x%x swap_add 0x%" PRIx64 " compare 0x%" PRIx64,
            pkt->atomic.va, pkt->atomic.rkey, pkt->atomic.swap_add, pkt->atomic.compare);
    }
    if (flags & HDR_AETH) {
        g_string_append_c(line, ' ');
        aeth_describe(line, pkt->aeth.syndrome);
        g_string_append_printf(line, " msn %u", pkt->aeth.msn);
    }
    if (flags & HDR_ATOMIC_ACK_ETH) {
        g_string_append_printf(line, " value 0x%" PRIx64, pkt->atomic_ack);
    }
    if (flags & HDR_IMM_DT) {
        g_string_append_printf(line, " imm 0x%x", pkt->imm);
    }
    if (flags & HDR_IETH) {
        g_string_append_printf(line, " inval_rkey 0x%x", pkt->imm);
    }
    if (flags & HDR_PAYLOAD) {
        g_string_append_printf(line, ", %zu bytes", pkt->payload_len);
    }
}

static void describe_flag(GString *line, bool is_set, const char *name)
{
    if (is_set) {
        g_string_append_printf(line, ", %s", name);
    }
}

void transport_describe(GString *line, const struct transport_packet *pkt)
{
    const struct bth_opcode_info *info = &bth_opcodes[pkt->opcode];

    if (info->name) {
        g_string_append(line, info->name);
    } else {
        g_string_append_printf(line, "unknown opcode 0x%02x", pkt->opcode);
    }
    g_string_append_printf(line, " qp 0x%x psn %u", pkt->dest_qp, pkt->psn);
    describe_headers(line, pkt, info->flags);
    describe_flag(line, pkt->solicited, "solicited");
    describe_flag(line, pkt->ackreq, "ackreq");
    describe_flag(line, pkt->fecn, "FECN");
    describe_flag(line, pkt->becn, "BECN");
    if (pkt->pkey != FULL_PKEY) {
        g_string_append_printf(line, ", pkey 0x%x", pkt->pkey);
    }
}
