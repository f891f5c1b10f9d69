/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the dynamically connected transport on a bad cable: a few initiators, many short sessions
 * with several targets, fewer responders than initiators. Packets are lost, duplicated and delayed
 * by seconds, access keys are wrong, hosts sleep. Every completed operation was carried out once,
 * every failed operation at most once. A seed gives the same run again.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/queue/q_counter.h"
#include "model/rdma/dci.h"
#include "tests/sim/seeds.h"
#include "tests/unit/dc_lab.h"
#include "tests/unit/suite.h"

#define DCIS    6
#define DCTS    3
#define STEPS   250
#define MOST    6     /* outstanding WQEs of an initiator */
#define OPS     20000 /* the most operations of a run */
#define SLOTS   (1u << DC_LAB_LOG)
#define LATE_MS 3000 /* the most delay of a packet: less than DC_LATE_NS */

enum op_state {
    OP_POSTED = 1,
    OP_DONE,
    OP_FAILED,
};

struct op {
    uint8_t state, carried_out; /* of a SEND: the number of received messages */
    uint8_t opcode;
    uint8_t dci;
};

struct initiator {
    struct lab_qp qp;
    struct lab_qp_attr attr;
    struct lab_path path;
    uint64_t words;   /* memory at the far side: a word for each target */
    unsigned at[128]; /* the operation of the WQE at each place in the queue */
    unsigned posted;  /* posted and not completed */
    uint64_t added[DCTS], tried[DCTS];
    uint8_t target[128];
};

struct target {
    struct lab_dct dct;
    uint64_t mem;
    bool starves;   /* does not post receives at the moment */
    unsigned ready; /* posted receives */
    bool busy[SLOTS];
};

struct late {
    uint64_t due;
    unsigned from;
    size_t len;
    uint8_t *frame;
};

static struct run {
    struct lab *lab;
    GRand *rand;
    struct initiator dci[DCIS];
    struct target dct[DCTS];
    struct op op[OPS];
    unsigned num_ops;
    uint64_t src;
    GArray *late;
    unsigned lose, twice, delay; /* per thousand packets */
    unsigned receives, scarce;   /* the most of a target; how often it posts none, per thousand */
    uint64_t done, failed, connects, rnr_naks;
    FILE *capture; /* NULL: no capture */
} r;

static unsigned upto(unsigned max)
{
    return (unsigned)g_rand_int_range(r.rand, 0, (gint32)max + 1);
}

static bool happens(unsigned per_thousand)
{
    return upto(999) < per_thousand;
}

/* -- the cable --------------------------------------------------------------------------------- */

static void keep(unsigned from, const struct roce_packet *pkt)
{
    const uint8_t *frame = pkt->payload - roce_header_len(pkt);
    struct late late = {
        .due = r.lab->side[0].host.now + upto(happens(100) ? LATE_MS : 20) * LAB_MS,
        .from = from,
        .len = roce_frame_len(pkt, pkt->payload_len),
    };

    late.frame = g_memdup2(frame, late.len);
    g_array_append_val(r.late, late);
}

/* HCASIM_SIM_CAPTURE=FILE: the packets of the last seed on a wire without faults, as pcap;
 * HCASIM_SIM_CAPTURE_LOSSY=FILE: the packets on a bad wire, as they were sent. */
static void capture(const struct roce_packet *pkt)
{
    const uint8_t *frame = pkt->payload - roce_header_len(pkt);
    uint64_t now = r.lab->side[0].host.now;
    uint32_t len = (uint32_t)roce_frame_len(pkt, pkt->payload_len);
    uint32_t head[] = {(uint32_t)(now / 1000000000), (uint32_t)(now % 1000000000), len, len};

    if (r.capture) {
        fwrite(head, sizeof(head), 1, r.capture);
        fwrite(frame, len, 1, r.capture);
    }
}

