/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements eth_bench.h: one HCA and its cable, for the tests of the Ethernet half. */
#include "tests/unit/eth_bench.h"
#include <check.h>
#include <string.h>
#include "model/eth/eth.h"
#include "model/eth/eth_queue.h"
#include "model/steering/steering.h"
#include "model/eth/tir.h"
#include "model/queue/wq.h"
#include "wire/pair.h"

#define PAGE 4096

const uint8_t bench_mac[6] = {2, 0, 0, 0, 0, 1}; /* the rig's */
const uint8_t bench_peer_mac[6] = {2, 0, 0, 0, 0, 2};

/* -- the cable --------------------------------------------------------------------------------- */

static void far_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct bench *b = opaque;

    if (b->num_frames == BENCH_FRAMES) {
        ck_abort_msg("more frames than the bench holds");
    }
    b->frames[b->num_frames].len = len;
    memcpy(b->frames[b->num_frames++].data, frame, len);
}

static void far_nothing(void *opaque)
{
}

static const struct wire_client far_client = {
    .rx = far_rx,
    .tx_ready = far_nothing,
    .link_change = far_nothing,
    .rx_ready = far_nothing,
};

/* -- life -------------------------------------------------------------------------------------- */

struct bench *bench_new_on(struct card *card, unsigned number)
{
    struct bench *b = g_new0(struct bench, 1);
    struct wire_port *ends[2];

    b->frames = g_new0(struct bench_frame, BENCH_FRAMES);
    b->rq_type = PRM_WQ_TYPE_CYCLIC;
    rig_init_on(&b->rig, card, number);
    rig_eq_create(&b->rig, &b->eq, 6, 0, RIG_ASYNC_MASK);
    if (number == 0) {
        wire_pair_new(16, ends);
        b->wire = ends[0];
        b->far = ends[1];
        wire_set_client(b->far, &far_client, b);
        port_set_wire(&b->rig.hca, b->wire);
    }
    b->tdn = bench_td(b);
    b->tisn = bench_tis(b, b->tdn);
    while (rig_eq_next(&b->rig, &b->eq)) {
        /* the link came up */
    }
    return b;
}

struct bench *bench_new(void)
{
    return bench_new_on(NULL, 0);
}

void bench_free(struct bench *b)
{
    if (b->wire) {
        port_set_wire(&b->rig.hca, NULL);
    }
    rig_clear(&b->rig);
    if (b->wire) {
        wire_close(b->wire);
        wire_close(b->far);
    }
    g_free(b->frames);
    g_free(b);
}

void bench_run(struct bench *b)
{
    do {
        rig_run(&b->rig);
    } while (b->far && wire_poll(b->far, 64));
}

void bench_put(struct bench *b, const uint8_t *frame, size_t len)
{
    uint8_t *room = wire_tx_reserve(b->far, len);

    ck_assert_ptr_nonnull(room);
    memcpy(room, frame, len);
    wire_tx_commit(b->far, len);
}

void bench_rx(struct bench *b, const uint8_t *frame, size_t len)
{
    bench_put(b, frame, len);
    bench_run(b);
}

uint64_t bench_mem(struct bench *b, const void *data, size_t len)
{
    uint64_t addr = fake_host_alloc(&b->rig.host, len ? len : 1, 64);

    if (data) {
        memcpy(fake_host_ptr(&b->rig.host, addr, len), data, len);
    }
    return addr;
}

/* -- queues ------------------------------------------------------------------------------------ */

static struct mem_buf ring_buf(uint64_t addr, uint64_t size)
{
    uint32_t npages = (uint32_t)((size + PAGE - 1) / PAGE);
    uint64_t pas[64];
    struct mem_buf buf;
    struct mtt *mtt;

    ck_assert_uint_le(npages, G_N_ELEMENTS(pas));
    for (uint32_t i = 0; i < npages; i++) {
        pas[i] = GUINT64_TO_BE(addr + i * PAGE);
    }
    mtt = mtt_new(pas, npages, 12);
    ck_assert(mem_buf_init(&buf, mtt, 0, size));
    mtt_unref(mtt);
    return buf;
}

