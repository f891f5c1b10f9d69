/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: fault rules (wire/fault) as a user may write them, and foreign frames that they are
 * asked about, in both directions.
 *
 * The first line of an input is a description of rules. It must be refused with one line, or be
 * made of rules whose texts are rules again. The rest are steps of STEP bytes: one that chooses a
 * frame and its direction, and six pairs of an offset in it and a value that is added there. No
 * frame may come in more copies, or with another length, than the rules can cause.
 */
#include <stdlib.h>
#include <string.h>
#include "wire/encap/roce.h"
#include "wire/fault/port.h"
#include "wire/pair.h"

#define STEP  13
#define STEPS 40
#define SLOTS 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t opcodes[] = {BTH_RC | BTH_SEND_ONLY,  BTH_RC | BTH_READ_RESP_ONLY,
                                  BTH_RC | BTH_ACK,        BTH_UD | BTH_SEND_ONLY,
                                  BTH_DC | BTH_WRITE_ONLY, BTH_CNP_OPCODE,
                                  BTH_XRC | BTH_CMP_SWAP,  BTH_UC | BTH_WRITE_LAST_IMM};

static unsigned arrived;
static size_t most_len;
static uint64_t now_ns, due_ns;

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

static bool fuzz_name_command(const char *name, uint16_t *opcode)
{
    *opcode = 1;
    return !strcmp(name, "CREATE_CQ");
}

static bool fuzz_name_status(const char *name, uint8_t *status)
{
    *status = 1;
    return !strcmp(name, "BAD_RES");
}

static const struct fault_names names = {fuzz_name_command, fuzz_name_status};

static uint64_t fuzz_clock(void *opaque)
{
    return now_ns;
}

static void fuzz_wake_at(void *opaque, uint64_t time_ns)
{
    due_ns = time_ns;
}

static void fuzz_log(void *opaque, const char *line)
{
    require(!strchr(line, '\n'));
}

static void fuzz_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    require(len <= most_len);
    arrived++;
}

static const struct wire_client client = {.rx = fuzz_rx};

/* Writes a frame of the step. Returns its length. */
static size_t fuzz_frame(uint8_t *frame, const uint8_t *step)
{
    struct roce_packet pkt = {.opcode = opcodes[step[0] & 7],
                              .addr = {.is_ipv4 = step[0] & 8, .tclass = 1}};
    uint8_t *payload;
    size_t len;

    memset(frame, 0, WIRE_FRAME_MAX);
    payload = roce_build(frame, &pkt, 32);
    memset(payload, 1, 32);
    len = roce_finish(frame, &pkt, 32);
    for (unsigned i = 0; i < 6; i++) {
        frame[step[1 + 2 * i] % len] += step[2 + 2 * i];
    }
    return step[0] & 32 ? ETH_BYTES + step[1] % (len - ETH_BYTES) : len;
}

static void fuzz_step(struct wire_port *const ends[2], const uint8_t *step)
{
    struct wire_port *from = ends[step[0] >> 4 & 1];
    uint8_t *room = wire_tx_reserve(from, WIRE_FRAME_MAX);
    size_t len;

    if (!room) {
        return;
    }
    len = fuzz_frame(room, step);
    most_len = MAX(most_len, len);
    wire_tx_commit(from, len);
    wire_poll(ends[0], SLOTS);
    wire_poll(ends[1], SLOTS);
    if (step[0] & 64) {
        now_ns = MAX(now_ns, due_ns == UINT64_MAX ? now_ns + 1000 : due_ns);
        due_ns = UINT64_MAX;
        wire_fd_event(ends[0]);
    }
}

static void fuzz_frames(struct fault_set *set, const uint8_t *data, size_t size)
{
    const struct wire_fault_options options = {.wake_at = fuzz_wake_at};
    struct wire_port *ends[2];
    unsigned sent = 0;

    arrived = 0;
    most_len = 0;
    wire_pair_new(SLOTS, ends);
    ends[0] = wire_fault_new(ends[0], set, &options, NULL);
    wire_set_client(ends[0], &client, NULL);
    wire_set_client(ends[1], &client, NULL);
    for (; size >= STEP && sent < STEPS; data += STEP, size -= STEP) {
        fuzz_step(ends, data);
        sent++;
    }
    wire_fault_settle(ends[0]);
    wire_poll(ends[1], SLOTS);
    require(arrived <= 2 * sent);
    wire_close(ends[0]);
    wire_close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fault_options options = {.clock_ns = fuzz_clock, .log = fuzz_log, .names = &names};
    const uint8_t *end = memchr(data, '\n', size);
    size_t len = end ? (size_t)(end - data) : size;
    g_autofree char *text = g_strndup((const char *)data, len);
    g_autoptr(GError) err = NULL;
    struct fault_set *set;

    if (!fault_check(text, &names, &err)) {
        require(err && *err->message && !strchr(err->message, '\n'));
        return 0;
    }
    now_ns = 1000000000;
    due_ns = UINT64_MAX;
    set = fault_set_new(&options);
    require(fault_set_add(set, text, NULL));
    for (unsigned i = 0; i < fault_set_count(set); i++) {
        struct fault_info info;

        fault_set_get(set, i, &info);
        require(fault_check(info.text, &names, NULL));
    }
    if (end) {
        fuzz_frames(set, end + 1, size - len - 1);
    }
    fault_set_free(set);
    return 0;
}