static void open_capture(bool faults)
{
    static const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    const char *path = getenv(faults ? "HCASIM_SIM_CAPTURE_LOSSY" : "HCASIM_SIM_CAPTURE");

    if (path) {
        r.capture = fopen(path, "wb");
        ck_assert_ptr_nonnull(r.capture);
        fwrite(head, sizeof(head), 1, r.capture);
    }
}

static bool tap(struct lab *lab, unsigned from, const struct roce_packet *pkt)
{
    capture(pkt);
    r.connects += pkt->opcode == (BTH_DC | BTH_CONNECT) && !pkt->solicited;
    r.rnr_naks +=
        pkt->opcode == (BTH_DC | BTH_ACK) && aeth_class(pkt->aeth.syndrome) == AETH_CLASS_RNR_NAK;
    if (happens(r.lose)) {
        return false;
    }
    if (happens(r.twice)) {
        keep(from, pkt);
    }
    if (happens(r.delay)) {
        keep(from, pkt);
        return false;
    }
    return true;
}

static void deliver_late(void)
{
    for (unsigned i = 0; i < r.late->len; i++) {
        struct late late = g_array_index(r.late, struct late, i);
        uint8_t *room;

        if (late.due > r.lab->side[0].host.now) {
            continue;
        }
        room = wire_tx_reserve(r.lab->mid[!late.from], late.len);
        if (!room) {
            break;
        }
        memcpy(room, late.frame, late.len);
        wire_tx_commit(r.lab->mid[!late.from], late.len);
        g_free(late.frame);
        g_array_remove_index_fast(r.late, i--);
        lab_run(r.lab);
    }
}

/* Advances time; delayed packets arrive when they are due. */
static void pass(uint64_t ns)
{
    uint64_t end = r.lab->side[0].host.now + ns;

    lab_run(r.lab);
    while (r.lab->side[0].host.now < end) {
        /* packets that are kept meanwhile arrive at most this late */
        uint64_t next = MIN(end, r.lab->side[0].host.now + 50 * LAB_MS);

        for (unsigned i = 0; i < r.late->len; i++) {
            next = MIN(next, g_array_index(r.late, struct late, i).due);
        }
        r.lab->num_packets = 0;
        lab_advance(r.lab, MAX(next, r.lab->side[0].host.now + 1) - r.lab->side[0].host.now);
        deliver_late();
    }
}

/* -- requests --------------------------------------------------------------------------------- */

static void start(struct initiator *a)
{
    uint32_t psn = g_rand_int(r.rand) & PSN_MASK;

    PRM_SET(qp_dbr, lab_ptr(a->qp.side, a->qp.dbr, 8), send_counter, 0);
    ck_assert_int_eq(lab_modify(&a->qp, PRM_CMD_OP_RST2INIT_QP, &a->path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a->qp, PRM_CMD_OP_INIT2RTR_QP, &a->path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&a->qp, PRM_CMD_OP_RTR2RTS_QP, &a->path, psn, NULL), SYN_OK);
    a->qp.sq_pi = 0;
}

