/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of an HCA's rates, as mlx5_core keeps it (rl.c): index 0 is no limit, and each other
 * index is free or has a rate with users. mlx5dv_pp_alloc() gives a program an index for its own
 * queues.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/rate.h"
#include "guest-lib/verbs/kernel/uverbs.h"

struct hv_rate_entry {
    struct prm_set_pp_rate_limit_context ctx[1];
    uint16_t uid;
    unsigned users; /* 0: the entry is free */
};

int hv_rate_check(struct hv_hca *hca, const struct hv_rate *rate)
{
    if ((rate->burst || rate->typical) && !rate->kbps) {
        return hv_refuse(hca, EINVAL,
                         "rate limit: max_burst_sz and typical_pkt_sz need a rate_limit");
    }
    if ((rate->burst && !HV_QOS_CAP(hca, packet_pacing_burst_bound)) ||
        (rate->typical && !HV_QOS_CAP(hca, packet_pacing_typical_size))) {
        return hv_refuse(hca, EINVAL,
                         "rate limit: the device takes no max_burst_sz and typical_pkt_sz");
    }
    return 0;
}

static unsigned rate_table_size(struct hv_hca *hca)
{
    return HV_QOS_CAP(hca, packet_pacing) ? HV_QOS_CAP(hca, packet_pacing_rate_table_size) : 0;
}

/* The index of an entry that has the rate already, or else of a free one. 0: there is neither. A
 * dedicated entry has the number of its user (uid), and the others HV_UID_SHARED. */
static unsigned rate_find(struct hv_hca *hca, const struct prm_set_pp_rate_limit_context *ctx,
                          uint16_t uid, bool dedicated)
{
    unsigned vacant = 0;

    for (unsigned i = rate_table_size(hca) - 1; i > 0; i--) {
        const struct hv_rate_entry *entry = &hca->rates[i];

        if (!entry->users) {
            vacant = i;
        } else if (!dedicated && entry->uid == uid && memcmp(entry->ctx, ctx, sizeof(*ctx)) == 0) {
            return i;
        }
    }
    return vacant;
}

/* Sets the rate of an index, or ends it (ctx is zero): 0 or errno. */
static int rate_tell(struct hv_hca *hca, unsigned index, uint16_t uid,
                     const struct prm_set_pp_rate_limit_context *ctx)
{
    struct prm_set_pp_rate_limit_in in[1] = {0};

    PRM_SET(set_pp_rate_limit_in, in, opcode, PRM_CMD_OP_SET_PP_RATE_LIMIT);
    PRM_SET(set_pp_rate_limit_in, in, uid, uid);
    PRM_SET(set_pp_rate_limit_in, in, rate_limit_index, index);
    memcpy(PRM_PTR(set_pp_rate_limit_in, in, ctx), ctx, sizeof(*ctx));
    return hv_cmd_simple(hca, in, sizeof(in));
}

/* Under the lock. */
static int rate_use(struct hv_hca *hca, const struct prm_set_pp_rate_limit_context *ctx,
                    uint16_t uid, bool dedicated, uint16_t *index)
{
    unsigned i = rate_find(hca, ctx, uid, dedicated);
    struct hv_rate_entry *entry = &hca->rates[i];
    int err;

    if (!i) {
        return hv_refuse(hca, ENOSPC, "rate limit: all %u rates of the device are in use; end one",
                         rate_table_size(hca) - 1);
    }
    if (!entry->users) {
        err = rate_tell(hca, i, uid, ctx);
        if (err) {
            return err;
        }
        *entry = (struct hv_rate_entry){.uid = uid};
        *entry->ctx = *ctx;
    }
    entry->users++;
    *index = (uint16_t)i;
    return 0;
}

