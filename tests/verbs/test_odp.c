/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests on-demand paging: regions whose pages the device asks for, in both schemes of page faults.
 * The pager works when the world is stepped, between the calls of the program.
 */
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/odp_internal.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define PAGE  4096
#define PAGES 64
#define LEN   ((size_t)PAGES * PAGE)
#define ALL                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)
#define ODP (ALL | IBV_ACCESS_ON_DEMAND)

/* The transport scheme and the memory scheme. */
static const char *const profiles[] = {"cx5", "cx7"};

static struct verbs_table *v;
static struct ibv_pd *pd[2];
static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];
static uint8_t *mem[2]; /* of each host: LEN bytes that no CPU has touched */

static void begin(int profile)
{
    struct ibv_qp_cap cap = {
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4};

    v = verbs_table_on(verbs_hosts_new_as(2, NULL, profiles[profile]));
    for (int i = 0; i < 2; i++) {
        pd[i] = v->hosts->host[i].pd;
        cq[i] = ibv_create_cq(i ? v->b : v->a, 63, NULL, NULL, 0);
        qp[i] = verbs_qp(&v->hosts->host[i], IBV_QPT_RC, cq[i], NULL, &cap);
        mem[i] = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(mem[i], MAP_FAILED);
    }
    table_connect(v, qp[0], qp[1]);
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        table_qp_free(qp[i]);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
        munmap(mem[i], LEN);
    }
    verbs_table_free(v);
}

static const struct odp *paging(int side)
{
    ck_assert_ptr_nonnull(v->hca[side]->odp);
    return v->hca[side]->odp;
}

static struct ibv_mr *reg(int side, void *addr, size_t len, unsigned access)
{
    struct ibv_mr *mr = ibv_reg_mr(pd[side], addr, len, (int)access);

    ck_assert_msg(mr != NULL, "errno %d", errno);
    return mr;
}

static void fill(uint8_t *at, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) {
        at[i] = (uint8_t)(i * 31 + i / 251 + seed);
    }
}

static void post_send(int side, enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge,
                      uint64_t raddr, uint32_t rkey)
{
    struct ibv_send_wr wr = {.opcode = opcode,
                             .sg_list = sge,
                             .num_sge = num_sge,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = raddr, .rkey = rkey}};
    struct ibv_send_wr *bad;

    ck_assert_int_eq(ibv_post_send(qp[side], &wr, &bad), 0);
}

static void post_recv(int side, struct ibv_mr *mr, void *addr, size_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = (uint32_t)len, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_recv(qp[side], &wr, &bad), 0);
}

static void post_srq_recv(struct ibv_srq *srq, struct ibv_mr *mr, void *addr, size_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = (uint32_t)len, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static enum ibv_wc_status rdma(enum ibv_wr_opcode opcode, struct ibv_mr *local, void *at,
                               struct ibv_mr *remote, void *there, size_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t)at, .length = (uint32_t)len, .lkey = local->lkey};

    post_send(0, opcode, &sge, 1, (uintptr_t)there, remote->rkey);
    return table_wc(v, cq[0]).status;
}

/* -- capabilities ------------------------------------------------------------------------------ */

START_TEST(a_device_says_what_may_be_paged)
{
    const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                        IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
    struct ibv_device_attr_ex attr;

    begin(_i);
    ck_assert_int_eq(ibv_query_device_ex(v->a, NULL, &attr), 0);
    ck_assert_uint_eq(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.rc_odp_caps, rc);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.uc_odp_caps, 0);
    ck_assert_uint_eq(attr.odp_caps.per_transport_caps.ud_odp_caps,
                      IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV);
    ck_assert_uint_eq(attr.xrc_odp_caps, rc);
    end();
}
END_TEST

/* -- traffic ----------------------------------------------------------------------------------- */

