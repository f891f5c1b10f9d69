/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side of experimental verbs: everything goes through ibv_exp_ calls. It uses nothing that the
 * header of MLNX_OFED 4.6 does not have, so it can be compiled with that header, too.
 */
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <infiniband/verbs_exp.h>
#include "tests/programs/exp_sides.h"

static void *exp_open(struct ibv_context *context, struct ibv_pd *pd)
{
    struct program *p = calloc(1, sizeof(*p));
    const uint32_t asked = IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | IBV_EXP_DEVICE_ATTR_MASKED_ATOMICS;
    struct ibv_exp_device_attr device;
    struct ibv_exp_cq_init_attr cq = {0};
    struct ibv_exp_qp_init_attr qp = {0};

    memset(&device, 0, sizeof(device));
    device.comp_mask = asked;
    must("ibv_exp_query_device", ibv_exp_query_device(context, &device) == 0);
    must("comp_mask", (device.comp_mask & asked) == asked);
    must("NOP", device.exp_device_cap_flags & IBV_EXP_DEVICE_NOP);
    p->cq = ibv_exp_create_cq(context, 15, p, NULL, 0, &cq);
    must("ibv_exp_create_cq", p->cq != NULL);
    p->mr = ibv_reg_mr(pd, p->words, sizeof(p->words), IBV_ACCESS_LOCAL_WRITE);
    must("ibv_reg_mr", p->mr != NULL);
    qp.send_cq = qp.recv_cq = p->cq;
    qp.cap.max_send_wr = qp.cap.max_recv_wr = 4;
    qp.cap.max_send_sge = qp.cap.max_recv_sge = 1;
    qp.qp_type = IBV_QPT_RC;
    qp.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG;
    qp.pd = pd;
    qp.max_atomic_arg = 8;
    p->qp = ibv_exp_create_qp(context, &qp);
    must("ibv_exp_create_qp", p->qp != NULL);
    return p;
}

static struct ibv_qp *exp_qp(void *program)
{
    return ((struct program *)program)->qp;
}

static void exp_post_recv(void *program)
{
    struct program *p = program;
    struct ibv_sge sge = {(uintptr_t)&p->words[1], 4, p->mr->lkey};
    struct ibv_recv_wr wr, *bad;

    memset(&wr, 0, sizeof(wr));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    must("ibv_post_recv", ibv_post_recv(p->qp, &wr, &bad) == 0);
}

static void exp_send(void *program, uint32_t value)
{
    struct program *p = program;
    struct ibv_sge sge = {(uintptr_t)&p->words[0], 4, p->mr->lkey};
    struct ibv_exp_send_wr wr, *bad;

    p->words[0] = value;
    memset(&wr, 0, sizeof(wr));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.exp_opcode = IBV_EXP_WR_SEND;
    wr.exp_send_flags = IBV_EXP_SEND_SIGNALED;
    must("ibv_exp_post_send", ibv_exp_post_send(p->qp, &wr, &bad) == 0);
}

static bool exp_poll(void *program, bool *received, uint32_t *value)
{
    struct program *p = program;
    struct ibv_exp_wc wc;
    int n = ibv_exp_poll_cq(p->cq, 1, &wc, sizeof(wc));

    must("ibv_exp_poll_cq", n >= 0);
    if (!n) {
        return false;
    }
    must("status", wc.status == IBV_WC_SUCCESS);
    must("qp", (wc.exp_wc_flags & IBV_EXP_WC_QP) && wc.qp == p->qp);
    *received = wc.exp_opcode & IBV_EXP_WC_RECV;
    *value = p->words[1];
    return true;
}

static void exp_close(void *program)
{
    struct program *p = program;

    must("ibv_destroy_qp", ibv_destroy_qp(p->qp) == 0);
    must("ibv_dereg_mr", ibv_dereg_mr(p->mr) == 0);
    must("ibv_destroy_cq", ibv_destroy_cq(p->cq) == 0);
    free(p);
}

const struct side exp_side = {
    "experimental verbs", exp_open, exp_qp, exp_post_recv, exp_send, exp_poll, exp_close};
