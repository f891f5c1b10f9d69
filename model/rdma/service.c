/* SPDX-License-Identifier: BSD-2-Clause */
/* Has the table of service types. */
#include "model/core/fault.h"
#include "model/rdma/peer.h"
#include "model/rdma/service.h"
#include "prm/prm.h"
#include "wire/packet/opcode.h"

const struct service services[SERVICES] = {
    [PRM_QP_ST_RC] =
        {
            .name = "RC",
            .st = PRM_QP_ST_RC,
            .paging = PAGING_RC,
            .transport = BTH_RC,
            .extended = BTH_EXTENDED_RC,
            .reliable = true,
            .connected = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_UC] =
        {
            .name = "UC",
            .st = PRM_QP_ST_UC,
            .paging = PAGING_UC,
            .transport = BTH_UC,
            .connected = true,
            .has_sqe = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_UD] =
        {
            .name = "UD",
            .st = PRM_QP_ST_UD,
            .paging = PAGING_UD,
            .transport = BTH_UD,
            .has_sqe = true,
            .joins_groups = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_XRC] =
        {
            .name = "XRC",
            .st = PRM_QP_ST_XRC,
            .paging = PAGING_XRC,
            .transport = BTH_XRC,
            .extended = BTH_EXTENDED_XRC,
            .reliable = true,
            .connected = true,
            .one_half = true,
            .names_srq = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_DCI] =
        {
            .name = "DCI",
            .st = PRM_QP_ST_DCI,
            .paging = PAGING_DC,
            .transport = BTH_DC,
            .extended = BTH_EXTENDED_DC,
            .reliable = true,
            .dynamic = true,
            .one_half = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_DCT] =
        {
            .name = "DCT",
            .st = PRM_QP_ST_DCT,
            .paging = PAGING_DC,
            .transport = BTH_DC,
            .extended = BTH_EXTENDED_DC,
            .reliable = true,
            .dynamic = true,
            .owner = &dct_owner,
        },
    [PRM_QP_ST_QP1] =
        {
            .name = "GSI",
            .st = PRM_QP_ST_QP1,
            .paging = PAGING_TRANSPORTS,
            .transport = BTH_UD,
            .has_sqe = true,
            .is_gsi = true,
            .owner = &qp_owner,
        },
    [PRM_QP_ST_REG_UMR] =
        {
            .name = "UMR",
            .st = PRM_QP_ST_REG_UMR,
            .paging = PAGING_TRANSPORTS,
            .transport = SERVICE_NO_PACKETS,
            .is_umr = true,
            .owner = &qp_owner,
        },
};
