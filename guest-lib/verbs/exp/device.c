/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_exp_query_device(): the attributes of ibv_query_device_ex(), and those of experimental verbs
 * as mlx5_ib of MLNX_OFED 4.6 derives them from the capabilities (mlx5_ib_exp_query_device()). A
 * flag is set only if the device has the feature and the library has its calls.
 */
#include <string.h>
#include "guest-lib/verbs/exp/calc.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "guest-lib/verbs/user/qp.h"

/* Values that mlx5_ib reports and that are no capabilities of the device. */
#define MAX_INLINE_RECV  64
#define MAX_INLINE_KLMS  20
#define DRIVER_UARS      4
#define UAR_MB_SHIFT     20
#define MAX_FA_BOUNDARY  64
#define LOG_INLINE_ATOMS 6

#define STANDARD_ATOMICS                                                                           \
    (1u << PRM_ATOMIC_OPERATION_CMP_SWAP | 1u << PRM_ATOMIC_OPERATION_FETCH_ADD)
#define EXTENDED_ATOMICS                                                                           \
    (1u << PRM_ATOMIC_OPERATION_EXTENDED_CMP_SWAP | 1u << PRM_ATOMIC_OPERATION_EXTENDED_FETCH_ADD)
#define EIGHT_BYTES (1u << 3)

/* The device, and its attributes of rdma-core's verbs, from which the others are derived. */
struct exp_facts {
    struct hv_hca *hca;
    const struct verbs_context_exp *calls; /* a slot that is NULL: the library has no such call */
    struct ibv_device_attr_ex verbs;
};

/* -- flags ------------------------------------------------------------------------------------- */

static uint64_t exp_if(bool condition, uint64_t flags)
{
    return condition ? flags : 0;
}

/* A RoCE port has no DC info (docs/adr/0033). */
static uint64_t exp_device_flags(const struct exp_facts *f)
{
    const struct verbs_context_exp *calls = f->calls;
    unsigned base = f->verbs.orig_attr.device_cap_flags;
    unsigned ops = PRM_GET(atomic_caps, hv_drv(f->hca)->atomic_cap, atomic_operations);
    const unsigned all = STANDARD_ATOMICS | EXTENDED_ATOMICS;
    bool ethernet = HV_CAP(f->hca, eth_net_offloads);

    return base | exp_if(base & IBV_DEVICE_MEM_WINDOW, IBV_EXP_DEVICE_MEM_WINDOW) |
           exp_if(base & IBV_DEVICE_MEM_WINDOW_TYPE_2B, IBV_EXP_DEVICE_MW_TYPE_2B) |
           exp_if(base & IBV_DEVICE_MEM_MGT_EXTENSIONS, IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS) |
           exp_if(base & IBV_DEVICE_MANAGED_FLOW_STEERING && calls->lib_exp_ibv_create_flow,
                  IBV_EXP_DEVICE_MANAGED_FLOW_STEERING) |
           exp_if(calls->drv_exp_post_send, IBV_EXP_DEVICE_NOP) |
           exp_if((ops & all) == all && calls->drv_exp_post_send,
                  IBV_EXP_DEVICE_EXT_ATOMICS | IBV_EXP_DEVICE_EXT_MASKED_ATOMICS) |
           exp_if(f->verbs.odp_caps.general_caps & IBV_ODP_SUPPORT, IBV_EXP_DEVICE_ODP) |
           exp_if(ethernet && HV_ETH_CAP(f->hca, csum_cap) && calls->drv_exp_ibv_poll_cq,
                  IBV_EXP_DEVICE_RX_CSUM_IP_PKT | IBV_EXP_DEVICE_RX_CSUM_TCP_UDP_PKT |
                      IBV_EXP_DEVICE_RX_TCP_UDP_PKT_TYPE) |
           exp_if(f->verbs.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS && calls->exp_create_wq,
                  IBV_EXP_DEVICE_SCATTER_FCS) |
           exp_if(f->verbs.raw_packet_caps & IBV_RAW_PACKET_CAP_DELAY_DROP && calls->exp_create_wq,
                  IBV_EXP_DEVICE_WQ_DELAY_DROP) |
           exp_if(HV_CAP(f->hca, dct) && calls->create_dct, IBV_EXP_DEVICE_DC_TRANSPORT) |
           exp_if(HV_CAP(f->hca, cd) && calls->lib_exp_post_task, IBV_EXP_DEVICE_CROSS_CHANNEL) |
           exp_if(calls->lib_exp_create_mr, IBV_EXP_DEVICE_UMR) |
           exp_if(HV_CAP(f->hca, fixed_buffer_size) && calls->lib_exp_create_mr,
                  IBV_EXP_DEVICE_UMR_FIXED_SIZE) |
           exp_if(calls->lib_exp_reg_mr,
                  IBV_EXP_DEVICE_MR_ALLOCATE | IBV_EXP_DEVICE_PHYSICAL_RANGE_MR);
}

