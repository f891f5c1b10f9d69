/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests fault rules (wire/fault) in virtual time: what each word says, what each action does to
 * frames, and what a wrong rule is told. One end of a cable has the filter.
 */
#include "wire/fault/port.h"
#include "wire/encap/eth.h"
#include "wire/encap/roce.h"
#include "wire/pair.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

#define MS     1000000ull /* ns */
#define NEVER  UINT64_MAX
#define FRAMES 10000u
#define ECT    2 /* of the traffic class: the sender supports ECN */
#define CE     3

static struct wire_port *host, *peer; /* host has the filter */
static struct fault_set *set;
static uint64_t now, wake_ns;
static unsigned link_changes, log_lines;
static char last_line[256];

static struct {
    unsigned frames;
    uint32_t psn[2 * FRAMES];
    uint64_t at[2 * FRAMES];
    unsigned bad_icrcs, marked;
    uint8_t frame[WIRE_FRAME_MAX]; /* the last one */
} got;

static uint64_t clock_ns(void *opaque)
{
    return now;
}

static void wake_at(void *opaque, uint64_t time_ns)
{
    wake_ns = time_ns;
}

static void on_log(void *opaque, const char *line)
{
    log_lines++;
    g_strlcpy(last_line, line, sizeof(last_line));
}

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct roce_packet packet = {0};
    enum roce_verdict verdict = roce_parse(frame, len, &packet);

    ck_assert_uint_lt(got.frames, G_N_ELEMENTS(got.psn));
    got.bad_icrcs += verdict == ROCE_BAD_ICRC;
    got.marked += (packet.addr.tclass & 3) == CE;
    got.at[got.frames] = now;
    got.psn[got.frames++] = packet.psn;
    memcpy(got.frame, frame, len);
}

static void on_link_change(void *client)
{
    link_changes++;
}

static const struct wire_client client = {.rx = on_rx, .link_change = on_link_change};

static bool name_command(const char *name, uint16_t *opcode)
{
    *opcode = 0x400;
    return !strcmp(name, "CREATE_CQ");
}

static bool name_status(const char *name, uint8_t *status)
{
    *status = 5;
    return !strcmp(name, "BAD_RES");
}

static const struct fault_names names = {name_command, name_status};

/* What the watcher was told last. */
static struct {
    unsigned deeds, lost, rule;
    enum fault_subject subject;
    bool inbound;
    uint32_t qpn;
    uint64_t late_ns;
    uint32_t psn;
    char what[100], text[100];
} told;

static void on_deed(void *opaque, const struct fault_deed *deed)
{
    struct roce_packet packet = {0};

    told.deeds++;
    told.lost += deed->is_lost;
    told.rule = deed->rule;
    told.subject = deed->subject;
    told.inbound = deed->inbound;
    told.qpn = deed->qpn;
    told.late_ns = deed->late_ns;
    if (deed->frame) {
        ck_assert_int_eq(roce_parse(deed->frame, deed->len, &packet), ROCE_OK); /* as it was */
    }
    told.psn = packet.psn;
    g_strlcpy(told.what, deed->what, sizeof(told.what));
    g_strlcpy(told.text, deed->text ? deed->text : "", sizeof(told.text));
}

static void make_set(const char *rules, uint64_t seed)
{
    const struct fault_options options = {
        .seed = seed, .clock_ns = clock_ns, .log = on_log, .names = &names};
    g_autoptr(GError) err = NULL;

    now = 1000 * MS;
    log_lines = 0;
    set = fault_set_new(&options);
    ck_assert_msg(fault_set_add(set, rules, &err), "%s", err ? err->message : "");
}

static void plug_in(const char *rules, uint64_t seed)
{
    const struct wire_fault_options options = {.wake_at = wake_at};
    struct wire_port *ends[2];

    memset(&got, 0, sizeof(got));
    link_changes = 0;
    wake_ns = NEVER;
    make_set(rules, seed);
    wire_pair_new(2 * FRAMES, ends);
    peer = ends[1];
    host = wire_fault_new(ends[0], set, &options, NULL);
    wire_set_client(peer, &client, NULL);
    wire_set_client(host, &client, NULL);
}

static void unplug(void)
{
    wire_close(host);
    wire_close(peer);
    fault_set_free(set);
}

static struct roce_packet packet_of(uint8_t opcode, uint32_t qp, uint32_t psn)
{
    return (struct roce_packet){
        .opcode = opcode,
        .dest_qp = qp,
        .psn = psn,
        .addr = {.is_ipv4 = true,
                 .dmac = {2, 0, 0, 0, 0, 9},
                 .smac = {2, 0, 0, 0, 0, 8},
                 .sgid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
                 .dgid = {[10] = 0xff, 0xff, 10, 0, 0, 2}},
    };
}

