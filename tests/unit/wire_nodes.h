/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of a shared-memory segment for tests: each counts its callbacks and sends numbered
 * frames. The segment is in the test's own folder under /dev/shm.
 */
#ifndef HCASIM_TESTS_WIRE_NODES_H
#define HCASIM_TESTS_WIRE_NODES_H

#include "wire/open.h"

#define PATIENCE_MS 10000

struct node {
    struct wire_port *port;
    uint8_t id; /* last byte of its address */
    unsigned frames, tx_readies, rx_readies, ends;
    uint64_t tx_credits; /* credits at the last of tx_readies */
    uint8_t last_from;
    uint32_t last_number;
    size_t last_len;
    unsigned last_flags;  /* enum wire_frame_flags */
    uint32_t expect[256]; /* the next number from each sender, for tests that check order */
    unsigned out_of_order;
};

extern char *nodes_dir;

/* Call before all tests of a program; the program removes the folder when it ends. */
void nodes_make_dir(void);
unsigned nodes_files_left(void);

struct node *join(uint8_t id);
void leave(struct node *n);

/* Puts a filter around n's port. */
void wrap(struct node *n, struct wire_port *filter);

/* Sends a frame to `to` (0xff: all), with a number in it if the frame is long enough. Returns false
 * if the port has no room. */
bool send_frame(struct node *n, uint8_t to, uint32_t number, size_t len);
bool send_frame_as(struct node *n, uint8_t to, uint32_t number, size_t len, unsigned flags);

/* Makes the address of n known to all. */
void announce(struct node *n);

/* Makes two nodes that know each other's addresses. */
void two(struct node **a, struct node **b);

struct wire_stats stats_of(struct node *n);

/* Takes all frames; returns their number. */
unsigned drain(struct node *n);

/* Sleeps like a port's owner, until the port has something or the time is up. */
bool sleep_on(struct node *n, int ms);

void mac_of(uint8_t mac[6], uint8_t id);
int64_t ms_now(void);

#endif
