/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues that a peer starts, and completions for which it waits (ibv_exp_peer_*). Lists are
 * committed, executed in whole or in part, twice, or only the last of several; rolled back in each
 * way, also when that must be refused; and polls are blocked until the peer's waits are over.
 *
 * Each work request adds a number to a word of the other host, and brings the word's old value. So
 * the values tell which requests were executed, and in which order.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/liveness.h"
#include "tests/verbs/peer_device.h"

#define LANES  3u
#define WINDOW 8u
#define CQES   16u /* entries of a CQ, and waits of it */
#define LISTS  WINDOW

struct peers_op {
    uint64_t wr_id, add;
};

/* A list that the peer has not begun, or the last that it has begun. Counters are of requests. */
struct peers_list {
    struct peer_list list;
    uint64_t begin, end, id;
};

enum peers_wait_state {
    PEERS_WAIT_FREE,
    PEERS_WAIT_BLOCKS,
    PEERS_WAIT_IS_OVER, /* executed or aborted */
};

struct peers_wait {
    enum peers_wait_state state;
    struct peer_list list;
    uint32_t entry; /* of all completions of the CQ */
    uint64_t id;
    uint64_t order; /* of its request */
};

struct peers_lane {
    struct sim_host *from, *to;
    struct peer_device peer;
    struct ibv_cq *cq, *far_cq;
    struct ibv_qp *qp, *far_qp;
    struct span near, far;
    /* posted >= committed >= started >= done, of requests */
    struct peers_op op[WINDOW];
    uint64_t posted, committed, started, done;
    uint64_t word;                 /* after the requests that are done */
    uint64_t next_id;              /* of requests */
    struct peers_list list[LISTS]; /* which the peer has not begun */
    unsigned num;
    struct peers_list now; /* which the peer executes, or has executed last */
    bool again;            /* it executes it once more */
    struct peers_wait wait[CQES];
    uint64_t next_order;
};

struct peers_job {
    struct peers_lane lane[LANES];
    unsigned num;
    uint64_t limit;
};

/* -- made -------------------------------------------------------------------------------------- */

static void peers_make_queues(struct job *job, struct peers_lane *l)
{
    struct chance *chance = &job->chance;
    uint64_t caps = chance_one_in(chance, 3) ? PEER_CAPS_GEQ : PEER_CAPS_NOR;
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = CQES - 1};
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = WINDOW, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = l->from->pd,
    };
    struct ibv_qp_init_attr far_attr = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct hv_qp_extra extra = {.peer = &l->peer.attr};
    struct user_cq *cq;

    peer_device_init(&l->peer, caps, false);
    if (chance_one_in(chance, 2)) {
        l->peer.attr.caps |= IBV_EXP_PEER_OP_COPY_BLOCK_CAP;
        l->peer.attr.peer_dma_op_map_len = chance_one_in(chance, 2) ? 256 : 32;
    }
    cq = hv_cq_create_for_peer(l->from->ctx, &cq_attr, NULL, &l->peer.attr);
    sim_check(job, cq, "no CQ for a peer: errno %d", errno);
    l->cq = &cq->ibv;
    attr.send_cq = attr.recv_cq = l->cq;
    l->qp = hv_qp_create(l->from->ctx, &attr, &extra);
    sim_check(job, l->qp, "no QP for a peer: errno %d", errno);
    l->far_cq = ibv_create_cq(l->to->ctx, 1, NULL, NULL, 0);
    far_attr.send_cq = far_attr.recv_cq = l->far_cq;
    l->far_qp = ibv_create_qp(l->to->pd, &far_attr);
    sim_check(job, l->far_qp, "no QP: errno %d", errno);
}

static void kind_peers_make(struct job *job)
{
    struct peers_job *p = job->state;

    p->num = (unsigned)chance_from(&job->chance, 1, LANES);
    p->limit = job->sim->options.ops;
    for (unsigned i = 0; i < p->num; i++) {
        struct peers_lane *l = &p->lane[i];
        bool back = chance_one_in(&job->chance, 3);

        l->from = job->host[back];
        l->to = job->host[!back];
        peers_make_queues(job, l);
        l->near = sim_span(job, l->from, WINDOW * sizeof(uint64_t));
        l->far = sim_span(job, l->to, sizeof(uint64_t));
        liveness_gpu_rings(job->sim->liveness, l->from, l->qp->qp_num, true);
        connect_rc_patiently(job, (struct sim_host *[]){l->from, l->to},
                             (struct ibv_qp *[]){l->qp, l->far_qp});
    }
}

