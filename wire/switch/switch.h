/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch: joins ports (wire/port.h) of any kind into one Ethernet segment.
 *
 * It learns from source addresses at which port a station is, and sends a frame for a known address
 * to that port alone; any other frame goes to all ports of its VLAN except the one it came from.
 * Multicast is pruned where hosts and a querier use IGMP or MLD (groups.h). Each port has a queue
 * for each priority, in which frames wait while the line is busy, paused, or gives no credit; there
 * they are marked or dropped, or pause their senders (PFC, IEEE 802.1Qbb; or IEEE 802.3x).
 *
 * The switch has no clock, no thread and no system call of its own: its owner tells the time, calls
 * wire_switch_turn() when a port has something to say or a deadline has come, and owns the ports'
 * descriptors (loop.h does that). One thread owns a switch and all its ports.
 *
 * What stations can make it do has bounds: frames wait in a buffer of fixed size, addresses and
 * groups in tables of fixed size, ports have a limit. Nothing is allocated for a frame.
 *
 * Statistics add up: each frame that comes in at a port has one fate there, and each copy that is
 * meant for a port has one fate there (wire_switch_adds_up()).
 */
#ifndef HCASIM_WIRE_SWITCH_SWITCH_H
#define HCASIM_WIRE_SWITCH_SWITCH_H

#include "wire/port.h"
#include "wire/switch/stats.h"

#include <glib.h>

#define WIRE_SWITCH_PORTS_MAX 1024

struct wire_switch;

struct wire_switch_config {
    unsigned ports;     /* at most; up to WIRE_SWITCH_PORTS_MAX. 0: 512 */
    size_t buffer;      /* bytes for frames that wait, of all ports together. 0: 64 MiB */
    unsigned addresses; /* entries of the table of stations. 0: 8192 */
    uint64_t age_ns;    /* a station that is silent for so long is forgotten. 0: 300 s */
    unsigned groups;    /* memberships, of all groups and ports together. 0: 4096 */
    bool querier;       /* asks for the members of multicast groups, unless somebody else does */
    uint64_t seed;      /* decides which frames are marked, and the places in the tables */
};

/* now_ns: of any clock that does not go back; 0 is before all. */
struct wire_switch *wire_switch_new(const struct wire_switch_config *config, uint64_t now_ns);
/* Closes all ports. */
void wire_switch_free(struct wire_switch *sw);

/* -- ports ------------------------------------------------------------------------------------- */

/*
 * Adds a port, which the switch owns from now on, and becomes its client. about: for people, such
 * as its URI. passing: the port is removed when its link is lost (wire_switch_next_lost()). Its
 * settings are the defaults of that moment. Returns its number, from 1; 0 with *err: all ports are
 * used.
 */
unsigned wire_switch_add(struct wire_switch *sw, struct wire_port *port, const char *about,
                         bool passing, GError **err);
/* Closes the port. Its stations and memberships are forgotten, and its frames dropped. The caller
 * is not in a callback of that port. */
void wire_switch_remove(struct wire_switch *sw, unsigned number);
/* A passing port whose link was lost; 0: none. The caller removes it. */
unsigned wire_switch_next_lost(struct wire_switch *sw);

/* The port, to be watched by its owner; NULL: there is none of that number. */
struct wire_port *wire_switch_wire(struct wire_switch *sw, unsigned number);
/* The next port behind a number; 0: there is none. The first is behind 0. */
unsigned wire_switch_next(const struct wire_switch *sw, unsigned number);
/* Whether the switch takes frames of the port now: it does not while a sender that does not obey
 * its pauses has filled the room behind them. The owner does not wait for the port's descriptor
 * then, and calls wire_fd_event() every SWITCH_HELD_NS for the port's credits. */
bool wire_switch_takes(const struct wire_switch *sw, unsigned number);
/* Whether wire_switch_takes() has changed for any port since the last call. */
bool wire_switch_takes_changed(struct wire_switch *sw);
#define SWITCH_HELD_NS 1000000ull

/* -- time -------------------------------------------------------------------------------------- */

/* Takes frames from the ports, up to a bound, and sends those whose time has come. True: there is
 * more to do at once. */
