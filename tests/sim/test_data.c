/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks every byte of random operations of every kind between two HCAs, following a plan
 * (tests/programs/data_plan.h). HCASIM_SIM_OPS: the number of operations; HCASIM_SIM_SEED: their
 * seed; HCASIM_SIM_CAPTURE: a file for the frames of the cable without faults.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/programs/data_plan.h"
#include "tests/sim/seeds.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define QKEY      0x22222222
#define LOG_DEPTH 6
#define LOG_BLOCK 10 /* size of a send queue: DATA_DEPTH WQEs of nine 64-byte blocks */
#define LOG_SLOTS 8
#define SRQ_SGE   3
#define INLINE    200
#define PORT_MTU  9000
#define OTHER_VA  0x700000000000ull /* the address of the arena's first byte under a second key */

G_STATIC_ASSERT(1 << LOG_DEPTH == DATA_DEPTH && DATA_BATCH <= 1 << LOG_CQ);

/* One end of a lane, and the operation or slot of each ring index. */
struct end {
    struct drv_qp *qp;
    struct drv_path to; /* UD: the other end */
    unsigned op[1 << LOG_BLOCK], slot[DATA_DEPTH];
    unsigned next_op; /* the next completion has at least this index */
};

struct party {
    struct node *node;
    struct buf *mem; /* the arena; its own key grants no remote rights */
    struct drv_mr open;
    uint8_t *shadow;
    struct drv_srq *srq;
    unsigned srq_slot[1 << LOG_SLOTS];
    struct end end[DATA_LANES];
};

struct run {
    struct two_hcas *t;
    struct party party[2];
    struct data_plan plan;
};

/* -- set-up -------------------------------------------------------------------------------------
 */

static struct drv_qp *make_qp(struct party *p, enum data_transport transport)
{
    static const uint8_t types[DATA_TRANSPORTS] = {PRM_QP_ST_RC, PRM_QP_ST_RC, PRM_QP_ST_UC,
                                                   PRM_QP_ST_UD};
    struct drv_qp_attr attr = {
        .st = types[transport],
        .pdn = p->node->drv->pdn,
        .send_cq = &p->node->cq,
        .recv_cq = &p->node->cq,
        .srq = transport == DATA_RC_SRQ ? p->srq : NULL,
        .log_sq = LOG_BLOCK,
        .log_rq = LOG_DEPTH,
        .max_recv_sge = 32,
    };
    struct drv_qp *qp = g_new0(struct drv_qp, 1);

    ck_assert_int_eq(drv_create_qp(p->node->drv, &attr, qp), 0);
    g_ptr_array_add(p->node->qps, qp);
    return qp;
}

static void party_init(struct party *p, struct node *node)
{
    struct drv *drv = node->drv;

    p->node = node;
    ck_assert_int_eq(drv_set_port_mtu(drv, PORT_MTU), 0);
    p->mem = node_buf(node, DATA_ARENA, DRV_LOCAL_WRITE, 0);
    ck_assert_int_eq(
        drv_reg_mr(drv, drv->pdn, &p->mem->mem, OTHER_VA, DATA_ARENA, DRV_ALL, &p->open), 0);
    p->shadow = g_malloc(DATA_ARENA);
    p->srq = node_srq(node, LOG_SLOTS);
}

/* Uses all path MTUs. The lanes' PSNs are far apart; the first lane's PSN soon passes the largest
 * value. */
static void make_lane(struct run *r, unsigned lane, enum data_transport transport)
{
    struct end *a = &r->party[0].end[lane], *b = &r->party[1].end[lane];
    struct drv_path path = {
        .mtu = (uint8_t)(1 + lane % 5),
        .sq_psn = (0xffff80 + lane * 0x0c0000) & 0xffffff,
        .rq_psn = (0xffff80 + lane * 0x0c0000) & 0xffffff,
        .ack_timeout = 10,
    };

    a->qp = make_qp(&r->party[0], transport);
    b->qp = make_qp(&r->party[1], transport);
    a->qp->qkey = b->qp->qkey = QKEY;
    a->to = path_to(r->party[1].node, b->qp);
    b->to = path_to(r->party[0].node, a->qp);
    connect_qps(r->party[0].node, a->qp, r->party[1].node, b->qp, &path);
}

