/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements access.h: connections, operations and their results. */
#include "tests/sim/fabric/access_views.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/sim/fabric/connect.h"

#define RECEIVE_WR (1ull << 63) /* flag in wr_id */
#define DRAWS      4            /* how often a side is drawn that can be used */

static const char *const access_names[] = {[ACCESS_WRITE] = "WRITE",
                                           [ACCESS_READ] = "READ",
                                           [ACCESS_SEND] = "SEND",
                                           [ACCESS_FETCH_ADD] = "FETCH_ADD",
                                           [ACCESS_CTRL] = "a request"};

static struct access_op *access_op_at(struct access_end *end, uint64_t nth)
{
    return &end->ops[nth % ACCESS_WINDOW];
}

/* -- made and connected ------------------------------------------------------------------------ */

struct ibv_qp *access_make_qp(struct access *a, struct sim_host *host, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {.max_send_wr = ACCESS_WINDOW,
                                               .max_recv_wr = ACCESS_WINDOW,
                                               .max_send_sge = ACCESS_SGES,
                                               .max_recv_sge = ACCESS_SGES},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = host->pd};
    /* Data in a CQE is copied by the library, which does not know the keys' addresses. */
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE};

    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

/* Makes the queues of both ends, for a service that is drawn. */
static void access_make_queues(struct access *a, struct access_conn *c)
{
    c->service = a->draw_service ? a->draw_service(a) : SERVICE_OWN;
    for (unsigned e = 0; e < 2; e++) {
        struct access_end *end = &c->end[e];

        if (c->service == SERVICE_OWN) {
            end->qp = a->make_qp(a, end->host, end->cq);
            sim_check(a->job, end->qp, "no QP: errno %d", errno);
        } else {
            end->via = (struct service){.job = a->job, .kind = c->service, .host = end->host};
            service_make(&end->via, c->end[!e].host, end->cq, ACCESS_WINDOW, ACCESS_SGES + 1);
            end->qp = end->via.qp;
        }
    }
}

static void access_make_cq(struct access *a, struct access_end *end)
{
    end->cq = ibv_create_cq(end->host->ctx, 2 * ACCESS_WINDOW, NULL, NULL, 0);
    sim_check(a->job, end->cq, "no CQ: errno %d", errno);
}

/* Destroys the queues. A CQ may have completions of a shared receive queue that nobody takes. */
static void access_free_queues(struct access *a, struct access_conn *c, struct access_end *end)
{
    if (c->service == SERVICE_OWN) {
        sim_must(a->job, ibv_destroy_qp(end->qp));
        return;
    }
    service_free(&end->via);
    sim_must(a->job, ibv_destroy_cq(end->cq));
    access_make_cq(a, end);
}

static void access_connect(struct access *a, struct access_conn *c)
{
    struct sim_host *const host[2] = {c->end[0].host, c->end[1].host};

    if (c->destroyed) {
        access_make_queues(a, c);
    } else {
        connect_move(a->job, c->end[0].qp, IBV_QPS_RESET);
        connect_move(a->job, c->end[1].qp, IBV_QPS_RESET);
    }
    if (c->service == SERVICE_OWN) {
        connect_rc(a->job, host, (struct ibv_qp *const[]){c->end[0].qp, c->end[1].qp});
    } else {
        service_connect((struct service *const[]){&c->end[0].via, &c->end[1].via});
    }
    for (unsigned e = 0; e < 2; e++) {
        c->end[e].broken = false;
        c->end[e].again_ns = c->end[e].rest_ns = 0;
    }
    c->destroyed = c->troubled = c->over = false;
    memset(c->doubtful, 0, sizeof(c->doubtful));
    c->state = ACCESS_RUNS;
}

