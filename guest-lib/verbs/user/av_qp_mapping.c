/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_map_ah_to_qp(): says which QP's congestion control applies to messages to an address
 * handle's destination. A handle has one mapping, a DevX object that exists as long as the handle.
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/user.h"

/* Creates the mapping. Returns 0, or the errno of the command. */
static int mapping_make(struct hv_ah *ah, uint32_t qp_num)
{
    uint8_t in_bytes[PRM_SIZE(general_object_in) + PRM_SIZE(av_qp_mapping)] = {0};
    void *in = in_bytes;
    struct prm_general_obj_out_cmd_hdr out[1] = {0};
    struct prm_av_qp_mapping *mapping = PRM_PTR(general_object_in, in, object);
    struct prm_ud_av *av = PRM_PTR(av_qp_mapping, mapping, remote_address_vector);

    PRM_SET(general_obj_in_cmd_hdr, in, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    PRM_SET(general_obj_in_cmd_hdr, in, obj_type, PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING);
    PRM_SET(av_qp_mapping, mapping, qpn, qp_num);
    PRM_SET(ud_av, av, sl_or_eth_prio, PRM_GET(wqe_av, ah->av, sl));
    PRM_SET(ud_av, av, src_addr_index, PRM_GET(wqe_av, ah->av, src_addr_index));
    memcpy(PRM_PTR(ud_av, av, rgid_or_rip), PRM_PTR(wqe_av, ah->av, rgid), 16);
    ah->mapping = hv_dv_devx_obj_create(ah->ibv.context, in, sizeof(in_bytes), out, sizeof(out));
    if (ah->mapping) {
        return 0;
    }
    return errno == EREMOTEIO ? hv_status_errno((int)PRM_GET(general_obj_out_cmd_hdr, out, status))
                              : errno;
}

int hv_dv_map_ah_to_qp(struct ibv_ah *ibah, uint32_t qp_num)
{
    struct hv_ah *ah = hv_ah(ibah);
    int err = 0;

    if (!(HV_CAP(hv_context(ibah->context)->hca, general_obj_types) >>
              PRM_GENERAL_OBJ_TYPE_AV_QP_MAPPING &
          1)) {
        return EOPNOTSUPP;
    }
    pthread_mutex_lock(&ah->lock);
    if (!ah->mapping) { /* the first mapping stays */
        err = mapping_make(ah, qp_num);
    }
    pthread_mutex_unlock(&ah->lock);
    return err;
}

void hv_ah_unmap(struct hv_ah *ah)
{
    if (ah->mapping) {
        hv_dv_devx_obj_destroy(ah->mapping);
    }
}
