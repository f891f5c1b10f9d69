/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of a peer; see peer_queues.h. */
#include "tests/verbs/peer_queues.h"

struct peer_queues pq;

struct ibv_qp *pq_try_qp(struct ibv_exp_peer_direct_attr *attr, struct ibv_cq *cq)
{
    struct ibv_exp_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_PEER_DIRECT,
        .pd = pq.v->hosts->host[0].pd,
        .peer_direct_attrs = attr,
    };

    errno = 0;
    return ibv_exp_create_qp(pq.v->a, &init);
}

struct ibv_cq *pq_try_cq(struct ibv_exp_peer_direct_attr *attr, int cqe)
{
    struct ibv_exp_cq_init_attr init = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_PEER_DIRECT,
                                        .peer_direct_attrs = attr};

    errno = 0;
    return ibv_exp_create_cq(pq.v->a, cqe, NULL, NULL, 0, &init);
}

void pq_connect_queues(void)
{
    table_connect(pq.v, pq.qp, pq.far_qp);
}

void pq_make_queues(uint64_t caps, bool allocates)
{
    peer_device_init(&pq.peer, caps, allocates);
    pq_make_queues_for_peer();
}

void pq_make_queues_for_peer(void)
{
    pq.cq = pq_try_cq(&pq.peer.attr, CQES - 1);
    ck_assert_ptr_nonnull(pq.cq);
    pq.qp = pq_try_qp(&pq.peer.attr, pq.cq);
    ck_assert_ptr_nonnull(pq.qp);
    pq.far_cq = ibv_create_cq(pq.v->b, CQES - 1, NULL, NULL, 0);
    pq.far_qp = table_qp_new(pq.v, 1, pq.far_cq, NULL);
    pq_connect_queues();
}

void pq_free_queues(void)
{
    table_qp_free(pq.qp);
    table_qp_free(pq.far_qp);
    ck_assert_int_eq(ibv_destroy_cq(pq.cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(pq.far_cq), 0);
    ck_assert_uint_eq(pq.peer.areas, 0);
    ck_assert_uint_eq(pq.peer.buffers, 0);
    pq.qp = NULL;
}

void pq_setup(void)
{
    pq.v = verbs_table_new();
    pq.near = table_mr_new(pq.v, 0);
    pq.far = table_mr_new(pq.v, 1);
    memset(pq.far->addr, 0, 8);
}

void pq_setup_queues(void)
{
    pq_setup();
    pq_make_queues(PEER_CAPS_NOR, true);
}

void pq_teardown(void)
{
    table_mr_free(pq.near);
    table_mr_free(pq.far);
    verbs_table_free(pq.v);
}

void pq_teardown_queues(void)
{
    pq_free_queues();
    pq_teardown();
}

/* -- posting ----------------------------------------------------------------------------------- */

int pq_try_post(uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)pq.near->addr, 8, pq.near->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)pq.far->addr,
                                           .compare_add = 1,
                                           .rkey = pq.far->rkey}},
                       *bad;

    return ibv_post_send(pq.qp, &wr, &bad);
}

void pq_post(uint64_t wr_id)
{
    ck_assert_int_eq(pq_try_post(wr_id), 0);
}

struct peer_list pq_commit(uint64_t *id)
{
    struct peer_list list;

    ck_assert_int_eq(peer_list_commit(&list, pq.qp, id), 0);
    return list;
}

struct peer_list pq_commit_one(uint64_t wr_id, uint64_t *id)
{
    pq_post(wr_id);
    return pq_commit(id);
}

void pq_run(struct peer_list *list)
{
    list->done = 0;
    ck_assert(peer_list_run(list));
}

int pq_roll_back(uint64_t id, uint32_t flags)
{
    struct ibv_exp_rollback_ctx rollback = {.rollback_id = id, .flags = flags};

    return ibv_exp_rollback_qp(pq.qp, &rollback);
}

/* The requests that the device has executed, when all is done that can be. */
uint64_t pq_executed(void)
{
    uint64_t count;

    table_wait(pq.v);
    memcpy(&count, pq.far->addr, sizeof(count));
    return count;
}

void pq_expect_wc(uint64_t wr_id)
{
    struct ibv_wc wc;

    ck_assert_int_eq(ibv_poll_cq(pq.cq, 1, &wc), 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(wc.wr_id, wr_id);
}

void pq_expect_no_wc(void)
{
    struct ibv_wc wc;

    errno = 0;
    ck_assert_int_eq(ibv_poll_cq(pq.cq, 1, &wc), 0);
    ck_assert_int_eq(errno, 0);
}

/* "Poll CQ requests to poll the CQ entry will fail with an error": no completion, and EBUSY. */
void pq_expect_blocked(void)
{
    struct ibv_wc wc;

    errno = 0;
    ck_assert_int_eq(ibv_poll_cq(pq.cq, 1, &wc), 0);
    ck_assert_int_eq(errno, EBUSY);
}

uint32_t pq_record(void)
{
    return GUINT32_FROM_BE(hv_qp(pq.qp)->dbrec[1]);
}
