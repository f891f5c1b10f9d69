/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements tags_bench.h: an XRQ as a driver makes it. */
#include <string.h>
#include "tests/unit/tags_bench.h"

struct bench b;
struct bench_cq cq;
struct bench_qp data_qp, cmd_qp;
struct srq *xrq;
uint64_t ring, dbr, mem, unexpected;
uint32_t key;
uint16_t posted, cmd_posted;
uint32_t psn;
uint8_t message[4 * MTU];

static struct srq_attr xrq_attr(void)
{
    static struct prm_tag_matching_topology_context tags[1];

    PRM_SET(tag_matching_topology_context, tags, log_matching_list_sz, LOG_TAGS);
    return (struct srq_attr){
        .kind = OBJ_XRQ,
        .pdn = b.pdn,
        .cqn = cq.cqn,
        .user_index = USER_INDEX,
        .log_size = LOG_SIZE,
        .log_stride = LOG_STRIDE,
        .buf = bench_buf(ring, 1 << (LOG_SIZE + LOG_STRIDE)),
        .dbr = dbr,
        .tags = tags,
        .fetches = true,
    };
}

static void make_xrq(void)
{
    struct srq_attr attr;

    ring = fake_host_alloc(&b.host, 4096, 4096);
    dbr = fake_host_alloc(&b.host, 8, 8);
    mem = fake_host_alloc(&b.host, ROOM * 16, 4096);
    unexpected = fake_host_alloc(&b.host, ROOM << LOG_SIZE, 4096);
    key = bench_mkey(&b, 0, 1ull << 40, MEM_LOCAL_READ | MEM_LOCAL_WRITE);
    for (unsigned i = 0; i < 1 << LOG_SIZE; i++) {
        void *slot = fake_host_ptr(&b.host, ring + ((uint64_t)i << LOG_STRIDE), 1 << LOG_STRIDE);
        void *seg = slot + PRM_SIZE(wqe_srq_next_seg);

        PRM_SET(wqe_srq_next_seg, slot, next_wqe_index, (i + 1) % (1 << LOG_SIZE));
        PRM_SET(wqe_data_seg, seg, byte_count, ROOM);
        PRM_SET(wqe_data_seg, seg, lkey, key);
        PRM_SET(wqe_data_seg, seg, addr, unexpected + i * ROOM);
        PRM_SET(wqe_data_seg, seg + 16, lkey, WQE_TERMINATOR_LKEY);
    }
    attr = xrq_attr();
    ck_assert_int_eq(srq_create(&b.hca, &attr, &xrq), SYN_OK);
}

void post_wqes(unsigned n)
{
    posted = (uint16_t)(posted + n);
    PRM_SET(srq_dbr, fake_host_ptr(&b.host, dbr, 4), counter, posted);
}

static uint8_t data_cs_res;

void make_data_qp(bool fetches)
{
    struct bench_qp_attr attr = {
        .log_rra_max = 2,
        .srqn = xrq->obj.num,
        .no_sq = true,
        .fetches = fetches,
        .cs_res = data_cs_res,
    };

    bench_qp_rts(&b, &attr, &data_qp);
    psn = 0;
}

void tags_setup(void)
{
    tags_setup_in_cqe(0, false);
}

void tags_setup_in_cqe(uint8_t cs_res, bool is_128)
{
    struct bench_qp_attr attr = {.is_to_self = true};

    data_cs_res = cs_res;
    bench_init(&b);
    if (is_128) {
        bench_cq128(&b, 6, &cq);
    } else {
        bench_cq(&b, 6, &cq);
    }
    posted = cmd_posted = 0;
    make_xrq();
    attr.srqn = xrq->obj.num;
    attr.cqn = cq.cqn;
    bench_qp_rts(&b, &attr, &cmd_qp);
    make_data_qp(true);
    for (size_t i = 0; i < sizeof(message); i++) {
        message[i] = (uint8_t)(i * 7 + i / 256 + 3);
    }
}

void tags_teardown(void)
{
    bench_clear(&b);
}

/* -- software's side --------------------------------------------------------------------------- */

void post_change(const struct change *c)
{
    void *wqe = fake_host_ptr(&b.host, cmd_qp.ring + 64u * (cmd_posted & 15), 128);
    struct prm_wqe_tm_seg *seg = wqe + PRM_SIZE(wqe_ctrl_seg);
    bool has_data = c->op == PRM_TM_OPCODE_APPEND;
    unsigned ds = 3 + has_data + c->segs;

    memset(wqe, 0, 64);
    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_TAG_MATCHING);
    PRM_SET(wqe_ctrl_seg, wqe, wqe_index, cmd_posted);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, cmd_qp.qpn);
    PRM_SET(wqe_ctrl_seg, wqe, ds, ds);
    PRM_SET(wqe_tm_seg, seg, opcode, c->op);
    PRM_SET(wqe_tm_seg, seg, cqe_req, !c->silent);
    PRM_SET(wqe_tm_seg, seg, has_sw_cnt, !c->no_count);
    PRM_SET(wqe_tm_seg, seg, sw_cnt, c->count);
    PRM_SET(wqe_tm_seg, seg, index, c->index);
    PRM_SET(wqe_tm_seg, seg, append_tag, c->tag);
    PRM_SET(wqe_tm_seg, seg, append_mask, c->mask);
    for (unsigned i = 3; i < ds; i++) {
        void *data = wqe + 16 * i;

        PRM_SET(wqe_data_seg, data, byte_count, c->len);
        PRM_SET(wqe_data_seg, data, lkey, c->len ? key : WQE_TERMINATOR_LKEY);
        PRM_SET(wqe_data_seg, data, addr, c->addr);
    }
    cmd_posted++;
    PRM_SET(qp_dbr, fake_host_ptr(&b.host, cmd_qp.dbr, 8), send_counter, cmd_posted);
    requester_doorbell(cmd_qp.qp);
    bench_run(&b);
}

