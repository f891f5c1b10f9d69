/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's clock, which a program reads by itself (mlx5_query_rt_values()), and its relation to
 * real time.
 */
#include <time.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/user.h"

static int clock_query_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    struct hv_hca *hca = hv_hca_of(context);
    size_t high = PRM_OFFSET(initial_seg, internal_timer_h);
    uint32_t h, l, again;

    if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)) {
        return EINVAL;
    }
    do {
        h = hv_iseg_read(hca, high);
        l = hv_iseg_read(hca, high + 4);
        again = hv_iseg_read(hca, high);
    } while (h != again);
    values->raw_clock.tv_sec = 0;
    values->raw_clock.tv_nsec = (long)((uint64_t)h << 32 | l);
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
}

void hv_clock_ops(struct verbs_context *ops)
{
    ops->query_rt_values = clock_query_values;
}

/* The number of bits of the clock's registers that programs see (mlx5_core's cycle counter). */
#define CLOCK_BITS 41

uint32_t hv_clock_mult(struct ibv_context *ctx)
{
    uint32_t khz = HV_CAP(hv_hca_of(ctx), device_frequency_khz);

    return khz ? (uint32_t)((1000000ull << HV_CLOCK_SHIFT) / khz) : 0;
}

/*
 * The clock as mlx5_core would publish it at this moment. The device's timer runs with the host's
 * monotonic clock, so real time is the timer plus an offset. The offset is taken once, so times
 * within a process never go back.
 */
int hv_dv_get_clock_info(struct ibv_context *ctx, struct mlx5dv_clock_info *info)
{
    static uint64_t real_at_zero; /* 0: not taken yet; the first caller takes it for all */
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    uint32_t khz = HV_CAP(hv_hca_of(ctx), device_frequency_khz);
    struct timespec now;
    uint64_t cycles, ns, offset = __atomic_load_n(&real_at_zero, __ATOMIC_RELAXED);

    if (!khz || ibv_query_rt_values_ex(ctx, &values)) {
        return EINVAL;
    }
    cycles = (uint64_t)values.raw_clock.tv_sec * 1000000000u + (uint64_t)values.raw_clock.tv_nsec;
    ns = (uint64_t)((unsigned __int128)cycles * 1000000u / khz);
    if (!offset) {
        uint64_t taken;

        clock_gettime(CLOCK_REALTIME, &now);
        taken = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - ns;
        if (__atomic_compare_exchange_n(&real_at_zero, &offset, taken, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            offset = taken;
        }
    }
    info->nsec = offset + ns;
    info->mask = (1ull << CLOCK_BITS) - 1;
    info->last_cycles = cycles & info->mask;
    info->frac = 0;
    info->mult = hv_clock_mult(ctx);
    info->shift = HV_CLOCK_SHIFT;
    return 0;
}
