/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds the HCA's network devices to the machine's interfaces: getifaddrs(), and the functions that
 * find an interface by name or number. A list has the machine's entries first. The HCA's entries
 * follow in a block of their own, which is remembered until the list is freed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"
#include "guest-lib/verbs/preload/tree.h"

#define FUNCTIONS(X)                                                                               \
    X(getifaddrs)                                                                                  \
    X(freeifaddrs)                                                                                 \
    X(if_nametoindex)                                                                              \
    X(if_indextoname)
REAL_TABLE(FUNCTIONS)

#define FLAGS (IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST | 1u << 16) /* IFF_LOWER_UP */

union ifaddrs_address {
    struct sockaddr any;
    struct sockaddr_ll link;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* One entry of the list. */
struct ifaddrs_entry {
    struct ifaddrs ifa;
    union ifaddrs_address addr, mask, broadcast;
};

enum {
    IFADDRS_LINK,
    IFADDRS_IPV4,
    IFADDRS_IPV6,
    IFADDRS_ENTRIES
};

struct ifaddrs_device {
    struct ifaddrs_entry entry[IFADDRS_ENTRIES];
    char name[IFNAMSIZ];
    struct rtnl_link_stats stats;
};

struct ifaddrs_block {
    struct ifaddrs_block *next;
    struct ifaddrs_device device[];
};

static pthread_mutex_t ifaddrs_lock = PTHREAD_MUTEX_INITIALIZER; /* around blocks */
static struct ifaddrs_block *ifaddrs_blocks;

/* -- the HCA's entries ------------------------------------------------------------------------- */

static void ifaddrs_fill_link(struct ifaddrs_entry *entry, unsigned index,
                              const struct hv_device_facts *facts)
{
    entry->addr.link = (struct sockaddr_ll){.sll_family = AF_PACKET,
                                            .sll_ifindex = (int)index,
                                            .sll_hatype = ARPHRD_ETHER,
                                            .sll_halen = sizeof(facts->mac)};
    entry->broadcast.link = entry->addr.link;
    memcpy(entry->addr.link.sll_addr, facts->mac, sizeof(facts->mac));
    memset(entry->broadcast.link.sll_addr, 0xff, sizeof(facts->mac));
    entry->ifa.ifa_broadaddr = &entry->broadcast.any;
}

static void ifaddrs_fill_ipv4(struct ifaddrs_entry *entry, const struct hv_device_facts *facts)
{
    uint32_t mask = UINT32_MAX << (32 - TREE_PREFIX_LEN);

    entry->addr.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(facts->ipv4)}};
    entry->mask.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(mask)}};
    entry->broadcast.in =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(facts->ipv4 | ~mask)}};
    entry->ifa.ifa_netmask = &entry->mask.any;
    entry->ifa.ifa_broadaddr = &entry->broadcast.any;
}

/* Fills in the link-local address. */
static void ifaddrs_fill_ipv6(struct ifaddrs_entry *entry, unsigned index,
                              const struct hv_device_facts *facts)
{
    entry->addr.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_scope_id = index};
    entry->mask.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
    memcpy(&entry->addr.in6.sin6_addr, facts->gid[0], sizeof(facts->gid[0]));
    memset(&entry->mask.in6.sin6_addr, 0xff, 8);
    entry->ifa.ifa_netmask = &entry->mask.any;
}

static void ifaddrs_fill(struct ifaddrs_device *device, unsigned i,
                         const struct hv_device_facts *facts)
{
    snprintf(device->name, sizeof(device->name), TREE_NETDEV "%u", i);
    for (unsigned n = 0; n < IFADDRS_ENTRIES; n++) {
        device->entry[n].ifa = (struct ifaddrs){
            .ifa_name = device->name, .ifa_flags = FLAGS, .ifa_addr = &device->entry[n].addr.any};
    }
    ifaddrs_fill_link(&device->entry[IFADDRS_LINK], TREE_IFINDEX + i, facts);
    device->entry[IFADDRS_LINK].ifa.ifa_data = &device->stats;
    ifaddrs_fill_ipv4(&device->entry[IFADDRS_IPV4], facts);
    ifaddrs_fill_ipv6(&device->entry[IFADDRS_IPV6], TREE_IFINDEX + i, facts);
}

/* Links the entries in the C library's order: first the links, then the addresses. */
static void ifaddrs_chain(struct ifaddrs_block *block, unsigned count)
{
    struct ifaddrs *last = NULL;

    for (unsigned n = 0; n < IFADDRS_ENTRIES; n++) {
        for (unsigned i = 0; i < count; i++) {
            struct ifaddrs *next = &block->device[i].entry[n].ifa;

            if (last) {
                last->ifa_next = next;
            }
            last = next;
        }
    }
}

