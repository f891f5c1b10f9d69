/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the life of a QP in commands, as the driver gives them: layouts, statuses, page lists. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/rdma/requester_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define PAGE     4096
#define LOG_RQ   6 /* 64 WQEs of 64 bytes: one page */
#define LOG_SQ   7 /* 128 basic blocks: two pages */
#define NPAS     3
#define IN_LEN   (PRM_SIZE(create_qp_in) + 8 * NPAS)
#define CMD_ROOM 512

static struct fwd d;
static uint32_t pdn, uarn, eqn, cqn, qpn;
static uint64_t dbr;
static void *const in = (uint8_t[CMD_ROOM]){0}, *const out = (uint8_t[CMD_ROOM]){0};

static void *begin(uint16_t opcode)
{
    memset(in, 0, CMD_ROOM);
    PRM_SET(create_qp_in, in, opcode, opcode);
    return in;
}

static enum syn run(size_t in_len, size_t out_len)
{
    return fwd_cmd(&d, in, in_len, out, out_len);
}

static void must(size_t in_len, size_t out_len)
{
    enum syn status = run(in_len, out_len);

    ck_assert_msg(status == 0, "%s", d.host.last_line);
}

static void set_gid(void)
{
    static const uint8_t gid[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
    struct prm_roce_addr_layout *addr;

    begin(PRM_CMD_OP_SET_ROCE_ADDRESS);
    addr = PRM_PTR(set_roce_address_in, in, roce_address);
    PRM_SET(set_roce_address_in, in, roce_address_index, 3);
    memcpy(PRM_PTR(roce_addr_layout, addr, source_l3_address), gid, 16);
    PRM_SET(roce_addr_layout, addr, roce_version, 2);
    PRM_SET(roce_addr_layout, addr, source_mac_31_0, 1);
    must(PRM_SIZE(set_roce_address_in), PRM_SIZE(set_roce_address_out));
}

static void make_eq(void)
{
    uint64_t ring = fake_host_alloc(&d.host, PAGE, PAGE);
    struct prm_eqc *eqc;

    begin(PRM_CMD_OP_CREATE_EQ);
    eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, uarn);
    PRM_SET_AT(create_eq_in, in, pas, 0, ring);
    must(PRM_SIZE(create_eq_in) + 8, PRM_SIZE(create_eq_out));
    eqn = PRM_GET(create_eq_out, out, eq_number);
}

static void make_cq(void)
{
    uint64_t ring = fake_host_alloc(&d.host, PAGE, PAGE);
    struct prm_cqc *cqc;

    begin(PRM_CMD_OP_CREATE_CQ);
    cqc = PRM_PTR(create_cq_in, in, cq_context);
    PRM_SET(cqc, cqc, log_cq_size, 6);
    PRM_SET(cqc, cqc, uar_page, uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_addr, fake_host_alloc(&d.host, 8, 8));
    PRM_SET_AT(create_cq_in, in, pas, 0, ring);
    must(PRM_SIZE(create_cq_in) + 8, PRM_SIZE(create_cq_out));
    cqn = PRM_GET(create_cq_out, out, cqn);
}

/* CREATE_QP in in: RC, its ring at offset page_offset * 64 bytes of the first page. */
static struct prm_qpc *create_in(uint32_t page_offset)
{
    struct prm_qpc *qpc;

    begin(PRM_CMD_OP_CREATE_QP);
    qpc = PRM_PTR(create_qp_in, in, qpc);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, pdn);
    PRM_SET(qpc, qpc, log_rq_size, LOG_RQ);
    PRM_SET(qpc, qpc, log_rq_stride, 2);
    PRM_SET(qpc, qpc, log_sq_size, LOG_SQ);
    PRM_SET(qpc, qpc, uar_page, uarn);
    PRM_SET(qpc, qpc, page_offset, page_offset);
    PRM_SET(qpc, qpc, cqn_snd, cqn);
    PRM_SET(qpc, qpc, cqn_rcv, cqn);
    PRM_SET(qpc, qpc, dbr_addr, dbr);
    for (int i = 0; i < NPAS; i++) {
        PRM_SET_AT(create_qp_in, in, pas, i, fake_host_alloc(&d.host, PAGE, PAGE));
    }
    return qpc;
}

static void setup_as(const char *profile)
{
    fwd_init_as(&d, profile);
    fwd_bring_up(&d);
    begin(PRM_CMD_OP_ALLOC_PD);
    must(PRM_SIZE(alloc_pd_in), PRM_SIZE(alloc_pd_out));
    pdn = PRM_GET(alloc_pd_out, out, pd);
    begin(PRM_CMD_OP_ALLOC_UAR);
    must(PRM_SIZE(alloc_uar_in), PRM_SIZE(alloc_uar_out));
    uarn = PRM_GET(alloc_uar_out, out, uar);
    make_eq();
    make_cq();
    set_gid();
    dbr = fake_host_alloc(&d.host, 8, 8);
    create_in(0);
    must(IN_LEN, PRM_SIZE(create_qp_out));
    qpn = PRM_GET(create_qp_out, out, qpn);
}

