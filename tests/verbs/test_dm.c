/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests device memory as a program uses it: allocation, copies, regions, traffic, atomics, import,
 * and what is refused. test_dm_ops.c tests the operations.
 */
#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define MOST  (128u << 10) /* max_dm_size */
#define TOTAL (1u << 20)   /* all memory of the device */
#define ZERO  IBV_ACCESS_ZERO_BASED
#define ALL                                                                                        \
    (ZERO | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |            \
     IBV_ACCESS_REMOTE_ATOMIC)

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    verbs_table_free(v);
}

static struct ibv_pd *pd_of(int side)
{
    return v->hosts->host[side].pd;
}

static struct ibv_dm *dm_alloc(struct ibv_context *ctx, size_t length, uint32_t log_align)
{
    struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_align};

    return ibv_alloc_dm(ctx, &attr);
}

static struct ibv_dm *dm_new(size_t length)
{
    struct ibv_dm *dm = dm_alloc(v->a, length, 0);

    ck_assert_ptr_nonnull(dm);
    return dm;
}

static void dm_free(struct ibv_dm *dm)
{
    ck_assert_int_eq(ibv_free_dm(dm), 0);
}

static void fill(uint8_t *bytes, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(seed + i * 7 + i / 251);
    }
}

/* -- the memory -------------------------------------------------------------------------------- */

START_TEST(a_program_copies_to_and_from_the_memory)
{
    struct ibv_dm *dm = dm_new(MOST);
    uint8_t in[400], out[400];

    ck_assert_int_eq(ibv_memcpy_from_dm(out, dm, MOST - 400, 400), 0);
    for (unsigned i = 0; i < 400; i++) {
        ck_assert_uint_eq(out[i], 0); /* new memory */
    }
    fill(in, sizeof(in), 3);
    ck_assert_int_eq(ibv_memcpy_to_dm(dm, MOST - 400, in, 400), 0);
    ck_assert_int_eq(ibv_memcpy_from_dm(out, dm, MOST - 396, 392), 0);
    ck_assert_mem_eq(out, in + 4, 392);
    ck_assert_int_eq(ibv_memcpy_from_dm(out, dm, 0, 0), 0);
    dm_free(dm);
}
END_TEST

/* libmlx5: mlx5_access_dm(). The bounds are those of the length that was asked for. */
START_TEST(copies_have_bounds_and_an_alignment)
{
    static const struct {
        uint64_t offset;
        size_t length;
        int err;
    } copies[] = {
        {3, 4, EINVAL},
        {4, 3, EINVAL},
        {104, 4, EFAULT},
        {0, 104, EFAULT},
        {100, 4, EFAULT},
        {96, 8, EFAULT},
        {UINT64_MAX, 4, EFAULT},
        {UINT64_MAX - 3, 4, EFAULT},
        {4, SIZE_MAX, EFAULT},
        {100, 0, 0},
        {0, 100, 0},
    };
    struct ibv_dm *dm = dm_new(100);
    uint8_t room[128] = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++) {
        ck_assert_int_eq(ibv_memcpy_to_dm(dm, copies[i].offset, room, copies[i].length),
                         copies[i].err);
        ck_assert_int_eq(ibv_memcpy_from_dm(room, dm, copies[i].offset, copies[i].length),
                         copies[i].err);
    }
    dm_free(dm);
}
END_TEST

START_TEST(each_memory_is_its_owners)
{
    struct ibv_dm *dm[2] = {dm_new(64), dm_new(64)};
    uint32_t word = 0x11111111;

    ck_assert_int_eq(ibv_memcpy_to_dm(dm[0], 60, &word, 4), 0);
    ck_assert_int_eq(ibv_memcpy_from_dm(&word, dm[1], 60, 4), 0);
    ck_assert_uint_eq(word, 0);
    dm_free(dm[0]);
    dm[0] = dm_new(4);
    ck_assert_int_eq(ibv_memcpy_from_dm(&word, dm[0], 0, 4), 0);
    ck_assert_uint_eq(word, 0);
    dm_free(dm[0]);
    dm_free(dm[1]);
}
END_TEST

