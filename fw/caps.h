/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities as a table: a row for each field of QUERY_HCA_CAP that is not 0.
 *
 * A row says what the model has. The profile may allow less (fw/profile.h), nothing allows more.
 * What a field reports, what SET_HCA_CAP may make of it and which commands are refused on a
 * generation that lacks it all follow from its row (fw/caps.c).
 */
#ifndef HCASIM_FW_CAPS_H
#define HCASIM_FW_CAPS_H

#include "fw/fw_internal.h"

#define CAP_MAX_COMMANDS 5

struct cap {
    uint32_t field; /* its place in the section, as prm/access.h has it */
    const char *name;
    /* What the model has: of() if there is one, else what the limits say, else value. */
    uint64_t value;
    bool is_limit;
    size_t limit; /* offset in struct hca_limits of an unsigned */
    uint64_t (*of)(const struct fw *fw);
    bool is_set; /* a bit for each of several abilities, which a profile allows one by one */
    /* What it consists of: it is there if all these are. 0: no further one. */
    uint16_t commands[CAP_MAX_COMMANDS];
    /* Whether a driver may set it, and to what: one of these values (a bit for each), or with 0 any
     * up to the maximum. */
    bool settable;
    size_t now; /* offset in struct fw_caps of a byte */
    uint32_t values;
};

/* Members of a row, for the tables. */
#define CAP_NAMED(layout, member) .field = PRM_##layout##_##member##_FIELD, .name = #member
#define CAP_LIMIT(member)         .is_limit = true, .limit = offsetof(struct hca_limits, member)
#define CAP_SET(member)           .settable = true, .now = offsetof(struct fw_caps, member)
#define CAP_NEEDS(...)            .commands = {__VA_ARGS__}

#define CAP_LOG2(n)               ((unsigned)__builtin_ctz(n)) /* of a power of two */

/* Tables end with a row whose field is 0. */
extern const struct cap caps_general[], caps_general_2[], caps_qos[]; /* fw/caps_general.c */
extern const struct cap caps_ethernet[], caps_flow_table[];           /* fw/caps_net.c */
extern const struct cap caps_atomic[], caps_roce[], caps_event[];     /* fw/caps_rdma.c */

#endif