static void setup(void)
{
    setup_as(NULL);
}

static void teardown(void)
{
    fwd_clear(&d);
}

/* Fills in a transition to the QP's peer with GID index 3. */
static void modify_in(uint16_t opcode)
{
    static const uint8_t rgid[16] = {[10] = 0xff, 0xff, 192, 0, 2, 2};
    struct prm_qpc *qpc;
    struct prm_ads *path;

    begin(opcode);
    PRM_SET(rst2init_qp_in, in, qpn, qpn);
    qpc = PRM_PTR(rst2init_qp_in, in, qpc);
    path = PRM_PTR(qpc, qpc, primary_address_path);
    PRM_SET(qpc, qpc, mtu, PRM_QP_MTU_1024);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, remote_qpn, 0x99);
    PRM_SET(qpc, qpc, next_rcv_psn, 0x1234);
    PRM_SET(ads, path, vhca_port_num, 1);
    PRM_SET(ads, path, src_addr_index, 3);
    memcpy(PRM_PTR(ads, path, rgid_rip), rgid, 16);
}

static enum syn modify(uint16_t opcode)
{
    if (opcode == PRM_CMD_OP_2ERR_QP || opcode == PRM_CMD_OP_2RST_QP) {
        begin(opcode);
        PRM_SET(qp_2rst_in, in, qpn, qpn);
        return run(PRM_SIZE(qp_2rst_in), PRM_SIZE(qp_2rst_out));
    }
    modify_in(opcode);
    return run(PRM_SIZE(rst2init_qp_in), PRM_SIZE(rst2init_qp_out));
}

static enum syn query(void)
{
    begin(PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qpn);
    return run(PRM_SIZE(query_qp_in), PRM_SIZE(query_qp_out));
}

static enum syn destroy(void)
{
    begin(PRM_CMD_OP_DESTROY_QP);
    PRM_SET(destroy_qp_in, in, qpn, qpn);
    return run(PRM_SIZE(destroy_qp_in), PRM_SIZE(destroy_qp_out));
}

static enum syn create_in_mode(unsigned mode, unsigned rq_type, uint64_t dbr_addr, bool in_umem)
{
    struct prm_qpc *qpc = create_in(0);

    PRM_SET(qpc, qpc, send_dbr_mode, mode);
    PRM_SET(qpc, qpc, rq_type, rq_type);
    PRM_SET(qpc, qpc, dbr_addr, dbr_addr);
    PRM_SET(qpc, qpc, dbr_umem_valid, in_umem);
    return run(IN_LEN, PRM_SIZE(create_qp_out));
}

/* gpunetio's doca_verbs_qp::create() asks send_dbr_mode_no_dbr_ext first. */
START_TEST(a_send_queue_without_record_needs_the_capability)
{
    ck_assert_int_eq(create_in_mode(0, PRM_RQ_TYPE_ZERO_SIZE, dbr, false), SYN_OK);
    ck_assert_int_eq(create_in_mode(1, PRM_RQ_TYPE_ZERO_SIZE, dbr, false), SYN_QP_DBR_MODE);
    fwd_clear(&d);
    setup_as("cx8");
    ck_assert_int_eq(create_in_mode(2, PRM_RQ_TYPE_ZERO_SIZE, dbr, false), SYN_QP_DBR_MODE);
    ck_assert_int_eq(create_in_mode(3, PRM_RQ_TYPE_ZERO_SIZE, dbr, false), SYN_QP_DBR_MODE);
    ck_assert_int_eq(create_in_mode(1, PRM_RQ_TYPE_ZERO_SIZE, dbr, false), SYN_OK);
    qpn = PRM_GET(create_qp_out, out, qpn);
    ck_assert(qp_find(&d.fw->hca, qpn)->sq.no_record);
    ck_assert_int_eq(query(), SYN_OK);
    ck_assert_uint_eq(PRM_GET(qpc, PRM_PTR(query_qp_out, out, qpc), send_dbr_mode), 1);
}
END_TEST

/* The record of a receive queue stays. Without one, only a umem that the command names is checked.
 */
START_TEST(what_has_no_record_needs_no_place_for_it)
{
    fwd_clear(&d);
    setup_as("cx8");
    ck_assert_int_eq(create_in_mode(0, PRM_RQ_TYPE_ZERO_SIZE, 2, false), SYN_BAD_DBR);
    ck_assert_int_eq(create_in_mode(1, PRM_RQ_TYPE_REGULAR, 2, false), SYN_BAD_DBR);
    ck_assert_int_eq(create_in_mode(1, PRM_RQ_TYPE_ZERO_SIZE, 2, false), SYN_OK);
    ck_assert_int_eq(create_in_mode(1, PRM_RQ_TYPE_ZERO_SIZE, 0, true), SYN_NO_UMEM);
}
END_TEST

