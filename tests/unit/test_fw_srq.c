/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests shared receive queues in commands, as the driver gives them: SRQ, XRC SRQ, RMP. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/test_fw_driver.h"
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"

#define PAGE       4096
#define LOG_SIZE   6
#define LOG_STRIDE 6 /* 64 slots of 64 bytes: one page */
#define LIST_BYTES 8 /* one page */
#define CMD_ROOM   512

static struct fwd d;
static uint32_t pdn, xrcdn, cqn;
static uint64_t ring, dbr;
static void *const in = (uint8_t[CMD_ROOM]){0}, *const out = (uint8_t[CMD_ROOM]){0};

static void begin(uint16_t opcode, uint16_t op_mod)
{
    memset(in, 0, CMD_ROOM);
    PRM_SET(create_srq_in, in, opcode, opcode);
    PRM_SET(create_srq_in, in, op_mod, op_mod);
}

#define RUN(name, extra) fwd_cmd(&d, in, PRM_SIZE(name##_in) + (extra), out, PRM_SIZE(name##_out))

static void make_cq(void)
{
    uint32_t uarn, eqn;
    void *ctx;

    begin(PRM_CMD_OP_ALLOC_UAR, 0);
    ck_assert_uint_eq(RUN(alloc_uar, 0), 0);
    uarn = PRM_GET(alloc_uar_out, out, uar);
    begin(PRM_CMD_OP_CREATE_EQ, 0);
    ctx = PRM_PTR(create_eq_in, in, eq_context_entry);
    PRM_SET(eqc, ctx, log_eq_size, 6);
    PRM_SET(eqc, ctx, uar_page, uarn);
    PRM_SET_AT(create_eq_in, in, pas, 0, fake_host_alloc(&d.host, PAGE, PAGE));
    ck_assert_uint_eq(RUN(create_eq, 8), 0);
    eqn = PRM_GET(create_eq_out, out, eq_number);
    begin(PRM_CMD_OP_CREATE_CQ, 0);
    ctx = PRM_PTR(create_cq_in, in, cq_context);
    PRM_SET(cqc, ctx, log_cq_size, 6);
    PRM_SET(cqc, ctx, uar_page, uarn);
    PRM_SET(cqc, ctx, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, ctx, dbr_addr, fake_host_alloc(&d.host, 8, 8));
    PRM_SET_AT(create_cq_in, in, pas, 0, fake_host_alloc(&d.host, PAGE, PAGE));
    ck_assert_uint_eq(RUN(create_cq, 8), 0);
    cqn = PRM_GET(create_cq_out, out, cqn);
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    begin(PRM_CMD_OP_ALLOC_PD, 0);
    ck_assert_uint_eq(RUN(alloc_pd, 0), 0);
    pdn = PRM_GET(alloc_pd_out, out, pd);
    begin(PRM_CMD_OP_ALLOC_XRCD, 0);
    ck_assert_uint_eq(RUN(alloc_xrcd, 0), 0);
    xrcdn = PRM_GET(alloc_xrcd_out, out, xrcd);
    make_cq();
    ring = fake_host_alloc(&d.host, PAGE, PAGE);
    dbr = fake_host_alloc(&d.host, 8, 8);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* CREATE_RMP in in; returns its wq. */
static struct prm_wq *rmp_in(void)
{
    struct prm_rmpc *ctx;
    struct prm_wq *wq;

    begin(PRM_CMD_OP_CREATE_RMP, 0);
    ctx = PRM_PTR(create_rmp_in, in, ctx);
    wq = PRM_PTR(rmpc, ctx, wq);
    PRM_SET(rmpc, ctx, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, wq, log_wq_stride, LOG_STRIDE);
    PRM_SET(wq, wq, log_wq_sz, LOG_SIZE);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, dbr_addr, dbr);
    PRM_SET(uint64, in + PRM_SIZE(create_rmp_in), hi, ring >> 32);
    PRM_SET(uint64, in + PRM_SIZE(create_rmp_in), lo, ring & UINT32_MAX);
    return wq;
}

static uint32_t make_rmp(void)
{
    rmp_in();
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), 0);
    return PRM_GET(create_rmp_out, out, rmpn);
}

/* The driver's arm_rmp_cmd(). */
static enum syn arm_rmp(uint32_t rmpn, uint16_t lwm)
{
    struct prm_rmpc *ctx;

