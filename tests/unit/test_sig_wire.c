/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests block signatures between two HCAs: keys that WQEs configure, as local and as remote keys,
 * with losses, and the completions of errors. The reference is sig_ref.h.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/core/pd.h"
#include "model/memory/mkey_priv.h"
#include "model/memory/psv.h"
#include "model/rdma/wqe_lines.h"
#include "tests/unit/lab.h"
#include "tests/unit/sig_ref.h"
#include "tests/unit/suite.h"

#define BLOCKS 20u
#define DATA   (BLOCKS * 512u)
#define FULL   (BLOCKS * 520u)

static struct lab *lab;
static struct lab_qp a, b;

static const struct ref none = {.kind = SIG_NONE};
static const struct ref dif = {SIG_T10_CRC, 512, false, true, 0x1234, 77};
static const struct ref other = {SIG_CRC64_XP10, 4048, true, false, 0, 0};

/* A key with signatures on one side. */
struct sig_key {
    struct lab_side *side;
    uint32_t key, psvs[PSV_MAX];
    uint64_t mem; /* its memory, at bus addresses */
    bool parity;
};

static void setup(void)
{
    lab = lab_new();
}

static void teardown(void)
{
    lab_free(lab);
}

static void connect(uint8_t mtu)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_path path = lab_path;

    attr.log_sq = 7;
    path.mtu = mtu;
    lab_qp_new(&lab->side[0], &attr, &a);
    lab_qp_new(&lab->side[1], &attr, &b);
    lab_connect(lab, &a, &b, &path);
}

static void make_key(struct lab_side *side, struct sig_key *k)
{
    struct prm_mkc mkc[1] = {0};

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, side->pdn);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 4);
    *k = (struct sig_key){.side = side};
    ck_assert_int_eq(mkey_create(&side->hca, 0, mkc, NULL, 0, false, &k->key), SYN_OK);
    k->key <<= 8;
    ck_assert_int_eq(psv_create(&side->hca, 0, side->pdn, 2, k->psvs), SYN_OK);
    k->mem = lab_mem(side, 2 * FULL, 0);
}

static bool poll(struct lab_side *side, struct lab_cqe *cqe, struct prm_sig_err_cqe *error)
{
    uint32_t slot = side->cq_ci % (1u << LAB_CQ_LOG);

    memcpy(error, lab_ptr(side, side->cq_ring + slot * 64ull, 64), 64);
    return lab_poll(side, cqe);
}

static void expect(struct lab_side *side, uint8_t opcode)
{
    struct lab_cqe cqe;

    ck_assert(lab_poll(side, &cqe));
    ck_assert_msg(cqe.opcode == opcode, "opcode %u, syndrome 0x%x", cqe.opcode, cqe.syndrome);
}

static void expect_silence(void)
{
    struct lab_cqe cqe;

    ck_assert(!lab_poll(&lab->side[0], &cqe));
    ck_assert(!lab_poll(&lab->side[1], &cqe));
}

static void post_psv(struct lab_qp *qp, uint32_t psvn, uint64_t value, bool unsignaled)
{
    struct prm_wqe_set_psv_seg psv[1] = {0};

    PRM_SET(wqe_set_psv_seg, psv, psv_num, psvn);
    PRM_SET(wqe_set_psv_seg, psv, transient_signature, value);
    lab_post(qp, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_SET_PSV,
                                  .operands = psv,
                                  .operands_len = sizeof(psv),
                                  .unsignaled = unsignaled});
}

/* Configures the key by a UMR with a descriptor. len: bytes of its memory. */
static void post_umr(struct lab_qp *qp, struct sig_key *k, const struct prm_bsf *bsf, uint64_t len,
                     bool is_inline)
{
    struct {
        struct prm_wqe_umr_ctrl_seg ctrl[1];
        struct prm_mkc mkc[1];
        struct prm_wqe_klm_seg klm[4];
        struct prm_bsf bsf[1];
    } umr = {0};
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR,
                        .imm = k->key,
                        .unsignaled = true,
                        .operands = &umr,
                        .operands_len = sizeof(umr)};

    k->parity = !k->parity;
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, inl, is_inline);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, xlt_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, bsf_octowords, 4);
#define MASK(x) 1ull << PRM_MKEY_MASK_##x
    PRM_SET(wqe_umr_ctrl_seg, umr.ctrl, mkey_mask,
            MASK(LEN) | MASK(FREE) | MASK(KEY) | MASK(BSF_EN) | MASK(EN_SIGERR) | MASK(LR) |
                MASK(LW) | MASK(RR) | MASK(RW));
