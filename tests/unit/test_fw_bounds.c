/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests how much a guest can make the function keep, how much it costs to free it, and how much a
 * guest can make the function log.
 *
 * Times are printed, never judged: the work is compared with a bound.
 */
#include <check.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fw/fw_internal.h"
#include "model/core/obj_class.h"
#include "model/memory/memic.h"
#include "model/queue/tag_list.h"
#include "model/rdma/dct.h"
#include "model/rdma/rdma.h"
#include "tests/unit/crypto_in.h"
#include "tests/unit/steer_objects.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define PART      512 /* pieces of a reset in a turn */
#define STEP      64  /* more pieces than the largest step has */
#define MANY_PDS  1000000
#define MANY_KEYS 100000

static struct fwd d;

/* Executes a command that must succeed. It may run a million times, so it avoids ck_assert(), which
 * would notify the test's parent each time. */
static void must(const void *request, size_t in_len, void *answer, size_t answer_len)
{
    int status = drv_cmd(d.drv, request, in_len, answer, answer_len);

    if (status) {
        ck_abort_msg("%s: status %d", prm_cmd_op_name(PRM_GET(cmd_in, request, opcode)), status);
    }
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static void give_pages(uint32_t n)
{
    while (n) {
        uint32_t batch = MIN(n, 1024);

        ck_assert_uint_eq(fwd_give_pages(&d, batch), SYN_OK);
        n -= batch;
    }
}

static uint32_t alloc_pd(void)
{
    struct prm_alloc_pd_in request[1] = {0};
    struct prm_alloc_pd_out answer[1];

    PRM_SET(alloc_pd_in, request, opcode, PRM_CMD_OP_ALLOC_PD);
    must(request, sizeof(request), answer, sizeof(answer));
    return PRM_GET(alloc_pd_out, answer, pd);
}

/* A memory region of eight pages. */
static void create_key(uint32_t of_pd)
{
    uint8_t request_bytes[PRM_SIZE(create_mkey_in) + 64] = {0};
    void *request = request_bytes;
    struct prm_create_mkey_out answer[1];
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, request, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, request, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, request, translations_octword_actual_size, 4);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, len, 8 * 4096);
    PRM_SET(mkc, mkc, pd, of_pd);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    must(request, sizeof(request_bytes), answer, sizeof(answer));
}

static uint64_t steps(void)
{
    return d.fw->hca.pds.steps + d.fw->hca.mkeys.steps;
}

static bool says_initializing(void)
{
    return fw_mmio_read(d.fw, PRM_OFFSET(initial_seg, initializing), 4) >> 31;
}

/* Resets the function; returns the number of turns. None of them is long. */
static unsigned reset(void)
{
    uint64_t before = fw_pieces(d.fw);
    unsigned turns = 0;
    bool more;

    fw_reset(d.fw);
    do {
        ck_assert_uint_le(fw_pieces(d.fw) - before, PART + STEP);
        before = fw_pieces(d.fw);
        more = says_initializing();
        ck_assert(fw_run(d.fw, 64) == (more && says_initializing()));
        turns++;
    } while (more);
    return turns;
}

/* A driver that dies leaves everything to the function's reset, and the host's other guests wait
 * for it. Therefore the reset is done in parts, and the function reports meanwhile that it is
 * initializing. */
START_TEST(a_reset_takes_time_in_proportion_to_the_objects)
{
    const uint64_t objects = MANY_PDS + MANY_KEYS;
    uint32_t last = 0;
    unsigned turns;
    uint64_t before;
    int64_t begin;

    give_pages(32 * 1024);
    for (unsigned i = 0; i < MANY_PDS; i++) {
        last = alloc_pd();
    }
    for (unsigned i = 0; i < MANY_KEYS; i++) {
        create_key(last);
    }
    before = steps();
    ck_assert_uint_le(before, 3 * objects);

    ck_assert(!says_initializing());
    begin = g_get_monotonic_time();
    turns = reset();
    g_print("# reset of %u PDs and %u keys: %.3f s, %u turns\n", MANY_PDS, MANY_KEYS,
            (double)(g_get_monotonic_time() - begin) / 1e6, turns);
    ck_assert_uint_ge(turns, objects / (PART + STEP));
    ck_assert_uint_eq(d.fw->hca.pds.count, 0);
    ck_assert_uint_eq(d.fw->hca.mkeys.count, 0);
    ck_assert_uint_le(steps() - before, 3 * objects);
}
END_TEST

/* -- memory ------------------------------------------------------------------------------------ */

