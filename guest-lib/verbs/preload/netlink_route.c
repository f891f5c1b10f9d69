/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Netlink of family ROUTE: adds the HCA's network devices to the links, their addresses to the
 * addresses, and their subnets to the routes. What the kernel says of the machine's own interfaces
 * is unchanged.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "guest-lib/verbs/preload/netlink.h"
#include "guest-lib/verbs/preload/tree.h"

#define FLAGS         (IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST | IFF_LOWER_UP)
#define FOREVER       UINT32_MAX /* lifetime of an address, seconds */
#define OPERATIONAL   6          /* IF_OPER_UP */
#define LOOPBACK      1          /* interface index of `lo` */
#define METRIC_OF_SIX 256        /* of the kernel's own IPv6 routes */
#define PREFIX_OF_SIX 64

static const uint8_t route_link_local[16] = {0xfe, 0x80};

static bool route_is_ours(int index, const struct hv_facts *facts)
{
    return index >= (int)TREE_IFINDEX && hv_facts_has(facts, (unsigned)index - TREE_IFINDEX);
}

static uint16_t route_flags(const struct nlmsghdr *request)
{
    return netlink_is_dump(request) ? NLM_F_MULTI : 0;
}

/* -- links -------------------------------------------------------------------------------------
 */

static void route_put_link(const struct nlmsghdr *request, struct netlink_buf *answer,
                           uint8_t family, unsigned index, const struct hv_device_facts *facts)
{
    static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const struct rtnl_link_stats none;
    static const struct rtnl_link_stats64 none64;
    const struct ifinfomsg header = {.ifi_family = family,
                                     .ifi_type = ARPHRD_ETHER,
                                     .ifi_index = (int)(TREE_IFINDEX + index),
                                     .ifi_flags = FLAGS};
    char name[IFNAMSIZ], slot[24];

    snprintf(name, sizeof(name), TREE_NETDEV "%u", index);
    snprintf(slot, sizeof(slot), TREE_PCI_SLOT, index);
    netlink_begin(answer, request, RTM_NEWLINK, route_flags(request), &header, sizeof(header));
    netlink_put_string(answer, IFLA_IFNAME, name);
    netlink_put_u32(answer, IFLA_TXQLEN, 1000);
    netlink_put_u8(answer, IFLA_OPERSTATE, OPERATIONAL);
    netlink_put_u8(answer, IFLA_LINKMODE, 0);
    netlink_put_u32(answer, IFLA_MTU, facts->mtu);
    netlink_put_u32(answer, IFLA_GROUP, 0);
    netlink_put_u32(answer, IFLA_PROMISCUITY, 0);
    netlink_put_u32(answer, IFLA_NUM_TX_QUEUES, 1);
    netlink_put_u32(answer, IFLA_NUM_RX_QUEUES, 1);
    netlink_put_u8(answer, IFLA_CARRIER, 1);
    netlink_put_string(answer, IFLA_QDISC, "noqueue");
    netlink_put(answer, IFLA_ADDRESS, facts->mac, sizeof(facts->mac));
    netlink_put(answer, IFLA_BROADCAST, everybody, sizeof(everybody));
    netlink_put(answer, IFLA_STATS64, &none64, sizeof(none64));
    netlink_put(answer, IFLA_STATS, &none, sizeof(none));
    netlink_put_string(answer, IFLA_PARENT_DEV_NAME, slot);
    netlink_put_string(answer, IFLA_PARENT_DEV_BUS_NAME, "pci");
}

/* Whether the request has one of these filters. The HCA's devices match none of them. */
static bool route_has_filter(const struct nlmsghdr *request)
{
    static const uint16_t filters[] = {IFLA_MASTER, IFLA_LINKINFO, IFLA_TARGET_NETNSID};
    size_t len;

    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        if (netlink_attribute(request, sizeof(struct ifinfomsg), filters[i], 0, &len)) {
            return true;
        }
    }
    return false;
}

/* The number of the HCA's interface with this name. -1: the HCA has none. */
static int route_index_of(const char *name, size_t len, const struct hv_facts *facts)
{
    char ours[IFNAMSIZ];

    for (unsigned i = 0; i < facts->count; i++) {
        snprintf(ours, sizeof(ours), TREE_NETDEV "%u", i);
        if (hv_facts_has(facts, i) && strnlen(name, len) == strlen(ours) &&
            !memcmp(name, ours, strlen(ours))) {
            return (int)(TREE_IFINDEX + i);
        }
    }
    return -1;
}