static void run_init(struct run *r, const struct data_config *config,
                     const struct lossy_config *loss, const char *capture)
{
    memset(r, 0, sizeof(*r));
    r->t = two_hcas_captured(loss, capture);
    party_init(&r->party[0], &r->t->a);
    party_init(&r->party[1], &r->t->b);
    for (unsigned lane = 0; lane < config->lanes; lane++) {
        make_lane(r, lane, config->transport[lane]);
    }
    data_plan_init(&r->plan, config);
}

static void run_end(struct run *r)
{
    for (unsigned side = 0; side < 2; side++) {
        struct party *p = &r->party[side];

        ck_assert_int_eq(drv_dereg_mr(p->node->drv, &p->open), 0);
        g_free(p->shadow);
    }
    two_hcas_free(r->t);
}

/* -- posting ------------------------------------------------------------------------------------
 */

/* The two keys alternate in a list. */
static unsigned make_sges(const struct party *p, const struct data_list *list, bool inlined,
                          struct drv_sge *sge)
{
    for (unsigned i = 0; i < list->n; i++) {
        const struct data_piece *piece = &list->piece[i];

        sge[i] = buf_sge(p->mem, piece->at, piece->len);
        if (inlined) {
            sge[i].va = (uintptr_t)(p->mem->ptr + piece->at);
        } else if (i % 2) {
            sge[i].va = OTHER_VA + piece->at;
            sge[i].lkey = p->open.key;
        }
    }
    return list->n;
}

static void post_receives(struct run *r, unsigned side)
{
    struct party *p = &r->party[side];

    for (unsigned i = 0; i < r->plan.num_slots[side]; i++) {
        const struct data_slot *slot = &r->plan.slot[side][i];
        struct end *end = &p->end[slot->lane];
        struct drv_sge sge[DATA_MAX_SGE];
        unsigned n = make_sges(p, &slot->list, false, sge);

        if (r->plan.config.transport[slot->lane] == DATA_RC_SRQ) {
            p->srq_slot[p->srq->head] = i;
            drv_post_srq_recv(p->node->drv, p->srq, sge, n);
        } else {
            end->slot[end->qp->rq_pi % DATA_DEPTH] = i;
            drv_post_recv(end->qp, sge, n);
        }
    }
}

static const struct {
    uint8_t send, received;
} opcodes[DATA_KINDS] = {
    [DATA_SEND] = {PRM_WQE_OPCODE_SEND, PRM_CQE_OPCODE_RESP_SEND},
    [DATA_SEND_IMM] = {PRM_WQE_OPCODE_SEND_IMM, PRM_CQE_OPCODE_RESP_SEND_IMM},
    [DATA_WRITE] = {PRM_WQE_OPCODE_RDMA_WRITE, 0},
    [DATA_WRITE_IMM] = {PRM_WQE_OPCODE_RDMA_WRITE_IMM, PRM_CQE_OPCODE_RESP_WR_IMM},
    [DATA_READ] = {PRM_WQE_OPCODE_RDMA_READ, 0},
    [DATA_FETCH_ADD] = {PRM_WQE_OPCODE_ATOMIC_FA, 0},
    [DATA_CMP_SWAP] = {PRM_WQE_OPCODE_ATOMIC_CS, 0},
};

static void post_operation(struct run *r, unsigned i)
{
    const struct data_op *op = &r->plan.op[i];
    struct party *p = &r->party[op->side], *peer = &r->party[!op->side];
    struct end *end = &p->end[op->lane];
    struct drv_sge sge[DATA_MAX_SGE];
    struct drv_send send = {
        .opcode = opcodes[op->kind].send,
        .flags = (op->signaled ? DRV_SIGNALED : 0) | (op->solicited ? DRV_SOLICITED : 0) |
                 (op->fence ? DRV_FENCE : 0) | (op->inlined ? DRV_INLINE : 0),
        .sge = sge,
        .imm = op->imm,
        .raddr = OTHER_VA + op->remote,
        .rkey = peer->open.key,
        .compare = op->compare,
        .swap_add = op->swap_add,
    };

    send.num_sge = make_sges(p, &op->local, op->inlined, sge);
    if (r->plan.config.transport[op->lane] == DATA_UD) {
        send.ah = &end->to;
        send.qkey = QKEY;
    }
    end->op[end->qp->sq_pi % (1u << LOG_BLOCK)] = i;
    drv_post_send(end->qp, &send);
    if (op->inlined) {
        data_scribble(op, p->mem->ptr, p->shadow);
    }
}