/* -- the program posts, commits and rolls back ------------------------------------------------- */

static bool peers_post(struct job *job, struct peers_lane *l)
{
    struct peers_op *op = &l->op[l->posted % WINDOW];
    struct ibv_sge sge = {(uintptr_t)(l->near.at + l->posted % WINDOW * sizeof(uint64_t)),
                          sizeof(uint64_t), l->near.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)l->far.at,
                                           .rkey = l->far.mr->rkey}},
                       *bad;

    if (l->posted - l->done == WINDOW) {
        return false;
    }
    *op = (struct peers_op){.wr_id = l->next_id++, .add = chance_from(&job->chance, 1, 1000)};
    wr.wr_id = op->wr_id;
    wr.wr.atomic.compare_add = op->add;
    sim_must(job, ibv_post_send(l->qp, &wr, &bad));
    l->posted++;
    return true;
}

static bool peers_commit(struct job *job, struct peers_lane *l)
{
    struct peers_list *list = &l->list[l->num];

    if (l->num == LISTS) {
        return false;
    }
    sim_must(job, peer_list_commit(&list->list, l->qp, &list->id));
    sim_check(job, list->list.num == (l->posted == l->committed ? 0 : 3),
              "a list of %" PRIu64 " requests has %u operations", l->posted - l->committed,
              list->list.num);
    if (!list->list.num) {
        return false;
    }
    list->begin = l->committed;
    list->end = l->committed = l->posted;
    l->num++;
    return true;
}

/* Forgets the lists that begin at this request or later, and the requests. */
static void peers_take_back(struct peers_lane *l, uint64_t to)
{
    while (l->num && l->list[l->num - 1].begin >= to) {
        l->num--;
    }
    l->posted = l->committed = to;
}

static void peers_roll_back(struct job *job, struct peers_lane *l)
{
    struct chance *chance = &job->chance;
    unsigned nth = (unsigned)chance_below(chance, LISTS);
    struct peers_list list = nth < l->num ? l->list[nth] : l->now;
    struct ibv_exp_rollback_ctx rollback = {.rollback_id = list.id,
                                            .flags = (uint32_t)chance_below(chance, 4)};
    bool all = rollback.flags & IBV_EXP_ROLLBACK_ABORT_UNCOMMITED;
    bool late = rollback.flags & IBV_EXP_ROLLBACK_ABORT_LATE;
    bool known = nth < l->num && (late || list.end == l->posted);
    int err = ibv_exp_rollback_qp(l->qp, &rollback);

    sim_check(job, err == (all || known ? 0 : -ERANGE),
              "a rollback with flags %u of list %u of %u is %d", rollback.flags, nth, l->num, err);
    if (!err) {
        peers_take_back(l, all ? l->started : list.begin);
    }
    sim_note(job, "rollback with flags %u: %d, %" PRIu64 " requests are left", rollback.flags, err,
             l->posted - l->started);
}

/* -- the peer executes lists ------------------------------------------------------------------- */

/* The peer begins a list, perhaps not the first. */
static bool peers_begin(struct job *job, struct peers_lane *l)
{
    unsigned nth = chance_one_in(&job->chance, 4) ? (unsigned)chance_below(&job->chance, LISTS) : 0;

    if (nth >= l->num || l->now.list.done < l->now.list.num) {
        return false;
    }
    l->now = l->list[nth];
    l->again = false;
    l->num -= nth + 1;
    memmove(l->list, &l->list[nth + 1], l->num * sizeof(*l->list));
    l->started = l->now.end; /* with its next step */
    return true;
}

/* The peer executes some operations, the first as soon as the list has begun. True: they are the
 * list's first execution. */
static bool peers_execute(struct job *job, struct peers_lane *l)
{
    struct peer_list *list = &l->now.list;
    unsigned num = list->num;

    if (peers_begin(job, l)) {
        num = list->num;
        list->num = (unsigned)chance_from(&job->chance, 1, num);
        peer_list_run(list);
        list->num = num;
        return true;
    }
    if (list->done == num && chance_one_in(&job->chance, 8)) {
        list->done = 0;
        l->again = true;
    }
    return num && list->done < num && peer_list_run(list) && !l->again;
}

