/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "fw/cmd_table.h"
#include "model/memory/memic.h"
#include "tests/sim/examples.h"

#define LOG_RING 5 /* entries of each example's ring */

static uint64_t bus(const struct guest *g, uint64_t offset)
{
    return g->mem->mem.bus + offset;
}

/* Returns the next page of the guest's memory; after the last page it starts over. */
static uint64_t page(struct guest *g)
{
    uint64_t offset = g->next;

    g->next = (g->next + PCI_PAGE) % (1u << 20);
    return offset;
}

static void put_wq(struct guest *g, struct prm_wq *wq, unsigned type, unsigned log_stride,
                   uint64_t *dbr, uint64_t *ring)
{
    *dbr = page(g);
    *ring = page(g);
    memset(g->mem->ptr + *dbr, 0, 8);
    PRM_SET(wq, wq, wq_type, type);
    PRM_SET(wq, wq, pd, g->node->drv->pdn);
    PRM_SET(wq, wq, uar_page, g->node->drv->uarn);
    PRM_SET(wq, wq, dbr_addr, bus(g, *dbr));
    PRM_SET(wq, wq, log_wq_stride, log_stride);
    PRM_SET(wq, wq, log_wq_sz, LOG_RING);
    prm_store64(PRM_PTR_AT(wq, wq, pas, 0), bus(g, *ring));
}

static size_t create_cq(struct guest *g, struct prm_create_cq_in *in)
{
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);

    PRM_SET(cqc, cqc, log_cq_size, LOG_RING);
    PRM_SET(cqc, cqc, uar_page, g->node->drv->uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, g->node->drv->eq.eqn);
    PRM_SET(cqc, cqc, dbr_addr, bus(g, page(g)));
    PRM_SET_AT(create_cq_in, in, pas, 0, bus(g, page(g)));
    return PRM_SIZE(create_cq_in) + 8;
}

static size_t create_eq(struct guest *g, struct prm_create_eq_in *in)
{
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);

    PRM_SET(eqc, eqc, log_eq_size, LOG_RING);
    PRM_SET(eqc, eqc, uar_page, g->node->drv->uarn);
    PRM_SET_AT(create_eq_in, in, pas, 0, bus(g, page(g)));
    return PRM_SIZE(create_eq_in) + 8;
}

static size_t create_qp(struct guest *g, struct prm_create_qp_in *in)
{
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(qpc, qpc, pd, g->node->drv->pdn);
    PRM_SET(qpc, qpc, uar_page, g->node->drv->uarn);
    PRM_SET(qpc, qpc, log_sq_size, 4);
    PRM_SET(qpc, qpc, log_rq_size, 4);
    PRM_SET(qpc, qpc, log_rq_stride, 2);
    PRM_SET(qpc, qpc, cqn_snd, g->node->cq.cqn);
    PRM_SET(qpc, qpc, cqn_rcv, g->node->cq.cqn);
    PRM_SET(qpc, qpc, dbr_addr, bus(g, page(g)));
    PRM_SET_AT(create_qp_in, in, pas, 0, bus(g, page(g)));
    return PRM_SIZE(create_qp_in) + 8;
}

/* Fills in a transition of the QP that is in the right state for it. */
static size_t modify_qp(struct guest *g, struct prm_rst2init_qp_in *in, const struct drv_qp *qp)
{
    struct prm_qpc *qpc = PRM_PTR(rst2init_qp_in, in, qpc);
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(rst2init_qp_in, in, qpn, qp->qpn);
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(qpc, qpc, mtu, 3);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, remote_qpn, g->rc->qpn);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, hop_limit, 64);
    memcpy(PRM_PTR(ads, ads, rgid_rip), g->node->gid, 16);
    return PRM_SIZE(rst2init_qp_in);
}

static size_t create_srq(struct guest *g, struct prm_create_srq_in *in)
{
    struct prm_srqc *srqc = PRM_PTR(create_srq_in, in, srq_context_entry);

    PRM_SET(srqc, srqc, log_srq_size, LOG_RING);
    PRM_SET(srqc, srqc, log_rq_stride, 2);
    PRM_SET(srqc, srqc, pd, g->node->drv->pdn);
    PRM_SET(srqc, srqc, dbr_addr, bus(g, page(g)));
    PRM_SET_AT(create_srq_in, in, pas, 0, bus(g, page(g)));
    return PRM_SIZE(create_srq_in) + 8;
}

