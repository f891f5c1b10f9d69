/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests reliable connections on a bad cable: a seed loses, duplicates, reorders and corrupts
 * frames, and every operation still has its effect exactly once, in order. The same seed repeats
 * bit for bit.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/queue/q_counter.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define ROUNDS   60
#define AREA     (256u << 10)
#define MAX_SGES 4

/* A model of the expected contents of both memories. */
struct run {
    struct two_hcas *t;
    struct qp_pair rc;
    struct buf *mine, *theirs; /* the requester's and the responder's memory */
    uint8_t *mine_model, *theirs_model;
    GRand *rand;
    GString *trace;
    uint64_t frames, gaps;
};

static size_t upto(struct run *r, size_t max)
{
    return (size_t)g_rand_int_range(r->rand, 0, (gint32)max + 1);
}

/* Cuts len bytes into up to four pieces of memory that do not overlap; at[] gets their places. */
static unsigned cut(struct run *r, const struct buf *buf, size_t len, struct drv_sge *sge,
                    size_t *at)
{
    unsigned n = len ? 1 + (unsigned)upto(r, MAX_SGES - 1) : 0;
    size_t lane = buf->len / MAX_SGES, rest = len;
    unsigned used = 0;

    for (unsigned i = 0; i < n && rest; i++) {
        size_t piece = i + 1 == n ? rest : upto(r, rest);

        piece = MIN(piece, lane);
        if (piece) {
            at[used] = i * lane + upto(r, lane - piece);
            sge[used] = buf_sge(buf, at[used], piece);
            used++;
            rest -= piece;
        }
    }
    return used;
}

static size_t total(const struct drv_sge *sge, unsigned n)
{
    size_t len = 0;

    for (unsigned i = 0; i < n; i++) {
        len += sge[i].len;
    }
    return len;
}

static void gather(uint8_t *flat, const uint8_t *mem, const struct drv_sge *sge, const size_t *at,
                   unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        memcpy(flat, mem + at[i], sge[i].len);
        flat += sge[i].len;
    }
}

static void scatter(const uint8_t *flat, size_t len, uint8_t *mem, const struct drv_sge *sge,
                    const size_t *at, unsigned n)
{
    for (unsigned i = 0; i < n && len; i++) {
        size_t piece = MIN(sge[i].len, len);

        memcpy(mem + at[i], flat, piece);
        flat += piece;
        len -= piece;
    }
}

static void one_operation(struct run *r)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_SEND,       PRM_WQE_OPCODE_SEND_IMM,       PRM_WQE_OPCODE_RDMA_READ,
        PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_WRITE_IMM, PRM_WQE_OPCODE_ATOMIC_FA,
    };
    uint8_t opcode = opcodes[upto(r, G_N_ELEMENTS(opcodes) - 1)];
    bool atomic = opcode == PRM_WQE_OPCODE_ATOMIC_FA;
    struct drv_sge here[MAX_SGES], there[MAX_SGES];
    size_t here_at[MAX_SGES], there_at[MAX_SGES];
    unsigned n = cut(r, r->mine, atomic ? 8 : upto(r, upto(r, 1) ? 60000 : 1200), here, here_at);
    unsigned there_n = 0;
    struct drv_send send = {
        .opcode = opcode,
        .flags = DRV_SIGNALED | (upto(r, 3) == 0 ? DRV_FENCE : 0),
        .sge = here,
        .num_sge = n,
        .imm = g_rand_int(r->rand),
        .rkey = r->theirs->mr.key,
        .swap_add = g_rand_int(r->rand),
    };
    size_t len, raddr;
    g_autofree uint8_t *flat = NULL;
    struct drv_wc wc;

    if (atomic) {
        n = send.num_sge = 1;
        here_at[0] = 8 * upto(r, 100);
        here[0] = buf_sge(r->mine, here_at[0], 8);
    }
    len = total(here, n);
    flat = g_malloc0(len + 1);
    raddr = upto(r, AREA - len - 8) & ~7ul;
    send.raddr = r->theirs->va + raddr;
    if (opcode == PRM_WQE_OPCODE_SEND || opcode == PRM_WQE_OPCODE_SEND_IMM) {
        there_n = cut(r, r->theirs, len, there, there_at);
        if (total(there, there_n) < len) {
            there_n = 1;
            there_at[0] = 0;
            there[0] = buf_sge(r->theirs, 0, AREA);
        }
        drv_post_recv(r->rc.b, there, there_n);
    } else if (opcode == PRM_WQE_OPCODE_RDMA_WRITE_IMM) {
        drv_post_recv(r->rc.b, NULL, 0);
    }

    /* the expected result */
    if (opcode == PRM_WQE_OPCODE_RDMA_READ) {
        scatter(r->theirs_model + raddr, len, r->mine_model, here, here_at, n);
    } else if (atomic) {
        uint64_t word;

        memcpy(&word, r->theirs_model + raddr, 8);
        memcpy(r->mine_model + here_at[0], &word, 8);
        word += send.swap_add;
        memcpy(r->theirs_model + raddr, &word, 8);
    } else {
        gather(flat, r->mine_model, here, here_at, n);
        if (there_n) {
            scatter(flat, len, r->theirs_model, there, there_at, there_n);
        } else if (opcode != PRM_WQE_OPCODE_SEND && opcode != PRM_WQE_OPCODE_SEND_IMM) {
            memcpy(r->theirs_model + raddr, flat, len);
        }
    }

    drv_post_send(r->rc.a, &send);
    wc = expect_wc(&r->t->a, r->rc.a, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(wc.send_opcode, opcode);
    if (opcode != PRM_WQE_OPCODE_RDMA_READ && opcode != PRM_WQE_OPCODE_RDMA_WRITE && !atomic) {
        wc = next_wc(&r->t->b);
        ck_assert_uint_ne(wc.opcode, PRM_CQE_OPCODE_RESP_ERR);
        ck_assert_uint_eq(wc.byte_cnt, len);
        if (opcode != PRM_WQE_OPCODE_SEND) {
            ck_assert_uint_eq(wc.imm, send.imm);
        }
    }
}

