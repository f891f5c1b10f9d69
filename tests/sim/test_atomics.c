/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests atomics on a bad cable against a reference: those of the standard and the extended ones
 * (docs/adr/0011), of every size, on words that they share, up to 16 outstanding. Each takes effect
 * once, in the order posted, and returns the previous value.
 *
 * HCASIM_SIM_CAPTURE=FILE.pcapng: the packets of each service go to FILE.RC.pcapng and so on, if
 * there is only one seed (tests/sim/seeds.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/memory/masked.h"
#include "tests/sim/seeds.h"
#include "tests/sim/two_hcas.h"
#include "tests/unit/suite.h"

#define ATOMICS     150
#define AREA        512 /* bytes that all atomics share */
#define OUTSTANDING 16
#define DC_KEY      0x1122334455667788ull

#define CS          PRM_WQE_OPCODE_ATOMIC_MASKED_CS
#define FA          PRM_WQE_OPCODE_ATOMIC_MASKED_FA

struct service_under_test {
    const char *name;
    uint8_t st;
};

static const struct service_under_test services_under_test[] = {
    {"RC", PRM_QP_ST_RC},
    {"XRC", PRM_QP_ST_XRC},
    {"DC", PRM_QP_ST_DCI},
};

struct run {
    struct two_hcas *t;
    struct drv_qp *from, *to;
    struct drv_path target_path; /* DC */
    uint32_t dctn;
    uint32_t xrc_srqn;
    struct drv_mem xrc_srq; /* a page of its ring, and its doorbell record */
    struct buf *results, *target;
    uint8_t memory[AREA]; /* the expected memory of the target */
    uint8_t want[OUTSTANDING][MASKED_MAX];
    GRand *rand;
};

static unsigned below(struct run *r, unsigned n)
{
    return (unsigned)g_rand_int_range(r->rand, 0, (gint32)n);
}

/* -- the reference ----------------------------------------------------------------------------- */

/* Bit n of a number: memory is in the host's order, operands are not. */
static bool host_bit(const uint8_t *number, unsigned n)
{
    return number[n / 8] >> n % 8 & 1;
}

static bool bit(const uint8_t *number, unsigned len, unsigned n)
{
    return number[len - 1 - n / 8] >> n % 8 & 1;
}

static void reference_cs(uint8_t *memory, unsigned len, const uint8_t *operands)
{
    const uint8_t *swap = operands, *compare = operands + len, *swap_mask = operands + 2 * len;

    for (unsigned n = 0; n < 8 * len; n++) {
        if (bit(operands + 3 * len, len, n) && host_bit(memory, n) != bit(compare, len, n)) {
            return;
        }
    }
    for (unsigned n = 0; n < 8 * len; n++) {
        if (bit(swap_mask, len, n)) {
            memory[n / 8] &= (uint8_t) ~(1u << n % 8);
            memory[n / 8] |= (uint8_t)(bit(swap, len, n) << n % 8);
        }
    }
}

static void reference_fa(uint8_t *memory, unsigned len, const uint8_t *operands)
{
    unsigned carry = 0;

    for (unsigned n = 0; n < 8 * len; n++) {
        unsigned sum = host_bit(memory, n) + bit(operands, len, n) + carry;

        memory[n / 8] &= (uint8_t) ~(1u << n % 8);
        memory[n / 8] |= (uint8_t)((sum & 1) << n % 8);
        carry = bit(operands + len, len, n) ? 0 : sum >> 1;
    }
}

/* -- traffic ----------------------------------------------------------------------------------- */

/* Chooses operands under which many bits stay unchanged, carries go far, and every other compare
 * matches. */
static void choose_operands(struct run *r, uint8_t opcode, unsigned len, const uint8_t *memory,
                            uint8_t *operands)
{
    for (unsigned i = 0; i < MASKED_OPERANDS_MAX; i++) {
        operands[i] = (uint8_t)g_rand_int(r->rand);
    }
    if (opcode == FA) {
        for (unsigned i = 0; i < len; i++) {
            operands[len + i] &= (uint8_t)(g_rand_int(r->rand) & g_rand_int(r->rand));
        }
    } else if (below(r, 2)) {
        for (unsigned i = 0; i < len; i++) {
            operands[len + i] = memory[len - 1 - i];
        }
        operands[len + below(r, len)] ^= (uint8_t)(1u << below(r, 16));
    }
}

static void post_standard(struct run *r, struct drv_send *send, uint8_t *memory)
{
    uint64_t word;

    memcpy(&word, memory, sizeof(word));
    send->opcode = below(r, 2) ? PRM_WQE_OPCODE_ATOMIC_CS : PRM_WQE_OPCODE_ATOMIC_FA;
    send->swap_add = (uint64_t)g_rand_int(r->rand) << 32 | g_rand_int(r->rand);
    send->compare = word + below(r, 2);
    if (send->opcode == PRM_WQE_OPCODE_ATOMIC_FA) {
        word += send->swap_add;
    } else if (word == send->compare) {
        word = send->swap_add;
    }
    memcpy(memory, &word, sizeof(word));
    drv_post_send(r->from, send);
}

static void post_extended(struct run *r, struct drv_send *send, uint8_t *memory)
{
    uint8_t operands[MASKED_OPERANDS_MAX];
    unsigned len = send->sge->len;

    send->opcode = below(r, 2) ? CS : FA;
    send->operands = operands;
    choose_operands(r, send->opcode, len, memory, operands);
    if (send->opcode == CS) {
        reference_cs(memory, len, operands);
    } else {
        reference_fa(memory, len, operands);
    }
    drv_post_send(r->from, send);
}

/* Posts an atomic; returns the bytes of its number. */
static unsigned post(struct run *r, unsigned slot)
{
    bool standard = below(r, 4) == 0;
    unsigned len = standard ? 8 : MASKED_MIN << below(r, 6);
    unsigned at = below(r, AREA / len) * len;
    struct drv_sge sge = buf_sge(r->results, slot * MASKED_MAX, len);
    struct drv_send send = {
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = 1,
        .raddr = r->target->va + at,
        .rkey = r->target->mr.key,
        .xrc_srqn = r->xrc_srqn,
        .ah = r->dctn ? &r->target_path : NULL,
        .dc_key = DC_KEY,
    };

    for (unsigned i = 0; i < len; i++) { /* but a returned word is in the host's order */
        r->want[slot][i] = r->memory[at + (len == 8 ? i : len - 1 - i)];
    }
    if (standard) {
        post_standard(r, &send, r->memory + at);
    } else {
        post_extended(r, &send, r->memory + at);
    }
    return len;
}

static void traffic(struct run *r, const char *service, uint32_t seed)
{
    for (unsigned done = 0; done < ATOMICS;) {
        unsigned n = 1 + below(r, OUTSTANDING), len[OUTSTANDING];

        for (unsigned i = 0; i < n; i++) {
            len[i] = post(r, i);
        }
        for (unsigned i = 0; i < n; i++) {
            struct drv_wc wc = expect_wc(&r->t->a, r->from, PRM_CQE_OPCODE_REQ);

            ck_assert_uint_eq(wc.byte_cnt, len[i]);
            ck_assert_msg(memcmp(r->results->ptr + i * MASKED_MAX, r->want[i], len[i]) == 0,
                          "%s, seed %u: what came of number %u", service, seed, done + i);
        }
        ck_assert_msg(memcmp(r->target->ptr, r->memory, AREA) == 0, "%s, seed %u, by number %u",
                      service, seed, done + n);
        done += n;
    }
}

/* -- the two ends ------------------------------------------------------------------------------ */

static uint32_t alloc_xrcd(struct node *node)
{
    struct prm_alloc_xrcd_in in[1] = {0};
    struct prm_alloc_xrcd_out out[1] = {0};

    PRM_SET(alloc_xrcd_in, in, opcode, PRM_CMD_OP_ALLOC_XRCD);
    ck_assert_int_eq(drv_cmd(node->drv, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(alloc_xrcd_out, out, xrcd);
}

static void create_xrc_srq(struct run *r, struct node *node, uint32_t xrcd)
{
    union {
        struct prm_create_xrc_srq_in in[1];
        uint8_t bytes[PRM_SIZE(create_xrc_srq_in) + 8];
    } cmd = {0};
    struct prm_create_xrc_srq_out out[1] = {0};
    struct prm_xrc_srqc *ctx = PRM_PTR(create_xrc_srq_in, cmd.in, xrc_srq_context_entry);
    uint64_t dbr;

    r->xrc_srq = drv_alloc(node->drv, 4096 + 64);
    dbr = r->xrc_srq.bus + 4096;
    PRM_SET(create_xrc_srq_in, cmd.in, opcode, PRM_CMD_OP_CREATE_XRC_SRQ);
    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, 4);
    PRM_SET(xrc_srqc, ctx, log_rq_stride, 2);
    PRM_SET(xrc_srqc, ctx, xrcd, xrcd);
    PRM_SET(xrc_srqc, ctx, cqn, node->cq.cqn);
    PRM_SET(xrc_srqc, ctx, pd, node->drv->pdn);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, dbr >> 32);
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (uint32_t)dbr >> 2);
    PRM_SET_AT(create_xrc_srq_in, cmd.in, pas, 0, r->xrc_srq.bus);
    ck_assert_int_eq(drv_cmd(node->drv, cmd.in, sizeof(cmd), out, sizeof(out)), 0);
    r->xrc_srqn = PRM_GET(create_xrc_srq_out, out, xrc_srqn);
}