START_TEST(a_qp_goes_through_its_states)
{
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);

    ck_assert_uint_eq(modify(PRM_CMD_OP_RST2INIT_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_INIT2RTR_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RTR2RTS_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RTS2RTS_QP), 0);
    ck_assert_uint_eq(query(), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, state), PRM_QP_STATE_RTS);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, next_rcv_psn), 0x1234);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, remote_qpn), 0x99);
    ck_assert_uint_eq(modify(PRM_CMD_OP_2ERR_QP), 0);
    ck_assert_uint_eq(query(), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, state), PRM_QP_STATE_ERR);
    ck_assert_uint_eq(modify(PRM_CMD_OP_2RST_QP), 0);
    ck_assert_uint_eq(destroy(), 0);
    ck_assert_uint_eq(query(), SYN_QP_NUM);
    ck_assert_uint_eq(destroy(), SYN_QP_NUM);
}
END_TEST

/* gpunetio's query_qp() follows CREATE_QP, and refuses an MTU that is none of enum qp_mtu. */
START_TEST(a_qp_without_a_path_has_the_smallest_mtu)
{
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);

    ck_assert_uint_eq(query(), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, state), PRM_QP_STATE_RST);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, mtu), PRM_QP_MTU_256);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RST2INIT_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_INIT2RTR_QP), 0);
    ck_assert_uint_eq(query(), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, mtu), PRM_QP_MTU_1024);
}
END_TEST

/* A DCI's stream to reset is in the extended context (mlx5dv_dci_stream_id_reset()). This DCI has
 * no streams. */
/* ECE: the device has none of the options, so it enables none, whatever is asked for. */
START_TEST(no_connection_option_is_enabled)
{
    static const uint32_t asked[] = {0, 0x10000000, 0x20000001, 0x30000002, UINT32_MAX};
    static const uint16_t steps[] = {PRM_CMD_OP_RST2INIT_QP, PRM_CMD_OP_INIT2INIT_QP,
                                     PRM_CMD_OP_INIT2RTR_QP, PRM_CMD_OP_RTR2RTS_QP,
                                     PRM_CMD_OP_RTS2RTS_QP};

    create_in(0);
    PRM_SET(create_qp_in, in, ece, asked[_i]);
    memset(out, 0xff, CMD_ROOM);
    must(IN_LEN, PRM_SIZE(create_qp_out));
    ck_assert_uint_eq(PRM_GET(create_qp_out, out, ece), 0);
    qpn = PRM_GET(create_qp_out, out, qpn);
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        modify_in(steps[i]);
        PRM_SET(rst2init_qp_in, in, ece, asked[_i]);
        memset(out, 0xff, CMD_ROOM);
        must(PRM_SIZE(rst2init_qp_in), PRM_SIZE(rst2init_qp_out));
        ck_assert_uint_eq(PRM_GET(rst2init_qp_out, out, ece), 0);
    }
    ck_assert_uint_eq(query(), 0);
    ck_assert_uint_eq(PRM_GET(query_qp_out, out, ece), 0);
}
END_TEST

/* So does a DCT. UCX's layout has the options at byte 0x40 of the DCT's context, the driver's at
 * byte 0x3c; UCX (since 1.14) sets them for a device that has ece_support. */
START_TEST(no_connection_option_of_a_target_is_enabled)
{
    struct prm_srqc *srqc = PRM_PTR(create_srq_in, in, srq_context_entry);
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, in, dct_context_entry);
    uint32_t srqn;

    begin(PRM_CMD_OP_CREATE_SRQ);
    PRM_SET(srqc, srqc, log_srq_size, 4);
    PRM_SET(srqc, srqc, log_rq_stride, 2);
    PRM_SET(srqc, srqc, pd, pdn);
    PRM_SET(srqc, srqc, dbr_addr, fake_host_alloc(&d.host, 8, 8));
    PRM_SET_AT(create_srq_in, in, pas, 0, fake_host_alloc(&d.host, PAGE, PAGE));
    must(PRM_SIZE(create_srq_in) + 8, PRM_SIZE(create_srq_out));
    srqn = PRM_GET(create_srq_out, out, srqn);

    begin(PRM_CMD_OP_CREATE_DCT);
    PRM_SET(dctc, dctc, pd, pdn);
    PRM_SET(dctc, dctc, cqn, cqn);
    PRM_SET(dctc, dctc, srqn_xrqn, srqn);
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    PRM_SET(dctc, dctc, ece, 0x30000002);
    prm_store32((uint8_t *)in + 0x50, 0xfffffffe);
    memset(out, 0xff, CMD_ROOM);
    must(PRM_SIZE(create_dct_in), PRM_SIZE(create_dct_out));
    ck_assert_uint_eq(PRM_GET(create_dct_out, out, ece), 0);
}
END_TEST