void access_init(struct access *a, struct job *job, uint8_t *const memory[2], size_t len)
{
    a->job = job;
    a->limit = job->sim->options.ops;
    a->window = (unsigned)CLAMP(job->sim->options.window, 2, ACCESS_WINDOW);
    for (unsigned i = 0; i < 2; i++) {
        a->host[i] = a->host[i] ? a->host[i] : job->host[i];
        mirror_init(&a->mirror[i], job, a->host[i], memory[i], len);
    }
    for (unsigned i = 0; i < ACCESS_CONNS; i++) {
        for (unsigned e = 0; e < 2; e++) {
            struct access_end *end = &a->conn[i].end[e];

            end->host = a->host[e];
            access_make_cq(a, end);
        }
        a->conn[i].destroyed = true; /* there is nothing yet */
        access_connect(a, &a->conn[i]);
    }
}

void access_free(struct access *a)
{
    for (unsigned i = 0; i < ACCESS_CONNS; i++) {
        for (unsigned e = 0; e < 2; e++) {
            access_free_queues(a, &a->conn[i], &a->conn[i].end[e]);
            sim_must(a->job, ibv_destroy_cq(a->conn[i].end[e].cq));
        }
    }
    mirror_free(&a->mirror[0]);
    mirror_free(&a->mirror[1]);
}

bool access_may_be_rude(struct access *a)
{
    return a->job->sim->options.errors && chance_one_in(&a->job->chance, 4);
}

/* -- posting ----------------------------------------------------------------------------------- */

static bool access_has_room(const struct access *a, const struct access_conn *c, unsigned e)
{
    const struct access_end *end = &c->end[e];

    if (c->service == SERVICE_UD &&
        (end->settled < end->posted || a->job->sim->world->now_ns < end->rest_ns)) {
        return false;
    }
    return c->state == ACCESS_RUNS && !end->broken && !c->over &&
           end->posted - end->done < a->window;
}

struct access_conn *access_find_room(struct access *a, unsigned host)
{
    struct access_conn *c = &a->conn[chance_below(&a->job->chance, ACCESS_CONNS)];

    return access_has_room(a, c, host) ? c : NULL;
}

struct ibv_qp *access_claim(struct access_conn *c, unsigned host, void *about, uint64_t *id)
{
    struct access_end *end = &c->end[host];

    *id = end->posted++;
    *access_op_at(end, *id) = (struct access_op){.what = ACCESS_CTRL, .about = about};
    return end->qp;
}

/* Draws a side and its views. bad: it may be one that must fail. Returns false if there is none. */
static bool access_draw_side(struct access *a, struct access_op *op, struct access_side *side,
                             uint32_t len, bool bad)
{
    for (unsigned i = 0; i < DRAWS; i++) {
        unsigned pending = a->pending[side->host];
        bool good = a->draw(a, side, len);

        for (unsigned next = 0; good && next <= pending; next++) {
            uint32_t *view = access_view(a, op, side, next);

            good = bad || !access_view_faults(view, op->len);
            if (!good) {
                g_free(view);
            } else if (access_add_view(a, op, side, view)) {
                access_weigh(a, op, side);
            } else {
                good = false;
            }
        }
        /* an atomic computes one result */
        if (good && op->what == ACCESS_FETCH_ADD && side == &op->far && side->views > 1) {
            good = false;
        }
        if (good) {
            return true;
        }
        access_drop_views(a, op, side, 0);
        brought_free(access_from(op, side));
        g_clear_pointer(&side->leads, g_free);
        side->faults = false;
    }
    return false;
}

/* Plans an operation at that end. Returns false if there is none. */
static bool access_plan(struct access *a, const struct access_conn *c, unsigned e,
                        struct access_op *op)
{
    static const unsigned far_needs[] = {[ACCESS_WRITE] = IBV_ACCESS_REMOTE_WRITE,
                                         [ACCESS_READ] = IBV_ACCESS_REMOTE_READ,
                                         [ACCESS_SEND] = IBV_ACCESS_LOCAL_WRITE,
                                         [ACCESS_FETCH_ADD] = IBV_ACCESS_REMOTE_ATOMIC};
    struct chance *chance = &a->job->chance;
    bool ud = c->service == SERVICE_UD;
    uint32_t most = (uint32_t)MIN(a->job->sim->options.size, ud ? ACCESS_DATAGRAM : ACCESS_LONG);
    bool bad = chance_happens(chance, (unsigned)a->job->sim->options.errors);
    bool bad_near = bad && chance_one_in(chance, 2);

