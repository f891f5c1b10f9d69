/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests memory regions, windows and their domains: what can be registered, and for how long. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define LEN ((size_t)3 * 4096)

static struct verbs_table *v;
static struct ibv_pd *pd;

static void setup(void)
{
    v = verbs_table_new();
    pd = ibv_alloc_pd(v->a);
    ck_assert_ptr_nonnull(pd);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    verbs_table_free(v);
}

static void expect_refused(struct ibv_pd *in, void *addr, size_t length, uint64_t iova,
                           unsigned access, int err)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_mr_iova2(in, addr, length, iova, access));
    ck_assert_int_eq(errno, err);
}

/* Reads QUERY_MKEY's answer about a key. */
static void query_mkey(uint32_t key, struct prm_mkc mkc[1])
{
    struct prm_query_mkey_in in[1] = {0};
    struct prm_query_mkey_out out[1] = {0};

    PRM_SET(query_mkey_in, in, opcode, PRM_CMD_OP_QUERY_MKEY);
    PRM_SET(query_mkey_in, in, mkey_index, key >> 8);
    ck_assert_int_eq(hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(out)), 0);
    memcpy(mkc, PRM_PTR(query_mkey_out, out, memory_key_mkey_entry), PRM_SIZE(mkc));
}

START_TEST(a_region_has_the_rights_that_it_was_registered_with)
{
    uint8_t *mem = aligned_alloc(4096, LEN);
    struct prm_mkc mkc[1];
    struct ibv_mr *mr =
        ibv_reg_mr(pd, mem + 5, LEN - 7, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);

    ck_assert_ptr_nonnull(mr);
    ck_assert_ptr_eq(mr->addr, mem + 5);
    ck_assert_uint_eq(mr->length, LEN - 7);
    ck_assert_uint_eq(mr->lkey, mr->rkey);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, lr), 1);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, lw), 1);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, rr), 1);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, rw), 0);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, a), 0);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, start_addr), (uintptr_t)mem + 5);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), LEN - 7);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(mem);
}
END_TEST

/* The page list of a large region is as long as that of a small one. */
START_TEST(a_large_region_needs_two_entries)
{
    size_t len = (size_t)64 << 20;
    struct prm_mkc mkc[1];
    void *mem = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct ibv_mr *mr;

    ck_assert_ptr_ne(mem, MAP_FAILED);
    mr = ibv_reg_mr(pd, mem, len, 0);
    ck_assert_ptr_nonnull(mr);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_le(PRM_GET(mkc, mkc, translations_octword_size), 1);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    munmap(mem, len);
}
END_TEST

/* Inside a page, address and iova have the same offset; a page at bus address 0 would count as
 * missing. */
START_TEST(pages_are_as_large_as_the_addresses_allow)
{
    size_t len = (size_t)8 << 20;
    struct prm_mkc mkc[1];
    uint8_t *mem = mmap((void *)0x100000, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, len, 0);
    uint64_t page;

    ck_assert_ptr_nonnull(mr);
    query_mkey(mr->lkey, mkc);
    page = 1ull << PRM_GET(mkc, mkc, log_page_size);
    ck_assert_uint_ge((uintptr_t)mem, page);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    for (uint64_t step = 4096; step < len; step *= 4) {
        mr = ibv_reg_mr_iova(pd, mem, len, (uintptr_t)mem + step, 0);
        ck_assert_ptr_nonnull(mr);
        query_mkey(mr->lkey, mkc);
        page = 1ull << PRM_GET(mkc, mkc, log_page_size);
        ck_assert_uint_eq(step & (page - 1), 0);
        ck_assert_uint_ge((PRM_GET(mkc, mkc, translations_octword_size) * 2) * page, len);
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    }
    munmap(mem, len);
}
END_TEST

