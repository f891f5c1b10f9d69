/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements eth_rings.h. */
#include "tests/sim/fabric/eth_rings.h"
#include <errno.h>
#include "guest-lib/verbs/kernel/flow_cmd.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/user/user.h"
#include "prm/prm.h"

#define MINIS 8u /* mini CQEs of a slot */

#define RINGS_MUST(job, ctx, in, in_len, out)                                                      \
    sim_must(job, hv_cmd(hv_hca_of(ctx), in, in_len, out, sizeof(out)))

/* The commands that destroy these objects have the same layout. */
static void rings_destroy(struct job *job, struct ibv_context *ctx, uint16_t op, uint32_t num)
{
    struct prm_destroy_tir_in in[1] = {0};
    struct prm_destroy_tir_out out[1] = {0};

    PRM_SET(destroy_tir_in, in, opcode, op);
    PRM_SET(destroy_tir_in, in, tirn, num);
    RINGS_MUST(job, ctx, in, sizeof(in), out);
}

static uint32_t rings_domain(struct job *job, struct ibv_context *ctx)
{
    struct prm_alloc_transport_domain_in in[1] = {0};
    struct prm_alloc_transport_domain_out out[1] = {0};

    PRM_SET(alloc_transport_domain_in, in, opcode, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    RINGS_MUST(job, ctx, in, sizeof(in), out);
    return PRM_GET(alloc_transport_domain_out, out, transport_domain);
}

/* -- CQs --------------------------------------------------------------------------------------- */

void ring_cq_make(struct ring_cq *cq, struct job *job, struct sim_host *host, int size,
                  bool compressed)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)size};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
                                     .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH};
    struct mlx5dv_obj obj = {0};

    *cq = (struct ring_cq){.job = job};
    if (compressed) {
        struct ibv_cq_ex *ex = hv_dv_create_cq(host->ctx, &attr, &dv);

        cq->ibv = ex ? ibv_cq_ex_to_cq(ex) : NULL;
    } else {
        cq->ibv = ibv_create_cq(host->ctx, size, NULL, NULL, 0);
    }
    sim_check(job, cq->ibv, "no CQ: errno %d", errno);
    obj.cq.in = cq->ibv;
    obj.cq.out = &cq->ring;
    sim_must(job, hv_dv_init_obj(&obj, MLX5DV_OBJ_CQ));
}

void ring_cq_free(struct ring_cq *cq)
{
    sim_must(cq->job, ibv_destroy_cq(cq->ibv));
}

static struct prm_cqe64 *rings_slot(const struct ring_cq *cq, uint32_t i)
{
    return (void *)((uint8_t *)cq->ring.buf + (i & (cq->ring.cqe_cnt - 1)) * cq->ring.cqe_size +
                    cq->ring.cqe_size - PRM_SIZE(cqe64));
}

static void rings_read(const struct prm_cqe64 *from, struct ring_cqe *cqe)
{
    *cqe = (struct ring_cqe){.opcode = (uint8_t)PRM_GET(cqe64, from, opcode),
                             .wqe_counter = (uint16_t)PRM_GET(cqe64, from, wqe_counter),
                             .wqe_id = (uint16_t)PRM_GET(cqe64, from, wqe_id),
                             .byte_cnt = (uint32_t)PRM_GET(cqe64, from, byte_cnt),
                             .hash = (uint32_t)PRM_GET(cqe64, from, rx_hash_result),
                             .has_vlan = PRM_GET(cqe64, from, cv),
                             .vlan = (uint16_t)PRM_GET(cqe64, from, vlan_info)};
}

/* The next CQE of a compressed session: the title with the values of its mini CQE. Arrays of 8 are
 * in the slots 1, 8, 16 ... behind the title (mlx5e_decompress_cqes_start()). In this format the
 * WQE's counter grows by the strides of each CQE, or by one. */
static void rings_read_mini(struct ring_cq *cq, struct ring_cqe *cqe)
{
    uint32_t nth = cq->read++, array = nth / MINIS * MINIS;
    const uint8_t *mini = rings_slot(cq, cq->start + (array ? array : 1))->bytes + nth % MINIS * 8;
    uint32_t strides;

    rings_read(cq->title, cqe);
    cqe->hash = (uint32_t)prm_load32(mini);
    cqe->byte_cnt = (uint32_t)prm_load32(mini + 4);
    strides = cqe->byte_cnt >> 16 & 0x7fff;
    PRM_SET(cqe64, cq->title, wqe_counter, (uint16_t)(cqe->wqe_counter + (strides ? strides : 1)));
}