#undef MASK
    PRM_SET(mkc, umr.mkc, len, len);
    PRM_SET(mkc, umr.mkc, lr, 1);
    PRM_SET(mkc, umr.mkc, lw, 1);
    PRM_SET(mkc, umr.mkc, rr, 1);
    PRM_SET(mkc, umr.mkc, rw, 1);
    PRM_SET(mkc, umr.mkc, bsf_en, 1);
    PRM_SET(mkc, umr.mkc, expected_sigerr_count, k->parity);
    PRM_SET(wqe_klm_seg, umr.klm, byte_count, (uint32_t)len);
    PRM_SET(wqe_klm_seg, umr.klm, mkey, k->side->key);
    PRM_SET(wqe_klm_seg, umr.klm, va, k->mem);
    *umr.bsf = *bsf;
    if (!is_inline) {
        uint64_t list = lab_mem(k->side, sizeof(umr.klm) + sizeof(umr.bsf), 0);

        memcpy(lab_ptr(k->side, list, 128), umr.klm, 128);
        wr.operands_len = offsetof(typeof(umr), klm);
        wr.sge[0] = (struct lab_sge){list, 128, 0};
        wr.num_sge = 1;
    }
    lab_post(qp, &wr);
}

/* Configures the key by the WQEs that rdma-core posts. len: bytes of its memory. */
static void configure(struct lab_qp *qp, struct sig_key *k, const struct ref *mem,
                      const struct ref *wire, uint64_t len, bool is_inline)
{
    struct prm_bsf bsf[1] = {0};

    ref_bsf(bsf, mem, wire, k->psvs);
    post_umr(qp, k, bsf, len, is_inline);
    post_psv(qp, k->psvs[0], ref_psv(mem), true);
    post_psv(qp, k->psvs[1], ref_psv(wire), false);
    lab_run(lab);
    expect(k->side, PRM_CQE_OPCODE_REQ);
}

static uint8_t data[DATA], in_memory[2 * FULL], on_wire[2 * FULL];

static void random_data(unsigned seed)
{
    srand(seed);
    for (size_t i = 0; i < DATA; i++) {
        data[i] = (uint8_t)rand();
    }
}

static void put(const struct sig_key *k, const void *bytes, size_t len)
{
    memcpy(lab_ptr(k->side, k->mem, len), bytes, len);
}

static void check_memory(struct lab_side *side, uint64_t addr, const void *want, size_t len)
{
    ck_assert_int_eq(memcmp(lab_ptr(side, addr, len), want, len), 0);
}

static struct lab_wr wr_of(uint8_t opcode, uint64_t addr, uint32_t len, uint32_t key)
{
    return (struct lab_wr){.opcode = opcode, .sge = {{addr, len, key}}, .num_sge = 1};
}

/* Drops one in twenty packets of either side. */
static bool lossy(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    (void)l;
    (void)from;
    (void)pkt;
    return rand() % 20 != 0;
}

/* Lets time pass until everything is sent again that was lost. */
static void settle(void)
{
    lab_run(lab);
    for (unsigned i = 0; i < 400; i++) {
        lab_advance(lab, LAB_ACK_TIMEOUT_NS);
    }
}

/* The local key of each operation, and the remote key of WRITE and READ, in memory and wire domains
 * of every combination, with and without losses: both ends have exactly what the reference says.
 * The MTU is smaller than a block, or ends inside of signatures. */
