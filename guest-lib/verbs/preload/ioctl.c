/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ioctl() about an interface (netdevice(7)), for the HCA's interfaces: addresses, MTU, number, and
 * what ethtool queries: driver, speed. Nothing can be set, because the kernel does not have such an
 * interface.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"
#include "guest-lib/verbs/preload/tree.h"

#define FLAGS        (IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST)
#define MODE_WORDS   4 /* of a mask of link modes, 32 bits each */
#define DRIVER       "mlx5_core"

#define FUNCTIONS(X) X(ioctl)
REAL_TABLE(FUNCTIONS)

struct ioctl_interface {
    unsigned index;
    struct hv_device_facts facts;
};

/* -- ethtool -----------------------------------------------------------------------------------
 */

static void ioctl_fill_driver(const struct ioctl_interface *netdev, struct ethtool_drvinfo *info)
{
    *info = (struct ethtool_drvinfo){.cmd = info->cmd, .driver = DRIVER};
    snprintf(info->fw_version, sizeof(info->fw_version), "%.12s (%.16s)", netdev->facts.firmware,
             netdev->facts.board);
    snprintf(info->bus_info, sizeof(info->bus_info), TREE_PCI_SLOT, netdev->index);
}

static void ioctl_fill_settings(const struct ioctl_interface *netdev, struct ethtool_cmd *settings)
{
    *settings = (struct ethtool_cmd){
        .cmd = settings->cmd, .duplex = DUPLEX_FULL, .port = PORT_FIBRE, .autoneg = AUTONEG_ENABLE};
    ethtool_cmd_speed_set(settings, netdev->facts.mbps);
}

/* The link mode of a copper cable at the port's speed: a bit number in a mask
 * (mlx5e_build_ptys2ethtool_map()). */
static unsigned ioctl_link_mode(const struct hv_device_facts *facts)
{
    static const struct {
        uint32_t mbps;
        uint8_t ib_width; /* lanes, as in ibv_port_attr.active_width */
        unsigned mode;
    } modes[] = {
        {25000, 1, ETHTOOL_LINK_MODE_25000baseCR_Full_BIT},
        {100000, 16, ETHTOOL_LINK_MODE_100000baseCR2_Full_BIT},
        {400000, 2, ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT},
    };

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (modes[i].mbps == facts->mbps && modes[i].ib_width == facts->ib_width) {
            return modes[i].mode;
        }
    }
    return ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT;
}

/* In its first call a program learns the length of the masks; in the next one it has room for three
 * of them. */
static void ioctl_fill_link_settings(const struct ioctl_interface *netdev,
                                     struct ethtool_link_settings *settings)
{
    unsigned mode = ioctl_link_mode(&netdev->facts);
    int words = settings->link_mode_masks_nwords;
    uint32_t *masks = settings->link_mode_masks;

    *settings =
        (struct ethtool_link_settings){.cmd = settings->cmd, .link_mode_masks_nwords = -MODE_WORDS};
    if (words != MODE_WORDS) {
        return;
    }
    settings->link_mode_masks_nwords = MODE_WORDS;
    settings->speed = netdev->facts.mbps;
    settings->duplex = DUPLEX_FULL;
    settings->port = PORT_FIBRE;
    settings->autoneg = AUTONEG_ENABLE;
    memset(masks, 0, 3 * MODE_WORDS * sizeof(*masks));
    for (int i = 0; i < 3; i++) { /* supported, advertised, the link partner's */
        masks[(unsigned)i * MODE_WORDS + mode / 32] = 1u << mode % 32;
    }
}

/* Returns 0 or an errno. */
static int ioctl_ethtool(const struct ioctl_interface *netdev, void *data)
{
    struct ethtool_value *value = data;
    struct ethtool_perm_addr *address = data;

    if (!data) {
        return EFAULT;
    }
    switch (value->cmd) {
    case ETHTOOL_GDRVINFO:
        ioctl_fill_driver(netdev, data);
        return 0;
    case ETHTOOL_GSET:
        ioctl_fill_settings(netdev, data);
        return 0;
    case ETHTOOL_GLINKSETTINGS:
        ioctl_fill_link_settings(netdev, data);
        return 0;
    case ETHTOOL_GLINK:
        value->data = 1;
        return 0;
    case ETHTOOL_GPERMADDR:
        if (address->size < sizeof(netdev->facts.mac)) {
            return EINVAL;
        }
        address->size = sizeof(netdev->facts.mac);
        memcpy(address->data, netdev->facts.mac, sizeof(netdev->facts.mac));
        return 0;
    default:
        return EOPNOTSUPP;
    }
}

/* -- the interface -----------------------------------------------------------------------------
 */

static void ioctl_fill_ipv4(struct sockaddr *addr, uint32_t ipv4)
{
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(ipv4)}};

    memcpy(addr, &in, sizeof(in));
}

/* Returns 0 or an errno; -1: the kernel must answer. */
static int ioctl_about(const struct ioctl_interface *netdev, unsigned long request,
                       struct ifreq *ifr)
{
    uint32_t mask = UINT32_MAX << (32 - TREE_PREFIX_LEN);