/* When a session has been read, software says whose its slots are. */
static void rings_end_session(struct ring_cq *cq)
{
    for (uint32_t i = 0; i < cq->session; i++) {
        struct prm_cqe64 *slot = rings_slot(cq, cq->start + i);

        PRM_SET(cqe64, slot, opcode, PRM_CQE_OPCODE_INVALID);
        PRM_SET(cqe64, slot, owner, !!((cq->start + i) & cq->ring.cqe_cnt));
    }
    cq->session = cq->read = 0;
}

bool ring_cq_poll(struct ring_cq *cq, struct ring_cqe *cqe)
{
    const struct prm_cqe64 *slot = rings_slot(cq, cq->ci);

    if (!cq->session) {
        if (PRM_GET(cqe64, slot, opcode) == PRM_CQE_OPCODE_INVALID ||
            PRM_GET(cqe64, slot, owner) != !!(cq->ci & cq->ring.cqe_cnt)) {
            return false;
        }
        if (PRM_GET(cqe64, slot, format) == PRM_CQE_FORMAT_COMPRESSED) {
            memcpy(cq->title, slot, sizeof(cq->title));
            cq->start = cq->ci;
            cq->session = (uint32_t)PRM_GET(cqe64, slot, byte_cnt);
        }
    }
    if (cq->session) {
        rings_read_mini(cq, cqe);
    } else {
        rings_read(slot, cqe);
    }
    cq->ci++;
    if (cq->session && cq->read == cq->session) {
        rings_end_session(cq);
    }
    if (!cq->session) {
        cq->ring.dbrec[0] = GUINT32_TO_BE(cq->ci & 0xffffff);
    }
    return true;
}

/* -- send queues ------------------------------------------------------------------------------- */

static void rings_fill_wq(struct prm_wq *wq, struct sim_host *host, const uint8_t *ring,
                          const uint32_t *record, unsigned log_stride, unsigned log_size)
{
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, pd, hv_real_pd(host->pd)->pdn);
    PRM_SET(wq, wq, dbr_addr, (uintptr_t)record);
    PRM_SET(wq, wq, log_wq_stride, log_stride);
    PRM_SET(wq, wq, log_wq_sz, log_size);
    hv_set_pas(PRM_PTR(wq, wq, pas), ring, (size_t)1 << (log_stride + log_size));
}

/* Asks which WQEs the HCA takes. */
static void rings_ask(struct ring_sq *sq)
{
    struct prm_query_hca_cap_in in[1] = {0};
    struct prm_query_hca_cap_out out[1] = {0};
    const struct prm_per_protocol_networking_offload_caps *caps =
        PRM_PTR(query_hca_cap_out, out, capability);

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS << 1 | 1);
    RINGS_MUST(sq->job, sq->ctx, in, sizeof(in), out);
    sq->has_swp = PRM_GET(per_protocol_networking_offload_caps, caps, swp);
    sq->has_mpw = PRM_GET(per_protocol_networking_offload_caps, caps, enhanced_multi_pkt_send_wqe);
}

static void rings_make_tis(struct ring_sq *sq)
{
    struct prm_create_tis_in in[1] = {0};
    struct prm_create_tis_out out[1] = {0};

    PRM_SET(create_tis_in, in, opcode, PRM_CMD_OP_CREATE_TIS);
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain, sq->tdn);
    RINGS_MUST(sq->job, sq->ctx, in, sizeof(in), out);
    sq->tisn = PRM_GET(create_tis_out, out, tisn);
}

static void rings_ready_sq(struct ring_sq *sq)
{
    struct prm_modify_sq_in in[1] = {0};
    struct prm_modify_sq_out out[1] = {0};

    PRM_SET(modify_sq_in, in, opcode, PRM_CMD_OP_MODIFY_SQ);
    PRM_SET(modify_sq_in, in, sqn, sq->sqn);
    PRM_SET(sqc, PRM_PTR(modify_sq_in, in, ctx), state, PRM_SQC_STATE_RDY);
    RINGS_MUST(sq->job, sq->ctx, in, sizeof(in), out);
}