static void send_packet(struct wire_port *port, struct roce_packet pkt, size_t payload_len)
{
    uint8_t *frame = wire_tx_reserve_to(port, pkt.addr.dmac, WIRE_FRAME_MAX), *payload;

    ck_assert_ptr_nonnull(frame);
    payload = roce_build(frame, &pkt, payload_len);
    memset(payload, 0, payload_len);
    wire_tx_commit(port, roce_finish(frame, &pkt, payload_len));
}

static void send(uint8_t opcode, uint32_t qp, uint32_t psn)
{
    send_packet(host, packet_of(opcode, qp, psn), 0);
}

static void receive(void)
{
    wire_poll(peer, 2 * FRAMES);
    wire_poll(host, 2 * FRAMES);
}

/* Lets time pass, and calls the filter when it asks for it, as its owner does. */
static void pass(uint64_t ns)
{
    uint64_t end = now + ns;

    while (wake_ns <= end) {
        now = MAX(now, wake_ns);
        wake_ns = NEVER;
        wire_fd_event(host);
        receive();
    }
    now = end;
    receive();
}

static struct wire_fault_stats stats(void)
{
    struct wire_fault_stats s;

    wire_fault_get_stats(host, &s);
    return s;
}

static struct fault_info rule(unsigned i)
{
    struct fault_info info;

    fault_set_get(set, i, &info);
    return info;
}

/* The frames that rules are about: the PSN is the place in this list. */
static const struct {
    uint8_t opcode;
    uint32_t qp;
} list[] = {
    {BTH_RC | BTH_READ_RESP_ONLY, 0x12},  /* 0 */
    {BTH_RC | BTH_READ_RESP_ONLY, 0x13},  /* 1 */
    {BTH_RC | BTH_READ_RESP_FIRST, 0x12}, /* 2 */
    {BTH_RC | BTH_ACK, 0x12},             /* 3: ACK */
    {BTH_RC | BTH_ACK, 0x12},             /* 4: NAK */
    {BTH_RC | BTH_ACK, 0x13},             /* 5: RNR NAK */
    {BTH_UD | BTH_SEND_ONLY, 0x12},       /* 6 */
    {BTH_UC | BTH_SEND_ONLY, 0x12},       /* 7 */
    {BTH_RC | BTH_WRITE_FIRST, 0x12},     /* 8 */
    {BTH_RC | BTH_WRITE_LAST_IMM, 0x13},  /* 9 */
    {BTH_RC | BTH_READ_REQUEST, 0x12},    /* 10 */
    {BTH_CNP_OPCODE, 0x12},               /* 11 */
};

#define ALL ((1u << G_N_ELEMENTS(list)) - 1)

static void send_list(void)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(list); i++) {
        struct roce_packet pkt = packet_of(list[i].opcode, list[i].qp, i);

        pkt.aeth.syndrome = i == 4 ? AETH_NAK_SEQ : i == 5 ? AETH_RNR : AETH_ACK;
        send_packet(host, pkt, 0);
    }
    receive();
}

/* Which of the list arrived, a bit each. */
static unsigned arrived(void)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < got.frames; i++) {
        bits |= 1u << got.psn[i];
    }
    got.frames = 0;
    return bits;
}

static const struct row {
    const char *rule;
    unsigned lost; /* of the list */
} matches[] = {
    {"none", 0},
    {"drop", ALL},
    {"drop both", ALL},
    {"drop in", 0},
    {"drop READ_RESPONSE", 1 << 0 | 1 << 1 | 1 << 2},
    {"drop READ", 1 << 0 | 1 << 1 | 1 << 2 | 1 << 10},
    {"drop READ REQUEST", 1 << 10},
    {"drop RC_READ_RESP_ONLY", 1 << 0 | 1 << 1},
    {"drop READ_RESP_ONLY qp 0x13", 1 << 1},
    {"drop READ_RESPONSE qp 0x12 nth 2 once", 1 << 2},
    {"drop RC_ACK", 1 << 3 | 1 << 4 | 1 << 5},
    {"drop NAK", 1 << 4},
    {"drop RNR_NAK", 1 << 5},
    {"drop RC NAK", 1 << 4},
    {"drop SEND", 1 << 6 | 1 << 7},
    {"drop UD", 1 << 6},
    {"drop UC SEND_ONLY", 1 << 7},
    {"drop WRITE", 1 << 8 | 1 << 9},
    {"drop CNP", 1 << 11},
    {"drop psn 3", 1 << 3},
    {"drop psn 3..5", 1 << 3 | 1 << 4 | 1 << 5},
    {"drop psn 0xffffff..1", 1 << 0 | 1 << 1},
    {"drop from 10.0.0.1", ALL},
    {"drop from 10.0.0.2", 0},
    {"drop to 10.0.0.2", ALL},
    {"drop to 02:00:00:00:00:09", ALL},
    {"drop from 02:00:00:00:00:09", 0},
    {"drop to ::ffff:10.0.0.2", ALL},
    {"drop to fe80::1", 0},
    {"part", ALL},
    {"part from 10.0.0.2", ALL},
    {"part from 10.0.0.3", 0},
    {"drop nth 4", 1 << 3},
    {"drop every 5", 1 << 4 | 1 << 9},
    {"drop every 5 once", 1 << 4},
    {"drop times 2", 1 << 0 | 1 << 1},
    {"drop after 10", 1 << 10 | 1 << 11},
    {"drop after 1s", 0},
    {"drop for 1s", ALL},
    {"drop 0%", 0},
    {"loss 100%", ALL},
    {"drop UD; drop psn 3", 1 << 6 | 1 << 3},
    {"link down 1s after 9", 1 << 9 | 1 << 10 | 1 << 11},
    {"link down 1s", ALL},
    {"duplicate; mark; reorder; delay 1ns", 0},
};

