/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared parts of the tests of dma-bufs: the region's size and rights, the checks of refused
 * registrations, and a peer that accesses the region. */
#ifndef HCASIM_TESTS_DMABUF_BENCH_H
#define HCASIM_TESTS_DMABUF_BENCH_H

#include <check.h>
#include "tests/verbs/verbs_table.h"

#define PAGE  4096u
#define SIZE  (16u * PAGE)
#define LOCAL ((int)IBV_ACCESS_LOCAL_WRITE)
#define ALL                                                                                        \
    (LOCAL | (int)IBV_ACCESS_REMOTE_WRITE | (int)IBV_ACCESS_REMOTE_READ |                          \
     (int)IBV_ACCESS_REMOTE_ATOMIC | (int)IBV_ACCESS_RELAXED_ORDERING)

/* The registration fails with this errno. */
static inline void dmabuf_refused(struct ibv_pd *pd, int fd, uint64_t offset, size_t length,
                                  uint64_t iova, int access, int err)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access));
    ck_assert_int_eq(errno, err);
}

/* The registrations of a dma-buf of SIZE bytes that ib_umem_dmabuf_get() refuses. */
static inline void dmabuf_bounds_are_checked(struct ibv_pd *pd, int fd)
{
    dmabuf_refused(pd, fd, 0, 0, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, 0, SIZE + 1, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, SIZE, 1, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, PAGE, SIZE, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, UINT64_MAX - PAGE + 1, 2 * PAGE, 0, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, PAGE, SIZE_MAX - PAGE, 0, LOCAL, EINVAL);
}

/* A connection of host 1 to the region's host, and a page of host 1's memory. */
struct dmabuf_peer {
    struct verbs_table *v;
    struct ibv_cq *cq, *own_cq;
    struct ibv_qp *qp, *own_qp;
    struct ibv_mr *page;
};

static inline struct dmabuf_peer dmabuf_peer_new(struct verbs_table *v)
{
    struct dmabuf_peer peer = {.v = v,
                               .cq = ibv_create_cq(v->a, 15, NULL, NULL, 0),
                               .own_cq = ibv_create_cq(v->b, 15, NULL, NULL, 0),
                               .page = table_mr_new(v, 1)};

    peer.qp = table_qp_new(v, 0, peer.cq, NULL);
    peer.own_qp = table_qp_new(v, 1, peer.own_cq, NULL);
    table_connect(v, peer.qp, peer.own_qp);
    return peer;
}

/* Transfers len bytes between the page and the region's address: a WRITE or a READ. */
static inline enum ibv_wc_status dmabuf_peer_does(const struct dmabuf_peer *peer,
                                                  enum ibv_wr_opcode opcode,
                                                  const struct ibv_mr *mr, uint64_t raddr,
                                                  unsigned len)
{
    struct ibv_sge sge = {(uintptr_t)peer->page->addr, len, peer->page->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {raddr, mr->rkey}};

    ck_assert_int_eq(ibv_post_send(peer->own_qp, &wr, &bad), 0);
    return table_wc(peer->v, peer->own_cq).status;
}

static inline void dmabuf_peer_free(const struct dmabuf_peer *peer)
{
    table_qp_free(peer->qp);
    table_qp_free(peer->own_qp);
    table_mr_free(peer->page);
    ck_assert_int_eq(ibv_destroy_cq(peer->cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(peer->own_cq), 0);
}

#endif
