/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements link.h. The queue is not kept as a list: the waiting bytes are the time for which the
 * line is busy, times its rate. Times of the line are in picoseconds; an octet at 400 Gb/s takes
 * 20.
 */
#include "tests/sim/fabric/link.h"
#include "wire/encap/ecn.h"

#define PS_PER_NS     1000ull
#define PS_PER_S      1000000000000ull
#define LINE_OVERHEAD 24 /* bytes of a frame on the line: preamble 8, FCS 4, gap 12 */

void link_init(struct link *link, struct timeline *timeline, const struct link_config *config,
               struct chance chance, link_rx_fn *rx, link_gone_fn *gone, void *opaque)
{
    *link = (struct link){.config = config,
                          .timeline = timeline,
                          .rx = rx,
                          .gone = gone,
                          .opaque = opaque,
                          .chance = chance};
}

static uint64_t link_now_ps(const struct link *link)
{
    return timeline_now(link->timeline) * PS_PER_NS;
}

static uint64_t link_ps_of(const struct link *link, uint64_t bytes)
{
    return (uint64_t)((unsigned __int128)bytes * 8 * PS_PER_S / link->config->rate);
}

uint32_t link_queued(const struct link *link)
{
    uint64_t now = link_now_ps(link);

    if (!link->config->rate || link->free_ps <= now) {
        return 0;
    }
    return (uint32_t)((unsigned __int128)(link->free_ps - now) * link->config->rate / 8 / PS_PER_S);
}

uint64_t link_drains_ns(const struct link *link, uint32_t bytes)
{
    uint64_t allowed = link->config->rate ? link_ps_of(link, bytes) : 0;

    return link->free_ps <= allowed ? 0 : (link->free_ps - allowed + PS_PER_NS - 1) / PS_PER_NS;
}

static bool link_marks(struct link *link, uint32_t queued)
{
    const struct link_config *c = link->config;

    if (!c->ecn_max || queued < c->ecn_min) {
        return false;
    }
    return queued >= c->ecn_max ||
           chance_happens(&link->chance, (unsigned)((uint64_t)c->ecn_most * (queued - c->ecn_min) /
                                                    (c->ecn_max - c->ecn_min)));
}

static void link_arrive(void *opaque, void *what)
{
    const struct link *link = opaque;

    link->rx(link->opaque, what);
}

void link_forget_all(struct timeline *timeline)
{
    timeline_forget(timeline, link_arrive, (GDestroyNotify)frame_put);
}

static void link_arrives_at(struct link *link, struct frame *frame, uint64_t time_ns)
{
    timeline_at(link->timeline, time_ns, link_arrive, link, frame);
}

static void link_drop(const struct link *link, struct frame *frame, unsigned fate)
{
    if (link->gone) {
        link->gone(link->opaque, frame, frame->fate | fate);
    }
    frame_put(frame);
}

/* Applies the line's faults to a frame that would arrive at that time. */
static void link_carry(struct link *link, struct frame *frame, uint64_t time_ns)
{
    const struct link_faults *f = &link->config->faults;

    if (chance_happens(&link->chance, f->lose)) {
        link->stats.lost++;
        link_drop(link, frame, FRAME_LOST);
        return;
    }
    if (chance_happens(&link->chance, f->corrupt)) {
        link->stats.corrupted++;
        if (!frame_is_roce(frame)) {
            link_drop(link, frame, FRAME_LOST | FRAME_CORRUPTED);
            return;
        }
        frame = frame_mark_fate(frame, FRAME_CORRUPTED);
        frame_corrupt(frame, &link->chance);
    }
    if (chance_happens(&link->chance, f->twice)) {
        link->stats.doubled++;
        link_arrives_at(link, frame_mark_fate(frame_get(frame), FRAME_DUPLICATE),
                        time_ns + chance_below(&link->chance, f->late_ns + 1));
    }
    if (chance_happens(&link->chance, f->late)) {
        link->stats.delayed++;
        link_arrives_at(link, frame_mark_fate(frame, FRAME_LATE),
                        time_ns + chance_from(&link->chance, 1, f->late_ns + 1));
        return;
    }
    link->last_ns = MAX(link->last_ns, time_ns);
    link_arrives_at(link, frame, link->last_ns);
}

void link_send(struct link *link, struct frame *frame)
{
    const struct link_config *c = link->config;
    uint64_t now = link_now_ps(link), time_ns;
    uint32_t queued = link_queued(link);

    if (link->down || (c->queue && queued && queued + frame->len > c->queue)) {
        *(link->down ? &link->stats.down : &link->stats.dropped) += 1;
        link_drop(link, frame, link->down ? FRAME_NO_LINK : FRAME_DROPPED);
        return;
    }
    if (link_marks(link, queued) && ecn_is_ect(frame->bytes, frame->len)) {
        link->stats.marked++;
        frame = frame_own(frame);
        ecn_mark_ce(frame->bytes, frame->len);
    }
    link->free_ps =
        MAX(link->free_ps, now) + (c->rate ? link_ps_of(link, frame->len + LINE_OVERHEAD) : 0);
    link->stats.frames++;
    link->stats.bytes += frame->len;
    link->stats.queue_sum += queued;
    link->stats.queue_most = MAX(link->stats.queue_most, queued + (c->rate ? frame->len : 0));
    time_ns = link->free_ps / PS_PER_NS + c->latency_ns +
              (c->jitter_ns ? chance_below(&link->chance, c->jitter_ns + 1) : 0);
    link_carry(link, frame, time_ns);
}

uint64_t link_num_faults(const struct link *link)
{
    const struct link_stats *s = &link->stats;

    return s->lost + s->doubled + s->delayed + s->corrupted;
}
