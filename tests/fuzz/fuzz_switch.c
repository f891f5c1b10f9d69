/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: stations at several ports of a switch send arbitrary frames, sleep, and go, while
 * settings change and time passes.
 *
 * Each byte is a step; what it needs follows. After each step the statistics must add up and the
 * frames that wait must have places. No station may hear itself: the last byte of a frame names its
 * sender. At the end all stations take what waits, and no place of the buffer may be left used.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/take.h"
#include "wire/bytes.h"
#include "wire/pair.h"
#include "wire/switch/switch.h"

enum {
    STATIONS = 6,
    SLOTS = 4,
    MAX_STEPS = 400,
    MAX_PAYLOAD = 255,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct station {
    struct wire_port *port;
    unsigned index, number;
    bool sleeps;
};

struct run {
    struct wire_switch *sw;
    uint64_t now;
    bool querier;
    struct station at[STATIONS];
    const uint8_t *data;
    size_t size;
};

static struct run run;

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint8_t take(void)
{
    return take_u8_from(&run.data, &run.size);
}

/* -- stations ---------------------------------------------------------------------------------- */

static void on_rx(void *client, const uint8_t *frame, size_t len, unsigned flags)
{
    const struct station *s = client;

    require(len >= 14 && len <= WIRE_FRAME_MAX && !flags);
    require(run.querier || get16(frame + 12) == 0x8808 || frame[len - 1] != s->index);
}

static const struct wire_client client = {.rx = on_rx};

static void plug(unsigned index)
{
    struct station *s = &run.at[index];
    struct wire_port *ends[2];

    wire_pair_new(SLOTS, ends);
    *s = (struct station){.port = ends[0], .index = index};
    wire_set_client(ends[0], &client, s);
    s->number = wire_switch_add(run.sw, ends[1], "a pair", false, NULL);
    require(s->number != 0);
}

static void unplug(struct station *s)
{
    wire_switch_remove(run.sw, s->number);
    wire_close(s->port);
}

static void turn(void)
{
    for (unsigned i = 0; i < 8; i++) {
        wire_switch_turn(run.sw, run.now);
        for (unsigned j = 0; j < STATIONS; j++) {
            if (!run.at[j].sleeps) {
                wire_poll(run.at[j].port, 64);
            }
        }
    }
}

/* -- steps ------------------------------------------------------------------------------------- */

/* An address of a few, so that stations are found, move, and have groups. */
static void put_mac(uint8_t *at)
{
    static const uint8_t of[][6] = {{2, 0, 0, 0, 0, 1},
                                    {2, 0, 0, 0, 0, 2},
                                    {2, 0, 0, 0, 0, 3},
                                    {2, 0, 0, 0, 0, 4},
                                    {1, 0, 0x5e, 1, 2, 3},
                                    {0x33, 0x33, 0, 1, 2, 3},
                                    {1, 0, 0x5e, 0, 0, 22},
                                    {0x33, 0x33, 0, 0, 0, 22},
                                    {1, 0x80, 0xc2, 0, 0, 1},
                                    {1, 0x80, 0xc2, 0, 0, 0x0e},
                                    {0},
                                    {255, 255, 255, 255, 255, 255}};
    uint8_t which = take();

    if (which < 0xf0) {
        memcpy(at, of[which % G_N_ELEMENTS(of)], 6);
        return;
    }
    for (unsigned i = 0; i < 6; i++) {
        at[i] = take();
    }
}

static void send_frame(struct station *s)
{
    uint8_t *frame = wire_tx_reserve(s->port, WIRE_FRAME_MAX);
    unsigned shape, len = 12;
    size_t payload;

    if (!frame) {
        return;
    }
    put_mac(frame);
    put_mac(frame + 6);
    shape = take();
    if (shape & 1) { /* a tag */
        put16(frame + len, 0x8100);
        frame[len + 2] = take();
        frame[len + 3] = take();
        len += 4;
    }
    if (shape & 2) { /* else the payload has the type */
        static const uint16_t types[] = {0x0800, 0x86dd, 0x8808, 0x0806};

        put16(frame + len, types[shape >> 2 & 3]);
        len += 2;
    }
    payload = take();
    payload = MIN(payload, run.size);
    memcpy(frame + len, run.data, payload);
    run.data += payload;
    run.size -= payload;
    len += (unsigned)payload;
    if (shape & 0x80) { /* long */
        memset(frame + len, 0, 8000);
        len += 8000;
    }
    frame[len++] = (uint8_t)s->index;
    wire_tx_commit(s->port, len);
}

static void change_setting(struct station *s)
{
    static const struct {
        const char *key, *value;
    } of[] = {{"rate", "0"},           {"rate", "1G"},      {"rate", "1M"},
              {"latency", "0"},        {"latency", "50us"}, {"queue", "1M"},
              {"queue", "2K"},         {"ecn", "0:4K:50"},  {"ecn", "off"},
              {"pfc", "2K:1K"},        {"pfc", "2K:0:3"},   {"pfc", "off"},
              {"pause", "9K:1K"},      {"pause", "off"},    {"link", "down"},
              {"link", "up"},          {"island", "0"},     {"island", "1"},
              {"vlan", "all"},         {"vlan", "10"},      {"vlan", "trunk:10,20-29"},
              {"vlan", "trunk:1-9:5"}, {"priority", "7"}};
    unsigned i = take() % G_N_ELEMENTS(of);

    require(wire_switch_set(run.sw, s->number, of[i].key, of[i].value, NULL));
}

/* A setting whose text is arbitrary: it is refused, or is read back as a text that is taken. */
static void change_setting_by_bytes(struct station *s)
{
    const char *const *keys = wire_switch_keys();
    const char *key = keys[take() % g_strv_length((char **)keys)];
    char text[24] = {0};
    size_t len = take() % sizeof(text);

    for (size_t i = 0; i < len; i++) {
        text[i] = (char)take();
    }
    if (wire_switch_set(run.sw, s->number, key, text, NULL)) {
        g_autofree char *read = wire_switch_get(run.sw, s->number, key), *again = NULL;

        require(wire_switch_set(run.sw, s->number, key, read, NULL));
        again = wire_switch_get(run.sw, s->number, key);
        require(!strcmp(read, again));
    }
}

static void step(void)
{
    uint8_t what = take();
    struct station *s = &run.at[what % STATIONS];

    switch (what / STATIONS % 12) {
    case 0:
        change_setting(s);
        break;
    case 1:
        s->sleeps = !s->sleeps;
        break;
    case 2:
        run.now += 1000ull << take() % 32;
        break;
    case 3:
        unplug(s);
        plug(s->index);
        break;
    case 4:
        change_setting_by_bytes(s);
        break;
    case 5:
        turn();
        break;
    default:
        send_frame(s);
        turn();
    }
}

static void check(void)
{
    struct wire_switch_view view = wire_switch_whole(run.sw);

    require(wire_switch_adds_up(run.sw));
    require(view.frames <= view.frames_most);
    require(view.addresses <= view.addresses_most && view.memberships <= view.memberships_most);
}

/* Everything that waits goes, or is dropped. */
static void drain(void)
{
    for (unsigned i = 0; i < STATIONS; i++) {
        run.at[i].sleeps = false;
        require(wire_switch_set(run.sw, run.at[i].number, "rate", "0", NULL));
        require(wire_switch_set(run.sw, run.at[i].number, "latency", "0", NULL));
    }
    for (unsigned i = 0; i < 200; i++) {
        run.now += 100000000;
        turn();
    }
    check();
    require(!wire_switch_whole(run.sw).frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_switch_config config = {
        .ports = STATIONS, .buffer = 1, .addresses = 8, .groups = 8, .seed = 1};

    run = (struct run){.data = data, .size = size};
    run.querier = config.querier = take() & 1;
    run.sw = wire_switch_new(&config, run.now);
    for (unsigned i = 0; i < STATIONS; i++) {
        plug(i);
    }
    for (unsigned i = 0; i < MAX_STEPS && run.size; i++) {
        step();
        check();
    }
    drain();
    for (unsigned i = 0; i < STATIONS; i++) {
        unplug(&run.at[i]);
    }
    require(wire_switch_adds_up(run.sw));
    wire_switch_free(run.sw);
    return 0;
}