static void expect_no_dm(size_t length, uint32_t log_align, int err)
{
    errno = 0;
    ck_assert_ptr_null(dm_alloc(v->a, length, log_align));
    ck_assert_int_eq(errno, err);
}

/* libmlx5: alloc_dm_memic(); kernel: mlx5_cmd_alloc_memic(). */
START_TEST(sizes_and_alignments_have_limits)
{
    struct ibv_alloc_dm_attr attr = {.length = 64, .comp_mask = 1};
    struct ibv_device_attr_ex device;
    struct ibv_dm *dm;

    ck_assert_int_eq(ibv_query_device_ex(v->a, NULL, &device), 0);
    ck_assert_uint_eq(device.max_dm_size, MOST);
    expect_no_dm(0, 0, EINVAL);
    expect_no_dm(MOST + 1, 0, EINVAL);
    expect_no_dm(SIZE_MAX, 0, EINVAL);
    expect_no_dm(64, 18, EINVAL);
    expect_no_dm(64, UINT32_MAX, EINVAL);
    ck_assert_ptr_null(ibv_alloc_dm(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    for (uint32_t align = 0; align <= 17; align++) {
        dm = dm_alloc(v->a, 1, align);
        ck_assert_ptr_nonnull(dm);
        ck_assert_uint_eq(hv_dm(dm)->addr % (1u << align), 0);
        dm_free(dm);
    }
}
END_TEST

START_TEST(memory_runs_out_and_comes_back)
{
    struct ibv_dm *dm[TOTAL / MOST], *small;

    for (unsigned n = 0; n < 3; n++) {
        for (unsigned i = 0; i < TOTAL / MOST; i++) {
            dm[i] = dm_new(MOST);
        }
        expect_no_dm(1, 0, ENOMEM);
        dm_free(dm[n]);
        small = dm_new(1);
        expect_no_dm(MOST, 0, ENOMEM);
        dm_free(small);
        dm[n] = dm_new(MOST);
        for (unsigned i = 0; i < TOTAL / MOST; i++) {
            dm_free(dm[i]);
        }
    }
}
END_TEST

/* mlx5dv: what a card without steering by software answers for the other types. */
START_TEST(memory_for_steering_does_not_exist)
{
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct mlx5dv_alloc_dm_attr dv = {.type = MLX5DV_DM_TYPE_STEERING_SW_ICM};
    struct mlx5dv_obj obj = {0};
    struct mlx5dv_dm out = {.comp_mask = MLX5DV_DM_MASK_REMOTE_VA | 1u << 30};
    uint32_t word = 0x12345678;
    struct ibv_dm *dm;

    ck_assert_ptr_null(hv_dv_alloc_dm(v->a, &attr, &dv));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    dv.type = MLX5DV_DM_TYPE_HEADER_MODIFY_SW_ICM;
    ck_assert_ptr_null(hv_dv_alloc_dm(v->a, &attr, &dv));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    dv = (struct mlx5dv_alloc_dm_attr){.type = MLX5DV_DM_TYPE_MEMIC, .comp_mask = 1};
    ck_assert_ptr_null(hv_dv_alloc_dm(v->a, &attr, &dv));
    ck_assert_int_eq(errno, EINVAL);
    dv.comp_mask = 0;
    dm = hv_dv_alloc_dm(v->a, &attr, &dv);
    ck_assert_ptr_nonnull(dm);
    obj.dm.in = dm;
    obj.dm.out = &out;
    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_DM), 0);
    ck_assert_uint_eq(out.length, 64);
    ck_assert_uint_eq(out.comp_mask, MLX5DV_DM_MASK_REMOTE_VA);
    ck_assert_int_eq(ibv_memcpy_to_dm(dm, 8, &word, 4), 0);
    ck_assert_uint_eq(((volatile uint32_t *)out.buf)[2], word);
    dm_free(dm);
}
END_TEST

/* -- regions ----------------------------------------------------------------------------------- */

static void expect_no_mr(struct ibv_dm *dm, uint64_t offset, size_t length, unsigned access)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_dm_mr(pd_of(0), dm, offset, length, access));
    ck_assert_int_eq(errno, EINVAL);
}