/* Both ends of a WRITE and of a READ are paged, and no page was ever touched by a CPU. */
START_TEST(a_region_begins_without_pages)
{
    struct ibv_mr *mr[2];

    begin(_i);
    mr[0] = reg(0, mem[0], LEN, ODP);
    mr[1] = reg(1, mem[1], LEN, ODP);
    fill(mem[0], LEN, 1);
    ck_assert_uint_eq(paging(0)->stats.events, 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    ck_assert_uint_ge(paging(0)->stats.faults, PAGES);
    ck_assert_uint_ge(paging(1)->stats.faults, PAGES);
    fill(mem[1], LEN, 2);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    end();
}
END_TEST

START_TEST(pages_stay_until_they_are_invalidated)
{
    struct ibv_mr *mr[2];
    uint64_t events;

    begin(_i);
    mr[0] = reg(0, mem[0], LEN, ODP);
    mr[1] = reg(1, mem[1], LEN, ODP);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    events = paging(1)->stats.events;
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_uint_eq(paging(1)->stats.events, events);
    /* new pages: the device must not write to the old ones, and asks again */
    ck_assert_int_eq(madvise(mem[1], LEN / 2, MADV_DONTNEED), 0);
    hv_odp_changed((uintptr_t)mem[1], LEN / 2);
    table_wait(v);
    ck_assert_uint_eq(paging(1)->stats.invalidations, PAGES / 2);
    fill(mem[0], LEN, 3);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_uint_gt(paging(1)->stats.events, events);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    end();
}
END_TEST

START_TEST(sends_and_receives_are_paged)
{
    struct ibv_mr *mr[2];

    begin(_i);
    mr[0] = reg(0, mem[0], LEN, ODP);
    mr[1] = reg(1, mem[1], LEN, ODP);
    fill(mem[0], LEN, 4);
    for (int i = 0; i < 4; i++) {
        struct ibv_sge sge[2] = {
            {.addr = (uintptr_t)mem[0] + i * 8 * PAGE, .length = 3 * PAGE + 7, .lkey = mr[0]->lkey},
            {.addr = (uintptr_t)mem[0] + i * 8 * PAGE + 3 * PAGE + 7,
             .length = PAGE,
             .lkey = mr[0]->lkey}};

        post_recv(1, mr[1], mem[1] + i * 8 * PAGE, 8 * PAGE);
        post_send(0, IBV_WR_SEND, sge, 2, 0, 0);
        ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(table_wc(v, cq[1]).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(memcmp(mem[0] + i * 8 * PAGE, mem[1] + i * 8 * PAGE, 4 * PAGE + 7), 0);
    }
    ck_assert_uint_gt(paging(0)->stats.events, 0);
    ck_assert_uint_gt(paging(1)->stats.events, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    end();
}
END_TEST

START_TEST(receives_of_an_srq_are_paged)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_mr *local, *remote;
    struct ibv_srq *srq;
    struct ibv_qp *a, *b;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP);
    srq = ibv_create_srq(pd[1], &attr);
    ck_assert_ptr_nonnull(srq);
    a = table_qp_new(v, 0, cq[0], NULL);
    b = table_qp_new(v, 1, cq[1], srq);
    table_connect(v, a, b);
    fill(mem[0], LEN, 11);
    for (size_t i = 0; i < 4; i++) {
        struct ibv_sge sge = {
            .addr = (uintptr_t)mem[0] + i * 3000, .length = 3 * PAGE, .lkey = local->lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;

        post_srq_recv(srq, remote, mem[1] + 8 * i * PAGE + 100, 4 * PAGE);
        ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
        ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(table_wc(v, cq[1]).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(memcmp(mem[0] + i * 3000, mem[1] + 8 * i * PAGE + 100, 3 * PAGE), 0);
    }
    ck_assert_uint_ge(paging(1)->stats.events, 4);
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

START_TEST(atomics_are_paged)
{
    struct ibv_mr *mr[2];
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge sge;
    struct ibv_send_wr *bad;

    begin(_i);
    mr[0] = reg(0, mem[0], LEN, ODP);
    mr[1] = reg(1, mem[1], LEN, ODP);
    for (int i = 0; i < 2; i++) {
        sge = (struct ibv_sge){.addr = (uintptr_t)mem[0], .length = 8, .lkey = mr[0]->lkey};
        wr.sg_list = &sge;
        wr.wr.atomic.remote_addr = (uintptr_t)mem[1] + 5 * PAGE;
        wr.wr.atomic.rkey = mr[1]->rkey;
        wr.wr.atomic.compare_add = 7;
        ck_assert_int_eq(ibv_post_send(qp[0], &wr, &bad), 0);
        ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
        ck_assert_uint_eq(*(uint64_t *)mem[0], 7u * (unsigned)i);
        ck_assert_uint_eq(*(uint64_t *)(mem[1] + 5 * PAGE), 7u * (unsigned)(i + 1));
    }
    ck_assert_uint_gt(paging(1)->stats.events, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    end();
}
END_TEST

/* In the transport scheme the device names the window's key, and the pager asks what it stands for.
 */
START_TEST(a_window_over_a_region_is_paged)
{
    struct ibv_mr *local, *remote;
    struct ibv_mw *mw;
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
    struct ibv_sge sge;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP | IBV_ACCESS_MW_BIND);
    mw = ibv_alloc_mw(pd[1], IBV_MW_TYPE_1);
    ck_assert_ptr_nonnull(mw);
    bind.bind_info = (struct ibv_mw_bind_info){.mr = remote,
                                               .addr = (uintptr_t)mem[1] + PAGE,
                                               .length = 4 * PAGE,
                                               .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    ck_assert_int_eq(ibv_bind_mw(qp[1], mw, &bind), 0);
    ck_assert_int_eq(table_wc(v, cq[1]).status, IBV_WC_SUCCESS);
    fill(mem[0], LEN, 9);
    sge = (struct ibv_sge){.addr = (uintptr_t)mem[0], .length = 4 * PAGE, .lkey = local->lkey};
    post_send(0, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)mem[1] + PAGE, mw->rkey);
    ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1] + PAGE, 4 * PAGE), 0);
    ck_assert_uint_gt(paging(1)->stats.events, 0);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* A list of ranges of a region, made by a WQE. */
START_TEST(a_list_over_a_region_is_paged)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 4, 4, 512},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
    };
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
        .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST,
    };
    struct mlx5dv_mkey_init_attr mkey_attr = {.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                              .max_entries = 4};
    struct ibv_mr *local, *remote;
    struct mlx5dv_mkey *mkey;
    struct ibv_sge list[3];
    struct ibv_qp_ex *ex;
    struct ibv_qp *a, *b;

    begin(_i);
    local = reg(0, mem[0], LEN, ODP);
    remote = reg(1, mem[1], LEN, ODP);
    attr.pd = mkey_attr.pd = pd[0];
    attr.send_cq = attr.recv_cq = cq[0];
    a = hv_dv_ops.create_qp(v->a, &attr, &dv_attr);
    ck_assert_ptr_nonnull(a);
    b = table_qp_new(v, 1, cq[1], NULL);
    table_connect(v, a, b);
    mkey = hv_dv_create_mkey(&mkey_attr);
    ck_assert_ptr_nonnull(mkey);
    fill(mem[0], LEN, 12);
    for (unsigned i = 0; i < 3; i++) {
        list[i] = (struct ibv_sge){.addr = (uintptr_t)mem[0] + (2 - i) * 9 * PAGE + 10 * i,
                                   .length = 5000,
                                   .lkey = local->lkey};
    }
    ex = ibv_qp_to_qp_ex(a);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_INLINE;
    mlx5dv_wr_mr_list(hv_dv_ops.qp_ex_from_ibv_qp_ex(ex), mkey, IBV_ACCESS_LOCAL_WRITE, 3, list);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, remote->rkey, (uintptr_t)mem[1] + 77);
    ibv_wr_set_sge(ex, mkey->lkey, 0, 15000);
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
    ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(
            memcmp((void *)(uintptr_t)list[i].addr, mem[1] + 77 + (size_t)5000 * i, 5000), 0);
    }
    ck_assert_uint_ge(paging(0)->stats.events, 1);
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(hv_dv_destroy_mkey(mkey), 0);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