static void post(unsigned nth)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_SEND,      PRM_WQE_OPCODE_SEND,       PRM_WQE_OPCODE_ATOMIC_FA,
        PRM_WQE_OPCODE_ATOMIC_FA, PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_READ,
    };
    struct initiator *a = &r.dci[nth];
    unsigned t = upto(DCTS - 1);
    struct lab_wr wr = {
        .opcode = opcodes[upto(5)],
        .num_sge = 1,
        .raddr = a->words + t * 8,
        .rkey = r.lab->side[1].key,
        .swap_add = 1,
        .stream = (uint16_t)upto(9),
    };
    uint32_t id = r.num_ops++;

    ck_assert_uint_lt(id, OPS);
    r.op[id] = (struct op){.state = OP_POSTED, .opcode = wr.opcode, .dci = (uint8_t)nth};
    lab_to(&wr, &r.dct[t].dct);
    if (wr.opcode == PRM_WQE_OPCODE_SEND) {
        wr.num_sge = 0;
        wr.inline_data = &id;
        wr.inline_len = sizeof(id);
    } else if (wr.opcode == PRM_WQE_OPCODE_ATOMIC_FA) {
        wr.sge[0] = (struct lab_sge){r.src, 8, 0};
        a->tried[t]++;
    } else {
        /* a READ must not change the bytes that a WRITE sends: a retransmission must be the same */
        wr.sge[0] = (struct lab_sge){r.src + (wr.opcode == PRM_WQE_OPCODE_RDMA_READ ? 4096 : 64),
                                     upto(3000), 0};
        wr.raddr = a->words + 4096;
    }
    if (happens(10)) {
        wr.dc_key++;
    } else if (happens(10)) {
        wr.rkey ^= 0x100;
    }
    a->at[a->qp.sq_pi % 128] = id;
    a->target[a->qp.sq_pi % 128] = (uint8_t)t;
    a->posted++;
    lab_post(&a->qp, &wr);
}

static void post_receives(struct target *t)
{
    while (!t->starves && t->ready < r.receives && !t->busy[t->dct.posted % SLOTS]) {
        unsigned slot = t->dct.posted % SLOTS;

        t->busy[slot] = true;
        t->ready++;
        lab_dct_post_recv(&t->dct, t->mem + slot * 64, 64);
    }
}

/* -- results ---------------------------------------------------------------------------------- */

static void completed(const struct lab_cqe *cqe)
{
    for (unsigned i = 0; i < DCIS; i++) {
        struct initiator *a = &r.dci[i];

        if (a->qp.qp->obj.num == cqe->qpn) {
            unsigned place = cqe->counter % 128;
            struct op *op = &r.op[a->at[place]];

            ck_assert_uint_eq(op->state, OP_POSTED);
            a->posted--;
            op->state = cqe->opcode == PRM_CQE_OPCODE_REQ ? OP_DONE : OP_FAILED;
            r.done += op->state == OP_DONE;
            r.failed += op->state == OP_FAILED;
            if (op->opcode == PRM_WQE_OPCODE_ATOMIC_FA && op->state == OP_DONE) {
                a->added[a->target[place]]++;
            }
            return;
        }
    }
    ck_abort_msg("a completion of QP 0x%x", cqe->qpn);
}

static void received(const struct lab_cqe *cqe)
{
    for (unsigned i = 0; i < DCTS; i++) {
        struct target *t = &r.dct[i];
        uint32_t id;

        if (t->dct.dctn == cqe->qpn) {
            ck_assert(t->busy[cqe->counter]);
            t->busy[cqe->counter] = false;
            t->ready--;
            if (cqe->opcode == PRM_CQE_OPCODE_RESP_SEND) {
                memcpy(&id, lab_ptr(&r.lab->side[1], t->mem + cqe->counter * 64, 4), 4);
                ck_assert_uint_lt(id, r.num_ops);
                r.op[id].carried_out++;
            }
            post_receives(t);
            return;
        }
    }
    ck_abort_msg("a completion of target 0x%x", cqe->qpn);
}

static void poll_all(void)
{
    struct lab_cqe cqe;
    uint8_t type;
    uint32_t num;

    while (lab_poll(&r.lab->side[0], &cqe)) {
        completed(&cqe);
    }
    while (lab_poll(&r.lab->side[1], &cqe)) {
        received(&cqe);
    }
    for (unsigned i = 0; i < 2; i++) {
        while (lab_event(&r.lab->side[i], &type, &num)) {
        }
    }
    r.lab->num_packets = 0;
}