void ring_sq_make(struct ring_sq *sq, struct job *job, struct sim_host *host,
                  const struct ring_cq *cq)
{
    uint8_t bytes[PRM_SIZE(create_sq_in) + 8] = {0};
    struct prm_create_sq_in *in = (void *)bytes;
    struct prm_create_sq_out out[1] = {0};
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, in, ctx);

    *sq = (struct ring_sq){.job = job, .ctx = host->ctx};
    sq->tdn = rings_domain(job, host->ctx);
    sim_must(job, hv_uar_alloc(hv_context(host->ctx), &sq->uar));
    rings_ask(sq);
    rings_make_tis(sq);
    sq->blocks = sim_memory(job->sim, (size_t)64 << RINGS_LOG_SQ);
    sq->record = (uint32_t *)(void *)sim_memory(job->sim, 64);
    PRM_SET(create_sq_in, in, opcode, PRM_CMD_OP_CREATE_SQ);
    PRM_SET(sqc, sqc, flush_in_error_en, 1);
    PRM_SET(sqc, sqc, allow_multi_pkt_send_wqe, sq->has_mpw);
    PRM_SET(sqc, sqc, allow_swp, sq->has_swp);
    PRM_SET(sqc, sqc, cqn, hv_cq(cq->ibv)->cqn);
    PRM_SET(sqc, sqc, tis_lst_sz, 1);
    PRM_SET(sqc, sqc, tis_num_0, sq->tisn);
    PRM_SET(wq, PRM_PTR(sqc, sqc, wq), uar_page, sq->uar.page);
    rings_fill_wq(PRM_PTR(sqc, sqc, wq), host, sq->blocks, sq->record, 6, RINGS_LOG_SQ);
    RINGS_MUST(job, host->ctx, in, sizeof(bytes), out);
    sq->sqn = PRM_GET(create_sq_out, out, sqn);
    rings_ready_sq(sq);
}

void ring_sq_free(struct ring_sq *sq)
{
    rings_destroy(sq->job, sq->ctx, PRM_CMD_OP_DESTROY_SQ, sq->sqn);
    rings_destroy(sq->job, sq->ctx, PRM_CMD_OP_DESTROY_TIS, sq->tisn);
    rings_destroy(sq->job, sq->ctx, PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, sq->tdn);
    hv_uar_free(hv_context(sq->ctx), &sq->uar);
}

uint16_t ring_sq_post(struct ring_sq *sq, uint8_t *wqe, size_t len, uint8_t opcode)
{
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe;
    uint16_t index = sq->pi;
    uint64_t first;

    PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, index);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, sq->sqn);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, (len + 15) / 16);
    PRM_SET(wqe_ctrl_seg, ctrl, ce, PRM_WQE_CE_ALWAYS);
    for (unsigned i = 0; i < ring_wqe_blocks(len); i++, sq->pi++) {
        memcpy(sq->blocks + sq->pi % (1u << RINGS_LOG_SQ) * 64, wqe + i * 64, 64);
    }
    sq->record[1] = GUINT32_TO_BE(sq->pi);
    memcpy(&first, wqe, sizeof(first));
    sim_must(sq->job, hv_ring_sq(hv_hca_of(sq->ctx), &sq->uar, GUINT64_FROM_BE(first)));
    return index;
}

/* -- receive queues ---------------------------------------------------------------------------- */

static void rings_ready_rq(struct ring_rq *rq)
{
    struct prm_modify_rq_in in[1] = {0};
    struct prm_modify_rq_out out[1] = {0};

    PRM_SET(modify_rq_in, in, opcode, PRM_CMD_OP_MODIFY_RQ);
    PRM_SET(modify_rq_in, in, rqn, rq->rqn);
    PRM_SET(rqc, PRM_PTR(modify_rq_in, in, ctx), state, PRM_RQC_STATE_RDY);
    RINGS_MUST(rq->job, rq->ctx, in, sizeof(in), out);
}

