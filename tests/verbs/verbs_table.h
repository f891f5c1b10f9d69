/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs library's objects on two hosts in virtual time (tests/sim/verbs_hosts.h), one thread,
 * no sleep, with a view of the library's inside.
 */
#ifndef HCASIM_TESTS_VERBS_TABLE_H
#define HCASIM_TESTS_VERBS_TABLE_H

#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/sim/verbs_hosts.h"

struct verbs_table {
    struct verbs_hosts *hosts;
    struct hv_hca *hca[2];
    struct ibv_context *a, *b; /* of hosts 0 and 1; nothing that reads their events waits */
};

struct verbs_table *verbs_table_new(void);
/* Everything made on it must be gone. */
void verbs_table_free(struct verbs_table *v);

/* The next command to that host's device is answered with this status (PRM_CMD_STATUS_), and never
 * gets there. */
void table_refuse(struct verbs_table *v, int side, uint8_t status);

/* An RC QP in the PD of that host; srq may be NULL. */
struct ibv_qp *table_qp_new(struct verbs_table *v, int side, struct ibv_cq *cq,
                            struct ibv_srq *srq);
void table_qp_free(struct ibv_qp *qp);
/* a of host 0 to b of host 1. */
void table_connect(struct verbs_table *v, struct ibv_qp *a, struct ibv_qp *b);

/* A registered page of the host, with all rights; freed with its region. */
struct ibv_mr *table_mr_new(struct verbs_table *v, int side);
void table_mr_free(struct ibv_mr *mr);

/* A channel, or a context's asynchronous events, whose reader does not wait. */
void table_do_not_wait(int fd);

/* Everything that happens within a virtual second. */
void table_wait(struct verbs_table *v);
/* The next completion; there must be one within 100 virtual seconds. */
struct ibv_wc table_wc(struct verbs_table *v, struct ibv_cq *cq);

#endif
