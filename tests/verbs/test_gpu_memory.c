/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests operations whose data is memory of a GPU (guest-lib/host/gpu.h), under the stand-in GPU: on
 * two hosts in virtual time, with each kind of memory on each side.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/programs/masked_wqe.h"
#include "tests/unit/suite.h"
#include "tests/verbs/gpu_areas.h"

#define KB  ((size_t)1 << 10)
#define MB  ((size_t)1 << 20)
#define GRH 40
/* Pairs of kinds, of which a GPU has at least one. */
#define PAIRS     (AREA_KINDS * AREA_KINDS - 1)
#define KIND_A(i) ((enum area_kind)((i) / AREA_KINDS))
#define KIND_B(i) ((enum area_kind)((i) % AREA_KINDS))

static const struct lossy_config bad = {
    .seed = 5, .lose = 20, .twice = 10, .late = 20, .corrupt = 5, .fcs = true};

static void setup(void)
{
    areas_begin(NULL);
}

static void setup_lossy(void)
{
    areas_begin(&bad);
}

static void teardown(void)
{
    areas_end();
}

/* -- data -------------------------------------------------------------------------------------- */

static const struct {
    size_t from, to, len;
} moves[] = {
    {0, 0, 1},       {3, 8, 4},           {8, 16, 8},        {5, 1, 9},
    {64, 128, 64},   {1, 2, 1023},        {0, 4096, 1024},   {7, 3, 4096},
    {100, 50, 9000}, {0, 5, 64 * KB + 3}, {13, 0, 100 * KB},
};
#define LEN (128 * KB)

START_TEST(writes_and_reads_move_the_data)
{
    struct area near = area_new(area_pd(0), KIND_A(_i), LEN, 1);
    struct area far = area_new(area_pd(1), KIND_B(_i), LEN, 2);

    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        size_t from = moves[i].from, to = moves[i].to, len = moves[i].len;

        area_post(IBV_WR_RDMA_WRITE, area_part(&near, from, len), &far, to, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(&far, to, len, 1, from);
        area_expect_rest(&far, to, len, 2);
        area_fill(&far, 2);
        area_post(IBV_WR_RDMA_READ, area_part(&near, from, len), &far, to, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(&near, from, len, 2, to);
        area_expect_rest(&near, from, len, 1);
        area_fill(&near, 1);
    }
    area_end(&near);
    area_end(&far);
}
END_TEST

START_TEST(sends_are_received)
{
    struct area near = area_new(area_pd(0), KIND_A(_i), LEN, 1);
    struct area far = area_new(area_pd(1), KIND_B(_i), LEN, 2);

    for (size_t i = 0; i < G_N_ELEMENTS(moves); i++) {
        size_t from = moves[i].from, to = moves[i].to, len = moves[i].len;

        area_receive(areas.b, area_part(&far, to, len));
        area_post(IBV_WR_SEND_WITH_IMM, area_part(&near, from, len), NULL, 0, 0);
        area_expect(areas.cq[1], IBV_WC_SUCCESS);
        area_expect_bytes(&far, to, len, 1, from);
        area_expect_rest(&far, to, len, 2);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_fill(&far, 2);
    }
    area_end(&near);
    area_end(&far);
}
END_TEST

/* The data of an inline WR is in the WQE; the program's CPU copied it there. */
START_TEST(inline_data_is_written)
{
    struct area far = area_new(area_pd(1), (enum area_kind)_i, 4096, 2);
    uint8_t bytes[60];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = area_byte(1, i);
    }
    for (uint32_t len = 1; len <= sizeof(bytes); len++) {
        struct ibv_sge sge = {.addr = (uintptr_t)bytes, .length = len};

        area_post(IBV_WR_RDMA_WRITE, sge, &far, 2000 + len, IBV_SEND_INLINE);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(&far, 2000 + len, len, 1, 0);
        area_expect_rest(&far, 2000 + len, len, 2);
        area_fill(&far, 2);
    }
    area_end(&far);
}
END_TEST