    op->what = ud ? ACCESS_SEND : (enum access_what)chance_below(chance, ACCESS_CTRL);
    op->len = op->what == ACCESS_FETCH_ADD ? 8 : (uint32_t)chance_from(chance, 1, most);
    op->room = op->len + (chance_one_in(chance, 2) ? 0 : (uint32_t)chance_below(chance, 64));
    op->add = chance_next(chance);
    op->near.host = e;
    op->far.host = !e;
    op->far.need = far_needs[op->what];
    op->far.writes = op->what != ACCESS_READ;
    op->near.writes = op->what == ACCESS_READ || op->what == ACCESS_FETCH_ADD;
    op->near.need = op->near.writes ? IBV_ACCESS_LOCAL_WRITE : 0;
    if (!access_draw_side(a, op, &op->near, op->len, bad_near) ||
        !access_draw_side(a, op, &op->far, op->what == ACCESS_SEND ? op->room : op->len,
                          bad && !bad_near)) {
        access_clear_op(a, op);
        return false;
    }
    if (op->what == ACCESS_FETCH_ADD) {
        brought_free(&op->to_near);
        brought_free(&op->to_far);
        access_compute(a, op);
    }
    return true;
}

static int access_list(const struct access_side *side, struct ibv_sge *list)
{
    for (unsigned i = 0; i < side->num_sge; i++) {
        list[i] = (struct ibv_sge){side->sge[i].va, side->sge[i].len, side->sge[i].key};
    }
    return (int)side->num_sge;
}

static void access_post_receive(struct access *a, struct access_end *end,
                                const struct access_op *op, uint64_t nth)
{
    struct ibv_sge list[ACCESS_SGES];
    struct ibv_recv_wr wr = {.wr_id = RECEIVE_WR | nth, .sg_list = list}, *bad;

    wr.num_sge = access_list(&op->far, list);
    end->receives[end->receives_posted++ % ACCESS_WINDOW] = nth;
    sim_must(a->job,
             end->via.srq ? service_receive(&end->via, &wr) : ibv_post_recv(end->qp, &wr, &bad));
}

static void access_post_op(struct access *a, struct access_conn *c, unsigned e,
                           const struct access_op *op, uint64_t nth)
{
    struct ibv_sge list[ACCESS_SGES];
    struct ibv_send_wr wr = {.wr_id = nth, .sg_list = list, .send_flags = IBV_SEND_SIGNALED}, *bad;

    wr.num_sge = access_list(&op->near, list);
    switch (op->what) {
    case ACCESS_SEND:
        wr.opcode = IBV_WR_SEND;
        break;
    case ACCESS_FETCH_ADD:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = op->far.sge[0].va;
        wr.wr.atomic.compare_add = op->add;
        wr.wr.atomic.rkey = op->far.sge[0].key;
        break;
    default:
        wr.opcode = op->what == ACCESS_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr.wr.rdma.remote_addr = op->far.sge[0].va;
        wr.wr.rdma.rkey = op->far.sge[0].key;
    }
    sim_must(a->job, c->service == SERVICE_OWN
                         ? ibv_post_send(c->end[e].qp, &wr, &bad)
                         : service_send(&c->end[e].via, &c->end[!e].via, &wr));
}

