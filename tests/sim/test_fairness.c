/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests fairness: one innocent queue pair among greedy ones, at a device that never has enough wire
 * and turns. What the device owes the innocent waits for a bounded number of other packets. The
 * innocent's queue pair never leaves RTS, and has no timeout.
 *
 * Each kind of work is greedy in its turn, and then all kinds together; the innocent's packet is
 * each kind of packet that a device sends. A seed decides how many greedy queue pairs there are,
 * the length of their requests, how much a turn may do and how fast the wire is. HCASIM_SIM_SEED
 * and HCASIM_SIM_SEEDS choose seeds (tests/sim/seeds.h); with HCASIM_SIM_SECONDS new seeds follow
 * until that time is over. HCASIM_FAIRNESS_GREED chooses the greedy kind by its name in greeds.
 *
 * The room of a tag list is not the device's to share but the software's: if the greedy post until
 * the list is full, the innocent's request is refused, and the device owes it nothing. Then the
 * greedy stop posting until the innocent has found room (lacks_room).
 *
 * The device is on the far side; the peers are on the near side. A wait is counted in packets:
 * those that the device sends between the moment at which it could have known of the innocent's
 * request, and the innocent's packet. Commands are not work of the model. Work that never ends
 * represents them here (the command queue is such work, fw/cmdq.c, with its own tests).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "model/core/work.h"
#include "model/rdma/rdma.h"
#include "model/rdma/xrq_dci.h"
#include "wire/chance.h"
#include "tests/sim/seeds.h"
#include "tests/unit/dc_tags_lab.h"
#include "tests/unit/suite.h"

#define GREEDY_MOST 12
#define LONG_MOST   (1u << 20)
#define ROUNDS      300   /* the least rounds for a pair of kinds */
#define ROUNDS_MOST 20000 /* the most rounds; in these the innocent has asked a few times */
#define ASKED       4
#define ROUND_NS    200
#define BURST       16
#define CABLE       512  /* frames on the way at a time, in each direction */
#define BEGINS      20   /* rounds before an innocent asks for the first time */
#define LOST        1000 /* rounds after which a notice is lost */
#define REQUEST     (HEADER + PRM_SIZE(rvh) + PRM_SIZE(ravh))

static struct chance chance;
static unsigned budget, passes; /* pieces of a turn; frames that the wire takes meanwhile */
static unsigned num_greedy;
static uint32_t long_len;
static uint64_t near_mem, far_mem;
static unsigned round_now, asked_at;
static uint32_t seed_now;
static bool lacks_room; /* the innocent's last request found no room in the tag list */

/* The innocent's QPs, near and far. */
static struct lab_qp mine, theirs;

/* -- greedy ones ------------------------------------------------------------------------------- */

struct pairs {
    struct lab_qp near[GREEDY_MOST], far[GREEDY_MOST];
};
static struct pairs readers, writers, marked;

static struct lab_wr long_wr(uint8_t opcode, bool from_near)
{
    return (struct lab_wr){
        .opcode = opcode,
        .unsignaled = true,
        .sge = {{from_near ? near_mem : far_mem, long_len, 0}},
        .num_sge = 1,
        .raddr = from_near ? far_mem : near_mem,
        .rkey = from_near ? far->key : near->key,
    };
}

static void make_pairs(struct pairs *pairs)
{
    for (unsigned i = 0; i < num_greedy; i++) {
        lab_rc_pair(lab, &pairs->near[i], &pairs->far[i], &lab_path);
    }
}

/* Each queue pair has two WQEs posted all the time. */
static void keep_posted(struct lab_qp *qps, const struct lab_wr *wr)
{
    for (unsigned i = 0; i < num_greedy; i++) {
        while (requester_started(qps[i].qp) + wq_posted(&qps[i].qp->sq) < 2) {
            lab_post(&qps[i], wr);
            wq_update_pi(&qps[i].side->hca, &qps[i].qp->sq);
        }
    }
}

static void make_readers(void)
{
    make_pairs(&readers);
}

static void feed_reads(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_READ, true);

    keep_posted(readers.near, &wr);
}

static void make_writers(void)
{
    make_pairs(&writers);
}

