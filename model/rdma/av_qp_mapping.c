/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates mappings of an address to a QP. */
#include <string.h>
#include "model/rdma/av_qp_mapping.h"
#include "model/rdma/qp.h"

/* Copies the fields that a mapping has. The rest of the layout is reserved, or is for the command
 * that modifies a mapping. */
static void mapping_copy(struct prm_av_qp_mapping *to, const struct prm_av_qp_mapping *from)
{
    struct prm_ud_av *av = PRM_PTR(av_qp_mapping, to, remote_address_vector);
    const struct prm_ud_av *in = PRM_PTR(av_qp_mapping, from, remote_address_vector);

    PRM_SET(av_qp_mapping, to, qpn, PRM_GET(av_qp_mapping, from, qpn));
    PRM_SET(ud_av, av, sl_or_eth_prio, PRM_GET(ud_av, in, sl_or_eth_prio));
    PRM_SET(ud_av, av, src_addr_index, PRM_GET(ud_av, in, src_addr_index));
    memcpy(PRM_PTR(ud_av, av, rgid_or_rip), PRM_PTR(ud_av, in, rgid_or_rip), 16);
}

/* The QP must exist, but may be destroyed at once (mlx5dv_map_ah_to_qp(3)): a card takes what it
 * needs when the mapping is made. Therefore no reference is kept. The QP may belong to another
 * user, who told its number. That is safe: the mapping reveals nothing about the QP and changes
 * nothing in it. */
enum syn av_qp_mapping_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num)
{
    struct prm_av_qp_mapping told[1] = {0};
    struct av_qp_mapping *mapping;

    mapping_copy(told, ctx);
    if (memcmp(told, ctx, sizeof(told)) != 0) {
        return SYN_RESERVED;
    }
    if (!qp_find(hca, PRM_GET(av_qp_mapping, told, qpn))) {
        return SYN_QP_NUM;
    }
    mapping = obj_make(hca, OBJ_AV_QP_MAPPING, uid, sizeof(*mapping));
    if (!mapping) {
        return SYN_NO_MEMORY;
    }
    memcpy(mapping->ctx, told, sizeof(told));
    *num = mapping->obj.num;
    return SYN_OK;
}
