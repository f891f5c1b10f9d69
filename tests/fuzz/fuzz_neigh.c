/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: frames of ARP and neighbour discovery as anybody on the wire may send them, to a host
 * that knows some neighbours and looks for others. The host must not answer what was not asked, and
 * must not answer to a group except for a probe.
 *
 * An input is a list of: a byte that selects the frame, a byte of flags, and six pairs of an offset
 * in it and a value that is added there. Flags: 1: the checksum is right; 2: the host looks for an
 * address; 4: time advances; 8: the frame ends where the first pair says; 16: it has one more
 * option.
 */
#include <stdlib.h>
#include <string.h>
#include "guest-lib/host/neighbours.h"

#define STEP   14
#define LONG   128
#define SECOND 1000000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t mac[6] = {0x52, 0x54, 0, 0, 0, 1};
static const uint8_t peer[6] = {0x52, 0x54, 0, 0, 0, 2};
static const uint8_t own[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 1}, {0xfe, 0x80, [15] = 1}};
static const uint8_t other[2][16] = {{[10] = 0xff, 0xff, 10, 0, 0, 2}, {0xfe, 0x80, [15] = 2}};

static unsigned sent;

static void fuzz_send(void *opaque, const uint8_t *frame, size_t len)
{
    struct neigh_msg msg;

    sent++;
    if (len > NEIGH_FRAME_MAX || !neigh_parse(frame, len, &msg) || memcmp(msg.mac, mac, 6) != 0) {
        abort();
    }
    if (!msg.is_question && frame[0] & 1 && memcmp(frame, "\x33\x33\0\0\0\1", 6) != 0) {
        abort();
    }
}

static void fuzz_answered(void *opaque)
{
}

static const struct neighbours_ops ops = {fuzz_send, fuzz_answered};

/* Writes one of the four kinds of frames. */
static size_t fuzz_frame(uint8_t *frame, unsigned which)
{
    struct neigh_msg question = {.is_question = true};
    unsigned family = which & 1;

    if (which & 2) {
        memcpy(question.sender, own[family], 16);
        memcpy(question.mac, mac, 6);
        memcpy(question.asked, other[family], 16);
        return neigh_build_answer(frame, peer, &question);
    }
    return neigh_build_question(frame, peer, other[family], own[family], which & 4 ? mac : NULL);
}

static void fuzz_fix_csum(uint8_t *frame, size_t len)
{
    size_t payload = len > 54 ? len - 54 : 0;
    uint32_t sum = 58 + (uint32_t)payload;

    if (frame[12] != 0x86 || payload < 4) {
        return;
    }
    frame[18] = (uint8_t)(payload >> 8);
    frame[19] = (uint8_t)payload;
    frame[56] = frame[57] = 0;
    for (size_t i = 22; i < len; i++) {
        sum += i & 1 ? frame[i] : (uint32_t)frame[i] << 8;
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    frame[56] = (uint8_t)(sum >> 8);
    frame[57] = (uint8_t)sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct neighbours *n = neighbours_new(&ops, NULL, mac);
    uint64_t now_ns = SECOND;
    uint8_t where[6];

    neighbours_add_own(n, own[0]);
    neighbours_add_own(n, own[1]);
    for (; size >= STEP; data += STEP, size -= STEP) {
        uint8_t frame[LONG] = {0}, *copy;
        size_t len = fuzz_frame(frame, data[0]);
        unsigned before;

        len += data[1] & 16 ? 8 : 0;
        for (unsigned i = 2; i < STEP; i += 2) {
            frame[data[i] % LONG] += data[i + 1];
        }
        if (data[1] & 1) {
            fuzz_fix_csum(frame, len);
        }
        len = data[1] & 8 ? data[2] % LONG : len;
        now_ns += data[1] & 4 ? 7 * SECOND : 0;
        if (data[1] & 2) {
            neighbours_find(n, now_ns, other[data[0] & 1], where);
        }
        /* of exactly its size, so that an access beyond it is found */
        copy = malloc(len ? len : 1);
        memcpy(copy, frame, len);
        before = sent;
        neighbours_rx(n, now_ns, copy, len);
        if (sent > before + 1) {
            abort();
        }
        free(copy);
    }
    neighbours_free(n);
    return 0;
}