START_TEST(a_rule_is_about_the_frames_that_it_names)
{
    plug_in(matches[_i].rule, 1);
    send_list();
    pass(MS);
    ck_assert_msg((~arrived() & ALL) == matches[_i].lost, "%s", matches[_i].rule);
    unplug();
}
END_TEST

START_TEST(the_second_read_response_of_a_qp_is_lost_once)
{
    plug_in("drop READ_RESPONSE qp 0x12 nth 2 once", 1);
    for (unsigned i = 0; i < 3; i++) {
        send_list();
        ck_assert_uint_eq(arrived(), i ? ALL : ALL & ~(1u << 2));
    }
    ck_assert_uint_eq(rule(0).matched, 6);
    ck_assert_uint_eq(rule(0).done, 1);
    ck_assert_str_eq(last_line, "fault 1, drop READ_RESPONSE qp 0x12 nth 2 once: sent "
                                "RC_READ_RESP_FIRST qp 0x12 psn 2 ACK msn 0, 0 bytes, pkey 0x0");
    ck_assert_uint_eq(log_lines, 1);
    unplug();
}
END_TEST

/* Times: a rule begins when it is made, or when `after` is over. */
START_TEST(after_and_for_are_times)
{
    plug_in("drop after 2ms for 3ms", 1);
    for (unsigned ms = 0; ms < 8; ms++) {
        send(BTH_RC | BTH_ACK, 1, ms);
        pass(MS);
    }
    ck_assert_uint_eq(arrived(), 0x03 | 0xe0);
    unplug();
}
END_TEST

START_TEST(every_tenth_write_is_wrong_and_nobody_detects_it)
{
    plug_in("corrupt WRITE byte 60 every 10 repair", 1);
    for (uint32_t i = 0; i < 20; i++) {
        send_packet(host, packet_of(BTH_RC | BTH_WRITE_MIDDLE, 1, i), 64);
        receive();
        ck_assert_int_eq(got.frame[60] != 0, i % 10 == 9);
    }
    ck_assert_uint_eq(got.bad_icrcs, 0);
    ck_assert_uint_eq(stats().corrupted, 2);
    unplug();
}
END_TEST

START_TEST(without_repair_the_icrc_detects_a_wrong_byte)
{
    plug_in("corrupt byte 60; corrupt byte 5000", 1);
    send_packet(host, packet_of(BTH_RC | BTH_WRITE_MIDDLE, 1, 1), 64);
    receive();
    ck_assert_uint_eq(got.bad_icrcs, 1);
    ck_assert_uint_eq(rule(1).matched, 0); /* the frame has no such byte */
    unplug();
}
END_TEST

START_TEST(only_frames_of_senders_that_support_ecn_are_marked)
{
    struct roce_packet pkt = packet_of(BTH_RC | BTH_ACK, 1, 1);

    plug_in("mark", 1);
    send_packet(host, pkt, 0);
    pkt.addr.tclass = ECT;
    send_packet(host, pkt, 0);
    pkt.addr.is_ipv4 = false;
    send_packet(host, pkt, 0);
    receive();
    ck_assert_uint_eq(got.frames, 3);
    ck_assert_uint_eq(got.marked, 2);
    ck_assert_uint_eq(got.bad_icrcs, 0);
    ck_assert_uint_eq(rule(0).matched, 2);
    ck_assert_uint_eq(stats().marked, 2);
    unplug();
}
END_TEST

