/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts about the process's HCAs, from its configuration. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FACTS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FACTS_H

#include "guest-lib/verbs/facts.h"
#include "guest-lib/verbs/kernel/config.h"

/* The process `host` has become a host on the wire, with these ports. */
void hv_facts_publish(const struct hv_port_config *ports, unsigned count, pid_t host);
/* The device's interface index. 0: it has none, because libhcasim.so, which would show it, is not
 * loaded. */
unsigned hv_facts_ifindex(unsigned device);
/* This device of the process was removed. */
void hv_facts_remove(unsigned device);

#endif
