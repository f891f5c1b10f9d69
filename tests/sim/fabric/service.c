/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements service.h. */
#include "tests/sim/fabric/service.h"
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/sim/fabric/connect.h"

#define DC_KEY    0x1122334455667788ull
#define SGES_MOST 8
#define QKEY      0x11111111
/* Data in a CQE is copied by the library, which may not know the address of a key. */
#define DV_FLAGS MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE

/* -- of DC ------------------------------------------------------------------------------------- */

struct ibv_qp *service_dc_qp(struct job *job, const struct sim_host *host, struct ibv_cq *cq,
                             struct ibv_srq *srq, unsigned window, unsigned sges)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {.max_send_wr = window, .max_send_sge = sges},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (srq ? 0 : IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
        .pd = host->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC |
                                                  MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = DV_FLAGS};
    struct ibv_qp *qp;

    if (srq) {
        attr.cap = (struct ibv_qp_cap){0};
    }
    dv.dc_init_attr.dc_type = srq ? MLX5DV_DCTYPE_DCT : MLX5DV_DCTYPE_DCI;
    dv.dc_init_attr.dct_access_key = srq ? DC_KEY : 0;
    qp = hv_dv_create_qp(host->ctx, &attr, &dv);
    sim_check(job, qp, "no DC QP: errno %d", errno);
    return qp;
}

/* Writes one request by ibv_wr_*(). */
static void service_write_wr(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
    switch (wr->opcode) {
    case IBV_WR_SEND:
        ibv_wr_send(qp);
        break;
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr->imm_data);
        break;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
        break;
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                                wr->wr.atomic.compare_add);
        break;
    default:
        ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                              wr->wr.atomic.compare_add, wr->wr.atomic.swap);
    }
}

int service_dc_post(struct ibv_qp *to, struct ibv_ah *ah, uint32_t dctn,
                    const struct ibv_send_wr *wr)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(to);
    struct mlx5dv_qp_ex *dv = hv_dv_ops.qp_ex_from_ibv_qp_ex(qp);

    ibv_wr_start(qp);
    for (; wr; wr = wr->next) {
        qp->wr_id = wr->wr_id;
        qp->wr_flags = wr->send_flags & ~(unsigned)IBV_SEND_INLINE;
        service_write_wr(qp, wr);
        mlx5dv_wr_set_dc_addr(dv, ah, dctn, DC_KEY);
        ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, wr->sg_list);
    }
    return ibv_wr_complete(qp);
}

static void service_make_ah(struct service *s, const struct sim_host *peer)
{
    struct ibv_ah_attr path = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = peer->config.gid[1], .sgid_index = 1, .hop_limit = 1}};

    s->ah = ibv_create_ah(s->host->pd, &path);
    sim_check(s->job, s->ah, "no AH: errno %d", errno);
}

/* -- of all ------------------------------------------------------------------------------------ */

static void service_make_srq(struct service *s, struct ibv_cq *cq, unsigned window, unsigned sges)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = window, .max_sge = sges},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                        .srq_type = IBV_SRQT_BASIC,
                                        .pd = s->host->pd};

    if (s->kind == SERVICE_XRC) {
        s->xrcd = ibv_open_xrcd(s->host->ctx, &domain);
        sim_check(s->job, s->xrcd, "no XRC domain: errno %d", errno);
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type = IBV_SRQT_XRC;
        attr.xrcd = s->xrcd;
        attr.cq = cq;
    }
    s->srq = ibv_create_srq_ex(s->host->ctx, &attr);
    sim_check(s->job, s->srq, "no SRQ: errno %d", errno);
    if (s->kind == SERVICE_XRC) {
        sim_must(s->job, ibv_get_srq_num(s->srq, &s->srqn));
    }
}

static struct ibv_qp *service_rc_qp(struct service *s, struct ibv_cq *cq, unsigned window,
                                    unsigned sges, enum ibv_qp_type type)
{
    bool responds = type == IBV_QPT_XRC_RECV, both = type == IBV_QPT_RC || type == IBV_QPT_UD;
    struct ibv_qp_init_attr_ex attr = {.send_cq = responds ? NULL : cq,
                                       .recv_cq = both ? cq : NULL,
                                       .srq = both ? s->srq : NULL,
                                       .cap = {.max_send_wr = window, .max_send_sge = sges},
                                       .qp_type = type,
                                       .comp_mask =
                                           responds ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
                                       .pd = responds ? NULL : s->host->pd,
                                       .xrcd = responds ? s->xrcd : NULL};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = DV_FLAGS};
    struct ibv_qp *qp;

    if (responds) {
        attr.cap = (struct ibv_qp_cap){0};
    }
    qp = hv_dv_create_qp(s->host->ctx, &attr, &dv);
    sim_check(s->job, qp, "no QP: errno %d", errno);
    return qp;
}

