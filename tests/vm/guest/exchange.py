#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: exchange.py NETDEV SENT RECEIVED FROM COUNT SECONDS [echo]

Sends the frames of the file SENT, and writes to the file RECEIVED the frames that come from the MAC
address FROM (any: from everybody), until COUNT have come or SECONDS are over. A line of a file is a
frame in hexadecimal digits. With `echo`, the other end returns each frame: there are never more than
WINDOW frames under way. The kernel takes VLAN tags out of frames; here they are put back.
"""
import pathlib
import socket
import struct
import sys
import time

WINDOW = 32
ETH_P_ALL, SOL_PACKET = 3, 263
PACKET_ADD_MEMBERSHIP, PACKET_AUXDATA, PACKET_MR_PROMISC, PACKET_OUTGOING = 1, 8, 1, 4
VLAN_VALID, VLAN_TPID_VALID = 0x10, 0x40


def open_netdev(name):
    packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packet.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
    packet.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    packet.bind((name, 0))
    packet.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                      struct.pack("IHH8s", socket.if_nametoindex(name), PACKET_MR_PROMISC, 0, b""))
    return packet


def receive(packet, source, seconds):
    """Returns the next frame from this MAC, or None if none comes in this time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        packet.settimeout(left)
        try:
            frame, control, _, address = packet.recvmsg(65536, 256)
        except TimeoutError:
            return None
        if address[2] == PACKET_OUTGOING or source not in (None, frame[6:12]):
            continue
        for level, kind, data in control:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tag, tpid = struct.unpack("IIIHHHH", data[:20])
                if status & VLAN_VALID:
                    tpid = tpid if status & VLAN_TPID_VALID else 0x8100
                    frame = frame[:12] + struct.pack("!HH", tpid, tag) + frame[12:]
        return frame
    return None


def main():
    netdev, sent, received, source, count, seconds = sys.argv[1:7]
    echo = sys.argv[7:] == ["echo"]
    source = None if source == "any" else bytes.fromhex(source.replace(":", ""))
    packet = open_netdev(netdev)
    end, got = time.monotonic() + float(seconds), []
    print("ready", flush=True)
    frames = [bytes.fromhex(line) for line in pathlib.Path(sent).read_text(encoding="ascii").split()]
    for number, frame in enumerate(frames):
        while echo and number - len(got) >= WINDOW and time.monotonic() < end:
            back = receive(packet, source, end - time.monotonic())
            got += [back] if back else []
        packet.send(frame)
        if not echo and number % WINDOW == WINDOW - 1:
            time.sleep(0.05)
    while len(got) < int(count) and time.monotonic() < end:
        back = receive(packet, source, end - time.monotonic())
        got += [back] if back else []
    pathlib.Path(received).write_text("".join(frame.hex() + "\n" for frame in got), encoding="ascii")


main()
