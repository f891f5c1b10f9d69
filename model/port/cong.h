/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the settings and counters of RoCE congestion control of a physical port. The notification
 * point answers congestion marks (model/rdma/notification_point.h); the reaction point slows QPs
 * down (model/rdma/reaction_point.h). A function's reset changes these settings only if the
 * function is alone on its card.
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

/* The settings of one side: a bit for each priority. */
struct cong_side {
    uint8_t enabled; /* MODIFY_CONG_STATUS.enable */
    /* MODIFY_CONG_STATUS.tag_enable; at the reaction point: packets are sent as ECN-capable */
    uint8_t tagged;
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
    uint64_t sum_flows; /* flows that became limited: QPs, and sessions of DC targets */
    uint64_t cnps_ignored, cnps_handled;
    uint64_t marked; /* RoCE packets received with a congestion mark */
    uint64_t cnps_sent;
};

struct cong {
    struct cong_side np_side, rp_side;
    struct cong_np np;
    struct cong_rp rp;
    struct cong_counters counters;
    uint64_t cnp_at; /* clock_ns(); the next CNP is not sent before this time */
    uint32_t flows;  /* number of flows that are limited now */
};

/* Brings the settings and counters to their state after power-on, except for the number of limited
 * flows. */
void cong_reset(struct cong *cong);

/* The side of a congestion control protocol (PRM cong_protocol). NULL: the port does not support
 * that protocol. */
struct cong_side *cong_side(struct cong *cong, unsigned protocol);

/* Reads or changes the parameters of a protocol, in the PRM's layout cong_control_*. cong_modify()
 * changes the fields that select names (field_select). */
enum syn cong_query(const struct cong *cong, unsigned protocol, void *params);
enum syn cong_modify(struct cong *cong, unsigned protocol, uint32_t select, const void *params);

#endif