/* libibverbs: ibv_cmd_reg_dm_mr(); kernel: UVERBS_METHOD_DM_MR_REG, mlx5_ib_reg_dm_mr(). */
START_TEST(regions_are_checked)
{
    struct ibv_dm *dm = dm_new(100);
    struct ibv_mr *mr;

    expect_no_mr(dm, 0, 100, IBV_ACCESS_LOCAL_WRITE);
    expect_no_mr(dm, 0, 100, ZERO | IBV_ACCESS_REMOTE_WRITE);
    expect_no_mr(dm, 0, 100, ZERO | IBV_ACCESS_REMOTE_ATOMIC);
    expect_no_mr(dm, 0, 100, ZERO | IBV_ACCESS_MW_BIND);
    expect_no_mr(dm, 0, 100, ZERO | IBV_ACCESS_ON_DEMAND);
    expect_no_mr(dm, 0, 100, ZERO | IBV_ACCESS_RELAXED_ORDERING);
    expect_no_mr(dm, 0, 104, ZERO);
    expect_no_mr(dm, 101, 0, ZERO);
    expect_no_mr(dm, 4, 100, ZERO);
    expect_no_mr(dm, UINT64_MAX, 4, ZERO);
    expect_no_mr(dm, 4, SIZE_MAX, ZERO);
    mr = ibv_reg_dm_mr(pd_of(0), dm, 4, 96, ZERO);
    ck_assert_ptr_nonnull(mr);
    ck_assert_ptr_null(mr->addr);
    ck_assert_uint_eq(mr->length, 96);
    ck_assert_ptr_eq(mr->pd, pd_of(0));
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ZERO),
                     IBV_REREG_MR_ERR_CMD);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_dm_mr(pd_of(0), dm, 100, 0, ZERO);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    dm_free(dm);
}
END_TEST

/* uverbs_free_dm(): while regions use it. */
START_TEST(memory_stays_while_regions_use_it)
{
    struct ibv_dm *dm = dm_new(64);
    struct ibv_mr *mr[2];

    for (unsigned i = 0; i < 2; i++) {
        mr[i] = ibv_reg_dm_mr(pd_of(0), dm, 0, 64, ALL);
        ck_assert_ptr_nonnull(mr[i]);
    }
    ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr[0]), 0);
    ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr[1]), 0);
    dm_free(dm);
}
END_TEST

/* A structure that a program has overwritten names nothing. */
START_TEST(a_handle_must_be_its_own)
{
    struct ibv_dm *dm = dm_new(64);
    uint32_t handle = dm->handle;

    dm->handle = handle + 100;
    ck_assert_int_eq(ibv_free_dm(dm), ENOENT);
    expect_no_dm(0, 0, EINVAL);
    ck_assert_ptr_null(ibv_reg_dm_mr(pd_of(0), dm, 0, 64, ALL));
    ck_assert_int_eq(errno, ENOENT);
    dm->handle = pd_of(0)->handle;
    ck_assert_int_eq(ibv_free_dm(dm), EINVAL);
    dm->handle = handle;
    dm_free(dm);
}
END_TEST

/* -- traffic ----------------------------------------------------------------------------------- */

struct ends {
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_mr *host; /* a page of host 0 */
    struct ibv_dm *dm;   /* of host 1 */
    struct ibv_mr *mr;
};

static struct ends ends_new(unsigned access)
{
    struct ends e = {.host = table_mr_new(v, 0), .dm = dm_alloc(v->b, 4096, 0)};
    struct ibv_context *ctx[2] = {v->a, v->b};

    for (int i = 0; i < 2; i++) {
        e.cq[i] = ibv_create_cq(ctx[i], 15, NULL, NULL, 0);
        e.qp[i] = table_qp_new(v, i, e.cq[i], NULL);
    }
    table_connect(v, e.qp[0], e.qp[1]);
    ck_assert_ptr_nonnull(e.dm);
    e.mr = ibv_reg_dm_mr(pd_of(1), e.dm, 64, 1024, access);
    ck_assert_ptr_nonnull(e.mr);
    return e;
}

