/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Register of the real-time clock, MTUTC (driver: lib/clock.c). Which cards have such a clock:
 * fw/profile.c.
 */
#include <stdlib.h>
#include "fw/regs.h"
#include "model/core/real_time.h"

enum {
    MTUTC_MAX_SHIFT_NS = 200000, /* the driver's extended range of time_adjustment */
    /* The most that the driver asks for, ptp_clock_info.max_adj, in 10^-9 and in 2^-16 of 10^-6. */
    MTUTC_MAX_PPB = 50000000,
    MTUTC_MAX_SCALED_PPM = MTUTC_MAX_PPB / 1000 * 65536ll,
};

static enum syn regs_mtutc_query(struct fw *fw, const void *in, void *out)
{
    const struct real_time *clock = fw->hca.real_time;
    uint64_t ns;

    (void)in;
    if (!fw->hca.limits.real_time) {
        return SYN_OK; /* time_stamp_mode: the free-running timer */
    }
    ns = real_time_ns(clock, hca_now(&fw->hca));
    PRM_SET(mtutc_reg, out, time_stamp_mode, PRM_MTUTC_MODE_REAL_TIME);
    PRM_SET(mtutc_reg, out, freq_adj_units, PRM_MTUTC_UNIT_SCALED_PPM);
    PRM_SET(mtutc_reg, out, freq_adjustment, (uint32_t)clock->tuned);
    PRM_SET(mtutc_reg, out, utc_sec, (uint32_t)(ns / REAL_TIME_SECOND));
    PRM_SET(mtutc_reg, out, utc_nsec, (uint32_t)(ns % REAL_TIME_SECOND));
    return SYN_OK;
}

static enum syn regs_mtutc_tune(struct real_time *clock, uint64_t now, const void *in)
{
    int64_t change = (int32_t)PRM_GET(mtutc_reg, in, freq_adjustment);

    switch (PRM_GET(mtutc_reg, in, freq_adj_units)) {
    case PRM_MTUTC_UNIT_PPB:
        change = change * 65536 / 1000;
        break;
    case PRM_MTUTC_UNIT_SCALED_PPM:
        break;
    default:
        return SYN_REG_VALUE;
    }
    if (llabs(change) > MTUTC_MAX_SCALED_PPM) {
        return SYN_REG_VALUE;
    }
    real_time_tune(clock, now, (int32_t)change);
    return SYN_OK;
}

static enum syn regs_mtutc_write(struct fw *fw, const void *in, void *out)
{
    struct real_time *clock = fw->hca.real_time;
    uint64_t now = hca_now(&fw->hca);
    int32_t shift = (int32_t)PRM_GET(mtutc_reg, in, time_adjustment);

    (void)out;
    if (!fw->hca.limits.real_time) {
        return SYN_REG_ACCESS;
    }
    switch (PRM_GET(mtutc_reg, in, operation)) {
    case PRM_MTUTC_OPERATION_SET_TIME_IMMEDIATE:
        if (PRM_GET(mtutc_reg, in, utc_nsec) > REAL_TIME_SECOND) { /* the driver's bound */
            return SYN_REG_VALUE;
        }
        real_time_set(clock, now,
                      (uint64_t)PRM_GET(mtutc_reg, in, utc_sec) * REAL_TIME_SECOND +
                          PRM_GET(mtutc_reg, in, utc_nsec));
        return SYN_OK;
    case PRM_MTUTC_OPERATION_ADJUST_TIME:
        if (shift > MTUTC_MAX_SHIFT_NS || shift < -MTUTC_MAX_SHIFT_NS) {
            return SYN_REG_VALUE;
        }
        real_time_set(clock, now, real_time_ns(clock, now) + (uint64_t)(int64_t)shift);
        return SYN_OK;
    case PRM_MTUTC_OPERATION_ADJUST_FREQ_UTC:
        return regs_mtutc_tune(clock, now, in);
    default:
        return SYN_REG_VALUE;
    }
}

const struct fw_reg regs_clock[] = {
    {PRM_REG_ID_MTUTC, PRM_SIZE(mtutc_reg), false, regs_mtutc_query, regs_mtutc_write},
    {0},
};