static void feed_writes(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_WRITE, false);

    keep_posted(writers.far, &wr);
}

/* Incoming packets are marked, and each mark is answered; but no sender reacts. */
static void make_marked(void)
{
    make_pairs(&marked);
    for (unsigned i = 0; i < num_greedy; i++) {
        marked.near[i].qp->peer.path.tclass |= ECN_CE;
    }
}

static void feed_marked(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_WRITE, true);

    keep_posted(marked.near, &wr);
}

/* Sends a frame from a host on the near side's wire that has no port here. */
static void put(const struct roce_packet *pkt, const struct dcceth *connect)
{
    size_t len = connect ? DCC_ETH_BYTES : 0;
    uint8_t *frame = wire_tx_reserve(lab->mid[1], roce_frame_len(pkt, len)), *payload;

    if (frame) {
        payload = roce_build(frame, pkt, len);
        if (connect) {
            dcceth_build(payload, connect);
        }
        wire_tx_commit(lab->mid[1], roce_finish(frame, pkt, len));
    }
}

/* Sends a CONNECT of an initiator of that number. */
static void put_connect(uint32_t number)
{
    struct dcceth connect = {.psn = 7, .key = DC_LAB_KEY};
    struct roce_packet pkt = {
        .opcode = BTH_DC | BTH_CONNECT,
        .migreq = true,
        .pkey = 0xffff,
        .psn = 7,
        .dest_qp = dct.dctn,
        .dceth = {.version = 1, .session = 1, .number = number},
    };

    memcpy(pkt.addr.dmac, far->mac, 6);
    memcpy(pkt.addr.smac, near->mac, 6);
    memcpy(pkt.addr.sgid, near->hca.vport->gids[3].gid, 16);
    memcpy(pkt.addr.dgid, far->hca.vport->gids[3].gid, 16);
    pkt.addr.is_ipv4 = true;
    pkt.addr.hop_limit = 64;
    put(&pkt, &connect);
}

/* An initiator that has no responder yet gets none any more. */
static void keep_responders(void)
{
    far->hca.limits.dc_responders = far->hca.rdma->dc.responders.length;
}

static void feed_connects(void)
{
    keep_responders();
    for (unsigned i = 0; i < num_greedy; i++) {
        put_connect(0x4000 + i);
    }
}

static void drain(struct lab_side *side)
{
    struct lab_cqe cqe;
    uint8_t type;
    uint32_t num;

    while (lab_poll(side, &cqe)) {
        ck_assert_msg(cqe.opcode != PRM_CQE_OPCODE_REQ_ERR || cqe.qpn != mine.qp->obj.num,
                      "seed %u: the innocent fails: syndrome %u", seed_now, cqe.syndrome);
    }
    while (lab_event(side, &type, &num)) {
    }
}

/* Returns how many frames the cable can still hold on the way to that side. */
static unsigned room_towards(unsigned side)
{
    struct wire_stats on_the_way, there;

    wire_get_stats(lab->mid[side], &on_the_way);
    wire_get_stats(lab->side[side].hca.vport->uplink->wire, &there);
    return CABLE - (unsigned)(on_the_way.tx_frames - there.rx_frames);
}

static void one_round(void)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_run(&lab->side[i].hca, i ? budget : LAB_BUDGET);
        wire_poll(lab->mid[i], MIN(passes, room_towards(!i)));
    }
    for (unsigned i = 0; i < 2; i++) {
        lab->side[i].host.now += ROUND_NS;
        drain(&lab->side[i]);
    }
}

/* -- rendezvous: the device fetches by itself -- */

static struct lab_dct back, back_to_mine;

/* Sends a request by that initiator, to be fetched from that target. Returns false if the list has
 * no room. */