static void ends_free(struct ends *e)
{
    for (int i = 0; i < 2; i++) {
        table_qp_free(e->qp[i]);
        ck_assert_int_eq(ibv_destroy_cq(e->cq[i]), 0);
    }
    ck_assert_int_eq(ibv_dereg_mr(e->mr), 0);
    dm_free(e->dm);
    table_mr_free(e->host);
}

/* Posts a request on that side, and returns how it completes. */
static enum ibv_wc_status run(struct ends *e, int side, struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    struct ibv_send_wr *bad;

    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->send_flags |= IBV_SEND_SIGNALED;
    ck_assert_int_eq(ibv_post_send(e->qp[side], wr, &bad), 0);
    return table_wc(v, e->cq[side]).status;
}

static enum ibv_wc_status rdma(struct ends *e, enum ibv_wr_opcode opcode, uint64_t remote,
                               uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)e->host->addr, len, e->host->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .wr.rdma = {.remote_addr = remote, .rkey = e->mr->rkey}};

    return run(e, 0, &wr, &sge);
}

/* A peer writes and reads; addresses in the region begin at 0. */
START_TEST(a_peer_reaches_the_memory)
{
    struct ends e = ends_new(ALL);
    uint8_t data[1024], *host = e.host->addr;

    fill(host, 1024, 1);
    ck_assert_int_eq(rdma(&e, IBV_WR_RDMA_WRITE, 0, 1024), IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_memcpy_from_dm(data, e.dm, 64, 1024), 0);
    ck_assert_mem_eq(data, host, 1024);
    fill(data, 1024, 77);
    ck_assert_int_eq(ibv_memcpy_to_dm(e.dm, 64, data, 1024), 0);
    ck_assert_int_eq(rdma(&e, IBV_WR_RDMA_READ, 24, 1000), IBV_WC_SUCCESS);
    ck_assert_mem_eq(host, data + 24, 1000);
    ends_free(&e);
}
END_TEST

/* The first request outside the region is the last one of the connection. */
START_TEST(a_peer_reaches_no_further)
{
    static const struct {
        uint64_t at;
        uint32_t len;
    } beyond[] = {{1, 1024}, {1024, 1}, {UINT64_MAX, 1}};
    struct ends e = ends_new(ALL);

    ck_assert_int_eq(rdma(&e, _i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, beyond[_i / 2].at,
                          beyond[_i / 2].len),
                     IBV_WC_REM_ACCESS_ERR);
    ends_free(&e);
}
END_TEST

