/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of a device and its port in verbs' terms. They are derived from the capabilities,
 * as mlx5_ib and libmlx5 do.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/link.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/uverbs.h"

#define VENDOR_ID  0x02c9
#define MAX_SGE_RD 30
/* Basic blocks of an XRC WQE with UMR and one SGE, rounded up (mlx5_ib_calc_max_qp_wr()). */
#define LARGEST_WQE 4
/* In a bitmap of the sizes of atomics. */
#define EIGHT_BYTES (1u << 3)
/* Values that mlx5_ib reports for tag matching and that are not capabilities of the device. */
#define TM_MAX_RNDV_HEADER 64
#define TM_MAX_SGE         1

static int query_table_size(uint32_t log)
{
    return log >= 31 ? INT_MAX : (int)(1u << log);
}

static unsigned query_device_flags(struct hv_hca *hca)
{
    unsigned flags = IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_PORT_ACTIVE_EVENT |
                     IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                     IBV_DEVICE_MEM_MGT_EXTENSIONS;

    flags |= HV_CAP(hca, xrc) ? IBV_DEVICE_XRC : 0;
    flags |= HV_CAP(hca, imaicl) ? IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B : 0;
    flags |= HV_CAP(hca, nic_flow_table) ? IBV_DEVICE_MANAGED_FLOW_STEERING : 0;
    flags |= HV_ETH_CAP(hca, csum_cap) ? IBV_DEVICE_RAW_IP_CSUM : 0;
    return flags;
}

/* The PCI device id of the generation. */
static uint16_t query_part_id(struct ibv_context *context)
{
    struct fw_pci_id id = {0};

    fw_profile_pci_id(hv_device(context->device)->config->profile, &id);
    return id.device;
}

/* Which accesses a QP's atomics are atomic with (get_atomic_caps()): those of this HCA. */
static enum ibv_atomic_cap query_atomic_cap(struct hv_hca *hca)
{
    const struct prm_atomic_caps *caps = hv_drv(hca)->atomic_cap;
    const unsigned standard =
        1u << PRM_ATOMIC_OPERATION_CMP_SWAP | 1u << PRM_ATOMIC_OPERATION_FETCH_ADD;
    bool all = (PRM_GET(atomic_caps, caps, atomic_operations) & standard) == standard;

    return all && (PRM_GET(atomic_caps, caps, atomic_size_qp) & EIGHT_BYTES) &&
                   hv_atomics_have_host_order(hca)
               ? IBV_ATOMIC_HCA
               : IBV_ATOMIC_NONE;
}

static void query_fill_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(context);
    uint32_t rev = hv_iseg_read(hca, 0);
    uint32_t sub = hv_iseg_read(hca, 4);
    int rq_sge = (int)HV_CAP(hca, max_wqe_sz_rq) / 16;
    int sq_sge = ((int)MIN(HV_CAP(hca, max_wqe_sz_sq), 512u) - 16 - 16) / 16;

    memset(attr, 0, sizeof(*attr));
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%04u", rev & 0xffff, rev >> 16,
             sub & 0xffff);
    attr->node_guid = hv_config_guid(hv_device(context->device)->config);
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = ~(uint64_t)(PCI_PAGE - 1);
    attr->vendor_id = VENDOR_ID;
    attr->vendor_part_id = query_part_id(context);
    attr->max_qp = query_table_size(HV_CAP(hca, log_max_qp));
    attr->max_qp_wr = query_table_size(HV_CAP(hca, log_max_qp_sz)) / LARGEST_WQE;
    attr->device_cap_flags = query_device_flags(hca);
    attr->max_sge = MIN(rq_sge, sq_sge);
    attr->max_sge_rd = MAX_SGE_RD;
    attr->max_cq = query_table_size(HV_CAP(hca, log_max_cq));
    attr->max_cqe = query_table_size(HV_CAP(hca, log_max_cq_sz)) - 1;
    attr->max_mr = query_table_size(HV_CAP(hca, log_max_mkey));
    attr->max_pd = query_table_size(HV_CAP(hca, log_max_pd));
    attr->max_qp_rd_atom = query_table_size(HV_CAP(hca, log_max_ra_req_qp));
    attr->max_qp_init_rd_atom = query_table_size(HV_CAP(hca, log_max_ra_res_qp));
    attr->max_res_rd_atom = attr->max_qp_rd_atom * attr->max_qp;
    attr->atomic_cap = query_atomic_cap(hca);
    attr->max_mw = HV_CAP(hca, imaicl) ? attr->max_mr : 0;
    attr->max_mcast_grp = query_table_size(HV_CAP(hca, log_max_mcg));
    attr->max_mcast_qp_attach = (int)HV_CAP(hca, max_qp_mcg);
    attr->max_total_mcast_qp_attach = attr->max_mcast_qp_attach * attr->max_mcast_grp;
    attr->max_ah = INT_MAX;
    attr->max_srq = query_table_size(HV_CAP(hca, log_max_srq));
    attr->max_srq_wr = query_table_size(HV_CAP(hca, log_max_srq_sz)) - 1;
    attr->max_srq_sge = rq_sge - 1;
    attr->max_pkeys = 128;
    attr->local_ca_ack_delay = (uint8_t)HV_CAP(hca, local_ca_ack_delay);
    attr->phys_port_cnt = 1;
}