/* -- atomics (mlx5_ib_get_atomic_caps(), ext_atomic_caps()) ------------------------------------ */

static void exp_fill_atomics(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    const struct prm_atomic_caps *caps = hv_drv(f->hca)->atomic_cap;
    unsigned ops = PRM_GET(atomic_caps, caps, atomic_operations);
    unsigned sizes = (unsigned)PRM_GET(atomic_caps, caps, atomic_size_qp) &
                     (unsigned)PRM_GET(atomic_caps, caps, atomic_size_dc);
    const unsigned all = STANDARD_ATOMICS | EXTENDED_ATOMICS;
    struct ibv_exp_masked_atomic_params *masked = &attr->masked_atomic;
    bool host_order = hv_atomics_have_host_order(f->hca);

    attr->exp_atomic_cap = IBV_EXP_ATOMIC_NONE;
    if ((ops & STANDARD_ATOMICS) == STANDARD_ATOMICS &&
        PRM_GET(atomic_caps, caps, atomic_size_qp) & EIGHT_BYTES) {
        attr->exp_atomic_cap = host_order ? IBV_EXP_ATOMIC_HCA : IBV_EXP_ATOMIC_HCA_REPLY_BE;
    }
    if ((ops & all) != all || !sizes) {
        return;
    }
    masked->max_fa_bit_boundary = attr->ext_atom.max_fa_bit_boundary = MAX_FA_BOUNDARY;
    masked->log_max_atomic_inline = attr->ext_atom.log_max_atomic_inline =
        MIN((uint32_t)g_bit_storage(sizes) - 1, LOG_INLINE_ATOMS);
    masked->masked_log_atomic_arg_sizes = sizes;
    /* the host's order is that of answers of 8 bytes alone (docs/adr/0011) */
    masked->masked_log_atomic_arg_sizes_network_endianness =
        host_order ? sizes & ~EIGHT_BYTES : sizes;
    attr->ext_atom.log_atomic_arg_sizes = host_order ? sizes & EIGHT_BYTES : sizes;
}

/* -- other attributes -------------------------------------------------------------------------- */

static void exp_fill_calc(const struct exp_facts *f, struct ibv_exp_device_calc_cap *caps)
{
    if (HV_CAP(f->hca, cd) && f->calls->lib_exp_post_task) {
        hv_exp_calc_caps(caps);
    }
}

static void exp_fill_dc(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    if (HV_CAP(f->hca, dct) && f->calls->create_dct) {
        attr->max_dc_req_rd_atom = 1 << HV_CAP(f->hca, log_max_ra_req_dc);
        attr->max_dc_res_rd_atom = 1 << HV_CAP(f->hca, log_max_ra_res_dc);
        attr->max_dct = attr->max_qp;
    }
}

static void exp_fill_odp(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    const struct ibv_odp_caps *caps = &f->verbs.odp_caps;

    attr->odp_caps.general_odp_caps = caps->general_caps;
    attr->odp_caps.per_transport_caps.rc_odp_caps = caps->per_transport_caps.rc_odp_caps;
    attr->odp_caps.per_transport_caps.uc_odp_caps = caps->per_transport_caps.uc_odp_caps;
    attr->odp_caps.per_transport_caps.ud_odp_caps = caps->per_transport_caps.ud_odp_caps;
    attr->odp_caps.per_transport_caps.xrc_odp_caps = f->verbs.xrc_odp_caps;
    attr->odp_caps.per_transport_caps.dc_odp_caps = uverbs_dc_odp_caps(f->hca);
    attr->odp_mr_max_size =
        caps->general_caps & IBV_ODP_SUPPORT ? f->verbs.orig_attr.max_mr_size : 0;
}