/* Packets of RoCE version 1 have no IP header; opcode, QP and addresses are there all the same. */
START_TEST(rules_know_packets_of_version_1)
{
    struct roce_packet pkt = packet_of(BTH_RC | BTH_SEND_ONLY, 5, 1);

    pkt.addr.is_ipv4 = false;
    pkt.addr.is_v1 = true;
    plug_in("corrupt SEND qp 5 to 10.0.0.2; drop ACK qp 6", 1);
    send_packet(host, pkt, 16);
    pkt.dest_qp = 6;
    send_packet(host, pkt, 16);
    pkt.opcode = BTH_RC | BTH_ACK;
    send_packet(host, pkt, 0);
    receive();
    ck_assert_uint_eq(got.frames, 2);
    ck_assert_uint_eq(got.bad_icrcs, 1);
    ck_assert_uint_eq(rule(0).matched, 1);
    ck_assert_uint_eq(rule(1).matched, 1);
    unplug();
}
END_TEST

START_TEST(a_delay_keeps_the_order)
{
    plug_in("delay 5ms jitter 2ms; delay 1ms SEND", 3);
    for (uint32_t i = 0; i < 100; i++) {
        send(i % 2 ? BTH_RC | BTH_ACK : BTH_RC | BTH_SEND_ONLY, 1, i);
    }
    pass(20 * MS);
    ck_assert_uint_eq(got.frames, 100);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(got.psn[i], i);
        ck_assert_uint_ge(got.at[i], 1005 * MS);
        ck_assert_uint_le(got.at[i], 1008 * MS);
    }
    ck_assert_uint_ge(got.at[0], 1006 * MS); /* a SEND has both delays */
    unplug();
}
END_TEST

START_TEST(a_rate_is_a_line_that_frames_leave_one_by_one)
{
    size_t len =
        roce_frame_len(&(struct roce_packet){.opcode = BTH_RC | BTH_ACK, .addr.is_ipv4 = true}, 0);
    uint64_t each = len * 8 * 1000 / 64;

    plug_in("rate 64Mbit queue 250", 1);
    for (uint32_t i = 0; i < 10; i++) {
        send(BTH_RC | BTH_ACK, 1, i);
    }
    pass(MS);
    ck_assert_uint_eq(got.frames, 250 / len);
    ck_assert_uint_eq(stats().lost, 10 - got.frames);
    for (unsigned i = 0; i < got.frames; i++) {
        ck_assert_uint_eq(got.at[i], 1000 * MS + (i + 1) * each);
    }
    unplug();
}
END_TEST

START_TEST(later_frames_pass_a_reordered_one)
{
    plug_in("reorder nth 2 within 1ms", 1);
    for (uint32_t i = 0; i < 4; i++) {
        send(BTH_RC | BTH_ACK, 1, i);
    }
    pass(2 * MS);
    ck_assert_uint_eq(got.frames, 4);
    ck_assert_uint_eq(got.psn[0], 0);
    ck_assert_uint_eq(got.psn[1], 2);
    ck_assert_uint_eq(got.psn[2], 3);
    ck_assert_uint_eq(got.psn[3], 1);
    unplug();
}
END_TEST

/* What comes in has the same faults. */
START_TEST(faults_of_received_frames)
{
    plug_in("drop in nth 2; duplicate in nth 3; corrupt in nth 4; delay 1ms in psn 5", 1);
    for (uint32_t i = 1; i <= 5; i++) {
        send_packet(peer, packet_of(BTH_RC | BTH_ACK, 1, i), 0);
    }
    pass(0);
    pass(0);
    ck_assert_uint_eq(got.frames, 4); /* 1, 3, 3, 4 */
    ck_assert_uint_eq(got.psn[1], 3);
    ck_assert_uint_eq(got.bad_icrcs, 1);
    pass(2 * MS);
    ck_assert_uint_eq(got.frames, 5);
    ck_assert_uint_eq(got.psn[4], 5);
    ck_assert_uint_eq(got.at[4], 1001 * MS);
    send(BTH_RC | BTH_ACK, 1, 6); /* what leaves has none of them */
    receive();
    ck_assert_uint_eq(got.psn[5], 6);
    ck_assert_uint_eq(got.at[5], now);
    unplug();
}
END_TEST

/* The client sees the link go down and come up, although nothing is sent. */
START_TEST(a_link_goes_down_and_comes_up)
{
    plug_in("link down 5ms after 2ms", 1);
    pass(MS);
    ck_assert(wire_link_up(host));
    pass(2 * MS);
    ck_assert(!wire_link_up(host));
    ck_assert_uint_eq(link_changes, 1);
    send(BTH_RC | BTH_ACK, 1, 1);
    send_packet(peer, packet_of(BTH_RC | BTH_ACK, 1, 2), 0);
    receive();
    ck_assert_uint_eq(got.frames, 0);
    pass(5 * MS);
    ck_assert(wire_link_up(host));
    ck_assert_uint_eq(link_changes, 2);
    send(BTH_RC | BTH_ACK, 1, 1);
    receive();
    ck_assert_uint_eq(got.frames, 1);
    ck_assert_uint_eq(wake_ns, NEVER);
    unplug();
}
END_TEST

