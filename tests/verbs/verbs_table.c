/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture of the verbs library's object tests, and what stands for its process half. */
#include "tests/verbs/verbs_table.h"
#include <string.h>

#define SQ_SIZE (1u << LOG_SQ)
#define RQ_SIZE (1u << LOG_RQ)

/* -- the process half ---------------------------------------------------------------------------
 */

int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len)
{
    memset(out, 0, out_len);
    if (hca->fail_cmd) {
        int err = hca->fail_cmd;

        hca->fail_cmd = 0;
        return err;
    }
    return hv_status_errno(drv_cmd(hca->node->drv, in, in_len, out, out_len));
}

int hv_umr(struct hv_hca *hca, uint32_t key, uint64_t mask, const void *mkc)
{
    return hv_status_errno(drv_umr(hca->node->drv, key, mask, mkc));
}

int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len)
{
    uint8_t out[16] = {0};

    return hv_cmd(hca, in, in_len, out, sizeof(out));
}

int hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value)
{
    struct drv *drv = hca->node->drv;

    drv->dev.ops->mmio_write(drv->dev.pci, bar_offset, value, 8);
    return 0;
}

bool hv_is_ours(struct hv_hca *hca)
{
    return true;
}

bool hv_progress(struct hv_hca *hca)
{
    return inproc_run_ready(hca->world->world);
}

struct drv *hv_drv(struct hv_hca *hca)
{
    return hca->node->drv;
}

/* A device reaches its own arena only, and rings are made without saying for whom. */
static struct verbs_table *table;
static int side_in_use;

void table_use(int side)
{
    side_in_use = side;
}

void *hv_ring_alloc(size_t size)
{
    return drv_alloc(table->hca[side_in_use].node->drv, size).ptr;
}

void hv_ring_free(void *ptr, size_t size)
{
    struct drv_mem mem = {.ptr = ptr, .bus = (uintptr_t)ptr, .size = size};

    for (int i = 0; i < 2; i++) {
        struct node *node = table->hca[i].node;

        if ((uint8_t *)ptr >= node->hca->arena &&
            (uint8_t *)ptr < node->hca->arena + INPROC_ARENA_SIZE) {
            drv_free(node->drv, &mem);
            return;
        }
    }
    g_assert_not_reached();
}

uint32_t *hv_dbrec_alloc(struct hv_context *ctx)
{
    return drv_alloc(ctx->hca->node->drv, 64).ptr;
}

void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec)
{
    struct drv_mem mem = {.ptr = dbrec, .bus = (uintptr_t)dbrec, .size = 64};

    drv_free(ctx->hca->node->drv, &mem);
}

void hv_event_add_cq(struct hv_hca *hca, struct hv_cq *cq)
{
}

void hv_event_del_cq(struct hv_hca *hca, struct hv_cq *cq)
{
}

void hv_event_add_srq(struct hv_hca *hca, struct hv_srq *srq)
{
}

void hv_event_del_srq(struct hv_hca *hca, struct hv_srq *srq)
{
}

void hv_event_drain_cq(struct hv_cq *cq)
{
}

void hv_event_drain_srq(struct hv_srq *srq)
{
}

/* -- contexts -----------------------------------------------------------------------------------
 */

static struct hv_context *context_new(struct hv_hca *hca)
{
    struct hv_context *ctx = g_new0(struct hv_context, 1);
    uint32_t first;

    ctx->hca = hca;
    ctx->file = hv_file_new();
    ctx->uar.page = hca->node->drv->uarn;
    ctx->ibv.sz = sizeof(ctx->ibv);
    ctx->ibv.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ctx->ibv.context.num_comp_vectors = 1;
    pthread_mutex_init(&ctx->ibv.context.mutex, NULL);
    hv_pd_ops(&ctx->ibv);
    hv_mr_ops(&ctx->ibv);
    hv_mw_ops(&ctx->ibv);
    hv_cq_ops(&ctx->ibv);
    hv_srq_ops(&ctx->ibv);
    hv_xrcd_ops(&ctx->ibv);
    /* the driver's QPs have no index 0 */
    first = (uint32_t)hv_uidx_alloc(ctx, HV_RSC_QP, NULL);
    g_assert_cmpuint(first, ==, 0);
    return ctx;
}

struct verbs_table *verbs_table_new(void)
{
    struct verbs_table *v = g_new0(struct verbs_table, 1);

    v->t = two_hcas_new(NULL);
    for (int i = 0; i < 2; i++) {
        v->hca[i].world = v->t;
        v->hca[i].node = i ? &v->t->b : &v->t->a;
        v->ctx[i] = context_new(&v->hca[i]);
    }
    table = v;
    table_use(0);
    v->a = &v->ctx[0]->ibv.context;
    v->b = &v->ctx[1]->ibv.context;
    return v;
}

