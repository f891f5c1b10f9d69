/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs of statements share: a device, a connection, the wait for a completion, and main().
 *
 * Such a program uses Check to state what any verbs program sees. It uses libibverbs only, so the
 * same must hold with a kernel and without a VM. It has one process and one device, whose QPs are
 * connected to each other.
 */
#ifndef HCASIM_TESTS_PROGRAMS_STATEMENTS_H
#define HCASIM_TESTS_PROGRAMS_STATEMENTS_H

#include <check.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS  30 /* time limit for any answer; only a failing test waits that long */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define REMOTE   (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

#define INIT_MASK                                                                                  \
    (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) /* of connected QPs */
#define RTR_MASK                                                                                   \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                                   \
    (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |         \
     IBV_QP_MAX_QP_RD_ATOMIC)

extern struct ibv_context *ctx;
extern struct ibv_pd *pd, *other_pd; /* two protection domains */
extern bool in_guest;                /* a kernel driver is between the program and the device */

void open_device(void);
/* Everything made on the device must be destroyed before. */
void close_device(void);

/* Returns the path from the device to itself. */
struct ibv_ah_attr path(void);
/* Returns the attributes for RTR, towards a QP of the same device. */
struct ibv_qp_attr rtr_attr(uint32_t dest);
/* Moves a QP from RESET to RTS, with one retry of each kind. access: the peer's rights. */
void connect_to(struct ibv_qp *qp, uint32_t dest, unsigned access);

/* Returns the seconds since some fixed moment. */
double now(void);
/* Returns the next completion, which must come within SECONDS. */
struct ibv_wc completion(struct ibv_cq *cq);
void expect_state(struct ibv_qp *qp, enum ibv_qp_state state);

/* The end of main(): runs the suite on its own wire. Usage of such a program: PROGRAM [INDEX].
 * INDEX is the index of a RoCEv2 GID, in a guest. */
int run_statements(Suite *suite, const char *name, int argc, char **argv);

#endif