HV_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (hv_is_removed(hv_hca_of(context))) {
        return hv_kernel(EIO);
    }
    query_fill_device(context, attr);
    return 0;
}

static void query_fill_ethernet(struct hv_hca *hca, struct ibv_device_attr_ex *attr)
{
    if (!HV_CAP(hca, eth_net_offloads)) {
        return;
    }
    if (HV_ETH_CAP(hca, csum_cap)) {
        attr->raw_packet_caps |= IBV_RAW_PACKET_CAP_IP_CSUM;
    }
    if (HV_ETH_CAP(hca, max_lso_cap)) {
        attr->tso_caps.max_tso = 1u << HV_ETH_CAP(hca, max_lso_cap);
        attr->tso_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
    }
    if (HV_ETH_CAP(hca, vlan_cap)) {
        attr->raw_packet_caps |= IBV_RAW_PACKET_CAP_CVLAN_STRIPPING;
    }
    if (HV_ETH_CAP(hca, scatter_fcs)) {
        attr->device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS;
        attr->raw_packet_caps |= IBV_RAW_PACKET_CAP_SCATTER_FCS;
    }
    if (HV_CAP(hca, rq_delay_drop) && HV_CAP(hca, general_notification_event)) {
        attr->raw_packet_caps |= IBV_RAW_PACKET_CAP_DELAY_DROP;
    }
    attr->rss_caps = (struct ibv_rss_caps){
        .supported_qpts = 1u << IBV_QPT_RAW_PACKET,
        .max_rwq_indirection_tables = 1u << HV_CAP(hca, log_max_rqt),
        .max_rwq_indirection_table_size = 1u << HV_CAP(hca, log_max_rqt_size),
        .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |
                               IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP |
                               IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP |
                               IBV_RX_HASH_DST_PORT_UDP | IBV_RX_HASH_INNER,
        .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
    };
    attr->max_wq_type_rq = 1u << HV_CAP(hca, log_max_rq);
}

static void query_fill_pacing(struct hv_hca *hca, struct ibv_packet_pacing_caps *caps)
{
    if (HV_CAP(hca, eth_net_offloads) && HV_QOS_CAP(hca, packet_pacing)) {
        *caps = (struct ibv_packet_pacing_caps){
            .qp_rate_limit_min = HV_QOS_CAP(hca, packet_pacing_min_rate),
            .qp_rate_limit_max = HV_QOS_CAP(hca, packet_pacing_max_rate),
            .supported_qpts = 1u << IBV_QPT_RAW_PACKET,
        };
    }
}

static void query_fill_tag_matching(struct hv_hca *hca, struct ibv_tm_caps *caps)
{
    if (HV_CAP(hca, tag_matching) && HV_CAP(hca, rndv_offload_rc)) {
        *caps = (struct ibv_tm_caps){
            .max_rndv_hdr_size = TM_MAX_RNDV_HEADER,
            .max_num_tags = (1u << HV_CAP(hca, log_tag_matching_list_sz)) - 1,
            .flags = IBV_TM_CAP_RC,
            .max_ops = 1u << HV_CAP(hca, log_max_qp_sz),
            .max_sge = TM_MAX_SGE,
        };
    }
}

/* If atomics are sent as PCI atomics, they are also atomic with those of a CPU
 * (get_pci_atomic_caps()). */