/* -- waits ------------------------------------------------------------------------------------- */

static void peers_wait(struct job *job, struct peers_lane *l)
{
    struct chance *chance = &job->chance;
    bool relative = chance_one_in(chance, 2);
    uint32_t ahead = (uint32_t)chance_below(chance, chance_one_in(chance, 3) ? CQES + 2 : 3);
    uint32_t entry = (uint32_t)l->done + ahead - (uint32_t)chance_below(chance, 2);
    struct peers_wait *wait = NULL;
    struct peer_list list;
    uint64_t id;
    int err, expected = 0;

    for (unsigned i = 0; i < CQES && !wait; i++) {
        wait = l->wait[i].state == PEERS_WAIT_FREE ? &l->wait[i] : NULL;
    }
    if ((int32_t)(entry - (uint32_t)l->done) > (int32_t)CQES - (relative ? 2 : 1)) {
        expected = E2BIG;
    } else if (!wait) {
        expected = ENOMEM;
    }
    err = relative ? peer_list_peek(&list, l->cq, IBV_EXP_PEER_PEEK_RELATIVE,
                                    entry + 1 - (uint32_t)l->done, &id)
                   : peer_list_peek(&list, l->cq, IBV_EXP_PEER_PEEK_ABSOLUTE, entry, &id);
    sim_check(job, err == expected, "a wait for entry %u, of which %" PRIu64 " are polled, is %d",
              entry, l->done, err);
    if (!err) {
        *wait = (struct peers_wait){PEERS_WAIT_BLOCKS, list, entry, id, l->next_order++};
    }
}

/* The peer looks whether a wait is over, or the program aborts it. */
static void peers_end_wait(struct job *job, struct peers_lane *l)
{
    struct peers_wait *wait = &l->wait[chance_below(&job->chance, CQES)];
    struct ibv_exp_peer_abort_peek abort_peek = {.peek_id = wait->id};

    if (wait->state == PEERS_WAIT_FREE) {
        sim_check(job, !wait->id || !ibv_exp_peer_abort_peek_cq(l->cq, &abort_peek),
                  "an abort of a wait that is over fails");
        return;
    }
    if (chance_one_in(&job->chance, 6)) {
        sim_must(job, ibv_exp_peer_abort_peek_cq(l->cq, &abort_peek));
        wait->state = PEERS_WAIT_IS_OVER;
        return;
    }
    if (wait->state != PEERS_WAIT_BLOCKS || !peer_list_run(&wait->list)) {
        return;
    }
    sim_check(job, (int32_t)(wait->entry - (uint32_t)l->started) < 0,
              "a wait for entry %u is over; %" PRIu64 " requests are started", wait->entry,
              l->started);
    wait->state = PEERS_WAIT_IS_OVER;
}

/* The newest wait for the entry that is polled next, or NULL. */
static struct peers_wait *peers_newest_wait(struct peers_lane *l)
{
    struct peers_wait *newest = NULL;

    for (unsigned i = 0; i < CQES; i++) {
        struct peers_wait *wait = &l->wait[i];

        if (wait->state != PEERS_WAIT_FREE && wait->entry % CQES == l->done % CQES &&
            (!newest || wait->order > newest->order)) {
            newest = wait;
        }
    }
    return newest;
}

/* Whether a poll stops before the next entry. It frees the waits for the entry that are over. */
static bool peers_is_blocked(struct peers_lane *l)
{
    struct peers_wait *wait;

    while ((wait = peers_newest_wait(l))) {
        if (wait->state == PEERS_WAIT_BLOCKS) {
            return true;
        }
        wait->state = PEERS_WAIT_FREE;
    }
    return false;
}

/* -- completions ------------------------------------------------------------------------------- */

static void peers_complete(struct job *job, struct peers_lane *l, const struct ibv_wc *wc)
{
    const struct peers_op *op = &l->op[l->done % WINDOW];
    uint64_t found;

    sim_check(job, l->done < l->started, "a completion of a request that the peer did not start");
    sim_check(job, wc->status == IBV_WC_SUCCESS && wc->wr_id == op->wr_id,
              "the completion of request %" PRIu64 " has status %d and wr_id %" PRIu64, op->wr_id,
              wc->status, wc->wr_id);
    memcpy(&found, l->near.at + l->done % WINDOW * sizeof(found), sizeof(found));
    sim_check(job, found == l->word, "the word is %" PRIu64 ", not %" PRIu64, found, l->word);
    l->word += op->add;
    l->done++;
    job->sim->tally.messages++;
    job->sim->tally.checks++;
}