START_TEST(a_link_flaps_for_a_time)
{
    unsigned downs = 0;

    plug_in("link flap 2ms every 10ms for 35ms", 1);
    for (unsigned ms = 0; ms < 60; ms++) {
        pass(MS / 2);
        ck_assert_int_eq(wire_link_up(host), ms >= 35 || ms % 10 >= 2);
        downs += !wire_link_up(host);
        pass(MS / 2);
    }
    ck_assert_uint_eq(downs, 8);
    ck_assert_uint_eq(link_changes, 8);
    ck_assert_uint_eq(rule(0).done, 4);
    unplug();
}
END_TEST

/* -- chance ------------------------------------------------------------------------------------ */

static void send_many(const char *rules, uint64_t seed, uint8_t *arrivals)
{
    plug_in(rules, seed);
    memset(arrivals, 0, FRAMES);
    for (uint32_t i = 0; i < FRAMES; i++) {
        send(BTH_RC | BTH_ACK, 1, i);
    }
    pass(MS);
    for (unsigned i = 0; i < got.frames; i++) {
        if (got.psn[i] < FRAMES) { /* else its wrong bit is in the PSN */
            arrivals[got.psn[i]]++;
        }
    }
}

/* Each kind at 1 % of 10,000: 100, with a deviation of 10. A fair coin is outside of 60 to 140 once
 * in 15,000 seeds; these seeds are fixed. */
START_TEST(seeds_repeat_and_rates_hold)
{
    static const char *const rules[] = {"loss 1%", "duplicate 1%", "corrupt 1%",
                                        "reorder 1% within 1us", "delay 1us 1%"};
    static uint8_t first[FRAMES], again[FRAMES], other[FRAMES];
    uint64_t done;

    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        send_many(rules[i], 7, first);
        done = rule(0).done;
        ck_assert_uint_eq(rule(0).matched, FRAMES);
        ck_assert_msg(done >= 60 && done <= 140, "%s: %u", rules[i], (unsigned)done);
        unplug();
        send_many(rules[i], 7, again);
        ck_assert_uint_eq(rule(0).done, done);
        unplug();
        ck_assert_int_eq(memcmp(first, again, FRAMES), 0);
        send_many(rules[i], 8, other);
        unplug();
        if (i < 2) {
            ck_assert_int_ne(memcmp(first, other, FRAMES), 0);
        }
    }
}
END_TEST

/* A rule of another kind before it changes nothing; a second rule of its kind draws for itself. */
START_TEST(each_rule_has_its_own_chance)
{
    static uint8_t alone[FRAMES], beside[FRAMES];
    unsigned both = 0;

    send_many("loss 1%", 7, alone);
    unplug();
    send_many("reorder 50% within 1us; loss 1%", 7, beside);
    unplug();
    ck_assert_int_eq(memcmp(alone, beside, FRAMES), 0);
    send_many("loss 1%; loss 1%", 7, beside);
    both = (unsigned)(rule(0).done + rule(1).done);
    ck_assert_uint_gt(stats().lost, rule(0).done);
    ck_assert_uint_le(stats().lost, both);
    unplug();
}
END_TEST

/* -- sets -------------------------------------------------------------------------------------- */

START_TEST(rules_come_and_go_while_frames_pass)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) err = NULL;

    plug_in("none", 1);
    send_list();
    ck_assert_uint_eq(arrived(), ALL);
    ck_assert(fault_set_add(set, "drop UD;delay 1ms ; link down 1s after 1s", NULL));
    send_list();
    pass(2 * MS);
    ck_assert_uint_eq(arrived(), ALL & ~(1u << 6));
    text = fault_set_list(set);
    ck_assert_str_eq(text, "1: drop UD: matched 1, done 1\n2: delay 1ms: matched 12, done 12\n"
                           "3: link down 1s after 1s: matched 12, done 0\n");
    ck_assert(fault_set_remove(set, 1));
    ck_assert(!fault_set_remove(set, 1));
    send_list();
    pass(2 * MS);
    ck_assert_uint_eq(arrived(), ALL);
    ck_assert(!fault_set_add(set, "drop UD; drop UX", &err));
    ck_assert_uint_eq(fault_set_count(set), 2); /* all or none */
    fault_set_clear(set);
    ck_assert(fault_set_add(set, "link down 1s", NULL));
    ck_assert_uint_eq(rule(0).number, 4);
    pass(0);
    ck_assert(!wire_link_up(host));
    fault_set_clear(set); /* a link comes up with the end of its rule */
    pass(0);
    ck_assert(wire_link_up(host));
    unplug();
}
END_TEST

START_TEST(a_set_has_a_bound)
{
    g_autoptr(GError) err = NULL;

    make_set("none", 1);
    for (unsigned i = 0; i < FAULT_MAX_RULES; i++) {
        ck_assert(fault_set_add(set, "drop", NULL));
    }
    ck_assert(!fault_set_add(set, "drop", &err));
    ck_assert_str_eq(err->message,
                     "there would be 65 fault rules, but at most 64 are allowed: remove some");
    fault_set_free(set);
}
END_TEST

