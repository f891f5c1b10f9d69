/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests commands on PDs, UARs, EQs, CQs, mkeys and Q counters, from the command queue to host
 * memory. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/memory/mkey.h"
#include "model/queue/q_counter.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

/* uid of objects that the driver makes for everybody (MLX5_SHARED_RESOURCE_UID) */
#define SHARED_UID 0xffff
#define UMEM_PAGES 4
#define OUT_ROOM   0x400

static struct fwd d;
static uint32_t uarn, eqn; /* the kernel's; everybody may use the EQ */

static void *const out = (uint8_t[OUT_ROOM]){0}; /* of the last command */

/* Fails the test unless the command's status is want. */
static void run(const void *in, size_t in_len, size_t out_len, enum syn want)
{
    ck_assert_uint_le(out_len, OUT_ROOM);
    ck_assert_uint_eq(fwd_cmd(&d, in, in_len, out, out_len), want);
}

/* A command of 16 bytes, with perhaps a number at byte 8. Returns the number at byte 8 of the
 * output. */
static uint32_t small(uint16_t opcode, uint16_t uid, uint32_t num, enum syn want)
{
    struct prm_general_obj_in_cmd_hdr in[1] = {0};

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, opcode);
    PRM_SET(general_obj_in_cmd_hdr, in, uid, uid);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_id, num);
    run(in, sizeof(in), 16, want);
    return prm_load32(out + 8);
}

static uint32_t create_eq(uint16_t uid, enum syn want)
{
    uint8_t in_bytes[PRM_SIZE(create_eq_in) + 8] = {0};
    void *in = in_bytes;
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);

    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    PRM_SET(create_eq_in, in, uid, uid);
    PRM_SET(eqc, eqc, log_eq_size, 6);
    PRM_SET(eqc, eqc, uar_page, uarn);
    PRM_SET(eqc, eqc, intr, 2);
    prm_store64(PRM_PTR_AT(create_eq_in, in, pas, 0), fake_host_alloc(&d.host, 4096, 4096));
    run(in, sizeof(in_bytes), PRM_SIZE(create_eq_out), want);
    return PRM_GET(create_eq_out, out, eq_number);
}

static void setup(void)
{
    fwd_init(&d);
    fwd_bring_up(&d);
    uarn = small(PRM_CMD_OP_ALLOC_UAR, 0, 0, SYN_OK);
    eqn = create_eq(SHARED_UID, SYN_OK);
}

static void teardown(void)
{
    fwd_clear(&d);
}

static uint16_t create_uctx(void)
{
    struct prm_create_uctx_in in[1] = {0};

    PRM_SET(create_uctx_in, in, opcode, PRM_CMD_OP_CREATE_UCTX);
    run(in, sizeof(in), PRM_SIZE(create_uctx_out), SYN_OK);
    return PRM_GET(create_uctx_out, out, uid);
}

/* Makes a umem of pages that are not contiguous; pages[i] receives the bus address of each. */
static uint32_t create_umem(uint16_t uid, uint32_t page_offset, uint64_t pages[UMEM_PAGES])
{
    uint8_t in_bytes[PRM_SIZE(create_umem_in) + 8 * UMEM_PAGES] = {0};
    void *in = in_bytes;
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);

    PRM_SET(create_umem_in, in, opcode, PRM_CMD_OP_CREATE_UMEM);
    PRM_SET(create_umem_in, in, uid, uid);
    PRM_SET(umem, umem, page_offset, page_offset);
    PRM_SET(umem, umem, num_of_mtt, UMEM_PAGES);
    for (unsigned i = 0; i < UMEM_PAGES; i++) {
        pages[i] = fake_host_alloc(&d.host, 4096, 8192);
        prm_store64(PRM_PTR_AT(umem, umem, mtt, i), pages[i]);
    }
    run(in, sizeof(in_bytes), PRM_SIZE(create_umem_out), SYN_OK);
    return PRM_GET(create_umem_out, out, umem_id);
}

/* -- numbers ---------------------------------------------------------------------------------- */

