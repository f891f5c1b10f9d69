/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames for the tests of what flow entries do to frames. Scapy 2.5 made them, and what they must
 * become, so that no code of the device says what is right.
 */
#ifndef HCASIM_TESTS_STEER_FRAMES_H
#define HCASIM_TESTS_STEER_FRAMES_H

#include <check.h>
#include <glib.h>
#include <string.h>
#include "model/steering/contexts.h"
#include "model/steering/packet.h"

/* TCP 10.0.0.2:1000 -> 10.0.0.1:2000; TOS 0xb8, TTL 64, sequence 0x01020304, flags PSH and ACK. */
#define FRAME_TCP4                                                                                 \
    "248a07a52801248a07a528c8080045b8003400070000400666030a0000020a00000103e807d0010203040a0b0c0d" \
    "50180200d4420000404142434445464748494a4b"
/* UDP 2001:db8::2:1000 -> 2001:db8::1:2000; VLAN 100, priority 3; traffic class 0xb9, hop limit
 * 64. */
#define FRAME_UDP6                                                                                 \
    "248a07a52801248a07a528c88100606486dd6b9123450014114020010db800000000000000000000000220010db8" \
    "00000000000000000000000103e807d00014f8f3404142434445464748494a4b"
/* UDP 10.0.0.2:1000 -> 10.0.0.1:2000. */
#define FRAME_UDP4                                                                                 \
    "248a07a52801248a07a528c808004500002800070000401166bc0a0000020a00000103e807d00014406640414243" \
    "4445464748494a4b"

#define STEER_ROOM 256 /* bytes before a frame */

/* A frame that can be changed. */
struct steer_frame {
    struct steer_packet packet;
    uint8_t room[STEER_ROOM + WIRE_FRAME_MAX];
};

static inline size_t steer_hex(uint8_t *bytes, const char *hex)
{
    size_t n = 0;

    for (; g_ascii_isxdigit(hex[0]) && g_ascii_isxdigit(hex[1]); hex += 2) {
        bytes[n++] = (uint8_t)(g_ascii_xdigit_value(hex[0]) << 4 | g_ascii_xdigit_value(hex[1]));
    }
    return n;
}

static inline void steer_load(struct steer_frame *f, const char *hex)
{
    memset(f->room, 0xee, sizeof(f->room));
    f->packet = (struct steer_packet){.bytes = f->room + STEER_ROOM, .headroom = STEER_ROOM};
    f->packet.len = steer_hex(f->packet.bytes, hex);
}

/* Expects exactly these bytes. */
static inline void steer_expect(const struct steer_frame *f, const uint8_t *bytes, size_t len,
                                const char *what)
{
    ck_assert_msg(f->packet.len == len, "%s: %zu bytes, not %zu", what, f->packet.len, len);
    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(f->packet.bytes[i] == bytes[i], "%s: byte %zu is 0x%02x, not 0x%02x", what, i,
                      f->packet.bytes[i], bytes[i]);
    }
    ck_assert_ptr_eq(f->packet.bytes, f->room + f->packet.headroom);
}

static inline void steer_expect_hex(const struct steer_frame *f, const char *hex, const char *what)
{
    uint8_t bytes[512];

    steer_expect(f, bytes, steer_hex(bytes, hex), what);
}

/* Makes a packet reformat context with these headers; returns its number. */
static inline uint32_t steer_reformat(struct hca *hca, uint16_t uid, uint8_t type,
                                      const char *headers)
{
    struct {
        struct prm_packet_reformat_context_in context[1];
        uint8_t more[REFORMAT_MAX];
    } in = {0};
    uint8_t *data = PRM_PTR(packet_reformat_context_in, in.context, reformat_data);
    size_t len = steer_hex(data, headers);
    uint32_t id;

    PRM_SET(packet_reformat_context_in, in.context, reformat_type, type);
    PRM_SET(packet_reformat_context_in, in.context, reformat_data_size, (uint32_t)len);
    ck_assert_int_eq(packet_reformat_create(hca, uid, in.context, len, &id), SYN_OK);
    return id;
}

#endif