START_TEST(every_operation_carries_signatures)
{
    static const struct ref *const pairs[][2] = {
        {&none, &dif}, {&dif, &none}, {&dif, &dif}, {&dif, &other}, {&other, &dif}};
    static const uint8_t mtus[] = {PRM_QP_MTU_256, PRM_QP_MTU_1024, PRM_QP_MTU_4096};
    const struct ref *mem = pairs[_i % 5][0], *wire = pairs[_i % 5][1];
    size_t mem_len, wire_len;
    uint64_t plain;
    uint32_t local;
    struct sig_key k;
    struct lab_wr wr;

    connect(mtus[_i / 5 % 3]);
    random_data((unsigned)_i);
    mem_len = ref_layout(mem, data, DATA, in_memory);
    wire_len = ref_layout(wire, data, DATA, on_wire);
    local = (uint32_t)(mem->kind && wire->kind ? mem_len : DATA);
    make_key(&lab->side[0], &k);
    configure(&a, &k, mem, wire, mem_len, _i % 2);
    lab->tap = _i / 15 ? lossy : NULL;
    plain = lab_mem(&lab->side[1], wire_len, 0);

    put(&k, in_memory, mem_len);
    lab_post_recv(&b, plain, (uint32_t)wire_len);
    wr = wr_of(PRM_WQE_OPCODE_SEND, 0, local, k.key);
    lab_post(&a, &wr);
    settle();
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    expect(&lab->side[1], PRM_CQE_OPCODE_RESP_SEND);
    check_memory(&lab->side[1], plain, on_wire, wire_len);

    memset(lab_ptr(&lab->side[1], plain, wire_len), 0, wire_len);
    wr = wr_of(PRM_WQE_OPCODE_RDMA_WRITE, 0, local, k.key);
    wr.raddr = plain;
    wr.rkey = lab->side[1].key;
    lab_post(&a, &wr);
    settle();
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    check_memory(&lab->side[1], plain, on_wire, wire_len);

    memset(lab_ptr(&lab->side[0], k.mem, mem_len), 0, mem_len);
    wr.opcode = PRM_WQE_OPCODE_RDMA_READ;
    lab_post(&a, &wr);
    settle();
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    check_memory(&lab->side[0], k.mem, in_memory, mem_len);

    memset(lab_ptr(&lab->side[1], plain, wire_len), 0, wire_len);
    wr = wr_of(PRM_WQE_OPCODE_RDMA_READ, plain, (uint32_t)wire_len, 0);
    wr.rkey = k.key;
    lab_post(&b, &wr);
    settle();
    expect(&lab->side[1], PRM_CQE_OPCODE_REQ);
    check_memory(&lab->side[1], plain, on_wire, wire_len);

    memset(lab_ptr(&lab->side[0], k.mem, mem_len), 0, mem_len);
    wr.opcode = PRM_WQE_OPCODE_RDMA_WRITE;
    lab_post(&b, &wr);
    settle();
    expect(&lab->side[1], PRM_CQE_OPCODE_REQ);
    check_memory(&lab->side[0], k.mem, in_memory, mem_len);

    memset(lab_ptr(&lab->side[0], k.mem, mem_len), 0, mem_len);
    for (unsigned i = 0; i < 2; i++) { /* a second SEND: the positions begin again */
        struct lab_sge recv = {0, local, k.key};
        void *ring = lab_ptr(&lab->side[0], a.rq_ring, 64);

        lab_post_recv(&a, recv.addr, recv.len);
        PRM_SET(wqe_data_seg, ring + ((size_t)i << a.log_rq_stride), lkey, k.key);
        wr = wr_of(PRM_WQE_OPCODE_SEND, plain, (uint32_t)wire_len, 0);
        lab_post(&b, &wr);
        settle();
        expect(&lab->side[1], PRM_CQE_OPCODE_REQ);
        expect(&lab->side[0], PRM_CQE_OPCODE_RESP_SEND);
        check_memory(&lab->side[0], k.mem, in_memory, mem_len);
    }
    expect_silence();
}
END_TEST

/* The first error of a key has a CQE of its own, before the CQE of the work request, which
 * succeeds. A further error is not told until a UMR arms the key again. */
START_TEST(a_bad_signature_is_told_once)
{
    struct prm_sig_err_cqe error[1];
    struct lab_cqe cqe;
    struct sig_key k;
    uint64_t plain;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    random_data(1);
    ref_layout(&dif, data, DATA, in_memory);
    in_memory[3 * 520 + 100] ^= 1;
    in_memory[5 * 520 + 519] ^= 1;
    make_key(&lab->side[0], &k);
    plain = lab_mem(&lab->side[1], DATA, 0);
    put(&k, in_memory, FULL);
    for (unsigned round = 0; round < 3; round++) {
        if (round != 1) {
            configure(&a, &k, &dif, &none, FULL, true);
        }
        wr = wr_of(PRM_WQE_OPCODE_RDMA_WRITE, 0, DATA, k.key);
        wr.raddr = plain;
        wr.rkey = lab->side[1].key;
        lab_post(&a, &wr);
        lab_run(lab);
        if (round != 1) {
            ck_assert(poll(&lab->side[0], &cqe, error));
            ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_SIG_ERR);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, mkey), k.key);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, err_offset), 3 * 520);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, syndrome),
                              1 << PRM_SIG_ERR_SYNDROME_GUARD);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, domain), PRM_SIG_ERR_DOMAIN_MEMORY);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, sig_type), PRM_SIG_ERR_TYPE_BLOCK);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, qpn), a.qp->obj.num);
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, expected_trans_sig) >> 16,
                              in_memory[3 * 520 + 512] << 8 | in_memory[3 * 520 + 513]);
            data[3 * 512 + 100] ^= 1;
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, actual_trans_sig) >> 16,
                              ref_guard(&dif, data + 3 * 512, 512));
            ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, actual_reftag), 80);
            data[3 * 512 + 100] ^= 1;
        }
        expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
        expect_silence();
    }
    data[3 * 512 + 100] ^= 1; /* the transfer has taken place */
    check_memory(&lab->side[1], plain, data, DATA);
}
END_TEST

