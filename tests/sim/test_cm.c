/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests two connection managers over a wire that may lose, repeat and reorder their messages, in
 * virtual time. IBTA volume 1, chapter 12.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include "guest-lib/cm/cm.h"
#include "tests/sim/seeds.h"
#include "tests/unit/suite.h"

#define MS      1000000ull /* ns */
#define LATENCY 2          /* ms */
#define SERVICE 0x1060000u
#define MANY    20
/* options of enhanced connection establishment: the requested and the agreed ones */
#define VENDOR        0x123456
#define OPTIONS       0x89abcdefu
#define KNOWN_OPTIONS 0xff00ffffu

struct mail {
    uint64_t at_ns, seq;
    struct cm_av from;
    unsigned to;
    uint8_t mad[CM_MAD_LEN];
};

struct side {
    struct cm *cm;
    struct cm_id *listener;
    struct cm_id *ids[MANY + 1]; /* of own requests, or of received ones */
    unsigned num_ids;
    unsigned events[CM_EVENT_SIDR_REP + 1];
    unsigned reason;         /* reason of the last REJ, or status of the last SIDR_REP */
    struct cm_params params; /* parameters of the last REQ or REP */
    bool slow;               /* does not answer requests */
    int refuse;              /* refuses requests with this errno */
    bool holds;              /* answers nothing except requests for connections */
    bool ended;              /* its host has ended */
};

static struct side sides[2];
static GQueue mails;
static uint64_t now_ns, seq;
static GRand *rnd;
static double loss, doubling;
static unsigned late_ms;

/* -- the wire ---------------------------------------------------------------------------------- */

static void put(unsigned to, const struct cm_av *from, const uint8_t *mad)
{
    struct mail *mail = g_new0(struct mail, 1);

    mail->at_ns = now_ns + LATENCY * MS + (late_ms ? g_rand_int_range(rnd, 0, late_ms) : 0) * MS;
    mail->seq = seq++;
    mail->to = to;
    mail->from = *from;
    memcpy(mail->mad, mad, CM_MAD_LEN);
    g_queue_push_tail(&mails, mail);
}

static void send_mad(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    unsigned me = (unsigned)((struct side *)opaque - sides);
    struct cm_av from = {.dgid = {[15] = (uint8_t)me}};

    if (g_rand_double(rnd) >= loss) {
        put(av->dgid[15], &from, mad);
    }
    if (g_rand_double(rnd) < doubling) {
        put(av->dgid[15], &from, mad);
    }
}

static uint64_t clock_ns(void *opaque)
{
    return now_ns;
}

static uint32_t random32(void *opaque)
{
    return g_rand_int(rnd);
}

static uint64_t guid(void *opaque, unsigned port)
{
    return 0x100 + (uint64_t)((struct side *)opaque - sides);
}

static uint64_t host_at(void *opaque, const struct cm_av *av)
{
    return av->dgid[15] + 1u;
}

static bool has_ended(void *opaque, unsigned port, uint64_t host)
{
    return sides[host - 1].ended;
}

static const struct cm_ops ops = {send_mad, clock_ns, random32, guid, host_at, has_ended};

static struct mail *next_mail(void)
{
    struct mail *first = NULL;

    for (GList *at = mails.head; at; at = at->next) {
        struct mail *mail = at->data;

        if (!first || mail->at_ns < first->at_ns ||
            (mail->at_ns == first->at_ns && mail->seq < first->seq)) {
            first = mail;
        }
    }
    return first;
}

/* Does the next thing. Returns false if nothing is left to happen. */
static bool step(void)
{
    struct mail *mail = next_mail();
    uint64_t due = MIN(cm_deadline_ns(sides[0].cm), cm_deadline_ns(sides[1].cm));

    if (mail && mail->at_ns <= due) {
        now_ns = MAX(now_ns, mail->at_ns);
        g_queue_remove(&mails, mail);
        cm_recv(sides[mail->to].cm, &mail->from, mail->mad, CM_MAD_LEN);
        g_free(mail);
        return true;
    }
    if (due == CM_NEVER) {
        return false;
    }
    now_ns = MAX(now_ns, due);
    cm_run(sides[0].cm);
    cm_run(sides[1].cm);
    return true;
}

