/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's attributes in direct verbs' terms: capabilities, port.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/newer.h"
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/user/dv_crypto.h"
#include "guest-lib/verbs/user/dv_sig.h"
#include "guest-lib/verbs/user/qp.h"

/* Doorbell registers that a program may still allocate, in mlx5_ib's counting. */
#define MAX_DYNAMIC_BFREGS 1024

static uint32_t dv_device_raw_packet_if(uint32_t caps)
{
    return caps ? 1u << IBV_QPT_RAW_PACKET : 0;
}

uint32_t hv_dv_tunnel_offloads(struct hv_hca *hca)
{
    return (HV_ETH_CAP(hca, tunnel_stateless_vxlan) ? MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_VXLAN
                                                    : 0) |
           (HV_ETH_CAP(hca, tunnel_stateless_gre) ? MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GRE
                                                  : 0) |
           (HV_ETH_CAP(hca, tunnel_stateless_geneve_rx)
                ? MLX5DV_RAW_PACKET_CAP_TUNNELED_OFFLOAD_GENEVE
                : 0);
}

/* Fills in software parsing, tunnels and striding RQs, from the Ethernet capabilities. */
static void dv_device_ethernet_caps(struct ibv_context *ctx, struct mlx5dv_context *caps)
{
    struct hv_hca *hca = hv_hca_of(ctx);
    uint32_t offloads = 0;

    if (!HV_CAP(hca, eth_net_offloads)) {
        return;
    }
#define ETH(field) HV_ETH_CAP(hca, field)
    if (ETH(multi_pkt_send_wqe)) {
        caps->flags |= MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED;
    }
    if (ETH(enhanced_multi_pkt_send_wqe)) {
        caps->flags |= MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW;
    }
    if (ETH(swp)) {
        offloads = MLX5DV_SW_PARSING | (ETH(swp_csum) ? MLX5DV_SW_PARSING_CSUM : 0) |
                   (ETH(swp_lso) ? MLX5DV_SW_PARSING_LSO : 0);
    }
    caps->sw_parsing_caps.sw_parsing_offloads = offloads;
    caps->sw_parsing_caps.supported_qpts = dv_device_raw_packet_if(offloads);
    caps->tunnel_offloads_caps = hv_dv_tunnel_offloads(hca);
#undef ETH
    if (HV_CAP(hca, striding_rq)) {
        caps->striding_rq_caps = (struct mlx5dv_striding_rq_caps){
            .min_single_stride_log_num_of_bytes = HV_MIN_LOG_STRIDE,
            .max_single_stride_log_num_of_bytes = HV_MAX_LOG_STRIDE,
            .min_single_wqe_log_num_of_strides =
                HV_CAP(hca, ext_stride_num_range) ? HV_MIN_LOG_STRIDES_EXT : HV_MIN_LOG_STRIDES,
            .max_single_wqe_log_num_of_strides = HV_MAX_LOG_STRIDES,
            .supported_qpts = dv_device_raw_packet_if(1),
        };
    }
}

/* Returns the numbers of receive WQEs of QPs whose data may be placed out of order. For them a
 * cyclic queue must be twice as long, a linked list need not (libmlx5's get_hca_general_caps()). */
static struct hv_ooo_recv_wrs dv_device_ooo_caps(struct hv_hca *hca)
{
    uint32_t list = 1u << HV_CAP(hca, log_max_qp_sz), cyclic = list > 1 ? list / 2 : list;

    return (struct hv_ooo_recv_wrs){
        .max_rc = HV_CAP(hca, dp_ordering_ooo_all_rc) ? cyclic : 0,
        .max_xrc = HV_CAP(hca, dp_ordering_ooo_all_xrc) ? list : 0,
        .max_dct = HV_CAP(hca, dp_ordering_ooo_all_dc) ? list : 0,
        .max_ud = HV_CAP(hca, dp_ordering_ooo_all_ud) ? cyclic : 0,
        .max_uc = HV_CAP(hca, dp_ordering_ooo_all_uc) ? cyclic : 0,
    };
}

/* Fills in the asked members that releases of rdma-core after 44 have appended. Returns their bits.
 */
static uint64_t dv_device_newer(struct hv_hca *hca, struct mlx5dv_context *attrs, uint64_t asked)
{
    struct hv_context_newer *newer = hv_context_newer(attrs);
    struct hv_ooo_recv_wrs ooo = dv_device_ooo_caps(hca);
    uint64_t given = 0;

    if (asked & HV_CONTEXT_MASK_MAX_DC_RD_ATOM) {
        newer->max_dc_rd_atom = 1u << HV_CAP(hca, log_max_ra_req_dc);
        newer->max_dc_init_rd_atom = 1u << HV_CAP(hca, log_max_ra_res_dc);
        given |= HV_CONTEXT_MASK_MAX_DC_RD_ATOM;
    }
    if ((asked & HV_CONTEXT_MASK_OOO_RECV_WRS) && HV_CAP_2(hca, dp_ordering_force) &&
        (ooo.max_rc || ooo.max_xrc || ooo.max_dct || ooo.max_ud || ooo.max_uc)) {
        newer->ooo_recv_wrs_caps = ooo;
        given |= HV_CONTEXT_MASK_OOO_RECV_WRS;
    }
    return given;
}

