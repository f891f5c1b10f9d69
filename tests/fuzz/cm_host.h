/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host functions of a connection manager in fuzz targets: time passes when the target says so,
 * and numbers are the same in each run. The target handles what is sent.
 */
#ifndef HCASIM_TESTS_FUZZ_CM_HOST_H
#define HCASIM_TESTS_FUZZ_CM_HOST_H

#include "guest-lib/cm/cm.h"

#define SECOND 1000000000ull

static uint64_t now_ns;

static inline uint64_t fuzz_now(void *opaque)
{
    return now_ns;
}

static inline uint32_t fuzz_random(void *opaque)
{
    return 0x1000;
}

static inline uint64_t fuzz_guid(void *opaque, unsigned port)
{
    return 1;
}

static bool all_ended; /* hosts */

static inline uint64_t fuzz_host_at(void *opaque, const struct cm_av *av)
{
    return 1;
}

static inline bool fuzz_has_ended(void *opaque, unsigned port, uint64_t host)
{
    return all_ended;
}

/* The host, with the target's own cm_ops.send. */
#define CM_HOST(send)                                                                              \
    {                                                                                              \
        send, fuzz_now, fuzz_random, fuzz_guid, fuzz_host_at, fuzz_has_ended                       \
    }

#endif
