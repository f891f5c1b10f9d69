#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: dissector.py DESCRIBE HCASIM-SIM TEST-SIM-ATOMICS TEST-SIM-DC

Captures traffic of DC, XRC, tag matching and extended atomics, and compares what tshark says of each
packet with hcasim's dissector (wire/wireshark/hcasim.lua) with what the device itself says of it
(tests/wireshark/describe.c), and the fields of comments with the comments. The packets are then compared again as
packets of RoCE version 1, which this program makes of them.
"""
import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import wireshark

import capture

FIELDS = ["hcasim.name", "hcasim.opcode", "hcasim.dest_qp", "hcasim.psn", "hcasim.solicited", "hcasim.ackreq",
          "hcasim.fecn", "hcasim.becn", "hcasim.pkey", "hcasim.srqn", "hcasim.dc.session", "hcasim.dc.number",
          "hcasim.va", "hcasim.rkey", "hcasim.len", "hcasim.swap_add", "hcasim.compare", "hcasim.answer",
          "hcasim.msn", "hcasim.value", "hcasim.imm", "hcasim.inval_rkey", "hcasim.payload",
          "hcasim.dc.next_psn", "hcasim.dc.key", "hcasim.dc.reconnect", "hcasim.dc.version",
          "hcasim.extended.swap", "hcasim.extended.compare", "hcasim.extended.swap_mask",
          "hcasim.extended.compare_mask", "hcasim.extended.add", "hcasim.extended.boundary",
          "hcasim.extended.previous"]
EXTENDED = [field for field in FIELDS if field.startswith("hcasim.extended.")]
NOTES = ["hcasim.qp", "hcasim.wqe", "hcasim.message", "hcasim.request", "hcasim.retry", "hcasim.why", "hcasim.repeated",
         "hcasim.fate", "frame.comment"]
TAGS = ["hcasim.tm.op", "hcasim.tm.app_ctx", "hcasim.tm.tag", "hcasim.tm.va", "hcasim.tm.rkey", "hcasim.tm.len",
        "hcasim.tm.dct", "hcasim.tm.dc_access_key"]
# A packet with a payload, even an empty one, is described with its length.
NO_PAYLOAD = re.compile("ACK|READ_REQUEST|CMP_SWAP|FETCH_ADD")
ROCE_V1 = b"\x89\x15"  # Ethernet type
OURS = re.compile("(DC|XRC)_|[A-Z]+_EXTENDED_")
BTH = {2: 14 + 20 + 8, 1: 14 + 40}  # by the version of RoCE


def is_true(text):
    return text in ("1", "True")


def number(row, field):
    return int(row[f"hcasim.{field}"].split(",")[0], 0)


def described(row):
    """Says of the fields what transport_describe() says of the packet (wire/packet/describe.c)."""
    name = row["hcasim.name"]
    words = [f"{name} qp 0x{number(row, 'dest_qp'):x} psn {number(row, 'psn')}"]
    if row["hcasim.srqn"]:
        words.append(f" srqn 0x{number(row, 'srqn'):x}")
    if row["hcasim.dc.session"]:
        words.append(f" session 0x{number(row, 'dc.session'):x} of 0x{number(row, 'dc.number'):x}")
    if row["hcasim.va"]:
        words.append(f" va 0x{number(row, 'va'):x} rkey 0x{number(row, 'rkey'):x}")
        words.append(f" swap_add 0x{number(row, 'swap_add'):x} compare 0x{number(row, 'compare'):x}"
                     if row["hcasim.swap_add"] else f" len {number(row, 'len')}")
    if row["hcasim.answer"]:
        words.append(f" {row['hcasim.answer']} msn {number(row, 'msn')}")
    for field in "value", "imm", "inval_rkey":
        if row[f"hcasim.{field}"]:
            words.append(f" {field} 0x{number(row, field):x}")
    if "EXTENDED" in name or not NO_PAYLOAD.search(name):
        words.append(f", {payload_len(row)} bytes")
    for field, said in ("solicited", "solicited"), ("ackreq", "ackreq"), ("fecn", "FECN"), ("becn", "BECN"):
        if is_true(row[f"hcasim.{field}"]):
            words.append(f", {said}")
    if number(row, "pkey") != 0xffff:
        words.append(f", pkey 0x{number(row, 'pkey'):x}")
    return "".join(words)


def payload_len(row):
    """Returns the length of what the device takes for a payload."""
    if row["hcasim.dc.key"]:
        return 16  # DCCETH
    return sum(len(row[field]) // 2 for field in ["hcasim.payload", *EXTENDED])


def packets_agree(path, describe, seen):
    """Returns complaints: each packet whose headers Wireshark does not know must be described as the device does it."""
    frames = list(capture.frames(path))
    lines = subprocess.run([describe], input="".join(frame.hex() + "\n" for frame in frames), capture_output=True,
                           text=True, check=True, timeout=wireshark.PATIENCE).stdout.splitlines()
    wrong = []
    for at, (row, line, frame) in enumerate(zip(wireshark.rows(path, FIELDS), lines, frames), 1):
        if not line or not OURS.match(line):
            if row["hcasim.opcode"] and line:
                wrong.append(f"{path.name}: frame {at}: {row['hcasim.name']} is {line}")
            continue
        said = described(row) if row["hcasim.opcode"] else "nothing"
        if said != line:
            wrong.append(f"{path.name}: frame {at}: {said}\n    the device says {line}")
            continue
        seen[line.split()[0]] += 1
        seen["CNAK"] += "CNAK" in line
        if row["hcasim.name"] == "DC_CONNECT":
            seen["DISCONNECT"] += is_true(row["hcasim.solicited"])
            wrong += [f"{path.name}: frame {at}: {fault}" for fault in connect_faults(row, frame)]
    if len(lines) != len(frames):
        wrong.append(f"{path.name}: {len(lines)} lines about {len(frames)} frames")
    return wrong


def connect_faults(row, frame):
    """The DCCETH, which the device's line does not show, must be what its bytes say."""
    if is_true(row["hcasim.solicited"]):
        return ["a DISCONNECT has a DCCETH"] if row["hcasim.dc.key"] else []
    bth = BTH[1 if frame[12:14] == ROCE_V1 else 2]
    version, = struct.unpack_from(">B", frame, bth + 12)
    flags, psn, key = struct.unpack_from(">B3xIQ", frame, bth + 20)
    said = (number(row, "dc.version"), is_true(row["hcasim.dc.reconnect"]), number(row, "dc.next_psn"), number(row, "dc.key"))
    true = (version, bool(flags & 0x80), psn & 0xffffff, key)
    return [f"DCCETH {said}, and its bytes are {true}"] if said != true else []


