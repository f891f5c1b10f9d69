/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the function says it can do: general, atomic, RoCE and event capabilities, and what of them
 * the driver may change before INIT_HCA.
 *
 * Every value follows from something that exists: a command in a table (has()), a limit of the
 * model, the profile. What is not set here is 0: absent. "max" is what the function could do,
 * "cur" what it is set to; they differ only in the fields that SET_HCA_CAP takes.
 */
#include <string.h>
#include "fw/cmd_table.h"
#include "fw/caps.h"
#include "fw/fw_internal.h"
#include "model/rdma/mcg.h"
#include "model/memory/mkey.h"
#include "model/rdma/qp.h"
#include "model/eth/steering.h"

/* Values of cmd_hca_cap fields (mlx5_ifc.h). */
#define PKEY_TABLE_128         0
#define GID_TABLE_128          4 /* of the InfiniBand table, which an Ethernet port does not use */
#define CMDIF_CHECKSUM_INITIAL 1
#define CMDIF_CHECKSUM_ENABLED 3
#define CQE_VERSION_1          1
#define LOG_UAR_PAGE           0 /* UARs of 4 KiB, one in each of the host's pages: no larger ones */
#define TRAFFIC_CLASSES        1 /* the port has one queue (fw/regs_ppcnt.c) */

/* The number spaces of TIRs, TISes and RQTs (model/core/obj_classes.def). */
#define LOG_MAX_ETH_OBJECTS 16

bool caps_has_command(uint16_t opcode)
{
    return fw_cmd_find(opcode) != NULL;
}

static bool has(uint16_t opcode)
{
    return caps_has_command(opcode);
}

#define CAP(field, value) PRM_SET(cmd_hca_cap, cap, field, value)

static void general_objects(const struct fw *fw, bool max, uint8_t *cap)
{
    const struct hca_limits *l = &fw->hca.limits;

    CAP(log_max_qp, max ? l->log_max_qp : fw->caps.log_max_qp);
    CAP(log_max_qp_sz, l->log_max_qp_sz);
    CAP(log_max_srq, l->log_max_srq);
    CAP(log_max_srq_sz, l->log_max_srq_sz);
    CAP(log_max_cq, l->log_max_cq);
    CAP(log_max_cq_sz, l->log_max_cq_sz);
    CAP(log_max_eq, l->log_max_eq);
    CAP(log_max_eq_sz, l->log_max_eq_sz);
    CAP(log_max_mkey, l->log_max_mkey);
    CAP(log_max_pd, l->log_max_pd);
    CAP(log_max_transport_domain, l->log_max_pd);
    CAP(log_max_msg, l->log_max_msg);
    CAP(log_max_ra_req_qp, l->log_max_ra_req_qp);
    CAP(log_max_ra_res_qp, l->log_max_ra_res_qp);
    CAP(max_wqe_sz_sq, l->max_sq_wqe);
    CAP(max_wqe_sz_rq, l->max_rq_wqe);
    CAP(max_sgl_for_optimized_performance, 16);
    CAP(log_max_rq, l->log_max_qp);
    CAP(log_max_sq, l->log_max_qp);
    CAP(log_max_wq_sz, l->log_max_qp_sz);
    CAP(log_max_rmp, l->log_max_srq);
    CAP(log_max_tir, LOG_MAX_ETH_OBJECTS);
    CAP(log_max_tis, LOG_MAX_ETH_OBJECTS);
    CAP(log_max_tis_per_sq, 0);
    CAP(log_max_rqt, LOG_MAX_ETH_OBJECTS);
    CAP(log_max_rqt_size, 11);
    CAP(log_min_stride_sz_rq, 4);
    CAP(log_max_stride_sz_rq, 9);
    CAP(log_min_stride_sz_sq, 6);
    CAP(log_max_stride_sz_sq, 6);
    CAP(basic_cyclic_rcv_wqe, 1);
}