static void query_fill_pci_atomics(struct hv_hca *hca, struct ibv_device_attr_ex *attr)
{
    const struct prm_atomic_caps *caps = hv_drv(hca)->atomic_cap;

    attr->pci_atomic_caps.fetch_add = (uint16_t)PRM_GET(atomic_caps, caps, fetch_add_pci_atomic);
    attr->pci_atomic_caps.swap = (uint16_t)PRM_GET(atomic_caps, caps, swap_pci_atomic);
    attr->pci_atomic_caps.compare_swap =
        (uint16_t)PRM_GET(atomic_caps, caps, compare_swap_pci_atomic);
    if (attr->orig_attr.atomic_cap == IBV_ATOMIC_HCA &&
        (attr->pci_atomic_caps.fetch_add & IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP) &&
        (attr->pci_atomic_caps.compare_swap & IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP)) {
        attr->orig_attr.atomic_cap = IBV_ATOMIC_GLOB;
    }
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t attr_size)
{
    struct hv_hca *hca = hv_hca_of(context);
    struct ibv_device_attr_ex all;

    if (input && input->comp_mask) {
        return EINVAL;
    }
    if (hv_is_removed(hca)) {
        return hv_kernel(EIO);
    }
    memset(&all, 0, sizeof(all));
    query_fill_device(context, &all.orig_attr);
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
    all.device_cap_flags_ex |= HV_CAP(hca, end_pad) ? IBV_DEVICE_PCI_WRITE_END_PADDING : 0;
    all.completion_timestamp_mask = 0x7fffffffffffffffull;
    all.hca_core_clock = HV_CAP(hca, device_frequency_khz);
    all.phys_port_cnt_ex = 1;
    if (HV_CAP(hca, cq_moderation)) {
        all.cq_mod_caps.max_cq_count = UINT16_MAX;
        all.cq_mod_caps.max_cq_period = 0xfff;
    }
    all.max_dm_size = HV_DM_CAP(hca, max_memic_size);
    hv_odp_caps(hca, &all.odp_caps, &all.xrc_odp_caps);
    query_fill_ethernet(hca, &all);
    query_fill_pacing(hca, &all.packet_pacing_caps);
    query_fill_tag_matching(hca, &all.tm_caps);
    if (attr_size >=
        offsetof(struct ibv_device_attr_ex, pci_atomic_caps) + sizeof(all.pci_atomic_caps)) {
        query_fill_pci_atomics(hca, &all);
    }
    memset(attr, 0, attr_size);
    memcpy(attr, &all, MIN(attr_size, sizeof(all)));
    return 0;
}

/* -- port -------------------------------------------------------------------------------------- */

static bool query_link_is_up(struct hv_hca *hca)
{
    struct prm_query_vport_state_in in[1] = {0};
    struct prm_query_vport_state_out out[1];

    PRM_SET(query_vport_state_in, in, opcode, PRM_CMD_OP_QUERY_VPORT_STATE);
    return hv_cmd(hca, in, sizeof(in), out, sizeof(out)) == 0 &&
           PRM_GET(query_vport_state_out, out, state) == 1;
}

/* The largest packet that fits with all headers that a RoCE packet can have (iboe_get_mtu()). */
static enum ibv_mtu query_ib_mtu(unsigned mtu)
{
    static const unsigned bytes[] = {4096, 2048, 1024, 512, 256};
    const unsigned headers = 40 + 8 + 12 + 4 + 28 + 4;

    for (unsigned i = 0; i < G_N_ELEMENTS(bytes); i++) {
        if (mtu >= bytes[i] + headers) {
            return (enum ibv_mtu)(IBV_MTU_4096 - i);
        }
    }
    return 0;
}

#define PORT_CAP_CM_SUP        (1u << 16)
#define PORT_CAP_IP_BASED_GIDS (1u << 26)

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t attr_len)
{
    struct hv_hca *hca = hv_hca_of(context);
    struct ibv_port_attr all = {0};
    struct hv_link link;
    bool up;

    if (port_num != 1) {
        return hv_kernel(EINVAL);
    }
    if (hv_is_removed(hca)) {
        return hv_kernel(EIO);
    }
    up = query_link_is_up(hca);
    link = hv_link_now(hca);
    all.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    all.max_mtu = IBV_MTU_4096;
    all.active_mtu = query_ib_mtu(hv_device(context->device)->config->mtu);
    all.gid_tbl_len = (int)hv_gid_table_len(hca);
    all.port_cap_flags = PORT_CAP_CM_SUP | PORT_CAP_IP_BASED_GIDS;
    all.max_msg_sz = 1u << HV_CAP(hca, log_max_msg);
    all.pkey_tbl_len = 1;
    all.active_width = link.width;
    all.active_speed = link.speed;
    all.phys_state = up ? 5 : 3;
    all.link_layer = IBV_LINK_LAYER_ETHERNET;
    all.flags = IBV_QPF_GRH_REQUIRED;
    memset(attr, 0, attr_len);
    memcpy(attr, &all, MIN(attr_len, sizeof(all)));
    return 0;
}

/* The older structure ends before the members that follow link_layer. */
#undef ibv_query_port
HV_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                             struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port_num, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* Newer than the headers of some releases of rdma-core. *port_speed is in units of 100 Mbit/s. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);
HV_EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
                                   uint64_t *port_speed)
{
    struct hv_hca *hca = hv_hca_of(context);

    if (port_num != 1) {
        return hv_kernel(EINVAL);
    }
    if (hv_is_removed(hca)) {
        return hv_kernel(EIO);
    }
    *port_speed = hv_link_now(hca).mbps / 100;
    return 0;
}

void hv_query_ops(struct verbs_context *ops)
{
    ops->query_device_ex = query_device_ex;
    ops->query_port = query_port;
    ops->context.ops._compat_query_device = ibv_query_device;
    ops->context.ops._compat_query_port = ibv_query_port;
}