static int advise(struct ibv_pd *in, enum ibv_advise_mr_advice advice, uint32_t flags,
                  struct ibv_mr *mr, size_t offset, size_t len);

/* -- ends ---------------------------------------------------------------------------------------
 */

/* Page faults wait for the pager, and its device, its QP or the region's PD is gone when it comes.
 */
START_TEST(a_device_may_go_before_the_answer)
{
    struct ibv_mr *local, *remote;
    struct ibv_sge sge;

    begin(_i);
    local = reg(0, mem[0], LEN, ODP);
    remote = reg(1, mem[1], LEN, ODP);
    sge = (struct ibv_sge){.addr = (uintptr_t)mem[0], .length = LEN, .lkey = local->lkey};
    post_send(0, IBV_WR_RDMA_WRITE, &sge, 1, (uintptr_t)mem[1], remote->rkey);
    for (int i = 0; i < 3; i++) {
        inproc_run_ready(v->hosts->world);
    }
    hv_hca_remove(v->hca[1]);
    table_wait(v);
    hv_hca_reset(v->hca[0]);
    table_wait(v);
    ck_assert_int_eq(
        advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, local, 0, LEN), EIO);
    hv_odp_changed((uintptr_t)mem[0], 2 * LEN);
    table_wait(v);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

START_TEST(a_queue_may_go_before_the_answer)
{
    struct ibv_mr *local, *remote;
    struct ibv_sge sge;

    begin(_i);
    local = reg(0, mem[0], LEN, ODP);
    remote = reg(1, mem[1], LEN, ODP);
    for (int steps = 1; steps < 40; steps++) {
        struct ibv_qp *a = table_qp_new(v, 0, cq[0], NULL), *b = table_qp_new(v, 1, cq[1], NULL);
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1}, *bad;

        table_connect(v, a, b);
        hv_odp_changed((uintptr_t)mem[0], LEN);
        hv_odp_changed((uintptr_t)mem[1], LEN);
        table_wait(v);
        sge = (struct ibv_sge){.addr = (uintptr_t)mem[0], .length = LEN, .lkey = local->lkey};
        wr.wr.rdma.remote_addr = (uintptr_t)mem[1];
        wr.wr.rdma.rkey = remote->rkey;
        ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
        for (int i = 0; i < steps; i++) {
            inproc_run_ready(v->hosts->world);
        }
        table_qp_free(a);
        table_qp_free(b);
        table_wait(v);
    }
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* A device has no page faults for the receives of a datagram QP. As with mlx5_ib, they work where
 * pages are present: the order of registration and QP does not matter. */