/* mlx5_ib: mlx5_ib_query_device() */
struct mlx5dv_cqe_comp_caps hv_dv_cqe_comp_caps(struct hv_hca *hca)
{
    struct mlx5dv_cqe_comp_caps caps = {0};

    if (HV_CAP(hca, cqe_compression)) {
        caps.max_num = HV_CAP(hca, cqe_compression_max_num);
        caps.supported_format = MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM;
        if (HV_CAP(hca, mini_cqe_resp_stride_index)) {
            caps.supported_format |= MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX;
        }
    }
    return caps;
}

int hv_dv_query_device(struct ibv_context *ctx, struct mlx5dv_context *attrs)
{
    struct hv_hca *hca = hv_hca_of(ctx);
    struct mlx5dv_context caps = {.flags = 0};
    uint64_t asked = attrs->comp_mask, given = 0;

    dv_device_ethernet_caps(ctx, &caps);
    if (HV_CAP(hca, cqe_version) == 1) {
        caps.flags |= MLX5DV_CONTEXT_FLAGS_CQE_V1;
    }
    if (HV_CAP(hca, cqe_compression_128)) {
        caps.flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP;
    }
    if (HV_CAP(hca, cqe_128_always)) {
        caps.flags |= MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
    }
    if (hv_has_real_time(hca)) {
        caps.flags |= MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS;
    }
    attrs->version = 0;
    attrs->flags = caps.flags;
#define GIVE(bit, field)                                                                           \
    do {                                                                                           \
        if (asked & MLX5DV_CONTEXT_MASK_##bit) {                                                   \
            attrs->field = caps.field;                                                             \
            given |= MLX5DV_CONTEXT_MASK_##bit;                                                    \
        }                                                                                          \
    } while (0)
    caps.max_dynamic_bfregs = MAX_DYNAMIC_BFREGS;
    /* the product of the multiplier and a time difference must fit into 64 bits */
    caps.max_clock_info_update_nsec =
        hv_clock_mult(ctx)
            ? (UINT64_MAX / hv_clock_mult(ctx) / 2 * hv_clock_mult(ctx)) >> HV_CLOCK_SHIFT
            : 0;
    if (HV_CAP(hca, log_max_dci_stream_channels)) {
        caps.dci_streams_caps.max_log_num_concurent = HV_CAP(hca, log_max_dci_stream_channels);
        caps.dci_streams_caps.max_log_num_errored = HV_CAP(hca, log_max_dci_errored_streams);
    }
    caps.max_wr_memcpy_length = hv_dv_max_memcpy(hca);
    caps.cqe_comp_caps = hv_dv_cqe_comp_caps(hca);
    hv_dv_sig_caps(hca, &caps.sig_caps);
    caps.dc_odp_caps = uverbs_dc_odp_caps(hca);
    hv_dv_crypto_caps(hca, &caps.crypto_caps);
    GIVE(CQE_COMPRESION, cqe_comp_caps);
    GIVE(SWP, sw_parsing_caps);
    GIVE(STRIDING_RQ, striding_rq_caps);
    GIVE(TUNNEL_OFFLOADS, tunnel_offloads_caps);
    GIVE(DYN_BFREGS, max_dynamic_bfregs);
    GIVE(FLOW_ACTION_FLAGS, flow_action_flags);
    GIVE(DC_ODP_CAPS, dc_odp_caps);
    GIVE(SIGNATURE_OFFLOAD, sig_caps);
    GIVE(DCI_STREAMS, dci_streams_caps);
    GIVE(WR_MEMCPY_LENGTH, max_wr_memcpy_length);
    GIVE(CRYPTO_OFFLOAD, crypto_caps);
    if (hv_clock_mult(ctx)) {
        GIVE(CLOCK_INFO_UPDATE, max_clock_info_update_nsec);
    }
#undef GIVE
    attrs->comp_mask = given | dv_device_newer(hca, attrs, asked);
    return 0;
}

int hv_dv_query_port(struct ibv_context *ctx, uint32_t port, struct mlx5dv_port *info, size_t len)
{
    struct ibv_device_attr attr;

    if (ibv_query_device(ctx, &attr) || port < 1 || port > attr.phys_port_cnt) {
        return EINVAL;
    }
    memset(info, 0, len); /* without eswitch and other vports no flag is set */
    return 0;
}

/* Memory of rings comes from the library or from a parent domain; allocators for a whole context
 * are unsupported. */
int hv_dv_set_context_attr(struct ibv_context *ctx, enum mlx5dv_set_ctx_attr_type type, void *attr)
{
    (void)ctx;
    (void)type;
    (void)attr;
    return ENOTSUP;
}
