/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes headers as a list in steering memory says.
 *
 * Such a list names fields of 64 bits, of which an action takes a part. Each field consists of
 * parts that modify header contexts name, too. So an action becomes one for each part, and
 * rewrite.h does it. Where a part is another field of IPv4 than of IPv6, or of TCP than of UDP,
 * there are actions for both, and that for a header that the frame does not have does nothing.
 */
#include "model/steering/rewrite.h"
#include "model/steering/ste.h"
#include "wire/bytes.h"

struct ste_part {
    uint8_t field; /* PRM_STE_MODIFY_FIELD_ */
    uint8_t first; /* bit of that field */
    uint8_t bits;
    uint8_t id; /* PRM_MODIFY_HEADER_FIELD_ */
};

#define PART(field, first, bits, id)                                                               \
    {                                                                                              \
        PRM_STE_MODIFY_FIELD_##field, first, bits, PRM_MODIFY_HEADER_FIELD_##id                    \
    }

/* As rdma-core's dr_ste_v0.c. */
static const struct ste_part ste_parts[] = {
    PART(L2_0, 16, 32, OUT_DMAC_47_16),    PART(L2_0, 0, 16, OUT_DMAC_15_0),
    PART(L2_1, 16, 32, OUT_SMAC_47_16),    PART(L2_1, 0, 16, OUT_SMAC_15_0),
    PART(L2_2, 32, 16, OUT_ETHERTYPE),     PART(L2_2, 0, 16, OUT_FIRST_VID),
    PART(L3_0, 32, 32, OUT_DIPV4),         PART(L3_0, 0, 32, OUT_SIPV4),
    PART(L3_0, 32, 32, OUT_DIPV6_127_96),  PART(L3_0, 0, 32, OUT_DIPV6_95_64),
    PART(L3_1, 0, 6, OUT_IP_DSCP),         PART(L3_1, 8, 8, OUT_IP_TTL),
    PART(L3_1, 8, 8, OUT_IPV6_HOPLIMIT),   PART(L3_2, 32, 32, OUT_DIPV6_63_32),
    PART(L3_2, 0, 32, OUT_DIPV6_31_0),     PART(L3_3, 32, 32, OUT_SIPV6_127_96),
    PART(L3_3, 0, 32, OUT_SIPV6_95_64),    PART(L3_4, 32, 32, OUT_SIPV6_63_32),
    PART(L3_4, 0, 32, OUT_SIPV6_31_0),     PART(L4_0, 0, 16, OUT_TCP_SPORT),
    PART(L4_0, 0, 16, OUT_UDP_SPORT),      PART(L4_0, 16, 16, OUT_TCP_DPORT),
    PART(L4_0, 16, 16, OUT_UDP_DPORT),     PART(L4_0, 48, 9, OUT_TCP_FLAGS),
    PART(L4_1, 32, 32, OUT_TCP_SEQ_NUM),   PART(L4_1, 0, 32, OUT_TCP_ACK_NUM),
    PART(METADATA, 0, 32, METADATA_REG_A), PART(METADATA, 32, 32, METADATA_REG_B),
    PART(REG_0, 32, 32, METADATA_REG_C_0), PART(REG_0, 0, 32, METADATA_REG_C_1),
    PART(REG_1, 32, 32, METADATA_REG_C_2), PART(REG_1, 0, 32, METADATA_REG_C_3),
    PART(REG_2, 32, 32, METADATA_REG_C_4), PART(REG_2, 0, 32, METADATA_REG_C_5),
    PART(REG_3, 32, 32, METADATA_REG_C_6), PART(REG_3, 0, 32, METADATA_REG_C_7),
};

/* Bits of L2_2 with the kind of VLAN tag (enum ste_vlan). */
#define QUALIFIER_AT 48
#define TPID_AT      12

static void ste_modify_one(struct steer_packet *packet, struct flow_regs *regs,
                           const struct prm_set_action_in *in)
{
    struct rewrite_action action[1];

    if (rewrite_read(in, 1, action) == SYN_OK) {
        rewrite_run(action, 1, packet, regs);
    }
}

