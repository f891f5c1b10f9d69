/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements eth_message.h. */
#include "tests/sim/fabric/eth_message.h"
#include <glib.h>

#define ETH   14u
#define LEAST 60u /* the least bytes of a frame, without its FCS */
#define FIN   0x01u
#define PSH   0x08u
#define CWR   0x80u
#define VID   0x0fffu

static void eth_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void eth_put32(uint8_t *at, uint32_t value)
{
    eth_put16(at, value >> 16);
    eth_put16(at + 2, value);
}

static uint32_t eth_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t eth_get16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static size_t eth_l2_len(const struct eth_kind *kind)
{
    return ETH + (kind->tagged ? ETH_TAG : 0);
}

static size_t eth_l3_len(const struct eth_kind *kind)
{
    return kind->ipv6 ? 40 : 20;
}

size_t eth_headers_len(const struct eth_kind *kind)
{
    return eth_l2_len(kind) + eth_l3_len(kind) + (kind->tcp ? 20 : 8);
}

/* -- drawn ------------------------------------------------------------------------------------- */

static void eth_draw_headers(struct eth_message *msg, const struct eth_kind *kind,
                             struct chance *chance)
{
    uint8_t *at = msg->headers, *l3 = at + eth_l2_len(kind), *l4 = l3 + eth_l3_len(kind);

    chance_fill(chance, at, ETH_MOST_HEADERS);
    memcpy(at, kind->dmac, 6);
    memcpy(at + 6, kind->smac, 6);
    if (kind->tagged) {
        msg->tci = (uint16_t)(chance_below(chance, 16) << 12 | kind->vid);
        msg->tci ^= chance_one_in(chance, 8) ? chance_from(chance, 1, VID) : 0;
        eth_put16(at + ETH_TAG_AT, 0x8100);
        eth_put16(at + ETH_TAG_AT + 2, msg->tci);
    }
    eth_put16(l3 - 2, kind->ipv6 ? 0x86dd : 0x0800);
    if (kind->ipv6) {
        l3[0] = 0x60;
        l3[1] &= 0xcf; /* no ECN, so no switch marks it */
        l3[6] = kind->tcp ? 6 : 17;
        l3[8] = 0x20; /* no multicast */
        l3[24] = 0x20;
    } else {
        l3[0] = 0x45;
        l3[1] &= 0xfc;
        eth_put16(l3 + 6, 0x4000);
        l3[9] = kind->tcp ? 6 : 17;
        l3[12] = l3[16] = 10;
    }
    eth_put16(l4 + 2, kind->dport);
    if (kind->tcp) {
        l4[12] = 0x50;
    }
}

void eth_message_draw(struct eth_message *msg, const struct eth_kind *kind, uint64_t seed,
                      uint32_t number, uint32_t most)
{
    struct chance chance = chance_of(seed, "packet", number);
    uint32_t last;

    memset(msg, 0, sizeof(*msg));
    msg->number = number;
    msg->headers_len = (uint32_t)eth_headers_len(kind);
    eth_draw_headers(msg, kind, &chance);
    msg->len = (uint32_t)chance_from(&chance, ETH_LEAST, most);
    msg->bad_sum = chance_one_in(&chance, 8);
    msg->bad_l3_sum = !kind->ipv6 && chance_one_in(&chance, 8);
    if (kind->tcp && chance_one_in(&chance, 3)) {
        msg->mss = (uint32_t)chance_from(&chance, MIN(64, most), most);
        msg->len = (uint32_t)chance_from(&chance, ETH_LEAST, 8 * msg->mss);
        last = msg->len % msg->mss;
        msg->len -= last && last < ETH_LEAST ? last : 0;
        msg->len = MAX(msg->len, ETH_LEAST);
        msg->bad_sum = msg->bad_l3_sum = false;
    }
}

bool eth_message_is_astray(const struct eth_message *msg, const struct eth_kind *kind)
{
    return kind->tagged && (msg->tci & VID) != kind->vid;
}

void eth_message_fill(const struct eth_message *msg, uint8_t *payload)
{
    uint32_t per = msg->mss ? msg->mss : msg->len;
    struct chance chance = chance_of(msg->number, "payload", msg->len);

    chance_fill(&chance, payload, msg->len);
    for (uint32_t at = 0; at < msg->len; at += per) {
        eth_put32(payload + at, msg->number);
        eth_put32(payload + at + 4, at / per);
    }
}

uint32_t eth_payload_number(const uint8_t *payload)
{
    return eth_get32(payload);
}

uint32_t eth_payload_nth(const uint8_t *payload)
{
    return eth_get32(payload + 4);
}

