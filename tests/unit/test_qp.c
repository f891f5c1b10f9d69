/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests queue pairs as the commands see them: creation, transitions, query, flushing,
 * destruction. */
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "tests/unit/rdma_bench.h"
#include "tests/unit/suite.h"

static struct bench b;
static struct bench_qp qp;

static const struct bench_qp_attr rc = {
    .st = PRM_QP_ST_RC,
    .mtu = PRM_QP_MTU_1024,
    .log_rra_max = 3,
    .min_rnr_nak = 5,
    .rq_psn = 0x111,
    .sq_psn = 0x222,
};

static void setup(void)
{
    bench_init(&b);
}

static void teardown(void)
{
    bench_clear(&b);
}

static uint8_t queried_state(uint32_t qpn)
{
    struct prm_qpc qpc[1];

    ck_assert_int_eq(qp_query(&b.hca, qpn, qpc), SYN_OK);
    return (uint8_t)PRM_GET(qpc, qpc, state);
}

/* -- creation ---------------------------------------------------------------------------------- */

static enum syn create(const struct prm_qpc *qpc, uint16_t uid)
{
    uint64_t ring = fake_host_alloc(&b.host, 8192, 4096);
    uint64_t pas[2] = {GUINT64_TO_BE(ring), GUINT64_TO_BE(ring + 4096)};
    struct mtt *mtt = mtt_new(pas, 2, 12);
    struct mem_buf buf;
    uint32_t qpn;
    enum syn syn;

    ck_assert(mem_buf_init(&buf, mtt, 0, 8192));
    mtt_unref(mtt);
    syn = qp_create(&b.hca, uid, qpc, &buf, ring, &qpn);
    if (syn != SYN_OK) {
        mem_buf_clear(&buf);
    }
    return syn;
}

#define REFUSED(field, value, expected)                                                            \
    do {                                                                                           \
        struct prm_qpc qpc[1];                                                                     \
        bench_qpc(&b, &rc, qpc);                                                                   \
        PRM_SET(qpc, qpc, field, value);                                                           \
        ck_assert_int_eq(create(qpc, 0), expected);                                                \
    } while (0)

START_TEST(a_qpc_that_cannot_work_is_refused)
{
    REFUSED(st, PRM_QP_ST_DCT, SYN_QP_SERVICE);
    REFUSED(st, PRM_QP_ST_DCI, SYN_QP_FEATURE); /* with a receive queue */
    REFUSED(st, PRM_QP_ST_QP0, SYN_QP_SERVICE);
    REFUSED(st, PRM_QP_ST_RAW_ETHERTYPE, SYN_QP_SERVICE);
    REFUSED(st, 0xff, SYN_QP_SERVICE);
    REFUSED(pd, 0xfff, SYN_QP_PD);
    REFUSED(cqn_snd, 0xfff, SYN_QP_CQ);
    REFUSED(cqn_rcv, 0xfff, SYN_QP_CQ);
    REFUSED(log_rq_stride, 7, SYN_QP_SIZE);
    REFUSED(ulp_stateless_offload_mode, 1, SYN_QP_FEATURE);
    REFUSED(ts_format, PRM_TS_FORMAT_REAL_TIME, SYN_TS_FORMAT);
    b.hca.limits.real_time = true;
    REFUSED(ts_format, 3, SYN_TS_FORMAT);
    REFUSED(log_sq_size, 15, SYN_BAD_PAS);
    ck_assert_uint_eq(b.hca.qpns.count, 0);
}
END_TEST

/* QUERY_HCA_CAP's log_max_qp_sz and max_wqe_sz_rq are the largest values that the device
 * accepts. */