static void cq_new(struct bench *b, struct bench_queue *queue)
{
    struct prm_cqc cqc[1] = {0};
    size_t bytes = (size_t)64 << BENCH_CQ_LOG;
    struct mem_buf buf;

    queue->cq_ring = fake_host_alloc(&b->rig.host, bytes, PAGE);
    queue->cq_dbr = fake_host_alloc(&b->rig.host, 8, 8);
    for (size_t i = 0; i < 1u << BENCH_CQ_LOG; i++) {
        struct prm_cqe64 *cqe = fake_host_ptr(&b->rig.host, queue->cq_ring + i * 64, 64);

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_INVALID);
        PRM_SET(cqe64, cqe, owner, 1);
    }
    buf = ring_buf(queue->cq_ring, bytes);
    PRM_SET(cqc, cqc, log_cq_size, BENCH_CQ_LOG);
    PRM_SET(cqc, cqc, uar_page, b->rig.uarn);
    PRM_SET(cqc, cqc, cqe_comp_en, b->mini_format != 0);
    PRM_SET(cqc, cqc, mini_cqe_res_format, b->mini_format & 3);
    PRM_SET(cqc, cqc, mini_cqe_res_format_ext, b->mini_format >> 2);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, b->eq.eqn);
    ck_assert_int_eq(cq_create(&b->rig.hca, 0, cqc, &buf, queue->cq_dbr, &queue->cqn), SYN_OK);
}

static void queue_init(struct bench *b, struct bench_queue *queue, unsigned log_size,
                       unsigned log_stride, struct prm_wq *wq)
{
    *queue = (struct bench_queue){.bench = b, .log_size = log_size, .log_stride = log_stride};
    cq_new(b, queue);
    queue->ring = fake_host_alloc(&b->rig.host, 1ull << (log_size + log_stride), PAGE);
    queue->dbr = fake_host_alloc(&b->rig.host, 8, 8);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, pd, b->rig.pdn);
    PRM_SET(wq, wq, uar_page, b->rig.uarn);
    PRM_SET(wq, wq, log_wq_sz, log_size);
    PRM_SET(wq, wq, log_wq_stride, log_stride);
}

uint32_t bench_td(struct bench *b)
{
    uint32_t tdn;

    ck_assert_int_eq(td_alloc(&b->rig.hca, 0, &tdn), SYN_OK);
    return tdn;
}

void bench_set_priority(struct bench *b, uint32_t tisn, unsigned priority)
{
    struct prm_modify_tis_bitmask bitmask[1] = {0};
    struct prm_tisc tisc[1] = {0};

    PRM_SET(modify_tis_bitmask, bitmask, prio, 1);
    PRM_SET(tisc, tisc, prio, priority << 1);
    ck_assert_int_eq(tis_modify(&b->rig.hca, 0, tisn, bitmask, tisc), SYN_OK);
}

uint32_t bench_tis(struct bench *b, uint32_t tdn)
{
    struct prm_tisc tisc[1] = {0};
    uint32_t tisn;

    PRM_SET(tisc, tisc, transport_domain, tdn);
    ck_assert_int_eq(tis_create(&b->rig.hca, 0, tisc, &tisn), SYN_OK);
    return tisn;
}

void bench_sq_new(struct bench *b, uint32_t tisn, struct bench_queue *sq)
{
    bench_sq_new_sized(b, tisn, BENCH_LOG_SQ, sq);
}

