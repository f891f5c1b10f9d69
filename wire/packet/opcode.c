/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table: the headers that follow the BTH, and which part of a message a packet is.
 *
 * It has one row per opcode of IBTA volume 1 table 38 (RC, UC, UD), annex A14 (XRC), A17.9 (CNP),
 * and the manufacturer's extended atomics. This device does not support reliable datagrams: DC has
 * their opcodes. The rows of DC are those of RC with a DCETH in each packet, plus CONNECT
 * (docs/adr/0009). header_len follows from the flags, so no row states it.
 */
#include "wire/packet/opcode.h"

/* Total length of the headers that a row's flags name. */
#define EXT_BYTES(f)                                                                               \
    ((((f)&HDR_DC_ETH) ? DC_ETH_BYTES : 0) + (((f)&HDR_XRC_ETH) ? XRC_ETH_BYTES : 0) +             \
     (((f)&HDR_DETH) ? DETH_BYTES : 0) + (((f)&HDR_RETH) ? RETH_BYTES : 0) +                       \
     (((f)&HDR_ATOMIC_ETH) ? ATOMIC_ETH_BYTES : 0) + (((f)&HDR_AETH) ? AETH_BYTES : 0) +           \
     (((f)&HDR_ATOMIC_ACK_ETH) ? ATOMIC_ACK_ETH_BYTES : 0) +                                       \
     (((f)&HDR_IMM_DT) ? IMM_DT_BYTES : 0) + (((f)&HDR_IETH) ? IETH_BYTES : 0) +                   \
     (((f)&HDR_CNP_RSVD) ? CNP_RSVD_BYTES : 0))

#define ROW(t, op, f)                                                                              \
    [BTH_##t | BTH_##op] = {                                                                       \
        .name = #t "_" #op,                                                                        \
        .flags = (f),                                                                              \
        .header_len = BTH_BYTES + EXT_BYTES(f),                                                    \
        .transport = BTH_##t,                                                                      \
    }

#define FIRST       PKT_FIRST
#define MIDDLE      0
#define LAST        PKT_LAST
#define ONLY        (PKT_FIRST | PKT_LAST)

#define SEND(part)  (PKT_REQUEST | PKT_SEND | HDR_PAYLOAD | (part))
#define WRITE(part) (PKT_REQUEST | PKT_WRITE | HDR_PAYLOAD | (part))
#define READ_REQ    (PKT_REQUEST | PKT_READ | HDR_RETH | ONLY)
#define READ_RSP(p) (PKT_RESPONSE | PKT_READ | HDR_PAYLOAD | (p))
#define ATOMIC_REQ  (PKT_REQUEST | PKT_ATOMIC | HDR_ATOMIC_ETH | ONLY)
#define ACK         (PKT_RESPONSE | HDR_AETH | ONLY)
#define ATOMIC_ACK  (PKT_RESPONSE | PKT_ATOMIC | HDR_AETH | HDR_ATOMIC_ACK_ETH | ONLY)

/* Extended atomics (docs/adr/0011). */
#define EXTENDED_ROW(t, op, f)                                                                     \
    [BTH_EXTENDED_##t | BTH_EXTENDED_##op] = {                                                     \
        .name = #t "_EXTENDED_" #op,                                                               \
        .flags = (f),                                                                              \
        .header_len = BTH_BYTES + EXT_BYTES(f),                                                    \
        .transport = BTH_##t,                                                                      \
    }
#define EXTENDED_REQ (PKT_REQUEST | PKT_ATOMIC | HDR_RETH | HDR_PAYLOAD | ONLY)
#define EXTENDED_ACK (PKT_RESPONSE | PKT_ATOMIC | HDR_AETH | HDR_PAYLOAD | ONLY)
#define EXTENDED_ROWS(t, x, y)                                                                     \
    EXTENDED_ROW(t, CMP_SWAP, EXTENDED_REQ | (x)), EXTENDED_ROW(t, FETCH_ADD, EXTENDED_REQ | (x)), \
        EXTENDED_ROW(t, ACK, EXTENDED_ACK | (y))