/*
 * Makes each kind of object until it is refused, for a guest whose device may use this much memory.
 * The process's real use must not exceed the accounted use, except for a tenth and for what the
 * host, the driver and the allocator use besides.
 */
#define LIMIT    (48ull << 20)
#define SLACK    (4ull << 20)
#define LIST     4096 /* entries of a long list in a command */
#define RING_LOG 9
#define OUT_ROOM 0x40

static uint32_t xrcdn, pdn, tdn, uarn, eqn, cqn, rqn, tirn, table_id, group_id, uid, qpn;
static uint64_t ring_addr;
static uint32_t nth; /* how many were made */
static void *const in = (uint8_t[PRM_SIZE(create_mkey_in) + 8 * LIST]){0};
static void *const out = (uint8_t[OUT_ROOM]){0}; /* of the last command */

/* Executes the command in `in`, and clears `in`; returns the status. */
static uint8_t run_in(uint16_t opcode, size_t len)
{
    int status;

    PRM_SET(cmd_in, in, opcode, opcode);
    status = drv_cmd(d.drv, in, len, out, OUT_ROOM);
    memset(in, 0, len);
    if (status < 0) {
        ck_abort_msg("%s: no answer", prm_cmd_op_name(opcode));
    }
    return (uint8_t)status;
}

/* The number of the made object; name of the command, field of its output. */
#define MADE(name, field) PRM_GET(name##_out, out, field)

static uint8_t make_pd(void)
{
    uint8_t status = run_in(PRM_CMD_OP_ALLOC_PD, 16);

    pdn = MADE(alloc_pd, pd);
    return status;
}

static uint8_t make_td(void)
{
    uint8_t status = run_in(PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN, 16);

    tdn = MADE(alloc_transport_domain, transport_domain);
    return status;
}

static uint8_t make_xrcd(void)
{
    uint8_t status = run_in(PRM_CMD_OP_ALLOC_XRCD, 16);

    xrcdn = PRM_GET(alloc_xrcd_out, out, xrcd);
    return status;
}

static uint8_t make_uar(void)
{
    uint8_t status = run_in(PRM_CMD_OP_ALLOC_UAR, 16);

    uarn = MADE(alloc_uar, uar);
    return status;
}

static uint8_t make_q_counter(void)
{
    return run_in(PRM_CMD_OP_ALLOC_Q_COUNTER, 16);
}

static uint8_t make_flow_counter(void)
{
    return run_in(PRM_CMD_OP_ALLOC_FLOW_COUNTER, 16);
}

static uint8_t make_reformat(void)
{
    prm_store32((uint8_t *)in + 0x1c, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL << 24 | 14);
    return run_in(PRM_CMD_OP_ALLOC_PACKET_REFORMAT_CONTEXT, 0x30);
}

static uint8_t make_modify_header(void)
{
    prm_store32((uint8_t *)in + 0x0c, 1); /* one action, which sets a register */
    prm_store32((uint8_t *)in + 0x10, 1u << 28 | PRM_MODIFY_HEADER_FIELD_METADATA_REG_A << 16);
    return run_in(PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT, 0x18);
}

static uint8_t make_uctx(void)
{
    uint8_t status = run_in(PRM_CMD_OP_CREATE_UCTX, PRM_SIZE(create_uctx_in));

    uid = MADE(create_uctx, uid);
    return status;
}

static uint8_t make_umem(void)
{
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);

    PRM_SET(create_umem_in, in, uid, uid);
    PRM_SET(umem, umem, num_of_mtt, LIST);
    for (unsigned i = 0; i < LIST; i++) {
        prm_store64(PRM_PTR_AT(umem, umem, mtt, i), ring_addr);
    }
    return run_in(PRM_CMD_OP_CREATE_UMEM, PRM_SIZE(create_umem_in) + 8 * LIST);
}

/* Without translation entries: a window. */
static uint8_t make_window(void)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, pd, pdn);
    return run_in(PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in));
}

static uint8_t make_region(void)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, translations_octword_actual_size, LIST / 2);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, len, 4096ull * LIST);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, translations_octword_size, LIST / 2);
    for (unsigned i = 0; i < LIST; i++) {
        PRM_SET_AT(create_mkey_in, in, klm_pas_mtt, i, ring_addr);
    }
    return run_in(PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in) + 8 * LIST);
}

static uint8_t make_memic(void)
{
    PRM_SET(alloc_memic_in, in, range_start_addr, MEMIC_BAR_START);
    PRM_SET(alloc_memic_in, in, range_size, MEMIC_BAR_SIZE);
    PRM_SET(alloc_memic_in, in, memic_size, 64);
    return run_in(PRM_CMD_OP_ALLOC_MEMIC, PRM_SIZE(alloc_memic_in));
}

