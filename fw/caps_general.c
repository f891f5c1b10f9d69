/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general capabilities (cmd_hca_cap). The number of objects of each kind is not here, but in
 * the kind's row of model/core/obj_classes.def.
 */
#include "fw/caps.h"
#include "model/core/obj_class.h"
#include "model/eth/eth_hairpin.h"
#include "model/steering/meter.h"
#include "model/steering/steering.h"
#include "model/memory/mkey.h"
#include "model/port/pace.h"
#include "model/port/port.h"
#include "model/port/sched.h"
#include "model/queue/cqe_compress.h"
#include "model/queue/mmo.h"
#include "model/queue/tag_list.h"
#include "model/rdma/dci.h"
#include "model/rdma/mcg.h"
#include "model/rdma/reserved_qpn.h"

#define VALUE(name, n, ...)                                                                        \
    {                                                                                              \
        CAP_NAMED(cmd_hca_cap, name), .value = (n), ##__VA_ARGS__                                  \
    }
#define FLAG(name, ...) VALUE(name, 1, ##__VA_ARGS__)
#define LIMIT(name, m, ...)                                                                        \
    {                                                                                              \
        CAP_NAMED(cmd_hca_cap, name), CAP_LIMIT(m), ##__VA_ARGS__                                  \
    }
#define NEEDS(op) CAP_NEEDS(PRM_CMD_OP_##op)

#define LOG_MIB   20
/* frequency of the free-running timer and of time stamps: ticks of 1 ns */
#define FREQUENCY_KHZ 1000000

/* log2 of the size of all doorbell pages in MiB; UARs are pages of 4 KiB. */
static uint64_t caps_uar_sz(const struct fw *fw)
{
    return fw->hca.limits.log_max_uar + 12 - LOG_MIB;
}

static uint64_t caps_vhca_id(const struct fw *fw)
{
    return eth_hairpin_vhca(&fw->hca);
}

static uint64_t caps_general_obj_types(const struct fw *fw)
{
    uint64_t types = 0;

    for (unsigned kind = OBJ_NONE + 1; kind < OBJ_KINDS; kind++) {
        types |= obj_classes[kind].general_type ? 1ull << obj_classes[kind].general_type : 0;
    }
    if (!caps_has_crypto(fw)) {
        types &= ~(1ull << PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY |
                   1ull << PRM_GENERAL_OBJ_TYPE_CRYPTO_LOGIN);
    }
    if (!caps_is_wrapped(fw)) {
        types &=
            ~(1ull << PRM_GENERAL_OBJ_TYPE_IMPORT_KEK | 1ull << PRM_GENERAL_OBJ_TYPE_CREDENTIAL);
    }
    if (!reserved_qpns_exist(&fw->hca)) {
        types &= ~(1ull << PRM_GENERAL_OBJ_TYPE_RESERVED_QPN);
    }
    return types;
}

/* The second section of general capabilities. */
const struct cap caps_general_2[] = {
    {CAP_NAMED(cmd_hca_cap_2, log_reserved_qpn_granularity), .value = OBJ_LOG_RESERVED,
     NEEDS(CREATE_GENERAL_OBJECT)},
    {CAP_NAMED(cmd_hca_cap_2, dp_ordering_force), .value = 1},
    {CAP_NAMED(cmd_hca_cap_2, send_dbr_mode_no_dbr_ext), .value = 1, NEEDS(CREATE_QP)},
    {0},
};

const struct cap caps_debug[] = {
    {CAP_NAMED(debug_cap, resource_dump), .value = 1, NEEDS(ACCESS_REG)},
    {0},
};