static size_t create_dct(struct guest *g, struct prm_create_dct_in *in)
{
    struct prm_dctc *ctx = PRM_PTR(create_dct_in, in, dct_context_entry);

    PRM_SET(dctc, ctx, user_index, 0xffffff);
    PRM_SET(dctc, ctx, cqn, g->node->cq.cqn);
    PRM_SET(dctc, ctx, pd, g->node->drv->pdn);
    PRM_SET(dctc, ctx, srqn_xrqn, g->srq->srqn);
    PRM_SET(dctc, ctx, rre, 1);
    PRM_SET(dctc, ctx, rwe, 1);
    PRM_SET(dctc, ctx, rae, 1);
    PRM_SET(dctc, ctx, atomic_mode, PRM_ATOMIC_MODE_IB_SPEC);
    PRM_SET(dctc, ctx, dc_access_key, EXAMPLE_DC_KEY);
    PRM_SET(dctc, ctx, mtu, PRM_QP_MTU_1024);
    PRM_SET(dctc, ctx, port, 1);
    return PRM_SIZE(create_dct_in);
}

static size_t create_xrc_srq(struct guest *g, struct prm_create_xrc_srq_in *in)
{
    struct prm_xrc_srqc *ctx = PRM_PTR(create_xrc_srq_in, in, xrc_srq_context_entry);
    uint64_t dbr = bus(g, page(g));

    PRM_SET(xrc_srqc, ctx, log_xrc_srq_size, LOG_RING);
    PRM_SET(xrc_srqc, ctx, log_rq_stride, 2);
    PRM_SET(xrc_srqc, ctx, xrcd, g->xrcd);
    PRM_SET(xrc_srqc, ctx, cqn, g->node->cq.cqn);
    PRM_SET(xrc_srqc, ctx, pd, g->node->drv->pdn);
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, dbr >> 32);
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (uint32_t)dbr >> 2);
    PRM_SET_AT(create_xrc_srq_in, in, pas, 0, bus(g, page(g)));
    return PRM_SIZE(create_xrc_srq_in) + 8;
}

static size_t create_rmp(struct guest *g, struct prm_create_rmp_in *in)
{
    struct prm_rmpc *rmpc = PRM_PTR(create_rmp_in, in, ctx);
    uint64_t dbr, ring;

    PRM_SET(rmpc, rmpc, state, 1);
    put_wq(g, PRM_PTR(rmpc, rmpc, wq), 0, 6, &dbr, &ring);
    return PRM_SIZE(create_rmp_in) + 8;
}

static size_t create_mkey(struct guest *g, struct prm_create_mkey_in *in)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint8_t *mtt = PRM_PTR(create_mkey_in, in, klm_pas_mtt);

    PRM_SET(create_mkey_in, in, translations_octword_actual_size, 4);
    PRM_SET(mkc, mkc, access_mode_1_0,
            g->keys++ % 2 ? PRM_MKC_ACCESS_MODE_KLMS : PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, g->node->drv->pdn);
    PRM_SET(mkc, mkc, start_addr, g->mem->va);
    PRM_SET(mkc, mkc, len, 8 * PCI_PAGE);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, log_page_size, 12);
    for (unsigned i = 0; i < 8; i++) {
        prm_store64(mtt + 8 * i, bus(g, page(g)));
    }
    return PRM_SIZE(create_mkey_in) + 64;
}

static size_t create_tis(struct guest *g, struct prm_create_tis_in *in)
{
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain, g->tdn);
    return PRM_SIZE(create_tis_in);
}

static size_t create_sq(struct guest *g, struct prm_create_sq_in *in)
{
    struct prm_sqc *sqc = PRM_PTR(create_sq_in, in, ctx);

    PRM_SET(sqc, sqc, cqn, g->node->cq.cqn);
    PRM_SET(sqc, sqc, reg_umr, 1);
    PRM_SET(sqc, sqc, tis_lst_sz, 1);
    PRM_SET(sqc, sqc, tis_num_0, g->tisn);
    put_wq(g, PRM_PTR(sqc, sqc, wq), PRM_WQ_TYPE_CYCLIC, 6, &g->sq_dbr, &g->sq_ring);
    return PRM_SIZE(create_sq_in) + 8;
}

static size_t modify_sq(struct guest *g, struct prm_modify_sq_in *in)
{
    PRM_SET(modify_sq_in, in, sqn, g->sqn);
    PRM_SET(modify_sq_in, in, sq_state, g->ready ? PRM_SQC_STATE_RDY : PRM_SQC_STATE_RST);
    PRM_SET(sqc, PRM_PTR(modify_sq_in, in, ctx), state, PRM_SQC_STATE_RDY);
    return PRM_SIZE(modify_sq_in);
}