START_TEST(queues_beyond_the_limits_are_refused)
{
    struct prm_qpc largest[1];

    b.hca.limits.log_max_qp_sz = 5;
    b.hca.limits.max_rq_wqe = 128;
    REFUSED(log_sq_size, 6, SYN_QP_SIZE);
    REFUSED(log_rq_size, 6, SYN_QP_SIZE);
    REFUSED(log_rq_stride, 4, SYN_QP_SIZE);
    ck_assert_uint_eq(b.hca.qpns.count, 0);
    bench_qpc(&b, &rc, largest);
    PRM_SET(qpc, largest, log_sq_size, 5);
    PRM_SET(qpc, largest, log_rq_size, 4);
    PRM_SET(qpc, largest, log_rq_stride, 3);
    ck_assert_int_eq(create(largest, 0), SYN_OK);
}
END_TEST

/* The driver lays the receive queue at the ring's start and the send queue behind it. */
START_TEST(the_send_queue_is_behind_the_receive_queue)
{
    bench_qp(&b, &rc, &qp);
    ck_assert_uint_eq(qp.qp->rq.offset, 0);
    ck_assert_uint_eq(qp.qp->rq.dbr, qp.dbr);
    ck_assert_uint_eq(qp.qp->sq.offset, 16 * 64);
    ck_assert_uint_eq(qp.qp->sq.dbr, qp.dbr + 4);
    bench_qp(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_RC, .no_rq = true}, &qp);
    ck_assert_uint_eq(qp.qp->sq.offset, 0);
    ck_assert(!qp.qp->has_rq);
}
END_TEST

START_TEST(a_qp_holds_on_to_what_it_uses)
{
    bench_qp(&b, &rc, &qp);
    ck_assert_int_ne(pd_dealloc(&b.hca, 0, b.pdn), SYN_OK);
    ck_assert_int_ne(cq_destroy(&b.hca, 0, b.cq.cqn), SYN_OK);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    ck_assert_int_eq(cq_destroy(&b.hca, 0, b.cq.cqn), SYN_OK);
    ck_assert_int_eq(pd_dealloc(&b.hca, 0, b.pdn), SYN_OK);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_QP_NUM);
}
END_TEST

START_TEST(there_is_one_gsi_qp)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_QP1};
    struct prm_qpc qpc[1];

    bench_qp(&b, &attr, &qp);
    bench_qpc(&b, &attr, qpc);
    ck_assert_int_eq(create(qpc, 0), SYN_QP_GSI);
    ck_assert_uint_eq(qp.qp->src_qpn, 1);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    bench_qp(&b, &attr, &qp);
}
END_TEST

START_TEST(a_user_context_has_its_own_qps_only)
{
    struct prm_qpc qpc[1] = {0};

    bench_qpc(&b, &rc, qpc);
    /* PD and CQ are the kernel's. */
    ck_assert_int_eq(create(qpc, 7), SYN_QP_PD);
    bench_qp(&b, &rc, &qp);
    ck_assert_int_eq(qp_modify(&b.hca, 7, qp.qpn, PRM_CMD_OP_2ERR_QP, 0, qpc, NULL), SYN_BAD_UID);
    ck_assert_int_eq(qp_destroy(&b.hca, 7, qp.qpn), SYN_BAD_UID);
}
END_TEST

/* -- transitions ------------------------------------------------------------------------------- */

START_TEST(a_qp_goes_to_rts_and_a_query_returns_its_fields)
{
    struct prm_qpc qpc[1];
    const struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);

    bench_qp(&b, &rc, &qp);
    ck_assert_uint_eq(queried_state(qp.qpn), PRM_QP_STATE_RST);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_RST2INIT_QP, &rc), SYN_OK);
    ck_assert_uint_eq(queried_state(qp.qpn), PRM_QP_STATE_INIT);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &rc), SYN_OK);
    ck_assert_uint_eq(queried_state(qp.qpn), PRM_QP_STATE_RTR);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_RTR2RTS_QP, &rc), SYN_OK);
    ck_assert_int_eq(qp_query(&b.hca, qp.qpn, qpc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, state), PRM_QP_STATE_RTS);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, pd), b.pdn);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, mtu), PRM_QP_MTU_1024);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, remote_qpn), BENCH_PEER_QPN);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, next_rcv_psn), 0x111);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, next_send_psn), 0x222);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, log_rra_max), 3);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, min_rnr_nak), 5);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, retry_count), 7);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, rre), 1);
    ck_assert_uint_eq(PRM_GET(ads, path, ack_timeout), 14);
    ck_assert_uint_eq(PRM_GET(ads, path, hop_limit), 64);
    ck_assert_uint_eq(PRM_GET(ads, path, vhca_port_num), 1);
    ck_assert_uint_eq(qp.qp->mtu, 1024);
}
END_TEST