static void run(void)
{
    while (step()) {
    }
}

static void run_ms(unsigned ms)
{
    uint64_t end = now_ns + ms * MS;

    while (MIN(next_mail() ? next_mail()->at_ns : CM_NEVER,
               MIN(cm_deadline_ns(sides[0].cm), cm_deadline_ns(sides[1].cm))) <= end) {
        step();
    }
    now_ns = end;
}

/* -- consumers --------------------------------------------------------------------------------- */

static int on_event(struct cm_id *id, const struct cm_event *event)
{
    struct side *side = id->context;
    static const struct cm_params reply = {.qpn = 0x222, .starting_psn = 7};

    side->events[event->type]++;
    if (event->type == CM_EVENT_REQ || event->type == CM_EVENT_REP) {
        side->params = event->params;
    }
    switch (event->type) {
    case CM_EVENT_REQ:
    case CM_EVENT_SIDR_REQ:
        if (side->refuse) {
            return side->refuse;
        }
        if (side->num_ids < MANY) {
            side->ids[side->num_ids++] = event->id;
        }
        if (event->type == CM_EVENT_SIDR_REQ && side->holds) {
            break;
        }
        if (event->type == CM_EVENT_SIDR_REQ) {
            cm_send_sidr_rep(event->id, 0, 0x333, 0x444, "hi", 3);
        } else if (side->slow) {
            cm_delay_answer(event->id, 18);
        } else {
            struct cm_params params = reply;

            params.qpn += event->params.qpn; /* each connection has its own queue pair */
            params.vendor_id = event->params.vendor_id;
            params.attr_mod = event->params.attr_mod & KNOWN_OPTIONS;
            cm_send_rep(event->id, &params, "agreed", 7);
        }
        break;
    case CM_EVENT_REP:
        if (!side->holds) {
            cm_send_rtu(id);
        }
        break;
    case CM_EVENT_DREQ:
        if (!side->holds) {
            cm_send_drep(id);
        }
        break;
    case CM_EVENT_REJ:
    case CM_EVENT_SIDR_REP:
        side->reason = event->status;
        break;
    default:
        break;
    }
    return 0;
}

static struct cm_id *ask_over(uint8_t transport, uint32_t qpn)
{
    struct side *a = &sides[0];
    struct cm_id *id = cm_create_id(a->cm, on_event, a);
    struct cm_req_param req = {.av = {.dgid = {[15] = 1}},
                               .service_id = SERVICE,
                               .transport = transport,
                               .path_mtu = 3,
                               .packet_life_time = 16,
                               .cm_timeout = 20,
                               .max_cm_retries = 15,
                               .params = {.qpn = qpn,
                                          .starting_psn = 5,
                                          .responder_resources = 4,
                                          .initiator_depth = 2,
                                          .retry_count = 7,
                                          .rnr_retry_count = 6,
                                          .vendor_id = VENDOR,
                                          .attr_mod = OPTIONS}};

    ck_assert_int_eq(cm_send_req(id, &req), 0);
    a->ids[a->num_ids++] = id;
    return id;
}

static struct cm_id *ask_for(uint32_t qpn)
{
    return ask_over(PRM_CM_TRANSPORT_RC, qpn);
}

static uint64_t sent(unsigned side, unsigned attr)
{
    return cm_get_stats(sides[side].cm)->sent[attr - PRM_CM_ATTR_REQ];
}

static void begin(uint32_t seed)
{
    rnd = g_rand_new_with_seed(seed);
    now_ns = MS;
    loss = doubling = 0;
    late_ms = 0;
    memset(sides, 0, sizeof(sides));
    for (unsigned i = 0; i < 2; i++) {
        sides[i].cm = cm_new(&ops, &sides[i]);
        sides[i].listener = cm_create_id(sides[i].cm, on_event, &sides[i]);
        ck_assert_int_eq(cm_listen(sides[i].listener, SERVICE), 0);
    }
}

