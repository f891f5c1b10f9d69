/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1 of a port (IBTA 13.5): where management datagrams come in and go out. It is the
 * kernel's: no program sees it.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_GSI_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_GSI_H

#include "guest-lib/verbs/verbs.h"

#define HV_MAD_LEN 256

struct hv_gsi;

struct hv_datagram {
    union ibv_gid sgid, dgid; /* the sender's; the one that it was sent to */
    uint8_t mad[HV_MAD_LEN];
    size_t len;
};

/* arrived is called whenever there may be one, when a neighbour has answered, and when a host of
 * the wire may have ended, from any thread, with locks held: it only notes it. 0 or errno: EBUSY,
 * the port's is open. */
int hv_gsi_open(struct hv_context *ctx, void (*arrived)(void *opaque), void *opaque,
                struct hv_gsi **gsi);
void hv_gsi_close(struct hv_gsi *gsi);

/* What follows is serialized by its caller. */

/* The next datagram. False: there is none, and arrived will be called for the next. */
bool hv_gsi_poll(struct hv_gsi *gsi, struct hv_datagram *datagram);
/* Whether a neighbour has answered since this was asked last (hv_find_mac()). */
bool hv_gsi_is_answered(struct hv_gsi *gsi);
/* Whether a host of the wire may have ended since this was asked last; whether arrived tells of
 * that. */
bool hv_gsi_is_host_ended(struct hv_gsi *gsi);
bool hv_gsi_tells_ends(const struct hv_gsi *gsi);
/* Who is at an address now, and whether that host has ended (wire_host_at(), wire_has_ended()). */
uint64_t hv_gsi_host_at(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid);
bool hv_gsi_has_ended(struct hv_gsi *gsi, uint64_t host);
/* One to a neighbour who has to be asked for waits for the answer, as long as hv_resolve_mac().
 * False: it is not sent: too many wait, the address is nobody's, or the HCA is the parent's or
 * removed. */
bool hv_gsi_send(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid,
                 const uint8_t mad[HV_MAD_LEN]);

/* Its device was removed: nothing comes or goes any more. */
bool hv_gsi_is_removed(const struct hv_gsi *gsi);

/* The device was removed: arrived is called. */
void hv_gsi_removed(struct hv_gsi *gsi);
/* A CQ of that number completed. */
void hv_gsi_event(struct hv_hca *hca, uint32_t cqn);

#endif
