/* SPDX-License-Identifier: BSD-2-Clause */
/* Two RC QPs become a connection. */
#ifndef HCASIM_TESTS_CONNECT_H
#define HCASIM_TESTS_CONNECT_H

#include "tests/sim/fabric/sim.h"

/* What both ends of a connection are told. [i]: of the i-th one. */
struct connect_terms {
    enum ibv_mtu mtu;
    uint32_t psn[2];
    unsigned denies[2]; /* rights that an end does not give the other */
    uint8_t timeout, max_reads, rnr_timer, retries, rnr_retries;
};

/* How long they wait for each other. */
enum connect_patience {
    CONNECT_USUAL,
    CONNECT_PATIENT, /* with a timeout that no storm outlasts */
    CONNECT_ANY,     /* and how many times, and for how many READs: anything that may do */
};

/* The job's chance says with which path MTU, PSNs, timeout and the rest. */
struct connect_terms connect_draw(struct job *job, enum connect_patience patience);
/* Both from RESET to RTR, each towards the other. Then each to RTS. */
void connect_to_rtr(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2],
                    const struct connect_terms *terms);
void connect_to_rts(const struct job *job, struct ibv_qp *const qp[2], unsigned nth,
                    const struct connect_terms *terms);

/* From RESET to RTS, each towards the other on terms that are drawn. */
void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2]);

/* The same with a timeout that no storm outlasts. */
void connect_rc_patiently(struct job *job, struct sim_host *const host[2],
                          struct ibv_qp *const qp[2]);
/* To ERR, or to RESET. */
void connect_move(const struct job *job, struct ibv_qp *qp, enum ibv_qp_state state);

#endif