/* Restarts an initiator in ERR once its queue is flushed, and resets a failed stream. */
static void revive(struct initiator *a)
{
    struct prm_qpc qpc[1] = {0};
    struct hca *hca = &r.lab->side[0].hca;

    if (a->qp.qp->state == PRM_QP_STATE_ERR && a->posted == 0) {
        ck_assert_int_eq(lab_modify(&a->qp, PRM_CMD_OP_2RST_QP, NULL, 0, NULL), SYN_OK);
        start(a);
        return;
    }
    if (a->qp.qp->state == PRM_QP_STATE_RTS && a->attr.log_streams && happens(100)) {
        struct prm_qp_context_extension ext[1] = {0};

        PRM_SET(qp_context_extension, ext, dci_stream_channel_id, upto(7));
        qp_modify(hca, 0, a->qp.qp->obj.num, PRM_CMD_OP_RTS2RTS_QP,
                  1ull << PRM_QP_OPTPAR_DCI_STREAM_CHANNEL, qpc, ext);
    }
}

/* -- a run ------------------------------------------------------------------------------------- */

static void make(uint32_t seed, bool faults)
{
    r = (struct run){.lab = lab_new(), .rand = g_rand_new_with_seed(seed)};
    r.late = g_array_new(false, false, sizeof(struct late));
    r.lab->tap = tap;
    open_capture(faults);
    if (faults) {
        r.lose = upto(1) ? upto(150) : 5;
        r.twice = upto(200);
        r.delay = upto(150);
        r.scarce = upto(100);
    }
    r.receives = faults && happens(500) ? 1 + upto(5) : SLOTS;
    r.lab->side[1].hca.limits.dc_responders = 1 + upto(5);
    r.src = lab_mem(&r.lab->side[0], 8192, 7);
    for (unsigned i = 0; i < DCTS; i++) {
        (i % 2 ? lab_dct_new_ordered : lab_dct_new)(&r.lab->side[1], &r.dct[i].dct);
        r.dct[i].mem = lab_mem(&r.lab->side[1], SLOTS * 64, 0);
        post_receives(&r.dct[i]);
    }
    for (unsigned i = 0; i < DCIS; i++) {
        struct initiator *a = &r.dci[i];

        a->attr = lab_dci;
        a->attr.log_streams = i % 2 ? 3 : 0;
        a->attr.log_errored = i % 2 ? 2 : 0;
        a->path = lab_path;
        a->path.ack_timeout = faults ? 8 + (uint8_t)upto(6) : 14;
        a->path.order = happens(500) ? PRM_DP_ORDERING_OOO_ALL : PRM_DP_ORDERING_IBTA;
        if (faults && happens(300)) {
            a->path.retry_count = (uint8_t)upto(2);
        }
        a->path.rnr_retry = happens(500) ? (uint8_t)upto(3) : 7;
        a->words = lab_mem(&r.lab->side[1], 8192, 0);
        lab_qp_new(&r.lab->side[0], &a->attr, &a->qp);
        start(a);
    }
}

static unsigned outstanding(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < DCIS; i++) {
        n += r.dci[i].posted;
    }
    return n;
}

/* Receives run out now and then: this causes RNR NAKs, which may also be late. */
static void starve(struct target *t, bool value)
{
    t->starves = value;
    post_receives(t);
}

static void step(bool faults)
{
    for (unsigned n = upto(3); n; n--) {
        unsigned nth = upto(DCIS - 1);

        if (r.dci[nth].qp.qp->state == PRM_QP_STATE_RTS && r.dci[nth].posted < MOST) {
            post(nth);
        }
    }
    if (happens(700)) {
        lab_run(r.lab);
    }
    pass(upto(happens(50) ? 200 : 3) * LAB_MS / 2);
    if (faults && happens(4)) {
        pass(DC_IDLE_NS); /* a responder whose DISCONNECT was lost is released now */
    }
    for (unsigned i = 0; i < DCTS; i++) {
        if (happens(r.dct[i].starves ? 100 : r.scarce)) {
            starve(&r.dct[i], !r.dct[i].starves);
        }
    }
    poll_all();
    for (unsigned i = 0; i < DCIS; i++) {
        revive(&r.dci[i]);
    }
}