START_TEST(numbers_come_and_go)
{
    static const struct {
        uint16_t alloc, dealloc;
        enum syn gone;
    } kinds[] = {
        {PRM_CMD_OP_ALLOC_PD, PRM_CMD_OP_DEALLOC_PD, SYN_NO_PD},
        {PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN, PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, SYN_NO_TD},
        {PRM_CMD_OP_ALLOC_XRCD, PRM_CMD_OP_DEALLOC_XRCD, SYN_NO_XRCD},
        {PRM_CMD_OP_ALLOC_UAR, PRM_CMD_OP_DEALLOC_UAR, SYN_NO_UAR},
        {PRM_CMD_OP_ALLOC_Q_COUNTER, PRM_CMD_OP_DEALLOC_Q_COUNTER, SYN_NO_Q_COUNTER},
    };
    uint16_t uid = create_uctx(), other = create_uctx();

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        uint32_t a = small(kinds[i].alloc, 0, 0, SYN_OK);
        uint32_t b = small(kinds[i].alloc, uid, 0, SYN_OK);

        ck_assert_uint_ne(a, 0);
        ck_assert_uint_ne(a, b);
        small(kinds[i].dealloc, uid, a, SYN_BAD_UID);
        small(kinds[i].dealloc, other, b, SYN_BAD_UID);
        small(kinds[i].dealloc, uid, b, SYN_OK);
        small(kinds[i].dealloc, uid, b, kinds[i].gone);
        small(kinds[i].dealloc, 0, a, SYN_OK);
    }
}
END_TEST

/* -- event queues ----------------------------------------------------------------------------- */

START_TEST(eq_answers_query_and_generated_event)
{
    uint8_t in_bytes[PRM_SIZE(gen_eqe_in)] = {0};
    void *in = in_bytes;
    struct prm_eqc *eqc = PRM_PTR(query_eq_out, out, eq_context_entry);

    fw_mmio_write(d.fw, uarn * 4096ull + 0x40, eqn << 24, 4);
    small(PRM_CMD_OP_QUERY_EQ, 0, eqn, SYN_OUT_LEN);
    PRM_SET(query_eq_in, in, opcode, PRM_CMD_OP_QUERY_EQ);
    PRM_SET(query_eq_in, in, eq_number, eqn);
    run(in, PRM_SIZE(query_eq_in), PRM_SIZE(query_eq_out), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, st), PRM_EQC_ST_ARMED);

    PRM_SET(gen_eqe_in, in, opcode, PRM_CMD_OP_GEN_EQE);
    PRM_SET(eqe, PRM_PTR(gen_eqe_in, in, eqe), event_type, PRM_EVENT_TYPE_GENERAL_EVENT);
    run(in, sizeof(in_bytes), PRM_SIZE(gen_eq_out), SYN_OK);
    ck_assert_uint_eq(d.host.irqs[2], 1);

    memset(in, 0, sizeof(in_bytes));
    PRM_SET(query_eq_in, in, opcode, PRM_CMD_OP_QUERY_EQ);
    PRM_SET(query_eq_in, in, eq_number, eqn);
    run(in, PRM_SIZE(query_eq_in), PRM_SIZE(query_eq_out), SYN_OK);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, producer_counter), 1);
    ck_assert_uint_eq(PRM_GET(eqc, eqc, st), PRM_EQC_ST_FIRED);
    small(PRM_CMD_OP_DESTROY_EQ, 0, eqn, SYN_OK);
    small(PRM_CMD_OP_DESTROY_EQ, 0, eqn, SYN_NO_EQ);
}
END_TEST

/* An EQ's ring is given by bus addresses, which a process may not choose. */
START_TEST(user_context_creates_no_eq)
{
    create_eq(create_uctx(), SYN_EQ_UID);
}
END_TEST

/* -- completion queues ------------------------------------------------------------------------ */

static void post(uint32_t cqn, uint16_t wqe_counter)
{
    struct prm_cqe64 cqe[1] = {0};

    PRM_SET(cqe64, cqe, wqe_counter, wqe_counter);
    cq_post(&d.fw->hca, cq_find(&d.fw->hca, cqn), cqe, false);
}

static uint32_t cqe_counter(uint64_t addr)
{
    return PRM_GET(cqe64, fake_host_ptr(&d.host, addr, 64), wqe_counter);
}

static void fill_cqc(struct prm_cqc *cqc, unsigned log_size, uint32_t uar, uint64_t dbr)
{
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, uar_page, uar);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_addr, dbr);
}

