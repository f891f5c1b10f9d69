/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rewrite.h. */
#include "model/steering/rewrite.h"
#include <glib.h>
#include <string.h>
#include "wire/bytes.h"
#include "wire/encap/eth.h"

enum rewrite_layer {
    REWRITE_NONE, /* no such field */
    REWRITE_ETH,
    REWRITE_TYPE, /* the Ethernet type behind the tags */
    REWRITE_VLAN, /* the outer tag */
    REWRITE_IPV4,
    REWRITE_IPV6,
    REWRITE_IP, /* IPv4 or IPv6: a field that both have */
    REWRITE_TCP,
    REWRITE_UDP,
    REWRITE_REG,
};

/* A field is in a window of two or four bytes that begins at an even offset of its header, so the
 * checksums can be changed with the window. */
struct rewrite_field {
    uint8_t layer;
    uint8_t at;         /* offset of the window from the beginning of the header */
    uint8_t size;       /* bytes of the window */
    uint8_t shift;      /* of the field's least significant bit in the window */
    uint8_t bits;       /* of the field */
    bool is_ip_address; /* the checksum of TCP and UDP covers it, too */
};

#define ID(name) PRM_MODIFY_HEADER_FIELD_##name
#define WHOLE(layer, at, size)                                                                     \
    {                                                                                              \
        REWRITE_##layer, at, size, 0, (size)*8, false                                              \
    }
#define PART(layer, at, sh, n)                                                                     \
    {                                                                                              \
        REWRITE_##layer, at, 2, sh, n, false                                                       \
    }
#define ADDRESS(layer, at)                                                                         \
    {                                                                                              \
        REWRITE_##layer, at, 4, 0, 32, true                                                        \
    }
#define REGISTER(member)                                                                           \
    {                                                                                              \
        REWRITE_REG, offsetof(struct flow_regs, member), sizeof(uint32_t), 0, 32, false            \
    }

/* The widths are those of rdma-core's table for software steering (dr_ste_v0.c). So FIRST_VID is
 * the whole tag, with priority and CFI above the VLAN's number. */
static const struct rewrite_field rewrite_fields[] = {
    [ID(OUT_SMAC_47_16)] = WHOLE(ETH, 6, 4),    [ID(OUT_SMAC_15_0)] = WHOLE(ETH, 10, 2),
    [ID(OUT_ETHERTYPE)] = WHOLE(TYPE, 0, 2),    [ID(OUT_DMAC_47_16)] = WHOLE(ETH, 0, 4),
    [ID(OUT_DMAC_15_0)] = WHOLE(ETH, 4, 2),     [ID(OUT_IP_DSCP)] = PART(IP, 0, 2, 6),
    [ID(OUT_TCP_FLAGS)] = PART(TCP, 12, 0, 9),  [ID(OUT_TCP_SPORT)] = WHOLE(TCP, 0, 2),
    [ID(OUT_TCP_DPORT)] = WHOLE(TCP, 2, 2),     [ID(OUT_IP_TTL)] = PART(IPV4, 8, 8, 8),
    [ID(OUT_UDP_SPORT)] = WHOLE(UDP, 0, 2),     [ID(OUT_UDP_DPORT)] = WHOLE(UDP, 2, 2),
    [ID(OUT_SIPV6_127_96)] = ADDRESS(IPV6, 8),  [ID(OUT_SIPV6_95_64)] = ADDRESS(IPV6, 12),
    [ID(OUT_SIPV6_63_32)] = ADDRESS(IPV6, 16),  [ID(OUT_SIPV6_31_0)] = ADDRESS(IPV6, 20),
    [ID(OUT_DIPV6_127_96)] = ADDRESS(IPV6, 24), [ID(OUT_DIPV6_95_64)] = ADDRESS(IPV6, 28),
    [ID(OUT_DIPV6_63_32)] = ADDRESS(IPV6, 32),  [ID(OUT_DIPV6_31_0)] = ADDRESS(IPV6, 36),
    [ID(OUT_SIPV4)] = ADDRESS(IPV4, 12),        [ID(OUT_DIPV4)] = ADDRESS(IPV4, 16),
    [ID(OUT_FIRST_VID)] = WHOLE(VLAN, 0, 2),    [ID(OUT_IPV6_HOPLIMIT)] = PART(IPV6, 6, 0, 8),
    [ID(METADATA_REG_A)] = REGISTER(a),         [ID(METADATA_REG_B)] = REGISTER(b),
    [ID(METADATA_REG_C_0)] = REGISTER(c[0]),    [ID(METADATA_REG_C_1)] = REGISTER(c[1]),
    [ID(METADATA_REG_C_2)] = REGISTER(c[2]),    [ID(METADATA_REG_C_3)] = REGISTER(c[3]),
    [ID(METADATA_REG_C_4)] = REGISTER(c[4]),    [ID(METADATA_REG_C_5)] = REGISTER(c[5]),
    [ID(METADATA_REG_C_6)] = REGISTER(c[6]),    [ID(METADATA_REG_C_7)] = REGISTER(c[7]),
    [ID(OUT_TCP_SEQ_NUM)] = WHOLE(TCP, 4, 4),   [ID(OUT_TCP_ACK_NUM)] = WHOLE(TCP, 8, 4),
};