START_TEST(the_log_has_a_bound)
{
    plug_in("drop", 1);
    for (unsigned i = 0; i < 1000; i++) {
        send(BTH_RC | BTH_ACK, 1, i);
    }
    ck_assert_uint_eq(log_lines, 100);
    pass(1000 * MS);
    send(BTH_RC | BTH_ACK, 1, 1000);
    ck_assert_uint_eq(log_lines, 102); /* one says how many were left out */
    unplug();
}
END_TEST

/* -- devices ----------------------------------------------------------------------------------- */

static struct fault_outcome ask(enum fault_subject subject, uint32_t what)
{
    const struct fault_event event = {
        .subject = subject, .qpn = what, .vector = what, .opcode = (uint16_t)what};
    struct fault_outcome outcome;

    fault_set_ask(set, &event, &outcome);
    return outcome;
}

/* -- the watcher ------------------------------------------------------------------------------- */

static const struct {
    const char *rules;
    unsigned deeds, lost, rule;
    uint32_t psn; /* of the last one */
    const char *what, *text;
    bool inbound;
} deeds[] = {
    {"none", 0, 0, 0, 0, NULL, NULL, false},
    {"delay 1ms", 0, 0, 0, 0, NULL, NULL, false},
    {"drop nth 2", 1, 1, 1, 2, "lost: never sent", "drop nth 2", false},
    {"delay 1ms; drop psn 3", 1, 1, 2, 3, "lost: never sent", "drop psn 3", false},
    {"duplicate nth 1; drop nth 3", 2, 1, 2, 3, "lost: never sent", "drop nth 3", false},
    {"mark; drop nth 4; delay 1ms", 1, 1, 2, 4, "lost: never sent", "drop nth 4", false},
    {"duplicate nth 4", 1, 0, 1, 4, "duplicate", "duplicate nth 4", false},
    {"rate 1kbit queue 1", 3, 3, 1, 4, "lost: the queue is full", "rate 1kbit queue 1", false},
    {"drop in nth 1", 1, 1, 1, 9, "lost: never received", "drop in nth 1", true},
    {"link down 1s after 2", 3, 3, 0, 9, "lost: the link is down", "", true},
};

/* Four frames leave, and one comes. */
START_TEST(a_watcher_is_told_what_rules_do)
{
    memset(&told, 0, sizeof(told));
    plug_in(deeds[_i].rules, 1);
    fault_set_watch(set, on_deed, NULL);
    for (uint32_t psn = 1; psn <= 4; psn++) {
        send(BTH_RC | BTH_SEND_ONLY, 0x12, psn);
    }
    send_packet(peer, packet_of(BTH_RC | BTH_SEND_ONLY, 0x12, 9), 0);
    receive();
    ck_assert_uint_eq(told.deeds, deeds[_i].deeds);
    ck_assert_uint_eq(told.lost, deeds[_i].lost);
    if (told.deeds) {
        ck_assert_uint_eq(told.rule, deeds[_i].rule);
        ck_assert_uint_eq(told.psn, deeds[_i].psn);
        ck_assert_str_eq(told.what, deeds[_i].what);
        ck_assert_str_eq(told.text, deeds[_i].text);
        ck_assert_int_eq(told.inbound, deeds[_i].inbound);
    }
    fault_set_watch(set, NULL, NULL);
    told.deeds = 0;
    send(BTH_RC | BTH_SEND_ONLY, 0x12, 2);
    ck_assert_uint_eq(told.deeds, 0);
    unplug();
}
END_TEST

START_TEST(a_watcher_is_told_of_a_wrong_bit_before_it_is_wrong)
{
    memset(&told, 0, sizeof(told));
    plug_in("corrupt byte 50", 1);
    fault_set_watch(set, on_deed, NULL);
    send(BTH_RC | BTH_SEND_ONLY, 0x12, 7);
    ck_assert_ptr_nonnull(strstr(told.what, "of byte 50 is wrong"));
    ck_assert_uint_eq(told.psn, 7);
    ck_assert_uint_eq(told.lost, 0);
    unplug();
}
END_TEST

