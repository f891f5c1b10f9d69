/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE congestion control of a physical port: what its two sides are told to do, and what they
 * count. The notification point answers congestion marks (model/rdma/notification_point.h), the
 * reaction point slows QPs down (model/rdma/reaction_point.h). No function's reset changes it, but
 * that of a function which is alone on its card.
 */
#ifndef HCASIM_MODEL_CONG_H
#define HCASIM_MODEL_CONG_H

#include <stdbool.h>
#include <stdint.h>
#include "model/core/syndrome.h"

#define CONG_PRIORITIES 8

/* The ECN bits of IP (RFC 3168). */
#define ECN_MASK 3
#define ECN_ECT0 2
#define ECN_CE   3

/* By priority, a bit each. */
struct cong_side {
    uint8_t enabled; /* MODIFY_CONG_STATUS.enable */
    uint8_t tagged;  /* .tag_enable; of the reaction point: packets say that they may be marked */
};

struct cong_rp {
#define RP_PARAM(field, ...) uint32_t field;
#define NP_PARAM(...)
#include "model/port/cong_params.def"
#undef RP_PARAM
#undef NP_PARAM
};

struct cong_np {
#define RP_PARAM(...)
#define NP_PARAM(field, ...) uint32_t field;
#include "model/port/cong_params.def"
#undef RP_PARAM
#undef NP_PARAM
};

struct cong_counters {
    uint64_t since;     /* clock_ns(), when they were cleared */
    uint64_t sum_flows; /* that became limited: QPs, and sessions of DC targets */
    uint64_t cnps_ignored, cnps_handled;
    uint64_t marked; /* RoCE packets that came with a congestion mark */
    uint64_t cnps_sent;
};

struct cong {
    struct cong_side np_side, rp_side;
    struct cong_np np;
    struct cong_rp rp;
    struct cong_counters counters;
    uint64_t cnp_at; /* clock_ns(); no CNP is sent before */
    uint32_t flows;  /* of those, that are limited now */
};

/* As after power-on, but for who is limited. */
void cong_reset(struct cong *cong);

/* The side of a congestion control protocol (PRM cong_protocol). NULL: the port has no such. */
struct cong_side *cong_side(struct cong *cong, unsigned protocol);

/* PRM cong_control_* of that protocol, and what of it field_select names. */
enum syn cong_query(const struct cong *cong, unsigned protocol, void *params);
enum syn cong_modify(struct cong *cong, unsigned protocol, uint32_t select, const void *params);

#endif
