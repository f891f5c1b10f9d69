/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports, GIDs, the clock, and the settings of a context: ibv_exp_query_port(),
 * ibv_exp_query_gid_attr(), ibv_exp_query_values(), ibv_exp_use_priv_env(), ibv_exp_setenv().
 */
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/exp.h"

/* The inline call has checked the masks. Each field that it can ask for is in the structure of
 * ibv_query_port(), which begins with the members of this one. */
static int exp_query_port(struct ibv_context *context, uint8_t port_num,
                          struct ibv_exp_port_attr *attr)
{
    struct ibv_port_attr port;
    int err;

    G_STATIC_ASSERT(offsetof(struct ibv_exp_port_attr_std, link_layer) ==
                    offsetof(struct ibv_port_attr, link_layer));
    err = ibv_query_port(context, port_num, &port);
    if (!err) {
        memcpy(&attr->port_attr, &port, offsetof(struct ibv_exp_port_attr_std, reserved));
        attr->port_attr.reserved = 0;
    }
    return err;
}

/* An entry that is not in use has the type of RoCE v1 and a GID of 0, as in libibverbs. */
static int exp_query_gid_attr(struct ibv_context *context, uint8_t port_num, unsigned int index,
                              struct ibv_exp_gid_attr *attr)
{
    struct ibv_gid_entry entry = {.gid_type = IBV_GID_TYPE_ROCE_V1};
    int err = ibv_query_gid_ex(context, port_num, index, &entry, 0);

    if (err && err != ENODATA) {
        return err;
    }
    if (attr->comp_mask & IBV_EXP_QUERY_GID_ATTR_TYPE) {
        attr->type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? IBV_EXP_ROCE_V2_GID_TYPE
                                                            : IBV_EXP_IB_ROCE_V1_GID_TYPE;
    }
    if (attr->comp_mask & IBV_EXP_QUERY_GID_ATTR_GID) {
        attr->gid = entry.gid;
    }
    return 0;
}

/* -- the clock (mlx5_exp_query_values()) ------------------------------------------------------- */

static int exp_query_clock_info(struct ibv_context *context, struct ibv_exp_clock_info *info)
{
    struct mlx5dv_clock_info dv;

    if (hv_dv_get_clock_info(context, &dv)) {
        return -EINVAL;
    }
    *info = (struct ibv_exp_clock_info){
        .cycles = dv.last_cycles,
        .nsec = dv.nsec,
        .frac = dv.frac,
        .mask = dv.mask,
        .shift = dv.shift,
        .mult = dv.mult,
    };
    return 0;
}

static int exp_query_values(struct ibv_context *context, int q_values,
                            struct ibv_exp_values *values)
{
    const int clock = IBV_EXP_VALUES_HW_CLOCK | IBV_EXP_VALUES_HW_CLOCK_NS;
    struct ibv_values_ex raw = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    int err;

    values->comp_mask = 0;
    if (q_values & IBV_EXP_VALUES_CLOCK_INFO) {
        err = exp_query_clock_info(context, &values->clock_info);
        if (err) {
            return err;
        }
        values->comp_mask |= IBV_EXP_VALUES_CLOCK_INFO;
    }
    if (q_values & clock) {
        err = ibv_query_rt_values_ex(context, &raw);
        if (err) {
            return err;
        }
        values->hwclock = (uint64_t)raw.raw_clock.tv_nsec & INT64_MAX;
        values->hwclock_ns =
            (uint64_t)((unsigned __int128)values->hwclock * hv_clock_mult(context) >>
                       HV_CLOCK_SHIFT);
        values->comp_mask |= (uint32_t)(q_values & clock);
    }
    return 0;
}

/* -- settings of a context --------------------------------------------------------------------- */

/*
 * A private environment begins as a copy of the process's. libmlx5 reads its settings from it
 * (ibv_exp_cmd_getenv()); this library reads MLX5_ settings of the process alone, so the private
 * values are kept, and have no effect.
 */
static struct verbs_env_item *exp_env_find(struct verbs_environment *env, const char *name)
{
    struct verbs_env_item *item = env->head;

    while (item && strcmp(item->name, name) != 0) {
        item = item->next;
    }
    return item;
}

static int exp_env_set(struct verbs_environment *env, const char *name, const char *value,
                       int overwrite)
{
    struct verbs_env_item *item;
    int err = 0;

    pthread_mutex_lock(&env->mtx);
    item = exp_env_find(env, name);
    if (!item) {
        item = g_new0(struct verbs_env_item, 1);
        item->name = g_strdup(name);
        item->value = g_strdup(value);
        item->next = env->head;
        env->head = item;
    } else if (strcmp(item->value, value) != 0 && !overwrite) {
        errno = EEXIST;
        err = -1;
    } else if (strcmp(item->value, value) != 0) {
        g_free(item->value);
        item->value = g_strdup(value);
    }
    pthread_mutex_unlock(&env->mtx);
    return err;
}

static int exp_use_priv_env(struct ibv_context *context)
{
    struct verbs_context_exp *exp = &hv_context(context)->exp;
    g_auto(GStrv) names = NULL;
    struct verbs_environment *env;

    pthread_mutex_lock(&context->mutex);
    if (!exp->venv) {
        env = g_new0(struct verbs_environment, 1);
        pthread_mutex_init(&env->mtx, NULL);
        names = g_listenv();
        for (char **name = names; *name; name++) {
            const char *value = g_getenv(*name);

            exp_env_set(env, *name, value ? value : "", 0);
        }
        exp->venv = env;
    }
    pthread_mutex_unlock(&context->mutex);
    return 0;
}

static int exp_setenv(struct ibv_context *context, const char *name, const char *value,
                      int overwrite)
{
    struct verbs_environment *env = hv_context(context)->exp.venv;

    return env ? exp_env_set(env, name, value, overwrite) : setenv(name, value, overwrite);
}

void hv_exp_env_free(struct verbs_context_exp *exp)
{
    struct verbs_env_item *item = exp->venv ? exp->venv->head : NULL;

    while (item) {
        struct verbs_env_item *next = item->next;

        g_free(item->name);
        g_free(item->value);
        g_free(item);
        item = next;
    }
    if (exp->venv) {
        pthread_mutex_destroy(&exp->venv->mtx);
        g_clear_pointer(&exp->venv, g_free);
    }
}

void hv_exp_port_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_query_port = exp_query_port;
    ops->lib_exp_query_port = exp_query_port;
    ops->exp_query_gid_attr = exp_query_gid_attr;
    ops->drv_exp_query_values = exp_query_values;
    ops->lib_exp_use_priv_env = exp_use_priv_env;
    ops->lib_exp_setenv = exp_setenv;
}