static void general_memory(const struct fw *fw, bool max, uint8_t *cap)
{
    const struct hca_limits *l = &fw->hca.limits;

    CAP(log_pg_sz, 12);
    CAP(log_max_mrw_sz, 64);
    CAP(log_max_klm_list_size, MKEY_LOG_MAX_KLM);
    CAP(fixed_buffer_size, 1);
    CAP(umr_extended_translation_offset, 1);
    CAP(max_indirection, 4);
    CAP(null_mkey, fw->hca.null_mkey != 0);
    CAP(imaicl, 1);
    /* WQEs run in order: a UMR is done before the next one starts */
    CAP(umr_fence, PRM_CAP_UMR_FENCE_NONE);
    /* the order of a model's writes is always strong: asking for less changes nothing */
    CAP(relaxed_ordering_write, 1);
    CAP(relaxed_ordering_read, 1);
    CAP(relaxed_ordering_write_umr, 1);
    CAP(relaxed_ordering_read_umr, 1);
    CAP(cache_line_128byte, max || fw->caps.cache_line_128byte);

    CAP(uar_4k, 1);
    CAP(uar_sz, l->log_max_uar + 12 - 20);
    CAP(log_uar_page_sz, LOG_UAR_PAGE);
    CAP(num_of_uars_per_page, 1u << LOG_UAR_PAGE);
    CAP(bf, 1);
    CAP(log_bf_reg_size, 9); /* two buffers of BLUEFLAME_BYTES */
}

static void general_transport(const struct fw *fw, bool max, uint8_t *cap)
{
    CAP(rc, has(PRM_CMD_OP_CREATE_QP));
    CAP(uc, has(PRM_CMD_OP_CREATE_QP));
    CAP(ud, has(PRM_CMD_OP_CREATE_QP));
    if (has(PRM_CMD_OP_CREATE_XRC_SRQ) && has(PRM_CMD_OP_ALLOC_XRCD)) {
        CAP(xrc, 1);
        CAP(log_max_xrcd, fw->hca.limits.log_max_pd);
    }
    if (has(PRM_CMD_OP_ATTACH_TO_MCG)) {
        CAP(log_max_mcg, MCG_LOG_MAX);
        CAP(max_qp_mcg, MCG_MAX_QPS);
        CAP(block_lb_mc, 1);
    }
    CAP(atomic, 1);
    CAP(roce, max || fw->caps.roce);
    CAP(roce_rw_supported, 1);
    CAP(compact_address_vector, 1);
    CAP(qp_data_in_order, 1);
    CAP(rts2rts_qp_udp_sport, has(PRM_CMD_OP_RTS2RTS_QP));
    CAP(pkey_table_size, PKEY_TABLE_128);
    CAP(gid_table_size, GID_TABLE_128);
    CAP(local_ca_ack_delay, fw->profile->local_ca_ack_delay);
    if (has(PRM_CMD_OP_QUERY_Q_COUNTER)) {
        CAP(out_of_seq_cnt, 1);
        CAP(retransmission_q_counters, 1);
        CAP(enhanced_error_q_counters, 1);
        CAP(rts2rts_qp_counters_set_id, has(PRM_CMD_OP_RTS2RTS_QP));
        CAP(modify_rq_counter_set_id, has(PRM_CMD_OP_MODIFY_RQ));
        CAP(max_qp_cnt, 255);
    }
}

static void general_queues(const struct fw *fw, bool max, uint8_t *cap)
{
    CAP(cqe_version, CQE_VERSION_1);
    CAP(cq_oi, 1);
    CAP(cq_resize, has(PRM_CMD_OP_MODIFY_CQ));
    CAP(cq_moderation, has(PRM_CMD_OP_MODIFY_CQ));
    CAP(cq_period_mode_modify, has(PRM_CMD_OP_MODIFY_CQ));
    CAP(cq_period_start_from_cqe, 1);
    CAP(event_cap, 1);
    CAP(device_frequency_khz, fw->profile->device_frequency_khz);
    CAP(device_frequency_mhz, fw->profile->device_frequency_khz / 1000);
    CAP(log_max_uctx, fw->hca.limits.log_max_uctx);
    CAP(log_max_umem, fw->hca.limits.log_max_umem);
    CAP(uctx_cap, PRM_UCTX_CAP_RAW_TX);
    CAP(cmdif_checksum, max ? CMDIF_CHECKSUM_ENABLED : fw->caps.cmdif_checksum);
    CAP(driver_version, 1);
    CAP(dtor, 1);
    CAP(force_teardown, 1);
    CAP(fast_teardown, 1);
}

