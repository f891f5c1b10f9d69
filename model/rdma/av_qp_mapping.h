/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of an address to a QP (general object AV_QP_MAPPING): datagrams and DC messages to the
 * address are to take the congestion control that the QP's connection has agreed on. That is a hint
 * for a card which has several. This one has one (model/rdma/reaction_point.h): a mapping is kept
 * and can be queried, and no message goes another way for it.
 */
#ifndef HCASIM_MODEL_AV_QP_MAPPING_H
#define HCASIM_MODEL_AV_QP_MAPPING_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct av_qp_mapping {
    struct obj obj;
    struct prm_av_qp_mapping ctx[1];
};

/* CREATE_GENERAL_OBJECT; ctx as in the command. */
enum syn av_qp_mapping_create(struct hca *hca, uint16_t uid, const void *ctx, uint32_t *num);

#endif