/* ib_umem_get(): pinning memory that does not exist, or is not writable, fails with EFAULT. */
START_TEST(memory_that_is_not_there_cannot_be_registered)
{
    uint8_t *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(mem + 4096, 4096);
    expect_refused(pd, mem, LEN, (uintptr_t)mem, 0, EFAULT);
    expect_refused(pd, mem, 4097, (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE, EFAULT);
    mprotect(mem, 4096, PROT_READ);
    expect_refused(pd, mem, 4096, (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE, EFAULT);
    munmap(mem, LEN);
}
END_TEST

START_TEST(read_only_memory_can_be_registered_for_reading)
{
    static const char text[] = "constant";
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)text, sizeof(text), 0);

    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}
END_TEST

/* ib_check_mr_access(): remote write and atomic
 * access need local write. */
START_TEST(access_flags_are_checked)
{
    uint8_t mem[64];
    uintptr_t va = (uintptr_t)mem;

    expect_refused(pd, mem, 64, va, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    expect_refused(pd, mem, 64, va, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
    expect_refused(pd, mem, 64, va, 1u << 15, EINVAL);
    /* optional flags that a device does not know are ignored */
    ck_assert_int_eq(ibv_dereg_mr(ibv_reg_mr_iova2(pd, mem, 64, va, 1u << 25)), 0);
}
END_TEST

/* ib_uverbs_reg_mr(): both addresses must have the same offset in a page. */
START_TEST(address_and_length_are_checked)
{
    uint8_t mem[64];
    uintptr_t va = (uintptr_t)mem;

    expect_refused(pd, mem, 64, va + 1, 0, EINVAL);
    expect_refused(pd, mem, SIZE_MAX, va, 0, EINVAL);
    ck_assert_int_eq(ibv_dereg_mr(ibv_reg_mr_iova(pd, mem, 64, va % 4096, 0)), 0);
}
END_TEST

/* ib_umem_get(): a region without any page is refused; a region of no bytes inside a page has that
 * page. */
START_TEST(a_region_of_no_bytes_has_a_page)
{
    struct prm_mkc mkc[1];
    uint8_t *page = aligned_alloc(4096, 4096);
    struct ibv_mr *mr = ibv_reg_mr(pd, page + 8, 0, IBV_ACCESS_LOCAL_WRITE);

    expect_refused(pd, page, 0, (uintptr_t)page, 0, EINVAL);
    ck_assert_ptr_nonnull(mr);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), 0);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, start_addr), (uintptr_t)page + 8);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(page);
}
END_TEST

START_TEST(a_region_can_be_registered_anew)
{
    struct prm_mkc mkc[1];
    uint8_t mem[128];
    struct ibv_pd *other = ibv_alloc_pd(v->a);
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE);

    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 128, 0), 0);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), 128);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, lw), 1);
    ck_assert_uint_eq(mr->length, 128);
    ck_assert_int_eq(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ), 0);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, lw), 0);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, rr), 1);
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, pd), hv_pd(other)->pdn);
    ck_assert_int_eq(ibv_dealloc_pd(other), EBUSY);
    ck_assert_int_eq(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 8, 0),
                     IBV_REREG_MR_ERR_INPUT);
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, IBV_ACCESS_MW_BIND),
                     IBV_REREG_MR_ERR_INPUT);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other), 0);
}
END_TEST

/* A change that needs a new key keeps what an earlier change has set, and pinned memory stays
 * pinned (create_real_mr()). */
START_TEST(a_new_key_keeps_place_and_pinned_memory)
{
    uint8_t *pages = aligned_alloc(4096, 8192);
    struct ibv_mr *mr = ibv_reg_mr(pd, pages, 4096, IBV_ACCESS_LOCAL_WRITE);
    uint32_t key;
    struct prm_mkc mkc[1];

    ck_assert_ptr_nonnull(mr);
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, pages + 4096, 4096, 0),
                     0);
    key = mr->lkey;
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING),
                     0);
    ck_assert_uint_ne(mr->lkey, key);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, start_addr), (uintptr_t)pages + 4096);
    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
                     0);
    ck_assert_ptr_null(hv_mr(mr)->umem.odp);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    free(pages);
}
END_TEST

