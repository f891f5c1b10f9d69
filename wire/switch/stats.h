/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a switch counts at a port, as a table: the fields, their names and what they mean.
 */
#ifndef HCASIM_WIRE_SWITCH_STATS_H
#define HCASIM_WIRE_SWITCH_STATS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X(name, group, meaning). Groups: IN, the fates of frames that came in at the port, which sum up
 * to rx_frames; OUT, those of the copies that are meant for the port, which sum up to offered,
 * together with the frames that still wait; MORE: neither.
 */
#define SWITCH_STATS(X)                                                                            \
    X(rx_frames, MORE, "frames that came in")                                                      \
    X(rx_bytes, MORE, "their bytes")                                                               \
    X(forwarded, IN, "frames that were meant for another port, or several")                        \
    X(nowhere, IN, "frames for which there was no other port")                                     \
    X(local, IN, "frames for a station at the port where they came in")                            \
    X(control, IN, "frames for the switch: pauses, reports of group members, reserved addresses")  \
    X(vlan_refused, IN, "frames of a VLAN that the port does not have")                            \
    X(rx_malformed, IN, "frames too short for their tag")                                          \
    X(rx_down, IN, "frames that came in while the port was set down")                              \
    X(copies, MORE, "ports for which the forwarded frames were meant, together")                   \
    X(flooded, MORE, "frames that went to all ports of their VLAN")                                \
    X(offered, MORE, "copies meant for the port")                                                  \
    X(sent, OUT, "copies that were sent")                                                          \
    X(full, OUT, "copies dropped because the queue was full")                                      \
    X(no_buffer, OUT, "copies dropped because the buffer of the switch was full")                  \
    X(parted, OUT, "copies dropped because they came from another island")                         \
    X(down, OUT, "copies dropped because the link was down")                                       \
    X(stuck, OUT, "copies dropped because the receiver gave no credit for too long")               \
    X(too_long, OUT, "copies dropped because their tag does not fit")                              \
    X(waiting, OUT, "copies that wait now")                                                        \
    X(tx_bytes, MORE, "bytes that were sent")                                                      \
    X(marked, MORE, "copies that were marked CE")                                                  \
    X(queue_most, MORE, "the most bytes that waited for one priority")                             \
    X(blocked, MORE, "times that the peer gave no credit")                                         \
    X(pauses_sent, MORE, "pause frames that were sent")                                            \
    X(pauses_taken, MORE, "pause frames that were obeyed")

struct switch_stats {
#define SWITCH_STATS_FIELD(name, group, meaning) uint64_t name;
    SWITCH_STATS(SWITCH_STATS_FIELD)
#undef SWITCH_STATS_FIELD
};

enum switch_stats_group {
    SWITCH_STATS_MORE,
    SWITCH_STATS_IN,
    SWITCH_STATS_OUT,
};

struct switch_stats_row {
    const char *name;
    enum switch_stats_group group;
    const char *meaning;
};

/* The row of a field; NULL behind the last one. */
const struct switch_stats_row *switch_stats_row(unsigned i);
uint64_t switch_stats_value(const struct switch_stats *stats, unsigned i);
void switch_stats_add(struct switch_stats *to, const struct switch_stats *stats);
/* Whether the fates sum up. */
bool switch_stats_add_up(const struct switch_stats *stats);

#endif
