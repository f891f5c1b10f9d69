# SPDX-License-Identifier: BSD-2-Clause
"""Finds what is wrong with a captured file of frames.

Two judges check it that share no code with the device: tshark, which dissects every frame, and an
ICRC computed here (tshark shows the ICRC but does not verify it). The ICRC follows IBTA volume 1
annex A17, and for version 1 annex A16: CRC-32 over the packet behind eight bytes of ones, with the
fields that routers change taken as ones.
"""
import collections
import functools
import mmap
import pathlib
import struct
import subprocess
import zlib

ROCE_PORT = 4791
PROGRAMS_PORT = 1  # the source port of datagrams that a test itself sends to the RoCE port: they are no RoCE packets
ETHERNET = 1  # the link type, of pcap and pcapng alike
# IBTA 9.2.1: the upper three bits of an opcode name the transport.
TRANSPORTS = {0x00: "RC", 0x20: "UC", 0x40: "DC", 0x60: "UD", 0x80: "CNP", 0xa0: "XRC"}
EXTENDED = {0xc0: 0x00, 0xc8: 0xa0, 0xd0: 0x40}  # first opcodes of extended atomics (docs/adr/0011)
WRONG = "_ws.malformed || _ws.expert.severity >= 0x00800000"  # 0x00800000: an error
# Without it, tshark takes DC for the reliable datagram, which has other headers.
LUA = pathlib.Path(__file__).resolve().parents[2] / "wire/wireshark/hcasim.lua"


def frames(path):
    """Yields the frames of a pcap or pcapng file."""
    return (frame for _, _, frame in timed_frames(path))