#define EVERYTHING                                                                                 \
    (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/* The region as the program and the device know it. */
static void expect_region(struct ibv_mr *mr, struct ibv_pd *in, void *addr, size_t len, unsigned rr)
{
    struct prm_mkc mkc[1];

    ck_assert_ptr_eq(mr->pd, in);
    ck_assert_ptr_eq(mr->addr, addr);
    ck_assert_uint_eq(mr->length, len);
    ck_assert_uint_eq(mr->lkey, mr->rkey);
    query_mkey(mr->lkey, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, pd), hv_pd(in)->pdn);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, start_addr), (uintptr_t)addr);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), len);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, rr), rr);
}

/* Memory, PD and rights change in one call. A call that fails changes nothing (mlx5_ib gets the new
 * memory and the new key before it gives up the old ones). */
START_TEST(everything_of_a_region_can_change_at_once)
{
    uint8_t mem[64], more[256];
    void *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_pd *other = ibv_alloc_pd(v->a);
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE);
    uint32_t handle = mr->handle, old = mr->lkey;
    struct prm_query_mkey_in in[1] = {0};
    struct prm_query_mkey_out out[1] = {0};

    munmap(gone, 4096);
    for (int flags = 1; flags <= EVERYTHING; flags++) { /* memory that is not there */
        if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
            ck_assert_int_eq(
                ibv_rereg_mr(mr, flags, other, gone, 4096,
                             flags & IBV_REREG_MR_CHANGE_ACCESS ? IBV_ACCESS_REMOTE_READ : 0),
                IBV_REREG_MR_ERR_CMD);
            ck_assert_int_eq(errno, EFAULT);
            expect_region(mr, pd, mem, 64, 0);
        }
    }
    /* rights that do not exist together */
    ck_assert_int_eq(ibv_rereg_mr(mr, EVERYTHING, other, more, 256, IBV_ACCESS_REMOTE_WRITE),
                     IBV_REREG_MR_ERR_CMD);
    ck_assert_int_eq(errno, EINVAL);
    expect_region(mr, pd, mem, 64, 0);
    /* a device that refuses the new key */
    table_refuse(v, 0, PRM_CMD_STATUS_NO_RES);
    ck_assert_int_eq(ibv_rereg_mr(mr, EVERYTHING, other, more, 256, IBV_ACCESS_REMOTE_READ),
                     IBV_REREG_MR_ERR_CMD);
    expect_region(mr, pd, mem, 64, 0);
    ck_assert_uint_eq(mr->lkey, old);
    ck_assert_int_eq(
        ibv_rereg_mr(mr, EVERYTHING | IBV_REREG_MR_FLAGS_SUPPORTED << 1, other, more, 256, 0),
        IBV_REREG_MR_ERR_INPUT);

    ck_assert_int_eq(ibv_rereg_mr(mr, EVERYTHING, other, more, 256, IBV_ACCESS_REMOTE_READ), 0);
    expect_region(mr, other, more, 256, 1);
    ck_assert_uint_eq(mr->handle, handle);
    PRM_SET(query_mkey_in, in, opcode, PRM_CMD_OP_QUERY_MKEY);
    PRM_SET(query_mkey_in, in, mkey_index, old >> 8);
    ck_assert(mr->lkey == old || hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(out)));
    ck_assert_int_eq(ibv_dealloc_pd(other), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other), 0);
}
END_TEST

static void expect_relaxed(uint32_t key, unsigned want)
{
    struct prm_mkc mkc[1];

    query_mkey(key, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, relaxed_ordering_write), want);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, relaxed_ordering_read), want);
}

/* Relaxed ordering allows a bus to reorder accesses through the key; the key has the flag as it was
 * registered. */