static const uint16_t commands[] = {
    PRM_CMD_OP_RST2INIT_QP, PRM_CMD_OP_INIT2INIT_QP, PRM_CMD_OP_INIT2RTR_QP,
    PRM_CMD_OP_RTR2RTS_QP,  PRM_CMD_OP_RTS2RTS_QP,   PRM_CMD_OP_SQERR2RTS_QP,
    PRM_CMD_OP_SQD_RTS_QP,  PRM_CMD_OP_2ERR_QP,      PRM_CMD_OP_2RST_QP,
};

/* The previous state, and the state that each command leads to; 0xff: not legal. */
#define NO    0xff
#define ST(s) PRM_QP_STATE_##s
static const struct {
    uint8_t from;
    uint8_t to[9];
} legal[] = {
    {ST(RST), {ST(INIT), NO, NO, NO, NO, NO, NO, ST(ERR), ST(RST)}},
    {ST(INIT), {NO, ST(INIT), ST(RTR), NO, NO, NO, NO, ST(ERR), ST(RST)}},
    {ST(RTR), {NO, NO, NO, ST(RTS), NO, NO, NO, ST(ERR), ST(RST)}},
    {ST(RTS), {NO, NO, NO, NO, ST(RTS), NO, NO, ST(ERR), ST(RST)}},
    {ST(SQER), {NO, NO, NO, NO, NO, ST(RTS), NO, ST(ERR), ST(RST)}},
    {ST(SQD), {NO, NO, NO, NO, NO, NO, ST(RTS), ST(ERR), ST(RST)}},
    {ST(ERR), {NO, NO, NO, NO, NO, NO, NO, ST(ERR), ST(RST)}},
};

/* Makes a QP of that service in that state. */
static void qp_in(uint8_t st, uint8_t state, struct bench_qp *made)
{
    struct bench_qp_attr attr = {.st = st};

    bench_qp(&b, &attr, made);
    if (state == ST(ERR)) {
        qp_set_state(made->qp, ST(ERR));
        return;
    }
    if (state != ST(RST)) {
        ck_assert_int_eq(bench_modify(&b, made, PRM_CMD_OP_RST2INIT_QP, &attr), SYN_OK);
    }
    if (state != ST(RST) && state != ST(INIT)) {
        ck_assert_int_eq(bench_modify(&b, made, PRM_CMD_OP_INIT2RTR_QP, &attr), SYN_OK);
    }
    if (state >= ST(RTS)) {
        ck_assert_int_eq(bench_modify(&b, made, PRM_CMD_OP_RTR2RTS_QP, &attr), SYN_OK);
    }
    if (state == ST(SQER)) {
        qp_set_state(made->qp, ST(SQER));
    } else if (state == ST(SQD)) {
        ck_assert_int_eq(bench_modify(&b, made, PRM_CMD_OP_RTS2SQD_QP, &attr), SYN_OK);
        bench_run(&b);
    }
    ck_assert_uint_eq(made->qp->state, state);
}

