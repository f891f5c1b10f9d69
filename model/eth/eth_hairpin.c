/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements hairpin queues: an SQ sends what an RQ of the same card receives, and software sees
 * none of it. They have no ring, no doorbell, no CQ and no PD; the context says how much the RQ
 * holds (driver: mlx5_core_hairpin_create(); DPDK: mlx5_rxq_obj_hairpin_new()).
 *
 * The two queues may belong to different functions of the card. Each names the other when it
 * becomes RDY: by its number, and by the vhca_id of its function. They are joined while both are
 * RDY and name each other, so neither can be used without the consent of its owner. Frames that
 * come to an RQ that is not joined are dropped and counted (out_of_buffer), as are frames for which
 * there is no room.
 *
 * Frames are copied into the RQ's buffer, which is allocated with the RQ. The work of the SQ sends
 * them in turns of the SQ's own function, through its rules for sent frames, as those of any SQ.
 * A frame keeps its VLAN tag, because the RQ has no CQE that could tell it. Register B of the rules
 * that led a frame to the RQ becomes register A for the rules that see it sent (DPDK:
 * MLX5_HAIRPIN_RX and MLX5_HAIRPIN_TX in mlx5_flow_get_reg_id()). No copy of a group's frame comes
 * back to the SQ's own function.
 *
 * The work of the SQ ends the wait of a frame. A received frame schedules this work, which waits
 * for credit, rate and scheduling as the work of any SQ does. If a queue leaves RDY, fails or ends
 * (also by the reset or the removal of its function), the two are parted, and the frames are
 * dropped.
 *
 * Rules can lead a hairpin's frames back to itself or around a ring of hairpins, for ever, as on a
 * card. There is no recursion, because a frame between functions is queued (docs/adr/0006), and
 * each step costs pieces of a turn. So that the clock goes on in spite of such a loop, an SQ sends
 * at most ETH_HAIRPIN_BURST frames at one time of the clock, and continues after a pause. The SQ's
 * timer ends this wait.
 */
#include <string.h>
#include "model/core/pd.h"
#include "model/eth/eth_hairpin.h"
#include "model/port/eswitch.h"
#include "model/queue/q_counter.h"
#include "wire/port.h"

struct eth_hairpin_frame {
    uint32_t len;
    uint32_t metadata;
};

/* Of an RQ: the frames that have come and are not sent. They lie one behind the other in a ring of
 * bytes. */
struct eth_hairpin_rq {
    struct hca *hca; /* the RQ's function */
    struct eth_rq *rq;
    struct eth_hairpin_sq *peer; /* NULL: not joined */
    uint8_t log_data, log_packets;
    uint32_t first, count; /* frames: the next one to be sent; how many */
    uint32_t head, used;   /* bytes: where the next frame begins; how many */
    uint8_t *bytes;
    struct eth_hairpin_frame frames[];
};

/* Of an SQ. */
struct eth_hairpin_sq {
    struct hca *hca; /* the SQ's function */
    struct eth_sq *sq;
    struct eth_hairpin_rq *peer; /* NULL: not joined */
    uint64_t now;                /* the clock when frames were last sent */
    unsigned sent;               /* how many at that time */
    struct hca_timer pause;
};

uint32_t eth_hairpin_vhca(const struct hca *hca)
{
    return hca->vport->number;
}

/* -- the bytes -------------------------------------------------------------------------------- */

static size_t hairpin_size(const struct eth_hairpin_rq *ring)
{
    return sizeof(*ring) + (sizeof(ring->frames[0]) << ring->log_packets) + (1u << ring->log_data);
}

/* Copies bytes into the ring, or out of it, from `at` on. */
static void hairpin_put(struct eth_hairpin_rq *ring, uint32_t at, const uint8_t *data, size_t len)
{
    uint32_t size = 1u << ring->log_data, begin = at & (size - 1);
    size_t n = MIN(len, size - begin);

    memcpy(ring->bytes + begin, data, n);
    memcpy(ring->bytes, data + n, len - n);
}

