/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The default addresses of hosts, and the convention that joins MAC and IPv4 addresses.
 *
 * Host number N has the IPv4 address 10.0.0.N, if it has no other. The numbers 255 and more
 * continue with 10.0.1.1. The MAC address of an IPv4 address is 02:68 and its four bytes.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_ADDRESSES_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* IPv4 addresses are in host byte order. */
uint32_t hv_ipv4_of_host(unsigned host);

/* The number of the host whose default address this is. 0: no host's. */
unsigned hv_host_of_ipv4(uint32_t ipv4);

/* The MAC address of an IPv4 address, by the convention above; and the other way round. False: the
 * MAC address follows from no IPv4 address. */
void hv_mac_of_ipv4(uint32_t ipv4, uint8_t mac[6]);
bool hv_ipv4_of_mac(const uint8_t mac[6], uint32_t *ipv4);

/* Changes an address to the address of the device that is `index` devices later. In a MAC address,
 * only the last three bytes are counted up, because the first three belong to the manufacturer
 * (IEEE 802). False: there is no such address. */
bool hv_ipv4_advance(uint32_t *ipv4, unsigned index);
bool hv_mac_advance(uint8_t mac[6], unsigned index);

#endif
