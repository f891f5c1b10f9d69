/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs library's objects on the two HCAs of the simulation tests, on virtual time.
 *
 * A context stands on each node's driver; what the library's own process half does (commands,
 * doorbells, progress, rings) is done here with that driver, one thread, no sleep. QPs are the
 * driver's: the objects under test are those around them.
 */
#ifndef HCASIM_TESTS_VERBS_TABLE_H
#define HCASIM_TESTS_VERBS_TABLE_H

#include "guest-lib/verbs/verbs.h"
#include "tests/sim/two_hcas.h"

struct hv_hca {
    struct two_hcas *world;
    struct node *node;
    int fail_cmd; /* errno with which the next command fails, or 0 */
};

struct verbs_table {
    struct two_hcas *t;
    struct hv_hca hca[2];
    struct hv_context *ctx[2];
    struct ibv_context *a, *b;
};

struct verbs_table *verbs_table_new(void);
/* Everything made on it must be gone. */
void verbs_table_free(struct verbs_table *v);

/* A QP of the driver that the library's CQs and SRQs know. */
struct table_qp {
    struct hv_qp hv;
    struct drv_qp *drv;
    struct drv_cq send_cq, recv_cq;
    struct drv_srq srq;
    struct hv_context *ctx;
};

/* side: 0 or 1. srq may be NULL. In RST. */
struct table_qp *table_qp_new(struct verbs_table *v, int side, struct ibv_cq *cq,
                              struct ibv_srq *srq, uint8_t st);
void table_qp_free(struct table_qp *qp);
void table_connect(struct verbs_table *v, struct table_qp *a, struct table_qp *b);
/* Posts; the completion carries wr_id. */
void table_send(struct table_qp *qp, const struct drv_send *send, uint64_t wr_id);
void table_recv(struct table_qp *qp, const struct drv_sge *sge, unsigned num_sge, uint64_t wr_id);

/* Whose rings the next objects have: side 0 at first. */
void table_use(int side);
/* Memory that the device of that side reaches. */
void *table_alloc(struct verbs_table *v, int side, size_t size);
void table_free(void *ptr, size_t size);
/* The next completion; there must be one within 100 virtual seconds. */
struct ibv_wc table_wc(struct verbs_table *v, struct ibv_cq *cq);

#endif