static void hairpin_get(const struct eth_hairpin_rq *ring, uint8_t *data, size_t len)
{
    uint32_t size = 1u << ring->log_data, begin = ring->head & (size - 1);
    size_t n = MIN(len, size - begin);

    memcpy(data, ring->bytes + begin, n);
    memcpy(data + n, ring->bytes, len - n);
}

static const struct eth_hairpin_frame *hairpin_first(const struct eth_hairpin_rq *ring)
{
    return &ring->frames[ring->first & ((1u << ring->log_packets) - 1)];
}

/* Moves the beginning of the ring over its first frame: forward (1), or back over the frame that
 * was the first (-1). */
static void hairpin_step(struct eth_hairpin_rq *ring, uint32_t len, int by)
{
    ring->first += (uint32_t)by;
    ring->count -= (uint32_t)by;
    ring->head += (uint32_t)by * len;
    ring->used -= (uint32_t)by * len;
}

bool eth_hairpin_take(struct hca *hca, struct eth_rq *rq, const struct eth_arrival *a)
{
    struct eth_hairpin_rq *ring = rq->hairpin;
    struct eth_hairpin_sq *peer = ring->peer;

    if (!peer || peer->hca->off || ring->count == 1u << ring->log_packets ||
        a->len > (1u << ring->log_data) - ring->used) {
        return false;
    }
    ring->frames[(ring->first + ring->count) & ((1u << ring->log_packets) - 1)] =
        (struct eth_hairpin_frame){.len = (uint32_t)a->len, .metadata = a->metadata};
    hairpin_put(ring, ring->head + ring->used, a->frame, a->len);
    ring->count++;
    ring->used += (uint32_t)a->len;
    if (ring->count == 1) {
        hca_schedule(peer->hca, &peer->sq->work);
    }
    return true;
}

/* -- sending ---------------------------------------------------------------------------------- */

/* Sends the first frame of the ring. The frame leaves the ring before it is committed, because what
 * the commit causes (a sniffer's DMA) may part the queues. False: there is no credit. */
static bool hairpin_send(struct hca *hca, struct eth_sq *sq, struct eth_hairpin_rq *ring)
{
    const struct eth_hairpin_frame first = *hairpin_first(ring);
    size_t padded = MAX(first.len, ETH_MIN_FRAME);
    uint8_t dmac[6];
    uint8_t *frame;

    hairpin_get(ring, dmac, sizeof(dmac));
    frame = port_tx_reserve(hca, dmac, eth_sq_priority(sq), padded);
    if (!frame) {
        return false;
    }
    hairpin_get(ring, frame, first.len);
    memset(frame + first.len, 0, padded - first.len);
    hairpin_step(ring, first.len, 1);
    if (!eth_commit(hca, sq, first.metadata, frame, padded)) {
        hairpin_step(ring, first.len, -1); /* rules have changed it, and nothing else was done */
        return false;
    }
    return true;
}

/* Whether the clock lets the SQ send one more frame. If not, the timer runs its work. */
static bool hairpin_may_send(struct hca *hca, struct eth_hairpin_sq *end)
{
    uint64_t now = hca_now(hca);

    if (now != end->now) {
        end->now = now;
        end->sent = 0;
    }
    if (end->sent == ETH_HAIRPIN_BURST) {
        hca_timer_set(hca, &end->pause, now + ETH_HAIRPIN_PAUSE_NS);
        return false;
    }
    return true;
}

static void hairpin_pause_over(struct hca *hca, struct hca_timer *timer)
{
    struct eth_hairpin_sq *end =
        (struct eth_hairpin_sq *)((char *)timer - offsetof(struct eth_hairpin_sq, pause));

    hca_schedule(hca, &end->sq->work);
}

static void hairpin_run(struct hca *hca, struct work *work)
{
    struct eth_sq *sq = (struct eth_sq *)((char *)work - offsetof(struct eth_sq, work));
    struct eth_hairpin_sq *end = sq->hairpin;

    for (unsigned n = 0; end->peer && end->peer->count; n++) {
        if (n == 16 || (n && !hca_may_go_on(hca))) {
            hca_schedule(hca, work);
            return;
        }
        if (!hairpin_may_send(hca, end) || !eth_sq_may_send(hca, sq)) {
            return;
        }
        if (!hairpin_send(hca, sq, end->peer)) {
            hca_wait_tx(hca, work);
            return;
        }
        end->sent++;
    }
}

