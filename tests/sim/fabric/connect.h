/* SPDX-License-Identifier: BSD-2-Clause */
/* Two RC QPs become a connection. */
#ifndef HCASIM_TESTS_CONNECT_H
#define HCASIM_TESTS_CONNECT_H

#include "tests/sim/fabric/sim.h"

/* From RESET to RTS, each towards the other; the job's chance says with which path MTU, PSNs and
 * timeout. */
void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2]);

/* The same with a timeout that no storm outlasts. */
void connect_rc_patiently(struct job *job, struct sim_host *const host[2],
                          struct ibv_qp *const qp[2]);
/* To ERR, or to RESET. */
void connect_move(const struct job *job, struct ibv_qp *qp, enum ibv_qp_state state);

#endif
