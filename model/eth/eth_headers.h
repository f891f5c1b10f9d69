/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the headers of a packet that an SQ sends, for the checksums and lengths that the device
 * fills in: those of the packet itself, and those of the packet in its tunnel.
 *
 * The device parses the packet, unless the WQE says where the headers are (software parser: wqe
 * eth_seg.swp_*, which the driver uses for GENEVE).
 */
#ifndef HCASIM_MODEL_ETH_HEADERS_H
#define HCASIM_MODEL_ETH_HEADERS_H

#include "model/eth/eth_priv.h"

struct eth_headers {
    /* A packet that is not there has ip_version 0. */
    struct eth_info outer, inner;
    /* where the options of IP, or its extension headers, end: of the software parser's headers,
     * l4_off may be further behind */
    uint32_t outer_ip_end, inner_ip_end;
};

/* False: the WQE says that headers are where they cannot be. whole: the packet is there with its
 * payload, otherwise only its headers are (eth_parse_headers()). */
bool eth_headers_find(const struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                      const uint8_t *packet, size_t len, bool whole, struct eth_headers *headers);

/* Fills in the checksums that the WQE asks for. Those of headers that are not there are not
 * filled in. False: as eth_headers_find(). */
bool eth_fill_checksums(const struct hca *hca, const struct eth_sq *sq, const struct eth_wqe *wqe,
                        uint8_t *packet, size_t len);

#endif