START_TEST(cq_lives_by_commands)
{
    uint8_t in_bytes[PRM_SIZE(create_cq_in) + 8] = {0};
    void *in = in_bytes;
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint64_t ring = fake_host_alloc(&d.host, 4096, 4096), next, dbr;
    uint32_t cqn;

    dbr = fake_host_alloc(&d.host, 8, 8);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    fill_cqc(cqc, 3, uarn, dbr);
    PRM_SET(cqc, cqc, page_offset, 5); /* 64ths of a page */
    run(in, PRM_SIZE(create_cq_in), PRM_SIZE(create_cq_out), SYN_BAD_PAS);
    prm_store64(PRM_PTR_AT(create_cq_in, in, pas, 0), ring);
    run(in, sizeof(in_bytes), PRM_SIZE(create_cq_out), SYN_OK);
    cqn = PRM_GET(create_cq_out, out, cqn);
    post(cqn, 77);
    ck_assert_uint_eq(cqe_counter(ring + 5 * 64), 77);

    /* armed behind the producer, in the BAR: the EQ's vector at once */
    fw_mmio_write(d.fw, uarn * 4096ull + 0x40, eqn << 24, 4);
    fw_mmio_write(d.fw, uarn * 4096ull + 0x20, cqn, 8);
    ck_assert_uint_eq(d.host.irqs[2], 1);

    memset(in, 0, sizeof(in_bytes));
    next = fake_host_alloc(&d.host, 4096, 4096);
    PRM_SET(modify_cq_in, in, opcode, PRM_CMD_OP_MODIFY_CQ);
    PRM_SET(modify_cq_in, in, op_mod, 2);
    PRM_SET(modify_cq_in, in, cqn, cqn);
    run(in, sizeof(in_bytes), PRM_SIZE(modify_cq_out), SYN_BAD_OP_MOD);
    PRM_SET(modify_cq_in, in, op_mod, PRM_MODIFY_CQ_OP_RESIZE_CQ);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, CQ_RESIZE_ALL);
    PRM_SET(cqc, cqc, log_cq_size, 6);
    prm_store64(PRM_PTR_AT(modify_cq_in, in, pas, 0), next);
    run(in, sizeof(in_bytes), PRM_SIZE(modify_cq_out), SYN_OK);
    post(cqn, 78);
    ck_assert_uint_eq(cqe_counter(next + 2 * 64), 78);

    PRM_SET(modify_cq_in, in, op_mod, 0);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_MODIFY_CQ_PERIOD);
    PRM_SET(cqc, cqc, cq_period, 33);
    run(in, PRM_SIZE(modify_cq_in), PRM_SIZE(modify_cq_out), SYN_OK);

    memset(in, 0, sizeof(in_bytes));
    PRM_SET(query_cq_in, in, opcode, PRM_CMD_OP_QUERY_CQ);
    PRM_SET(query_cq_in, in, cqn, cqn);
    run(in, PRM_SIZE(query_cq_in), PRM_SIZE(query_cq_out), SYN_OK);
    cqc = PRM_PTR(query_cq_out, out, cq_context);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, log_cq_size), 6);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, page_offset), 0);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, cq_period), 33);
    ck_assert_uint_eq(PRM_GET(cqc, cqc, producer_counter), 3);
    small(PRM_CMD_OP_DESTROY_EQ, 0, eqn, SYN_IN_USE);
    small(PRM_CMD_OP_DESTROY_CQ, 0, cqn, SYN_OK);
    small(PRM_CMD_OP_DESTROY_EQ, 0, eqn, SYN_OK);
}
END_TEST

