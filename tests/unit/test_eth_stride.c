/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests receive queues whose WQEs take many frames (striding), and linked lists of receive WQEs.
 * What a CQE says is read as the driver (mpwrq_get_cqe_*() of en_rx.c) and DPDK
 * (mlx5_rx_burst_mprq()) read it.
 */
#include <check.h>
#include <string.h>
#include "model/eth/eth_priv.h"
#include "model/eth/eth_queue.h"
#include "model/queue/q_counter.h"
#include "tests/programs/cqe_decoder.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/suite.h"

enum {
    LOG_NUM = 3, /* strides of a WQE */
    LOG_SIZE = 8,
    NUM = 1 << LOG_NUM,
    SIZE = 1 << LOG_SIZE,
    ROOM = NUM * SIZE,
    SLOTS = 1 << BENCH_LOG_RQ,
};

static struct bench *b;
static struct bench_queue rq;
static uint32_t counter_set;
static uint64_t memory[SLOTS]; /* of the WQE in each slot */

static void setup(void)
{
    b = bench_new();
    b->rig.hca.vport->uplink->mtu = 9000;
}

static void teardown(void)
{
    bench_free(b);
}

static bool is_list(void)
{
    return b->rq_type == PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ ||
           b->rq_type == PRM_WQ_TYPE_LINKED_LIST;
}

/* The context's values are log2 less 9 and less 6. */
static void put_strides(struct prm_rqc *rqc, int log_num, unsigned log_size)
{
    struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);

    PRM_SET(wq, wq, log_wqe_num_of_strides, (unsigned)(log_num - 9) & 0xf);
    PRM_SET(wq, wq, log_wqe_stride_size, log_size - 6);
}

/* Makes a queue that receives every frame. */
static void make(uint8_t type, bool shift)
{
    struct prm_rqc rqc[1] = {0};

    b->rq_type = type;
    ck_assert_int_eq(q_counter_alloc(&b->rig.hca, 0, &counter_set), SYN_OK);
    PRM_SET(rqc, rqc, counter_set_id, counter_set);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    put_strides(rqc, LOG_NUM, LOG_SIZE);
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), two_byte_shift_en, shift);
    bench_rq_new(b, rqc, &rq);
    bench_catch_all(b, bench_direct_tir(b, rq.num));
}

static void *slot_at(unsigned slot)
{
    return fake_host_ptr(&b->rig.host, rq.ring + slot % SLOTS * 64, 64);
}

/* Writes a WQE of len bytes into a slot; next is the slot that it names. */
static void write_wqe(unsigned slot, uint64_t addr, uint32_t len, unsigned next)
{
    struct prm_wqe_srq_next_seg *first = slot_at(slot);
    struct prm_wqe_data_seg *seg = (void *)(first + 1);

    memset(first, 0, 64);
    PRM_SET(wqe_srq_next_seg, first, next_wqe_index, next);
    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, RIG_RESD_LKEY);
    PRM_SET(wqe_data_seg, seg, addr, addr);
    PRM_SET(wqe_data_seg, seg + 1, lkey, WQE_TERMINATOR_LKEY);
    memory[slot] = addr;
}

static void tell(void)
{
    rq.pi++;
    PRM_SET(qp_dbr, fake_host_ptr(&b->rig.host, rq.dbr, 8), rcv_counter, rq.pi);
}

/* Posts the WQE of the next slot. */
static void post(void)
{
    unsigned slot = rq.pi % SLOTS;

    write_wqe(slot, bench_mem(b, NULL, ROOM), ROOM, (slot + 1) % SLOTS);
    tell();
}

static void receive(const uint8_t *frame, size_t len)
{
    bench_rx(b, frame, len);
}

/* A frame of this length, whose bytes depend on seed. */
static size_t fill(uint8_t *frame, size_t len, uint8_t seed)
{
    memset(frame, 0, 14);
    memcpy(frame, bench_mac, 6);
    for (size_t i = 14; i < len; i++) {
        frame[i] = (uint8_t)(seed + i * 7);
    }
    return len;
}

