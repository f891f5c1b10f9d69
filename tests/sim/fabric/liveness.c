/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements liveness.h: examines all queues of all hosts again and again. */
#include "tests/sim/fabric/liveness.h"
#include <inttypes.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "model/rdma/cross.h"
#include "model/rdma/dct.h"
#include "model/rdma/rdma.h"
#include "model/rdma/reaction_point.h"
#include "model/rdma/requester_internal.h"
#include "model/rdma/responder_internal.h"
#include "model/rdma/wqe_source.h"

#define LOOK_NS   SIM_MS
#define LOOKS     256 /* QPs that are examined in that time */
#define ACK_UNIT  4096ull
#define RNR_MOST  (656 * SIM_MS) /* the longest RNR timer */
#define RATE_MOST SIM_SECOND     /* the longest time of a packet, at the lowest rate */
#define WORK_MOST (100 * SIM_MS) /* the longest time until a host does its work */

struct liveness {
    struct sim *sim;
    GPtrArray *hosts; /* struct sim_host */
    GHashTable *seen; /* number of host and QP -> struct seen */
    GHashTable *gpus; /* the same numbers, of queues that a GPU rings */
    uint64_t round;
};

/* The state of a queue with work in it when it last changed. */
struct seen {
    uint64_t at, since, round;
};

/* -- the requester ----------------------------------------------------------------------------- */

static uint64_t liveness_ack_ns(const struct qp *qp)
{
    return qp->service->reliable && qp->ack_timeout ? ACK_UNIT << (qp->ack_timeout & 31) : 0;
}

static bool liveness_is_running(const struct hca_timer *timer)
{
    return timer->pos;
}

/* Returns whether a doorbell has rung for WQEs that the queue has not read. */
static bool liveness_is_rung(const struct qp *qp)
{
    uint8_t record[4];

    if (qp->sq.gate) { /* whatever the record says */
        return qp->state == PRM_QP_STATE_RTS && wq_gate_open(&qp->sq);
    }
    if (qp->sq.no_record) {
        return qp->has_sq && qp->sq.told != (uint16_t)qp->sq.pi && qp->state == PRM_QP_STATE_RTS;
    }
    return qp->has_sq && qp->sq.rung && qp->state == PRM_QP_STATE_RTS &&
           qp->hca->ops->dma_read(qp->hca->host, qp->sq.dbr, record, sizeof(record)) &&
           (uint16_t)prm_load32(record) != (uint16_t)qp->sq.pi;
}

static bool liveness_by_nobody(const struct qp *qp)
{
    return false; /* it is on no list of work */
}

static bool liveness_by_state(const struct qp *qp)
{
    return qp->state != PRM_QP_STATE_RTS;
}

static bool liveness_by_post(const struct qp *qp)
{
    return !wqe_source_has_posted(qp) && !requester_started(qp) && !liveness_is_rung(qp);
}

static bool liveness_by_answer(const struct qp *qp)
{
    const struct flight *flight = qp->req.flight;

    return flight && qp->req.unacked_psn != flight->sent_psn &&
           (!liveness_ack_ns(qp) || liveness_is_running(&flight->timer));
}

static bool liveness_by_rnr(const struct qp *qp)
{
    const struct flight *flight = qp->req.flight;

    return flight && flight->recovery == RECOVERY_RNR_WAIT && liveness_is_running(&flight->timer);
}

static bool liveness_by_rate(const struct qp *qp)
{
    return qp->peer.limiter && liveness_is_running(&qp->peer.limiter->timer);
}

static bool liveness_by_page(const struct qp *qp)
{
    return qp->req.flight && flight_is_parked(qp->req.flight);
}

static bool liveness_by_cqe(const struct qp *qp)
{
    return qp->cross && qp->cross->wait.cq;
}

static bool liveness_by_pause(const struct qp *qp)
{
    return qp->cross && qp->cross->pause.next;
}

/* Each reason, what ends it, whether that waker must exist while the work is on no list, and how
 * long nothing may change; 0: without limit. */
static const struct {
    const char *reason, *waker;
    bool (*is_there)(const struct qp *qp);
    uint64_t most;
} waits[] = {
    [SEND_GOES_ON] = {"its turn", "its work", liveness_by_nobody, WORK_MOST},
    [SEND_WAITS_STATE] = {"another state", "MODIFY_QP", liveness_by_state, 0},
    [SEND_WAITS_POST] = {"something to be posted", "the doorbell", liveness_by_post, WORK_MOST},
    [SEND_WAITS_ANSWER] = {"an answer", "a response or the ACK timer", liveness_by_answer, 0},
    [SEND_WAITS_RNR] = {"a receiver that is ready", "the RNR timer", liveness_by_rnr, RNR_MOST},
    [SEND_WAITS_CREDIT] = {"credit on the wire", "the port", liveness_by_nobody, RATE_MOST},
    [SEND_WAITS_RATE] = {"its rate", "the limiter's timer", liveness_by_rate, RATE_MOST},
    [SEND_WAITS_PAGE] = {"a page", "the pager", liveness_by_page, 0},
    [SEND_WAITS_MEMORY] = {"memory for a flight", "the timer of late work", liveness_by_nobody,
                           RATE_MOST},
    [SEND_WAITS_CQE] = {"a CQE", "the CQ", liveness_by_cqe, 0},
    [SEND_WAITS_PAUSE] = {"the end of a pause", "its late work", liveness_by_pause, RATE_MOST},
};