/* The receiver of a bad signature is told, on the CQ of its receives; also for a peer's WRITE. */
START_TEST(the_responder_finds_bad_signatures)
{
    struct prm_sig_err_cqe error[1];
    struct lab_cqe cqe;
    struct sig_key k;
    uint64_t plain;
    struct lab_wr wr;

    connect(PRM_QP_MTU_256);
    random_data(2);
    ref_layout(&dif, data, DATA, on_wire);
    on_wire[19 * 520 + 515] ^= 1;
    make_key(&lab->side[0], &k);
    plain = lab_mem(&lab->side[1], FULL, 0);
    memcpy(lab_ptr(&lab->side[1], plain, FULL), on_wire, FULL);
    for (unsigned round = 0; round < 2; round++) {
        configure(&a, &k, &none, &dif, DATA, true);
        wr = wr_of(round ? PRM_WQE_OPCODE_RDMA_WRITE : PRM_WQE_OPCODE_SEND, plain, FULL, 0);
        wr.rkey = k.key;
        if (!round) {
            lab_post_recv(&a, 0, DATA);
            PRM_SET(wqe_data_seg, lab_ptr(&lab->side[0], a.rq_ring, 64), lkey, k.key);
        }
        lab_post(&b, &wr);
        lab_run(lab);
        ck_assert(poll(&lab->side[0], &cqe, error));
        ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_SIG_ERR);
        ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, domain), PRM_SIG_ERR_DOMAIN_WIRE);
        ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, syndrome), 1 << PRM_SIG_ERR_SYNDROME_APPTAG);
        ck_assert_uint_eq(PRM_GET(sig_err_cqe, error, err_offset), 19 * 520);
        if (!round) {
            expect(&lab->side[0], PRM_CQE_OPCODE_RESP_SEND);
        }
        expect(&lab->side[1], PRM_CQE_OPCODE_REQ);
        expect_silence();
        check_memory(&lab->side[0], k.mem, data, DATA);
    }
}
END_TEST

/* qpc.drain_sigerr (rdma-core: test_mkey_sig_pipelining_bad): the error drains the send queue. The
 * WRITE ends, the SEND behind it does not start, and SQ_DRAINED tells. In RTS the SEND goes on. */
START_TEST(a_bad_signature_drains_the_send_queue)
{
    struct prm_sig_err_cqe error[1];
    struct lab_cqe cqe;
    struct sig_key k;
    uint64_t plain, reply;
    struct lab_wr wr;
    uint32_t num;
    uint8_t type;

    connect(PRM_QP_MTU_1024);
    PRM_SET(qpc, a.qp->qpc, drain_sigerr, 1);
    make_key(&lab->side[0], &k);
    configure(&a, &k, &dif, &none, FULL, true);
    plain = lab_mem(&lab->side[1], DATA, 3);
    reply = lab_mem(&lab->side[1], 64, 0);
    lab_post_recv(&b, reply, 64);
    wr = wr_of(PRM_WQE_OPCODE_RDMA_WRITE, 0, DATA, k.key);
    wr.raddr = plain;
    wr.rkey = lab->side[1].key;
    wr.unsignaled = true;
    lab_write_wqe(&a, &wr);
    wr = wr_of(PRM_WQE_OPCODE_SEND, k.mem, 16, 0);
    wr.fence = PRM_WQE_FM_FENCE;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert(lab_event(&lab->side[0], &type, &num));
    ck_assert_uint_eq(type, PRM_EVENT_TYPE_SQ_DRAINED);
    ck_assert_uint_eq(num, a.qp->obj.num);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQD);
    ck_assert(poll(&lab->side[0], &cqe, error));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_SIG_ERR);
    expect_silence();
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(&lab->side[1], plain, 1), 0); /* the WRITE took place */

    ck_assert_int_eq(lab_modify(&a, PRM_CMD_OP_SQD_RTS_QP, &lab_path, 0, &b), SYN_OK);
    lab_run(lab);
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    expect(&lab->side[1], PRM_CQE_OPCODE_RESP_SEND);
    expect_silence();
}
END_TEST

/* A READ whose data has a bad signature drains the queue as well, before a fenced SEND starts. */
START_TEST(bad_data_of_a_read_drains_the_send_queue)
{
    struct sig_key k;
    uint64_t plain;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    PRM_SET(qpc, a.qp->qpc, drain_sigerr, 1);
    make_key(&lab->side[0], &k);
    configure(&a, &k, &none, &dif, DATA, true);
    plain = lab_mem(&lab->side[1], FULL, 3);
    lab_post_recv(&b, plain, 64);
    wr = wr_of(PRM_WQE_OPCODE_RDMA_READ, 0, DATA, k.key);
    wr.raddr = plain;
    wr.rkey = lab->side[1].key;
    lab_write_wqe(&a, &wr);
    wr = wr_of(PRM_WQE_OPCODE_SEND, k.mem, 16, 0);
    wr.fence = PRM_WQE_FM_FENCE;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_SQD);
    expect(&lab->side[0], PRM_CQE_OPCODE_SIG_ERR);
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    expect_silence();
}
END_TEST