/* IBTA 10.3.1: every pair of state and command, for each service. */
START_TEST(a_transition_is_legal_in_its_state_only)
{
    static const uint8_t types[] = {PRM_QP_ST_RC, PRM_QP_ST_UC, PRM_QP_ST_UD, PRM_QP_ST_QP1,
                                    PRM_QP_ST_REG_UMR};
    struct bench_qp_attr attr = {.st = types[_i]};

    if (attr.st == PRM_QP_ST_REG_UMR) {
        attr.no_rq = true;
    }
    for (size_t s = 0; s < G_N_ELEMENTS(legal); s++) {
        for (size_t c = 0; c < G_N_ELEMENTS(commands); c++) {
            qp_in(attr.st, legal[s].from, &qp);
            if (legal[s].to[c] == NO) {
                ck_assert_int_eq(bench_modify(&b, &qp, commands[c], &attr), SYN_QP_STATE);
                ck_assert_uint_eq(qp.qp->state, legal[s].from);
            } else {
                ck_assert_int_eq(bench_modify(&b, &qp, commands[c], &attr), SYN_OK);
                ck_assert_uint_eq(qp.qp->state, legal[s].to[c]);
            }
            ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
        }
    }
}
END_TEST

/* IBTA 10.3.1.5: the QP is draining until the started work is finished; then an event reports
 * it. */
START_TEST(a_drained_send_queue_is_announced)
{
    qp_in(PRM_QP_ST_RC, ST(RTS), &qp);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_RTS2SQD_QP, &rc), SYN_OK);
    ck_assert_uint_eq(queried_state(qp.qpn), ST(SQ_DRAINING));
    bench_run(&b);
    ck_assert_uint_eq(queried_state(qp.qpn), ST(SQD));
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_SQ_DRAINED);
}
END_TEST

static enum syn modify_field(uint16_t opcode, uint64_t opt, void (*change)(struct prm_qpc *qpc))
{
    struct prm_qpc qpc[1] = {0};

    change(qpc);
    return qp_modify(&b.hca, 0, qp.qpn, opcode, opt, qpc, NULL);
}

static void set_rre(struct prm_qpc *qpc)
{
    PRM_SET(qpc, qpc, rre, 1);
    PRM_SET(qpc, qpc, rwe, 1);
}

static void set_sport(struct prm_qpc *qpc)
{
    PRM_SET(ads, PRM_PTR(qpc, qpc, primary_address_path), udp_sport, 0xd00d);
}

START_TEST(an_optional_field_is_taken_if_its_bit_is_set)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_RC, .no_access = true};

    bench_qp_rts(&b, &attr, &qp);
    ck_assert(!qp.qp->rre && !qp.qp->rwe);
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_RRE, set_rre), SYN_OK);
    ck_assert(qp.qp->rre && !qp.qp->rwe);
    ck_assert_int_eq(
        modify_field(PRM_CMD_OP_RTS2RTS_QP, 1ull << PRM_QP_OPTPAR_UDP_SPORT, set_sport), SYN_OK);
    ck_assert_uint_eq(qp.qp->peer.path.udp_sport, 0xd00d);
}
END_TEST

static void set_path(struct prm_qpc *qpc)
{
    struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(ads, path, dscp, 46);
    PRM_SET(ads, path, src_addr_index, BENCH_IPV6);
}

/* gpunetio's doca_verbs_qp::rts2rts() with an address: DSCP and source of the connection change,
 * and nothing else of its path. */
START_TEST(a_connection_may_change_its_dscp_and_its_source)
{
    struct bench_qp_attr attr = {.st = _i ? PRM_QP_ST_UC : PRM_QP_ST_RC};
    struct roce_addr before;

    bench_qp_rts(&b, &attr, &qp);
    before = qp.qp->peer.path;
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_DSCP, set_path),
                     SYN_OK);
    ck_assert_uint_eq(qp.qp->peer.path.tclass >> 2, 46);
    before.tclass = qp.qp->peer.path.tclass;
    ck_assert_mem_eq(&qp.qp->peer.path, &before, sizeof(before));
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_SGID_INDEX, set_path),
                     SYN_OK);
    ck_assert_mem_eq(qp.qp->peer.path.sgid, b.hca.vport->gids[BENCH_IPV6].gid, 16);
    ck_assert_uint_eq(qp.qp->peer.path.tclass >> 2, 46);
    ck_assert_uint_eq(qp.qp->peer.path.udp_sport, before.udp_sport);
    b.hca.vport->gids[BENCH_IPV6].valid = false;
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_SGID_INDEX, set_path),
                     SYN_QP_GID);
    qp_in(PRM_QP_ST_UD, ST(RTS), &qp);
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_DSCP, set_path),
                     SYN_QP_OPT_MASK);
}
END_TEST

