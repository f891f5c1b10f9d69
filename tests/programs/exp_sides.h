/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two sides of tests/verbs/test_exp_both.c: one is compiled with the header of experimental
 * verbs, the other with rdma-core's alone. Neither sees the other's structures.
 */
#ifndef HCASIM_TESTS_PROGRAMS_EXP_SIDES_H
#define HCASIM_TESTS_PROGRAMS_EXP_SIDES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct ibv_context;
struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;

/* A program with a CQ, a QP and a buffer. */
struct program {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint32_t words[2]; /* sent, received */
};

/* Ends the process with errno if a call of a side failed. */
static inline void must(const char *call, bool is)
{
    if (!is) {
        perror(call);
        abort();
    }
}

/* A side makes such a program and uses it by the calls of its own header. */
struct side {
    const char *name;
    void *(*open)(struct ibv_context *context, struct ibv_pd *pd);
    struct ibv_qp *(*qp)(void *program);
    void (*post_recv)(void *program);
    void (*send)(void *program, uint32_t value);
    /* Takes a completion, if there is one: a receive writes its value. */
    bool (*poll)(void *program, bool *received, uint32_t *value);
    void (*close)(void *program);
};

extern const struct side exp_side, core_side;

#endif
