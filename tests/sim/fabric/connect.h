/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects two RC QPs. */
#ifndef HCASIM_TESTS_CONNECT_H
#define HCASIM_TESTS_CONNECT_H

#include "tests/sim/fabric/sim.h"

/* The attributes of both ends of a connection. [i]: of the i-th end. */
struct connect_terms {
    enum ibv_mtu mtu;
    uint32_t psn[2];
    unsigned denies[2]; /* rights that an end does not grant to the other end */
    uint8_t timeout, max_reads, rnr_timer, retries, rnr_retries;
};

/* How long the ends wait for each other. */
enum connect_patience {
    CONNECT_USUAL,
    CONNECT_PATIENT, /* with a timeout that no storm outlasts */
    CONNECT_ANY,     /* any values that may work, also of the retries and of the number of READs */
};

/* Draws path MTU, PSNs, timeout and the rest from the job's chance. */
struct connect_terms connect_draw(struct job *job, enum connect_patience patience);
/* connect_to_rtr() takes both QPs from RESET to RTR, each towards the other; connect_to_rts() takes
 * one of them to RTS. */
void connect_to_rtr(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2],
                    const struct connect_terms *terms);
void connect_to_rts(const struct job *job, struct ibv_qp *const qp[2], unsigned nth,
                    const struct connect_terms *terms);

/* Takes both QPs from RESET to RTS, towards each other, with drawn terms. */
void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2]);

/* The same with a timeout that no storm outlasts. */
void connect_rc_patiently(struct job *job, struct sim_host *const host[2],
                          struct ibv_qp *const qp[2]);
/* Take an initiator or a target from RESET to the state in which it works. */
void connect_xrc(const struct job *job, struct ibv_qp *qp, bool is_target,
                 const struct ibv_qp *peer, const struct sim_host *peer_host, uint32_t psn);
void connect_dc(const struct job *job, struct ibv_qp *qp, bool target);
/* Moves a QP to ERR or to RESET. */
void connect_move(const struct job *job, struct ibv_qp *qp, enum ibv_qp_state state);

#endif