void bench_sq_new_sized(struct bench *b, uint32_t tisn, unsigned log_size, struct bench_queue *sq)
{
    struct prm_sqc sqc[1] = {0};
    struct mem_buf buf;

    PRM_SET(sqc, sqc, rlky, 1);
    PRM_SET(sqc, sqc, user_index, BENCH_SQ_INDEX);
    PRM_SET(sqc, sqc, allow_swp, b->swp);
    PRM_SET(sqc, sqc, allow_multi_pkt_send_wqe, b->multi_packet);

    queue_init(b, sq, log_size, 6, PRM_PTR(sqc, sqc, wq));
    PRM_SET(sqc, sqc, cqn, sq->cqn);
    PRM_SET(sqc, sqc, ts_format, b->ts_format);
    PRM_SET(sqc, sqc, flush_in_error_en, 1);
    PRM_SET(sqc, sqc, tis_lst_sz, tisn != 0);
    PRM_SET(sqc, sqc, tis_num_0, tisn);
    buf = ring_buf(sq->ring, 64u << log_size);
    ck_assert_int_eq(eth_sq_create(&b->rig.hca, 0, sqc, &buf, sq->dbr, &sq->num), SYN_OK);
    ck_assert_int_eq(bench_sq_move(sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
}

void bench_rq_new(struct bench *b, const struct prm_rqc *more, struct bench_queue *rq)
{
    bench_rq_new_sized(b, more, BENCH_LOG_RQ, rq);
}

void bench_rq_new_sized(struct bench *b, const struct prm_rqc *more, unsigned log_size,
                        struct bench_queue *rq)
{
    struct prm_rqc rqc[1] = {0};
    struct mem_buf buf;

    if (more) {
        memcpy(rqc, more, sizeof(rqc));
    }
    queue_init(b, rq, log_size, 6, PRM_PTR(rqc, rqc, wq));
    PRM_SET(wq, PRM_PTR(rqc, rqc, wq), wq_type, b->rq_type);
    PRM_SET(rqc, rqc, rlky, 1);
    PRM_SET(rqc, rqc, user_index, BENCH_RQ_INDEX);
    PRM_SET(rqc, rqc, cqn, rq->cqn);
    PRM_SET(rqc, rqc, ts_format, b->ts_format);
    buf = ring_buf(rq->ring, 64u << log_size);
    ck_assert_int_eq(eth_rq_create(&b->rig.hca, 0, rqc, &buf, rq->dbr, &rq->num), SYN_OK);
    ck_assert_int_eq(bench_rq_move(rq, PRM_RQC_STATE_RST, PRM_RQC_STATE_RDY), SYN_OK);
}

enum syn bench_sq_move(struct bench_queue *sq, uint8_t from, uint8_t to)
{
    struct prm_sqc sqc[1] = {0};

    PRM_SET(sqc, sqc, state, to);
    return eth_sq_modify(&sq->bench->rig.hca, 0, sq->num, from, 0, sqc);
}

void bench_sq_revive(struct bench_queue *sq)
{
    ck_assert_int_eq(bench_sq_move(sq, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST), SYN_OK);
    ck_assert_int_eq(bench_sq_move(sq, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY), SYN_OK);
    sq->pi = 0; /* driver: mlx5e_reset_txqsq_cc_pc() */
}

void bench_expect_failure(struct bench_queue *sq, const struct bench_wr *wr, uint8_t syndrome,
                          unsigned sent)
{
    struct bench *b = sq->bench;

    b->num_frames = 0;
    bench_send(sq, wr);
    bench_expect(sq, PRM_CQE_OPCODE_REQ_ERR, syndrome, 0);
    bench_expect_none(sq);
    ck_assert_uint_eq(b->num_frames, sent);
    bench_sq_revive(sq);
}

enum syn bench_rq_move(struct bench_queue *rq, uint8_t from, uint8_t to)
{
    struct prm_rqc rqc[1] = {0};

    PRM_SET(rqc, rqc, state, to);
    return eth_rq_modify(&rq->bench->rig.hca, 0, rq->num, from, 0, rqc);
}

void *bench_write_wqe(struct bench_queue *sq, const struct bench_wr *wr)
{
    union {
        struct prm_wqe_ctrl_seg ctrl[1];
        uint8_t bytes[1024];
    } wqe = {0};
    void *eth = wqe.bytes + PRM_SIZE(wqe_ctrl_seg), *seg = eth + PRM_SIZE(wqe_eth_seg);
    uint8_t *ring = fake_host_ptr(&sq->bench->rig.host, sq->ring, 64u << sq->log_size);
    unsigned slots = 1u << sq->log_size, blocks;
    uint16_t first = sq->pi;

    PRM_SET(wqe_eth_seg, eth, cs_flags, wr->cs_flags);
    PRM_SET(wqe_eth_seg, eth, mss, wr->mss);
    PRM_SET(wqe_eth_seg, eth, swp_outer_l3_offset, wr->swp[0]);
    PRM_SET(wqe_eth_seg, eth, swp_outer_l4_offset, wr->swp[1]);
    PRM_SET(wqe_eth_seg, eth, swp_inner_l3_offset, wr->swp[2]);
    PRM_SET(wqe_eth_seg, eth, swp_inner_l4_offset, wr->swp[3]);
    PRM_SET(wqe_eth_seg, eth, swp_flags, wr->swp_flags);
    if (wr->insert_vlan) {
        PRM_SET(wqe_eth_seg, eth, insert_vlan, 1);
        PRM_SET(wqe_eth_seg, eth, insert_svlan, wr->svlan);
        PRM_SET(wqe_eth_seg, eth, vlan_tci, wr->vlan_tci);
    } else if (wr->hdr_len) {
        PRM_SET(wqe_eth_seg, eth, inline_hdr_sz, wr->hdr_len);
        memcpy(eth + 14, wr->hdr, wr->hdr_len);
        seg += wr->hdr_len > 2 ? (wr->hdr_len - 2 + 15) / 16 * 16 : 0;
    }
    for (unsigned i = 0; i < wr->num_sge; i++, seg += PRM_SIZE(wqe_data_seg)) {
        if (wr->inline_data[i]) {
            PRM_SET(wqe_inline_seg, seg, inl, 1);
            PRM_SET(wqe_inline_seg, seg, byte_count, wr->sge[i].len);
            memcpy(seg + 4, wr->inline_data[i], wr->sge[i].len);
            seg += (4 + wr->sge[i].len + 15) / 16 * 16 - PRM_SIZE(wqe_data_seg);
            continue;
        }
        PRM_SET(wqe_data_seg, seg, byte_count, wr->sge[i].len);
        PRM_SET(wqe_data_seg, seg, lkey, wr->sge[i].key ? wr->sge[i].key : RIG_RESD_LKEY);
        PRM_SET(wqe_data_seg, seg, addr, wr->sge[i].addr);
    }
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, wqe_index, first);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opcode, wr->opcode);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, qpn, sq->num);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ds, (size_t)(seg - (void *)wqe.bytes) / 16);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ce, wr->unsignaled ? PRM_WQE_CE_ERROR : PRM_WQE_CE_ALWAYS);
    blocks = (unsigned)((seg - (void *)wqe.bytes + 63) / 64);
    for (unsigned i = 0; i < blocks; i++) {
        memcpy(ring + (first + i) % slots * 64, wqe.bytes + i * 64, 64);
    }
    sq->pi = (uint16_t)(first + blocks);
    return ring + first % slots * 64;
}