static void general_port(const struct fw *fw, bool max, uint8_t *cap)
{
    CAP(port_type, PRM_CAP_PORT_TYPE_ETH);
    CAP(num_ports, 1);
    CAP(native_port_num, 1);
    CAP(max_tc, TRAFFIC_CLASSES);
    CAP(pcam_reg, 1);
    CAP(mcam_reg, 1);
    CAP(vport_counters, 1);
    CAP(nic_receive_steering_discard, 1);
    CAP(vnic_env_cq_overrun, 1);
    CAP(invalid_command_count, 1);
    CAP(log_max_current_uc_list,
        max ? fw->profile->log_max_current_uc_list : fw->caps.log_max_current_uc_list);
    CAP(log_max_current_uc_list_wr_supported, 1);
    CAP(log_max_current_mc_list, fw->profile->log_max_current_mc_list);
    CAP(log_max_vlan_list, fw->profile->log_max_vlan_list);
    CAP(eth_net_offloads, caps_have_ethernet());
    CAP(nic_flow_table, has(PRM_CMD_OP_CREATE_FLOW_TABLE));
    if (has(PRM_CMD_OP_ALLOC_FLOW_COUNTER)) {
        CAP(max_flow_counter_15_0, 0xffff);
        CAP(log_max_flow_counter_bulk, STEERING_LOG_COUNTER_BULK);
    }
}

#undef CAP

static void fill_general(const struct fw *fw, bool max, uint8_t *cap)
{
    general_objects(fw, max, cap);
    general_memory(fw, max, cap);
    general_transport(fw, max, cap);
    general_queues(fw, max, cap);
    general_port(fw, max, cap);
}

/* A driver sends back what it read, with a few fields changed: so what is set must be what would
 * then be read. */
static enum syn set_general(struct fw *fw, const uint8_t *cap)
{
    const struct fw_caps before = fw->caps;
    g_autofree uint8_t *now = g_malloc0(CAP_SECTION_BYTES);
    uint8_t log_max_qp = (uint8_t)PRM_GET(cmd_hca_cap, cap, log_max_qp);
    uint8_t uc_list = (uint8_t)PRM_GET(cmd_hca_cap, cap, log_max_current_uc_list);
    uint8_t checksum = (uint8_t)PRM_GET(cmd_hca_cap, cap, cmdif_checksum);

    if (log_max_qp > fw->hca.limits.log_max_qp || uc_list > fw->profile->log_max_current_uc_list ||
        PRM_GET(cmd_hca_cap, cap, log_uar_page_sz) > LOG_UAR_PAGE ||
        PRM_GET(cmd_hca_cap, cap, pkey_table_size) != PKEY_TABLE_128 ||
        (checksum != 0 && checksum != CMDIF_CHECKSUM_INITIAL &&
         checksum != CMDIF_CHECKSUM_ENABLED)) {
        return SYN_CAP_TOO_HIGH;
    }
    fw->caps = (struct fw_caps){
        .log_max_qp = log_max_qp,
        .log_max_current_uc_list = uc_list,
        .cmdif_checksum = checksum,
        .cache_line_128byte = PRM_GET(cmd_hca_cap, cap, cache_line_128byte),
        .roce = PRM_GET(cmd_hca_cap, cap, roce),
    };
    fill_general(fw, false, now);
    if (memcmp(now, cap, CAP_SECTION_BYTES) != 0) {
        fw->caps = before;
        return SYN_CAP_FIXED;
    }
    return SYN_OK;
}

/* Values of atomic_caps (the driver's MLX5_ATOMIC_*). */
#define ATOMIC_OPS_CMP_SWAP  1u
#define ATOMIC_OPS_FETCH_ADD 2u
#define ATOMIC_SIZE_8_BYTES  8u
#define ATOMIC_HOST_ENDIAN   1 /* operands of 8 bytes are words of the host's byte order */

static void fill_atomic(const struct fw *fw, bool max, uint8_t *cap)
{
    PRM_SET(atomic_caps, cap, atomic_req_8B_endianness_mode, ATOMIC_HOST_ENDIAN);
    PRM_SET(atomic_caps, cap, supported_atomic_req_8B_endianness_mode_1, 1);
    PRM_SET(atomic_caps, cap, atomic_operations, ATOMIC_OPS_CMP_SWAP | ATOMIC_OPS_FETCH_ADD);
    PRM_SET(atomic_caps, cap, atomic_size_qp, ATOMIC_SIZE_8_BYTES);
}

/* The model has one byte order, the one every driver asks for. */
static enum syn set_atomic(struct fw *fw, const uint8_t *cap)
{
    uint32_t mode = PRM_GET(atomic_caps, cap, atomic_req_8B_endianness_mode);

    return mode == ATOMIC_HOST_ENDIAN ? SYN_OK : SYN_CAP_TOO_HIGH;
}

/* Values of roce_cap (the driver's MLX5_ROCE_*_CAP). */
#define ROCE_L3_IPV4  (1u << PRM_ROCE_L3_TYPE_CAP_IPV4)
#define ROCE_L3_IPV6  (1u << PRM_ROCE_L3_TYPE_CAP_IPV6)
#define ROCE_UDP_PORT 4791