/* Elements of different memory make one message. */
START_TEST(a_message_may_be_gathered_and_scattered)
{
    struct area near[2] = {area_new(area_pd(0), KIND_A(_i), 8192, 1),
                           area_new(area_pd(0), KIND_B(_i), 8192, 2)};
    struct area far[2] = {area_new(area_pd(1), KIND_B(_i), 8192, 3),
                          area_new(area_pd(1), KIND_A(_i), 8192, 4)};
    struct ibv_sge from[] = {area_part(&near[0], 5, 3000), area_part(&near[1], 1, 7),
                             area_part(&near[0], 4001, 1000)};
    struct ibv_sge to[] = {area_part(&far[0], 9, 2999), area_part(&far[1], 0, 1008)};
    struct ibv_send_wr send = {.sg_list = from,
                               .num_sge = 3,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *failed;
    struct ibv_recv_wr receive = {.sg_list = to, .num_sge = 2}, *unread;

    ck_assert_int_eq(ibv_post_recv(areas.b, &receive, &unread), 0);
    ck_assert_int_eq(ibv_post_send(areas.a, &send, &failed), 0);
    area_expect(areas.cq[1], IBV_WC_SUCCESS);
    area_expect_bytes(&far[0], 9, 2999, 1, 5);
    area_expect_rest(&far[0], 9, 2999, 3);
    area_expect_bytes(&far[1], 0, 1, 1, 3004);
    area_expect_bytes(&far[1], 1, 7, 2, 1);
    area_expect_bytes(&far[1], 8, 1000, 1, 4001);
    area_expect_rest(&far[1], 0, 1008, 4);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        area_end(&near[i]);
        area_end(&far[i]);
    }
}
END_TEST

#define PIECE  (64 * KB) /* the unit of the stand-in's addresses */
#define PIECES 4
#define EACH   10000u /* bytes of a message in each of two pieces */

/* Finds one of the pieces whose end is the beginning of another. */
static struct area *find_before(struct area *pieces, const struct area *after)
{
    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].addr + PIECE == after->addr) {
            return &pieces[i];
        }
    }
    return NULL;
}

/* Two allocations that lie side by side are one region, and the driver refuses a copy of both. */
START_TEST(a_message_may_be_in_two_allocations)
{
    struct area near = area_new(area_pd(0), AREA_PLAIN, 2 * EACH, 7), pieces[PIECES];
    struct area *first = NULL, *second = NULL;
    struct ibv_mr *both;

    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = area_new(area_pd(1), AREA_DEVICE, PIECE, i);
    }
    for (unsigned i = 0; i < PIECES && !first; i++) {
        second = &pieces[i];
        first = find_before(pieces, second);
    }
    ck_assert_ptr_nonnull(first);
    both = ibv_reg_mr(area_pd(1), (void *)(uintptr_t)first->addr, 2 * PIECE, AREA_RIGHTS);
    ck_assert_ptr_nonnull(both);
    for (unsigned i = 0; i < 3; i++) {
        struct area far = {.mr = both};
        size_t start = PIECE - EACH;

        area_fill(&near, 7 + i);
        if (i == 2) {
            area_receive(areas.b, area_part(&far, start, 2 * EACH));
            area_post(IBV_WR_SEND, area_part(&near, 0, 2 * EACH), NULL, 0, 0);
            area_expect(areas.cq[1], IBV_WC_SUCCESS);
        } else {
            area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, 2 * EACH), &far, start, 0);
        }
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(first, start, EACH, 7 + i, 0);
        area_expect_bytes(second, 0, EACH, 7 + i, EACH);
        area_expect_rest(first, start, EACH, (unsigned)(first - pieces));
        area_expect_rest(second, 0, EACH, (unsigned)(second - pieces));
        area_fill(&near, 99);
        area_post(IBV_WR_RDMA_READ, area_part(&near, 0, 2 * EACH), &far, start, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(&near, 0, 2 * EACH, 7 + i, 0);
    }
    ck_assert_int_eq(ibv_dereg_mr(both), 0);
    for (unsigned i = 0; i < PIECES; i++) {
        area_end(&pieces[i]);
    }
    area_end(&near);
}
END_TEST