static bool liveness_sends(const struct qp *qp)
{
    return qp_may_request(qp) &&
           (qp_may_send(qp) || qp->state == PRM_QP_STATE_ERR || qp->state == PRM_QP_STATE_SQER) &&
           (requester_started(qp) || wqe_source_has_posted(qp) || liveness_is_rung(qp));
}

/* In ERR and SQER the rest is flushed, by the work alone. */
static bool liveness_is_flushing(const struct qp *qp)
{
    return !qp_may_send(qp);
}

static bool liveness_sends_again(const struct qp *qp)
{
    return qp->req.work.next || (!liveness_is_flushing(qp) && waits[qp->req.waits].is_there(qp));
}

static uint64_t liveness_send_most(const struct qp *qp)
{
    uint64_t ack_ns = liveness_ack_ns(qp);

    if (liveness_is_flushing(qp)) {
        return WORK_MOST;
    }
    if (qp->req.waits == SEND_WAITS_ANSWER) {
        return ack_ns ? 2 * ack_ns + WORK_MOST : 0;
    }
    return waits[qp->req.waits].most;
}

/* -- the responder ----------------------------------------------------------------------------- */

static bool liveness_answers(const struct peer *peer)
{
    const struct responder *resp = &peer->resp;

    return resp->ack_due || (resp->answers && resp->answers->count);
}

static bool liveness_answers_again(const struct peer *peer)
{
    return peer->resp.work.next || (peer->limiter && liveness_is_running(&peer->limiter->timer));
}

/* -- both -------------------------------------------------------------------------------------- */

static uint64_t liveness_mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001b3ull;
}

static uint64_t liveness_where(const struct qp *qp)
{
    const struct flight *flight = qp->req.flight;
    const struct responder *resp = &qp->peer.resp;
    uint64_t hash = 0xcbf29ce484222325ull;

    hash = liveness_mix(hash, qp->state | (uint64_t)qp->req.waits << 8);
    hash = liveness_mix(hash, qp->req.unacked_psn | (uint64_t)qp->req.next_psn << 32);
    hash = liveness_mix(hash, qp->sq.ci);
    if (flight) {
        hash = liveness_mix(hash, flight->head | (uint64_t)flight->tail << 32);
        hash = liveness_mix(hash, flight->sent_psn | (uint64_t)flight->tx_psn << 32);
        hash =
            liveness_mix(hash, flight->retries | flight->rnr_retries << 8 | flight->recovery << 16 |
                                   (uint64_t)flight->timer.deadline << 24);
    }
    hash = liveness_mix(hash, resp->acked_psn | (uint64_t)resp->ack_due << 32);
    if (resp->answers && resp->answers->count) {
        hash = liveness_mix(hash, resp->answers->queue[resp->answers->head].psn |
                                      (uint64_t)resp->answers->count << 32);
    }
    return hash;
}

static void liveness_look_at_answers(const struct sim_host *host, const struct peer *peer)
{
    if (liveness_answers(peer) && !liveness_answers_again(peer)) {
        sim_fail(NULL, "host %u: QP 0x%x owes answers to QP 0x%x, and nobody sends them",
                 host->number, peer->qp->obj.num, peer->qpn);
    }
}

static uint64_t liveness_key(const struct sim_host *host, uint32_t qpn)
{
    return (uint64_t)host->number << 32 | qpn;
}

/* Returns whether nothing but the record tells of work: the doorbell may be under way. */
static bool liveness_may_ring(const struct liveness *l, const struct sim_host *host,
                              const struct qp *qp)
{
    uint64_t key = liveness_key(host, qp->obj.num);

    return !wqe_source_has_posted(qp) && !requester_started(qp) &&
           g_hash_table_contains(l->gpus, &key);
}