static void exp_fill_memory(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    if (f->calls->lib_exp_create_mr) {
        attr->umr_caps = (struct ibv_exp_umr_caps){
            .max_klm_list_size = 1u << HV_CAP(f->hca, log_max_klm_list_size),
            .max_send_wqe_inline_klms = MAX_INLINE_KLMS,
            .max_umr_recursion_depth = HV_CAP(f->hca, max_indirection),
            .max_umr_stride_dimension = 1,
        };
        attr->umr_fixed_size_caps.max_entity_size =
            HV_CAP(f->hca, fixed_buffer_size) ? 1ull << 31 : 0;
    }
    if (HV_CAP(f->hca, tunneled_atomic)) {
        attr->tunneled_atomic_caps = IBV_EXP_TUNNELED_ATOMIC_SUPPORTED;
    }
    attr->max_dm_size = f->calls->exp_alloc_dm ? f->verbs.max_dm_size : 0;
    attr->pci_atomic_caps = (struct ibv_exp_pci_atomic_caps){
        .fetch_add = f->verbs.pci_atomic_caps.fetch_add,
        .swap = f->verbs.pci_atomic_caps.swap,
        .compare_swap = f->verbs.pci_atomic_caps.compare_swap,
    };
}

/* All 0 if the device has no striding receive queues. Messages of RC have none on any. */
static struct ibv_exp_mp_rq_caps exp_mp_rq_caps(struct hv_hca *hca)
{
    if (!HV_CAP(hca, striding_rq)) {
        return (struct ibv_exp_mp_rq_caps){0};
    }
    return (struct ibv_exp_mp_rq_caps){
        .supported_qps = IBV_EXP_MP_RQ_SUP_TYPE_WQ_RQ,
        .allowed_shifts = IBV_EXP_MP_RQ_2BYTES_SHIFT,
        .min_single_wqe_log_num_of_strides =
            HV_CAP(hca, ext_stride_num_range) ? HV_MIN_LOG_STRIDES_EXT : HV_MIN_LOG_STRIDES,
        .max_single_wqe_log_num_of_strides = HV_MAX_LOG_STRIDES,
        .min_single_stride_log_num_of_bytes = HV_MIN_LOG_STRIDE,
        .max_single_stride_log_num_of_bytes = HV_MAX_LOG_STRIDE,
    };
}

static void exp_fill_ethernet(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    const struct ibv_rss_caps *rss = &f->verbs.rss_caps;

    if (f->calls->exp_create_wq) {
        attr->rx_hash_caps = (struct ibv_exp_rx_hash_caps){
            .max_rwq_indirection_tables = rss->max_rwq_indirection_tables,
            .max_rwq_indirection_table_size = rss->max_rwq_indirection_table_size,
            .supported_hash_functions = rss->rx_hash_function,
            .supported_packet_fields = rss->rx_hash_fields_mask & 0xff,
            .supported_qps = rss->supported_qpts ? IBV_EXP_QPT_RAW_PACKET : 0,
        };
        attr->max_wq_type_rq = f->verbs.max_wq_type_rq;
        attr->mp_rq_caps = exp_mp_rq_caps(f->hca);
        attr->wq_vlan_offloads_cap = f->verbs.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING
                                         ? IBV_EXP_RECEIVE_WQ_CVLAN_STRIP
                                         : 0;
    }
    /* the values are those of direct verbs */
    attr->tunnel_offloads_caps = hv_dv_tunnel_offloads(f->hca);
    attr->rx_pad_end_addr_align = HV_CAP(f->hca, end_pad) ? 64 : 0;
    attr->tso_caps.max_tso = f->verbs.tso_caps.max_tso;
    attr->tso_caps.supported_qpts = f->verbs.tso_caps.supported_qpts;
    attr->packet_pacing_caps = (struct ibv_exp_packet_pacing_caps){
        .qp_rate_limit_min = f->verbs.packet_pacing_caps.qp_rate_limit_min,
        .qp_rate_limit_max = f->verbs.packet_pacing_caps.qp_rate_limit_max,
        .supported_qpts = f->verbs.packet_pacing_caps.supported_qpts,
        .cap_flags = HV_QOS_CAP(f->hca, packet_pacing_burst_bound) &&
                             HV_QOS_CAP(f->hca, packet_pacing_typical_size)
                         ? IBV_EXP_QP_SUPPORT_BURST
                         : 0,
    };
}