START_TEST(a_stream_is_named_in_the_extended_context)
{
    struct prm_qpc *qpc = create_in(0);

    PRM_SET(qpc, qpc, st, PRM_QP_ST_DCI);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    PRM_SET(qpc, qpc, log_rq_size, 0);
    PRM_SET(qpc, qpc, log_rq_stride, 0);
    must(IN_LEN, PRM_SIZE(create_qp_out));
    qpn = PRM_GET(create_qp_out, out, qpn);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RST2INIT_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_INIT2RTR_QP), 0);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RTR2RTS_QP), 0);
    modify_in(PRM_CMD_OP_RTS2RTS_QP);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask_95_32, 1u << (PRM_QP_OPTPAR_DCI_STREAM_CHANNEL - 32));
    ck_assert_uint_eq(run(PRM_SIZE(rts2rts_qp_ext_in), PRM_SIZE(rts2rts_qp_out)), SYN_QP_OPT_MASK);
    PRM_SET(rts2rts_qp_in, in, qpc_ext, 1);
    ck_assert_uint_eq(run(PRM_SIZE(rts2rts_qp_in), PRM_SIZE(rts2rts_qp_out)), SYN_QP_OPT_MASK);
    PRM_SET(qp_context_extension, PRM_PTR(rts2rts_qp_ext_in, in, qpc_data_ext),
            dci_stream_channel_id, 3);
    ck_assert_uint_eq(run(PRM_SIZE(rts2rts_qp_ext_in), PRM_SIZE(rts2rts_qp_out)), SYN_QP_STREAM);
}
END_TEST

/* libmlx5 enables a QP for memory to memory operations in the state INIT (qp_enable_mmo()). */
static uint32_t enable_mmo(uint32_t mmo)
{
    modify_in(PRM_CMD_OP_INIT2INIT_QP);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask, 0);
    PRM_SET(rts2rts_qp_in, in, qpc_ext, 1);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask_95_32, 1u << (PRM_QP_OPTPAR_MMO - 32));
    PRM_SET(qp_context_extension, PRM_PTR(rts2rts_qp_ext_in, in, qpc_data_ext), mmo, mmo);
    return run(PRM_SIZE(rts2rts_qp_ext_in), PRM_SIZE(rts2rts_qp_out));
}

static uint32_t queried_mmo(void)
{
    begin(PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qpn);
    PRM_SET(query_qp_in, in, qpc_ext, 1);
    must(PRM_SIZE(query_qp_in), PRM_SIZE(query_qp_out));
    return PRM_GET(qp_context_extension, PRM_PTR(query_qp_out, out, qp_pas_or_qpc_ext_and_pas),
                   mmo);
}

START_TEST(memory_to_memory_operations_are_enabled_in_init)
{
    struct qp *qp = qp_find(&d.fw->hca, qpn);

    d.fw->hca.limits.mmo_qp = true;
    ck_assert_uint_eq(enable_mmo(1), SYN_QP_STATE);
    ck_assert_uint_eq(modify(PRM_CMD_OP_RST2INIT_QP), 0);
    ck_assert(!qp->mmo);
    ck_assert_uint_eq(enable_mmo(1), 0);
    ck_assert(qp->mmo);
    ck_assert_uint_eq(queried_mmo(), 1);
    ck_assert_uint_eq(enable_mmo(0), 0);
    ck_assert(!qp->mmo);
    ck_assert_uint_eq(queried_mmo(), 0);
    /* the mask names the field, but the context is not there */
    modify_in(PRM_CMD_OP_INIT2INIT_QP);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask, 0);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask_95_32, 1u << (PRM_QP_OPTPAR_MMO - 32));
    ck_assert_uint_eq(run(PRM_SIZE(rts2rts_qp_in), PRM_SIZE(rts2rts_qp_out)), SYN_QP_OPT_MASK);
    PRM_SET(rts2rts_qp_in, in, opt_param_mask_95_32, 1ull << 32);
    ck_assert_uint_eq(run(PRM_SIZE(rts2rts_qp_in), PRM_SIZE(rts2rts_qp_out)), SYN_QP_OPT_MASK);
    /* a generation without them does not know the field */
    d.fw->hca.limits.mmo_qp = false;
    ck_assert_uint_eq(enable_mmo(1), SYN_QP_OPT_MASK);
}
END_TEST

