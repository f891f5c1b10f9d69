/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: frames as a peer may send them, through the parsers. What a parser reports of a frame
 * must lie within it, an accepted packet must survive being built again, and the checksum functions
 * must not leave the frame.
 *
 * Nearly every random frame fails at the ICRC, so a frame whose ICRC alone is wrong is built again
 * with the right one, and parsed once more.
 */
#include "wire/encap/eth.h"
#include "wire/encap/roce.h"
#include "wire/encap/tunnel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Offsets lie in the frame, in their order, behind `from`. */
static void check_info(const struct eth_info *info, size_t from, size_t size)
{
    require(info->l3_off <= size && info->l4_off <= size && info->payload_off <= size &&
            info->ip_end <= size && info->vlan_count <= 2);
    if (info->ip_version) {
        require(from <= info->l3_off && info->l3_off < info->l4_off &&
                info->l4_off <= info->ip_end);
    }
    if (info->l4) {
        require(info->l4_off < info->payload_off && info->payload_off <= info->ip_end);
    }
}

static void check_tunnel(uint8_t *frame, size_t size, const struct eth_info *info,
                         bool headers_only)
{
    struct eth_tunnel t;

    if (!(headers_only ? eth_tunnel_parse_headers(frame, info, NULL, &t)
                       : eth_tunnel_parse(frame, info, NULL, &t))) {
        return;
    }
    require(t.kind != ETH_TUNNEL_NONE && eth_tunnel_possible(info));
    require(info->l3_off <= t.off && t.off <= t.inner_off && t.inner_off <= size);
    require(t.inner.frame_len <= size);
    check_info(&t.inner, t.inner_off, t.inner.frame_len);
    eth_csum_ipv4_ok(frame, &t.inner);
    eth_csum_l4_ok(frame, &t.inner);
}

static void check_eth(const uint8_t *data, size_t size)
{
    uint8_t *frame = malloc(size ? size : 1);
    struct eth_info info;

    memcpy(frame, data, size);
    for (int headers_only = 0; headers_only < 2; headers_only++) {
        bool whole =
            headers_only ? eth_parse_headers(frame, size, &info) : eth_parse(frame, size, &info);

        require(whole == (size >= 14));
        check_info(&info, 0, size);
        check_tunnel(frame, size, &info, headers_only);
        eth_csum_ipv4_ok(frame, &info);
        eth_csum_l4_ok(frame, &info);
    }
    eth_parse(frame, size, &info);
    eth_csum_fill_ipv4(frame, &info);
    eth_csum_fill_l4(frame, &info);
    if (info.ip_version == 4) {
        require(eth_csum_ipv4_ok(frame, &info));
    }
    free(frame);
}

/* Builds the packet again; the result must parse to the same. */
static void check_rebuilt(const struct roce_packet *pkt)
{
    size_t len = roce_frame_len(pkt, pkt->payload_len);
    uint8_t *frame = malloc(len);
    struct roce_packet again;

    memcpy(roce_build(frame, pkt, pkt->payload_len), pkt->payload, pkt->payload_len);
    require(roce_finish(frame, pkt, pkt->payload_len) == len);
    require(roce_parse(frame, len, &again) == ROCE_OK);
    require(again.opcode == pkt->opcode && again.psn == pkt->psn && again.dest_qp == pkt->dest_qp &&
            again.payload_len == pkt->payload_len &&
            memcmp(again.payload, pkt->payload, pkt->payload_len) == 0);
    free(frame);
}

static void check_roce(const uint8_t *data, size_t size)
{
    static struct roce_last last; /* the previous input's packet */
    uint8_t *frame = malloc(size ? size : 1);
    struct roce_packet pkt;
    enum roce_verdict verdict;

    memcpy(frame, data, size);
    verdict = roce_parse(frame, size, &pkt);
    if (verdict == ROCE_OK || verdict == ROCE_BAD_ICRC) {
        require(pkt.payload >= frame && pkt.payload_len <= size &&
                (size_t)(pkt.payload - frame) + pkt.payload_len + 4 <= size);
        check_rebuilt(&pkt);
    }
    /* A frame that came without an ICRC has the right one once it is filled in; the rest is
     * unchanged. */
    verdict = roce_parse_unchecked(frame, size, &pkt);
    require(roce_parse_next(frame, size, &last) == verdict);
    require(verdict != ROCE_OK || (last.pkt.payload == pkt.payload && last.pkt.psn == pkt.psn));
    roce_fill_icrc(frame, size);
    require(verdict == ROCE_OK ? roce_parse(frame, size, &pkt) == ROCE_OK
                               : memcmp(frame, data, size) == 0);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 10240) {
        return 0;
    }
    check_eth(data, size);
    check_roce(data, size);
    return 0;
}
