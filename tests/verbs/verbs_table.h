/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs library's objects on two hosts in virtual time (tests/sim/verbs_hosts.h), with one
 * thread and no sleep. The tests can see the library's internals.
 */
#ifndef HCASIM_TESTS_VERBS_TABLE_H
#define HCASIM_TESTS_VERBS_TABLE_H

#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/sim/verbs_hosts.h"

struct verbs_table {
    struct verbs_hosts *hosts;
    struct hv_hca *hca[2];
    struct ibv_context *a, *b; /* contexts of hosts 0 and 1; reading their events does not block */
};

struct verbs_table *verbs_table_new(void);
/* The same on two hosts of the caller's, which verbs_table_free() frees. */
struct verbs_table *verbs_table_on(struct verbs_hosts *hosts);
/* Everything made on it must be destroyed. */
void verbs_table_free(struct verbs_table *v);

/* The next command to that host's device fails with this status (PRM_CMD_STATUS_), and never
 * reaches the device. */
void table_refuse(struct verbs_table *v, int side, uint8_t status);
/* As table_refuse(), for the command after n others. table_refuse_end() ends what has not come to
 * its command; true: it has not. */
void table_refuse_nth(struct verbs_table *v, int side, uint8_t status, unsigned n);
bool table_refuse_end(void);

/* Makes an RC QP in that host's PD; srq may be NULL. */
struct ibv_qp *table_qp_new(struct verbs_table *v, int side, struct ibv_cq *cq,
                            struct ibv_srq *srq);
void table_qp_free(struct ibv_qp *qp);
/* Connects a of host 0 to b of host 1. */
void table_connect(struct verbs_table *v, struct ibv_qp *a, struct ibv_qp *b);

/* Registers a page of the host, with all rights; it is freed with its region. */
struct ibv_mr *table_mr_new(struct verbs_table *v, int side);
void table_mr_free(struct ibv_mr *mr);

/* Zeroed memory of a program, registered as a umem. */
struct table_umem {
    uint8_t *ptr;
    struct mlx5dv_devx_umem *umem;
};
struct table_umem table_umem_new(struct ibv_context *context, size_t size);
void table_umem_free(struct table_umem *memory);

/* Makes an indirect key with room for 4 entries in that host's PD. flags:
 * MLX5DV_MKEY_INIT_ATTR_FLAGS_. */
struct mlx5dv_mkey *table_mkey_new(struct verbs_table *v, int side, uint32_t flags);

/* Makes reads of a channel's descriptor, or of a context's asynchronous events, non-blocking. */
void table_do_not_wait(int fd);

/* Lets a virtual second pass. */
void table_wait(struct verbs_table *v);
/* Returns the next completion, which must come within 100 virtual seconds. */
struct ibv_wc table_wc(struct verbs_table *v, struct ibv_cq *cq);

#endif
