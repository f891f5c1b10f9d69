/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands as a well-behaved driver sends them: the tests of hostile guests start from them and
 * change them.
 *
 * A guest is a node with one object of every kind, made by these commands. Later commands name
 * these objects.
 */
#ifndef HCASIM_TESTS_EXAMPLES_H
#define HCASIM_TESTS_EXAMPLES_H

#include "tests/sim/storm.h"

#define EXAMPLE_MAX    8192
#define EXAMPLE_DC_KEY 0x4443
#define EXAMPLE_MEMIC  64         /* bytes of device memory */
#define GUEST_MEM      (4u << 20) /* memory for queues and data, bytes */

/* The guest's memory has slots of a page each: the doorbell record and the ring of the last object
 * that was made. */
struct guest {
    struct node *node;
    struct buf *mem;
    struct drv_qp *rc, *init, *rtr; /* RC, in RST, INIT, RTR */
    struct drv_qp *uc, *ud, *umr;   /* in RTS */
    struct drv_qp *rc_loop;         /* RC, connected to itself */
    struct drv_qp *sqer;            /* UC, on its way to SQER */
    struct drv_srq *srq, xrq;
    struct drv_qp *tags; /* RC, connected to itself: changes the XRQ's tag list */
    struct drv_qp *dci;  /* in RTS */
    uint32_t tdn, xrcd, xrc_srqn, rmpn, xrqn, tisn, sqn, rqn, rqtn, tirn, counter, q_counter, dctn;
    uint32_t table, group, uid, umem, mapping, psvn;
    uint64_t memic;                            /* offset of its device memory in BAR0 */
    uint32_t umr_key;                          /* key over ranges of other keys; UMR changes it */
    uint64_t sq_dbr, sq_ring, rq_dbr, rq_ring; /* offsets in mem */
    bool ready, group_made;                    /* SQ and RQ are in RDY */
    unsigned next_entry, keys;
    uint64_t next; /* next free page in mem */
};

/* Takes the DCI from RST to RTS. */
void guest_connect_dci(struct guest *g);

/* Makes the objects; each command must succeed. */
void guest_init(struct guest *g, struct node *node);

/* Fills in the input of a command, EXAMPLE_MAX bytes, including the opcode; returns its length. If
 * there is no example of the command, the input is zero except for the guest's number of the object
 * that the command is about. */
size_t example(struct guest *g, uint16_t opcode, void *in);

/* Returns the number of commands in the firmware's table; fw_cmd_at() returns each. */
int num_commands(void);

/* Adds the guest's numbers and addresses to a storm. */
void guest_tell(const struct guest *g, struct storm *s);

#endif
