/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes frames: wrong bits, checksums that fit to them, marks of congestion. */
#include "wire/fault/rule.h"
#include "wire/encap/roce.h"

#define ECN_MASK 3 /* of TOS or traffic class (RFC 3168) */
#define ECN_CE   3

/* Where the ICRC covers all bits: behind the BTH's first reserved byte (IBTA 9.2.7, A17.3.3). */
#define BTH_COVERED 5

bool fault_may_mark(const struct fault_frame *f)
{
    unsigned ecn = f->eth.tos & ECN_MASK;

    return f->is_ip && ecn != 0 && ecn != ECN_CE;
}

void fault_mark(struct fault_frame *f)
{
    /* IPv6 has the two bits 4 bits higher, in the second byte, too. */
    f->bytes[f->eth.l3_off + 1] |= (uint8_t)(f->eth.ip_version == 4 ? ECN_CE : ECN_CE << 4);
    eth_csum_fill_ipv4(f->bytes, &f->eth); /* the ICRC does not cover the bits */
}

/* The part of a frame in which a wrong bit is detected by the ICRC, or in which `repair` can hide
 * it. False: there is none. */
static bool fault_find_covered(const struct fault_frame *f, bool repair, uint32_t *from,
                               uint32_t *to)
{
    size_t at, end;

    if (fault_find_packet(f, &at, &end)) {
        *from = (uint32_t)at + BTH_COVERED;
        *to = (uint32_t)end - (repair ? ICRC_BYTES : 0);
        return *from < *to;
    }
    if (!f->is_ip || f->eth.malformed || f->eth.l4 == ETH_L4_NONE || !repair) {
        return false;
    }
    *from = f->eth.payload_off;
    *to = f->eth.ip_end;
    return *from < *to;
}

bool fault_choose_bit(struct fault_rule *rule, const struct fault_frame *f, uint32_t *bit)
{
    uint32_t from = (uint32_t)rule->byte, to = from + 1;

    if (!FAULT_HAS(rule, FAULT_ROW_BYTE) &&
        !fault_find_covered(f, FAULT_HAS(rule, FAULT_ROW_REPAIR), &from, &to)) {
        return false;
    }
    *bit = (uint32_t)chance_from(&rule->chance, 8ull * from, 8ull * to - 1);
    return true;
}

/* A UDP checksum of 0 says that there is none (RFC 768). */
static bool fault_has_l4_checksum(const struct fault_frame *f)
{
    const uint8_t *udp = f->bytes + f->eth.l4_off;

    return f->eth.l4 == ETH_L4_TCP || (f->eth.l4 == ETH_L4_UDP && (udp[6] || udp[7]));
}

void fault_flip(const struct fault_frame *f, uint32_t bit, bool repair)
{
    struct fault_frame after;

    f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    if (!repair) {
        return;
    }
    fault_frame_read(&after, f->bytes, f->len, f->inbound);
    if (after.is_ip) {
        eth_csum_fill_ipv4(after.bytes, &after.eth);
    }
    roce_fill_icrc(after.bytes, after.len);
    if (fault_has_l4_checksum(&after)) {
        eth_csum_fill_l4(after.bytes, &after.eth);
    }
}