/* Expects the CQE of a frame at a stride of the WQE in a slot, and the frame there. */
static void expect_frame(unsigned slot, unsigned stride, const uint8_t *frame, size_t len,
                         unsigned shift)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq);
    unsigned strides = (unsigned)(len + shift + SIZE - 1) / SIZE;

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_id), slot);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), stride);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), strides << 16 | (len + shift));
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, qpn), 0xabcdef);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, srqn), BENCH_RQ_INDEX);
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, memory[slot % SLOTS] + stride * SIZE + shift, len),
                     frame, len);
}

static void expect_filler(unsigned slot, unsigned stride)
{
    const struct prm_cqe64 *cqe = bench_cqe(&rq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_id), slot);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), stride);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 1u << 31 | (NUM - stride) << 16);
}

/* Expects an error CQE about the WQE in a slot. */
static void expect_error(unsigned slot, uint8_t syndrome)
{
    const void *cqe = bench_cqe(&rq);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_ERR);
    ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), slot);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_id), slot);
}

static uint32_t state(void)
{
    struct prm_rqc rqc[1];

    ck_assert_int_eq(eth_rq_query(&b->rig.hca, rq.num, rqc), SYN_OK);
    return PRM_GET(rqc, rqc, state);
}

static uint64_t dropped(void)
{
    return q_counter_get(&b->rig.hca, counter_set)->out_of_buffer;
}

static const uint8_t both[] = {PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, PRM_WQ_TYPE_CYCLIC_STRIDING_RQ};

/* -- where frames go --------------------------------------------------------------------------- */

/* The WQE is passed when all its strides are reported. In a ring the number of a WQE runs on; in a
 * list it is the slot. */
START_TEST(frames_share_a_wqe_by_strides)
{
    static const size_t lens[] = {60, 256, 257, 1000}; /* 1, 1, 2 and 4 strides */
    uint8_t frame[1024];

    make(both[_i], false);
    for (unsigned wqe = 0; wqe < 3 * SLOTS; wqe++) {
        unsigned stride = 0, id = is_list() ? wqe % SLOTS : wqe;

        post();
        for (unsigned i = 0; i < G_N_ELEMENTS(lens); i++) {
            receive(frame, fill(frame, lens[i], (uint8_t)(wqe + i)));
            expect_frame(id, stride, frame, lens[i], 0);
            stride += (unsigned)(lens[i] + SIZE - 1) / SIZE;
        }
        ck_assert_uint_eq(stride, NUM);
    }
    receive(frame, fill(frame, 60, 0));
    bench_expect_none(&rq);
    ck_assert_uint_eq(dropped(), 1);
}
END_TEST

START_TEST(a_frame_that_does_not_fit_gets_a_filler)
{
    uint8_t frame[1100];

    make(both[_i], false);
    post();
    receive(frame, fill(frame, 1100, 1)); /* 5 of 8 strides */
    expect_frame(0, 0, frame, 1100, 0);
    /* the filler comes although there is no next WQE: only so this one becomes free */
    receive(frame, fill(frame, 800, 2));
    expect_filler(0, 5);
    bench_expect_none(&rq);
    ck_assert_uint_eq(dropped(), 1);
    receive(frame, fill(frame, 60, 3));
    bench_expect_none(&rq);
    ck_assert_uint_eq(dropped(), 2);
    post();
    post();
    receive(frame, fill(frame, 1100, 4));
    expect_frame(1, 0, frame, 1100, 0);
    receive(frame, fill(frame, 800, 5));
    expect_filler(1, 5);
    expect_frame(2, 0, frame, 800, 0);
}
END_TEST

/* two_byte_shift_en: "hardware pads 2 bytes of zeroes before writing the message to memory"
 * (mlx5dv_create_wq(3)). byte_cnt counts them: libmlx5 of MLNX_OFED 4.6 subtracts them
 * (poll_length()). */
START_TEST(two_bytes_may_be_left_before_each_frame)
{
    uint8_t frame[512], *stored;

    make(both[_i], true);
    post();
    stored = memset(fake_host_ptr(&b->rig.host, memory[0], ROOM), 0xee, ROOM);
    receive(frame, fill(frame, SIZE - 2, 1));
    expect_frame(0, 0, frame, SIZE - 2, 2);
    receive(frame, fill(frame, SIZE - 1, 2));
    expect_frame(0, 1, frame, SIZE - 1, 2);
    receive(frame, fill(frame, 60, 2));
    expect_frame(0, 3, frame, 60, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(prm_load16(stored + i * SIZE), 0);
    }
    ck_assert_uint_eq(stored[2 * SIZE + 1], 0xee); /* behind the second frame */
}
END_TEST