/* DPDK's mlx5_compress asks for it when it creates the QP. */
START_TEST(memory_to_memory_operations_are_enabled_at_creation)
{
    const size_t ext = PRM_SIZE(qp_context_extension);
    uint8_t *pas = PRM_PTR(create_qp_in, in, pas);

    d.fw->hca.limits.mmo_qp = _i != 1;
    create_in(0);
    PRM_SET(create_qp_in, in, qpc_ext, 1);
    memmove(pas + ext, pas, IN_LEN - PRM_SIZE(create_qp_in));
    memset(pas, 0, ext);
    PRM_SET(qp_context_extension, (struct prm_qp_context_extension *)pas, mmo, 1);
    if (_i == 2) {
        PRM_SET(qpc, PRM_PTR(create_qp_in, in, qpc), st, PRM_QP_ST_UC);
    }
    ck_assert_uint_eq(run(IN_LEN + ext, PRM_SIZE(create_qp_out)), _i ? SYN_QP_FEATURE : 0);
    if (!_i) {
        ck_assert(qp_find(&d.fw->hca, PRM_GET(create_qp_out, out, qpn))->mmo);
    }
}
END_TEST

/* The driver prints this status as "bad QP state" (MLX5_CMD_STAT_BAD_QP_STATE_ERR). */
START_TEST(a_transition_out_of_order_is_a_bad_qp_state)
{
    ck_assert_uint_eq(modify(PRM_CMD_OP_INIT2RTR_QP), SYN_QP_STATE);
    ck_assert_uint_eq(modify(PRM_CMD_OP_SQD_RTS_QP), SYN_QP_STATE);
}
END_TEST

/* The ring takes three pages; if it began behind the first page's start it would need a fourth. */
START_TEST(the_page_list_must_cover_the_ring)
{
    create_in(1);
    ck_assert_uint_ne(run(IN_LEN, PRM_SIZE(create_qp_out)), 0);
    create_in(0);
    ck_assert_uint_ne(run(IN_LEN - 8, PRM_SIZE(create_qp_out)), 0);
    PRM_SET(qpc, create_in(63), log_sq_size, LOG_SQ - 1);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), 0);
}
END_TEST

/* With the extended context the list begins behind that. */
START_TEST(an_extended_context_comes_before_the_page_list)
{
    const size_t ext = PRM_SIZE(qp_context_extension);
    uint8_t *pas = PRM_PTR(create_qp_in, in, pas);

    create_in(0);
    PRM_SET(create_qp_in, in, qpc_ext, 1);
    ck_assert_uint_ne(run(IN_LEN, PRM_SIZE(create_qp_out)), 0);
    memmove(pas + ext, pas, IN_LEN - PRM_SIZE(create_qp_in));
    memset(pas, 0, ext);
    ck_assert_uint_eq(run(IN_LEN + ext, PRM_SIZE(create_qp_out)), 0);
}
END_TEST

/* qpc_extension.error_syndrome says why a QP failed; a QP that a command stopped did not fail. */
START_TEST(an_extended_context_is_answered_with_zeros)
{
    const uint8_t *ext = PRM_PTR(query_qp_out, out, qp_pas_or_qpc_ext_and_pas);

    ck_assert_uint_eq(modify(PRM_CMD_OP_2ERR_QP), 0);
    begin(PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qpn);
    PRM_SET(query_qp_in, in, qpc_ext, 1);
    memset(out, 0xff, PRM_SIZE(query_qp_out));
    ck_assert_uint_eq(run(PRM_SIZE(query_qp_in), PRM_SIZE(query_qp_out)), 0);
    for (size_t i = 0; i < PRM_SIZE(qp_context_extension); i++) {
        ck_assert_uint_eq(ext[i], 0);
    }
}
END_TEST

/* An output without room for it is refused completely: a program with DevX says how long its output
 * is. */
START_TEST(an_extended_context_needs_its_room)
{
    const size_t least = PRM_OFFSET(query_qp_out, qp_pas_or_qpc_ext_and_pas);
    const size_t room = least + PRM_SIZE(qp_context_extension);

    begin(PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qpn);
    ck_assert_uint_eq(run(PRM_SIZE(query_qp_in), least), 0);
    PRM_SET(query_qp_in, in, qpc_ext, 1);
    ck_assert_uint_eq(run(PRM_SIZE(query_qp_in), least), SYN_OUT_LEN);
    ck_assert_uint_eq(run(PRM_SIZE(query_qp_in), room - 4), SYN_OUT_LEN);
    ck_assert_uint_eq(run(PRM_SIZE(query_qp_in), room), 0);
}
END_TEST

START_TEST(a_bad_qpc_leaves_nothing_behind)
{
    PRM_SET(qpc, create_in(0), st, PRM_QP_ST_DCT);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_SERVICE);
    PRM_SET(qpc, create_in(0), cqn_rcv, cqn + 1);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_CQ);
    create_in(0);
    PRM_SET(create_qp_in, in, input_qpn, 0x1000); /* which nobody has reserved */
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_INPUT_QPN);
    ck_assert_uint_eq(destroy(), 0);
    begin(PRM_CMD_OP_DESTROY_CQ);
    PRM_SET(destroy_cq_in, in, cqn, cqn);
    must(PRM_SIZE(destroy_cq_in), PRM_SIZE(destroy_cq_out));
}
END_TEST

