/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that a command takes as many turns as it needs (fw/cmdq.c, fw/cmd.h): none of them is long,
 * others get turns in between, and whatever abandons the command half-way frees everything of it.
 *
 * Times are printed, never judged: the pieces of a turn are compared with a bound.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/cmd.h"
#include "fw/fw_internal.h"
#include "model/memory/mkey.h"
#include "model/core/obj_class.h"
#include "model/steering/steering.h"
#include "model/rdma/rdma.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

#define BUDGET   16    /* pieces of a turn */
#define STEP     16    /* more pieces than the largest step has, unless a test says otherwise */
#define PAGES    10000 /* pages of a long list: more than a command has room for without paying */
#define OBJECTS  500   /* of a kind */
#define OUT_ROOM (PRM_SIZE(manage_pages_out) + 8 * PAGES)
#define ADDR_LO  (PRM_OFFSET(initial_seg, cmdq_phy_addr_63_32) + 4)
#define DOORBELL PRM_OFFSET(initial_seg, command_doorbell_vector)

static struct fwd d;
static void *in;
static void *const out = (uint8_t[OUT_ROOM]){0};
static uint32_t uid, pdn, umem_id;

/* Another client, which has work all the time. */
static unsigned others;

static void other_run(struct hca *hca, struct work *work)
{
    others++;
    hca_schedule(hca, work);
}

static struct work other = {.run = other_run};

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    in = g_malloc0(PRM_SIZE(create_mkey_in) + 8 * PAGES);
}

static void teardown(void)
{
    g_free(in);
    fwd_clear(&d);
}

/* -- commands in steps ------------------------------------------------------------------------- */

/* Puts the command of `in` into the queue, and rings the doorbell. */
static void begin(uint16_t opcode, size_t in_len, size_t out_len)
{
    PRM_SET(cmd_in, in, opcode, opcode);
    fwd_prepare(&d, in, in_len, out_len);
    memset(in, 0, in_len);
    d.fw->hca.most_pieces = 0;
    fw_mmio_write(d.fw, DOORBELL, 1, 4);
}

static bool is_done(void)
{
    return !PRM_GET(cmd_queue_entry, fwd_entry(&d), ownership);
}

static void turn(void)
{
    d.entries++;
    fw_run(d.fw, BUDGET);
}

/* Takes turns until the command has ended; returns the number of turns. */
static unsigned finish(void)
{
    unsigned turns = 0;

    while (!is_done()) {
        turn();
        turns++;
    }
    ck_assert_uint_eq(PRM_GET(cmd_queue_entry, fwd_entry(&d), status), 0);
    return turns;
}

/* Like fwd_cmd(), for the command of `in`. */
static enum syn run(uint16_t opcode, size_t in_len, size_t out_len)
{
    enum syn syn;

    PRM_SET(cmd_in, in, opcode, opcode);
    syn = fwd_cmd(&d, in, in_len, out, out_len);
    memset(in, 0, in_len);
    return syn;
}

static void must(uint16_t opcode, size_t in_len, size_t out_len)
{
    ck_assert_int_eq(run(opcode, in_len, out_len), SYN_OK);
}

static uint32_t owned(void)
{
    return d.fw->pages.list->len;
}

/* -- what there is of long ones ---------------------------------------------------------------- */

/* Pages that differ in bits that a hash of the low bits does not use. */
static uint64_t nth_page(uint32_t i)
{
    return (uint64_t)(i + 1) << 44;
}

static void begin_give(uint32_t n, uint64_t last)
{
    PRM_SET(manage_pages_in, in, op_mod, 1);
    PRM_SET(manage_pages_in, in, input_num_entries, n);
    for (uint32_t i = 0; i < n; i++) {
        PRM_SET_AT(manage_pages_in, in, pas, i, i == n - 1 ? last : nth_page(i));
    }
    begin(PRM_CMD_OP_MANAGE_PAGES, PRM_SIZE(manage_pages_in) + 8 * n, 16);
}

static void begin_good_give(void)
{
    begin_give(PAGES, nth_page(PAGES - 1));
}

/* One page comes twice, which is found when all others are owned. */
static void begin_bad_give(void)
{
    begin_give(PAGES, nth_page(0));
}