/* Requests that unreliable and reliable connections share; x is an additional extended header in
 * each of them (XRC's, DC's). */
#define CONNECTED_ROWS(t, x)                                                                       \
    ROW(t, SEND_FIRST, SEND(FIRST) | (x)), ROW(t, SEND_MIDDLE, SEND(MIDDLE) | (x)),                \
        ROW(t, SEND_LAST, SEND(LAST) | (x)), ROW(t, SEND_LAST_IMM, SEND(LAST) | HDR_IMM_DT | (x)), \
        ROW(t, SEND_ONLY, SEND(ONLY) | (x)), ROW(t, SEND_ONLY_IMM, SEND(ONLY) | HDR_IMM_DT | (x)), \
        ROW(t, WRITE_FIRST, WRITE(FIRST) | HDR_RETH | (x)),                                        \
        ROW(t, WRITE_MIDDLE, WRITE(MIDDLE) | (x)), ROW(t, WRITE_LAST, WRITE(LAST) | (x)),          \
        ROW(t, WRITE_LAST_IMM, WRITE(LAST) | HDR_IMM_DT | (x)),                                    \
        ROW(t, WRITE_ONLY, WRITE(ONLY) | HDR_RETH | (x)),                                          \
        ROW(t, WRITE_ONLY_IMM, WRITE(ONLY) | HDR_RETH | HDR_IMM_DT | (x))

/* Rows that only reliable connections have; y is an additional header of their responses. Responses
 * never have the XRCETH (annex A14). */
#define RELIABLE_ROWS(t, x, y)                                                                     \
    CONNECTED_ROWS(t, x), ROW(t, READ_REQUEST, READ_REQ | (x)),                                    \
        ROW(t, READ_RESP_FIRST, READ_RSP(FIRST) | HDR_AETH | (y)),                                 \
        ROW(t, READ_RESP_MIDDLE, READ_RSP(MIDDLE) | (y)),                                          \
        ROW(t, READ_RESP_LAST, READ_RSP(LAST) | HDR_AETH | (y)),                                   \
        ROW(t, READ_RESP_ONLY, READ_RSP(ONLY) | HDR_AETH | (y)), ROW(t, ACK, ACK | (y)),           \
        ROW(t, ATOMIC_ACK, ATOMIC_ACK | (y)), ROW(t, CMP_SWAP, ATOMIC_REQ | (x)),                  \
        ROW(t, FETCH_ADD, ATOMIC_REQ | (x)), ROW(t, SEND_LAST_INV, SEND(LAST) | HDR_IETH | (x)),   \
        ROW(t, SEND_ONLY_INV, SEND(ONLY) | HDR_IETH | (x))

const struct bth_opcode_info bth_opcodes[256] = {
    RELIABLE_ROWS(RC, 0, 0),
    CONNECTED_ROWS(UC, 0),
    ROW(UD, SEND_ONLY, SEND(ONLY) | HDR_DETH),
    ROW(UD, SEND_ONLY_IMM, SEND(ONLY) | HDR_DETH | HDR_IMM_DT),
    RELIABLE_ROWS(DC, HDR_DC_ETH, HDR_DC_ETH),
    /* its payload is not data but the DCCETH */
    ROW(DC, CONNECT, PKT_REQUEST | HDR_PAYLOAD | HDR_DC_ETH | ONLY),
    RELIABLE_ROWS(XRC, HDR_XRC_ETH, 0),
    [BTH_CNP_OPCODE] =
        {
            .name = "CNP",
            .flags = HDR_CNP_RSVD | ONLY,
            .header_len = BTH_BYTES + EXT_BYTES(HDR_CNP_RSVD),
            .transport = BTH_CNP,
        },
    EXTENDED_ROWS(RC, 0, 0),
    EXTENDED_ROWS(XRC, HDR_XRC_ETH, 0),
    EXTENDED_ROWS(DC, HDR_DC_ETH, HDR_DC_ETH),
};