static bool peers_poll(struct job *job, struct peers_lane *l)
{
    struct ibv_wc wc[4];
    int num = (int)chance_from(&job->chance, 1, 4), polled;
    bool blocked = false;

    errno = 0;
    polled = ibv_poll_cq(l->cq, num, wc);
    sim_check(job, polled >= 0, "a poll is %d", polled);
    for (int i = 0; i < polled; i++) {
        sim_check(job, !peers_is_blocked(l), "a poll takes an entry that a wait blocks");
        peers_complete(job, l, &wc[i]);
    }
    if (polled < num) {
        blocked = peers_is_blocked(l);
    }
    sim_check(job, polled || blocked == (errno == EBUSY), "a poll of %s entry has errno %d",
              blocked ? "a blocked" : "an unblocked", errno);
    return polled;
}

/* -- steps ------------------------------------------------------------------------------------- */

static bool peers_is_over(const struct peers_job *p, const struct peers_lane *l)
{
    return l->done >= p->limit;
}

/* True: requests got on. An action that can be repeated for ever is no progress: else time would
 * hardly pass while a device waits for a timer, and a run that stands would not be noticed. */
static bool peers_step(struct job *job, struct peers_lane *l)
{
    const struct peers_job *p = job->state;

    if (peers_is_over(p, l)) { /* what was started ends */
        bool executed;

        l->num = 0;
        peers_end_wait(job, l);
        executed = peers_execute(job, l);
        return peers_poll(job, l) || executed;
    }
    switch (chance_below(&job->chance, 10)) {
    case 0:
    case 1:
        return peers_post(job, l);
    case 2:
        return peers_commit(job, l);
    case 3:
        if (chance_one_in(&job->chance, 10)) {
            peers_roll_back(job, l);
        }
        return false;
    case 4:
        peers_wait(job, l);
        return false;
    case 5:
    case 6:
        peers_end_wait(job, l);
        return false;
    case 7:
        return peers_poll(job, l);
    default:
        return peers_execute(job, l);
    }
}

static bool kind_peers_step(struct job *job)
{
    struct peers_job *p = job->state;
    bool did = false;

    for (unsigned i = 0; i < p->num; i++) {
        for (unsigned n = 0; n < 6; n++) {
            did |= peers_step(job, &p->lane[i]);
        }
    }
    return did;
}

static bool kind_peers_is_done(const struct job *job)
{
    const struct peers_job *p = job->state;

    for (unsigned i = 0; i < p->num; i++) {
        const struct peers_lane *l = &p->lane[i];

        if (!peers_is_over(p, l) || l->done < l->started) {
            return false;
        }
    }
    return true;
}

/* Requests that no peer started have done nothing. */
static void kind_peers_check(struct job *job)
{
    const struct peers_job *p = job->state;

    for (unsigned i = 0; i < p->num; i++) {
        const struct peers_lane *l = &p->lane[i];
        uint64_t word;

        memcpy(&word, l->far.at, sizeof(word));
        sim_check(job, word == l->word, "the word is %" PRIu64 ", not %" PRIu64, word, l->word);
    }
}

static void kind_peers_free(struct job *job)
{
    struct peers_job *p = job->state;

    for (unsigned i = 0; i < p->num; i++) {
        struct peers_lane *l = &p->lane[i];

        liveness_gpu_rings(job->sim->liveness, l->from, l->qp->qp_num, false);
        sim_must(job, ibv_destroy_qp(l->qp));
        sim_must(job, ibv_destroy_qp(l->far_qp));
        sim_must(job, ibv_destroy_cq(l->cq));
        sim_must(job, ibv_destroy_cq(l->far_cq));
        sim_span_free(job, &l->near);
        sim_span_free(job, &l->far);
        sim_check(job, !l->peer.areas, "the peer knows %u areas of queues that are gone",
                  l->peer.areas);
    }
}

const struct kind kind_peers = {
    .name = "peers",
    .about = "send queues that a peer starts, and completions for which it waits",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct peers_job),
    .make = kind_peers_make,
    .step = kind_peers_step,
    .is_done = kind_peers_is_done,
    .check = kind_peers_check,
    .free = kind_peers_free,
};
