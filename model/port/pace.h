/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet pacing: a function's table of rates, and the gate that holds a send queue to one of them.
 *
 * A rate has an index, which the context of a send queue names. Queues that name the same index
 * share the number, not the bandwidth: each queue is held to the rate by itself, as on a card (the
 * driver's commit "Rate limit tables support"). Index 0 is no rate, and a rate of 0 holds nothing:
 * drivers clear an entry while queues still name it (mlx5e_set_sq_maxrate()).
 */
#ifndef HCASIM_MODEL_PACE_H
#define HCASIM_MODEL_PACE_H

#include "model/core/bucket.h"
#include "model/core/hca.h"

/* packet_pacing_rate_table_size, _min_rate and _max_rate, as published outputs show them of a
 * ConnectX-5 ("127 rates are supported", qp_rate_limit_min 1kbps, qp_rate_limit_max
 * 100000000kbps). */
#define PACE_RATES    128
#define PACE_MIN_KBPS 1
#define PACE_MAX_KBPS 100000000

struct pace_rate {
    uint32_t kbps;    /* 0: none */
    uint32_t burst;   /* bytes that may leave at once after a pause; 0: one frame */
    uint16_t typical; /* usual bytes of a frame; 0: not known */
    uint16_t uid;     /* the user context whose queues may name it */
};

/* SET_PP_RATE_LIMIT: sets the rate of an index, or ends it (kbps 0). Queues that name the index
 * follow, those that wait within PACE_LOOK_NS. */
enum syn pace_set(struct hca *hca, unsigned index, const struct pace_rate *rate);
/* The rate that a queue of the user context may name; index 0 is NULL, no rate. */
enum syn pace_find(struct hca *hca, uint16_t uid, unsigned index, const struct pace_rate **rate);
/* Ends all rates of a user context that ends. */
void pace_forget(struct hca *hca, uint16_t uid);
/* Ends all rates; no queue is left. */
void pace_reset(struct hca *hca);

/*
 * The gate of a send queue. While it is shut, the queue's work does nothing; the gate runs the work
 * again, by its timer. A queue that ends, fails or is reset shuts the gate down (pace_stop()), and
 * the wait with it.
 */
struct pace {
    const struct pace_rate *rate; /* NULL: no rate */
    struct work *work;
    struct bucket bucket;
    bool waits; /* a frame waits: for the timer, or for what else it needs when its time has come */
    struct hca_timer timer;
};

/* Sets the rate of a queue, whose work sends its frames. The queue owes nothing. */
void pace_start(struct hca *hca, struct pace *pace, const struct pace_rate *rate,
                struct work *work);
/* The queue does not send any more, or begins anew. */
void pace_stop(struct hca *hca, struct pace *pace);

bool pace_is_time(struct hca *hca, struct pace *pace);
/* A frame of the queue was sent: its bytes from the Ethernet header, without FCS. */
static inline void pace_note_sent(struct pace *pace, size_t bytes)
{
    if (G_UNLIKELY(pace->rate)) {
        pace->waits = false;
        pace->bucket.debt += bucket_cost(bytes);
    }
}

/* Called before each frame. False: not yet; the queue's work runs when it may. */
static inline bool pace_may_send(struct hca *hca, struct pace *pace)
{
    return G_LIKELY(!pace->rate) || pace_is_time(hca, pace);
}

#endif
