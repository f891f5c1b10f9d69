/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching over DC in the two-HCA lab (dc_lab.h): initiators on side 0, a target with an XRQ on
 * side 1. The path MTU is 1024 bytes.
 */
#ifndef HCASIM_TESTS_DC_TAGS_LAB_H
#define HCASIM_TESTS_DC_TAGS_LAB_H

#include "tests/unit/dc_lab.h"

#define TAGS   8
#define HEADER PRM_SIZE(tmh)
#define ROOM   4096 /* bytes of each initiator's, each entry's and each receive WQE's memory */

extern struct lab *lab;
extern struct lab_side *near, *far;
extern struct lab_qp one, two;
extern struct lab_dct dct;
extern struct srq *xrq;
extern uint64_t src, dst, wqes;

/* A checked fixture: dct uses xrq, which does not fetch over DC. */
void dc_tags_setup(void);
void dc_tags_teardown(void);
/* Makes the target, with an XRQ that may fetch over DC if dc is true. */
void dc_tags_target(bool dc);

/* Appends an entry for exactly that tag, with len bytes at its part of dst. Returns its handle. */
uint16_t append(uint64_t tag, uint32_t len);
/* Returns the initiator's memory: each initiator sends from its own. */
uint64_t memory_of(const struct lab_qp *dci);
void send_tagged(struct lab_qp *dci, uint8_t op, uint64_t tag, uint32_t len);

/* Returns the next completion on side 1, which carries the XRQ's number. */
const struct prm_cqe64 *next_cqe(void);
const struct prm_cqe64 *expect(uint8_t op, uint16_t handle);
#define EXPECT(op, handle) expect(PRM_CQE_TM_OP_##op, handle)
void expect_none(void);
/* Checks that the entry's buffer holds the bytes behind the header in the initiator's memory. */
void expect_data(const struct lab_qp *dci, uint16_t handle, uint32_t len);

#endif