static uint8_t make_sw_icm(void)
{
    static uint32_t block; /* the next of the region: a range must be free */

    return run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT, steer_fill_memory(in, block++ % 4096));
}

static uint8_t make_psv(void)
{
    PRM_SET(create_psv_in, in, num_psv, 1);
    PRM_SET(create_psv_in, in, pd, pdn);
    return run_in(PRM_CMD_OP_CREATE_PSV, PRM_SIZE(create_psv_in));
}

static uint8_t make_eq(void)
{
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    uint8_t status;

    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, uarn);
    PRM_SET_AT(create_eq_in, in, pas, 0, ring_addr);
    status = run_in(PRM_CMD_OP_CREATE_EQ, PRM_SIZE(create_eq_in) + 8);
    eqn = MADE(create_eq, eq_number);
    return status;
}

static uint8_t make_cq(void)
{
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint8_t status;

    PRM_SET(cqc, cqc, log_cq_size, 6);
    PRM_SET(cqc, cqc, uar_page, uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_addr, ring_addr);
    PRM_SET_AT(create_cq_in, in, pas, 0, ring_addr);
    status = run_in(PRM_CMD_OP_CREATE_CQ, PRM_SIZE(create_cq_in) + 8);
    cqn = MADE(create_cq, cqn);
    return status;
}

static uint8_t make_srq(void)
{
    struct prm_srqc *srqc = PRM_PTR(create_srq_in, in, srq_context_entry);

    PRM_SET(srqc, srqc, log_srq_size, 4);
    PRM_SET(srqc, srqc, log_rq_stride, 2);
    PRM_SET(srqc, srqc, pd, pdn);
    PRM_SET(srqc, srqc, dbr_addr, ring_addr);
    PRM_SET_AT(create_srq_in, in, pas, 0, ring_addr);
    return run_in(PRM_CMD_OP_CREATE_SRQ, PRM_SIZE(create_srq_in) + 8);
}

static uint8_t make_xrc_srq(void)
{
    struct prm_xrc_srqc *srqc = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);

    PRM_SET(xrc_srqc, srqc, log_xrc_srq_size, 4);
    PRM_SET(xrc_srqc, srqc, log_rq_stride, 2);
    PRM_SET(xrc_srqc, srqc, pd, pdn);
    PRM_SET(xrc_srqc, srqc, xrcd, xrcdn);
    PRM_SET(xrc_srqc, srqc, cqn, cqn);
    PRM_SET(xrc_srqc, srqc, db_record_addr_h, ring_addr >> 32);
    PRM_SET(xrc_srqc, srqc, db_record_addr_l, (uint32_t)ring_addr >> 2);
    PRM_SET_AT(create_xrc_srq_in, in, pas, 0, ring_addr);
    return run_in(PRM_CMD_OP_CREATE_XRC_SRQ, PRM_SIZE(create_xrc_srq_in) + 8);
}

static uint8_t make_rmp(void)
{
    struct prm_rmpc *rmpc = PRM_PTR(create_rmp_in, in, ctx);
    struct prm_wq *wq = PRM_PTR(rmpc, rmpc, wq);

    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, dbr_addr, ring_addr);
    prm_store64(PRM_PTR(wq, wq, pas), ring_addr);
    return run_in(PRM_CMD_OP_CREATE_RMP, PRM_SIZE(create_rmp_in) + 8);
}

/* With the longest possible tag list. */
static uint8_t make_xrq(void)
{
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);
    struct prm_wq *wq = PRM_PTR(xrqc, xrqc, wq);

    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, cqn, cqn);
    PRM_SET(tag_matching_topology_context, PRM_PTR(xrqc, xrqc, tag_matching_topology_context),
            log_matching_list_sz, TAG_LIST_LOG_MAX);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, dbr_addr, ring_addr);
    prm_store64(PRM_PTR(wq, wq, pas), ring_addr);
    return run_in(PRM_CMD_OP_CREATE_XRQ, PRM_SIZE(create_xrq_in) + 8);
}

/* With an initiator of its own. */
static uint8_t make_xrq_dci(void)
{
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);
    uint8_t status;

    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, dc, 1);
    status = make_xrq();
    if (status) {
        return status;
    }
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, MADE(create_xrq, xrqn));
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, PRM_QP_MTU_1024);
    return run_in(PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY, PRM_SIZE(set_xrq_dc_params_entry_in));
}

