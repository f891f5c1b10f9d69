/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering by software: the way of a frame through entries (STE) that software has laid out in
 * steering memory (model/memory/sw_icm.h, prm/ste.prm).
 *
 * Software makes a flow table with the address of its first entry. At each entry, the frame's tag
 * is compared with that of the entry. If they differ, the walk goes on at the entry's miss address.
 * If they are equal, the entry's actions are done, and the walk goes on in the entry's next table,
 * which is a number of entries of which a hash of the frame's tag chooses one. The walk ends at an
 * address that is not in steering memory: that of a TIR, of a flow table, of a sampler or meter, or
 * of the actions drop and allow. QUERY_HCA_CAP and the commands that make such objects tell these
 * addresses.
 *
 * Software may write any bytes at any time, so the walk believes none. It reads each entry once, as
 * a whole; an address where no memory is drops the frame, as does an action that cannot be done; a
 * walk has at most as many steps as its caller allows. Nothing about entries is kept from one frame
 * to the next (docs/adr/0040). What entries name must be what the owner of their table may use.
 */
#ifndef HCASIM_MODEL_STEERING_STE_H
#define HCASIM_MODEL_STEERING_STE_H

#include "model/core/hca.h"
#include "model/steering/packet.h"
#include "prm/prm.h"
#include "wire/encap/tunnel.h"

#define STE_BYTES     PRM_SIZE(ste)
#define STE_TAG_BYTES 16

/* The most header changes of one list; mlx5dv_dr makes at most two of each that a program wants. */
#define STE_MAX_MODIFY 256

/* Where a walk can end. */
enum ste_end {
    STE_DROP,
    STE_ALLOW,
    STE_TIR,
    STE_TABLE,
    STE_SAMPLER,
    STE_METER,
    STE_ENDS
};

/* The address of an end, in the form that entries use. num: of the TIR, table or object. */
static inline uint64_t ste_end_address(enum ste_end end, uint32_t num)
{
    return (0x10ull + end) << 32 | (uint64_t)num << 6;
}

/* One frame, and the headers that entries compare. */
struct ste_walk {
    struct hca *hca;
    uint16_t uid;         /* the owner of the table */
    bool is_tx;           /* a frame that is sent */
    bool is_own;          /* the frame comes from this function */
    bool counted;         /* counters have counted the frame before */
    uint32_t sqn;         /* of a frame that is sent */
    const uint8_t *frame; /* with len bytes; in packet after the first change */
    size_t len;
    uint8_t *room; /* STEER_PLACE bytes of the caller's for a frame that is changed, or NULL */
    struct steer_packet packet;
    struct flow_regs *regs;
    uint16_t *ip_id;   /* for inserted IPv4 headers (model/steering/reformat.h) */
    uint32_t flow_tag; /* of the last entry that has one */
    unsigned steps;    /* entries read and header changes; the caller gives those before it */

    bool changed; /* the frame is in room */
    bool parsed, has_tunnel;
    struct eth_info info; /* if parsed */
    struct eth_tunnel tunnel;
};

/*
 * Walks from the entry at that address. Returns the end; *num receives the TIR, table or object.
 * frame, len, regs, flow_tag and steps are then those of the frame that goes on.
 */
enum ste_end ste_run(struct ste_walk *walk, uint64_t address, unsigned max_steps, uint32_t *num);

/* -- for the files of model/steering ------------------------------------------------------------
 */

/* Fills in the frame's tag of that lookup type (model/steering/ste_tag.c). False: the frame does
 * not have these headers, or the type is unknown; the tag is zero. */
bool ste_tag(struct ste_walk *walk, uint8_t lookup, uint8_t tag[STE_TAG_BYTES]);

/* Does an entry's actions (model/steering/ste_action.c). False: the frame is to be dropped. */
bool ste_act(struct ste_walk *walk, const struct prm_ste *ste);

/* Does the n header changes of a list on the packet (model/steering/ste_modify.c). */
void ste_modify(struct steer_packet *packet, struct flow_regs *regs, const uint8_t *list,
                unsigned n);

#endif