START_TEST(objects_that_a_qpc_names_must_exist)
{
    struct prm_qpc *qpc;

    PRM_SET(qpc, create_in(0), pd, pdn + 1);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_PD);
    PRM_SET(qpc, create_in(0), cqn_snd, cqn + 1);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_CQ);
    PRM_SET(qpc, create_in(0), uar_page, uarn + 1);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_NO_UAR);
    PRM_SET(qpc, create_in(0), dbr_addr, dbr + 2);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_BAD_DBR);
    qpc = create_in(0);
    PRM_SET(qpc, qpc, log_rq_size, 0);
    PRM_SET(qpc, qpc, log_rq_stride, 7); /* WQEs of 2048 bytes */
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_SIZE);
    PRM_SET(qpc, create_in(0), rq_type, PRM_RQ_TYPE_SRQ);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_QP_SRQ);
}
END_TEST

/* A transition's fields, each with a value that is not allowed. */
START_TEST(a_path_that_cannot_be_is_refused)
{
    static const struct {
        const char *field;
        uint64_t value;
        enum syn syn;
    } table[] = {
        {"qpc.primary_address_path.vhca_port_num", 2, SYN_QP_PORT},
        {"qpc.primary_address_path.pkey_index", 1, SYN_QP_PKEY},
        {"qpc.primary_address_path.src_addr_index", 9, SYN_QP_GID},
        {"qpc.mtu", 7, SYN_QP_MTU},
        {"qpc.log_msg_max", 31, SYN_QP_MTU},
    };
    uint16_t opcodes[] = {PRM_CMD_OP_RST2INIT_QP, PRM_CMD_OP_INIT2RTR_QP};
    enum syn syn = SYN_OK;

    for (size_t i = 0; i < G_N_ELEMENTS(opcodes) && syn == SYN_OK; i++) {
        modify_in(opcodes[i]);
        fwd_set(in, prm_struct_find("rst2init_qp_in"), table[_i].field, table[_i].value);
        syn = run(PRM_SIZE(rst2init_qp_in), PRM_SIZE(rst2init_qp_out));
    }
    ck_assert_uint_eq(syn, table[_i].syn);
}
END_TEST

/* A source of IPv4 cannot reach a destination of IPv6. */
START_TEST(a_path_from_one_network_to_another_is_refused)
{
    struct prm_ads *path = PRM_PTR(qpc, PRM_PTR(rst2init_qp_in, in, qpc), primary_address_path);

    ck_assert_uint_eq(modify(PRM_CMD_OP_RST2INIT_QP), 0);
    modify_in(PRM_CMD_OP_INIT2RTR_QP);
    memset(PRM_PTR(ads, path, rgid_rip), 0x20, 16);
    ck_assert_uint_eq(run(PRM_SIZE(rst2init_qp_in), PRM_SIZE(rst2init_qp_out)), SYN_QP_PATH);
}
END_TEST

START_TEST(a_qp_without_queues_needs_no_ring)
{
    struct prm_qpc *qpc = create_in(0);

    PRM_SET(qpc, qpc, no_sq, 1);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    ck_assert_uint_eq(run(PRM_SIZE(create_qp_in), PRM_SIZE(create_qp_out)), 0);
}
END_TEST

/* What the function keeps for a QP counts as memory that the host gave for it. A guest that gives
 * no more memory gets no more QPs, and destroying a QP frees room for another. */
START_TEST(queues_need_pages)
{
    uint64_t given = d.fw->pages.list->len * (uint64_t)PAGE;
    uint64_t kept, before = d.fw->hca.icm.used;
    enum syn status;
    unsigned made = 0;

    create_in(0);
    do {
        status = run(IN_LEN, PRM_SIZE(create_qp_out));
        if (status == 0) {
            qpn = PRM_GET(create_qp_out, out, qpn);
            kept = (d.fw->hca.icm.used - before) / ++made;
            ck_assert_uint_ge(kept, obj_classes[OBJ_QP].icm);
            ck_assert_uint_lt((made - 1) * kept, given);
        }
    } while (status == 0);
    ck_assert_uint_eq(status, SYN_NO_MEMORY);
    ck_assert_uint_gt(made, 1);
    ck_assert_uint_eq(destroy(), 0);
    create_in(0);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), 0);
}
END_TEST