static void begin_take(void)
{
    ck_assert_int_eq(fwd_give_pages(&d, PAGES), SYN_OK);
    PRM_SET(manage_pages_in, in, op_mod, 2);
    PRM_SET(manage_pages_in, in, input_num_entries, PAGES);
    begin(PRM_CMD_OP_MANAGE_PAGES, PRM_SIZE(manage_pages_in),
          PRM_SIZE(manage_pages_out) + 8 * PAGES);
}

static void make_uctx(void)
{
    must(PRM_CMD_OP_CREATE_UCTX, PRM_SIZE(create_uctx_in), 16);
    uid = PRM_GET(create_uctx_out, out, uid);
}

static void make_pd(uint32_t of_uid)
{
    PRM_SET(alloc_pd_in, in, uid, of_uid);
    must(PRM_CMD_OP_ALLOC_PD, 16, 16);
    pdn = PRM_GET(alloc_pd_out, out, pd);
}

static void put_mkc(uint32_t npages, bool with_list)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, len, 4096ull * npages);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, translations_octword_size, npages / 2);
    if (with_list) {
        PRM_SET(create_mkey_in, in, translations_octword_actual_size, npages / 2);
    }
}

static void begin_key(void)
{
    make_pd(0);
    put_mkc(PAGES, true);
    for (uint32_t i = 0; i < PAGES; i++) {
        prm_store64(PRM_PTR(create_mkey_in, in, klm_pas_mtt) + 8 * i,
                    FAKE_HOST_BASE + 4096ull * (i % 64));
    }
    begin(PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in) + 8 * PAGES, 16);
}

static void begin_umem(void)
{
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);

    make_uctx();
    PRM_SET(create_umem_in, in, uid, uid);
    PRM_SET(umem, umem, num_of_mtt, PAGES);
    for (uint32_t i = 0; i < PAGES; i++) {
        prm_store64(PRM_PTR_AT(umem, umem, mtt, i), FAKE_HOST_BASE + 4096ull * (i % 64));
    }
    begin(PRM_CMD_OP_CREATE_UMEM, PRM_SIZE(create_umem_in) + 8 * PAGES, 16);
}

static void begin_key_on_umem(void)
{
    begin_umem();
    finish();
    fwd_output(&d, out, 16);
    umem_id = PRM_GET(create_umem_out, out, umem_id);
    make_pd(uid);
    put_mkc(PAGES, false);
    PRM_SET(create_mkey_in, in, uid, uid);
    PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, in, mkey_umem_id, umem_id);
    begin(PRM_CMD_OP_CREATE_MKEY, PRM_SIZE(create_mkey_in), 16);
}

/* Makes a table with groups of one entry each, whose misses lead to the previous table. */
static uint32_t make_table(uint32_t next, unsigned level)
{
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, in, flow_table_context);
    uint32_t table_id;

    PRM_SET(create_flow_table_in, in, uid, uid);
    PRM_SET(flow_table_context, ctx, log_size, 12);
    PRM_SET(flow_table_context, ctx, level, level);
    if (next) {
        PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
        PRM_SET(flow_table_context, ctx, table_miss_id, next);
    }
    must(PRM_CMD_OP_CREATE_FLOW_TABLE, PRM_SIZE(create_flow_table_in), 16);
    table_id = PRM_GET(create_flow_table_out, out, table_id);
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct prm_flow_context *fc = PRM_PTR(set_fte_in, in, flow_context);
        uint32_t group_id;

        PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
        PRM_SET(create_flow_group_in, in, table_id, table_id);
        PRM_SET(create_flow_group_in, in, start_flow_index, i);
        PRM_SET(create_flow_group_in, in, end_flow_index, i);
        must(PRM_CMD_OP_CREATE_FLOW_GROUP, PRM_SIZE(create_flow_group_in), 16);
        group_id = PRM_GET(create_flow_group_out, out, group_id);
        PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
        PRM_SET(set_fte_in, in, table_id, table_id);
        PRM_SET(set_fte_in, in, flow_index, i);
        PRM_SET(flow_context, fc, group_id, group_id);
        PRM_SET(flow_context, fc, action, PRM_FLOW_ACTION_DROP);
        must(PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, PRM_SIZE(set_fte_in), PRM_SIZE(set_fte_out));
    }
    return table_id;
}