    begin(PRM_CMD_OP_MODIFY_RMP, 0);
    ctx = PRM_PTR(modify_rmp_in, in, ctx);
    PRM_SET(modify_rmp_in, in, rmp_state, PRM_RMPC_STATE_RDY);
    PRM_SET(modify_rmp_in, in, rmpn, rmpn);
    PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, in, bitmask), lwm, 1);
    PRM_SET(rmpc, ctx, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, PRM_PTR(rmpc, ctx, wq), lwm, lwm);
    return RUN(modify_rmp, 0);
}

static const struct prm_rmpc *query_rmp(uint32_t rmpn)
{
    begin(PRM_CMD_OP_QUERY_RMP, 0);
    PRM_SET(query_rmp_in, in, rmpn, rmpn);
    ck_assert_uint_eq(RUN(query_rmp, 0), 0);
    return PRM_PTR(query_rmp_out, out, rmp_context);
}

static enum syn destroy(uint16_t opcode, uint32_t num)
{
    begin(opcode, 0);
    PRM_SET(destroy_rmp_in, in, rmpn, num);
    return RUN(destroy_rmp, 0);
}

START_TEST(an_rmp_lives)
{
    uint32_t rmpn = make_rmp();
    const struct prm_rmpc *ctx = query_rmp(rmpn);
    const struct prm_wq *wq = PRM_PTR(rmpc, ctx, wq);

    ck_assert_uint_eq(PRM_GET(rmpc, ctx, state), PRM_RMPC_STATE_RDY);
    ck_assert_uint_eq(PRM_GET(wq, wq, log_wq_sz), LOG_SIZE);
    ck_assert_uint_eq(PRM_GET(wq, wq, log_wq_stride), LOG_STRIDE);
    ck_assert_uint_eq(PRM_GET(wq, wq, pd), pdn);
    ck_assert_uint_eq(PRM_GET(wq, wq, dbr_addr), dbr);
    ck_assert_uint_eq(PRM_GET(wq, wq, lwm), 0);
    PRM_SET(srq_dbr, fake_host_ptr(&d.host, dbr, 4), counter, 20);
    ck_assert_uint_eq(arm_rmp(rmpn, 9), 0);
    wq = PRM_PTR(rmpc, query_rmp(rmpn), wq);
    ck_assert_uint_eq(PRM_GET(wq, wq, lwm), 9);
    ck_assert_uint_eq(PRM_GET(wq, wq, sw_counter), 20);
    ck_assert_uint_eq(arm_rmp(rmpn, (1 << LOG_SIZE) + 1), SYN_SRQ_LIMIT);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_SRQ, rmpn), SYN_SRQ_NUM);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, rmpn), 0);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, rmpn), SYN_SRQ_NUM);
    ck_assert_uint_eq(arm_rmp(rmpn, 1), SYN_SRQ_NUM);
}
END_TEST

/* UCX and DPDK make a ring of WQEs instead of a list, and a ring without next segments. */
START_TEST(an_rmp_may_be_a_ring)
{
    for (unsigned basic = 0; basic < 2; basic++) {
        const struct prm_rmpc *ctx;
        uint32_t rmpn;

        PRM_SET(wq, rmp_in(), wq_type, PRM_WQ_TYPE_CYCLIC);
        PRM_SET(rmpc, PRM_PTR(create_rmp_in, in, ctx), basic_cyclic_rcv_wqe, basic);
        ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), 0);
        rmpn = PRM_GET(create_rmp_out, out, rmpn);
        ctx = query_rmp(rmpn);
        ck_assert_uint_eq(PRM_GET(wq, PRM_PTR(rmpc, ctx, wq), wq_type), PRM_WQ_TYPE_CYCLIC);
        ck_assert_uint_eq(PRM_GET(rmpc, ctx, basic_cyclic_rcv_wqe), basic);
        ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, rmpn), 0);
    }
}
END_TEST

/* The limit event comes at once if fewer are posted. An invalid doorbell record breaks the queue,
 * as its state shows. */
START_TEST(arming_looks_at_the_doorbell_record)
{
    uint32_t rmpn = make_rmp();

    PRM_SET(srq_dbr, fake_host_ptr(&d.host, dbr, 4), counter, 3);
    ck_assert_uint_eq(arm_rmp(rmpn, 4), 0);
    ck_assert_uint_eq(PRM_GET(wq, PRM_PTR(rmpc, query_rmp(rmpn), wq), lwm), 0);
    PRM_SET(srq_dbr, fake_host_ptr(&d.host, dbr, 4), counter, 1000);
    ck_assert_uint_eq(arm_rmp(rmpn, 4), 0);
    ck_assert_uint_eq(PRM_GET(rmpc, query_rmp(rmpn), state), PRM_RMPC_STATE_ERR);
    ck_assert_uint_eq(arm_rmp(rmpn, 4), SYN_SRQ_STATE);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, rmpn), 0);
}
END_TEST