static void exp_fill_transports(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    const uint32_t rw = IBV_EXP_OOO_SUPPORT_RW_DATA_PLACEMENT;

    attr->inline_recv_sz = HV_CAP(f->hca, sctr_data_cqe) ? MAX_INLINE_RECV : 0;
    attr->ooo_caps.rc_caps = HV_CAP(f->hca, dp_ordering_ooo_rw_rc) ? rw : 0;
    attr->ooo_caps.xrc_caps = HV_CAP(f->hca, dp_ordering_ooo_rw_xrc) ? rw : 0;
    attr->ooo_caps.dc_caps = HV_CAP(f->hca, dp_ordering_ooo_rw_dc) ? rw : 0;
    if (f->calls->exp_post_srq_ops) {
        attr->tm_caps = (struct ibv_exp_tm_caps){
            .max_rndv_hdr_size = f->verbs.tm_caps.max_rndv_hdr_size,
            .max_num_tags = f->verbs.tm_caps.max_num_tags,
            .capability_flags = f->verbs.tm_caps.flags & IBV_TM_CAP_RC ? IBV_EXP_TM_CAP_RC : 0,
            .max_ops = f->verbs.tm_caps.max_ops,
            .max_sge = f->verbs.tm_caps.max_sge,
        };
    }
}

/* Doorbell pages: a resource domain takes one, and so does a context. */
static void exp_fill_pages(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    int pages = 1 << (HV_CAP(f->hca, uar_sz) + UAR_MB_SHIFT - 12);

    attr->max_ctx_res_domain = f->calls->exp_create_res_domain ? pages / 2 : 0;
    attr->max_device_ctx = pages / 2 - DRIVER_UARS;
}

static void exp_fill(const struct exp_facts *f, struct ibv_exp_device_attr *attr)
{
    G_STATIC_ASSERT(offsetof(struct ibv_exp_device_attr, phys_port_cnt) ==
                    offsetof(struct ibv_device_attr, phys_port_cnt));
    memcpy(attr, &f->verbs.orig_attr,
           offsetof(struct ibv_device_attr, phys_port_cnt) + sizeof(attr->phys_port_cnt));
    attr->exp_device_cap_flags = exp_device_flags(f);
    attr->timestamp_mask = f->verbs.completion_timestamp_mask;
    attr->hca_core_clock = f->verbs.hca_core_clock;
    exp_fill_atomics(f, attr);
    exp_fill_calc(f, &attr->calc_cap);
    exp_fill_dc(f, attr);
    exp_fill_odp(f, attr);
    exp_fill_memory(f, attr);
    exp_fill_ethernet(f, attr);
    exp_fill_transports(f, attr);
    exp_fill_pages(f, attr);
}

/* -- masks ------------------------------------------------------------------------------------- */

/* The member of each bit of a mask. A bit that has no row is not answered: the device parses no
 * packets for software, and mlx5 has no max_rss_tbl_sz. Some bits are not
 * answered if the device has nothing of the kind, so that the member is 0 (if_any). */
struct exp_member {
    uint32_t bit;
    bool if_any;
    size_t at, size;
};
#define ROW_THAT(mask, member, if_any)                                                             \
    {                                                                                              \
        (uint32_t) IBV_EXP_DEVICE_##mask, if_any, offsetof(struct ibv_exp_device_attr, member),    \
            sizeof(((struct ibv_exp_device_attr *)0)->member)                                      \
    }
#define ROW(mask, member)        ROW_THAT(mask, member, false)
#define ROW_IF_ANY(mask, member) ROW_THAT(mask, member, true)