static size_t create_rq(struct guest *g, struct prm_create_rq_in *in)
{
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);

    PRM_SET(rqc, rqc, cqn, g->node->cq.cqn);
    put_wq(g, PRM_PTR(rqc, rqc, wq), PRM_WQ_TYPE_CYCLIC, 6, &g->rq_dbr, &g->rq_ring);
    return PRM_SIZE(create_rq_in) + 8;
}

static size_t modify_rq(struct guest *g, struct prm_modify_rq_in *in)
{
    PRM_SET(modify_rq_in, in, rqn, g->rqn);
    PRM_SET(modify_rq_in, in, rq_state, g->ready ? PRM_RQC_STATE_RDY : PRM_RQC_STATE_RST);
    PRM_SET(rqc, PRM_PTR(modify_rq_in, in, ctx), state, PRM_RQC_STATE_RDY);
    return PRM_SIZE(modify_rq_in);
}

static size_t create_rqt(struct guest *g, struct prm_create_rqt_in *in)
{
    struct prm_rqtc *rqtc = PRM_PTR(create_rqt_in, in, rqt_context);

    PRM_SET(rqtc, rqtc, rqt_max_size, 2);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 2);
    PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, 0), rq_num, g->rqn);
    PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, 1), rq_num, g->rqn);
    return PRM_SIZE(create_rqt_in) + 8;
}

static size_t modify_rqt(struct guest *g, struct prm_modify_rqt_in *in)
{
    struct prm_rqtc *rqtc = PRM_PTR(modify_rqt_in, in, ctx);

    PRM_SET(modify_rqt_in, in, rqtn, g->rqtn);
    PRM_SET(rqt_bitmask, PRM_PTR(modify_rqt_in, in, bitmask), rqn_list, 1);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 1);
    PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, 0), rq_num, g->rqn);
    return PRM_SIZE(modify_rqt_in) + 8;
}

static size_t create_tir(struct guest *g, struct prm_create_tir_in *in)
{
    struct prm_tirc *tirc = PRM_PTR(create_tir_in, in, ctx);
    struct prm_rx_hash_field_select *select = PRM_PTR(tirc, tirc, rx_hash_field_selector_outer);

    PRM_SET(tirc, tirc, transport_domain, g->tdn);
    PRM_SET(tirc, tirc, disp_type, PRM_TIRC_DISP_TYPE_INDIRECT);
    PRM_SET(tirc, tirc, indirect_table, g->rqtn);
    PRM_SET(tirc, tirc, rx_hash_fn, PRM_RX_HASH_FN_TOEPLITZ);
    PRM_SET(tirc, tirc, self_lb_block, 3); /* it takes frames of its own domain */
    memset(PRM_PTR(tirc, tirc, rx_hash_toeplitz_key), 0x5a, 40);
    PRM_SET(rx_hash_field_select, select, selected_fields, 0xf);
    return PRM_SIZE(create_tir_in);
}

static size_t create_flow_table(struct guest *g, struct prm_create_flow_table_in *in)
{
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, in, flow_table_context);

    PRM_SET(flow_table_context, ctx, log_size, 4);
    PRM_SET(flow_table_context, ctx, level, 64);
    return PRM_SIZE(create_flow_table_in);
}

static size_t set_flow_table_root(struct guest *g, struct prm_set_flow_table_root_in *in)
{
    PRM_SET(set_flow_table_root_in, in, table_id, g->table);
    return PRM_SIZE(set_flow_table_root_in);
}

static size_t create_flow_group(struct guest *g, struct prm_create_flow_group_in *in)
{
    PRM_SET(create_flow_group_in, in, table_id, g->table);
    PRM_SET(create_flow_group_in, in, start_flow_index, g->group_made ? 8 : 0);
    PRM_SET(create_flow_group_in, in, end_flow_index, g->group_made ? 15 : 7);
    g->group_made = true;
    return PRM_SIZE(create_flow_group_in);
}

static size_t set_fte(struct guest *g, struct prm_set_fte_in *in)
{
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    struct prm_dest_format_struct *dest = PRM_PTR_AT(flow_context, ctx, destination, 0);

    PRM_SET(set_fte_in, in, table_id, g->table);
    PRM_SET(set_fte_in, in, flow_index, g->next_entry++ % 8);
    PRM_SET(flow_context, ctx, group_id, g->group);
    PRM_SET(flow_context, ctx, action, PRM_FLOW_ACTION_FWD_DEST);
    PRM_SET(flow_context, ctx, destination_list_size, 1);
    PRM_SET(dest_format_struct, dest, destination_type, PRM_FLOW_DESTINATION_TYPE_TIR);
    PRM_SET(dest_format_struct, dest, destination_id, g->tirn);
    return PRM_SIZE(set_fte_in) + 8;
}

