/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements outsider.h. */
#include "tests/sim/fabric/outsider.h"
#include <errno.h>
#include <string.h>
#include "tests/sim/fabric/connect.h"

#define LEN     64u
#define INLINE  256u /* bytes of a WQE for the description of a key */
#define LAY_WR  1
#define READ_WR 2

static void outsider_init(struct job *job, struct outsider *o, struct sim_host *host)
{
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = 2, .max_send_sge = 1, .max_inline_data = INLINE},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST};
    struct mlx5dv_mkey_init_attr key = {.create_flags =
                                            MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                                            MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE,
                                        .max_entries = 1};

    o->pd = ibv_alloc_pd(host->ctx);
    o->cq = ibv_create_cq(host->ctx, 2, NULL, NULL, 0);
    sim_check(job, o->pd && o->cq, "no PD or no CQ: errno %d", errno);
    attr.send_cq = attr.recv_cq = o->cq;
    attr.pd = key.pd = o->pd;
    o->qp = hv_dv_create_qp(host->ctx, &attr, &dv);
    sim_check(job, o->qp, "no QP: errno %d", errno);
    o->span = (struct span){.at = sim_memory(job->sim, 2 * LEN), .len = 2 * LEN};
    chance_fill(&job->chance, o->span.at, LEN);
    o->span.mr =
        ibv_reg_mr(o->pd, o->span.at, 2 * LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    o->key = hv_dv_create_mkey(&key);
    sim_check(job, o->span.mr && o->key, "no region or no key: errno %d", errno);
}

static void outsider_lay(struct job *job, struct outsider *o)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(o->qp);
    struct mlx5dv_qp_ex *dv = hv_dv_ops.qp_ex_from_ibv_qp_ex(qp);
    struct ibv_sge fragment = {(uintptr_t)o->span.at, LEN, o->span.mr->lkey};

    ibv_wr_start(qp);
    qp->wr_id = LAY_WR;
    qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mr_list(dv, o->key, IBV_ACCESS_REMOTE_READ, 1, &fragment);
    sim_must(job, ibv_wr_complete(qp));
}

void outsiders_init(struct job *job, struct outsider outsider[2])
{
    struct ibv_qp *qp[2];

    for (unsigned i = 0; i < 2; i++) {
        outsider_init(job, &outsider[i], job->host[i]);
        qp[i] = outsider[i].qp;
    }
    connect_rc_patiently(job, job->host, qp);
    outsider_lay(job, &outsider[0]);
    outsider_lay(job, &outsider[1]);
}

void outsiders_free(struct job *job, struct outsider outsider[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct outsider *o = &outsider[i];

        sim_must(job, ibv_destroy_qp(o->qp));
        sim_must(job, ibv_destroy_cq(o->cq));
        sim_must(job, hv_dv_destroy_mkey(o->key));
        sim_span_free(job, &o->span);
        sim_must(job, ibv_dealloc_pd(o->pd));
    }
}

static void outsider_take(struct job *job, struct outsider *o, const struct outsider *other,
                          const struct ibv_wc *wc)
{
    if (wc->wr_id == LAY_WR) {
        sim_check(job, wc->status == IBV_WC_SUCCESS, "a key is not laid over its memory: %s",
                  ibv_wc_status_str(wc->status));
        o->laid = true;
        return;
    }
    o->reads = false;
    o->broken = wc->status != IBV_WC_SUCCESS;
    if (o->broken) {
        sim_check(job, wc->status == IBV_WC_RETRY_EXC_ERR && sim_is_lossy(job->sim),
                  "a key of another protection domain is not good any more: %s",
                  ibv_wc_status_str(wc->status));
        return;
    }
    sim_check(job, !memcmp(o->span.at + LEN, other->span.at, LEN),
              "other bytes are read by a key than are there");
    job->sim->tally.checks++;
}

bool outsiders_step(struct job *job, struct outsider outsider[2])
{
    struct ibv_wc wc;
    bool did = false;

    for (unsigned i = 0; i < 2; i++) {
        while (ibv_poll_cq(outsider[i].cq, 1, &wc) > 0) {
            outsider_take(job, &outsider[i], &outsider[!i], &wc);
            did = true;
        }
    }
    return did;
}

void outsiders_look(struct job *job, struct outsider outsider[2], unsigned host)
{
    struct outsider *o = &outsider[!host];
    struct ibv_sge sge = {(uintptr_t)o->span.at + LEN, LEN, o->span.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = READ_WR,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr = {.rdma = {.remote_addr = 0, .rkey = outsider[host].key->rkey}}},
                       *bad;

    if (o->broken || outsider[host].broken || o->reads) {
        return;
    }
    memset(o->span.at + LEN, 0, LEN);
    o->reads = true;
    sim_must(job, ibv_post_send(o->qp, &wr, &bad));
}

bool outsiders_are_done(const struct outsider outsider[2])
{
    return outsider[0].laid && outsider[1].laid && !outsider[0].reads && !outsider[1].reads;
}
