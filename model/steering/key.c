/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the keys by which entries are found: from the mask and the values of commands, and from the
 * headers of a frame.
 */
#include <string.h>
#include "model/steering/key.h"

/* Bits of the outer headers that cannot be matched; flow_key_from_frame() fills in all others. */
static const struct {
    unsigned word;
    uint32_t unsupported;
} unsupported_bits[] = {
    {0x18 / 4, 0xffffff00}, /* l4_type, ipv4_ihl */
};

/* Random factors of the hash. A guest chooses the keys, but does not know the factors. So it cannot
 * make all its keys collide in a group's hash table. */
static uint64_t key_factors[KEY_WORDS];

void flow_key_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (unsigned i = 0; i < KEY_WORDS; i++) {
            key_factors[i] = (uint64_t)g_random_int() << 32 | g_random_int();
        }
        g_once_init_leave(&done, 1);
    }
}

static guint steering_key_hash(gconstpointer p)
{
    const struct flow_key *key = p;
    uint64_t sum = 0;

    for (unsigned i = 0; i < KEY_WORDS; i++) {
        sum += key_factors[i] * key->word[i];
    }
    return (guint)(sum >> 32);
}

static gboolean steering_key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(struct flow_key)) == 0;
}

GHashTable *flow_key_table_new(void)
{
    return g_hash_table_new(steering_key_hash, steering_key_equal);
}

static bool key_is_zero(const uint8_t *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Only outer headers can be matched, and only the fields of a frame's key. */
enum syn flow_key_read_mask(const struct prm_create_flow_group_in *in, struct flow_key *mask)
{
    const struct prm_fte_match_param *criteria = PRM_PTR(create_flow_group_in, in, match_criteria);
    uint8_t enable = (uint8_t)PRM_GET(create_flow_group_in, in, match_criteria_enable);
    size_t outer = PRM_SIZE(fte_match_set_lyr_2_4);

    memset(mask, 0, sizeof(*mask));
    if (enable & ~(1u << PRM_MATCH_CRITERIA_OUTER_HEADERS)) {
        return SYN_FG_CRITERIA;
    }
    if (!key_is_zero(criteria->bytes + outer, PRM_SIZE(fte_match_param) - outer)) {
        return SYN_FG_CRITERIA;
    }
    if (enable) {
        memcpy(mask->word, criteria, outer);
    } else if (!key_is_zero(criteria->bytes, outer)) {
        return SYN_FG_CRITERIA;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(unsupported_bits); i++) {
        if (GUINT32_FROM_BE(mask->word[unsupported_bits[i].word]) &
            unsupported_bits[i].unsupported) {
            return SYN_FG_CRITERIA;
        }
    }
    return SYN_OK;
}

void flow_key_read_value(const struct prm_flow_context *ctx, const struct flow_key *mask,
                         struct flow_key *key)
{
    struct flow_key value;

    memcpy(&value, PRM_PTR(flow_context, ctx, match_value), sizeof(value));
    flow_key_mask(key, &value, mask);
}

void flow_key_from_frame(struct flow_key *out, const uint8_t *frame, const struct eth_info *info)
{
    struct prm_fte_match_set_lyr_2_4 *key = (void *)out->word;

    memset(out, 0, sizeof(*out));
    PRM_SET(fte_match_set_lyr_2_4, key, dmac_47_16, prm_load32(frame));
    PRM_SET(fte_match_set_lyr_2_4, key, dmac_15_0, prm_load16(frame + 4));
    PRM_SET(fte_match_set_lyr_2_4, key, smac_47_16, prm_load32(frame + 6));
    PRM_SET(fte_match_set_lyr_2_4, key, smac_15_0, prm_load16(frame + 10));
    PRM_SET(fte_match_set_lyr_2_4, key, ethertype, info->ethertype);
    if (info->vlan_count) {
        PRM_SET(fte_match_set_lyr_2_4, key, first_prio, info->vlan_tci[0] >> 13);
        PRM_SET(fte_match_set_lyr_2_4, key, first_cfi, info->vlan_tci[0] >> 12 & 1);
        PRM_SET(fte_match_set_lyr_2_4, key, first_vid, info->vlan_tci[0] & 0xfff);
        PRM_SET(fte_match_set_lyr_2_4, key, cvlan_tag, info->vlan_tpid[0] == ETH_TYPE_VLAN);
        PRM_SET(fte_match_set_lyr_2_4, key, svlan_tag, info->vlan_tpid[0] == ETH_TYPE_QINQ);
    }
    if (!info->ip_version) {
        return;
    }
    PRM_SET(fte_match_set_lyr_2_4, key, ip_version, info->ip_version);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_protocol, info->proto);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_dscp, info->tos >> 2);
    PRM_SET(fte_match_set_lyr_2_4, key, ip_ecn, info->tos & 3);
    PRM_SET(fte_match_set_lyr_2_4, key, frag, info->fragment);
    PRM_SET(fte_match_set_lyr_2_4, key, ttl_hoplimit, info->ttl);
    if (info->ip_version == 4) {
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, src_ipv4_src_ipv6) + 12,
               frame + info->l3_off + 12, 4);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, dst_ipv4_dst_ipv6) + 12,
               frame + info->l3_off + 16, 4);
    } else {
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, src_ipv4_src_ipv6), frame + info->l3_off + 8,
               16);
        memcpy(PRM_PTR(fte_match_set_lyr_2_4, key, dst_ipv4_dst_ipv6), frame + info->l3_off + 24,
               16);
    }
    if (info->l4 == ETH_L4_TCP) {
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_dport, info->dport);
        PRM_SET(fte_match_set_lyr_2_4, key, tcp_flags, info->tcp_flags);
    } else if (info->l4 == ETH_L4_UDP) {
        PRM_SET(fte_match_set_lyr_2_4, key, udp_sport, info->sport);
        PRM_SET(fte_match_set_lyr_2_4, key, udp_dport, info->dport);
    }
}