static void end(void)
{
    for (unsigned i = 0; i < 2; i++) {
        cm_free(sides[i].cm);
    }
    g_queue_clear_full(&mails, g_free);
    g_rand_free(rnd);
}

static void setup(void)
{
    begin(1);
}

/* -- statements --------------------------------------------------------------------------------
 */

/* IBTA 12.9.6, figure 131: REQ, REP, RTU; 12.9.8.4: DREQ, DREP, and a time during which the queue
 * pairs' numbers are not used again. */
START_TEST(a_connection_is_made_and_ended)
{
    struct cm_id *a = ask_for(0x111), *b;

    run_ms(100);
    ck_assert_uint_eq(sides[1].num_ids, 1);
    b = sides[1].ids[0];
    ck_assert_int_eq(a->state, CM_ESTABLISHED);
    ck_assert_int_eq(b->state, CM_ESTABLISHED);
    ck_assert_uint_eq(a->remote_qpn, 0x333);
    ck_assert_uint_eq(b->remote_qpn, 0x111);
    ck_assert_uint_eq(a->sq_psn, 7);
    ck_assert_uint_eq(b->sq_psn, 5);
    ck_assert_int_eq(cm_send_dreq(a), 0);
    run_ms(100);
    ck_assert_int_eq(a->state, CM_TIMEWAIT);
    ck_assert_int_eq(b->state, CM_TIMEWAIT);
    run();
    ck_assert_int_eq(a->state, CM_IDLE);
    ck_assert_int_eq(b->state, CM_IDLE);
    ck_assert_uint_eq(
        sent(0, PRM_CM_ATTR_REQ) + sent(0, PRM_CM_ATTR_RTU) + sent(0, PRM_CM_ATTR_DREQ), 3);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_REP) + sent(1, PRM_CM_ATTR_DREP), 2);
}
END_TEST

/* 12.7.29, 12.7.30: the requests that the sender answers at a time are the requests that the
 * recipient may have outstanding. */
START_TEST(resources_of_one_side_are_the_depth_of_the_other)
{
    ask_for(0x111);
    run_ms(2 * LATENCY);
    ck_assert_uint_eq(sides[1].ids[0]->initiator_depth, 0); /* the value of the reply */
    sides[1].slow = true;
    ask_for(0x112);
    run_ms(2 * LATENCY);
    ck_assert_uint_eq(sides[1].ids[1]->initiator_depth, 4);
    ck_assert_uint_eq(sides[1].ids[1]->responder_resources, 2);
}
END_TEST

/* Annex A19 (ECE): the vendor of the options and the options; the answer says which of them are
 * used. */
START_TEST(connection_options_are_exchanged)
{
    ask_for(0x111);
    run_ms(100);
    ck_assert_uint_eq(sides[1].params.vendor_id, VENDOR);
    ck_assert_uint_eq(sides[1].params.attr_mod, OPTIONS);
    ck_assert_uint_eq(sides[0].params.vendor_id, VENDOR);
    ck_assert_uint_eq(sides[0].params.attr_mod, OPTIONS & KNOWN_OPTIONS);
}
END_TEST

/* Annex A14 (XRC): the target's queue pair is in the field of RD's EE context, and has no retries
 * or reads of its own. It may outlive its identifier: only the initiator ends the connection. */
START_TEST(an_xrc_connection_is_its_initiators)
{
    struct cm_id *a = ask_over(PRM_CM_TRANSPORT_EXTENDED, 0x111);

    run_ms(100);
    ck_assert_int_eq(a->state, CM_ESTABLISHED);
    ck_assert_uint_eq(a->remote_qpn, 0x333);
    ck_assert_uint_eq(sides[0].params.qpn, 0x333);
    ck_assert_uint_eq(sides[0].params.srq, 1);
    ck_assert_uint_eq(sides[1].params.qpn, 0x111);
    ck_assert_uint_eq(sides[1].params.initiator_depth, 0);
    ck_assert_uint_eq(sides[1].params.responder_resources, 2);
    cm_destroy_id(sides[1].ids[0]);
    run_ms(100);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_DREQ), 0);
    ck_assert_int_eq(a->state, CM_ESTABLISHED);
    cm_destroy_id(a);
    ck_assert_uint_eq(sent(0, PRM_CM_ATTR_DREQ), 1);
}
END_TEST