static void destroy_xrc_srq(struct run *r, struct node *node)
{
    struct prm_destroy_xrc_srq_in in[1] = {0};

    PRM_SET(destroy_xrc_srq_in, in, opcode, PRM_CMD_OP_DESTROY_XRC_SRQ);
    PRM_SET(destroy_xrc_srq_in, in, xrc_srqn, r->xrc_srqn);
    ck_assert_int_eq(drv_cmd_simple(node->drv, in, sizeof(in)), 0);
    drv_free(node->drv, &r->xrc_srq);
}

static struct drv_qp *xrc_qp(struct node *node, uint32_t xrcd, bool target)
{
    struct drv_qp_attr attr = {
        .st = PRM_QP_ST_XRC,
        .pdn = node->drv->pdn,
        .send_cq = &node->cq,
        .recv_cq = &node->cq,
        .srq = node_srq(node, 4), /* an XRC QP has one only as a formality */
        .log_sq = LOG_SQ,
        .no_sq = target,
        .xrcd = xrcd,
    };
    struct drv_qp *qp = g_new0(struct drv_qp, 1);

    ck_assert_int_eq(drv_create_qp(node->drv, &attr, qp), 0);
    g_ptr_array_add(node->qps, qp);
    return qp;
}

static void create_dct(struct run *r, struct node *node)
{
    struct prm_create_dct_in in[1] = {0};
    struct prm_create_dct_out out[1] = {0};
    struct prm_dctc *ctx = PRM_PTR(create_dct_in, in, dct_context_entry);

    PRM_SET(create_dct_in, in, opcode, PRM_CMD_OP_CREATE_DCT);
    PRM_SET(dctc, ctx, cqn, node->cq.cqn);
    PRM_SET(dctc, ctx, pd, node->drv->pdn);
    PRM_SET(dctc, ctx, srqn_xrqn, node_srq(node, 4)->srqn);
    PRM_SET(dctc, ctx, rae, 1);
    PRM_SET(dctc, ctx, atomic_mode, PRM_ATOMIC_MODE_UP_TO_128B);
    PRM_SET(dctc, ctx, dc_access_key, DC_KEY);
    PRM_SET(dctc, ctx, mtu, PRM_QP_MTU_1024);
    PRM_SET(dctc, ctx, port, 1);
    ck_assert_int_eq(drv_cmd(node->drv, in, sizeof(in), out, sizeof(out)), 0);
    r->dctn = PRM_GET(create_dct_out, out, dctn);
}