START_TEST(a_peer_has_the_rights_of_the_region)
{
    struct ends e = ends_new(ZERO | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

    ck_assert_int_eq(rdma(&e, IBV_WR_RDMA_WRITE, 0, 8), IBV_WC_SUCCESS);
    ck_assert_int_eq(rdma(&e, IBV_WR_RDMA_READ, 0, 8), IBV_WC_REM_ACCESS_ERR);
    ends_free(&e);
}
END_TEST

START_TEST(a_peers_atomics_work)
{
    struct ends e = ends_new(ALL);
    uint64_t word = 40, *host = e.host->addr;
    struct ibv_sge sge = {(uintptr_t)host, 8, e.host->lkey};
    struct ibv_send_wr add = {
        .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
        .wr.atomic = {.remote_addr = 16, .rkey = e.mr->rkey, .compare_add = 2}};
    struct ibv_send_wr swap = {
        .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
        .wr.atomic = {.remote_addr = 16, .rkey = e.mr->rkey, .compare_add = 42, .swap = 7}};

    ck_assert_int_eq(ibv_memcpy_to_dm(e.dm, 64 + 16, &word, 8), 0);
    ck_assert_int_eq(run(&e, 0, &add, &sge), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*host, 40);
    ck_assert_int_eq(run(&e, 0, &swap, &sge), IBV_WC_SUCCESS);
    ck_assert_uint_eq(*host, 42);
    ck_assert_int_eq(ibv_memcpy_from_dm(&word, e.dm, 64 + 16, 8), 0);
    ck_assert_uint_eq(word, 7);
    ends_free(&e);
}
END_TEST

/* The host of the memory sends from it and receives into it. */
START_TEST(the_memory_is_a_message)
{
    struct ends e = ends_new(ALL);
    uint8_t data[512], *host = e.host->addr;
    struct ibv_sge there = {8, 512, e.mr->lkey}, here = {(uintptr_t)host, 512, e.host->lkey};
    struct ibv_recv_wr recv = {.sg_list = &there, .num_sge = 1}, *bad;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

    ck_assert_int_eq(ibv_post_recv(e.qp[1], &recv, &bad), 0);
    fill(host, 512, 9);
    ck_assert_int_eq(run(&e, 0, &wr, &here), IBV_WC_SUCCESS);
    ck_assert_int_eq(table_wc(v, e.cq[1]).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_memcpy_from_dm(data, e.dm, 64 + 8, 512), 0);
    ck_assert_mem_eq(data, host, 512);

    memset(host, 0, 512);
    recv.sg_list = &here;
    ck_assert_int_eq(ibv_post_recv(e.qp[0], &recv, &bad), 0);
    there.addr = 12;
    there.length = 508;
    wr.send_flags = 0;
    ck_assert_int_eq(run(&e, 1, &wr, &there), IBV_WC_SUCCESS);
    ck_assert_int_eq(table_wc(v, e.cq[0]).status, IBV_WC_SUCCESS);
    ck_assert_mem_eq(host, data + 4, 508);
    ends_free(&e);
}
END_TEST

/* Inline data comes from where the program sees the memory. */
START_TEST(inline_data_may_lie_in_the_memory)
{
    struct ends e = ends_new(ALL);
    struct ibv_dm *mine = dm_new(64);
    struct ibv_sge sge = {(uintptr_t)hv_dm(mine)->map + 4, 12, 0};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_INLINE,
                             .wr.rdma = {.remote_addr = 100, .rkey = e.mr->rkey}};
    char back[12];

    ck_assert_int_eq(ibv_memcpy_to_dm(mine, 4, "hello, world", 12), 0);
    ck_assert_int_eq(run(&e, 0, &wr, &sge), IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_memcpy_from_dm(back, e.dm, 164, 12), 0);
    ck_assert_mem_eq(back, "hello, world", 12);
    dm_free(mine);
    ends_free(&e);
}
END_TEST

/* -- import, closing, removal ------------------------------------------------------------------ */

/* ibv_import_dm(): by its handle, in a context that shares the file. */
START_TEST(the_memory_can_be_imported)
{
    struct ibv_context *other = v->a;
    struct ibv_dm *dm = dm_new(100), *imported;
    struct ibv_mr *mr;
    uint32_t word = 0xabcdef01;

    ck_assert_ptr_null(ibv_import_dm(other, dm->handle + 100));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_null(ibv_import_dm(other, pd_of(0)->handle));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_import_dm(v->b, dm->handle));
    imported = ibv_import_dm(other, dm->handle);
    ck_assert_ptr_nonnull(imported);
    ck_assert_ptr_ne(hv_dm(imported)->map, hv_dm(dm)->map);
    ck_assert_int_eq(ibv_memcpy_to_dm(dm, 96, &word, 4), 0);
    word = 0;
    ck_assert_int_eq(ibv_memcpy_from_dm(&word, imported, 96, 4), 0);
    ck_assert_uint_eq(word, 0xabcdef01);
    ck_assert_int_eq(ibv_memcpy_from_dm(&word, imported, 100, 4), EFAULT);
    mr = ibv_reg_dm_mr(pd_of(0), imported, 0, 100, ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
    ibv_unimport_dm(imported);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    dm_free(dm);
    ck_assert_ptr_null(ibv_import_dm(other, 0x7fffffff));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* What a program leaves behind ends with its context, also if a region is older than the memory's
 * last user. */
START_TEST(a_closed_context_leaves_nothing_in_the_device)
{
    struct ibv_context *ctx = ibv_open_device(v->a->device);
    struct ibv_dm *dm = dm_alloc(ctx, MOST, 0), *others[TOTAL / MOST];
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    void *op = hv_dv_dm_map_op_addr(dm, 0), *map = hv_dm(dm)->map;
    static struct ibv_mr
        *volatile mr; /* its structure stays the program's own, with what it points to */

    ck_assert(dm && pd && op);
    mr = ibv_reg_dm_mr(pd, dm, 0, 64, ALL);
    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_close_device(ctx), 0);
    for (unsigned i = 0; i < TOTAL / MOST; i++) {
        others[i] = dm_new(MOST);
    }
    *(volatile uint8_t *)op = 1; /* has no effect any more */
    for (unsigned i = 0; i < TOTAL / MOST; i++) {
        uint32_t word;

        ck_assert_int_eq(ibv_memcpy_from_dm(&word, others[i], 0, 4), 0);
        ck_assert_uint_eq(word, 0);
        dm_free(others[i]);
    }
    ck_assert_int_eq(munmap(op, MOST), 0);
    ck_assert_int_eq(munmap(map, MOST), 0);
}
END_TEST