/* Makes a target with many responders. */
static uint32_t make_dct(void)
{
    static const uint8_t nothing[DCC_ETH_BYTES];
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    void *wq = PRM_PTR(rmpc, PRM_PTR(create_rmp_in, in, ctx), wq);
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, in, dct_context_entry);
    uint64_t ring = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t uarn, cqn;
    struct roce_packet pkt = {
        .opcode = BTH_DC | BTH_CONNECT,
        .pkey = 0xffff,
        .dceth = {.version = d.fw->hca.limits.dc_version, .session = 1},
        .payload = nothing,
        .payload_len = sizeof(nothing),
    };

    make_pd(0);
    must(PRM_CMD_OP_ALLOC_UAR, 16, 16);
    uarn = PRM_GET(alloc_uar_out, out, uar);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, uarn);
    PRM_SET_AT(create_eq_in, in, pas, 0, ring);
    must(PRM_CMD_OP_CREATE_EQ, PRM_SIZE(create_eq_in) + 8, 16);
    PRM_SET(cqc, cqc, log_cq_size, 6);
    PRM_SET(cqc, cqc, uar_page, uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, PRM_GET(create_eq_out, out, eq_number));
    PRM_SET(cqc, cqc, dbr_addr, ring);
    PRM_SET_AT(create_cq_in, in, pas, 0, ring);
    must(PRM_CMD_OP_CREATE_CQ, PRM_SIZE(create_cq_in) + 8, 16);
    cqn = PRM_GET(create_cq_out, out, cqn);
    PRM_SET(rmpc, PRM_PTR(create_rmp_in, in, ctx), state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_LINKED_LIST);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, pd, pdn);
    PRM_SET(wq, wq, dbr_addr, ring);
    prm_store64(PRM_PTR(wq, wq, pas), ring);
    must(PRM_CMD_OP_CREATE_RMP, PRM_SIZE(create_rmp_in) + 8, 16);
    PRM_SET(dctc, dctc, pd, pdn);
    PRM_SET(dctc, dctc, cqn, cqn);
    PRM_SET(dctc, dctc, srqn_xrqn, PRM_GET(create_rmp_out, out, rmpn));
    PRM_SET(dctc, dctc, mtu, PRM_QP_MTU_1024);
    must(PRM_CMD_OP_CREATE_DCT, PRM_SIZE(create_dct_in), 16);
    pkt.dest_qp = PRM_GET(create_dct_out, out, dctn);
    for (pkt.dceth.number = 0; pkt.dceth.number < OBJECTS; pkt.dceth.number++) {
        dct_rx(&d.fw->hca, &pkt);
    }
    ck_assert_uint_eq(d.fw->hca.rdma->dc.responders.length, OBJECTS);
    return pkt.dest_qp;
}

static void begin_end_of_target(void)
{
    uint32_t dctn;

    ck_assert_int_eq(fwd_give_pages(&d, 1000), SYN_OK);
    dctn = make_dct();
    PRM_SET(destroy_dct_in, in, dctn, dctn);
    begin(PRM_CMD_OP_DESTROY_DCT, PRM_SIZE(destroy_dct_in), PRM_SIZE(destroy_dct_out));
}

/* Tears down: objects of every size, responders, rules. */
static void begin_teardown(void)
{
    ck_assert_int_eq(fwd_give_pages(&d, 1000), SYN_OK);
    make_dct();
    for (unsigned i = 0; i < OBJECTS; i++) {
        make_pd(0);
    }
    uid = 0;
    make_table(0, 1);
    begin(PRM_CMD_OP_TEARDOWN_HCA, PRM_SIZE(teardown_hca_in), PRM_SIZE(teardown_hca_out));
}

/* The previous driver did not tear down. */
static void begin_enable(void)
{
    begin_teardown();
    PRM_SET(cmd_in, in, opcode, PRM_CMD_OP_ENABLE_HCA);
    fwd_prepare(&d, in, PRM_SIZE(enable_hca_in), PRM_SIZE(enable_hca_out));
    memset(in, 0, PRM_SIZE(enable_hca_in));
}

static void begin_goodbye(void)
{
    uint32_t table_id = 0;

    ck_assert_int_eq(fwd_give_pages(&d, 1000), SYN_OK);
    make_uctx();
    for (unsigned i = 0; i < OBJECTS; i++) {
        make_pd(uid);
        make_pd(0);
    }
    for (unsigned level = 3; level; level--) {
        table_id = make_table(table_id, level);
    }
    PRM_SET(destroy_uctx_in, in, uid, uid);
    begin(PRM_CMD_OP_DESTROY_UCTX, PRM_SIZE(destroy_uctx_in), PRM_SIZE(destroy_uctx_out));
}