static void destroy_dct(struct run *r, struct node *node)
{
    struct prm_destroy_dct_in in[1] = {0};

    PRM_SET(destroy_dct_in, in, opcode, PRM_CMD_OP_DESTROY_DCT);
    PRM_SET(destroy_dct_in, in, dctn, r->dctn);
    ck_assert_int_eq(drv_cmd_simple(node->drv, in, sizeof(in)), 0);
}

static void connect(struct run *r, uint8_t st)
{
    static const struct drv_path path = {.ack_timeout = 10};

    if (st == PRM_QP_ST_DCI) {
        create_dct(r, &r->t->b);
        r->from = node_qp(&r->t->a, st, node_srq(&r->t->a, 4));
        r->target_path = path_to(&r->t->b, r->from);
        r->target_path.remote_qpn = r->dctn;
        r->target_path.ack_timeout = path.ack_timeout;
        ck_assert_int_eq(drv_qp_connect(r->from, &r->target_path), 0);
        return;
    }
    if (st == PRM_QP_ST_XRC) {
        uint32_t xrcd = alloc_xrcd(&r->t->b);

        create_xrc_srq(r, &r->t->b, xrcd);
        r->from = xrc_qp(&r->t->a, alloc_xrcd(&r->t->a), false);
        r->to = xrc_qp(&r->t->b, xrcd, true);
        connect_qps(&r->t->a, r->from, &r->t->b, r->to, &path);
    } else {
        struct qp_pair pair = qp_pair_new(r->t, st, &path);

        r->from = pair.a;
        r->to = pair.b;
    }
}