START_TEST(an_optional_field_that_the_transition_does_not_take_is_refused)
{
    qp_in(PRM_QP_ST_UC, ST(RTS), &qp);
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_RRE, set_rre),
                     SYN_QP_OPT_MASK);
    ck_assert_int_eq(
        modify_field(PRM_CMD_OP_RTS2RTS_QP, 1u << PRM_QP_OPTPAR_ALT_ADDR_PATH, set_rre),
        SYN_QP_OPT_MASK);
    ck_assert_int_eq(modify_field(PRM_CMD_OP_RTS2RTS_QP, 1ull << 63, set_rre), SYN_QP_OPT_MASK);
}
END_TEST

/* A refused transition leaves state and context unchanged. */
START_TEST(a_bad_value_changes_nothing)
{
    struct vport_gid gid = b.hca.vport->gids[BENCH_IPV4];
    struct bench_qp_attr attr = rc;
    struct prm_qpc before[1], after[1];

    qp_in(PRM_QP_ST_RC, ST(INIT), &qp);
    ck_assert_int_eq(qp_query(&b.hca, qp.qpn, before), SYN_OK);
    attr.mtu = 6;
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &attr), SYN_QP_MTU);
    attr = rc;
    attr.log_rra_max = 5;
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &attr), SYN_LIMIT);
    gid.valid = false;
    vport_set_gid(b.hca.vport, BENCH_IPV4, &gid);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &rc), SYN_QP_GID);
    gid.valid = true;
    gid.version = 1; /* 1.5 */
    vport_set_gid(b.hca.vport, BENCH_IPV4, &gid);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_INIT2RTR_QP, &rc), SYN_QP_GID);
    ck_assert_int_eq(qp_query(&b.hca, qp.qpn, after), SYN_OK);
    ck_assert_mem_eq(before, after, sizeof(before));
}
END_TEST

/* -- errors and flushing ----------------------------------------------------------------------- */

#define ERROR_QPS 400

static unsigned flushed(void)
{
    const struct prm_err_cqe *cqe;
    unsigned n = 0;

    while ((cqe = bench_poll(&b, &b.cq))) {
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, opcode), PRM_CQE_OPCODE_RESP_ERR);
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), PRM_CQE_SYNDROME_WR_FLUSH_ERR);
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, wqe_counter), n);
        n++;
    }
    return n;
}

START_TEST(in_error_posted_receives_are_flushed)
{
    qp_in(PRM_QP_ST_RC, ST(RTS), &qp);
    for (int i = 0; i < 10; i++) {
        bench_post_recv(&qp, 0, 0, 0);
    }
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &rc), SYN_OK);
    bench_run(&b);
    ck_assert_uint_eq(flushed(), 10);
}
END_TEST

/* The driver drains a receive queue by posting one more WQE after it entered the error state; only
 * the doorbell record shows that WQE. */
START_TEST(in_error_receives_posted_later_are_flushed_too)
{
    qp_in(PRM_QP_ST_RC, ST(RTS), &qp);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &rc), SYN_OK);
    bench_run(&b);
    for (int i = 0; i < 8; i++) {
        b.host.now = b.host.deadline;
        bench_run(&b);
    }
    bench_post_recv(&qp, 0, 0, 0);
    b.host.now += 250000000;
    bench_run(&b);
    ck_assert_uint_eq(flushed(), 1);

    /* In RST nobody checks the record any more. */
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2RST_QP, &rc), SYN_OK);
    bench_run(&b);
    ck_assert_uint_eq(b.host.deadline, UINT64_MAX);
}
END_TEST