/* Commands about a flow table, group or entry have their numbers in the same places. */
static size_t about_flow(struct guest *g, struct prm_query_flow_group_in *in)
{
    PRM_SET(query_flow_group_in, in, table_id, g->table);
    switch (prm_load16(in)) {
    case PRM_CMD_OP_QUERY_FLOW_GROUP:
    case PRM_CMD_OP_DESTROY_FLOW_GROUP:
        PRM_SET(query_flow_group_in, in, group_id, g->group);
        break;
    }
    return fw_cmd_find((uint16_t)prm_load16(in))->command->in_least;
}

static size_t create_umem(struct guest *g, struct prm_create_umem_in *in)
{
    struct prm_umem *umem = PRM_PTR(create_umem_in, in, umem);

    PRM_SET(create_umem_in, in, uid, g->uid);
    PRM_SET(umem, umem, num_of_mtt, 4);
    for (unsigned i = 0; i < 4; i++) {
        prm_store64(PRM_PTR(umem, umem, mtt) + 8 * i, bus(g, page(g)));
    }
    return PRM_SIZE(create_umem_in) + 32;
}

static size_t create_psv(struct guest *g, struct prm_create_psv_in *in)
{
    PRM_SET(create_psv_in, in, num_psv, 1);
    PRM_SET(create_psv_in, in, pd, g->node->drv->pdn);
    return PRM_SIZE(create_psv_in);
}

static size_t alloc_memic(struct guest *g, struct prm_alloc_memic_in *in)
{
    PRM_SET(alloc_memic_in, in, range_start_addr, MEMIC_BAR_START);
    PRM_SET(alloc_memic_in, in, range_size, MEMIC_BAR_SIZE);
    PRM_SET(alloc_memic_in, in, memic_size, EXAMPLE_MEMIC);
    return PRM_SIZE(alloc_memic_in);
}

static size_t dealloc_memic(struct guest *g, struct prm_dealloc_memic_in *in)
{
    PRM_SET(dealloc_memic_in, in, memic_start_addr, g->memic);
    PRM_SET(dealloc_memic_in, in, memic_size, EXAMPLE_MEMIC);
    return PRM_SIZE(dealloc_memic_in);
}

static size_t modify_memic(struct guest *g, struct prm_modify_memic_in *in)
{
    PRM_SET(modify_memic_in, in, memic_start_addr, g->memic);
    return PRM_SIZE(modify_memic_in);
}

static size_t set_roce_address(struct guest *g, struct prm_set_roce_address_in *in)
{
    struct prm_roce_addr_layout *addr = PRM_PTR(set_roce_address_in, in, roce_address);

    memcpy(PRM_PTR(roce_addr_layout, addr, source_l3_address), g->node->gid, 16);
    PRM_SET(roce_addr_layout, addr, source_mac_31_0, 7);
    PRM_SET(roce_addr_layout, addr, roce_version, 2);
    return PRM_SIZE(set_roce_address_in);
}

/* Returns the guest's number of the object: byte 8 of the commands about one object. */
static size_t about(struct guest *g, uint8_t *in, uint32_t num)
{
    prm_store32(in + 8, num);
    return fw_cmd_find((uint16_t)prm_load16(in))->command->in_least;
}

static size_t about_variant(struct guest *g, uint8_t *in, uint16_t op_mod, uint32_t num)
{
    prm_store16(in + 6, op_mod);
    return about(g, in, num);
}

/* Fills in a general object: its type is where other commands have their op_mod. */
static size_t create_mapping(struct guest *g, struct prm_general_object_in *in)
{
    struct prm_av_qp_mapping *mapping = PRM_PTR(general_object_in, in, object);
    void *hdr = PRM_PTR(general_object_in, in, hdr);

    PRM_SET(general_obj_in_cmd_hdr, hdr, obj_type, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING);
    PRM_SET(av_qp_mapping, mapping, qpn, g->rc->qpn);
    memcpy(PRM_PTR(ud_av, PRM_PTR(av_qp_mapping, mapping, remote_address_vector), rgid_or_rip),
           g->node->gid, 16);
    return PRM_SIZE(general_object_in) + PRM_SIZE(av_qp_mapping);
}

