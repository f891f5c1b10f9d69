/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport interfaces: TIS (send), TIR (receive) and RQT, the indirection table of RSS.
 */
#ifndef HCASIM_MODEL_TIR_H
#define HCASIM_MODEL_TIR_H

#include "model/core/hca.h"

enum syn tis_create(struct hca *hca, uint16_t uid, const void *tisc, uint32_t *tisn);
enum syn tis_modify(struct hca *hca, uint16_t uid, uint32_t tisn, const void *bitmask,
                    const void *tisc);
enum syn tis_query(struct hca *hca, uint32_t tisn, void *tisc);
enum syn tis_destroy(struct hca *hca, uint16_t uid, uint32_t tisn);

/* rqtc followed by list_len bytes of rq_num entries. */
enum syn rqt_create(struct hca *hca, uint16_t uid, const void *rqtc, size_t list_len,
                    uint32_t *rqtn);
enum syn rqt_modify(struct hca *hca, uint16_t uid, uint32_t rqtn, const void *bitmask,
                    const void *rqtc, size_t list_len);
enum syn rqt_query(struct hca *hca, uint32_t rqtn, void *rqtc, size_t list_len);
enum syn rqt_destroy(struct hca *hca, uint16_t uid, uint32_t rqtn);

enum syn tir_create(struct hca *hca, uint16_t uid, const void *tirc, uint32_t *tirn);
enum syn tir_modify(struct hca *hca, uint16_t uid, uint32_t tirn, const void *bitmask,
                    const void *tirc);
enum syn tir_query(struct hca *hca, uint32_t tirn, void *tirc);
enum syn tir_destroy(struct hca *hca, uint16_t uid, uint32_t tirn);

#endif
