/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process's HCAs are, for programs that look beside the library: libibverbs.so.1 knows
 * it, libhcasim.so (guest-lib/verbs/preload) shows it as the kernel would, in sysfs and elsewhere.
 *
 * The two find each other by one function, which the preloaded library has and libibverbs.so.1
 * calls when it is loaded; so the latter exports nothing of its own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_FACTS_H
#define HCASIM_GUEST_LIB_VERBS_FACTS_H

#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HV_FACTS_DEVICES 16
#define HV_FACTS_GIDS    2
/* The first device's number as a network interface, to which no machine counts; others follow. */
#define HV_FACTS_IFINDEX 0xca0000u

struct hv_device_facts {
    uint8_t mac[6];
    uint32_t ipv4; /* host byte order */
    unsigned mtu;
    uint8_t node_guid[8];
    uint8_t gid[HV_FACTS_GIDS][16];
    uint16_t vendor, device, subsys_vendor, subsys;
    uint8_t revision;
    uint64_t bar_size;               /* of BAR0, bytes */
    unsigned link_speed, link_width; /* PCI Express: generation, lanes */
    uint32_t mbps;                   /* of the port */
    uint8_t ib_width, ib_speed;      /* as ibv_port_attr.active_width and active_speed tell it */
    char firmware[24], board[24];
};

struct hv_facts {
    pid_t host; /* the process that is the host on the wire: this one, or who forked it; 0: none is
                 * yet, and these are the facts if it became one now */
    unsigned count;
    uint32_t removed; /* a bit for each device that there is no more */
    struct hv_device_facts device[HV_FACTS_DEVICES];
};

static inline bool hv_facts_has(const struct hv_facts *facts, unsigned device)
{
    return device < facts->count && !(facts->removed >> device & 1);
}

struct hv_beside_ops {
    /* False: the configuration is refused. Makes nobody a host, opens no device. */
    bool (*look)(struct hv_facts *facts);
    /* Whether the address, in host byte order, is the one that goes with the number of a host that
     * is on the wire now. */
    bool (*is_peer)(uint32_t ipv4);
    /* sigaction(2) of a signal that tells of faults: a fault of the HCA's is not the program's. */
    bool (*sigaction)(int signal, const struct sigaction *action, struct sigaction *old);
};

/* What libhcasim.so has. */
#define HV_BESIDE_NAME "hcasim_beside"
typedef void hv_beside_fn(const struct hv_beside_ops *ops);

#endif
