/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls about devices, ports and contexts.
 */
#ifndef HCASIM_INFINIBAND_EXP_CALLS_DEVICE_H
#define HCASIM_INFINIBAND_EXP_CALLS_DEVICE_H

#include <stdlib.h>
#include "context.h"

/* Like ibv_get_device_list(). Its list ends by ibv_free_device_list(). */
struct ibv_device **ibv_exp_get_device_list(int *num_devices);

/* Opens a device. attr->comp_mask is not 0. Returns NULL and sets errno on failure. */
static inline struct ibv_context *ibv_exp_open_device(struct ibv_device *device,
                                                      struct ibv_exp_open_device_attr *attr)
{
    struct verbs_context_exp *exp;
    struct ibv_context *context;

    IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_SET_CONTEXT_ATTR_RESERVED - 1);
    if (attr->comp_mask == 0) {
        errno = EINVAL;
        return NULL;
    }
    context = ibv_open_device(device);
    if (!context) {
        return NULL;
    }
    exp = verbs_get_exp_ctx_op(context, drv_exp_set_context_attr);
    if (exp && exp->drv_exp_set_context_attr(context, attr) == 0) {
        return context;
    }
    if (!exp) {
        errno = ENOSYS;
    }
    ibv_close_device(context);
    return NULL;
}

/* Fills the fields that attr->comp_mask asks for. Returns an errno. */
static inline int ibv_exp_query_device(struct ibv_context *context,
                                       struct ibv_exp_device_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, lib_exp_query_device);

    if (!exp) {
        return ENOSYS;
    }
    if (attr->comp_mask & IBV_EXP_DEVICE_ATTR_COMP_MASK_2) {
        IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask_2,
                                                IBV_EXP_DEVICE_ATTR_RESERVED_2 - 1);
    }
    return exp->lib_exp_query_device(context, attr);
}

/*
 * Fills the fields that attr->mask1 asks for; with a comp_mask of 0 it is ibv_query_port(). Returns
 * 0, or -errno; an errno of ibv_query_port() or of the device is positive.
 */
static inline int ibv_exp_query_port(struct ibv_context *context, uint8_t port_num,
                                     struct ibv_exp_port_attr *attr)
{
    struct verbs_context_exp *exp;
    struct ibv_port_attr port;
    int err;

    if (attr->comp_mask != 0) {
        if (!(attr->comp_mask & IBV_EXP_QUERY_PORT_ATTR_MASK1) ||
            (attr->comp_mask & ~(uint32_t)IBV_EXP_QUERY_PORT_ATTR_MASKS) != 0 ||
            (attr->mask1 & ~(uint32_t)IBV_EXP_QUERY_PORT_MASK) != 0) {
            errno = EINVAL;
            return -EINVAL;
        }
        exp = verbs_get_exp_ctx_op(context, lib_exp_query_port);
        if (exp) {
            return exp->lib_exp_query_port(context, port_num, attr);
        }
    }
    /* Every field is one of ibv_query_port(), whose structure begins with these fields. */
    err = ibv_query_port(context, port_num, &port);
    if (err == 0) {
        memcpy(&attr->port_attr, &port, sizeof(attr->port_attr));
    }
    return err;
}

/* Fills the fields of a GID that attr->comp_mask asks for. Returns an errno. */
static inline int ibv_exp_query_gid_attr(struct ibv_context *context, uint8_t port_num,
                                         unsigned int index, struct ibv_exp_gid_attr *attr)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, exp_query_gid_attr);

    if (!exp) {
        return ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(attr->comp_mask, IBV_EXP_QUERY_GID_ATTR_RESERVED - 1);
    return exp->exp_query_gid_attr(context, port_num, index, attr);
}

/* Reads the clock of the card: q_values has bits of enum ibv_exp_values_comp_mask. */
static inline int ibv_exp_query_values(struct ibv_context *context, int q_values,
                                       struct ibv_exp_values *values)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, drv_exp_query_values);

    if (!exp) {
        errno = ENOSYS;
        return -ENOSYS;
    }
    IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(values->comp_mask, IBV_EXP_VALUES_RESERVED - 1);
    return exp->drv_exp_query_values(context, q_values, values);
}

/*
 * Converts the time stamp of a CQE into nanoseconds since the epoch. A time stamp in the half of
 * the counter's range after the reading of clock_info is later than the reading, another one is
 * earlier.
 */
static inline uint64_t ibv_exp_cqe_ts_to_ns(struct ibv_exp_clock_info *clock_info, uint64_t ts)
{
    uint64_t later = (ts - clock_info->cycles) & clock_info->mask;
    uint64_t earlier = (clock_info->cycles - ts) & clock_info->mask;

    IBV_EXP_RET_ZERO_ON_INVALID_COMP_MASK(clock_info->comp_mask, IBV_EXP_CLOCK_INFO_RESERVED - 1);
    if (later <= clock_info->mask / 2) {
        return clock_info->nsec +
               ((later * clock_info->mult + clock_info->frac) >> clock_info->shift);
    }
    return clock_info->nsec -
           ((earlier * clock_info->mult - clock_info->frac) >> clock_info->shift);
}

/* Gives a context settings of its own, which ibv_exp_setenv() changes. */
static inline int ibv_exp_use_priv_env(struct ibv_context *context)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, lib_exp_use_priv_env);

    if (!exp) {
        errno = ENOSYS;
        return -1;
    }
    return exp->lib_exp_use_priv_env(context);
}

/* Sets a setting of a context, or of the process if the context has no settings of its own. */
static inline int ibv_exp_setenv(struct ibv_context *context, const char *name, const char *value,
                                 int overwrite)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, lib_exp_setenv);

    return exp ? exp->lib_exp_setenv(context, name, value, overwrite)
               : setenv(name, value, overwrite);
}

/* Reads entries of the trace of connections that DCTs refused. Returns how many, or -1. */
static inline int ibv_exp_poll_dc_info(struct ibv_context *context,
                                       struct ibv_exp_dc_info_ent *ents, int nent, int port)
{
    struct verbs_context_exp *exp = verbs_get_exp_ctx_op(context, drv_exp_poll_dc_info);

    if (!exp) {
        errno = ENOSYS;
        return -1;
    }
    return exp->drv_exp_poll_dc_info(context, ents, nent, port);
}

#endif