/* Each connection is made once and ended once, or its consumer is told that it failed. */
START_TEST(whatever_the_wire_does)
{
    struct seeds seeds = seeds_of_run(20);

    for (uint32_t s = 0; s < seeds.num; s++) {
        end();
        begin(seeds.first + s);
        loss = 0.2;
        doubling = 0.3;
        late_ms = 6000; /* later than a retry */
        for (unsigned i = 0; i < MANY; i++) {
            ask_for(0x100 + i);
        }
        run_ms(300000);
        for (unsigned i = 0; i < MANY; i++) {
            cm_send_dreq(sides[0].ids[i]);
        }
        run();
        ck_assert_uint_eq(sides[0].events[CM_EVENT_REP], MANY);
        ck_assert_uint_eq(sides[1].events[CM_EVENT_REQ], MANY);
        ck_assert_uint_eq(sides[1].events[CM_EVENT_RTU] + sides[1].events[CM_EVENT_REP_ERROR],
                          MANY);
        for (unsigned i = 0; i < MANY; i++) {
            ck_assert_int_eq(sides[0].ids[i]->state, CM_IDLE);
            ck_assert_int_eq(sides[1].ids[i]->state, CM_IDLE);
        }
    }
}
END_TEST

/* 12.9.5: a REQ is sent again until its retries are used up. */
START_TEST(nobody_answers)
{
    loss = 1;
    ask_for(0x111);
    run();
    ck_assert_uint_eq(sent(0, PRM_CM_ATTR_REQ), 16);
    ck_assert_uint_eq(sides[0].events[CM_EVENT_REQ_ERROR], 1);
    ck_assert_int_eq(sides[0].ids[0]->state, CM_IDLE);
}
END_TEST

/* Table 110: reason 8, invalid service ID; 28, the consumer's. */
START_TEST(refusals)
{
    cm_destroy_id(sides[1].listener);
    ask_for(0x111);
    run();
    ck_assert_uint_eq(sides[0].reason, PRM_CM_REJ_REASON_INVALID_SERVICE_ID);
    sides[1].listener = cm_create_id(sides[1].cm, on_event, &sides[1]);
    cm_listen(sides[1].listener, SERVICE);
    sides[1].refuse = EINVAL;
    ask_for(0x112);
    run();
    ck_assert_uint_eq(sides[0].reason, PRM_CM_REJ_REASON_CONSUMER_DEFINED);
    ck_assert_uint_eq(sides[0].events[CM_EVENT_REJ], 2);
}
END_TEST

/* Extended transports other than XRC are rejected as unknown. */
START_TEST(an_unknown_transport_is_rejected)
{
    uint8_t req[CM_MAD_LEN] = {1, 7, 2, 3, [17] = PRM_CM_ATTR_REQ};
    struct cm_av from = {.dgid = {[15] = 0}};

    PRM_SET(cm_req, (void *)req, service_id, SERVICE);
    PRM_SET(cm_req, (void *)req, local_comm_id, 1);
    PRM_SET(cm_req, (void *)req, transport, PRM_CM_TRANSPORT_EXTENDED);
    PRM_SET(cm_req, (void *)req, extended_transport, PRM_CM_EXTENDED_TRANSPORT_XRC + 1);
    put(1, &from, req);
    run_ms(100);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_REJ), 1);
    ck_assert_uint_eq(sides[1].events[CM_EVENT_REQ], 0);
}
END_TEST

/* A listener without room does not answer now; when the REQ is repeated, it has room. */
START_TEST(a_full_backlog)
{
    sides[1].refuse = ENOMEM;
    ask_for(0x111);
    run_ms(1000);
    ck_assert_uint_eq(sides[0].events[CM_EVENT_REJ], 0);
    sides[1].refuse = 0;
    run_ms(10000);
    ck_assert_int_eq(sides[0].ids[0]->state, CM_ESTABLISHED);
    ck_assert_uint_eq(sent(0, PRM_CM_ATTR_REQ), 2);
}
END_TEST