void ring_rq_make(struct ring_rq *rq, struct job *job, struct sim_host *host,
                  const struct ring_cq *cq, bool strips)
{
    uint8_t bytes[PRM_SIZE(create_rq_in) + 8] = {0};
    struct prm_create_rq_in *in = (void *)bytes;
    struct prm_create_rq_out out[1] = {0};
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);
    struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);

    rq->job = job;
    rq->ctx = host->ctx;
    rq->ring = sim_memory(job->sim, 32u << RINGS_LOG_RQ);
    rq->record = (uint32_t *)(void *)sim_memory(job->sim, 64);
    rq->wqes = 1u << RINGS_LOG_RQ;
    rq->span = sim_span(job, host, (size_t)rq->wqes * rq->bytes);
    PRM_SET(create_rq_in, in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(rqc, rqc, vsd, !strips);
    PRM_SET(rqc, rqc, flush_in_error_en, 1);
    PRM_SET(rqc, rqc, cqn, hv_cq(cq->ibv)->cqn);
    rings_fill_wq(wq, host, rq->ring, rq->record, rq->log_strides ? 5 : 4, RINGS_LOG_RQ);
    if (rq->log_strides) {
        PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC_STRIDING_RQ);
        PRM_SET(wq, wq, log_wqe_stride_size, rq->log_stride - 6);
        PRM_SET(wq, wq, log_wqe_num_of_strides, (rq->log_strides - 9) & 0xf); /* signed */
    }
    RINGS_MUST(job, host->ctx, in, sizeof(bytes), out);
    rq->rqn = PRM_GET(create_rq_out, out, rqn);
    rings_ready_rq(rq);
    for (unsigned i = 0; i < rq->wqes; i++) {
        ring_rq_post(rq);
    }
}

void ring_rq_free(struct ring_rq *rq)
{
    rings_destroy(rq->job, rq->ctx, PRM_CMD_OP_DESTROY_RQ, rq->rqn);
    sim_span_free(rq->job, &rq->span);
}

void ring_rq_post(struct ring_rq *rq)
{
    uint32_t slot = rq->pi++ % rq->wqes;
    uint8_t *wqe = rq->ring + slot * (rq->log_strides ? 32 : 16);
    struct prm_wqe_data_seg *seg = (void *)(wqe + (rq->log_strides ? 16 : 0));

    PRM_SET(wqe_data_seg, seg, byte_count, rq->bytes);
    PRM_SET(wqe_data_seg, seg, lkey, rq->span.mr->lkey);
    PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)rq->span.at + (size_t)slot * rq->bytes);
    rq->record[0] = GUINT32_TO_BE(rq->pi);
}

/* -- the way to them --------------------------------------------------------------------------- */

static void rings_make_rqt(struct ring_way *way, const uint32_t rqn[RINGS_TABLE])
{
    uint8_t bytes[PRM_SIZE(create_rqt_in) + RINGS_TABLE * PRM_SIZE(rq_num)] = {0};
    struct prm_create_rqt_in *in = (void *)bytes;
    struct prm_create_rqt_out out[1] = {0};
    struct prm_rqtc *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);

    PRM_SET(create_rqt_in, in, opcode, PRM_CMD_OP_CREATE_RQT);
    PRM_SET(rqtc, rqtc, rqt_max_size, RINGS_TABLE);
    PRM_SET(rqtc, rqtc, rqt_actual_size, RINGS_TABLE);
    for (unsigned i = 0; i < RINGS_TABLE; i++) {
        PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, i), rq_num, rqn[i]);
    }
    RINGS_MUST(way->job, way->ctx, in, sizeof(bytes), out);
    way->rqtn = PRM_GET(create_rqt_out, out, rqtn);
}

