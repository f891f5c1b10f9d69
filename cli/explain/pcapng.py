# SPDX-License-Identifier: BSD-2-Clause
"""Reads RoCE packets from a pcapng file, as events like those of a trace (docs/reference/trace.md).

The file may be anybody's: every length is checked before it is used, and what cannot be read ends the reading with
Unreadable, or is skipped if it is a frame that is not RoCE. One block is in memory at a time.
"""
import struct

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
OPT_COMMENT, OPT_NAME, OPT_TSRESOL, OPT_FLAGS = 1, 2, 9, 2
ETHERNET, ROCE_PORT = 1, 4791
VLAN, IPV4, IPV6, ROCE_V1, UDP, IBA = 0x8100, 0x0800, 0x86DD, 0x8915, 17, 0x1b
INBOUND = 1
MOST_BLOCK = 1 << 24    # bytes of one block
MOST_INTERFACES = 1 << 12
MOST_TIME = (1 << 63) - 1   # ns
MOST_TEXT = 4096        # bytes of a name or comment that are read

TRANSPORTS = {0: "RC", 1: "UC", 2: "RD", 3: "UD", 4: "CNP", 5: "XRC", 6: "DC"}
OPCODES = ["SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_LAST_IMM", "SEND_ONLY", "SEND_ONLY_IMM", "WRITE_FIRST",
           "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM", "READ_REQUEST",
           "READ_RESP_FIRST", "READ_RESP_MIDDLE", "READ_RESP_LAST", "READ_RESP_ONLY", "ACK", "ATOMIC_ACK", "CMP_SWAP",
           "FETCH_ADD"]
WITH_AETH = {"READ_RESP_FIRST", "READ_RESP_LAST", "READ_RESP_ONLY", "ACK", "ATOMIC_ACK"}
NAKS = ["NAK PSN sequence error", "NAK invalid request", "NAK remote access error", "NAK remote operational error"]


class Unreadable(Exception):
    """The file is no pcapng file, or it is damaged."""


def _options(data, order):
    options, at = {}, 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0 or at + 4 + length > len(data):
            break
        options.setdefault(code, data[at + 4:at + 4 + length])
        at += 4 + (length + 3) // 4 * 4
    return options


def _blocks(file):
    """Yields type, body and byte order of each whole block. A block at the end that is cut off is left out."""
    order = None
    while len(head := file.read(8)) == 8:
        kind = struct.unpack("<I", head[:4])[0]
        if kind == SECTION:
            magic = file.read(4)
            order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic)
        if not order:
            raise Unreadable("it is no pcapng file")
        kind, length = struct.unpack(order + "II", head)
        done = 12 if kind == SECTION else 8
        if length < done + 4 or length % 4 or length > MOST_BLOCK:
            raise Unreadable(f"a block of {length} bytes is no block")
        body = file.read(length - done)
        if len(body) < length - done:
            return
        yield kind, body[:-4], order


def _text(data):
    return data[:MOST_TEXT].decode("utf-8", "replace")


def _syndrome(value):
    if value >> 5 == 0:
        return "ACK"
    if value >> 5 == 1:
        return "RNR NAK"
    return NAKS[value & 31] if value >> 5 == 3 and value & 31 < len(NAKS) else f"syndrome 0x{value:02x}"


