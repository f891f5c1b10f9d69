/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the configuration of the process's devices: environment variables and a key file.
 *
 * The variable HCASIM_NAME has priority over the key NAME of the file that HCASIM_CONFIG names.
 * settings.c lists the settings, their ranges and their defaults. HCASIM_RUN is no setting: it
 * names a run, whose processes append to one capture (wire/capture.h).
 *
 * If a host with the MAC address of an IPv4 address (addresses.h) is on the wire, the IPv4 address
 * is there, at once; otherwise the wire's hosts are asked (guest-lib/host/neighbours.h).
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_CONFIG_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_CONFIG_H

#include <glib.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include "guest-lib/verbs/kernel/settings.h"
#include "wire/capture_blocks.h"

struct inproc_world;
struct wire_port;

#define HV_ADDRESSES      2 /* first the link-local GID, then that of the IPv4 address */
#define HV_GIDS           4 /* entries of the GID table: the addresses, for RoCE v2; again, for v1 */
#define HV_FRAME_OVERHEAD 22 /* Ethernet header with a VLAN tag, FCS */

struct hv_port_config {
    char *wire, *capture, *capture_run, *trace_file, *profile; /* all but wire may be NULL */
    char *control; /* the folder of control sockets, or NULL */
    uint8_t mac[6];
    uint32_t ipv4; /* host byte order */
    unsigned mtu;
    uint64_t memory; /* bytes */
    unsigned responders;
    bool memlock; /* RLIMIT_MEMLOCK applies */
    int log_level;
    bool explain; /* error completions, when they are polled */
    bool capture_comments;
    struct capture_ring capture_ring; /* size 0: capture is one file */
    bool removes; /* the device is removed remove_after_ns after it was opened */
    uint64_t remove_after_ns;
    char *faults; /* rules (wire/fault/fault.h), or NULL: it has no faults */
    uint64_t fault_seed, fault_stream;
    char *remove_when; /* the device is removed when this file exists; or NULL */
    union ibv_gid gid[HV_ADDRESSES];
    /* For a simulation (hv_config_simulate()), else NULL. */
    struct inproc_world *world;
    struct wire_port *port; /* used instead of wire; closed by the HCA */
};

/* Reads the configuration, once per process (a child of fork() reads its own), and takes a host
 * number for each device. Stores the array of devices and returns their number; 0 with *err. The
 * array is never freed, because devices are never freed either. */
unsigned hv_config_load(struct hv_port_config **ports, GError **err);
/* To be called before the first device is opened. A program that has closed all descriptors that it
 * does not know has lost its host numbers; then the next load takes numbers again, most likely the
 * same. */
void hv_config_renew(void);

/* Stores in HV_MAX_DEVICES ports what hv_config_load() would return if it were called now for the
 * first time. Takes no number, and does not make the process a host. Returns the number of ports,
 * which are valid until hv_config_look_end(); 0 with *err. */
unsigned hv_config_look(struct hv_port_config *ports, GError **err);
void hv_config_look_end(struct hv_port_config *ports, unsigned count);

/* Configures a port in a world (guest-lib/host/inproc.h), without the environment: the addresses
 * of this host number (with the MAC address mac, if it is not NULL), the usual MTU and memory, no
 * log. */
void hv_config_simulate(struct hv_port_config *config, unsigned host, const uint8_t *mac,
                        struct inproc_world *world, struct wire_port *port);

/* The GID at an index of the GID table, which is less than HV_GIDS, and the entry's type. */
static inline const union ibv_gid *hv_config_gid(const struct hv_port_config *config,
                                                 unsigned index)
{
    return &config->gid[index % HV_ADDRESSES];
}

static inline bool hv_config_gid_is_v1(unsigned index)
{
    return index >= HV_ADDRESSES;
}

/* The device's GUID, which is known before the device is open. It equals the GUID that the device
 * reports (fw/cmd_vport.c). */
__be64 hv_config_guid(const struct hv_port_config *config);

#endif