/* 12.6.6: an MRA makes the sender wait as long as it says. */
START_TEST(a_consumer_that_takes_its_time)
{
    struct cm_params reply = {.qpn = 0x222};

    sides[1].slow = true;
    ask_for(0x111);
    run_ms(5000); /* the second REQ is answered by the MRA */
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_MRA), 1);
    ck_assert_int_eq(sides[0].ids[0]->state, CM_MRA_REQ_RCVD);
    ck_assert_int_eq(cm_send_rep(sides[1].ids[0], &reply, NULL, 0), 0);
    run_ms(100);
    ck_assert_int_eq(sides[0].ids[0]->state, CM_ESTABLISHED);
    ck_assert_int_eq(sides[1].ids[0]->state, CM_ESTABLISHED);
}
END_TEST

/* 12.9.8.3.1: a REQ names a queue pair that already has a connection. That connection is stale: the
 * peer has started again. */
START_TEST(a_stale_connection)
{
    struct cm_id *old = ask_for(0x111);

    run_ms(100);
    old->handler = NULL; /* the peer was killed, and does not know the connection */
    old->state = CM_IDLE;
    ask_for(0x111);
    run_ms(100);
    ck_assert_uint_eq(sides[0].reason, PRM_CM_REJ_REASON_STALE_CONN);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_DREQ), 1);
}
END_TEST

/* -- hosts that end -----------------------------------------------------------------------------
 */

enum meeting {
    ASKED,
    ANSWERED,
    MADE,
    LEAVING,
    RESOLVING,
    XRC_MADE,
    MEETINGS
};

/* What one side knows in the end. */
struct outcome {
    enum cm_state state;
    unsigned events[CM_EVENT_SIDR_REP + 1];
    unsigned reason;
};

static void resolve_service(void)
{
    struct cm_sidr_req_param req = {
        .av = {.dgid = {[15] = 1}}, .service_id = SERVICE, .timeout_ms = 1000, .max_cm_retries = 1};
    struct cm_id *id = cm_create_id(sides[0].cm, on_event, &sides[0]);

    ck_assert_int_eq(cm_send_sidr_req(id, &req), 0);
    sides[0].ids[sides[0].num_ids++] = id;
}

/* Brings both sides to the state in which one of them ends. */
static void meet(enum meeting meeting, unsigned ends)
{
    sides[1].slow = meeting == ASKED;
    sides[0].holds = meeting == ANSWERED;
    sides[1].holds = meeting == RESOLVING;
    if (meeting == RESOLVING) {
        resolve_service();
    } else {
        ask_over(meeting == XRC_MADE ? PRM_CM_TRANSPORT_EXTENDED : PRM_CM_TRANSPORT_RC, 0x111);
    }
    run_ms(100);
    if (meeting == LEAVING) {
        sides[ends].holds = true;
        ck_assert_int_eq(cm_send_dreq(sides[!ends].ids[0]), 0);
        run_ms(100);
    }
}

static struct outcome outcome(enum meeting meeting, unsigned ends, bool killed)
{
    struct outcome out;

    end();
    begin(1);
    meet(meeting, ends);
    if (killed) {
        sides[ends].ended = true;
        cm_hosts_ended(sides[!ends].cm);
    } else {
        cm_destroy_id(sides[ends].ids[0]);
    }
    run_ms(10);
    out.state = sides[!ends].ids[0]->state;
    memcpy(out.events, sides[!ends].events, sizeof(out.events));
    out.reason = sides[!ends].reason;
    return out;
}

/* The end of a host has the effect of a goodbye from that host. */
START_TEST(the_end_of_a_host_counts_as_its_goodbye)
{
    enum meeting meeting = (enum meeting)(_i / 2);
    unsigned ends = (unsigned)_i % 2;
    struct outcome said = outcome(meeting, ends, false), unsaid = outcome(meeting, ends, true);

    ck_assert_int_eq(unsaid.state, said.state);
    ck_assert_mem_eq(unsaid.events, said.events, sizeof(said.events));
    ck_assert_uint_eq(unsaid.reason, said.reason);
    ck_assert(!cm_hosts_ended(sides[!ends].cm)); /* calling it again reports nothing more */
    ck_assert_mem_eq(sides[!ends].events, said.events, sizeof(said.events));
}
END_TEST

