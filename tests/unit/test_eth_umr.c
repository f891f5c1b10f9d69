/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests UMRs on Ethernet send queues: as the driver's internal queue maps pages to the WQEs of a
 * striding receive queue (mlx5e_alloc_rx_mpwqe(), mlx5e_xsk_alloc_rx_mpwqe()), and what is refused.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/memory/mkey.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

#define PAGE    4096u
#define VARIANT 0x5c
#define ENTRIES 128 /* room of the key, in pages */

static struct bench *b;
static struct bench_queue sq, other; /* with and without reg_umr */

static void allow(struct bench_queue *q, bool reg_umr)
{
    PRM_SET(sqc, eth_sq_find(&b->rig.hca, q->num)->sqc, reg_umr, reg_umr);
}

static void setup(void)
{
    b = bench_new();
    b->rig.hca.vport->uplink->mtu = 9000;
    bench_sq_new_sized(b, 0, 6, &sq);
    allow(&sq, true);
    bench_sq_new(b, 0, &other);
}

static void teardown(void)
{
    bench_free(b);
}

/* A key as the driver makes it for a receive queue: free, with room for entries. */
static uint32_t make_key(unsigned mode, unsigned log_page)
{
    struct prm_mkc mkc[1] = {0};
    size_t entry = mode == PRM_MKC_ACCESS_MODE_MTT ? 8 : 16;
    uint32_t index;

    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, mode & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, mode >> 2);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, VARIANT);
    PRM_SET(mkc, mkc, pd, b->rig.pdn);
    PRM_SET(mkc, mkc, len, (uint64_t)ENTRIES * PAGE);
    PRM_SET(mkc, mkc, log_page_size, mode == PRM_MKC_ACCESS_MODE_KLMS ? 0 : log_page);
    PRM_SET(mkc, mkc, translations_octword_size, ENTRIES * entry / 16);
    ck_assert_int_eq(mkey_create(&b->rig.hca, 0, mkc, NULL, 0, false, &index), SYN_OK);
    return index << 8 | VARIANT;
}

struct umr_wqe {
    union {
        uint8_t bytes[1024];
        struct prm_wqe_ctrl_seg ctrl[1];
    };
    size_t len;
};

static void *umr_ctrl(struct umr_wqe *wqe)
{
    return wqe->bytes + PRM_SIZE(wqe_ctrl_seg);
}

static void *umr_entries(struct umr_wqe *wqe)
{
    return wqe->bytes + PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_umr_ctrl_seg) + PRM_SIZE(mkc);
}

/* A UMR that makes the key valid and writes octwords of entries at an offset, which the caller
 * fills in. */
static void begin(struct umr_wqe *wqe, uint32_t key, unsigned octwords, unsigned offset)
{
    void *ctrl = umr_ctrl(wqe);

    memset(wqe, 0, sizeof(*wqe));
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, opcode, PRM_WQE_OPCODE_UMR);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ce, PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, imm, key);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, translation_offset_en, 1);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, octwords);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_offset, offset);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, 1ull << PRM_MKEY_MASK_FREE);
    wqe->len = (size_t)((uint8_t *)umr_entries(wqe) - wqe->bytes) + octwords * 16u;
}

/* Writes the WQE into the ring, without doorbell. */
static void write_wqe(struct bench_queue *q, struct umr_wqe *wqe)
{
    uint8_t *ring = fake_host_ptr(&b->rig.host, q->ring, 64u << q->log_size);
    unsigned blocks = (unsigned)(wqe->len + 63) / 64;

    PRM_SET(wqe_ctrl_seg, wqe->ctrl, wqe_index, q->pi);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, qpn, q->num);
    PRM_SET(wqe_ctrl_seg, wqe->ctrl, ds, wqe->len / 16);
    for (unsigned i = 0; i < blocks; i++) {
        memcpy(ring + (q->pi + i) % (1u << q->log_size) * 64, wqe->bytes + i * 64, 64);
    }
    q->pi = (uint16_t)(q->pi + blocks);
}

static void post(struct bench_queue *q, struct umr_wqe *wqe)
{
    write_wqe(q, wqe);
    bench_ring_sq(q);
    bench_run(b);
}

