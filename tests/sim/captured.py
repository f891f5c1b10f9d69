#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: captured.py TEST-SIM-DATA TEST-SIM-DC

Checks that the packets of the simulation's data check are legal (scripts/lib/transport_rules.py),
and those of dynamic connections, too. Also checks that the judge finds illegal packets: one packet
at a time is dropped, duplicated or changed, and each time the judge must say what is wrong.
HCASIM_SIM_OPS: the number of operations in the judged capture; HCASIM_SIM_SEEDS: the number of
seeds of dynamic connections that are judged.
"""
import collections
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))

import capture  # noqa: E402
import transport_rules as rules  # noqa: E402

SEEDS = int(os.environ.get("HCASIM_SIM_SEEDS", "6"))
OPS = os.environ.get("HCASIM_SIM_OPS", "20000")
SPOILT_OPS = "500"  # operations of the capture that is changed once for each row below
TRIES = 2            # packets of each kind
BTH = 14 + 20 + 8    # where it begins
MUST_SEE = ("RC", "UC", "UD")


def run(program, folder, ops, **more):
    """Captures a cable without faults and a bad cable; more: further environment."""
    files = [folder / "perfect.pcapng", folder / "lossy.pcapng"]
    env = dict(os.environ, HCASIM_SIM_OPS=ops, HCASIM_SIM_CAPTURE=str(files[0]),
               HCASIM_SIM_CAPTURE_LOSSY=str(files[1]), **more)
    subprocess.run([program], env=env, check=True, stdout=subprocess.DEVNULL)
    return files


# Ways to spoil a frame. at: offset in the BTH or behind it.


def patch(frame, at, value):
    return frame[:BTH + at] + value + frame[BTH + at + len(value):]


def opcode(code):
    return lambda frame: patch(frame, 0, bytes([frame[BTH] & 0xe0 | code]))


def add(at, size, amount):
    """Returns a change that adds to a number of size bytes."""
    def spoil(frame):
        old = int.from_bytes(frame[BTH + at:BTH + at + size], "big")
        new = (old + amount) % (1 << 8 * size)
        return patch(frame, at, new.to_bytes(size, "big"))
    return spoil


def bits(at, mask):
    return lambda frame: patch(frame, at, bytes([frame[BTH + at] | mask]))


def shorten(frame):
    """Removes four bytes before the ICRC."""
    length = struct.pack(">H", struct.unpack_from(">H", frame, 16)[0] - 4)
    return frame[:16] + length + frame[18:-8] + frame[-4:]


def lengthen(frame):
    length = struct.pack(">H", struct.unpack_from(">H", frame, 16)[0] + 4)
    return frame[:16] + length + frame[18:-4] + bytes(4) + frame[-4:]


def add_psn(amount):
    return add(9, 3, amount)


def is_a(transport, what, *parts):
    return lambda p: (p.transport == transport and p.what == what and
                      (not parts or p.part in parts))


def code(transport, number):
    return lambda p: p.transport == transport and p.code == number


RC_SEND, RC_WRITE = is_a(rules.RC, "SEND"), is_a(rules.RC, "WRITE")
ANSWER_MIDDLE = is_a(rules.RC, "ANSWER", rules.MIDDLE)
DROP, AGAIN = "drop", "again"

# The change, the packets that it applies to, and the finding that the judge must report.
SPOILT = [
    ("a lost request", is_a(rules.RC, "SEND", rules.ONLY), DROP, "PSNs out"),
    ("a lost packet of UC", is_a(rules.UC, "WRITE"), DROP, "PSNs out"),
    ("a lost datagram", is_a(rules.UD, "SEND"), DROP, "follows PSN"),
    ("a lost answer to a READ", is_a(rules.RC, "ANSWER", rules.ONLY), DROP, "passes"),
    ("a lost part of an answer", ANSWER_MIDDLE, DROP, "continues no answer"),
    ("a lost answer to an atomic", is_a(rules.RC, "ATOMIC_ACK"), DROP, "passes the atomic"),
    # of the capturing side's own packets: only for these it knows when they were sent
    ("a doubled request", lambda p: RC_SEND(p) and p.outbound, AGAIN, "without a cause"),
    ("a doubled packet of UC", is_a(rules.UC, "SEND"), AGAIN, "was sent before"),
    ("a doubled datagram", is_a(rules.UD, "SEND"), AGAIN, "follows PSN"),
    ("a doubled answer", is_a(rules.RC, "ANSWER", rules.ONLY), AGAIN, "no READ that waits"),
    ("a request's PSN too large", RC_SEND, add_psn(1), "PSNs out"),
    ("a request's PSN of long ago", RC_WRITE, add_psn(-3), None),
    ("an ACK of what was not sent", is_a(rules.RC, "ACK"), add_psn(5000), "was not sent"),
    ("an ACK of less than before", is_a(rules.RC, "ACK"), add_psn(-500), "was answered"),
    ("an answer's PSN too large", ANSWER_MIDDLE, add_psn(1), "continues no answer"),
    ("an answer's PSN of before", is_a(rules.RC, "ANSWER", rules.FIRST), add_psn(-1),
     "no READ that waits"),
    ("an atomic's answer to something else", is_a(rules.RC, "ATOMIC_ACK"), add_psn(-7000),
     "no atomic"),
    ("an MSN too large", is_a(rules.RC, "ACK"), add(13, 3, 1000), "messages are complete"),
    ("an MSN too small", is_a(rules.RC, "ACK"), add(13, 3, -1), "messages are complete"),
    ("an atomic's MSN too small", is_a(rules.RC, "ATOMIC_ACK"), add(13, 3, -1),
     "messages are complete"),
    ("a READ's MSN too large", is_a(rules.RC, "ANSWER", rules.LAST), add(13, 3, 500),
     "messages are complete"),
    ("a reserved syndrome", is_a(rules.RC, "ACK"), bits(12, 0x40), "reserved syndrome"),
    ("a NAK without a loss", is_a(rules.RC, "ACK"),
     lambda frame: patch(frame, 12, b"\x60"), "loses nothing"),
    ("a reserved NAK code", is_a(rules.RC, "ACK"),
     lambda frame: patch(frame, 12, b"\x65"), "reserved NAK code"),
    ("an ACK in an atomic's place", is_a(rules.RC, "ATOMIC_ACK"),
     lambda frame: patch(shorten(shorten(frame)), 0, b"\x11"), "an answer of its own"),
    ("FIRST in MIDDLE's place", code(rules.RC, 0x01), opcode(0x00), "within a SEND"),
    ("LAST in MIDDLE's place", code(rules.UC, 0x01), opcode(0x02), "continues no message"),
    ("MIDDLE in LAST's place", code(rules.RC, 0x08), opcode(0x07), "payload"),
    ("ONLY in LAST's place", code(rules.RC, 0x02), opcode(0x04), "within a SEND"),
    ("LAST in ONLY's place", code(rules.UC, 0x04), opcode(0x02), "continues no message"),
    ("a SEND's LAST in a WRITE", code(rules.RC, 0x08), opcode(0x02), "continues a WRITE"),
    ("an answer's LAST in MIDDLE's place", ANSWER_MIDDLE, opcode(0x0f), None),
    ("a FIRST that is not full", code(rules.RC, 0x06), shorten, "path MTU"),
    ("a MIDDLE that is too full", code(rules.UC, 0x01), lengthen, "path MTU"),
    ("an answer's MIDDLE that is not full", ANSWER_MIDDLE, shorten, "path MTU"),
    ("an answer too short", is_a(rules.RC, "ANSWER", rules.ONLY), shorten, None),
    ("a WRITE of more than its RETH says", code(rules.RC, 0x0a), lengthen, "RETH says"),
    ("a WRITE of less than its RETH says", code(rules.UC, 0x06), add(24, 4, 40000), "RETH says"),
    ("a READ of less than its answer", is_a(rules.RC, "READ"), add(24, 4, -1), None),
    ("an ACK with a payload", is_a(rules.RC, "ACK"), lengthen, "payload"),
    ("an atomic cut short", is_a(rules.RC, "ATOMIC"), shorten, "within its headers"),
    ("padding in a MIDDLE", code(rules.RC, 0x01), bits(1, 0x10), "more follows"),
    ("a wrong length of padding", code(rules.RC, 0x0a), bits(1, 0x30), None),
    ("SE in a WRITE", code(rules.RC, 0x0a), bits(1, 0x80), "SE set"),
    ("SE in a MIDDLE", code(rules.RC, 0x01), bits(1, 0x80), "SE set"),
    ("another transport version", RC_SEND, bits(1, 1), "transport version"),
    ("another P_Key", RC_SEND, bits(8, 1), "reserved bits"),
    ("an opcode that does not exist", RC_SEND, opcode(0x15), "does not exist"),
    ("a datagram's FIRST", is_a(rules.UD, "SEND"), opcode(0x00), "does not exist"),
    ("a READ over UC", is_a(rules.UC, "SEND"), opcode(0x0c), "does not exist"),
    ("an ACK to nobody", is_a(rules.RC, "ACK"), add(5, 3, 0x5000), "nothing that was asked"),
]


def dc(what, solicited=None):
    return lambda p: (p.transport == rules.DC and p.what == what and
                      solicited in (None, p.solicited) and not rules.dc_rules.is_cnak(p))


def cnak(packet):
    return packet.transport == rules.DC and rules.dc_rules.is_cnak(packet)


# The same for sessions; offsets 12 to 19 are the DCETH.
DC_SPOILT = [
    ("no CONNECT", dc("CONNECT", 0), DROP, "did not begin"),
    ("a CONNECT of another session", dc("CONNECT", 0), add(13, 3, 1), "did not begin"),
    ("a CONNECT of long ago", dc("CONNECT", 0), add(13, 3, -1000), "begins a session before"),
    ("a CONNECT with another PSN", dc("CONNECT", 0), add_psn(1), "follows"),
    ("a request of another session", dc("WRITE"), add(13, 3, 7), "did not begin"),
    ("a request of another initiator", dc("WRITE"), add(17, 3, 0x100), "did not begin"),
    ("a request's PSN too large", dc("WRITE"), add_psn(100), "PSNs out"),
    ("an ACK of another session", dc("ACK"), add(13, 3, 7), "nothing that was asked"),
    ("an ACK of another target", dc("ACK"), add(17, 3, 0x100), "nothing that was asked"),
    ("an ACK of what was not sent", dc("ACK"), add_psn(5000), "was not sent"),
    ("an MSN too large", dc("ACK"), add(21, 3, 1000), "messages are complete"),
    ("an atomic's answer to something else", dc("ATOMIC_ACK"), add_psn(-7000), "no atomic"),
    ("a CNAK of no CONNECT", cnak, add_psn(999), "no CONNECT"),
    ("a CNAK of a session", cnak, add(13, 3, 5), "CNAK of a session"),
    ("a DISCONNECT too early", dc("CONNECT", 0), bits(1, 0x80), None),
    ("an opcode that does not exist", dc("SEND"), opcode(0x18), "does not exist"),
]


def spoil(frames, index, how):
    time, outbound, frame = frames[index]
    if how == DROP:
        return frames[:index] + frames[index + 1:]
    if how == AGAIN:
        return frames[:index + 1] + frames[index:]
    return frames[:index] + [(time, outbound, how(frame))] + frames[index + 1:]


def candidates(frames):
    """Returns packets of the third quarter: there are packets before and after them."""
    found = []
    for number, frame in enumerate(frames):
        parts = capture.roce(frame[2])
        packet, _ = rules.parse(number, frame[0], frame[1], parts) if parts else (None, None)
        if packet and len(frames) // 2 < number < len(frames) * 3 // 4:
            found.append(packet)
    return found


def judge(frames):
    return rules.judge_frames(lambda: iter(frames))


def not_found(frames, packets, chance, kinds):
    """Yields lines about what the judge did not find."""
    missed = []
    for name, which, how, says in kinds:
        fitting = [packet for packet in packets if which(packet)]
        for packet in chance.sample(fitting, min(TRIES, len(fitting))):
            wrong = judge(spoil(frames, packet.number, how)).wrong
            if not any(says is None or says in line for line in wrong):
                missed.append(f"{name}, frame {packet.number}: {wrong[:3]}")
        if not fitting:
            missed.append(f"{name}: there is no such packet")
    return missed


def spoilt_ones_are_found(path):
    frames = list(capture.timed_frames(path))
    packets = candidates(frames)
    chance = random.Random(1)
    missed = not_found(frames, packets, chance, SPOILT)
    missed += sent_again(frames, packets, chance)
    missed += harmless(frames, packets, chance)
    for line in missed:
        print(f"not found: {line}")
    print(f"{len(SPOILT)} kinds of illegal packets, {len(missed)} not found")
    return not missed


def sent_again(frames, packets, chance):
    """After a timeout a request may be sent again, if it is unchanged."""
    missed = []
    lasts = {}
    for packet in packets:
        if RC_SEND(packet) and packet.part == rules.ONLY and packet.outbound:
            lasts[packet.key] = packet
    packet = chance.choice(list(lasts.values()))
    time, outbound, frame = frames[packet.number]
    later = frames[-1][0] + 10**9
    tail = [other for other in packets if other.key == packet.key and
            other.number >= packet.number and other.what not in rules.RESPONSES]
    again = [(later, outbound, frames[other.number][2]) for other in tail]
    wrong = judge(frames + again).wrong
    if wrong:
        missed.append(f"a legal retransmission was called illegal: {wrong[:3]}")
    again[0] = (later, outbound, patch(frame, 12, bytes([frame[BTH + 12] ^ 1])))
    if not any("not what was sent" in line for line in judge(frames + again).wrong):
        missed.append("a changed retransmission")
    return missed


def harmless(frames, packets, chance):
    """An ACK may be left out if a later ACK covers it: the judge must not complain."""
    missed = []
    acks = [packet for packet in packets if is_a(rules.RC, "ACK")(packet)]
    for packet in chance.sample(acks, TRIES):
        wrong = judge(spoil(frames, packet.number, DROP)).wrong
        if wrong:
            missed.append(f"an ACK left out was called illegal: {wrong[:3]}")
    return missed


def packet(sender, qpn, opcode, psn, body=b""):
    """Returns a frame of RoCEv2 from host 1 or 2 to the other host. Its ICRC is not judged here."""
    ib = struct.pack(">BBHII", opcode, 0, 0xffff, qpn, psn & 0xffffff) + body + bytes(4)
    udp = struct.pack(">HHHH", 0xc000, capture.ROCE_PORT, 8 + len(ib), 0) + ib
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0)
    ip += bytes([10, 0, 0, sender, 10, 0, 0, 3 - sender])
    return bytes(12) + b"\x08\x00" + ip + udp


def close_psns_are_no_matter():
    """Ping-pong over many QPs in random order. A packet does not name its sender's QP, and many QPs
    have PSNs that are close to each other: the judge must match answers to requests, without a
    complaint."""
    chance = random.Random(1)
    qps = range(0x100, 0x140)
    psns = {(host, qpn): chance.randrange(1 << 20) for host in (1, 2) for qpn in qps}
    frames = []
    for turn in range(10):
        for qpn in chance.sample(qps, len(qps)):
            host = 1 + turn % 2
            psn = psns[host, qpn]
            for part, code in enumerate((0x00, 0x01, 0x01, 0x02)):
                frames.append(packet(host, qpn, code, psn + part, bytes(1024)))
            ack = struct.pack(">I", 0x1f << 24 | turn // 2 + 1)
            frames.append(packet(3 - host, qpn, 0x11, psn + 3, ack))
            psns[host, qpn] += 4
    wrong = judge([(time, None, frame) for time, frame in enumerate(frames)]).wrong
    print(f"{len(frames)} packets of {len(qps)} connections with close PSNs: {len(wrong)} illegal",
          *wrong[:3], sep="\n")
    return not wrong


def are_legal(path, lossless):
    verdict = rules.judge(path, lossless)
    for line in verdict.wrong[:20]:
        print(f"{path.name}: {line}")
    counts = verdict.counts
    print(f"{path.name}: {dict(counts)}, {len(verdict.wrong)} illegal")
    seen = [name for name in MUST_SEE if counts[name]]
    expected = list(MUST_SEE) if lossless else ["RC"]
    if not lossless and not counts["retransmissions"]:
        print(f"{path.name}: nothing was sent again")
        return False
    return not verdict.wrong and seen == expected


def sessions_are_legal(program, folder):
    """Judges dynamic connections: many seeds, on a cable without faults and on a bad one."""
    good = True
    seen = collections.Counter()
    for seed in range(1, SEEDS + 1):
        files = run(program, folder, OPS, HCASIM_SIM_SEED=str(seed), HCASIM_SIM_SEEDS="1")
        for path, lossless in zip(files, (True, False)):
            verdict = rules.judge(path, lossless)
            seen += verdict.counts
            for line in verdict.wrong[:20]:
                print(f"seed {seed}, {path.name}: {line}")
            good = good and not verdict.wrong
    print(f"{SEEDS} seeds: {dict(seen)}")
    return good and all(seen[what] for what in ("sessions", "CNAKs", "RNR NAKs", "retransmissions"))


def spoilt_sessions_are_found(program, folder):
    perfect, _ = run(program, folder, OPS, HCASIM_SIM_SEED="2", HCASIM_SIM_SEEDS="1")
    frames = list(capture.timed_frames(perfect))
    missed = not_found(frames, candidates(frames), random.Random(1), DC_SPOILT)
    for line in missed:
        print(f"not found: {line}")
    print(f"{len(DC_SPOILT)} kinds of illegal packets of sessions, {len(missed)} not found")
    return not missed


def main():
    program, dc_program = sys.argv[1:]
    told_apart = close_psns_are_no_matter()
    with tempfile.TemporaryDirectory() as folder:
        perfect, lossy = run(program, pathlib.Path(folder), OPS)
        good = are_legal(perfect, True)
        good = are_legal(lossy, False) and good
        perfect, _ = run(program, pathlib.Path(folder), SPOILT_OPS, CK_RUN_CASE="perfect",
                         HCASIM_SIM_SEED="1")
        good = spoilt_ones_are_found(perfect) and good
        good = sessions_are_legal(dc_program, pathlib.Path(folder)) and good
        good = spoilt_sessions_are_found(dc_program, pathlib.Path(folder)) and good
    return 0 if good and told_apart else 1


if __name__ == "__main__":
    sys.exit(main())
