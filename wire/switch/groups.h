/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of a switch: which ports have members, and where queriers are.
 *
 * Hosts report their groups with IGMP (versions 1 to 3) or MLD (1 and 2) when a querier asks. If
 * there is no querier, hosts report once and never again, so nothing can be told from silence, and
 * multicast goes everywhere. A querier is another host that asks, or the switch itself if its owner
 * wants that. While there is one, frames for a group go only to the ports with members and to the
 * ports of other queriers, which may be routers. A group that nobody has ever reported goes
 * everywhere, because hosts without a kernel report none; a group that all members have left goes
 * to the queriers alone.
 *
 * Groups are told apart by VLAN and Ethernet address. The table has a fixed size; a membership that
 * does not fit is counted, and multicast of its VLAN goes everywhere from then on. A port may have
 * so many memberships; if it reports more, this is counted, too, and the port gets the multicast of
 * all groups from then on, until its link is lost. So one port cannot fill the table.
 *
 * RFC 4541 describes such a switch; RFC 2236, 3376, 2710 and 3810 the messages (snoop.h).
 */
#ifndef HCASIM_WIRE_SWITCH_GROUPS_H
#define HCASIM_WIRE_SWITCH_GROUPS_H

#include "wire/switch/fdb.h"

#include <stdbool.h>
#include <stdint.h>

enum groups_family {
    GROUPS_IPV4,
    GROUPS_IPV6,
    GROUPS_FAMILIES,
};

enum {
    GROUPS_VIDS = 4096,
    GROUPS_KNOWN = 0, /* the port of the entry that says that a group has been reported */
};

/* Of RFC 3376, clause 8, and RFC 3810, clause 9, with the defaults. */
#define GROUPS_QUERY_NS         125000000000ull /* between the queries of a querier */
#define GROUPS_QUERY_FIRST_NS   31250000000ull  /* between the first two */
#define GROUPS_MEMBER_NS        260000000000ull /* a member that does not report for so long is gone */
#define GROUPS_OTHER_QUERIER_NS 255000000000ull /* so is a querier that does not ask */
#define GROUPS_LEAVE_NS         2000000000ull /* a member that has left, and does not report again */

struct groups_member {
    uint64_t key; /* fdb_key() of the group; 0: free */
    uint64_t until_ns;
    uint32_t next;
    uint16_t port;
    uint16_t by; /* the port that reported it first */
};

struct groups {
    struct groups_member *members;
    uint32_t *chains;
    uint32_t num, chain_mask, first_free, hand, used;
    uint64_t seed, overflows;
    /* entries by port: its memberships, and the groups that it was the first to report */
    uint32_t *held, *made_known;
    bool *takes_all;                          /* by port: it has reported more than it may have */
    uint64_t *router_until[GROUPS_FAMILIES];  /* by port */
    uint64_t *querier_until[GROUPS_FAMILIES]; /* by VLAN: another querier */
    uint64_t *yields_until[GROUPS_FAMILIES];  /* by VLAN: one that asks in our place */
    uint8_t *overflown;                       /* by VLAN, a bit for each family */
    bool own_querier;
    unsigned ports;
};

void groups_init(struct groups *g, unsigned members, unsigned ports, uint64_t seed);
void groups_clear(struct groups *g);

/* A host at a port, which may have `limit` memberships, has reported that it is a member, or that
 * it is one no longer. */
void groups_join(struct groups *g, uint64_t key, unsigned port, unsigned limit, uint64_t now_ns);
void groups_leave(struct groups *g, uint64_t key, unsigned port, uint64_t now_ns);
/* Another querier asks at a port. yields: in the place of this switch. */
void groups_query(struct groups *g, enum groups_family family, unsigned vid, unsigned port,
                  bool yields, uint64_t now_ns);
void groups_forget(struct groups *g, unsigned port);

/* Whether multicast of the VLAN is pruned now. */
bool groups_prunes(const struct groups *g, enum groups_family family, unsigned vid,
                   uint64_t now_ns);
/* Whether the switch is to ask. */
bool groups_asks(const struct groups *g, enum groups_family family, unsigned vid, uint64_t now_ns);
/* Whether a frame for the group goes everywhere. */
bool groups_floods(const struct groups *g, uint64_t key, uint64_t now_ns);
/* Whether it goes to this port, if it does not go everywhere. */
bool groups_wants(const struct groups *g, enum groups_family family, uint64_t key, unsigned port,
                  uint64_t now_ns);
bool groups_is_router(const struct groups *g, enum groups_family family, unsigned port,
                      uint64_t now_ns);

/* The family of a group's address, and whether groups of this address are ever pruned: those that
 * hosts do not report (224.0.0.0/24, ff02::1 and its like) are not. False: never. */
bool groups_is_prunable(const uint8_t mac[6], enum groups_family *family);

#endif