/* A CQ without room for the error fails like for any CQE, and the QP with it; as requester and as
 * responder, in the midst of a message. */
START_TEST(a_full_cq_fails_the_queue_pair)
{
    struct lab_qp_attr attr = lab_rc;
    struct lab_path path = lab_path;
    uint64_t ring, dbr, plain;
    struct lab_qp c, d;
    struct sig_key k;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    make_key(&lab->side[0], &k);
    configure(&a, &k, _i ? &none : &dif, _i ? &dif : &none, _i ? DATA : FULL, true);
    attr.cqn = lab_cq_new(&lab->side[0], 0, &ring, &dbr);
    lab_qp_new(&lab->side[0], &attr, &c);
    lab_qp_new(&lab->side[1], &lab_rc, &d);
    lab_connect(lab, &c, &d, &path);
    lab_post(&c, &(struct lab_wr){.opcode = PRM_WQE_OPCODE_NOP}); /* the CQ is full now */
    lab_run(lab);
    ck_assert_uint_eq(c.qp->state, PRM_QP_STATE_RTS);
    plain = lab_mem(&lab->side[1], FULL, 5);
    if (_i) {
        wr = wr_of(PRM_WQE_OPCODE_RDMA_WRITE, plain, FULL, 0);
        wr.rkey = k.key;
        lab_post(&d, &wr);
    } else {
        wr = wr_of(PRM_WQE_OPCODE_RDMA_WRITE, 0, DATA, k.key);
        wr.raddr = plain;
        wr.rkey = lab->side[1].key;
        lab_post(&c, &wr);
    }
    settle();
    ck_assert_uint_eq(c.qp->state, PRM_QP_STATE_ERR);
    ck_assert_ptr_null(lab->side[0].hca.sig_pending);
}
END_TEST

/* GET_PSV of n values of side 0 to memory. */
static struct lab_wr get_psv_wr(struct prm_wqe_get_psv_seg *seg, const uint32_t *psvn, unsigned n,
                                uint64_t to)
{
    memset(seg, 0, sizeof(*seg));
    PRM_SET(wqe_get_psv_seg, seg, num_psv, n);
    PRM_SET(wqe_get_psv_seg, seg, l_key, lab->side[0].key);
    PRM_SET(wqe_get_psv_seg, seg, va, to);
    for (unsigned i = 0; i < MIN(n, PSV_MAX); i++) {
        PRM_SET_AT(wqe_get_psv_seg, seg, psv_index, i, psvn[i]);
    }
    return (struct lab_wr){.opcode = PRM_WQE_OPCODE_GET_PSV, .operands = seg, .operands_len = 48};
}

/* The CRC32C of data behind two keys, as SPDK's accel_mlx5 has it computed: the last READ brings it
 * behind the data, or alone. SPDK takes it as a little-endian number. Then the PSV has the state.
 */
