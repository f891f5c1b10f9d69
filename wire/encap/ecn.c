/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements ecn.h. */
#include "wire/encap/ecn.h"
#include "wire/bytes.h"
#include "wire/encap/ip.h"

#define ECN_CE 3u

size_t ecn_find_ip(const uint8_t *frame, size_t len, unsigned *version)
{
    size_t at = ETH_BYTES - 2;
    unsigned type = 0, found;

    while (at + 2 + VLAN_BYTES <= len && (type = get16(frame + at)) != 0 &&
           (type == ETH_TYPE_VLAN || type == ETH_TYPE_QINQ)) {
        at += VLAN_BYTES;
    }
    if (at + 2 + IPV4_BYTES > len) {
        return 0;
    }
    type = get16(frame + at);
    found = type == ETH_TYPE_IPV4 ? 4 : type == ETH_TYPE_IPV6 ? 6 : 0;
    at += 2;
    *version = found;
    return found && frame[at] >> 4 == (int)found ? at : 0;
}

/* IPv6's traffic class: the low half of the first byte and the high half of the second byte. */
static unsigned ecn_bits(const uint8_t *ip, unsigned version)
{
    return (version == 4 ? ip[1] : ip[1] >> 4) & 3u;
}

bool ecn_is_ect(const uint8_t *frame, size_t len)
{
    unsigned version;
    size_t ip = ecn_find_ip(frame, len, &version);

    return ip && ecn_bits(frame + ip, version);
}

bool ecn_mark_ce(uint8_t *frame, size_t len)
{
    unsigned version, before, sum;
    size_t ip = ecn_find_ip(frame, len, &version);
    uint8_t *at = frame + ip;

    if (!ip || !ecn_bits(at, version)) {
        return false;
    }
    if (version == 6) {
        at[1] |= ECN_CE << 4;
        return true;
    }
    before = get16(at);
    at[1] |= ECN_CE;
    /* RFC 1624: HC' = ~(~HC + ~m + m') */
    sum = (~(unsigned)get16(at + 10) & 0xffff) + (~before & 0xffff) + get16(at);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(at + 10, (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    return true;
}