    switch (request) {
    case SIOCGIFADDR:
        ioctl_fill_ipv4(&ifr->ifr_addr, netdev->facts.ipv4);
        return 0;
    case SIOCGIFBRDADDR:
        ioctl_fill_ipv4(&ifr->ifr_broadaddr, netdev->facts.ipv4 | ~mask);
        return 0;
    case SIOCGIFNETMASK:
        ioctl_fill_ipv4(&ifr->ifr_netmask, mask);
        return 0;
    case SIOCGIFFLAGS:
        ifr->ifr_flags = FLAGS;
        return 0;
    case SIOCGIFMETRIC:
        ifr->ifr_metric = 0;
        return 0;
    case SIOCGIFMTU:
        ifr->ifr_mtu = (int)netdev->facts.mtu;
        return 0;
    case SIOCGIFINDEX:
        ifr->ifr_ifindex = (int)(TREE_IFINDEX + netdev->index);
        return 0;
    case SIOCGIFTXQLEN:
        ifr->ifr_qlen = 1000;
        return 0;
    case SIOCGIFHWADDR:
        memset(&ifr->ifr_hwaddr, 0, sizeof(ifr->ifr_hwaddr));
        ifr->ifr_hwaddr.sa_family = ARPHRD_ETHER;
        memcpy(ifr->ifr_hwaddr.sa_data, netdev->facts.mac, sizeof(netdev->facts.mac));
        return 0;
    case SIOCETHTOOL:
        return ioctl_ethtool(netdev, ifr->ifr_data);
    default:
        return -1;
    }
}

/* Whether the name or the number belongs to an interface of the HCA. */
static bool ioctl_find(const struct ifreq *ifr, bool by_number, struct ioctl_interface *netdev)
{
    struct hv_facts facts;
    char name[IFNAMSIZ];

    if (!self_look(&facts)) {
        return false;
    }
    for (unsigned i = 0; i < facts.count; i++) {
        snprintf(name, sizeof(name), TREE_NETDEV "%u", i);
        if (hv_facts_has(&facts, i) &&
            (by_number ? ifr->ifr_ifindex == (int)(TREE_IFINDEX + i)
                       : !strncmp(ifr->ifr_name, name, sizeof(ifr->ifr_name)))) {
            netdev->index = i;
            netdev->facts = facts.device[i];
            return true;
        }
    }
    return false;
}

/* -- the list ----------------------------------------------------------------------------------
 */

/* Adds the HCA's interfaces behind the machine's, as far as there is room; if there is no buffer,
 * computes the room that they need. */
static void ioctl_append(struct ifconf *list, size_t room)
{
    struct hv_facts facts;

    if (!self_look(&facts)) {
        return;
    }
    for (unsigned i = 0; i < facts.count; i++) {
        struct ifreq ifr = {0};

        if (!hv_facts_has(&facts, i)) {
            continue;
        }
        if (list->ifc_buf) {
            if (room - (size_t)list->ifc_len < sizeof(ifr)) {
                return;
            }
            snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), TREE_NETDEV "%u", i);
            ioctl_fill_ipv4(&ifr.ifr_addr, facts.device[i].ipv4);
            memcpy(list->ifc_buf + list->ifc_len, &ifr, sizeof(ifr));
        }
        list->ifc_len += (int)sizeof(ifr);
    }
}

PRELOAD_SLOW static int ioctl_list(int fd, struct ifconf *list)
{
    int room = list ? list->ifc_len : 0, err = REAL(ioctl)(fd, SIOCGIFCONF, list);

    if (!err && list->ifc_len >= 0 && (!list->ifc_buf || list->ifc_len <= room)) {
        ioctl_append(list, (size_t)room);
    }
    return err;
}

/* -- ioctl(2) ----------------------------------------------------------------------------------
 */

static bool ioctl_is_socket(int fd)
{
    socklen_t len = sizeof(int);
    int domain;

    return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
}

PRELOAD_SLOW static int ioctl_interface(int fd, unsigned long request, void *arg)
{
    struct ioctl_interface netdev;
    struct ifreq *ifr = arg;
    int err = errno, answer;

    if (arg && ioctl_is_socket(fd) && ioctl_find(ifr, request == SIOCGIFNAME, &netdev)) {
        if (request == SIOCGIFNAME) {
            snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), TREE_NETDEV "%u", netdev.index);
            answer = 0;
        } else {
            answer = ioctl_about(&netdev, request, ifr);
        }
        if (answer >= 0) {
            errno = answer ? answer : err;
            return answer ? -1 : 0;
        }
    }
    errno = err;
    return REAL(ioctl)(fd, request, arg);
}

/* A quick check. Requests about interfaces have consecutive numbers; most requests with a name are
 * not about the HCA's interfaces. */
static bool ioctl_may_be_ours(unsigned long request, const struct ifreq *ifr)
{
    return request >= SIOCGIFNAME && request <= SIOCETHTOOL && ifr &&
           (request == SIOCGIFNAME || !strncmp(ifr->ifr_name, TREE_NETDEV, strlen(TREE_NETDEV)));
}

PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *arg;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    if (__builtin_expect(request == SIOCGIFCONF, 0)) {
        return ioctl_list(fd, arg);
    }
    return __builtin_expect(request >> 8 == SIOCGIFNAME >> 8, 0) && ioctl_may_be_ours(request, arg)
               ? ioctl_interface(fd, request, arg)
               : REAL(ioctl)(fd, request, arg);
}