/* IPv6 has its DSCP elsewhere than IPv4. */
static const struct rewrite_field rewrite_dscp_ipv6 = PART(IPV6, 0, 6, 6);

/* -- reading a list -----------------------------------------------------------------------------
 */

static const struct rewrite_field *rewrite_find(uint32_t id)
{
    return id < G_N_ELEMENTS(rewrite_fields) && rewrite_fields[id].layer ? &rewrite_fields[id]
                                                                         : NULL;
}

static enum syn rewrite_read_set(const void *in, struct rewrite_action *action)
{
    action->to = rewrite_find(PRM_GET(set_action_in, in, field));
    action->to_bit = (uint8_t)PRM_GET(set_action_in, in, offset);
    action->bits = (uint8_t)PRM_GET(set_action_in, in, length);
    action->value = PRM_GET(set_action_in, in, data);
    return action->to ? SYN_OK : SYN_MH_ACTION;
}

/* An addition is of the whole field. */
static enum syn rewrite_read_add(const void *in, struct rewrite_action *action)
{
    action->to = rewrite_find(PRM_GET(add_action_in, in, field));
    if (!action->to) {
        return SYN_MH_ACTION;
    }
    action->bits = action->to->bits;
    action->value = PRM_GET(add_action_in, in, data);
    return SYN_OK;
}

static enum syn rewrite_read_copy(const void *in, struct rewrite_action *action)
{
    action->from = rewrite_find(PRM_GET(copy_action_in, in, src_field));
    action->to = rewrite_find(PRM_GET(copy_action_in, in, dst_field));
    action->from_bit = (uint8_t)PRM_GET(copy_action_in, in, src_offset);
    action->to_bit = (uint8_t)PRM_GET(copy_action_in, in, dst_offset);
    action->bits = (uint8_t)PRM_GET(copy_action_in, in, length);
    return action->from && action->to ? SYN_OK : SYN_MH_ACTION;
}

static enum syn rewrite_read_one(const struct prm_set_action_in *in, struct rewrite_action *action)
{
    enum syn syn = SYN_MH_ACTION;

    *action = (struct rewrite_action){.type = (uint8_t)PRM_GET(set_action_in, in, action_type)};
    if (action->type == PRM_MODIFY_HEADER_ACTION_SET) {
        syn = rewrite_read_set(in, action);
    } else if (action->type == PRM_MODIFY_HEADER_ACTION_ADD) {
        syn = rewrite_read_add(in, action);
    } else if (action->type == PRM_MODIFY_HEADER_ACTION_COPY) {
        syn = rewrite_read_copy(in, action);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if (!action->bits) {
        action->bits = 32;
    }
    return action->to_bit + action->bits > action->to->bits ||
                   (action->from && action->from_bit + action->bits > action->from->bits)
               ? SYN_MH_BITS
               : SYN_OK;
}

enum syn rewrite_read(const struct prm_set_action_in *list, unsigned n,
                      struct rewrite_action *actions)
{
    for (unsigned i = 0; i < n; i++) {
        enum syn syn = rewrite_read_one(&list[i], &actions[i]);

        if (syn != SYN_OK) {
            return syn;
        }
    }
    return SYN_OK;
}

bool rewrite_writes_frame(const struct rewrite_action *actions, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (actions[i].to->layer != REWRITE_REG) {
            return true;
        }
    }
    return false;
}

/* -- changing a frame ---------------------------------------------------------------------------
 */

struct rewrite {
    uint8_t *frame;
    struct flow_regs *regs;
    struct eth_info info;
};

/* Where the field's header is. NULL: the frame has no such header. */
static uint8_t *rewrite_header(const struct rewrite *r, const struct rewrite_field *field)
{
    const struct eth_info *info = &r->info;

    switch (field->layer) {
    case REWRITE_ETH:
        return r->frame;
    case REWRITE_TYPE:
        return r->frame + info->l3_off - 2;
    case REWRITE_VLAN:
        return info->vlan_count ? r->frame + ETH_BYTES : NULL;
    case REWRITE_IPV4:
        return info->ip_version == 4 ? r->frame + info->l3_off : NULL;
    case REWRITE_IPV6:
        return info->ip_version == 6 ? r->frame + info->l3_off : NULL;
    case REWRITE_IP:
        return info->ip_version ? r->frame + info->l3_off : NULL;
    case REWRITE_TCP:
        return info->l4 == ETH_L4_TCP ? r->frame + info->l4_off : NULL;
    case REWRITE_UDP:
        return info->l4 == ETH_L4_UDP ? r->frame + info->l4_off : NULL;
    default:
        return NULL;
    }
}

