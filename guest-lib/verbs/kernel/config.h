/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the configuration of the process's devices: environment variables and a key file.
 *
 * The variable HCASIM_NAME has priority over the key NAME of the file that HCASIM_CONFIG names.
 * settings.c lists the settings, their ranges and their defaults.
 *
 * The MAC address that belongs to an IPv4 address is 02:68 and its four bytes. If somebody on the
 * wire has that, it is where the address is, at once; else the wire's hosts are asked
 * (guest-lib/host/neighbours.h).
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_CONFIG_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_CONFIG_H

#include <glib.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include "guest-lib/verbs/kernel/settings.h"

struct inproc_world;
struct wire_port;

#define HV_GIDS           2  /* the link-local one, then IPv4 */
#define HV_FRAME_OVERHEAD 22 /* Ethernet header with a VLAN tag, FCS */

struct hv_port_config {
    char *wire, *capture, *profile; /* the last two may be NULL */
    uint8_t mac[6];
    uint32_t ipv4; /* host byte order */
    unsigned mtu;
    uint64_t memory; /* bytes */
    unsigned responders;
    bool memlock; /* RLIMIT_MEMLOCK counts */
    int log_level;
    bool removes; /* so long after it was opened */
    uint64_t remove_after_ns;
    char *remove_when; /* a file, when it is there; or NULL */
    union ibv_gid gid[HV_GIDS];
    /* of a simulation (hv_config_simulate()), else NULL */
    struct inproc_world *world;
    struct wire_port *port; /* instead of wire; the HCA closes it */
};

/* Reads the configuration, once per process (fork() makes another one), and takes a host number for
 * each device. Returns how many there are and stores their array; 0 with *err. Freed never: devices
 * live as long. */
unsigned hv_config_load(struct hv_port_config **ports, GError **err);
/* Before the first device is opened: a program that has closed all descriptors that it does not
 * know has lost the hosts' numbers. The next load takes some, the same most likely. */
void hv_config_renew(void);

/* What hv_config_load() would store, were it called now for the first time, in HV_MAX_DEVICES
 * ports: takes no number, and makes nobody a host. How many there are, until hv_config_look_end();
 * 0 with *err. */
unsigned hv_config_look(struct hv_port_config *ports, GError **err);
void hv_config_look_end(struct hv_port_config *ports, unsigned count);

/* A port in a world (guest-lib/host/inproc.h), whose environment does not count: the addresses of
 * this host number, but for the MAC address if another is given, the usual MTU and memory, no log.
 */
void hv_config_simulate(struct hv_port_config *config, unsigned host, const uint8_t *mac,
                        struct inproc_world *world, struct wire_port *port);

/* The device's GUID, which is known before it is open; the same as its own (fw/cmd_vport.c). */
__be64 hv_config_guid(const struct hv_port_config *config);

/* The number of the host that has this address for want of another one. 0: none would. */
unsigned hv_config_host_of_ipv4(uint32_t ipv4);

/* The MAC address that belongs to an address. */
void hv_mac_of_ipv4(uint32_t ipv4, uint8_t mac[6]);

#endif