START_TEST(queues_without_page_faults_find_present_pages)
{
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_mr *before, *after;
    struct ibv_qp *ud;

    begin(_i);
    fill(mem[0], LEN / 2, 1);
    before = reg(0, mem[0], LEN, ODP);
    ck_assert_uint_eq(before->lkey, before->rkey);
    attr.send_cq = attr.recv_cq = cq[0];
    ud = ibv_create_qp(pd[0], &attr);
    ck_assert_ptr_nonnull(ud);
    after = reg(0, mem[0], LEN, ODP);
    for (guint i = 0; i < 2; i++) {
        const struct odp_region *region = g_ptr_array_index(paging(0)->regions, i);

        ck_assert_uint_eq(region->num_mapped, PAGES / 2);
        ck_assert_uint_eq(region->pages[0], ODP_READ | ODP_WRITE);
        ck_assert_uint_eq(region->pages[PAGES - 1], 0);
    }
    ck_assert_int_eq(ibv_destroy_qp(ud), 0);
    ck_assert_int_eq(ibv_dereg_mr(before), 0);
    ck_assert_int_eq(ibv_dereg_mr(after), 0);
    after = reg(0, mem[0], LEN, ODP);
    ck_assert_uint_eq(hv_mr(after)->umem.odp->num_mapped, 0);
    ck_assert_int_eq(ibv_dereg_mr(after), 0);
    end();
}
END_TEST

/* -- implicit regions -------------------------------------------------------------------------- */