static size_t query_q_counter(struct guest *g, struct prm_query_q_counter_in *in)
{
    PRM_SET(query_q_counter_in, in, counter_set_id, g->q_counter);
    return PRM_SIZE(query_q_counter_in);
}

static size_t query_flow_counter(struct guest *g, struct prm_query_flow_counter_in *in)
{
    PRM_SET(query_flow_counter_in, in, flow_counter_id, g->counter);
    return PRM_SIZE(query_flow_counter_in);
}

static size_t create_xrq(struct guest *g, struct prm_create_xrq_in *in)
{
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, in, xrq_context);
    uint64_t dbr, ring;

    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, dc, 1);
    PRM_SET(xrqc, xrqc, cqn, g->node->cq.cqn);
    PRM_SET(tag_matching_topology_context, PRM_PTR(xrqc, xrqc, tag_matching_topology_context),
            log_matching_list_sz, 4);
    put_wq(g, PRM_PTR(xrqc, xrqc, wq), 0, 6, &dbr, &ring);
    if (!g->xrqn) {
        g->xrq = (struct drv_srq){.ring.ptr = g->mem->ptr + ring,
                                  .log_size = LOG_RING,
                                  .log_stride = 6,
                                  .dbr = (uint32_t *)(g->mem->ptr + dbr)};
    }
    return PRM_SIZE(create_xrq_in) + 8;
}

static size_t set_xrq_dc_params(struct guest *g, struct prm_set_xrq_dc_params_entry_in *in)
{
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, g->xrqn);
    PRM_SET(set_xrq_dc_params_entry_in, in, ack_timeout, 10);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, PRM_QP_MTU_1024);
    return PRM_SIZE(set_xrq_dc_params_entry_in);
}

/* Makes what the XRQ needs to be used: its list's QP, and consecutive slots. */
static void make_tags(struct guest *g)
{
    struct drv_path self;

    g->xrq.srqn = g->xrqn;
    for (unsigned i = 0; i < 1u << LOG_RING; i++) {
        prm_store16((uint8_t *)g->xrq.ring.ptr + i * 64 + 2, (i + 1) % (1u << LOG_RING));
    }
    g->tags = node_qp(g->node, PRM_QP_ST_RC, &g->xrq);
    self = path_to(g->node, g->tags);
    g_assert_cmpint(drv_qp_connect(g->tags, &self), ==, 0);
}

void guest_connect_dci(struct guest *g)
{
    struct drv_path self = path_to(g->node, g->dci);

    self.retry_count = self.rnr_retry = 2;
    self.ack_timeout = 10;
    g_assert_cmpint(drv_qp_connect(g->dci, &self), ==, 0);
}

static size_t modify_rmp(struct guest *g, struct prm_modify_rmp_in *in)
{
    struct prm_rmpc *rmpc = PRM_PTR(modify_rmp_in, in, ctx);

    PRM_SET(modify_rmp_in, in, rmp_state, PRM_RMPC_STATE_RDY);
    PRM_SET(modify_rmp_in, in, rmpn, g->rmpn);
    PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, in, bitmask), lwm, 1);
    PRM_SET(rmpc, rmpc, state, PRM_RMPC_STATE_RDY);
    PRM_SET(wq, PRM_PTR(rmpc, rmpc, wq), lwm, 1);
    return PRM_SIZE(modify_rmp_in);
}

#define ABOUT(op, member)                                                                          \
    case PRM_CMD_OP_##op:                                                                          \
        return about(g, in, g->member)
#define EXAMPLE(op, fn)                                                                            \
    case PRM_CMD_OP_##op:                                                                          \
        return fn(g, in)