/* -- a pair ----------------------------------------------------------------------------------- */

/* The function of the card that has this vhca_id, or NULL. */
static struct hca *hairpin_function(const struct hca *hca, uint32_t vhca)
{
    const struct vport *vport = eswitch_find_vport(hca->vport->sw, vhca);

    return vport ? vport->hca : NULL;
}

static struct eth_sq *hairpin_sq_of(struct hca *of, uint32_t num)
{
    struct eth_sq *sq = of ? eth_sq_find(of, num) : NULL;

    return sq && sq->hairpin ? sq : NULL;
}

static struct eth_rq *hairpin_rq_of(struct hca *of, uint32_t num)
{
    struct eth_rq *rq = of ? eth_rq_find(of, num) : NULL;

    return rq && rq->hairpin ? rq : NULL;
}

/* User contexts of different functions have nothing to do with each other. There, what protects a
 * queue is that it names its peer. */
static enum syn hairpin_check_uid(const struct hca *hca, const struct hca *of,
                                  const struct obj *peer, uint16_t uid)
{
    return hca != of || uid_may_use(peer, uid) ? SYN_OK : SYN_BAD_UID;
}

enum syn eth_hairpin_find_rq(struct hca *hca, uint16_t uid, uint32_t vhca, uint32_t num)
{
    struct hca *of = hairpin_function(hca, vhca);
    const struct eth_rq *rq = hairpin_rq_of(of, num);

    return rq ? hairpin_check_uid(hca, of, &rq->obj, uid) : SYN_HAIRPIN_PEER;
}

enum syn eth_hairpin_find_sq(struct hca *hca, uint16_t uid, uint32_t vhca, uint32_t num)
{
    struct hca *of = hairpin_function(hca, vhca);
    const struct eth_sq *sq = hairpin_sq_of(of, num);

    return sq ? hairpin_check_uid(hca, of, &sq->obj, uid) : SYN_HAIRPIN_PEER;
}

/* Joins the queues if both are RDY and name each other. */
static void hairpin_join(struct eth_sq *sq, struct eth_rq *rq)
{
    if (!sq || !rq || sq->state != PRM_SQC_STATE_RDY || rq->state != PRM_RQC_STATE_RDY ||
        PRM_GET(sqc, sq->sqc, hairpin_peer_rq) != rq->obj.num ||
        PRM_GET(sqc, sq->sqc, hairpin_peer_vhca) != eth_hairpin_vhca(rq->hairpin->hca) ||
        PRM_GET(rqc, rq->rqc, hairpin_peer_sq) != sq->obj.num ||
        PRM_GET(rqc, rq->rqc, hairpin_peer_vhca) != eth_hairpin_vhca(sq->hairpin->hca)) {
        return;
    }
    sq->hairpin->peer = rq->hairpin;
    rq->hairpin->peer = sq->hairpin;
}

void eth_hairpin_sq_ready(struct hca *hca, struct eth_sq *sq)
{
    struct hca *of = hairpin_function(hca, PRM_GET(sqc, sq->sqc, hairpin_peer_vhca));

    hairpin_join(sq, hairpin_rq_of(of, PRM_GET(sqc, sq->sqc, hairpin_peer_rq)));
}

void eth_hairpin_rq_ready(struct hca *hca, struct eth_rq *rq)
{
    struct hca *of = hairpin_function(hca, PRM_GET(rqc, rq->rqc, hairpin_peer_vhca));

    hairpin_join(hairpin_sq_of(of, PRM_GET(rqc, rq->rqc, hairpin_peer_sq)), rq);
}

/* The SQ's work finds nothing to do then, if it runs once more. */
static void hairpin_part(struct eth_hairpin_sq *end, struct eth_hairpin_rq *ring)
{
    q_counter_get(ring->hca, ring->rq->counter_set_id)->out_of_buffer += ring->count;
    ring->first = ring->count = ring->head = ring->used = 0;
    end->peer = NULL;
    ring->peer = NULL;
}