void bench_ring_sq(struct bench_queue *sq)
{
    struct hca *hca = &sq->bench->rig.hca;

    PRM_SET(qp_dbr, fake_host_ptr(&sq->bench->rig.host, sq->dbr, 8), send_counter, sq->pi);
    eth_sq_sender.doorbell(hca, obj_find(&hca->qpns, sq->num), 0);
}

void bench_send(struct bench_queue *sq, const struct bench_wr *wr)
{
    bench_write_wqe(sq, wr);
    bench_ring_sq(sq);
    bench_run(sq->bench);
}

unsigned bench_send_metadata(struct bench_queue *sq, const struct bench_wr *wr, uint32_t metadata)
{
    uint16_t first = sq->pi;
    struct prm_wqe_ctrl_seg *ctrl;

    sq->bench->num_frames = 0;
    ctrl = bench_write_wqe(sq, wr);
    PRM_SET(wqe_eth_seg, (void *)(ctrl + 1), flow_table_metadata, metadata);
    bench_ring_sq(sq);
    bench_run(sq->bench);
    bench_expect(sq, PRM_CQE_OPCODE_REQ, 0, first);
    return sq->bench->num_frames;
}

void bench_post_recv(struct bench_queue *rq, uint64_t addr, uint32_t len)
{
    uint32_t slot = rq->pi % (1u << rq->log_size);
    void *wqe = fake_host_ptr(&rq->bench->rig.host, rq->ring + slot * 64, 64);

    memset(wqe, 0, 64);
    PRM_SET(wqe_data_seg, wqe, byte_count, len);
    PRM_SET(wqe_data_seg, wqe, lkey, RIG_RESD_LKEY);
    PRM_SET(wqe_data_seg, wqe, addr, addr);
    PRM_SET(wqe_data_seg, wqe + 16, lkey, WQE_TERMINATOR_LKEY);
    rq->pi++;
    PRM_SET(qp_dbr, fake_host_ptr(&rq->bench->rig.host, rq->dbr, 8), rcv_counter, rq->pi);
}

