/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements packet.h: the table of fields. */
#include "tests/conformance/packet.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name, headers, member)                                                               \
    {                                                                                              \
        name, headers, offsetof(struct roce_packet, member),                                       \
            sizeof(((struct roce_packet *)0)->member)                                              \
    }

const struct packet_field packet_fields[] = {
    FIELD("se", 0, solicited),
    FIELD("migreq", 0, migreq),
    FIELD("ackreq", 0, ackreq),
    FIELD("fecn", 0, fecn),
    FIELD("becn", 0, becn),
    FIELD("tver", 0, tver),
    FIELD("pkey", 0, pkey),
    FIELD("dest", 0, dest_qp),
    FIELD("qkey", HDR_DETH, deth.qkey),
    FIELD("src", HDR_DETH, deth.src_qp),
    FIELD("va", HDR_RETH, reth.va),
    FIELD("rkey", HDR_RETH, reth.rkey),
    FIELD("len", HDR_RETH, reth.len),
    FIELD("va", HDR_ATOMIC_ETH, atomic.va),
    FIELD("rkey", HDR_ATOMIC_ETH, atomic.rkey),
    FIELD("swap", HDR_ATOMIC_ETH, atomic.swap_add),
    FIELD("add", HDR_ATOMIC_ETH, atomic.swap_add),
    FIELD("cmp", HDR_ATOMIC_ETH, atomic.compare),
    FIELD("msn", HDR_AETH, aeth.msn),
    FIELD("old", HDR_ATOMIC_ACK_ETH, atomic_ack),
    FIELD("imm", HDR_IMM_DT, imm),
    FIELD("inv", HDR_IETH, imm),
    FIELD("srqn", HDR_XRC_ETH, xrc_srqn),
    FIELD("tclass", 0, addr.tclass),
    FIELD("hops", 0, addr.hop_limit),
    FIELD("sport", 0, addr.udp_sport),
    FIELD("v1", 0, addr.is_v1),
};
const unsigned packet_num_fields = sizeof(packet_fields) / sizeof(packet_fields[0]);

uint64_t packet_get(const struct roce_packet *pkt, const struct packet_field *field)
{
    uint64_t value = 0;

    /* x86's byte order, as everywhere where a structure is copied to a number (meson.build) */
    memcpy(&value, (const char *)pkt + field->offset, field->size);
    return value;
}

void packet_set(struct roce_packet *pkt, const struct packet_field *field, uint64_t value)
{
    memcpy((char *)pkt + field->offset, &value, field->size);
}

bool packet_has(const struct roce_packet *pkt, const struct packet_field *field)
{
    return !field->headers || bth_opcodes[pkt->opcode].flags & field->headers;
}

bool packet_opcode(enum bth_transport transport, const char *name, uint8_t *opcode)
{
    if (transport == BTH_DC && !strcmp(name, DISCONNECT)) {
        name = "CONNECT"; /* with the SE bit */
    }
    for (unsigned i = 0; i < 256; i++) {
        const struct bth_opcode_info *info = &bth_opcodes[i];
        const char *short_name = info->name ? strchr(info->name, '_') : NULL;

        if (info->name &&
            (!strcmp(info->name, name) ||
             (info->transport == transport && short_name && !strcmp(short_name + 1, name)))) {
            *opcode = (uint8_t)i;
            return true;
        }
    }
    return false;
}

const char **packet_opcode_names(enum bth_transport transport)
{
    GPtrArray *names = g_ptr_array_new();

    for (unsigned i = 0; i < 256; i++) {
        const struct bth_opcode_info *info = &bth_opcodes[i];
        const char *short_name = info->name ? strchr(info->name, '_') : NULL;

        if (info->name && info->transport == transport) {
            g_ptr_array_add(names, (gpointer)(short_name ? short_name + 1 : info->name));
        }
    }
    if (transport == BTH_DC) {
        g_ptr_array_add(names, (gpointer)DISCONNECT);
    }
    g_ptr_array_add(names, (gpointer)bth_opcodes[BTH_CNP_OPCODE].name);
    g_ptr_array_add(names, NULL);
    return (const char **)g_ptr_array_free(names, false);
}

static const struct words_name naks[] = {
    {"seq", AETH_NAK_SEQ}, {"invalid", AETH_NAK_INVALID}, {"access", AETH_NAK_ACCESS},
    {"op", AETH_NAK_OP},   {"cnak", AETH_CNAK},           {NULL, 0},
};

uint8_t packet_syndrome(struct words *w, uint8_t usual)
{
    const char *nak = words_value(w, "nak"), *rnr = words_value(w, "rnr");

    if (nak) {
        return (uint8_t)words_to_choice(w, nak, naks);
    }
    if (rnr) {
        return (uint8_t)(AETH_RNR | words_to_number(w, rnr));
    }
    return (uint8_t)words_number(w, "syndrome", usual);
}

static void describe_syndrome(GString *text, uint8_t syndrome)
{
    switch (aeth_class(syndrome)) {
    case AETH_CLASS_ACK:
        break;
    case AETH_CLASS_RNR_NAK:
        g_string_append_printf(text, " rnr=%u", aeth_value(syndrome));
        break;
    default:
        g_string_append_printf(text, " nak=%s (0x%02x)", words_name_of(naks, syndrome), syndrome);
    }
}

bool packet_is_connect(const struct roce_packet *pkt)
{
    return pkt->opcode == (BTH_DC | BTH_CONNECT) && !pkt->solicited;
}

bool packet_is_disconnect(const struct roce_packet *pkt)
{
    return pkt->opcode == (BTH_DC | BTH_CONNECT) && pkt->solicited;
}

const char *packet_name(const struct roce_packet *pkt)
{
    return packet_is_disconnect(pkt) ? "DC_" DISCONNECT : bth_opcodes[pkt->opcode].name;
}

static void describe_session(GString *text, const struct roce_packet *pkt)
{
    struct dcceth connect;

    g_string_append_printf(text, " session=0x%x", pkt->dceth.session);
    if (packet_is_connect(pkt) && pkt->payload_len == DCC_ETH_BYTES) {
        dcceth_parse(pkt->payload, &connect);
        g_string_append_printf(text, " key=0x%" G_GINT64_MODIFIER "x next=0x%x%s", connect.key,
                               connect.psn, connect.reconnect ? " reconnect" : "");
    }
}

void packet_describe(GString *text, const struct roce_packet *pkt)
{
    const struct bth_opcode_info *info = &bth_opcodes[pkt->opcode];

    g_string_append_printf(text, "%s dest=0x%x psn=0x%x", packet_name(pkt), pkt->dest_qp, pkt->psn);
    if (info->flags & HDR_DC_ETH) {
        describe_session(text, pkt);
    }
    if (info->flags & HDR_AETH) {
        describe_syndrome(text, pkt->aeth.syndrome);
    }
    for (unsigned i = 0; i < packet_num_fields; i++) {
        const struct packet_field *field = &packet_fields[i];

        if (field->headers && packet_has(pkt, field)) {
            g_string_append_printf(text, " %s=0x%" G_GINT64_MODIFIER "x", field->name,
                                   packet_get(pkt, field));
        }
    }
    g_string_append_printf(text, "%s%s", pkt->ackreq ? " ackreq" : "", pkt->solicited ? " se" : "");
    if (info->flags & HDR_PAYLOAD) {
        g_string_append_printf(text, " %zu bytes", pkt->payload_len);
    }
}
