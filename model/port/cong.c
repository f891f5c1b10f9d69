/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and changes the parameters of congestion control, which are a table. */
#include <glib.h>
#include <stddef.h>
#include "model/port/cong.h"
#include "prm/prm.h"

/* A parameter of one side: its place in the PRM's structure and in struct cong. */
struct cong_param {
    uint32_t field; /* field number, as in prm/access.h */
    const char *name;
    size_t value; /* offset in struct cong, of a uint32_t */
    unsigned select;
    uint32_t least, most, initial;
};

#define CONG_PARAM(side, name, select, least, most, initial)                                       \
    {                                                                                              \
        PRM_cong_control_r_roce_ecn_##side##_##name##_FIELD, #name,                                \
            offsetof(struct cong, side.name), select, least, most, initial                         \
    }

static const struct cong_param rp_params[] = {
#define RP_PARAM(...) CONG_PARAM(rp, __VA_ARGS__),
#define NP_PARAM(...)
#include "model/port/cong_params.def"
#undef RP_PARAM
#undef NP_PARAM
};

static const struct cong_param np_params[] = {
#define RP_PARAM(...)
#define NP_PARAM(...) CONG_PARAM(np, __VA_ARGS__),
#include "model/port/cong_params.def"
#undef RP_PARAM
#undef NP_PARAM
};

struct cong_protocol {
    const struct cong_param *params;
    size_t num_params;
    size_t side; /* offset of its struct cong_side in struct cong */
};

static const struct cong_protocol protocols[] = {
    [PRM_CONG_PROTOCOL_R_ROCE_ECN_RP] = {rp_params, G_N_ELEMENTS(rp_params),
                                         offsetof(struct cong, rp_side)},
    [PRM_CONG_PROTOCOL_R_ROCE_ECN_NP] = {np_params, G_N_ELEMENTS(np_params),
                                         offsetof(struct cong, np_side)},
};

/* NULL: the port does not support the protocol. */
static const struct cong_protocol *cong_find(unsigned protocol)
{
    return protocol < G_N_ELEMENTS(protocols) && protocols[protocol].params ? &protocols[protocol]
                                                                            : NULL;
}

static uint32_t *cong_value(struct cong *cong, const struct cong_param *param)
{
    return (uint32_t *)((char *)cong + param->value);
}

void cong_reset(struct cong *cong)
{
    *cong = (struct cong){
        .np_side = {.enabled = 0xff, .tagged = 0xff},
        .rp_side = {.enabled = 0xff, .tagged = 0xff},
        .flows = cong->flows,
    };
    for (size_t p = 0; p < G_N_ELEMENTS(protocols); p++) {
        for (size_t i = 0; i < protocols[p].num_params; i++) {
            *cong_value(cong, &protocols[p].params[i]) = protocols[p].params[i].initial;
        }
    }
}

struct cong_side *cong_side(struct cong *cong, unsigned protocol)
{
    const struct cong_protocol *p = cong_find(protocol);

    return p ? (struct cong_side *)((char *)cong + p->side) : NULL;
}

enum syn cong_query(const struct cong *cong, unsigned protocol, void *params)
{
    const struct cong_protocol *p = cong_find(protocol);

    if (!p) {
        return SYN_CONG_PROTOCOL;
    }
    for (size_t i = 0; i < p->num_params; i++) {
        prm_set(params, p->params[i].field,
                *(const uint32_t *)((const char *)cong + p->params[i].value), p->params[i].name);
    }
    return SYN_OK;
}

/* Whether all selected values are in range, and select names no unknown parameter. */
static bool cong_may_modify(const struct cong_protocol *p, uint32_t select, const void *params)
{
    for (size_t i = 0; i < p->num_params; i++) {
        const struct cong_param *param = &p->params[i];
        uint64_t value = prm_get(params, param->field);

        if (select >> param->select & 1 && (value < param->least || value > param->most)) {
            return false;
        }
    }
    for (size_t i = 0; i < p->num_params; i++) {
        select &= ~(1u << p->params[i].select);
    }
    return !select;
}

enum syn cong_modify(struct cong *cong, unsigned protocol, uint32_t select, const void *params)
{
    const struct cong_protocol *p = cong_find(protocol);

    if (!p) {
        return SYN_CONG_PROTOCOL;
    }
    if (!cong_may_modify(p, select, params)) {
        return SYN_CONG_PARAM;
    }
    for (size_t i = 0; i < p->num_params; i++) {
        if (select >> p->params[i].select & 1) {
            *cong_value(cong, &p->params[i]) = (uint32_t)prm_get(params, p->params[i].field);
        }
    }
    return SYN_OK;
}