/* DevX: ring and doorbell record in a umem of the context. */
START_TEST(cq_may_lie_in_a_umem)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint16_t uid = create_uctx(), other = create_uctx();
    uint32_t uar = small(PRM_CMD_OP_ALLOC_UAR, uid, 0, SYN_OK), umem, cqn;
    uint64_t pages[UMEM_PAGES];

    umem = create_umem(uid, 0, pages);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, uid, uid);
    PRM_SET(create_cq_in, in, cq_umem_valid, 1);
    PRM_SET(create_cq_in, in, cq_umem_id, umem);
    PRM_SET(create_cq_in, in, cq_umem_offset, 4096);
    fill_cqc(cqc, 7, uar, 64);
    PRM_SET(cqc, cqc, dbr_umem_valid, 1);
    PRM_SET(cqc, cqc, dbr_umem_id, umem);
    run(in, sizeof(in), PRM_SIZE(create_cq_out), SYN_OK);
    cqn = PRM_GET(create_cq_out, out, cqn);
    for (unsigned i = 0; i < 128; i++) {
        post(cqn, i);
    }
    ck_assert_uint_eq(cqe_counter(pages[1] + 63 * 64), 63);
    ck_assert_uint_eq(cqe_counter(pages[2] + 63 * 64), 127);
    prm_store32(fake_host_ptr(&d.host, pages[0] + 64, 4), 10); /* room again */
    post(cqn, 200);
    ck_assert_uint_eq(cqe_counter(pages[1]), 200);
    small(PRM_CMD_OP_DESTROY_UMEM, uid, umem, SYN_IN_USE);

    PRM_SET(create_cq_in, in, cq_umem_offset, 2 * 4096 + 64);
    run(in, sizeof(in), PRM_SIZE(create_cq_out), SYN_UMEM_RANGE);
    PRM_SET(create_cq_in, in, cq_umem_offset, 32); /* a CQE must not lie across pages */
    run(in, sizeof(in), PRM_SIZE(create_cq_out), SYN_BAD_PAS);
    PRM_SET(create_cq_in, in, cq_umem_offset, 0);
    PRM_SET(create_cq_in, in, uid, other);
    run(in, sizeof(in), PRM_SIZE(create_cq_out), SYN_BAD_UID);
    small(PRM_CMD_OP_DESTROY_CQ, other, cqn, SYN_BAD_UID);
    small(PRM_CMD_OP_DESTROY_CQ, uid, cqn, SYN_OK);
    small(PRM_CMD_OP_DESTROY_UMEM, uid, umem, SYN_OK);
}
END_TEST

/* -- memory keys ------------------------------------------------------------------------------ */

static void fill_mkc(struct prm_mkc *mkc, uint32_t pdn, uint64_t start, uint64_t len,
                     unsigned octwords)
{
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, 0xab);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, start);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, octwords);
}

static uint8_t byte_at(uint32_t index, uint32_t pdn, uint64_t va)
{
    uint8_t byte = 0xee;

    ck_assert_int_eq(mkey_read(&d.fw->hca, index << 8 | 0xab, pdn, va, &byte, 1, MEM_LOCAL_READ),
                     MEM_OK);
    return byte;
}

START_TEST(mkey_lives_by_commands)
{
    uint8_t in_bytes[PRM_SIZE(create_mkey_in) + 16] = {0};
    void *in = in_bytes;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint64_t page = fake_host_alloc(&d.host, 4096, 4096);
    uint32_t pdn = small(PRM_CMD_OP_ALLOC_PD, 0, 0, SYN_OK), index;

    *(uint8_t *)fake_host_ptr(&d.host, page + 0x10, 1) = 42;
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    fill_mkc(mkc, pdn, 0x7010, 100, 1);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 2); /* more than there is */
    run(in, sizeof(in_bytes), PRM_SIZE(create_mkey_out), SYN_MKEY_XLT);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 1);
    prm_store64(PRM_PTR_AT(create_mkey_in, in, klm_pas_mtt, 0), page);
    run(in, sizeof(in_bytes), PRM_SIZE(create_mkey_out), SYN_OK);
    index = PRM_GET(create_mkey_out, out, mkey_index);
    ck_assert_uint_eq(byte_at(index, pdn, 0x7010), 42);
    small(PRM_CMD_OP_DEALLOC_PD, 0, pdn, SYN_IN_USE);

    memset(in, 0, sizeof(in_bytes));
    PRM_SET(query_mkey_in, in, opcode, PRM_CMD_OP_QUERY_MKEY);
    PRM_SET(query_mkey_in, in, mkey_index, index);
    run(in, PRM_SIZE(query_mkey_in), PRM_SIZE(query_mkey_out), SYN_OK);
    mkc = PRM_PTR(query_mkey_out, out, memory_key_mkey_entry);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, len), 100);
    ck_assert_uint_eq(PRM_GET(mkc, mkc, mkey_7_0), 0xab);
    small(PRM_CMD_OP_DESTROY_MKEY, 0, index, SYN_OK);
    small(PRM_CMD_OP_DESTROY_MKEY, 0, index, SYN_NO_MKEY);
    small(PRM_CMD_OP_DEALLOC_PD, 0, pdn, SYN_OK);
}
END_TEST