/* Its ring is in eight consecutive pages. */
static uint8_t create_qp(uint8_t st)
{
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    uint8_t status;

    PRM_SET(qpc, qpc, st, st);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, pdn);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    PRM_SET(qpc, qpc, log_sq_size, RING_LOG);
    PRM_SET(qpc, qpc, uar_page, uarn);
    PRM_SET(qpc, qpc, cqn_snd, cqn);
    PRM_SET(qpc, qpc, cqn_rcv, cqn);
    PRM_SET(qpc, qpc, dbr_addr, ring_addr);
    for (unsigned i = 0; i < 64u << RING_LOG >> 12; i++) {
        PRM_SET_AT(create_qp_in, in, pas, i, ring_addr + i * 4096);
    }
    status = run_in(PRM_CMD_OP_CREATE_QP, PRM_SIZE(create_qp_in) + (64u << RING_LOG >> 12) * 8);
    qpn = MADE(create_qp, qpn);
    return status;
}

static uint8_t make_qp(void)
{
    return create_qp(PRM_QP_ST_RC);
}

#define MAKE_CRYPTO(name)                                                                          \
    static uint8_t make_##name(void)                                                               \
    {                                                                                              \
        return run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT, crypto_##name##_in(d.fw, in, pdn));        \
    }
MAKE_CRYPTO(dek)
MAKE_CRYPTO(login)
MAKE_CRYPTO(credential)
MAKE_CRYPTO(kek)

static uint8_t make_reserved_qpns(void)
{
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    PRM_SET(general_obj_create_param, PRM_PTR(general_obj_in_cmd_hdr, in, op_param_create),
            log_obj_range, OBJ_LOG_RESERVED);
    return run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT, PRM_SIZE(general_obj_in_cmd_hdr));
}

/* Roots of trees, for a user and for the kernel. */
static uint8_t make_sched_elem(void)
{
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_SCHED_ELEM);
    PRM_SET(sched_elem_obj, PRM_PTR(general_object_in, in, object), scheduling_hierarchy,
            PRM_SCHEDULING_HIERARCHY_NIC);
    return run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT,
                  PRM_SIZE(general_object_in) + PRM_SIZE(sched_elem_obj));
}

static uint8_t make_scheduling_element(void)
{
    PRM_SET(create_scheduling_element_in, in, scheduling_hierarchy, PRM_SCHEDULING_HIERARCHY_NIC);
    return run_in(PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT, PRM_SIZE(create_scheduling_element_in));
}

static uint8_t make_mapping(void)
{
    uint8_t status = nth ? 0 : make_qp();

    if (status) {
        return status;
    }
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING);
    PRM_SET(av_qp_mapping, PRM_PTR(general_object_in, in, object), qpn, qpn);
    return run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT,
                  PRM_SIZE(general_object_in) + PRM_SIZE(av_qp_mapping));
}

/* Makes a membership of each QP, in one of 128 groups of 64. */
static uint8_t make_member(void)
{
    uint8_t status = create_qp(PRM_QP_ST_UD);
    uint8_t *mgid = PRM_PTR(attach_to_mcg_in, in, multicast_gid);

    if (status) {
        return status;
    }
    PRM_SET(attach_to_mcg_in, in, qpn, qpn);
    mgid[0] = 0xff;
    mgid[1] = 0x12;
    mgid[15] = (uint8_t)(nth / 64);
    return run_in(PRM_CMD_OP_ATTACH_TO_MCG, PRM_SIZE(attach_to_mcg_in));
}

static void put_wq(struct prm_wq *wq)
{
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, uar_page, uarn);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, log_wq_sz, 6);
    PRM_SET(wq, wq, dbr_addr, ring_addr);
    prm_store64(PRM_PTR_AT(wq, wq, pas, 0), ring_addr);
}

static uint8_t make_sq(void)
{
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, in, ctx);

    PRM_SET(sqc, sqc, cqn, cqn);
    put_wq(PRM_PTR(sqc, sqc, wq));
    return run_in(PRM_CMD_OP_CREATE_SQ, PRM_SIZE(create_sq_in) + 8);
}

static uint8_t make_rq(void)
{
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);
    uint8_t status;

    PRM_SET(rqc, rqc, cqn, cqn);
    put_wq(PRM_PTR(rqc, rqc, wq));
    status = run_in(PRM_CMD_OP_CREATE_RQ, PRM_SIZE(create_rq_in) + 8);
    rqn = MADE(create_rq, rqn);
    return status;
}