const void *bench_cqe(struct bench_queue *queue)
{
    uint32_t slot = queue->cq_ci % (1u << BENCH_CQ_LOG);
    struct fake_host *host = &queue->bench->rig.host;
    const struct prm_cqe64 *cqe = fake_host_ptr(host, queue->cq_ring + slot * 64, 64);

    if (PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, cqe, owner) != (queue->cq_ci >> BENCH_CQ_LOG & 1)) {
        return NULL;
    }
    queue->cq_ci++;
    PRM_SET(cq_dbr, fake_host_ptr(host, queue->cq_dbr, 8), ci, queue->cq_ci & 0xffffff);
    return cqe;
}

void bench_expect(struct bench_queue *queue, uint8_t opcode, uint8_t syndrome, uint16_t counter)
{
    const void *cqe = bench_cqe(queue);

    ck_assert_ptr_nonnull(cqe);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), opcode);
    if (syndrome) {
        ck_assert_uint_eq(PRM_GET(err_cqe, cqe, syndrome), syndrome);
    }
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, wqe_counter), counter);
}

void bench_expect_none(struct bench_queue *queue)
{
    ck_assert_ptr_null(bench_cqe(queue));
}

void bench_expect_fatal(struct bench_queue *queue, uint8_t kind)
{
    const struct prm_eqe *eqe;
    const struct prm_qp_events *data;

    do {
        eqe = rig_eq_next(&queue->bench->rig, &queue->bench->eq);
        ck_assert_msg(eqe, "no event about queue 0x%x", queue->num);
    } while (PRM_GET(eqe, eqe, event_type) != PRM_EVENT_TYPE_WQ_CATAS_ERROR);
    data = PRM_PTR(eqe, eqe, event_data);
    ck_assert_uint_eq(PRM_GET(qp_events, data, type), kind);
    ck_assert_uint_eq(PRM_GET(qp_events, data, qpn_rqn_sqn), queue->num);
}

/* -- steering ---------------------------------------------------------------------------------- */

uint32_t bench_table(struct bench *b, unsigned level, unsigned log_size)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t id;

    PRM_SET(flow_table_context, ctx, level, level);
    PRM_SET(flow_table_context, ctx, log_size, log_size);
    ck_assert_int_eq(flow_table_create(&b->rig.hca, 0, b->table_type, ctx, &id), SYN_OK);
    return id;
}

uint32_t bench_group(struct bench *b, uint32_t table, uint32_t start, uint32_t end,
                     const struct prm_fte_match_set_lyr_2_4 *mask)
{
    struct prm_create_flow_group_in in[1] = {0};
    uint32_t id;

    PRM_SET(create_flow_group_in, in, table_type, b->table_type);
    PRM_SET(create_flow_group_in, in, table_id, table);
    PRM_SET(create_flow_group_in, in, start_flow_index, start);
    PRM_SET(create_flow_group_in, in, end_flow_index, end);
    if (mask) {
        PRM_SET(create_flow_group_in, in, match_criteria_enable,
                1 << PRM_MATCH_CRITERIA_OUTER_HEADERS);
        memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), mask,
               PRM_SIZE(fte_match_set_lyr_2_4));
    }
    ck_assert_int_eq(flow_group_create(&b->rig.hca, 0, in, &id), SYN_OK);
    return id;
}