static bool ask_fetch_from(struct lab_qp *dci, uint64_t tag, struct lab_dct *from)
{
    uint8_t bytes[REQUEST] = {0};
    struct prm_tmh *tmh = (void *)bytes;
    struct prm_rvh *rvh = (void *)(tmh + 1);
    struct prm_ravh *ravh = (void *)(rvh + 1);
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND,
                        .unsignaled = true,
                        .inline_data = bytes,
                        .inline_len = REQUEST};
    uint16_t next = (uint16_t)((xrq->tags->append_next + 1) % TAGS);

    if (xrq->tags->entries[xrq->tags->append_next].state != TAG_FREE ||
        xrq->tags->entries[next].state != TAG_FREE) {
        return false;
    }
    PRM_SET(tmh, tmh, op, PRM_TM_OP_RNDV);
    PRM_SET(tmh, tmh, tag, tag);
    PRM_SET(rvh, rvh, va, memory_of(dci));
    PRM_SET(rvh, rvh, rkey, near->key);
    PRM_SET(rvh, rvh, len, ROOM);
    PRM_SET(ravh, ravh, dct, from->dctn);
    PRM_SET(ravh, ravh, dc_access_key, DC_LAB_KEY);
    append(tag, ROOM);
    lab_dct_post_recv(from, near_mem, 64);
    lab_post(dci, lab_to(&wr, &dct));
    return true;
}

static void make_fetches(void)
{
    struct prm_set_xrq_dc_params_entry_in params[1] = {0};

    if (xrq->dci) {
        return;
    }
    dc_tags_target(true);
    PRM_SET(set_xrq_dc_params_entry_in, params, xrqn, xrq->obj.num);
    PRM_SET(set_xrq_dc_params_entry_in, params, mtu, PRM_QP_MTU_1024);
    PRM_SET(set_xrq_dc_params_entry_in, params, ack_timeout, LAB_ACK_TIMEOUT);
    ck_assert_int_eq(xrq_set_dc_params(&far->hca, 0, params), SYN_OK);
    lab_dct_new(near, &back);
    lab_dct_new(near, &back_to_mine);
    /* The initiators have sessions before any greedy work begins. */
    ask_fetch_from(&one, 7, &back);
    ask_fetch_from(&two, 8, &back_to_mine);
    for (unsigned i = 0; i < 100; i++) {
        one_round();
    }
}

/* The greedy leave room in the tag list for the innocent. */
static void feed_fetches(void)
{
    if (!lacks_room && requester_started(one.qp) + wq_posted(&one.qp->sq) <= 4) {
        ask_fetch_from(&one, 7, &back);
    }
}

/* -- UMRs: much to read, and nothing to send -- */

#define UMR_BYTES 8192u

static struct lab_qp umr;
static uint64_t umr_entries;
static uint32_t umr_key, umr_crumbs[8];

static void make_umrs(void)
{
    struct lab_qp_attr attr = {.st = PRM_QP_ST_REG_UMR, .log_sq = 5, .no_rq = true};

    lab_qp_new(far, &attr, &umr);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_RST2INIT_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_INIT2RTR_QP, NULL, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(&umr, PRM_CMD_OP_RTR2RTS_QP, NULL, 0, NULL), SYN_OK);
    umr_entries = lab_mem(far, UMR_BYTES, 0);
    for (unsigned i = 0; i < 8; i++) {
        umr_crumbs[i] = lab_crumbs(far, umr_entries + i * UMR_BYTES / 8, UMR_BYTES / 8, 0);
    }
    umr_key = lab_mr(far, lab_mem(far, 8192, 0) & ~4095ull, 4096ull * (UMR_BYTES / 8), 1);
    for (unsigned i = 0; i < UMR_BYTES / 8; i++) {
        prm_store64((uint8_t *)lab_ptr(far, umr_entries, UMR_BYTES) + 8 * i, far_mem & ~4095ull);
    }
}

/* Posts UMRs with entries for single bytes: each takes thousands of pieces to read. */
static void feed_umrs(void)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_UMR, .imm = umr_key, .unsignaled = true};
    void *wqe;

    if (requester_started(umr.qp) + wq_posted(&umr.qp->sq)) {
        return;
    }
    wqe = lab_write_wqe(&umr, &wr);
    umr.sq_pi = (uint16_t)((umr.sq_pi + 3) & ~3u); /* it has four basic blocks */
    PRM_SET(wqe_ctrl_seg, wqe, ds, 16);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, xlt_octowords, UMR_BYTES / 16);
    PRM_SET(wqe_umr_ctrl_seg, wqe + 16, mkey_mask, 1ull << PRM_MKEY_MASK_START_ADDR);
    PRM_SET(mkc, wqe + 64, mkey_7_0, umr_key & 0xff);
    for (unsigned i = 0; i < 8; i++) {
        struct prm_wqe_data_seg *seg = wqe + 128 + 16 * i;

        PRM_SET(wqe_data_seg, seg, byte_count, UMR_BYTES / 8);
        PRM_SET(wqe_data_seg, seg, lkey, umr_crumbs[i]);
        PRM_SET(wqe_data_seg, seg, addr, 0);
    }
    lab_ring(&umr);
}

