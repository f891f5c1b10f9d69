/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lab with two HCAs, each with its own host, joined by a cable from which the test can remove
 * packets. Objects are made by the model's own functions; WQEs are written as a driver writes them.
 *
 * Time stands still except in lab_advance(). Every RoCE packet that crosses the cable is recorded
 * in lab.trace, so a test can check what was on the wire.
 */
#ifndef HCASIM_TESTS_LAB_H
#define HCASIM_TESTS_LAB_H

#include "model/card/card.h"
#include "model/port/port.h"
#include "model/rdma/qp.h"
#include "tests/unit/fake_host.h"
#include "wire/port.h"

#define LAB_TRACE_MAX 16384
#define LAB_MS        1000000ull
#define LAB_CQ_LOG    10
#define LAB_EQ_LOG    8
#define LAB_BUDGET    512 /* work pieces in a turn */

/* ACK timeout 8: 4.096 us * 2^8. */
#define LAB_ACK_TIMEOUT    8
#define LAB_ACK_TIMEOUT_NS (4096ull << LAB_ACK_TIMEOUT)

struct lab_packet {
    unsigned from; /* the sending side */
    bool dropped;
    struct roce_packet pkt; /* payload pointer is not valid */
};

struct lab_side {
    struct fake_host host;
    struct hca hca;
    uint8_t mac[6];
    uint32_t uarn, pdn, eqn, cqn;
    uint32_t key; /* a key for all memory, with every right, by bus addresses */
    uint64_t eq_ring, cq_ring, cq_dbr;
    uint32_t eq_ci, cq_ci;
};

struct lab {
    struct lab_side side[2];
    struct wire_port *mid[2]; /* the cable's ends that the test holds */
    /* Returns whether a frame passes; NULL: every frame does. */
    bool (*tap)(struct lab *lab, unsigned from, const struct roce_packet *pkt);
    unsigned tap_count; /* for the tap's use */
    unsigned num_packets;
    struct lab_packet trace[LAB_TRACE_MAX];
};

struct lab_qp {
    struct lab_side *side;
    struct qp *qp;
    uint64_t rq_ring, sq_ring, dbr;
    unsigned log_rq, log_sq, log_rq_stride;
    uint16_t rq_pi, sq_pi; /* RQ in slots, SQ in basic blocks */
};

/* Arguments of lab_qp_new(); lab_qp_attr has the defaults. */
struct lab_qp_attr {
    uint8_t st;
    uint8_t log_sq, log_rq;
    uint32_t srqn; /* 0: own RQ */
    bool no_rq;
    bool no_record; /* of the send queue; its doorbell record does not answer */
    bool programs; /* belongs to a program that has no user context; otherwise it is the kernel's */
    uint32_t pdn;  /* 0: the PD of the side */
    uint32_t cqn;  /* 0: the CQ of the side */
    uint8_t log_streams, log_errored;        /* of a DCI */
    uint8_t cs_req, cs_res;                  /* PRM_CS_REQ_, PRM_CS_RES_: data in CQEs */
    uint8_t ts_format;                       /* PRM_TS_FORMAT_ */
    bool master, managed_send, managed_recv; /* of cross channel */
};
extern const struct lab_qp_attr lab_rc;

/* Arguments of lab_connect(). */
struct lab_path {
    uint8_t mtu; /* PRM_QP_MTU_ */
    uint8_t retry_count, rnr_retry, ack_timeout, log_rtm, min_rnr_nak;
    uint8_t log_sra_max, log_rra_max;
    uint32_t psn; /* first PSN of side 0's sends; the other direction starts at psn + 0x1000 */
    uint32_t qkey;
    uint8_t order; /* PRM_DP_ORDERING_, forced; if it is not the standard's, there are no long
                      atomics */
    bool fl;       /* force loopback: no addresses are given */
};
extern const struct lab_path lab_path;

struct lab_sge {
    uint64_t addr;
    uint32_t len;
    uint32_t key; /* 0: the key of the side */
};