static void fill_roce(const struct fw *fw, bool max, uint8_t *cap)
{
    PRM_SET(roce_cap, cap, l3_type, ROCE_L3_IPV4 | ROCE_L3_IPV6);
    PRM_SET(roce_cap, cap, roce_version, 1u << PRM_ROCE_VERSION_V2);
    PRM_SET(roce_cap, cap, r_roce_dest_udp_port, ROCE_UDP_PORT);
    PRM_SET(roce_cap, cap, r_roce_min_src_udp_port, fw->profile->r_roce_min_src_udp_port);
    PRM_SET(roce_cap, cap, r_roce_max_src_udp_port, fw->profile->r_roce_max_src_udp_port);
    PRM_SET(roce_cap, cap, roce_address_table_size, fw->hca.limits.max_gid);
}

static bool roce_is_on(const struct fw *fw, bool max)
{
    return max || fw->caps.roce;
}

/* Events that a user context may subscribe to: those that the model raises. */
static void fill_event(const struct fw *fw, bool max, uint8_t *cap)
{
    static const uint8_t affiliated[] = {
        PRM_EVENT_TYPE_COMM_EST,           PRM_EVENT_TYPE_SQ_DRAINED,
        PRM_EVENT_TYPE_CQ_ERROR,           PRM_EVENT_TYPE_WQ_CATAS_ERROR,
        PRM_EVENT_TYPE_WQ_INVAL_REQ_ERROR, PRM_EVENT_TYPE_WQ_ACCESS_ERROR,
        PRM_EVENT_TYPE_SRQ_CATAS_ERROR,    PRM_EVENT_TYPE_SRQ_LAST_WQE,
        PRM_EVENT_TYPE_SRQ_RQ_LIMIT,
    };
    uint64_t mask = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(affiliated); i++) {
        mask |= 1ull << affiliated[i];
    }
    PRM_SET_AT(device_event_cap, cap, user_affiliated_events, 0, mask);
    PRM_SET_AT(device_event_cap, cap, user_unaffiliated_events, 0,
               1ull << PRM_EVENT_TYPE_PORT_CHANGE);
}

static bool flow_tables_exist(const struct fw *fw, bool max)
{
    return has(PRM_CMD_OP_CREATE_FLOW_TABLE);
}

static bool ethernet_exists(const struct fw *fw, bool max)
{
    return caps_have_ethernet();
}

/* The sections (op_mod >> 1: the driver's enum mlx5_cap_type). */
static const struct cap_section {
    uint16_t section;
    bool (*exists)(const struct fw *fw, bool max); /* NULL: always */
    void (*fill)(const struct fw *fw, bool max, uint8_t *cap);
    enum syn (*set)(struct fw *fw, const uint8_t *cap); /* NULL: nothing can be changed */
} sections[] = {
    {PRM_HCA_CAP_TYPE_GENERAL, NULL, fill_general, set_general},
    {PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS, ethernet_exists, caps_fill_ethernet, NULL},
    {PRM_HCA_CAP_TYPE_ATOMIC, NULL, fill_atomic, set_atomic},
    {PRM_HCA_CAP_TYPE_ROCE, roce_is_on, fill_roce, NULL},
    {PRM_HCA_CAP_TYPE_FLOW_TABLE, flow_tables_exist, caps_fill_flow_table, NULL},
    {PRM_HCA_CAP_TYPE_DEV_EVENT, NULL, fill_event, NULL},
};

static const struct cap_section *find(uint16_t section)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        if (sections[i].section == section) {
            return &sections[i];
        }
    }
    return NULL;
}

bool caps_fill(const struct fw *fw, uint16_t section, bool max, uint8_t *cap)
{
    const struct cap_section *s = find(section);

    if (!s || (s->exists && !s->exists(fw, max))) {
        return false;
    }
    s->fill(fw, max, cap);
    return true;
}

enum syn caps_set(struct fw *fw, uint16_t section, const uint8_t *cap)
{
    const struct cap_section *s = find(section);

    if (!s || !s->set) {
        return SYN_NO_CAP_SECTION;
    }
    return s->set(fw, cap);
}

void caps_reset(struct fw *fw)
{
    fw->caps = (struct fw_caps){
        .log_max_qp = (uint8_t)fw->hca.limits.log_max_qp,
        .log_max_current_uc_list = fw->profile->log_max_current_uc_list,
        .cmdif_checksum = CMDIF_CHECKSUM_INITIAL,
        .roce = true,
    };
}