/* The results, and the least number of turns: mailboxes, pages and objects, divided by what fits in
 * a turn. */
#define BOXES(bytes) ((bytes) / 512)

static const struct {
    void (*begin)(void);
    enum syn syn;
    unsigned pieces;
} commands[] = {
    {begin_good_give, SYN_OK, BOXES(8 * PAGES) + PAGES / 8},
    {begin_bad_give, SYN_BAD_PAGE, BOXES(8 * PAGES) + 2 * PAGES / 8},
    {begin_take, SYN_OK, 3 * BOXES(8 * PAGES) + PAGES / 8},
    {begin_key, SYN_OK, BOXES(8 * PAGES) + PAGES / HCA_PIECE_ENTRIES},
    {begin_umem, SYN_OK, BOXES(8 * PAGES) + PAGES / HCA_PIECE_ENTRIES},
    {begin_key_on_umem, SYN_OK, PAGES / HCA_PIECE_ENTRIES},
    {begin_goodbye, SYN_OK, 2 * OBJECTS + 6 * OBJECTS},
    {begin_end_of_target, SYN_OK, OBJECTS},
    {begin_teardown, SYN_OK, 2 * OBJECTS + 2 * OBJECTS},
    {begin_enable, SYN_OK, 2 * OBJECTS + 2 * OBJECTS},
};

START_TEST(a_long_command_takes_many_short_turns)
{
    unsigned turns;

    commands[_i].begin();
    others = 0;
    hca_schedule(&d.fw->hca, &other);
    turns = finish();
    hca_unschedule(&other);
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, syndrome), syn_code(commands[_i].syn));
    ck_assert_uint_le(d.fw->hca.most_pieces, BUDGET + STEP);
    ck_assert_uint_ge(turns, commands[_i].pieces / (BUDGET + STEP));
    ck_assert_uint_ge(others, turns - 1);
}
END_TEST

/* -- results ----------------------------------------------------------------------------------- */

/* All pages or none are given, however many turns that takes, and refused pages can be given
 * again. */
START_TEST(pages_are_given_all_or_none)
{
    uint32_t before = owned();
    uint64_t used = d.fw->hca.memory.used, limit = d.fw->hca.icm.limit;

    begin_bad_give();
    finish();
    ck_assert_uint_eq(owned(), before);
    ck_assert_uint_eq(d.fw->hca.memory.used, used);
    ck_assert_uint_eq(d.fw->hca.icm.limit, limit);

    begin_good_give();
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    ck_assert_uint_eq(owned(), before + PAGES);
    ck_assert_uint_eq(d.fw->hca.icm.limit, limit + PAGES * 4096ull);

    begin_good_give();
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, syndrome), syn_code(SYN_BAD_PAGE));
    ck_assert_uint_eq(owned(), before + PAGES);
}
END_TEST

START_TEST(pages_are_taken_back_once_each)
{
    uint64_t base;
    uint32_t before, taken;

    begin_take();
    before = owned();
    finish();
    fwd_output(&d, out, OUT_ROOM);
    taken = PRM_GET(manage_pages_out, out, output_num_entries);
    ck_assert_uint_gt(taken, PAGES / 2);
    ck_assert_uint_eq(owned(), before - taken);
    base = PRM_GET_AT(manage_pages_out, out, pas, 0);
    for (uint32_t i = 1; i < taken; i++) { /* last given, first taken */
        ck_assert_uint_eq(PRM_GET_AT(manage_pages_out, out, pas, i), base - 4096ull * i);
    }
}
END_TEST

START_TEST(long_keys_lead_where_their_lists_say)
{
    void (*begin_it)(void) = _i ? begin_key_on_umem : begin_key;
    uint8_t text[9] = {0};
    uint32_t index;

    begin_it();
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    index = PRM_GET(create_mkey_out, out, mkey_index);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t page = i * (PAGES - 1) / 2;

        memcpy(fake_host_ptr(&d.host, FAKE_HOST_BASE + 4096ull * (page % 64) + 100, 8), "the page",
               8);
        memset(text, 0, sizeof(text));
        ck_assert_int_eq(
            mkey_read(&d.fw->hca, index << 8, pdn, 4096ull * page + 100, text, 8, MEM_LOCAL_READ),
            MEM_OK);
        ck_assert_str_eq((char *)text, "the page");
    }
}
END_TEST