static enum netlink_part route_tell_links(const struct nlmsghdr *request,
                                          const struct hv_facts *facts, struct netlink_buf *answer)
{
    struct ifinfomsg header;
    int index = 0;
    size_t len;

    memcpy(&header, NLMSG_DATA(request), sizeof(header));
    if (netlink_is_dump(request)) {
        if (header.ifi_family == AF_BRIDGE || route_has_filter(request)) {
            return NETLINK_NOTHING;
        }
        for (unsigned i = 0; i < facts->count; i++) {
            if (hv_facts_has(facts, i)) {
                route_put_link(request, answer,
                               header.ifi_family == AF_INET6 ? AF_INET6 : AF_UNSPEC, i,
                               &facts->device[i]);
            }
        }
        return NETLINK_BESIDE;
    }
    index = header.ifi_index;
    for (unsigned i = 0; !index && i < 2; i++) {
        const char *name =
            netlink_attribute(request, sizeof(header), i ? IFLA_ALT_IFNAME : IFLA_IFNAME, 1, &len);

        index = name ? route_index_of(name, len, facts) : 0;
        index = index < 0 ? 0 : index;
    }
    if (!route_is_ours(index, facts)) {
        return NETLINK_NOTHING;
    }
    route_put_link(request, answer, AF_UNSPEC, (unsigned)index - TREE_IFINDEX,
                   &facts->device[(unsigned)index - TREE_IFINDEX]);
    return NETLINK_INSTEAD;
}

/* -- addresses ---------------------------------------------------------------------------------
 */

static void route_put_lifetime(struct netlink_buf *answer)
{
    const struct ifa_cacheinfo lifetime = {.ifa_prefered = FOREVER, .ifa_valid = FOREVER};

    netlink_put(answer, IFA_CACHEINFO, &lifetime, sizeof(lifetime));
    netlink_put_u32(answer, IFA_FLAGS, IFA_F_PERMANENT);
}

static void route_put_ipv4(const struct nlmsghdr *request, struct netlink_buf *answer,
                           unsigned index, const struct hv_device_facts *facts)
{
    const struct ifaddrmsg header = {.ifa_family = AF_INET,
                                     .ifa_prefixlen = TREE_PREFIX_LEN,
                                     .ifa_flags = IFA_F_PERMANENT,
                                     .ifa_scope = RT_SCOPE_UNIVERSE,
                                     .ifa_index = TREE_IFINDEX + index};
    uint32_t mask = UINT32_MAX << (32 - TREE_PREFIX_LEN);
    char name[IFNAMSIZ];

    snprintf(name, sizeof(name), TREE_NETDEV "%u", index);
    netlink_begin(answer, request, RTM_NEWADDR, route_flags(request), &header, sizeof(header));
    netlink_put_u32(answer, IFA_ADDRESS, htonl(facts->ipv4));
    netlink_put_u32(answer, IFA_LOCAL, htonl(facts->ipv4));
    netlink_put_u32(answer, IFA_BROADCAST, htonl(facts->ipv4 | ~mask));
    netlink_put_string(answer, IFA_LABEL, name);
    route_put_lifetime(answer);
}

static void route_put_ipv6(const struct nlmsghdr *request, struct netlink_buf *answer,
                           unsigned index, const struct hv_device_facts *facts)
{
    const struct ifaddrmsg header = {.ifa_family = AF_INET6,
                                     .ifa_prefixlen = PREFIX_OF_SIX,
                                     .ifa_flags = IFA_F_PERMANENT,
                                     .ifa_scope = RT_SCOPE_LINK,
                                     .ifa_index = TREE_IFINDEX + index};

    netlink_begin(answer, request, RTM_NEWADDR, route_flags(request), &header, sizeof(header));
    netlink_put(answer, IFA_ADDRESS, facts->gid[0], sizeof(facts->gid[0]));
    route_put_lifetime(answer);
}

/* If the request has an interface index of the HCA, only this library answers: the kernel would
 * refuse the index under NETLINK_GET_STRICT_CHK, and otherwise ignore it. If it has another index,
 * the HCA's addresses are not added. */
static enum netlink_part route_tell_addresses(const struct nlmsghdr *request,
                                              const struct hv_facts *facts,
                                              struct netlink_buf *answer)
{
    struct ifaddrmsg header;
    bool one;