void service_make(struct service *s, const struct sim_host *peer, struct ibv_cq *cq,
                  unsigned window, unsigned sges)
{
    service_make_srq(s, cq, window, sges);
    switch (s->kind) {
    case SERVICE_DC:
        service_make_ah(s, peer);
        s->target = service_dc_qp(s->job, s->host, cq, s->srq, window, sges);
        s->qp = service_dc_qp(s->job, s->host, cq, NULL, window, sges);
        return;
    case SERVICE_UD:
        service_make_ah(s, peer);
        s->grh = sim_span(s->job, s->host, SERVICE_GRH);
        s->target = s->qp = service_rc_qp(s, cq, window, sges, IBV_QPT_UD);
        return;
    case SERVICE_XRC:
        s->target = service_rc_qp(s, cq, window, sges, IBV_QPT_XRC_RECV);
        s->qp = service_rc_qp(s, cq, window, sges, IBV_QPT_XRC_SEND);
        return;
    default:
        s->target = s->qp = service_rc_qp(s, cq, window, sges, IBV_QPT_RC);
    }
}

static void service_start_ud(const struct job *job, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

    sim_must(job, ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    sim_must(job, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    sim_must(job, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

void service_connect(struct service *const ends[2])
{
    struct job *job = ends[0]->job;
    struct sim_host *const host[2] = {ends[0]->host, ends[1]->host};
    struct ibv_qp *const qp[2] = {ends[0]->qp, ends[1]->qp};

    if (ends[0]->kind == SERVICE_RC) {
        connect_rc(job, host, qp);
        return;
    }
    if (ends[0]->kind == SERVICE_UD) {
        service_start_ud(job, qp[0]);
        service_start_ud(job, qp[1]);
        sim_note(job, "UD QP 0x%x and 0x%x", qp[0]->qp_num, qp[1]->qp_num);
        job->sim->tally.connections++;
        return;
    }
    for (unsigned e = 0; e < 2; e++) {
        struct ibv_qp *target = ends[!e]->target;
        uint32_t psn = (uint32_t)chance_from(&job->chance, 0xffff80, 0xffffff);

        if (ends[0]->kind == SERVICE_DC) {
            connect_dc(job, target, true);
            connect_dc(job, qp[e], false);
        } else {
            connect_xrc(job, target, true, qp[e], host[e], psn);
            connect_xrc(job, qp[e], false, target, host[!e], psn);
        }
    }
    sim_note(job, "connected: %s, QP 0x%x and 0x%x, targets 0x%x and 0x%x",
             ends[0]->kind == SERVICE_DC ? "DC" : "XRC", qp[0]->qp_num, qp[1]->qp_num,
             ends[0]->target->qp_num, ends[1]->target->qp_num);
    job->sim->tally.connections++;
}

void service_free(struct service *s)
{
    sim_must(s->job, ibv_destroy_qp(s->qp));
    sim_must(s->job, s->target != s->qp ? ibv_destroy_qp(s->target) : 0);
    sim_must(s->job, ibv_destroy_srq(s->srq));
    sim_must(s->job, s->xrcd ? ibv_close_xrcd(s->xrcd) : 0);
    sim_must(s->job, s->ah ? ibv_destroy_ah(s->ah) : 0);
    if (s->grh.mr) {
        sim_span_free(s->job, &s->grh);
    }
    *s = (struct service){.job = s->job, .host = s->host};
}

int service_send(const struct service *s, const struct service *peer, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    if (s->kind == SERVICE_DC) {
        return service_dc_post(s->qp, s->ah, peer->target->qp_num, wr);
    }
    if (s->kind == SERVICE_UD) {
        wr->wr.ud.ah = s->ah;
        wr->wr.ud.remote_qpn = peer->qp->qp_num;
        wr->wr.ud.remote_qkey = QKEY;
    } else {
        wr->qp_type.xrc.remote_srqn = peer->srqn;
    }
    return ibv_post_send(s->qp, wr, &bad);
}

int service_receive(const struct service *s, struct ibv_recv_wr *wr)
{
    struct ibv_sge list[SGES_MOST] = {{(uintptr_t)s->grh.at, SERVICE_GRH, 0}};
    struct ibv_recv_wr with_grh = *wr, *bad;

    if (s->kind != SERVICE_UD) {
        return ibv_post_srq_recv(s->srq, wr, &bad);
    }
    list[0].lkey = s->grh.mr->lkey;
    g_assert_cmpint(wr->num_sge, <, SGES_MOST);
    memcpy(list + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(*list));
    with_grh.sg_list = list;
    with_grh.num_sge++;
    return ibv_post_srq_recv(s->srq, &with_grh, &bad);
}