/* -- expected packets -------------------------------------------------------------------------- */

static uint32_t eth_add_up(uint32_t sum, const uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum += i & 1 ? at[i] : (uint32_t)at[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static uint32_t eth_sum_of(uint32_t sum)
{
    return ~sum & 0xffff;
}

/* Writes the checksums; l4_len: length of the transport's header and everything behind it. */
static void eth_put_sums(const struct eth_kind *kind, uint8_t *l3, size_t l4_len)
{
    uint8_t *l4 = l3 + eth_l3_len(kind), *at = l4 + (kind->tcp ? 16 : 6);
    uint32_t sum = (uint32_t)l4_len + (kind->tcp ? 6 : 17);

    sum = kind->ipv6 ? eth_add_up(sum, l3 + 8, 32) : eth_add_up(sum, l3 + 12, 8);
    eth_put16(at, 0);
    sum = eth_sum_of(eth_add_up(sum, l4, l4_len));
    eth_put16(at, !sum && !kind->tcp ? 0xffff : sum);
    if (!kind->ipv6) {
        eth_put16(l3 + 10, 0);
        eth_put16(l3 + 10, eth_sum_of(eth_add_up(0, l3, 20)));
    }
}

uint32_t eth_message_packets(const struct eth_message *msg)
{
    return msg->mss ? (msg->len + msg->mss - 1) / msg->mss : 1;
}

size_t eth_message_packet(const struct eth_message *msg, const struct eth_kind *kind, uint32_t nth,
                          bool sums, const uint8_t *payload, uint8_t *packet)
{
    uint32_t per = msg->mss ? msg->mss : msg->len, at = nth * per, len = MIN(per, msg->len - at);
    uint8_t *l3 = packet + eth_l2_len(kind), *l4 = l3 + eth_l3_len(kind);
    size_t l4_len = msg->headers_len - (size_t)(l4 - packet) + len;
    uint32_t flags;

    memcpy(packet, msg->headers, msg->headers_len);
    memcpy(packet + msg->headers_len, payload + at, len);
    if (kind->ipv6) {
        eth_put16(l3 + 4, (uint32_t)l4_len);
    } else {
        eth_put16(l3 + 2, (uint32_t)l4_len + 20);
        eth_put16(l3 + 4, eth_get16(l3 + 4) + nth);
    }
    if (!kind->tcp) {
        eth_put16(l4 + 4, (uint32_t)l4_len);
    } else if (msg->mss) {
        eth_put32(l4 + 4, eth_get32(l4 + 4) + at);
        flags = l4[13];
        flags &= at + len < msg->len ? ~(FIN | PSH) : ~0u;
        flags &= nth ? ~CWR : ~0u; /* RFC 3168 6.1.2 */
        l4[13] = (uint8_t)flags;
    }
    eth_put_sums(kind, l3, l4_len);
    if (!sums && msg->bad_sum) {
        uint8_t *sum = l4 + (kind->tcp ? 16 : 6);

        sum[0] ^= 0x55;
        sum[1] |= !sum[0] && !sum[1]; /* 0 would mean that UDP has no checksum (RFC 768) */
    }
    if (!sums && msg->bad_l3_sum) {
        l3[10] ^= 0x55;
    }
    len += msg->headers_len;
    if (len < LEAST) { /* IEEE 802.3 4.2.3.3: it is padded */
        memset(packet + len, 0, LEAST - len);
    }
    return MAX(len, LEAST);
}

uint32_t eth_toeplitz(const uint8_t key[ETH_KEY], const uint8_t *data, size_t len)
{
    uint32_t hash = 0, window = eth_get32(key);

    for (size_t bit = 0; bit < 8 * len; bit++) {
        size_t next = bit + 32;

        hash ^= data[bit / 8] & 0x80u >> bit % 8 ? window : 0;
        window = window << 1 | (key[next / 8 % ETH_KEY] >> (7 - next % 8) & 1);
    }
    return hash;
}

uint32_t eth_message_hash(const struct eth_message *msg, const struct eth_kind *kind)
{
    const uint8_t *l3 = msg->headers + eth_l2_len(kind), *src = l3 + (kind->ipv6 ? 8 : 12);
    size_t address = kind->ipv6 ? 16 : 4, len = 0;
    uint8_t data[36];

    if (kind->hash_src) {
        memcpy(data + len, src, address);
        len += address;
    }
    if (kind->hash_dst) {
        memcpy(data + len, src + address, address);
        len += address;
    }
    if (kind->hash_sport) {
        memcpy(data + len, l3 + eth_l3_len(kind), 2);
        len += 2;
    }
    return eth_toeplitz(kind->key, data, len);
}
