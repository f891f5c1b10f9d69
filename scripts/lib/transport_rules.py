#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges the RoCEv2 packets of a capture: is every PSN, opcode sequence and answer legal?

The rules are those of IBTA volume 1 chapter 9 for RC (and XRC), UC and UD, each quoted where it is
applied. A session of DC is judged as a connection of its own (dc_rules.py). The judge shares no
code with the device.

A packet names its destination QP only. The judge finds from the PSNs whose requests a QP
acknowledges: two QPs are connected if their requests and answers fit. A QP number that is used
again is a new connection only if a packet came between that sets connections up: a TCP SYN or an
RDMA-CM request.

    transport_rules.py [--lossy] FILE

--lossy: frames were lost or changed after they were captured. A retransmission then needs no
visible cause.
"""
import argparse
import bisect
import collections
import struct
import sys

import capture
import dc_rules

RC, UC, DC, UD, CNP, XRC = 0x00, 0x20, 0x40, 0x60, 0x80, 0xa0
NAMES = {RC: "RC", UC: "UC", DC: "DC", UD: "UD", XRC: "XRC"}
FIRST, MIDDLE, LAST, ONLY = "FIRST", "MIDDLE", "LAST", "ONLY"
# IBTA table 38: code -> (what, part of the message, bytes of the extended headers)
OPCODES = {
    0x00: ("SEND", FIRST, 0), 0x01: ("SEND", MIDDLE, 0), 0x02: ("SEND", LAST, 0),
    0x03: ("SEND", LAST, 4), 0x04: ("SEND", ONLY, 0), 0x05: ("SEND", ONLY, 4),
    0x06: ("WRITE", FIRST, 16), 0x07: ("WRITE", MIDDLE, 0), 0x08: ("WRITE", LAST, 0),
    0x09: ("WRITE", LAST, 4), 0x0a: ("WRITE", ONLY, 16), 0x0b: ("WRITE", ONLY, 20),
    0x0c: ("READ", ONLY, 16), 0x0d: ("ANSWER", FIRST, 4), 0x0e: ("ANSWER", MIDDLE, 0),
    0x0f: ("ANSWER", LAST, 4), 0x10: ("ANSWER", ONLY, 4), 0x11: ("ACK", ONLY, 4),
    0x12: ("ATOMIC_ACK", ONLY, 12), 0x13: ("ATOMIC", ONLY, 28), 0x14: ("ATOMIC", ONLY, 28),
    0x16: ("SEND", LAST, 4), 0x17: ("SEND", ONLY, 4),
    # extended atomics, below
    0x20: ("ATOMIC", ONLY, 16), 0x21: ("ATOMIC", ONLY, 16), 0x22: ("ATOMIC_ACK", ONLY, 4),
}
# Manufacturer's opcodes of extended atomics (docs/adr/0011): the first of a block -> transport.
EXTENDED = {0xc0: RC, 0xc8: XRC, 0xd0: DC}
# The operands of a request: their total size as a multiple of the length in its RETH.
OPERANDS = {0x20: 4, 0x21: 2}
# The codes that notify the peer's program: SEND's last packets, and WRITE's with immediate data.
SOLICITING = {0x02, 0x03, 0x04, 0x05, 0x09, 0x0b, 0x16, 0x17}
UNRELIABLE = {code for code in OPCODES if code <= 0x0b}
RESPONSES = {"ANSWER", "ACK", "ATOMIC_ACK"}
PAYLOAD = {"SEND", "WRITE", "ANSWER"}
MTUS = (256, 512, 1024, 2048, 4096)
WINDOW = 1 << 14    # packets: how far behind its newest request an answer can be
REMEMBERED = 1 << 16  # packets: how far back a retransmission can reach
SAMPLES = 64
TIMEOUT_NS = 1_000_000  # a requester does not retransmit earlier
SYN_RNR, SYN_RESERVED, SYN_NAK = 1, 2, 3
NAK_SEQUENCE, NAK_LAST = 0, 4

Packet = collections.namedtuple(
    "Packet", "number time outbound transport code what part key psn pad solicited body extra same")


def parse(number, time, outbound, parts):
    """Returns (Packet, or None if no rule here applies to it; what is wrong with the packet alone).
    """
    ip, _, ib = parts
    if len(ib) < 16:
        return None, "is shorter than a BTH and an ICRC"
    opcode = ib[0]
    if opcode == CNP | 1:
        return None, None if len(ib) == 32 else "is a CNP of the wrong length"
    transport, code = opcode & 0xe0, opcode & 0x1f
    if opcode & 0xf8 in EXTENDED:
        transport, code = EXTENDED[opcode & 0xf8], 0x20 | opcode & 7
    if transport == DC and code == dc_rules.CONNECT:
        what, part, extra = "CONNECT", ONLY, 0 if ib[1] >> 7 else dc_rules.DCCETH
    elif transport not in NAMES or code not in OPCODES or \
            transport == UC and code not in UNRELIABLE or transport == UD and code not in (4, 5):
        return None, f"has the opcode 0x{opcode:02x}, which does not exist"
    else:
        what, part, extra = OPCODES[code]
    if transport == UD:
        extra += 8
    if transport == XRC and what not in RESPONSES:
        extra += 4
    src, dst = (ip[12:16], ip[16:20]) if ip[0] >> 4 == 4 else (ip[8:24], ip[24:40])
    body = ib[12:-4]
    key = src, dst, int.from_bytes(ib[5:8], "big")
    if transport == DC:
        if len(body) < dc_rules.DCETH:
            return None, "ends within its headers"
        key, body = dc_rules.addressed(*key, body), body[dc_rules.DCETH:]
    # These may differ when a packet is sent again: the ECN bits and AckReq.
    same = hash(ib[:4] + ib[5:8] + ib[9:-4])
    packet = Packet(number, time, outbound, transport, code, what, part,
                    key, int.from_bytes(ib[9:12], "big"),
                    ib[1] >> 4 & 3, ib[1] >> 7, body, extra, same)
    if len(body) < extra:
        return None, "ends within its headers"
    return packet, shape(packet, ib)


def shape(packet, ib):
    """Returns what is wrong with one packet alone."""
    payload = len(packet.body) - packet.extra
    if ib[1] & 15:
        return "has a transport version other than 0 (IBTA 9.2.4)"
    if ib[2:4] != b"\xff\xff":
        return f"has the P_Key 0x{ib[2:4].hex()}"
    if ib[4] & 0x3f or ib[8] & 0x7f:
        return "has reserved bits set in its BTH (IBTA 9.2)"
    if packet.solicited and packet.code not in SOLICITING and packet.what != "CONNECT":
        return "has SE set in a packet that completes no receive (IBTA 9.2.3)"
    if payload % 4:
        return "is not padded to four bytes (IBTA 9.2.2)"
    if packet.code in OPERANDS:
        if payload != OPERANDS[packet.code] * read_of(packet)[2]:
            return "has operands of another length than it says"
    elif packet.what not in PAYLOAD and packet.code < 0x20 and payload:
        return "has a payload, which its opcode has not"
    if packet.pad > payload:
        return "has more padding than payload"
    if packet.part in (FIRST, MIDDLE) and packet.pad:
        return "has padding although more follows (IBTA 9.2.2)"
    return None


def length_of(packet):
    return len(packet.body) - packet.extra - packet.pad


def sets_connections_up(frame, packet):
    """Returns whether a connection may begin after this frame."""
    if packet is not None:
        mad = packet.body[8:]
        return (packet.transport == UD and packet.key[2] == 1 and len(mad) > 18 and
                mad[1] == 7 and mad[16:18] == b"\x00\x10")
    kind, = struct.unpack_from(">H", frame, 12)
    if kind == 0x0800 and frame[23] == 6:
        flags = 14 + 4 * (frame[14] & 15) + 13
    elif kind == 0x86dd and frame[20] == 6:
        flags = 14 + 40 + 13
    else:
        return False
    return flags < len(frame) and frame[flags] & 0x12 == 2


def packets_of(frames):
    """Yields (segment, Packet or None, what is wrong) for each RoCEv2 packet. A segment ends where
    connections are set up."""
    segment = 0
    for number, (time, outbound, frame) in enumerate(frames, 1):
        parts = capture.roce(frame)
        packet, wrong = parse(number, time, outbound, parts) if parts else (None, None)
        if parts:
            yield segment, number, packet, wrong
        if sets_connections_up(frame, packet):
            segment += 1


def distance(psn, origin):
    """Returns psn - origin as a number from -2**23 to 2**23 - 1 (IBTA 9.7.2: half of all PSNs are
    behind)."""
    return ((psn - origin + 0x800000) & 0xffffff) - 0x800000


class Survey:
    """The results of a first pass: MTUs, and which QPs are connected to each other."""

    def __init__(self, packets):
        self.mtus = {}      # (segment, key) -> payload of packets that more follow
        self.newest = {}    # (segment, key) -> one past the newest PSN that was requested
        # (segment, the two keys) -> [answers of either that fit the other's requests,
        #                             sum of their distances to the newest request]
        self.fits = collections.defaultdict(lambda: [0, 0])
        self.looked = collections.Counter()
        for segment, _, packet, _ in packets:
            if packet is not None and packet.transport != UD:
                self._look(segment, packet)
        self.partners = self._marry()

    def _marry(self):
        """Returns (segment, key) -> its partner: one for each. Among many QPs the PSNs of two
        requesters are close now and then, so an answer may fit both. The pair that fits most
        often and closest wins."""
        partners = {}
        for (segment, keys), _ in sorted(self.fits.items(),
                                         key=lambda fit: (-fit[1][0], fit[1][1])):
            ends = [(segment, key) for key in keys]
            if not any(end in partners for end in ends):
                partners[ends[0]], partners[ends[1]] = keys[1], keys[0]
        return partners

    def _look(self, segment, packet):
        at = (segment, packet.key)
        if packet.part in (FIRST, MIDDLE):
            self.mtus.setdefault(at, length_of(packet))
            if packet.transport == DC:  # of all sessions of these two
                self.mtus.setdefault((segment, packet.key[:4]), length_of(packet))
        if packet.transport in (UC, DC):
            return
        if packet.what not in RESPONSES:
            span = 1
            if packet.what == "READ":
                # too many are harmless here: MTUs are not known yet
                span = max(1, -(-read_of(packet)[2] // 256))
            end = packet.psn + span
            if at not in self.newest or distance(end, self.newest[at]) > 0:
                self.newest[at] = end
            return
        if self.looked[at] >= SAMPLES:
            return
        self.looked[at] += 1
        for (where, key), newest in self.newest.items():
            behind = -distance(packet.psn, newest)
            if where == segment and key[0] == packet.key[1] and key[1] == packet.key[0] and \
                    0 < behind <= WINDOW:
                fit = self.fits[segment, tuple(sorted((packet.key, key)))]
                fit[0] += 1
                fit[1] += behind

    def pair(self, segment, key):
        """Returns the keys of both ends, of which key is one; (key,) if the other end is unknown.
        """
        partner = self.partners.get((segment, key))
        return (key,) if partner is None else tuple(sorted((key, partner)))


def read_of(packet):
    """Returns (address, key, length) of a RETH, which is the last header of a READ request."""
    return struct.unpack_from(">QII", packet.body, packet.extra - 16)


class Requests:
    """One direction of a connection: what was requested, and how far it is answered. PSNs continue
    past 24 bits."""

    def __init__(self, lossless):
        self.first = None       # PSN of the first packet
        self.next = None        # PSN of the next new packet
        self.sent = {}          # PSN -> (what identifies a packet, what it is)
        self.ends = []          # last PSNs of all messages so far
        self.message = None     # of the message under way: [what, bytes to come (WRITE) or None]
        self.reads = {}         # PSN of a READ request -> (address, key, length, last PSN)
        self.answers = collections.deque()  # READ requests to be answered: (PSN, last PSN, bytes)
        self.asked = {}         # PSN of a READ request -> (last PSN, bytes) of its newest repetition
        self.answer = None      # of the answer under way: [next PSN, last PSN, bytes to come]
        self.answered = None    # newest PSN that was answered
        self.msn = 0
        self.atomics = {}       # PSN -> the answer to an atomic
        self.replay = None      # PSN of the next packet of a retransmission
        self.replayed = not lossless  # whether the responder may have seen any packet twice
        self.restarts = set()   # PSNs that the responder asked for again
        self.time = None        # times of the last packet and of the last answer
        self.lost_count = False  # the PSNs are lost: nothing more can be judged

    def begin(self, psn):
        self.first = self.next = psn + (1 << 24)
        self.answered = self.next - 1

    def whole(self, psn):
        return self.next + distance(psn, self.next)

    def done(self, psn):
        """Returns how many messages end at psn or before it."""
        return bisect.bisect_right(self.ends, psn)


class Connection:
    def __init__(self, keys, lossless):
        self.keys = keys
        self.mtu = None
        self.requests = {key: Requests(lossless) for key in keys}
        self.segment = None

    def partner(self, key):
        return self.keys[0] if self.keys[-1] == key else self.keys[-1]


class Judge:
    """Judges packet by packet. .wrong has the findings, .counts the numbers of packets."""

    def __init__(self, survey, lossless):
        self.survey = survey
        self.lossless = lossless
        self.wrong = []
        self.counts = collections.Counter()
        self.connections = {}   # key -> Connection
        self.datagrams = {}     # (source, its QP) -> (PSN that must come next, segment)
        self.sessions = dc_rules.Sessions(self.say)

    def say(self, packet, text):
        src, dst, qpn = packet.key[:3]
        self.wrong.append(f"packet {packet.number} ({NAMES[packet.transport]} {packet.what} "
                          f"{packet.part} to {dst.hex()} QP 0x{qpn:x}, PSN 0x{packet.psn:06x}) "
                          f"{text}")

    def look(self, segment, number, packet, wrong):
        if wrong:
            if packet is None:
                self.wrong.append(f"packet {number} {wrong}")
            else:
                self.say(packet, wrong)
        if packet is None:
            return
        self.counts[NAMES[packet.transport]] += 1
        if packet.transport == UD:
            self.datagram(segment, packet)
            return
        if packet.transport == DC:
            self.session(segment, packet)
            return
        connection = self.connection(segment, packet)
        self.payload(connection, packet)
        if packet.what in RESPONSES:
            self.response(connection, packet)
        else:
            self.request(connection, packet)

    # Unreliable datagrams

    def datagram(self, segment, packet):
        """IBTA 9.8.3: a message is one packet; PSNs of a QP are consecutive."""
        source = (packet.key[0], int.from_bytes(packet.body[5:8], "big"))
        due, since = self.datagrams.get(source, (packet.psn, segment))
        if packet.psn != due and since == segment:
            self.say(packet, f"follows PSN 0x{(due - 1) & 0xffffff:06x} of the same QP")
        if length_of(packet) > MTUS[-1]:
            self.say(packet, f"has {length_of(packet)} bytes of payload")
        self.datagrams[source] = ((packet.psn + 1) & 0xffffff, segment)

    # Sessions of DC

    def session(self, segment, packet):
        if packet.what not in RESPONSES and not self.sessions.asked(packet):
            if dc_rules.is_connect(packet):
                requests = self.session_of(segment, packet.key).requests[packet.key]
                if requests.next is None:
                    requests.begin(packet.psn)
            return
        if dc_rules.is_cnak(packet):
            self.counts["CNAKs"] += 1
            refused = self.sessions.refused(packet)
            if refused in self.connections:
                self.connections[refused].requests[refused].restarts.add(
                    self.connections[refused].requests[refused].whole(packet.psn))
            return
        connection = self.session_of(segment, packet.key)
        asker = packet.key if packet.what not in RESPONSES else connection.partner(packet.key)
        requests = connection.requests[asker]
        if packet.what == "READ" and not connection.mtu and read_of(packet)[2] > MTUS[0]:
            requests.lost_count = True
        if requests.lost_count:
            self.counts["DC not judged"] += 1
            return
        self.payload(connection, packet)
        if packet.what in RESPONSES:
            self.response(connection, packet)
        else:
            self.request(connection, packet)

    def session_of(self, segment, key):
        connection = self.connections.get(key)
        if connection is None:
            connection = Connection((key, dc_rules.partner(key)), self.lossless)
            self.counts["sessions"] += 1
            for end in connection.keys:
                self.connections[end] = connection
        for end in connection.keys:
            connection.mtu = connection.mtu or self.survey.mtus.get((segment, end)) or \
                self.survey.mtus.get((segment, end[:4]))
        return connection

    # Connections

    def connection(self, segment, packet):
        connection = self.connections.get(packet.key)
        if connection is None or connection.segment != segment:
            keys = self.survey.pair(segment, packet.key)
            if connection is None or not self.goes_on(connection, keys, packet):
                connection = Connection(keys, self.lossless)
                self.counts["connections"] += 1
                for key in keys:
                    self.connections[key] = connection
            connection.segment = segment
        for key in connection.keys:
            connection.mtu = connection.mtu or self.survey.mtus.get((segment, key))
        return connection

    @staticmethod
    def goes_on(connection, keys, packet):
        """Returns whether a packet after others were connected belongs to the connection known so
        far."""
        if len(keys) == 2 and len(connection.keys) == 2 and keys != connection.keys:
            return False
        asker = packet.key if packet.what not in RESPONSES else connection.partner(packet.key)
        requests = connection.requests[asker]
        if requests.next is None:
            return len(keys) == len(connection.keys)
        behind = requests.next - requests.whole(packet.psn)
        return 0 <= behind <= WINDOW and (packet.what not in RESPONSES or behind > 0)

    def payload(self, connection, packet):
        """IBTA 9.7.2.1 (C9-4): a message's packets but the last have the path MTU's payload."""
        length, mtu = length_of(packet), connection.mtu
        if packet.what not in PAYLOAD:
            return
        if packet.part in (FIRST, MIDDLE):
            if length not in MTUS or length != mtu:
                self.say(packet, f"has {length} bytes of payload; the path MTU is {mtu}")
        elif length > (mtu or MTUS[-1]):
            self.say(packet, f"has {length} bytes of payload; the path MTU is {mtu}")
        elif packet.part == LAST and not length:
            self.say(packet, "has no payload")

    # Requests

    def request(self, connection, packet):
        requests = connection.requests[packet.key]
        if requests.next is None:
            requests.begin(packet.psn)
        psn = requests.whole(packet.psn)
        span = 1
        if packet.what == "READ":
            # C9-56: a READ's PSNs are those of its answer's packets
            span = max(1, -(-read_of(packet)[2] // (connection.mtu or 1 << 32)))
        if psn >= requests.next:
            self.new_request(requests, packet, psn, span)
        elif packet.transport == UC:
            self.say(packet, "was sent before: UC repeats nothing (IBTA 9.8.2)")
        else:
            self.repetition(requests, packet, psn, span)
        requests.time = packet.time

    def new_request(self, requests, packet, psn, span):
        if psn > requests.next:
            self.say(packet, f"leaves {psn - requests.next} PSNs out (IBTA 9.7.2)")
            requests.message = None
        if requests.replay is not None:
            if requests.answered < requests.next - 1:
                self.say(packet, "is new although what was asked for again was not sent yet")
            requests.replay = None
        self.sequence(requests, packet)
        requests.sent[psn] = (packet.same, packet.what)
        if packet.what == "READ":
            address, key, length = read_of(packet)
            requests.reads[psn] = (address, key, length, psn + span - 1)
            self.ask(requests, psn, span, length)
        if packet.part in (LAST, ONLY):
            requests.ends.append(psn + span - 1)
        requests.next = psn + span
        for old in (requests.sent, requests.reads, requests.atomics, requests.asked):
            if len(old) > 2 * REMEMBERED:
                for psn in [psn for psn in old if psn < requests.next - REMEMBERED]:
                    del old[psn]

    def ask(self, requests, psn, span, length):
        requests.answers.append((psn, psn + span - 1, length))
        requests.asked[psn] = (psn + span - 1, length)

    def sequence(self, requests, packet):
        """IBTA 9.7.2.1 (C9-3 and on): FIRST, any number of MIDDLE, LAST, all of one operation; or
        ONLY."""
        under_way = requests.message
        length = length_of(packet)
        if packet.part in (FIRST, ONLY):
            if under_way:
                self.say(packet, f"begins a message within a {under_way[0]}")
            requests.message = [packet.what, None]
            if packet.what == "WRITE":
                # the RETH comes before immediate data
                at = packet.extra - (20 if packet.code == 0x0b else 16)
                total, = struct.unpack_from(">I", packet.body, at + 12)
                requests.message[1] = total
        elif not under_way:
            self.say(packet, "continues no message")
            return
        elif under_way[0] != packet.what:
            self.say(packet, f"continues a {under_way[0]}")
            requests.message = None
            return
        message = requests.message
        if message[1] is not None:
            message[1] -= length
            if message[1] < 0 or packet.part in (LAST, ONLY) and message[1]:
                self.say(packet, f"brings {-message[1]} bytes more than its RETH says (C9-88)")
            elif packet.part in (FIRST, MIDDLE) and not message[1]:
                self.say(packet, "says that more follows; all that its RETH says is there")
        if packet.part in (LAST, ONLY):
            requests.message = None

    def repetition(self, requests, packet, psn, span):
        """IBTA 9.7.2.3: a packet that is sent again is the same; a READ may request only its rest.
        """
        self.counts["retransmissions"] += 1
        if psn not in (requests.replay, None) and not self.may_start(requests, packet, psn):
            self.say(packet, "is sent again without a cause")
        requests.restarts.discard(psn)
        requests.replayed = True
        if packet.what == "READ":
            self.read_again(requests, packet, psn, span)
        elif psn not in requests.sent:
            if psn >= requests.next - REMEMBERED:
                self.say(packet, "takes the PSN of a READ's answer")
        elif requests.sent[psn][0] != packet.same:
            self.say(packet, "is not what was sent with that PSN before (IBTA 9.7.2.3)")
        requests.replay = psn + span if psn + span < requests.next else None

    def may_start(self, requests, packet, psn):
        if not self.lossless or psn in requests.restarts:
            return True
        if requests.replay is not None and psn > requests.replay and requests.answered >= psn - 1:
            return True
        # An inbound packet's time is the time when it was processed, so it proves nothing.
        return not packet.outbound or packet.time - requests.time >= TIMEOUT_NS

    def read_again(self, requests, packet, psn, span):
        address, key, length = read_of(packet)
        for first, (old_address, old_key, old_length, last) in requests.reads.items():
            if first <= psn <= last:
                skipped = address - old_address
                if key != old_key or skipped + length != old_length or last != psn + span - 1:
                    self.say(packet, "does not ask for the rest of the READ that has its PSN")
                break
        else:
            if psn >= requests.next - REMEMBERED:
                self.say(packet, "has the PSN of something that was no READ")
        self.ask(requests, psn, span, length)

    # Answers

    def response(self, connection, packet):
        requests = connection.requests[connection.partner(packet.key)]
        if len(connection.keys) == 1 or requests.next is None:
            self.say(packet, "answers nothing that was asked for")
            return
        psn = requests.whole(packet.psn)
        if psn >= requests.next:
            self.say(packet, "answers a PSN that was not sent")
            return
        if packet.what == "ANSWER":
            self.read_answer(requests, packet, psn)
        else:
            self.acknowledge(requests, packet, psn)
        requests.time = packet.time

    def aeth(self, requests, packet, least, most):
        """IBTA 9.7.7: the MSN is the number of messages completed so far."""
        msn = int.from_bytes(packet.body[1:4], "big")
        msn = requests.msn + distance(msn, requests.msn)
        if not least <= msn <= most:
            self.say(packet, f"has MSN {msn}; {least} to {most} messages are complete")
        elif msn < requests.msn:
            self.say(packet, f"has MSN {msn} after {requests.msn}")
        requests.msn = max(requests.msn, min(msn, len(requests.ends)))

    def acknowledge(self, requests, packet, psn):
        syndrome, value = packet.body[0] >> 5, packet.body[0] & 31
        if packet.body[0] & 0x80 or syndrome == SYN_RESERVED:
            self.say(packet, f"has the reserved syndrome 0x{packet.body[0]:02x}")
        elif packet.what == "ATOMIC_ACK":
            self.atomic_answer(requests, packet, psn)
        elif syndrome:
            self.refusal(requests, packet, psn, syndrome, value)
        else:
            # A repeated request is acknowledged with the newest PSN, whatever that is (9.7.5.1.4).
            if requests.sent.get(psn, (0, ""))[1] in ("READ", "ATOMIC") and not requests.replayed:
                self.say(packet, "acknowledges what has an answer of its own (IBTA 9.7.5.1)")
            self.in_order(requests, packet, psn)
            self.aeth(requests, packet, requests.done(psn), len(requests.ends))
            requests.answered = max(requests.answered, psn)

    def in_order(self, requests, packet, psn):
        """IBTA 9.7.5.1.1: answers are in the order of PSNs, READs' and atomics' included."""
        if psn < requests.answered and not requests.replayed:
            self.say(packet, f"comes after PSN 0x{requests.answered & 0xffffff:06x} was answered")
        if requests.replayed:
            return
        if requests.answer and psn >= requests.answer[0]:
            self.say(packet, "comes within the answer to a READ")
        elif requests.answers and requests.answers[0][0] <= psn:
            self.say(packet, f"passes the READ of PSN 0x{requests.answers[0][0] & 0xffffff:06x}")
        skipped = [old for old in range(max(requests.answered + 1, psn - 1000), psn)
                   if requests.sent.get(old, (0, ""))[1] == "ATOMIC"]
        if skipped:
            self.say(packet, f"passes the atomic of PSN 0x{skipped[0] & 0xffffff:06x}")

    def refusal(self, requests, packet, psn, syndrome, value):
        self.counts["RNR NAKs" if syndrome == SYN_RNR else "NAKs"] += 1
        if syndrome == SYN_NAK and value > NAK_LAST:
            self.say(packet, f"has the reserved NAK code {value}")
        # A QP that is not ready to receive yet discards packets (IBTA 10.3.1.2, Initialized), and
        # later asks for the first packet. ibv_xsrq_pingpong's client does not wait for its server.
        if syndrome == SYN_NAK and value == NAK_SEQUENCE and self.lossless and \
                psn != requests.first:
            self.say(packet, "reports a sequence error on a wire that loses nothing")
        if syndrome == SYN_RNR and requests.sent.get(psn, (0, ""))[1] not in ("SEND", "WRITE"):
            self.say(packet, "is an RNR NAK for what takes no receive")
        if psn <= requests.answered and not requests.replayed:
            self.say(packet, "refuses what was acknowledged")
        # All messages before a NAK's PSN are complete, and no others, unless a READ was accepted
        # and its data could not be read afterwards (C9-148).
        late = syndrome == SYN_NAK and requests.sent.get(psn, (0, ""))[1] == "READ"
        self.aeth(requests, packet, requests.done(psn - 1),
                  len(requests.ends) if late else requests.done(psn - 1))
        requests.answered = max(requests.answered, psn - 1)
        requests.restarts.add(psn)

    def atomic_answer(self, requests, packet, psn):
        if requests.sent.get(psn, (0, ""))[1] != "ATOMIC":
            self.say(packet, "answers what was no atomic")
            return
        if packet.body[0] >> 5:
            self.say(packet, "has a syndrome other than ACK")
        before = requests.atomics.setdefault(psn, packet.body[4:12])
        if before != packet.body[4:12]:
            self.say(packet, "gives another value than before (IBTA 9.7.5.1.3)")
        self.in_order(requests, packet, psn)
        self.aeth(requests, packet, requests.done(psn), len(requests.ends))
        requests.answered = max(requests.answered, psn)

    def read_answer(self, requests, packet, psn):
        """IBTA 9.7.5.1.9 and table 40: FIRST, MIDDLE and LAST, or ONLY, of the request's PSNs."""
        if packet.part in (FIRST, ONLY):
            if not self.begin_answer(requests, packet, psn):
                return
        elif not requests.answer or requests.answer[0] != psn:
            self.say(packet, "continues no answer to a READ")
            requests.answer = None
            return
        answer = requests.answer
        last = psn == answer[1]
        answer[2] -= length_of(packet)
        if last != (packet.part in (LAST, ONLY)):
            self.say(packet, "is not the part that its PSN makes it")
        elif answer[2] < 0 or last and answer[2]:
            self.say(packet, f"brings {-answer[2]} bytes more than were asked for")
        if packet.part != MIDDLE:
            if packet.body[0] >> 5:
                self.say(packet, "has a syndrome other than ACK")
            # C9-148: the MSN may count the READ as soon as its answer begins.
            self.aeth(requests, packet, requests.done(psn) if last else requests.done(psn - 1),
                      len(requests.ends))
        requests.answered = max(requests.answered, psn)
        answer[0] += 1
        if last or packet.part in (LAST, ONLY):
            requests.answer = None

    def begin_answer(self, requests, packet, psn):
        if requests.answer and not requests.replayed:
            self.say(packet, "begins within another answer")
        requests.answer = None
        due = next((i for i, entry in enumerate(requests.answers) if entry[0] == psn), None)
        if due is not None:
            _, last, length = requests.answers[due]
            for _ in range(due + 1):
                requests.answers.popleft()
        elif not self.lossless and psn in requests.asked:
            # the network may have duplicated the request
            last, length = requests.asked[psn]
        else:
            self.say(packet, "answers no READ that waits for it")
            return False
        if not requests.replayed:
            if due:
                self.say(packet, "passes an older READ")
            if self.lossless and psn <= requests.answered:
                self.say(packet, f"comes after PSN 0x{requests.answered & 0xffffff:06x} was "
                                 "answered")
        requests.answer = [psn, last, length]
        return True


def judge_frames(frames, lossless=True):
    """Judges frames. frames: a function that yields (nanoseconds, outbound, frame) from the first
    one on."""
    judge = Judge(Survey(packets_of(frames())), lossless)
    for packet in packets_of(frames()):
        judge.look(*packet)
    return judge


def judge(path, lossless=True):
    """Judges a capture file and returns the Judge."""
    return judge_frames(lambda: capture.timed_frames(path), lossless)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lossy", action="store_true")
    parser.add_argument("file")
    args = parser.parse_args()
    verdict = judge(args.file, not args.lossy)
    for line in verdict.wrong[:100]:
        print(line)
    print(", ".join(f"{count} {name}" for name, count in sorted(verdict.counts.items())) +
          f"; {len(verdict.wrong)} illegal")
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