START_TEST(the_page_list_must_cover_the_list)
{
    PRM_SET(wq, rmp_in(), page_offset, 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_BAD_PAS);
    PRM_SET(wq, rmp_in(), log_wq_sz, LOG_SIZE + 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_BAD_PAS);
    rmp_in();
    ck_assert_uint_ne(RUN(create_rmp, 0), 0);
    rmp_in();
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), 0);
}
END_TEST

START_TEST(a_ring_may_begin_inside_a_page)
{
    PRM_SET(wq, rmp_in(), page_offset, 16); /* of 64ths of a page */
    PRM_SET(wq, PRM_PTR(rmpc, PRM_PTR(create_rmp_in, in, ctx), wq), log_wq_sz, LOG_SIZE - 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), 0);
}
END_TEST

START_TEST(create_rmp_refuses_fields_that_are_out_of_range)
{
    PRM_SET(wq, rmp_in(), log_wq_sz, 31);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_SRQ_SIZE);
    PRM_SET(wq, rmp_in(), log_wq_stride, 3);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_SRQ_SIZE);
    PRM_SET(wq, rmp_in(), wq_type, PRM_WQ_TYPE_CYCLIC_STRIDING_RQ);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_SRQ_TYPE);
    rmp_in();
    PRM_SET(rmpc, PRM_PTR(create_rmp_in, in, ctx), basic_cyclic_rcv_wqe, 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_SRQ_TYPE); /* of a list */
    PRM_SET(wq, rmp_in(), pd, pdn + 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_SRQ_PD);
    PRM_SET(wq, rmp_in(), dbr_addr, dbr + 1);
    ck_assert_uint_eq(RUN(create_rmp, LIST_BYTES), SYN_BAD_DBR);
    PRM_SET(wq, rmp_in(), wq_umem_valid, 1);
    ck_assert_uint_ne(RUN(create_rmp, LIST_BYTES), 0);
}
END_TEST

START_TEST(a_pd_in_use_stays)
{
    uint32_t rmpn = make_rmp();

    begin(PRM_CMD_OP_DEALLOC_PD, 0);
    PRM_SET(dealloc_pd_in, in, pd, pdn);
    ck_assert_uint_eq(RUN(dealloc_pd, 0), SYN_IN_USE);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, rmpn), 0);
    begin(PRM_CMD_OP_DEALLOC_PD, 0);
    PRM_SET(dealloc_pd_in, in, pd, pdn);
    ck_assert_uint_eq(RUN(dealloc_pd, 0), 0);
}
END_TEST

