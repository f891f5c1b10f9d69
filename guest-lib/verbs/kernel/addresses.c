/* SPDX-License-Identifier: BSD-2-Clause */
/* See guest-lib/verbs/kernel/addresses.h. */
#include "guest-lib/verbs/kernel/addresses.h"
#include "wire/open.h"

enum {
    PREFIX_0 = 0x02, /* the first bytes of a MAC address: locally administered */
    PREFIX_1 = 0x68,
    HOSTS = 254, /* in a network of 256 addresses */

    NIC_MAX = 0xffffff, /* the last three bytes of a MAC address */
};

/* 10.0.0.1 to 10.0.0.254, 10.0.1.1, ... */
uint32_t hv_ipv4_of_host(unsigned host)
{
    return 10u << 24 | (host - 1) / HOSTS << 8 | ((host - 1) % HOSTS + 1);
}

unsigned hv_host_of_ipv4(uint32_t ipv4)
{
    uint32_t host = (ipv4 >> 8 & 0xffff) * HOSTS + (ipv4 & 0xff);

    return host && host <= WIRE_NUMBER_MAX && hv_ipv4_of_host(host) == ipv4 ? host : 0;
}

void hv_mac_of_ipv4(uint32_t ipv4, uint8_t mac[6])
{
    mac[0] = PREFIX_0;
    mac[1] = PREFIX_1;
    for (int i = 0; i < 4; i++) {
        mac[2 + i] = (uint8_t)(ipv4 >> (24 - 8 * i));
    }
}

bool hv_ipv4_of_mac(const uint8_t mac[6], uint32_t *ipv4)
{
    *ipv4 = (uint32_t)mac[2] << 24 | (uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5];
    return mac[0] == PREFIX_0 && mac[1] == PREFIX_1;
}

bool hv_ipv4_advance(uint32_t *ipv4, unsigned index)
{
    *ipv4 += index;
    return *ipv4 >= index;
}

bool hv_mac_advance(uint8_t mac[6], unsigned index)
{
    uint32_t nic = ((uint32_t)mac[3] << 16 | (uint32_t)mac[4] << 8 | mac[5]) + index;

    mac[3] = (uint8_t)(nic >> 16);
    mac[4] = (uint8_t)(nic >> 8);
    mac[5] = (uint8_t)nic;
    return nic <= NIC_MAX;
}