    memcpy(&header, NLMSG_DATA(request), sizeof(header));
    one = route_is_ours((int)header.ifa_index, facts);
    if (!netlink_is_dump(request) || (header.ifa_index && !one)) {
        return NETLINK_NOTHING;
    }
    for (unsigned i = 0; i < facts->count; i++) {
        if (!hv_facts_has(facts, i) || (one && header.ifa_index != TREE_IFINDEX + i)) {
            continue;
        }
        if (header.ifa_family == AF_UNSPEC || header.ifa_family == AF_INET) {
            route_put_ipv4(request, answer, i, &facts->device[i]);
        }
        if (header.ifa_family == AF_UNSPEC || header.ifa_family == AF_INET6) {
            route_put_ipv6(request, answer, i, &facts->device[i]);
        }
    }
    if (one) {
        netlink_done(answer, request);
    }
    return one ? NETLINK_INSTEAD : NETLINK_BESIDE;
}

/* -- routes ------------------------------------------------------------------------------------
 */

static void route_begin(const struct nlmsghdr *request, struct netlink_buf *answer,
                        struct rtmsg header)
{
    netlink_begin(answer, request, RTM_NEWROUTE, route_flags(request), &header, sizeof(header));
    netlink_put_u32(answer, RTA_TABLE, header.rtm_table);
}

static void route_put_subnet(const struct nlmsghdr *request, struct netlink_buf *answer,
                             unsigned index, uint32_t ipv4)
{
    route_begin(request, answer,
                (struct rtmsg){.rtm_family = AF_INET,
                               .rtm_dst_len = TREE_PREFIX_LEN,
                               .rtm_table = RT_TABLE_MAIN,
                               .rtm_protocol = RTPROT_KERNEL,
                               .rtm_scope = RT_SCOPE_LINK,
                               .rtm_type = RTN_UNICAST});
    netlink_put_u32(answer, RTA_DST, htonl(ipv4 & UINT32_MAX << (32 - TREE_PREFIX_LEN)));
    netlink_put_u32(answer, RTA_PREFSRC, htonl(ipv4));
    netlink_put_u32(answer, RTA_OIF, TREE_IFINDEX + index);
}

static void route_put_link_local(const struct nlmsghdr *request, struct netlink_buf *answer,
                                 unsigned index)
{
    route_begin(request, answer,
                (struct rtmsg){.rtm_family = AF_INET6,
                               .rtm_dst_len = PREFIX_OF_SIX,
                               .rtm_table = RT_TABLE_MAIN,
                               .rtm_protocol = RTPROT_KERNEL,
                               .rtm_type = RTN_UNICAST});
    netlink_put(answer, RTA_DST, route_link_local, sizeof(route_link_local));
    netlink_put_u32(answer, RTA_PRIORITY, METRIC_OF_SIX);
    netlink_put_u32(answer, RTA_OIF, TREE_IFINDEX + index);
}

static uint32_t route_get_u32(const struct nlmsghdr *request, size_t header_len, uint16_t type)
{
    uint32_t value = 0;
    size_t len;
    const void *found = netlink_attribute(request, header_len, type, sizeof(value), &len);

    if (found) {
        memcpy(&value, found, sizeof(value));
    }
    return value;
}

static enum netlink_part route_dump_routes(const struct nlmsghdr *request,
                                           const struct rtmsg *header, const struct hv_facts *facts,
                                           struct netlink_buf *answer)
{
    uint32_t table = route_get_u32(request, sizeof(*header), RTA_TABLE);
    uint32_t oif = route_get_u32(request, sizeof(*header), RTA_OIF);
    bool one = route_is_ours((int)oif, facts);

    table = table ? table : header->rtm_table;
    if ((table != RT_TABLE_UNSPEC && table != RT_TABLE_MAIN) || (oif && !one) ||
        header->rtm_flags & RTM_F_CLONED) {
        return NETLINK_NOTHING;
    }
    for (unsigned i = 0; i < facts->count; i++) {
        if (!hv_facts_has(facts, i) || (one && oif != TREE_IFINDEX + i)) {
            continue;
        }
        if (header->rtm_family == AF_UNSPEC || header->rtm_family == AF_INET) {
            route_put_subnet(request, answer, i, facts->device[i].ipv4);
        }
        if (header->rtm_family == AF_UNSPEC || header->rtm_family == AF_INET6) {
            route_put_link_local(request, answer, i);
        }
    }
    if (one) {
        netlink_done(answer, request);
    }
    return one ? NETLINK_INSTEAD : NETLINK_BESIDE;
}

