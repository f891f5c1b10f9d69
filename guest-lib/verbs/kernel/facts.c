/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The facts about the process's HCAs, for readers that open no device (guest-lib/verbs/facts.h).
 *
 * Once the process is a host, the facts are its own. A child that it forks has the same facts until
 * the child becomes a host itself. Before the process is a host, the facts are derived again
 * for each reader. The lock is a leaf: no other lock is taken while it is held.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/kernel/facts.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "fw/fw.h"
#include "guest-lib/host/memory.h"
#include "guest-lib/verbs/kernel/addresses.h"
#include "guest-lib/verbs/kernel/link.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "wire/forks.h"
#include "wire/open.h"

_Static_assert(HV_FACTS_DEVICES == HV_MAX_DEVICES, "a device has its facts");
_Static_assert(HV_FACTS_ADDRESSES == HV_ADDRESSES && HV_FACTS_GIDS == HV_GIDS, "a GID is a fact");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around published */
static struct hv_facts published;
static bool facts_are_shown; /* libhcasim.so is loaded */

static void facts_of_port(const struct hv_port_config *port, struct hv_device_facts *facts)
{
    struct fw_pci_id id = {0};
    __be64 guid = hv_config_guid(port);
    uint32_t legacy, ext;
    struct hv_link link;

    fw_profile_pci_id(port->profile, &id);
    fw_profile_link_mode(port->profile, &legacy, &ext);
    link = hv_link_of_mode(legacy, ext);
    *facts = (struct hv_device_facts){
        .ipv4 = port->ipv4,
        .mtu = port->mtu,
        .vendor = id.vendor,
        .device = id.device,
        .subsys_vendor = id.subsys_vendor,
        .subsys = id.subsys,
        .revision = id.revision,
        .bar_size = id.bar_size,
        .link_speed = id.link_speed,
        .link_width = id.link_width,
        .mbps = link.mbps,
        .ib_width = link.width,
        .ib_speed = link.speed,
    };
    memcpy(facts->mac, port->mac, sizeof(facts->mac));
    memcpy(facts->node_guid, &guid, sizeof(facts->node_guid));
    memcpy(facts->gid, port->gid, sizeof(facts->gid));
    snprintf(facts->firmware, sizeof(facts->firmware), "%u.%u.%04u", id.fw_major, id.fw_minor,
             id.fw_subminor);
    g_strlcpy(facts->board, id.board ? id.board : "", sizeof(facts->board));
}

static void facts_of(const struct hv_port_config *ports, unsigned count, pid_t host,
                     struct hv_facts *facts)
{
    *facts = (struct hv_facts){.host = host, .count = count};
    for (unsigned i = 0; i < count; i++) {
        facts_of_port(&ports[i], &facts->device[i]);
    }
}

void hv_facts_publish(const struct hv_port_config *ports, unsigned count, pid_t host)
{
    struct hv_facts facts;

    facts_of(ports, count, host, &facts);
    pthread_mutex_lock(&lock);
    published = facts;
    pthread_mutex_unlock(&lock);
}

void hv_facts_remove(unsigned device)
{
    pthread_mutex_lock(&lock);
    published.removed |= 1u << device;
    pthread_mutex_unlock(&lock);
}

static bool facts_look(struct hv_facts *facts)
{
    struct hv_port_config ports[HV_MAX_DEVICES];
    unsigned count;

    pthread_mutex_lock(&lock);
    *facts = published;
    pthread_mutex_unlock(&lock);
    if (facts->count) {
        return true;
    }
    count = hv_config_look(ports, NULL);
    facts_of(ports, count, 0, facts);
    hv_config_look_end(ports, count);
    return count > 0;
}

static bool facts_is_peer(uint32_t ipv4)
{
    struct hv_port_config ports[HV_MAX_DEVICES];
    unsigned count = hv_config_look(ports, NULL), number = hv_host_of_ipv4(ipv4);
    bool is = false;

    for (unsigned i = 0; i < count && number && !is; i++) {
        is = wire_number_look(ports[i].wire, number - 1) != number;
    }
    hv_config_look_end(ports, count);
    return is;
}

unsigned hv_facts_ifindex(unsigned device)
{
    return facts_are_shown ? HV_FACTS_IFINDEX + device : 0;
}

static const struct hv_beside_ops facts_ops = {
    .look = facts_look,
    .is_peer = facts_is_peer,
    .sigaction = memory_sigaction,
    .memory_changed = hv_odp_changed,
};

static void facts_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void facts_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

FORKS_INNER_LOCK static void facts_begin(void)
{
    hv_beside_fn *beside = (hv_beside_fn *)dlsym(RTLD_DEFAULT, HV_BESIDE_NAME);

    pthread_atfork(facts_before_fork, facts_after_fork, facts_after_fork);
    facts_are_shown = beside != NULL;
    if (beside) {
        beside(&facts_ops);
    }
}
