/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for tag matching: an XRQ, the QP that changes its list, and a data QP whose peer is the
 * test. The path MTU is 256 bytes.
 */
#ifndef HCASIM_TESTS_TAGS_BENCH_H
#define HCASIM_TESTS_TAGS_BENCH_H

#include "tests/unit/rdma_bench.h"

#define MTU         256
#define LOG_SIZE    3
#define LOG_STRIDE  6
#define LOG_TAGS    3
#define TAGS        (1u << LOG_TAGS)
#define USER_INDEX  0x777
#define ROOM        1024 /* bytes of a receive WQE, and between buffers */
#define ALL         UINT64_MAX

#define ACK         0x1f
#define NAK_INVALID 0x61
#define NAK_ACCESS  0x62

/* The contents of a receive CQE that differ between operations. */
struct told {
    uint8_t opcode, op;
    uint16_t handle, index;
    uint32_t bytes;
    uint64_t tag;
    bool success;
    uint16_t phase;
    uint32_t qpn;
    bool failed;
    uint8_t syndrome;
};

/* A WQE on the command QP that changes the list. */
struct change {
    uint8_t op;
    bool silent;   /* requests no completion */
    bool no_count; /* does not report the count of unexpected messages */
    uint16_t index, count;
    uint64_t tag, mask;
    uint64_t addr;
    uint32_t len;
    unsigned segs; /* data segments in addition to the usual ones */
};

extern struct bench b;
extern struct bench_cq cq;
extern struct bench_qp data_qp, cmd_qp;
extern struct srq *xrq;
extern uint64_t ring, dbr, mem, unexpected;
extern uint32_t key;
extern uint16_t posted, cmd_posted;
extern uint32_t psn;
extern uint8_t message[4 * MTU];

/* Posts receive WQEs of ROOM bytes each. */
void post_wqes(unsigned n);
/* Makes a QP in RTS towards the peer; its PSNs start at 0. */
void make_data_qp(bool fetches);
void tags_setup(void);
/* Sets up with data in CQEs (PRM_CS_RES_) of 128 bytes or 64 bytes. */
void tags_setup_in_cqe(uint8_t cs_res, bool is_128);
/* Returns the cqe64 of the last poll_told(). */
const struct prm_cqe64 *last_told(void);
void tags_teardown(void);
/* Posts the change on the command QP, and lets the HCA run. */
void post_change(const struct change *c);
/* Takes the next completion of the XRQ's CQ. */
bool poll_told(struct told *told);
/* The same, but there must be a completion with that operation and opcode. */
struct told expect_told(uint8_t op, uint8_t opcode);
void expect_nothing(void);
/* Appends an entry with the next handle, to buffer n of mem. Returns the handle. */
uint16_t append(uint64_t tag, uint64_t mask, unsigned n, uint32_t len, uint16_t count);
/* Writes a TMH at the beginning of message. */
void put_header(uint8_t op, uint64_t tag);
/* Sends a packet with that part of message to the HCA. */
void rx(uint8_t bth_op, size_t at, size_t len);
/* Expects an ACK or NAK of psn. */
void expect_answer(uint8_t syndrome);
/* Sends a message of one packet, which must be accepted. */
void send_one(uint8_t op, uint64_t tag, size_t len);
void send_eager(uint64_t tag, size_t len);
/* Expects these bytes of message at addr. */
void expect_bytes(uint64_t addr, size_t at, size_t len);

#define EXPECT(op, opcode) expect_told(PRM_CQE_TM_OP_##op, PRM_CQE_OPCODE_##opcode)

#endif
