/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds doorbells without a record that were lost: see unheard.h. */
#include "guest-lib/verbs/kernel/unheard.h"
#include <glib.h>
#include <string.h>
#include "guest-lib/host/reach.h"
#include "prm/prm.h"

#define BB_BYTES 64u
#define LOOK_BBS 64u /* basic blocks of the ring that are read at a time */

struct look {
    unsigned num; /* basic blocks */
    uint8_t bytes[LOOK_BBS * BB_BYTES];
};

/* Reads the ring from a basic block on. False: it does not answer. */
static bool unheard_read(struct unheard *queue, uint16_t index, struct look *look)
{
    unsigned size = 1u << queue->log_size, at = index & (size - 1), run;

    look->num = MIN(LOOK_BBS, size);
    run = MIN(look->num, size - at);
    if (queue->ring &&
        reach_read(queue->ring + at * BB_BYTES, look->bytes, (size_t)run * BB_BYTES) &&
        (run == look->num || reach_read(queue->ring, look->bytes + (size_t)run * BB_BYTES,
                                        (size_t)(look->num - run) * BB_BYTES))) {
        return true;
    }
    queue->ring = 0;
    return false;
}

/* The number of basic blocks of the WQE there, if it is this queue's with this index; else 0. */
static unsigned unheard_wqe(const struct unheard *queue, const struct look *look, unsigned at,
                            uint16_t index)
{
    const struct prm_wqe_ctrl_seg *ctrl = (const void *)(look->bytes + (size_t)at * BB_BYTES);
    unsigned num = (PRM_GET(wqe_ctrl_seg, ctrl, ds) * 16 + BB_BYTES - 1) / BB_BYTES;

    return PRM_GET(wqe_ctrl_seg, ctrl, wqe_index) == index &&
                   PRM_GET(wqe_ctrl_seg, ctrl, qpn) == queue->qpn && num <= look->num - at
               ? num
               : 0;
}

void unheard_begin(struct unheard *queue)
{
    struct look look;

    queue->told = queue->end = 0;
    queue->posted = queue->old = 0;
    queue->look_ns = UINT64_MAX;
    for (unsigned first = 0; first < 1u << queue->log_size; first += look.num) {
        if (!unheard_read(queue, (uint16_t)first, &look)) {
            return;
        }
        for (unsigned i = 0; i < look.num; i++) {
            if (unheard_wqe(queue, &look, i, (uint16_t)(first + i))) {
                queue->old = first + i + 1;
            }
        }
    }
}

void unheard_tell(struct unheard *queue, uint16_t counter, uint64_t now_ns)
{
    uint16_t more = (uint16_t)(counter - queue->told);

    if (more <= 1u << queue->log_size) {
        queue->told = queue->end = counter;
        queue->posted = MIN(queue->posted + more, queue->old);
    }
    if (queue->ring && queue->posted == queue->old) {
        queue->look_ns = MIN(queue->look_ns, now_ns + UNHEARD_NS);
    }
}

bool unheard_look(struct unheard *queue, uint64_t now_ns)
{
    struct look look;
    uint64_t digest = 0xcbf29ce484222325; /* FNV-1a */
    unsigned num = 0, more;
    uint16_t end;

    if (now_ns < queue->look_ns || !unheard_read(queue, queue->told, &look)) {
        return false;
    }
    while (num < look.num &&
           (more = unheard_wqe(queue, &look, num, (uint16_t)(queue->told + num)))) {
        num += more;
    }
    for (size_t i = 0; i < num * BB_BYTES; i++) {
        digest = (digest ^ look.bytes[i]) * 0x100000001b3;
    }
    end = (uint16_t)(queue->told + num);
    queue->look_ns = num ? now_ns + UNHEARD_NS : UINT64_MAX;
    if (num && queue->end == end && queue->digest == digest) {
        queue->told = end;
        return true;
    }
    queue->end = end;
    queue->digest = digest;
    return false;
}