/* Where the packets of a service go, or NULL. */
static char *capture_path(const char *service)
{
    const char *path = g_getenv("HCASIM_SIM_CAPTURE");
    const char *suffix = path ? strrchr(path, '.') : NULL;

    return suffix ? g_strdup_printf("%.*s.%s%s", (int)(suffix - path), path, service, suffix)
                  : NULL;
}

START_TEST(atomics_take_effect_once_and_in_order)
{
    const struct service_under_test *service = &services_under_test[_i];
    struct seeds seeds = seeds_of_run(25);
    g_autofree char *path = capture_path(service->name);
    uint64_t faults = 0;

    for (uint32_t i = 0; i < seeds.num; i++) {
        uint32_t seed = seeds.first + i;
        struct lossy_config loss = {
            .seed = seed, .lose = 20, .twice = 30, .late = 30, .corrupt = 10};
        struct run r = {.rand = g_rand_new_with_seed(seed)};

        /* A DC target answers to the source MAC address of a request, which no ICRC covers. On a
         * real cable Ethernet's own check sequence covers it. */
        loss.corrupt = service->st == PRM_QP_ST_DCI ? 0 : loss.corrupt;
        r.t = two_hcas_captured(&loss, path);
        connect(&r, service->st);
        r.results = node_buf(&r.t->a, OUTSTANDING * MASKED_MAX, DRV_LOCAL_WRITE, 0);
        r.target = node_buf(&r.t->b, AREA, DRV_ALL, seed);
        memcpy(r.memory, r.target->ptr, AREA);
        traffic(&r, service->name, seed);
        faults += lossy_faults(r.t->a.port) + lossy_faults(r.t->b.port);
        if (r.xrc_srqn) {
            destroy_xrc_srq(&r, &r.t->b);
        }
        if (r.dctn) {
            destroy_dct(&r, &r.t->b);
        }
        two_hcas_free(r.t);
        g_rand_free(r.rand);
    }
    ck_assert_uint_gt(faults, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("atomics on a bad cable");
    TCase *tc = tcase_create("against a reference");

    tcase_set_timeout(tc, 3600);
    tcase_add_loop_test(tc, atomics_take_effect_once_and_in_order, 0,
                        (int)G_N_ELEMENTS(services_under_test));
    suite_add_tcase(suite, tc);
    return suite;
}