def timed_frames(path):
    """Returns the same frames as (nanoseconds, whether it was marked as outbound, or None, frame)."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return pcapng_frames(path, data)
    return pcap_frames(path, data)


def pcap_frames(path, data):
    order, unit = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
                   b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}.get(
                       data[:4], (None, 0))
    if not order or struct.unpack_from(order + "I", data, 20)[0] != ETHERNET:
        raise ValueError(f"{path} is not a pcap file of Ethernet frames")
    at = 24
    while at < len(data):
        seconds, fraction, kept, length = struct.unpack_from(order + "IIII", data, at)
        yield seconds * 10**9 + fraction * unit, None, whole(path, data, at + 16, kept, length)
        at += 16 + kept


def options(order, data, at, end):
    """Yields the options of a pcapng block: (code, value)."""
    while at + 4 <= end:
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0:
            return
        yield code, data[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def pcapng_frames(path, data):
    order, at, unit = "<", 0, 1000
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, size = struct.unpack_from(order + "II", data, at)
        if size < 12 or at + size > len(data):
            raise ValueError(f"{path}: a block is cut short")
        if kind == 1:
            if struct.unpack_from(order + "H", data, at + 8)[0] != ETHERNET:
                raise ValueError(f"{path} is not about Ethernet frames")
            resolution = dict(options(order, data, at + 16, at + size - 4)).get(9, b"\x06")[0]
            unit = 10 ** (9 - resolution) if resolution <= 9 else 0
        if kind == 6:
            high, low, kept, length = struct.unpack_from(order + "IIII", data, at + 12)
            end = at + 28 + (kept + 3) // 4 * 4
            flags = dict(options(order, data, end, at + size - 4)).get(2)
            outbound = struct.unpack(order + "I", flags)[0] & 3 == 2 if flags else None
            yield (high << 32 | low) * unit, outbound, whole(path, data, at + 28, kept, length)
        at += size
    if at != len(data):
        raise ValueError(f"{path}: a block is cut short")


def whole(path, data, at, kept, length):
    if kept != length or at + kept > len(data):
        raise ValueError(f"{path}: a frame is cut short")
    return data[at:at + kept]


def roce(frame):
    """Returns the parts of a RoCE frame, (IP header, UDP header, the bytes after it), or None. Of
    version 1, the first part is the GRH, and the second is empty."""
    at = 14
    kind, = struct.unpack_from(">H", frame, 12)
    while kind in (0x8100, 0x88a8):
        kind, = struct.unpack_from(">H", frame, at + 2)
        at += 4
    if kind == 0x0800 and frame[at + 9] == 17:
        udp = at + 4 * (frame[at] & 15)
        end = at + struct.unpack_from(">H", frame, at + 2)[0]
    elif kind == 0x86dd and frame[at + 6] == 17:
        udp = at + 40
        end = udp + struct.unpack_from(">H", frame, at + 4)[0]
    elif kind == 0x8915:
        end = at + 40 + struct.unpack_from(">H", frame, at + 4)[0]
        return frame[at:at + 40], b"", frame[at + 40:end]
    else:
        return None
    source, destination = struct.unpack_from(">HH", frame, udp)
    if destination != ROCE_PORT or source == PROGRAMS_PORT:
        return None
    return frame[at:udp], frame[udp:udp + 8], frame[udp + 8:end]


def icrc(ip, udp, ib):
    """Returns the ICRC of a RoCE packet; ib is BTH to payload."""
    ip, udp, bth = bytearray(ip), bytearray(udp), bytearray(ib[:12])
    if ip[0] >> 4 == 4:
        ip[1] = ip[8] = 0xff
        ip[10:12] = b"\xff\xff"
    else:
        ip[0] |= 0x0f
        ip[1:4] = b"\xff\xff\xff"
        ip[7] = 0xff
    udp[6:8] = b"\xff\xff" if udp else b""
    bth[4] = 0xff
    crc = zlib.crc32(b"\xff" * 8 + ip + udp + bth)
    return zlib.crc32(ib[12:], crc)


def wrong_icrcs(path):
    """Returns (numbers of the frames with a wrong ICRC, a Counter of RoCE packets by transport; those of
    version 1 are counted as "RC v1")."""
    wrong, seen = [], collections.Counter()
    for number, frame in enumerate(frames(path), 1):
        parts = roce(frame)
        if parts is None:
            continue
        ip, udp, ib = parts
        transport = TRANSPORTS.get(EXTENDED.get(ib[0] & 0xf8, ib[0] & 0xe0), "other")
        seen[transport if udp else f"{transport} v1"] += 1
        if len(ib) < 16 or icrc(ip, udp, ib[:-4]) != struct.unpack("<I", ib[-4:])[0]:
            wrong.append(number)
    return wrong, seen


def notices_a_flipped_bit(path):
    """Returns whether the first RoCE packet's ICRC becomes wrong when one payload bit changes: a
    check that cannot fail would prove nothing."""
    ip, udp, ib = next(parts for parts in map(roce, frames(path)) if parts)
    spoilt = ib[:12] + bytes([ib[12] ^ 1]) + ib[13:-4] if len(ib) > 16 else b"\x01" + ib[1:-4]
    return icrc(ip, udp, spoilt) != struct.unpack("<I", ib[-4:])[0]


@functools.lru_cache(None)
def payload_guessers():
    """Returns the protocols that tshark guesses from a payload. A test program's bytes may look
    like any protocol."""
    parents = ("infiniband.payload", "tcp", "udp")
    rows = subprocess.run(["tshark", "-G", "heuristic-decodes"], capture_output=True, text=True,
                          timeout=60, check=True).stdout.splitlines()
    return sorted({row.split("\t")[1] for row in rows
                   if row.split("\t")[0] in parents} - {"ethertype"})


def tshark_complaints(path, checksums=True, only="frame"):
    """Returns tshark's lines about frames that are malformed or that it finds an error in, and that no
    fault has corrupted. checksums: IP, UDP and TCP checksums count (not where a virtio NIC leaves them
    out). A UDP checksum of zero is what annex A17 requires, over IPv6 as well. only: a filter."""
    verify = str(checksums).upper()
    command = ["tshark", "-n", "-r", path, "-X", f"lua_script:{LUA}", "-o", f"ip.check_checksum:{verify}",
               "-o", f"udp.check_checksum:{verify}", "-o", f"tcp.check_checksum:{verify}",
               "-o", "udp.ignore_ipv6_zero_checksum:TRUE",
               "--disable-heuristic", "eth_over_ib",
               "-Y", f'({WRONG}) && {only} && !(hcasim.fate == "corrupted")']
    for protocol in payload_guessers():
        command += ["--disable-protocol", protocol]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode or "Lua Error" in done.stdout:
        return [done.stderr.strip(), *done.stdout.splitlines()]
    return done.stdout.splitlines()