START_TEST(a_watcher_is_told_of_faults_of_the_device)
{
    memset(&told, 0, sizeof(told));
    make_set("interrupt late 5ms vector 3; doorbell unseen qp 0x12", 1);
    fault_set_watch(set, on_deed, NULL);
    ask(FAULT_ABOUT_INTERRUPTS, 2);
    ck_assert_uint_eq(told.deeds, 0);
    ask(FAULT_ABOUT_INTERRUPTS, 3);
    ck_assert_str_eq(told.what, "interrupt late");
    ck_assert_uint_eq(told.late_ns, 5 * MS);
    ask(FAULT_ABOUT_DOORBELLS, 0x12);
    ck_assert_str_eq(told.what, "doorbell unseen");
    ck_assert_int_eq(told.subject, FAULT_ABOUT_DOORBELLS);
    ck_assert_uint_eq(told.qpn, 0x12);
    ck_assert_uint_eq(told.rule, 2);
    ck_assert_uint_eq(told.deeds, 2);
    fault_set_free(set);
}
END_TEST

START_TEST(a_device_asks_about_its_events)
{
    make_set("interrupt late 5ms vector 3; doorbell unseen nth 2 qp 0x12; "
             "command CREATE_CQ fail nth 2 status BAD_RES syndrome 0x123; command any slow 10ms; "
             "health 1 after 2s; health 9 report after 3s; pages slow 20ms; "
             "receive returned qp 0x12",
             1);
    ck_assert(!ask(FAULT_ABOUT_INTERRUPTS, 2).is_late);
    ck_assert_uint_eq(ask(FAULT_ABOUT_INTERRUPTS, 3).late_ns, 5 * MS);
    ck_assert(!ask(FAULT_ABOUT_DOORBELLS, 0x12).fails);
    ck_assert(!ask(FAULT_ABOUT_DOORBELLS, 0x13).fails);
    ck_assert(ask(FAULT_ABOUT_DOORBELLS, 0x12).fails);
    ck_assert(!ask(FAULT_ABOUT_COMMANDS, 0x400).fails);
    ck_assert(!ask(FAULT_ABOUT_COMMANDS, 0x401).fails);
    ck_assert_uint_eq(ask(FAULT_ABOUT_COMMANDS, 0x401).late_ns, 10 * MS);
    ck_assert_uint_eq(ask(FAULT_ABOUT_COMMANDS, 0x400).syndrome, 0x123);
    ck_assert_uint_eq(ask(FAULT_ABOUT_PAGES, 0).late_ns, 20 * MS);
    ck_assert(!ask(FAULT_ABOUT_RECEIVES, 0x13).fails);
    ck_assert(ask(FAULT_ABOUT_RECEIVES, 0x12).fails);
    ck_assert_uint_eq(fault_set_health_due_ns(set), 3000 * MS);
    ck_assert_uint_eq(ask(FAULT_ABOUT_HEALTH, 0).health, 0);
    now += 2000 * MS;
    ck_assert_uint_eq(ask(FAULT_ABOUT_HEALTH, 0).health, 1);
    ck_assert_uint_eq(fault_set_health_due_ns(set), 4000 * MS);
    now += 1000 * MS;
    ck_assert(!ask(FAULT_ABOUT_HEALTH, 0).is_fatal);
    ck_assert_uint_eq(fault_set_health_due_ns(set), NEVER);
    fault_set_free(set);
}
END_TEST

/* -- wrong rules ------------------------------------------------------------------------------- */

static const struct {
    const char *rule, *says;
} wrong[] = {
    {"dorp", "'dorp' is not allowed there, but one of these words: loss, drop, duplicate"},
    {"link", "it ends too early: one of these words follows: down, flap"},
    {"link up", "'up' is not allowed there, but one of these words: down, flap"},
    {"link down", "it ends too early: one of these words follows: TIME"},
    {"link down 5", "link needs a time of at most 1e+06s, such as 100us, 5ms or 0.5s, but it has "
                    "'5'"},
    {"link down 5ms qp 3", "'qp' is not allowed there, but one of these words: after"},
    {"delay 11s", "delay needs a time of at most 10s"},
    {"delay 1.2.3s", "delay needs a time"},
    {"delay -1s", "delay needs a time"},
    {"loss 101%", "a percentage needs 0% to 100%"},
    {"loss 1", "'1' is not allowed there, but one of these words: qp, psn"},
    {"loss 1% 2%", "'2%' is there twice"},
    {"drop qp", "qp needs a number from 0 to 16777215, or hexadecimal behind 0x, but nothing "
                "follows"},
    {"drop qp 0x1000000", "qp needs a number"},
    {"drop qp 0x", "qp needs a number"},
    {"drop qp 12a", "qp needs a number"},
    {"drop nth 0", "nth needs a number from 1 on"},
    {"drop nth 18446744073709551616", "nth needs a number"},
    {"drop psn 1...2", "psn needs a number such as 100, or a range such as 100..110"},
    {"drop psn ..2", "psn needs a number"},
    {"drop from 10.0.0", "from needs a MAC, IPv4 or IPv6 address"},
    {"drop from 02:00:00:00:00", "from needs a MAC, IPv4 or IPv6 address"},
    {"drop RC UD", "no packet is 'UD' and what the words before it say"},
    {"drop NAK RNR_NAK", "no packet is 'RNR_NAK' and what the words before it say"},
    {"drop once times 2", "it says both 'once' and 'times'"},
    {"drop every 10ms", "'every' has a number here, and no time"},
    {"link flap 10ms", "link flap needs 'every' and a time"},
    {"link flap 10ms every 10ms", "link flap needs 'every' and a time"},
    {"link flap 10ms every 10", "link flap needs 'every' and a time"},
    {"health 0", "health needs a number from 1 to 255"},
    {"health 1 after 5", "'after' has a time here"},
    {"rate 1Gb", "rate needs a rate such as 64kbit, 100Mbit or 1Gbit"},
    {"rate 1bit", "rate needs a rate"},
    {"rate 1Gbit queue 0", "queue needs a number of bytes"},
    {"command CREATE_QC fail", "command needs the name of a command, such as CREATE_CQ, or any"},
    {"command CREATE_CQ", "it ends too early: one of these words follows: fail, slow"},
    {"command CREATE_CQ fail status NICE", "status needs a command's status"},
    {"command CREATE_CQ slow", "it ends too early: one of these words follows: TIME"},
    {"command CREATE_CQ slow 11s", "command needs a time of at most 10s"},
    {"interrupt late 5ms qp 1", "'qp' is not allowed there, but one of these words: nth"},
    {"doorbell unseen vector 1", "'vector' is not allowed there"},
};

