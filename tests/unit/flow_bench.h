/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues that always have frames to send, on a clock that goes from one timer of the HCA to
 * the next: for tests of rates and shares.
 */
#ifndef HCASIM_TESTS_FLOW_BENCH_H
#define HCASIM_TESTS_FLOW_BENCH_H

#include "tests/unit/eth_bench.h"

#define FLOW_MS 1000000ull
#define FLOW_S  1000000000ull

struct flow {
    struct bench_queue sq;
    struct bench_wr wr;
    uint8_t headers[128]; /* of messages */
    unsigned wqe_blocks;
    uint64_t wqe_bytes; /* what a WQE puts on the wire */
    unsigned posted;    /* WQEs that have not completed */
    bool stopped;       /* posts no more */
    uint64_t sent;      /* bytes of completed WQEs */
};

/* A queue that sends frames of so many bytes. */
void flow_new(struct bench *b, struct flow *flow, size_t frame);
/* A queue that sends TCP messages of so many bytes as frames with mss bytes of payload each. */
void flow_new_lso(struct bench *b, struct flow *flow, size_t payload, uint16_t mss);

/* Lets time pass, while each flow posts as much as its queue takes. Something must hold the flows:
 * while frames leave, no time passes. */
void flow_run(struct bench *b, struct flow **flows, unsigned n, uint64_t ns);

/* Expects that the flow has sent at kbps for ns, within 2 %; and begins to count anew. */
void flow_expect_rate(struct flow *flow, uint64_t kbps, uint64_t ns);

/* MODIFY_SQ in RDY with a bit of the bitmask. */
enum syn flow_modify(struct flow *flow, uint16_t uid, uint64_t bit, uint32_t value);

#endif