int hv_rate_add(struct hv_hca *hca, const struct prm_set_pp_rate_limit_context *ctx, uint16_t uid,
                bool dedicated, uint16_t *index)
{
    uint32_t kbps = PRM_GET(set_pp_rate_limit_context, ctx, rate_limit);
    uint32_t least = HV_QOS_CAP(hca, packet_pacing_min_rate);
    uint32_t most = HV_QOS_CAP(hca, packet_pacing_max_rate);
    int err;

    if (!rate_table_size(hca)) {
        return hv_refuse(hca, EOPNOTSUPP, "rate limit: the device paces no packets");
    }
    if (!kbps || kbps < least || kbps > most) {
        return hv_refuse(hca, EINVAL, "rate limit: %u kb/s; the device allows %u to %u", kbps,
                         least, most);
    }
    pthread_mutex_lock(&hca->rate_lock);
    if (!hca->rates) {
        hca->rates = g_new0(struct hv_rate_entry, rate_table_size(hca));
    }
    err = rate_use(hca, ctx, uid, dedicated, index);
    pthread_mutex_unlock(&hca->rate_lock);
    return err;
}

void hv_rate_remove(struct hv_hca *hca, uint16_t index)
{
    static const struct prm_set_pp_rate_limit_context none[1];

    if (!index) {
        return;
    }
    pthread_mutex_lock(&hca->rate_lock);
    if (--hca->rates[index].users == 0) {
        rate_tell(hca, index, hca->rates[index].uid, none); /* fails if the device is lost */
    }
    pthread_mutex_unlock(&hca->rate_lock);
}

/* -- rates of a program ------------------------------------------------------------------------ */

/* As MLX5_IB_METHOD_PP_OBJ_ALLOC: 0 or errno. A driver has the method only if the device has what
 * it needs. */
static int rate_alloc_pp(struct hv_dv_pp *pp, size_t size, const void *bytes, bool dedicated)
{
    struct prm_set_pp_rate_limit_context ctx[1] = {0};
    struct hv_context *context = hv_context(pp->context);
    int err = hv_check_there(context->hca);

    if (err) {
        return err;
    }
    if (!HV_QOS_CAP(context->hca, packet_pacing) || !HV_QOS_CAP(context->hca, packet_pacing_uid)) {
        return EPROTONOSUPPORT;
    }
    if (!size || size > sizeof(ctx)) {
        return hv_refuse(context->hca, EINVAL,
                         "pp_alloc: the rate has %zu bytes; it may have 1 to %zu", size,
                         sizeof(ctx));
    }
    memcpy(ctx, bytes, size);
    err = hv_rate_add(context->hca, ctx, dedicated ? context->uid : HV_UID_SHARED, dedicated,
                      &pp->dv.index);
    if (!err) {
        pp->handle = hv_handle_add(pp->context, HV_HANDLE_PP, pp);
    }
    return err;
}

struct mlx5dv_pp *hv_dv_pp_alloc(struct ibv_context *ctx, size_t size, const void *pp_context,
                                 uint32_t flags)
{
    const uint32_t dedicated = MLX5_IB_UAPI_PP_ALLOC_FLAGS_DEDICATED_INDEX;
    struct hv_dv_pp *pp;

    if (flags & ~dedicated) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    pp = calloc(1, sizeof(*pp));
    if (!pp) {
        errno = ENOMEM;
        return NULL;
    }
    pp->context = ctx;
    if (hv_kernel(rate_alloc_pp(pp, size, pp_context, flags & dedicated))) {
        free(pp);
        return NULL;
    }
    return &pp->dv;
}

int uverbs_free_pp(struct hv_dv_pp *pp)
{
    hv_handle_del(pp->context, pp->handle);
    hv_rate_remove(hv_hca_of(pp->context), pp->dv.index);
    return 0;
}

void hv_dv_pp_free(struct mlx5dv_pp *dv)
{
    struct hv_dv_pp *pp = DV_CONTAINER(dv, struct hv_dv_pp);

    if (!hv_kernel(hv_handle_check(pp->context, HV_HANDLE_PP, pp->handle, pp))) {
        uverbs_free_pp(pp);
        free(pp);
    }
}