static const struct prm_cqe64 *told_cqe;

const struct prm_cqe64 *last_told(void)
{
    return told_cqe;
}

bool poll_told(struct told *told)
{
    const struct prm_cqe64 *cqe = bench_poll(&b, &cq);

    if (!cqe) {
        return false;
    }
    told_cqe = cqe;
    *told = (struct told){
        .opcode = PRM_GET(cqe64, cqe, opcode),
        .op = PRM_GET(cqe64, cqe, app_op),
        .handle = PRM_GET(cqe64, cqe, app_info),
        .index = PRM_GET(cqe64, cqe, wqe_counter),
        .bytes = PRM_GET(cqe64, cqe, byte_cnt),
        .tag = PRM_GET(tmh, PRM_PTR(cqe64, cqe, tmh), tag),
        .success = PRM_GET(cqe64, cqe, tm_success),
        .phase = PRM_GET(cqe64, cqe, hw_phase_cnt),
        .qpn = PRM_GET(cqe64, cqe, qpn),
    };
    told->failed =
        told->opcode == PRM_CQE_OPCODE_REQ_ERR || told->opcode == PRM_CQE_OPCODE_RESP_ERR;
    if (told->failed) {
        told->syndrome = PRM_GET(err_cqe, (const void *)cqe, syndrome);
    } else if (PRM_GET(cqe64, cqe, app)) {
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, app), PRM_CQE_APP_TAG_MATCHING);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), USER_INDEX);
        /* libmlx5 takes these bits for the flag of a route header in the buffer. */
        ck_assert(PRM_GET(cqe64, cqe, grh) == 0 ||
                  PRM_GET(cqe64, cqe, format) == PRM_CQE_FORMAT_INLINE_32);
    }
    return true;
}

struct told expect_told(uint8_t op, uint8_t opcode)
{
    struct told told;

    ck_assert(poll_told(&told));
    ck_assert_uint_eq(told.op, op);
    ck_assert_uint_eq(told.opcode, opcode);
    return told;
}

void expect_nothing(void)
{
    struct told told;

    ck_assert(!poll_told(&told));
}

uint16_t append(uint64_t tag, uint64_t mask, unsigned n, uint32_t len, uint16_t count)
{
    uint16_t handle = xrq->tags->append_next;
    struct told told;

    post_change(&(struct change){.op = PRM_TM_OPCODE_APPEND,
                                 .index = (uint16_t)((handle + 1) % TAGS),
                                 .count = count,
                                 .tag = tag,
                                 .mask = mask,
                                 .addr = mem + n * ROOM,
                                 .len = len});
    told = EXPECT(APPEND, NO_PACKET);
    ck_assert(told.success);
    ck_assert_uint_eq(told.handle, handle);
    ck_assert_uint_eq(told.phase, xrq->tags->hw_phase);
    ck_assert_uint_eq(told.qpn, cmd_qp.qpn);
    return handle;
}

/* -- the peer's side --------------------------------------------------------------------------- */

void put_header(uint8_t op, uint64_t tag)
{
    struct prm_tmh *tmh = (void *)message;

    memset(tmh, 0, sizeof(*tmh));
    PRM_SET(tmh, tmh, op, op);
    PRM_SET(tmh, tmh, app_ctx, 0xabcd);
    PRM_SET(tmh, tmh, tag, tag);
}

void rx(uint8_t bth_op, size_t at, size_t len)
{
    struct roce_packet pkt = bench_packet(&data_qp, BTH_RC | bth_op, psn);

    pkt.ackreq = true;
    bench_rx(&b, &pkt, message + at, len);
}

void expect_answer(uint8_t syndrome)
{
    struct roce_packet pkt;

    ck_assert(bench_tx(&b, &pkt));
    ck_assert_uint_eq(pkt.opcode, BTH_RC | BTH_ACK);
    ck_assert_uint_eq(pkt.aeth.syndrome, syndrome);
    ck_assert_uint_eq(pkt.psn, psn);
}

void send_one(uint8_t op, uint64_t tag, size_t len)
{
    put_header(op, tag);
    rx(BTH_SEND_ONLY, 0, len);
    expect_answer(ACK);
    psn++;
}

void send_eager(uint64_t tag, size_t len)
{
    send_one(PRM_TM_OP_EAGER, tag, sizeof(struct prm_tmh) + len);
}

void expect_bytes(uint64_t addr, size_t at, size_t len)
{
    ck_assert_mem_eq(fake_host_ptr(&b.host, addr, len), message + at, len);
}