START_TEST(a_transaction_is_read_by_a_peer)
{
    static const struct ref crc = {.kind = SIG_CRC32C, .ones = true}, zeros = {.kind = SIG_CRC32C};
    const uint32_t lens[] = {6000, DATA - 6000};
    const bool alone = _i % 2;
    struct lab_side *peer = &lab->side[1];
    struct prm_wqe_get_psv_seg get[1];
    struct sig_key k[2];
    uint64_t to[2], crc_at, psv_at;
    const struct prm_wqe_set_psv_seg *psv;
    struct lab_wr wr;
    uint32_t want;

    connect(PRM_QP_MTU_1024);
    random_data((unsigned)_i);
    want = (uint32_t)ref_guard(&crc, data, DATA);
    crc_at = lab_mem(peer, 4, 0);
    psv_at = lab_mem(&lab->side[0], 16, 0xff);
    for (unsigned i = 0; i < 2; i++) {
        struct prm_bsf bsf[1] = {0};

        make_key(&lab->side[0], &k[i]);
        to[i] = lab_mem(peer, lens[i], 0);
        put(&k[i], data + i * lens[0], lens[i]);
        PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_EXTENDED);
        PRM_SET(bsf, bsf, check_byte_mask, 0xff);
        PRM_SET(bsf, bsf, raw_data_size, lens[i]);
        PRM_SET(bsf, bsf, w_t_init, i == 0);
        PRM_SET(bsf, bsf, w_t_check_gen, i == 1);
        PRM_SET(bsf, bsf, w_tfs, PRM_BSF_FORMAT_CRC32C);
        PRM_SET(bsf, bsf, w_t_psv, k[0].psvs[0]);
        post_umr(&a, &k[i], bsf, lens[i], true);
    }
    lab_run(lab);
    lab->tap = _i / 2 ? lossy : NULL;
    for (unsigned i = 0; i < 2; i++) {
        wr = wr_of(PRM_WQE_OPCODE_RDMA_READ, to[i], lens[i], 0);
        wr.rkey = k[i].key;
        if (i && !alone) {
            wr.sge[wr.num_sge++] = (struct lab_sge){crc_at, 4, 0};
        }
        lab_post(&b, &wr);
    }
    if (alone) {
        wr = wr_of(PRM_WQE_OPCODE_RDMA_READ, crc_at, 4, 0);
        wr.rkey = k[1].key;
        wr.raddr = lens[1];
        lab_post(&b, &wr);
    }
    settle();
    for (int i = 0; i < 2 + alone; i++) {
        expect(peer, PRM_CQE_OPCODE_REQ);
    }
    check_memory(peer, to[0], data, lens[0]);
    check_memory(peer, to[1], data + lens[0], lens[1]);
    want = GUINT32_TO_LE(want);
    check_memory(peer, crc_at, &want, 4);

    lab->tap = NULL;
    wr = get_psv_wr(get, k[0].psvs, 1, psv_at);
    lab_post(&a, &wr);
    lab_run(lab);
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    psv = lab_ptr(&lab->side[0], psv_at, 16);
    ck_assert_uint_eq(PRM_GET(wqe_set_psv_seg, psv, psv_num), k[0].psvs[0]);
    ck_assert_uint_eq(PRM_GET(wqe_set_psv_seg, psv, transient_signature) >> 32,
                      ~GUINT32_FROM_LE(want));

    /* SET_PSV begins another transaction with the second key */
    post_psv(&a, k[0].psvs[0], 0, false);
    lab_run(lab);
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    wr = wr_of(PRM_WQE_OPCODE_RDMA_READ, to[1], lens[1], 0);
    wr.sge[wr.num_sge++] = (struct lab_sge){crc_at, 4, 0};
    wr.rkey = k[1].key;
    lab_post(&b, &wr);
    lab_run(lab);
    expect(peer, PRM_CQE_OPCODE_REQ);
    want = GUINT32_TO_LE((uint32_t)ref_guard(&zeros, data + lens[0], lens[1]));
    check_memory(peer, crc_at, &want, 4);
    expect_silence();
}
END_TEST

/* Each value has the form in which SET_PSV brings it. */
START_TEST(values_are_written_one_behind_the_other)
{
    struct lab_side *side = &lab->side[0];
    struct prm_wqe_get_psv_seg get[1];
    uint32_t psvs[PSV_MAX];
    uint64_t to = lab_mem(side, 5 * 16, 0xaa);
    const struct prm_wqe_set_psv_seg *psv;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    ck_assert_int_eq(psv_create(&side->hca, 0, side->pdn, 4, psvs), SYN_OK);
    for (unsigned i = 0; i < 4; i++) {
        post_psv(&a, psvs[i], 0x1122334455667788 + i, true);
    }
    for (unsigned n = 1; n <= 4; n++) {
        memset(lab_ptr(side, to, 80), 0xaa, 80);
        wr = get_psv_wr(get, psvs, n, to);
        lab_post(&a, &wr);
        lab_run(lab);
        expect(side, PRM_CQE_OPCODE_REQ);
        psv = lab_ptr(side, to, 80);
        for (unsigned i = 0; i < n; i++) {
            ck_assert_uint_eq(PRM_GET(wqe_set_psv_seg, &psv[i], psv_num), psvs[i]);
            ck_assert_uint_eq(PRM_GET(wqe_set_psv_seg, &psv[i], syndrome), 0);
            ck_assert_uint_eq(PRM_GET(wqe_set_psv_seg, &psv[i], transient_signature),
                              0x1122334455667788 + i);
        }
        ck_assert_uint_eq(((const uint8_t *)psv)[16 * n], 0xaa);
    }
}
END_TEST

