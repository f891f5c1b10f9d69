/* SPDX-License-Identifier: BSD-2-Clause */
/* Two RC QPs become a connection. */
#ifndef HCASIM_TESTS_CONNECT_H
#define HCASIM_TESTS_CONNECT_H

#include "tests/sim/fabric/sim.h"

/* From RESET to RTS, each towards the other; the job's chance says with which path MTU, PSNs and
 * timeout. */
void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2]);

#endif