def _address(packed):
    """Returns an address in the words of a trace."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    return ":".join(f"{group:x}" for group in struct.unpack(">8H", packed))


def roce(frame):
    """Returns the fields of a RoCE packet, or None."""
    if len(frame) < 14:
        return None
    kind, at = struct.unpack_from(">H", frame, 12)[0], 14
    if kind == VLAN and len(frame) >= 18:
        kind, at = struct.unpack_from(">H", frame, 16)[0], 18
    if kind == IPV4 and len(frame) >= at + 20:
        header = (frame[at] & 15) * 4
        protocol, source, target = frame[at + 9], frame[at + 12:at + 16], frame[at + 16:at + 20]
    elif kind in (IPV6, ROCE_V1) and len(frame) >= at + 40:
        header, protocol, source, target = 40, frame[at + 6], frame[at + 8:at + 24], frame[at + 24:at + 40]
    else:
        return None
    bth = at + header + (8 if kind != ROCE_V1 else 0)
    if header < 20 or protocol != (IBA if kind == ROCE_V1 else UDP) or len(frame) < bth + 12 + 4:
        return None
    if kind != ROCE_V1 and struct.unpack_from(">H", frame, bth - 6)[0] != ROCE_PORT:
        return None
    opcode, flags = frame[bth], frame[bth + 1]
    words = struct.unpack_from(">II", frame, bth + 4)
    name = OPCODES[opcode & 31] if opcode & 31 < len(OPCODES) else f"0x{opcode & 31:02x}"
    packet = {"opcode": f"{TRANSPORTS.get(opcode >> 5, '?')}_{name}", "dqpn": words[0] & 0xffffff,
              "psn": words[1] & 0xffffff, "src": _address(source), "dst": _address(target),
              "len": len(frame) - bth - 12 - 4,
              "fields": {"ackreq": words[1] >> 31, "solicited": flags >> 7, "frame_bytes": len(frame)}}
    if opcode == 0x81:
        packet["opcode"] = "CNP"
    aeth = bth + 12 + (8 if opcode >> 5 == 6 else 0)
    if name in WITH_AETH and len(frame) >= aeth + 8:
        word = struct.unpack_from(">I", frame, aeth)[0]
        packet["fields"].update(syndrome=_syndrome(word >> 24), msn=word & 0xffffff)
        packet["len"] = max(0, packet["len"] - 4)
    return packet


def read(path):
    """Yields an event for each RoCE packet of the file, in its order."""
    interfaces, number = [], 0
    with open(path, "rb") as file:
        for kind, body, order in _blocks(file):
            if kind == SECTION:
                interfaces = []
            elif kind == INTERFACE and len(body) >= 8:
                if len(interfaces) == MOST_INTERFACES:
                    raise Unreadable(f"it has more than {MOST_INTERFACES} interfaces")
                options = _options(body[8:], order)
                resolution = options.get(OPT_TSRESOL, b"\x06")[:1] or b"\x06"
                unit = 2 ** -(resolution[0] & 0x7f) if resolution[0] & 0x80 else 10 ** -resolution[0]
                interfaces.append((struct.unpack_from(order + "H", body)[0],
                                   _text(options.get(OPT_NAME, b"")), round(unit * 1e9) or 1))
            elif kind == PACKET and len(body) >= 20:
                number += 1
                port, high, low, captured, _ = struct.unpack_from(order + "5I", body)
                if port >= len(interfaces) or interfaces[port][0] != ETHERNET or captured > len(body) - 20:
                    continue
                packet = roce(body[20:20 + captured])
                if packet:
                    yield _event(packet, interfaces[port], (high << 32 | low), number,
                                 _options(body[20 + (captured + 3) // 4 * 4:], order), order)


def _event(packet, interface, ticks, number, options, order):
    flags = options.get(OPT_FLAGS, b"")
    direction = struct.unpack(order + "I", flags)[0] & 3 if len(flags) == 4 else 0
    event = {"t": min(ticks * interface[2], MOST_TIME), "host": interface[1], "frame": number, **packet,
             "e": "received" if direction == INBOUND else "sent"}
    if direction == 0:
        event["e"] = "seen"     # a port in the middle: the sender's host is not known
    if event["e"] == "received":
        event["qpn"] = event.pop("dqpn")
    if OPT_COMMENT in options:
        event["comment"] = _text(options[OPT_COMMENT])
        if event["comment"].startswith("lost"):
            event["lost"] = event["comment"]
        if "repeated" in event["comment"]:
            event["repeated"], event["why"] = 1, event["comment"]
    return event
