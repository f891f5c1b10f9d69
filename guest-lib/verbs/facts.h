/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The facts about this process's HCAs that programs look for outside the verbs library.
 * libibverbs.so.1 knows them; libhcasim.so (guest-lib/verbs/preload) shows them as the kernel
 * would, in sysfs and elsewhere.
 *
 * The preloaded library has one function, which libibverbs.so.1 calls when it is loaded. So
 * libibverbs.so.1 exports no symbol of its own.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_FACTS_H
#define HCASIM_GUEST_LIB_VERBS_FACTS_H

#include <endian.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HV_FACTS_DEVICES   16
#define HV_FACTS_ADDRESSES 2
#define HV_FACTS_GIDS      4 /* the addresses, for RoCE v2; again, for RoCE v1 */
/* The interface index of the first device, higher than any on a real machine; the others follow. */
#define HV_FACTS_IFINDEX 0xca0000u

struct hv_device_facts {
    uint8_t mac[6];
    uint32_t ipv4; /* host byte order */
    unsigned mtu;
    uint8_t node_guid[8];
    uint8_t gid[HV_FACTS_ADDRESSES][16];
    uint16_t vendor, device, subsys_vendor, subsys;
    uint8_t revision;
    uint64_t bar_size;               /* of BAR0, bytes */
    unsigned link_speed, link_width; /* PCI Express: generation, lanes */
    uint32_t mbps;                   /* of the port */
    uint8_t ib_width, ib_speed;      /* as in ibv_port_attr.active_width and active_speed */
    char firmware[24], board[24];
};

struct hv_facts {
    /* the process that is the host on the wire: this process, or the one that forked it. 0: none
     * yet; the facts are then what they would be if this process became a host now */
    pid_t host;
    unsigned count;
    uint32_t removed; /* a bit for each device that was removed */
    struct hv_device_facts device[HV_FACTS_DEVICES];
};

static inline bool hv_facts_has(const struct hv_facts *facts, unsigned device)
{
    return device < facts->count && !(facts->removed >> device & 1);
}

struct hv_beside_ops {
    /* Fills *facts. False: the configuration is refused. Neither makes the process a host nor opens
     * a device. */
    bool (*look)(struct hv_facts *facts);
    /* Whether the address, in host byte order, belongs to the number of a host that is on the wire
     * now. */
    bool (*is_peer)(uint32_t ipv4);
    /* sigaction(2) for a signal that reports faults: the HCA's own faults do not reach the
     * program. */
    bool (*sigaction)(int signal, const struct sigaction *action, struct sigaction *old);
    /* Memory of the process has changed: pages of the range were unmapped, replaced, dropped, moved
     * or protected. Takes no lock and does not wait. */
    void (*memory_changed)(uint64_t start, uint64_t len);
};

/* The function that libhcasim.so has. */
#define HV_BESIDE_NAME "hcasim_beside"
typedef void hv_beside_fn(const struct hv_beside_ops *ops);

#endif