START_TEST(an_implicit_region_is_all_of_memory)
{
    struct ibv_mr *mr[2];
    const struct odp *odp;

    begin(_i);
    for (int i = 0; i < 2; i++) {
        mr[i] = reg(i, NULL, SIZE_MAX, ODP);
        ck_assert_ptr_null(mr[i]->addr);
        ck_assert_uint_eq(mr[i]->length, SIZE_MAX);
    }
    fill(mem[0], LEN, 5);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    memset(mem[0], 0, LEN);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    /* a child whose last page goes ends */
    odp = paging(1);
    ck_assert_uint_ge(odp->regions->len, 1);
    hv_odp_changed((uintptr_t)mem[1] - LEN, 3 * LEN); /* neighbours were brought in ahead */
    table_wait(v);
    ck_assert_uint_eq(odp->regions->len, 0);
    fill(mem[0], LEN, 6);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, mr[0], mem[0], mr[1], mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
    }
    ck_assert_uint_eq(odp->regions->len, 0);
    ck_assert_uint_eq(g_hash_table_size(odp->keys), 0);
    end();
}
END_TEST

/* -- memory that is not there ------------------------------------------------------------------ */

/* A card's driver answers such a fault with an error: IBV_WC_REM_ACCESS_ERR. */
START_TEST(a_peer_gets_an_access_error_where_nothing_is_mapped)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP);
    ck_assert_int_eq(munmap(mem[1] + 2 * PAGE, PAGE), 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], 2 * PAGE),
                     IBV_WC_SUCCESS);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], 3 * PAGE),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* Nobody has told the pager that the memory went (free() unmaps inside the C library). */
START_TEST(memory_that_goes_without_a_word_is_an_access_error)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(munmap(mem[1] + 2 * PAGE, PAGE), 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, local, mem[0], remote, mem[1], 3 * PAGE),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

START_TEST(ones_own_missing_memory_is_a_protection_error)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    local = reg(0, mem[0], LEN, ODP);
    remote = reg(1, mem[1], LEN, ALL);
    ck_assert_int_eq(munmap(mem[0], PAGE), 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], PAGE),
                     IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* hmm_range_fault() asks for pages that can be written if the region can be. */
START_TEST(memory_that_became_read_only_is_refused)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(mprotect(mem[1], PAGE, PROT_READ), 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], PAGE),
                     IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

START_TEST(memory_of_a_read_only_region_need_not_be_writable)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    fill(mem[1], LEN, 8);
    ck_assert_int_eq(mprotect(mem[1], LEN, PROT_READ), 0);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, local, mem[0], remote, mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(memcmp(mem[0], mem[1], LEN), 0);
    /* ib_umem_check_rereg(): the region does not become writable */
    errno = 0;
    ck_assert_int_eq(ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)ODP),
                     IBV_REREG_MR_ERR_CMD);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* -- registration ------------------------------------------------------------------------------ */

static void expect_refused(void *addr, size_t len, uint64_t iova, unsigned access, int err)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_mr_iova2(pd[0], addr, len, iova, access));
    ck_assert_int_eq(errno, err);
}

START_TEST(bad_registrations_are_refused)
{
    begin(_i);
    expect_refused(mem[0], 0, (uintptr_t)mem[0], ODP, EINVAL);
    expect_refused(NULL, SIZE_MAX, PAGE, ODP, EINVAL);
    expect_refused(NULL, SIZE_MAX, 0, ODP | IBV_ACCESS_HUGETLB, EINVAL);
    expect_refused(mem[0], SIZE_MAX - PAGE, (uintptr_t)mem[0], ODP, EOVERFLOW);
    expect_refused(mem[0], LEN, (uintptr_t)mem[0], IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND,
                   EINVAL);
    /* memory that is not there can be registered */
    ck_assert_int_eq(munmap(mem[0], LEN), 0);
    ck_assert_int_eq(ibv_dereg_mr(reg(0, mem[0], LEN, ODP)), 0);
    end();
}
END_TEST

