/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests keys of keys of experimental verbs, and the UMRs that fill them: lists and repeated blocks,
 * in the WQE and in memory.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/suite.h"
#include "tests/verbs/exp_memory_bench.h"

/* Three pages of host 0, each in its region, filled with 'a', 'b' and 'c'. */
struct pages {
    uint8_t *mem[3];
    struct ibv_mr *mr[3];
};

static void pages_new(struct pages *p)
{
    for (unsigned i = 0; i < 3; i++) {
        p->mem[i] = aligned_alloc(PAGE, PAGE);
        memset(p->mem[i], 'a' + (int)i, PAGE);
        p->mr[i] = reg(p->mem[i], PAGE, RIGHTS);
        ck_assert_ptr_nonnull(p->mr[i]);
    }
}

static void pages_free(struct pages *p)
{
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(ibv_dereg_mr(p->mr[i]), 0);
        free(p->mem[i]);
    }
}

static struct ibv_mr *create_key(uint32_t n, uint32_t flags)
{
    struct ibv_exp_create_mr_in in = {
        .pd = pd,
        .attr = {.max_klm_list_size = n, .create_flags = flags, .exp_access_flags = RIGHTS}};

    errno = 0;
    return ibv_exp_create_mr(&in);
}

static struct ibv_exp_mkey_list_container *alloc_list(uint32_t n)
{
    struct ibv_exp_mkey_list_container_attr attr = {
        .pd = pd, .mkey_list_type = IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR, .max_klm_list_size = n};

    return ibv_exp_alloc_mkey_list_memory(&attr);
}

/* Posts a UMR: 0 or errno. */
static int post_umr(struct ibv_exp_send_wr *wr)
{
    struct ibv_exp_send_wr *bad;

    wr->exp_send_flags |= IBV_EXP_SEND_SIGNALED;
    return ibv_exp_post_send(qp, wr, &bad);
}

static enum ibv_wc_status umr(struct ibv_exp_send_wr *wr)
{
    struct ibv_wc wc;

    ck_assert_int_eq(post_umr(wr), 0);
    wc = table_wc(v, cq);
    if (wc.status == IBV_WC_SUCCESS) {
        ck_assert_int_eq(wc.opcode, IBV_WC_DRIVER1);
    }
    return wc.status;
}

/* A list of 10 bytes of each page, the last page first. memory: NULL for a list in the WQE. */
static struct ibv_exp_send_wr list_wr(struct ibv_mr *key, struct ibv_exp_mem_region list[3],
                                      const struct pages *p,
                                      struct ibv_exp_mkey_list_container *memory)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_UMR_FILL,
                                 .exp_send_flags = memory ? 0 : IBV_EXP_SEND_INLINE};

    for (unsigned i = 0; i < 3; i++) {
        list[i] = (struct ibv_exp_mem_region){
            .base_addr = (uintptr_t)p->mem[2 - i] + 100, .mr = p->mr[2 - i], .length = 10};
    }
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST;
    wr.ext_op.umr.memory_objects = memory;
    wr.ext_op.umr.exp_access = RIGHTS;
    wr.ext_op.umr.modified_mr = key;
    wr.ext_op.umr.base_addr = 0x10000;
    wr.ext_op.umr.num_mrs = 3;
    wr.ext_op.umr.mem_list.mem_reg_list = list;
    return wr;
}

START_TEST(a_list_joins_ranges_of_regions)
{
    struct ibv_exp_mkey_list_container *memory = _i ? alloc_list(3) : NULL;
    struct ibv_mr *key = create_key(3, IBV_EXP_MR_INDIRECT_KLMS);
    struct ibv_exp_mem_region list[3];
    struct ibv_exp_send_wr wr;
    struct pages p;

    ck_assert_ptr_nonnull(key);
    ck_assert_int_eq(!memory, !_i);
    pages_new(&p);
    wr = list_wr(key, list, &p, memory);
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0x10000, 30), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "ccccccccccbbbbbbbbbbaaaaaaaaaa", 30);
    memcpy(far->addr, "012345678901234567890123456789", 30);
    ck_assert_int_eq(move(IBV_WR_RDMA_READ, key->lkey, 0x10000 + 5, 20), IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.mem[2] + 99, "cccccc01234c", 12);
    ck_assert_mem_eq(p.mem[1] + 99, "b5678901234b", 12);
    ck_assert_mem_eq(p.mem[0] + 99, "a56789aaaaaa", 12);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0x10000, 31), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    if (memory) {
        ck_assert_int_eq(ibv_exp_dealloc_mkey_list_memory(memory), 0);
    }
    pages_free(&p);
}
END_TEST