/* -- timers that fire again at once, and work that never ends -- */

#define TIMERS 1000

static struct hca_timer timers[TIMERS];
static struct work endless;

static void fire_again(struct hca *hca, struct hca_timer *timer)
{
    hca_timer_set(hca, timer, hca_now(hca));
}

static void make_timers(void)
{
    for (unsigned i = 0; i < TIMERS; i++) {
        timers[i] = (struct hca_timer){.fire = fire_again};
        hca_timer_set(&far->hca, &timers[i], far->host.now);
    }
}

static void run_again(struct hca *hca, struct work *work)
{
    while (hca_may_go_on(hca)) {
        hca_spend(hca, 8);
    }
    hca_schedule(hca, work);
}

static void make_endless(void)
{
    endless = (struct work){.run = run_again};
    hca_schedule(&far->hca, &endless);
}

static void nothing(void)
{
}

static const struct greed {
    const char *name;
    void (*make)(void);
    void (*feed)(void);
} greeds[] = {
    {"READ answers", make_readers, feed_reads}, {"long WRITEs", make_writers, feed_writes},
    {"CNPs", make_marked, feed_marked},         {"CNAKs", nothing, feed_connects},
    {"rendezvous", make_fetches, feed_fetches}, {"UMRs", make_umrs, feed_umrs},
    {"timers", make_timers, nothing},           {"endless work", make_endless, nothing},
};
#define ALL G_N_ELEMENTS(greeds)

/* -- innocents --------------------------------------------------------------------------------- */

#define REFUSED 0x7777u /* the number of an initiator */

static uint64_t sent;        /* packets from the device that the wire has taken */
static uint64_t sent_before; /* all packets of the device up to the innocent's request */
static unsigned longest;
static enum {
    OWED_NOTHING,
    OWED_ONCE_IT_IS_THERE,
    OWED
} owed;

static void is_owed_from_now(void)
{
    sent_before = far->hca.tx_frames;
    owed = OWED;
}

/* Records the number of packets that went before the innocent's. */
static void has_it(uint64_t before)
{
    longest = MAX(longest, (unsigned)(before - sent_before));
    owed = OWED_NOTHING;
}

static bool ask_send(void)
{
    struct lab_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .sge = {{near_mem, 64, 0}}, .num_sge = 1};

    lab_post_recv(&theirs, far_mem, 64);
    lab_post(&mine, &wr);
    return true;
}

static bool ask_read(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_READ, true);

    wr.sge[0].len = 64;
    lab_post(&mine, &wr);
    return true;
}

static bool ask_marked(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_WRITE, true);

    wr.sge[0].len = 64;
    mine.qp->peer.path.tclass |= ECN_CE;
    lab_post(&mine, &wr);
    return true;
}

/* Makes the device's own WRITE. */
static bool ask_write(void)
{
    struct lab_wr wr = long_wr(PRM_WQE_OPCODE_RDMA_WRITE, false);

    wr.sge[0].len = 64;
    is_owed_from_now();
    lab_post(&theirs, &wr);
    return true;
}

static bool ask_refused(void)
{
    keep_responders();
    put_connect(REFUSED);
    is_owed_from_now();
    return true;
}

static bool ask_fetch(void)
{
    return ask_fetch_from(&two, 8, &back_to_mine);
}

static void fire_mine(struct hca *hca, struct hca_timer *timer)
{
    has_it(far->hca.tx_frames);
}

static void run_mine(struct hca *hca, struct work *work)
{
    has_it(far->hca.tx_frames);
}

static struct hca_timer my_timer = {.fire = fire_mine};
static struct work my_work = {.run = run_mine};