static const struct exp_member exp_members[] = {
    ROW_IF_ANY(ATTR_CALC_CAP, calc_cap),
    ROW(ATTR_WITH_TIMESTAMP_MASK, timestamp_mask),
    ROW(ATTR_WITH_HCA_CORE_CLOCK, hca_core_clock),
    ROW(ATTR_EXP_CAP_FLAGS, exp_device_cap_flags),
    ROW(DC_RD_REQ, max_dc_req_rd_atom),
    ROW(DC_RD_RES, max_dc_res_rd_atom),
    ROW(ATTR_INLINE_RECV_SZ, inline_recv_sz),
    ROW(ATTR_EXT_ATOMIC_ARGS, ext_atom),
    ROW(ATTR_UMR, umr_caps),
    ROW(ATTR_ODP, odp_caps),
    ROW(ATTR_MAX_DCT, max_dct),
    ROW(ATTR_MAX_CTX_RES_DOMAIN, max_ctx_res_domain),
    ROW(ATTR_RX_HASH, rx_hash_caps),
    ROW(ATTR_MAX_WQ_TYPE_RQ, max_wq_type_rq),
    ROW(ATTR_MAX_DEVICE_CTX, max_device_ctx),
    ROW(ATTR_MP_RQ, mp_rq_caps),
    ROW_IF_ANY(ATTR_VLAN_OFFLOADS, wq_vlan_offloads_cap),
    ROW(ATTR_EC_CAPS, ec_caps),
    ROW(ATTR_MASKED_ATOMICS, masked_atomic),
    ROW_IF_ANY(ATTR_RX_PAD_END_ALIGN, rx_pad_end_addr_align),
    ROW_IF_ANY(ATTR_TSO_CAPS, tso_caps),
    ROW(ATTR_EC_GF_BASE, ec_w_mask),
    ROW_IF_ANY(ATTR_PACKET_PACING_CAPS, packet_pacing_caps),
    ROW_IF_ANY(ATTR_OOO_CAPS, ooo_caps),
    ROW(ATTR_ODP_MAX_SIZE, odp_mr_max_size),
    ROW_IF_ANY(ATTR_TM_CAPS, tm_caps),
    ROW(ATTR_TUNNEL_OFFLOADS_CAPS, tunnel_offloads_caps),
    ROW_IF_ANY(ATTR_MAX_DM_SIZE, max_dm_size),
    ROW_IF_ANY(ATTR_TUNNELED_ATOMIC, tunneled_atomic_caps),
    ROW(ATTR_COMP_MASK_2, comp_mask_2),
};
static const struct exp_member exp_members_2[] = {
    ROW_IF_ANY(ATTR_UMR_FIXED_SIZE_CAPS, umr_fixed_size_caps),
    ROW(ATTR_PCI_ATOMIC_CAPS, pci_atomic_caps),
};

static bool exp_is_any(const struct exp_member *member, const struct ibv_exp_device_attr *attr)
{
    const char *bytes = (const char *)attr + member->at;
    size_t i = 0;

    while (i < member->size && !bytes[i]) {
        i++;
    }
    return i < member->size;
}

/* Copies the members that the mask asks for. Returns the bits that were answered. */
static uint32_t exp_copy(struct ibv_exp_device_attr *to, const struct ibv_exp_device_attr *from,
                         uint32_t mask, const struct exp_member *members, size_t num)
{
    uint32_t answered = 0;

    for (size_t i = 0; i < num; i++) {
        if (mask & members[i].bit && (!members[i].if_any || exp_is_any(&members[i], from))) {
            memcpy((char *)to + members[i].at, (const char *)from + members[i].at, members[i].size);
            answered |= members[i].bit;
        }
    }
    return answered;
}

/* The members up to phys_port_cnt are always filled, as in ibv_query_device(). libmlx5 adds the
 * calculations to an answer that has flags (mlx5_exp_query_device()). */
static int exp_query_device(struct ibv_context *context, struct ibv_exp_device_attr *attr)
{
    struct exp_facts facts = {.hca = hv_hca_of(context), .calls = &hv_context(context)->exp};
    struct ibv_exp_device_attr all = {0};
    int err = ibv_query_device_ex(context, NULL, &facts.verbs);
    uint32_t asked = attr->comp_mask | (attr->comp_mask & IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS
                                            ? (uint32_t)IBV_EXP_DEVICE_ATTR_CALC_CAP
                                            : 0);
    uint32_t asked_2 = attr->comp_mask & (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2
                           ? (uint32_t)attr->comp_mask_2
                           : 0;

    if (err) {
        return err;
    }
    exp_fill(&facts, &all);
    hv_exp_ec_caps(context, &all);
    memcpy(attr, &all,
           offsetof(struct ibv_exp_device_attr, phys_port_cnt) + sizeof(attr->phys_port_cnt));
    all.comp_mask_2 = exp_copy(attr, &all, asked_2, exp_members_2, G_N_ELEMENTS(exp_members_2));
    attr->comp_mask = exp_copy(attr, &all, asked, exp_members, G_N_ELEMENTS(exp_members));
    return 0;
}

void hv_exp_device_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_query_device = exp_query_device;
    ops->lib_exp_query_device = exp_query_device;
}