static uint8_t make_tis(void)
{
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain, tdn);
    return run_in(PRM_CMD_OP_CREATE_TIS, PRM_SIZE(create_tis_in));
}

static uint8_t make_tir(void)
{
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);
    uint8_t status;

    PRM_SET(tirc, tirc, transport_domain, tdn);
    PRM_SET(tirc, tirc, inline_rqn, rqn);
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    memset(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), 0x5a, 40);
    status = run_in(PRM_CMD_OP_CREATE_TIR, PRM_SIZE(create_tir_in));
    tirn = MADE(create_tir, tirn);
    return status;
}

static uint8_t make_rqt(void)
{
    void *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);

    PRM_SET(rqtc, rqtc, rqt_max_size, 2048);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 1);
    PRM_SET(rq_num, rqtc + PRM_SIZE(rqtc), rq_num, rqn);
    return run_in(PRM_CMD_OP_CREATE_RQT, PRM_SIZE(create_rqt_in) + 4);
}

static uint8_t make_table(void)
{
    uint8_t status;

    PRM_SET(flow_table_context, PRM_PTR(create_flow_table_in, in, flow_table_context), log_size,
            16);
    status = run_in(PRM_CMD_OP_CREATE_FLOW_TABLE, PRM_SIZE(create_flow_table_in));
    table_id = MADE(create_flow_table, table_id);
    return status;
}

static uint8_t create_group(uint32_t from, uint32_t to)
{
    uint8_t status;

    PRM_SET(create_flow_group_in, in, table_id, table_id);
    PRM_SET(create_flow_group_in, in, start_flow_index, from);
    PRM_SET(create_flow_group_in, in, end_flow_index, to);
    status = run_in(PRM_CMD_OP_CREATE_FLOW_GROUP, PRM_SIZE(create_flow_group_in));
    group_id = MADE(create_flow_group, group_id);
    return status;
}

/* Makes groups of one entry, in as many tables as needed. */
static uint8_t make_group(void)
{
    uint8_t status = nth % 8192 ? 0 : make_table();

    return status ? status : create_group(nth % 8192, nth % 8192);
}

/* Makes entries that distinguish UDP and TCP ports, in full tables. */
static uint8_t make_entry(void)
{
    void *criteria = PRM_PTR(create_flow_group_in, in, match_criteria);
    uint8_t status = 0;

    if (nth % 65536 == 0) {
        status = make_table();
        PRM_SET(create_flow_group_in, in, match_criteria_enable, 1);
        PRM_SET(fte_match_set_lyr_2_4, criteria, tcp_dport, 0xffff);
        status = status ? status : create_group(0, 65535);
    }
    if (status) {
        return status;
    }
    return run_in(PRM_CMD_OP_SET_FLOW_TABLE_ENTRY,
                  steer_fill_entry(in, table_id, group_id, nth % 65536));
}

static uint8_t make_page(void)
{
    return (uint8_t)syn_status(fwd_give_pages(&d, 1));
}

static uint32_t dctn, rmpn;

static uint8_t make_dct(void)
{
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, in, dct_context_entry);
    uint8_t status;

    if (nth == 0) {
        status = make_rmp();
        if (status) {
            return status;
        }
        rmpn = MADE(create_rmp, rmpn);
    }
    PRM_SET(dctc, dctc, pd, pdn);
    PRM_SET(dctc, dctc, cqn, cqn);
    PRM_SET(dctc, dctc, srqn_xrqn, rmpn);
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    status = run_in(PRM_CMD_OP_CREATE_DCT, PRM_SIZE(create_dct_in));
    dctn = MADE(create_dct, dctn);
    return status;
}

/* Strangers connect to a target, each for the first time. */
static void connect_one(bool leaves)
{
    static const uint8_t nothing[DCC_ETH_BYTES];
    struct roce_packet pkt = {
        .opcode = BTH_DC | BTH_CONNECT,
        .pkey = 0xffff,
        .dest_qp = dctn,
        .dceth = {.version = d.fw->hca.limits.dc_version, .session = 1, .number = nth},
        .payload = nothing,
        .payload_len = sizeof(nothing),
    };

    dct_rx(&d.fw->hca, &pkt);
    if (leaves) {
        pkt.solicited = true;
        pkt.payload_len = 0;
        dct_rx(&d.fw->hca, &pkt);
    }
}

static uint8_t make_responder(void)
{
    uint8_t status = nth ? 0 : make_dct();

    if (!status) {
        d.fw->hca.limits.dc_responders = FW_RESPONDERS_MAX;
        connect_one(false);
        status = d.fw->hca.rdma->dc.responders.length == nth + 1 ? 0 : PRM_CMD_STATUS_NO_RES;
    }
    return status;
}