/* A process that ends badly leaves its QPs in ERR, where nobody posts to them any more. Reading
 * their doorbell records must not keep a host busy. The device does so four times a second, for 256
 * QPs at most, and still finds later posts. */
START_TEST(qps_left_in_error_cost_next_to_nothing)
{
    struct bench_qp *qps = g_new0(struct bench_qp, ERROR_QPS);
    uint64_t reads, end;
    unsigned turns = 0;

    for (unsigned i = 0; i < ERROR_QPS; i++) {
        bench_qp_rts(&b, &rc, &qps[i]);
        ck_assert_int_eq(bench_modify(&b, &qps[i], PRM_CMD_OP_2ERR_QP, &rc), SYN_OK);
    }
    bench_run(&b);
    /* Each QP's own checks end within a second. */
    for (end = b.host.now + 1000000000; b.host.now < end;) {
        ck_assert_uint_ne(b.host.deadline, UINT64_MAX);
        b.host.now = MAX(b.host.now, b.host.deadline);
        bench_run(&b);
    }
    end = b.host.now + 10000000000ull;
    reads = b.host.reads;
    for (; b.host.now < end; turns++) {
        ck_assert_uint_ne(b.host.deadline, UINT64_MAX);
        b.host.now = b.host.deadline;
        bench_run(&b);
    }
    ck_assert_uint_le(turns, 10 * 4 + 10);
    ck_assert_uint_le(b.host.reads - reads, (10 * 4 + 10) * 256);

    for (unsigned i = 0; i < ERROR_QPS; i += ERROR_QPS / 5) {
        bench_post_recv(&qps[i], 0, 0, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        b.host.now += 250000000;
        bench_run(&b);
    }
    for (turns = 0; bench_poll(&b, &b.cq); turns++) {
    }
    ck_assert_uint_eq(turns, 5);
    g_free(qps);
}
END_TEST

/* Requester and responder may find faults one after the other. */
START_TEST(an_error_state_is_left_by_reset_only)
{
    qp_in(PRM_QP_ST_UD, ST(RTS), &qp);
    qp_fatal(qp.qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    qp_set_state(qp.qp, ST(SQER));
    qp_set_state(qp.qp, ST(SQD));
    qp_fatal(qp.qp, PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    ck_assert_uint_eq(qp.qp->state, ST(ERR));
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    ck_assert_int_eq(bench_event(&b, qp.qpn), -1);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2RST_QP, &rc), SYN_OK);
    ck_assert_uint_eq(qp.qp->state, ST(RST));
}
END_TEST

START_TEST(a_doorbell_record_that_lies_flushes_no_more_than_the_ring_holds)
{
    qp_in(PRM_QP_ST_RC, ST(RTS), &qp);
    PRM_SET(qp_dbr, fake_host_ptr(&b.host, qp.dbr, 8), rcv_counter, 0x8000);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &rc), SYN_OK);
    bench_run(&b);
    ck_assert_uint_le(flushed(), 16);
}
END_TEST

START_TEST(reset_forgets_posted_receives)
{
    qp_in(PRM_QP_ST_RC, ST(RTS), &qp);
    bench_post_recv(&qp, 0, 0, 0);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2RST_QP, &rc), SYN_OK);
    bench_run(&b);
    ck_assert_uint_eq(flushed(), 0);
    ck_assert_uint_eq(qp.qp->rq.ci, 0);
}
END_TEST

/* The driver finds a user's QP by its index, and a kernel's QP by QPN and SRQN (CQE versions 1 and
 * 0). */
