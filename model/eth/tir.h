/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport interfaces: TIS (send), TIR (receive) and RQT, the indirection table of RSS.
 */
#ifndef HCASIM_MODEL_TIR_H
#define HCASIM_MODEL_TIR_H

#include "model/core/hca.h"
#include "prm/prm.h"

enum syn tis_create(struct hca *hca, uint16_t uid, const struct prm_tisc *tisc, uint32_t *tisn);
enum syn tis_modify(struct hca *hca, uint16_t uid, uint32_t tisn,
                    const struct prm_modify_tis_bitmask *bitmask, const struct prm_tisc *tisc);
enum syn tis_query(struct hca *hca, uint32_t tisn, struct prm_tisc *tisc);
enum syn tis_destroy(struct hca *hca, uint16_t uid, uint32_t tisn);
void tis_free(struct hca *hca, struct obj *obj); /* these are for the table of object classes */

#define RQT_MAX_SIZE 2048 /* queues */

/* rqtc is followed by list_len bytes of rq_num entries. */
enum syn rqt_create(struct hca *hca, uint16_t uid, const struct prm_rqtc *rqtc, size_t list_len,
                    uint32_t *rqtn);
enum syn rqt_modify(struct hca *hca, uint16_t uid, uint32_t rqtn,
                    const struct prm_rqt_bitmask *bitmask, const struct prm_rqtc *rqtc,
                    size_t list_len);
enum syn rqt_query(struct hca *hca, uint32_t rqtn, struct prm_rqtc *rqtc, size_t list_len);
enum syn rqt_destroy(struct hca *hca, uint16_t uid, uint32_t rqtn);
void rqt_free(struct hca *hca, struct obj *obj);

enum syn tir_create(struct hca *hca, uint16_t uid, const struct prm_tirc *tirc, uint32_t *tirn);
enum syn tir_modify(struct hca *hca, uint16_t uid, uint32_t tirn,
                    const struct prm_modify_tir_bitmask *bitmask, const struct prm_tirc *tirc);
enum syn tir_query(struct hca *hca, uint32_t tirn, struct prm_tirc *tirc);
enum syn tir_destroy(struct hca *hca, uint16_t uid, uint32_t tirn);
void tir_free(struct hca *hca, struct obj *obj);

#endif