static uint8_t make_note(void)
{
    uint8_t status = nth ? 0 : make_dct();

    if (!status) {
        connect_one(true);
        status = g_hash_table_size(d.fw->hca.rdma->dc.notes) == nth + 1 ? 0 : PRM_CMD_STATUS_NO_RES;
    }
    return status;
}

static uint8_t make_sampler(void)
{
    uint8_t status = nth ? 0 : make_table();
    size_t len = steer_fill_sampler(in, table_id, table_id);

    return status ? status : run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT, len);
}

static uint8_t make_meter(void)
{
    uint8_t status = nth ? 0 : make_table();
    size_t len = steer_fill_meter(in, table_id);

    return status ? status : run_in(PRM_CMD_OP_CREATE_GENERAL_OBJECT, len);
}

static const struct {
    const char *name;
    enum obj_kind kind; /* OBJ_NONE: not an object, or another sort of an existing one */
    uint8_t (*make)(void);
    bool by_memory; /* refused because of the limit, not because the numbers are used up */
} kinds[] = {
    {"PD", OBJ_PD, make_pd, false},
    {"TD", OBJ_TD, make_td, false},
    {"XRCD", OBJ_XRCD, make_xrcd, false},
    {"UAR", OBJ_UAR, make_uar, false},
    {"Q counter", OBJ_Q_COUNTER, make_q_counter, false},
    {"flow counter", OBJ_FLOW_COUNTER, make_flow_counter, false},
    {"user context", OBJ_UCTX, make_uctx, false},
    {"umem", OBJ_UMEM, make_umem, true},
    {"packet reformat context", OBJ_PACKET_REFORMAT, make_reformat, false},
    {"modify header context", OBJ_MODIFY_HEADER, make_modify_header, false},
    {"memory window", OBJ_NONE, make_window, true},
    {"memory region", OBJ_MKEY, make_region, true},
    {"device memory", OBJ_MEMIC, make_memic, false},
    {"steering memory", OBJ_SW_ICM, make_sw_icm, false},
    {"flow sampler", OBJ_SAMPLER, make_sampler, false},
    {"flow meter", OBJ_FLOW_METER, make_meter, false},
    {"signature value", OBJ_PSV, make_psv, false},
    {"data encryption key", OBJ_ENCRYPTION_KEY, make_dek, false},
    {"crypto login", OBJ_CRYPTO_LOGIN, make_login, false},
    {"credential", OBJ_CREDENTIAL, make_credential, false},
    {"key encryption key", OBJ_IMPORT_KEK, make_kek, false},
    {"EQ", OBJ_EQ, make_eq, false},
    {"CQ", OBJ_CQ, make_cq, true},
    {"SRQ", OBJ_SRQ, make_srq, true},
    {"XRC SRQ", OBJ_XRC_SRQ, make_xrc_srq, true},
    {"RMP", OBJ_RMP, make_rmp, true},
    {"XRQ", OBJ_XRQ, make_xrq, true},
    {"XRQ with an initiator", OBJ_XRQ_DCI, make_xrq_dci, true},
    {"QP", OBJ_QP, make_qp, true},
    {"DCT", OBJ_DCT, make_dct, true},
    {"DC responder", OBJ_DC_RESPONDER, make_responder, false},
    {"DC initiator that has left", OBJ_DC_NOTE, make_note, false},
    {"mapping of an address", OBJ_AV_QP_MAPPING, make_mapping, false},
    {"range of QP numbers", OBJ_RESERVED_QPN, make_reserved_qpns, false},
    {"scheduling element", OBJ_SCHED_ELEM, make_sched_elem, false},
    {"scheduling element of the kernel", OBJ_SCHEDULING_ELEMENT, make_scheduling_element, false},
    {"multicast member", OBJ_MCG, make_member, false},
    {"SQ", OBJ_SQ, make_sq, true},
    {"RQ", OBJ_RQ, make_rq, true},
    {"TIS", OBJ_TIS, make_tis, false},
    {"TIR", OBJ_TIR, make_tir, true},
    {"RQT", OBJ_RQT, make_rqt, true},
    {"flow table", OBJ_FLOW_TABLE, make_table, false},
    {"flow group", OBJ_FLOW_GROUP, make_group, true},
    {"flow entry", OBJ_FLOW_ENTRY, make_entry, true},
    {"page", OBJ_NONE, make_page, true},
};