static void liveness_look_at_time(struct liveness *l, const struct sim_host *host,
                                  const struct qp *qp)
{
    uint64_t key = liveness_key(host, qp->obj.num), at = liveness_where(qp);
    uint64_t now = l->sim->world->now_ns;
    bool sends = liveness_sends(qp);
    uint64_t most = sends ? liveness_send_most(qp) : RATE_MOST;
    struct seen *seen = g_hash_table_lookup(l->seen, &key);

    if (!seen) {
        seen = g_new0(struct seen, 1);
        g_hash_table_insert(l->seen, g_memdup2(&key, sizeof(key)), seen);
    }
    if (seen->at != at || seen->round + 1 < l->round) {
        *seen = (struct seen){.at = at, .since = now};
    }
    seen->round = l->round;
    if (most && now - seen->since > most + 10 * l->sim->options.whims + LOOK_NS) {
        sim_fail(NULL, "host %u: QP 0x%x has waited for %s since %.3f us: %s ends that in time",
                 host->number, qp->obj.num, sends ? waits[qp->req.waits].reason : "what it answers",
                 (double)seen->since / 1000, sends ? waits[qp->req.waits].waker : "its work");
    }
}

static void liveness_look_at(struct liveness *l, const struct sim_host *host, const struct qp *qp)
{
    bool sends = liveness_sends(qp);

    if (sends && !liveness_sends_again(qp) && !liveness_may_ring(l, host, qp)) {
        sim_fail(NULL, "host %u: QP 0x%x is idle with work in it: it waits for %s, which %s ends",
                 host->number, qp->obj.num,
                 liveness_is_flushing(qp) ? "its turn" : waits[qp->req.waits].reason,
                 liveness_is_flushing(qp) ? "its work" : waits[qp->req.waits].waker);
    }
    liveness_look_at_answers(host, &qp->peer);
    if (sends || liveness_answers(&qp->peer)) {
        liveness_look_at_time(l, host, qp);
    }
}

static struct hca *liveness_hca(const struct sim_host *host)
{
    return &hv_context(host->ctx)->hca->local->fw->hca;
}

static bool liveness_is_qp(const struct obj *obj)
{
    return obj->kind == OBJ_QP || obj->kind == OBJ_XRQ_DCI;
}

/* Returns the number of examined QPs. */
static unsigned liveness_look_at_host(struct liveness *l, const struct sim_host *host)
{
    struct hca *hca = liveness_hca(host);
    unsigned n = 0;

    if (host->is_reset) {
        return 0;
    }
    OBJ_TABLE_FOREACH (obj, &hca->qpns) {
        if (liveness_is_qp(obj)) {
            liveness_look_at(l, host, (const struct qp *)obj);
            n++;
        }
    }
    for (const GList *link = hca->rdma->dc.responders.head; link; link = link->next) {
        liveness_look_at_answers(host, &((const struct dc_responder *)link->data)->peer);
        n++;
    }
    return n;
}

/* With many QPs the next examination is later. */
static void liveness_look(void *opaque, void *what)
{
    struct liveness *l = opaque;
    unsigned n = 0;

    l->round++;
    for (unsigned i = 0; i < l->hosts->len; i++) {
        n += liveness_look_at_host(l, g_ptr_array_index(l->hosts, i));
    }
    timeline_at(l->sim->timeline, l->sim->world->now_ns + LOOK_NS * (1 + n / LOOKS), liveness_look,
                l, NULL);
}

/* -- life -------------------------------------------------------------------------------------- */

struct liveness *liveness_new(struct sim *sim)
{
    struct liveness *l = g_new0(struct liveness, 1);

    l->sim = sim;
    l->hosts = g_ptr_array_new();
    l->seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    l->gpus = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    timeline_at(sim->timeline, sim->world->now_ns + LOOK_NS, liveness_look, l, NULL);
    return l;
}

static void liveness_drop_nothing(gpointer what)
{
}

void liveness_free(struct liveness *l)
{
    timeline_forget(l->sim->timeline, liveness_look, liveness_drop_nothing);
    g_ptr_array_free(l->hosts, TRUE);
    g_hash_table_unref(l->seen);
    g_hash_table_unref(l->gpus);
    g_free(l);
}

void liveness_host_up(struct liveness *l, const struct sim_host *host)
{
    g_ptr_array_add(l->hosts, (gpointer)host);
}

void liveness_host_down(struct liveness *l, const struct sim_host *host)
{
    g_ptr_array_remove(l->hosts, (gpointer)host);
}

void liveness_gpu_rings(struct liveness *l, const struct sim_host *host, uint32_t qpn, bool does)
{
    uint64_t key = liveness_key(host, qpn);

    if (does) {
        g_hash_table_add(l->gpus, g_memdup2(&key, sizeof(key)));
    } else {
        g_hash_table_remove(l->gpus, &key);
    }
}

char *liveness_tell(struct liveness *l)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < l->hosts->len; i++) {
        const struct sim_host *host = g_ptr_array_index(l->hosts, i);

        OBJ_TABLE_FOREACH (obj, &liveness_hca(host)->qpns) {
            const struct qp *qp = (const struct qp *)obj;

            if (liveness_is_qp(obj) && liveness_sends(qp)) {
                g_string_append_printf(text, "\n  host %u: QP 0x%x waits for %s", host->number,
                                       obj->num, waits[qp->req.waits].reason);
            }
        }
    }
    return g_string_free(text, FALSE);
}