/* Blocks of 2 and 3 bytes of two regions in turn, four times; strides 10 and 5. */
START_TEST(a_repeated_block_takes_turns)
{
    struct ibv_exp_mkey_list_container *memory = _i ? alloc_list(2) : NULL;
    struct ibv_mr *key = create_key(2, IBV_EXP_MR_INDIRECT_KLMS);
    size_t bytes[2] = {2, 3}, strides[2] = {10, 5}, rounds = 4;
    struct ibv_exp_mem_repeat_block blocks[2];
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_UMR_FILL,
                                 .exp_send_flags = memory ? 0 : IBV_EXP_SEND_INLINE};
    struct pages p;

    pages_new(&p);
    for (unsigned i = 0; i < 2; i++) {
        blocks[i] = (struct ibv_exp_mem_repeat_block){.base_addr = (uintptr_t)p.mem[i],
                                                      .mr = p.mr[i],
                                                      .byte_count = &bytes[i],
                                                      .stride = &strides[i]};
    }
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_REPEAT;
    wr.ext_op.umr.memory_objects = memory;
    wr.ext_op.umr.exp_access = RIGHTS;
    wr.ext_op.umr.modified_mr = key;
    wr.ext_op.umr.num_mrs = 2;
    wr.ext_op.umr.mem_list.rb.mem_repeat_block_list = blocks;
    wr.ext_op.umr.mem_list.rb.repeat_count = &rounds;
    wr.ext_op.umr.mem_list.rb.stride_dim = 1;
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0, 20), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "aabbbaabbbaabbbaabbb", 20);
    memcpy(far->addr, "ABCDEFGHIJKLMNOPQRST", 20);
    ck_assert_int_eq(move(IBV_WR_RDMA_READ, key->lkey, 0, 20), IBV_WC_SUCCESS);
    ck_assert_mem_eq(p.mem[0], "ABaaaaaaaaFGaaaaaaaaKLaaaaaaaaPQa", 33);
    ck_assert_mem_eq(p.mem[1], "CDEbbHIJbbMNObbRSTb", 19);

    wr.ext_op.umr.mem_list.rb.stride_dim = 2;
    ck_assert_int_eq(post_umr(&wr), ENOMEM);
    wr.ext_op.umr.mem_list.rb.stride_dim = 1;
    strides[1] = 0x10000;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    strides[1] = 5;
    rounds = 1ull << 32;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0, 21), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    if (memory) {
        ck_assert_int_eq(ibv_exp_dealloc_mkey_list_memory(memory), 0);
    }
    pages_free(&p);
}
END_TEST

/* Keys of keys, as deep as max_umr_recursion_depth says. */
START_TEST(lists_may_name_lists)
{
    struct ibv_mr *key[5];
    struct ibv_exp_mem_region list[3];
    struct ibv_exp_send_wr wr;
    struct pages p;

    pages_new(&p);
    for (unsigned i = 0; i < 5; i++) {
        key[i] = create_key(3, IBV_EXP_MR_INDIRECT_KLMS);
        wr = list_wr(key[i], list, &p, NULL);
        if (i) {
            list[0] = (struct ibv_exp_mem_region){0x10000, key[i - 1], 30 - (i - 1) * 2};
            list[0].length = 28 - i * 2;
            wr.ext_op.umr.num_mrs = 1;
        }
        ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key[3]->lkey, 0x10000 + 8, 4), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "ccbb", 4);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key[4]->lkey, 0x10000, 4), IBV_WC_LOC_PROT_ERR);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(ibv_dereg_mr(key[i]), 0);
    }
    pages_free(&p);
}
END_TEST

