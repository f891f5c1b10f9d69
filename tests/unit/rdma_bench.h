/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for one HCA's RDMA side: the model on a fake host; the test holds the far end of its
 * cable.
 *
 * The test is both the software (it makes objects, posts receives, reads CQEs and events) and the
 * peer: it puts packets on the wire and examines the answers. A failure in the setup stops the
 * test. Time stands still unless the test changes host.now.
 */
#ifndef HCASIM_TESTS_RDMA_BENCH_H
#define HCASIM_TESTS_RDMA_BENCH_H

#include <check.h>
#include "model/card/card.h"
#include "model/port/port.h"
#include "model/rdma/qp.h"
#include "tests/unit/fake_host.h"
#include "wire/port.h"

#define BENCH_PEER_QPN 0x123456
#define BENCH_FRAMES   256

/* Entries of the RoCE address table. */
enum bench_gid {
    BENCH_IPV4,
    BENCH_IPV6,
};

struct bench_cq {
    uint32_t cqn;
    uint64_t ring, dbr;
    uint32_t log_size, ci;
    uint32_t cqe_size;
};

struct bench_qp {
    uint32_t qpn;
    struct qp *qp;
    uint64_t ring, dbr;
    uint16_t posted; /* number of posted receive WQEs */
    enum bench_gid gid;
    struct bench *bench;
};

struct bench {
    struct fake_host host;
    struct hca hca;
    struct wire_port *peer; /* the far end of the cable */
    bool deaf;              /* the peer takes no frames from the cable */
    struct {
        uint8_t bytes[WIRE_FRAME_MAX];
        size_t len;
    } * frames; /* the received frames, room for BENCH_FRAMES */
    unsigned got, read;
    uint32_t pdn, uarn, eqn;
    uint64_t eq_ring;
    uint32_t eq_ci;
    struct bench_cq cq; /* CQ of every QP */
};

/* The attributes of a QP; zero means the default. */
struct bench_qp_attr {
    uint8_t st;
    uint8_t mtu; /* PRM_QP_MTU_; 0: 256 bytes */
    uint8_t log_rra_max;
    uint8_t min_rnr_nak;
    uint32_t rq_psn, sq_psn, qkey;
    bool no_access;      /* no remote access */
    bool no_atomics;     /* rae is set, but the atomic mode is none */
    uint8_t atomic_mode; /* 0: atomics of the standard */
    enum bench_gid gid;
    uint32_t srqn; /* if not 0, uses this SRQ */
    uint32_t cqn;  /* if not 0, completes to this CQ */
    uint32_t user_index;
    bool no_rq, no_sq;
    bool fetches;           /* offload_type RNDV */
    bool is_to_self;        /* connected to itself */
    uint32_t xrcd;          /* XRC domain */
    uint8_t cs_req, cs_res; /* PRM_CS_REQ_, PRM_CS_RES_: data in CQEs */
    bool pads_end;          /* received messages are padded to the end of a cache line */
};

void bench_init(struct bench *b);
/* Also checks that no DMA map is left open. */
void bench_clear(struct bench *b);

/* Lets the HCA run until it has nothing to do. */
void bench_run(struct bench *b);

/* A key for len bytes at a bus address, which is also the virtual address. access: MEM_*. */
struct bench_key_attr {
    uint64_t addr, len;
    unsigned access;
    uint32_t qpn;   /* if not 0, only for this QP */
    bool no_rinval; /* a SEND may not invalidate it */
};
uint32_t bench_key(struct bench *b, const struct bench_key_attr *attr);
/* Makes a key that any QP may use and that a SEND may invalidate. */
uint32_t bench_mkey(struct bench *b, uint64_t addr, uint64_t len, unsigned access);

/* Returns a buffer at a bus address, in pages of 4 KiB. */
struct mem_buf bench_buf(uint64_t addr, uint64_t size);

void bench_cq(struct bench *b, uint32_t log_size, struct bench_cq *cq);
/* Makes a CQ whose CQEs have 128 bytes. */
void bench_cq128(struct bench *b, uint32_t log_size, struct bench_cq *cq);
/* Returns the next CQE, a cqe64 or err_cqe, or NULL. */
const void *bench_poll(struct bench *b, struct bench_cq *cq);

/* Returns the next async event that names this QP, or -1. */
int bench_event(struct bench *b, uint32_t qpn);

/* Fills in a qpc for CREATE_QP with 16 receive WQEs of 64 bytes and 16 send basic blocks. */
void bench_qpc(struct bench *b, const struct bench_qp_attr *attr, struct prm_qpc *qpc);
/* Makes a QP in RST. */
void bench_qp(struct bench *b, const struct bench_qp_attr *attr, struct bench_qp *qp);
/* Makes a QP and takes it to RTS towards the peer. */
void bench_qp_rts(struct bench *b, const struct bench_qp_attr *attr, struct bench_qp *qp);
/* Executes one transition command with the fields of attr. */
enum syn bench_modify(struct bench *b, struct bench_qp *qp, uint16_t opcode,
                      const struct bench_qp_attr *attr);

/* Posts a receive WQE of one element. */
void bench_post_recv(struct bench_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey);

/* Returns a correct packet from the peer to the QP. */
struct roce_packet bench_packet(const struct bench_qp *qp, uint8_t opcode, uint32_t psn);
/* Puts it on the wire with its payload. */
void bench_put(struct bench *b, const struct roce_packet *pkt, const void *payload, size_t len);
/* The same, and lets the HCA run. */
void bench_rx(struct bench *b, const struct roce_packet *pkt, const void *payload, size_t len);
/* Returns the next packet that the HCA sent; false: none. */
bool bench_tx(struct bench *b, struct roce_packet *pkt);
/* Checks that the HCA has sent nothing more. */
void bench_expect_silence(struct bench *b);

#endif