/* Nothing more is requested; the cable has no more faults, except packets that are late. */
static void finish(void)
{
    r.lose = r.twice = r.delay = 0;
    for (unsigned i = 0; i < DCTS; i++) {
        starve(&r.dct[i], false);
    }
    for (unsigned i = 0; outstanding() && i < 2000; i++) {
        pass(50 * LAB_MS);
        poll_all();
    }
    ck_assert_uint_eq(outstanding(), 0);
    pass(LATE_MS * LAB_MS);
    poll_all();
}

static void judge(uint32_t seed)
{
    for (unsigned i = 0; i < r.num_ops; i++) {
        const struct op *op = &r.op[i];

        if (op->opcode == PRM_WQE_OPCODE_SEND) {
            ck_assert_msg(op->state == OP_DONE ? op->carried_out == 1 : op->carried_out <= 1,
                          "seed %u: SEND %u, %s, was carried out %u times", seed, i,
                          op->state == OP_DONE ? "done" : "failed", op->carried_out);
        }
    }
    for (unsigned i = 0; i < DCIS; i++) {
        for (unsigned t = 0; t < DCTS; t++) {
            const struct initiator *a = &r.dci[i];
            uint64_t sum;

            memcpy(&sum, lab_ptr(&r.lab->side[1], a->words + t * 8, 8), 8);
            ck_assert_msg(sum >= a->added[t] && sum <= a->tried[t],
                          "seed %u: initiator %u, target %u: %u atomics of %u completed, %u were "
                          "carried out",
                          seed, i, t, (unsigned)a->added[t], (unsigned)a->tried[t], (unsigned)sum);
        }
    }
}

static void clear(void)
{
    if (r.capture) {
        fclose(r.capture);
    }
    for (unsigned i = 0; i < r.late->len; i++) {
        g_free(g_array_index(r.late, struct late, i).frame);
    }
    g_array_free(r.late, true);
    g_rand_free(r.rand);
    lab_free(r.lab);
}

static void run(uint32_t seed, bool faults)
{
    make(seed, faults);
    for (unsigned i = 0; i < STEPS; i++) {
        step(faults);
    }
    finish();
    judge(seed);
}

START_TEST(what_completes_was_carried_out_once)
{
    struct seeds seeds = seeds_of_run(20);
    uint64_t done = 0, failed = 0, connects = 0, rnr_naks = 0;

    for (uint32_t s = 0; s < seeds.num; s++) {
        run(seeds.first + s, true);
        done += r.done;
        failed += r.failed;
        connects += r.connects;
        rnr_naks += r.rnr_naks;
        clear();
    }
    g_print("# %u seeds: %u done, %u failed, %u CONNECTs, %u RNR NAKs\n", seeds.num, (unsigned)done,
            (unsigned)failed, (unsigned)connects, (unsigned)rnr_naks);
    ck_assert_uint_gt(done, failed);
}
END_TEST

/* There are refusals and waits, but no lost packet: no counter may report a loss. */
START_TEST(a_good_wire_shows_no_sequence_errors)
{
    struct seeds seeds = seeds_of_run(20);

    for (uint32_t s = 0; s < seeds.num; s++) {
        run(seeds.first + s, false);
        for (unsigned i = 0; i < 2; i++) {
            const struct q_counter *c = q_counter_get(&r.lab->side[i].hca, 0);

            ck_assert_uint_eq(c->out_of_sequence, 0);
            ck_assert_uint_eq(c->packet_seq_err, 0);
            ck_assert_uint_eq(c->implied_nak_seq_err, 0);
        }
        clear();
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("dynamic connections");
    TCase *tc = tcase_create("dc");

    tcase_set_timeout(tc, 3600);
    tcase_add_test(tc, what_completes_was_carried_out_once);
    tcase_add_test(tc, a_good_wire_shows_no_sequence_errors);
    suite_add_tcase(suite, tc);
    return suite;
}
