/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has the profiles: a row for each device generation.
 *
 * Where no public source names a difference, generations are equal: in sizes, in the clock, and in
 * every capability that is in no list here. Each identity is that of one board, as in the PCI ID
 * list and in outputs of lspci and flint that users have published. For the subsystem ids of the
 * -7 and the -8 there was no such output; a -8 has the link modes of a -7, because its 800 Gb/s are
 * two ports of 400 Gb/s (its firmware's release notes, 40.44.0208). Hardware ids are those of
 * mstflint (tools_dev_types.c); speeds of port and bus are those of DPDK's mlx5 guide.
 */
#include <string.h>
#include "fw/caps.h"
#include "fw/profile.h"
#include "model/port/port.h"
#include "model/queue/mmo.h"
#include "prm/prm.h"

/* BAR0: UAR pages of 4 KiB, and behind them the device memory (model/memory/memic.h). */
#define PCI_COMMON                                                                                 \
    .vendor = 0x15b3, .subsys_vendor = 0x15b3, .revision = 0, .num_msix = 64, .bar_size = 32u << 20

#define LIMITS(...)                                                                                \
    {                                                                                              \
        .log_max_qp = 18, .log_max_cq = 20, .log_max_srq = 20, .log_max_mkey = 24,                 \
        .log_max_pd = 20, .log_max_eq = 7, .log_max_uar = 13, .log_max_qp_sz = 15,                 \
        .log_max_cq_sz = 22, .log_max_srq_sz = 15, .log_max_umem = 20, .log_max_uctx = 13,         \
        .log_max_eq_sz = 22, .log_max_msg = 30, .log_max_ra_res_qp = 4, .log_max_ra_req_qp = 4,    \
        .max_gid = PORT_MAX_GIDS, .max_sq_wqe = 1024, .max_rq_wqe = 512, __VA_ARGS__               \
    }

/* -- link modes: the media of a copper cable ----------------------------------------------------
 */

#define LEGACY(mode) (1u << PRM_ETH_LINK_MODE_##mode)
#define EXT(mode)    (1u << PRM_EXT_ETH_LINK_MODE_##mode)

#define LEGACY_25G   (LEGACY(1000BASE_CX_SGMII) | LEGACY(10GBASE_CR) | LEGACY(25GBASE_CR))
#define LEGACY_100G  (LEGACY_25G | LEGACY(40GBASE_CR4) | LEGACY(50GBASE_CR2) | LEGACY(100GBASE_CR4))

/* Lanes of 50 Gb/s came with the extended modes (the driver's mlx5e_ptys_ext_supported()), lanes of
 * 100 Gb/s with ConnectX-7. */
#define EXT_100G                                                                                   \
    (EXT(1000BASE_X_SGMII) | EXT(10GBASE_XFI_XAUI_1) | EXT(40GBASE_XLAUI_4_XLPPI_4) |              \
     EXT(25GAUI_1_25GBASE_CR_KR) | EXT(50GAUI_2_LAUI_2_50GBASE_CR2_KR2) |                          \
     EXT(50GAUI_1_LAUI_1_50GBASE_CR_KR) | EXT(CAUI_4_100GBASE_CR4_KR4) |                           \
     EXT(100GAUI_2_100GBASE_CR2_KR2))
#define EXT_400G                                                                                   \
    (EXT_100G | EXT(100GAUI_1_100GBASE_CR_KR) | EXT(200GAUI_4_200GBASE_CR4_KR4) |                  \
     EXT(200GAUI_2_200GBASE_CR2_KR2) | EXT(400GAUI_4_400GBASE_CR4_KR4))

/* -- limits of earlier generations ------------------------------------------------------------ */

#define AT_MOST(section, layout, field, most)                                                      \
    {                                                                                              \
        PRM_HCA_CAP_TYPE_##section, PRM_##layout##_##field##_FIELD, most                           \
    }

/* Send queues without a doorbell record came with ConnectX-8 (NVIDIA-DOCA/gpunetio, CHANGELOG.md,
 * 2.0.0). */
#define BEFORE_CX8 AT_MOST(GENERAL_2, cmd_hca_cap_2, send_dbr_mode_no_dbr_ext, 0)

/* The memory scheme of page faults is newer than the firmware of these profiles: its driver came in
 * September 2024 (Linux, "Add handling for memory scheme page fault events"). WAIT on time is there
 * from ConnectX-7 on (DPDK's mlx5 guide, tx_pp). */
#define BEFORE_CX7                                                                                 \
    BEFORE_CX8, AT_MOST(ODP, odp_cap, mem_page_fault, 0),                                          \
        AT_MOST(GENERAL, cmd_hca_cap, wait_on_time, 0)

/* Copies by the DMA engine came with BlueField-2, whose network half is a ConnectX-6 Dx (rdma-core,
 * pull request 1040). From BlueField-3 on, which has a ConnectX-7, a QP must be enabled for them
 * (DPDK, "compress/mlx5: refactor queue HW object"). docs/adr/0027 says why cards without the DPU's
 * processors have them here, too. */
#define COPIES(sq, qp, log_max)                                                                    \
    AT_MOST(GENERAL, cmd_hca_cap, dma_mmo_sq, sq), AT_MOST(GENERAL, cmd_hca_cap, dma_mmo_qp, qp),  \
        AT_MOST(GENERAL, cmd_hca_cap, log_dma_mmo_max_size, log_max)
/* Compressed CQEs of the enhanced layout are newer than ConnectX-5: Linux has them since 6.0
 * (mlx5e, enhanced_cqe_compression), DPDK since 23.03, and its guide says that devices may have
 * only the basic layout. No source names the first generation; here it is ConnectX-6 Dx. */
/* The clock of MTUTC came with ConnectX-6 Dx: DPDK's guides set REAL_TIME_CLOCK_ENABLE on that card
 * (platform/mlx5.rst). docs/adr/0028 says why the cards are configured so. */
#define FREE_RUNNING                                                                               \
    AT_MOST(GENERAL, cmd_hca_cap, sq_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING),                   \
        AT_MOST(GENERAL, cmd_hca_cap, rq_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING),               \
        AT_MOST(ROCE, roce_cap, qp_ts_format, PRM_CAP_TS_FORMAT_FREE_RUNNING)
/* Sums over the whole frame came with a driver's change of 2019 for "new hardware" (Linux,
 * "net/mlx5e: Rx, Fix checksum calculation for new hardware"); the new card of that year is
 * ConnectX-6 Dx. */
#define ETH_AT_MOST(field, most)                                                                   \
    AT_MOST(ETHERNET_OFFLOADS, per_protocol_networking_offload_caps, field, most)
#define BEFORE_CX6DX                                                                               \
    COPIES(0, 0, 0), FREE_RUNNING, AT_MOST(GENERAL, cmd_hca_cap, enhanced_cqe_compression, 0),     \
        ETH_AT_MOST(cqe_checksum_full, 0)
#define NO_SW_OWNER_OF(domain)                                                                     \
    {                                                                                              \
        PRM_HCA_CAP_TYPE_FLOW_TABLE, CAP_FT_FIELD(domain, flow_table_prop_layout, sw_owner), 0     \
    }
#define NO_SW_OWNER                                                                                \
    NO_SW_OWNER_OF(flow_table_properties_nic_receive),                                             \
        NO_SW_OWNER_OF(flow_table_properties_nic_transmit),                                        \
        AT_MOST(FLOW_TABLE, flow_table_nic_cap, sw_steering_nic_rx_action_drop_icm_address, 0),    \
        AT_MOST(FLOW_TABLE, flow_table_nic_cap, sw_steering_nic_tx_action_drop_icm_address, 0),    \
        AT_MOST(FLOW_TABLE, flow_table_nic_cap, sw_steering_nic_tx_action_allow_icm_address, 0),   \
        {PRM_HCA_CAP_TYPE_FLOW_TABLE,                                                              \
         CAP_FT_FIELD(flow_table_properties_nic_receive, flow_table_prop_layout,                   \
                      termination_table),                                                          \
         0},                                                                                       \
        AT_MOST(QOS, qos_cap, flow_meter_old, 0), AT_MOST(QOS, qos_cap, log_max_flow_meter, 0),    \
        AT_MOST(QOS, qos_cap, flow_meter_reg_id, 0)
/* Steering entries that software writes have another format from ConnectX-6 Dx on (rdma-core,
 * MLX5_HW_CONNECTX_6DX), which the model does not have. */
#define SINCE_STE_V1                                                                               \
    AT_MOST(GENERAL, cmd_hca_cap, general_obj_types,                                               \
            ~(1ull << PRM_GENERAL_OBJ_TYPE_SW_ICM | 1ull << PRM_GENERAL_OBJ_TYPE_SAMPLER |         \
              1ull << PRM_GENERAL_OBJ_TYPE_FLOW_METER)),                                           \
        AT_MOST(DEV_MEM, device_mem_cap, steering_sw_icm_start_address, 0),                        \
        AT_MOST(DEV_MEM, device_mem_cap, log_steering_sw_icm_size, 0),                             \
        AT_MOST(DEV_MEM, device_mem_cap, header_modify_sw_icm_start_address, 0),                   \
        AT_MOST(DEV_MEM, device_mem_cap, log_header_modify_sw_icm_size, 0),                        \
        AT_MOST(DEV_MEM, device_mem_cap, log_sw_icm_alloc_granularity, 0), NO_SW_OWNER
#define ON_CX6DX  COPIES(1, 0, MMO_LOG_MAX)
#define SINCE_CX7 COPIES(0, 1, MMO_LOG_MAX)

static const struct fw_cap_limit of_cx5[] = {
    BEFORE_CX7,
    BEFORE_CX6DX,
    {0},
};

static const struct fw_cap_limit of_cx6dx[] = {
    BEFORE_CX7,
    ON_CX6DX,
    SINCE_STE_V1,
    {0},
};

static const struct fw_cap_limit of_cx7[] = {
    BEFORE_CX8,
    SINCE_CX7,
    SINCE_STE_V1,
    {0},
};

static const struct fw_cap_limit of_cx8[] = {
    SINCE_CX7,
    SINCE_STE_V1,
    {0},
};

/* ConnectX-4 and -4 Lx: a send WQE carries the layer 2 header itself, and the device inserts no
 * VLAN tag (DPDK's mlx5 guide, txq_inline_min, and mlx5_set_min_inline()). The virtual port's
 * context of a -4 Lx can change that; this is not modelled. Tag matching came with ConnectX-5
 * (NVIDIA, "Understanding MPI Tag Matching and Rendezvous Offloads (ConnectX-5)"), and so did
 * out-of-order data placement (NVIDIA, "Out-of-Order (OOO) Data Placement": ConnectX-5 and above).
 * No source says that they have no mappings of addresses: docs/adr/0009. No source says which
 * generation was the first with enhanced connection establishment; a ConnectX-5 has it. Nor does
 * one say it of device memory; published outputs show it on a ConnectX-6, and none on a -4
 * (docs/adr/0025). Published outputs of the old ibv_devinfo show cross channel and erasure codes on
 * a -4 Lx and a ConnectX-5, but no tunneled atomics on the -4 Lx (docs/adr/0032); Mellanox's
 * library EC names ConnectX-4 and -4 Lx as its cards. No source tells the generations apart by AS
 * notify. Packet pacing is older than ConnectX-5 (Linux, "net/mlx5: Rate limit tables support",
 * June 2016). Scheduling elements of the NIC are newer; no source shows them on a -4. Hairpin
 * queues came with ConnectX-5 (DPDK's mlx5 guide, "Hairpin"). */
static const struct fw_cap_limit before_cx5[] = {
    BEFORE_CX7,
    BEFORE_CX6DX,
    ETH_AT_MOST(wqe_inline_mode, PRM_CAP_INLINE_MODE_L2),
    ETH_AT_MOST(wqe_vlan_insert, 0),
    ETH_AT_MOST(enhanced_multi_pkt_send_wqe, 0),
    ETH_AT_MOST(swp, 0),
    ETH_AT_MOST(swp_csum, 0),
    ETH_AT_MOST(swp_lso, 0),
    ETH_AT_MOST(tunnel_stateless_geneve_tx, 0),
    ETH_AT_MOST(tunnel_stateless_geneve_rx, 0),
    ETH_AT_MOST(tunnel_stateless_vxlan_gpe, 0),
    ETH_AT_MOST(tunnel_stateless_ip_over_ip, 0),
    ETH_AT_MOST(tunnel_stateless_ip_over_ip_rx, 0),
    ETH_AT_MOST(tunnel_stateless_ip_over_ip_tx, 0),
    AT_MOST(GENERAL, cmd_hca_cap, general_obj_types, 1ull << PRM_GENERAL_OBJ_TYPE_RESERVED_QPN),
    NO_SW_OWNER,
    AT_MOST(GENERAL, cmd_hca_cap, flex_parser_protocols, 0),
    AT_MOST(GENERAL, cmd_hca_cap, device_memory, 0),
    AT_MOST(GENERAL, cmd_hca_cap, hairpin, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_max_hairpin_queues, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_max_hairpin_wq_data_sz, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_min_hairpin_wq_data_sz, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_max_hairpin_num_packets, 0),
    AT_MOST(GENERAL, cmd_hca_cap, tunneled_atomic, 0),
    AT_MOST(GENERAL, cmd_hca_cap, tag_matching, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_tag_matching_list_sz, 0),
    AT_MOST(GENERAL, cmd_hca_cap, rndv_offload_rc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, rndv_offload_dc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, log_max_xrq, 0),
    AT_MOST(GENERAL, cmd_hca_cap, ece_support, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_rw_rc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_rw_xrc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_rw_dc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_all_rc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_all_xrc, 0),
    AT_MOST(GENERAL, cmd_hca_cap, dp_ordering_ooo_all_dc, 0),
    AT_MOST(GENERAL_2, cmd_hca_cap_2, dp_ordering_force, 0),
    AT_MOST(QOS, qos_cap, nic_sq_scheduling, 0),
    AT_MOST(QOS, qos_cap, nic_qp_scheduling, 0),
    AT_MOST(QOS, qos_cap, nic_bw_share, 0),
    AT_MOST(QOS, qos_cap, nic_rate_limit, 0),
    AT_MOST(QOS, qos_cap, nic_element_type, 0),
    AT_MOST(QOS, qos_cap, nic_tsar_type, 0),
    AT_MOST(QOS, qos_cap, log_max_qos_nic_queue_group, 0),
    AT_MOST(QOS, qos_cap, max_tsar_bw_share, 0),
    {0},
};

static const struct fw_profile profiles[] = {
    {
        .name = "cx4",
        .pci = {PCI_COMMON, .device = 0x1013, .subsys = 0x0008, .link_speed = 3, .link_width = 16,
                .product = "CX416A - ConnectX-4 QSFP28", .part_number = "MCX416A-CCAT"},
        .fw_major = 12,
        .fw_minor = 28,
        .fw_subminor = 2006,
        .hw_id = 0x209,
        .psid = "MT_2150110033",
        .limits = LIMITS(.dc_version = 0),
        .at_most = before_cx5,
        .eth_modes = {LEGACY_100G, 0},
    },
    {
        .name = "cx4lx",
        .pci = {PCI_COMMON, .device = 0x1015, .subsys = 0x0003, .link_speed = 3, .link_width = 8,
                .product = "CX4121A - ConnectX-4 LX SFP28", .part_number = "MCX4121A-ACAT"},
        .fw_major = 14,
        .fw_minor = 32,
        .fw_subminor = 1900,
        .hw_id = 0x20b,
        .psid = "MT_2420110034",
        .limits = LIMITS(.dc_version = 0),
        .at_most = before_cx5,
        .eth_modes = {LEGACY_25G, 0},
    },
    {
        .name = "cx5",
        .pci = {PCI_COMMON, .device = 0x1017, .subsys = 0x0007, .link_speed = 3, .link_width = 16,
                .product = "CX516A - ConnectX-5 QSFP28", .part_number = "MCX516A-CCAT"},
        .fw_major = 16,
        .fw_minor = 35,
        .fw_subminor = 4030,
        .hw_id = 0x20d,
        .psid = "MT_0000000012",
        .limits = LIMITS(.dc_version = 1),
        .at_most = of_cx5,
        .eth_modes = {LEGACY_100G, 0},
    },
    {
        .name = "cx6dx",
        .pci = {PCI_COMMON, .device = 0x101d, .subsys = 0x0016, .link_speed = 4, .link_width = 16,
                .product = "ConnectX-6 Dx EN adapter card, 100GbE, Dual-port QSFP56, PCIe 4.0 x16",
                .part_number = "MCX623106AN-CDAT"},
        .fw_major = 22,
        .fw_minor = 41,
        .fw_subminor = 1000,
        .hw_id = 0x212,
        .psid = "MT_0000000359",
        .limits = LIMITS(.dc_version = 1, .crypto = HCA_CRYPTO_WRAPPED),
        .at_most = of_cx6dx,
        .eth_modes = {LEGACY_100G, EXT_100G},
    },
    {
        .name = "cx7",
        .pci = {PCI_COMMON, .device = 0x1021, .subsys = 0x0041, .link_speed = 5, .link_width = 16,
                .product = "NVIDIA ConnectX-7 HHHL Adapter card",
                .part_number = "MCX75310AAS-NEAT"},
        .fw_major = 28,
        .fw_minor = 43,
        .fw_subminor = 1014,
        .hw_id = 0x218,
        .psid = "MT_0000000838",
        .limits = LIMITS(.dc_version = 1, .crypto = HCA_CRYPTO_PLAINTEXT),
        .at_most = of_cx7,
        .eth_modes = {LEGACY_100G, EXT_400G},
    },
    {
        .name = "cx8",
        .pci = {PCI_COMMON, .device = 0x1023, .subsys = 0x0041, .link_speed = 6, .link_width = 16,
                .product = "ConnectX-8 C8240 HHHL SuperNIC", .part_number = "900-9X81Q-00CN-ST0"},
        .fw_major = 40,
        .fw_minor = 45,
        .fw_subminor = 1200,
        .hw_id = 0x21e,
        .psid = "MT_0000001222",
        .limits = LIMITS(.dc_version = 1, .crypto = HCA_CRYPTO_PLAINTEXT),
        .at_most = of_cx8,
        .eth_modes = {LEGACY_100G, EXT_400G},
    },
};

const struct fw_profile *fw_profile_find(const char *name)
{
    if (!name) {
        name = FW_PROFILE_DEFAULT;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(profiles); i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

const char *const *fw_profile_names(void)
{
    static const char *names[G_N_ELEMENTS(profiles) + 1];

    for (size_t i = 0; i < G_N_ELEMENTS(profiles); i++) {
        names[i] = profiles[i].name;
    }
    return names;
}

bool fw_profile_pci_id(const char *profile, struct fw_pci_id *id)
{
    const struct fw_profile *p = fw_profile_find(profile);

    if (p) {
        *id = p->pci;
        id->fw_major = p->fw_major;
        id->fw_minor = p->fw_minor;
        id->fw_subminor = p->fw_subminor;
        id->board = p->psid;
    }
    return p != NULL;
}