START_TEST(a_wrong_rule_is_told_what_is_allowed)
{
    g_autoptr(GError) err = NULL;
    g_autofree char *says = g_strdup_printf("fault rule '%s': %s", wrong[_i].rule, wrong[_i].says);

    ck_assert(!fault_check(wrong[_i].rule, &names, &err));
    ck_assert_msg(g_str_has_prefix(err->message, says), "%s\nnot\n%s", err->message, says);
    ck_assert_ptr_null(strchr(err->message, '\n'));
}
END_TEST

START_TEST(other_descriptions_are_refused)
{
    g_autoptr(GError) no_device = NULL, binary = NULL, no_end = NULL;
    g_autofree char *end = g_strnfill(FAULT_MAX_TEXT + 1, ' ');

    ck_assert(!fault_check("health 1", NULL, &no_device));
    ck_assert_str_eq(no_device->message,
                     "fault rule 'health 1': there is no device here; rules can "
                     "be about frames and the link");
    ck_assert(!fault_check("drop \x80", &names, &binary));
    ck_assert_str_eq(binary->message,
                     "a description of faults is ASCII text, but its byte 5 is 0x80");
    ck_assert(!fault_check(end, &names, &no_end));
    ck_assert_str_eq(no_end->message,
                     "a description of faults has at most 4096 bytes, but this one has 4097");
    ck_assert(fault_check(" ; none;; drop ;", NULL, NULL));
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("fault rules");
    TCase *tc = tcase_create("rules");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_rule_is_about_the_frames_that_it_names, 0, G_N_ELEMENTS(matches));
    tcase_add_test(tc, the_second_read_response_of_a_qp_is_lost_once);
    tcase_add_test(tc, after_and_for_are_times);
    tcase_add_test(tc, every_tenth_write_is_wrong_and_nobody_detects_it);
    tcase_add_test(tc, without_repair_the_icrc_detects_a_wrong_byte);
    tcase_add_test(tc, only_frames_of_senders_that_support_ecn_are_marked);
    tcase_add_test(tc, a_delay_keeps_the_order);
    tcase_add_test(tc, rules_know_packets_of_version_1);
    tcase_add_test(tc, a_rate_is_a_line_that_frames_leave_one_by_one);
    tcase_add_test(tc, later_frames_pass_a_reordered_one);
    tcase_add_test(tc, faults_of_received_frames);
    tcase_add_test(tc, a_link_goes_down_and_comes_up);
    tcase_add_test(tc, a_link_flaps_for_a_time);
    tcase_add_test(tc, seeds_repeat_and_rates_hold);
    tcase_add_test(tc, each_rule_has_its_own_chance);
    tcase_add_test(tc, rules_come_and_go_while_frames_pass);
    tcase_add_test(tc, a_set_has_a_bound);
    tcase_add_test(tc, the_log_has_a_bound);
    tcase_add_test(tc, a_device_asks_about_its_events);
    tcase_add_loop_test(tc, a_watcher_is_told_what_rules_do, 0, G_N_ELEMENTS(deeds));
    tcase_add_test(tc, a_watcher_is_told_of_a_wrong_bit_before_it_is_wrong);
    tcase_add_test(tc, a_watcher_is_told_of_faults_of_the_device);
    tcase_add_loop_test(tc, a_wrong_rule_is_told_what_is_allowed, 0, G_N_ELEMENTS(wrong));
    tcase_add_test(tc, other_descriptions_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