enum syn bench_try_group(struct bench *b, uint32_t table, uint8_t enable,
                         const struct prm_fte_match_param *mask, uint32_t *id)
{
    struct prm_create_flow_group_in in[1] = {0};

    PRM_SET(create_flow_group_in, in, table_type, b->table_type);
    PRM_SET(create_flow_group_in, in, table_id, table);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, enable);
    memcpy(PRM_PTR(create_flow_group_in, in, match_criteria), mask, PRM_SIZE(fte_match_param));
    return flow_group_create(&b->rig.hca, 0, in, id);
}

enum syn bench_fte_set(struct bench *b, const struct bench_fte *fte)
{
    size_t len = PRM_SIZE(set_fte_in) + fte->num_dests * PRM_SIZE(dest_format_struct) +
                 fte->num_counters * PRM_SIZE(flow_counter_list);
    g_autofree struct prm_set_fte_in *in = g_malloc0(len);
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    void *list = PRM_PTR_AT(flow_context, ctx, destination, 0);
    uint16_t action = fte->action;

    if (!action) {
        action = PRM_FLOW_ACTION_FWD_DEST | (fte->num_counters ? PRM_FLOW_ACTION_COUNT : 0);
    }
    PRM_SET(set_fte_in, in, table_type, b->table_type);
    PRM_SET(set_fte_in, in, table_id, fte->table);
    PRM_SET(set_fte_in, in, flow_index, fte->index);
    PRM_SET(set_fte_in, in, modify_enable_mask, fte->modify);
    PRM_SET(set_fte_in, in, ignore_flow_level, fte->any_level);
    PRM_SET(flow_context, ctx, group_id, fte->group);
    PRM_SET(flow_context, ctx, flow_tag, fte->flow_tag);
    PRM_SET(flow_context, ctx, action, action);
    PRM_SET(flow_context, ctx, destination_list_size, fte->num_dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, fte->num_counters);
    if (fte->param) {
        memcpy(PRM_PTR(flow_context, ctx, match_value), fte->param, PRM_SIZE(fte_match_param));
    } else if (fte->value) {
        memcpy(PRM_PTR(flow_context, ctx, match_value), fte->value,
               PRM_SIZE(fte_match_set_lyr_2_4));
    }
    for (unsigned i = 0; i < fte->num_dests; i++, list += PRM_SIZE(dest_format_struct)) {
        PRM_SET(dest_format_struct, list, destination_type, fte->dests[i].type);
        PRM_SET(dest_format_struct, list, destination_id, fte->dests[i].id);
    }
    for (unsigned i = 0; i < fte->num_counters; i++, list += PRM_SIZE(flow_counter_list)) {
        PRM_SET(flow_counter_list, list, flow_counter_id, fte->counters[i]);
    }
    return flow_entry_set(&b->rig.hca, fte->uid, in, len, fte->modify != 0);
}

uint32_t bench_direct_tir(struct bench *b, uint32_t rqn)
{
    struct prm_tirc tirc[1] = {0};
    uint32_t tirn;

    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_DIRECT);
    PRM_SET(tirc, tirc, inline_rqn, rqn);
    PRM_SET(tirc, tirc, transport_domain, b->tdn);
    ck_assert_int_eq(tir_create(&b->rig.hca, 0, tirc, &tirn), SYN_OK);
    return tirn;
}

void bench_catch_all(struct bench *b, uint32_t tirn)
{
    uint32_t table = bench_table(b, 0, 0);
    const struct bench_fte fte = {
        .table = table,
        .group = bench_group(b, table, 0, 0, NULL),
        .dests = {{PRM_FLOW_DESTINATION_TYPE_TIR, tirn}},
        .num_dests = 1,
        .flow_tag = 0xabcdef,
    };

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, table, true), SYN_OK);
}

/* -- frames ------------------------------------------------------------------------------------ */

uint16_t bench_sum(const uint8_t *p, size_t len, uint32_t start)
{
    uint32_t sum = start;

    for (size_t i = 0; i < len; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)sum;
}

/* TCP's or UDP's sum with its pseudo header (RFC 9293 3.1, RFC 8200 8.1). */
static uint16_t l4_sum(const uint8_t *ip, const uint8_t *l4, size_t len, uint8_t proto)
{
    size_t at = ip[0] >> 4 == 4 ? 12 : 8, addrs = ip[0] >> 4 == 4 ? 8 : 32;

    return bench_sum(l4, len, bench_sum(ip + at, addrs, (uint32_t)len + proto));
}