/* DevX: the key covers a umem, from an offset on. */
START_TEST(mkey_may_cover_a_umem)
{
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint16_t uid = create_uctx();
    uint32_t pdn = small(PRM_CMD_OP_ALLOC_PD, uid, 0, SYN_OK), umem, index;
    uint64_t pages[UMEM_PAGES];

    umem = create_umem(uid, 0x30, pages);
    for (unsigned i = 0; i < UMEM_PAGES; i++) {
        memset(fake_host_ptr(&d.host, pages[i], 4096), 10 + i, 4096);
    }
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, in, uid, uid);
    PRM_SET(create_mkey_in, in, mkey_umem_valid, 1);
    PRM_SET(create_mkey_in, in, mkey_umem_id, umem);
    PRM_SET(create_mkey_in, in, mkey_umem_offset, 0x1000); /* 0x30 in page 1 */
    fill_mkc(mkc, pdn, 0x9030, 0x1800, 1);
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_OK);
    index = PRM_GET(create_mkey_out, out, mkey_index);
    ck_assert_uint_eq(byte_at(index, pdn, 0x9030), 11);
    ck_assert_uint_eq(byte_at(index, pdn, 0x9fff), 11);
    ck_assert_uint_eq(byte_at(index, pdn, 0xa000), 12);

    fill_mkc(mkc, pdn, 0x9031, 0x800, 1); /* begins elsewhere in its page */
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_UMEM_RANGE);
    fill_mkc(mkc, pdn, 0x9030, 0x3000, 2); /* longer than the umem */
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_UMEM_RANGE);
    fill_mkc(mkc, pdn, 0x9030, UINT64_MAX, 2);
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_UMEM_RANGE);
    fill_mkc(mkc, pdn, 0x9030, 0x2fd0, 1); /* three pages in room for two */
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_MKEY_XLT);
    fill_mkc(mkc, pdn, 0x9030, 0x800, 1);
    PRM_SET(mkc, mkc, log_page_size, 13); /* larger than the umem's pages */
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_MKEY_PAGE_SIZE);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_PA);
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_MKEY_MODE);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(create_mkey_in, in, uid, create_uctx()); /* another's umem */
    run(in, sizeof(in), PRM_SIZE(create_mkey_out), SYN_BAD_UID);
}
END_TEST

/* -- Q counters ------------------------------------------------------------------------------- */

START_TEST(q_counters_are_read_and_cleared)
{
    uint32_t id = small(PRM_CMD_OP_ALLOC_Q_COUNTER, SHARED_UID, 0, SYN_OK);
    struct prm_query_q_counter_in in[1] = {0};

    q_counter_get(&d.fw->hca, id)->out_of_sequence = (5ull << 32) + 3;
    q_counter_get(&d.fw->hca, id)->req_cqe_flush_error = 9;
    q_counter_get(&d.fw->hca, 250)->out_of_sequence++; /* no such set: counted nowhere */
    PRM_SET(query_q_counter_in, in, opcode, PRM_CMD_OP_QUERY_Q_COUNTER);
    PRM_SET(query_q_counter_in, in, counter_set_id, id);
    PRM_SET(query_q_counter_in, in, clear, 1);
    run(in, sizeof(in), PRM_SIZE(query_q_counter_out), SYN_OK);
    ck_assert_uint_eq(PRM_GET(query_q_counter_out, out, out_of_sequence), 3);
    ck_assert_uint_eq(PRM_GET(query_q_counter_out, out, req_cqe_flush_error), 9);
    run(in, sizeof(in), PRM_SIZE(query_q_counter_out), SYN_OK);
    ck_assert_uint_eq(PRM_GET(query_q_counter_out, out, out_of_sequence), 0);
    PRM_SET(query_q_counter_in, in, aggregate, 1);
    run(in, sizeof(in), PRM_SIZE(query_q_counter_out), SYN_Q_COUNTER_VPORT);
    PRM_SET(query_q_counter_in, in, aggregate, 0);
    PRM_SET(query_q_counter_in, in, counter_set_id, 250);
    run(in, sizeof(in), PRM_SIZE(query_q_counter_out), SYN_NO_Q_COUNTER);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw-resources");
    TCase *tc = tcase_create("commands");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, numbers_come_and_go);
    tcase_add_test(tc, eq_answers_query_and_generated_event);
    tcase_add_test(tc, user_context_creates_no_eq);
    tcase_add_test(tc, cq_lives_by_commands);
    tcase_add_test(tc, cq_may_lie_in_a_umem);
    tcase_add_test(tc, mkey_lives_by_commands);
    tcase_add_test(tc, mkey_may_cover_a_umem);
    tcase_add_test(tc, q_counters_are_read_and_cleared);
    suite_add_tcase(s, tc);
    return s;
}