START_TEST(datagrams_are_received)
{
    struct area near = area_new(area_pd(0), KIND_A(_i), 4096, 1);
    struct area far = area_new(area_pd(1), KIND_B(_i), 4096, 2);
    struct ibv_qp *from = verbs_qp(&areas.v->hosts->host[0], IBV_QPT_UD, areas.cq[0], NULL, NULL);
    struct ibv_qp *to = verbs_qp(&areas.v->hosts->host[1], IBV_QPT_UD, areas.cq[1], NULL, NULL);
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = areas.v->hosts->host[1].config.gid[1], .sgid_index = 1, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(area_pd(0), &attr);
    struct ibv_sge sge = area_part(&near, 3, 1000);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = to->qp_num, .remote_qkey = 7}},
                       *failed;

    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_attr state = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
        struct ibv_qp *qp = i ? to : from;

        ck_assert_int_eq(
            ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            0);
        state.qp_state = IBV_QPS_RTR;
        ck_assert_int_eq(ibv_modify_qp(qp, &state, IBV_QP_STATE), 0);
        state.qp_state = IBV_QPS_RTS;
        ck_assert_int_eq(ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    }
    area_receive(to, area_part(&far, 8, GRH + 1000));
    ck_assert_int_eq(ibv_post_send(from, &wr, &failed), 0);
    area_expect(areas.cq[1], IBV_WC_SUCCESS);
    area_expect_bytes(&far, 8 + GRH, 1000, 1, 3);
    area_expect_rest(&far, 8, GRH + 1000, 2);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    table_qp_free(from);
    table_qp_free(to);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* -- atomics ----------------------------------------------------------------------------------- */

/* The word of the target, and that of the answer; both are at an odd multiple of 8. */
static uint64_t word_at(const struct area *area, size_t at)
{
    uint64_t word;

    memcpy(&word, area_at(area, at), sizeof(word));
    return word;
}

static uint64_t do_atomic(const struct area *near, const struct area *far, bool swap,
                          uint64_t compare_add, uint64_t to)
{
    struct ibv_sge sge = area_part(near, 24, 8);
    struct ibv_send_wr *failed;
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode =
                                 swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)far->mr->addr + 8,
                                           .rkey = far->mr->rkey,
                                           .compare_add = compare_add,
                                           .swap = to}};

    ck_assert_int_eq(ibv_post_send(areas.a, &wr, &failed), 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    return word_at(near, 24);
}

/* Returns the old value. */
static uint64_t do_masked(const struct area *near, const struct area *far, enum masked_opcode what,
                          unsigned size, const uint64_t operands[4])
{
    struct masked_wqe w = {.opcode = what,
                           .size = size,
                           .remote = (uintptr_t)far->mr->addr + 8,
                           .rkey = far->mr->rkey,
                           .lkey = near->mr->lkey,
                           .local = (uint8_t *)near->mr->addr + 24};
    uint64_t word;

    memcpy(w.operands, operands, sizeof(w.operands));
    masked_post(areas.a, &w);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    word = word_at(near, 24);
    return size == 8 ? word : be32toh((uint32_t)word);
}

/* All atomics, one after the other. */
static void check_atomics(const struct area *near, const struct area *far)
{
    static const uint64_t add[4] = {5, 0}, fields[4] = {0xff, 0x80},
                          swap[4] = {0x4200, 0, 0xff00, 0}, hit[4] = {9, 0x42, 0xf, 0xff},
                          no[4] = {9, 0x4200, 0xf, 0xff00};
    uint64_t zero = 0;

    ck_assert_uint_eq(word_at(far, 8), 0);
    ck_assert_uint_eq(do_atomic(near, far, false, 0xffffffff, 0), 0);
    ck_assert_uint_eq(do_atomic(near, far, false, 2, 0), 0xffffffff);
    ck_assert_uint_eq(word_at(far, 8), 0x100000001);
    ck_assert_uint_eq(do_atomic(near, far, true, 1, 7), 0x100000001);
    ck_assert_uint_eq(do_atomic(near, far, true, 0x100000001, 7), 0x100000001);
    ck_assert_uint_eq(word_at(far, 8), 7);
    for (unsigned size = 4; size <= 8; size += 4) {
        memcpy(area_at(far, 8), &zero, sizeof(zero));
        ck_assert_uint_eq(do_masked(near, far, MASKED_ADD, size, add), 0);
        ck_assert_uint_eq(do_masked(near, far, MASKED_ADD, size, add), 5);
        ck_assert_uint_eq(do_masked(near, far, MASKED_ADD, size, fields), 10); /* no carry */
        ck_assert_uint_eq(do_masked(near, far, MASKED_SWAP, size, swap), 9);
        ck_assert_uint_eq(do_masked(near, far, MASKED_SWAP, size, hit), 0x4209);
        ck_assert_uint_eq(do_masked(near, far, MASKED_SWAP, size, no), 0x4209);
        ck_assert_uint_eq(word_at(far, 8), 0x4209);
    }
}

/* An area whose word for atomics is 0. */
static struct area new_target(enum area_kind kind)
{
    struct area far = area_new(area_pd(1), kind, 4096, 2);

    memset(area_at(&far, 8), 0, 8);
    return far;
}