/* Returns how often a late packet was taken for a lost one. */
static uint64_t counted_gaps(const struct node *node)
{
    const struct q_counter *c = node->hca->fw->hca.scratch_q_counter;

    return c->out_of_sequence + c->packet_seq_err + c->implied_nak_seq_err;
}

static void run(struct run *r, const struct lossy_config *loss, uint8_t order)
{
    const struct drv_path path = {.ack_timeout = 10, .order = order};

    r->t = two_hcas_new(loss);
    r->rc = qp_pair_new(r->t, PRM_QP_ST_RC, &path);
    r->mine = node_buf(&r->t->a, AREA, DRV_LOCAL_WRITE, 1);
    r->theirs = node_buf(&r->t->b, AREA, DRV_ALL, 2);
    r->mine_model = g_memdup2(r->mine->ptr, AREA);
    r->theirs_model = g_memdup2(r->theirs->ptr, AREA);
    r->rand = g_rand_new_with_seed(loss->seed + 1000);
    for (int i = 0; i < ROUNDS; i++) {
        one_operation(r);
        ck_assert_msg(memcmp(r->mine->ptr, r->mine_model, AREA) == 0, "round %d, requester", i);
        ck_assert_msg(memcmp(r->theirs->ptr, r->theirs_model, AREA) == 0, "round %d, responder", i);
    }
    ck_assert_uint_gt(lossy_faults(r->t->a.port) + lossy_faults(r->t->b.port), 0);
    r->frames = r->t->frames;
    r->gaps = counted_gaps(&r->t->a) + counted_gaps(&r->t->b);
    r->trace = g_string_new(g_checksum_get_string(r->t->trace));
    g_rand_free(r->rand);
    g_free(r->mine_model);
    g_free(r->theirs_model);
    two_hcas_free(r->t);
}

static void run_end(struct run *r)
{
    g_string_free(r->trace, TRUE);
}

static const struct lossy_config losses[] = {
    {.seed = 1, .lose = 10},
    {.seed = 2, .twice = 50},
    {.seed = 3, .late = 50},
    {.seed = 4, .corrupt = 10},
    {.seed = 5, .lose = 20, .twice = 20, .late = 20, .corrupt = 20},
    {.seed = 6, .lose = 20, .twice = 20, .late = 20, .corrupt = 20},
    {.seed = 7, .lose = 20, .twice = 20, .late = 20, .corrupt = 20},
    {.seed = 8, .lose = 60, .twice = 100, .late = 100, .corrupt = 5},
};

START_TEST(every_operation_takes_effect_once_and_in_order)
{
    const size_t n = G_N_ELEMENTS(losses);
    struct run r;

    run(&r, &losses[(size_t)_i % n],
        (size_t)_i >= n ? PRM_DP_ORDERING_OOO_ALL : PRM_DP_ORDERING_IBTA);
    run_end(&r);
}
END_TEST

/* dp_ordering: on a cable that only reorders, no host retransmits (docs/adr/0012). */
START_TEST(an_order_of_its_own_is_no_loss)
{
    const struct lossy_config late = {.seed = 20 + (uint32_t)_i, .late = 200};
    struct run r;

    run(&r, &late, PRM_DP_ORDERING_IBTA);
    ck_assert_uint_gt(r.gaps, 0);
    run_end(&r);
    run(&r, &late, PRM_DP_ORDERING_OOO_RW + (uint8_t)(_i & 1));
    ck_assert_uint_eq(r.gaps, 0);
    run_end(&r);
}
END_TEST

START_TEST(same_seed_same_packets)
{
    struct run first, again, other;
    struct lossy_config loss = losses[5];

    run(&first, &loss, PRM_DP_ORDERING_OOO_ALL);
    run(&again, &loss, PRM_DP_ORDERING_OOO_ALL);
    loss.seed++;
    run(&other, &loss, PRM_DP_ORDERING_OOO_ALL);
    ck_assert_uint_eq(first.frames, again.frames);
    ck_assert_str_eq(first.trace->str, again.trace->str);
    ck_assert_str_ne(first.trace->str, other.trace->str);
    run_end(&first);
    run_end(&again);
    run_end(&other);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("two HCAs, a bad cable");
    TCase *tc = tcase_create("lossy");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_operation_takes_effect_once_and_in_order, 0,
                        2 * (int)G_N_ELEMENTS(losses));
    tcase_add_loop_test(tc, an_order_of_its_own_is_no_loss, 0, 4);
    tcase_add_test(tc, same_seed_same_packets);
    suite_add_tcase(suite, tc);
    return suite;
}