/* mlx5_ib makes one before its first QP (devr->s0). */
START_TEST(an_xrc_srq_lives)
{
    struct prm_xrc_srqc *ctx;
    uint32_t srqn;

    begin(PRM_CMD_OP_CREATE_XRC_SRQ, 0);
    ctx = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);
    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, LOG_SIZE);
    PRM_SET(xrc_srqc, ctx, log_rq_stride, LOG_STRIDE - 4);
    PRM_SET(xrc_srqc, ctx, xrcd, xrcdn);
    PRM_SET(xrc_srqc, ctx, cqn, cqn);
    PRM_SET(xrc_srqc, ctx, pd, pdn);
    PRM_SET(xrc_srqc, ctx, basic_cyclic_rcv_wqe, 1);
    PRM_SET(xrc_srqc, ctx, user_index, 0x123456);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, dbr >> 32);
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (dbr & UINT32_MAX) >> 2);
    PRM_SET_AT(create_xrc_srq_in, in, pas, 0, ring);
    ck_assert_uint_eq(RUN(create_xrc_srq, LIST_BYTES), 0);
    srqn = PRM_GET(create_xrc_srq_out, out, xrc_srqn);

    begin(PRM_CMD_OP_QUERY_XRC_SRQ, 0);
    PRM_SET(query_xrc_srq_in, in, xrc_srqn, srqn);
    ck_assert_uint_eq(RUN(query_xrc_srq, 0), 0);
    ctx = PRM_PTR(query_xrc_srq_out, out, xrc_srq_context_entry);
    ck_assert_uint_eq(PRM_GET(xrc_srqc, ctx, state), PRM_SRQC_STATE_GOOD);
    ck_assert_uint_eq(PRM_GET(xrc_srqc, ctx, cqn), cqn);
    ck_assert_uint_eq(PRM_GET(xrc_srqc, ctx, user_index), 0x123456);
    ck_assert_uint_eq(PRM_GET(xrc_srqc, ctx, basic_cyclic_rcv_wqe), 1);
    ck_assert_uint_eq(PRM_GET(xrc_srqc, ctx, db_record_addr_l), (dbr & UINT32_MAX) >> 2);

    begin(PRM_CMD_OP_ARM_XRC_SRQ, 0);
    PRM_SET(arm_xrc_srq_in, in, xrc_srqn, srqn);
    ck_assert_uint_eq(RUN(arm_xrc_srq, 0), SYN_BAD_OP_MOD); /* op_mod is 1 */
    begin(PRM_CMD_OP_ARM_XRC_SRQ, PRM_ARM_XRC_SRQ_OP_XRC_SRQ);
    PRM_SET(arm_xrc_srq_in, in, xrc_srqn, srqn);
    PRM_SET(arm_xrc_srq_in, in, lwm, 1);
    ck_assert_uint_eq(RUN(arm_xrc_srq, 0), 0);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_RMP, srqn), SYN_SRQ_NUM);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_XRC_SRQ, srqn), 0);
}
END_TEST

/* A driver with ISSI 0 makes plain SRQs. */
START_TEST(an_srq_lives)
{
    struct prm_srqc *ctx;
    uint32_t srqn;

    begin(PRM_CMD_OP_CREATE_SRQ, 0);
    ctx = PRM_PTR(create_srq_in, in, srq_context_entry);
    PRM_SET(srqc, ctx, log_srq_size, LOG_SIZE);
    PRM_SET(srqc, ctx, log_rq_stride, LOG_STRIDE - 4);
    PRM_SET(srqc, ctx, pd, pdn);
    PRM_SET(srqc, ctx, dbr_addr, dbr);
    PRM_SET_AT(create_srq_in, in, pas, 0, ring);
    ck_assert_uint_eq(RUN(create_srq, LIST_BYTES), 0);
    srqn = PRM_GET(create_srq_out, out, srqn);
    PRM_SET(srq_dbr, fake_host_ptr(&d.host, dbr, 4), counter, 7);
    begin(PRM_CMD_OP_ARM_RQ, PRM_ARM_RQ_OP_SRQ);
    PRM_SET(arm_rq_in, in, srq_number, srqn);
    PRM_SET(arm_rq_in, in, lwm, 5);
    ck_assert_uint_eq(RUN(arm_rq, 0), 0);
    begin(PRM_CMD_OP_ARM_RQ, PRM_ARM_RQ_OP_XRQ);
    PRM_SET(arm_rq_in, in, srq_number, srqn);
    ck_assert_uint_eq(RUN(arm_rq, 0), SYN_SRQ_NUM); /* it is not an SRQ */
    begin(PRM_CMD_OP_ARM_RQ, PRM_ARM_RQ_OP_XRQ + 1);
    ck_assert_uint_eq(RUN(arm_rq, 0), SYN_BAD_OP_MOD);
    begin(PRM_CMD_OP_QUERY_SRQ, 0);
    PRM_SET(query_srq_in, in, srqn, srqn);
    ck_assert_uint_eq(RUN(query_srq, 0), 0);
    ctx = PRM_PTR(query_srq_out, out, srq_context_entry);
    ck_assert_uint_eq(PRM_GET(srqc, ctx, lwm), 5);
    ck_assert_uint_eq(PRM_GET(srqc, ctx, wqe_cnt), 7);
    ck_assert_uint_eq(PRM_GET(srqc, ctx, log_srq_size), LOG_SIZE);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_XRC_SRQ, srqn), SYN_SRQ_NUM);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_SRQ, srqn), 0);
}
END_TEST

/* -- XRQ --------------------------------------------------------------------------------------- */

#define LOG_TAGS 5

/* CREATE_XRQ in in, as the driver makes it; returns its context. */
static struct prm_xrqc *xrq_in(void)
{
    struct prm_xrqc *ctx;
    struct prm_wq *wq;