PRELOAD_SLOW static struct ifaddrs_block *ifaddrs_make(void)
{
    struct ifaddrs_block *block;
    struct hv_facts facts;
    unsigned count = 0;

    if (!self_look(&facts)) {
        return NULL;
    }
    block = calloc(1, sizeof(*block) + facts.count * sizeof(block->device[0]));
    for (unsigned i = 0; block && i < facts.count; i++) {
        if (hv_facts_has(&facts, i)) {
            ifaddrs_fill(&block->device[count++], i, &facts.device[i]);
        }
    }
    if (!count) {
        free(block);
        return NULL;
    }
    ifaddrs_chain(block, count);
    return block;
}

static struct ifaddrs *ifaddrs_first(struct ifaddrs_block *block)
{
    return &block->device[0].entry[0].ifa;
}

/* -- the list ----------------------------------------------------------------------------------
 */

PRELOAD_EXPORT int getifaddrs(struct ifaddrs **list)
{
    int err = REAL(getifaddrs)(list);
    struct ifaddrs_block *block = err ? NULL : ifaddrs_make();
    struct ifaddrs **end = list;

    if (!block) {
        return err;
    }
    while (*end) {
        end = &(*end)->ifa_next;
    }
    *end = ifaddrs_first(block);
    pthread_mutex_lock(&ifaddrs_lock);
    block->next = ifaddrs_blocks;
    ifaddrs_blocks = block;
    pthread_mutex_unlock(&ifaddrs_lock);
    return 0;
}

/* Finds the block whose first entry this is, and forgets it. With the lock. */
static struct ifaddrs_block *ifaddrs_take(const struct ifaddrs *ifa)
{
    for (struct ifaddrs_block **at = &ifaddrs_blocks; *at; at = &(*at)->next) {
        struct ifaddrs_block *block = *at;

        if (ifaddrs_first(block) == ifa) {
            *at = block->next;
            return block;
        }
    }
    return NULL;
}

PRELOAD_EXPORT void freeifaddrs(struct ifaddrs *list)
{
    struct ifaddrs_block *block = NULL;

    pthread_mutex_lock(&ifaddrs_lock);
    for (struct ifaddrs **at = &list; *at && !block; at = &(*at)->ifa_next) {
        block = ifaddrs_take(*at);
        if (block) {
            *at = NULL;
            break;
        }
    }
    pthread_mutex_unlock(&ifaddrs_lock);
    free(block);
    if (list) {
        REAL(freeifaddrs)(list);
    }
}

/* Whether the address is the machine's own, or one that the machine reaches by itself. */
static bool ifaddrs_covers(const struct ifaddrs *ifa, uint32_t ipv4)
{
    struct sockaddr_in addr, mask;

    if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != AF_INET) {
        return false;
    }
    memcpy(&addr, ifa->ifa_addr, sizeof(addr));
    mask.sin_addr.s_addr = UINT32_MAX;
    if (ifa->ifa_netmask) {
        memcpy(&mask, ifa->ifa_netmask, sizeof(mask));
    }
    return !((addr.sin_addr.s_addr ^ htonl(ipv4)) & mask.sin_addr.s_addr);
}

bool ifaddrs_is_machines(uint32_t ipv4)
{
    struct ifaddrs *list = NULL;
    bool is = false;

    if (REAL(getifaddrs)(&list)) {
        return false;
    }
    for (const struct ifaddrs *ifa = list; !is && ifa; ifa = ifa->ifa_next) {
        is = ifaddrs_covers(ifa, ipv4);
    }
    REAL(freeifaddrs)(list);
    return is;
}

/* -- by name and number ------------------------------------------------------------------------
 */

/* Whether there is an HCA with this number. */
PRELOAD_SLOW static bool ifaddrs_has(unsigned i)
{
    struct hv_facts facts;

    return i < HV_FACTS_DEVICES && self_look(&facts) && hv_facts_has(&facts, i);
}

PRELOAD_EXPORT unsigned if_nametoindex(const char *name)
{
    unsigned i;
    char end;

    if (!strncmp(name, TREE_NETDEV, strlen(TREE_NETDEV)) &&
        sscanf(name, TREE_NETDEV "%2u%c", &i, &end) == 1 && ifaddrs_has(i)) {
        return TREE_IFINDEX + i;
    }
    return REAL(if_nametoindex)(name);
}

PRELOAD_EXPORT char *if_indextoname(unsigned index, char name[IF_NAMESIZE])
{
    if (index >= TREE_IFINDEX && ifaddrs_has(index - TREE_IFINDEX)) {
        snprintf(name, IFNAMSIZ, TREE_NETDEV "%u", index - TREE_IFINDEX);
        return name;
    }
    return REAL(if_indextoname)(index, name);
}

/* -- the process -------------------------------------------------------------------------------
 */

static void ifaddrs_before_fork(void)
{
    pthread_mutex_lock(&ifaddrs_lock);
}

static void ifaddrs_after_fork(void)
{
    pthread_mutex_unlock(&ifaddrs_lock);
}

__attribute__((constructor)) static void ifaddrs_begin(void)
{
    pthread_atfork(ifaddrs_before_fork, ifaddrs_after_fork, ifaddrs_after_fork);
}
