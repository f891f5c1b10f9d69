/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements statements.h. */
#include "tests/programs/statements.h"
#include <time.h>
#include "tests/programs/own_wire.h"

struct ibv_context *ctx;
struct ibv_pd *pd, *other_pd;
bool in_guest;
static struct ibv_device **list;
static uint8_t gid_index = 1;

void open_device(void)
{
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
    ctx = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(ctx);
    pd = ibv_alloc_pd(ctx);
    other_pd = ibv_alloc_pd(ctx);
    ck_assert(pd && other_pd);
}

void close_device(void)
{
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other_pd), 0);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

struct ibv_ah_attr path(void)
{
    struct ibv_ah_attr ah = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = gid_index, .hop_limit = 1}};

    ck_assert_int_eq(ibv_query_gid(ctx, 1, gid_index, &ah.grh.dgid), 0);
    return ah;
}

struct ibv_qp_attr rtr_attr(uint32_t dest)
{
    return (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = dest,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 1,
                                .ah_attr = path()};
}

void connect_to(struct ibv_qp *qp, uint32_t dest, unsigned access)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
    struct ibv_qp_attr rtr = rtr_attr(dest);
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 1};

    ck_assert_int_eq(ibv_modify_qp(qp, &init, INIT_MASK), 0);
    ck_assert_int_eq(ibv_modify_qp(qp, &rtr, RTR_MASK), 0);
    ck_assert_int_eq(ibv_modify_qp(qp, &rts, RTS_MASK), 0);
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct ibv_wc completion(struct ibv_cq *cq)
{
    double end = now() + SECONDS;
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc))) {
        ck_assert_msg(now() < end, "no completion");
    }
    ck_assert_int_eq(n, 1);
    return wc;
}

void expect_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    ck_assert_int_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    ck_assert_int_eq(attr.qp_state, state);
}

int run_statements(Suite *suite, const char *name, int argc, char **argv)
{
    if (argc > 1) {
        in_guest = true;
        gid_index = (uint8_t)atoi(argv[1]);
    }
    return run_on_own_wire(suite, name);
}
