/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements send queues that always have frames to send. */
#include <check.h>
#include <inttypes.h>
#include "model/eth/eth_queue.h"
#include "tests/unit/flow_bench.h"

#define SLOTS (1u << BENCH_LOG_SQ)

static void flow_init(struct bench *b, struct flow *flow, const struct bench_pkt *pkt)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t len = bench_build(frame, pkt);

    *flow = (struct flow){.wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1}};
    bench_sq_new(b, b->tisn, &flow->sq);
    flow->wr.sge[0] = (struct bench_sge){bench_mem(b, frame, len), (uint32_t)len, 0};
    flow->wqe_blocks = 1;
    flow->wqe_bytes = len;
}

static struct bench_pkt flow_packet(uint8_t proto, size_t payload)
{
    return (struct bench_pkt){
        .dmac = bench_peer_mac, .ip_version = 4, .proto = proto, .payload = payload};
}

void flow_new(struct bench *b, struct flow *flow, size_t frame)
{
    struct bench_pkt pkt = flow_packet(17, 0);

    pkt.payload = frame - bench_headers(&pkt);
    flow_init(b, flow, &pkt);
}

void flow_new_lso(struct bench *b, struct flow *flow, size_t payload, uint16_t mss)
{
    struct bench_pkt pkt = flow_packet(6, 0);

    flow_init(b, flow, &pkt);
    flow->wr.opcode = PRM_WQE_OPCODE_TSO;
    flow->wr.mss = mss;
    flow->wr.hdr = flow->headers;
    flow->wr.hdr_len = bench_build(flow->headers, &pkt);
    flow->wr.sge[0] = (struct bench_sge){bench_mem(b, NULL, payload), (uint32_t)payload, 0};
    flow->wqe_blocks = 2;
    flow->wqe_bytes = payload + (payload + mss - 1) / mss * flow->wr.hdr_len;
}

/* Takes the completions, and posts while there is room. */
static void flow_feed(struct flow *flow)
{
    bool rings = false;

    while (flow->posted && bench_cqe(&flow->sq)) {
        flow->posted--;
        flow->sent += flow->wqe_bytes;
    }
    while (!flow->stopped && (flow->posted + 1) * flow->wqe_blocks <= SLOTS) {
        bench_write_wqe(&flow->sq, &flow->wr);
        flow->posted++;
        rings = true;
    }
    if (rings) {
        bench_ring_sq(&flow->sq);
    }
}

/* Works as long as there is something to do at the present time. */
static void flow_work(struct bench *b, struct flow **flows, unsigned n)
{
    unsigned frames;

    do {
        b->num_frames = 0;
        for (unsigned i = 0; i < n; i++) {
            flow_feed(flows[i]);
        }
        bench_run(b);
        frames = b->num_frames;
    } while (frames);
    for (unsigned i = 0; i < n; i++) {
        flow_feed(flows[i]);
    }
}

void flow_run(struct bench *b, struct flow **flows, unsigned n, uint64_t ns)
{
    struct fake_host *host = &b->rig.host;
    uint64_t end = host->now + ns;

    for (;;) {
        flow_work(b, flows, n);
        if (host->now == end) {
            return;
        }
        host->now = MIN(end, MAX(host->deadline, host->now));
    }
}

void flow_expect_rate(struct flow *flow, uint64_t kbps, uint64_t ns)
{
    uint64_t want = kbps * ns / 8000000, off = want / 50;

    ck_assert_msg(flow->sent >= want - off && flow->sent <= want + off,
                  "%" PRIu64 " bytes instead of %" PRIu64, flow->sent, want);
    flow->sent = 0;
}

enum syn flow_modify(struct flow *flow, uint16_t uid, uint64_t bit, uint32_t value)
{
    struct prm_sqc sqc[1] = {0};

    PRM_SET(sqc, sqc, state, PRM_SQC_STATE_RDY);
    if (bit == PRM_MODIFY_SQ_PACKET_PACING_RATE_LIMIT_INDEX) {
        PRM_SET(sqc, sqc, packet_pacing_rate_limit_index, value);
    } else {
        PRM_SET(sqc, sqc, qos_queue_group_id, value);
    }
    return eth_sq_modify(&flow->sq.bench->rig.hca, uid, flow->sq.num, PRM_SQC_STATE_RDY, bit, sqc);
}