/* SET and ADD. An addition to a part of a field is not carried out. */
static void ste_modify_value(struct steer_packet *packet, struct flow_regs *regs, unsigned op,
                             const struct prm_ste_modify_set *action)
{
    unsigned field = PRM_GET(ste_modify_set, action, destination_field_code);
    unsigned from = PRM_GET(ste_modify_set, action, destination_left_shifter);
    unsigned length = PRM_GET(ste_modify_set, action, destination_length);
    uint64_t data = PRM_GET(ste_modify_set, action, inline_data);
    unsigned end = from + (length ? length : 32);

    for (size_t i = 0; i < G_N_ELEMENTS(ste_parts); i++) {
        const struct ste_part *part = &ste_parts[i];
        unsigned low = MAX(from, part->first), high = MIN(end, part->first + (unsigned)part->bits);
        struct prm_set_action_in in[1] = {0};

        if (part->field != field || low >= high) {
            continue;
        }
        if (op == PRM_STE_MODIFY_OP_ADD) {
            if (low != part->first || high != part->first + (unsigned)part->bits) {
                continue;
            }
            PRM_SET(add_action_in, (struct prm_add_action_in *)in, action_type,
                    PRM_MODIFY_HEADER_ACTION_ADD);
            PRM_SET(add_action_in, (struct prm_add_action_in *)in, field, part->id);
            PRM_SET(add_action_in, (struct prm_add_action_in *)in, data,
                    (uint32_t)(data >> (low - from)));
        } else {
            PRM_SET(set_action_in, in, action_type, PRM_MODIFY_HEADER_ACTION_SET);
            PRM_SET(set_action_in, in, field, part->id);
            PRM_SET(set_action_in, in, offset, low - part->first);
            PRM_SET(set_action_in, in, length, (high - low) & 31);
            PRM_SET(set_action_in, in, data,
                    (uint32_t)(data >> (low - from) & ((1ull << (high - low)) - 1)));
        }
        ste_modify_one(packet, regs, in);
    }
    if (op == PRM_STE_MODIFY_OP_SET && field == PRM_STE_MODIFY_FIELD_L2_2 && from <= QUALIFIER_AT &&
        end >= QUALIFIER_AT + 2 && (data >> (QUALIFIER_AT - from) & 3) == PRM_STE_VLAN_SVLAN &&
        packet->len >= TPID_AT + 2 && get16(packet->bytes + TPID_AT) == ETH_TYPE_VLAN) {
        put16(packet->bytes + TPID_AT, ETH_TYPE_QINQ);
    }
}

static void ste_modify_copy(struct steer_packet *packet, struct flow_regs *regs,
                            const struct prm_ste_modify_copy *action)
{
    unsigned to_field = PRM_GET(ste_modify_copy, action, destination_field_code);
    unsigned from_field = PRM_GET(ste_modify_copy, action, source_field_code);
    unsigned to_bit = PRM_GET(ste_modify_copy, action, destination_left_shifter);
    unsigned from_bit = PRM_GET(ste_modify_copy, action, source_left_shifter);
    unsigned length = PRM_GET(ste_modify_copy, action, destination_length);

    length = length ? length : 64;
    for (size_t i = 0; i < G_N_ELEMENTS(ste_parts); i++) {
        const struct ste_part *to = &ste_parts[i];

        for (size_t j = 0; to->field == to_field && j < G_N_ELEMENTS(ste_parts); j++) {
            const struct ste_part *from = &ste_parts[j];
            /* the bits of the copy, counted from its first one, that are in both parts */
            int low = MAX(0, MAX((int)to->first - (int)to_bit, (int)from->first - (int)from_bit));
            int high = MIN((int)length, MIN((int)to->first + to->bits - (int)to_bit,
                                            (int)from->first + from->bits - (int)from_bit));
            struct prm_copy_action_in in[1] = {0};

            if (from->field != from_field || low >= high) {
                continue;
            }
            PRM_SET(copy_action_in, in, action_type, PRM_MODIFY_HEADER_ACTION_COPY);
            PRM_SET(copy_action_in, in, src_field, from->id);
            PRM_SET(copy_action_in, in, src_offset, from_bit + (unsigned)low - from->first);
            PRM_SET(copy_action_in, in, length, (unsigned)(high - low) & 31);
            PRM_SET(copy_action_in, in, dst_field, to->id);
            PRM_SET(copy_action_in, in, dst_offset, to_bit + (unsigned)low - to->first);
            ste_modify_one(packet, regs, (const struct prm_set_action_in *)in);
        }
    }
}

void ste_modify(struct steer_packet *packet, struct flow_regs *regs, const uint8_t *list,
                unsigned n)
{
    for (unsigned i = 0; i < n; i++, list += PRM_SIZE(ste_modify_set)) {
        unsigned op = PRM_GET(ste_modify_set, (const struct prm_ste_modify_set *)list, opcode);

        if (op == PRM_STE_MODIFY_OP_COPY) {
            ste_modify_copy(packet, regs, (const struct prm_ste_modify_copy *)list);
        } else if (op == PRM_STE_MODIFY_OP_SET || op == PRM_STE_MODIFY_OP_ADD) {
            ste_modify_value(packet, regs, op, (const struct prm_ste_modify_set *)list);
        }
    }
}