START_TEST(multicast_groups_are_for_datagram_qps)
{
    static const uint8_t mgid[16] = {0xff, 0x12, [15] = 1};
    size_t len = PRM_SIZE(attach_to_mcg_in);

    begin(PRM_CMD_OP_ATTACH_TO_MCG);
    PRM_SET(attach_to_mcg_in, in, qpn, qpn);
    memcpy(PRM_PTR(attach_to_mcg_in, in, multicast_gid), mgid, 16);
    ck_assert_uint_eq(run(len, PRM_SIZE(attach_to_mcg_out)), SYN_QP_MCG);

    PRM_SET(qpc, create_in(0), st, PRM_QP_ST_UD);
    must(IN_LEN, PRM_SIZE(create_qp_out));
    qpn = PRM_GET(create_qp_out, out, qpn);
    begin(PRM_CMD_OP_ATTACH_TO_MCG);
    PRM_SET(attach_to_mcg_in, in, qpn, qpn);
    memcpy(PRM_PTR(attach_to_mcg_in, in, multicast_gid), mgid, 16);
    must(len, PRM_SIZE(attach_to_mcg_out));
    must(len, PRM_SIZE(attach_to_mcg_out)); /* it is a member already */
    PRM_SET(attach_to_mcg_in, in, opcode, PRM_CMD_OP_DETACH_FROM_MCG);
    must(len, PRM_SIZE(detach_from_mcg_out));
    ck_assert_uint_eq(run(len, PRM_SIZE(detach_from_mcg_out)), SYN_QP_MCG);
}
END_TEST

/* -- reserved QP numbers ----------------------------------------------------------------------- */

static enum syn general_object(uint16_t opcode, uint16_t uid, uint32_t id, unsigned log_range)
{
    struct prm_general_obj_in_cmd_hdr *hdr = begin(opcode);

    PRM_SET(general_obj_in_cmd_hdr, hdr, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, hdr, obj_type, PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    PRM_SET(general_obj_in_cmd_hdr, hdr, obj_id, id);
    PRM_SET(general_obj_create_param, PRM_PTR(general_obj_in_cmd_hdr, hdr, op_param_create),
            log_obj_range, log_range);
    return run(PRM_SIZE(general_obj_in_cmd_hdr), PRM_SIZE(general_obj_out_cmd_hdr));
}

static uint32_t reserve(uint16_t uid)
{
    ck_assert_uint_eq(general_object(PRM_CMD_OP_CREATE_GENERAL_OBJECT, uid, 0, OBJ_LOG_RESERVED),
                      SYN_OK);
    return PRM_GET(general_obj_out_cmd_hdr, out, obj_id);
}

static enum syn create_as(uint32_t wished)
{
    create_in(0);
    PRM_SET(create_qp_in, in, input_qpn, wished);
    return run(IN_LEN, PRM_SIZE(create_qp_out));
}

/* mlx5dv_reserved_qpn_alloc() asks for as many numbers as hca_cap_2 says; no QP has one of them now
 * or gets one. */
START_TEST(reserved_qp_numbers_are_nobodys)
{
    uint32_t first = reserve(0), qpns = 0;

    ck_assert_uint_eq(first % 64, 0);
    d.fw->hca.qpns.next = first - 2;
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(create_as(0), SYN_OK);
        qpn = PRM_GET(create_qp_out, out, qpn);
        ck_assert(qpn < first || qpn >= first + 64);
        qpns += qpn > first;
    }
    ck_assert_uint_eq(qpns, 2);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, first, 0), SYN_OK);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_CREATE_GENERAL_OBJECT, 0, 0, 5), SYN_LIMIT);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_CREATE_GENERAL_OBJECT, 0, 0, 7), SYN_LIMIT);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, 0, first, 0), SYN_OK);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, 0, first, 0),
                      SYN_NO_GENERAL_OBJECT);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_QUERY_GENERAL_OBJECT, 0, first, 0),
                      SYN_NO_GENERAL_OBJECT);
}
END_TEST

/* CREATE_QP with input_qpn: makes a QP with that number for the user who has reserved it, once at a
 * time. */
START_TEST(a_qp_of_a_reserved_number)
{
    uint32_t first = reserve(0);

    ck_assert_uint_eq(create_as(first + 63), SYN_OK);
    ck_assert_uint_eq(PRM_GET(create_qp_out, out, qpn), first + 63);
    qpn = first + 63;
    ck_assert_uint_eq(create_as(first + 63), SYN_QP_INPUT_QPN);
    ck_assert_uint_eq(create_as(first + 64), SYN_QP_INPUT_QPN);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, 0, first, 0), SYN_IN_USE);
    ck_assert_uint_eq(destroy(), 0);
    d.fw->hca.qpns.next = first + 63; /* and it is still reserved */
    ck_assert_uint_eq(create_as(0), SYN_OK);
    ck_assert_uint_eq(PRM_GET(create_qp_out, out, qpn), first + 64);
    ck_assert_uint_eq(create_as(first + 63), SYN_OK);
    /* A reset, which teardown() makes, finds the QP and its range. */
}
END_TEST