static void put_mtt(struct umr_wqe *wqe, unsigned i, uint64_t pa)
{
    prm_store64((uint8_t *)umr_entries(wqe) + 8 * i, pa | 2); /* MLX5_EN_WR */
}

static bool writes(uint32_t key, uint64_t va, const char *text)
{
    return mkey_write(&b->rig.hca, key, b->rig.pdn, va, text, strlen(text), MEM_LOCAL_WRITE) ==
           MEM_OK;
}

static uint64_t page(void)
{
    return fake_host_alloc(&b->rig.host, PAGE, PAGE);
}

static const char *text_at(uint64_t pa)
{
    return fake_host_ptr(&b->rig.host, pa, 16);
}

/* -- what the driver does -----------------------------------------------------------------------
 */

/* Pages for one WQE of the receive queue, at the WQE's place in the key: the offset counts 16
 * bytes, which are two entries. 64 entries fit into a WQE. */
START_TEST(pages_are_mapped_where_the_offset_says)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    uint64_t pages[64];
    struct umr_wqe wqe;

    begin(&wqe, key, 32, 32);
    for (unsigned i = 0; i < 64; i++) {
        pages[i] = page();
        put_mtt(&wqe, i, pages[i]);
    }
    ck_assert(!writes(key, 64 * PAGE, "early"));
    post(&sq, &wqe);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert(writes(key, 64 * PAGE + 9, "first"));
    ck_assert(writes(key, 127 * PAGE, "last"));
    ck_assert_str_eq(text_at(pages[0] + 9), "first");
    ck_assert_str_eq(text_at(pages[63]), "last");
    /* again, with other pages: the old ones are no longer reached */
    begin(&wqe, key, 1, 32);
    for (unsigned i = 0; i < 2; i++) {
        put_mtt(&wqe, i, page());
    }
    post(&sq, &wqe);
    ck_assert(writes(key, 64 * PAGE + 9, "later"));
    ck_assert_str_eq(text_at(pages[0] + 9), "first");
}
END_TEST

/* AF_XDP with frames anywhere (KSM), and with frames that are not a power of two (KLM): entries
 * name another key. */
START_TEST(entries_may_name_other_keys)
{
    bool ksm = _i;
    uint32_t key = make_key(ksm ? PRM_MKC_ACCESS_MODE_KSM : PRM_MKC_ACCESS_MODE_KLMS, 12);
    uint64_t frame = page() + 64, garbage = page();
    struct prm_wqe_klm_seg *entry;
    struct umr_wqe wqe;

    begin(&wqe, key, 4, 0);
    entry = umr_entries(&wqe);
    for (unsigned i = 0; i < 4; i++) {
        PRM_SET(wqe_klm_seg, &entry[i], byte_count, ksm ? 0 : i % 2 ? 1024 : 3072);
        PRM_SET(wqe_klm_seg, &entry[i], mkey, RIG_RESD_LKEY);
        PRM_SET(wqe_klm_seg, &entry[i], va, i % 2 ? garbage : frame);
    }
    post(&sq, &wqe);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert(writes(key, 5, "frame"));
    ck_assert(writes(key, ksm ? 4096 : 3072, "garbage"));
    ck_assert_str_eq(text_at(frame + 5), "frame");
    ck_assert_str_eq(text_at(garbage), "garbage");
}
END_TEST

/* Entries in memory, behind the reserved key (umr_ptr_rlky), in more parts than one step reads. */
START_TEST(entries_may_be_in_memory)
{
    static uint8_t list[ENTRIES * 16 * 8];
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    uint64_t last = page();
    struct prm_wqe_data_seg *seg;
    struct umr_wqe wqe;
    void *ctrl = umr_ctrl(&wqe);

    prm_store64(list + (ENTRIES - 1) * 8, last | 2);
    begin(&wqe, key, ENTRIES / 2, 0);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 0);
    seg = umr_entries(&wqe);
    for (unsigned i = 0; i < 2; i++) {
        PRM_SET(wqe_data_seg, &seg[i], byte_count, ENTRIES * 4);
        PRM_SET(wqe_data_seg, &seg[i], lkey, RIG_RESD_LKEY);
        PRM_SET(wqe_data_seg, &seg[i], addr, bench_mem(b, list + i * ENTRIES * 4, ENTRIES * 4));
    }
    wqe.len = (size_t)((uint8_t *)(seg + 2) - wqe.bytes);
    post(&sq, &wqe);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    ck_assert(writes(key, (ENTRIES - 1) * PAGE, "last"));
    ck_assert_str_eq(text_at(last), "last");
}
END_TEST