START_TEST(a_get_psv_that_is_not_legal_fails)
{
    static const uint8_t syndromes[] = {
        PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR,
        PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR,
        PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, PRM_CQE_SYNDROME_LOCAL_PROT_ERR,
        PRM_CQE_SYNDROME_LOCAL_PROT_ERR,
    };
    struct lab_side *side = &lab->side[0];
    struct prm_wqe_get_psv_seg get[1];
    uint32_t psvs[PSV_MAX], foreign[PSV_MAX], pdn;
    uint64_t to = lab_mem(side, 64, 0xaa);
    struct lab_cqe cqe;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    ck_assert_int_eq(psv_create(&side->hca, 0, side->pdn, 1, psvs), SYN_OK);
    ck_assert_int_eq(pd_alloc(&side->hca, 0, &pdn), SYN_OK);
    ck_assert_int_eq(psv_create(&side->hca, 0, pdn, 1, foreign), SYN_OK);
    wr = get_psv_wr(get, _i == 0 ? foreign : psvs, 1, to);
    switch (_i) {
    case 1:
        PRM_SET_AT(wqe_get_psv_seg, get, psv_index, 0, 0xffffff);
        break;
    case 2:
        PRM_SET(wqe_get_psv_seg, get, num_psv, 0);
        break;
    case 3:
        PRM_SET(wqe_get_psv_seg, get, num_psv, 5);
        break;
    case 4:
        wr.opmod = 1; /* of TLS */
        break;
    case 5:
        PRM_SET(wqe_get_psv_seg, get, l_key, 0x123456);
        break;
    case 6:
        PRM_SET(wqe_get_psv_seg, get, l_key, lab_mr(side, to, 15, 0x1f));
        break;
    }
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert(lab_poll(side, &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(cqe.syndrome, syndromes[_i]);
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(side, to, 1), 0xaa);
    ck_assert_int_eq(psv_destroy(&side->hca, 0, foreign[0]), SYN_OK);
    ck_assert_int_eq(pd_dealloc(&side->hca, 0, pdn), SYN_OK);
}
END_TEST

static bool note_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                       const struct mem_fault *fault)
{
    (void)pager;
    (void)qp;
    (void)fault;
    ck_assert_int_eq(side, FAULT_REQUESTER);
    return true;
}

/* A page that is missing parks the WQE, which is carried out when the page is there. */
START_TEST(a_missing_page_parks_a_get_psv)
{
    struct lab_side *side = &lab->side[0];
    struct pager pager = {.fault = note_fault};
    struct prm_wqe_get_psv_seg get[1];
    uint32_t psvs[PSV_MAX];
    uint64_t to = lab_mem(side, 16, 0xaa);
    uint64_t *entry, address;
    struct lab_wr wr;
    uint32_t key;

    connect(PRM_QP_MTU_1024);
    ck_assert_int_eq(psv_create(&side->hca, 0, side->pdn, 1, psvs), SYN_OK);
    key = lab_mr(side, to, 16, 0x1f);
    entry = &mkey_find(&side->hca, key >> 8)->mtt[0];
    address = *entry;
    *entry = 0;
    side->hca.pager = &pager;
    wr = get_psv_wr(get, psvs, 1, to);
    PRM_SET(wqe_get_psv_seg, get, l_key, key);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_silence();
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(side, to, 1), 0xaa);
    *entry = address;
    qp_resume(a.qp, FAULT_REQUESTER, false);
    lab_run(lab);
    expect(side, PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(*(uint8_t *)lab_ptr(side, to, 1), 0);
    side->hca.pager = NULL;
}
END_TEST

/* Drops all packets. */
static bool dead(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    (void)l;
    (void)from;
    (void)pkt;
    return false;
}

/* The elements of a list have the length that the keys give them, which is unknown when a key is
 * gone. A WQE that is sent again then fails like any WQE without its key. */
