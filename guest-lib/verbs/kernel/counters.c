/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of flows (ibv_create_counters()). A program attaches what is counted to the places of an
 * array, before the first flow has the counters (IBV_FLOW_SPEC_ACTION_COUNT). libmlx5 and mlx5_ib
 * share this work: mlx5_attach_counters_point_flow(), flow_counters_set_data(),
 * mlx5_ib_read_counters().
 *
 * The device's counter is made for the first flow and ends with the object, so that it goes on
 * where it was if another flow gets the object.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/flow.h"

#define MOST_ATTACHED 64 /* as many as the kernel takes (MAX_COUNTERS_NUM) */

struct attachment {
    enum ibv_counter_description what;
    uint32_t index;
};

struct hv_counters {
    struct ibv_counters ibv;
    uint32_t handle;
    gint flows;           /* number of flows that have it */
    pthread_mutex_t lock; /* around the members below */
    unsigned num;         /* of attachments; those beyond the array are counted alone */
    struct attachment attached[MOST_ATTACHED];
    bool has_id;
    uint32_t id; /* of the device's counter */
};

static struct ibv_counters *create_counters(struct ibv_context *ctx,
                                            struct ibv_counters_init_attr *attr)
{
    struct hv_counters *counters;
    int err = attr->comp_mask ? EOPNOTSUPP : hv_check_there(hv_hca_of(ctx));

    if (err) {
        errno = err;
        return NULL;
    }
    counters = g_new0(struct hv_counters, 1);
    counters->ibv.context = ctx;
    pthread_mutex_init(&counters->lock, NULL);
    counters->handle = hv_handle_add(ctx, HV_HANDLE_COUNTERS, counters);
    return &counters->ibv;
}

/* The structure stays. */
int uverbs_destroy_counters(struct hv_counters *counters)
{
    struct hv_hca *hca = hv_hca_of(counters->ibv.context);
    struct prm_dealloc_flow_counter_in in[1] = {0};
    int err = 0;

    if (g_atomic_int_get(&counters->flows)) {
        return EBUSY;
    }
    if (counters->has_id) {
        PRM_SET(dealloc_flow_counter_in, in, opcode, PRM_CMD_OP_DEALLOC_FLOW_COUNTER);
        PRM_SET(dealloc_flow_counter_in, in, flow_counter_id, counters->id);
        err = hv_cmd_simple(hca, in, sizeof(in));
    }
    if (!err) {
        counters->has_id = false;
        hv_handle_del(counters->ibv.context, counters->handle);
    }
    return err;
}

static int destroy_counters(struct ibv_counters *ibv)
{
    struct hv_counters *counters = (struct hv_counters *)ibv;
    int err = hv_handle_check(ibv->context, HV_HANDLE_COUNTERS, counters->handle, counters);

    err = hv_kernel(err ? err : uverbs_destroy_counters(counters));
    if (!err) {
        pthread_mutex_destroy(&counters->lock);
        g_free(counters);
    }
    return err;
}

/* Flows are named when they are created, not here. */
static int attach_counters(struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr,
                           struct ibv_flow *flow)
{
    struct hv_counters *counters = (struct hv_counters *)ibv;
    int err = 0;

    if (flow || attr->comp_mask || attr->counter_desc > IBV_COUNTER_BYTES) {
        return hv_refuse(hv_hca_of(ibv->context), EOPNOTSUPP,
                         "attach_counters_point_flow: flow must be NULL, counter_desc "
                         "IBV_COUNTER_PACKETS or IBV_COUNTER_BYTES");
    }
    pthread_mutex_lock(&counters->lock);
    if (g_atomic_int_get(&counters->flows)) {
        err = EBUSY;
    } else if (counters->num++ < MOST_ATTACHED) {
        counters->attached[counters->num - 1] =
            (struct attachment){attr->counter_desc, attr->index};
    }
    pthread_mutex_unlock(&counters->lock);
    return err;
}

/* -- flows ------------------------------------------------------------------------------------- */

