/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All hosts, with a reliable connection between each two of them. Both ends send, and each message
 * must come once, in order, with its bytes. A host has a limited number of connections at a time. A
 * finished connection makes room for the next, until each host has had one with each other host.
 */
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/intake.h"
#include <errno.h>

#define AT_ONCE  32u /* connections of a host at a time */
#define MESSAGES 2u  /* messages that an end sends */
#define BYTES    64u

struct mesh_end {
    unsigned host, sent, received;
    struct ibv_qp *qp;
};

struct mesh_conn {
    bool open;
    uint64_t quiet_ns; /* it is done and waits until this time; or 0 */
    struct mesh_end end[2];
};

/* A host. In its turn number k it connects to the k-th host behind it. */
struct mesh_host {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct intake in;
    struct span near;               /* texts of the connections that it has begun, for both ends */
    struct mesh_conn conn[AT_ONCE]; /* connections that it has begun */
    struct mesh_conn *taken[AT_ONCE]; /* slots: own and other hosts' connections, or NULL */
    unsigned turn, open;
};

struct mesh {
    struct mesh_host *host;
    unsigned num;
    uint64_t done, all; /* finished connections, and all */
};

/* The text that `from` sends to `to`. */
static void mesh_text(uint8_t text[BYTES], unsigned from, unsigned to, unsigned nth)
{
    struct chance chance = chance_of((uint64_t)from << 32 | nth, "mesh", to);

    chance_fill(&chance, text, BYTES);
}

/* -- connections ------------------------------------------------------------------------------- */

static struct ibv_qp *mesh_make_qp(struct job *job, struct mesh_host *h, unsigned host)
{
    struct ibv_qp_init_attr attr = {.send_cq = h->cq,
                                    .recv_cq = h->cq,
                                    .srq = h->srq,
                                    .cap = {.max_send_wr = MESSAGES, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(job->sim->hosts[host].pd, &attr);

    sim_check(job, qp, "host %u has no QP: errno %d", host, errno);
    return qp;
}

/* Returns the connection's slot among those of the host. */
static unsigned mesh_slot(const struct mesh_host *h, const struct mesh_conn *c)
{
    unsigned slot = 0;

    while (h->taken[slot] != c) {
        slot++;
    }
    return slot;
}

static void mesh_send(struct job *job, struct mesh *m, struct mesh_conn *c, unsigned e)
{
    const struct mesh_end *end = &c->end[e];
    struct mesh_host *h = &m->host[end->host];
    size_t at = (size_t)mesh_slot(h, c) * MESSAGES * BYTES;

    for (unsigned nth = 0; nth < MESSAGES; nth++, at += BYTES) {
        struct ibv_sge sge = {(uintptr_t)(h->near.at + at), BYTES, h->near.mr->lkey};
        struct ibv_send_wr wr = {.wr_id = nth,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .imm_data = GUINT32_TO_BE(nth)},
                           *bad;

        mesh_text(h->near.at + at, end->host, c->end[!e].host, nth);
        sim_must(job, ibv_post_send(end->qp, &wr, &bad));
    }
}

static void mesh_take_slot(struct mesh *m, struct mesh_conn *c, unsigned host)
{
    m->host[host].taken[mesh_slot(&m->host[host], NULL)] = c;
    m->host[host].open++;
}

static void mesh_connect(struct job *job, struct mesh *m, unsigned from, unsigned to)
{
    struct sim_host *const hosts[2] = {&job->sim->hosts[from], &job->sim->hosts[to]};
    struct mesh_conn *c = m->host[from].conn;
    struct ibv_qp *qp[2];

    while (c->open) {
        c++;
    }
    *c = (struct mesh_conn){.open = true, .end = {{.host = from}, {.host = to}}};
    for (unsigned e = 0; e < 2; e++) {
        mesh_take_slot(m, c, c->end[e].host);
        qp[e] = c->end[e].qp = mesh_make_qp(job, &m->host[c->end[e].host], c->end[e].host);
    }
    connect_rc_patiently(job, hosts, qp);
    mesh_send(job, m, c, 0);
    mesh_send(job, m, c, 1);
}

/* The numbers of its QPs are used again. Packets that are on their way to them must not reach the
 * next QPs. */
static bool mesh_may_close(struct job *job, struct mesh_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        if (c->end[e].sent < MESSAGES || c->end[e].received < MESSAGES) {
            return false;
        }
    }
    if (!c->quiet_ns) {
        c->quiet_ns = sim_is_lossy(job->sim) || sim_is_disorderly(job->sim)
                          ? sim_quiet_ns(job->sim)
                          : job->sim->world->now_ns;
    }
    return job->sim->world->now_ns >= c->quiet_ns;
}

static void mesh_close(struct job *job, struct mesh *m, struct mesh_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        struct mesh_host *h = &m->host[c->end[e].host];

        sim_must(job, ibv_destroy_qp(c->end[e].qp));
        h->taken[mesh_slot(h, c)] = NULL;
        h->open--;
    }
    c->open = false;
    m->done++;
}

/* -- completions ------------------------------------------------------------------------------- */

