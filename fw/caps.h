/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describes capabilities as a table: a row for each field of QUERY_HCA_CAP that is not 0.
 *
 * A row says what the model supports. The profile may allow less (fw/profile.h); nothing allows
 * more. Three things follow from the row (fw/caps.c): the value that the field reports, the values
 * that SET_HCA_CAP may set, and the commands that are refused on a generation without the
 * capability.
 */
#ifndef HCASIM_FW_CAPS_H
#define HCASIM_FW_CAPS_H

#include "fw/fw_internal.h"

#define CAP_MAX_COMMANDS 5

struct cap {
    uint32_t field; /* the field's place in the section, as in prm/access.h */
    const char *name;
    /* What the model supports: of() if there is one, else the value in limits, else value. */
    uint64_t value;
    bool is_limit;
    size_t limit; /* offset in struct hca_limits, of an unsigned */
    uint64_t (*of)(const struct fw *fw);
    bool is_set; /* each bit is a separate ability; a profile allows them one by one */
    /* The commands that the capability needs: it is present only if all are implemented. 0 ends the
     * list. */
    uint16_t commands[CAP_MAX_COMMANDS];
    /* Whether a driver may set the field, and to which values: a bit for each value, or 0 for any
     * value up to the maximum. */
    bool settable;
    size_t now; /* offset in struct fw_caps, of a byte */
    uint32_t values;
};

/* Members of a row, for the tables. */
#define CAP_NAMED(layout, member) .field = PRM_##layout##_##member##_FIELD, .name = #member
#define CAP_LIMIT(member)         .is_limit = true, .limit = offsetof(struct hca_limits, member)
#define CAP_SET(member)           .settable = true, .now = offsetof(struct fw_caps, member)
#define CAP_NEEDS(...)            .commands = {__VA_ARGS__}

#define CAP_LOG2(n)               ((unsigned)__builtin_ctz(n)) /* log2 of a power of two */

/* The most that the profile allows of a field. */
uint64_t caps_most(const struct fw *fw, uint16_t section, uint32_t field);

/* Each table ends with a row whose field is 0. */
extern const struct cap caps_general[], caps_general_2[], caps_qos[],
    caps_debug[];                      /* fw/caps_general.c */
extern const struct cap caps_crypto[]; /* fw/caps_crypto.c */
uint64_t caps_has_crypto(const struct fw *fw);
uint64_t caps_is_wrapped(const struct fw *fw);                    /* keys are imported wrapped */
extern const struct cap caps_ethernet[], caps_flow_table[];       /* fw/caps_net.c */
extern const struct cap caps_atomic[], caps_roce[], caps_event[], /* fw/caps_rdma.c */
    caps_device_memory[], caps_vector_calc[];
extern const struct cap caps_odp[]; /* fw/caps_odp.c */

/* The place of a property of a type of flow tables, in section FLOW_TABLE. */
#define CAP_FT_FIELD(at, layout, name)                                                             \
    (PRM_##layout##_##name##_FIELD + ((uint32_t)PRM_flow_table_nic_cap_##at##_OFFSET * 8 << 8))

/* The place of an operation of a transport in section ODP, which nests three layouts. */
#define CAP_ODP_FIELD(scheme, of, operation)                                                       \
    (PRM_odp_per_transport_service_cap_##operation##_FIELD +                                       \
     ((uint32_t)(PRM_OFFSET(odp_cap, scheme##_page_fault_scheme_cap) +                             \
                 PRM_OFFSET(odp_scheme_cap, of##_odp_caps))                                        \
      << 11))

#endif
