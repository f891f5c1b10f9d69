# SPDX-License-Identifier: BSD-2-Clause
"""Judges which packets of dynamic connections (DC) are legal: the sessions that docs/adr/0009
describes.

Within a session the rules of a reliable connection hold, which transport_rules.py judges. This file
has the rules of the session itself. Its CONNECT comes first and contains its first PSN. An
initiator has one session at a time, and each session has a higher number. After DISCONNECT the
session has no further request. A CNAK echoes a CONNECT.
"""
CONNECT = 0x15           # CONNECT; with the SE bit, DISCONNECT
DCETH, DCCETH = 8, 16    # bytes
CNAK = 0x64              # syndrome of an ACK that belongs to no session
FORGOTTEN_NS = 10**9     # after so long a silence another initiator may have this one's number


def addressed(src, dst, qpn, body):
    """Returns the key of a packet's session and direction, which names both ends."""
    session, number = int.from_bytes(body[1:4], "big"), int.from_bytes(body[5:8], "big")
    return src, dst, qpn, number, session


def partner(key):
    """Returns the key of the other direction."""
    return key[1], key[0], key[3], key[2], key[4]


def is_connect(packet):
    return packet.what == "CONNECT" and not packet.solicited


def is_cnak(packet):
    return packet.what == "ACK" and packet.body[0] == CNAK


class Initiator:
    def __init__(self):
        self.session = None     # the last session that it began
        self.time = None        # the time of its last packet
        self.connects = set()   # the (target, PSN) of its CONNECTs
        self.left = set()       # the sessions that it has ended


class Sessions:
    """Tracks the sessions of all initiators. Calls say(packet, text) for what is wrong."""

    def __init__(self, say):
        self.say = say
        self.initiators = {}  # (source, its number) -> Initiator

    def refused(self, packet):
        """Handles a CNAK. Returns the key of the session whose request it refuses, or None."""
        src, dst, dci, dct, session = packet.key
        initiator = self.initiators.get((dst, dci))
        if session:
            self.say(packet, "is a CNAK of a session")
        if initiator is None or (src, dct, packet.psn) not in initiator.connects:
            self.say(packet, "is a CNAK that no CONNECT is answered by")
            return None
        return dst, src, dct, dci, initiator.session

    def asked(self, packet):
        """Handles any packet from an initiator. Returns whether it belongs to a request that may be
        judged."""
        src, dst, dct, dci, session = packet.key
        initiator = self.initiators.setdefault((src, dci), Initiator())
        if is_connect(packet):
            self.connected(initiator, packet)
        elif packet.what == "CONNECT":
            initiator.left.add(session)
        elif session != initiator.session:
            self.say(packet, "is of a session that did not begin, or is not its initiator's last")
        elif session in initiator.left:
            self.say(packet, "is of a session that its initiator has ended")
        initiator.time = packet.time
        return packet.what != "CONNECT"

    def connected(self, initiator, packet):
        session = packet.key[4]
        psn = int.from_bytes(packet.body[1:4], "big")
        if psn != packet.psn:
            self.say(packet, f"says that PSN 0x{psn:06x} follows")
        if initiator.session is not None and packet.time - initiator.time < FORGOTTEN_NS:
            later = (session - initiator.session) % (1 << 24)
            if later >= 1 << 23:
                self.say(packet, f"begins a session before {initiator.session}")
        if session != initiator.session:
            initiator.left.discard(session)
        elif session in initiator.left:
            self.say(packet, "begins a session again that was ended")
        initiator.session = session
        initiator.connects.add((packet.key[1], packet.key[2], packet.psn))