/* A UMR, NOPs and a frame behind one doorbell: what comes behind the UMR sees the changed key, and
 * CQEs come in the order of the WQEs. */
START_TEST(wqes_are_executed_in_order)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    uint64_t pa = page();
    uint8_t frame[60] = {2, 2, 2, 2, 2, 2, [12] = 0x88, 0xb5, 7};
    struct umr_wqe wqe;
    const struct bench_wr nop = {.opcode = PRM_WQE_OPCODE_NOP},
                          send = {.opcode = PRM_WQE_OPCODE_SEND,
                                  .sge = {{64 * PAGE, 60, key}},
                                  .num_sge = 1};

    memcpy(fake_host_ptr(&b->rig.host, pa, sizeof(frame)), frame, sizeof(frame));
    begin(&wqe, key, 1, 32);
    put_mtt(&wqe, 0, pa | 1); /* MLX5_EN_RD */
    put_mtt(&wqe, 1, page());
    write_wqe(&sq, &wqe);
    bench_write_wqe(&sq, &nop);
    bench_write_wqe(&sq, &send);
    bench_ring_sq(&sq);
    bench_run(b);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 3);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 4);
    ck_assert_uint_eq(b->num_frames, 1);
    ck_assert_mem_eq(b->frames[0].data, frame, sizeof(frame));
}
END_TEST

/* The receive queue's data segment names the key, and the pages that a UMR gave it get the
 * frames. */
START_TEST(frames_come_into_the_mapped_pages)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    uint64_t pages[4];
    uint8_t frame[3000];
    struct prm_rqc rqc[1] = {0};
    struct bench_queue rq;
    struct prm_wqe_data_seg *seg;
    struct umr_wqe wqe;

    b->rq_type = PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ;
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), log_wqe_num_of_strides, 10); /* 8 */
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), log_wqe_stride_size, 5);     /* 2,048 */
    bench_rq_new(b, rqc, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
    begin(&wqe, key, 2, 0);
    for (unsigned i = 0; i < 4; i++) {
        pages[i] = page();
        put_mtt(&wqe, i, pages[i]);
    }
    post(&sq, &wqe);
    bench_expect(&sq, PRM_CQE_OPCODE_REQ, 0, 0);
    seg = fake_host_ptr(&b->rig.host, rq.ring + 16, 48);
    PRM_SET(wqe_data_seg, seg, byte_count, 8 * 2048);
    PRM_SET(wqe_data_seg, seg, lkey, key);
    PRM_SET(wqe_data_seg, seg, addr, 64); /* headroom */
    PRM_SET(wqe_data_seg, seg + 1, lkey, WQE_TERMINATOR_LKEY);
    PRM_SET(qp_dbr, fake_host_ptr(&b->rig.host, rq.dbr, 8), rcv_counter, 1);
    memset(frame, 0, sizeof(frame));
    for (unsigned i = 0; i < 3; i++) {
        memset(frame + 14, 'a' + (int)i, sizeof(frame) - 14);
        memcpy(frame, bench_mac, 6);
        bench_rx(b, frame, i == 1 ? sizeof(frame) : 1500);
        bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, (uint16_t[]){0, 1, 3}[i]);
    }
    ck_assert_uint_eq(*(text_at(pages[0] + 64 + 1499)), 'a');
    ck_assert_uint_eq(*(text_at(pages[0] + 64 + 2048 + 20)), 'b');
    ck_assert_uint_eq(*(text_at(pages[1] + 64 + 2048 - 4096 + 2999)), 'b');
    ck_assert_uint_eq(*(text_at(pages[1] + 64 + 2048 + 20)), 'c');
}
END_TEST

/* -- what is refused -----------------------------------------------------------------------------
 */

