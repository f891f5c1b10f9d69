/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One queue of a stand-in GPU (tests/verbs/gpu_poster.h) in a simulation, and the model of its
 * operations. The stores of all queues of a GPU mix, as the job's stream of chance decides. Stores
 * of a queue between two fences take effect in any order. Some take effect before the HCA looks at
 * the doorbell page again. So the HCA sees a doorbell before its record, doorbells that have
 * replaced others, and WQEs that are half written.
 *
 * The model: each operation takes effect once and in order; its CQE is there after its data; the
 * index in a collapsed CQ never goes back; after the first failed operation all others are flushed;
 * everything ends. Now and then the host moves the queue to the error state, or destroys it, while
 * the GPU posts. Then operations that were under way have taken effect, in part, or not.
 */
#ifndef HCASIM_TESTS_GPU_LANE_H
#define HCASIM_TESTS_GPU_LANE_H

#include "tests/sim/fabric/sim.h"
#include "tests/verbs/gpu_queues.h"

#define GPU_LANES  4u    /* of a job */
#define GPU_SLOTS  8u    /* pieces of the target's memory of a lane */
#define GPU_WINDOW 16u   /* operations that are outstanding at a time */
#define GPU_LEN    4096u /* bytes of a slot */

/* The words of a lane's atomics at its target: of 8 bytes, and of 4; and the word that the lanes of
 * a direction share. */
enum gpu_word {
    GPU_WORD_8,
    GPU_WORD_4,
    GPU_WORD_SHARED,
    GPU_WORDS,
};

struct gpu_store {
    void *at; /* NULL: a fence */
    uint64_t value;
    unsigned size;
};

struct gpu_lane;

/* The lanes of one GPU, whose stores mix. Zeroed at first. */
struct gpu_warps {
    struct job *job;
    struct gpu_lane *lane[GPU_LANES];
    unsigned num;
    bool due; /* the next stores have their time */
};

struct gpu_lane_op {
    enum gpu_what what;
    uint16_t index; /* of its WQE */
    bool unsignaled;
    bool dead;  /* it must fail, or is behind an operation that must */
    bool maybe; /* it may have taken effect */
    unsigned slot;
    uint32_t at, len; /* WRITE and READ: bytes of the slot */
    enum gpu_word word;
    uint64_t found, after; /* an atomic: the word before and after it */
};

enum gpu_state {
    GPU_RUNS,
    GPU_DRAINS,   /* the GPU stops; the rest is flushed */
    GPU_IS_QUIET, /* until quiet_ns */
};

struct gpu_lane {
    struct job *job;
    unsigned number;
    struct sim_host *from, *to;
    struct gpu_queue q;
    struct gpu_target t;
    struct gpu_queue_attr attr;
    enum gpu_state state;
    uint64_t quiet_ns;
    bool doomed; /* an operation that must fail is posted */
    bool broken; /* an operation has failed */
    bool ended;  /* the host has moved the queue to the error state, or destroyed it */
    bool destroyed;
    GArray *stores; /* struct gpu_store, from next on not yet made */
    guint next;
    struct gpu_warps *warps;
    uint64_t posted, done, limit;
    unsigned num_failed; /* how many of the done operations have not succeeded: the last ones */
    unsigned silent;     /* how many of the last operations are unsignaled */
    struct gpu_lane_op ops[GPU_WINDOW];
    uint32_t len; /* bytes of a slot that are used */
    unsigned window;
    enum ibv_mtu mtu; /* a DC target keeps its own */
    /* Near: a piece for each outstanding operation, and a word for the result of an atomic. Far:
     * slots, and words. */
    struct span near, far;
    uint64_t *shared; /* the word of all lanes of this direction */
    uint32_t shared_key;
    /* The slots after all completed operations, and after all posted ones; likewise the words, of
     * which the shared one counts the lane's own additions. */
    uint8_t *sure, *planned;
    uint8_t *want; /* the bytes that each READ must bring */
    uint64_t word_sure[GPU_WORDS], word[GPU_WORDS];
};

/* attr: what the queue is like. shared: the word of all lanes of this direction, at the target. */
void gpu_lane_init(struct gpu_lane *lane, struct job *job, unsigned number,
                   const struct gpu_queue_attr *attr, struct gpu_warps *warps,
                   struct sim_host *from, struct sim_host *to, const struct span *shared);
bool gpu_lane_step(struct gpu_lane *lane);
bool gpu_lane_is_done(const struct gpu_lane *lane);
/* Returns the lane's part of the shared word, which is the sum of those of all lanes. */
uint64_t gpu_lane_shared(const struct gpu_lane *lane);
void gpu_lane_check(const struct gpu_lane *lane);
void gpu_lane_free(struct gpu_lane *lane);

#endif
