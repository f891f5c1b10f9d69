/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that a kernel's driver would have in /sys and /dev for the HCAs of this process, in a
 * folder of the process's own. Paths in it are those of the machine without their first slash, and
 * links are relative as the kernel's are, so that whoever walks there stays there.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_H

#include "guest-lib/verbs/preload/preload.h"

/* Of the PCI functions: a domain that no machine has (they count from 0, and VMD's from 10000). */
#define TREE_PCI_DOMAIN "ca00"
#define TREE_PCI_ROOT   "sys/devices/pci" TREE_PCI_DOMAIN ":00"
#define TREE_PCI_SLOT   TREE_PCI_DOMAIN ":00:%02x.0"
/* Of the network devices, which nobody but the HCA has. */
#define TREE_NETDEV  "hca"
#define TREE_IFINDEX HV_FACTS_IFINDEX
/* Bits of the network's part of an address. */
#define TREE_PREFIX_LEN 24

/* What the device files are: a character device that may be opened. No program that runs on the
 * library reads it or writes to it. */
#define TREE_FILE "/dev/null"

/* Writes all of it into the folder root_fd. False: errno. */
bool tree_write(int root_fd, const struct hv_facts *facts);
/* What a folder of the machine's has at this time, too, if it is one that the HCA's is part of. */
bool tree_joins(const char *path);
void tree_join(int root_fd, const char *path);
/* Empties a folder. */
void tree_clear(int fd);

#endif