static bool ask_timer(void)
{
    is_owed_from_now();
    hca_timer_set(&far->hca, &my_timer, far->host.now);
    return true;
}

static bool ask_work(void)
{
    is_owed_from_now();
    hca_schedule(&far->hca, &my_work);
    return true;
}

static bool is_to_mine(const struct roce_packet *pkt)
{
    return pkt->dest_qp == mine.qp->obj.num && pkt->opcode != BTH_CNP_OPCODE;
}

static bool is_cnp(const struct roce_packet *pkt)
{
    return pkt->dest_qp == mine.qp->obj.num && pkt->opcode == BTH_CNP_OPCODE;
}

static bool is_refusal(const struct roce_packet *pkt)
{
    return pkt->dest_qp == REFUSED;
}

static bool is_fetch(const struct roce_packet *pkt)
{
    return pkt->dest_qp == back_to_mine.dctn && pkt->opcode == (BTH_DC | BTH_READ_REQUEST);
}

static bool is_none(const struct roce_packet *pkt)
{
    return false;
}

static const struct innocent {
    const char *name;
    bool (*ask)(void); /* Returns false if it cannot ask now. */
    bool (*is_it)(const struct roce_packet *pkt);
    void (*make)(void);
    bool may_be_lost; /* a notice may be lost if there are too many of its kind */
} innocents[] = {
    {"the ACK of a SEND", ask_send, is_to_mine, nothing, false},
    {"the answer to a READ", ask_read, is_to_mine, nothing, false},
    {"a WRITE", ask_write, is_to_mine, nothing, false},
    {"a CNP", ask_marked, is_cnp, nothing, true},
    {"a CNAK", ask_refused, is_refusal, nothing, true},
    {"a rendezvous", ask_fetch, is_fetch, make_fetches, false},
    {"a timer", ask_timer, is_none, nothing, false},
    {"other work", ask_work, is_none, nothing, false},
};

static const struct innocent *innocent;

/* Returns whether the packet is the innocent's request, on its way to the device. */
static bool is_request(const struct roce_packet *pkt)
{
    return pkt->dest_qp == theirs.qp->obj.num ||
           (pkt->dest_qp == dct.dctn && pkt->dceth.number == two.qp->obj.num &&
            pkt->opcode == (BTH_DC | BTH_SEND_ONLY));
}

static bool see(struct lab *l, unsigned from, const struct roce_packet *pkt)
{
    l->num_packets = 0; /* the trace is not used */
    sent += from;
    if (from == 0 && owed == OWED_ONCE_IT_IS_THERE && is_request(pkt)) {
        is_owed_from_now();
    } else if (from && owed == OWED && innocent->is_it(pkt)) {
        has_it(sent);
    }
    return true;
}

/* -- a run ------------------------------------------------------------------------------------- */

/* Returns whether the innocent's request has ended. */
static bool is_done(void)
{
    const struct lab_qp *qps[] = {&mine, &theirs, &two};
    bool done = owed == OWED_NOTHING || (innocent->may_be_lost && round_now - asked_at > LOST);

    for (unsigned i = 0; i < G_N_ELEMENTS(qps); i++) {
        const struct qp *qp = qps[i]->qp;

        ck_assert_uint_eq(qp->state, PRM_QP_STATE_RTS);
        ck_assert_msg(!qp->req.flight || qp->req.flight->retries == 0, "seed %u, %s: a timeout",
                      seed_now, innocent->name);
        done &= !requester_started(qp) && !wq_posted(&qp->sq);
    }
    return done;
}

/* Returns the bound: the frames that the wire holds; two bursts of each ready queue, because some
 * had their place before the innocent; and notices. Timers have an eighth of a turn, one after the
 * other. */
static unsigned bound(void)
{
    unsigned timers_before = innocent->ask == ask_timer ? 8 * TIMERS : 0;

    return CABLE + timers_before + 2 * BURST * (3 * num_greedy + 2 * XRQ_DCIS) +
           NOTICE_KINDS * NOTICES;
}

static bool is_greedy(unsigned greed, unsigned kind)
{
    return greed == ALL || greed == kind;
}

