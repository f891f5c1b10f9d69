/* SPDX-License-Identifier: BSD-2-Clause */
/* The side of rdma-core: a program that knows nothing of experimental verbs. */
#include <stdlib.h>
#include <infiniband/verbs.h>
#include "tests/programs/exp_sides.h"

static void *core_open(struct ibv_context *context, struct ibv_pd *pd)
{
    struct program *p = calloc(1, sizeof(*p));
    struct ibv_qp_init_attr qp = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};

    p->cq = ibv_create_cq(context, 15, p, NULL, 0);
    must("ibv_create_cq", p->cq);
    p->mr = ibv_reg_mr(pd, p->words, sizeof(p->words), IBV_ACCESS_LOCAL_WRITE);
    must("ibv_reg_mr", p->mr);
    qp.send_cq = qp.recv_cq = p->cq;
    p->qp = ibv_create_qp(pd, &qp);
    must("ibv_create_qp", p->qp);
    return p;
}

static struct ibv_qp *core_qp(void *program)
{
    return ((struct program *)program)->qp;
}

static void core_post_recv(void *program)
{
    struct program *p = program;
    struct ibv_sge sge = {(uintptr_t)&p->words[1], 4, p->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    must("ibv_post_recv", ibv_post_recv(p->qp, &wr, &bad) == 0);
}

static void core_send(void *program, uint32_t value)
{
    struct program *p = program;
    struct ibv_sge sge = {(uintptr_t)&p->words[0], 4, p->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    p->words[0] = value;
    must("ibv_post_send", ibv_post_send(p->qp, &wr, &bad) == 0);
}

static bool core_poll(void *program, bool *received, uint32_t *value)
{
    struct program *p = program;
    struct ibv_wc wc;
    int n = ibv_poll_cq(p->cq, 1, &wc);

    must("ibv_poll_cq", n >= 0);
    if (!n) {
        return false;
    }
    must("status", wc.status == IBV_WC_SUCCESS);
    *received = wc.opcode & IBV_WC_RECV;
    *value = p->words[1];
    return true;
}

static void core_close(void *program)
{
    struct program *p = program;

    must("ibv_destroy_qp", ibv_destroy_qp(p->qp) == 0);
    must("ibv_dereg_mr", ibv_dereg_mr(p->mr) == 0);
    must("ibv_destroy_cq", ibv_destroy_cq(p->cq) == 0);
    free(p);
}

const struct side core_side = {"rdma-core", core_open, core_qp,   core_post_recv,
                               core_send,   core_poll, core_close};