START_TEST(a_removed_device_gives_no_memory)
{
    struct ibv_dm *dm = dm_new(64);
    struct ibv_mr *mr = ibv_reg_dm_mr(pd_of(0), dm, 0, 64, ALL);
    uint32_t word = 5;

    hv_hca_remove(v->hca[0]);
    expect_no_dm(64, 0, EIO);
    ck_assert_ptr_null(ibv_reg_dm_mr(pd_of(0), dm, 0, 64, ALL));
    ck_assert_int_eq(errno, EIO);
    ck_assert_ptr_null(ibv_import_dm(v->a, dm->handle));
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(ibv_memcpy_to_dm(dm, 0, &word, 4), 0); /* the program's mapping stays */
    ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    dm_free(dm);
}
END_TEST

START_TEST(a_device_that_refuses_leaves_nothing)
{
    struct ibv_dm *dm;

    table_refuse(v, 0, PRM_CMD_STATUS_BAD_SYS_STATE);
    expect_no_dm(64, 0, EIO);
    dm = dm_new(64);
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(ibv_reg_dm_mr(pd_of(0), dm, 0, 64, ALL));
    ck_assert_int_eq(errno, ENOMEM);
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(hv_dv_dm_map_op_addr(dm, 0));
    ck_assert_int_eq(errno, ENOMEM);
    dm_free(dm);
}
END_TEST

/* libmlx5 compares the length with max_dm_size first. */
START_TEST(an_older_card_has_no_memory)
{
    struct verbs_table *old = verbs_table_on(verbs_hosts_new_as(2, NULL, "cx4"));
    struct ibv_device_attr_ex device;

    ck_assert_int_eq(ibv_query_device_ex(old->a, NULL, &device), 0);
    ck_assert_uint_eq(device.max_dm_size, 0);
    ck_assert_ptr_null(dm_alloc(old->a, 64, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(dm_alloc(old->a, 0, 0));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    verbs_table_free(old);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("verbs device memory");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_program_copies_to_and_from_the_memory);
    tcase_add_test(tc, copies_have_bounds_and_an_alignment);
    tcase_add_test(tc, each_memory_is_its_owners);
    tcase_add_test(tc, sizes_and_alignments_have_limits);
    tcase_add_test(tc, memory_runs_out_and_comes_back);
    tcase_add_test(tc, memory_for_steering_does_not_exist);
    tcase_add_test(tc, regions_are_checked);
    tcase_add_test(tc, memory_stays_while_regions_use_it);
    tcase_add_test(tc, a_handle_must_be_its_own);
    tcase_add_test(tc, a_peer_reaches_the_memory);
    tcase_add_loop_test(tc, a_peer_reaches_no_further, 0, 6);
    tcase_add_test(tc, a_peer_has_the_rights_of_the_region);
    tcase_add_test(tc, a_peers_atomics_work);
    tcase_add_test(tc, the_memory_is_a_message);
    tcase_add_test(tc, inline_data_may_lie_in_the_memory);
    tcase_add_test(tc, the_memory_can_be_imported);
    tcase_add_test(tc, a_closed_context_leaves_nothing_in_the_device);
    tcase_add_test(tc, a_removed_device_gives_no_memory);
    tcase_add_test(tc, a_device_that_refuses_leaves_nothing);
    tcase_add_test(tc, an_older_card_has_no_memory);
    suite_add_tcase(s, tc);
    return s;
}
