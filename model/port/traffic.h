/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts frames and their bytes by the class of their destination, for the counters of ports and
 * vports. */
#ifndef HCASIM_MODEL_TRAFFIC_H
#define HCASIM_MODEL_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum frame_class {
    FRAME_UNICAST,
    FRAME_MULTICAST,
    FRAME_BROADCAST,
    FRAME_CLASSES
};

struct traffic {
    uint64_t frames[FRAME_CLASSES], bytes[FRAME_CLASSES]; /* without FCS */
};

static inline bool mac_is_group(const uint8_t mac[6])
{
    return mac[0] & 1;
}

static inline bool mac_is_broadcast(const uint8_t mac[6])
{
    static const uint8_t ones[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    return memcmp(mac, ones, 6) == 0;
}

static inline enum frame_class frame_class(const uint8_t dmac[6])
{
    if (!mac_is_group(dmac)) {
        return FRAME_UNICAST;
    }
    return mac_is_broadcast(dmac) ? FRAME_BROADCAST : FRAME_MULTICAST;
}

static inline void traffic_count(struct traffic *t, enum frame_class class, size_t len)
{
    t->frames[class]++;
    t->bytes[class] += len;
}

static inline uint64_t traffic_frames(const struct traffic *t)
{
    return t->frames[FRAME_UNICAST] + t->frames[FRAME_MULTICAST] + t->frames[FRAME_BROADCAST];
}

static inline uint64_t traffic_bytes(const struct traffic *t)
{
    return t->bytes[FRAME_UNICAST] + t->bytes[FRAME_MULTICAST] + t->bytes[FRAME_BROADCAST];
}

#endif