/* A WQE of several segments is one piece of memory for the strides. */
START_TEST(segments_of_a_wqe_are_one_memory)
{
    static const uint32_t lens[2] = {300, ROOM - 300};
    struct prm_wqe_data_seg *seg;
    uint8_t frame[600];
    uint64_t at[2];

    make(both[_i], false);
    post();
    seg = slot_at(0) + 16;
    for (unsigned i = 0; i < 2; i++) {
        at[i] = bench_mem(b, NULL, lens[i]);
        PRM_SET(wqe_data_seg, &seg[i], byte_count, lens[i]);
        PRM_SET(wqe_data_seg, &seg[i], lkey, RIG_RESD_LKEY);
        PRM_SET(wqe_data_seg, &seg[i], addr, at[i]);
    }
    PRM_SET(wqe_data_seg, &seg[2], lkey, WQE_TERMINATOR_LKEY);
    receive(frame, fill(frame, 60, 1));
    receive(frame, fill(frame, 600, 2));
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 0);
    bench_expect(&rq, PRM_CQE_OPCODE_RESP_SEND, 0, 1);
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, at[0] + SIZE, 44), frame, 44);
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, at[1], 556), frame + 44, 556);
}
END_TEST

/* The device takes the slots of a list in the order of the next segments, which the driver keeps
 * for the slots that it gives back (mlx5_wq_ll_pop()). */
START_TEST(a_list_is_taken_in_the_order_of_its_links)
{
    static const unsigned order[] = {0, 5, 2, 7, 1};
    uint8_t frame[1500];

    make(PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, false);
    for (unsigned i = 0; i < 4; i++) {
        write_wqe(order[i], bench_mem(b, NULL, ROOM), ROOM, order[i + 1]);
        tell();
    }
    for (unsigned i = 0; i < 4; i++) {
        receive(frame, fill(frame, 1500, (uint8_t)i)); /* 6 of 8 strides */
        if (i) {
            expect_filler(order[i - 1], 6);
        }
        expect_frame(order[i], 0, frame, 1500, 0);
    }
}
END_TEST

/* wq_type 0: a list whose WQEs take one frame each. */
START_TEST(a_plain_list_takes_one_frame_with_each_wqe)
{
    uint8_t frame[300];
    const struct prm_cqe64 *cqe;

    make(PRM_WQ_TYPE_LINKED_LIST, false);
    write_wqe(0, bench_mem(b, NULL, 300), 300, 6);
    tell();
    write_wqe(6, bench_mem(b, NULL, 300), 300, 1);
    tell();
    for (unsigned i = 0; i < 2; i++) {
        receive(frame, fill(frame, 300, (uint8_t)i));
        cqe = bench_cqe(&rq);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), i ? 6 : 0);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 300);
        ck_assert_mem_eq(fake_host_ptr(&b->rig.host, memory[i ? 6 : 0], 300), frame, 300);
    }
    receive(frame, fill(frame, 60, 0));
    ck_assert_uint_eq(dropped(), 1);
}
END_TEST

/* The device reads a WQE once. What software writes into it while it takes frames has no effect. */
START_TEST(a_wqe_that_changes_is_used_as_it_was)
{
    uint8_t frame[60];
    uint64_t first;

    make(both[_i], false);
    post();
    post();
    receive(frame, fill(frame, 60, 1));
    expect_frame(0, 0, frame, 60, 0);
    first = memory[0];
    write_wqe(0, FAKE_HOST_BASE + FAKE_HOST_SIZE - 10, 1u << 30, 7);
    memory[0] = first;
    for (unsigned i = 1; i < NUM; i++) {
        receive(frame, fill(frame, 60, (uint8_t)i));
        expect_frame(0, i, frame, 60, 0);
    }
    receive(frame, fill(frame, 60, 1));
    expect_frame(1, 0, frame, 60, 0);
}
END_TEST