size_t bench_headers(const struct bench_pkt *pkt)
{
    return 14u + (pkt->vlan ? 4 : 0) + (pkt->ip_version == 4 ? 20 : 40) +
           (pkt->proto == 6 ? 20 : 8);
}

size_t bench_build(uint8_t *frame, const struct bench_pkt *pkt)
{
    size_t headers = bench_headers(pkt), l4_len = (pkt->proto == 6 ? 20 : 8) + pkt->payload;
    size_t ip_len = l4_len + (pkt->ip_version == 4 ? 20 : 40);
    uint8_t *p = frame + 12, *ip, *l4;
    uint16_t sum;

    memset(frame, 0, headers);
    memcpy(frame, pkt->dmac ? pkt->dmac : bench_mac, 6);
    memcpy(frame + 6, bench_peer_mac, 6);
    if (pkt->vlan) {
        prm_store16(p, 0x8100);
        prm_store16(p + 2, pkt->tci);
        p += 4;
    }
    prm_store16(p, pkt->ip_version == 4 ? 0x0800 : 0x86dd);
    ip = p + 2;
    if (pkt->ip_version == 4) {
        ip[0] = 0x45;
        prm_store16(ip + 2, ip_len);
        prm_store16(ip + 4, pkt->id);
        ip[8] = 64;
        ip[9] = pkt->proto;
        memcpy(ip + 12, pkt->src, 4);
        memcpy(ip + 16, pkt->dst, 4);
        prm_store16(ip + 10, pkt->no_csum ? 0xdead : (uint16_t)~bench_sum(ip, 20, 0));
        l4 = ip + 20;
    } else {
        ip[0] = 0x60;
        prm_store16(ip + 4, l4_len);
        ip[6] = pkt->proto;
        ip[7] = 64;
        memcpy(ip + 8, pkt->src, 16);
        memcpy(ip + 24, pkt->dst, 16);
        l4 = ip + 40;
    }
    prm_store16(l4, pkt->sport);
    prm_store16(l4 + 2, pkt->dport);
    if (pkt->proto == 6) {
        prm_store32(l4 + 4, pkt->seq);
        l4[12] = 5 << 4;
        l4[13] = pkt->tcp_flags;
    } else {
        prm_store16(l4 + 4, l4_len);
    }
    for (size_t i = 0; i < pkt->payload; i++) {
        frame[headers + i] = (uint8_t)(i + i / 256);
    }
    sum = (uint16_t)~l4_sum(ip, l4, l4_len, pkt->proto);
    prm_store16(l4 + (pkt->proto == 6 ? 16 : 6), pkt->no_csum ? 0xdead : sum);
    return headers + pkt->payload;
}

bool bench_sums_ok(const uint8_t *frame, size_t len)
{
    const uint8_t *ip = frame + (prm_load16(frame + 12) == 0x8100 ? 18 : 14);
    bool v4 = ip[0] >> 4 == 4;
    size_t ip_len = v4 ? prm_load16(ip + 2) : prm_load16(ip + 4) + 40u;
    size_t header = v4 ? 20 : 40;
    uint8_t proto = ip[v4 ? 9 : 6];

    if ((size_t)(ip - frame) + ip_len > len || (v4 && bench_sum(ip, 20, 0) != 0xffff)) {
        return false;
    }
    if (proto == 17 && prm_load16(ip + header + 4) != ip_len - header) {
        return false;
    }
    return l4_sum(ip, ip + header, ip_len - header, proto) == 0xffff;
}

uint32_t bench_root_to(struct bench *b, uint32_t table)
{
    uint32_t root = bench_table(b, 1, 0);
    const struct bench_fte fte = {.table = root,
                                  .group = bench_group(b, root, 0, 0, NULL),
                                  .dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, table}},
                                  .num_dests = 1};

    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    ck_assert_int_eq(flow_table_set_root(&b->rig.hca, b->table_type, root, true), SYN_OK);
    return root;
}
