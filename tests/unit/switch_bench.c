/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements switch_bench.h. */
#include "tests/unit/switch_bench.h"
#include "wire/bytes.h"
#include "wire/encap/eth.h"
#include "wire/pair.h"

#include <check.h>
#include <string.h>

struct wire_switch *bench_sw;
uint64_t bench_now;
struct station bench_at[BENCH_STATIONS];
static unsigned bench_num;

void bench_mac(uint8_t mac[6], unsigned station)
{
    const uint8_t one[6] = {2, 0, 0, 0, (uint8_t)(station >> 8), (uint8_t)station};

    if (station == BENCH_ALL) {
        memset(mac, 0xff, 6);
    } else {
        memcpy(mac, one, 6);
    }
}

static void bench_take_pause(struct station *s, const uint8_t *frame)
{
    bool pauses = false;

    s->pause_opcode = get16(frame + 14);
    for (unsigned i = 0; i < 8; i++) {
        s->paused[i] = get16(frame + (s->pause_opcode == 1 ? 16 : 18 + 2 * i)) != 0;
        pauses |= s->paused[i];
    }
    s->pauses += pauses;
    s->resumes += !pauses;
}

static void bench_on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    struct station *s = client;
    uint8_t mac[6];
    struct eth_info info;

    if (get16(frame + 12) == 0x8808) {
        bench_take_pause(s, frame);
        return;
    }
    bench_mac(mac, (unsigned)(s - bench_at));
    s->frames++;
    s->foreign += !(frame[0] & 1) && memcmp(mac, frame, 6) != 0;
    s->marked += eth_parse(frame, len, &info) && info.ip_version && (info.tos & 3) == 3;
    s->last_ns = bench_now;
    s->len = len;
    memcpy(s->frame, frame, len);
}

static const struct wire_client bench_client = {.rx = bench_on_rx};

unsigned bench_plug(unsigned slots)
{
    struct wire_port *ends[2];
    struct station *s = &bench_at[++bench_num];
    GError *err = NULL;

    ck_assert_uint_lt(bench_num, BENCH_STATIONS);
    wire_pair_new(slots, ends);
    *s = (struct station){.port = ends[0]};
    wire_set_client(ends[0], &bench_client, s);
    s->number = wire_switch_add(bench_sw, ends[1], "a pair", false, &err);
    ck_assert_msg(s->number, "%s", err ? err->message : "");
    return bench_num;
}

void bench_begin(const struct wire_switch_config *config, unsigned num, unsigned slots)
{
    static const struct wire_switch_config usual = {.seed = 1};

    bench_now = BENCH_S;
    bench_num = 0;
    bench_sw = wire_switch_new(config ? config : &usual, bench_now);
    for (unsigned i = 0; i < num; i++) {
        bench_plug(slots);
    }
}

void bench_end(void)
{
    ck_assert(wire_switch_adds_up(bench_sw));
    wire_switch_free(bench_sw);
    for (unsigned i = 1; i <= bench_num; i++) {
        if (bench_at[i].port) {
            wire_close(bench_at[i].port);
        }
    }
}

void bench_unplug(unsigned station)
{
    wire_close(bench_at[station].port);
    bench_at[station].port = NULL;
}

void bench_set(unsigned station, const char *key, const char *value)
{
    GError *err = NULL;

    ck_assert_msg(
        wire_switch_set(bench_sw, station ? bench_at[station].number : 0, key, value, &err), "%s",
        err ? err->message : "");
}

void bench_build(uint8_t *frame, unsigned from, unsigned to, size_t len, uint8_t tos)
{
    uint8_t *ip = frame + ETH_BYTES;

    memset(frame, 0, len);
    bench_mac(frame, to);
    bench_mac(frame + 6, from);
    put16(frame + 12, ETH_TYPE_IPV4);
    ip[0] = 0x45;
    ip[1] = tos;
    put16(ip + 2, (uint16_t)(len - ETH_BYTES));
    ip[8] = 64;
    ip[9] = IP_PROTO_UDP;
    put32(ip + 12, 0x0a000000 + from);
    put32(ip + 16, 0x0a000000 + to);
    put16(ip + 10, (uint16_t)~csum_partial(ip, IPV4_BYTES));
    put16(ip + IPV4_BYTES + 4, (uint16_t)(len - ETH_BYTES - IPV4_BYTES));
}

bool bench_send_bytes(unsigned station, const uint8_t *bytes, size_t len)
{
    uint8_t *room = wire_tx_reserve(bench_at[station].port, len);

    if (!room) {
        return false;
    }
    memcpy(room, bytes, len);
    wire_tx_commit(bench_at[station].port, len);
    return true;
}

bool bench_send_as(unsigned from, unsigned to, size_t len, uint8_t tos)
{
    static uint8_t frame[WIRE_FRAME_MAX];

    if (bench_at[from].obeys && bench_at[from].paused[tos >> 5]) {
        return false;
    }
    bench_build(frame, from, to, len, tos);
    return bench_send_bytes(from, frame, len);
}

bool bench_send(unsigned from, unsigned to)
{
    return bench_send_as(from, to, BENCH_SHORT, 0);
}

bool bench_send_tagged(unsigned from, unsigned to, unsigned vid, unsigned priority)
{
    uint8_t frame[BENCH_SHORT + 4];

    bench_build(frame, from, to, BENCH_SHORT, 0);
    memmove(frame + 16, frame + 12, BENCH_SHORT - 12);
    put16(frame + 12, ETH_TYPE_VLAN);
    put16(frame + 14, (uint16_t)(priority << 13 | vid));
    return bench_send_bytes(from, frame, sizeof(frame));
}

/* Whether a station has taken anything. */
static bool bench_take(void)
{
    bool any = false;

    for (unsigned i = 1; i <= bench_num; i++) {
        any |= bench_at[i].port && !bench_at[i].sleeps && wire_poll(bench_at[i].port, 64);
    }
    return any;
}

void bench_turn(void)
{
    bool more = true;

    for (unsigned i = 0; more; i++) {
        ck_assert_uint_lt(i, 100000);
        more = wire_switch_turn(bench_sw, bench_now);
        more |= bench_take();
    }
}

void bench_pass(uint64_t ns)
{
    uint64_t until = bench_now + ns, next;

    bench_turn();
    while ((next = wire_switch_deadline(bench_sw)) <= until) {
        ck_assert_uint_gt(next, bench_now);
        bench_now = next;
        bench_turn();
    }
    bench_now = until;
    bench_turn();
}

void bench_forget(void)
{
    for (unsigned i = 1; i <= bench_num; i++) {
        bench_at[i].frames = bench_at[i].foreign = bench_at[i].marked = 0;
    }
}

void bench_announce(void)
{
    for (unsigned i = 1; i <= bench_num; i++) {
        ck_assert(bench_send(i, BENCH_ALL));
        bench_turn();
    }
    bench_forget();
}

struct switch_stats bench_stats(unsigned station)
{
    struct wire_switch_port_view view;

    ck_assert(wire_switch_view(bench_sw, bench_at[station].number, &view));
    return view.stats;
}