/* A stripped tag needs no room, and a tag that stays does. */
START_TEST(strides_count_what_is_stored)
{
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .vlan = true, .payload = SIZE - 42};
    uint8_t frame[512];
    size_t len = bench_build(frame, &pkt);
    const struct prm_cqe64 *cqe;

    ck_assert_uint_eq(len, SIZE + 4);
    make(both[_i], false);
    post();
    receive(frame, len);
    cqe = bench_cqe(&rq);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, byte_cnt), 1 << 16 | SIZE);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, cv), 1);
    ck_assert_mem_eq(fake_host_ptr(&b->rig.host, memory[0] + 12, 4), frame + 16, 4);
}
END_TEST

/* -- what fails ----------------------------------------------------------------------------------
 */

/* Without a filler: the next frame that fits takes the next stride. */
START_TEST(a_frame_larger_than_a_wqe_is_dropped_and_counted)
{
    unsigned shift = _i & 2;
    size_t most = ROOM - shift;
    uint8_t frame[ROOM + 1];

    make(both[_i & 1], shift);
    post();
    post();
    receive(frame, fill(frame, most + 1, 1));
    bench_expect_none(&rq);
    receive(frame, fill(frame, 60, 1));
    expect_frame(0, 0, frame, 60, shift);
    receive(frame, fill(frame, most + 1, 1));
    bench_expect_none(&rq);
    ck_assert_uint_eq(b->rig.hca.vport->counters.rx_wqe_too_small, 2);
    receive(frame, fill(frame, 60, 1));
    expect_frame(0, 1, frame, 60, shift);
    receive(frame, fill(frame, most, 1));
    expect_filler(0, 2);
    expect_frame(1, 0, frame, most, shift);
    ck_assert_uint_eq(state(), PRM_RQC_STATE_RDY);
}
END_TEST