#if defined(__SANITIZE_ADDRESS__)
#define RESIDENT_IS_OURS false /* quarantine and shadow are resident too */
#else
#define RESIDENT_IS_OURS true
#endif

/* Returns the bytes of this process that are in memory, after the allocator has freed what it
 * can. */
static uint64_t resident(void)
{
    unsigned long long size, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%llu %llu", &size, &pages) != 2) {
        ck_abort_msg("no /proc/self/statm");
    }
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Makes the objects that the kinds need: one of each. */
static void make_ground(void)
{
    ring_addr = fake_host_alloc(&d.host, 64u << RING_LOG, 4096);
    give_pages(32 * 1024);
    if (make_pd() || make_td() || make_xrcd() || make_uar() || make_uctx() || make_eq() ||
        make_cq() || make_rq()) {
        ck_abort_msg("%s", d.host.last_line);
    }
    table_id = 0;
}

START_TEST(every_kind_of_object_is_among_these)
{
    for (unsigned kind = OBJ_NONE + 1; kind < OBJ_KINDS; kind++) {
        bool found = false;

        for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
            found |= kinds[i].kind == kind;
        }
        ck_assert_msg(found, "no test fills a device with a kind of object: %s",
                      obj_classes[kind].name);
    }
}
END_TEST

START_TEST(a_guest_takes_no_more_memory_than_its_device_may)
{
    struct ledger *memory = &d.fw->hca.memory;
    uint64_t before, full, after, paid;
    uint8_t status;

    memory->limit = LIMIT;
    make_ground();
    malloc_trim(0);
    before = resident();
    paid = memory->used;
    for (nth = 0; !(status = kinds[_i].make()); nth++) {
    }
    full = resident();
    g_print("# %s: %u, ledger %" PRIu64 " KiB, resident %" PRId64 " KiB\n", kinds[_i].name, nth,
            (memory->used - paid) >> 10, (int64_t)(full - before) / 1024);
    ck_assert_uint_gt(nth, 0);
    ck_assert_uint_eq(status, PRM_CMD_STATUS_NO_RES);
    ck_assert_uint_le(memory->used, LIMIT);
    if (kinds[_i].by_memory) { /* the remaining memory is too small for another one */
        ck_assert_uint_gt(memory->used, LIMIT - (256u << 10));
    }
    if (RESIDENT_IS_OURS) {
        paid = memory->used - paid;
        ck_assert_uint_le(full, before + paid + paid / 10 + SLACK);
    }

    reset();
    ck_assert_uint_eq(memory->used, 0);
    ck_assert_uint_eq(d.fw->hca.icm.used, 0);
    malloc_trim(0);
    after = resident();
    /* before 2.76, glib keeps the heads of hash tables, which groups have, for the next ones */
    if (RESIDENT_IS_OURS && (kinds[_i].make != make_group || !glib_check_version(2, 76, 0))) {
        ck_assert_uint_le(after, before + SLACK);
    }
}
END_TEST

/* Everything that a guest has made it can free again, by commands or by a reset. */
START_TEST(memory_of_a_destroyed_key_can_be_used_again)
{
    uint32_t keys[2], n = 0;

    d.fw->hca.memory.limit = LIMIT;
    make_ground();
    while (!make_region()) {
        n++;
    }
    ck_assert_uint_eq(make_region(), PRM_CMD_STATUS_NO_RES);
    keys[0] = obj_next(&d.fw->hca.mkeys, 0)->num;
    PRM_SET(destroy_mkey_in, in, mkey_index, keys[0]);
    ck_assert_uint_eq(run_in(PRM_CMD_OP_DESTROY_MKEY, PRM_SIZE(destroy_mkey_in)), 0);
    ck_assert_uint_eq(make_region(), 0);
    ck_assert_uint_eq(make_region(), PRM_CMD_STATUS_NO_RES);
    ck_assert_uint_eq(d.fw->hca.mkeys.count, n);
}
END_TEST

/* A command that does not fit is answered without being read; a command that frees memory is
 * short. */
START_TEST(a_long_command_is_paid_for)
{
    size_t len = 1u << 20;
    struct prm_cmd_in *request = g_malloc0(len);
    struct ledger *memory = &d.fw->hca.memory;
    uint64_t used = memory->used, limit = memory->limit;

    PRM_SET(cmd_in, request, opcode, PRM_CMD_OP_NOP);
    memory->limit = used + len - 1;
    ck_assert_uint_eq(fwd_cmd(&d, request, len, out, OUT_ROOM), SYN_NO_MEMORY);
    ck_assert_uint_eq(fwd_cmd(&d, request, 32 << 10, out, OUT_ROOM), SYN_OK);
    memory->limit = limit;
    ck_assert_uint_eq(fwd_cmd(&d, request, len, out, OUT_ROOM), SYN_OK);
    ck_assert_uint_eq(memory->used, used);
    g_free(request);
}
END_TEST

