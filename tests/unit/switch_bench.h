/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch in virtual time, with a station at each port: the other end of a pair.
 *
 * A station takes what comes to it, unless it sleeps. At the end of each test the statistics of the
 * switch must add up.
 */
#ifndef HCASIM_TESTS_SWITCH_BENCH_H
#define HCASIM_TESTS_SWITCH_BENCH_H

#include "wire/switch/switch.h"

enum {
    BENCH_STATIONS = 301,
    BENCH_ALL = 0xffff, /* the broadcast address */
    BENCH_SHORT = 100,  /* bytes of a frame, when its length does not matter */
};

#define BENCH_MS 1000000ull
#define BENCH_S  1000000000ull

struct station {
    struct wire_port *port;
    unsigned number;  /* of its port at the switch */
    bool sleeps;      /* takes nothing */
    bool obeys;       /* sends nothing while it is paused */
    unsigned frames;  /* that came, but for pauses */
    unsigned foreign; /* of these, for another station's address */
    unsigned pauses, resumes;
    uint16_t pause_opcode;
    bool paused[8];
    unsigned marked; /* frames marked CE */
    uint64_t last_ns;
    size_t len; /* of the last frame */
    uint8_t frame[WIRE_FRAME_MAX];
};

extern struct wire_switch *bench_sw;
extern uint64_t bench_now;
extern struct station bench_at[BENCH_STATIONS];

/* config NULL: the defaults. Stations 1 to num, each with the address of its index. */
void bench_begin(const struct wire_switch_config *config, unsigned num, unsigned slots);
void bench_end(void);
/* Another station; its index. */
unsigned bench_plug(unsigned slots);
/* The station goes, and its port's link is down. */
void bench_unplug(unsigned station);
void bench_set(unsigned station, const char *key, const char *value);

void bench_mac(uint8_t mac[6], unsigned station);
/* Builds a frame in `frame` of that length: IPv4 and UDP, with DSCP << 2 | ECN. */
void bench_build(uint8_t *frame, unsigned from, unsigned to, size_t len, uint8_t tos);
/* Sends any bytes. False: no credit. */
bool bench_send_bytes(unsigned station, const uint8_t *bytes, size_t len);
bool bench_send_as(unsigned from, unsigned to, size_t len, uint8_t tos);
bool bench_send(unsigned from, unsigned to);
/* The same with a tag of IEEE 802.1Q. */
bool bench_send_tagged(unsigned from, unsigned to, unsigned vid, unsigned priority);

/* Lets all work that can be done at this moment be done. */
void bench_turn(void);
/* Lets the time pass, and everything happen that is due. */
void bench_pass(uint64_t ns);
/* Each station tells its address to all, and forgets what it has counted. */
void bench_announce(void);
void bench_forget(void);

struct switch_stats bench_stats(unsigned station);

#endif
