/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements intake.h: slots. */
#include "tests/sim/fabric/intake.h"

#define POISON 0xe5

const uint8_t *poison(void)
{
    static uint8_t bytes[POISON_BYTES];

    if (bytes[0] != POISON) {
        memset(bytes, POISON, sizeof(bytes));
    }
    return bytes;
}

void intake_init(struct intake *in, struct job *job, struct sim_host *host, unsigned slots,
                 size_t size)
{
    *in = (struct intake){.job = job, .slots = slots, .size = size, .stride = (size + 63) & ~63ul};
    g_assert_cmpuint(slots, <=, INTAKE_SLOTS);
    g_assert_cmpuint(size, <=, POISON_BYTES);
    in->span = sim_span(job, host, slots * in->stride);
    memset(in->span.at, POISON, in->span.len);
    intake_reset(in);
}

void intake_reset(struct intake *in)
{
    for (unsigned i = 0; i < in->posted; i++) {
        memset(in->span.at + in->order[(in->first + i) % INTAKE_SLOTS] * in->stride, POISON,
               in->size);
    }
    in->posted = in->first = in->num_free = 0;
    while (in->num_free < in->slots) {
        in->free[in->num_free] = in->num_free;
        in->num_free++;
    }
}

void intake_free(struct intake *in)
{
    sim_span_free(in->job, &in->span);
}

#define BATCH 16u

static int intake_ring(struct intake *in, struct ibv_recv_wr *wr)
{
    struct ibv_recv_wr *bad;

    return in->srq  ? ibv_post_srq_recv(in->srq, wr, &bad)
           : in->wq ? ibv_post_wq_recv(in->wq, wr, &bad)
                    : ibv_post_recv(in->qp, wr, &bad);
}

unsigned intake_post(struct intake *in, unsigned most)
{
    struct ibv_recv_wr wr[BATCH];
    struct ibv_sge sge[BATCH];
    unsigned n = MIN(MIN(most, in->num_free), BATCH);

    for (unsigned i = 0; i < n; i++) {
        unsigned slot = in->free[--in->num_free];
        uint8_t *at = in->span.at + slot * in->stride;

        sim_check(in->job, !memcmp(at, poison(), in->size),
                  "slot %u was written to after its message was received", slot);
        sge[i] = (struct ibv_sge){(uintptr_t)at, (uint32_t)in->size, in->span.mr->lkey};
        wr[i] = (struct ibv_recv_wr){.wr_id = INTAKE_WR | slot,
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1};
        in->order[(in->first + in->posted++) % INTAKE_SLOTS] = (uint16_t)slot;
    }
    if (n) {
        sim_must(in->job, intake_ring(in, wr));
    }
    return n;
}

uint8_t *intake_take(struct intake *in, const struct ibv_wc *wc)
{
    uint64_t slot = wc->wr_id & ~INTAKE_WR;
    unsigned at = 0;

    sim_check(in->job, slot < in->slots && in->posted,
              "completion of a receive that is not posted");
    while (in->srq && at < in->posted && in->order[(in->first + at) % INTAKE_SLOTS] != slot) {
        at++;
    }
    sim_check(in->job, at < in->posted && in->order[(in->first + at) % INTAKE_SLOTS] == slot,
              "receive %u completes, whose turn it is not", (unsigned)slot);
    for (; at; at--) { /* close the gap */
        in->order[(in->first + at) % INTAKE_SLOTS] = in->order[(in->first + at - 1) % INTAKE_SLOTS];
    }
    in->first++;
    in->posted--;
    return in->span.at + slot * in->stride;
}

static void intake_give_back(struct intake *in, const uint8_t *slot)
{
    in->free[in->num_free++] = (uint16_t)((size_t)(slot - in->span.at) / in->stride);
}

void intake_check(struct intake *in, uint8_t *slot, size_t skip, const uint8_t *expected,
                  size_t len)
{
    sim_check(in->job, !memcmp(slot + skip, expected, len),
              "other bytes were received than were sent");
    memset(slot, POISON, in->has_remains ? in->size : skip + len);
    in->has_remains = false;
    intake_give_back(in, slot);
}

void intake_forget(struct intake *in, uint8_t *slot)
{
    memset(slot, POISON, in->size);
    intake_give_back(in, slot);
}