size_t example(struct guest *g, uint16_t opcode, void *in)
{
    memset(in, 0, EXAMPLE_MAX);
    prm_store16(in, opcode);
    switch (opcode) {
        EXAMPLE(CREATE_CQ, create_cq);
        EXAMPLE(CREATE_EQ, create_eq);
        EXAMPLE(CREATE_QP, create_qp);
    case PRM_CMD_OP_RST2INIT_QP:
        return modify_qp(g, in, g->rc);
    case PRM_CMD_OP_INIT2INIT_QP:
        return modify_qp(g, in, g->init);
    case PRM_CMD_OP_INIT2RTR_QP:
        return modify_qp(g, in, g->init);
    case PRM_CMD_OP_RTR2RTS_QP:
        return modify_qp(g, in, g->rtr);
    case PRM_CMD_OP_RTS2RTS_QP:
        return modify_qp(g, in, g->uc);
    case PRM_CMD_OP_SQERR2RTS_QP:
        return modify_qp(g, in, g->sqer);
        EXAMPLE(CREATE_SRQ, create_srq);
        EXAMPLE(CREATE_XRC_SRQ, create_xrc_srq);
        EXAMPLE(CREATE_RMP, create_rmp);
        EXAMPLE(CREATE_XRQ, create_xrq);
        EXAMPLE(SET_XRQ_DC_PARAMS_ENTRY, set_xrq_dc_params);
        EXAMPLE(CREATE_DCT, create_dct);
        EXAMPLE(CREATE_MKEY, create_mkey);
        EXAMPLE(CREATE_TIS, create_tis);
        EXAMPLE(CREATE_SQ, create_sq);
        EXAMPLE(MODIFY_SQ, modify_sq);
        EXAMPLE(CREATE_RQ, create_rq);
        EXAMPLE(MODIFY_RQ, modify_rq);
        EXAMPLE(CREATE_RQT, create_rqt);
        EXAMPLE(MODIFY_RQT, modify_rqt);
        EXAMPLE(CREATE_TIR, create_tir);
        EXAMPLE(CREATE_FLOW_TABLE, create_flow_table);
        EXAMPLE(SET_FLOW_TABLE_ROOT, set_flow_table_root);
        EXAMPLE(CREATE_FLOW_GROUP, create_flow_group);
        EXAMPLE(SET_FLOW_TABLE_ENTRY, set_fte);
        EXAMPLE(CREATE_UMEM, create_umem);
        EXAMPLE(CREATE_PSV, create_psv);
        EXAMPLE(ALLOC_MEMIC, alloc_memic);
        EXAMPLE(DEALLOC_MEMIC, dealloc_memic);
        EXAMPLE(MODIFY_MEMIC, modify_memic);
        EXAMPLE(SET_ROCE_ADDRESS, set_roce_address);
        EXAMPLE(DESTROY_FLOW_TABLE, about_flow);
        EXAMPLE(QUERY_FLOW_TABLE, about_flow);
        EXAMPLE(MODIFY_FLOW_TABLE, about_flow);
        EXAMPLE(DESTROY_FLOW_GROUP, about_flow);
        EXAMPLE(QUERY_FLOW_GROUP, about_flow);
        EXAMPLE(QUERY_FLOW_TABLE_ENTRY, about_flow);
        EXAMPLE(DELETE_FLOW_TABLE_ENTRY, about_flow);
        ABOUT(QUERY_QP, rc->qpn);
        ABOUT(DESTROY_QP, rc->qpn);
        ABOUT(2ERR_QP, rc->qpn);
        ABOUT(2RST_QP, rc->qpn);
        ABOUT(QUERY_CQ, node->cq.cqn);
        ABOUT(MODIFY_CQ, node->cq.cqn);
        ABOUT(DESTROY_CQ, node->cq.cqn);
        ABOUT(QUERY_SRQ, srq->srqn);
    case PRM_CMD_OP_QUERY_PAGES:
        return about_variant(g, in, PRM_QUERY_PAGES_OP_REGULAR_PAGES, 0);
    case PRM_CMD_OP_ARM_RQ:
        return about_variant(g, in, PRM_ARM_RQ_OP_SRQ, g->srq->srqn);
    case PRM_CMD_OP_ARM_XRC_SRQ:
        return about_variant(g, in, PRM_ARM_XRC_SRQ_OP_XRC_SRQ, g->xrc_srqn);
        ABOUT(QUERY_XRC_SRQ, xrc_srqn);
        ABOUT(DESTROY_XRC_SRQ, xrc_srqn);
        ABOUT(QUERY_DCT, dctn);
        ABOUT(ARM_DCT_FOR_KEY_VIOLATION, dctn);
        ABOUT(DRAIN_DCT, dctn);
        ABOUT(DESTROY_DCT, dctn);
        EXAMPLE(MODIFY_RMP, modify_rmp);
        ABOUT(QUERY_RMP, rmpn);
        ABOUT(DESTROY_RMP, rmpn);
        ABOUT(ARM_XRQ, xrqn);
        ABOUT(QUERY_XRQ, xrqn);
        ABOUT(DESTROY_XRQ, xrqn);
        EXAMPLE(CREATE_GENERAL_OBJECT, create_mapping);
    case PRM_CMD_OP_MODIFY_GENERAL_OBJECT:
    case PRM_CMD_OP_QUERY_GENERAL_OBJECT:
    case PRM_CMD_OP_DESTROY_GENERAL_OBJECT:
        return about_variant(g, in, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING, g->mapping);
        EXAMPLE(QUERY_Q_COUNTER, query_q_counter);
        ABOUT(DEALLOC_Q_COUNTER, q_counter);
        ABOUT(DEALLOC_FLOW_COUNTER, counter);
        EXAMPLE(QUERY_FLOW_COUNTER, query_flow_counter);
        ABOUT(MODIFY_TIS, tisn);
        ABOUT(MODIFY_TIR, tirn);
        ABOUT(RTS2SQD_QP, uc->qpn);
        ABOUT(SQD_RTS_QP, uc->qpn);
        ABOUT(DESTROY_SRQ, srq->srqn);
        ABOUT(QUERY_EQ, node->drv->eq.eqn);
        ABOUT(DESTROY_EQ, node->drv->eq.eqn);
        ABOUT(QUERY_SQ, sqn);
        ABOUT(DESTROY_SQ, sqn);
        ABOUT(QUERY_RQ, rqn);
        ABOUT(DESTROY_RQ, rqn);
        ABOUT(QUERY_TIS, tisn);
        ABOUT(DESTROY_TIS, tisn);
        ABOUT(QUERY_TIR, tirn);
        ABOUT(DESTROY_TIR, tirn);
        ABOUT(QUERY_RQT, rqtn);
        ABOUT(DESTROY_RQT, rqtn);
        ABOUT(DEALLOC_PD, node->drv->pdn);
        ABOUT(DEALLOC_UAR, node->drv->uarn);
        ABOUT(DEALLOC_TRANSPORT_DOMAIN, tdn);
        ABOUT(DEALLOC_XRCD, xrcd);
        ABOUT(DESTROY_UMEM, umem);
        ABOUT(DESTROY_PSV, psvn);
        ABOUT(DESTROY_UCTX, uid);
        ABOUT(QUERY_MKEY, mem->mr.key >> 8);
        ABOUT(DESTROY_MKEY, mem->mr.key >> 8);
    default:
        return fw_cmd_find(opcode)->command->in_least;
    }
}

