/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has the table of the vendor syndromes of error CQEs. The vendor does not publish them. The table
 * holds those that ConnectX adapters were seen to report, with the source of each. Every other pair
 * gets a value that hcasim defines: OWN_BASE and the low bits of the syndrome, a value that the
 * table does not have. A responder's LOCAL_LENGTH_ERR is such a pair: the kernel's "QP error: local
 * length error (0x8e ...)" (github.com/kvcache-ai/Mooncake issue 3299) is about QPs that received
 * WRITEs, which leave no CQE.
 */
#include "model/queue/cqe_vendor.h"
#include <glib.h>
#include "prm/prm.h"

#define OWN_BASE 0xa0
#define OWN_MASK 0x1f

#define REQ      (1u << PRM_CQE_OPCODE_REQ_ERR)
#define RESP     (1u << PRM_CQE_OPCODE_RESP_ERR)

struct vendor_synd {
    uint16_t opcodes; /* bit per CQE opcode */
    uint8_t syndrome, vendor;
};

static const struct vendor_synd table[] = {
    /* Linux, net/mlx5e commit messages that quote error CQEs of an SQ (opcode 0xd) */
    {REQ, PRM_CQE_SYNDROME_LOCAL_LENGTH_ERR, 0x68},
    {REQ, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0x68},
    /* github.com/openucx/ucx pull request 11444 */
    {RESP, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR, 0xd6},
    /* github.com/linux-rdma/perftest issue 173, NVIDIA/nccl issue 928 ("vendor err 81") */
    {REQ, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0x51},
    /* github.com/openucx/ucx pull request 9167; the same in net/mlx5e commit messages */
    {RESP, PRM_CQE_SYNDROME_LOCAL_PROT_ERR, 0x32},
    /* github.com/linux-nvme/nvme-cli issue 3268, NVIDIA/nccl issue 1353 ("vendor err 249") */
    {REQ | RESP, PRM_CQE_SYNDROME_WR_FLUSH_ERR, 0xf9},
    /* rdma-core, MLX5_CQE_VENDOR_SYNDROME_ODP_PFAULT */
    {RESP, PRM_CQE_SYNDROME_REMOTE_ABORTED_ERR, 0x93},
    /* forums.developer.nvidia.com 207715; UCX prints "synd 0x13 vend 0x88" */
    {REQ, PRM_CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x88},
    /* github.com/openucx/ucx issue 5472 */
    {REQ, PRM_CQE_SYNDROME_REMOTE_OP_ERR, 0x89},
    /* github.com/charmplusplus/charm issue 2532, NVIDIA/nccl issue 1710 ("vendor err 138") */
    {REQ, PRM_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, 0x8a},
    /* libmlx5's dump of such a CQE, "00008716" in its third word from the end, beside the counter
     * rnr_nak_retry_err of the same port, in public notes on RoCE; Open MPI users of earlier
     * adapters report the same number ("vendor error 135") */
    {REQ, PRM_CQE_SYNDROME_RNR_RETRY_EXC_ERR, 0x87},
    /* github.com/openucx/ucx issue 2973, NVIDIA/nccl issue 426 ("vendor err 129") */
    {REQ, PRM_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, 0x81},
};

uint8_t cqe_vendor_synd(uint8_t opcode, uint8_t syndrome)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        if (table[i].opcodes >> opcode & 1 && table[i].syndrome == syndrome) {
            return table[i].vendor;
        }
    }
    return OWN_BASE | (syndrome & OWN_MASK);
}