/* The strides of the context are more than the memory of the WQE. */
START_TEST(strides_beyond_the_memory_of_the_wqe_fail_the_queue)
{
    uint8_t frame[SIZE];

    make(both[_i], false);
    write_wqe(0, bench_mem(b, NULL, ROOM), 2 * SIZE + 59, 1);
    tell();
    for (unsigned i = 0; i < 2; i++) {
        receive(frame, fill(frame, SIZE, 1));
        expect_frame(0, i, frame, SIZE, 0);
    }
    receive(frame, fill(frame, 60, 1));
    expect_error(0, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    ck_assert_uint_eq(state(), PRM_RQC_STATE_ERR);
}
END_TEST

/* It is not known which WQEs come behind, so nothing else is flushed. */
START_TEST(a_link_out_of_the_list_fails_the_queue)
{
    uint8_t frame[60];

    make(_i ? PRM_WQ_TYPE_LINKED_LIST : PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, false);
    write_wqe(0, bench_mem(b, NULL, ROOM), ROOM, SLOTS);
    tell();
    write_wqe(1, bench_mem(b, NULL, ROOM), ROOM, 2);
    tell();
    receive(frame, fill(frame, 60, 1));
    expect_error(0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    bench_expect_none(&rq);
    ck_assert_uint_eq(state(), PRM_RQC_STATE_ERR);
}
END_TEST

/* Mends the link of slot 0 after the device has read the doorbell record and the slot. */
static void mend(void *opaque, enum fake_call call)
{
    unsigned *reads = opaque;

    if (call == FAKE_READ && ++*reads == 2) {
        write_wqe(0, memory[0], ROOM, 1);
    }
}

/* Also if software mends the WQE before the queue is flushed: it has got its completion. */
START_TEST(a_wqe_fails_once)
{
    uint8_t frame[60];
    unsigned reads = 0;

    make(_i ? PRM_WQ_TYPE_LINKED_LIST : PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, false);
    write_wqe(0, bench_mem(b, NULL, ROOM), ROOM, SLOTS);
    tell();
    write_wqe(1, bench_mem(b, NULL, ROOM), ROOM, 2);
    tell();
    b->rig.host.hook = mend;
    b->rig.host.hook_opaque = &reads;
    receive(frame, fill(frame, 60, 1));
    expect_error(0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    bench_expect_none(&rq);
}
END_TEST

START_TEST(a_key_that_refuses_fails_the_queue)
{
    uint8_t frame[60];

    make(both[_i], false);
    post();
    post();
    receive(frame, fill(frame, 60, 1));
    expect_frame(0, 0, frame, 60, 0);
    b->rig.host.hole = memory[0] + SIZE;
    receive(frame, fill(frame, 60, 1));
    expect_error(0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
    expect_error(1, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    bench_expect_none(&rq);
}
END_TEST

/* rqc.rlky: a program's queue cannot use bus addresses. */
START_TEST(the_reserved_lkey_is_not_every_queues)
{
    uint8_t frame[60];

    make(both[_i], false);
    PRM_SET(rqc, eth_rq_find(&b->rig.hca, rq.num)->rqc, rlky, 0);
    post();
    receive(frame, fill(frame, 60, 1));
    expect_error(0, PRM_CQE_SYNDROME_LOCAL_PROT_ERR);
}
END_TEST

/* Also the WQE that has taken frames is flushed, and then those behind it in the order of links. */
START_TEST(a_queue_in_error_is_flushed)
{
    uint8_t frame[60];

    make(both[_i], false);
    for (unsigned i = 0; i < 3; i++) {
        post();
    }
    receive(frame, fill(frame, 60, 1));
    expect_frame(0, 0, frame, 60, 0);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RDY, PRM_RQC_STATE_ERR), SYN_OK);
    bench_run(b);
    for (unsigned i = 0; i < 3; i++) {
        expect_error(i, PRM_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    bench_expect_none(&rq);
    /* after a reset it begins again with slot 0 and stride 0 */
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_ERR, PRM_RQC_STATE_RST), SYN_OK);
    ck_assert_int_eq(bench_rq_move(&rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY), SYN_OK);
    rq.pi = 0;
    post();
    receive(frame, fill(frame, 60, 2));
    expect_frame(0, 0, frame, 60, 0);
}
END_TEST

/* -- creation ---------------------------------------------------------------------------------- */

/* What CREATE_RQ takes: types 0 to 3; strides 2^3 to 2^16, as a signed number less 9; WQEs of at
 * least a next segment and a data segment. */
START_TEST(contexts_that_cannot_be_are_refused)
{
    static const struct {
        uint8_t type, num, log_stride;
        enum syn syn;
    } cases[] = {
        {PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, 0, 5, SYN_OK},
        {PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, 7, 6, SYN_OK},
        {PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, 10, 6, SYN_OK},
        {PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, 15, 9, SYN_OK},
        {PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, 8, 6, SYN_ETH_WQ},
        {PRM_WQ_TYPE_LINKED_LIST_STRIDING_RQ, 9, 6, SYN_ETH_WQ},
        {PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, 0, 4, SYN_ETH_WQ},
        {PRM_WQ_TYPE_LINKED_LIST, 0, 4, SYN_ETH_WQ},
        {4, 0, 6, SYN_ETH_WQ},
        {15, 0, 6, SYN_ETH_WQ},
    };

    make(PRM_WQ_TYPE_CYCLIC, false);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct prm_rqc rqc[1] = {0};
        struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);
        struct mem_buf buf = {0};
        enum syn syn;
        uint32_t num;

        rig_ring(&b->rig, 1 << 12, &buf);
        PRM_SET(rqc, rqc, cqn, rq.cqn);
        PRM_SET(wq, wq, pd, b->rig.pdn);
        PRM_SET(wq, wq, wq_type, cases[i].type);
        PRM_SET(wq, wq, log_wqe_num_of_strides, cases[i].num);
        PRM_SET(wq, wq, log_wq_stride, cases[i].log_stride);
        PRM_SET(wq, wq, log_wq_sz, 3);
        syn = eth_rq_create(&b->rig.hca, 0, rqc, &buf, rq.dbr, &num);
        ck_assert_msg(syn == cases[i].syn, "case %u: %d", i, syn);
        if (syn == SYN_OK) {
            ck_assert_int_eq(eth_rq_destroy(&b->rig.hca, 0, num), SYN_OK);
        } else {
            mem_buf_clear(&buf);
        }
    }
}
END_TEST

/* -- compression ------------------------------------------------------------------------------- */

/*
 * Frames that come together are one session in each format, as long as they are in one WQE. In
 * formats 0 and 1 software counts the strides of each CQE to know where the next frame is
 * (mlx5e_decompress_cqe()); in the others the mini CQE says it. Filler and frame of the next WQE
 * are told apart.
 */
START_TEST(cqes_of_strides_are_compressed)
{
    static const uint8_t formats[] = {PRM_MINI_CQE_FORMAT_CSUM, PRM_MINI_CQE_FORMAT_FTAG_STRIDX,
                                      PRM_MINI_CQE_FORMAT_CSUM_STRIDX,
                                      PRM_MINI_CQE_FORMAT_L34H_STRIDX};
    static const size_t lens[] = {60, 300, 256, 513, 1000, 60};
    static const struct {
        unsigned id, stride;
        uint32_t filler;
    } right[] = {{0, 0, 0}, {0, 1, 0}, {0, 3, 0}, {0, 4, 0}, {0, 7, 1}, {1, 0, 0}, {1, 4, 0}};
    struct cqe_decoder d;
    uint8_t frame[1024];

    b->mini_format = formats[_i];
    make(PRM_WQ_TYPE_CYCLIC_STRIDING_RQ, false);
    cqe_decoder_init(&d, fake_host_ptr(&b->rig.host, rq.cq_ring, 64 << BENCH_CQ_LOG), BENCH_CQ_LOG,
                     64);
    d.format = (enum dec_format)b->mini_format;
    d.strides = true;
    post();
    post();
    for (unsigned i = 0; i < G_N_ELEMENTS(lens); i++) {
        bench_put(b, frame, fill(frame, lens[i], (uint8_t)i));
    }
    bench_run(b);
    for (unsigned i = 0, n = 0; i < G_N_ELEMENTS(right); i++) {
        const uint8_t *cqe = cqe_decoder_next(&d, NULL);
        uint32_t bytes;

        ck_assert_msg(cqe != NULL, "CQE %u: %s", i, d.fault ? d.fault : "is not there");
        bytes = dec_32(cqe + DEC_BYTE_CNT);
        ck_assert_uint_eq(dec_16(cqe + 2), right[i].id);
        ck_assert_uint_eq(dec_16(cqe + DEC_COUNTER), right[i].stride);
        ck_assert_uint_eq(bytes >> 31, right[i].filler);
        if (!right[i].filler) {
            ck_assert_uint_eq(bytes & 0xffff, lens[n]);
            ck_assert_uint_eq(bytes >> 16, (lens[n] + SIZE - 1) / SIZE);
            n++;
        }
    }
    ck_assert_ptr_null(cqe_decoder_next(&d, NULL));
    ck_assert_ptr_null(d.fault);
    ck_assert_uint_eq(d.sessions, 2);
    ck_assert_uint_eq(d.minis, G_N_ELEMENTS(right) - 3); /* all but titles and filler */
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("eth_stride");
    TCase *tcase = tcase_create("eth_stride");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, frames_share_a_wqe_by_strides, 0, 2);
    tcase_add_loop_test(tcase, a_frame_that_does_not_fit_gets_a_filler, 0, 2);
    tcase_add_loop_test(tcase, two_bytes_may_be_left_before_each_frame, 0, 2);
    tcase_add_loop_test(tcase, segments_of_a_wqe_are_one_memory, 0, 2);
    tcase_add_test(tcase, a_list_is_taken_in_the_order_of_its_links);
    tcase_add_test(tcase, a_plain_list_takes_one_frame_with_each_wqe);
    tcase_add_loop_test(tcase, a_wqe_that_changes_is_used_as_it_was, 0, 2);
    tcase_add_loop_test(tcase, strides_count_what_is_stored, 0, 2);
    tcase_add_loop_test(tcase, a_frame_larger_than_a_wqe_is_dropped_and_counted, 0, 4);
    tcase_add_loop_test(tcase, strides_beyond_the_memory_of_the_wqe_fail_the_queue, 0, 2);
    tcase_add_loop_test(tcase, a_link_out_of_the_list_fails_the_queue, 0, 2);
    tcase_add_loop_test(tcase, a_wqe_fails_once, 0, 2);
    tcase_add_loop_test(tcase, a_key_that_refuses_fails_the_queue, 0, 2);
    tcase_add_loop_test(tcase, the_reserved_lkey_is_not_every_queues, 0, 2);
    tcase_add_loop_test(tcase, a_queue_in_error_is_flushed, 0, 2);
    tcase_add_test(tcase, contexts_that_cannot_be_are_refused);
    tcase_add_loop_test(tcase, cqes_of_strides_are_compressed, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite;
}