START_TEST(an_invalidated_key_is_free_until_it_is_filled_again)
{
    struct ibv_mr *key = create_key(3, IBV_EXP_MR_INDIRECT_KLMS);
    struct ibv_exp_send_wr invalidate = {.exp_opcode = IBV_EXP_WR_UMR_INVALIDATE}, wr;
    struct ibv_exp_mem_region list[3];
    struct pages p;

    pages_new(&p);
    invalidate.ext_op.umr.modified_mr = key;
    wr = list_wr(key, list, &p, NULL);
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(umr(&invalidate), IBV_WC_SUCCESS);
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0x10000, 30), IBV_WC_SUCCESS);
    ck_assert_int_eq(umr(&invalidate), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0x10000, 30), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    pages_free(&p);
}
END_TEST

/* Ranges of 4 KiB; the last is shorter. */
START_TEST(ranges_of_one_size)
{
    struct ibv_mr *key = create_key(3, IBV_EXP_MR_FIXED_BUFFER_SIZE);
    struct ibv_exp_mem_region list[3];
    struct ibv_exp_send_wr wr;
    struct pages p;

    ck_assert_ptr_nonnull(key);
    pages_new(&p);
    wr = list_wr(key, list, &p, NULL);
    for (unsigned i = 0; i < 3; i++) {
        list[i] = (struct ibv_exp_mem_region){(uintptr_t)p.mem[i], p.mr[i], i < 2 ? PAGE : 100};
    }
    wr.ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST_FIXED_SIZE;
    wr.ext_op.umr.base_addr = 0;
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, PAGE - 3, 6), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "aaabbb", 6);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 2 * PAGE - 1, 101), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "bccc", 4);

    list[1].length = PAGE / 2;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    list[1].length = PAGE;
    list[2].length = PAGE + 1;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    list[0].length = list[1].length = list[2].length = 2048;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    list[0].length = list[1].length = list[2].length = 3 * PAGE;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    wr.ext_op.umr.num_mrs = 1;
    list[0].length = 100;
    ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0, 101), IBV_WC_LOC_PROT_ERR);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    pages_free(&p);
}
END_TEST

START_TEST(bad_umrs_are_not_posted)
{
    struct ibv_exp_mkey_list_container *memory = alloc_list(2);
    struct ibv_mr *key = create_key(40, IBV_EXP_MR_INDIRECT_KLMS), *small;
    struct ibv_exp_mem_region list[21];
    struct ibv_exp_send_wr wr;
    struct pages p;

    pages_new(&p);
    small = create_key(1, IBV_EXP_MR_INDIRECT_KLMS);
    wr = list_wr(key, list, &p, memory);
    ck_assert_int_eq(post_umr(&wr), EINVAL); /* 3 in memory for 2 */
    wr = list_wr(key, list, &p, NULL);
    wr.exp_send_flags = 0;
    ck_assert_int_eq(post_umr(&wr), EINVAL); /* no memory */
    wr = list_wr(key, list, &p, NULL);
    wr.ext_op.umr.num_mrs = 0;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    for (unsigned i = 3; i < 21; i++) {
        list[i] = list[0];
    }
    wr.ext_op.umr.num_mrs = 21;
    ck_assert_int_eq(post_umr(&wr), EINVAL); /* 20 in a WQE */
    wr.ext_op.umr.umr_type = 3;
    wr.ext_op.umr.num_mrs = 1;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    wr = list_wr(small, list, &p, NULL);
    wr.ext_op.umr.num_mrs = 5;
    ck_assert_int_eq(post_umr(&wr), EINVAL); /* a key has room for fours */
    wr = list_wr(key, list, &p, NULL);
    list[1].length = 1ull << 32;
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    wr = list_wr(key, list, &p, NULL);
    user_qp(qp)->exp_flags = 0; /* a QP without IBV_EXP_QP_CREATE_UMR */
    ck_assert_int_eq(post_umr(&wr), EINVAL);
    user_qp(qp)->exp_flags = IBV_EXP_QP_CREATE_UMR;

    wr = list_wr(key, list, &p, NULL);
    for (unsigned i = 3; i < 20; i++) {
        list[i] = list[0];
    }
    wr.ext_op.umr.num_mrs = 20;
    for (unsigned i = 0; i < 40; i++) { /* around the end of the ring */
        ck_assert_int_eq(umr(&wr), IBV_WC_SUCCESS);
    }
    ck_assert_int_eq(move(IBV_WR_RDMA_WRITE, key->lkey, 0x10000 + 180, 20), IBV_WC_SUCCESS);
    ck_assert_mem_eq(far->addr, "cccccccccccccccccccc", 20);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    ck_assert_int_eq(ibv_dereg_mr(small), 0);
    ck_assert_int_eq(ibv_exp_dealloc_mkey_list_memory(memory), 0);
    pages_free(&p);
}
END_TEST