    begin(PRM_CMD_OP_CREATE_XRQ, 0);
    ctx = PRM_PTR(create_xrq_in, in, xrq_context);
    wq = PRM_PTR(xrqc, ctx, wq);
    PRM_SET(xrqc, ctx, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, ctx, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, ctx, user_index, 0x77);
    PRM_SET(xrqc, ctx, cqn, cqn);
    PRM_SET(tag_matching_topology_context, PRM_PTR(xrqc, ctx, tag_matching_topology_context),
            log_matching_list_sz, LOG_TAGS);
    PRM_SET(wq, wq, log_wq_stride, LOG_STRIDE);
    PRM_SET(wq, wq, log_wq_sz, LOG_SIZE);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, dbr_addr, dbr);
    prm_store64(in + PRM_SIZE(create_xrq_in), ring);
    return ctx;
}

static enum syn arm_xrq(uint32_t xrqn, uint16_t lwm)
{
    begin(PRM_CMD_OP_ARM_RQ, PRM_ARM_RQ_OP_XRQ); /* as the driver does */
    PRM_SET(arm_rq_in, in, srq_number, xrqn);
    PRM_SET(arm_rq_in, in, lwm, lwm);
    return RUN(arm_rq, 0);
}

START_TEST(an_xrq_lives)
{
    const struct prm_tag_matching_topology_context *tags;
    struct prm_xrqc *ctx = xrq_in();
    uint32_t xrqn;

    PRM_SET(wq, PRM_PTR(xrqc, ctx, wq), wq_type, PRM_WQ_TYPE_CYCLIC);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), 0);
    xrqn = PRM_GET(create_xrq_out, out, xrqn);
    PRM_SET(srq_dbr, fake_host_ptr(&d.host, dbr, 4), counter, 7);
    ck_assert_uint_eq(arm_xrq(xrqn, 5), 0);
    begin(PRM_CMD_OP_QUERY_XRQ, 0);
    PRM_SET(query_xrq_in, in, xrqn, xrqn);
    ck_assert_uint_eq(RUN(query_xrq, 0), 0);
    ctx = PRM_PTR(query_xrq_out, out, xrq_context);
    tags = PRM_PTR(xrqc, ctx, tag_matching_topology_context);
    ck_assert_uint_eq(PRM_GET(xrqc, ctx, state), PRM_SRQC_STATE_GOOD);
    ck_assert_uint_eq(PRM_GET(xrqc, ctx, topology), PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    ck_assert_uint_eq(PRM_GET(xrqc, ctx, offload), PRM_XRQC_OFFLOAD_RNDV);
    ck_assert_uint_eq(PRM_GET(xrqc, ctx, user_index), 0x77);
    ck_assert_uint_eq(PRM_GET(xrqc, ctx, cqn), cqn);
    ck_assert_uint_eq(PRM_GET(tag_matching_topology_context, tags, log_matching_list_sz), LOG_TAGS);
    ck_assert_uint_eq(PRM_GET(tag_matching_topology_context, tags, append_next_index), 0);
    ck_assert_uint_eq(PRM_GET(wq, PRM_PTR(xrqc, ctx, wq), wq_type), PRM_WQ_TYPE_CYCLIC);
    ck_assert_uint_eq(PRM_GET(wq, PRM_PTR(xrqc, ctx, wq), lwm), 5);
    ck_assert_uint_eq(PRM_GET(wq, PRM_PTR(xrqc, ctx, wq), sw_counter), 7);

    begin(PRM_CMD_OP_DESTROY_CQ, 0);
    PRM_SET(destroy_cq_in, in, cqn, cqn);
    ck_assert_uint_eq(RUN(destroy_cq, 0), SYN_IN_USE);
    begin(PRM_CMD_OP_ARM_XRQ, 0);
    PRM_SET(arm_xrq_in, in, xrqn, xrqn);
    PRM_SET(arm_xrq_in, in, lwm, 1000);
    ck_assert_uint_eq(RUN(arm_xrq, 0), SYN_SRQ_LIMIT);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_SRQ, xrqn), SYN_SRQ_NUM);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_XRQ, xrqn), 0);
    ck_assert_uint_eq(arm_xrq(xrqn, 5), SYN_SRQ_NUM);
    begin(PRM_CMD_OP_QUERY_XRQ, 0);
    PRM_SET(query_xrq_in, in, xrqn, xrqn);
    ck_assert_uint_eq(RUN(query_xrq, 0), SYN_SRQ_NUM);
}
END_TEST