/* Runs an example. */
static void run_example(struct guest *g, uint16_t opcode, uint8_t out[64])
{
    uint8_t in[EXAMPLE_MAX];
    size_t len = example(g, opcode, in);
    int status = drv_cmd(g->node->drv, in, len, out, 64);

    require(status == 0, "example of command 0x%x: status 0x%x, syndrome 0x%x", opcode, status,
            g->node->drv->syndrome);
}

/* Runs an example in whose output the number of the new object is at byte 8. */
static uint32_t make(struct guest *g, uint16_t opcode)
{
    uint8_t out[64] = {0};

    run_example(g, opcode, out);
    return (uint32_t)prm_load32(out + 8) & 0xffffff;
}

static void make_psv(struct guest *g)
{
    uint8_t out[64] = {0};

    run_example(g, PRM_CMD_OP_CREATE_PSV, out);
    g->psvn = PRM_GET(create_psv_out, (struct prm_create_psv_out *)out, psv0_index);
}

static void make_memic(struct guest *g)
{
    uint8_t out[64] = {0};

    run_example(g, PRM_CMD_OP_ALLOC_MEMIC, out);
    g->memic = PRM_GET(alloc_memic_out, (struct prm_alloc_memic_out *)out, memic_start_addr);
}

void guest_init(struct guest *g, struct node *node)
{
    static const struct drv_path nowhere;
    struct drv_wc wc;
    struct drv_path self;

    memset(g, 0, sizeof(*g));
    g->node = node;
    g->mem = node_buf(node, GUEST_MEM, DRV_ALL, 0);
    g->srq = node_srq(node, LOG_RING);
    g->rc = node_qp(node, PRM_QP_ST_RC, NULL);
    g->init = node_qp(node, PRM_QP_ST_RC, NULL);
    g->rtr = node_qp(node, PRM_QP_ST_RC, NULL);
    g->sqer = node_qp(node, PRM_QP_ST_UC, NULL);
    g->uc = node_qp(node, PRM_QP_ST_UC, g->srq);
    g->ud = node_qp(node, PRM_QP_ST_UD, NULL);
    g->umr = node_qp(node, PRM_QP_ST_REG_UMR, NULL);
    g->rc_loop = node_qp(node, PRM_QP_ST_RC, NULL);
    self = path_to(node, g->rc_loop);
    self.retry_count = self.rnr_retry = 2; /* requests that nobody receives end soon */
    g_assert_cmpint(drv_qp_connect(g->rc_loop, &self), ==, 0);
    self = path_to(node, g->uc);
    g_assert_cmpint(drv_qp_to_init(g->init, &self), ==, 0);
    g_assert_cmpint(drv_qp_to_init(g->rtr, &self), ==, 0);
    g_assert_cmpint(drv_qp_to_rtr(g->rtr, &self), ==, 0);
    g_assert_cmpint(drv_qp_connect(g->sqer, &self), ==, 0);
    g_assert_cmpint(drv_qp_connect(g->uc, &self), ==, 0);
    g_assert_cmpint(drv_qp_connect(g->ud, &nowhere), ==, 0);
    g_assert_cmpint(drv_qp_connect(g->umr, &nowhere), ==, 0);
    /* an invalid key takes its send queue to error */
    drv_post_send(g->sqer, &(struct drv_send){.opcode = PRM_WQE_OPCODE_SEND,
                                              .sge = &(struct drv_sge){.len = 1},
                                              .num_sge = 1});
    inproc_settle(node->hca->world);
    g_assert_cmpuint(qp_state(g->sqer), ==, PRM_QP_STATE_SQER);
    while (drv_poll_cq(node->drv, &node->cq, &wc)) {
    }
    g->tdn = make(g, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    g->xrcd = make(g, PRM_CMD_OP_ALLOC_XRCD);
    g->xrc_srqn = make(g, PRM_CMD_OP_CREATE_XRC_SRQ);
    g->rmpn = make(g, PRM_CMD_OP_CREATE_RMP);
    g->xrqn = make(g, PRM_CMD_OP_CREATE_XRQ);
    g->dctn = make(g, PRM_CMD_OP_CREATE_DCT);
    make_tags(g);
    g->dci = node_qp(node, PRM_QP_ST_DCI, g->srq);
    guest_connect_dci(g);
    g->counter = make(g, PRM_CMD_OP_ALLOC_FLOW_COUNTER);
    g->q_counter = make(g, PRM_CMD_OP_ALLOC_Q_COUNTER);
    g->keys = 1;
    g->umr_key = make(g, PRM_CMD_OP_CREATE_MKEY) << 8;
    g->tisn = make(g, PRM_CMD_OP_CREATE_TIS);
    g->sqn = make(g, PRM_CMD_OP_CREATE_SQ);
    make(g, PRM_CMD_OP_MODIFY_SQ);
    g->rqn = make(g, PRM_CMD_OP_CREATE_RQ);
    make(g, PRM_CMD_OP_MODIFY_RQ);
    g->ready = true;
    g->rqtn = make(g, PRM_CMD_OP_CREATE_RQT);
    g->tirn = make(g, PRM_CMD_OP_CREATE_TIR);
    g->table = make(g, PRM_CMD_OP_CREATE_FLOW_TABLE);
    make(g, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    g->group = make(g, PRM_CMD_OP_CREATE_FLOW_GROUP);
    make(g, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    g->uid = make(g, PRM_CMD_OP_CREATE_UCTX) & 0xffff;
    g->umem = make(g, PRM_CMD_OP_CREATE_UMEM);
    g->mapping = make(g, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    make_psv(g);
    make_memic(g);
}

int num_commands(void)
{
    int n = 0;

    while (fw_cmd_at((size_t)n)) {
        n++;
    }
    return n;
}

void guest_tell(const struct guest *g, struct storm *s)
{
    const uint32_t nums[] = {
        g->rc->qpn,
        g->uc->qpn,
        g->ud->qpn,
        g->umr->qpn,
        g->srq->srqn,
        g->tdn,
        g->xrcd,
        g->xrc_srqn,
        g->rmpn,
        g->xrqn,
        g->tisn,
        g->sqn,
        g->rqn,
        g->rqtn,
        g->tirn,
        g->counter,
        g->q_counter,
        g->table,
        g->group,
        g->uid,
        g->umem,
        g->node->cq.cqn,
        g->node->drv->pdn,
        g->node->drv->uarn,
        g->node->drv->eq.eqn,
        g->mem->mr.key,
        g->mem->mr.key >> 8,
        g->node->drv->resd_lkey,
        g->dctn,
        g->dci->qpn,
        g->mapping,
        g->psvn,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(nums); i++) {
        storm_num(s, nums[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        storm_addr(s, bus(g, i * 3 * PCI_PAGE));
        storm_addr(s, g->mem->va + i * 5 * PCI_PAGE);
    }
    storm_addr(s, g->memic);
}
