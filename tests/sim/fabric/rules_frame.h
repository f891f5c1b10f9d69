/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random frames of all kinds that rules can tell apart: VLAN tags, IPv4 with options, IPv6 with
 * extension headers, fragments, TCP, UDP, ICMP, ESP, tunnels (VXLAN, VXLAN-GPE, GENEVE, GRE, MPLS,
 * IP in IP) with a packet inside, RoCE.
 *
 * What rules can match of a frame is noted while the frame is written, by the code that writes each
 * header. No code parses the frame, so this shares nothing with the device.
 */
#ifndef HCASIM_TESTS_RULES_FRAME_H
#define HCASIM_TESTS_RULES_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/chance.h"

#define RULES_FRAME_MOST 640 /* with all tags that rules may add */

enum rules_field {
#define FIELD(name, section, layout, field)     RULES_##name,
#define WORD(name, section, layout, field, nth) RULES_##name,
#include "tests/sim/fabric/rules_fields.def"
#undef FIELD
#undef WORD
    RULES_FIELDS,
};

struct rules_frame {
    uint8_t bytes[RULES_FRAME_MOST];
    uint32_t len;
    bool is_roce;
    unsigned tags; /* VLAN tags of the outer packet */
    uint16_t tpid[2], tci[2];
    /* The value of each field; 0 if the frame lacks its header. */
    uint32_t field[RULES_FIELDS];
};

/* Draws frame `number` between two addresses. It ends with its number. roce: it may be a RoCE
 * packet, for a QP that does not exist. */
void rules_frame_draw(struct rules_frame *frame, struct chance *chance, const uint8_t dmac[6],
                      const uint8_t smac[6], bool roce, uint32_t number);
/* Returns the number from the last bytes of a frame. */
uint32_t rules_frame_number(const uint8_t *frame, uint32_t len);

#endif