bool wire_switch_turn(struct wire_switch *sw, uint64_t now_ns);
/* When the next turn is due, if no port has anything to say before. UINT64_MAX: never. */
uint64_t wire_switch_deadline(const struct wire_switch *sw);

/* -- settings ---------------------------------------------------------------------------------- */

/*
 * Changes a setting of a port, by texts; number 0: the default of ports to come. At once, while
 * frames pass. False: *err says what the setting can be.
 *
 *   rate      bits per second, with K, M or G; 0: none
 *   latency   a time with its unit, such as 10us; 0: none
 *   queue     bytes that may wait for each priority, with K, M or G
 *   ecn       MIN:MAX:PERCENT: packets that support ECN are marked from MIN waiting bytes on, all
 *             of them from MAX on, and between them up to PERCENT; off
 *   pfc       XOFF:XON or XOFF:XON:PRIORITIES: whoever sends in at this port is paused, by
 * priority, while more than XOFF of its bytes wait, until XON; PRIORITIES such as 3 or 0,3-4;
 *             without them all; off
 *   pause     XOFF:XON: the same for all priorities together, with IEEE 802.3x; off
 *   link      up or down: a port that is down neither sends nor takes frames
 *   island    a number: ports of different islands do not hear each other
 *   vlan      all: untagged frames are a network of their own, and tagged ones pass as they are;
 *             N: untagged frames are of VLAN N, and tagged ones are refused; trunk:LIST: tagged
 *             frames of these VLANs pass; trunk:LIST:N: and untagged frames are of VLAN N
 *   stations  the addresses that the switch learns at this port; 1024 unless it is set. Frames for
 *             others go to all ports
 *   groups    the multicast groups of hosts at this port; 256 unless it is set. If they report
 * more, the port gets the multicast of all groups priority  of untagged frames without IP, 0 to 7;
 * other frames have that of their VLAN tag, or the upper three bits of their DSCP
 */
bool wire_switch_set(struct wire_switch *sw, unsigned number, const char *key, const char *value,
                     GError **err);
/* A setting as such a text; the caller frees it. NULL: there is no such port or setting. */
char *wire_switch_get(const struct wire_switch *sw, unsigned number, const char *key);
/* The names of the settings, NULL at the end. */
const char *const *wire_switch_keys(void);
/* Starts or ends the switch's own queries. */
void wire_switch_set_querier(struct wire_switch *sw, bool on);

/* -- what is there ----------------------------------------------------------------------------- */

struct wire_switch_port_view {
    const char *about;
    bool link_up;       /* of the wire; the setting `link` is another thing */
    bool blocked;       /* the peer gives no credit */
    unsigned paused;    /* priorities that the peer has paused, a bit each */
    unsigned pauses;    /* priorities that the peer is asked to pause, a bit each */
    unsigned addresses; /* stations */
    struct switch_stats stats;
};

/* False: there is no such port. The text lives as long as the port. */
bool wire_switch_view(const struct wire_switch *sw, unsigned number,
                      struct wire_switch_port_view *view);

struct wire_switch_view {
    unsigned ports, ports_most;
    unsigned addresses, addresses_most;
    unsigned memberships, memberships_most;
    unsigned frames, frames_most; /* that wait in the buffer */
    uint64_t moves;               /* stations that were seen at another port */
    uint64_t not_learned;         /* frames whose station found the table full */
    uint64_t bad_reports;         /* IGMP and MLD messages that are none */
    bool querier;
};

struct wire_switch_view wire_switch_whole(const struct wire_switch *sw);
/* The sums of all ports, also of those that were removed. */
struct switch_stats wire_switch_total(const struct wire_switch *sw);
/* Whether each frame has one fate: the statement at the head of this file. */
bool wire_switch_adds_up(const struct wire_switch *sw);

/* Called for each station that is known, and for each member of a group. */
typedef void wire_switch_station_fn(void *opaque, unsigned vid, const uint8_t mac[6],
                                    unsigned number, uint64_t age_ns);
void wire_switch_stations(const struct wire_switch *sw, wire_switch_station_fn *fn, void *opaque);
void wire_switch_members(const struct wire_switch *sw, wire_switch_station_fn *fn, void *opaque);

#endif
