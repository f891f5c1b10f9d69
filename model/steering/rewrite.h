/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes fields of a frame's headers, and metadata registers, as the list of a modify header
 * context says: sets bits of a field, adds to a field, copies bits from one field to another.
 *
 * The checksums of IPv4, TCP and UDP follow each change as RFC 1624 says. So a frame whose checksum
 * is wrong leaves with a checksum that is wrong, and UDP's "no checksum" (0) stays. An action on a
 * field that the frame does not have does nothing.
 */
#ifndef HCASIM_MODEL_STEERING_REWRITE_H
#define HCASIM_MODEL_STEERING_REWRITE_H

#include "model/core/syndrome.h"
#include "model/steering/packet.h"
#include "prm/prm.h"

#define REWRITE_MAX 16 /* actions of a list; DPDK knows this number as MLX5_ROOT_TBL_MODIFY_NUM */

struct rewrite_field;

struct rewrite_action {
    uint8_t type; /* PRM_MODIFY_HEADER_ACTION_ */
    const struct rewrite_field *to, *from;
    uint8_t to_bit, from_bit; /* the first bit, counted from the least significant bit */
    uint8_t bits;             /* 1 to 32 */
    uint32_t value;           /* of SET and ADD */
};

/* Reads a list of n <= REWRITE_MAX actions, each a set_action_in, add_action_in or copy_action_in.
 * SYN_MH_ACTION: an action or a field is unknown. SYN_MH_BITS: bits are beyond the field. */
enum syn rewrite_read(const struct prm_set_action_in *list, unsigned n,
                      struct rewrite_action *actions);

/* Whether an action changes a field of the frame, and not only registers. */
bool rewrite_writes_frame(const struct rewrite_action *actions, unsigned n);

/* Does the actions in their order. All of them see the headers as they were parsed before the first
 * action. */
void rewrite_run(const struct rewrite_action *actions, unsigned n, struct steer_packet *packet,
                 struct flow_regs *regs);

#endif
