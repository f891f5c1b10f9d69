/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet queues whose WQEs and CQEs a job writes and reads itself, as the driver of a network
 * interface does: send queues that take every offload, cyclic and striding receive queues, and CQs
 * that may be compressed. The queues are made by commands of the host's kernel. A failure of a
 * command ends the simulation.
 */
#ifndef HCASIM_TESTS_ETH_RINGS_H
#define HCASIM_TESTS_ETH_RINGS_H

#include "guest-lib/verbs/dv.h"
#include "prm/prm.h"
#include "tests/sim/fabric/sim.h"

#define RINGS_LOG_SQ    6 /* blocks of 64 bytes */
#define RINGS_LOG_RQ    6 /* WQEs of a cyclic queue */
#define RINGS_WQE_BYTES 1024
#define RINGS_TABLE     4u /* entries of an indirection table */

struct ring_cq {
    struct job *job;
    struct ibv_cq *ibv;
    struct mlx5dv_cq ring;
    uint32_t ci;
    /* of a compressed session: its title, the number of its CQEs, and how many were read */
    struct prm_cqe64 title[1];
    uint32_t session, read;
    uint32_t start; /* slot of the title */
};

/* A CQE. */
struct ring_cqe {
    uint8_t opcode;
    uint16_t wqe_counter, wqe_id;
    uint32_t byte_cnt, hash;
    bool has_vlan;
    uint16_t vlan;
};

struct ring_sq {
    struct job *job;
    bool has_swp, has_mpw; /* the HCA has the software parser, and WQEs of several packets */
    struct ibv_context *ctx;
    struct hv_uar uar;
    uint32_t tdn, tisn, sqn;
    uint8_t *blocks;
    uint32_t *record;
    uint16_t pi; /* in blocks */
};

/* log_strides 0: a cyclic queue, whose WQEs have one buffer of `bytes` each. */
struct ring_rq {
    struct job *job;
    struct ibv_context *ctx;
    uint32_t rqn, log_strides, log_stride, bytes, wqes;
    uint8_t *ring;
    uint32_t *record;
    struct span span; /* buffers, in the order of WQEs */
    uint16_t pi;
};

/* compressed: mini CQEs with hashes (MLX5DV_CQE_RES_FORMAT_HASH). */
void ring_cq_make(struct ring_cq *cq, struct job *job, struct sim_host *host, int size,
                  bool compressed);
void ring_cq_free(struct ring_cq *cq);
/* Takes the next CQE, if there is one. */
bool ring_cq_poll(struct ring_cq *cq, struct ring_cqe *cqe);

void ring_sq_make(struct ring_sq *sq, struct job *job, struct sim_host *host,
                  const struct ring_cq *cq);
void ring_sq_free(struct ring_sq *sq);
/* Posts a WQE of so many bytes, which begins with an empty control segment, and rings its doorbell.
 * Returns its number. */
uint16_t ring_sq_post(struct ring_sq *sq, uint8_t *wqe, size_t len, uint8_t opcode);
static inline unsigned ring_wqe_blocks(size_t len)
{
    return (unsigned)(len + 63) / 64;
}

void ring_rq_make(struct ring_rq *rq, struct job *job, struct sim_host *host,
                  const struct ring_cq *cq, bool strips);
void ring_rq_free(struct ring_rq *rq);
/* Posts the next WQE, whose buffer is free. */
void ring_rq_post(struct ring_rq *rq);

/* The way of received frames: a rule for the host's address, and a TIR that hashes them. */
struct ring_way {
    struct job *job;
    struct ibv_context *ctx;
    uint32_t tdn, rqtn, tirn;
    uint32_t table_id, group_id;
};

struct ring_hash {
    bool inner; /* of the packet in a tunnel */
    bool ipv6, udp;
    const uint8_t *key; /* 40 bytes */
};

void ring_way_make(struct ring_way *way, struct job *job, struct sim_host *host,
                   const uint32_t rqn[RINGS_TABLE], const struct ring_hash *hash);
void ring_way_free(struct ring_way *way);

#endif
