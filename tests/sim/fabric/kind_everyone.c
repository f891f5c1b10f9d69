/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All hosts: each sends a datagram to each other host. A host that is ahead waits for the slowest
 * host, so no host gets more datagrams than it has receives. On a fabric without faults all of them
 * arrive, once.
 */
#include "tests/sim/fabric/datagrams.h"
#include <errno.h>

#define AHEAD 24u /* turns that a host may be ahead of the slowest */
#define BYTES 32u

/* A host. In its turn number k it sends to the k-th host behind it. */
struct one {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct intake in;
    struct span near;
    struct ibv_ah *ah[AHEAD + 1];
    unsigned turn, sent, received;
    uint8_t *seen; /* by sender */
};

struct everyone {
    struct one *one;
    unsigned num, slowest;
    uint64_t quiet_ns;
};

/* The text that `from` sends to `to`. */
static void everyone_text(uint8_t text[BYTES], unsigned from, unsigned to)
{
    struct chance chance = chance_of(from, "text", to);

    chance_fill(&chance, text, BYTES);
}

static void everyone_make_one(struct job *job, struct one *one, struct sim_host *host, unsigned num)
{
    struct ibv_qp_init_attr init = {.cap = {.max_send_wr = AHEAD + 1,
                                            .max_recv_wr = INTAKE_SLOTS,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_UD};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = DATAGRAMS_QKEY};

    one->cq = ibv_create_cq(host->ctx, AHEAD + 1 + INTAKE_SLOTS, NULL, NULL, 0);
    sim_check(job, one->cq, "no CQ: errno %d", errno);
    init.send_cq = init.recv_cq = one->cq;
    one->qp = ibv_create_qp(host->pd, &init);
    sim_check(job, one->qp, "no QP: errno %d", errno);
    sim_must(job, ibv_modify_qp(one->qp, &attr,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    sim_must(job, ibv_modify_qp(one->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    sim_must(job, ibv_modify_qp(one->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    intake_init(&one->in, job, host, INTAKE_SLOTS, BYTES + DATAGRAMS_GRH);
    one->in.qp = one->qp;
    one->near = sim_span(job, host, (size_t)(AHEAD + 1) * BYTES);
    one->seen = g_malloc0(num);
    one->turn = 1;
    while (intake_post(&one->in, INTAKE_SLOTS)) {
    }
}

static void kind_everyone_make(struct job *job)
{
    struct everyone *e = job->state;

    e->num = (unsigned)job->sim->options.hosts;
    e->one = g_new0(struct one, e->num);
    for (unsigned i = 0; i < e->num; i++) {
        everyone_make_one(job, &e->one[i], &job->sim->hosts[i], e->num);
    }
}

static void everyone_send(struct job *job, struct everyone *e, unsigned from)
{
    struct one *one = &e->one[from];
    unsigned to = (from + one->turn) % e->num, slot = one->turn % (AHEAD + 1);
    struct ibv_ah_attr path = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = job->sim->hosts[to].config.gid[1], .sgid_index = 1, .hop_limit = 1}};
    struct ibv_sge sge = {(uintptr_t)(one->near.at + slot * BYTES), BYTES, one->near.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = one->turn,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = GUINT32_TO_BE(from)},
                       *bad;

    one->ah[slot] = ibv_create_ah(job->sim->hosts[from].pd, &path);
    sim_check(job, one->ah[slot], "host %u does not find host %u", from, to);
    everyone_text(one->near.at + slot * BYTES, from, to);
    wr.wr.ud.ah = one->ah[slot];
    wr.wr.ud.remote_qpn = e->one[to].qp->qp_num;
    wr.wr.ud.remote_qkey = DATAGRAMS_QKEY;
    sim_must(job, ibv_post_send(one->qp, &wr, &bad));
    one->turn++;
}

static void everyone_take(struct job *job, struct everyone *e, unsigned at, const struct ibv_wc *wc)
{
    struct one *one = &e->one[at];
    uint32_t from = GUINT32_FROM_BE(wc->imm_data);
    uint8_t text[BYTES], *slot;

    sim_check(job, wc->status == IBV_WC_SUCCESS, "host %u: %s", at, ibv_wc_status_str(wc->status));
    if (!(wc->wr_id & INTAKE_WR)) {
        sim_check(job, wc->wr_id == one->sent + 1u, "host %u: a completion out of order", at);
        one->sent++;
        sim_must(job, ibv_destroy_ah(one->ah[wc->wr_id % (AHEAD + 1)]));
        e->quiet_ns = sim_quiet_ns(job->sim);
        return;
    }
    slot = intake_take(&one->in, wc);
    sim_check(job, from < e->num && from != at, "host %u hears from host %u", at, from);
    sim_check(job, !one->seen[from] || sim_is_disorderly(job->sim),
              "host %u hears from host %u twice", at, from);
    one->received += !one->seen[from];
    one->seen[from] = 1;
    everyone_text(text, from, at);
    intake_check(&one->in, slot, DATAGRAMS_GRH, text, BYTES);
    job->sim->tally.messages++;
    job->sim->tally.bytes += BYTES;
    job->sim->tally.checks++;
}

static bool kind_everyone_step(struct job *job)
{
    struct everyone *e = job->state;
    unsigned slowest = e->num;
    bool did = false;

    for (unsigned i = 0; i < e->num; i++) {
        struct one *one = &e->one[i];
        struct ibv_wc wc;

        while (ibv_poll_cq(one->cq, 1, &wc) > 0) {
            everyone_take(job, e, i, &wc);
            did = true;
        }
        while (intake_post(&one->in, INTAKE_SLOTS)) {
        }
        while (one->turn < e->num && one->turn - 1 - one->sent < AHEAD &&
               one->turn <= e->slowest + AHEAD) {
            everyone_send(job, e, i);
            did = true;
        }
        /* if frames may be lost there is nothing to wait for */
        slowest = MIN(slowest, sim_is_lossy(job->sim) ? one->sent : MIN(one->sent, one->received));
    }
    e->slowest = slowest;
    return did;
}

static bool kind_everyone_is_done(const struct job *job)
{
    const struct everyone *e = job->state;

    return e->slowest == e->num - 1 &&
           (!sim_is_lossy(job->sim) || job->sim->world->now_ns >= e->quiet_ns);
}

static void kind_everyone_free(struct job *job)
{
    struct everyone *e = job->state;

    for (unsigned i = 0; i < e->num; i++) {
        struct one *one = &e->one[i];

        sim_must(job, ibv_destroy_qp(one->qp));
        sim_must(job, ibv_destroy_cq(one->cq));
        intake_free(&one->in);
        sim_span_free(job, &one->near);
        g_free(one->seen);
    }
    g_free(e->one);
}

const struct kind kind_everyone = {
    .name = "everyone",
    .about = "all hosts, each of which sends a datagram to each other one",
    .hosts = 0,
    .size = sizeof(struct everyone),
    .make = kind_everyone_make,
    .step = kind_everyone_step,
    .is_done = kind_everyone_is_done,
    .free = kind_everyone_free,
};