START_TEST(relaxed_ordering_is_a_right_of_the_key)
{
    uint8_t mem[64];
    struct ibv_mr *strict = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *relaxed =
        ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

    expect_relaxed(strict->lkey, 0);
    expect_relaxed(relaxed->lkey, 1);
    ck_assert_int_eq(
        ibv_rereg_mr(relaxed, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
        0);
    expect_relaxed(relaxed->lkey, 0);
    ck_assert_int_eq(ibv_rereg_mr(strict, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING),
                     0);
    expect_relaxed(strict->lkey, 1);
    ck_assert_int_eq(ibv_dereg_mr(strict), 0);
    ck_assert_int_eq(ibv_dereg_mr(relaxed), 0);
}
END_TEST

/* mlx5_ib changes PD and these rights by UMR: peers continue with the same key. */
START_TEST(a_change_of_rights_or_domain_keeps_the_key)
{
    struct prm_mkc mkc[1];
    uint8_t mem[64];
    struct ibv_pd *other = ibv_alloc_pd(v->a);
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE);
    uint32_t key = mr->rkey;

    ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                     0);
    ck_assert_uint_eq(mr->rkey, key);
    query_mkey(key, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, rw), 1);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), 64);
    ck_assert_int_eq(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
        0);
    ck_assert_uint_eq(mr->rkey, key);
    query_mkey(key, mkc);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, a), 1);
    for (int i = 0; i < 40; i++) { /* more than its queue holds at once */
        struct ibv_pd *to = i % 2 ? pd : other;

        ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, to, NULL, 0, 0), 0);
        ck_assert_uint_eq(mr->rkey, key);
        query_mkey(key, mkc);
        ck_assert_uint_eq(PRM_GET(mkc, mkc, pd), hv_pd(to)->pdn);
        ck_assert_uint_eq(PRM_GET(mkc, mkc, rw), 1);
    }
    /* ib_check_mr_access(): remote writes need local ones */
    ck_assert_int_eq(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
        IBV_REREG_MR_ERR_CMD);
    ck_assert_uint_eq(mr->rkey, key);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(other), 0);
}
END_TEST

START_TEST(a_domain_in_use_cannot_be_deallocated)
{
    uint8_t mem[64];
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, 64, 0);
    struct ibv_mw *mw;

    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    ck_assert_ptr_nonnull(mw);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
}
END_TEST

/* Posts one work request and waits for its completion. remote: the region that it accesses. Returns
 * the status. */
static enum ibv_wc_status run_one(struct ibv_qp *qp, struct ibv_cq *cq, enum ibv_wr_opcode opcode,
                                  struct ibv_sge *list, int num, const struct ibv_mr *remote)
{
    struct ibv_send_wr *bad,
        wr = {.sg_list = list, .num_sge = num, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};

    if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = (uintptr_t)remote->addr;
        wr.wr.atomic.rkey = remote->rkey;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)remote->addr;
        wr.wr.rdma.rkey = remote->rkey;
    }
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    return table_wc(v, cq).status;
}