/* Other hosts' connections stay. */
START_TEST(a_living_host_is_not_treated_as_ended)
{
    struct cm_id *a = ask_for(0x111);

    run_ms(100);
    ck_assert(cm_hosts_ended(sides[0].cm));
    ck_assert(cm_hosts_ended(sides[1].cm));
    run_ms(100);
    ck_assert_int_eq(a->state, CM_ESTABLISHED);
    ck_assert_int_eq(sides[1].ids[0]->state, CM_ESTABLISHED);
}
END_TEST

/* 12.8.2: no alternate path is supported here, and the connection stays. */
START_TEST(alternate_paths_are_refused)
{
    uint8_t lap[CM_MAD_LEN] = {1, 7, 2, 3, [17] = PRM_CM_ATTR_LAP};
    struct cm_av from = {.dgid = {[15] = 0}};
    struct cm_id *a = ask_for(0x111);

    run_ms(100);
    PRM_SET(cm_lap, (void *)lap, local_comm_id, a->local_id);
    PRM_SET(cm_lap, (void *)lap, remote_comm_id, a->remote_id);
    put(1, &from, lap);
    run_ms(100);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_APR), 1);
    ck_assert_int_eq(sides[1].ids[0]->state, CM_ESTABLISHED);
}
END_TEST

/* A message names a connection by both its identifiers. A sender that knows only one of them, or
 * tries all values, ends nothing. A reply with another sender's identifier than the agreed one ends
 * nothing, either. */
START_TEST(one_identifier_alone_names_no_connection)
{
    static const uint8_t attrs[] = {PRM_CM_ATTR_MRA,  PRM_CM_ATTR_REJ,  PRM_CM_ATTR_RTU,
                                    PRM_CM_ATTR_DREQ, PRM_CM_ATTR_DREP, PRM_CM_ATTR_LAP};
    struct cm_av from = {.dgid = {[15] = 0}};
    struct cm_id *b;

    ask_for(0x111);
    run_ms(100);
    b = sides[1].ids[0];
    for (unsigned i = 0; i < G_N_ELEMENTS(attrs); i++) {
        uint8_t mad[CM_MAD_LEN] = {1, 7, 2, 3, [17] = attrs[i]};

        PRM_SET(cm_dreq, (void *)mad, remote_comm_id, b->local_id);
        if (attrs[i] == PRM_CM_ATTR_DREQ) {
            PRM_SET(cm_dreq, (void *)mad, remote_qpn, b->local_qpn);
        }
        if (attrs[i] == PRM_CM_ATTR_REJ) {
            PRM_SET(cm_rej, (void *)mad, reason, PRM_CM_REJ_REASON_CONSUMER_DEFINED);
        }
        cm_recv(sides[1].cm, &from, mad, sizeof(mad));
    }
    ck_assert_int_eq(b->state, CM_ESTABLISHED);
    ck_assert_uint_eq(sides[1].events[CM_EVENT_REJ] + sides[1].events[CM_EVENT_DREQ], 0);
    ck_assert_uint_eq(sent(1, PRM_CM_ATTR_APR), 0);
}
END_TEST

/* 12.11: returns the queue pair of a service, and its key. */
START_TEST(service_ids_are_resolved)
{
    struct cm_sidr_req_param req = {.av = {.dgid = {[15] = 1}},
                                    .service_id = SERVICE,
                                    .timeout_ms = 4096,
                                    .max_cm_retries = 15};
    struct cm_id *id = cm_create_id(sides[0].cm, on_event, &sides[0]);

    loss = 0.5;
    ck_assert_int_eq(cm_send_sidr_req(id, &req), 0);
    run();
    ck_assert_uint_eq(sides[0].events[CM_EVENT_SIDR_REP], 1);
    loss = 0;
    req.service_id++;
    ck_assert_int_eq(cm_send_sidr_req(id, &req), 0);
    run();
    ck_assert_uint_eq(sides[0].reason, PRM_CM_SIDR_STATUS_UNSUPPORTED);
}
END_TEST

