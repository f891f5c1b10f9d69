/* SPDX-License-Identifier: BSD-2-Clause */
/* Derives the errno that a program sees from the status of a command. */
#include "guest-lib/verbs/kernel/kernel.h"

int hv_status_errno(int status)
{
    switch (status) {
    case PRM_CMD_STATUS_OK:
        return 0;
    case PRM_CMD_STATUS_BAD_OP:
    case PRM_CMD_STATUS_BAD_PARAM:
    case PRM_CMD_STATUS_BAD_RES:
    case PRM_CMD_STATUS_BAD_RES_STATE:
    case PRM_CMD_STATUS_BAD_INDEX:
    case PRM_CMD_STATUS_BAD_QP_STATE:
    case PRM_CMD_STATUS_BAD_PKT:
    case PRM_CMD_STATUS_BAD_SIZE_OUTS_CQES:
        return EINVAL;
    case PRM_CMD_STATUS_RES_BUSY:
        return EBUSY;
    case PRM_CMD_STATUS_LIM_ERR:
        return ENOMEM;
    case PRM_CMD_STATUS_NO_RES:
        return EAGAIN;
    case DRV_TIMEOUT:
        return ETIMEDOUT;
    default:
        return EIO;
    }
}
