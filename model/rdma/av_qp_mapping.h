/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps mappings of an address to a QP (general object AV_QP_MAPPING). A mapping asks that
 * datagrams and DC messages to the address use the congestion control that the QP's connection has
 * agreed on. This is a hint for a card that has several kinds of congestion control. This device
 * has one (model/rdma/reaction_point.h). Therefore a mapping is kept and can be queried, but it
 * does not change how messages are sent.
 */
#ifndef HCASIM_MODEL_AV_QP_MAPPING_H
#define HCASIM_MODEL_AV_QP_MAPPING_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct av_qp_mapping {
    struct obj obj;
    struct prm_av_qp_mapping ctx[1];
};

/* CREATE_GENERAL_OBJECT; ctx is as in the command. */
enum syn av_qp_mapping_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num);

#endif