static void expect_target(const struct area *far)
{
    area_expect_rest(far, 8, 8, 2);
}

START_TEST(atomics_change_words)
{
    struct area near = area_new(area_pd(0), KIND_A(_i), 4096, 1), far = new_target(KIND_B(_i));

    check_atomics(&near, &far);
    expect_target(&far);
    area_expect_rest(&near, 24, 8, 1);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* Kernels that do not end fill the GPU: the operation is done by copies. When there is room again,
 * the kernel does it again. */
START_TEST(atomics_need_no_kernel)
{
    struct area near = area_new(area_pd(0), AREA_DEVICE, 4096, 1), far = new_target(AREA_DEVICE);
    struct standin_counts before, after;

    hcasim_standin_count(&before);
    hcasim_standin_hold(STANDIN_KERNELS);
    check_atomics(&near, &far);
    hcasim_standin_count(&after);
    ck_assert_uint_eq(after.kernels, before.kernels);
    hcasim_standin_hold(0);
    memset(area_at(&far, 8), 0, 8);
    check_atomics(&near, &far);
    hcasim_standin_count(&after);
    ck_assert_uint_gt(after.kernels, before.kernels + 1);
    expect_target(&far);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* With lazy loading, the driver loads a kernel at its first launch, and waits until all kernels
 * that run have ended. So the kernel is launched once when memory is registered, not when a kernel
 * of the program may already wait for an atomic. */
START_TEST(the_kernel_of_atomics_runs_at_registration)
{
    struct standin_counts before, after;
    struct area far;

    hcasim_standin_count(&before);
    far = new_target(AREA_DEVICE);
    hcasim_standin_count(&after);
    ck_assert_uint_eq(after.kernels, before.kernels + 1);
    expect_target(&far);
    area_end(&far);
}
END_TEST

struct hammer {
    uint64_t *word;
    uint64_t added;
    bool stop;
};

/* What a kernel of the program would do. */
static void *hammer_work(void *opaque)
{
    struct hammer *hammer = opaque;

    while (!__atomic_load_n(&hammer->stop, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(hammer->word, 3, __ATOMIC_SEQ_CST);
        hammer->added += 3;
    }
    return NULL;
}

/* Ten atomics of each kind while a kernel changes the same word. Returns whether the driver made no
 * copy meanwhile: on a busy machine the kernel of an atomic may start too late, and then copies do
 * the operation, which is not atomic to kernels. */
static bool hammer_once(const struct area *near, const struct area *far)
{
    struct hammer hammer = {.word = (uint64_t *)(void *)area_at(far, 8)};
    uint64_t added = 0, add[4] = {1, 0}, top[4] = {1ull << 63, 0, 1ull << 63, 0};
    struct standin_counts before, after;
    pthread_t thread;

    memset(area_at(far, 8), 0, 8);
    hcasim_standin_count(&before);
    ck_assert_int_eq(pthread_create(&thread, NULL, hammer_work, &hammer), 0);
    for (unsigned i = 0; i < 10; i++) {
        do_atomic(near, far, false, 1ull << 40, 0);
        do_masked(near, far, MASKED_ADD, 8, add);
        do_masked(near, far, MASKED_SWAP, 8, top);
        added += (1ull << 40) + 1;
    }
    __atomic_store_n(&hammer.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    hcasim_standin_count(&after);
    if (after.copies != before.copies) {
        return false;
    }
    ck_assert_uint_eq(word_at(far, 8), (hammer.added + added) | 1ull << 63);
    return true;
}

/* A kernel changes the same word meanwhile: nothing is lost. */
START_TEST(atomics_and_kernels_lose_nothing)
{
    struct area near = area_new(area_pd(0), AREA_PLAIN, 4096, 1), far = new_target(AREA_DEVICE);
    unsigned seen = 0;

    for (unsigned i = 0; i < 100 && seen < 5; i++) {
        seen += hammer_once(&near, &far);
    }
    ck_assert_uint_gt(seen, 0);
    expect_target(&far);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* -- long messages, and bad cables ------------------------------------------------------------- */

START_TEST(long_messages_arrive)
{
    enum area_kind kind = (enum area_kind)_i;
    size_t len = MB + 13;
    struct area near = area_new(area_pd(0), kind, len + 5, 1);
    struct area far = area_new(area_pd(1), kind, len + 5, 2);

    area_post(IBV_WR_RDMA_WRITE, area_part(&near, 2, len), &far, 3, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect_bytes(&far, 3, len, 1, 2);
    area_expect_rest(&far, 3, len, 2);
    area_fill(&far, 3);
    area_post(IBV_WR_RDMA_READ, area_part(&near, 2, len), &far, 3, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect_bytes(&near, 2, len, 3, 3);
    area_expect_rest(&near, 2, len, 1);
    area_fill(&near, 4);
    area_receive(areas.b, area_part(&far, 0, len));
    area_post(IBV_WR_SEND, area_part(&near, 5, len), NULL, 0, 0);
    area_expect(areas.cq[1], IBV_WC_SUCCESS);
    area_expect_bytes(&far, 0, len, 4, 5);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* Each takes effect once, though requests and answers are lost. */
START_TEST(atomics_take_effect_once)
{
    struct area near = area_new(area_pd(0), AREA_DEVICE, 4096, 1), far = new_target(AREA_DEVICE);

    for (uint64_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(do_atomic(&near, &far, false, 3, 0), 3 * i);
    }
    ck_assert_uint_eq(word_at(&far, 8), 300);
    ck_assert_uint_gt(verbs_faults(areas.v->hosts), 0);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* -- order ------------------------------------------------------------------------------------- */

/* Copies take their time, and streams have no order between them. The data is there when the
 * completion is. */
START_TEST(data_is_there_before_its_completion)
{
    struct area near = area_new(area_pd(0), KIND_A(_i), 8192, 1);
    struct area far = area_new(area_pd(1), KIND_B(_i), 8192, 2);

    hcasim_standin_delay(300);
    area_receive(areas.b, area_part(&far, 0, 5000));
    area_post(IBV_WR_SEND, area_part(&near, 0, 5000), NULL, 0, 0);
    area_expect(areas.cq[1], IBV_WC_SUCCESS);
    area_expect_bytes(&far, 0, 5000, 1, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_fill(&far, 2);
    area_receive(areas.b, area_part(&far, 0, 0));
    area_post(IBV_WR_RDMA_WRITE_WITH_IMM, area_part(&near, 0, 5000), &far, 0, 0);
    area_expect(areas.cq[1], IBV_WC_SUCCESS);
    area_expect_bytes(&far, 0, 5000, 1, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_fill(&near, 3);
    area_post(IBV_WR_RDMA_READ, area_part(&near, 0, 5000), &far, 0, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect_bytes(&near, 0, 5000, 1, 0);
    area_fill(&far, 2);
    area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, 5000), &far, 0, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS); /* an acknowledgement says so as well */
    area_expect_bytes(&far, 0, 5000, 1, 0);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* A flag that a WRITE puts behind the data of another WRITE is seen after that data. */
START_TEST(a_flag_is_seen_after_its_data)
{
    struct area near = area_new(area_pd(0), AREA_PLAIN, 8192, 1);
    struct area data = area_new(area_pd(1), KIND_A(_i), 8192, 2);
    struct area flag = area_new(area_pd(1), KIND_B(_i), 4096, 3);
    uint32_t done = 0x600df1a6;

    memcpy(area_at(&near, 8000), &done, 4);
    hcasim_standin_delay(100);
    for (unsigned i = 0; i < 3; i++) {
        volatile uint32_t *word = (volatile uint32_t *)(void *)area_at(&flag, 64);
        uint64_t limit = areas.v->hosts->world->now_ns + VERBS_SECOND;

        area_fill(&data, 2);
        *word = 0;
        area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, 6000), &data, 0, 0);
        area_post(IBV_WR_RDMA_WRITE, area_part(&near, 8000, 4), &flag, 64, 0);
        while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != done) {
            ck_assert(inproc_step(areas.v->hosts->world, limit) || flag.kind < AREA_BEHIND);
        }
        area_expect_bytes(&data, 0, 6000, 1, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
    }
    area_end(&near);
    area_end(&data);
    area_end(&flag);
}
END_TEST

struct watcher {
    struct area *area;
    size_t len;
    bool seen_early, stop;
};

/* What a kernel does that waits for the last word of a WRITE. */
static void *watcher_work(void *opaque)
{
    struct watcher *watcher = opaque;
    uint64_t *last = (uint64_t *)(void *)area_at(watcher->area, watcher->len - 8), want = 0;

    for (size_t i = 0; i < sizeof(want); i++) {
        ((uint8_t *)&want)[i] = area_byte(1, watcher->len - 8 + i);
    }
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != want) {
        if (__atomic_load_n(&watcher->stop, __ATOMIC_RELAXED)) {
            return NULL;
        }
    }
    for (size_t i = 0; i < watcher->len; i++) {
        watcher->seen_early |= *area_at(watcher->area, i) != area_byte(1, i);
    }
    return NULL;
}

/* A card writes from the first byte to the last, but the GPU's copies have no order of bytes. */
START_TEST(the_last_word_is_seen_last)
{
    enum {
        LAST_LEN = 1000
    }; /* of one packet */
    struct area near = area_new(area_pd(0), AREA_PLAIN, 4096, 1);
    struct area far = area_new(area_pd(1), (enum area_kind)_i, 2 * 4096, 2);

    hcasim_standin_delay(1);
    for (unsigned i = 0; i < 10; i++) {
        struct watcher watcher = {.area = &far, .len = LAST_LEN};
        pthread_t thread;

        area_fill(&far, 2);
        ck_assert_int_eq(pthread_create(&thread, NULL, watcher_work, &watcher), 0);
        area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, LAST_LEN), &far, 0, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        __atomic_store_n(&watcher.stop, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        ck_assert(!watcher.seen_early);
    }
    area_end(&near);
    area_end(&far);
}
END_TEST

/* A READ that follows a WRITE of the same memory returns what was written. */
START_TEST(a_read_returns_what_was_written_before)
{
    struct area near = area_new(area_pd(0), AREA_PLAIN, 8192, 1);
    struct area far = area_new(area_pd(1), (enum area_kind)_i, 8192, 2);

    hcasim_standin_delay(100);
    area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, 4000), &far, 5, 0);
    area_post(IBV_WR_RDMA_READ, area_part(&near, 4100, 4000), &far, 5, 0);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect(areas.cq[0], IBV_WC_SUCCESS);
    area_expect_bytes(&near, 4100, 4000, 1, 0);
    area_end(&near);
    area_end(&far);
}
END_TEST

/* Data that changes between two messages is read again. */
START_TEST(each_message_reads_its_data_anew)
{
    struct area near = area_new(area_pd(0), (enum area_kind)_i, LEN, 1);
    struct area far = area_new(area_pd(1), AREA_PLAIN, LEN, 2);

    for (unsigned seed = 3; seed < 8; seed++) {
        area_fill(&near, seed);
        area_post(IBV_WR_RDMA_WRITE, area_part(&near, 0, LEN), &far, 0, 0);
        area_expect(areas.cq[0], IBV_WC_SUCCESS);
        area_expect_bytes(&far, 0, LEN, seed, 0);
    }
    area_end(&near);
    area_end(&far);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("gpu-memory");
    TCase *tc = tcase_create("gpu-memory"), *lossy = tcase_create("loss");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, writes_and_reads_move_the_data, 0, PAIRS);
    tcase_add_loop_test(tc, sends_are_received, 0, PAIRS);
    tcase_add_loop_test(tc, inline_data_is_written, 0, AREA_PLAIN);
    tcase_add_loop_test(tc, a_message_may_be_gathered_and_scattered, 0, PAIRS);
    tcase_add_test(tc, a_message_may_be_in_two_allocations);
    tcase_add_loop_test(tc, datagrams_are_received, 0, PAIRS);
    tcase_add_loop_test(tc, atomics_change_words, 0, PAIRS);
    tcase_add_test(tc, atomics_need_no_kernel);
    tcase_add_test(tc, the_kernel_of_atomics_runs_at_registration);
    tcase_add_test(tc, atomics_and_kernels_lose_nothing);
    tcase_add_loop_test(tc, long_messages_arrive, 0, AREA_PLAIN);
    tcase_add_loop_test(tc, data_is_there_before_its_completion, 0, PAIRS);
    tcase_add_loop_test(tc, a_flag_is_seen_after_its_data, 0, PAIRS);
    tcase_add_loop_test(tc, the_last_word_is_seen_last, 0, AREA_BEHIND);
    tcase_add_loop_test(tc, a_read_returns_what_was_written_before, 0, AREA_PLAIN);
    tcase_add_loop_test(tc, each_message_reads_its_data_anew, 0, AREA_PLAIN);
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(lossy, setup_lossy, teardown);
    tcase_add_loop_test(lossy, long_messages_arrive, 0, AREA_PLAIN);
    tcase_add_test(lossy, atomics_take_effect_once);
    suite_add_tcase(suite, lossy);
    return suite;
}