void verbs_table_free(struct verbs_table *v)
{
    for (int i = 0; i < 2; i++) {
        hv_uidx_fini(v->ctx[i]);
        hv_file_close(v->ctx[i]->file);
        g_free(v->ctx[i]);
    }
    two_hcas_free(v->t);
    g_free(v);
}

/* -- queue pairs --------------------------------------------------------------------------------
 */

struct table_qp *table_qp_new(struct verbs_table *v, int side, struct ibv_cq *cq,
                              struct ibv_srq *srq, uint8_t st)
{
    struct table_qp *qp = g_new0(struct table_qp, 1);
    struct node *node = v->hca[side].node;
    struct drv_qp_attr attr = {
        .st = st,
        .pdn = node->drv->pdn,
        .send_cq = &qp->send_cq,
        .recv_cq = &qp->recv_cq,
        .srq = srq ? &qp->srq : NULL,
        .log_sq = LOG_SQ,
        .log_rq = LOG_RQ,
        .max_recv_sge = 4,
    };

    qp->ctx = v->ctx[side];
    qp->send_cq.cqn = qp->recv_cq.cqn = hv_cq(cq)->cqn;
    qp->hv.ibv.context = cq->context;
    qp->hv.ibv.send_cq = qp->hv.ibv.recv_cq = cq;
    qp->hv.ibv.srq = srq;
    if (srq) {
        qp->srq.srqn = hv_srq(srq)->srqn;
    }
    qp->hv.uidx = hv_uidx_alloc(qp->ctx, HV_RSC_QP, &qp->hv);
    attr.user_index = (uint32_t)qp->hv.uidx;
    qp->hv.sq.wqe_cnt = SQ_SIZE;
    qp->hv.sq.wrid = g_new0(uint64_t, SQ_SIZE);
    qp->hv.sq.wr_data = g_new0(uint8_t, SQ_SIZE);
    qp->hv.sq_wqe_head = g_new0(uint32_t, SQ_SIZE);
    qp->hv.rq.wqe_cnt = srq ? 0 : RQ_SIZE;
    qp->hv.rq.wrid = g_new0(uint64_t, RQ_SIZE);
    qp->drv = g_new0(struct drv_qp, 1);
    g_assert_cmpint(drv_create_qp(node->drv, &attr, qp->drv), ==, 0);
    return qp;
}

void table_qp_free(struct table_qp *qp)
{
    struct hv_cq *cq = hv_cq(qp->hv.ibv.send_cq);
    struct ibv_srq *srq = qp->hv.ibv.srq;

    g_assert_cmpint(drv_destroy_qp(qp->drv), ==, 0);
    hv_cq_lock_pair(cq, cq);
    hv_cq_clean(cq, (uint32_t)qp->hv.uidx, srq ? hv_srq(srq) : NULL);
    hv_uidx_free(qp->ctx, (uint32_t)qp->hv.uidx);
    hv_cq_unlock_pair(cq, cq);
    g_free(qp->hv.sq.wrid);
    g_free(qp->hv.sq.wr_data);
    g_free(qp->hv.sq_wqe_head);
    g_free(qp->hv.rq.wrid);
    g_free(qp->drv);
    g_free(qp);
}

void table_connect(struct verbs_table *v, struct table_qp *a, struct table_qp *b)
{
    connect_qps(a->ctx->hca->node, a->drv, b->ctx->hca->node, b->drv, NULL);
}

void table_send(struct table_qp *qp, const struct drv_send *send, uint64_t wr_id)
{
    unsigned index = qp->drv->sq_pi & (SQ_SIZE - 1);

    qp->hv.sq.wrid[index] = wr_id;
    qp->hv.sq_wqe_head[index] = qp->hv.sq.head++;
    drv_post_send(qp->drv, send);
}

void table_recv(struct table_qp *qp, const struct drv_sge *sge, unsigned num_sge, uint64_t wr_id)
{
    qp->hv.rq.wrid[qp->drv->rq_pi & (RQ_SIZE - 1)] = wr_id;
    qp->hv.rq.head++;
    drv_post_recv(qp->drv, sge, num_sge);
}

void *table_alloc(struct verbs_table *v, int side, size_t size)
{
    table_use(side);
    return hv_ring_alloc(size);
}

void table_free(void *ptr, size_t size)
{
    hv_ring_free(ptr, size);
}

struct ibv_wc table_wc(struct verbs_table *v, struct ibv_cq *cq)
{
    uint64_t limit = v->t->world->now_ns + 100 * SECOND;
    struct ibv_wc wc;

    while (!ibv_poll_cq(cq, 1, &wc)) {
        require(inproc_step(v->t->world, limit), "no completion within 100 s");
    }
    return wc;
}