#define PACING(name, n)                                                                            \
    {                                                                                              \
        CAP_NAMED(qos_cap, packet_pacing##name), .value = (n), NEEDS(SET_PP_RATE_LIMIT)            \
    }
#define SCHEDULING(name, n)                                                                        \
    {                                                                                              \
        CAP_NAMED(qos_cap, name),                                                                  \
            .value = (n),                                                                          \
            CAP_NEEDS(PRM_CMD_OP_CREATE_SCHEDULING_ELEMENT, PRM_CMD_OP_DESTROY_SCHEDULING_ELEMENT, \
                      PRM_CMD_OP_QUERY_SCHEDULING_ELEMENT, PRM_CMD_OP_MODIFY_SCHEDULING_ELEMENT)   \
    }

#define METER(name, n)                                                                             \
    {                                                                                              \
        CAP_NAMED(qos_cap, name), .value = (n), NEEDS(CREATE_GENERAL_OBJECT)                       \
    }

const struct cap caps_qos[] = {
    PACING(, 1),
    PACING(_burst_bound, 1),
    PACING(_typical_size, 1),
    PACING(_uid, 1),
    PACING(_min_rate, PACE_MIN_KBPS),
    PACING(_max_rate, PACE_MAX_KBPS),
    PACING(_rate_table_size, PACE_RATES),
    METER(flow_meter_old, 1),
    METER(log_max_flow_meter, METER_LOG_MAX),
    METER(flow_meter_reg_id, METER_REGISTERS),
    SCHEDULING(nic_sq_scheduling, 1),
    SCHEDULING(nic_qp_scheduling, 1),
    SCHEDULING(nic_bw_share, 1),
    SCHEDULING(nic_rate_limit, 1),
    SCHEDULING(nic_element_type, 1u << PRM_SCHEDULING_ELEMENT_TYPE_TSAR |
                                     1u << PRM_SCHEDULING_ELEMENT_TYPE_QUEUE_GROUP),
    SCHEDULING(nic_tsar_type, 1u << PRM_TSAR_TYPE_DWRR | 1u << PRM_TSAR_TYPE_ROUND_ROBIN),
    SCHEDULING(log_max_qos_nic_queue_group, SCHED_LOG_GROUPS),
    SCHEDULING(max_tsar_bw_share, SCHED_MAX_SHARE),
    {0},
};

const struct cap caps_general[] = {
    /* queues */
    LIMIT(log_max_qp, log_max_qp, CAP_SET(log_max_qp)),
    LIMIT(log_max_qp_sz, log_max_qp_sz),
    LIMIT(log_max_srq_sz, log_max_srq_sz),
    LIMIT(log_max_cq_sz, log_max_cq_sz),
    LIMIT(log_max_eq_sz, log_max_eq_sz),
    LIMIT(log_max_wq_sz, log_max_qp_sz),
    LIMIT(max_wqe_sz_sq, max_sq_wqe),
    LIMIT(max_wqe_sz_rq, max_rq_wqe),
    FLAG(device_memory,
         CAP_NEEDS(PRM_CMD_OP_ALLOC_MEMIC, PRM_CMD_OP_DEALLOC_MEMIC, PRM_CMD_OP_MODIFY_MEMIC)),
    VALUE(max_sgl_for_optimized_performance, 16),
    VALUE(log_max_tis_per_sq, 0),
    VALUE(log_max_rqt_size, 11),
    FLAG(striding_rq),
    FLAG(ext_stride_num_range),
    FLAG(umr_ptr_rlky),
    VALUE(log_min_stride_sz_rq, 4),
    VALUE(log_max_stride_sz_rq, 9),
    VALUE(log_min_stride_sz_sq, 6),
    VALUE(log_max_stride_sz_sq, 6),
    FLAG(basic_cyclic_rcv_wqe, NEEDS(CREATE_RMP)),
    FLAG(mem_rq_rmp, CAP_NEEDS(PRM_CMD_OP_CREATE_RMP, PRM_CMD_OP_CREATE_RQ)),
    VALUE(cqe_version, PRM_CAP_CQE_VERSION_1),
    FLAG(disable_local_lb_uc, NEEDS(MODIFY_NIC_VPORT_CONTEXT)),
    FLAG(disable_local_lb_mc, NEEDS(MODIFY_NIC_VPORT_CONTEXT)),
    FLAG(rq_delay_drop, NEEDS(SET_DELAY_DROP_PARAMS)),
    /* hairpin queues: model/eth/eth_hairpin.h. Queues of other functions are named by vhca_id. */
    FLAG(hairpin, NEEDS(CREATE_RQ)),
    VALUE(log_max_hairpin_queues, ETH_HAIRPIN_LOG_QUEUES),
    VALUE(log_max_hairpin_wq_data_sz, ETH_HAIRPIN_LOG_DATA_MAX),
    VALUE(log_min_hairpin_wq_data_sz, ETH_HAIRPIN_LOG_DATA_MIN),
    VALUE(log_max_hairpin_num_packets, ETH_HAIRPIN_LOG_PACKETS_MAX),
    FLAG(general_notification_event, NEEDS(SET_DELAY_DROP_PARAMS)),
    FLAG(cq_oi),
    FLAG(cd, NEEDS(CREATE_QP)),
    FLAG(cq_resize, NEEDS(MODIFY_CQ)),
    FLAG(cq_moderation, NEEDS(MODIFY_CQ)),
    FLAG(cq_period_mode_modify, NEEDS(MODIFY_CQ)),
    FLAG(cq_period_start_from_cqe),
    VALUE(sq_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME),
    VALUE(rq_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME),
    FLAG(wait_on_time, NEEDS(CREATE_SQ)),
    FLAG(cqe_compression),
    FLAG(cqe_compression_128),
    FLAG(mini_cqe_resp_stride_index),
    FLAG(mini_cqe_resp_flow_tag),
    FLAG(mini_cqe_resp_l3_l4_tag),
    FLAG(enhanced_cqe_compression),
    VALUE(cqe_compression_timeout, CQE_SESSION_TIMEOUT_US),
    VALUE(cqe_compression_max_num, CQE_SESSION_MOST),
    FLAG(cqe_128_always),
    FLAG(cache_line_128byte, CAP_SET(cache_line_128byte)),
    FLAG(as_notify, NEEDS(SET_TUNNELED_OPERATIONS)),
    FLAG(end_pad),
    FLAG(event_cap),

    /* memory */
    VALUE(log_pg_sz, 12),
    VALUE(log_max_mrw_sz, 64),
    VALUE(log_max_klm_list_size, MKEY_LOG_MAX_KLM),
    FLAG(fixed_buffer_size),
    FLAG(tunneled_atomic), /* model/memory/tunneled.c */
    FLAG(umr_extended_translation_offset),
    VALUE(max_indirection, MKEY_MAX_DEPTH),
    FLAG(null_mkey),
    FLAG(dump_fill_mkey),
    FLAG(imaicl),
    FLAG(pg, NEEDS(PAGE_FAULT_RESUME)),
    /* WQEs are executed in order, so a UMR is done before the next WQE starts */
    VALUE(umr_fence, PRM_CAP_UMR_FENCE_NONE),
    /* the model always writes in strong order, so a request for a weaker order changes nothing */
    FLAG(relaxed_ordering_write),
    FLAG(relaxed_ordering_read),
    FLAG(relaxed_ordering_write_umr),
    FLAG(relaxed_ordering_read_umr),

    /* copies by the DMA engine: model/queue/mmo.h */
    FLAG(dma_mmo_sq, NEEDS(CREATE_QP)),
    FLAG(dma_mmo_qp, NEEDS(CREATE_QP)),
    VALUE(log_dma_mmo_max_size, MMO_LOG_MAX, NEEDS(CREATE_QP)),

    /* vector calculations: model/rdma/vec_calc.h */
    FLAG(vector_calc, NEEDS(CREATE_QP)),

    /* block signatures (docs/adr/0026) */
    FLAG(sho, NEEDS(CREATE_PSV)),
    FLAG(sigerr_cqe, NEEDS(CREATE_PSV)),
    FLAG(sigerr_domain_and_sig_type, NEEDS(CREATE_PSV)),
    FLAG(drain_sigerr, CAP_NEEDS(PRM_CMD_OP_CREATE_PSV, PRM_CMD_OP_INIT2INIT_QP)),
    FLAG(sig_block_4048, NEEDS(CREATE_PSV)),
    FLAG(sig_crc32c, NEEDS(CREATE_PSV)),
    FLAG(sig_crc64_xp10, NEEDS(CREATE_PSV)),

    /* encryption of the data behind keys: model/memory/crypto.h */
    {CAP_NAMED(cmd_hca_cap, crypto), .of = caps_has_crypto, NEEDS(CREATE_GENERAL_OBJECT)},
    {CAP_NAMED(cmd_hca_cap, aes_xts_multi_block_be_tweak), .of = caps_has_crypto,
     NEEDS(CREATE_GENERAL_OBJECT)},

    /* doorbells: UARs of 4 KiB, one in each page of the host; no larger UARs */
    FLAG(uar_4k),
    {CAP_NAMED(cmd_hca_cap, uar_sz), .of = caps_uar_sz},
    VALUE(log_uar_page_sz, 0),
    VALUE(num_of_uars_per_page, 1),
    FLAG(bf),
    VALUE(log_bf_reg_size, 9), /* two buffers of BLUEFLAME_BYTES */

    /* transports */
    FLAG(rc, NEEDS(CREATE_QP)),
    FLAG(uc, NEEDS(CREATE_QP)),
    FLAG(ud, NEEDS(CREATE_QP)),
    FLAG(xrc, CAP_NEEDS(PRM_CMD_OP_CREATE_XRC_SRQ, PRM_CMD_OP_ALLOC_XRCD)),
    FLAG(dct, CAP_SET(dct),
         CAP_NEEDS(PRM_CMD_OP_CREATE_DCT, PRM_CMD_OP_DRAIN_DCT, PRM_CMD_OP_DESTROY_DCT,
                   PRM_CMD_OP_QUERY_DCT, PRM_CMD_OP_ARM_DCT_FOR_KEY_VIOLATION)),
    /* values as for QPs: rdma-core swaps the meaning of these two */
    LIMIT(log_max_ra_req_dc, log_max_ra_req_qp),
    LIMIT(log_max_ra_res_dc, log_max_ra_res_qp),
    LIMIT(max_wqe_sz_sq_dc, max_sq_wqe),
    VALUE(log_max_dci_stream_channels, DCI_LOG_STREAMS, NEEDS(RTS2RTS_QP)),
    VALUE(log_max_dci_errored_streams, DCI_LOG_STREAMS, NEEDS(RTS2RTS_QP)),
    FLAG(qpc_extension, NEEDS(RTS2RTS_QP)),
    FLAG(qp_error_syndrome, NEEDS(QUERY_QP)),
    FLAG(tag_matching, NEEDS(CREATE_XRQ)),
    VALUE(log_tag_matching_list_sz, TAG_LIST_LOG_MAX, NEEDS(CREATE_XRQ)),
    FLAG(rndv_offload_rc, NEEDS(CREATE_XRQ)),
    FLAG(rndv_offload_dc, NEEDS(SET_XRQ_DC_PARAMS_ENTRY)),
    VALUE(log_max_mcg, MCG_LOG_MAX, NEEDS(ATTACH_TO_MCG)),
    VALUE(max_qp_mcg, MCG_MAX_QPS, NEEDS(ATTACH_TO_MCG)),
    FLAG(block_lb_mc, NEEDS(ATTACH_TO_MCG)),
    LIMIT(log_max_msg, log_max_msg),
    LIMIT(log_max_ra_req_qp, log_max_ra_req_qp),
    LIMIT(log_max_ra_res_qp, log_max_ra_res_qp),
    FLAG(atomic),
    FLAG(roce, CAP_SET(roce), NEEDS(SET_ROCE_ADDRESS)),
    FLAG(roce_rw_supported),
    FLAG(compact_address_vector),
    FLAG(qp_data_in_order),
    FLAG(sctr_data_cqe, NEEDS(CREATE_QP)),
    FLAG(dc_req_scat_data_cqe, NEEDS(CREATE_DCT)),
    /* docs/adr/0012-packets-that-come-early.md */
    FLAG(dp_ordering_ooo_rw_rc),
    FLAG(dp_ordering_ooo_rw_xrc),
    FLAG(dp_ordering_ooo_rw_dc),
    FLAG(dp_ordering_ooo_all_rc),
    FLAG(dp_ordering_ooo_all_xrc),
    FLAG(dp_ordering_ooo_all_dc),
    FLAG(rts2rts_qp_udp_sport, NEEDS(RTS2RTS_QP)),
    FLAG(rts2rts_qp_dscp, NEEDS(RTS2RTS_QP)),
    FLAG(ece_support, NEEDS(CREATE_QP)), /* fw/cmd_qp.c */
    VALUE(pkey_table_size, PRM_CAP_PKEY_TABLE_128),
    VALUE(gid_table_size, PRM_CAP_GID_TABLE_128), /* an Ethernet port does not use this table */
    VALUE(local_ca_ack_delay, 16),

    /* counters */
    FLAG(out_of_seq_cnt, NEEDS(QUERY_Q_COUNTER)),
    FLAG(retransmission_q_counters, NEEDS(QUERY_Q_COUNTER)),
    FLAG(enhanced_error_q_counters, NEEDS(QUERY_Q_COUNTER)),
    FLAG(rts2rts_qp_counters_set_id, CAP_NEEDS(PRM_CMD_OP_QUERY_Q_COUNTER, PRM_CMD_OP_RTS2RTS_QP)),
    FLAG(modify_rq_counter_set_id, CAP_NEEDS(PRM_CMD_OP_QUERY_Q_COUNTER, PRM_CMD_OP_MODIFY_RQ)),
    VALUE(max_qp_cnt, 255, NEEDS(QUERY_Q_COUNTER)),
    VALUE(max_flow_counter_15_0, 0xffff, NEEDS(ALLOC_FLOW_COUNTER)),
    VALUE(flow_counter_bulk_alloc, STEERING_BULK_MAX, NEEDS(ALLOC_FLOW_COUNTER)),
    FLAG(flow_counters_dump, NEEDS(QUERY_FLOW_COUNTER)),
    VALUE(log_max_flow_counter_bulk, STEERING_LOG_COUNTER_BULK, NEEDS(ALLOC_FLOW_COUNTER)),
    FLAG(vport_counters, NEEDS(QUERY_VPORT_COUNTER)),
    FLAG(nic_receive_steering_discard, NEEDS(QUERY_VNIC_ENV)),
    FLAG(vnic_env_cq_overrun, NEEDS(QUERY_VNIC_ENV)),
    FLAG(vnic_env_int_rq_oob, NEEDS(QUERY_VNIC_ENV)), /* 0: the device has no queues of its own */
    FLAG(eth_wqe_too_small, NEEDS(QUERY_VNIC_ENV)),
    FLAG(eq_overrun_count, NEEDS(QUERY_VNIC_ENV)),
    FLAG(quota_exceeded_count, NEEDS(QUERY_VNIC_ENV)),
    FLAG(invalid_command_count, NEEDS(QUERY_VNIC_ENV)),
    FLAG(cc_query_allowed, CAP_NEEDS(PRM_CMD_OP_QUERY_CONG_STATUS, PRM_CMD_OP_QUERY_CONG_PARAMS,
                                     PRM_CMD_OP_QUERY_CONG_STATISTICS)),
    FLAG(cc_modify_allowed,
         CAP_NEEDS(PRM_CMD_OP_MODIFY_CONG_STATUS, PRM_CMD_OP_MODIFY_CONG_PARAMS)),

    /* the port */
    VALUE(port_type, PRM_CAP_PORT_TYPE_ETH),
    VALUE(num_ports, 1),
    VALUE(native_port_num, 1),
    VALUE(max_tc, TRAFFIC_CLASSES),
    FLAG(ets, NEEDS(ACCESS_REG)), /* QTCT, QETCR */
    /* its group is only its own vport; the driver that sets up the port needs this bit */
    FLAG(vport_group_manager),
    FLAG(qos, NEEDS(ACCESS_REG)), /* priority flow control: PFCC */
    FLAG(pcam_reg, NEEDS(ACCESS_REG)),
    FLAG(mcam_reg, NEEDS(ACCESS_REG)),
    FLAG(qcam_reg, NEEDS(ACCESS_REG)),
    VALUE(log_max_current_uc_list, CAP_LOG2(PORT_MAX_MACS), CAP_SET(log_max_current_uc_list)),
    FLAG(log_max_current_uc_list_wr_supported),
    VALUE(log_max_current_mc_list, CAP_LOG2(PORT_MAX_MACS)),
    VALUE(log_max_vlan_list, 12),
    FLAG(eth_net_offloads,
         CAP_NEEDS(PRM_CMD_OP_CREATE_SQ, PRM_CMD_OP_CREATE_RQ, PRM_CMD_OP_CREATE_TIR,
                   PRM_CMD_OP_CREATE_TIS, PRM_CMD_OP_CREATE_RQT)),
    FLAG(nic_flow_table, NEEDS(CREATE_FLOW_TABLE)),
    /* Software's steering entries can match these headers (model/steering/ste_tag.c). Other
     * protocols need samples of a flexible parser, which the model does not have. */
    VALUE(flex_parser_protocols,
          1u << PRM_CAP_FLEX_PARSER_GENEVE | 1u << PRM_CAP_FLEX_PARSER_VXLAN_GPE,
          NEEDS(CREATE_FLOW_TABLE)),

    /* the function */
    {CAP_NAMED(cmd_hca_cap, vhca_id), .of = caps_vhca_id},
    VALUE(device_frequency_khz, FREQUENCY_KHZ),
    VALUE(device_frequency_mhz, FREQUENCY_KHZ / 1000),
    VALUE(uctx_cap, PRM_UCTX_CAP_RAW_TX, NEEDS(CREATE_UCTX)),
    {CAP_NAMED(cmd_hca_cap, general_obj_types), .of = caps_general_obj_types, .is_set = true,
     NEEDS(CREATE_GENERAL_OBJECT)},
    FLAG(hca_cap_2),
    VALUE(cmdif_checksum, PRM_CAP_CMDIF_CHECKSUM_ENABLED, CAP_SET(cmdif_checksum),
          .values = 1u << PRM_CAP_CMDIF_CHECKSUM_DISABLED | 1u << PRM_CAP_CMDIF_CHECKSUM_INITIAL |
                    1u << PRM_CAP_CMDIF_CHECKSUM_ENABLED),
    FLAG(driver_version, NEEDS(SET_DRIVER_VERSION)),
    FLAG(dtor, NEEDS(ACCESS_REG)),
    FLAG(debug, NEEDS(ACCESS_REG)),
    FLAG(force_teardown, NEEDS(TEARDOWN_HCA)),
    FLAG(fast_teardown, NEEDS(TEARDOWN_HCA)),
    {0},
};