static void expect_refused(struct bench_queue *q, uint8_t syndrome)
{
    const void *cqe = bench_cqe(q);
    struct prm_sqc sqc[1];

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, send_wqe_opcode), PRM_WQE_OPCODE_UMR);
    ck_assert_int_eq(eth_sq_query(&b->rig.hca, q->num, sqc), SYN_OK);
    ck_assert_uint_eq(PRM_GET(sqc, sqc, state), PRM_SQC_STATE_ERR);
}

/* sqc.reg_umr */
START_TEST(a_queue_without_reg_umr_may_not)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    struct umr_wqe wqe;

    begin(&wqe, key, 1, 0);
    post(&other, &wqe);
    expect_refused(&other, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert(!writes(key, 0, "x"));
}
END_TEST

/* Each UMR is refused, and the key stays as it was. */
START_TEST(umrs_that_cannot_be_are_refused)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    uint8_t syndrome = PRM_CQE_SYNDROME_MW_BIND_ERR;
    struct umr_wqe wqe;
    void *ctrl = umr_ctrl(&wqe);

    begin(&wqe, key, 4, 0);
    switch (_i) {
    case 0: /* another key's number */
        PRM_SET(wqe_ctrl_seg, wqe.ctrl, imm, key + 0x100);
        break;
    case 1: /* an old variant of the key */
        PRM_SET(wqe_ctrl_seg, wqe.ctrl, imm, key ^ 1);
        break;
    case 2: /* beyond the room of the key */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_offset, ENTRIES / 2 - 3);
        break;
    case 3: /* the PD is the UMR QP's to change */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, 1ull << PRM_MKEY_MASK_PD);
        break;
    case 4: /* fewer entries than it says */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, 5);
        syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        break;
    case 5: /* without its memory key segment */
        wqe.len = PRM_SIZE(wqe_ctrl_seg) + PRM_SIZE(wqe_umr_ctrl_seg);
        syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        break;
    case 6: /* fewer bytes in memory than it says */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 0);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), byte_count, 63);
        syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        break;
    case 7: /* entries in a segment of inline data */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 0);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), inl, 1);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), byte_count, 64);
        wqe.len += 16;
        syndrome = PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        break;
    default: /* memory that does not answer */
        PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 0);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), byte_count, 64);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), lkey, RIG_RESD_LKEY);
        PRM_SET(wqe_data_seg, umr_entries(&wqe), addr, FAKE_HOST_BASE + FAKE_HOST_SIZE);
        syndrome = PRM_CQE_SYNDROME_LOCAL_PROT_ERR;
        break;
    }
    post(&sq, &wqe);
    expect_refused(&sq, syndrome);
    ck_assert(!writes(key, 0, "x"));
}
END_TEST

/* A queue of a user context names no bus addresses, whatever its context says. */
START_TEST(a_user_context_names_no_pages)
{
    uint32_t key = make_key(PRM_MKC_ACCESS_MODE_MTT, 12);
    struct umr_wqe wqe;

    eth_sq_find(&b->rig.hca, sq.num)->obj.uid = RIG_USER;
    begin(&wqe, key, 1, 0);
    put_mtt(&wqe, 0, page());
    post(&sq, &wqe);
    expect_refused(&sq, PRM_CQE_SYNDROME_MW_BIND_ERR);
    ck_assert(!writes(key, 0, "x"));
    eth_sq_find(&b->rig.hca, sq.num)->obj.uid = 0;
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_umr");
    TCase *tcase = tcase_create("eth_umr");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, pages_are_mapped_where_the_offset_says);
    tcase_add_loop_test(tcase, entries_may_name_other_keys, 0, 2);
    tcase_add_test(tcase, entries_may_be_in_memory);
    tcase_add_test(tcase, wqes_are_executed_in_order);
    tcase_add_test(tcase, frames_come_into_the_mapped_pages);
    tcase_add_test(tcase, a_queue_without_reg_umr_may_not);
    tcase_add_loop_test(tcase, umrs_that_cannot_be_are_refused, 0, 9);
    tcase_add_test(tcase, a_user_context_names_no_pages);
    suite_add_tcase(suite, tcase);
    return suite;
}