static bool access_post(struct access *a, struct access_conn *c, unsigned e)
{
    struct access_end *end = &c->end[e];
    struct access_op op = {0};

    /* the other end's receive would be flushed, and the receives count as its own */
    if (c->ops >= a->limit || !access_has_room(a, c, e) || c->end[!e].broken ||
        c->end[!e].receives_posted - c->end[!e].receives_done >= ACCESS_WINDOW ||
        !access_plan(a, c, e, &op)) {
        return false;
    }
    c->ops++;
    op.near.faults |= c->doubtful[e][1];
    op.far.faults |= c->doubtful[!e][0];
    c->troubled |= op.near.faults || op.far.faults;
    sim_note(a->job,
             "host %u posts %s %" PRIu64 ": %u bytes, near 0x%x at 0x%" PRIx64
             ", far 0x%x at 0x%" PRIx64 "%s%s",
             end->host->number, access_names[op.what], end->posted, op.len, op.near.sge[0].key,
             op.near.sge[0].va, op.far.sge[0].key, op.far.sge[0].va,
             op.near.faults ? ", near may fail" : "", op.far.faults ? ", far may fail" : "");
    *access_op_at(end, end->posted) = op;
    if (op.what == ACCESS_SEND) {
        access_post_receive(a, &c->end[!e], &op, end->posted);
    }
    access_post_op(a, c, e, access_op_at(end, end->posted), end->posted);
    end->posted++;
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

/* Checks that each byte has arrived in one of the side's views, unless another byte of the
 * operation may have been written over it. */
static void access_check_arrived(struct access *a, const struct access_op *op,
                                 const struct access_side *side, const struct brought *to)
{
    const struct mirror *m = &a->mirror[side->host];

    if (side->moved) {
        return;
    }
    for (uint32_t i = 0; i < op->len; i++) {
        bool found = false;

        for (unsigned v = 0; v < side->views; v++) {
            uint32_t at = side->view[v][i];

            found |= at == MIRROR_NOWHERE ||
                     (at != MIRROR_FAULT &&
                      (m->writers[at] > 1 || brought_has(to, i, *mirror_byte(m, at))));
        }
        sim_check(a->job, found, "an operation is complete, and its byte %u is nowhere", i);
    }
}

static void access_settle_side(struct access *a, const struct access_op *op,
                               const struct access_side *side, const struct brought *to,
                               bool complete)
{
    struct mirror *m = &a->mirror[side->host];

    if (!side->writes) {
        return;
    }
    if (complete && side->views == 1 && !side->moved && to->n == 1) {
        mirror_arrived(m, side->view[0], op->len, to);
        return;
    }
    mirror_settle(m, side->view, side->views, op->len, to);
    if (complete && op->what != ACCESS_FETCH_ADD) {
        access_check_arrived(a, op, side, to);
    }
}

/* An atomic writes all of its word, or nothing. */
static void access_check_word(struct access *a, const struct access_op *op)
{
    const struct mirror *m = &a->mirror[op->far.host];
    const uint32_t *view = op->what == ACCESS_FETCH_ADD && op->far.views ? op->far.view[0] : NULL;
    bool old = true, new = true;

    for (unsigned i = 0; view && i < 8; i++) {
        if (mirror_is_byte(view[i])) {
            old &= *mirror_byte(m, view[i]) == m->copy[view[i]];
            new &= *mirror_byte(m, view[i]) == op->to_far.value[0][i];
        }
    }
    sim_check(a->job, old || new, "half of an atomic is in the memory");
}

/* The operation has no more effects. */
static void access_settle(struct access *a, struct access_op *op, bool complete)
{
    if (op->what == ACCESS_CTRL) {
        return;
    }
    access_check_word(a, op);
    access_settle_side(a, op, &op->near, &op->to_near, complete);
    access_settle_side(a, op, &op->far, &op->to_far, complete);
    access_clear_op(a, op);
}

static bool access_may_end_so(const struct access *a, const struct access_conn *c,
                              const struct access_op *op, enum ibv_wc_status status)
{
    bool over = c->state != ACCESS_RUNS || c->troubled, is_ctrl = op->what == ACCESS_CTRL;

    switch (status) {
    case IBV_WC_SUCCESS:
        return is_ctrl || (access_leads(op, &op->near) &&
                           (c->service == SERVICE_UD || access_leads(op, &op->far)));
    case IBV_WC_REM_ACCESS_ERR:
        return !is_ctrl && op->what != ACCESS_SEND && op->far.faults;
    case IBV_WC_REM_OP_ERR:
        return op->what == ACCESS_SEND && op->far.faults;
    case IBV_WC_LOC_PROT_ERR:
        return !is_ctrl && op->near.faults;
    case IBV_WC_WR_FLUSH_ERR:
        return over;
    case IBV_WC_RETRY_EXC_ERR:
        return over || sim_is_lossy(a->job->sim);
    default:
        return false;
    }
}

/* The operation is done, at both sides. */
static void access_complete(struct access *a, const struct access_conn *c, struct access_end *end,
                            struct access_op *op)
{
    access_settle(a, op, true);
    end->settled = end->done;
    if (c->service == SERVICE_UD) {
        end->again_ns = 0;
        end->rest_ns = sim_quiet_ns(a->job->sim);
    }
    a->job->sim->tally.messages++;
    a->job->sim->tally.bytes += op->len;
}

static void access_sent(struct access *a, struct access_conn *c, unsigned e,
                        const struct ibv_wc *wc)
{
    struct access_end *end = &c->end[e];
    struct access_op *op = access_op_at(end, end->done);

    sim_check(a->job, wc->wr_id == end->done && end->done < end->posted,
              "completion %" PRIu64 ", and %" PRIu64 " of %" PRIu64 " is next", wc->wr_id,
              end->done, end->posted);
    sim_check(a->job,
              end->broken ? wc->status == IBV_WC_WR_FLUSH_ERR
                          : access_may_end_so(a, c, op, wc->status),
              "%s %" PRIu64 " ends with %s", access_names[op->what], wc->wr_id,
              ibv_wc_status_str(wc->status));
    a->job->sim->tally.checks++;
    end->done++;
    if (wc->status == IBV_WC_SUCCESS && c->service == SERVICE_UD && !op->received) {
        end->again_ns = sim_quiet_ns(a->job->sim);
    } else if (wc->status == IBV_WC_SUCCESS) {
        access_complete(a, c, end, op);
    } else if (!end->broken) {
        sim_note(a->job, "%s %" PRIu64 " of host %u ends with %s", access_names[op->what],
                 wc->wr_id, end->host->number, ibv_wc_status_str(wc->status));
        end->broken = true;
        a->job->sim->tally.errors++;
    }
    if (op->what == ACCESS_CTRL) {
        a->ctrl_done(a, op, wc->status);
    }
}

static void access_took(struct access *a, struct access_conn *c, unsigned e,
                        const struct ibv_wc *wc)
{
    struct access_end *end = &c->end[e];
    uint64_t nth = end->receives[end->receives_done % ACCESS_WINDOW];
    struct access_op *op = access_op_at(&c->end[!e], nth);
    bool over = c->state != ACCESS_RUNS || c->troubled;

    sim_check(a->job, end->receives_done < end->receives_posted && wc->wr_id == (RECEIVE_WR | nth),
              "a receive completes that is not next");
    end->receives_done++;
    switch (wc->status) {
    case IBV_WC_SUCCESS:
        /* the sender may have completed the operation before */
        sim_check(a->job,
                  nth < c->end[!e].settled ||
                      (access_leads(op, &op->near) && access_leads(op, &op->far)),
                  "a receive completes that must fail");
        sim_check(a->job,
                  nth < c->end[!e].settled ||
                      wc->byte_len == op->len + (c->service == SERVICE_UD ? SERVICE_GRH : 0),
                  "a receive has %u bytes, and %u were sent", wc->byte_len, op->len);
        op->received = true;
        if (c->service == SERVICE_UD && c->end[!e].done > nth) {
            access_complete(a, c, &c->end[!e], op);
        }
        return;
    case IBV_WC_LOC_PROT_ERR:
        sim_check(a->job, nth >= c->end[!e].settled && op->far.faults,
                  "a receive fails that every key allows");
        break;
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
        /* a DC target continues after a fault, and tells of it like this (docs/adr/0009) */
        sim_check(a->job, c->service == SERVICE_DC && over, "a receive ends with %s",
                  ibv_wc_status_str(wc->status));
        break;
    default:
        /* an initiator of DC that fails disconnects: its target flushes what it has begun */
        over |= end->broken ||
                (c->service == SERVICE_DC && (c->end[!e].broken || sim_is_lossy(a->job->sim)));
        sim_check(a->job, wc->status == IBV_WC_WR_FLUSH_ERR && over, "a receive ends with %s",
                  ibv_wc_status_str(wc->status));
    }
    if (c->service == SERVICE_OWN || c->service == SERVICE_RC) {
        end->broken = true;
    } else {
        c->over = true; /* the initiator at this end goes on */
    }
}

/* Returns whether the number is that of the end's QP or target. */
static bool access_has_qp(const struct access_end *end, uint32_t qpn)
{
    return end->qp->qp_num == qpn || (end->via.target && end->via.target->qp_num == qpn);
}

static bool access_poll(struct access *a, struct access_conn *c, unsigned e)
{
    struct access_end *end = &c->end[e];
    struct ibv_wc wc;
    bool did = false;

    while (ibv_poll_cq(end->cq, 1, &wc) > 0) {
        sim_check(a->job, c->state != ACCESS_IS_QUIET && access_has_qp(end, wc.qp_num),
                  "a completion of QP 0x%x, which has none outstanding", wc.qp_num);
        if (wc.wr_id & RECEIVE_WR) {
            access_took(a, c, e, &wc);
        } else {
            access_sent(a, c, e, &wc);
        }
        did = true;
    }
    return did;
}

/* -- keys that change -------------------------------------------------------------------------- */

typedef bool access_fn(struct access *a, struct access_conn *c, struct access_op *op,
                       struct access_side *side);

/* Calls a function for the sides at a host of all operations that may still have effects, until it
 * returns false. */
static bool access_each(struct access *a, unsigned host, access_fn *fn)
{
    for (unsigned i = 0; i < 2 * ACCESS_CONNS; i++) {
        struct access_conn *c = &a->conn[i / 2];
        struct access_end *end = &c->end[i % 2];

        for (uint64_t nth = end->settled; nth < end->posted; nth++) {
            struct access_op *op = access_op_at(end, nth);

            if (op->what != ACCESS_CTRL &&
                !fn(a, c, op, op->near.host == host ? &op->near : &op->far)) {
                return false;
            }
        }
    }
    return true;
}

static bool access_side_may_change(struct access *a, struct access_conn *c, struct access_op *op,
                                   struct access_side *side)
{
    uint32_t *view = access_view(a, op, side, true);
    bool faults = access_view_faults(view, op->len);
    bool word = op->what == ACCESS_FETCH_ADD && side == &op->far;

    /* an atomic computes one result */
    if ((a->polite && faults && !side->faults) ||
        (word && !faults && memcmp(view, side->view[0], op->len * sizeof(*view)) != 0)) {
        g_free(view);
        return false;
    }
    return access_add_view(a, op, side, view);
}

/* Forgets the views of a change that is not made. */
static bool access_side_forgets(struct access *a, struct access_conn *c, struct access_op *op,
                                struct access_side *side)
{
    if (side->views > 1) {
        access_drop_views(a, op, side, side->views - 1);
    }
    return true;
}

static bool access_side_changes(struct access *a, struct access_conn *c, struct access_op *op,
                                struct access_side *side)
{
    access_weigh(a, op, side);
    c->troubled |= side->faults;
    return true;
}

bool access_may_change(struct access *a, unsigned host, bool polite)
{
    a->polite = polite;
    if (!access_each(a, host, access_side_may_change)) {
        /* each side has as many views as before, or one more: only a change that is not already
         * under way may be refused */
        g_assert(!a->pending[host]);
        access_each(a, host, access_side_forgets);
        return false;
    }
    access_each(a, host, access_side_changes);
    a->pending[host] = true;
    return true;
}

static bool access_side_has_changed(struct access *a, struct access_conn *c, struct access_op *op,
                                    struct access_side *side)
{
    const struct brought *to = side == &op->near ? &op->to_near : &op->to_far;
    uint32_t *last = side->view[side->views - 1];

    if (side->views == 1) {
        return true;
    }
    if (side == &op->far) {
        access_check_word(a, op);
    }
    if (side->writes) {
        mirror_settle(&a->mirror[side->host], side->view, side->views, op->len, to);
    }
    side->views--;
    access_drop_views(a, op, side, 0);
    side->view[0] = last;
    side->views = 1;
    side->moved = true;
    return true;
}

void access_has_changed(struct access *a, unsigned host)
{
    access_each(a, host, access_side_has_changed);
    a->pending[host] = false;
    mirror_check(&a->mirror[host]);
}

/* The connection of a QP of that host, or NULL. */
static struct access_conn *access_conn_of(struct access *a, unsigned host, uint32_t qpn)
{
    for (unsigned i = 0; i < ACCESS_CONNS; i++) {
        struct access_conn *c = &a->conn[i];

        if (!c->destroyed && access_has_qp(&c->end[host], qpn)) {
            return c;
        }
    }
    return NULL;
}

/* Calls a function for the sides at a host of the operations that a QP of it has requested, or that
 * its peer has requested. */
typedef void access_side_fn(struct access *a, struct access_op *op, struct access_side *side,
                            void *opaque);
static void access_each_side(struct access *a, struct access_conn *c, unsigned host, bool requester,
                             access_side_fn *fn, void *opaque)
{
    struct access_end *end = &c->end[requester ? host : !host];

    for (uint64_t nth = end->settled; nth < end->posted; nth++) {
        struct access_op *op = access_op_at(end, nth);

        if (op->what != ACCESS_CTRL) {
            fn(a, op, requester ? &op->near : &op->far, opaque);
        }
    }
}

static void access_side_may_fail(struct access *a, struct access_op *op, struct access_side *side,
                                 void *opaque)
{
    side->faults = true;
}

void access_may_fail(struct access *a, unsigned host, uint32_t qpn, bool requester, bool doubt)
{
    struct access_conn *c = access_conn_of(a, host, qpn);

    if (c) {
        c->doubtful[host][requester] = doubt;
    }
    if (c && doubt) {
        access_each_side(a, c, host, requester, access_side_may_fail, NULL);
        c->troubled = true;
    }
}

struct access_bytes {
    void (*fn)(void *opaque, uint32_t at, bool writes);
    void *opaque;
};

static void access_side_bytes(struct access *a, struct access_op *op, struct access_side *side,
                              void *opaque)
{
    const struct access_bytes *bytes = opaque;

    for (unsigned v = 0; v < side->views; v++) {
        for (uint32_t i = 0; i < op->len; i++) {
            bytes->fn(bytes->opaque, side->view[v][i], side->writes);
        }
    }
}

void access_each_byte(struct access *a, unsigned host, uint32_t qpn, bool requester,
                      void (*fn)(void *opaque, uint32_t at, bool writes), void *opaque)
{
    struct access_conn *c = access_conn_of(a, host, qpn);

    if (c) {
        access_each_side(a, c, host, requester, access_side_bytes,
                         &(struct access_bytes){fn, opaque});
    }
}

/* -- the end of a connection ------------------------------------------------------------------- */

static void access_be_quiet(struct access *a, struct access_conn *c)
{
    c->state = ACCESS_IS_QUIET;
    c->quiet_ns = sim_quiet_ns(a->job->sim);
}

/* None of its operations writes any more. */
static void access_rest(struct access *a, struct access_conn *c)
{
    for (unsigned e = 0; e < 2; e++) {
        struct access_end *end = &c->end[e];

        while (end->settled < end->posted) {
            access_settle(a, access_op_at(end, end->settled++), false);
        }
        end->receives_done = end->receives_posted;
    }
}

static void access_has_ended(struct access *a)
{
    if (a->ended) {
        a->ended(a);
    }
}

static void access_destroy_qps(struct access *a, struct access_conn *c)
{
    sim_note(a->job, "destroys QP 0x%x and 0x%x", c->end[0].qp->qp_num, c->end[1].qp->qp_num);
    access_has_ended(a);
    for (unsigned e = 0; e < 2; e++) {
        struct access_end *end = &c->end[e];

        access_free_queues(a, c, end);
        end->broken = true;
        while (end->done < end->posted) {
            struct access_op *op = access_op_at(end, end->done++);

            if (op->what == ACCESS_CTRL) {
                a->ctrl_done(a, op, IBV_WC_WR_FLUSH_ERR);
            }
        }
    }
    c->destroyed = true;
    access_rest(a, c);
    access_be_quiet(a, c);
}

static void access_drain(struct access *a, struct access_conn *c)
{
    access_has_ended(a);
    c->state = ACCESS_DRAINS;
    for (unsigned e = 0; e < 2; e++) {
        connect_move(a->job, c->end[e].qp, IBV_QPS_ERR);
    }
}

bool access_is_running(struct access *a, unsigned host, uint32_t qpn)
{
    const struct access_conn *c = access_conn_of(a, host, qpn);

    return c && c->state == ACCESS_RUNS;
}

void access_end(struct access *a, unsigned host, uint32_t qpn, bool destroy)
{
    struct access_conn *c = access_conn_of(a, host, qpn);

    if (c && c->state == ACCESS_RUNS) {
        (destroy ? access_destroy_qps : access_drain)(a, c);
    }
}

static bool access_is_drained(const struct access_conn *c)
{
    return c->end[0].done == c->end[0].posted && c->end[1].done == c->end[1].posted &&
           (c->service != SERVICE_UD ||
            (c->end[0].settled == c->end[0].posted && c->end[1].settled == c->end[1].posted)) &&
           c->end[0].receives_done == c->end[0].receives_posted &&
           c->end[1].receives_done == c->end[1].receives_posted;
}

/* The same after the end. The receives in a shared receive queue are not flushed. */
static bool access_has_drained(const struct access_conn *c)
{
    return c->service == SERVICE_OWN
               ? access_is_drained(c)
               : c->end[0].done == c->end[0].posted && c->end[1].done == c->end[1].posted;
}

/* -- steps ------------------------------------------------------------------------------------- */

/* Repeats a datagram that has not come. */
static bool access_repeat(struct access *a, struct access_conn *c, unsigned e)
{
    struct access_end *end = &c->end[e];

    if (!end->again_ns || a->job->sim->world->now_ns < end->again_ns) {
        return false;
    }
    end->again_ns = 0;
    end->done--;
    access_post_op(a, c, e, access_op_at(end, end->done), end->done);
    return true;
}

static bool access_run_conn(struct access *a, struct access_conn *c)
{
    bool did = false;

    if (c->end[0].broken || c->end[1].broken || c->over) {
        access_drain(a, c);
        return true;
    }
    if (chance_one_in(&a->job->chance, 64) && access_may_be_rude(a)) {
        access_destroy_qps(a, c);
        return true;
    }
    for (unsigned e = 0; e < 2; e++) {
        did |= access_repeat(a, c, e);
        if (chance_below(&a->job->chance, 4)) {
            did |= access_post(a, c, e);
        }
    }
    return did;
}

static bool access_step_conn(struct access *a, struct access_conn *c)
{
    bool did = access_poll(a, c, 0);

    did |= access_poll(a, c, 1);
    switch (c->state) {
    case ACCESS_RUNS:
        return access_run_conn(a, c) || did;
    case ACCESS_DRAINS:
        if (access_has_drained(c) && c->service != SERVICE_OWN) {
            access_destroy_qps(a, c);
            return true;
        }
        if (access_has_drained(c)) {
            access_rest(a, c);
            access_be_quiet(a, c);
            return true;
        }
        return did;
    default:
        if (a->job->sim->world->now_ns >= c->quiet_ns) {
            access_connect(a, c);
            return true;
        }
        return did;
    }
}

bool access_step(struct access *a)
{
    struct chance *chance = &a->job->chance;
    bool did = false;

    for (unsigned i = 0; i < ACCESS_CONNS; i++) {
        did |= access_step_conn(a, &a->conn[i]);
    }
    if (chance_one_in(chance, 8)) {
        struct mirror *m = &a->mirror[chance_below(chance, 2)];

        mirror_check(m);
        mirror_scribble(m);
    }
    return did;
}

bool access_is_done(const struct access *a)
{
    for (unsigned i = 0; i < ACCESS_CONNS; i++) {
        const struct access_conn *c = &a->conn[i];

        if (c->state != ACCESS_RUNS || c->ops < a->limit || !access_is_drained(c) ||
            c->end[0].broken || c->end[1].broken || c->over) {
            return false;
        }
    }
    return true;
}

void access_check(const struct access *a)
{
    mirror_check(&a->mirror[0]);
    mirror_check(&a->mirror[1]);
}
