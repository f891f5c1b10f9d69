/* SPDX-License-Identifier: BSD-2-Clause */
/* The facts about the process's HCAs, from its configuration. */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_FACTS_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_FACTS_H

#include "guest-lib/verbs/facts.h"
#include "guest-lib/verbs/kernel/config.h"

/* The process host has become a host on the wire, and these are its ports. */
void hv_facts_publish(const struct hv_port_config *ports, unsigned count, pid_t host);
/* The device's number as a network interface. 0: there is none, for nobody shows it. */
unsigned hv_facts_ifindex(unsigned device);
/* This one of its devices was removed. */
void hv_facts_remove(unsigned device);

#endif