/* A guest sees one answer to DESTROY_DCT, when the last responder is gone. From its doorbell on
 * nobody gets a responder. */
START_TEST(a_target_goes_with_all_its_responders)
{
    unsigned left = OBJECTS;

    begin_end_of_target();
    while (!is_done()) {
        turn();
        ck_assert_uint_le(d.fw->hca.rdma->dc.responders.length, left);
        left = d.fw->hca.rdma->dc.responders.length;
        ck_assert(!is_done() || left == 0);
    }
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    ck_assert_uint_eq(d.fw->hca.qpns.count, 0);
}
END_TEST

/* Nothing remains of a torn down function, which can be brought up again. While the tear-down is
 * under way no other command is executed. */
START_TEST(a_function_is_torn_down_in_turns)
{
    begin_teardown();
    turn();
    ck_assert_uint_gt(d.fw->hca.pds.count, 0);
    ck_assert_uint_eq(d.fw->state, CMD_READY);
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    ck_assert_uint_eq(d.fw->state, CMD_ENABLED);
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        ck_assert_uint_eq(obj_space(&d.fw->hca, i)->count, 0);
    }
    ck_assert(!d.fw->hca.reset.under_way);
    must(PRM_CMD_OP_INIT_HCA, PRM_SIZE(init_hca_in), 16);
    make_pd(0);
}
END_TEST

START_TEST(destroying_a_context_frees_all_its_objects)
{
    uint32_t pds;

    begin_goodbye();
    pds = d.fw->hca.pds.count;
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    ck_assert_uint_eq(d.fw->hca.pds.count, pds - OBJECTS);
    OBJ_TABLE_FOREACH (obj, &d.fw->hca.pds) {
        ck_assert_uint_ne(obj->uid, uid);
    }
    ck_assert_uint_eq(d.fw->hca.uctxs.count, 0);
}
END_TEST

/* -- abandoned half-way ------------------------------------------------------------------------ */

static void flr(void)
{
    fw_reset(d.fw);
}

static void disable(void)
{
    fw_mmio_write(d.fw, ADDR_LO, PRM_NIC_INTERFACE_DISABLED << 8, 4);
}

/* A reset has as many turns as it needs. */
static void finish_reset(void)
{
    while (d.fw->hca.off) {
        ck_assert(fw_run(d.fw, BUDGET) || !d.fw->hca.off);
    }
}

static void fail_and_reset(void)
{
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_FW_INTERNAL_ERR, true);
    turn();
    fw_mmio_write(d.fw, ADDR_LO, PRM_NIC_INTERFACE_SW_RESET << 8, 4);
}

static void (*const ends[])(void) = {flr, disable, fail_and_reset};

/* Whatever stage a command is in, its buffers, what it paid for them and what it was making are
 * freed with the function's objects. The device keeps its entry; the next driver is served. */
START_TEST(a_command_half_done_leaves_nothing_behind)
{
    const size_t n = G_N_ELEMENTS(commands);
    void (*end)(void) = ends[(unsigned)_i / n];
    unsigned left = 0;

    for (unsigned turns = 1; left == 0; turns = 2 * turns + 1) {
        commands[(unsigned)_i % n].begin();
        for (unsigned i = 0; i < turns; i++) {
            turn();
        }
        left = is_done();
        end();
        finish_reset();
        ck_assert_uint_eq(d.fw->hca.memory.used, 0);
        ck_assert_uint_eq(d.fw->hca.icm.used, 0);
        for (unsigned i = 0; i < 10; i++) {
            turn();
        }
        ck_assert(left || !is_done());
        fwd_clear(&d);
        fwd_init(&d);
        fwd_bring_up(&d);
    }
}
END_TEST

/* An owner frees the function meanwhile: it has released everything that it took, which fw_free()
 * checks, and does not touch the host's memory. The driver continues with another function. */
START_TEST(a_function_goes_with_its_command)
{
    struct fw_config config = {.mac = {0x02, 0, 0, 0, 0, 1}};
    uint64_t reads;

    commands[_i].begin();
    for (unsigned i = 0; i < 100; i++) {
        turn();
    }
    ck_assert_uint_gt(d.fw->hca.memory.used, 0);
    reads = d.host.reads;
    fw_free(d.fw);
    ck_assert_uint_eq(d.host.reads, reads);
    ck_assert_uint_eq(d.host.open_maps, 0);
    d.fw = fw_new(&fake_host_ops, &d.host, &config, NULL);
    ck_assert_ptr_nonnull(d.fw);
}
END_TEST