static void begin_pair(unsigned greed)
{
    dc_tags_setup();
    far->hca.vport->uplink->cong.np.min_time_between_cnps = 0;
    near->hca.vport->uplink->cong.rp_side.enabled = 0;
    near_mem = lab_mem(near, LONG_MOST, 1);
    far_mem = lab_mem(far, LONG_MOST, 0);
    lab_rc_pair(lab, &mine, &theirs, &lab_path);
    longest = 0;
    lacks_room = false;
    sent = far->hca.tx_frames;
    owed = OWED_NOTHING;
    lab->tap = see;
    for (unsigned i = 0; i < ALL; i++) {
        if (is_greedy(greed, i)) {
            greeds[i].make();
        }
    }
    innocent->make();
}

static void end_pair(void)
{
    for (unsigned i = 0; i < TIMERS; i++) {
        hca_timer_stop(&far->hca, &timers[i]);
    }
    hca_timer_stop(&far->hca, &my_timer);
    hca_unschedule(&my_work);
    hca_unschedule(&endless);
    dc_tags_teardown();
}

static void run_pair(unsigned greed)
{
    const char *name = greed == ALL ? "all" : greeds[greed].name;
    unsigned asked = 0;

    begin_pair(greed);
    for (round_now = 0; round_now < ROUNDS || (asked < ASKED && round_now < ROUNDS_MOST);
         round_now++) {
        for (unsigned i = 0; i < ALL; i++) {
            if (is_greedy(greed, i)) {
                greeds[i].feed();
            }
        }
        if (round_now > BEGINS && is_done()) {
            asked_at = round_now;
            owed = OWED_ONCE_IT_IS_THERE;
            lacks_room = !innocent->ask();
            if (lacks_room) {
                owed = OWED_NOTHING;
            } else {
                asked++;
            }
        }
        one_round();
    }
    if (g_getenv("HCASIM_FAIRNESS_TELL")) {
        printf("%-22s among %-14s: %4u packets at most, asked %3u times\n", innocent->name, name,
               longest, asked);
    }
    ck_assert_msg(asked >= ASKED, "seed %u: %s waits for ever among %s", seed_now, innocent->name,
                  name);
    ck_assert_msg(longest <= bound(),
                  "seed %u: %s waits for %u packets among %s, and %u are the most", seed_now,
                  innocent->name, longest, name, bound());
    end_pair();
}

static void run_seed(uint32_t seed, unsigned greed)
{
    const char *only = g_getenv("HCASIM_FAIRNESS_GREED");

    for (unsigned i = 0; only && strcmp(only, "all") != 0 && strcmp(only, greeds[i].name) != 0;) {
        ck_assert_msg(++i < ALL, "HCASIM_FAIRNESS_GREED is %s, which is no kind of greeds", only);
    }
    if (only && strcmp(only, greed == ALL ? "all" : greeds[greed].name) != 0) {
        return;
    }
    seed_now = seed;
    chance = chance_of(seed, "fairness", greed);
    for (unsigned i = 0; i < G_N_ELEMENTS(innocents); i++) {
        innocent = &innocents[i];
        num_greedy = (unsigned)chance_from(&chance, 1, GREEDY_MOST);
        long_len = (uint32_t)chance_from(&chance, 4096, LONG_MOST);
        budget = (unsigned)chance_from(&chance, 32, LAB_BUDGET);
        passes = (unsigned)chance_from(&chance, 1, 64);
        run_pair(greed);
    }
}

/* One innocent among greedy ones of one kind, or of all kinds. */
START_TEST(an_innocent_among_greedy_ones_has_its_turn)
{
    struct seeds seeds = seeds_of_run(3);
    uint64_t seconds = seeds_number("HCASIM_SIM_SECONDS", 0, 0, 1000000);
    gint64 end = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;

    for (uint32_t i = 0; i < seeds.num || g_get_monotonic_time() < end; i++) {
        run_seed(seeds.first + i, (unsigned)_i);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fairness");
    TCase *tc = tcase_create("pairs");

    tcase_set_timeout(tc, 100000);
    tcase_add_loop_test(tc, an_innocent_among_greedy_ones_has_its_turn, 0, ALL + 1);
    suite_add_tcase(suite, tc);
    return suite;
}