/* -- completions --------------------------------------------------------------------------------
 */

static void sent(struct run *r, unsigned side, unsigned lane, const struct drv_wc *wc)
{
    struct end *end = &r->party[side].end[lane];
    unsigned i = end->op[wc->wqe_counter % (1u << LOG_BLOCK)];
    const struct data_op *op = &r->plan.op[i];

    ck_assert_uint_lt(i, r->plan.num_ops);
    ck_assert_uint_ge(i, end->next_op);
    ck_assert_uint_eq(op->side, side);
    ck_assert_uint_eq(op->lane, lane);
    ck_assert(op->signaled);
    ck_assert_uint_eq(wc->send_opcode, opcodes[op->kind].send);
    if (op->kind == DATA_READ) {
        ck_assert_uint_eq(wc->byte_cnt, op->len);
    }
    end->next_op = i + 1;
}

static void received(struct run *r, unsigned side, unsigned lane, const struct drv_wc *wc)
{
    struct party *p = &r->party[side];
    enum data_transport transport = r->plan.config.transport[lane];
    unsigned slot = transport == DATA_RC_SRQ ? p->srq_slot[wc->wqe_counter % (1u << LOG_SLOTS)]
                                             : p->end[lane].slot[wc->wqe_counter % DATA_DEPTH];
    const struct data_op *op = data_received(&r->plan, side, lane, slot, p->mem->ptr, p->shadow);

    ck_assert_ptr_nonnull(op);
    ck_assert_uint_eq(wc->opcode, opcodes[op->kind].received);
    ck_assert_uint_eq(wc->byte_cnt, op->len + (transport == DATA_UD ? DATA_GRH : 0));
    ck_assert_uint_eq(wc->solicited, op->solicited);
    if (op->kind != DATA_SEND) {
        ck_assert_uint_eq(wc->imm, op->imm);
    }
    if (transport == DATA_UD) {
        ck_assert_uint_eq(wc->src_qp, r->party[!side].end[lane].qp->qpn);
    }
}

/* Takes the completions of a side; returns their number. */
static unsigned poll_side(struct run *r, unsigned side)
{
    struct party *p = &r->party[side];
    struct drv_wc wc;
    unsigned n = 0;

    while (drv_poll_cq(p->node->drv, &p->node->cq, &wc)) {
        unsigned lane = 0;

        ck_assert_msg(wc.opcode != PRM_CQE_OPCODE_REQ_ERR && wc.opcode != PRM_CQE_OPCODE_RESP_ERR,
                      "batch %lu: syndrome 0x%x", r->plan.batch, wc.syndrome);
        while (lane < r->plan.config.lanes && p->end[lane].qp->qpn != wc.qpn) {
            lane++;
        }
        ck_assert_uint_lt(lane, r->plan.config.lanes);
        if (wc.opcode == PRM_CQE_OPCODE_REQ) {
            sent(r, side, lane, &wc);
        } else {
            received(r, side, lane, &wc);
        }
        n++;
    }
    return n;
}

static void run_batch(struct run *r, unsigned max_ops)
{
    unsigned due = 0;
    uint64_t limit = r->t->world->now_ns + 100 * SECOND;

    data_plan_next(&r->plan, max_ops);
    for (unsigned side = 0; side < 2; side++) {
        data_fill(&r->plan, side, r->party[side].mem->ptr, r->party[side].shadow);
        post_receives(r, side);
        due += data_receives_due(&r->plan, side) + data_completions_due(&r->plan, side);
        for (unsigned lane = 0; lane < r->plan.config.lanes; lane++) {
            r->party[side].end[lane].next_op = 0;
        }
    }
    for (unsigned i = 0; i < r->plan.num_ops; i++) {
        post_operation(r, i);
    }
    while (due) {
        unsigned n = poll_side(r, 0) + poll_side(r, 1);

        ck_assert_uint_le(n, due);
        due -= n;
        if (!n) {
            ck_assert_msg(inproc_step(r->t->world, limit), "batch %lu: %u completions are missing",
                          r->plan.batch, due);
        }
    }
    for (unsigned side = 0; side < 2; side++) {
        drv_poll_events(r->party[side].node->drv);
        ck_assert_uint_eq(r->party[side].node->drv->events->len, 0);
    }
}

