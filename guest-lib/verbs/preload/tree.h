/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree: the files that a kernel's driver would have in /sys and /dev for the HCAs of this
 * process, in a folder of the process's own. Paths in it are those of the machine without the first
 * slash. Links are relative, as the kernel's are, so that following them never leaves the tree.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_H
#define HCASIM_GUEST_LIB_VERBS_PRELOAD_TREE_H

#include "guest-lib/verbs/preload/preload.h"

/* Addresses of the PCI functions, in a domain that no machine has (domains count from 0, VMD's from
 * 10000). */
#define TREE_PCI_DOMAIN "ca00"
#define TREE_PCI_ROOT   "sys/devices/pci" TREE_PCI_DOMAIN ":00"
#define TREE_PCI_SLOT   TREE_PCI_DOMAIN ":00:%02x.0"
#define TREE_PCI_BUS    TREE_PCI_DOMAIN ":00"
/* The files of a kernel module for GPUDirect RDMA, from which programs conclude that ibv_reg_mr()
 * takes memory of a GPU. */
#define TREE_PEER_MEMORY "sys/kernel/mm/memory_peers"
#define TREE_PEER_MODULE "sys/module/nvidia_peermem"
/* Names and numbers of the network devices, which only the HCA uses. */
#define TREE_NETDEV  "hca"
#define TREE_IFINDEX HV_FACTS_IFINDEX
/* Length of an address's network prefix, in bits. */
#define TREE_PREFIX_LEN 24

/* The target of the device files: a character device that anyone may open. No program that runs on
 * the library reads from it or writes to it. */
#define TREE_FILE "/dev/null"

/* Whether the process can load a libcuda, so that ibv_reg_mr() takes memory of a GPU: `hcasim run`
 * says so in HCASIM_GPU. */
bool tree_has_gpu(void);
/* Writes the whole tree into the folder root_fd. False: errno. */
bool tree_write(int root_fd, const struct hv_facts *facts);
/* tree_joins(): whether a path is a folder of the machine that also gets entries of the HCA.
 * tree_join(): adds the machine's present entries of that folder to the tree. */
bool tree_joins(const char *path);
void tree_join(int root_fd, const char *path);
#endif
