/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What flow tables mean, said as simply as possible: a frame begins at the first table of its
 * domain; in a table the first group with an entry that matches decides, and there the oldest such
 * entry; if none matches, the table's miss rule does. This is a reference for the device's tables.
 * It compares fields one by one, and shares no code with the device.
 */
#ifndef HCASIM_TESTS_RULES_H
#define HCASIM_TESTS_RULES_H

#include "tests/sim/fabric/rules_state.h"

#define RULES_TABLES   4u
#define RULES_GROUPS   3u
#define RULES_ENTRIES  16u /* indices of a table */
#define RULES_PARTS    5u  /* fields that a group matches */
#define RULES_DESTS    3u  /* destinations of an entry */
#define RULES_COUNTERS 6u  /* counters of a host */
#define RULES_REWRITES 4u  /* lists of rewrites, with the empty one */
#define RULES_COPIES   21u /* the most copies of a frame that random rules make */

struct rules_group {
    bool exists;
    uint32_t start, end; /* its indices */
    uint32_t id;         /* in the device */
    unsigned parts;
    enum rules_field field[RULES_PARTS];
    uint32_t mask[RULES_PARTS];
};

struct rules_dest {
    bool is_table;
    unsigned which; /* table of the domain, or queue */
};

struct rules_entry {
    bool exists;
    uint64_t number; /* an older entry has a lower one */
    unsigned group;
    uint32_t value[RULES_PARTS]; /* with the bits of the masks only */
    bool drops;
    struct rules_change change;
    uint32_t tag;
    unsigned dests, counters;
    struct rules_dest dest[RULES_DESTS];
    unsigned counter[2];
};

enum rules_miss {
    RULES_MISS_ENDS,    /* no further rules */
    RULES_MISS_FORWARD, /* to a further table */
    RULES_MISS_SWITCH,  /* to the rules for other frames (RoCE frames only) */
};

struct rules_table {
    uint32_t id; /* in the device */
    unsigned level;
    enum rules_miss miss;
    unsigned miss_to;
    struct rules_group group[RULES_GROUPS];
    struct rules_entry entry[RULES_ENTRIES];
};

struct rules_domain {
    uint8_t type;                        /* of its tables, PRM_FLOW_TABLE_TYPE_ */
    uint32_t rewrite_id[RULES_REWRITES]; /* in the device */
    struct rules_rewrite rewrite[RULES_REWRITES];
    unsigned tables;
    struct rules_table table[RULES_TABLES]; /* a frame begins at the first one */
    /* The root in the device, which leads frames with the receiver's address to the first table.
     * Other frames, which hosts send to all, end here. */
    struct rules_table front;
};

/* What becomes of a frame. */
struct rules_outcome {
    unsigned copies;
    struct rules_copy {
        uint32_t queue, tag, len, print; /* print: of its bytes */
    } copy[RULES_COPIES];
    struct rules_hits {
        uint64_t packets, bytes;
    } hits[RULES_COUNTERS];
    bool dropped;  /* by an entry */
    bool switched; /* by a miss */
};

/* Adds to *outcome what a domain does with a frame, which is then as *state says. An entry that
 * leads to several destinations gives each of them the frame as the entry leaves it. */
void rules_apply(const struct rules_domain *domain, struct rules_state *state,
                 struct rules_outcome *outcome);
/* Sorts the copies: queues get them at the same time. */
void rules_sort(struct rules_outcome *outcome);
/* Returns whether both are the same copies; the other outcome is sorted, too. */
bool rules_same_copies(const struct rules_outcome *a, const struct rules_outcome *b);

#endif