static struct mesh_end *mesh_find(struct job *job, struct mesh *m, unsigned host, uint32_t qpn,
                                  unsigned *other)
{
    for (unsigned slot = 0; slot < AT_ONCE; slot++) {
        struct mesh_conn *c = m->host[host].taken[slot];
        unsigned e = c && c->end[0].host != host;

        if (c && c->end[e].qp->qp_num == qpn) {
            *other = c->end[!e].host;
            return &c->end[e];
        }
    }
    sim_fail(job, "host %u: a completion of QP 0x%x, which it has not", host, qpn);
}

static void mesh_take(struct job *job, struct mesh *m, unsigned host, const struct ibv_wc *wc)
{
    struct mesh_host *h = &m->host[host];
    uint8_t text[BYTES], *slot;
    struct mesh_end *end;
    unsigned other;

    sim_check(job, wc->status == IBV_WC_SUCCESS, "host %u: %s", host,
              ibv_wc_status_str(wc->status));
    end = mesh_find(job, m, host, wc->qp_num, &other);
    if (!(wc->wr_id & INTAKE_WR)) {
        sim_check(job, wc->wr_id == end->sent, "host %u: a completion out of order", host);
        end->sent++;
        return;
    }
    slot = intake_take(&h->in, wc);
    sim_check(job, GUINT32_FROM_BE(wc->imm_data) == end->received && wc->byte_len == BYTES,
              "host %u: message %u of host %u, and %u is next", host, GUINT32_FROM_BE(wc->imm_data),
              other, end->received);
    mesh_text(text, other, host, end->received++);
    intake_check(&h->in, slot, 0, text, BYTES);
    job->sim->tally.messages++;
    job->sim->tally.bytes += BYTES;
    job->sim->tally.checks++;
}

/* -- the job ----------------------------------------------------------------------------------- */

static void mesh_make_host(struct job *job, struct mesh_host *h, struct sim_host *host)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = INTAKE_SLOTS, .max_sge = 1}};

    h->cq = ibv_create_cq(host->ctx, AT_ONCE * MESSAGES + INTAKE_SLOTS, NULL, NULL, 0);
    h->srq = ibv_create_srq(host->pd, &attr);
    sim_check(job, h->cq && h->srq, "host %u has no CQ or SRQ: errno %d", host->number, errno);
    h->near = sim_span(job, host, (size_t)AT_ONCE * MESSAGES * BYTES);
    intake_init(&h->in, job, host, INTAKE_SLOTS, BYTES);
    h->in.srq = h->srq;
    h->turn = 1;
    while (intake_post(&h->in, INTAKE_SLOTS)) {
    }
}

static void kind_mesh_make(struct job *job)
{
    struct mesh *m = job->state;

    m->num = (unsigned)job->sim->options.hosts;
    m->all = (uint64_t)m->num * (m->num - 1) / 2;
    m->host = g_new0(struct mesh_host, m->num);
    for (unsigned i = 0; i < m->num; i++) {
        mesh_make_host(job, &m->host[i], &job->sim->hosts[i]);
    }
}

/* In the last turn of an even number of hosts each two hosts would meet twice. */
static bool mesh_has_turn(const struct mesh *m, unsigned host)
{
    unsigned turn = m->host[host].turn;

    return 2 * turn < m->num || (2 * turn == m->num && host < m->num / 2);
}

static bool mesh_step_host(struct job *job, struct mesh *m, unsigned host)
{
    struct mesh_host *h = &m->host[host];
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(h->cq, 1, &wc) > 0) {
        mesh_take(job, m, host, &wc);
        did = true;
    }
    while (intake_post(&h->in, INTAKE_SLOTS)) {
    }
    for (unsigned i = 0; h->open && i < AT_ONCE; i++) {
        if (h->conn[i].open && mesh_may_close(job, &h->conn[i])) {
            mesh_close(job, m, &h->conn[i]);
            did = true;
        }
    }
    while (mesh_has_turn(m, host)) {
        unsigned to = (host + h->turn) % m->num;

        if (h->open == AT_ONCE || m->host[to].open == AT_ONCE) {
            break;
        }
        mesh_connect(job, m, host, to);
        h->turn++;
        did = true;
    }
    return did;
}

static bool kind_mesh_step(struct job *job)
{
    struct mesh *m = job->state;
    bool did = false;

    for (unsigned i = 0; i < m->num; i++) {
        did |= mesh_step_host(job, m, i);
    }
    return did;
}

static bool kind_mesh_is_done(const struct job *job)
{
    const struct mesh *m = job->state;

    return m->done == m->all;
}

static void kind_mesh_free(struct job *job)
{
    struct mesh *m = job->state;

    for (unsigned i = 0; i < m->num; i++) {
        struct mesh_host *h = &m->host[i];

        sim_must(job, ibv_destroy_srq(h->srq));
        sim_must(job, ibv_destroy_cq(h->cq));
        intake_free(&h->in);
        sim_span_free(job, &h->near);
    }
    g_free(m->host);
}

const struct kind kind_mesh = {
    .name = "mesh",
    .about = "all hosts, each of which has a reliable connection with each other one",
    .hosts = 0,
    .size = sizeof(struct mesh),
    .make = kind_mesh_make,
    .step = kind_mesh_step,
    .is_done = kind_mesh_is_done,
    .free = kind_mesh_free,
};