START_TEST(completions_of_umrs_say_so)
{
    struct ibv_mr *key = create_key(3, IBV_EXP_MR_INDIRECT_KLMS);
    struct ibv_exp_mem_region list[3];
    struct ibv_exp_send_wr wr;
    struct ibv_exp_wc wc;
    struct pages p;

    pages_new(&p);
    wr = list_wr(key, list, &p, NULL);
    for (unsigned i = 0; i < 2; i++) {
        wr.exp_opcode = i ? IBV_EXP_WR_UMR_INVALIDATE : IBV_EXP_WR_UMR_FILL;
        wr.wr_id = 70 + i;
        ck_assert_int_eq(post_umr(&wr), 0);
        table_wait(v);
        ck_assert_int_eq(ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc)), 1);
        ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
        ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_UMR);
        ck_assert_uint_eq(wc.wr_id, 70 + i);
    }
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    pages_free(&p);
}
END_TEST

START_TEST(a_qp_has_up_to_twenty_keys_in_its_wqes)
{
    struct ibv_exp_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_send_sge = 1},
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
                     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
        .pd = pd,
        .exp_create_flags = IBV_EXP_QP_CREATE_UMR,
        .max_inl_send_klms = HV_EXP_MAX_INLINE_KLMS + 1,
    };

    ck_assert_ptr_null(ibv_exp_create_qp(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
    attr.max_inl_send_klms = UINT32_MAX;
    ck_assert_ptr_null(ibv_exp_create_qp(v->a, &attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(keys_say_how_many_keys_they_can_name)
{
    struct ibv_exp_mkey_list_container_attr attr = {
        .pd = pd, .mkey_list_type = 1, .max_klm_list_size = 4};
    struct ibv_exp_mkey_attr said = {0};
    struct ibv_mr *key = create_key(5, IBV_EXP_MR_INDIRECT_KLMS), *plain = table_mr_new(v, 0);

    ck_assert_int_eq(ibv_exp_query_mkey(key, &said), 0);
    ck_assert_uint_eq(said.max_klm_list_size, 8);
    ck_assert_int_eq(ibv_exp_query_mkey(plain, &said), 0);
    ck_assert_uint_eq(said.max_klm_list_size, 0);
    table_mr_free(plain);
    ck_assert_int_eq(ibv_dereg_mr(key), 0);
    ck_assert_ptr_null(create_key(4, IBV_EXP_MR_SIGNATURE_EN));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_ptr_null(create_key(4, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(create_key((1u << 16) + 1, IBV_EXP_MR_INDIRECT_KLMS));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(ibv_exp_alloc_mkey_list_memory(&attr));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(alloc_list((1u << 16) + 1));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("exp_umr");
    TCase *tc = tcase_create("exp_umr");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_list_joins_ranges_of_regions, 0, 2);
    tcase_add_loop_test(tc, a_repeated_block_takes_turns, 0, 2);
    tcase_add_test(tc, lists_may_name_lists);
    tcase_add_test(tc, an_invalidated_key_is_free_until_it_is_filled_again);
    tcase_add_test(tc, ranges_of_one_size);
    tcase_add_test(tc, bad_umrs_are_not_posted);
    tcase_add_test(tc, completions_of_umrs_say_so);
    tcase_add_test(tc, a_qp_has_up_to_twenty_keys_in_its_wqes);
    tcase_add_test(tc, keys_say_how_many_keys_they_can_name);
    suite_add_tcase(suite, tc);
    return suite;
}
