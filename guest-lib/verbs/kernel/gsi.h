/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1 of a port (IBTA 13.5), which receives and sends management datagrams. It belongs to
 * the kernel: programs do not see it.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_GSI_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_GSI_H

#include "guest-lib/verbs/verbs.h"

#define HV_MAD_LEN 256

struct hv_gsi;

struct hv_datagram {
    union ibv_gid sgid, dgid; /* the sender's GID, and the GID that it was sent to */
    bool is_v1;               /* it came by RoCE v1 */
    uint8_t mad[HV_MAD_LEN];
    size_t len;
};

/* Opens queue pair 1. arrived is called whenever a datagram may have arrived, when a neighbour has
 * answered, and when a host of the wire may have ended. It is called from any thread, with locks
 * held, and must only make a note. Returns 0 or errno; EBUSY: the port's queue pair 1 is open
 * already. */
int hv_gsi_open(struct hv_context *ctx, void (*arrived)(void *opaque), void *opaque,
                struct hv_gsi **gsi);
void hv_gsi_close(struct hv_gsi *gsi);

/* The caller serializes the functions below. */

/* Takes the next datagram. False: there is none, and arrived will be called for the next one. */
bool hv_gsi_poll(struct hv_gsi *gsi, struct hv_datagram *datagram);
/* Whether a neighbour has answered since the last call (hv_find_mac()). */
bool hv_gsi_is_answered(struct hv_gsi *gsi);
/* hv_gsi_is_host_ended(): whether a host of the wire may have ended since the last call.
 * hv_gsi_tells_ends(): whether arrived is called for that. */
bool hv_gsi_is_host_ended(struct hv_gsi *gsi);
bool hv_gsi_tells_ends(const struct hv_gsi *gsi);
/* The host at an address now, and whether that host has ended (wire_host_at(),
 * wire_has_ended()). */
uint64_t hv_gsi_host_at(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid);
bool hv_gsi_has_ended(struct hv_gsi *gsi, uint64_t host);
/* Sends a datagram. If the neighbour's MAC address has to be asked for, the datagram waits for the
 * answer, as long as hv_resolve_mac() would. False: it is not sent, because too many datagrams
 * wait, the address belongs to no host, or the HCA is the parent's or was removed. */
bool hv_gsi_send(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid,
                 const uint8_t mad[HV_MAD_LEN]);

/* Whether the device was removed: nothing is received or sent any more. */
bool hv_gsi_is_removed(const struct hv_gsi *gsi);

/* Notes that the device was removed, and calls arrived. */
void hv_gsi_removed(struct hv_gsi *gsi);
/* The CQ with that number has a completion. */
void hv_gsi_event(struct hv_hca *hca, uint32_t cqn);

#endif