void eth_hairpin_sq_part(struct hca *hca, struct eth_sq *sq)
{
    if (sq->hairpin) {
        hca_timer_stop(hca, &sq->hairpin->pause);
        if (sq->hairpin->peer) {
            hairpin_part(sq->hairpin, sq->hairpin->peer);
        }
    }
}

void eth_hairpin_rq_part(struct hca *hca, struct eth_rq *rq)
{
    if (rq->hairpin && rq->hairpin->peer) {
        hairpin_part(rq->hairpin->peer, rq->hairpin);
    }
}

/* -- begin and end ---------------------------------------------------------------------------- */

static enum syn hairpin_check_size(const struct hca *hca, const struct prm_wq *wq)
{
    unsigned log_data = PRM_GET(wq, wq, log_hairpin_data_sz);

    if (!hca->limits.hairpin) {
        return SYN_ETH_WQ;
    }
    return log_data < ETH_HAIRPIN_LOG_DATA_MIN || log_data > ETH_HAIRPIN_LOG_DATA_MAX ||
                   PRM_GET(wq, wq, log_hairpin_num_packets) > ETH_HAIRPIN_LOG_PACKETS_MAX
               ? SYN_HAIRPIN_SIZE
               : SYN_OK;
}

enum syn eth_hairpin_sq_init(struct hca *hca, struct eth_sq *sq, const struct prm_wq *wq)
{
    enum syn syn = hairpin_check_size(hca, wq);

    if (syn != SYN_OK) {
        return syn;
    }
    if (hca->hairpin_sqs == 1u << ETH_HAIRPIN_LOG_QUEUES) {
        return SYN_NO_MEMORY;
    }
    sq->hairpin = ledger_alloc(&hca->memory, sizeof(*sq->hairpin));
    if (!sq->hairpin) {
        return SYN_NO_MEMORY;
    }
    sq->hairpin->hca = hca;
    sq->hairpin->sq = sq;
    sq->hairpin->pause.fire = hairpin_pause_over;
    sq->work.run = hairpin_run;
    hca->hairpin_sqs++;
    return SYN_OK;
}

enum syn eth_hairpin_rq_init(struct hca *hca, struct eth_rq *rq, const struct prm_wq *wq)
{
    struct eth_hairpin_rq size = {
        .log_data = (uint8_t)PRM_GET(wq, wq, log_hairpin_data_sz),
        .log_packets = (uint8_t)PRM_GET(wq, wq, log_hairpin_num_packets),
    };
    enum syn syn = hairpin_check_size(hca, wq);

    if (syn != SYN_OK) {
        return syn;
    }
    if (hca->hairpin_rqs == 1u << ETH_HAIRPIN_LOG_QUEUES) {
        return SYN_NO_MEMORY;
    }
    rq->hairpin = ledger_alloc(&hca->memory, hairpin_size(&size));
    if (!rq->hairpin) {
        return SYN_NO_MEMORY;
    }
    rq->hairpin->hca = hca;
    rq->hairpin->rq = rq;
    rq->hairpin->log_data = size.log_data;
    rq->hairpin->log_packets = size.log_packets;
    rq->hairpin->bytes = (uint8_t *)&rq->hairpin->frames[1u << size.log_packets];
    hca->hairpin_rqs++;
    return SYN_OK;
}

void eth_hairpin_sq_free(struct hca *hca, struct eth_sq *sq)
{
    if (sq->hairpin) {
        eth_hairpin_sq_part(hca, sq);
        hca->hairpin_sqs--;
        ledger_free(&hca->memory, sq->hairpin, sizeof(*sq->hairpin));
        sq->hairpin = NULL;
    }
}

void eth_hairpin_rq_free(struct hca *hca, struct eth_rq *rq)
{
    if (rq->hairpin) {
        eth_hairpin_rq_part(hca, rq);
        hca->hairpin_rqs--;
        ledger_free(&hca->memory, rq->hairpin, hairpin_size(rq->hairpin));
        rq->hairpin = NULL;
    }
}