/* Destroying an identifier notifies the peer: 12.9.8.3, by a REJ or a DREQ. */
START_TEST(the_end_of_an_identifier)
{
    struct cm_id *a = ask_for(0x111);

    cm_destroy_id(a); /* before the peer knows it */
    run();
    ck_assert_uint_eq(sent(0, PRM_CM_ATTR_REJ), 1);
    a = ask_for(0x112);
    run_ms(100);
    cm_destroy_id(a);
    run();
    ck_assert_uint_eq(sent(0, PRM_CM_ATTR_DREQ), 1);
    ck_assert_uint_eq(sides[1].events[CM_EVENT_DREQ], 1);
}
END_TEST

/* A peer's requests use no more identifiers than there are. */
START_TEST(requests_without_an_end)
{
    uint8_t req[CM_MAD_LEN] = {1, 7, 2, 3, [17] = PRM_CM_ATTR_REQ};
    struct cm_av from = {.dgid = {[15] = 0}};

    sides[1].slow = true;
    loss = 1;
    PRM_SET(cm_req, (void *)req, service_id, SERVICE);
    for (unsigned i = 1; i <= CM_MAX_IDS + 10; i++) {
        PRM_SET(cm_req, (void *)req, local_comm_id, i);
        PRM_SET(cm_req, (void *)req, local_qpn, i);
        cm_recv(sides[1].cm, &from, req, sizeof(req));
    }
    /* one identifier is the listener */
    ck_assert_uint_eq(sides[1].events[CM_EVENT_REQ], CM_MAX_IDS - 1);
    ck_assert_uint_eq(cm_get_stats(sides[1].cm)->full, 11);
}
END_TEST

/* 13.4.3: a message of another class, version, method, attribute or length is ignored. */
START_TEST(what_is_not_for_us)
{
    static const uint8_t at[] = {0, 1, 2, 3, 17};
    struct cm_av from = {0};

    for (unsigned i = 0; i < G_N_ELEMENTS(at); i++) {
        uint8_t mad[CM_MAD_LEN] = {1, 7, 2, 3, [17] = PRM_CM_ATTR_REQ};

        mad[at[i]] ^= 0x40;
        cm_recv(sides[1].cm, &from, mad, sizeof(mad));
    }
    cm_recv(sides[1].cm, &from, (const uint8_t *)"", 1);
    ck_assert_uint_eq(cm_get_stats(sides[1].cm)->malformed, G_N_ELEMENTS(at) + 1);
    ck_assert(!mails.length);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("sim-cm");
    TCase *tc = tcase_create("cm");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, end);
    tcase_add_test(tc, a_connection_is_made_and_ended);
    tcase_add_test(tc, resources_of_one_side_are_the_depth_of_the_other);
    tcase_add_test(tc, connection_options_are_exchanged);
    tcase_add_test(tc, an_xrc_connection_is_its_initiators);
    tcase_add_test(tc, whatever_the_wire_does);
    tcase_add_test(tc, nobody_answers);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, an_unknown_transport_is_rejected);
    tcase_add_test(tc, a_full_backlog);
    tcase_add_test(tc, a_consumer_that_takes_its_time);
    tcase_add_test(tc, a_stale_connection);
    tcase_add_test(tc, alternate_paths_are_refused);
    tcase_add_test(tc, one_identifier_alone_names_no_connection);
    tcase_add_test(tc, service_ids_are_resolved);
    tcase_add_test(tc, the_end_of_an_identifier);
    tcase_add_loop_test(tc, the_end_of_a_host_counts_as_its_goodbye, 0, 2 * MEETINGS);
    tcase_add_test(tc, a_living_host_is_not_treated_as_ended);
    tcase_add_test(tc, requests_without_an_end);
    tcase_add_test(tc, what_is_not_for_us);
    suite_add_tcase(suite, tc);
    return suite;
}