/* A device whose memory cannot even hold a driver's first objects is refused. */
START_TEST(too_little_memory_is_no_configuration)
{
    struct fw_config config = {.mac = {2, 0, 0, 0, 0, 1}, .memory = FW_MEMORY_MIN - 1};
    GError *err = NULL;
    struct fw *fw = fw_new(&fake_host_ops, &d.host, &config, &err);

    ck_assert_ptr_null(fw);
    ck_assert_ptr_nonnull(err);
    g_clear_error(&err);
    config.memory = FW_MEMORY_MIN;
    fw = fw_new(&fake_host_ops, &d.host, &config, &err);
    ck_assert_ptr_nonnull(fw);
    ck_assert_uint_eq(fw->hca.memory.limit, FW_MEMORY_MIN);
    fw_free(fw);
}
END_TEST

/* -- the log ----------------------------------------------------------------------------------- */

#define SECOND 1000000000ull

/* An error of the guest: nothing is there. */
static void err(void)
{
    fw_mmio_write(d.fw, 1, 0, 1);
}

/* What a driver reports about itself, at level INFO. */
static void greet(void)
{
    PRM_SET(set_driver_version_in, in, opcode, PRM_CMD_OP_SET_DRIVER_VERSION);
    run_in(PRM_CMD_OP_SET_DRIVER_VERSION, PRM_SIZE(set_driver_version_in));
}

static void (*const noises[])(void) = {err, greet};

/* A burst is logged in full. An endless repetition is logged once a second, with the number of
 * omitted lines. */
START_TEST(a_guest_does_not_flood_the_log)
{
    void (*noise)(void) = noises[_i];
    unsigned lines;

    d.host.now += 3600 * SECOND;
    lines = d.host.lines;
    for (unsigned i = 0; i < 1000; i++) {
        noise();
    }
    ck_assert_uint_eq(d.host.lines - lines, 100);

    d.host.now += SECOND;
    lines = d.host.lines;
    noise();
    ck_assert_uint_eq(d.host.lines - lines, 2); /* the number, and the line */
    for (unsigned i = 0; i < 100; i++) {
        noise();
    }
    ck_assert_uint_eq(d.host.lines - lines, 2);

    for (unsigned i = 0; i < 1000; i++) {
        d.host.now += SECOND / 100;
        noise();
    }
    ck_assert_uint_le(d.host.lines - lines, 2 + 2 * 10);

    /* after a long silence a burst is allowed again */
    d.host.now += 3600 * SECOND;
    lines = d.host.lines;
    for (unsigned i = 0; i < 100; i++) {
        noise();
    }
    ck_assert_uint_ge(d.host.lines - lines, 100);
    ck_assert_uint_le(d.host.lines - lines, 100 + 1);
}
END_TEST

START_TEST(the_log_reports_left_out_lines_once)
{
    d.host.now += 3600 * SECOND;
    for (unsigned i = 0; i < 150; i++) {
        err();
    }
    greet(); /* a flood at one level hides nothing at another level */
    ck_assert_ptr_nonnull(strstr(d.host.last_line, "driver:"));
    hca_log_end(&d.fw->hca);
    ck_assert_str_eq(d.host.last_line, "50 lines of this kind were left out");
    greet();
    hca_log_end(&d.fw->hca);
    ck_assert_ptr_nonnull(strstr(d.host.last_line, "driver:"));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw bounds");
    TCase *tc = tcase_create("bounds");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, a_reset_takes_time_in_proportion_to_the_objects);
    tcase_add_test(tc, every_kind_of_object_is_among_these);
    tcase_add_loop_test(tc, a_guest_takes_no_more_memory_than_its_device_may, 0,
                        (int)G_N_ELEMENTS(kinds));
    tcase_add_test(tc, memory_of_a_destroyed_key_can_be_used_again);
    tcase_add_test(tc, a_long_command_is_paid_for);
    tcase_add_loop_test(tc, a_guest_does_not_flood_the_log, 0, (int)G_N_ELEMENTS(noises));
    tcase_add_test(tc, the_log_reports_left_out_lines_once);
    tcase_add_test(tc, too_little_memory_is_no_configuration);
    suite_add_tcase(s, tc);
    return s;
}