static void run_operations(struct run *r, uint64_t ops)
{
    while (ops) {
        run_batch(r, ops < DATA_BATCH ? (unsigned)ops : DATA_BATCH);
        for (unsigned side = 0; side < 2; side++) {
            struct party *p = &r->party[side];

            ck_assert_uint_eq(data_compare(&r->plan, side, p->mem->ptr, p->shadow, stderr), 0);
        }
        ops -= r->plan.num_ops;
    }
}

/* -- statements ---------------------------------------------------------------------------------
 */

/* Returns a configuration with per_transport lanes of each transport whose bit is set. */
static struct data_config config_of(unsigned transports, unsigned per_transport)
{
    struct data_config config = {
        .seed = seeds_of_run(1).first,
        .max_sge = DATA_MAX_SGE,
        .max_srq_sge = SRQ_SGE,
        .max_inline = INLINE,
        .mtu = 4096,
    };

    for (unsigned t = 0; t < DATA_TRANSPORTS; t++) {
        for (unsigned i = 0; i < per_transport && transports >> t & 1; i++) {
            config.transport[config.lanes++] = (enum data_transport)t;
        }
    }
    return config;
}

START_TEST(every_byte_is_as_it_must_be)
{
    struct data_config config = config_of((1u << DATA_TRANSPORTS) - 1, 5);
    struct run r;

    run_init(&r, &config, NULL, g_getenv("HCASIM_SIM_CAPTURE"));
    run_operations(&r, seeds_number("HCASIM_SIM_OPS", 50000, 1, UINT64_MAX));
    data_print(&r.plan);
    run_end(&r);
}
END_TEST

/* IBTA 9.7: a reliable connection's messages arrive once, whole and in order, whatever is lost. */
START_TEST(every_byte_of_reliable_connections_on_a_bad_cable)
{
    static const struct lossy_config loss = {
        .seed = 11, .lose = 5, .twice = 10, .late = 10, .corrupt = 5};
    struct data_config config = config_of(1u << DATA_RC | 1u << DATA_RC_SRQ, 5);
    struct run r;

    run_init(&r, &config, &loss, g_getenv("HCASIM_SIM_CAPTURE_LOSSY"));
    run_operations(&r, seeds_number("HCASIM_SIM_OPS", 50000, 1, UINT64_MAX) / 25);
    ck_assert_uint_gt(lossy_faults(r.t->a.port), 0);
    ck_assert_uint_gt(lossy_faults(r.t->b.port), 0);
    run_end(&r);
}
END_TEST

/* The comparison above finds a byte that is wrong in a target, beside a target, or in a source. */
START_TEST(a_wrong_byte_anywhere_is_a_difference)
{
    struct data_config config = config_of((1u << DATA_TRANSPORTS) - 1, 1);
    struct run r;

    run_init(&r, &config, NULL, NULL);
    for (unsigned round = 0; round < 20; round++) {
        uint8_t *arena = r.party[1].mem->ptr;
        uint32_t at;

        run_batch(&r, 5);
        at = r.plan.used[1] * round / 20;
        ck_assert_uint_eq(data_compare(&r.plan, 1, arena, r.party[1].shadow, NULL), 0);
        arena[at] ^= 1;
        ck_assert_uint_ge(data_compare(&r.plan, 1, arena, r.party[1].shadow, NULL), 1);
        arena[at] ^= 1;
        *(uint64_t *)(arena + DATA_COUNTER) += 1;
        ck_assert_uint_eq(data_compare(&r.plan, 1, arena, r.party[1].shadow, NULL), 8);
        *(uint64_t *)(arena + DATA_COUNTER) -= 1;
    }
    run_end(&r);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("two HCAs, every byte");
    TCase *perfect = tcase_create("perfect"), *bad = tcase_create("bad");

    tcase_set_timeout(perfect, 0);
    tcase_add_test(perfect, every_byte_is_as_it_must_be);
    tcase_add_test(perfect, a_wrong_byte_anywhere_is_a_difference);
    suite_add_tcase(suite, perfect);
    tcase_set_timeout(bad, 0);
    tcase_add_test(bad, every_byte_of_reliable_connections_on_a_bad_cable);
    suite_add_tcase(suite, bad);
    return suite;
}