START_TEST(a_device_that_refuses_leaves_nothing_behind)
{
    struct ibv_mr *mr;

    begin(_i);
    ck_assert_int_eq(ibv_dereg_mr(reg(0, mem[0], LEN, ODP)), 0);
    for (unsigned status = PRM_CMD_STATUS_BAD_PARAM; status < PRM_CMD_STATUS_BAD_PARAM + 1;
         status++) {
        table_refuse(v, 0, (uint8_t)status);
        ck_assert_ptr_null(ibv_reg_mr(pd[0], mem[0], LEN, ODP));
        ck_assert_uint_eq(g_hash_table_size(paging(0)->keys), 0);
        ck_assert_uint_eq(paging(0)->regions->len, 0);
    }
    mr = reg(0, NULL, SIZE_MAX, ODP);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    end();
}
END_TEST

START_TEST(a_region_can_be_registered_anew)
{
    struct ibv_mr *local, *remote;
    struct ibv_pd *other;

    begin(_i);
    local = reg(0, mem[0], LEN, ALL);
    remote = reg(1, mem[1], LEN, ODP);
    other = ibv_alloc_pd(v->b);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], PAGE), IBV_WC_SUCCESS);
    /* in place */
    ck_assert_int_eq(ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    ck_assert_int_eq(ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_PD, pd[1], NULL, 0, 0), 0);
    ck_assert_int_eq(ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ),
                     0);
    ck_assert_int_eq(ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)ODP), 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], LEN), IBV_WC_SUCCESS);
    /* a new range, then pinned memory, then paged again */
    ck_assert_int_eq(
        ibv_rereg_mr(remote, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem[1] + PAGE, PAGE, 0), 0);
    ck_assert_uint_eq(paging(1)->regions->len, 1);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1] + PAGE, PAGE),
                     IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_rereg_mr(remote,
                                  IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
                                  NULL, mem[1], LEN, ALL),
                     0);
    ck_assert_uint_eq(paging(1)->regions->len, 0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], LEN), IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other), 0);
    end();
}
END_TEST

/* -- advice ------------------------------------------------------------------------------------ */

static int advise(struct ibv_pd *in, enum ibv_advise_mr_advice advice, uint32_t flags,
                  struct ibv_mr *mr, size_t offset, size_t len)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)mem[0] + offset, .length = (uint32_t)len, .lkey = mr->lkey};

    return ibv_advise_mr(in, advice, flags, &sge, 1);
}

START_TEST(pages_can_be_brought_in_ahead)
{
    struct ibv_mr *local, *remote;

    begin(_i);
    local = reg(0, mem[0], LEN, ODP);
    remote = reg(1, mem[1], LEN, ALL);
    /* no page is present yet */
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH,
                            local, 0, LEN),
                     0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], PAGE), IBV_WC_SUCCESS);
    ck_assert_uint_eq(paging(0)->stats.events, 1);
    ck_assert_int_eq(
        advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, local, 0, LEN / 2),
        0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_WRITE, local, mem[0], remote, mem[1], LEN / 2),
                     IBV_WC_SUCCESS);
    ck_assert_uint_eq(paging(0)->stats.events, 1);
    /* without the flag it happens later */
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, local, LEN / 2, LEN / 2),
                     0);
    table_wait(v);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, local, mem[0] + LEN / 2, remote, mem[1], LEN / 2),
                     IBV_WC_SUCCESS);
    ck_assert_uint_eq(paging(0)->stats.events, 1);
    /* pages that are present are found without touching the others */
    hv_odp_changed((uintptr_t)mem[0], LEN);
    table_wait(v);
    madvise(mem[0], LEN / 2, MADV_DONTNEED);
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH,
                            local, 0, LEN),
                     0);
    ck_assert_int_eq(rdma(IBV_WR_RDMA_READ, local, mem[0] + LEN / 2, remote, mem[1], LEN / 2),
                     IBV_WC_SUCCESS);
    ck_assert_uint_eq(paging(0)->stats.events, 1);
    ck_assert_int_eq(ibv_dereg_mr(local), 0);
    ck_assert_int_eq(ibv_dereg_mr(remote), 0);
    end();
}
END_TEST

/* The pager has not begun with the advice when the region ends: ending the region ends the advice
 * first. */