static uint32_t rewrite_mask(unsigned bits)
{
    return bits >= 32 ? UINT32_MAX : (1u << bits) - 1;
}

static uint32_t rewrite_load(const uint8_t *window, unsigned size)
{
    return size == 4 ? get32(window) : get16(window);
}

/* RFC 1624: HC' = ~(~HC + ~m + m'), for the 16-bit words of m. */
static void rewrite_checksum(uint8_t *checksum, uint32_t before, uint32_t after)
{
    uint32_t sum = (uint16_t)~get16(checksum);

    sum += (uint16_t)~before + (uint16_t)(~before >> 16) + (after & 0xffff) + (after >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(checksum, (uint16_t)~sum);
}

/* Corrects the checksums that cover a window of the field, whose value has changed. */
static void rewrite_checksums(const struct rewrite *r, const struct rewrite_field *field,
                              uint32_t before, uint32_t after)
{
    uint8_t *l4 = r->frame + r->info.l4_off;
    bool in_ip = field->layer == REWRITE_IPV4 || field->layer == REWRITE_IP;
    bool in_l4 = field->is_ip_address || field->layer == REWRITE_TCP || field->layer == REWRITE_UDP;

    if (in_ip && r->info.ip_version == 4) {
        rewrite_checksum(r->frame + r->info.l3_off + 10, before, after);
    }
    if (in_l4 && r->info.l4 == ETH_L4_TCP) {
        rewrite_checksum(l4 + 16, before, after);
    } else if (in_l4 && r->info.l4 == ETH_L4_UDP && get16(l4 + 6)) {
        rewrite_checksum(l4 + 6, before, after);
        if (!get16(l4 + 6)) {
            put16(l4 + 6, 0xffff); /* RFC 768: 0 would say that there is no checksum */
        }
    }
}

static const struct rewrite_field *rewrite_of_frame(const struct rewrite *r,
                                                    const struct rewrite_field *field)
{
    return field->layer == REWRITE_IP && r->info.ip_version == 6 ? &rewrite_dscp_ipv6 : field;
}

/* False: the frame has no such field. */
static bool rewrite_get(const struct rewrite *r, const struct rewrite_field *field, uint32_t *value)
{
    const uint8_t *header;

    if (field->layer == REWRITE_REG) {
        memcpy(value, (const uint8_t *)r->regs + field->at, sizeof(*value));
        return true;
    }
    field = rewrite_of_frame(r, field);
    header = rewrite_header(r, field);
    if (!header) {
        return false;
    }
    *value = rewrite_load(header + field->at, field->size) >> field->shift;
    *value &= rewrite_mask(field->bits);
    return true;
}

/* The frame must have the field. */
static void rewrite_put(struct rewrite *r, const struct rewrite_field *field, uint32_t value)
{
    uint32_t before, after;
    uint8_t *window;

    if (field->layer == REWRITE_REG) {
        memcpy((uint8_t *)r->regs + field->at, &value, sizeof(value));
        return;
    }
    field = rewrite_of_frame(r, field);
    window = rewrite_header(r, field) + field->at;
    before = rewrite_load(window, field->size);
    after = before & ~(rewrite_mask(field->bits) << field->shift);
    after |= value << field->shift;
    if (field->size == 4) {
        put32(window, after);
    } else {
        put16(window, (uint16_t)after);
    }
    rewrite_checksums(r, field, before, after);
}

static void rewrite_do(struct rewrite *r, const struct rewrite_action *action)
{
    uint32_t mask = rewrite_mask(action->bits) << action->to_bit;
    uint32_t old, value = action->value;

    if (!rewrite_get(r, action->to, &old) ||
        (action->from && !rewrite_get(r, action->from, &value))) {
        return;
    }
    if (action->type == PRM_MODIFY_HEADER_ACTION_ADD) {
        value += old;
    } else {
        value = value >> action->from_bit << action->to_bit;
    }
    rewrite_put(r, action->to, (old & ~mask) | (value & mask));
}

void rewrite_run(const struct rewrite_action *actions, unsigned n, struct steer_packet *packet,
                 struct flow_regs *regs)
{
    struct rewrite r = {.frame = packet->bytes, .regs = regs};

    if (!eth_parse(packet->bytes, packet->len, &r.info)) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        rewrite_do(&r, &actions[i]);
    }
}