/* ibv_alloc_null_mr(3): reads give zeros, writes are discarded, in any place of a list. */
START_TEST(a_null_region_gives_zeros_and_discards)
{
    static const uint8_t zeros[64];
    struct ibv_cq *cq = ibv_create_cq(v->a, 15, NULL, NULL, 0);
    struct ibv_cq *cq_b = ibv_create_cq(v->b, 15, NULL, NULL, 0);
    struct ibv_qp *a = table_qp_new(v, 0, cq, NULL), *b = table_qp_new(v, 1, cq_b, NULL);
    struct ibv_mr *near = table_mr_new(v, 0), *far = table_mr_new(v, 1);
    struct ibv_mr *null = ibv_alloc_null_mr(v->hosts->host[0].pd);
    struct ibv_sge list[] = {{(uintptr_t)near->addr, 16, near->lkey},
                             {0x123456789, 32, null->lkey},
                             {(uintptr_t)near->addr + 16, 16, near->lkey}};
    struct ibv_recv_wr *bad, recv = {.sg_list = list, .num_sge = 3};
    uint8_t *mine = near->addr, *theirs = far->addr;

    ck_assert_ptr_nonnull(null);
    ck_assert_uint_eq(null->length, SIZE_MAX);
    ck_assert_ptr_null(null->addr);
    table_connect(v, a, b);
    memset(mine, 0x11, 64);
    memset(theirs, 0x22, 128);
    ck_assert_int_eq(run_one(a, cq, IBV_WR_RDMA_WRITE, list, 3, far), IBV_WC_SUCCESS);
    ck_assert_mem_eq(theirs, mine, 16);
    ck_assert_mem_eq(theirs + 16, zeros, 32);
    ck_assert_mem_eq(theirs + 48, mine + 16, 16);
    ck_assert_uint_eq(theirs[64], 0x22);
    /* a READ, a receive and the result of an atomic */
    memset(theirs, 0x33, 64);
    ck_assert_int_eq(run_one(a, cq, IBV_WR_RDMA_READ, list, 3, far), IBV_WC_SUCCESS);
    ck_assert_mem_eq(mine, theirs, 32);
    ck_assert_uint_eq(mine[32], 0x11);
    ck_assert_int_eq(ibv_post_recv(a, &recv, &bad), 0);
    memset(theirs, 0x44, 64);
    list[0] = (struct ibv_sge){(uintptr_t)theirs, 64, far->lkey};
    ck_assert_int_eq(run_one(b, cq_b, IBV_WR_SEND, list, 1, near), IBV_WC_SUCCESS);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
    ck_assert_mem_eq(mine, theirs, 32);
    ck_assert_uint_eq(mine[32], 0x11);
    list[0] = (struct ibv_sge){0, 8, null->lkey};
    ck_assert_int_eq(run_one(a, cq, IBV_WR_ATOMIC_FETCH_AND_ADD, list, 1, far), IBV_WC_SUCCESS);
    /* the key is for local access alone */
    list[0] = (struct ibv_sge){(uintptr_t)theirs, 8, far->lkey};
    null->rkey = null->lkey;
    ck_assert_int_eq(run_one(b, cq_b, IBV_WR_RDMA_WRITE, list, 1, null), IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    ck_assert_int_eq(ibv_dereg_mr(null), 0);
    table_qp_free(a);
    table_qp_free(b);
    table_mr_free(near);
    table_mr_free(far);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq_b), 0);
}
END_TEST

START_TEST(a_parent_domain_holds_its_parts)
{
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(v->a, &td_attr);
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(v->a, &attr);
    uint8_t mem[64];
    struct ibv_mr *mr;

    ck_assert_ptr_nonnull(parent);
    ck_assert_uint_eq(hv_pd(parent)->pdn, hv_pd(pd)->pdn);
    ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    mr = ibv_reg_mr(parent, mem, 64, 0);
    ck_assert_ptr_eq(mr->pd, parent);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_dealloc_pd(parent), 0);
    ck_assert_int_eq(ibv_dealloc_td(td), 0);
    attr.pd = NULL;
    ck_assert_ptr_null(ibv_alloc_parent_domain(v->a, &attr));
}
END_TEST

START_TEST(imported_objects_are_the_ones_that_they_were_made_from)
{
    uint8_t mem[64];
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, 64, IBV_ACCESS_LOCAL_WRITE), *same;
    struct ibv_pd *again = ibv_import_pd(v->a, pd->handle);

    ck_assert_ptr_nonnull(again);
    ck_assert_uint_eq(hv_pd(again)->pdn, hv_pd(pd)->pdn);
    same = ibv_import_mr(again, mr->handle);
    ck_assert_ptr_nonnull(same);
    ck_assert_uint_eq(same->lkey, mr->lkey);
    ck_assert_uint_eq(same->length, mr->length);
    ck_assert_ptr_null(same->addr);
    ibv_unimport_mr(same);
    ck_assert_ptr_null(ibv_import_mr(again, mr->handle + 1));
    ck_assert_ptr_null(ibv_import_pd(v->a, pd->handle + 1000));
    /* the other HCA does not have it */
    ck_assert_ptr_null(ibv_import_pd(v->b, pd->handle));
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ibv_unimport_pd(again);
}
END_TEST

