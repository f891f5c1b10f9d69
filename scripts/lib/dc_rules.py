# SPDX-License-Identifier: BSD-2-Clause
"""Which packets of dynamic connections (DC) are legal: sessions, as docs/adr/0009 tells them.

Within a session the rules are those of a reliable connection, which transport_rules.py judges. Here is
what makes a session: its CONNECT comes first, and tells its first PSN; an initiator has one at a time,
each of a later number; after DISCONNECT nothing more is asked in it; a CNAK echoes a CONNECT.
"""
CONNECT = 0x15           # CONNECT, and with SE DISCONNECT
DCETH, DCCETH = 8, 16    # bytes
CNAK = 0x64              # syndrome of an ACK of no session
FORGOTTEN_NS = 10**9     # an initiator's number may be another's after so long a silence


def addressed(src, dst, qpn, body):
    """The key of a packet's session and direction; it names both ends."""
    session, number = int.from_bytes(body[1:4], "big"), int.from_bytes(body[5:8], "big")
    return src, dst, qpn, number, session


def partner(key):
    """The key of the other direction."""
    return key[1], key[0], key[3], key[2], key[4]


def is_connect(packet):
    return packet.what == "CONNECT" and not packet.solicited


def is_cnak(packet):
    return packet.what == "ACK" and packet.body[0] == CNAK


class Initiator:
    def __init__(self):
        self.session = None     # the last one that it began
        self.time = None        # of its last packet
        self.connects = set()   # (target, PSN) of its CONNECTs
        self.left = set()       # sessions that it has ended


class Sessions:
    """What initiators say of their sessions. say(packet, text) hears of what is wrong."""

    def __init__(self, say):
        self.say = say
        self.initiators = {}  # (source, its number) -> Initiator

    def refused(self, packet):
        """A CNAK: the key of the session whose request it refuses, or None."""
        src, dst, dci, dct, session = packet.key
        initiator = self.initiators.get((dst, dci))
        if session:
            self.say(packet, "is a CNAK of a session")
        if initiator is None or (src, dct, packet.psn) not in initiator.connects:
            self.say(packet, "is a CNAK that no CONNECT is answered by")
            return None
        return dst, src, dct, dci, initiator.session

    def asked(self, packet):
        """Any packet from an initiator. Whether it is one of a request that may be judged."""
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