def tags_agree(path, seen):
    """Returns complaints: the headers of tag matching must be what the bytes of each message say."""
    wrong = []
    for at, (row, frame) in enumerate(zip(wireshark.rows(path, TAGS, "-o", "hcasim.tm_qps:all"), capture.frames(path)), 1):
        payload, is_dc = message_of(frame)
        if not payload:
            continue
        true = tag_headers(payload, is_dc)
        said = tuple(int(row[field], 0) if row[field] else None for field in TAGS)
        if said != true:
            wrong.append(f"{path.name}: frame {at}: tags {said}, and the bytes are {true}")
        seen[f"tag matching {true[0]}"] += true[0] is not None
        seen["RAVH"] += true[6] is not None
    return wrong


def message_of(frame):
    """Returns the first bytes of a message of RC or DC that the frame begins, or nothing, and whether it is DC's."""
    parts = capture.roce(frame)
    if parts is None:
        return b"", False
    ib = parts[2]
    is_dc = ib[0] & 0xe0 == 0x40
    if ib[0] & 0xe0 not in (0, 0x40) or ib[0] & 0x1f not in (0, 4, 5):
        return b"", is_dc
    at = 12 + 8 * is_dc + 4 * (ib[0] & 0x1f == 5)
    return ib[at:len(ib) - 4 - (ib[1] >> 4 & 3)], is_dc


def tag_headers(payload, is_dc):
    """Returns the fields TAGS of a message's first bytes; None: it does not have the field."""
    op = payload[0] if payload[0] <= 3 else None
    headers = [op] + [None] * 7
    if op is not None and len(payload) >= 16:
        headers[1:3] = struct.unpack_from(">IQ", payload, 4)
        if op in (1, 2) and len(payload) >= 32:
            headers[3:6] = struct.unpack_from(">QII", payload, 16)
            if op == 1 and is_dc and len(payload) >= 48:
                headers[6] = struct.unpack_from(">I", payload, 32)[0] & 0xffffff
                headers[7], = struct.unpack_from(">Q", payload, 40)
    return tuple(headers)