START_TEST(a_device_that_refuses_leaves_nothing_behind)
{
    uint8_t mem[64];
    struct ibv_mr *mr;

    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    expect_refused(pd, mem, 64, (uintptr_t)mem, 0, ENOMEM);
    mr = ibv_reg_mr(pd, mem, 64, 0);
    table_refuse(v, 0, PRM_CMD_STATUS_RES_BUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), EBUSY);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_ptr_null(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
    ck_assert_ptr_null(ibv_alloc_mw(pd, 0));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(an_xrc_domain_is_shared_through_its_file)
{
    char name[] = "/tmp/hcasim-xrcd-XXXXXX";
    int fd = mkstemp(name);
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = fd,
        .oflags = 0,
    };
    struct ibv_xrcd *first, *second, *alone;

    ck_assert_ptr_null(ibv_open_xrcd(v->a, &attr));
    ck_assert_int_eq(errno, EAGAIN);
    attr.oflags = O_CREAT;
    first = ibv_open_xrcd(v->a, &attr);
    second = ibv_open_xrcd(v->a, &attr);
    ck_assert_uint_eq(((struct hv_xrcd *)first)->xrcdn, ((struct hv_xrcd *)second)->xrcdn);
    attr.oflags = O_CREAT | O_EXCL;
    ck_assert_ptr_null(ibv_open_xrcd(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.fd = -1;
    alone = ibv_open_xrcd(v->a, &attr);
    ck_assert_uint_ne(((struct hv_xrcd *)first)->xrcdn, ((struct hv_xrcd *)alone)->xrcdn);
    attr.fd = 9999;
    ck_assert_ptr_null(ibv_open_xrcd(v->a, &attr));
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(ibv_close_xrcd(first), 0);
    ck_assert_int_eq(ibv_close_xrcd(second), 0);
    ck_assert_int_eq(ibv_close_xrcd(alone), 0);
    close(fd);
    unlink(name);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("memory");
    Suite *suite = suite_create("verbs-memory");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_region_has_the_rights_that_it_was_registered_with);
    tcase_add_test(tc, a_large_region_needs_two_entries);
    tcase_add_test(tc, pages_are_as_large_as_the_addresses_allow);
    tcase_add_test(tc, memory_that_is_not_there_cannot_be_registered);
    tcase_add_test(tc, read_only_memory_can_be_registered_for_reading);
    tcase_add_test(tc, access_flags_are_checked);
    tcase_add_test(tc, address_and_length_are_checked);
    tcase_add_test(tc, a_region_of_no_bytes_has_a_page);
    tcase_add_test(tc, a_region_can_be_registered_anew);
    tcase_add_test(tc, a_change_of_rights_or_domain_keeps_the_key);
    tcase_add_test(tc, a_new_key_keeps_place_and_pinned_memory);
    tcase_add_test(tc, everything_of_a_region_can_change_at_once);
    tcase_add_test(tc, relaxed_ordering_is_a_right_of_the_key);
    tcase_add_test(tc, a_domain_in_use_cannot_be_deallocated);
    tcase_add_test(tc, a_null_region_gives_zeros_and_discards);
    tcase_add_test(tc, a_parent_domain_holds_its_parts);
    tcase_add_test(tc, imported_objects_are_the_ones_that_they_were_made_from);
    tcase_add_test(tc, a_device_that_refuses_leaves_nothing_behind);
    tcase_add_test(tc, an_xrc_domain_is_shared_through_its_file);
    suite_add_tcase(suite, tc);
    return suite;
}