START_TEST(a_reserved_number_is_its_users_alone)
{
    uint16_t uid, other;
    uint32_t first;

    begin(PRM_CMD_OP_CREATE_UCTX);
    must(PRM_SIZE(create_uctx_in), PRM_SIZE(create_uctx_out));
    uid = (uint16_t)PRM_GET(create_uctx_out, out, uid);
    first = reserve(uid);
    begin(PRM_CMD_OP_CREATE_UCTX);
    must(PRM_SIZE(create_uctx_in), PRM_SIZE(create_uctx_out));
    other = (uint16_t)PRM_GET(create_uctx_out, out, uid);
    ck_assert_uint_eq(general_object(PRM_CMD_OP_DESTROY_GENERAL_OBJECT, other, first, 0),
                      SYN_BAD_UID);
    PRM_SET(destroy_uctx_in, begin(PRM_CMD_OP_DESTROY_UCTX), uid, uid);
    must(PRM_SIZE(destroy_uctx_in), 16);
    ck_assert_uint_eq(d.fw->hca.reserved_qpns.count, 0); /* it went with its user */
}
END_TEST

/* A process rings the queues of the doorbell pages that it has mapped. So a user context cannot
 * make a queue on the page of another context, which could ring there. */
START_TEST(a_doorbell_page_is_its_users_alone)
{
    struct hca *hca = &d.fw->hca;
    uint16_t uid, other;

    begin(PRM_CMD_OP_CREATE_UCTX);
    must(PRM_SIZE(create_uctx_in), PRM_SIZE(create_uctx_out));
    uid = (uint16_t)PRM_GET(create_uctx_out, out, uid);
    begin(PRM_CMD_OP_CREATE_UCTX);
    must(PRM_SIZE(create_uctx_in), PRM_SIZE(create_uctx_out));
    other = (uint16_t)PRM_GET(create_uctx_out, out, uid);
    obj_find(&hca->pds, pdn)->uid = uid;
    cq_obj(cq_find(hca, cqn))->uid = uid;

    obj_find(&hca->uars, uarn)->uid = other;
    create_in(0);
    PRM_SET(create_qp_in, in, uid, uid);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_BAD_UID);
    obj_find(&hca->uars, uarn)->uid = uid;
    create_in(0);
    PRM_SET(create_qp_in, in, uid, uid);
    ck_assert_uint_eq(run(IN_LEN, PRM_SIZE(create_qp_out)), SYN_OK);
}
END_TEST

/* Half of the numbers stay for users that reserve none. */
START_TEST(not_all_numbers_can_be_reserved)
{
    unsigned ranges = 0;
    enum syn syn;

    do {
        syn = general_object(PRM_CMD_OP_CREATE_GENERAL_OBJECT, 0, 0, OBJ_LOG_RESERVED);
        ranges += syn == SYN_OK;
    } while (syn == SYN_OK);
    ck_assert_uint_eq(syn, SYN_NO_MEMORY);
    ck_assert_uint_le(64 * ranges, d.fw->hca.qpns.end / 2);
    ck_assert_uint_eq(create_as(0), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw qp");
    TCase *tc = tcase_create("qp");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_send_queue_without_record_needs_the_capability);
    tcase_add_test(tc, what_has_no_record_needs_no_place_for_it);
    tcase_add_test(tc, a_qp_goes_through_its_states);
    tcase_add_test(tc, a_qp_without_a_path_has_the_smallest_mtu);
    tcase_add_loop_test(tc, no_connection_option_is_enabled, 0, 5);
    tcase_add_test(tc, no_connection_option_of_a_target_is_enabled);
    tcase_add_test(tc, a_stream_is_named_in_the_extended_context);
    tcase_add_test(tc, memory_to_memory_operations_are_enabled_in_init);
    tcase_add_loop_test(tc, memory_to_memory_operations_are_enabled_at_creation, 0, 3);
    tcase_add_test(tc, a_transition_out_of_order_is_a_bad_qp_state);
    tcase_add_test(tc, the_page_list_must_cover_the_ring);
    tcase_add_test(tc, an_extended_context_comes_before_the_page_list);
    tcase_add_test(tc, an_extended_context_is_answered_with_zeros);
    tcase_add_test(tc, an_extended_context_needs_its_room);
    tcase_add_test(tc, a_bad_qpc_leaves_nothing_behind);
    tcase_add_test(tc, objects_that_a_qpc_names_must_exist);
    tcase_add_loop_test(tc, a_path_that_cannot_be_is_refused, 0, 5);
    tcase_add_test(tc, a_path_from_one_network_to_another_is_refused);
    tcase_add_test(tc, a_qp_without_queues_needs_no_ring);
    tcase_add_test(tc, queues_need_pages);
    tcase_add_test(tc, multicast_groups_are_for_datagram_qps);
    tcase_add_test(tc, reserved_qp_numbers_are_nobodys);
    tcase_add_test(tc, a_qp_of_a_reserved_number);
    tcase_add_test(tc, a_reserved_number_is_its_users_alone);
    tcase_add_test(tc, a_doorbell_page_is_its_users_alone);
    tcase_add_test(tc, not_all_numbers_can_be_reserved);
    suite_add_tcase(s, tc);
    return s;
}