START_TEST(a_key_that_is_destroyed_in_use_is_a_protection_error)
{
    const bool reads = _i;
    struct lab_cqe cqe;
    struct sig_key k;
    struct lab_wr wr;

    connect(PRM_QP_MTU_1024);
    make_key(&lab->side[0], &k);
    configure(&a, &k, &none, &dif, DATA, true);
    wr = wr_of(reads ? PRM_WQE_OPCODE_RDMA_READ : PRM_WQE_OPCODE_RDMA_WRITE, 0, DATA, k.key);
    wr.raddr = lab_mem(&lab->side[1], FULL, 3);
    wr.rkey = lab->side[1].key;
    lab->tap = dead;
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_int_eq(mkey_destroy(&lab->side[0].hca, 0, k.key >> 8), SYN_OK);
    /* another WQE takes the place where the first one is kept */
    wr = wr_of(PRM_WQE_OPCODE_SEND, lab_mem(&lab->side[0], 16, 0), 16, 0);
    lab_post(&a, &wr);
    lab_run(lab);
    lab->tap = NULL;
    settle();
    ck_assert(lab_poll(&lab->side[0], &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    ck_assert_uint_eq(a.qp->state, PRM_QP_STATE_ERR);
}
END_TEST

/* Only the first packet of each message passes. */
static bool first_only(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    (void)l;
    (void)from;
    return pkt->opcode != BTH_SEND_MIDDLE && pkt->opcode != BTH_SEND_LAST; /* RC */
}

/* The same of a receive that a message has partly filled, and that the device reads again. */
START_TEST(a_key_of_a_receive_that_is_destroyed_is_a_protection_error)
{
    struct lab_path path = lab_path;
    struct lab_qp c, d;
    struct sig_key k;
    struct lab_cqe cqe;
    uint64_t plain, small;
    struct lab_wr wr;

    connect(PRM_QP_MTU_256);
    do { /* the receives of b and d have the same place */
        lab_qp_new(&lab->side[0], &lab_rc, &c);
        lab_qp_new(&lab->side[1], &lab_rc, &d);
    } while ((d.qp->obj.num - b.qp->obj.num) % WQE_LINES);
    lab_connect(lab, &c, &d, &path);
    make_key(&lab->side[1], &k);
    configure(&b, &k, &none, &dif, DATA, true);
    plain = lab_mem(&lab->side[0], FULL, 3);
    small = lab_mem(&lab->side[1], 64, 0);
    lab_post_recv(&b, 0, DATA);
    PRM_SET(wqe_data_seg, lab_ptr(&lab->side[1], b.rq_ring, 64), lkey, k.key);
    lab->tap = first_only;
    wr = wr_of(PRM_WQE_OPCODE_SEND, plain, FULL, 0);
    lab_post(&a, &wr);
    lab_run(lab);
    ck_assert_int_eq(mkey_destroy(&lab->side[1].hca, 0, k.key >> 8), SYN_OK);
    lab_post_recv(&d, small, 64); /* takes the place where the receive is kept */
    wr = wr_of(PRM_WQE_OPCODE_SEND, plain, 16, 0);
    lab_post(&c, &wr);
    lab_run(lab);
    expect(&lab->side[1], PRM_CQE_OPCODE_RESP_SEND);
    expect(&lab->side[0], PRM_CQE_OPCODE_REQ);
    lab->tap = NULL;
    settle();
    ck_assert(lab_poll(&lab->side[1], &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* A SET_PSV of a PSV that does not exist, or belongs to another PD, fails. */
START_TEST(only_a_psv_of_the_pd_can_be_set)
{
    uint32_t pdn, psvs[PSV_MAX];
    struct lab_cqe cqe;

    connect(PRM_QP_MTU_1024);
    ck_assert_int_eq(pd_alloc(&lab->side[0].hca, 0, &pdn), SYN_OK);
    ck_assert_int_eq(psv_create(&lab->side[0].hca, 0, pdn, 1, psvs), SYN_OK);
    post_psv(&a, _i ? psvs[0] : psvs[0] + 1, 5, true);
    lab_run(lab);
    ck_assert(lab_poll(&lab->side[0], &cqe));
    ck_assert_uint_eq(cqe.opcode, PRM_CQE_OPCODE_REQ_ERR);
    ck_assert_uint_eq(cqe.send_opcode, PRM_WQE_OPCODE_SET_PSV);
    ck_assert_uint_eq(cqe.syndrome, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    ck_assert_uint_eq(psv_find(&lab->side[0].hca, psvs[0], pdn)->value, 0);
    ck_assert_int_eq(psv_destroy(&lab->side[0].hca, 0, psvs[0]), SYN_OK);
    ck_assert_int_eq(pd_dealloc(&lab->side[0].hca, 0, pdn), SYN_OK);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("signatures on the wire");
    TCase *tc = tcase_create("sig_wire");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_operation_carries_signatures, 0, 30);
    tcase_add_test(tc, a_bad_signature_is_told_once);
    tcase_add_test(tc, the_responder_finds_bad_signatures);
    tcase_add_test(tc, a_bad_signature_drains_the_send_queue);
    tcase_add_test(tc, bad_data_of_a_read_drains_the_send_queue);
    tcase_add_loop_test(tc, a_full_cq_fails_the_queue_pair, 0, 2);
    tcase_add_loop_test(tc, a_key_that_is_destroyed_in_use_is_a_protection_error, 0, 2);
    tcase_add_test(tc, a_key_of_a_receive_that_is_destroyed_is_a_protection_error);
    tcase_add_loop_test(tc, only_a_psv_of_the_pd_can_be_set, 0, 2);
    tcase_add_loop_test(tc, a_transaction_is_read_by_a_peer, 0, 8);
    tcase_add_test(tc, values_are_written_one_behind_the_other);
    tcase_add_loop_test(tc, a_get_psv_that_is_not_legal_fails, 0, 7);
    tcase_add_test(tc, a_missing_page_parks_a_get_psv);
    suite_add_tcase(s, tc);
    return s;
}