static struct prm_tag_matching_topology_context *xrq_tags_in(void)
{
    return PRM_PTR(xrqc, xrq_in(), tag_matching_topology_context);
}

START_TEST(an_xrq_out_of_range_is_refused)
{
    PRM_SET(xrqc, xrq_in(), topology, PRM_XRQC_TOPOLOGY_NO_SPECIAL_TOPOLOGY);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_SRQ_TYPE);
    PRM_SET(xrqc, xrq_in(), offload, PRM_XRQC_OFFLOAD_RNDV + 1);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_SRQ_TYPE);
    PRM_SET(wq, PRM_PTR(xrqc, xrq_in(), wq), wq_type, PRM_WQ_TYPE_CYCLIC_STRIDING_RQ);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_SRQ_TYPE);
    PRM_SET(xrqc, xrq_in(), cqn, cqn + 1);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_SRQ_CQ);
    PRM_SET(wq, PRM_PTR(xrqc, xrq_in(), wq), pd, pdn + 1);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_SRQ_PD);
    PRM_SET(tag_matching_topology_context, xrq_tags_in(), log_matching_list_sz, 8);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_XRQ_TAGS);
    PRM_SET(tag_matching_topology_context, xrq_tags_in(), append_next_index, 1u << LOG_TAGS);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), SYN_XRQ_TAGS);
    PRM_SET(tag_matching_topology_context, xrq_tags_in(), append_next_index, (1u << LOG_TAGS) - 1);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), 0);
}
END_TEST

static enum syn set_dc_params(uint32_t xrqn, uint32_t mtu)
{
    begin(PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY, 0);
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, xrqn);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, mtu);
    return RUN(set_xrq_dc_params_entry, 0);
}

/* The objects that the device makes for it are hidden from the driver, and destroyed with it. */
START_TEST(an_xrq_may_fetch_over_dc)
{
    uint32_t xrqn, qpns = d.fw->hca.qpns.count;

    PRM_SET(xrqc, xrq_in(), dc, 1);
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), 0);
    xrqn = PRM_GET(create_xrq_out, out, xrqn);
    begin(PRM_CMD_OP_QUERY_XRQ, 0);
    PRM_SET(query_xrq_in, in, xrqn, xrqn);
    ck_assert_uint_eq(RUN(query_xrq, 0), 0);
    ck_assert_uint_eq(PRM_GET(xrqc, PRM_PTR(query_xrq_out, out, xrq_context), dc), 1);
    ck_assert_uint_eq(set_dc_params(xrqn, 0), SYN_QP_MTU);
    ck_assert_uint_eq(set_dc_params(xrqn, PRM_QP_MTU_4096), 0);
    ck_assert_uint_eq(set_dc_params(xrqn, PRM_QP_MTU_1024), 0);
    ck_assert_uint_eq(d.fw->hca.qpns.count, qpns + 1);
    ck_assert_uint_eq(destroy(PRM_CMD_OP_DESTROY_XRQ, xrqn), 0);
    ck_assert_uint_eq(d.fw->hca.qpns.count, qpns);
    ck_assert_uint_eq(set_dc_params(xrqn, PRM_QP_MTU_1024), SYN_SRQ_NUM);
    xrq_in();
    ck_assert_uint_eq(RUN(create_xrq, LIST_BYTES), 0);
    xrqn = PRM_GET(create_xrq_out, out, xrqn);
    ck_assert_uint_eq(set_dc_params(xrqn, PRM_QP_MTU_1024), SYN_XRQ_NOT_DC);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fw srq");
    TCase *tc = tcase_create("commands");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_rmp_lives);
    tcase_add_test(tc, an_rmp_may_be_a_ring);
    tcase_add_test(tc, arming_looks_at_the_doorbell_record);
    tcase_add_test(tc, the_page_list_must_cover_the_list);
    tcase_add_test(tc, a_ring_may_begin_inside_a_page);
    tcase_add_test(tc, create_rmp_refuses_fields_that_are_out_of_range);
    tcase_add_test(tc, a_pd_in_use_stays);
    tcase_add_test(tc, an_xrc_srq_lives);
    tcase_add_test(tc, an_srq_lives);
    tcase_add_test(tc, an_xrq_lives);
    tcase_add_test(tc, an_xrq_out_of_range_is_refused);
    tcase_add_test(tc, an_xrq_may_fetch_over_dc);
    suite_add_tcase(suite, tc);
    return suite;
}