def comments_agree(path, seen):
    """Returns complaints: the fields of comments must be what the comments say."""
    wrong = []
    for at, row in enumerate(wireshark.rows(path, NOTES), 1):
        text = row["frame.comment"]
        words = dict(word.split("=", 1) for word in text.split(" why=")[0].split() if "=" in word)
        for key in "qp", "wqe", "message", "request", "retry":
            said = row[f"hcasim.{key}"]
            if (int(said, 0) if said else None) != (int(words[key], 0) if key in words else None):
                wrong.append(f"{path.name}: frame {at}: {key} is {said}: {text}")
        why = text.split("why=")[1] if "why=" in text else ""
        if row["hcasim.why"] != why or is_true(row["hcasim.repeated"]) != why.startswith("repeated"):
            wrong.append(f"{path.name}: frame {at}: {row['hcasim.why']}: {text}")
        seen[f"why {why}"] += bool(why)
        if text in ("lost", "duplicate", "corrupted", "late"):
            seen[f"fate {text}"] += row["hcasim.fate"] == text
            wrong += [f"{path.name}: frame {at}: fate {row['hcasim.fate']}"] * (row["hcasim.fate"] != text)
    return wrong


def as_version_1(frame):
    """Returns the packet of a RoCEv2 frame over IPv4 as one of version 1, with the ICRC that it then has; or the frame."""
    parts = capture.roce(frame)
    if parts is None:
        return frame
    ip, _, ib = parts
    mapped = bytes(10) + b"\xff\xff"
    grh = struct.pack(">IHBB", 6 << 28 | ip[1] << 20, len(ib), 0x1b, ip[8]) + mapped + ip[12:16] + mapped + ip[16:20]
    return frame[:12] + ROCE_V1 + grh + ib[:-4] + struct.pack("<I", capture.icrc(grh, b"", ib[:-4]))


def write_version_1(source, path):
    """Writes the packets of a capture to a pcap file, as packets of version 1."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 16, 1))
        for frame in map(as_version_1, capture.frames(source)):
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
    return path


MUST_SEE = (
    "DC_CONNECT", "DISCONNECT", "CNAK", "DC_SEND_ONLY", "DC_SEND_FIRST", "DC_SEND_MIDDLE", "DC_SEND_LAST_IMM",
    "DC_WRITE_ONLY", "DC_WRITE_ONLY_IMM", "DC_READ_REQUEST", "DC_READ_RESP_ONLY", "DC_READ_RESP_MIDDLE", "DC_ACK",
    "DC_CMP_SWAP", "DC_FETCH_ADD", "DC_ATOMIC_ACK", "XRC_SEND_ONLY", "XRC_WRITE_FIRST", "XRC_READ_REQUEST",
    "XRC_READ_RESP_MIDDLE", "XRC_ACK", "XRC_CMP_SWAP", "XRC_ATOMIC_ACK", "RC_EXTENDED_CMP_SWAP",
    "RC_EXTENDED_FETCH_ADD", "RC_EXTENDED_ACK", "tag matching 0", "tag matching 1", "tag matching 2", "tag matching 3",
    "why first time", "why repeated: NAK PSN sequence error", "why repeated: the request came again", "fate lost",
    "fate duplicate", "fate corrupted", "DC_CONNECT of version 1", "DC_WRITE_ONLY of version 1",
    "XRC_WRITE_FIRST of version 1", "tag matching 3 of version 1")


def main():
    wireshark.skip_without_tshark()
    describe, simulation, atomics, dynamic = sys.argv[1:]
    seen = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in "dc", "xrc", "tm":
            path = folder / f"{kind}.pcapng"
            wireshark.simulate(simulation, path, kind, "--jobs", "4", "--ops", "80", "--seed", "3", "--size", "6000")
            wrong += packets_agree(path, describe, seen) + tags_agree(path, seen) + comments_agree(path, seen)
            old, path = seen, write_version_1(path, folder / f"{kind}.pcap")
            seen = collections.Counter()
            wrong += packets_agree(path, describe, seen) + tags_agree(path, seen)
            seen = old + collections.Counter({f"{what} of version 1": times for what, times in seen.items()})
        faults = folder / "faults.pcapng"
        wireshark.simulate(simulation, faults, "rc,dc,xrc", "--jobs", "6", "--ops", "60", "--loss", "2", "--duplication", "2",
                           "--corruption", "1")
        wrong += comments_agree(faults, seen)
        wireshark.capture_of(atomics, folder / "atomics.pcapng")
        wireshark.capture_of(dynamic, folder / "sessions.pcapng")
        for path in *folder.glob("atomics.*.pcapng"), folder / "sessions.pcapng":
            wrong += packets_agree(path, describe, seen)
    missing = [what for what in MUST_SEE if not seen[what]]
    print("\n".join(wrong[:20]))
    print(f"{sum(seen.values())} packets and comments: {dict(seen)}")
    print(f"{len(wrong)} differ; not seen: {', '.join(missing) or 'none'}")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