/* Takes a counter of the device, if the object has none. Under the lock. */
static int counters_take_id(struct hv_counters *counters)
{
    struct prm_alloc_flow_counter_in in[1] = {0};
    struct prm_alloc_flow_counter_out out[1] = {0};
    int err;

    if (counters->has_id) {
        return 0;
    }
    PRM_SET(alloc_flow_counter_in, in, opcode, PRM_CMD_OP_ALLOC_FLOW_COUNTER);
    err = hv_cmd(hv_hca_of(counters->ibv.context), in, sizeof(in), out, sizeof(out));
    counters->has_id = !err;
    counters->id = PRM_GET(alloc_flow_counter_out, out, flow_counter_id);
    return err;
}

int hv_counters_take(struct hv_flow_rule *rule, struct ibv_counters *ibv)
{
    struct hv_counters *counters = (struct hv_counters *)ibv;
    int err;

    if (rule->action & PRM_FLOW_ACTION_COUNT) {
        return EINVAL;
    }
    err = hv_handle_check(ibv->context, HV_HANDLE_COUNTERS, counters->handle, counters);
    if (err) {
        return err;
    }
    pthread_mutex_lock(&counters->lock);
    if (!counters->num || counters->num > MOST_ATTACHED) {
        err = hv_refuse(hv_hca_of(ibv->context), EINVAL,
                        "create_flow: the counters have %u attachments; 1 to %u are allowed",
                        counters->num, MOST_ATTACHED);
    }
    err = err ? err : counters_take_id(counters);
    pthread_mutex_unlock(&counters->lock);
    if (!err) {
        rule->action |= PRM_FLOW_ACTION_COUNT;
        rule->counter = counters->id;
        rule->users[rule->num_users++] = &counters->flows;
    }
    return err;
}

/* -- values ------------------------------------------------------------------------------------ */

/* Both values are read at once. */
static int counters_query(struct hv_counters *counters, uint64_t values[2])
{
    struct prm_query_flow_counter_in in[1] = {0};
    struct {
        struct prm_query_flow_counter_out head[1];
        struct prm_traffic_counter value[1];
    } out = {0};
    int err;

    PRM_SET(query_flow_counter_in, in, opcode, PRM_CMD_OP_QUERY_FLOW_COUNTER);
    PRM_SET(query_flow_counter_in, in, flow_counter_id, counters->id);
    err = hv_cmd(hv_hca_of(counters->ibv.context), in, sizeof(in), &out, sizeof(out));
    values[IBV_COUNTER_PACKETS] = PRM_GET(traffic_counter, out.value, packets);
    values[IBV_COUNTER_BYTES] = PRM_GET(traffic_counter, out.value, octets);
    return err;
}

/* Values of the same place are added up. The device's counter is always read, so that nothing is
 * older than a program permits (IBV_READ_COUNTERS_ATTR_PREFER_CACHED). */
static int counters_read_locked(struct hv_counters *counters, uint64_t *values, uint32_t num)
{
    uint64_t read[2];
    int err;

    for (unsigned i = 0; i < counters->num; i++) {
        if (counters->attached[i].index >= num) {
            return hv_refuse(hv_hca_of(counters->ibv.context), EINVAL,
                             "read_counters: %u values, but index %u is attached", num,
                             counters->attached[i].index);
        }
    }
    err = counters_query(counters, read);
    if (err) {
        return err;
    }
    memset(values, 0, num * sizeof(*values));
    for (unsigned i = 0; i < counters->num; i++) {
        values[counters->attached[i].index] += read[counters->attached[i].what];
    }
    return 0;
}

static int read_counters(struct ibv_counters *ibv, uint64_t *values, uint32_t num, uint32_t flags)
{
    struct hv_counters *counters = (struct hv_counters *)ibv;
    int err = hv_handle_check(ibv->context, HV_HANDLE_COUNTERS, counters->handle, counters);

    if (!err && (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED ||
                 !g_atomic_int_get(&counters->flows))) {
        err = hv_refuse(hv_hca_of(ibv->context), EINVAL,
                        "read_counters: no flow has the counters, or flags are 0x%x", flags);
    }
    if (!err) {
        pthread_mutex_lock(&counters->lock);
        err = counters_read_locked(counters, values, num);
        pthread_mutex_unlock(&counters->lock);
    }
    return hv_kernel(err);
}

void hv_counters_ops(struct verbs_context *ops)
{
    ops->create_counters = create_counters;
    ops->destroy_counters = destroy_counters;
    ops->attach_counters_point_flow = attach_counters;
    ops->read_counters = read_counters;
}