START_TEST(a_region_ends_although_advice_waits)
{
    struct ibv_mr *mr, *other;

    begin(_i);
    mr = reg(0, mem[0], LEN, ODP);
    other = reg(0, mem[0], LEN, ODP);
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, other, 0, PAGE), 0);
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr, 0, LEN), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_uint_eq(paging(0)->stats.prefetched, PAGES + 1);
    ck_assert_int_eq(ibv_dereg_mr(other), 0);
    /* a new translation ends the old region, too */
    mr = reg(0, mem[0], LEN, ODP);
    ck_assert_int_eq(advise(pd[0], IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr, 0, LEN), 0);
    ck_assert_int_eq(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem[0] + PAGE, PAGE, 0), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    end();
}
END_TEST

START_TEST(bad_advice_is_refused)
{
    const uint32_t now = IBV_ADVISE_MR_FLAG_FLUSH;
    enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
                              write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    struct ibv_mr *mr, *pinned, *readable;
    struct ibv_sge sge = {0};
    struct ibv_pd *other;

    begin(_i);
    pinned = reg(0, mem[0], LEN, ALL);
    ck_assert_int_eq(advise(pd[0], read, now, pinned, 0, LEN), ENOENT);
    mr = reg(0, mem[0], LEN, ODP);
    readable = reg(0, mem[0], LEN, IBV_ACCESS_ON_DEMAND);
    other = ibv_alloc_pd(v->a);
    ck_assert_int_eq(advise(pd[0], read, 2, mr, 0, LEN), EINVAL);
    ck_assert_int_eq(advise(pd[0], (enum ibv_advise_mr_advice)3, now, mr, 0, LEN), EOPNOTSUPP);
    ck_assert_int_eq(ibv_advise_mr(pd[0], read, now, &sge, 0), EINVAL);
    for (uint32_t flags = 0; flags <= now; flags += now) {
        ck_assert_int_eq(advise(pd[0], read, flags, pinned, 0, LEN), ENOENT);
        ck_assert_int_eq(advise(other, read, flags, mr, 0, LEN), EPERM);
        ck_assert_int_eq(advise(pd[0], write, flags, readable, 0, LEN), EPERM);
    }
    ck_assert_int_eq(advise(pd[0], read, now, mr, 0, LEN + 1), EFAULT);
    ck_assert_int_eq(advise(pd[0], read, now, mr, (size_t)-PAGE, PAGE), EFAULT);
    ck_assert_int_eq(munmap(mem[0], PAGE), 0);
    ck_assert_int_eq(advise(pd[0], read, now, mr, 0, LEN), EFAULT);
    ck_assert_int_eq(advise(pd[0], read, 0, mr, 0, LEN), 0); /* later, nobody hears of it */
    table_wait(v);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dereg_mr(readable), 0);
    ck_assert_int_eq(ibv_dereg_mr(pinned), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other), 0);
    end();
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("odp");
    Suite *suite = suite_create("verbs-odp");

#define TEST(name) tcase_add_loop_test(tc, name, 0, G_N_ELEMENTS(profiles))
    TEST(a_device_says_what_may_be_paged);
    TEST(a_region_begins_without_pages);
    TEST(pages_stay_until_they_are_invalidated);
    TEST(sends_and_receives_are_paged);
    TEST(receives_of_an_srq_are_paged);
    TEST(atomics_are_paged);
    TEST(a_window_over_a_region_is_paged);
    TEST(a_list_over_a_region_is_paged);
    TEST(a_device_may_go_before_the_answer);
    TEST(a_queue_may_go_before_the_answer);
    TEST(queues_without_page_faults_find_present_pages);
    TEST(an_implicit_region_is_all_of_memory);
    TEST(a_peer_gets_an_access_error_where_nothing_is_mapped);
    TEST(memory_that_goes_without_a_word_is_an_access_error);
    TEST(ones_own_missing_memory_is_a_protection_error);
    TEST(memory_that_became_read_only_is_refused);
    TEST(memory_of_a_read_only_region_need_not_be_writable);
    TEST(bad_registrations_are_refused);
    TEST(a_device_that_refuses_leaves_nothing_behind);
    TEST(a_region_can_be_registered_anew);
    TEST(pages_can_be_brought_in_ahead);
    TEST(a_region_ends_although_advice_waits);
    TEST(bad_advice_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
