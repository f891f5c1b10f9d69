/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opcodes of the BTH: which headers follow each opcode, how long they are, and which part of a
 * message the packet is (IBTA volume 1 table 38, annexes A14 and A17.9; DC: docs/adr/0009).
 */
#ifndef HCASIM_WIRE_PACKET_OPCODE_H
#define HCASIM_WIRE_PACKET_OPCODE_H

#include <stdint.h>

/* Transports: bits 7:5 of the opcodes of IBTA table 38; bits 4:0 are the operation. A
 * manufacturer's opcodes (c0 to ff) may belong to any transport: the opcode's row says which. */
enum bth_transport {
    BTH_RC = 0x00,
    BTH_UC = 0x20,
    BTH_DC = 0x40, /* dynamically connected; IBTA assigns this value to the reliable datagram */
    BTH_UD = 0x60,
    BTH_CNP = 0x80, /* RoCEv2 congestion notification, annex A17.9 */
    BTH_XRC = 0xa0,
};

/* The one opcode of BTH_CNP (A17.9). */
#define BTH_CNP_OPCODE 0x81

enum bth_op {
    BTH_SEND_FIRST = 0x00,
    BTH_SEND_MIDDLE = 0x01,
    BTH_SEND_LAST = 0x02,
    BTH_SEND_LAST_IMM = 0x03,
    BTH_SEND_ONLY = 0x04,
    BTH_SEND_ONLY_IMM = 0x05,
    BTH_WRITE_FIRST = 0x06,
    BTH_WRITE_MIDDLE = 0x07,
    BTH_WRITE_LAST = 0x08,
    BTH_WRITE_LAST_IMM = 0x09,
    BTH_WRITE_ONLY = 0x0a,
    BTH_WRITE_ONLY_IMM = 0x0b,
    BTH_READ_REQUEST = 0x0c,
    BTH_READ_RESP_FIRST = 0x0d,
    BTH_READ_RESP_MIDDLE = 0x0e,
    BTH_READ_RESP_LAST = 0x0f,
    BTH_READ_RESP_ONLY = 0x10,
    BTH_ACK = 0x11,
    BTH_ATOMIC_ACK = 0x12,
    BTH_CMP_SWAP = 0x13,
    BTH_FETCH_ADD = 0x14,
    BTH_CONNECT = 0x15, /* DC: begins a session; with the SE bit it ends one */
    BTH_SEND_LAST_INV = 0x16,
    BTH_SEND_ONLY_INV = 0x17,
};

/* Extended atomics: the operation, within a block of a manufacturer's opcodes for each transport
 * (docs/adr/0011). A request has a RETH, whose length is that of the number, and the operands. Its
 * response has an AETH and the previous value of the number. */
enum bth_extended_op {
    BTH_EXTENDED_CMP_SWAP = 0,
    BTH_EXTENDED_FETCH_ADD = 1,
    BTH_EXTENDED_ACK = 2,
    BTH_EXTENDED_OP = 7, /* mask */
};

enum bth_extended {
    BTH_EXTENDED_RC = 0xc0,
    BTH_EXTENDED_XRC = 0xc8,
    BTH_EXTENDED_DC = 0xd0,
};

/* The headers that follow the BTH, by opcode. */
enum bth_headers {
    HDR_DETH = 1 << 0,
    HDR_RETH = 1 << 1,
    HDR_ATOMIC_ETH = 1 << 2,
    HDR_AETH = 1 << 3,
    HDR_ATOMIC_ACK_ETH = 1 << 4,
    HDR_IMM_DT = 1 << 5,
    HDR_IETH = 1 << 6,
    HDR_XRC_ETH = 1 << 7,
    HDR_PAYLOAD = 1 << 8, /* a payload may follow */
    /* role of the packet in its message */
    PKT_REQUEST = 1 << 9,
    PKT_RESPONSE = 1 << 10,
    PKT_FIRST = 1 << 11, /* FIRST or ONLY */
    PKT_LAST = 1 << 12,  /* LAST or ONLY */
    PKT_SEND = 1 << 13,
    PKT_WRITE = 1 << 14,
    PKT_READ = 1 << 15,
    PKT_ATOMIC = 1 << 16,
    HDR_CNP_RSVD = 1 << 17, /* a CNP's 16 reserved bytes; DC uses the first 8 as a DCETH */
    HDR_DC_ETH = 1 << 18,
};

/* Bytes of the headers (IBTA 9.2 and 9.3; XRCETH: annex A14; a CNP's reserved ones: A17.9). */
enum {
    BTH_BYTES = 12,
    DETH_BYTES = 8,
    RETH_BYTES = 16,
    ATOMIC_ETH_BYTES = 28,
    AETH_BYTES = 4,
    ATOMIC_ACK_ETH_BYTES = 8,
    IMM_DT_BYTES = 4,
    IETH_BYTES = 4,
    XRC_ETH_BYTES = 4,
    CNP_RSVD_BYTES = 16,
    DC_ETH_BYTES = 8,

    /* The longest headers of an opcode: DC's atomics. */
    TRANSPORT_HEADER_MAX = BTH_BYTES + DC_ETH_BYTES + ATOMIC_ETH_BYTES,
};

struct bth_opcode_info {
    const char *name;   /* NULL: the opcode does not exist */
    uint32_t flags;     /* enum bth_headers */
    uint8_t header_len; /* bytes from BTH to payload, BTH's 12 included */
    uint8_t transport;  /* transport that the opcode belongs to: enum bth_transport */
};

/* Indexed by the whole BTH opcode. */
extern const struct bth_opcode_info bth_opcodes[256];

#endif