/* -- others in between ------------------------------------------------------------------------- */

START_TEST(a_second_command_waits_for_the_first)
{
    void *second = drv_cmd_entry(d.drv, 1);
    unsigned errors;

    memset(second, 0, PRM_SIZE(cmd_queue_entry));
    PRM_SET(cmd_queue_entry, second, type, 7);
    PRM_SET(cmd_queue_entry, second, input_length, PRM_SIZE(nop_in));
    PRM_SET(cmd_queue_entry, second, output_length, PRM_SIZE(nop_out));
    PRM_SET(cmd_queue_entry, second, ownership, 1);
    PRM_SET(cmd_in, PRM_PTR(cmd_queue_entry, second, command_input_inline_data), opcode,
            PRM_CMD_OP_NOP);
    begin_good_give();
    turn();
    errors = d.host.guest_errors;
    fw_mmio_write(d.fw, DOORBELL, 3, 4); /* and the first's again, which is under way */
    while (!is_done()) {
        ck_assert(PRM_GET(cmd_queue_entry, second, ownership));
        ck_assert_uint_eq(d.host.guest_errors, errors);
        turn();
    }
    for (unsigned i = 0; i < 10; i++) {
        turn();
    }
    ck_assert(!PRM_GET(cmd_queue_entry, second, ownership));
    ck_assert_uint_eq(PRM_GET(cmd_queue_entry, second, status), 0);
    ck_assert_uint_eq(d.host.guest_errors, errors + 1); /* the first one is software's by now */
}
END_TEST

/* Firmware that has stopped leaves a command where it is, and continues it if it is repaired
 * without a reset. */
START_TEST(a_command_waits_for_firmware_that_has_stopped)
{
    uint64_t pieces;

    begin_good_give();
    turn();
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_FW_INTERNAL_ERR, true);
    turn();
    pieces = d.fw->hca.pieces;
    for (unsigned i = 0; i < 100; i++) {
        turn();
    }
    ck_assert(!is_done());
    ck_assert_uint_eq(d.fw->hca.pieces, pieces);
    fw_set_health(d.fw, PRM_HEALTH_SYNDROME_NONE, false);
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
}
END_TEST

/* The end of an input that is longer than its command's layout is checked in one step, whose pieces
 * are counted. */
START_TEST(a_long_tail_is_one_step)
{
    begin(PRM_CMD_OP_NOP, 8 * PAGES, 16);
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, status), 0);
    ck_assert_uint_le(d.fw->hca.most_pieces, BUDGET + STEP + 8 * PAGES / 4096);

    memset(in + 8 * PAGES - 1, 1, 1);
    begin(PRM_CMD_OP_NOP, 8 * PAGES, 16);
    finish();
    fwd_output(&d, out, 16);
    ck_assert_uint_eq(PRM_GET(cmd_out, out, syndrome), syn_code(SYN_RESERVED));
}
END_TEST

Suite *unit_suite(void)
{
    const int kinds = (int)G_N_ELEMENTS(commands);
    Suite *s = suite_create("fw turns");
    TCase *tc = tcase_create("turns");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_long_command_takes_many_short_turns, 0, kinds);
    tcase_add_test(tc, pages_are_given_all_or_none);
    tcase_add_test(tc, pages_are_taken_back_once_each);
    tcase_add_loop_test(tc, long_keys_lead_where_their_lists_say, 0, 2);
    tcase_add_test(tc, a_target_goes_with_all_its_responders);
    tcase_add_test(tc, a_function_is_torn_down_in_turns);
    tcase_add_test(tc, destroying_a_context_frees_all_its_objects);
    tcase_add_loop_test(tc, a_command_half_done_leaves_nothing_behind, 0,
                        kinds * (int)G_N_ELEMENTS(ends));
    tcase_add_loop_test(tc, a_function_goes_with_its_command, 0, kinds);
    tcase_add_test(tc, a_second_command_waits_for_the_first);
    tcase_add_test(tc, a_command_waits_for_firmware_that_has_stopped);
    tcase_add_test(tc, a_long_tail_is_one_step);
    suite_add_tcase(s, tc);
    return s;
}