static void rings_make_tir(struct ring_way *way, const struct ring_hash *hash)
{
    struct prm_create_tir_in in[1] = {0};
    struct prm_create_tir_out out[1] = {0};
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);
    struct prm_rx_hash_field_select *select =
        hash->inner ? PRM_PTR(tirc, tirc, rx_hash_field_selector_inner)
                    : PRM_PTR(tirc, tirc, rx_hash_field_selector_outer);

    PRM_SET(create_tir_in, in, opcode, PRM_CMD_OP_CREATE_TIR);
    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_INDIRECT);
    PRM_SET(tirc, tirc, tunneled_offload_en, hash->inner);
    PRM_SET(tirc, tirc, indirect_table, way->rqtn);
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    PRM_SET(tirc, tirc, transport_domain, way->tdn);
    memcpy(tirc->bytes + PRM_OFFSET(tirc, rx_hash_toeplitz_key), hash->key, 40);
    PRM_SET(rx_hash_field_select, select, l3_prot_type, hash->ipv6);
    PRM_SET(rx_hash_field_select, select, l4_prot_type, hash->udp);
    PRM_SET(rx_hash_field_select, select, selected_fields,
            1u << PRM_RX_HASH_FIELD_SRC_IP | 1u << PRM_RX_HASH_FIELD_DST_IP |
                1u << PRM_RX_HASH_FIELD_L4_SPORT | 1u << PRM_RX_HASH_FIELD_L4_DPORT);
    RINGS_MUST(way->job, way->ctx, in, sizeof(in), out);
    way->tirn = PRM_GET(create_tir_out, out, tirn);
}

/* Frames with the host's address, so that frames to all hosts go nowhere. */
static struct hv_flow_rule rings_rule(const struct sim_host *host)
{
    struct hv_flow_rule rule = {.criteria = 1u << PRM_MATCH_CRITERIA_OUTER_HEADERS,
                                .action = PRM_FLOW_ACTION_FWD_DEST};
    struct prm_fte_match_set_lyr_2_4 *mask = PRM_PTR(fte_match_param, rule.mask, outer_headers);
    struct prm_fte_match_set_lyr_2_4 *value = PRM_PTR(fte_match_param, rule.value, outer_headers);

    PRM_SET(fte_match_set_lyr_2_4, mask, dmac_47_16, 0xffffffff);
    PRM_SET(fte_match_set_lyr_2_4, mask, dmac_15_0, 0xffff);
    PRM_SET(fte_match_set_lyr_2_4, value, dmac_47_16, prm_load32(host->config.mac));
    PRM_SET(fte_match_set_lyr_2_4, value, dmac_15_0, prm_load16(host->config.mac + 4));
    return rule;
}

static struct hv_flow_place rings_place(const struct ring_way *way)
{
    return (struct hv_flow_place){
        .type = PRM_FLOW_TABLE_TYPE_NIC_RX, .table_id = way->table_id, .group_id = way->group_id};
}

void ring_way_make(struct ring_way *way, struct job *job, struct sim_host *host,
                   const uint32_t rqn[RINGS_TABLE], const struct ring_hash *hash)
{
    struct hv_hca *hca = hv_hca_of(host->ctx);
    struct hv_flow_rule rule = rings_rule(host);
    const struct hv_flow_shape shape = {.type = PRM_FLOW_TABLE_TYPE_NIC_RX};
    struct hv_flow_dest dest = {.type = PRM_FLOW_DESTINATION_TYPE_TIR};
    struct hv_flow_place place;

    *way = (struct ring_way){.job = job, .ctx = host->ctx};
    way->tdn = rings_domain(job, host->ctx);
    rings_make_rqt(way, rqn);
    rings_make_tir(way, hash);
    sim_must(job, hv_flow_create_table(hca, &shape, NULL, &way->table_id));
    sim_must(job, hv_flow_set_root(hca, shape.type, way->table_id));
    place = rings_place(way);
    sim_must(job, hv_flow_create_group(hca, &place, &rule));
    way->group_id = place.group_id;
    dest.id = way->tirn;
    sim_must(job, hv_flow_set_entry(hca, &place, &rule, &dest, 1, false));
}

void ring_way_free(struct ring_way *way)
{
    struct hv_hca *hca = hv_hca_of(way->ctx);
    struct hv_flow_place place = rings_place(way);

    sim_must(way->job, hv_flow_delete_entry(hca, &place));
    sim_must(way->job, hv_flow_destroy_group(hca, &place));
    sim_must(way->job, hv_flow_unset_root(hca, place.type, place.table_id));
    hv_flow_destroy_table(hca, place.type, place.table_id);
    rings_destroy(way->job, way->ctx, PRM_CMD_OP_DESTROY_TIR, way->tirn);
    rings_destroy(way->job, way->ctx, PRM_CMD_OP_DESTROY_RQT, way->rqtn);
    rings_destroy(way->job, way->ctx, PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, way->tdn);
}