START_TEST(completions_name_the_qp_as_its_owner_knows_it)
{
    const struct prm_err_cqe *cqe;

    bench_qp_rts(&b, &(struct bench_qp_attr){.st = PRM_QP_ST_RC, .user_index = 0x4321}, &qp);
    bench_post_recv(&qp, 0, 0, 0);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &rc), SYN_OK);
    bench_run(&b);
    cqe = bench_poll(&b, &b.cq);
    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, srqn), 0x4321);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, qpn), qp.qpn);
}
END_TEST

/* IBTA 11.6.3.1: a QP with an SRQ that enters ERR takes no more WQEs from it, and reports that. */
START_TEST(the_last_wqe_of_a_qp_with_an_srq_is_announced)
{
    struct bench_qp_attr attr = {.st = PRM_QP_ST_RC};
    uint64_t ring = fake_host_alloc(&b.host, 4096, 4096), pas = GUINT64_TO_BE(ring);
    struct mtt *mtt = mtt_new(&pas, 1, 12);
    struct srq_attr srq_attr = {
        .kind = OBJ_SRQ,
        .pdn = b.pdn,
        .log_size = 4,
        .log_stride = 5,
        .dbr = fake_host_alloc(&b.host, 8, 8),
    };
    struct srq *srq;

    ck_assert(mem_buf_init(&srq_attr.buf, mtt, 0, 4096));
    mtt_unref(mtt);
    ck_assert_int_eq(srq_create(&b.hca, &srq_attr, &srq), SYN_OK);
    attr.srqn = srq->obj.num;
    bench_qp_rts(&b, &attr, &qp);
    ck_assert_uint_eq(srq->obj.refs, 1);
    ck_assert_int_eq(bench_modify(&b, &qp, PRM_CMD_OP_2ERR_QP, &attr), SYN_OK);
    ck_assert_int_eq(bench_event(&b, qp.qpn), PRM_EVENT_TYPE_SRQ_LAST_WQE);
    ck_assert_int_eq(qp_destroy(&b.hca, 0, qp.qpn), SYN_OK);
    ck_assert_uint_eq(srq->obj.refs, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("qp");
    TCase *tc = tcase_create("qp");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_qpc_that_cannot_work_is_refused);
    tcase_add_test(tc, queues_beyond_the_limits_are_refused);
    tcase_add_test(tc, the_send_queue_is_behind_the_receive_queue);
    tcase_add_test(tc, a_qp_holds_on_to_what_it_uses);
    tcase_add_test(tc, there_is_one_gsi_qp);
    tcase_add_test(tc, a_user_context_has_its_own_qps_only);
    tcase_add_test(tc, a_qp_goes_to_rts_and_a_query_returns_its_fields);
    tcase_add_loop_test(tc, a_transition_is_legal_in_its_state_only, 0, 5);
    tcase_add_test(tc, a_drained_send_queue_is_announced);
    tcase_add_test(tc, an_optional_field_is_taken_if_its_bit_is_set);
    tcase_add_loop_test(tc, a_connection_may_change_its_dscp_and_its_source, 0, 2);
    tcase_add_test(tc, an_optional_field_that_the_transition_does_not_take_is_refused);
    tcase_add_test(tc, a_bad_value_changes_nothing);
    tcase_add_test(tc, in_error_posted_receives_are_flushed);
    tcase_add_test(tc, in_error_receives_posted_later_are_flushed_too);
    tcase_add_test(tc, qps_left_in_error_cost_next_to_nothing);
    tcase_add_test(tc, an_error_state_is_left_by_reset_only);
    tcase_add_test(tc, a_doorbell_record_that_lies_flushes_no_more_than_the_ring_holds);
    tcase_add_test(tc, reset_forgets_posted_receives);
    tcase_add_test(tc, completions_name_the_qp_as_its_owner_knows_it);
    tcase_add_test(tc, the_last_wqe_of_a_qp_with_an_srq_is_announced);
    suite_add_tcase(s, tc);
    return s;
}