/* The device in whose subnet the address is; if there is none, the first device, because the
 * address belongs to a host. */
static unsigned route_device_for(uint32_t ipv4, const struct hv_facts *facts)
{
    for (unsigned i = 0; i < facts->count; i++) {
        if (!((facts->device[i].ipv4 ^ ipv4) & UINT32_MAX << (32 - TREE_PREFIX_LEN))) {
            return i;
        }
    }
    return 0;
}

static bool route_is_own(uint32_t ipv4, const struct hv_facts *facts)
{
    for (unsigned i = 0; i < facts->count; i++) {
        if (facts->device[i].ipv4 == ipv4) {
            return true;
        }
    }
    return false;
}

static enum netlink_part route_tell_routes(const struct nlmsghdr *request,
                                           const struct hv_facts *facts, struct netlink_buf *answer)
{
    struct rtmsg header;
    uint32_t ipv4;
    unsigned index;
    bool own;

    memcpy(&header, NLMSG_DATA(request), sizeof(header));
    if (netlink_is_dump(request)) {
        return route_dump_routes(request, &header, facts, answer);
    }
    ipv4 = ntohl(route_get_u32(request, sizeof(header), RTA_DST));
    if (header.rtm_family != AF_INET || !sockets_leads_to_host(ipv4)) {
        return NETLINK_NOTHING;
    }
    own = route_is_own(ipv4, facts);
    index = route_device_for(ipv4, facts);
    route_begin(request, answer,
                (struct rtmsg){.rtm_family = AF_INET,
                               .rtm_dst_len = 32,
                               .rtm_table = own ? RT_TABLE_LOCAL : RT_TABLE_MAIN,
                               .rtm_scope = RT_SCOPE_UNIVERSE,
                               .rtm_type = own ? RTN_LOCAL : RTN_UNICAST,
                               .rtm_flags = RTM_F_CLONED});
    netlink_put_u32(answer, RTA_DST, htonl(ipv4));
    netlink_put_u32(answer, RTA_OIF, own ? LOOPBACK : TREE_IFINDEX + index);
    netlink_put_u32(answer, RTA_PREFSRC, htonl(own ? ipv4 : facts->device[index].ipv4));
    return NETLINK_INSTEAD;
}

/* -- requests ----------------------------------------------------------------------------------
 */

static const struct {
    uint16_t type;
    size_t header_len;
    enum netlink_part (*tell)(const struct nlmsghdr *request, const struct hv_facts *facts,
                              struct netlink_buf *answer);
} route_requests[] = {
    {RTM_GETLINK, sizeof(struct ifinfomsg), route_tell_links},
    {RTM_GETADDR, sizeof(struct ifaddrmsg), route_tell_addresses},
    {RTM_GETROUTE, sizeof(struct rtmsg), route_tell_routes},
};

bool netlink_route_asks(const struct nlmsghdr *request)
{
    for (size_t i = 0; i < sizeof(route_requests) / sizeof(route_requests[0]); i++) {
        if (route_requests[i].type == request->nlmsg_type) {
            return true;
        }
    }
    return false;
}

enum netlink_part netlink_route_answer(const struct nlmsghdr *request, const struct hv_facts *facts,
                                       struct netlink_buf *answer)
{
    /* Some programs dump with the smallest possible header, a family. */
    struct {
        struct nlmsghdr header;
        uint8_t rest[sizeof(struct ifinfomsg)];
    } padded = {0};

    for (size_t i = 0; i < sizeof(route_requests) / sizeof(route_requests[0]); i++) {
        if (route_requests[i].type != request->nlmsg_type) {
            continue;
        }
        if (request->nlmsg_len < NLMSG_LENGTH(route_requests[i].header_len)) {
            if (!netlink_is_dump(request) || request->nlmsg_len <= NLMSG_HDRLEN) {
                return NETLINK_NOTHING;
            }
            memcpy(&padded, request, request->nlmsg_len);
            padded.header.nlmsg_len = (uint32_t)NLMSG_LENGTH(route_requests[i].header_len);
            request = &padded.header;
        }
        return route_requests[i].tell(request, facts, answer);
    }
    return NETLINK_NOTHING;
}