struct lab_wr {
    uint8_t opcode; /* PRM_WQE_OPCODE_ */
    bool unsignaled, solicited;
    uint8_t fence;
    uint32_t imm;
    struct lab_sge sge[4];
    unsigned num_sge;
    const void *inline_data; /* used instead of sge */
    uint32_t inline_len;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add, compare;
    uint8_t opmod;
    const void *operands;  /* of an extended atomic */
    uint32_t operands_len; /* also of any other segment */
    /* UD, DC */
    uint32_t dest_qpn, qkey;
    uint64_t dc_key;
    uint16_t stream;
    bool loop; /* the target is on the sender's side */
};

struct lab_cqe {
    uint8_t opcode; /* PRM_CQE_OPCODE_ */
    uint8_t send_opcode, syndrome, vendor;
    uint16_t counter;
    uint32_t qpn, byte_cnt, imm;
    uint64_t stamp; /* time stamp; nothing in an error CQE */
};

struct lab *lab_new(void);
void lab_free(struct lab *lab);

/* Runs both HCAs and the cable until nothing is left to do at this time. */
void lab_run(struct lab *lab);
/* Advances time, stopping at each timer on the way. */
void lab_advance(struct lab *lab, uint64_t ns);

/* Returns memory of a side's host, filled with a pattern that depends on seed, or zeroed if seed is
 * 0. */
uint64_t lab_mem(struct lab_side *side, size_t len, unsigned seed);
void *lab_ptr(struct lab_side *side, uint64_t addr, size_t len);
/* Makes a key for exactly [addr, addr + len). rights: enum mem_access. */
uint32_t lab_mr(struct lab_side *side, uint64_t addr, size_t len, unsigned rights);
/* Makes a key for the addresses from start on, whose bytes lie one by one behind ranges of the
 * side's own key, at addr. */
uint32_t lab_crumbs(struct lab_side *side, uint64_t addr, unsigned len, uint64_t start);

/* Returns a mem_buf of bus addresses addr..addr + size - 1 (4096-byte pages). */
struct mem_buf lab_buf(uint64_t addr, uint64_t size);
/* Make a second CQ on a side; *ring gets the ring's address. The first function makes CQEs of 128
 * bytes. */
uint32_t lab_cq128_new(struct lab_side *side, unsigned log_size, uint64_t *ring, uint64_t *dbr);
uint32_t lab_cq_new(struct lab_side *side, unsigned log_size, uint64_t *ring, uint64_t *dbr);

void lab_qp_new(struct lab_side *side, const struct lab_qp_attr *attr, struct lab_qp *qp);
/* Takes both QPs to RTS, connected to each other. UD QPs ignore the arguments that they do not
 * need. */
void lab_connect(struct lab *lab, struct lab_qp *a, struct lab_qp *b, const struct lab_path *path);
enum syn lab_modify(struct lab_qp *qp, uint16_t opcode, const struct lab_path *path, uint32_t psn,
                    const struct lab_qp *peer);
/* The common case: two connected RC QPs. */
void lab_rc_pair(struct lab *lab, struct lab_qp *a, struct lab_qp *b, const struct lab_path *path);

/* Writes a WQE without ringing the doorbell; returns the address of its control segment. */
void *lab_write_wqe(struct lab_qp *qp, const struct lab_wr *wr);
/* Writes the doorbell record and rings the doorbell. */
void lab_ring(struct lab_qp *qp);
/* Writes a WQE and rings the doorbell. */
void lab_post(struct lab_qp *qp, const struct lab_wr *wr);
void lab_post_recv(struct lab_qp *qp, uint64_t addr, uint32_t len);

/* Takes the next completion of the side's CQ, or of the CQ at ring/ci. */
bool lab_poll(struct lab_side *side, struct lab_cqe *cqe);
/* Takes the next event of the side's EQ that is not a completion event. */
bool lab_event(struct lab_side *side, uint8_t *type, uint32_t *num);

/* Returns the number of packets in the trace from a side whose opcode's low 5 bits are op. */
unsigned lab_count(const struct lab *lab, unsigned from, uint8_t op);

#endif
